"""Rows along axes of loop joints, and of constraints with a force limit.

Both come from the kernels of the rigid loops. A loop axis is a loop record with one row along a
free motion; motors and joint limits refer to it as they do to the axes of the tree. The rows of a
constraint with a force limit have forces within bounds, as Bullet's
``changeConstraint(maxForce=)`` defines them: each row by itself, along the axes of the world where
it holds a point.
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.constraints.records import (
    ROD,
    WHOLE_TURN,
    Coupling,
    ForceLimit,
    Loop,
    Target,
    Term,
)
from bulletbridge.constraints.relative_pose import frames, position_in, turn_about_z, whole_turn
from bulletbridge.constraints.rows import jacobian, residuals
from bulletbridge.engine.records import Arrays
from bulletbridge.inequalities.motor_limit_rows import (
    LoopAxisRows,
    RowRoom,
    put_row_bounds,
    rate_along,
)
from bulletbridge.mechanism.records import Axis, Pose
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Records, Vector
from bulletbridge.numerics.spatial import (
    add,
    apply,
    cross,
    dot,
    mul,
    norm,
    transpose,
    vec,
)


@helper
def free_position(loop: Loop, poses: Records[Pose], targets: Records[Target], last: float) -> float:
    """Travel [m] or turn [rad] of b against a along a free motion; the turn nearest to ``last``.

    Of a spring its length, of a spherical joint all its turn, about whatever axis.
    """
    a, b = frames(loop, poses, targets)
    s, turns = position_in(a, b), vec(loop.turns)
    if loop.variable == ROD:
        return norm(s)
    if loop.variable == WHOLE_TURN:
        return whole_turn(mul(transpose(a[0]), b[0]))[0]
    if loop.force[0, 2] != 0.0:
        return s[2]
    near = dot(turns, s) if dot(turns, turns) != 0.0 else last
    return turn_about_z(mul(transpose(a[0]), b[0]), near)


@outlined
def jacobian_apart(
    loops: Records[Loop],
    couplings: Records[Coupling],
    terms: Records[Term],
    targets: Records[Target],
    a: Arrays,
    J: Array,
    rows: Records[Row],
) -> None:
    """``jacobian`` at the poses at hand, out of line."""
    jacobian(loops, couplings, terms, a.poses, a.axes, targets, J, rows)


@outlined
def put_loop_axis_rows(own: LoopAxisRows, targets: Records[Target], a: Arrays) -> None:
    """Rows, positions and rates of prescribed motions along free motions, springs and tendons."""
    jacobian_apart(own.loops, own.couplings, own.terms, targets, a, own.G, own.rows)
    for i in range(len(own.loops)):
        loop = own.loops[i]
        row = own.rows[loop.row]
        before = row.g if loop.adds != 0 else 0.0
        row.g = before + free_position(loop, a.poses, targets, row.g)
    for i in range(len(own.couplings)):
        coupling, total = own.couplings[i], 0.0
        for k in range(coupling.first, coupling.first + coupling.count):
            total += own.terms[k].coefficient * a.axes[own.terms[k].axis].position
        own.rows[coupling.row].g = total


SHUT = 1e-9
"""Share of the largest gap along any row of a constraint up to which one row is shut: by the sign
of round-off it would pull with all its force at what motors hold. A row of which round-off alone
is left, as one that is redundant, pulls so in vain, and would count as giving way for good."""


class ForceLimitedRows(NamedTuple):
    """Constraints with a force limit."""

    force_limits: Records[ForceLimit]
    loops: Records[Loop]
    couplings: Records[Coupling]
    terms: Records[Term]
    rows: Records[Row]


@outlined
def put_force_limited_rows(
    own: ForceLimitedRows,
    targets: Records[Target],
    a: Arrays,
    q: Array,
    v: Array,
    n: int,
    room: RowRoom,
) -> int:
    """Rows of constraints with a force limit; v are the velocities without them. Rows so far.

    Of those that hold nothing is left.
    """
    loops, rows, dt = own.loops, own.rows, a.control.dt
    J = room.C[n : n + len(rows)]
    residuals(loops, own.couplings, own.terms, a.poses, a.axes, targets, q, rows)
    jacobian_apart(loops, own.couplings, own.terms, targets, a, J, rows)
    for i in range(len(own.force_limits)):
        limit = own.force_limits[i]
        first, last = limit.row, limit.row + limit.rows
        if limit.holds != 0:
            leave_out(n + first, n + last, room)
            continue
        if limit.loop >= 0:
            hold_point(loops[limit.loop], first, a.poses, a.axes, targets, J, rows)
        largest = strongest = 0.0
        for k in range(first, last):
            largest = max(largest, math.fabs(rows[k].g))
            strongest = max(strongest, strength(J, k))
        for k in range(first, last):
            if strength(J, k) <= SHUT * strongest:
                leave_out(n + k, n + k + 1, room)
                continue
            open_by = rows[k].g if math.fabs(rows[k].g) > SHUT * largest else 0.0
            target = rows[k].g_t + limit.erp * open_by / dt
            room.b[n + k] = rate_along(room.C, n + k, v) + target
            put_row_bounds(room.bounds[n + k], -limit.force * dt, limit.force * dt)
    return n + len(rows)


@helper
def strength(J: Array, row: int) -> float:
    """Largest entry of a row."""
    found = 0.0
    for j in range(J.shape[1]):
        found = max(found, math.fabs(J[row, j]))
    return found


@helper
def leave_out(first: int, end: int, room: RowRoom) -> None:
    """Leave nothing of some rows."""
    for k in range(first, end):
        room.b[k] = 0.0
        put_row_bounds(room.bounds[k], 0.0, 0.0)
        for j in range(room.C.shape[1]):
            room.C[k, j] = 0.0


@outlined
def hold_point(
    loop: Loop,
    first: int,
    poses: Records[Pose],
    axes: Records[Axis],
    targets: Records[Target],
    J: Array,
    rows: Records[Row],
) -> None:
    """Three rows that hold a point in axes of a' become its gap along those of the world.

    Nothing of it is left along directions that are redundant, as of the rows.
    """
    R, force = frames(loop, poses, targets)[0][0], loop.force
    kept = mul(mul(R, (vec(force[0]), vec(force[1]), vec(force[2]))), transpose(R))
    gap = apply(R, (rows[first].g, rows[first + 1].g, rows[first + 2].g))
    for j in range(J.shape[1]):
        put(J, first, j, apply(R, (J[first, j], J[first + 1, j], J[first + 2, j])))
    k = loop.axis_a
    while k >= 0:  # the gap does not turn with a any more
        x = apply(kept, cross(vec(axes[k].w), gap))
        put(J, first, k, add((J[first, k], J[first + 1, k], J[first + 2, k]), x))
        k = axes[k].below
    g_t = apply(R, (rows[first].g_t, rows[first + 1].g_t, rows[first + 2].g_t))
    for i in range(3):
        rows[first + i].g, rows[first + i].g_t = gap[i], g_t[i]


@helper
def put(J: Array, first: int, column: int, x: Vector) -> None:
    """Write three entries of a column."""
    for k in range(3):
        J[first + k, column] = x[k]
