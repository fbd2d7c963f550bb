"""Sub-steps: each predicts by an integrator, corrects, filters; their lengths, if controlled."""

# the type checker gives up on the control record in the long loop
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import math

from bulletbridge.formulations.arrays import (
    ACCELERATION,
    DONE,
    EULER,
    NOT_CLOSED,
    NOT_FINITE,
    NOT_RESOLVED,
    OF_THE_WHOLE,
    RADAU,
    STAGE_VDOTS,
    START_Q,
    START_V,
    VERLET,
    Arrays,
    Control,
    Factors,
    Moment,
)
from bulletbridge.formulations.correction import finite
from bulletbridge.formulations.projector import push, refresh
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.jit import helper, inlined
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.split import unwhiten
from bulletbridge.simulation.explicit import error8, first_stage, take_factors
from bulletbridge.simulation.finish import finish
from bulletbridge.simulation.passages import (
    LANDING,
    NEAREST,
    divisible,
    explicit_stages,
    fixed_length,
    longest,
    on_singular,
)
from bulletbridge.simulation.radau import radau_stages
from bulletbridge.simulation.stages import distance, pace, prescribe
from bulletbridge.simulation.verlet import first_half

SAFETY, MOST_SHRINKING, MOST_GROWTH = 0.9, 0.2, 6.0
NEAR_SINGULAR = 0.1
"""Weakest row over the strongest, of any stage, that counts as near to a singular position; it is
relative to the largest one met."""
FINEST = 0.25
"""Of the last sub-step elsewhere, both times the pace: what one near a singular position is not cut
below. Off the constraints, where stages are, accelerations have a pole there, and an estimate that
follows it never ends; the motion is smooth. Where it is not, since the mechanism turns back before
such a position, the pace grows and lets sub-steps be shorter.
"""
WORST, ELSEWHERE = 1e-4, 0.7
"""Estimate, in units, that is not taken even so, and how much shorter the next attempt is."""
SMALLEST = 1e-10
"""Of the step: a sub-step that would have to be shorter is an error."""


@helper
def sub_steps(
    a: Arrays,
    c: Control,
    f: Factors,
    stage: Factors,
    L: Array,
    begun: float,
    ended: float,
    q: Array,
    v: Array,
    targets: Array,
    tau: Array,
    first: int,
) -> None:
    """One step from time ``begun`` to ``ended`` [s], or as many as the error control asks for.

    c is ``a.control``; meanwhile its dt is the length of the sub-step. Targets of the whole step
    stand from line ``first`` on, or in the last line; its forces are all of tau.
    """
    whole, t, again, last, landed = c.dt, begun, 0, 0, 0
    rest, landing = whole, 0
    parts = divisible(c, targets, tau)
    most, stuck = longest(a, v, whole, parts), 0  # whether an implicit method is out of its depth
    q0, v0 = a.vectors[START_Q, : len(q)], a.vectors[START_V, : len(v)]
    while last == 0:
        last = 1
        start = Moment(t, targets[min(first, len(targets) - 1)])
        if again == 0:
            keep(q0, q)
            keep(v0, v)
            prescribe(a, t)
            if c.fresh != OF_THE_WHOLE:
                refresh(a, f, start, q, v)
        if not c.controlled:
            c.dt = min(most, fixed_length(whole, rest, landing))
            last = 1 if c.dt == rest else 0
        vdot = a.vectors[STAGE_VDOTS, : len(v)]
        if c.integrator == EULER:
            semi_implicit_euler(a, f, q, v, tau[0])
        else:
            if again == 0:
                first_stage(a, f, start, q, v, tau[0])
            if not finite(vdot):
                c.failure = NOT_FINITE
                return
        if c.integrator == VERLET:
            first_half(a, q, v, tau)
        elif c.integrator != EULER:
            w = pace(a, v0, vdot)
            if c.controlled:
                last = choose_length(c, ended - t, w)
            rank, filter_rank, margin, here = c.rank, c.filter_rank, c.margin, distance(c)
            ends = False  # whether the last stage is at the end
            if c.integrator == RADAU and not stuck:
                error, weakest = radau_stages(a, stage, L, t, w, again, q, v, targets, tau)
                near = min(weakest, here) < NEAR_SINGULAR * c.clear
                if near and not c.controlled:
                    c.rank, c.filter_rank, c.margin = rank, filter_rank, margin
                    most, stuck, again, last = NEAREST * whole, 1, 1, 0
                    continue
            else:
                short = parts and c.dt < 1.5 * NEAREST * whole
                weakest, ends = explicit_stages(a, stage, t, q, v, targets, tau, first, short)
                error = error8(a, len(v), w) if c.controlled else 0.0
            if not accepted(c, error, w, min(weakest, here), again):
                c.rank, c.filter_rank, c.margin = rank, filter_rank, margin
                if c.failure == DONE and not c.dt > SMALLEST * whole:
                    c.failure = NOT_RESOLVED
                if c.failure != DONE:
                    return
                again, last = 1, 0
                continue
            if ends:
                take_factors(f, stage)
            else:
                c.rank, c.filter_rank = rank, filter_rank
        middle = t + c.dt
        index = first + (1 if c.integrator == EULER else 2)
        end = Moment(ended if last == 1 else middle, targets[min(index, len(targets) - 1)])
        prescribe(a, end.t)
        finish(a, f, end, q, v)
        again = 0
        open = c.failure == NOT_CLOSED
        on_it = c.failure == DONE and last == 0 and distance(c) < LANDING * c.clear and landed < 3
        if c.controlled and (open or on_it) and c.dt > SMALLEST * whole:
            keep(q, q0)
            keep(v, v0)
            c.failure, c.fresh, last = DONE, 0, 0
            c.next_dt = (0.25 if open else ELSEWHERE) * c.dt
            c.rejected += 1
            landed += 1
            continue
        landed = 0
        if c.failure != DONE:
            return
        if not c.controlled:
            if last == 1 and not landing and parts and on_singular(a, v, whole):
                keep(q, q0)
                keep(v, v0)
                c.fresh, last, landing = 0, 0, 1
                continue
            rest -= c.dt
            if not stuck or distance(c) >= NEAR_SINGULAR * c.clear:
                most, stuck = 1.01 * (whole - rest), 0
        t = middle
        c.taken += 1


@inlined
def keep(place: Array, x: Array) -> None:
    """Copy x, or as much of it as there is place for."""
    for k in range(min(len(place), len(x))):
        place[k] = x[k]


@helper
def choose_length(c: Control, left: float, w: float) -> int:
    """Length of the next sub-step, ``left`` [s] before the end at pace w; 1 for the last, or 0."""
    if c.next_dt == 0.0:
        c.next_dt = 0.5 * c.rtol ** (1.0 / order(c)) / w if w > 0.0 else left
    parts = math.ceil(min(left / c.next_dt, 1e15) * (1.0 - 1e-9))
    c.dt = left / max(parts, 1)
    return 1 if parts <= 1 else 0


@helper
def order(c: Control) -> float:
    """Of the error estimate, plus one."""
    return 4.0 if c.integrator == RADAU else 8.0


@helper
def accepted(c: Control, error: float, w: float, margin: float, again: int) -> bool:
    """Whether a sub-step will do whose error is a multiple of what is tolerated; the next length.

    The error is NaN or infinite if the stages failed, w the pace [1/s], margin that of the worst
    stage, again 1 if the sub-step before was rejected.
    """
    if not c.controlled:
        if not error < math.inf:
            c.failure = NOT_RESOLVED
        return error < math.inf
    scale = MOST_SHRINKING
    if error < math.inf:
        scale = MOST_GROWTH
        if error > 0.0:
            scale = min(MOST_GROWTH, max(MOST_SHRINKING, SAFETY * error ** (-1.0 / order(c))))
    c.clear = max(c.clear, margin)
    near = margin < NEAR_SINGULAR * c.clear
    if c.reach == 0.0 or (error <= 1.0 and not near):
        c.reach = c.dt * w
    least = FINEST * c.reach / w if near else 0.0
    if error <= 1.0:
        c.next_dt = c.dt * (min(scale, 1.0) if again == 1 else scale)
        return True
    if c.dt > 1.001 * least or not error < math.inf:
        c.next_dt = max(scale * c.dt, least if error < math.inf else 0.0)
    elif error * c.rtol < WORST:
        c.next_dt = 1.5 * c.dt
        return True
    else:  # some stage is all but on that position; another length moves it
        c.next_dt = ELSEWHERE * c.dt
    c.rejected += 1
    return False


@inlined
def semi_implicit_euler(a: Arrays, f: Factors, q: Array, v: Array, tau: Array) -> None:
    """Velocity level, as Bullet does: v <- v + dt P M⁻¹ (tau - h), then q by the new v.

    With ``control.implicit`` joint springs, and dampers beside them, push as at the step's end,
    -D v₁ - K (q + dt v₁ - rest): M + dt D + dt² K is the metric of the whole step. Its correction
    then is an impulse under which springs give way; its filter may gain kinetic energy, but no more
    than the implicit Euler method has taken from the springs, ½ |dt v₁|² in the metric of K.

    The curvature of the constraints is not evaluated. What the correction moves q by is an impulse
    too: ``finish`` adds it, over dt, to the velocity before the filter. So q moves along the chord
    between two closed configurations, which makes equal angles with the constraints at both ends,
    and no energy is lost or gained to first order (SHAKE; Hairer, Lubich, Wanner, VII.1.4). Near
    singular positions nothing grows without bound.
    """
    dt, vdot = a.control.dt, a.vectors[ACCELERATION, : len(v)]
    push(a, f, q, v, tau, vdot)
    unwhiten(f.L, vdot)
    for k in range(len(v)):
        v[k] += dt * vdot[k]
    displace(a.bodies, q, v, dt, q)
