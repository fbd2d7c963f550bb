"""Back onto the loops: configuration correction with a guard for singular positions.

A pass moves q by the shortest step, in the metric of M, that cancels the residuals to first
order: q <- q - J⁺ g. Directions are those of the start of the step (a chord method, no new factors)
or of the current iterate (Newton). Source: Kövecses and Piedbœuf 2003, eq. 35 and 36.

Factors made before a singular position must not be used after it: a chord pass that gains less than
a digit, or moves further than a tenth of the step itself, is undone and Newton takes over.
"""

import math

from bulletbridge.formulations.arrays import (
    CORRECTION,
    RIGHT_SIDE,
    SOLUTION,
    START,
    Arrays,
    Factors,
    Moment,
)
from bulletbridge.formulations.projector import close_up, refresh
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.algebra import norm, vec
from bulletbridge.numerics.jit import helper, outlined
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.split import row_space_solution, unwhiten

MOST_CHORD_PASSES, MOST_NEWTON_PASSES = 12, 24
FAILED = -1
EPS = 2.0**-52


@helper
def finite(x: Array) -> bool:
    """Whether no entry is NaN or infinite."""
    total = 0.0
    for k in range(len(x)):
        total += 0.0 * x[k]
    return total == 0.0


@helper
def kept_gap(a: Arrays, f: Factors, rank: int) -> float:
    """Largest residual of the kept rows, each divided by its unit."""
    gap = 0.0
    for i in range(rank):
        row = f.rows[f.rows[i].pivot]
        size = abs(row.unit * row.g)
        if size > gap or math.isnan(size):  # a NaN stays
            gap = size
    a.control.gap = gap
    return gap


@helper
def dependent_gap(f: Factors, rank: int) -> float:
    """Largest residual of the rows that should follow from the kept ones."""
    gap = 0.0
    for i in range(rank, f.Y.shape[0]):
        row = f.rows[f.rows[i].pivot]
        gap = max(gap, abs(row.unit * row.g))
    return gap


@helper
def tolerance(a: Arrays, q: Array) -> float:
    """Gap that counts as closed: round-off grows with distances and with angles of many turns."""
    extent = a.control.length
    for i in range(len(a.loops)):
        extent = max(extent, norm(vec(a.poses[a.loops[i].body_a].p)))
        extent = max(extent, norm(vec(a.poses[a.loops[i].body_b].p)))
    largest = 0.0
    for k in range(len(a.axes)):
        if a.axes[k].q >= 0:
            largest = max(largest, abs(q[a.axes[k].q]))
    far = 8.0 * EPS * extent / a.control.length
    return max(a.control.gap_tolerance, far) + EPS * largest


@helper
def correction_step(a: Arrays, f: Factors, rank: int) -> float:
    """Step J⁺ g into vectors[SOLUTION], whitened; its length."""
    y, z = a.vectors[RIGHT_SIDE], a.vectors[SOLUTION]
    for i in range(rank):
        row = f.rows[f.rows[i].pivot]
        y[i] = row.scale * row.g
    row_space_solution(f.Y, f.R, rank, y, z)
    length2 = 0.0
    for k in range(f.Y.shape[1]):
        length2 += z[k] * z[k]
    return math.sqrt(length2)


@helper
def move_back(a: Arrays, f: Factors, q: Array) -> None:
    """Take the step in vectors[SOLUTION] away from q, and keep the sum of such steps."""
    unwhiten(f.L, a.vectors[SOLUTION, : f.Y.shape[1]])
    displace(a.bodies, q, a.vectors[SOLUTION], -1.0, q)
    for k in range(f.Y.shape[1]):
        a.vectors[CORRECTION, k] -= a.vectors[SOLUTION, k]


@helper
def chord_passes(a: Arrays, f: Factors, moment: Moment, q: Array, v: Array, limit: float) -> int:
    """Correct q with the factors at hand until round-off; number of passes, or FAILED."""
    enough = tolerance(a, q)
    last = math.inf
    for n in range(MOST_CHORD_PASSES + 1):
        close_up(a, f, moment, q, v)
        gap = kept_gap(a, f, a.control.rank)
        if gap <= enough:
            return n
        if n == MOST_CHORD_PASSES or not gap < 0.1 * last:
            return n if gap <= 10.0 * enough else FAILED
        last = gap
        if correction_step(a, f, a.control.rank) > limit:
            return FAILED
        move_back(a, f, q)
    return FAILED


@outlined
def newton_passes(a: Arrays, f: Factors, moment: Moment, q: Array, v: Array, limit: float) -> int:
    """Correct q with new factors in every pass; one that goes too far drops its weakest rows."""
    enough = tolerance(a, q)
    for n in range(MOST_NEWTON_PASSES + 1):
        refresh(a, f, moment, q, v)
        rank = a.control.rank
        gap = kept_gap(a, f, rank)
        if n == 0:
            a.control.opened = max(gap, dependent_gap(f, rank))
        if gap <= enough:
            return n
        if n == MOST_NEWTON_PASSES or not gap < math.inf:
            return n if gap <= 10.0 * enough else FAILED
        while correction_step(a, f, rank) > limit and rank > 1:
            rank -= 1
        move_back(a, f, q)
    return FAILED


@outlined
def fixed_passes(a: Arrays, f: Factors, moment: Moment, q: Array, v: Array) -> int:
    """The number of passes asked for, no more and no less, without a guard."""
    for _ in range(a.control.passes):
        if a.control.directions == START:
            close_up(a, f, moment, q, v)
        else:
            refresh(a, f, moment, q, v)
        correction_step(a, f, a.control.rank)
        move_back(a, f, q)
    close_up(a, f, moment, q, v)
    kept_gap(a, f, a.control.rank)
    return a.control.passes
