"""Sticking points in the split of velocity space: below the constraints, above everything else.

The rows C of sticking points are orthonormalised on what the constraint rows leave, whitened:
C[pivot] = S Q + T P with Q those of the constraints. A row that is left too short is left out: to
keep that point still would take more inertia than the whole mechanism has. The two lower legs of a
foot, joined at the toe, may both touch the ground; without this rule the gap between them would be
closed by turning them through the gap over their distance.
"""

import math
from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.jit import bundling, helper, outlined
from bulletbridge.engine.dense import add_row_multipliers
from bulletbridge.engine.records import Arrays, Factors
from bulletbridge.inequalities.sticking_rows import place_points, shift_of, sticking_row
from bulletbridge.mechanism.records import STICKING_POINT, StickingPoint
from bulletbridge.numerics.projection import (
    ROW,
    Caps,
    Cuts,
    Row,
    add_row,
    inner,
    orthogonalise,
    square,
    whiten_rows,
)
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import dot, vec

VELOCITY, POSITION = 0, 1
"""Rows of impulses: of the velocity filter [N s, N m s], of the correction times s."""


class StickingPoints(NamedTuple):
    """Sticking points and their share of the factors."""

    points: Records[StickingPoint]
    rows: Records[Row]  # .pivot: which row stands here; .g by place before pivoting [m]
    order: Records[Row]  # .pivot: row 3 n + k of each place before pivoting
    P: Array  # (rows, nv) orthonormal in its leading rows
    S: Array  # (rows, nc)
    T: Array  # (rows, rows)
    values: Array  # (2, rows) coefficients, multipliers
    loop_impulses: Array  # of ``FilterArrays``
    point_impulses: Array  # likewise
    share: Array  # likewise


class FilterArrays(NamedTuple):
    """Points that stick, and room to hold them beside the constraints.

    Attributes:
        points: (n,) the points.
        rows: (2, 3 n) of ``Row``: in the order of the factors, and as they were placed.
        P: As of ``StickingPoints``,
        S: as there,
        T: as there,
        values: as there.
        loop_impulses: (2, nc) or more, of ``VELOCITY`` and ``POSITION``: what the
            constraints took, in one unit,
        point_impulses: (2, 3 n) and the points.
        share: (1,) times the second rows of both are impulses too, at the start [1/s].
    """

    points: Records[StickingPoint]
    rows: np.ndarray
    P: Array
    S: Array
    T: Array
    values: Array
    loop_impulses: Array
    point_impulses: Array
    share: Array


def filter_arrays(points: int, nv: int, loop_impulses: Array) -> FilterArrays:
    """Room for so many sticking points beside constraints on nv rates."""
    rows, nc = 3 * points, loop_impulses.shape[1]
    return FilterArrays(
        np.zeros(points, STICKING_POINT),
        np.zeros((2, rows), ROW),
        np.zeros((rows, nv)),
        np.zeros((rows, nc)),
        np.zeros((rows, rows)),
        np.zeros((2, max(rows, nv))),
        loop_impulses,
        np.zeros((2, rows)),
        np.zeros(1),
    )


@bundling
def sticking_points_of(s: FilterArrays, count: int) -> StickingPoints:
    """The first ``count`` points, as helpers take them."""
    return StickingPoints(
        s.points[:count], s.rows[0], s.rows[1], s.P, s.S, s.T, s.values,
        s.loop_impulses, s.point_impulses, s.share,
    )  # fmt: skip


@helper
def forget_impulses(s: FilterArrays) -> None:
    """Set the sums of a filter to zero."""
    for n in range(2):
        for i in range(s.loop_impulses.shape[1]):
            s.loop_impulses[n, i] = 0.0
        for i in range(s.point_impulses.shape[1]):
            s.point_impulses[n, i] = 0.0


@helper
def place(a: Arrays, h: StickingPoints) -> int:
    """Fix the points to their bodies at the present poses; return the number of their rows."""
    return place_points(h.points, a.poses, h.order)


@outlined
def factor_sticking(a: Arrays, f: Factors, h: StickingPoints, count: int) -> int:
    """Orthonormalise rows on what the constraints leave there; return how many are kept."""
    if count == 0:
        return 0
    P, rank = h.P[:count], a.control.filter_rank
    for n in range(count):
        point = h.points[h.order[n].pivot // 3]
        sticking_row(point, h.order[n].pivot % 3, a.bodies, a.poses, a.axes, P[n])
    whiten_rows(f.L, P, f.first)
    top = 0.0
    for n in range(count):
        full = square(P, n)
        for i in range(rank):
            h.S[n, i] = inner(f.Y, i, P[n])
            add_row(P[n], -h.S[n, i], f.Y, i)
        left = square(P, n)
        if left < 0.01 * full:  # lost a digit: twice is enough
            for i in range(rank):
                s = inner(f.Y, i, P[n])
                h.S[n, i] += s
                add_row(P[n], -s, f.Y, i)
        top = max(top, left)
    mass = 0.0
    for i in range(1, len(a.bodies)):
        mass += a.bodies[i].mass
    if not top * mass > 1.0:
        return 0
    free = f.Y.shape[1] - rank
    cut = math.sqrt(1.0 / (mass * top))
    return orthogonalise(P, h.T, h.rows, Caps(free, free), Cuts(cut, cut, 0.0))[1]


@helper
def forget_others(h: StickingPoints, kept: int) -> int:
    """List the rows that were kept alone, in their order, for new factors; their number."""
    for k in range(kept):
        h.rows[k].full = h.order[h.rows[k].pivot].pivot
    for k in range(kept):
        h.order[k].pivot = int(h.rows[k].full)
    return kept


@helper
def measure_shift(a: Arrays, h: StickingPoints, count: int) -> None:
    """Put the shift of each row since it was placed into rows .g."""
    for n in range(count):
        point, k = h.points[h.order[n].pivot // 3], h.order[n].pivot % 3
        h.rows[n].g = dot(vec(point.directions[k]), shift_of(point, a.poses))


@helper
def add_sticking_part(
    h: StickingPoints, kept: int, rank: int, share: float, y: Array, z: Array
) -> None:
    """Make the kept rows of a whitened step z equal to ``share`` times their shift.

    y holds the coefficients of z in the constraint rows; those of the kept ones go into values.
    """
    x = h.values[0]
    for k in range(kept):
        n = h.rows[k].pivot
        total = share * h.rows[n].g
        for i in range(rank):
            total -= h.S[n, i] * y[i]
        for j in range(k):
            total -= h.T[k, j] * x[j]
        x[k] = total / h.T[k, k]
        add_row(z, x[k], h.P, k)


@outlined
def add_multipliers(
    f: Factors,
    h: StickingPoints,
    kept: int,
    rank: int,
    sign: float,
    y: Array,
    level: int,
) -> None:
    """Add the multipliers of a whitened step, whose coefficients are y and values, to the impulses.

    The step is Y'mu + C'nu with the rows as they were before orthonormalising; y is lost.
    ``level``: ``VELOCITY`` or ``POSITION``.
    """
    x, nu = h.values[0], h.values[1]
    for k in range(kept - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, kept):
            total -= h.T[j, k] * nu[j]
        nu[k] = total / h.T[k, k]
        n = h.rows[k].pivot
        h.point_impulses[level, h.order[n].pivot] += sign * nu[k]
        for i in range(rank):
            y[i] -= h.S[n, i] * nu[k]
    add_row_multipliers(f, rank, sign, y, h.loop_impulses[level])
