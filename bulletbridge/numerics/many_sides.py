"""The split of ``projection`` for many right sides at once: side by side, they vectorise."""

from typing import NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Records


@helper
def add_lines(line: Array, size: float, factors: Array, first: int, last: int, B: Array) -> None:
    """line += size Σ factors[k] B[k], k from ``first`` to ``last`` - 1, as far as both reach.

    Four at a time, which takes a fourth of the passes over the line; zeros cost nothing.
    """
    k, m = first, min(len(line), B.shape[1])
    while k + 4 <= last:
        a, b = size * factors[k], size * factors[k + 1]
        c, d = size * factors[k + 2], size * factors[k + 3]
        if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
            for j in range(m):
                line[j] += a * B[k, j] + b * B[k + 1, j] + c * B[k + 2, j] + d * B[k + 3, j]
        k += 4
    while k < last:
        a = size * factors[k]
        if a != 0.0:
            for j in range(m):
                line[j] += a * B[k, j]
        k += 1


@helper
def add_to_two(
    x: Array, y: Array, size: float, of_x: Array, of_y: Array, ends: tuple[int, int], B: Array
) -> None:
    """``add_lines`` to x by factors of_x and to y by of_y: B is then read once for both."""
    (k, last), m = ends, min(len(x), B.shape[1])
    while k + 4 <= last:
        a, b, c, d = size * of_x[k], size * of_x[k + 1], size * of_x[k + 2], size * of_x[k + 3]
        e, f, g, h = size * of_y[k], size * of_y[k + 1], size * of_y[k + 2], size * of_y[k + 3]
        if (
            a != 0.0
            or b != 0.0
            or c != 0.0
            or d != 0.0
            or (e != 0.0 or f != 0.0 or g != 0.0 or h != 0.0)
        ):
            for j in range(m):
                p, q, r, s = B[k, j], B[k + 1, j], B[k + 2, j], B[k + 3, j]
                x[j] += a * p + b * q + c * r + d * s
                y[j] += e * p + f * q + g * r + h * s
        k += 4
    add_lines(x, size, of_x, k, last, B)
    add_lines(y, size, of_y, k, last, B)


@helper
def whiten_forces(L: Array, X: Array) -> None:
    """Columns X (nv, n) of forces into whitened coordinates: X <- L⁻ᵀ X."""
    n = L.shape[0]
    k = n - 1
    while k > 0:
        add_to_two(X[k], X[k - 1], -1.0, L[:, k], L[:, k - 1], (k + 1, n), X)
        finish_two(X[k], X[k - 1], float(L[k, k]), float(L[k, k - 1]), float(L[k - 1, k - 1]))
        k -= 2
    if k == 0:
        add_lines(X[0], -1.0, L[:, 0], 1, n, X)
        scale_line(X[0], 1.0 / L[0, 0])


@helper
def unwhiten_columns(L: Array, X: Array) -> None:
    """Columns of whitened accelerations back: X <- L⁻¹ X."""
    k, n = 0, L.shape[0]
    while k + 2 <= n:
        add_to_two(X[k], X[k + 1], -1.0, L[k], L[k + 1], (0, k), X)
        finish_two(X[k], X[k + 1], L[k, k], L[k + 1, k], L[k + 1, k + 1])
        k += 2
    if k < n:
        add_lines(X[k], -1.0, L[k], 0, k, X)
        scale_line(X[k], 1.0 / L[k, k])


@helper
def scale_line(x: Array, size: float) -> None:
    """x <- size x."""
    for j in range(len(x)):
        x[j] *= size


@helper
def finish_two(x: Array, y: Array, of_x: float, of_both: float, of_y: float) -> None:
    """Two lines of a triangular solve: x <- x / of_x, then y <- (y - of_both x) / of_y."""
    s, r = 1.0 / of_x, 1.0 / of_y
    for j in range(len(x)):
        found = s * x[j]
        x[j] = found
        y[j] = r * (y[j] - of_both * found)


@outlined
def add_product(size: float, A: Array, first: int, B: Array, C: Array) -> None:
    """C += size A B, of A (n, .) the columns from ``first`` on; B (k, m), C (n, m or more)."""
    i, n, ends = 0, C.shape[0], (0, B.shape[0])
    while i + 2 <= n:
        add_to_two(C[i], C[i + 1], size, A[i, first:], A[i + 1, first:], ends, B)
        i += 2
    if i < n:
        add_lines(C[i], size, A[i, first:], 0, B.shape[0], B)


class SplitArrays(NamedTuple):
    """A split of ``projection``, with the rows that it keeps.

    Attributes:
        L: (nv, nv)
        Y: (nc, nv)
        R: (nc, nc)
        rows: (nc,) those that follow from others are left out.
        rank: How many are not.
    """

    L: Array
    Y: Array
    R: Array
    rows: Records[Row]
    rank: int


@outlined
def respond(split: SplitArrays, sides: Array, X: Array, parts: Array) -> None:
    """Solve M X - Jᵀ Λ = X, J X = sides for as many columns as X has.

    Args:
        split: Of M and J.
        sides: (nc, m) with m up to n; further columns are zero.
        X: (nv, n) forces, then accelerations.
        parts: (nc, n) receives what ``take_multipliers`` makes Λ of.
    """
    (L, Y, R, rows, rank), n, m = split, X.shape[1], sides.shape[1]
    whiten_forces(L, X)
    for i in range(rank):
        row = rows[rows[i].pivot]
        for j in range(n):
            parts[i, j] = 0.0
        for j in range(m):
            parts[i, j] = row.scale * sides[rows[i].pivot, j]
        add_lines(parts[i], -1.0, R[i], 0, i, parts)
        scale_line(parts[i], 1.0 / R[i, i])
    # the columns' own parts along the rows are exchanged for those that the rows ask for, four rows
    # after the others: what rounding leaves of these is then seen by the next
    for first in range(0, rank, 4):
        last = min(first + 4, rank)
        add_product(-1.0, Y[first:last], 0, X, parts[first:last])
        k, size = 0, L.shape[0]
        while k + 2 <= size:
            add_to_two(X[k], X[k + 1], 1.0, Y[:, k], Y[:, k + 1], (first, last), parts)
            k += 2
        if k < size:
            add_lines(X[k], 1.0, Y[:, k], first, last, parts)
    unwhiten_columns(L, X)


@helper
def take_multipliers(split: SplitArrays, parts: Array, multipliers: Array) -> None:
    """Λ (nc, n) of ``respond`` from parts, which are lost.

    Of the rows without their scale; zero for those left out.
    """
    (_, _, R, rows, rank), n = split, parts.shape[1]
    for i in range(multipliers.shape[0]):
        for j in range(n):
            multipliers[i, j] = 0.0
    for i in range(rank - 1, -1, -1):
        add_lines(parts[i], -1.0, R[:, i], i + 1, rank, parts)
        row = rows[rows[i].pivot]
        s, size, p = 1.0 / R[i, i], row.scale, rows[i].pivot
        for j in range(n):
            parts[i, j] *= s
            multipliers[p, j] = size * parts[i, j]
