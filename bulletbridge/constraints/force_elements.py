"""Force elements: springs, dampers and scripted forces between frames, along joints; wrenches."""

from abc import ABC
from dataclasses import dataclass, field
from typing import NamedTuple

from bulletbridge.constraints.functions import ForceFunction
from bulletbridge.constraints.joints import Distance, Frame, LoopAxis, Motor, Triple
from bulletbridge.constraints.motion import Signal
from bulletbridge.mechanism.model import WORLD

Z: Triple = (0.0, 0.0, 1.0)
NOTHING: Triple = (0.0, 0.0, 0.0)


class Stretched(ABC):
    """What is stretched along one length, and what acts along it besides spring and force."""

    stiffness: float
    damping: float
    force: float | Signal
    limits: tuple[float, float] | None  # shortest and longest; None for none
    friction: float  # largest Coulomb friction
    motor: Motor | None  # what a motor along it does at first

    @property
    def springs(self) -> bool:
        """Whether a spring, damper or force acts."""
        return bool(self.stiffness or self.damping or self.force)

    @property
    def acting(self) -> LoopAxis:
        """What acts along it within bounds."""
        return LoopAxis(self.limits, self.friction, self.motor)

    @property
    def bounded(self) -> bool:
        """Whether there are limits, friction or a motor."""
        return bool(self.limits or self.friction or self.motor)


@dataclass(frozen=True)
class Round:
    """A ball or cylinder that a line goes round where it is in its way, without friction.

    A cylinder is as long as the line needs. Sides and shortest ways are as of MuJoCo's tendons.

    Attributes:
        frame: In its centre; z is a cylinder's axis.
        radius: [m]
        cylinder: Whether it is one; otherwise a ball.
        side: Point in its frame [m], on the side that the line stays on; the shorter one unless
            given. Inside of the ball or cylinder, the line is drawn through the latter: it goes
            straight where that leads through, and otherwise touches it from within.
    """

    frame: Frame
    radius: float
    cylinder: bool = False
    side: Triple | None = None


@dataclass(frozen=True)
class Pulley:
    """Where a line ends at the point before, and goes on as another one from the point after.

    Attributes:
        divisor: What the length of all that comes after it, up to the next one, is divided by.
    """

    divisor: float


LinePoint = Frame | Round | Pulley
"""What a line goes through, round or over."""


class Stretch(NamedTuple):
    """A straight part of a line, or one to or from a body that the line goes round."""

    a: Frame  # where it begins
    b: Frame  # where it ends
    share: float = 1.0  # how much of its length counts
    around: Round | None = None  # what it goes round at one of these ends
    onto: bool = False  # whether that is b
    third: Frame | None = None  # where the line comes from or goes to on the other side of that


@dataclass(frozen=True)
class Spring(Stretched):
    """Spring, damper and actuator along the line between the origins of two frames.

    They are pushed apart by force - damping * rate - stiffness * (distance - length). A rope is one
    with ``slack`` that is its ``length``: it pulls when it is longer than both, and never pushes.
    One that does not stretch has ``limits`` alone. A line may go through points between, as a rope
    through eyes without friction: ``distance`` is its length, and the force the same all along.

    Attributes:
        name: What reports and errors call it.
        a: Its frame on one link.
        b: Its frame on the other.
        stiffness: [N/m]
        damping: [N s/m]
        length: Free length [m].
        force: [N], a number or a function of time.
        slack: How far from ``length`` the spring does nothing, either way [m]; from there on it is
            stretched or pressed.
        limits: Shortest and longest distance [m]; None for none.
        friction: Largest Coulomb friction along the line [N].
        motor: What a motor along it does at first, by whose name ``System.motors`` know it too;
            None for off.
        via: What the line goes through from a to b, in order: frames, through whose origins it
            goes, ``Round`` for what it goes round between two of them, ``Pulley`` between branches.
    """

    name: str
    a: Frame
    b: Frame
    stiffness: float = 0.0
    damping: float = 0.0
    length: float = 0.0
    force: float | Signal = 0.0
    slack: float = 0.0
    limits: tuple[float, float] | None = None
    friction: float = 0.0
    motor: Motor | None = None
    via: tuple[LinePoint, ...] = ()

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """Parts of its line, from a on."""
        found, share = list[Stretch](), 1.0
        last: Frame | None = None
        around: Round | None = None
        for point in (self.a, *self.via, self.b):
            if isinstance(point, Pulley):
                last, share = None, 1.0 / point.divisor
            elif isinstance(point, Round):
                around = point
            else:
                if last and around:
                    centre = around.frame
                    found.append(Stretch(last, centre, share, around, True, point))
                    found.append(Stretch(centre, point, share, around, False, last))
                elif last:
                    found.append(Stretch(last, point, share))
                last, around = point, None
        return tuple(found)

    @property
    def straight(self) -> bool:
        """Whether its line goes through points alone."""
        return all(isinstance(point, Frame) for point in self.via)


@dataclass(frozen=True)
class TorsionSpring:
    """Spring, damper and actuator about an axis.

    b is turned against a by torque - damping * rate - stiffness * (turn - rest). The turn is that
    of b about ``axis``, within half a turn of ``rest``; where the axes of a and b are not parallel,
    about the line that halves the angle between them.

    Attributes:
        name: What reports and errors call it.
        a: Frame on one link; its origin does not matter.
        b: Frame on the other; its origin does not matter either.
        axis: In frame a.
        axis_b: The same in frame b; ``axis`` unless given.
        stiffness: [N m/rad]
        damping: [N m s/rad]
        rest: [rad]
        torque: [N m], a number or a function of time.
    """

    name: str
    a: Frame
    b: Frame
    axis: Triple = Z
    axis_b: Triple | None = None
    stiffness: float = 0.0
    damping: float = 0.0
    rest: float = 0.0
    torque: float | Signal = 0.0


@dataclass(frozen=True)
class Bushing:
    """Springs and dampers against all six motions of b in a, at rest where the frames coincide.

    Attributes:
        name: What reports and errors call it.
        a: Its frame on one link.
        b: Its frame on the other.
        stiffness: Along the axes of a [N/m].
        damping: Along the axes of a [N s/m].
        turning_stiffness: On the rotation vector of b in a [N m/rad].
        turning_damping: On its rate [N m s/rad].
    """

    name: str
    a: Frame
    b: Frame
    stiffness: Triple = NOTHING
    damping: Triple = NOTHING
    turning_stiffness: Triple = NOTHING
    turning_damping: Triple = NOTHING


@dataclass(frozen=True)
class Tendon(Stretched):
    """Spring, damper and actuator along a sum of joint positions.

    Its length is the sum of coefficient * position, and it is pulled longer by force - damping *
    rate - stiffness * (length - rest), on each joint by that times its coefficient. MuJoCo calls it
    a tendon of fixed type. Lengths are m, or rad where its coefficients have no unit.

    Attributes:
        name: What reports and errors call it.
        coefficients: Factor of each joint's position by joint name, revolute and prismatic ones.
        stiffness: [N/m or N m/rad]
        damping: [N s/m or N m s/rad]
        rest: Length at which the spring does nothing [m or rad].
        slack: How far from ``rest`` it does nothing, either way; from there on it is stretched.
        force: [N or N m], a number or a function of time.
        limits: Shortest and longest [m or rad]; None for none.
        friction: Largest Coulomb friction [N or N m].
        motor: What a motor along it does at first, by whose name ``System.motors`` know it too;
            None for off.
    """

    name: str
    coefficients: dict[str, float] = field(default_factory=lambda: {})
    stiffness: float = 0.0
    damping: float = 0.0
    rest: float = 0.0
    slack: float = 0.0
    force: float | Signal = 0.0
    limits: tuple[float, float] | None = None
    friction: float = 0.0
    motor: Motor | None = None


@dataclass(frozen=True)
class Wrench:
    """Force and torque from outside on a link, at the origin of a frame of it.

    Each is constant, or a function of (t), of (t, q, v), or of (t, q, v, frame) with the
    ``MovingFrame`` where it acts, that gives three numbers: it is asked at every stage of a step,
    so that integrators keep their order. One under ``numba.njit`` is called from compiled code.
    What must act on two links, as a thruster that pushes off another one does, are two wrenches.

    ``System`` takes it among its ``forces``, under its name.

    Attributes:
        frame: Where it acts, on a link.
        force: [N]
        torque: [N m], besides what the force has about anything but that origin.
        name: What reports and errors call it: that among the forces.
        axes: Frame along whose axes force and torque are given, which turn with its link;
            ``Frame("world")`` for those of the world, those of ``frame`` unless given.
    """

    frame: Frame
    force: Triple | ForceFunction = NOTHING
    torque: Triple | ForceFunction = NOTHING
    axes: Frame | None = None
    name: str = field(default="", kw_only=True)

    @property
    def is_dead_load(self) -> bool:
        """Whether it is one force along axes of the world, which has a potential as weight has."""
        if callable(self.force) or callable(self.torque) or any(self.torque):
            return False
        return self.axes is not None and self.axes.link == WORLD


ForceElement = Spring | TorsionSpring | Bushing | Tendon
"""What acts between two frames, or along several joints."""


def points_of(element: "Spring | TorsionSpring | Bushing") -> tuple[Frame, ...]:
    """Frames that an element is between, from a on."""
    via = element.via if isinstance(element, Spring) else ()
    places = [point.frame if isinstance(point, Round) else point for point in via]
    return element.a, *(place for place in places if isinstance(place, Frame)), element.b


def rods_along(spring: Spring) -> list[Distance]:
    """The row of a spring's length: those of rods along its stretches, added."""
    return [Distance(spring.name, each.a, each.b, 1.0) for each in spring.stretches]
