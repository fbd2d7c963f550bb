"""Parameters of a model's run that a study can change: those of its system, and how it starts."""

from collections.abc import Mapping
from dataclasses import replace

from bulletbridge.models.load import LoadedModel
from bulletbridge.models.model_spec import ModelSpec, Triple
from bulletbridge.system.parameters import (
    changed_constraints,
    parameters_of,
    require_numbers,
)

NO_MODEL = ("dt",)
"""Parameters of the run, not of the model."""


def names_of(model: LoadedModel) -> list[str]:
    """All parameters of a model: those of ``parameters_of``, and its start.

    ``start.JOINT`` and ``rate.JOINT`` are held at the start, ``dt`` is the step [s].
    """
    mechanism, spec = model.system.mechanism, model.spec
    single = [name for name, joint in mechanism.joints.items() if joint.is_single]
    return [
        *parameters_of(mechanism, (*spec.constraints, *spec.elements)),
        *(f"{when}.{name}" for when in ("start", "rate") for name in single),
        *NO_MODEL,
    ]


def changed_spec(spec: ModelSpec, parameters: Mapping[str, float]) -> ModelSpec:
    """The model with what its file says changed.

    Raises:
        ModelError: A number is not possible.
    """
    require_numbers(parameters)
    gravity, start_q, start_v = list(spec.own_gravity), dict(spec.start_q), dict(spec.start_v)
    guess = dict(spec.start_guess)
    for name, value in parameters.items():
        owner, _, field = name.rpartition(".")
        when, _, joint = name.partition(".")
        if owner == "gravity":
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
        constraints=changed_constraints(spec.constraints, parameters),
        elements=changed_constraints(spec.elements, parameters),
    )
