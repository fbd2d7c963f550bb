"""Drake's model directives: robots in files of their own, put together by welds.

Source: Drake, multibody/parsing/model_directives.h and common/schema/{transform,rotation}.h.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import radians
from pathlib import Path

import numpy as np
from ruamel.yaml.nodes import MappingNode

from bulletbridge.bullet.xml_file import read_xml
from bulletbridge.constraints.joints import Frame
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.joint_graph import OF_AXIS, Along, Connection, JointGraph, scene_of
from bulletbridge.models.formats.robot import (
    Joining,
    Pose,
    Robot,
    Scene,
    free_name,
    listed,
    pose_of,
    share_of_weight,
    with_ends,
)
from bulletbridge.models.formats.sdf_frames import SCOPE, numbers_in, open_scope, version_of
from bulletbridge.models.formats.urdf_scene import scene_of as scene_in
from bulletbridge.models.formats.urdf_text import specify
from bulletbridge.models.mesh_places import find_named, find_package
from bulletbridge.models.model_spec import ORIGIN, ModelSpec
from bulletbridge.models.strict_yaml import Node
from bulletbridge.models.yaml_text import read_yaml
from bulletbridge.numerics.records import Array

DIRECTIVES = "directives"
"""The one key of such a file."""
DEEPEST = 20
"""Files of directives that may name one another."""
MAP = "tag:yaml.org,2002:map"
"""What YAML calls a mapping without a tag."""
KINDS = {"spherical": "ball"}
"""What a graph calls a joint of a tree, where it calls it otherwise."""

Read = Callable[[Path], ModelSpec]
"""The model in a file."""


@dataclass
class Assembly:
    """What directives put together so far.

    Attributes:
        read: Reads the file of a model.
        graph: Links and joints by their scoped names, ``model::link``.
        frames: Link that each frame is on, and where on it, by scoped name.
        packages: Where packages are that a directive has named.
        start: Positions from which the start is assembled, of joints by scoped name.
        actuated: Joints with a drive, by scoped name.
        open_files: Files of directives that are being read.
    """

    read: Read
    graph: JointGraph
    frames: dict[str, tuple[str, Pose]] = field(default_factory=lambda: {WORLD: (WORLD, Pose())})
    packages: dict[str, Path] = field(default_factory=lambda: {})
    start: dict[str, float | list[float]] = field(default_factory=lambda: {})
    actuated: set[str] = field(default_factory=lambda: set())
    open_files: tuple[Path, ...] = ()


def read_directives(path: Path, folder: Path, read: Read) -> ModelSpec:
    """The model that a file of directives puts together.

    Names of links and joints have their model's before them, ``iiwa::iiwa_joint_1``, as in Drake;
    where several robots move apart, it is the robot's, ``iiwa/iiwa_joint_1``, as in loops files.

    Args:
        path: The file.
        folder: Where the generated URDFs go.
        read: The model in a file that it names.

    Raises:
        ModelError: A file is missing or cannot be read, or a name means nothing.
        LoopFileError: It is no YAML, or a directive cannot be understood.
    """
    name = path.name.partition(".")[0]
    made = Assembly(read, JointGraph(name))
    _process(made, path, "")
    scene = scene_of(made.graph)
    for robot in scene.robots:
        for joint in robot.joints:
            for scoped in (joint, f"{robot.name}{SCOPE}{joint}"):
                if scoped in made.start:
                    scene.start_guess[scene.prefix(robot) + joint] = made.start[scoped]
                if scoped in made.actuated:
                    scene.actuated.append(scene.prefix(robot) + joint)
    for name, link, place in made.graph.scenery:
        scene.stand(name, link, place)
    scene.note_scenery()
    return specify(scene, path, folder)


def _process(made: Assembly, path: Path, scope: str) -> None:
    """Do what one file says, its names in a scope."""
    if path in made.open_files or len(made.open_files) > DEEPEST:
        raise ModelError(f"{path} names itself, by {listed(each.name for each in made.open_files)}")
    made.open_files += (path,)
    for item in read_yaml(path).mapping([DIRECTIVES])[DIRECTIVES].items():
        for what, given in item.mapping((), _DIRECTIVES).items():
            _DIRECTIVES[what](made, given, scope)
    made.open_files = made.open_files[:-1]


def _add_model(made: Assembly, given: Node, scope: str) -> None:
    own = given.mapping(["file", "name"], ["default_joint_positions", "default_free_body_pose"])
    called = f"{scope}{own['name'].text()}{SCOPE}"
    if any(name.startswith(called) for name in made.frames):
        own["name"].fail(f"a model is called '{called.removesuffix(SCOPE)}' already; rename one")
    file = _file(made, own["file"])
    spec = made.read(file)
    scene = scene_in(spec)
    graph = made.graph
    several = len(scene.robots) > 1

    def full(name: str) -> str:
        return WORLD if name == WORLD else called + (name.replace("/", SCOPE) if several else name)

    trees = [(scene.prefix(robot), robot, _at_zero(robot)) for robot in scene.robots]
    known = {full(on + name): at for on, _, places in trees for name, at in places.items()}
    known.pop(WORLD, None)
    made.frames |= {name: (name, Pose()) for name in known}
    places = {name.removeprefix(called): place for name, place in known.items()}
    for name, (link, at) in _own_frames(file, places).items():
        made.frames[called + name] = called + link, at
    put: dict[str, Pose] = {}
    if "default_free_body_pose" in own:
        for name, at in own["default_free_body_pose"].table().items():
            link, on = _frame(made, called + name, at)
            base, pose = _transform(made, at, scope)
            put[link] = graph.places[base] @ pose @ (known[link] @ on).inverse
    for prefix, robot, at_zero in trees:
        moved = next(
            (put[full(prefix + name)] for name in at_zero if full(prefix + name) in put), Pose()
        )
        at_zero = {name: moved @ place for name, place in at_zero.items()}
        _add_robot(graph, robot, at_zero, lambda name, prefix=prefix: full(prefix + name))
    made.start |= {full(name): q for name, q in (spec.start_guess | spec.start_q).items()}
    made.actuated |= set(map(full, scene.actuated))
    joints = {full(name): joint for name, joint in scene.joints().items()}
    if "default_joint_positions" in own:
        for name, q in own["default_joint_positions"].table().items():
            joint = joints.get(called + name)
            values = q.numbers() if q.is_list() else (q.number(),)
            if joint is None or joint.kind not in ("revolute", "prismatic") or len(values) != 1:
                q.fail(f"'{name}' is no hinge or slider of the model with {len(values)} positions")
            made.start[called + name] = values[0]
    graph.loops += [_called(loop, full) for loop in scene.loops]
    graph.elements += [_called(element, full) for element in scene.elements]
    _carry(made, scene, full)
    graph.scenery += [
        (called + each.name, each.links[each.root], each.place) for each in scene.scenery
    ]
    graph.notes += [f"{called.removesuffix(SCOPE)}: {note}" for note in (*spec.notes, *scene.notes)]


def _own_frames(file: Path, places: Mapping[str, Pose]) -> dict[str, tuple[str, Pose]]:
    """Links and frames as a file has them: the link that each is on, and where on that it is.

    Args:
        file: URDF or SDF.
        places: Where the links of its model stand, at zero; those that SDF's joints have moved have
            other frames than in the file.
    """
    if file.suffix not in (".urdf", ".sdf", ".xml"):
        return {}
    root = read_xml(file)
    found: dict[str, tuple[str, Pose]] = {}
    for element in root.iterfind("frame"):
        name, link = element.get("name", ""), element.get("link", "")
        if link not in places:
            continue
        xyz, rpy = (
            numbers_in(element.get(key, "0 0 0"), 3, f"{key} of <frame> '{name}'")
            for key in ("xyz", "rpy")
        )
        found[name] = link, pose_of(xyz, rpy)
    model = root.find("model")
    if model is None:
        return found
    for scope in open_scope(model, version_of(root, file), file, file.parent).scopes():
        for name in scope.parts:
            link = scope.link_of(name)
            if link in places:
                at = places[link].inverse @ scope.placed @ scope.pose(name)
                found[scope.prefix + name] = link, at
    return found


def _at_zero(robot: Robot) -> dict[str, Pose]:
    """Where the links of a tree are in the world while its joints are at zero."""
    places = {robot.root: robot.place}
    for joint in robot.joints.values():
        places[joint.child] = places[joint.parent] @ joint.place
    return places


def _add_robot(
    graph: JointGraph, robot: Robot, places: Mapping[str, Pose], full: Callable[[str], str]
) -> None:
    """Links of a tree, in their places, and its joints."""
    for name, link in robot.links.items():
        if full(name) == WORLD:  # a root of that name, which is the world itself
            continue
        graph.links[full(name)] = replace(link, name=full(name))
        graph.places[full(name)] = places[name]
    if full(robot.root) == WORLD:
        pass
    elif robot.fixed:
        name = full(f"{robot.root}_to_{WORLD}")
        graph.connections.append(
            Connection(name, "fixed", WORLD, full(robot.root), places[robot.root])
        )
    else:
        graph.roots.append(full(robot.root))
    for name, joint in robot.joints.items():
        along = {key: getattr(joint, key) for key in OF_AXIS}
        graph.connections.append(
            Connection(
                full(name),
                KINDS.get(joint.kind, joint.kind),
                full(joint.parent),
                full(joint.child),
                places[joint.child],
                () if joint.kind == "fixed" else (Along(**along),),
                armature=joint.armature,
            )
        )


def _called(joining: Joining, full: Callable[[str], str]) -> Joining:
    """A loop, coupling or spring with other names."""

    def named(end: Frame) -> Frame:
        return replace(end, link=full(end.link))

    return replace(with_ends(joining, full, named), name=full(joining.name))


def _carry(made: Assembly, scene: Scene, full: Callable[[str], str]) -> None:
    """Take over wrenches that carry the weight of a link, and say which others are left out."""
    left = list[str]()
    for wrench in scene.wrenches:
        link = full(wrench.frame.link)
        inertial = made.graph.links[link].inertial if link != WORLD else None
        share = inertial and share_of_weight(wrench, inertial.mass, inertial.com, scene.gravity)
        if share is None:
            left.append(wrench.name)
        else:
            made.graph.carried[link] = made.graph.carried.get(link, 0.0) + share
    if left:
        made.graph.notes.append(f"forces from outside are left out: {listed(left)}")


def _add_frame(made: Assembly, given: Node, scope: str) -> None:
    own = given.mapping(["name", "X_PF"])
    name = own["name"].text()
    if "base_frame" not in own["X_PF"].table():
        own["X_PF"].fail("key 'base_frame' is missing; add it")
    found = _transform(made, own["X_PF"], scope)
    model = found[0].rpartition(SCOPE)[0]
    made.frames[scope + name] = found
    made.frames.setdefault(f"{model}{SCOPE}{name}" if model else name, found)


def _add_weld(made: Assembly, given: Node, scope: str) -> None:
    own = given.mapping(["parent", "child"], ["X_PC"])
    parent, on = _frame(made, _within(scope, own["parent"].text()), own["parent"])
    child, at = _frame(made, _within(scope, own["child"].text()), own["child"])
    X = _transform(made, own["X_PC"])[1] if "X_PC" in own else Pose()
    graph = made.graph
    if parent == child:
        given.fail(f"parent and child are both on '{parent}'; weld it to another link")
    taken = [each.name for each in graph.connections]
    graph.connections.append(
        Connection(
            free_name(f"{child}_to_{parent}", taken),
            "fixed",
            parent,
            child,
            graph.places[parent] @ on @ X,
            place_b=graph.places[child] @ at,
        )
    )


def _add_directives(made: Assembly, given: Node, scope: str) -> None:
    own = given.mapping(["file"], ["model_namespace"])
    inner = own["model_namespace"].text() + SCOPE if "model_namespace" in own else ""
    _process(made, _file(made, own["file"]), scope + inner)


def _add_package_path(made: Assembly, given: Node, scope: str) -> None:
    own = given.mapping(["name", "path"])
    made.packages[own["name"].text()] = made.open_files[-1].parent / own["path"].text()


def _add_nothing(made: Assembly, given: Node, scope: str) -> None:
    """Names of models without anything, and which bodies do not collide."""


_DIRECTIVES: Mapping[str, Callable[[Assembly, Node, str], None]] = {
    "add_model": _add_model,
    "add_frame": _add_frame,
    "add_weld": _add_weld,
    "add_directives": _add_directives,
    "add_package_path": _add_package_path,
    "add_model_instance": _add_nothing,
    "add_collision_filter_group": _add_nothing,
}


def _file(made: Assembly, given: Node) -> Path:
    """The file that a directive names, in a package, or beside the file that names it."""
    uri, beside = given.text(), made.open_files[-1]
    scheme, _, rest = uri.rpartition("://")
    package, _, within = rest.lstrip("/").partition("/")
    root = made.packages.get(package) or find_package(package, beside)
    found = root / within if scheme == "package" and root is not None else None
    if found is None or not found.is_file():
        found = find_named(uri, beside)
    if found is None:
        given.fail(
            f"'{uri}' is not there; put it there, or its package beside the file or where"
            " ROS_PACKAGE_PATH leads"
        )
    return found


def _within(scope: str, name: str) -> str:
    return name if name == WORLD else scope + name


def _frame(made: Assembly, name: str, given: Node) -> tuple[str, Pose]:
    """The link that a frame is on, and where on it."""
    if name not in made.frames:
        given.fail(f"'{name}' is no link or frame; there are {listed(made.frames)}")
    return made.frames[name]


def _transform(made: Assembly, given: Node, scope: str = "") -> tuple[str, Pose]:
    """A transform: the link of its base frame, and where on that it is."""
    own = given.mapping((), ["base_frame", "translation", "rotation"])
    link, on = WORLD, Pose()
    if "base_frame" in own:
        link, on = _frame(made, _within(scope, own["base_frame"].text()), own["base_frame"])
    at = pose_of(own["translation"].triple() if "translation" in own else ORIGIN, ORIGIN)
    R = _rotation(own["rotation"]) if "rotation" in own else np.eye(3)
    return link, on @ at @ Pose(R)


def _rotation(given: Node) -> Array:
    """A turn by roll, pitch and yaw, or about an axis, in degrees."""
    tag, value = str(given.yaml.tag).rpartition("!")[2], given.yaml.value
    if not isinstance(given.yaml, MappingNode):
        given.fail("must be !Rpy {deg: [roll, pitch, yaw]} or the like")
    plain = replace(given, yaml=MappingNode(MAP, value))
    own = plain.mapping((), ["deg", "angle_deg", "axis"])
    if "deg" in own:
        roll, pitch, yaw = (radians(x) for x in own["deg"].triple())
        return pose_of(ORIGIN, (roll, pitch, yaw)).R
    if {"angle_deg", "axis"} <= own.keys():
        from scipy.spatial.transform import Rotation

        axis = np.array(own["axis"].direction())
        turn = radians(own["angle_deg"].number()) * axis / np.linalg.norm(axis)
        return Rotation.from_rotvec(turn).as_matrix()
    if own or tag == "Uniform":
        given.fail("a rotation is !Rpy with deg, or !AngleAxis with angle_deg and axis; give one")
    return np.eye(3)
