"""Lines that go round a ball or a cylinder: their length, its gradient and how that changes.

A line from x0 to x1 that would go through the body goes round it, by its shortest way along the
surface: straight to where it touches, an arc, straight on. Its length does not change to first
order with where it touches, so that its gradient is that of the straight parts. A cylinder is as
long as the line needs; unrolled, the line round it is straight. The rules for which side a line
takes, and whether it touches at all, are those of MuJoCo 4: with a side, a line that is clear of
the body goes round it where it passes the centre opposite to that side. Points are in the body's
frame, z along a cylinder.
"""

import math

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.mechanism.records import CYLINDER_ROUND, INSIDE, SIDE, Effort
from bulletbridge.numerics.records import Vector
from bulletbridge.numerics.spatial import ZERO, add, cross, dot, norm, scale, sub

FREE_WAY, ROUND, THROUGH = 0, 1, 2
"""A line goes straight, round the body, or through a hole that it touches from within."""
LEAST = 1e-15
"""Lengths below it [m] leave directions undefined; as in MuJoCo."""
CLOSE_ANGLE = 1e-6
"""An arc that is less than none by this much is round-off where a line just touches."""
MOST_ROUNDS = 60


@helper
def cut(p: Vector, s: Vector, q: Vector, t: Vector) -> bool:
    """Whether the plane segments from p to s and from q to t cross."""
    u, w, way = sub(s, p), sub(t, q), sub(p, q)
    area = w[1] * u[0] - w[0] * u[1]
    if abs(area) < LEAST:
        return False
    first = (w[0] * way[1] - w[1] * way[0]) / area
    second = (u[0] * way[1] - u[1] * way[0]) / area
    return 0.0 <= first <= 1.0 and 0.0 <= second <= 1.0


@helper
def flat(x: Vector, e: Vector, f: Vector) -> Vector:
    """A point in the plane of two unit vectors."""
    return dot(x, e), dot(x, f), 0.0


@helper
def touched(p: Vector, radius: float, sense: float) -> Vector:
    """Where a line from p touches a circle that it goes round counterclockwise (1) or not (-1)."""
    n2 = p[0] * p[0] + p[1] * p[1]
    along, across = radius * radius / n2, sense * radius * math.sqrt(n2 - radius * radius) / n2
    return along * p[0] - across * p[1], along * p[1] + across * p[0], 0.0


@helper
def is_behind(p: Vector, q: Vector, side: Vector) -> bool:
    """Whether a plane line passes the centre opposite to a side."""
    a, b = side[0] * p[1] - side[1] * p[0], side[0] * q[1] - side[1] * q[0]
    if a * b > 0.0 or a == b:
        return False
    return dot(side, add(p, scale(a / (a - b), sub(q, p)))) < 0.0


@outlined
def sense_round(p: Vector, q: Vector, radius: float, side: Vector, sided: bool) -> float:
    """1 if a plane line goes round a circle counterclockwise, -1 if clockwise, 0 if straight."""
    way = sub(q, p)
    square = dot(way, way)
    if dot(p, p) < radius * radius or dot(q, q) < radius * radius or square < LEAST:
        return 0.0
    share = min(max(-dot(way, p) / square, 0.0), 1.0)
    nearest = add(p, scale(share, way))
    if dot(nearest, nearest) > radius * radius and not (sided and is_behind(p, q, side)):
        return 0.0
    best, sense, crossed = -math.inf, 0.0, True
    for k in range(2):
        turn = 1.0 if k == 0 else -1.0
        s, t = touched(p, radius, turn), touched(q, radius, -turn)
        crossing = cut(p, s, q, t)
        if crossing:
            good = -1e4
        elif sided:
            middle = add(s, t)
            length = norm(middle)
            good = dot(middle, side) / length if length > LEAST else 0.0
        else:
            apart = sub(s, t)
            good = -dot(apart, apart)
        if good > best:
            best, sense, crossed = good, turn, crossing
    return 0.0 if crossed else sense


@outlined
def touched_within(p: Vector, q: Vector, radius: float) -> tuple[bool, Vector]:
    """Where a plane line is drawn to a circle that it must go through, if it must.

    The point at which both parts make equal angles with the radius, by Newton's method on the sine
    z of that angle: asin(A z) + asin(B z) - 2 asin(z) + G = 0.
    """
    m, n, way = norm(p), norm(q), sub(q, p)
    if m <= radius or n <= radius:
        return False, ZERO
    square = dot(way, way)
    if square > LEAST:
        share = -dot(way, p) / square
        if 0.0 < share < 1.0 and norm(add(p, scale(share, way))) <= radius:
            return False, ZERO
    middle = add(p, q)
    length = norm(middle)
    halfway = scale(radius / length, middle) if length > LEAST else ZERO
    cosine = dot(p, q) / (m * n)
    if cosine < LEAST - 1.0:
        return False, ZERO
    if cosine > 1.0 - LEAST:
        return True, halfway
    A, B, G = radius / m, radius / n, math.acos(cosine)
    z = 1.0 - 1e-7
    f = math.asin(A * z) + math.asin(B * z) - 2.0 * math.asin(z) + G
    if f > 0.0:
        return True, halfway
    for _ in range(MOST_ROUNDS):
        rate = A / math.sqrt(1.0 - (A * z) ** 2) + B / math.sqrt(1.0 - (B * z) ** 2)
        rate -= 2.0 / math.sqrt(1.0 - z * z)
        if rate > -LEAST:
            break
        new = z - f / rate
        if new >= z or new <= 0.0:
            break
        z = new
        f = math.asin(A * z) + math.asin(B * z) - 2.0 * math.asin(z) + G
        if f >= 0.0:
            break
    start, far = (p, m) if p[0] * q[1] - p[1] * q[0] > 0.0 else (q, n)
    angle = math.asin(z) - math.asin(radius / far * z)
    c, s = radius / far * math.cos(angle), radius / far * math.sin(angle)
    return True, (c * start[0] - s * start[1], s * start[0] + c * start[1], 0.0)


@outlined
def way_round(effort: Effort, x0: Vector, x1: Vector) -> tuple[int, Vector, Vector]:
    """How a line goes, the unit vector that it turns about, and the point that it is drawn to."""
    m, n = norm(x0), norm(x1)
    if m < LEAST or n < LEAST or effort.radius < LEAST:
        return FREE_WAY, ZERO, ZERO
    e, normal = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
    if effort.around != CYLINDER_ROUND:
        e, normal = scale(1.0 / m, x0), cross(x0, x1)
        size = norm(normal)
        if size < LEAST:  # on one line with the centre: any plane through both
            normal = cross(e, (0.0, 1.0, 0.0) if abs(e[1]) < 0.7 else (1.0, 0.0, 0.0))
            size = norm(normal)
        normal = scale(1.0 / size, normal)
    f = cross(normal, e)
    p, q = flat(x0, e, f), flat(x1, e, f)
    if effort.sided == INSIDE:
        drawn, at = touched_within(p, q, effort.radius)
        point = add(scale(at[0], e), scale(at[1], f))
        return (THROUGH if drawn else FREE_WAY), normal, point
    side = flat((effort.p_side[0], effort.p_side[1], effort.p_side[2]), e, f)
    size = norm(side)
    side = scale(1.0 / size, side) if size > LEAST else side
    sense = sense_round(p, q, effort.radius, side, effort.sided == SIDE)
    return (FREE_WAY if sense == 0.0 else ROUND), scale(sense, normal), ZERO


@helper
def across(effort: Effort, x: Vector) -> Vector:
    """The part of a point or way that counts in the plane: that across a cylinder."""
    return (x[0], x[1], 0.0) if effort.around == CYLINDER_ROUND else x


@helper
def arc(normal: Vector, x0: Vector, x1: Vector, radius: float) -> float:
    """Angle of the arc that a line lies on, of one that turns about ``normal``."""
    m, n = norm(x0), norm(x1)
    between = math.atan2(dot(normal, cross(x0, x1)), dot(x0, x1))
    angle = between - math.acos(min(radius / m, 1.0)) - math.acos(min(radius / n, 1.0))
    if angle < -CLOSE_ANGLE:
        angle += 2.0 * math.pi
    return max(angle, 0.0)


@helper
def pull_from(normal: Vector, x: Vector, radius: float, sense: float) -> Vector:
    """Unit vector from where a line touches to its end x, which it has before (-1) or after it."""
    n2 = dot(x, x)
    straight = math.sqrt(max(n2 - radius * radius, 0.0))
    return scale(1.0 / n2, add(scale(straight, x), scale(sense * radius, cross(normal, x))))


@outlined
def length_across(
    bend: tuple[int, Vector, Vector], y0: Vector, y1: Vector, radius: float
) -> tuple[float, Vector, Vector]:
    """``length_round`` of a line that is bent, in the plane."""
    how, normal, at = bend
    if how == THROUGH:
        one, two = sub(y0, at), sub(y1, at)
        s, t = norm(one), norm(two)
        return s + t, scale(1.0 / s, one), scale(1.0 / t, two)
    s = math.sqrt(max(dot(y0, y0) - radius * radius, 0.0))
    t = math.sqrt(max(dot(y1, y1) - radius * radius, 0.0))
    length = s + t + radius * arc(normal, y0, y1, radius)
    return length, pull_from(normal, y0, radius, -1.0), pull_from(normal, y1, radius, 1.0)


@outlined
def length_round(effort: Effort, x0: Vector, x1: Vector) -> tuple[float, Vector, Vector]:
    """Length of a line from x0 to x1 [m], and its gradients by x0 and x1."""
    bend, way = way_round(effort, x0, x1), sub(x1, x0)
    if bend[0] == FREE_WAY:
        length = norm(way)
        along = scale(1.0 / length, way) if length > 0.0 else ZERO
        return length, scale(-1.0, along), along
    y0, y1 = across(effort, x0), across(effort, x1)
    length, g0, g1 = length_across(bend, y0, y1, effort.radius)
    if effort.around == CYLINDER_ROUND:
        slant = math.sqrt(length * length + way[2] * way[2])
        share, rise = length / slant, way[2] / slant
        g0 = (share * g0[0], share * g0[1], -rise)
        return slant, g0, (share * g1[0], share * g1[1], rise)
    return length, g0, g1


@helper
def bent_pull(
    normal: Vector, turn: Vector, x: Vector, way: Vector, radius: float, sense: float
) -> Vector:
    """What ``pull_from`` changes by as its end goes a way, and the normal changes by ``turn``."""
    n2 = dot(x, x)
    straight = math.sqrt(max(n2 - radius * radius, LEAST * radius * radius))
    more = dot(x, way)
    changed = add(scale(more / straight, x), scale(straight, way))
    swung = add(cross(turn, x), cross(normal, way))
    changed = add(changed, scale(sense * radius, swung))
    whole = pull_from(normal, x, radius, sense)
    return scale(1.0 / n2, sub(changed, scale(2.0 * more, whole)))


@outlined
def bent_through(
    effort: Effort,
    normal: Vector,
    at: Vector,
    ends: tuple[Vector, Vector],
    ways: tuple[Vector, Vector],
) -> tuple[Vector, Vector]:
    """Changes of the gradients of a line that is drawn to a point ``at`` of the body's surface."""
    one, two = sub(ends[0], at), sub(ends[1], at)
    s, t = norm(one), norm(two)
    u, w = scale(1.0 / s, one), scale(1.0 / t, two)
    push = dot(add(u, w), at) / (effort.radius * effort.radius)
    moved = ZERO
    for k in range(1 if effort.around == CYLINDER_ROUND else 2):
        tangent = scale(1.0 / effort.radius, cross(normal, at)) if k == 0 else normal
        a, b = dot(tangent, u), dot(tangent, w)
        resist = (1.0 - a * a) / s + (1.0 - b * b) / t + push
        pulled = (dot(tangent, ways[0]) - a * dot(u, ways[0])) / s
        pulled += (dot(tangent, ways[1]) - b * dot(w, ways[1])) / t
        if resist != 0.0:
            moved = add(moved, scale(pulled / resist, tangent))
    first, second = sub(ways[0], moved), sub(ways[1], moved)
    return (
        scale(1.0 / s, sub(first, scale(dot(u, first), u))),
        scale(1.0 / t, sub(second, scale(dot(w, second), w))),
    )


@outlined
def bent_round(
    effort: Effort, x0: Vector, x1: Vector, way0: Vector, way1: Vector
) -> tuple[Vector, Vector]:
    """What the gradients of ``length_round`` change by as its ends go these ways."""
    how, normal, at = way_round(effort, x0, x1)
    if how == FREE_WAY:
        s, moved = sub(x1, x0), sub(way1, way0)
        length = norm(s)
        if length == 0.0:
            return ZERO, ZERO
        along = scale(1.0 / length, s)
        bent = scale(1.0 / length, sub(moved, scale(dot(along, moved), along)))
        return scale(-1.0, bent), bent
    y0, y1, radius = across(effort, x0), across(effort, x1), effort.radius
    d0, d1 = across(effort, way0), across(effort, way1)
    length, g0, g1 = length_across((how, normal, at), y0, y1, radius)
    if how == THROUGH:
        h0, h1 = bent_through(effort, normal, at, (y0, y1), (d0, d1))
    else:
        turn = ZERO
        if effort.around != CYLINDER_ROUND:
            spanned = cross(y0, y1)
            size = norm(spanned)
            if size > LEAST:
                sense = 1.0 if dot(spanned, normal) > 0.0 else -1.0
                changed = scale(sense / size, add(cross(d0, y1), cross(y0, d1)))
                turn = sub(changed, scale(dot(normal, changed), normal))
        h0 = bent_pull(normal, turn, y0, d0, radius, -1.0)
        h1 = bent_pull(normal, turn, y1, d1, radius, 1.0)
    if effort.around != CYLINDER_ROUND:
        return h0, h1
    height, rise = x1[2] - x0[2], way1[2] - way0[2]
    slant = math.sqrt(length * length + height * height)
    longer = dot(g0, d0) + dot(g1, d1)
    more = (length * longer + height * rise) / slant
    share = (longer - length / slant * more) / slant
    up = (rise - height / slant * more) / slant
    f0 = add(scale(share, g0), scale(length / slant, h0))
    f1 = add(scale(share, g1), scale(length / slant, h1))
    return (f0[0], f0[1], -up), (f1[0], f1[1], up)
