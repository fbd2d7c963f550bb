"""A URDF that has its loops in it, as ``<loop_joint>``, ``<mimic>`` and Drake's elements."""

from functools import partial
from pathlib import Path
from xml.etree import ElementTree as Xml

from bulletbridge.bullet.xml_file import drop
from bulletbridge.constraints.force_elements import ForceElement
from bulletbridge.constraints.joints import (
    Coupling,
    Distance,
    Frame,
    JointModel,
    LoopAxis,
    LoopJoint,
)
from bulletbridge.errors import ModelError
from bulletbridge.models.formats.drake_elements import READERS as OF_DRAKE
from bulletbridge.models.formats.drake_writer import drake_element, put_attribute
from bulletbridge.models.formats.gazebo_joints import (
    SPRING,
    add_gazebo_spring,
    remove_gazebo_joints,
    set_weightless,
)
from bulletbridge.models.formats.loadable import write_urdf
from bulletbridge.models.formats.loop_tags import KINDS, READERS, ROUND
from bulletbridge.models.formats.mimic import TAGS
from bulletbridge.models.formats.robot import end_b, free_name, listed
from bulletbridge.models.formats.rotors import add_rotors
from bulletbridge.models.formats.sdf_frames import XMLNS
from bulletbridge.models.formats.urdf_text import exact
from bulletbridge.models.formats.urdf_tree import DYNAMICS_SPRING, UrdfTree
from bulletbridge.models.formats.written import Written, robot_to_write
from bulletbridge.models.model_spec import EARTH, ORIGIN, BodySpec, ModelSpec
from bulletbridge.models.urdf_names import BASE, WORLD

TYPES = {model: kind for kind, model in reversed(KINDS.items())}
"""The first name of each joint model that has one."""
UNBOUNDED = 1e9
"""Effort and velocity, which a URDF has to say, where nothing limits them [N m, rad/s]."""


def write_loop_joints(spec: ModelSpec, path: Path) -> Written:
    """Write a URDF with everything that such elements can say.

    Raises:
        ModelError: There are several robots, or one is scaled: a URDF is one robot at its size.
    """
    body = spec.bodies[0]
    if len(spec.bodies) > 1 or body.scale != 1.0:
        said = "several robots" if len(spec.bodies) > 1 else "a scale"
        raise ModelError(f"{spec.path} has {said}, which a URDF cannot say; convert it to loops")
    robot = robot_to_write(body.urdf)
    drop(robot, *READERS, *OF_DRAKE)
    remove_gazebo_joints(robot)
    tree = UrdfTree(body.urdf, robot)
    for joint in robot.iterfind("joint"):
        drop(joint, *TAGS)
    notes = _lost(spec)
    _hold_base(tree, body, notes)
    for constraint in spec.constraints:
        if constraint.motion is not None or constraint.max_force is not None:
            notes.append(f"motion or force limit of '{constraint.name}' is left out")
        if isinstance(constraint, Coupling):
            if not _add_mimic(tree, constraint, spec.actuated, notes):
                _add_drake(tree, constraint, notes)
        elif isinstance(constraint, Distance) or constraint.model not in TYPES:
            kind = "distance" if isinstance(constraint, Distance) else constraint.model.value
            notes.append(f"'{constraint.name}' is left out: no <loop_joint> is of type {kind}")
        else:
            robot.append(_loop_joint(constraint, notes))
    for element in spec.elements:
        _add_drake(tree, element, notes)
    if left := set_weightless(tree, spec.wrenches, spec.own_gravity):
        names = listed(f"'{wrench.name}'" for wrench in left)
        notes.append(f"wrenches {names}: a URDF has no place for them")
    _add_transmissions(robot, spec.actuated)
    _add_properties(tree, spec)
    urdf = path.with_name(f"{path.name}.urdf")
    comments = [f"converted from {spec.path.name} by bulletbridge"]
    write_urdf(robot, urdf, [*comments, *spec.notes, *notes])
    return Written((urdf,), tuple(notes))


def _lost(spec: ModelSpec) -> list[str]:
    """What of a model a URDF has no place for."""
    parts = {
        "gravity": spec.own_gravity != EARTH,
        "the start": bool(spec.start_q or spec.start_v or spec.start_guess),
        "torques on joints": any(bool(force.torque) for force in spec.forces),
        "that friction of joints acts": spec.joint_friction,
        "that it may have no freedom (allow_structure)": spec.allow_structure,
        "beams": bool(spec.beams),
        "what stands in the world (scenery)": bool(spec.scenery),
        "damping of the turns of floating bases": any(is_base(name) for name in spec.joints),
    }
    return [f"{what}: a URDF has no place for it" for what, there in parts.items() if there]


def is_base(joint: str) -> bool:
    """Whether a joint is the one by which a base floats."""
    return joint.rpartition("/")[2] == BASE


def _add_transmissions(robot: Xml.Element, actuated: tuple[str, ...]) -> None:
    """Say which joints have a drive, in ROS's words."""
    if not actuated:
        return
    drop(robot, "transmission")
    for joint in actuated:
        element = Xml.SubElement(robot, "transmission", name=f"{joint}_transmission")
        Xml.SubElement(element, "type").text = "transmission_interface/SimpleTransmission"
        driven = Xml.SubElement(element, "joint", name=joint)
        kind = "hardware_interface/EffortJointInterface"
        Xml.SubElement(driven, "hardwareInterface").text = kind
        Xml.SubElement(element, "actuator", name=f"{joint}_motor")


def _add_properties(tree: UrdfTree, spec: ModelSpec) -> None:
    """What the loops file has put in the place of the URDF's: rotors, damping, friction, limits."""
    joints = tree.joints
    for name, given in spec.joints.items():
        if is_base(name):
            continue
        joint, ends = joints[name], given.limits
        if joint.get("type") == "spherical":
            ends = None  # for which URDF has no word
        put = {"damping": given.damping, "friction": given.friction}
        _set(joint, "dynamics", {key: value for key, value in put.items() if value is not None})
        if ends is not None:
            if joint.get("type") == "continuous":
                joint.set("type", "revolute")
                _set(joint, "limit", dict.fromkeys(("effort", "velocity"), UNBOUNDED))
            _set(joint, "limit", {"lower": ends[0], "upper": ends[1]})
    for dynamics in tree.robot.iterfind("joint/dynamics"):
        for word in ("armature", *DYNAMICS_SPRING):  # they are written in others' words
            dynamics.attrib.pop(word, None)
    armatures = {name: given.armature for name, given in spec.joints.items() if given.armature}
    add_rotors(tree.robot, armatures)
    for element in tree.robot.iterfind("gazebo"):
        drop(element, *SPRING)
    for force in spec.forces:
        dynamics = joints[force.joint].find("dynamics")
        for key, more in (("damping", force.damping), ("friction", force.friction)):
            if more:
                own = 0.0 if dynamics is None else float(dynamics.get(key, "0"))
                _set(joints[force.joint], "dynamics", {key: own + more})
        if force.stiffness:
            add_gazebo_spring(tree.robot, force)


def _set(joint: Xml.Element, tag: str, numbers: dict[str, float]) -> None:
    """Set attributes of a joint's element, which is made if there is something to set."""
    element = joint.find(tag)
    if numbers and element is None:
        element = Xml.SubElement(joint, tag)
    for key, value in numbers.items():
        assert element is not None
        element.set(key, repr(float(value)))


def _hold_base(tree: UrdfTree, body: BodySpec, notes: list[str]) -> None:
    """A fixed base as others understand it: held by a link ``world``, in its place."""
    root = tree.root
    placed = body.xyz != ORIGIN or body.rpy != ORIGIN
    if not body.fixed_base:
        if placed:
            notes.append("where the floating base starts: a URDF has no place for it")
        return
    if root == WORLD and not placed:
        return
    if WORLD in tree.links:
        raise ModelError(
            f"{body.urdf} has a link '{WORLD}' that is not where the world is; convert it to loops"
        )
    joint = Xml.Element("joint", name=f"{WORLD}_to_{root}", type="fixed")
    Xml.SubElement(joint, "parent", link=WORLD)
    Xml.SubElement(joint, "child", link=root)
    Xml.SubElement(joint, "origin", xyz=exact(body.xyz), rpy=exact(body.rpy))
    tree.robot.insert(0, Xml.Element("link", name=WORLD))
    tree.robot.append(joint)


def _add_mimic(
    tree: UrdfTree, coupling: Coupling, actuated: tuple[str, ...], notes: list[str]
) -> bool:
    """Let one joint of a coupling mimic the other: rather one that has no drive, and no chain.

    Returns:
        Whether one can.
    """
    pair = list(coupling.coefficients.items())
    turned = (pair, pair[::-1]) if len(pair) == 2 and not coupling.higher else ()
    mimics = {name: joint.find("mimic") for name, joint in tree.joints.items()}
    leaders = {name: each.get("joint", "") for name, each in mimics.items() if each is not None}
    possible = [
        (name in leaders.values() or other in leaders, name in actuated, name, own, other, factor)
        for (name, own), (other, factor) in turned
        if own != 0.0 and name not in leaders and name not in _line(other, leaders)
    ]
    if not possible:
        return False
    _, driven, name, own, other, factor = min(possible, key=lambda x: (*x[:2], x[3] != 1.0))
    numbers = {"multiplier": repr(-factor / own), "offset": repr(coupling.offset / own)}
    Xml.SubElement(tree.joints[name], "mimic", {"joint": other} | numbers)
    if driven:
        notes.append(f"'{name}' mimics '{other}' and is not listed as actuated any more")
    return True


def _add_drake(tree: UrdfTree, made: Coupling | ForceElement, notes: list[str]) -> None:
    """Say a coupling or force element in Drake's words, or that it is left out."""
    joints, links = tree.joints, tree.links
    element = drake_element(
        made,
        lambda name: name if name in joints else None,
        lambda name: name if name in links else None,
        put_attribute,
        partial(_put_frame, tree),
    )
    if element is None:
        notes.append(f"'{made.name}' is left out: neither <mimic> nor Drake's elements say it")
        return
    tree.robot.set("xmlns:drake", XMLNS["xmlns:drake"])
    tree.robot.append(element)


def _put_frame(
    tree: UrdfTree, parent: Xml.Element, tag: str, name: str, link: str, frame: Frame
) -> None:
    """Name a frame below an element, and put it on a link."""
    taken = [*tree.links, *(each.get("name", "") for each in tree.robot.iterfind("frame"))]
    name = free_name(name, taken)
    Xml.SubElement(parent, tag, name=name)
    said = {"name": name, "link": link, "xyz": exact(frame.xyz), "rpy": exact(frame.rpy)}
    Xml.SubElement(tree.robot, "frame", said)


def _line(joint: str, leaders: dict[str, str]) -> list[str]:
    """A joint, the one that it mimics, and so on."""
    line = [joint]
    while line[-1] in leaders:
        line.append(leaders[line[-1]])
    return line


def _loop_joint(joint: LoopJoint, notes: list[str]) -> Xml.Element:
    kind = TYPES[joint.model]
    element = Xml.Element("loop_joint", name=joint.name, type=kind)
    a, b = joint.a, joint.b
    if joint.model is JointModel.UNIVERSAL:
        Xml.SubElement(element, "parent_axis", xyz=exact(joint.axis))
        Xml.SubElement(element, "child_axis", xyz=exact(joint.axis_b or joint.axis))
    elif joint.model not in ROUND:
        b = end_b(joint)
        Xml.SubElement(element, "axis", xyz=exact(joint.axis))
    for tag, frame in (("link1", a), ("link2", b)):
        said = {"link": frame.link, "xyz": exact(frame.xyz), "rpy": exact(frame.rpy)}
        Xml.SubElement(element, tag, said)
    along = joint.turn or joint.travel
    if along is not None:
        _add_along(element, joint, along, notes)
    return element


def _add_along(element: Xml.Element, joint: LoopJoint, along: LoopAxis, notes: list[str]) -> None:
    """What acts along the free motion, as far as there are words for it."""
    if joint.turn is not None and joint.travel is not None:
        notes.append(f"what acts along '{joint.name}' is left out: it turns and travels")
        return
    if along.limits is not None:
        low, high = along.limits
        Xml.SubElement(element, "limit", lower=repr(low), upper=repr(high))
    if along.damping or along.friction:
        numbers = {"damping": repr(along.damping), "friction": repr(along.friction)}
        Xml.SubElement(element, "dynamics", numbers)
    if along.motor or along.stiffness or along.force:
        notes.append(f"motor, spring or force of '{joint.name}' is left out")
