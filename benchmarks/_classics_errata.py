"""The three-link robot as printed, one mistake at a time: what each does to the results."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bulletbridge.formulations.classics.three_link import COUPLING, ThreeLink
from bulletbridge.formulations.elimination import Elimination
from bulletbridge.formulations.equations import Equations
from bulletbridge.formulations.modified import Modified
from bulletbridge.numerics.records import Array


@dataclass(frozen=True)
class Printed(ThreeLink):
    """With the signs of eq. 34 ("row2" of gamma) or of eq. 30 ("row3" of the velocity matrix)."""

    mistake: Literal["row2", "row3"] = "row2"

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state."""
        e = super().equations(q, v, t)
        if self.mistake == "row2":
            e.gamma[1] *= -1.0
        else:
            e.f[2] += 2.0 * (COUPLING[2] * np.sin(q[2] - q)) @ (v * v)
        return e


@dataclass(frozen=True)
class PrintedSign(Modified):
    """With the bracket (s + D ξ) of eq. 40."""

    def velocity(self, q: Array, xi: Array, t: float) -> Array:
        """Velocity with the correction of ξ added instead of taken away."""
        right = super().velocity(q, xi, t)  # ξ + J⁺ (s - D ξ)
        lead = super().velocity(q, np.zeros_like(xi), t)  # J⁺ s
        return 2.0 * (lead + xi) - right


@dataclass(frozen=True)
class UncorrectedTerms(Modified):
    """With the velocity terms of the accelerations at ξ instead of q̇."""

    def rate(self, t: float, y: Array) -> Array:
        """ẏ of y = (q, ξ)."""
        q, xi = np.split(y, 2)
        return np.concatenate([self.velocity(q, xi, t), Elimination(self.dynamics)(q, xi, t).vdot])
