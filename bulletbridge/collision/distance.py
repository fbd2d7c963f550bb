"""Distance of two convex cores that are apart, by the method of Gilbert, Johnson and Keerthi.

The simplex of at most four points of the difference A - B that holds its point nearest to the
origin is kept in ``Room.simplex``: the points first, then those of A that they came of.

Source: van den Bergen, Collision Detection in Interactive 3D Environments, ch. 4; Ericson,
Real-Time Collision Detection, ch. 5.
"""

import math

from bulletbridge.collision.records import Hulls, Room, Shape
from bulletbridge.collision.support import farthest
from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.records import Array, Matrix, Vector
from bulletbridge.numerics.spatial import (
    ZERO,
    add,
    apply,
    cross,
    dot,
    norm,
    put,
    scale,
    sub,
    transpose,
    vec,
)

MOST_ITERATIONS = 128
PRECISION = 1e-13
"""Share of the squared distance by which another point must be nearer to go on."""
TOUCHING = 1e-12
"""Distance over the size of the difference below which two cores touch."""

PARTED = 1e-14
"""Room that a plane has to leave between two cores, over the size of the difference, to part them
whatever round-off says."""


@helper
def put_difference(
    a: Shape, b: Shape, R: Matrix, p: Vector, hulls: Hulls, d: Vector, target: Array
) -> Vector:
    """Write and return the point of A - B that is farthest along d; axes and origin are A's.

    R and p: axes and origin of B in A.
    """
    on_a = farthest(a, hulls, d)
    back = apply(transpose(R), d)
    on_b = add(p, apply(R, farthest(b, hulls, (-back[0], -back[1], -back[2]))))
    w = sub(on_a, on_b)
    put(target, w)
    put(target[3:], on_a)
    return w


@helper
def nearest_on_segment(a: Vector, b: Vector) -> tuple[float, float]:
    """Weights of the ends in the point of a segment nearest to the origin."""
    ab = sub(b, a)
    length = dot(ab, ab)
    t = -dot(a, ab) / length if length > 0.0 else 0.0
    t = min(max(t, 0.0), 1.0)
    return 1.0 - t, t


@helper
def nearest_on_triangle(a: Vector, b: Vector, c: Vector) -> tuple[float, float, float]:
    """Weights of the corners in the point of a triangle nearest to the origin."""
    n = cross(sub(b, a), sub(c, a))
    u, v, w = dot(n, cross(b, c)), dot(n, cross(c, a)), dot(n, cross(a, b))
    if u > 0.0 and v > 0.0 and w > 0.0:
        total = u + v + w
        return u / total, v / total, w / total
    s, t = nearest_on_segment(a, b)
    least, best = square_of(a, b, s, t), (s, t, 0.0)
    s, t = nearest_on_segment(b, c)
    square = square_of(b, c, s, t)
    if square < least:
        least, best = square, (0.0, s, t)
    s, t = nearest_on_segment(a, c)
    if square_of(a, c, s, t) < least:
        best = s, 0.0, t
    return best


@helper
def square_of(a: Vector, b: Vector, s: float, t: float) -> float:
    """Squared length of s a + t b."""
    x = add(scale(s, a), scale(t, b))
    return dot(x, x)


@helper
def reduce_simplex(S: Array, weights: Array, n: int) -> int:
    """Leave those points of a simplex that have a weight; how many."""
    kept = 0
    for k in range(n):
        if weights[k] > 0.0:
            if kept != k:
                for c in range(6):
                    S[kept, c] = S[k, c]
                weights[kept] = weights[k]
            kept += 1
    return kept


@helper
def sum_of(S: Array, weights: Array, n: int, first: int) -> Vector:
    """Sum of weights times points of a simplex."""
    x, y, z = 0.0, 0.0, 0.0
    for k in range(n):
        x += weights[k] * S[k, first]
        y += weights[k] * S[k, first + 1]
        z += weights[k] * S[k, first + 2]
    return x, y, z


@outlined
def nearest_on_simplex(S: Array, weights: Array, n: int) -> int:
    """Weights of the point of a simplex nearest to the origin; leaves the points that have any.

    Four points are left, and all weights zero, if the origin is inside.
    """
    a = vec(S[0])
    if n == 1:
        weights[0] = 1.0
        return 1
    b = vec(S[1])
    if n == 2:
        weights[0], weights[1] = nearest_on_segment(a, b)
        return reduce_simplex(S, weights, n)
    c = vec(S[2])
    if n == 3:
        weights[0], weights[1], weights[2] = nearest_on_triangle(a, b, c)
        return reduce_simplex(S, weights, n)
    d = vec(S[3])
    least, outside = math.inf, False
    w0 = w1 = w2 = w3 = 0.0
    if is_outside(a, b, c, d):
        outside = True
        u, v, w = nearest_on_triangle(a, b, c)
        x = add(add(scale(u, a), scale(v, b)), scale(w, c))
        if dot(x, x) < least:
            least = dot(x, x)
            w0, w1, w2, w3 = u, v, w, 0.0
    if is_outside(a, c, d, b):
        outside = True
        u, v, w = nearest_on_triangle(a, c, d)
        x = add(add(scale(u, a), scale(v, c)), scale(w, d))
        if dot(x, x) < least:
            least = dot(x, x)
            w0, w1, w2, w3 = u, 0.0, v, w
    if is_outside(a, d, b, c):
        outside = True
        u, v, w = nearest_on_triangle(a, d, b)
        x = add(add(scale(u, a), scale(v, d)), scale(w, b))
        if dot(x, x) < least:
            least = dot(x, x)
            w0, w1, w2, w3 = u, w, 0.0, v
    if is_outside(b, d, c, a):
        outside = True
        u, v, w = nearest_on_triangle(b, d, c)
        x = add(add(scale(u, b), scale(v, d)), scale(w, c))
        if dot(x, x) < least:
            w0, w1, w2, w3 = 0.0, u, w, v
    weights[0], weights[1], weights[2], weights[3] = w0, w1, w2, w3
    return reduce_simplex(S, weights, n) if outside else 4


@helper
def is_outside(a: Vector, b: Vector, c: Vector, d: Vector) -> bool:
    """Whether the origin is not on the side of a triangle where d is; always if that is flat."""
    n = cross(sub(b, a), sub(c, a))
    origin, other = -dot(n, a), dot(n, sub(d, a))
    return not origin * other > 0.0


@outlined
def separate(
    a: Shape, b: Shape, R: Matrix, p: Vector, hulls: Hulls, room: Room, limit: float
) -> tuple[float, Vector, Vector, int]:
    """Distance of two cores, in the axes of A.

    Args:
        a: First shape, whose axes and origin count.
        b: Second one,
        R: its axes (3, 3),
        p: and its origin (3,).
        hulls: Corners of hulls.
        room: Scratch; its simplex is where ``penetrate`` begins.
        limit: Distance above which cores are only told to be apart.

    Returns:
        Distance, zero if they overlap and infinite beyond the limit; the vector from the nearest
        point of B to that of A; that of A; and how many points the simplex has.
    """
    S, weights = room.simplex, room.sides[0]
    toward = p if dot(p, p) > 0.0 else (0.0, 0.0, 1.0)
    v = put_difference(a, b, R, p, hulls, toward, S[0])
    weights[0] = 1.0
    n, largest = 1, dot(v, v)
    best, near = v, vec(S[0, 3:])
    for _ in range(MOST_ITERATIONS):
        square = dot(v, v)
        if square <= (TOUCHING * TOUCHING) * largest:
            return 0.0, ZERO, near, n
        w = put_difference(a, b, R, p, hulls, (-v[0], -v[1], -v[2]), S[n])
        along = dot(v, w)
        if along > 0.0 and along * along > limit * limit * square:
            return math.inf, v, near, n
        largest = max(largest, dot(w, w))
        if square - along <= PRECISION * square or holds(S, n):
            return math.sqrt(square), v, near, n
        n = nearest_on_simplex(S, weights, n + 1)
        if n == 4 and along > 0.0 and along * along > (PARTED * PARTED) * square * largest:
            # of a sliver round-off says where the origin is; v parts the cores
            return math.sqrt(square), v, near, n
        if n == 4:
            return 0.0, ZERO, near, n
        best = sum_of(S, weights, n, 0)
        if not dot(best, best) < square:  # round-off: nothing is nearer
            return math.sqrt(square), v, near, n
        v, near = best, sum_of(S, weights, n, 3)
    return norm(v), v, near, n


@helper
def holds(S: Array, n: int) -> bool:
    """Whether point n is one of those before it."""
    for k in range(n):
        if S[k, 0] == S[n, 0] and S[k, 1] == S[n, 1] and S[k, 2] == S[n, 2]:
            return True
    return False
