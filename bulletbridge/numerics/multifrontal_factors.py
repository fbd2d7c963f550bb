"""Factors of an elimination in link coordinates: see ``multifrontal``."""

import math

from bulletbridge.compilation.block_sizes import LANES, SIX, TWO
from bulletbridge.compilation.jit import (
    clear_blocks,
    eliminate_six,
    helper,
    outlined,
    scale_after,
    subtract_blocks,
)
from bulletbridge.numerics.multifrontal import (
    OWN,
    Elimination,
    Front,
    Join,
    blocks_to,
    column_of_factors,
    lifted,
    line_of_factors,
)
from bulletbridge.numerics.records import Array

ENOUGH = 1e-4
"""Compliance of a row, in that of its scale, with which it is eliminated rather than passed on."""
LEAST = 1e-8
"""The same where no front is left to pass it on to."""
NOTHING_BEYOND = 1e-16
"""Squared length, of one near one, of what soft rows have beyond a front, that is nothing."""
WITHOUT = 1e30
"""Softness of a row that is to carry nothing."""


@helper
def factorise(e: Elimination) -> tuple[float, float, float]:
    """Eliminate all bodies; smallest and largest row pivot, largest compliance left over.

    Takes motion, inertia, extra and wrench, pulls and weights.
    """
    weakest, strongest, left = math.inf, 0.0, 0.0
    for i in range(len(e.fronts)):
        front = e.fronts[i]
        assemble(e, front)
        take_joint(e, front)
        weakest, strongest, most = eliminate(e, front, weakest, strongest)
        left = max(left, most)
        store_update(e, front)
    return weakest, strongest, left


@helper
def assemble(e: Elimination, front: Front) -> None:
    """Own inertia, own rows and what earlier fronts have left, into the upper triangle of W."""
    W, rows, child = e.W, 0, front.child
    while child >= 0:
        rows += e.fronts[child].delayed
        child = e.fronts[child].sibling
    for j in range(front.join, front.join + front.joins):
        rows += e.joins[j].rows
    front.rows = rows
    start = front.rates + rows  # of the boundary
    own_start = start + front.boundary_size if front.own_size > 0 else 0
    n = start + front.boundary_size + front.own_size
    clear_blocks(W, 0, n * (W.shape[1] // LANES))  # one piece of memory: triangles are many
    body = front.body
    for a in range(front.own_size if front.own_size > 0 else front.rates):
        for b in range(a + 1):
            W[own_start + b, own_start + a] = e.inertia[body, a, b]
    row, child = 0, front.child
    while child >= 0:
        row = extend_add(e, front, e.fronts[child], row, start, own_start)
        child = e.fronts[child].sibling
    for j in range(front.join, front.join + front.joins):
        join = e.joins[j]
        for r in range(join.row, join.row + join.rows):
            e.numbers[front.row + row] = r
            at = start - rows + row
            add_row(W, join.place_a, start, own_start, at, e.wrench[r, 0], 0, join.width_a)
            add_row(W, join.place_b, start, own_start, at, e.wrench[r, 1], 0, join.width_b)
            for k in range(join.more, join.more + join.further):
                other = e.further[k]
                add_row(W, other.place_a, start, own_start, at, e.arms[k, 0], 0, other.width_a)
                add_row(W, other.place_b, start, own_start, at, e.arms[k, 1], 0, other.width_b)
            W[at, at] -= e.soft[r]
            row += 1
    for j in range(front.tie, front.tie + front.ties):
        tie = e.ties[j]
        for r in range(tie.row, tie.row + tie.rows):
            if e.weights[r] > 0.0 and tie.further > 0:
                add_long_tie(e, tie, start, own_start, n, r)
            elif e.weights[r] > 0.0:
                add_tie(W, tie, start, own_start, e.weights[r], e.pulls[r])


@helper
def add_tie(W: Array, tie: Join, start: int, own_start: int, weight: float, pull: Array) -> None:
    """Add the square of a row (2, k) on two bodies, times its weight, to their inertia."""
    first_a = own_start if tie.place_a == OWN else start + tie.place_a
    first_b = own_start if tie.place_b == OWN else start + tie.place_b
    for c in range(tie.width_a):
        x = weight * pull[0, c]
        for d in range(c + 1):
            W[first_a + d, first_a + c] += x * pull[0, d]
        for d in range(tie.width_b):
            one, other = first_a + c, first_b + d
            W[min(one, other), max(one, other)] += x * pull[1, d]
    for c in range(tie.width_b):
        x = weight * pull[1, c]
        for d in range(c + 1):
            W[first_b + d, first_b + c] += x * pull[1, d]


@outlined
def add_long_tie(e: Elimination, tie: Join, start: int, own_start: int, n: int, r: int) -> None:
    """The same of a row on further bodies, of n variables in all."""
    row, W, weight = e.column, e.W, e.weights[r]
    for i in range(n):
        row[i] = 0.0
    add_ends(row, tie, start, own_start, e.pulls[r])
    for k in range(tie.more, tie.more + tie.further):
        add_ends(row, e.further[k], start, own_start, e.arms[k])
    for i in range(n):
        if row[i] != 0.0:
            for j in range(i, n):
                W[i, j] += weight * row[i] * row[j]


@helper
def add_ends(row: Array, tie: Join, start: int, own_start: int, pull: Array) -> None:
    """Add what a row (2, k) is on two bodies to where they are among the variables."""
    first_a = own_start if tie.place_a == OWN else start + tie.place_a
    first_b = own_start if tie.place_b == OWN else start + tie.place_b
    for c in range(tie.width_a):
        row[first_a + c] += pull[0, c]
    for c in range(tie.width_b):
        row[first_b + c] += pull[1, c]


@helper
def add_row(
    W: Array, place: int, start: int, own_start: int, at: int, x: Array, first: int, width: int
) -> None:
    """Add what row ``at`` has on a body's coordinates, from ``first`` on in x."""
    if place == OWN and own_start == 0:  # the body's rates, which come before the rows
        for c in range(width):
            W[c, at] += x[first + c]
        return
    base = own_start if place == OWN else start + place
    for c in range(width):
        W[at, base + c] += x[first + c]


@helper
def extend_add(
    e: Elimination, front: Front, child: Front, row: int, start: int, own_start: int
) -> int:
    """Add what an earlier front has left; number of the next row of this one.

    The first body of its boundary is the one that this front eliminates; the others are in the same
    order here as there.
    """
    W, update, line = e.W, e.update, child.update
    first, end = child.first, child.first + child.count
    parent_rate = e.widths[first]
    for a in range(parent_rate):
        for b in range(a + 1):
            W[own_start + b, own_start + a] += update[line]
            line += 1
    for j in range(first + 1, end):
        base = start + e.places[j]
        width = e.widths[j]
        for a in range(base, base + width):
            if own_start == 0:
                for b in range(parent_rate):
                    W[b, a] += update[line + b]
            else:
                for b in range(parent_rate):
                    W[a, own_start + b] += update[line + b]
            line += parent_rate
            for i in range(first + 1, j):
                other, wide = start + e.places[i], e.widths[i]
                for b in range(wide):
                    W[other + b, a] += update[line + b]
                line += wide
            for b in range(base, a + 1):
                W[b, a] += update[line]
                line += 1
    before, size, delayed = row, front.rates, child.delayed
    for r in range(delayed):
        e.numbers[front.row + row] = e.numbers[child.row + child.pivots - child.rates + r]
        at = size + row
        for j in range(first, end):
            add_row(W, e.places[j], start, own_start, at, update, line, e.widths[j])
            line += e.widths[j]
        for other in range(before, row + 1):
            W[size + other, at] += update[line]
            line += 1
        row += 1
    return row


@helper
def take_joint(e: Elimination, front: Front) -> None:
    """Put the parent's coordinates and the rates of the joint in the place of own coordinates."""
    W, S, column, k, size, first = e.W, e.motion, e.column, front.own_size, front.rates, front.v
    start = size + front.rows
    own_start, parent_start = start + front.boundary_size, start + front.parent_start
    parent_size, parent_rate = front.parent_size, front.parent_rate
    for j in range(size if k > 0 else 0):
        v = first + j
        for a in range(size, own_start):
            total = 0.0
            for c in range(k):
                total += S[v, c] * W[a, own_start + c]
            W[j, a] = total
        for c in range(k):
            total = 0.0
            for b in range(k):
                total += S[v, b] * (
                    W[own_start + b, own_start + c] if b <= c else W[own_start + c, own_start + b]
                )
            column[c] = total
        for c in range(parent_size):
            W[j, parent_start + c] += lifted(S, parent_rate, c, column, 0)
        for i in range(j + 1):
            total = 0.0
            for c in range(k):
                total += column[c] * S[first + i, c]
            W[i, j] = total
    for j in range(size):
        W[j, j] += e.extra[first + j]
    if k > 0:
        lift(e, front, own_start, parent_start)
        for a in range(own_start):  # own coordinates have gone: nothing is beyond the boundary
            for b in range(own_start, LANES * blocks_to(own_start)):
                W[a, b] = 0.0


@helper
def lift(e: Elimination, front: Front, own_start: int, parent_start: int) -> None:
    """Add own coordinates to those of the parent."""
    W, S, column, k, size = e.W, e.motion, e.column, front.own_size, front.rates
    parent_size, parent_rate = front.parent_size, front.parent_rate
    for c in range(parent_size):
        for a in range(size, own_start):
            if parent_rate < 0:
                total = W[a, own_start + c]
            else:
                total = 0.0
                for m in range(k):
                    total += S[parent_rate + c, m] * W[a, own_start + m]
            if a < parent_start:
                W[a, parent_start + c] += total
            elif a >= parent_start + parent_size:
                W[parent_start + c, a] += total
            else:
                column[a - parent_start] = total
        # twice the coupling of own and parent's coordinates, once the block of its own
        for b in range(parent_size):
            if b <= c:
                W[parent_start + b, parent_start + c] += column[b]
            if b >= c:
                W[parent_start + c, parent_start + b] += column[b]
        for b in range(c + 1):
            W[parent_start + b, parent_start + c] += between(W, S, parent_rate, k, own_start, c, b)


@helper
def between(W: Array, S: Array, parent_rate: int, k: int, own_start: int, c: int, b: int) -> float:
    """Own block on coordinates c and b of the parent, b at most c."""
    if parent_rate < 0:
        return W[own_start + b, own_start + c]
    total = 0.0
    for m in range(k):
        for n in range(k):
            x = W[own_start + n, own_start + m] if n <= m else W[own_start + m, own_start + n]
            total += S[parent_rate + c, m] * x * S[parent_rate + b, n]
    return total


@helper
def eliminate(
    e: Elimination, front: Front, weakest: float, strongest: float
) -> tuple[float, float, float]:
    """Rates, then rows by their compliance.

    Returns:
        Smallest and largest row pivot so far, and the largest compliance of rows left over here.
    """
    W, kept, numbers, size = e.W, e.kept, e.numbers, front.rates
    end, first = size + front.rows, front.row - size
    n = end + front.boundary_size
    columns, blocks = column_of_factors(front, 0, n), blocks_to(n)
    if size == SIX and blocks == TWO:  # a free body, one beside it, and the rows between them
        eliminate_six(W, e.factors, front.factor, line_of_factors(front, 0, n), columns, n)
    else:
        clear_blocks(e.factors, columns, n * blocks)
        for at in range(size):
            pivot(W, e.factors, front, at, n)
    at = size
    least = ENOUGH if front.count > 0 else LEAST
    while at < end:
        best = at
        for i in range(at + 1, end):
            if W[i, i] < W[best, best]:
                best = i
        if numbers[first + best] >= e.rigid:
            best = rigid_before(e, front, at, end, best, least)
        compliance = -W[best, best]
        if not compliance >= (least if numbers[first + best] < e.rigid else max(least, e.least[0])):
            break
        if best != at:
            exchange(e, front, at, best, n)
        kept[numbers[first + at]] = 1
        pivot(W, e.factors, front, at, n)
        weakest, strongest = min(weakest, compliance), max(strongest, compliance)
        at += 1
    front.pivots = at
    front.turns, front.turned, front.wide = 0, at, 0
    if len(e.soft) > e.rigid:
        at = eliminate_soft(e, front, at, end, n)
        front.pivots = at
    for i in range(at, end):
        kept[numbers[first + i]] = 0
    delayed = min(end - at, front.max_delayed)
    front.delayed = delayed
    for i in range(at, at + delayed if delayed < end - at else at):
        best = i  # those that move most beyond
        for j in range(i + 1, end):
            if beyond(W, j, end, n) > beyond(W, best, end, n):
                best = j
        if best != i:
            exchange(e, front, i, best, n)
    left = 0.0
    for i in range(at + delayed, end):
        left = max(left, -W[i, i])
    return weakest, strongest, left


@helper
def rigid_before(e: Elimination, front: Front, at: int, end: int, soft: int, least: float) -> int:
    """The rigid row of most compliance, if that is enough, or the soft row that has more."""
    best = soft
    for i in range(at, end):
        if e.numbers[front.row - front.rates + i] < e.rigid and -e.W[i, i] >= least:
            best = i if best == soft or e.W[i, i] < e.W[best, best] else best
    return best


@outlined
def eliminate_soft(e: Elimination, front: Front, at: int, end: int, n: int) -> int:
    """Soft rows that have nothing beyond the front, after reflections; the place after the last."""
    numbers, first = e.numbers, front.row - front.rates
    count = 0
    for i in range(at, end):  # soft ones first
        if numbers[first + i] >= e.rigid:
            if i != at + count:
                exchange(e, front, at + count, i, n)
            count += 1
    front.turned, front.wide, front.turns = at, count, 0
    while front.turns < count and reflect(e, front, end, n):
        front.turns += 1
    last = at + count - front.turns
    while at < last:
        if not -e.W[at, at] > e.least[0]:  # it goes without
            for a in range(at + 1, n):
                e.W[at, a] = 0.0
            e.W[at, at] = -WITHOUT
        e.kept[numbers[first + at]] = 1
        pivot(e.W, e.factors, front, at, n)
        at += 1
    return at


@helper
def reflect(e: Elimination, front: Front, end: int, n: int) -> bool:
    """Gather what is most in one column beyond the front in the last row that is not done yet.

    Source: Golub and Van Loan, Matrix Computations, 5.1 (Householder).
    """
    W, first, last = e.W, front.turned, front.turned + front.wide - front.turns
    u = e.reflections[front.turn + front.turns * front.max_rows :]
    best, most = -1, NOTHING_BEYOND
    for b in range(end, n):
        total = 0.0
        for i in range(first, last):
            total += W[i, b] * W[i, b]
        if total > most:
            best, most = b, total
    if best < 0:
        return False
    length, last_one = math.sqrt(most), W[last - 1, best]
    over = last_one + (length if last_one >= 0.0 else -length)
    size = math.sqrt(most - last_one * last_one + over * over)
    for i in range(front.wide):
        u[i] = W[first + i, best] / size if first + i < last - 1 else 0.0
    u[last - 1 - first] = over / size
    for b in range(first + front.wide, n):  # rigid rows, and what is beyond
        total = 0.0
        for i in range(first, last):
            total += u[i - first] * W[i, b]
        for i in range(first, last):
            W[i, b] -= 2.0 * u[i - first] * total
    column, between_all = e.column, 0.0
    for i in range(front.wide):
        total = 0.0
        for j in range(front.wide):
            one, other = min(i, j), max(i, j)
            total += u[j] * W[first + one, first + other]
        column[i] = total
        between_all += u[i] * total
    for i in range(front.wide):
        for j in range(i, front.wide):
            both = column[i] * u[j] + u[i] * column[j] - 2.0 * between_all * u[i] * u[j]
            W[first + i, first + j] -= 2.0 * both
    return True


@helper
def beyond(W: Array, at: int, end: int, n: int) -> float:
    """How much the row ``at`` has on what is around the front, squared."""
    total = 0.0
    for b in range(end, n):
        total += W[at, b] * W[at, b]
    return total


@helper
def pivot(W: Array, factors: Array, front: Front, at: int, n: int) -> None:
    """Eliminate variable ``at`` of the n in W."""
    blocks, width, inverse = blocks_to(n), W.shape[1], 1.0 / W[at, at]
    line, own, block = line_of_factors(front, at, n), at * width, at // LANES
    column, wide = column_of_factors(front, 0, n) + at, LANES * blocks
    factors[front.factor + at] = inverse
    begin = LANES * block
    scale_after(factors, line + begin, inverse, W, own + begin, at - begin, blocks - block)
    for a in range(at + 1, n):
        share = factors[line + a]
        if share != 0.0:
            factors[column + a * wide] = share
            block = a // LANES
            begin = LANES * block
            subtract_blocks(W, a * width + begin, share, W, own + begin, blocks - block)


@helper
def exchange(e: Elimination, front: Front, at: int, other: int, n: int) -> None:
    """Exchange rows ``at`` < ``other`` of a front, both not yet eliminated."""
    W, numbers = e.W, e.numbers
    first = front.row - front.rates
    numbers[first + at], numbers[first + other] = numbers[first + other], numbers[first + at]
    W[at, at], W[other, other] = W[other, other], W[at, at]
    for a in range(at + 1, other):
        W[at, a], W[a, other] = W[a, other], W[at, a]
    for a in range(other + 1, n):
        W[at, a], W[other, a] = W[other, a], W[at, a]
    for j in range(at):
        line = line_of_factors(front, j, n)
        held = e.factors[line + at]
        e.factors[line + at] = e.factors[line + other]
        e.factors[line + other] = held
    first, second = column_of_factors(front, at, n), column_of_factors(front, other, n)
    for j in range(at):
        held = e.factors[first + j]
        e.factors[first + j] = e.factors[second + j]
        e.factors[second + j] = held


@helper
def store_update(e: Elimination, front: Front) -> None:
    """Keep what is left for the next front: boundary, then rows passed on, packed."""
    W, update, line = e.W, e.update, front.update
    start = front.rates + front.rows
    n, pivots, delayed = start + front.boundary_size, front.pivots, front.delayed
    for a in range(start, n):
        for b in range(start, a + 1):
            update[line] = W[b, a]
            line += 1
    if n == start:
        return
    for at in range(pivots, pivots + delayed):
        for b in range(start, n):
            update[line] = W[at, b]
            line += 1
        for other in range(pivots, at + 1):
            update[line] = W[other, at]
            line += 1
