"""Solutions with the factors of an elimination in link coordinates: see ``multifrontal``."""

from bulletbridge.compilation.jit import helper
from bulletbridge.numerics.multifrontal import Elimination, Front, lifted, line_of_factors
from bulletbridge.numerics.records import Array


@helper
def solve(e: Elimination, f: Array, b: Array, x: Array, y: Array) -> None:
    """M x + Jᵀ y = f, J x = b for x (nv,) and y (nc,), which may be f and b.

    y is 0 for rows left out. Leaves the coordinates of all bodies in e.twist.
    """
    k = e.motion.shape[1]
    for i in range(e.push.shape[0]):
        for c in range(k):
            e.push[i, c] = 0.0
    for i in range(len(e.right)):
        e.right[i] = b[i]
    for i in range(len(e.fronts)):
        forward(e, e.fronts[i], f, x, y)
    for i in range(len(e.fronts) - 1, -1, -1):
        backward(e, e.fronts[i], x, y)


@helper
def forward(e: Elimination, front: Front, f: Array, x: Array, y: Array) -> None:
    """Eliminate one front's right sides; its pivots' values into x and y."""
    t, push, S = e.y, e.push, e.motion
    start = front.size + front.rows
    n = start + front.boundary_size
    for j in range(front.size):
        total = f[front.v + j]
        if front.own_size > 0:
            for c in range(front.own_size):
                total += S[front.v + j, c] * push[front.body, c]
        else:
            total += push[front.body, j]
        t[j] = total
    for i in range(front.rows):
        t[front.size + i] = e.right[e.numbers[front.row + i]]
    for i in range(start, n):
        t[i] = 0.0
    for at in range(front.pivots):
        line, value = line_of_factors(front, at, n), t[at]
        for a in range(at + 1, n):
            t[a] -= e.factors[line + a] * value
        t[at] = value * e.factors[line + at]
    for j in range(front.size):
        x[front.v + j] = t[j]
    for i in range(front.rows):
        number = e.numbers[front.row + i]
        if front.size + i < front.pivots:
            y[number] = t[front.size + i]
        else:
            e.right[number] = t[front.size + i]
            y[number] = 0.0
    at = start
    for j in range(front.first, front.first + front.count):
        for c in range(e.widths[j]):
            push[e.boundary[j], c] += t[at]
            at += 1
    for c in range(front.parent_size):
        push[front.parent, c] += lifted(S, front.parent_rate, c, push[front.body], 0)


@helper
def backward(e: Elimination, front: Front, x: Array, y: Array) -> None:
    """Values of one front's pivots from those around it, and its body's coordinates."""
    t = e.y
    start = front.size + front.rows
    n = start + front.boundary_size
    for j in range(front.size):
        t[j] = x[front.v + j]
    for i in range(front.rows):
        t[front.size + i] = y[e.numbers[front.row + i]]
    at = start
    for j in range(front.first, front.first + front.count):
        for c in range(e.widths[j]):
            t[at] = e.twist[e.boundary[j], c]
            at += 1
    for at in range(front.pivots - 1, -1, -1):
        line, total = line_of_factors(front, at, n), t[at]
        for a in range(at + 1, n):
            total -= e.factors[line + a] * t[a]
        t[at] = total
    for i in range(front.size, front.pivots):
        y[e.numbers[front.row + i - front.size]] = t[i]
    for j in range(front.size):
        x[front.v + j] = t[j]
    move(e, front, x)


@helper
def move(e: Elimination, front: Front, x: Array) -> None:
    """A body's coordinates from those of its parent and the rates x."""
    S, twist = e.motion, e.twist
    if front.own_size == 0:
        for j in range(front.size):
            twist[front.body, j] = x[front.v + j]
        return
    for c in range(front.own_size):
        total = 0.0
        if front.parent_rate < 0:
            total = twist[front.parent, c]
        else:
            for j in range(front.parent_size):
                total += S[front.parent_rate + j, c] * twist[front.parent, j]
        for j in range(front.v, front.v + front.size):
            total += S[j, c] * x[j]
        twist[front.body, c] = total


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
            total = 0.0
            for c in range(join.width_a):
                total += e.wrench[r, 0, c] * e.twist[join.a, c]
            for c in range(join.width_b):
                total += e.wrench[r, 1, c] * e.twist[join.b, c]
            rates[r] = total


@helper
def twice_kinetic_energy(e: Elimination, v: Array) -> float:
    """Twice the kinetic energy at the rates v (nv,), with the inertia of the rates themselves."""
    carry(e, v)
    total = 0.0
    for i in range(len(e.fronts)):
        front = e.fronts[i]
        body = front.body
        for m in range(front.own_size if front.own_size > 0 else front.size):
            x = e.twist[body, m]
            total += e.inertia[body, m, m] * x * x
            for n in range(m):
                total += 2.0 * e.inertia[body, m, n] * x * e.twist[body, n]
    for i in range(len(v)):
        total += e.extra[i] * v[i] * v[i]
    return max(total, 0.0)
