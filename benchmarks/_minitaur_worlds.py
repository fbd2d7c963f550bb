"""Minitaur on the plane as its program sets it up, in any client: standing, walking, dropped."""

from typing import Any, NamedTuple

import numpy as np
import pybullet
import pybullet_data

LEGS = ("front_left", "back_left", "front_right", "back_right")
STANDING = 0.1667  # [m] height of the base on straight legs
SETTLED = 1.0  # [s] until the gait starts
MOTOR = {"positionGain": 1, "velocityGain": 1, "force": 3.5}


class Gait(NamedTuple):
    """Diagonal pairs of legs that swing and lift."""

    swing: float = 0.0  # [rad]
    lift: float = 0.0  # [rad]
    pace: float = 1.0  # [Hz]


def minitaur(client: Any, dt: float, height: float = 0.2) -> tuple[int, dict[str, int]]:
    """Plane and robot with closed legs, motors on; body id and joints by name."""
    client.setGravity(0, 0, -9.81)
    client.setTimeStep(dt)
    data = pybullet_data.getDataPath()
    client.loadURDF(f"{data}/plane.urdf")
    robot = client.loadURDF(f"{data}/quadruped/minitaur.urdf", [0, 0, height])
    joints = {
        client.getJointInfo(robot, k)[1].decode(): k for k in range(client.getNumJoints(robot))
    }
    for leg in LEGS:
        sign = -1 if "left" in leg else 1
        for side in "LR":
            knee = joints[f"knee_{leg}{side}_link"]
            client.resetJointState(robot, joints[f"motor_{leg}{side}_joint"], sign * np.pi / 2)
            client.resetJointState(robot, knee, sign * -2.1834)
            client.setJointMotorControl2(robot, knee, pybullet.VELOCITY_CONTROL, force=0)
        client.createConstraint(
            robot,
            joints[f"knee_{leg}R_link"],
            robot,
            joints[f"knee_{leg}L_link"],
            pybullet.JOINT_POINT2POINT,
            [0, 0, 0],
            [0, 0.005, 0.2],
            [0, 0.01, 0.2],
        )
    drive(client, robot, joints, 0.0, Gait())
    return robot, joints


def drive(client: Any, robot: int, joints: dict[str, int], t: float, gait: Gait) -> None:
    """Motor targets at a time: straight legs until the robot has settled, then the gait."""
    phase = 2 * np.pi * gait.pace * (t - SETTLED)
    moving = t >= SETTLED
    for leg in LEGS:
        sign = -1 if "left" in leg else 1
        turn = phase + (0.0 if leg in ("front_left", "back_right") else np.pi)
        for side, way in (("L", 1), ("R", -1)):
            bend = way * gait.swing * np.sin(turn) + gait.lift * np.cos(turn) if moving else 0.0
            client.setJointMotorControl2(
                robot,
                joints[f"motor_{leg}{side}_joint"],
                pybullet.POSITION_CONTROL,
                targetPosition=sign * (np.pi / 2 + bend),
                **MOTOR,
            )
