"""The same calls on Bullet and on ours: ids, errors, returns, frames, lifetime, snapshots."""

import re

import pybullet
import pybullet_data
import pytest
from pybullet_utils.bullet_client import BulletClient as Native
from test_client import BOX, FLAGS, linkage

import bulletbridge.pybullet as module
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.function import FUNCTIONS, Direct

P2P, FIXED, PRISMATIC, GEAR = (
    pybullet.JOINT_POINT2POINT,
    pybullet.JOINT_FIXED,
    pybullet.JOINT_PRISMATIC,
    pybullet.JOINT_GEAR,
)
ORIGIN = [0.0, 0.0, 0.0]


def seen(call, *args, **kwargs):
    """What a call returns, or how it fails."""
    try:
        return call(*args, **kwargs)
    except (pybullet.error, TypeError, SystemError) as error:
        return type(error).__name__, str(error)


def box(client, tmp_path, place=(0, 0, 1)):
    """A box whose inertial frame is displaced and turned."""
    path = tmp_path / "box.urdf"
    path.write_text(BOX.format(0))
    return client.loadURDF(str(path), list(place), flags=FLAGS)


def hang(client, body, kind=P2P, place=ORIGIN, **more):
    """A constraint of a body to the world where it is now."""
    position, orientation = client.getBasePositionAndOrientation(body)
    more = {"childFrameOrientation": orientation} if kind != P2P else more
    return client.createConstraint(body, -1, -1, -1, kind, [0, 0, 1], place, position, **more)


def ids(client, tmp_path):
    body = box(client, tmp_path)
    first, second = hang(client, body), hang(client, body, FIXED)
    yield first, second, client.getNumConstraints()
    yield client.removeConstraint(first)
    third = hang(client, body, PRISMATIC)
    yield third, client.getNumConstraints()
    yield [client.getConstraintUniqueId(k) for k in range(-1, 4)]
    yield client.resetSimulation()
    yield client.getNumConstraints()
    yield hang(client, box(client, tmp_path))


def bodies(client, tmp_path):
    one, two = box(client, tmp_path), box(client, tmp_path, (1, 0, 1))
    client.createConstraint(one, -1, two, -1, FIXED, ORIGIN, [0.5, 0, 0], [-0.5, 0, 0])
    hang(client, two)
    client.stepSimulation()
    yield client.removeBody(two)
    yield client.getNumConstraints()
    yield client.stepSimulation()
    again = box(client, tmp_path, (1, 0, 1))
    yield again, hang(client, again)
    yield client.stepSimulation()


def errors(client, tmp_path):
    body = box(client, tmp_path)
    create = client.createConstraint
    yield seen(create, 99, -1, -1, -1, FIXED, ORIGIN, ORIGIN, ORIGIN)
    yield seen(create, body, 7, -1, -1, FIXED, ORIGIN, ORIGIN, ORIGIN)
    yield seen(create, body, -1, -1, -1, 9, ORIGIN, ORIGIN, ORIGIN)
    yield seen(create, body, -1)
    yield seen(create, body, -1, -1, -1, FIXED, ORIGIN, ORIGIN, ORIGIN, wrong=1)
    yield seen(create, body, -1, -1, -1, FIXED, "xyz", ORIGIN, ORIGIN)
    yield client.getNumConstraints()
    yield seen(client.changeConstraint, 5, maxForce=1), seen(client.changeConstraint)
    yield seen(client.removeConstraint, 5), seen(client.removeConstraint)
    yield seen(client.getConstraintInfo, 5), seen(client.getConstraintState, 5)
    yield seen(client.getConstraintUniqueId, 5), seen(client.getConstraintUniqueId)
    yield seen(client.stepSimulation, 1, 2), seen(client.stepSimulation, wrong=1)
    yield seen(client.resetJointState, body), seen(client.setGravity, 1)
    yield seen(client.removeBody), seen(client.removeBody, 99)
    yield seen(client.restoreState, 99), seen(client.setTimeStep)
    yield seen(client.changeDynamics, 99, -1, mass=1), seen(client.changeDynamics)
    yield seen(client.setJointMotorControl2, body, 5, pybullet.VELOCITY_CONTROL)
    yield seen(client.applyExternalForce, body)
    yield seen(client.calculateMassMatrix, 99, [])


def descriptions(client, tmp_path):
    body, other = box(client, tmp_path), box(client, tmp_path, (1, 0, 1))
    made = client.createConstraint(
        parentBodyUniqueId=body,
        parentLinkIndex=-1,
        childBodyUniqueId=other,
        childLinkIndex=-1,
        jointType=FIXED,
        jointAxis=(0.6, 0, 0.8),
        parentFramePosition=(0.1, 0.2, 0.3),
        childFramePosition=(0.4, 0.5, 0.6),
        parentFrameOrientation=(0, 0, 0.6, 0.8),
        childFrameOrientation=(0.6, 0, 0, 0.8),
    )
    yield client.getConstraintInfo(made)
    yield client.changeConstraint(made, (0.1, 0, 0), (0, 0.6, 0, 0.8), 70.0)
    yield client.getConstraintInfo(constraintUniqueId=made)
    yield client.changeConstraint(userConstraintUniqueId=made, erp=0.3)
    yield client.getConstraintInfo(made)
    plain, _ = linkage(client, tmp_path)
    gear = client.createConstraint(plain, 0, plain, 2, GEAR, [0, 1, 0], ORIGIN, ORIGIN)
    yield client.getConstraintInfo(gear)
    client.changeConstraint(gear, gearRatio=-2, erp=0.1, relativePositionTarget=0.2, gearAuxLink=1)
    yield client.getConstraintInfo(gear)


def returns(client, tmp_path):
    body, made = linkage(client, tmp_path)
    yield client.setTimeStep(1 / 500)
    yield client.setPhysicsEngineParameter(fixedTimeStep=1 / 300, numSubSteps=2)
    yield client.getPhysicsEngineParameters()
    yield client.setRealTimeSimulation(1), client.setRealTimeSimulation(0)
    yield client.stepSimulation()
    yield len(client.getConstraintState(made)), client.getNumConstraints()
    yield client.enableJointForceTorqueSensor(body, 1, True)
    yield client.stepSimulation()
    yield [len(part) for part in client.getJointState(body, 1)[2:3]]
    yield client.changeDynamics(body, 0, mass=2.0, localInertiaDiagonal=[0.1, 0.1, 0.1])
    yield client.resetJointState(body, 0, 0.3), client.setGravity(0, 0, -1)
    yield client.resetJointStatesMultiDof(body, [0, 1], [[0.3], [0.1]], [[0.0], [0.0]])
    yield client.resetBasePositionAndOrientation(body, [0, 0, 0], [0, 0, 0, 1])
    yield client.setJointMotorControl2(body, 0, pybullet.TORQUE_CONTROL, force=1)
    yield client.setJointMotorControlArray(body, [0, 1], pybullet.TORQUE_CONTROL, forces=[1, 2])
    yield client.applyExternalForce(body, 1, [0, 0, 1], ORIGIN, pybullet.LINK_FRAME)
    yield client.calculateMassMatrix(body, [0.1, 0.2, 0.3])


def snapshots(client, tmp_path):
    body = box(client, tmp_path)
    made = hang(client, body)
    kept = client.saveState()
    start = client.getBasePositionAndOrientation(body)
    client.changeConstraint(made, [0.1, 0, 1], maxForce=30)
    for _ in range(5):
        client.stepSimulation()
    other = hang(client, body)
    yield client.restoreState(kept)
    yield client.getBasePositionAndOrientation(body) == start
    # neither the constraints nor their pivots and limits are part of a snapshot
    yield client.getNumConstraints(), client.getConstraintInfo(made), other
    yield client.removeState(kept)


def dependent(client, tmp_path):
    """Without constraints, or with Bullet's own alone, every number is Bullet's."""
    body, made = linkage(client, tmp_path)
    client.removeConstraint(made)
    gear = client.createConstraint(body, 0, body, 2, GEAR, [0, 1, 0], ORIGIN, ORIGIN)
    client.changeConstraint(gear, gearRatio=-1, erp=0.1, maxForce=50)
    for _ in range(50):
        client.stepSimulation()
    yield [client.getJointState(body, joint) for joint in range(3)]
    yield client.getConstraintState(gear)


SCENES = [ids, bodies, errors, descriptions, returns, snapshots, dependent]


@pytest.mark.parametrize("scene", SCENES)
def test_answers_are_bullets(tmp_path, scene):
    answers = []
    for kind in (BulletClient, Native):
        client = kind(pybullet.DIRECT)
        client.setAdditionalSearchPath(pybullet_data.getDataPath())
        client.setGravity(0, 0, -9.81)
        answers.append(list(scene(client, tmp_path)))
        client.disconnect()
    for ours, native in zip(*answers, strict=True):
        assert ours == native


def test_every_name_of_pybullet_is_there():
    assert set(dir(pybullet)) <= set(dir(module))
    for name in dir(pybullet):
        if name.startswith("__"):
            continue
        ours, native = getattr(module, name), getattr(pybullet, name)
        assert ours == native or callable(native), name


def test_a_star_import_brings_everything():
    names = {}
    exec("from bulletbridge.pybullet import *", names)  # noqa: S102  as scripts have it
    assert {name for name in dir(pybullet) if not name.startswith("_")} <= set(names)
    assert names["stepSimulation"] is module.stepSimulation


OF_THEIR_OWN = {"connect", "calculateInverseDynamics", "setJointMotorControl"}
"""Functions that have several lists of arguments, or one that depends on the first."""


def of_right_types(function, count):
    """So many arguments of types that PyBullet takes; nothing is done, for there is no client."""
    args = []
    while len(args) < count:
        for value in (0, 0.0, "", [0.0] * 3):
            try:
                function(*args, value, physicsClientId=1000)
            except TypeError as error:
                if "missing required" not in str(error):
                    continue
            except pybullet.error:
                pass
            args.append(value)
            break
        else:
            raise AssertionError(f"{function.__name__}: argument {len(args) + 1}")
    return args


def place_of(function, args, parameter):
    """Where PyBullet has a parameter, from 1 on."""
    with pytest.raises(TypeError) as caught:
        function(*args, **{parameter: 0})
    told = re.search(rf"given by name \('{parameter}'\) and position \((\d+)\)", str(caught.value))
    return int(told[1]) if told else str(caught.value)


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() & vars(pybullet).keys() - OF_THEIR_OWN))
def test_arguments_have_pybullets_names_and_places(name):
    with pytest.raises(TypeError) as caught:
        getattr(pybullet, name)(*[None] * 100)
    most = re.search(r"takes at most (\d+) argument", str(caught.value))
    assert most
    function = FUNCTIONS[name]
    if isinstance(function, Direct):
        assert function.count == int(most[1]) - 1  # physicsClientId is the last one
    elif hasattr(function, "parameters"):
        native, names = getattr(pybullet, name), function.parameters
        assert len(names) == int(most[1]) - 1
        args = of_right_types(native, len(names))
        places = [place_of(native, args, parameter) for parameter in names]
        assert places == [*range(1, len(names) + 1)]
