"""How deep two convex cores are in each other: the expanding polytope algorithm.

A polytope inside the difference A - B grows, at its side nearest to the origin, until this is a
side of the difference too: the way by which B leaves A soonest.

Source: van den Bergen, Proximity queries and penetration depth computation, 2001.
"""

import math

from bulletbridge.collision.distance import put_difference
from bulletbridge.collision.records import EPA_FACES, EPA_VERTICES, Hulls, Room, Shape
from bulletbridge.collision.support import unit
from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.records import Matrix, Vector
from bulletbridge.numerics.spatial import (
    add,
    cross,
    dot,
    norm,
    put,
    scale,
    sub,
    vec,
)

FLAT = 1e-10
"""Height of a tetrahedron over its size below which the difference of two cores is flat."""
PRECISION = 1e-10
"""Share of the size that the depth may be wrong by."""


@outlined
def penetrate(
    a: Shape, b: Shape, R: Matrix, p: Vector, hulls: Hulls, room: Room, n: int
) -> tuple[float, Vector, Vector]:
    """Depth of two cores that overlap, in the axes of A.

    Args:
        a: First shape.
        b: Second one,
        R: its axes (3, 3),
        p: and its origin (3,) in A.
        hulls: Corners of hulls.
        room: Scratch, with the simplex that ``separate`` has left.
        n: Points of that.

    Returns:
        Depth, negative by round-off where they all but touch; unit vector along which B leaves A;
        deepest point of A in B.
    """
    P = room.polytope
    for k in range(n):
        for c in range(6):
            P[k, c] = room.simplex[k, c]
    n, flat = grow_to_tetrahedron(a, b, R, p, hulls, room, n)
    if n < 4:  # the difference has no inside: no way at all along its normal
        return 0.0, flat, vec(P[0, 3:])
    size = 0.0
    for k in range(4):
        size = max(size, norm(vec(P[k])))
    faces = 0
    centre = scale(0.25, add(add(vec(P[0]), vec(P[1])), add(vec(P[2]), vec(P[3]))))
    faces = put_side(room, faces, 0, 1, 2, centre)
    faces = put_side(room, faces, 0, 1, 3, centre)
    faces = put_side(room, faces, 0, 2, 3, centre)
    faces = put_side(room, faces, 1, 2, 3, centre)
    best = 0
    sides, corners = room.sides, room.corners
    while True:
        best, least = -1, math.inf
        for k in range(faces):
            if corners[k, 3] > 0 and sides[k, 3] < least:
                best, least = k, sides[k, 3]
        normal = vec(sides[best])
        if n == EPA_VERTICES:
            break
        w = put_difference(a, b, R, p, hulls, normal, P[n])
        if dot(normal, w) - least <= PRECISION * size:
            break
        edges, free = 0, faces
        for k in range(faces):
            if corners[k, 3] > 0 and dot(vec(sides[k]), w) > sides[k, 3] + 1e-14 * size:
                corners[k, 3] = 0
                edges = put_edge(room, edges, corners[k, 0], corners[k, 1])
                edges = put_edge(room, edges, corners[k, 1], corners[k, 2])
                edges = put_edge(room, edges, corners[k, 2], corners[k, 0])
        kept = 0
        for k in range(edges):
            kept += room.edges[k, 0] >= 0
        free = 0
        for k in range(faces):
            free += corners[k, 3] == 0
        if kept < 3 or faces - free + kept > EPA_FACES:
            corners[best, 3] = 1
            break
        place = 0
        for k in range(edges):
            if room.edges[k, 0] < 0:
                continue
            while place < faces and corners[place, 3] > 0:
                place += 1
            put_side(room, place, room.edges[k, 0], room.edges[k, 1], n, centre)
            faces = max(faces, place + 1)
            place += 1
        n += 1
    normal, depth = vec(sides[best]), sides[best, 3]
    i, j, k = corners[best, 0], corners[best, 1], corners[best, 2]
    foot = scale(depth, normal)
    u, v, w = weights_in(vec(P[i]), vec(P[j]), vec(P[k]), foot, normal)
    on_a = add(scale(u, vec(P[i, 3:])), scale(v, vec(P[j, 3:])))
    return depth, normal, add(on_a, scale(w, vec(P[k, 3:])))


@helper
def weights_in(
    a: Vector, b: Vector, c: Vector, x: Vector, normal: Vector
) -> tuple[float, float, float]:
    """Weights of the corners of a triangle in a point of it; those of one outside are cut."""
    u = max(dot(normal, cross(sub(b, x), sub(c, x))), 0.0)
    v = max(dot(normal, cross(sub(c, x), sub(a, x))), 0.0)
    w = max(dot(normal, cross(sub(a, x), sub(b, x))), 0.0)
    total = u + v + w
    if not total > 0.0:
        return 1.0, 0.0, 0.0
    return u / total, v / total, w / total


@helper
def put_side(room: Room, k: int, i: int, j: int, m: int, centre: Vector) -> int:
    """Write side k of the polytope, its normal away from the centre; the number of the next."""
    P = room.polytope
    a, b, c = vec(P[i]), vec(P[j]), vec(P[m])
    n = cross(sub(b, a), sub(c, a))
    if dot(n, sub(a, centre)) < 0.0:
        n = scale(-1.0, n)
        i, j = j, i
    length = norm(n)
    if length > 0.0:
        n = scale(1.0 / length, n)
        room.sides[k, 3] = dot(n, a)
    else:  # a sliver is never the nearest
        room.sides[k, 3] = math.inf
    put(room.sides[k], n)
    room.corners[k, 0], room.corners[k, 1], room.corners[k, 2] = i, j, m
    room.corners[k, 3] = 1
    return k + 1


@helper
def put_edge(room: Room, edges: int, i: int, j: int) -> int:
    """Add an edge of the hole, or take out the one that another side had the other way round."""
    for k in range(edges):
        if room.edges[k, 0] == j and room.edges[k, 1] == i:
            room.edges[k, 0] = -1
            return edges
    room.edges[edges, 0], room.edges[edges, 1] = i, j
    return edges + 1


@outlined
def grow_to_tetrahedron(
    a: Shape, b: Shape, R: Matrix, p: Vector, hulls: Hulls, room: Room, n: int
) -> tuple[int, Vector]:
    """Make a simplex that touches the origin a tetrahedron with height.

    Returns:
        Its points, 4 unless the difference is flat; then a unit vector at right angles to it.
    """
    P = room.polytope
    if n == 4:
        x, y, z = sub(vec(P[0]), vec(P[3])), sub(vec(P[1]), vec(P[3])), sub(vec(P[2]), vec(P[3]))
        size = max(norm(x), max(norm(y), norm(z)))
        if math.fabs(dot(cross(x, y), z)) > FLAT * size * size * size:
            return 4, (0.0, 0.0, 1.0)
        n = 1
    n = 1
    size = 0.0
    for axis in range(3):  # the segment that is longest of six tries
        for sign in (1.0, -1.0):
            d = (
                sign if axis == 0 else 0.0,
                sign if axis == 1 else 0.0,
                sign if axis == 2 else 0.0,
            )
            put_difference(a, b, R, p, hulls, d, P[4])
            length = norm(sub(vec(P[4]), vec(P[0])))
            if length > size:
                size = length
                for c in range(6):
                    P[1, c] = P[4, c]
    if not size > 0.0:
        return 1, (0.0, 0.0, 1.0)
    along = unit(sub(vec(P[1]), vec(P[0])))
    aside = (1.0, 0.0, 0.0) if math.fabs(along[0]) < 0.7 else (0.0, 1.0, 0.0)
    d1 = unit(cross(along, aside))
    d2 = cross(along, d1)
    most = 0.0
    for k in range(4):
        s = 1.0 if k < 2 else -1.0
        d = scale(s, d1) if k % 2 == 0 else scale(s, d2)
        put_difference(a, b, R, p, hulls, d, P[4])
        away = norm(cross(along, sub(vec(P[4]), vec(P[0]))))
        if away > most:
            most = away
            for c in range(6):
                P[2, c] = P[4, c]
    if not most > FLAT * size:
        return 2, d1
    normal = unit(cross(along, sub(vec(P[2]), vec(P[0]))))
    most = 0.0
    for sign in (1.0, -1.0):
        put_difference(a, b, R, p, hulls, scale(sign, normal), P[4])
        height = math.fabs(dot(normal, sub(vec(P[4]), vec(P[0]))))
        if height > most:
            most = height
            for c in range(6):
                P[3, c] = P[4, c]
    if not most > FLAT * size:
        return 3, normal
    return 4, normal
