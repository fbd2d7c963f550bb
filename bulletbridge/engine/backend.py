"""Linear algebra that steps can be done with: dense or sparse factors of the KKT matrix."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

SolverName = Literal["auto", "dense", "sparse", "islands"]


class KktBackend(NamedTuple):
    """The functions that take factors of one kind; what is given a backend is compiled for it.

    Args of all: a, the system; f, factors, or s, a pair of them; instant, the time and what is
    prescribed then; q, v; forces tau (nv,). Failures go into ``control.failure``.

    Attributes:
        factored: What ``control.factored`` is while s.f are the factors at the present
            configuration.
        factor_at: (a, f, instant, q, v) makes factors.
        admissible_acceleration: (a, f, q, v, tau, vdot) writes P M⁻¹ (tau - h), with factors of
            this configuration.
        accelerate: (a, f, instant, q, v, tau, vdot) writes vdot (nv,), likewise.
        accelerate_at: (a, f, instant, q, v, tau, vdot) makes factors too.
        explicit_stages: (accelerate_at, a, stage, t, w, q, v, targets, tau, first), see
            ``explicit.explicit_stages``.
        implicit_stages: (a, s, t, w, again, q, v, targets, tau), see ``radau.radau_stages``.
        stabilise_step: (a, f, end, q, v) corrects, makes factors, filters.
        energy_of: (a, f, v) kinetic energy [J], with factors of this configuration.
        find_least: (a, f), see ``plausible.find_least``, with factors of this configuration.
    """

    factored: int
    factor_at: Callable[..., None]
    admissible_acceleration: Callable[..., None]
    accelerate: Callable[..., None]
    accelerate_at: Callable[..., None]
    explicit_stages: Callable[..., tuple[float, float]]
    implicit_stages: Callable[..., tuple[float, float]]
    stabilise_step: Callable[..., None]
    energy_of: Callable[..., float]
    find_least: Callable[..., None]


class Pair(Protocol):
    """Factors, and others for the stages of a method; they may be the same."""

    @property
    def f(self) -> Any:
        """Those at the start of a sub-step, for its correction, then at its end."""

    @property
    def stage(self) -> Any:
        """Those at a stage."""
