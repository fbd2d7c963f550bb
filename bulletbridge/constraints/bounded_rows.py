"""Rows whose forces are bounded: motors, stops of joints, contacts with friction.

Each row is a relative velocity w = C v and the impulse that works against it; what is asked of w
stands in ``mixed.Bound`` and the right side b. Contacts are those that collision detection finds
where the bodies would be at the end of the step if nothing stopped them: whatever rests on
something is then found in every step, which it is not where the bodies just touch.

Source of the conditions at the end of the step: Acary and Brogliato 2008, ch. 10 (Moreau's
time-stepping); of the motor: Bullet's btMultiBodyJointMotor.
"""

import math
from typing import NamedTuple

from bulletbridge.constraints.layout import Drive, Stop
from bulletbridge.mechanism.kinematics import axis_twist
from bulletbridge.mechanism.layout import (
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
from bulletbridge.numerics.algebra import ZERO, Pair, cross, dot, norm, scale, sub, vec, velocity_at
from bulletbridge.numerics.jit import helper
from bulletbridge.numerics.mixed_rows import Bound
from bulletbridge.numerics.records import Array, Records, Vector
from bulletbridge.numerics.split import Row

RECOVERY = 0.2
"""Share of a penetration or of a crossed limit that one step takes back, as Bullet's contactERP."""
SHALLOW = 1e-7
"""Penetration [m] or crossing [rad] that is let be: rounding and the curvature of what rolls."""
SLOWEST_BOUNCE = 0.02
"""Approach [m/s] below which contacts do not bounce: less than gravity gives within a few steps."""


class Asked(NamedTuple):
    """What is asked of rows beyond their velocity at the end of the step not being negative."""

    start: Array  # (rows,) velocity at the start of the step
    room: Array  # (rows,) what may be approached still, over the step; negative at upper limits
    bounce: Array  # (rows,) how much more restitution asks for, not positive
    recover: Array  # (rows,) velocity at which the bodies are moved apart, likewise


@helper
def put_bounded(bound: Bound, lower: float, upper: float) -> None:
    """A row of no cone."""
    bound.lower, bound.upper = lower, upper
    bound.owner, bound.first, bound.count, bound.mu = -1, 1, 1, 0.0


@helper
def put_cone(
    bounds: Records[Bound], n: int, count: int, owner: int, mu: float, second: float
) -> None:
    """Rows of a cone with semi-axes mu and, across it, ``second``."""
    for k in range(count):
        bound = bounds[n + k]
        bound.lower, bound.upper = 0.0, 0.0
        bound.owner, bound.mu = owner, mu if k == 0 else second
        bound.first, bound.count = (1, count) if k == 0 else (0, count)


@helper
def rate_along(C: Array, n: int, v: Array) -> float:
    """C[n] · v."""
    total = 0.0
    for k in range(len(v)):
        total += C[n, k] * v[k]
    return total


@helper
def motion_row(C: Array, n: int, axis: int, G: Array) -> None:
    """The row along a joint's motion: one velocity coordinate, or a guide's row."""
    for k in range(C.shape[1]):
        C[n, k] = G[-1 - axis, k] if axis < 0 else 0.0
    if axis >= 0:
        C[n, axis] = 1.0


@helper
def motion_state(
    axis: int,
    C: Array,
    n: int,
    axes: Records[Axis],
    guides: Records[Row],
    q: Array,
    v: Array,
) -> tuple[float, float]:
    """Position and rate along a joint's motion, whose row is C[n]."""
    if axis < 0:
        guide = guides[-1 - axis]
        return guide.g, rate_along(C, n, v) + guide.g_t
    return q[axes[axis].q], v[axis]


@helper
def drive_rows(
    drives: Records[Drive],
    guides: Records[Row],
    G: Array,
    axes: Records[Axis],
    q: Array,
    v: Array,
    dt: float,
    C: Array,
    b: Array,
    bounds: Records[Bound],
) -> int:
    """One row for every motor and every friction in a joint; their number.

    Args:
        drives: All of them; those without force have no row.
        guides: Positions of loop joints along their free motions, as ``guide_rows`` left them,
        G: (guides, nv) and their rows.
        axes: Of the mechanism.
        q: (nq,) at the start of the step.
        v: (nv,) velocities that forces alone would give.
        dt: Step [s].
        C: (rows, nv) receives the rows,
        b: (rows,) the right sides,
        bounds: (rows,) the bounds.
    """
    n = 0
    for i in range(len(drives)):
        drive = drives[i]
        drive.row = -1
        if not drive.force > 0.0:
            continue
        motion_row(C, n, drive.axis, G)
        position, rate = motion_state(drive.axis, C, n, axes, guides, q, v)
        wanted = rate + drive.velocity_gain * (drive.velocity - rate)
        if drive.position_gain != 0.0:
            wanted += drive.position_gain * (drive.position - position) / dt
        wanted = min(max(wanted, -drive.fastest), drive.fastest)
        b[n] = rate - wanted
        put_bounded(bounds[n], -drive.force * dt, drive.force * dt)
        drive.row = n
        n += 1
    return n


@helper
def stop_rows(
    stops: Records[Stop],
    guides: Records[Row],
    G: Array,
    axes: Records[Axis],
    q: Array,
    v: Array,
    before: Array,
    dt: float,
    n: int,
    C: Array,
    b: Array,
    bounds: Records[Bound],
    asked: Asked,
) -> int:
    """One row for every joint that would be beyond a limit at the end of the step; rows so far.

    Arguments are those of ``drive_rows`` and ``contact_rows``.
    """
    for i in range(len(stops)):
        stop = stops[i]
        stop.row = -1
        motion_row(C, n, stop.axis, G)
        position, rate = motion_state(stop.axis, C, n, axes, guides, q, v)
        end = position + dt * rate
        if stop.lower < end < stop.upper:
            continue
        below = end <= stop.lower
        room = position - stop.lower if below else position - stop.upper
        inside = room >= 0.0 if below else room <= 0.0
        _, asked.start[n] = motion_state(stop.axis, C, n, axes, guides, q, before)
        asked.bounce[n] = 0.0
        asked.room[n] = room / dt if inside else 0.0
        asked.recover[n] = 0.0 if inside or math.fabs(room) < SHALLOW else RECOVERY * room / dt
        b[n] = rate + asked.room[n]
        put_bounded(bounds[n], 0.0 if below else -math.inf, math.inf if below else 0.0)
        stop.row = n
        n += 1
    return n


@helper
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


@helper
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


@helper
def contact_rows(
    touches: Array,
    bodies: Records[Body],
    axes: Records[Axis],
    v: Array,
    ahead: Array,
    before: Array,
    dt: float,
    n: int,
    C: Array,
    b: Array,
    bounds: Records[Bound],
    first: Array,
    asked: Asked,
) -> int:
    """Rows of all contacts at the poses that the axes belong to; rows so far.

    A contact has its normal, two tangents where it rubs, one row where it resists spinning and two
    where it resists rolling.

    Args:
        touches: (contacts, columns) as in ``layout``.
        bodies: Of the mechanism.
        axes: Theirs.
        v: (nv,) velocities that forces alone would give.
        ahead: (nv,) velocities that lead to those poses.
        before: (nv,) velocities at the start of the step.
        dt: Step [s].
        n: Rows so far.
        C: (rows, nv) receives the rows,
        b: (rows,) the right sides,
        bounds: (rows,) the bounds,
        first: (contacts,) the number of each contact's normal row,
        asked: what else is asked of the rows.
    """
    for i in range(len(touches)):
        touch = touches[i]
        normal = vec(touch[TOUCH_NORMAL:])
        t1, t2 = tangents(normal, vec(touch[TOUCH_DIRECTION:]))
        owner = n
        first[i] = n
        relative_row(bodies, axes, touch, (ZERO, normal), C, n)
        rate = rate_along(C, n, v)
        room = touch[TOUCH_GAP] - dt * rate_along(C, n, ahead)  # at the start of the step
        approach = rate_along(C, n, before)
        asked.start[n] = approach
        asked.room[n] = max(room, 0.0) / dt
        hits = touch[TOUCH_GAP] <= 0.0 and approach < -SLOWEST_BOUNCE
        bounce = touch[TOUCH_RESTITUTION] * approach if hits else 0.0
        asked.bounce[n] = min(bounce - asked.room[n], 0.0) if bounce < 0.0 else 0.0
        asked.recover[n] = RECOVERY * room / dt if room < -SHALLOW else 0.0
        b[n] = rate + asked.room[n]
        put_bounded(bounds[n], 0.0, math.inf)
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
            b[k], asked.start[k] = rate_along(C, k, v), rate_along(C, k, before)
            asked.room[k] = asked.bounce[k] = asked.recover[k] = 0.0
    return n
