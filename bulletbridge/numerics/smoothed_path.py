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
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.complementarity_rows import (
    DERIVATIVES,
    ComplementarityProblem,
    cone_scale,
    residual_at,
    scaled,
    velocities,
)
from bulletbridge.numerics.lu import back_real, lu_real
from bulletbridge.numerics.records import Array

FIRST, LAST = 1.0, 1e-15
"""Smoothness at which the path begins, in impulses by which the row that is asked for most would
stop alone, and below which there is nothing left to be smooth."""
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
REGULARISATION = 1e-12
"""Of the Newton matrix, relative to the diagonal of D: dependent rows share what they do."""
DEPENDENT = 1e-13
"""Share of a diagonal of D that must be left for its row to be independent of others."""
OWN_W, OTHER_W, OWN, OTHER, RADIUS = range(DERIVATIVES)
"""Derivatives of a row of the map: by its velocity and that of the other row of its cone, by their
impulses, and by that of the cone's owner."""


class Smoothness(NamedTuple):
    """How smooth a problem is.

    Attributes:
        energy: Root of the largest b²/D, in units of which impulses times sqrt(D) are smooth.
        share: The same of it for all rows.
    """

    energy: float
    share: float


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
    put_derivatives(p, i, size * slope / d, 0.0, size * (1.0 - slope + REGULARISATION), 0.0, 0.0)


@helper
def put_derivatives(
    p: ComplementarityProblem,
    i: int,
    by_own_w: float,
    by_other_w: float,
    by_own: float,
    by_other: float,
    by_radius: float,
) -> None:
    """Of the map of row i: by velocities and impulses of it and of its cone's other row."""
    p.slopes[OWN_W, i], p.slopes[OTHER_W, i] = by_own_w, by_other_w
    p.slopes[OWN, i], p.slopes[OTHER, i], p.slopes[RADIUS, i] = by_own, by_other, by_radius


@helper
def put_nothing(p: ComplementarityProblem, i: int) -> None:
    """A row whose impulse is none."""
    p.line[i] = p.x[i]
    put_derivatives(p, i, 0.0, 0.0, 1.0, 0.0, 0.0)


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


@helper
def other_row(p: ComplementarityProblem, i: int) -> int:
    """The other row of the cone of row i, or that itself."""
    bound = p.bounds[i]
    if bound.owner < 0 or bound.count < 2:
        return i
    return i + 1 if bound.first == 1 else i - 1


@outlined
def factorise_operator(p: ComplementarityProblem, n: int) -> int:
    """Factor D = L Lᵀ by its rank r, L into the first columns of A; r, or 0 if that saves nothing.

    Rows are dependent where bodies have fewer freedoms than their contacts have rows. The largest
    diagonal is taken first, relative to what it was.
    """
    most = p.A.shape[1] // 3
    for i in range(n):
        p.line[i] = p.D[i, i]
    for k in range(n):
        best, left = -1, DEPENDENT
        for i in range(n):
            if p.D[i, i] > 0.0 and p.line[i] > left * p.D[i, i]:
                best, left = i, p.line[i] / p.D[i, i]
        if best < 0:
            return k
        if k == most:
            return 0
        root = math.sqrt(p.line[best])
        for i in range(n):
            rest = p.D[i, best]
            for j in range(k):
                rest -= p.A[i, j] * p.A[best, j]
            p.A[i, k] = rest / root
        for i in range(n):
            p.line[i] = max(p.line[i] - p.A[i, k] * p.A[i, k], 0.0)
        p.line[best] = 0.0
    return 0


@helper
def solve_own(p: ComplementarityProblem, i: int, own: float, other: float, radius: float) -> float:
    """Solution for row i of its block by right sides of it and its other row, and the radius."""
    j = other_row(p, i)
    own -= p.slopes[RADIUS, i] * radius
    if j == i:
        return own / p.slopes[OWN, i]
    other -= p.slopes[RADIUS, j] * radius
    det = p.slopes[OWN, i] * p.slopes[OWN, j] - p.slopes[OTHER, i] * p.slopes[OTHER, j]
    return (p.slopes[OWN, j] * own - p.slopes[OTHER, i] * other) / det


@outlined
def factorise_by_rank(p: ComplementarityProblem, n: int, rank: int) -> None:
    """Factor the derivatives B + G L Lᵀ: of I + Lᵀ B⁻¹ G L; B⁻¹ G L stays beside L.

    B and G have the blocks of single rows and cones (Sherman, Morrison and Woodbury).
    """
    A, slopes = p.A, p.slopes
    for i in range(n):
        j = other_row(p, i)
        for k in range(rank):
            own = slopes[OWN_W, i] * A[i, k]
            if j != i:
                own += slopes[OTHER_W, i] * A[j, k]
            A[i, rank + k] = own
    i = 0
    while i < n:
        owner, j = p.bounds[i].owner, other_row(p, i)
        for k in range(rank, 2 * rank):
            own, radius = A[i, k], A[owner, k] if owner >= 0 else 0.0
            A[i, k] = solve_own(p, i, own, A[j, k], radius)
            if j != i:
                A[j, k] = solve_own(p, j, A[j, k], own, radius)
        i += 1 if j == i else 2
    for k in range(rank):
        for m in range(2 * rank, 3 * rank):
            A[k, m] = 1.0 if m == 2 * rank + k else 0.0
    for i in range(n):
        for k in range(rank):
            on = A[i, k]
            if on != 0.0:
                for m in range(rank):
                    A[k, 2 * rank + m] += on * A[i, rank + m]
    lu_real(A[:rank, 2 * rank : 3 * rank], p.pivots[:rank])


@outlined
def solve_by_rank(p: ComplementarityProblem, n: int, rank: int, b: Array) -> None:
    """b <- the solution for b by what ``factorise_by_rank`` left."""
    A, along, i = p.A, p.free, 0
    while i < n:
        owner, j = p.bounds[i].owner, other_row(p, i)
        own, radius = b[i], b[owner] if owner >= 0 else 0.0
        b[i] = solve_own(p, i, own, b[j], radius)
        if j != i:
            b[j] = solve_own(p, j, b[j], own, radius)
        i += 1 if j == i else 2
    for k in range(rank):
        along[k] = 0.0
    for i in range(n):
        for k in range(rank):
            along[k] += A[i, k] * b[i]
    back_real(A[:rank, 2 * rank : 3 * rank], p.pivots[:rank], along)
    for i in range(n):
        for k in range(rank):
            b[i] -= A[i, rank + k] * along[k]


@outlined
def leave_misfit(p: ComplementarityProblem, n: int, rank: int) -> None:
    """Take from line what the derivatives give along step, by L."""
    A, slopes, along, rates = p.A, p.slopes, p.free, p.kinds
    for k in range(rank):
        along[k] = 0.0
    for i in range(n):
        for k in range(rank):
            along[k] += A[i, k] * p.step[i]
    for i in range(n):
        rates[i] = 0.0
        for k in range(rank):
            rates[i] += A[i, k] * along[k]
    for i in range(n):
        j, owner = other_row(p, i), p.bounds[i].owner
        given = slopes[OWN_W, i] * rates[i] + slopes[OWN, i] * p.step[i]
        if j != i:
            given += slopes[OTHER_W, i] * rates[j] + slopes[OTHER, i] * p.step[j]
        if owner >= 0:
            given += slopes[RADIUS, i] * p.step[owner]
        p.line[i] -= given


@outlined
def put_newton_step(p: ComplementarityProblem, n: int, rank: int) -> None:
    """Newton's step for the map in line into step.

    By the rank of D where that is small: what softness leaves of digits is made up for by solving
    once more for the misfit.
    """
    for i in range(n):
        p.line[i] = -p.line[i]
    if rank > 0:
        factorise_by_rank(p, n, rank)
        for i in range(n):
            p.step[i] = p.line[i]
        solve_by_rank(p, n, rank, p.step)
        leave_misfit(p, n, rank)
        solve_by_rank(p, n, rank, p.line)
        for i in range(n):
            p.step[i] += p.line[i]
        return
    for i in range(n):
        j, owner = other_row(p, i), p.bounds[i].owner
        for k in range(n):
            p.A[i, k] = p.slopes[OWN_W, i] * p.D[i, k]
        if j != i:
            for k in range(n):
                p.A[i, k] += p.slopes[OTHER_W, i] * p.D[j, k]
            p.A[i, j] += p.slopes[OTHER, i]
        p.A[i, i] += p.slopes[OWN, i]
        if owner >= 0:
            p.A[i, owner] += p.slopes[RADIUS, i]
    lu_real(p.A, p.pivots[:n])
    back_real(p.A, p.pivots[:n], p.line)
    for i in range(n):
        p.step[i] = p.line[i]


@outlined
def solve_smooth(p: ComplementarityProblem, n: int, rank: int, s: Smoothness) -> tuple[bool, int]:
    """Newton's method with a line search for one smooth problem, from x; whether it is solved.

    Returns:
        That, and the steps taken.
    """
    length = smooth_map(p, n, s)
    for count in range(STEPS_OF_A_PROBLEM):
        put_newton_step(p, n, rank)
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


@outlined
def follow_smoothed_path(p: ComplementarityProblem, n: int, tolerance: float) -> tuple[float, int]:
    """Solve for x along a path of smooth problems, from nothing; residual and steps of Newton.

    x ends where the residual was least.
    """
    energy = 0.0
    for i in range(n):
        p.x[i] = p.best[i] = p.spare[i] = 0.0
        if p.D[i, i] > 0.0:
            energy = max(energy, math.fabs(p.b[i]) / math.sqrt(p.D[i, i]))
    velocities(p, p.x, p.w, n)
    least, steps, back = residual_at(p, p.x, p.w, n), 0, 0
    known, share, shrinks = 0.0, FIRST, SHRINKS
    rank = factorise_operator(p, n)
    while energy > 0.0 and least > tolerance and share > LAST and steps < MOST_STEPS:
        solved, count = solve_smooth(p, n, rank, Smoothness(energy, share))
        steps += count
        velocities(p, p.x, p.w, n)
        residual = residual_at(p, p.x, p.w, n)
        if residual < least:
            least = residual
            for i in range(n):
                p.spare[i] = p.x[i]
        if solved:
            known, back = share, 0
            for i in range(n):
                p.best[i] = p.x[i]
            if count <= FEW:
                shrinks = max(shrinks * math.sqrt(shrinks), FASTEST)
            share *= shrinks
            continue
        back += 1
        shrinks = math.sqrt(shrinks)
        if known == 0.0 or back == MOST_BACK or shrinks > SLOWEST:
            break
        share = known * shrinks
        for i in range(n):
            p.x[i] = p.best[i]
    for i in range(n):
        p.x[i] = p.spare[i]
    velocities(p, p.x, p.w, n)
    return least, steps
