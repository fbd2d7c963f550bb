"""Inertias from shapes, for links whose own Bullet throws away or invents.

Bullet makes a tensor zero that no body can have, and gives a link without ``<inertial>`` 1 kg. Here
both are computed from the link's collision shapes, or its visual ones where it has none, as
homogeneous bodies; trimesh does the integrals.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.bullet.xml_file import drop
from bulletbridge.console import unwritable
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import rpy_matrix
from bulletbridge.mechanism.mesh_files import read_mesh
from bulletbridge.models.formats.robot import Inertial, joined
from bulletbridge.models.mesh_places import find_named
from bulletbridge.models.urdf_file import ENTRIES, read_urdf
from bulletbridge.numerics.records import Array

ORIGIN = "0 0 0"
SIZES = ("size", "radius", "length")
"""Attributes of shapes that must be above zero."""
FLAT = 1e-9
"""Volume over the cube of the longest side below which a shape counts as flat."""


@dataclass(frozen=True)
class Change:
    """What was done to one link, or why nothing could be done."""

    link: str
    reason: str
    mass: float = 0.0
    moments: tuple[float, ...] = ()  # principal [kg m²]

    def __str__(self) -> str:
        """One line."""
        if not self.moments:
            return f"{self.link}: {self.reason}"
        moments = " ".join(f"{value:.3g}" for value in self.moments)
        return (
            f"{self.link}: {self.reason}; now {self.mass:.4g} kg, principal moments {moments} kg m²"
        )


def repair(
    path: Path, output: Path, density: float = 1000.0, everything: bool = False
) -> list[Change]:
    """Write a copy of a URDF in which every link with mass has an inertia that a body can have.

    Args:
        path: The URDF.
        output: Where the copy goes; meshes named relative to the file want the same folder.
        density: Of links without a mass of their own [kg/m³].
        everything: Compute all links, not only those that need it.

    Raises:
        ModelError: A file cannot be read, or a mesh is missing or has no volume.
    """
    if not (np.isfinite(density) and density > 0.0):
        raise ModelError(f"density is {density} kg/m³; give a positive one")
    tree = read_urdf(path)
    changes: list[Change] = []
    for link in tree.getroot().iter("link"):
        reason = "recomputed" if everything else why(link)
        if reason:
            changes.append(replace_inertial(link, path, density, reason))
    try:
        tree.write(output, encoding="utf-8", xml_declaration=True)
    except (OSError, ValueError) as error:
        raise unwritable(output, error) from None
    return changes


def why(link: Xml.Element) -> str:
    """What is wrong with a link's inertia; empty when nothing is."""
    inertial = link.find("inertial")
    if inertial is None:
        return "had no <inertial>" if shapes(link) else ""
    if mass_of(link) <= 0.0:
        return ""
    tensor = inertial.find("inertia")
    if tensor is None:
        return "had no <inertia>"
    J = np.zeros((3, 3))
    for name, i, k in ENTRIES:
        J[i, k] = J[k, i] = float(tensor.get(name, "0"))
    smallest, middle, largest = np.linalg.eigvalsh(J)
    if smallest <= 0.0 or largest > smallest + middle:
        return f"principal moments {smallest:.3g} {middle:.3g} {largest:.3g} are those of no body"
    return ""


def replace_inertial(link: Xml.Element, path: Path, density: float, reason: str) -> Change:
    """Give a link the inertia of its shapes; its mass stays if it has one."""
    name = link.get("name", "")
    bodies = [solid(shape, path, name) for shape in shapes(link)]
    volume = sum(float(body.volume) for body in bodies)
    if not bodies:
        return Change(name, f"{reason}, and it has no shape to compute one from: write one")
    mass = mass_of(link) or density * volume
    for body in bodies:
        body.density = mass / volume
    whole = joined(
        Inertial(float(body.mass), np.asarray(body.center_mass), np.asarray(body.moment_inertia))
        for body in bodies
    )
    com, J = whole.com, whole.J
    if not np.all(np.isfinite(J)):
        raise ModelError(f"link '{name}' is too large to have an inertia; correct it in {path}")
    drop(link, "inertial")
    inertial = Xml.Element("inertial")
    link.insert(0, inertial)
    Xml.SubElement(inertial, "origin", xyz=numbers(com), rpy=ORIGIN)
    Xml.SubElement(inertial, "mass", value=f"{mass:.9g}")
    Xml.SubElement(inertial, "inertia", {n: f"{J[i, k]:.9g}" for n, i, k in ENTRIES})
    Xml.indent(inertial, level=1)
    return Change(name, reason, mass, tuple(np.linalg.eigvalsh(J).tolist()))


def mass_of(link: Xml.Element) -> float:
    """Mass in the file [kg], 0 when there is none."""
    mass = link.find("inertial/mass")
    return 0.0 if mass is None else float(mass.get("value", "0"))


def shapes(link: Xml.Element) -> list[Xml.Element]:
    """Collision elements with a geometry, or visual ones where there are none."""
    for kind in ("collision", "visual"):
        found = [shape for shape in link.findall(kind) if shape.find("geometry/*") is not None]
        if found:
            return found
    return []


def solid(shape: Xml.Element, path: Path, link: str) -> Any:
    """A trimesh of one shape in the link's frame; the convex hull of a mesh that is not closed."""
    import trimesh

    geometry = shape.find("geometry/*")
    assert geometry is not None
    sizes = [x for name in SIZES for x in triple(geometry.get(name, "1"))]
    if not min(sizes) > 0.0:
        raise ModelError(f"link '{link}' has a {geometry.tag} without volume; correct it in {path}")
    if geometry.tag == "box":
        body: Any = trimesh.creation.box(triple(geometry.get("size")))
    elif geometry.tag == "sphere":
        body = trimesh.primitives.Sphere(
            float(geometry.get("radius", "0")), subdivisions=5
        ).to_mesh()
    elif geometry.tag in ("cylinder", "capsule"):
        radius, length = float(geometry.get("radius", "0")), float(geometry.get("length", "0"))
        build: Any = getattr(trimesh.creation, geometry.tag)
        body = build(radius=radius, height=length)
        body.apply_translation([0, 0, -body.bounds.mean(axis=0)[2]])
    elif geometry.tag == "mesh":
        body = mesh(geometry, path, link)
    else:
        raise ModelError(f"link '{link}' has the shape '{geometry.tag}', which is not a URDF's")
    place = np.eye(4)
    origin = shape.find("origin")
    if origin is not None:
        place[:3, 3] = triple(origin.get("xyz", ORIGIN))
        place[:3, :3] = rpy_matrix(triple(origin.get("rpy", ORIGIN)))
    body.apply_transform(place)
    if not body.volume > FLAT * float(np.max(body.extents)) ** 3:
        raise ModelError(f"link '{link}' has a {geometry.tag} without volume; correct it in {path}")
    return body


def mesh(geometry: Xml.Element, path: Path, link: str) -> Any:
    """The mesh that a geometry names, scaled and closed."""
    from scipy.spatial import QhullError

    name = geometry.get("filename", "")
    found = find_named(name, path)
    if found is None:
        raise ModelError(f"link '{link}' names the mesh {name}, which is not near {path}")
    try:
        body = read_mesh(found)
    except ModelError as error:
        raise ModelError(f"link '{link}': {error}") from None
    body.apply_scale(triple(geometry.get("scale", "1 1 1")))
    try:
        return body if body.is_volume else body.convex_hull
    except QhullError:
        raise ModelError(
            f"link '{link}': the mesh {found} has no volume; correct it, or its scale in {path}"
        ) from None


def triple(text: str | None) -> Array:
    """Three numbers of an attribute."""
    return np.array([float(x) for x in (text or ORIGIN).split()])


def numbers(values: Array) -> str:
    """An attribute of numbers."""
    return " ".join(f"{value:.9g}" for value in values)
