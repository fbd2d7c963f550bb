"""Formulations by name."""

from collections.abc import Callable

from bulletbridge.errors import ModelError
from bulletbridge.formulations.elimination import Elimination
from bulletbridge.formulations.equations import Dynamics, Formulation
from bulletbridge.formulations.modular import Modular
from bulletbridge.formulations.multipliers import Baumgarte, Multipliers
from bulletbridge.formulations.projector import Projector, TangentSpace
from bulletbridge.formulations.proximal import Proximal
from bulletbridge.formulations.quasi_velocities import ReducedQuasiVelocities

FORMULATIONS: dict[str, Callable[[Dynamics], Formulation]] = {
    "projector": Projector,
    "elimination": Elimination,
    "quasi_velocities": ReducedQuasiVelocities,
    "tangent_space": TangentSpace,
    "multipliers": Multipliers,
    "baumgarte": Baumgarte,
    "proximal": Proximal,
    "modular": Modular,
}


def formulation_of(
    name: str | Callable[[Dynamics], Formulation],
) -> Callable[[Dynamics], Formulation]:
    """The formulation of this name; a function that makes one is returned as it is.

    Raises:
        ModelError: There is no such formulation.
    """
    if not isinstance(name, str):
        return name
    if name not in FORMULATIONS:
        raise ModelError(f"unknown formulation '{name}'; there are {', '.join(FORMULATIONS)}")
    return FORMULATIONS[name]
