"""Plugins of Gazebo that join one link to another, or have one joint follow another.

That is how loops are closed where joints make a tree. Sources: DetachableJoint of gz-sim, which
attaches when the simulation starts, and AttachLinks of gz_attach_links (Kermorgant). Both fix the
child where it stands. ClosedLoopPlugin of pegasus_gazebo_plugins puts a hinge there, whose axis is
in its source alone. Of plugins that couple joints, those called mimic_joint
(roboticsgroup_gazebo_plugins and its like) say which one leads; in others by the same words either
does.
"""

from collections.abc import Iterable
from typing import NamedTuple
from xml.etree import ElementTree as Xml

from bulletbridge.models.formats.robot import listed

MODEL = "__model__"
"""What plugins and poses call the model that they are in."""
PLUGINS = {"DetachableJoint": ("parent_link", "child_link"), "AttachLinks": ("parent", "child")}
"""What plugins call the links, by the end of their names."""
CLOSING = "closed_loop_plugin"
"""What is in the file name of the plugin that puts a hinge."""

FOLLOWING = "mimic_joint"
"""What is in the file name of plugins in which one joint follows another, also with a hyphen."""
PLUGIN = "plugin"


class Attachment(NamedTuple):
    """Two links that a plugin fixes to each other."""

    parent: str  # one of the model that has the plugin
    child: str  # the other one
    model: str  # the child's model as the plugin has it; nothing or ``__model__`` is its own

    def is_in(self, name: str) -> bool:
        """Whether both are in a model of that name, which has the plugin."""
        return self.model in ("", MODEL, name)

    def left_out(self, name: str) -> str:
        """What is to be said where the child's model is not there."""
        return (
            f"a Gazebo plugin fixes '{self.parent}' to '{self.child}' of '{self.model}', which is"
            f" not in this file: left out; if that is this robot, call it '{name}' there"
        )


def attachment(plugin: Xml.Element) -> Attachment | None:
    """What a plugin fixes; None for any other one."""
    tags = PLUGINS.get(plugin.get("name", "").rpartition("::")[2])
    if tags is None:
        return None
    parent, child = ((plugin.findtext(tag) or "").strip() for tag in tags)
    return Attachment(parent, child, (plugin.findtext("child_model") or "").strip())


def closing_joint(plugin: Xml.Element) -> Xml.Element | None:
    """The joint by which a plugin closes a loop, as one of Gazebo's; None for any other plugin.

    It is a ball for the plugin's hinge, which is the same where hinges are parallel, at the child's
    origin unless the plugin gives a place in the child.
    """
    if CLOSING not in plugin.get("filename", ""):
        return None
    joint = Xml.Element("joint", name=(plugin.findtext("joint") or "").strip(), type="ball")
    for tag in ("parent", "child"):
        Xml.SubElement(joint, tag).text = (plugin.findtext(tag) or "").strip()
    Xml.SubElement(joint, "pose").text = f"{plugin.findtext('position') or '0 0 0'} 0 0 0"
    return joint


def coupled_joints(plugin: Xml.Element) -> tuple[str, str]:
    """The joint that leads and the one that follows it by a plugin, empty where it names none.

    Care-O-bot's plugin has it the other way round: its ``jointName`` follows.
    """
    first, own, other = (
        (plugin.findtext(tag) or "").strip() for tag in ("joint", "jointName", "mimicJoint")
    )
    return (first, other) if first or not own else (other, own)


def following(plugin: Xml.Element) -> tuple[str, Xml.Element] | None:
    """The joint that a plugin has follow, and which one how, as ``<mimic>``; None for any other."""
    leader, name = coupled_joints(plugin)
    called = plugin.get("filename", "").replace("-", "_")
    if FOLLOWING not in called or not leader or not name:
        return None
    numbers = {key: (plugin.findtext(key) or "").strip() for key in ("multiplier", "offset")}
    said = {key: text for key, text in numbers.items() if text}
    return name, Xml.Element(PLUGIN, {"joint": leader} | said)


def followed_note(names: Iterable[str]) -> str:
    """What is to be said of joints that follow by plugins."""
    return (
        f"{listed(names)} follow as Gazebo's plugin mimic_joint has it, exactly here; its gains and"
        " bounds of force are left out"
    )


def uncoupled_note(plugin: Xml.Element) -> str:
    """What is to be said of a plugin that couples joints in a way that is not in the file."""
    leader, name = coupled_joints(plugin)
    return (
        f"a Gazebo plugin couples '{leader}' and '{name}' and is left out: give the joint that"
        " follows a <mimic>"
    )


def hinged_note(closing: Xml.Element, remedy: str) -> str:
    """What is to be said of a plugin's ``closing_joint``."""
    return (
        f"a Gazebo plugin hinges '{closing.findtext('child')}' to"
        f" '{closing.findtext('parent')}' about an axis that is not in the file: a ball, which is"
        f" the same where hinges are parallel; elsewhere give {remedy}"
    )
