"""Runge-Kutta of order 4 on q and reduced quasi-velocities, (q, v_r), as Aghili integrates them.

q moves by the velocity that v_r stands for, v̇_r = u_r - Gamma_r v_r. Whatever v_r is, velocities
satisfy the rows: without a filter to round-off, while positions err as the method does. Bases of
the stages are turned to the one at the start of the step, so that v_r is one function of time.

Roots and singular vectors are differentiated exactly from the rates of M and J (``moving``). Basis
vectors are carried along such that V_2ᵀ V̇_2 = 0, which singular vectors as a library returns them
do not do; what a basis that is turned to fit another turns besides is ``alignment``'s.

Source: Aghili 2008, eq. 30 and 33-37, with an aligned basis in place of a smooth one.
"""

from typing import NamedTuple

import numpy as np

from bulletbridge.errors import StepError, UnsupportedError
from bulletbridge.formulations.equations import Dynamics, Equations, Formulation
from bulletbridge.formulations.moving import moving
from bulletbridge.formulations.quasi_velocities import Basis, basis_of, square_root_turns
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.turns import nearest_turn


class BasisRates(NamedTuple):
    """How a basis changes."""

    turn: Array  # (nv, nv) L̇ L⁻¹
    V_2: Array  # (nv, dof) rate of V_2, without a turn within the free space

    def reduce(self, basis: Basis, x: Array) -> Array:
        """d(W_rᵀ)/dt x (dof,) of a velocity x (nv,)."""
        y = basis.L @ x
        return np.asarray(basis.V_2.T @ (self.turn @ y) + self.V_2.T @ y, np.float64)


def basis_rates(basis: Basis, M_rate: Array, J_rate: Array) -> BasisRates:
    """Rates of a basis from those of M (nv, nv) and J (nc, nv).

    S J L⁻¹ V_2 = 0 stays true: V̇_2 = -V_1 diag(1/s) U_1ᵀ d(S J L⁻¹)/dt V_2.
    """
    turn = square_root_turns(basis.L, M_rate, basis.root)
    moved = basis.U_1.T @ (basis.unit[:, None] * (J_rate @ basis.free))
    moved = moved / basis.s[:, None] - basis.V_1.T @ (turn @ basis.V_2)
    return BasisRates(turn, np.asarray(-basis.V_1 @ moved, np.float64))


class Alignment(NamedTuple):
    """The rotation that turns one basis as near as can be to another, and its rate."""

    A: Array  # (dof, dof) V_2 A is nearest to the other's V_2 (Procrustes)
    rate: Array  # (dof, dof) of A
    nearness: float  # least cosine between a direction of one and what the other has of it


def alignment(V_2: Array, V_rate: Array, other: Array, other_rate: Array) -> Alignment:
    """Turn V_2 (nv, dof), which moves, to another basis (nv, dof), which may move too.

    A is the orthogonal factor of C = V_2ᵀ other: see ``nearest_turn``.
    """
    C = np.ascontiguousarray(V_2.T @ other)
    C_rate = np.ascontiguousarray(V_rate.T @ other + V_2.T @ other_rate)
    A, rate, room = np.empty_like(C), np.zeros_like(C), np.empty((3, *C.shape))
    nearness = nearest_turn(C, C_rate, A, rate, room)
    return Alignment(A, rate, min(nearness, 1.0))


class QuasiVelocities:
    """(q, v_r) near a configuration.

    Args:
        formulation: Accelerations.
        dynamics: The system.
        q: Configuration whose basis others are turned to.
        t: Time [s].
    """

    def __init__(self, formulation: Formulation, dynamics: Dynamics, q: Array, t: float) -> None:
        self._formulation, self._dynamics = formulation, dynamics
        self._still = np.zeros(dynamics.nv)
        e = dynamics.equations(q, self._still, t)
        if e.nonlinear:
            raise UnsupportedError(
                "quasi-velocities need rows that are linear in the velocity; use rk4"
            )
        self._start = basis_of(e)

    def reduce(self, v: Array) -> Array:
        """v_r (dof,) of a velocity at the start."""
        return self._start.reduce(v)

    def rates(self, q: Array, v_r: Array, t: float) -> tuple[Array, Array]:
        """The velocity (nv,) by which q moves, and the rate of v_r (dof,)."""
        here, start = moving(self._dynamics, q, self._still, t), self._start
        basis = self._basis(here.equations)
        v = basis.expand(v_r, here.equations.g_t)
        rates = basis_rates(basis, *here.matrix_rates(v))
        turn = alignment(basis.V_2, rates.V_2, start.V_2, np.zeros_like(start.V_2))
        if not turn.nearness > 0.0:
            raise StepError("free directions turn by a right angle in a step; use a smaller dt")
        vdot = self._formulation(q, v, t).vdot
        return v, turn.rate.T @ v_r + rates.reduce(basis, v) + basis.reduce(vdot)

    def velocity(self, q: Array, v_r: Array, t: float) -> Array:
        """The velocity (nv,) of v_r at a configuration."""
        e = self._dynamics.equations(q, self._still, t)
        return self._basis(e).expand(v_r, e.g_t)

    def _basis(self, e: Equations) -> Basis:
        """At a configuration, turned to the one at the start."""
        basis = basis_of(e)
        if basis.V_2.shape != self._start.V_2.shape:
            raise StepError("the number of freedoms changes within the step; use a smaller dt")
        return basis.aligned(self._start.V_2)
