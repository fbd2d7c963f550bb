"""A model as a scene, whatever format it came in: its URDFs are read; what writers begin with."""

from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.bullet.xml_file import read_xml
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.models.formats.robot import (
    UNLIMITED,
    Inertial,
    Joint,
    Link,
    Pose,
    Robot,
    Scene,
    Shape,
    pose_of,
)
from bulletbridge.models.formats.urdf_tree import MOVING, UrdfTree, end
from bulletbridge.models.mesh_places import find_named
from bulletbridge.models.model_spec import BodySpec, ModelSpec
from bulletbridge.models.principal_axes import hand_over_tensors
from bulletbridge.models.urdf_file import ENTRIES, require_tree
from bulletbridge.models.urdf_names import WORLD
from bulletbridge.numerics.records import Array

KINDS = {**dict.fromkeys(("revolute", "continuous"), "revolute"), "floating": "fixed"}


def scene_of(spec: ModelSpec) -> Scene:
    """Robots, loops and all else of a model.

    Raises:
        ModelError: It has beams, or a URDF cannot be read.
    """
    if spec.beams:
        raise ModelError(
            f"{spec.path} has beams, which only loops files can say; write its chains of segments"
        )
    notes: list[str] = []
    scene = Scene(
        spec.name,
        [_robot(body, spec.joint_friction, notes) for body in spec.bodies],
        list(spec.constraints),
        list(spec.elements),
        actuated=list(spec.actuated),
        gravity=spec.own_gravity,
        scenery=[_robot(body, False, notes) for body in spec.scenery],
    )
    scene.notes += notes
    joints = scene.joints()
    for name, given in spec.joints.items():
        if name not in joints:  # a floating base
            scene.base_damping[name] = given.damping or 0.0
            continue
        for key, value in vars(given).items():
            if value is not None:
                setattr(joints[name], key, value)
    for force in spec.forces:
        joint = joints[force.joint]
        joint.add_spring(force.stiffness, force.rest, force.damping)
        joint.friction += force.friction
        if force.torque:
            scene.notes.append(f"the torque on joint '{force.joint}' is left out")
    scene.wrenches += spec.wrenches
    return scene


def _robot(body: BodySpec, friction: bool, notes: list[str]) -> Robot:
    """One URDF at its scale, in its place; what is to be said of it goes to the notes."""
    require_tree(body.urdf)
    tree = UrdfTree(body.urdf, read_xml(body.urdf))
    notes += tree.settle_numbers()
    hand_over_tensors(tree)
    root = tree.root
    robot = Robot(body.name, root, body.fixed_base, {}, {}, pose_of(body.xyz, body.rpy))
    below: dict[str, list[Xml.Element]] = {}
    for element in tree.robot.iterfind("joint"):
        below.setdefault(end(element, "parent"), []).append(element)
    links, order = tree.links, [root]
    while order:
        name = order.pop()
        robot.links[name] = _link(tree, links[name], body)
        for element in reversed(below.get(name, [])):
            order.append(end(element, "child"))
    for name in robot.links:
        for element in below.get(name, []):
            joint = _joint(tree, element, body.scale)
            joint.friction *= friction
            robot.joints[joint.name] = joint
    return robot


def _link(tree: UrdfTree, element: Xml.Element, body: BodySpec) -> Link:
    name = element.get("name", "")
    link = Link(name, _inertial(tree, element, body.scale))
    if name == tree.root and body.fixed_base and element.find("inertial") is None:
        link.inertial = None
    rubs = element.find("contact/lateral_friction")
    if rubs is not None:
        link.friction = tree.number(rubs, "value", 0.0, f"link '{name}'")
    for tag, shapes in (("visual", link.visuals), ("collision", link.collisions)):
        for each in element.iterfind(tag):
            shape = _shape(tree, each, name, body.scale)
            if shape is not None:
                shapes.append(shape)
    return link


def _inertial(tree: UrdfTree, link: Xml.Element, scale: float) -> Inertial | None:
    """What Bullet makes of it: 1 kg with moments of 1 where nothing is said."""
    element, name = link.find("inertial"), link.get("name", "")
    if element is None:
        return None if name == WORLD else Inertial(1.0, np.zeros(3), np.eye(3))
    where = f"link '{name}'"
    mass = element.find("mass")
    tensor = element.find("inertia")
    J = np.zeros((3, 3))
    if tensor is not None:
        for key, i, k in ENTRIES:
            J[i, k] = J[k, i] = tree.number(tensor, key, 0.0, where)
    kilograms = 0.0 if mass is None else tree.number(mass, "value", 0.0, where)
    if kilograms == 0.0 and not J.any():
        return None
    at = pose_of(*tree.origin(element.find("origin"), where))
    return Inertial(kilograms, scale * at.p, at.R @ J @ at.R.T)


def _shape(tree: UrdfTree, element: Xml.Element, link: str, scale: float) -> Shape | None:
    """A shape; None where it is of a kind that only Bullet has, or its mesh is not there."""
    geometry, where = element.find("geometry/*"), f"link '{link}'"
    if geometry is None:
        return None
    at = pose_of(*tree.origin(element.find("origin"), where))
    place = Pose(at.R, scale * at.p)
    colour = element.find("material/color")
    rgba = tuple(float(x) for x in colour.get("rgba", "").split()) if colour is not None else ()
    if geometry.tag == "box":
        size = tree.triple(geometry, "size", (1.0, 1.0, 1.0), where)
    elif geometry.tag in ("sphere", "cylinder", "capsule"):
        keys = ("radius",) if geometry.tag == "sphere" else ("radius", "length")
        size = tuple(tree.number(geometry, key, 1.0, where) for key in keys)
    elif geometry.tag == "plane":
        normal = np.array(tree.triple(geometry, "normal", (0.0, 0.0, 1.0), where))
        R = frame_with_z(_unit(normal, where)) if normal[:2].any() else np.eye(3)
        return Shape("plane", (), place @ Pose(R), "", rgba)
    elif geometry.tag == "mesh":
        file = find_named(geometry.get("filename", ""), tree.path)
        if file is None:
            return None
        sizes = tuple(scale * x for x in tree.triple(geometry, "scale", (1.0, 1.0, 1.0), where))
        return Shape("mesh", sizes, place, str(file), rgba)
    else:
        return None
    return Shape(geometry.tag, tuple(scale * x for x in size), place, "", rgba)


def _joint(tree: UrdfTree, element: Xml.Element, scale: float) -> Joint:
    name, kind = element.get("name", ""), element.get("type", "")
    where = f"joint '{name}'"
    if kind == "planar":
        tree.fail(f"{where} is planar, which Bullet cannot read; write prismatic and revolute ones")
    at = pose_of(*tree.origin(element.find("origin"), where))
    joint = Joint(
        name,
        KINDS.get(kind, kind),
        end(element, "parent"),
        end(element, "child"),
        Pose(at.R, scale * at.p),
    )
    dynamics, limit = element.find("dynamics"), element.find("limit")
    if dynamics is not None and kind in (*MOVING, "spherical"):
        joint.damping = tree.number(dynamics, "damping", 0.0, where)
        joint.friction = tree.number(dynamics, "friction", 0.0, where)
    if kind not in MOVING:
        return joint
    joint.axis = _unit(np.array(tree.axis(element)), where)
    said = limit is not None and {"lower", "upper"} & set(limit.keys())
    found = tree.limits(element) if said else None
    lower, upper = found or UNLIMITED
    factor = scale if kind == "prismatic" else 1.0
    joint.limits = factor * lower, factor * upper
    if limit is not None:
        joint.effort = tree.number(limit, "effort", np.inf, where)
        joint.velocity = tree.number(limit, "velocity", np.inf, where)
    return joint


def _unit(axis: Array, where: str) -> Array:
    size = float(np.linalg.norm(axis))
    if size < 1e-9:
        raise ModelError(f"{where} has an axis without length; give one")
    return axis / size
