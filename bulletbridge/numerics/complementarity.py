"""Mixed complementarity problem of one step: bounded, unilateral and friction rows together.

Rows have impulses x and velocities w = D x + b, D positive semidefinite. A bounded row keeps
lower <= x <= upper, with w = 0 between them, w >= 0 at the lower and w <= 0 at the upper one:
motors with force limits, joint friction, joint limits and the normals of contacts. The rows of a
cone keep (x_1/mu_1)² + (x_2/mu_2)² <= r² with r the impulse of the row that owns it (a contact's
normal), and do the most work against w: Coulomb friction, isotropic or elliptic, rolling and
spinning resistance.

This is Coulomb's law itself, not its convex relaxation, which would lift what slides.

A semismooth Newton method solves to round-off, from where the last step has ended; if need be
projected Gauss-Seidel first finds out which rows are at their bounds. Both work on the natural map
x - project(x - w/d), which vanishes at the solutions alone. Sources: Alart and Curnier 1991 (the
map and its Newton method), Acary and Brogliato 2008, ch. 13; Jourdan, Alart and Jean 1998
(Gauss-Seidel).

Where many impulses give the same motion, that of least weighted norm is taken: each row is made
softer by its weight, which makes the solution unique, and a proximal sequence from there takes the
softness away (Rockafellar 1976). Among impulses of one motion it moves along rows that differ, so
it stays as near to the least norm as the weights are small. Of many bodies that only contacts join
hardly any step would find it: there that sequence goes out from the last impulses, and of those
that give the same motion some next to them are taken.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bulletbridge.compilation.block_sizes import LANES
from bulletbridge.compilation.jit import add_lines, deferred, helper, kernel, outlined
from bulletbridge.numerics.complementarity_rows import (
    ALWAYS,
    CONVEX,
    FACTORED,
    NEAREST,
    NOWHERE,
    OTHER,
    OTHER_W,
    OWN,
    OWN_W,
    RADIUS,
    USED,
    ComplementarityProblem,
    RowBounds,
    clip,
    cone_scale,
    dense_velocities,
    other_row,
    residual_at,
    scaled,
    sweep,
    velocities,
    violation,
)
from bulletbridge.numerics.interior_path import Course, approach
from bulletbridge.numerics.lu import PANEL, back_real, lu_real
from bulletbridge.numerics.parts import (
    factorise_parts,
    form_matrix,
    norm,
    solve_parts,
)
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.smoothed_path import energy_of, path_ending_in

SWEEPS, SWEEPS_BY_PARTS = 8, 100
"""Sweeps of Gauss-Seidel before each attempt with Newton; where parts are eliminated a step of it
costs some thirty."""
NEWTON_STEPS, STEPS_BY_PARTS, SETTLING_STEPS = 12, 6, 6
"""The most at once, likewise, and of those that look for the least norm: where friction is used up
though nothing slides, they go back and forth."""
SOFTEST, HARDEST, MOST_STAGES, MOST_STALLS = 1e-2, 1e-8, 20, 3
"""Proximal sequence: first and last share of the diagonal, problems, and how many of these one
after the other that do not halve the residual end it."""
SETTLED, NEARBY, INSIDE, SOFTER, ANYWHERE = range(5)
"""Where a solution is looked for: next to the start alone, that of least norm; any next to it;
along a path inside of all bounds from there, too; by softer problems instead; and by all of these,
and along a path of smooth problems that begins at no impulses."""
LIGHTEST = 1e-11
"""Weight, as a share of the diagonal, of the row whose impulse costs least: what dependent rows
get is then known to a hundred-thousandth, and softness disappears in a pass or two."""
SOLVED, INEXACT = 1e-7, 1e-3
"""Share of right sides that elimination of what rows move is to leave, and what it may leave where
that is all that can be had: Newton's next step goes on from there, and the last one begins next to
a solution."""
DESCENTS = 4
"""Times their number, as often as rows of a convex problem may stop at bounds or be let go, and the
most passes that take its softness away."""
FINAL_STEPS = 12
"""Newton steps from where a path of smooth problems has come near."""
LOST = 1e6
"""Residual, in largest velocities that are asked for, from which Newton's method does not come
back: rows that nearly depend on others were taken to hold, against each other. Rows with bounds of
their own do come back, to these."""
MOST_PASSES, SLOW, STAGES, LESS = 20, 0.3, 3, 2.0**-10
"""Most passes of the sequence that takes the softness of the weights away; the share of a residual
with which a pass is slow; weights that it goes on with then, at most, and each one's share of the
last: to turn a robot whose stiff legs stand on points of nearly one height is next to impossible,
and rows of such softness would take a hundred passes to stop it."""
JUST_AS_WELL = 100.0
"""Residual, in tolerances, that the round-off of weak directions may leave of a problem."""


NEAR_X = Course(0.03, 1e-6, 0.99, 40, True)
"""How a path inside of all bounds is followed from near x."""
BY_PARTS = (
    (150, NEAR_X),
    (200, Course(0.1, 1e-6, 0.95, 40, True)),
    (0, Course(0.0, 1e-6, 0.95, 40, True)),
)
"""Sweeps, and how a path inside of all bounds is followed then, where parts are eliminated; one
after the other, until one leads so far that Newton's method solves the problem next: near to where
sweeps lead, less near to it, and from the beginning that is always the same."""
ENOUGH = 1e3
"""Residual, in tolerances, with which nothing is looked for further where parts are eliminated."""
NEAR = 1e-2
"""Residual [m/s or rad/s] of the last impulses from which on friction of many bodies is looked for
next to them only if one step gains a digit: of a heap's steps that began further away and gained
none the first time none was solved so. From wherever they are, that goes for how bodies are moved
apart; and up to it sweeps alone may lead so near that Newton's method is done."""
STEADY = 1e-6
"""Residual [m/s or rad/s] of the last impulses up to which Newton's method goes on from them where
those of least norm are not found: feet that motors press apart hardly slide, friction used up."""
SWEEPS_NEARBY, ROUNDS_NEARBY = 50, 2
"""Sweeps before each of these attempts."""
NEXT_TO = 1e-5
"""Residual [m/s or rad/s] that sweeps leave, from which on a softer problem leads to a solution."""

LIFT_LEFT, LEAST_LIFT = 0.7, 1e-4
"""What part of the lift of the problem before each problem has (``lower_from_open``), and the share
of the whole after which there is none."""


class Proximal(NamedTuple):
    """A sequence of problems, each softened about the solution of the one before."""

    softness: float  # of the first, as a share of the diagonal
    problems: int  # the most
    steps: int  # the most of Newton's method in each
    # share of its residual with which one goes on to the next, as after a single step: rows stay of
    # their kinds then
    gains: float


AT_END = Proximal(1e-5, 6, 12, 1.0)
"""From where a path has come near, where parts are eliminated; and wherever a problem without
friction begins."""
FROM_BEFORE = Proximal(1e-5, 6, 3, 0.1)
"""From the last impulses: bodies at rest need hardly any step, others lose few."""
FROM_NEXT_TO = Proximal(1e-3, 8, 12, 1.0)
"""From where sweeps end next to a solution: of what rests some contacts neither press nor part."""
ONE_STEP, GAINED = Proximal(1e-5, 1, 1, 1.0), 0.1
"""The first step of these, and the share of the residual with which it gains a digit."""
AS_NEAR = 1e-3
"""Share of the residual of one that is left of the next: what softness hides is no less."""
NEXT_PROBLEM = 1e-2
"""Share of its residual with which a problem ends so near the next that its factors serve there:
as soft a problem has the same matrix, and what slides has turned by no more than that."""


class Outcome(NamedTuple):
    """How a solve went."""

    residual: float  # largest violation, in units of w
    sweeps: int
    newton: int


AT_BOUND, STICKS, SLIDES = range(3)
"""Kinds of rows in a step of Newton's method: x is known; w goes to zero; on the rim of a cone."""
BORDERED = -1.0
"""In the place of the first pivot, of factors of rows that stick, and such as slide below them."""


@outlined
def classify(p: Any, n: int, rim: float) -> int:
    """Write of what kind each row is at x and w into p.line, and how far those at bounds go.

    What is within the share ``rim`` of its cone's rim slides.

    Returns:
        How many rows slide.
    """
    i, sliding = 0, 0
    while i < n:
        bound = p.bounds[i]
        if bound.owner < 0:
            d = p.D[i, i]
            wanted = p.x[i] - p.w[i] / d if d > 0.0 else p.x[i]
            p.line[i] = STICKS
            if not d > 0.0 or not bound.lower <= wanted <= bound.upper:
                p.line[i], p.step[i] = AT_BOUND, clip(bound, wanted) - p.x[i]
            i += 1
            continue
        d = cone_scale(p, i)
        length = scaled(p, i, d, p.x, p.w)[2] if d > 0.0 else 0.0
        radius = max(0.0, p.x[bound.owner])
        slides = length > (1.0 - rim) * radius
        for k in range(i, i + bound.count):
            if d > 0.0 and p.bounds[k].mu > 0.0 and (radius > 0.0 or not slides):
                p.line[k] = SLIDES if slides else STICKS
                sliding += slides
            else:
                p.line[k], p.step[k] = AT_BOUND, -p.x[k]
        i += bound.count
    return sliding


class Slide(NamedTuple):
    """The rim of a cone next to x and w, for one of its rows: z = r p/|p|.

    z = x/mu, p = z - mu w/d.
    """

    start: int  # first row of the cone
    d: float  # its scale
    length: float  # |p|
    radius: float  # r
    direction: tuple[float, float]  # p/|p|
    own: float  # that of the row


@helper
def slide_of(p: ComplementarityProblem, i: int) -> Slide:
    """Where a row slides."""
    start = i if p.bounds[i].first == 1 else i - 1
    d = cone_scale(p, start)
    first, second, length = scaled(p, start, d, p.x, p.w)
    direction = (first / length, second / length)
    own = direction[0] if i == start else direction[1]
    return Slide(start, d, length, p.x[p.bounds[start].owner], direction, own)


@helper
def put_sliding_row(p: ComplementarityProblem, i: int, row: Array, n: int) -> float:
    """Add what Newton's row i has on a cone's rim to ``row`` (n,); its right side."""
    start, d, length, radius, direction, own = slide_of(p, i)
    bound, mu = p.bounds[start], p.bounds[i].mu
    row[i] += 1.0 / mu
    row[bound.owner] -= own
    for m in range(bound.count):
        other = p.bounds[start + m].mu
        if not other > 0.0:
            continue
        across = radius / length * ((1.0 if start + m == i else 0.0) - own * direction[m])
        row[start + m] -= across / other
        for j in range(n):
            row[j] += across * other / d * p.D[start + m, j]
    return radius * own - p.x[i] / mu


@helper
def shifted(p: ComplementarityProblem, i: int) -> float:
    """What Newton's row i, of a row that slides, has on what velocities were shifted by."""
    start, d, length, radius, direction, own = slide_of(p, i)
    total = 0.0
    for m in range(p.bounds[start].count):
        across = radius / length * ((1.0 if start + m == i else 0.0) - own * direction[m])
        total += across * p.bounds[start + m].mu / d * p.shift[start + m]
    return total


@outlined
def put_rows(
    p: ComplementarityProblem, n: int, m: int, regularisation: float, whole: bool, again: int
) -> None:
    """Newton rows of the m of n rows that are free, in A (m, m), and their right sides in line.

    Those that stick come first; unless the ``whole`` is asked for, of what they have among
    themselves the upper triangle alone. ``regularisation`` makes up for dependent rows. With
    RECALLED velocities are those of the last solution, less what these were shifted by.
    """
    row, moved = p.slopes[0], False
    for j in range(n):
        if p.kinds[j] != AT_BOUND:
            p.step[j] = 0.0
        moved = moved or p.step[j] != 0.0
    for r in range(m):
        i = int(p.free[r])
        if p.kinds[i] == STICKS:
            for c in range(0 if whole else r, m):
                p.A[r, c] = p.D[i, int(p.free[c])]
            p.A[r, r] += regularisation
            right = -p.w[i] - (p.shift[i] if again == RECALLED else 0.0)
            if moved:
                for j in range(n):
                    right -= p.D[i, j] * p.step[j]
        else:
            for j in range(n):
                row[j] = 0.0
            right = put_sliding_row(p, i, row, n) - (shifted(p, i) if again == RECALLED else 0.0)
            for c in range(m):
                p.A[r, c] = row[int(p.free[c])]
            if moved:
                for j in range(n):
                    right -= row[j] * p.step[j]
        p.line[r] = right


@outlined
def put_right_sides(p: ComplementarityProblem, n: int, m: int) -> None:
    """Right sides alone of the m of n Newton rows that are free; of those at bounds none moves."""
    for r in range(m):
        p.line[r] = right_side(p, int(p.free[r]))


@outlined
def factorise_bordered(A: Array, n: int, m: int, turns: Array) -> bool:
    """Eliminate in A (m, m), whose first n rows are symmetric; False unless these are positive.

    Of them the upper triangle and what is right of it are looked at; below it room is used, since
    lines are gone through in whole blocks, of which each line of A has to consist. Some are taken
    at once: what is below is then gone through less often. Of the rows after them the largest is
    taken first; ``turns`` (m,) receives whom they changed with. On the diagonal are reciprocals
    afterwards.
    """
    width = A.shape[1]
    for first in range(0, n, PANEL):
        last = min(first + PANEL, n)
        for k in range(first, last):
            if not A[k, k] > 0.0:
                return False
            inverse = 1.0 / A[k, k]
            for i in range(k + 1, last):
                s = A[k, i] * inverse
                if s != 0.0:
                    for j in range(i, m):
                        A[i, j] -= s * A[k, j]
            A[k, k] = inverse
        if last < first + PANEL:
            for k in range(first, last):
                eliminate_below(A, k, n, m)
            break
        one, two, three, four = first, first + 1, first + 2, first + 3
        p, q, r, t = A[one, one], A[two, two], A[three, three], A[four, four]
        for i in range(last, n):
            a, b, c, d = A[one, i] * p, A[two, i] * q, A[three, i] * r, A[four, i] * t
            if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                turns[0], turns[1], turns[2], turns[3] = -a, -b, -c, -d
                begin = LANES * (i // LANES)
                blocks, lines = (m - begin + LANES - 1) // LANES, width * one + begin
                add_lines(A, width * i + begin, turns, 0, A, lines, PANEL, blocks)
        for i in range(n, m):
            a = A[i, one] * p
            b = (A[i, two] - a * A[one, two]) * q
            c = (A[i, three] - a * A[one, three] - b * A[two, three]) * r
            d = A[i, four] - a * A[one, four] - b * A[two, four] - c * A[three, four]
            d *= t
            A[i, one], A[i, two], A[i, three], A[i, four] = a, b, c, d
            for j in range(last, m):
                A[i, j] -= a * A[one, j] + b * A[two, j] + c * A[three, j] + d * A[four, j]
    for k in range(n, m):
        best = k
        for i in range(k + 1, m):
            if math.fabs(A[i, k]) > math.fabs(A[best, k]):
                best = i
        turns[k] = best
        for j in range(m if best != k else 0):
            A[k, j], A[best, j] = A[best, j], A[k, j]
        A[k, k] = 1.0 / A[k, k]
        eliminate_below(A, k, k + 1, m)
    return True


@helper
def eliminate_below(A: Array, k: int, first: int, m: int) -> None:
    """Eliminate column k from rows ``first`` to before m, by row k; shares of it stay there."""
    for i in range(first, m):
        s = A[i, k] * A[k, k]
        A[i, k] = s
        if s != 0.0:
            for j in range(k + 1, m):
                A[i, j] -= s * A[k, j]


@outlined
def solve_bordered(A: Array, b: Array, n: int, m: int, turns: Array) -> None:
    """b <- A⁻¹ b by what ``factorise_bordered`` left."""
    for k in range(n):
        s = b[k] * A[k, k]
        for i in range(k + 1, n):
            b[i] -= s * A[k, i]
    for k in range(n, m):
        i = int(turns[k])
        b[k], b[i] = b[i], b[k]
    for i in range(n, m):
        total = b[i]
        for j in range(i):
            total -= A[i, j] * b[j]
        b[i] = total
    for k in range(m - 1, -1, -1):
        total = b[k]
        for j in range(k + 1, m):
            total -= A[k, j] * b[j]
        b[k] = total * A[k, k]


@outlined
def factorise_dense(A: Array, pivots: Array) -> None:
    """Factors of as many rows and columns of A as there are pivots; not finite if singular."""
    lu_real(A, pivots)


RIM, STICKING = 1e-6, 1e-9
"""Share of a cone's radius up to which friction of the solution before is used up; and up to which
it does not slide where it was beyond it."""
ANEW, SAME_D, SAME_STEP, SOFTLY, RECALLED = range(5)
"""Whether factors may serve again: no; of a step with the same D of which no row slides; of any
step that has led next to here, so that what slides has hardly turned; no, and rows are the softer,
the more is left: contacts that neither press nor part are taken to hold against others then, and
by what they contradict these an unsoftened step would go far away (Levenberg and Marquardt); no,
and rows are of the kinds that they were in the last solution, which x is."""


@helper
def rim_of(again: int) -> float:
    """Share of a cone's radius that counts as its rim in a step of Newton's method.

    Where the last solution is on the rim and does not slide, round-off says whether the next one
    does: the first step from there takes it to stay.
    """
    if again == RECALLED:
        return -STICKING
    return 0.0 if again == SAME_D else RIM


@outlined
def recall_velocities(p: ComplementarityProblem, n: int) -> None:
    """Let velocities be those of the last solution, x, and p.shift what they have become since.

    What was at a bound stays there in Newton's first step, what slid slides; x follows the shift.
    """
    i = 0
    while i < n:
        bound, d = p.bounds[i], p.D[i, i]
        if bound.owner < 0:
            last = -d * p.beyond[i]
            known = last != 0.0 or bound.lower < p.x[i] < bound.upper
            p.shift[i] = p.w[i] - last if known else 0.0
            p.w[i] -= p.shift[i]
            i += 1
            continue
        d, radius = cone_scale(p, i), p.x[bound.owner]
        slides = d > 0.0 and p.beyond[i] > STICKING * radius > 0.0
        for k in range(i, i + bound.count):
            mu, last = p.bounds[k].mu, 0.0
            if slides and mu > 0.0:
                last = -p.beyond[i] / radius * d * p.x[k] / (mu * mu)
            p.shift[k] = p.w[k] - last if radius > 0.0 else 0.0
            p.w[k] -= p.shift[k]
        i += bound.count


@outlined
def note_beyond(p: ComplementarityProblem, n: int) -> None:
    """Write into p.beyond how far x - w/d is beyond each bound and cone, of these at the first."""
    i = 0
    while i < n:
        bound, d, p.beyond[i] = p.bounds[i], p.D[i, i], 0.0
        if bound.owner < 0:
            wanted = p.x[i] - p.w[i] / d if d > 0.0 else p.x[i]
            p.beyond[i] = wanted - clip(bound, wanted)
            i += 1
            continue
        d = cone_scale(p, i)
        if d > 0.0:
            p.beyond[i] = max(0.0, scaled(p, i, d, p.x, p.w)[2] - max(0.0, p.x[bound.owner]))
        i += bound.count


@deferred
def step_by_parts(p: ComplementarityProblem, n: int, regularisation: float, again: int) -> bool:
    """``newton_direction`` by elimination of what the rows move; whether that is solved."""
    sliding = classify(p, n, rim_of(again))
    same = again == SAME_STEP or (again == SAME_D and sliding == 0)
    same = same and p.parts.state[FACTORED] == 1
    for i in range(n):
        same = same and p.line[i] == p.kinds[i]
        p.kinds[i] = p.line[i]
    for i in range(n):
        p.line[i] = p.step[i] if p.kinds[i] == AT_BOUND else right_side(p, i)
    if not same:
        for i in range(n):
            put_slopes(p, i, regularisation)
        factorise_parts(p, n)
    size = norm(p.line, n)
    return solve_parts(p, n, p.line, p.step, SOLVED) or norm(p.line, n) <= INEXACT * size


@helper
def right_side(p: ComplementarityProblem, i: int) -> float:
    """What is left of the condition of a row that is free."""
    if p.kinds[i] == STICKS:
        return -p.w[i]
    slide = slide_of(p, i)
    return slide.radius * slide.own - p.x[i] / p.bounds[i].mu


@helper
def put_slopes(p: ComplementarityProblem, i: int, regularisation: float) -> None:
    """Derivatives of a row of the natural map."""
    s = p.slopes
    s[OWN_W, i] = s[OTHER_W, i] = s[OTHER, i] = s[RADIUS, i] = 0.0
    s[OWN, i] = 1.0
    if p.kinds[i] == STICKS:
        s[OWN_W, i], s[OWN, i] = 1.0, regularisation
    elif p.kinds[i] == SLIDES:
        slide, m, mu = slide_of(p, i), other_row(p, i), p.bounds[i].mu
        stays = slide.radius / slide.length
        across = stays * (1.0 - slide.own * slide.own)
        s[OWN, i], s[OWN_W, i] = (1.0 - across) / mu, across * mu / slide.d
        s[RADIUS, i], mu = -slide.own, p.bounds[m].mu
        if m != i and mu > 0.0:
            across = -stays * slide.own * slide.direction[m - slide.start]
            s[OTHER, i], s[OTHER_W, i] = -across / mu, across * mu / slide.d


@outlined
def newton_direction(p: ComplementarityProblem, n: int, regularisation: float, again: int) -> bool:
    """Semismooth Newton step of the natural map into step; w belongs to x.

    Rows at their bounds are known, the others are solved for. Factors serve again as long as the
    same rows are free, and slide.

    Args:
        p: The problem.
        n: Its rows.
        regularisation: Added to D's diagonal.
        again: Which factors A may hold.
    """
    if p.parts.state[USED] == 1:
        if step_by_parts(p, n, regularisation, again):
            return True
        p.parts.state[FACTORED], again = 0, ANEW
        form_matrix(p, n)
    if again == RECALLED:
        recall_velocities(p, n)
    sliding, m = classify(p, n, rim_of(again)), 0
    same = again == SAME_STEP or (again == SAME_D and sliding == 0)
    for i in range(n):
        moved = p.line[i] == AT_BOUND and p.step[i] != 0.0
        same = same and p.line[i] == p.kinds[i] and not moved
        p.kinds[i] = p.line[i]
        if p.kinds[i] == STICKS:
            p.free[m] = i
            m += 1
    sticking = m
    for i in range(n if sliding > 0 else 0):
        if p.kinds[i] == SLIDES:
            p.free[m] = i
            m += 1
    if m == 0:
        return True
    if same:
        put_right_sides(p, n, m)
    else:
        put_rows(p, n, m, regularisation, False, again)
        if sticking > 0 and factorise_bordered(p.A, sticking, m, p.pivots):
            p.pivots[0] = BORDERED
        else:  # all slide, or no matrix of velocities in exact numbers
            put_rows(p, n, m, regularisation, True, again)
            factorise_dense(p.A, p.pivots[:m])
    if p.pivots[0] == BORDERED:
        solve_bordered(p.A, p.line, sticking, m, p.pivots)
    else:
        back_real(p.A, p.pivots[:m], p.line)
    for r in range(m):
        p.step[int(p.free[r])] = p.line[r]
    return True


@helper
def add_proximal_term(p: Any, n: int, rho: float, at_x: bool) -> None:
    """Make every row softer, measured from where x is now or from the centre.

    By rho times its diagonal; for zero by its weight.
    """
    for i in range(n):
        softness = rho * p.diagonal[i] if rho > 0.0 else p.weights[i]
        p.D[i, i] = p.diagonal[i] + softness
        p.b[i] = p.right[i] - softness * (p.x[i] if at_x else p.centre[i])


@helper
def is_lost(p: Any, n: int, residual: float, most: float) -> bool:
    """Whether any row is further off than ``most`` that no bound of its own takes back at once."""
    if residual <= most:
        return False
    i = 0
    while i < n:
        bound, x = p.bounds[i], p.x[i]
        off, end = violation(p, p.x, p.w, i)
        if not off <= most and (bound.owner >= 0 or bound.lower <= x <= bound.upper):
            return True
        i = end
    return not residual < math.inf


class Settling(NamedTuple):
    """Newton's method for problems of one kind.

    Attributes:
        newton: (p, n, tolerance, least, most, again) from x; residual and steps.
        release: (p, n) takes all softness away; the residual.
        settle: (p, n, tolerance, stages) finds the solution of least weighted norm; residual and
            steps.
    """

    newton: Callable[..., tuple[float, int]]
    release: Callable[..., float]
    settle: Callable[..., tuple[float, int]]


def settling(velocities: Callable[..., None], newton_direction: Callable[..., bool]) -> Settling:
    """Newton's method over what w is of x, and what leads from x to where w is as it should be.

    Of D no more is looked at here than the blocks of rows and cones by themselves. numba resolves
    the functions that are closed over when it compiles them.
    """

    @outlined
    def newton(
        p: Any,
        n: int,
        tolerance: float,
        least: int,
        most: int,
        again: int,
    ) -> tuple[float, int]:
        """Newton from x, which ends where the residual was least; that and the steps taken.

        Steps are not damped: active sets that change make the residual rise before it falls.
        ``least`` to ``most`` of them are taken; where none has to be, the problem is not softened.
        ``again``: which factors may serve in the first; w is that of x already with SAME_STEP.
        """
        if again != SAME_STEP:
            velocities(p, p.x, p.w, n)
        residual, asked = residual_at(p, p.x, p.w, n), 0.0
        if residual == math.inf:
            return residual, 0
        for i in range(n):
            p.best[i], asked = p.x[i], max(asked, math.fabs(p.b[i]))
        regularisation, taken, stiffest, is_best = 0.0, most, 0.0, True
        if least == 0:
            for i in range(n):
                stiffest = max(stiffest, p.D[i, i])
            regularisation = LIGHTEST * stiffest
        for count in range(most):
            if residual <= tolerance and count >= least:
                return residual, count
            if again == SOFTLY:
                share = min(residual / asked, SOFTEST) if asked > 0.0 else 0.0
                regularisation = max(share, LIGHTEST) * stiffest
            elif count > 0:
                again = SAME_D
            if not newton_direction(p, n, regularisation, again):
                break
            for i in range(n):
                p.x[i] += p.step[i]
            velocities(p, p.x, p.w, n)
            new = residual_at(p, p.x, p.w, n)
            is_best = new < residual or (count < least and new <= tolerance)
            if is_best:
                residual = new
                for i in range(n):
                    p.best[i] = p.x[i]
            if is_lost(p, n, new, LOST * max(asked, residual)):
                taken = count + 1
                break
        if not is_best:
            for i in range(n):
                p.x[i] = p.best[i]
            velocities(p, p.x, p.w, n)
        return residual, taken

    @helper
    def release(p: Any, n: int) -> float:
        """Take all softness away; the residual at x, whose velocities are computed."""
        for i in range(n):
            p.D[i, i], p.b[i] = p.diagonal[i], p.right[i]
        velocities(p, p.x, p.w, n)
        return residual_at(p, p.x, p.w, n)

    @outlined
    def release_known(p: Any, n: int) -> float:
        """``release`` where w is that of x: what softness gives of it is a sum for each row."""
        for i in range(n):
            p.w[i] += (p.diagonal[i] - p.D[i, i]) * p.x[i] + (p.right[i] - p.b[i])
            p.D[i, i], p.b[i] = p.diagonal[i], p.right[i]
        return residual_at(p, p.x, p.w, n)

    @outlined
    def settle(p: Any, n: int, tolerance: float, stages: int) -> tuple[float, int]:
        """Newton for the solution of least weighted norm, from x; residual and steps.

        p.diagonal and p.right are those of the problem, which comes back as it was, as weights do.
        ``stages``: once more than weights are made less where a pass is slow.
        """
        add_proximal_term(p, n, 0.0, False)
        softened, newtons = newton(p, n, tolerance, 1, SETTLING_STEPS, ANEW)
        residual, enough, share, again = release_known(p, n), tolerance, 1.0, SAME_STEP
        for _ in range(MOST_PASSES):
            if residual <= tolerance or not softened <= enough:
                break
            add_proximal_term(p, n, 0.0, True)
            enough = 0.1 * max(tolerance, residual)
            softened, steps = newton(p, n, enough, 1, SETTLING_STEPS, again)
            newtons, before, residual = newtons + steps, residual, release_known(p, n)
            again = SAME_STEP
            if not residual < SLOW * before:
                stages -= 1
                if residual <= JUST_AS_WELL * tolerance or stages == 0:
                    break
                share, again = LESS * share, ANEW
                for i in range(n):
                    p.weights[i] *= LESS
        for i in range(n):
            p.weights[i] /= share
        return residual, newtons

    return Settling(newton, release, settle)


newton, release, settle = settling(velocities, newton_direction)


@helper
def is_convex(p: ComplementarityProblem, n: int) -> bool:
    """Whether no row is of a cone, and D is known."""
    for i in range(n):
        if p.bounds[i].owner >= 0:
            return False
    return p.parts.state[USED] == 0


@outlined
def descend(p: ComplementarityProblem, n: int, tolerance: float) -> int:
    """Minimise x·D x/2 + b·x over bounded rows, D positive definite, from x; steps taken.

    Newton's method with rows that stop at their bounds, of which one at a time is let go when all
    others are at rest: each step goes down, so no set of rows comes again (Nocedal and Wright 2006,
    ch. 16).
    """
    for i in range(n):
        bound = p.bounds[i]
        p.x[i] = clip(bound, p.x[i])
        inside = bound.lower < p.x[i] < bound.upper and p.D[i, i] > 0.0
        p.kinds[i] = STICKS if inside else AT_BOUND
    for count in range(DESCENTS * n):
        m, share, stopped, at, freed, most = 0, 1.0, -1, 0.0, -1, tolerance
        velocities(p, p.x, p.w, n)
        for i in range(n):
            if p.kinds[i] == STICKS:
                p.free[m], p.line[m] = i, -p.w[i]
                m += 1
        for r in range(m):
            for c in range(r, m):
                p.A[r, c] = p.D[int(p.free[r]), int(p.free[c])]
        if not factorise_bordered(p.A, m, m, p.pivots):
            return count
        solve_bordered(p.A, p.line, m, m, p.pivots)
        for r in range(m):
            i, step = int(p.free[r]), p.line[r]
            end = p.bounds[i].upper if step > 0.0 else p.bounds[i].lower
            if math.fabs(end - p.x[i]) < share * math.fabs(step):
                share, stopped, at = (end - p.x[i]) / step, i, end
        for r in range(m):
            p.x[int(p.free[r])] += share * p.line[r]
        if stopped >= 0:
            p.x[stopped], p.kinds[stopped] = at, AT_BOUND
            continue
        velocities(p, p.x, p.w, n)
        for i in range(n):
            bound = p.bounds[i]
            back = -p.w[i] if p.x[i] < bound.upper else p.w[i] if p.x[i] > bound.lower else 0.0
            if p.kinds[i] == AT_BOUND and p.D[i, i] > 0.0 and back > most:
                most, freed = back, i
        if freed < 0:
            return count + 1
        p.kinds[freed] = STICKS
    return DESCENTS * n


@outlined
def minimise(p: ComplementarityProblem, n: int, tolerance: float) -> tuple[float, int]:
    """Solve a convex problem for the least weighted norm, from x; residual and steps.

    Undamped steps go round where more friction turns back than there are freedoms; these do not.
    Of rows that depend on others each pass moves as much as the last one, so it is gone on with.
    """
    residual, steps = math.inf, 0
    for count in range(DESCENTS * n):
        for i in range(n):
            p.best[i] = p.x[i]
        add_proximal_term(p, n, 0.0, count > 0)
        steps += descend(p, n, tolerance)
        before, residual = residual, release(p, n)
        if residual <= tolerance or before <= residual <= JUST_AS_WELL * tolerance:
            break
        if count > 0 and count % 2 == 0:  # what that moved otherwise the next pass makes good
            go_on(p, n)
    return residual, steps


@helper
def go_on(p: ComplementarityProblem, n: int) -> None:
    """Go on from best through x, while the energy goes down, to where the first bound is."""
    slope, stiffness, share = 0.0, 0.0, math.inf
    for i in range(n):
        step, bound = p.x[i] - p.best[i], p.bounds[i]
        slope += step * p.w[i]
        for j in range(n):
            stiffness += step * p.D[i, j] * (p.x[j] - p.best[j])
        if step != 0.0:
            share = min(share, ((bound.upper if step > 0.0 else bound.lower) - p.x[i]) / step)
    if share == math.inf:  # nothing ends what contradicts itself
        return
    if stiffness > 0.0:
        share = min(share, -slope / stiffness)
    if share > 0.0:
        for i in range(n):
            p.x[i] = clip(p.bounds[i], p.x[i] + share * (p.x[i] - p.best[i]))


@outlined
def end_path(p: ComplementarityProblem, n: int, tolerance: float) -> tuple[float, int]:
    """Newton's method from where a path has come near a solution; residual and steps."""
    return newton(p, n, tolerance, 0, FINAL_STEPS, SOFTLY)


@outlined
def go_softly(
    p: ComplementarityProblem, n: int, tolerance: float, course: Proximal
) -> tuple[float, int]:
    """Newton's method from x by softened problems; residual and steps.

    p.diagonal and p.right are those of the problem, which comes back as it was.
    """
    residual, steps, rho, again = release(p, n), 0, course.softness, ANEW
    for _ in range(course.problems):
        add_proximal_term(p, n, rho, True)
        enough = max(0.1 * tolerance, AS_NEAR * residual)
        _, count = newton(p, n, enough, 1, course.steps, again)
        new, steps = release(p, n), steps + count
        if new <= tolerance or not (new < course.gains * residual or count == 1):
            return new, steps
        again = SAME_STEP if new < NEXT_PROBLEM * residual else ANEW
        if not new < 0.5 * residual:
            rho *= 0.01
        residual = new
    return residual, steps


@outlined
def look_next_to(
    p: ComplementarityProblem, n: int, tolerance: float, before: float
) -> tuple[float, int]:
    """``go_softly`` from the last impulses x, whose residual is ``before``, where that may lead."""
    newtons = 0
    if p.parts.state[NEAREST] == CONVEX:
        return go_softly(p, n, ENOUGH * tolerance, AT_END)
    if before > NEAR or p.parts.state[NEAREST] == ALWAYS:
        residual, newtons = go_softly(p, n, tolerance, ONE_STEP)
        if residual <= tolerance or not residual <= GAINED * before:
            return residual, newtons
    residual, steps = go_softly(p, n, tolerance, FROM_BEFORE)
    return residual, newtons + steps


@outlined
def sweep_nearby(p: ComplementarityProblem, n: int, tolerance: float) -> Outcome:
    """Solve from x by sweeps, and by Newton's method where they lead next to a solution.

    Bodies that all but rest bear loads in ever the same way: sweeps find which of their contacts
    hold, and end nearer than a path begins.
    """
    residual, swept, newtons, enough = math.inf, 0, 0, ENOUGH * tolerance
    for turn in range(ROUNDS_NEARBY + 1):
        last = turn == ROUNDS_NEARBY
        if residual <= enough or (last and residual > NEXT_TO):
            continue
        if not last:
            sweep(p, n, False, SWEEPS_NEARBY)
            velocities(p, p.x, p.w, n)
            swept, residual = swept + SWEEPS_NEARBY, residual_at(p, p.x, p.w, n)
        for i in range(n):
            p.found[i] = p.x[i]
        left, steps = go_softly(p, n, enough, FROM_NEXT_TO if last else FROM_BEFORE)
        newtons += steps
        if left < residual:
            residual = left
        else:
            for i in range(n):
                p.x[i] = p.found[i]
            velocities(p, p.x, p.w, n)
    return Outcome(residual, swept, newtons)


follow_to_end = path_ending_in(end_path)


@deferred
def follow_smoothed_path(p: ComplementarityProblem, n: int, tolerance: float) -> tuple[float, int]:
    """``path_ending_in`` Newton's method; residual and steps."""
    return follow_to_end(p, n, tolerance)


@helper
def keep_if_nearer(p: ComplementarityProblem, n: int, residual: float, least: float) -> float:
    """Keep x in found if its residual is less than the least so far; what is the least then."""
    if residual < least:
        for i in range(n):
            p.found[i] = p.x[i]
    return min(residual, least)


@outlined
def follow_paths_inside(p: ComplementarityProblem, n: int, tolerance: float) -> Outcome:
    """Solve from x by sweeps, if that is near, or the ways of BY_PARTS, each from the best place.

    Ends are sharpened by problems that are softened about the solution of the one before: of many
    contacts that share loads some neither press nor part. Where friction all but locks what slides
    a path turns back before its end; where it does is still a good place to go on from.
    """
    least, swept, steps, energy = residual_at(p, p.x, p.w, n), 0, 0, energy_of(p, n)
    enough = ENOUGH * tolerance
    if least <= NEAR:
        least, swept, steps = sweep_nearby(p, n, tolerance)
        if least <= enough:
            return Outcome(least, swept, steps)
    ahead = swept
    for i in range(n):
        p.found[i] = p.x[i]
    for sweeps, course in BY_PARTS:
        if least <= enough or not 0.0 < energy < math.inf:
            continue
        for i in range(n):
            p.x[i] = p.found[i]
        sweep(p, n, False, max(sweeps - ahead, 0))
        swept, ahead = swept + max(sweeps - ahead, 0), 0
        velocities(p, p.x, p.w, n)
        residual = residual_at(p, p.x, p.w, n)
        near, last = residual <= NEXT_TO and sweeps > 0, FROM_NEXT_TO
        if near:
            least = keep_if_nearer(p, n, residual, least)
        else:
            share, more = approach(p, n, energy, course)
            near, last, steps = share < math.inf, AT_END, steps + more
            velocities(p, p.x, p.w, n)
            residual = residual_at(p, p.x, p.w, n)
        if near:
            residual, more = go_softly(p, n, enough, last)
            steps += more
        least = keep_if_nearer(p, n, residual, least)
    for i in range(n):
        p.x[i] = p.found[i]
    p.parts.state[FACTORED] = 0
    velocities(p, p.x, p.w, n)
    return Outcome(least, swept, steps)


@helper
def sweeps_of(p: ComplementarityProblem) -> int:
    """Sweeps of an attempt."""
    return SWEEPS if p.parts.state[USED] == 0 else SWEEPS_BY_PARTS


@outlined
def solve_inside(p: ComplementarityProblem, n: int, tolerance: float) -> tuple[float, int]:
    """Solve by a path inside of all bounds from near x, and softer problems from its end.

    Of jammed ropes that takes a seventh of the steps of a path of smooth problems, and solves more.
    Where friction all but locks what slides it may turn back before its end.

    Returns:
        Residual, and steps.
    """
    energy, steps = energy_of(p, n), 0
    if 0.0 < energy < math.inf:
        share, steps = approach(p, n, energy, NEAR_X)
        velocities(p, p.x, p.w, n)
        if share < math.inf:
            residual, more = go_softly(p, n, tolerance, AT_END)
            return residual, steps + more
    return residual_at(p, p.x, p.w, n), steps


@outlined
def attempt(p: ComplementarityProblem, n: int, tolerance: float, along: bool) -> tuple[float, int]:
    """Gauss-Seidel, then Newton from where that has come; residual and steps of Newton."""
    sweep(p, n, along, sweeps_of(p))
    most = NEWTON_STEPS if p.parts.state[USED] == 0 else STEPS_BY_PARTS
    return newton(p, n, tolerance, 0, most, ANEW)


@deferred
def find(p: ComplementarityProblem, n: int, tolerance: float, effort: int) -> Outcome:
    """Solve from x by sweeps and Newton; where that fails, with more effort if that is asked for.

    x, whose velocities are known, ends where the residual was least. Where parts are eliminated,
    Newton's method from there goes round in circles: paths are followed at once, and softer
    problems from where the best of them has led.
    """
    if effort == ANYWHERE and p.parts.state[USED] == 1:
        found = follow_paths_inside(p, n, tolerance)
        if found.residual <= ENOUGH * tolerance:
            return found
        o = approach_by_softer_problems(p, n, ENOUGH * tolerance, found.residual)
        return Outcome(o.residual, found.sweeps + o.sweeps, found.newton + o.newton)
    residual, newtons = attempt(p, n, tolerance, False)
    if residual > tolerance and (effort == INSIDE or effort == ANYWHERE):
        for i in range(n):
            p.found[i] = p.x[i]
        followed, steps = solve_inside(p, n, tolerance)
        newtons += steps
        if followed > tolerance and effort == ANYWHERE:
            residual = keep_if_nearer(p, n, followed, residual)
            followed, steps = follow_smoothed_path(p, n, tolerance)
            newtons += steps
            if followed > tolerance:
                followed, steps = newton(p, n, tolerance, 0, NEWTON_STEPS, ANEW)
                newtons += steps
        if followed > residual:
            for i in range(n):
                p.x[i] = p.found[i]
        residual = min(followed, residual)
    if residual <= tolerance:
        return Outcome(residual, sweeps_of(p), newtons)
    for i in range(n):
        p.found[i] = p.x[i]
    nearby, steps = attempt(p, n, tolerance, True)
    newtons += steps
    if nearby > residual:
        for i in range(n):
            p.x[i] = p.found[i]
        velocities(p, p.x, p.w, n)
    residual = min(nearby, residual)
    if residual <= tolerance or effort <= INSIDE:
        return Outcome(residual, 2 * sweeps_of(p), newtons)
    softened = approach_by_softer_problems(p, n, tolerance, residual)
    sweeps = 2 * sweeps_of(p) + softened.sweeps
    return Outcome(softened.residual, sweeps, newtons + softened.newton)


@outlined
def approach_by_softer_problems(
    p: ComplementarityProblem, n: int, tolerance: float, residual: float
) -> Outcome:
    """Go on from x by a proximal sequence, as long as that comes nearer.

    Rows that nearly depend on each other, or contradict each other by round-off, are approached:
    each problem is softened about the solution of the one before, ever less (Rockafellar 1976).
    What contradicts stays in the residual, and impulses do not wind up.
    """
    sweeps, newtons, rho, stalls, last = 0, 0, SOFTEST, 0, math.inf
    for i in range(n):
        p.spare[i] = p.x[i]
    for stage in range(MOST_STAGES):
        add_proximal_term(p, n, rho, True)
        _, steps = attempt(p, n, 0.1 * tolerance, stage % 2 == 1)
        new = release(p, n)
        sweeps, newtons = sweeps + sweeps_of(p), newtons + steps
        if new < residual:
            residual = new
            for i in range(n):
                p.spare[i] = p.x[i]
        stalls = 0 if new <= 0.5 * last else stalls + 1
        if residual <= tolerance or stalls == MOST_STALLS:
            break
        last, rho = new, max(0.3 * rho, HARDEST)
    for i in range(n):
        p.x[i] = p.spare[i]
    velocities(p, p.x, p.w, n)
    return Outcome(residual, sweeps, newtons)


@helper
def put_lift(p: ComplementarityProblem, n: int, lift: Array) -> None:
    """What stops and contacts are lifted by so that no impulses at all solve the problem."""
    for i in range(n):
        bound, b = p.bounds[i], p.b[i]
        lift[i] = 0.0
        if bound.owner < 0:
            if bound.upper == math.inf and bound.lower > -math.inf:
                lift[i] = max(0.0, -b)
            elif bound.lower == -math.inf and bound.upper < math.inf:
                lift[i] = min(0.0, -b)
        elif bound.first == 1:
            most = bound.mu * math.fabs(b)
            if bound.count == 2:
                most = math.hypot(most, p.bounds[i + 1].mu * p.b[i + 1])
            lift[bound.owner] += most


@deferred
def lower_from_open(p: ComplementarityProblem, n: int, tolerance: float, found: Outcome) -> Outcome:
    """Solve with all stops and contacts lifted apart, and go on from there to ever less lift.

    What jams bears impulses that are many times those that press it together, far from all that
    leads there at once. If some velocity takes all that touches apart faster than friction holds
    it, problems with any lift have a solution, too. x stays where that comes no nearer.
    Source: Acary, Cadoux, Lemaréchal and Malick 2011, which shows that there is a solution then.
    """
    lift, before, asked = p.lifted[0], p.lifted[1], p.lifted[2]
    put_lift(p, n, lift)
    for i in range(n):
        before[i], asked[i], p.x[i] = p.x[i], p.right[i], 0.0
    sweeps, newtons, residual, left = found.sweeps, found.newton, math.inf, 1.0
    while left > 0.0:
        left = LIFT_LEFT * left if left > LEAST_LIFT else 0.0
        for i in range(n):
            p.b[i] = p.right[i] = asked[i] + left * lift[i]
        velocities(p, p.x, p.w, n)
        lowered = find(p, n, tolerance, ANYWHERE)
        sweeps, newtons = sweeps + lowered.sweeps, newtons + lowered.newton
        residual = lowered.residual
    if not residual < found.residual:
        residual = found.residual
        for i in range(n):
            p.x[i] = before[i]
        velocities(p, p.x, p.w, n)
    return Outcome(residual, sweeps, newtons)


@outlined
def solve_complementarity(
    p: ComplementarityProblem, n: int, tolerance: float, effort: int
) -> Outcome:
    """Solve for x, in place, from where it stands; w are the velocities there.

    Of impulses that give the same motion, those of least weighted norm are taken, or if parts.state
    says so, some near x.

    Args:
        p: Arrays of at least n rows; D and b come back as they were.
        n: Rows of this problem.
        tolerance: Residual that is enough, in units of w.
        effort: Where a solution is looked for.

    Returns:
        How it went; the residual is infinite if the problem, or where x stood, is not finite.
    """
    for i in range(n):
        p.diagonal[i], p.right[i] = p.D[i, i], p.b[i]
        p.spare[i] = p.x[i]
    before = release(p, n)
    if before == math.inf:
        return Outcome(math.inf, 0, 0)
    near = p.parts.state[NEAREST] != NOWHERE
    residual, newtons = (
        settle(p, n, tolerance, STAGES) if not near else look_next_to(p, n, tolerance, before)
    )
    if residual <= (ENOUGH if near else 1.0) * tolerance:
        return Outcome(residual, 0, newtons)
    for i in range(n):
        p.x[i] = p.spare[i]
    velocities(p, p.x, p.w, n)
    if before <= tolerance or effort == SETTLED:
        return Outcome(before, 0, newtons)
    if not near and is_convex(p, n):
        residual, steps = minimise(p, n, tolerance)
        newtons += steps
        if residual <= JUST_AS_WELL * tolerance:
            return Outcome(residual, 0, newtons)
        for i in range(n):
            p.x[i] = p.spare[i]
        velocities(p, p.x, p.w, n)
    if not near and before <= STEADY:
        residual, steps = newton(p, n, tolerance, 0, SETTLING_STEPS, ANEW)
        newtons += steps
        if residual <= tolerance:
            return Outcome(residual, 0, newtons)
    found = find(p, n, tolerance, effort)
    if found.residual > NEAR and effort == ANYWHERE and p.parts.state[USED] == 0:
        found = lower_from_open(p, n, tolerance, found)
    if near:
        return Outcome(found.residual, found.sweeps, newtons + found.newton)
    return share(p, n, tolerance, found, newtons)


@outlined
def share(
    p: ComplementarityProblem, n: int, tolerance: float, found: Outcome, before: int
) -> Outcome:
    """From a solution x to that of least weighted norm, if that solves as well.

    p.diagonal and p.right are those of the problem.
    """
    for i in range(n):
        p.spare[i] = p.x[i]
    residual, newtons = settle(p, n, max(tolerance, found.residual), STAGES)
    newtons += before + found.newton
    if residual <= max(tolerance, found.residual):
        return Outcome(residual, found.sweeps, newtons)
    for i in range(n):
        p.x[i] = p.spare[i]
    velocities(p, p.x, p.w, n)
    return Outcome(found.residual, found.sweeps, newtons)


class GivenRows(NamedTuple):
    """A problem without room to solve it."""

    D: Array
    b: Array
    bounds: Records[RowBounds]


@kernel
def natural_residual(D: Array, b: Array, bounds: Records[RowBounds], x: Array, w: Array) -> float:
    """Residual of impulses x, whose velocities go to w."""
    p = GivenRows(D, b, bounds)
    dense_velocities(p, x, w, len(b))
    return residual_at(p, x, w, len(b))
