"""Split of velocity space into what constraints forbid and what they leave free.

M = Lᵀ L with L lower triangular keeps the branches of the tree: zeros stay zeros. In whitened
coordinates y = L v the metric is the identity, and the constraint rows Y = S J L⁻¹, S scaling every
row to one unit, are orthonormalised by a pivoted Gram-Schmidt that reveals the rank:
Y[pivot] = R Q. The projector on the free velocities is I - QᵀQ; neither it nor the weighted inverse
is ever formed. The normal matrix J M⁻¹ Jᵀ would square the condition number: no rank is taken from
it.

Source: Kövecses and Piedbœuf 2003, eq. 31-33; Björck, Numerical Methods for Least Squares
Problems.
"""

import math

from bulletbridge.numerics.jit import helper, kernel
from bulletbridge.numerics.records import Array, Int, Real, Records, dtype_of


class Row:
    """One scalar constraint: g = 0, J v + g_t = 0, J v̇ + gamma = 0."""

    unit: Real  # to one unit: 1/length for rows in metres
    scale: Real  # the same, and to a length near one once whitened: what rank is decided on
    g: Real
    g_t: Real
    gamma: Real
    pivot: Int  # number of the row that stands here after pivoting
    left: Real  # its squared length that earlier rows do not explain
    full: Real  # its squared length


ROW = dtype_of(Row)


@kernel
def factor_mass(M: Array) -> None:
    """In place M = Lᵀ L from the lower triangle (nv, nv).

    Source: Featherstone, Rigid Body Dynamics Algorithms, table 8.1.
    """
    for k in range(M.shape[0] - 1, -1, -1):
        root = math.sqrt(M[k, k])
        M[k, k] = root
        for j in range(k):
            M[k, j] /= root
        for i in range(k):
            x = M[k, i]
            if x != 0.0:
                for j in range(i + 1):
                    M[i, j] -= x * M[k, j]


@helper
def whiten_rows(L: Array, Y: Array) -> None:
    """Rows into whitened coordinates: Y <- Y L⁻¹."""
    for r in range(Y.shape[0]):
        for k in range(L.shape[0] - 1, -1, -1):
            x = Y[r, k]
            if x != 0.0:
                x /= L[k, k]
                Y[r, k] = x
                for j in range(k):
                    Y[r, j] -= x * L[k, j]


@helper
def whiten_force(L: Array, f: Array) -> None:
    """Forces into whitened coordinates: f <- L⁻ᵀ f."""
    for k in range(L.shape[0] - 1, -1, -1):
        x = f[k]
        if x != 0.0:
            x /= L[k, k]
            f[k] = x
            for j in range(k):
                f[j] -= x * L[k, j]


@helper
def whiten_velocity(L: Array, y: Array) -> None:
    """Velocities into whitened coordinates: y <- L y."""
    for k in range(L.shape[0] - 1, -1, -1):
        total = 0.0
        for j in range(k + 1):
            total += L[k, j] * y[j]
        y[k] = total


@helper
def unwhiten(L: Array, y: Array) -> None:
    """Whitened velocities or accelerations back: y <- L⁻¹ y."""
    for k in range(L.shape[0]):
        total = y[k]
        for j in range(k):
            total -= L[k, j] * y[j]
        y[k] = total / L[k, k]


@helper
def square(Y: Array, i: int) -> float:
    """Squared length of row i."""
    total = 0.0
    for j in range(Y.shape[1]):
        total += Y[i, j] * Y[i, j]
    return total


@helper
def inner(Y: Array, i: int, x: Array) -> float:
    """Scalar product of row i with x."""
    total = 0.0
    for j in range(Y.shape[1]):
        total += Y[i, j] * x[j]
    return total


@helper
def add_row(x: Array, s: float, Y: Array, i: int) -> None:
    """Add s times row i to x."""
    for j in range(Y.shape[1]):
        x[j] += s * Y[i, j]


@helper
def take_away(Y: Array, i: int, s: float, k: int) -> float:
    """Row i <- row i - s times row k; its squared length then."""
    total = 0.0
    for j in range(Y.shape[1]):
        x = Y[i, j] - s * Y[k, j]
        Y[i, j] = x
        total += x * x
    return total


@helper
def exchange(Y: Array, R: Array, rows: Records[Row], i: int, k: int) -> None:
    """Exchange places i and k of the pivoting."""
    for j in range(Y.shape[1]):
        Y[i, j], Y[k, j] = Y[k, j], Y[i, j]
    for j in range(min(i, k)):
        R[i, j], R[k, j] = R[k, j], R[i, j]
    a, b = rows[i], rows[k]
    a.pivot, b.pivot = b.pivot, a.pivot
    a.left, b.left = b.left, a.left
    a.full, b.full = b.full, a.full


@helper
def orthogonalise(Y: Array, R: Array, rows: Records[Row], cap: int, rtol: float) -> int:
    """Orthonormalise the rows of Y (nc, nv) in place, largest first; return the rank.

    At most ``cap`` rows are kept, and none that is shorter than ``rtol`` times the longest.
    Rows pivot[:rank] of the input are R[:rank, :rank] Y[:rank], R lower triangular; the entries of
    R below belong to the dependent rows.
    """
    top = 0.0
    for i in range(Y.shape[0]):
        row = rows[i]
        row.full = square(Y, i)
        row.left = row.full
        row.pivot = i
        top = max(top, row.full)
    cut = rtol * rtol * top
    for k in range(min(Y.shape[0], Y.shape[1], cap)):
        best, most = k, rows[k].left
        for i in range(k + 1, Y.shape[0]):
            if rows[i].left > most:
                best, most = i, rows[i].left
        if best != k:
            exchange(Y, R, rows, best, k)
        if rows[k].left < 0.01 * rows[k].full:  # lost a digit: twice is enough
            for i in range(k):
                s = inner(Y, i, Y[k])
                R[k, i] += s
                add_row(Y[k], -s, Y, i)
        length2 = square(Y, k)
        if not length2 > cut:
            return k
        length = math.sqrt(length2)
        R[k, k] = length
        for j in range(Y.shape[1]):
            Y[k, j] /= length
        for i in range(k + 1, Y.shape[0]):
            s = inner(Y, k, Y[i])
            R[i, k] = s
            if s != 0.0:
                rows[i].left = take_away(Y, i, s, k)
    return min(Y.shape[0], Y.shape[1], cap)


@kernel
def split_rows(L: Array, Y: Array, R: Array, rows: Records[Row], rtol: float) -> int:
    """Factor M, given in L, and orthonormalise the rows Y in its metric, in place; the rank."""
    factor_mass(L)
    whiten_rows(L, Y)
    return orthogonalise(Y, R, rows, Y.shape[0], rtol)


@helper
def leading_rank(R: Array, rank: int, rtol: float) -> int:
    """How many of the ``rank`` kept rows are longer than ``rtol`` times the first."""
    kept = rank
    while kept > 0 and R[kept - 1, kept - 1] < rtol * R[0, 0]:
        kept -= 1
    return kept


@helper
def row_space_solution(Y: Array, R: Array, rank: int, y: Array, z: Array) -> None:
    """Shortest solution z (nv,) of the kept rows; y holds their right sides, and is lost."""
    for j in range(Y.shape[1]):
        z[j] = 0.0
    for i in range(rank):
        total = y[i]
        for k in range(i):
            total -= R[i, k] * y[k]
        y[i] = total / R[i, i]
        add_row(z, y[i], Y, i)


@helper
def project_out(Y: Array, rank: int, x: Array) -> None:
    """Take away from x what the kept rows forbid: x <- (I - QᵀQ) x."""
    for i in range(rank):
        add_row(x, -inner(Y, i, x), Y, i)
