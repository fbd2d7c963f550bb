"""Proximal multipliers: a regularised system whose regularisation is iterated away.

Source: Carpentier, Budhiraja and Mansard 2021, Proximal and sparse resolution of constrained
dynamic equations; it is what Pinocchio's ``constraintDynamics`` does.
"""

import math
from dataclasses import dataclass

import numpy as np

from bulletbridge.errors import UnsupportedError
from bulletbridge.formulations.equations import Dynamics, Solution
from bulletbridge.numerics.records import Array

ENOUGH, ACCEPTED = 1e-15, 1e-11
"""Change of the constraint force, relative to all forces in the metric of M⁻¹, that ends the
iterations, and that they may end at when it shrinks no more: what is left then is round-off."""


@dataclass(frozen=True)
class Proximal:
    """M v̇ = f + Jᵀ lam, J v̇ + gamma + mu (lam - last lam) = 0, repeated until lam stays.

    Redundant rows share their load. A row of relative strength s comes in by s² / (mu + s²) an
    iteration, so that rows between about 2e-5 and 1e-8 do not converge. Where fewer independent
    rows were decided on at closed positions, their strongest combinations stand for all.
    """

    dynamics: Dynamics  # the system
    mu: float = 1e-9  # regularisation relative to the strongest row of J M⁻¹ Jᵀ, rows in one unit
    iterations: int = 200  # the most

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and multipliers at a state.

        Raises:
            UnsupportedError: The iteration does not end, as next to a singular position.
        """
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        e = self.dynamics.equations(q, v, t)
        try:
            mass = cho_factor(e.M, lower=True)
        except LinAlgError:
            raise UnsupportedError(
                "the proximal formulation needs a positive definite mass matrix; add a multiple of "
                "JᵀJ to it, or use the multipliers"
            ) from None
        free = cho_solve(mass, e.f)
        if not len(e.gamma):
            return Solution(free, np.zeros(0))
        J = e.unit[:, None] * e.J
        moved = cho_solve(mass, J.T)
        G = J @ moved
        mix = strongest(G, len(G) if e.cap is None else e.cap)
        J, moved, G = mix.T @ J, moved @ mix, mix.T @ G @ mix
        mu = self.mu * float(np.diag(G).max())
        factor = cho_factor(G + mu * np.eye(len(G)), lower=True)
        lam, vdot, drift = np.zeros(len(G)), free, mix.T @ (e.unit * e.gamma)
        size, last = math.sqrt(max(0.0, e.f @ free)), np.inf
        for _ in range(self.iterations):
            more = cho_solve(factor, -(J @ vdot) - drift)
            lam += more
            vdot = free + moved @ lam
            change = math.sqrt(max(0.0, more @ G @ more))
            size = max(size, change)
            if change <= ENOUGH * size or (change <= ACCEPTED * size and not change < 0.5 * last):
                return Solution(vdot, e.unit * (mix @ lam))
            last = change
        raise UnsupportedError(
            f"the proximal iteration has not ended after {self.iterations} passes: rows are nearly "
            f"dependent here; use the projector, or a smaller mu than {self.mu:g}"
        )


def strongest(G: Array, count: int) -> Array:
    """Orthonormal combinations (nc, count) of rows, the strongest ones by J M⁻¹ Jᵀ (nc, nc)."""
    if count >= len(G):
        return np.eye(len(G))
    return np.linalg.eigh(G)[1][:, len(G) - count :]
