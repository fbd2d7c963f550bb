"""A system at a state, with the rates of its mass matrix and of its rows along motions.

Mechanisms have them by recursion (``system_dynamics.SystemDynamics.moving``); systems that others
wrote as ``Dynamics``, and rows in Python, by central differences of order eight along admissible
displacements: steps of a hundredth (radian, metre) leave 1e-16 of the truncation and 1e-14 of
round-off for functions of the order of one that change over a radian or a metre.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from bulletbridge.engine.motion_rates import MotionRates
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

    def rates(self, v: Array, in_time: bool = True) -> MotionRates:
        """Coriolis matrix C (nv, nv) and rate of J (nc, nv) when the system moves with v (nv,).

        C v are the Coriolis and centrifugal forces, C + Cᵀ is the rate of M.
        """
        ...


def moving(dynamics: Dynamics, q: Array, v: Array, t: float) -> Moving:
    """A system at a state; by differences if it has no ``moving(q, v, t)`` of its own.

    Args:
        dynamics: The system.
        q: Configuration (nq,).
        v: Velocity (nv,).
        t: Time [s].
    """
    known = getattr(dynamics, "moving", None)
    return ByDifferences(dynamics, q, v, t) if known is None else known(q, v, t)


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

    def rates(self, v: Array, in_time: bool = True) -> MotionRates:
        """See ``Moving``.

        C = Ṁ/2 + K, K skew, from the quadratic forms k(v) = h(v) - Ṁ v/2, which do no work:
        K_ij = 2/3 (k_i(e_j, v) - k_j(e_i, v)), Christoffel's symbols where v is the rate of q.
        """
        M_rate, J_rate = self.matrix_rates(v, in_time)
        M_v = self.matrix_rates(v, in_time=False)[0]
        axes = np.eye(self.dynamics.nv)
        along = np.array([self.matrix_rates(e, in_time=False)[0] @ v for e in axes])
        k = self._inertial_forces(axes, v) - (along + M_v) / 4
        return MotionRates(M_rate / 2 + (k.T - k) * (2 / 3), J_rate)

    def _inertial_forces(self, directions: Array, v: Array) -> Array:
        """Coriolis and centrifugal forces (n, nv), a symmetric form of directions (n, nv) and v.

        The part of -f of second degree: gravity, springs, damping of any odd law drop out.
        """

        def f(v: Array) -> Array:
            return self.dynamics.equations(self.q, v, self.t).f

        found = [f(a - v) + f(v - a) - f(a + v) - f(-a - v) for a in directions]
        return np.array(found).reshape(-1, self.dynamics.nv) / 8.0
