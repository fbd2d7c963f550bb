"""Sharing between rows that can do the same: weights of impulses, and demands that agree.

Where loops join what motors drive, there are more motors than freedoms. What they ask for then
contradicts itself, if only by round-off, and infinitely many impulses give one motion. Both are
settled by one norm: impulses count as shares of what each row can do.
"""

import math
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.complementarity import (
    ANEW,
    JUST_AS_WELL,
    LESS,
    LIGHTEST,
    NEWTON_STEPS,
    RIM,
    STAGES,
    STEADY,
    Outcome,
    add_proximal_term,
    factorise_bordered,
    follow_smoothed_path,
    newton,
    release,
    settle,
    share,
)
from bulletbridge.numerics.complementarity_rows import (
    ComplementarityProblem,
    cone_scale,
    scaled,
    velocities,
)
from bulletbridge.numerics.projection import project_first_out
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.solution_selection import JAMMED

AMPLE = 1e4
"""Times what is needed, as which a stronger motor counts."""
HEAVIEST = 1e6
"""Ratio of the largest to the smallest weight in the norm of impulses, where it makes rows soft."""
INDEPENDENT = 1e-8
"""Share of a row's own direction, squared, from which on it can be told apart from others by what
they move. What motors could do with ten thousand times the usual effort is not asked of them."""
MOSTLY = 0.5
"""Share of what its impulse moves a row by that those before it must leave for it to be clearly
independent of them."""
GIVES = 0.01
"""Share of the velocity that its impulse alone would give it, by which a motor gives way to what
contradicts it: in a step it is a hundred times as stiff as what it moves is heavy."""
SOFT, FINER, MISSED = 1e-4, 2.0**-7, 1e-6
"""Share of its diagonal by which a motor is softer where others contradict it by little; share of
the weights that what is left is solved by, since some of it hardly moves anything; and share of the
largest velocity by which motors may miss what they ask for then and count as rigid."""
ROUNDS, HARDEST_AT_FIRST, HARDER = 12, 1e-8, 0.1
"""Attempts to find the rows that hold, the least softness of the problems that show them, and its
share from one to the next."""
STRONGER, TURNS = 1e3, 3
"""Times as strong as the strongest motor a row that holds counts, and how often what it gives way
by is asked of the motors again."""


class Sharing(NamedTuple):
    """What motors ask for, what holds, and room."""

    asked: Array  # (rows,) b before others are considered
    holds: Array  # (rows,) 1 for rows at which x is not at a bound; -1 where that is no matter
    strength: Array  # (rows,)
    start: Array  # (rows,) impulses
    gave: Array  # (rows,) what b was changed by


class Softness(NamedTuple):
    """How rows that hold are found."""

    rho: float  # how soft the problem is, as a share of the diagonal
    rim: float  # share of a cone's radius by which friction may be beyond it and holds


@outlined
def weigh(p: Any, first: int, loaded: int, n: int, heaviest: float) -> None:
    """Weights of the norm: motors by their bounds, limits and contacts by what is needed.

    Impulses count as shares of a motor's largest, or of that which alone would do what is hardest
    for any limit or contact: E = max b²/D, x² <= E/D. A motor that is far too strong counts as
    AMPLE times what the hardest row needs.

    Args:
        p: The problem.
        first: Its first row.
        loaded: The first of limits and contacts.
        n: The row after its last.
        heaviest: Ratio of the largest to the smallest weight.
    """
    need, hardest, most = 0.0, 0.0, 0.0
    for i in range(first, n):
        d = p.D[i, i]
        if not d > 0.0 or p.bounds[i].owner >= 0:
            continue
        alone, bound = p.b[i] * p.b[i] / d, min(p.bounds[i].upper, -p.bounds[i].lower)
        if i < loaded:
            alone = min(alone, bound * bound * d)
        elif p.b[i] < 0.0 < p.bounds[i].upper or p.b[i] > 0.0 > p.bounds[i].lower:
            hardest = max(hardest, alone)
        need = max(need, alone)
    for i in range(first, n):
        d, bound = p.D[i, i], p.bounds[i].upper
        ample = AMPLE * AMPLE * need
        p.weights[i] = (
            max(hardest, need / heaviest) if i >= loaded else min(bound * bound * d, ample)
        )
        most = max(most, p.weights[i])
    for i in range(first, n):
        ratio = most / p.weights[i] if p.weights[i] > 0.0 else 1.0
        p.weights[i] = LIGHTEST * min(ratio, heaviest) * p.D[i, i]


@outlined
def settle_yielding(
    p: ComplementarityProblem, s: Sharing, motors: int, n: int, tolerance: float, yields: bool
) -> tuple[Outcome, bool]:
    """Solve for the least norm from x; motors may miss what they ask for, if by next to nothing.

    Feet that stand contradict motors by how well these are where they were asked to be. To meet
    both would take all the friction there is, of forces that nothing asked for: what hardly moves
    anything has impulses without end. So what soft motors miss, beside rows that hold, is taken
    from what they ask for, and of what is left there is a solution. ``yields``: whether that is
    likely.

    Returns:
        How x solves the problem with what motors then do, and whether they were looked at so;
        where that is not enough the residual is infinite, and x what it was.
    """
    asked, missed, residual, steps = 0.0, 0.0, math.inf, 0
    for i in range(n):
        p.diagonal[i], p.right[i], p.spare[i] = p.D[i, i], p.b[i], p.x[i]
        s.asked[i], s.strength[i], asked = p.b[i], p.weights[i], max(asked, math.fabs(p.b[i]))
        s.start[i] = p.x[i] if yields else 0.0
    if not yields:
        residual, steps = settle(p, n, tolerance, 1)
    yields = residual > JUST_AS_WELL * tolerance
    if yields:
        for i in range(n):
            p.x[i] = p.spare[i]
        missed, more = miss(p, s, motors, n, tolerance)
        steps += more
        if missed <= MISSED * asked:
            for i in range(n):
                p.weights[i], p.centre[i] = FINER * s.strength[i], 0.0
            residual, more = settle(p, n, tolerance, 1)
            steps += more
            if tolerance < residual <= STEADY:
                for i in range(n):
                    s.start[i] = p.x[i]
                more_missed, more = miss(p, s, motors, n, tolerance)
                missed, steps, residual = missed + more_missed, steps + more, release(p, n)
        for i in range(n):
            p.b[i], p.weights[i], p.centre[i] = s.asked[i], s.strength[i], 0.0
    if residual <= JUST_AS_WELL * tolerance and missed <= MISSED * asked:
        return Outcome(residual, 0, steps), yields
    for i in range(n):
        p.x[i] = p.spare[i]
    return Outcome(math.inf, 0, steps), False


@outlined
def miss(
    p: ComplementarityProblem, s: Sharing, motors: int, n: int, tolerance: float
) -> tuple[float, int]:
    """Take what soft motors miss about s.start from p.right; the most of it, and Newton's steps."""
    for i in range(n):
        p.centre[i] = s.start[i]
        p.weights[i] = SOFT * p.D[i, i] if i < motors else LESS * s.strength[i]
    _, steps = settle(p, n, tolerance, 1)
    most = 0.0
    for i in range(motors):
        if p.bounds[i].lower < p.x[i] < p.bounds[i].upper:
            p.right[i] -= p.w[i]
            most = max(most, math.fabs(p.w[i]))
    return most, steps


@outlined
def comply(
    p: ComplementarityProblem, s: Sharing, rows: tuple[int, int, int, int], tolerance: float
) -> Outcome:
    """Let motors give way to contacts, limits and their friction, where these hold what they move.

    A robot whose motors hold its legs stands on more feet than it needs. What its motors ask for
    and what the ground allows then contradict each other, if only by a millionth, and rigid motors
    would push against each other through the ground as hard as they can, or lift a foot by that
    much. Here each gives way, against what contradicts it alone, by GIVES of the velocity that its
    impulse would give it: b is changed by that, and the norm of impulses is measured from those
    that come of it. What motors can do together they do to round-off.

    Args:
        p: The problem with its weights; b and centre of motors are changed in place, x is a start.
        s: Room.
        rows: Where rows end of motors, of friction of joints, to which no motor gives way, of what
            gives way to nothing, and all rows; limits and contacts are the last.
        tolerance: Residual that is enough.

    Returns:
        How x solves the problem with what motors then ask for; an infinite residual if it does not.
    """
    motors, rubbing, loaded, n = rows
    for i in range(n):
        s.asked[i], p.diagonal[i], p.right[i] = p.b[i], p.D[i, i], p.b[i]
        s.holds[i] = -1.0 if motors <= i < rubbing else 0.0
    velocities(p, p.x, p.w, n)
    mark(p, s, n, False, RIM)
    softened, rho, rim, newtons = False, GIVES, RIM, 0
    for _ in range(ROUNDS):
        agree(p, s, motors, loaded, n)
        for i in range(n):
            p.right[i], s.start[i] = p.b[i], p.x[i]
        if give_way(p, s, loaded, n) > JUST_AS_WELL * tolerance:
            for i in range(n):  # not all of them hold: which do is found anew
                p.right[i], s.holds[i] = s.asked[i], min(s.holds[i], 0.0)
            rim = 0.0 if softened else RIM  # what is used up may be what slides
            soften(p, s, n, Softness(rho, rim), tolerance, softened)
            softened, rho = True, max(HARDER * rho, HARDEST_AT_FIRST)
            continue
        residual, steps = settle(p, n, tolerance, STAGES)
        newtons += steps
        if softened and residual > STEADY:  # more than round-off: what holds is known by now
            residual, steps = follow(p, n, tolerance)
            newtons += steps
            if residual > JUST_AS_WELL * tolerance:
                break
        if residual <= JUST_AS_WELL * tolerance:
            if not mark(p, s, n, True, rim):
                return Outcome(residual, 0, newtons)
        elif not softened:  # so soft a problem is solved from nothing
            softened = True
            for i in range(n):
                p.x[i], p.right[i] = 0.0, s.asked[i]
            soften(p, s, n, Softness(rho, rim), tolerance, False)
        elif soften(p, s, n, Softness(rho, rim), tolerance, True):
            rho = max(HARDER * rho, HARDEST_AT_FIRST)
        else:
            rho *= 10.0
    agree(p, s, motors, loaded, n)
    return Outcome(math.inf, 0, newtons)


@outlined
def follow(p: ComplementarityProblem, n: int, tolerance: float) -> tuple[float, int]:
    """Solve by a path of smooth problems, then for the least norm; residual and steps.

    What slides by as little as contacts of a stiff body lie at different heights, so that all their
    friction is used up, Newton's method does not find from where such friction holds.
    """
    residual, steps = follow_smoothed_path(p, n, tolerance)
    if residual > JUST_AS_WELL * tolerance:
        return residual, steps
    found = share(p, n, tolerance, Outcome(residual, 0, steps), 0)
    return found.residual, found.newton


@helper
def give_way(p: ComplementarityProblem, s: Sharing, loaded: int, n: int) -> float:
    """Most by which limits, contacts and their friction were made to give way by ``agree``.

    It is round-off, unless not all of them hold: a step ends at one of two limits, beyond neither.
    """
    most = 0.0
    for i in range(loaded, n):
        most = max(most, math.fabs(p.b[i] - s.asked[i]))
    return most


@outlined
def push_softly(
    p: ComplementarityProblem, motors: int, loaded: int, n: int, tolerance: float
) -> Outcome:
    """Solve for x from x with motors, limits and contacts softer by GIVES, as far as x changes.

    How bodies are moved out of each other need not be known to the last digit, and what holds them
    against that is not wound up: motors let them go as stiff servos do.
    """
    for i in range(n):
        p.diagonal[i], p.right[i] = p.D[i, i], p.b[i]
    add_proximal_term(p, n, GIVES, True)
    for i in range(motors, loaded):
        p.D[i, i] = p.diagonal[i] + p.weights[i]
        p.b[i] = p.right[i] - p.weights[i] * p.x[i]
    residual, newtons = newton(p, n, tolerance, 0, NEWTON_STEPS, ANEW)
    release(p, n)
    return Outcome(residual, 0, newtons)


@outlined
def soften(
    p: ComplementarityProblem, s: Sharing, n: int, by: Softness, tolerance: float, again: bool
) -> bool:
    """Solve a problem that is softer about s.start, or nothing, and mark rows that hold.

    Whether it was solved; else x stays where it was.
    """
    if again:
        for i in range(n):
            p.x[i] = s.start[i]
    add_proximal_term(p, n, by.rho, True)
    residual, _ = newton(p, n, tolerance, 0, NEWTON_STEPS, ANEW)
    solved = residual <= JAMMED * tolerance
    if solved or not again:
        mark(p, s, n, again, by.rim)
    else:
        for i in range(n):
            p.x[i] = s.start[i]
    release(p, n)
    return solved


@outlined
def mark(p: ComplementarityProblem, s: Sharing, n: int, more: bool, rim: float) -> bool:
    """Find the rows that hold at x, whose velocities are known; whether there are new ones.

    Friction within the share ``rim`` of its cone's rim does: there round-off says whether it
    slides.

    With ``more`` those that held before count still: what agrees with more rows than hold agrees
    with those that do, while others would be wound up against. So friction that is used up holds
    until it slides.
    """
    found, i = False, 0
    while i < n:
        bound, holds = p.bounds[i], False
        if bound.owner < 0:
            d = p.D[i, i]
            holds = d > 0.0 and bound.lower < p.x[i] - p.w[i] / d < bound.upper
        else:
            d, radius = cone_scale(p, i), p.x[bound.owner]
            reach = (1.0 + rim) * radius
            holds = d > 0.0 and radius > 0.0 and scaled(p, i, d, p.x, p.w)[2] <= reach
        last = i + (bound.count if bound.owner >= 0 else 1)
        for k in range(i, last if s.holds[i] >= 0.0 else i):
            found = found or (holds and not s.holds[k] > 0.0)
            s.holds[k] = 1.0 if holds or (more and s.holds[k] > 0.0) else 0.0
        i = last
    return found


@outlined
def agree(p: ComplementarityProblem, s: Sharing, motors: int, loaded: int, n: int) -> None:
    """Reduce what motors ask for to what loops, and rows that hold, let them do together.

    What is left differs least from what was asked, by the squares of their strengths: the
    compromise at which servos of such stiffness come to rest. For n = motors that is all; else they
    go on pushing as servos of GIVES do, and rows that hold give way by what is left of round-off.

    Args:
        p: The problem with its weights; b, and centre of motors, are changed in place.
        s: What is asked for, and which rows hold.
        motors: Rows of motors, which come first.
        loaded: The first of limits and contacts; what comes before gives way to nothing.
        n: All rows that may hold.
    """
    if n == motors and are_clearly_independent(p, n):
        for i in range(n):
            p.b[i], p.centre[i] = s.asked[i], 0.0
        return
    count = 0
    for i in range(n):
        # beside rows that hold, motors count by what they move, and a thousandth as much
        d = p.weights[i] if n == motors else LIGHTEST * p.D[i, i]
        d = d if i < motors else d / STRONGER**2
        s.strength[i] = 1.0 / math.sqrt(d) if s.holds[i] > 0.0 and d > 0.0 else 0.0
    if n > motors:
        count = span(p, s, motors, n, n, count)
    count = span(p, s, 0, motors, n, count)
    for i in range(n):
        p.b[i] = s.asked[i]
    for _ in range(TURNS if n > motors else 1):  # rows that hold give way a million times less each
        for i in range(n):
            p.b[i] = p.b[i] if i < motors else s.asked[i]
            p.step[i] = p.b[i] * s.strength[i]
        leave(p, count, n)
        for i in range(n):
            p.b[i] -= p.step[i] / s.strength[i] if s.strength[i] > 0.0 else 0.0
    for i in range(motors, loaded):
        p.b[i] = s.asked[i]
    for i in range(motors):
        gives = p.b[i] - s.asked[i]
        p.centre[i] = gives / (GIVES * p.D[i, i]) if n > motors and p.D[i, i] > 0.0 else 0.0


@helper
def agree_among_motors(p: ComplementarityProblem, s: Sharing, motors: int) -> None:
    """``agree`` of motors alone, by their strengths.

    They are weighed among themselves, without the cap. Beside a limit that is hard to meet, or a
    much stronger motor, others would weigh the most that there is, and one that loops all but lock
    would count as much as the one that moves it.
    """
    for i in range(motors):
        s.asked[i], s.holds[i], s.start[i] = p.b[i], 1.0, p.weights[i]
    weigh(p, 0, motors, motors, math.inf)
    agree(p, s, motors, motors, motors)
    for i in range(motors):
        p.weights[i] = s.start[i]


@helper
def are_clearly_independent(p: ComplementarityProblem, n: int) -> bool:
    """Whether each of the first n rows moves mostly what those before it do not; p.A is room."""
    for r in range(n):
        for c in range(r, n):
            p.A[r, c] = p.D[r, c]
    if not factorise_bordered(p.A, n, n, p.pivots):
        return False
    for r in range(n):
        if not p.A[r, r] * MOSTLY * p.D[r, r] < 1.0:
            return False
    return True


@outlined
def span(p: ComplementarityProblem, s: Sharing, first: int, last: int, n: int, count: int) -> int:
    """Add directions that rows first to last move in to those in p.A; how many there are then.

    They are columns of D, not of the rows: what is weak is weaker still in them, and so out of the
    way. Rows are told apart by what they move among themselves.
    """
    for k in range(first, last):
        left, own = strengthened(p, s, k, n), 0.0
        for i in range(first, last):
            own += p.step[i] * p.step[i]
        least = INDEPENDENT * math.sqrt(own)
        if count == n or not left > least:
            continue
        for _ in range(2):  # twice is enough
            if left > least:
                left = leave(p, count, n)
        if left > least:
            for i in range(n):
                p.A[count, i] = p.step[i] / left
            count += 1
    return count


@outlined
def strengthened(p: ComplementarityProblem, s: Sharing, k: int, n: int) -> float:
    """Column k of D, times the strengths of its rows and its own, into p.step; its length."""
    total = 0.0
    for i in range(n):
        p.step[i] = s.strength[i] * p.D[k, i] * s.strength[k]
        total += p.step[i] * p.step[i]
    return math.sqrt(total)


@outlined
def leave(p: ComplementarityProblem, count: int, n: int) -> float:
    """Take from p.step what lies along the first rows of p.A; the length of what is left."""
    project_first_out(p.A, count, p.step, n)
    total = 0.0
    for i in range(n):
        total += p.step[i] * p.step[i]
    return math.sqrt(total)
