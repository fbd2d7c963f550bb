"""Formulations by name."""

from collections.abc import Callable

from bulletbridge.formulations.baumgarte import Baumgarte
from bulletbridge.formulations.equations import Dynamics, Formulation
from bulletbridge.formulations.multipliers import Multipliers
from bulletbridge.formulations.proximal import Proximal
from bulletbridge.formulations.weighted import Projector

FORMULATIONS: dict[str, Callable[[Dynamics], Formulation]] = {
    "projector": Projector,
    "multipliers": Multipliers,
    "baumgarte": Baumgarte,
    "proximal": Proximal,
}
