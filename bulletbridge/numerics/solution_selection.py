"""Selection among several solutions of Coulomb's law: contacts that rest stay at rest.

Where the sharing of loads is not determined, all contacts may slide in one solution of a mixed
problem and none in another. What rests has no reason to begin, if the same load can hold it: rest
that takes more, squeezed out of rigid bodies by themselves, is not looked for.
"""

import math
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.numerics.complementarity import (
    ANYWHERE,
    LIGHTEST,
    NEARBY,
    RIM,
    SETTLED,
    SOFTER,
    Outcome,
    solve_complementarity,
)
from bulletbridge.numerics.complementarity_rows import (
    LINES,
    USED,
    ComplementarityProblem,
    Room,
    RowBounds,
    complementarity_problem,
    relaxed_sweep,
    sweep,
    velocities,
)
from bulletbridge.numerics.parts import plan_parts
from bulletbridge.numerics.records import Array, Records

AT_REST = 1e-3
"""Slip [m/s or rad/s] up to which a contact counts as resting at the start of a step."""
STARTS = 1e-9
"""Slip above which it has begun to slide."""
FROM_NOTHING, FROM_BEFORE, LONGEST = 32, 128, 512
"""Sweeps of the relaxation from no impulses, from those of the last step, and from none again if
nothing has solved; and of such as carry friction along with its normal, from none, if even then
nothing has: the relaxation ends far from where friction feeds a normal as it slides."""
JAMMED = 1e3
"""Residual, in tolerances, above which a problem counts as unsolved; another solution of one that
is all but solved may share loads in another way."""
LINES_OF_SELECTION = LINES + 3
"""Lines of room that a problem takes with what it is selected by."""
UNTRIED = Outcome(math.inf, 0, 0)
"""In the place of how an attempt went."""
SAME_LOAD = 1e-6
"""Share of the sum of all normal impulses by which rest may have more of them."""


class Selection(NamedTuple):
    """What is known of the start of a step, and room."""

    start: Array  # (n,) velocities of the rows at the start
    warm: Array  # (n,) impulses of the last step
    found: Array  # (n,) impulses of the first solution


@helper
def share_of_mu(x: float, mu: float) -> float:
    """Impulse of friction by its coefficient; zero without any."""
    return x / mu if mu > 0.0 else 0.0


@outlined
def slip_after_rest(p: Any, selection: Selection, n: int) -> float:
    """Largest slip at the end of a step among contacts that rested under load before it.

    Where friction was used up in the last step and something still moves, that slides already.
    """
    most, i = 0.0, 0
    while i < n:
        if p.bounds[i].owner < 0:
            i += 1
            continue
        slip = squared_slip(p, selection.start, selection.warm, i)
        most, i = max(most, slip), i + p.bounds[i].count
    return math.sqrt(most)


@helper
def squared_slip(p: Any, start: Array, warm: Array, i: int) -> float:
    """Squared slip at w of the cone that begins at row i; zero if it did not rest under load.

    Nor is lifting off sliding: where a body turns about an edge, what touched behind it moves
    sideways as well. ``start`` and ``warm`` are velocities at the start of the step and impulses of
    the last one.
    """
    bound = p.bounds[i]
    before = after = used = 0.0  # squared
    for k in range(i, i + bound.count):
        share = share_of_mu(warm[k], p.bounds[k].mu)
        before += start[k] * start[k]
        after += p.w[k] * p.w[k]
        used += share * share
    normal = warm[bound.owner]
    slid = before > STARTS * STARTS and used >= ((1.0 - RIM) * normal) ** 2
    loaded = normal > 0.0 and p.x[bound.owner] > 0.0
    return after if loaded and before <= AT_REST * AT_REST and not slid else 0.0


@helper
def moves(start: Array, n: int) -> bool:
    """Whether any of n rows did not rest at the start of the step."""
    for i in range(n):
        if math.fabs(start[i]) > AT_REST:
            return True
    return False


@helper
def load(p: ComplementarityProblem, n: int) -> float:
    """Sum of the normal impulses."""
    total = 0.0
    for i in range(n):
        if p.bounds[i].owner >= 0 and p.bounds[i].owner == i - 1:
            total += p.x[i - 1]
    return total


@outlined
def select_solution(
    p: ComplementarityProblem,
    selection: Selection,
    n: int,
    tolerance: float,
    first: Outcome,
    rest: bool,
) -> Outcome:
    """Solve a problem; where that fails, or resting contacts begin to slide, again from elsewhere.

    The first attempt starts from x, others where the convex relaxation leads from no impulses, then
    from those of the last step. Until one solves, the best counts; then those that solve as well,
    if less begins to slide and the load is no greater. One that is not finite is none. Without any,
    impulses are no numbers, and the step fails. Where parts are eliminated there are two attempts,
    the second of them short, and none for the sake of rest if anything in the heap moved before.

    ``first`` is how the first attempt went, if x and w are what it led to; else its residual is
    infinite. ``rest``: whether what begins to slide is a reason to go on.
    """
    residual, slip, most, sweeps, newtons = math.inf, math.inf, math.inf, 0, 0
    jammed, many = JAMMED * tolerance, p.parts.state[USED] == 1
    moving = many and moves(selection.start, n)
    for attempt in range(2 if many else 5):
        if attempt > 0:
            count = FROM_BEFORE if attempt == 2 else FROM_NOTHING if attempt == 1 else LONGEST
            for i in range(n):
                p.x[i] = selection.warm[i] if attempt == 2 else 0.0
            if attempt == 4:
                sweep(p, n, True, count)
            else:
                for _ in range(count):
                    relaxed_sweep(p, n)
            sweeps += count
        outcome = first
        if attempt > 0 or first.residual == math.inf:
            effort = ANYWHERE if attempt == 0 else NEARBY if residual <= jammed else SOFTER
            if many and attempt > 0:
                effort = SETTLED
            outcome = solve_complementarity(p, n, tolerance, effort)
        sweeps, newtons = sweeps + outcome.sweeps, newtons + outcome.newton
        if outcome.residual == math.inf:
            continue
        slipping, loaded = slip_after_rest(p, selection, n), load(p, n)
        better = outcome.residual < residual
        if residual <= jammed:
            as_well = outcome.residual <= max(residual, tolerance)
            better = as_well and slipping < 0.5 * slip and loaded <= most
        if better:
            residual, slip, most = outcome.residual, slipping, (1.0 + SAME_LOAD) * loaded
            for i in range(n):
                selection.found[i] = p.x[i]
        done = moving or not rest or slip <= max(STARTS, residual) or attempt >= 2
        if residual <= jammed and done:
            break
    for i in range(n):
        p.x[i] = selection.found[i] if residual < math.inf else math.nan
    velocities(p, p.x, p.w, n)
    return Outcome(residual, sweeps, newtons)


@kernel
def solve_resting_problem(
    D: Array,
    b: Array,
    bounds: Records[RowBounds],
    x: Array,
    w: Array,
    room: Room,
    tolerance: float,
) -> float:
    """Run ``select_solution`` from x, in place; its residual. Room of LINES_OF_SELECTION lines."""
    p = complementarity_problem(D, b, bounds, x, w, room)
    plan_parts(p, len(b))
    more = room.vectors[LINES:]
    selection = Selection(more[0], more[1], more[2])
    for i in range(len(b)):
        p.weights[i], p.centre[i], selection.warm[i] = LIGHTEST * D[i, i], 0.0, x[i]
    return select_solution(p, selection, len(b), tolerance, UNTRIED, True).residual
