"""Rates of reduced quasi-velocities: v̇_r + Gamma_r v_r = u_r, and the same for multipliers.

Roots, singular vectors and inertial forces are differentiated exactly from the rates of M and J,
which come from central differences of order eight along admissible displacements: steps of a
hundredth (radian, metre) leave 1e-16 of the truncation and 1e-14 of round-off for functions of the
order of one that change over a radian or a metre. Basis vectors are carried along such that
V_2ᵀ V̇_2 = 0, which singular vectors as a library returns them do not do.

Source: Aghili 2008, eq. 34-37, transposes restored; the paper's Gamma_r is not skew and its bound
on the tracking error needs that, so ``skew_rate`` gives the matrix that is, with the same effect.
"""

from dataclasses import dataclass

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.formulations.equations import Dynamics
from bulletbridge.formulations.quasi_velocities import Basis, Root, basis_of, square_root_rate
from bulletbridge.numerics.records import Array

STENCIL = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
"""Central difference of order eight: weights of f(kh) - f(-kh)."""
STEP = 0.01
"""Length of the finite differences, in the unit of the fastest rate [m or rad]."""


def matrix_rates(
    dynamics: Dynamics, q: Array, v: Array, t: float, in_time: bool = True
) -> tuple[Array, Array]:
    """Rates of M (nv, nv) and J (nc, nv) when the system moves with v (nv,).

    Args:
        dynamics: The system.
        q: Configuration (nq,).
        v: Velocity, or the direction in which to differentiate when time stands still.
        t: Time [s].
        in_time: Whether rows that depend on time move too.
    """
    speed = float(np.abs(v).max(initial=0.0))
    h = STEP / speed if speed > 0.0 else STEP
    h = min(h, STEP) if in_time else h
    still = np.zeros(dynamics.nv)
    e = dynamics.equations(q, still, t)
    M_rate, J_rate = np.zeros_like(e.M), np.zeros_like(e.J)
    if speed == 0.0 and not (in_time and np.any(e.g_t)):
        return M_rate, J_rate
    for k, weight in STENCIL:
        for side in (k, -k):
            then = t + side * h if in_time else t
            near = dynamics.equations(dynamics.displace(q, side * h * v), still, then)
            sign = weight / h if side > 0 else -weight / h
            M_rate += sign * near.M
            J_rate += sign * near.J
    return M_rate, J_rate


def basis_rates(basis: Basis, M_rate: Array, J_rate: Array, root: Root) -> tuple[Array, Array]:
    """Rates of L (nv, nv) and of V_2 (nv, dof), the latter without a turn within the free space.

    S J L⁻¹ V_2 = 0 stays true: V̇_2 = -V_1 diag(1/s) U_1ᵀ d(S J L⁻¹)/dt V_2.
    """
    L_rate = square_root_rate(basis.L, M_rate, root)
    free = basis.unwhiten(basis.V_2)
    rows = basis.U_1 * basis.s @ basis.V_1.T
    moved = basis.unit[:, None] * (J_rate @ free) - rows @ (L_rate @ free)
    return L_rate, -basis.V_1 @ ((basis.U_1.T @ moved) / basis.s[:, None])


def inertial_force(dynamics: Dynamics, q: Array, a: Array, b: Array, t: float) -> Array:
    """Coriolis and centrifugal forces as a bilinear form of two velocities, (nv,).

    With a = b they are those that h has at that velocity. They are the part of -f of second degree:
    gravity and springs, and damping of any odd law, drop out.
    """

    def f(v: Array) -> Array:
        return dynamics.equations(q, v, t).f

    return np.asarray((f(a - b) + f(b - a) - f(a + b) - f(-a - b)) / 8, np.float64)


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
    basis = basis or basis_of(dynamics.equations(q, v, t), root)
    W_rate, gradient = np.zeros_like(basis.W_r), np.zeros_like(basis.W_r.T)
    for k, direction in enumerate(np.eye(dynamics.nv)):
        rates = matrix_rates(dynamics, q, direction, t, in_time=False)
        L_rate, V_rate = basis_rates(basis, *rates, root)
        dW = L_rate.T @ basis.V_2 + basis.L.T @ V_rate
        W_rate += v[k] * dW
        gradient[:, k] = dW.T @ v
    forced = np.linalg.solve(basis.L.T, W_rate - gradient.T)
    return Gamma(basis, basis.V_2.T @ forced, basis.V_1.T @ forced)


def skew_rate(
    dynamics: Dynamics, q: Array, v_r: Array, t: float, basis: Basis, root: Root = "tree"
) -> Array:
    """S (dof, dof), skew, with S v_r = Gamma_r v_r; for any system with rows at rest.

    Gamma_r v_r is of second degree in v_r. With G_i(a, b) its symmetric bilinear form,
    S_ij = 2/3 (G_i(e_j, v_r) - G_j(e_i, v_r)); it has the same effect since the kinetic energy is
    v_rᵀ v_r / 2, so that v_rᵀ Gamma_r v_r = 0 for all v_r.

    Args:
        dynamics: The system.
        q: Configuration (nq,).
        v_r: Quasi-velocities (dof,) in ``basis``.
        t: Time [s].
        basis: Of ``basis_of`` at q.
        root: The one of the basis.
    """
    free = basis.unwhiten(basis.V_2)

    def turned(x: Array) -> Array:  # L̇ L⁻¹ V_2 (nv, dof) when v_r is x
        M_rate, _ = matrix_rates(dynamics, q, free @ x, t, in_time=False)
        return square_root_rate(basis.L, M_rate, root) @ free

    now, v = turned(v_r), free @ v_r
    G = np.empty((len(v_r), len(v_r)))
    for j, e_j in enumerate(np.eye(len(v_r))):
        inertial = basis.whiten_force(inertial_force(dynamics, q, free[:, j], v, t))
        G[:, j] = basis.V_2.T @ (inertial - (now[:, j] + turned(e_j) @ v_r) / 2)
    return np.asarray((G - G.T) * (2 / 3), np.float64)
