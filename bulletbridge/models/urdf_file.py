"""A URDF as a tree of elements whose numbers are numbers."""

import math
import os
from pathlib import Path
from xml.etree import ElementTree as Xml

from bulletbridge.bullet.xml_file import read_xml, to_number
from bulletbridge.errors import ModelError
from bulletbridge.numerics.records import LARGEST

ENTRIES = (("ixx", 0, 0), ("iyy", 1, 1), ("izz", 2, 2), ("ixy", 0, 1), ("ixz", 0, 2), ("iyz", 1, 2))
"""Attributes of an <inertia>, and where each stands in the tensor."""
NUMBERS: dict[str, dict[str, int]] = {
    "origin": {"xyz": 3, "rpy": 3},
    "mass": {"value": 1},
    "inertia": dict.fromkeys((key for key, _, _ in ENTRIES), 1),
    "box": {"size": 3},
    "sphere": {"radius": 1},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
    "mesh": {"scale": 3},
}
"""Number of numbers of an attribute, by element: those that inertias and beams are made of."""
QUATERNION = "quat_xyzw"
"""How URDF 1.1 may turn frames, in the place of ``rpy``."""
REQUIRED = {
    "mass": ("value",),
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "mesh": ("filename",),
}
"""Attributes without which an element says nothing."""
JOINT_TYPES = "revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical"
LONGEST_NAME = 1000
"""Characters of a name; with some thousand Bullet ends the process."""
XACRO = ".xacro"
"""Ending of files that xacro makes URDFs of."""
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
            where = f"{path}: {owner.tag} '{owner.get('name', '')}'"
            for element in owner.iter():
                require_numbers(element, where)
                if QUATERNION in element.attrib:
                    raise ModelError(
                        f"{where}: <{element.tag}> is turned by {QUATERNION}, where rpy is wanted:"
                        " `bulletbridge convert` writes it so"
                    )
    return tree


def require_tree(path: Path) -> None:
    """Refuse a URDF whose links and joints make no tree, for which Bullet may end the process.

    A file that cannot be read, or is XML but no URDF, is left to Bullet, which refuses it.

    Raises:
        ModelError: The text is not well-formed, or is xacro; a link or joint has no name, or one
            that is too long; two links or joints have one name; a mass is negative;
            a joint has no type or lacks a link; a link has two parents or is its own; or there is
            not one link that is no child. The message names file, line or link and joint.
    """
    if os.access(path, os.R_OK):
        robot = read_xml(path)
        if robot.tag == "robot":
            check_tree(robot, path)


def check_tree(robot: Xml.Element, path: Path) -> None:
    """``require_tree`` of a URDF that is read already.

    Args:
        robot: Its root element.
        path: What messages call it.
    """
    refuse_xacro(robot, path)
    links = [_name(link, path) for link in robot.findall("link")]
    if not links:
        groups = robot.find("group") is not None or robot.find("disable_collisions") is not None
        about = "; it is an SRDF, about a robot whose URDF is to be loaded" if groups else ""
        raise ModelError(f"{path} has no <link>: there is nothing that could move{about}")
    if len(set(links)) < len(links):
        twice = next(name for k, name in enumerate(links) if name in links[:k])
        raise ModelError(f"{path}: two links are called '{twice}'; give each its own name")
    for link in robot.findall("link"):
        for mass in link.iterfind("inertial/mass"):
            _refuse_negative(mass.get("value", ""), f"{path}: link '{link.get('name')}'")
    parent: dict[str, str] = {}
    held_by: dict[str, str] = {}
    joints = set[str]()
    for joint in robot.findall("joint"):
        name = _name(joint, path)
        where = f"{path}: joint '{name}'"
        if name in joints:
            raise ModelError(f"{path}: two joints are called '{name}'; give each its own name")
        joints.add(name)
        if joint.get("type") not in JOINT_TYPES:
            said = f"has type {joint.get('type')!r}" if "type" in joint.attrib else "has no type"
            raise ModelError(f"{where} {said}; give one of {', '.join(JOINT_TYPES)}")
        above, below = (_end(joint, end, links, where) for end in ("parent", "child"))
        if above == below:
            raise ModelError(f"{where} joins '{above}' to itself; name two links")
        if below in parent:
            raise ModelError(
                f"{where} is the second one with the child '{below}', after '{held_by[below]}'; a"
                f" URDF is a tree: close the loop in a loops file instead"
            )
        parent[below], held_by[below] = above, name
    roots = [name for name in links if name not in parent]
    if links and len(roots) != 1:
        said = "no link is the root" if not roots else "several links are no child of a joint"
        said += ": " + ", ".join(f"'{name}'" for name in roots[:5]) if roots else ""
        raise ModelError(f"{path}: {said}; join all links in one tree")
    for name in links:
        seen, link = {name}, name
        while link in parent:
            link = parent[link]
            if link in seen:
                raise ModelError(f"{path}: link '{link}' is below itself; join all in one tree")
            seen.add(link)


def _name(element: Xml.Element, path: Path) -> str:
    """Name of a link or joint."""
    name = element.get("name", "")
    if not 0 < len(name) <= LONGEST_NAME:
        said = "has no name" if not name else f"has a name of {len(name)} characters"
        raise ModelError(
            f"{path}: a {element.tag} {said}; give it one of at most {LONGEST_NAME} characters"
        )
    return name


def _end(joint: Xml.Element, end: str, links: list[str], where: str) -> str:
    """The link at one end of a joint, ``parent`` or ``child``."""
    found = joint.findall(end)
    name = found[0].get("link") if len(found) == 1 else None
    if name is None:
        said = f"{len(found)} <{end}> elements" if len(found) != 1 else f"a <{end}> without a link"
        raise ModelError(f'{where} has {said}; give it one <{end} link="..."/>')
    if name not in links:
        raise ModelError(f"{where} has the {end} '{name}', which is no link; correct the name")
    return name


def refuse_xacro(robot: Xml.Element, path: Path) -> None:
    """Refuse what xacro has still to expand."""
    if not any(str(element.tag).startswith("xacro:") for element in robot.iter()):
        return
    plain = Path(path.name.removesuffix(XACRO))
    again = "" if path.suffix == XACRO else "_expanded"
    written = f"{plain.stem}{again}{plain.suffix or '.urdf'}"
    ours = "; bulletbridge.load takes it as it is" if robot.tag == "robot" else ""
    raise ModelError(
        f"{path}: it is xacro; expand it first: `xacro {path.name} > {written}` (without ROS: `pip"
        f" install xacro`), and name that{ours}"
    )


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


def require_numbers(element: Xml.Element, where: str) -> None:
    """Hold the attributes of one element against the tables above."""
    for name in REQUIRED.get(str(element.tag), ()):
        if name not in element.attrib:
            raise ModelError(f"{where}: <{element.tag}> has no '{name}'; add it")
    for name, count in NUMBERS.get(str(element.tag), {}).items():
        text = element.get(name)
        if text is not None and not are_as_many(text, count):
            needed = "a finite number" if count == 1 else f"{count} finite numbers"
            said = text if len(text) <= 40 else text[:37] + "..."
            raise ModelError(
                f'{where}: <{element.tag}> has {name}="{said}"; give {needed}, none above '
                f"{LARGEST:g}"
            )
        if text is not None and element.tag == "mass":
            _refuse_negative(text, where)


def _refuse_negative(mass: str, where: str) -> None:
    """Refuse a mass below zero; what is no number is left to others."""
    if are_as_many(mass, 1) and float(mass) < 0.0:
        raise ModelError(f"{where}: the mass is {mass} kg; give zero or more")


def are_as_many(text: str, count: int) -> bool:
    """Whether a text is ``count`` finite numbers."""
    try:
        found = [to_number(part) for part in text.split()]
    except ValueError:
        return False
    return len(found) == count and all(math.fabs(x) <= LARGEST for x in found)
