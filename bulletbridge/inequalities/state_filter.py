"""A state from elsewhere onto the constraints, by as little as possible, and what that took.

The configuration moves by the shortest steps in the metric of M that close the constraints, the
velocity by the shortest change that they allow; sticking points neither move nor change their
velocity as far as the constraints let them. One factorisation serves all passes as long as each
gains a digit, a second one, where they end, the velocity.

The first one is that at the start of the step that has led to the state, where it is known. What
moves the configuration is then the impulse that the constraints had to exert there so as to be
closed at the end, and belongs to the velocity: with it a step without forces and contacts can be
walked backwards. Of the energy that a projection at the end alone takes in every step, as the
square of the angle that velocities turn by, nothing is left but what goes to and fro.
Source: Andersen 1983, RATTLE.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.backend import KktBackend
from bulletbridge.engine.correction import (
    MOST_NEWTON_PASSES,
    NEWTON,
    PROMISED,
    finite,
    gap_between,
    is_loose,
    judge_left_out,
    judge_progress,
    kept_gap,
    name_open,
    tolerance,
)
from bulletbridge.engine.dense import bounded_correction, composite_inertias_apart, move_back
from bulletbridge.engine.dense_backend import DENSE_APART
from bulletbridge.engine.records import (
    CORRECTION,
    DONE,
    NOT_FACTORED,
    NOT_FINITE,
    RIGHT_SIDE,
    SOLUTION,
    STAGE_V,
    START_V,
    Arrays,
    Factors,
    Instant,
)
from bulletbridge.inequalities.momentum import give_back, total_momentum
from bulletbridge.inequalities.sticking import (
    POSITION,
    VELOCITY,
    StickingPoints,
    add_multipliers,
    add_sticking_part,
    factor_sticking,
    forget_others,
    measure_shift,
    place,
)
from bulletbridge.numerics.projection import (
    add_row,
    inner,
    row_space_solution,
    unwhiten,
    whiten_velocity,
)
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.spatial import ZERO, clear_nothing

FARTHEST_WAY = 10.0
"""Times the way of a step, and what opened in it, that closing loops may go from there. Directions
of the start that all but vanish there lead a radian and more away, past the nearest closed pose."""
NO_SUCH_BODY = 16
"""Failure: a sticking point names a body that there is not, or has no direction."""


class PointBackend(NamedTuple):
    """The functions that take sticking points h beside factors of one kind.

    Attributes:
        place: (a, h) fixes the points to their bodies; the number of their rows, or -1.
        factor: (a, f, h, count) what of them the constraints leave; how many rows are kept.
        forget_others: (h, kept) lists these alone; their number.
        correct: (a, f, h, kept, count, q, rank, limit) one pass; adds to the impulses of h.
        filter_velocity: (a, f, h, kept, v) likewise.
    """

    place: Callable[..., int]
    factor: Callable[..., int]
    forget_others: Callable[..., int]
    correct: Callable[..., None]
    filter_velocity: Callable[..., None]


def filtering(backend: KktBackend, sticking: PointBackend) -> Callable[..., None]:
    """The helper that filters a state with factors of one kind.

    numba resolves the functions that it closes over when it compiles it.
    """
    factored, factorise = backend.factored, backend.factorise
    update_positions, travelled = backend.update_positions, backend.travelled
    is_unexplained = backend.is_unexplained
    place, factor_sticking, forget_others, correct, filter_velocity = sticking

    @outlined
    def filter_state(
        a: Arrays,
        f: Any,
        h: Any,
        instant: Instant,
        q: Array,
        v: Array,
        share: float,
        free: int,
    ) -> None:
        """Correct q, then filter v, and add what that takes to the impulses of h.

        What the correction moves q by, times ``share`` [1/s], goes into v before it is filtered.
        Where it does, v has led to q. If ``control.factored`` has the factors where it began, they
        are what corrects, and no more goes into v than v is, or was there (START_V): Bullet brakes
        what hangs on a base that is moved. Else no pass goes further than a share of that way, as
        in ``finish_after``. ``free`` says whether nothing outside holds the bodies: then they keep
        their momentum, unless points stick.
        """
        c = a.control
        correction = a.vectors[CORRECTION, : len(v)]
        for k in range(len(v)):
            correction[k] = 0.0
        last, stale = math.inf, c.factored == factored
        from_start = stale
        c.failure, c.guarded, c.factored, passes = DONE, 0, NOT_FACTORED, 0
        reached, left, opened = math.inf, MOST_NEWTON_PASSES, -1.0
        update_positions(a, f, instant, q, v)
        enough = tolerance(a, q)
        count = place(a, h)
        if count < 0:
            c.failure = NO_SUCH_BODY
            return
        if not from_start:
            factorise(a, f, instant)
        elif free > 0:
            composite_inertias_apart(a)
        kept = factor_sticking(a, f, h, count)
        if c.failure != DONE:
            return
        before = total_momentum(a, v) if free > 0 else (ZERO, ZERO)
        limit = math.inf
        if share > 0.0 and not from_start:
            limit = NEWTON / share * travelled(a, f, v) + c.guard_floor
        while True:
            gap, bent = kept_gap(a, f.rows, c.rank), is_bent(a, f, enough)
            slow, opened = not gap < 0.1 * last, opened if opened >= 0.0 else gap
            if not gap < math.inf:
                c.failure = NOT_FINITE
                return
            closed = (gap <= enough or (slow and gap <= 10.0 * enough)) and not bent
            if stale and (closed or slow or bent):
                factorise(a, f, instant)
                count = forget_others(h, kept)
                kept = factor_sticking(a, f, h, count)
                if c.failure != DONE:
                    return
                stale = False
                if not closed:
                    c.guarded = 1
                gap, bent = kept_gap(a, f.rows, c.rank), is_bent(a, f, enough)
                closed = (gap <= enough or (slow and gap <= 10.0 * enough)) and not bent
            if closed:
                break
            reached, left = judge_progress(max(gap, weak_gap(a, f)), reached, left)
            if left == 0:
                name_open(a, f.rows, slow or is_loose(a, f.rows, enough))
                return
            last = gap
            rank = c.filter_rank if bent or slow else c.rank  # see ``correction.newton_passes``
            correct(a, f, h, kept, count, q, rank, limit)
            passes, left, stale = passes + 1, left - 1, True
            update_positions(a, f, instant, q, v)
        c.correction_passes = passes
        if from_start:
            most = max(travelled(a, f, v), travelled(a, f, a.vectors[START_V, : len(v)]))
            way = travelled(a, f, correction)
            if way > FARTHEST_WAY * (most / share + c.guard_floor * (1.0 + 1e6 * opened)):
                name_open(a, f.rows, False)
                return
            share = min(share, ratio(most, way))
        if share > 0.0:
            for k in range(len(v)):
                v[k] += share * correction[k]
        h.share[0] = share
        filter_velocity(a, f, h, kept, v)
        if free > 0 and count == 0:
            give_back(a, before, v)
        c.factored = factored
        judge_left_out(is_unexplained, a, f, instant, v, enough, share > 0.0)
        clear_nothing(q)
        clear_nothing(v)
        if not finite(q) or not finite(v):
            c.failure = NOT_FINITE

    return filter_state


@helper
def ratio(x: float, y: float) -> float:
    """One size over another; infinite where that is nothing."""
    return x / y if y > 0.0 else math.inf


@helper
def weak_gap(a: Arrays, f: Any) -> float:
    """Largest residual of the weak rows, each divided by its unit."""
    return gap_between(f.rows, a.control.rank, a.control.filter_rank)


@helper
def is_bent(a: Arrays, f: Any, enough: float) -> bool:
    """Whether weak rows are open by more than they bend; see ``correction.newton_passes``."""
    return weak_gap(a, f) > PROMISED * enough


@outlined
def correct(
    a: Arrays,
    f: Factors,
    h: StickingPoints,
    kept: int,
    count: int,
    q: Array,
    strong: int,
    limit: float,
) -> None:
    """One pass with the factors at hand and ``strong`` rows, shortened where it goes too far."""
    rank, y = a.control.filter_rank, a.vectors[RIGHT_SIDE]
    bounded_correction(a, f, strong, limit)
    for i in range(strong, rank):
        y[i] = 0.0
    if kept > 0:
        measure_shift(a, h, count)
        add_sticking_part(h, kept, rank, 1.0, y, a.vectors[SOLUTION])
    move_back(a, f, q)
    add_multipliers(f, h, kept, rank, -1.0, y, POSITION)


@helper
def filter_velocity(a: Arrays, f: Factors, h: StickingPoints, kept: int, v: Array) -> None:
    """Take the nearest velocity in the metric of M that constraints and sticking points allow.

    Source: Kövecses and Piedbœuf 2003, eq. 33: v <- P v - J⁺ g_t.
    """
    c, y = a.control, a.vectors[STAGE_V]
    rank = c.filter_rank
    whiten_velocity(f.L, v, f.first)
    for i in range(rank):
        y[i] = -inner(f.Y, i, v)
        add_row(v, y[i], f.Y, i)
    if c.driven:
        row_targets, z = a.vectors[RIGHT_SIDE], a.vectors[SOLUTION]
        for i in range(rank):
            row = f.rows[f.rows[i].pivot]
            row_targets[i] = -row.scale * row.g_t
        row_space_solution(f.Y, f.R, rank, row_targets, z)
        for i in range(rank):
            y[i] += row_targets[i]
        for k in range(len(v)):
            v[k] += z[k]
    add_sticking_part(h, kept, rank, 0.0, y, v)
    unwhiten(f.L, v, f.first)
    add_multipliers(f, h, kept, rank, 1.0, y, VELOCITY)


filter_state = filtering(
    DENSE_APART, PointBackend(place, factor_sticking, forget_others, correct, filter_velocity)
)
