"""End of a step with dense factors: correct, factorise, filter the velocity, check."""

import math

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.correction import (
    FAILED,
    PROMISED,
    chord_passes,
    finite,
    fixed_passes,
    gap_between,
    judge_left_out,
    kept_gap,
    name_widest,
    newton_passes,
    tolerance,
    travelled,
)
from bulletbridge.engine.dense import accelerate, factorise, filter_velocity
from bulletbridge.engine.records import (
    BY_DENSE,
    CORRECTION,
    DONE,
    EULER,
    NOT_CLOSED,
    NOT_FINITE,
    PREDICTED_Q,
    START,
    VERLET,
    Arrays,
    Factors,
    Instant,
)
from bulletbridge.engine.verlet import second_half
from bulletbridge.numerics.records import Array


@helper
def stabilise_step(a: Arrays, f: Factors, end: Instant, q: Array, v: Array) -> None:
    """Correct the configuration, make the factors there, filter the velocity; report failures."""
    c = a.control
    enough = correct(a, f, end, q, v, v)
    if c.failure != DONE:
        return
    if c.integrator == EULER or c.integrator == VERLET:
        add_correction(a, v)
    if c.integrator == VERLET:
        second_half(accelerate, filter_velocity, a, f, end, q, v)
    end_step(a, f, end, q, v, enough)


@helper
def finish_after(a: Arrays, f: Factors, end: Instant, q: Array, v: Array, moved: Array) -> None:
    """The end of a step of Euler's method that displaced q by ``moved`` (nv,), not by v alone."""
    enough = correct(a, f, end, q, v, moved)
    if a.control.failure != DONE:
        return
    add_correction(a, v)
    end_step(a, f, end, q, v, enough)


@helper
def correct(a: Arrays, f: Factors, end: Instant, q: Array, v: Array, moved: Array) -> float:
    """Correct the configuration and make the factors there; the gap that counts as closed."""
    c = a.control
    if not finite(v) or not finite(q):
        c.failure = NOT_FINITE
        return 0.0
    c.guarded = 0
    correction = a.vectors[CORRECTION, : len(v)]
    for k in range(len(v)):
        correction[k] = 0.0
    enough = tolerance(a, q)
    if c.passes >= 0:
        c.correction_passes = fixed_passes(a, f, end, q, v)
    else:
        correct_to_round_off(a, f, end, q, v, moved, enough)
    return enough


@helper
def add_correction(a: Arrays, v: Array) -> None:
    """What the correction moved, over the step, goes into the velocity."""
    for k in range(len(v)):
        v[k] += a.vectors[CORRECTION, k] / a.control.dt


@helper
def end_step(a: Arrays, f: Factors, end: Instant, q: Array, v: Array, enough: float) -> None:
    """Filter the velocity, and look at what is left out."""
    c = a.control
    filter_velocity(a, f, v)
    c.factored = BY_DENSE
    if c.passes < 0:
        judge_left_out(a, f, end, v, enough, True)
    if not finite(v) or not finite(q):
        c.failure = NOT_FINITE


@helper
def correct_to_round_off(
    a: Arrays, f: Factors, end: Instant, q: Array, v: Array, moved: Array, enough: float
) -> None:
    """Chord passes while they do well, full Newton when the guard trips or when asked for.

    Leaves the factors at the corrected configuration.
    """
    c = a.control
    limit = 0.1 * c.dt * travelled(a, f, moved) + c.guard_floor
    for j in range(len(q)):
        a.vectors[PREDICTED_Q, j] = q[j]
    passes = FAILED
    if c.directions == START:
        passes = chord_passes(a, f, end, q, v, limit, enough)
        if passes != FAILED:
            factorise(a, f, end)
            if not settled(a, f, enough):  # rows count here that did not at the start
                passes = FAILED
        if passes == FAILED:
            c.guarded = 1
            for j in range(len(q)):
                q[j] = a.vectors[PREDICTED_Q, j]
            for k in range(len(v)):
                a.vectors[CORRECTION, k] = 0.0
    if passes == FAILED:
        passes = newton_passes(a, f, end, q, v, limit, enough)
    c.correction_passes = passes
    if passes == FAILED:
        c.failure = NOT_CLOSED
        name_widest(a, f, 0)


@helper
def settled(a: Arrays, f: Factors, enough: float) -> bool:
    """Whether all rows are closed with the factors at hand, those that need no correction too."""
    c = a.control
    if kept_gap(a, f, c.rank) > 10.0 * enough:
        return False
    weak, rows = PROMISED * enough, f.Y.shape[0]
    return (
        gap_between(f, c.rank, c.filter_rank) <= weak
        and gap_between(f, c.filter_rank, rows) <= c.mismatch + weak
    )


@outlined
def project(a: Arrays, f: Factors, instant: Instant, q: Array, v: Array) -> None:
    """Newton onto the loops from wherever q is, then the velocity filter."""
    c = a.control
    c.factored = 0
    enough = tolerance(a, q)
    c.correction_passes = newton_passes(a, f, instant, q, v, math.inf, enough)
    if c.correction_passes == FAILED:
        c.failure = NOT_CLOSED
        return
    filter_velocity(a, f, v)
    c.factored = BY_DENSE
    judge_left_out(a, f, instant, v, enough, False)
