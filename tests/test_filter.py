"""The filter: what it leaves alone, what it takes, and what stands on its feet through it."""

import numpy as np
import pybullet
import pybullet_data
import pytest
from _mechanisms import random_mechanism, random_state
from numpy.testing import assert_allclose
from pybullet_utils.bullet_client import BulletClient as Native
from scipy.spatial.transform import Rotation
from test_client import minitaur

import bulletbridge as bb
from bulletbridge.bullet.reader import read_bullet
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import session_of
from bulletbridge.errors import AssemblyError, ModelError, WorldError
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.records import CONTACT_POINT, FREE, REVOLUTE, STICKING_POINT

DT = 1e-3
STANDING = 0.166734  # [m] height of Minitaur's base after 4 s, Bullet alone at 1/8000 s
FLAGS = pybullet.URDF_USE_INERTIA_FROM_FILE
SEEDS = range(12)


class Given:
    """A world that is what it was last told to be."""

    def __init__(self, q, v):
        self.q, self.v = q, v

    def state(self):
        return self.q.copy(), self.v.copy()

    def write(self, q, v):
        self.q, self.v = q.copy(), v.copy()

    def check(self):
        pass

    def check_properties(self):
        pass

    def look(self, acting):
        pass

    def tell_of_a_fall(self, pull):
        pass

    def accept(self):
        pass

    def forget(self):
        pass


def floating_loops(seed):
    """A free chain of revolute joints, bent back on itself by a ball joint and geared twice."""
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(rng, [FREE] + [REVOLUTE] * 9, branching=0.0)
    q, v = random_state(rng, mechanism)
    tree = bb.System(mechanism)
    tree.set_state(q, v)
    a, b = (tree.kinematics().point(bb.Frame(name)) for name in ("link2", "link8"))
    pin = bb.Frame("link2", tuple(a.R_W.T @ (b.p_W - a.p_W)))
    first, second, third = (mechanism.joints[f"joint{k}"].q.start for k in (4, 7, 10))
    constraints = [
        bb.LoopJoint("pin", bb.JointModel.BALL, pin, bb.Frame("link8")),
        bb.Coupling("gear", {"joint4": 1.0, "joint7": -0.5}, q[first] - 0.5 * q[second]),
        bb.Coupling("chain", {"joint7": 2.0, "joint10": 1.0}, 2 * q[second] + q[third]),
    ]
    world = Given(q, v)
    system = bb.System(mechanism, constraints, world=world, dt=DT)
    system.filter()
    return system, world, rng


def disturb(system, world, rng, size):
    """Open the loops by about ``size``, and set a velocity that they do not allow."""
    move = rng.standard_normal(system.mechanism.nv)
    displace(system.mechanism.bodies, world.q, move, size, world.q)
    world.v = rng.standard_normal(system.mechanism.nv)


def sticking_point(a, b, position, normal, count=3):
    """One point of body b that sticks to body a, as ``System.filter`` takes it."""
    point = np.zeros(1, STICKING_POINT)
    point["body_a"], point["body_b"], point["count"] = a, b, count
    point["position"], point["normal"] = position, normal
    return point


def a_sticking_point(system, rng, count=3):
    """A point of the last link that sticks to the world."""
    normal = rng.standard_normal(3)
    point = system.kinematics().point(bb.Frame("link10")).p_W
    body = system.mechanism.links["link10"].body
    normal /= np.linalg.norm(normal)
    return sticking_point(0, body, point, normal, count), normal


def at(system, q, v):
    """Terms and that link's point at a state."""
    system._active.solver.state[:] = *q, *v, system.t
    return system.terms(), system.kinematics().point(bb.Frame("link10"))


@pytest.mark.parametrize("seed", SEEDS)
def test_impulses_are_what_changes_the_velocity(seed):
    system, world, rng = floating_loops(seed)
    world.v = v = rng.standard_normal(system.mechanism.nv)
    found = system.filter()
    terms = system.terms()
    change = terms.M @ (system.v - v)
    assert np.abs(change).max() > 1e-3
    # solving with M and J loses the digits of their condition numbers
    size = np.abs(change).max() * np.linalg.cond(terms.M) * 1e-13 / system.status.margin
    assert_allclose(terms.J.T @ found.velocity, change, atol=size)
    assert_allclose(found.position, 0.0, atol=1e-9)
    assert np.abs(terms.J @ system.v).max() < 1e-12 * np.abs(v).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_correction_has_the_impulse_of_its_motion(seed):
    system, world, rng = floating_loops(seed)
    disturb(system, world, rng, 1e-7)
    q = world.q.copy()
    found = system.filter()
    terms = system.terms()
    moved = np.zeros(system.mechanism.nv)
    moved[6:] = (system.q - q)[7:]
    moved[3:6] = (system.q - q)[:3]
    turn = Rotation.from_quat(system.q[3:7]) * Rotation.from_quat(q[3:7]).inv()
    moved[:3] = turn.as_rotvec()
    expected = terms.M @ moved / DT
    # J and M differ between both ends by the motion, 1e-7 / margin at most
    size = np.abs(expected).max() * 1e-5 / system.status.margin
    assert_allclose(terms.J.T @ found.position, expected, atol=size)
    assert system.evaluate().largest("metres") < 1e-12
    assert np.abs(terms.J @ system.v).max() < 1e-11


@pytest.mark.parametrize("seed", SEEDS)
def test_a_loop_takes_no_momentum_from_a_free_system(seed):
    system, world, rng = floating_loops(seed)
    world.v = rng.standard_normal(system.mechanism.nv)
    before = system.evaluate(world.q, world.v).momentum
    system.filter()
    mass = system.mechanism.bodies["mass"].sum()
    assert_allclose(system.evaluate().momentum, before, atol=1e-12 * mass * np.abs(world.v).max())


@pytest.mark.parametrize("led", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_sticking_point_stays_and_keeps_its_velocity(seed, led):
    system, world, rng = floating_loops(seed)
    disturb(system, world, rng, 1e-5)
    q, v = world.state()
    before = at(system, q, v)[1]
    sticking, _ = a_sticking_point(system, rng)
    found = system.filter(sticking, led=led)
    terms, after = at(system, system.q, system.v)
    # to first order: what the chord leaves is of second order in the motion
    left = 1e-3 * 1e-5
    assert np.abs(after.p_W - before.p_W).max() < left
    assert_allclose(after.J @ system.v, after.J @ v, atol=left / DT if led else 1e-11)
    assert np.abs(found.sticking).max() > 1e-6
    assert system.evaluate().largest("metres") < 1e-12
    assert np.abs(terms.J @ system.v).max() < 1e-11


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sliding_point_stays_along_its_normal(seed):
    system, world, rng = floating_loops(seed)
    world.v = v = rng.standard_normal(system.mechanism.nv)
    sticking, normal = a_sticking_point(system, rng, count=1)
    found = system.filter(sticking)
    point = system.kinematics().point(bb.Frame("link10"))
    change = point.J @ (system.v - v)
    assert abs(normal @ change) < 1e-12
    assert np.linalg.norm(change) > 1e-6
    assert_allclose(found.sticking[0, 1:], 0.0)


def test_what_loops_forbid_does_not_stick():
    """A point against its own body's other end of the loop: the loop decides, and closes."""
    system, world, rng = floating_loops(0)
    disturb(system, world, rng, 1e-5)
    names = ("link2", "link8")
    a, b = (system.mechanism.links[name].body for name in names)
    point = system.kinematics().point(bb.Frame("link8")).p_W
    found = system.filter(sticking_point(a, b, point, (0, 0, 1)))
    assert system.evaluate().largest("metres") < 1e-12
    assert_allclose(found.sticking, 0.0)


@pytest.mark.parametrize("name", ["pin", "gear", "chain"])
def test_an_open_constraint_is_left_alone(name):
    """As if the system had been built without it."""
    system, world, rng = floating_loops(1)
    others = [c for c in system.constraints if c.name != name]
    without = bb.System(system.mechanism, others, world=Given(*world.state()), dt=DT)
    without.filter()
    disturb(system, world, rng, 1e-6)
    without.world.q, without.world.v = world.state()
    found = system.filter(open=[name])
    without.filter()
    assert_allclose(system.q, without.q, atol=1e-12)
    assert_allclose(system.v, without.v, atol=1e-11)
    assert_allclose(found.of(name), 0.0)
    assert np.abs(found.velocity).max() > 1e-3
    again = system.filter()  # closed again, nothing was rebuilt
    assert system.evaluate().largest("metres") < 1e-12
    assert np.abs(again.of(name)).max() > 1e-8


def test_multipliers_are_a_wrench_on_both_links():
    system, world, rng = floating_loops(2)
    disturb(system, world, rng, 1e-8)
    found = system.filter(led=False)
    point, _, force, moment = found.wrench("pin")
    assert_allclose(point, system.kinematics().point(bb.Frame("link8")).p_W, atol=1e-12)
    pin = system.constraints[0]
    forces = system.wrench(pin.b, force, moment) - system.wrench(pin.a, force, moment)
    part = system.decision.encoded.rows["pin"]
    expected = system.terms().J[part].T @ found.of("pin").sum(axis=0)
    assert_allclose(forces, expected, atol=1e-9 * np.abs(expected).max())
    assert found.wrench("gear") is None
    assert found.of("gear").shape == (2, 1)


def test_records_and_names_that_mean_nothing_are_refused():
    system, world, _ = floating_loops(3)
    state, t = world.state(), system.t
    good = sticking_point(0, 1, (0, 0, 0), (0, 0, 1))
    for wrong in (np.zeros((1, 9)), np.zeros(1, CONTACT_POINT), good.reshape(1, 1)):
        with pytest.raises(ModelError, match="sticking points make an array"):
            system.filter(wrong)
    for field, value in (
        ("body_a", -1), ("body_b", 99), ("count", 4), ("normal", 0.0), ("normal", np.nan),
    ):  # fmt: skip
        wrong = good.copy()
        wrong[field] = value
        with pytest.raises(ModelError, match="a sticking point names a body that the mechanism"):
            system.filter(wrong)
    with pytest.raises(ModelError, match="unknown constraint 'pim'"):
        system.filter(open=["pim"])
    assert_allclose(world.q, state[0])
    assert system.t == t
    with pytest.raises(WorldError, match="no world"):
        bb.System(system.mechanism).filter()


def test_loops_that_cannot_close_leave_the_world_as_it_is():
    system, world, _ = floating_loops(4)
    world.q[:3] = np.nan
    q = world.q.copy()
    with pytest.raises(AssemblyError):
        system.filter()
    assert_allclose(world.q, q)
    assert np.isfinite(system.q).all()


def test_only_who_asks_for_an_assembly_has_it_sought_far_and_wide():
    """A body at two points whose distance it does not have; what is tried again must stay cheap."""
    system, world, _ = floating_loops(4)
    mechanism = system.mechanism
    far = [
        bb.LoopJoint(
            f"pin {x}", bb.JointModel.BALL, bb.Frame("world", (x, 0, 0)), bb.Frame("link2")
        )
        for x in (0.0, 9.0)
    ]
    for assemble, how in ((False, "the least .* downhill from there;"), (True, "from 18 others")):
        system = bb.System(mechanism, far, world=world, dt=DT)
        with pytest.raises(AssemblyError, match=how):
            system.filter(assemble=assemble)


@pytest.mark.parametrize(("slope", "sticks"), [(0.05, True), (0.8, False)])
def test_contacts_stick_inside_the_friction_cone(slope, sticks):
    """A block on an incline with friction 0.5: it rests below 0.46 rad, and slides above."""
    client = Native(pybullet.DIRECT)
    try:
        client.setGravity(9.81 * np.sin(slope), 0, -9.81 * np.cos(slope))
        client.setAdditionalSearchPath(pybullet_data.getDataPath())
        plane = client.loadURDF("plane.urdf")
        block = client.loadURDF("cube.urdf", [0, 0, 0.5], flags=FLAGS)
        client.changeDynamics(plane, -1, lateralFriction=1.0)
        client.changeDynamics(block, -1, lateralFriction=0.5)
        world = read_bullet(block, client._client)
        for _ in range(60):
            client.stepSimulation()
        points = world.sticking_points()
        assert len(points) == (4 if sticks else 0)
        assert not points["body_a"].any()
        assert (points["body_b"] == 1).all()
        assert (points["count"] == 3).all()
        assert_allclose(points["normal"] - [0, 0, 1], 0.0, atol=1e-6)
        if sticks:  # the corners of a cube of 1 m
            corners = points["position"][:, :2]
            assert_allclose(np.abs(corners - corners.mean(axis=0)), 0.5, atol=1e-2)
            client.changeDynamics(block, -1, lateralFriction=0.01)
            world.forget_friction()
            assert len(world.sticking_points()) < 4
    finally:
        client.disconnect()


def test_a_contact_between_two_bridged_bodies_counts_once():
    client = Native(pybullet.DIRECT)
    try:
        client.setGravity(0, 0, -9.81)
        client.setAdditionalSearchPath(pybullet_data.getDataPath())
        client.loadURDF("plane.urdf")
        blocks = [client.loadURDF("cube.urdf", [0, 0, z], flags=FLAGS) for z in (0.5, 1.5)]
        world = read_bullet({"lower": blocks[0], "upper": blocks[1]}, client._client)
        for _ in range(60):
            client.stepSimulation()
        points = world.sticking_points()
        pairs = set(zip(points["body_a"].tolist(), points["body_b"].tolist(), strict=True))
        assert pairs == {(0, 1), (2, 1)}
        assert len(world.sticking_points()) == 8
    finally:
        client.disconnect()


def test_minitaur_stands_where_it_stands():
    """Four seconds at 1/240 s: closed loops, the height of 1/8000 s, feet that stay."""
    ours, native = BulletClient(pybullet.DIRECT), Native(pybullet.DIRECT)
    try:
        creep, heights = [], []
        for client in (ours, native):
            robot = minitaur(client)
            for n in range(960):
                client.stepSimulation()
                if n == 240:
                    start = client.getBasePositionAndOrientation(robot)[0]
            end = client.getBasePositionAndOrientation(robot)[0]
            creep.append(np.hypot(end[0] - start[0], end[1] - start[1]))
            heights.append(end[2])
        (group,) = session_of(ours._client).groups.values()
        system = group.system
        seen = system.evaluate(*system.world.state())
        assert seen.largest("kept_metres") < 1e-12
        assert seen.largest("kept_rate_metres") < 1e-12
        assert abs(heights[0] - STANDING) < 5e-4
        assert creep[0] < creep[1]
    finally:
        ours.disconnect()
        native.disconnect()
