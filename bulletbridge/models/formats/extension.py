"""What a robot's file says in words that its format has not, or what a file beside it says."""

from dataclasses import dataclass, field
from typing import NamedTuple

from bulletbridge.constraints.force_elements import ForceElement
from bulletbridge.constraints.joints import Coupling, LoopJoint
from bulletbridge.mechanism.joint_properties import JointProperties
from bulletbridge.models.model_spec import JointForce


class Retyped(NamedTuple):
    """A joint of the tree that is to be another one."""

    kind: str  # what it is to be
    axes: str = ""  # of a universal joint
    # dampings of a planar joint along x and y and about its normal; the advance of a screw [m a
    # turn]
    numbers: tuple[float, ...] = ()


@dataclass
class Extension:
    """What one of them says."""

    # what closes loops, and couplings
    loops: list[LoopJoint | Coupling] = field(default_factory=lambda: [])
    elements: list[ForceElement] = field(default_factory=lambda: [])  # springs and sums of joints
    forces: list[JointForce] = field(default_factory=lambda: [])  # springs and friction of joints
    joints: dict[str, JointProperties] = field(default_factory=lambda: {})  # properties of joints
    actuated: list[str] = field(default_factory=lambda: [])  # joints with a drive
    held: bool = False  # whether the base is part of the world
    # what joints of the tree are to be
    retyped: dict[str, Retyped] = field(default_factory=lambda: {})
    notes: list[str] = field(default_factory=lambda: [])  # what is to be said about it
