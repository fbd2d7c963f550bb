"""Validation of the fields of constraint descriptions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import cast

import numpy as np

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
    ELSEWHERE,
    Coupling,
    Distance,
    Frame,
    JointModel,
    LoopAxis,
    LoopJoint,
    Motor,
)
from bulletbridge.constraints.motion import Motion
from bulletbridge.errors import ModelError

Check = tuple[str, Callable[[object], bool]]
"""A kind of value in words, and whether something is one."""


def is_real(given: object, shape: tuple[int, ...] = ()) -> bool:
    """Whether something is so many real numbers; NaN and infinity are refused where they matter."""
    try:
        found = np.asarray(given)
    except ValueError:  # lists of different lengths
        return False
    return found.shape == shape and found.dtype.kind in "iufb"


def is_frame(given: object) -> bool:
    """Whether something is a frame on a link."""
    return isinstance(given, Frame) and isinstance(cast(object, given.link), str)


def is_on_line(given: object) -> bool:
    """Whether something is what a line goes through, round or over."""
    if isinstance(given, Pulley):
        return is_real(given.divisor)
    if isinstance(given, Round):
        side = given.side is None or is_real(given.side, (3,))
        return is_frame(given.frame) and is_real(given.radius) and side
    return is_frame(given)


def is_table(given: object, fits: Callable[[object], bool] = is_real) -> bool:
    """Whether something is numbers, or what else fits, by name."""
    if not isinstance(given, Mapping):
        return False
    table = cast(Mapping[object, object], given)
    return all(isinstance(name, str) and fits(value) for name, value in table.items())


def is_list_of_lists(given: object) -> bool:
    """Whether something is a list of lists of numbers."""
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str | bytes):
        return False
    return all(map(is_list, cast(Sequence[object], given)))


def is_list(given: object) -> bool:
    """Whether something is a list of numbers."""
    if not isinstance(given, Sequence | np.ndarray):
        return False
    return is_real(cast(object, given), (len(cast(Sequence[object], given)),))


NUMBER: Check = "a number", is_real
MAYBE: Check = "a number or None", lambda x: x is None or is_real(x)
EFFORT: Check = "a number or a function of time", lambda x: callable(x) or is_real(x)
TRIPLE: Check = "three numbers", lambda x: is_real(x, (3,))
FREEDOM: Check = "a LoopAxis or None", lambda x: x is None or isinstance(x, LoopAxis)
EXPECTED: dict[str, Check] = {
    "name": ("a string", lambda x: isinstance(x, str)),
    "model": ("a JointModel", lambda x: isinstance(x, JointModel)),
    **dict.fromkeys(("a", "b"), ("a Frame on a link by name", is_frame)),
    "axis": TRIPLE,
    "axis_b": ("three numbers or None", lambda x: x is None or is_real(x, (3,))),
    **dict.fromkeys(("pitch", "radius", "length", "erp", "offset", "rest", "slack"), NUMBER),
    **dict.fromkeys(("stiffness", "damping"), NUMBER),
    "max_force": MAYBE,
    **dict.fromkeys(("force", "torque"), EFFORT),
    "motion": ("a Motion or None", lambda x: x is None or isinstance(x, Motion)),
    **dict.fromkeys(("turn", "travel"), FREEDOM),
    "free": ("twists of six numbers", is_list_of_lists),
    "coefficients": ("numbers by joint", is_table),
    "limits": ("two numbers or None", lambda x: x is None or is_real(x, (2,))),
    "friction": NUMBER,
    "motor": ("a Motor or None", lambda x: x is None or isinstance(x, Motor)),
    "higher": ("lists of numbers by joint", lambda x: is_table(x, is_list)),
}
"""Kind of each field, by name, whatever the description."""
OF_BUSHING: dict[str, Check] = {
    **dict.fromkeys(("stiffness", "damping", "turning_stiffness", "turning_damping"), TRIPLE)
}
PUSH: Check = (
    "three numbers, or a function of (t) or (t, q, v) that gives them",
    lambda x: callable(x) or is_real(x, (3,)),
)
OF_SPRING: dict[str, Check] = {
    "via": (
        "a tuple of Frames, Rounds and Pulleys",
        lambda x: isinstance(x, tuple) and all(map(is_on_line, cast(tuple[object, ...], x))),
    )
}
OF_WRENCH: dict[str, Check] = {
    "frame": EXPECTED["a"],
    "axes": ("a Frame or None", lambda x: x is None or is_frame(x)),
    **dict.fromkeys(("force", "torque"), PUSH),
}
OF_FREEDOM: dict[str, Check] = {
    **dict.fromkeys(("friction", "stiffness", "damping", "rest"), NUMBER),
    "force": EFFORT,
    "limits": EXPECTED["limits"],
}
OF_KIND: dict[type, dict[str, Check]] = {Spring: OF_SPRING, Bushing: OF_BUSHING, Wrench: OF_WRENCH}
PLAIN = LoopJoint, Distance, Coupling, Spring, TorsionSpring, Bushing, Tendon, Wrench


def require_fields(constraint: object) -> None:
    """Hold the fields of a description against what they must be; users' own have none."""
    if not isinstance(constraint, PLAIN):
        return
    expected = EXPECTED | OF_KIND.get(type(constraint), {})
    owner = f"{type(constraint).__name__} {cast(object, constraint.name)!r}"
    for field in fields(constraint):
        value: object = getattr(constraint, field.name)
        _require(owner, field.name, value, expected[field.name])
        if isinstance(value, LoopAxis):
            for name, check in OF_FREEDOM.items():
                _require(f"{field.name} of {owner}", name, getattr(value, name), check)


def _require(owner: str, name: str, value: object, check: Check) -> None:
    wanted, fits = check
    if not fits(value):
        if name == "model" and isinstance(value, str):
            called = ELSEWHERE.get(value.lower(), value.lower())
            known = called in {model.value for model in JointModel}
            wanted = f"bb.JointModel.{called.upper()}" if known else wanted
        raise ModelError(f"{owner} has {name} {value!r}; give {wanted}")
