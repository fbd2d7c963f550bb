"""Proximal multipliers: a regularised system whose regularisation is iterated away.

Source: Carpentier, Budhiraja and Mansard 2021, Proximal and sparse resolution of constrained
dynamic equations; it is what Pinocchio's ``constraintDynamics`` does.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular

from bulletbridge.errors import UnsupportedError
from bulletbridge.formulations.equations import Dynamics, Solution
from bulletbridge.numerics.records import Array

ENOUGH, ACCEPTED = 1e-15, 1e-11
"""Change of the constraint force, relative to all forces, whitened, that ends the iterations, and
that they may end at when it shrinks no more: what is left then is round-off."""


@dataclass(frozen=True)
class Proximal:
    """M v̇ = f + Jᵀ lam, J v̇ + gamma + mu (lam - last lam) = 0, repeated until lam stays.

    Redundant rows share their load. A row of relative strength s comes in by s² / (mu + s²) an
    iteration, so that rows below about 1e-6 do not converge.

    Attributes:
        dynamics: The system.
        mu: Regularisation relative to the strongest row of J M⁻¹ Jᵀ, rows in one unit.
        iterations: The most.
    """

    dynamics: Dynamics
    mu: float = 1e-9
    iterations: int = 200

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and multipliers at a state.

        Raises:
            UnsupportedError: The iteration does not end, as next to a singular position.
        """
        e = self.dynamics.equations(q, v, t)
        try:
            L = cholesky(e.M, lower=True)
        except LinAlgError:
            raise UnsupportedError(
                "the proximal formulation needs a positive definite mass matrix; add a multiple of "
                "JᵀJ to it, or use the multipliers"
            ) from None
        pushed = solve_triangular(L, e.f, lower=True)
        Y = solve_triangular(L, (e.unit[:, None] * e.J).T, lower=True).T
        lam, force = np.zeros(len(Y)), np.zeros(len(pushed))
        if not len(Y):
            return Solution(solve_triangular(L, pushed, lower=True, trans="T"), lam)
        G = Y @ Y.T
        mu = self.mu * float(np.diag(G).max())
        factor = cho_factor(G + mu * np.eye(len(G)), lower=True)
        drift, last = e.unit * e.gamma, np.inf
        for _ in range(self.iterations):
            more = cho_solve(factor, -(Y @ (pushed + force)) - drift)
            lam += more
            change, force = float(np.linalg.norm(Y.T @ more)), Y.T @ lam
            size = float(np.linalg.norm(pushed) + np.linalg.norm(force))
            if change <= ENOUGH * size or (change <= ACCEPTED * size and not change < 0.5 * last):
                vdot = solve_triangular(L, pushed + force, lower=True, trans="T")
                return Solution(vdot, e.unit * lam)
            last = change
        raise UnsupportedError(
            f"the proximal iteration has not ended after {self.iterations} passes: rows are nearly "
            f"dependent here; use the projector, or a smaller mu than {self.mu:g}"
        )
