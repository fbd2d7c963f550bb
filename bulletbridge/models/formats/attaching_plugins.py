"""Plugins of Gazebo that fix one link to another: how loops are closed where joints make a tree.

Sources: DetachableJoint of gz-sim, which attaches when the simulation starts, and AttachLinks of
gz_attach_links (Kermorgant). Both fix the child where it stands.
"""

from typing import NamedTuple
from xml.etree import ElementTree as Xml

MODEL = "__model__"
"""What plugins and poses call the model that they are in."""
PLUGINS = {"DetachableJoint": ("parent_link", "child_link"), "AttachLinks": ("parent", "child")}
"""What plugins call the links, by the end of their names."""


class Attachment(NamedTuple):
    """Two links that a plugin fixes to each other.

    Attributes:
        parent: One of the model that has the plugin.
        child: The other one.
        model: The child's model as the plugin has it; nothing or ``__model__`` is its own.
    """

    parent: str
    child: str
    model: str

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
