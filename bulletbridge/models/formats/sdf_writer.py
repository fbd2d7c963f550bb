"""A model as SDF, for Gazebo and Drake: its loops are joints like the others.

SDF's joints are closed where links are placed, so links are placed as the model starts, assembled,
and positions are counted from there.
"""

import os
from collections.abc import Container, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np
from scipy.spatial.transform import Rotation

from bulletbridge.bullet.xml_file import write_xml
from bulletbridge.constraints.force_elements import ForceElement, Tendon, Wrench
from bulletbridge.constraints.joints import (
    Coupling,
    Distance,
    Frame,
    JointModel,
    LoopAxis,
    LoopJoint,
)
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import WORLD
from bulletbridge.mechanism.model import Joint as MechanismJoint
from bulletbridge.models.formats.drake_writer import drake_element, put_text
from bulletbridge.models.formats.robot import (
    Joining,
    Joint,
    Link,
    Pose,
    Robot,
    Scene,
    Shape,
    end_b,
    free_name,
    pose_of,
    share_of_weight,
    told,
    with_ends,
)
from bulletbridge.models.formats.sdf_frames import (
    BALL_TAG,
    LOOP_TAG,
    ROTOR_TAG,
    SCOPE,
    XMLNS,
)
from bulletbridge.models.formats.urdf_scene import scene_of
from bulletbridge.models.formats.urdf_text import exact
from bulletbridge.models.formats.written import Written
from bulletbridge.models.load import load
from bulletbridge.models.model_spec import EARTH, FileConstraint, ModelSpec
from bulletbridge.models.urdf_file import ENTRIES
from bulletbridge.numerics.records import Array

VERSION = "1.11"
KINDS = {"revolute": "revolute", "prismatic": "prismatic", "spherical": "ball", "fixed": "fixed"}
LOOPS = {
    JointModel.BALL: "ball",
    JointModel.WELD: "fixed",
    JointModel.REVOLUTE: "revolute",
    JointModel.PRISMATIC: "prismatic",
    JointModel.UNIVERSAL: "universal",
    JointModel.SCREW: "screw",
}
ENDS = "lower", "upper"
FREE, REST, OPEN = 1e9, 1e-12, 1e-9
"""Effort and limits that stand for none; positions that count as zero; gaps worth a note."""


def write_sdf(spec: ModelSpec, path: Path) -> Written:
    """Write a model as SDF: a model, or a world where there are several or gravity is not Earth's.

    Raises:
        ModelError: A URDF of the model cannot be read, its loops cannot close, or the file cannot
            be written.
    """
    scene = scene_of(spec)
    _start_at_zero(scene, spec)
    _name_plainly(scene)
    _name_apart(scene)
    file = path.with_name(f"{path.name}.sdf")
    root = Xml.Element("sdf", {"version": VERSION, **XMLNS})
    in_world = len(scene.robots) > 1 or scene.gravity != EARTH or bool(scene.scenery)
    outer = root
    if in_world:
        outer = Xml.SubElement(root, "world", name=scene.name)
        Xml.SubElement(outer, "gravity").text = exact(scene.gravity)
    models: list[Xml.Element] = []
    for robot in scene.robots:
        name = robot.name if len(scene.robots) > 1 else scene.name
        models.append(_model(outer, name, robot, file, scene.notes))
    for robot in scene.scenery:
        taken = (each.get("name", "") for each in outer.iterfind("model"))
        still = Xml.SubElement(outer, "model", name=free_name(robot.name, taken))
        Xml.SubElement(still, "static").text = "true"
        _pose(still, robot.place)
        _shapes(Xml.SubElement(still, "link", name=robot.root), robot.links[robot.root], file)
    holder = models[0] if len(models) == 1 else outer
    joints = {
        scene.prefix(robot) + joint.get("name", ""): (joint, model)
        for robot, model in zip(scene.robots, models, strict=True)
        for joint in model.iterfind("joint")
    }
    for loop in scene.loops:
        if loop.motion is not None or loop.max_force is not None:
            scene.notes.append(f"motion or force limit of '{loop.name}' is left out")
        if isinstance(loop, Coupling):
            if not _mimic(joints, loop):
                _add_drake(scene, models, loop)
        else:
            _loop(holder, loop, scene)
    for element in scene.elements:
        _add_drake(scene, models, element)
    scene.lose_base_damping()
    lost = [f"'{each.name}'" for each in scene.wrenches if not _weightless(scene, models, each)]
    scene.notes += told({"wrenches are left out: {}": lost})
    if scene.actuated:
        scene.notes.append("which joints are actuated is left out: SDF has no word for it")
    if spec.allow_structure:
        scene.notes.append("allow_structure is left out: SDF has no word for it")
    notes = [*spec.notes, *scene.notes]
    write_xml(root, file, [f"converted from {spec.path.name} by bulletbridge", *notes])
    return Written((file,), tuple(scene.notes))


def _weightless(scene: Scene, models: list[Xml.Element], wrench: Wrench) -> bool:
    """Write a wrench as a link without gravity, if it takes all of a link's weight."""
    for robot, model in zip(scene.robots, models, strict=True):
        name = wrench.frame.link.removeprefix(scene.prefix(robot))
        known = name in robot.links and scene.prefix(robot) + name == wrench.frame.link
        inertial = robot.links[name].inertial if known else None
        if inertial is None:
            continue
        share = share_of_weight(wrench, inertial.mass, inertial.com, scene.gravity)
        element = next((e for e in model.iterfind("link") if e.get("name") == name), None)
        if share is None or abs(share - 1.0) > 1e-12 or element is None:
            return False
        Xml.SubElement(element, "gravity").text = "false"
        return True
    return False


def _name_plainly(scene: Scene) -> None:
    """Take '::' out of all names, which SDF keeps for names of parts of models."""
    changed: list[str] = []

    def plain(name: str) -> str:
        if SCOPE in name:
            changed.append(name)
        return name.replace(SCOPE, "_")

    def moved(end: Frame) -> Frame:
        return replace(end, link=plain(end.link))

    for robot in (*scene.robots, *scene.scenery):
        known = len(robot.links), len(robot.joints)
        robot.name = plain(robot.name)
        robot.rename(plain)
        if (len(robot.links), len(robot.joints)) != known:
            raise ModelError(
                f"names of '{robot.name}' are not unique in SDF, where '{SCOPE}' becomes '_';"
                " give its links and joints names that differ otherwise"
            )

    def named(joining: Joining) -> Joining:
        return replace(with_ends(joining, plain, moved), name=plain(joining.name))

    scene.loops = [named(loop) for loop in scene.loops]
    scene.elements = [named(element) for element in scene.elements]
    scene.wrenches = [replace(each, frame=moved(each.frame)) for each in scene.wrenches]
    scene.notes += told({f"'{SCOPE}' in names is '_': {{}}": dict.fromkeys(changed)})


def _name_apart(scene: Scene) -> None:
    """Rename joints that are called like links: names in an SDF model are unique."""
    renamed: dict[str, str] = {}
    for robot in scene.robots:
        taken = {*robot.links, *robot.joints}
        for name in [name for name in robot.joints if name in robot.links]:
            new = free_name(f"{name}_joint", taken)
            taken.add(new)
            renamed[scene.prefix(robot) + name] = scene.prefix(robot) + new
            robot.joints[name].name = new
        robot.joints = {joint.name: joint for joint in robot.joints.values()}

    def apart(joining: Joining) -> Joining:
        return with_ends(joining, lambda name: renamed.get(name, name), lambda end: end)

    scene.loops = [apart(loop) for loop in scene.loops]
    scene.elements = [apart(element) for element in scene.elements]
    taken = {name for robot in scene.robots for name in (*robot.links, *robot.joints)}
    for k, loop in enumerate(scene.loops):
        if loop.name in taken and not isinstance(loop, Coupling):
            scene.loops[k] = replace(loop, name=free_name(f"{loop.name}_loop", taken))
    scene.notes += told({"joints called like links got '_joint' added: {}": renamed})


def _start_at_zero(scene: Scene, spec: ModelSpec) -> None:
    """Move all joints of a scene to the assembled start, and count positions from there."""
    with load(spec, "new") as model:
        q, v, joints = model.system.q, model.system.v, model.system.mechanism.joints
        gaps = model.system.evaluate().gaps
    for gap in gaps:
        if max(gap.metres, gap.radians) > OPEN:
            scene.notes.append(
                f"loop '{gap.name}' is open by {gap.metres:.1e} m, {gap.radians:.1e} rad in"
                " directions that nothing can move; SDF's is closed"
            )
    moved = False
    for robot in scene.robots:
        prefix = scene.prefix(robot)
        if not robot.fixed:
            own = q[joints[f"{prefix}base"].q]
            R = Rotation.from_quat(own[3:]).as_matrix()
            robot.place = Pose(R, own[:3] - R @ robot.base_com())
        for name, joint in robot.joints.items():
            full = prefix + name
            if joint.kind == "fixed":
                continue
            at = q[joints[full].q]
            if joint.kind == "spherical":
                joint.place = joint.place @ Pose(Rotation.from_quat(at).as_matrix())
                continue
            x = float(at[0])
            if abs(x) <= REST:
                continue
            moved = True
            joint.place = joint.place @ _motion(joint, x)
            joint.limits = joint.limits[0] - x, joint.limits[1] - x
            joint.rest -= x
    if moved:
        scene.notes.append("positions of joints are counted from the start, where links are placed")
    if np.abs(v).max(initial=0.0) > REST:
        scene.notes.append("rates at the start are left out: SDF has no place for them")
    scene.loops = [_counted(scene, loop, q, joints) for loop in scene.loops]
    turning = {n for n, own in scene.joints().items() if own.kind in ("revolute", "prismatic")}
    at = {name: float(q[joints[name].q][0]) for name in turning}
    scene.elements = [_shifted(element, at) for element in scene.elements]


def _counted(
    scene: Scene, loop: FileConstraint, q: Array, joints: Mapping[str, MechanismJoint]
) -> FileConstraint:
    """A coupling of positions that are counted from the start."""
    if not isinstance(loop, Coupling):
        return loop
    known = scene.joints()
    at = {name: float(q[joints[name].q][0]) for name in loop.coefficients if name in known}
    if loop.higher:
        return loop  # which is left out
    shift = loop.value({name: x if abs(x) > REST else 0.0 for name, x in at.items()})
    return replace(loop, offset=loop.offset - shift)


def _shifted(element: ForceElement, at: Mapping[str, float]) -> ForceElement:
    """A tendon whose length is counted from the start."""
    if not isinstance(element, Tendon):
        return element
    known = {name: at.get(name, 0.0) for name in element.coefficients}
    x = sum(c * known[name] for name, c in element.coefficients.items() if abs(known[name]) > REST)
    limits = element.limits and (element.limits[0] - x, element.limits[1] - x)
    return replace(element, rest=element.rest - x, limits=limits)


def _motion(joint: Joint, x: float) -> Pose:
    if joint.kind == "prismatic":
        return Pose(np.eye(3), x * joint.axis)
    return Pose(Rotation.from_rotvec(x * joint.axis).as_matrix())


def _model(
    outer: Xml.Element, name: str, robot: Robot, file: Path, notes: list[str]
) -> Xml.Element:
    """One robot; a root called ``world`` is SDF's own."""
    model = Xml.SubElement(outer, "model", name=name)
    standing = robot.fixed and robot.root == WORLD
    if not robot.fixed:
        model.set("canonical_link", robot.root)
    _pose(model, robot.place)
    carrying = robot.carrying()
    bare = [name for name in carrying if robot.links[name].inertial is None]
    notes += told({"links without mass, which Gazebo refuses: {}": bare})
    for link in robot.links.values():
        if standing and link.name == WORLD:
            if link.visuals or link.collisions:
                notes.append("shapes of the world are left out")
            continue
        element = Xml.SubElement(model, "link", name=link.name)
        if link.name in carrying:
            joint = carrying[link.name]
            on = "" if standing and joint.parent == WORLD else joint.parent
            _pose(element, joint.place, on)
        still = robot.fixed and link.name == robot.root
        if link.inertial is not None or not still:
            _inertial(element, link)
        _shapes(element, link, file)
    if robot.fixed and not standing:
        joint = Xml.SubElement(model, "joint", name=f"{WORLD}_to_{robot.root}", type="fixed")
        _ends(joint, WORLD, robot.root)
    for joint in robot.joints.values():
        element = Xml.SubElement(model, "joint", name=joint.name, type=KINDS[joint.kind])
        _ends(element, joint.parent, joint.child)
        if joint.kind in ("revolute", "prismatic"):
            _axis(element, joint)
        acting = joint.damping, joint.friction, joint.armature
        if joint.kind == "spherical" and any(acting):
            Xml.SubElement(element, BALL_TAG).text = exact(acting)
    balls = [joint for joint in robot.joints.values() if joint.kind == "spherical"]
    acting = [ball.name for ball in balls if ball.damping or ball.friction or ball.armature]
    limited = [joint.name for joint in balls if joint.limited]
    said = {
        f"damping, friction and armature of ball joints {{}} are in {BALL_TAG},"
        " which SDF has no words for and bulletbridge alone reads": acting,
        "largest turns of ball joints {}: left out, SDF has no word for it": limited,
    }
    notes += told(said)
    return model


def _axis(element: Xml.Element, joint: Joint) -> None:
    axis = Xml.SubElement(element, "axis")
    Xml.SubElement(axis, "xyz").text = exact(joint.axis)
    drive = {"effort": joint.effort, "velocity": joint.velocity}
    ends = {tag: x for tag, x in zip(ENDS, joint.limits, strict=True) if np.isfinite(x)}
    _numbers(axis, "limit", ends | {tag: x for tag, x in drive.items() if 0.0 < x < FREE})
    _dynamics(axis, joint)
    if joint.armature:
        Xml.SubElement(element, ROTOR_TAG).text = exact((joint.armature,))


def _dynamics(axis: Xml.Element, acts: Joint | LoopAxis) -> None:
    values = {
        "damping": acts.damping,
        "friction": acts.friction,
        "spring_stiffness": acts.stiffness,
        "spring_reference": acts.rest if acts.stiffness else 0.0,
    }
    if any(values.values()):
        _numbers(axis, "dynamics", values)


def _numbers(parent: Xml.Element, tag: str, numbers: Mapping[str, float]) -> None:
    """An element of numbers, unless there are none."""
    element = Xml.SubElement(parent, tag) if numbers else parent
    for key, value in numbers.items():
        Xml.SubElement(element, key).text = exact((value,))


def _ends(joint: Xml.Element, parent: str, child: str) -> None:
    Xml.SubElement(joint, "parent").text = parent
    Xml.SubElement(joint, "child").text = child


def _pose(element: Xml.Element, place: Pose, on: str = "") -> None:
    if on or place.p.any() or not np.array_equal(place.R, np.eye(3)):
        pose = Xml.SubElement(element, "pose", {"relative_to": on} if on else {})
        pose.text = f"{exact(place.xyz)} {exact(place.rpy)}"


def _inertial(element: Xml.Element, link: Link) -> None:
    inertial = Xml.SubElement(element, "inertial")
    mass, J = (link.inertial.mass, link.inertial.J) if link.inertial else (0.0, np.zeros((3, 3)))
    if link.inertial is not None:
        _pose(inertial, Pose(np.eye(3), link.inertial.com))
    Xml.SubElement(inertial, "mass").text = exact((mass,))
    _numbers(inertial, "inertia", {key: J[i, k] for key, i, k in ENTRIES})


def _shapes(element: Xml.Element, link: Link, file: Path) -> None:
    for tag, shapes in (("visual", link.visuals), ("collision", link.collisions)):
        for k, shape in enumerate(shapes):
            made = Xml.SubElement(element, tag, name=f"{link.name}_{tag}_{k}")
            _shape(made, shape, file)
            if tag == "collision" and link.friction is not None:
                rubs = Xml.SubElement(Xml.SubElement(made, "surface"), "friction")
                _numbers(rubs, "ode", dict.fromkeys(("mu", "mu2"), link.friction**2))


def _shape(element: Xml.Element, shape: Shape, file: Path) -> None:
    _pose(element, shape.place)
    geometry = Xml.SubElement(Xml.SubElement(element, "geometry"), shape.kind)
    if shape.kind == "mesh":
        uri = Path(os.path.relpath(shape.mesh, file.parent)).as_posix()
        Xml.SubElement(geometry, "uri").text = uri
        Xml.SubElement(geometry, "scale").text = exact(shape.size)
    elif shape.kind == "box":
        Xml.SubElement(geometry, "size").text = exact(shape.size)
    elif shape.kind == "plane":
        Xml.SubElement(geometry, "normal").text = "0 0 1"
    else:
        for tag, value in zip(("radius", "length"), shape.size, strict=False):
            Xml.SubElement(geometry, tag).text = exact((value,))
    if element.tag == "visual" and len(shape.rgba) == 4:
        material = Xml.SubElement(element, "material")
        for tag in ("ambient", "diffuse"):
            Xml.SubElement(material, tag).text = exact(shape.rgba)


def _loop(holder: Xml.Element, loop: LoopJoint | Distance, scene: Scene) -> None:
    """A loop as a joint whose frame is a."""
    notes = scene.notes
    if not isinstance(loop, LoopJoint) or loop.model not in LOOPS:
        kind = loop.model.value if isinstance(loop, LoopJoint) else "distance"
        notes.append(f"loop '{loop.name}' is LEFT OUT: SDF has no {kind} joint")
        return
    a, b = (frame.link.replace("/", SCOPE) for frame in (loop.a, loop.b))
    joint = Xml.SubElement(holder, "joint", name=loop.name, type=LOOPS[loop.model])
    place = pose_of(loop.a.xyz, loop.a.rpy)
    if a == WORLD and holder.tag != "world":
        _pose(joint, scene.robots[0].place.inverse @ place, "__model__")
    else:
        _pose(joint, place, a)
    _ends(joint, a, b)
    end = end_b(loop)
    Xml.SubElement(joint, LOOP_TAG).text = f"{exact(end.xyz)} {exact(end.rpy)}"
    if loop.model in (JointModel.BALL, JointModel.WELD):
        return
    if loop.model is JointModel.SCREW:
        Xml.SubElement(joint, "screw_thread_pitch").text = exact((loop.pitch,))
    along = loop.turn or loop.travel or LoopAxis()
    axis = Xml.SubElement(joint, "axis")
    Xml.SubElement(axis, "xyz").text = exact(_unit(loop.axis))
    if along.limits is not None:
        _numbers(axis, "limit", dict(zip(ENDS, along.limits, strict=True)))
    _dynamics(axis, along)
    if along.motor or along.force:
        notes.append(f"motor or force of loop '{loop.name}' is left out")
    if loop.model is JointModel.UNIVERSAL:
        second = Xml.SubElement(joint, "axis2")
        xyz = Xml.SubElement(second, "xyz", expressed_in=b)
        xyz.text = exact(pose_of(loop.b.xyz, loop.b.rpy).R @ _unit(loop.axis_b or loop.axis))


def _add_drake(scene: Scene, models: list[Xml.Element], made: Coupling | ForceElement) -> None:
    """Say a coupling or force element of one model in Drake's words, or that it is left out."""
    for robot, model in zip(scene.robots, models, strict=True):
        prefix = scene.prefix(robot)

        def local(name: str, known: Container[str], prefix: str = prefix) -> str | None:
            own = name.removeprefix(prefix)
            return own if name.startswith(prefix) and own in known else None

        element = drake_element(
            made,
            partial(local, known=robot.joints),
            partial(local, known=robot.links),
            put_text,
            partial(_put_frame, model),
        )
        if element is not None:
            model.append(element)
            return
    scene.notes.append(f"'{made.name}' is LEFT OUT: neither <mimic> nor Drake's elements say it")


def _put_frame(
    model: Xml.Element, parent: Xml.Element, tag: str, name: str, link: str, frame: Frame
) -> None:
    """Name a frame below an element, and put it on a link of a model."""
    name = free_name(name, [part.get("name", "") for part in model])
    Xml.SubElement(parent, tag).text = name
    element = Xml.SubElement(model, "frame", name=name, attached_to=link)
    Xml.SubElement(element, "pose").text = f"{exact(frame.xyz)} {exact(frame.rpy)}"


def _mimic(joints: Mapping[str, tuple[Xml.Element, Xml.Element]], coupling: Coupling) -> bool:
    """A coupling of two joints of a model as SDF's mimic, on the one that follows.

    Args:
        joints: Elements of joints and of their models, by full name.
        coupling: What is to be said.

    Returns:
        Whether it can be said so.
    """
    pairs = sorted(coupling.coefficients.items(), key=lambda pair: pair[1] != 1.0)
    for (own, c), (leader, factor) in (
        (pairs, pairs[::-1]) if len(pairs) == 2 and not coupling.higher else ()
    ):
        if own not in joints or leader not in joints or joints[own][1] is not joints[leader][1]:
            continue
        axis = joints[own][0].find("axis")
        if axis is None or axis.find("mimic") is not None:
            continue
        mimic = Xml.SubElement(axis, "mimic", joint=joints[leader][0].get("name", ""))
        Xml.SubElement(mimic, "multiplier").text = exact((-factor / c,))
        Xml.SubElement(mimic, "offset").text = exact((coupling.offset / c,))
        Xml.SubElement(mimic, "reference").text = "0"
        return True
    return False


def _unit(axis: tuple[float, float, float]) -> Array:
    return np.array(axis) / np.linalg.norm(axis)
