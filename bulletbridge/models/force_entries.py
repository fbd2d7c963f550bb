"""Read the entries of ``forces`` that act between two frames, or along several joints."""

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
)
from bulletbridge.constraints.joints import Triple
from bulletbridge.constraints.motion import Components
from bulletbridge.models.loop_entries import BOUNDED, IMPEDANCE, read_effort, read_frame
from bulletbridge.models.strict_yaml import Node, Readers, read_given

SPRING, TORSION_SPRING, BUSHING, TENDON = "spring", "torsion_spring", "bushing", "tendon"
FRAMES = "a", "b"
TRIPLES = ("stiffness", "damping", "turning_stiffness", "turning_damping")
BETWEEN_FRAMES = {SPRING: Spring, TORSION_SPRING: TorsionSpring, BUSHING: Bushing}
ELEMENTS = {**{made: kind for kind, made in BETWEEN_FRAMES.items()}, Tendon: TENDON}


def is_element(node: Node) -> bool:
    """Whether an entry of ``forces`` is an element with a name, not a force on a joint."""
    entries = node.table()
    return "joint" not in entries and bool(entries.keys() & {"type", "a", "b", "name"})


def read_element(node: Node) -> ForceElement:
    """A force element of any type."""
    entries = node.table()
    if "type" not in entries:
        node.fail(f"key 'type' is missing; give one of {', '.join(KEYS)}, or 'joint'")
    optional = entries["type"].choice(KEYS)
    kind = entries["type"].text()
    keys = node.mapping(("name", "type", *(("joints",) if kind == TENDON else FRAMES)), optional)
    effort = "torque" if kind == TORSION_SPRING else "force"
    if not keys.keys() & {effort, *TRIPLES, *BOUNDED}:
        node.fail(f"exerts nothing; give stiffness, damping or {effort}")
    name, given = keys["name"].text(), read_given(keys, optional)
    if kind == TENDON:
        return Tendon(name, _factors(keys["joints"]), **given)
    make = BETWEEN_FRAMES[kind]
    return make(name, read_frame(keys["a"]), read_frame(keys["b"]), **given)


def _read_point(node: Node) -> LinePoint:
    """What a line goes through: a frame, what it goes round, or a pulley."""
    entries = node.table()
    if "pulley" in entries:
        return Pulley(node.mapping(("pulley",), ())["pulley"].positive())
    if "round" not in entries:
        return read_frame(node)
    keys = node.mapping(("round", "radius"), ("cylinder", "side"))
    given = read_given(keys, {"cylinder": Node.flag, "side": Node.triple})
    return Round(read_frame(keys["round"]), keys["radius"].positive(), **given)


def _read_line(node: Node) -> tuple[LinePoint, ...]:
    return tuple(map(_read_point, node.items()))


def _not_negative_triple(node: Node) -> Triple:
    values = node.triple()
    if min(values) < 0.0:
        node.fail("must not be negative")
    return values


def _factors(node: Node) -> dict[str, float]:
    """Factors of joints in the length of a tendon."""
    joints = {name: factor.number() for name, factor in node.table().items()}
    if not joints:
        node.fail("is empty; give a factor for each joint, as in {a: 1, b: -2}")
    if not any(joints.values()):
        node.fail("has no factor but zero, so that nothing moves it")
    return joints


SLACK: Readers = {"slack": Node.not_negative, "force": read_effort}
KEYS: dict[str, Readers] = {
    SPRING: {**IMPEDANCE, "length": Node.not_negative, **SLACK, "via": _read_line, **BOUNDED},
    TORSION_SPRING: {
        **{"axis": Node.direction, "axis_b": Node.direction},
        **IMPEDANCE,
        **{"rest": Node.number, "torque": read_effort},
    },
    BUSHING: dict.fromkeys(TRIPLES, _not_negative_triple),
    TENDON: {**IMPEDANCE, "rest": Node.number, **SLACK, **BOUNDED},
}
"""Optional keys by type."""


def read_wrench(node: Node) -> Wrench:
    """A wrench, constant or by signals of time."""
    keys = node.mapping(("name", "frame"), ("force", "torque", "axes"))
    pushes = read_given(keys, {"force": _push, "torque": _push})
    if all(push == (0.0, 0.0, 0.0) for push in pushes.values()):
        node.fail("exerts nothing; give a force or a torque")
    axes = read_given(keys, {"axes": read_frame})
    return Wrench(read_frame(keys["frame"]), name=keys["name"].text(), **axes, **pushes)


def _push(node: Node) -> Triple | Components:
    """Three numbers, or functions of time in the places of some."""
    parts = [read_effort(item) for item in node.items()]
    if len(parts) != 3:
        node.fail(f"must be three numbers or signals [x, y, z], not {len(parts)}")
    x, y, z = parts
    if callable(x) or callable(y) or callable(z):
        return Components(x, y, z)
    return x, y, z
