"""Triangular systems of a few rows, in Python."""

import numpy as np

from bulletbridge.numerics.records import Array


def solve_triangle(T: Array, y: Array, *, lower: bool = True, transposed: bool = False) -> Array:
    """T⁻¹ y, or T⁻ᵀ y, of one vector (n,) or of columns (n, m).

    By BLAS. LAPACK's solver, which scipy.linalg.solve_triangular calls, wakes other threads for the
    smallest systems: 1 µs on an idle machine, milliseconds on a busy one.
    """
    from scipy.linalg.blas import dtrsm

    if not y.size:
        return np.zeros_like(y)
    columns = y if y.ndim == 2 else y[:, None]
    x = dtrsm(1.0, T, columns, lower=lower, trans_a=transposed)
    return np.asarray(x.reshape(y.shape), np.float64)
