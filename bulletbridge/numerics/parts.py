"""Linearised rows of a mixed problem by elimination of the coordinates that they move.

Rows of contacts outnumber the freedoms of the bodies that touch, and each moves two bodies alone.
Where G w' + B x' = r, with blocks of single units (a normal with its cones) in B and G, and
w' = (C Cᵀ + S) x' with S diagonal,

    x' = (B + G S)⁻¹ (r - G C y)        y = Cᵀ x'
    (I + Cᵀ (B + G S)⁻¹ G C) y = Cᵀ (B + G S)⁻¹ r

and the matrix of the last line has blocks where two parts of the coordinates touch (Sherman,
Morrison and Woodbury). Parts are eliminated in the order of least degree (Tinney and Walker 1967),
by pivots of the part itself.

S is as small as the softness of rows that hold, by which these factors lose digits, and where
friction all but locks what slides they lose all of them in a few directions: solutions are those
of minimal residuals among the steps that the factors give (Eisenstat, Elman and Schultz 1983).
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.block_sizes import LINES
from bulletbridge.compilation.jit import (
    add_sixes,
    add_tile,
    deferred,
    helper,
    outlined,
    solve_six,
    take_columns,
    take_rows,
)
from bulletbridge.numerics.complementarity_rows import (
    BODY,
    FACTORED,
    FORMED,
    MOST_OF_A_UNIT,
    NEAREST,
    OTHER,
    OTHER_W,
    OWN,
    OWN_W,
    RADIUS,
    USED,
    ComplementarityProblem,
    Parts,
    along_block,
    are_three_on_bodies,
    other_row,
    put_pushed,
    put_rates,
    width,
)
from bulletbridge.numerics.lu import back_lines, lu_real
from bulletbridge.numerics.records import Array

MOST_DIRECTIONS = 20
"""Of a solution, before the rows are factored themselves."""
ROUND_OFF = 1e-13
"""Share of a row of D that is none of its own softness."""
ROUNDING = 2e-16
"""Of a product of a row of D and impulses, relative to the largest of both."""
CLEAR = 1e-2
"""Share of what is enough below which round-off of products is not looked at again."""
FEWER = 0.5
"""Share of the rows, cubed, that Newton's method solves for."""


class Price(NamedTuple):
    """What elimination costs in products of factors of all rows, which lie side by side."""

    product: float  # A product among parts
    row: float  # A row


OF_TREES, OF_BODIES = Price(4.0, 700.0), Price(2.0, 200.0)
"""Of parts of any width, and where nearly all are bodies of six coordinates, which are taken at
once (measured; 66 to 78 rows on six to eight boxes take 30 us where factors of all take 33 to 89,
and a third to a fifth of these on average, since what is near a solution is found more often)."""


@outlined
def plan_parts(p: ComplementarityProblem, n: int) -> None:
    """Decide whether and in which order parts are eliminated: where that costs less.

    Not where a row is on more than two parts, or friction apart from its normal.
    """
    parts, i = p.parts, 0
    parts.state[USED] = parts.state[FACTORED] = parts.state[NEAREST] = 0
    parts.state[FORMED] = 1
    if len(parts.first) < 2 or not may_pay(n, OF_TREES):
        return
    while i < n:
        end = end_of_unit(p, i, n)
        if end < 0 or not put_touched(p, i, end):
            return
        i = end
    order_parts(p, n, OF_TREES)
    put_runs(parts)


@helper
def may_pay(n: int, price: Price) -> bool:
    """Whether there are enough rows for parts to be eliminated."""
    return price.row * n <= FEWER * n * n * n / 3.0


@outlined
def order_parts(p: ComplementarityProblem, n: int, price: Price) -> None:
    """Decide whether and in which order parts are eliminated that units of rows are known to be on.

    If they are, what D has beside the products of rows is their softness.
    """
    parts = p.parts
    count, joined, at, degree = len(parts.first) - 1, parts.joined, parts.at, parts.degree
    dense, cost, i = FEWER * n * n * n / 3.0, 0.0, 0
    for a in range(count):
        at[a], degree[a] = count, 0
        for b in range(count):
            joined[a, b] = 0
    while i < n:
        end = end_of_unit(p, i, n)
        a, b = parts.touched[i, 0], parts.touched[i, 1]
        if b >= 0:
            join(parts, a, b)
        wide = width(parts, a) + width(parts, b)
        cost += float((end - i) * wide * wide)
        i = end
    for turn in range(count):
        best = -1
        for a in range(count):
            if at[a] == count and (best < 0 or degree[a] < degree[best]):
                best = a
        parts.order[turn], at[best] = best, turn
        size, later = float(width(parts, best)), 0
        cost += size * (size + degree[best]) * (size + degree[best])
        for b in range(count):
            if at[b] == count and joined[best, b] == 1:
                parts.later[turn, later] = b
                later += 1
                degree[b] -= width(parts, best)
        parts.laters[turn] = later
        for k in range(later):
            for m in range(k):
                join(parts, parts.later[turn, k], parts.later[turn, m])
    parts.state[USED] = int(price.product * cost + price.row * n < dense)
    for r in range(n):
        products = 0.0
        for side in range(2):
            for k in range(width(parts, parts.touched[r, side])):
                products += parts.blocks[r, side, k] ** 2
        more = p.D[r, r] - products
        parts.own[r] = products if more > ROUND_OFF * p.D[r, r] else p.D[r, r]


@helper
def join(parts: Parts, a: int, b: int) -> None:
    """Have numbers where two parts touch, or come to by what is eliminated."""
    if parts.joined[a, b] == 0:
        parts.joined[a, b] = parts.joined[b, a] = 1
        parts.degree[a] += width(parts, b)
        parts.degree[b] += width(parts, a)


@outlined
def number_in_turn(p: ComplementarityProblem, n: int) -> None:
    """Number parts, and their coordinates, by their turns, so that what is joined is side by side.

    Turns are put in postorder: what is eliminated into a part comes just before it.
    """
    parts, count = p.parts, len(p.parts.first) - 1
    order, at, later, laters, place = parts.order, parts.at, parts.later, parts.laters, parts.degree
    into, left, moved, wide = parts.until, parts.joined, parts.until, parts.turns
    for turn in range(count):
        place[turn], into[turn, 0] = 1, count
    for turn in range(count):  # sizes of what is eliminated into each
        for k in range(laters[turn]):
            into[turn, 0] = min(into[turn, 0], at[later[turn, k]])
        if into[turn, 0] < count:
            place[into[turn, 0]] += place[turn]
    end = count
    for turn in range(count - 1, -1, -1):
        last, size = end, place[turn]
        if into[turn, 0] < count:
            last = left[into[turn, 0], 0]
            left[into[turn, 0], 0] -= size
        else:
            end -= size
        place[turn] = left[turn, 0] = last - 1
    for turn in range(count):
        at[order[turn]] = place[turn]
        wide[place[turn]], left[place[turn], 0] = width(parts, int(order[turn])), laters[turn]
    for turn in range(count):
        for k in range(laters[turn]):
            moved[place[turn], k] = at[later[turn, k]]
    for r in range(n):
        for side in range(2):
            if parts.touched[r, side] >= 0:
                parts.touched[r, side] = at[parts.touched[r, side]]
    for turn in range(count):
        laters[turn], order[turn] = left[turn, 0], turn
        for k in range(laters[turn]):
            later[turn, k] = moved[turn, k]
        parts.first[turn + 1] = parts.first[turn] + wide[turn]


@outlined
def put_runs(parts: Parts) -> None:
    """Turn parts that are joined to others into runs of coordinates."""
    for turn in range(len(parts.first) - 1):
        later, until, runs = parts.later[turn], parts.until[turn], 0
        for k in range(1, parts.laters[turn]):  # sorted
            a, m = later[k], k
            while m > 0 and later[m - 1] > a:
                later[m] = later[m - 1]
                m -= 1
            later[m] = a
        for k in range(parts.laters[turn]):
            start, end = parts.first[later[k]], parts.first[later[k] + 1]
            if runs > 0 and until[runs - 1] == start:
                until[runs - 1] = end
            else:
                later[runs], until[runs] = start, end
                runs += 1
        parts.laters[turn] = runs


@deferred
def form_matrix(p: ComplementarityProblem, n: int) -> None:
    """Write what D lacks beside the blocks of single units."""
    i = 0
    if p.parts.state[FORMED] == 1:
        return
    p.parts.state[FORMED] = 1
    while i < n:
        end = end_of_unit(p, i, n)
        j = end
        while j < n:
            last = end_of_unit(p, j, n)
            put_between(p, i, end, j, last)
            j = last
        i = end


@helper
def put_between(p: ComplementarityProblem, i: int, end: int, j: int, last: int) -> None:
    """D between the rows of two units, which begin at i and j."""
    parts, D, touched = p.parts, p.D, p.parts.touched
    first, second = side_on(parts, j, touched[i, 0]), side_on(parts, j, touched[i, 1])
    one, two = width(parts, touched[i, 0]), width(parts, touched[i, 1])
    for r in range(i, end):
        for m in range(j, last):
            total = 0.0
            if first >= 0:
                total += along_block(parts.blocks[r, 0], one, parts.blocks[m, first], 0)
            if second >= 0:
                total += along_block(parts.blocks[r, 1], two, parts.blocks[m, second], 0)
            D[r, m] = D[m, r] = total


@helper
def side_on(parts: Parts, i: int, part: int) -> int:
    """Which side of the unit that begins at row i is on a part; -1 for none, or no part."""
    if part < 0:
        return -1
    return 0 if parts.touched[i, 0] == part else 1 if parts.touched[i, 1] == part else -1


@helper
def end_of_unit(p: ComplementarityProblem, i: int, n: int) -> int:
    """Row after the unit that begins at row i; -1 where a cone does, or for too many rows."""
    end = i + 1
    while end < n and p.bounds[end].owner == i:
        end += 1
    return -1 if p.bounds[i].owner >= 0 or end - i > MOST_OF_A_UNIT else end


@helper
def put_touched(p: ComplementarityProblem, i: int, end: int) -> bool:
    """Write which parts the rows of a unit move; False for more than two."""
    parts, first, second = p.parts, -1, -1
    for a in range(len(parts.first) - 1):
        moves = False
        for r in range(i, end):
            for k in range(parts.first[a], parts.first[a + 1]):
                moves = moves or parts.C[r, k] != 0.0
        if moves:
            if second >= 0:
                return False
            first, second = (a, -1) if first < 0 else (first, a)
    for r in range(i, end):
        parts.touched[r, 0], parts.touched[r, 1] = first, second
        for side in range(2):
            a = parts.touched[r, side]
            for k in range(width(parts, a)):
                parts.blocks[r, side, k] = parts.C[r, parts.first[a] + k]
    return True


@helper
def put_inverse(p: ComplementarityProblem, i: int, end: int) -> None:
    """Write (B + G S)⁻¹ of the rows of a unit, but for what cones have of the normal."""
    slopes, soft, inverse, r = p.slopes, p.parts.soft, p.parts.inverse, i + 1
    inverse[0, i] = 1.0 / (slopes[OWN, i] + slopes[OWN_W, i] * soft[i])
    while r < end:
        m = other_row(p, r)
        a = slopes[OWN, r] + slopes[OWN_W, r] * soft[r]
        if m == r:
            inverse[0, r], inverse[1, r] = 1.0 / a, 0.0
            r += 1
            continue
        b = slopes[OTHER, r] + slopes[OTHER_W, r] * soft[m]
        c = slopes[OTHER, m] + slopes[OTHER_W, m] * soft[r]
        d = slopes[OWN, m] + slopes[OWN_W, m] * soft[m]
        share = 1.0 / (a * d - b * c)
        inverse[0, r], inverse[1, r] = d * share, -b * share
        inverse[0, m], inverse[1, m] = a * share, -c * share
        r += 2


@helper
def solve_unit(p: ComplementarityProblem, i: int, end: int, x: Array) -> None:
    """x <- (B + G S)⁻¹ x of the rows of a unit, in place."""
    radius, inverse, r = p.slopes[RADIUS], p.parts.inverse, i + 1
    x[i] *= inverse[0, i]
    while r < end:
        m = other_row(p, r)
        own, other = x[r] - radius[r] * x[i], x[m] - radius[m] * x[i]
        x[m] = inverse[0, m] * other + inverse[1, m] * own
        x[r] = inverse[0, r] * own + inverse[1, r] * other
        r += 1 if m == r else 2


@helper
def asked_by(p: ComplementarityProblem, r: int, rates: Array) -> float:
    """G w' of row r."""
    m = other_row(p, r)
    total = p.slopes[OWN_W, r] * rates[r]
    return total + p.slopes[OTHER_W, r] * rates[m] if m != r else total


@outlined
def factorise_parts(p: ComplementarityProblem, n: int) -> None:
    """Factor the matrix of the coordinates for the derivatives in slopes."""
    parts, count, i = p.parts, len(p.parts.first) - 1, 0
    for r in range(n):
        parts.soft[r] = p.D[r, r] - parts.own[r]
    for turn in range(count):
        begin_part(parts, turn)
    while i < n:
        end = end_of_unit(p, i, n)
        put_inverse(p, i, end)
        add_unit(p, i, end)
        i = end
    for turn in range(count):
        eliminate(parts, turn)
    parts.state[FACTORED] = 1


@helper
def begin_part(parts: Parts, turn: int) -> None:
    """One on the diagonal of a part, and nothing beside it in its rows and columns."""
    S, a = parts.S, int(parts.order[turn])
    first, end = parts.first[a], parts.first[a + 1]
    for i in range(first, end):
        for j in range(first, end):
            S[i, j] = 0.0
        S[i, i] = 1.0
    for k in range(parts.laters[turn]):
        start, stop = parts.later[turn, k], parts.until[turn, k]
        for i in range(first, end):
            for j in range(start, stop):
                S[i, j] = 0.0
        for j in range(start, stop):
            for i in range(first, end):
                S[j, i] = 0.0


@outlined
def add_unit(p: ComplementarityProblem, i: int, end: int) -> None:
    """Add Cᵀ (B + G S)⁻¹ G C of the rows of a unit."""
    parts, x, rates, K = p.parts, p.parts.x, p.parts.rates, p.parts.unit
    if end == i + 3 and p.bounds[i + 1].count == 2 and are_three_on_bodies(parts, i, end):
        add_contact(p, i)
        return
    for c in range(i, end):
        for r in range(i, end):
            rates[r] = 1.0 if r == c else 0.0
        for r in range(i, end):
            x[r] = asked_by(p, r, rates)
        solve_unit(p, i, end, x)
        for r in range(i, end):
            K[r - i, c - i] = x[r]
    for side in range(2):
        b = parts.touched[i, side]
        for m in range(width(parts, b)):
            for c in range(end - i):
                total = 0.0
                for r in range(end - i):
                    total += parts.blocks[i + r, side, m] * K[r, c]
                x[i + c] = total
            for other in range(2):
                a = parts.touched[i, other]
                if a >= 0:
                    add_lines(parts, parts.S[parts.first[b] + m], i, end, other)


@helper
def inverse_of(parts: Parts, r: int) -> tuple[float, float]:
    """What ``put_inverse`` wrote of row r."""
    return parts.inverse[0, r], parts.inverse[1, r]


@helper
def add_contact(p: ComplementarityProblem, i: int) -> None:
    """``add_unit`` of a normal with two rows of friction on bodies, in numbers."""
    s, parts, one, two = p.slopes, p.parts, i + 1, i + 2
    (a, b), (c, d) = inverse_of(parts, one), inverse_of(parts, two)
    blocks, S = parts.blocks, parts.S
    normal = s[OWN_W, i] * parts.inverse[0, i]
    first, second = s[RADIUS, one] * normal, s[RADIUS, two] * normal
    first, second = -a * first - b * second, -c * second - d * first
    g, h, k, m = s[OWN_W, one], s[OTHER_W, one], s[OTHER_W, two], s[OWN_W, two]
    g, h, k, m = a * g + b * k, a * h + b * m, d * g + c * k, d * h + c * m
    for side in range(2):
        part = parts.touched[i, side]
        if part < 0:
            continue
        at = int(parts.first[part])
        u, v, w = blocks[i, side], blocks[one, side], blocks[two, side]
        for r in range(BODY):
            x = normal * u[r] + first * v[r] + second * w[r]
            y, z = g * v[r] + k * w[r], h * v[r] + m * w[r]
            for other in range(2):
                if parts.touched[i, other] >= 0:
                    to = int(parts.first[parts.touched[i, other]])
                    add_sixes(S[at + r], to, blocks, i, other, (x, y, z))


@helper
def add_lines(parts: Parts, line: Array, i: int, end: int, side: int) -> None:
    """Add to a line of the matrix, where a part is, the rows of a unit times the numbers in x."""
    a, x, blocks = parts.touched[i, side], parts.x, parts.blocks
    first, wide = parts.first[a], width(parts, a)
    for r in range(i, end):
        for k in range(wide):
            line[first + k] += x[r] * blocks[r, side, k]


@outlined
def eliminate(parts: Parts, turn: int) -> None:
    """Factor the square of the part whose turn it is, and take the part from what is left.

    Its lines right of the square are afterwards what they are times the inverse of that, of which
    the diagonal holds reciprocals.
    """
    S, U, part, wide = parts.S, parts.U, int(parts.order[turn]), 0
    first, end = int(parts.first[part]), int(parts.first[part + 1])
    size = end - first
    for c in range(parts.laters[turn]):  # side by side they vectorise
        start, run = parts.later[turn, c], int(parts.until[turn, c] - parts.later[turn, c])
        for k in range(size):
            for j in range(run):
                U[k, wide + j] = S[first + k, start + j]
        wide += run
    lu_real(S[first:end, first:end], parts.turns[first:end])
    back_lines(S[first:end, first:end], parts.turns[first:end], U[:, :wide])
    for k in range(first, end):
        S[k, k] = 1.0 / S[k, k]
    at = 0
    for c in range(parts.laters[turn]):
        start, run = int(parts.later[turn, c]), int(parts.until[turn, c] - parts.later[turn, c])
        for k in range(size):
            for j in range(run):
                S[first + k, start + j] = U[k, at + j]
        for d in range(parts.laters[turn]):
            i, until = int(parts.later[turn, d]), int(parts.until[turn, d])
            while i < until:
                count = min(LINES, until - i)
                add_tile(S[:, start:], S, U[:, at:], -1.0, (i, count, first, end, first, run))
                i += count
        at += run


@helper
def solve_square(S: Array, y: Array, first: int, end: int) -> None:
    """Solve for the numbers of y from ``first`` up to ``end`` by the factors in S of these places.

    These are as of ``solve_six``: a triangle of units, and one with reciprocals on its diagonal.
    """
    for k in range(first, end):
        for j in range(first, k):
            y[k] -= S[k, j] * y[j]
    for k in range(end - 1, first - 1, -1):
        for j in range(k + 1, end):
            y[k] -= S[k, j] * y[j]
        y[k] *= S[k, k]


@outlined
def solve_coordinates(parts: Parts, y: Array) -> None:
    """Solve with the factors for y, in place."""
    S, count = parts.S, len(parts.first) - 1
    for turn in range(count):
        part = parts.order[turn]
        first, end = int(parts.first[part]), int(parts.first[part + 1])
        for k in range(first, end):
            best = first + int(parts.turns[k])
            if best != k:
                y[k], y[best] = y[best], y[k]
        if end - first == BODY:
            solve_six(y, first, S)
        else:
            solve_square(S, y, first, end)
        for c in range(parts.laters[turn]):
            start, until = int(parts.later[turn, c]), int(parts.until[turn, c])
            if end - first == BODY:
                take_columns(y, first, S, start, until)
                continue
            for i in range(start, until):
                y[i] -= along(S[i], y, first, end)
    for turn in range(count - 1, -1, -1):
        part, runs = parts.order[turn], int(parts.laters[turn])
        first, end = int(parts.first[part]), int(parts.first[part + 1])
        if end - first == BODY:
            take_rows(y, first, S, parts.later[turn], parts.until[turn], runs)
            continue
        for k in range(first, end):
            for c in range(runs):
                y[k] -= along(S[k], y, int(parts.later[turn, c]), int(parts.until[turn, c]))


@helper
def along(line: Array, y: Array, first: int, end: int) -> float:
    """Sum of the products of numbers from ``first`` up to ``end``."""
    total = 0.0
    for k in range(first, end):
        total += line[k] * y[k]
    return total


@outlined
def solve_once(p: ComplementarityProblem, n: int, r: Array, x: Array) -> None:
    """x <- the solution for right sides r, by the factors."""
    for m in range(n):
        x[m] = r[m]
    solve_units(p, n, x)
    put_pushed(p.parts, n, x)
    solve_coordinates(p.parts, p.parts.y)
    put_rates(p.parts, n)
    for m in range(n):
        x[m] = r[m] - asked_by(p, m, p.parts.rates)
    solve_units(p, n, x)


@helper
def solve_units(p: ComplementarityProblem, n: int, x: Array) -> None:
    """``solve_unit`` of all n rows."""
    i = 0
    while i < n:
        end = end_of_unit(p, i, n)
        solve_unit(p, i, end, x)
        i = end


@outlined
def leave_misfit(p: ComplementarityProblem, n: int, r: Array, step: Array) -> None:
    """Right sides r less what the derivatives give for a step, in place."""
    parts = p.parts
    put_pushed(parts, n, step)
    put_rates(parts, n)
    for m in range(n):
        parts.rates[m] += parts.soft[m] * step[m]
    for m in range(n):
        other, owner = other_row(p, m), p.bounds[m].owner
        r[m] -= asked_by(p, m, parts.rates) + p.slopes[OWN, m] * step[m]
        if other != m:
            r[m] -= p.slopes[OTHER, m] * step[other]
        if owner >= 0:
            r[m] -= p.slopes[RADIUS, m] * step[owner]


@outlined
def solve_parts(p: ComplementarityProblem, n: int, r: Array, step: Array, enough: float) -> bool:
    """Solution step for right sides r, which become what is left of them.

    Args:
        p: The problem; its A is scratch.
        n: Rows.
        r: (n,)
        step: (n,)
        enough: Length of what may be left beside round-off of products, as a share of that of r.

    Returns:
        Whether no more is left.
    """
    size, count, largest = norm(r, n), 0, 0.0
    left, most, limit = size, min(MOST_DIRECTIONS, (len(p.A) - 1) // 2), enough * size
    right = p.A[2 * most]
    for m in range(n):
        step[m], right[m] = 0.0, r[m]
        largest = max(largest, p.diagonal[m])
    while left > limit and count < most:
        x, given = p.A[most + count], p.A[count]
        solve_once(p, n, r, x)
        for m in range(n):
            given[m] = 0.0
        leave_misfit(p, n, given, x)
        for _ in range(2):  # orthogonal to what was given before, to round-off
            for k in range(count):
                along = 0.0
                for m in range(n):
                    along += p.A[k, m] * given[m]
                for m in range(n):
                    given[m] -= along * p.A[k, m]
                    x[m] -= along * p.A[most + k, m]
        long, along = norm(given, n), 0.0
        if not 0.0 < long < math.inf:
            break
        for m in range(n):
            given[m] /= long
            x[m] /= long
            along += given[m] * r[m]
        for m in range(n):
            step[m] -= along * x[m]
            r[m] -= along * given[m]
        count += 1
        rounding = ROUNDING * largest * norm(step, n)
        left, limit = norm(r, n), enough * size + rounding
        if (left <= limit and rounding > CLEAR * enough * size) or count == most:
            for m in range(n):
                r[m] = right[m]
            leave_misfit(p, n, r, step)
            left = norm(r, n)
    return left <= limit


@helper
def norm(r: Array, n: int) -> float:
    """Length of the first n numbers."""
    total = 0.0
    for m in range(n):
        total += r[m] * r[m]
    return math.sqrt(total)
