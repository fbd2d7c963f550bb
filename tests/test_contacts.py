"""Friction of contacts: what slides, rolls and comes to rest, as mechanics says."""

import math

import numpy as np
import pybullet
import pybullet_data
import pytest
from _contact_scenes import SCENES
from scipy.spatial.transform import Rotation
from support.solid_worlds import BLOCK, DT, FLAGS, G

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning
from bulletbridge.numerics.complementarity import NEWTON_STEPS, SETTLING_STEPS

ROUND_OFF = 1e-12


def run(system, seconds):
    """Advance; the largest residual."""
    worst = 0.0
    for _ in range(round(seconds / system.dt)):
        system.step()
        worst = max(worst, system.complementarity.residual)
    return worst


@pytest.mark.parametrize("beyond", [-1e-3, -1e-4, 1e-4, 1e-3, 0.1])
def test_a_block_on_a_slope_slides_beyond_the_angle_of_friction(solids, beyond):
    """Constant acceleration is exact in semi-implicit Euler's velocity; Bullet's box is to 1e-8."""
    angle = np.arctan(0.5) + beyond
    down, normal = solids.ground(angle)
    turn = Rotation.from_rotvec([0, angle, 0]).as_quat()
    body = solids.solid(f'<box size="{BLOCK}"/>', 0.15 * normal, turn)
    system = solids.system(body)
    residual = run(system, 0.5)
    acceleration = max(G * (np.sin(angle) - 0.5 * np.cos(angle)), 0.0)
    assert residual < 1e-10
    assert system.v[3:] @ down / 0.5 == pytest.approx(acceleration, abs=1e-8)
    assert abs(system.q[:3] @ normal - 0.15) < 1e-8


@pytest.mark.parametrize(
    ("shape", "moment", "mu", "share"),
    [("sphere", 0.4, 0.5, 5 / 7), ("sphere", 0.4, 0.05, None), ("wheel", 0.5, 0.5, 2 / 3)],
)
def test_spheres_and_wheels_roll_or_slip(solids, shape, moment, mu, share):
    """A wheel is round although Bullet makes a prism with 32 sides of it."""
    down, normal = solids.ground(0.2, plane=True)
    form = {"wheel": '<cylinder radius="0.1" length="0.05"/>', "sphere": '<sphere radius="0.1"/>'}
    turn = Rotation.from_rotvec([np.pi / 2, 0, 0]).as_quat()
    moments = [moment * 2.0 * 0.1**2] * 3
    ball = solids.solid(form[shape], 0.1 * normal, turn, moments=moments, friction=mu)
    system = solids.system(ball)
    run(system, 1.0)
    slipping = np.sin(0.2) - mu * np.cos(0.2)  # over G
    expected = G * (slipping if share is None else share * np.sin(0.2))
    assert system.v[3:] @ down == pytest.approx(expected, abs=ROUND_OFF)
    assert abs(system.q[:3] @ normal - 0.1) < ROUND_OFF


@pytest.mark.parametrize("shape", ["box", "cylinder"])
def test_a_disc_slides_to_rest(solids, shape):
    """It stops at v²/(2 mu g); semi-implicit Euler is half a step's speed off."""
    solids.ground()
    size = 'size="0.4 0.4 0.1"' if shape == "box" else 'radius="0.2" length="0.1"'
    disc = solids.solid(f"<{shape} {size}/>", [0, 0, 0.05], friction=0.3)
    system = solids.system(disc)
    system.set_state(v=[0, 0, 0, 1.5, 0, 0])
    run(system, 0.3)
    assert system.v[3] == pytest.approx(1.5 - 0.3 * G * 0.3, abs=ROUND_OFF)
    run(system, 0.5)
    assert np.abs(system.v).max() < ROUND_OFF
    assert system.q[0] == pytest.approx(1.5**2 / (2 * 0.3 * G), abs=0.5 * 1.5 * DT + ROUND_OFF)


UNSET = 0.1
"""Bullet's contact damping of links that were given none [N s/m]."""


def give_way(solids, body, stiffness, damping):
    """Have a body's contacts give way."""
    pybullet.changeDynamics(
        body, -1, contactStiffness=stiffness, contactDamping=damping, physicsClientId=solids.client
    )


@pytest.mark.parametrize("soft_ground", [False, True])
def test_a_ball_on_contacts_that_give_way_bounces_as_a_spring_and_damper(
    solids, soft_ground, recwarn
):
    """Implicit Euler of one freedom: a spring, or two in a row, while it pushes."""
    solids.ground(plane=True)
    ball = solids.solid('<sphere radius="0.1"/>', [0, 0, 0.15])
    give_way(solids, ball, 1e3, 5.0)
    stiffness, damping = 1e3, 5.0 + UNSET
    if soft_ground:
        give_way(solids, 0, 2e3, 1.0)
        stiffness, damping = 1.0 / (1.0 / 1e3 + 1.0 / 2e3), 5.0 + 1.0
    system = solids.system(ball, contacts="compliant")
    gap, v, mass, least, pressed, works = 0.05, 0.0, 2.0, 0.0, 0, set()
    for _ in range(240):
        system.step()
        free, whole = v - DT * G, DT * stiffness + damping
        wanted = gap / DT if gap > 0.0 else gap * stiffness / whole
        impulse = max(0.0, -(free + wanted) / (1.0 / mass + 1.0 / (DT * whole)))
        work = impulse * 0.5 * (v + free + impulse / mass)  # along the mean rate of the ball
        v = free + impulse / mass
        gap += DT * v
        works.add(np.sign(round(work, 9)))
        assert system.complementarity.work == pytest.approx(work, abs=1e-11)
        assert system.complementarity.taken == 0.0  # what springs give back is accounted for
        least, pressed = min(least, gap), pressed + (impulse > 0.0)
        assert system.v[5] == pytest.approx(v, abs=1e-11)
        assert system.q[2] - 0.1 == pytest.approx(gap, abs=1e-11)
    assert least < -0.01 and 20 < pressed < 230 and works == {-1.0, 0.0, 1.0}
    assert not recwarn.list, "it was led into nothing"


RAIL = """<robot name="rail"><link name="rail"/><link name="plate"><inertial><mass value="2"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial><collision>
<origin xyz="0 0 0.05"/><geometry><box size="0.6 0.2 0.1"/></geometry></collision></link>
<joint name="slide" type="prismatic"><parent link="rail"/><child link="plate"/><axis xyz="0 0 1"/>
<limit lower="-5" upper="5" effort="1000" velocity="10"/></joint></robot>"""


def test_what_rests_on_rigid_contacts_sinks_once_they_give_way():
    """By m g/k of the number that Bullet was told last, while it lay still."""
    p = bb.BulletClient(pybullet.DIRECT)
    p.setGravity(0, 0, -G)
    p.createMultiBody(0, p.createCollisionShape(p.GEOM_PLANE))
    ball = p.createMultiBody(
        1.0, p.createCollisionShape(p.GEOM_SPHERE, radius=0.1), -1, [0, 0, 0.1]
    )
    p.setBridgeMode("exact", ball)
    for stiffness in (math.inf, 2e3, 1e3):
        if stiffness < math.inf:
            p.changeDynamics(ball, -1, contactStiffness=stiffness, contactDamping=100.0)
        for _ in range(480):
            p.stepSimulation()
        height = p.getBasePositionAndOrientation(ball)[0][2]
        # what is left of the way to there falls by exp(-t k/d), t k/d >= 20
        assert height == pytest.approx(0.1 - G / stiffness, abs=0.01 * math.exp(-19))
    p.disconnect()


def test_a_ball_bounces_on_its_contact_as_bullets_does():
    """Bullet's shapes overlap by 1e-5 m before they touch. Saved states lead to the same bits."""

    def fall(p, ball, steps):
        found = []
        for _ in range(steps):
            p.stepSimulation()
            found.append(p.getBasePositionAndOrientation(ball)[0][2])
        return found

    runs = {}
    for mode in ("native", "exact"):
        p = bb.BulletClient(pybullet.DIRECT, mode=mode)
        p.setGravity(0, 0, -G)
        p.createMultiBody(0, p.createCollisionShape(p.GEOM_PLANE))
        shape = p.createCollisionShape(p.GEOM_SPHERE, radius=0.1)
        ball = p.createMultiBody(1.0, shape, -1, [0, 0, 0.15])
        p.changeDynamics(ball, -1, contactStiffness=2e3, contactDamping=20.0, linearDamping=0.0)
        if mode == "exact":
            p.setBridgeMode("exact", ball)
        begun, state = fall(p, ball, 40), p.saveState()
        rest = fall(p, ball, 440)
        p.restoreState(state)
        assert mode == "native" or fall(p, ball, 440) == rest
        runs[mode] = np.array(begun + rest)
        p.disconnect()
    assert np.abs(runs["native"] - runs["exact"]).max() < 2e-5
    assert runs["exact"][-1] == pytest.approx(0.1 - G / 2e3, abs=1e-9)
    assert runs["native"][-1] == pytest.approx(0.1 - G / 2e3 - 1e-5, abs=1e-9)


def test_what_stands_on_contacts_that_give_way_sinks_by_its_weight(solids):
    """m g/(4 k), and no further, however long: a box on its four corners, held by friction."""
    solids.ground(0.1)
    body = solids.solid(f'<box size="{BLOCK}"/>', [0, 0, 0.16], [0, np.sin(0.05), 0, np.cos(0.05)])
    give_way(solids, body, 1e4, 300.0)
    system = solids.system(body, contacts="compliant")
    run(system, 2.0)
    forces = sum(contact.force for contact in system.contacts())
    assert forces == pytest.approx([0.0, 0.0, 2.0 * G], abs=1e-6)
    lengths = [-c.gap for c in system.contacts()]
    assert sum(lengths) == pytest.approx(2.0 * G * np.cos(0.1) / 1e4, rel=1e-6)


@pytest.mark.parametrize("limits", [False, "always"])
def test_supports_share_a_load_by_their_stiffness(solids, limits):
    """A box of weight W upright on a rail: each bears W k/sum k, as a loose body or a robot's."""
    stiffness, depth = np.array([2e3, 5e3, 1.3e4]), 2.0 * G / 2e4
    for k, x in zip(stiffness, (-0.15, 0.0, 0.2), strict=True):
        ball = pybullet.createCollisionShape(
            pybullet.GEOM_SPHERE, radius=0.1, physicsClientId=solids.client
        )
        support = pybullet.createMultiBody(
            0.0, ball, basePosition=[x, 0, -0.1], physicsClientId=solids.client
        )
        give_way(solids, support, k, 400.0 * k / 2e4)
    path = solids.folder / "rail.urdf"
    path.write_text(RAIL)
    body = pybullet.loadURDF(
        str(path), useFixedBase=True, flags=FLAGS, physicsClientId=solids.client
    )
    system = solids.system(body, contacts="compliant", limits=limits)
    run(system, 3.0)  # 3 s / (d/k) = 150, and as many by d/2m
    forces = sorted(contact.normal_force for contact in system.contacts())
    assert forces == pytest.approx(stiffness * depth, rel=1e-9)
    assert system.q == pytest.approx([-depth], abs=1e-12)


def test_a_ball_with_rolling_friction_stops(solids):
    """Rolling resistance of arm r: deceleration r m g R/(I + m R²), Bullet's product of both."""
    solids.ground(plane=True)
    moment = 0.4 * 2.0 * 0.1**2
    ball = solids.solid(
        '<sphere radius="0.1"/>', [0, 0, 0.1], moments=[moment] * 3, rollingFriction=0.004
    )
    system = solids.system(ball)
    system.set_state(v=[0, 5.0, 0, 0.5, 0, 0])
    run(system, 0.5)
    slowing = 0.004 * G * 0.1 / (0.4 * 0.01 + 0.01)
    assert system.v[3] == pytest.approx(0.5 - 0.5 * slowing, abs=1e-9)


def test_what_has_no_way_apart_is_not_searched_for(solids):
    """A ball a millimetre deep in both of two walls falls between them, as if they were not there.

    What would push it out of one pushes it into the other: no step goes through more than one
    attempt by Coulomb's law, from where the last one ended, and one by normals alone.
    """
    for side in (-1.0, 1.0):
        shape = pybullet.createCollisionShape(
            pybullet.GEOM_BOX, halfExtents=[0.1, 1.0, 1.0], physicsClientId=solids.client
        )
        place = [side * 0.199, 0.0, 0.0]
        solids.rub(
            pybullet.createMultiBody(0, shape, -1, place, physicsClientId=solids.client), 1.0
        )
    system = solids.system(solids.solid('<sphere radius="0.1"/>', [0.0, 0.0, 0.0]))
    most = 0
    for _ in range(20):
        system.step()
        most = max(most, system.complementarity.newton)
    assert abs(system.q[:2]).max() < ROUND_OFF
    assert system.v[5] == pytest.approx(-G * system.t, abs=ROUND_OFF)
    # of each settling, twice as many Newton steps after sweeps, and settling
    assert most <= 2 * 2 * (SETTLING_STEPS + NEWTON_STEPS)


def test_forces_that_change_act_in_their_own_steps_of_a_rollout(solids):
    """Many steps in one call are those made one by one, to the bit, whatever the integrator was."""
    solids.ground(plane=True)
    ball = solids.solid('<sphere radius="0.1"/>', (0, 0, 0.1002), moments=[0.008] * 3)
    system = solids.system(ball)
    tau = np.random.default_rng(0).normal(size=(10, 6))
    row, one = system.fork(2)
    table = np.zeros((10, 17))  # state, and how it was reached
    row.roll(tau, (10, 1), table)
    for forces, state in zip(tau, table, strict=True):
        one.tau[:] = forces
        one.step(write=False)
        assert np.array_equal(state[:13], np.concatenate([one.q, one.v]))


CLAMP = """<robot name="clamp">
  <link name="turntable"><inertial><mass value="5"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="-0.15 0 0"/><geometry><box size="0.1 0.4 0.4"/></geometry></collision>
  </link>
  <link name="jaw"><inertial><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.1 0.4 0.4"/></geometry></collision></link>
  <joint name="slide" type="prismatic"><parent link="turntable"/><child link="jaw"/>
    <origin xyz="0.15 0 0"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="1e3" velocity="10"/></joint>
  <link name="post"/>
  <joint name="spindle" type="continuous"><parent link="post"/><child link="turntable"/>
    <axis xyz="0 0 1"/></joint>
</robot>"""


def test_what_a_clamp_with_soft_jaws_holds_turns_with_it(solids):
    """Off their middle, so that points sink in unequally: none slips, and nothing is looked for.

    Rates of what turns together contradict each other nowhere. What moves along its chord in a
    step gets further out by r (w dt)²/2.
    """
    p, rate, radius = solids, 2.0, 0.03
    pybullet.setGravity(0, 0, 0, p.client)
    (p.folder / "clamp.urdf").write_text(CLAMP)
    clamp = pybullet.loadURDF(
        str(p.folder / "clamp.urdf"), useFixedBase=True, flags=FLAGS, physicsClientId=p.client
    )
    p.rub(clamp, 1.0)
    held = p.solid('<box size="0.2 0.1 0.1"/>', [0, radius, 0.04], mass=0.5, friction=1.0)
    give_way(p, held, 2e3, 100.0)
    system = p.system([clamp, held], contacts="compliant")
    spindle, slide = f"b{clamp}/spindle", f"b{clamp}/slide"
    system.motors.set(spindle, velocity=rate, force=1e3)
    system.motors.set(slide, velocity=-1.0, force=40.0)
    run(system, 2.0)

    def place():
        return Rotation.from_euler("z", -system.q[spindle]).apply(system.q[f"b{held}/base"][:3])

    before = place()
    for _ in range(240):
        system.step()
        assert system.complementarity.newton <= SETTLING_STEPS
        assert system.complementarity.residual < ROUND_OFF
    assert {c.state for c in system.contacts() if c.normal_force > 0.0} == {"sticking"}
    chords = 240 * 0.5 * radius * (rate * DT) ** 2
    assert place() == pytest.approx(before, abs=1.1 * chords)


def test_wheels_that_slide_steadily_go_on_as_they_slid(solids):
    """A car whose wheels drag one another along: two contacts a wheel share loads and slide alike.

    Two of Newton's steps find what a step is, one in 32 again from the least norm; and what goes on
    is saved with the state.
    """
    solids.ground(plane=True)
    car = pybullet.loadURDF(
        f"{pybullet_data.getDataPath()}/racecar/racecar_differential.urdf",
        [0.0, 0.0, 0.1],
        flags=FLAGS,
        physicsClientId=solids.client,
    )
    system = solids.system(car)
    for name in system.motors.names:
        wheel = "wheel" in name
        rate = (20.0 if "left" in name else 10.0) if wheel else 0.0
        system.motors.set(name, velocity=rate, force=10.0 if wheel else 1.0)
    run(system, 1.0)
    start, ends, newtons = system.save(), [], []
    for _ in range(2):
        system.restore(start)
        for _ in range(48):
            system.step()
            newtons.append(system.complementarity.newton)
            assert system.complementarity.residual < 1e-10
        ends.append(np.concatenate([system.q, system.v]))
    assert np.median(newtons) <= 3
    assert np.array_equal(*ends)


def test_what_a_leg_kicks_is_moved_apart(solids, tmp_path):
    """A leg swings into fifteen boxes: what stands in something else moves out of it in each step.

    Bodies are moved apart beside their velocity: they get elsewhere than that leads them, a fifth
    of what they were in each other by. One step in ten may do without, as where all have parted by
    themselves.
    """
    scene, path = SCENES["kick_15"], tmp_path / "kick.xml"
    path.write_text(scene.xml())
    with pytest.warns(BulletBridgeWarning, match="scenery"):
        system = bb.load(str(path), solids.client, contacts=True, dt=DT).system
    names = {name.split("/")[-1]: name for name in system.motors.names}
    deep, moved, last = 0, 0, []
    for k in range(190):
        for joint, angle in scene.targets.items():
            asked = {"position": min(k * DT, 1.0) * angle, "position_gain": 0.3}
            system.motors.set(names[joint], force=scene.force, **asked)
        before = np.reshape(system.q[2:], (-1, 7))[:, :3]
        system.step(write=False)
        beside = np.reshape(system.q[2:], (-1, 7))[:, :3] - before
        beside -= DT * np.reshape(system.v[2:], (-1, 6))[:, 3:]
        kicks = any("shank" in contact.a + contact.b for contact in system.contacts())
        if kicks and max((-gap for gap in last), default=0.0) > 1e-4:
            deep, moved = deep + 1, moved + (np.abs(beside).max() > 1e-6)
        last = [contact.gap for contact in system.contacts()]
    assert deep >= 10
    assert moved >= 0.9 * deep
