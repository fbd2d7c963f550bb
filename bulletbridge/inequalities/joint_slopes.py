"""What motors, friction and limits of joints hold in a step, and what that changes by."""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.constraints.records import JointLimit, MotorRow
from bulletbridge.engine.step_adjoint import HeldRates
from bulletbridge.inequalities.contact_slopes import CLEAR
from bulletbridge.inequalities.motor_limit_rows import SHALLOW, compliance
from bulletbridge.inequalities.steps_kernel import TracedForces
from bulletbridge.mechanism.records import Axis
from bulletbridge.numerics.records import Array, Mask, Records

BESIDE = 2e-4
"""Distance from a limit [rad or m] that counts as beside it: what differences go, and some more."""
SATURATED = 1.0 - 1e-9
"""Share of a largest force from which on it counts as reached."""
HOLDS, PUSHES, DOUBTFUL, ALONG_LOOP, FAR_BEYOND = range(5)
"""What a row does: it holds a rate; its force is given; it is about to act otherwise; it acts along
an axis of a loop, or far beyond a limit, of which nothing is known."""


class Step(NamedTuple):
    """A step along the motion of a joint.

    Attributes:
        start: Position at its start [rad or m],
        end: and at its end.
        led: Rate that forces alone lead to,
        rate: and at its end.
        force: That is exerted.
        dt: [s]
    """

    start: float
    end: float
    led: float
    rate: float
    force: float
    dt: float


class HeldRow(NamedTuple):
    """What a row of a joint does: rate = this - compliance * force where it holds one.

    Attributes:
        how: ``HOLDS`` or another.
        rate: That it holds, with its force [rad/s or m/s].
        slope: What that changes by with the position of the joint at the start,
        share: with the rate that forces alone lead to,
        compliance: and falls by with the force.
        room: Force by which it is off acting otherwise.
    """

    how: int
    rate: float
    slope: float
    share: float
    compliance: float
    room: float


@helper
def held_by_motor(motor: MotorRow, s: Step) -> HeldRow:
    """What a motor, or friction, holds, as ``put_motor_rows`` has it."""
    gives, share, how = s.dt * compliance(motor, s.dt), 0.0, HOLDS
    away = 0.0
    if motor.stiffness != 0.0 or motor.position_gain != 0.0:  # others may be set to go nowhere
        away = motor.position - s.start
    if gives > 0.0:
        pushed = motor.stiffness * away + motor.damping * motor.velocity
        rate, slope = gives * (pushed - s.force), -gives * motor.stiffness
    else:
        share, slope = 1.0 - motor.velocity_gain, -motor.position_gain / s.dt
        rate = motor.velocity + share * (s.led - motor.velocity) - slope * away
        if share != 0.0 or slope != 0.0:
            if math.fabs(math.fabs(rate) - motor.fastest) <= CLEAR:
                how = DOUBTFUL
            if math.fabs(rate) > motor.fastest:
                rate, slope, share = math.copysign(motor.fastest, rate), 0.0, 0.0
    room = min(motor.force - s.force, s.force - motor.least)
    if how == HOLDS and not room > (1.0 - SATURATED) * motor.force:
        how = DOUBTFUL if math.fabs(s.rate - rate) <= CLEAR else PUSHES
    return HeldRow(ALONG_LOOP if motor.axis < 0 else how, rate, slope, share, gives, room)


@helper
def held_by_limit(limit: JointLimit, s: Step) -> HeldRow:
    """What a limit holds."""
    how, slope = HOLDS, -1.0 / s.dt
    beyond = max(limit.lower - s.start, s.start - limit.upper)
    way = beyond if s.start >= 0.5 * (limit.lower + limit.upper) else -beyond
    if s.force == 0.0:
        left = min(s.end - limit.lower, limit.upper - s.end)
        how = DOUBTFUL if limit.axis >= 0 and left <= BESIDE else PUSHES
    elif limit.axis < 0:
        how = ALONG_LOOP
    elif beyond >= SHALLOW:
        how = FAR_BEYOND
    if beyond > 0.0:
        way = slope = 0.0
    return HeldRow(how, -way / s.dt, slope, 0.0, 0.0, math.inf)


@helper
def step_along(
    axes: Records[Axis], axis: int, start: Array, end: Array, force: float, dt: float
) -> Step:
    """That of an axis, or of none, between states (nq + nv + 1,); led by nothing."""
    if axis < 0:
        return Step(0.0, 0.0, 0.0, 0.0, force, dt)
    at, rate = int(axes[axis].q), end[len(end) - 1 - len(axes) + axis]
    if at < 0:  # a turn of a spherical joint
        return Step(0.0, 0.0, 0.0, rate, force, dt)
    return Step(start[at], end[at], 0.0, rate, force, dt)


@helper
def take_held(held: HeldRates, rates: Array, n: int, axis: int, row: HeldRow) -> None:
    """Add a row that holds an axis in step n."""
    k = held.counts[n]
    held.counts[n] = k + 1
    held.axes[n, k], held.slopes[n, k], held.compliance[n, k] = axis, row.slope, row.compliance
    held.least[n, k], rates[n, k] = CLEAR / row.room, row.rate


@kernel
def list_held(
    trace: TracedForces,
    axes: Records[Axis],
    dt: float,
    held: HeldRates,
    rates: Array,
    known: Mask,
) -> int:
    """Which rates motors, friction and limits of joints hold in steps that were traced; how many.

    Args:
        trace: What was told of n steps.
        axes: Of the mechanism.
        dt: [s]
        held: Has room for all; receives them,
        rates: (n, m) which ones they hold,
        known: (n,) and whether none is about to act otherwise.
    """
    count = 0
    for n in range(len(known)):
        start, end = trace.states[n], trace.states[n + 1]
        for i in range(len(trace.drives)):
            motor, force = trace.motor_rows[int(trace.drives[i])], trace.by_drives[n, i]
            row = held_by_motor(motor, step_along(axes, motor.axis, start, end, force, dt))
            soft = row.compliance == 0.0 and motor.velocity_gain != 1.0  # it takes what leads
            if row.how == HOLDS and not soft:
                take_held(held, rates, n, motor.axis, row)
            elif row.how != PUSHES:
                known[n] = False
            held.pushes[n, motor.axis] += force
        for i in range(len(trace.joint_limits)):
            limit, force = trace.joint_limits[i], trace.by_limits[n, i]
            row = held_by_limit(limit, step_along(axes, limit.axis, start, end, force, dt))
            if row.how == HOLDS:
                take_held(held, rates, n, limit.axis, row)
            elif row.how != PUSHES:
                known[n] = False
            if limit.axis >= 0:
                held.pushes[n, limit.axis] += force
        count += held.counts[n]
    return count
