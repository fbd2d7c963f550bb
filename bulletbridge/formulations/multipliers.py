"""Augmented multipliers: accelerations and multipliers from one indefinite system (index 1).

The textbook baselines. They need independent rows; ``Baumgarte`` alone brings a violated state
back, like a spring with a damper.
"""

from dataclasses import dataclass

import numpy as np

from bulletbridge.errors import UnsupportedError
from bulletbridge.formulations.equations import Dynamics, Equations, Solution
from bulletbridge.numerics.records import Array

SMALLEST_RCOND = 1e-13
"""A row of 1e-6 of the strongest, the weakest that the projector solves for, leaves about 1e-12."""


@dataclass(frozen=True)
class Multipliers:
    """[[M, -Jᵀ], [J, 0]] [v̇, lam] = [f, -gamma]."""

    dynamics: Dynamics

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and multipliers at a state.

        Raises:
            UnsupportedError: Rows depend on each other there.
        """
        return solve_augmented(self.dynamics.equations(q, v, t))


def solve_augmented(e: Equations) -> Solution:
    """Accelerations and multipliers from the symmetric system for (v̇, -lam).

    Bunch-Kaufman with refinement, coordinates and rows scaled to length one before.

    Raises:
        UnsupportedError: The system is singular: rows depend on each other.
    """
    from scipy.linalg.lapack import dsysvx

    nv, nc = len(e.f), len(e.gamma)
    if e.cap is not None and e.cap < nc:
        raise dependent(e, e.cap)
    if not nv + nc:
        return Solution(e.f, e.gamma)
    mass = np.diag(e.M)
    width = 1.0 / np.sqrt(np.where(mass > 0.0, mass, 1.0))
    J = e.J * width
    lengths = np.linalg.norm(J, axis=1)
    height = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    A = np.zeros((nv + nc, nv + nc))
    A[:nv, :nv] = e.M * width * width[:, None]
    A[nv:, :nv] = J * height[:, None]
    right = np.concatenate([width * e.f, -height * e.gamma])
    *_, x, rcond, _, _, info = dsysvx(A, right[:, None], lower=1)
    if nc and (0 < info <= nv + nc or not rcond > SMALLEST_RCOND):
        raise dependent(e, e.split().rank)
    return Solution(width * x[:nv, 0], -height * x[nv:, 0])


def dependent(e: Equations, rank: int) -> UnsupportedError:
    """What to say of rows that depend on each other."""
    return UnsupportedError(
        f"the multipliers are not unique: {len(e.J)} rows of rank {rank}; use the projector or the "
        f"proximal formulation, which allow dependent rows"
    )


@dataclass(frozen=True)
class Baumgarte:
    """J v̇ + gamma + 2 alpha (J v + g_t) + beta² g = 0.

    Attributes:
        dynamics: The system; g must be zero in rows without a position level.
        alpha, beta: Gains [1/s]; equal ones damp critically, both far below 1/dt.
    """

    dynamics: Dynamics
    alpha: float = 10.0
    beta: float = 10.0

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and multipliers at a state.

        Raises:
            UnsupportedError: Rows depend on each other there.
        """
        e = self.dynamics.equations(q, v, t)
        pulled = 2.0 * self.alpha * (e.J @ v + e.g_t) + self.beta**2 * e.g
        return solve_augmented(e._replace(gamma=e.gamma + pulled))
