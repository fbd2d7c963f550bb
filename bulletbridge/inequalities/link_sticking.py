"""Sticking points beside the rows of loops in an elimination of links: see ``sticking``.

What is left of a row where the loops hold is the compliance with which it is eliminated; a row that
is left too short is left over. Loops come first: their rows are rigid, those of points are soft.
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import bundling, helper, outlined
from bulletbridge.engine.records import (
    DENSE_REQUIRED,
    RIGHT_SIDE,
    SOLUTION,
    Arrays,
)
from bulletbridge.engine.sparse import SparseFactors
from bulletbridge.engine.sparse_backend import (
    bounded_correction,
    correction_step,
    filter_velocity,
    move_back,
)
from bulletbridge.engine.sparse_border import TAKEN
from bulletbridge.inequalities.link_rows import (
    LinkRows,
    begin_rows,
    compliance_alone,
    open_join,
    put_body,
)
from bulletbridge.inequalities.state_filter import PointBackend
from bulletbridge.inequalities.sticking import POSITION, VELOCITY, FilterArrays
from bulletbridge.inequalities.sticking_rows import carried, place_points, shift_of
from bulletbridge.mechanism.dynamics import composite_inertias
from bulletbridge.mechanism.kinematics import between_origins
from bulletbridge.mechanism.records import StickingPoint
from bulletbridge.numerics.multifrontal_factors import factorise
from bulletbridge.numerics.multifrontal_solutions import carry, row_rates, solve
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import ZERO, add, dot, vec


class LinkPoints(NamedTuple):
    """Sticking points and the rows by which they take part."""

    points: Records[StickingPoint]
    order: Records[Row]  # .pivot: row 3 n + k at each place; .g its shift [m]
    links: LinkRows
    loop_impulses: Array  # of ``sticking.FilterArrays``
    point_impulses: Array  # likewise
    share: Array  # likewise


@bundling
def link_points_of(s: FilterArrays, count: int, links: LinkRows) -> LinkPoints:
    """The first ``count`` points, as helpers take them."""
    return LinkPoints(
        s.points[:count], s.rows[1], links, s.loop_impulses, s.point_impulses, s.share
    )


@helper
def place(a: Arrays, h: LinkPoints) -> int:
    """Fix the points to their bodies at the present poses; return the number of their rows."""
    return place_points(h.points, a.poses, h.order)


@outlined
def factor_points(a: Arrays, f: SparseFactors, h: LinkPoints, count: int) -> int:
    """Eliminate the rows of points beside those of loops; return how many there are.

    It refuses weak rows of loops, whose impulses are not at hand, and more points on a body than
    there is room for.
    """
    composite_inertias(a.bodies, a.beams, a.stations, a.poses)
    if f.border.counts[TAKEN] > 0:
        a.control.failure = DENSE_REQUIRED
    if count == 0 or a.control.failure == DENSE_REQUIRED:
        return 0
    links, e = h.links, h.links.e
    if links.slots == 0:
        a.control.failure = DENSE_REQUIRED
        return 0
    begin_rows(links, f)
    mass, stiffest, last, join = 0.0, 0.0, -1, -1
    for i in range(1, len(a.bodies)):
        mass += a.bodies[i].mass
    for n in range(count):
        number = h.order[n].pivot // 3
        point, r = h.points[number], e.rigid + n
        direction, position = vec(point.directions[h.order[n].pivot % 3]), point_of(a, point)
        links.bodies[n, 0], links.bodies[n, 1] = point.body_a, point.body_b
        wrench = (ZERO, direction)
        put_body(a.bodies, a.axes, point.body_b, 1.0, wrench, position, links.on[n, 1])
        position = add(position, between_origins(a.poses, point.body_a, point.body_b))
        put_body(a.bodies, a.axes, point.body_a, -1.0, wrench, position, links.on[n, 0])
        alone = compliance_alone(links, n)
        links.size[n] = 1.0 / math.sqrt(alone) if alone > 0.0 else 0.0
        stiffest = max(stiffest, links.size[n])
        for end in range(2):
            for k in range(links.on.shape[2]):
                e.wrench[r, end, k] = links.size[n] * links.on[n, end, k]
        e.soft[r] = 0.0
        if number != last:
            join, last = open_join(links, n, r), number
            if join < 0:
                a.control.failure = DENSE_REQUIRED
                return 0
        e.joins[join].rows += 1
    # to keep a point still may not take more inertia than the whole mechanism has
    e.least[0] = stiffest * stiffest / mass
    factorise(e)
    held = 0
    for r in range(e.rigid):
        held += e.kept[r] - f.e.kept[r]
    if held < 0:
        a.control.failure = DENSE_REQUIRED
    return count


@helper
def point_of(a: Arrays, point: StickingPoint) -> tuple[float, float, float]:
    """Where the point is now, on body b, from the origin of its tree."""
    return carried(a.poses[point.body_b], point.p_b)


@helper
def forget_others(h: LinkPoints, kept: int) -> int:
    """All rows take part in new factors; their number."""
    return kept


@outlined
def correct(
    a: Arrays,
    f: SparseFactors,
    h: LinkPoints,
    kept: int,
    count: int,
    q: Array,
    rank: int,
    limit: float,
) -> None:
    """One pass with the factors at hand; without the points where it would go too far."""
    nv, e = len(a.axes), h.links.e
    far = correction_step(a, f, rank) > limit
    if far:
        bounded_correction(a, f, rank, limit)
    if far or kept == 0:
        move_back(a, f, q)
        add_multipliers(a, f, 1.0, h.loop_impulses[POSITION])
        return
    right = h.links.right
    for i in range(len(right)):
        right[i] = 0.0
    for i in range(len(f.rows)):
        right[i] = f.rows[i].scale * f.rows[i].g
    for n in range(count):
        point, k = h.points[h.order[n].pivot // 3], h.order[n].pivot % 3
        shift = dot(vec(point.directions[k]), shift_of(point, a.poses))
        right[e.rigid + n] = h.links.size[n] * shift
    solve(e, h.links.none, right, a.vectors[SOLUTION, :nv], h.links.y)
    move_back(a, f, q)
    add_all_multipliers(f, h, count, 1.0, POSITION)


@outlined
def filter_with_points(a: Arrays, f: SparseFactors, h: LinkPoints, kept: int, v: Array) -> None:
    """Take the nearest velocity in the metric of M that constraints and sticking points allow.

    Points keep the velocity that they have. What they leave of the constraints, by round-off, is
    taken by the factors of these.
    """
    if kept > 0:
        nv, e, right, count = len(v), h.links.e, h.links.right, 0
        for i in range(len(right)):
            right[i] = 0.0
        carry(f.e, v)
        row_rates(f.e, right)
        for i in range(len(f.rows)):
            right[i] = -right[i] - f.rows[i].scale * f.rows[i].g_t
        for i in range(len(e.fronts)):
            front = e.fronts[i]
            for j in range(front.join + front.joins - h.links.slots, front.join + front.joins):
                count += e.joins[j].rows
        x = a.vectors[SOLUTION, :nv]
        solve(e, h.links.none, right, x, h.links.y)
        for k in range(nv):
            v[k] += x[k]
        add_all_multipliers(f, h, count, -1.0, VELOCITY)
    filter_velocity(a, f, v)
    add_multipliers(a, f, -1.0, h.loop_impulses[VELOCITY])


@helper
def add_multipliers(a: Arrays, f: SparseFactors, sign: float, loops: Array) -> None:
    """Add the multipliers of the last solution, which are those of scaled rows."""
    for i in range(len(f.rows)):
        loops[i] += sign * f.rows[i].scale * a.vectors[RIGHT_SIDE, i]


@helper
def add_all_multipliers(
    f: SparseFactors, h: LinkPoints, count: int, sign: float, level: int
) -> None:
    """Add those of the last solution with points, of which the first ``count`` rows were listed."""
    y, rigid = h.links.y, h.links.e.rigid
    for i in range(len(f.rows)):
        h.loop_impulses[level, i] += sign * f.rows[i].scale * y[i]
    for n in range(count):
        h.point_impulses[level, h.order[n].pivot] += sign * h.links.size[n] * y[rigid + n]


LINK_POINTS = PointBackend(place, factor_points, forget_others, correct, filter_with_points)
