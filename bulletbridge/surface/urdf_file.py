"""A URDF as a tree of elements whose numbers are numbers."""

import math
import os
from pathlib import Path
from xml.etree import ElementTree as Xml

from bulletbridge.errors import ModelError
from bulletbridge.numerics.records import LARGEST

NUMBERS: dict[str, dict[str, int]] = {
    "origin": {"xyz": 3, "rpy": 3},
    "mass": {"value": 1},
    "inertia": dict.fromkeys(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), 1),
    "box": {"size": 3},
    "sphere": {"radius": 1},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
    "mesh": {"scale": 3},
}
"""How many numbers an attribute has, by element: those that inertias and beams are made of."""
REQUIRED = {
    "mass": ("value",),
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "mesh": ("filename",),
}
"""Attributes without which an element says nothing."""
DEEPEST = 50
"""Nesting that is refused, since writing recurses; a URDF needs six levels."""


def read_urdf(path: Path) -> "Xml.ElementTree[Xml.Element[str]]":
    """The tree of a URDF.

    Raises:
        ModelError: The file cannot be read or is no URDF, or an attribute of a link or joint is not
            as many finite numbers as it should be; the message names file, link and attribute.
    """
    try:
        tree = Xml.parse(path)
    except (OSError, Xml.ParseError, LookupError, ValueError) as error:
        raise ModelError(
            f"cannot read {path}: {error}; check the path, and that it is XML"
        ) from None
    robot = tree.getroot()
    if robot.tag != "robot":
        raise ModelError(f"{path} is no URDF: it begins with <{robot.tag}>, not with <robot>")
    _require_shallow(robot, path)
    for owner in robot:
        if owner.tag in ("link", "joint"):
            for element in owner.iter():
                _require_numbers(element, f"{path}: {owner.tag} '{owner.get('name', '')}'")
    return tree


def is_file(path: Path) -> bool:
    """Whether there is such a file; not so for a name that no file can have."""
    return os.path.isfile(path)


def _require_shallow(robot: Xml.Element, path: Path) -> None:
    level = [robot]
    for _ in range(DEEPEST):
        level = [child for element in level for child in element]
        if not level:
            return
    raise ModelError(f"{path} is nested deeper than {DEEPEST} levels; is it a URDF?")


def _require_numbers(element: Xml.Element, where: str) -> None:
    """Hold the attributes of one element against the tables above."""
    for name in REQUIRED.get(str(element.tag), ()):
        if name not in element.attrib:
            raise ModelError(f"{where}: <{element.tag}> has no '{name}'; add it")
    for name, count in NUMBERS.get(str(element.tag), {}).items():
        text = element.get(name)
        if text is not None and not _are_numbers(text, count):
            needed = "a finite number" if count == 1 else f"{count} finite numbers"
            said = text if len(text) <= 40 else text[:37] + "..."
            raise ModelError(
                f'{where}: <{element.tag}> has {name}="{said}"; give {needed}, none above '
                f"{LARGEST:g}"
            )
        if text is not None and element.tag == "mass" and float(text) < 0.0:
            raise ModelError(f"{where}: the mass is {text} kg; give zero or more")


def _are_numbers(text: str, count: int) -> bool:
    """Whether a text is so many numbers that can be calculated with."""
    try:
        found = [float(part) for part in text.split()]
    except ValueError:
        return False
    return len(found) == count and all(math.fabs(x) <= LARGEST for x in found)
