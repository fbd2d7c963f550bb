"""Loops that stand in a YAML file beside a URDF: Gepetto's extended URDF, loop_closures.yaml.

Sources: Batto, de Matteis and Mansard, "Extended URDF" (arXiv 2504.04767), whose robots are in
Gepetto/example-parallel-robots; loop_closures.yaml of scikit-robot, and that of
Humanoid-Project/robonex-description, which has frames on both links.
"""

import re
from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.joints import Frame, JointModel, LoopJoint
from bulletbridge.errors import nearest
from bulletbridge.models.formats.extension import Extension, Retyped
from bulletbridge.models.formats.loop_tags import seen_from_both
from bulletbridge.models.formats.robot import Pose, free_name, listed
from bulletbridge.models.formats.urdf_tree import UrdfTree, X, end
from bulletbridge.models.model_spec import Z
from bulletbridge.models.strict_yaml import Node, items_of
from bulletbridge.models.urdf_file import is_file
from bulletbridge.models.yaml_text import read_yaml

CLOSURES = "loop_closures.yaml"
GEPETTO = "robot"
"""Stem of Gepetto's file, whatever the URDF is called."""
SPHERICAL = ("rotule_name", "name_spherical")
"""Keys of older files: what names of spherical joints have in them."""
MARKS = ("closed_loop", "joint_type", "name_closedloop", *SPHERICAL)
"""Keys by which Gepetto's file is known; loops of older ones have names with a word in them."""
GEPETTO_KEYS = (
    *("closed_loop", "type", "name_mot", "type_mot", "joint_name", "joint_type"),
    *("name_closedloop", "closed_loop_number", *SPHERICAL),
)
CLOSURE_KEYS = (
    *("closures", "dependent", "independent", "version", "root"),
    *("ball_loops", "pin_loops", "ball_upgrades", "actuated_joints"),
)
OTHERWISE = "6d"
"""What Gepetto's loader takes where no type is given."""
ROWS = {"6d": JointModel.WELD, "3d": JointModel.BALL}
UNIVERSAL = {"ujoint": "xy", "universal": "xy"} | {
    f"ujoint_{first}{second}": first + second
    for first in "xyz"
    for second in "xyz"
    if first != second
}
"""Axes of a universal joint by its type."""
RETYPED = ("spherical", "fixed", *UNIVERSAL)


class Pair(NamedTuple):
    """What closes one loop: the names of its ends as they stand in the file, and their links."""

    said: tuple[str, str]
    links: tuple[str, str]


def read_sidecars(tree: UrdfTree) -> Extension:
    """What the files beside a URDF say: ``<robot>.yaml`` of Gepetto, ``loop_closures.yaml``.

    Raises:
        LoopFileError: One cannot be understood; the message has line, key and remedy.
    """
    path = tree.path
    found = Extension()
    beside = path.with_suffix(".yaml")
    if not is_file(beside) and not is_file(path.with_stem(GEPETTO)):
        beside = beside.with_stem(GEPETTO)
    if is_file(beside):
        root = read_yaml(beside)
        if root.is_mapping() and root.table().keys() & set(MARKS):
            _read_gepetto(tree, root, found)
    folders = [path.parent]
    if path.parent.name == "urdf":  # of a package
        folders += [path.parent.parent, path.parent.parent / "config"]
    beside = next((each / CLOSURES for each in folders if is_file(each / CLOSURES)), None)
    if beside is not None:
        _read_closures(tree, read_yaml(beside), found)
    return found


def _read_gepetto(tree: UrdfTree, root: Node, found: Extension) -> None:
    keys = root.table()
    found.held = True
    found.notes.append(
        "the base is held, as Gepetto's loader has it without free_flyer;"
        " fixed_base=False (--floating-base) lets it float"
    )
    if "type_mot" in keys:
        found.notes.append(f"'type_mot' of {root.path.name} is left out: kinds of motors")
    _note_unknown(root, GEPETTO_KEYS, found)
    pairs = _pairs(tree, keys)
    taken: set[str] = set()
    for pair, model in zip(pairs, _kinds(root, keys, len(pairs), found), strict=True):
        name = _common(*pair.said, taken)
        a, b = map(Frame, pair.links)
        found.loops.append(LoopJoint(name, model, a, b))
    _read_retyped(tree, root, keys, found)
    if "name_mot" in keys:
        _read_motors(tree, keys["name_mot"], found)


def _note_unknown(root: Node, known: tuple[str, ...], found: Extension) -> None:
    """Tell of keys that nobody here knows."""
    keys = root.table()
    unknown = [key for key in keys if key not in known]
    for key in unknown:
        hint = nearest(key, known, most=1, cutoff=0.8)
        if hint:
            keys[key].fail(f"unknown key '{key}'; {hint}")
    if unknown:
        found.notes.append(f"left out of {root.path.name}, for it is not known: {listed(unknown)}")


def _pairs(tree: UrdfTree, keys: dict[str, Node]) -> list[Pair]:
    """Frames that close loops, by name; in older files links with a word and a number in common."""
    pairs: list[Pair] = []
    for pair in items_of(keys, "closed_loop"):
        ends = list(pair.items())
        if len(ends) != 2:
            pair.fail(f"has {len(ends)} frames; name two")
        a, b = ends
        pairs.append(Pair((a.text(), b.text()), (_link_of(tree, a), _link_of(tree, b))))
    if "closed_loop" in keys or "name_closedloop" not in keys:
        return pairs
    word = keys["name_closedloop"]
    found: dict[str, list[str]] = {}
    for link in tree.links:
        match = re.search(rf"{re.escape(word.text())}_?(\d+)", link)
        if match and "frame" not in link:
            found.setdefault(match[1], []).append(link)
    pairs = [Pair((a, b), (a, b)) for a, b in (ends for ends in found.values() if len(ends) == 2)]
    if not pairs:
        word.fail(f"no two links have '{word.text()}' and one number in their names; name them")
    return pairs


def _kinds(root: Node, keys: dict[str, Node], pairs: int, found: Extension) -> list[JointModel]:
    """The joint model of each pair: one for all, or a list as long."""
    given = keys.get("type")
    if given is None:
        if pairs:
            found.notes.append(
                f"{root.path.name} gives no 'type' of its loops: {OTHERWISE}, as for its loader"
            )
        return [ROWS[OTHERWISE]] * pairs
    kinds = list(given.items()) if given.is_list() else [given] * pairs
    if len(kinds) != pairs:
        root.fail(
            f"'closed_loop' has {pairs} pairs and 'type' {len(kinds)} entries; give one type,"
            " 6d or 3d, for each pair"
        )
    said = [kind.text().lower() for kind in kinds]
    unknown = dict.fromkeys(f"'{each}'" for each in said if each not in ROWS)
    if unknown:
        found.notes.append(
            f"loops of type {listed(unknown)} are {OTHERWISE}, as for Gepetto's loader, which knows"
            " 6d and 3d"
        )
    return [ROWS.get(each, ROWS[OTHERWISE]) for each in said]


def _read_retyped(tree: UrdfTree, root: Node, keys: dict[str, Node], found: Extension) -> None:
    names, kinds = items_of(keys, "joint_name"), items_of(keys, "joint_type")
    if len(names) != len(kinds):
        root.fail(f"'joint_name' has {len(names)} entries and 'joint_type' {len(kinds)}; pair them")
    moving, absent = _moving(tree), list[Node]()
    for name, kind in zip(names, kinds, strict=True):
        joint, said = name.text(), kind.text().lower()
        if said not in RETYPED:
            kind.fail(f"unknown type '{kind.text()}'; there are {', '.join(RETYPED).upper()}")
        if joint not in moving:
            absent.append(name)
            continue
        axes = UNIVERSAL.get(said, "")
        found.retyped[joint] = Retyped("universal" if axes else said, axes)
    _note_absent("joint_name", absent, moving, found)
    for key in SPHERICAL:
        for joint in moving:
            if key in keys and keys[key].text() in joint:
                found.retyped[joint] = Retyped("spherical")


def _read_motors(tree: UrdfTree, node: Node, found: Extension) -> None:
    """Joints that are named, or those in whose names a single name occurs."""
    moving = [name for name in _moving(tree) if name not in found.retyped]
    if not node.is_list():
        found.actuated += [name for name in moving if node.text() in name]
        return
    given = list(node.items())
    found.actuated += dict.fromkeys(each.text() for each in given if each.text() in moving)
    _note_absent("name_mot", [each for each in given if each.text() not in moving], moving, found)


def _moving(tree: UrdfTree) -> list[str]:
    """Joints that Gepetto's loader knows."""
    still = ("fixed", "floating")
    return [name for name, joint in tree.joints.items() if joint.get("type") not in still]


def _note_absent(key: str, absent: list[Node], moving: list[str], found: Extension) -> None:
    """Tell what a list names that no joint is called."""
    if absent:
        hint = nearest(absent[0].text(), moving, most=1, cutoff=0.8)
        found.notes.append(
            f"'{key}' of {absent[0].path.name} names what is no joint that moves, and is left out"
            f" there: {listed(each.text() for each in absent)}" + (f"; {hint}" if hint else "")
        )


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
        name = free_name(f"{a}_to_{b}", taken)
    taken.add(name)
    return name


def _read_closures(tree: UrdfTree, root: Node, found: Extension) -> None:
    """Hinges by point and axis in the root's frame, joints at zero, or by points of both links."""
    if not root.is_mapping():
        root.mapping()
    keys = root.table()
    _note_unknown(root, CLOSURE_KEYS, found)
    taken = {loop.name for loop in found.loops}
    for node in items_of(keys, "closures"):
        entry = node.mapping(("link_a", "link_b", "point"), ("axis", "name", "type", "joint"))
        ends = [entry[key].known(tree.links, "link ") for key in ("link_a", "link_b")]
        point = np.array(entry["point"].triple())
        axis = entry["axis"].direction() if "axis" in entry else None
        a, b = (_frame_at(tree, link, point) for link in ends)
        name = entry["name"].text() if "name" in entry else free_name(f"{ends[0]}_{ends[1]}", taken)
        taken.add(name)
        model = JointModel.BALL if axis is None else JointModel.REVOLUTE
        found.loops.append(LoopJoint(name, model, a, b, axis or Z))
    for key, model in (("ball_loops", JointModel.BALL), ("pin_loops", JointModel.REVOLUTE)):
        for node in items_of(keys, key):
            entry = node.mapping(("name", "parent", "child"), ("parent_xyz", "child_xyz", "axis"))
            a, b = (_point_of(tree, entry, end) for end in ("parent", "child"))
            axes = Z, None
            if model is JointModel.REVOLUTE:
                axis = entry["axis"].direction() if "axis" in entry else X
                axes = seen_from_both(tree, axis, (a, b))
            found.loops.append(LoopJoint(entry["name"].text(), model, a, b, *axes))
    for node in items_of(keys, "ball_upgrades"):
        found.retyped[node.known(tree.joints, "joint ")] = Retyped("spherical")
    found.actuated += [each.known(tree.joints, "joint ") for each in items_of(keys, "independent")]
    driven = items_of(keys, "actuated_joints")
    found.actuated += [each.text() for each in driven if each.text() in tree.joints]
    absent = [each for each in driven if each.text() not in tree.joints]
    _note_absent("actuated_joints", absent, list(tree.joints), found)


def _point_of(tree: UrdfTree, entry: dict[str, Node], end: str) -> Frame:
    """The frame of a link at its ``xyz``, which is its origin where none is given."""
    link, at = entry[end].known(tree.links, "link "), f"{end}_xyz"
    return Frame(link, entry[at].triple() if at in entry else (0.0, 0.0, 0.0))


def _frame_at(tree: UrdfTree, link: str, point: np.ndarray) -> Frame:
    """The frame of a link that is at a point of the root's frame and has the root's axes."""
    return (tree.poses[link].inverse @ Pose(p=point)).on(link)
