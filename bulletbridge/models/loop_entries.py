"""Read the entries of ``loops``: one table says which keys each type takes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bulletbridge.constraints.joint_models import TRAVEL, TURN
from bulletbridge.constraints.joints import (
    ELSEWHERE,
    HIGHEST_POWER,
    SOFTNESS,
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
from bulletbridge.models.model_spec import ORIGIN, FileConstraint, Z
from bulletbridge.models.strict_yaml import Node

Keys = dict[str, Node]


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

    def motion(self, keys: Keys) -> Motion | None:
        """The prescribed motion, None when there is none."""
        return _motion(keys["motion"], self.moves) if "motion" in keys else None


def read_constraint(node: Node) -> FileConstraint:
    """A loop of any type.

    Raises:
        LoopFileError: An entry is wrong; the message names line, key and remedy.
    """
    entries = node.table()
    if "type" not in entries:
        node.fail(f"key 'type' is missing; give one of {', '.join(TYPES)}")
    given = entries["type"].text()
    word = given.lower().removeprefix("joint_")  # as of PyBullet's constants
    called = ELSEWHERE.get(word, word)
    if called != given and called in TYPES:
        entries["type"].fail(f"'{given}' is called '{called}' here")
    kind = entries["type"].choice(TYPES)
    keys = node.mapping(
        ("name", "type", *kind.required), (*kind.optional, "motion", *FORCE_LIMIT_KEYS)
    )
    if "erp" in keys and "max_force" not in keys:
        keys["erp"].fail("has no effect without 'max_force'; add that, or remove 'erp'")
    return kind.build(keys)


def _joint(keys: Keys) -> LoopJoint:
    kind = keys["type"].text()
    return LoopJoint(
        keys["name"].text(),
        JointModel(kind),
        read_frame(keys["a"]),
        read_frame(keys["b"]),
        keys["axis"].direction() if "axis" in keys else Z,
        keys["axis_b"].direction() if "axis_b" in keys else None,
        keys["pitch"].nonzero() if "pitch" in keys else 0.0,
        TYPES[kind].motion(keys),
        tuple(_twist(twist) for twist in keys["free"].items()) if "free" in keys else (),
        *_force_limit(keys),
        _freedom(keys[TURN]) if TURN in keys else None,
        _freedom(keys[TRAVEL]) if TRAVEL in keys else None,
        _radius(keys["radius"], "radius" in TYPES[kind].required) if "radius" in keys else 0.0,
    )


def _radius(node: Node, surface: bool) -> float:
    """Radius of a surface, or of a ball that may be a point."""
    return node.positive() if surface else node.not_negative()


def _twist(node: Node) -> Twist:
    numbers = node.numbers()
    if len(numbers) != 6 or not any(numbers):
        node.fail(
            "is no twist; give three rotations and three translations, as in [0, 0, 1, 0, 0, 0.1]"
        )
    wx, wy, wz, x, y, z = numbers
    return wx, wy, wz, x, y, z


def _distance(keys: Keys) -> Distance:
    ends = read_frame(keys["a"]), read_frame(keys["b"])
    motion = TYPES["distance"].motion(keys)
    return Distance(
        keys["name"].text(), *ends, keys["length"].positive(), motion, *_force_limit(keys)
    )


def _coupling(keys: Keys) -> Coupling:
    joints = keys["joints"].table()
    if not joints:
        keys["joints"].fail("is empty; give a factor for each joint, as in {a: 1, b: -2}")
    factors = {name: _factors(node) for name, node in joints.items()}
    return Coupling(
        keys["name"].text(),
        {name: first for name, (first, *_) in factors.items()},
        keys["offset"].number() if "offset" in keys else 0.0,
        TYPES["coupling"].motion(keys),
        *_force_limit(keys),
        {name: tuple(higher) for name, (_, *higher) in factors.items() if higher},
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


def _force_limit(keys: Keys) -> tuple[float | None, float]:
    """Force limit of a constraint, and its erp."""
    erp = keys["erp"].not_negative() if "erp" in keys else SOFTNESS
    if erp > 1.0:
        keys["erp"].fail("must be a share from 0 to 1 of the gap that a step closes")
    return keys["max_force"].not_negative() if "max_force" in keys else None, erp


def _freedom(node: Node) -> LoopAxis:
    springs = ("stiffness", "damping", "rest")
    keys = node.mapping((), ("limits", "friction", "motor", *springs, "force"))
    return LoopAxis(
        read_limits(keys["limits"]) if "limits" in keys else None,
        keys["friction"].not_negative() if "friction" in keys else 0.0,
        read_motor(keys["motor"]) if "motor" in keys else None,
        **spring_numbers(keys, springs),
        force=read_effort(keys["force"]) if "force" in keys else 0.0,
    )


def read_limits(node: Node) -> tuple[float, float]:
    """Lowest and highest position.

    Raises:
        LoopFileError: They are not two numbers in order; the message names line and remedy.
    """
    numbers = node.numbers()
    if len(numbers) != 2 or numbers[0] > numbers[1]:
        node.fail("must be two numbers, the lower one first")
    return numbers[0], numbers[1]


def spring_numbers(keys: Keys, names: tuple[str, ...]) -> dict[str, float]:
    """Numbers of a spring; all but ``rest`` must not be negative.

    Raises:
        LoopFileError: One of them is; the message names line, key and remedy.
    """
    return {
        name: keys[name].number() if name == "rest" else keys[name].not_negative()
        for name in names
        if name in keys
    }


def read_effort(node: Node) -> float | Signal:
    """A force or torque: a number, or a function of time.

    Raises:
        LoopFileError: It is neither; the message names line, key and remedy.
    """
    return read_signal(node) if node.is_mapping() else node.number()


def read_motor(node: Node) -> Motor:
    """What a motor along a free motion or a tendon does.

    Raises:
        LoopFileError: An entry is wrong; the message names line, key and remedy.
    """
    servo = ("stiffness", "damping")
    optional = ("velocity", "position", "velocity_gain", "position_gain", *servo, "least")
    keys = node.mapping(("force",), optional)
    numbers = {name: keys[name].number() for name in optional if name in keys}
    for name in servo:
        if numbers.get(name, 0.0) < 0.0:
            keys[name].fail("must not be negative")
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


ENDS, AXES, FORCE_LIMIT_KEYS = ("a", "b"), ("axis", "axis_b"), ("max_force", "erp")
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
    """A frame on a link.

    Raises:
        LoopFileError: An entry is wrong; the message names line, key and remedy.
    """
    entries = node.table() if node.key.startswith("loops[") else {}
    for name in AXES:
        if name in entries:
            own, end = ("axis", "a") if node.key.endswith("a") else ("axis_b", "b")
            entries[name].fail(f"'{own}' stands beside 'type', in the axes of frame {end}")
    keys = node.mapping(("link",), ("xyz", "rpy"))
    return Frame(
        keys["link"].text(),
        keys["xyz"].triple() if "xyz" in keys else ORIGIN,
        keys["rpy"].triple() if "rpy" in keys else ORIGIN,
    )


def _motion(node: Node, moves: tuple[str, ...]) -> Motion:
    keys = node.mapping((), moves)
    signals = {name: read_signal(value) for name, value in keys.items() if name != "axis"}
    if not signals:
        choices = [name for name in moves if name != "axis"]
        node.fail(f"moves nothing; give a signal for {' or '.join(choices)}")
    if "axis" in keys and "angle" not in keys:
        keys["axis"].fail("turns nothing; add 'angle', or remove it")
    return Motion(**signals, axis=keys["axis"].direction() if "axis" in keys else None)


def read_signal(node: Node) -> Signal:
    """A function of time: the mapping of its kind to its numbers.

    Raises:
        LoopFileError: It is none; the message names line, key and remedy.
    """
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
