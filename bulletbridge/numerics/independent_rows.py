"""Bounded rows of which none follows from others: a few sets of linear equations.

What motors, friction and limits of joints exert is determined then, and no norm has to choose: rows
between their bounds are equations, with the factors of which others can be told to be independent
too.
"""

import math

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.complementarity import (
    Outcome,
    factorise_bordered,
    solve_bordered,
)
from bulletbridge.numerics.complementarity_rows import (
    ComplementarityProblem,
    clip,
    dense_velocities,
    residual_at,
)

INDEPENDENT = 1e5
"""Times its weight that other rows must leave of a row's own diagonal. Weights are a hundred
billionth of that and more, so it is a millionth at least: what the norm of impulses, and
``sharing.agree``, would change is then within round-off."""
ATTEMPTS = 6
"""Sets of rows at their bounds that are tried, as many as ``settle`` takes steps."""


@outlined
def solve_independent(
    p: ComplementarityProblem, n: int, motors: int, freedoms: int, tolerance: float
) -> Outcome:
    """Solve for x from x, w with it, if no other x would do as well.

    The residual is infinite where another might, or none was found; x is what it was then.

    Args:
        p: A problem with its weights, without cones.
        n: Its rows.
        motors: The first of them, which have to be independent of each other at bounds, too.
        freedoms: The most rows that can be independent.
        tolerance: Residual that is enough.
    """
    for i in range(n):
        p.best[i], p.kinds[i] = p.x[i], -1.0
    dense_velocities(p, p.x, p.w, n)
    count, outcome = 0, math.inf
    while count < ATTEMPTS and outcome == math.inf:
        count += 1
        m, same = 0, True
        for i in range(n):
            d = p.D[i, i]
            p.line[i] = p.x[i] - p.w[i] / d if d > 0.0 else p.x[i]  # what would stop it
            within = p.bounds[i].lower <= p.line[i] <= p.bounds[i].upper
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
                if p.D[i, i] > 0.0:
                    p.x[i] = 0.0 if p.kinds[i] > 0.0 else clip(p.bounds[i], p.line[i])
            dense_velocities(p, p.x, p.w, n)
            if motors_to_tell_apart(p, motors) > 1 and not factorise_independent(p, motors, False):
                break
            if not factorise_independent(p, m, True):
                break
        for r in range(m):
            p.line[r] = -p.w[int(p.free[r])]
        solve_bordered(p.A, p.line, m, m, p.pivots)
        for r in range(m):
            p.x[int(p.free[r])] += p.line[r]
        dense_velocities(p, p.x, p.w, n)
        residual = residual_at(p, p.x, p.w, n)
        if residual <= tolerance:
            outcome = residual
        elif not residual < math.inf:
            break
    for i in range(n):  # what neither pushes nor gives way may push as well
        if p.kinds[i] == 0.0 and p.D[i, i] > 0.0 and not math.fabs(p.w[i]) > tolerance:
            outcome = math.inf
    if outcome == math.inf:
        for i in range(n):
            p.x[i] = p.best[i]
    return Outcome(outcome, 0, count)


@helper
def motors_to_tell_apart(p: ComplementarityProblem, motors: int) -> int:
    """Number of motors, if any is at a bound: else they are among the rows that are free."""
    for i in range(motors):
        if p.kinds[i] == 0.0 and p.D[i, i] > 0.0:
            return motors
    return 0


@outlined
def factorise_independent(p: ComplementarityProblem, m: int, free: bool) -> bool:
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
        for c in range(r, count):
            p.A[r, c] = p.D[i, int(p.line[c])]
    if not factorise_bordered(p.A, count, count, p.pivots):
        return False
    for r in range(count):
        if not p.A[r, r] * INDEPENDENT * p.weights[int(p.line[r])] < 1.0:
            return False
    return True
