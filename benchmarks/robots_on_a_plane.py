"""PyBullet's own robots put on a plane and held by their motors, natively and in exact mode.

``python benchmarks/robots_on_a_plane.py [URDF ...]`` prints a line each: the largest rate of any
joint, the largest velocity of the base, where that ends, and the median time of a step.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pybullet
import pybullet_data
from rich.console import Console
from rich.table import Table

import bulletbridge as bb
from bulletbridge.drop_in.settings import Mode
from bulletbridge.errors import BulletBridgeError

DATA = Path(pybullet_data.getDataPath())
ROBOTS = (
    "a1/a1", "aliengo/aliengo", "laikago/laikago_toes", "mini_cheetah/mini_cheetah",
    "quadruped/minitaur", "quadruped/spirit40", "quadruped/vision60", "husky/husky",
    "racecar/racecar", "franka_panda/panda", "kuka_iiwa/model", "xarm/xarm6_robot",
    "biped/biped2d_pybullet", "r2d2", "cartpole", "humanoid/humanoid", "bicycle/bike",
    "pr2_gripper", "domino/domino", "duck_vhacd", "teddy_vhacd", "soccerball", "lego/lego",
)  # fmt: skip
MODES: tuple[Mode, ...] = ("native", "exact")
DT, FORCE = 1 / 240, 100.0
"""Step [s], and what each motor can do [N m or N]."""
ABOVE = 0.02
"""Height [m] from which robots with a floating base are let fall."""


class Outcome(NamedTuple):
    """What came of a robot: the largest rates, the height at the end, the time of a step [us]."""

    joint: float
    base: float
    height: float
    us: float


def hold(urdf: Path, mode: Mode, steps: int) -> Outcome:
    """Put a robot on a plane and hold its joints where they begin.

    Raises:
        BulletBridgeError: It cannot be stepped.
    """
    p: Any = bb.BulletClient(pybullet.DIRECT, mode=mode)
    p.setGravity(0.0, 0.0, -9.81)
    p.setTimeStep(DT)
    p.loadURDF(str(DATA / "plane.urdf"))
    robot = p.loadURDF(str(urdf), (0.0, 0.0, 1.0))
    lowest = min(p.getAABB(robot, link)[0][2] for link in range(-1, p.getNumJoints(robot)))
    floats = p.getDynamicsInfo(robot, -1)[0] > 0.0
    height = 1.0 - lowest + ABOVE if floats else 0.0
    p.resetBasePositionAndOrientation(robot, (0.0, 0.0, height), (0.0, 0.0, 0.0, 1.0))
    if mode == "exact":
        p.setBridgeMode("exact", robot)
    kinds = (pybullet.JOINT_REVOLUTE, pybullet.JOINT_PRISMATIC)
    joints = [j for j in range(p.getNumJoints(robot)) if p.getJointInfo(robot, j)[2] in kinds]
    for joint in joints:
        target = p.getJointState(robot, joint)[0]
        p.setJointMotorControl2(
            robot, joint, pybullet.POSITION_CONTROL, targetPosition=target, force=FORCE
        )
    fastest, base, times = 0.0, 0.0, list[float]()
    for _ in range(steps):
        begun = time.perf_counter()
        p.stepSimulation()
        times.append(time.perf_counter() - begun)
        if joints:
            rates = [abs(state[1]) for state in p.getJointStates(robot, joints)]
            fastest = max(fastest, *rates)
        base = max(base, float(np.abs(p.getBaseVelocity(robot)).max()))
    z = p.getBasePositionAndOrientation(robot)[0][2]
    p.disconnect()
    return Outcome(fastest, base, z, 1e6 * float(np.median(times)))


def main() -> None:
    """Print what came of each robot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("urdfs", nargs="*", type=Path)
    parser.add_argument("--steps", type=int, default=360)
    given = parser.parse_args()
    rows = Table("robot", "mode", "joint", "base", "z", "us", "error")
    for urdf in given.urdfs or [DATA / f"{name}.urdf" for name in ROBOTS]:
        for mode in MODES:
            try:
                found = hold(urdf, mode, given.steps)
            except BulletBridgeError as error:
                rows.add_row(urdf.stem, mode, "", "", "", "", str(error)[:80])
                continue
            joint, base, z, us = found
            numbers = (f"{joint:.2f}", f"{base:.2f}", f"{z:.4f}", f"{us:.0f}", "")
            rows.add_row(urdf.stem, mode, *numbers)
    Console(width=140).print(rows)


if __name__ == "__main__":
    main()
