"""Shapes, filters and surfaces as they are in a Bullet world, and contacts found by them."""

import numpy as np
import pybullet
import pybullet_data
import pytest
from _touching import Poses, touches
from scipy.spatial.transform import Rotation
from support.bullet_worlds import SLIDER

import bulletbridge as bb
from bulletbridge.bullet import shaped_bodies
from bulletbridge.bullet.collision_shapes import inertial_pose, read_shapes, told_shapes
from bulletbridge.bullet.contact_finder import StrangerError
from bulletbridge.bullet.reader import read_bullet
from bulletbridge.collision.records import BOX, CYLINDER, HULL, SPHERE, UNKNOWN
from bulletbridge.collision.shapes import sphere
from bulletbridge.errors import BulletBridgeWarning

DATA = pybullet_data.getDataPath()
ROUNDED = 1e-3
"""Bullet's margin: what it has around hulls, and by which it rounds edges of boxes off."""
DT = 1 / 240


@pytest.fixture
def client(client):
    """A client of Bullet's own, with gravity in a round number."""
    pybullet.setGravity(0, 0, -10, client)
    return client


def body(client, at=(0, 0, 0), mass=1.0, quat=(0, 0, 0, 1), **shape):
    """A body of one shape without damping."""
    number = pybullet.createCollisionShape(**shape, physicsClientId=client)
    made = pybullet.createMultiBody(
        mass, number, basePosition=at, baseOrientation=quat, physicsClientId=client
    )
    pybullet.changeDynamics(
        made, -1, linearDamping=0, angularDamping=0, lateralFriction=0.5, physicsClientId=client
    )
    return made


def box(client, at, mass=1.0, half=(0.1, 0.1, 0.1)):
    """A box."""
    return body(client, at, mass, shapeType=pybullet.GEOM_BOX, halfExtents=half)


def system_of(client, *bodies):
    """A system of free bodies that finds contacts."""
    world = read_bullet(list(bodies), client)
    system = bb.System(world.mechanism, [], world=world, contacts=True, dt=DT)
    q, v = world.state()
    system.set_state(q, v)
    return system


def bullets_gap(client, one, link, other):
    """Bullet's distance of a link from a body."""
    points = pybullet.getClosestPoints(one, other, 9.0, link, -1, physicsClientId=client)
    return min(point[8] for point in points)


def our_gap(client, one, shapes, link, other, probe):
    """Ours, by the shapes that were read."""
    gaps = []
    for spec in shapes:
        (R, p), (S, q) = (inertial_pose(one, link, client), inertial_pose(other, -1, client))
        a, b = spec.at(R, p), probe.at(S, q)
        found = touches(a, b, Poses(a.R[None], a.p[None]), Poses(b.R[None], b.p[None]), 99.0)
        gaps.append(found.gaps[0])
    return min(gaps)


@pytest.mark.parametrize(
    "name",
    [
        "kuka_iiwa/model.urdf",
        "quadruped/minitaur.urdf",
        "r2d2.urdf",
        "lego/lego.urdf",
        "table/table.urdf",
        "plane.urdf",
        "plane_implicit.urdf",
        "humanoid/humanoid.urdf",
        "soccerball.urdf",
        "objects/mug.urdf",
    ],
)
def test_shapes_that_are_read_are_where_bullets_are(client, name, rng):
    """A small ball is as far from each link as Bullet says, to the edges that Bullet rounds off."""
    turned = Rotation.from_rotvec([0.3, -0.2, 0.4]).as_quat()
    one = pybullet.loadURDF(f"{DATA}/{name}", [0.1, 0.2, 0.3], turned, physicsClientId=client)
    ball = body(client, shapeType=pybullet.GEOM_SPHERE, radius=0.02)
    compared = 0
    for link in range(-1, pybullet.getNumJoints(one, client)):
        shapes = read_shapes(one, link, client).shapes
        if not shapes or any(not spec.known for spec in shapes):
            continue
        for _ in range(5):
            near = inertial_pose(one, link, client)[1] + rng.normal(size=3)
            pybullet.resetBasePositionAndOrientation(ball, near, [0, 0, 0, 1], client)
            theirs = bullets_gap(client, one, link, ball)
            # three edges meet in a corner, and Bullet's own error is that of its GJK
            assert our_gap(client, one, shapes, link, ball, sphere(0.02)) == pytest.approx(
                theirs, abs=ROUNDED
            )
            compared += 1
    assert compared > 0


def test_what_bullet_does_not_tell_is_left_to_it(client):
    """Concave meshes and height fields; of several hulls in one file that tells them."""
    mesh = {"shapeType": pybullet.GEOM_MESH, "fileName": f"{DATA}/duck.obj"}
    concave = body(client, mass=0.0, flags=pybullet.GEOM_FORCE_CONCAVE_TRIMESH, **mesh)
    convex = body(client, **mesh)
    ground = body(
        client, mass=0.0, shapeType=pybullet.GEOM_HEIGHTFIELD, meshScale=[1, 1, 1],
        heightfieldTextureScaling=1, heightfieldData=[0.0] * 64, numHeightfieldRows=8,
        numHeightfieldColumns=8,
    )  # fmt: skip
    parts = pybullet.loadURDF(f"{DATA}/duck_vhacd.urdf", physicsClientId=client)
    nothing = pybullet.createMultiBody(1.0, -1, physicsClientId=client)
    kinds = {
        one: [spec.kind for spec in read_shapes(one, -1, client).shapes]
        for one in (concave, convex, ground, parts, nothing)
    }
    assert kinds[concave] == kinds[ground] == [UNKNOWN]
    assert kinds[convex] == [HULL]
    assert len(kinds[parts]) > 1 and set(kinds[parts]) == {HULL}
    assert kinds[nothing] == []


def test_several_shapes_on_one_link(client):
    """A box and a ball, each with its frame."""
    number = pybullet.createCollisionShapeArray(
        shapeTypes=[pybullet.GEOM_BOX, pybullet.GEOM_SPHERE],
        halfExtents=[[0.1, 0.2, 0.3], [0, 0, 0]],
        radii=[0, 0.2],
        collisionFramePositions=[[0, 0, 0], [0, 0, 0.5]],
        physicsClientId=client,
    )
    made = pybullet.createMultiBody(1.0, number, physicsClientId=client)
    shapes = read_shapes(made, -1, client).shapes
    assert [spec.kind for spec in shapes] == [BOX, sphere(1.0).kind]
    assert shapes[1].p == pytest.approx([0, 0, 0.5])


def test_meshes_of_several_files_and_a_cylinder_on_one_link(client, tmp_path):
    """Bullet tells the corners of all of them in one list."""
    wheel = f"{DATA}/bicycle/files/wheel_scaled.stl"
    forms = (
        f'<mesh filename="{wheel}" scale="2 2 2"/>', '<cylinder radius="0.1" length="0.3"/>',
        f'<mesh filename="{DATA}/duck_vhacd.obj"/>', '<sphere radius="0.1"/>',
    )  # fmt: skip
    told = "".join(
        f'<collision><origin xyz="0 {k} 0" rpy="{k} 0.5 0.2"/>'
        f"<geometry>{form}</geometry></collision>"
        for k, form in enumerate(forms)
    )
    path = tmp_path / "several.urdf"
    path.write_text(
        '<robot name="r"><link name="a"><inertial><origin xyz="0.1 0 0" rpy="0.3 0 0"/><mass '
        'value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
        f"{told}</link></robot>"
    )
    made = pybullet.loadURDF(
        str(path), flags=pybullet.URDF_USE_INERTIA_FROM_FILE, physicsClientId=client
    )
    shapes = read_shapes(made, -1, client).shapes
    kinds = [spec.kind for spec in shapes]
    assert kinds.count(HULL) > 2 and kinds.count(CYLINDER) == kinds.count(SPHERE) == 1
    drum = shapes[kinds.index(CYLINDER)]
    inertial = Rotation.from_rotvec([0.3, 0, 0])
    assert drum.size == pytest.approx([0.1, 0.1, 0.15], abs=1e-9)
    assert drum.p == pytest.approx(inertial.inv().apply([-0.1, 1, 0]), abs=1e-9)
    turn = inertial.inv() * Rotation.from_euler("xyz", [1, 0.5, 0.2])
    assert drum.R[:, 2] == pytest.approx(turn.as_matrix()[:, 2], abs=1e-9)


def test_a_box_rests_on_a_height_field_by_bullets_contacts(client):
    body(
        client, mass=0.0, shapeType=pybullet.GEOM_HEIGHTFIELD, meshScale=[1, 1, 1],
        heightfieldTextureScaling=1, heightfieldData=[0.0] * 64, numHeightfieldRows=8,
        numHeightfieldColumns=8,
    )  # fmt: skip
    system = system_of(client, box(client, [0.1, 0.2, 0.1]))
    for _ in range(60):
        system.step()
    load = sum(contact.force for contact in system.contacts())
    assert load == pytest.approx([0, 0, 10], abs=1e-6)
    assert abs(system.q[2] - 0.1) < ROUNDED


def test_filters_of_bullet_hold(client):
    """Asked for once, and again after a while: programs may change them without telling."""
    ground = box(client, [0, 0, -1], 0.0, (5, 5, 1))
    falling, resting = box(client, [0, 0, 0.1]), box(client, [1, 0, 0.1])
    pybullet.setCollisionFilterPair(ground, falling, -1, -1, 0, client)
    system = system_of(client, falling, resting)
    for _ in range(24):
        system.step()
    assert system.q[2] == pytest.approx(0.1 - 10 * DT**2 * 24 * 25 / 2, abs=1e-9)
    assert system.q[9] == pytest.approx(0.1, abs=1e-3)
    pybullet.setCollisionFilterPair(ground, resting, -1, -1, 0, client)
    for _ in range(300):
        system.step()
    assert system.q[9] < 0.0


def test_edges_that_bullet_sees_too_far_off_collide_all_the_same(client):
    """An edge of a small plate in a ball, which Bullet takes for 0.6 mm outside of it."""
    middle, radius, half = np.array([0, 0, 0.4]), 0.15, np.array([0.02, 0.02, 0.005])
    at, turned = (
        (-0.15551761, 0.06328553, 0.44414418),
        (-0.62524011, -0.31830791, -0.0821959, 0.70781263),
    )
    turned = turned / np.linalg.norm(turned)

    def gap(q):
        """Of the ball's surface from the plate [m], negative inside."""
        there = Rotation.from_quat(q[3:]).inv().apply(middle - q[:3])
        return np.linalg.norm(there - np.clip(there, -half, half)) - radius

    ball = body(client, middle, 0.0, shapeType=pybullet.GEOM_SPHERE, radius=radius)
    plate = body(client, at, 0.02, turned, shapeType=pybullet.GEOM_BOX, halfExtents=half)
    system = system_of(client, plate)
    assert gap(system.q) < -1e-5
    assert bullets_gap(client, plate, -1, ball) > 1e-4
    pybullet.performCollisionDetection(client)
    assert not pybullet.getContactPoints(plate, ball, physicsClientId=client)
    q, away = system.q.copy(), system.q[:3] - middle
    for inside in (0.0, 0.001, 0.002):
        q[:3] = middle + away * (1 - inside / np.linalg.norm(away))
        (contact,) = system.world.contact_points(q, np.zeros(6), DT)
        assert contact["gap"] == pytest.approx(gap(q), abs=1e-12)


def test_links_that_are_inside_each_other_by_micrometres_are_asked_about_once(client):
    """Two of Minitaur's upper legs in its chassis: undecided, they would be asked of in each step.

    Asked within no distance, Bullet does not tell of them.
    """
    pybullet.setGravity(0, 0, 0, client)
    system = bb.load("minitaur", client, contacts=True).system
    system.step()
    assert not system.world.detector().undecided()


@pytest.mark.parametrize("flags", [0, pybullet.URDF_USE_SELF_COLLISION_INCLUDE_PARENT])
def test_links_of_one_body_collide_if_bullet_was_told_so(client, tmp_path, flags):
    """A ball on a slider falls onto its base, or through it."""
    file = tmp_path / "slider.urdf"
    file.write_text(SLIDER)
    given = flags | pybullet.URDF_USE_INERTIA_FROM_FILE
    if flags:
        given |= pybullet.URDF_USE_SELF_COLLISION
    one = pybullet.loadURDF(str(file), useFixedBase=True, flags=given, physicsClientId=client)
    pybullet.setJointMotorControl2(
        one, 0, pybullet.VELOCITY_CONTROL, force=0, physicsClientId=client
    )
    for link in (-1, 0):
        pybullet.changeDynamics(one, link, linearDamping=0, physicsClientId=client)
    system = system_of(client, one)
    steps = 152  # after which a free fall is 2 m long
    for _ in range(steps):
        system.step()
    free = -10 * DT**2 * steps * (steps + 1) / 2
    assert system.q[0] == pytest.approx(-0.2 if flags else free, abs=1e-3)


def test_what_stands_around_may_be_moved_and_added(client):
    """The ground sinks by 1 cm; then a wall appears in a box's way."""
    ground = box(client, [0, 0, -1], 0.0, (5, 5, 1))
    system = system_of(client, box(client, [0, 0, 0.1]))
    for _ in range(24):
        system.step()
    assert system.q[2] == pytest.approx(0.1, abs=1e-3)
    pybullet.resetBasePositionAndOrientation(ground, [0, 0, -1.01], [0, 0, 0, 1], client)
    for _ in range(48):
        system.step()
    assert system.q[2] == pytest.approx(0.09, abs=1e-3)
    box(client, [0.3, 0, 0], 0.0, (0.1, 1, 1))
    v = system.v.copy()
    v[3] = 2.0
    system.set_state(system.q, v)
    for _ in range(48):
        system.step()
    assert system.q[0] == pytest.approx(0.1, abs=1e-3)


def test_bodies_with_shapes_that_come_in_place_of_others_are_seen():
    """In another world of the same client, as many as there were without shapes."""
    for shape in ({}, {"shapeType": pybullet.GEOM_BOX, "halfExtents": (0.1, 0.1, 0.1)}):
        client = pybullet.connect(pybullet.DIRECT)
        pybullet.setGravity(0, 0, -10, client)
        ground = pybullet.createCollisionShape(pybullet.GEOM_PLANE, physicsClientId=client)
        number = pybullet.createCollisionShape(**shape, physicsClientId=client) if shape else -1
        pybullet.createMultiBody(0.0, ground if shape else -1, physicsClientId=client)
        box = pybullet.createMultiBody(
            1.0, number, basePosition=(0, 0, 0.1), physicsClientId=client
        )
        inertia = {"localInertiaDiagonal": (0.1, 0.1, 0.1), "physicsClientId": client}
        pybullet.changeDynamics(box, -1, linearDamping=0, angularDamping=0, **inertia)
        system = system_of(client, box)
        for _ in range(24):
            system.step()
        pybullet.disconnect(client)
    assert system.q[2] == pytest.approx(0.1, abs=1e-3)


def test_margins_that_change_are_followed(client):
    """A hull rests a margin above the ground, and higher by as much as that grows."""
    box(client, [0, 0, -1], 0.0, (5, 5, 1))
    corners = (np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T * 0.1).tolist()
    cube = body(client, [0, 0, 0.101], shapeType=pybullet.GEOM_MESH, vertices=corners)
    system = system_of(client, cube)
    for _ in range(24):
        system.step()
    assert system.q[2] == pytest.approx(0.1 + ROUNDED, abs=2e-4)
    pybullet.changeDynamics(cube, -1, collisionMargin=0.005, physicsClientId=client)
    system.world.check_properties()
    for _ in range(48):
        system.step()
    assert system.q[2] == pytest.approx(0.105, abs=2e-4)


def test_a_body_that_may_move_is_refused(client):
    box(client, [0, 0, 0.1])
    system = system_of(client, box(client, [0, 0, 0.299]))
    said = "may move"
    with pytest.warns(BulletBridgeWarning, match=said), pytest.raises(StrangerError, match=said):
        system.step()


def test_no_pair_of_a_pile_is_missed(client, rng):
    """Random shapes of all kinds, some deep in each other: as if each pair were looked at."""
    corners = (rng.normal(size=(12, 3)) * 0.1).tolist()
    kinds = (
        {"shapeType": pybullet.GEOM_SPHERE, "radius": 0.1},
        {"shapeType": pybullet.GEOM_CAPSULE, "radius": 0.08, "height": 0.2},
        {"shapeType": pybullet.GEOM_CYLINDER, "radius": 0.1, "height": 0.2},
        {"shapeType": pybullet.GEOM_BOX, "halfExtents": [0.1, 0.15, 0.05]},
        {"shapeType": pybullet.GEOM_MESH, "vertices": corners},
    )
    body(client, mass=0.0, shapeType=pybullet.GEOM_PLANE)
    quats = Rotation.random(40, random_state=rng).as_quat()
    bodies = [
        body(client, rng.uniform(0, 0.7, 3), quat=quat, **kinds[k % 5])
        for k, quat in enumerate(quats)
    ]
    world = read_bullet(bodies, client)
    q, v = world.state()
    found = world.contact_points(q, v, DT)
    names = {port.carriers[0]: port.body_id for port in world.ports} | {0: 0}
    ours = {
        (names[int(point["body_a"])], names[int(point["body_b"])])
        for point in found[found["gap"] < -1e-5]
    }
    brute = set()
    shapes = {each: read_shapes(each, -1, client).shapes[0] for each in [0, *bodies]}
    for a in shapes:
        for b in shapes:
            if a < b and overlap(client, shapes, a, b):
                brute.add((a, b))
    assert {tuple(sorted(pair)) for pair in ours} == brute
    assert len(brute) > 40
    again = world.contact_points(q, v, DT)
    assert again.tobytes() == found.tobytes()


def overlap(client, shapes, a, b):
    """Whether two shapes overlap by more than 1e-5 m, looked at by themselves."""
    poses = []
    for each in (a, b):
        R, p = inertial_pose(each, -1, client)
        spec = shapes[each].at(R, p)
        poses.append(Poses(spec.R[None], spec.p[None]))
    return touches(shapes[a], shapes[b], *poses, 1.0).gaps[0] < -1e-5


CAPSULES = """<mujoco><worldbody><body name="limb" pos="0 0 1">
<geom type="capsule" fromto="0 0 0 0.1 0 0.3" size="{0}"/>{1}</body></worldbody></mujoco>"""
SECOND = '<geom type="capsule" fromto="0 0 0 -0.1 0.1 0.2" size="0.03"/>'


@pytest.mark.parametrize("radius", [0.04, 0.05])
@pytest.mark.parametrize("second", ["", SECOND])
def test_capsules_between_two_points_are_not_asked_for(tmp_path, radius, second):
    """Asked for their shape PyBullet ends the process; they hang from a point by their weight."""
    path = tmp_path / "limb.xml"
    path.write_text(CAPSULES.format(radius, second))
    for mode in ("filter", "exact"):
        client = bb.BulletClient(pybullet.DIRECT, mode=mode)
        client.setGravity(0, 0, -9.81)
        body = client.loadMJCF(str(path))[-1]
        assert told_shapes(body, -1, client._client) is None
        with pytest.raises(pybullet.error, match="getVisualShapeData tells"):
            client.getCollisionShapeData(body, -1)
        mass = client.getDynamicsInfo(body, -1)[0]
        place, _ = client.getBasePositionAndOrientation(body)
        hook = client.createConstraint(
            body, -1, -1, -1, pybullet.JOINT_POINT2POINT, [0] * 3, [0] * 3, place
        )
        for _ in range(10):
            client.stepSimulation()
        force = client.getConstraintState(hook)
        client.disconnect()
        assert np.abs(force) == pytest.approx([0.0, 0.0, mass * 9.81], abs=1e-6 * mass)


@pytest.mark.parametrize("radius", [0.04, 0.05])
def test_a_capsule_is_told_whatever_its_radius(radius):
    """Where the radius is the margin that Bullet's other shapes have, by the box around it."""
    client = bb.BulletClient(pybullet.DIRECT)
    shape = client.createCollisionShape(pybullet.GEOM_CAPSULE, radius=radius, height=0.3)
    seen = client.createVisualShape(pybullet.GEOM_CAPSULE, radius=radius, length=0.3)
    turn = pybullet.getQuaternionFromEuler([0.7, 0.4, 0.2])
    body = client.createMultiBody(1.0, shape, seen, [0, 0, 1], turn)
    told = told_shapes(body, -1, client._client)
    assert client.getCollisionShapeData(body, -1) == told
    client.disconnect()
    assert told is not None
    assert told[0][2:4] == (pybullet.GEOM_CAPSULE, pytest.approx((0.3, radius, 0.0)))


@pytest.mark.parametrize("slow", [True, False])
def test_shapes_that_take_long_to_read_are_told(client, monkeypatch, capsys, slow):
    """On stderr, by the body's name, before and after; what is read at once is not."""
    monkeypatch.setattr(shaped_bodies, "LONG", -1.0 if slow else 100.0, raising=False)
    number = pybullet.loadURDF(f"{DATA}/kuka_iiwa/model.urdf", physicsClientId=client)
    shaped_bodies.ShapedBody(number, client)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == (2 if slow else 0)
    assert all("the collision meshes of 'lbr_iiwa'" in line for line in said)
