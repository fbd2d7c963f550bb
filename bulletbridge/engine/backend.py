"""Linear algebra that steps can be done with: dense or sparse factors of the KKT matrix."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

SolverName = Literal["auto", "dense", "sparse", "islands", "clusters"]


class KktBackend(NamedTuple):
    """The functions that take factors of one kind; what is given a backend is compiled for it.

    Args of all: a, the system; f, factors, or s, a pair of them; instant, the time and what is
    prescribed then; q, v; forces tau (nv,). Failures go into ``control.failure``. Factors have
    ``rows``: the row at place i is ``rows[rows[i].pivot]``, strong ones first, ``control.rank`` of
    them, then weak ones, up to ``control.filter_rank``, then what follows from others.

    Attributes:
        factored: What ``control.factored`` is while s.f are the factors at the present
            configuration.
        update_positions: (a, f, instant, q, v) writes poses and residuals at q.
        update_positions_apart: The same out of line, for what is rare.
        factorise: (a, f, instant) makes factors at the poses.
        factor_at: (a, f, instant, q, v) does both.
        admissible_acceleration: (a, f, q, v, tau, vdot) writes P M⁻¹ (tau - h), with factors of
            this configuration.
        accelerate: (a, f, instant, q, v, tau, vdot) writes vdot (nv,), likewise.
        accelerate_at: (a, f, instant, q, v, tau, vdot) makes factors too.
        correction_step: (a, f, rank) writes the step J⁺ g of the rows at the first places into
            ``vectors[SOLUTION]``; its length in the metric of M.
        bounded_correction: (a, f, rank, limit) writes such a step that goes no further than that
            along any direction that the backend tells apart; see ``dense.bounded_correction``.
        move_back: (a, f, q) takes that step away from q, and keeps the sum of such steps.
        filter_velocity: (a, f, v) v <- P v - J⁺ g_t.
        travelled: (a, f, v) length of v in the metric of M.
        is_unexplained: (a, f) whether rows beyond those that are independent have more of their own
            than was found; ``control.unexplained`` says how much.
        energy_of: (a, f, v) kinetic energy [J], with factors of this configuration.
        find_least: (a, f), see ``plausible.find_least``, with factors of this configuration.
        repeats: Whether Newton's passes are followed by others with the same factors, while these
            gain enough: where new ones take longer than some passes.
    """

    factored: int
    update_positions: Callable[..., None]
    update_positions_apart: Callable[..., None]
    factorise: Callable[..., None]
    factor_at: Callable[..., None]
    admissible_acceleration: Callable[..., None]
    accelerate: Callable[..., None]
    accelerate_at: Callable[..., None]
    correction_step: Callable[..., float]
    bounded_correction: Callable[..., None]
    move_back: Callable[..., None]
    filter_velocity: Callable[..., None]
    travelled: Callable[..., float]
    is_unexplained: Callable[..., bool]
    energy_of: Callable[..., float]
    find_least: Callable[..., None]
    repeats: bool = False


class Stages(NamedTuple):
    """The methods of several stages that a kernel knows.

    Attributes:
        explicit: (accelerate_at, a, s, part, q, v), see ``explicit.explicit_stages``.
        implicit: (a, s, part, again, q, v), see ``radau.radau_stages``.
    """

    explicit: Callable[..., tuple[float, float]]
    implicit: Callable[..., tuple[float, float]]


class Pair(Protocol):
    """Factors, and others for the stages of a method; they may be the same."""

    @property
    def f(self) -> Any:
        """Those at the start of a sub-step, for its correction, then at its end."""

    @property
    def stage(self) -> Any:
        """Those at a stage."""
