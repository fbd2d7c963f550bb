"""Bodies that are taken over from Bullet: their constraints, and calls that do nothing then."""

import gc
import re
import warnings

import numpy as np
import pybullet
import pybullet_data
import pytest
from numpy.testing import assert_allclose
from pybullet_utils.bullet_client import BulletClient
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning


@pytest.fixture
def client(nobody_connected, client_on_earth):
    return client_on_earth


def four_bar():
    robot = pybullet.loadURDF(
        f"{bb.models_folder()}/four_bar.urdf",
        useFixedBase=True,
        flags=pybullet.URDF_USE_INERTIA_FROM_FILE,
    )
    joints = {pybullet.getJointInfo(robot, k)[1].decode(): k for k in range(3)}
    pybullet.resetJointState(robot, joints["crank"], np.pi / 3)  # where the loop is closed
    return robot, joints


def box(at, size=0.1, mass=1.0):
    shape = pybullet.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[size] * 3)
    return pybullet.createMultiBody(mass, shape, basePosition=at)


def pose(body):
    p, quaternion = pybullet.getBasePositionAndOrientation(body)
    return np.array(p), Rotation.from_quat(quaternion)


def test_a_constraint_of_bullet_is_taken_over_and_closed(client):
    """After two seconds in which Bullet let it open; both ends by Bullet's own kinematics."""
    robot, joints = four_bar()
    pivot = [0.35, 0, 0]
    number = pybullet.createConstraint(
        robot, joints["rocker"], -1, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0], pivot, [1, 0, 0]
    )
    for _ in range(480):
        pybullet.stepSimulation()
    system = bb.attach(robot)
    assert [loop.name for loop in system.constraints] == [f"constraint {number}"]
    for _ in range(50):
        system.step()
        p, quaternion = pybullet.getLinkState(robot, joints["rocker"], 0, 1)[:2]
        end = np.array(p) + Rotation.from_quat(quaternion).apply(pivot)
        assert_allclose(end, (1, 0, 0), atol=1e-6)  # what Bullet tells of links is in float
    q, v, t = np.array(system.q), np.array(system.v), system.t
    assert system.evaluate().largest("metres") < 1e-12
    with pytest.warns(BulletBridgeWarning, match="does nothing"):
        pybullet.removeConstraint(number)
    pin = bb.LoopJoint(
        "pin", bb.JointModel.BALL, bb.Frame("rocker", (0.7, 0, 0)), bb.Frame("ground", (1, 0, 0))
    )
    other = bb.attach(robot, [pin])
    other.set_state(q, v, t)
    for one in (system, other):
        one.set_state(q, v, t)
        one.rollout(100)
    size = np.abs(system.v).max()
    assert_allclose(other.v, system.v, atol=1e-9 * size)


def test_every_kind_is_taken_over(client):
    """What each holds, from its definition: frames are in the links' inertial frames."""
    first, second, third, fourth = (box((x, 0, 1)) for x in (0.0, 0.5, 1.0, 1.5))
    turn = pybullet.getQuaternionFromEuler((0.3, 0.2, 0.1))
    place, way = np.array((0.2, 0.1, 0.0)), (0.0, 1.0, 0.0)
    pybullet.createConstraint(
        first, -1, second, -1, pybullet.JOINT_FIXED, [0, 0, 0], place.tolist(), [0, 0, 0], turn
    )
    pybullet.createConstraint(
        third, -1, fourth, -1, pybullet.JOINT_PRISMATIC, way, place.tolist(), [-0.2, 0, 0]
    )
    bodies = {"a": first, "b": second, "c": third, "d": fourth}
    system = bb.attach(bodies)
    system.set_state(v=np.where(np.arange(system.mechanism.nv) % 5, 0.3, 1.0))
    for _ in range(30):
        system.step()
    (p, R), (s, S) = pose(first), pose(second)
    assert_allclose(p + R.apply(place), s, atol=1e-12)
    assert ((R * Rotation.from_quat(turn)).inv() * S).magnitude() < 1e-12
    (p, R), (s, S) = pose(third), pose(fourth)
    assert (R.inv() * S).magnitude() < 1e-12
    apart = R.inv().apply(s + S.apply([-0.2, 0, 0]) - p) - place
    assert_allclose(apart[[0, 2]], 0.0, atol=1e-12)


@pytest.mark.parametrize("ratio", [1.0, -2.0])
def test_gears_and_force_limits_are_taken_over(client, ratio):
    robot, joints = four_bar()
    crank, rocker = joints["crank"], joints["rocker"]
    gear = pybullet.createConstraint(
        robot, crank, robot, rocker, pybullet.JOINT_GEAR, [0, 1, 0], [0, 0, 0], [0, 0, 0]
    )
    pybullet.changeConstraint(gear, gearRatio=ratio, maxForce=12.0)
    system = bb.attach(robot)
    (coupling,) = system.constraints
    assert coupling.max_force == 12.0
    assert coupling.coefficients == {"crank": 1.0, "rocker": ratio}
    system.set_max_force(coupling.name, 1e6)  # it would take a thousandth of that
    start = system.q["crank"] + ratio * system.q["rocker"]
    system.rollout(50)
    assert abs(system.q["crank"] - np.pi / 3) > 0.01
    assert system.q["crank"] + ratio * system.q["rocker"] == pytest.approx(start, abs=1e-12)


def test_constraints_that_do_nothing_are_told(client):
    robot, joints = four_bar()
    load = box((1, 0, 1))
    held = robot, joints["rocker"], load, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0]
    number = pybullet.createConstraint(*held, [0, 0, 0], [0, 0, 0])
    with pytest.warns(BulletBridgeWarning, match=rf"constraint {number} .*body {load}, which is"):
        assert not bb.attach(robot).constraints
    with pytest.warns(BulletBridgeWarning, match=rf"constraint {number} joins them. Remove"):
        assert not bb.attach([robot, load], []).constraints
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(bb.attach([robot, load]).constraints) == 1


CALLS = {
    "setJointMotorControl2": (("jointIndex", 1), ("controlMode", 2), ("targetPosition", 1.0)),
    "setJointMotorControlArray": (
        ("jointIndices", [1]), ("controlMode", 2), ("targetPositions", [1.0]),
    ),
    "applyExternalForce": (
        ("linkIndex", 1), ("forceObj", [1, 0, 0]), ("posObj", [0, 0, 0]), ("flags", 1),
    ),
    "applyExternalTorque": (("linkIndex", 1), ("torqueObj", [1, 0, 0]), ("flags", 1)),
    "changeDynamics": (("linkIndex", 1), ("jointDamping", 0.5)),
    "createConstraint": (
        ("parentLinkIndex", 1), ("childBodyUniqueId", -1), ("childLinkIndex", -1),
        ("jointType", pybullet.JOINT_POINT2POINT), ("jointAxis", [0, 0, 0]),
        ("parentFramePosition", [0, 0, 0]), ("childFramePosition", [0, 0, 0]),
    ),
}  # fmt: skip
FIRST = {"createConstraint": "parentBodyUniqueId", "applyExternalForce": "objectUniqueId",
         "applyExternalTorque": "objectUniqueId"}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("named", [False, True])
def test_calls_that_do_nothing_are_told_once(client, name, named):
    robot, _ = four_bar()
    other = four_bar()[0]
    system = bb.attach(robot, client=client)

    def call(body):
        function, arguments = getattr(pybullet, name), dict(CALLS[name])
        if named:
            body_name = FIRST.get(name, "bodyUniqueId")
            return function(**{body_name: body}, **arguments, physicsClientId=client)
        if name == "changeDynamics":  # damping is the seventeenth of its arguments
            return function(body, 1, jointDamping=0.5)
        return function(body, *arguments.values())

    with pytest.warns(BulletBridgeWarning, match=rf"{name} does nothing to body '.*' \(id {robot}"):
        call(robot)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(robot)  # once is enough
        call(other)
        del system
        gc.collect()
        call(robot)
    assert "built-in" in repr(getattr(pybullet, name))


def test_calls_that_are_meant_to_do_nothing_are_not_told(client):
    """Motors are switched off so, before a step of Bullet's."""
    robot, _ = four_bar()
    system = bb.attach(robot)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pybullet.setJointMotorControl2(robot, 1, pybullet.VELOCITY_CONTROL, force=0)
        pybullet.setJointMotorControl2(robot, 1, pybullet.VELOCITY_CONTROL, 0, 0, 0)
        pybullet.setJointMotorControlArray(robot, [0, 1], pybullet.TORQUE_CONTROL, forces=[0, 0])
        pybullet.changeDynamics(robot, 1, linearDamping=0, angularDamping=0, jointDamping=0)
        pybullet.changeDynamics(robot, 1, lateralFriction=0.7)  # of which contacts see to it
        pybullet.removeBody(robot)
        again, _ = four_bar()  # has the same number
        pybullet.setJointMotorControl2(again, 1, pybullet.VELOCITY_CONTROL)
    assert system.t == 0.0


def test_clients_of_pybullet_utils_keep_their_number(client):
    robot, _ = four_bar()
    system = bb.attach(robot)
    beside = BulletClient(pybullet.DIRECT)
    try:
        beside.setAdditionalSearchPath(pybullet_data.getDataPath())
        arm = beside.loadURDF("kuka_iiwa/model.urdf", useFixedBase=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            beside.setJointMotorControl2(arm, 3, pybullet.POSITION_CONTROL, 0.5, force=300)
        for _ in range(240):
            beside.stepSimulation()
        assert beside.getJointState(arm, 3)[0] == pytest.approx(0.5, abs=0.05)
    finally:
        beside.disconnect()
    assert system.t == 0.0


def test_letting_go_is_told_of_what_was_taken_over(client):
    robot, load = four_bar()[0], box((1, 0, 1))
    held = load, -1, -1, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0], [0, 0, 0], [1, 0, 1]
    first, second = (pybullet.createConstraint(*held) for _ in range(2))
    system = bb.attach([robot, load])
    with pytest.warns(BulletBridgeWarning, match=rf'system.disconnect\("constraint {first}"\)'):
        pybullet.removeConstraint(first)
    with pytest.warns(BulletBridgeWarning, match=f"changeConstraint.*constraint {second}"):
        pybullet.changeConstraint(second, [1, 0, 2])
    other = box((3, 0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pybullet.removeConstraint(pybullet.createConstraint(other, *held[1:]))
    system.disconnect(f"constraint {first}")
    assert [each.name for each in system.constraints] == [f"constraint {second}"]


def cube(client, height, mass=1.0):
    shape = pybullet.createCollisionShape(
        pybullet.GEOM_BOX, halfExtents=[0.1] * 3, physicsClientId=client
    )
    place = [0, 0, height]
    return pybullet.createMultiBody(mass, shape, basePosition=place, physicsClientId=client)


@pytest.mark.parametrize("advance", [lambda s: s.step(), lambda s: s.run(0.01)])
def test_a_free_body_that_no_system_advances_is_told(client, advance):
    """It hangs in the air until something touches it, which is an error then."""
    system = bb.attach(cube(client, 1.0), client=client)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cube(client, 5.0, mass=0.0)  # stands still
        other = bb.attach(cube(client, 3.0), client=client)
        advance(system)
        advance(other)
    left = cube(client, 2.0)
    said = rf"body {left} .* may move .* bb.attach.*'other': {left}.*under 'bodies' of a loops"
    with pytest.warns(BulletBridgeWarning, match=said):
        advance(system)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cube(client, 6.0)
        for _ in range(10):
            advance(system)


def test_bodies_of_a_system_are_all_named_where_one_more_is_to_be_attached(client):
    two = {"left": cube(client, 1.0), "right": cube(client, 3.0)}
    system, more = bb.attach(two, client=client), cube(client, 5.0)
    with pytest.warns(BulletBridgeWarning, match=re.escape(str(two | {"other": more}))):
        system.step()


def test_robots_without_a_collision_shape_are_told_where_contacts_are_asked_for(client):
    with pytest.warns(BulletBridgeWarning, match="no contact of 'four_bar': none of the links"):
        bb.load("four_bar", client, contacts=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (number,) = bb.load("four_bar", client).ids.values()
        bb.attach(cube(client, 3.0), client=client, contacts=True)
    with pytest.warns(BulletBridgeWarning, match="no contact of 'bars': none of the links"):
        bb.attach({"bars": number, "cube": cube(client, 5.0)}, [], client, contacts=True)


@pytest.mark.parametrize(
    ("ground", "touches", "told"),
    [(True, False, "contacts=True has it touch"), (False, True, "load a ground")],
)
def test_what_falls_for_want_of_ground_or_contacts_is_told(client, ground, touches, told):
    """A fall of half a second is 4.9 m/s fast: beyond 5 m/s it is told, once."""
    if ground:
        cube(client, 0.0, mass=0.0)
    system = bb.attach(cube(client, 9.0), [], client, contacts=touches)
    system.run(0.5)
    with pytest.warns(BulletBridgeWarning, match=f"falls, and touches nothing: .*{told}"):
        system.run(0.1)
    system.run(0.1)
