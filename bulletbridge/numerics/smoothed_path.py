"""Mixed complementarity problems along a path of smooth ones, where Newton's method cycles.

Where many rows are dependent, as of flat sides on a plane or of bodies that are jammed, active sets
that change throw a semismooth Newton method back and forth. Here max(0, y) of the natural map is
(y + sqrt(y² + 4 e²))/2, and the radius of a cone is compared with an impulse in the same way: each
problem is smooth, and for a large e it is easily solved from anywhere. Its solution begins the next
one with a smaller e, by Newton's method with a line search; where that does not come to the end,
e was made smaller too fast, and the path is taken up again from where it was known.

Sources: Chen and Harker 1993, Kanzow 1996 (the function), Chen and Mangasarian 1996 (smooth
problems in a row); Hayashi, Yamashita and Fukushima 2005 (of cones).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.complementarity_rows import (
    FACTORED,
    OTHER,
    OTHER_W,
    OWN,
    OWN_W,
    RADIUS,
    ComplementarityProblem,
    cone_scale,
    residual_at,
    scaled,
    velocities,
)
from bulletbridge.numerics.interior_path import Course, approach
from bulletbridge.numerics.map_steps import (
    REGULARISATION,
    factorise_map,
    put_derivatives,
    put_newton_step,
    put_nothing,
)

FIRST, LAST = 1.0, 1e-15
"""Smoothness at which the path begins, in impulses by which the row that is asked for most would
stop alone, and below which there is nothing left to be smooth."""
INSIDE = Course(0.0, 1e-5, 0.99, 25, False)
"""How a path inside of all bounds leads near before."""
SHRINKS, FASTEST, SLOWEST = 0.3, 0.1, 0.98
"""Share to which it is made smaller from one problem to the next: at first, the least, and that
from which on the path is given up."""
STEPS_OF_A_PROBLEM, FEW, MOST_STEPS = 10, 3, 200
"""Newton steps of one problem: the most, those after which the next may be further away, and the
most of all problems."""
MOST_BACK = 8
"""How often in a row the path is taken up again closer."""
ON_THE_PATH = 0.3
"""Length of the map, in units of smoothness, at which a problem counts as solved."""
HALVINGS, TOO_SHORT = 5, 0.05
"""Of a step, until the map is shorter; share of a step that leads nowhere."""
SHARP, SHARPEST = 1e-4, 1e-8
"""Smoothness at which the path is left for a first time, and from which on again and again: from
there Newton's method mostly solves the problem itself in two steps."""


class Smoothness(NamedTuple):
    """How smooth a problem is."""

    energy: float  # root of the largest b²/D, in units of which impulses times sqrt(D) are smooth
    share: float  # the same of it for all rows
    with_slopes: bool  # whether derivatives are written, too


@helper
def positive_part(y: float, e: float) -> tuple[float, float]:
    """Smooth max(0, y) and its derivative."""
    root = math.sqrt(y * y + 4.0 * e * e)
    return 0.5 * (y + root), 0.5 * (1.0 + y / root)


@helper
def put_bounded_row(p: ComplementarityProblem, i: int, s: Smoothness) -> None:
    """Smooth natural map of a bounded row into line, and its derivatives."""
    d, bound = p.D[i, i], p.bounds[i]
    if not d > 0.0:
        put_nothing(p, i)
        return
    size = math.sqrt(d)
    e = s.share * s.energy / size
    wanted = p.x[i] - p.w[i] / d
    value, slope = wanted, 1.0
    if bound.lower > -math.inf:
        more, change = positive_part(bound.lower - wanted, e)
        value, slope = value + more, slope - change
    if bound.upper < math.inf:
        less, change = positive_part(wanted - bound.upper, e)
        value, slope = value - less, slope - change
    p.line[i] = size * (p.x[i] - value)
    if s.with_slopes:
        stays = size * (1.0 - slope + REGULARISATION)
        put_derivatives(p, i, size * slope / d, 0.0, stays, 0.0, 0.0)


@outlined
def put_smooth_cone(p: ComplementarityProblem, i: int, s: Smoothness) -> None:
    """The same for the rows of the cone that begins at row i.

    z = x/mu - mu w/d goes to z r/max(r, |z|), with both the largest and the length smooth.
    """
    bound = p.bounds[i]
    owner, count, d = bound.owner, bound.count, cone_scale(p, i)
    alone = p.D[owner, owner]
    if not d > 0.0 or not alone > 0.0:
        for k in range(count):
            put_nothing(p, i + k)
        return
    size = math.sqrt(alone)
    e = s.share * s.energy / size
    first, second, length = scaled(p, i, d, p.x, p.w)
    length = math.sqrt(length * length + e * e)
    radius = max(0.0, p.x[owner])
    root = math.sqrt((radius - length) ** 2 + 4.0 * e * e)
    most = 0.5 * (radius + length + root)
    by_length = 0.5 * (1.0 - (radius - length) / root)
    by_radius = 0.5 * (1.0 + (radius - length) / root)
    for k in range(count):
        r, mu, z = i + k, p.bounds[i + k].mu, first if k == 0 else second
        if not mu > 0.0:
            put_nothing(p, r)
            continue
        p.line[r] = size * (p.x[r] / mu - z * radius / most)
        if not s.with_slopes:
            continue
        turn = size * z * radius / (most * most) * by_length / length
        own = turn * z - size * radius / most  # by the scaled impulse along the row, and across
        other, across = 0.0, p.bounds[i + 1 - k].mu if count == 2 else 0.0
        if across > 0.0:
            other = turn * (second if k == 0 else first)
        p.slopes[OWN_W, r], p.slopes[OTHER_W, r] = -own * mu / d, -other * across / d
        p.slopes[OWN, r] = (own + size) / mu + math.sqrt(p.D[r, r]) * REGULARISATION
        p.slopes[OTHER, r] = other / across if across > 0.0 else 0.0
        p.slopes[RADIUS, r] = 0.0
        if p.x[owner] > 0.0:
            p.slopes[RADIUS, r] = size * z / most * (radius / most * by_radius - 1.0)


@outlined
def smooth_map(p: ComplementarityProblem, n: int, s: Smoothness) -> float:
    """The smooth natural map at x into line, its length in units of energy; its derivatives."""
    velocities(p, p.x, p.w, n)
    i, total = 0, 0.0
    while i < n:
        if p.bounds[i].owner < 0:
            put_bounded_row(p, i, s)
            i += 1
        else:
            put_smooth_cone(p, i, s)
            i += p.bounds[i].count
    for i in range(n):
        total += p.line[i] * p.line[i]
    return math.sqrt(total) / s.energy


@outlined
def predict(p: ComplementarityProblem, n: int, s: Smoothness) -> None:
    """Go from the solution of a problem to where the next one's is, to first order.

    That is a step of Newton's method by the derivatives of the former.
    """
    smooth_map(p, n, s)
    put_newton_step(p, n, True)
    for i in range(n):
        p.x[i] += p.step[i]


@outlined
def solve_smooth(p: ComplementarityProblem, n: int, s: Smoothness) -> tuple[bool, int]:
    """Newton's method with a line search for one smooth problem, from x; whether it is solved.

    Returns:
        That, and the steps taken.
    """
    length = smooth_map(p, n, s)
    for count in range(STEPS_OF_A_PROBLEM):
        put_newton_step(p, n, False)
        before, taken = length, 1.0
        for i in range(n):
            p.x[i] += p.step[i]
        for _ in range(HALVINGS):
            length = smooth_map(p, n, s)
            if length <= (1.0 - 0.1 * taken) * before or length <= ON_THE_PATH * s.share:
                break
            taken *= 0.5
            for i in range(n):
                p.x[i] -= taken * p.step[i]
        if length <= ON_THE_PATH * s.share:
            return True, count + 1
        if not length < math.inf or taken < TOO_SHORT:
            return False, count + 1
    return False, STEPS_OF_A_PROBLEM


@helper
def keep_least(p: ComplementarityProblem, n: int, residual: float, least: float) -> float:
    """Keep x in spare where its residual is the least so far, which is returned."""
    if residual < least:
        for i in range(n):
            p.spare[i] = p.x[i]
    return min(residual, least)


@helper
def energy_of(p: ComplementarityProblem, n: int) -> float:
    """Root of the largest b²/D."""
    energy = 0.0
    for i in range(n):
        if p.D[i, i] > 0.0:
            energy = max(energy, math.fabs(p.b[i]) / math.sqrt(p.D[i, i]))
    return energy


@helper
def begin_at(p: ComplementarityProblem, n: int, near: float) -> None:
    """Begin the path at x, or where that is near nothing, at no impulses."""
    for i in range(n):
        p.x[i] = p.x[i] if near < math.inf else 0.0
        p.known[i] = p.spare[i] = p.x[i]
    velocities(p, p.x, p.w, n)


def path_ending_in(finish: Callable[..., tuple[float, int]]) -> Callable[..., tuple[float, int]]:
    """A path that is left by ``finish`` (p, n, tolerance), which solves from near a solution."""

    @outlined
    def follow_smoothed_path(
        p: ComplementarityProblem, n: int, tolerance: float
    ) -> tuple[float, int]:
        """Solve a complementarity problem that cycles otherwise, by ever sharper smooth ones.

        Begins with x = 0. First a path inside of all bounds leads near (``approach``). Then
        problems with a smoothness ``share`` are solved one after the other, each from the last;
        where one is not solved, the share is cut less. As soon as a share is ``SHARP``, ``finish``
        tries the problem itself.

        Returns:
            Residual of the best x found, which is what p.x holds then, and how many steps of
            Newton's method it took.
        """
        energy, near, steps = energy_of(p, n), math.inf, 0
        if 0.0 < energy < math.inf:
            near, steps = approach(p, n, energy, INSIDE)
        begin_at(p, n, near)
        least, back = residual_at(p, p.x, p.w, n), 0
        known, share, shrinks, sharp = 0.0, min(near, FIRST), SHRINKS, SHARP
        while energy > 0.0 and least > tolerance and share > LAST and steps < MOST_STEPS:
            if known > 0.0 and back == 0:
                predict(p, n, Smoothness(energy, share, False))
                steps += 1
            solved, count = solve_smooth(p, n, Smoothness(energy, share, True))
            steps += count
            least = keep_least(p, n, residual_at(p, p.x, p.w, n), least)
            if solved:
                known, back = share, 0
                for i in range(n):
                    p.known[i] = p.x[i]
                if count <= FEW:
                    shrinks = max(shrinks * math.sqrt(shrinks), FASTEST)
                share *= shrinks
                if known <= sharp:
                    sharp = SHARPEST if sharp > SHARPEST else 0.1 * known
                    residual, count = finish(p, n, tolerance)
                    steps += count
                    least = keep_least(p, n, residual, least)
                    for i in range(n):
                        p.x[i] = p.known[i]
                    smooth_map(p, n, Smoothness(energy, known, True))
                    factorise_map(p, n)
                continue
            back += 1
            shrinks = math.sqrt(shrinks)
            if known == 0.0 and near < math.inf:
                near, share, shrinks, back = math.inf, FIRST, SHRINKS, 0
                begin_at(p, n, near)
                continue
            if known == 0.0 or back == MOST_BACK or shrinks > SLOWEST:
                break
            share = known * shrinks
            for i in range(n):
                p.x[i] = p.known[i]
        for i in range(n):
            p.x[i] = p.spare[i]
        p.parts.state[FACTORED] = 0
        velocities(p, p.x, p.w, n)
        return least, steps

    return follow_smoothed_path
