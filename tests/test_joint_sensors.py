"""Joint reactions that programs read in exact mode, against Bullet's own sensors."""

import numpy as np
import pybullet
import pybullet_data
import pytest
from numpy.testing import assert_allclose
from support import urdf_builder as urdf
from support.bullet_worlds import quat

from bulletbridge.drop_in.client import BulletClient

DT = 1e-6
"""In a step as short as this impulses are mean forces, and nothing moves."""
FLAGS = pybullet.URDF_USE_INERTIA_FROM_FILE
KINDS = ("revolute", "prismatic", "fixed", "spherical")


def arm_at_rest(tmp_path, kinds, seed, exact):
    """A client, and a chain at rest in a random pose with a sensor on every joint."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "chain.urdf"
    path.write_text(urdf.random_tree(rng, 7, kinds, limited=False))
    client = BulletClient(pybullet.DIRECT)
    client.setGravity(0.5, -1.0, -9.81)
    client.setPhysicsEngineParameter(
        fixedTimeStep=DT, numSolverIterations=1000, solverResidualThreshold=0.0
    )
    body = client.loadURDF(str(path), [0, 0, 1], quat(rng), useFixedBase=True, flags=FLAGS)
    for joint in range(-1, client.getNumJoints(body)):
        client.changeDynamics(body, joint, linearDamping=0, angularDamping=0, jointDamping=0)
    for joint in range(client.getNumJoints(body)):
        client.enableJointForceTorqueSensor(body, joint, 1)
        kind = client.getJointInfo(body, joint)[2]
        if kind == pybullet.JOINT_SPHERICAL:
            client.resetJointStateMultiDof(body, joint, quat(rng), [0, 0, 0])
            client.setJointMotorControlMultiDof(
                body, joint, pybullet.POSITION_CONTROL, [0, 0, 0, 1], force=[0, 0, 0]
            )
        elif kind != pybullet.JOINT_FIXED:
            client.resetJointState(body, joint, rng.normal())
            client.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
    if exact:
        client.setBridgeMode("exact", body)
    return client, body, rng


def measured(client, body):
    """All reactions (n, 6)."""
    joints = range(client.getNumJoints(body))
    several = client.getJointStates(body, joints)
    found = [state[2] for state in client.getJointStatesMultiDof(body, joints)]
    for joint, state in enumerate(several):
        kind = client.getJointInfo(body, joint)[2]
        if kind not in (pybullet.JOINT_SPHERICAL, pybullet.JOINT_FIXED):
            assert state[2] == found[joint] == client.getJointState(body, joint)[2]
        assert client.getJointStateMultiDof(body, joint)[2] == found[joint]
    return np.array(found)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", ["limp", "torque", "velocity", "push"])
def test_sensors_read_at_rest_what_bullets_do(tmp_path, how, seed):
    """Child's inertial axes, its centre of mass, motors left out, given torques not.

    Bullet's leave out some of what goes with the squares of rates, so chains are at rest. Its motor
    of a slider pushes both links in their centres, which turns them, and balls move on as if there
    were no motors elsewhere: with motors there are neither.
    """
    found = []
    kinds = ("revolute", "fixed") if how == "velocity" else KINDS
    for exact in (False, True):
        client, body, rng = arm_at_rest(tmp_path, kinds, seed, exact)
        for joint in range(client.getNumJoints(body)):
            if client.getJointInfo(body, joint)[2] not in (0, 1):
                continue
            if how == "torque":
                client.setJointMotorControl2(
                    body, joint, pybullet.TORQUE_CONTROL, force=rng.normal()
                )
            if how == "velocity":
                client.setJointMotorControl2(
                    body, joint, pybullet.VELOCITY_CONTROL, targetVelocity=1.0, force=5.0
                )
        if how == "push":
            force, at = rng.normal(size=3).tolist(), rng.normal(size=3).tolist()
            last = client.getNumJoints(body) - 1
            client.applyExternalForce(body, last, force, at, pybullet.LINK_FRAME)
            client.applyExternalForce(body, last // 2, force, at, pybullet.WORLD_FRAME)
            client.applyExternalTorque(body, last, at, pybullet.WORLD_FRAME)
        client.stepSimulation()
        found.append(measured(client, body))
        client.disconnect()
    native, ours = found
    assert_allclose(ours, native, atol=1e-4 * np.abs(native).max())


def test_nothing_is_told_without_a_sensor_or_a_step(tmp_path):
    client, body, _ = arm_at_rest(tmp_path, KINDS, 1, True)
    assert not measured(client, body).any()
    client.stepSimulation()
    assert np.any(client.getJointStateMultiDof(body, 1)[2])
    client.enableJointForceTorqueSensor(body, 1, False)
    client.stepSimulation()
    assert not np.any(client.getJointStateMultiDof(body, 1)[2])
    client.disconnect()


def test_a_sensor_on_what_stands_still_has_bullets_own_steps(tmp_path):
    """Nothing of ours bears on it there, but what Bullet's steps find."""
    client, _, _ = arm_at_rest(tmp_path, KINDS, 1, True)
    path = tmp_path / "stand.urdf"
    load = urdf.inertial(2.0)
    on_top = urdf.link("top", load), urdf.joint("j", "fixed", "base", "top")
    path.write_text(urdf.robot(urdf.link("base"), *on_top))
    stand = client.loadURDF(str(path), useFixedBase=True, flags=FLAGS)
    client.enableJointForceTorqueSensor(stand, 0, 1)
    client.stepSimulation()
    weight = 2.0 * np.linalg.norm([0.5, 1.0, 9.81])
    borne = client.getJointStateMultiDof(stand, 0)[2][:3]
    assert_allclose(np.linalg.norm(borne), weight, rtol=1e-6)
    client.disconnect()


def test_the_wrist_of_an_arm_bears_what_the_arm_has_grasped(tmp_path):
    """The weight of the load, which a constraint holds, and of the last link."""
    client = BulletClient(pybullet.DIRECT)
    client.setGravity(0, 0, -9.81)
    arm = client.loadURDF(f"{pybullet_data.getDataPath()}/kuka_iiwa/model.urdf", useFixedBase=True)
    for joint, angle in enumerate([0, 0.5, 0, -1.2, 0, 1.4, 0]):
        client.resetJointState(arm, joint, angle)
        client.setJointMotorControl2(arm, joint, pybullet.POSITION_CONTROL, angle, force=300)
    at, turn = client.getLinkState(arm, 6, computeForwardKinematics=1)[:2]
    below = [at[0], at[1], at[2] - 0.2]
    load = client.createMultiBody(2.0, -1, -1, below)
    client.changeDynamics(load, -1, localInertiaDiagonal=[0.01] * 3)
    there = client.multiplyTransforms(*client.invertTransform(at, turn), below, [0, 0, 0, 1])
    end = [0, 0, 0], there[0], [0, 0, 0], there[1]
    client.createConstraint(arm, 6, load, -1, pybullet.JOINT_FIXED, *end)
    client.setBridgeMode("exact", arm)
    client.enableJointForceTorqueSensor(arm, 6, 1)
    for _ in range(480):
        client.stepSimulation()
    read = np.array(client.getJointState(arm, 6)[2])
    turn = client.getLinkState(arm, 6, computeForwardKinematics=1)[1]
    force = np.reshape(client.getMatrixFromQuaternion(turn), (3, 3)) @ read[:3]
    weight = 9.81 * (2.0 + client.getDynamicsInfo(arm, 6)[0])
    # the arm has settled under its position control to that within two seconds
    assert_allclose(force, [0, 0, weight], atol=1e-3)
    client.disconnect()


def lever_of(client, body, joint):
    """From the joint to the centre of mass of the link that it carries (3,), inertial axes."""
    info = client.getDynamicsInfo(body, joint)
    return np.reshape(client.getMatrixFromQuaternion(info[4]), (3, 3)).T @ info[3]


@pytest.mark.parametrize("limit", [1e9, 0.3])
def test_along_its_axis_a_geared_hinge_shows_the_torque_it_is_given(tmp_path, limit):
    """Bullet's own sensors know nothing of gears; what a gear does is left out as a motor's is."""
    client, body, _ = arm_at_rest(tmp_path, ("revolute",), 3, True)
    gear = client.createConstraint(
        body, 1, body, 4, pybullet.JOINT_GEAR, [0, 1, 0], [0, 0, 0], [0, 0, 0]
    )
    client.changeConstraint(gear, gearRatio=-0.7, maxForce=limit)
    given = [0.0, 0.5, 0.0, -0.3, 0.2, 0.0, 0.0]
    for joint, torque in enumerate(given):
        client.setJointMotorControl2(body, joint, pybullet.TORQUE_CONTROL, force=torque)
    client.setJointMotorControl2(body, 5, pybullet.VELOCITY_CONTROL, targetVelocity=1, force=4)
    client.stepSimulation()
    axes = np.array([client.getJointInfo(body, joint)[13] for joint in range(7)])
    read = measured(client, body)
    levers = [lever_of(client, body, joint) for joint in range(7)]
    along = np.sum(axes * (read[:, 3:] + np.cross(levers, read[:, :3])), axis=1)
    assert_allclose(along, given, atol=1e-6 * np.abs(read).max())
    assert client.getJointState(body, 5)[3] == pytest.approx(4.0)
    client.disconnect()


def test_a_state_that_is_restored_has_the_sensors_of_its_step(tmp_path):
    """To the bit, a push of that step too."""
    client, body, _ = arm_at_rest(tmp_path, KINDS, 3, exact=True)
    joints = range(client.getNumJoints(body))

    def told():
        return [client.getJointState(body, joint)[2:] for joint in joints]

    def push(size):
        client.applyExternalForce(body, joints[-1], [0, size, 0], [0.1, 0, 0], pybullet.LINK_FRAME)
        client.stepSimulation()

    push(50.0)
    kept, expected = client.saveState(), told()
    push(-80.0)
    client.stepSimulation()
    assert told() != expected
    client.restoreState(kept)
    assert told() == expected
    client.disconnect()
