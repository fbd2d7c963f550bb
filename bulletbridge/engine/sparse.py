"""Factors in link coordinates at a configuration, and accelerations by them.

The equations are those of ``dense``.
"""

import math
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.constraints.drift import drift
from bulletbridge.constraints.prescribed import prescribed_rates
from bulletbridge.constraints.records import Target
from bulletbridge.constraints.relative_pose import (
    constant_rows,
    frames,
    position_in,
    variable_direction,
)
from bulletbridge.constraints.rows import slope
from bulletbridge.engine.dense import applied_forces, put_poses
from bulletbridge.engine.records import (
    DENSE_REQUIRED,
    DONE,
    FORCE,
    RIGHT_SIDE,
    Arrays,
    Instant,
)
from bulletbridge.engine.sparse_border import (
    ELIMINATED,
    LISTED,
    STRONG,
    TAKEN,
    Border,
    meet_targets,
    note_targets,
    project_out,
    split_left_over,
    unexplained,
    weakest_of,
)
from bulletbridge.mechanism.dynamics import impedance, own_inertias
from bulletbridge.mechanism.force_elements import coordinate, impedance_along
from bulletbridge.mechanism.inertias import own_inertia
from bulletbridge.mechanism.kinematics import axis_twist, between_origins
from bulletbridge.mechanism.records import Axis
from bulletbridge.numerics.multifrontal import Elimination, Front, Join
from bulletbridge.numerics.multifrontal_factors import factorise as eliminate_all
from bulletbridge.numerics.multifrontal_solutions import solve
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Ints, Records, Vector
from bulletbridge.numerics.spatial import (
    ZERO,
    Inertia,
    Pair,
    add,
    apply,
    cross,
    dot,
    momentum,
    mul,
    power,
    put,
    put_pair,
    scale,
    scale_pair,
    transpose,
    vec,
    wrench_from,
)

NOTHING = 1e-12
"""Compliance of a row, in that of its scale, that is the round-off of what it follows from."""


class SparseFactors(NamedTuple):
    """An elimination of the links of a system at one configuration."""

    e: Elimination
    border: Border
    join_of: Ints  # (nc,) the join that each row belongs to
    basis: Array  # (k, 6) spans the twists of the links
    rows: Records[Row]


@helper
def update_positions(a: Arrays, f: Any, instant: Instant, q: Array, v: Array) -> None:
    """Poses and residuals at q, by factors of any kind that has rows, where none are a user's."""
    put_poses(a, f.rows, instant, q)


@outlined
def update_positions_apart(a: Arrays, f: Any, instant: Instant, q: Array, v: Array) -> None:
    """The same out of line."""
    update_positions(a, f, instant, q, v)


@outlined
def factor_at(a: Arrays, f: SparseFactors, instant: Instant, q: Array, v: Array) -> None:
    """Poses, residuals and factors at q."""
    update_positions_apart(a, f, instant, q, v)
    factorise(a, f, instant)


@outlined
def accelerate_at(
    a: Arrays, f: SparseFactors, instant: Instant, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """Constrained acceleration at a state whose factors are not yet known."""
    factor_at(a, f, instant, q, v)
    if a.control.failure == DONE:
        accelerate(a, f, instant, q, v, tau, vdot)


@helper
def accelerate(
    a: Arrays, f: SparseFactors, instant: Instant, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """Constrained acceleration vdot (nv,) with the factors of this configuration."""
    force, b = a.vectors[FORCE, : len(v)], a.vectors[RIGHT_SIDE]
    applied_forces(a, q, v, tau, force)
    drift(a.loops, a.couplings, a.terms, a.poses, a.axes, instant.targets, f.rows)
    for i in range(len(f.rows)):
        b[i] = -f.rows[i].scale * f.rows[i].gamma
    note_targets(f.border, b)
    solve(f.e, force, b, vdot, b)
    meet_targets(f.e, f.border, f.join_of, f.border.counts[STRONG], vdot)


@helper
def admissible_acceleration(
    a: Arrays, f: SparseFactors, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """What applied and bias forces do to the admissible velocities: P M⁻¹ (tau - h)."""
    force = a.vectors[FORCE, : len(v)]
    applied_forces(a, q, v, tau, force)
    admit(a, f, force, vdot)


@helper
def admit(a: Arrays, f: SparseFactors, force: Array, vdot: Array) -> None:
    """What forces (nv,) on the rates do to the admissible velocities: P M⁻¹ f."""
    none = a.vectors[RIGHT_SIDE]
    for i in range(len(f.rows)):
        none[i] = 0.0
    solve(f.e, force, none, vdot, none)
    if f.border.counts[STRONG] > 0:
        project_out(f.e, f.border, f.border.counts[STRONG], vdot)


@helper
def factorise(a: Arrays, f: SparseFactors, instant: Instant) -> None:
    """Factors at the poses; DENSE_REQUIRED where more rows are left over than there is room for."""
    c, e, basis, rows, k = a.control, f.e, f.basis, f.rows, f.basis.shape[0]
    own_inertias(a.bodies, a.beams, a.stations, a.poses)
    for i in range(len(a.axes)):
        axis = a.axes[i]
        twist = axis_twist(axis)
        if k == 6:
            put_pair(e.motion[i], twist)
        else:
            for m in range(k):
                e.motion[i, m] = power((vec(basis[m]), vec(basis[m, 3:])), twist)
        e.extra[i] = axis.armature + impedance(axis, c.damper_dt, c.spring_dt)
    for i in range(len(e.fronts)):
        put_inertia(a, e, basis, e.fronts[i])
    for i in range(len(e.joins)):
        join = e.joins[i]
        if join.term < 0:
            put_wrenches(a, e, join, instant.targets, basis, rows)
        else:
            put_terms(a, e, join, basis, rows[join.row].scale)
    if len(e.ties) > 0:
        put_ties(a, e, basis)
    prescribed_rates(a.loops, a.couplings, a.poses, instant.targets, rows)
    weakest, strongest, left = eliminate_all(e)
    c.margin = math.sqrt(weakest / strongest) if strongest > 0.0 else 1.0
    place_rows(a, f, strongest, left)


@helper
def place_rows(a: Arrays, f: SparseFactors, strongest: float, left: float) -> None:
    """Places and ranks of rows: those that are eliminated, then those left over, strong to none."""
    c, e, rows, b = a.control, f.e, f.rows, f.border
    count = 0
    for i in range(len(rows)):
        if e.kept[i]:
            rows[count].pivot = i
            count += 1
    b.counts[ELIMINATED] = count
    b.counts[LISTED] = b.counts[STRONG] = b.counts[TAKEN] = 0
    place = count
    for i in range(len(rows)):
        if not e.kept[i]:
            rows[place].pivot = i
            place += 1
    if count < len(rows) and (count != c.cap or left > NOTHING):
        if len(rows) - count > len(b.rows):
            c.failure = DENSE_REQUIRED
            return
        split_at_border(a, f, strongest)
    c.rank, c.filter_rank = count + b.counts[STRONG], count + b.counts[TAKEN]


@outlined
def split_at_border(a: Arrays, f: SparseFactors, strongest: float) -> None:
    """Split what is left over, and put it in its places."""
    rows, b = f.rows, f.border
    first = b.counts[ELIMINATED]
    b.counts[LISTED] = count = len(rows) - first
    for n in range(count):
        b.numbers[n] = rows[first + n].pivot
    split_left_over(a, f.e, b, f.join_of, rows, strongest)
    for n in range(count):
        rows[first + n].pivot = b.numbers[b.rows[n].pivot]
    a.control.margin = min(a.control.margin, weakest_of(b, strongest))
    a.control.unexplained = unexplained(b, strongest)


@helper
def put_inertia(a: Arrays, e: Elimination, basis: Array, front: Front) -> None:
    """Inertia of a body in its coordinates: its rates if it hangs from the world, or its twist."""
    inertia = own_inertia(a.poses[front.body])
    if is_spatial(front.own_size if front.own_size > 0 else front.rates):
        put_spatial(inertia, e.inertia[front.body])
        return
    for m in range(front.own_size if front.own_size > 0 else front.rates):
        push = momentum(inertia, unit_twist(a, basis, front.own_size, front.v, m))
        for n in range(m + 1):
            along = unit_twist(a, basis, front.own_size, front.v, n)
            e.inertia[front.body, m, n] = power(push, along)


@helper
def is_spatial(width: int) -> bool:
    """Whether so many coordinates of a body are its twist, component by component.

    A basis of six is that of the components, and the rates of a free body are they, too: its axes
    are those of the world at its own origin.
    """
    return width == 6


@helper
def put_spatial(inertia: Inertia, M: Array) -> None:
    """Inertia of a body on the components of its twist, at least the lower triangle of M (6, 6)."""
    m, h, J = inertia
    x, y, z = transpose(J)
    put(M[0], x)
    put(M[1], y)
    put(M[2], z)
    put_pair(M[3], ((0.0, h[2], -h[1]), (m, 0.0, 0.0)))
    put_pair(M[4], ((-h[2], 0.0, h[0]), (0.0, m, 0.0)))
    put_pair(M[5], ((h[1], -h[0], 0.0), (0.0, 0.0, m)))


@helper
def unit_twist(a: Arrays, basis: Array, own_size: int, first: int, m: int) -> Pair:
    """Twist of a body when coordinate m of its own is one."""
    if own_size > 0:
        return vec(basis[m]), vec(basis[m, 3:])
    return axis_twist(a.axes[first + m])


@helper
def put_wrenches(
    a: Arrays,
    e: Elimination,
    join: Join,
    targets: Records[Target],
    basis: Array,
    rows: Records[Row],
) -> None:
    """Rows of a loop, scaled, on the coordinates of its bodies."""
    loop = a.loops[join.source]
    frame, point = frames(loop, a.poses, targets)
    up, constant = transpose(frame[0]), constant_rows(loop)
    way = between_origins(a.poses, loop.body_a, loop.body_b)
    for i in range(loop.rows):
        along = vec(loop.moment[i]), vec(loop.force[i])
        if i == constant:
            along = variable_direction(loop, mul(up, point[0]), position_in(frame, point))
        unit, row = rows[loop.row + i].scale, loop.row + i
        force = scale(unit, apply(frame[0], along[1]))
        moment = add(scale(unit, apply(frame[0], along[0])), cross(point[1], force))
        put_on_bodies(a, join, basis, way, (moment, force), e.wrench[row])


@outlined
def put_terms(a: Arrays, e: Elimination, join: Join, basis: Array, unit: float) -> None:
    """The row of a coupling, scaled, on the coordinates of the bodies of its joints."""
    put_term(a, join, basis, unit, e.wrench[join.row])
    for n in range(join.more, join.more + join.further):
        put_term(a, e.further[n], basis, unit, e.arms[n])


@helper
def put_term(a: Arrays, join: Join, basis: Array, unit: float, row: Array) -> None:
    """The share of one joint in the row of a coupling."""
    term = a.terms[join.term]
    share = unit * slope(term, a.axes[term.axis].position)
    put_rate(a, join, basis, a.axes[term.axis], share, row)


@helper
def put_rate(a: Arrays, join: Join, basis: Array, axis: Axis, share: float, row: Array) -> None:
    """The rate of a joint, times a share: its part of the twist of b relative to a."""
    w, v = vec(axis.w), vec(axis.v)
    turn = dot(w, w)
    if turn > 0.0:
        put_on_bodies(a, join, basis, ZERO, (scale(share / turn, w), ZERO), row)
    else:
        put_on_bodies(a, join, basis, ZERO, (ZERO, scale(share / dot(v, v), v)), row)


@helper
def put_on_bodies(
    a: Arrays, join: Join, basis: Array, way: Vector, wrench: Pair, row: Array
) -> None:
    """A wrench on b, and its opposite on a, on the coordinates of the two, into a row (2, k).

    ``way``: from the origin of a to that of b, which the wrench is about.
    """
    opposite = wrench_from(way, wrench)
    if is_spatial(join.width_a):
        put_pair(row[0], scale_pair(-1.0, opposite))
    else:
        for m in range(join.width_a):
            row[0, m] = -power(opposite, unit_twist(a, basis, join.own_a, join.first_a, m))
    if is_spatial(join.width_b):
        put_pair(row[1], wrench)
    else:
        for m in range(join.width_b):
            row[1, m] = power(wrench, unit_twist(a, basis, join.own_b, join.first_b, m))


@outlined
def put_ties(a: Arrays, e: Elimination, basis: Array) -> None:
    """Springs and dampers of force elements, as far ahead as factors take them.

    See ``force_elements.add_compliance``.
    """
    c = a.control
    for i in range(len(e.ties)):
        tie = e.ties[i]
        for n in range(tie.rows):
            ahead = c.damper_dt * c.spring_dt
            row, weight = tie.row + n, 0.0
            if c.damper_dt > 0.0:
                weight = impedance_along(
                    a.efforts, tie.source, n, a.poses, a.axes, c.damper_dt, ahead
                )
            e.weights[row] = weight
            if weight > 0.0:
                put_tie(a, tie, basis, n, e.pulls[row])
                for k in range(tie.more, tie.more + tie.further):
                    put_tie(a, e.further[k], basis, 0, e.arms[k])


@helper
def put_tie(a: Arrays, tie: Join, basis: Array, n: int, row: Array) -> None:
    """The gradient of coordinate n of a force element, or its part on two of many bodies."""
    effort = a.efforts[tie.source]
    if tie.term >= 0:
        axis = a.axes[int(effort.term_axes[tie.term])]
        put_rate(a, tie, basis, axis, effort.factors[tie.term], row)
    else:
        wrench = coordinate(effort, a.poses, n)[1]
        put_on_bodies(a, tie, basis, between_origins(a.poses, tie.a, tie.b), wrench, row)
