"""Text of a loops file, for instance of constraints that a program has set up."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from io import StringIO
from pathlib import Path
from typing import Any, cast

import numpy as np
from ruamel.yaml import YAML

from bulletbridge.constraints.force_elements import (
    ForceElement,
    Pulley,
    Round,
    Tendon,
)
from bulletbridge.constraints.joints import (
    Coupling,
    Frame,
    LoopAxis,
    LoopJoint,
    Motor,
)
from bulletbridge.constraints.motion import (
    Components,
    Motion,
    Polynomial,
    Sine,
    Spline,
)
from bulletbridge.errors import LoopFileError
from bulletbridge.models.force_entries import ELEMENTS
from bulletbridge.models.model_spec import (
    ORIGIN,
    PYBULLET_DATA,
    VERSION,
    BodySpec,
    FileConstraint,
    ModelSpec,
    pybullet_data_folder,
)

MOST_CHARACTERS = 1_000_000
"""A line that is never full."""


def loops_text(spec: ModelSpec, path: Path) -> str:
    """What stands in the loops file of a model, defaults left out.

    Args:
        spec: The model.
        path: Where the file will be; URDFs are named relative to it.

    Raises:
        LoopFileError: A prescribed motion is a Python function.
    """
    data: dict[str, Any] = {"bulletbridge": VERSION}
    bodies = [_say_body(body, path) for body in spec.bodies]
    if len(bodies) == 1 and spec.bodies[0].name == "robot":
        data |= {key: value for key, value in bodies[0].items() if key != "name"}
    else:
        data["bodies"] = bodies
    data["loops"] = [_say_constraint(constraint) for constraint in spec.constraints]
    data |= _unless("actuated", spec.actuated, ())
    data |= _unless("gravity", spec.gravity, None)
    start = _unless("q", spec.start_q, {}) | _unless("v", spec.start_v, {})
    data |= _unless("start", start | _unless("guess", spec.start_guess, {}), {})
    data |= _unless("joint_friction", spec.joint_friction, False)
    data |= _unless("allow_structure", spec.allow_structure, False)
    data |= _unless("joints", {name: _fields(x, name) for name, x in spec.joints.items()}, {})
    forces = [_fields(force, f"{{}} of joint {force.joint}") for force in spec.forces]
    forces += [_say_element(element) for element in spec.elements]
    data |= _unless("forces", forces, [])
    wrenches = [
        {"name": wrench.name, **_fields(wrench, f"{{}} of wrench '{wrench.name}'", "name")}
        for wrench in spec.wrenches
    ]
    data |= _unless("wrenches", wrenches, [])
    stands = [_say_body(body, path) for body in spec.scenery]
    for said in stands:
        del said["fixed_base"]
    data |= _unless("scenery", stands, [])
    data |= _unless("beams", [asdict(beam) for beam in spec.beams], [])
    yaml, out = YAML(typ="rt"), StringIO()
    yaml.default_flow_style = None  # mappings in blocks, their innermost ones on one line
    # a key may not go on in another line, and is broken at its blanks where a line is full
    yaml.width = 100 if not _has_blanks(data) else MOST_CHARACTERS
    yaml.dump(_plain(data), out)
    return out.getvalue()


def _has_blanks(data: object) -> bool:
    """Whether a name that something is given by has a blank in it."""
    if isinstance(data, Mapping):
        entries = cast("Mapping[str, object]", data)
        return any(" " in key or _has_blanks(value) for key, value in entries.items())
    items = cast("list[object]", data) if isinstance(data, list | tuple) else []
    return any(map(_has_blanks, items))


def _unless(key: str, value: Any, default: Any) -> dict[str, Any]:
    """An entry, or none when the reader would put in the same."""
    value = _plain(value)
    return {} if value == _plain(default) else {key: value}


def _plain(value: object) -> Any:
    """Lists, dictionaries and Python's own numbers, whatever a program put in."""
    if isinstance(value, np.ndarray | np.generic):
        return cast("Any", value).tolist()
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Iterable[object]", value)]
    return value


def _say_body(body: BodySpec, path: Path) -> dict[str, Any]:
    own = pybullet_data_folder()
    if own in body.urdf.parents:
        urdf = f"{PYBULLET_DATA}/{body.urdf.relative_to(own).as_posix()}"
    else:
        urdf = Path(os.path.relpath(body.urdf, path.parent.resolve())).as_posix()
    base = _unless("xyz", body.xyz, ORIGIN) | _unless("rpy", body.rpy, ORIGIN)
    said = {"name": body.name, "urdf": urdf, "fixed_base": body.fixed_base}
    return said | _unless("base", base, {}) | _unless("scale", body.scale, 1.0)


def _fields(record: Any, what: str, *others: str) -> dict[str, Any]:
    """Fields of a record, without some others, that differ from what the reader would put in.

    ``what`` is what errors call them, {} the name of a field.
    """
    said: dict[str, Any] = {}
    for field in fields(record):
        value = _plain(getattr(record, field.name))
        if field.name not in others and value != _plain(field.default):
            said[field.name] = _say(value, what.replace("{}", field.name))
    return said


def _say(value: Any, what: str) -> Any:
    """A value of a field."""
    if isinstance(value, list):
        return [_say(each, what) for each in cast("list[object]", value)]
    if isinstance(value, Components):
        return [_say(each, what) for each in value.parts]
    if isinstance(value, Polynomial):
        return {"polynomial": value.coefficients}
    if isinstance(value, Sine | Spline):
        return {type(value).__name__.lower(): asdict(value)}
    if callable(value):
        raise LoopFileError(
            f"the {what} is the Python function {value!r}, which no file can hold; use Sine, "
            f"Polynomial or Spline"
        )
    if isinstance(value, Pulley):
        return {"pulley": value.divisor}
    if isinstance(value, Round):
        return {"round": _say(value.frame, what), **_fields(value, what, "frame")}
    if isinstance(value, LoopAxis):
        return _fields(value, "{} along a free motion")
    if isinstance(value, Motion):
        return _fields(value, "motion along {}")
    if isinstance(value, Frame | Motor):
        return _fields(value, what)
    return value


def _say_constraint(constraint: FileConstraint) -> dict[str, Any]:
    others = ["name", "model", "coefficients", "higher"]
    if constraint.max_force is None:
        others.append("erp")
    said: dict[str, Any] = {"name": constraint.name}
    if isinstance(constraint, Coupling):
        higher = constraint.higher
        factors: dict[str, Any] = {
            name: list(constraint.polynomial(name)) if any(higher.get(name, ())) else factor
            for name, factor in constraint.coefficients.items()
        }
        said |= {"type": "gear", "joints": factors}
    else:
        said["type"] = constraint.model.value if isinstance(constraint, LoopJoint) else "distance"
    return said | _fields(constraint, f"{{}} of '{constraint.name}'", *others)


def _say_element(element: ForceElement) -> dict[str, Any]:
    said: dict[str, Any] = {"name": element.name, "type": ELEMENTS[type(element)]}
    if isinstance(element, Tendon):
        said["joints"] = element.coefficients
    return said | _fields(element, f"{{}} of spring {element.name}", "name", "coefficients")
