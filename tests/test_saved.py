"""Everything that decides the future is in the state: the same bits after it is put back."""

import copy
import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pybullet
import pybullet_data
import pytest
from _mechanisms import REVOLUTE, random_mechanism
from support import hoppers
from support.bullet_worlds import SLIDER, led_pendulum
from support.hoppers import LOOP, STEPS, WARM, advance, bridge, drive, tip
from support.planar import planar_chain
from support.users_constraints import PointOnSphere
from test_client import linkage
from test_islands import several
from test_links import row

import bulletbridge as bb
from bulletbridge.bullet.contacts import StickingReader
from bulletbridge.bullet.reader import read_bullet
from bulletbridge.constraints.motion import Motion, Sine
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import session_of
from bulletbridge.engine.islands import IslandStepper
from bulletbridge.engine.redundancy import FEWEST_POSES, MOST_POSES, number_of_poses
from bulletbridge.engine.sparse_plan import SparseStepper
from bulletbridge.errors import BulletBridgeWarning, ModelError, WorldError

RESTORES = 3


@pytest.fixture(autouse=True)
def clients():
    """Closes the clients that a test leaves behind."""
    before = [n for n in range(64) if pybullet.isConnected(n)]
    yield
    for n in range(64):
        if n not in before and pybullet.isConnected(n):
            pybullet.disconnect(n)


def elsewhere(what: str, folder: Path, seed: int) -> str:
    """Hash of a trajectory of ``hoppers`` in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, hoppers.__file__, what, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("hash ")]
    return line.split()[1]


def trajectory(system: bb.System, steps: int) -> str:
    """Hash of states, which does not show them in a world."""
    found = hashlib.sha256()
    for _ in range(steps):
        system.step(write=False)
        found.update(system.q.tobytes() + system.v.tobytes())
    return found.hexdigest()


# states of Bullet, in exact mode


def test_restores_in_exact_mode_go_on_as_before(tmp_path):
    client, body = bridge(tmp_path)
    drive(client, body, 0, WARM)
    kept = client.saveState()
    first, met = drive(client, body, WARM, STEPS)
    assert met == ["contact", "limit"]
    for _ in range(RESTORES):
        client.restoreState(kept)
        assert drive(client, body, WARM, STEPS)[0] == first


def test_a_state_is_saved_between_a_reset_and_a_step(tmp_path):
    client, body = bridge(tmp_path)
    drive(client, body, 0, WARM)
    client.resetBasePositionAndOrientation(body, [0, 0, 0.6], [0, 0, 0, 1])
    kept = client.saveState()
    first, _ = drive(client, body, WARM, 60)
    client.restoreState(kept)
    assert drive(client, body, WARM, 60)[0] == first


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_a_push_in_the_step_before_a_state_was_saved_is_over(tmp_path, mode):
    """As any push of Bullet's, whatever the steps before the state is restored were."""
    client, body = bridge(tmp_path)
    client.setBridgeMode(mode)
    drive(client, body, 0, WARM)
    client.applyExternalForce(body, -1, [30, 0, 50], [0, 0, 0], pybullet.LINK_FRAME)
    client.setJointMotorControl2(body, 1, pybullet.TORQUE_CONTROL, force=2.0)
    drive(client, body, WARM, 1)
    kept, first = client.saveState(), drive(client, body, WARM, 60)[0]
    for _ in range(2):
        client.restoreState(kept)
        assert drive(client, body, WARM, 60)[0] == first


def held_hinges(balls: bool) -> tuple[Any, int]:
    """A chain of two links whose end a point holds to a body; its client, and its number."""
    client: Any = BulletClient(pybullet.DIRECT, mode="exact")
    client.setGravity(0, 0, -9.81)
    first = pybullet.JOINT_SPHERICAL if balls else pybullet.JOINT_REVOLUTE
    upright, ball = [0, 0, 0, 1], client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.1)
    body = client.createMultiBody(
        *(0, -1, -1, [0, 0, 1], upright),
        linkMasses=[1, 1],
        linkCollisionShapeIndices=[ball] * 2,
        linkVisualShapeIndices=[-1, -1],
        linkPositions=[[0, 0, 0], [0, 0, -0.5]],
        linkOrientations=[upright] * 2,
        linkInertialFramePositions=[[0, 0, -0.25]] * 2,
        linkInertialFrameOrientations=[upright] * 2,
        linkParentIndices=[0, 1],
        linkJointTypes=[first, pybullet.JOINT_REVOLUTE],
        linkJointAxis=[[0, 1, 0]] * 2,
    )
    held = client.createMultiBody(2, ball, -1, [0, 0, 0])
    for one, link in ((body, 0), (body, 1), (held, -1)):
        client.setCollisionFilterGroupMask(one, link, 0, 0)
    ends = [0, 0, -0.25], [0, 0, 0]
    client.createConstraint(body, 1, held, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0], *ends)
    return client, body


@pytest.mark.parametrize("balls", [False, True])
def test_motors_go_by_their_last_commands_after_a_restore(balls):
    """Bullet's states hold no commands: what was asked for after one was saved is done from it."""
    client, body = held_hinges(balls)

    def command(way: float) -> None:
        if balls:
            turn = pybullet.getQuaternionFromEuler([0.1, way, 0.2])
            client.setJointMotorControlMultiDof(
                body, 0, pybullet.POSITION_CONTROL, targetPosition=turn, force=[20, 20, 20]
            )
        else:
            client.setJointMotorControl2(body, 0, pybullet.POSITION_CONTROL, way, force=20)
        client.setJointMotorControl2(body, 1, pybullet.POSITION_CONTROL, -way, force=10 + way)

    def run(steps: int) -> list[Any]:
        for _ in range(steps):
            client.stepSimulation()
        return [client.getJointStateMultiDof(body, joint)[:2] for joint in range(2)]

    command(0.3)
    run(30)
    kept = client.saveState()
    command(-0.4)
    changed = run(40)
    client.restoreState(kept)
    assert run(40) == changed
    command(0.3)
    client.restoreState(kept)
    as_before = run(40)
    assert as_before != changed
    command(-0.4)
    run(3)
    command(0.3)
    client.restoreState(kept)
    assert run(40) == as_before


def joined_balls(*places: tuple[float, float]) -> tuple[Any, list[int]]:
    """A client, and balls that are joined in pairs, over a floor, at these x and z [m]."""
    client: Any = BulletClient(pybullet.DIRECT, mode="exact")
    client.setPhysicsEngineParameter(deterministicOverlappingPairs=1)
    client.setGravity(0, 0, -9.81)
    client.createMultiBody(0.0, client.createCollisionShape(pybullet.GEOM_PLANE))
    ball = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
    balls = list[int]()
    for x, z in places:
        a, b = (client.createMultiBody(0.2, ball, -1, [x, y, z]) for y in (0.0, 0.12))
        ends = [0, 0.06, 0], [0, -0.06, 0]
        client.createConstraint(a, -1, b, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0], *ends)
        balls += [a, b]
    return client, balls


def test_groups_that_join_after_a_restore_go_on_as_before():
    """Two pairs of balls meet on a floor: what is joined starts from where Bullet has the balls."""
    client, balls = joined_balls((0.0, 0.0501), (0.2, 0.0501))
    for a, b, speed in ((*balls[:2], 1.0), (*balls[2:], -1.0)):
        for body, turn in ((a, [3.0, 2.0, 1.0]), (b, [-1.0, 2.0, 3.0])):
            client.resetBaseVelocity(body, [speed, 0, 0], turn)

    def step() -> bytes:
        client.stepSimulation()
        told = [
            *(client.getBasePositionAndOrientation(body) for body in balls),
            *(client.getBaseVelocity(body) for body in balls),
        ]
        return np.concatenate([part for parts in told for part in parts]).tobytes()

    kept, first = list[int](), list[bytes]()
    groups = session_of(client._client).groups
    while len(groups) != 1 and len(kept) < 100:
        kept.append(client.saveState())
        first.append(step())
    assert len(groups) == 1 and len(kept) > 10
    first += [step() for _ in range(10)]
    for start in (*range(-8, 0), *range(-8, 0)):
        client.restoreState(kept[start])
        assert [step() for _ in range(10 - start)] == first[start - 10 :]


def test_a_file_holds_what_bullet_knows(tmp_path):
    """Every restore from it starts afresh: alike, however far the steps before had come."""
    client, body = bridge(tmp_path)
    drive(client, body, 0, WARM)
    client.saveBullet(str(tmp_path / "world.bullet"))
    ends = set()
    for steps in (0, 7, 100):
        drive(client, body, WARM, steps)
        client.restoreState(fileName=str(tmp_path / "world.bullet"))
        ends.add(drive(client, body, WARM, 120)[0])
    assert len(ends) == 1


def lift(mode: str) -> tuple[Any, int]:
    """Two joined boxes on a lift, and a ball that hangs on it; their client, and the lift."""
    client: Any = BulletClient(pybullet.DIRECT, mode=mode)
    client.setPhysicsEngineParameter(deterministicOverlappingPairs=1)
    client.setGravity(0, 0, -9.81)
    floor, box = (
        client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=half)
        for half in ([0.5, 0.5, 0.05], [0.1, 0.1, 0.1])
    )
    below = client.createMultiBody(0, floor, -1, [0, 0, 0.5])
    a, b = (client.createMultiBody(1, box, -1, [x, 0, 0.65]) for x in (0, 0.3))
    ends = [0.15, 0, 0], [-0.15, 0, 0]
    client.createConstraint(a, -1, b, -1, pybullet.JOINT_FIXED, [0, 0, 0], *ends)
    ball = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
    load = client.createMultiBody(1, ball, -1, [0, 0, 0.2])
    ends = [0, 0, -0.3], [0, 0, 0]
    client.createConstraint(below, -1, load, -1, pybullet.JOINT_POINT2POINT, [0, 0, 0], *ends)
    return client, below


def raise_lift(client: Any, body: int, step: int) -> None:
    """Put a lift, which turns as it rises, where it is in a step."""
    turn = pybullet.getQuaternionFromEuler([0.3 * np.sin(0.02 * step), 0, 0.002 * step])
    client.resetBasePositionAndOrientation(body, [0, 0, 0.5 + step / 240], turn)


def ride(client: Any, body: int, steps: range, moves: bool = True) -> bytes:
    """States of all bodies in steps in which a lift is moved, but for the first one if not."""
    found = []
    for step in steps:
        if moves or step > steps[0]:
            raise_lift(client, body, step)
        client.stepSimulation()
        for one in range(client.getNumBodies()):
            place, velocity = client.getBasePositionAndOrientation(one), client.getBaseVelocity(one)
            found += [*place, *velocity]
    return np.concatenate(found).tobytes()


@pytest.mark.parametrize("mode", ["filter", "exact"])
@pytest.mark.parametrize("moved", [False, True])
def test_states_of_a_lift_go_on_as_before(mode, moved):
    """Whether it was moved since the last step, and after a state of when it never was."""
    client, body = lift(mode)
    client.stepSimulation()
    never = client.saveState()
    ride(client, body, range(12))
    if moved:
        raise_lift(client, body, 12)
    kept, steps = client.saveState(), range(12, 24)
    first = ride(client, body, steps, not moved)
    client.restoreState(kept)
    assert ride(client, body, steps, not moved) == first
    client.restoreState(never)
    client.stepSimulation()
    client.restoreState(kept)
    assert ride(client, body, steps, not moved) == first


def test_a_file_of_a_lift_is_the_same_to_a_new_client(tmp_path):
    """Which has not moved it yet."""
    client, body = lift("exact")
    file, steps = str(tmp_path / "lift.bullet"), range(12, 24)
    ride(client, body, range(12))
    client.saveBullet(file)
    ride(client, body, range(12, 15))
    client.restoreState(fileName=file)
    first = ride(client, body, steps)
    client, body = lift("exact")
    client.restoreState(fileName=file)
    assert ride(client, body, steps) == first


def test_what_comes_nearer_after_a_file_is_the_same_to_a_new_client(tmp_path):
    """A ball that is put there before the first step was not that fast, whoever had seen it."""

    def drive_on(client: Any, ball: int) -> tuple[list[frozenset[int]], str]:
        client.restoreState(fileName=file)
        client.resetBasePositionAndOrientation(ball, [0.103, 0, 1], [0, 0, 0, 1])
        client.stepSimulation()
        return [*session_of(client._client).groups], trajectory_in_bullet(client, ball, 5)

    def begin() -> tuple[Any, int]:
        client, _ = joined_balls((0.0, 1.0))
        ball = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
        return client, client.createMultiBody(0.2, ball, -1, [0.12, 0, 1])

    file = str(tmp_path / "balls.bullet")
    client, ball = begin()
    client.saveBullet(file)
    trajectory_in_bullet(client, ball, 3)
    first = drive_on(client, ball)
    assert drive_on(*begin()) == first


def test_forces_of_contacts_are_those_of_the_first_step_that_is_pushed():
    """Which Bullet makes as well, for it was told of the push before there was a group."""
    client, balls = joined_balls((0.0, 0.045))
    client.applyExternalForce(balls[0], -1, [0, 0, -1.0], [0, 0, 0], pybullet.LINK_FRAME)
    client.stepSimulation()
    force = sum(point[9] for point in client.getContactPoints())
    momentum = sum(0.2 * client.getBaseVelocity(ball)[0][2] for ball in balls)
    assert 240 * momentum == pytest.approx(force - 0.4 * 9.81 - 1.0, abs=1e-8)


def trajectory_in_bullet(client: BulletClient, body: int, steps: int) -> str:
    """Hash of a body's states."""
    found = hashlib.sha256()
    for _ in range(steps):
        client.stepSimulation()
        told = *client.getBasePositionAndOrientation(body), *client.getBaseVelocity(body)
        joints = [client.getJointState(body, k)[:2] for k in range(client.getNumJoints(body))]
        found.update(np.concatenate((*told, *joints)).tobytes())
    return found.hexdigest()


def kept_by(client: BulletClient, way: str, folder: Path) -> dict[str, Any]:
    """Save a state in a way; how to restore it."""
    if way == "state":
        return {"stateId": client.saveState()}
    client.saveBullet(str(folder / "world.bullet"))
    return {"fileName": str(folder / "world.bullet")}


SAVED = pytest.mark.parametrize("way", ["state", "file"])


@SAVED
def test_loops_that_could_not_be_closed_since_are_closed_at_once(tmp_path, way):
    """Filter mode leaves Bullet's state be for some steps then: not after a restore."""
    client = BulletClient(pybullet.DIRECT, mode="filter")
    client.setGravity(0, 0, -9.81)
    place, axes = [0.5, 0, 1], [0, 0, 0, 1]
    ends, bar = [client.createMultiBody(0.0, -1, -1, [x, 0, 1]) for x in (-0.5, 0.5)], 1.0
    body = client.createMultiBody(bar, -1, -1, [0, 0, 1])
    client.changeDynamics(body, -1, localInertiaDiagonal=[0.1, 0.1, 0.1])
    for end, at in zip(ends, ([-0.5, 0, 0.1], [0.5, 0, 0.1]), strict=True):
        kind, pivot = pybullet.JOINT_POINT2POINT, [0, 0, 0.1]
        client.createConstraint(end, -1, body, -1, kind, [0, 0, 0], pivot, at)

    def lead(to: list[float], steps: int) -> str:
        for _ in range(steps):
            client.resetBasePositionAndOrientation(ends[1], to, axes)
            end = trajectory_in_bullet(client, body, 1)
        return end

    lead(place, 10)
    client.resetBaseVelocity(body, [0, 0, 0], [2, 0, 0])
    lead(place, 1)
    given = kept_by(client, way, tmp_path)
    client.restoreState(**given)
    first = lead(place, 30)
    for _ in range(2):
        with pytest.warns(BulletBridgeWarning, match="Bullet's own state stays"):
            lead([0.9, 0, 1], 3)
        client.restoreState(**given)
        assert lead(place, 30) == first


@SAVED
def test_what_was_left_to_bullet_since_is_stepped_exactly_again(tmp_path, way):
    """As boxes that lay on what moved: a restore is to before it did."""
    client = BulletClient(pybullet.DIRECT, mode="exact")
    client.setPhysicsEngineParameter(deterministicOverlappingPairs=1)
    client.setGravity(0, 0, -9.81)
    flat = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[2, 0.3, 0.05])
    belt = client.createMultiBody(0.0, flat, -1, [0, 0, 0.05])
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.05] * 3)
    boxes = [client.createMultiBody(0.5, shape, -1, [x, 0, 0.152]) for x in (-0.5, -0.2)]
    ends = [0.15, 0, 0], [-0.15, 0, 0]
    client.createConstraint(boxes[0], -1, boxes[1], -1, pybullet.JOINT_FIXED, [0] * 3, *ends)
    trajectory_in_bullet(client, boxes[0], 3)
    given = kept_by(client, way, tmp_path)
    client.restoreState(**given)
    first = trajectory_in_bullet(client, boxes[0], 60)
    client.resetBaseVelocity(belt, [0.5, 0, 0])
    with pytest.warns(BulletBridgeWarning, match="moves what it touches"):
        trajectory_in_bullet(client, boxes[0], 5)
    client.resetBaseVelocity(belt, [0, 0, 0])
    client.restoreState(**given)
    assert trajectory_in_bullet(client, boxes[0], 60) == first


@SAVED
def test_groups_that_have_met_since_are_apart_again(tmp_path, way):
    """Two bars that fall on one another are stepped together from then on."""
    client, balls = joined_balls((0.0, 0.06), (0.03, 0.3))
    for ball in balls[::2]:
        client.resetBaseVelocity(ball, [0, 0, 0], [1.0, 2.0, 3.0])
    trajectory_in_bullet(client, balls[2], 5)
    given = kept_by(client, way, tmp_path)
    client.restoreState(**given)
    groups = session_of(client._client).groups
    assert len(groups) == 2
    first = trajectory_in_bullet(client, balls[2], 100)
    assert len(groups) == 1
    client.restoreState(**given)
    assert trajectory_in_bullet(client, balls[2], 100) == first


SELF = (
    pybullet.URDF_USE_INERTIA_FROM_FILE
    | pybullet.URDF_USE_SELF_COLLISION
    | pybullet.URDF_USE_SELF_COLLISION_INCLUDE_PARENT
)
CREEP, JUST_APART = -1e-4, 2e-6
"""Rate [m/s] at which the ball comes nearer to its base, less in a step than by what links have to
be inside each other for Bullet to be asked whether they collide, and how far off it starts [m]."""


def slider(client: Any, folder: Path) -> int:
    """A ball that creeps along its slider towards its own base, with which it collides."""
    (folder / "slider.urdf").write_text(SLIDER)
    body: int = client.loadURDF(str(folder / "slider.urdf"), useFixedBase=True, flags=SELF)
    client.resetJointState(body, 0, -0.2 + JUST_APART)
    return body


def creep(system: bb.System, steps: int = 30) -> str:
    """Hash of what comes of a slider that is driven into its base."""
    system.motors.set("slide", velocity=CREEP, force=20.0)
    return trajectory(system, steps)


def slider_system(folder: Path) -> bb.System:
    """The slider as a system in a client of its own."""
    native = native_client()
    return bb.attach(slider(native, folder), [], native._client, contacts=True, dt=1 / 240)


def native_client() -> Any:
    """A client of PyBullet's own that goes with the test, not with its last reference."""
    from pybullet_utils.bullet_client import BulletClient as Native

    class Kept(Native):
        def __del__(self) -> None:
            pass

    return Kept(pybullet.DIRECT)


@SAVED
def test_links_of_one_robot_that_meet_first_after_a_save_do_so_again(tmp_path, way):
    """That they collide is learnt there: known before, they would meet a step earlier."""
    client = BulletClient(pybullet.DIRECT, mode="exact")
    body = slider(client, tmp_path)
    client.setBridgeMode("exact", body)
    client.setJointMotorControl2(body, 0, pybullet.VELOCITY_CONTROL, targetVelocity=CREEP, force=20)

    def run() -> list[float]:
        found = []
        for _ in range(30):
            client.stepSimulation()
            found.append(client.getJointState(body, 0)[0])
        return found

    client.stepSimulation()
    given = kept_by(client, way, tmp_path)
    client.restoreState(**given)
    first = run()
    assert min(first) == pytest.approx(-0.2, abs=1e-6)  # where it stands on the base
    for _ in range(2):
        client.restoreState(**given)
        assert run() == first


def test_points_that_stick_are_the_same_in_whatever_order_bullet_lists_them():
    """Of a beam that came to one block after the other, and to both at once in a restore."""
    client = native_client()
    client.setPhysicsEngineParameter(deterministicOverlappingPairs=1)
    client.setGravity(0, 0, -9.81)
    block, beam = [
        client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=extents)
        for extents in ([0.1, 0.1, 0.1], [0.6, 0.05, 0.05])
    ]
    for x in (-0.5, 0.5):
        client.createMultiBody(0.0, block, -1, [x, 0, 0])
    body = client.createMultiBody(1.0, beam, -1, [-0.9, 0, 0.151])
    reader = StickingReader(client._client, {body: (1,)})

    def step() -> tuple[list[Any], bytes, list[float]]:
        client.stepSimulation()
        listed = [point[1:5] for point in client.getContactPoints(body)]
        return listed, reader.read().tobytes(), reader.forces

    step()
    client.resetBasePositionAndOrientation(body, [0, 0, 0.151], [0, 0, 0, 1])
    for _ in range(60):
        client.stepSimulation()
    kept, (listed, *first) = client.saveState(), step()
    client.resetBasePositionAndOrientation(body, [0, 0, 9], [0, 0, 0, 1])
    for _ in range(40):
        client.stepSimulation()
    client.restoreState(kept)
    listed_now, *found = step()
    assert listed_now != listed and sorted(listed_now) == sorted(listed)
    assert found == first and len(reader.forces) > 2


def test_what_loops_carry_is_told_bullet_again_after_bodies_were_read_anew(tmp_path):
    """A load on a plank that two points hold, restored after a file was, which holds no loads."""
    client = BulletClient(pybullet.DIRECT, mode="filter")
    client.setPhysicsEngineParameter(deterministicOverlappingPairs=1)
    client.setGravity(0, 0, -9.81)
    shapes = [
        client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=extents)
        for extents in ([0.3, 0.1, 0.02], [0.05, 0.05, 0.05])
    ]
    plank = client.createMultiBody(1.0, shapes[0])
    load = client.createMultiBody(20.0, shapes[1], -1, [0.1, 0, 0.07])
    for x in (-0.3, 0.3):
        kind, at = pybullet.JOINT_POINT2POINT, [x, 0, 0]
        client.createConstraint(plank, -1, -1, -1, kind, [0, 0, 0], at, at)
    for _ in range(30):
        client.stepSimulation()
    kept, from_file = client.saveState(), kept_by(client, "file", tmp_path)
    first = trajectory_in_bullet(client, load, 20)
    for given in (from_file, {"stateId": kept}):
        client.restoreState(**given)
    assert trajectory_in_bullet(client, load, 20) == first


@pytest.mark.parametrize("way", ["reset", "file"])
def test_what_gives_way_to_a_force_starts_from_where_it_was_put(tmp_path, way):
    """As what is rigid: where its last step had led to before does not count."""
    ends = []
    for limit, steps in ((None, 0), (9999.0, 0), (9999.0, 60), (9999.0, 120)):
        client = BulletClient(pybullet.DIRECT, mode="filter")
        body, made = linkage(client, tmp_path)
        client.stepSimulation()  # which closes it
        if limit is not None:
            client.changeConstraint(made, maxForce=limit)
        joints = range(3)
        start = [client.getJointState(body, joint)[:2] for joint in joints]
        client.saveBullet(str(tmp_path / "world.bullet"))
        for turn in range(2):  # from a file, the first time the bodies are read
            for _ in range(steps * turn):
                client.stepSimulation()
            if way == "file":
                client.restoreState(fileName=str(tmp_path / "world.bullet"))
            else:
                for joint, (angle, rate) in zip(joints, start, strict=True):
                    client.resetJointState(body, joint, angle, rate)
            client.stepSimulation()
        ends.append([client.getJointState(body, joint)[:2] for joint in joints])
    assert ends[1] == ends[2] == ends[3]
    assert np.abs(np.subtract(ends[0], ends[1])).max() < 1e-14


def test_what_has_given_way_keeps_bullets_own_numbers(tmp_path):
    """Written back they would be rounded, and of what was just read they were."""
    client = BulletClient(pybullet.DIRECT, mode="filter")
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.1, 0.2, 0.3])
    body = client.createMultiBody(1.0, shape)
    kind, ends = pybullet.JOINT_POINT2POINT, ([0.1, 0.2, 0.3], [0.15, 0.2, 0.3])
    made = client.createConstraint(body, -1, -1, -1, kind, [0, 0, 0], *ends)
    client.changeConstraint(made, maxForce=10)
    client.setTimeStep(0.005)  # so that Bullet, which keeps the impulse, never pulls with all of it
    client.resetBaseVelocity(body, [0, 0, 0], [1, 2, 3])
    trajectory_in_bullet(client, body, 12)
    given, found = kept_by(client, "file", tmp_path), list[str]()
    for _ in range(3):
        client.restoreState(**given)
        found.append(trajectory_in_bullet(client, body, 20))
    assert found[0] == found[1] == found[2]


@pytest.mark.filterwarnings("ignore:frames are apart")
def test_what_is_left_to_bullet_is_by_what_it_bore_before_the_state_was_saved(tmp_path):
    """Bullet's states do not hold forces: what another limit let it bear since does not count."""
    client: Any = BulletClient(pybullet.DIRECT, mode="filter")
    body, _ = linkage(client, tmp_path)
    client.stepSimulation()
    kind, limit = pybullet.JOINT_POINT2POINT, 20.0
    apart = [x + 0.1 for x in client.getLinkState(body, 0)[0]]
    hold = client.createConstraint(body, 0, -1, -1, kind, [0, 0, 0], [0, 0, 0], apart)
    client.changeConstraint(hold, maxForce=limit)
    trajectory_in_bullet(client, body, 20)
    kept, first = client.saveState(), trajectory_in_bullet(client, body, 20)
    client.changeConstraint(hold, maxForce=1.0)
    trajectory_in_bullet(client, body, 2)
    client.changeConstraint(hold, maxForce=limit)
    client.restoreState(kept)
    assert trajectory_in_bullet(client, body, 20) == first


def test_a_fixed_base_that_bullets_steps_round_stands_where_it_stood(tmp_path):
    """Its quaternion's last digits go to and fro, at every step or in the first one."""
    rounded = 0
    for seed in range(4):
        client: Any = BulletClient(pybullet.DIRECT, mode="filter")
        body, _ = linkage(client, tmp_path)
        turn = np.random.default_rng(seed).normal(size=4)
        turn = (turn / np.linalg.norm(turn)).tolist()
        client.resetBasePositionAndOrientation(body, [0.1, 0.2, 0.3], turn)
        poses = {client.getBasePositionAndOrientation(body)}
        for _ in range(7):
            client.stepSimulation()
            poses.add(client.getBasePositionAndOrientation(body))
        rounded += len(poses) > 1
        from_file, kept = kept_by(client, "file", tmp_path), kept_by(client, "state", tmp_path)

        def trajectory(client: BulletClient = client, body: int = body) -> tuple[str, str]:
            before = trajectory_in_bullet(client, body, 6)
            client.resetJointState(body, 0, client.getJointState(body, 0)[0])
            return before, trajectory_in_bullet(client, body, 6)

        first, found = trajectory(), list[tuple[str, str]]()
        for given in (kept, from_file, kept, kept):
            client.restoreState(**given)
            found.append(trajectory())
        assert found[0] == found[2] == found[3] == first
        client.disconnect()
    assert rounded


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_a_state_of_a_slider_is_known_after_bodies_were_read_anew(tmp_path, mode):
    """Bullet's own constraint is left without force once a group has it."""
    client: Any = BulletClient(pybullet.DIRECT, mode=mode)
    client.setGravity(0, 0, -9.81)
    shape = client.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.05)
    body, other = (client.createMultiBody(1.0, shape, -1, [x, 0, 0]) for x in (0, 0.4))
    kind, ends = pybullet.JOINT_PRISMATIC, ([0.3, 0, 0], [-0.1, 0, 0])
    client.createConstraint(body, -1, other, -1, kind, [1, 0, 0], *ends)
    client.resetBaseVelocity(body, [0, 1, 0], [1, 2, 3])
    trajectory_in_bullet(client, body, 5)
    from_file, kept = kept_by(client, "file", tmp_path), client.saveState()
    first = trajectory_in_bullet(client, body, 10)
    for given in (from_file, {"stateId": kept}):
        client.restoreState(**given)
        found = trajectory_in_bullet(client, body, 10)
    assert found == first


@pytest.mark.filterwarnings("ignore:body 0 cannot be stepped exactly")
def test_bodies_step_in_one_order_whichever_were_read_anew(tmp_path):
    """From a file a body that is left to Bullet is tried again; steps before its own are undone."""
    client: Any = BulletClient(pybullet.DIRECT, mode="exact")
    humanoid = f"{pybullet_data.getDataPath()}/humanoid/humanoid.urdf"
    left, zero = client.loadURDF(humanoid, [0, 0, 9]), [0, 0, 0]
    client.createConstraint(left, -1, -1, -1, pybullet.JOINT_FIXED, zero, zero, [0, 0, 9])
    turn, force = [[0.1, 0, 0, 0.99]], [[50, 50, 50]]
    client.setJointMotorControlMultiDofArray(
        left, [1], pybullet.STABLE_PD_CONTROL, turn, forces=force
    )
    body, tip_at = hoppers.fill(client, tmp_path), [0, 0, -hoppers.LOWER / 2]
    client.createConstraint(body, 1, body, 3, pybullet.JOINT_POINT2POINT, zero, tip_at, tip_at)
    drive(client, body, 0, WARM)
    given, found = kept_by(client, "file", tmp_path), list[str]()
    for _ in range(3):
        client.restoreState(**given)
        found.append(drive(client, body, WARM, 20)[0])
    assert found[0] == found[1] == found[2]


def test_what_is_known_of_who_collides_is_part_of_a_state(tmp_path):
    """Of links that have met since it is not known, in a copy of those that had met it is."""
    system = slider_system(tmp_path)
    start = system.q.copy(), system.v.copy()
    apart, before = system.save(), creep(system)
    touching, after = system.save(), creep(system)
    system.restore(apart)
    assert creep(system) == before
    system.restore(touching)
    assert creep(system) == after
    for twin in (copy.deepcopy(system), pickle.loads(pickle.dumps(system))):
        twin.restore(pickle.loads(pickle.dumps(touching)))
        twin.world = slider_system(tmp_path).world
        assert creep(twin) == after
    system.set_state(*start, 0.0)
    assert creep(system) == before


def test_a_state_knows_nothing_of_bodies_of_an_earlier_client_of_its_number(tmp_path):
    """They are as many, and were looked at for contacts."""
    earlier, body = bridge(tmp_path)
    drive(earlier, body, 0, WARM)
    shape = earlier.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.1)
    bodies = [earlier.createMultiBody(1.0, shape, -1, [0, 0, z]) for z in (2, 3)]
    earlier.stepSimulation()
    earlier.removeBody(bodies[0])
    earlier.stepSimulation()
    number = earlier._client
    earlier.disconnect()
    system = hoppers.system(tmp_path)
    assert system.world.client == number
    kept = system.save()
    system.restore(kept)
    assert kept.world.bodies.places.keys() <= set(kept.world.bodies.numbers)


def test_links_that_bullet_keeps_apart_are_found_out_again_after_a_restore():
    """That a box does not collide with the floor is learnt once it clearly is inside."""
    client = native_client()
    client.setGravity(0, 0, 0)
    sizes = ([5, 5, 1], 0.0, -1.0), ([0.1] * 3, 1.0, 0.1 + JUST_APART)
    floor, box = (
        client.createMultiBody(
            mass, client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=half), -1, [0, 0, z]
        )
        for half, mass, z in sizes
    )
    client.setCollisionFilterPair(floor, box, -1, -1, 0)
    system = bb.attach(box, [], client._client, contacts=True, dt=1 / 240)
    system.set_state(system.q, np.array([0, 0, 0, 0, 0, CREEP]))
    kept, first = system.save(), trajectory(system, 30)
    system.set_state(system.q, np.array([0, 0, 0, 0, 0, -1.0]))
    trajectory(system, 5)
    assert system.q[2] < 0.09
    system.restore(kept)
    assert trajectory(system, 30) == first


def test_how_fast_others_came_nearer_is_part_of_a_state():
    """Bodies of another group are looked for as far as they may come in a step.

    Taken away and put back by a restore they were never that fast.
    """
    client = BulletClient(pybullet.DIRECT, mode="exact")
    client.setPhysicsEngineParameter(deterministicOverlappingPairs=1)
    client.setGravity(0, 0, -9.81)
    client.createMultiBody(0.0, client.createCollisionShape(pybullet.GEOM_PLANE))
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.05] * 3)
    apart = 0.1 + 3e-3  # within the margins of both, beyond what is told of those at rest
    boxes = [
        client.createMultiBody(0.5, shape, -1, [x, y, 0.0505]) for x in (0, 0.3) for y in (0, apart)
    ]
    for a, b in (boxes[::2], boxes[1::2]):
        ends = [0.15, 0, 0], [-0.15, 0, 0]
        client.createConstraint(a, -1, b, -1, pybullet.JOINT_POINT2POINT, [0] * 3, *ends)
    trajectory_in_bullet(client, boxes[0], 20)
    kept, first = client.saveState(), trajectory_in_bullet(client, boxes[0], 30)
    groups = session_of(client._client).groups
    assert len(groups) == 2
    for box in boxes[::2]:
        at, turn = client.getBasePositionAndOrientation(box)
        client.resetBasePositionAndOrientation(box, [at[0], at[1] - 1.0, at[2]], turn)
    trajectory_in_bullet(client, boxes[0], 3)
    client.restoreState(kept)
    assert trajectory_in_bullet(client, boxes[0], 30) == first
    assert len(groups) == 2


def test_motors_and_limits_of_force_are_the_last_ones_that_were_asked_for(tmp_path):
    """Bullet's states hold neither: a program that changes them goes on with what it has set."""
    client, body = bridge(tmp_path)
    (loop,) = client.getBridgeLoops()
    client.changeConstraint(loop, maxForce=500)
    drive(client, body, 0, WARM)
    client.changeConstraint(loop, maxForce=1)
    first, _ = drive(client, body, WARM, 30)
    other, again = bridge(tmp_path)
    (loop,) = other.getBridgeLoops()
    other.changeConstraint(loop, maxForce=500)
    drive(other, again, 0, WARM)
    kept = other.saveState()
    strong, _ = drive(other, again, WARM, 30)
    other.restoreState(kept)
    other.changeConstraint(loop, maxForce=1)
    other.restoreState(kept)
    assert drive(other, again, WARM, 30)[0] == first != strong


def test_constraints_that_have_changed_are_not_put_back(tmp_path):
    """As in Bullet; the bodies are read again, every time alike."""
    client, body = bridge(tmp_path)
    drive(client, body, 0, WARM)
    kept = client.saveState()
    drive(client, body, WARM, 10)
    client.changeDynamics(body, -1, mass=3.0)
    ends = set()
    for _ in range(3):
        client.restoreState(kept)
        ends.add(drive(client, body, WARM, 60)[0])
        assert client.getDynamicsInfo(body, -1)[0] == 3.0
    assert len(ends) == 1


@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_moved_frames_go_on_where_they_were(tmp_path, mode):
    """Also where bodies were read anew since, as those are that exact mode has left to Bullet."""
    client, body = bridge(tmp_path)
    client.setBridgeMode(mode)
    axis = [0, 0, 1]
    pin = client.createConstraint(
        body, -1, -1, -1, pybullet.JOINT_POINT2POINT, axis, [0, 0, 0], [0, 0, 0.5]
    )

    def pull(first):
        found = hashlib.sha256()
        for n in range(first, first + 40):
            client.changeConstraint(pin, [1e-3 * n, 0, 0.5])
            found.update(drive(client, body, n, 1)[0].encode())
        return found.hexdigest()

    pull(0)
    kept, first = client.saveState(), pull(40)
    client.changeConstraint(pin, [0.039, 0, 0.5])
    ends = set()
    for turn in range(4):
        if turn % 2:
            client.setBridgeMode(mode)
        client.restoreState(kept)
        ends.add(pull(40))
        client.changeConstraint(pin, [0.039, 0, 0.5])
    assert ends == {first}


@pytest.mark.parametrize("limit", [None, 800.0])
@pytest.mark.parametrize("on_base", [False, True], ids=["frame", "base"])
@pytest.mark.parametrize("mode", ["filter", "exact"])
def test_episodes_that_lead_a_pin_are_the_same_again(mode, on_base, limit):
    """The pin is put back by its first move alone; bodies are read anew at the first state."""
    client, load, pin, lead = led_pendulum(mode, on_base)
    if limit is not None:
        client.changeConstraint(pin, maxForce=limit)

    def episode(first, kept=()):
        states, saved = list[object](), list[int]()
        for n in range(first, 30):
            if n in kept:
                saved.append(client.saveState())
            lead([n / 240, 0, 2])
            client.stepSimulation()
            states.append(
                (client.getBasePositionAndOrientation(load), client.getBaseVelocity(load))
            )
        return states, saved

    whole, (begin, later) = episode(0, kept=(0, 10))
    for state, first in ((later, 10), (begin, 0), (later, 10)):
        client.restoreState(state)
        assert episode(first)[0] == whole[first:]


def test_resetting_the_simulation_forgets_everything(tmp_path):
    client, body = bridge(tmp_path)
    first, _ = drive(client, body, 0, 200)
    client.saveState()
    client.resetSimulation()
    body = hoppers.fill(client, tmp_path)
    foot = [0, 0, -hoppers.LOWER / 2]
    client.createConstraint(body, 1, body, 3, pybullet.JOINT_POINT2POINT, [0, 0, 0], foot, foot)
    assert drive(client, body, 0, 200)[0] == first


# states of systems


def test_restores_of_a_system_go_on_as_before(tmp_path):
    system = hoppers.system(tmp_path)
    advance(system, 0, WARM)
    kept = system.save()
    first = advance(system, WARM, STEPS)
    assert any(contact.force[2] > 0.0 for contact in system.contacts())
    for _ in range(RESTORES):
        system.restore(kept)
        assert system.save() == kept
        assert advance(system, WARM, STEPS) == first


def test_saving_changes_nothing(tmp_path):
    system, other = hoppers.system(tmp_path), hoppers.system(tmp_path)
    for n in range(20):
        advance(system, 10 * n, 10)
        system.save()
    advance(other, 0, 200)
    assert system.save() == other.save()


def test_pickles_and_copies_go_on_as_before(tmp_path):
    system = hoppers.system(tmp_path)
    advance(system, 0, WARM)
    (tmp_path / "system.pickle").write_bytes(pickle.dumps(system))
    twins = [copy.deepcopy(system), copy.copy(system)]
    first = advance(system, WARM, STEPS)
    assert elsewhere("pickle", tmp_path, seed=3) == first
    for twin in twins:
        assert twin.world is None
        with pytest.raises(WorldError, match="set system.world"):
            twin.step()
        client, body = hoppers.client_of(tmp_path)
        twin.world = read_bullet(body, client)
        assert advance(twin, WARM, STEPS) == first


def test_other_processes_and_other_histories_give_the_same_bits(tmp_path):
    """Whatever ran before: nothing of it is left in the process, and no order of hashes counts."""
    kinds = "bridge", "system"
    first = [hoppers.main(what, tmp_path) for what in kinds]
    noise = bb.System(random_mechanism(np.random.default_rng(1), [REVOLUTE] * 9), dt=1e-3)
    noise.rollout(50)
    junk = [np.full(k, np.nan) for k in range(1, 2000, 7)]
    del junk[::2]  # holes in the heap with other contents
    assert [hoppers.main(what, tmp_path) for what in reversed(kinds)] == first[::-1]
    assert elsewhere(",".join(kinds), tmp_path, seed=1).split(",") == first


def plain(**options):
    """A made-up way to step the hopper: without a floor, falling freely."""
    return lambda folder: hoppers.system(folder, contacts=False, **options)


def by_links(_folder):
    """Twenty-four four-bars side by side, in link coordinates."""
    system = bb.System(*row(24), solver="sparse")
    system.assemble()
    assert isinstance(system._active.solver.stepper, SparseStepper)
    return system


def by_islands(_folder):
    """Systems that nothing joins, driven, with springs and a beam."""
    system = bb.System(*several(), solver="islands")
    system.assemble({"crank0": 1.0, "crank1": 0.7}, {"crank0": 1.0, "crank1": 2.0})
    assert isinstance(system._active.solver.stepper, IslandStepper)
    return system


WAYS = {
    "euler": plain(limits=False),
    "limits": plain(),
    "clarabel": plain(impulse_solver="clarabel"),
    **{
        name: plain(limits=False, integrator=name)
        for name in ("verlet", "rk4", "dop853", "radau", "charts", "charts_trapezoidal", "heun")
    },
    "elimination": plain(limits=False, formulation="elimination"),
    "adaptive": plain(limits=False, formulation="multipliers", integrator="dop853"),
    "links": by_links,
    "islands": by_islands,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_step_goes_on_as_before(tmp_path, way):
    system = WAYS[way](tmp_path)
    trajectory(system, 20)
    kept, data = system.save(), pickle.dumps(system.save())
    first = trajectory(system, 40)
    system.restore(kept)
    assert trajectory(system, 40) == first
    with pytest.raises(ValueError, match="read-only"):
        kept.q[0] = 1.0
    fresh = WAYS[way](tmp_path)
    fresh.restore(pickle.loads(data))
    assert fresh.save() == kept
    assert trajectory(fresh, 40) == first
    twin = copy.deepcopy(fresh)
    trajectory(fresh, 5)
    twin.restore(kept)
    assert trajectory(twin, 40) == first


@pytest.mark.parametrize("way", WAYS)
def test_a_state_that_is_set_has_no_past(tmp_path, way):
    """As that of a new system, assembled at the same pose."""
    used, new = WAYS[way](tmp_path), WAYS[way](tmp_path)
    if new._active.decision is None:
        used.assemble()
        new.assemble()
    q, v, t = used.q, used.v, used.t
    trajectory(used, 30)
    for system in (used, new):
        system.set_state(q, v, t)
    assert trajectory(used, 40) == trajectory(new, 40)


def test_connected_constraints_are_put_back(tmp_path):
    system = hoppers.system(tmp_path, contacts=False, limits=False)
    trajectory(system, 5)
    free, grip = system.save(), bb.LoopJoint("grip", bb.JointModel.WELD, tip("left"), tip("right"))
    system.disconnect("foot")
    system.connect(grip, as_is=True)
    held = system.save()
    first = trajectory(system, 30)
    system.restore(free)
    assert [c.name for c in system.constraints] == ["foot"]
    foot = trajectory(system, 30)
    system.restore(held)
    assert [c.name for c in system.constraints] == ["grip"]
    assert trajectory(system, 30) == first
    other = hoppers.system(tmp_path, contacts=False, limits=False)
    other.restore(pickle.loads(pickle.dumps(held)))
    assert trajectory(other, 30) == first
    other.restore(free)
    assert trajectory(other, 30) == foot


@pytest.mark.parametrize("slips, velocity", [(False, 2.0), (True, 1.75), (True, 2.0), (True, 2.2)])
def test_a_state_is_saved_between_a_change_of_constraints_and_a_step(slips, velocity):
    """What the last step with inequalities left goes over to one of other constraints."""
    chain = planar_chain([0.5, 0.4, 0.3], [1.0, 0.8, 0.5])
    geared = bb.Coupling("geared", {"j0": 1.0, "j1": -1.0})
    rubbing = [bb.Coupling("rubbing", {"j1": 1.0, "j2": -1.0}, max_force=0.5)]
    system = bb.System(chain, [geared, *rubbing[:slips]], dt=1e-3)
    system.motors.set("j0", velocity=velocity, force=3.0)
    for change in (lambda: system.disconnect("geared"), lambda: system.connect(geared, as_is=True)):
        for _ in range(3):
            system.step()
        change()
        saved = system.save()
        copied = pickle.loads(pickle.dumps(system))
        end = trajectory(system, 20)
        assert trajectory(copied, 20) == end
        for _ in range(2):
            system.restore(saved)
            assert trajectory(system, 20) == end


def test_a_set_that_comes_back_was_decided_where_it_was(tmp_path):
    """What is remembered of constraints that come and go is part of the state."""
    ends = set()
    for steps in (0, 20):
        system = hoppers.system(tmp_path, contacts=False, limits=False)
        trajectory(system, 5)
        kept = system.save()
        loop = system.disconnect("foot")
        system.connect(loop)
        trajectory(system, steps)
        system.restore(kept)
        system.disconnect("foot")
        system.connect(loop)
        ends.add(trajectory(system, 30))
    assert len(ends) == 1


def test_settings_are_part_of_the_state(tmp_path):
    system = hoppers.system(tmp_path, contacts=False)
    advance(system, 0, 10)
    system.dt, system.gravity, system.tau[3] = 1e-3, (1, 2, 3), 0.5
    kept, first = system.save(), trajectory(system, 20)
    system.dt, system.gravity, system.tau[3] = 2e-3, (0, 0, 0), 0.0
    system.motors.off("left_hip")
    system.restore(kept)
    assert (system.dt, *system.gravity, system.tau[3]) == (1e-3, 1, 2, 3, 0.5)
    assert trajectory(system, 20) == first


def test_functions_that_cannot_be_pickled_are_named(tmp_path):
    wave = Motion(z=lambda t: (0.0, 0.0, 0.0))
    driven = bb.LoopJoint("foot", bb.JointModel.BALL, LOOP.a, LOOP.b, motion=wave)
    options = {"contacts": False, "limits": False}
    system = hoppers.system(tmp_path, [driven], **options)
    trajectory(system, 5)
    assert trajectory(copy.deepcopy(system), 5) == trajectory(system, 5)
    with pytest.raises(ModelError, match=r"constraint 'foot' cannot be pickled.*lambda"):
        pickle.dumps(system)
    kept, first = pickle.dumps(system.save()), trajectory(system, 20)
    again = hoppers.system(tmp_path, [driven], **options)
    again.restore(pickle.loads(kept))
    assert trajectory(again, 20) == first
    system.disconnect("foot")
    assert trajectory(pickle.loads(pickle.dumps(system)), 5) == trajectory(system, 5)
    assert copy.deepcopy(system).connect(driven).constraint is driven
    without = hoppers.system(tmp_path, [], **options)
    with pytest.raises(ModelError, match="'foot' connected, which could not be pickled"):
        without.restore(pickle.loads(kept))
    pushed = hoppers.system(tmp_path, forces={"left_hip": lambda t: t}, **options)
    with pytest.raises(ModelError, match="force of 'left_hip' cannot be pickled"):
        pickle.dumps(pushed)

    class Local(PointOnSphere):
        """A user's constraint that no other process knows."""

    user = bb.System(
        random_mechanism(np.random.default_rng(0), [REVOLUTE] * 3),
        [Local(bb.Frame("link3", (0.1, 0, 0)), 0.2)],
    )
    with pytest.raises(ModelError, match="constraint 'sphere' cannot be pickled"):
        pickle.dumps(user)


def test_users_constraints_and_signals_of_modules_are_pickled():
    mechanism = random_mechanism(np.random.default_rng(0), [REVOLUTE] * 4)
    probe = bb.System(mechanism)
    frame = bb.Frame("link4", (0.1, 0, 0))
    radius = float(np.linalg.norm(probe.kinematics().point(frame).p_W))
    forces = {next(iter(mechanism.joints)): Sine(0.1, 2.0)}
    system = bb.System(mechanism, [PointOnSphere(frame, radius)], dt=1e-3, forces=forces)
    trajectory(system, 10)
    twin = pickle.loads(pickle.dumps(system))
    assert trajectory(twin, 20) == trajectory(system, 20)


def test_states_of_other_systems_are_refused(tmp_path):
    system = hoppers.system(tmp_path, limits=False, contacts=False)
    trajectory(system, 3)
    kept = system.save()
    with pytest.raises(ModelError, match=r"another mechanism.*left_hip"):
        bb.System(random_mechanism(np.random.default_rng(0), [REVOLUTE])).restore(kept)
    with pytest.raises(ModelError, match="integrator=None.*integrator='rk4'"):
        hoppers.system(tmp_path, limits=False, contacts=False, integrator="rk4").restore(kept)
    with pytest.raises(ModelError, match="limits=False"):
        hoppers.system(tmp_path, contacts=False).restore(kept)
    weak = bb.LoopJoint("foot", bb.JointModel.BALL, LOOP.a, LOOP.b, max_force=9.0)
    soft = hoppers.system(tmp_path, [weak], limits=False, contacts=False)
    before = soft.save()
    with pytest.raises(ModelError, match=r"forces within bounds \[\], this system has \['foot'\]"):
        soft.restore(kept)
    assert soft.save() == before
    client, body = hoppers.client_of(tmp_path)
    pybullet.changeDynamics(body, -1, mass=7.0, physicsClientId=client)
    heavy = bb.attach(body, [LOOP], client)
    with pytest.raises(ModelError, match="other masses"):
        heavy.restore(kept)


def test_worlds_of_other_bodies_are_refused(tmp_path):
    system = hoppers.system(tmp_path)
    advance(system, 0, 5)
    twin = copy.copy(system)
    client = pybullet.connect(pybullet.DIRECT)
    floor = pybullet.loadURDF(str(tmp_path / "floor.urdf"), physicsClientId=client)
    with pytest.raises(ModelError, match="0 positions and 0 rates"):
        twin.world = read_bullet(floor, client)
    body = pybullet.loadURDF(
        str(tmp_path / "hopper.urdf"), flags=hoppers.FLAGS, physicsClientId=client
    )
    more = pybullet.loadURDF(str(tmp_path / "floor.urdf"), physicsClientId=client)
    assert more != floor
    with pytest.raises(WorldError, match="other bodies"):
        twin.world = read_bullet(body, client)
    assert twin.world is None


def test_how_many_poses_are_sampled_is_no_matter_of_time():
    """Bundled mechanisms take all; the largest as many as two directions need."""
    assert number_of_poses(50, 40) == number_of_poses(1, 1) == MOST_POSES
    assert number_of_poses(50, 0) == 1  # no rows, nothing to decide
    assert number_of_poses(5000, 4900) == FEWEST_POSES
    counts = [number_of_poses(n, n) for n in (100, 300, 400, 600)]
    assert counts == sorted(counts, reverse=True) and len(set(counts)) > 1


@pytest.mark.parametrize("again", [copy.deepcopy, pickle.dumps])
def test_what_is_in_bullet_is_not_copied(again):
    with bb.load("four_bar", "new") as model:
        with pytest.raises(WorldError, match=r"in Bullet are not copied .* pickle the system"):
            again(model)
        assert again(model.system)
        with pytest.raises(ModelError, match="copy or pickle that"):
            again(model.system.motors)
