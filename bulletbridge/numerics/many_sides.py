"""The split of ``projection`` for many right sides at once: side by side, they vectorise."""

from typing import NamedTuple

from bulletbridge.compilation.block_sizes import LINES
from bulletbridge.compilation.jit import (
    add_tile,
    helper,
    outlined,
    solve_down_tile,
    solve_up_tile,
)
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Records


@helper
def reach(A: Array, i: int, count: int, ends: tuple[int, int]) -> tuple[int, int]:
    """Columns of A between the ends outside of which some lines are zero."""
    (first, last), end = ends, i + count
    while first < last and are_zeros(A, i, end, first):
        first += 1
    while first < last and are_zeros(A, i, end, last - 1):
        last -= 1
    return first, last


@helper
def are_zeros(A: Array, i: int, end: int, k: int) -> bool:
    """Whether lines i to ``end`` - 1 of A have zeros in column k."""
    while i < end:
        if A[i, k] != 0.0:
            return False
        i += 1
    return True


@outlined
def add_product(size: float, A: Array, before: int, B: Array, C: Array) -> None:
    """C += size A B, of A (n, .) the columns from ``before`` on; B (k, m), C (n, m or more)."""
    n, m, end = C.shape[0], min(B.shape[1], C.shape[1]), before + B.shape[0]
    for i in range(0, n, LINES):
        count = min(LINES, n - i)
        first, last = reach(A, i, count, (before, end))
        add_tile(C, A, B, size, (i, count, first, last, before, m))


@outlined
def solve_down(A: Array, X: Array) -> None:
    """X (n, m) <- A⁻¹ X, with the lower triangle of A."""
    n, m = X.shape
    for i in range(0, n, LINES):
        count = min(LINES, n - i)
        first, last = reach(A, i, count, (0, i))
        solve_down_tile(X, A, (i, count, first, last, 0, m))


@outlined
def solve_up(A: Array, X: Array) -> None:
    """X (n, m) <- A⁻¹ X, with the upper triangle of A."""
    (n, m), end = X.shape, X.shape[0]
    while end > 0:
        i = max(0, end - LINES)
        first, last = reach(A, i, end - i, (end, n))
        solve_up_tile(X, A, (i, end - i, first, last, 0, m))
        end = i


class SplitArrays(NamedTuple):
    """A split of ``projection``, with the rows that it keeps."""

    L: Array  # (nv, nv)
    Y: Array  # (nc, nv)
    R: Array  # (nc, nc)
    rows: Records[Row]  # (nc,) those that follow from others are left out
    rank: int  # how many are not


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
    solve_up(L.T, X)
    for i in range(rank):
        row = rows[rows[i].pivot]
        for j in range(m):
            parts[i, j] = row.scale * sides[rows[i].pivot, j]
        for j in range(m, n):
            parts[i, j] = 0.0
    solve_down(R, parts[:rank])
    # the columns' own parts along the rows are exchanged for those that the rows ask for, some rows
    # after the others: what rounding leaves of these is then seen by the next
    for first in range(0, rank, LINES):
        last = min(first + LINES, rank)
        add_product(-1.0, Y[first:last], 0, X, parts[first:last])
        add_product(1.0, Y[first:last].T, 0, parts[first:last], X)
    solve_down(L, X)


@helper
def take_multipliers(split: SplitArrays, parts: Array, multipliers: Array) -> None:
    """Λ (nc, n) of ``respond`` from parts, which are lost.

    Of the rows without their scale; zero for those left out.
    """
    (_, _, R, rows, rank), n = split, parts.shape[1]
    for i in range(multipliers.shape[0]):
        for j in range(n):
            multipliers[i, j] = 0.0
    solve_up(R[:rank, :rank].T, parts[:rank])
    for i in range(rank):
        p = rows[i].pivot
        for j in range(n):
            multipliers[p, j] = rows[p].scale * parts[i, j]
