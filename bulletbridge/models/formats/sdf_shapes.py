"""Visual and collision shapes of SDF links."""

from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.models.formats.robot import Link, Pose, Shape
from bulletbridge.models.formats.sdf_frames import (
    Scope,
    find_file,
    number_of,
    numbers_in,
    pose_in,
    relative_to,
    text_of,
)
from bulletbridge.models.formats.urdf_text import BULLETS_MESHES

PLANE, THICK = 100.0, 1.0
"""Width and thickness of the box that a plane becomes [m]."""


def read_shapes(
    part: Xml.Element, link: Link, scope: Scope, top: Path, lost: dict[str, list[str]]
) -> None:
    """Give a link its shapes; names of links whose shapes cannot be had, by reason, go to ``lost``.

    Raises:
        ModelError: A number is none.
    """
    for tag, shapes in (("visual", link.visuals), ("collision", link.collisions)):
        for element in part.findall(tag):
            found = _shape(element, scope, top)
            if isinstance(found, str):
                lost.setdefault(found, []).append(link.name)
                continue
            at = pose_in(element)
            frame = relative_to(element)
            if frame:
                at = scope.pose(part.get("name", "")).inverse @ scope.pose(frame) @ at
            place = at @ found.place
            shapes.append(Shape(found.kind, found.size, place, found.mesh, _colour(element)))


def _shape(element: Xml.Element, scope: Scope, top: Path) -> Shape | str:
    """A shape in its own frame, or why there is none."""
    geometry = element.find("geometry/*")
    if geometry is None or geometry.tag == "empty":
        return "shapes without geometry"
    kind = geometry.tag
    if kind == "box":
        size = numbers_in(text_of(geometry, "size", "1 1 1"), 3, "<size> of a box")
        return Shape("box", tuple(size.tolist()), Pose())
    if kind == "sphere":
        return Shape("sphere", (number_of(geometry, "radius", 1.0),), Pose())
    if kind in ("cylinder", "capsule"):
        sizes = number_of(geometry, "radius", 0.5), number_of(geometry, "length", 1.0)
        return Shape(kind, sizes, Pose())
    if kind == "plane":
        below = Pose(np.eye(3), np.array([0.0, 0.0, -0.5 * THICK]))
        return Shape("box", (PLANE, PLANE, THICK), below)
    if kind == "mesh":
        uri = text_of(geometry, "uri")
        file = find_file(uri, scope.place, top) if uri else None
        if file is None or not file.is_file():
            return "meshes whose files are not there"
        if file.suffix.lower() not in BULLETS_MESHES or geometry.find("submesh") is not None:
            return "meshes that Bullet cannot read"
        scale = numbers_in(text_of(geometry, "scale", "1 1 1"), 3, "<scale> of a mesh")
        return Shape("mesh", tuple(scale.tolist()), Pose(), str(file))
    return f"shapes that URDF has not ({kind})"


def _colour(element: Xml.Element) -> tuple[float, ...]:
    text = text_of(element, "material/diffuse") or text_of(element, "material/ambient")
    values = [float(x) for x in text.split()] if text else []
    return tuple((*values, 1.0)[:4]) if len(values) in (3, 4) else ()
