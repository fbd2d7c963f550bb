"""Rows whose forces are bounded: motors and stops of joints; those of ``contact_rows`` are too.

Each row is a relative velocity w = C v and the impulse that works against it; what is asked of w
stands in ``complementarity_rows.Bound`` and the right side b. Contacts are those that collision
detection finds where the bodies would be at the end of the step if nothing stopped them: whatever
rests on something is then found in every step, which it is not where the bodies just touch.

Source of the conditions at the end of the step: Acary and Brogliato 2008, ch. 10 (Moreau's
time-stepping); of the motor: Bullet's btMultiBodyJointMotor.
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.constraints.records import Drive, Stop
from bulletbridge.mechanism.records import (
    Axis,
)
from bulletbridge.numerics.complementarity_rows import Bound
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Records

FASTEST_RECOVERY = 1.0
"""Most at which a joint is taken back to its limit, and bodies out of each other [rad/s, or lengths
of the mechanism per second]: loops follow in small steps from far beyond, and nothing is thrown."""
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


@outlined
def motion_row(C: Array, n: int, axis: int, G: Array) -> None:
    """The row along a joint's motion: one velocity coordinate, or a guide's row."""
    for k in range(C.shape[1]):
        C[n, k] = G[-1 - axis, k] if axis < 0 else 0.0
    if axis >= 0:
        C[n, axis] = 1.0


@outlined
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


@outlined
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
) -> tuple[int, int]:
    """One row for every motor and every friction in a joint; rows of motors, and of both.

    Args:
        drives: Motors, then as many frictions; those without force have no row.
        guides: Positions of loop joints along their free motions, as ``force_limited_rows`` left
            them,
        G: (guides, nv) and their rows.
        axes: Of the mechanism.
        q: (nq,) at the start of the step.
        v: (nv,) velocities that forces alone would give.
        dt: Step [s].
        C: (rows, nv) receives the rows,
        b: (rows,) the right sides,
        bounds: (rows,) the bounds.
    """
    motors, n = 0, 0
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
        motors += 2 * i < len(drives)
    return motors, n


@outlined
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
    recovery: float,
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
        asked.recover[n] = 0.0
        if not inside and math.fabs(room) >= SHALLOW:
            asked.recover[n] = min(max(recovery * room / dt, -stop.fastest), stop.fastest)
        b[n] = rate + asked.room[n]
        put_bounded(bounds[n], 0.0 if below else -math.inf, math.inf if below else 0.0)
        stop.row = n
        n += 1
    return n
