"""A scene as URDF files and a specification of the model; what every reader ends with."""

import os
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.console import write_text
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import matrix_rpy
from bulletbridge.mechanism.joint_properties import JointProperties
from bulletbridge.models.formats.robot import Inertial, Joint, Link, Pose, Robot, Scene, Shape
from bulletbridge.models.model_spec import EARTH, BodySpec, JointForce, ModelSpec
from bulletbridge.models.urdf_file import ENTRIES
from bulletbridge.numerics.records import Array

MOMENTS = tuple(key for key, _, _ in ENTRIES)
DIAGONAL = 1e-14
"""Products of inertia, against the trace, that are round-off."""
SLACK = 1e-9
"""Relative excess of a principal moment over the sum of the others that is round-off."""
ROD = 1e-15
"""Relative size of a principal moment that is none but for round-off."""
BULLETS_MESHES = (".stl", ".obj", ".dae")
UNSAID = 1e9
"""Effort and velocity of a joint whose drive has no limit; URDF wants numbers."""

SCENERY = "scenery"
"""What names of files begin with that hold what stands in the world."""


def specify(scene: Scene, path: Path, folder: Path) -> ModelSpec:
    """Write the URDFs of a scene into a folder and say what joins them.

    Args:
        scene: What a reader has found.
        path: The file that it was found in.
        folder: Where the URDFs go.

    Raises:
        ModelError: There is no robot in it, or a file cannot be written.
    """
    if not scene.robots:
        raise ModelError(f"{path} has no body that moves, or stands still; nothing to simulate")
    for robot in scene.robots:
        _weigh_root(scene, robot)

    def written(robot: Robot, name: str, prefix: str = "") -> BodySpec:
        urdf = folder / f"{prefix}{robot.name.replace('/', '_')}.urdf"
        write_text(urdf, urdf_text(robot, folder))
        # URDF's base pose is that of the link; a floating one starts where ``start_q`` says, too
        return BodySpec(name, urdf, robot.fixed, robot.place.xyz, robot.place.rpy)

    several = len(scene.robots) > 1
    joints = scene.joints()
    springs = [
        JointForce(name, stiffness=joint.stiffness, rest=joint.rest)
        for name, joint in joints.items()
        if joint.stiffness
    ]
    return ModelSpec(
        scene.name,
        path,
        tuple(written(robot, robot.name if several else "robot") for robot in scene.robots),
        tuple(scene.loops),
        tuple(scene.actuated),
        None if scene.gravity == EARTH else scene.gravity,
        scene.start_q,
        scene.start_v,
        (*springs, *scene.forces),
        scene.start_guess,
        joint_friction=any(joint.friction for joint in joints.values()),
        elements=tuple(scene.elements),
        joints=dict(filter(None, map(_properties, joints.items())))
        | {name: JointProperties(damping=d) for name, d in scene.base_damping.items()},
        notes=tuple(scene.notes),
        wrenches=tuple(scene.wrenches),
        scenery=tuple(written(robot, robot.name, f"{SCENERY}_") for robot in scene.scenery),
        allow_structure=scene.allow_structure,
        drawn_apart=scene.drawn_apart,
    )


def _properties(item: tuple[str, Joint]) -> tuple[str, JointProperties] | None:
    """What a joint has that URDF has no word for, by its name."""
    name, joint = item
    limits = joint.limits if joint.kind == "spherical" and joint.limited else None
    if not joint.armature and limits is None:
        return None
    return name, JointProperties(joint.armature or None, limits=limits)


def _weigh_root(scene: Scene, robot: Robot) -> None:
    """Give a floating root without mass that of a link fixed to it: Bullet would hold it."""
    root = robot.links[robot.root]
    if robot.fixed or (root.inertial is not None and root.inertial.mass > 0.0):
        return
    places = {robot.root: Pose()}
    for joint in robot.joints.values():  # parents come before children
        if joint.kind != "fixed" or joint.parent not in places:
            continue
        at = places[joint.child] = places[joint.parent] @ joint.place
        link = robot.links[joint.child]
        own = link.inertial
        if own is None or own.mass == 0.0:
            continue
        before = robot.base_com()
        moved = own.placed(at)
        if root.inertial is not None:  # of what is rigidly joined, the sum matters
            moved = replace(moved, J=moved.J + root.inertial.J)
        root.inertial = moved
        link.inertial = None
        start = (scene.start_q | scene.start_guess).get(f"{scene.prefix(robot)}base")
        if isinstance(start, list):  # its position is that of the centre of mass
            from scipy.spatial.transform import Rotation

            way = Rotation.from_quat(start[3:]).apply(robot.base_com() - before)
            start[:3] = [float(x) for x in np.array(start[:3]) + way]
        scene.notes.append(f"'{root.name}' has no mass; it gets that of '{link.name}', fixed to it")
        return


def urdf_text(robot: Robot, folder: Path) -> str:
    """The URDF of one robot, to be put into a folder; meshes are named relative to it."""
    root = Xml.Element("robot", name=robot.name)
    for link in robot.links.values():
        root.append(link_element(link, folder))
    for joint in robot.joints.values():
        root.append(joint_element(joint))
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode") + "\n"


def exact(values: Array | tuple[float, ...]) -> str:
    """Numbers that read back as they are."""
    return " ".join(repr(float(value) + 0.0) for value in values)


def _origin(parent: Xml.Element, place: Pose) -> None:
    if place.p.any() or not np.array_equal(place.R, np.eye(3)):
        Xml.SubElement(parent, "origin", xyz=exact(place.xyz), rpy=exact(place.rpy))


def link_element(link: Link, folder: Path) -> Xml.Element:
    """A link in URDF's words, to be put into a folder; meshes are named relative to it."""
    element = Xml.Element("link", name=link.name)
    if link.friction is not None:
        contact = Xml.SubElement(element, "contact")
        Xml.SubElement(contact, "lateral_friction", value=exact((link.friction,)))
    element.append(inertial_element(link.inertial))
    for kind, shapes in (("visual", link.visuals), ("collision", link.collisions)):
        for shape in shapes:
            element.append(_shape(kind, shape, folder))
    return element


def inertial_element(inertial: Inertial | None) -> Xml.Element:
    """Mass and inertia in principal axes, since Bullet finds those to six digits only.

    A link without mass says so: to one that says nothing Bullet gives 1 kg.
    """
    element = Xml.Element("inertial")
    mass, moments = 0.0, np.zeros(3)
    if inertial is not None:
        mass = inertial.mass
        axes, moments = principal(inertial.J)
        rpy = exact(matrix_rpy(axes))
        Xml.SubElement(element, "origin", xyz=exact(inertial.com), rpy=rpy)
    Xml.SubElement(element, "mass", value=exact((mass,)))
    values = (*moments, 0.0, 0.0, 0.0)
    Xml.SubElement(
        element, "inertia", {n: exact((x,)) for n, x in zip(MOMENTS, values, strict=True)}
    )
    return element


def principal(J: Array) -> tuple[Array, Array]:
    """Principal axes (3, 3) and moments (3,) of a tensor (3, 3).

    Moments that break the triangle inequality by round-off are brought back to it, since Bullet
    takes such a tensor for none at all; of a rod, which has none about its line, two are the same.
    """
    axes, moments = np.eye(3), np.diag(J).copy()
    if np.abs(J - np.diag(moments)).max() > DIAGONAL * np.trace(J):
        moments, axes = np.linalg.eigh(J)
        axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    smallest, largest = int(np.argmin(moments)), int(np.argmax(moments))
    if abs(moments[smallest]) <= ROD * moments[largest]:
        moments[smallest] = 0.0
        across = [k for k in range(3) if k != smallest]
        if np.ptp(moments[across]) <= SLACK * moments[largest]:
            moments[across] = moments[across].mean()
    others = float(np.delete(moments, largest).sum())  # to the last bit, as Bullet compares it
    if others < moments[largest] <= others * (1.0 + SLACK):
        moments[largest] = others * (1.0 - 1e-15)
    return axes, moments


def _shape(kind: str, shape: Shape, folder: Path) -> Xml.Element:
    element = Xml.Element(kind)
    _origin(element, shape.place)
    geometry = Xml.SubElement(element, "geometry")
    if shape.kind == "mesh":
        file = Path(os.path.relpath(shape.mesh, folder)).as_posix()
        Xml.SubElement(geometry, "mesh", filename=file, scale=exact(shape.size))
    elif shape.kind == "box":
        Xml.SubElement(geometry, "box", size=exact(shape.size))
    elif shape.kind == "plane":
        Xml.SubElement(geometry, "plane", normal="0 0 1")
    else:
        sizes = zip(("radius", "length"), shape.size, strict=False)
        Xml.SubElement(geometry, shape.kind, {key: exact((x,)) for key, x in sizes})
    if kind == "visual" and shape.rgba:
        colour = exact(shape.rgba)
        material = Xml.SubElement(element, "material", name="rgba_" + colour.replace(" ", "_"))
        Xml.SubElement(material, "color", rgba=colour)
    return element


def joint_element(joint: Joint) -> Xml.Element:
    """A joint in URDF's words; springs and armature have none there."""
    kind = "continuous" if joint.kind == "revolute" and not joint.limited else joint.kind
    element = Xml.Element("joint", name=joint.name, type=kind)
    _origin(element, joint.place)
    Xml.SubElement(element, "parent", link=joint.parent)
    Xml.SubElement(element, "child", link=joint.child)
    if kind == "fixed":
        return element
    Xml.SubElement(element, "axis", xyz=exact(joint.axis))  # Bullet asks a spherical one for it too
    if kind in ("revolute", "prismatic"):
        lower, upper = joint.limits
        drive = [x if np.isfinite(x) else UNSAID for x in (joint.effort, joint.velocity)]
        limit = {"effort": exact((drive[0],)), "velocity": exact((drive[1],))}
        if joint.limited:
            lower, upper = max(lower, -UNSAID), min(upper, UNSAID)
            limit = {"lower": exact((lower,)), "upper": exact((upper,))} | limit
        Xml.SubElement(element, "limit", limit)
    if joint.damping or joint.friction:
        values = {"damping": joint.damping, "friction": joint.friction}
        Xml.SubElement(element, "dynamics", {k: exact((x,)) for k, x in values.items()})
    return element
