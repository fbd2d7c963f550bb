"""Semi-implicit Euler; explicit Runge-Kutta methods in the chart of the exponential maps.

The tables of order 8 are those of scipy's DOP853. Stages are not corrected: the acceleration is
defined off the constraints too, and a stage costs one factorisation.

Source: Munthe-Kaas 1998 (order kept by the closed-form inverse differential of exp); Hairer,
Nørsett and Wanner, Solving Ordinary Differential Equations I, II.4 and II.5.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bulletbridge.compilation.jit import helper
from bulletbridge.engine.dop853_tables import A8, C8, FIFTH, STAGES8, THIRD
from bulletbridge.engine.records import (
    ACCELERATION,
    CHART,
    DONE,
    DOP8,
    STAGE_Q,
    STAGE_RATES,
    STAGE_V,
    STAGE_VDOTS,
    START_Q,
    START_V,
    Arrays,
)
from bulletbridge.engine.stages import (
    SubStep,
    distance,
    forces_of,
    instant_of,
    prescribe,
    tolerated,
)
from bulletbridge.mechanism.kinematics import chart_rate, displace
from bulletbridge.numerics.records import Array

A4 = np.array(
    [[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1, 0], [1 / 6, 1 / 3, 1 / 3, 1 / 6]]
)
C4 = np.array([0.0, 0.5, 0.5, 1.0])


@helper
def semi_implicit_euler(
    admissible_acceleration: Callable[..., None], a: Arrays, f: Any, q: Array, v: Array, tau: Array
) -> None:
    """Velocity level, as Bullet does: v <- v + dt P M⁻¹ (tau - h), then q by the new v.

    With ``control.implicit`` joint springs, and dampers beside them, push as at the step's end,
    -D v₁ - K (q + dt v₁ - rest): M + dt D + dt² K is the metric of the whole step. Its correction
    then is an impulse under which springs give way; its filter may gain kinetic energy, but no more
    than the implicit Euler method has taken from the springs, ½ |dt v₁|² in the metric of K.

    The curvature of the constraints is not evaluated. What the correction moves q by is an impulse
    too: ``stabilise_step`` adds it, over dt, to the velocity before the filter. So q moves along
    the chord between two closed configurations, which makes equal angles with the constraints at
    both ends, and no energy is lost or gained to first order (SHAKE; Hairer, Lubich, Wanner,
    VII.1.4). Near singular positions nothing grows without bound.
    """
    dt, vdot = a.control.dt, a.vectors[ACCELERATION, : len(v)]
    admissible_acceleration(a, f, q, v, tau, vdot)
    for k in range(len(v)):
        v[k] += dt * vdot[k]
    displace(a.bodies, q, v, dt, q)


@helper
def explicit_stages(
    accelerate_at: Callable[..., None],
    a: Arrays,
    s: Any,
    part: SubStep,
    q: Array,
    v: Array,
) -> tuple[float, float]:
    """All stages but the first from START_Q, START_V, then q and v.

    Accelerations are those of ``dense.accelerate_at``, by factors of the kind of the pair's, into
    those of a stage.

    Returns:
        Error over what is tolerated, 0 without control, and the smallest margin of the stages.
    """
    A, C = (A8, C8) if a.control.integrator == DOP8 else (A4, C4)
    return stages_of(A, C, accelerate_at, a, s, part, q, v)


@helper
def stages_of(
    A: Array,
    C: Array,
    accelerate_at: Callable[..., None],
    a: Arrays,
    s: Any,
    part: SubStep,
    q: Array,
    v: Array,
) -> tuple[float, float]:
    """``explicit_stages`` by a table: weights A (stages + 1, stages), times C (stages,)."""
    nq, nv, c = len(q), len(v), a.control
    dt, count, weakest = c.dt, len(C), 1.0
    q0 = a.vectors[START_Q, :nq]
    qs, vs = a.vectors[STAGE_Q, :nq], a.vectors[STAGE_V, :nv]
    u, vdot = a.vectors[CHART, :nv], a.vectors[ACCELERATION, :nv]
    for n in range(1, count):
        combine(a, A[n], n, dt, u, vs)
        displace(a.bodies, q0, u, 1.0, qs)
        time, line = part.t + C[n] * dt, int(2.0 * C[n])
        prescribe(a, time)
        instant = instant_of(part, time, line)
        accelerate_at(a, s.stage, instant, qs, vs, forces_of(part, line), vdot)
        if c.failure != DONE:
            return math.inf, weakest
        weakest = min(weakest, distance(c))
        chart_rate(a.bodies, u, vs, a.vectors[STAGE_RATES + n, :nv])
        for k in range(nv):
            a.vectors[STAGE_VDOTS + n, k] = vdot[k]
    combine(a, A[count], count, dt, u, v)
    displace(a.bodies, q0, u, 1.0, q)
    return error8(a, nv, part.pace) if c.controlled else 0.0, weakest


@helper
def combine(a: Arrays, weights: Array, count: int, dt: float, u: Array, v: Array) -> None:
    """Chart coordinates u and velocities v after dt of the weighted mean of the first stages."""
    for k in range(len(v)):
        u[k] = 0.0
        v[k] = 0.0
    for s in range(count):
        w = weights[s]
        if w != 0.0:
            for k in range(len(v)):
                u[k] += w * a.vectors[STAGE_RATES + s, k]
                v[k] += w * a.vectors[STAGE_VDOTS + s, k]
    for k in range(len(v)):
        u[k] *= dt
        v[k] = a.vectors[START_V, k] + dt * v[k]


@helper
def error8(a: Arrays, nv: int, w: float) -> float:
    """Estimated error of a step of order 8 over what is tolerated; at most 1 will do.

    w [1/s] is from ``pace``. Source: Hairer, Nørsett and Wanner, II.10: a fifth-order estimate,
    damped by a third-order one.
    """
    c = a.control
    fifth, third = 0.0, 0.0
    for level in range(2):
        row = STAGE_VDOTS if level else STAGE_RATES
        for k in range(nv):
            e5, e3 = 0.0, 0.0
            for s in range(STAGES8):
                x = a.vectors[row + s, k]
                e5 += FIFTH[s] * x
                e3 += THIRD[s] * x
            allowed = tolerated(a, k, level, w)
            fifth += (e5 / allowed) ** 2
            third += (e3 / allowed) ** 2
    bottom = fifth + 0.01 * third
    return c.dt * fifth / math.sqrt(bottom * 2 * nv) if bottom > 0.0 else 0.0
