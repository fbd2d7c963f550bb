"""Solids that links are made of: rounded plates, bars, turned parts.

Every shape is a stack of rings with equal numbers of points, closed by two caps, so that it is
watertight by construction. The parts of one link touch but do not overlap: their mass properties
may be added. Vertices are rounded to micrometres, which makes the files repeat byte for byte.
"""

from collections.abc import Sequence

import numpy as np
import trimesh
from numpy.typing import NDArray

Array = NDArray[np.float64]
Circle = tuple[float, float, float]
"""Centre u, v and radius [m]."""

POINTS = 40
"""On a full turn of any outline."""

ALONG_Z = np.eye(3)
ALONG_Y = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
"""Turns (u, v, w) into (x, z, -y): outlines in the x-z plane, stacked towards -y."""
ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
"""Turns (u, v, w) into (y, z, x): outlines in the y-z plane, stacked along x."""


def loft(rings: Sequence[Array]) -> trimesh.Trimesh:
    """Solid through rings of points (n, 3), counter-clockwise seen from the last one."""
    n = len(rings[0])
    centres = [np.mean(rings[0], axis=0), np.mean(rings[-1], axis=0)]
    vertices = np.vstack([*rings, *centres])
    faces: list[tuple[int, int, int]] = []
    for k in range(len(rings) - 1):
        for i in range(n):
            a, b = k * n + i, k * n + (i + 1) % n
            faces += [(a, b, b + n), (a, b + n, a + n)]
    bottom, top, last = len(vertices) - 2, len(vertices) - 1, (len(rings) - 1) * n
    for i in range(n):
        j = (i + 1) % n
        faces += [(bottom, j, i), (top, last + i, last + j)]
    return trimesh.Trimesh(np.round(vertices, 6) + 0.0, np.array(faces), process=False)


def outline(circles: Sequence[Circle], inset: float = 0.0) -> Array:
    """Convex hull of circles as a ring (n, 2), drawn in by ``inset`` [m]."""
    angles = 2 * np.pi * (np.arange(POINTS) + 0.5) / POINTS
    normals = np.column_stack([np.cos(angles), np.sin(angles)])
    centres = np.array([c[:2] for c in circles])
    radii = np.array([c[2] for c in circles]) - inset
    farthest = np.argmax(normals @ centres.T + radii, axis=1)
    return centres[farthest] + radii[farthest, None] * normals


def plate(
    circles: Sequence[Circle],
    low: float,
    high: float,
    along: Array = ALONG_Z,
    bevel: float = 0.0,
) -> trimesh.Trimesh:
    """Convex hull of circles, from ``low`` to ``high`` along the normal, with bevelled edges."""
    levels = [(low, bevel), (low + bevel, 0.0), (high - bevel, 0.0), (high, bevel)]
    if bevel == 0.0:
        levels = [levels[0], levels[-1]]
    rings = []
    for height, inset in levels:
        ring = outline(circles, inset)
        rings.append(np.column_stack([ring, np.full(POINTS, height)]) @ along.T)
    return loft(rings)


def sheets(circles: Sequence[Circle], low: float, high: float) -> list[trimesh.Trimesh]:
    """Plates on both sides of the plane of motion, between two distances from it [m]."""
    return [plate(circles, low, high, ALONG_Y), plate(circles, -high, -low, ALONG_Y)]


def block(centre: Sequence[float], size: Sequence[float]) -> trimesh.Trimesh:
    """Box whose faces are plane: a tube of four corners."""
    x, y, z = (0.5 * edge for edge in size)
    corners = [(-x, -z), (x, -z), (x, z), (-x, z)]
    solid = plate([(u, w, 0.0) for u, w in corners], -y, y, ALONG_Y)
    return solid.apply_translation(centre)


def turned(
    profile: Sequence[tuple[float, float]],
    start: Sequence[float] = (0.0, 0.0, 0.0),
    direction: Sequence[float] = (0.0, 0.0, 1.0),
) -> trimesh.Trimesh:
    """Lathe part: profile of (height, radius) [m] along ``direction`` from the point ``start``."""
    w = np.asarray(direction, float) / np.linalg.norm(direction)
    helper = np.eye(3)[int(np.argmin(np.abs(w)))]
    u = np.cross(helper, w)
    u /= np.linalg.norm(u)
    frame = np.column_stack([u, np.cross(w, u), w])
    rings = []
    for height, radius in profile:
        ring = outline([(0.0, 0.0, radius)])
        rings.append(np.asarray(start) + np.column_stack([ring, np.full(POINTS, height)]) @ frame.T)
    return loft(rings)


def rod(
    start: Sequence[float], end: Sequence[float], radius: float, bevel: float | None = None
) -> trimesh.Trimesh:
    """Cylinder between two points [m] with bevelled rims."""
    direction = np.subtract(end, start)
    length, b = float(np.linalg.norm(direction)), radius / 6 if bevel is None else bevel
    profile = [(0.0, radius - b), (b, radius), (length - b, radius), (length, radius - b)]
    return turned(profile, start, direction)


def ball(centre: Sequence[float], radius: float, cut: float = 0.0) -> trimesh.Trimesh:
    """Sphere about a point [m], its poles flattened by at least ``cut`` [m] along z."""
    polar = np.linspace(0.06, np.pi - 0.06, 13)
    profile = [(-radius * np.cos(a), radius * np.sin(a)) for a in polar]
    if cut > 0.0:
        limit = radius - cut
        profile = [(float(np.clip(h, -limit, limit)), r) for h, r in profile]
    return turned(profile, centre)


def stalk(start: float, end: float, radius: float, knob: float) -> list[tuple[float, float]]:
    """Lathe profile of a rod with a ball about ``end``."""
    foot = np.sqrt(knob**2 - radius**2)
    arc = np.linspace(np.arccos(-foot / knob), 0.12, 9)
    knobbed = [(float(end + knob * np.cos(a)), float(knob * np.sin(a))) for a in arc]
    return [(start, 0.7 * radius), (start + 0.3 * radius, radius), *knobbed]


def joined(parts: Sequence[trimesh.Trimesh]) -> trimesh.Trimesh:
    """Parts that do not overlap, as one mesh."""
    vertices = np.vstack([part.vertices for part in parts])
    shift = np.cumsum([0, *(len(part.vertices) for part in parts)])
    faces = np.vstack([part.faces + s for part, s in zip(parts, shift, strict=False)])
    return trimesh.Trimesh(vertices, faces, process=False)


def to_obj(mesh: trimesh.Trimesh) -> str:
    """Wavefront text; coordinates are exact to the micrometres that the vertices have."""
    vertices = [f"v {x:.6g} {y:.6g} {z:.6g}" for x, y, z in mesh.vertices]
    faces = [f"f {a} {b} {c}" for a, b, c in mesh.faces + 1]
    return "\n".join([*vertices, *faces, ""])
