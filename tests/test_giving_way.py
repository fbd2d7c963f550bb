"""Constraints with a force limit at a force, and are pulled shut again."""

import numpy as np
import pybullet
import pytest
from numpy.testing import assert_allclose
from pybullet_utils.bullet_client import BulletClient as Native
from support.planar import planar_chain
from support.urdf_builder import inertial, link
from test_client import BOX, FLAGS, linkage, tips

import bulletbridge as bb
from bulletbridge.drop_in.session import session_of
from bulletbridge.system import active_constraints
from bulletbridge.system.active_constraints import ActiveConstraints

G, DT = 9.81, 1 / 240


def test_a_constraint_gives_way_at_its_force_and_is_pulled_shut_again():
    """A weight on a string: up to max_force it hangs still, beyond it falls at g - F/m."""
    mechanism = planar_chain([], [], floating=2.0)
    for force, falls in ((25.0, 0.0), (10.0, G - 5.0)):
        hold = bb.LoopJoint(
            "hold",
            bb.JointModel.BALL,
            bb.Frame("world"),
            bb.Frame("base"),
            max_force=force,
        )
        system = bb.System(mechanism, [hold])
        system.set_state(np.array([0, 0, 0, 0, 0, 0, 1.0]))
        for _ in range(10):
            system.step()
        assert system.v[5] == pytest.approx(-falls * 10 * DT, abs=1e-12)
        pull = min(force, 2 * G)
        assert system.reactions()["hold"].force == pytest.approx([0, 0, pull], abs=1e-9)
    system.set_max_force("hold", 1e4)
    gaps = []
    for _ in range(20):
        system.step()
        gaps.append(system.q[2])
    # velocity -erp gap/dt at the end of each step leaves 1 - erp of the gap
    assert np.allclose(np.array(gaps[1:]) / gaps[:-1], 0.8, rtol=1e-9)


def box_pulled(client, path, kind, force, two, erp):
    """A box, off its pivot by a little, at a constraint with a force limit."""
    client.setGravity(0.3, -1, -9.81)
    client.setPhysicsEngineParameter(
        numSolverIterations=2000, solverResidualThreshold=0, erp=erp
    )  # fmt: skip
    box = client.loadURDF(str(path), [0, 0, 1], flags=FLAGS)
    turn = client.getDynamicsInfo(box, -1)[4]
    other, pivot = -1, [0.1, 0.002, 1.05]
    if two:
        other, pivot = client.loadURDF(str(path), [0.5, 0, 1], flags=FLAGS), [-0.3, 0.002, 0.05]
        turn = [0, 0, 0, 1]
    for body in {box, other} - {-1}:
        client.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
    axis = [0, 0.3, 1] if kind == pybullet.JOINT_PRISMATIC else [0, 0, 0]
    made = client.createConstraint(
        box, -1, other, -1, kind, axis, [0.1, 0, 0.05], pivot, [0, 0, 0, 1], turn
    )
    client.changeConstraint(made, maxForce=force)
    return box, made


KINDS = {"point": pybullet.JOINT_POINT2POINT, "fixed": pybullet.JOINT_FIXED, "slider": 1}


@pytest.mark.parametrize("erp", [0.2, 0.5])
@pytest.mark.parametrize("force", [0.3, 9.0, 1e3])
@pytest.mark.parametrize(
    ("kind", "two"), [("point", False), ("point", True), ("fixed", False), ("slider", False)]
)
def test_constraints_give_way_as_bullets_do(connect, tmp_path, kind, two, force, erp):
    """Saturated, or being pulled shut, against converged native, step by step.

    Once shut it holds, where Bullet's leaves what each step opens.
    """
    path = tmp_path / "box.urdf"
    path.write_text(BOX.format(0))
    ours, native = connect(), connect(Native)
    runs = [
        (client, *box_pulled(client, path, KINDS[kind], force, two, erp))
        for client in (ours, native)
    ]
    ours.setBridgeMode("exact")
    for _ in range(30 if force < 1e3 else 8):  # 2 mm halved eight times: shut soon
        states = []
        for client, box, made in runs:
            client.stepSimulation()
            velocity = np.ravel(client.getBaseVelocity(box))
            states.append((velocity, np.array(client.getConstraintState(made))))
        (velocity, force_on), (expected, expected_force) = states
        assert np.abs(velocity - expected).max() < 1e-9
        if kind != "slider":  # whose rows Bullet has in another order
            assert np.abs(force_on - expected_force).max() < 1e-6


def test_a_force_limit_may_come_go_and_change(connect, tmp_path):
    """The four-bar's loop gives way when it gets a limit, and is pulled shut by a larger one."""
    client = connect()
    body, made = linkage(client, tmp_path)
    client.setBridgeMode("exact", body)
    client.stepSimulation()
    assert tips(client, body) < 1e-12
    client.changeConstraint(made, maxForce=0.5)
    for _ in range(20):
        client.stepSimulation()
    assert tips(client, body) > 1e-3
    client.changeConstraint(made, maxForce=1e5)
    for _ in range(200):
        client.stepSimulation()
    assert tips(client, body) < 1e-3
    assert len(client.getConstraintState(made)) == 3


@pytest.mark.parametrize("gap", [0.1, 0.4])
def test_a_robot_that_begins_far_open_is_shut_at_a_bounded_speed(connect, gap):
    """Two sliders, whose gap falls by no more than a tenth of it in 10 ms; a restore goes on so.

    Bullet takes a fifth of what is left in each; where that is less, so do we.
    """
    client, still = connect(), [0, 0, 0, 1]
    client.setTimeStep(DT)
    body = client.createMultiBody(
        *(0, -1, -1, [0, 0, 0], still),
        linkMasses=[1.0, 2.0],
        linkCollisionShapeIndices=[-1] * 2,
        linkVisualShapeIndices=[-1] * 2,
        linkPositions=[[0, 0, 0], [gap, 0, 0]],
        linkOrientations=[still] * 2,
        linkInertialFramePositions=[[0, 0, 0]] * 2,
        linkInertialFrameOrientations=[still] * 2,
        linkParentIndices=[0, 0],
        linkJointTypes=[pybullet.JOINT_PRISMATIC] * 2,
        linkJointAxis=[[1, 0, 0]] * 2,
    )
    for joint in range(2):
        client.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
    made = client.createConstraint(
        *(body, 0, body, 1, pybullet.JOINT_POINT2POINT), *([0, 0, 0],) * 3
    )
    client.changeConstraint(made, maxForce=1e5)
    client.setBridgeMode("exact")

    def gaps(steps):
        found = []
        for _ in range(steps):
            client.stepSimulation()
            a, b = (client.getJointState(body, joint)[0] for joint in range(2))
            found.append(abs(gap + b - a))
        return np.array(found)

    first = gaps(10)
    falls = -np.diff(first, prepend=gap)
    assert falls == pytest.approx(10 * gap * DT, rel=1e-5)  # shown in single precision
    kept = client.saveState()
    after = gaps(90)
    assert after[-1] < 1e-6 * gap
    client.restoreState(kept)
    assert np.array_equal(gaps(90), after)


def unit(x):
    """A list as long as one."""
    return (np.array(x) / np.linalg.norm(x)).tolist()


@pytest.mark.parametrize("limit", [300.0, 7000.0])
def test_what_is_led_from_rest_gets_its_rate_whatever_has_a_force_limit(connect, limit):
    """Steps that led sliders give energy to are made in parts, with pulls as strong as of one.

    A gap's share of a step, taken back in each part, pulled the harder the shorter the parts were,
    so that no two lengths led to the same, and the step was refused as a leap.
    """
    client, still, turn = connect(), [0, 0, 0, 1], unit([-0.2, -0.53, 0.665, -0.486])
    client.setTimeStep(DT)
    client.setGravity(0, 0, -G)
    places = [[0.12, -0.23, -0.29], [0.04, -0.17, -0.11]]
    body = client.createMultiBody(
        *(2.65, client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.05, 0.04, 0.03])),
        *(-1, [0, 0, 1], turn),
        linkMasses=[0.98, 0.72],
        linkCollisionShapeIndices=[-1] * 2,
        linkVisualShapeIndices=[-1] * 2,
        linkPositions=places,
        linkOrientations=[still] * 2,
        linkInertialFramePositions=[[0, 0, 0]] * 2,
        linkInertialFrameOrientations=[still] * 2,
        linkParentIndices=[0, 1],
        linkJointTypes=[pybullet.JOINT_PRISMATIC] * 2,
        linkJointAxis=[unit(axis) for axis in ([0.22, -0.94, 0.26], [-0.77, -0.56, -0.29])],
    )
    client.setJointMotorControl2(body, 1, pybullet.VELOCITY_CONTROL, force=0)
    given = [
        (1, limit, [0.66, 0.59, -0.46], [-0.026, 0.021, -0.018]),
        (0, 7000.0, [-0.67, -0.22, 0.71], [0.033, 0.014, -0.018]),
        (1, None, [0.52, 0.62, -0.58], [0.05, 0.004, 0.052]),
    ]
    leds = []
    for on, force, axis, pivot in given:
        at = client.multiplyTransforms(*client.getLinkState(body, on)[:2], pivot, still)[0]
        made = client.createConstraint(
            *(body, on, -1, -1, pybullet.JOINT_PRISMATIC, unit(axis), pivot, at, still, turn)
        )
        if force is not None:
            client.changeConstraint(made, maxForce=force)
        leds.append((made, at, {} if force is None else {"maxForce": force}))
    client.setBridgeMode("exact")
    way = np.array([-0.58, 0.04, 0.27]) * 1e-3
    for step in range(4):
        for made, at, force in leds:
            client.changeConstraint(made, (at + step * way).tolist(), turn, **force)
        client.stepSimulation()
    rate = np.array(client.getBaseVelocity(body)[0])
    assert np.linalg.norm(rate) < 2 * np.linalg.norm(way) / DT


def dragged(client, kind, limit, way, every, steps=150, turn=(0, 0, 0, 1)):
    """A box at a frame that is moved by ``way`` in every so many steps; gaps and speeds along x."""
    client.setGravity(0, 0, -G)
    client.setTimeStep(DT)
    box = client.createMultiBody(
        *(1.0, client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.05] * 3), -1),
        *([0, 0, 1], turn),
    )
    client.changeDynamics(box, -1, linearDamping=0, angularDamping=0)
    zero = [0, 0, 0]
    places = zero, zero, [0, 0, 1]
    made = client.createConstraint(box, -1, -1, -1, kind, *places, childFrameOrientation=turn)
    client.changeConstraint(made, maxForce=limit)
    x, found = 0.0, []
    for step in range(steps):
        if step >= 20 and (step - 20) % every == 0:
            x += way
            client.changeConstraint(made, [x, 0, 1], turn, maxForce=limit)
        client.stepSimulation()
        assert client.getConstraintInfo(made)[7] == pytest.approx([x, 0, 1], abs=1e-12)
        place, speed = client.getBasePositionAndOrientation(box)[0], client.getBaseVelocity(box)[0]
        found.append((x - place[0], speed[0]))
    return np.array(found)


@pytest.mark.parametrize("mode", ["filter", "exact"])
@pytest.mark.parametrize("kind", [pybullet.JOINT_POINT2POINT, pybullet.JOINT_FIXED])
def test_a_frame_that_goes_on_is_caught_up_with_inside_the_force_limit(connect, kind, mode):
    """It runs 1 mm a step, away from a body that can be given 20 N.

    Taken to stand still, as by Bullet, it is four ways of a step ahead for ever: (1 - erp) / erp.
    Followed, the body is at its speed, 0.24 m/s, and the gap falls by erp a step until it is shut.
    """
    limit, way = 20.0, 1e-3
    behind = dragged(connect(Native), kind, limit, way, 1)
    assert behind[-1, 0] == pytest.approx(4.0 * way, rel=1e-6)
    client = connect()
    client.setBridgeMode(mode)
    caught = dragged(client, kind, limit, way, 1)
    gaps, speeds = caught.T
    assert np.abs(np.diff(speeds)).max() <= limit * DT * (1 + 1e-9)
    shut = int(np.flatnonzero(gaps > 1e-12).max()) + 1
    assert shut < 80
    assert speeds[shut + 1 :] == pytest.approx(way / DT, rel=1e-9)
    falling = gaps[23:shut]
    falling = falling[np.abs(np.diff(speeds))[22 : shut - 1] < 0.99 * limit * DT]
    assert falling[3:-1] / falling[2:-2] == pytest.approx(0.8, rel=1e-6)


@pytest.mark.parametrize("every", [2, 10, 1000])
def test_a_frame_that_is_put_elsewhere_now_and_then_pulls_as_bullets(connect, every):
    """Between its moves it stands: the body comes after by erp a step, without leaps."""
    client = connect()
    client.setBridgeMode("exact")
    of_fixed = pybullet.JOINT_FIXED, 1e4, 2e-3, every
    ours, native = dragged(client, *of_fixed), dragged(connect(Native), *of_fixed)
    gap, speed = np.abs(ours - native).max(axis=0)
    assert gap < 1e-6  # at which what is nearly shut is closed
    assert speed < 1e-6 / DT


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_a_frame_does_not_turn_that_is_told_a_quaternion_of_any_length(connect, mode):
    """Its product with itself is off by rounding, which is no motion to be ahead of.

    All the while the limit is what pulls, as in Bullet's step.
    """
    told = pybullet.JOINT_FIXED, 20.0, 1e-2, 4, 40, (0, 1, 0, 1)
    client = connect()
    client.setBridgeMode(mode)
    assert dragged(client, *told) == pytest.approx(dragged(connect(Native), *told), abs=1e-8)


def test_round_off_is_not_pulled_at_with_all_the_force(connect):
    """A slider that a motor holds, 0.1 m beside the point it is to be at, and 1e-12 m along it.

    Nothing moves it aside, and along it there is nothing to close: the motor has no load.
    """
    client = connect()
    client.setBridgeMode("exact")
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.05] * 3)
    at, straight = [[0, 0, 0]], [[0, 0, 0, 1]]
    slides = [pybullet.JOINT_PRISMATIC], [[0, 1, 0]]
    link = [1.0], [shape], [-1], at, straight, at, straight, [0], *slides
    body = client.createMultiBody(0, -1, -1, at[0], straight[0], None, None, *link)
    client.resetJointState(body, 0, 1e-12)
    client.setJointMotorControl2(body, 0, pybullet.VELOCITY_CONTROL, 0, 0.0, 1000.0)
    ends = body, 0, -1, -1, pybullet.JOINT_POINT2POINT, [0] * 3, [0] * 3
    made = client.createConstraint(*ends, [0.1, 0.0, 0.0])
    client.changeConstraint(made, maxForce=40.0)
    for _ in range(3):
        client.stepSimulation()
        assert abs(client.getConstraintState(made)[1]) < 1e-6
        assert abs(client.getJointState(body, 0)[3]) < 1e-6


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_what_pulls_in_vain_leaves_other_loops_closed(mode):
    """A hand on a door's handle is pulled at, by 40 N at most, from out of the door's reach.

    The handle stays closed from the first step on, after the door is read again too, and once the
    place is within reach the hand is there. Pivots are told in single precision, of a metre.
    """
    client = bb.BulletClient(pybullet.DIRECT, mode=mode)
    client.setGravity(0, 0, -G)
    panel = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.4, 0.02, 0.4))
    door = client.createMultiBody(
        0, -1, -1, (0, 0, 0.5), linkMasses=[8], linkCollisionShapeIndices=[panel],
        linkVisualShapeIndices=[-1], linkPositions=[(0, 0, 0)], linkOrientations=[(0, 0, 0, 1)],
        linkInertialFramePositions=[(0.4, 0, 0)], linkInertialFrameOrientations=[(0, 0, 0, 1)],
        linkParentIndices=[0], linkJointTypes=[pybullet.JOINT_REVOLUTE],
        linkJointAxis=[(0, 0, 1)],
    )  # fmt: skip
    client.setJointMotorControl2(door, 0, pybullet.VELOCITY_CONTROL, force=1.5)
    ball = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.03)
    hand = client.createMultiBody(0.5, ball, -1, (0.75, -0.1, 0.5))
    point, handle = pybullet.JOINT_POINT2POINT, np.array([0.75, -0.1, 0.5])
    client.createConstraint(door, 0, hand, -1, point, [0] * 3, (0.35, -0.1, 0), [0] * 3)
    pull = client.createConstraint(hand, -1, -1, -1, point, [0] * 3, [0] * 3, (0.95, -0.1, 0.5))
    client.changeConstraint(pull, maxForce=40)

    def off(place):
        return float(
            np.abs(np.subtract(client.getBasePositionAndOrientation(hand)[0], place)).max()
        )

    for step in range(250):  # it swings past and comes back, as 40 N can brake 16 kg
        if step == 30:
            client.changeDynamics(door, 0, mass=16)
        if step == 60:
            client.changeConstraint(pull, turned(handle, -0.1).tolist(), maxForce=40)
        client.stepSimulation()
        angle = client.getJointState(door, 0)[0]
        assert off(turned(handle, angle)) < 1e-7
    assert off(turned(handle, -0.1)) < 1e-7
    client.disconnect()


@pytest.mark.parametrize("force", [5.0, 400.0])
@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_what_gives_way_is_no_measure_of_how_frames_are_rounded(connect, mode, force):
    """A box on two pins 0.1 mm apart: the rigid one is closed, though the other came first.

    In filter mode it was the rigid one that stayed open, without a word.
    """
    client = connect()
    client.setBridgeMode(mode)
    client.setGravity(0, 0, -G)
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.05, 0.03, 0.04])
    box, pivot = client.createMultiBody(1.0, shape, -1, [0, 0, 0.5]), np.array([0.05, 0.0, 0.1])
    for shift, limit in (1e-4, force), (0.0, None):
        at = [0.05 + shift, 0.0, 0.6]
        kind = pybullet.JOINT_POINT2POINT
        made = client.createConstraint(box, -1, -1, -1, kind, [0, 0, 0], pivot.tolist(), at)
        if limit is not None:
            client.changeConstraint(made, maxForce=limit)
    for _ in range(30):
        client.stepSimulation()
        place, turn = client.getBasePositionAndOrientation(box)
        gap = np.array(client.multiplyTransforms(place, turn, pivot.tolist(), [0, 0, 0, 1])[0])
        assert np.abs(gap - [0.05, 0.0, 0.6]).max() < 1e-6  # single precision


def turned(place, angle):
    """A place about the vertical axis."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * place[0] - s * place[1], s * place[0] + c * place[1], place[2]])


def test_what_is_left_to_bullet_leaves_the_others_at_their_moving_frames(connect):
    """Of two pivots that no body can reach both, the weak one is Bullet's, and the other is kept.

    The body is a pendulum of 0.25 m, whose centre the weak one's 3 N along x pull over at first as
    they do in Bullet, at F r / (m r² + I) with the arm of 0.5 m.
    """
    client, limit, dt = connect(), 3.0, 1e-4
    client.setTimeStep(dt)
    shape = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
    body = client.createMultiBody(1.0, shape, -1, [0, 0, 1])
    client.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
    for z, x, given in ((-0.25, 0.5, {"maxForce": limit}), (0.25, 0.0, {})):
        pivots = [0, 0, z], [0, 0, 1 + z]
        made = client.createConstraint(
            body, -1, -1, -1, pybullet.JOINT_POINT2POINT, [0] * 3, *pivots
        )
        client.changeConstraint(made, [x, 0, 1 + z], **given)
    client.setBridgeMode("filter")
    client.stepSimulation()
    begun = client.getBaseVelocity(body)[1][1]
    for _ in range(10):
        client.stepSimulation()
        pose = client.getBasePositionAndOrientation(body)
        at = client.multiplyTransforms(*pose, [0, 0, 0.25], [0, 0, 0, 1])[0]
        assert at == pytest.approx([0, 0, 1.25], abs=1e-6)  # told in single precision
    inertia = client.getDynamicsInfo(body, -1)[2][0] + 0.25**2
    gained = (begun - client.getBaseVelocity(body)[1][1]) / (10 * dt)
    assert gained == pytest.approx(limit * 0.5 / inertia, rel=1e-3)


def test_what_is_closed_twice_in_a_step_is_closed_from_its_start():
    """A limit that closing alone exceeds lets go in a second call: of the same step, once in time.

    Sums of a hundred steps are round-off of 1e-14 s off.
    """
    p = bb.BulletClient(pybullet.DIRECT)
    p.setGravity(0, 0, -G)
    box = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.1, 0.02, 0.02])
    one, other = (p.createMultiBody(1, box, basePosition=[x, 0, 1]) for x in (0.1, 0.3))
    point, end, begin = pybullet.JOINT_POINT2POINT, [0.1, 0, 0], [-0.1, 0, 0]
    p.createConstraint(one, -1, -1, -1, point, [0] * 3, begin, [0, 0, 1])
    p.changeConstraint(
        p.createConstraint(one, -1, other, -1, point, [0] * 3, end, begin), maxForce=35
    )
    p.setCollisionFilterPair(one, other, -1, -1, 0)
    p.resetBaseVelocity(other, [0, 0, 0], [0, 10, 0])
    for _ in range(100):
        p.stepSimulation()
    (group,) = session_of(p._client).groups.values()
    assert group.system.t == pytest.approx(100 * DT, abs=1e-12)
    p.disconnect()


def five_bar_of_few_digits(tmp_path, quarter, *joints):
    """Path of a five-bar whose plane was turned by a rounded right angle; ``joints`` come besides.

    Each by parent, child, and where along the parent's x it is; about z.
    """
    own = "base a 0.041", "a b 0.08", "base c -0.041", "c d 0.08", *joints
    made = [each.split() for each in own]
    inertia = inertial(0.2, (3e-4, 3e-4, 3e-4), (0.05, 0.01, 0), (0.2, 0.5, 0))
    bodies = "".join(link(name, inertia) for name in ("base", *(child for _, child, _ in made)))
    text = "".join(
        f'<joint name="j{child}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x} 0 0" rpy="-{quarter if parent == "base" else 0} 0 0"/>'
        '<axis xyz="0 0 1"/></joint>'
        for parent, child, x in made
    )
    path = tmp_path / "five_bar.urdf"
    path.write_text(f'<robot name="five_bar">{bodies}{text}</robot>')
    return path


@pytest.mark.parametrize("mode", ["filter", "exact"])
@pytest.mark.parametrize(("quarter", "roll"), [("1.5708", 0.0), ("1.57", 0.0), ("1.5708", 0.02)])
def test_a_rounded_quarter_turn_does_not_have_a_pin_give_way(
    connect, tmp_path, mode, quarter, roll
):
    """A five-bar drawn with few digits: across its plane Bullet pulls in vain with all it may.

    Gaps are those of poses in single precision, 6e-8 of places within a metre; natively 1e-5 m.
    """
    path = five_bar_of_few_digits(tmp_path, quarter)
    client = connect()
    client.setBridgeMode(mode)
    client.setGravity(0, 0, -9.81)
    turn = client.getQuaternionFromEuler([roll, 0, 0])
    body = client.loadURDF(str(path), [0, 0, 0], turn, useFixedBase=True, flags=FLAGS)
    for joint in range(4):
        client.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
    _, _, _, com, turn, *_ = client.getDynamicsInfo(body, 1)
    back = client.invertTransform(com, turn)
    pivots = [
        list(client.multiplyTransforms(*back, place, [0, 0, 0, 1])[0])
        for place in ([0.0329, 0.0944, 0], [0.11491, 0.0944, 0])
    ]
    pin = client.createConstraint(body, 1, body, 3, pybullet.JOINT_POINT2POINT, [0, 0, 0], *pivots)
    client.changeConstraint(pin, maxForce=500)
    gaps = []
    for k in range(200):
        for joint, away in ((0, 1), (2, -1)):
            target = 0.3 * away * np.sin(k / 20)
            client.setJointMotorControl2(
                body, joint, pybullet.POSITION_CONTROL, targetPosition=target, force=40
            )
        client.stepSimulation()
        ends = [
            client.multiplyTransforms(*client.getLinkState(body, at)[:2], pivot, [0, 0, 0, 1])[0]
            for at, pivot in zip((1, 3), pivots, strict=True)
        ]
        gaps.append(np.linalg.norm(np.subtract(*ends)))
    assert max(gaps[60:]) < 2e-7
    assert max(map(abs, client.getConstraintState(pin))) < 50.0


@pytest.mark.parametrize("turn", [(0.0, 0.0, 0.0), (0.3, 0.5, 0.7)])
def test_a_planar_loop_that_begins_open_is_closed_and_stays_so(connect, turn):
    """A five-bar swings: what its pin pulls at in vain, across the plane, is not giving way.

    Of its 1.8 mm a fifth is taken in each step, 1e-4 of it are left after 41; or what each step
    opens anew, 1e-4 m later on. Poses are told in single precision, 6e-8 of a place within a metre.
    """
    client = connect()
    client.setBridgeMode("exact")
    client.setGravity(0, 0, -9.81)
    place = [0, 0, 0], client.getQuaternionFromEuler(turn)
    urdf = f"{bb.models_folder()}/five_bar.urdf"
    body = client.loadURDF(urdf, *place, useFixedBase=True, flags=FLAGS)
    for joint, angle in enumerate((2.002, 0.0, np.pi - 2.0, 0.0)):
        client.resetJointState(body, joint, angle)
        client.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
    tips = []
    for forearm in (1, 3):
        inverse = client.invertTransform(*client.getDynamicsInfo(body, forearm)[3:5])
        tips.append(client.multiplyTransforms(*inverse, [0.6, 0, 0], [0, 0, 0, 1])[0])
    pin = client.createConstraint(body, 1, body, 3, pybullet.JOINT_POINT2POINT, [0] * 3, *tips)
    client.changeConstraint(pin, maxForce=1e5)
    for _ in range(80):
        client.stepSimulation()
    ends = [
        client.multiplyTransforms(*client.getLinkState(body, forearm)[:2], tip, [0, 0, 0, 1])[0]
        for forearm, tip in zip((1, 3), tips, strict=True)
    ]
    assert np.linalg.norm(np.subtract(*ends)) < 3e-7


@pytest.mark.parametrize("kind", [pybullet.JOINT_FIXED, pybullet.JOINT_REVOLUTE])
def test_what_is_pulled_in_vain_across_a_plane_is_neither_borne_nor_giving_way(
    connect, tmp_path, kind
):
    """A five-bar of few digits with a link at its tip, closed there by a weld or a hinge.

    Bullet pulls across the plane with all of 5 N, and turns out of it. Filter mode tells what exact
    mode does, 1.4 N, but for what two kinds of steps differ by in a slow motion: 0.05 N.
    """
    path = five_bar_of_few_digits(tmp_path, "1.5708", "b e 0.08")
    told, gaps = [], []
    for mode in ("filter", "exact"):
        client = connect()
        client.setBridgeMode(mode)
        client.setGravity(0, 0, -9.81)
        body = client.loadURDF(str(path), useFixedBase=True, flags=FLAGS)
        for joint, angle in enumerate((0.6, 0.5, 0.4, 1.2, 0.7)):
            client.resetJointState(body, joint, angle)
            client.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
        e, d = client.getLinkState(body, 2)[:2], client.getLinkState(body, 4)[:2]
        frame = client.multiplyTransforms(*client.invertTransform(*d), *e)
        normal = client.multiplyTransforms(
            *client.invertTransform([0, 0, 0], e[1]), [0, 1, 0], [0, 0, 0, 1]
        )[0]
        still = [0, 0, 0], frame[0], [0, 0, 0, 1], frame[1]
        made = client.createConstraint(body, 2, body, 4, kind, normal, *still)
        client.changeConstraint(made, maxForce=5)
        for k in range(60):
            for joint, middle in ((0, 0.6), (3, 1.2)):
                target = middle + 0.02 * np.sin(k / 20)
                client.setJointMotorControl2(
                    body, joint, pybullet.POSITION_CONTROL, targetPosition=target, force=5
                )
            client.stepSimulation()
        e, d = client.getLinkState(body, 2)[:2], client.getLinkState(body, 4)[:2]
        gaps.append(np.subtract(e[0], client.multiplyTransforms(*d, *frame)[0]))
        told.append(client.getConstraintState(made))
    assert np.abs(gaps).max() < 3e-7  # told in single precision
    assert np.abs(np.subtract(*told)).max() < 0.05
    assert np.abs(told).max() < 2.0


@pytest.mark.parametrize("on_base", [False, True], ids=["frame", "base"])
def test_a_led_point_does_not_pull_at_what_a_rigid_one_beside_it_carries(connect, on_base):
    """A box of 1 kg on two points that go to and fro together; one of them has a force limit.

    It lags behind in the first step, in which its frame is put. Along the line between the points
    only the other one could close that. It bears half of the weight and inertia, at most 9 N.
    """
    client = connect()
    client.setBridgeMode("exact")
    client.setGravity(0, 0, -9.81)
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.1, 0.05, 0.05])
    body = client.createMultiBody(1.0, shape, -1, [0, 0, 1])
    carrier = client.createMultiBody(0, -1, -1, [0, 0, 1]) if on_base else -1
    ends, point = ([-0.1, 0, 0], [0.1, 0, 0]), pybullet.JOINT_POINT2POINT
    places = [[x, 0, 0.0 if on_base else 1.0] for x, _, _ in ends]
    pins = [
        client.createConstraint(body, -1, carrier, -1, point, [0] * 3, end, place)
        for end, place in zip(ends, places, strict=True)
    ]
    client.changeConstraint(pins[1], maxForce=400)
    for step in range(90):
        way = 0.05 * np.sin(step / 20) * np.array([0.6, 0.64, 0.48])
        if on_base:
            client.resetBasePositionAndOrientation(
                carrier, (way + [0, 0, 1]).tolist(), [0, 0, 0, 1]
            )
        else:
            for pin, place in zip(pins, places, strict=True):
                client.changeConstraint(pin, (way + place).tolist())
        client.stepSimulation()
    at, turn = client.getBasePositionAndOrientation(body)
    tips = [client.multiplyTransforms(at, turn, end, [0, 0, 0, 1])[0] for end in ends]
    assert_allclose(tips, np.array(ends) + way + [0, 0, 1], atol=3e-7)  # in single precision
    assert np.linalg.norm(client.getConstraintState(pins[1])) < 9.0


def test_what_is_pulled_in_vain_is_not_sought_to_be_closed_in_every_step(
    connect, tmp_path, monkeypatch
):
    """An arm is pulled with 0.1 N at a point out of its reach: twice as many steps go by each time.

    After steps 1, 3, 7, 15, 31 that is six searches in 60 steps; and one more once it was moved.
    """
    client, searches = connect(), []
    body, pin = linkage(client, tmp_path)
    client.removeConstraint(pin)
    far = client.createConstraint(
        body, 2, -1, -1, pybullet.JOINT_POINT2POINT, [0] * 3, [0] * 3, [9, 0, 0]
    )
    client.changeConstraint(far, maxForce=0.1)
    close = active_constraints.close
    monkeypatch.setattr(
        active_constraints, "close", lambda *given: searches.append(1) or close(*given)
    )
    for _ in range(60):
        client.stepSimulation()
    assert 1 <= len(searches) <= 6
    before = len(searches)
    client.resetJointState(body, 0, 0.5)
    client.stepSimulation()
    assert len(searches) == before + 1
    assert max(map(abs, client.getConstraintState(far))) == pytest.approx(0.1, rel=1e-6)


def test_cables_that_all_give_way_are_looked_at_ever_more_rarely(connect, monkeypatch):
    """Four cables of 1 N to corners a metre apart draw a ball of 1 kg up: nothing can be closed.

    What holds is looked for in the first step and 2, 4, 8, 16 after the last: forces are Bullet's.
    """
    looked, steps = set(), [0]
    decide = ActiveConstraints.decide_near
    monkeypatch.setattr(
        ActiveConstraints, "decide_near", lambda *given: looked.add(steps[-1]) or decide(*given)
    )
    found = []
    for client in (connect(), connect(Native)):
        sphere = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.1)
        ball = client.createMultiBody(1.0, sphere)
        ends = ball, -1, -1, -1
        cables = [
            client.createConstraint(*ends, pybullet.JOINT_POINT2POINT, [0] * 3, [0] * 3, [x, y, 3])
            for x in (-1, 1)
            for y in (-1, 1)
        ]
        for cable in cables:
            client.changeConstraint(cable, maxForce=1.0)
        for step in range(40):
            steps.append(step)
            client.stepSimulation()
        at, _ = client.getBasePositionAndOrientation(ball)
        found.append([*at, *client.getConstraintState(cables[0])])
    assert_allclose(*found, atol=1e-12)
    assert looked == {0, 2, 6, 14, 30}
