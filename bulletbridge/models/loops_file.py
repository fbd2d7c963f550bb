"""Loops files: which loops a URDF robot has, where it starts, what acts on it.

The format is described in docs/loops-file.md. Unknown keys are errors.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bulletbridge.bullet.xml_file import read_xml
from bulletbridge.console import write_text
from bulletbridge.constraints.joints import Coupling, Frame, LoopJoint
from bulletbridge.errors import LoopFileError, ModelError
from bulletbridge.mechanism.angles import OF_LIMITS, degrees_notes
from bulletbridge.mechanism.beams import MOST_MODES
from bulletbridge.mechanism.joint_properties import PROPERTIES, JointProperties
from bulletbridge.models.bundled import similar_file, split_arguments
from bulletbridge.models.force_entries import is_element, read_element, read_wrench
from bulletbridge.models.formats.mimic import couplings_of, loose_mimics, mimics_of, prefixed
from bulletbridge.models.formats.robot import listed
from bulletbridge.models.formats.urdf_tree import UrdfTree
from bulletbridge.models.formats.xacro_file import expanded_file
from bulletbridge.models.loop_entries import PLACE, read_constraint, read_effort, read_limits
from bulletbridge.models.loops_writer import loops_text
from bulletbridge.models.mesh_places import find_named
from bulletbridge.models.model_spec import (
    BEAM,
    PYBULLET_DATA,
    VERSION,
    BeamSpec,
    BodySpec,
    JointForce,
    ModelSpec,
    pybullet_data_folder,
)
from bulletbridge.models.strict_yaml import Keys, Node, Readers, items_of, read_given
from bulletbridge.models.urdf_file import XACRO, is_file
from bulletbridge.models.urdf_names import BASE, check_names, read_names
from bulletbridge.models.yaml_text import parse_yaml, read_yaml

FLOATS = (
    "the base floats, as with PyBullet's loadURDF, since the file does not say otherwise;"
    " 'fixed_base: true' (--fixed-base) holds it, 'fixed_base: false' says that it is meant"
)
ROBOT = ("urdf", "fixed_base", "base", "scale")
"""Keys of a robot: at the root when there is one, in an entry of ``bodies`` when there are more."""
SCENERY = ("base", "scale")
"""Keys that an entry of ``scenery`` may have besides its name and file."""
ROOT = (
    *(*ROBOT, "bodies", "loops", "actuated", "gravity", "start"),
    *("joints", "forces", "joint_friction", "allow_structure"),
    *("mimic", "beams", "wrenches", "scenery"),
)
TURNING = ("revolute", "continuous")
"""Kinds of joints whose position is an angle."""
MOST_SHOWN = 200
"""Characters of a path that a message shows."""
QUATERNION, POSE = 4, 7
SPIN, TWIST = 3, 6


def read_loops(path: str | Path) -> ModelSpec:
    """Read a loops file.

    Raises:
        LoopFileError: Something in it is wrong; the message names line, key and remedy.
        ModelError: The file cannot be read.
    """
    return _model(read_yaml(Path(path)))


def write_loops(spec: ModelSpec, path: str | Path, comments: Sequence[str] = ()) -> None:
    """Write a loops file that ``read_loops`` reads back as the same model, or nothing.

    Args:
        spec: The model.
        path: Where.
        comments: What stands at its head, a paragraph each.

    Raises:
        LoopFileError: No file can hold it: a motion is a Python function, a number is not finite.
        ModelError: It cannot be written there.
    """
    path = Path(path)
    said = [
        textwrap.fill(_one_line(comment), 98, subsequent_indent="  " * comment.startswith("- "))
        for comment in comments
    ]
    head = "".join(textwrap.indent(line, "# ") + "\n" for line in said)
    text = head + loops_text(spec, path)
    try:
        _model(parse_yaml(text, path))
    except LoopFileError as error:
        raise LoopFileError(f"not written, for it could not be read back: {error}") from None
    write_text(path, text)


def _one_line(text: str) -> str:
    """A text without what would end a comment or be no text in YAML."""
    return "".join(c if c.isprintable() else " " for c in text)


def _model(root: Node) -> ModelSpec:
    _require_version(root)  # first: another version may have other keys
    keys = root.mapping(("bulletbridge",), ROOT)
    start = _start(keys["start"]) if "start" in keys else {}
    loops, actuated = items_of(keys, "loops"), items_of(keys, "actuated")
    constraints = tuple(read_constraint(loop) for loop in loops)
    forces = items_of(keys, "forces")
    elements = tuple(read_element(force) for force in forces if is_element(force))
    wrenches = items_of(keys, "wrenches")
    pushes = tuple(read_wrench(wrench) for wrench in wrenches)
    joining = [*loops, *(force for force in forces if is_element(force)), *wrenches]
    _require_unique([entry.table()["name"] for entry in joining])
    _require_unique(actuated)
    scenery = [item.mapping(("name", "urdf"), SCENERY) for item in items_of(keys, "scenery")]
    _require_unique([entry["name"] for entry in scenery])
    spec = ModelSpec(
        root.path.name.removesuffix(".yaml").removesuffix(".loops"),
        root.path,
        _bodies(root, keys),
        constraints,
        tuple(joint.text() for joint in actuated),
        start_q=_coordinates(start, "q", (QUATERNION, POSE)),
        start_v=_coordinates(start, "v", (SPIN, TWIST)),
        start_guess=_coordinates(start, "guess", (QUATERNION, POSE)),
        forces=tuple(_force(item) for item in forces if not is_element(item)),
        beams=tuple(_beam(item) for item in items_of(keys, "beams")),
        elements=elements,
        wrenches=pushes,
        scenery=tuple(
            replace(_body(entry, _body_name(entry["name"])), fixed_base=True) for entry in scenery
        ),
        **read_given(keys, OF_MODEL),
    )
    names = read_names(spec.bodies)
    if names is not None:
        bodies = (replace(x, fixed_base=x.fixed_base or x.name in names.held) for x in spec.bodies)
        spec = replace(spec, bodies=tuple(bodies))
    floats = (FLOATS,) if _floats_unsaid(spec, keys) else ()
    if names is None:
        return replace(spec, notes=floats)
    check_names(root, names)
    notes = [*floats, *_degrees(spec, names.joints)]
    return _with_followers(spec, keys["mimic"].flag() if "mimic" in keys else None, notes)


def _with_followers(spec: ModelSpec, coupled: bool | None, notes: Sequence[str]) -> ModelSpec:
    """A model with its notes, and with joints that ``<mimic>`` has follow others, if wanted.

    Args:
        spec: As its loops file says.
        coupled: Whether they are; None where the file does not say, which is noted.
        notes: On everything else.
    """
    couplings, said = list[Coupling](), list[str]()
    taken = frozenset(each.name for each in spec.constraints)
    for body in spec.bodies if coupled is not False else ():
        if b"<mimic" not in body.urdf.read_bytes():
            continue
        tree = UrdfTree(body.urdf, read_xml(body.urdf))
        said += loose_mimics(tree)
        prefix = f"{body.name}/" if len(spec.bodies) > 1 else ""
        couplings += couplings_of(prefixed(mimics_of(tree), prefix), taken)
    if coupled is None:
        given = [each.coefficients for each in spec.constraints if isinstance(each, Coupling)]
        led = {joint for coefficients in given for joint in coefficients}
        loose = [name for each in couplings if (name := next(iter(each.coefficients))) not in led]
        if loose:
            said.append(
                f"nothing leads {listed(map(repr, loose))}, for Bullet ignores <mimic>: 'mimic:"
                " true' couples what has it, 'mimic: false' leaves it loose"
            )
        couplings = []
    return replace(spec, constraints=(*spec.constraints, *couplings), notes=(*notes, *said))


def _floats_unsaid(spec: ModelSpec, keys: Keys) -> bool:
    """Whether all that a model has floats without a word in its file that this is meant."""
    bodies = [item.table() for item in keys["bodies"].items()] if "bodies" in keys else [keys]
    if any("fixed_base" in body for body in bodies) or spec.scenery:
        return False
    if any(body.fixed_base for body in spec.bodies):
        return False
    started = {**spec.start_q, **spec.start_v, **spec.start_guess}
    return not any(name.split("/")[-1] == BASE for name in started)


FOREIGN = {
    "closed_loop": "this is Gepetto's file of closures: load the URDF beside it",
    "loop_closures": "this is scikit-robot's file of closures: load the URDF beside it",
}
"""What files of others are, by a key of theirs, and what to load."""

OF_START = "start of joint"
"""What notes on angles of a start begin with."""


def _degrees(spec: ModelSpec, kinds: Mapping[str, str]) -> tuple[str, ...]:
    """What is to be said of angles that look like degrees."""
    turning = {name for name, kind in kinds.items() if kind in TURNING}
    angles: dict[str, Sequence[float]] = {
        f"{OF_START} '{name}'": (value,)
        for name, value in (spec.start_guess | spec.start_q).items()
        if not isinstance(value, list) and name in turning
    }
    angles |= {f"rpy of base '{body.name}'": body.rpy for body in spec.bodies}
    limits: dict[str, Sequence[float]] = {
        f"a limit of joint '{name}'": given.limits
        for name, given in spec.joints.items()
        if given.limits is not None and name in turning
    }
    for constraint in spec.constraints:
        for side in ("a", "b"):
            frame = getattr(constraint, side, None)
            if isinstance(frame, Frame):
                angles[f"rpy of frame {side} of '{constraint.name}'"] = frame.rpy
        if isinstance(constraint, LoopJoint) and constraint.turn is not None:
            limits[f"a limit of the turn of '{constraint.name}'"] = constraint.turn.limits or ()
    return tuple([*degrees_notes(angles), *degrees_notes(limits, OF_LIMITS)])


def _require_version(root: Node) -> None:
    version = root.table().get("bulletbridge")
    if version is None and not {"urdf", "bodies", "loops"} & root.table().keys():
        for key, said in FOREIGN.items():
            if key in root.table():
                root.fail(f"{said}, no loops file")
        root.fail("no loops file: one has 'bulletbridge: 1', the robot under 'urdf', and 'loops'")
    if version is None:
        root.fail(f"key 'bulletbridge' is missing; add 'bulletbridge: {VERSION}'")
    if version.number() != VERSION:
        version.fail(
            f"version {version.number():g} is unknown; this release reads {VERSION}: "
            f"update bulletbridge, or write version {VERSION}"
        )


def _require_unique(names: Sequence[Node]) -> None:
    seen: dict[str, Node] = {}
    for node in names:
        name = node.text()
        if name in seen:
            node.fail(f"'{name}' is already on line {seen[name].line}; use each name once")
        seen[name] = node


def _start(node: Node) -> Keys:
    """Positions, rates and guesses at the start."""
    for key in node.names():
        if key.text() in ("base", "pose", "xyz"):
            key.fail(
                "the base starts where 'base: {xyz: [x, y, z]}' beside 'urdf' has it, or, if it"
                " floats, where 'q: {base: [x, y, z, qx, qy, qz, qw]}' has it"
            )
    return node.mapping((), ("q", "v", "guess"))


def _bodies(root: Node, keys: Keys) -> tuple[BodySpec, ...]:
    if "bodies" not in keys:
        if "urdf" not in keys:
            root.fail("key 'urdf' is missing; name one file, or several robots under 'bodies'")
        return (_body({key: keys[key] for key in ROBOT if key in keys}, "robot"),)
    for key in ROBOT:
        if key in keys:
            keys[key].fail("belongs in an entry of 'bodies' when there are several robots")
    entries = [item.mapping(("name", "urdf"), ROBOT) for item in keys["bodies"].items()]
    if not entries:
        keys["bodies"].fail("is empty; give one entry for each robot, with name and urdf")
    _require_unique([entry["name"] for entry in entries])
    return tuple(_body(entry, _body_name(entry["name"])) for entry in entries)


def _body_name(node: Node) -> str:
    name = node.text()
    if "/" in name:
        node.fail("must not contain '/', which separates a robot from its links and joints")
    return name


def _body(entry: Keys, name: str) -> BodySpec:
    base = entry["base"].mapping((), PLACE) if "base" in entry else {}
    own = read_given(entry, {"fixed_base": Node.flag, "scale": Node.positive})
    return BodySpec(name, _urdf(entry["urdf"]), **own, **read_given(base, PLACE))


def _urdf(node: Node) -> Path:
    given, arguments = split_arguments(node.text())
    name = str(given)
    if name.split("/")[0] == PYBULLET_DATA:
        path = pybullet_data_folder().joinpath(*name.split("/")[1:])
    else:
        path = find_named(name, node.path) if "://" in name else node.path.parent / name
    if path is None or not is_file(path):
        said = name if path is None else str(path)
        said = said if len(said) <= MOST_SHOWN else f"{said[:MOST_SHOWN]}..."
        if path is not None and is_file(pybullet_data_folder() / name):
            node.fail(f"there is no file {said!r}; PyBullet's own is {PYBULLET_DATA}/{name}")
        hint = "" if path is None else similar_file(path)
        hint = f"{hint} Or give" if hint else "give"
        node.fail(
            f"there is no file {said!r}; {hint} a path relative to this file, "
            f"or {PYBULLET_DATA}/... for PyBullet's own"
        )
    if path.suffix != XACRO:
        if arguments:
            node.fail(f"{path} is no xacro; leave {':=, '.join(arguments)}:= out")
        return path.resolve()
    try:
        return expanded_file(path.resolve(), arguments)
    except ModelError as error:
        node.fail(str(error))


def _coordinates(start: Keys, key: str, lengths: tuple[int, int]) -> dict[str, float | list[float]]:
    """Numbers by joint name; lists for spherical joints and floating bases."""
    found: dict[str, float | list[float]] = {}
    for name, node in (start[key].table() if key in start else {}).items():
        found[name] = list(node.numbers()) if node.is_list() else node.number()
        if not node.is_list():
            continue
        count = len(list(node.items()))
        if name.endswith(BEAM) and count in range(1, MOST_MODES + 1):
            continue
        if count not in lengths:
            node.fail(
                f"must be a number, a list of {lengths[0]} for a spherical joint or of "
                f"{lengths[1]} for a floating base, not of {count}"
            )
        if lengths[0] == QUATERNION:
            node.quaternion(node.numbers())
    return found


def _joint_properties(node: Node) -> dict[str, JointProperties]:
    """Properties by joint name."""
    found: dict[str, JointProperties] = {}
    for name, entry in node.table().items():
        keys = entry.mapping((), PROPERTIES)
        if not keys:
            entry.fail(f"changes nothing; give one of {', '.join(PROPERTIES)}")
        readers = dict.fromkeys(PROPERTIES, Node.not_negative) | {"limits": read_limits}
        found[name] = JointProperties(**read_given(keys, readers))
    return found


OF_MODEL: Readers = {
    "gravity": Node.triple,
    "joint_friction": Node.flag,
    "allow_structure": Node.flag,
    "joints": _joint_properties,
}
FORCE: Readers = {
    "torque": read_effort,
    **dict.fromkeys(("stiffness", "rest", "damping"), Node.number),
    "friction": Node.not_negative,
}


def _force(node: Node) -> JointForce:
    keys = node.mapping(("joint",), FORCE)
    if not keys.keys() & {"torque", "stiffness", "damping", "friction"}:
        node.fail("exerts nothing; give torque, stiffness, damping or friction")
    return JointForce(keys["joint"].text(), **read_given(keys, FORCE))


def _modes(node: Node) -> int:
    modes = node.number()
    if modes not in range(1, MOST_MODES + 1):
        node.fail(f"must be a number of modes from 1 to {MOST_MODES}, not {modes:g}")
    return int(modes)


def _beam(node: Node) -> BeamSpec:
    keys = node.mapping(("link", "EI", "mass_per_length"), ("modes", "damping"))
    given = read_given(keys, {"modes": _modes, "damping": Node.not_negative})
    sizes = keys["EI"].positive(), keys["mass_per_length"].positive()
    return BeamSpec(keys["link"].text(), *sizes, **given)
