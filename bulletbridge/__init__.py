"""Exact closed loops for URDF robots in PyBullet."""

from bulletbridge.constraints.loop import (
    Coupling,
    Distance,
    Frame,
    JointModel,
    LoopJoint,
)
from bulletbridge.constraints.motion import Motion, Polynomial, Sine, Spline
from bulletbridge.constraints.user import Kinematics, Rows, UserConstraint
from bulletbridge.errors import BulletBridgeError
from bulletbridge.simulation.solver import Tolerances
from bulletbridge.simulation.system import System

__version__ = "0.1.0"

__all__ = [
    "BulletBridgeError",
    "Coupling",
    "Distance",
    "Frame",
    "JointModel",
    "Kinematics",
    "LoopJoint",
    "Motion",
    "Polynomial",
    "Rows",
    "Sine",
    "Spline",
    "System",
    "Tolerances",
    "UserConstraint",
]
