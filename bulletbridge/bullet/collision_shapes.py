"""Collision shapes of links as Bullet has them, read once."""

import math
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pybullet

from bulletbridge.bullet.coordinates import matrix
from bulletbridge.bullet.worlds import connect_direct, disconnect, inertial_place
from bulletbridge.collision.records import PLANE
from bulletbridge.collision.shapes import (
    MOST_HULLS,
    ShapeSpec,
    box,
    capsule,
    cylinder,
    hull,
    plane,
    sides_of,
    sphere,
    unknown,
)
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.numerics.records import Array

TOLD = 0.02
"""Bullet's gContactBreakingThreshold: contacts up to this share of a link's size apart are told at
most. Its size is how far its bounding sphere reaches from its centre of mass."""
EXTREME, ROUGH = 1e-4, 1e-3
"""Shares of its size that a corner of a convex hull may be inside of it, and that Bullet's may be
away from that of the file: it makes hulls of integers."""
SIDES = 32
"""Of the prism that Bullet makes of a cylinder in a URDF."""
BULGE = 1.0 - math.cos(math.pi / SIDES)
"""How far a cylinder stands out from the middle of a side, as a share of its radius."""
LARGEST_FILE = 50_000_000
"""Of meshes [bytes]."""
UNSET_MARGIN = 0.04
"""Collision margin of Bullet's where nobody has given one [m]; of capsules it is their radius."""
BOUNDLESS = 1e29
"""Half extents of what may be anywhere [m]."""


class LinkShapes(NamedTuple):
    """Shapes of one link."""

    shapes: tuple[ShapeSpec, ...]  # in the link's inertial frame
    margin: float  # how far apart its contacts are told [m]
    rounding: float  # Bullet's collision margin, by which hulls are rounded [m]


def read_shapes(body: int, link: int, client: int) -> LinkShapes:
    """Shapes of a link in its inertial frame; what cannot be read is a box around it.

    Bullet tells neither the parts of several meshes on one link nor concave meshes.
    """
    R, p = inertial_pose(body, link, client)
    lower, upper = map(np.array, pybullet.getAABB(body, link, client))
    margin = float(pybullet.getDynamicsInfo(body, link, client)[11])
    told = told_shapes(body, link, client)
    if told is None:
        return LinkShapes((_around(R, p, lower, upper),), 0.0, margin)
    if not told and np.all(upper - lower <= 4.0 * max(margin, 0.0) + 1e-9):  # nothing
        return LinkShapes((), 0.0, margin)
    known = _known(told, body, link, margin, client)
    if known is None or not _fits(known, R, p, lower, upper):
        return LinkShapes((_around(R, p, lower, upper),), 0.0, margin)
    return LinkShapes(known, TOLD * reach_of(known), margin)


def told_shapes(body: int, link: int, client: int) -> tuple[tuple[Any, ...], ...] | None:
    """``getCollisionShapeData``; None where it would end the process.

    It does so where MJCF has a capsule ``fromto`` one point to another, of which Bullet makes
    spheres. The capsule is among the visual shapes; its radius is not the margin then.
    """
    margin = float(pybullet.getDynamicsInfo(body, link, client)[11])
    if margin in (0.0, UNSET_MARGIN):
        capsules = [
            shape
            for shape in pybullet.getVisualShapeData(body, physicsClientId=client)
            if shape[1] == link and shape[2] == pybullet.GEOM_CAPSULE
        ]
        if capsules and not (len(capsules) == 1 and _is_capsule(capsules[0], margin, client)):
            return None
    told: tuple[tuple[Any, ...], ...] = pybullet.getCollisionShapeData(body, link, client)
    return told


def _is_capsule(told: tuple[Any, ...], margin: float, client: int) -> bool:
    """Whether a visual capsule is the shape of its link as it is: it fills the box around it.

    Bullet makes that of one along the capsule; spheres have their margin besides.
    """
    (body, link), (length, radius), place = told[:2], told[3][:2], told[5:7]
    if abs(radius - margin) > 1e-6:
        return False
    lower, upper = pybullet.getAABB(body, link, client)
    R, _ = inertial_pose(body, link, client)
    half = np.abs(R @ matrix(place[1])) @ [radius, radius, radius + 0.5 * length]
    return bool(np.abs(0.5 * np.subtract(upper, lower) - half).max() < 0.5 * radius)


def boundless() -> LinkShapes:
    """Something that may be anywhere: a body that is not rigid."""
    return LinkShapes((unknown((BOUNDLESS, BOUNDLESS, BOUNDLESS)),), 0.0, 0.0)


def inertial_pose(body: int, link: int, client: int) -> tuple[Array, Array]:
    """Axes (3, 3) and origin (3,) of a link's inertial frame in the world."""
    position, quat = inertial_place(body, link, client)
    return matrix(quat), np.array(position)


def _known(
    told: tuple[tuple[Any, ...], ...], body: int, link: int, margin: float, client: int
) -> tuple[ShapeSpec, ...] | None:
    """Shapes of ``getCollisionShapeData``; None if one of them is something else."""
    found: list[ShapeSpec] = []
    meshes = tuple(shape for shape in told if shape[2] == pybullet.GEOM_MESH)
    for shape in told:
        kind, size, position, quat = shape[2], shape[3], shape[5], shape[6]
        R, p = matrix(quat), np.array(position)
        if kind == pybullet.GEOM_SPHERE:
            spec = sphere(size[0])
        elif kind == pybullet.GEOM_BOX:
            spec = box(size[0] / 2, size[1] / 2, size[2] / 2)
        elif kind == pybullet.GEOM_CAPSULE:
            spec = capsule(size[1], size[0] / 2)
        elif kind == pybullet.GEOM_CYLINDER:
            spec = cylinder(size[1], size[0] / 2)
        elif kind == pybullet.GEOM_PLANE:
            R, spec = frame_with_z(np.array(size)), plane()
        else:
            continue
        found.append(spec.at(R, p))
    if meshes:
        hulls = _hulls(meshes, body, link, max(margin, 0.0), client)
        if hulls is None:
            return None
        found += hulls
    known = len(found) >= len(told) > 0
    return tuple(found) if known else None


def _hulls(
    told: tuple[tuple[Any, ...], ...], body: int, link: int, margin: float, client: int
) -> list[ShapeSpec] | None:
    """Convex hulls of a link's meshes, and cylinders; None if Bullet does not tell enough of them.

    It tells the corners of all of them in one list, in the link's inertial frame, and those of
    concave meshes not at all.
    """
    number, corners = pybullet.getMeshData(body, link, physicsClientId=client)
    if number <= 0 or len(corners) != number:
        return None
    hulls: list[ShapeSpec] = []
    try:
        for shape, part in zip(told, _by_shape(told, np.array(corners)), strict=True):
            found = _cylinder(part, shape)
            if found is not None:
                hulls.append(found)
            elif _is_convex(part.tobytes()):
                hulls.append(hull(part, margin))
            else:
                hulls += _objects(shape, part, margin)
        return hulls
    except ModelError:
        return None


def _by_shape(told: tuple[tuple[Any, ...], ...], points: Array) -> list[Array]:
    """Corners (n, 3) of each mesh of a link, of which Bullet tells all in one list."""
    if len(told) == 1:
        return [points]
    numbers = [
        _number_of_corners(path, path.stat().st_mtime_ns, shape[3]) if path.is_file() else 2 * SIDES
        for shape in told
        for path in [Path(shape[4].decode(errors="replace"))]
    ]
    if sum(numbers) != len(points):
        raise ModelError("Bullet tells other corners of the meshes together than of each of them")
    return np.split(points, np.cumsum(numbers)[:-1])


@lru_cache(MOST_HULLS)
def _number_of_corners(path: Path, _changed: int, scale: tuple[float, float, float]) -> int:
    """Corners of the hulls that Bullet makes of a file, counted in a world of their own."""
    client = connect_direct()
    try:
        shape = pybullet.createCollisionShape(
            pybullet.GEOM_MESH, fileName=str(path), meshScale=scale, physicsClientId=client
        )
        body = pybullet.createMultiBody(1.0, shape, physicsClientId=client)
        return int(pybullet.getMeshData(body, -1, physicsClientId=client)[0])
    except pybullet.error as error:
        raise ModelError(f"Bullet does not load '{path}': {error}") from None
    finally:
        disconnect(client)


def _cylinder(corners: Array, told: tuple[Any, ...]) -> ShapeSpec | None:
    """The cylinder of a URDF that Bullet tells as a prism; None if that is no such prism.

    On its corners, which touch the ground one after another, no wheel rolls evenly.
    """
    if len(corners) != 2 * SIDES:
        return None
    R, p = matrix(told[6]), np.array(told[5])
    x, y, z = ((corners - p) @ R).T
    radii, radius, half = np.hypot(x, y), float(np.hypot(x, y).max()), float(np.abs(z).max())
    sides = np.arctan2(y, x) * SIDES / (2.0 * math.pi)
    places = np.unique(np.column_stack([np.rint(sides) % SIDES, z > 0.0]), axis=0)
    near = ROUGH * radius
    exact = (
        radii.min() >= radius - near
        and np.abs(np.abs(z) - half).max() <= near
        and np.abs(sides - np.rint(sides)).max() <= ROUGH * SIDES
        and len(places) == 2 * SIDES
    )
    return cylinder(radius, half).at(R, p) if exact else None


@lru_cache(MOST_HULLS)
def _is_convex(content: bytes) -> bool:
    """Whether all points (n, 3), as they lie in memory, are on the surface of their hull."""
    points = np.frombuffer(content).reshape(-1, 3)
    sides = sides_of(points)
    if len(sides.corners) == len(points):
        return True
    corners = {tuple(corner) for corner in sides.corners.tolist()}
    others = [point for point in points.tolist() if tuple(point) not in corners]
    if not others:
        return True
    a, b, c = sides.corners[sides.triangles.T]
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    depth = (np.einsum("ni,ni->n", normals, a) - np.array(others) @ normals.T).min(axis=1)
    return bool(depth.max() <= EXTREME * np.ptp(points, axis=0).max())


def _objects(told: tuple[Any, ...], points: Array, margin: float) -> list[ShapeSpec]:
    """Hulls of the objects in an OBJ file, of each of which Bullet makes one.

    They have Bullet's corners, which it rounds, where it has as many.
    """
    from scipy.spatial import cKDTree

    path = Path(told[4].decode(errors="replace"))
    if path.suffix.lower() != ".obj" or not path.is_file() or path.stat().st_size > LARGEST_FILE:
        raise ModelError(f"'{path}' is no OBJ file that can be read")
    R = matrix(told[6])
    parts = [told[5] + (x * told[3]) @ R.T for x in read_objects(path.read_text(errors="replace"))]
    hulls = [hull(part, margin) for part in parts]
    sides = [spec.hull for spec in hulls if spec.hull is not None]
    corners = np.vstack([np.zeros((0, 3)), *(each.corners for each in sides)])
    near = ROUGH * np.ptp(points, axis=0).max()
    both = (points, corners), (corners, points)
    if not sides or any(np.max(cKDTree(x).query(y)[0]) > near for x, y in both):
        raise ModelError(f"Bullet has other corners than the objects in '{path}'")
    if len(points) != len(corners):
        return hulls
    ends = np.cumsum([len(each.corners) for each in sides])[:-1]
    return [hull(part, margin) for part in np.split(points, ends)]


def read_objects(text: str) -> list[Array]:
    """Corners (n, 3) of each object or group of an OBJ file that has faces."""
    vertices: list[list[float]] = []
    groups: list[dict[int, None]] = [{}]
    try:
        for line in text.splitlines():
            words = line.split()
            if len(words) > 3 and words[0] == "v":
                vertices.append([float(word) for word in words[1:4]])
            elif words and words[0] in ("o", "g") and groups[-1]:
                groups.append({})
            elif words and words[0] == "f":
                for word in words[1:]:
                    number = int(word.split("/")[0])
                    groups[-1][number - 1 if number > 0 else len(vertices) + number] = None
        found = np.array(vertices)
        return [found[list(group)] for group in groups if group]
    except (ValueError, IndexError):
        return []


def _boxes(shapes: tuple[ShapeSpec, ...]) -> tuple[Array, Array]:
    """Axis-aligned bounds (n, 3) of shapes in the frame they are in."""
    lower, upper = np.zeros((len(shapes), 3)), np.zeros((len(shapes), 3))
    for k, spec in enumerate(shapes):
        if spec.hull is None:
            half = np.abs(spec.R) @ spec.size
            lower[k], upper[k] = spec.p - half, spec.p + half
        else:
            corners = spec.p + spec.hull.corners @ spec.R.T
            lower[k], upper[k] = corners.min(axis=0), corners.max(axis=0)
        lower[k] -= spec.radius
        upper[k] += spec.radius
    return lower, upper


def reach_of(shapes: tuple[ShapeSpec, ...]) -> float:
    """How far a bounding sphere reaches from the frame's origin [m], as Bullet measures sizes."""
    if any(spec.kind == PLANE for spec in shapes):
        return math.inf
    lower, upper = _boxes(shapes)
    low, high = lower.min(axis=0), upper.max(axis=0)
    return float(np.linalg.norm(low + high) / 2 + np.linalg.norm(high - low) / 2)


def _fits(shapes: tuple[ShapeSpec, ...], R: Array, p: Array, lower: Array, upper: Array) -> bool:
    """Whether shapes lie in Bullet's AABB of the link, as they do unless they were read wrongly."""
    placed = tuple(spec.at(R, p) for spec in shapes)
    low, high = _boxes(placed)
    slack = (1e-4 + BULGE) * float(np.ptp([lower, upper], axis=0).max()) + 1e-6
    return bool(
        np.all(low.min(axis=0) >= lower - slack) and np.all(high.max(axis=0) <= upper + slack)
    )


def _around(R: Array, p: Array, lower: Array, upper: Array) -> ShapeSpec:
    """A box about the frame's origin that holds the AABB, however the link turns."""
    corners = np.array([lower, upper])
    farthest = np.abs(corners - p).max(axis=0)
    half = float(np.linalg.norm(farthest))
    return unknown((half, half, half))
