"""Random grasps: one or two arms, an object, a constraint between them, in all three modes.

``python benchmarks/grasps.py --number 500`` makes that many, each from its number alone, runs them
for two seconds and prints what went wrong; ``--first 17 --number 1`` is the seventeenth again.
"""

import argparse
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pybullet
from daily_scenes import DATA, DT, IIWA, MODES, Mode, Outcome, Stage

from bulletbridge.drop_in.session import session_of
from bulletbridge.errors import BulletBridgeError

ARMS = {
    "iiwa": (IIWA, 6, (0.0, 0.6, 0.0, -1.5, 0.0, 1.04, 0.0), (320, 320, 176, 176, 110, 40, 40)),
    "panda": (
        f"{DATA}/franka_panda/panda.urdf",
        11,
        (0.0, 0.2, 0.0, -2.0, 0.0, 2.2, 0.8),
        (87, 87, 87, 87, 12, 12, 12),
    ),
}
"""File, link that grasps, angles at the start [rad], largest torques [N m]."""
OBJECTS = (
    "cube_small.urdf",
    "sphere_small.urdf",
    "duck_vhacd.urdf",
    "lego/lego.urdf",
    "jenga/jenga.urdf",
    "objects/mug.urdf",
    "block.urdf",
    "random_urdfs/003/003.urdf",
    "random_urdfs/017/017.urdf",
)
LIMIT = 30.0
"""Joint rate [rad/s] that no motor here gives within two seconds of such motions."""

CLOSED = 1e-12
"""Gap [m or rad] to which all directions of our constraints are held, by Bullet's own numbers."""
LOOKS = 16
"""Steps from one look at these gaps to the next."""

EVERY = 10
"""Grasps after which it says how far it has come."""


@dataclass(frozen=True)
class Grasp:
    """One of them."""

    number: int
    arms: tuple[str, ...]
    thing: str
    kind: int
    control: str
    touching: bool
    plane: bool
    speed: float
    amplitude: tuple[float, ...]


def draw(number: int) -> Grasp:
    """The grasp of that number."""
    rng = np.random.default_rng([7, number])
    count = int(rng.integers(1, 3))
    return Grasp(
        number,
        tuple(str(rng.choice(list(ARMS))) for _ in range(count)),
        str(rng.choice(OBJECTS)),
        int(rng.choice([pybullet.JOINT_FIXED, pybullet.JOINT_POINT2POINT])),
        str(rng.choice(["position", "velocity", "torque"])),
        bool(rng.integers(2)),
        bool(rng.integers(2)),
        float(rng.uniform(0.5, 3.0)),
        tuple(rng.uniform(-0.3, 0.3, 7).tolist()),
    )


class Watched(Stage):
    """A stage on which gaps of our constraints are measured in double precision, too.

    Attributes:
        kept: Largest gap of a direction that is held [m or rad].
    """

    def __init__(self, mode: Mode) -> None:
        super().__init__(mode)
        self.kept, self._count = 0.0, 0

    def _look(self) -> None:
        super()._look()
        self._count += 1
        if self.mode != "native" and self._count % LOOKS == 0:
            for group in session_of(self.p._client).groups.values():
                for gap in group.joined.gaps():
                    self.kept = max(self.kept, gap.kept_metres, gap.kept_radians)


def perform(grasp: Grasp, mode: Mode, duration: float = 2.0) -> tuple[Outcome, float]:
    """Do it; what came of it, and the largest gap of a direction that is held [m or rad]."""
    s = Watched(mode)
    try:
        _perform(s, grasp, duration)
    except BulletBridgeError as error:
        s.outcome.error = f"{type(error).__name__}: {error}"
    return s.end(), s.kept


def _perform(s: Stage, grasp: Grasp, duration: float) -> None:
    p = s.p
    if grasp.plane:
        p.loadURDF(f"{DATA}/plane.urdf")
    arms: list[int] = []
    ahead = 0.58 if grasp.arms[0] == "iiwa" else 0.45
    for k, name in enumerate(grasp.arms):
        path, _, angles, _ = ARMS[name]
        turn = p.getQuaternionFromEuler((0.0, 0.0, k * math.pi))
        reach = 0.58 if name == "iiwa" else 0.45
        place = (0.0, 0.0, 0.0) if k == 0 else (ahead + reach + 0.35, 0.0, 0.0)
        arm = p.loadURDF(path, place, turn, useFixedBase=True)
        for joint, angle in enumerate(angles):
            p.resetJointState(arm, joint, angle)
        arms.append(arm)
    s.watch_arms(arms)
    hands = [ARMS[name][1] for name in grasp.arms]
    tips = [np.array(p.getLinkState(a, h)[0]) for a, h in zip(arms, hands, strict=True)]
    middle = np.mean(tips, axis=0) - (0.0, 0.0, 0.1)
    thing = p.loadURDF(f"{DATA}/{grasp.thing}", middle)
    if grasp.touching:
        lower(p, arms[0], thing, tips[0] if len(arms) == 1 else middle + (0.0, 0.0, 0.1))
    for arm, hand in zip(arms, hands, strict=True):
        if grasp.kind == pybullet.JOINT_FIXED:
            s.fix(arm, hand, thing)
        else:
            place, turn = p.getLinkState(arm, hand, computeForwardKinematics=True)[:2]
            other = p.getBasePositionAndOrientation(thing)
            at = p.multiplyTransforms(*p.invertTransform(place, turn), *other)[0]
            number = p.createConstraint(arm, hand, thing, -1, grasp.kind, (0, 0, 0), at, (0, 0, 0))
            s.watch(number)
    control(s, grasp, arms, duration)
    s.outcome.figures["z"] = p.getBasePositionAndOrientation(thing)[0][2]


def lower(p: Any, arm: int, thing: int, above: np.ndarray) -> None:
    """Put the thing where it touches the arm from below, 0.2 mm inside."""
    low, high = float(above[2]) - 0.5, float(above[2])
    for _ in range(40):
        z = 0.5 * (low + high)
        p.resetBasePositionAndOrientation(thing, (above[0], above[1], z), (0, 0, 0, 1))
        near = p.getClosestPoints(arm, thing, 0.3)
        if near and min(point[8] for point in near) < -2e-4:
            high = z
        else:
            low = z
    p.resetBasePositionAndOrientation(thing, (above[0], above[1], high), (0, 0, 0, 1))


def control(s: Stage, grasp: Grasp, arms: list[int], duration: float) -> None:
    """Move: two arms alike as seen from each, so that they may carry the thing together."""
    p = s.p
    if grasp.control == "torque":
        for arm in arms:
            for joint in range(7):
                p.setJointMotorControl2(arm, joint, pybullet.VELOCITY_CONTROL, force=0.0)
                p.changeDynamics(arm, joint, jointDamping=0.0)  # explicit, unstable on light links

    def act(k: int) -> None:
        t = k * DT
        for arm, name in zip(arms, grasp.arms, strict=True):
            _, _, angles, torques = ARMS[name]
            for joint in range(7):
                amplitude = grasp.amplitude[joint] * (1.0 if len(arms) == 1 else 0.2)
                wave = amplitude * math.sin(grasp.speed * t)
                rate = amplitude * grasp.speed * math.cos(grasp.speed * t)
                if grasp.control == "position":
                    p.setJointMotorControl2(
                        arm,
                        joint,
                        pybullet.POSITION_CONTROL,
                        targetPosition=angles[joint] + wave,
                        force=torques[joint],
                    )
                elif grasp.control == "velocity":
                    p.setJointMotorControl2(
                        arm,
                        joint,
                        pybullet.VELOCITY_CONTROL,
                        targetVelocity=rate,
                        force=torques[joint],
                    )
                else:
                    q, v = p.getJointState(arm, joint)[:2]
                    stiff = (
                        0.3 * torques[joint]
                    )  # N m per rad, which hold down to an inertia of 1e-3 kg m2
                    wanted = stiff * (angles[joint] + wave - q) - 0.02 * stiff * v
                    torque = min(max(wanted, -torques[joint]), torques[joint])
                    p.setJointMotorControl2(arm, joint, pybullet.TORQUE_CONTROL, force=torque)

    s.steps(round(duration / DT), act)


def main() -> None:
    """Run them, and print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--number", type=int, default=40)
    parser.add_argument("--mode", choices=MODES, action="append")
    parser.add_argument("--duration", type=float, default=2.0)
    chosen = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    largest: dict[Mode, tuple[float, float]] = {}
    for number in range(chosen.first, chosen.first + chosen.number):
        grasp = draw(number)
        for mode in chosen.mode or MODES:
            found, kept = perform(grasp, mode, chosen.duration)
            rate, gap = largest.get(mode, (0.0, 0.0))
            largest[mode] = max(rate, found.rate), max(gap, kept)
            faults = [found.error] if found.error else []
            if found.rate > LIMIT:
                faults.append(f"rate {found.rate:.0f} rad/s")
            if mode != "native" and found.gap > 1e-6:
                faults.append(f"gap {found.gap:.1e} m")
            if kept > CLOSED:
                faults.append(f"kept gap {kept:.1e} m or rad")
            counts[mode, "faulty" if faults else "fine"] += 1
            if faults:
                print(mode, grasp, *faults, sep="\n    ", flush=True)
        done = number + 1 - chosen.first
        if done % EVERY == 0 or done == chosen.number:
            figures = (f"{mode} {kind} {n}" for (mode, kind), n in sorted(counts.items()))
            print(f"{done} of {chosen.number}:", ", ".join(figures), flush=True)
    for mode, (rate, gap) in largest.items():
        print(f"{mode}: rates up to {rate:.3g} rad/s, kept gaps up to {gap:.1e} m or rad")


if __name__ == "__main__":
    main()
