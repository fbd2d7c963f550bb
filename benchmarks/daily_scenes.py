"""What people do every day with ``createConstraint``: grasp, lift, hand over, open; three ways.

Each scene is a program as any user would write it, run on Bullet alone, in filter mode and in exact
mode. ``python benchmarks/daily_scenes.py [names]`` prints what came of each.
"""

import argparse
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

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeError
from bulletbridge.surface.drop_in.hooks import Mode

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
        step_us: Median time of a step [us].
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
            begun = time.perf_counter()
            self.p.stepSimulation()
            self._times.append(time.perf_counter() - begun)
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


SCENES: dict[str, Callable[[Stage], None]] = {
    f.__name__: f for f in (grasp, two_arms, two_arms_apart)
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
