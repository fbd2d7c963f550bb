"""Shapes are made here, from sizes and from the corners of convex hulls."""

from collections.abc import Sequence
from functools import lru_cache
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


class Sides(NamedTuple):
    """Sides and edges of a convex hull."""

    corners: Array  # (n, 3) its corners [m]
    # (t, 3) numbers of the corners of all triangles, counter-clockwise from outside
    triangles: Ints
    sides: Ints  # (t,) which side each of these is part of
    records: Hulls  # corners, sides, outlines and edges as kernels read them, of this hull alone


class ShapeSpec(NamedTuple):
    """A shape before it is a record."""

    kind: int  # as in ``records``
    # (3,) half extents; of round ones radius of the core (twice), half length [m]
    size: tuple[float, float, float]
    radius: float  # rounding [m]
    R: Array  # (3, 3) axes in its body
    p: Array  # (3,) origin in its body [m]
    hull: Sides | None = None  # sides of a convex hull

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
    simplices, neighbours = found.simplices.astype(np.int64), found.neighbors.astype(np.int64)
    kept = distinct(simplices)
    number = np.zeros(len(points), np.int64)
    number[kept] = np.arange(len(kept))
    corners, triangles = points[kept], number[simplices]
    a, b, c = corners[triangles.T]
    across, normals = np.cross(b - a, c - a), found.equations[:, :3]
    turned = np.einsum("ni,ni->n", across, normals) < 0.0
    triangles[turned] = triangles[turned][:, ::-1]
    offsets = np.einsum("nki,ni->nk", corners[triangles], normals).max(axis=1)
    areas = np.linalg.norm(across, axis=1)
    sides, largest = _sides(normals, neighbours, areas)
    facets = np.zeros(len(largest), FACET)
    order, counts = stable_order(sides), np.bincount(sides)
    starts = np.cumsum(counts) - counts
    mean = np.add.reduceat((areas[:, None] * normals)[order], starts)
    facets["normal"] = normals[largest]
    bent = distinct(sides[np.abs(normals - normals[largest][sides]).max(axis=1) > FLAT])
    facets["normal"][bent] = mean[bent] / np.linalg.norm(mean[bent], axis=1, keepdims=True)
    facets["offset"] = np.maximum.reduceat(offsets[order], starts)
    records = _records(corners, triangles, sides, facets)
    return Sides(corners, triangles, sides, records)


def _sides(normals: Array, neighbours: Ints, areas: Array) -> tuple[Ints, Ints]:
    """Which side each triangle is part of: of the largest one, and neighbours that lie as it does.

    Returns:
        Numbers of the sides, and for each of these the number of its largest triangle.
    """
    side, largest = [-1] * len(normals), list[int]()
    near, (x, y, z) = neighbours.tolist(), normals.T.tolist()
    for seed in np.argsort(-areas, kind="stable").tolist():
        if side[seed] >= 0:
            continue
        side[seed], group = len(largest), [seed]
        u, v, w = x[seed], y[seed], z[seed]
        for triangle in group:
            for other in near[triangle]:
                if (
                    side[other] < 0
                    and abs(x[other] - u) < BENT
                    and abs(y[other] - v) < BENT
                    and abs(z[other] - w) < BENT
                ):
                    side[other] = len(largest)
                    group.append(other)
        largest.append(seed)
    return np.array(side, np.int64), np.array(largest, np.int64)


def stable_order(numbers: Ints) -> Ints:
    """Order in which numbers, none of them negative, rise; equal ones stay as they are.

    Those of 16 bits are sorted without a comparison.
    """
    return np.argsort(numbers.astype(np.min_scalar_type(numbers.max(initial=0))), kind="stable")


def distinct(numbers: Ints) -> Ints:
    """Those of some numbers that differ, rising: ``np.unique`` hashes them, which takes longer."""
    numbers = np.sort(numbers, axis=None)
    return numbers[np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]]


def _records(corners: Array, triangles: Ints, sides: Ints, facets: np.ndarray) -> Hulls:
    """Records of a hull, of whose sides (``facets``) all is known but their outlines."""
    n, count = len(corners), len(facets)
    # pairs of a corner and a facet at it, and of two corners with an edge, as single numbers
    touching = distinct(triangles * count + sides[:, None])
    others = triangles[:, [1, 2, 0]]
    near = distinct(np.vstack([triangles * n + others, others * n + triangles]))

    several = np.bincount(sides) > 1
    single = ~several[sides]  # whose corners are in order
    wide, place = np.flatnonzero(several), np.cumsum(several) - 1
    members = distinct(place[sides[~single], None] * n + triangles[~single])
    # facets of several triangles, whose corners have to be brought in order
    around, numbers = outlines(corners, facets["normal"][wide], members // n, members % n)
    around = np.concatenate([np.repeat(sides[single], 3), wide[around]])
    order = stable_order(around)
    numbers = np.concatenate([triangles[single].ravel(), numbers])[order]
    known = np.bincount(around, minlength=count)
    # what has too many corners is told by some of them, evenly around it
    facets["corners"] = told = np.minimum(known, MOST_CORNERS)
    facets["first_corner"] = first = np.cumsum(told) - told
    which = np.repeat(np.arange(count), told)
    k: Ints = np.arange(len(which)) - np.repeat(first, told)
    outer = numbers[(np.cumsum(known) - known)[which] + k * known[which] // told[which]]

    vertices = np.zeros(n, VERTEX)
    vertices["p"] = corners
    vertices["neighbours"] = a = np.bincount(near // n, minlength=n)
    vertices["facets"] = b = np.bincount(touching // count, minlength=n)
    vertices["first_neighbour"] = len(outer) + np.cumsum(a + b) - a - b
    vertices["first_facet"] = vertices["first_neighbour"] + a
    owner = np.concatenate([near // n, touching // count])
    others = np.concatenate([near % n, touching % count])[stable_order(owner)]
    return Hulls(vertices, facets, np.concatenate([outer, others]))


def outlines(corners: Array, normals: Array, sides: Ints, members: Ints) -> tuple[Ints, Ints]:
    """Corners around each of several sides as seen along its normal, in their order about it.

    A corner that does not stand out between those beside it is left out, until all do. Of several
    in a row every other one is: a circle of many corners would else lose them all.

    Source: Andrew, Another efficient algorithm for convex hulls in two dimensions, 1979.

    Args:
        corners: (n, 3) [m].
        normals: (m, 3) of the sides.
        sides: (k,) which of them each corner is on, rising,
        members: (k,) and its number.

    Returns:
        As ``sides`` and ``members``, of those around.
    """
    along = np.cross(normals, np.eye(3)[np.argmin(np.abs(normals), axis=1)])
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    across = np.cross(normals, along)
    x = np.einsum("ni,ni->n", corners[members], along[sides])
    y = np.einsum("ni,ni->n", corners[members], across[sides])
    order = np.lexsort((y, x))
    order = order[stable_order(sides[order])]
    starts = np.searchsorted(sides, np.arange(len(normals)))
    wide, high = (np.maximum.reduceat(p, starts) - np.minimum.reduceat(p, starts) for p in (x, y))
    least = 1e-12 * np.maximum(wide, high) ** 2
    there = np.concatenate([order, order[::-1]])  # along the lower half, back along the upper one
    half = 2 * sides[there] + np.repeat([0, 1], len(order))
    order = stable_order(half)
    there, half = there[order], half[order]
    p, q, least = x[there], y[there], least[half // 2]
    first, last = np.diff(half, prepend=-1) > 0, np.diff(half, append=-1) != 0
    around, inner = ~last, ~(first | last)
    before, after = np.arange(len(there)) - 1, np.arange(len(there)) + 1
    look = np.flatnonzero(inner)
    while len(look):
        a, c = before[look], after[look]
        turn = (p[look] - p[a]) * (q[c] - q[a]) - (q[look] - q[a]) * (p[c] - p[a])
        flat = look[~(turn > least[look])]
        k, joined = np.arange(len(flat)), before[flat] == np.roll(flat, 1)
        flat = flat[(k - np.maximum.accumulate(np.where(joined, 0, k))) % 2 == 0]
        after[before[flat]], before[after[flat]], around[flat] = after[flat], before[flat], False
        look = distinct(np.concatenate([before[flat], after[flat]]))
        look = look[inner[look]]
    return half[around] // 2, members[there[around]]


class Shapes(NamedTuple):
    """Records of shapes and the hulls they refer to."""

    shapes: np.ndarray
    hulls: Hulls


class Owner(NamedTuple):
    """What a shape is on, and how far from others it is told."""

    body: int  # of the mechanism, 0 for the world
    link: int  # number of its link
    margin: float  # [m]


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
        corners, count = spec.hull.corners, len(spec.hull.records.facets)
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
