"""Loop joints: two frames, one on each of two links, and what they may still do to each other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, EnumMeta
from typing import TYPE_CHECKING

from bulletbridge.constraints.motion import Motion, Signal
from bulletbridge.errors import nearest, require_kind
from bulletbridge.mechanism.frames import Triple, triple

Twist = tuple[float, float, float, float, float, float]


@dataclass(frozen=True)
class Frame:
    """A frame on a link: URDF link frame, displaced by xyz [m] and turned by rpy [rad]."""

    link: str
    xyz: Triple = (0.0, 0.0, 0.0)
    rpy: Triple = (0.0, 0.0, 0.0)

    def moved(self, way: Iterable[float]) -> "Frame":
        """It, displaced by a way (3,) [m] in axes of its link."""
        return replace(self, xyz=triple(a + b for a, b in zip(self.xyz, way, strict=True)))


def frame_of(given: "Frame | str") -> "Frame":
    """A frame, or that of a link where its name is given.

    Raises:
        ModelError: It is neither.
    """
    frame = Frame(given) if isinstance(given, str) else given
    require_kind(
        frame, Frame, f"{given!r} is no frame; give a link's name, or bb.Frame('link', xyz)"
    )
    return frame


ELSEWHERE = {
    **dict.fromkeys(("hinge", "pin", "continuous"), "revolute"),
    **dict.fromkeys(("spherical", "point2point", "connect"), "ball"),
    **dict.fromkeys(("fixed", "rigid"), "weld"),
    "slider": "prismatic",
    "slot": "point_on_line",
    **dict.fromkeys(("cardan", "hooke"), "universal"),
    "rod": "distance",
    "mimic": "gear",
}
"""Types of constraints by what URDF, PyBullet, MuJoCo and workshops call them."""


CLASSES = {"distance": "Distance", "gear": "Coupling", "coupling": "Coupling"}
"""Types of constraints that are classes of their own."""


class _Named(EnumMeta):
    """Tells what a joint model that is called otherwise elsewhere is called here."""

    if not TYPE_CHECKING:  # which refuses wrong names by itself

        def __getattr__(cls, name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(name)
            known = cls.__members__
            if name in known:  # Python 3.10 asks here
                return known[name]
            here = ELSEWHERE.get(name.lower(), name.lower())
            if here in CLASSES:
                hint = f"that is bb.{CLASSES[here]}"
            elif here.upper() in known:
                hint = f"that is {cls.__name__}.{here.upper()}"
            else:
                hint = nearest(name.upper(), known) or f"there are: {', '.join(known)}"
            raise AttributeError(f"there is no {cls.__name__}.{name}; {hint}")


class JointModel(Enum, metaclass=_Named):
    """Kind of a loop joint, by the motions that it leaves free; values are names in loops files."""

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
    POINT_ON_SPHERE = "point_on_sphere"
    POINT_ON_CYLINDER = "point_on_cylinder"
    SOFT_FINGER = "soft_finger"
    ROLLING = "rolling"
    PURE_ROLLING = "pure_rolling"


ROUND = (
    JointModel.POINT_ON_SPHERE,
    JointModel.POINT_ON_CYLINDER,
    JointModel.ROLLING,
    JointModel.PURE_ROLLING,
    JointModel.POINT_ON_PLANE,
)
"""Models with a radius: of the surface in a, or of the ball in b whose centre is b's origin."""


@dataclass(frozen=True)
class Motor:
    """Position or rate that a motor asks for, and its strength; see ``System.motors``.

    With a stiffness or a damping it is a servo, which asks for no rate but pushes with stiffness *
    (position - q) + damping * (velocity - v), at the end of the step, within its bounds.

    Attributes:
        force: Largest force [N] or torque [N m].
        velocity: Rate [m/s or rad/s].
        position: Position [m or rad]; None for the rate alone.
        velocity_gain: Share of the velocity error that a step takes away.
        position_gain: Share of the position error that a step takes away.
        stiffness: Of a servo [N m/rad or N/m].
        damping: Of a servo [N m s/rad or N s/m].
        least: Lowest force, the largest backwards unless given.
    """

    force: float
    velocity: float = 0.0
    position: float | None = None
    velocity_gain: float = 1.0
    position_gain: float = 0.1
    stiffness: float = 0.0
    damping: float = 0.0
    least: float | None = None


@dataclass(frozen=True)
class LoopAxis:
    """Limits, friction, motor, spring and force along a free motion of a loop joint.

    The motion is that of b against a, zero where they coincide.

    Besides limits, friction and motor, which are bounded, force - damping * rate - stiffness *
    (position - rest) acts; a turn is taken within half a turn of ``rest``.

    Attributes:
        limits: Lowest and highest position [rad or m]; None for none.
        friction: Largest Coulomb friction [N m or N].
        motor: What the joint's motor does at first; None for off.
        stiffness: [N m/rad or N/m]
        damping: [N m s/rad or N s/m]
        rest: [rad or m]
        force: [N m or N], a number or a function of time.
    """

    limits: tuple[float, float] | None = None
    friction: float = 0.0
    motor: Motor | None = None
    stiffness: float = 0.0
    damping: float = 0.0
    rest: float = 0.0
    force: float | Signal = 0.0

    @property
    def springs(self) -> bool:
        """Whether a spring, damper or force acts."""
        return bool(self.stiffness or self.damping or self.force)

    @property
    def bounded(self) -> bool:
        """Whether there may be limits, friction or a motor: always, unless springs are all."""
        return not self.springs or bool(self.limits or self.friction or self.motor)


SOFTNESS = 0.2
"""Share of its gap that a constraint with a force limit closes in a step; Bullet's erp."""


@dataclass(frozen=True)
class LoopJoint:
    """Frames a and b joined by a joint model.

    Attributes:
        name: Its name in reports and errors.
        model: What stays free. Everything is seen from frame a: the line or plane of
            ``POINT_ON_LINE``, ``POINT_ON_PLANE``, ``PLANAR`` lies in a, the point is b's origin.
            A sphere has its centre, a cylinder its axis at frame a. ``SOFT_FINGER``: the point
            stays, and b does not spin about the axis. ``ROLLING``: a ball on b rolls on the plane
            of a without slip; ``PURE_ROLLING``: nor does it spin about the normal. Rows that
            forbid slip and spin hold velocities: they have no gap.
        a: Its frame on one link.
        b: Its frame on the other.
        axis: Free axis, or the plane's normal, in frame a; z unless given.
        axis_b: The same in frame b; ``axis`` unless given. For ``UNIVERSAL`` the second axis,
            which stays at right angles to the first, and must be given.
        pitch: Advance per turn [m], ``SCREW`` only; right-handed when positive.
        radius: [m] of the surface of ``POINT_ON_SPHERE`` and ``POINT_ON_CYLINDER``, or of the ball
            around b's origin that touches the plane of ``POINT_ON_PLANE`` (zero for a point) or
            rolls on it; the ball is on the side to which the axis points.
        motion: Prescribed motion of frame a relative to its link; None when it is fixed there.
        free: ``GENERAL`` only: the free motions, each a twist (angular, linear) of b's origin
            relative to a, constant in axes of a. Any lengths and angles between them will do; a
            turn and a way in one twist make a screw. Their turns have all one axis, or none, or
            all three.
        max_force: Largest force [N] or torque [N m] of each of its rows, along the axes of the
            world where they hold a point; None for a joint that does not give way.
        erp: Share of the gap that one step closes after it has given way.
        turn: What acts along a free turn about the axis.
        travel: What acts along a free travel along it.
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
    max_force: float | None = None
    erp: float = SOFTNESS
    turn: LoopAxis | None = None
    travel: LoopAxis | None = None
    radius: float = 0.0


@dataclass(frozen=True)
class Distance:
    """A massless rod: the origins of frames a and b stay ``length`` [m] apart.

    Attributes:
        name: Its name in reports and errors.
        a: On one link.
        b: On the other.
        length: [m]
        motion: Changes the length: its z translation is added to it.
        max_force: Largest force [N], as of ``LoopJoint``.
        erp: As of ``LoopJoint``.
    """

    name: str
    a: Frame
    b: Frame
    length: float
    motion: Motion | None = None
    max_force: float | None = None
    erp: float = SOFTNESS


HIGHEST_POWER = 4
"""Of a joint's position in a coupling."""


@dataclass(frozen=True)
class Coupling:
    """Coupling of joint positions: sum of coefficient * position = offset.

    A gear, a mimic joint, or any other relation between revolute and prismatic joints that is
    linear, or a sum of polynomials. With a single joint and a ``motion`` it is a driven joint; the
    motion's z translation is added to the offset.

    Attributes:
        name: Its name in reports and errors.
        coefficients: Factor of each joint's position by joint name.
        offset: [rad or m]
        motion: Prescribed change of the offset.
        max_force: Largest force, as of ``LoopJoint``.
        erp: As of ``LoopJoint``.
        higher: Factors of the square, the cube and the fourth power of a joint's position, as many
            as are wanted, by joint name; of joints that ``coefficients`` names too.
    """

    name: str
    coefficients: dict[str, float] = field(default_factory=lambda: {})
    offset: float = 0.0
    motion: Motion | None = None
    max_force: float | None = None
    erp: float = SOFTNESS
    higher: dict[str, tuple[float, ...]] = field(default_factory=lambda: {})

    def polynomial(self, joint: str) -> tuple[float, ...]:
        """Factors of a joint's position, its square, its cube, ..."""
        return (self.coefficients[joint], *self.higher.get(joint, ()))

    def value(self, positions: Mapping[str, float]) -> float:
        """Value of the sum with joints at these positions [rad or m], by name."""
        return float(
            sum(
                factor * positions[joint] ** power
                for joint in self.coefficients
                for power, factor in enumerate(self.polynomial(joint), 1)
            )
        )
