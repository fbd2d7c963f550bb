"""Modified integration: velocities are carried uncorrected, and corrected where they are used.

States are q and a velocity ξ. At every stage q moves by the velocity nearest to ξ that satisfies
the rows, in a metric of choice, and ξ̇ is the acceleration there. Velocity constraints hold to
round-off; position errors are those of the quadrature alone, and are never removed.

Systems of the projector step so in compiled code (``engine.modified``).

Source: Eun, Park, Lee and Chung 2004, eq. 38 to 40, with the bracket's sign put right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from bulletbridge.engine.modified import ROUND_OFF
from bulletbridge.errors import ModelError
from bulletbridge.formulations.admissible import admissible
from bulletbridge.formulations.elimination import Elimination
from bulletbridge.formulations.equations import (
    Dynamics,
    Equations,
    Formulation,
    Solution,
    split_of,
)
from bulletbridge.mechanism.by_joint import Values, put_values
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, are_numbers

Metric = Literal["condensed", "mass", "identity"]
Weighting = Metric | Sequence[float] | Sequence[Sequence[float]] | Array | Values
"""H of J⁺ = H⁻¹ Jᵀ (J H⁻¹ Jᵀ)⁻¹: by name, (nv,) on its diagonal, by joint, or all of it (nv, nv).

``condensed`` is the paper's own mass: that of the coordinates that constraints mention, the others
condensed away, which stay as they are. ``mass`` is M: the velocity filter, which keeps momentum.
"""
WEIGHTED = ("euler", "heun", "rk4", "nystrom4")
"""Integrators that ask for a velocity wherever they use it."""


def weighting_of(given: object, mechanism: Mechanism) -> str | tuple[tuple[float, ...], ...]:
    """A weighting as it is kept: its name, or H (nv, nv).

    Raises:
        ModelError: It is no name of one, a joint does not exist, or H is not positive definite.
    """
    nv = mechanism.nv
    if isinstance(given, str):
        if given not in get_args(Metric):
            known = ", ".join(get_args(Metric))
            raise ModelError(f"unknown weighting '{given}'; there are {known}, or give numbers")
        return given
    H = np.eye(nv)
    if isinstance(given, Mapping):
        diagonal = np.ones(nv)
        put_values(mechanism, given, diagonal, "weighting")  # pyright: ignore[reportUnknownArgumentType]
        H = np.diag(diagonal)
    elif are_numbers(given, (nv,)):
        H = np.diag(np.asarray(given, np.float64))
    elif are_numbers(given, (nv, nv)):
        H = np.asarray(given, np.float64)
    else:
        raise ModelError(
            f"weighting is {given!r}; give a name, {nv} positive numbers, some by joint, or a"
            f" matrix ({nv}, {nv})"
        )
    if not (np.allclose(H, H.T, rtol=1e-12) and np.linalg.eigvalsh(H).min() > 0.0):
        raise ModelError(
            "weighting is not positive definite and symmetric; give positive weights, or such a"
            " matrix"
        )
    return tuple(map(tuple, H.tolist()))


@dataclass(frozen=True)
class Modified:
    """Accelerations where q moves by the velocity nearest to ξ that the rows allow.

    Rows that are nonlinear in the velocity are iterated.
    """

    dynamics: Dynamics  # the system
    weight: str | Array = "condensed"  # the metric: a name of ``Weighting``, or H (nv, nv)
    formulation: Formulation | None = None  # what gives accelerations; ``Elimination`` unless given

    def __call__(self, q: Array, xi: Array, t: float) -> Solution:
        """Acceleration, multipliers, and the velocity by which q moves."""
        v = self.velocity(q, xi, t)
        return (self.formulation or Elimination(self.dynamics))(q, v, t)._replace(rate=v)

    def velocity(self, q: Array, xi: Array, t: float) -> Array:
        """Velocity (nv,) that satisfies the constraints, nearest to xi in the metric."""
        return admissible(self.dynamics, self.dynamics.equations(q, xi, t), q, xi, t, self._nearest)

    def rate(self, t: float, y: Array) -> Array:
        """ẏ of y = (q, ξ), for integrators of first-order equations.

        Raises:
            ModelError: Rates of the positions are not the velocities.
        """
        if self.dynamics.nq != self.dynamics.nv:
            raise ModelError(
                f"first-order equations need q̇ = v, but there are {self.dynamics.nq} positions and"
                f" {self.dynamics.nv} velocities; use an integrator of ``integrators``"
            )
        q, xi = np.split(y, 2)
        found = self(q, xi, t)
        assert found.rate is not None
        return np.concatenate([found.rate, found.vdot])

    def _nearest(self, e: Equations, xi: Array) -> Array:
        if not len(e.J):
            return xi
        split = split_of(self._metric(e), e.J, e.unit, cap=e.cap, order=e.order)
        step = split.unwhiten(split.shortest(e.J @ xi + e.g_t))
        if isinstance(self.weight, str) and self.weight == "condensed":
            sizes = np.abs(e.unit[:, None] * e.J).max(axis=0)
            step[sizes <= ROUND_OFF * sizes.max()] = 0.0
        return np.asarray(xi - step, np.float64)

    def _metric(self, e: Equations) -> Array:
        """H (nv, nv) at these equations.

        On the coordinates that rows mention M⁻¹ is the inverse of their condensed mass.
        """
        if not isinstance(self.weight, str):
            return self.weight
        return np.eye(len(e.M)) if self.weight == "identity" else e.M


@dataclass(frozen=True)
class Unmodified:
    """The same equations without the correction: q̇ = v."""

    dynamics: Dynamics

    def rate(self, t: float, y: Array) -> Array:
        """ẏ of y = (q, v)."""
        q, v = np.split(y, 2)
        return np.concatenate([v, Elimination(self.dynamics)(q, v, t).vdot])
