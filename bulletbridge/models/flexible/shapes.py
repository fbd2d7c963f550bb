"""Shapes of a link cut into pieces along it, for the segments that replace it."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.mechanism.frames import matrix_rpy, rpy_matrix
from bulletbridge.models.formats.urdf_text import exact
from bulletbridge.models.inertia import ORIGIN, solid, triple
from bulletbridge.numerics.records import Array

PARALLEL = 1.0 - 1e-9
THIN = 1e-9  # [m] pieces of shapes shorter than this are left out


@dataclass(frozen=True)
class Cut:
    """Where a link is cut: R (3, 3) with x along it, in its frame; bounds (pieces + 1,) [m]."""

    R: Array
    bounds: Array

    def intervals(self, low: float, high: float) -> list[tuple[int, float, float]]:
        """Pieces of an interval along the link: number, ends; what juts out stays at the ends."""
        inner = np.concatenate([[-np.inf], self.bounds[1:-1], [np.inf]])
        found: list[tuple[int, float, float]] = []
        for k in range(len(inner) - 1):
            a, b = max(low, float(inner[k])), min(high, float(inner[k + 1]))
            if b - a > THIN:
                found.append((k, a, b))
        return found

    def at(self, x: float) -> int:
        """The piece at a place along the link."""
        return int(np.searchsorted(self.bounds[1:-1], x))


def cut_shape(
    shape: Xml.Element, cut: Cut, path: Path, link: str
) -> tuple[list[tuple[int, Xml.Element]], str]:
    """Pieces of a visual or collision element, each with its segment; what to tell the user.

    Origins stay in the frame of the link. Boxes and cylinders along the link are cut; a sphere, and
    what has no length along the link to cut, goes whole to the segment at its centre; of anything
    else the segments get boxes.

    Raises:
        ModelError: A mesh cannot be read.
    """
    p, R = place_of(shape)
    geometry = shape.find("geometry/*")
    if geometry is None:
        return [], ""
    along = np.abs(R.T @ cut.R[:, 0])
    axis = int(np.argmax(along))
    straight = along[axis] > PARALLEL
    x = float(cut.R[:, 0] @ p)
    if geometry.tag == "box" and straight:
        size = triple(geometry.get("size"))

        def shorter(length: float) -> dict[str, str]:
            kept = size.copy()
            kept[axis] = length
            return {"size": exact(kept)}

        return _pieces(shape, cut, (x, p), float(size[axis]), shorter), ""
    if geometry.tag == "cylinder" and straight and axis == 2:
        length = float(geometry.get("length", "0"))
        return _pieces(shape, cut, (x, p), length, lambda part: {"length": repr(part)}), ""
    if geometry.tag == "sphere":
        return [(cut.at(x), deepcopy(shape))], ""
    return _boxes(shape, cut, path, link)


def place_of(element: Xml.Element) -> tuple[Array, Array]:
    """Position (3,) [m] and rotation (3, 3) of an element's <origin>."""
    origin = element.find("origin")
    if origin is None:
        return np.zeros(3), np.eye(3)
    return triple(origin.get("xyz")), rpy_matrix(triple(origin.get("rpy", ORIGIN)))


def put_place(element: Xml.Element, p: Array, R: Array | None = None) -> None:
    """Set the position, and the rotation if given, of an element's <origin>."""
    origin = element.find("origin")
    if origin is None:
        origin = Xml.Element("origin", rpy=ORIGIN)
        element.insert(0, origin)
    origin.set("xyz", exact(p))
    if R is not None:
        origin.set("rpy", exact(matrix_rpy(R)))


def _pieces(
    shape: Xml.Element,
    cut: Cut,
    centre: tuple[float, Array],
    length: float,
    attributes: Callable[[float], dict[str, str]],
) -> list[tuple[int, Xml.Element]]:
    """A straight shape cut at the bounds."""
    x, p = centre
    found: list[tuple[int, Xml.Element]] = []
    for k, a, b in cut.intervals(x - 0.5 * length, x + 0.5 * length):
        piece = deepcopy(shape)
        put_place(piece, p + (0.5 * (a + b) - x) * cut.R[:, 0])
        geometry = piece.find("geometry/*")
        assert geometry is not None
        geometry.attrib.update(attributes(b - a))
        found.append((k, piece))
    return found


def _boxes(
    shape: Xml.Element, cut: Cut, path: Path, link: str
) -> tuple[list[tuple[int, Xml.Element]], str]:
    """Boxes along the link in the place of a shape that cannot be cut."""
    corners = np.asarray(solid(shape, path, link).vertices) @ cut.R
    low, high = corners.min(axis=0), corners.max(axis=0)
    found: list[tuple[int, Xml.Element]] = []
    tag = ""
    for k, a, b in cut.intervals(float(low[0]), float(high[0])):
        piece = deepcopy(shape)
        geometry = piece.find("geometry")
        assert geometry is not None
        for old in list(geometry):
            tag = old.tag
            geometry.remove(old)
        Xml.SubElement(geometry, "box", size=exact(np.array([b - a, *(high - low)[1:]])))
        middle = np.array([0.5 * (a + b), *(0.5 * (low + high))[1:]])
        put_place(piece, cut.R @ middle, cut.R)
        found.append((k, piece))
    return found, f"a {shape.tag} {tag} cannot be cut: the segments have boxes in its place"
