"""Links that a URDF has for Gazebo alone: <gazebo><link>, in SDF's words, and what holds them.

Gazebo makes SDF of the URDF and puts in what <gazebo> holds, so such a link is one of the robot's,
placed in the model's frame, which is the root's, unless it says else. Steering rods and levers that
no tree can have are written so.
"""

from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.models.formats.extension import Extension
from bulletbridge.models.formats.gazebo_joints import ENDS, OFF, scope_of
from bulletbridge.models.formats.robot import Joint, Link, Pose, free_name, left_out, told
from bulletbridge.models.formats.sdf import KINDS, along_in, inertial_in
from bulletbridge.models.formats.sdf_frames import Scope, is_true, text_of
from bulletbridge.models.formats.sdf_shapes import read_shapes
from bulletbridge.models.formats.urdf_text import joint_element, link_element
from bulletbridge.models.formats.urdf_tree import UrdfTree
from bulletbridge.models.model_spec import JointForce

HOLDING = {
    "fixed": "fixed",
    "revolute": "revolute",
    "prismatic": "prismatic",
    "ball": "spherical",
}
"""Kinds of joints that a link may hang on, the first ones first, and what a URDF calls them."""
SAME = 1e-12
"""Distance of two points that are one [m]."""


def take_gazebo_links(tree: UrdfTree) -> Extension:
    """Make links in <gazebo> links of the robot, each on one of the joints there.

    Raises:
        ModelError: One hangs on no joint that a tree can have, or its numbers are none.
    """
    waiting = {part.get("name", ""): part for part in tree.robot.iterfind("gazebo/link")}
    if not waiting:
        return Extension()
    scope = scope_of(tree, ("link", "joint", "frame"))
    forces = list[JointForce]()
    assumed, lost = list[str](), dict[str, list[str]]()
    taken = list[str]()
    while found := _holding(tree, scope, waiting):
        joint, name, other = found
        for gazebo in tree.robot.iterfind("gazebo"):
            for part in [part for part in gazebo if part in (waiting[name], joint)]:
                gazebo.remove(part)
        part = waiting.pop(name)
        link = Link(name, inertial_in(part, name, scope, tree.path.parent, assumed))
        read_shapes(part, link, scope, tree.path.parent, lost)
        tree.robot.append(link_element(link, tree.path.parent))
        weighs = text_of(part, "gravity")
        if weighs and not is_true(weighs):
            Xml.SubElement(Xml.SubElement(tree.robot, "gazebo", reference=name), OFF).text = "true"
        forces += _hang(tree, scope, joint.get("name", ""), name, other)
        taken.append(name)
    notes = told({"links in <gazebo> are links of the robot: {}": taken})
    notes += scope.notes
    notes += told({"without <inertial>, so 1 kg and 1 kg m², as SDF has it: {}": assumed})
    notes += left_out(lost)
    loose = [name for name in waiting if not any(name in ends for ends in _ends(scope).values())]
    notes += told({"links in <gazebo> that no joint holds are left out: {}": loose})
    for name in (name for name in waiting if name not in loose):
        tree.fail(
            f"<gazebo> link '{name}' hangs on no {' or '.join(HOLDING)} joint in <gazebo>; join it"
            " to the robot by one of these"
        )
    return Extension(forces=forces, notes=notes)


def _ends(scope: Scope) -> dict[str, list[str]]:
    """Names of what each joint joins."""
    return {
        name: [scope.joint_end(part, which) for which in ENDS]
        for name, part in scope.joints.items()
    }


def _holding(
    tree: UrdfTree, scope: Scope, waiting: dict[str, Xml.Element]
) -> tuple[Xml.Element, str, str] | None:
    """The next joint that a link can hang on, that link, and what it then hangs on."""
    links, ends = tree.links, _ends(scope)
    found: list[tuple[int, Xml.Element, str, str]] = []
    for joint in tree.robot.iterfind("gazebo/joint"):
        kind = KINDS.get(joint.get("type", ""), "")
        if kind not in HOLDING:
            continue
        for name, other in (pair := ends[joint.get("name", "")], pair[::-1]):
            if name in waiting and other in links:
                found.append((list(HOLDING).index(kind), joint, name, other))
    return min(found, key=lambda each: each[0])[1:] if found else None


def _hang(tree: UrdfTree, scope: Scope, called: str, name: str, other: str) -> list[JointForce]:
    """Add the joint that holds a link; springs and friction of it, for which URDF has no words."""
    part = scope.joints[called]
    kind = HOLDING[KINDS[part.get("type", "")]]
    at, own, parent = scope.pose_of(part), scope.pose(name), scope.pose(other)
    called = free_name(called, tree.joints)
    joint = Joint(called, kind, other, name)
    forces: list[JointForce] = []
    if kind in ("revolute", "prismatic"):
        along = along_in(scope, part, "axis", at, called)
        # seen from the other link a joint moves the other way
        along = along if scope.joint_end(part, "child") == name else along.reversed
        joint.axis = own.R.T @ at.R @ along.axis
        joint.limits, joint.effort = along.limits, along.effort
        joint.velocity, joint.damping = along.velocity, along.damping
        if along.stiffness or along.friction:
            spring = {"stiffness": along.stiffness, "rest": along.rest}
            forces.append(JointForce(called, friction=along.friction, **spring))
    place = Pose(own.R, at.p)
    if kind in ("fixed", "prismatic") or np.abs(place.p - own.p).max() <= SAME:
        place = own
    else:  # links keep their frames, in which other joints are given
        joint.child = free_name(f"{name}_pin", tree.links)
        tree.robot.append(link_element(Link(joint.child), tree.path.parent))
        onto = Joint(free_name(f"{joint.child}_fixed", tree.joints), "fixed", joint.child, name)
        onto.place = place.inverse @ own
        tree.robot.append(joint_element(onto))
    joint.place = parent.inverse @ place
    tree.robot.append(joint_element(joint))
    return forces
