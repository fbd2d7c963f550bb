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
from collections.abc import Callable
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.numerics.records import Array, Int, Ints, Real, Records, dtype_of


class Row:
    """One scalar constraint: g = 0, J v + g_t = 0, J v̇ + gamma = 0."""

    unit: Real  # to one unit: 1/length for rows in metres
    scale: Real  # the same, and to a length near one once whitened: what rank is decided on
    g: Real
    g_t: Real
    gamma: Real
    level: Int  # 0 if it holds a position, 1 if a velocity alone
    pivot: Int  # number of the row that stands here after pivoting
    left: Real  # its squared length that earlier rows do not explain
    full: Real  # its squared length
    taken: Int  # earlier rows that have been taken away from it
    known: Real  # its squared length then (records of numpy have a base of their own)


ROW = dtype_of(Row)
LOST, LOST_ALL = 0.01, 1e-6
"""Share of its squared length with which a row that earlier ones explain is made orthogonal to them
once more; share with which what is left of it is no longer told by what they explain."""
MANY_RATES, SOME_RATES = 48, 16
"""From which on single vectors go by where rows of a triangle begin, and from which on they are
solved for so where there are several trees: for few it takes longer to begin a loop there than to
go through zeros, but a number that the last row has just given is waited for. Loops for these are
written again and not called for both, which has every kernel take a twentieth longer to compile."""
WEAK, LAST = 2, 3
"""Levels at which rows are taken that are weak: those that hold positions, then velocities."""


@helper
def beginning(first: Ints | None, k: int) -> int:
    """Column in which row k of a triangle begins."""
    return 0 if first is None else first[k]


@helper
def are_short(first: Ints) -> bool:
    """Whether lines of a triangle, which begin in columns ``first``, are worth beginning there."""
    n = len(first)
    return n >= MANY_RATES or (n >= SOME_RATES and first[n - 1] > 0)


@kernel
def factor_mass(M: Array) -> None:
    """Factorise M = Lᵀ L in place, from the lower triangle (nv, nv).

    Source: Featherstone, Rigid Body Dynamics Algorithms, table 8.1.
    """
    factor_profile(M)


@helper
def factor_profile(M: Array, first: Ints | None = None) -> None:
    """``factor_mass`` where row k begins in column first[k], as those of L do afterwards."""
    for k in range(M.shape[0] - 1, -1, -1):
        begin = beginning(first, k)
        root = math.sqrt(M[k, k])
        M[k, k] = root
        for j in range(begin, k):
            M[k, j] /= root
        for i in range(begin, k):
            x = M[k, i]
            if x != 0.0:
                for j in range(begin, i + 1):
                    M[i, j] -= x * M[k, j]


@helper
def widen(M: Array, first: Ints) -> None:
    """Let rows of M (nv, nv) begin where they do, if earlier, and all that elimination may fill."""
    for k in range(M.shape[0] - 1, -1, -1):
        begin = 0
        while begin < first[k] and M[k, begin] == 0.0:
            begin += 1
        first[k] = begin
        for i in range(begin, k):
            first[i] = min(first[i], begin)


@helper
def whiten_rows(L: Array, Y: Array, first: Ints | None = None) -> None:
    """Rows into whitened coordinates: Y <- Y L⁻¹.

    Rows of L begin in columns ``first``, where these are given.
    """
    r, end = 0, Y.shape[0]
    while r + 2 < end:  # rows of one loop are mostly of the same columns
        for k in range(L.shape[0] - 1, -1, -1):
            x0, x1, x2 = Y[r, k], Y[r + 1, k], Y[r + 2, k]
            if x0 != 0.0 or x1 != 0.0 or x2 != 0.0:
                x0, x1, x2 = x0 / L[k, k], x1 / L[k, k], x2 / L[k, k]
                Y[r, k], Y[r + 1, k], Y[r + 2, k] = x0, x1, x2
                for j in range(beginning(first, k), k):
                    Y[r, j] -= x0 * L[k, j]
                    Y[r + 1, j] -= x1 * L[k, j]
                    Y[r + 2, j] -= x2 * L[k, j]
        r += 3
    while r < end:
        whiten_force(L, Y[r])
        r += 1


@helper
def whiten_force(L: Array, f: Array, first: Ints | None = None) -> None:
    """Forces into whitened coordinates: f <- L⁻ᵀ f; of many rates, by where rows of L begin."""
    if first is not None and are_short(first):
        whiten_force_by_trees(L, f, first)
        return
    for k in range(L.shape[0] - 1, -1, -1):
        x = f[k]
        if x != 0.0:
            x /= L[k, k]
            f[k] = x
            for j in range(k):
                f[j] -= x * L[k, j]


@helper
def whiten_velocity(L: Array, y: Array, first: Ints | None = None) -> None:
    """Velocities into whitened coordinates: y <- L y; ``first`` as above."""
    if first is not None and L.shape[0] >= MANY_RATES:
        whiten_velocity_by_trees(L, y, first)
        return
    for k in range(L.shape[0] - 1, -1, -1):
        total = 0.0
        for j in range(k + 1):
            total += L[k, j] * y[j]
        y[k] = total


@helper
def unwhiten(L: Array, y: Array, first: Ints | None = None) -> None:
    """Whitened velocities or accelerations back: y <- L⁻¹ y; ``first`` as above."""
    if first is not None and are_short(first):
        unwhiten_by_trees(L, y, first)
        return
    for k in range(L.shape[0]):
        total = y[k]
        for j in range(k):
            total -= L[k, j] * y[j]
        y[k] = total / L[k, k]


@outlined
def whiten_force_by_trees(L: Array, f: Array, first: Ints) -> None:
    """``whiten_force`` without the columns before a row's tree."""
    for k in range(L.shape[0] - 1, -1, -1):
        x = f[k] / L[k, k]
        f[k] = x
        for j in range(first[k], k):
            f[j] -= x * L[k, j]


@outlined
def whiten_velocity_by_trees(L: Array, y: Array, first: Ints) -> None:
    """``whiten_velocity``, likewise."""
    for k in range(L.shape[0] - 1, -1, -1):
        total = 0.0
        for j in range(first[k], k + 1):
            total += L[k, j] * y[j]
        y[k] = total


@outlined
def unwhiten_by_trees(L: Array, y: Array, first: Ints) -> None:
    """``unwhiten``, likewise."""
    for k in range(L.shape[0]):
        total = y[k]
        for j in range(first[k], k):
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
def inner_four(
    Y: Array, i: int, x: Array, first: int, end: int
) -> tuple[float, float, float, float]:
    """Scalar products of rows i to i + 3 with x, of their numbers from ``first`` to ``end`` - 1."""
    s0 = s1 = s2 = s3 = 0.0
    for j in range(first, end):
        y = x[j]
        s0 += Y[i, j] * y
        s1 += Y[i + 1, j] * y
        s2 += Y[i + 2, j] * y
        s3 += Y[i + 3, j] * y
    return s0, s1, s2, s3


@helper
def take_away(Y: Array, R: Array, i: int, first: int, end: int) -> None:
    """Row i <- row i - R[i, k] times row k, of all k from ``first`` to before ``end``."""
    k = first
    while k + 3 < end:
        s0, s1, s2, s3 = R[i, k], R[i, k + 1], R[i, k + 2], R[i, k + 3]
        if s0 != 0.0 or s1 != 0.0 or s2 != 0.0 or s3 != 0.0:
            for j in range(Y.shape[1]):
                Y[i, j] -= s0 * Y[k, j] + s1 * Y[k + 1, j] + s2 * Y[k + 2, j] + s3 * Y[k + 3, j]
        k += 4
    while k < end:
        if R[i, k] != 0.0:
            add_row(Y[i], -R[i, k], Y, k)
        k += 1


@helper
def take_away_again(Y: Array, R: Array, i: int, end: int) -> None:
    """What rows to before ``end`` explain of row i by round-off, by four as ``project_first_out``.

    It is added to R and taken away.
    """
    k = 0
    while k + 3 < end:
        s0, s1, s2, s3 = inner_four(Y, k, Y[i], 0, Y.shape[1])
        R[i, k] += s0
        R[i, k + 1] += s1
        R[i, k + 2] += s2
        R[i, k + 3] += s3
        for j in range(Y.shape[1]):
            Y[i, j] -= s0 * Y[k, j] + s1 * Y[k + 1, j] + s2 * Y[k + 2, j] + s3 * Y[k + 3, j]
        k += 4
    while k < end:
        s = inner(Y, k, Y[i])
        R[i, k] += s
        add_row(Y[i], -s, Y, k)
        k += 1


@helper
def normalise(Y: Array, R: Array, k: int, length: float) -> None:
    """Divide row k by its length; its scalar products with all rows after it into R[i, k]."""
    for j in range(Y.shape[1]):
        Y[k, j] /= length
    i, end = k + 1, Y.shape[0]
    while i + 3 < end:
        R[i, k], R[i + 1, k], R[i + 2, k], R[i + 3, k] = inner_four(Y, i, Y[k], 0, Y.shape[1])
        i += 4
    while i < end:
        R[i, k] = inner(Y, k, Y[i])
        i += 1


@helper
def exchange_rows(Y: Array, i: int, k: int) -> None:
    """Exchange two rows."""
    for j in range(Y.shape[1]):
        Y[i, j], Y[k, j] = Y[k, j], Y[i, j]


class RowAlgebra(NamedTuple):
    """What a pivoted Gram-Schmidt does to rows, by their numbers, for lines of one kind.

    Attributes:
        square: (Y, i) the squared length of one.
        normalise: (Y, R, k, length) divides row k by its length, and puts its scalar products with
            all after it into R[i, k].
        take_away: (Y, R, i, first, end) takes R[i, k] times row k from row i, of these k.
        take_away_again: (Y, R, i, end) takes products of row i with those rows away, and adds them
            to R.
        exchange: (Y, i, k) two of them.
    """

    square: Callable[..., float]
    normalise: Callable[..., None]
    take_away: Callable[..., None]
    take_away_again: Callable[..., None]
    exchange: Callable[..., None]


PLAIN_ROWS = RowAlgebra(square, normalise, take_away, take_away_again, exchange_rows)


@helper
def exchange_places(R: Array, rows: Records[Row], i: int, k: int) -> None:
    """Exchange what is known of the rows at places i and k of the pivoting."""
    for j in range(min(i, k)):
        R[i, j], R[k, j] = R[k, j], R[i, j]
    a, b = rows[i], rows[k]
    a.pivot, b.pivot = b.pivot, a.pivot
    a.left, b.left = b.left, a.left
    a.full, b.full = b.full, a.full
    a.taken, b.taken = b.taken, a.taken
    a.known, b.known = b.known, a.known


class Caps(NamedTuple):
    """How many rows may be independent, as decided at closed configurations."""

    rows: int
    positions: int  # of them, rows that hold positions


class Cuts(NamedTuple):
    """Lengths, relative to the longest row, below which a row is weak, and counts for nothing."""

    weak: float
    nothing: float
    longest: float  # squared length of the longest row that is not among those to be split


@helper
def longest_of(
    rows: Records[Row], first: int, level: int, mixed: bool, more_positions: bool, cut: float
) -> int:
    """Of the rows from place ``first`` on that may be taken the longest beyond a length, or -1."""
    best, largest = -1, cut
    for i in range(first, len(rows)):
        left = rows[i].left
        if left > largest and (not mixed or may_follow(rows, i, level, more_positions)):
            best, largest = i, left
    return best


@helper
def may_follow(rows: Records[Row], i: int, level: int, more_positions: bool) -> bool:
    """Whether the row at place i may be taken now."""
    own = rows[rows[i].pivot].level
    return own == level % 2 and (own > 0 or more_positions)


def orthogonalising(algebra: RowAlgebra) -> Callable[..., tuple[int, int]]:
    """The function that orthonormalises rows of one kind.

    numba resolves the functions that it closes over when it compiles it.
    """
    square, normalise, exchange = algebra.square, algebra.normalise, algebra.exchange
    take_away, take_away_again = algebra.take_away, algebra.take_away_again

    @helper
    def form(Y: Array, R: Array, rows: Records[Row], i: int, k: int) -> None:
        """Row i less what the first k rows explain, and its squared length."""
        row = rows[i]
        take_away(Y, R, i, row.taken, k)
        length2 = square(Y, i)
        if length2 < LOST * row.full:  # twice is enough
            take_away_again(Y, R, i, k)
            length2 = square(Y, i)
        row.taken, row.known, row.left = k, length2, length2

    @helper
    def explain(Y: Array, R: Array, rows: Records[Row], k: int) -> int:
        """What row k explains of those after it, which are not yet changed; the longest of them."""
        best, most = -1, 0.0
        for i in range(k + 1, Y.shape[0]):
            row, s = rows[i], R[i, k]
            left = row.left - s * s
            row.left = left
            if left < LOST_ALL * row.known:
                form(Y, R, rows, i, k + 1)
                left = row.left
            if left > most:
                best, most = i, left
        return best

    @outlined
    def orthogonalise(
        Y: Array, R: Array, rows: Records[Row], caps: Caps, cuts: Cuts
    ) -> tuple[int, int]:
        """Orthonormalise the rows of Y (nc, nv) in place; return how many are strong, and all.

        Rows are taken in the order in which they are differentiated, of each kind the longest
        first: those that hold positions, those that hold velocities, then what is weak of each. So
        no position is left to follow from velocities, whose integral it is not.

        Rows pivot[:rank] of the input are R[:rank, :rank] Y[:rank], R lower triangular; the entries
        of R below belong to the dependent rows.
        """
        top, mixed, longest = cuts.longest, 0, -1
        for i in range(Y.shape[0]):
            row = rows[i]
            row.full = square(Y, i)
            row.left = row.known = row.full
            row.pivot, row.taken = i, 0
            if longest < 0 or row.full > rows[longest].full:
                longest = i
            mixed += row.level
        if longest >= 0:
            top = max(top, rows[longest].full)
        most = min(Y.shape[0], Y.shape[1], caps.rows)
        level, cut, positions, strong, k = 0, cuts.weak * cuts.weak * top, 0, 0, 0
        while k < most:
            best = longest
            if mixed > 0 or best < 0 or not rows[best].left > cut:
                more_positions = positions < caps.positions
                best = longest_of(rows[: Y.shape[0]], k, level, mixed > 0, more_positions, cut)
            if best < 0:
                if level == LAST:
                    break
                level = level + 1 if mixed > 0 else WEAK if level < WEAK else LAST
                if level == WEAK:
                    strong, cut = k, cuts.nothing * cuts.nothing * top
                continue
            if best != k:
                exchange(Y, best, k)
                exchange_places(R, rows, best, k)
            form(Y, R, rows, k, k)
            length2 = rows[k].left
            if not length2 > cut:
                longest = -1
                continue
            positions += 1 - rows[rows[k].pivot].level
            length = math.sqrt(length2)
            R[k, k] = length
            normalise(Y, R, k, length)
            longest = explain(Y, R, rows, k)
            k += 1
        for i in range(k, Y.shape[0]):
            form(Y, R, rows, i, k)
        return (k if level < WEAK else strong), k

    return orthogonalise


orthogonalise = orthogonalising(PLAIN_ROWS)


@helper
def most_left(Y: Array, rows: Records[Row], rank: int) -> float:
    """Length of the longest row that the kept ones do not explain, over the longest of all."""
    left = top = 0.0
    for i in range(Y.shape[0]):
        top = max(top, rows[i].full)
        if i >= rank:
            left = max(left, rows[i].left)
    return math.sqrt(left / top) if top > 0.0 else 0.0


@helper
def weakest(R: Array, rank: int) -> float:
    """Shortest of the kept rows over the longest, each less what those before it explain."""
    least, most = math.inf, 0.0
    for i in range(rank):
        least, most = min(least, R[i, i]), max(most, R[i, i])
    return least / most if rank > 0 else 1.0


@kernel
def split_rows(
    L: Array, Y: Array, R: Array, rows: Records[Row], cap: int, positions: int, rtol: float
) -> int:
    """Factor M, given in L, and orthonormalise the rows Y in its metric, in place; the rank.

    cap, positions: as of ``Caps``. rtol: rows that are weaker count for nothing.
    """
    factor_mass(L)
    whiten_rows(L, Y)
    return orthogonalise(Y, R, rows, Caps(cap, positions), Cuts(rtol, rtol, 0.0))[1]


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


@kernel
def share_out(
    C: Array,
    R: Array,
    rows: Records[Row],
    asked: Array,
    strong: int,
    negligible: float,
    found: Array,
) -> None:
    """Shortest multipliers of rows that follow from one another, and which of them share a load.

    Args:
        C: (nv, nc) the whitened rows, as columns; lost.
        R: (nv, nv) room, and
        rows: (nv,) likewise, of level 0.
        asked: (nv,) what the rows supply, whitened.
        strong: How many of them are independent.
        negligible: Length, relative to the longest, of what counts for nothing.
        found: (3, nc) multipliers x with C x = asked, then the length of what the independent ones
            leave of each, then room.
    """
    lam, shared, left = found[0], found[1], found[2]
    most = min(C.shape[0], C.shape[1])
    cuts = Cuts(negligible, negligible, 0.0)
    rank = orthogonalise(C, R, rows, Caps(most, most), cuts)[1]
    for i in range(len(lam)):
        lam[i] = 0.0
    for i in range(rank):
        total = asked[rows[i].pivot]
        for k in range(i):
            total -= R[i, k] * rows[k].g
        rows[i].g = total / R[i, i]
        add_row(lam, rows[i].g, C, i)
    for i in range(len(shared)):
        for k in range(len(left)):
            left[k] = 0.0
        left[i] = 1.0
        for k in range(min(strong, rank)):
            if C[k, i] != 0.0:
                add_row(left, -C[k, i], C, k)
        total = 0.0
        for k in range(len(left)):
            total += left[k] * left[k]
        shared[i] = math.sqrt(total)


@helper
def shortened(share: float, limit: float) -> float:
    """Share of a step along one direction, as far as that may go."""
    return max(-limit, min(limit, share))


@helper
def multiply(x: Array, factor: float) -> None:
    """Multiply a vector by a number, in place."""
    for k in range(len(x)):
        x[k] *= factor


@helper
def project_out(Y: Array, rank: int, x: Array) -> None:
    """Take away from x what the kept rows forbid: x <- (I - QᵀQ) x."""
    project_first_out(Y, rank, x, Y.shape[1])


@helper
def project_first_out(Y: Array, rank: int, x: Array, n: int) -> None:
    """``project_out`` of rows with n numbers, after which others may stand.

    By four rows at once, for which x need not wait: rows are orthonormal, so that what round-off
    leaves along one of them the others of its block hardly change.
    """
    i = 0
    while i + 3 < rank:
        s0, s1, s2, s3 = inner_four(Y, i, x, 0, n)
        for j in range(n):
            x[j] -= s0 * Y[i, j] + s1 * Y[i + 1, j] + s2 * Y[i + 2, j] + s3 * Y[i + 3, j]
        i += 4
    while i < rank:
        along = 0.0
        for j in range(n):
            along += Y[i, j] * x[j]
        for j in range(n):
            x[j] -= along * Y[i, j]
        i += 1


@helper
def project_short_out(Y: Array, rank: int, x: Array, short: Array) -> None:
    """``project_out`` of an x that is zero but for a part; ``short`` (nv,) is room.

    What rows forbid of it is told by that part alone, so that nothing waits for what is taken away.
    """
    n = Y.shape[1]
    first, end = 0, n
    while first < end and x[first] == 0.0:
        first += 1
    while end > first and x[end - 1] == 0.0:
        end -= 1
    for j in range(first, end):
        short[j] = x[j]
    i = 0
    while i + 3 < rank:
        s0, s1, s2, s3 = inner_four(Y, i, short, first, end)
        for j in range(n):
            x[j] -= s0 * Y[i, j] + s1 * Y[i + 1, j] + s2 * Y[i + 2, j] + s3 * Y[i + 3, j]
        i += 4
    while i < rank:
        along = 0.0
        for j in range(first, end):
            along += Y[i, j] * short[j]
        for j in range(n):
            x[j] -= along * Y[i, j]
        i += 1


@helper
def put_gram_matrix(C: Array, n: int, D: Array) -> None:
    """D (n, n) <- C Cᵀ of the first n rows of C."""
    for i in range(n):
        j = 0
        while j + 3 <= i:
            D[i, j], D[i, j + 1], D[i, j + 2], D[i, j + 3] = inner_four(C, j, C[i], 0, C.shape[1])
            j += 4
        while j <= i:
            D[i, j] = inner(C, j, C[i])
            j += 1
        for j in range(i):
            D[j, i] = D[i, j]
