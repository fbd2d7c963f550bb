"""Where two shapes touch: closed forms where a facet is met, otherwise distances of cores.

Everything is computed in the axes of the first shape, so that its numbers do not depend on how far
from the world's origin the shapes are.
"""

import math
from typing import NamedTuple

from bulletbridge.collision.distance import separate
from bulletbridge.collision.manifold import (
    CORNER_NAMES,
    cut_to,
    move_polygon,
    put_overlap,
    put_touch,
    thin_out,
    top_edge,
)
from bulletbridge.collision.penetration import penetrate
from bulletbridge.collision.records import (
    BOX,
    CAPSULE,
    CYLINDER,
    HULL,
    PLANE,
    Hulls,
    Placed,
    Room,
    Shape,
)
from bulletbridge.collision.support import farthest, put_facet, unit
from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.records import Matrix, Vector
from bulletbridge.numerics.spatial import (
    ZERO,
    add,
    apply,
    cross,
    dot,
    mat,
    mul,
    norm,
    put,
    scale,
    sub,
    transpose,
    vec,
)

APART, MET, OPEN = range(3)
"""Outcomes: beyond the limit; found; not decided yet."""
NEAR = 1e-7
"""Distance over size below which the direction between the nearest points is left to others."""
SNAP = 1e-6
"""Share of a gap or depth by which that along a facet's normal may differ from the least one."""
ROUND_OFF = 1e-9
"""The same over the size of a core."""
ALIGNED, NEARLY = 0.95, 0.999
"""Cosines from which a facet may be the one that is met, and one that is not plane is."""

Direction = tuple[int, float, Vector]
"""Outcome, gap between cores, unit vector from the first to the second."""
NONE = APART, 0.0, ZERO


@outlined
def meet(
    a: Shape, b: Shape, at_a: Placed, at_b: Placed, hulls: Hulls, room: Room, limit: float
) -> int:
    """Points at which two shapes touch or nearly do, written into ``room.found``, world axes.

    Args:
        a: First shape,
        b: second one.
        at_a: Where they are,
        at_b: both.
        hulls: Corners of hulls.
        room: Scratch.
        limit: Gap up to which points are told [m].

    Returns:
        How many points, MOST_POINTS at most; normals go from a to b.
    """
    Ra, pa = mat(at_a.R), vec(at_a.p)
    back = transpose(Ra)
    R, p = mul(back, mat(at_b.R)), apply(back, sub(vec(at_b.p), pa))
    if b.kind == PLANE:
        if a.kind == PLANE:
            return 0
        R, p = transpose(R), scale(-1.0, apply(transpose(R), p))
        count = meet_plane(a, R, p, hulls, room, limit)
        for k in range(count):  # as seen from the other side
            touch = room.found[k]
            n = vec(touch.normal)
            put(touch.position, sub(vec(touch.position), scale(touch.gap, n)))
            put(touch.normal, scale(-1.0, n))
        Ra, pa = mat(at_b.R), vec(at_b.p)
    elif a.kind == PLANE:
        count = meet_plane(b, R, p, hulls, room, limit)
    elif a.kind <= CAPSULE and b.kind <= CAPSULE:
        count = meet_round(a, b, R, p, room, limit)
    else:
        count = meet_cores(a, b, R, p, hulls, room, limit)
    for k in range(count):
        touch = room.found[k]
        put(touch.position, add(pa, apply(Ra, vec(touch.position))))
        put(touch.normal, apply(Ra, vec(touch.normal)))
    return count


@helper
def meet_plane(b: Shape, R: Matrix, p: Vector, hulls: Hulls, room: Room, limit: float) -> int:
    """Points of a shape below or near the plane z = 0; its axes R and origin p."""
    down = scale(-1.0, R[2])
    lowest = dot(R[2], farthest(b, hulls, down)) + p[2] - b.radius
    if lowest > limit:
        return 0
    n, _, name = put_facet(b, hulls, down, room, 1)
    move_polygon(room, 1, n, R, p)
    up, count = (0.0, 0.0, 1.0), 0
    for k in range(n):
        point = vec(room.polygons[1, k])
        gap = point[2] - b.radius
        if gap <= limit:
            point = (point[0], point[1], gap)
            count = put_touch(
                room, count, point, up, gap, CORNER_NAMES * name + room.features[1, k]
            )
    return thin_out(room, count, up)


@helper
def ends(a: Shape, R: Matrix, p: Vector) -> tuple[Vector, Vector]:
    """Ends of the core of a sphere or capsule."""
    z = scale(a.extent[2], transpose(R)[2])
    return sub(p, z), add(p, z)


@helper
def meet_round(a: Shape, b: Shape, R: Matrix, p: Vector, room: Room, limit: float) -> int:
    """Points of two spheres or capsules; axes R and origin p of the second."""
    first = (0.0, 0.0, -a.extent[2]), (0.0, 0.0, a.extent[2])
    second = ends(b, R, p)
    x, y = nearest_of_segments(first, second)
    way = sub(y, x)
    length = norm(way)
    gap = length - a.radius - b.radius
    if gap > limit:
        return 0
    if length > 0.0:
        n = scale(1.0 / length, way)
    else:  # they cross, or are one: across both, if there is such a way
        n = cross(sub(first[1], first[0]), sub(second[1], second[0]))
        if not norm(n) > 0.0:
            axis = sub(second[1], second[0]) if b.extent[2] > 0.0 else (0.0, 0.0, a.extent[2])
            n = cross(axis, (1.0, 0.0, 0.0) if math.fabs(axis[0]) < norm(axis) / 2 else (0, 1.0, 0))
        n = unit(n)
    count = put_overlap(room, n, first, second, (a.radius, b.radius), limit)
    if count < 2:
        count = put_touch(room, 0, sub(y, scale(b.radius, n)), n, gap, 0)
    return count


@helper
def nearest_of_segments(
    first: tuple[Vector, Vector], second: tuple[Vector, Vector]
) -> tuple[Vector, Vector]:
    """Nearest points of two segments.

    Source: Ericson, Real-Time Collision Detection, 5.1.9.
    """
    u, v = sub(first[1], first[0]), sub(second[1], second[0])
    w = sub(first[0], second[0])
    uu, vv, uv, uw, vw = dot(u, u), dot(v, v), dot(u, v), dot(u, w), dot(v, w)
    s = t = 0.0
    if uu > 0.0:
        if vv > 0.0:
            area = norm(cross(u, v))
            if area * area > 1e-24 * uu * vv:
                s = min(max((uv * vw - vv * uw) / (area * area), 0.0), 1.0)
            t = (uv * s + vw) / vv
            if t < 0.0:
                t, s = 0.0, min(max(-uw / uu, 0.0), 1.0)
            elif t > 1.0:
                t, s = 1.0, min(max((uv - uw) / uu, 0.0), 1.0)
        else:
            s = min(max(-uw / uu, 0.0), 1.0)
    elif vv > 0.0:
        t = min(max(vw / vv, 0.0), 1.0)
    return add(first[0], scale(s, u)), add(second[0], scale(t, v))


@helper
def face(a: Shape, b: Shape, R: Matrix, p: Vector, hulls: Hulls, reach: float) -> Direction:
    """Try whether b meets a plane side of the box or cylinder a with its farthest point.

    A point outside that lies over the side is as far from a as from the side. A point inside whose
    nearest side this is cannot leave a by a shorter way; and if it is the point of b that is the
    deepest under that side, b leaves with it.
    """
    middle = add(p, apply(R, vec(b.middle)))
    half = vec(b.half)
    axis, most = 2, -math.inf
    for k in range(3):
        r = R[0] if k == 0 else (R[1] if k == 1 else R[2])
        spread = math.fabs(r[0]) * half[0] + math.fabs(r[1]) * half[1] + math.fabs(r[2]) * half[2]
        m = middle[0] if k == 0 else (middle[1] if k == 1 else middle[2])
        room = math.fabs(m) - a.extent[k] - spread
        if room > reach:
            return NONE
        if room > most and (a.kind == BOX or k == 2):
            axis, most = k, room
    m = middle[0] if axis == 0 else (middle[1] if axis == 1 else middle[2])
    s = math.copysign(1.0, m)
    d = (s if axis == 0 else 0.0, s if axis == 1 else 0.0, s if axis == 2 else 0.0)
    back = apply(transpose(R), d)
    point = add(p, apply(R, farthest(b, hulls, scale(-1.0, back))))
    gap = dot(d, point) - a.extent[axis]
    if gap > reach:
        return NONE
    x, y, z = math.fabs(point[0]), math.fabs(point[1]), math.fabs(point[2])
    least = 0.0 if gap > 0.0 else -gap
    if a.kind == CYLINDER:
        over = a.extent[0] - math.sqrt(x * x + y * y) >= least
    else:
        over = (
            (axis == 0 or a.extent[0] - x >= least)
            and (axis == 1 or a.extent[1] - y >= least)
            and (axis == 2 or a.extent[2] - z >= least)
        )
    return MET if over else OPEN, gap, d


@helper
def sides_of_boxes(a: Shape, b: Shape, R: Matrix, p: Vector) -> tuple[float, Vector]:
    """Largest separation of two boxes along normals of sides and across edges, and its direction.

    It is the depth, negative, where they overlap. Sides are preferred to edges.
    """
    most, n = -math.inf, ZERO
    for k in range(3):
        r = R[0] if k == 0 else (R[1] if k == 1 else R[2])
        m = p[0] if k == 0 else (p[1] if k == 1 else p[2])
        spread = (
            math.fabs(r[0]) * b.extent[0]
            + math.fabs(r[1]) * b.extent[1]
            + math.fabs(r[2]) * b.extent[2]
        )
        room = math.fabs(m) - a.extent[k] - spread
        if room > most:
            s = math.copysign(1.0, m)
            most = room
            n = (s if k == 0 else 0.0, s if k == 1 else 0.0, s if k == 2 else 0.0)
    T = transpose(R)
    for k in range(3):
        c = T[0] if k == 0 else (T[1] if k == 1 else T[2])
        m = dot(c, p)
        spread = (
            math.fabs(c[0]) * a.extent[0]
            + math.fabs(c[1]) * a.extent[1]
            + math.fabs(c[2]) * a.extent[2]
        )
        room = math.fabs(m) - b.extent[k] - spread
        if room > most:
            most, n = room, scale(math.copysign(1.0, m), c)
    allowed = (
        most + ROUND_OFF * (norm(vec(a.extent)) + norm(vec(b.extent))) + SNAP * math.fabs(most)
    )
    for i in range(3):
        for j in range(3):
            c = T[0] if j == 0 else (T[1] if j == 1 else T[2])
            if i == 0:
                axis = (0.0, -c[2], c[1])
            elif i == 1:
                axis = (c[2], 0.0, -c[0])
            else:
                axis = (-c[1], c[0], 0.0)
            length = norm(axis)
            if length < 1e-6:
                continue
            axis = scale(1.0 / length, axis)
            m = dot(axis, p)
            back = apply(T, axis)
            spread = (
                math.fabs(axis[0]) * a.extent[0]
                + math.fabs(axis[1]) * a.extent[1]
                + math.fabs(axis[2]) * a.extent[2]
                + math.fabs(back[0]) * b.extent[0]
                + math.fabs(back[1]) * b.extent[1]
                + math.fabs(back[2]) * b.extent[2]
            )
            room = math.fabs(m) - spread
            if room > allowed:
                most, allowed, n = room, room, scale(math.copysign(1.0, m), axis)
    return most, n


class Meeting(NamedTuple):
    """How the cores of two shapes meet, in axes of the first."""

    gap: float
    n: Vector  # unit vector from the first to the second
    on_a: Vector  # nearest point of the first core,
    known: bool  # if it is known
    size: float  # of the smaller shape


@outlined
def meet_cores(
    a: Shape, b: Shape, R: Matrix, p: Vector, hulls: Hulls, room: Room, limit: float
) -> int:
    """Points of two shapes of which at least one has sides or a rim, in the axes of the first.

    Args:
        a: First shape.
        b: Second one,
        R: its axes (3, 3),
        p: and its origin (3,).
        hulls: Corners of hulls.
        room: Receives the points.
        limit: Gap up to which they are told.
    """
    reach = limit + a.radius + b.radius
    outcome, gap, n, on_a, known = OPEN, 0.0, ZERO, ZERO, False
    if a.kind == BOX or a.kind == CYLINDER:
        outcome, gap, n = face(a, b, R, p, hulls, reach)
    if outcome == OPEN and (b.kind == BOX or b.kind == CYLINDER):
        T = transpose(R)
        outcome, gap, n = face(b, a, T, scale(-1.0, apply(T, p)), hulls, reach)
        n = scale(-1.0, apply(R, n))
    if outcome == APART:
        return 0
    size = min(norm(vec(a.half)), norm(vec(b.half))) + a.radius + b.radius
    if outcome == OPEN:
        overlap = False
        if a.kind == BOX and b.kind == BOX:
            gap, n = sides_of_boxes(a, b, R, p)
            if gap > reach:
                return 0
            overlap = gap <= NEAR * size
        if not overlap:
            distance, v, near, corners = separate(a, b, R, p, hulls, room, reach)
            if distance > reach:
                return 0
            if distance > NEAR * size:
                gap, n, on_a, known = distance, scale(-1.0 / norm(v), v), near, True
            elif a.kind != BOX or b.kind != BOX:
                depth, n, on_a = penetrate(a, b, R, p, hulls, room, corners)
                gap, known = -depth, True
    return put_manifold(a, b, R, p, hulls, room, limit, Meeting(gap, n, on_a, known, size))


@outlined
def put_manifold(
    a: Shape,
    b: Shape,
    R: Matrix,
    p: Vector,
    hulls: Hulls,
    room: Room,
    limit: float,
    meeting: Meeting,
) -> int:
    """All points of two shapes that meet along n; see ``meet_cores``.

    Args:
        a: First shape.
        b: Second one,
        R: its axes (3, 3),
        p: and its origin (3,).
        hulls: Corners of hulls.
        room: Receives the points.
        limit: Gap up to which they are told.
        meeting: How the cores meet.
    """
    gap, n, on_a, size = meeting.gap, meeting.n, meeting.on_a, meeting.size
    radii = a.radius + b.radius
    least = gap - ROUND_OFF * size - SNAP * math.fabs(gap)
    back = scale(-1.0, apply(transpose(R), n))
    n_a, normal_a, name_a = put_facet(a, hulls, n, room, 0)
    n_b, normal_b, name_b = put_facet(b, hulls, back, room, 1)
    move_polygon(room, 1, n_b, R, p)
    normal_b = apply(R, normal_b)
    room_a = room_b = -math.inf
    offset_a, offset_b = 0.0, 0.0
    if n_a > 2 and dot(normal_a, n) > ALIGNED:
        offset_a = dot(normal_a, farthest(a, hulls, normal_a))
        d = scale(-1.0, apply(transpose(R), normal_a))
        room_a = dot(normal_a, add(p, apply(R, farthest(b, hulls, d)))) - offset_a
    if n_b > 2 and -dot(normal_b, n) > ALIGNED:
        offset_b = dot(
            normal_b, add(p, apply(R, farthest(b, hulls, apply(transpose(R), normal_b))))
        )
        room_b = dot(normal_b, farthest(a, hulls, scale(-1.0, normal_b))) - offset_b
    count, along, cosine = 0, normal_a, 1.0
    meets_a, meets_b = room_a >= least, room_b >= least
    if not (meets_a or meets_b):  # sides that are not quite plane meet along n
        if a.kind == HULL and dot(normal_a, n) > NEARLY:
            meets_a, normal_a, along = True, n, n
            offset_a = dot(n, farthest(a, hulls, n))
        elif b.kind == HULL and -dot(normal_b, n) > NEARLY:
            meets_b, normal_b = True, scale(-1.0, n)
            offset_b = dot(normal_b, add(p, apply(R, farthest(b, hulls, back))))
        elif min(room_a, room_b) > -math.inf and min(dot(normal_a, n), -dot(normal_b, n)) > NEARLY:
            # edges cross, but the sides between them all but lie on each other
            meets_a, along, cosine = True, n, dot(normal_a, n)
    if meets_a and meets_b and a.kind == CYLINDER and b.kind != CYLINDER:
        meets_a = False  # rims are cut to sides
    if meets_a:
        left = cut_to(room, 0, n_a, normal_a, 1, n_b)
        for k in range(left):
            point = vec(room.polygons[2, k])
            here = (dot(normal_a, point) - offset_a) / cosine
            here = (here if cosine == 1.0 else max(here, gap)) - radii
            if here <= limit:
                place = sub(point, scale(b.radius, along))
                feature = 3 * (name_a + CORNER_NAMES * room.features[2, k])
                count = put_touch(room, count, place, along, here, feature)
        n = along
    elif meets_b:
        left = cut_to(room, 1, n_b, normal_b, 0, n_a)
        n = scale(-1.0, normal_b)
        for k in range(left):
            point = vec(room.polygons[2, k])
            here = dot(normal_b, point) - offset_b
            if here - radii <= limit:
                place = add(point, scale(here - b.radius, n))
                feature = 3 * (name_b + CORNER_NAMES * room.features[2, k]) + 1
                count = put_touch(room, count, place, n, here - radii, feature)
    elif n_a > 1 and n_b > 1:
        first = top_edge(room, 0, n_a, n)
        second = top_edge(room, 1, n_b, scale(-1.0, n))
        count = put_overlap(room, n, first, second, (a.radius, b.radius), limit)
        if not meeting.known:  # two edges of boxes cross
            on_a, _ = nearest_of_segments(first, second)
    deepest = math.inf
    for k in range(count):
        deepest = min(deepest, room.found[k].gap)
    if deepest > gap - radii + ROUND_OFF * size and gap - radii <= limit:
        if meets_a or meets_b:  # beside the corners that stand for a rim
            on_a = farthest(a, hulls, n)
            if meets_a:
                d = scale(-1.0, apply(transpose(R), n))
                on_a = sub(add(p, apply(R, farthest(b, hulls, d))), scale(gap, n))
        else:  # these are not the edges that meet
            count = 0
        place = add(on_a, scale(gap - b.radius, n))
        count = put_touch(room, count, place, n, gap - radii, 2)
    return thin_out(room, count, n)
