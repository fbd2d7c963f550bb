"""What each kind of constraint enforces, with force limits and moving frames."""

import numpy as np
import pybullet
import pytest
from pybullet_utils.bullet_client import BulletClient as Native
from scipy.spatial.transform import Rotation
from test_client import linkage, tips
from test_semantics import FIXED, GEAR, ORIGIN, P2P, PRISMATIC, box

from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import session_of
from bulletbridge.errors import BulletBridgeWarning

MASS, G, DT = 1.5, 9.81, 1 / 240


def free_box(client, tmp_path, turn=(0.3, 0.2, -0.4)):
    """The box of the tests without damping, turned."""
    body = box(client, tmp_path)
    client.resetBasePositionAndOrientation(
        body, [0.2, -0.1, 1.0], Rotation.from_euler("xyz", turn).as_quat()
    )
    client.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
    client.setGravity(0, 0, -G)
    return body


def pose(client, body):
    """Position and rotation of the inertial frame."""
    position, quaternion = client.getBasePositionAndOrientation(body)
    return np.array(position), Rotation.from_quat(quaternion)


def pin(client, body, kind, pivot, turn=(0.5, 0.1, 0.2), axis=(0.6, 0.0, 0.8)):
    """A constraint to the world at a point of the body, closed, all frames turned."""
    p, R = pose(client, body)
    frame = Rotation.from_euler("xyz", turn)
    return client.createConstraint(
        body,
        -1,
        -1,
        -1,
        kind,
        axis,
        pivot,
        (p + R.apply(pivot)).tolist(),
        frame.as_quat().tolist(),
        (R * frame).as_quat().tolist(),
    )


FREEDOMS = {
    pybullet.JOINT_SPHERICAL: (0, 3),
    P2P: (0, 3),
    pybullet.JOINT_REVOLUTE: (0, 1),
    PRISMATIC: (1, 0),
    pybullet.JOINT_PLANAR: (2, 1),
    FIXED: (0, 0),
}


@pytest.mark.parametrize("kind", FREEDOMS)
def test_each_kind_leaves_its_freedoms(connect, tmp_path, kind):
    """Where the pivot may go and how the body may turn, measured on what it did in a second."""
    client = connect()
    body = free_box(client, tmp_path)
    pivot, axis = np.array([0.2, 0.05, -0.1]), np.array([0.6, 0.0, 0.8])
    number = pin(client, body, kind, pivot.tolist())
    p0, R0 = pose(client, body)
    start, line = p0 + R0.apply(pivot), R0.apply(axis)
    assert client.getConstraintInfo(number)[4:6] == (kind, tuple(axis))
    assert client.getNumConstraints() == 1
    moves, turns = [], []
    for _ in range(240):
        client.stepSimulation()
        p, R = pose(client, body)
        moves.append(p + R.apply(pivot) - start)
        turns.append((R * R0.inv()).as_rotvec())
    moves, turns = np.array(moves), np.array(turns)
    translations, rotations = FREEDOMS[kind]
    along, across = moves @ line, np.linalg.norm(moves - np.outer(moves @ line, line), axis=1)
    tilted = np.linalg.norm(turns - np.outer(turns @ line, line), axis=1)
    assert (np.abs(along).max() > 1e-2) == (translations == 1) or translations == 2
    assert translations == 1 or np.abs(along).max() < 1e-12
    assert (across.max() > 1e-2) == (translations == 2)
    assert translations == 2 or across.max() < 1e-12
    assert (tilted.max() > 1e-2) == (rotations == 3)
    assert rotations == 3 or tilted.max() < 2e-12  # round-off of a rotation vector
    client.removeConstraint(number)
    assert client.getNumConstraints() == 0
    assert client.loadURDF and client.getBridgeLoops() == {}


def test_a_rigid_gear_keeps_its_offset(connect, tmp_path):
    """Bullet's own gear of default erp holds rates only; positions drift apart."""
    ends = []
    for kind in (BulletClient, Native):
        client = connect(kind)
        body, loop = linkage(client, tmp_path)
        client.removeConstraint(loop)
        gear = client.createConstraint(body, 0, body, 2, GEAR, [0, 1, 0], ORIGIN, ORIGIN)
        client.changeConstraint(gear, gearRatio=-2.0)
        relations = []
        for step in range(240):
            if step == 120:  # a reset is a new start, as in Bullet
                client.resetJointState(body, 2, 0.7)
            client.stepSimulation()
            (qa, va), (qb, vb) = (client.getJointState(body, j)[:2] for j in (0, 2))
            relations.append(qa - 2 * qb)
            if kind is BulletClient:
                assert abs(va - 2 * vb) < 1e-12 * max(1, abs(va))
        ends.append([np.ptp(relations[:120]), np.ptp(relations[120:])])
    assert max(ends[0]) < 1e-12
    assert max(ends[1]) < 1e-2  # the same relation


@pytest.mark.parametrize(("mode", "iterations"), [("filter", 1), ("filter", 50), ("exact", 1)])
def test_constraint_forces_balance_the_weight(connect, tmp_path, mode, iterations):
    """At rest Bullet's share and ours make the reaction, however little Bullet has converged."""
    client = connect()
    client.setBridgeMode(mode)
    client.setPhysicsEngineParameter(numSolverIterations=iterations)
    body = free_box(client, tmp_path)
    pivot, frame = np.array([0.2, 0.05, -0.1]), Rotation.from_euler("xyz", (0.5, 0.1, 0.2))
    number = pin(client, body, FIXED, pivot.tolist())
    _, R = pose(client, body)
    weight = np.array([0, 0, MASS * G])
    moment = (R * frame).inv().apply(np.cross(-R.apply(pivot), -weight))
    for _ in range(5):
        client.stepSimulation()
        seen = np.array(client.getConstraintState(number))
        assert np.abs(seen[:3] - weight).max() < 1e-9
        assert np.abs(seen[3:] + moment).max() < 1e-9
    client.removeConstraint(number)
    ball = pin(client, body, P2P, [0.0, 0.0, 0.0])
    client.stepSimulation()
    # of a point-to-point constraint Bullet gives what acts on the child
    assert np.abs(np.array(client.getConstraintState(ball)) + weight).max() < 1e-9


def test_a_limited_constraint_holds_up_to_its_force(connect, tmp_path):
    client, native = connect(), connect(Native)
    for limit in (1.02 * MASS * G, 0.98 * MASS * G):
        ends = []
        for c in (client, native):
            body = free_box(c, tmp_path)
            number = pin(c, body, P2P, [0.0, 0.0, 0.0])
            c.changeConstraint(number, maxForce=limit)
            for _ in range(100):
                c.stepSimulation()
            ends.append(pose(c, body)[0] - [0.2, -0.1, 1.0])
            c.removeBody(body)
        if limit > MASS * G:
            assert np.abs(ends[0]).max() < 1e-12
        else:  # while it gives way, it is Bullet's
            fall = (G - limit / MASS) * DT**2 * 100 * 101 / 2
            assert np.array_equal(*ends)
            assert ends[0][2] == pytest.approx(-fall, rel=1e-9)


def test_a_limited_constraint_closes_again(connect, tmp_path):
    """Pulled off by a force and let go, it is pulled shut with no more than its limit."""
    client = connect()
    body = free_box(client, tmp_path)
    number = pin(client, body, P2P, [0.0, 0.0, 0.0])
    client.changeConstraint(number, maxForce=30.0)
    gaps = []
    for step in range(480):
        if step < 20:
            client.applyExternalForce(body, -1, [40, 0, 0], ORIGIN, pybullet.WORLD_FRAME)
        _, v0 = client.getBaseVelocity(body)[0], np.array(client.getBaseVelocity(body)[0])
        client.stepSimulation()
        gained = (np.array(client.getBaseVelocity(body)[0]) - v0) / DT * MASS
        gained -= [40 if step < 20 else 0, 0, -MASS * G]
        assert np.abs(gained).max() < 30.0 * (1 + 1e-9)
        gaps.append(np.linalg.norm(pose(client, body)[0] - [0.2, -0.1, 1.0]))
    assert max(gaps) > 1e-3
    assert gaps[-1] < 1e-12


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_a_moved_frame_carries_the_body_along(connect, tmp_path, mode):
    """The pivot follows to round-off and has the velocity of the frame, as it turns too."""
    client = connect()
    client.setBridgeMode(mode)
    body = free_box(client, tmp_path)
    number = pin(client, body, FIXED, [0.2, 0.05, -0.1])
    _, _, _, _, _, _, pivot, place, frame_a, frame_b, *_ = client.getConstraintInfo(number)
    start, turned = np.array(place), Rotation.from_quat(frame_b)
    client.stepSimulation()

    def at(t):
        shift = [0.3 * np.sin(2 * t), 0.2 * t**2, 0.1 * np.sin(5 * t)]
        return start + shift, Rotation.from_rotvec([0.3 * t, np.sin(t), 0.2 * t]) * turned

    for step in range(1, 200):
        (before, Q), (now, S) = at((step - 1) * DT), at(step * DT)
        client.changeConstraint(number, now.tolist(), S.as_quat().tolist())
        client.stepSimulation()
        p, R = pose(client, body)
        assert np.abs(p + R.apply(pivot) - now).max() < 1e-12
        assert (R * Rotation.from_quat(frame_a) * S.inv()).magnitude() < 1e-12
        if step > 1:  # the first time the system is made anew, at rest
            v, w = map(np.array, client.getBaseVelocity(body))
            assert np.abs(w - (S * Q.inv()).as_rotvec() / DT).max() < 1e-9
            assert np.abs(v + np.cross(w, R.apply(pivot)) - (now - before) / DT).max() < 1e-9
    client.stepSimulation()  # a frame that is not moved any more stands still
    v, w = map(np.array, client.getBaseVelocity(body))
    assert max(np.abs(v).max(), np.abs(w).max()) < 1e-11


def test_a_loop_created_far_open_is_assembled(connect, tmp_path):
    """Bullet pulls it shut at tens of metres a second."""
    client = connect()
    body, made = linkage(client, tmp_path)
    info = client.getConstraintInfo(made)
    client.removeConstraint(made)
    client.resetJointState(body, 1, -1.2)
    assert tips(client, body) > 0.3
    client.createConstraint(body, 1, body, 2, P2P, ORIGIN, info[6], info[7])
    client.stepSimulation()
    assert tips(client, body) < 1e-12
    assert max(abs(client.getJointState(body, j)[1]) for j in range(3)) < 1.0


def test_what_cannot_close_is_said_once_and_stays_bullets(connect, tmp_path):
    client = connect()
    body = free_box(client, tmp_path)
    pin(client, body, P2P, [0.0, 0.0, 0.0])
    client.createConstraint(body, -1, -1, -1, P2P, ORIGIN, ORIGIN, [0, 0, 3])
    with pytest.warns(BulletBridgeWarning, match="cannot close: gap .* put bodies, pivots and new"):
        client.stepSimulation()
    for _ in range(5):
        client.stepSimulation()  # a second warning would be an error here
    client.removeConstraint(client.getConstraintUniqueId(1))
    client.stepSimulation()
    assert np.isfinite(pose(client, body)[0]).all()


@pytest.mark.parametrize("kind", [P2P, FIXED, pybullet.JOINT_REVOLUTE, pybullet.JOINT_PLANAR])
def test_marks_show_what_holds_the_body(connect, tmp_path, kind):
    """On the body, the parent, act its weight and the drawn wrench: momentum tells the second."""
    client = connect()
    body = free_box(client, tmp_path)
    pivot = np.array([0.2, 0.05, -0.1])
    pin(client, body, kind, pivot.tolist())
    for _ in range(30):
        client.stepSimulation()
    (group,) = session_of(client._client).groups.values()
    moments = np.array(client.getDynamicsInfo(body, -1)[2])

    def momentum():
        _, R = pose(client, body)
        v, w = map(np.array, client.getBaseVelocity(body))
        return MASS * v, R.apply(moments * R.inv().apply(w))

    linear, angular = momentum()
    client.stepSimulation()
    (mark,) = group.marks()
    p, _ = pose(client, body)
    gained = (momentum()[0] - linear) / DT
    assert np.abs(mark.force + [0, 0, -MASS * G] - gained).max() < 1e-9
    about = mark.moment + np.cross(mark.point_b - p, mark.force)
    # over a step the pivot moves against the centre: first order in the step
    assert np.abs(about - (momentum()[1] - angular) / DT).max() < 0.1
    assert np.abs(mark.point_a - mark.point_b).max() < 1e-12


@pytest.mark.parametrize("mode", ["native", "filter", "exact"])
def test_a_slider_tells_the_moment_at_the_pivot_of_what_moves(connect, mode):
    """By statics, however far a box has slid from the parent, which stands still."""
    client, lever, speed = connect(), 0.1, 0.3
    client.setBridgeMode(mode)
    client.setGravity(0, 0, -G)
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.02] * 3)
    parent = client.createMultiBody(0, -1, -1, [0, 0, 1])
    box = client.createMultiBody(1.0, shape, -1, [0.4, 0, 1])
    client.changeDynamics(box, -1, linearDamping=0, angularDamping=0)
    client.resetBaseVelocity(box, [speed, 0, 0])
    pivots = [0.1, 0, 0], [-lever, 0, 0]
    number = client.createConstraint(
        parent, -1, box, -1, pybullet.JOINT_PRISMATIC, [1, 0, 0], *pivots
    )
    for _ in range(60):
        client.stepSimulation()
        seen = np.array(client.getConstraintState(number))
    assert client.getBasePositionAndOrientation(box)[0][0] > 0.45
    # Bullet's pivots sink a little, by what a step opens
    allowed = 1e-4 if mode == "native" else 1e-9
    assert np.abs(seen - [G, 0, 0, 0, G * lever]).max() < allowed
