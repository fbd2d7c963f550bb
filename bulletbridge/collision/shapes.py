"""Shapes are made here, from sizes and from the corners of convex hulls."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from bulletbridge.collision.records import (
    BOX,
    CAPSULE,
    CORNERS,
    CYLINDER,
    EPA_FACES,
    EPA_VERTICES,
    FACET,
    HULL,
    MOST_CORNERS,
    PLANE,
    SHAPE,
    SPHERE,
    TOUCH,
    UNKNOWN,
    VERTEX,
    Hulls,
    Room,
)
from bulletbridge.errors import ModelError
from bulletbridge.numerics.records import Array, Ints

FLAT, BENT = 1e-9, 0.02
"""Normals of triangles differ by less where they lie in one plane, or [rad] where they count as one
side: corners of meshes are rounded, and a pad is to meet a face with all of it."""
BOUNDLESS = 1e30
"""Half extents of planes."""
MOST_HULLS = 256
"""Hulls that are kept: programs load the same robots again and again."""


class Side(NamedTuple):
    """A side of a convex hull, all but plane.

    Attributes:
        normal: (3,) outwards.
        offset: How far along it the side is at most [m].
        order: Numbers of the corners around it, in their order about the normal.
        triangles: (n, 3) numbers of the corners of all its triangles.
    """

    normal: Array
    offset: float
    order: list[int]
    triangles: Ints


@dataclass(frozen=True, eq=False)
class Sides:
    """Sides and edges of a convex hull.

    Attributes:
        corners: (n, 3) its corners [m].
        facets: Its sides.
        neighbours: Of each corner, those that an edge joins to it.
    """

    corners: Array
    facets: list[Side]
    neighbours: list[list[int]]

    @cached_property
    def records(self) -> Hulls:
        """The same as records, of this hull alone."""
        vertices: list[tuple[Array, int, int, int, int]] = []
        facets: list[tuple[Array, float, int, int]] = []
        integers: list[int] = []
        touching: list[list[int]] = [[] for _ in self.corners]
        for k, (normal, offset, order, triangles) in enumerate(self.facets):
            count = min(len(order), MOST_CORNERS)
            facets.append((normal, offset, len(integers), count))
            integers += [order[k * len(order) // count] for k in range(count)]
            for corner in sorted(set(triangles.ravel().tolist())):
                touching[corner].append(k)
        for corner, near, own in zip(self.corners, self.neighbours, touching, strict=True):
            first = len(integers)
            integers += near + own
            vertices.append((corner, first, len(near), first + len(near), len(own)))
        return Hulls(
            np.array(vertices, VERTEX), np.array(facets, FACET), np.array(integers, np.int64)
        )


class ShapeSpec(NamedTuple):
    """A shape before it is a record.

    Attributes:
        kind: As in ``records``.
        size: (3,) half extents; of round ones radius of the core (twice), half length [m].
        radius: Rounding [m].
        R: (3, 3) axes in its body.
        p: (3,) origin in its body [m].
        hull: Sides of a convex hull.
    """

    kind: int
    size: tuple[float, float, float]
    radius: float
    R: Array
    p: Array
    hull: Sides | None = None

    def at(self, R: Array, p: Array) -> "ShapeSpec":
        """The same on a body in which its frame has axes R (3, 3) and origin p (3,)."""
        return self._replace(R=R @ self.R, p=np.asarray(p) + R @ self.p)

    @property
    def known(self) -> bool:
        """Whether more is known of it than a box around it."""
        return self.kind != UNKNOWN


STRAIGHT, NOWHERE = np.eye(3), np.zeros(3)


def plane() -> ShapeSpec:
    """All that is below z = 0."""
    return ShapeSpec(PLANE, (0.0, 0.0, 0.0), 0.0, STRAIGHT, NOWHERE)


def sphere(radius: float) -> ShapeSpec:
    """Sphere about the origin; radius [m]."""
    return ShapeSpec(SPHERE, (0.0, 0.0, 0.0), radius, STRAIGHT, NOWHERE)


def capsule(radius: float, half: float) -> ShapeSpec:
    """Capsule along z; ``half`` the length of its cylinder [m]."""
    return ShapeSpec(CAPSULE, (0.0, 0.0, half), radius, STRAIGHT, NOWHERE)


def cylinder(radius: float, half: float) -> ShapeSpec:
    """Cylinder along z; radius and half its length [m]."""
    return ShapeSpec(CYLINDER, (radius, radius, half), 0.0, STRAIGHT, NOWHERE)


def box(x: float, y: float, z: float) -> ShapeSpec:
    """Box with these half extents [m]."""
    return ShapeSpec(BOX, (x, y, z), 0.0, STRAIGHT, NOWHERE)


def unknown(half: tuple[float, float, float]) -> ShapeSpec:
    """Something of which no more is known than a box around it [m]."""
    return ShapeSpec(UNKNOWN, half, 0.0, STRAIGHT, NOWHERE)


def hull(points: Array, radius: float = 0.0) -> ShapeSpec:
    """Convex hull of points (n, 3) [m], rounded by ``radius``.

    Raises:
        ModelError: They lie in a plane, or are no finite numbers.
    """
    return ShapeSpec(HULL, (0.0, 0.0, 0.0), radius, STRAIGHT, NOWHERE, sides_of(points))


def sides_of(points: Array) -> Sides:
    """Sides and edges of the convex hull of points (n, 3); those of the last hulls are kept.

    Raises:
        ModelError: They lie in a plane, or are no finite numbers.
    """
    points = np.ascontiguousarray(points, float)
    if not np.isfinite(points).all():
        raise ModelError("the corners of a convex hull are not all finite numbers")
    return _sides_of(points.tobytes())


@lru_cache(MOST_HULLS)
def _sides_of(content: bytes) -> Sides:
    """Sides and edges of the convex hull of points, as they lie in memory."""
    from scipy.spatial import ConvexHull, QhullError

    points = np.frombuffer(content).reshape(-1, 3)
    try:
        found = ConvexHull(points)
    except (QhullError, ValueError):
        raise ModelError(f"{len(points)} points that lie in a plane have no convex hull") from None
    kept = np.sort(found.vertices)
    corners = points[kept]
    facets: list[Side] = []
    triangles = np.searchsorted(kept, found.simplices)
    a, b, c = (corners[triangles[:, k]] for k in range(3))
    turned = np.einsum("ni,ni->n", np.cross(b - a, c - a), found.equations[:, :3]) < 0.0
    triangles[turned] = triangles[turned][:, ::-1]
    offsets = np.einsum("nki,ni->nk", corners[triangles], found.equations[:, :3]).max(axis=1)
    normals = found.equations[:, :3]
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    for group in _sides(normals, found.neighbors.astype(np.int64), areas):
        normal = normals[group[0]]
        if len(group) == 1:
            order, offset = triangles[group[0]].tolist(), float(offsets[group[0]])
        else:
            if np.abs(normals[group] - normal).max() > FLAT:
                normal = areas[group] @ normals[group]
                normal = normal / np.linalg.norm(normal)
            order = outline(corners, normal, np.unique(triangles[group]))
            offset = float(offsets[group].max())
        facets.append(Side(normal, offset, order, triangles[group]))
    near: list[set[int]] = [set() for _ in kept]
    for i, j, k in triangles.tolist():
        near[i] |= {j, k}
        near[j] |= {i, k}
        near[k] |= {i, j}
    return Sides(corners, facets, [sorted(each) for each in near])


def _sides(normals: Array, neighbours: Ints, areas: Array) -> list[Ints]:
    """Numbers of the triangles of each side: the largest, and neighbours that lie as it does."""
    side, groups = [-1] * len(normals), list[list[int]]()
    near, around = neighbours.tolist(), normals.tolist()
    for seed in np.argsort(-areas, kind="stable").tolist():
        if side[seed] >= 0:
            continue
        side[seed], group = len(groups), [seed]
        x, y, z = around[seed]
        for triangle in group:
            for other in near[triangle]:
                u, v, w = around[other]
                if side[other] < 0 and max(abs(u - x), abs(v - y), abs(w - z)) < BENT:
                    side[other] = len(groups)
                    group.append(other)
        groups.append(group)
    return [np.array(group, np.int64) for group in groups]


def outline(corners: Array, normal: Array, members: Ints) -> list[int]:
    """Those of some corners that are around them as seen along a normal, in their order about it.

    Source: Andrew, Another efficient algorithm for convex hulls in two dimensions, 1979.
    """
    x, y, z = normal.tolist()
    least = min(abs(x), abs(y), abs(z))
    along = (0.0, z, -y) if least == abs(x) else (-z, 0.0, x) if least == abs(y) else (y, -x, 0.0)
    length = math.hypot(*along)
    u, v, w = (value / length for value in along)
    p, q, r = y * w - z * v, z * u - x * w, x * v - y * u
    found = sorted(
        (a * u + b * v + c * w, a * p + b * q + c * r, number)
        for (a, b, c), number in zip(corners[members].tolist(), members.tolist(), strict=True)
    )
    rows, numbers = [(a, b) for a, b, _ in found], [number for *_, number in found]
    size = max(rows[-1][0] - rows[0][0], max(b for _, b in rows) - min(b for _, b in rows))
    chain: list[int] = []
    for order in (range(len(rows)), range(len(rows) - 1, -1, -1)):
        first = len(chain)
        for k in order:
            while len(chain) - first > 1:
                (a, b), (c, d), (e, f) = rows[chain[-2]], rows[chain[-1]], rows[k]
                if (c - a) * (f - b) - (d - b) * (e - a) > 1e-12 * size * size:
                    break
                chain.pop()
            chain.append(k)
        chain.pop()
    return [numbers[k] for k in chain]


class Shapes(NamedTuple):
    """Records of shapes and the hulls they refer to."""

    shapes: np.ndarray
    hulls: Hulls


class Owner(NamedTuple):
    """What a shape is on, and how far from others it is told.

    Attributes:
        body: Of the mechanism, 0 for the world.
        link: Number of its link.
        margin: [m]
    """

    body: int
    link: int
    margin: float


def records_of(specs: Sequence[ShapeSpec], owners: Sequence[Owner]) -> Shapes:
    """Records of shapes; hulls that several of them share are there once."""
    shapes = np.zeros(len(specs), SHAPE)
    hulls: list[Sides] = []
    places: dict[int, tuple[int, int]] = {}  # of their first corner and side
    vertices = facets = 0
    for record, spec, owner in zip(shapes, specs, owners, strict=True):
        record["kind"], record["extent"], record["radius"] = spec.kind, spec.size, spec.radius
        record["body"], record["link"], record["margin"] = owner
        record["R"], record["p"] = spec.R, spec.p
        record["half"] = BOUNDLESS if spec.kind == PLANE else spec.size
        if spec.hull is None:
            continue
        corners, count = spec.hull.corners, len(spec.hull.facets)
        if id(spec.hull) not in places:
            places[id(spec.hull)] = vertices, facets
            hulls.append(spec.hull)
            vertices, facets = vertices + len(corners), facets + count
        record["first_vertex"], record["first_facet"] = places[id(spec.hull)]
        record["vertices"], record["facets"] = len(corners), count
        lower, upper = corners.min(axis=0), corners.max(axis=0)
        record["middle"], record["half"] = (lower + upper) / 2, (upper - lower) / 2
    return Shapes(shapes, _together(hulls))


def _together(hulls: Sequence[Sides]) -> Hulls:
    """Records of several hulls, one after the other."""
    none = np.zeros(0, VERTEX), np.zeros(0, FACET), np.zeros(0, np.int64)
    columns = zip(none, *(each.records for each in hulls), strict=True)
    vertices, facets, integers = (np.concatenate(parts) for parts in columns)
    counts = [len(each.records.integers) for each in hulls]
    before = np.cumsum([0, *counts[:-1]]) if hulls else np.zeros(0, np.int64)
    of_vertices = np.repeat(before, [len(each.records.vertices) for each in hulls])
    for field in ("first_neighbour", "first_facet"):
        vertices[field] += of_vertices
    facets["first_corner"] += np.repeat(before, [len(each.records.facets) for each in hulls])
    return Hulls(vertices, facets, integers)


def room() -> Room:
    """Scratch for the narrow phase."""
    integers: type[np.int64] = np.int64
    features: Ints = np.zeros((4, CORNERS), integers)
    return Room(
        np.zeros((4, 6)),
        np.zeros((4, CORNERS, 3)),
        features,
        np.zeros((EPA_VERTICES, 6)),
        np.zeros((EPA_FACES, 4)),
        np.zeros((EPA_FACES, 4), integers),
        np.zeros((3 * EPA_FACES, 2), integers),
        np.zeros(CORNERS, TOUCH),
    )
