"""Projector formulation on equations of motion, as the compiled step has it, and a Euclidean one.

Source: Kövecses and Piedbœuf 2003, eq. 30 and 31.
"""

from dataclasses import dataclass

import numpy as np

from bulletbridge.formulations.equations import (
    Dynamics,
    Equations,
    Solution,
    positive_factor,
    require_solved,
    split_of,
)
from bulletbridge.numerics.null_space import null_space
from bulletbridge.numerics.records import Array


@dataclass(frozen=True)
class Projector:
    """v̇ = P M⁻¹ f - J⁺ gamma with P = I - J⁺ J and J⁺ weighted by M."""

    dynamics: Dynamics

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and multipliers at a state."""
        return self.solve(self.dynamics.equations(q, v, t))

    def solve(self, e: Equations) -> Solution:
        """Accelerations and multipliers of given equations."""
        split = e.split()
        return Solution(*split.nearest(split.whiten_force(e.f), e.gamma))


@dataclass(frozen=True)
class TangentSpace:
    """(Vᵀ M V) z = Vᵀ (f + M J⁺ gamma), v̇ = V z - J⁺ gamma with J V = 0, Vᵀ V = I, J⁺ Euclidean."""

    dynamics: Dynamics

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and multipliers at a state.

        Raises:
            UnsupportedError: Masses are too far apart.
        """
        from scipy.linalg import cho_solve

        e = self.dynamics.equations(q, v, t)
        split = split_of(np.eye(len(e.M)), e.J, e.unit, cap=e.cap, order=e.order)
        V = null_space(split.Q)
        vdot = -split.shortest(e.gamma)
        if V.shape[1]:
            free = positive_factor(V.T @ e.M @ V)
            vdot = vdot + V @ cho_solve(free, V.T @ (e.f - e.M @ vdot))
        found = Solution(vdot, split.multipliers(e.M @ vdot - e.f))
        require_solved(e, found, "tangent_space")
        return found
