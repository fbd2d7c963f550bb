"""Configuration correction and velocity filter on the equations of any system.

The compiled step has its own. Corrections come first, the filter at the corrected configuration.
Source: Kövecses and Piedbœuf 2003, eq. 33 (filter), 35 (directions of the start), 36 (current).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import numpy as np

from bulletbridge.engine.correction import GAINED, MOST_CHORD_PASSES, MOST_NEWTON_PASSES
from bulletbridge.errors import StepError
from bulletbridge.formulations.admissible import admissible
from bulletbridge.formulations.equations import Dynamics, Equations, Split
from bulletbridge.formulations.modular import ModularEquations, ModularSplit
from bulletbridge.numerics.records import Array

FILTER_RTOL = 1e-10
"""Rows weaker than this, relative to the strongest, are not filtered."""
CLOSED, ACCEPTED = 2e-14, 1e-12
"""Gap, rows in one unit, that ends the correction, and that it may stop at when it gains no more.

Times the length of q where that exceeds one: residuals are no better than the coordinates."""


Closable = Equations | ModularEquations
"""What correction and filter are told of a system at a state."""


@dataclass(frozen=True)
class Seen:
    """A system that correction and filter see by other equations than it moves by.

    Attributes:
        equations, displace: As ``Dynamics`` has them.
    """

    equations: Callable[[Array, Array, float], Closable]
    displace: Callable[[Array, Array], Array]


class Stabilised(NamedTuple):
    """A state after correction and filter.

    Attributes:
        q, v: The state.
        passes: Correction passes.
        rank: Independent rows.
        margin: Weakest independent row over the strongest.
        gap, dependent_gap: Largest residual of independent rows, and of weak and dependent ones,
            rows in one unit.
    """

    q: Array
    v: Array
    passes: int
    rank: int
    margin: float
    gap: float
    dependent_gap: float


@dataclass(frozen=True)
class Stabilisation:
    """What follows a step of an integrator.

    Attributes:
        directions: Of the correction: those at the ``start`` of the step (a chord method), or
            ``current`` (Newton).
        passes: Fixed number of passes; None for as many as round-off takes, with current
            directions from where those of the start gain less than the compiled step asks of them.
        filtered: Whether the velocity is filtered; iterated only where rows are nonlinear in v.
    """

    directions: Literal["start", "current"] = "start"
    passes: int | None = None
    filtered: bool = True

    def __call__(
        self, dynamics: Dynamics | Seen, start: Array, q: Array, v: Array, t: float
    ) -> Stabilised:
        """Bring (q, v) at time t back, after a step from the configuration ``start``.

        Raises:
            StepError: The correction does not end, or the filter of nonlinear rows.
        """
        q, e, passes = self._correct(dynamics, start, q, v, t)
        split = e.split(FILTER_RTOL)
        if self.filtered and not e.nonlinear:
            v = split.filtered(v, e.g_t)
        elif self.filtered:

            def nearest(now: Equations, v: Array) -> Array:
                known = split if now is e else now.split(FILTER_RTOL)
                return known.filtered(v, now.g_t)

            v = admissible(cast(Dynamics, dynamics), cast(Equations, e), q, v, t, nearest)
        sizes, ranked = np.abs(e.unit * e.g), split.ranked()
        independent = ranked.independent
        gap = float(sizes[independent].max(initial=0.0))
        dependent_gap = float(sizes[~independent].max(initial=0.0))
        rank = int(independent.sum())
        return Stabilised(q, v, passes, rank, ranked.margin, gap, dependent_gap)

    def _correct(
        self, dynamics: Dynamics | Seen, start: Array, q: Array, v: Array, t: float
    ) -> tuple[Array, Closable, int]:
        """The corrected configuration, the equations there, and the passes it took."""
        e = dynamics.equations(q, v, t)
        if self.passes == 0 or not len(e.g):
            return q, e, 0
        chord: Split | ModularSplit | None = None
        if self.directions == "start":
            chord = dynamics.equations(start, v, t).split()
        last = np.inf
        most = MOST_CHORD_PASSES + MOST_NEWTON_PASSES
        for n in range(most if self.passes is None else self.passes):
            split = chord or e.split()
            gap = float(np.abs(e.unit * e.g)[split.ranked().independent].max(initial=0.0))
            if self.passes is None:
                size = max(1.0, float(np.abs(q).max(initial=0.0)))
                if gap <= CLOSED * size or (gap <= ACCEPTED * size and not gap < 0.5 * last):
                    return q, e, n
                if chord is not None and (n == MOST_CHORD_PASSES or not gap < GAINED * last):
                    chord, split = None, e.split()
            last = gap
            q = dynamics.displace(q, split.back(e.g))
            e = dynamics.equations(q, v, t)
        if self.passes is None:
            raise StepError(
                f"constraints stay open by {last:.3g} lengths or radians after {most} "
                f"correction passes; use a smaller step"
            )
        return q, e, self.passes
