"""Rates of reduced quasi-velocities: v̇_r + Gamma_r v_r = u_r, and the same for multipliers.

Roots, singular vectors and inertial forces are differentiated exactly from the rates of M and J
(``moving``). Basis vectors are carried along such that V_2ᵀ V̇_2 = 0, which singular vectors as a
library returns them do not do; what a basis that is turned to fit another turns besides is
``alignment``'s.

Source: Aghili 2008, eq. 34-37, transposes restored; the paper's Gamma_r is not skew and its bound
on the tracking error needs that, so ``skew_rate`` gives the matrix that is, with the same effect.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.formulations.equations import Dynamics
from bulletbridge.formulations.moving import Moving, moving
from bulletbridge.formulations.quasi_velocities import Basis, Root, basis_of, square_root_turns
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


@dataclass(frozen=True)
class Gamma:
    """Gamma_r (dof, dof) and Gamma_o (rank, dof) at a state, with the basis they belong to.

    v̇_r + Gamma_r v_r = u_r and, in our sign, Gamma_o v_r = u_o + diag(s) U_1ᵀ S⁻¹ lam, where u_r
    and u_o are V_2ᵀ L⁻ᵀ and V_1ᵀ L⁻ᵀ times the forces without Coriolis and centrifugal ones.
    """

    basis: Basis
    Gamma_r: Array
    Gamma_o: Array


def gammas(
    dynamics: Dynamics,
    q: Array,
    v: Array,
    t: float,
    root: Root = "tree",
    basis: Basis | None = None,
) -> Gamma:
    """Gamma_r and Gamma_o for rates v (nv,) of coordinates q (nq,), rows at rest.

    Args:
        dynamics: A system whose v is the rate of q: no quaternions.
        q: Configuration.
        v: An admissible velocity.
        t: Time [s].
        root: Square root of M.
        basis: Directions to use; those of ``basis_of`` unless given.

    Raises:
        ModelError: q has more coordinates than v; ``skew_rate`` works there too.
    """
    if dynamics.nq != dynamics.nv:
        raise ModelError(
            f"these need v to be the rate of q, which has {dynamics.nq} coordinates for "
            f"{dynamics.nv} rates; use skew_rate"
        )
    here = moving(dynamics, q, v, t)
    basis = basis or basis_of(here.equations, root)
    W_rate, gradient = np.zeros_like(basis.W_r), np.zeros_like(basis.W_r.T)
    for k, direction in enumerate(np.eye(dynamics.nv)):
        rates = basis_rates(basis, *here.matrix_rates(direction, in_time=False))
        dW = basis.L.T @ (rates.turn.T @ basis.V_2 + rates.V_2)
        W_rate += v[k] * dW
        gradient[:, k] = dW.T @ v
    forced = basis.whiten_force(W_rate - gradient.T)
    return Gamma(basis, basis.V_2.T @ forced, basis.V_1.T @ forced)


def skew_rate(here: Moving, basis: Basis, v: Array) -> Array:
    """S (dof, dof), skew, with S v_r = Gamma_r v_r; for any system with rows at rest.

    S = V_2ᵀ (L⁻ᵀ C L⁻¹ - L̇ L⁻¹) V_2, since C + Cᵀ = Ṁ = L̇ᵀ L + Lᵀ L̇.

    Args:
        here: The system at a state.
        basis: Of ``basis_of`` there.
        v: Its velocity (nv,).
    """
    C = here.rates(v, in_time=False).C
    turned = basis.whiten_force(basis.whiten_force(C.T).T)
    turned -= square_root_turns(basis.L, C + C.T, basis.root)
    S = basis.V_2.T @ turned @ basis.V_2
    return np.asarray((S - S.T) / 2, np.float64)


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
