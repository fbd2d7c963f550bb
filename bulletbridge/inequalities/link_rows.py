"""Rows of contacts by the bodies that they touch, in the elimination of these bodies.

A row has coordinates of two bodies alone, however many there are. The rows that Newton's method
solves for join the rows of loops in one elimination, each beside the body that is eliminated first;
what impulses do to velocities goes through the factors of the loops.
"""

from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.sparse import SparseFactors
from bulletbridge.inequalities.contact_rows import RowForm, along, contact_rows_of
from bulletbridge.mechanism.records import Axis, Body, ContactPoint, Pose
from bulletbridge.numerics.complementarity_rows import along_block
from bulletbridge.numerics.contact_islands import Islands
from bulletbridge.numerics.multifrontal import OWN, Elimination, Join
from bulletbridge.numerics.multifrontal_inverse import invert
from bulletbridge.numerics.multifrontal_solutions import push_nothing, solve_pushed
from bulletbridge.numerics.projection import factor_profile, whiten_force
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import Pair, scale, sub, vec


class LinkRows(NamedTuple):
    """Rows, and their elimination beside those of loops.

    Rows of the elimination are those of the loops, then one for each row here that takes part.
    """

    e: Elimination
    bodies: Ints  # (rows, 2) a and b of each row, 0 for the world
    on: Array  # (rows, 2, k) of each row on their coordinates
    front_of: Ints  # (nb,) that eliminates each body
    used: Ints  # (nb,) joins of each front that are taken
    slots: int  # joins that there is room for at a front
    size: Array  # (rows,) what it was multiplied by
    inverse: Array  # (fronts, n, n) of the loops' elimination
    places: Ints
    none: Array  # (nv,) zeros
    u: Array  # (nv,)
    right: Array  # (nc + rows,)
    y: Array  # (nc + rows,)


class LinkArrays(NamedTuple):
    """Plan, factors and scratch of the rows of contacts, as of ``Elimination`` and ``LinkRows``.

    Without slots where bodies hang on one another, which are not eliminated so.
    """

    fronts: np.ndarray
    boundary: Ints
    widths: Ints
    places: Ints
    joins: Records[Join]
    numbers: Ints
    kept: Ints
    wrench: Array
    soft: Array
    least: Array
    reflections: Array
    update: Array
    factors: Array
    W: Array
    column: Array
    y: Array
    right: Array
    bodies: Ints  # (2, rows, 2): of contacts, of sticking points
    on: Array  # (2, rows, 2, k)
    front_of: Ints
    used: Ints
    slots: Ints  # (1,)
    size: Array
    inverse: Array
    inverse_places: Ints
    none: Array
    u: Array
    sides: Array  # (2, nc + rows)
    islands: Islands  # of contacts, where there are no loops


@helper
def link_rows_of(s: LinkArrays, f: SparseFactors, points: int) -> LinkRows:
    """Them as helpers take them, beside the factors of the loops; ``points`` is 1 for those."""
    e = Elimination(
        s.fronts, s.boundary, s.widths, s.places, s.joins, s.numbers, s.kept, f.e.motion,
        f.e.inertia, f.e.extra, s.wrench, f.e.ties, f.e.pulls, f.e.weights, f.e.further,
        f.e.arms, len(f.rows), s.soft, s.least, s.reflections, s.update, s.factors, s.W, s.column,
        s.y, f.e.push, f.e.twist, s.right,
    )  # fmt: skip
    return LinkRows(
        e, s.bodies[points], s.on[points], s.front_of, s.used, int(s.slots[0]), s.size,
        s.inverse, s.inverse_places, s.none, s.u, s.sides[0], s.sides[1],
    )  # fmt: skip


@helper
def relative_link_row(
    bodies: Records[Body],
    poses: Records[Pose],
    axes: Records[Axis],
    contact: ContactPoint,
    apart: float,
    wrench: Pair,
    C: LinkRows,
    n: int,
) -> None:
    """``contact_rows.relative_row`` on the coordinates of the two bodies."""
    point = vec(contact.position)
    C.bodies[n, 0], C.bodies[n, 1] = contact.body_a, contact.body_b
    other = sub(point, scale(apart, vec(contact.normal)))
    point = sub(point, vec(poses[contact.body_b].origin))
    other = sub(other, vec(poses[contact.body_a].origin))
    put_body(bodies, axes, contact.body_a, -1.0, wrench, other, C.on[n, 0])
    put_body(bodies, axes, contact.body_b, 1.0, wrench, point, C.on[n, 1])


@helper
def put_body(
    bodies: Records[Body],
    axes: Records[Axis],
    body: int,
    sign: float,
    wrench: Pair,
    point: tuple[float, float, float],
    on: Array,
) -> None:
    """Write what the axes of a body that hangs from the world contribute along a wrench."""
    for c in range(len(on)):
        on[c] = 0.0
    j = bodies[body].axis
    while j >= 0:
        on[j - bodies[body].v] = sign * along(axes[j], wrench, point)
        j = axes[j].below


@helper
def link_rate(C: LinkRows, n: int, v: Array) -> float:
    """What row n gives at the rates v (nv,)."""
    total = 0.0
    for end in range(2):
        body = int(C.bodies[n, end])
        if body > 0:
            front = C.e.fronts[int(C.front_of[body])]
            total += along_block(C.on[n, end], int(front.rates), v, int(front.v))
    return total


put_link_rows = contact_rows_of(RowForm(relative_link_row, link_rate))


@helper
def push_along(links: LinkRows, e: Elimination, n: int, x: float) -> None:
    """Add what the impulse x of row n is on the bodies to e.push."""
    for end in range(2):
        body = int(links.bodies[n, end])
        if body > 0:
            for c in range(links.on.shape[2]):
                e.push[body, c] += x * links.on[n, end, c]


@outlined
def respond(f: SparseFactors, links: LinkRows, x: Array, n: int, u: Array) -> None:
    """Velocities u (nv,) that the impulses x of n rows cause while the loops stay closed."""
    push_nothing(f.e)
    for i in range(n):
        if x[i] != 0.0:
            push_along(links, f.e, i, x[i])
    right = links.right[: len(f.rows)]
    for i in range(len(right)):
        right[i] = 0.0
    solve_pushed(f.e, links.none, right, u, links.y)


@outlined
def put_own_compliance(f: SparseFactors, links: LinkRows, D: Array, first: int, last: int) -> None:
    """Write D of the rows of one contact among themselves; ``invert`` has been called."""
    a, b = int(links.bodies[first, 0]), int(links.bodies[first, 1])
    place_a, place_b, i = find_ends(f.e, links.front_of, a, b)
    Z = links.inverse[i]
    for m in range(first, last):
        for n in range(first, m + 1):
            total = 0.0
            for c in range(f.e.fronts[int(links.front_of[a])].rates if a > 0 else 0):
                for d in range(f.e.fronts[int(links.front_of[a])].rates):
                    z = Z[place_a + c, place_a + d]
                    total += links.on[m, 0, c] * z * links.on[n, 0, d]
                for d in range(f.e.fronts[int(links.front_of[b])].rates if b > 0 else 0):
                    z = Z[place_a + c, place_b + d]
                    total += links.on[m, 0, c] * z * links.on[n, 1, d]
                    total += links.on[n, 0, c] * z * links.on[m, 1, d]
            for c in range(f.e.fronts[int(links.front_of[b])].rates if b > 0 else 0):
                for d in range(f.e.fronts[int(links.front_of[b])].rates):
                    z = Z[place_b + c, place_b + d]
                    total += links.on[m, 1, c] * z * links.on[n, 1, d]
            D[m, n] = D[n, m] = total


@helper
def find_ends(e: Elimination, front_of: Ints, a: int, b: int) -> tuple[int, int, int]:
    """Where two bodies stand in the front that eliminates the first of them, and that; -1: none."""
    if a == 0 or b == 0:
        return 0, 0, int(front_of[max(a, b)])
    i = int(min(front_of[a], front_of[b]))
    front = e.fronts[i]
    at, found = front.rates + front.rows, -1
    for j in range(front.first, front.first + front.count):
        if e.boundary[j] == a or e.boundary[j] == b:
            found = at
        at += e.widths[j]
    if found < 0:
        return 0, 0, -1
    return (0, found, i) if front.body == a else (found, 0, i)


@helper
def are_apart(f: SparseFactors) -> bool:
    """Whether nothing but contacts joins bodies."""
    return len(f.rows) == 0 and len(f.e.ties) == 0


@outlined
def put_factor(links: LinkRows, body: int, L: Array) -> int:
    """Factor of the inertia Lᵀ L of a body that nothing else holds; its rates."""
    e, front = links.e, links.e.fronts[int(links.front_of[body])]
    rates = int(front.rates)
    for a in range(rates):
        for b in range(a + 1):
            L[a, b] = e.inertia[body, a, b]
        L[a, a] += e.extra[front.v + a]
    factor_profile(L[:rates, :rates])
    return rates


@outlined
def compliance_alone(links: LinkRows, n: int) -> float:
    """What row n moves by for an impulse along it, of bodies that nothing else holds."""
    total, y, L = 0.0, links.e.y, links.e.W
    for end in range(2):
        body = int(links.bodies[n, end])
        if body == 0:
            continue
        rates = put_factor(links, body, L)
        for a in range(rates):
            y[a] = links.on[n, end, a]
        whiten_force(L[:rates, :rates], y[:rates])
        for a in range(rates):
            total += y[a] * y[a]
    return total


@outlined
def invert_loops(f: SparseFactors, links: LinkRows) -> None:
    """What impulses on a body and on its neighbours do to these, while the loops stay closed."""
    invert(f.e, links.front_of, links.places, links.inverse)


@outlined
def begin_rows(links: LinkRows, f: SparseFactors) -> None:
    """No row takes part but those of the loops, which are as in these factors."""
    e = links.e
    for r in range(e.rigid):
        for end in range(2):
            for k in range(e.wrench.shape[2]):
                e.wrench[r, end, k] = f.e.wrench[r, end, k]
    for i in range(len(e.fronts)):
        front = e.fronts[i]
        links.used[i] = 0
        for j in range(front.join + front.joins - links.slots, front.join + front.joins):
            e.joins[j].rows = 0


@outlined
def open_join(links: LinkRows, n: int, first: int) -> int:
    """A join for rows that touch what row n does; its number, or -1 if there is no room for it.

    Its rows are those of the elimination from ``first`` on.
    """
    e, a, b = links.e, int(links.bodies[n, 0]), int(links.bodies[n, 1])
    i = find_ends(e, links.front_of, a, b)[2]
    if i < 0 or links.used[i] == links.slots:
        return -1
    front = e.fronts[i]
    j = front.join + front.joins - links.slots + int(links.used[i])
    links.used[i] += 1
    join = e.joins[j]
    join.row, join.rows = first, 0
    join.a, join.b = a, b
    join.place_a, join.place_b = place_of(e, i, a), place_of(e, i, b)
    join.width_a = e.fronts[int(links.front_of[a])].rates if a > 0 else 0
    join.width_b = e.fronts[int(links.front_of[b])].rates if b > 0 else 0
    return j


@helper
def place_of(e: Elimination, i: int, body: int) -> int:
    """Where a body's coordinates begin in the boundary of a front, or OWN."""
    front, at = e.fronts[i], 0
    for j in range(front.first, front.first + front.count):
        if e.boundary[j] == body:
            return at
        at += e.widths[j]
    return OWN
