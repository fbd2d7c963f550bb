"""Derivatives of steps with contacts by their active set: closed forms, and differences of steps.

Differences of steps that are short enough to change no active set are good to 1e-8 of the largest
number (round-off of 1e-15 over 1e-6, and over a step of some ms).
"""

from dataclasses import replace

import numpy as np
import pybullet
import pybullet_data
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation
from support.solid_worlds import BLOCK, DT, G

import bulletbridge as bb
from bulletbridge.control.trajectories import Trajectories
from bulletbridge.engine.step_differentiator import StepDerivatives
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.displacement import configuration_difference
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.models.bundled import find
from bulletbridge.models.loops_file import read_loops
from bulletbridge.system.bounded_derivatives import Made, bounded_step_derivatives
from bulletbridge.system.derivatives import filtering

SHORT, CLOSE = 1e-6, 1e-7


def require_short_differences(
    system: bb.System, sides: int = 1, kink: float = 0.0, short: float = SHORT
) -> StepDerivatives:
    """A and B are what short steps beside the state find, on one side of kinks at least.

    Args:
        system: At a state.
        sides: 2: on both sides.
        kink: What these may differ from their mean by.
        short: Of the steps beside the state.
    """
    found, m, nv = system.step_derivatives(), system.mechanism, len(system.v)
    near, start = system.differentiable(), np.concatenate([system.q, system.v, [system.t]])
    tau, before = np.array(system.tau), system.save(world=False)

    def end(z: np.ndarray) -> np.ndarray:
        state = start.copy()
        displace(m.bodies, np.array(system.q), z[:nv].copy(), 1.0, state[: m.nq])
        state[m.nq : -1] += z[nv : 2 * nv]
        near.restore(before, write=False)  # motors push, and contacts rest, as they did
        near.take_back(state)
        near.tau[:] = tau + z[2 * nv :]
        near.step(write=False)
        away = configuration_difference(m, np.array(near.q), found.q)
        return np.concatenate([away, near.v - found.v])

    exact, on_loops = np.hstack([found.A, found.B]), np.eye(3 * nv)
    J = system.terms().J
    if len(J):
        free = np.eye(nv) - np.linalg.pinv(J) @ J
        on_loops[:nv, :nv] = on_loops[nv : 2 * nv, nv : 2 * nv] = free
        bent = filtering(system._active.solver, np.array(system.q), np.array(system.v), system.t)
        on_loops[nv : 2 * nv, :nv] = bent @ free
    for k, way in enumerate(on_loops.T):
        h = short if k < 2 * nv else 1e-3
        here = end(0.0 * way)
        seen = [(4.0 * end(x * way) - end(2.0 * x * way) - 3.0 * here) / (2.0 * x) for x in (h, -h)]
        off = sorted(np.abs(one - exact @ way).max() for one in seen)
        assert off[sides - 1] <= CLOSE * max(1.0, np.abs(exact).max()) + kink, (k, off)
    return found


def test_a_block_that_slides_down_a_slope(solids):
    """v⁺ = v + dt (g (sin - mu cos) + f (1, mu) . (down, normal) / m), whatever the height.

    What is above the slope, by how much it may, comes down to it: nothing is left of that.
    """
    angle, mu = 0.6, 0.3
    down, normal = solids.ground(angle, plane=True)
    turn = Rotation.from_rotvec([0, angle, 0]).as_quat()
    system = solids.system(solids.solid(f'<box size="{BLOCK}"/>', 0.15 * normal, turn, friction=mu))
    for _ in range(30):
        system.step()
    found = system.step_derivatives()
    assert set(found.active) == {"world on b sliding"}
    A, B = found.A, found.B
    assert_allclose(
        system.v[3:] @ down, 30 * DT * G * (np.sin(angle) - mu * np.cos(angle)), rtol=1e-9
    )
    linear, rates = slice(3, 6), slice(9, 12)
    # by rates along the slope, and into it, which friction feels
    assert_allclose(A[rates, rates] @ down, down, atol=1e-10)
    assert_allclose(A[rates, rates] @ normal, mu * down, atol=1e-10)
    assert_allclose(B[rates, linear] @ down, DT / 2.0 * down, atol=1e-12)
    assert_allclose(B[rates, linear] @ normal, DT / 2.0 * mu * down, atol=1e-12)
    assert_allclose(A[linear, linear] @ normal, mu * down, atol=1e-9)  # it ends on the slope
    assert_allclose(A[linear, linear] @ down, down, atol=1e-9)
    # across, friction turns with the slip: by g mu cos dt / v of it
    across = np.cross(normal, down)
    slip = float(found.v[3:] @ down)
    kept = 1.0 / (1.0 + DT * G * mu * np.cos(angle) / slip)
    assert_allclose(A[rates, rates] @ across, kept * across, atol=1e-9)


@pytest.mark.parametrize("spin", [0.0, 1.0])
def test_loads_of_four_corners_that_slide_matter_only_where_it_turns(solids, spin):
    """How four corners share a weight is not unique, and moves nothing unless their slips differ.

    Then what their friction turns the block by is no function of the state: refused by name.
    """
    solids.ground(plane=True)
    system = solids.system(solids.solid(f'<box size="{BLOCK}"/>', (0, 0, 0.15), friction=0.25))
    system.set_state(np.array(system.q), np.array([0.0, 0.0, spin, 1.0, 0.0, 0.0]))
    for _ in range(3):
        system.step()
    if spin:
        named = r"follow from each other \(contact of 'b' with 'world' at 4 points\)"
        with pytest.raises(UnsupportedError, match=named):
            system.step_derivatives()
        return
    found = system.step_derivatives()
    assert set(found.active) == {"world on b sliding"}
    assert_allclose(found.A[9, 11], 0.25, atol=1e-9)  # pressed harder, slowed by mu of it


def test_differences_begin_where_a_trajectory_is_and_leave_it_as_it_was(solids):
    """What four corners of that block bear is remembered from step to step, and decides the next.

    Differences go by it too, and the step that follows them is that of the system, to the bit.
    """
    solids.ground(plane=True)
    system = solids.system(solids.solid(f'<box size="{BLOCK}"/>', (0, 0, 0.15), friction=0.25))
    system.set_state(np.array(system.q), np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0]))
    for _ in range(3):
        system.step()
    found = Trajectories(system).differentiated(np.zeros((3, 6)))
    assert found is not None and sorted(found.whys) == [0, 1, 2]
    assert all(why.endswith("a mean of both sides") for why in found.whys.values())
    for state in found.states[1:]:
        system.step()
        assert np.array_equal(state, system.snapshot())


def on_spring(solids, stiffness, damping, mu=0.5):
    """A ball of 2 kg, pressed by 2 mm into a plane's contact that gives way, and rolling."""
    solids.ground(plane=True)
    shape = '<sphere radius="0.1"/>'
    ball = solids.solid(shape, [0, 0, 0.098], moments=[0.008] * 3, friction=mu)
    world = {"contactStiffness": stiffness, "contactDamping": damping - 0.1}  # the plane's
    pybullet.changeDynamics(ball, -1, physicsClientId=solids.client, **world)
    return solids.system(ball, contacts="compliant")


def test_a_ball_on_a_spring_and_damper(solids):
    """v⁺ = (m v - dt (k z + m g - f))/(m + dt d + dt² k): implicit Euler of one freedom."""
    m, k, d = 2.0, 3e3, 20.0
    system = on_spring(solids, k, d)
    found, whole = system.step_derivatives(), m + DT * d + DT * DT * k
    assert_allclose(found.A[11, 11], m / whole, rtol=1e-9)
    assert_allclose(found.A[11, 5], -DT * k / whole, rtol=1e-7)
    assert_allclose(found.B[11, 5], DT / whole, rtol=1e-9)


@pytest.mark.parametrize(("mu", "rate", "speed"), [(0.02, -0.1, 2.0), (3.0, 0.05, 0.2)])
def test_a_ball_that_rolls_or_slides_on_a_spring(solids, mu, rate, speed):
    """Pressed deeper, and springing back; friction follows what the spring bears."""
    system = on_spring(solids, 3e3, 20.0, mu)
    system.set_state(v=[1.0, 2.0, 3.0, speed, -0.1, rate])
    found = require_short_differences(system, 2)
    assert found.active == (f"world on b {'sliding' if mu < 1.0 else 'sticking'}",)


def test_a_ball_that_leaves_its_spring_behind(solids):
    """It is moved out faster than the spring would push it: nothing acts but its weight."""
    system = on_spring(solids, 3e3, 200.0)
    system.set_state(v=[0.0, 0.0, 0.0, 0.0, 0.0, 0.3])
    found = require_short_differences(system, 2)
    assert found.active == () and system.q[2] < 0.1


def test_what_rests_is_told(solids):
    """A ball that touches and is lifted by x comes back in a step; sunk by x it stays.

    So z+ by z is 0 on the side that is told, and 1 on the other, and on both of what is sunk by
    more than rounds. In flight, and while it lands, nothing rests.
    """
    solids.ground(plane=True)
    ball = solids.solid('<sphere radius="0.1"/>', (0, 0, 0.1), moments=[0.008] * 3)
    system = solids.system(ball)
    system.step()
    found, here = system.step_derivatives(), system.save(world=False)
    assert found.at_rest == ("contact of 'b' with 'world'",) and abs(found.A[5, 5]) <= 1e-9

    def end(x: float) -> float:
        system.restore(here, write=False)
        system.set_state(np.array(system.q) + [0, 0, x, 0, 0, 0, 0])
        system.step()
        return float(system.q[2])

    slopes = [(end(x) - end(0.0)) / x for x in (1e-5, -5e-8)]
    assert_allclose(slopes, [0.0, 1.0], atol=1e-6)
    system.set_state(np.array(system.q) - [0, 0, 3e-8, 0, 0, 0, 0])
    sunk = require_short_differences(system, 2, short=1e-8)
    assert sunk.at_rest == found.at_rest and abs(sunk.A[5, 5] - 1.0) <= 1e-9
    system.restore(here)
    told = system.linearise()
    assert told.at_rest == found.at_rest and "at rest: contact of 'b'" in repr(told)
    system.set_state(np.array(system.q) + [0, 0, 4.5 * G * DT**2, 0, 0, 0, 0])
    gradient = bb.rollout_gradient(system, np.zeros((6, 6)), final=lambda q, v, t: q[2:3])
    # by Euler's steps it has fallen by n (n + 1)/2 g dt**2 after n: it lands in the third
    assert gradient.at_rest.tolist() == [3, 4, 5] and not len(gradient.differences)
    assert repr(gradient).endswith(" of 6 steps, 3 with contacts at rest>")


def test_a_block_that_sticks_goes_nowhere(solids):
    _, normal = solids.ground(0.2, plane=True)
    turn = Rotation.from_rotvec([0, 0.2, 0]).as_quat()
    system = solids.system(solids.solid(f'<box size="{BLOCK}"/>', 0.15 * normal, turn))
    system.step()
    found = system.step_derivatives()
    assert np.abs(found.B).max() <= 1e-12
    assert np.abs(found.A[6:, 6:]).max() <= 1e-11  # whatever it would have moved by


@pytest.mark.parametrize("mu", [0.3, 3.0])
def test_a_ball_that_lands(solids, mu):
    _, normal = solids.ground(0.1, plane=True)
    shape = '<sphere radius="0.1"/>'
    rub = {"friction": mu, "rollingFriction": 0.01, "spinningFriction": 0.02}
    system = solids.system(solids.solid(shape, 0.1005 * normal, moments=[0.008] * 3, **rub))
    system.set_state(v=[1.0, 2.0, 3.0, 2.0, 0.5, -0.5])
    found = require_short_differences(system, 2)
    assert found.active == (f"world on b {'sliding' if mu < 1.0 else 'sticking'}",)


@pytest.mark.parametrize("mu", [0.02, 3.0])
def test_a_ball_that_bounces(solids, mu):
    """It comes off by a share of what it came by, along the normal of a slope."""
    _, normal = solids.ground(0.1, plane=True)
    rub = {"friction": mu, "restitution": 0.6}
    ball = solids.solid('<sphere radius="0.1"/>', 0.1005 * normal, moments=[0.008] * 3, **rub)
    system = solids.system(ball)
    system.set_state(v=[1.0, 2.0, 3.0, 0.3, 0.5, -1.5])
    found = require_short_differences(system, 2)
    assert found.active == (f"world on b {'sliding' if mu < 1.0 else 'sticking'}",)
    assert_allclose(normal @ found.A[9:, 9:], -0.6 * normal, atol=1e-9)


def test_a_ball_that_lands_on_another(solids):
    """Both move, and the normal turns with either."""
    solids.ground(plane=True)
    lower, upper = (
        solids.solid('<sphere radius="0.1"/>', place, moments=[0.008] * 3, friction=0.4)
        for place in ((0, 0, 0.1 + 2e-6), (0.06, 0.03, 0.1002 + np.sqrt(0.0355)))
    )
    system = solids.system([lower, upper])
    system.set_state(v=[0.1, 0.2, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.5, 0.1, -0.5])
    found = require_short_differences(system)
    assert len(found.active) == 2


def test_a_ball_on_a_height_field_that_bullet_detects(solids):
    """Bullet alone tells where they meet: it is asked again beside by each rate."""
    n = 16
    heights = [0.02 * np.sin(0.7 * i) * np.cos(0.5 * j) for j in range(n) for i in range(n)]
    field = pybullet.createCollisionShape(
        pybullet.GEOM_HEIGHTFIELD, meshScale=[0.5, 0.5, 1], heightfieldData=heights,
        numHeightfieldRows=n, numHeightfieldColumns=n, physicsClientId=solids.client,
    )  # fmt: skip
    pybullet.createMultiBody(0, field, physicsClientId=solids.client)
    ball = solids.solid('<sphere radius="0.1"/>', (0.1, 0.1, 0.13), moments=[0.008] * 3)
    system = solids.system(ball)
    while not system.step_derivatives().active:
        system.step()
    require_short_differences(system)


def test_bodies_on_one_another_on_a_slope(solids):
    """A ball slides and rolls down a block that stands, on more points than it takes."""
    _, normal = solids.ground(0.3, plane=True)
    turn = Rotation.from_rotvec([0, 0.3, 0]).as_quat()
    block = solids.solid(f'<box size="{BLOCK}"/>', 0.15 * normal, turn, friction=0.2)
    ball = solids.solid('<sphere radius="0.1"/>', 0.4 * normal, moments=[0.008] * 3, friction=0.3)
    system = solids.system([block, ball])
    for _ in range(40):
        system.step()
    found, nv = system.step_derivatives(), 12
    assert found.active[0] == "b2/b on b1/b sliding" or found.active[0] == "b2/b on b1/b sticking"
    assert np.abs(found.A[nv : nv + 6, nv:]).max() <= 1e-9  # the block stands


def falling_minitaur(client: int) -> bb.System:
    """Minitaur without motors, 3 cm above a plane."""
    pybullet.setGravity(0, 0, -G, physicsClientId=client)
    pybullet.loadURDF(f"{pybullet_data.getDataPath()}/plane.urdf", physicsClientId=client)
    spec = read_loops(find("minitaur"))
    start = spec.start_q | {"base": [0, 0, 0.2, 0, 0, 0, 1.0]}
    spec = replace(spec, gravity=(0, 0, -G), start_q=start, start_v={}, forces=())
    return bb.load(spec, client, dt=1e-3, contacts=True).system


def test_a_robot_lands_on_a_foot_that_sticks_while_its_loops_are_closed(connect):
    """Minitaur's legs swing; where that foot sticks is held by correction and filter."""
    system = falling_minitaur(connect()._client)
    system.rollout(60)
    while not system.step_derivatives().active:
        system.step()
    found = require_short_differences(system)
    (foot,) = found.active
    assert foot.startswith("world on lower_leg") and foot.endswith("sticking")
    system.step()  # what it leads to moves along the loops
    assert np.abs(system.terms().J @ found.A[: len(system.v)]).max() <= 1e-10


def test_a_robot_on_two_feet_that_do_not_hold_all_there_is(connect):
    """Holding the feet apart would take more than the robot's mass: that row gives way, and may.

    Two micrometres above the ground, which they reach in the step, feet are at no kink.
    """
    system = falling_minitaur(connect()._client)
    system.rollout(600)
    for _ in range(200):
        system.step()
        feet = [load for load in system.contacts() if load.state == "sticking"]
        if len(feet) == 2:
            break
    q = np.array(system.q)
    q[2] += 2e-6
    system.set_state(q, np.array(system.v))
    found = require_short_differences(system, 2)
    assert len(found.active) == 2
    assert all(one.endswith("sticking") for one in found.active)


def test_a_block_that_lies_askew_on_another(solids):
    """Two micrometres apart, on six points of two flat faces, of which either may name them.

    It has the normal too, which turns with it: what blocks would fall by in the step, g dt, goes
    along the one or the other.
    """
    solids.ground()
    turn = Rotation.from_rotvec([0, 0, 0.2]).as_quat()
    places = ((0.0, 0.0, 0.15 + 2e-6), (0.01, 0.005, 0.45 + 4e-6))
    lower, upper = (
        solids.solid(f'<box size="{BLOCK}"/>', place, how)
        for place, how in zip(places, ((0, 0, 0, 1), turn), strict=True)
    )
    found = require_short_differences(solids.system([lower, upper]), 2, G * DT)
    assert len(found.active) > 8 and all(one.endswith("sticking") for one in found.active)


def standing_a1(client: int, lifted: tuple[str, ...] = ()) -> bb.System:
    """An A1 with some feet lifted, held by position motors."""
    data = pybullet_data.getDataPath()
    pybullet.setGravity(0, 0, -G, physicsClientId=client)
    pybullet.loadURDF(f"{data}/plane.urdf", physicsClientId=client)
    flags = pybullet.URDF_USE_INERTIA_FROM_FILE
    robot = pybullet.loadURDF(f"{data}/a1/a1.urdf", flags=flags, physicsClientId=client)
    system = bb.attach({"a1": robot}, (), client, dt=DT, contacts=True)
    start = dict[str, float]()
    for name in system.motors.names:
        bent = 1.25 if name.startswith(lifted) else 1.0
        start[name] = bent * {"hip": 0.0, "upper": 0.9, "lower": -1.8}[name.split("_")[1]]
        system.motors.set(name, position=start[name], position_gain=0.1, force=40.0)
    q = np.array(system.q)
    q[2], q[7:] = 0.27, list(start.values())
    system.set_state(q, np.zeros(18))
    system.rollout(120)
    return system


def test_a_robot_that_stands_moves_by_no_small_force_or_rate(connect):
    """Motors with force to spare and feet that stick hold each freedom; sunk by 4e-8 m it stays so.

    Steps beside the state are nearer than it has sunk; what motors that agree do by that little is
    found on one side.
    """
    system = standing_a1(connect()._client)
    q, deeper = np.array(system.q), np.eye(system.mechanism.nq)[2]
    system.set_state(q - 3e-8 * deeper)
    found = require_short_differences(system, short=1e-8)
    assert len(set(found.at_rest)) == 4
    assert np.abs(found.B).max() <= 1e-12 and np.abs(found.A[:, 18:]).max() <= 1e-9
    assert abs(found.A[5, 5] - 1.0) <= 1e-9


def standing_on_motors(client, lifted):
    """An A1 on three feet whose motors hold it a little elsewhere, put so many metres higher."""
    system = standing_a1(client, ("FR",))
    goal = np.array(system.q)[7:] + 2e-3 * np.random.default_rng(1).normal(size=12)
    for name, angle in zip(system.motors.names, goal, strict=True):
        system.motors.set(name, position=angle, position_gain=0.02, force=40.0)
    system.rollout(8)
    state = np.concatenate([system.q, system.v, [system.t]])
    state[2] += lifted
    system.take_back(state)
    return system


def test_motors_agree_with_the_feet_that_they_stand_on(connect):
    """Nine motors in three legs whose feet stick: beside the state not all of them get their will.

    Feet are two micrometres above the ground, which they reach in the step: there is no kink.
    """
    system = standing_on_motors(connect()._client, 2e-6)
    found = require_short_differences(system, short=2e-7)
    assert len(found.active) == 3


def test_what_is_about_to_change_is_refused(solids):
    """A ball without weight that just touches; one too deep in the ground for one step."""
    solids.ground(plane=True)
    ball = solids.solid('<sphere radius="0.1"/>', (0, 0, 0.1), moments=[0.008] * 3)
    system = solids.system(ball)
    system.set_state(v=[0, 0, 0, 0, 0, G * DT])
    with pytest.raises(UnsupportedError, match="contact of 'b' with 'world' is about to act"):
        system.step_derivatives()
    system.set_state(v=[0, 0, 0, 0, 0, G * DT + 1e-7])  # it leaves the ground, if only so fast
    found = system.step_derivatives()
    assert found.active == ()
    assert_allclose(found.A[11], np.eye(12)[11], atol=1e-12)
    system.set_state(np.array([0, 0, 0.07, 0, 0, 0, 1.0]), np.zeros(6))
    with pytest.raises(UnsupportedError, match="is deeper than one step takes bodies out"):
        system.step_derivatives()


@pytest.mark.parametrize(("mu", "restitution"), [(0.05, 0.0), (3.0, 0.0), (0.05, 0.6)])
def test_a_ball_that_is_taken_out_of_the_ground(solids, mu, restitution):
    """It is a millimetre deep, of which a step takes a fifth back; its rates are no part of that.

    Where it bounces it comes out faster than that.
    """
    _, normal = solids.ground(0.1, plane=True)
    rub = {"friction": mu, "rollingFriction": 0.01, "restitution": restitution}
    ball = solids.solid('<sphere radius="0.1"/>', 0.099 * normal, moments=[0.008] * 3, **rub)
    system = solids.system(ball)
    system.set_state(v=[1.0, 2.0, 3.0, 0.3, 0.5, -0.5 if restitution else -0.1])
    found = require_short_differences(system, 2)
    assert found.active == (f"world on b {'sliding' if mu < 1.0 else 'sticking'}",)
    if not restitution:
        assert_allclose(normal @ found.A[3:6, 3:6] @ normal, 0.8, atol=1e-9)
        assert np.abs(normal @ found.A[9:]).max() <= 1e-9


def test_balls_that_are_moved_apart_gently(solids):
    """The lower one cannot leave the ground but with forty times its mass on it: it is slowed."""
    solids.ground(plane=True)
    shape = '<sphere radius="0.1"/>'
    lower = solids.solid(shape, (0, 0, 0.0995), mass=0.05, moments=[2e-4] * 3, friction=0.4)
    upper = solids.solid(shape, (0.01, 0.02, 0.2978), moments=[0.008] * 3, friction=0.4)
    system = solids.system([lower, upper])
    system.set_state(v=[0.1, 0.2, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.5, 0.1, -0.5])
    found = require_short_differences(system, 2)
    assert found.active
    left = found.q[2] - 0.0995 - system.dt * found.v[5]
    assert 1e-6 < left < 0.5 * 0.2 * 0.5e-3  # less than half of what the ground asks for


def test_a_robot_that_has_sunk_in_while_it_stands(connect):
    """An A1 whose feet, on motors, are a tenth of a millimetre in the ground."""
    system = standing_on_motors(connect()._client, -1e-4)
    found = require_short_differences(system, 2, short=2e-7)
    assert len(found.active) == 3


def test_steps_of_few_calls_that_take_a_ball_out_of_the_ground(solids, monkeypatch):
    solids.ground(plane=True)
    rub = {"friction": 0.5, "rollingFriction": 0.01}
    ball = solids.solid('<sphere radius="0.1"/>', (0, 0, 0.099), moments=[0.008] * 3, **rub)
    system = solids.system(ball)
    system.set_state(v=[0.0, 2.0, 0.0, 0.3, 0.0, -0.02])
    require_steps_of_few_calls(system, 12, monkeypatch, 0.0)


def test_derivatives_are_those_of_their_own_step_alone(solids):
    """A ball that rolls, one that slides fast, one that spins on the spot; and the first once more.

    Each has as many contacts and other rows: nothing may be left of those before.
    """
    solids.ground(plane=True)
    rub = {"friction": 0.5, "rollingFriction": 0.01, "spinningFriction": 0.02}
    ball = solids.solid('<sphere radius="0.1"/>', (0, 0, 0.1), moments=[0.008] * 3, **rub)
    system = solids.system(ball)
    ways = ([0, 2.0, 0, 0.2, 0, 0], [1.0, 0, 0, 3.0, 2.0, 0], [0, 0, 9.0, 0, 0, 0])

    def found(way):
        system.set_state(np.array([0, 0, 0.1, 0, 0, 0, 1.0]), np.array(way, float))
        one = system.step_derivatives()
        return np.hstack([one.A, one.B])

    alone = [found(way) for way in ways]
    assert min(np.abs(a - b).max() for a, b in zip(alone[1:], alone, strict=False)) > 1e-3
    for k in (2, 0, 1, 0):
        assert_allclose(found(ways[k]), alone[k], atol=1e-12 * np.abs(alone[k]).max())


def require_steps_of_few_calls(
    system: bb.System, n: int, monkeypatch: pytest.MonkeyPatch, happens: float = 1e-3
) -> None:
    """Nearly all steps are made and differentiated in few calls, and as they are one by one."""
    nv, near, alone = len(system.v), system.differentiable(), list[StepDerivatives]()
    by_one, start = bounded_step_derivatives, system.save(world=False)
    each = list[tuple[np.ndarray, np.ndarray]]()
    near.restore(start, write=False)
    for _ in range(n):
        found = near.step_with_derivatives()
        each.append((np.hstack([found.A, found.B]), near.snapshot()))

    def count(made: Made) -> StepDerivatives:
        alone.append(by_one(made))
        return alone[-1]

    monkeypatch.setattr("bulletbridge.system.system.bounded_step_derivatives", count)
    found = Trajectories(system).differentiated(np.zeros((n, nv)))
    assert found is not None and len(alone) <= n // 6
    assert not found.whys
    for state, many, (one, alike) in zip(found.states[1:], found.changes, each, strict=True):
        assert_allclose(many, one, atol=1e-12 * np.abs(one).max(), rtol=0.0)
        assert_allclose(state, alike, rtol=1e-12, atol=1e-15)
    assert np.abs(each[-1][0] - each[0][0]).max() > happens  # on the way


@pytest.mark.parametrize(("mu", "restitution"), [(0.5, 0.0), (0.05, 0.7)])
def test_steps_of_few_calls_are_those_that_are_made_one_by_one(
    solids, monkeypatch, mu, restitution
):
    """A ball falls, lands, and rolls; or slides, and bounces."""
    solids.ground(plane=True)
    rub = {"friction": mu, "rollingFriction": 0.01, "restitution": restitution}
    ball = solids.solid('<sphere radius="0.1"/>', (0, 0, 0.1003), moments=[0.008] * 3, **rub)
    system = solids.system(ball)
    system.set_state(v=[0.0, 2.0, 0.0, 0.3, 0.0, -0.02])
    require_steps_of_few_calls(system, 30, monkeypatch)


def test_steps_of_few_calls_that_land_on_feet(connect, monkeypatch):
    """Loops are closed in the air, then while feet stick."""
    system = falling_minitaur(connect()._client)
    system.rollout(60)
    while not any(load.normal_force > 0.0 for load in system.contacts()):
        before = system.save(world=False)
        system.step()
    system.restore(before, write=False)
    require_steps_of_few_calls(system, 12, monkeypatch)


def test_steps_of_few_calls_in_which_motors_agree(connect, monkeypatch):
    """Twelve motors in four legs whose feet stick."""
    system = standing_a1(connect()._client)
    require_steps_of_few_calls(system, 12, monkeypatch, 0.0)


def test_steps_of_few_calls_that_land_with_motors(connect, monkeypatch):
    """One motor holds a rate, one is at its force, one goes somewhere softly, one is a servo."""
    system = falling_minitaur(connect()._client)
    names = [name for name in system.mechanism.joints if name.startswith("motor")]
    soft = {"velocity_gain": 0.4, "position": 1.0, "position_gain": 0.003}
    system.motors.set(names[0], velocity=0.06, force=5.0)
    system.motors.set(names[1], velocity=0.5, force=0.01)
    system.motors.set(names[2], velocity=0.09, force=5.0, **soft)
    system.motors.servo(names[-1], stiffness=15.0, damping=2.0, position=2.0, force=100.0)
    system.rollout(30)
    while not any(load.normal_force > 0.0 for load in system.contacts()):
        before = system.save(world=False)
        system.step()
    system.restore(before, write=False)
    require_steps_of_few_calls(system, 12, monkeypatch)


@pytest.mark.parametrize("restitution", [0.0, 0.7])
def test_the_gradient_of_a_trajectory_that_lands_or_bounces(solids, restitution):
    """Against central differences of its cost, 1e-8 of which rounds; none of its steps is one."""
    solids.ground(plane=True)
    rub = {"friction": 0.2, "restitution": restitution}
    ball = solids.solid('<sphere radius="0.1"/>', (0, 0, 0.1002), moments=[0.008] * 3, **rub)
    system = solids.system(ball)
    system.set_state(v=[0.5, 1.0, 0.3, 2.0, 0.5, 0.0])
    tau = 0.3 * np.random.default_rng(0).normal(size=(10, 6))

    def final(q, v, t):
        return np.concatenate([q[:3], v])

    found = bb.rollout_gradient(system, tau, final=final)
    assert not len(found.differences)
    alike = bb.rollout_gradient(system, np.asfortranarray(tau), final=final)
    assert_allclose(alike.by_tau, found.by_tau, rtol=1e-12)

    def cost(at: tuple[int, int], x: float) -> float:
        other = tau.copy()
        other[at] += x
        return bb.rollout_gradient(system, other, final=final).cost

    for at in ((0, 3), (3, 4), (5, 5), (8, 1)):
        seen = (cost(at, 1e-2) - cost(at, -1e-2)) / 2e-2
        assert abs(found.by_tau[at] - seen) <= 1e-6 * np.abs(found.by_tau).max(), at


def test_what_finds_contacts_for_one_gradient_serves_the_next(solids, monkeypatch):
    """A ball lands on a table, which is pulled away before the second: the world is read anew."""
    shape = pybullet.createCollisionShape(
        pybullet.GEOM_BOX, halfExtents=[0.5, 0.5, 0.1], physicsClientId=solids.client
    )
    table = pybullet.createMultiBody(0, shape, physicsClientId=solids.client)
    ball = solids.solid('<sphere radius="0.1"/>', (0, 0, 0.2002), moments=[0.008] * 3)
    system, tau = solids.system(ball), np.zeros((10, 6))

    def by_lift():
        found = bb.rollout_gradient(system, tau, final=lambda q, v, t: q[2:3])
        return found.by_state[11] / (2 * found.cost**0.5)

    assert abs(by_lift()) <= 1e-12  # it lies on the table whatever its speed was
    monkeypatch.setattr("bulletbridge.mechanism.contact_detector.Detector.copy", None)
    pybullet.resetBasePositionAndOrientation(
        table, [0, 0, -9], [0, 0, 0, 1], physicsClientId=solids.client
    )
    assert abs(by_lift() - 10 * DT) <= 1e-12
