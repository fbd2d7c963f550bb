"""Exact mode of the drop-in client: our step for its bodies, Bullet's for the rest."""

import warnings
from itertools import pairwise

import numpy as np
import pybullet
import pybullet_data
import pytest
from pybullet_utils.bullet_client import BulletClient as Native
from support import urdf_builder as urdf
from support.bullet_worlds import quat
from support.urdf_builder import random_tree
from test_client import FLAGS, TIPS, linkage, tips

from bulletbridge import Frame, JointModel, LoopJoint, attach
from bulletbridge.bullet.shaped_bodies import ShapedBody
from bulletbridge.drop_in.actions import Actions
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import session_of
from bulletbridge.errors import BulletBridgeWarning

KINDS = ("revolute", "continuous", "prismatic", "spherical", "fixed")


def free_tree(client, path, seed, fixed, off=True):
    """A tree in a random state, its motors off."""
    rng = np.random.default_rng(seed)
    client.setGravity(0.5, -1.0, -9.81)
    body = client.loadURDF(
        str(path), rng.normal(0, 1, 3), quat(rng), useFixedBase=fixed, flags=FLAGS
    )
    client.changeDynamics(body, -1, linearDamping=0.1, angularDamping=0.3)
    if not fixed:
        client.resetBaseVelocity(body, rng.normal(size=3), rng.normal(size=3))
    for joint in range(client.getNumJoints(body)):
        kind = client.getJointInfo(body, joint)[2]
        if kind == pybullet.JOINT_SPHERICAL:
            client.resetJointStateMultiDof(body, joint, quat(rng), rng.normal(size=3).tolist())
            if off:
                client.setJointMotorControlMultiDof(
                    body, joint, pybullet.POSITION_CONTROL, [0, 0, 0, 1], force=[0, 0, 0]
                )
        elif kind != pybullet.JOINT_FIXED:
            client.resetJointState(body, joint, rng.normal(0, 0.4), rng.normal())
            if off:
                client.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
    return body


def act(client, body, rng):
    """Joint torques and external forces in every way that PyBullet has for them."""
    joints = [
        joint
        for joint in range(client.getNumJoints(body))
        if client.getJointInfo(body, joint)[2] in (pybullet.JOINT_REVOLUTE, 1)
    ]
    for joint in range(client.getNumJoints(body)):
        if client.getJointInfo(body, joint)[2] == pybullet.JOINT_SPHERICAL:
            client.setJointMotorControlMultiDof(
                body, joint, pybullet.TORQUE_CONTROL, force=rng.normal(size=3).tolist()
            )
    if joints:
        client.setJointMotorControl2(body, joints[0], pybullet.TORQUE_CONTROL, force=rng.normal())
        client.setJointMotorControlArray(
            body, joints, pybullet.TORQUE_CONTROL, forces=rng.normal(size=len(joints)).tolist()
        )
    last = client.getNumJoints(body) - 1
    # Bullet applies external forces at the poses of the step before, unless these are asked for
    client.getLinkState(body, last, computeForwardKinematics=1)
    for frame in (pybullet.WORLD_FRAME, pybullet.LINK_FRAME):
        client.applyExternalForce(body, last, rng.normal(size=3), rng.normal(0, 0.3, 3), frame)
        client.applyExternalTorque(body, last, rng.normal(size=3), frame)


def state(client, body):
    """All numbers of a body's state."""
    found = [*client.getBasePositionAndOrientation(body), *client.getBaseVelocity(body)]
    joints = range(client.getNumJoints(body))
    found += [part for j in joints for part in client.getJointStateMultiDof(body, j)[:2]]
    return np.concatenate([np.ravel(part) for part in found if len(part)])


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_a_tree_moves_as_bullet_moves_it(connect, tmp_path, seed, fixed):
    """Torques, forces and link damping; 20 steps, each equal to 1e-13, errors may grow."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "tree.urdf"
    path.write_text(random_tree(rng, 5, KINDS, limited=False))
    ends = []
    for kind in (BulletClient, Native):
        client = connect(kind)
        body = free_tree(client, path, seed, fixed)
        if kind is BulletClient:
            client.setBridgeMode("exact", body)
        forces = np.random.default_rng(seed)
        for _ in range(20):
            act(client, body, forces)
            client.stepSimulation()
        ends.append(state(client, body))
    assert np.abs(ends[0] - ends[1]).max() < 1e-10 * max(1.0, np.abs(ends[1]).max())


def test_dampers_of_joints_act_at_the_end_of_a_step(connect, tmp_path):
    """Bullet's step takes D v0, ours D v1: (I + dt D) v1 = I v1_of_Bullet + dt D v0."""
    damping, rate, mass, arm, moment = 0.4, 2.0, 1.5, 0.3, 0.02
    path = tmp_path / "arm.urdf"
    content = urdf.inertial(mass, (moment, moment, moment), (arm, 0, 0))
    path.write_text(urdf.one_joint(child=content, axis="0 1 0", damping=damping))
    found = []
    for kind in (BulletClient, Native):
        client = connect(kind)
        client.setGravity(0, 0, -9.81)
        body = client.loadURDF(str(path), useFixedBase=True, flags=FLAGS)
        client.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
        client.setJointMotorControl2(body, 0, pybullet.VELOCITY_CONTROL, force=0)
        client.resetJointState(body, 0, 0.5, rate)
        if kind is BulletClient:
            client.setBridgeMode("exact", body)
        client.stepSimulation()
        found.append(client.getJointState(body, 0)[1])
    ours, theirs = found
    inertia, D = moment + mass * arm**2, damping / 240
    assert (inertia + D) * ours == pytest.approx(inertia * theirs + D * rate, abs=1e-12)
    assert abs(ours - theirs) > 1e-4  # the difference is there to be seen


def test_a_loop_moves_as_its_system(connect, tmp_path):
    client = connect()
    body, _ = linkage(client, tmp_path)
    client.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
    client.setBridgeMode("exact")
    client.stepSimulation()
    twin = connect(Native)
    other, made = linkage(twin, tmp_path)
    info = twin.getConstraintInfo(made)
    for joint in range(3):
        twin.resetJointState(other, joint, *client.getJointState(body, joint)[:2])
    names = [twin.getJointInfo(other, link)[12].decode() for link in TIPS]
    ends = [Frame(n, (0, 0, -length)) for n, length in zip(names, TIPS.values(), strict=True)]
    assert info[4] == pybullet.JOINT_POINT2POINT
    twin.removeConstraint(made)
    tip = LoopJoint("tip", JointModel.BALL, *ends)
    how = {"client": twin._client, "integrator": "semi_implicit_euler"}
    system = attach(other, [tip], **how)
    system.assemble(
        q={name: client.getJointState(body, k)[0] for k, name in enumerate(["crank"])},
        v={name: client.getJointState(body, k)[1] for k, name in enumerate(["crank"])},
    )
    for _ in range(100):
        client.stepSimulation()
        system.step()
        assert tips(client, body) < 1e-12
    assert np.abs(state(client, body) - state(twin, other)).max() < 1e-10


def test_the_rest_of_the_world_is_bullets(connect, tmp_path):
    ends = []
    for kind in (BulletClient, Native):
        client = connect(kind)
        client.setAdditionalSearchPath(pybullet_data.getDataPath())
        client.loadURDF("plane.urdf", [5, 5, 0])
        cube = client.loadURDF("cube_small.urdf", [5, 5, 0.3])
        linkage(client, tmp_path)
        if kind is BulletClient:
            client.setBridgeMode("exact")
        for _ in range(100):
            client.stepSimulation()
        ends.append(state(client, cube))
    assert np.array_equal(*ends)


def test_modes_can_be_changed_on_the_way(connect, tmp_path):
    client = connect()
    body, _ = linkage(client, tmp_path)
    for mode in ("exact", "filter", "exact", "native", "filter"):
        before = state(client, body)
        client.setBridgeMode(mode, body)
        for _ in range(10):
            client.stepSimulation()
            assert mode == "native" or tips(client, body) < 1e-12
        assert np.abs(state(client, body) - before).max() < 1.0


def test_a_reset_is_seen(connect, tmp_path):
    client = connect()
    body, _ = linkage(client, tmp_path)
    client.setBridgeMode("exact")
    client.stepSimulation()
    start = client.saveState()
    runs = []
    for _ in range(2):
        for _ in range(20):
            client.stepSimulation()
        runs.append(state(client, body))
        client.restoreState(start)
    assert np.abs(runs[0] - runs[1]).max() < 1e-12
    client.resetJointState(body, 0, 1.0, 0.0)
    client.stepSimulation()
    assert tips(client, body) < 1e-12


def test_what_exact_steps_do_not_have_is_left_to_bullet(connect):
    """With one warning; from then on every number is that of filter mode."""
    runs = []
    for mode in ("exact", "filter"):
        client = connect()
        client.setGravity(0, 0, -9.81)
        path = f"{pybullet_data.getDataPath()}/humanoid/humanoid.urdf"
        body = client.loadURDF(path, globalScaling=0.25, flags=pybullet.URDF_MAINTAIN_LINK_ORDER)
        zero = [0, 0, 0]
        client.createConstraint(body, -1, -1, -1, pybullet.JOINT_FIXED, zero, zero, zero)
        kinds = [client.getJointInfo(body, j)[2] for j in range(client.getNumJoints(body))]
        joints = [j for j, kind in enumerate(kinds) if kind != pybullet.JOINT_FIXED]
        balls = [kinds[j] == pybullet.JOINT_SPHERICAL for j in joints]
        client.setBridgeMode(mode, body)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(20):
                client.setJointMotorControlMultiDofArray(
                    body,
                    joints,
                    pybullet.STABLE_PD_CONTROL,
                    targetPositions=[[0.1, 0, 0, 0.99] if ball else [0.1] for ball in balls],
                    positionGains=[100] * len(joints),
                    velocityGains=[10] * len(joints),
                    forces=[[50] * 3 if ball else [50] for ball in balls],
                )
                client.stepSimulation()
        found = [str(warning.message) for warning in told]
        assert ["has STABLE_PD_CONTROL" in text for text in found] == [True] * (mode == "exact")
        runs.append(state(client, body))
    assert np.array_equal(*runs)


def test_what_lies_on_a_belt_is_carried_by_bullets_step(connect):
    """A belt is a body without mass that is given a velocity, and put back, before every step.

    It is told with one warning, and every call is that of filter mode from the first step on.
    """
    ways, dt, speed = [], 1 / 240, 0.5
    for mode in ("filter", "exact"):
        client = connect()
        client.setGravity(0, 0, -9.81)
        place = [0, 0, 0.05], [0, 0, 0, 1]
        flat = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[2, 0.3, 0.05])
        belt = client.createMultiBody(0.0, flat, -1, *place)
        shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.05] * 3)
        boxes = [client.createMultiBody(0.5, shape, -1, [x, 0, 0.15]) for x in (-0.5, -0.2)]
        ends = [0.15, 0, 0], [-0.15, 0, 0]
        client.createConstraint(boxes[0], -1, boxes[1], -1, pybullet.JOINT_FIXED, [0] * 3, *ends)
        client.setBridgeMode(mode)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(120):
                client.resetBasePositionAndOrientation(belt, *place)
                client.resetBaseVelocity(belt, [speed, 0, 0])
                client.stepSimulation()
        found = [str(warning.message) for warning in told]
        assert ["moves what it touches" in text for text in found] == [True] * (mode == "exact")
        ways.append(client.getBasePositionAndOrientation(boxes[0])[0][0] + 0.5)
    assert ways[1] == pytest.approx(ways[0], abs=1e-6)
    assert ways[0] > 0.3 * speed * 120 * dt


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_a_fixed_base_that_is_given_a_velocity_leads_what_hangs_on_it(connect, mode):
    """It moves on as one that is put there before every step, with its constraint closed."""
    ends, dt, rate = ([0, 0.2, -0.25], [0, 0, 0.25]), 1 / 240, np.array([0.3, 0.0, -0.1])
    bobs = []
    for way in ("velocity", "places"):
        client = connect()
        client.setGravity(0, 0, -9.81)
        shape = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
        base = client.createMultiBody(0.0, shape, -1, [0, 0, 1])
        bob = client.createMultiBody(1.0, shape, -1, [0, 0.2, 0.5])
        client.createConstraint(base, -1, bob, -1, pybullet.JOINT_POINT2POINT, [0] * 3, *ends)
        client.setBridgeMode(mode)
        client.stepSimulation()
        for n in range(1, 25):
            if way == "velocity" and n == 1:
                client.resetBaseVelocity(base, rate.tolist(), [0, 0, 2.0])
            elif way == "places":
                axes = client.getQuaternionFromEuler([0, 0, 2.0 * n * dt])
                at = np.array([0, 0, 1.0]) + n * dt * rate
                client.resetBasePositionAndOrientation(base, at.tolist(), axes)
            client.stepSimulation()
            poses = [client.getBasePositionAndOrientation(body) for body in (base, bob)]
            pins = [
                client.multiplyTransforms(*pose, end, [0, 0, 0, 1])[0]
                for pose, end in zip(poses, ends, strict=True)
            ]
            assert pins[0] == pytest.approx(pins[1], abs=1e-6)  # told in single precision
        assert poses[0][0] == pytest.approx(np.array([0, 0, 1.0]) + 24 * dt * rate, abs=1e-6)
        bobs.append(np.hstack(poses[1]))
    # the frame has its velocity over the first step in one, from its end in the other
    assert bobs[0] == pytest.approx(bobs[1], abs=2 * dt * 0.5)


def test_a_fixed_base_that_leads_its_links_against_the_ground_is_told(connect, tmp_path):
    """No step of ours lets them in: Bullet makes the first one in which they touch.

    A rod at the lower limit of its slide goes down with its base, at 1 m/s, 4 mm a step.
    """
    ball = '<collision><geometry><sphere radius="0.05"/></geometry></collision>'
    path, dt, clearance = tmp_path / "slide.urdf", 1 / 240, 0.01
    path.write_text(
        urdf.robot(
            urdf.link("base", urdf.inertial(1.0, (0.01,) * 3)),
            urdf.link("rod", urdf.inertial(1.0, (0.01,) * 3) + ball),
            urdf.joint("slide", "prismatic", "base", "rod", axis="0 0 1", limits=(0.0, 1.0)),
        )
    )
    client = connect()
    client.setGravity(0, 0, -9.81)
    plane = client.createMultiBody(0.0, client.createCollisionShape(pybullet.GEOM_PLANE))
    robot = client.loadURDF(str(path), [0, 0, 0.05 + clearance], useFixedBase=True)
    shape = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
    bob = client.createMultiBody(1.0, shape, -1, [0.5, 0, 1])
    ends = [0.5, 0, 1 - 0.05 - clearance], [0] * 3
    client.createConstraint(robot, -1, bob, -1, pybullet.JOINT_POINT2POINT, [0] * 3, *ends)
    client.setBridgeMode("exact")
    client.stepSimulation()
    client.resetBaseVelocity(robot, [0, 0, -1.0])
    with pytest.warns(BulletBridgeWarning, match=f"'rod' against body {plane}; Bullet steps"):
        for n in range(1, 13):
            client.stepSimulation()
            depth = min([p[8] for p in client.getClosestPoints(plane, robot, 0.0)] + [0.0])
            if n * dt < clearance:
                assert depth == 0.0
            # Bullet lets in what comes in a step, and takes back a share of it in each
            assert depth > -2 * dt


MOTORS = {
    "rates": dict(controlMode=pybullet.VELOCITY_CONTROL, targetVelocity=0.7, force=500),
    "positions": dict(controlMode=pybullet.POSITION_CONTROL, targetPosition=0.4, force=500),
    "gains": dict(
        controlMode=pybullet.POSITION_CONTROL,
        targetPosition=0.4,
        targetVelocity=-0.2,
        positionGain=0.3,
        velocityGain=0.7,
        force=500,
    ),
    "as loaded": None,
    "too weak": dict(controlMode=pybullet.POSITION_CONTROL, targetPosition=0.4, force=0.5),
}


@pytest.mark.parametrize("command", MOTORS)
def test_motors_are_bullets(connect, tmp_path, command):
    """Bullet's iterations end at 1e-9 of the largest impulse, which is all that separates us."""
    rng = np.random.default_rng(7)
    path = tmp_path / "tree.urdf"
    path.write_text(random_tree(rng, 5, ("revolute", "prismatic"), limited=False))
    ends = []
    for kind in (BulletClient, Native):
        client = connect(kind)
        client.setPhysicsEngineParameter(numSolverIterations=1000, solverResidualThreshold=0)
        body = free_tree(client, path, 7, True, off=command != "as loaded")
        for joint in range(5 if command != "as loaded" else 0):
            client.setJointMotorControl2(body, joint, **MOTORS[command])
        if kind is BulletClient:
            client.setBridgeMode("exact", body)
        for _ in range(20):
            client.stepSimulation()
        ends.append(state(client, body))
    assert np.abs(ends[0] - ends[1]).max() < 1e-9 * max(1.0, np.abs(ends[1]).max())


AIMS = {
    "as loaded": None,
    "default gain": dict(targetPosition=[0.1, 0.2, -0.3, 0.9273618495495704]),
    "gains": dict(
        targetPosition=[0.5, -0.5, 0.5, 0.5],
        targetVelocity=[1, 2, 3],
        positionGain=0.3,
        velocityGain=0.2,
        force=[1e5, 0, 0],
    ),
    "rest": dict(targetPosition=[0, 0, 0, 1], positionGain=0, velocityGain=0, force=[1e4] * 3),
    "too weak": dict(targetPosition=[0.5, -0.5, 0.5, 0.5], force=[0.02, 5, 5]),
}


def test_a_command_that_is_given_again_acts_unless_another_came_between(connect, tmp_path):
    """A motor without a limit takes the rate that it is asked for within one step."""
    client = connect()
    (tmp_path / "arm.urdf").write_text(urdf.one_joint())
    body = client.loadURDF(str(tmp_path / "arm.urdf"), useFixedBase=True, flags=FLAGS)
    client.setBridgeMode("exact", body)
    velocity, one = pybullet.VELOCITY_CONTROL, client.setJointMotorControl2
    ways = {
        1.0: lambda: one(body, 0, velocity, targetVelocity=1.0, force=1e6),
        2.0: lambda: one(body, 0, controlMode=velocity, targetVelocity=2.0, force=1e6),
        3.0: lambda: client.setJointMotorControlArray(
            body, [0], velocity, targetVelocities=[3.0], forces=[1e6]
        ),
    }
    for several in ((1,), (1,), (2,), (1,), (3,), (1,), (1, 2), (1, 2, 1), (2, 3), (3, 2), (2,)):
        for rate in several:
            ways[rate]()
        client.stepSimulation()
        assert abs(client.getJointState(body, 0)[1] - several[-1]) < 1e-9


def test_torques_of_a_step_add_up_until_it_ends():
    """Also those that are given after somebody has asked for the others."""
    actions, control = Actions(), pybullet.TORQUE_CONTROL
    actions.command((0, 1, control), {"force": 0.5})
    assert [(b, j, f.tolist()) for b, j, f in actions.torques] == [(0, 1, [0.5])]
    actions.command_all((0, [1, 2], control), {"forces": [0.1, 0.2]})
    for _ in range(2):  # of several groups each asks
        assert [(j, f.tolist()) for _, j, f in actions.torques] == [
            (1, [0.5]),
            (1, [0.1]),
            (2, [0.2]),
        ]
    actions.end_step()
    assert not actions.torques
    actions.command((3, 0, control), {"force": 1.5})
    assert [(b, j, f.tolist()) for b, j, f in actions.torques] == [(3, 0, [1.5])]


def upright_chain():
    """URDF text of three links on spherical joints, whose principal axes are their own."""
    link = (
        '<link name="l{0}"><inertial><origin xyz="0.02 0 -0.1"/><mass value="1"/><inertia'
        ' ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )
    joint = (
        '<joint name="j{0}" type="spherical"><parent link="l{0}"/><child link="l{1}"/>'
        '<origin xyz="0 0 -0.3"/></joint>'
    )
    parts = [link.format(k) for k in range(4)] + [joint.format(k, k + 1) for k in range(3)]
    return f'<robot name="chain">{"".join(parts)}</robot>'


@pytest.mark.parametrize("erp", [0.2, 0.5])
@pytest.mark.parametrize("command", AIMS)
def test_motors_of_spherical_joints_are_bullets(connect, tmp_path, command, erp):
    """Torques and all; commands for one angle have no say in them.

    Bullet's limits act along the principal axes, ours along the link's, here the same.
    """
    rng = np.random.default_rng(7)
    path = tmp_path / "tree.urdf"
    kinds = ("revolute", "spherical", "spherical")
    path.write_text(random_tree(rng, 4, kinds, limited=False))
    if command == "too weak":
        path.write_text(upright_chain())
    ends = []
    for kind in (BulletClient, Native):
        client = connect(kind)
        client.setPhysicsEngineParameter(
            numSolverIterations=1000, solverResidualThreshold=0, erp=erp
        )
        body = free_tree(client, path, 7, True, off=command != "as loaded")
        joints = range(client.getNumJoints(body))
        balls = [j for j in joints if client.getJointInfo(body, j)[2] == pybullet.JOINT_SPHERICAL]
        assert balls
        for joint in balls if AIMS[command] else []:
            client.setJointMotorControlMultiDof(
                body, joint, pybullet.POSITION_CONTROL, **AIMS[command]
            )
            client.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
        if kind is BulletClient:
            client.setBridgeMode("exact", body)
        for _ in range(20):
            client.stepSimulation()
        torques = [np.array(client.getJointStateMultiDof(body, joint)[3]) for joint in balls]
        ends.append(np.concatenate([state(client, body), *torques]))
    assert np.abs(ends[0] - ends[1]).max() < 1e-9 * max(1.0, np.abs(ends[1]).max())


@pytest.mark.parametrize("several", [False, True])
def test_pd_control_is_a_torque_beside_the_motor(connect, tmp_path, several):
    """Until its force is zero; a motor, a torque and a reset of the state leave it alone."""
    rng = np.random.default_rng(3)
    path = tmp_path / "tree.urdf"
    path.write_text(random_tree(rng, 4, ("revolute", "prismatic"), limited=False))
    ends = []
    for kind in (BulletClient, Native):
        client = connect(kind)
        client.setPhysicsEngineParameter(numSolverIterations=1000, solverResidualThreshold=0)
        body = free_tree(client, path, 3, True)
        targets, forces = [0.3, -0.2, 0.1, 0.4], [2.0, 0.1, 1e5, 3.0]
        if several:
            gains = {"positionGains": [3.0] * 4, "velocityGains": [0.1] * 4}
            client.setJointMotorControlArray(
                body, range(4), pybullet.PD_CONTROL, targets, [0.1] * 4, forces, **gains
            )
        else:
            for joint in range(4):
                client.setJointMotorControl2(
                    body, joint, pybullet.PD_CONTROL, targets[joint], force=forces[joint],
                    positionGain=3.0, velocityGain=0.1,
                )  # fmt: skip
        client.setJointMotorControl2(body, 0, pybullet.POSITION_CONTROL, 0.2, force=0.3)
        if kind is BulletClient:
            client.setBridgeMode("exact", body)
        for k in range(30):
            if k == 10:
                client.setJointMotorControl2(body, 2, pybullet.PD_CONTROL, force=0)
            if k == 20:
                client.setJointMotorControl2(body, 1, pybullet.TORQUE_CONTROL, force=0.3)
                client.resetJointState(body, 3, 0.1, 0.0)
            client.stepSimulation()
        ends.append(state(client, body))
    assert np.abs(ends[0] - ends[1]).max() < 1e-9 * max(1.0, np.abs(ends[1]).max())


@pytest.mark.parametrize("share", [1.5, 3.0])
def test_gains_that_a_step_cannot_follow_are_told(connect, tmp_path, share):
    """A torque of -k times the rate multiplies it by 1 - k dt / I in a step: here by -0.5 or -2."""
    mass, arm, moment, dt = 1.5, 0.3, 0.02, 1 / 240
    path = tmp_path / "arm.urdf"
    content = urdf.inertial(mass, (moment, moment, moment), (arm, 0, 0))
    path.write_text(urdf.one_joint(child=content, axis="0 0 1"))
    client = connect()
    body = client.loadURDF(str(path), useFixedBase=True, flags=FLAGS)
    client.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
    client.changeDynamics(body, 0, linearDamping=0, angularDamping=0, jointDamping=0)
    client.setJointMotorControl2(body, 0, pybullet.VELOCITY_CONTROL, force=0)
    client.resetJointState(body, 0, 0.0, 1.0)
    client.setBridgeMode("exact", body)
    told: list[int] = []
    for step in range(20):
        rate = client.getJointState(body, 0)[1]
        assert rate == pytest.approx((1.0 - share) ** step, rel=1e-9)
        torque = -share * (moment + mass * arm**2) / dt * rate
        client.setJointMotorControl2(body, 0, pybullet.TORQUE_CONTROL, force=torque)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            client.stepSimulation()
        told += [step for one in caught if "goes to and fro" in str(one.message)]
    assert len(told) == (share > 2.0)
    for step in told:  # a few steps after it went by more than can be followed
        assert 1.5 < dt * 2.0 ** (step + 1) <= 1.5 * 2.0**4


def test_a_limit_stops_a_joint_of_a_closed_loop(connect, tmp_path):
    client = connect()
    body, _ = linkage(client, tmp_path)
    client.setBridgeMode("exact", body)
    client.stepSimulation()
    lower = client.getJointState(body, 0)[0] - 0.2
    client.changeDynamics(body, 0, jointLowerLimit=lower, jointUpperLimit=10)
    client.setJointMotorControl2(body, 0, pybullet.VELOCITY_CONTROL, targetVelocity=-2, force=50)
    for _ in range(60):
        client.stepSimulation()
        assert tips(client, body) < 1e-12
        assert client.getJointState(body, 0)[0] > lower - 1e-12
    position, rate, *_ = client.getJointState(body, 0)
    assert position == pytest.approx(lower, abs=1e-12)
    assert abs(rate) < 1e-12


def box(client, folder, name, place, mass=2.0):
    """A box of 0.2 m with its own inertia."""
    path = folder / f"{name}.urdf"
    moment = mass * 0.2**2 / 6
    path.write_text(
        f'<robot name="{name}"><link name="{name}"><inertial><mass value="{mass}"/><inertia'
        f' ixx="{moment}" iyy="{moment}" izz="{moment}" ixy="0" ixz="0" iyz="0"/></inertial>'
        '<collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link></robot>'
    )
    body = client.loadURDF(str(path), place, flags=FLAGS)
    client.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
    return body


def test_a_box_comes_to_rest_on_the_plane(connect, tmp_path):
    client = connect()
    client.setGravity(0, 0, -9.81)
    client.loadURDF(f"{pybullet_data.getDataPath()}/plane.urdf")
    cube = box(client, tmp_path, "cube", [0, 0, 0.15])
    client.setBridgeMode("exact", cube)
    for _ in range(120):
        client.stepSimulation()
    at = state(client, cube)
    # round-off of the box's shape in Bullet, which keeps it in double precision
    assert np.abs(at - [0, 0, 0.1, 0, 0, 0, 1, *np.zeros(6)]).max() < 1e-9


@pytest.mark.parametrize("way", ["pair", "mask"])
def test_what_touches_falls_through_if_it_is_not_to_collide(connect, tmp_path, way):
    """Bullet is not asked about links that touch and go no further; said is said."""
    client = connect()
    client.setGravity(0, 0, -10)
    block = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.5, 0.5, 0.5))
    floor = client.createMultiBody(0, block, -1, (0, 0, -0.5))
    body = client.createMultiBody(1, block, -1, (0, 0, 0.5))
    client.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
    client.setBridgeMode("exact", body)
    client.stepSimulation()
    assert abs(client.getBaseVelocity(body)[0][2]) < 1e-9  # it stands
    if way == "pair":
        client.setCollisionFilterPair(floor, body, -1, -1, 0)
    else:
        client.setCollisionFilterGroupMask(body, -1, 0, 0)
    for _ in range(5):
        client.stepSimulation()
    assert abs(client.getBaseVelocity(body)[0][2] + 10 * 5 / 240) < 1e-12
    client.resetBasePositionAndOrientation(body, (0, 0, 0.5), (0, 0, 0, 1))
    if way == "pair":
        client.setCollisionFilterPair(floor, body, -1, -1, enableCollision=1)
    else:
        client.setCollisionFilterGroupMask(body, -1, 1, -1)
    client.stepSimulation()
    assert abs(client.getBaseVelocity(body)[0][2]) < 1e-9


def test_a_free_body_that_is_touched_joins_the_group(connect, tmp_path):
    client = connect()
    lower = box(client, tmp_path, "lower", [0, 0, 1.0])
    upper = box(client, tmp_path, "upper", [0.03, 0, 1.25], mass=1.0)
    client.setBridgeMode("exact", lower)
    client.resetBaseVelocity(upper, [0.2, 0, -1.0], [0, 0.5, 0])
    client.stepSimulation()
    assert set(session_of(client._client).groups) == {frozenset({lower})}
    masses = {lower: 2.0, upper: 1.0}
    for _ in range(30):
        client.stepSimulation()
    assert set(session_of(client._client).groups) == {frozenset({lower, upper})}
    total = sum(m * np.array(client.getBaseVelocity(b)[0]) for b, m in masses.items())
    assert total == pytest.approx([0.2, 0, -1.0], abs=1e-12)
    assert client.getBaseVelocity(lower)[0][2] < -0.1


@pytest.mark.parametrize("opening", [0.0, 1.0])  # [rad/s]
@pytest.mark.parametrize("phase", range(5))
def test_a_ball_that_hits_a_door_gives_it_all_its_momentum(connect, phase, opening):
    """About the hinges nothing else has a moment, wherever in a step they meet.

    The arm of an impulse is known to what the ball goes in a step, 3 % of it, and counts by the
    square.
    """
    client, arm = connect(), 0.6
    client.setBridgeMode("exact")
    leaf = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.4, 0.02, 0.9])
    door = client.createMultiBody(5.0, leaf, -1, [0.4, 0, 1])
    for z in (-0.7, 0.7):
        ends = [-0.4, 0, z], [0, 0, 1 + z]
        client.createConstraint(door, -1, -1, -1, pybullet.JOINT_POINT2POINT, [0] * 3, *ends)
    sphere = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.1)
    ball = client.createMultiBody(2.0, sphere, -1, [arm, -0.2 - 4 / 240 * phase / 5, 1])
    for body in (door, ball):
        damping = {"linearDamping": 0, "angularDamping": 0}
        client.changeDynamics(body, -1, lateralFriction=0, **damping)
    client.resetBaseVelocity(ball, [0, 4, 0])
    client.resetBaseVelocity(door, [0, 0.4 * opening, 0], [0, 0, opening])
    for _ in range(20):
        client.stepSimulation()
    inertia = client.getDynamicsInfo(door, -1)[2][2] + 5.0 * 0.4**2
    momentum = inertia * opening + 2.0 * 4.0 * arm
    spin = client.getBaseVelocity(door)[1][2]
    (x, y, _), _ = client.getBasePositionAndOrientation(ball)
    vx, vy, _ = client.getBaseVelocity(ball)[0]
    assert spin > 2.0
    assert inertia * spin + 2.0 * (x * vy - y * vx) == pytest.approx(momentum, rel=1e-3)


def test_scripts_change_all_joints_and_bullet_takes_no_limits_in_the_wrong_order(connect, tmp_path):
    """Fixed joints are among them; limits whose lower is above the upper leave those of before."""
    client = connect()
    path = tmp_path / "arm.urdf"
    path.write_text(
        urdf.robot(
            urdf.link("base"),
            urdf.link("a", urdf.inertial(1.0, (0.1, 0.1, 0.1), (0.3, 0, 0))),
            urdf.link("b"),
            urdf.joint("hip", "revolute", "base", "a", axis="0 1 0", limits=(-0.3, 0.3)),
            urdf.joint("bolt", "fixed", "a", "b", xyz=(0.5, 0, 0)),
        )
    )
    client.setGravity(0, 0, -9.81)
    body = client.loadURDF(str(path), useFixedBase=True, flags=FLAGS)
    client.setBridgeMode("exact", body)
    for number in range(client.getNumJoints(body)):
        client.changeDynamics(body, number, jointDamping=0.1, jointLowerLimit=1, jointUpperLimit=-1)
    client.setJointMotorControl2(body, 0, pybullet.VELOCITY_CONTROL, force=0)
    for _ in range(120):
        client.stepSimulation()
    assert client.getJointState(body, 0)[0] == pytest.approx(0.3, abs=1e-6)


def groups_of_boxes(client, tmp_path):
    """Six boxes, each a group of its own: four rest on a plane, one flies towards another."""
    client.setGravity(0, 0, -9.81)
    client.createMultiBody(0, client.createCollisionShape(pybullet.GEOM_PLANE))
    boxes = [box(client, tmp_path, f"box{k}", [0.6 * k, 0, 0.1]) for k in range(4)]
    boxes += [box(client, tmp_path, f"box{k}", [3.0 * k, 0, 5.0]) for k in (4, 5)]
    client.resetBaseVelocity(boxes[4], [11.0, 0, 0], [0, 0, 3.0])
    for each in boxes:
        client.setBridgeMode("exact", each)
    client.stepSimulation()
    return boxes


def test_groups_look_at_the_world_once_and_at_what_is_near(connect, tmp_path, monkeypatch):
    look, looks, ends = ShapedBody.strays, [], []
    monkeypatch.setattr(
        ShapedBody, "strays", lambda one, rests: looks.append(one.number) or look(one, rests)
    )
    for whole in (False, True):
        client = connect()
        boxes = groups_of_boxes(client, tmp_path)
        worlds = [group.joined.world for group in session_of(client._client).groups.values()]
        assert [len(world.detector().links) for world in worlds] == [2] * 6
        looks.clear()
        client.stepSimulation()
        assert sorted(looks) == list(range(len(boxes) + 1))
        for world in worlds if whole else ():
            world.surfaces()  # of all bodies, which are looked at from then on
            assert len(world.detector().links) == len(boxes) + 1
        for _ in range(75):
            client.stepSimulation()
        assert frozenset(boxes[4:]) in session_of(client._client).groups  # that have met
        ends.append([state(client, each) for each in boxes])
    assert np.array_equal(*ends)


def test_a_chain_that_whips_keeps_its_energy():
    """Four cubes fall from a row on a pin; in the third second their end whips round.

    A step of a second-order law may have the energy go to and fro by the square of the angle that
    anything turns by in it, of what gravity can give: 39 J.
    """
    p, dt = BulletClient(pybullet.DIRECT, mode="exact"), 1 / 240
    p.setGravity(0, 0, -9.81)
    p.setTimeStep(dt)
    shape = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.1] * 3)
    cubes = [p.createMultiBody(1.0, shape, -1, (0.5 * k, 0, 0)) for k in range(4)]
    pins = [(cubes[0], -1, (-0.25, 0, 0)), *((a, b, (0.25, 0, 0)) for a, b in pairwise(cubes))]
    for a, b, pin in pins:
        p.createConstraint(a, -1, b, -1, pybullet.JOINT_POINT2POINT, (0, 0, 0), pin, (-0.25, 0, 0))
    for cube in cubes:
        p.changeDynamics(cube, -1, linearDamping=0, angularDamping=0)
        p.setCollisionFilterGroupMask(cube, -1, 0, 0)

    def energy():
        total, fastest = 0.0, 0.0
        for cube in cubes:
            mass, _, inertia = p.getDynamicsInfo(cube, -1)[:3]
            v, w = map(np.array, p.getBaseVelocity(cube))
            height = p.getBasePositionAndOrientation(cube)[0][2]
            total += 0.5 * (mass * v @ v + inertia[0] * w @ w) + mass * 9.81 * height
            fastest = max(fastest, float(np.linalg.norm(w)))
        return total, fastest

    gain = sum(9.81 * (0.5 * k + 0.25) for k in range(4))  # from level with the pin to below it
    worst, turn = 0.0, 0.0
    for _ in range(600):
        p.stepSimulation()
        now, fastest = energy()
        worst, turn = max(worst, abs(now)), max(turn, fastest * dt)
    assert turn > 0.15  # it whips
    assert worst < turn**2 * gain
    p.disconnect()


@pytest.mark.parametrize("limit", [None, 0.3])
def test_what_fixed_constraints_hold_fast_carries_nothing_at_its_contacts(limit):
    """Balls side by side on a plane, each fixed to it: they bear nothing, unless they may give way.

    With a force limit below their weight the plane bears what that leaves, at least.
    """
    p = BulletClient(pybullet.DIRECT, mode="exact")
    p.setGravity(0, 0, -9.81)
    plane = p.loadURDF(f"{pybullet_data.getDataPath()}/plane.urdf")
    shape = p.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
    places = [(0.1 * k, 0.0, 0.05) for k in range(6)]
    balls = [p.createMultiBody(0.1, shape, -1, place) for place in places]
    p.stepSimulation()
    for ball, place in zip(balls, places, strict=True):
        held = p.createConstraint(
            ball, -1, plane, -1, pybullet.JOINT_FIXED, [0, 0, 1], [0] * 3, place
        )
        if limit is not None:
            p.changeConstraint(held, maxForce=limit)
    for _ in range(5):
        p.stepSimulation()
    (group,) = session_of(p._client).groups.values()
    contacts, rows = group.system.contacts(), group.system.complementarity.rows
    assert sum("world" in (contact.a, contact.b) for contact in contacts) == 6
    if limit is None:
        assert rows == 0 and {contact.state for contact in contacts} == {"held"}
        assert len(contacts) == 11 and not any(contact.force.any() for contact in contacts)
        for ball, place in zip(balls, places, strict=True):
            assert p.getBasePositionAndOrientation(ball)[0] == pytest.approx(place, abs=1e-12)
    else:
        borne = sum(
            abs(contact.force[2]) for contact in contacts if "world" in (contact.a, contact.b)
        )
        weight = 6 * 0.1 * 9.81
        assert weight - 6 * limit - 1e-6 <= borne <= weight + 6 * limit
    p.disconnect()


def test_islands_that_may_touch_something_step_as_one_does():
    """Pairs of balls on rods, which fall on a plane one after the other, by islands and not."""
    ends = []
    for solver in ("auto", "dense"):
        p = Native(pybullet.DIRECT)
        p.setGravity(0, 0, -9.81)
        p.createMultiBody(0, p.createCollisionShape(pybullet.GEOM_PLANE))
        shape = p.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
        names, pins = {}, []
        for k in range(24):
            for end in (0, 1):
                place = (k, 0.3 * end, 0.1 + 0.01 * k + 0.05 * end)
                names[f"{k}{end}"] = p.createMultiBody(0.5, shape, -1, place)
        for k in range(24):
            a, b = (Frame(f"{k}{end}/link0", (0, 0.15 - 0.3 * end, 0)) for end in (0, 1))
            pins.append(LoopJoint(f"pin{k}", JointModel.BALL, a, b))
        system = attach(names, pins, p._client, contacts=True, solver=solver, dt=1 / 240)
        system.assemble()
        states, touched = [], 0
        for _ in range(45):
            system.step()
            states.append(np.r_[system.q, system.v])
            touched += any(contact.force.any() for contact in system.contacts())
        assert 0 < touched < 45
        ends.append(np.array(states))
        p.disconnect()
        del p  # it would disconnect the next one
    assert np.abs(ends[0] - ends[1]).max() < 1e-9  # rounded otherwise, and then as hard an impact


def test_neighbours_on_a_string_turn_until_their_contact_has_a_lever():
    """A ball that is joined to another where they touch turns there freely, then lies on it.

    Turned by t about the joint it has a lever of r sin(t/2) on the contact, which then has the
    share sin(t/2)² / 1.4 of its own mobility: it counts from a hundredth on, at 0.24 rad. Within
    ten steps it is there, by no more than one of them further.
    """
    r, start, turns = 0.02, 0.05, {}
    for collide in (True, False):
        p = BulletClient(pybullet.DIRECT, mode="exact")
        p.setGravity(0, 0, -9.81)
        shape = p.createCollisionShape(pybullet.GEOM_SPHERE, radius=r)
        place, turn = (0, r + r * np.cos(start), -r * np.sin(start)), (-np.sin(start / 2), 0, 0)
        turn = (*turn, np.cos(start / 2))
        ends = p.createMultiBody(0, shape), -1, p.createMultiBody(0.05, shape, -1, place, turn), -1
        for body in ends[::2]:
            friction = {"spinningFriction": 1.3, "rollingFriction": 0.01}
            p.changeDynamics(body, -1, lateralFriction=1.3, angularDamping=0, **friction)
        p.createConstraint(*ends, pybullet.JOINT_POINT2POINT, [0] * 3, [0, r, 0], [0, -r, 0])
        p.setCollisionFilterPair(ends[0], ends[2], -1, -1, int(collide))
        turns[collide], fastest = [], 0.0
        for _ in range(20):
            p.stepSimulation()
            _, y, z = p.getBasePositionAndOrientation(ends[2])[0]
            turns[collide].append(np.arctan2(-z, y - r))
            fastest = max(fastest, float(np.linalg.norm(p.getBaseVelocity(ends[2])[1])))
        p.disconnect()
        if collide:
            reached, at_rest = turns[True][-1], np.ptp(turns[True][-5:])
            way = fastest / 240
    assert turns[True][:5] == pytest.approx(turns[False][:5], abs=1e-9)
    limit = 2 * np.arcsin(np.sqrt(0.014))
    assert limit - way < reached < limit + 2 * way and at_rest < 1e-3
    assert turns[False][-1] > 1.0


def test_contacts_that_a_string_holds_are_left_out_and_all_others_stay_theirs():
    """Six touching balls slide on a table: what this bears is what their momentum misses.

    Contacts of neighbours have no part in that. Their rows stand after those that are solved for,
    and each of these is still of its own contact and along its own axis: forces at the table, with
    friction, and weights are the change of momentum, in each of its three directions. That is so to
    round-off where none sticks, which would bear something while loops are closed besides.
    """
    p, dt, mass, balls = BulletClient(pybullet.DIRECT, mode="exact"), 1 / 240, 0.02, list[int]()
    p.setGravity(0, 0, -9.81)
    shape = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[1.0, 1.0, 0.1])
    p.createMultiBody(0, shape, basePosition=[0, 0, -0.1])
    shape = p.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.02)
    for k in range(6):
        place = [0.04 * k, 0.002 * (k % 3), 0.025 + 0.004 * k]
        balls.append(p.createMultiBody(mass, shape, basePosition=place))
        friction = {"rollingFriction": 1e-4, "spinningFriction": 1e-3}
        p.changeDynamics(balls[k], -1, linearDamping=0, angularDamping=0, **friction)
        p.resetBaseVelocity(balls[k], [0.3, 0.2, 0.0])
    for one, other in pairwise(balls):
        ends = [0.02, 0, 0], [-0.02, 0, 0]
        p.createConstraint(one, -1, other, -1, pybullet.JOINT_POINT2POINT, [0] * 3, *ends)

    def momentum():
        return mass * np.sum([p.getBaseVelocity(ball)[0] for ball in balls], axis=0)

    p.stepSimulation()
    (group,), told = session_of(p._client).groups.values(), 0
    weight = len(balls) * mass * np.array([0.0, 0.0, -9.81])
    for _ in range(35):
        before = momentum()
        p.stepSimulation()
        change, contacts, borne = momentum() - before, group.system.contacts(), np.zeros(3)
        for contact in contacts:
            if "world" in (contact.a, contact.b):
                borne += contact.force if contact.a == "world" else -contact.force
            assert contact.state != "held" or not contact.force.any()
        held = np.array([contact.state == "held" for contact in contacts])
        first, last = (group.system._inequalities.latest.contact_rows[n] for n in ("normal", "end"))
        if held.any() and not held.all():
            told += np.flatnonzero(held)[0] < np.flatnonzero(~held)[-1]
            assert first[: len(held)][held].min() >= last[: len(held)][~held].max()
        if not any(contact.state == "sticking" for contact in contacts):
            size = dt * (np.abs(borne).max() - weight[2])
            np.testing.assert_allclose(change, dt * (borne + weight), rtol=0, atol=1e-12 * size)
    assert told > 10  # some of these before others, as they were found
    assert group.system.complementarity.residual < 1e-10
    p.disconnect()


@pytest.mark.parametrize("late", [False, True])
def test_joints_that_bullet_would_cut_off_are_named_once(connect, tmp_path, late):
    """As natively every rate is cut off by itself; steps may be one compiled call by then."""
    client = connect()
    body, _ = linkage(client, tmp_path)
    client.setBridgeMode("exact")
    client.setJointMotorControl2(
        body, 0, pybullet.VELOCITY_CONTROL, targetVelocity=2.0, force=500.0
    )
    for step in range(12):
        if step == 6 * late:
            client.changeDynamics(body, 1, maxJointVelocity=3.0)
            client.stepSimulation()  # slower than that
            client.changeDynamics(body, 1, maxJointVelocity=0.5)
            with pytest.warns(BulletBridgeWarning, match=r"goes at .*its maxJointVelocity of 0\.5"):
                client.stepSimulation()
        client.stepSimulation()
    client.changeDynamics(body, 1, maxJointVelocity=100.0)
    client.stepSimulation()
    assert abs(client.getJointState(body, 0)[1]) > 1.9
