"""Loop joints: two frames, one on each of two links, and what they may still do to each other."""

from dataclasses import dataclass, field
from enum import Enum

from bulletbridge.constraints.motion import Motion

Triple = tuple[float, float, float]
Twist = tuple[float, float, float, float, float, float]


@dataclass(frozen=True)
class Frame:
    """A frame on a link: URDF link frame, displaced by xyz [m] and turned by rpy [rad]."""

    link: str
    xyz: Triple = (0.0, 0.0, 0.0)
    rpy: Triple = (0.0, 0.0, 0.0)


class JointModel(Enum):
    """What a loop joint leaves free; the value is the name in loops files."""

    BALL = "ball"
    WELD = "weld"
    REVOLUTE = "revolute"
    PRISMATIC = "prismatic"
    UNIVERSAL = "universal"
    CYLINDRICAL = "cylindrical"
    PLANAR = "planar"
    SCREW = "screw"
    POINT_ON_LINE = "point_on_line"
    POINT_ON_PLANE = "point_on_plane"
    GENERAL = "general"


@dataclass(frozen=True)
class LoopJoint:
    """Frames a and b joined by a joint model.

    Attributes:
        name: What reports and errors call it.
        model: What stays free. Everything is seen from frame a: the line or plane of
            ``POINT_ON_LINE``, ``POINT_ON_PLANE``, ``PLANAR`` lies in a, the point is b's origin.
        a, b: The frames.
        axis: Free axis, or the plane's normal, in frame a; z unless given.
        axis_b: The same in frame b; ``axis`` unless given. For ``UNIVERSAL`` the second axis,
            which stays at right angles to the first, and must be given.
        pitch: Advance per turn [m], ``SCREW`` only; right-handed when positive.
        motion: Prescribed motion of frame a relative to its link; None when it is fixed there.
        free: ``GENERAL`` only: the free motions, each a twist (angular, linear) of b's origin
            relative to a, constant in axes of a. Any lengths and angles between them will do; a
            turn and a way in one twist make a screw. Their turns have all one axis, or none, or
            all three.
    """

    name: str
    model: JointModel
    a: Frame
    b: Frame
    axis: Triple = (0.0, 0.0, 1.0)
    axis_b: Triple | None = None
    pitch: float = 0.0
    motion: Motion | None = None
    free: tuple[Twist, ...] = ()


@dataclass(frozen=True)
class Distance:
    """A massless rod: the origins of frames a and b stay ``length`` [m] apart.

    ``motion`` changes the length: its z translation is added to it.
    """

    name: str
    a: Frame
    b: Frame
    length: float
    motion: Motion | None = None


@dataclass(frozen=True)
class Coupling:
    """Affine coupling of joint positions: sum of coefficient * position = offset.

    A gear, a mimic joint, or any other linear relation between revolute and prismatic joints.
    With a single joint and a ``motion`` it is a driven joint; the motion's z translation is
    added to the offset.

    Attributes:
        name: What reports and errors call it.
        coefficients: Factor of each joint's position by joint name.
        offset: [rad or m]
        motion: Prescribed change of the offset.
    """

    name: str
    coefficients: dict[str, float] = field(default_factory=lambda: {})
    offset: float = 0.0
    motion: Motion | None = None
