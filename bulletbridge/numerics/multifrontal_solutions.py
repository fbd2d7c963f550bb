"""Solutions with the factors of an elimination in link coordinates: see ``multifrontal``."""

from bulletbridge.compilation.block_sizes import LANES
from bulletbridge.compilation.jit import (
    helper,
    inner_blocks,
    outlined,
    subtract_blocks,
    take_lines,
    take_lines_down,
)
from bulletbridge.numerics.multifrontal import (
    Elimination,
    Front,
    Join,
    blocks_to,
    column_of_factors,
    lifted,
    line_of_factors,
)
from bulletbridge.numerics.records import Array


@helper
def solve(e: Elimination, f: Array, b: Array, x: Array, y: Array) -> None:
    """M x + Jᵀ y = f, J x = b for x (nv,) and y (nc,), which may be f and b.

    y is 0 for rows left over. Leaves the coordinates of all bodies in e.twist.
    """
    push_nothing(e)
    solve_pushed(e, f, b, x, y)


@helper
def push_nothing(e: Elimination) -> None:
    """No wrench on any body, into e.push."""
    for i in range(e.push.shape[0]):
        for c in range(e.push.shape[1]):
            e.push[i, c] = 0.0


@helper
def push_row(e: Elimination, join: Join, r: int) -> None:
    """Add the wrenches of row r, one of a join, to e.push."""
    for c in range(join.width_a):
        e.push[join.a, c] += e.wrench[r, 0, c]
    for c in range(join.width_b):
        e.push[join.b, c] += e.wrench[r, 1, c]
    for n in range(join.more, join.more + join.further):
        other = e.further[n]
        for c in range(other.width_a):
            e.push[other.a, c] += e.arms[n, 0, c]
        for c in range(other.width_b):
            e.push[other.b, c] += e.arms[n, 1, c]


@helper
def solve_pushed(e: Elimination, f: Array, b: Array, x: Array, y: Array) -> None:
    """``solve`` with the wrenches in e.push, which it loses, on the bodies beside f."""
    for i in range(len(e.right)):
        e.right[i] = b[i]
    for i in range(len(e.fronts)):
        forward(e, e.fronts[i], f, x, y)
    for i in range(len(e.fronts) - 1, -1, -1):
        backward(e, e.fronts[i], x, y)


@helper
def forward(e: Elimination, front: Front, f: Array, x: Array, y: Array) -> None:
    """Eliminate one front's right sides; its pivots' values into x and y."""
    t, push, S, factors, numbers, right = e.y, e.push, e.motion, e.factors, e.numbers, e.right
    size, rows, pivots, v = front.rates, front.rows, front.pivots, front.v
    body, own_size, row, factor = front.body, front.own_size, front.row, front.factor
    first, end, parent_size = front.first, front.first + front.count, front.parent_size
    parent, parent_rate, start = front.parent, front.parent_rate, size + rows
    n = start + front.boundary_size
    for j in range(size):
        total = f[v + j]
        if own_size > 0:
            for c in range(own_size):
                total += S[v + j, c] * push[body, c]
        else:
            total += push[body, j]
        t[j] = total
    for i in range(rows):
        t[size + i] = right[numbers[row + i]]
    for i in range(start, LANES * blocks_to(n)):
        t[i] = 0.0
    if front.turns > 0:
        eliminate_turned(e, front, n)
    else:
        take_lines(t, factors, line_of_factors(front, 0, n), pivots, blocks_to(n))
    for j in range(size):
        x[v + j] = t[j] * factors[factor + j]
    for i in range(rows):
        number = numbers[row + i]
        if size + i < pivots:
            y[number] = t[size + i] * factors[factor + size + i]
        else:
            right[number] = t[size + i]
            y[number] = 0.0
    at = start
    for j in range(first, end):
        other, width = e.boundary[j], e.widths[j]
        for c in range(width):
            push[other, c] += t[at]
            at += 1
    for c in range(parent_size):
        push[parent, c] += lifted(S, parent_rate, c, push[body], 0)


@outlined
def eliminate_turned(e: Elimination, front: Front, n: int) -> None:
    """Eliminate all pivots from the n right sides where there are reflections among them."""
    t, blocks = e.y, blocks_to(n)
    take_lines(t, e.factors, line_of_factors(front, 0, n), front.turned, blocks)
    for k in range(front.turns):
        reflect(e, front, k, t)
    for at in range(front.turned, front.pivots):
        block = at // LANES
        begin = LANES * block
        line = line_of_factors(front, at, n) + begin
        subtract_blocks(t, begin, t[at], e.factors, line, blocks - block)


@outlined
def recover_turned(e: Elimination, front: Front, n: int) -> None:
    """Values of all pivots from those of the variables after them, back through reflections."""
    t = e.y
    for at in range(front.pivots - 1, front.turned - 1, -1):
        recover(t, e.factors, front, at, n)
    for k in range(front.turns - 1, -1, -1):
        reflect(e, front, k, t)
    for at in range(front.turned - 1, -1, -1):
        recover(t, e.factors, front, at, n)


@helper
def recover(t: Array, factors: Array, front: Front, at: int, n: int) -> None:
    """The value of pivot ``at`` from those of the variables after it."""
    blocks, block = blocks_to(n), at // LANES
    begin = LANES * block
    line = line_of_factors(front, at, n) + begin
    t[at] -= inner_blocks(factors, line, t, begin, blocks - block)


@helper
def reflect(e: Elimination, front: Front, k: int, t: Array) -> None:
    """One reflection of the soft rows that a front has left."""
    u = e.reflections[front.turn + k * front.max_rows :]
    total, first = 0.0, front.turned
    for i in range(front.wide):
        total += u[i] * t[first + i]
    for i in range(front.wide):
        t[first + i] -= 2.0 * u[i] * total


@helper
def backward(e: Elimination, front: Front, x: Array, y: Array) -> None:
    """Values of one front's pivots from those around it, and its body's coordinates."""
    t, factors, numbers, twist = e.y, e.factors, e.numbers, e.twist
    size, rows, pivots, v = front.rates, front.rows, front.pivots, front.v
    row, first, end = front.row, front.first, front.first + front.count
    start = size + rows
    n = start + front.boundary_size
    for j in range(size):
        t[j] = x[v + j]
    for i in range(rows):
        t[size + i] = y[numbers[row + i]]
    at = start
    for j in range(first, end):
        other, width = e.boundary[j], e.widths[j]
        for c in range(width):
            t[at] = twist[other, c]
            at += 1
    for i in range(n, LANES * blocks_to(n)):
        t[i] = 0.0
    if front.turns > 0:
        recover_turned(e, front, n)
    else:
        take_lines_down(t, factors, column_of_factors(front, 0, n), n, blocks_to(n))
    for i in range(size, max(pivots, front.turned + front.wide)):
        y[numbers[row + i - size]] = t[i]
    for j in range(size):
        x[v + j] = t[j]
    move(e, front, x)


@helper
def move(e: Elimination, front: Front, x: Array) -> None:
    """A body's coordinates from those of its parent and the rates x."""
    S, twist, body, parent, v = e.motion, e.twist, front.body, front.parent, front.v
    size, own_size, parent_size = front.rates, front.own_size, front.parent_size
    parent_rate = front.parent_rate
    if own_size == 0:
        for j in range(size):
            twist[body, j] = x[v + j]
        return
    for c in range(own_size):
        total = 0.0
        if parent_rate < 0:
            total = twist[parent, c]
        else:
            for j in range(parent_size):
                total += S[parent_rate + j, c] * twist[parent, j]
        for j in range(v, v + size):
            total += S[j, c] * x[j]
        twist[body, c] = total


@helper
def carry(e: Elimination, v: Array) -> None:
    """Coordinates of all bodies at the rates v (nv,), into e.twist."""
    for i in range(len(e.fronts) - 1, -1, -1):
        move(e, e.fronts[i], v)


@helper
def row_rates(e: Elimination, rates: Array) -> None:
    """J v (nc,) at the coordinates that ``carry`` left."""
    for i in range(len(e.joins)):
        join = e.joins[i]
        for r in range(join.row, join.row + join.rows):
            rates[r] = rate_along(e, join, e.wrench[r])


@helper
def rate_along(e: Elimination, join: Join, row: Array) -> float:
    """What a row (2, k) of a join gives at the coordinates that ``carry`` or ``solve`` left."""
    total = 0.0
    for c in range(join.width_a):
        total += row[0, c] * e.twist[join.a, c]
    for c in range(join.width_b):
        total += row[1, c] * e.twist[join.b, c]
    for n in range(join.more, join.more + join.further):
        other = e.further[n]
        for c in range(other.width_a):
            total += e.arms[n, 0, c] * e.twist[other.a, c]
        for c in range(other.width_b):
            total += e.arms[n, 1, c] * e.twist[other.b, c]
    return total


@helper
def twice_kinetic_energy(e: Elimination, v: Array) -> float:
    """Twice the kinetic energy at the rates v (nv,), with what rates and ties have themselves."""
    carry(e, v)
    total = 0.0
    for i in range(len(e.fronts)):
        front = e.fronts[i]
        body = front.body
        for m in range(front.own_size if front.own_size > 0 else front.rates):
            x = e.twist[body, m]
            total += e.inertia[body, m, m] * x * x
            for n in range(m):
                total += 2.0 * e.inertia[body, m, n] * x * e.twist[body, n]
    for i in range(len(v)):
        total += e.extra[i] * v[i] * v[i]
    for i in range(len(e.ties)):
        tie = e.ties[i]
        for r in range(tie.row, tie.row + tie.rows):
            total += e.weights[r] * rate_along(e, tie, e.pulls[r]) ** 2
    return max(total, 0.0)
