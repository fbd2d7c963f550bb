"""The step: predict, correct, filter. One call advances many steps.

One factorisation serves a step: the factors made for the filter that ends a step give the
acceleration of the next one, and its correction uses them as a chord method.
"""

import math

from bulletbridge.constraints.layout import Coupling, Loop, Term
from bulletbridge.formulations.arrays import (
    ACCELERATION,
    ACCELERATION_SUM,
    CHART,
    CONTRADICTED,
    CORRECTION,
    DONE,
    EULER,
    NOT_CLOSED,
    NOT_FINITE,
    OF_THE_WHOLE,
    PREDICTED_Q,
    RATE,
    RATE_SUM,
    SOLUTION,
    STAGE_Q,
    STAGE_V,
    START,
    START_Q,
    START_V,
    Arrays,
    Control,
    Factors,
    Moment,
)
from bulletbridge.formulations.correction import (
    FAILED,
    chord_passes,
    dependent_gap,
    finite,
    fixed_passes,
    newton_passes,
)
from bulletbridge.formulations.projector import (
    accelerate,
    accelerate_at,
    factorise,
    filter_velocity,
    push,
    refresh,
    take_springs,
)
from bulletbridge.mechanism.kinematics import chart_rate, displace
from bulletbridge.mechanism.layout import Axis, Beam, Body, Lump, Pose, Station
from bulletbridge.numerics.jit import helper, inlined, kernel
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.split import unwhiten, whiten_velocity

STEP, ACCELERATE, PROJECT = 0, 1, 2
"""Tasks: advance by steps; acceleration into vectors[ACCELERATION]; correct and filter in place."""


@kernel
def run(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    lumps: Records[Lump],
    poses: Records[Pose],
    axes: Records[Axis],
    loops: Records[Loop],
    couplings: Records[Coupling],
    terms: Records[Term],
    user_jacobian: Array,
    rows: Array,
    L: Array,
    Y: Array,
    R: Array,
    vectors: Array,
    state: Array,
    control: Records[Control],
    targets: Array,
    tau: Array,
    record: Array,
    task: int,
    steps: int,
) -> int:
    """Do a task at the state (q, v, t), in place; return the failure that stopped it, or DONE.

    rows (3, nc): two sets for the factors, one for the user's rows. L (2, nv, nv), Y (2, nc, nv),
    R (2, nc, nc): two sets of factors, contiguous, so that their loops vectorise. state
    (nq + nv + 1). targets (times, targets) and tau (times, nv): at the start of each step, with
    Runge-Kutta at its middle too, and at the end of the last; one line for all times if they are
    constant. record (steps // every, nq + nv + 4) receives states, rank, margin, passes; empty for
    none.
    """
    nv, nq = len(axes), len(state) - len(axes) - 1
    c = control[0]
    a = Arrays(
        bodies,
        beams,
        stations,
        lumps,
        poses,
        axes,
        loops,
        couplings,
        terms,
        user_jacobian,
        rows[2],
        vectors,
        c,
    )
    f, stage = Factors(L[0], Y[0], R[0], rows[0]), Factors(L[1], Y[1], R[1], rows[1])
    q, v = state[:nq], state[nq : nq + nv]
    t0 = state[nq + nv]
    c.failure, c.done = DONE, 0
    take_springs(c, c.dt if task == STEP and c.integrator == EULER and c.implicit else 0.0)
    if task == ACCELERATE:
        accelerate_at(a, f, Moment(t0, targets[0]), q, v, tau[0], vectors[ACCELERATION, :nv])
        c.fresh = 1
        return c.failure
    if task == PROJECT:
        project(a, f, Moment(t0, targets[0]), q, v)
        return c.failure
    each = 1 if c.integrator == EULER else 2  # times of targets a step
    every = steps // len(record) if len(record) > 0 else 0
    for n in range(steps):
        k = each * n
        start = Moment(t0 + n * c.dt, targets[min(k, len(targets) - 1)])
        middle = Moment(start.t + 0.5 * c.dt, targets[min(k + 1, len(targets) - 1)])
        end = Moment(t0 + (n + 1) * c.dt, targets[min(k + each, len(targets) - 1)])
        if c.fresh != OF_THE_WHOLE:
            refresh(a, f, start, q, v)
        for j in range(nq):
            vectors[START_Q, j] = q[j]
        for j in range(nv):
            vectors[START_V, j] = v[j]
        if c.integrator == EULER:
            semi_implicit_euler(a, f, q, v, tau[min(k, len(tau) - 1)])
        else:
            runge_kutta_4(a, f, stage, start, middle, end, q, v, tau, k)
        finish(a, f, end, q, v)
        if c.failure != DONE:
            for j in range(nq):
                q[j] = vectors[START_Q, j]
            for j in range(nv):
                v[j] = vectors[START_V, j]
            c.fresh = 0
            return c.failure
        state[nq + nv] = end.t
        c.done = n + 1
        if every > 0 and (n + 1) % every == 0:
            put_record(record[(n + 1) // every - 1], state, c)
    return c.failure


@inlined
def put_record(line: Array, state: Array, c: Control) -> None:
    """Keep a state and how it was reached."""
    for j in range(len(state)):
        line[j] = state[j]
    line[len(state)] = c.rank
    line[len(state) + 1] = c.margin
    line[len(state) + 2] = c.correction_passes


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


@inlined
def runge_kutta_4(
    a: Arrays,
    f: Factors,
    stage: Factors,
    start: Moment,
    middle: Moment,
    end: Moment,
    q: Array,
    v: Array,
    tau: Array,
    first: int,
) -> None:
    """Classical fourth-order method in the chart of the exponential maps at q.

    Forces of its start, middle and end are in tau from line ``first`` on, or in its last line.

    Source: Munthe-Kaas 1998, order 4 with the closed-form inverse differential of exp.
    """
    nq, nv, dt = len(q), len(v), a.control.dt
    q0, v0 = a.vectors[START_Q, :nq], a.vectors[START_V, :nv]
    qs, vs = a.vectors[STAGE_Q, :nq], a.vectors[STAGE_V, :nv]
    u, rate = a.vectors[CHART, :nv], a.vectors[RATE, :nv]
    rates, vdots = a.vectors[RATE_SUM, :nv], a.vectors[ACCELERATION_SUM, :nv]
    vdot = a.vectors[ACCELERATION, :nv]
    rank, filter_rank = a.control.rank, a.control.filter_rank
    last = len(tau) - 1
    accelerate(a, f, start, q0, v0, tau[min(first, last)], vdot)
    for k in range(nv):
        rate[k] = v0[k]
        rates[k] = v0[k]
        vdots[k] = vdot[k]
    for s in range(1, 4):
        reach = dt if s == 3 else 0.5 * dt
        for k in range(nv):
            u[k] = reach * rate[k]
            vs[k] = v0[k] + reach * vdot[k]
        displace(a.bodies, q0, u, 1.0, qs)
        force = tau[min(first + (2 if s == 3 else 1), last)]
        accelerate_at(a, stage, end if s == 3 else middle, qs, vs, force, vdot)
        chart_rate(a.bodies, u, vs, rate)
        weight = 1.0 if s == 3 else 2.0
        for k in range(nv):
            rates[k] += weight * rate[k]
            vdots[k] += weight * vdot[k]
    displace(a.bodies, q0, rates, dt / 6.0, q)
    for k in range(nv):
        v[k] = v0[k] + dt / 6.0 * vdots[k]
    a.control.rank, a.control.filter_rank = rank, filter_rank  # those of the start again


@inlined
def finish(a: Arrays, f: Factors, end: Moment, q: Array, v: Array) -> None:
    """Correct the configuration, make the factors there, filter the velocity; report failures."""
    c = a.control
    if not finite(v) or not finite(q):
        c.failure = NOT_FINITE
        return
    c.guarded = 0
    correction = a.vectors[CORRECTION, : len(v)]
    for k in range(len(v)):
        correction[k] = 0.0
    if c.passes >= 0:
        c.correction_passes = fixed_passes(a, f, end, q, v)
    else:
        correct_to_round_off(a, f, end, q, v)
    if c.failure != DONE:
        return
    factorise(a, f, end)
    if c.integrator == EULER:
        for k in range(len(v)):
            v[k] += correction[k] / c.dt
    filter_velocity(a, f, v)
    c.fresh = 1
    if dependent_gap(f, c.filter_rank) > c.mismatch and c.passes < 0:
        c.failure = CONTRADICTED
    if not finite(v) or not finite(q):
        c.failure = NOT_FINITE


@inlined
def correct_to_round_off(a: Arrays, f: Factors, end: Moment, q: Array, v: Array) -> None:
    """Chord passes while they do well, full Newton when the guard trips or when asked for."""
    c, nv = a.control, len(v)
    y = a.vectors[SOLUTION, :nv]
    for k in range(nv):
        y[k] = v[k]
    whiten_velocity(f.L, y)
    travel = 0.0
    for k in range(nv):
        travel += y[k] * y[k]
    limit = 0.1 * c.dt * math.sqrt(travel) + c.guard_floor
    for j in range(len(q)):
        a.vectors[PREDICTED_Q, j] = q[j]
    passes = FAILED
    if c.directions == START:
        passes = chord_passes(a, f, end, q, v, limit)
        if passes == FAILED:
            c.guarded = 1
            for j in range(len(q)):
                q[j] = a.vectors[PREDICTED_Q, j]
            for k in range(len(v)):
                a.vectors[CORRECTION, k] = 0.0
    if passes == FAILED:
        passes = newton_passes(a, f, end, q, v, limit)
    c.correction_passes = passes
    if passes == FAILED:
        c.failure = NOT_CLOSED


@helper
def project(a: Arrays, f: Factors, moment: Moment, q: Array, v: Array) -> None:
    """Newton onto the loops from wherever q is, then the velocity filter."""
    c = a.control
    c.correction_passes = newton_passes(a, f, moment, q, v, math.inf)
    if c.correction_passes == FAILED:
        c.failure = NOT_CLOSED
        c.fresh = 0
        return
    filter_velocity(a, f, v)
    c.fresh = 1
