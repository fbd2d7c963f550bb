"""The farthest points of a core along a direction, and the facet that they belong to."""

import math

from bulletbridge.collision.records import (
    BOX,
    CAPSULE,
    CYLINDER,
    HULL,
    SPHERE,
    Hulls,
    Room,
    Shape,
)
from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.records import Vector
from bulletbridge.numerics.spatial import ZERO, dot, norm, put, scale, vec

AROUND = 8
"""Points that stand for the rim of a cylinder."""
UPRIGHT = 1e-4
"""Tilt [rad] up to which these stay where they are on a cylinder; beyond, one is the lowest."""
FEW = 24
"""Corners of a hull up to which all are tried; of others neighbours, as long as one is farther."""


@helper
def farthest(shape: Shape, hulls: Hulls, d: Vector) -> Vector:
    """The point of a core that is farthest along d, in the axes of the shape."""
    kind = shape.kind
    if kind == SPHERE:
        return ZERO
    if kind == HULL:
        return vec(hulls.vertices[shape.first_vertex + farthest_corner(shape, hulls, d)].p)
    z = math.copysign(shape.extent[2], d[2])
    if kind == BOX:
        return math.copysign(shape.extent[0], d[0]), math.copysign(shape.extent[1], d[1]), z
    if kind == CAPSULE:
        return 0.0, 0.0, z
    r = math.sqrt(d[0] * d[0] + d[1] * d[1])
    if not r > 0.0:
        return shape.extent[0], 0.0, z
    return shape.extent[0] * d[0] / r, shape.extent[0] * d[1] / r, z


@outlined
def farthest_corner(shape: Shape, hulls: Hulls, d: Vector) -> int:
    """Number of the corner of a hull that is farthest along d, the first one of several."""
    first, best = shape.first_vertex, 0
    most = dot(d, vec(hulls.vertices[first].p))
    if shape.vertices <= FEW:
        for k in range(1, shape.vertices):
            value = dot(d, vec(hulls.vertices[first + k].p))
            if value > most:
                best, most = k, value
        return best
    climbing = True
    while climbing:
        climbing = False
        own = hulls.vertices[first + best]
        for k in range(own.first_neighbour, own.first_neighbour + own.neighbours):
            other = int(hulls.integers[k])
            value = dot(d, vec(hulls.vertices[first + other].p))
            if value > most:
                best, most, climbing = other, value, True
    return best


@outlined
def put_facet(
    shape: Shape, hulls: Hulls, d: Vector, room: Room, place: int
) -> tuple[int, Vector, int]:
    """Write what of a core is farthest along the unit vector d, in the axes of the shape.

    Of a plane side all corners, in their order about its normal; of a line along the core its two
    ends; otherwise one point. The farthest point is among them.

    Args:
        shape: Whose core.
        hulls: Corners of hulls.
        d: (3,)
        room: Receives corners and their names,
        place: here.

    Returns:
        How many, the side's normal (zero of what is none), and its name.
    """
    points, names = room.polygons[place], room.features[place]
    kind, a, b, c = shape.kind, shape.extent[0], shape.extent[1], shape.extent[2]
    names[0] = 0
    if kind == SPHERE:
        put(points[0], ZERO)
        return 1, ZERO, 0
    if kind == BOX:
        x, y, z = math.fabs(d[0]), math.fabs(d[1]), math.fabs(d[2])
        for k in range(4):
            names[k] = k
        if z >= x and z >= y:
            s = math.copysign(1.0, d[2])
            put(points[0], (a, s * b, s * c))
            put(points[1], (-a, s * b, s * c))
            put(points[2], (-a, -s * b, s * c))
            put(points[3], (a, -s * b, s * c))
            return 4, (0.0, 0.0, s), 5 if s > 0.0 else 4
        if y >= x:
            s = math.copysign(1.0, d[1])
            put(points[0], (s * a, s * b, c))
            put(points[1], (s * a, s * b, -c))
            put(points[2], (-s * a, s * b, -c))
            put(points[3], (-s * a, s * b, c))
            return 4, (0.0, s, 0.0), 3 if s > 0.0 else 2
        s = math.copysign(1.0, d[0])
        put(points[0], (s * a, b, s * c))
        put(points[1], (s * a, -b, s * c))
        put(points[2], (s * a, -b, -s * c))
        put(points[3], (s * a, b, -s * c))
        return 4, (s, 0.0, 0.0), 1 if s > 0.0 else 0
    if kind == CAPSULE or kind == CYLINDER:
        r = math.sqrt(d[0] * d[0] + d[1] * d[1])
        x, y = (d[0] / r, d[1] / r) if r > UPRIGHT else (1.0, 0.0)
        if kind == CYLINDER and math.fabs(d[2]) > r:
            s = math.copysign(1.0, d[2])
            for k in range(AROUND):
                angle = s * 2.0 * math.pi * k / AROUND
                u, v = math.cos(angle), math.sin(angle)
                put(points[k], (a * (u * x - v * y), a * (u * y + v * x), s * c))
                names[k] = k
            return AROUND, (0.0, 0.0, s), 1 if s > 0.0 else 0
        put(points[0], (a * x, a * y, c))
        put(points[1], (a * x, a * y, -c))
        names[1] = 1
        return 2, ZERO, 2
    best, most = -1, -2.0
    corner = hulls.vertices[shape.first_vertex + farthest_corner(shape, hulls, d)]
    for k in range(corner.first_facet, corner.first_facet + corner.facets):
        facet = int(hulls.integers[k])
        value = dot(d, vec(hulls.facets[shape.first_facet + facet].normal))
        if value > most:
            best, most = facet, value
    side = hulls.facets[shape.first_facet + best]
    for k in range(side.corners):
        number = int(hulls.integers[side.first_corner + k])
        put(points[k], vec(hulls.vertices[shape.first_vertex + number].p))
        names[k] = number
    return side.corners, vec(side.normal), best


@helper
def unit(a: Vector) -> Vector:
    """A vector of length one along another; along z if that is zero."""
    length = norm(a)
    return scale(1.0 / length, a) if length > 0.0 else (0.0, 0.0, 1.0)
