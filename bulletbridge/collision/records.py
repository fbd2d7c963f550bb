"""Records of shapes, where they are, and the points at which two of them touch.

SI units. A shape is a core, all points within ``radius`` of which belong to it: a sphere is a
rounded point, a capsule a rounded segment along z; a convex hull is rounded by Bullet's margin.
"""

from typing import NamedTuple, Protocol

from bulletbridge.numerics.records import (
    Array,
    Int,
    Ints,
    Mat3,
    Real,
    Records,
    Vec3,
    dtype_of,
)

PLANE, SPHERE, CAPSULE, CYLINDER, BOX, HULL, UNKNOWN = range(7)
"""Kinds of shapes. A plane is all below its x and y axes; an unknown shape has nothing but an AABB,
and is left to somebody else."""
MOST_POINTS = 8
"""Points at which two shapes touch at most."""
MOST_CORNERS = 48
"""Corners of a facet that count when facets meet; hulls may have facets with more."""
CORNERS = 160
"""Room for corners of a polygon while it is cut."""
SHARE_AT_REST = 0.1
"""Of the margin, within which points are told whatever the speed."""
EPA_VERTICES, EPA_FACES = 96, 192
"""Room for the polytope that finds how deep shapes are in each other."""


class Carrier(Protocol):
    """What shapes are on: it has axes and an origin in the world."""

    R: Array  # (3, 3)
    p: Array  # (3,)
    w: Array  # (3,) angular velocity, and velocity at the world's origin
    v: Array  # (3,)


class Shape:
    """Constant data of one shape."""

    kind: Int
    body: Int  # number of what carries it; shapes on one do not meet
    link: Int  # number of its link: links that do not collide are known by that
    R: Mat3  # axes and origin in the body
    p: Vec3
    extent: Vec3  # half extents; of round ones radius of the core (twice), half length
    radius: Real  # of the rounding
    margin: Real  # how far from each other shapes of this size may be to be told at most
    middle: Vec3  # of a box around the core, in its axes
    half: Vec3
    first_vertex: Int  # of hulls
    vertices: Int
    first_facet: Int
    facets: Int


class Vertex:
    """Corner of a hull."""

    p: Vec3
    first_neighbour: Int
    neighbours: Int
    first_facet: Int
    facets: Int


class Facet:
    """Plane side of a hull: x is inside where normal · x < offset."""

    normal: Vec3
    offset: Real
    first_corner: Int
    corners: Int


class Placed:
    """Where a shape is in the world."""

    R: Mat3
    p: Vec3
    lower: Vec3  # of its AABB
    upper: Vec3
    speed: Real  # bound on that of its points


class Touch:
    """One point at which two shapes touch or nearly do."""

    position: Vec3  # on shape b
    normal: Vec3  # unit vector into b
    gap: Real  # negative inside
    feature: Int  # the same from step to step while the same corners meet


SHAPE, VERTEX, FACET, PLACED, TOUCH = (
    dtype_of(kind) for kind in (Shape, Vertex, Facet, Placed, Touch)
)
UNDECIDED, COLLIDE, NEVER, DOUBTED = range(4)
"""Whether two links collide, as far as that is known; a doubted pair does, and is asked about."""


class Hulls(NamedTuple):
    """Corners and sides of all hulls; the integers count from the first of a hull."""

    vertices: Records[Vertex]
    facets: Records[Facet]
    integers: Ints


class Room(NamedTuple):
    """Scratch of the narrow phase."""

    simplex: Array  # (4, 6) points of the difference of two cores, and the points of the first
    polygons: Array  # (4, CORNERS, 3) facets that meet
    features: Ints  # (4, CORNERS) names of their corners
    polytope: Array  # (EPA_VERTICES, 6) as of the simplex
    sides: Array  # (EPA_FACES, 4) normals and distances of its faces
    corners: Ints  # (EPA_FACES, 4) their corners, and whether they are in use
    edges: Ints  # (3 EPA_FACES, 2) of the hole in it
    found: Records[Touch]  # (2 MOST_POINTS,) points before they are thinned out
