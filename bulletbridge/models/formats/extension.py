"""What a robot's file says in words that its format has not, or what a file beside it says."""

from dataclasses import dataclass, field
from typing import NamedTuple

from bulletbridge.constraints.force_elements import ForceElement
from bulletbridge.constraints.joints import Coupling, LoopJoint
from bulletbridge.mechanism.joint_properties import JointProperties
from bulletbridge.models.model_spec import JointForce


class Retyped(NamedTuple):
    """A joint of the tree that is to be another one.

    Attributes:
        kind: What it is to be.
        axes: Of a universal joint.
        numbers: Dampings of a planar joint along x and y and about its normal; the advance of a
            screw [m a turn].
    """

    kind: str
    axes: str = ""
    numbers: tuple[float, ...] = ()


@dataclass
class Extension:
    """What one of them says.

    Attributes:
        loops: What closes loops, and couplings.
        elements: Springs and sums of joints.
        forces: Springs and friction of joints.
        joints: Properties of joints.
        actuated: Joints with a drive.
        held: Whether the base is part of the world.
        retyped: What joints of the tree are to be.
        notes: What is to be said about it.
    """

    loops: list[LoopJoint | Coupling] = field(default_factory=lambda: [])
    elements: list[ForceElement] = field(default_factory=lambda: [])
    forces: list[JointForce] = field(default_factory=lambda: [])
    joints: dict[str, JointProperties] = field(default_factory=lambda: {})
    actuated: list[str] = field(default_factory=lambda: [])
    held: bool = False
    retyped: dict[str, Retyped] = field(default_factory=lambda: {})
    notes: list[str] = field(default_factory=lambda: [])
