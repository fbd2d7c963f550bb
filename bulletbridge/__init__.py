"""Exact closed loops for URDF robots in PyBullet."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bulletbridge.constraints.contact import Contact
from bulletbridge.constraints.elements import Bushing, Spring, TorsionSpring
from bulletbridge.constraints.loop import (
    Coupling,
    Distance,
    Frame,
    Freedom,
    JointModel,
    LoopJoint,
    Motor,
)
from bulletbridge.constraints.mesh import PointOnMesh
from bulletbridge.constraints.motion import Motion, Polynomial, Sine, Spline
from bulletbridge.constraints.user import Kinematics, Rows, UserConstraint
from bulletbridge.errors import BulletBridgeError
from bulletbridge.simulation.closed_kinematics import forward_kinematics, inverse_kinematics
from bulletbridge.simulation.contact_motion import ContactMotion
from bulletbridge.simulation.control import PartTracking, Regulation, Tracking
from bulletbridge.simulation.inverse_dynamics import inverse_dynamics, multipliers
from bulletbridge.simulation.plant import Desired, plant_of
from bulletbridge.simulation.rollouts import rollout
from bulletbridge.simulation.saved import SavedState
from bulletbridge.simulation.sliding import Friction, sliding
from bulletbridge.simulation.solver_arrays import Tolerances
from bulletbridge.simulation.system import System

if TYPE_CHECKING:
    from bulletbridge.surface.attach import attach
    from bulletbridge.surface.drop_in.client import BulletClient
    from bulletbridge.surface.load import load
    from bulletbridge.surface.plot import plot
    from bulletbridge.surface.sweep.figures import plot_study
    from bulletbridge.surface.sweep.journal import read_study
    from bulletbridge.surface.sweep.measures import ModelRun
    from bulletbridge.surface.sweep.run import sweep

__version__ = "0.1.0"

__all__ = [
    "BulletClient",
    "BulletBridgeError",
    "Bushing",
    "Contact",
    "ContactMotion",
    "Coupling",
    "Desired",
    "Distance",
    "Frame",
    "Freedom",
    "Friction",
    "JointModel",
    "Kinematics",
    "LoopJoint",
    "ModelRun",
    "Motion",
    "Motor",
    "PartTracking",
    "PointOnMesh",
    "Polynomial",
    "Regulation",
    "Rows",
    "SavedState",
    "Sine",
    "Spline",
    "Spring",
    "System",
    "Tolerances",
    "TorsionSpring",
    "Tracking",
    "UserConstraint",
    "attach",
    "forward_kinematics",
    "inverse_dynamics",
    "inverse_kinematics",
    "load",
    "multipliers",
    "plant_of",
    "plot",
    "plot_study",
    "read_study",
    "rollout",
    "sliding",
    "sweep",
]

SWEEP = {
    "ModelRun": "measures", "plot_study": "figures", "read_study": "journal", "sweep": "run",
}  # fmt: skip
"""Where names of parameter studies are."""


def __getattr__(name: str) -> Any:
    """What needs PyBullet, which greets on stderr when it is imported."""
    if name == "BulletClient":
        return import_module("bulletbridge.surface.drop_in.client").BulletClient
    if name in SWEEP:
        return getattr(import_module(f"bulletbridge.surface.sweep.{SWEEP[name]}"), name)
    if name in ("attach", "load", "plot"):
        return getattr(import_module(f"bulletbridge.surface.{name}"), name)
    raise AttributeError(f"module 'bulletbridge' has no attribute '{name}'")
