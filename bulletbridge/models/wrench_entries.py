"""Read the entries of ``wrenches``: forces and torques from outside on links."""

from bulletbridge.constraints.force_elements import Wrench
from bulletbridge.constraints.joints import Triple
from bulletbridge.constraints.motion import Components
from bulletbridge.models.loop_entries import read_effort, read_frame
from bulletbridge.models.strict_yaml import Node

REQUIRED, OPTIONAL = ("name", "frame"), ("force", "torque", "axes")


def read_wrench(node: Node) -> Wrench:
    """A wrench, constant or by signals of time.

    Raises:
        LoopFileError: An entry is wrong; the message names line, key and remedy.
    """
    keys = node.mapping(REQUIRED, OPTIONAL)
    pushes = {part: _push(keys[part]) for part in ("force", "torque") if part in keys}
    if all(push == (0.0, 0.0, 0.0) for push in pushes.values()):
        node.fail("exerts nothing; give a force or a torque")
    axes = read_frame(keys["axes"]) if "axes" in keys else None
    return Wrench(read_frame(keys["frame"]), axes=axes, name=keys["name"].text(), **pushes)


def _push(node: Node) -> Triple | Components:
    """Three numbers, or functions of time in the places of some."""
    parts = [read_effort(item) for item in node.items()]
    if len(parts) != 3:
        node.fail(f"must be three numbers or signals [x, y, z], not {len(parts)}")
    x, y, z = parts
    if callable(x) or callable(y) or callable(z):
        return Components(x, y, z)
    return x, y, z
