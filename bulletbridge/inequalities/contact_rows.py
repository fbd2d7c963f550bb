"""Rows of contacts: normals, friction, resistance to spinning and rolling."""

import math

from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.inequalities.motor_limit_rows import (
    SHALLOW,
    SLOWEST_BOUNCE,
    RowTargets,
    put_cone,
    put_row_bounds,
    rate_along,
)
from bulletbridge.mechanism.kinematics import axis_twist
from bulletbridge.mechanism.records import (
    TOUCH_A,
    TOUCH_B,
    TOUCH_DIRECTION,
    TOUCH_FRICTION,
    TOUCH_GAP,
    TOUCH_NORMAL,
    TOUCH_POINT,
    TOUCH_RESTITUTION,
    TOUCH_ROLLING,
    TOUCH_SECOND,
    TOUCH_SPINNING,
    Axis,
    Body,
)
from bulletbridge.numerics.complementarity_rows import RowBounds
from bulletbridge.numerics.records import Array, Records, Vector
from bulletbridge.numerics.spatial import ZERO, Pair, cross, dot, norm, scale, sub, vec, velocity_at


@outlined
def relative_row(
    bodies: Records[Body],
    axes: Records[Axis],
    touch: Array,
    wrench: Pair,
    C: Array,
    n: int,
) -> None:
    """Velocity of body b against body a, each at its own surface: where they are to meet.

    A point between them, while they overlap, would be nearer to both than their surfaces are.
    """
    for k in range(C.shape[1]):
        C[n, k] = 0.0
    point = vec(touch[TOUCH_POINT:])
    other = sub(point, scale(touch[TOUCH_GAP], vec(touch[TOUCH_NORMAL:])))
    add_body(bodies, axes, int(touch[TOUCH_B]), 1.0, wrench, point, C, n)
    add_body(bodies, axes, int(touch[TOUCH_A]), -1.0, wrench, other, C, n)


@helper
def add_body(
    bodies: Records[Body],
    axes: Records[Axis],
    body: int,
    sign: float,
    wrench: Pair,
    point: Vector,
    C: Array,
    n: int,
) -> None:
    """Add what the axes below a body contribute to its velocity along a wrench."""
    j = bodies[body].axis
    while j >= 0:
        twist = axis_twist(axes[j])
        C[n, j] += sign * (dot(wrench[0], twist[0]) + dot(wrench[1], velocity_at(twist, point)))
        j = axes[j].below


@kernel
def tangents(normal: Vector, direction: Vector) -> tuple[Vector, Vector]:
    """Two unit vectors at right angles to a unit normal and to each other.

    The first is the direction as far as it is tangential, and any if that is nothing.
    """
    first = sub(direction, scale(dot(direction, normal), normal))
    if not norm(first) > 1e-6:
        aside = (1.0, 0.0, 0.0) if math.fabs(normal[0]) < 0.7 else (0.0, 1.0, 0.0)
        first = cross(normal, aside)
    first = scale(1.0 / norm(first), first)
    return first, cross(normal, first)


@outlined
def put_contact_rows(
    touches: Array,
    bodies: Records[Body],
    axes: Records[Axis],
    v: Array,
    predicted_v: Array,
    before: Array,
    dt: float,
    n: int,
    C: Array,
    b: Array,
    bounds: Records[RowBounds],
    first: Array,
    recovery: float,
    fastest: float,
    row_targets: RowTargets,
) -> int:
    """Rows of all contacts at the poses that the axes belong to; rows so far.

    A contact has its normal, two tangents where it rubs, one row where it resists spinning and two
    where it resists rolling.

    Args:
        touches: (contacts, columns) as in ``mechanism.records``.
        bodies: Of the mechanism.
        axes: Theirs.
        v: (nv,) velocities that forces alone would give.
        predicted_v: (nv,) velocities that lead to those poses.
        before: (nv,) velocities at the start of the step.
        dt: Step [s].
        n: Rows so far.
        C: (rows, nv) receives the rows,
        b: (rows,) the right sides,
        bounds: (rows,) the bounds,
        first: (contacts,) the number of each contact's normal row,
        recovery: share of a penetration that the step takes back,
        fastest: at most at this speed [m/s],
        row_targets: what else is asked of the rows.
    """
    for i in range(len(touches)):
        touch = touches[i]
        normal = vec(touch[TOUCH_NORMAL:])
        t1, t2 = tangents(normal, vec(touch[TOUCH_DIRECTION:]))
        owner = n
        first[i] = n
        relative_row(bodies, axes, touch, (ZERO, normal), C, n)
        rate = rate_along(C, n, v)
        room = touch[TOUCH_GAP] - dt * rate_along(C, n, predicted_v)  # at the start of the step
        approach = rate_along(C, n, before)
        row_targets.initial[n] = approach
        row_targets.gap[n] = max(room, 0.0) / dt
        hits = touch[TOUCH_GAP] <= 0.0 and approach < -SLOWEST_BOUNCE
        bounce = touch[TOUCH_RESTITUTION] * approach if hits else 0.0
        row_targets.restitution[n] = min(bounce - row_targets.gap[n], 0.0) if bounce < 0.0 else 0.0
        row_targets.stabilisation[n] = (
            max(recovery * room / dt, -fastest) if room < -SHALLOW else 0.0
        )
        b[n] = rate + row_targets.gap[n]
        put_row_bounds(bounds[n], 0.0, math.inf)
        n += 1
        if max(touch[TOUCH_FRICTION], touch[TOUCH_SECOND]) > 0.0:
            relative_row(bodies, axes, touch, (ZERO, t1), C, n)
            relative_row(bodies, axes, touch, (ZERO, t2), C, n + 1)
            put_cone(bounds, n, 2, owner, touch[TOUCH_FRICTION], touch[TOUCH_SECOND])
            n += 2
        if touch[TOUCH_SPINNING] > 0.0:
            relative_row(bodies, axes, touch, (normal, ZERO), C, n)
            put_cone(bounds, n, 1, owner, touch[TOUCH_SPINNING], 0.0)
            n += 1
        if touch[TOUCH_ROLLING] > 0.0:
            relative_row(bodies, axes, touch, (t1, ZERO), C, n)
            relative_row(bodies, axes, touch, (t2, ZERO), C, n + 1)
            put_cone(bounds, n, 2, owner, touch[TOUCH_ROLLING], touch[TOUCH_ROLLING])
            n += 2
        for k in range(owner + 1, n):
            b[k], row_targets.initial[k] = rate_along(C, k, v), rate_along(C, k, before)
            row_targets.gap[k] = row_targets.restitution[k] = row_targets.stabilisation[k] = 0.0
    return n
