"""A plate on rods in filter mode, with something on it that no constraint holds."""

import math
from itertools import pairwise

import numpy as np
import pybullet
import pytest

from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import session_of

G, LENGTH, TOP, TILT = 9.81, 1.0, 2.0, 0.3
PLATE, ROD, BOX = 4.0, 0.3, 12.0
P2P = pybullet.JOINT_POINT2POINT
CORNERS = {4: ((1, 1), (-1, 1), (-1, -1), (1, -1)), 3: ((1, 1), (-1, 1), (0, -1))}


def body(client, mass, half, place, turn=(0, 0, 0, 1)):
    """A box."""
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=half)
    return client.createMultiBody(mass, shape, -1, place, turn)


def hang(client, rods, load):
    """Plate, swung out by TILT, and its constraints; a box lies on it if wanted."""
    client.setGravity(0, 0, -G)
    out = np.array([math.sin(TILT), 0, -math.cos(TILT)]) * LENGTH
    turn = client.getQuaternionFromEuler((0, -TILT, 0))
    plate = body(client, PLATE, (0.4, 0.3, 0.02), out + (0, 0, TOP))
    made = []
    for x, y in CORNERS[rods]:
        at = np.array([0.35 * x, 0.25 * y, TOP])
        rod = body(client, ROD, (0.01, 0.01, LENGTH / 2), at + out / 2, turn)
        client.setCollisionFilterGroupMask(rod, -1, 0, 0)
        end, p2p = (0, 0, LENGTH / 2), pybullet.JOINT_POINT2POINT
        made.append(client.createConstraint(rod, -1, -1, -1, p2p, (0, 0, 0), end, at))
        below, there = (0, 0, -LENGTH / 2), at - (0, 0, TOP)
        made.append(client.createConstraint(rod, -1, plate, -1, p2p, (0, 0, 0), below, there))
    if load:
        body(client, BOX, (0.1, 0.1, 0.1), out + (0, 0, TOP + 0.1205))
    return plate, made


@pytest.mark.parametrize("load", [False, True])
def test_rods_that_share_a_load_are_told_to_share_it(load):
    """Four rods are one too many, and in a plane swing a turn of the plate all but follows.

    No rod carries more than twice all weights: swinging adds less than one of them to what hangs.
    """
    client = BulletClient(pybullet.DIRECT, mode="filter")
    _, made = hang(client, 4, load)
    weight = G * (PLATE + 4 * ROD + (BOX if load else 0))
    for _ in range(240):
        client.stepSimulation()
        told = [client.getConstraintState(number) for number in made]
        assert np.abs(told).max() < 2 * weight
    # points tell the force on the child, which is the world at the tops of all rods
    assert -sum(state[2] for state in told[::2]) > 0.5 * weight


def test_what_lies_on_a_plate_does_not_hold_it():
    """The swing stays in its plane as Bullet's does; points of contact are no ground to stand on.

    They were held in the world: the plate drifted 5 mm sideways in two seconds.
    """
    client = BulletClient(pybullet.DIRECT, mode="filter")
    plate, _ = hang(client, 3, True)
    aside = 0.0
    for _ in range(480):
        client.stepSimulation()
        aside = max(aside, abs(client.getBasePositionAndOrientation(plate)[0][1]))
    assert aside < 1e-3


@pytest.mark.parametrize(("boxes", "hook"), [(8, 0.05), (10, 0.03)])
def test_a_chain_of_boxes_that_touch_stays_closed(boxes, hook):
    """They jam where they touch: points that stick and loops contradict each other.

    It starts level, at the middle of a block, with a ball that is a hundred times as heavy as a
    box, so that Bullet's step opens it by millimetres.
    """
    client = BulletClient(pybullet.DIRECT, mode="filter")
    client.setGravity(0, 0, -G)
    before, end = body(client, 0, (hook, hook, hook), (0, 0, 3)), (0, 0, 0)
    for k in range(boxes + 1):
        if k < boxes:
            half, after = 0.05, body(client, 0.1, (0.05, 0.01, 0.01), (0.05 + 0.1 * k, 0, 3))
        else:
            half = 0.08
            ball = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=half)
            after = client.createMultiBody(10.0, ball, -1, (half + 0.1 * k, 0, 3))
        ends = before, -1, after, -1
        pivots = (0, 0, 0), end, (-half, 0, 0)
        client.createConstraint(*ends, pybullet.JOINT_POINT2POINT, *pivots)
        before, end = after, (half, 0, 0)
    for _ in range(5):
        client.stepSimulation()
        (group,) = session_of(client._client).groups.values()
        assert max(gap.kept_metres for gap in group.joined.gaps()) < 1e-12


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_a_rope_bridge_of_exactly_its_span_is_held(mode):
    """Five plates on two points each; the oracle is the only closed configuration, the level one.

    A plate of length L that slopes by s spans s² L / 2 less than L, and all of them may miss no
    more than what all joints may be open by: no edge is lower than the sum of slopes that this
    allows, n L sqrt(2 C / (n L)), 3.5 um. Free fall as long as this would be 3 mm.
    """
    n, length, width = 5, 0.2, 0.3
    client = BulletClient(pybullet.DIRECT, mode=mode)
    client.setGravity(0, 0, -G)
    half = 0.45 * length, 0.5 * width, 0.01
    plates = [body(client, 0.5, half, ((k + 0.5) * length, 0, 1)) for k in range(n)]
    for y in (-0.5 * width, 0.5 * width):
        before, there = (-0.5 * length, y, 0), (0.5 * length, y, 0)
        for one, other in pairwise(plates):
            client.createConstraint(one, -1, other, -1, P2P, (0, 0, 0), there, before)
        client.createConstraint(plates[0], -1, -1, -1, P2P, (0, 0, 0), before, (0, y, 1))
        client.createConstraint(plates[-1], -1, -1, -1, P2P, (0, 0, 0), there, (n * length, y, 1))
    stay_level(client, plates, n * length, n + 1)


def stay_level(client, bodies, span, joints):
    """Step; bodies on so many joints in a line over a span stay where they are, 1 m high."""
    open_by = 0.0
    for _ in range(6):
        client.stepSimulation()
        (group,) = session_of(client._client).groups.values()
        open_by = max(open_by, *(gap.metres for gap in group.joined.gaps()))
    assert open_by < 1e-12
    for number in bodies:
        height = client.getBasePositionAndOrientation(number)[0][2]
        assert abs(height - 1) < span * math.sqrt(2 * joints * 1e-12 / span)
    client.disconnect()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_a_net_of_exactly_its_span_is_held(mode):
    """Sixteen balls tied to their neighbours and to a frame: a row is lost in each line of it.

    As many as that an elimination of links does not tell from round-off; joint coordinates do. The
    oracle is that of the bridge, for each line.
    """
    n, length = 4, 0.2
    client = BulletClient(pybullet.DIRECT, mode=mode)
    client.setGravity(0, 0, -G)
    shape = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
    centre = {
        (i, j): np.array([(i + 0.5) * length, (j + 0.5) * length, 1])
        for i in range(n)
        for j in range(n)
    }
    balls = {k: client.createMultiBody(0.2, shape, -1, place) for k, place in centre.items()}
    for (i, j), ball in balls.items():
        for k, way in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
            end, there = 0.5 * length * np.array([*way, 0]), (i + way[0], j + way[1])
            if there not in balls:
                at = centre[i, j] + end
                client.createConstraint(ball, -1, -1, -1, P2P, (0, 0, 0), end, at)
            elif k % 2 == 0:
                client.createConstraint(ball, -1, balls[there], -1, P2P, (0, 0, 0), end, -end)
    stay_level(client, balls.values(), n * length, n + 1)


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_a_plate_on_three_slides_that_pull_apart_stays_level_and_closed(mode):
    """Its tilt closes at second order alone: rows that follow from others while it is level count.

    Motors ask for heights that differ by 2 cm each; Bullet lets the joints open by 1.6 mm.
    """
    client = BulletClient(pybullet.DIRECT, mode=mode)
    client.setGravity(0, 0, -9.81)
    flat = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.2, 0.2, 0.02])
    plate = client.createMultiBody(3, flat, -1, [0, 0, 0.5])
    ends = []
    for k in range(3):
        x, y = 0.18 * np.cos(2 * np.pi * k / 3), 0.18 * np.sin(2 * np.pi * k / 3)
        leg = client.createMultiBody(
            0, -1, -1, [x, y, 0.05], linkMasses=[0.2], linkCollisionShapeIndices=[-1],
            linkVisualShapeIndices=[-1], linkPositions=[[0, 0, 0]],
            linkOrientations=[[0, 0, 0, 1]], linkInertialFramePositions=[[0, 0, 0]],
            linkInertialFrameOrientations=[[0, 0, 0, 1]], linkParentIndices=[0],
            linkJointTypes=[pybullet.JOINT_PRISMATIC], linkJointAxis=[[0, 0, 1]],
        )  # fmt: skip
        client.changeDynamics(leg, 0, localInertiaDiagonal=[1e-3] * 3)
        client.resetJointState(leg, 0, 0.43)
        client.setJointMotorControl2(
            leg, 0, pybullet.POSITION_CONTROL, targetPosition=0.43 + 0.02 * k, force=100
        )
        pivot = [x, y, -0.02]
        client.createConstraint(
            leg, 0, plate, -1, pybullet.JOINT_POINT2POINT, [0, 0, 1], [0, 0, 0], pivot
        )
        ends.append((leg, pivot))
    for _ in range(60):
        client.stepSimulation()
    pose = client.getBasePositionAndOrientation(plate)
    for leg, pivot in ends:
        at = client.getLinkState(leg, 0, computeForwardKinematics=1)[0]
        there, _ = client.multiplyTransforms(*pose, pivot, [0, 0, 0, 1])
        assert np.abs(np.subtract(at, there)).max() < 1e-7  # pivots are told in single precision
    client.disconnect()
