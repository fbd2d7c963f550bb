"""Rates of reduced quasi-velocities: v̇_r + Gamma_r v_r = u_r, and the same for multipliers.

Roots, singular vectors and inertial forces are differentiated exactly from the rates of M and J
(``moving``). Basis vectors are carried along such that V_2ᵀ V̇_2 = 0, which singular vectors as a
library returns them do not do; what a basis that is turned to fit another turns besides is
``alignment``'s.

Source: Aghili 2008, eq. 34-37, transposes restored.
"""

from typing import NamedTuple

import numpy as np

from bulletbridge.formulations.quasi_velocities import Basis, square_root_turns
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.turns import nearest_turn


class BasisRates(NamedTuple):
    """How a basis changes.

    Attributes:
        turn: (nv, nv) L̇ L⁻¹.
        V_2: (nv, dof) rate of V_2, without a turn within the free space.
    """

    turn: Array
    V_2: Array

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
    """The rotation that turns one basis as near as can be to another, and its rate.

    Attributes:
        A: (dof, dof) V_2 A is nearest to the other's V_2 (Procrustes).
        rate: (dof, dof) of A.
        nearness: Least cosine between a direction of one and what the other has of it.
    """

    A: Array
    rate: Array
    nearness: float


def alignment(V_2: Array, V_rate: Array, other: Array, other_rate: Array) -> Alignment:
    """Turn V_2 (nv, dof), which moves, to another basis (nv, dof), which may move too.

    A is the orthogonal factor of C = V_2ᵀ other: see ``nearest_turn``.
    """
    C = np.ascontiguousarray(V_2.T @ other)
    C_rate = np.ascontiguousarray(V_rate.T @ other + V_2.T @ other_rate)
    A, rate, room = np.empty_like(C), np.zeros_like(C), np.empty((3, *C.shape))
    nearness = nearest_turn(C, C_rate, A, rate, room)
    return Alignment(A, rate, min(nearness, 1.0))
