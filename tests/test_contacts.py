"""Contacts, limits and friction of motors: what mechanics says of small systems."""

import numpy as np
import pybullet
import pytest
from scipy.spatial.transform import Rotation
from urdf_builder import random_tree

import bulletbridge as bb

G, DT = 9.81, 1 / 240
FLAGS = pybullet.URDF_USE_INERTIA_FROM_FILE
ROUND_OFF = 1e-12
BLOCK = "0.2 0.4 0.3"


class World:
    """A DIRECT client with bodies of one link."""

    def __init__(self, folder):
        self.folder, self.client = folder, pybullet.connect(pybullet.DIRECT)
        pybullet.setGravity(0, 0, -G, self.client)
        pybullet.setPhysicsEngineParameter(enableFileCaching=0, physicsClientId=self.client)

    def ground(self, angle=0.0, plane=False):
        """The top of a large box, or a plane, turned about y; downhill and normal.

        On a plane Bullet finds one corner of a box at a time, on a box all four at once.
        """
        R, client = Rotation.from_rotvec([0, angle, 0]), self.client
        if plane:
            shape = pybullet.createCollisionShape(
                pybullet.GEOM_PLANE, planeNormal=[0, 0, 1], physicsClientId=client
            )
        else:
            shape = pybullet.createCollisionShape(
                pybullet.GEOM_BOX, halfExtents=[5, 5, 0.5], physicsClientId=client
            )
        place = R.apply([0, 0, 0 if plane else -0.5]).tolist()
        turn = R.as_quat().tolist()
        body = pybullet.createMultiBody(0, shape, -1, place, turn, physicsClientId=client)
        self.rub(body, 1.0, 1.0)
        return R.apply([1, 0, 0]), R.apply([0, 0, 1])

    def rub(self, body, friction, restitution=0.0, **more):
        """Coefficients of all links."""
        for link in range(-1, pybullet.getNumJoints(body, self.client)):
            pybullet.changeDynamics(
                body,
                link,
                lateralFriction=friction,
                restitution=restitution,
                physicsClientId=self.client,
                **more,
            )

    def solid(self, shape, place, turn=(0, 0, 0, 1), mass=2.0, moments=(0.04, 0.02, 0.03), **rub):
        """A free body of one shape."""
        path = self.folder / f"body{pybullet.getNumBodies(self.client)}.urdf"
        x, y, z = moments
        path.write_text(
            f'<robot name="r"><link name="b"><inertial><mass value="{mass}"/>'
            f'<inertia ixx="{x}" iyy="{y}" izz="{z}" ixy="0" ixz="0" iyz="0"/></inertial>'
            f"<collision><geometry>{shape}</geometry></collision></link></robot>"
        )
        body = pybullet.loadURDF(
            str(path), list(place), list(turn), flags=FLAGS, physicsClientId=self.client
        )
        self.rub(body, **{"friction": 0.5, **rub})
        return body

    def system(self, bodies, dt=DT, **options):
        """The bodies with contacts."""
        names = bodies if isinstance(bodies, int) else {f"b{b}": b for b in bodies}
        options = {"contacts": True, **options}
        return bb.attach(names, (), self.client, dt=dt, **options)


@pytest.fixture
def world(tmp_path):
    """A world that is closed after the test."""
    made = World(tmp_path)
    yield made
    pybullet.disconnect(made.client)


def run(system, seconds):
    """Advance; the largest residual."""
    worst = 0.0
    for _ in range(round(seconds / system.dt)):
        system.step()
        worst = max(worst, system.complementarity.residual)
    return worst


@pytest.mark.parametrize("beyond", [-1e-3, -1e-4, 1e-4, 1e-3, 0.1])
def test_a_block_on_a_slope_slides_beyond_the_angle_of_friction(world, beyond):
    """Constant acceleration is exact in semi-implicit Euler's velocity; Bullet's box is to 1e-8."""
    angle = np.arctan(0.5) + beyond
    down, normal = world.ground(angle)
    turn = Rotation.from_rotvec([0, angle, 0]).as_quat()
    body = world.solid(f'<box size="{BLOCK}"/>', 0.15 * normal, turn)
    system = world.system(body)
    residual = run(system, 0.5)
    acceleration = max(G * (np.sin(angle) - 0.5 * np.cos(angle)), 0.0)
    assert residual < 1e-10
    assert system.v[3:] @ down / 0.5 == pytest.approx(acceleration, abs=1e-8)
    assert abs(system.q[:3] @ normal - 0.15) < 1e-8


@pytest.mark.parametrize(("mu", "share"), [(0.5, 5 / 7), (0.05, None)])
def test_a_sphere_rolls_or_slips(world, mu, share):
    down, normal = world.ground(0.2, plane=True)
    moment = 0.4 * 2.0 * 0.1**2
    ball = world.solid('<sphere radius="0.1"/>', 0.1 * normal, moments=[moment] * 3, friction=mu)
    system = world.system(ball)
    run(system, 1.0)
    slipping = np.sin(0.2) - mu * np.cos(0.2)  # over G
    expected = G * (slipping if share is None else share * np.sin(0.2))
    assert system.v[3:] @ down == pytest.approx(expected, abs=ROUND_OFF)
    assert abs(system.q[:3] @ normal - 0.1) < ROUND_OFF


@pytest.mark.parametrize(("shape", "near"), [("box", 1e-6), ("cylinder", 5e-3)])
def test_a_disc_slides_to_rest(world, shape, near):
    """It stops at v²/(2 mu g); semi-implicit Euler is half a step's speed off.

    Bullet finds the points of a cylinder one after another, so a round disc wobbles at first.
    """
    world.ground()
    size = 'size="0.4 0.4 0.1"' if shape == "box" else 'radius="0.2" length="0.1"'
    disc = world.solid(f"<{shape} {size}/>", [0, 0, 0.05], friction=0.3)
    system = world.system(disc)
    system.set_state(v=[0, 0, 0, 1.5, 0, 0])
    run(system, 0.3)
    assert system.v[3] == pytest.approx(1.5 - 0.3 * G * 0.3, abs=near)
    run(system, 0.5)
    assert np.abs(system.v).max() < near
    assert system.q[0] == pytest.approx(1.5**2 / (2 * 0.3 * G), abs=0.5 * 1.5 * DT + near)


def test_a_ball_with_rolling_friction_stops(world):
    """Rolling resistance of arm r: deceleration r m g R/(I + m R²), Bullet's product of both."""
    world.ground(plane=True)
    moment = 0.4 * 2.0 * 0.1**2
    ball = world.solid(
        '<sphere radius="0.1"/>', [0, 0, 0.1], moments=[moment] * 3, rollingFriction=0.004
    )
    system = world.system(ball)
    system.set_state(v=[0, 5.0, 0, 0.5, 0, 0])
    run(system, 0.5)
    slowing = 0.004 * G * 0.1 / (0.4 * 0.01 + 0.01)
    assert system.v[3] == pytest.approx(0.5 - 0.5 * slowing, abs=1e-9)


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_a_ball_bounces_by_its_restitution(world, e):
    """Every bounce divides the speed by e as far as a step tells it; energy never rises.

    The energy that semi-implicit Euler keeps in free fall, E + dt/2 m g·v, is kept by a bounce with
    restitution 1 too. A bounce changes the speed within a step, so to g dt.
    """
    world.ground(plane=True)
    ball = world.solid('<sphere radius="0.1"/>', [0, 0, 0.6], restitution=e)
    system = world.system(ball)
    energies, speeds = [], []
    for _ in range(480):
        before = system.v[5]
        system.step()
        energies.append(system.evaluate().energy - 0.5 * DT * 2.0 * G * system.v[5])
        assert system.complementarity.work < 1e-12
        if before < -0.1 and system.v[5] > 0.99 * before:
            speeds.append((-before, system.v[5]))
    assert np.diff(energies).max() < 1e-12
    impact, after = speeds[0]
    assert impact == pytest.approx(np.sqrt(2 * G * 0.5), abs=G * DT)
    if e > 0.0:
        assert after == pytest.approx(e * impact, abs=1e-12)
    if e == 1.0:
        assert energies[-1] == pytest.approx(energies[0], abs=1e-9)
    if e == 0.0:
        assert abs(system.q[2] - 0.1) < ROUND_OFF


def test_a_rocking_block_loses_what_housner_says(world):
    """A tilted block falls onto its other edge: a plastic impact leaves 1 - 3/2 sin² of the rate.

    Housner 1963: for a block of half diagonal at the angle a from its side. Time stepping meets the
    impact within a step; halving the step brings it nearer.
    """
    errors = []
    b, h = 0.1, 0.5  # half width, half height
    a = np.arctan(b / h)
    for dt in (1e-3, 5e-4):
        pybullet.resetSimulation(world.client)
        pybullet.setGravity(0, 0, -G, physicsClientId=world.client)
        world.ground()
        mass = 3.0
        moments = mass / 3 * np.array([0.3**2 + h**2, b**2 + h**2, 0.3**2 + b**2])
        tilt = 0.1
        R = Rotation.from_rotvec([0, tilt, 0])
        corner = np.array([b, 0, -h])  # on which it stands
        place = -R.apply(corner)
        box = f'<box size="{2 * b} 0.6 {2 * h}"/>'
        body = world.solid(box, place, R.as_quat(), mass, moments, friction=1.0)
        system = world.system(body, dt=dt)
        rates = []
        for _ in range(round(0.6 / dt)):
            system.step()
            rates.append(system.v[1])
        impact = int(np.argmin(rates))  # which takes two steps
        left = rates[impact + 2] / rates[impact]
        errors.append(abs(left - (1 - 1.5 * np.sin(a) ** 2)))
    # 8.4e-3 at 1 ms, of order one
    assert errors[0] < 1e-2
    assert errors[1] < 0.6 * errors[0]


def test_painlevé_rod_comes_to_rest(world):
    """A sliding rod for which rigid bodies with friction have no acceleration, but an impulse.

    At mu above 4/3 a rod sliding with its tip ahead is pressed into the ground by its own friction.
    Time stepping finds the impulse that stops the tip (Stewart 2000): nothing is undefined, the
    residual is round-off, and no energy is made.
    """
    world.ground()
    length, mass = 1.0, 1.0
    moment = mass * length**2 / 12
    tilt = np.deg2rad(30)
    R = Rotation.from_rotvec([0, -tilt, 0])
    tip = R.apply([0, 0, -length / 2])
    place = [0, 0, -tip[2] + 0.01]
    rod = world.solid(
        f'<capsule radius="0.01" length="{length}"/>', place, R.as_quat(), mass, [moment] * 3,
        friction=3.0,
    )  # fmt: skip
    system = world.system(rod, dt=1e-3)
    for speed in (5.0, -5.0):
        system.set_state(np.array([*place, *R.as_quat()]), [0, 0, 0, speed, 0, 0])
        for _ in range(500):
            system.step()
            assert system.complementarity.residual < 1e-9
            assert system.complementarity.work < 1e-4  # poses change within a step
            assert np.abs(system.v).max() < 20


def test_two_bodies_that_collide_keep_their_momentum(world):
    pybullet.setGravity(0, 0, 0, world.client)
    balls = [
        world.solid('<sphere radius="0.1"/>', [0, 0, 0], moments=[0.01] * 3, restitution=0.6),
        world.solid(
            f'<box size="{BLOCK}"/>', [0.5, 0.05, 0.02], mass=1.3, restitution=0.6, friction=0.8
        ),
    ]
    system = world.system(balls)
    start = np.array([0.1, 2.0, -1.0, 2.0, 0.1, 0, 0.3, 0.2, 0.1, -1.0, 0, 0.05])
    system.set_state(v=start)
    first = system.evaluate()
    for _ in range(120):
        before = system.evaluate().momentum
        system.step()
        now = system.evaluate().momentum
        if system.complementarity.rows:
            # the angular one to what the bodies move within the step, as without contact
            assert np.abs(now - before)[3:].max() < 1e-13 * np.abs(first.momentum).max()
    last = system.evaluate()
    assert np.abs(last.momentum - first.momentum)[3:].max() < 1e-12
    assert last.kinetic < first.kinetic
    assert system.v[3] < 0.5  # they did collide


def test_a_penetration_is_taken_back_and_gives_no_speed(world):
    world.ground()
    body = world.solid(f'<box size="{BLOCK}"/>', [0, 0, 0.15 - 5e-3])
    system = world.system(body)
    depths = []
    for _ in range(60):
        system.step()
        depths.append(0.15 - system.q[2])
        assert np.abs(system.v).max() < ROUND_OFF
    # a fifth in every step, as Bullet's contactERP; what is below 1e-7 m is let be
    assert np.divide(depths[1:20], depths[:19]) == pytest.approx(0.8, abs=1e-6)
    assert depths[-1] < 1.0e-7


def test_a_limit_stops_a_closed_loop(world, tmp_path):
    from small_models import four_bar

    urdf = four_bar(tmp_path).parent / "four_bar.urdf"
    text = urdf.read_text().replace(
        '<joint name="crank" type="continuous">',
        '<joint name="crank" type="revolute"><limit lower="0.3" upper="1.4" effort="1"'
        ' velocity="1"/>',
    )
    urdf.write_text(text)
    with bb.load(tmp_path / "four_bar.loops.yaml", limits=True) as model:
        system = model.system
        for _ in range(480):
            system.step()
            # the loop is closed after the stop has held: to what a step's motion curves it
            assert 0.3 - 5e-5 < system.q[0] < 1.4 + 5e-5
            assert system.evaluate().largest("kept_metres") < ROUND_OFF
        assert system.complementarity.residual < 1e-10


def test_joint_friction_is_a_weak_motor_at_rest(world, tmp_path):
    """A pendulum with friction stays where gravity cannot turn it, and moves where it can."""
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="arm"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 -0.5"/>'
        '<mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
        '</inertial></link><joint name="hinge" type="continuous"><parent link="base"/>'
        '<child link="rod"/><axis xyz="0 1 0"/></joint></robot>'
    )
    body = pybullet.loadURDF(
        str(path), useFixedBase=True, flags=FLAGS, physicsClientId=world.client
    )
    system = world.system(body, contacts=False)
    torque = 1.0
    system.motors.set("hinge", force=torque)
    held = np.arcsin(torque / (0.5 * G))
    for angle, moves in ((held - 1e-3, False), (held + 1e-3, True)):
        system.set_state([angle], [0.0])
        for _ in range(10):
            system.step()
        assert (abs(system.v[0]) > 1e-6) == moves


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("force", [500.0, 0.5])
def test_motors_of_random_trees_are_bullets(world, tmp_path, seed, force):
    """Each step from the same state, with 1000 of Bullet's iterations: 1e-9, and equal torques."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "tree.urdf"
    path.write_text(random_tree(rng, 6, ("revolute", "prismatic"), limited=False))
    client = world.client
    body = pybullet.loadURDF(str(path), useFixedBase=True, flags=FLAGS, physicsClientId=client)
    pybullet.setPhysicsEngineParameter(
        numSolverIterations=1000, solverResidualThreshold=0, physicsClientId=client
    )
    system = world.system(body, contacts=False)
    names = [pybullet.getJointInfo(body, j, client)[1].decode() for j in range(6)]
    for joint, name in enumerate(names):
        pybullet.changeDynamics(
            body, joint, linearDamping=0, angularDamping=0, jointDamping=0, physicsClientId=client
        )
        position, velocity = rng.uniform(-1, 1, 2)
        pybullet.setJointMotorControl2(
            body,
            joint,
            pybullet.POSITION_CONTROL,
            targetPosition=position,
            targetVelocity=velocity,
            force=force,
            physicsClientId=client,
        )
        system.motors.set(name, force=force, velocity=velocity, position=position)
    for _ in range(10):
        system.read()
        system.step(write=False)
        pybullet.stepSimulation(client)
        q, v = system.world.state()
        size = max(1.0, np.abs(v).max())
        assert np.abs(v - system.v).max() < 1e-9 * size
        assert np.abs(q - system.q).max() < 1e-9 * size
        torques = [pybullet.getJointState(body, j, client)[3] for j in range(6)]
        ours = system.motors.forces
        assert ours == pytest.approx(torques, rel=1e-6, abs=1e-6)
        if force < 1:
            assert (np.abs(ours) > 0.999 * force).any()
