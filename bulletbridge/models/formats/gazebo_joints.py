"""What a URDF gives Gazebo in SDF's words: joints that close loops there, springs of joints.

Source: Gazebo's tutorial on kinematic loops, <gazebo><joint>. Gazebo makes SDF of the URDF and puts
in what <gazebo> holds; a joint's pose is that in its child link, its axis in its own frame, unless
they say else. Springs are springStiffness and springReference of a <gazebo reference="JOINT">,
which SDFormat's reader of URDF makes the joint's spring_stiffness and spring_reference.
"""

from collections.abc import Iterable
from copy import deepcopy
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.bullet.xml_file import drop
from bulletbridge.constraints.force_elements import Wrench
from bulletbridge.constraints.joints import Coupling, Frame, LoopJoint, Triple
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.attaching_plugins import attachment, closing_joint, hinged_note
from bulletbridge.models.formats.extension import Extension
from bulletbridge.models.formats.joint_graph import (
    Along,
    digits_worth,
    loop_joint,
)
from bulletbridge.models.formats.robot import free_name, lifting, listed, share_of_weight, told
from bulletbridge.models.formats.sdf import (
    GEARBOX,
    KINDS,
    along_in,
    direction_in,
    gear_factors,
    screw_pitch,
)
from bulletbridge.models.formats.sdf_frames import (
    SCOPE,
    Scope,
    numbers_in,
    open_scope,
    text_of,
)
from bulletbridge.models.formats.urdf_text import exact
from bulletbridge.models.formats.urdf_tree import DYNAMICS_SPRING, MOVING, UrdfTree, end
from bulletbridge.models.model_spec import EARTH, JointForce
from bulletbridge.numerics.records import Array

VERSION = (1, 7)
"""Of SDF: poses may be relative to anything, axes are in the joint's frame."""
FRAMES = "relative_to", "frame", "expressed_in"
"""Attributes that name what a pose or an axis is in."""
TURNING = "revolute", "continuous"
ENDS = "parent", "child"
SPRING = STIFFNESS, REST = "springStiffness", "springReference"
OFF, DECAY = "turnGravityOff", "dampingFactor"
YES, NO = ("1", "true", "True"), ("0", "false", "False")


def gazebo_joints(tree: UrdfTree, taken: set[str]) -> Extension:
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
    free: list[str] = []
    held, groups = False, tree.rigid_groups()
    names = set(taken)
    said = [e.get(key, "") for e in tree.robot.iter("origin") for key in ("xyz", "rpy")]
    by_plugins, about_plugins = _joined(tree)
    joints = (*tree.robot.iterfind("gazebo/joint"), *by_plugins)
    said += [text_of(joint, "pose") for joint in joints]
    digits = digits_worth(number for text in said for number in text.split())
    notes += about_plugins
    scope = scope_of(tree)
    for joint in map(_plain, joints):
        kind, called = joint.get("type", ""), joint.get("name", "loop")
        where = f"<gazebo> joint '{called}'"
        ends = [_link(tree, joint, which, where) for which in ENDS]
        gear = _gear(tree, scope, joint, ends) if kind == GEARBOX else None
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
            if joint.find("axis/mimic") is not None or joint.find("axis2/mimic") is not None:
                free.append(called)
            try:
                loops.append(_loop(scope, joint, name, digits))
            except ModelError as error:
                tree.fail(f"{where}: {error}")
    held_too, about_holding = _held(tree, groups)
    notes += about_holding
    # such as <joint:hinge> and <body:box>
    old = [
        part.get("name", "")
        for part in tree.robot.iterfind("gazebo/*")
        if str(part.tag).startswith(("joint:", "body:"))
    ]
    notes += told({"bodies and joints in words of Gazebo before 1.0 are LEFT OUT: {}": old})
    notes += scope.notes
    own = {joint.get("name", "loop") for joint in by_plugins}
    closing = [x.name for x in loops if isinstance(x, LoopJoint) and x.name not in own]
    about = {
        "joints in <gazebo> close loops, joints at zero: {}": closing,
        "{} in <gazebo> join what is one rigid body: left out": void,
        "joints in <gazebo> of kinds that are not read: {}; left out": left,
        "<mimic> of joints in <gazebo>, which close loops, is LEFT OUT: {}; couple joints of the"
        " tree": free,
    }
    notes += told(about)
    return Extension(loops, held=held or held_too, notes=notes)


def _held(tree: UrdfTree, groups: dict[str, str]) -> tuple[bool, list[str]]:
    """Whether <gazebo> has the base <static> or <kinematic>, and what is to be said of these."""
    held, notes = False, list[str]()
    if any((still.text or "").strip() in YES for still in tree.robot.iterfind("gazebo/static")):
        held = True
        notes.append(
            "the base is held: <gazebo> has <static>, with which Gazebo moves no joint either"
        )
    kinematic = [
        part.get("reference", "")
        for part in tree.robot.iterfind("gazebo")
        if text_of(part, "kinematic") in YES
    ]
    if any(groups.get(name) == groups[tree.root] for name in kinematic):
        held = True
        notes.append("the base is held: <gazebo> has it <kinematic>")
    elif kinematic:
        notes.append(
            f"<kinematic> of {listed(kinematic)} in <gazebo> is left out: forces move what it names"
        )
    return held, notes


def scope_of(tree: UrdfTree, added: tuple[str, ...] = ()) -> Scope:
    """The model that Gazebo makes: the robot at zero, its joints as frames, and what is added."""
    model = Xml.Element("model", name=tree.robot.get("name", ""))
    for name, at in UrdfTree(tree.path, tree.robot).poses.items():  # of the tree as it is now
        link = Xml.SubElement(model, "link", name=name)
        Xml.SubElement(link, "pose").text = f"{exact(at.xyz)} {exact(at.rpy)}"
    model.extend(_plain(part) for part in tree.robot.iterfind("gazebo/*") if part.tag in added)
    scope = open_scope(model, VERSION, tree.path, tree.path.parent)
    for name, joint in tree.joints.items():
        scope.parts.setdefault(name, scope.parts[end(joint, "child")])
    return scope


def _plain(part: Xml.Element) -> Xml.Element:
    """A part whose names of others have no names of models before them, ends of joints as texts."""
    part = deepcopy(part)
    for element in part.iter():
        for key in element.attrib.keys() & set(FRAMES):
            element.set(key, element.attrib[key].rpartition(SCOPE)[2])
        if element.tag in ENDS:
            name = element.get("link") or element.text or ""
            element.text = name.strip().rpartition(SCOPE)[2]
    return part


def remove_gazebo_joints(robot: Xml.Element) -> None:
    """Take joints and mimics out of <gazebo>, plugins that join links: they are said otherwise."""
    for element in robot.iterfind("gazebo"):
        for part in [*element.iterfind("joint"), *element.iterfind("plugin")]:
            if part.tag == "joint" or closing_joint(part) is not None or attachment(part):
                element.remove(part)
        for part in (element, *element.findall("axis")):
            drop(part, "mimic")


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


def joint_springs(tree: UrdfTree) -> tuple[tuple[JointForce, ...], list[str]]:
    """Springs of joints in <dynamics> or <gazebo reference="JOINT">, and what is to be said.

    Raises:
        ModelError: A number is none, or a stiffness negative.
    """
    found: dict[str, JointForce] = {}
    left: list[str] = []
    joints = tree.joints
    said = [
        (name, f"joint '{name}': <dynamics>", [dynamics.get(word, "0") for word in DYNAMICS_SPRING])
        for name, joint in joints.items()
        for dynamics in joint.iterfind("dynamics")
    ]
    for element in tree.robot.iterfind("gazebo"):
        name = element.get("reference", "")
        texts = [text_of(element, tag, "0") for tag in SPRING]
        said.append((name, f"<gazebo reference='{name}'>", texts))
    for name, where, texts in said:
        stiffness, rest = (
            float(numbers_in(text, 1, f"{tree.path}: {where}: the {word} of its spring")[0])
            for text, word in zip(texts, ("stiffness", "rest"), strict=True)
        )
        if stiffness < 0.0:
            tree.fail(f"{where}: the stiffness of its spring is {stiffness:g}; give zero or more")
        if stiffness and (name not in joints or joints[name].get("type") not in MOVING):
            left.append(name)
        elif stiffness:
            found[name] = JointForce(name, stiffness=stiffness, rest=rest)
    decaying = [
        element.get("reference", "")
        for element in tree.robot.iterfind("gazebo")
        if text_of(element, DECAY).strip("0. ")
    ]
    about = {
        "springs of {}, no joints with one axis, are left out": left,
        f"<{DECAY}> of {{}}: rates of links do not decay here": decaying,
    }
    return tuple(found.values()), told(about)


def weightless_links(tree: UrdfTree, held: bool) -> list[Wrench]:
    """What takes the weight of links that ``<gazebo reference="LINK">`` turns gravity off for.

    Args:
        tree: The URDF.
        held: Whether its base is part of the world; what stands on that needs no force.

    Raises:
        ModelError: A number of such a link's ``<inertial>`` is none.
    """
    found: dict[str, Wrench] = {}  # a file may say it twice
    standing = tree.rigid_groups(("fixed", "floating")) if held else {}
    for element in tree.robot.iterfind("gazebo"):
        name = element.get("reference", "")
        off = text_of(element, OFF) in YES or text_of(element, "gravity") in NO
        link = tree.links.get(name)
        inertial = None if link is None else link.find("inertial")
        mass = None if inertial is None else inertial.find("mass")
        if not off or inertial is None or mass is None or name == WORLD:
            continue
        if held and standing[name] == tree.root:
            continue
        at = Frame(name, tree.origin(inertial.find("origin"), f"link '{name}'")[0])
        found[name] = lifting(f"{name}_lift", at, float(mass.get("value", "0")), EARTH)
    return list(found.values())


def set_weightless(tree: UrdfTree, wrenches: Iterable[Wrench], gravity: Triple) -> list[Wrench]:
    """Turn gravity off for links all of whose weight a wrench takes, for no others; wrenches left.

    Args:
        tree: The URDF.
        wrenches: On its links.
        gravity: That of the model [m/s²].
    """
    for element in tree.robot.iterfind("gazebo[@reference]"):
        drop(element, OFF, "gravity")
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
    tree: UrdfTree, scope: Scope, joint: Xml.Element, ends: list[str]
) -> dict[str, float] | None:
    """Factors of the two joints of a gearbox; None where it does not say which these are."""
    base = text_of(joint, "gearbox_reference_body").rpartition(SCOPE)[2]
    turns = list[tuple[str, bool, Array]]()
    for link in ends:
        found = [
            (name, each)
            for name, each in tree.joints.items()
            if each.get("type") in TURNING and {end(each, e) for e in ENDS} == {base, link}
        ]
        if len(found) != 1:
            return None
        ((name, each),) = found
        along = scope.pose(end(each, "child")).R @ np.array(tree.axis(each))
        turns.append((name, end(each, "parent") == base, along))
    try:
        factors = gear_factors(scope, joint, joint.get("name", ""), turns)
    except ModelError:
        return None  # its axes are no joints'
    return factors if len(factors) == 2 and all(factors.values()) else None


def _loop(scope: Scope, joint: Xml.Element, name: str, digits: int | None) -> LoopJoint:
    """What closes a loop, joints at zero."""
    kind, place = KINDS[joint.get("type", "")], scope.pose_of(joint)
    links = [scope.joint_end(joint, which) for which in ENDS]
    ends = [(scope.pose(link).inverse @ place).on(link) for link in links]
    alongs: list[Along] = []
    if kind not in ("ball", "fixed"):
        alongs.append(along_in(scope, joint, "axis", place, name))
    if kind == "universal":
        alongs.append(Along(direction_in(scope, joint, "axis2", place, name)))
    pitch = screw_pitch(joint, name) if kind == "screw" else 0.0
    return loop_joint(name, kind, ends, alongs, pitch, digits)


def _link(tree: UrdfTree, joint: Xml.Element, which: str, where: str) -> str:
    name = text_of(joint, which)
    if name not in tree.links and name != WORLD:
        tree.fail(f"{where} has the {which} '{name}', which is no link; correct the name")
    return name
