"""Exact closed loops for URDF robots in PyBullet."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import bulletbridge.interrupts  # noqa: F401 # pyright: ignore[reportUnusedImport]  # first of all
from bulletbridge.collector import Uncollected

with Uncollected():
    from bulletbridge import errors
    from bulletbridge.compilation.users import MovingFrame
    from bulletbridge.constraints.force_elements import (
        Bushing,
        Pulley,
        Round,
        Spring,
        Tendon,
        TorsionSpring,
        Wrench,
    )
    from bulletbridge.constraints.joints import (
        Coupling,
        Distance,
        Frame,
        JointModel,
        LoopAxis,
        LoopJoint,
        Motor,
    )
    from bulletbridge.constraints.mesh import PointOnMesh
    from bulletbridge.constraints.motion import Motion, Polynomial, Sine, Spline
    from bulletbridge.constraints.user import Kinematics, Rows, UserConstraint
    from bulletbridge.control.closed_kinematics import forward_kinematics, inverse_kinematics
    from bulletbridge.control.controllers import PartTracking, Regulation, Tracking
    from bulletbridge.control.costs import CostTerms, QuadraticCost
    from bulletbridge.control.crocoddyl_models import to_crocoddyl
    from bulletbridge.control.differentiable import StepFunctions
    from bulletbridge.control.equilibrium import Equilibrium, equilibrium
    from bulletbridge.control.identification import Identification, identify
    from bulletbridge.control.ilqr import Plan, Until, ilqr
    from bulletbridge.control.inverse_dynamics import inverse_dynamics, multipliers
    from bulletbridge.control.jax_functions import to_jax
    from bulletbridge.control.lqr import Regulator, lqr
    from bulletbridge.control.modes import Modes, modes
    from bulletbridge.control.plant import Desired, plant_of
    from bulletbridge.control.rollout_gradient import RolloutGradient, rollout_gradient
    from bulletbridge.control.torch_functions import to_torch
    from bulletbridge.engine.workspace import Tolerances
    from bulletbridge.errors import BulletBridgeError
    from bulletbridge.events.contact import Contact
    from bulletbridge.events.contact_motion import ContactMotion
    from bulletbridge.events.sliding import Friction, sliding
    from bulletbridge.mechanism.joint_properties import JointProperties
    from bulletbridge.system.linearisation import Linearisation
    from bulletbridge.system.many_worlds import Worlds
    from bulletbridge.system.options import Options
    from bulletbridge.system.recording import Recording
    from bulletbridge.system.rollouts import rollout
    from bulletbridge.system.saved import SavedState
    from bulletbridge.system.system import System

if TYPE_CHECKING:
    from bulletbridge.comparison.plot import plot
    from bulletbridge.drop_in.client import BulletClient
    from bulletbridge.models.attach import attach
    from bulletbridge.models.bundled import models_folder
    from bulletbridge.models.formats.recognise import read_model
    from bulletbridge.models.load import load
    from bulletbridge.studies.figures import plot_study
    from bulletbridge.studies.journal import read_study
    from bulletbridge.studies.measures import ModelRun
    from bulletbridge.studies.run import sweep
    from bulletbridge.viewer.film import record
    from bulletbridge.viewer.view import view

__version__ = "0.1.0"

__all__ = [
    "BulletClient", "BulletBridgeError", "Bushing", "Contact", "ContactMotion", "CostTerms",
    "Coupling", "Desired", "Distance", "Equilibrium", "Frame", "Linearisation", "LoopAxis",
    "Friction", "Identification", "JointModel", "JointProperties", "Kinematics", "LoopJoint",
    "ModelRun", "Modes", "Motion", "Motor", "MovingFrame", "Options", "PartTracking", "Plan",
    "PointOnMesh", "Polynomial", "Pulley", "QuadraticCost", "Recording", "Regulation", "Regulator",
    "RolloutGradient", "Round", "Rows", "SavedState", "Sine", "Spline", "Spring", "StepFunctions",
    "System", "Tolerances", "Tendon", "TorsionSpring", "Tracking", "Until", "UserConstraint",
    "Worlds", "Wrench", "attach", "equilibrium", "forward_kinematics", "identify", "ilqr",
    "inverse_dynamics", "inverse_kinematics", "load", "lqr", "models_folder", "modes",
    "multipliers", "plant_of", "plot", "plot_study", "read_model", "read_study", "record",
    "rollout", "rollout_gradient", "sliding", "sweep", "to_crocoddyl", "to_jax", "to_torch", "view",
]  # fmt: skip

NEEDING_PYBULLET = {
    "BulletClient": "drop_in.client",
    "ModelRun": "studies.measures",
    "attach": "models.attach",
    "load": "models.load",
    "models_folder": "models.bundled",
    "plot": "comparison.plot",
    "plot_study": "studies.figures",
    "read_model": "models.formats.recognise",
    "record": "viewer.film",
    "read_study": "studies.journal",
    "sweep": "studies.run",
    "view": "viewer.view",
}
"""Modules of the names that need PyBullet, which greets on stderr when it is imported."""


def __dir__() -> list[str]:
    """The public names."""
    return __all__


COMMANDS = "compare", "inspect", "convert", "demo", "doctor", "inertia", "bench", "paper"
"""What only the command line has."""
CALLED_HERE = {
    **dict.fromkeys(("Gear", "Chain", "Belt", "Mimic", "RackAndPinion"), "Coupling"),
    **dict.fromkeys(
        (
            *("Hinge", "Pin", "Ball", "Point2Point", "Weld", "Fixed", "Slider", "Constraint"),
            *("Revolute", "Prismatic", "Universal", "Cylindrical", "Planar", "Screw"),
        ),
        "LoopJoint, with a bulletbridge.JointModel",
    ),
    **dict.fromkeys(("Rod", "Link"), "Distance"),
    **dict.fromkeys(("Rope", "Cable", "Muscle"), "Tendon"),
    **dict.fromkeys(("Force", "ExternalForce"), "Wrench"),
    "Damper": "Spring",
}
"""Public names by what others call them."""


def __getattr__(name: str) -> Any:
    """Import a name that needs PyBullet when it is asked for."""
    if name not in NEEDING_PYBULLET:
        said, here = f"module 'bulletbridge' has no attribute '{name}'", sys.modules[__name__]
        if name.startswith("_"):
            pass
        elif hasattr(sys.modules.get("pybullet"), name):
            said = f"{said}; it is PyBullet's: pybullet.{name}"
        elif hasattr(System, name):
            said = f"{said}; it is one of a system, as in system.{name}"
        elif name in COMMANDS:
            said = f"{said}; it is a command: bulletbridge {name}"
        elif name in CALLED_HERE:
            said = f"{said}; it is called bulletbridge.{CALLED_HERE[name]}"
        elif isinstance(getattr(errors, name, None), type):
            said = f"{said}; it is bulletbridge.errors.{name}"
        raise AttributeError(said, name=name, obj=here)  # of which Python tells the nearest name
    path = f"bulletbridge.{NEEDING_PYBULLET[name]}"
    module = sys.modules.get(path)
    if module is None:
        with Uncollected():
            module = import_module(path)
    return getattr(module, name)
