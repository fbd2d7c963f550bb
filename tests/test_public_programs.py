"""What programs that others have published do, beyond what a manual would think of."""

import warnings

import numpy as np
import pybullet
import pybullet_data
import pytest
from pybullet_utils.bullet_client import BulletClient as Native

from bulletbridge import attach
from bulletbridge.drop_in.session import session_of
from bulletbridge.errors import BulletBridgeWarning

MODES = ("filter", "exact")
DT, PARTS = 0.01, 4
NOWHERE = [0, 0, 0]


def at_rest(client, place=NOWHERE, mass=1.0, half=0.1):
    """A box that nothing brakes."""
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[half] * 3)
    body = client.createMultiBody(mass, shape, -1, place)
    client.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
    return body


def two_wheels(client, above=0.0):
    """Two bars on a base that stands still, far from each other, turning about z without motors.

    Their centres may lie above the ends of their axes.
    """
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.2] * 3)
    body = client.createMultiBody(
        0,
        -1,
        -1,
        NOWHERE,
        linkMasses=[1, 1],
        linkCollisionShapeIndices=[shape, shape],
        linkVisualShapeIndices=[-1, -1],
        linkPositions=[NOWHERE, [3, 0, 0]],
        linkOrientations=[[0, 0, 0, 1]] * 2,
        linkInertialFramePositions=[[0, 0, above]] * 2,
        linkInertialFrameOrientations=[[0, 0, 0, 1]] * 2,
        linkParentIndices=[0, 0],
        linkJointTypes=[pybullet.JOINT_REVOLUTE] * 2,
        linkJointAxis=[[0, 0, 1]] * 2,
    )
    for joint in (0, 1):
        client.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
        client.changeDynamics(body, joint, linearDamping=0, angularDamping=0)
    return body


INERTIA = 1.0 / 6.0 * 0.4**2  # of each wheel about its axis [kg m²]


@pytest.mark.parametrize("mode", MODES)
def test_a_constraint_without_effect_may_have_a_limit_and_a_frame_that_moves(connect, mode):
    client = connect()
    client.setBridgeMode(mode)
    client.setGravity(0, 0, -10)
    wheels, box = two_wheels(client), at_rest(client, [0, 2, 0])
    hung = client.createConstraint(
        wheels, 0, box, -1, pybullet.JOINT_POINT2POINT, NOWHERE, [0, 2, 0], NOWHERE
    )
    idle = client.createConstraint(
        wheels, -1, -1, -1, pybullet.JOINT_FIXED, NOWHERE, NOWHERE, NOWHERE
    )
    client.changeConstraint(idle, maxForce=50)
    for step in range(4):
        client.changeConstraint(idle, [0, 0, 0.1 * step], maxForce=50 + step)
        client.stepSimulation()
        assert client.getConstraintState(idle) == (0.0,) * 6  # Bullet's: what stands still
    state = client.saveState()
    client.restoreState(state)
    client.stepSimulation()
    # the other one carries the box: one kilogram at 10 m/s²
    assert client.getConstraintState(hung)[2] == pytest.approx(10.0, rel=1e-6)
    assert client.getBasePositionAndOrientation(wheels)[0] == (0, 0, 0)


def test_a_refused_call_is_an_error_of_pybullets(connect):
    client = connect()
    box = at_rest(client)
    with pytest.raises(pybullet.error, match="base link"):
        client.createConstraint(box, -1, -1, -1, pybullet.JOINT_GEAR, [0, 0, 1], NOWHERE, NOWHERE)


@pytest.mark.parametrize("mode", MODES)
def test_what_loses_its_mass_while_a_slider_holds_it_stands_still(connect, mode):
    client = connect()
    client.setBridgeMode(mode)
    box = at_rest(client)
    client.createConstraint(box, -1, -1, -1, pybullet.JOINT_PRISMATIC, [0, 0, 1], NOWHERE, NOWHERE)
    client.applyExternalForce(box, -1, [0, 0, 5], NOWHERE, pybullet.WORLD_FRAME)
    assert client.stepSimulation() == ()  # Bullet's, of whose solver nobody asked
    height = 5 * (1 / 240) ** 2
    assert client.getBasePositionAndOrientation(box)[0][2] == pytest.approx(height, rel=1e-9)
    client.changeDynamics(box, -1, mass=0)
    for _ in range(3):
        client.stepSimulation()
    assert client.getBasePositionAndOrientation(box)[0][2] == pytest.approx(height, rel=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_a_point_on_a_wheels_axis_does_not_stop_it(connect, mode):
    """It lies 1e-8 m beside it: poses that programs take frames from have their URDF's digits."""
    client = connect()
    client.setBridgeMode(mode)
    wheels, off = two_wheels(client, above=0.1), 1e-8
    pivots = [3 + off, 0, 0.1], [off, 0, 0]
    client.createConstraint(wheels, -1, wheels, 1, pybullet.JOINT_POINT2POINT, NOWHERE, *pivots)
    rate = 24.0
    client.setJointMotorControl2(
        wheels, 1, pybullet.VELOCITY_CONTROL, targetVelocity=rate, force=1e5
    )
    for _ in range(10):
        client.stepSimulation()
    # Bullet's own point, filter mode's predictor, brakes by 1e5 N at that lever
    assert client.getJointState(wheels, 1)[0] == pytest.approx(10 * rate / 240, rel=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_bounds_on_rates_of_many_motors_are_passed_by_as_in_bullet(connect, mode):
    """Single ones it heeds; in an array they may be numbers or lists of one."""
    client = connect()
    client.setBridgeMode(mode)
    wheels = two_wheels(client)
    client.createConstraint(
        wheels, 0, wheels, 0, pybullet.JOINT_POINT2POINT, NOWHERE, NOWHERE, NOWHERE
    )
    client.setBridgeMode(mode, wheels)
    for bounds in ([1e-3, 1e-3], [[1e-3], [1e-3]]):
        client.setJointMotorControlMultiDofArray(
            wheels,
            [0, 1],
            pybullet.POSITION_CONTROL,
            targetPositions=[[1.0], [1.0]],
            forces=[[1e5], [1e5]],
            maxVelocities=bounds,
        )
        client.stepSimulation()
    # a step takes the share 0.1 of what is left; Bullet's rounds in its 50 iterations
    for joint in (0, 1):
        assert client.getJointState(wheels, joint)[0] == pytest.approx(1 - 0.9**2, rel=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_bodies_are_read_again_only_where_changes_weigh(connect, mode):
    """As of what programs say of damping and friction at every step, the same or not."""
    client = connect()
    client.setBridgeMode(mode)
    box, shape = at_rest(client), [1.0, 2.0, 2.5]
    client.createConstraint(box, -1, -1, -1, pybullet.JOINT_POINT2POINT, *[NOWHERE] * 3)
    client.changeDynamics(box, -1, mass=2.0, lateralFriction=0.5)
    client.stepSimulation()
    groups = session_of(client._client).groups
    for change, anew in (
        ({"mass": 2.0, "linearDamping": 0}, False),
        ({"linearDamping": 0.1}, mode == "exact"),
        ({"lateralFriction": 0.7, "angularDamping": 0}, False),
        ({"localInertiaDiagonal": shape}, True),
        ({"mass": 2.0}, True),  # which makes the inertia that of the box again
    ):
        (group,) = groups.values()
        client.changeDynamics(box, -1, **change)
        client.resetBaseVelocity(box, NOWHERE, NOWHERE)
        client.applyExternalTorque(box, -1, [0, 0, 3], pybullet.WORLD_FRAME)
        client.stepSimulation()
        assert (list(groups.values()) != [group]) == anew
        inertia = client.getDynamicsInfo(box, -1)[2][2]
        assert client.getBaseVelocity(box)[1][2] == pytest.approx(3 / 240 / inertia, rel=1e-9)


@pytest.mark.parametrize("torque", (0.5, 2.0))
def test_substeps_have_bullets_forces_and_motor_limits(connect, torque):
    client = connect()
    client.setBridgeMode("exact")
    client.setPhysicsEngineParameter(fixedTimeStep=DT, numSubSteps=PARTS)
    wheels, box = two_wheels(client), at_rest(client, [0, 2, 0])
    gear = client.createConstraint(
        wheels, 0, wheels, 1, pybullet.JOINT_GEAR, [0, 0, 1], NOWHERE, NOWHERE
    )
    client.changeConstraint(gear, gearRatio=-1, maxForce=1000)
    client.setBridgeMode("exact", box)
    client.setJointMotorControl2(
        wheels, 0, pybullet.VELOCITY_CONTROL, targetVelocity=1e3, force=torque
    )
    client.applyExternalForce(box, -1, [3, 0, 0], NOWHERE, pybullet.LINK_FRAME)
    client.stepSimulation()
    # Bullet grants a motor its limit times the whole step in each part, and tells it as of one
    turn, rate, _, told = client.getJointState(wheels, 0)
    assert rate == pytest.approx(PARTS * torque * DT / (2 * INERTIA), rel=1e-9)
    assert told == pytest.approx(torque, rel=1e-9)
    # an acceleration that acts from each part's start on: v sum(k) / n, for k of n parts
    share = (PARTS + 1) / (2 * PARTS)
    assert turn == pytest.approx(rate * DT * share, rel=1e-9)
    assert client.getBaseVelocity(box)[0][0] == pytest.approx(3 * DT, rel=1e-9)
    x = client.getBasePositionAndOrientation(box)[0][0]
    assert x == pytest.approx(3 * DT**2 * share, rel=1e-9)


@pytest.mark.parametrize("erp", (0.5, 10.0))
def test_substeps_close_gears_as_bullet_does(connect, erp):
    """With more than all of a gap, as DRACO's knees ask for, all of it."""
    client = connect()
    client.setBridgeMode("exact")
    client.setPhysicsEngineParameter(fixedTimeStep=DT, numSubSteps=PARTS)
    wheels = two_wheels(client)
    gear = client.createConstraint(
        wheels, 0, wheels, 1, pybullet.JOINT_GEAR, [0, 0, 1], NOWHERE, NOWHERE
    )
    client.changeConstraint(gear, gearRatio=-1, maxForce=500, erp=erp)
    client.resetJointState(wheels, 0, 0.5)
    left = 0.5
    for _ in range(5):
        client.stepSimulation()
        left *= (1 - min(erp * 0.2, 1.0)) ** PARTS  # erp times the engine's, in each part
        difference = client.getJointState(wheels, 0)[0] - client.getJointState(wheels, 1)[0]
        assert difference == pytest.approx(left, rel=1e-9, abs=1e-12)


def test_a_frame_that_moves_arrives_at_the_end_of_a_step_of_parts(connect):
    client = connect()
    client.setBridgeMode("exact")
    client.setPhysicsEngineParameter(fixedTimeStep=DT, numSubSteps=PARTS)
    box = at_rest(client)
    held = client.createConstraint(box, -1, -1, -1, pybullet.JOINT_FIXED, NOWHERE, NOWHERE, NOWHERE)
    for step in range(1, 6):
        client.changeConstraint(held, [0.01 * step, 0, 0])
        client.stepSimulation()
        place, _ = client.getBasePositionAndOrientation(box)
        assert place[0] == pytest.approx(0.01 * step, abs=1e-7)  # told in single precision
        if step > 1:
            assert client.getBaseVelocity(box)[0][0] == pytest.approx(0.01 / DT, abs=1e-4)


def test_an_arm_reads_its_torques_in_steps_of_parts_as_bullets(connect):
    def read(client):
        client.setAdditionalSearchPath(pybullet_data.getDataPath())
        client.setGravity(0, 0, -9.81)
        client.setPhysicsEngineParameter(fixedTimeStep=DT, numSubSteps=PARTS)
        arm = client.loadURDF("kuka_iiwa/model.urdf", useFixedBase=True)
        pose = [0, 0.6, 0, -1.2, 0, 1.3, 0]
        for joint, value in enumerate(pose):
            client.resetJointState(arm, joint, value)
        load = at_rest(client, client.getLinkState(arm, 6)[0], half=0.02)
        for link in range(-1, 7):
            client.setCollisionFilterPair(arm, load, link, -1, 0)
        client.createConstraint(arm, 6, load, -1, pybullet.JOINT_FIXED, *[NOWHERE] * 3)
        for _ in range(100):
            for joint, value in enumerate(pose):
                client.setJointMotorControl2(
                    arm, joint, pybullet.POSITION_CONTROL, value, force=300
                )
            client.stepSimulation()
        return [client.getJointState(arm, joint)[3] for joint in range(7)]

    ours = connect()
    ours.setBridgeMode("exact")
    native = Native(pybullet.DIRECT)
    try:
        told = read(native)
    finally:
        native.disconnect()
    # Bullet's solver leaves 1e-3 of a torque of 10 N m, its poses 4e-5 rad
    np.testing.assert_allclose(read(ours), told, atol=1e-2)


def test_contact_with_cloth_leaves_constraints_closed(connect):
    client = connect()
    client.setAdditionalSearchPath(pybullet_data.getDataPath())
    client.resetSimulation(pybullet.RESET_USE_DEFORMABLE_WORLD)
    client.setBridgeMode("exact")
    client.setGravity(0, 0, -10)
    corner = [-0.5, -0.5, 1]
    ball = client.createMultiBody(
        0.5, client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05), -1, corner
    )
    client.loadSoftBody(
        "cloth_z_up.obj",
        basePosition=[0, 0, 1],
        scale=0.5,
        mass=1.0,
        useMassSpring=1,
        springElasticStiffness=40,
        useFaceContact=1,
    )
    held = client.createConstraint(ball, -1, -1, -1, pybullet.JOINT_FIXED, NOWHERE, NOWHERE, corner)
    with pytest.warns(BulletBridgeWarning, match="as in filter mode"):
        for step in range(1, 10):
            client.changeConstraint(held, [-0.5, -0.5, 1 + 0.002 * step])
            client.stepSimulation()
    assert client.getBridgeLoops()[held].exact
    place, _ = client.getBasePositionAndOrientation(ball)
    np.testing.assert_allclose(place, [-0.5, -0.5, 1.018], atol=1e-6)


def systems_of_one_body(client):
    number = client._client
    wheels, box = two_wheels(client), at_rest(client, [0, 5, 9])
    first = attach({"wheels": wheels, "box": box}, client=number)
    second = attach({"again": wheels}, client=number)
    return first, second


def test_two_systems_of_one_body_are_told_by_name(connect):
    former = Native(pybullet.DIRECT)
    number, gone = former._client, systems_of_one_body(former)
    for system in gone:
        system.step()
    former.disconnect()
    client = connect()
    assert client._client == number  # ids of bodies, too, are given again
    first, second = systems_of_one_body(client)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first.step()
        second.step()  # still where the other has it: nothing has moved
    second.tau[0] = 1.0
    second.step()
    said = "body 'wheels' is advanced by two systems, one of 'wheels', 'box' and one of 'again'"
    with pytest.warns(BulletBridgeWarning, match=said):
        first.step()
    with pytest.warns(BulletBridgeWarning, match="one of 'again' and one of 'wheels', 'box'"):
        second.step()
