"""Table and linear systems of Radau IIA of order 5.

Chart coordinates u and rates v are the unknowns, and u̇ = v up to what the chart turns. With
A_q = ∂v̇/∂u and A_v = ∂v̇/∂v a system with the matrix m - ∂f falls into one of half its size,

    (m - A_v - A_q / m) x_v = r_v + A_q r_u / m,   x_u = (r_u + x_v) / m.

Source: Hairer and Wanner, Solving Ordinary Differential Equations II, IV.8.
"""

import math

import numpy as np

from bulletbridge.compilation.jit import helper
from bulletbridge.engine.records import STAGE_RATES, STAGE_VDOTS, Arrays
from bulletbridge.numerics.lu import back_complex, back_real, lu_complex, lu_real
from bulletbridge.numerics.records import Array

ROOT = math.sqrt(6.0)
C = np.array([(4.0 - ROOT) / 10.0, (4.0 + ROOT) / 10.0, 1.0])
EMBEDDED = np.array([-13.0 - 7.0 * ROOT, -13.0 + 7.0 * ROOT, -1.0]) / 3.0
"""Weights of Z/h in the error estimate (Hairer and Wanner, eq. IV.8.18 to 8.20)."""


def diagonalised() -> tuple[float, complex, Array, Array]:
    """Eigenvalues of the inverse collocation matrix, real and complex, and transforms.

    With w = (w_r, Re w_c, Im w_c): w = TI Z, Z = T w.
    """
    powers = np.arange(1, 4)
    A = (C[:, None] ** powers / powers) @ np.linalg.inv(C[:, None] ** (powers - 1))
    found, vectors = np.linalg.eig(np.linalg.inv(A))
    values = np.asarray(found, np.complex128)
    right = np.asarray(vectors, np.complex128)
    left = np.linalg.inv(right)
    r, c = int(np.argmin(np.abs(np.imag(values)))), int(np.argmax(np.imag(values)))
    turn = right[0, r].conjugate() / abs(right[0, r])
    t, ti = np.real(turn * right[:, r]), np.real(left[r] / turn)
    T = np.stack([t, 2.0 * np.real(right[:, c]), -2.0 * np.imag(right[:, c])], axis=1)
    return (
        complex(values[r]).real,
        complex(values[c]),
        np.ascontiguousarray(T),
        np.array([ti, np.real(left[c]), np.imag(left[c])], np.float64),
    )


M_REAL, _COMPLEX, T, TI = diagonalised()
M_RE, M_IM = _COMPLEX.real, _COMPLEX.imag
A_Q, A_V, REAL, RE, IM, WAYS, MATRICES = 2, 3, 4, 5, 6, 7, 8
"""Matrices of an implicit method in the array of factors."""
VALUES, TRANSFORMED, STAGES, SIDE, TURNS = 1, 4, 7, 10, 11
"""From the rows of stages on: 3 right sides, 3 of w, 3 of Z, a right side, and pivots."""


@helper
def factor(a: Arrays, L: Array, nv: int) -> None:
    """LU factors of m - A_v - A_q / m for both eigenvalues m over ``control.dt``."""
    real, re, im = M_REAL / a.control.dt, M_RE / a.control.dt, M_IM / a.control.dt
    size = re * re + im * im
    for i in range(nv):
        for j in range(nv):
            A = L[A_Q, i, j]
            L[REAL, i, j] = -L[A_V, i, j] - A / real
            L[RE, i, j] = -L[A_V, i, j] - A * re / size
            L[IM, i, j] = A * im / size
        L[REAL, i, i] += real
        L[RE, i, i] += re
        L[IM, i, i] += im
    lu_real(L[REAL], a.vectors[STAGE_RATES + TURNS, :nv])
    lu_complex(L[RE], L[IM], a.vectors[STAGE_VDOTS + TURNS, :nv])


@helper
def solve_real(a: Arrays, L: Array, rates: int, vdots: int, nv: int) -> None:
    """Solve m x_u - x_v = r_u, m x_v - A_q x_u - A_v x_v = r_v for the real eigenvalue m, in place.

    r_u is the row ``rates`` of ``a.vectors``, r_v the row ``vdots``; L as ``factor`` leaves it.
    """
    x, m = a.vectors, M_REAL / a.control.dt
    for i in range(nv):
        for j in range(nv):
            x[vdots, i] += L[A_Q, i, j] * x[rates, j] / m
    back_real(L[REAL], a.vectors[STAGE_RATES + TURNS, :nv], x[vdots, :nv])
    for k in range(nv):
        x[rates, k] = (x[rates, k] + x[vdots, k]) / m


@helper
def solve_complex(a: Arrays, L: Array, nv: int) -> None:
    """``solve_real`` for the complex eigenvalue, of the second and third of VALUES: re and im."""
    x, re, im = a.vectors, M_RE / a.control.dt, M_IM / a.control.dt
    size = re * re + im * im
    u, v = STAGE_RATES + VALUES + 1, STAGE_VDOTS + VALUES + 1
    for i in range(nv):
        for j in range(nv):
            p, s = x[u, j], x[u + 1, j]
            x[v, i] += L[A_Q, i, j] * (p * re + s * im) / size
            x[v + 1, i] += L[A_Q, i, j] * (s * re - p * im) / size
    back_complex(L[RE], L[IM], a.vectors[STAGE_VDOTS + TURNS, :nv], x[v, :nv], x[v + 1, :nv])
    for k in range(nv):
        p, s = x[u, k] + x[v, k], x[u + 1, k] + x[v + 1, k]
        x[u, k] = (p * re + s * im) / size
        x[u + 1, k] = (s * re - p * im) / size
