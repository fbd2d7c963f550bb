"""Gamma_r and Gamma_o of reduced quasi-velocities, and the skew matrix with the same effect.

Source: Aghili 2008, eq. 34-37, transposes restored; the paper's Gamma_r is not skew and its bound
on the tracking error needs that, so ``skew_rate`` gives the matrix that is, with the same effect.
"""

from dataclasses import dataclass

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.formulations.equations import Dynamics
from bulletbridge.formulations.moving import Moving, moving
from bulletbridge.formulations.quasi_velocities import Basis, Root, basis_of, square_root_turns
from bulletbridge.formulations.quasi_velocity_rates import basis_rates
from bulletbridge.numerics.records import Array


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
    """
    if dynamics.nq != dynamics.nv:
        raise ModelError(
            f"these need v to be the rate of q, which has {dynamics.nq} coordinates for "
            f"{dynamics.nv} rates; use skew_rate"
        )
    here = moving(dynamics, q, v, t)
    basis = basis or basis_of(here.equations, root)
    W_rate = np.zeros(basis.V_2.shape)
    gradient = np.zeros(W_rate.T.shape)
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
