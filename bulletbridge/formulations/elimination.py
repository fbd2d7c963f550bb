"""Elimination of the coordinates that no constraint mentions.

With a the coordinates of nonzero columns of J and b the rest, M_aa - M_ab M_bb⁻¹ M_ba is the mass
that the constraints feel; b follows afterwards. The smaller system is solved as by ``Projector``.

Source: Eun, Park, Lee and Chung 2004, eq. 17 to 22 and 38; signs as in docs/errata.md.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

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
    """What is left of the equations of motion on the coordinates a."""

    a: Mask  # (nv,) coordinates that some row mentions
    M: Array  # (na, na) condensed mass matrix
    f: Array  # (na,) condensed forces
    J: Array  # (nc, na)
    carry: Array  # (nb, na) and
    push: Array  # (nb,) in v̇_b = push - carry v̇_a

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
        vdot, lam = split.nearest(split.whiten_force(c.f), e.gamma)
        found = Solution(c.whole(vdot), lam)
        require_solved(e, found, "elimination")
        return found
