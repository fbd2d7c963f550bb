"""Joints that mimic another one, as couplings."""

import math
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree as Xml

from bulletbridge.constraints.joints import Coupling
from bulletbridge.errors import nearest
from bulletbridge.models.formats.attaching_plugins import (
    PLUGIN,
    attachment,
    closing_joint,
    coupled_joints,
    followed_note,
    following,
    uncoupled_note,
)
from bulletbridge.models.formats.urdf_tree import MOVING, UrdfTree

TAGS = ("mimic", "drake:mimic")
ROUND_OFF = 1e-6
"""Part of a range by which limits of joints that mimic each other may differ unmentioned."""


class Mimic(NamedTuple):
    """Position of a joint: ``multiplier`` * position of ``joint`` + ``offset``."""

    joint: str
    multiplier: float
    offset: float

    def positions(self, limits: tuple[float, float]) -> tuple[float, float]:
        """Lowest and highest position while the other joint goes through its range."""
        low, high = sorted(self.multiplier * x + self.offset for x in limits)
        return low, high


def mimics_of(tree: UrdfTree) -> dict[str, Mimic]:
    """Which joint follows which, chains resolved: those that are followed follow no other.

    A joint that mimics one that does not exist moves freely, as ``loose_mimics`` tells. One that
    does not move has no position but zero: what mimics it stays at its offset.

    Raises:
        ModelError: A joint mimics itself, or in a circle; or its numbers are none.
    """
    found: dict[str, Mimic] = {}
    joints = tree.joints
    for name, element in _elements(tree).items():
        where, other = f"joint '{name}'", element.get("joint", "")
        multiplier = tree.number(element, "multiplier", 1.0, where)
        offset = tree.number(element, "offset", 0.0, where)
        offset -= multiplier * tree.number(element, "reference", 0.0, where)  # a word of SDF's
        if other in joints:
            moves = joints[other].get("type") in MOVING
            found[name] = Mimic(other, multiplier if moves else 0.0, offset)
    return {name: _resolve(tree, name, found) for name in found}


def loose_mimics(tree: UrdfTree) -> list[str]:
    """What is to be said of joints that mimic one that does not exist, or does not move."""
    said: list[str] = []
    joints = tree.joints
    for name in _independent(tree):
        if any(joints[name].find(tag) is not None for tag in TAGS):
            said.append(
                f"joint '{name}' has a <mimic>, which mimic=\"false\" in <ros2_control> takes back:"
                " it moves freely"
            )
    for name, element in _elements(tree).items():
        other = element.get("joint", "")
        if other not in joints:
            others = [each for each in joints if each != name]
            alike = [each for each in others if other and each.endswith(other)]  # a prefix more
            hint = nearest(name, alike, most=1) or nearest(other, others, most=1)
            lost = f"joint '{name}' mimics '{other}', which is no joint: it moves freely"
            said.append(f"{lost}; {hint}" if hint else lost)
        elif joints[other].get("type") not in MOVING:
            kind = joints[other].get("type")
            said.append(f"joint '{name}' mimics '{other}', which is {kind}: it stays at its offset")
    return said


def _elements(tree: UrdfTree) -> dict[str, Xml.Element]:
    """What says that a joint mimics another, by the joint, of all joints that move."""
    elsewhere = _of_gazebo(tree) | _of_control(tree)
    alone = _independent(tree)
    moving = [
        name
        for name, joint in tree.joints.items()
        if joint.get("type") in MOVING and name not in alone
    ]
    found: dict[str, Xml.Element] = {}
    for name in moving:
        joint = tree.joints[name]
        own = next((each for tag in TAGS for each in joint.findall(tag)), elsewhere.get(name))
        if own is not None:
            found[name] = own
    for name, element in _of_plugins(tree):
        line = [element.get("joint", "")]
        while line[-1] in found and line[-1] not in (name, *line[:-1]):
            line.append(found[line[-1]].get("joint", ""))
        if name in moving and name not in found and name not in line:
            found[name] = element
    return found


def _of_plugins(tree: UrdfTree) -> list[tuple[str, Xml.Element]]:
    """The same of Gazebo's plugins called mimic_joint."""
    found = [following(plugin) for plugin in tree.robot.iterfind("gazebo/plugin")]
    return [each for each in found if each is not None and each[1].get("joint") in tree.joints]


def _of_gazebo(tree: UrdfTree) -> dict[str, Xml.Element]:
    """The same of ``<gazebo reference="JOINT">``, in URDF's words or SDF's, as ``<mimic>``."""
    found: dict[str, Xml.Element] = {}
    for element in tree.robot.iterfind("gazebo[@reference]"):
        for each in (*element.findall("axis/mimic"), *element.findall("mimic")):
            keys = ("joint", "multiplier", "offset", "reference")
            said = {key: each.get(key) or (each.findtext(key) or "").strip() for key in keys}
            numbers = {key: text for key, text in said.items() if text}
            found[element.get("reference", "")] = Xml.Element("mimic", numbers)
    return found


def _of_control(tree: UrdfTree) -> dict[str, Xml.Element]:
    """The same of joints in ``<ros2_control>``, whose parameters say it, as ``<mimic>``."""
    found: dict[str, Xml.Element] = {}
    for joint in tree.robot.iterfind("ros2_control/joint"):
        said = {each.get("name", ""): (each.text or "").strip() for each in joint.findall("param")}
        if said.get("mimic"):
            numbers = {key: said[key] for key in ("multiplier", "offset") if said.get(key)}
            found[joint.get("name", "")] = Xml.Element("mimic", {"joint": said["mimic"]} | numbers)
    return found


def _independent(tree: UrdfTree) -> list[str]:
    """Joints of which ``<ros2_control>`` says that they follow none, whatever says otherwise."""
    said = {
        joint.get("name", "")
        for joint in tree.robot.iterfind("ros2_control/joint")
        if joint.get("mimic", "").strip().lower() == "false"
    }
    return [name for name in tree.joints if name in said]


def plugin_notes(tree: UrdfTree) -> list[str]:
    """What is to be said of Gazebo's plugins that join links, or joints that nothing else couples.

    Those that are not called mimic_joint do what is not in the file.
    """
    said: list[str] = []
    coupled = _elements(tree)
    by_plugin = [f"'{name}'" for name, element in coupled.items() if element.tag == PLUGIN]
    if by_plugin:
        said.append(followed_note(by_plugin))
    for plugin in tree.robot.iterfind("gazebo/plugin"):
        both = coupled_joints(plugin)
        stands = both[1] in tree.joints and tree.joints[both[1]].get("type") not in MOVING
        if both[1] and not stands and not coupled.keys() & set(both):
            said.append(uncoupled_note(plugin))
        ends = [(plugin.findtext(tag) or "").strip() for tag in ("parent", "child")]
        read = attachment(plugin) is not None or closing_joint(plugin) is not None
        joined = not read and all(link in tree.links for link in ends)
        if both[0] not in tree.joints and joined:
            said.append(
                f"a Gazebo plugin joins '{ends[0]}' and '{ends[1]}' by '{both[0]}', and is left"
                " out, for how is not in the file: give it a <gazebo><joint> or a <loop_joint>"
            )
    return said


def prefixed(mimics: Mapping[str, Mimic], prefix: str) -> dict[str, Mimic]:
    """The same of joints whose names begin with that of their robot."""
    return {
        prefix + name: mimic._replace(joint=prefix + mimic.joint) for name, mimic in mimics.items()
    }


def couplings_of(mimics: Mapping[str, Mimic], taken: frozenset[str]) -> list[Coupling]:
    """Couplings, as constraints, of joints that follow others.

    Args:
        mimics: Which joint follows which.
        taken: Names that other constraints have.
    """
    made: list[Coupling] = []
    for name, mimic in mimics.items():
        said = f"{name}_mimic"
        while said in taken:
            said += "_"
        coefficients = {name: 1.0}
        if mimic.multiplier != 0.0:
            coefficients[mimic.joint] = -mimic.multiplier
        made.append(Coupling(said, coefficients, mimic.offset))
    return made


def limit_notes(tree: UrdfTree, mimics: Mapping[str, Mimic]) -> list[str]:
    """What is to be said where a joint's limits end the range of the one that it mimics."""
    said: list[str] = []
    for name, mimic in mimics.items():
        own, driver = tree.limits(tree.joints[name]), tree.limits(tree.joints[mimic.joint])
        if own is None or driver is None or not mimic.multiplier:
            continue
        low, high = mimic.positions(driver)
        if max(own[0] - low, high - own[1]) > ROUND_OFF * (1.0 + high - low):
            said.append(
                f"joint '{name}' mimics '{mimic.joint}', whose range takes it from {low:.4g} to"
                f" {high:.4g}, but its own limits are {own[0]:.4g} to {own[1]:.4g}: the narrower"
                " ones hold"
            )
    return said


def _resolve(tree: UrdfTree, name: str, found: Mapping[str, Mimic]) -> Mimic:
    multiplier, offset, line, joint = 1.0, 0.0, [name], name
    while joint in found:
        mimic = found[joint]
        offset += multiplier * mimic.offset
        multiplier *= mimic.multiplier
        joint = mimic.joint
        if joint in line:
            circle = " -> ".join([*line[line.index(joint) :], joint])
            tree.fail(f"joints mimic each other in a circle: {circle}; let one of them lead")
        line.append(joint)
    if not (math.isfinite(multiplier) and math.isfinite(offset)):
        tree.fail(f"joint '{name}' mimics '{joint}' with numbers beyond those of a computer")
    return Mimic(joint, multiplier, offset)
