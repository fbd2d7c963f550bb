"""Smooth contacts: forces f and rates u = S f + b of their rows, with R(f, u) = 0.

A row along a normal has f u = s, positive both. Friction of a cone with the radius r, the force of
its owner, has with z = f/mu, v = mu u

    r g + z·v = s      r v + g z = 0

and so z = -r v/g, g = a + (a² + v²)^½, a = s/(2 r). That is the path of ``interior_path``, ended
before its end, s = 0, and followed from outside: Newton's method finds f for one s after another.
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.numerics.complementarity_rows import RowBounds
from bulletbridge.numerics.lu import back_real, lu_real
from bulletbridge.numerics.records import Array, Records

SHARPER = 0.1
"""What s goes down by, from where all is smooth to what it is to be."""
ENOUGH = 1e-11
"""Residual, as a share of forces, at which Newton's method ends."""
MOST_STEPS = 60
"""Of Newton's method for each s."""
FALL, SHORTEST = 1e-4, 1e-6
"""Share of a step by which the residual has to fall, and the shortest share that is tried."""
LINES = 6
"""Lines of scratch besides a matrix."""


class SmoothContacts(NamedTuple):
    """A problem and the room to solve it in."""

    S: Array  # (m, m)
    b: Array  # (m,)
    bounds: Records[RowBounds]  # normals have no owner, and stand before their cones
    K: Array  # (m, m) derivatives of R by f,
    L: Array  # (m, m) and by u
    R: Array  # (m,)
    u: Array  # (m,)
    step: Array  # (m,)
    there: Array  # (m,)
    slopes: Array  # (m,) what a load changes by with its f; with its u by minus that over S
    pivots: Array  # (m,)
    A: Array  # (m, m)


@helper
def problem_in(
    S: Array, b: Array, bounds: Records[RowBounds], K: Array, L: Array, room: Array
) -> SmoothContacts:
    """Arrays of a problem, its scratch (LINES + m, m) given out."""
    lines = room[0], room[1], room[2], room[3], room[4], room[5]
    return SmoothContacts(S, b, bounds, K, L, *lines, room[LINES:])


@helper
def length(x: Array) -> float:
    """Of a vector."""
    total = 0.0
    for i in range(len(x)):
        total += x[i] * x[i]
    return math.sqrt(total)


@helper
def put_conditions(p: SmoothContacts, f: Array, s: float) -> float:
    """u, R, K and L at forces f (m,); the length of R."""
    m = len(f)
    for i in range(m):
        p.u[i] = p.b[i]
        for j in range(m):
            p.u[i] += p.S[i, j] * f[j]
            p.K[i, j] = p.L[i, j] = 0.0
        p.K[i, i] = 1.0
    for i in range(m):
        if p.bounds[i].owner < 0:
            put_normal(p, i, f[i], s)
        elif p.bounds[i].first == 1:
            put_cone(p, i, f, s)
    return length(p.R)


@helper
def put_normal(p: SmoothContacts, i: int, f: float, s: float) -> None:
    """f less a load that is positive, whatever f and u are, and f itself where f u = s."""
    ease = 1.0 / p.S[i, i]
    y = f - ease * p.u[i]
    root = math.sqrt(y * y + 4.0 * ease * s)
    load = 0.5 * (y + root)
    if y < 0.0:
        load = 2.0 * ease * s / (root - y)
    slope = 0.5 * (1.0 + y / root)
    p.R[i] = f - load
    p.K[i, i] -= slope
    p.L[i, i] = slope * ease
    p.slopes[i] = slope


@helper
def put_cone(p: SmoothContacts, i: int, f: Array, s: float) -> None:
    """Rows of the cone that begins at row i: f + mu r v/g, with the load of its owner for r."""
    owner, count = p.bounds[i].owner, p.bounds[i].count
    r, slope, ease = f[owner] - p.R[owner], p.slopes[owner], 1.0 / p.S[owner, owner]
    a, size = s / (2.0 * r), 0.0
    for k in range(i, i + count):
        v = p.bounds[k].mu * p.u[k]
        size += v * v
    size = math.sqrt(a * a + size)
    g = a + size
    for k in range(i, i + count):
        mu = p.bounds[k].mu
        v = mu * p.u[k]
        p.R[k] = f[k] + mu * r * v / g
        by_r = mu * v / g * (1.0 + a / size)
        p.K[k, owner] = by_r * slope
        p.L[k, owner] = -by_r * slope * ease
        for j in range(i, i + count):
            other = p.bounds[j].mu
            turned = -v * other * p.u[j] / (g * size)
            p.L[k, j] = r / g * mu * other * (turned + (1.0 if j == k else 0.0))


@helper
def put_step(p: SmoothContacts) -> None:
    """Newton's step of f: -(K + L S)⁻¹ R."""
    m = len(p.b)
    for i in range(m):
        for j in range(m):
            p.A[i, j] = p.K[i, j]
        for k in range(m):
            x = p.L[i, k]
            if x != 0.0:
                for j in range(m):
                    p.A[i, j] += x * p.S[k, j]
        p.step[i] = -p.R[i]
    lu_real(p.A, p.pivots)
    back_real(p.A, p.pivots, p.step)


@helper
def solve_for(p: SmoothContacts, f: Array, s: float) -> bool:
    """Newton's method from f (m,), which becomes the solution; whether it is."""
    m, left = len(f), put_conditions(p, f, s)
    for _ in range(MOST_STEPS):
        if left <= ENOUGH * length(f):
            return True
        put_step(p)
        share, before = 1.0, left
        while True:
            for i in range(m):
                p.there[i] = f[i] + share * p.step[i]
            left = put_conditions(p, p.there, s)
            if left <= (1.0 - FALL * share) * before or share < SHORTEST:
                break
            share *= 0.5
        for i in range(m):
            f[i] = p.there[i]
        if not math.isfinite(left):
            return False
    return False


@kernel
def solve_smooth_contacts(
    S: Array,
    b: Array,
    bounds: Records[RowBounds],
    s: float,
    f: Array,
    K: Array,
    L: Array,
    room: Array,
) -> bool:
    """Forces f (m,) of smooth contacts, and derivatives of their conditions there.

    Args:
        S: (m, m) what rates change by with forces.
        b: (m,) rates without forces.
        bounds: (m,) of dtype ``ROW_BOUNDS``: normals without owner, before cones that they own.
        s: Force times rate of each normal.
        f: Receives the forces.
        K: (m, m) receives derivatives of R by f,
        L: (m, m) and by u.
        room: (LINES + m, m)

    Returns:
        Whether they were found.
    """
    p, m, now = problem_in(S, b, bounds, K, L, room), len(b), s
    for i in range(m):
        f[i] = 0.0
        if bounds[i].owner < 0:
            now = max(now, b[i] * b[i] / S[i, i])
    while solve_for(p, f, now):
        if now == s:
            return True
        now = max(s, SHARPER * now)
    return False
