"""Rows that an elimination has left over, split beside those that it has eliminated.

Eliminated rows are strong. What is left over follows from them, by design or at this pose alone, or
is too weak for an elimination to tell: it sees squares of lengths. So for each row r that is left
over the velocity P M⁻¹ Jᵣᵀ is solved for that it causes among those that the eliminated rows leave
free; its length is what the row has of its own, to round-off and not to its root. Such velocities
are few, and split as dense rows are (``projection.orthogonalise``).
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.records import FORCE, RIGHT_SIDE, SOLUTION, Arrays
from bulletbridge.numerics.multifrontal import Elimination
from bulletbridge.numerics.multifrontal_solutions import (
    carry,
    push_nothing,
    push_row,
    rate_along,
    row_rates,
    solve,
    solve_pushed,
)
from bulletbridge.numerics.projection import Caps, Cuts, Row, inner, orthogonalise
from bulletbridge.numerics.records import Array, Ints, Records

MOST_LEFT_OVER = 24
"""Rows that may be left over, beside those that are redundant by design."""
ALONG = 2.0**-500
"""Weight of rates beside whitened velocities, so that what is done to these is done to them; powers
of two keep every digit."""
ELIMINATED, LISTED, STRONG, TAKEN = range(4)
"""Counts of a border: rows that are eliminated, those that are split, of these the strong ones, and
those that count."""


class Border(NamedTuple):
    """Rows that were left over at one configuration."""

    Y: Array  # (most + 1, k nb + 2 nv + n) whitened velocities, rates beside them; last: scratch
    R: Array  # (most, most)
    rows: Records[Row]  # (most,) of the split
    numbers: Ints  # (most,) which rows of the system they are
    shares: Array  # (most,) of each velocity, in the order of the split
    counts: Ints  # (4,)


@outlined
def split_left_over(
    a: Arrays, e: Elimination, b: Border, join_of: Ints, rows: Records[Row], longest: float
) -> None:
    """Split the rows that were left over, which are in ``b.numbers``.

    join_of (nc,): the join that each row of the system belongs to. longest: squared length that
    weakness is relative to.
    """
    c, count, held = a.control, b.counts[LISTED], 0
    for n in range(count):
        free_velocity(a, e, b, n, int(join_of[b.numbers[n]]))
        b.rows[n].level = rows[b.numbers[n]].level
    for i in range(len(rows)):
        if e.kept[i] and rows[i].level == 0:
            held += 1
    caps = Caps(max(c.cap - b.counts[ELIMINATED], 0), max(c.held_cap - held, 0))
    cuts = Cuts(c.singular_rtol, c.filter_rtol, longest)
    strong, taken = orthogonalise(b.Y[:count], b.R, b.rows[:count], caps, cuts)
    b.counts[STRONG], b.counts[TAKEN] = strong, taken


@helper
def free_velocity(a: Arrays, e: Elimination, b: Border, n: int, join: int) -> None:
    """Whitened velocity that a unit force of the row at place n of the border causes.

    It is of those that the eliminated rows leave free.
    """
    nv, r = len(a.axes), b.numbers[n]
    none, x, right = a.vectors[FORCE, :nv], a.vectors[SOLUTION, :nv], a.vectors[RIGHT_SIDE]
    more = b.Y[n, :nv]
    for k in range(nv):
        none[k] = 0.0
    for i in range(len(e.right)):
        right[i] = 0.0
    push_nothing(e)
    push_row(e, e.joins[join], r)
    solve_pushed(e, none, right, x, right)
    row_rates(e, right)  # twice is enough
    for i in range(len(e.right)):
        right[i] = -right[i]
    solve(e, none, right, more, right)
    for k in range(nv):
        x[k] += more[k]
    whiten(e, x, b.Y[n])


@helper
def whiten(e: Elimination, x: Array, z: Array) -> None:
    """A velocity x (nv,) in coordinates in which M is the identity; the rates themselves beside it.

    These are, of every body, Cᵀ times its twist where C Cᵀ is its inertia; what rates and ties have
    themselves is beside them. Loses e.W.
    """
    k, nv, C = e.motion.shape[1], len(x), e.W
    first = e.twist.shape[0] * k
    carry(e, x)
    for j in range(first):
        z[j] = 0.0
    for i in range(len(e.fronts)):
        front = e.fronts[i]
        body, size = front.body, front.own_size if front.own_size > 0 else front.rates
        for j in range(size):
            for m in range(j, size):
                total = e.inertia[body, m, j]
                for n in range(j):
                    total -= C[m, n] * C[j, n]
                if m == j:
                    C[j, j] = math.sqrt(max(total, 0.0))
                else:
                    C[m, j] = total / C[j, j] if C[j, j] > 0.0 else 0.0
                z[body * k + j] += C[m, j] * e.twist[body, m]
    for j in range(nv):
        z[first + j] = math.sqrt(e.extra[j]) * x[j]
        z[len(z) - nv + j] = ALONG * x[j]
    for i in range(len(e.ties)):
        tie = e.ties[i]
        for r in range(tie.row, tie.row + tie.rows):
            z[first + nv + r] = math.sqrt(e.weights[r]) * rate_along(e, tie, e.pulls[r])


@helper
def note_targets(b: Border, right: Array) -> None:
    """Keep the right sides of the rows of the border, which a solution loses."""
    for j in range(b.counts[TAKEN]):
        b.shares[j] = right[b.numbers[b.rows[j].pivot]]


@helper
def meet_targets(e: Elimination, b: Border, join_of: Ints, count: int, x: Array) -> float:
    """Add what the first rows of the border need to x, whose coordinates are in e.twist.

    Takes the targets of ``note_targets``. Returns the square of its length.
    """
    length2 = 0.0
    for j in range(count):
        r = b.numbers[b.rows[j].pivot]
        total = b.shares[j] - rate_along(e, e.joins[int(join_of[r])], e.wrench[r])
        for i in range(j):
            total -= b.R[j, i] * b.shares[i]
        b.shares[j] = total / b.R[j, j]
        length2 += b.shares[j] * b.shares[j]
    for j in range(count):
        add_share(b, j, 1.0, x)
    return length2


@helper
def add_share(b: Border, j: int, sign: float, x: Array) -> None:
    """Add velocity j of the border, times its share, to the rates x."""
    nv, s = len(x), sign * b.shares[j] / ALONG
    first = b.Y.shape[1] - nv
    for k in range(nv):
        x[k] += s * b.Y[j, first + k]


@helper
def project_out(e: Elimination, b: Border, count: int, x: Array) -> None:
    """Take away from x what the first rows of the border forbid."""
    z = b.Y[b.Y.shape[0] - 1]
    whiten(e, x, z)
    for j in range(count):
        b.shares[j] = inner(b.Y, j, z)
    for j in range(count):
        add_share(b, j, -1.0, x)


@helper
def unexplained(b: Border, longest: float) -> float:
    """Length of the longest row that does not count, less what others explain, over the longest.

    longest: squared.
    """
    left = 0.0
    for n in range(b.counts[TAKEN], b.counts[LISTED]):
        left = max(left, b.rows[n].left)
    return math.sqrt(left / longest) if longest > 0.0 else 0.0


@helper
def weakest_of(b: Border, longest: float) -> float:
    """Shortest of the rows that count over the longest, squared, of all."""
    least = math.inf
    for j in range(b.counts[TAKEN]):
        least = min(least, b.R[j, j])
    return least / math.sqrt(longest) if longest > 0.0 else least
