"""Write loops files, for instance from constraints that a program has set up."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bulletbridge.constraints.loop import Coupling, Distance, Frame, LoopJoint
from bulletbridge.constraints.motion import (
    Motion,
    Polynomial,
    Signal,
    Sine,
    Spline,
    still,
)
from bulletbridge.errors import LoopFileError
from bulletbridge.surface.model_spec import (
    PYBULLET_DATA,
    VERSION,
    BodySpec,
    FileConstraint,
    JointForce,
    ModelSpec,
    Z,
    pybullet_data_folder,
)
from bulletbridge.surface.strict_yaml import write_yaml


def write_loops(spec: ModelSpec, path: str | Path) -> None:
    """Write a loops file that ``read_loops`` reads back as the same model.

    Raises:
        LoopFileError: A prescribed motion is a Python function.
    """
    path = Path(path)
    data: dict[str, Any] = {"bulletbridge": VERSION}
    bodies = [_say_body(body, path) for body in spec.bodies]
    if len(bodies) == 1 and spec.bodies[0].name == "robot":
        data |= {key: value for key, value in bodies[0].items() if key != "name"}
    else:
        data["bodies"] = bodies
    data["loops"] = [_say_constraint(constraint) for constraint in spec.constraints]
    data["actuated"], data["gravity"] = list(spec.actuated), list(spec.gravity)
    data["start"] = {"q": spec.start_q, "v": spec.start_v, "guess": spec.start_guess}
    data["forces"] = [_without_defaults(force) for force in spec.forces]
    write_yaml(data, path)


def _say_body(body: BodySpec, path: Path) -> dict[str, Any]:
    own = pybullet_data_folder()
    if own in body.urdf.parents:
        urdf = f"{PYBULLET_DATA}/{body.urdf.relative_to(own).as_posix()}"
    else:
        urdf = Path(os.path.relpath(body.urdf, path.parent.resolve())).as_posix()
    base = {"xyz": list(body.xyz), "rpy": list(body.rpy)}
    said = {"name": body.name, "urdf": urdf, "fixed_base": body.fixed_base}
    return said | {"base": base, "scale": body.scale}


def _say_constraint(constraint: FileConstraint) -> dict[str, Any]:
    said: dict[str, Any] = {"name": constraint.name}
    if isinstance(constraint, Coupling):
        said |= {"type": "gear", "joints": dict(constraint.coefficients)}
        said["offset"] = constraint.offset
    else:
        kind = constraint.model.value if isinstance(constraint, LoopJoint) else "distance"
        said |= {"type": kind, "a": _say_frame(constraint.a), "b": _say_frame(constraint.b)}
    if isinstance(constraint, Distance):
        said["length"] = constraint.length
    if isinstance(constraint, LoopJoint):
        if constraint.axis != Z:
            said["axis"] = list(constraint.axis)
        if constraint.axis_b is not None:
            said["axis_b"] = list(constraint.axis_b)
        if constraint.pitch:
            said["pitch"] = constraint.pitch
    if constraint.motion is not None:
        said["motion"] = _say_motion(constraint.motion)
    return said


def _say_frame(frame: Frame) -> dict[str, Any]:
    return {"link": frame.link, "xyz": list(frame.xyz), "rpy": list(frame.rpy)}


def _say_motion(motion: Motion) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name in ("x", "y", "z", "angle"):
        signal: Signal = getattr(motion, name)
        if isinstance(signal, Sine):
            said[name] = {"sine": asdict(signal)}
        elif isinstance(signal, Polynomial):
            said[name] = {"polynomial": list(signal.coefficients)}
        elif isinstance(signal, Spline):
            times, values = list(signal.times), list(signal.values)
            said[name] = {"spline": {"times": times, "values": values, "ends": signal.ends}}
        elif signal is not still:
            raise LoopFileError(
                f"the motion along {name} is the Python function {signal!r}, which no file can "
                f"hold; use Sine, Polynomial or Spline"
            )
    return said | ({"axis": list(motion.axis)} if motion.axis is not None else {})


def _without_defaults(force: JointForce) -> dict[str, Any]:
    return {name: value for name, value in asdict(force).items() if value}
