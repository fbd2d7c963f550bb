"""Explicit Runge-Kutta methods in the chart of the exponential maps, and their error control.

The tables of order 8 are those of scipy's DOP853. Stages are not corrected: the acceleration is
defined off the constraints too, and a stage costs one factorisation.

Source: Munthe-Kaas 1998 (order kept by the closed-form inverse differential of exp); Hairer,
Nørsett and Wanner, Solving Ordinary Differential Equations I, II.4 and II.5.
"""

import math

import numpy as np
from scipy.integrate import DOP853

from bulletbridge.formulations.arrays import (
    ACCELERATION,
    CHART,
    DOP8,
    STAGE_Q,
    STAGE_RATES,
    STAGE_V,
    STAGE_VDOTS,
    START_Q,
    START_V,
    Arrays,
    Factors,
    Moment,
)
from bulletbridge.formulations.projector import accelerate, accelerate_at
from bulletbridge.mechanism.kinematics import chart_rate, displace
from bulletbridge.numerics.jit import helper, inlined
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.stages import distance, prescribe, tolerated

STAGES8 = 12
A8 = np.vstack([DOP853.A, DOP853.B])
"""Weights of earlier stages in each stage, and in the end."""
C8, FIFTH, THIRD = (np.ascontiguousarray(x[:STAGES8]) for x in (DOP853.C, DOP853.E5, DOP853.E3))
A4 = np.array(
    [[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1, 0], [1 / 6, 1 / 3, 1 / 3, 1 / 6]]
)
C4 = np.array([0.0, 0.5, 0.5, 1.0])


@helper
def first_stage(a: Arrays, f: Factors, moment: Moment, q: Array, v: Array, tau: Array) -> None:
    """Rates of the chart and accelerations at the start of a step, whose factors are known."""
    nv = len(v)
    vdot = a.vectors[ACCELERATION, :nv]
    accelerate(a, f, moment, q, v, tau, vdot)
    for k in range(nv):
        a.vectors[STAGE_RATES, k] = v[k]
        a.vectors[STAGE_VDOTS, k] = vdot[k]


@inlined
def later_stages(
    a: Arrays, stage: Factors, t: float, q: Array, v: Array, targets: Array, tau: Array, first: int
) -> float:
    """All stages but the first from START_Q, START_V, then q and v; the smallest margin of them.

    Targets of the start, the middle and the end stand from line ``first`` on, or in the last line;
    forces in the lines of tau, or in the last.
    """
    nq, nv, c = len(q), len(v), a.control
    A, C = (A8, C8) if c.integrator == DOP8 else (A4, C4)
    dt, count, weakest = c.dt, len(C), 1.0
    q0 = a.vectors[START_Q, :nq]
    qs, vs = a.vectors[STAGE_Q, :nq], a.vectors[STAGE_V, :nv]
    u, vdot = a.vectors[CHART, :nv], a.vectors[ACCELERATION, :nv]
    for s in range(1, count):
        combine(a, A[s], s, dt, u, vs)
        displace(a.bodies, q0, u, 1.0, qs)
        time, line = t + C[s] * dt, int(2.0 * C[s])
        prescribe(a, time)
        moment = Moment(time, targets[min(first + line, len(targets) - 1)])
        accelerate_at(a, stage, moment, qs, vs, tau[min(line, len(tau) - 1)], vdot)
        weakest = min(weakest, distance(c))
        chart_rate(a.bodies, u, vs, a.vectors[STAGE_RATES + s, :nv])
        for k in range(nv):
            a.vectors[STAGE_VDOTS + s, k] = vdot[k]
    combine(a, A[count], count, dt, u, v)
    displace(a.bodies, q0, u, 1.0, q)
    return weakest


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


@helper
def take_factors(f: Factors, stage: Factors) -> None:
    """The factors of the last stage, at the end of the step, for its correction."""
    for i in range(f.L.shape[0]):
        for j in range(i + 1):
            f.L[i, j] = stage.L[i, j]
    for i in range(f.Y.shape[0]):
        for j in range(f.Y.shape[1]):
            f.Y[i, j] = stage.Y[i, j]
        for j in range(i + 1):
            f.R[i, j] = stage.R[i, j]
        f.rows[i].pivot = stage.rows[i].pivot
