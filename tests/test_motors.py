"""Motors, limits and friction of joints of a tree."""

import math

import numpy as np
import pybullet
import pytest
from _campaign_spheres import Sphere, Spheres, Surface, Wall
from support.planar import planar_chain
from support.solid_worlds import FLAGS, G
from support.urdf_builder import random_tree

import bulletbridge as bb
from bulletbridge.errors import ModelError
from bulletbridge.inequalities.motor_limit_rows import SHALLOW
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint

ROUND_OFF = 1e-12


def test_a_limit_stops_a_closed_loop(solids, tmp_path):
    from support.small_models import four_bar

    urdf = four_bar(tmp_path).parent / "four_bar.urdf"
    text = urdf.read_text().replace(
        '<joint name="crank" type="continuous">',
        '<joint name="crank" type="revolute"><limit lower="0.3" upper="1.4" effort="1"'
        ' velocity="1"/>',
    )
    urdf.write_text(text)
    with bb.load(tmp_path / "four_bar.loops.yaml", solids.client, limits=True) as model:
        system = model.system
        for _ in range(480):
            system.step()
            # the loop is closed after the stop has held: to what a step's motion curves it
            assert 0.3 - 5e-5 < system.q[0] < 1.4 + 5e-5
            assert system.evaluate().largest("kept_metres") < ROUND_OFF
        assert system.complementarity.residual < 1e-10


def test_joint_friction_is_a_weak_motor_at_rest(solids, tmp_path):
    """A pendulum with friction stays where gravity cannot turn it, and moves where it can."""
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="arm"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 -0.5"/>'
        '<mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
        '</inertial></link><joint name="hinge" type="continuous"><parent link="base"/>'
        '<child link="rod"/><axis xyz="0 1 0"/></joint></robot>'
    )
    body = pybullet.loadURDF(
        str(path), useFixedBase=True, flags=FLAGS, physicsClientId=solids.client
    )
    system = solids.system(body, contacts=False)
    torque = 1.0
    system.motors.set("hinge", force=torque)
    held = np.arcsin(torque / (0.5 * G))
    for angle, moves in ((held - 1e-3, False), (held + 1e-3, True)):
        system.set_state([angle], [0.0])
        for _ in range(10):
            system.step()
        assert (abs(system.v[0]) > 1e-6) == moves


def test_a_spherical_joint_is_driven_about_the_axes_of_its_link(solids, tmp_path):
    """Strong motors give the rates asked for in one step; weak ones change the spin by T dt."""
    path = tmp_path / "ball.urdf"
    path.write_text(
        '<robot name="ball"><link name="base"/><link name="rod"><inertial><mass value="1"/>'
        '<inertia ixx="0.2" iyy="0.2" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="hip" type="spherical"><parent link="base"/><child link="rod"/></joint>'
        "</robot>"
    )
    body = pybullet.loadURDF(
        str(path), useFixedBase=True, flags=FLAGS, physicsClientId=solids.client
    )
    system = solids.system(body, contacts=False)
    turn = np.array([0.5, -0.5, 0.5, 0.5])
    for force, rates in ((1e3, [0.3, -0.2, 0.1]), (0.1, [0.1 * system.dt / 0.2, 0.0, 0.0])):
        system.set_state(turn, np.zeros(3))
        for axis, rate in zip("xyz", [0.3, -0.2, 0.1], strict=True):
            strong = force if force > 1.0 or axis == "x" else 0.0
            system.motors.set(f"hip/{axis}", force=strong, velocity=rate)
        system.step()
        assert np.abs(system.v - rates).max() < ROUND_OFF
    system.set_state(turn, np.zeros(3))
    system.motors.turn("hip", [0.3, -0.2, 0.1], 1e3)
    system.step()
    assert np.abs(system.v - [0.3, -0.2, 0.1]).max() < ROUND_OFF
    with pytest.raises(ModelError, match="not possible"):
        system.motors.turn("hip", [0.3, np.nan, 0.1], 1e3)
    with pytest.raises(ModelError, match="no position about one axis"):
        system.motors.set("hip/x", force=1.0, position=0.1)
    with pytest.raises(ModelError, match="as in 'joint/x'"):
        system.motors.set("hip", force=1.0)


BESIDE_BULLET = pytest.mark.filterwarnings("ignore:setJointMotorControl2 does nothing")
"""Bullet steps the same body, as the reference."""


@BESIDE_BULLET
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("force", [500.0, 0.5])
def test_motors_of_random_trees_are_bullets(solids, tmp_path, seed, force):
    """Each step from the same state, with 1000 of Bullet's iterations: 1e-9, and equal torques."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "tree.urdf"
    path.write_text(random_tree(rng, 6, ("revolute", "prismatic"), limited=False))
    client = solids.client
    body = pybullet.loadURDF(str(path), useFixedBase=True, flags=FLAGS, physicsClientId=client)
    pybullet.setPhysicsEngineParameter(
        numSolverIterations=1000, solverResidualThreshold=0, physicsClientId=client
    )
    system = solids.system(body, contacts=False)
    names = [pybullet.getJointInfo(body, j, client)[1].decode() for j in range(6)]
    for joint, name in enumerate(names):
        pybullet.changeDynamics(
            body, joint, linearDamping=0, angularDamping=0, jointDamping=0, physicsClientId=client
        )
        position, velocity = rng.uniform(-1, 1, 2)
        pybullet.setJointMotorControl2(
            body,
            joint,
            pybullet.POSITION_CONTROL,
            targetPosition=position,
            targetVelocity=velocity,
            force=force,
            physicsClientId=client,
        )
        system.motors.set(name, force=force, velocity=velocity, position=position)
    for _ in range(10):
        system.read()
        system.step(write=False)
        pybullet.stepSimulation(client)
        q, v = system.world.state()
        size = max(1.0, np.abs(v).max())
        assert np.abs(v - system.v).max() < 1e-9 * size
        assert np.abs(q - system.q).max() < 1e-9 * size
        torques = [pybullet.getJointState(body, j, client)[3] for j in range(6)]
        ours = system.motors.forces
        assert ours == pytest.approx(torques, rel=1e-6, abs=1e-6)
        if force < 1:
            assert (np.abs(ours) > 0.999 * force).any()


@BESIDE_BULLET
def test_a_motor_is_as_strong_as_pybullets_and_no_faster_than_told(solids, tmp_path):
    """Without a force given: PyBullet's, which its own motor exerts where it must."""
    from support.small_models import four_bar

    urdf = str(four_bar(tmp_path).parent / "four_bar.urdf")
    client = solids.client
    body = pybullet.loadURDF(urdf, useFixedBase=True, flags=FLAGS, physicsClientId=client)
    system = solids.system(body, contacts=False)
    system.motors.set("crank", velocity=1.0)
    pybullet.setJointMotorControl2(
        body, 0, pybullet.VELOCITY_CONTROL, targetVelocity=1e9, physicsClientId=client
    )
    pybullet.stepSimulation(client)
    exerted = pybullet.getJointState(body, 0, client)[3]
    assert system.motors.records["force"][0] == pytest.approx(exerted)
    system.motors.set("crank", position=3.0, position_gain=1.0, max_velocity=2.0)
    system.step(write=False)
    assert system.v["crank"] == pytest.approx(2.0, rel=1e-3)


def slide_steps(x, stiffness, damping, position, bounds, mass=2.0, dt=1 / 240):
    """Positions of implicit steps of a mass on a spring and a damper whose force has bounds."""
    v, found = 0.0, []
    for _ in range(120):
        end = (mass * v + dt * stiffness * (position - x)) / (
            mass + dt * (damping + dt * stiffness)
        )
        force = stiffness * (position - x - dt * end) - damping * end
        v += dt * np.clip(force, *bounds) / mass
        x += dt * v
        found.append((x, v, float(np.clip(force, *bounds))))
    return np.array(found)


@pytest.mark.parametrize("gear", [1.0, -2.0])
@pytest.mark.parametrize("damping", [0.0, 40.0, 1e5])
def test_a_servo_is_a_spring_and_damper_within_bounds(gear, damping):
    """Steps in closed form, also far beyond what explicit ones bear; along a tendon likewise."""
    from test_elements import oscillator

    wanted = slide_steps(0.0, 1e3, damping, 0.2, (-25.0, 40.0))
    motor = bb.Motor(
        40.0 / gear if gear > 0 else 25.0 / -gear,
        position=0.2 * gear,
        stiffness=1e3 / gear**2,
        damping=damping / gear**2,
        least=-25.0 / gear if gear > 0 else 40.0 / gear,
    )
    systems = [oscillator([bb.Tendon("servo", {"slide": gear}, motor=motor)])]
    if gear == 1.0:
        systems.append(oscillator([]))
        systems[1].motors.take("slide", motor)
    for system in systems:
        system.set_state([0.0], [0.0])
        for x, v, force in wanted:
            system.step()
            assert system.q[0] == pytest.approx(x, abs=1e-11)
            assert system.v[0] == pytest.approx(v, abs=1e-10)
            assert gear * system.motors.forces[-1] == pytest.approx(force, abs=1e-7)
    assert (wanted[:, 2] == 40.0).any() == (damping < 1e5) and (abs(wanted[:, 2]) < 25.0).any()


def test_servos_that_act_against_each_other_share_by_their_stiffness():
    """Two on the same joint are one of both stiffnesses, at rest where their forces cancel."""
    from test_elements import oscillator

    ends = {"one": (300.0, 0.5), "other": (100.0, -0.1)}
    tendons = [
        bb.Tendon(name, {"slide": 1.0}, motor=bb.Motor(1e3, 0.0, at, stiffness=k, damping=k / 10))
        for name, (k, at) in ends.items()
    ]
    system = oscillator(tendons)
    system.set_state([0.0], [0.0])
    for x, v, _ in slide_steps(0.0, 400.0, 40.0, 0.35, (-np.inf, np.inf)):
        system.step()
        assert (system.q[0], system.v[0]) == pytest.approx((x, v), abs=1e-11)
    assert not any(name.startswith("one.") for name in system.parameters)
    q = np.zeros((3, 1))
    found = bb.rollout(system, q, steps=240, every=240, motors={"other": {"position": [0, 1, 2]}})
    assert found.q[:, -1, 0] == pytest.approx([0.375, 0.625, 0.875], abs=1e-3)


def test_wrong_servos_are_named():
    from test_elements import oscillator

    motors = oscillator([]).motors
    for given in ({}, {"stiffness": -1.0}, {"stiffness": 1.0, "least": 1.0}, {"damping": np.nan}):
        with pytest.raises(ModelError, match="servo of 'slide'"):
            motors.servo("slide", **given)
    with pytest.raises(ModelError, match="lowest force, which only servos have"):
        motors.take("slide", bb.Motor(1.0, least=-0.5))
    with pytest.raises(ModelError, match="'slide' is called like a joint"):
        oscillator([bb.Tendon("slide", {"slide": 1.0}, motor=bb.Motor(1.0))])


def test_limits_and_friction_act_along_tendons():
    """A mass that slides against friction comes to rest at the limit of the sum, on both sides."""
    from test_elements import oscillator

    system = oscillator([bb.Tendon("t", {"slide": 2.0}, limits=(-0.5, 0.3), friction=1.0)])
    for speed, end in ((2.0, 0.15), (-2.0, -0.25)):
        system.set_state([0.0], [speed])
        system.step()
        slowed = speed - np.sign(speed) * 2.0 * 1.0 / 2.0 / 240  # coefficient force / mass
        assert system.v[0] == pytest.approx(slowed, abs=1e-12)
        system.rollout(60)
        assert system.q[0] == pytest.approx(end, abs=1e-9)


def test_limits_and_friction_act_along_lines():
    """A mass that slides past an anchor beside its way, on a rope of 0.5 m."""
    from test_elements import oscillator

    anchor = bb.Frame("world", (0.0, 0.3, 0.0))
    rope = bb.Spring("rope", anchor, bb.Frame("mass"), limits=(0.0, 0.5), friction=1.0)
    system = oscillator([rope])
    system.set_state([0.2], [2.0])
    system.step()
    along = 0.2 / np.hypot(0.2, 0.3)  # of the row of its length
    assert system.v[0] == pytest.approx(2.0 - along * 1.0 / 2.0 / 240, abs=1e-12)
    for speed, end in ((2.0, 0.4), (-2.0, -0.4)):
        system.set_state([0.0], [speed])
        system.rollout(60)
        # the row is that of the start of a step, so that the last one lands off by its curvature
        assert system.q[0] == pytest.approx(end, abs=1e-3)
        system.rollout(60)
        assert np.hypot(system.q[0], 0.3) == pytest.approx(0.5, abs=1e-7)  # SHALLOW


@pytest.mark.parametrize("holds", ["friction", "motor"])
@pytest.mark.parametrize("side", [-1, 1])
def test_what_holds_a_joint_at_rest_beyond_its_limit_does_not_keep_it_there(holds, side):
    """Whatever it can do: limits can do more. The last of the way is gone by a fifth a step."""
    from test_elements import oscillator

    limits = (-0.5, 10.0) if side < 0 else (-10.0, 0.5)
    for beyond, force in ((1e-6, 1.0), (1e-5, 10.0), (1e-3, 0.1), (1e-3, 1e3)):
        friction = force if holds == "friction" else 0.0
        system = oscillator([bb.Tendon("t", {"slide": 1.0}, limits=limits, friction=friction)])
        if holds == "motor":
            system.motors.set("slide", force=force, velocity=0.0)
        system.set_state([side * (0.5 + beyond)], [0.0])
        left = [beyond]
        for _ in range(math.ceil(np.log(beyond / SHALLOW) / -np.log(0.8)) + 1):
            system.step()
            left.append(abs(float(system.q[0])) - 0.5)
            # what is not shallow moves, and nothing overshoots; positions are known to 1e-16
            assert left[-2] < SHALLOW or -1e-15 < left[-1] <= 0.8 * left[-2] + 1e-15
        assert left[-1] < SHALLOW


def test_a_motor_leads_to_a_limit_of_a_tendon_while_something_else_rests():
    """Forces alone would not lead beyond it in the step: it comes in once the motor has pushed."""
    mechanism = empty_mechanism((0.0, 0.0, -9.81))
    for name, rpy in (("slide", (0, np.pi / 2, 0)), ("drop", (0, 0, 0))):
        mechanism = with_joint(mechanism, name, "prismatic", f"on_{name}", rpy=rpy, load=Load(2.0))
    dt, v = 1 / 240, [1.0, 0.0]
    ball = Sphere(mechanism.links["on_drop"].body, np.zeros(3), 0.1)
    world = Spheres(mechanism, (np.zeros(2), np.array(v)), [ball], [Wall(np.eye(3)[2], -0.1)])
    for contacts in (False, True):
        tendon = bb.Tendon("t", {"slide": 1.0}, limits=(-1.0, 2.5 * dt))
        system = bb.System(
            mechanism, [tendon], world=world, dt=dt, limits="always", contacts=contacts
        )
        system.set_state([0.0, 0.0], v)
        system.motors.set("slide", force=1e3, velocity=3.0)
        system.step()
        assert len(system.contacts()) == contacts
        # one step of Euler's method, and a rounding or two of a rate of 3 m/s
        assert abs(system.v[0] - 2.5) < 1e-14 and abs(system.q[0] - 2.5 * dt) < 1e-15


@pytest.mark.parametrize("holds", ["friction", "motor"])
def test_a_limit_tells_the_same_load_on_either_side(holds):
    """A push into a limit, where a motor or friction holds as well, and its mirror image."""
    from test_elements import oscillator

    loads: list[np.ndarray] = []
    for side in (-1, 1):
        limits = (-0.5, 10.0) if side < 0 else (-10.0, 0.5)
        friction = 3.0 if holds == "friction" else 0.0
        system = oscillator([bb.Tendon("t", {"slide": 1.0}, limits=limits, friction=friction)])
        if holds == "motor":
            system.motors.set("slide", force=3.0, velocity=0.0)
        system.set_state([side * 0.5], [0.0])
        system.tau[:] = side * 2.0
        system.step()
        told = [system.joint_loads[name] for name in ("slide", "t")]
        loads.append(side * np.array([[one.motor, one.friction, one.limit] for one in told]))
        # at rest, with a rounding of each of three forces of 2 N
        assert abs(loads[-1].sum() + 2.0) < 1e-14
        assert loads[-1].max() <= 0.0
    np.testing.assert_allclose(loads[0], loads[1], rtol=0, atol=1e-14)


def test_a_rope_carries_what_hangs_on_it():
    """A bob on a rope that does not stretch moves as one on a rod, and pulls by its weight."""
    swings: list[np.ndarray] = []
    rope = bb.Spring("rope", bb.Frame("world"), bb.Frame("bob"), limits=(0.0, 0.8))
    for joining in (rope, bb.Distance("rope", bb.Frame("world"), bb.Frame("bob"), 0.8)):
        mechanism = with_joint(
            empty_mechanism((0.0, 0.0, -9.81)), "x", "prismatic", "slide", rpy=(0, np.pi / 2, 0)
        )
        mechanism = with_joint(
            mechanism, "z", "prismatic", "bob", "slide", rpy=(0, -np.pi / 2, 0), load=Load(2.0)
        )
        system = bb.System(mechanism, [joining])
        system.set_state([0.0, -0.8], [0.0, 0.0])
        system.step()
        pull = system.reactions()["rope"].force
        np.testing.assert_allclose(pull, [0.0, 0.0, 2.0 * 9.81], atol=1e-9)
        system.set_state([0.0, -0.8], [0.5, 0.0])
        system.dt = 1e-3
        swings.append(system.run(0.5).q[-1])
    np.testing.assert_allclose(swings[0], swings[1], atol=2e-3)  # steps of order 1, v dt at most


@pytest.mark.parametrize("rate", [0.7, -0.7, 0.0])
def test_a_drive_bears_friction_and_a_motor_of_the_joint_that_it_leads(rate):
    """At a constant rate nothing else acts on it; at rest friction is told as none."""
    arm = with_joint(empty_mechanism((0.0, 0.0, 0.0)), "hinge", "revolute", "arm", load=Load(
        1.0, inertia=(0.1, 0.1, 0.1)))  # fmt: skip
    motion = bb.Motion(z=lambda t: (rate * t, rate, 0.0))
    drive = bb.Coupling("drive", {"hinge": 1.0}, motion=motion)
    system = bb.System(arm, [drive], dt=0.01)
    system.set_state(v=[rate])
    system.motors.set_friction("hinge", 2.0)
    system.motors.set("hinge", force=0.5, velocity=1.5)  # faster than it is led
    for _ in range(3):
        system.step()
        load, borne = system.joint_loads["hinge"], system.reactions()["drive"].multipliers[0]
        # equilibrium, with a few roundings of forces of 2 N m, over a step of 0.01 s for impulses
        assert abs(load.motor - 0.5) < 1e-12
        assert abs(load.friction + 2.0 * np.sign(rate)) < 1e-12
        assert abs(borne + load.motor + load.friction) < 1e-12
        assert abs(system.v[0] - rate) < 1e-14


@pytest.mark.parametrize("seed", [47, 128])
def test_motors_do_what_they_can_where_contacts_bounce_by_a_share(seed):
    """A double pendulum hits two walls that rub; all of their restitution would give energy.

    Newton's law of impact with friction may (Kane and Levinson 1985). Whatever is left of it, every
    motor has the rate it is asked for, or pushes that way with all it has, and walls give nothing.
    """
    rng = np.random.default_rng(seed)
    chain, dt = planar_chain([0.5, 0.4], [1.0, rng.uniform(0.2, 2.0)]), 1e-5
    q, v = rng.uniform(-1, 1, 2), rng.normal(0, 2, 2)
    normal = np.array([*rng.normal(0, 1, 3)[:2], 0.0])
    normal /= np.linalg.norm(normal)
    aside = np.array([-normal[1], normal[0], 0.0]) * rng.choice([-1, 1])
    balls = [Sphere(k, np.array([x, 0.0, 0.0]), 0.05) for k, x in ((2, 0.4), (1, 0.5))]
    free = Spheres(chain, (q, v), balls, ())
    walls = [Wall(way, min(free.clearance(q, way))) for way in (normal, aside)]
    rubs = Surface(rng.uniform(0.3, 1.2), rng.uniform(0.3, 0.9))
    world = Spheres(chain, (q, v), balls, walls, rubs)
    system = bb.System(chain, [], world=world, dt=dt, contacts=True)
    system.set_state(q, v)
    asked, most = rng.normal(0, 2, 2), 10 ** rng.uniform(2, 5, 2)
    for name, rate, force in zip(chain.joints, asked, most, strict=True):
        system.motors.set(name, force=force, velocity=rate)
    system.step()
    assert sum(contact.normal_force * dt > 1e-3 for contact in system.contacts()) > 0
    assert system.complementarity.residual < 1e-9
    assert system.complementarity.work < 1e-9
    off, forces = system.v - asked, system.motors.forces
    at_most = np.isclose(np.abs(forces), most, rtol=1e-9) & (forces * off < 0.0)
    assert np.all((np.abs(off) < 1e-8) | at_most)


@pytest.mark.parametrize(("legs", "friction"), [(3, 0.1), (3, 0.2), (3, 0.3), (3, 0.4), (6, 0.1)])
def test_motors_turn_back_against_friction_on_a_parallel_platform(legs, friction):
    """Cranks with rods on balls carry a plate, all with friction; one crank goes to and fro.

    Where it turns back all that slid rests for an instant: friction is no reason to stay there.
    """
    plate, up, loops = empty_mechanism(), 0.08, []
    light = Load(0.01, inertia=(1e-3, 1e-3, 1e-3))  # with rotors
    rod = Load(0.01, (0.0, 0.0, up / 2), (1e-5, 1e-5, 1e-5))
    disc = Load(0.3, inertia=(1e-4, 1e-4, 2e-4))
    ways = np.exp(2j * np.pi * np.arange(legs) / legs)
    rims = 0.05 * ways * np.exp(0.2j * (-1.0) ** np.arange(legs))  # rods lean inwards
    for leg, way in enumerate(ways):
        foot, turn = 0.06 * way, float(np.angle(way))
        plate = with_joint(plate, f"crank_{leg}", "revolute", f"arm_{leg}", load=light,
            xyz=(foot.real, foot.imag, 0.0), rpy=(0.0, math.pi / 2, turn))  # fmt: skip
        plate = with_joint(plate, f"knee_{leg}", "spherical", f"rod_{leg}", f"arm_{leg}",
            (0.0, 0.04 * (-1.0) ** leg, 0.0), (0.0, -math.pi / 2, 0.0), rod)  # fmt: skip
        if leg == 0:
            plate = with_joint(
                plate, "hip", "spherical", "plate", "rod_0", (0.0, 0.0, up), load=disc
            )
            continue
        rim = rims[leg] - rims[0]
        top = bb.Frame(f"rod_{leg}", (0.0, 0.0, up))
        held = bb.Frame("plate", (rim.real, rim.imag, 0.0))
        loops.append(bb.LoopJoint(f"ball_{leg}", bb.JointModel.BALL, top, held))
    system = bb.System(plate, loops)
    system.assemble()
    for joint in system.motors.names:
        system.motors.set_friction(joint, friction)
    cranks = [f"crank_{leg}" for leg in range(legs)]
    for joint in cranks:
        system.motors.set(joint, force=20.0, position=system.q[joint])
    behind, begin = [], float(system.q["crank_0"])
    for k in range(300):
        wanted = begin + 0.05 * math.sin(2 * math.pi * k / 240)
        system.motors.set("crank_0", force=20.0, position=wanted, position_gain=0.5)
        system.step()
        behind.append(abs(system.q["crank_0"] - wanted))
    # half of what is missing is made good in a step, so it lags by what it is led in one
    assert max(behind) < 1.1 * 0.05 * 2 * math.pi / 240
