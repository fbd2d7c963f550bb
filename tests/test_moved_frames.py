"""Frames of constraints that a program moves: what is prescribed on the way."""

import numpy as np
import pybullet as p
import pytest
from numpy.testing import assert_allclose
from support.bullet_worlds import led_pendulum

from bulletbridge.constraints.motion import Motion
from bulletbridge.constraints.moved_frames import MOVED
from bulletbridge.drop_in.moved_frame import Way
from bulletbridge.errors import ModelError, StepError


def way(rng: np.random.Generator) -> tuple[np.ndarray, Way]:
    """A frame in its second step, of which half makes a step of the system."""
    frame = np.zeros(1, MOVED)
    axes: np.ndarray = rng.normal(size=(3, 3))
    frame["align"] = np.linalg.qr(axes)[0]
    frame["until"], frame["dt"], frame["part"] = 2.0, 0.01, 0.005
    frame["before"], frame["rates"] = rng.normal(size=4), rng.normal(size=4)
    frame["ends"] = rng.normal(size=3)
    return frame, Way(frame=frame)


def test_a_moved_frame_is_prescribed_as_its_rates_say():
    """Sums of three products of numbers up to 300, each rounded twice: within 1e-12."""
    frame, motion = way(np.random.default_rng(3))
    (before,), (rates,) = frame["before"], frame["rates"]
    at_end = np.array([*frame["ends"][0], rates[3]])
    start, middle, end = motion.over(np.array([1.99, 1.995, 2.0]))
    assert_allclose(
        start, np.array([-0.01 * rates, before, (rates - before) / 0.005]).T, atol=1e-12
    )
    assert_allclose(middle, np.array([-0.005 * rates, rates, 0.0 * rates]).T, atol=1e-12)
    assert_allclose(end, np.array([0.0 * rates, at_end, 0.0 * rates]).T, atol=1e-12)
    targets, others = np.zeros((2, 3, 2, 12))
    times = np.array([1.99, 1.995, 2.0])
    motion.put(times, frame["align"][0], targets, 1)
    Motion.put(motion, times, frame["align"][0], others, 1)
    assert not targets[:, 0].any()
    assert_allclose(targets, others, atol=1e-12)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_moved_frame_that_is_nowhere_is_refused(number: float):
    frame, motion = way(np.random.default_rng(4))
    frame["rates"][0, 1] = number
    with pytest.raises(ModelError, match="not finite at t = 1.99 s"):
        motion.put(np.array([1.99]), np.eye(3), np.zeros((1, 1, 12)), 0)


@pytest.mark.parametrize("mode", ["filter", "exact"])
@pytest.mark.parametrize("on_base", [False, True], ids=["frame", "base"])
def test_what_is_moved_on_by_metres_at_once_jumps(mode: str, on_base: bool):
    """A load on a pin that goes at 1 m/s, and by 2 m in its thirtieth step: it comes along.

    It hangs from where it is put, so that nothing but the pin's 1 m/s and, from a swing that this
    alone begins, twice that can be its speed; as a velocity the 2 m are 480 m/s.
    """
    client, load, pin, lead = led_pendulum(mode, on_base)
    for n in range(1, 41):
        place = [n / 240 + 2.0 * (n >= 30), 0, 2]
        lead(place)
        if not on_base:
            client.changeConstraint(pin, [0, 0])  # of which Bullet takes no note
        client.stepSimulation()
        at, turn = client.getBasePositionAndOrientation(load)
        top = client.multiplyTransforms(at, turn, [0, 0, 0.3], [0, 0, 0, 1])[0]
        assert_allclose(top, place, atol=1e-6)  # in single precision
        assert np.linalg.norm(client.getBaseVelocity(load)[0]) < 2.0


def on_a_joint(client, kind, axis, centre=(0, 0, 0), turn=(0, 0, 0, 1), place=(0, 0, 0)):
    """A box of 3 kg on one joint of a base that stands still, at a weak motor."""
    body = client.createMultiBody(
        basePosition=place,
        baseOrientation=turn,
        linkMasses=[3.0],
        linkCollisionShapeIndices=[
            client.createCollisionShape(p.GEOM_BOX, halfExtents=[0.02, 0.2, 0.2])
        ],
        linkVisualShapeIndices=[-1],
        linkPositions=[[0, 0, 0]],
        linkOrientations=[[0, 0, 0, 1]],
        linkInertialFramePositions=[centre],
        linkInertialFrameOrientations=[[0, 0, 0, 1]],
        linkParentIndices=[0],
        linkJointTypes=[kind],
        linkJointAxis=[axis],
    )
    client.setJointMotorControl2(body, 0, p.VELOCITY_CONTROL, force=2)
    return body


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_a_door_is_opened_by_its_handle(connect, mode: str):
    """The handle is led on its arc, whose tangents ways over a step are not.

    The angle is that of where the handle is put, in double precision; its rate is that of ways,
    2 sin(a / 2) / dt for an angle a a step. Past a right angle what holds it there is another row
    than where it began, where that one moved nothing.
    """
    client, radius, angle, dt = connect(), 0.4, 0.0125, 1 / 240
    client.setBridgeMode(mode)
    door = on_a_joint(client, p.JOINT_REVOLUTE, [0, 0, 1], [0, 0.2, 0])
    ends, start = (door, 0, -1, -1), [0, radius, 0]
    held = client.createConstraint(*ends, p.JOINT_POINT2POINT, [0] * 3, [0, 0.2, 0], start)
    for n in range(201):
        at = n * angle
        client.changeConstraint(held, [-radius * np.sin(at), radius * np.cos(at), 0])
        client.stepSimulation()
        found, rate = client.getJointState(door, 0)[:2]
        assert found == pytest.approx(at, abs=1e-9)
        if n > 1:
            assert rate == pytest.approx(2 * np.sin(angle / 2) / dt, rel=1e-4)


@pytest.mark.parametrize("mode", ["filter", "exact"])
@pytest.mark.parametrize("kind", [p.JOINT_POINT2POINT, p.JOINT_FIXED])
def test_who_leads_a_lid_on_its_arc_feels_its_weight_alone(connect, mode: str, kind: int):
    """At 1 rad/s through 2.6 rad: no force towards the hinge, which Bullet pulls at in vain.

    The moment about the hinge is that of the weight, at both ends of a step: gravity acts where it
    begins. Bullet's 50 iterations and single precision leave a thousandth of the weight.
    """
    client, length, dt = connect(), 0.75, 1 / 240
    client.setBridgeMode(mode)
    client.setGravity(0, 0, -9.81)
    lid = on_a_joint(client, p.JOINT_REVOLUTE, [0, 1, 0], [0.4, 0, 0])
    client.setJointMotorControl2(lid, 0, p.VELOCITY_CONTROL, force=0)
    client.changeDynamics(lid, -1, linearDamping=0, angularDamping=0)
    weight = 9.81 * client.getDynamicsInfo(lid, 0)[0]
    ends = (lid, 0, -1, -1)
    held = client.createConstraint(*ends, kind, [0] * 3, [length - 0.4, 0, 0], [length, 0, 0])
    for n in range(1, 625):
        at = n * dt
        place = [length * np.cos(at), 0, length * np.sin(at)]
        client.changeConstraint(held, place, client.getQuaternionFromEuler([0, -at, 0]))
        client.stepSimulation()
        if n % 60:
            continue
        told = np.array(client.getConstraintState(held))
        force = told[:3] if kind == p.JOINT_FIXED else -told  # on the lid
        moment = length * (force[2] * np.cos(at) - force[0] * np.sin(at))
        moment -= told[4] if kind == p.JOINT_FIXED else 0.0  # about -y
        along = force[0] * np.cos(at) + force[2] * np.sin(at)
        assert moment == pytest.approx(0.4 * weight * np.cos(at), abs=2 * dt * 0.4 * weight)
        assert abs(along) < 2 * dt * weight


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_a_drawer_is_pulled_along_an_axis_that_bullet_rounds(connect, mode: str):
    """``multiplyTransforms`` tells a drawer's axis in single precision, which is led along it."""
    client, turn = connect(), p.getQuaternionFromEuler([0.3, 0.2, 0.7])
    client.setBridgeMode(mode)
    drawer = on_a_joint(client, p.JOINT_PRISMATIC, [1, 0, 0], turn=turn)
    along = np.array(p.multiplyTransforms([0] * 3, turn, [1, 0, 0], [0, 0, 0, 1])[0])
    ends = drawer, 0, -1, -1
    held = client.createConstraint(*ends, p.JOINT_POINT2POINT, [0] * 3, [0] * 3, [0] * 3)
    for n in range(100):
        client.changeConstraint(held, 0.002 * n * along)
        client.stepSimulation()
        assert client.getJointState(drawer, 0)[0] == pytest.approx(0.002 * n, abs=1e-7)


ON_ARCS = {
    "far away": ([8.0, -6.0, 1.0], [0, 0, 1], [0.4, 0, 0], [0, 0, 0, 1]),
    "aslant": (
        *([0.3, -0.2, 1.0], [0.6, 0.8, 0], [0.1, 0.2, 0.4]),
        p.getQuaternionFromEuler([0.3, 0.2, 0.7]),
    ),
}


@pytest.mark.parametrize("mode", ["filter", "exact"])
@pytest.mark.parametrize("name", ON_ARCS)
def test_a_door_is_led_by_places_that_bullet_rounds(connect, mode: str, name: str):
    """A place is rounded by 6e-8 of its distance from the origin, and so is what it is made from.

    The handle is 0.35 m or more from its hinge, and follows in a direction at most 55 degrees from
    its arc's. What cannot be had is an error: 2e-5 m more of radius.
    """
    (base, axis, start, turn), handle = ON_ARCS[name], [0.1, 0.2, 0.05]
    client = connect()
    client.setBridgeMode(mode)
    door = on_a_joint(client, p.JOINT_REVOLUTE, axis, handle, turn, base)
    unit, arm = np.array(axis) / np.linalg.norm(axis), np.array(start)
    along = (unit @ arm) * unit
    radius = np.linalg.norm(arm - along)

    def told(angle: float, more: float = 0.0) -> list[float]:
        across = np.cos(angle) * (arm - along) + np.sin(angle) * np.cross(unit, arm)
        place = along + (1.0 + more / radius) * across
        return p.multiplyTransforms(base, turn, place, [0, 0, 0, 1])[0]

    pivot = (arm - handle).tolist()
    held = client.createConstraint(door, 0, -1, -1, p.JOINT_POINT2POINT, [0] * 3, pivot, told(0.0))
    rounded = 1.2e-7 * (np.linalg.norm(base) + 0.4)
    for n in range(1, 601):
        client.changeConstraint(held, told(n / 240))
        client.stepSimulation()
        found = client.getJointState(door, 0)[0]
        assert found == pytest.approx(n / 240, abs=3**0.5 * rounded / 0.35)
    client.changeConstraint(held, told(2.5, 2e-5))
    if mode == "exact":
        with pytest.raises(StepError, match="'constraint 1' stays open by"):
            client.stepSimulation()
