"""Projector formulation on equations of motion, as the compiled step has it.

Source: Kövecses and Piedbœuf 2003, eq. 30 and 31.
"""

from dataclasses import dataclass

from bulletbridge.formulations.equations import Dynamics, Equations, Solution
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
        pushed = split.whiten_force(e.f)
        y = split.free(pushed) - split.shortest(e.gamma)
        return Solution(split.unwhiten(y), split.multipliers(y - pushed))
