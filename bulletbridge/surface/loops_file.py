"""Read loops files: which loops a URDF robot has, where it starts, what acts on it.

The format is described in docs/loops-file.md. Unknown keys are errors.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from bulletbridge.constraints.loop import (
    Coupling,
    Distance,
    Frame,
    JointModel,
    LoopJoint,
)
from bulletbridge.constraints.motion import Motion, Polynomial, Signal, Sine, Spline
from bulletbridge.surface.model_spec import (
    EARTH,
    ORIGIN,
    PYBULLET_DATA,
    VERSION,
    BodySpec,
    FileConstraint,
    JointForce,
    ModelSpec,
    Z,
    pybullet_data_folder,
)
from bulletbridge.surface.strict_yaml import Node, read_yaml


def read_loops(path: str | Path) -> ModelSpec:
    """Read a loops file.

    Raises:
        LoopFileError: Something in it is wrong; the message names line, key and remedy.
        ModelError: There is no such file.
    """
    path = Path(path)
    root = read_yaml(path)
    optional = ("urdf", "bodies", "fixed_base", "base", "scale", "loops", "actuated", "gravity",
                "start", "forces")  # fmt: skip
    keys = root.mapping(("bulletbridge",), optional)
    if keys["bulletbridge"].value != VERSION:
        keys["bulletbridge"].fail(
            f"version {keys['bulletbridge'].value} is unknown; this release reads {VERSION}"
        )
    bodies = _bodies(root, keys)
    constraints = _named([_constraint(item) for item in _list(keys.get("loops"))], "loop")
    actuated = tuple(item.text() for item in _list(keys.get("actuated")))
    start = keys["start"].mapping((), ("q", "v", "guess")) if "start" in keys else {}
    return ModelSpec(
        path.name.removesuffix(".yaml").removesuffix(".loops"),
        path,
        bodies,
        constraints,
        actuated,
        keys["gravity"].triple() if "gravity" in keys else EARTH,
        _values(start.get("q")),
        _values(start.get("v")),
        tuple(_force(item) for item in _list(keys.get("forces"))),
        _values(start.get("guess")),
    )


def _list(node: Node | None) -> list[Node]:
    return [] if node is None else list(node.items())


def _bodies(root: Node, keys: dict[str, Node]) -> tuple[BodySpec, ...]:
    single = ("urdf", "fixed_base", "base", "scale")
    if "bodies" not in keys:
        if "urdf" not in keys:
            root.fail("key 'urdf' is missing; name one file, or several robots under 'bodies'")
        return (_body({key: keys[key] for key in single if key in keys}, "robot"),)
    for key in single:
        if key in keys:
            keys[key].fail("belongs into an entry of 'bodies' when there are several robots")
    found: list[tuple[Node, BodySpec]] = []
    for item in keys["bodies"].items():
        entry = item.mapping(("name", "urdf"), ("fixed_base", "base", "scale"))
        found.append((item, _body(entry, entry["name"].text())))
    return _named(found, "body")


def _body(entry: dict[str, Node], name: str) -> BodySpec:
    base = entry["base"].mapping((), ("xyz", "rpy")) if "base" in entry else {}
    return BodySpec(
        name,
        _urdf(entry["urdf"]),
        entry["fixed_base"].flag() if "fixed_base" in entry else False,
        base["xyz"].triple() if "xyz" in base else ORIGIN,
        base["rpy"].triple() if "rpy" in base else ORIGIN,
        entry["scale"].positive() if "scale" in entry else 1.0,
    )


def _urdf(node: Node) -> Path:
    name = node.text()
    if name.split("/")[0] == PYBULLET_DATA:
        path = pybullet_data_folder().joinpath(*name.split("/")[1:])
    else:
        path = (node.path.parent / name).resolve()
    if not path.is_file():
        node.fail(
            f"there is no file {path}; give a path relative to this file, "
            f"or {PYBULLET_DATA}/... for PyBullet's own"
        )
    return path


def _constraint(node: Node) -> tuple[Node, FileConstraint]:
    keys = node.table()
    if "type" not in keys:
        node.fail(f"key 'type' is missing; give one of {', '.join(CONSTRAINTS)}")
    return node, keys["type"].choice(CONSTRAINTS)(node)


def _joint(model: JointModel, *required: str) -> Callable[[Node], FileConstraint]:
    """Reader for loop joints of one model, with the keys that only it needs."""
    axes = {
        JointModel.BALL: (),
        JointModel.WELD: (),
        JointModel.UNIVERSAL: ("axis",),
    }.get(model, ("axis", "axis_b"))

    def read(node: Node) -> FileConstraint:
        keys = node.mapping(("name", "type", "a", "b", *required), (*axes, "motion"))
        return LoopJoint(
            keys["name"].text(),
            model,
            _frame(keys["a"]),
            _frame(keys["b"]),
            keys["axis"].direction() if "axis" in keys else Z,
            keys["axis_b"].direction() if "axis_b" in keys else None,
            _nonzero(keys["pitch"]) if "pitch" in keys else 0.0,
            _motion(keys.get("motion")),
        )

    return read


def _distance(node: Node) -> FileConstraint:
    keys = node.mapping(("name", "type", "a", "b", "length"), ("motion",))
    ends = _frame(keys["a"]), _frame(keys["b"])
    return Distance(
        keys["name"].text(), *ends, keys["length"].positive(), _motion(keys.get("motion"))
    )


def _coupling(node: Node) -> FileConstraint:
    keys = node.mapping(("name", "type", "joints"), ("offset", "motion"))
    joints = keys["joints"].table()
    if not joints:
        keys["joints"].fail("is empty; give a factor for each joint, as in {a: 1, b: -2}")
    return Coupling(
        keys["name"].text(),
        {name: _nonzero(factor) for name, factor in joints.items()},
        keys["offset"].number() if "offset" in keys else 0.0,
        _motion(keys.get("motion")),
    )


CONSTRAINTS: dict[str, Callable[[Node], FileConstraint]] = {
    **{model.value: _joint(model) for model in JointModel},
    "universal": _joint(JointModel.UNIVERSAL, "axis_b"),
    "screw": _joint(JointModel.SCREW, "pitch"),
    "distance": _distance,
    "gear": _coupling,
    "coupling": _coupling,
}
"""What reads each type; the keys it takes are stated there."""


def _frame(node: Node) -> Frame:
    keys = node.mapping(("link",), ("xyz", "rpy"))
    return Frame(
        keys["link"].text(),
        keys["xyz"].triple() if "xyz" in keys else ORIGIN,
        keys["rpy"].triple() if "rpy" in keys else ORIGIN,
    )


def _nonzero(node: Node) -> float:
    number = node.number()
    if number == 0.0:
        node.fail("must not be zero")
    return number


def _motion(node: Node | None) -> Motion | None:
    if node is None:
        return None
    keys = node.mapping((), ("x", "y", "z", "angle", "axis"))
    signals = {name: _signal(keys[name]) for name in ("x", "y", "z", "angle") if name in keys}
    if not signals:
        node.fail("moves nothing; give a signal for x, y, z or angle")
    return Motion(**signals, axis=keys["axis"].direction() if "axis" in keys else None)


SPLINE_ENDS: dict[str, Literal["clamped", "natural"]] = {
    "clamped": "clamped",
    "natural": "natural",
}


def _signal(node: Node) -> Signal:
    keys = node.mapping((), ("sine", "polynomial", "spline"))
    if len(keys) != 1:
        node.fail("must be one of sine, polynomial, spline")
    if "sine" in keys:
        entry = keys["sine"].mapping(("amplitude", "frequency"), ("phase", "offset"))
        return Sine(**{name: value.number() for name, value in entry.items()})
    if "polynomial" in keys:
        numbers = keys["polynomial"].numbers()
        if not numbers:
            keys["polynomial"].fail("is empty; give the coefficients from the constant up")
        return Polynomial(numbers)
    entry = keys["spline"].mapping(("times", "values"), ("ends",))
    times, values = entry["times"].numbers(), entry["values"].numbers()
    if len(times) != len(values) or len(times) < 2:
        keys["spline"].fail(
            f"has {len(times)} times and {len(values)} values; give two or more of each"
        )
    if any(later <= earlier for earlier, later in zip(times, times[1:], strict=False)):
        entry["times"].fail("must increase")
    ends = entry["ends"].choice(SPLINE_ENDS) if "ends" in entry else "clamped"
    return Spline(times, values, ends)


def _values(node: Node | None) -> dict[str, float | list[float]]:
    if node is None:
        return {}
    entries = node.table().items()
    return {
        name: list(value.numbers()) if isinstance(value.value, list) else value.number()
        for name, value in entries
    }


def _force(node: Node) -> JointForce:
    keys = node.mapping(("joint",), ("torque", "stiffness", "rest", "damping"))
    if len(keys) == 1:
        node.fail("exerts nothing; give torque, stiffness or damping")
    numbers = {name: value.number() for name, value in keys.items() if name != "joint"}
    return JointForce(keys["joint"].text(), **numbers)


def _named(found: "list[tuple[Node, Any]]", what: str) -> tuple[Any, ...]:
    seen: dict[str, int] = {}
    for node, item in found:
        if item.name in seen:
            node.fail(f"the name '{item.name}' is taken by the {what} in line {seen[item.name]}")
        seen[item.name] = node.line
    return tuple(item for _, item in found)
