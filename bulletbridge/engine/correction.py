"""Back onto the loops: configuration correction with a guard for singular positions.

A pass moves q by the shortest step, in the metric of M, that cancels the residuals to first
order: q <- q - J⁺ g. Directions are those of the start of the step (a chord method, no new factors)
or of the current iterate (Newton). Source: Kövecses and Piedbœuf 2003, eq. 35 and 36.

Directions of the start are those along which an impulse keeps energy: what they move is part of the
velocity (RATTLE). So they serve as long as they lead there at all. But factors made before a
singular position must not be used after it: where a chord pass brings a gap to more than
``GAINED``, or moves further than ``CHORD`` of the step itself, all are undone and Newton takes
over, none of whose passes moves further than ``NEWTON`` of it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.constraints.left_out import (
    Slack,
    fastest_coupling,
    fastest_left_out,
    fastest_slip,
    leaves_out_rates,
    widest_left_out,
)
from bulletbridge.engine.backend import KktBackend
from bulletbridge.engine.records import (
    CONTRADICTED,
    DONE,
    LEFT_OPEN,
    NOT_CLOSED,
    START,
    Arrays,
    Instant,
)
from bulletbridge.mechanism.kinematics import between_origins
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Records, Vector
from bulletbridge.numerics.spatial import dot, vec

MOST_CHORD_PASSES, MOST_NEWTON_PASSES = 24, 48
"""Passes of the correction; Newton's, without progress."""
GAINED = 0.4
"""Part of a gap to which a chord pass must bring it. Where links turn by a fifth of a radian in a
step, as the end of a whip does, each pass leaves that."""
CHORD, NEWTON = 0.3, 0.1
"""Share of the step's own way that a pass of each may go. What closes loops whose links turn by an
angle is half of that angle of their way."""
PROGRESS = 0.9
"""Part of a gap to which it must shrink within that many of Newton's passes. Where a chain is all
but stretched each takes half of the way if its bends have one shape, and less the more shapes they
have, since all but one row vanish there and passes descend along it: a gap of 15 links is halved
within 23 passes, of 30 within 55, of 80 within 173, which is 0.83 of it within 48."""
REPEATED = 0.03
"""Part of a gap to which a pass must bring it for the next one to have the same factors."""
LEAST_GAP = 2.0**-60
"""Gap [lengths, rad] that shrinks no more."""
FAILED = -1
EPS = 2.0**-52
PROMISED = 50.0
"""Times a closed gap, 1e-12 in all: what rows may be open by that are not corrected. For a weak one
it is the square of the length, over the longest, below which a row is weak
(``Tolerances.singular``), since on the way to where it vanishes a row is open by half of that times
its curvature. One that follows from others is open by what they are, a closed gap, times numbers
near one; where the numbers are large, the others are closed further."""
FARTHEST = 1e-11
"""Gap [lengths, rad] that never counts as closed, however far turns and slides have gone; ten times
that is what a correction that gains no more may leave."""


SLIPS, MOST_ROUNDED = 1e-9, 1e-6
"""Share of what moves a constraint that its rows may move by where drives contradict each other;
and the most of it beside that, where some that follow from others are rounded."""


@helper
def finite(x: Array) -> bool:
    """Whether no entry is NaN or infinite."""
    total = 0.0
    for k in range(len(x)):
        total += 0.0 * x[k]
    return total == 0.0


@helper
def kept_gap(a: Arrays, rows: Records[Row], rank: int) -> float:
    """Largest residual of the kept rows, each divided by its unit."""
    gap = 0.0
    for i in range(rank):
        row = rows[rows[i].pivot]
        size = abs(row.unit * row.g)
        if size > gap or math.isnan(size):  # a NaN stays
            gap = size
    a.control.gap = gap
    return gap


@helper
def gap_between(rows: Records[Row], first: int, end: int) -> float:
    """Largest residual, each divided by its unit, of the rows at places first to end."""
    gap = 0.0
    for i in range(first, end):
        row = rows[rows[i].pivot]
        gap = max(gap, abs(row.unit * row.g))
    return gap


@helper
def is_loose(a: Arrays, rows: Records[Row], enough: float) -> bool:
    """Whether rows that follow from others are open by more than was found at closed poses."""
    c = a.control
    return gap_between(rows, c.filter_rank, len(rows)) > c.mismatch + PROMISED * enough


@helper
def judge_progress(gap: float, reached: float, left: int) -> tuple[float, int]:
    """The gap [lengths, rad] from which progress counts, and how many passes may still go without.

    Args:
        gap: That of this pass.
        reached: As returned for the pass before; infinite at first.
        left: Likewise; what is left of ``MOST_NEWTON_PASSES``.
    """
    if LEAST_GAP < gap < PROGRESS * reached:
        return gap, MOST_NEWTON_PASSES
    return reached, left


@helper
def square_of(a: Vector) -> float:
    """Length of a vector, squared."""
    return dot(a, a)


@helper
def tolerance(a: Arrays, q: Array) -> float:
    """Gap that counts as closed: what double precision leaves of poses along a chain.

    Each of its joints adds a rounding to the rotations that all links after it are turned by
    (``Control.round_off``); places are rounded by their distance from the origin of their tree, and
    where two trees meet, by those of their origins from the world's; and joint positions are
    rounded themselves, turns by their angle, times the way they move.
    """
    c, square = a.control, a.control.length * a.control.length
    for i in range(len(a.loops)):
        body_a, body_b = a.loops[i].body_a, a.loops[i].body_b
        first, second = a.poses[body_a], a.poses[body_b]
        square = max(square, square_of(vec(first.p)), square_of(vec(second.p)))
        if square_of(between_origins(a.poses, body_a, body_b)) > 0.0:
            square = max(square, square_of(vec(first.origin)), square_of(vec(second.origin)))
    extent = math.sqrt(square)
    largest = 0.0
    for k in range(len(a.axes)):
        if a.axes[k].q >= 0:
            largest = max(largest, abs(q[a.axes[k].q]))
    closed = max(c.gap_tolerance, c.round_off + 8.0 * EPS * extent / c.length)
    return min(closed + EPS * largest * c.lever, FARTHEST)


@outlined
def name_widest(a: Arrays, rows: Records[Row], first: int) -> None:
    """Keep which of the rows at places from ``first`` on is furthest open, and how far."""
    c = a.control
    c.worst, c.gap, c.slipping = rows[first].pivot, 0.0, 0
    for i in range(first, len(rows)):
        row = rows[rows[i].pivot]
        if abs(row.unit * row.g) > c.gap:
            c.worst, c.gap = rows[i].pivot, abs(row.unit * row.g)


@outlined
def name_open(a: Arrays, rows: Records[Row], loose: bool) -> None:
    """Keep which row is furthest open after the last pass, and how far.

    Where ``loose``, what is open may be of a row that has been left out for following from others.
    """
    c = a.control
    name_widest(a, rows, 0)
    c.failure = LEFT_OPEN if loose and c.filter_rank == c.cap < len(rows) else NOT_CLOSED


@outlined
def name_left_out(a: Arrays, instant: Instant) -> None:
    """Keep which loop is furthest open in a direction left out, and how far."""
    c = a.control
    loop, gap = widest_left_out(a.loops, a.poses, instant.targets)
    c.failure, c.worst, c.gap, c.slipping = LEFT_OPEN, -1 - loop, gap, 0


@outlined
def judge_rates(a: Arrays, instant: Instant, v: Array, rates_alone: bool) -> None:
    """Refuse velocities along directions left out of loops."""
    c = a.control
    loop, rate = fastest_left_out(
        a.loops, a.poses, a.axes, instant.targets, c.length, v, rates_alone
    )
    if loop >= 0:
        c.failure, c.worst, c.gap, c.slipping = LEFT_OPEN, -1 - loop, rate, 1


@outlined
def judge_slip(a: Arrays, rows: Records[Row], instant: Instant, v: Array, positions: bool) -> None:
    """Refuse velocities along rows, where drives contradict each other.

    What is not driven contradicts nothing by resting. Gaps tell of rows that hold positions, but
    late where steps are short: ``positions`` has these looked at where all that count are solved
    for. They may move as far in a step as places are rounded; where rows leave no freedom, only
    gaps at closed poses tell how far frames are.
    """
    c = a.control
    alone = SLIPS + min(c.most_left, MOST_ROUNDED)
    held = SLIPS + min(c.most_left if c.most_left < math.inf else c.mismatch, MOST_ROUNDED)
    least = (c.mismatch + c.round_off) / c.dt
    slack = Slack(alone, held, least, positions and c.rank == c.cap)
    worst, rate = fastest_slip(a.loops, a.poses, a.axes, instant.targets, rows, c.length, v, slack)
    if slack.positions:
        coupling, its = fastest_coupling(a.couplings, a.terms, a.axes, rows, v, slack)
        if coupling >= 0 and its > rate:
            worst, rate = coupling, its
    if worst >= 0:
        c.failure = CONTRADICTED if c.filter_rank < c.cap else LEFT_OPEN
        c.worst, c.gap, c.slipping = worst, rate, 1


@helper
def judge_left_out(
    is_unexplained: Callable[..., bool],
    a: Arrays,
    f: Any,
    instant: Instant,
    v: Array,
    enough: float,
    led_here: bool,
) -> None:
    """Refuse an end at which what is left out as redundant is open, or moves.

    Takes the residuals and the factors there. ``control.worst`` and ``.gap`` say what is open and
    how far. Where v has ``led_here``, directions that hold positions have been moved by it, and
    their rates need no look of their own. ``is_unexplained`` is the backend's.
    """
    c, rows = a.control, f.rows
    if c.left > PROMISED * enough:
        name_left_out(a, instant)
    elif gap_between(rows, c.rank, len(rows)) > c.mismatch + PROMISED * enough:
        name_widest(a, rows, c.rank)
        c.failure = CONTRADICTED if c.filter_rank < c.cap else LEFT_OPEN
    elif c.filter_rank == c.cap and c.cap < len(rows) and is_unexplained(a, f):
        c.failure, c.worst, c.gap, c.slipping = LEFT_OPEN, rows[c.cap].pivot, 0.0, 0
    elif not led_here or leaves_out_rates(a.loops):
        judge_rates(a, instant, v, led_here)
    if c.failure == DONE and c.driven == 1:
        judge_slip(a, rows, instant, v, led_here)


class Correction(NamedTuple):
    """Ways to correct with factors of one kind.

    Args of all: a, f, instant, q, v. Each returns the number of passes, or FAILED.

    Attributes:
        chord_passes: (.., limit, enough) with the factors at hand, until round-off.
        newton_passes: (.., limit, enough) with new factors in every pass.
        fixed_passes: (..) as many as were asked for, no more and no less, without a guard.
    """

    chord_passes: Callable[..., int]
    newton_passes: Callable[..., int]
    fixed_passes: Callable[..., int]


def correcting(backend: KktBackend) -> Correction:
    """The helpers that correct a configuration with factors of one kind.

    numba resolves the functions that they close over when it compiles them.
    """
    update_positions, factor_at = backend.update_positions, backend.factor_at
    update_positions_apart = backend.update_positions_apart
    correction_step, bounded_correction = backend.correction_step, backend.bounded_correction
    move_back, repeats = backend.move_back, backend.repeats

    @helper
    def chord_passes(
        a: Arrays, f: Any, instant: Instant, q: Array, v: Array, limit: float, enough: float
    ) -> int:
        """Correct q with the factors at hand until round-off; number of passes, or FAILED."""
        last = math.inf
        for n in range(MOST_CHORD_PASSES + 1):
            update_positions(a, f, instant, q, v)
            gap = kept_gap(a, f.rows, a.control.rank)
            if gap <= enough:
                return n
            if n == MOST_CHORD_PASSES or not gap < GAINED * last:
                return n if gap <= 10.0 * enough else FAILED
            last = gap
            if correction_step(a, f, a.control.rank) > limit:
                return FAILED
            move_back(a, f, q)
        return FAILED

    @helper
    def repeated_passes(
        a: Arrays,
        f: Any,
        instant: Instant,
        q: Array,
        v: Array,
        last: float,
        limit: float,
        enough: float,
    ) -> int:
        """Correct q further with the factors of a Newton pass, begun at the gap ``last``.

        Each pass gains as much as that one, where factors change little; number of passes.
        """
        rank = a.control.rank
        for n in range(MOST_CHORD_PASSES):
            update_positions(a, f, instant, q, v)
            gap = kept_gap(a, f.rows, rank)
            if gap <= enough or not gap < REPEATED * last:
                return n
            if not correction_step(a, f, rank) <= limit:
                return n
            move_back(a, f, q)
            last = gap
        return MOST_CHORD_PASSES

    @outlined
    def newton_passes(
        a: Arrays, f: Any, instant: Instant, q: Array, v: Array, limit: float, enough: float
    ) -> int:
        """Correct q with new factors in every pass; what goes too far is shortened.

        Weak rows bend more than they pull, and close with the others; those that do not, within
        what follows from others by round-off, are corrected too. What one of them is open by may
        show in any of the rows that it nearly follows from, and pass from one to the next: so weak
        rows are corrected where the gap stalls. Where rows follow from others by large numbers,
        these are closed as far as they will.
        """
        c, rows, last = a.control, f.rows, math.inf
        reached, n, left = math.inf, 0, MOST_NEWTON_PASSES
        while True:
            factor_at(a, f, instant, q, v)
            if c.failure != DONE:
                return FAILED
            rank = c.rank
            gap, weak = kept_gap(a, rows, rank), gap_between(rows, rank, c.filter_rank)
            if n == 0:
                c.opened = max(gap, gap_between(rows, rank, len(rows)))
            bent = weak > PROMISED * enough
            loose = is_loose(a, rows, enough)
            if gap <= enough and not bent and not (loose and max(gap, weak) < 0.5 * last):
                return n
            stalled, last = not max(gap, weak) < 0.5 * last, max(gap, weak)
            reached, left = judge_progress(last, reached, left)
            if left == 0 or not gap < math.inf:
                if gap <= 10.0 * enough and not bent:
                    return n
                name_open(a, rows, loose or stalled)
                return FAILED
            if bent or loose or stalled:
                rank = c.filter_rank
            bounded_correction(a, f, rank, limit)
            move_back(a, f, q)
            n, left = n + 1, left - 1
            if repeats and not (bent or loose or stalled):
                n += repeated_passes(a, f, instant, q, v, last, limit, enough)

    @outlined
    def fixed_passes(a: Arrays, f: Any, instant: Instant, q: Array, v: Array) -> int:
        """The number of passes asked for, no more and no less, without a guard.

        Leaves the factors at the corrected configuration.
        """
        for _ in range(a.control.passes):
            if a.control.directions == START:
                update_positions_apart(a, f, instant, q, v)
            else:
                factor_at(a, f, instant, q, v)
            correction_step(a, f, a.control.rank)
            move_back(a, f, q)
        factor_at(a, f, instant, q, v)
        kept_gap(a, f.rows, a.control.rank)
        return a.control.passes

    return Correction(chord_passes, newton_passes, fixed_passes)
