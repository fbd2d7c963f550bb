"""What a URDF gives Gazebo in SDF's words: joints that close loops there, springs of joints.

Source: Gazebo's tutorial on kinematic loops, <gazebo><joint>. Gazebo makes SDF of the URDF and puts
in what <gazebo> holds; a joint's pose is that in its child link, its axis in its own frame, unless
they say else. Springs are springStiffness and springReference of a <gazebo reference="JOINT">,
which SDFormat's reader of URDF makes the joint's spring_stiffness and spring_reference.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.constraints.force_elements import Wrench
from bulletbridge.constraints.joints import Coupling, Frame, JointModel, LoopAxis, LoopJoint, Triple
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.attaching_plugins import (
    MODEL,
    attachment,
    closing_joint,
    hinged_note,
)
from bulletbridge.models.formats.joint_graph import digits_worth, rounded
from bulletbridge.models.formats.robot import (
    Pose,
    free_name,
    lifting,
    listed,
    pose_of,
    share_of_weight,
)
from bulletbridge.models.formats.sdf import screw_pitch
from bulletbridge.models.formats.urdf_tree import MOVING, UrdfTree, end
from bulletbridge.models.model_spec import EARTH, JointForce
from bulletbridge.numerics.records import LARGEST, Array

KINDS = {
    "fixed": JointModel.WELD,
    "revolute": JointModel.REVOLUTE,
    "hinge": JointModel.REVOLUTE,
    "continuous": JointModel.REVOLUTE,
    "prismatic": JointModel.PRISMATIC,
    "ball": JointModel.BALL,
    "universal": JointModel.UNIVERSAL,
    "revolute2": JointModel.UNIVERSAL,
    "screw": JointModel.SCREW,
}
TURNS, TRAVELS = (JointModel.REVOLUTE, JointModel.SCREW), (JointModel.PRISMATIC,)
GEARBOX = "gearbox"
TURNING = "revolute", "continuous"
ROUND = (JointModel.BALL, JointModel.WELD)
ENDS = "parent", "child"
SPRING = STIFFNESS, REST = "springStiffness", "springReference"
OFF = "turnGravityOff"
YES, NO = ("1", "true", "True"), ("0", "false", "False")
NO_LIMIT = 1e15
"""Limits beyond are SDF's way to say that there are none."""


class GazeboJoints(NamedTuple):
    """What <gazebo> elements say of joints.

    Attributes:
        loops: What closes loops, and gears.
        held: Whether one of them fixes the root link to the world.
        notes: What is to be said about it.
    """

    loops: list[LoopJoint | Coupling]
    held: bool
    notes: list[str]


def gazebo_joints(tree: UrdfTree, taken: set[str]) -> GazeboJoints:
    """Read the joints inside of <gazebo>.

    Args:
        tree: The URDF.
        taken: Names of other loops.

    Raises:
        ModelError: One names a link that does not exist, or its numbers are none.
    """
    loops: list[LoopJoint | Coupling] = []
    notes: list[str] = []
    left: list[str] = []
    void: list[str] = []
    held, groups = False, tree.rigid_groups()
    names = set(taken)
    said = [e.get(key, "") for e in tree.robot.iter("origin") for key in ("xyz", "rpy")]
    by_plugins, about_plugins = _joined(tree)
    joints = (*tree.robot.iterfind("gazebo/joint"), *by_plugins)
    said += [_text(joint, "pose") for joint in joints]
    digits = digits_worth(number for text in said for number in text.split())
    notes += about_plugins
    for joint in joints:
        kind, called = joint.get("type", ""), joint.get("name", "loop")
        where = f"<gazebo> joint '{called}'"
        ends = [_link(tree, joint, which, where) for which in ("parent", "child")]
        gear = _gear(tree, joint, ends, where) if kind == GEARBOX else None
        if gear is not None:
            followers = [name for name in gear if tree.joints[name].find("mimic") is not None]
            if followers:
                notes.append(f"{where} is left out: '{followers[0]}' is a mimic already")
            else:
                name = free_name(called, names)
                names.add(name)
                loops.append(Coupling(name, gear))
        elif kind not in KINDS:
            left.append(f"{called} ({kind})")
        elif kind == "fixed" and set(ends) == {WORLD, tree.root}:
            held = True
            notes.append(f"the base is held: {where} fixes it to the world")
        elif WORLD not in ends and len({groups[link] for link in ends}) == 1:
            void.append(called)
        else:
            name = free_name(called, names)
            names.add(name)
            loops.append(_loop(tree, joint, name, ends, digits))
    if any((still.text or "").strip() in YES for still in tree.robot.iterfind("gazebo/static")):
        held = True
        notes.append(
            "the base is held: <gazebo> has <static>, with which Gazebo moves no joint either"
        )
    kinematic = [
        part.get("reference", "")
        for part in tree.robot.iterfind("gazebo")
        if _text(part, "kinematic") in YES
    ]
    if any(groups.get(name) == groups[tree.root] for name in kinematic):
        held = True
        notes.append("the base is held: <gazebo> has it <kinematic>")
    elif kinematic:
        notes.append(
            f"<kinematic> of {listed(kinematic)} in <gazebo> is left out: forces move what it names"
        )
    old = [part.get("name", "") for part in tree.robot.iterfind("gazebo/*") if _is_old(part)]
    if old:
        notes.append(f"bodies and joints in words of Gazebo before 1.0 are LEFT OUT: {listed(old)}")
    own = {joint.get("name", "loop") for joint in by_plugins}
    closing = [x.name for x in loops if isinstance(x, LoopJoint) and x.name not in own]
    if closing:
        notes.append(f"joints in <gazebo> close loops, joints at zero: {listed(closing)}")
    if void:
        notes.append(f"{listed(void)} in <gazebo> join what is one rigid body: left out")
    if left:
        notes.append(f"joints in <gazebo> of kinds that are not read: {listed(left)}; left out")
    return GazeboJoints(loops, held, notes)


def remove_gazebo_joints(robot: Xml.Element) -> None:
    """Take joints and mimics out of <gazebo>, plugins that join links: they are said otherwise."""
    for element in robot.iterfind("gazebo"):
        for part in [*element.iterfind("joint"), *element.iterfind("plugin")]:
            if part.tag == "joint" or closing_joint(part) is not None or attachment(part):
                element.remove(part)
        for part in (element, *element.findall("axis")):
            for mimic in part.findall("mimic"):
                part.remove(mimic)


def _is_old(part: Xml.Element) -> bool:
    """Whether it is such as ``<joint:hinge>`` and ``<body:box>``, which Gazebo reads no more."""
    return str(part.tag).startswith(("joint:", "body:"))


def _joined(tree: UrdfTree) -> tuple[list[Xml.Element], list[str]]:
    """What plugins join, as joints, and notes on that."""
    joints: list[Xml.Element] = []
    notes: list[str] = []
    name = tree.robot.get("name", "")
    for plugin in tree.robot.iterfind("gazebo/plugin"):
        closing = closing_joint(plugin)
        if closing is not None:
            joints.append(closing)
            notes.append(hinged_note(closing, "a <gazebo><joint>"))
            continue
        fixed = attachment(plugin)
        if fixed is None:
            continue
        if not fixed.is_in(name):
            notes.append(fixed.left_out(name))
            continue
        joint = Xml.Element("joint", name=f"{fixed.parent}_to_{fixed.child}", type="fixed")
        for tag, link in zip(ENDS, (fixed.parent, fixed.child), strict=True):
            Xml.SubElement(joint, tag).text = link
        joints.append(joint)
        notes.append(
            f"a plugin in <gazebo> fixes '{fixed.parent}' to '{fixed.child}', joints at zero"
        )
    return joints, notes


def gazebo_springs(tree: UrdfTree) -> tuple[tuple[JointForce, ...], list[str]]:
    """Springs of joints in <gazebo reference="JOINT">, and what is to be said about them.

    Raises:
        ModelError: A number is none, or a stiffness negative.
    """
    found: dict[str, JointForce] = {}
    left: list[str] = []
    joints = tree.joints
    for element in tree.robot.iterfind("gazebo"):
        name = element.get("reference", "")
        where = f"<gazebo reference='{name}'>"
        (stiffness,) = _numbers(tree, element, STIFFNESS, (0.0,), where)
        (rest,) = _numbers(tree, element, REST, (0.0,), where)
        if stiffness < 0.0:
            tree.fail(f"{where}: <{STIFFNESS}> is {stiffness:g}; give zero or more")
        if stiffness and (name not in joints or joints[name].get("type") not in MOVING):
            left.append(name)
        elif stiffness:
            found[name] = JointForce(name, stiffness=stiffness, rest=rest)
    said = f"springs in <gazebo> of {listed(left)}, no joints with one axis, are left out"
    return tuple(found.values()), [said] if left else []


def weightless_links(tree: UrdfTree, held: bool) -> list[Wrench]:
    """What takes the weight of links that ``<gazebo reference="LINK">`` turns gravity off for.

    Args:
        tree: The URDF.
        held: Whether its base is part of the world; what stands on that needs no force.

    Raises:
        ModelError: A number of such a link's ``<inertial>`` is none.
    """
    found: dict[str, Wrench] = {}  # a file may say it twice
    for element in tree.robot.iterfind("gazebo"):
        name = element.get("reference", "")
        off = _text(element, OFF) in YES or _text(element, "gravity") in NO
        link = tree.links.get(name)
        inertial = None if link is None else link.find("inertial")
        mass = None if inertial is None else inertial.find("mass")
        if not off or inertial is None or mass is None or name == WORLD:
            continue
        if held and _stands_on(tree, name) == tree.root:
            continue
        at = Frame(name, tree.origin(inertial.find("origin"), f"link '{name}'")[0])
        found[name] = lifting(f"{name}_lift", at, float(mass.get("value", "0")), EARTH)
    return list(found.values())


def _stands_on(tree: UrdfTree, name: str) -> str:
    """The lowest link that a link is one body with."""
    above = tree.above
    while name in above and above[name].get("type") in {"fixed", "floating"}:
        name = end(above[name], "parent")
    return name


def set_weightless(tree: UrdfTree, wrenches: Iterable[Wrench], gravity: Triple) -> list[Wrench]:
    """Turn gravity off for links all of whose weight a wrench takes, for no others; wrenches left.

    Args:
        tree: The URDF.
        wrenches: On its links.
        gravity: That of the model [m/s²].
    """
    for element in tree.robot.iterfind("gazebo[@reference]"):
        for tag in (OFF, "gravity"):
            for each in element.findall(tag):
                element.remove(each)
    left: list[Wrench] = []
    for wrench in wrenches:
        name = wrench.frame.link
        mass = None if name not in tree.links else tree.links[name].find("inertial/mass")
        share: float | None = None
        if mass is not None:
            com = tree.origin(tree.links[name].find("inertial/origin"), f"link '{name}'")[0]
            own = float(mass.get("value", "0"))
            share = share_of_weight(wrench, own, np.array(com), gravity)
        if share is None or abs(share - 1.0) > 1e-12:
            left.append(wrench)
            continue
        element = Xml.SubElement(tree.robot, "gazebo", reference=name)
        Xml.SubElement(element, OFF).text = "true"
    return left


def add_gazebo_spring(robot: Xml.Element, spring: JointForce) -> None:
    """Write the spring of a joint."""
    element = Xml.SubElement(robot, "gazebo", reference=spring.joint)
    Xml.SubElement(element, STIFFNESS).text = repr(spring.stiffness)
    Xml.SubElement(element, REST).text = repr(spring.rest)


def _gear(
    tree: UrdfTree, joint: Xml.Element, ends: list[str], where: str
) -> dict[str, float] | None:
    """Factors of the two joints of a gearbox; None where it does not say which these are.

    The turn of the child about the reference body is -ratio times that of the parent. Without a
    second axis both are about the first, without any about the parent's joint.
    """
    base = _text(joint, "gearbox_reference_body").rpartition("::")[2]
    (ratio,) = _numbers(tree, joint, "gearbox_ratio", (1.0,), where)
    place = _pose(tree, joint, ends[1], where)
    factors: dict[str, float] = {}
    about: Array | None = None
    for link, tag, factor in zip(ends, ("axis", "axis2"), (ratio, 1.0), strict=True):
        found = [
            (name, each)
            for name, each in tree.joints.items()
            if each.get("type") in TURNING and {end(each, e) for e in ENDS} == {base, link}
        ]
        if len(found) != 1:
            return None
        ((name, each),) = found
        along = _place(tree, end(each, "child")).R @ np.array(tree.axis(each))
        if joint.find(tag) is not None:
            about = place.R @ _axis(tree, joint, place, where, tag)
        elif about is None:
            about = along
        sign = float(np.sign(along @ about)) * (1.0 if end(each, "parent") == base else -1.0)
        factors[name] = factors.get(name, 0.0) + sign * factor
    return factors if len(factors) == 2 and all(factors.values()) else None


def _pose(tree: UrdfTree, joint: Xml.Element, child: str, where: str) -> Pose:
    """Where a joint is in the root's frame: its pose is that in the child, unless it says else.

    Raises:
        ModelError: It says what is no link or joint.
    """
    pose = np.array(_numbers(tree, joint, "pose", (0.0,) * 6, where))
    element = joint.find("pose")
    given = {} if element is None else element.attrib
    frame = (given.get("relative_to") or given.get("frame") or child).rpartition("::")[2]
    if frame in tree.joints:
        frame = end(tree.joints[frame], "child")
    if frame == MODEL:
        frame = tree.root
    if frame not in tree.links and frame != WORLD:
        tree.fail(f"{where} has a pose in '{frame}', which is no link; correct the name")
    return _place(tree, frame) @ pose_of(pose[:3], pose[3:])


def _loop(
    tree: UrdfTree, joint: Xml.Element, name: str, ends: list[str], digits: int | None
) -> LoopJoint:
    where = f"<gazebo> joint '{name}'"
    model = KINDS[joint.get("type", "")]
    parent, child = (_place(tree, end) for end in ends)
    place = _pose(tree, joint, ends[1], where)
    frames = [
        Frame(link, rounded(at.xyz, digits), rounded(at.rpy, digits))
        for link, at in zip(ends, (parent.inverse @ place, child.inverse @ place), strict=True)
    ]
    axis = np.array([0.0, 0.0, 1.0])
    second = None
    if model not in ROUND:
        axis = _axis(tree, joint, place, where)
    if model is JointModel.UNIVERSAL:
        second = rounded(_axis(tree, joint, place, where, "axis2"), digits)
    along = _along(tree, joint, where)
    return LoopJoint(
        name,
        model,
        frames[0],
        frames[1],
        rounded(axis, digits),
        second,
        screw_pitch(joint, name) if model is JointModel.SCREW else 0.0,
        turn=along if model in TURNS else None,
        travel=along if model in TRAVELS else None,
    )


def _axis(tree: UrdfTree, joint: Xml.Element, place: Pose, where: str, tag: str = "axis") -> Array:
    """Unit vector (3,) in the joint's frame."""
    axis = np.array(_numbers(tree, joint, f"{tag}/xyz", (0.0, 0.0, 1.0), where))
    size = float(np.linalg.norm(axis))
    if not size > 1e-9:
        tree.fail(f"{where} has an axis without length; give three numbers that are not all zero")
    element = joint.find(f"{tag}/xyz")
    frame = "" if element is None else element.get("expressed_in", "")
    if _text(joint, f"{tag}/use_parent_model_frame") in ("1", "true"):
        frame = MODEL
    if not frame:
        return axis / size
    R = np.eye(3) if frame == MODEL else _place(tree, frame).R
    return place.R.T @ R @ axis / size


def _along(tree: UrdfTree, joint: Xml.Element, where: str) -> LoopAxis | None:
    """Limits, damping, friction and spring of a hinge or slider, where it has any."""

    def number(tag: str, default: float) -> float:
        return _numbers(tree, joint, f"axis/{tag}", (default,), where)[0]

    low, high = (
        _numbers(tree, joint, f"axis/limit/{end}", (none,), where, most=math.inf)[0]
        for end, none in (("lower", -NO_LIMIT), ("upper", NO_LIMIT))
    )
    bounded = low < high and max(-low, high) < NO_LIMIT
    stiffness = number("dynamics/spring_stiffness", 0.0)
    along = LoopAxis(
        (low, high) if bounded else None,
        number("dynamics/friction", 0.0),
        stiffness=stiffness,
        damping=number("dynamics/damping", 0.0),
        rest=number("dynamics/spring_reference", 0.0) if stiffness else 0.0,
    )
    return None if along == LoopAxis() else along


def _place(tree: UrdfTree, link: str) -> Pose:
    """A link in the root's frame, joints at zero; the world is where that is."""
    R, p = tree.poses.get(link, (np.eye(3), np.zeros(3)))
    return Pose(R, p)


def _link(tree: UrdfTree, joint: Xml.Element, which: str, where: str) -> str:
    element = joint.find(which)
    name = "" if element is None else element.get("link", (element.text or "").strip())
    name = name.rpartition("::")[2]
    if name not in tree.links and name != WORLD:
        tree.fail(f"{where} has the {which} '{name}', which is no link; correct the name")
    return name


def _text(joint: Xml.Element, tag: str) -> str:
    element = joint.find(tag)
    return "" if element is None else (element.text or "").strip()


def _numbers(
    tree: UrdfTree,
    joint: Xml.Element,
    tag: str,
    default: tuple[float, ...],
    where: str,
    most: float = LARGEST,
) -> list[float]:
    text = _text(joint, tag)
    if not text:
        return list(default)
    try:
        found = [float(part) for part in text.split()]
    except ValueError:
        found = []
    if len(found) != len(default) or not all(abs(x) <= most for x in found):
        tree.fail(f"{where}: <{tag}> is '{text[:40]}'; give {len(default)} numbers")
    return found
