"""Pairs of shapes whose axis-aligned boxes overlap, by sorting them along one axis.

Pairs are listed with room around the boxes and serve until a shape has left its room.
Sources: Ericson, Real-Time Collision Detection, 7.5 (sort and sweep); Verlet 1967 (lists).
"""

import math

from bulletbridge.collision.records import PLANE, SHARE_AT_REST, Carrier, Placed, Shape
from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import (
    add,
    apply,
    cross,
    mat,
    mul,
    norm,
    put,
    put_mat,
    vec,
)

AHEAD = 4.0
"""Steps for which there is room around what moves, so that pairs need not be listed anew."""


@outlined
def place(shapes: Records[Shape], carriers: Records[Carrier], placed: Records[Placed]) -> None:
    """Axes, origins, AABBs and speeds of all shapes."""
    for k in range(len(shapes)):
        shape, here = shapes[k], placed[k]
        up, origin = mat(carriers[shape.body].R), vec(carriers[shape.body].p)
        R = mul(up, mat(shape.R))
        p = add(origin, apply(up, vec(shape.p)))
        put_mat(here.R, R)
        put(here.p, p)
        middle = add(p, apply(R, vec(shape.middle)))
        half = vec(shape.half)
        for c in range(3):
            r = R[0] if c == 0 else (R[1] if c == 1 else R[2])
            m = middle[0] if c == 0 else (middle[1] if c == 1 else middle[2])
            if shape.kind == PLANE:
                spread = half[0]
            else:
                x, y, z = math.fabs(r[0]), math.fabs(r[1]), math.fabs(r[2])
                spread = x * half[0] + y * half[1] + z * half[2]
            here.lower[c], here.upper[c] = m - spread - shape.radius, m + spread + shape.radius
        carrier = carriers[shape.body]
        w, v = vec(carrier.w), vec(carrier.v)
        turning = norm(w) * (norm(half) + shape.radius) if shape.body > 0 else 0.0
        here.speed = norm(add(v, cross(w, middle))) + turning


@helper
def told_up_to(a: Shape, b: Shape, at_a: Placed, at_b: Placed, dt: float) -> float:
    """Gap up to which points of two shapes are told [m].

    At rest it is a share of the smaller one's margin; as they move, what they may do in a step dt
    [s] against where they are expected at its end: an impact turns things as fast as they came.
    """
    margin = min(a.margin, b.margin)
    return min(margin, SHARE_AT_REST * margin + dt * (at_a.speed + at_b.speed))


@helper
def widest(placed: Records[Placed]) -> int:
    """The axis along which the middles of finite shapes vary most."""
    best, most = 0, -1.0
    for c in range(3):
        n, mean, square = 0, 0.0, 0.0
        for k in range(len(placed)):
            if placed[k].upper[c] - placed[k].lower[c] < 1e6:
                m = 0.5 * (placed[k].upper[c] + placed[k].lower[c])
                n += 1
                change = m - mean
                mean += change / n
                square += change * (m - mean)
        if square > most:
            best, most = c, square
    return best


@outlined
def are_within(shapes: Records[Shape], placed: Records[Placed], around: Array) -> bool:
    """Whether all AABBs with their margins are within those (n, 6) by which pairs were listed."""
    for k in range(len(shapes)):
        here, margin = placed[k], shapes[k].margin
        for c in range(3):
            if not around[k, c] <= here.lower[c] - margin:
                return False
            if not here.upper[c] + margin <= around[k, 3 + c]:
                return False
    return True


@outlined
def list_pairs(
    shapes: Records[Shape],
    placed: Records[Placed],
    around: Array,
    order: Ints,
    pairs: Ints,
    dt: float,
) -> int:
    """Write pairs of shapes that may touch soon as i n + j for i < j of n shapes, in rising order.

    Args:
        shapes: (n,)
        placed: (n,) with their AABBs.
        around: (n, 6) receives larger ones: as long as shapes are within them no other pairs touch.
        order: (n,) of the shapes, kept from call to call: it is nearly right the next time.
        pairs: Receives them, as many as there is room for.
        dt: Step [s].

    Returns:
        How many there are.
    """
    n, axis = len(shapes), widest(placed)
    for k in range(n):
        margin = shapes[k].margin
        room = margin + max(margin, AHEAD * dt * placed[k].speed)
        for c in range(3):
            around[k, c] = placed[k].lower[c] - room
            around[k, 3 + c] = placed[k].upper[c] + room
    for k in range(1, n):  # insertion: next to nothing where little has moved
        here = order[k]
        j = k - 1
        while j >= 0 and comes_after(order[j], here, around[:, axis]):
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = here
    count = 0
    for k in range(n):
        i = int(order[k])
        for m in range(k + 1, n):
            j = int(order[m])
            if around[j, axis] > around[i, 3 + axis]:
                break
            if shapes[i].body == shapes[j].body or not overlap(around, i, j):
                continue
            if count < len(pairs):
                pairs[count] = min(i, j) * n + max(i, j)
            count += 1
    if count <= len(pairs):
        sort(pairs, count)
    return count


@helper
def overlap(around: Array, i: int, j: int) -> bool:
    """Whether two AABBs (n, 6) overlap."""
    room = -math.inf  # of all axes at once: which of them parts two boxes is hard to predict
    for c in range(3):
        room = max(room, around[j, c] - around[i, 3 + c], around[i, c] - around[j, 3 + c])
    return room <= 0.0


@helper
def comes_after(i: int, j: int, keys: Array) -> bool:
    """Whether shape i is farther along the axis than j, or has the higher number."""
    return keys[i] > keys[j] or (keys[i] == keys[j] and i > j)


@helper
def may_meet(at_a: Placed, at_b: Placed, limit: float) -> bool:
    """Whether AABBs are no farther from each other than a limit [m]."""
    room = 0.0
    for c in range(3):
        room = max(room, at_b.lower[c] - at_a.upper[c], at_a.lower[c] - at_b.upper[c])
    return room <= limit


@helper
def sort(pairs: Ints, n: int) -> None:
    """Sort n numbers in place: heapsort, whose cost does not depend on their order."""
    for start in range(n // 2 - 1, -1, -1):
        sift(pairs, start, n)
    for end in range(n - 1, 0, -1):
        pairs[0], pairs[end] = pairs[end], pairs[0]
        sift(pairs, 0, end)


@helper
def sift(pairs: Ints, root: int, end: int) -> None:
    """Let a number sink in a heap of ``end`` numbers."""
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and pairs[child] < pairs[child + 1]:
            child += 1
        if pairs[root] >= pairs[child]:
            return
        pairs[root], pairs[child] = pairs[child], pairs[root]
        root = child
