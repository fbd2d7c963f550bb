"""A URDF that Bullet can load, made from one that it cannot: meshes, joints, links."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.bullet.xml_file import drop, write_xml
from bulletbridge.constraints.joints import Triple
from bulletbridge.mechanism.angles import OF_LIMITS, degrees_notes
from bulletbridge.models.formats.extension import Retyped
from bulletbridge.models.formats.robot import listed, told
from bulletbridge.models.formats.urdf_text import MOMENTS, exact, inertial_element
from bulletbridge.models.formats.urdf_tree import MOVING, RANGE, UrdfTree, end
from bulletbridge.models.mesh_places import find_named, why_no_mesh
from bulletbridge.models.model_spec import ORIGIN
from bulletbridge.models.urdf_file import NUMBERS
from bulletbridge.models.urdf_names import WORLD

READABLE = (".stl", ".obj", ".dae", ".cdf", ".vtk")
"""Endings of the meshes that Bullet reads; another one, or a missing file, ends its loading."""
MESHES = "mesh", "cdf"
"""Shapes that are files; the latter is Bullet's own, of distances."""
MOST_NAMED = 4
"""Names that a note lists."""
SHAPES = ("box", "sphere", "cylinder", "capsule", "plane", *MESHES)
"""Shapes that Bullet knows in a URDF."""
UNIT, SHORTEST = 1e-6, 1e-9
"""Error of an axis' length that may stay, and what has no direction."""
AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}
UNBOUNDED = "1e9"
"""Effort and velocity, which a URDF has to say, where nothing limits them [N, m/s]."""
BOUNDED = "revolute", "prismatic"
"""Kinds of joints that have a range."""
DRAKE_JOINTS = {"ball": Retyped("spherical"), "universal": Retyped("universal", "xy")}
PLANAR, SCREW = "planar", "screw"
PITCH = "drake:screw_thread_pitch"
X = 1.0, 0.0, 0.0
OF_AXIS = "axis", "limit", "mimic", "safety_controller"
"""What a joint says of its one freedom."""


def take_drake_joints(tree: UrdfTree) -> dict[str, Retyped]:
    """Make ``<drake:joint>`` elements joints; what kind each is to be, by name.

    Joints of those types without the prefix, which URDF has not, are taken for the same.

    Raises:
        ModelError: One has a type that no joint in Bullet has, or is universal about another axis.
    """
    found: dict[str, Retyped] = {}
    for element in tree.robot.findall("joint"):
        if element.get("type") == PLANAR:
            element.tag = "drake:joint"  # which has it as URDF has, with three dampings
        if element.get("type") not in DRAKE_JOINTS:
            continue
        turns = element.get("type") == "universal" and element.find("axis") is not None
        if turns and np.linalg.norm(np.cross(tree.axis(element), X)) > 0.0:
            tree.fail(
                f"joint '{element.get('name')}' is universal and has an axis; it turns about x,"
                " then y: turn its frame, or write two hinges"
            )
        element.tag = "drake:joint"
    for element in tree.robot.findall("drake:joint"):
        name, kind = element.get("name", ""), element.get("type", "")
        where = f"joint '{name}'"
        element.tag = "joint"
        if kind == PLANAR:
            losses = element.findall("dynamics")
            damped = any(len((loss.get("damping") or "").split()) > 1 for loss in losses)
            said = tree.triple(losses[0], "damping", ORIGIN, where) if damped else ()
            drop(element, "dynamics")
            found[name] = Retyped(PLANAR, numbers=said)
            continue
        if kind == SCREW:
            pitch = element.find(PITCH)
            advance = 0.0 if pitch is None else tree.number(pitch, "value", 0.0, where)
            if not advance:
                tree.fail(f"{where} is a screw without <{PITCH} value=...>; give its advance [m]")
            found[name] = Retyped(SCREW, numbers=(advance,))
        elif kind in DRAKE_JOINTS:
            found[name] = DRAKE_JOINTS[kind]
        else:
            known = ", ".join((*DRAKE_JOINTS, PLANAR, SCREW))
            tree.fail(f"<drake:joint> '{name}' has type '{kind}'; read are {known}")
        element.set("type", "spherical")
    return found


def take_out_foreign(tree: UrdfTree) -> bool:
    """Remove elements and attributes with a prefix, which strict readers choke on; whether any.

    Drake's capsule is Bullet's, too.
    """
    found = False
    for capsule in tree.robot.iter("drake:capsule"):
        capsule.tag, found = "capsule", True
    for element in tree.robot.iter():
        for child in [child for child in element if ":" in str(child.tag)]:
            element.remove(child)
            found = True
        for key in [key for key in element.attrib if ":" in key]:
            found = found or not key.startswith("xmlns:")
            del element.attrib[key]
    return found


def unit_axes(tree: UrdfTree) -> list[str]:
    """Give axes of joints a length of one, without which Bullet contradicts itself."""
    done: list[str] = []
    for name, joint in tree.joints.items():
        element = joint.find("axis")
        if element is None or joint.get("type") not in MOVING:
            continue
        axis = np.array(tree.axis(joint))
        length = float(np.linalg.norm(axis))
        if not length > SHORTEST:
            tree.fail(f"joint '{name}' has an axis without length; give a unit vector")
        if abs(length - 1.0) > UNIT:
            element.set("xyz", exact(axis / length))
            done.append(name)
    if not done:
        return []
    said = _listed(done, "joint", "joints").rpartition(" ")[0]
    return [f"the axes of {said} have not length 1; their directions are taken"]


def settle_limits(tree: UrdfTree, *, rubbing: bool = True) -> tuple[bool, list[str]]:
    """Make limits and losses of joints what they mean: a range, or none; damping that takes energy.

    Args:
        tree: The robot.
        rubbing: Whether friction is told not to act; a loops file says itself whether it does.

    Returns:
        Whether anything is now otherwise than in the file, and what is to be said.
    """
    unlimited, endless, empty = list[str](), list[str](), list[str]()
    feeding, rubbed, idle = list[str](), list[str](), list[str]()
    notes: list[str] = []
    for name, joint in tree.joints.items():
        kind, limit = joint.get("type"), joint.find("limit")
        where = f"joint '{name}'"
        if kind in BOUNDED and limit is None:
            Xml.SubElement(joint, "limit", effort=UNBOUNDED, velocity=UNBOUNDED)
            unlimited.append(name)
        elif kind == "continuous" and limit is not None:
            # Bullet keeps these numbers, tells them as limits, and lets the joint turn all the same
            written = [limit.attrib.pop(key) for key in RANGE if key in limit.attrib]
            if len(written) == len(RANGE) and float(written[0]) <= float(written[1]):
                endless.append(name)
        elif kind in BOUNDED and limit is not None and tree.limits(joint) is None:
            said = {key: tree.number(limit, key, none, where) for key, none in RANGE.items()}
            if said != RANGE:  # which is Bullet's own word for none
                empty.append(name)
        limits = tree.limits(joint) if kind == "revolute" else None
        notes += degrees_notes({f"a limit of {where}": limits or ()}, OF_LIMITS)
        for element in joint.findall("dynamics"):
            if not element.attrib.keys() & {"damping", "friction"}:  # which Bullet refuses
                element.set("damping", "0")
                idle.append(name)
            for key in ("damping", "friction"):
                value = tree.number(element, key, 0.0, where)
                if value < 0.0:
                    element.set(key, "0")
                    feeding.append(name)
                elif value and rubbing and key == "friction" and kind in MOVING:
                    rubbed.append(name)
    found = {
        "no <limit>, which Bullet refuses: nothing limits them": unlimited,
        "limits though they are continuous: these count for nothing, as in Bullet": endless,
        "a lower limit above the upper one, or one alone: nothing limits them, as in Bullet": empty,
        "negative damping or friction, which would feed energy: taken as zero": feeding,
        "friction: it does not act, as in Bullet, unless a loops file has 'joint_friction: true'": (
            rubbed
        ),
    }
    notes += told({f"joints with {what} ({{}})": dict.fromkeys(x) for what, x in found.items()})
    return bool(unlimited or endless or feeding or idle), notes


def angle_notes(tree: UrdfTree) -> list[str]:
    """What is to be said of turns of frames that look like degrees."""
    turned: list[str] = []
    for owner in (*tree.links.values(), *tree.joints.values()):
        where = f"{owner.tag} '{owner.get('name')}'"
        for element in owner.iter("origin"):
            rpy = tree.triple(element, "rpy", ORIGIN, where)
            if degrees_notes({where: rpy}):
                turned.append(f"{where}: {element.get('rpy')}")
    if not turned:
        return []
    return [
        f"rpy of <origin> is in radians, more than a turn in {listed(dict.fromkeys(turned))}; if"
        " degrees are meant, multiply by 0.0174533 (pi/180)"
    ]


def free_base(tree: UrdfTree) -> tuple[Triple, Triple] | None:
    """Let the base float where a floating joint joins it to the world; Bullet would hold it.

    Returns:
        Where it starts, xyz [m] and rpy [rad]; None where there is no such joint.
    """
    root = tree.root
    below = [joint for joint in tree.robot.iterfind("joint") if end(joint, "parent") == root]
    held = tree.links[root].find("inertial") is not None
    if held or len(below) != 1 or below[0].get("type") != "floating":
        return None
    tree.robot.remove(tree.links[root])
    tree.robot.remove(below[0])
    return tree.origin(below[0].find("origin"), f"joint '{below[0].get('name')}'")


def retype(tree: UrdfTree, retyped: Mapping[str, Retyped]) -> list[str]:
    """Make joints others: spherical, fixed, or hinges and slides with links without mass between.

    Their damping acts on each rate; that of a screw on its turn.
    """
    notes: list[str] = []
    for name, (kind, axes, numbers) in retyped.items():
        joint = tree.joints[name]
        if kind == PLANAR:
            notes.append(_planar_in_steps(tree, joint, numbers))
            continue
        axis = exact(tree.axis(joint))
        drop(joint, *OF_AXIS)
        if kind == SCREW:
            way = f"{name}_way"
            _in_steps(
                tree, joint, [Step(name, "continuous", axis), Step(way, "prismatic", axis, 0.0)]
            )
            advance = repr(numbers[0] / (2.0 * np.pi))
            Xml.SubElement(tree.joints[way], "mimic", joint=name, multiplier=advance)
            notes.append(f"joint '{name}' is a screw: a turn, a way '{way}' and a coupling of both")
            continue
        if kind != "universal":
            if joint.get("type") != kind:
                notes.append(f"joint '{name}' is {kind}, as the file beside the URDF says")
            joint.set("type", kind)
            if kind == "spherical":  # without one Bullet warns
                Xml.SubElement(joint, "axis", xyz="1 0 0")
            continue
        hinges = [Step(f"{name}_{axis}", "continuous", AXES[axis]) for axis in axes]
        _in_steps(tree, joint, hinges)
        first, second = (f"'{hinge.name}'" for hinge in hinges)
        notes.append(f"joint '{name}' is universal: two hinges, {first} and {second}")
    return notes


class Step(NamedTuple):
    """One of the joints that stand for a joint with several freedoms."""

    name: str  # its name
    kind: str  # its type in a URDF
    axis: str  # as a URDF has it
    damping: float | None = None  # its own; None for what the joint has that it stands for


def _planar_in_steps(tree: UrdfTree, joint: Xml.Element, damping: tuple[float, ...]) -> str:
    """Make a planar joint, which Bullet cannot report, two slides and a turn in the same plane.

    Returns:
        What is to be said about it.
    """
    name = joint.get("name", "")
    normal = np.array(tree.axis(joint))
    length = float(np.linalg.norm(normal))
    if not length > SHORTEST:
        tree.fail(f"joint '{name}' has an axis without length; give the normal of its plane")
    normal /= length
    k = int(np.argmin(np.abs(normal)))
    x = np.eye(3)[k] - normal[k] * normal
    x /= np.linalg.norm(x)
    axes = ("x", "prismatic", x), ("y", "prismatic", np.cross(normal, x))
    steps = [
        Step(f"{name}_{end}", kind, exact(axis), loss)
        for (end, kind, axis), loss in zip(
            (*axes, ("turn", "continuous", normal)), damping or (None,) * 3, strict=True
        )
    ]
    drop(joint, *OF_AXIS)
    _in_steps(tree, joint, steps)
    said = ", ".join(f"'{step.name}'" for step in steps)
    return f"joint '{name}' is planar: two slides and a turn, {said}"


def _in_steps(tree: UrdfTree, joint: Xml.Element, steps: list[Step]) -> None:
    """Put joints with links without mass between in the place of one."""
    name, below = joint.get("name", ""), end(joint, "child")
    between = [f"{name}_cross", *(f"{name}_cross_{k}" for k in range(2, len(steps)))]
    taken = ({step.name for step in steps} - {name}) & tree.joints.keys()
    if taken or tree.links.keys() & set(between):
        first = sorted(taken | (tree.links.keys() & set(between)))[0]
        tree.fail(
            f"joint '{name}' needs joints and links of its own, but '{first}' is taken; rename"
        )
    tree.robot.extend(_massless(Xml.Element("link", name=link)) for link in between)
    on, losses = "", joint.findall("dynamics")
    for step, child in zip(steps, [*between, below], strict=True):
        if step is not steps[0]:
            joint = Xml.SubElement(tree.robot, "joint")
            if step.damping is None:
                joint.extend(Xml.Element("dynamics", each.attrib) for each in losses)
            Xml.SubElement(joint, "parent", link=on)
            Xml.SubElement(joint, "child", link=child)
        joint.attrib.update(name=step.name, type=step.kind)
        joint.findall("child")[0].set("link", child)
        Xml.SubElement(joint, "axis", xyz=step.axis)
        if step.damping:
            Xml.SubElement(joint, "dynamics", damping=repr(step.damping))
        if step.kind == "prismatic":
            Xml.SubElement(joint, "limit", effort=UNBOUNDED, velocity=UNBOUNDED)
        on = child


def settle_meshes(tree: UrdfTree) -> tuple[bool, list[str]]:
    """Find meshes, and leave out shapes that Bullet cannot load.

    Returns:
        Whether anything is now otherwise than in the file, and what is to be said.
    """
    changed, missing, empty = False, list[str](), list[str]()
    unread: dict[str, list[str]] = {}
    broken: dict[str, list[str]] = {}
    unknown: dict[str, list[str]] = {}
    for link in tree.robot.iterfind("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            solid = shape.find("geometry/*")
            if solid is not None and _is_inside_out(solid):
                solid = None
            mesh = solid if solid is not None and solid.tag in MESHES else None
            if solid is None:
                empty.append(link.get("name", ""))
            elif solid.tag not in SHAPES:
                unknown.setdefault(str(solid.tag), []).append(link.get("name", ""))
            elif mesh is None:
                continue
            else:
                name = mesh.get("filename", "")
                place = find_named(name, tree.path)
                if place is None:
                    missing.append(name)
                elif place.suffix.lower() not in READABLE:
                    unread.setdefault(name, []).append(link.get("name", ""))
                elif why := why_no_mesh(place):
                    broken.setdefault(why, []).append(name)
                else:
                    changed = changed or "://" in name
                    mesh.set("filename", place.as_posix())
                    continue
            changed = True
            link.remove(shape)
    notes: list[str] = []
    if missing:
        notes.append(
            f"{_listed(missing, 'mesh', 'meshes')} not found near the file; the shapes are left out"
        )
    if unread:
        links = listed(dict.fromkeys(name for names in unread.values() for name in names))
        notes.append(
            f"{_listed([*unread], 'mesh', 'meshes')} of a kind that Bullet does not read"
            f" ({', '.join(READABLE)}); the shapes are left out of {links}: save them as .obj or"
            " .stl with the axes of their links (of .glb and .gltf, readers take y or z for up)"
        )
    notes += [
        f"{_listed(names, 'mesh', 'meshes')} {why}; the shapes are left out"
        for why, names in broken.items()
    ]
    notes += [
        f"shapes that Bullet does not know (<{kind}>), of {listed(dict.fromkeys(names))}, are left"
        " out"
        for kind, names in unknown.items()
    ]
    if empty:
        notes.append(
            f"shapes without geometry, or of a negative size, of {listed(sorted(set(empty)))} are"
            " left out"
        )
    return changed, notes


def _is_inside_out(solid: Xml.Element) -> bool:
    """Whether a length of a shape is negative; meshes may be mirrored."""
    lengths = NUMBERS.get(str(solid.tag), {}) if solid.tag not in MESHES else {}
    return any(float(x) < 0.0 for name in lengths for x in solid.get(name, "").split())


def whole_names(tree: UrdfTree) -> list[str]:
    """Give a robot and materials the names without which Bullet refuses them.

    Returns:
        What is to be said; nothing if all have one.
    """
    said: list[str] = []
    if not tree.robot.get("name"):
        tree.robot.set("name", tree.path.stem)
        said.append(f"the robot has no name; it is called '{tree.path.stem}'")
    nameless = [
        each for each in tree.robot.iterfind("link/visual/material") if not each.get("name")
    ]
    for k, material in enumerate(nameless):
        material.set("name", f"nameless_{k}")
    if nameless:
        said.append(f"{len(nameless)} materials without a name, which Bullet refuses, have one now")
    return said


def whole_inertials(tree: UrdfTree) -> list[str]:
    """Give an ``<inertial>`` without ``<inertia>`` or ``<mass>``, which Bullet refuses, zero there.

    Returns:
        What is to be said; nothing if all are whole.
    """
    points, weightless = list[str](), list[str]()
    for name, link in tree.links.items():
        inertial = link.find("inertial")
        if inertial is None:
            continue
        if inertial.find("mass") is None:
            link.remove(inertial)
            _massless(link)
            weightless.append(name)
        elif inertial.find("inertia") is None:
            Xml.SubElement(inertial, "inertia", dict.fromkeys(MOMENTS, "0"))
            points.append(name)
    said: list[str] = []
    if points:
        said.append(
            f"{_listed(points, 'link', 'links')} without <inertia>: its mass is"
            " taken for a point; 'bulletbridge inertia' computes the tensor from shapes"
        )
    if weightless:
        said.append(
            f"{_listed(weightless, 'link', 'links')} without <mass>: none is assumed; give it one"
        )
    return said


def empty_frames(tree: UrdfTree) -> list[str]:
    """Give links without ``<inertial>`` that are fixed to others no mass, where Bullet gives 1 kg.

    A root without it gets the inertia of a link that is fixed to it.

    Returns:
        What is to be said; nothing if there are none.
    """
    done: list[str] = []
    above = tree.above
    for name, link in tree.links.items():
        joint = above.get(name)
        if joint is None or joint.get("type") != "fixed" or name == WORLD:
            continue
        if link.find("inertial") is None:
            _massless(link)
            done.append(name)
    said = _weigh_root(tree)
    if done:
        said.append(
            f"{_listed(done, 'fixed link', 'fixed links')} without <inertial>: no mass, where"
            " Bullet would give each 1 kg"
        )
    return said


def _weigh_root(tree: UrdfTree) -> list[str]:
    """Give a root without ``<inertial>`` that of a link that is fixed to it: they are one body.

    ROS has such roots, as ``base_footprint``; Bullet gives them 1 kg where they float.
    """
    root = tree.root
    if root == WORLD or tree.links[root].find("inertial") is not None:
        return []
    for joint in tree.robot.iterfind("joint"):
        link = tree.links[end(joint, "child")]
        inertial = link.find("inertial")
        mass = None if inertial is None else inertial.find("mass")
        fixed = joint.get("type") == "fixed" and end(joint, "parent") == root
        if not fixed or inertial is None or mass is None or float(mass.get("value", "0")) == 0.0:
            continue
        name = link.get("name", "")
        place, own = tree.place(joint) @ tree.place(inertial), inertial.find("origin")
        if own is None:
            own = Xml.SubElement(inertial, "origin")
        own.attrib.update(xyz=exact(place.xyz), rpy=exact(place.rpy))
        link.remove(inertial)
        tree.links[root].append(inertial)
        _massless(link)
        return [f"'{root}' has no <inertial>; it gets that of '{name}', which is fixed to it"]
    return []


def write_urdf(robot: Xml.Element, path: Path, comments: Iterable[str] = ()) -> None:
    """Write a URDF.

    Args:
        robot: Its root; meshes that are named by absolute paths go relative to the new file.
        path: Where.
        comments: What stands above the robot.

    Raises:
        ModelError: It cannot be written there.
    """
    for mesh in (each for tag in MESHES for each in robot.iter(tag)):
        name = Path(mesh.get("filename", ""))
        if name.is_absolute():
            relative = os.path.relpath(name, path.resolve().parent)
            mesh.set("filename", Path(relative).as_posix())
    write_xml(robot, path, comments)


def _massless(link: Xml.Element) -> Xml.Element:
    link.append(inertial_element(None))
    return link


def _listed(names: list[str], one: str, several: str) -> str:
    """Names with their number, the first ones of many."""
    unique = list(dict.fromkeys(names))
    shown = listed(map(repr, unique), MOST_NAMED)
    return f"{one} {shown} is" if len(unique) == 1 else f"{several} {shown} are"
