"""Rows whose forces are bounded: motors and limits of joints; those of ``contact_rows`` are too.

Each row is a relative velocity w = C v and the impulse that works against it; what is asked of w
stands in ``complementarity_rows.RowBounds`` and the right side b. Contacts are those that collision
detection finds where the bodies would be at the end of the step if nothing stopped them: whatever
rests on something is then found in every step, which it is not where the bodies just touch.

Source of the conditions at the end of the step: Acary and Brogliato 2008, ch. 10 (Moreau's
time-stepping); of the motor: Bullet's btMultiBodyJointMotor.
"""

import math
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.constraints.records import Coupling, JointLimit, Loop, MotorRow, Term
from bulletbridge.engine.records import Arrays
from bulletbridge.mechanism.records import (
    Axis,
)
from bulletbridge.numerics.complementarity_rows import RowBounds
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Records

FASTEST_RECOVERY = 1.0
"""Most at which a joint is taken back to its limit, and bodies out of each other [rad/s, or lengths
of the mechanism per second]: loops follow in small steps from far beyond, and nothing is thrown."""
SHALLOW = 1e-7
"""Penetration [m] or crossing [rad] that is let be: rounding and the curvature of what rolls."""
AT_LOWER, AT_UPPER = -2, -3
"""In the place of a limit's row: it is to have one whatever forces alone would do."""
SLOWEST_BOUNCE = 0.02
"""Approach [m/s] below which contacts do not bounce: less than gravity gives within a few steps."""


class RowTargets(NamedTuple):
    """What is asked of rows beyond their velocity at the end of the step not being negative."""

    initial: Array  # (rows,) velocity at the start of the step
    gap: Array  # (rows,) what may be approached still, over the step; negative at upper limits
    restitution: Array  # (rows,) how much more restitution asks for, not positive
    stabilisation: Array  # (rows,) velocity at which the bodies are moved apart, likewise


class LoopAxisRows(NamedTuple):
    """Free motions of loop joints, and tendons: sums of joint positions."""

    loops: Records[Loop]  # one row each
    couplings: Records[Coupling]  # of tendons, a row each after those
    terms: Records[Term]
    rows: Records[Row]  # .g: positions, .g_t: rates of prescribed motions
    G: Array  # (loop axes, nv)


class RowRoom(NamedTuple):
    """Where rows are written.

    Attributes:
        C: (rows, nv), or another form, the rows.
        b: (rows,) right sides.
        bounds: (rows,) bounds.
        targets: What else is asked of them.
    """

    C: Any
    b: Array
    bounds: Records[RowBounds]
    targets: RowTargets


@helper
def put_row_bounds(bound: RowBounds, lower: float, upper: float) -> None:
    """A row of no cone."""
    bound.lower, bound.upper = lower, upper
    bound.owner, bound.first, bound.count, bound.mu = -1, 1, 1, 0.0


@helper
def put_cone(
    bounds: Records[RowBounds], n: int, count: int, owner: int, mu: float, second: float
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
    """The row along a joint's motion: one velocity coordinate, or a loop axis's row."""
    for k in range(C.shape[1]):
        C[n, k] = G[-1 - axis, k] if axis < 0 else 0.0
    if axis >= 0:
        C[n, axis] = 1.0


@helper
def motion_state(
    axis: int, axes: Records[Axis], own: LoopAxisRows, q: Array, v: Array
) -> tuple[float, float]:
    """Position and rate along a joint's motion.

    A turn of a spherical joint has no position, and nothing that drives it asks for one.
    """
    if axis < 0:
        loop_axis = own.rows[-1 - axis]
        return loop_axis.g, rate_along(own.G, -1 - axis, v) + loop_axis.g_t
    at = int(axes[axis].q)
    return q[at] if at >= 0 else 0.0, v[axis]


@helper
def rate_of(axis: int, G: Array, v: Array) -> float:
    """What velocities (nv,) move along a joint's motion, without what is prescribed there."""
    return v[axis] if axis >= 0 else rate_along(G, -1 - axis, v)


@helper
def compliance(drive: MotorRow, dt: float) -> float:
    """Rate at the end of a step per impulse of a servo within its bounds; zero for other motors.

    It pushes with F = k (p - q - dt v) + d (w - v), which is v + x / (dt d + dt² k) = dt F₀ / (dt d
    + dt² k) for its impulse x = dt F, F₀ the force at v = 0: a row with something on its diagonal.
    """
    through = dt * (drive.damping + dt * drive.stiffness)
    return 1.0 / through if through > 0.0 else 0.0


@helper
def add_compliance_of_servos(motor_rows: Records[MotorRow], dt: float, D: Array) -> int:
    """Have servos give way in D (rows, rows) by what their stiffness and damping leave; how many.

    So many more rows than a system has freedoms can be independent.
    """
    count = 0
    for i in range(len(motor_rows)):
        row = motor_rows[i].row
        if row >= 0:
            softness = compliance(motor_rows[i], dt)
            D[row, row] += softness
            count += softness > 0.0
    return count


@outlined
def put_motor_rows(
    motor_rows: Records[MotorRow],
    own: LoopAxisRows,
    axes: Records[Axis],
    q: Array,
    v: Array,
    dt: float,
    room: RowRoom,
) -> tuple[int, int]:
    """One row for every motor and every friction in a joint; rows of motors, and of both.

    Args:
        motor_rows: Motors, then as many frictions; those without force have no row.
        own: Free motions of loop joints, as ``put_loop_axis_rows`` left them.
        axes: Of the mechanism.
        q: (nq,) at the start of the step.
        v: (nv,) velocities that forces alone would give.
        dt: Step [s].
        room: Receives the rows.
    """
    motors, n = 0, 0
    for i in range(len(motor_rows)):
        drive = motor_rows[i]
        drive.row = -1
        if not drive.force > 0.0:
            continue
        motion_row(room.C, n, drive.axis, own.G)
        position, rate = motion_state(drive.axis, axes, own, q, v)
        yielding = compliance(drive, dt)
        if yielding > 0.0:
            pushed = drive.stiffness * (drive.position - position) + drive.damping * drive.velocity
            room.b[n] = rate - yielding * dt * pushed
            put_row_bounds(room.bounds[n], drive.least * dt, drive.force * dt)
            drive.row = n
            n += 1
            motors += 2 * i < len(motor_rows)
            continue
        wanted = rate + drive.velocity_gain * (drive.velocity - rate)
        if drive.position_gain != 0.0:
            wanted += drive.position_gain * (drive.position - position) / dt
        wanted = min(max(wanted, -drive.fastest), drive.fastest)
        room.b[n] = rate - wanted
        put_row_bounds(room.bounds[n], drive.least * dt, drive.force * dt)
        drive.row = n
        n += 1
        motors += 2 * i < len(motor_rows)
    return motors, n


@outlined
def put_limit_rows(
    joint_limits: Records[JointLimit],
    own: LoopAxisRows,
    a: Arrays,
    q: Array,
    v: Array,
    before: Array,
    n: int,
    room: RowRoom,
) -> int:
    """One row for every joint that would be beyond a limit at the end of the step; rows so far.

    So have those that ``list_passed`` has listed. Arguments are those of ``put_motor_rows`` and
    ``put_contact_rows``.
    """
    dt, asked = a.control.dt, room.targets
    for i in range(len(joint_limits)):
        limit = joint_limits[i]
        listed = limit.row
        limit.row = -1
        position, rate = motion_state(limit.axis, a.axes, own, q, v)
        end = position + dt * rate
        if limit.lower < end < limit.upper and listed > AT_LOWER:
            continue
        motion_row(room.C, n, limit.axis, own.G)
        below = listed == AT_LOWER or (listed > AT_LOWER and end <= limit.lower)
        away = position - limit.lower if below else position - limit.upper
        inside = away >= 0.0 if below else away <= 0.0
        _, asked.initial[n] = motion_state(limit.axis, a.axes, own, q, before)
        asked.restitution[n] = 0.0
        asked.gap[n] = away / dt if inside else 0.0
        asked.stabilisation[n] = 0.0
        if not inside and math.fabs(away) >= SHALLOW:
            asked.stabilisation[n] = min(
                max(a.control.recovery * away / dt, -limit.fastest), limit.fastest
            )
        room.b[n] = rate + asked.gap[n]
        put_row_bounds(room.bounds[n], 0.0 if below else -math.inf, math.inf if below else 0.0)
        limit.row = n
        n += 1
    return n


@outlined
def list_passed(
    joint_limits: Records[JointLimit],
    own: LoopAxisRows,
    axes: Records[Axis],
    dt: float,
    q: Array,
    v: Array,
    bounds: Records[RowBounds],
) -> bool:
    """Whether a step leads beyond limits that have no row; these then have one, as the others.

    Rows are of limits that forces alone would lead beyond. Motors and impacts may lead there too.

    Args:
        joint_limits: As ``put_limit_rows`` left them,
        own: likewise.
        axes: Of the mechanism.
        dt: Step [s].
        q: (nq,) at the start of the step.
        v: (nv,) with the impulses of all rows.
        bounds: Of these.
    """
    found = False
    for i in range(len(joint_limits)):
        found |= passes(joint_limits[i], own, axes, dt, q, v, bounds) != 0
    if not found:
        return False
    for i in range(len(joint_limits)):
        limit = joint_limits[i]
        side = passes(limit, own, axes, dt, q, v, bounds)
        if side == 0 and limit.row >= 0:
            side = AT_LOWER if bounds[limit.row].upper > 0.0 else AT_UPPER
        limit.row = side if side != 0 else -1
    return True


@helper
def passes(
    limit: JointLimit,
    own: LoopAxisRows,
    axes: Records[Axis],
    dt: float,
    q: Array,
    v: Array,
    bounds: Records[RowBounds],
) -> int:
    """Which limit v leads beyond, though no row holds there: AT_LOWER, AT_UPPER or 0."""
    position, rate = motion_state(limit.axis, axes, own, q, v)
    end = position + dt * rate
    holds_up = limit.row >= 0 and bounds[limit.row].upper > 0.0
    if end < min(limit.lower, position) - SHALLOW and not holds_up:
        return AT_LOWER
    holds_down = limit.row >= 0 and bounds[limit.row].lower < 0.0
    if end > max(limit.upper, position) + SHALLOW and not holds_down:
        return AT_UPPER
    return 0
