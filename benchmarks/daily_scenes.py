"""What people do every day with ``createConstraint``: grasp, lift, hand over, open; three ways.

Each scene is a program as any user would write it, run on Bullet alone, in filter mode and in exact
mode. ``python benchmarks/daily_scenes.py [names]`` prints what came of each.
"""

import argparse
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pybullet
import pybullet_data
from rich.console import Console
from rich.table import Table
from scipy.optimize import root

import bulletbridge as bb
from bulletbridge.drop_in.settings import Mode
from bulletbridge.errors import BulletBridgeError
from bulletbridge.numerics.records import Array

DATA = pybullet_data.getDataPath()
IIWA = f"{DATA}/kuka_iiwa/model.urdf"
MODES: tuple[Mode, ...] = ("native", "filter", "exact")
DT = 1.0 / 240.0
READY = (0.0, 0.6, 0.0, -1.5, 0.0, 1.04, 0.0)
"""Joint angles [rad] of an iiwa whose flange looks down."""


@dataclass
class Outcome:
    """What came of a scene.

    Attributes:
        figures: Named numbers that a person would look at.
        gap: Largest distance between the points that a constraint should hold together [m].
        rate: Largest joint rate [rad/s].
        step_us: Median processor time of a step [us], which a busy machine does not change much.
        error: Text of the error that ended it; empty if it ran to its end.
    """

    figures: dict[str, float] = field(default_factory=lambda: {})
    gap: float = 0.0
    rate: float = 0.0
    step_us: float = 0.0
    error: str = ""


class Stage:
    """A world in a mode, its constraints under observation.

    Args:
        mode: One of ``MODES``.
    """

    def __init__(self, mode: Mode) -> None:
        self.p: Any = bb.BulletClient(pybullet.DIRECT, mode=mode)
        self.mode, self.outcome = mode, Outcome()
        self.p.setGravity(0.0, 0.0, -9.81)
        self.p.setTimeStep(DT)
        self._times: list[float] = []
        self._held: list[int] = []
        self._arms: list[int] = []
        self.limit = 10**9
        """Steps after which the scene stands still, for those who want to look."""

    def arm(self, x: float, yaw: float, angles: tuple[float, ...] = READY) -> int:
        """Load an iiwa that stands at x."""
        p = self.p
        turn = p.getQuaternionFromEuler((0.0, 0.0, yaw))
        arm: int = p.loadURDF(IIWA, (x, 0.0, 0.0), turn, useFixedBase=True)
        for joint, angle in enumerate(angles):
            p.resetJointState(arm, joint, angle)
        self.watch_arms([arm])
        return arm

    def watch_arms(self, arms: list[int]) -> None:
        """Look at the joint rates of arms."""
        self._arms += arms

    def box(self, half: tuple[float, float, float], mass: float, place: Any) -> int:
        """A box."""
        shape = self.p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=half)
        body: int = self.p.createMultiBody(mass, shape, -1, place)
        return body

    def drive(self, arm: int, angles: Any, force: float) -> None:
        """Position control of all joints of an arm."""
        for joint, angle in enumerate(angles):
            self.p.setJointMotorControl2(
                arm, joint, pybullet.POSITION_CONTROL, targetPosition=angle, force=force
            )

    def fix(self, arm: int, link: int, body: int) -> int:
        """FIXED between a link and a body as they are now."""
        p = self.p
        if link < 0:
            place, turn = p.getBasePositionAndOrientation(arm)
        else:
            place, turn = p.getLinkState(arm, link, computeForwardKinematics=True)[:2]
        other = p.getBasePositionAndOrientation(body)
        inverse = p.invertTransform(place, turn)
        at, how = p.multiplyTransforms(*inverse, *other)
        number: int = p.createConstraint(
            arm, link, body, -1, pybullet.JOINT_FIXED, (0, 0, 0), at, (0, 0, 0), how
        )
        self._held.append(number)
        return number

    def watch(self, number: int) -> int:
        """Count the gap of a constraint."""
        self._held.append(number)
        return number

    def release(self, number: int) -> None:
        """Remove a constraint."""
        self.p.removeConstraint(number)
        self._held.remove(number)

    def steps(self, count: int, each: Callable[[int], None] | None = None) -> None:
        """Step, and look."""
        for k in range(min(count, self.limit)):
            if each is not None:
                each(k)
            begun = time.process_time()
            self.p.stepSimulation()
            self._times.append(time.process_time() - begun)
            self._look()

    def end(self) -> Outcome:
        """What came of it; the world is closed."""
        self.outcome.step_us = 1e6 * float(np.median(self._times)) if self._times else 0.0
        self.p.disconnect()
        return self.outcome

    def _look(self) -> None:
        found = self.outcome
        for arm in self._arms:
            rates = [abs(s[1]) for s in self.p.getJointStates(arm, range(7))]
            found.rate = max(found.rate, *rates)
        for number in self._held:
            found.gap = max(found.gap, gap_of(self.p, number))


def pivot(p: Any, body: int, link: int, point: Any) -> np.ndarray:
    """A point (3,) of a link's inertial frame in the world."""
    if body < 0:
        return np.asarray(point)
    if link < 0:
        place, turn = p.getBasePositionAndOrientation(body)
    else:
        place, turn = p.getLinkState(body, link, computeForwardKinematics=True)[:2]
    return np.asarray(p.multiplyTransforms(place, turn, point, (0, 0, 0, 1))[0])


def gap_of(p: Any, number: int) -> float:
    """Distance of a constraint's pivots [m]."""
    info = p.getConstraintInfo(number)
    parent, child = pivot(p, info[0], info[1], info[6]), pivot(p, info[2], info[3], info[7])
    return float(np.linalg.norm(parent - child))


def grasp(s: Stage) -> None:
    """One arm touches a cube, FIXED, lifts it."""
    p = s.p
    p.loadURDF(f"{DATA}/plane.urdf")
    arm = s.arm(0.0, 0.0)
    flange = np.asarray(p.getLinkState(arm, 6)[0])
    top = contact_height(p, arm, flange)
    cube = s.box((0.05, 0.05, 0.05), 1.0, (flange[0], flange[1], top - 0.0498))
    s.box((0.1, 0.1, 0.01), 0.0, (flange[0], flange[1], top - 0.1097))
    s.drive(arm, READY, 300.0)
    s.steps(5)
    s.outcome.figures["contacts"] = len(p.getContactPoints(arm, cube))
    s.fix(arm, 6, cube)
    lifted = np.array(READY)
    lifted[1] -= 0.3

    def lift(k: int) -> None:
        s.drive(arm, READY + min(1.0, k / 240.0) * (lifted - READY), 300.0)

    s.steps(480, lift)
    s.outcome.figures["z"] = p.getBasePositionAndOrientation(cube)[0][2]


def contact_height(p: Any, arm: int, flange: np.ndarray) -> float:
    """Height at which something below the flange touches it, by a probe that is removed again."""
    shape = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.05, 0.05, 0.05))
    probe = p.createMultiBody(0.0, shape, -1, (flange[0], flange[1], 0.0))
    low, high = 0.0, float(flange[2])
    for _ in range(40):
        middle = 0.5 * (low + high)
        p.resetBasePositionAndOrientation(probe, (flange[0], flange[1], middle), (0, 0, 0, 1))
        near = p.getClosestPoints(arm, probe, 0.05)
        if near and min(point[8] for point in near) < 0.0:
            high = middle
        else:
            low = middle
    p.removeBody(probe)
    return high + 0.05


def two_arms(s: Stage, collide: bool = True) -> None:
    """Two arms face to face lift a box of 2 kg between them."""
    p = s.p
    a, b = s.arm(-1.0265, 0.0, SIDE), s.arm(1.0265, math.pi, SIDE)
    left, right = (np.asarray(p.getLinkState(arm, 6)[0]) for arm in (a, b))
    box = s.box((0.15, 0.05, 0.05), 2.0, 0.5 * (left + right))
    if not collide:
        for arm in (a, b):
            for link in range(-1, 7):
                p.setCollisionFilterPair(arm, box, link, -1, 0)
    s.outcome.figures["contacts"] = len(p.getClosestPoints(a, box, 0.0))
    for arm in (a, b):
        s.fix(arm, 6, box)
        s.drive(arm, SIDE, 150.0)

    def lift(k: int) -> None:
        for arm in (a, b):
            s.drive(arm, levelled(0.25 * min(1.0, k / 240.0)), 150.0)

    s.steps(480, lift)
    s.outcome.figures["z"] = p.getBasePositionAndOrientation(box)[0][2]
    torques = [abs(t[3]) for arm in (a, b) for t in p.getJointStates(arm, range(7))]
    s.outcome.figures["torque"] = max(torques)


UPPER, FORE = 0.42, 0.40
"""Lengths of an iiwa's upper arm and forearm [m]."""
AHEAD, HIGH = 0.75, 0.05
"""Where the wrist is, from the shoulder [m]."""


def levelled(rise: float) -> tuple[float, ...]:
    """Joint angles [rad] that hold the flange level, higher than at first [m]."""
    x, z = AHEAD, HIGH + rise
    reach = math.hypot(x, z)
    tilt = math.atan2(x, z)
    first = math.acos((UPPER**2 + reach**2 - FORE**2) / (2.0 * UPPER * reach))
    inner = math.acos((UPPER**2 + FORE**2 - reach**2) / (2.0 * UPPER * FORE))
    shoulder, elbow = tilt - first, math.pi - inner
    return 0.0, shoulder, 0.0, -elbow, 0.0, 0.5 * math.pi - shoulder - elbow, 0.0


SIDE = levelled(0.0)
"""Flange level, looking ahead."""


def two_arms_apart(s: Stage) -> None:
    """The same without collision between arms and box."""
    two_arms(s, collide=False)


def hold_level(s: Stage, rise: float = 0.0) -> tuple[int, int, int, int]:
    """Two arms face to face, a box of 2 kg between them that the first one holds."""
    a, b = s.arm(-1.0265, 0.0, SIDE), s.arm(1.0265, math.pi, SIDE)
    left, right = (np.asarray(s.p.getLinkState(arm, 6)[0]) for arm in (a, b))
    box = s.box((0.15, 0.05, 0.05), 2.0, 0.5 * (left + right))
    for arm in (a, b):
        s.drive(arm, levelled(rise), 300.0)
    return a, b, box, s.fix(a, 6, box)


def hand_over(s: Stage) -> None:
    """One arm gives a box to another, while both touch it, and draws back."""
    a, b, box, held = hold_level(s)
    s.steps(120)
    before = np.array(s.p.getBasePositionAndOrientation(box)[0])
    s.fix(b, 6, box)
    s.steps(60)
    s.release(held)
    for joint, angle in enumerate(SIDE):
        back = angle - 0.3 * (joint == 3)  # bends its elbow
        s.p.setJointMotorControl2(
            a, joint, pybullet.POSITION_CONTROL, targetPosition=back, force=300
        )
    s.steps(240)
    after = np.array(s.p.getBasePositionAndOrientation(box)[0])
    s.outcome.figures["z"] = after[2]
    s.outcome.figures["moved"] = float(np.linalg.norm(after - before))


def tray(s: Stage) -> None:
    """Two arms lift a tray, tilt it by 0.15 rad and turn it by 0.2 rad."""
    p = s.p
    a, b, box, _ = hold_level(s)
    s.fix(b, 6, box)
    start = p.getBasePositionAndOrientation(box)
    hands = [
        p.multiplyTransforms(*p.invertTransform(*start), *p.getLinkState(arm, 6)[4:6])
        for arm in (a, b)
    ]
    z0 = start[0][2]

    def carry(k: int) -> None:
        t = min(1.0, k / 360.0)
        ease = t * t * (3.0 - 2.0 * t)
        turn = p.getQuaternionFromEuler((0.15 * ease, 0.0, 0.2 * ease))
        for arm, hand in zip((a, b), hands, strict=True):
            goal = p.multiplyTransforms((0.0, 0.0, z0 + 0.15 * ease), turn, *hand)
            angles = p.calculateInverseKinematics(
                arm, 6, *goal, maxNumIterations=100, residualThreshold=1e-6
            )
            s.drive(arm, angles, 300.0)

    s.steps(600, carry)
    place, turn = p.getBasePositionAndOrientation(box)
    tilt, _, yaw = p.getEulerFromQuaternion(turn)
    s.outcome.figures.update(z=place[2] - z0, tilt=tilt, yaw=yaw)


def follow(s: Stage, arm: int, path: Callable[[float], Any], seconds: float) -> None:
    """Let the flange of an arm follow a path of points by inverse kinematics."""

    def act(k: int) -> None:
        goal = path(min(1.0, k * DT / seconds))
        angles = s.p.calculateInverseKinematics(
            arm, 6, goal, maxNumIterations=100, residualThreshold=1e-6
        )
        s.drive(arm, angles, 300.0)

    s.steps(round(1.2 * seconds / DT), act)


def apart(s: Stage, arm: int, body: int) -> None:
    """Let an arm and a body not collide."""
    for link in range(-1, s.p.getNumJoints(arm)):
        s.p.setCollisionFilterPair(arm, body, link, -1, 0)


def drawer(s: Stage) -> None:
    """An arm grasps a drawer (PRISMATIC to the world) and opens it by 0.2 m."""
    p = s.p
    arm = s.arm(0.0, 0.0)
    tip = np.asarray(p.getLinkState(arm, 6, computeForwardKinematics=True)[4])
    box = s.box((0.1, 0.15, 0.08), 3.0, tip + (0.1, 0.0, 0.0))
    apart(s, arm, box)
    place, turn = p.getBasePositionAndOrientation(box)
    slide = p.createConstraint(
        box, -1, -1, -1, pybullet.JOINT_PRISMATIC, (1, 0, 0), (0, 0, 0), place
    )
    grip = p.createConstraint(
        arm,
        6,
        box,
        -1,
        pybullet.JOINT_POINT2POINT,
        (0, 0, 0),
        p.multiplyTransforms(
            *p.invertTransform(*p.getLinkState(arm, 6)[:2]), *(tip.tolist(), (0, 0, 0, 1))
        )[0],
        p.multiplyTransforms(*p.invertTransform(place, turn), *(tip.tolist(), (0, 0, 0, 1)))[0],
    )
    s.watch(grip)
    follow(s, arm, lambda t: tip - (0.2 * t, 0.0, 0.0), 2.0)
    now, turned = p.getBasePositionAndOrientation(box)
    s.outcome.figures.update(
        opened=place[0] - now[0],
        aside=float(np.hypot(now[1] - place[1], now[2] - place[2])),
        turned=2.0 * float(np.linalg.norm(turned[:3])),
    )
    assert slide >= 0


def door(s: Stage) -> None:
    """An arm opens a door by 0.4 rad; its hinge is REVOLUTE to the world, which Bullet refuses."""
    p = s.p
    arm = s.arm(0.0, 0.0)
    tip = np.asarray(p.getLinkState(arm, 6, computeForwardKinematics=True)[4])
    wide, hinge = 0.5, tip + (0.0, 0.5, 0.0)
    leaf = s.box((0.02, wide / 2, 0.3), 4.0, tip + (0.0, wide / 2, 0.0))
    apart(s, arm, leaf)
    p.createConstraint(
        leaf,
        -1,
        -1,
        -1,
        pybullet.JOINT_REVOLUTE,
        (0, 0, 1),
        (0.0, wide / 2, 0.0),
        hinge.tolist(),
    )
    grip = p.createConstraint(
        arm,
        6,
        leaf,
        -1,
        pybullet.JOINT_POINT2POINT,
        (0, 0, 0),
        p.multiplyTransforms(
            *p.invertTransform(*p.getLinkState(arm, 6)[:2]), *(tip.tolist(), (0, 0, 0, 1))
        )[0],
        (0.0, -wide / 2, 0.0),
    )
    s.watch(grip)

    def arc(t: float) -> Any:
        angle = 0.4 * t
        return hinge + (-wide * math.sin(angle), -wide * math.cos(angle), 0.0)

    follow(s, arm, arc, 2.0)
    place, turn = p.getBasePositionAndOrientation(leaf)
    edge = np.asarray(p.multiplyTransforms(place, turn, (0, wide / 2, 0), (0, 0, 0, 1))[0])
    s.outcome.figures["angle"] = -p.getEulerFromQuaternion(turn)[2]
    s.outcome.figures["hinge"] = float(np.linalg.norm(edge - hinge))


def drag(s: Stage) -> None:
    """A block on the floor is dragged by a corner along a circle, by a point moved each step."""
    p = s.p
    p.loadURDF(f"{DATA}/plane.urdf")
    block = s.box((0.1, 0.05, 0.05), 2.0, (0.0, 0.0, 0.05))
    pull = p.createConstraint(
        block, -1, -1, -1, pybullet.JOINT_POINT2POINT, (0, 0, 0), (0.1, 0.0, 0.0), (0.1, 0, 0.05)
    )
    s.watch(pull)

    def move(k: int) -> None:
        angle = math.pi * min(1.0, k / 480.0)
        p.changeConstraint(pull, (0.1 + 0.3 * math.sin(angle), 0.3 - 0.3 * math.cos(angle), 0.05))

    s.steps(600, move)
    place = p.getBasePositionAndOrientation(block)[0]
    s.outcome.figures.update(x=place[0], y=place[1], z=place[2])


def platform(s: Stage) -> None:
    """A plate without mass that is moved each step; a lamp hangs on it by a point."""
    p = s.p
    plate, lamp = (
        s.box((0.2, 0.2, 0.02), 0.0, (0, 0, 2)),
        s.box((0.05, 0.05, 0.05), 1.0, (0, 0, 1.5)),
    )
    s.watch(
        p.createConstraint(
            plate, -1, lamp, -1, pybullet.JOINT_POINT2POINT, (0, 0, 0), (0, 0, 0), (0, 0, 0.5)
        )
    )

    def move(k: int) -> None:
        way = 0.5 * (1.0 - math.cos(math.pi * min(1.0, k / 480.0)))
        p.resetBasePositionAndOrientation(plate, (way, 0, 2), (0, 0, 0, 1))

    s.steps(600, move)
    place = p.getBasePositionAndOrientation(lamp)[0]
    s.outcome.figures.update(x=place[0], z=place[2])


def panda(s: Stage) -> None:
    """Panda's two fingers, joined by a gear, close on a cube; the arm lifts it by friction."""
    p = s.p
    arm = p.loadURDF(f"{DATA}/franka_panda/panda.urdf", useFixedBase=True)
    angles = (0.0, 0.3, 0.0, -2.1, 0.0, 2.4, 0.785, 0.04, 0.04)
    joints = (0, 1, 2, 3, 4, 5, 6, 9, 10)
    for joint, angle in zip(joints, angles, strict=True):
        p.resetJointState(arm, joint, angle)
    gear = p.createConstraint(arm, 9, arm, 10, pybullet.JOINT_GEAR, (1, 0, 0), (0, 0, 0), (0, 0, 0))
    p.changeConstraint(gear, gearRatio=-1, erp=0.1, maxForce=50)
    s.watch_arms([arm])
    tip = np.asarray(p.getLinkState(arm, 11, computeForwardKinematics=True)[4])
    cube = s.box((0.02, 0.02, 0.02), 0.1, tip)
    p.changeDynamics(cube, -1, lateralFriction=1.0)
    s.box((0.1, 0.1, 0.01), 0.0, tip - (0.0, 0.0, 0.0301))
    error = 0.0

    def act(k: int) -> None:
        nonlocal error
        up = 0.25 * min(1.0, max(0.0, (k - 120) / 240.0))
        for joint, angle in zip(joints[:7], angles[:7], strict=True):
            goal = angle - up * (joint == 1)
            p.setJointMotorControl2(
                arm, joint, pybullet.POSITION_CONTROL, targetPosition=goal, force=5 * 240.0
            )
        for joint in (9, 10):
            p.setJointMotorControl2(
                arm, joint, pybullet.POSITION_CONTROL, targetPosition=0.0, force=10.0
            )
        one, two = (p.getJointState(arm, joint)[0] for joint in (9, 10))
        error = max(error, abs(one - two))

    s.steps(480, act)
    lifted = p.getBasePositionAndOrientation(cube)[0][2] - tip[2]
    s.outcome.figures.update(lifted=lifted, fingers=error)


CAR_GEARS = (
    (9, 11, 1.0, -1),
    (10, 13, -1.0, -1),
    (9, 13, -1.0, -1),
    (16, 18, 1.0, -1),
    (16, 19, -1.0, -1),
    (17, 19, -1.0, -1),
    (1, 18, -1.0, 15),
    (3, 19, -1.0, 15),
)
"""Joints, ratio and auxiliary joint of the race car's differential, as its class makes them."""


def car(s: Stage) -> None:
    """The race car drives a bend on its differential gears."""
    p = s.p
    p.loadURDF(f"{DATA}/plane.urdf")
    body = p.loadURDF(f"{DATA}/racecar/racecar_differential.urdf", (0, 0, 0.2))
    for wheel in range(p.getNumJoints(body)):
        p.setJointMotorControl2(body, wheel, pybullet.VELOCITY_CONTROL, targetVelocity=0, force=0)
    for first, second, ratio, auxiliary in CAR_GEARS:
        gear = p.createConstraint(
            body, first, body, second, pybullet.JOINT_GEAR, (0, 1, 0), (0, 0, 0), (0, 0, 0)
        )
        more = {} if auxiliary < 0 else {"gearAuxLink": auxiliary}
        p.changeConstraint(gear, gearRatio=ratio, maxForce=10000, **more)
    worst, astray = 0.0, 0.0

    def act(k: int) -> None:
        nonlocal worst, astray
        for wheel in (8, 15):
            p.setJointMotorControl2(
                body, wheel, pybullet.VELOCITY_CONTROL, targetVelocity=20.0, force=10.0
            )
        for steer in (0, 2):
            p.setJointMotorControl2(
                body, steer, pybullet.POSITION_CONTROL, targetPosition=-0.2 * (k > 120)
            )
            if k > 200:
                astray = max(astray, abs(p.getJointState(body, steer)[0] + 0.2))
        if k > 60:
            for first, second, ratio, auxiliary in CAR_GEARS:
                rate = p.getJointState(body, first)[1] + ratio * p.getJointState(body, second)[1]
                if auxiliary >= 0:
                    rate -= p.getJointState(body, auxiliary)[1]
                worst = max(worst, abs(rate))

    s.steps(600, act)
    place, turn = p.getBasePositionAndOrientation(body)
    way = float(np.hypot(place[0], place[1]))
    yaw = p.getEulerFromQuaternion(turn)[2]
    s.outcome.figures.update(way=way, yaw=yaw, steering=astray, gears=worst)


def husky(s: Stage) -> None:
    """Husky with its four wheels geared together drives straight on."""
    p = s.p
    p.loadURDF(f"{DATA}/plane.urdf")
    body = p.loadURDF(f"{DATA}/husky/husky.urdf", (0, 0, 0.15))
    wheels = (2, 3, 4, 5)
    for other in wheels[1:]:
        gear = p.createConstraint(
            body, wheels[0], body, other, pybullet.JOINT_GEAR, (0, 1, 0), (0, 0, 0), (0, 0, 0)
        )
        p.changeConstraint(gear, gearRatio=-1, maxForce=10000)
    worst = 0.0

    def act(k: int) -> None:
        nonlocal worst
        for wheel in wheels:
            force = 100.0 if wheel == wheels[0] else 0.0
            p.setJointMotorControl2(
                body, wheel, pybullet.VELOCITY_CONTROL, targetVelocity=5.0, force=force
            )
        rates = [state[1] for state in p.getJointStates(body, wheels)]
        worst = max(worst, max(rates) - min(rates)) if k > 60 else 0.0

    s.steps(480, act)
    place = p.getBasePositionAndOrientation(body)[0]
    s.outcome.figures.update(x=place[0], y=place[1], gears=worst)


def skid(s: Stage) -> None:
    """Husky turns: its left wheels at 2 rad/s, the right ones at 4, all four skidding.

    It has no constraints, and is stepped exactly where that is asked for.
    """
    p = s.p
    p.loadURDF(f"{DATA}/plane.urdf")
    body = p.loadURDF(f"{DATA}/husky/husky.urdf", (0, 0, 0.15))
    if s.mode == "exact":
        p.setBridgeMode("exact", body)
    left, wheels = (2, 4), (2, 3, 4, 5)
    turns: list[float] = []
    loads: dict[int, list[Any]] = {wheel: [] for wheel in wheels}

    def act(k: int) -> None:
        for wheel in wheels:
            rate = 2.0 if wheel in left else 4.0
            p.setJointMotorControl2(
                body, wheel, pybullet.VELOCITY_CONTROL, targetVelocity=rate, force=80
            )
        if k > 200:
            turns.append(p.getBaseVelocity(body)[1][2])
            inverse = p.invertTransform(*p.getBasePositionAndOrientation(body))
            for contact in p.getContactPoints(body):
                first = contact[1] == body
                at = p.multiplyTransforms(*inverse, contact[5 if first else 6], (0, 0, 0, 1))[0]
                loads[contact[3 if first else 4]].append((at[0], at[1], contact[9]))

    s.steps(600, act)
    radius = float(np.mean([p.getLinkState(body, wheel)[0][2] for wheel in wheels]))
    points: list[list[float]] = []  # x, y, speed of the rim, load
    for wheel in wheels:
        x, y, load = np.transpose(loads[wheel])
        place, side = np.average(x, weights=load), np.average(y, weights=load)
        half = math.sqrt(np.average((y - side) ** 2, weights=load))  # of the wheel's width
        rim = radius * (2.0 if wheel in left else 4.0)
        points += [[place, side + k * half, rim, load.sum()] for k in (-1, 1)]
    s.outcome.figures.update(turn=float(np.mean(turns)), balance=skid_rate(np.array(points)))


def skid_rate(points: Array) -> float:
    """Rate [rad/s] of turning at which Coulomb's friction at wheels that skid is in balance.

    Args:
        points: (n, 4) places x and y on the vehicle [m], speed of the rim [m/s], and load.
    """
    x, y, rim, load = points.T

    def sums(motion: Any) -> list[float]:
        forward, sideways, turn = motion
        slip = np.array([forward - turn * y - rim, sideways + turn * x])
        force = -load / load.sum() * slip / np.linalg.norm(slip, axis=0)
        return [*force.sum(axis=1), float(np.sum(x * force[1] - y * force[0]))]

    return float(root(sums, np.array([rim.mean(), 0.0, 0.1])).x[2])


def drop(s: Stage) -> None:
    """A box that is held is let go, and falls freely."""
    p = s.p
    a, _, box, held = hold_level(s)
    apart(s, a, box)
    s.steps(120)
    z = p.getBasePositionAndOrientation(box)[0][2]
    s.release(held)
    s.steps(60)
    s.outcome.figures["fell"] = z - p.getBasePositionAndOrientation(box)[0][2]


def lift_by(s: Stage, control: str) -> None:
    """An arm lifts a cube that it holds, by torques or by velocities."""
    p = s.p
    arm = s.arm(0.0, 0.0)
    flange = np.asarray(p.getLinkState(arm, 6)[0])
    cube = s.box((0.05, 0.05, 0.05), 2.0, flange - (0.0, 0.0, 0.12))
    apart(s, arm, cube)
    s.fix(arm, 6, cube)
    high = (0.0, -0.3, 0.0, 0.0, 0.0, 0.0, 0.0)
    stiff = (96.0, 96.0, 53.0, 53.0, 33.0, 12.0, 12.0)  # as in grasps.py
    for joint in range(7):
        p.setJointMotorControl2(arm, joint, pybullet.VELOCITY_CONTROL, force=0.0)
        p.changeDynamics(arm, joint, jointDamping=0.0)

    def act(k: int) -> None:
        t = min(1.0, k / 240.0)
        share, rate = t * t * (3.0 - 2.0 * t), 6.0 * t * (1.0 - t) if k < 240 else 0.0
        states = p.getJointStates(arm, range(7))
        held = [0.0] * 7
        if control == "torque":  # weights of arm and cube
            angles, still = [state[0] for state in states], [0.0] * 7
            held = p.calculateInverseDynamics(arm, angles, still, still)
            hand = p.getLinkState(arm, 6, computeForwardKinematics=True)[4:6]
            there = p.getBasePositionAndOrientation(cube)
            at = p.multiplyTransforms(*p.invertTransform(*hand), *there)[0]
            J = np.array(p.calculateJacobian(arm, 6, at, angles, still, still)[0])
            held = np.array(held) + J.T @ (0.0, 0.0, 2.0 * 9.81)
        for joint, (q, v, *_) in enumerate(states):
            goal = READY[joint] + share * high[joint]
            if control == "velocity":
                p.setJointMotorControl2(
                    arm,
                    joint,
                    pybullet.VELOCITY_CONTROL,
                    targetVelocity=rate * high[joint] + 2.0 * (goal - q),
                    force=300.0,
                )
            else:
                torque = held[joint] + stiff[joint] * (goal - q) - 0.02 * stiff[joint] * v
                p.setJointMotorControl2(arm, joint, pybullet.TORQUE_CONTROL, force=torque)

    s.steps(480, act)
    s.outcome.figures["z"] = p.getBasePositionAndOrientation(cube)[0][2] - flange[2]


def lift_by_torque(s: Stage) -> None:
    """An arm lifts a cube by joint torques."""
    lift_by(s, "torque")


def lift_by_velocity(s: Stage) -> None:
    """An arm lifts a cube by joint velocities."""
    lift_by(s, "velocity")


def quadruped(p: Any, name: str, place: Any, angles: tuple[float, ...], force: float) -> int:
    """Load a robot of PyBullet's data whose twelve motors hold its legs."""
    robot: int = p.loadURDF(f"{DATA}/{name}", place)
    hinges = [
        joint
        for joint in range(p.getNumJoints(robot))
        if p.getJointInfo(robot, joint)[2] == pybullet.JOINT_REVOLUTE
    ]
    for k, joint in enumerate(hinges):
        angle = angles[k % 3]
        p.resetJointState(robot, joint, angle)
        p.setJointMotorControl2(
            robot, joint, pybullet.POSITION_CONTROL, targetPosition=angle, force=force
        )
    return robot


def tell_forces(s: Stage) -> None:
    """Note the largest force of a constraint now."""
    p = s.p
    numbers = [p.getConstraintUniqueId(k) for k in range(p.getNumConstraints())]
    s.outcome.figures["force"] = max(max(map(abs, p.getConstraintState(n))) for n in numbers)


def pair(s: Stage) -> None:
    """Two A1 stand on the ground and share a bar."""
    p = s.p
    p.loadURDF(f"{DATA}/plane.urdf")
    bar = s.box((0.05, 0.5, 0.02), 1.0, (0.0, 0.0, 0.42))
    for y in (0.5, -0.5):
        robot = quadruped(p, "a1/a1.urdf", (0.0, y, 0.3), (0.0, 0.9, -1.8), 33.0)
        s.watch(
            p.createConstraint(
                *(robot, -1, bar, -1, pybullet.JOINT_FIXED),
                *((0, 0, 0), (0, 0, 0.12), (0, y, 0)),
            )
        )
    s.steps(480)
    s.outcome.figures["z"] = p.getBasePositionAndOrientation(bar)[0][2]
    tell_forces(s)


def hanging(s: Stage) -> None:
    """A mini cheetah stands on a plate that hangs on four rods."""
    p = s.p
    plate = s.box((0.6, 0.6, 0.05), 20.0, (0.0, 0.0, 1.0))
    for x, y in ((-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)):
        rod = s.box((0.02, 0.02, 0.45), 0.5, (x, y, 1.5))
        p.setCollisionFilterPair(rod, plate, -1, -1, 0)
        for other, at, there in ((-1, 0.45, (x, y, 1.95)), (plate, -0.45, (x, y, 0.05))):
            s.watch(
                p.createConstraint(
                    *(rod, -1, other, -1, pybullet.JOINT_POINT2POINT, (0, 0, 0)),
                    *((0, 0, at), there),
                )
            )
    quadruped(p, "mini_cheetah/mini_cheetah.urdf", (0.0, 0.0, 1.35), (0.0, -0.8, 1.6), 20.0)
    s.steps(480)
    s.outcome.figures["z"] = p.getBasePositionAndOrientation(plate)[0][2]
    tell_forces(s)


def bridge(s: Stage) -> None:
    """A load of 20 kg stands on a bridge of six planks of 2 kg, joined by two points each."""
    p = s.p
    point = pybullet.JOINT_POINT2POINT
    planks = [s.box((0.14, 0.3, 0.02), 2.0, (-0.75 + 0.3 * k, 0.0, 0.0)) for k in range(6)]
    bank = -1
    for y in (-0.25, 0.25):
        first, last = (planks[0], -1, bank, -1, point), (planks[-1], -1, bank, -1, point)
        s.watch(p.createConstraint(*first, (0, 0, 0), (-0.15, y, 0.0), (-0.9, y, 0.0)))
        s.watch(p.createConstraint(*last, (0, 0, 0), (0.15, y, 0.0), (0.88, y, 0.0)))
        for a, b in itertools.pairwise(planks):
            pair = a, -1, b, -1, point
            s.watch(p.createConstraint(*pair, (0, 0, 0), (0.15, y, 0.0), (-0.15, y, 0.0)))
    load = s.box((0.1, 0.1, 0.3), 20.0, (0.0, 0.0, 0.33))
    s.steps(600)
    deepest = 0.0
    for _ in range(120):
        s.steps(1)
        deepest = max(deepest, *(-point[8] for point in p.getContactPoints(load)))
    s.outcome.figures["z"] = p.getBasePositionAndOrientation(load)[0][2]
    s.outcome.figures["depth"] = deepest


def change_tool(s: Stage) -> None:
    """An arm takes a tool from a rack, lifts it, and hands it back to the rack."""
    p = s.p
    arm = s.arm(0.0, 0.0)
    rack = s.box((0.05, 0.3, 0.1), 0.0, (0.6, 0.0, 0.1))
    tool = s.box((0.02, 0.02, 0.05), 0.4, (0.6, 0.0, 0.25))
    held = s.fix(rack, -1, tool)
    down = p.getQuaternionFromEuler((math.pi, 0.0, 0.0))

    def move(z: float) -> None:
        start = found = np.array([state[0] for state in p.getJointStates(arm, range(7))])
        for _ in range(20):  # which takes its own last answer for a start
            found = p.calculateInverseKinematics(arm, 6, (0.6, 0.0, z), down, maxNumIterations=200)
        way = np.array(found) - start
        s.steps(140, lambda k: s.drive(arm, start + min(1.0, k / 80) * way, 300.0))

    move(0.36)
    grasped = s.fix(arm, 6, tool)
    s.steps(2)
    s.release(held)
    move(0.5)
    s.outcome.figures["lifted"] = p.getBasePositionAndOrientation(tool)[0][2] - 0.25
    move(0.36)
    held = s.fix(rack, -1, tool)
    s.steps(2)
    s.release(grasped)
    move(0.5)
    s.outcome.figures["back"] = p.getBasePositionAndOrientation(tool)[0][2] - 0.25


def hoist(s: Stage) -> None:
    """A crane's hook on a rope of ten rods is put to a load of 8 kg, which it lifts by 0.3 m."""
    p = s.p
    p.loadURDF(f"{DATA}/plane.urdf")
    winch = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.05, 0.05, 0.05))
    slide = [pybullet.JOINT_PRISMATIC]
    here, straight = [(0.0, 0.0, 0.0)], [(0.0, 0.0, 0.0, 1.0)]
    crane = p.createMultiBody(
        *(0.0, winch, -1, (0.0, 0.0, 2.8)),
        linkMasses=[2.0],
        linkCollisionShapeIndices=[-1],
        linkVisualShapeIndices=[-1],
        linkPositions=[(0.0, 0.0, -1.0)],
        linkOrientations=straight,
        linkInertialFramePositions=here,
        linkInertialFrameOrientations=straight,
        linkParentIndices=[0],
        linkJointTypes=slide,
        linkJointAxis=[(0.0, 0.0, 1.0)],
    )
    p.changeDynamics(crane, 0, localInertiaDiagonal=(0.01, 0.01, 0.01))
    control = crane, 0, pybullet.POSITION_CONTROL
    p.setJointMotorControl2(*control, targetPosition=0.0, force=500.0)
    point, end, last = pybullet.JOINT_POINT2POINT, (crane, 0), (0.0, 0.0, 0.0)
    rod = p.createCollisionShape(pybullet.GEOM_CAPSULE, radius=0.01, height=0.08)
    for k in range(10):
        link = p.createMultiBody(0.05, rod, -1, (0.0, 0.0, 1.74 - 0.12 * k))
        s.watch(p.createConstraint(*end, link, -1, point, (0, 0, 0), last, (0, 0, 0.06)))
        end, last = (link, -1), (0.0, 0.0, -0.06)
    load = s.box((0.15, 0.15, 0.245), 8.0, (0.0, 0.0, 0.245))
    s.steps(60)
    hook = s.watch(p.createConstraint(*end, load, -1, point, (0, 0, 0), last, (0, 0, 0.355)))
    s.steps(30)
    p.setJointMotorControl2(*control, targetPosition=0.3, force=500.0, maxVelocity=0.5)
    s.steps(240)
    forces = list[float]()  # the load swings: that of a step is by up to 2 % another
    for _ in range(120):
        s.steps(1)
        forces.append(float(np.linalg.norm(p.getConstraintState(hook))))
    s.outcome.figures["lifted"] = p.getBasePositionAndOrientation(load)[0][2] - 0.245
    s.outcome.figures["force"] = float(np.mean(forces))


def net(s: Stage) -> None:
    """A net of 25 plates, joined by 40 points, falls onto a ball."""
    p = s.p
    ball = p.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.15)
    p.createMultiBody(0.0, ball, -1, (0.0, 0.0, 0.4))
    half, joint = (0.02, 0.02, 0.005), (-1, pybullet.JOINT_POINT2POINT, (0, 0, 0))
    places = itertools.product(range(5), range(5))
    plates = {(i, j): s.box(half, 0.02, (0.1 * i - 0.2, 0.1 * j - 0.2, 0.6)) for i, j in places}
    for (i, j), plate in plates.items():
        for other, way in (((i + 1, j), (0.05, 0, 0)), ((i, j + 1), (0, 0.05, 0))):
            if other in plates:
                back = tuple(-x for x in way)
                s.watch(p.createConstraint(plate, -1, plates[other], *joint, way, back))
    s.steps(300)
    s.outcome.figures["z"] = p.getBasePositionAndOrientation(plates[2, 2])[0][2]


SCENES: dict[str, Callable[[Stage], None]] = {
    f.__name__: f
    for f in (
        *(grasp, two_arms, two_arms_apart, hand_over, tray, drawer, door, drag, platform),
        *(panda, car, husky, skid, drop, lift_by_torque, lift_by_velocity, pair, hanging, bridge),
        *(change_tool, hoist, net),
    )
}


def play(name: str, mode: Mode) -> Outcome:
    """Play a scene in a mode."""
    stage = Stage(mode)
    try:
        SCENES[name](stage)
    except BulletBridgeError as error:
        stage.outcome.error = f"{type(error).__name__}: {error}"
    return stage.end()


def main() -> None:
    """Print what came of the scenes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"scenes out of {', '.join(SCENES)}")
    parser.add_argument("--mode", choices=MODES, action="append")
    chosen = parser.parse_args()
    table = Table("scene", "mode", "figures", "gap [m]", "rate", "us", "error")
    for name in chosen.names or SCENES:
        for mode in chosen.mode or MODES:
            found = play(name, mode)
            figures = ", ".join(f"{key} {value:.4g}" for key, value in found.figures.items())
            gap, rate, cost = f"{found.gap:.1e}", f"{found.rate:.3g}", f"{found.step_us:.0f}"
            table.add_row(name, mode, figures, gap, rate, cost, found.error)
    Console(width=180).print(table)


if __name__ == "__main__":
    main()
