"""Radau IIA of order 5: collocation at three points, L-stable, for stiff forces.

Newton's iteration keeps the derivatives of the accelerations, taken by differences, over many
sub-steps: they set how fast it converges, not where to, so that whatever pushes is covered.
Source: Hairer and Wanner, Solving Ordinary Differential Equations II, IV.8.
"""

import math

from bulletbridge.compilation.jit import helper
from bulletbridge.engine.dense import accelerate, accelerate_at, factor_at
from bulletbridge.engine.radau_system import (
    A_Q,
    A_V,
    EMBEDDED,
    M_IM,
    M_RE,
    M_REAL,
    SIDE,
    STAGES,
    TI,
    TRANSFORMED,
    VALUES,
    WAYS,
    C,
    T,
    factor,
    solve_complex,
    solve_real,
)
from bulletbridge.engine.records import (
    ACCELERATION,
    CHART,
    STAGE_Q,
    STAGE_RATES,
    STAGE_V,
    STAGE_VDOTS,
    START_Q,
    START_V,
    Arrays,
    FactorPair,
    Factors,
    Instant,
)
from bulletbridge.engine.stages import (
    AT_START,
    SubStep,
    distance,
    instant_of,
    prescribe,
    tolerated,
    unit_of,
)
from bulletbridge.mechanism.kinematics import chart_rate, displace
from bulletbridge.numerics.records import Array

MOST_ITERATIONS = 10
KEPT_SLOPE = 5
"""Iterations from which the derivatives are taken anew at the next sub-step."""
FD_STEP = 2.0**-26


@helper
def radau_stages(
    a: Arrays,
    s: FactorPair,
    part: SubStep,
    again: bool,
    q: Array,
    v: Array,
) -> tuple[float, float]:
    """Solve for q and v after ``control.dt`` from START_Q, START_V, whose stage is known.

    s.L (7, nv, nv) has the matrices of the method; again whether the sub-step before was rejected;
    what drives it has one line.

    Returns:
        Error over what is tolerated, infinite if Newton's iteration does not converge, and the
        smallest margin of the stages.
    """
    c, nv, new, stage, L = a.control, len(v), False, s.stage, s.L
    iterations, weakest = 0, 1.0
    while iterations == 0:
        if c.slope == 0:
            prescribe(a, part.t)
            for j in range(nv):
                for k in range(nv):
                    L[WAYS, j, k] = 1.0 if j == k else 0.0
            start = instant_of(part, part.t, AT_START)
            differentiate(a, stage, L, start, part.pace, part.tau[0], len(q), nv)
            c.slope, new = 1, True
        factor(a, L, nv)
        iterations, weakest = iterate(a, s, part, len(q), nv)
        if iterations == 0:
            c.slope = 0
            if new:
                return math.inf, weakest
    c.slope = 1 if iterations < KEPT_SLOPE else 0
    error = estimate(a, s, part, again, len(q), nv) if c.controlled else 0.0
    u, last = a.vectors[CHART, :nv], STAGES + 2
    for k in range(nv):
        u[k] = a.vectors[STAGE_RATES + last, k]
        v[k] = a.vectors[START_V, k] + a.vectors[STAGE_VDOTS + last, k]
    displace(a.bodies, a.vectors[START_Q, : len(q)], u, 1.0, q)
    return error, weakest


@helper
def derivative(
    a: Arrays,
    stage: Factors,
    part: SubStep,
    time: float,
    move: int,
    out: int,
    nq: int,
    nv: int,
) -> float:
    """Rates at the start moved by stage rows ``move``, into stage rows ``out``; the margin.

    As they are at that time [s].
    """
    qs, vs = a.vectors[STAGE_Q, :nq], a.vectors[STAGE_V, :nv]
    u, vdot = a.vectors[CHART, :nv], a.vectors[ACCELERATION, :nv]
    for k in range(nv):
        u[k] = a.vectors[STAGE_RATES + move, k]
        vs[k] = a.vectors[START_V, k] + a.vectors[STAGE_VDOTS + move, k]
    displace(a.bodies, a.vectors[START_Q, :nq], u, 1.0, qs)
    prescribe(a, time)
    accelerate_at(a, stage, instant_of(part, time, AT_START), qs, vs, part.tau[0], vdot)
    chart_rate(a.bodies, u, vs, a.vectors[STAGE_RATES + out, :nv])
    for k in range(nv):
        a.vectors[STAGE_VDOTS + out, k] = vdot[k]
    return distance(a.control)


@helper
def differentiate(
    a: Arrays, stage: Factors, L: Array, instant: Instant, w: float, tau: Array, nq: int, nv: int
) -> None:
    """A_q and A_v at the start by forward differences along the ways that are in L."""
    q0, qs = a.vectors[START_Q, :nq], a.vectors[STAGE_Q, :nq]
    vs, u, vdot = a.vectors[STAGE_V, :nv], a.vectors[CHART, :nv], a.vectors[ACCELERATION, :nv]
    factor_at(a, stage, instant, q0, a.vectors[START_V, :nv])
    for j in range(nv):
        step = FD_STEP * unit_of(a, j) * max(w, 1.0)
        for k in range(nv):
            vs[k] = a.vectors[START_V, k] + step * L[WAYS, j, k]
        accelerate(a, stage, instant, q0, vs, tau, vdot)
        for k in range(nv):
            L[A_V, k, j] = (vdot[k] - a.vectors[STAGE_VDOTS, k]) / step
    for k in range(nv):
        vs[k] = a.vectors[START_V, k]
    for j in range(nv):
        step = FD_STEP * unit_of(a, j)
        for k in range(nv):
            u[k] = step * L[WAYS, j, k]
        displace(a.bodies, q0, u, 1.0, qs)
        accelerate_at(a, stage, instant, qs, vs, tau, vdot)
        for k in range(nv):
            L[A_Q, k, j] = (vdot[k] - a.vectors[STAGE_VDOTS, k]) / step


@helper
def iterate(a: Arrays, s: FactorPair, part: SubStep, nq: int, nv: int) -> tuple[int, float]:
    """Newton's iteration for Z: how many it took, 0 if it fails, and the smallest margin."""
    c = a.control
    enough = max(1e-13 / c.rtol, min(0.03, math.sqrt(c.rtol)))
    for i in range(3):
        for base in (STAGE_RATES, STAGE_VDOTS):
            for k in range(nv):
                a.vectors[base + TRANSFORMED + i, k] = 0.0
                a.vectors[base + STAGES + i, k] = 0.0
    weakest, last, speed = 1.0, 0.0, 0.0
    for n in range(MOST_ITERATIONS):
        for i in range(3):
            time = part.t + C[i] * c.dt
            margin = derivative(a, s.stage, part, time, STAGES + i, VALUES + i, nq, nv)
            weakest = min(weakest, margin)
        change = newton_step(a, s.L, part.pace, nv)
        if not change < math.inf:
            return 0, weakest
        if n > 0:
            speed = change / last if last > 0.0 else 0.0
            left = MOST_ITERATIONS - 1 - n
            if speed >= 1.0 and change < max(enough, 0.03):  # round-off
                return n + 1, weakest
            if speed >= 1.0 or (speed**left / (1.0 - speed) * change > enough and left > 0):
                return 0, weakest
        if change == 0.0 or (n > 0 and speed / (1.0 - speed) * change < enough):
            return n + 1, weakest
        last = change
    return 0, weakest


@helper
def newton_step(a: Arrays, L: Array, w: float, nv: int) -> float:
    """Improve w and Z by one step; its size over what is tolerated."""
    x, dt = a.vectors, a.control.dt
    real, re, im = M_REAL / dt, M_RE / dt, M_IM / dt
    for base in (STAGE_RATES, STAGE_VDOTS):
        for k in range(nv):
            f0, f1, f2 = (
                x[base + VALUES, k],
                x[base + VALUES + 1, k],
                x[base + VALUES + 2, k],
            )
            w0, w1, w2 = (
                x[base + TRANSFORMED, k],
                x[base + TRANSFORMED + 1, k],
                x[base + TRANSFORMED + 2, k],
            )
            x[base + VALUES, k] = TI[0, 0] * f0 + TI[0, 1] * f1 + TI[0, 2] * f2 - real * w0
            x[base + VALUES + 1, k] = (
                TI[1, 0] * f0 + TI[1, 1] * f1 + TI[1, 2] * f2 - re * w1 + im * w2
            )
            x[base + VALUES + 2, k] = (
                TI[2, 0] * f0 + TI[2, 1] * f1 + TI[2, 2] * f2 - re * w2 - im * w1
            )
    solve_real(a, L, STAGE_RATES + VALUES, STAGE_VDOTS + VALUES, nv)
    solve_complex(a, L, nv)
    total = 0.0
    for level in range(2):
        base = STAGE_VDOTS if level else STAGE_RATES
        for k in range(nv):
            allowed = tolerated(a, k, level, w)
            for i in range(3):
                change = x[base + VALUES + i, k]
                x[base + TRANSFORMED + i, k] += change
                total += (change / allowed) ** 2
            for i in range(3):
                x[base + STAGES + i, k] = (
                    T[i, 0] * x[base + TRANSFORMED, k]
                    + T[i, 1] * x[base + TRANSFORMED + 1, k]
                    + T[i, 2] * x[base + TRANSFORMED + 2, k]
                )
    return math.sqrt(total / (6 * max(nv, 1)))


@helper
def estimate(a: Arrays, s: FactorPair, part: SubStep, again: bool, nq: int, nv: int) -> float:
    """Error over what is tolerated; after a rejection smoothed once more, as stiff errors need."""
    x, dt, size = a.vectors, a.control.dt, 0.0
    for trial in range(2):
        base_out = 0
        if trial == 1:
            if not (again and size > 1.0):
                break
            derivative(a, s.stage, part, part.t, SIDE, VALUES, nq, nv)
            base_out = VALUES
        total = 0.0
        for base in (STAGE_RATES, STAGE_VDOTS):
            for k in range(nv):
                ze = 0.0
                for i in range(3):
                    ze += EMBEDDED[i] * x[base + STAGES + i, k]
                x[base + SIDE, k] = x[base + base_out, k] + ze / dt
        solve_real(a, s.L, STAGE_RATES + SIDE, STAGE_VDOTS + SIDE, nv)
        for level in range(2):
            base = STAGE_VDOTS if level else STAGE_RATES
            for k in range(nv):
                total += (x[base + SIDE, k] / tolerated(a, k, level, part.pace)) ** 2
        size = math.sqrt(total / (2 * max(nv, 1)))
    return size
