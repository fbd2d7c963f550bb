"""Linearised rows of a mixed problem by elimination of the coordinates that they move.

Rows of contacts outnumber the freedoms of the bodies that touch, and each moves two bodies alone.
Where G w' + B x' = r, with blocks of single units (a normal with its cones) in B and G, and
w' = (C Cᵀ + S) x' with S diagonal,

    x' = (B + G S)⁻¹ (r - G C y)        y = Cᵀ x'
    (I + Cᵀ (B + G S)⁻¹ G C) y = Cᵀ (B + G S)⁻¹ r

and the matrix of the last line has blocks where two parts of the coordinates touch (Sherman,
Morrison and Woodbury). Parts are eliminated in the order of least degree (Tinney and Walker 1967),
by pivots of the part itself unless those are small.

S is as small as the softness of rows that hold, by which these factors lose digits, and where
friction all but locks what slides they lose all of them in a few directions: solutions are those
of minimal residuals among the steps that the factors give (Eisenstat, Elman and Schultz 1983).
"""

import math

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.complementarity_rows import (
    FACTORED,
    MOST_OF_A_UNIT,
    OTHER,
    OTHER_W,
    OWN,
    OWN_W,
    RADIUS,
    USED,
    ComplementarityProblem,
    Parts,
    other_row,
)
from bulletbridge.numerics.many_sides import add_lines
from bulletbridge.numerics.records import Array

PREFERRED = 0.01
"""Share of the largest number of a column from which on a row of the part itself is taken."""
MOST_DIRECTIONS = 20
"""Of a solution, before the rows are factored themselves."""
ROUND_OFF = 1e-13
"""Share of a row of D that is none of its own softness."""
ROUNDING = 2e-16
"""Of a product of a row of D and impulses, relative to the largest of both."""
PRICE, PRICE_OF_ROWS = 18.0, 2100.0
"""What a product among parts, and a row, cost in products of factors of all rows, which lie side by
side (measured; where 200 rows move 20 bodies both ways cost the same within a factor of two)."""
FEWER = 0.5
"""Share of the rows, cubed, that Newton's method solves for."""


@outlined
def plan_parts(p: ComplementarityProblem, n: int) -> None:
    """Decide whether and in which order parts are eliminated: where that costs less.

    Not where a row is on more than two parts, or friction apart from its normal.
    """
    parts = p.parts
    count, joined, at = len(parts.first) - 1, parts.joined, parts.at
    parts.state[USED] = parts.state[FACTORED] = 0
    dense = FEWER * n * n * n / 3.0
    if count < 1 or PRICE_OF_ROWS * n > dense:
        return
    for a in range(count):
        at[a] = count
        for b in range(count):
            joined[a, b] = int(a == b)
    cost, i = 0.0, 0
    while i < n:
        end = end_of_unit(p, i, n)
        if end < 0 or not put_touched(p, i, end):
            return
        a, b = parts.touched[i, 0], parts.touched[i, 1]
        if b >= 0:
            joined[a, b] = joined[b, a] = 1
        wide = width(parts, a) + width(parts, b)
        cost += float((end - i) * wide * wide)
        i = end
    for a in range(count):
        for b in range(count):
            parts.touch[a, b] = joined[a, b]
    for turn in range(count):
        best, least = -1, 0
        for a in range(count):
            if at[a] == count:
                around = 0
                for b in range(count):
                    if b != a and at[b] == count and joined[a, b] == 1:
                        around += width(parts, b)
                if best < 0 or around < least:
                    best, least = a, around
        parts.order[turn], at[best] = best, turn
        size = float(width(parts, best))
        cost += size * (size + least) * (size + least)
        for a in range(count):
            if at[a] == count and joined[best, a] == 1:
                for b in range(count):
                    if at[b] == count and joined[best, b] == 1:
                        joined[a, b] = 1
    parts.state[USED] = int(PRICE * cost + PRICE_OF_ROWS * n < dense)


@helper
def width(parts: Parts, a: int) -> int:
    """Coordinates of a part; none of no part."""
    return int(parts.first[a + 1] - parts.first[a]) if a >= 0 else 0


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
    return True


@outlined
def put_softness(p: ComplementarityProblem, n: int) -> None:
    """What each row gives way by itself: what D has on its diagonal beside C Cᵀ.

    Less than round-off of these is none.
    """
    parts = p.parts
    for r in range(n):
        own = 0.0
        for side in range(2):
            a = parts.touched[r, side]
            if a >= 0:
                for k in range(parts.first[a], parts.first[a + 1]):
                    own += parts.C[r, k] * parts.C[r, k]
        more = p.diagonal[r] - own
        parts.soft[r] = p.D[r, r] - p.diagonal[r]
        if more > ROUND_OFF * p.diagonal[r]:
            parts.soft[r] += more


@helper
def solve_unit(p: ComplementarityProblem, i: int, end: int, x: Array) -> None:
    """x <- (B + G S)⁻¹ x of the rows of a unit, in place."""
    slopes, soft, r = p.slopes, p.parts.soft, i + 1
    x[i] /= slopes[OWN, i] + slopes[OWN_W, i] * soft[i]
    while r < end:
        m = other_row(p, r)
        own = x[r] - slopes[RADIUS, r] * x[i]
        a = slopes[OWN, r] + slopes[OWN_W, r] * soft[r]
        if m == r:
            x[r] = own / a
            r += 1
            continue
        b = slopes[OTHER, r] + slopes[OTHER_W, r] * soft[m]
        c = slopes[OTHER, m] + slopes[OTHER_W, m] * soft[r]
        d = slopes[OWN, m] + slopes[OWN_W, m] * soft[m]
        other, det = x[m] - slopes[RADIUS, m] * x[i], a * d - b * c
        x[r], x[m] = (d * own - b * other) / det, (a * other - c * own) / det
        r += 2


@helper
def asked_by(p: ComplementarityProblem, r: int, rates: Array) -> float:
    """G w' of row r."""
    m = other_row(p, r)
    total = p.slopes[OWN_W, r] * rates[r]
    return total + p.slopes[OTHER_W, r] * rates[m] if m != r else total


@outlined
def factorise_parts(p: ComplementarityProblem, n: int) -> None:
    """Factor the matrix of the coordinates for the derivatives in slopes."""
    parts, S, count = p.parts, p.parts.S, len(p.parts.first) - 1
    put_softness(p, n)
    for i in range(len(S)):  # what was filled
        for b in range(count):
            if parts.on[i, b] == 1:
                for j in range(parts.first[b], parts.first[b + 1]):
                    S[i, j] = 0.0
    for a in range(count):
        for i in range(parts.first[a], parts.first[a + 1]):
            parts.free[i], S[i, i] = 1, 1.0
            for b in range(count):
                parts.on[i, b] = parts.touch[a, b]
    i = 0
    while i < n:
        end = end_of_unit(p, i, n)
        add_unit(p, i, end)
        i = end
    for turn in range(count):
        eliminate(parts, turn)
    for i in range(len(S)):
        list_columns(parts, i)
    parts.state[FACTORED] = 1


@outlined
def add_unit(p: ComplementarityProblem, i: int, end: int) -> None:
    """Add Cᵀ (B + G S)⁻¹ G C of the rows of a unit."""
    parts, x, rates, K = p.parts, p.parts.x, p.parts.rates, p.parts.unit
    for c in range(i, end):
        for r in range(i, end):
            rates[r] = 1.0 if r == c else 0.0
        for r in range(i, end):
            x[r] = asked_by(p, r, rates)
        solve_unit(p, i, end, x)
        for r in range(i, end):
            K[r - i, c - i] = x[r]
    for side in range(2):
        a = parts.touched[i, side]
        if a < 0:
            continue
        first, wide = parts.first[a], width(parts, a)
        for r in range(end - i):
            for k in range(wide):
                parts.line[k] = 0.0
            for c in range(end - i):
                s = K[r, c]
                if s != 0.0:
                    for k in range(wide):
                        parts.line[k] += s * parts.C[i + c, first + k]
            for other in range(2):
                b = parts.touched[i, other]
                if b < 0:
                    continue
                for m in range(parts.first[b], parts.first[b + 1]):
                    s = parts.C[i + r, m]
                    for k in range(wide):
                        parts.S[m, first + k] += s * parts.line[k]


@outlined
def eliminate(parts: Parts, turn: int) -> None:
    """Factor the columns of the part whose turn it is, and take its rows from what is left."""
    S, on, part, count = parts.S, parts.on, int(parts.order[turn]), len(parts.first) - 1
    left, U, line, wide = 0, parts.U, parts.line, 0
    first, end = parts.first[part], parts.first[part + 1]
    for i in range(len(S)):
        if parts.free[i] == 1 and (on[i, part] == 1 or first <= i < end):
            parts.rows[left] = i
            left += 1
    for k in range(first, end):
        take_pivot(parts, part, k, left)
        parts.free[k] = 0
        for c in range(left):
            i = parts.rows[c]
            if parts.free[i] == 1 and S[i, k] != 0.0:
                S[i, k] /= S[k, k]
                for j in range(k + 1, end):
                    S[i, j] -= S[i, k] * S[k, j]
    for b in range(count):
        parts.moved[b] = 0
        for k in range(first, end):
            if on[k, b] == 1 and parts.at[b] > turn:
                parts.moved[b] = 1
        if parts.moved[b] == 1:
            start = parts.first[b]
            for k in range(first, end):
                on[k, b] = 1
                for j in range(width(parts, b)):
                    U[k - first, wide + j] = S[k, start + j]
            wide += width(parts, b)
    for k in range(first, end):
        for m in range(first, k):
            x = S[k, m]
            if x != 0.0:
                for j in range(wide):
                    U[k - first, j] -= x * U[m - first, j]
    put_back(parts, U, first, end)
    for c in range(left):
        i = parts.rows[c]
        if parts.free[i] == 0 or on[i, part] == 0:
            continue
        for j in range(wide):
            line[j] = 0.0
        add_lines(line, 1.0, S[i, first:end], 0, end - first, U[:, :wide])
        at = 0
        for b in range(count):
            if parts.moved[b] == 1:
                on[i, b] = 1
                for j in range(parts.first[b], parts.first[b + 1]):
                    S[i, j] -= line[at]
                    at += 1


@helper
def put_back(parts: Parts, U: Array, first: int, end: int) -> None:
    """Write the columns of U that lie side by side to where they belong."""
    for k in range(first, end):
        at = 0
        for b in range(len(parts.first) - 1):
            if parts.moved[b] == 1:
                for j in range(parts.first[b], parts.first[b + 1]):
                    parts.S[k, j] = U[k - first, at]
                    at += 1


@helper
def take_pivot(parts: Parts, part: int, k: int, left: int) -> None:
    """Exchange row k for the one with the largest number in column k.

    For one of the part itself, which fills nothing, as long as that is not far smaller.
    """
    S, own, most, best, largest = parts.S, k, -1.0, k, -1.0
    for c in range(left):
        i = parts.rows[c]
        if parts.free[i] == 0:
            continue
        size = abs(S[i, k])
        if size > largest:
            best, largest = i, size
        if parts.first[part] <= i < parts.first[part + 1] and size > most:
            own, most = i, size
    if most >= PREFERRED * largest:
        best = own
    parts.turns[k] = best
    if best != k:
        for b in range(len(parts.first) - 1):
            if parts.on[k, b] == 1 or parts.on[best, b] == 1:
                parts.on[k, b], parts.on[best, b] = parts.on[best, b], parts.on[k, b]
                for j in range(parts.first[b], parts.first[b + 1]):
                    S[k, j], S[best, j] = S[best, j], S[k, j]


@helper
def beside(parts: Parts, k: int, later: int, y: Array) -> float:
    """What row k of L, or for ``later`` of U, gives with the numbers y of other parts."""
    total = 0.0
    for c in range(parts.ends[k, later], parts.ends[k, later + 1]):
        b = parts.columns[k, c]
        for j in range(parts.first[b], parts.first[b + 1]):
            total += parts.S[k, j] * y[j]
    return total


@helper
def list_columns(parts: Parts, k: int) -> None:
    """List the parts that a row of the factors has numbers in, those of L and then those of U."""
    turn, number = parts.at[parts.part_of[k]], 0
    for later in range(2):
        parts.ends[k, later] = number
        for b in range(len(parts.first) - 1):
            if parts.on[k, b] == 1 and (parts.at[b] > turn if later else parts.at[b] < turn):
                parts.columns[k, number] = b
                number += 1
    parts.ends[k, 2] = number


@outlined
def solve_coordinates(parts: Parts, y: Array) -> None:
    """Solve with the factors for y, in place."""
    S, count = parts.S, len(parts.first) - 1
    for turn in range(count):
        part = parts.order[turn]
        for k in range(parts.first[part], parts.first[part + 1]):
            best = parts.turns[k]
            y[k], y[best] = y[best], y[k]
    for turn in range(count):
        part = parts.order[turn]
        for k in range(parts.first[part], parts.first[part + 1]):
            total = y[k] - beside(parts, k, 0, y)
            for j in range(parts.first[part], k):
                total -= S[k, j] * y[j]
            y[k] = total
    for turn in range(count - 1, -1, -1):
        part = parts.order[turn]
        for k in range(parts.first[part + 1] - 1, parts.first[part] - 1, -1):
            total = y[k] - beside(parts, k, 1, y)
            for j in range(k + 1, parts.first[part + 1]):
                total -= S[k, j] * y[j]
            y[k] = total / S[k, k]


@helper
def put_pushed(parts: Parts, n: int, x: Array) -> None:
    """Write what the impulses x of n rows do to the coordinates into y."""
    for k in range(len(parts.y)):
        parts.y[k] = 0.0
    for r in range(n):
        for side in range(2):
            a = parts.touched[r, side]
            if a >= 0:
                for k in range(parts.first[a], parts.first[a + 1]):
                    parts.y[k] += x[r] * parts.C[r, k]


@helper
def put_rates(parts: Parts, n: int) -> None:
    """Write what n rows move by at the coordinates y into rates."""
    for r in range(n):
        total = 0.0
        for side in range(2):
            a = parts.touched[r, side]
            if a >= 0:
                for k in range(parts.first[a], parts.first[a + 1]):
                    total += parts.C[r, k] * parts.y[k]
        parts.rates[r] = total


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
            r[m] = right[m]
        leave_misfit(p, n, r, step)
        count += 1
        left, limit = norm(r, n), enough * size + ROUNDING * largest * norm(step, n)
    return left <= limit


@helper
def norm(r: Array, n: int) -> float:
    """Length of the first n numbers."""
    total = 0.0
    for m in range(n):
        total += r[m] * r[m]
    return math.sqrt(total)
