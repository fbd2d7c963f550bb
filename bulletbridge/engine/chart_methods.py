"""Integrators on charts of the constraint manifold: Nyström's of order 4, the trapezoidal rule.

Both work on the second-order equation of a chart's coordinates, ü = T v̇ + Ṫ v with the projector's
accelerations. Every stage is on the manifold, so nothing is corrected at the end but round-off.
Source: Haug and Pavesic 2023; Hairer, Nørsett and Wanner, Solving Ordinary Differential
Equations I, II.14.
"""

import math
from collections.abc import Callable

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.chart import (
    INVERSE,
    NORMALS,
    TANGENTS,
    begin_chart,
    close,
    is_over,
    keep_rows,
    lift,
    renew_inverse,
)
from bulletbridge.engine.correction import EPS, name_widest
from bulletbridge.engine.dense import accelerate, factor_at, factorise
from bulletbridge.engine.explicit import explicit_stages
from bulletbridge.engine.radau import differentiate
from bulletbridge.engine.radau_system import A_Q, A_V, REAL, TURNS, WAYS
from bulletbridge.engine.records import (
    ACCELERATION,
    CHART,
    CHART_ORIGIN,
    CHART_TURNS,
    CHARTS,
    CHARTS_TRAPEZOIDAL,
    DONE,
    NOT_CLOSED,
    RIGHT_SIDE,
    SOLUTION,
    STAGE_Q,
    STAGE_RATES,
    STAGE_V,
    STAGE_VDOTS,
    START_Q,
    START_V,
    Arrays,
    FactorPair,
    Instant,
)
from bulletbridge.engine.stages import (
    AT_END,
    AT_MIDDLE,
    AT_START,
    SubStep,
    distance,
    forces_of,
    instant_of,
    prescribe,
    unit_of,
)
from bulletbridge.mechanism.kinematics import (
    chart_acceleration,
    chart_coordinates,
    chart_rate,
    chart_velocity,
)
from bulletbridge.numerics.lu import back_real, lu_real
from bulletbridge.numerics.records import Array

AT, RATES, BY = STAGE_RATES + 1, STAGE_RATES + 2, STAGE_RATES + 3
"""Rows of the vectors: coordinates and their rates at the start, and rates at a stage."""
SECOND = STAGE_VDOTS + 1
"""Row of the second rate at the start; those of stages follow."""
SOLVED, LOST = 1e-13, 1e-9
"""Change of a rate, over the pace, that ends the iteration of an implicit step, and that it may end
at when it gains no more."""
SLOW, STALE = 0.05, 0.25
"""Share of the change before from which on derivatives of the accelerations are taken: where there
are none, and where there are some of an earlier step."""
MOST_ITERATIONS = 30
GIVEN_UP = -1


@helper
def chart_stages(
    accelerate_at: Callable[..., None],
    a: Arrays,
    s: FactorPair,
    part: SubStep,
    q: Array,
    v: Array,
) -> tuple[float, float]:
    """All of a step on a chart, which is begun where there is none that will do; q and v after it.

    What no chart carries is NOT_CLOSED. Arguments and result are those of ``explicit_stages``,
    whose methods do as well.
    """
    c, nv = a.control, len(v)
    if c.integrator != CHARTS and c.integrator != CHARTS_TRAPEZOIDAL:
        return explicit_stages(accelerate_at, a, s, part, q, v)
    q0, v0, at = a.vectors[START_Q, : len(q)], a.vectors[START_V, :nv], a.vectors[AT, :nv]
    rank, weakest, again, new = c.rank, 0.0, True, False
    if c.charted != 0:
        chart_coordinates(a.bodies, a.vectors[CHART_ORIGIN, : len(q)], q0, at)
    while again:
        if new or is_over(a, s, at):
            begin_chart(a, s, q0)
            new = True
            for k in range(nv):
                at[k] = 0.0
        chart_rate(a.bodies, at, v0, a.vectors[RATES, :nv])
        vdot = a.vectors[STAGE_VDOTS, :nv]
        chart_acceleration(a.bodies, at, a.vectors[RATES, :nv], v0, vdot, a.vectors[SECOND, :nv])
        if c.integrator == CHARTS:
            weakest = nystrom(a, s, part, q, v)
        else:
            weakest = trapezoidal(a, s, part, q, v)
        again = weakest < 0.0 and c.failure == DONE and not new
        if again:
            new, c.rank = True, rank
    if weakest < 0.0 and c.failure == DONE:
        c.failure = NOT_CLOSED
        name_widest(a, s.stage.rows, 0)
    return (math.inf if c.failure != DONE else 0.0), weakest


@outlined
def nystrom(a: Arrays, s: FactorPair, part: SubStep, q: Array, v: Array) -> float:
    """Nyström's step of order 4, both middle stages at one configuration.

    Returns:
        The smallest margin of the stages, GIVEN_UP if the chart does not carry them.
    """
    nv, dt, x = len(v), a.control.dt, a.vectors
    u, qs, vs = x[CHART, :nv], x[STAGE_Q, : len(q)], x[STAGE_V, :nv]
    for k in range(nv):
        u[k] = x[AT, k] + 0.5 * dt * (x[RATES, k] + 0.25 * dt * x[SECOND, k])
        x[BY, k] = x[RATES, k] + 0.5 * dt * x[SECOND, k]
    middle, force = instant_of(part, part.t + 0.5 * dt, AT_MIDDLE), forces_of(part, AT_MIDDLE)
    margin = stage(a, s, middle, qs, vs, force, SECOND + 1)
    if margin < 0.0:
        return GIVEN_UP
    for k in range(nv):
        x[BY, k] = x[RATES, k] + 0.5 * dt * x[SECOND + 1, k]
    if not lift(a, s, u, x[BY, :nv], vs):
        return GIVEN_UP
    second_rate(a, s, middle, qs, vs, force, SECOND + 2)
    for k in range(nv):
        u[k] = x[AT, k] + dt * (x[RATES, k] + 0.5 * dt * x[SECOND + 2, k])
        x[BY, k] = x[RATES, k] + dt * x[SECOND + 2, k]
    end = instant_of(part, part.t + dt, AT_END)
    weakest = stage(a, s, end, qs, vs, forces_of(part, AT_END), SECOND + 3)
    if weakest < 0.0:
        return GIVEN_UP
    for k in range(nv):
        k1, k2, k3, k4 = x[SECOND, k], x[SECOND + 1, k], x[SECOND + 2, k], x[SECOND + 3, k]
        u[k] = x[AT, k] + dt * (x[RATES, k] + dt / 6.0 * (k1 + k2 + k3))
        x[BY, k] = x[RATES, k] + dt / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
    if close(a, s, end, u, q) and lift(a, s, u, x[BY, :nv], v):
        return min(margin, weakest)
    return GIVEN_UP


@outlined
def stage(
    a: Arrays, s: FactorPair, instant: Instant, q: Array, v: Array, tau: Array, out: int
) -> float:
    """Second rate into row ``out`` of the vectors, at coordinates in CHART and rates in BY.

    q, v are the state there. Returns the margin, or GIVEN_UP if the chart does not reach it.
    """
    c, nv = a.control, len(v)
    u = a.vectors[CHART, :nv]
    prescribe(a, instant.t)
    if not (close(a, s, instant, u, q) and lift(a, s, u, a.vectors[BY, :nv], v)):
        return GIVEN_UP
    factorise(a, s.stage, instant)
    if c.rank < c.chart_rank:
        return GIVEN_UP
    second_rate(a, s, instant, q, v, tau, out)
    return distance(c) if c.failure == DONE else GIVEN_UP


@outlined
def second_rate(
    a: Arrays, s: FactorPair, instant: Instant, q: Array, v: Array, tau: Array, out: int
) -> None:
    """The same with the factors that are there."""
    nv, x = len(v), a.vectors
    accelerate(a, s.stage, instant, q, v, tau, x[ACCELERATION, :nv])
    chart_acceleration(a.bodies, x[CHART, :nv], x[BY, :nv], v, x[ACCELERATION, :nv], x[out, :nv])


@outlined
def trapezoidal(a: Arrays, s: FactorPair, part: SubStep, q: Array, v: Array) -> float:
    """A step of the implicit trapezoidal rule; the result is as of ``nystrom``.

    A fixed point is iterated; where that is slow, with derivatives of the accelerations along the
    manifold, which are kept from step to step.
    """
    c, nv = a.control, len(v)
    known, new = c.slope != 0, False
    while True:
        if known:
            newton_matrix(a, s.L, nv)
        weakest = iterate(a, s, part, known, new, q, v)
        if weakest >= 0.0 or new or c.failure != DONE:
            c.slope = 1 if known and weakest >= 0.0 else 0
            return weakest
        start = instant_of(part, part.t, AT_START)
        prescribe(a, part.t)
        manifold_ways(a, s, start, len(q), nv)
        differentiate(a, s.stage, s.L, start, part.pace, part.tau[0], len(q), nv)
        known = new = True


@helper
def iterate(
    a: Arrays, s: FactorPair, part: SubStep, known: bool, new: bool, q: Array, v: Array
) -> float:
    """Second rates at the end of a step, then q and v; GIVEN_UP where others may do better.

    ``known``: by Newton's method with derivatives that are known, or ``new``.
    """
    nv, dt, x, last, weakest = len(v), a.control.dt, a.vectors, math.inf, 1.0
    guess, found = SECOND + 1, SECOND + 2
    end, force = instant_of(part, part.t + dt, AT_END), forces_of(part, AT_END)
    for k in range(nv):
        x[guess, k] = x[SECOND, k]
    for _ in range(MOST_ITERATIONS):
        for k in range(nv):
            mean = 0.5 * (x[SECOND, k] + x[guess, k])
            x[CHART, k] = x[AT, k] + dt * (x[RATES, k] + 0.5 * dt * mean)
            x[BY, k] = x[RATES, k] + dt * mean
        margin = stage(a, s, end, q, v, force, found)
        if margin < 0.0:
            return GIVEN_UP
        weakest = min(weakest, margin)
        for k in range(nv):
            x[found, k] -= x[guess, k]
        if known:
            back_real(s.L[REAL], x[STAGE_RATES + TURNS, :nv], x[found, :nv])
        size = 0.0
        for k in range(nv):
            x[guess, k] += x[found, k]
            size = max(size, 0.5 * dt * abs(x[found, k]) / unit_of(a, k))
        if size <= SOLVED * part.pace + EPS / dt:
            return weakest
        if not size < (STALE if known else SLOW) * last:
            if size <= LOST * part.pace + 1e3 * EPS / dt:
                return weakest
            if not (new and size < last):
                return GIVEN_UP
        last = size
    return GIVEN_UP


@outlined
def newton_matrix(a: Arrays, L: Array, nv: int) -> None:
    """LU factors of 1 - h/2 A_v - h²/4 A_q."""
    half = 0.5 * a.control.dt
    for i in range(nv):
        for j in range(nv):
            L[REAL, i, j] = -half * (L[A_V, i, j] + half * L[A_Q, i, j])
        L[REAL, i, i] += 1.0
    lu_real(L[REAL], a.vectors[STAGE_RATES + TURNS, :nv])


@outlined
def manifold_ways(a: Arrays, s: FactorPair, start: Instant, nq: int, nv: int) -> None:
    """What moving each velocity becomes on the manifold at the start: rows 1 - T⁻¹ U B J."""
    L, m, x, u = s.L, a.control.chart_rank, a.vectors, a.vectors[AT, :nv]
    factor_at(a, s.stage, start, x[START_Q, :nq], x[START_V, :nv])
    keep_rows(a, s, start)
    renew_inverse(a, s, u)
    e, normal, back = x[RIGHT_SIDE, :m], x[SOLUTION, :nv], x[STAGE_V, :nv]
    for j in range(nv):
        for i in range(m):
            e[i] = L[TANGENTS, i, j]
        back_real(L[INVERSE], x[CHART_TURNS, :m], e)
        for k in range(nv):
            normal[k] = 0.0
        for i in range(m):
            for k in range(nv):
                normal[k] += e[i] * L[NORMALS, i, k]
        chart_velocity(a.bodies, u, normal, back)
        for k in range(nv):
            L[WAYS, j, k] = (1.0 if j == k else 0.0) - back[k]
