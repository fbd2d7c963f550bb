"""Read the entries of ``forces`` that act between two frames, or along several joints."""

from typing import TypedDict

from bulletbridge.constraints.force_elements import (
    Bushing,
    ForceElement,
    LinePoint,
    Pulley,
    Round,
    Spring,
    Tendon,
    TorsionSpring,
    Wrench,
    Z,
)
from bulletbridge.constraints.joints import Motor, Triple
from bulletbridge.constraints.motion import Components
from bulletbridge.models.loop_entries import (
    read_effort,
    read_frame,
    read_limits,
    read_motor,
    spring_numbers,
)
from bulletbridge.models.strict_yaml import Node

SPRING, TORSION_SPRING, BUSHING, TENDON = "spring", "torsion_spring", "bushing", "tendon"
FRAMES = "a", "b"
BOUNDED = "limits", "friction", "motor"
TRIPLES = ("stiffness", "damping", "turning_stiffness", "turning_damping")
ELEMENTS = {Spring: SPRING, TorsionSpring: TORSION_SPRING, Bushing: BUSHING, Tendon: TENDON}
KEYS = {
    SPRING: ("stiffness", "damping", "length", "slack", "force", "via", *BOUNDED),
    TORSION_SPRING: ("axis", "axis_b", "stiffness", "damping", "rest", "torque"),
    BUSHING: TRIPLES,
    TENDON: ("stiffness", "damping", "rest", "slack", "force", *BOUNDED),
}
"""Optional keys by type."""


def is_element(node: Node) -> bool:
    """Whether an entry of ``forces`` is an element with a name, not a force on a joint."""
    entries = node.table()
    return "joint" not in entries and bool(entries.keys() & {"type", "a", "b", "name"})


def read_element(node: Node) -> ForceElement:
    """A force element of any type.

    Raises:
        LoopFileError: An entry is wrong; the message names line, key and remedy.
    """
    entries = node.table()
    if "type" not in entries:
        node.fail(f"key 'type' is missing; give one of {', '.join(KEYS)}, or 'joint'")
    optional = entries["type"].choice(KEYS)
    kind = entries["type"].text()
    keys = node.mapping(("name", "type", *(("joints",) if kind == TENDON else FRAMES)), optional)
    effort = "torque" if kind == TORSION_SPRING else "force"
    if not keys.keys() & {effort, *TRIPLES, *BOUNDED}:
        node.fail(f"exerts nothing; give stiffness, damping or {effort}")
    if kind == TENDON:
        return _tendon(keys)
    ends = keys["name"].text(), read_frame(keys["a"]), read_frame(keys["b"])
    if kind == BUSHING:
        triples = {name: keys[name].triple() for name in TRIPLES if name in keys}
        for name, values in triples.items():
            if min(values) < 0.0:
                keys[name].fail("must not be negative")
        return Bushing(*ends, **triples)
    force = read_effort(keys[effort]) if effort in keys else 0.0
    if kind == SPRING:
        numbers = spring_numbers(keys, ("stiffness", "damping", "length", "slack"))
        via = tuple(map(_read_point, keys["via"].items())) if "via" in keys else ()
        return Spring(*ends, **numbers, force=force, **_bounds(keys), via=via)
    return TorsionSpring(
        *ends,
        keys["axis"].direction() if "axis" in keys else Z,
        keys["axis_b"].direction() if "axis_b" in keys else None,
        **spring_numbers(keys, ("stiffness", "damping", "rest")),
        torque=force,
    )


def _read_point(node: Node) -> LinePoint:
    """What a line goes through: a frame, what it goes round, or a pulley."""
    entries = node.table()
    if "pulley" in entries:
        return Pulley(node.mapping(("pulley",), ())["pulley"].positive())
    if "round" not in entries:
        return read_frame(node)
    keys = node.mapping(("round", "radius"), ("cylinder", "side"))
    return Round(
        read_frame(keys["round"]),
        keys["radius"].positive(),
        keys["cylinder"].flag() if "cylinder" in keys else False,
        keys["side"].triple() if "side" in keys else None,
    )


def _tendon(keys: dict[str, Node]) -> Tendon:
    joints = {name: node.number() for name, node in keys["joints"].table().items()}
    if not joints:
        keys["joints"].fail("is empty; give a factor for each joint, as in {a: 1, b: -2}")
    if not any(joints.values()):
        keys["joints"].fail("has no factor but zero, so that nothing moves it")
    return Tendon(
        keys["name"].text(),
        joints,
        **spring_numbers(keys, ("stiffness", "damping", "rest", "slack")),
        force=read_effort(keys["force"]) if "force" in keys else 0.0,
        **_bounds(keys),
    )


class Bounds(TypedDict):
    """What acts within bounds along a spring or tendon."""

    limits: tuple[float, float] | None
    friction: float
    motor: Motor | None


def _bounds(keys: dict[str, Node]) -> Bounds:
    return {
        "limits": read_limits(keys["limits"]) if "limits" in keys else None,
        "friction": keys["friction"].not_negative() if "friction" in keys else 0.0,
        "motor": read_motor(keys["motor"]) if "motor" in keys else None,
    }


def read_wrench(node: Node) -> Wrench:
    """A wrench, constant or by signals of time.

    Raises:
        LoopFileError: An entry is wrong; the message names line, key and remedy.
    """
    keys = node.mapping(("name", "frame"), ("force", "torque", "axes"))
    pushes = {part: _push(keys[part]) for part in ("force", "torque") if part in keys}
    if all(push == (0.0, 0.0, 0.0) for push in pushes.values()):
        node.fail("exerts nothing; give a force or a torque")
    axes = read_frame(keys["axes"]) if "axes" in keys else None
    return Wrench(read_frame(keys["frame"]), axes=axes, name=keys["name"].text(), **pushes)


def _push(node: Node) -> Triple | Components:
    """Three numbers, or functions of time in the places of some."""
    parts = [read_effort(item) for item in node.items()]
    if len(parts) != 3:
        node.fail(f"must be three numbers or signals [x, y, z], not {len(parts)}")
    x, y, z = parts
    if callable(x) or callable(y) or callable(z):
        return Components(x, y, z)
    return x, y, z
