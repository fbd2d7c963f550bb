"""Loops that stand in the URDF itself: elements of Isaac Sim and urdfdom, frames of Onshape.

Sources: Isaac Sim's URDF importer (loop_joint, fixed_frame); ros/urdfdom pull request 264
(constraint); onshape-to-robot and PlaCo (closing frames).
"""

import math
import re
from collections.abc import Callable
from typing import NamedTuple
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.constraints.joints import Frame, JointModel, LoopAxis, LoopJoint, Triple
from bulletbridge.mechanism.frames import rpy_matrix
from bulletbridge.models.formats.urdf_tree import UrdfTree, X, end
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
}
"""Joint models by type of loop_joint and constraint."""
TURNS, TRAVELS = (JointModel.REVOLUTE,), (JointModel.PRISMATIC,)
ROUND = (JointModel.BALL, JointModel.WELD)
"""Models that need no axis."""
CLOSING = re.compile(r"closing_(.+)_([12])")
"""Names of onshape-to-robot's frames."""
IGNORED = {
    "loop": "URDF+ is not read: write the loops as <loop_joint>",
    "coupling": "URDF+ is not read: write couplings as <mimic>",
}
"""Elements that act on links or joints and are not read, with what to do."""


class Closures(NamedTuple):
    """Loops, and what is to be said about them."""

    loops: list[LoopJoint]
    notes: list[str]


def take_second_parents(tree: UrdfTree) -> list[str]:
    """Make loop joints of joints whose child has a parent already; notes on that.

    A URDF is a tree, but exporters write what they are given. Where every link has a parent, the
    first one is the root.
    """
    joints, links = tree.robot.findall("joint"), list(tree.links)
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
        made.append(f"'{joint.get('name')}' of '{child}'")
    if not made:
        return []
    return [f"links with a parent already; these further joints are loops: {', '.join(made)}"]


def loops_in(tree: UrdfTree) -> Closures:
    """Every loop that the URDF itself has.

    Raises:
        ModelError: An element lacks something, or names a link that does not exist.
    """
    found = Closures([], [])
    for element in tree.robot:
        tag = str(element.tag)
        if tag in READERS:
            loop = READERS[tag](tree, element)
            if any(loop.name == other.name for other in found.loops):
                tree.fail(f"two loops are called '{loop.name}'; give each its own name")
            found.loops.append(loop)
        elif tag in IGNORED:
            said = element.get("name")
            found.notes.append(f"<{tag}>{f' {said!r}' if said else ''} is left out; {IGNORED[tag]}")
    _add_closing_frames(tree, found)
    return found


def _add_closing_frames(tree: UrdfTree, found: Closures) -> None:
    """A ball joint for each pair of links that onshape-to-robot made of a closing mate."""
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
        found.loops.append(LoopJoint(name, JointModel.BALL, Frame(pair["1"]), Frame(pair["2"])))
        made.append(name)
    if made:
        found.notes.append(
            f"{', '.join(made)}: frames closing_..._1 and _2 say that points coincide, not how the"
            " links turn; read as ball joints, as PlaCo does, which in a planar linkage is the same"
            " as a hinge. If they are hinges or welds in space, write them as <loop_joint>"
        )


def _loop_joint(tree: UrdfTree, element: Xml.Element) -> LoopJoint:
    """Isaac Sim's and old Drake's element, or that of urdfdom."""
    name = element.get("name", "")
    where = f"<{element.tag}> '{name}'"
    if not name:
        tree.fail(f"a <{element.tag}> has no name; give it one")
    kind = element.get("type", "")
    if kind not in KINDS:
        tree.fail(f"{where} has type '{kind}'; known are {', '.join(KINDS)}")
    model = KINDS[kind]
    links = [each for each in element if each.tag in ("link1", "link2")]
    if links:
        if len(links) != 2:
            tree.fail(f"{where} has {len(links)} of <link1> and <link2>; give it two")
        a, b = (
            Frame(link_named(tree, each.get("link", ""), where), *tree.origin(each, where))
            for each in links
        )
    else:
        a, b = (
            Frame(
                link_named(tree, end(element, which), where),
                *tree.origin(element.find(f"{which}_origin"), where),
            )
            for which in ("parent", "child")
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
        return _seen_from_both(tree, axis, ends)
    return axis, None


def _seen_from_both(
    tree: UrdfTree, axis: Triple, ends: tuple[Frame, Frame]
) -> tuple[Triple, Triple]:
    """An axis of the first link's frame, in frames a and b, all joints at zero."""
    poses = tree.poses
    R_a, R_b = (poses[frame.link][0] if frame.link in poses else np.eye(3) for frame in ends)
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


READERS: dict[str, Callable[[UrdfTree, Xml.Element], LoopJoint]] = {
    "loop_joint": _loop_joint,
    "constraint": _loop_joint,
}
"""Who reads which element below <robot>."""
