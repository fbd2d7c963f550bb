"""What constraints leave free, as an orthonormal basis, and products of rows on that."""

import math

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.projection import (
    LOST,
    add_row,
    multiply,
    project_out,
    square,
    unwhiten,
)
from bulletbridge.numerics.records import Array, Ints

FEW = 4
"""Rows up to which each is solved for by itself."""


@outlined
def put_admissible_basis(Q: Array, rank: int, N: Array, left: Array) -> None:
    """Rows of N (nv - rank, nv) <- an orthonormal basis of what the first rows of Q leave.

    They are the Cholesky factor of the projector 1 - QᵀQ, of which the largest number on the
    diagonal is eliminated first; ``left`` (nv,) is room for that.
    """
    n = Q.shape[1]
    for j in range(n):
        left[j] = 1.0
    for i in range(rank):
        for j in range(n):
            left[j] -= Q[i, j] * Q[i, j]
    for k in range(n - rank):
        best, x = 0, N[k]
        for j in range(n):
            x[j] = 0.0
            if left[j] > left[best]:
                best = j
        x[best] = 1.0
        for i in range(rank):
            if Q[i, best] != 0.0:
                add_row(x, -Q[i, best], Q, i)
        for i in range(k):
            if N[i, best] != 0.0:
                add_row(x, -N[i, best], N, i)
        if x[best] < LOST:  # twice is enough
            project_out(Q, rank, x)
            project_out(N, k, x)
        multiply(x, 1.0 / math.sqrt(square(N, k)))
        for j in range(n):
            left[j] -= x[j] * x[j]


@outlined
def unwhiten_rows(L: Array, N: Array, first: Ints, Z: Array) -> None:
    """Columns of Z (nv, rows or more) <- L⁻¹ times each row of N, which is lost.

    They are solved for side by side, past the zeros of L, if there are enough for that to pay.
    """
    count = len(N)
    if count < FEW:
        for m in range(count):
            unwhiten(L, N[m], first)
    for k in range(L.shape[0]):
        line = Z[k]
        for m in range(count):
            line[m] = N[m, k]
        if count < FEW:
            continue
        for j in range(first[k], k):
            x = L[k, j]
            if x != 0.0:
                for m in range(count):
                    line[m] -= x * Z[j, m]
        for m in range(count):
            line[m] /= L[k, k]


@helper
def first_of(x: Array, y: Array, end: int) -> float:
    """Scalar product of so many first numbers."""
    total = 0.0
    for j in range(end):
        total += x[j] * y[j]
    return total
