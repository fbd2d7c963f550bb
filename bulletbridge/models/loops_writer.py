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
    LinePoint,
    Pulley,
    Round,
    Tendon,
    Wrench,
)
from bulletbridge.constraints.joints import (
    SOFTNESS,
    Coupling,
    Distance,
    Frame,
    LoopAxis,
    LoopJoint,
    Motor,
)
from bulletbridge.constraints.motion import (
    Components,
    Motion,
    Polynomial,
    Signal,
    Sine,
    Spline,
    still,
)
from bulletbridge.errors import LoopFileError
from bulletbridge.mechanism.joint_properties import JointProperties
from bulletbridge.models.force_entries import ELEMENTS
from bulletbridge.models.model_spec import (
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
    data |= _unless("joints", {n: _say_properties(p) for n, p in spec.joints.items()}, {})
    forces = [_without_zeros(force) for force in spec.forces]
    forces += [_say_element(element) for element in spec.elements]
    data |= _unless("forces", forces, [])
    data |= _unless("wrenches", [_say_wrench(wrench) for wrench in spec.wrenches], [])
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


def _say_constraint(constraint: FileConstraint) -> dict[str, Any]:
    said: dict[str, Any] = {"name": constraint.name}
    if isinstance(constraint, Coupling):
        higher = constraint.higher
        factors: dict[str, Any] = {
            name: list(constraint.polynomial(name)) if any(higher.get(name, ())) else factor
            for name, factor in constraint.coefficients.items()
        }
        said |= {"type": "gear", "joints": factors}
        said |= _unless("offset", constraint.offset, 0.0)
    else:
        kind = constraint.model.value if isinstance(constraint, LoopJoint) else "distance"
        said |= {"type": kind, "a": _say_frame(constraint.a), "b": _say_frame(constraint.b)}
    if isinstance(constraint, Distance):
        said["length"] = constraint.length
    if isinstance(constraint, LoopJoint):
        said |= _unless("axis", constraint.axis, Z) | _unless("axis_b", constraint.axis_b, None)
        said |= _unless("pitch", constraint.pitch, 0.0)
        said |= _unless("radius", constraint.radius, 0.0)
        said |= _unless("free", [list(twist) for twist in constraint.free], [])
    if constraint.motion is not None:
        said["motion"] = _say_motion(constraint.motion)
    if constraint.max_force is not None:
        said |= {"max_force": constraint.max_force} | _unless("erp", constraint.erp, SOFTNESS)
    if isinstance(constraint, LoopJoint):
        for key, freedom in (("turn", constraint.turn), ("travel", constraint.travel)):
            if freedom is not None:
                said[key] = _say_freedom(freedom)
    return said


def _say_freedom(freedom: LoopAxis) -> dict[str, Any]:
    said = _unless("limits", freedom.limits, None) | _unless("friction", freedom.friction, 0.0)
    if freedom.motor is not None:
        said["motor"] = _say_motor(freedom.motor)
    for name in ("stiffness", "damping", "rest"):
        said |= _unless(name, getattr(freedom, name), 0.0)
    return said | _say_effort("force", freedom.force, "force along a free motion")


def _say_motor(motor: Motor) -> dict[str, Any]:
    plain = asdict(Motor(motor.force))
    return {k: v for k, v in asdict(motor).items() if k == "force" or v != plain[k]}


def _say_effort(key: str, effort: float | Signal, what: str) -> dict[str, Any]:
    if callable(effort):
        return {key: _say_signal(effort, what)}
    return _unless(key, effort, 0.0)


def _say_element(element: ForceElement) -> dict[str, Any]:
    said: dict[str, Any] = {"name": element.name, "type": ELEMENTS[type(element)]}
    if isinstance(element, Tendon):
        said["joints"] = element.coefficients
    else:
        said |= {"a": _say_frame(element.a), "b": _say_frame(element.b)}
    for field in fields(element):
        value = getattr(element, field.name)
        if field.name in ("force", "torque"):
            said |= _say_effort(field.name, value, f"{field.name} of spring {element.name}")
        elif isinstance(value, Motor):
            said["motor"] = _say_motor(value)
        elif field.name == "via":
            said |= {"via": [_say_point(point) for point in value]} if value else {}
        elif field.name not in said and field.name != "coefficients":
            said |= _unless(field.name, value, field.default)
    return said


def _say_point(point: LinePoint) -> dict[str, Any]:
    """What a line goes through, round or over."""
    if isinstance(point, Pulley):
        return {"pulley": point.divisor}
    if isinstance(point, Round):
        said = {"round": _say_frame(point.frame), "radius": point.radius}
        said |= _unless("cylinder", point.cylinder, False)
        return said | _unless("side", point.side, None)
    return _say_frame(point)


def _say_wrench(wrench: Wrench) -> dict[str, Any]:
    said: dict[str, Any] = {"name": wrench.name, "frame": _say_frame(wrench.frame)}
    for part in ("force", "torque"):
        given: object = getattr(wrench, part)
        what = f"{part} of wrench '{wrench.name}'"
        if isinstance(given, Components):
            said[part] = [_say_signal(x, what) if callable(x) else x for x in given.parts]
        elif callable(given):
            raise LoopFileError(
                f"the {what} is the Python function {given!r}, which no file can hold; give"
                " three numbers, or signals in the entry itself"
            )
        else:
            said |= _unless(part, given, ORIGIN)
    return said | ({} if wrench.axes is None else {"axes": _say_frame(wrench.axes)})


def _say_frame(frame: Frame) -> dict[str, Any]:
    return (
        {"link": frame.link} | _unless("xyz", frame.xyz, ORIGIN) | _unless("rpy", frame.rpy, ORIGIN)
    )


def _say_motion(motion: Motion) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name in ("x", "y", "z", "angle"):
        signal: Signal = getattr(motion, name)
        if signal is not still:
            said[name] = _say_signal(signal, f"motion along {name}")
    return said | _unless("axis", motion.axis, None)


def _say_signal(signal: Signal, what: str) -> dict[str, Any]:
    if isinstance(signal, Sine):
        return {"sine": asdict(signal)}
    if isinstance(signal, Polynomial):
        return {"polynomial": signal.coefficients}
    if isinstance(signal, Spline):
        return {"spline": asdict(signal)}
    raise LoopFileError(
        f"the {what} is the Python function {signal!r}, which no file can hold; use Sine, "
        f"Polynomial or Spline"
    )


def _say_properties(given: JointProperties) -> dict[str, Any]:
    return {name: value for name, value in asdict(given).items() if value is not None}


def _without_zeros(force: JointForce) -> dict[str, Any]:
    said = {name: value for name, value in vars(force).items() if value}
    if callable(force.torque):
        said["torque"] = _say_signal(force.torque, f"torque of joint {force.joint}")
    return said
