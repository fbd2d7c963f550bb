"""Visual and collision shapes of SDF links, and inertias that are left to be computed from them."""

from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.mechanism.mesh_files import read_mesh
from bulletbridge.models.bundled import unit_sphere
from bulletbridge.models.formats import solids
from bulletbridge.models.formats.robot import Inertial, Link, Pose, Shape
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
from bulletbridge.models.mesh_places import why_no_mesh

WEIGHTLESS = ("plane", "heightmap", "image", "polyline", "empty")
"""Shapes without a volume that Gazebo would know."""
NOT_THERE = "it is not there: put it there"
PLANE, THICK, THIN = 100.0, 1.0, 0.01
"""Width of the box that a plane becomes [m], its thickness, and that of one which is only seen."""


def read_shapes(
    part: Xml.Element, link: Link, scope: Scope, top: Path, lost: dict[str, list[str]]
) -> None:
    """Give a link its shapes; names of links whose shapes cannot be had, by reason, go to ``lost``.

    Planes are without end in what stands still, and boxes elsewhere.

    Raises:
        ModelError: A number is none.
    """
    for tag, shapes in (("visual", link.visuals), ("collision", link.collisions)):
        for element in part.findall(tag):
            found = _shape(element, scope, top, tag == "collision")
            if isinstance(found, str):
                lost.setdefault(found, []).append(link.name)
                continue
            place = _place(element, part, scope) @ found.place
            shapes.append(Shape(found.kind, found.size, place, found.mesh, _colour(element)))
        rough = [number_of(each, "surface/friction/ode/mu", 1.0) for each in part.findall(tag)]
        if part.find(f"{tag}/surface/friction/ode/mu") is not None:
            link.friction = max(rough) ** 0.5  # Bullet multiplies those of both links


def _place(element: Xml.Element, part: Xml.Element, scope: Scope) -> Pose:
    """Where a shape of a link is, in it."""
    at, frame = pose_in(element), relative_to(element)
    if not frame:
        return at
    return scope.pose(part.get("name", "")).inverse @ scope.pose(frame) @ at


def inertial_of_shapes(part: Xml.Element, full: str, scope: Scope, top: Path) -> Inertial:
    """Mass and inertia of a link whose file says ``auto``: those of its collision shapes.

    Each weighs by its ``<density>``, the one of ``<inertial>``, or water's; all together what
    ``<mass>`` says, if it says something.

    Raises:
        ModelError: It has none with a volume, or a mesh of it cannot be had.
    """
    inertial = part.find("inertial")
    assert inertial is not None
    usual = number_of(inertial, "density", solids.DENSITY)
    weighed = [
        (number_of(element, "density", usual) * solid.volume, solid)
        for element in part.findall("collision")
        if (solid := _solid(element, part, full, scope, top)) is not None
    ]
    found = solids.together(weighed)
    if found is None or not np.isfinite(found.J).all():
        raise ModelError(
            f"link '{full}' leaves its inertia to be computed from its shapes (auto), and has no"
            " <collision> with a volume and a density; add one, or write mass and inertia out"
        )
    mass = number_of(inertial, "mass", found.mass)
    if not (np.isfinite(mass) and mass > 0.0):
        raise ModelError(f"link '{full}' has mass {mass}; give a positive one, or none")
    return Inertial(mass, found.com, found.J * (mass / found.mass))


def _solid(
    element: Xml.Element, part: Xml.Element, full: str, scope: Scope, top: Path
) -> solids.Solid | None:
    """What a collision shape encloses, in its link; None where nothing."""
    geometry = element.find("geometry/*")
    if geometry is None or geometry.tag in WEIGHTLESS:
        return None
    kind, found = geometry.tag, None
    if kind == "mesh":
        uri = text_of(geometry, "uri")
        file = find_file(uri, scope.place, top) if uri else None
        if file is None or geometry.find("submesh") is not None:
            why = "only a part of it is meant: name a file of that part" if file else NOT_THERE
            raise ModelError(
                f"link '{full}' leaves its inertia to be computed from the mesh '{uri}', and {why},"
                " or write mass and inertia out"
            )
        facets = read_mesh(file)
        facets.apply_scale(numbers_in(text_of(geometry, "scale", "1 1 1"), 3, "<scale> of a mesh"))
        found = solids.of_mesh(facets)
    elif kind in solids.SOLIDS:
        found = solids.SOLIDS[kind](*_sizes(geometry))
    return found.placed(_place(element, part, scope)) if found else None


def _sizes(geometry: Xml.Element) -> tuple[float, ...]:
    """Lengths of a shape with a closed form, as SDF has them where they are not given [m]."""
    for kind, tag in (("box", "size"), ("ellipsoid", "radii")):
        if geometry.tag == kind:
            what = f"<{tag}> of {'an' if kind == 'ellipsoid' else 'a'} {kind}"
            return tuple(numbers_in(text_of(geometry, tag, "1 1 1"), 3, what).tolist())
    if geometry.tag == "sphere":
        return (number_of(geometry, "radius", 1.0),)
    return number_of(geometry, "radius", 0.5), number_of(geometry, "length", 1.0)


def _plane(element: Xml.Element, endless: bool, touched: bool) -> Shape:
    """A plane, or the box that stands for it."""
    geometry = element.find("geometry/plane")
    normal = numbers_in(text_of(geometry, "normal", "0 0 1"), 3, "<normal> of a plane")
    R = frame_with_z(normal)
    if endless:
        return Shape("plane", (), Pose(R))
    size = numbers_in(text_of(geometry, "size", f"{PLANE} {PLANE}"), 2, "<size> of a plane")
    thick = THICK if touched else THIN
    return Shape("box", (*size.tolist(), thick), Pose(R, -0.5 * thick * R[:, 2]))


def _shape(element: Xml.Element, scope: Scope, top: Path, touched: bool) -> Shape | str:
    """A shape in its own frame, seen or touched, or why there is none."""
    geometry = element.find("geometry/*")
    if geometry is None or geometry.tag == "empty":
        return "shapes without geometry"
    kind = geometry.tag
    if kind in ("box", "sphere", "cylinder", "capsule"):
        return Shape(kind, _sizes(geometry), Pose())
    if kind == "ellipsoid":
        return Shape("mesh", _sizes(geometry), Pose(), str(unit_sphere()))
    if kind == "plane":
        return _plane(element, scope.static and touched, touched)
    if kind == "mesh":
        uri = text_of(geometry, "uri")
        file = find_file(uri, scope.place, top) if uri else None
        if file is None or not file.is_file():
            return "meshes whose files are not there"
        if file.suffix.lower() not in BULLETS_MESHES or geometry.find("submesh") is not None:
            return "meshes that Bullet cannot read"
        if why := why_no_mesh(file):
            return f"meshes that are {why}"
        scale = numbers_in(text_of(geometry, "scale", "1 1 1"), 3, "<scale> of a mesh")
        return Shape("mesh", tuple(scale.tolist()), Pose(), str(file))
    return f"shapes that URDF has not ({kind})"


def _colour(element: Xml.Element) -> tuple[float, ...]:
    text = text_of(element, "material/diffuse") or text_of(element, "material/ambient")
    values = [float(x) for x in text.split()] if text else []
    return tuple((*values, 1.0)[:4]) if len(values) in (3, 4) else ()
