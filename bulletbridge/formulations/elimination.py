"""Elimination of the coordinates that no constraint mentions.

With a the coordinates of nonzero columns of J and b the rest, M_aa - M_ab M_bb⁻¹ M_ba is the mass
that the constraints feel; b follows afterwards. The smaller system is solved as by ``Projector``.

Source: Eun, Park, Lee and Chung 2004, eq. 17 to 22 and 38; signs as in docs/errata.md.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.formulations.admissible import admissible
from bulletbridge.formulations.equations import (
    Dynamics,
    Equations,
    Solution,
    positive_factor,
    require_solved,
    split_of,
)
from bulletbridge.numerics.records import Array, Mask


class Condensed(NamedTuple):
    """What is left of the equations of motion on the coordinates a.

    Attributes:
        a: (nv,) coordinates that some row mentions.
        M: (na, na) condensed mass matrix.
        f: (na,) condensed forces.
        J: (nc, na).
        carry: (nb, na) and
        push: (nb,) in v̇_b = push - carry v̇_a.
    """

    a: Mask
    M: Array
    f: Array
    J: Array
    carry: Array
    push: Array

    def whole(self, vdot: Array) -> Array:
        """All accelerations (nv,) from those of a (na,)."""
        result = np.empty(len(self.a))
        result[self.a], result[~self.a] = vdot, self.push - self.carry @ vdot
        return result


def condense(e: Equations) -> Condensed:
    """Eliminate the coordinates whose columns of J vanish at this state.

    Raises:
        UnsupportedError: Their part of the mass matrix is not positive definite.
    """
    from scipy.linalg import cho_solve

    a = np.asarray(e.J.any(axis=0), np.bool_)
    b, Mab = ~a, e.M[np.ix_(a, ~a)]
    if not b.any():
        return Condensed(a, e.M, e.f, e.J, np.zeros((0, a.sum())), np.zeros(0))
    factor = positive_factor(e.M[np.ix_(b, b)])
    carry, push = cho_solve(factor, Mab.T), cho_solve(factor, e.f[b])
    M = e.M[np.ix_(a, a)] - Mab @ carry
    return Condensed(a, M, e.f[a] - Mab @ push, e.J[:, a], carry, push)


@dataclass(frozen=True)
class Elimination:
    """v̇_a from the condensed equations, then v̇_b; the same accelerations as the projector's."""

    dynamics: Dynamics

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and multipliers at a state."""
        return self.solve(self.dynamics.equations(q, v, t))

    def solve(self, e: Equations) -> Solution:
        """Accelerations and multipliers of given equations.

        Raises:
            UnsupportedError: Masses are too far apart.
        """
        c = condense(e)
        if not c.a.any():
            return Solution(c.push, np.zeros(len(e.J)))
        split = split_of(c.M, c.J, e.unit, cap=e.cap, order=e.order)
        pushed = split.whiten_force(c.f)
        y = split.free(pushed) - split.shortest(e.gamma)
        found = Solution(c.whole(split.unwhiten(y)), split.multipliers(y - pushed))
        require_solved(e, found, "elimination")
        return found


@dataclass(frozen=True)
class Modified:
    """Integration whose states are q and an uncorrected velocity ξ, so that J q̇ + g_t = 0 holds.

    q̇_a = ξ_a - J⁺ (J ξ_a + g_t), q̇_b = ξ_b, ξ̇ = accelerations at (q, q̇). Any integrator of
    first-order equations may advance it. Position errors are those of the quadrature of q̇ alone:
    they grow with the integrator's error and are never removed. Rows nonlinear in v are iterated.

    Attributes:
        dynamics: With as many positions as velocities.
        weight: H (na, na), positive definite: the metric of J⁺; the condensed mass matrix if None,
            which makes it the velocity filter.

    Raises:
        ModelError: Rates of the positions are not the velocities.

    Source: Eun, Park, Lee and Chung 2004, eq. 40, with the bracket's sign put right.
    """

    dynamics: Dynamics
    weight: Array | None = None

    def __post_init__(self) -> None:
        if self.dynamics.nq != self.dynamics.nv:
            raise ModelError(
                f"the modified integration needs q̇ = v, but there are {self.dynamics.nq} positions "
                f"and {self.dynamics.nv} velocities; use the velocity filter instead"
            )

    def velocity(self, q: Array, xi: Array, t: float) -> Array:
        """Velocity (nv,) that satisfies the constraints, nearest to xi in the metric."""
        return admissible(self.dynamics, self.dynamics.equations(q, xi, t), q, xi, t, self._nearest)

    def rate(self, t: float, y: Array) -> Array:
        """ẏ of y = (q, ξ)."""
        q, xi = np.split(y, 2)
        v = self.velocity(q, xi, t)
        return np.concatenate([v, Elimination(self.dynamics)(q, v, t).vdot])

    def _nearest(self, e: Equations, xi: Array) -> Array:
        c, v = condense(e), xi.copy()
        if c.a.any():
            split = split_of(
                c.M if self.weight is None else self.weight, c.J, e.unit, cap=e.cap, order=e.order
            )
            v[c.a] -= split.unwhiten(split.shortest(e.J @ xi + e.g_t))
        return v


@dataclass(frozen=True)
class Unmodified:
    """The same equations without the correction: q̇ = v."""

    dynamics: Dynamics

    def rate(self, t: float, y: Array) -> Array:
        """ẏ of y = (q, v)."""
        q, v = np.split(y, 2)
        return np.concatenate([v, Elimination(self.dynamics)(q, v, t).vdot])
