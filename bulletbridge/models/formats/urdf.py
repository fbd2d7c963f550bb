"""A URDF as a model, with every extension that says which joints depend and which loops close."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

from bulletbridge.bullet.xml_file import as_seen, is_plain_urdf, to_number
from bulletbridge.constraints.joints import Coupling, Frame, LoopJoint
from bulletbridge.models.formats.drake_elements import Source, drake_elements
from bulletbridge.models.formats.extension import Extension
from bulletbridge.models.formats.gazebo_joints import (
    gazebo_joints,
    joint_springs,
    weightless_links,
)
from bulletbridge.models.formats.gazebo_links import take_gazebo_links
from bulletbridge.models.formats.how import AS_IT_IS, How
from bulletbridge.models.formats.loadable import (
    angle_notes,
    empty_frames,
    free_base,
    retype,
    settle_limits,
    settle_meshes,
    take_drake_joints,
    take_out_foreign,
    unit_axes,
    whole_inertials,
    whole_names,
    write_urdf,
)
from bulletbridge.models.formats.loop_tags import link_named, loops_in, take_second_parents
from bulletbridge.models.formats.mimic import (
    Mimic,
    couplings_of,
    limit_notes,
    loose_mimics,
    mimics_of,
    plugin_notes,
)
from bulletbridge.models.formats.robot import listed
from bulletbridge.models.formats.rotors import drive_notes, rotors_in
from bulletbridge.models.formats.scratch import TEXT
from bulletbridge.models.formats.sidecars import read_sidecars
from bulletbridge.models.formats.strange_words import URDF_WORDS, strange_words
from bulletbridge.models.formats.urdf_tree import MOVING, UrdfTree
from bulletbridge.models.formats.xacro_file import read_expanded
from bulletbridge.models.model_spec import EARTH, ORIGIN, BodySpec, ModelSpec
from bulletbridge.models.urdf_file import XACRO, check_tree
from bulletbridge.models.urdf_names import WORLD, bullet_holds

URDF = ".urdf"
GENERIC = ("robot", "model")
"""Names of files that tell nothing: the folder's is taken."""


def read_robot(path: Path, folder: Path, how: How = AS_IT_IS) -> ModelSpec:
    """The model in a URDF: its tree as Bullet loads it, loops, joints that mimic others.

    Args:
        path: The file.
        folder: Where a URDF that Bullet can load goes, if it is not this one.
        how: Arguments for xacro, and whether its base will be held.

    Raises:
        ModelError: The file cannot be read, or something in it cannot be modelled.
        LoopFileError: A file of loops beside it cannot be understood.
    """
    robot, of_xacro, expanded = read_expanded(path, how.arguments)
    tree = UrdfTree(path, robot)
    turned, about_turns = tree.settle_turns()
    hung = tree.add_world()
    strange = strange_words([*robot.iterfind("joint"), *robot.iterfind("link")], URDF_WORDS)
    second, of_drake = take_second_parents(tree), take_drake_joints(tree)
    scenery = tree.leave_scenery()
    check_tree(robot, path)
    numbers = tree.settle_numbers()
    added = take_gazebo_links(tree)
    settled, about_limits = settle_limits(tree)
    in_file, sidecar = loops_in(tree), read_sidecars(tree)
    drake = _drake_elements(tree, [loop.name for loop in in_file.loops])
    gazebo = gazebo_joints(tree, {loop.name for loop in (*in_file.loops, *drake.loops)})
    springs, about_springs = joint_springs(tree)
    retyped = of_drake | sidecar.retyped
    notes = [
        *of_xacro,
        *about_turns,
        *hung,
        *second,
        *scenery,
        *tree.stray_notes(),
        *strange,
        *tree.mujoco_notes(),
        *numbers,
        *added.notes,
        *about_limits,
        *angle_notes(tree),
        *in_file.notes,
        *drake.notes,
        *gazebo.notes,
        *about_springs,
        *sidecar.notes,
        *retype(tree, retyped),
    ]
    mimics, rotors = mimics_of(tree), rotors_in(tree)
    notes += [*rotors.notes, *drive_notes(tree)]
    notes += [*loose_mimics(tree), *limit_notes(tree, mimics), *plugin_notes(tree)]
    foreign, loose = take_out_foreign(tree), free_base(tree)
    if loose is not None:
        notes.append("the base floats, for a floating joint joins it to the world")
    notes += [
        f"joint '{name}' is floating: its links are FIXED, as by Bullet; to let them float, give"
        " them a URDF of their own"
        for name, joint in tree.joints.items()
        if joint.get("type") == "floating"
    ]
    frames = [*unit_axes(tree), *whole_names(tree), *whole_inertials(tree), *empty_frames(tree)]
    moved, about_meshes = settle_meshes(tree)
    notes += frames + about_meshes
    held = sidecar.held or gazebo.held or _stands_still(tree)
    values = _initial_values(tree)
    if values:
        said = (f"{name} at {x:g}" for name, x in values.items())
        notes.append(f"joints start as <ros2_control> has it, within limits: {listed(said)}")
    lifts = weightless_links(tree, held if how.fixed_base is None else how.fixed_base)
    if lifts:
        names = listed(each.frame.link for each in lifts)
        notes.append(f"gravity does not act on {names}: forces take their weight (wrenches)")
    urdf = path.resolve()
    plain = Path(path.name.removesuffix(XACRO)).stem
    of_tree = turned or hung or second or scenery or numbers or added.notes or settled or retyped
    changed = expanded or of_tree or foreign or frames or moved
    if changed or loose is not None or not is_plain_urdf(path):
        urdf = folder.resolve() / f"{plain}{URDF}"
        write_urdf(robot, urdf, [f"made from {path.name} for Bullet"])
    loops = _told_apart([*in_file.loops, *drake.loops, *gazebo.loops], sidecar.loops)
    return ModelSpec(
        _called(robot, path, plain),
        path,
        (
            BodySpec(
                "robot",
                urdf,
                held,
                *(loose or (ORIGIN, ORIGIN)),
            ),
        ),
        (*loops, *couplings_of(mimics, frozenset(loop.name for loop in loops))),
        actuated=tuple(sidecar.actuated) or _driven(tree, mimics),
        forces=(*springs, *added.forces),
        start_guess=_start(tree, mimics),
        elements=tuple(drake.elements),
        joints=rotors.joints,
        wrenches=tuple(lifts),
        gravity=EARTH if lifts else None,
        notes=tuple(notes),
    )


def _drake_elements(tree: UrdfTree, taken: list[str]) -> Extension:
    """Constraints and springs in Drake's words; frames of bushings may be those of <frame>."""
    frames = {frame.get("name", ""): frame for frame in tree.robot.iterfind("frame")}

    def place(name: str) -> Frame:
        where = f"'{name}' of a constraint or spring of Drake's"
        if name not in frames:
            return Frame(link_named(tree, name, where))
        frame = frames[name]
        link = link_named(tree, frame.get("link", ""), f"<frame> '{name}'")
        return Frame(link, *tree.origin(frame, f"<frame> '{name}'"))

    def joint(name: str) -> str:
        if tree.joints.get(name) is None or tree.joints[name].get("type") not in MOVING:
            tree.fail(f"a constraint of Drake's names '{name}', which is no joint with one axis")
        return name

    return drake_elements(tree.robot, Source(place, joint, tree.fail), taken)


def _told_apart(
    loops: list[LoopJoint | Coupling], more: list[LoopJoint | Coupling]
) -> list[LoopJoint | Coupling]:
    """Loops of two sources, each with a name of its own."""
    taken, found = {loop.name for loop in loops}, list(loops)
    for loop in more:
        name = loop.name
        while name in taken:
            name += "_"
        taken.add(name)
        found.append(replace(loop, name=name))
    return found


def _stands_still(tree: UrdfTree) -> bool:
    """Whether the base is part of the world: the root is called so, or has a mass of zero."""
    return tree.root == WORLD or bullet_holds(tree.links[tree.root])


def _called(robot: Xml.Element, path: Path, plain: str) -> str:
    """Name of a model: that of its file without endings, of its folder, or of what is no file."""
    if plain == TEXT:
        return robot.get("name") or TEXT
    return path.parent.name if plain in GENERIC else plain


def _driven(tree: UrdfTree, mimics: dict[str, Mimic]) -> tuple[str, ...]:
    """Joints that a transmission or ros2_control moves, but for those that mimic others."""
    named = [each.get("name", "") for each in tree.robot.iterfind("transmission/joint")]
    for joint in tree.robot.iterfind("ros2_control/joint"):
        if joint.find("command_interface") is not None:
            named.append(joint.get("name", ""))
    joints = tree.joints
    moving = [name for name in named if name in joints and joints[name].get("type") in MOVING]
    return tuple(name for name in dict.fromkeys(moving) if name not in mimics)


def _initial_values(tree: UrdfTree) -> dict[str, float]:
    """Positions other than zero of joints of one axis by ``initial_value`` of ros2_control."""
    found: dict[str, float] = {}
    joints = tree.joints
    for joint in tree.robot.iterfind("ros2_control/joint"):
        name = joint.get("name", "")
        text = joint.findtext("state_interface[@name='position']/param[@name='initial_value']")
        if text is None or name not in joints or joints[name].get("type") not in MOVING:
            continue
        try:
            value = to_number(as_seen(text).strip())
        except ValueError:
            tree.fail(
                f"joint '{name}' in <ros2_control> has an initial_value '{text}'; give a number"
            )
        if value:
            found[name] = value
    return found


def _start(tree: UrdfTree, mimics: dict[str, Mimic]) -> dict[str, float | list[float]]:
    """Positions from which loops are closed, within limits; followers follow.

    They are those at which ``<ros2_control>`` has joints start in simulators, else zero.
    """
    found = _initial_values(tree)
    for name, joint in tree.joints.items():
        limits = tree.limits(joint)
        if limits is not None:
            found[name] = min(max(found.get(name, 0.0), limits[0]), limits[1])
    for name, mimic in mimics.items():
        found[name] = mimic.multiplier * found.get(mimic.joint, 0.0) + mimic.offset
    return {name: position for name, position in found.items() if position != 0.0}
