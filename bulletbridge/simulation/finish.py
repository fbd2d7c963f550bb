"""What ends a step: correct the configuration, make the factors there, filter the velocity."""

import math

from bulletbridge.formulations.arrays import (
    CONTRADICTED,
    CORRECTION,
    DONE,
    EULER,
    NOT_CLOSED,
    NOT_FINITE,
    PREDICTED_Q,
    SOLUTION,
    START,
    VERLET,
    Arrays,
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
from bulletbridge.formulations.projector import accelerate, factorise, filter_velocity
from bulletbridge.numerics.jit import helper, outlined
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.split import whiten_velocity
from bulletbridge.simulation.verlet import second_half


@helper
def finish(a: Arrays, f: Factors, end: Moment, q: Array, v: Array) -> None:
    """Correct the configuration, make the factors there, filter the velocity; report failures."""
    finish_after(a, f, end, q, v, v)


@helper
def finish_after(a: Arrays, f: Factors, end: Moment, q: Array, v: Array, moved: Array) -> None:
    """The same where q was displaced by ``moved`` (nv,) and not by the velocity alone."""
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
        correct_to_round_off(a, f, end, q, v, moved)
    if c.failure != DONE:
        return
    factorise(a, f, end)
    if c.integrator == EULER or c.integrator == VERLET:
        for k in range(len(v)):
            v[k] += correction[k] / c.dt
    if c.integrator == VERLET:
        second_half(accelerate, filter_velocity, a, f, end, q, v)
    filter_velocity(a, f, v)
    c.fresh = 1
    if dependent_gap(f, c.filter_rank) > c.mismatch and c.passes < 0:
        c.failure = CONTRADICTED
    if not finite(v) or not finite(q):
        c.failure = NOT_FINITE


@helper
def correct_to_round_off(
    a: Arrays, f: Factors, end: Moment, q: Array, v: Array, moved: Array
) -> None:
    """Chord passes while they do well, full Newton when the guard trips or when asked for."""
    c, nv = a.control, len(v)
    y = a.vectors[SOLUTION, :nv]
    for k in range(nv):
        y[k] = moved[k]
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


@outlined
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
