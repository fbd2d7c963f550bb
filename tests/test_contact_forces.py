"""Forces of contacts: on the ellipse of friction, and in balance with weight and momentum."""

from dataclasses import replace

import numpy as np
import pybullet
import pybullet_data
import pytest
from pybullet_utils.bullet_client import BulletClient as Native
from support.contact_planes import ContactPlanes
from support.planar import planar_chain

import bulletbridge as bb
from bulletbridge.drop_in.session import session_of
from bulletbridge.inequalities.arrays import PUSHED
from bulletbridge.models.bundled import find
from bulletbridge.models.loops_file import read_loops

DT = 1 / 240


def test_elliptic_friction_slides_along_the_normal_of_the_ellipse():
    """A block pushed aslant on a plane: the force of friction is mu_k² v_k / |mu v| per load."""
    mechanism = replace(planar_chain([], [], floating=1.0), gravity=np.array([6.0, 3.0, -10.0]))
    plane = ContactPlanes([(0, 0, 1)], (0.5, 0.2), (1, 0, 0))
    system = bb.System(mechanism, world=plane, contacts=True)
    for _ in range(200):
        system.step()
    (contact,) = system.contacts()
    v = system.v[3:5]
    mu = np.array([0.5, 0.2])
    assert contact.state == "sliding"
    assert contact.normal_force == pytest.approx(10.0, rel=1e-9)
    expected = -10.0 * mu**2 * v / np.linalg.norm(mu * v)
    assert contact.friction[:2] == pytest.approx(expected, rel=1e-9)
    # at the rim of the ellipse
    assert np.linalg.norm(contact.friction[:2] / mu) == pytest.approx(10.0, rel=1e-9)


@pytest.mark.parametrize("rolling", [0.0, 0.03])
@pytest.mark.parametrize("spinning", [0.0, 0.02])
@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_each_coefficient_resists_its_own_motion(friction, spinning, rolling):
    """A block slides and turns on a plane, with each coefficient or without it."""
    mechanism = replace(planar_chain([], [], floating=1.0), gravity=np.array([0.0, 0.0, -10.0]))
    plane = ContactPlanes([(0, 0, 1)], (friction, friction), (0, 0, 0))
    plane.points["spinning"], plane.points["rolling"] = spinning, rolling
    system = bb.System(mechanism, world=plane, contacts=True)
    system.set_state(v=[3.0, -4.0, 5.0, 0.8, 0.6, 0.0])
    system.step()
    (contact,) = system.contacts()
    w, v = system.v[:3], system.v[3:]
    load = contact.normal_force
    assert load == pytest.approx(10.0, rel=1e-9)
    expected = -friction * load * v / np.linalg.norm(v)
    assert contact.friction == pytest.approx(expected, rel=1e-9, abs=1e-11)
    across = -rolling * load * w[:2] / np.linalg.norm(w[:2])
    expected = [*across, -spinning * load]
    assert contact.moment == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_friction_that_differs_by_direction_is_bullets(connect):
    """A block on the plane with anisotropicFriction, pushed along each axis, sticks and slides."""
    speeds = {}
    for direction in (0, 1):
        client = connect()
        client.setAdditionalSearchPath(pybullet_data.getDataPath())
        client.setGravity(0, 0, -10)
        client.loadURDF("plane.urdf")
        shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.3, 0.3, 0.05])
        block = client.createMultiBody(1.0, shape, basePosition=[0, 0, 0.05])
        client.changeDynamics(
            block, -1, lateralFriction=1.0, anisotropicFriction=[1.0, 0.1, 1.0],
            linearDamping=0, angularDamping=0,
        )  # fmt: skip
        client.changeDynamics(0, -1, lateralFriction=0.5)
        client.setBridgeMode("exact", block)
        push = [2.0 * (direction == 0), 2.0 * (direction == 1), 0]
        for _ in range(120):
            at = client.getBasePositionAndOrientation(block)[0]
            client.applyExternalForce(block, -1, push, at, pybullet.WORLD_FRAME)
            client.stepSimulation()
        speeds[direction] = client.getBaseVelocity(block)[0][direction]
    assert abs(speeds[0]) < 1e-6  # 2 N against 5 N
    assert speeds[1] == pytest.approx((2.0 - 0.5) * 0.5, rel=1e-6)  # against 0.5 N


def test_a_block_rests_on_forces_that_carry_its_weight(connect):
    """Normal forces sum to the weight, and are those of Bullet's own contacts."""
    total = []
    for kind in (None, Native):
        client = connect(kind)
        client.setAdditionalSearchPath(pybullet_data.getDataPath())
        client.setGravity(0, 0, -10)
        client.loadURDF("plane.urdf")
        shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.3, 0.2, 0.05])
        box = client.createMultiBody(3.0, shape, basePosition=[0, 0, 0.05])
        if kind is None:
            client.setBridgeMode("exact", box)
        for _ in range(240):
            client.stepSimulation()
        if kind is None:
            (group,) = session_of(client._client).groups.values()
            contacts = group.system.contacts()
            total.append(sum(c.normal_force for c in contacts))
            assert all(c.state == "sticking" for c in contacts if c.normal_force > 0)
        else:
            total.append(sum(c[9] for c in client.getContactPoints(box)))
    assert total[0] == pytest.approx(30.0, rel=1e-9)
    assert total[1] == pytest.approx(30.0, rel=1e-3)


def test_minitaur_lands_and_stands_on_forces_that_balance_its_momentum(connect):
    """In every step: the change of linear momentum is that of weight and contacts, to round-off.

    Loops, motors and limits are internal and must not appear. Standing, the load is the weight.
    """
    client = connect(Native)
    client.setGravity(0, 0, -10)
    client.loadURDF(f"{pybullet_data.getDataPath()}/plane.urdf")
    spec = read_loops(find("minitaur"))
    start = spec.start_q | {"base": [0, 0, 0.2, 0, 0, 0, 1.0]}
    spec = replace(spec, gravity=(0, 0, -10.0), start_q=start, start_v={}, forces=())
    system = bb.load(spec, client._client, dt=DT, contacts=True).system
    for leg in ("front_left", "back_left", "front_right", "back_right"):
        side = -1 if "left" in leg else 1
        for end in "LR":
            name = f"motor_{leg}{end}_joint"
            angle = side * np.pi / 2
            system.motors.set(name, force=3.5, position=angle, position_gain=1.0)
    mass = float(system.mechanism.bodies["mass"].sum())
    base = system.mechanism.joints["base"].v
    linear = slice(base.start + 3, base.stop)
    loaded_steps = 0
    loads = []
    for _ in range(600):
        terms = system.terms()
        before = system.v
        system.step()
        gave = (system._inequalities.latest.impulses[PUSHED, : len(before)] - before) / DT
        load = sum((contact.force for contact in system.contacts()), np.zeros(3))
        loaded_steps += bool(load[2] > 0)
        loads.append(load[2])
        left = terms.M[linear] @ gave + terms.h[linear] - load
        assert np.abs(left).max() < 1e-9 * mass * max(1.0, np.abs(gave).max())
    assert 500 < loaded_steps < 600  # it has fallen, landed and stood
    assert np.mean(loads[-120:]) == pytest.approx(10.0 * mass, rel=1e-3)  # it still sways a little
    # at rest motors hold what the loops pass on: consistent accelerations vanish
    reactions = system.reactions()
    lam = np.concatenate([reactions[name].multipliers for name in system.encoded.rows])
    assert np.isfinite(lam).all()
    assert np.abs(lam).max() > 1.0


def test_minitaur_goes_on_under_motors_that_jump_with_contacts_and_limits(connect):
    """Targets anywhere within 1.5 rad, ten a second, of motors that fight each other's loops."""
    client = connect(Native)
    client.setGravity(0, 0, -10)
    client.loadURDF(f"{pybullet_data.getDataPath()}/plane.urdf")
    spec = read_loops(find("minitaur"))
    start = spec.start_q | {"base": [0, 0, 0.2, 0, 0, 0, 1.0]}
    spec = replace(spec, gravity=(0, 0, -10.0), start_q=start, start_v={}, forces=())
    system = bb.load(spec, client._client, dt=DT, contacts=True, limits=True).system
    rng = np.random.default_rng(0)
    loaded_steps = 0
    for n in range(400):
        if n % 24 == 0:
            for leg in ("front_left", "back_left", "front_right", "back_right"):
                side = -1 if "left" in leg else 1
                for end in "LR":
                    angle = float(side * np.pi / 2 + rng.uniform(-1.5, 1.5))
                    name = f"motor_{leg}{end}_joint"
                    system.motors.set(name, force=3.5, position=angle, position_gain=1.0)
        system.step()
        loaded_steps += len(system.contacts()) > 0
        assert system.evaluate().largest("kept_metres") < 1e-12
    assert loaded_steps > 100
