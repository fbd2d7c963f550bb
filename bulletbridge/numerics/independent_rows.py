"""Bounded rows of which none follows from others: a few sets of linear equations.

What motors, friction and limits of joints exert is determined then, and no norm has to choose: rows
between their bounds are equations, with the factors of which others can be told to be independent
too. Of many rows on few freedoms D, which is C Cᵀ and a diagonal, is not formed.
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.complementarity import (
    Outcome,
    factorise_bordered,
    solve_bordered,
)
from bulletbridge.numerics.complementarity_rows import (
    FORMED,
    ComplementarityProblem,
    clip,
    dense_velocities,
    residual_at,
)
from bulletbridge.numerics.records import Array

INDEPENDENT = 1e5
"""Times its weight that other rows must leave of a row's own diagonal. Weights are a hundred
billionth of that and more, so it is a millionth at least: what the norm of impulses, and
``sharing.agree``, would change is then within round-off."""
ALIKE = 1.0 - 1e-12
"""Squared share of a row that another moves by, from which on both move alike: what a millionth of
a radian between them makes of impulses is measured when these are known."""
LOW, HIGH, RATE = 1, 2, 3
"""Lines of ``slopes`` with the first coordinate of each row of C, and that after its last, beside
those that any may be on; and with what each is asked for, over its length."""
CLOSE = 1e-9
"""Share of what a row is asked for by which another that moves alike is asked for otherwise by
round-off."""
ATTEMPTS = 6
"""Sets of rows at their bounds that are tried, as many as ``settle`` takes steps."""


class Bundles(NamedTuple):
    """Rows that move alike, of which the first stands for all; lines of a problem.

    Its impulse is the sum of theirs, each times its share, while the others have none.
    """

    leader: Array  # (n,) row that stands for each, mostly itself
    share: Array  # (n,) of what that moves by, which each moves by
    lower: Array  # (n,) bounds of the sum
    upper: Array  # (n,)
    weights: Array  # (n,) of the squared sum
    next: Array  # (n,) the next row that the same one stands for, or -1; the first of its own


@outlined
def put_lengths(p: ComplementarityProblem, n: int, common: int) -> None:
    """The diagonal of D alone, of n rows of C, of which it is known on which coordinates each is.

    ``common``: coordinates that any may be on, before all others.
    """
    p.parts.state[FORMED] = 0
    for i in range(n):
        p.D[i, i] = p.parts.own[i] = along_row(p, i, p.parts.C[i], common)


@helper
def along_row(p: ComplementarityProblem, i: int, y: Array, common: int) -> float:
    """What row i of C moves by at the coordinates y."""
    total, row = 0.0, p.parts.C[i]
    for k in range(common):
        total += row[k] * y[k]
    for k in range(int(p.slopes[LOW, i]), int(p.slopes[HIGH, i])):
        total += row[k] * y[k]
    return total


@helper
def product(p: ComplementarityProblem, i: int, j: int, common: int) -> float:
    """D[i, j] of two rows."""
    if p.parts.state[FORMED] == 1:
        return p.D[i, j]
    total, C = 0.0, p.parts.C
    for k in range(common):
        total += C[i, k] * C[j, k]
    begin = int(max(p.slopes[LOW, i], p.slopes[LOW, j]))
    for k in range(begin, int(min(p.slopes[HIGH, i], p.slopes[HIGH, j]))):
        total += C[i, k] * C[j, k]
    return total


@outlined
def put_rates_of_rows(p: ComplementarityProblem, n: int, common: int) -> None:
    """Write the velocities of n rows at x into w."""
    if p.parts.state[FORMED] == 1:
        dense_velocities(p, p.x, p.w, n)
        return
    y = p.parts.y
    for k in range(len(y)):
        y[k] = 0.0
    for i in range(n):
        x, row = p.x[i], p.parts.C[i]
        if x != 0.0:
            for k in range(common):
                y[k] += x * row[k]
            for k in range(int(p.slopes[LOW, i]), int(p.slopes[HIGH, i])):
                y[k] += x * row[k]
    for i in range(n):
        p.w[i] = p.b[i] + (p.D[i, i] - p.parts.own[i]) * p.x[i] + along_row(p, i, y, common)


@outlined
def bundle(
    p: ComplementarityProblem, g: Bundles, first: int, n: int, common: int, tolerance: float
) -> None:
    """Find which of the rows from ``first`` on move alike and are asked for the same.

    Friction of joints that couplings join, or loops of one freedom, is such. What is not limited on
    either side, as a joint at its limit, stays by itself.
    """
    per, leaders, count, formed = p.step, p.free, 0, p.parts.state[FORMED] == 1
    for i in range(n):
        bound = p.bounds[i]
        g.leader[i], g.share[i], g.weights[i] = i, 1.0, p.weights[i]
        g.lower[i], g.upper[i] = bound.lower, bound.upper
        limited = -math.inf < bound.lower <= 0.0 <= bound.upper < math.inf
        per[i] = 1.0 / p.D[i, i] if i >= first and limited and p.D[i, i] > 0.0 else 0.0
    for i in range(first, n):
        most, least, near = math.inf, ALIKE * p.D[i, i], math.inf
        if formed:
            most = 0.0
            for j in range(i):
                most = max(most, p.D[i, j] * p.D[i, j] * per[j])
        else:
            p.slopes[RATE, i] = math.fabs(p.b[i]) * math.sqrt(per[i])
            near = tolerance * math.sqrt(per[i]) + CLOSE * p.slopes[RATE, i]
        for k in range(count if most > least and per[i] > 0.0 else 0):
            j = int(leaders[k])
            if not formed and math.fabs(p.slopes[RATE, i] - p.slopes[RATE, j]) > near:
                continue
            along = product(p, i, j, common)
            share = along * per[j]
            same = math.fabs(p.b[i] - share * p.b[j]) <= tolerance
            if same and along * share > least:
                one, other = share * g.lower[i], share * g.upper[i]
                g.leader[i], g.share[i] = j, share
                g.lower[j] += min(one, other)
                g.upper[j] += max(one, other)
                more = share * share * g.weights[j] / p.weights[i]
                g.weights[j] /= 1.0 + more
                break
        if g.leader[i] == i:
            leaders[count] = i
            count += 1
    for i in range(n):
        g.next[i] = -1.0
    for i in range(n - 1, first, -1):
        j = int(g.leader[i])
        if j != i:
            g.next[i], g.next[j] = g.next[j], i


@helper
def gather(p: ComplementarityProblem, g: Bundles, n: int) -> bool:
    """Have rows that stand for others exert what these do; whether there are any."""
    any_do = False
    for i in range(n):
        j = int(g.leader[i])
        if j != i:
            p.x[j] += g.share[i] * p.x[i]
            p.x[i], any_do = 0.0, True
    return any_do


@outlined
def distribute(p: ComplementarityProblem, g: Bundles, n: int) -> None:
    """Share out what rows exert for others, for the least norm that bounds allow.

    Each has the same multiple of its share over its weight, or is at a bound: their sum grows ever
    slower with that multiple, which Newton's method does not pass.
    """
    for j in range(n):
        if g.leader[j] != j or g.next[j] < 0.0:
            continue
        multiple, wanted, members, turns = 0.0, p.x[j], 1, 0
        side = 1.0 if wanted >= g.upper[j] else 0.0
        if wanted <= g.lower[j]:
            side -= 1.0
        if side != 0.0:  # all of them are at theirs
            members = 0
        while turns < members:
            total, slope, members, i = 0.0, 0.0, 0, j
            while i >= 0:
                alone = multiple * g.share[i] / p.weights[i]
                p.x[i] = clip(p.bounds[i], alone)
                total += g.share[i] * p.x[i]
                slope += g.share[i] ** 2 / p.weights[i] if p.x[i] == alone else 0.0
                members += 1
                i = int(g.next[i])
            turns += 1
            further = (wanted - total) / slope if slope > 0.0 else 0.0
            if further == 0.0:
                break
            multiple += further
        i = j
        while i >= 0:
            p.x[i] = clip(p.bounds[i], multiple * g.share[i] / p.weights[i])
            if side != 0.0:
                p.x[i] = p.bounds[i].upper if side * g.share[i] > 0.0 else p.bounds[i].lower
            i = int(g.next[i])


@outlined
def solve_independent(
    p: ComplementarityProblem, n: int, motors: int, freedoms: int, common: int, tolerance: float
) -> Outcome:
    """Solve for x from x, w with it, if no other x would do as well, or the norm shares it out.

    The residual is infinite where another might, or none was found; x is what it was then.

    Args:
        p: A problem with its weights, without cones.
        n: Its rows.
        motors: The first of them, which have to be independent of each other at bounds, too.
        freedoms: The most rows that can be independent.
        common: Where D is not formed, coordinates that any row of C may be on; see ``put_lengths``.
        tolerance: Residual that is enough.
    """
    g = Bundles(p.lifted[0], p.lifted[1], p.lifted[2], p.known, p.found, p.slopes[0])
    bundle(p, g, motors, n, common, tolerance)
    for i in range(n):
        p.best[i], p.kinds[i] = p.x[i], -1.0
    several = gather(p, g, n)
    put_rates_of_rows(p, n, common)
    count, outcome = 0, math.inf
    while count < ATTEMPTS and outcome == math.inf:
        count += 1
        m, same = 0, True
        for i in range(n):
            d = p.D[i, i]
            p.line[i] = p.x[i] - p.w[i] / d if d > 0.0 else p.x[i]  # what would stop it
            within = g.lower[i] <= p.line[i] <= g.upper[i] and g.leader[i] == i
            kind = 1.0 if d > 0.0 and within else 0.0
            same = same and kind == p.kinds[i]
            p.kinds[i] = kind
            if kind > 0.0:
                p.free[m] = i
                m += 1
        if m > freedoms:
            break
        if not same:  # from there, so that no rounding of x remains
            for i in range(n):
                if p.D[i, i] > 0.0 and g.leader[i] == i:
                    at_bound = min(max(p.line[i], g.lower[i]), g.upper[i])
                    p.x[i] = 0.0 if p.kinds[i] > 0.0 else at_bound
            put_rates_of_rows(p, n, common)
            apart = motors_to_tell_apart(p, motors) > 1
            if apart and not factorise_independent(p, g.weights, motors, common, False):
                break
            if not factorise_independent(p, g.weights, m, common, True):
                break
        for r in range(m):
            p.line[r] = -p.w[int(p.free[r])]
        solve_bordered(p.A, p.line, m, m, p.pivots)
        for r in range(m):
            p.x[int(p.free[r])] += p.line[r]
        put_rates_of_rows(p, n, common)
        residual = residual_of_leaders(p, g, n)
        if residual <= tolerance:
            outcome = residual
        elif not residual < math.inf:
            break
    for i in range(n):  # what neither pushes nor gives way may push as well
        alone = g.leader[i] == i and p.kinds[i] == 0.0 and p.D[i, i] > 0.0
        if alone and not math.fabs(p.w[i]) > tolerance:
            outcome = math.inf
    if several and outcome < math.inf:
        distribute(p, g, n)
        put_rates_of_rows(p, n, common)
        outcome = residual_at(p, p.x, p.w, n)
        outcome = outcome if outcome <= tolerance else math.inf
    if outcome == math.inf:
        for i in range(n):
            p.x[i] = p.best[i]
    return Outcome(outcome, 0, count)


@helper
def residual_of_leaders(p: ComplementarityProblem, g: Bundles, n: int) -> float:
    """``residual_at`` of bounded rows, of which some stand for others."""
    worst, total = 0.0, 0.0
    for i in range(n):
        d = p.D[i, i]
        total += p.w[i]
        if d > 0.0 and g.leader[i] == i:
            to = min(max(p.x[i] - p.w[i] / d, g.lower[i]), g.upper[i])
            worst = max(worst, d * math.fabs(p.x[i] - to))
    return worst if math.fabs(total) < math.inf else math.inf


@helper
def motors_to_tell_apart(p: ComplementarityProblem, motors: int) -> int:
    """Number of motors, if any is at a bound: else they are among the rows that are free."""
    for i in range(motors):
        if p.kinds[i] == 0.0 and p.D[i, i] > 0.0:
            return motors
    return 0


@outlined
def factorise_independent(
    p: ComplementarityProblem, weights: Array, m: int, common: int, free: bool
) -> bool:
    """Factors into p.A of D of the m rows in p.free, or else of the first m that anything moves.

    Returns:
        Whether they are independent.
    """
    count = 0
    for r in range(m):
        i = int(p.free[r]) if free else r
        if p.D[i, i] > 0.0:
            p.line[count] = i
            count += 1
    for r in range(count):
        i = int(p.line[r])
        p.A[r, r] = p.D[i, i]
        if p.parts.state[FORMED] == 1:
            for c in range(r + 1, count):
                p.A[r, c] = p.D[i, int(p.line[c])]
        else:
            for c in range(r + 1, count):
                p.A[r, c] = product(p, i, int(p.line[c]), common)
    if not factorise_bordered(p.A, count, count, p.pivots):
        return False
    for r in range(count):
        if not p.A[r, r] * INDEPENDENT * weights[int(p.line[r])] < 1.0:
            return False
    return True
