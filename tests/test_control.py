"""Control in quasi-velocities: measured rates of decay, forces, and what cannot be done.

Reference values are those of an independent program (LSODA or DOP853 at 1e-12) for the robot on a
circle, m = 2 and 3 kg, R = 0.5 m.
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
from _mechanisms import random_mechanism, random_state
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from support.quasi_velocity_gammas import gammas, skew_rate

import bulletbridge as bb
from bulletbridge.control.controllers import (
    Controlled,
    PartTracking,
    Regulation,
    Tracking,
    TrackingLaw,
)
from bulletbridge.control.distribution import Distribution, Names
from bulletbridge.control.free_motion import FreeMotion
from bulletbridge.control.plant import Desired, Plant, plant_of
from bulletbridge.errors import InfeasibleError, ModelError
from bulletbridge.formulations.classics.circle import CircleRobot
from bulletbridge.formulations.moving import moving
from bulletbridge.formulations.projector import Projector
from bulletbridge.formulations.quasi_velocities import ReducedQuasiVelocities, basis_of
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.papers.circle import on_circle

ROBOT = CircleRobot()
PLANT = Plant(
    ROBOT,
    Distribution(np.ones(2, bool), np.ones(2), Names(["x", "y"], ["circle"])),
    lambda q, v, q_d, v_d: (q - q_d, v - v_d),
)
RATE_RTOL = 0.05  # of measured slopes against the gains


def simulate(law, phi, rate, times, tolerance=1e-11):
    """States (n, 4) of the robot under a law, and multipliers."""
    solve = ReducedQuasiVelocities(Controlled(ROBOT, law))

    def ode(t, y):
        return np.concatenate([y[2:], solve(y[:2], y[2:], t).vdot])

    start = np.concatenate(ROBOT.state(phi, rate))
    run = solve_ivp(ode, (0, times[-1]), start, "DOP853", times, rtol=tolerance, atol=tolerance)
    lam = [solve(y[:2], y[2:], t).lam[0] for t, y in zip(times, run.y.T, strict=True)]
    return run.y.T, np.array(lam)


def slope(times, sizes):
    """Rate of an exponential decay."""
    return -np.polyfit(times, np.log(sizes), 1)[0]


def follow(law, times):
    """Lengths of the position and velocity errors from phi = 0.9, -0.5 rad/s on."""
    states, _ = simulate(law, 0.9, -0.5, times)
    errors = [law.errors(y[:2], y[2:], t) for t, y in zip(times, states, strict=True)]
    return np.array([[np.linalg.norm(part) for part in pair] for pair in errors]).T


SECONDS = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0])


def test_tracking_on_the_circle_against_the_reference():
    law = Tracking(PLANT, on_circle, 4.0, 6.0, law="published")
    position, velocity = follow(law, SECONDS)
    reference = [2.955202066613396e-01, 6.599447298125918e-02, 1.0548155064499937e-02]
    reference += [2.0992749154286427e-04, 3.5525959656037966e-06, 6.113023562803806e-08]
    # 2e-11 but at one second, where the reference was interpolated: 4.4e-9
    assert_allclose(position, reference, rtol=0, atol=5e-9)
    assert_allclose(velocity[:4], [0.8540309120, 0.0425196954, 0.0021169311, 5.2473e-06], atol=1e-9)
    assert slope(SECONDS[:4], velocity[:4]) == pytest.approx(5.999999962620679, rel=1e-6)
    assert slope(SECONDS[3:], position[3:]) == pytest.approx(4.046669276877003, rel=RATE_RTOL)


@pytest.mark.parametrize("kind", ["computed_torque", "passivity_based"])
def test_tracking_on_the_circle_at_the_rates_of_the_gains(kind):
    law = Tracking(PLANT, on_circle, 4.0, 6.0, law=kind)
    position, velocity = follow(law, SECONDS)
    assert slope(SECONDS[:4], velocity[:4]) == pytest.approx(6.0, rel=1e-6)
    assert slope(SECONDS[3:], position[3:]) == pytest.approx(4.0, rel=RATE_RTOL)


TIMES = np.array([0.5, 1.0, 2.0, 5.0, 10.0, 20.0])
PHI = [0.5776824211824574, 0.41538231987967794, 0.3211837239691839]
PHI += [0.30014023597711215, 0.30000003301513806, 0.3000000000000077]
LAM = [5.276880778498399, 5.041790542559478, 5.001309658323578, 5.00000005655126, 5.0, 5.0]


def test_regulation_with_force_against_the_reference():
    goal, _ = ROBOT.state(0.3, 0.0)
    law = Regulation(PLANT, goal, 60.0, 14.0, lambda t: np.array([-5.0]))
    states, lam = simulate(law, 0.9, 0.0, TIMES)
    phi = np.arctan2(states[:, 1], states[:, 0])
    assert_allclose(phi, PHI, rtol=0, atol=1e-8)
    assert_allclose(lam, -5.0, rtol=0, atol=1e-9)  # wherever it moves: force apart from motion
    assert slope(TIMES[3:5], phi[3:5] - 0.3) == pytest.approx(1.6708041406, rel=1e-3)
    basis = basis_of(ROBOT.equations(goal, 0 * goal, 0.0))
    free = basis.unwhiten(basis.V_2)
    poles = np.sort(np.roots([1.0, 14.0, 60.0 * float((free.T @ free)[0, 0])]))
    assert_allclose(poles, [-12.3291958593788, -1.6708041406212], rtol=0, atol=1e-12)


def test_the_reference_leaves_the_inertial_part_of_the_force():
    """Its law has no Gamma_o v_r, which is what its multiplier is off by."""
    goal, _ = ROBOT.state(0.3, 0.0)
    law = Regulation(PLANT, goal, 60.0, 14.0)
    states, _ = simulate(law, 0.9, 0.0, TIMES[:3])
    for y, wanted in zip(states, LAM, strict=False):
        found = gammas(ROBOT, y[:2], y[2:], 0.0)
        v_r = found.basis.reduce(y[2:])
        inertial = np.linalg.solve((found.basis.s * found.basis.U_1.T), found.Gamma_o @ v_r)
        assert 5.0 - found.basis.unit[0] * inertial[0] == pytest.approx(wanted, abs=1e-7)


def test_the_point_opposite_is_an_equilibrium_too():
    goal, _ = ROBOT.state(0.9 + np.pi, 0.0)
    law = Regulation(PLANT, goal, 60.0, 14.0)
    states, _ = simulate(law, 0.9 + 1e-9, 0.0, np.array([5.0]))
    phi = np.arctan2(states[0, 1], states[0, 0])
    assert abs(phi - 0.9) < 3e-6


# -- robots ----------------------------------------------------------------------------------------

ARM = [REVOLUTE, REVOLUTE, PRISMATIC, REVOLUTE, REVOLUTE]
FLOATING = [FREE, REVOLUTE, SPHERICAL, REVOLUTE]


def robot(rng, kinds, twice):
    """A system under gravity with its tip on a plane (twice: a rank-deficient one), and a goal."""
    mechanism = random_mechanism(rng, kinds, branching=0.0)
    frame, tip = bb.Frame("world", (0.1, 0.2, 0.0), (0.3, -0.4, 0.0)), f"link{len(kinds)}"
    plane = bb.JointModel.POINT_ON_PLANE
    loops = [bb.LoopJoint("plane", plane, frame, bb.Frame(tip, (0.1, 0.0, 0.2)))]
    if twice:
        loops.append(bb.LoopJoint("again", plane, frame, bb.Frame(tip, (0.1, 0.0, 0.2))))
    system = bb.System(mechanism, loops, dt=3e-3, integrator="rk4")
    system.assemble()
    x = 0.2 * rng.normal(size=mechanism.nv)
    goal_system = bb.System(mechanism, loops)
    goal_system.assemble()
    near = goal_system.dynamics.displace(system.q, x)
    joints = mechanism.joints.items()
    goal_system.assemble(guess={name: near[j.q].tolist() for name, j in joints})
    return system, goal_system.q


def test_the_difference_undoes_a_displacement(rng):
    mechanism = random_mechanism(rng, FLOATING)
    system = bb.System(mechanism)
    plant = plant_of(system)
    q_d, _ = random_state(rng, mechanism)
    for size in (0.0, 1e-9, 0.5, 1.5):  # turns below half a turn
        x = size * rng.uniform(-1, 1, mechanism.nv)
        q = plant.dynamics.displace(q_d, x)
        assert_allclose(plant.difference(q, q_d), x, rtol=0, atol=1e-14)
        flipped = q.copy()
        flipped[3:7] *= -1
        assert_allclose(plant.difference(flipped, q_d), x, rtol=0, atol=1e-14)


@pytest.mark.parametrize("twice", [False, True], ids=["", "rank_deficient"])
@pytest.mark.parametrize("kinds", [ARM, FLOATING], ids=["arm", "floating"])
def test_robots_reach_a_goal_at_the_rates_of_the_gains(kinds, twice, rng):
    system, goal = robot(rng, kinds, twice)
    still = np.zeros(system.mechanism.nv)
    push = np.full(system.terms().J.shape[0], -7.0)
    law = Tracking(
        plant_of(system, list(system.mechanism.joints)),  # thrusters move a floating base
        lambda t: Desired(goal, still, still),
        K_p=3.0,
        K_d=8.0,
        forces=lambda t: push,
    )
    times, sizes, speeds, forces = [], [], [], []
    for _ in range(670):
        x, epsilon = law.errors(system.q, system.v, system.t)
        times.append(system.t), sizes.append(np.linalg.norm(x))
        speeds.append(np.linalg.norm(epsilon))
        system.tau[:] = law(system.q, system.v, system.t)
        if len(times) % 60 == 0:
            force = sum(r.force for r in system.reactions().values())
            wanted = sum(r.multipliers.sum() for r in system.reactions().values())
            forces.append(abs(np.linalg.norm(force) - abs(wanted)) + abs(wanted - push.sum()))
        system.step()
    times = np.array(times)
    early, late = times < 0.5, (times > 1.2) & (times < 2.0)
    assert slope(times[early], np.array(speeds)[early]) == pytest.approx(8.0, rel=RATE_RTOL)
    assert slope(times[late], np.array(sizes)[late]) == pytest.approx(3.0, rel=RATE_RTOL)
    assert max(forces) < 1e-3  # [N]; round-off in fact


def admissible_motion(system, v_r, seconds, dt):
    """A motion (times, Desired) that keeps to the constraints: the system let go, undriven."""
    free = bb.System(system.mechanism, system.constraints, dt=dt, integrator="rk4")
    basis = basis_of(system.dynamics.equations(system.q, system.v, 0.0))
    free.set_state(system.q, basis.expand(v_r))
    solve, found = Projector(free.dynamics), {}
    for _ in range(round(seconds / dt) + 1):
        found[round(free.t / dt)] = Desired(free.q, free.v, solve(free.q, free.v, free.t).vdot)
        free.step()
    return lambda t: found[round(t / dt)]


@pytest.mark.parametrize("kind", ["passivity_based", "published"])
@pytest.mark.parametrize("kinds", [ARM, FLOATING], ids=["arm", "floating"])
def test_laws_follow_a_moving_goal_at_the_rate_of_the_gain(kinds, kind, rng):
    """Several freedoms: |v_r - s| decays at K_d, since S is skew; forces change nothing of it."""
    coarse, _ = robot(rng, kinds, False)
    system = bb.System(coarse.mechanism, coarse.constraints, dt=1e-3, integrator="rk4")
    system.set_state(coarse.q, coarse.v)
    dof = system.dof
    wanted = admissible_motion(system, 0.5 * rng.normal(size=dof), 0.2, system.dt)
    basis = basis_of(system.dynamics.equations(system.q, system.v, 0.0))
    system.set_state(system.q, basis.expand(0.5 * rng.normal(size=dof)))
    plant = plant_of(system, list(system.mechanism.joints))
    push = np.array([-7.0])
    law = Tracking(plant, wanted, 3.0, 8.0, forces=lambda t: push, law=kind)
    least = replace(law, forces=None)
    times, sizes = system.dt * np.arange(160), []
    for n, t in enumerate(times):
        sizes.append(np.linalg.norm(law.errors(system.q, system.v, t)[1]))
        system.tau[:] = least(system.q, system.v, t)
        vdot = system.acceleration()
        system.tau[:] = law(system.q, system.v, t)
        if n % 30 == 0:
            assert_allclose(system.acceleration(), vdot, atol=1e-9 * np.abs(vdot).max())
            assert system.reactions()["plane"].multipliers[0] == pytest.approx(-7.0, abs=1e-8)
        system.step()
    assert slope(times, np.array(sizes)) == pytest.approx(8.0, rel=RATE_RTOL)


@pytest.mark.parametrize("kind", get_args(TrackingLaw))
@pytest.mark.parametrize("kinds", [ARM, FLOATING], ids=["arm", "floating"])
def test_the_error_shrinks_at_the_gain_at_every_instant(kinds, kind, rng):
    """d|v_r - s|/dt = -K_d |v_r - s|, and the laws differ by S as NumPy finds it.

    A central difference over h: what is left goes with h² = 1e-8 and rates to the third of 1e2.
    """
    system, _ = robot(rng, kinds, False)
    dof, h = system.dof, 1e-4
    wanted = admissible_motion(system, 0.5 * rng.normal(size=dof), 2 * h, h)
    basis = basis_of(system.dynamics.equations(system.q, system.v, 0.0))
    system.set_state(system.q, basis.expand(0.5 * rng.normal(size=dof)))
    plant = plant_of(system, list(system.mechanism.joints))
    law = Tracking(plant, wanted, 3.0, 8.0, law=kind)
    q, v = system.q, system.v
    system.tau[:] = law(q, v, h)
    vdot = system.acceleration()

    def size(s):
        there = system.dynamics.displace(q, s * v + s * s / 2 * vdot)
        return np.linalg.norm(law.errors(there, v + s * vdot, h + s)[1])

    assert (size(h) - size(-h)) / (2 * h * size(0.0)) == pytest.approx(-8.0, rel=1e-6)
    if kind == "passivity_based":
        straight = replace(law, law="computed_torque")(q, v, h)
        basis = basis_of(plant.dynamics.equations(q, v, h))
        error = FreeMotion.moving(plant.dynamics, q, v, h).free.T @ law.errors(q, v, h)[1]
        S = skew_rate(moving(plant.dynamics, q, v, h), basis, v)
        turned = basis.free.T @ (system.tau - straight)
        assert_allclose(turned, -S @ basis.reduce(error), rtol=0, atol=1e-12 * np.abs(S).max())
        assert np.abs(turned).max() > 1e-3
    if kind == "published":  # trees are split in one call: both ways round to 1e-12 of the forces
        tree = plant.dynamics
        names = "nq", "nv", "equations", "moving", "displace"
        other = SimpleNamespace(**{name: getattr(tree, name) for name in names})
        forces = replace(law, plant=replace(plant, dynamics=other))(q, v, h)
        assert_allclose(forces, system.tau, rtol=0, atol=1e-9 * np.abs(forces).max())


def test_a_published_reference_that_fits_no_basis_is_an_error():
    """A quarter of the circle away the two free directions are at right angles."""
    law = Tracking(PLANT, on_circle, 4.0, 6.0, law="published")
    masses = np.sqrt([ROBOT.m_1, ROBOT.m_2])
    there = masses * ROBOT.state(0.3, 1.0)[1]
    phi = brentq(lambda a: there @ (masses * ROBOT.state(a, 1.0)[1]), 1.0, 3.0)
    q, v = ROBOT.state(phi, 0.0)
    with pytest.raises(InfeasibleError, match="too far from the present one"):
        law(q, v, 0.0)


def test_an_unknown_law_lists_those_that_exist():
    with pytest.raises(ModelError, match="computed_torque, passivity_based, published"):
        Tracking(PLANT, on_circle, 4.0, 6.0, law="skew")  # pyright: ignore[reportArgumentType]


def test_a_table_that_moves_is_followed_with_force(rng):
    """Rows that depend on time: the velocity error still decays at K_d, the force still holds."""
    mechanism = random_mechanism(rng, ARM, branching=0.0)
    frame = bb.Frame("world", (0.1, 0.2, 0.0), (0.3, -0.4, 0.0))
    up_and_down = bb.Motion(z=bb.Sine(0.05, 0.5))
    plane = bb.JointModel.POINT_ON_PLANE
    tip = bb.Frame(f"link{len(ARM)}", (0.1, 0.0, 0.2))
    table = bb.LoopJoint("table", plane, frame, tip, motion=up_and_down)
    system = bb.System(mechanism, [table], dt=2e-3, integrator="rk4")
    system.assemble()
    goal, still = system.q + 0.1 * rng.normal(size=mechanism.nq), np.zeros(mechanism.nv)
    law = Tracking(
        plant_of(system),
        lambda t: Desired(goal, still, still),
        K_p=3.0,
        K_d=8.0,
        forces=lambda t: np.array([12.0 + t]),
    )
    times, sizes = system.dt * np.arange(300), []
    for t in times:
        sizes.append(np.linalg.norm(law.errors(system.q, system.v, system.t)[1]))
        system.tau[:] = law(system.q, system.v, system.t)
        assert system.reactions()["table"].multipliers[0] == pytest.approx(12.0 + t, abs=1e-9)
        system.step()
    assert slope(times, np.array(sizes)) == pytest.approx(8.0, rel=RATE_RTOL)


def test_a_floating_base_without_thrusters_is_not_promised(rng):
    system, goal = robot(rng, FLOATING, False)
    still = np.zeros(system.mechanism.nv)
    law = Tracking(plant_of(system), lambda t: Desired(goal, still, still), 3.0, 8.0)
    with pytest.raises(InfeasibleError, match="missed, most at"):
        law(system.q, system.v, system.t)


def test_joints_of_a_floating_base_without_thrusters_follow_alone():
    """Minitaur's motors, 8 of 22 rates, while its base recoils and the knees follow."""
    with bb.load("minitaur", dt=2e-3, integrator="rk4") as model:
        system, motors = model.system, model.spec.actuated
        parts = [system.mechanism.joint(name).v for name in motors]
        followed = np.zeros(system.mechanism.nv, bool)
        for part in parts:
            followed[part] = True
        goal, still = system.q, np.zeros(system.mechanism.nv)
        for name, move in zip(motors, (0.2, -0.1) * 4, strict=True):
            goal[system.mechanism.joint(name).q] += move
        law = PartTracking(
            plant_of(system, motors), followed, lambda t: Desired(goal, still, still), 4.0, 12.0
        )
        before, sizes = system.evaluate().momentum, []
        for _ in range(600):
            system.tau[:] = law(system.q, system.v, system.t)
            x = law.plant.difference(system.q, goal)
            sizes.append(np.linalg.norm(x[followed]))
            system.step()
        assert not np.any(system.tau[~followed])
        times = system.dt * np.arange(600)
        assert slope(times[400:], np.array(sizes)[400:]) == pytest.approx(4.0, rel=RATE_RTOL)
        # motors cannot change it: RK4's error alone
        assert_allclose(system.evaluate().momentum, before, rtol=0, atol=1e-6)
        with pytest.raises(InfeasibleError, match="cannot meet the demand"):
            Tracking(law.plant, law.desired, 4.0, 12.0)(system.q, system.v + 1.0, system.t)


def test_regulated_robots_have_the_poles_of_spring_and_damper(rng):
    """s² + K_d s + k = 0 for each stiffness k of the free motions in the metric of M."""
    system, goal = robot(rng, ARM, False)
    law = Regulation(plant_of(system), goal, 30.0, 9.0)
    for _ in range(1000):
        system.tau[:] = law(system.q, system.v, system.t)
        system.step()
    sizes, times = [], []
    basis = basis_of(law.plant.dynamics.equations(goal, 0 * goal, 0.0))
    free = basis.unwhiten(basis.V_2)
    k = np.linalg.eigvalsh(30.0 * free.T @ free)
    slowest = -np.max(np.roots([1.0, 9.0, k[0]]).real)
    for _ in range(330):
        sizes.append(np.linalg.norm(law.plant.difference(system.q, goal)))
        times.append(system.t)
        system.tau[:] = law(system.q, system.v, system.t)
        system.step()
    assert slope(times, sizes) == pytest.approx(slowest, rel=RATE_RTOL)


def test_passive_joints_of_a_closed_chain_get_no_force():
    """A four-bar linkage follows its crank, which alone is driven, at the rate of the gains."""
    with bb.load("four_bar", dt=2e-3, integrator="rk4") as model:
        system = model.system
        q = {"crank": float(system.q[system.mechanism.joint("crank").q][0]) + 0.3}
        goal, still = bb.forward_kinematics(system, q), np.zeros(system.mechanism.nv)
        law = Tracking(
            plant_of(system, ["crank"]), lambda t: Desired(goal, still, still), 5.0, 12.0
        )
        sizes = []
        for _ in range(600):
            system.tau[:] = law(system.q, system.v, system.t)
            sizes.append(np.linalg.norm(law.errors(system.q, system.v, system.t)[0]))
            system.step()
        passive = np.arange(system.mechanism.nv) != system.mechanism.joint("crank").v.start
        assert not np.any(system.tau[passive])
        times = system.dt * np.arange(600)
        assert slope(times[350:], np.array(sizes)[350:]) == pytest.approx(5.0, rel=RATE_RTOL)


def pushed(t, q, v):
    """A force of time and state."""
    return 2.0 * np.sin(3.0 * t) - 0.4 * q[0] - 0.1 * v[0]


@pytest.mark.parametrize("name", ["slider_crank", "four_bar", "space_arm"])
def test_what_acts_is_the_same_by_either_way(name):
    forces = {"crank": pushed} if name != "space_arm" else None
    with bb.load(name, "new", forces=forces, integrator="rk4") as model:
        system = model.system
        system.run(0.2)
        dynamics = plant_of(system).dynamics
        q, v, t = np.array(system.q), np.array(system.v), system.t
        e, here = dynamics.equations(q, v, t), FreeMotion.at(dynamics, q, v, t)
        plain = FreeMotion.of(e)
    size = np.abs(e.f).max() + 1.0
    assert np.abs(here.loads.f - e.f).max() < 1e-13 * size
    assert np.abs(here.loads.gamma - e.gamma).max() < 1e-13 * (1.0 + np.abs(e.gamma).max())
    scale = np.abs(plain.unforced).max() + 1.0
    assert np.abs(here.unforced - plain.unforced).max() < 1e-12 * scale
    assert np.abs(e.J @ here.free.T).max() < 1e-11 * np.abs(here.free).max()
