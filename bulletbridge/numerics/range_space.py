"""Range-space method: A = J M⁻¹ Jᵀ of a mass matrix in blocks, factorised sparsely.

Each block M_k = Lᵀ L is factorised by itself; rows J_k of the constraints at it become
Y_k = J_k L⁻¹, and A is the sum of Y_k Y_kᵀ, put where the rows meet. Blocks of one size with as
many rows are stacked. A squares the condition of the rows: rows that depend on each other are not
told from others by it, but are told to be weak.

Source: Nocedal and Wright, Numerical Optimization, 16.2; George and Liu, Computer Solution of
Large Sparse Positive Definite Systems.
"""

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.numerics.projection import (
    factor_mass,
    unwhiten,
    whiten_force,
    whiten_rows,
    whiten_velocity,
)
from bulletbridge.numerics.records import Array, Ints

FORCE, VELOCITY, BACK = 0, 1, 2
"""Into whitened coordinates, of forces and of velocities, and velocities out of them."""


@kernel
def open_blocks(M: Array, Y: Array, slots: Ints, A: Array) -> bool:
    """Factorise blocks M (k, n, n) in place, whiten their rows Y (k, r, n), add Y Yᵀ to A.

    Args:
        M: Lower triangles; L in their place afterwards.
        Y: Rows in one unit; whitened afterwards.
        slots: (k, r, r) where in A each product goes; -1 for those above the diagonal.
        A: (entries,) to be added to.

    Returns:
        Whether all blocks are positive definite.
    """
    definite = True
    for k in range(M.shape[0]):
        L, rows = M[k], Y[k]
        factor_mass(L)
        for i in range(L.shape[0]):
            definite = definite and L[i, i] > 0.0
        whiten_rows(L, rows)
        for i in range(rows.shape[0]):
            for j in range(rows.shape[0]):
                slot = slots[k, i, j]
                if slot >= 0:
                    total = 0.0
                    for c in range(rows.shape[1]):
                        total += rows[i, c] * rows[j, c]
                    A[slot] += total
    return definite


@kernel
def turn_blocks(L: Array, x: Array, what: int) -> None:
    """Take vectors (k, n) of blocks into whitened coordinates, or back, in place.

    Args:
        L: (k, n, n) factors of the blocks.
        x: Forces, velocities, or what is whitened.
        what: FORCE, VELOCITY or BACK.
    """
    for k in range(L.shape[0]):
        if what == FORCE:
            whiten_force(L[k], x[k])
        elif what == VELOCITY:
            whiten_velocity(L[k], x[k])
        else:
            unwhiten(L[k], x[k])


@kernel
def add_rates(Y: Array, rows: Ints, x: Array, out: Array) -> None:
    """Add Y_k x_k of blocks, Y (k, r, n) and x (k, n), to out (nc,) at their rows (k, r)."""
    for k in range(Y.shape[0]):
        for i in range(Y.shape[1]):
            total = 0.0
            for c in range(Y.shape[2]):
                total += Y[k, i, c] * x[k, c]
            out[rows[k, i]] += total


@kernel
def add_impulses(Y: Array, rows: Ints, mu: Array, x: Array) -> None:
    """Add Y_kᵀ mu of blocks, mu (nc,) at their rows (k, r), to x (k, n)."""
    for k in range(Y.shape[0]):
        for i in range(Y.shape[1]):
            s = mu[rows[k, i]]
            if s != 0.0:
                for c in range(Y.shape[2]):
                    x[k, c] += s * Y[k, i, c]


@kernel
def factor_sparse(
    indptr: Ints, indices: Ints, A: Array, groups: Ints, weak: Ints, share: float
) -> None:
    """Factorise A = L D Lᵀ in place, group by group of rows that meet.

    Args:
        indptr: (n + 1,) where each column begins.
        indices: Rows of its entries, ascending from the diagonal, with all that fills in.
        A: Entries; D on the diagonal and L below it afterwards.
        groups: (n,) to which group each row belongs.
        weak: (groups,) 0; 1 afterwards for groups that were given up.
        share: Of the largest diagonal; a group with a pivot that is no larger is given up.
    """
    n, largest = len(indptr) - 1, 0.0
    for j in range(n):
        largest = max(largest, A[indptr[j]])
    for j in range(n):
        if weak[groups[j]] == 0:
            first, end = indptr[j], indptr[j + 1]
            pivot = A[first]
            if not pivot > share * largest:
                weak[groups[j]] = 1
            else:
                for p in range(first + 1, end):
                    subtract_column(indptr, indices, A, p, end, A[p] / pivot)
                for p in range(first + 1, end):
                    A[p] /= pivot


@helper
def subtract_column(indptr: Ints, indices: Ints, A: Array, p: int, end: int, x: float) -> None:
    """Take x times entries p to ``end`` of a column away from the column of the row of p."""
    at = indptr[indices[p]]
    for s in range(p, end):
        while indices[at] != indices[s]:
            at += 1
        A[at] -= x * A[s]


@kernel
def solve_sparse(indptr: Ints, indices: Ints, A: Array, groups: Ints, weak: Ints, x: Array) -> None:
    """x <- A⁻¹ x by the factors of ``factor_sparse``; zero in groups that were given up."""
    n = len(indptr) - 1
    for j in range(n):
        if weak[groups[j]] == 0:
            for p in range(indptr[j] + 1, indptr[j + 1]):
                x[indices[p]] -= A[p] * x[j]
    for j in range(n - 1, -1, -1):
        total = 0.0
        if weak[groups[j]] == 0:
            total = x[j] / A[indptr[j]]
            for p in range(indptr[j] + 1, indptr[j + 1]):
                total -= A[p] * x[indices[p]]
        x[j] = total
