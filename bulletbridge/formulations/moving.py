"""A system at a state, with the rates of its mass matrix and of its rows along motions.

Trees of bodies have them by recursion (``system_dynamics.Tree.moving``); systems that others wrote
as ``Dynamics``, and rows in Python, by central differences of order eight along admissible
displacements: steps of a hundredth (radian, metre) leave 1e-16 of the truncation and 1e-14 of
round-off for functions of the order of one that change over a radian or a metre.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from bulletbridge.formulations.equations import Dynamics, Equations
from bulletbridge.numerics.records import Array

STENCIL = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
"""Central difference of order eight: weights of f(kh) - f(-kh)."""
STEP = 0.01
"""Length of the finite differences, in the unit of the fastest rate [m or rad]."""


class Moving(Protocol):
    """A system at a state, and how its matrices change."""

    @property
    def equations(self) -> Equations:
        """The equations of motion there."""
        ...

    def matrix_rates(self, v: Array, in_time: bool = True) -> tuple[Array, Array]:
        """Rates of M (nv, nv) and J (nc, nv) when the system moves with v (nv,).

        Args:
            v: Velocity, or the direction in which to differentiate when time stands still.
            in_time: Whether rows that depend on time move too.
        """
        ...

    def mass_rates(self, directions: Array) -> Array:
        """Rates of M (n, nv, nv) along velocities (n, nv)."""
        ...

    def inertial_forces(self, directions: Array, v: Array) -> Array:
        """Coriolis and centrifugal forces (n, nv) as a symmetric bilinear form of two velocities.

        Of each of ``directions`` (n, nv) and v (nv,); those that h has at v if both are v.
        """
        ...


@runtime_checkable
class Differentiated(Protocol):
    """Dynamics that know their rates."""

    def moving(self, q: Array, v: Array, t: float) -> Moving:
        """The system at a state."""
        ...


def moving(dynamics: Dynamics, q: Array, v: Array, t: float) -> Moving:
    """A system at a state; by differences if it does not know its own rates.

    Args:
        dynamics: The system.
        q: Configuration (nq,).
        v: Velocity (nv,).
        t: Time [s].
    """
    if isinstance(dynamics, Differentiated):
        return dynamics.moving(q, v, t)
    return ByDifferences(dynamics, q, v, t)


@dataclass(frozen=True)
class ByDifferences:
    """Rates by finite differences of ``equations``: nine evaluations for each direction."""

    dynamics: Dynamics
    q: Array
    v: Array
    t: float

    @property
    def equations(self) -> Equations:
        """The equations of motion there."""
        return self._equations

    @cached_property
    def _equations(self) -> Equations:
        return self.dynamics.equations(self.q, self.v, self.t)

    def matrix_rates(self, v: Array, in_time: bool = True) -> tuple[Array, Array]:
        """See ``Moving``."""
        speed = float(np.abs(v).max(initial=0.0))
        h = STEP / speed if speed > 0.0 else STEP
        h = min(h, STEP) if in_time else h
        e, still = self.equations, np.zeros(self.dynamics.nv)
        M_rate, J_rate = np.zeros_like(e.M), np.zeros_like(e.J)
        if speed == 0.0 and not (in_time and np.any(e.g_t)):
            return M_rate, J_rate
        for k, weight in STENCIL:
            for side in (k, -k):
                then = self.t + side * h if in_time else self.t
                near = self.dynamics.equations(
                    self.dynamics.displace(self.q, side * h * v), still, then
                )
                sign = weight / h if side > 0 else -weight / h
                M_rate += sign * near.M
                J_rate += sign * near.J
        return M_rate, J_rate

    def mass_rates(self, directions: Array) -> Array:
        """See ``Moving``."""
        rates = [self.matrix_rates(v, in_time=False)[0] for v in directions]
        return np.array(rates).reshape(-1, self.dynamics.nv, self.dynamics.nv)

    def inertial_forces(self, directions: Array, v: Array) -> Array:
        """The part of -f of second degree: gravity, springs, damping of any odd law drop out."""

        def f(v: Array) -> Array:
            return self.dynamics.equations(self.q, v, self.t).f

        found = [f(a - v) + f(v - a) - f(a + v) - f(-a - v) for a in directions]
        return np.array(found).reshape(-1, self.dynamics.nv) / 8.0
