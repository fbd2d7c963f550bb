"""Numbers of a mechanism and its constraints that studies sweep and worlds differ in, by name."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.force_elements import (
    Bushing,
    ForceElement,
    Spring,
    Tendon,
    TorsionSpring,
)
from bulletbridge.constraints.joints import Coupling, Distance, LoopJoint
from bulletbridge.errors import ModelError, refuse_name
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import BEAM
from bulletbridge.numerics.records import are_numbers
from bulletbridge.system.carrying import is_bounded

AXIS_FIELDS = ("armature", "damping", "stiffness", "torque")
"""What acts at a revolute or prismatic joint, besides its friction."""
XYZ = "xyz"
ELEMENTS = Spring, TorsionSpring, Bushing, Tendon
C = TypeVar("C", bound=Constraint | ForceElement)


def parameters_of(
    mechanism: Mechanism, constraints: Iterable[Constraint | ForceElement]
) -> dict[str, float]:
    """Parameters by name, with their present values.

    ``LINK.mass`` is the mass [kg] of the rigid body that the link is part of, whose inertia grows
    with it. ``JOINT.armature``, ``.damping``, ``.stiffness``, ``.torque`` and ``.friction`` act at
    a joint; ``JOINT.origin.x``, ``.y``, ``.z`` [m] say where it is on the body that carries it,
    which is how long that body is. ``ELEMENT.FIELD`` is a number of a spring or tendon,
    ``LOOP.a.x`` to ``LOOP.b.z`` [m] where the frames of a rigid loop are on their links,
    ``ROD.length`` [m] and ``COUPLING.offset`` [rad or m] what they say. ``gravity.x``, ``.y`` and
    ``.z`` [m/s²] are the rest.
    """
    bodies, axes = mechanism.bodies, mechanism.axes
    found = {
        f"{name}.mass": float(bodies[link.body]["mass"])
        for name, link in mechanism.links.items()
        if bodies[link.body]["axis"] >= 0 and is_rigid(mechanism, link.body)
    }
    constraints = list(constraints)
    for name, joint in mechanism.joints.items():
        if joint.is_single:
            axis = axes[joint.v.start]
            found |= {f"{name}.{field}": float(axis[field]) for field in AXIS_FIELDS}
            found[f"{name}.friction"] = joint.friction
    for name, joint in mechanism.joints.items():
        if joint.is_single or joint.kind == "spherical":
            found |= _by_axis(f"{name}.origin", bodies[axes[joint.v.start]["body"]]["p"])
    for one in constraints:
        if isinstance(one, LoopJoint | Distance) and not is_bounded(one):
            found |= _by_axis(f"{one.name}.a", one.a.xyz) | _by_axis(f"{one.name}.b", one.b.xyz)
    for one in constraints:
        found |= {f"{one.name}.{field}": getattr(one, field) for field in numbers(one)}
    return found | _by_axis("gravity", mechanism.gravity)


def _by_axis(owner: str, values: Sequence[float] | np.ndarray) -> dict[str, float]:
    return {f"{owner}.{axis}": float(value) for axis, value in zip(XYZ, values, strict=True)}


def is_rigid(mechanism: Mechanism, body: int) -> bool:
    """Whether a body is no beam and has a mass to scale."""
    record = mechanism.bodies[body]
    return bool(record["joint"] != BEAM and record["mass"] > 0.0)


def numbers(constraint: Constraint | ForceElement) -> tuple[str, ...]:
    """Fields of a constraint or spring that are numbers of their own."""
    if isinstance(constraint, Spring | Tendon) and constraint.bounded and not constraint.springs:
        return ()  # a motor, limits or friction alone
    if isinstance(constraint, ELEMENTS):
        own = [f for f in fields(constraint) if f.name != "friction"]  # acts by an inequality
        return tuple(f.name for f in own if isinstance(getattr(constraint, f.name), float))
    if isinstance(constraint, Distance) and not is_bounded(constraint):
        return ("length",)
    return ("offset",) if isinstance(constraint, Coupling) and not is_bounded(constraint) else ()


def number_of(mechanism: Mechanism, name: str) -> str | int:
    """What a parameter is the number of: links of one body have one mass, by many names."""
    owner, _, field = name.rpartition(".")
    return mechanism.links[owner].body if field == "mass" and owner in mechanism.links else name


def require_known(kind: str, name: str, known: Iterable[str]) -> None:
    """Refuse a name that does not exist."""
    known = list(known)
    if name not in known:
        refuse_name(kind, name, known)


def changed_mechanism(
    mechanism: Mechanism,
    constraints: Iterable[Constraint | ForceElement],
    parameters: Mapping[str, float],
) -> Mechanism:
    """The mechanism with masses, what acts at joints, their places and gravity changed.

    Args:
        mechanism: As it is.
        constraints: Whose numbers come first where they are called like a joint.
        parameters: By name; those that are none of the mechanism's are left to others.

    Raises:
        ModelError: A number is not possible.
    """
    bodies, axes = mechanism.bodies.copy(), mechanism.axes.copy()
    joints, gravity = dict(mechanism.joints), np.array(mechanism.gravity, np.float64)
    others = {f"{one.name}.{field}" for one in constraints for field in numbers(one)}
    for name, value in parameters.items():
        if name in others:
            continue
        owner, _, field = name.rpartition(".")
        place, _, what = owner.rpartition(".")
        if field == "mass" and owner in mechanism.links:
            if not value > 0.0:
                raise ModelError(f"{name} is {value:g} kg; give a positive mass")
            body = bodies[mechanism.links[owner].body]
            body["J"] *= value / body["mass"]
            body["mass"] = value
        elif owner == "gravity":
            gravity[XYZ.index(field)] = value
        elif what == "origin" and place in joints:
            bodies[axes[joints[place].v.start]["body"]]["p"][XYZ.index(field)] = value
        elif owner in joints and field == "friction":
            if value < 0.0:
                raise ModelError(f"{name} is {value:g}; give a number that is not negative")
            joints[owner] = replace(joints[owner], friction=value)
        elif owner in joints and field in AXIS_FIELDS:
            axes[joints[owner].v.start][field] = value
    return replace(mechanism, bodies=bodies, axes=axes, joints=joints, gravity=gravity)


def changed_constraints(constraints: Iterable[C], parameters: Mapping[str, float]) -> tuple[C, ...]:
    """Constraints or springs with their numbers changed; those of others are left to them."""
    found = {one.name: one for one in constraints}
    for name, value in parameters.items():
        owner, _, field = name.rpartition(".")
        loop, _, end = owner.rpartition(".")
        one: Any = found.get(owner)
        if one is not None and field in numbers(one):
            found[owner] = replace(one, **{field: value})
        elif loop in found and end in ("a", "b") and field in tuple(XYZ):
            one = found[loop]
            frame = getattr(one, end)
            xyz = [value if axis == field else x for axis, x in zip(XYZ, frame.xyz, strict=True)]
            found[loop] = replace(one, **{end: replace(frame, xyz=tuple(xyz))})
    return tuple(found.values())


def moves_frames(constraints: Iterable[Constraint], parameters: Iterable[str]) -> bool:
    """Whether loops that were closed may be open once these parameters have changed."""
    springs = {"gravity", *(one.name for one in constraints if isinstance(one, ELEMENTS))}
    places = (*XYZ, "length", "offset")
    split = (name.rpartition(".") for name in parameters)
    return any(field in places and owner not in springs for owner, _, field in split)


def require_numbers(parameters: Mapping[str, float]) -> None:
    """Refuse what is not finite."""
    for name, value in parameters.items():
        if not are_numbers(value):
            raise ModelError(f"{name} is {value!r}; give a finite number")


def require_possible(
    mechanism: Mechanism, constraints: Sequence[Constraint], surfaces: Mapping[str, float]
) -> None:
    """Refuse numbers of the joints, springs, rods and surfaces that mean nothing."""
    found: dict[str, float] = {}
    for name, joint in mechanism.joints.items():
        if joint.is_single:
            axis = mechanism.axes[joint.v.start]
            found |= {f"{name}.{field}": float(axis[field]) for field in AXIS_FIELDS[:-1]}
    for one in constraints:
        if isinstance(one, Distance) and not one.length > 0.0:
            raise ModelError(f"{one.name}.length is {one.length:g} m; give a positive one")
        if isinstance(one, ELEMENTS):
            own = [field for field in ("stiffness", "damping") if field in numbers(one)]
            found |= {f"{one.name}.{field}": getattr(one, field) for field in own}
    for name, value in (found | {**surfaces}).items():
        if value < 0.0:
            raise ModelError(f"{name} is {value:g}; give a number that is not negative")
