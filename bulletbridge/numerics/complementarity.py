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
it stays as near to the least norm as the weights are small.
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.numerics.complementarity_rows import (
    ComplementarityProblem,
    RowBounds,
    clip,
    complementarity_problem,
    cone_scale,
    residual_at,
    scaled,
    sweep,
    velocities,
)
from bulletbridge.numerics.records import Array, Records

SWEEPS = 8
"""Sweeps of Gauss-Seidel before each attempt with Newton."""
NEWTON_STEPS, SETTLING_STEPS = 12, 6
"""The most at once, and of those that look for the least norm: where friction is used up though
nothing slides, they go back and forth."""
SOFTEST, HARDEST, MOST_STAGES = 1e-2, 1e-8, 20
"""Proximal sequence: first and last share of the diagonal, problems."""
LIGHTEST = 1e-11
"""Weight, as a share of the diagonal, of the row whose impulse costs least: what dependent rows
get is then known to a hundred-thousandth, and softness disappears in a pass or two."""
MOST_PASSES = 20
"""Most passes of the sequence that takes the softness of the weights away."""


class Outcome(NamedTuple):
    """How a solve went."""

    residual: float  # largest violation, in units of w
    sweeps: int
    newton: int


@helper
def put_bound_row(p: ComplementarityProblem, i: int, n: int, value: float) -> None:
    """Newton row: x_i goes to a value."""
    for j in range(n):
        p.A[i, j] = 0.0
    p.A[i, i] = 1.0
    p.step[i] = value - p.x[i]


@helper
def put_sticking_rows(p: ComplementarityProblem, i: int, n: int, regularisation: float) -> None:
    """Newton row: w_i goes to zero; ``regularisation`` makes up for dependent rows."""
    for j in range(n):
        p.A[i, j] = p.D[i, j]
    p.A[i, i] += regularisation
    p.step[i] = -p.w[i]


@helper
def put_sliding_rows(
    p: ComplementarityProblem, i: int, n: int, d: float, first: float, second: float, length: float
) -> None:
    """Newton rows of a cone at its rim: z = r p/|p| with z = x/mu, p = z - mu w/d."""
    bound = p.bounds[i]
    radius = max(0.0, p.x[bound.owner])
    grows = 1.0 if p.x[bound.owner] > 0.0 else 0.0
    share = radius / length
    direction = (first / length, second / length)
    for k in range(bound.count):
        mu = p.bounds[i + k].mu
        if not mu > 0.0:
            put_bound_row(p, i + k, n, 0.0)
            continue
        for j in range(n):
            p.A[i + k, j] = 0.0
        p.A[i + k, i + k] = 1.0 / mu
        p.A[i + k, bound.owner] -= grows * direction[k]
        for m in range(bound.count):
            other = p.bounds[i + m].mu
            if not other > 0.0:
                continue
            across = share * ((1.0 if m == k else 0.0) - direction[k] * direction[m])
            p.A[i + k, i + m] -= across / other
            for j in range(n):
                p.A[i + k, j] += across * other / d * p.D[i + m, j]
        p.step[i + k] = radius * direction[k] - p.x[i + k] / mu


@outlined
def solve_dense(A: Array, b: Array, n: int) -> bool:
    """b <- A⁻¹ b by elimination with partial pivoting; A is lost. False for a singular matrix."""
    for k in range(n):
        best, most = k, math.fabs(A[k, k])
        for i in range(k + 1, n):
            if math.fabs(A[i, k]) > most:
                best, most = i, math.fabs(A[i, k])
        if not most > 0.0:
            return False
        if best != k:
            for j in range(k, n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
            b[k], b[best] = b[best], b[k]
        for i in range(k + 1, n):
            s = A[i, k] / A[k, k]
            if s != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= s * A[k, j]
                b[i] -= s * b[k]
    for k in range(n - 1, -1, -1):
        total = b[k]
        for j in range(k + 1, n):
            total -= A[k, j] * b[j]
        b[k] = total / A[k, k]
    return True


@outlined
def newton_direction(p: ComplementarityProblem, n: int, regularisation: float) -> bool:
    """Semismooth Newton step of the natural map into step; w belongs to x."""
    i = 0
    while i < n:
        bound = p.bounds[i]
        if bound.owner < 0:
            d = p.D[i, i]
            wanted = p.x[i] - p.w[i] / d if d > 0.0 else p.x[i]
            if not d > 0.0 or not bound.lower <= wanted <= bound.upper:
                put_bound_row(p, i, n, clip(bound, wanted))
            else:
                put_sticking_rows(p, i, n, regularisation)
            i += 1
            continue
        d = cone_scale(p, i)
        first, second, length = (0.0, 0.0, 0.0)
        if d > 0.0:
            first, second, length = scaled(p, i, d, p.x, p.w)
        radius = max(0.0, p.x[bound.owner])
        if d > 0.0 and length > radius:
            put_sliding_rows(p, i, n, d, first, second, length)
        else:
            for k in range(bound.count):
                if d > 0.0 and p.bounds[i + k].mu > 0.0:
                    put_sticking_rows(p, i + k, n, regularisation)
                else:
                    put_bound_row(p, i + k, n, 0.0)
        i += bound.count
    return solve_dense(p.A, p.step, n)


@outlined
def newton(
    p: ComplementarityProblem, n: int, tolerance: float, least: int, most: int
) -> tuple[float, int]:
    """Newton from x, which ends where the residual was least; that and the steps taken.

    Steps are not damped: active sets that change make the residual rise before it falls. ``least``
    to ``most`` of them are taken; where none has to be, the problem is not softened.
    """
    velocities(p, p.x, p.w, n)
    residual = residual_at(p, p.x, p.w, n)
    if residual == math.inf:
        return residual, 0
    for i in range(n):
        p.best[i] = p.x[i]
    regularisation = 0.0
    if least == 0:
        for i in range(n):
            regularisation = max(regularisation, LIGHTEST * p.D[i, i])
    for count in range(most):
        if residual <= tolerance and count >= least:
            return residual, count
        if not newton_direction(p, n, regularisation):
            break
        for i in range(n):
            p.x[i] += p.step[i]
        velocities(p, p.x, p.w, n)
        new = residual_at(p, p.x, p.w, n)
        if new < residual or (count < least and new <= tolerance):
            residual = new
            for i in range(n):
                p.best[i] = p.x[i]
    for i in range(n):
        p.x[i] = p.best[i]
    velocities(p, p.x, p.w, n)
    return residual, most


@helper
def add_proximal_term(p: ComplementarityProblem, n: int, rho: float, at_x: bool) -> None:
    """Make every row softer, measured from where x is now or from the centre.

    By rho times its diagonal; for zero by its weight.
    """
    for i in range(n):
        softness = rho * p.diagonal[i] if rho > 0.0 else p.weights[i]
        p.D[i, i] = p.diagonal[i] + softness
        p.b[i] = p.right[i] - softness * (p.x[i] if at_x else p.centre[i])


@helper
def release(p: ComplementarityProblem, n: int) -> float:
    """Take all softness away; the residual at x, whose velocities are computed."""
    for i in range(n):
        p.D[i, i], p.b[i] = p.diagonal[i], p.right[i]
    velocities(p, p.x, p.w, n)
    return residual_at(p, p.x, p.w, n)


@outlined
def attempt(p: ComplementarityProblem, n: int, tolerance: float, along: bool) -> tuple[float, int]:
    """Gauss-Seidel, then Newton from where that has come; residual and steps of Newton."""
    for _ in range(SWEEPS):
        sweep(p, n, along)
    return newton(p, n, tolerance, 0, NEWTON_STEPS)


@outlined
def settle(p: ComplementarityProblem, n: int, tolerance: float) -> tuple[float, int]:
    """Newton for the solution of least weighted norm, from x; residual and steps.

    p.diagonal and p.right are those of the problem, which comes back as it was.
    """
    add_proximal_term(p, n, 0.0, False)
    softened, newtons = newton(p, n, tolerance, 1, SETTLING_STEPS)
    residual = release(p, n)
    for _ in range(MOST_PASSES):
        if residual <= tolerance or not softened <= tolerance:
            break
        add_proximal_term(p, n, 0.0, True)
        softened, steps = newton(p, n, 0.1 * tolerance, 1, SETTLING_STEPS)
        new = release(p, n)
        newtons += steps
        if not new < 0.9 * residual:
            return min(new, residual), newtons
        residual = new
    return residual, newtons


@outlined
def find(p: ComplementarityProblem, n: int, tolerance: float, stages: int) -> Outcome:
    """Solve from x by sweeps and Newton, and by a sequence of softer problems where that fails.

    Rows that nearly depend on each other, or contradict each other by round-off, are approached by
    a proximal sequence: each problem is softened about the solution of the one before, ever less
    (Rockafellar 1976). What contradicts stays in the residual, and impulses do not wind up.
    """
    residual, sweeps, newtons, rho = math.inf, 0, 0, SOFTEST
    for along in (False, True):
        residual, steps = attempt(p, n, tolerance, along)
        sweeps, newtons = sweeps + SWEEPS, newtons + steps
        if residual <= tolerance:
            break
    for stage in range(stages):
        if residual <= tolerance:
            break
        add_proximal_term(p, n, rho, True)
        _, steps = attempt(p, n, 0.1 * tolerance, stage % 2 == 1)
        new = release(p, n)
        sweeps, newtons = sweeps + SWEEPS, newtons + steps
        stalled = rho <= HARDEST and new > 0.5 * residual
        residual = new
        if stalled:
            break
        rho = max(0.3 * rho, HARDEST)
    return Outcome(residual, sweeps, newtons)


@outlined
def solve_complementarity(
    p: ComplementarityProblem, n: int, tolerance: float, stages: int
) -> Outcome:
    """Solve for x, in place, from where it stands; w are the velocities there.

    Of impulses that give the same motion, those of least weighted norm are taken.

    Args:
        p: Arrays of at least n rows; D and b come back as they were.
        n: Rows of this problem.
        tolerance: Residual that is enough, in units of w.
        stages: The most softer problems that are solved on the way, MOST_STAGES or fewer.

    Returns:
        How it went; the residual is infinite if the problem, or where x stood, is not finite.
    """
    for i in range(n):
        p.diagonal[i], p.right[i] = p.D[i, i], p.b[i]
        p.spare[i] = p.x[i]
    before = release(p, n)
    if before == math.inf:
        return Outcome(math.inf, 0, 0)
    residual, newtons = settle(p, n, tolerance)
    if residual <= tolerance:
        return Outcome(residual, 0, newtons)
    for i in range(n):
        p.x[i] = p.spare[i]
    if before <= tolerance:
        velocities(p, p.x, p.w, n)
        return Outcome(before, 0, newtons)
    found = find(p, n, tolerance, stages)
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
    residual, newtons = settle(p, n, max(tolerance, found.residual))
    newtons += before + found.newton
    if residual <= max(tolerance, found.residual):
        return Outcome(residual, found.sweeps, newtons)
    for i in range(n):
        p.x[i] = p.spare[i]
    velocities(p, p.x, p.w, n)
    return Outcome(found.residual, found.sweeps, newtons)


@kernel
def solve_alone(
    D: Array,
    b: Array,
    bounds: Records[RowBounds],
    x: Array,
    w: Array,
    A: Array,
    vectors: Array,
    tolerance: float,
) -> tuple[float, int, int]:
    """A problem on its own, rows weighted alike; scratch A (n, n), vectors (ROOM, n)."""
    p = complementarity_problem(D, b, bounds, x, w, A, vectors)
    for i in range(len(b)):
        p.weights[i], p.centre[i] = LIGHTEST * D[i, i], 0.0
    o = solve_complementarity(p, len(b), tolerance, MOST_STAGES)
    return o.residual, o.sweeps, o.newton


@kernel
def natural_residual(
    D: Array, b: Array, bounds: Records[RowBounds], x: Array, w: Array, vectors: Array
) -> float:
    """Residual of impulses x, whose velocities go to w; vectors (ROOM, n) scratch."""
    p = complementarity_problem(D, b, bounds, x, w, D, vectors)
    velocities(p, x, w, len(b))
    return residual_at(p, x, w, len(b))
