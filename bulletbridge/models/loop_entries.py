"""Read the entries of ``loops``: one table says which keys each type takes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from bulletbridge.constraints.joint_models import TRAVEL, TURN
from bulletbridge.constraints.joints import (
    ELSEWHERE,
    HIGHEST_POWER,
    Coupling,
    Distance,
    Frame,
    JointModel,
    LoopAxis,
    LoopJoint,
    Motor,
    Twist,
)
from bulletbridge.constraints.motion import Motion, Polynomial, Signal, Sine, Spline
from bulletbridge.models.model_spec import FileConstraint
from bulletbridge.models.strict_yaml import Keys, Node, Readers, read_given


@dataclass(frozen=True)
class LoopType:
    """What a type of loop is made of.

    Attributes:
        build: Constraint from its entries.
        required, optional: Keys besides ``name``, ``type``, ``motion`` and force limits.
        moves: Keys of its ``motion``.
    """

    build: Callable[[Keys], FileConstraint]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    moves: tuple[str, ...] = ("x", "y", "z", "angle", "axis")

    def given(self, keys: Keys, **readers: Callable[[Node], Any]) -> dict[str, Any]:
        """Motion, force limit and what else is given of such a constraint."""
        motion = partial(_motion, moves=self.moves)
        return read_given(keys, {"motion": motion, **FORCE_LIMIT, **readers})


def read_constraint(node: Node) -> FileConstraint:
    """A loop of any type."""
    entries = node.table()
    if "type" not in entries:
        node.fail(f"key 'type' is missing; give one of {', '.join(TYPES)}")
    given = entries["type"].text()
    word = given.lower().removeprefix("joint_")  # as of PyBullet's constants
    called = ELSEWHERE.get(word, word)
    if called != given and called in TYPES:
        entries["type"].fail(f"'{given}' is called '{called}' here")
    kind = entries["type"].choice(TYPES)
    keys = node.mapping(("name", "type", *kind.required), (*kind.optional, "motion", *FORCE_LIMIT))
    if "erp" in keys and "max_force" not in keys:
        keys["erp"].fail("has no effect without 'max_force'; add that, or remove 'erp'")
    return kind.build(keys)


def _joint(keys: Keys) -> LoopJoint:
    kind = keys["type"].text()
    surface = "radius" in TYPES[kind].required  # else of a ball, which may be a point
    given = TYPES[kind].given(
        keys,
        axis=Node.direction,
        axis_b=Node.direction,
        pitch=Node.nonzero,
        free=_twists,
        radius=Node.positive if surface else Node.not_negative,
        **{TURN: _freedom, TRAVEL: _freedom},
    )
    return LoopJoint(keys["name"].text(), JointModel(kind), *_ends(keys), **given)


def _ends(keys: Keys) -> tuple[Frame, Frame]:
    return read_frame(keys["a"]), read_frame(keys["b"])


def _twists(node: Node) -> tuple[Twist, ...]:
    return tuple(map(_twist, node.items()))


def _twist(node: Node) -> Twist:
    numbers = node.numbers()
    if len(numbers) != 6 or not any(numbers):
        node.fail(
            "is no twist; give three rotations and three translations, as in [0, 0, 1, 0, 0, 0.1]"
        )
    wx, wy, wz, x, y, z = numbers
    return wx, wy, wz, x, y, z


def _distance(keys: Keys) -> Distance:
    given = TYPES["distance"].given(keys)
    return Distance(keys["name"].text(), *_ends(keys), keys["length"].positive(), **given)


def _coupling(keys: Keys) -> Coupling:
    joints = keys["joints"].table()
    if not joints:
        keys["joints"].fail("is empty; give a factor for each joint, as in {a: 1, b: -2}")
    factors = {name: _factors(node) for name, node in joints.items()}
    return Coupling(
        keys["name"].text(),
        {name: first for name, (first, *_) in factors.items()},
        higher={name: tuple(higher) for name, (_, *higher) in factors.items() if higher},
        **TYPES["coupling"].given(keys, offset=Node.number),
    )


def _factors(node: Node) -> tuple[float, ...]:
    """Factors of a position, its square, cube and fourth power: a number, or a list of them."""
    if not node.is_list():
        return (node.nonzero(),)
    factors = node.numbers()
    if not 0 < len(factors) <= HIGHEST_POWER or not any(factors):
        node.fail(
            f"must have one to {HIGHEST_POWER} factors: of position, square, cube and fourth"
            " power, not all zero"
        )
    return factors


def _erp(node: Node) -> float:
    erp = node.not_negative()
    if erp > 1.0:
        node.fail("must be a share from 0 to 1 of the gap that a step closes")
    return erp


def _freedom(node: Node) -> LoopAxis:
    return LoopAxis(**read_given(node.mapping((), FREEDOM), FREEDOM))


def read_limits(node: Node) -> tuple[float, float]:
    """Lowest and highest position."""
    numbers = node.numbers()
    if len(numbers) != 2 or numbers[0] > numbers[1]:
        node.fail("must be two numbers, the lower one first")
    return numbers[0], numbers[1]


def read_effort(node: Node) -> float | Signal:
    """A force or torque: a number, or a function of time."""
    return read_signal(node) if node.is_mapping() else node.number()


def read_motor(node: Node) -> Motor:
    """What a motor along a free motion or a tendon does."""
    keys = node.mapping(("force",), MOTOR)
    numbers, servo = read_given(keys, MOTOR), ("stiffness", "damping")
    for name in ("velocity_gain", "position_gain"):
        if name in numbers and any(numbers.get(gain) for gain in servo):
            keys[name].fail(
                "is for motors that set a velocity; remove it, or stiffness and damping"
            )
    if "least" in numbers and not any(numbers.get(name) for name in servo):
        keys["least"].fail("is for servos; add stiffness or damping, or remove it")
    if numbers.get("least", 0.0) > 0.0:
        keys["least"].fail("must not be positive")
    return Motor(keys["force"].not_negative(), **numbers)


ENDS, AXES = ("a", "b"), ("axis", "axis_b")
PLACE: Readers = {"xyz": Node.triple, "rpy": Node.triple}
FORCE_LIMIT: Readers = {"max_force": Node.not_negative, "erp": _erp}
IMPEDANCE: Readers = {"stiffness": Node.not_negative, "damping": Node.not_negative}
BOUNDED: Readers = {"limits": read_limits, "friction": Node.not_negative, "motor": read_motor}
FREEDOM: Readers = {**BOUNDED, **IMPEDANCE, "rest": Node.number, "force": read_effort}
MOTOR: Readers = {
    **dict.fromkeys(("velocity", "position", "velocity_gain", "position_gain"), Node.number),
    **IMPEDANCE,
    "least": Node.number,
}
_COUPLING = LoopType(_coupling, ("joints",), ("offset",), moves=("z",))
TYPES: dict[str, LoopType] = {
    "ball": LoopType(_joint, ENDS),
    "weld": LoopType(_joint, ENDS),
    "revolute": LoopType(_joint, ENDS, (*AXES, TURN)),
    "prismatic": LoopType(_joint, ENDS, (*AXES, TRAVEL)),
    "universal": LoopType(_joint, (*ENDS, "axis_b"), ("axis",)),
    "cylindrical": LoopType(_joint, ENDS, (*AXES, TURN, TRAVEL)),
    "planar": LoopType(_joint, ENDS, AXES),
    "screw": LoopType(_joint, (*ENDS, "pitch"), (*AXES, TURN)),
    "point_on_line": LoopType(_joint, ENDS, ("axis",)),
    "point_on_plane": LoopType(_joint, ENDS, ("axis", "radius")),
    "point_on_sphere": LoopType(_joint, (*ENDS, "radius")),
    "point_on_cylinder": LoopType(_joint, (*ENDS, "radius"), ("axis",)),
    "soft_finger": LoopType(_joint, ENDS, AXES),
    "rolling": LoopType(_joint, ENDS, ("axis", "radius")),
    "pure_rolling": LoopType(_joint, ENDS, ("axis", "radius")),
    "general": LoopType(_joint, (*ENDS, "free")),
    "distance": LoopType(_distance, (*ENDS, "length"), moves=("z",)),
    "gear": _COUPLING,
    "coupling": _COUPLING,
}
"""Every type with its keys; no axis where a turn of that frame changes nothing."""


def read_frame(node: Node) -> Frame:
    """A frame on a link."""
    entries = node.table() if node.key.startswith("loops[") else {}
    for name in AXES:
        if name in entries:
            own, end = ("axis", "a") if node.key.endswith("a") else ("axis_b", "b")
            entries[name].fail(f"'{own}' stands beside 'type', in the axes of frame {end}")
    keys = node.mapping(("link",), PLACE)
    return Frame(keys["link"].text(), **read_given(keys, PLACE))


def _motion(node: Node, moves: tuple[str, ...]) -> Motion:
    keys = node.mapping((), moves)
    signals = {name: read_signal(value) for name, value in keys.items() if name != "axis"}
    if not signals:
        choices = [name for name in moves if name != "axis"]
        node.fail(f"moves nothing; give a signal for {' or '.join(choices)}")
    if "axis" in keys and "angle" not in keys:
        keys["axis"].fail("turns nothing; add 'angle', or remove it")
    return Motion(**signals, **read_given(keys, {"axis": Node.direction}))


def read_signal(node: Node) -> Signal:
    """A function of time: the mapping of its kind to its numbers."""
    keys = node.mapping((), SIGNALS)
    if len(keys) != 1:
        node.fail(f"must be one of {', '.join(SIGNALS)}")
    (name,) = keys
    return SIGNALS[name](keys[name])


def _sine(node: Node) -> Sine:
    keys = node.mapping(("amplitude", "frequency"), ("phase", "offset"))
    return Sine(**{name: value.number() for name, value in keys.items()})


def _polynomial(node: Node) -> Polynomial:
    coefficients = node.numbers()
    if not coefficients:
        node.fail("is empty; give the coefficients from the constant up")
    return Polynomial(coefficients)


def _spline(node: Node) -> Spline:
    keys = node.mapping(("times", "values"), ("ends",))
    times, values = keys["times"].numbers(), keys["values"].numbers()
    if len(times) != len(values) or len(times) < 2:
        node.fail(f"has {len(times)} times and {len(values)} values; give two or more of each")
    if any(later <= earlier for earlier, later in zip(times, times[1:], strict=False)):
        keys["times"].fail("must increase; sort them and remove what is there twice")
    return Spline(times, values, keys["ends"].choice(SPLINE_ENDS) if "ends" in keys else "clamped")


SIGNALS: dict[str, Callable[[Node], Signal]] = {
    "sine": _sine,
    "polynomial": _polynomial,
    "spline": _spline,
}
SPLINE_ENDS: dict[str, Literal["clamped", "natural"]] = {
    "clamped": "clamped",
    "natural": "natural",
}
