"""The rows of a mixed complementarity problem: bounds, cones, their natural map, and sweeps."""

import math
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.block_sizes import in_blocks
from bulletbridge.compilation.jit import add_sixes, along_sixes, deferred, helper, outlined
from bulletbridge.numerics.records import Array, Int, Ints, Real, Records, dtype_of


class RowBounds:
    """One row; those of a cone follow each other."""

    lower: Real  # of the impulse, for rows of no cone
    upper: Real
    owner: Int  # row whose impulse is the cone's radius, or -1 for a bounded row
    first: Int  # whether a cone begins here
    count: Int  # rows of that cone, 1 or 2
    mu: Real  # semi-axis of the cone in this row, per impulse of its owner


ROW_BOUNDS = dtype_of(RowBounds)


LEAST_ALONG = 1e-3
"""Share of a normal's own diagonal that its friction must leave of it."""


DERIVATIVES = 5
OWN_W, OTHER_W, OWN, OTHER, RADIUS = range(DERIVATIVES)
"""Derivatives of a row of a map: by its velocity and that of the other row of its cone, by their
impulses, and by that of the cone's owner."""
LINES = 18 + DERIVATIVES
"""Lines of scratch of a problem."""


MOST_OF_A_UNIT = 6
"""Rows of a contact: its normal, friction, spinning and rolling resistance."""
USED, FACTORED, FORMED, NEAREST, STATE = range(5)
NOWHERE, IF_NEAR, ALWAYS, CONVEX = range(4)
"""Where any impulses near the last are looked for, before others: if the last are near a solution
themselves; wherever they are; and of a problem without friction, which is convex."""
BODY = 6
"""Coordinates of a part that is a body by itself."""


class Parts(NamedTuple):
    """Coordinates in parts, of which a row is on two at the most, and room to eliminate them."""

    C: Array  # (rows, nv) rows in whitened coordinates; D is C Cᵀ, and what rows give way by
    first: Ints  # (parts + 1,) first coordinate of each part
    state: Ints  # (STATE,) whether parts are eliminated, S holds factors of rows by their kinds, D
    # has more than the blocks of single units, and when impulses near the last are looked for
    touched: Ints  # (rows, 2) parts that the rows of a unit are on, or -1
    blocks: Array  # (rows, 2, widest part) what of C is there
    own: Array  # (rows,) of the diagonal of D, what is no softness
    order: Ints  # (parts,) in which they are eliminated
    at: Ints  # (parts,) when each is
    joined: Ints  # (parts, parts) 1 where rows are on both, or they come to be by eliminations
    degree: Ints  # (parts,) coordinates of those that each is joined to
    later: Ints  # (parts, parts) for each turn, the parts that are joined to it then: where runs of
    until: Ints  # (parts, parts) their coordinates begin and end,
    laters: Ints  # (parts,) and how many there are
    S: Array  # (nv, nv) factors
    U: Array  # (widest part, nv) columns side by side
    unit: Array  # (rows of a unit, rows of a unit)
    turns: Ints  # (nv,) whom rows changed with, within a part
    soft: Array  # (rows,)
    inverse: Array  # (2, rows) of (B + G S) of a unit: by the row itself and the other of its cone
    x: Array  # (rows,)
    rates: Array  # (rows,)
    y: Array  # (nv,)


class ComplementarityProblem(NamedTuple):
    """A problem and the room to solve it in."""

    D: Array  # (n, n)
    b: Array  # (n,)
    bounds: Records[RowBounds]
    x: Array  # (n,) warm start, solution
    w: Array  # (n,) velocities D x + b
    A: Array  # (n, n) scratch of Newton's method
    step: Array  # (n,)
    best: Array  # (n,)
    diagonal: Array  # (n,) of D
    right: Array  # (n,) b
    weights: Array  # (n,) of squared impulses in the norm that decides, in units of D
    spare: Array  # (n,)
    centre: Array  # (n,) impulses from which that norm is measured
    free: Array  # (n,) rows that Newton's method solves for, the first ``count`` of them
    kinds: Array  # (n,) of all rows, when A was factorised last
    line: Array  # (n,) scratch
    pivots: Array  # (n,) of the factors in A, or that they have none
    found: Array  # (n,) impulses from nearby, while others are looked for far away
    known: Array  # (n,) the last that are known of a path
    lifted: Array  # (3, n) while contacts are lifted: by what, impulses and right sides before
    slopes: Array  # (DERIVATIVES, n) of a map
    beyond: Array  # (n,) how far x - w/d of the last solution was beyond bounds and cones
    shift: Array  # (n,) velocities less those that it had
    parts: Parts


@helper
def width(parts: Parts, a: int) -> int:
    """Coordinates of a part; none of no part."""
    return int(parts.first[a + 1] - parts.first[a]) if a >= 0 else 0


@helper
def add_block(x: float, block: Array, wide: int, y: Array, first: int) -> None:
    """Add x times a row on ``wide`` coordinates to y, where these begin."""
    if wide == BODY:  # mostly; a loop over so few takes a third longer
        y[first] += x * block[0]
        y[first + 1] += x * block[1]
        y[first + 2] += x * block[2]
        y[first + 3] += x * block[3]
        y[first + 4] += x * block[4]
        y[first + 5] += x * block[5]
        return
    for k in range(wide):
        y[first + k] += x * block[k]


@helper
def along_block(block: Array, wide: int, y: Array, first: int) -> float:
    """What a row on ``wide`` coordinates moves by at those of y that begin there."""
    if wide == BODY:
        return (
            block[0] * y[first]
            + block[1] * y[first + 1]
            + block[2] * y[first + 2]
            + block[3] * y[first + 3]
            + block[4] * y[first + 4]
            + block[5] * y[first + 5]
        )
    total = 0.0
    for k in range(wide):
        total += block[k] * y[first + k]
    return total


@helper
def push(parts: Parts, i: int, x: float) -> None:
    """Add what the impulse x of row i does to the coordinates to y."""
    for side in range(2):
        a = parts.touched[i, side]
        if a >= 0:
            add_block(x, parts.blocks[i, side], width(parts, a), parts.y, int(parts.first[a]))


@helper
def moved_by(parts: Parts, i: int) -> float:
    """What row i moves by at the coordinates y."""
    total = 0.0
    for side in range(2):
        a = parts.touched[i, side]
        if a >= 0:
            total += along_block(
                parts.blocks[i, side], width(parts, a), parts.y, int(parts.first[a])
            )
    return total


@helper
def are_three_on_bodies(parts: Parts, i: int, n: int) -> bool:
    """Whether rows i to i + 2 are on the same parts, which have the coordinates of bodies.

    Mostly they are all of a contact. What they do is then done at once.
    """
    if i + 3 > n:
        return False
    first, second = parts.touched[i, 0], parts.touched[i, 1]
    same = parts.touched[i + 1, 0] == first and parts.touched[i + 2, 0] == first
    same = same and parts.touched[i + 1, 1] == second and parts.touched[i + 2, 1] == second
    return same and width(parts, first) == BODY and (second < 0 or width(parts, second) == BODY)


@helper
def push_three(parts: Parts, i: int, one: float, two: float, three: float) -> None:
    """``push`` of the impulses of three rows on the same bodies."""
    for side in range(2):
        part = parts.touched[i, side]
        if part >= 0:
            at = int(parts.first[part])
            add_sixes(parts.y, at, parts.blocks, i, side, (one, two, three))


@helper
def moved_by_three(parts: Parts, i: int) -> tuple[float, float, float]:
    """``moved_by`` of three rows on the same bodies."""
    second = parts.touched[i, 1]
    place = int(parts.first[second]) if second >= 0 else -1
    return along_sixes(parts.y, int(parts.first[parts.touched[i, 0]]), place, parts.blocks, i)


@outlined
def put_rates(parts: Parts, n: int) -> None:
    """Write what n rows move by at the coordinates y into rates."""
    rates, r = parts.rates, 0
    while r < n:
        if are_three_on_bodies(parts, r, n):
            rates[r], rates[r + 1], rates[r + 2] = moved_by_three(parts, r)
            r += 3
        else:
            rates[r] = moved_by(parts, r)
            r += 1


@outlined
def put_pushed(parts: Parts, n: int, x: Array) -> None:
    """Write what the impulses x of n rows do to the coordinates into y."""
    for k in range(parts.first[len(parts.first) - 1]):
        parts.y[k] = 0.0
    r = 0
    while r < n:
        if are_three_on_bodies(parts, r, n):
            push_three(parts, r, x[r], x[r + 1], x[r + 2])
            r += 3
        else:
            push(parts, r, x[r])
            r += 1


@helper
def begin_sweep(p: ComplementarityProblem, n: int) -> None:
    """Have at hand what ``velocity`` goes by."""
    if p.parts.state[USED] == 1:
        put_pushed(p.parts, n, p.x)


@helper
def velocity(p: ComplementarityProblem, i: int, n: int) -> float:
    """Velocity of row i at x, since ``begin_sweep``."""
    total = p.b[i]
    if p.parts.state[USED] == 1:
        return total + (p.D[i, i] - p.parts.own[i]) * p.x[i] + moved_by(p.parts, i)
    for j in range(n):
        total += p.D[i, j] * p.x[j]
    return total


@helper
def put_impulse(p: ComplementarityProblem, i: int, x: float) -> None:
    """Let x be the impulse of row i; ``velocity`` goes by it from now on."""
    if p.parts.state[USED] == 1:
        push(p.parts, i, x - p.x[i])
    p.x[i] = x


@helper
def cone_scale(p: Any, i: int) -> float:
    """d of the natural map of the cone that begins at row i, in its scaled coordinates."""
    d = p.bounds[i].mu ** 2 * p.D[i, i]
    if p.bounds[i].count == 2:
        other = p.bounds[i + 1].mu ** 2 * p.D[i + 1, i + 1]
        between = p.bounds[i].mu * p.bounds[i + 1].mu * p.D[i, i + 1]
        d = 0.5 * (d + other + math.sqrt((d - other) ** 2 + 4.0 * between * between))
    return d


@helper
def scaled(p: Any, i: int, d: float, x: Array, w: Array) -> tuple[float, float, float]:
    """x/mu - mu w/d of a cone's two rows (the second zero for one), and its length."""
    mu = p.bounds[i].mu
    first = x[i] / mu - mu * w[i] / d if mu > 0.0 else 0.0
    second = 0.0
    if p.bounds[i].count == 2:
        mu = p.bounds[i + 1].mu
        second = x[i + 1] / mu - mu * w[i + 1] / d if mu > 0.0 else 0.0
    return first, second, math.sqrt(first * first + second * second)


class Room(NamedTuple):
    """Room to solve a problem in."""

    A: Array  # (n, n) and more, whole blocks each line
    vectors: Array  # (LINES or more, n)
    parts: Parts


@helper
def complementarity_problem(
    D: Array, b: Array, bounds: Records[RowBounds], x: Array, w: Array, room: Room
) -> ComplementarityProblem:
    """A problem with its scratch and weights in the first LINES lines of ``room.vectors``."""
    vectors = room.vectors
    return ComplementarityProblem(
        D,
        b,
        bounds,
        x,
        w,
        room.A,
        vectors[0],
        vectors[1],
        vectors[2],
        vectors[3],
        vectors[4],
        vectors[5],
        vectors[6],
        vectors[7],
        vectors[8],
        vectors[9],
        vectors[10],
        vectors[11],
        vectors[12],
        vectors[13:16],
        vectors[16 : LINES - 2],
        vectors[LINES - 2],
        vectors[LINES - 1],
        room.parts,
    )


def parts_of(C: Array, first: Ints) -> Parts:
    """Rows C (rows, nv), coordinates in parts that begin at ``first`` (parts + 1,), and room.

    C has no columns where ``blocks`` are given in its place.
    """
    rows, nv, count = len(C), int(first[-1]), len(first) - 1
    widest = int(np.diff(first).max(initial=0))

    def numbers(*shape: int) -> Ints:
        return np.zeros(shape, np.int64)

    return Parts(
        C,
        first,
        state=numbers(STATE),
        touched=numbers(rows, 2),
        blocks=np.zeros((rows, 2, widest)),
        own=np.zeros(rows),
        order=numbers(count),
        at=numbers(count),
        joined=numbers(count, count),
        degree=numbers(count),
        later=numbers(count, count),
        until=numbers(count, count),
        laters=numbers(count),
        S=np.zeros((nv, nv)),
        U=np.zeros((widest, nv)),
        unit=np.zeros((MOST_OF_A_UNIT, MOST_OF_A_UNIT)),
        turns=numbers(nv),
        soft=np.zeros(rows),
        inverse=np.zeros((2, rows)),
        x=np.zeros(rows),
        rates=np.zeros(rows),
        y=np.zeros(nv),
    )


NO_PARTS = parts_of(np.zeros((0, 0)), np.zeros(1, np.int64))
"""Of a problem of which D alone is known."""


def room_for(n: int, lines: int = LINES, parts: Parts = NO_PARTS) -> Room:
    """Room for a problem of n rows."""
    return Room(np.zeros((n, in_blocks(n))), np.zeros((lines, n)), parts)


@helper
def other_row(p: ComplementarityProblem, i: int) -> int:
    """The other row of the cone of row i, or that itself."""
    bound = p.bounds[i]
    if bound.owner < 0 or bound.count < 2:
        return i
    return i + 1 if bound.first == 1 else i - 1


@helper
def clip(bound: RowBounds, x: float) -> float:
    """The nearest impulse that a bounded row allows."""
    return min(max(x, bound.lower), bound.upper)


@deferred
def sweep(p: ComplementarityProblem, n: int, along: bool, count: int) -> None:
    """Gauss-Seidel passes, in place; w is refreshed on the way.

    Where friction feeds a normal it may throw row after row back and forth between two states:
    ``along`` lets a normal carry its friction with it.
    """
    begin_sweep(p, n)
    note_contacts(p, n)
    for _ in range(count):
        i = 0
        while i < n:
            bound = p.bounds[i]
            if p.line[i] > 0.0:
                put_contact(p, i, along)
                i += 3
            elif bound.owner >= 0:
                put_on_cone(p, i, n)
                i += bound.count
            else:
                if along and i + 1 < n and p.bounds[i + 1].owner == i and p.x[i] > 0.0:
                    put_along(p, i, n)
                else:
                    put_within(p, i, n)
                i += 1


@helper
def is_contact_of_bodies(p: ComplementarityProblem, i: int, n: int) -> bool:
    """Whether a normal with two rows of friction begins at row i, on bodies."""
    if i + 3 > n or p.bounds[i + 1].owner != i or p.bounds[i + 1].count != 2:
        return False
    moved = p.D[i, i] > 0.0 and p.bounds[i + 1].mu > 0.0 and p.bounds[i + 2].mu > 0.0
    return moved and are_three_on_bodies(p.parts, i, n)


@helper
def note_contacts(p: ComplementarityProblem, n: int) -> None:
    """Write into line, where a contact of bodies begins, what its impulses are by velocities.

    That is 1/D of the normal and 1/d of its cone; what belongs to no such contact has a zero. What
    sweeps read of D and of coefficients goes side by side into slopes, with which no step is taken
    before they are written anew: lines of D are as far apart as memory is read at once.
    """
    D, s, by_parts, i = p.D, p.slopes, p.parts.state[USED] == 1, 0
    while i < n:
        p.line[i] = 0.0
        if by_parts and is_contact_of_bodies(p, i, n):
            one, two = i + 1, i + 2
            p.line[i], p.line[one] = 1.0 / D[i, i], 1.0 / cone_scale(p, one)
            s[0, i], s[0, one], s[0, two] = D[i, one], D[i, two], D[one, two]
            for k in range(i, i + 3):
                s[1, k], s[2, k] = D[k, k] - p.parts.own[k], D[k, k]
            mu, nu = p.bounds[one].mu, p.bounds[two].mu
            s[3, i], s[3, one], s[3, two] = mu, nu * nu, mu / nu
            s[4, i], s[4, one] = p.bounds[i].lower, p.bounds[i].upper
            i += 2
        i += 1


@helper
def put_contact(p: ComplementarityProblem, i: int, along: bool) -> None:
    """``put_within`` or ``put_along``, and ``put_on_cone``, of what ``note_contacts`` noted.

    Coordinates are looked at once; what the normal moves its friction by is in D.
    """
    s, x, one, two = p.slopes, p.x, i + 1, i + 2
    a, b, c = x[i], x[one], x[two]
    ab, ac, bc = s[0, i], s[0, one], s[0, two]
    w, u, v = moved_by_three(p.parts, i)
    w += p.b[i] + s[1, i] * a
    u += p.b[one] + s[1, one] * b
    v += p.b[two] + s[1, two] * c
    new, f, g = a, b, c
    if along and a > 0.0:
        d = s[2, i] + (ab * b + ac * c) / a
        share = max(1.0 - w / (d * a), 0.0) if d > LEAST_ALONG * s[2, i] else 0.0
        new, f, g = share * a, share * b, share * c
    else:
        new = min(max(a - w * p.line[i], s[4, i]), s[4, one])
    u += ab * (new - a) + s[2, one] * (f - b) + bc * (g - c)
    v += ac * (new - a) + bc * (f - b) + s[2, two] * (g - c)
    per, mu, radius = p.line[one], s[3, i], max(0.0, new)
    first, second = f - mu * mu * per * u, g - s[3, one] * per * v
    across, limit = s[3, two] * second, mu * radius
    squared, share = first * first + across * across, 1.0
    if squared > limit * limit:
        share = limit / math.sqrt(squared)
    x[i], x[one], x[two] = new, share * first, share * second
    p.w[i], p.w[one], p.w[two] = w, u, v
    push_three(p.parts, i, new - a, x[one] - b, x[two] - c)


@helper
def put_along(p: ComplementarityProblem, i: int, n: int) -> None:
    """Nearest impulse of normal i with the cone after it in proportion to that which stops it."""
    cone, d, share = i + 1, p.D[i, i], 0.0
    p.w[i] = velocity(p, i, n)
    for k in range(p.bounds[cone].count):
        d += p.D[i, cone + k] * p.x[cone + k] / p.x[i]
    if d > LEAST_ALONG * p.D[i, i]:
        share = max(1.0 - p.w[i] / (d * p.x[i]), 0.0)
    put_impulse(p, i, share * p.x[i])
    for k in range(p.bounds[cone].count):
        put_impulse(p, cone + k, share * p.x[cone + k])


@helper
def put_within(p: ComplementarityProblem, i: int, n: int) -> None:
    """Nearest impulse of a bounded row to that which stops it."""
    p.w[i] = velocity(p, i, n)
    if p.D[i, i] > 0.0:
        put_impulse(p, i, clip(p.bounds[i], p.x[i] - p.w[i] / p.D[i, i]))


@helper
def put_on_cone(p: ComplementarityProblem, i: int, n: int) -> None:
    """Nearest impulses within the cone that begins at row i to those which stop it."""
    bound = p.bounds[i]
    for k in range(bound.count):
        p.w[i + k] = velocity(p, i + k, n)
    d, first, second, share = cone_scale(p, i), 0.0, 0.0, 0.0
    if d > 0.0:
        radius = max(0.0, p.x[bound.owner])
        first, second, length = scaled(p, i, d, p.x, p.w)
        share = radius / length if length > radius else 1.0
    put_impulse(p, i, bound.mu * share * first)
    if bound.count == 2:
        put_impulse(p, i + 1, p.bounds[i + 1].mu * share * second)


@outlined
def residual_at(p: Any, x: Array, w: Array, n: int) -> float:
    """Largest d |x - project(x - w/d)|, in units of w; rows that nothing moves do not count.

    Infinite where a velocity is not finite: comparisons with what is not a number would pass it by.
    """
    worst, total = 0.0, 0.0
    for i in range(n):
        total += w[i]
    if not math.fabs(total) < math.inf:  # isfinite does not survive reassociation
        return math.inf
    i = 0
    while i < n:
        off, i = violation(p, x, w, i)
        worst = max(worst, off)
    return worst


@helper
def violation(p: Any, x: Array, w: Array, i: int) -> tuple[float, int]:
    """Share in ``residual_at`` of a bounded row, or of the cone that begins there; the next row."""
    bound, worst = p.bounds[i], 0.0
    if bound.owner < 0:
        d = p.D[i, i]
        if d > 0.0:
            worst = d * math.fabs(x[i] - clip(bound, x[i] - w[i] / d))
        return worst, i + 1
    d = cone_scale(p, i)
    if d > 0.0:
        first, second, length = scaled(p, i, d, x, w)
        radius = max(0.0, x[bound.owner])
        share = radius / length if length > radius else 1.0
        mu = bound.mu
        worst = d * math.fabs(x[i] / mu - share * first) / mu if mu > 0.0 else 0.0
        if bound.count == 2 and p.bounds[i + 1].mu > 0.0:
            mu = p.bounds[i + 1].mu
            worst = max(worst, d * math.fabs(x[i + 1] / mu - share * second) / mu)
    return worst, i + bound.count


@outlined
def velocities(p: ComplementarityProblem, x: Array, w: Array, n: int) -> None:
    """w = D x + b."""
    if p.parts.state[USED] == 0:
        dense_velocities(p, x, w, n)
        return
    put_pushed(p.parts, n, x)
    put_rates(p.parts, n)
    for i in range(n):
        w[i] = p.b[i] + (p.D[i, i] - p.parts.own[i]) * x[i] + p.parts.rates[i]


@helper
def dense_velocities(p: Any, x: Array, w: Array, n: int) -> None:
    """The same by D."""
    for i in range(n):
        total = p.b[i]
        for j in range(n):
            total += p.D[i, j] * x[j]
        w[i] = total


@deferred
def relaxed_sweep(p: ComplementarityProblem, n: int) -> None:
    """``sweep`` with friction cones that normals share in: the convex relaxation of Coulomb's law.

    A sliding contact may raise its normal instead of sliding, so sweeps tend to where none slides,
    if there is such a solution; there both laws agree (Acary and Cadoux 2013, 2.3).
    """
    i = 0
    begin_sweep(p, n)
    while i < n:
        bound, cone = p.bounds[i], i + 1
        if cone < n and bound.owner < 0 and p.bounds[cone].owner == i:
            share_cone(p, i, n)
            i = cone + p.bounds[cone].count
        elif bound.owner < 0:
            put_within(p, i, n)
            i += 1
        else:
            put_on_cone(p, i, n)
            i += bound.count


@helper
def share_cone(p: ComplementarityProblem, i: int, n: int) -> None:
    """Nearest impulses of normal i and the cone after it, in the cone of both together."""
    cone = i + 1
    p.w[i] = velocity(p, i, n)
    for k in range(p.bounds[cone].count):
        p.w[cone + k] = velocity(p, cone + k, n)
    d = p.D[i, i] + cone_scale(p, cone)
    if not d > 0.0:
        return
    normal = p.x[i] - p.w[i] / d
    first, second, length = scaled(p, cone, d, p.x, p.w)
    share = 1.0
    if length <= -normal:
        normal, share = 0.0, 0.0
    elif length > normal:
        normal = 0.5 * (normal + length)
        share = normal / length
    put_impulse(p, i, normal)
    put_impulse(p, cone, p.bounds[cone].mu * share * first)
    if p.bounds[cone].count == 2:
        put_impulse(p, cone + 1, p.bounds[cone + 1].mu * share * second)
