"""Loops that stand in a YAML file beside a URDF: Gepetto's extended URDF, scikit-robot's closures.

Sources: Batto, de Matteis and Mansard, "Extended URDF" (arXiv 2504.04767), whose robots are in
Gepetto/example-parallel-robots; scikit-robot's loop_closures.yaml.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.joints import Frame, JointModel, LoopJoint, Triple
from bulletbridge.mechanism.frames import matrix_rpy
from bulletbridge.models.formats.urdf_tree import UrdfTree, end
from bulletbridge.models.model_spec import Z
from bulletbridge.models.strict_yaml import Node
from bulletbridge.models.urdf_file import is_file
from bulletbridge.models.yaml_text import read_yaml

CLOSURES = "loop_closures.yaml"
GEPETTO_KEYS = ("closed_loop", "type", "name_mot", "type_mot", "joint_name", "joint_type")
ROWS = {"6d": JointModel.WELD, "3d": JointModel.BALL}
UNIVERSAL = {"ujoint": "xy", "universal": "xy"} | {
    f"ujoint_{first}{second}": first + second
    for first in "xyz"
    for second in "xyz"
    if first != second
}
"""Axes of a universal joint by its type."""
RETYPED = ("spherical", "fixed", *UNIVERSAL)


class Retyped(NamedTuple):
    """A joint of the tree that is to be another one: kind, and the axes of a universal joint."""

    kind: str
    axes: str = ""


@dataclass
class Sidecar:
    """What a file beside a URDF says.

    Attributes:
        loops: What closes loops.
        actuated: Joints with a drive.
        held: Whether the base is part of the world.
        retyped: What joints of the tree are to be.
        notes: What is to be said about it.
    """

    loops: list[LoopJoint] = field(default_factory=lambda: [])
    actuated: list[str] = field(default_factory=lambda: [])
    held: bool = False
    retyped: dict[str, Retyped] = field(default_factory=lambda: {})
    notes: list[str] = field(default_factory=lambda: [])


def read_sidecars(tree: UrdfTree) -> Sidecar:
    """What the files beside a URDF say: ``<robot>.yaml`` of Gepetto, ``loop_closures.yaml``.

    Raises:
        LoopFileError: One cannot be understood; the message has line, key and remedy.
    """
    path = tree.path
    found = Sidecar()
    beside = path.with_suffix(".yaml")
    if is_file(beside):
        root = read_yaml(beside)
        if root.is_mapping() and root.table().keys() & {"closed_loop", "joint_type"}:
            _read_gepetto(tree, root, found)
    folders = [path.parent]
    if path.parent.name == "urdf":  # of a package
        folders += [path.parent.parent, path.parent.parent / "config"]
    beside = next((each / CLOSURES for each in folders if is_file(each / CLOSURES)), None)
    if beside is not None:
        _read_closures(tree, read_yaml(beside), found)
    return found


def _read_gepetto(tree: UrdfTree, root: Node, found: Sidecar) -> None:
    keys = root.mapping((), GEPETTO_KEYS)
    found.held = True
    found.notes.append(
        "the base is held, as Gepetto's loader has it without free_flyer;"
        " fixed_base=False (--floating-base) lets it float"
    )
    if "type_mot" in keys:
        found.notes.append(f"'type_mot' of {root.path.name} is left out: kinds of motors")
    pairs = list(keys["closed_loop"].items()) if "closed_loop" in keys else []
    kinds = _items(keys, "type")
    if len(kinds) != len(pairs):
        root.fail(
            f"'closed_loop' has {len(pairs)} pairs and 'type' {len(kinds)} entries; give one type,"
            " 6d or 3d, for each pair"
        )
    taken: set[str] = set()
    for pair, kind in zip(pairs, kinds, strict=True):
        ends = list(pair.items())
        if len(ends) != 2:
            pair.fail(f"has {len(ends)} frames; name two")
        rows = kind.text().lower()
        if rows not in ROWS:
            kind.fail(f"unknown type '{kind.text()}'; give 6d or 3d")
        a, b = (Frame(_link_of(tree, each)) for each in ends)
        name = _common(ends[0].text(), ends[1].text(), taken)
        found.loops.append(LoopJoint(name, ROWS[rows], a, b))
    _read_retyped(tree, root, keys, found)
    motors = keys.get("name_mot")
    if motors is not None:
        found.actuated += _motors(tree, motors, found.retyped)


def _read_retyped(tree: UrdfTree, root: Node, keys: dict[str, Node], found: Sidecar) -> None:
    names, kinds = _items(keys, "joint_name"), _items(keys, "joint_type")
    if len(names) != len(kinds):
        root.fail(f"'joint_name' has {len(names)} entries and 'joint_type' {len(kinds)}; pair them")
    for name, kind in zip(names, kinds, strict=True):
        joint = name.known(tree.joints, "joint ")
        said = kind.text().lower()
        if said not in RETYPED:
            kind.fail(f"unknown type '{kind.text()}'; there are {', '.join(RETYPED).upper()}")
        axes = UNIVERSAL.get(said, "")
        found.retyped[joint] = Retyped("universal" if axes else said, axes)


def _motors(tree: UrdfTree, node: Node, retyped: dict[str, Retyped]) -> list[str]:
    """Joints that are named, or those in whose names a single name occurs."""
    moving = [
        name
        for name, joint in tree.joints.items()
        if joint.get("type") not in ("fixed", "floating") and name not in retyped
    ]
    if not node.is_list():
        part = node.text()
        return [name for name in moving if part in name]
    return list(dict.fromkeys(each.known(moving, "joint ") for each in node.items()))


def _link_of(tree: UrdfTree, node: Node) -> str:
    """The link of a frame that is named by its link or by the joint that holds it."""
    links, joints = tree.links, tree.joints
    name = node.text()
    if name not in links and name in joints:
        return end(joints[name], "child")
    return node.known([*links, *joints], "frame ")


def _common(a: str, b: str, taken: set[str]) -> str:
    """What two names begin with; told apart from those that are taken."""
    n = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    name = a[:n].rstrip("_- .") or f"{a}_to_{b}"
    if name in taken:
        name = f"{a}_to_{b}"
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _read_closures(tree: UrdfTree, root: Node, found: Sidecar) -> None:
    """Hinges by point and axis in the root's frame, the robot's joints at zero."""
    keys = root.mapping((), ("closures", "dependent", "independent", "version", "root"))
    taken = {loop.name for loop in found.loops}
    for node in _items(keys, "closures"):
        entry = node.mapping(("link_a", "link_b", "point"), ("axis", "name", "type", "joint"))
        ends = [entry[key].known(tree.links, "link ") for key in ("link_a", "link_b")]
        point = np.array(entry["point"].triple())
        axis = entry["axis"].direction() if "axis" in entry else None
        a, b = (_frame_at(tree, link, point) for link in ends)
        name = entry["name"].text() if "name" in entry else _unused(f"{ends[0]}_{ends[1]}", taken)
        taken.add(name)
        model = JointModel.BALL if axis is None else JointModel.REVOLUTE
        found.loops.append(LoopJoint(name, model, a, b, axis or Z))
    found.actuated += [each.known(tree.joints, "joint ") for each in _items(keys, "independent")]


def _frame_at(tree: UrdfTree, link: str, point: np.ndarray) -> Frame:
    """The frame of a link that is at a point of the root's frame and has the root's axes."""
    R, p = tree.poses[link]
    x, y, z = (float(c) for c in R.T @ (point - p))
    at: Triple = (x, y, z)
    return Frame(link, at, matrix_rpy(R.T))


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _items(keys: dict[str, Node], name: str) -> list[Node]:
    return list(keys[name].items()) if name in keys else []
