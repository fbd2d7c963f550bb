"""Parameters of a model that a study can change, by name."""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from difflib import get_close_matches

from bulletbridge.constraints.force_elements import ForceElement
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import Joint, Mechanism
from bulletbridge.mechanism.records import BEAM
from bulletbridge.models.load import LoadedModel
from bulletbridge.models.model_spec import ModelSpec, Triple

JOINT_FIELDS = ("armature", "damping", "stiffness", "torque")
"""Parameters of a revolute or prismatic joint, besides its start and its rate there."""
NO_MODEL = ("dt",)
"""Parameters of the run, not of the model."""


def names_of(model: LoadedModel) -> list[str]:
    """All parameters of a model.

    ``LINK.mass`` is the mass [kg] of the rigid body that the link is part of, whose inertia grows
    with it. ``JOINT.armature``, ``.damping``, ``.stiffness`` and ``.torque`` act at a joint,
    ``ELEMENT.FIELD`` is a number of a spring between frames. ``start.JOINT`` and ``rate.JOINT`` are
    held at the start. ``gravity.x``, ``.y``, ``.z`` [m/s²] and the step ``dt`` [s] are the rest.
    """
    mechanism = model.system.mechanism
    masses = [
        f"{name}.mass"
        for name, link in mechanism.links.items()
        if mechanism.bodies[link.body]["axis"] >= 0 and is_rigid(mechanism, link.body)
    ]
    single = [name for name, joint in mechanism.joints.items() if is_single(joint)]
    return [
        *masses,
        *(f"{one.name}.{field}" for one in model.spec.elements for field in numbers(one)),
        *(f"{name}.{field}" for name in single for field in JOINT_FIELDS),
        *(f"{when}.{name}" for when in ("start", "rate") for name in single),
        *(f"gravity.{axis}" for axis in "xyz"),
        *NO_MODEL,
    ]  # fmt: skip


def is_rigid(mechanism: Mechanism, body: int) -> bool:
    """Whether a body is no beam and has a mass to scale."""
    record = mechanism.bodies[body]
    return bool(record["joint"] != BEAM and record["mass"] > 0.0)


def is_single(joint: Joint) -> bool:
    """Whether a joint has one coordinate."""
    return joint.kind in ("revolute", "prismatic")


def numbers(element: ForceElement) -> list[str]:
    """Fields of a force element that are numbers."""
    return [f.name for f in fields(element) if isinstance(getattr(element, f.name), float)]


def require_known(kind: str, name: str, known: list[str]) -> None:
    """Refuse a name that does not exist.

    Raises:
        ModelError: It lists the nearest ones.
    """
    if name not in known:
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are: {', '.join(known)}"
        raise ModelError(f"unknown {kind} '{name}'; {hint}")


def changed_spec(spec: ModelSpec, parameters: Mapping[str, float]) -> ModelSpec:
    """The model with what its file says changed.

    Raises:
        ModelError: A number is not possible.
    """
    gravity, start_q, start_v = list(spec.own_gravity), dict(spec.start_q), dict(spec.start_v)
    elements = {element.name: element for element in spec.elements}
    guess = dict(spec.start_guess)
    for name, value in parameters.items():
        if not math.isfinite(value):
            raise ModelError(f"{name} is {value}; give a finite number")
        owner, _, field = name.rpartition(".")
        when, _, joint = name.partition(".")
        if owner in elements:
            elements[owner] = replace(elements[owner], **{field: value})
        elif owner == "gravity":
            gravity["xyz".index(field)] = value
        elif when == "start":
            start_q[joint] = value
            guess.pop(joint, None)
        elif when == "rate":
            start_v[joint] = value
    pulled: Triple = (gravity[0], gravity[1], gravity[2])
    return replace(
        spec,
        gravity=pulled,
        start_q=start_q,
        start_v=start_v,
        start_guess=guess,
        elements=tuple(elements.values()),
    )


def changed_mechanism(
    mechanism: Mechanism, spec: ModelSpec, parameters: Mapping[str, float]
) -> Mechanism:
    """The mechanism with masses and what acts at joints changed.

    Raises:
        ModelError: A mass is not positive.
    """
    bodies, axes = mechanism.bodies.copy(), mechanism.axes.copy()
    elements = {element.name for element in spec.elements}
    for name, value in parameters.items():
        owner, _, field = name.rpartition(".")
        if owner in elements:
            continue
        if field == "mass" and owner in mechanism.links:
            if value <= 0.0:
                raise ModelError(f"{name} is {value:g} kg; give a positive mass")
            body = bodies[mechanism.links[owner].body]
            body["J"] *= value / body["mass"]
            body["mass"] = value
        elif field in JOINT_FIELDS and owner in mechanism.joints:
            axes[mechanism.joints[owner].v.start][field] = value
    return replace(mechanism, bodies=bodies, axes=axes)
