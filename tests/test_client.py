"""The drop-in client: Bullet's semantics, exact loops."""

import numpy as np
import pybullet
import pybullet_data
import pytest
from pybullet_utils.bullet_client import BulletClient as Native
from scipy.spatial.transform import Rotation
from support.small_models import four_bar

import bulletbridge.pybullet as bridged
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.scripts.monitor import between
from bulletbridge.drop_in.session import LONGEST_PUMP, session_of
from bulletbridge.drop_in.settings import HOOKS
from bulletbridge.errors import BulletBridgeWarning, CallError, WorldError

FLAGS = pybullet.URDF_USE_INERTIA_FROM_FILE
TIPS = {1: 1.2, 2: 0.9}  # lengths of coupler and rocker by link [m]
BOX = """<robot name="box{0}"><link name="box"><inertial>
<origin xyz="0.05 0 0.02" rpy="0.2 0.1 0"/><mass value="1.5"/>
<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0" iyz="0.002"/></inertial>
</link></robot>"""


def linkage(client, folder):
    """The four-bar of the tests with its loop as Bullet's own constraint, swinging freely."""
    path = four_bar(folder).parent / "four_bar.urdf"
    client.setGravity(0, 0, -9.81)
    body = client.loadURDF(str(path), useFixedBase=True, flags=FLAGS)
    for joint, start in enumerate((1.2, -1.9186, 0.1)):
        client.resetJointState(body, joint, start)
        client.setJointMotorControl2(body, joint, pybullet.VELOCITY_CONTROL, force=0)
    pivots = []
    for link, length in TIPS.items():
        _, _, _, com, turn, *_ = client.getDynamicsInfo(body, link)
        pivots.append(Rotation.from_quat(turn).inv().apply([-com[0], -com[1], -length - com[2]]))
    pivots = [pivot.tolist() for pivot in pivots]
    made = client.createConstraint(
        body, 1, body, 2, pybullet.JOINT_POINT2POINT, [0, 0, 0], pivots[0], pivots[1]
    )
    return body, made


def tips(client, body):
    """Distance of the two ends of the loop [m], from Bullet's own double-precision poses."""
    ends = []
    for link, length in TIPS.items():
        state = client.getLinkState(body, link, computeForwardKinematics=1)
        _, _, _, com, turn, *_ = client.getDynamicsInfo(body, link)
        local = Rotation.from_quat(turn).inv().apply([-com[0], -com[1], -length - com[2]])
        ends.append(state[0] + Rotation.from_quat(state[1]).apply(local))
    return float(np.linalg.norm(ends[0] - ends[1]))


def test_a_loop_is_closed_after_every_step(connect, tmp_path):
    client = connect()
    body, made = linkage(client, tmp_path)
    for _ in range(240):
        client.stepSimulation()
        assert tips(client, body) < 1e-12
    (loop,) = client.getBridgeLoops().values()
    assert (loop.number, loop.bodies, loop.exact) == (made, (body,), True)


def test_bullet_alone_leaves_a_gap(connect, tmp_path):
    client = connect(Native)
    body, _ = linkage(client, tmp_path)
    gaps = []
    for _ in range(240):
        client.stepSimulation()
        gaps.append(tips(client, body))
    assert max(gaps) > 1e-5


def test_without_constraints_every_bit_is_bullets(connect):
    states = []
    for kind in (BulletClient, Native):
        client = connect(kind)
        client.setGravity(0, 0, -9.81)
        client.setAdditionalSearchPath(pybullet_data.getDataPath())
        client.loadURDF("plane.urdf")
        arm = client.loadURDF("kuka_iiwa/model.urdf", useFixedBase=True)
        client.loadURDF("cube_small.urdf", [0.4, 0.1, 0.5])
        for _ in range(200):
            client.stepSimulation()
        joints = [client.getJointState(arm, j)[:2] for j in range(7)]
        states.append((joints, client.getBasePositionAndOrientation(2)))
    assert states[0] == states[1]


@pytest.mark.parametrize("kind", [pybullet.JOINT_FIXED, pybullet.JOINT_PRISMATIC])
def test_two_bodies_and_the_world(connect, tmp_path, kind):
    """A box hung on the world and a second one on it, with displaced and turned inertial frames."""
    client = connect()
    client.setGravity(0.3, 0.2, -9.81)
    boxes = []
    for n in range(2):
        path = tmp_path / f"box{n}.urdf"
        path.write_text(BOX.format(n))
        turn = pybullet.getQuaternionFromEuler([0.3 * n, 0.2, -0.4])
        boxes.append(client.loadURDF(str(path), [0.5 * n, 0, 1], turn, flags=FLAGS))
    client.changeDynamics(boxes[0], -1, linearDamping=0, angularDamping=0)
    for n, box in enumerate(boxes):
        parent = boxes[n - 1] if n else -1
        pose = client.getBasePositionAndOrientation(box)
        base = client.getBasePositionAndOrientation(parent) if n else ((0, 0, 0), (0, 0, 0, 1))
        back = Rotation.from_quat(base[1]).inv()  # PyBullet's own helpers work in single precision
        relative = (
            back.apply(np.subtract(pose[0], base[0])).tolist(),
            (back * Rotation.from_quat(pose[1])).as_quat().tolist(),
        )
        # the box is the parent here: its frame is its inertial frame, the other end's is given
        client.createConstraint(
            box,
            -1,
            parent,
            -1,
            kind,
            [0.6, 0, 0.8],
            [0, 0, 0],
            relative[0],
            [0, 0, 0, 1],
            relative[1],
        )
    start = [client.getBasePositionAndOrientation(box) for box in boxes]
    for _ in range(120):
        client.stepSimulation()
    assert all(loop.exact for loop in client.getBridgeLoops().values())
    end = [client.getBasePositionAndOrientation(box) for box in boxes]
    for (_, q0), (_, q1) in zip(start, end, strict=True):
        assert (Rotation.from_quat(q1) * Rotation.from_quat(q0).inv()).magnitude() < 1e-11
    slides = [np.subtract(p1, p0) for (p0, _), (p1, _) in zip(start, end, strict=True)]
    if kind == pybullet.JOINT_FIXED:
        assert np.abs(slides).max() < 1e-11
    else:
        axis = Rotation.from_quat(start[0][1]).apply([0.6, 0, 0.8])
        assert np.linalg.norm(slides[0]) > 1e-2
        # Bullet keeps the axis in single precision
        assert np.linalg.norm(np.cross(axis, slides[0])) < 1e-7 * np.linalg.norm(slides[0])


def test_ids_returns_and_errors_are_bullets(connect, tmp_path):
    answers = []
    for kind in (BulletClient, Native):
        client = connect(kind)
        body, first = linkage(client, tmp_path)
        second = client.createConstraint(
            body, 1, -1, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0], [0, 0, 0], [0, 0, 0]
        )
        seen = [first, second, client.getNumConstraints(), client.getConstraintInfo(first)]
        seen.append(client.changeConstraint(second, maxForce=20))
        seen.append(client.getConstraintInfo(second)[10])
        seen.append(client.removeConstraint(second))
        seen += [client.getNumConstraints(), client.getConstraintUniqueId(0)]
        with pytest.raises(pybullet.error) as wrong:
            client.createConstraint(99, 0, -1, -1, pybullet.JOINT_FIXED, [0] * 3, [0] * 3, [0] * 3)
        seen.append(str(wrong.value))
        with pytest.raises(pybullet.error) as unknown:
            client.createConstraint(body, 1, body, 2, 9, [0] * 3, [0] * 3, [0] * 3)
        seen.append(str(unknown.value))
        client.resetSimulation()
        seen.append(client.getNumConstraints())
        answers.append(seen)
    assert answers[0] == answers[1]


def test_loops_can_be_opened_and_closed_again(connect, tmp_path):
    client = connect()
    body, made = linkage(client, tmp_path)
    info = client.getConstraintInfo(made)
    client.stepSimulation()
    client.removeConstraint(made)
    for _ in range(20):
        client.stepSimulation()
    assert tips(client, body) > 1e-3
    client.createConstraint(body, 1, body, 2, info[4], info[5], info[6], info[7])
    client.stepSimulation()
    assert tips(client, body) < 1e-12
    client.removeBody(body)
    assert client.getBridgeLoops() == {}
    client.stepSimulation()


def test_two_clients_do_not_disturb_each_other(connect, tmp_path):
    alone, *both = connect(), connect(), connect()
    bodies = [linkage(client, tmp_path)[0] for client in (alone, *both)]
    for _ in range(50):
        for client in both:
            client.stepSimulation()
    for _ in range(50):
        alone.stepSimulation()
    ends = [
        [client.getJointState(body, j)[:2] for j in range(3)]
        for client, body in zip((alone, *both), bodies, strict=True)
    ]
    assert ends[0] == ends[1] == ends[2]


def test_what_cannot_be_modelled_stays_bullets_own(connect, tmp_path):
    path = tmp_path / "planar.urdf"
    inertial = BOX[BOX.index("<inertial>") : BOX.index("</link>")]
    path.write_text(
        f'<robot name="r"><link name="a"/><link name="b">{inertial}</link>'
        '<joint name="j" type="planar"><parent link="a"/><child link="b"/>'
        '<axis xyz="0 0 1"/></joint></robot>'
    )
    client = connect()
    body = client.loadURDF(str(path), useFixedBase=True, flags=FLAGS)
    number = client.createConstraint(
        body, 0, -1, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0], [0, 0, 0], [0, 0, 0]
    )
    with pytest.warns(BulletBridgeWarning, match="stay Bullet's own: .*planar"):
        client.stepSimulation()
    assert "planar" in client.getBridgeLoops()[number].reason
    client.stepSimulation()


def test_none_in_place_of_a_vector_is_what_it_is_natively(connect, tmp_path):
    told = []
    for client in (BulletClient(pybullet.DIRECT, mode="native"), connect()):
        body, _ = linkage(client, tmp_path)
        number = client.createConstraint(
            body, 1, -1, -1, pybullet.JOINT_FIXED, None, None, [0, 0, 1], None, None
        )
        client.changeConstraint(number, None, None, 5.0)
        client.changeConstraint(number, [0, 0, 2], None)
        told.append(client.getConstraintInfo(number))
    assert told[0] == told[1]
    assert client.getBridgeLoops()[number].max_force == 5.0


def test_traps_of_bullet_become_errors(connect, tmp_path, monkeypatch):
    client = connect()
    body, _ = linkage(client, tmp_path)
    with pytest.raises(CallError, match="gear cannot act on a base link"):
        client.createConstraint(
            body, 0, body, -1, pybullet.JOINT_GEAR, [0, 1, 0], [0, 0, 0], [0, 0, 0]
        )
    for kind, named in ((client.JOINT_REVOLUTE, "revolute"), (client.JOINT_PLANAR, "planar")):
        with pytest.raises(pybullet.error, match=f"jointAxis of a {named}.*no direction"):
            client.createConstraint(body, 0, -1, -1, kind, np.zeros(3), [0, 0, 0], [0, 0, 0])
    assert client.getNumConstraints() == 1
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(WorldError, match="p.GUI needs a display.*bulletbridge run --headless"):
        BulletClient(pybullet.GUI)


def test_ends_that_are_not_there_are_errors(connect, tmp_path):
    """Where PyBullet ends the process at the next step, or holds to the world instead."""
    client = connect()
    body, _ = linkage(client, tmp_path)
    point = pybullet.JOINT_POINT2POINT, [0, 0, 0], [0, 0, 0], [0, 0, 0]
    for other, link, said in (
        (body, 3, r"no link 3 \(childLinkIndex\).*to 2"),
        (body, -2, r"no link -2 \(childLinkIndex\)"),
        (body + 1, -1, "no body 1.*takes for the world; give -1"),
    ):
        with pytest.raises(pybullet.error, match=said):
            client.createConstraint(body, 1, other, link, *point)
    gear = client.createConstraint(
        body, 0, body, 1, pybullet.JOINT_GEAR, [0, 1, 0], [0, 0, 0], [0, 0, 0]
    )
    with pytest.raises(pybullet.error, match=r"no link 3 \(gearAuxLink\)"):
        client.changeConstraint(gear, gearAuxLink=3)
    assert client.changeConstraint(gear + 1, gearAuxLink=3) is None  # as natively
    assert client.getNumConstraints() == 2


def test_quaternions_of_zeros_are_errors(connect, tmp_path):
    client = connect()
    body, _ = linkage(client, tmp_path)
    vectors, nothing = [[0, 0, 0]] * 3, [0, 0, 0, 0]
    for parent, child in ((nothing, [0, 0, 0, 1]), ([0, 0, 0, 1], np.zeros(4))):
        with pytest.raises(pybullet.error, match="FrameOrientation is a quaternion of zeros"):
            client.createConstraint(body, 1, -1, -1, pybullet.JOINT_FIXED, *vectors, parent, child)
    number = client.createConstraint(body, 1, -1, -1, pybullet.JOINT_FIXED, *vectors)
    with pytest.raises(pybullet.error, match="jointChildFrameOrientation is a quaternion of zeros"):
        client.changeConstraint(number, [0, 0, 1], nothing)


def test_what_bullet_takes_no_note_of_changes_nothing(connect, tmp_path):
    told = []
    for client in (BulletClient(pybullet.DIRECT, mode="native"), connect()):
        body, _ = linkage(client, tmp_path)
        gear = client.createConstraint(
            body, 0, body, 1, pybullet.JOINT_GEAR, [0, 1, 0], [0, 0, 0], [0, 0, 0]
        )
        client.changeConstraint(gear, gearRatio=-2.0, gearAuxLink=2, maxForce=7.0, erp=0.3)
        before = client.getBridgeLoops()[gear]
        client.changeConstraint(gear, relativePositionTarget=1e10, gearRatio=0.0, maxForce=-1.0)
        client.changeConstraint(gear, gearAuxLink=-1, erp=-0.2, maxForce=float("nan"))
        assert client.getBridgeLoops()[gear] == before
        assert (before.ratio, before.auxiliary, before.max_force) == (-2.0, 2, 7.0)
        told.append(client.getConstraintInfo(gear))
    assert told[0] == told[1]


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_a_force_limit_without_end_is_none(connect, tmp_path, mode):
    client = connect()
    client.setBridgeMode(mode)
    body, made = linkage(client, tmp_path)
    client.changeConstraint(made, maxForce=5.0)
    client.changeConstraint(made, maxForce=np.inf)
    for _ in range(3):
        client.stepSimulation()  # would warn that it cannot be exact
    loop = client.getBridgeLoops()[made]
    assert (loop.max_force, loop.exact) == (None, True)
    assert tips(client, body) < 1e-12


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_bodies_of_a_batch_are_bodies(connect, tmp_path, mode):
    """Bullet lists the last alone: in exact mode the others stood still in the air."""
    client = connect()
    client.setBridgeMode(mode)
    linkage(client, tmp_path)
    ball = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.1)
    balls = client.createMultiBody(1.0, ball, batchPositions=[[3.0 * k, 5, 0] for k in range(4)])
    assert client.getNumBodies() == 1 + len(balls)
    client.createConstraint(
        balls[0], -1, balls[1], -1, pybullet.JOINT_POINT2POINT, *[[0, 0, 0]] * 3
    )
    client.createConstraint(
        balls[0], -1, -1, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0], [0, 0, 1], [0, 5, 1]
    )
    client.removeBody(balls[3])
    for _ in range(3):
        client.stepSimulation()
    assert all(loop.exact for loop in client.getBridgeLoops().values())
    height, rate = (part(balls[2])[0][2] for part in (
        client.getBasePositionAndOrientation, client.getBaseVelocity
    ))  # fmt: skip
    assert height < 0.0
    assert rate == pytest.approx(-9.81 * 3 / 240, rel=1e-2)  # Bullet's damping takes 4 % a second


def test_what_stayed_bullets_own_is_tried_again_when_that_changes(connect):
    """As after steps of no length, and of bodies that have no inertia yet."""
    client = connect()
    body = client.createMultiBody(1.0, -1, -1, [0, 0, 1])
    made = client.createConstraint(
        body, -1, -1, -1, pybullet.JOINT_FIXED, [0, 0, 0], [0, 0, 0], [0, 0, 1]
    )
    with pytest.warns(BulletBridgeWarning, match="stay Bullet's own: .* moves no inertia"):
        client.stepSimulation()
    client.changeDynamics(body, -1, localInertiaDiagonal=[0.01, 0.01, 0.01])
    client.stepSimulation()
    assert client.getBridgeLoops()[made].exact
    client.setTimeStep(0.0)
    with pytest.warns(BulletBridgeWarning, match="stay Bullet's own: dt is 0.0 s"):
        client.stepSimulation()
    client.setTimeStep(1 / 240)
    client.stepSimulation()
    assert client.getBridgeLoops()[made].exact


def test_bodies_without_a_name_are_told_by_their_number(connect):
    client = connect()
    bodies = [client.createMultiBody(1.0) for _ in range(2)]
    made = client.createConstraint(
        bodies[0], -1, bodies[1], -1, pybullet.JOINT_POINT2POINT, [0] * 3, [0] * 3, [0] * 3
    )
    said = between(client.getConstraintInfo(made), client._client).split(" – ")
    assert [name.split("/")[0] for name in said] == [f"body {body}" for body in bodies]


def test_the_client_tells_its_names_and_itself():
    client = BulletClient(pybullet.DIRECT)
    ours = {"setBridgeMode", "getBridgeLoops", "JOINT_REVOLUTE"}
    assert {*dir(pybullet), *ours} <= set(dir(client))
    assert all(callable(getattr(client, name)) for name in ("loadURDF", "setBridgeMode"))
    number = client._client
    assert repr(client) == f"<BulletClient: client {number}>"
    client.disconnect()
    assert repr(client) == "<BulletClient: disconnected>"


def minitaur(client):
    """Minitaur on the plane, standing on its motors, with the loops of its program."""
    client.setGravity(0, 0, -9.81)
    client.setTimeStep(1 / 240)
    data = pybullet_data.getDataPath()
    client.loadURDF(f"{data}/plane.urdf")
    robot = client.loadURDF(f"{data}/quadruped/minitaur.urdf", [0, 0, 0.2])
    joint = {
        client.getJointInfo(robot, k)[1].decode(): k for k in range(client.getNumJoints(robot))
    }
    for leg in ("front_left", "back_left", "front_right", "back_right"):
        sign = -1 if "left" in leg else 1
        for side in "LR":
            motor, knee = joint[f"motor_{leg}{side}_joint"], joint[f"knee_{leg}{side}_link"]
            client.resetJointState(robot, motor, sign * np.pi / 2)
            client.resetJointState(robot, knee, sign * -2.1834)
            client.setJointMotorControl2(robot, knee, pybullet.VELOCITY_CONTROL, force=0)
            client.setJointMotorControl2(
                robot,
                motor,
                pybullet.POSITION_CONTROL,
                targetPosition=sign * np.pi / 2,
                positionGain=1,
                velocityGain=1,
                force=3.5,
            )
        ends = (joint[f"knee_{leg}{side}_link"] for side in "RL")
        right, left = ends
        client.createConstraint(
            robot,
            right,
            robot,
            left,
            pybullet.JOINT_POINT2POINT,
            [0] * 3,
            [0, 0.005, 0.2],
            [0, 0.01, 0.2],
        )
    return robot


def test_minitaur_stands_on_closed_legs(connect):
    client, native = connect(), connect(Native)
    robots = minitaur(client), minitaur(native)
    for _ in range(480):
        client.stepSimulation()
        native.stepSimulation()
    (group,) = session_of(client._client).groups.values()
    system = group.system
    q, v = system.world.state()
    seen = system.evaluate(q, v)
    # what Bullet holds of our state: quaternions are normalised again
    assert seen.largest("kept_metres") < 1e-12
    assert seen.largest("metres") < 2e-5  # across the legs, from rounded axes
    heights = [
        c.getBasePositionAndOrientation(r)[0][2]
        for c, r in zip((client, native), robots, strict=True)
    ]
    assert abs(heights[0] - heights[1]) < 2e-3


@pytest.mark.parametrize("given", [(0.1, 0.2, 0.3), (0.1, 0.2, 0.3, 0, 0, 0.6, 0.8)])
def test_a_place_of_a_robot_may_be_plain_numbers(connect, given):
    """As in the scripts that ``saveWorld`` writes; PyBullet's own knows no client then."""
    ours, native = connect(), connect(Native)
    cube = f"{pybullet_data.getDataPath()}/cube.urdf"
    body = bridged.loadURDF(cube, *given, physicsClientId=ours._client)
    places = [given[:3], given[3:] or (0, 0, 0, 1)]
    expected = native.loadURDF(cube, *map(list, places))
    read = "getBasePositionAndOrientation"
    assert getattr(ours, read)(body) == getattr(native, read)(expected)


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_real_time_makes_the_steps_that_the_clock_asks_for(connect, tmp_path, monkeypatch, mode):
    """The same bits as stepping by hand; what nobody asked for in time is made up in part."""
    now, dt = [0.0], 1 / 240
    monkeypatch.setattr(HOOKS, "headless", True)
    monkeypatch.setattr(HOOKS, "clock", lambda: now[0])
    client, by_hand = connect(), connect()
    bodies = [linkage(each, tmp_path)[0] for each in (client, by_hand)]
    for each in (client, by_hand):
        each.setBridgeMode(mode)

    def angles(each, body):
        return [each.getJointState(body, joint)[:2] for joint in range(3)]

    client.setRealTimeSimulation(1)
    most = int(LONGEST_PUMP / dt)
    for wait, steps in ((12.25, 12), (0.5, 0), (0.5, 1), (2.0 / dt, most), (1.5, 1)):
        now[0] += wait * dt
        for _ in range(steps):
            by_hand.stepSimulation()
        assert angles(client, bodies[0]) == angles(by_hand, bodies[1])
        assert tips(client, bodies[0]) < 1e-12
    client.setRealTimeSimulation(0)
    now[0] += 1.0
    assert angles(client, bodies[0]) == angles(by_hand, bodies[1])
