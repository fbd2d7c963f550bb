"""Charts of the constraint manifold, on quaternions too.

A chart at q₀ has coordinates u in the tangent space there, q = q₀ displaced by u along the
exponential maps, and normals U, independent columns of M⁻¹Jᵀ at q₀. Adding w to u along the
constraints' tangents moves on the manifold; what leaves it is brought back along U alone,

    u ← u - U B g(q),   u̇ ← u̇ - U B (J v + g_t),   B ≈ (J T⁻¹ U)⁻¹,   u̇ = T(u) v,

so that the tangential part of u, the chart's own coordinates, stays as an integrator has made it.
T is the inverse differential of the exponential maps, one but for floating bases and spherical
joints. B is kept from evaluation to evaluation, and made anew where it gains too little.

The metric is that of M, in which the rank is decided, so that no unit matters. Source: Haug and
Pavesic 2023, whose metric is Euclidean (``formulations.chart``, for singular M).
"""

import math

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.correction import EPS, tolerance
from bulletbridge.engine.dense import scaled_jacobian, update_positions
from bulletbridge.engine.radau_system import MATRICES
from bulletbridge.engine.records import (
    CHART_ORIGIN,
    CHART_ROWS,
    CHART_SEEN,
    CHART_TURNS,
    DONE,
    RATE,
    RIGHT_SIDE,
    START_V,
    Arrays,
    FactorPair,
    Factors,
    Instant,
)
from bulletbridge.engine.stages import unit_of
from bulletbridge.mechanism.kinematics import chart_velocity, displace
from bulletbridge.mechanism.records import FREE, SPHERICAL
from bulletbridge.numerics.lu import back_real, lu_real
from bulletbridge.numerics.projection import inner, unwhiten, whiten_velocity
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.spatial import copy_into, norm, vec

NORMALS, TANGENTS, INVERSE = MATRICES, MATRICES + 1, MATRICES + 2
"""Matrices of a chart in the array of factors: U by rows, J of its rows where lifted last, B."""
ALL_MATRICES = MATRICES + 3

MOST_TURN = 0.75
"""Rotation vector [rad] of a joint that ends a chart: the source's limit on the norm of its
coordinates, here only of those whose maps end, at 2 pi. Others may go as far as they like."""
MOST_TILT = 0.25
"""Angle [rad] between normals of the chart and of the manifold that ends a chart: the root of the
sum of the squared sines of all, which bounds the largest. B grows by one over its cosine; and it is
the condition of J U, but for that of J itself, of which no chart can take anything."""
LOOK = 0.05
"""Radians, or lengths of the mechanism, that a coordinate may move by without another look. A row
that is all but lost, as near the reach of a chain, turns into another with the angle that its own
length is of the longest: within that, times ``MOST_TILT``, there is another look as well."""
MOST_PASSES = 12
ENOUGH = 0.005
"""Share of an error that a pass may leave, above which B is made anew: it costs about a pass."""


@outlined
def begin_chart(a: Arrays, s: FactorPair, q: Array) -> None:
    """Make q the origin of a chart, with the factors there."""
    c, f, L = a.control, s.f, s.L
    c.charted, c.chart_rank = 1, c.rank
    c.charts += 1
    copy_into(a.vectors[CHART_ORIGIN], q)
    for i in range(c.rank):
        copy_into(L[NORMALS, i], f.Y[i])
        unwhiten(f.L, L[NORMALS, i], f.first)
        a.vectors[CHART_ROWS, i] = f.rows[i].pivot
        for j in range(c.rank):  # rows are R Y L, and U are L⁻¹ Yᵀ
            L[INVERSE, i, j] = f.R[i, j] if j <= i else 0.0
    lu_real(L[INVERSE], a.vectors[CHART_TURNS, : c.rank])
    for k in range(f.Y.shape[1]):
        a.vectors[CHART_SEEN, k] = 0.0


@helper
def is_over(a: Arrays, s: FactorPair, u: Array) -> bool:
    """Whether the chart is to be left at coordinates u (nv,), with the factors there."""
    c, seen = a.control, a.vectors[CHART_SEEN, : len(u)]
    if c.charted == 0 or c.chart_rank != c.rank:
        return True
    for i in range(1, len(a.bodies)):
        body = a.bodies[i]
        if body.joint == FREE or body.joint == SPHERICAL:
            if norm(vec(u[body.v :])) > MOST_TURN:
                return True
    moved = 0.0
    for k in range(len(u)):
        moved = max(moved, abs(u[k] - seen[k]) / unit_of(a, k))
    if moved <= min(LOOK, MOST_TILT * shortest_row(s.f, c.rank)):
        return False
    copy_into(seen, u)
    return is_tilted(a, s, u)


@helper
def shortest_row(f: Factors, rank: int) -> float:
    """What the row with the least of its own has of it, over the longest of the kept ones."""
    shortest, longest = math.inf, 0.0
    for i in range(rank):
        row = f.rows[f.rows[i].pivot]
        own = abs(f.R[i, i]) * row.unit / row.scale
        shortest, longest = min(shortest, own), max(longest, own)
    return shortest / longest if longest > 0.0 else 1.0


@outlined
def is_tilted(a: Arrays, s: FactorPair, u: Array) -> bool:
    """Whether the normals of the chart have turned too far from those at u."""
    f, x, total = s.f, a.vectors[RATE, : len(u)], 0.0
    for i in range(a.control.chart_rank):
        chart_velocity(a.bodies, u, s.L[NORMALS, i], x)
        whiten_velocity(f.L, x, f.first)
        whole = inside = 0.0
        for k in range(len(x)):
            whole += x[k] * x[k]
        for j in range(a.control.chart_rank):
            inside += inner(f.Y, j, x) ** 2
        total += 1.0 - inside / whole
    return not total <= math.sin(MOST_TILT) ** 2


@outlined
def close(a: Arrays, s: FactorPair, instant: Instant, u: Array, q: Array) -> bool:
    """Bring u back to the manifold along the normals, and q with it; whether that succeeds.

    Leaves the rows there, for ``lift``.
    """
    c, m, rows = a.control, a.control.chart_rank, s.stage.rows
    e, last, anew = a.vectors[RIGHT_SIDE, :m], math.inf, False
    for n in range(MOST_PASSES + 1):
        displace(a.bodies, a.vectors[CHART_ORIGIN, : len(q)], u, 1.0, q)
        update_positions(a, s.stage, instant, q, a.vectors[START_V, : len(u)])
        if c.failure != DONE:
            return False
        gap = 0.0
        for i in range(m):
            row = rows[int(a.vectors[CHART_ROWS, i])]
            e[i] = row.scale * row.g
            gap = max(gap, abs(row.unit * row.g))
        enough = tolerance(a, q)
        if not gap < math.inf:
            return False
        stuck = n == MOST_PASSES or not gap < 0.5 * last
        if gap <= enough or (gap <= 10.0 * enough and stuck):
            keep_rows(a, s, instant)
            return True
        if stuck and (anew or n == MOST_PASSES):
            return False
        if not anew and not gap < ENOUGH * last:
            keep_rows(a, s, instant)
            renew_inverse(a, s, u)
            anew = True
        last = gap
        take_back(a, s, e, u)
    return False


@helper
def take_back(a: Arrays, s: FactorPair, e: Array, x: Array) -> None:
    """x ← x - U B e; e is lost."""
    back_real(s.L[INVERSE], a.vectors[CHART_TURNS, : len(e)], e)
    for i in range(len(e)):
        for k in range(len(x)):
            x[k] -= e[i] * s.L[NORMALS, i, k]


@outlined
def keep_rows(a: Arrays, s: FactorPair, instant: Instant) -> None:
    """Keep the chart's rows at the configuration that was seen last."""
    scaled_jacobian(a, s.stage, instant)
    for i in range(a.control.chart_rank):
        copy_into(s.L[TANGENTS, i], s.stage.Y[int(a.vectors[CHART_ROWS, i])])


@outlined
def renew_inverse(a: Arrays, s: FactorPair, u: Array) -> None:
    """Factors of J T⁻¹ U with the rows that were kept, at u."""
    m, x, L = a.control.chart_rank, a.vectors[RATE, : len(u)], s.L
    for j in range(m):
        chart_velocity(a.bodies, u, L[NORMALS, j], x)
        for i in range(m):
            L[INVERSE, i, j] = inner(L[TANGENTS], i, x)
    lu_real(L[INVERSE], a.vectors[CHART_TURNS, :m])


@outlined
def lift(a: Arrays, s: FactorPair, u: Array, rate: Array, v: Array) -> bool:
    """The velocity v that the manifold allows at u, and its rate, brought back along the normals.

    Takes the rows that ``close`` has left; returns whether it succeeds.
    """
    m, A, rows = a.control.chart_rank, s.L[TANGENTS], s.stage.rows
    e, last, anew, size = a.vectors[RIGHT_SIDE, :m], math.inf, False, 0.0
    for n in range(MOST_PASSES + 1):
        chart_velocity(a.bodies, u, rate, v)
        most = fastest = 0.0
        for k in range(len(v)):
            fastest = max(fastest, abs(v[k]))
        for i in range(m):
            row = rows[int(a.vectors[CHART_ROWS, i])]
            total = row.scale * row.g_t
            terms = 0.0
            for k in range(len(v)):
                total += A[i, k] * v[k]
                terms += abs(A[i, k])
            e[i] = total
            # what a row multiplies may be next to nothing, beside what rounding goes by
            most, size = max(most, abs(total)), max(size, abs(row.scale * row.g_t), terms * fastest)
        if not size < math.inf:
            return False
        stuck = n == MOST_PASSES or not most < 0.5 * last
        if most <= 4.0 * EPS * size or (most <= 1e-13 * size and stuck):
            return True
        if stuck and (anew or n == MOST_PASSES):
            return False
        if not anew and not most < ENOUGH * last:
            renew_inverse(a, s, u)
            anew = True
        last = most
        take_back(a, s, e, rate)
    return False
