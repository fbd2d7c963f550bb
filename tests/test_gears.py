"""Gears of the drop-in client: ratio, auxiliary joint, position target, force limit."""

import numpy as np
import pybullet
import pytest
from pybullet_utils.bullet_client import BulletClient as Native
from support.grippers import FOLLOWERS

from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import session_of
from bulletbridge.errors import BulletBridgeWarning
from bulletbridge.models.bundled import find

DT, RATIO = 1 / 240, -2.0
INERTIAS = (1.0, 2.0, 3.0)
GEAR = pybullet.JOINT_GEAR
MODES = pytest.mark.parametrize("mode", ["filter", "exact"])
WHEEL = """<link name="wheel{0}"><inertial><mass value="1"/>
  <inertia ixx="{1}" iyy="{1}" izz="{1}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="turn{0}" type="{2}"><parent link="base"/><child link="wheel{0}"/>
  <origin xyz="0 {0} 0"/><axis xyz="0 0 1"/></joint>"""
BASE = """<link name="base"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


def wheels(client, tmp_path, last="continuous"):
    """Three wheels side by side on a fixed base, free to turn; the third may be fixed."""
    kinds = "continuous", "continuous", last
    parts = [WHEEL.format(k, *pair) for k, pair in enumerate(zip(INERTIAS, kinds, strict=True))]
    path = tmp_path / f"wheels_{last}.urdf"
    path.write_text(f'<robot name="wheels">{BASE}{"".join(parts)}</robot>')
    body = client.loadURDF(str(path), useFixedBase=True, flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
    client.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
    for k in range(2 if last == "fixed" else 3):
        client.setJointMotorControl2(body, k, pybullet.VELOCITY_CONTROL, force=0)
    return body


def connect(mode):
    """A client of a mode, or Bullet's own, well converged."""
    if mode is not None:
        return BulletClient(pybullet.DIRECT, mode=mode)
    client = Native(pybullet.DIRECT)
    client.setPhysicsEngineParameter(numSolverIterations=1000, solverResidualThreshold=0)
    return client


def mesh(client, body, other=None, **given):
    """A gear between the first two wheels."""
    made = client.createConstraint(
        body, 0, body if other is None else other, 1, GEAR, (0, 0, 1), (0, 0, 0), (0, 0, 0)
    )
    client.changeConstraint(made, gearRatio=RATIO, **given)
    return made


def push(client, body, count, torque=3.0):
    """Steps with a torque on the first wheel."""
    for _ in range(count):
        client.setJointMotorControl2(body, 0, pybullet.TORQUE_CONTROL, force=torque)
        client.stepSimulation()


def turns(client, body):
    """Angles and rates (2, 3)."""
    return np.array([state[:2] for state in client.getJointStates(body, range(3))]).T


@MODES
@pytest.mark.parametrize("auxiliary", [-1, 2])
@pytest.mark.parametrize("target", [None, 0.1])
def test_a_gear_is_rigid(tmp_path, mode, auxiliary, target):
    """Positions and rates to round-off; in exact mode the motion of the textbook."""
    client = connect(mode)
    body = wheels(client, tmp_path)
    given = {} if target is None else {"erp": 0.3, "relativePositionTarget": target}
    mesh(client, body, gearAuxLink=auxiliary, **given)
    push(client, body, 60)
    row = np.array([1.0, RATIO, -1.0 if auxiliary == 2 else 0.0])
    q, v = turns(client, body)
    assert abs(row @ q - (target or 0.0)) < 1e-14
    assert abs(row @ v) < 1e-14
    if mode == "exact":
        force = np.array([3.0, 0, 0])
        through = row / INERTIAS
        force = force - row * (through @ force) / (through @ row)
        assert np.abs(v - 60 * DT * force / INERTIAS).max() < 1e-12


@MODES
def test_a_gear_is_rigid_up_to_its_force_and_then_exerts_just_that(tmp_path, mode):
    """A torque of 3 on the first wheel takes 1 N m on it: r I / (I + J r²) for the second's J."""
    for limit in (2.0, 0.5):
        client = connect(mode)
        body = wheels(client, tmp_path)
        made = mesh(client, body, erp=0.3, relativePositionTarget=0.0, maxForce=limit)
        push(client, body, 60)
        q, v = turns(client, body)
        if limit > 1.0:
            assert max(abs(q[0] + RATIO * q[1]), abs(v[0] + RATIO * v[1])) < 1e-14
        wheel = 60 * DT * (3.0 - min(limit, 1.0)) / INERTIAS[0]
        # Bullet's step, which filter mode starts from, ends at its residual threshold
        assert abs(v[0] - wheel) < (1e-12 if mode == "exact" else 1e-5) * wheel
        (state,) = client.getConstraintState(made)
        assert abs(abs(state) - min(limit, 1.0)) < 1e-5


def test_an_open_gear_of_bounded_force_closes_as_bullets(tmp_path):
    """It takes the share erp times the engine's erp of its error in a step, within its force."""
    ends = []
    for mode in (None, "exact"):
        client = connect(mode)
        body = wheels(client, tmp_path)
        mesh(client, body, erp=0.2, relativePositionTarget=0.1, maxForce=4.0)
        push(client, body, 60)
        ends.append(turns(client, body)[:, :2])
    # Bullet's solver ends 1e-6 or so away, and the error of 0.1 fades
    assert np.abs(ends[0] - ends[1]).max() < 5e-3
    assert abs(np.array([1, RATIO]) @ ends[1][0] - 0.1) < 0.02


@MODES
def test_a_gear_follows_its_target_and_bodies_may_be_two(tmp_path, mode):
    """Bullet takes both positions from the first body then, and drives the gear elsewhere."""
    client = connect(mode)
    one, two = wheels(client, tmp_path), wheels(client, tmp_path)
    made = mesh(client, one, two, erp=0.5, relativePositionTarget=0.0)
    for k in range(1, 30):
        target = 0.002 * k
        client.changeConstraint(made, relativePositionTarget=target)
        push(client, one, 1, torque=1.0)
        q = client.getJointState(one, 0)[0] + RATIO * client.getJointState(two, 1)[0]
        assert abs(q - target) < 1e-14
    assert client.getConstraintInfo(made)[14] == 0.5
    assert "erp of 0.5" in client.getBridgeLoops()[made].note


@MODES
def test_a_new_gear_takes_nothing_from_what_was_done_before(tmp_path, mode):
    """Bullet shows a ratio, target and erp that another command has left in its memory."""
    client = connect(mode)
    body, other = wheels(client, tmp_path), wheels(client, tmp_path)
    mesh(client, body, erp=0.5, relativePositionTarget=0.3, gearAuxLink=2)
    client.createConstraint(other, 0, other, 1, GEAR, (0, 0, 1), (0, 0, 0), (0, 0, 0))
    push(client, other, 20)
    first, second, third = (client.getJointState(other, k)[1] for k in range(3))
    assert second == pytest.approx(-first, rel=1e-9)
    assert first > 0.05
    assert third == 0.0
    client.resetSimulation()
    body = wheels(client, tmp_path)
    client.createMultiBody(0, client.createCollisionShape(pybullet.GEOM_PLANE))
    gear = client.createConstraint(body, 0, body, 1, GEAR, (0, 0, 1), (0, 0, 0), (0, 0, 0))
    client.changeConstraint(gear, gearRatio=1, erp=0.1, maxForce=100)
    client.stepSimulation()
    assert [client.getJointState(body, k)[0] for k in range(3)] == pytest.approx([0, 0, 0])
    client.disconnect()


@MODES
def test_a_gear_of_what_does_not_turn_stays_bullets(tmp_path, mode):
    client = connect(mode)
    body = wheels(client, tmp_path, "fixed")
    made = mesh(client, body, gearAuxLink=2)
    with pytest.warns(BulletBridgeWarning, match="neither turns nor slides"):
        client.stepSimulation()
    assert not client.getBridgeLoops()[made].exact


@MODES
@pytest.mark.parametrize("limit", [None, 100.0])
@pytest.mark.parametrize("shift", [5e-4, 5e-2])
def test_a_gear_goes_on_from_where_all_else_is_closed(tmp_path, mode, limit, shift):
    """Two wheels pinned to the world, and geared: a reset of one asks what nothing can do.

    As Bullet's, such a gear holds rates: it contradicts nothing. What is pinned is where it was to
    the digits of Bullet's poses, single precision, over the lever of 0.2 m: below 1e-6 rad.
    """
    client = connect(mode)
    body = wheels(client, tmp_path)
    mesh(client, body, **({} if limit is None else {"maxForce": limit}))
    for wheel in range(2):
        place = client.getLinkState(body, wheel)[0]
        at = [place[0] + 0.2, *place[1:]]
        kind = pybullet.JOINT_POINT2POINT
        client.createConstraint(body, wheel, -1, -1, kind, [0] * 3, [0.2, 0, 0], at)
    for _ in range(3):
        client.stepSimulation()
    client.resetJointState(body, 0, shift)
    for _ in range(12):
        client.stepSimulation()
    q, v = turns(client, body)
    assert np.abs(q[:2]).max() < 1e-6 and np.abs(v[:2]).max() < 1e-12
    client.disconnect()


def test_only_rigid_gears_give_way_to_what_else_is_closed(tmp_path):
    """One with a maxForce has no rows in exact mode: it was an "unknown constraint" there."""
    client = connect("exact")
    mesh(client, wheels(client, tmp_path), maxForce=20.0)
    client.stepSimulation()
    (group,) = session_of(client._client).groups.values()
    assert not group.joined.close_before_gears(set())
    client.disconnect()


def close_a_gripper(mode):
    """The usual program of a Robotiq-like gripper: five gears with erp and maxForce, closed by one.

    Returns:
        Largest error of a gear [rad] on the way, and where the driver ends.
    """
    client = Native(pybullet.DIRECT) if mode is None else BulletClient(pybullet.DIRECT, mode=mode)
    client.setTimeStep(DT)
    client.setGravity(0, 0, -9.81)
    path = find("mimic_gripper")
    turn = pybullet.getQuaternionFromEuler([np.pi, 0, 0])
    body = client.loadURDF(str(path), [0, 0, 0.5], turn, useFixedBase=True)
    numbers = {
        client.getJointInfo(body, k)[1].decode(): k for k in range(client.getNumJoints(body))
    }
    for name, multiplier in FOLLOWERS.items():
        gear = client.createConstraint(
            *(body, numbers["left_driver"], body, numbers[name]),
            *(GEAR, [0, 1, 0], [0, 0, 0], [0, 0, 0]),
        )
        client.changeConstraint(gear, gearRatio=-multiplier, maxForce=100, erp=1)
        client.setJointMotorControl2(body, numbers[name], pybullet.VELOCITY_CONTROL, force=0)
    worst, angle, driver = 0.0, 0.0, numbers["left_driver"]
    for _ in range(240):
        client.setJointMotorControl2(
            body, driver, pybullet.POSITION_CONTROL, targetPosition=0.6, force=5, maxVelocity=1.0
        )
        client.stepSimulation()
        angle = client.getJointState(body, driver)[0]
        for name, multiplier in FOLLOWERS.items():
            off = client.getJointState(body, numbers[name])[0] - multiplier * angle
            worst = max(worst, abs(off))
    client.disconnect()
    return worst, angle


def test_the_gears_of_a_gripper_program_hold():
    """Native gears of this program are off by more than 1e-6 rad while it closes."""
    native, closed = close_a_gripper(None)
    assert native > 1e-6
    for mode in ("filter", "exact"):
        worst, angle = close_a_gripper(mode)
        assert worst <= 1e-12
        assert angle == pytest.approx(closed, abs=1e-3)
