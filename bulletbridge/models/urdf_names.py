"""Names of links and joints in URDF files, so that a loops file is checked before Bullet runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree

from bulletbridge.bullet.xml_file import read_xml
from bulletbridge.errors import ModelError
from bulletbridge.models.model_spec import BEAM, BodySpec
from bulletbridge.models.strict_yaml import Node, items_of

WORLD, BASE = "world", "base"
FIXED = ("fixed", "floating")
"""Kinds of joints without coordinates; Bullet makes floating ones fixed."""
SINGLE = ("revolute", "continuous", "prismatic")
"""Kinds of joints with one coordinate."""
COORDINATES = {"q": {"spherical": 4, BASE: 7}, "v": {"spherical": 3, BASE: 6}}
"""Number of numbers that the others start from."""


@dataclass(frozen=True)
class Names:
    """What a loops file may name."""

    links: frozenset[str]  # ``body/link`` when there are several robots; ``world`` is one
    joints: dict[str, str]  # kinds by name; a floating base is the joint ``base``
    fixed: frozenset[str]  # joints that have no coordinate
    # links by the joint that carries each
    carried: dict[str, str] = field(default_factory=lambda: {})
    held: frozenset[str] = frozenset()  # robots whose base Bullet holds, whatever is asked for

    def link(self, node: Node) -> None:
        """Require the name of a link.

        Raises:
            LoopFileError: There is none of this name; the message has the nearest.
        """
        name = node.text()
        if name not in self.links and name in self.carried:
            node.fail(f"'{name}' is a joint, not a link: its link is '{self.carried[name]}'")
        node.known(sorted(self.links), "link ")

    def joint(self, node: Node) -> str:
        """Require the name of a joint that moves; return its kind.

        Raises:
            LoopFileError: There is none of this name; the message has the nearest.
        """
        if node.text() in self.fixed:
            node.fail(f"joint '{node.text()}' is fixed in Bullet; name one that moves")
        moving = {link: joint for joint, link in self.carried.items() if joint in self.joints}
        if node.text() not in self.joints and node.text() in moving:
            said = f"its joint is '{moving[node.text()]}'"
            node.fail(f"'{node.text()}' is a link, not a joint: {said}")
        return self.joints[node.known(self.joints, "joint ")]


def read_names(bodies: Sequence[BodySpec]) -> Names | None:
    """The names in the robots' files; None when one is no URDF, which Bullet has to say."""
    links, joints, carried = {WORLD}, dict[str, str](), dict[str, str]()
    held = set[str]()
    for body in bodies:
        prefix = f"{body.name}/" if len(bodies) > 1 else ""
        try:
            robot = read_xml(Path(body.urdf))
        except ModelError:
            return None
        found = {link.get("name", "") for link in robot.iterfind("link")}
        if not found:
            return None
        links |= {prefix + name for name in found}
        if WORLD in found:  # what the reader calls such a link when it is not where the world is
            links.add(f"{body.name if prefix else robot.get('name', '')}/{WORLD}")
        for joint in robot.iterfind("joint"):
            name, child = joint.get("name", ""), joint.find("child")
            joints[prefix + name] = joint.get("type", "")
            if child is not None:
                carried[prefix + name] = prefix + child.get("link", "")
        children = {child.get("link") for child in robot.iterfind("joint/child")}
        if any(bullet_holds(x) for x in robot.iterfind("link") if x.get("name") not in children):
            held.add(body.name)
        elif not body.fixed_base:
            joints[f"{prefix}{BASE}"] = BASE
    fixed = frozenset(name for name, kind in joints.items() if kind in FIXED)
    return Names(
        frozenset(links),
        {name: k for name, k in joints.items() if name not in fixed},
        fixed,
        carried,
        frozenset(held),
    )


def bullet_holds(root: ElementTree.Element) -> bool:
    """Whether a root link stands in Bullet: a ``world`` without inertia, or a mass of zero."""
    mass = root.find("inertial/mass")
    return root.get("name") == WORLD if mass is None else float(mass.get("value", "1")) == 0.0


def check_names(root: Node, names: Names) -> None:
    """Hold every link and joint that a loops file names against what there is.

    Raises:
        LoopFileError: A name is unknown, or its joint takes other values; the message has line,
            column and the nearest name.
    """
    keys = root.table()
    for loop in items_of(keys, "loops"):
        entries = loop.table()
        _check_ends(entries, names)
    chains = {name: kind for name, kind in names.joints.items()}
    for beam in items_of(keys, "beams"):
        names = _with_beam(beam.table(), names)
    for joint in items_of(keys, "actuated"):
        names.joint(joint)
    for joint in keys["joints"].names() if "joints" in keys else ():
        if names.joint(joint) not in (*SINGLE, "spherical", BASE):
            _require_single(joint, names)
    for force in items_of(keys, "forces"):
        entries = force.table()
        if "joint" in entries:  # springs of a chain that is a beam may stay
            _require_single(entries["joint"], replace(names, joints=chains | names.joints))
        _check_ends(entries, names)
        for point in items_of(entries, "via"):
            entries = point.table()
            if "pulley" not in entries:
                names.link(entries.get("round", point).table()["link"])
    for wrench in items_of(keys, "wrenches"):
        _check_ends(wrench.table(), names)
    for key, values in (keys["start"].table() if "start" in keys else {}).items():
        given, sizes = values.table(), COORDINATES["v" if key == "v" else "q"]
        for joint in values.names():
            _require_count(given[joint.text()], names.joint(joint), sizes)


def _check_ends(entries: dict[str, Node], names: Names) -> None:
    """Require names of links and joints of a loop, spring or wrench."""
    for end in ("a", "b", "frame", "axes"):
        if end in entries:
            names.link(entries[end].table()["link"])
    for joint in entries["joints"].names() if "joints" in entries else ():
        _require_single(joint, names)


def _with_beam(entry: dict[str, Node], names: Names) -> Names:
    """The names when a chain is a beam: its joint for those of the chain."""
    names.link(entry["link"])
    link, modes = entry["link"].text(), int(entry["modes"].number()) if "modes" in entry else 2
    if f"{link}_bend_1" not in names.joints:
        entry["link"].fail(
            f"'{link}' is no chain of segments: there is no joint '{link}_bend_1'; write one with "
            "`bulletbridge flexible`"
        )
    joints = {n: kind for n, kind in names.joints.items() if not n.startswith(f"{link}_bend_")}
    return replace(names, joints=joints | {link + BEAM: f"beam of {modes}"})


def _require_single(node: Node, names: Names) -> None:
    kind = names.joint(node)
    if kind not in SINGLE:
        node.fail(f"'{node.text()}' is {kind}; name a revolute or prismatic joint")


def _require_count(value: Node, kind: str, sizes: dict[str, int]) -> None:
    count = len(value.numbers()) if value.is_list() else 1
    if kind.startswith("beam"):
        sizes = {kind: int(kind.split()[-1])}
    needed = sizes.get(kind, 1)
    if value.is_list() and count != needed or not value.is_list() and kind in sizes:
        said = "a number" if needed == 1 else f"a list of {needed} numbers"
        value.fail(f"must be {said} for a {kind} joint")
