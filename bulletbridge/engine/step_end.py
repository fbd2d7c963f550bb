"""End of a step with factors of any kind: correct, factorise, filter the velocity, check."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.backend import KktBackend
from bulletbridge.engine.correction import (
    CHORD,
    FAILED,
    NEWTON,
    PROMISED,
    correcting,
    finite,
    gap_between,
    is_loose,
    judge_left_out,
    kept_gap,
    tolerance,
)
from bulletbridge.engine.records import (
    CORRECTION,
    DONE,
    EULER,
    NOT_FACTORED,
    NOT_FINITE,
    PREDICTED_Q,
    START,
    VERLET,
    Arrays,
    Instant,
)
from bulletbridge.engine.verlet import second_half
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.spatial import clear_nothing


class StepEnd(NamedTuple):
    """Ways to end a step with factors of one kind; each reports in ``control.failure``.

    Attributes:
        stabilise_step: (a, f, end, q, v) corrects the configuration, makes the factors there,
            filters the velocity.
        finish_after: (a, f, end, q, v, moved) is the end of a step of Euler's method that displaced
            q by ``moved`` (nv,), not by v alone.
        project: (a, f, instant, q, v) goes onto the loops from wherever q is, by Newton's method,
            then filters the velocity.
    """

    stabilise_step: Callable[..., None]
    finish_after: Callable[..., None]
    project: Callable[..., None]


def ending(backend: KktBackend) -> StepEnd:
    """The helpers that end a step with factors of one kind.

    numba resolves the functions that they close over when it compiles them.
    """
    factored, factorise, accelerate = backend.factored, backend.factorise, backend.accelerate
    filter_velocity, travelled = backend.filter_velocity, backend.travelled
    is_unexplained = backend.is_unexplained
    chord_passes, newton_passes, fixed_passes = correcting(backend)

    @helper
    def stabilise_step(a: Arrays, f: Any, end: Instant, q: Array, v: Array) -> None:
        """Correct the configuration, make the factors there, filter the velocity."""
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
    def finish_after(a: Arrays, f: Any, end: Instant, q: Array, v: Array, moved: Array) -> None:
        """The end of a step of Euler's method that displaced q by ``moved`` (nv,)."""
        enough = correct(a, f, end, q, v, moved)
        if a.control.failure != DONE:
            return
        add_correction(a, v)
        end_step(a, f, end, q, v, enough)

    @helper
    def correct(a: Arrays, f: Any, end: Instant, q: Array, v: Array, moved: Array) -> float:
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
    def correct_to_round_off(
        a: Arrays, f: Any, end: Instant, q: Array, v: Array, moved: Array, enough: float
    ) -> None:
        """Chord passes while they do well, full Newton when the guard trips or when asked for.

        Leaves the factors at the corrected configuration.
        """
        c = a.control
        way = c.dt * travelled(a, f, moved)
        for j in range(len(q)):
            a.vectors[PREDICTED_Q, j] = q[j]
        passes = FAILED
        if c.directions == START:
            passes = chord_passes(a, f, end, q, v, CHORD * way + c.guard_floor, enough)
            if passes != FAILED:
                factorise(a, f, end)
                if c.failure != DONE:
                    return
                if not settled(a, f, enough):  # rows count here that did not at the start
                    passes = FAILED
            if passes == FAILED:
                c.guarded = 1
                for j in range(len(q)):
                    q[j] = a.vectors[PREDICTED_Q, j]
                for k in range(len(v)):
                    a.vectors[CORRECTION, k] = 0.0
        if passes == FAILED:
            passes = newton_passes(a, f, end, q, v, NEWTON * way + c.guard_floor, enough)
        c.correction_passes = passes

    @helper
    def end_step(a: Arrays, f: Any, end: Instant, q: Array, v: Array, enough: float) -> None:
        """Filter the velocity, and look at what is left out."""
        c = a.control
        filter_velocity(a, f, v)
        c.factored = factored
        if c.passes < 0:
            judge_left_out(is_unexplained, a, f, end, v, enough, True)
        clear_nothing(q)
        clear_nothing(v)
        if not finite(v) or not finite(q):
            c.failure = NOT_FINITE

    @outlined
    def project(a: Arrays, f: Any, instant: Instant, q: Array, v: Array) -> None:
        """Newton onto the loops from wherever q is, then the velocity filter."""
        c = a.control
        c.factored = NOT_FACTORED
        enough = tolerance(a, q)
        c.correction_passes = newton_passes(a, f, instant, q, v, math.inf, enough)
        if c.correction_passes == FAILED:
            return
        filter_velocity(a, f, v)
        c.factored = factored
        judge_left_out(is_unexplained, a, f, instant, v, enough, False)

    return StepEnd(stabilise_step, finish_after, project)


@helper
def add_correction(a: Arrays, v: Array) -> None:
    """What the correction moved, over the step, goes into the velocity."""
    for k in range(len(v)):
        v[k] += a.vectors[CORRECTION, k] / a.control.dt


@helper
def settled(a: Arrays, f: Any, enough: float) -> bool:
    """Whether all rows are closed with the factors at hand, those that need no correction too."""
    c, rows = a.control, f.rows
    if kept_gap(a, rows, c.rank) > 10.0 * enough:
        return False
    weak = gap_between(rows, c.rank, c.filter_rank)
    return weak <= PROMISED * enough and not is_loose(a, rows, enough)
