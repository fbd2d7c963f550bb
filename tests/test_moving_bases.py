"""Bodies that stand still by themselves and are put elsewhere while something hangs on them."""

import math

import numpy as np
import pybullet
import pybullet_data
import pytest
from pybullet_utils.bullet_client import BulletClient as Native
from scipy.spatial.transform import Rotation

from bulletbridge import attach
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.errors import BulletBridgeWarning, StepError, WorldError

DT = 1 / 240
ARM = f"{pybullet_data.getDataPath()}/kuka_iiwa/model.urdf"
PLANE = f"{pybullet_data.getDataPath()}/plane.urdf"
READY = (0.0, 0.6, 0.0, -1.5, 0.0, 1.04, 0.0)
MODES = pytest.mark.parametrize("mode", ["filter", "exact"])
TIGHT = 1e-12
"""Promised of gaps [m, rad], for bodies of the size of a metre."""


def world(mode=None, gravity=(0.0, 0.0, -9.81)):
    """A world without damping to come."""
    client = Native(pybullet.DIRECT) if mode is None else BulletClient(pybullet.DIRECT, mode=mode)
    client.setGravity(*gravity)
    return client


def block(client, mass, place):
    """A box without damping that touches nothing."""
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.05, 0.03, 0.04))
    body = client.createMultiBody(mass, shape, -1, place)
    client.setCollisionFilterGroupMask(body, -1, 0, 0)
    client.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
    return body


def hang(client, kind, pivot=(0.0, 0.0, 0.5)):
    """A platform with fixed pose, and a block of 1 kg below it."""
    platform, body = block(client, 0, (0, 0, 1)), block(client, 1, (0, 0, 0.5))
    made = client.createConstraint(platform, -1, body, -1, kind, (0, 0, 1), (0, 0, 0), pivot)
    return platform, body, made


def trip(k):
    """Where a platform is after k steps."""
    t = k * DT
    turn = Rotation.from_rotvec([0.3 * t, 0.2 * math.sin(3 * t), -0.4 * t])
    return np.array([0.2 * math.sin(2 * t), 0.3 * t * t, 1 + 0.1 * math.sin(5 * t)]), turn


@MODES
def test_what_is_fixed_to_a_moving_platform_moves_as_one_body_with_it(mode):
    client = world(mode)
    platform, body, _ = hang(client, pybullet.JOINT_FIXED)
    client.stepSimulation()
    for k in range(1, 120):
        at, turn = trip(k)
        client.resetBasePositionAndOrientation(platform, at, turn.as_quat())
        client.stepSimulation()
        p, q = client.getBasePositionAndOrientation(body)
        assert np.abs(np.array(p) - at - turn.apply((0, 0, -0.5))).max() < TIGHT
        assert (Rotation.from_quat(q) * turn.inv()).magnitude() < TIGHT
        if k > 1:  # at first it jumps
            v, w = client.getBaseVelocity(body)
            was, before = trip(k - 1)
            spin = (turn * before.inv()).as_rotvec() / DT
            speed = (at - was) / DT + np.cross(spin, turn.apply((0, 0, -0.5)))
            # differences of numbers near one, of 1e-16 each, over a step
            assert np.abs(np.array(w) - spin).max() < 1e-11
            assert np.abs(np.array(v) - speed).max() < 1e-11
    at, _ = trip(119)
    client.stepSimulation()  # left alone it stands still
    assert np.abs(client.getBaseVelocity(body)).max() < 1e-11


@MODES
def test_a_platform_is_as_a_frame_in_the_world_that_is_moved(mode):
    """The same pendulum, its pivot moved by ``changeConstraint``; against finer steps.

    The error is of the first order in the step: some ways of a step, against the pendulum. Filter
    mode makes no other for the platform, though Bullet, which does not know that it moves, brakes
    what hangs on it in every step.
    """
    steps, way, length = 50, 0.7 * DT, 0.5
    per_way = way / length  # of positions [m] and of rates of up to 1 m/s and 1 rad/s
    true = swung("exact", "frame", steps, parts=16)
    for moved in ("platform", "frame"):
        for parts in (1, 4):
            assert np.abs(swung(mode, moved, steps, parts) - true).max() < 4 * per_way / parts


def swung(mode, moved, steps, parts=1):
    """Where a pendulum is, and how fast, after its pivot was moved for some steps of ``DT``."""
    client = world(mode)
    client.setTimeStep(DT / parts)
    if moved == "platform":
        platform, body, made = hang(client, pybullet.JOINT_POINT2POINT)
    else:
        body, platform = block(client, 1, (0, 0, 0.5)), -1
        made = client.createConstraint(
            body, -1, -1, -1, pybullet.JOINT_POINT2POINT, (0, 0, 1), (0, 0, 0.5), (0, 0, 1)
        )
    for k in range(steps * parts):
        at = trip(k / parts)[0].tolist()
        if moved == "platform":
            client.resetBasePositionAndOrientation(platform, at, (0, 0, 0, 1))
        else:
            client.changeConstraint(made, at)
        client.stepSimulation()
    p, q = client.getBasePositionAndOrientation(body)
    assert np.abs(p + Rotation.from_quat(q).apply((0, 0, 0.5)) - at).max() < TIGHT
    return np.concatenate([p, q, *client.getBaseVelocity(body)])


@MODES
def test_the_force_is_that_which_the_motion_takes(mode):
    """A platform that starts at 0.5 m/s gives a kilogram half a newton second in one step."""
    client = world(mode)
    platform, _, made = hang(client, pybullet.JOINT_FIXED)
    speed = 0.5
    shoves = []
    for k in range(4):
        # without moving at first, so that frames are known to move
        at = (max(k - 1, 0) * speed * DT, 0, 1)
        client.resetBasePositionAndOrientation(platform, at, (0, 0, 0, 1))
        client.stepSimulation()
        shoves.append(client.getConstraintState(made)[:3])
    force = speed / DT
    # Bullet's own step, which filter mode starts from, has the pivots apart by a step meanwhile
    within = 1e-9 * force if mode == "exact" else 0.01 * force
    assert abs(abs(shoves[2][0]) - force) < within
    assert abs(shoves[3][0]) < within
    assert all(abs(shove[2] + 9.81) < 1e-6 * force for shove in shoves)


@MODES
def test_an_arm_on_a_rail_takes_along_what_it_holds(mode):
    """Its joints do not feel the motion, as in Bullet; restoring a state goes on as before."""
    client = world(mode)
    arm = client.loadURDF(ARM, useFixedBase=True, flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
    for joint, angle in enumerate(READY):
        client.resetJointState(arm, joint, angle)
        client.setJointMotorControl2(
            arm, joint, pybullet.POSITION_CONTROL, targetPosition=angle, force=300
        )
    tip, _ = client.getLinkState(arm, 6)[:2]
    body = block(client, 1, (tip[0], tip[1], tip[2] - 0.2))
    place, turn = client.invertTransform(*client.getLinkState(arm, 6)[:2])
    frame = client.multiplyTransforms(place, turn, *client.getBasePositionAndOrientation(body))
    made = client.createConstraint(
        arm, 6, body, -1, pybullet.JOINT_FIXED, (0, 0, 0), frame[0], (0, 0, 0), frame[1]
    )

    def ride(first, last):
        for k in range(first, last):
            at, _ = trip(k)
            turn = Rotation.from_rotvec([0, 0, 0.3 * k * DT]).as_quat()
            client.resetBasePositionAndOrientation(arm, (at[0], at[1], 0), turn)
            client.stepSimulation()
        return client.getBasePositionAndOrientation(body), client.getJointStates(arm, range(7))

    ride(0, 60)
    info = client.getConstraintInfo(made)
    hand = client.getLinkState(arm, 6, computeForwardKinematics=True)[:2]
    held = client.multiplyTransforms(*hand, info[6], (0, 0, 0, 1))[0]
    # getConstraintInfo tells pivots in single precision
    assert np.abs(np.subtract(held, client.getBasePositionAndOrientation(body)[0])).max() < 1e-6
    angles = [state[0] for state in client.getJointStates(arm, range(7))]
    assert np.abs(np.subtract(angles, READY)).max() < 0.1  # what it holds pulls
    kept, first = client.saveState(), ride(60, 80)
    client.restoreState(kept)
    assert ride(60, 80) == first


@MODES
def test_a_state_goes_on_as_before_whatever_was_moved_since(mode):
    """A base that was moved after the state was saved for the first time, and is put back by it."""
    client = world(mode)
    platform, body, _ = hang(client, pybullet.JOINT_POINT2POINT, (0.1, 0.0, 0.5))

    def swing():
        for _ in range(60):
            client.stepSimulation()
        return client.getBasePositionAndOrientation(body), client.getBaseVelocity(body)

    swing()
    kept, first = client.saveState(), swing()
    client.resetBasePositionAndOrientation(platform, (0.03, 0, 1), (0, 0, 0, 1))
    swing()
    client.restoreState(kept)
    assert swing() == first


@MODES
def test_all_put_elsewhere_together_gets_no_velocity(mode):
    client = world(mode, (0, 0, 0))
    platform, body, _ = hang(client, pybullet.JOINT_FIXED)
    for k in range(3):
        client.resetBasePositionAndOrientation(platform, (k, 0, 1), (0, 0, 0, 1))
        client.resetBasePositionAndOrientation(body, (k, 0, 0.5), (0, 0, 0, 1))
        client.stepSimulation()
        assert np.abs(client.getBaseVelocity(body)).max() < TIGHT
        assert abs(client.getBasePositionAndOrientation(body)[0][0] - k) < TIGHT


@MODES
def test_a_jump_is_followed(mode):
    """Once, by half a metre: natively it takes a hundred steps."""
    client = world(mode)
    platform, body, _ = hang(client, pybullet.JOINT_FIXED)
    for jump in (0.5, 0.2, -0.7):
        client.stepSimulation()
        client.resetBasePositionAndOrientation(platform, (jump, 0, 1), (0, 0, 0, 1))
        client.stepSimulation()
        assert abs(client.getBasePositionAndOrientation(body)[0][0] - jump) < TIGHT
        client.stepSimulation()
        assert np.abs(client.getBaseVelocity(body)).max() < 1e-10


@pytest.mark.parametrize("moved", ["reset", "velocity", "pivot"])
def test_a_base_that_pulls_a_chain_taut_is_named(moved):
    """Two rods, 1.2 m with their joints in line, span 1 m until one end is taken 5 mm a step away.

    An end that is a pivot in the world is no base, and none is named.
    """
    client, way = world("exact"), 0.005
    platform, rods = block(client, 0, (0, 0, 0)), [block(client, 1, (x, 0, 0)) for x in (0.3, 0.9)]
    joined, last = pybullet.JOINT_POINT2POINT, (1.0, 0.0, 0.0)
    height = math.sqrt(0.6**2 - 0.5**2)  # of the joint in the middle
    for rod, x, tilt in zip(rods, (0.25, 0.75), (-1, 1), strict=True):
        turn = Rotation.from_rotvec([0, tilt * math.asin(height / 0.6), 0]).as_quat()
        client.resetBasePositionAndOrientation(rod, (x, 0, height / 2), turn)
    first, middle = (-0.3, 0.0, 0.0), (0.3, 0.0, 0.0)
    client.createConstraint(platform, -1, rods[0], -1, joined, (0, 0, 0), (0, 0, 0), first)
    client.createConstraint(rods[0], -1, rods[1], -1, joined, (0, 0, 0), middle, first)
    pivot = client.createConstraint(rods[1], -1, -1, -1, joined, (0, 0, 0), middle, last)
    client.stepSimulation()
    if moved == "velocity":
        client.resetBaseVelocity(platform, (-way / DT, 0, 0), (0, 0, 0))
    steps = 0
    with pytest.raises(StepError) as told:
        for steps in range(1, 60):
            if moved == "reset":
                client.resetBasePositionAndOrientation(platform, (-way * steps, 0, 0), (0, 0, 0, 1))
            elif moved == "pivot":
                client.changeConstraint(pivot, (1 + way * steps, 0, 0))
            client.stepSimulation()
    assert steps * way > 0.2 - 1e-9  # it has come to the end of its reach
    named = f"moved the base of body {platform} by {way:.3g} m and 0 rad since the last step"
    assert (named in str(told.value)) is (moved != "pivot")
    assert "the base of" in str(told.value) or moved == "pivot"
    client.disconnect()


def test_a_system_of_its_own_says_what_to_do():
    client = world()
    arm = client.loadURDF(ARM, useFixedBase=True, flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
    system = attach(arm, client=client._client)
    place, turn = client.getBasePositionAndOrientation(arm)
    client.resetBasePositionAndOrientation(arm, np.add(place, (0.2, 0, 0)), turn)
    with pytest.raises(WorldError, match="fixed base was moved by 0.2 m .* load it again"):
        system.read()


def test_friction_carries_along_what_lies_on_a_tray_that_is_moved_each_step():
    """A start at 2.3 m/s² lets nothing slip where mu is 0.5; Bullet's step must see the velocity.

    In the first step, of v = 4.7 mm/s, it sees only the share 0.2 that it closes of a gap, so that
    0.8 v dt = 0.016 mm are lost, and as much again until friction has caught up. Natively 0.013 mm
    are left in two seconds.
    """
    client = world("filter")
    flat = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.3, 0.2, 0.01))
    small = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.05, 0.05, 0.05))
    tray = client.createMultiBody(1, flat, -1, (0, 0, 0.5))
    box = client.createMultiBody(0.5, small, -1, (0, 0, 0.56))
    held = client.createConstraint(
        tray, -1, -1, -1, pybullet.JOINT_FIXED, (0, 0, 1), (0, 0, 0), (0, 0, 0.5)
    )

    def apart():
        on, under = (client.getBasePositionAndOrientation(body)[0] for body in (box, tray))
        return np.subtract(on, under)[0]

    for _ in range(30):
        client.stepSimulation()
    start = apart()
    for k in range(480):
        s = 0.004 * k * k / (k + 60)
        where = [0.3 * math.sin(s), 0, 0.5 + 0.1 * math.sin(s)]
        client.changeConstraint(held, where, maxForce=500)
        client.stepSimulation()
        told = client.getConstraintInfo(held)
        assert told[7] == tuple(where)
    assert abs(apart() - start) < 1e-4


@MODES
def test_what_is_coupled_out_of_place_is_moved_as_a_whole(mode):
    """A race car and a trailer, coupled 0.1 m apart: its steering stays, as motors hold it there.

    By what moves the least mass the wheels' inertia would turn both steering joints by 0.66 rad.
    """
    client = world(mode, gravity=(0.0, 0.0, 0.0))
    car = client.loadURDF(f"{pybullet_data.getDataPath()}/racecar/racecar.urdf", (0, 0, 1))
    steering = [
        joint for joint in range(client.getNumJoints(car))
        if b"steering_hinge" in client.getJointInfo(car, joint)[1]
    ]  # fmt: skip
    trailer = block(client, 1, (-0.7, 0, 1))
    client.createConstraint(
        car, -1, trailer, -1, pybullet.JOINT_POINT2POINT, (0, 0, 1), (-0.35, 0, 0), (0.25, 0, 0)
    )
    before = [state[0] for state in client.getJointStates(car, range(client.getNumJoints(car)))]
    client.stepSimulation()
    after = [state[0] for state in client.getJointStates(car, range(client.getNumJoints(car)))]
    assert len(steering) == 2
    assert np.abs(np.subtract(after, before)).max() < 1e-6


@MODES
def test_a_base_link_called_world_is_a_body_like_others(mode, tmp_path):
    """As that of the wheel's WSG gripper, which floats."""
    file = tmp_path / "gripper.urdf"
    file.write_text(
        '<robot name="gripper"><link name="world"><inertial><mass value="1"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )
    client = world(mode)
    body = client.loadURDF(str(file), (0, 0, 1), flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
    held = client.createConstraint(
        body, -1, -1, -1, pybullet.JOINT_FIXED, (0, 0, 1), (0, 0, 0), (0, 0, 1)
    )
    for k in range(5):
        client.changeConstraint(held, (0, 0.001 * k, 1))
        client.stepSimulation()
    at, _ = client.getBasePositionAndOrientation(body)
    assert np.abs(np.subtract(at, (0, 0.004, 1))).max() < TIGHT


@MODES
def test_a_body_in_a_loop_that_is_frozen_in_flight_stands_still_and_goes_on_from_rest(mode):
    """Bullet lets it drift on for ever; a block that is not in a loop does so as there."""
    pivots = (0.15, 0.0, 0.0), (-0.15, 0.0, 0.0)
    client = world(mode)
    held, free, alone = (block(client, 1, (x, 0.0, 2.0)) for x in (0.0, 0.3, 2.0))
    client.createConstraint(
        held, -1, -1, -1, pybullet.JOINT_POINT2POINT, (0, 0, 0), (0, 0, 0.1), (0, 0, 2.1)
    )
    client.createConstraint(held, -1, free, -1, pybullet.JOINT_POINT2POINT, (0, 0, 0), *pivots)

    def steps(count):
        for _ in range(count):
            client.stepSimulation()
        places = [client.getBasePositionAndOrientation(body) for body in (held, free)]
        ends = [
            np.array(p) + Rotation.from_quat(turn).apply(pivot)
            for (p, turn), pivot in zip(places, pivots, strict=True)
        ]
        assert math.dist(*ends) < TIGHT
        return np.array(places[1][0]), client.getBasePositionAndOrientation(alone)[0][2]

    (before, height) = steps(60)
    assert np.linalg.norm(client.getBaseVelocity(free)[0]) > 0.5
    for body in (free, alone):
        client.changeDynamics(body, -1, mass=0)
    (after, lower) = steps(60)
    assert np.array_equal(before, after)
    assert lower < height - 0.5
    for body in (free, alone):
        client.changeDynamics(body, -1, mass=1)
    (after, _) = steps(1)
    assert np.linalg.norm(after - before) < 2 * 9.81 * DT * DT  # one step from rest
    client.disconnect()


HALF, MASS, FRICTION, DRAGGED = (0.2, 0.2, 0.1), 10.0, 0.4, 0.5
"""A block that is dragged over the ground: sizes [m], mass [kg], speed [m/s]."""


@MODES
@pytest.mark.parametrize(
    "kind", [pybullet.JOINT_POINT2POINT, pybullet.JOINT_SPHERICAL, pybullet.JOINT_REVOLUTE]
)
def test_what_is_dragged_by_a_point_that_is_moved_presses_as_in_statics(mode, kind):
    """A block turns about the point until its rear edge carries what its balance asks for.

    Moments about the point, 0.08 m above its centre on the front: m g x = N (2 x + mu z).
    """
    client = world(mode)
    ground = client.loadURDF(PLANE)
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=HALF)
    body = client.createMultiBody(MASS, shape, -1, (0, 0, HALF[2]))
    client.changeDynamics(ground, -1, lateralFriction=1)
    client.changeDynamics(body, -1, lateralFriction=FRICTION, linearDamping=0, angularDamping=0)
    above = 0.08
    pivot = HALF[0], 0, above
    made = client.createConstraint(
        body, -1, -1, -1, kind, (0, 1, 0), pivot, (HALF[0], 0, HALF[2] + above)
    )
    told = []
    for k in range(300):
        client.changeConstraint(made, (HALF[0] + DRAGGED * k * DT, 0, HALF[2] + above))
        client.stepSimulation()
        if k >= 200:
            points = client.getContactPoints(body, ground)
            pull = np.abs(client.getConstraintState(made)[:3])
            told.append((sum(point[9] for point in points), pull[0], pull[2]))
            assert points
            # Bullet lets contacts sink by fractions of its 1e-5 m; exact mode has a slop of 0.2 mm
            assert min(point[8] for point in points) > (-3e-4 if mode == "exact" else -5e-5)
    weight = MASS * 9.81
    normal = weight * HALF[0] / (2 * HALF[0] + FRICTION * (HALF[2] + above))
    wanted = normal, FRICTION * normal, weight - normal
    # of the geometry a contact's depth against the arms of the forces, and Bullet's 50 passes
    assert np.abs(np.mean(told, axis=0) - wanted).max() < 2e-3 * weight


@MODES
def test_a_crane_that_winds_up_its_rope_turns_as_fast_as_its_motor_is_told(mode):
    """The pivot of a point between two moving bodies is moved, by 0.7 m/s along a rope that swings.

    A motor of 500 N m has a load of some 20 N m to hold: it keeps its rate to what Bullet's solver
    leaves, a thousandth; taken to stand still the pivot would cost it a tenth.
    """
    client = world(mode)
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(1.0, 0.05, 0.05))
    jib = client.createMultiBody(
        0, -1, -1, (0, 0, 3), linkMasses=[20], linkCollisionShapeIndices=[shape],
        linkVisualShapeIndices=[-1], linkPositions=[(0, 0, 0.3)],
        linkOrientations=[(0, 0, 0, 1)], linkInertialFramePositions=[(1, 0, 0)],
        linkInertialFrameOrientations=[(0, 0, 0, 1)], linkParentIndices=[0],
        linkJointTypes=[pybullet.JOINT_REVOLUTE], linkJointAxis=[(0, 0, 1)],
    )  # fmt: skip
    load = block(client, 5, (1.8, 0, 1.3))
    rope = client.createConstraint(
        jib, 0, load, -1, pybullet.JOINT_POINT2POINT, [0] * 3, (0.8, 0, 0), (0, 0, 2)
    )
    for k in range(240):
        client.changeConstraint(rope, jointChildPivot=(0, 0, 2 - 0.003 * k))
        rate = 0.3 * math.sin(k / 60)
        client.setJointMotorControl2(
            jib, 0, pybullet.VELOCITY_CONTROL, targetVelocity=rate, force=500
        )
        client.stepSimulation()
        assert client.getJointState(jib, 0)[1] == pytest.approx(rate, abs=3e-3)
    client.disconnect()


@MODES
@pytest.mark.parametrize("steps", [0, 1])
def test_a_base_that_is_nowhere_is_told(mode, steps):
    """Bullet takes such places, and makes them where it blows up; it was a traceback."""
    client = world(mode)
    links = [1.0] * 2, [-1] * 2, [-1] * 2, [[0, 0, 0], [1, 0, 0]], [[0, 0, 0, 1]] * 2
    own = [[0.5, 0, 0]] * 2, [[0, 0, 0, 1]] * 2, [0, 1], [pybullet.JOINT_REVOLUTE] * 2
    place = [0, 0, 0], [0, 0, 0, 1], [0, 0, 0], [0, 0, 0, 1]
    arm = client.createMultiBody(0, -1, -1, *place, *links, *own, [[0, 1, 0]] * 2)
    for link in range(2):
        client.changeDynamics(arm, link, localInertiaDiagonal=[0.1] * 3)
    kind = pybullet.JOINT_POINT2POINT
    client.createConstraint(arm, 1, -1, -1, kind, [0] * 3, [0.5, 0, 0], [1.5, 0, 0.5])
    for _ in range(steps):
        client.stepSimulation()
    client.resetBasePositionAndOrientation(arm, [math.nan] * 3, [math.nan] * 4)
    with pytest.warns(BulletBridgeWarning, match=r"base is at \(nan, nan, nan\)"):
        client.stepSimulation()
    client.disconnect()


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("speed", [0.3, 1.0])
def test_a_lift_takes_along_what_stands_on_it(joined, speed):
    """Boxes sank into one that rose faster than their own length in a second, and fell through.

    A fifth of what they stand in it is taken back in a step, so that they are five steps behind; it
    falls from there by all that is left of it but 0.8^n in n steps.
    """
    client = world("exact")
    floor = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.5, 0.5, 0.05))
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.1, 0.1, 0.1))
    lift = client.createMultiBody(0, floor, -1, (0, 0, 0.5))
    a, b = (client.createMultiBody(1.0, shape, -1, (x, 0, 0.65)) for x in (0.0, 0.3))
    client.createConstraint(
        a, -1, b, -1, pybullet.JOINT_FIXED, (0, 0, 0), (0.15, 0, 0), (-0.15, 0, 0)
    )
    if joined:
        load = block(client, 1.0, (0, 0, 0.2))
        kind = pybullet.JOINT_POINT2POINT
        client.createConstraint(lift, -1, load, -1, kind, (0, 0, 0), (0, 0, -0.3), (0, 0, 0))
    top = 0.5
    for _ in range(90):
        top += speed * DT
        client.resetBasePositionAndOrientation(lift, (0, 0, top), (0, 0, 0, 1))
        client.stepSimulation()
        for body in (a, b):
            assert client.getBasePositionAndOrientation(body)[0][2] > top + 0.15 - 6 * speed * DT
    for _ in range(60):
        client.stepSimulation()
    assert client.getBasePositionAndOrientation(a)[0][2] == pytest.approx(top + 0.15, abs=1e-3)
    assert np.abs(client.getBasePositionAndOrientation(a)[0][:2]).max() < 1e-3
    client.disconnect()


@pytest.mark.parametrize("ours", [False, True])
def test_what_was_moved_and_stands_still_is_as_what_always_stood_there(ours):
    """Contacts went on to see it as fast as it had come, and threw out what was put into it."""

    def thrown(start, steps):
        """Where boxes come to that are put into a table once it has stood for a step."""
        client = world("exact")
        flat = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.5, 0.5, 0.05))
        table = client.createMultiBody(0, flat, -1, (0, 0, start))
        shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.1, 0.1, 0.1))
        a, b = (client.createMultiBody(1.0, shape, -1, (x, 0, 2)) for x in (0.0, 0.3))
        client.createConstraint(
            a, -1, b, -1, pybullet.JOINT_FIXED, (0, 0, 0), (0.15, 0, 0), (-0.15, 0, 0)
        )
        step = client.stepSimulation
        if ours:
            system = attach({"a": a, "b": b}, client=client._client, contacts=True, dt=DT)
            system.assemble()
            step = system.step
        step()
        client.resetBasePositionAndOrientation(table, (0, 0, 0.5), (0, 0, 0, 1))
        for _ in range(steps):
            step()
        for body, x in ((a, 0.0), (b, 0.3)):
            client.resetBasePositionAndOrientation(body, (x, 0, 0.6), (0, 0, 0, 1))
        if ours:
            system.read()
        step()
        found = client.getBasePositionAndOrientation(a)[0][2]
        client.disconnect()
        return found

    still = thrown(0.5, 2)
    assert 0.6 < still < 0.6 + 0.15 * 1.01 * DT  # its own length in a second is the quickest
    assert thrown(0.7, 2) == pytest.approx(still, abs=TIGHT)


@pytest.mark.parametrize("adds", [False, True])
def test_what_is_around_is_known_after_bodies_came_or_went(adds):
    """Robots in exact mode sank into floors until they were far from where they had been."""
    client = world("exact")
    client.createMultiBody(0, client.createCollisionShape(pybullet.GEOM_PLANE))
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.1, 0.1, 0.1))
    other = client.createMultiBody(0, shape, -1, (5, 5, 5))
    a, b = (client.createMultiBody(1.0, shape, -1, (x, 0, 0.1)) for x in (0.0, 0.3))
    client.createConstraint(
        a, -1, b, -1, pybullet.JOINT_FIXED, (0, 0, 0), (0.15, 0, 0), (-0.15, 0, 0)
    )
    client.stepSimulation()
    if adds:
        client.createMultiBody(0, shape, -1, (0.51, 0, 0.1))
    else:
        client.removeBody(other)
    for body in (a, b):
        client.resetBaseVelocity(body, (1, 0, 0))
    for _ in range(20):
        client.stepSimulation()
    place = client.getBasePositionAndOrientation(b)[0]
    assert place[2] == pytest.approx(0.1, abs=1e-3)
    assert (place[0] < 0.311) == adds
    client.disconnect()


def test_what_stands_on_a_moved_base_meets_what_comes_later():
    """Arms were looked for where their base had been read."""
    client = world("exact", (0.0, 0.0, 0.0))
    ball, hand, box = (
        client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05),
        client.createCollisionShape(
            pybullet.GEOM_SPHERE, radius=0.05, collisionFramePosition=(0, 0, -0.5)
        ),
        client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.1, 0.1, 0.1)),
    )
    arm = client.createMultiBody(
        *(0, -1, -1, (0, 0, 1)),
        linkMasses=[1],
        linkCollisionShapeIndices=[hand],
        linkVisualShapeIndices=[-1],
        linkPositions=[(0, 0, 0)],
        linkOrientations=[(0, 0, 0, 1)],
        linkInertialFramePositions=[(0, 0, -0.5)],
        linkInertialFrameOrientations=[(0, 0, 0, 1)],
        linkParentIndices=[0],
        linkJointTypes=[pybullet.JOINT_REVOLUTE],
        linkJointAxis=[(0, 1, 0)],
    )
    tool = client.createMultiBody(0.2, ball, -1, (0, 0, 0.5))
    client.setCollisionFilterGroupMask(tool, -1, 0, 0)
    hang_on = (0, 0, 0), (0, 0, 0), (0, 0, 0)
    client.createConstraint(arm, 0, tool, -1, pybullet.JOINT_FIXED, *hang_on)
    client.setJointMotorControl2(arm, 0, pybullet.VELOCITY_CONTROL, targetVelocity=-1.0, force=5.0)
    for k in range(31):
        client.resetBasePositionAndOrientation(arm, (k / 30, 0, 1), (0, 0, 0, 1))
        client.resetJointState(arm, 0, 0.0)
        client.stepSimulation()
    client.createMultiBody(0, box, -1, (1.155, 0, 0.5))
    for _ in range(30):
        client.stepSimulation()
    assert 0.0 < client.getLinkState(arm, 0)[0][0] - 1.0 < 0.006
    client.disconnect()
