"""Factors of an elimination in link coordinates: see ``multifrontal``."""

import math

from bulletbridge.compilation.jit import helper
from bulletbridge.numerics.multifrontal import OWN, Elimination, Front, lifted, line_of_factors
from bulletbridge.numerics.records import Array

ENOUGH = 1e-4
"""Compliance of a row, in that of its scale, with which it is eliminated rather than passed on."""
LEAST, NOTHING = 1e-8, 1e-12
"""Compliance of a row that still counts where no front is left to pass it on to, and its round-off.

What is in between is for a method that decides on ranks."""


@helper
def factorise(e: Elimination) -> float:
    """Eliminate all bodies; smallest over largest row pivot, or -1 for a rank in doubt.

    Takes motion, inertia, extra and wrench.
    """
    weakest, strongest = math.inf, 0.0
    for i in range(len(e.fronts)):
        front = e.fronts[i]
        assemble(e, front)
        take_joint(e, front)
        weakest, strongest = eliminate(e, front, weakest, strongest)
        if weakest < 0.0:
            return -1.0
        store_update(e, front)
    return weakest / strongest if strongest > 0.0 else 1.0


@helper
def assemble(e: Elimination, front: Front) -> None:
    """Own inertia, own rows and what earlier fronts have left, into the lower triangle of W."""
    W, rows, child = e.W, 0, front.child
    while child >= 0:
        rows += delayed_rows(e.fronts[child])
        child = e.fronts[child].sibling
    for j in range(front.join, front.join + front.joins):
        rows += e.joins[j].rows
    front.rows = rows
    start = front.size + rows  # of the boundary
    own_start = start + front.boundary_size if front.own_size > 0 else 0
    for a in range(start + front.boundary_size + front.own_size):
        for b in range(a + 1):
            W[a, b] = 0.0
    for a in range(front.own_size if front.own_size > 0 else front.size):
        for b in range(a + 1):
            W[own_start + a, own_start + b] = e.inertia[front.body, a, b]
    row, child = 0, front.child
    while child >= 0:
        row = extend_add(e, front, e.fronts[child], row, start, own_start)
        child = e.fronts[child].sibling
    for j in range(front.join, front.join + front.joins):
        join = e.joins[j]
        for r in range(join.row, join.row + join.rows):
            e.numbers[front.row + row] = r
            at = front.size + row
            add_row(W, join.place_a, start, own_start, at, e.wrench[r, 0], 0, join.width_a)
            add_row(W, join.place_b, start, own_start, at, e.wrench[r, 1], 0, join.width_b)
            row += 1


@helper
def delayed_rows(front: Front) -> int:
    """Rows that a front leaves to the next."""
    return front.size + front.rows - front.pivots


@helper
def add_row(
    W: Array, place: int, start: int, own_start: int, at: int, x: Array, first: int, width: int
) -> None:
    """Add what row ``at`` has on a body's coordinates, from ``first`` on in x."""
    if place == OWN and own_start == 0:  # the body's rates, which come before the rows
        for c in range(width):
            W[at, c] += x[first + c]
        return
    base = own_start if place == OWN else start + place
    for c in range(width):
        W[base + c, at] += x[first + c]


@helper
def extend_add(
    e: Elimination, front: Front, child: Front, row: int, start: int, own_start: int
) -> int:
    """Add what an earlier front has left; number of the next row of this one.

    The first body of its boundary is the one that this front eliminates; the others are in the same
    order here as there.
    """
    W, line = e.W, child.update
    parent_rate = e.widths[child.first]
    for a in range(parent_rate):
        for b in range(a + 1):
            W[own_start + a, own_start + b] += e.update[line]
            line += 1
    for j in range(child.first + 1, child.first + child.count):
        base = start + e.places[j]
        for a in range(base, base + e.widths[j]):
            if own_start == 0:
                for b in range(parent_rate):
                    W[a, b] += e.update[line + b]
            else:
                for b in range(parent_rate):
                    W[own_start + b, a] += e.update[line + b]
            line += parent_rate
            for i in range(child.first + 1, j):
                other = start + e.places[i]
                for b in range(e.widths[i]):
                    W[a, other + b] += e.update[line + b]
                line += e.widths[i]
            for b in range(base, a + 1):
                W[a, b] += e.update[line]
                line += 1
    first = row
    for r in range(delayed_rows(child)):
        e.numbers[front.row + row] = e.numbers[child.row + child.pivots - child.size + r]
        at = front.size + row
        for j in range(child.first, child.first + child.count):
            add_row(W, e.places[j], start, own_start, at, e.update, line, e.widths[j])
            line += e.widths[j]
        for other in range(first, row + 1):
            W[at, front.size + other] += e.update[line]
            line += 1
        row += 1
    return row


@helper
def take_joint(e: Elimination, front: Front) -> None:
    """Put the parent's coordinates and the rates of the joint in the place of own coordinates."""
    W, S, k = e.W, e.motion, front.own_size
    start = front.size + front.rows
    own_start, parent_start = start + front.boundary_size, start + front.parent_start
    for j in range(front.size if k > 0 else 0):
        v = front.v + j
        for a in range(front.size, own_start):
            total = 0.0
            for c in range(k):
                total += S[v, c] * W[own_start + c, a]
            W[a, j] = total
        for c in range(k):
            total = 0.0
            for b in range(k):
                total += S[v, b] * (
                    W[own_start + c, own_start + b] if b <= c else W[own_start + b, own_start + c]
                )
            e.column[c] = total
        for c in range(front.parent_size):
            W[parent_start + c, j] += lifted(S, front.parent_rate, c, e.column, 0)
        for i in range(j + 1):
            total = 0.0
            for c in range(k):
                total += e.column[c] * S[front.v + i, c]
            W[j, i] = total
    for j in range(front.size):
        W[j, j] += e.extra[front.v + j]
    if k > 0:
        lift(e, front, own_start, parent_start)


@helper
def lift(e: Elimination, front: Front, own_start: int, parent_start: int) -> None:
    """Add own coordinates to those of the parent."""
    W, S, k = e.W, e.motion, front.own_size
    for c in range(front.parent_size):
        for a in range(front.size, own_start):
            if front.parent_rate < 0:
                total = W[own_start + c, a]
            else:
                total = 0.0
                for m in range(k):
                    total += S[front.parent_rate + c, m] * W[own_start + m, a]
            if a < parent_start:
                W[parent_start + c, a] += total
            elif a >= parent_start + front.parent_size:
                W[a, parent_start + c] += total
            else:
                e.column[a - parent_start] = total
        # twice the coupling of own and parent's coordinates, once the block of its own
        for b in range(front.parent_size):
            if b <= c:
                W[parent_start + c, parent_start + b] += e.column[b]
            if b >= c:
                W[parent_start + b, parent_start + c] += e.column[b]
        for b in range(c + 1):
            W[parent_start + c, parent_start + b] += between(
                W, S, front.parent_rate, k, own_start, c, b
            )


@helper
def between(W: Array, S: Array, parent_rate: int, k: int, own_start: int, c: int, b: int) -> float:
    """Own block on coordinates c and b of the parent, b at most c."""
    if parent_rate < 0:
        return W[own_start + c, own_start + b]
    total = 0.0
    for m in range(k):
        for n in range(k):
            x = W[own_start + m, own_start + n] if n <= m else W[own_start + n, own_start + m]
            total += S[parent_rate + c, m] * x * S[parent_rate + b, n]
    return total


@helper
def eliminate(
    e: Elimination, front: Front, weakest: float, strongest: float
) -> tuple[float, float]:
    """Rates, then rows by their compliance; smallest and largest row pivot so far, -1 for doubt."""
    W = e.W
    end = front.size + front.rows
    n = end + front.boundary_size
    for at in range(front.size):
        pivot(e, front, at, n)
    at = front.size
    least = ENOUGH if front.count > 0 else LEAST
    while at < end:
        best = at
        for i in range(at + 1, end):
            if W[i, i] < W[best, best]:
                best = i
        compliance = -W[best, best]
        if not compliance >= least:
            if front.count == 0 and not compliance < NOTHING:
                return -1.0, strongest
            break
        if best != at:
            exchange(e, front, at, best, n)
        e.kept[e.numbers[front.row + at - front.size]] = 1
        pivot(e, front, at, n)
        weakest, strongest = min(weakest, compliance), max(strongest, compliance)
        at += 1
    front.pivots = at
    for i in range(at, end):
        e.kept[e.numbers[front.row + i - front.size]] = 0
    if front.count > 0 and end - at > front.max_delayed:
        return -1.0, strongest
    return weakest, strongest


@helper
def pivot(e: Elimination, front: Front, at: int, n: int) -> None:
    """Eliminate variable ``at`` of the n in W."""
    W, column = e.W, e.column
    line = line_of_factors(front, at, n)
    inverse = 1.0 / W[at, at]
    e.factors[line + at] = inverse
    for a in range(at + 1, n):
        column[a] = W[a, at]
        e.factors[line + a] = W[a, at] * inverse
    for a in range(at + 1, n):
        share = e.factors[line + a]
        if share != 0.0:
            for b in range(at + 1, a + 1):
                W[a, b] -= share * column[b]


@helper
def exchange(e: Elimination, front: Front, at: int, other: int, n: int) -> None:
    """Exchange rows ``at`` < ``other`` of a front, both not yet eliminated."""
    W, numbers = e.W, e.numbers
    first = front.row - front.size
    numbers[first + at], numbers[first + other] = numbers[first + other], numbers[first + at]
    W[at, at], W[other, other] = W[other, other], W[at, at]
    for a in range(at + 1, other):
        W[a, at], W[other, a] = W[other, a], W[a, at]
    for a in range(other + 1, n):
        W[a, at], W[a, other] = W[a, other], W[a, at]
    for j in range(at):
        line = line_of_factors(front, j, n)
        held = e.factors[line + at]
        e.factors[line + at] = e.factors[line + other]
        e.factors[line + other] = held


@helper
def store_update(e: Elimination, front: Front) -> None:
    """Keep what is left for the next front: boundary, then rows passed on, packed."""
    W, line = e.W, front.update
    start = front.size + front.rows
    for a in range(start, start + front.boundary_size):
        for b in range(start, a + 1):
            e.update[line] = W[a, b]
            line += 1
    if front.boundary_size == 0:
        return
    for at in range(front.pivots, start):
        for b in range(start, start + front.boundary_size):
            e.update[line] = W[b, at]
            line += 1
        for other in range(front.pivots, at + 1):
            e.update[line] = W[at, other]
            line += 1
