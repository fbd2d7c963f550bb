"""Loops that stand in the URDF itself: elements of Isaac Sim, urdfdom, URDF+, frames of Onshape.

Sources: Isaac Sim's URDF importer (loop_joint, fixed_frame); ros/urdfdom pull request 264
(constraint); Chignoli et al. 2024, URDF+ (loop, coupling; loop_constraint, joint_constraint and
constraint_joint before); onshape-to-robot and PlaCo (closing frames).
"""

import math
import re
from collections.abc import Callable
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.constraints.joints import (
    Coupling,
    Frame,
    JointModel,
    LoopAxis,
    LoopJoint,
    Triple,
)
from bulletbridge.mechanism.frames import rpy_matrix
from bulletbridge.models.formats.extension import Extension
from bulletbridge.models.formats.urdf_tree import MOVING, UrdfTree, X, end
from bulletbridge.models.model_spec import Z

KINDS = {
    "fixed": JointModel.WELD,
    "revolute": JointModel.REVOLUTE,
    "continuous": JointModel.REVOLUTE,
    "prismatic": JointModel.PRISMATIC,
    "spherical": JointModel.BALL,
    "ball": JointModel.BALL,
    "universal": JointModel.UNIVERSAL,
    "cylindrical": JointModel.CYLINDRICAL,
    "planar": JointModel.PLANAR,
    "position": JointModel.BALL,
}
"""Joint models by type of loop_joint and constraint."""
TURNS, TRAVELS = (JointModel.REVOLUTE,), (JointModel.PRISMATIC,)
ROUND = (JointModel.BALL, JointModel.WELD)
"""Models that need no axis."""
CLOSING = re.compile(r"closing_(.+)_([12])")
"""Names of onshape-to-robot's frames."""
POSITION, ROLLING = "position", "rolling"
"""Types of URDF+'s constraints before they were loops and couplings."""
LOOP_CONSTRAINT = "loop_constraint"
PLUS = "predecessor", "successor"
OTHERS = "link", "joint", "gazebo", "group", "sensor"
"""Elements below <robot> that name links and close no loop, beside filters of collisions."""


def take_second_parents(tree: UrdfTree) -> list[str]:
    """Make loop joints of joints whose child has a parent already; notes on that.

    A URDF is a tree, but exporters write what they are given. Where every link has a parent, the
    first one is the root.
    """
    joints = [each for each in tree.robot if each.tag in ("joint", "drake:joint")]
    links = list(tree.links)
    rootless = links and set(links) <= {end(joint, "child") for joint in joints}
    held = set(links[:1]) if rootless else set[str]()
    made: list[str] = []
    for joint in joints:
        child, kind = end(joint, "child"), joint.get("type", "")
        ends = {end(joint, "parent"), child}
        if child not in held or kind not in KINDS or len(ends) == 1 or not ends <= set(links):
            held.add(child)
            continue
        joint.tag = "loop_joint"
        for which, tag in (("parent", "link1"), ("child", "link2")):
            for element in joint.findall(which):
                element.tag = tag
        origin = joint.find("origin")
        if origin is not None:
            joint.remove(origin)
            for element in joint.findall("link1"):
                element.attrib |= origin.attrib
        if kind == "universal" and joint.find("axis") is None:  # as Drake's turns
            Xml.SubElement(joint, "parent_axis", xyz="1 0 0")
            Xml.SubElement(joint, "child_axis", xyz="0 1 0")
        made.append(f"'{joint.get('name')}' of '{child}'")
    if not made:
        return []
    return [f"links with a parent already; these further joints are loops: {', '.join(made)}"]


def loops_in(tree: UrdfTree) -> Extension:
    """Every loop that the URDF itself has.

    Raises:
        ModelError: An element lacks something, or names a link that does not exist.
    """
    found = Extension()
    for element in tree.robot:
        tag = str(element.tag)
        if tag in READERS:
            loop = READERS[tag](tree, element)
            if any(loop.name == other.name for other in found.loops):
                tree.fail(f"two loops are called '{loop.name}'; give each its own name")
            found.loops.append(loop)
    _add_closing_frames(tree, found)
    found.notes.extend(_unknown_notes(tree))
    return found


def _unknown_notes(tree: UrdfTree) -> list[str]:
    """What is to be said of elements that join links in words that nobody here knows."""
    links, told = set(tree.links), list[str]()
    for element in tree.robot:
        tag = str(element.tag)
        if tag in READERS or tag in OTHERS or ":" in tag or "collision" in tag:
            continue
        texts = (text for each in element.iter() for text in (*each.attrib.values(), each.text))
        ends = [f"'{name}'" for name in dict.fromkeys(texts) if name in links]
        if len(ends) > 1:
            told.append(f"<{tag}> '{element.get('name', '')}' of {', '.join(ends)}")
    if not told:
        return []
    return [
        f"left out, since the element is not known: {'; '.join(told)}; what closes a loop is"
        " <loop_joint>, what couples joints <mimic>"
    ]


def _add_closing_frames(tree: UrdfTree, found: Extension) -> None:
    """A joint for each pair of links that onshape-to-robot made of a closing mate.

    That of a hinge has a second pair, ``..._z``, on its axis.
    """
    ends: dict[str, dict[str, str]] = {}
    for link in tree.links:
        match = CLOSING.fullmatch(link)
        if match:
            ends.setdefault(match[1], {})[match[2]] = link
    taken = {loop.name for loop in found.loops}
    made: list[str] = []
    for name, pair in ends.items():
        if name in taken:
            continue
        if len(pair) < 2:
            (only,) = pair.values()
            found.notes.append(f"link '{only}' closes no loop, for its partner is missing")
            continue
        a, b = pair["1"], pair["2"]
        if {f"{a}_z", f"{b}_z"} <= tree.links.keys():
            axes = _seen_from(tree, a, f"{a}_z"), _seen_from(tree, b, f"{b}_z")
            found.loops.append(LoopJoint(name, JointModel.REVOLUTE, Frame(a), Frame(b), *axes))
        else:
            found.loops.append(LoopJoint(name, JointModel.BALL, Frame(a), Frame(b)))
            made.append(name)
    if made:
        found.notes.append(
            f"{', '.join(made)}: frames closing_..._1 and _2 say that points coincide, not how the"
            " links turn; read as ball joints, as PlaCo does, which in a planar linkage is the same"
            " as a hinge. If they are hinges or welds in space, write them as <loop_joint>"
        )


def _seen_from(tree: UrdfTree, link: str, other: str) -> Triple:
    """Where a link is in another one's frame, all joints at zero."""
    return (tree.poses[link].inverse @ tree.poses[other]).xyz


def _named(tree: UrdfTree, element: Xml.Element) -> tuple[str, str]:
    """Name of an element, and what errors call it."""
    name = element.get("name", "")
    if not name:
        tree.fail(f"a <{element.tag}> has no name; give it one")
    return name, f"<{element.tag}> '{name}'"


def _constraint(tree: UrdfTree, element: Xml.Element) -> LoopJoint | Coupling:
    """Urdfdom's element, or URDF+'s, which is a coupling if it rolls."""
    return (_coupling if element.get("type") == ROLLING else _loop_joint)(tree, element)


def _coupling(tree: UrdfTree, element: Xml.Element) -> Coupling:
    """URDF+'s: the successor turns ``ratio`` times as far as the predecessor.

    Each angle is the sum of those of the joints below the link from which both hang.
    """
    name, where = _named(tree, element)
    ratio = element.find("ratio")
    if ratio is None:
        ratio = element.find("gear_ratio")
    times = 1.0 if ratio is None else tree.number(ratio, "value", 1.0, where)
    lines: list[list[Xml.Element]] = []
    above = tree.above
    for link in _ends(tree, element, where):
        lines.append([])
        while link in above:
            lines[-1].append(above[link])
            link = end(lines[-1][-1], "parent")
    first, second = lines
    factors: dict[str, float] = {}
    for line, other, factor in ((second, first, 1.0), (first, second, -times)):
        for joint in line:
            if joint not in other and joint.get("type") in MOVING and factor:
                factors[joint.get("name", "")] = factor
    if not factors:
        tree.fail(f"{where} couples links between which no joint moves; name two that move")
    return Coupling(name, factors)


def _ends(tree: UrdfTree, element: Xml.Element, where: str) -> list[str]:
    """The two links that an element names, in URDF+'s words or those of joints."""
    tags = ("parent", "child") if element.find("predecessor") is None else PLUS
    return [link_named(tree, end(element, tag), where) for tag in tags]


def _loop_joint(tree: UrdfTree, element: Xml.Element) -> LoopJoint:
    """Isaac Sim's and old Drake's element, or that of urdfdom or URDF+."""
    name, where = _named(tree, element)
    kind = element.get("type", POSITION if element.tag == LOOP_CONSTRAINT else "")
    kind = kind.lower().removesuffix("_joint")  # as in a fork of urdfdom
    if kind not in KINDS:
        tree.fail(f"{where} has type '{kind}'; known are {', '.join(KINDS)}")
    model = KINDS[kind]
    links = [each for each in element if each.tag in ("link1", "link2")]
    if links:
        if len(links) != 2:
            tree.fail(f"{where} has {len(links)} of <link1> and <link2>; give it two")
        names = [link_named(tree, each.get("link", ""), where) for each in links]
        places = [each if each.find("origin") is None else each.find("origin") for each in links]
    else:
        names = _ends(tree, element, where)
        tags = ("parent", "child") if element.find("predecessor") is None else PLUS
        places = [(*element.findall(f"{x}_origin"), *element.findall(f"{x}/origin")) for x in tags]
        places = [next(iter(found), None) for found in places]
        if places == [None, None]:
            places[0] = element.find("origin")  # as in a joint
    a, b = (
        Frame(link, *tree.origin(place, where)) for link, place in zip(names, places, strict=True)
    )
    axis, axis_b = _axes(tree, element, (a, b), model, where)
    along = _along(tree, element, where)
    return LoopJoint(
        name,
        model,
        a,
        b,
        axis,
        axis_b,
        turn=along if model in TURNS else None,
        travel=along if model in TRAVELS else None,
    )


def _axes(
    tree: UrdfTree, element: Xml.Element, ends: tuple[Frame, Frame], model: JointModel, where: str
) -> tuple[Triple, Triple | None]:
    """Axes in the frames a and b; None for the same numbers in both."""
    if model in ROUND:
        return Z, None
    names = ("axis", "parent_axis")
    first = next((each for name in names for each in element.findall(name)), None)
    second = element.find("child_axis")
    axis = X if first is None else tree.triple(first, "xyz", X, where)
    if not math.hypot(*axis) > 0.0:
        tree.fail(f"{where} has an axis without length; give three numbers that are not all zero")
    if second is not None:
        return axis, tree.triple(second, "xyz", X, where)
    if model is JointModel.UNIVERSAL:
        tree.fail(f"{where} is universal and has one axis; give <parent_axis> and <child_axis>")
    if first is not None and first.get("frame") == "parent":
        return seen_from_both(tree, axis, ends)
    return axis, None


def seen_from_both(
    tree: UrdfTree, axis: Triple, ends: tuple[Frame, Frame]
) -> tuple[Triple, Triple]:
    """An axis of the first link's frame, in frames a and b, all joints at zero."""
    poses = tree.poses
    R_a, R_b = (poses[frame.link].R if frame.link in poses else np.eye(3) for frame in ends)
    a = rpy_matrix(ends[0].rpy).T @ np.array(axis)
    b = rpy_matrix(ends[1].rpy).T @ R_b.T @ R_a @ np.array(axis)
    return (float(a[0]), float(a[1]), float(a[2])), (float(b[0]), float(b[1]), float(b[2]))


def _along(tree: UrdfTree, element: Xml.Element, where: str) -> LoopAxis | None:
    """Limits, damping and friction of a loop joint, where it has any."""
    limit, dynamics = element.find("limit"), element.find("dynamics")
    limits: tuple[float, float] | None = None
    if limit is not None and element.get("type") != "continuous":
        low, high = (tree.number(limit, key, 0.0, where) for key in ("lower", "upper"))
        limits = (low, high) if low < high else None
    damping = friction = 0.0
    if dynamics is not None:
        damping = tree.number(dynamics, "damping", 0.0, where)
        friction = tree.number(dynamics, "friction", 0.0, where)
    if limits is None and damping == 0.0 and friction == 0.0:
        return None
    return LoopAxis(limits, friction, damping=damping)


def link_named(tree: UrdfTree, name: str, where: str) -> str:
    """The name of a link, or the world.

    Raises:
        ModelError: There is none of that name.
    """
    if name not in tree.links and name != "world":
        tree.fail(f"{where} names the link '{name}', which does not exist; correct the name")
    return name


READERS: dict[str, Callable[[UrdfTree, Xml.Element], LoopJoint | Coupling]] = {
    "loop_joint": _loop_joint,
    "constraint": _constraint,
    "loop": _loop_joint,
    "coupling": _coupling,
    LOOP_CONSTRAINT: _loop_joint,
    "joint_constraint": _coupling,
    "constraint_joint": _loop_joint,
}
"""Who reads which element below <robot>."""
