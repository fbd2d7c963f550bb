"""All points at which two shapes touch, once the direction is known in which they meet."""

import math

from bulletbridge.collision.records import CORNERS, MOST_POINTS, Room
from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.records import Array, Ints, Matrix, Vector
from bulletbridge.numerics.spatial import (
    add,
    apply,
    cross,
    dot,
    norm,
    put,
    scale,
    sub,
    vec,
)

SAME = 1e-3
"""Points nearer to each other than this share of the manifold's size are one."""
OVER = 1e-6
"""Share of a facet's size by which points may be outside of it."""
STEEP = 10.0
"""Times its gap by which a point must be farther out to be told in another's place."""
ALONG = 0.03
"""Sine up to which two edges lie along each other."""
CORNER_NAMES = 4096
"""More than a facet has names of corners; points are called by a facet, times this, and one."""


@helper
def move_polygon(room: Room, place: int, n: int, R: Matrix, p: Vector) -> None:
    """Take a polygon to other axes: x to R x + p."""
    points = room.polygons[place]
    for k in range(n):
        put(points[k], add(p, apply(R, vec(points[k]))))


@helper
def cut(
    points: Array, names: Ints, n: int, m: Vector, q: Vector, plane: int, to: Array, called: Ints
) -> int:
    """Cut from a polygon what is beyond the plane through q with the unit normal m; corners left.

    A segment is a polygon with two sides. New corners are called by the plane and the side.
    """
    count = 0
    room = m[0] * q[0] + m[1] * q[1] + m[2] * q[2]
    last = n - 1
    before = dot(m, vec(points[last])) - room
    for k in range(n):
        here = dot(m, vec(points[k])) - room
        if (before <= 0.0) != (here <= 0.0) and count < CORNERS:
            x, y = vec(points[last]), vec(points[k])
            put(to[count], add(x, scale(before / (before - here), sub(y, x))))
            called[count] = (plane + 1) * CORNER_NAMES + (31 * names[last] + 17 * names[k]) % 4093
            count += 1
        if here <= 0.0 and count < CORNERS:
            put(to[count], vec(points[k]))
            called[count] = names[k]
            count += 1
        last, before = k, here
    return count


@helper
def is_beyond_none(points: Array, n: int, m: Vector, q: Vector) -> bool:
    """Whether no corner is beyond that plane."""
    room = dot(m, q)
    for k in range(n):
        if dot(m, vec(points[k])) - room > 0.0:
            return False
    return True


@outlined
def cut_to(room: Room, facet: int, corners: int, normal: Vector, other: int, n: int) -> int:
    """Cut from a polygon what is not over a plane facet; number of corners that are left.

    Args:
        room: With both; receives what is left in its place 2.
        facet: Place of the facet,
        corners: its corners, in their order about
        normal: its normal.
        other: Place of the polygon,
        n: its corners.
    """
    edges, points, names = room.polygons[facet], room.polygons, room.features
    for k in range(n):
        put(points[2, k], vec(points[other, k]))
        names[2, k] = names[other, k]
    if n == 1:
        return 1
    source, target = 2, 3
    for k in range(corners):
        q, along = vec(edges[k]), sub(vec(edges[(k + 1) % corners]), vec(edges[k]))
        m = cross(along, normal)
        length = norm(m)
        if not length > 0.0:
            continue
        m = scale(1.0 / length, m)
        q = add(q, scale(OVER * length, m))
        if is_beyond_none(points[source], n, m, q):
            continue
        n = cut(points[source], names[source], n, m, q, k, points[target], names[target])
        source, target = target, source
        if n == 0:
            return 0
    if source == 3:
        for k in range(n):
            put(points[2, k], vec(points[3, k]))
            names[2, k] = names[3, k]
    return n


@helper
def put_touch(
    room: Room, count: int, position: Vector, normal: Vector, gap: float, feature: int
) -> int:
    """Write a point; how many there are now."""
    touch = room.found[count]
    put(touch.position, position)
    put(touch.normal, normal)
    touch.gap, touch.feature = gap, feature
    return count + 1


@outlined
def put_overlap(
    room: Room,
    n: Vector,
    first: tuple[Vector, Vector],
    second: tuple[Vector, Vector],
    radii: tuple[float, float],
    limit: float,
) -> int:
    """Points at the ends of what two edges that lie along each other have in common.

    Args:
        room: Receives them.
        n: Unit vector from the first core to the second.
        first: Ends of the first one's edge,
        second: and of the second one's.
        radii: Of their rounding.
        limit: Largest gap that is told.

    Returns:
        How many; none where they cross.
    """
    along, other = sub(first[1], first[0]), sub(second[1], second[0])
    length = norm(along)
    if not (length > 0.0 and norm(other) > 0.0):
        return 0
    along = scale(1.0 / length, along)
    if norm(cross(along, other)) > ALONG * norm(other):
        return 0
    begin, end = dot(along, sub(second[0], first[0])), dot(along, sub(second[1], first[0]))
    x, y = second
    if begin > end:
        begin, end = end, begin
        x, y = y, x
    low, high = max(begin, 0.0), min(end, length)
    if not high > low:
        return 0
    count = 0
    for k in range(2):
        s = low if k == 0 else high
        on_first = add(first[0], scale(s, along))
        on_second = add(x, scale((s - begin) / (end - begin), sub(y, x)))
        gap = dot(n, sub(on_second, on_first)) - radii[0] - radii[1]
        if gap <= limit:
            place = sub(on_second, scale(radii[1], n))
            count = put_touch(room, count, place, n, gap, 5 + 3 * k)
    return count


@helper
def top_edge(room: Room, place: int, n: int, d: Vector) -> tuple[Vector, Vector]:
    """Ends of the side of a polygon that is farthest along d, both of them."""
    points = room.polygons[place]
    best, most = 0, -math.inf
    for k in range(n):
        low = min(dot(d, vec(points[k])), dot(d, vec(points[(k + 1) % n])))
        if low > most:
            best, most = k, low
    return vec(points[best]), vec(points[(best + 1) % n])


@outlined
def thin_out(room: Room, count: int, normal: Vector) -> int:
    """Make points that all but coincide one, and leave no more than MOST_POINTS; how many."""
    found = room.found
    deepest = 0
    for k in range(1, count):
        if found[k].gap < found[deepest].gap:
            deepest = k
    reach = 0.0
    for k in range(count):
        reach = max(reach, norm(sub(vec(found[k].position), vec(found[deepest].position))))
    kept = 0
    for k in range(count):
        same = -1
        for j in range(kept):
            if norm(sub(vec(found[k].position), vec(found[j].position))) <= SAME * reach:
                same = j
                break
        if same < 0:
            copy_touch(room, k, kept)
            kept += 1
        elif found[k].gap < found[same].gap:
            copy_touch(room, k, same)
    if kept <= MOST_POINTS:
        return kept
    deepest = 0
    for k in range(1, kept):
        if found[k].gap < found[deepest].gap:
            deepest = k
    swap_touches(room, deepest, 0)
    aside = (1.0, 0.0, 0.0) if math.fabs(normal[0]) < 0.7 else (0.0, 1.0, 0.0)
    x = cross(normal, aside)
    x = scale(1.0 / norm(x), x)
    y = cross(normal, x)
    for place in range(1, MOST_POINTS):
        angle = 2.0 * math.pi * place / (MOST_POINTS - 1)
        d = add(scale(math.cos(angle), x), scale(math.sin(angle), y))
        best, most = place, -math.inf
        for k in range(place, kept):
            far = dot(d, vec(found[k].position)) - STEEP * found[k].gap
            if far > most:
                best, most = k, far
        swap_touches(room, best, place)
    return MOST_POINTS


@helper
def copy_touch(room: Room, source: int, target: int) -> None:
    """Copy a point over another."""
    x, y = room.found[source], room.found[target]
    put(y.position, vec(x.position))
    put(y.normal, vec(x.normal))
    y.gap, y.feature = x.gap, x.feature


@helper
def swap_touches(room: Room, i: int, j: int) -> None:
    """Exchange two points."""
    if i != j:
        copy_touch(room, i, CORNERS - 1)
        copy_touch(room, j, i)
        copy_touch(room, CORNERS - 1, j)
