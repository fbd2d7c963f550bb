"""SDF as a scene: models, nested and included ones, and joints that need not make a tree."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.constraints.joints import Coupling, Frame, Triple
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.angles import OF_LIMITS, degrees_notes
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.attaching_plugins import (
    attachment,
    closing_joint,
    coupled_joints,
    followed_note,
    following,
    hinged_note,
    uncoupled_note,
)
from bulletbridge.models.formats.drake_elements import READERS, Source, drake_elements
from bulletbridge.models.formats.how import AS_IT_IS, How
from bulletbridge.models.formats.joint_graph import (
    Along,
    Connection,
    JointGraph,
    digits_worth,
    scene_of,
)
from bulletbridge.models.formats.mimic import TAGS as MIMICS
from bulletbridge.models.formats.robot import (
    GROUND,
    Inertial,
    Link,
    Pose,
    Shape,
    free_name,
    left_out,
    listed,
    pose_of,
    told,
)
from bulletbridge.models.formats.rotors import armature_of, gains_note
from bulletbridge.models.formats.sdf_frames import (
    BALL_TAG,
    END_TAGS,
    GAINS_TAG,
    LOOP_TAG,
    OWN_FRAME,
    SCOPE,
    Scope,
    called_by_uri,
    included_scope,
    is_gazebos,
    is_true,
    number_of,
    numbers_in,
    open_scope,
    pose_in,
    read_sdf_xml,
    relative_to,
    text_of,
    version_of,
)
from bulletbridge.models.formats.sdf_shapes import (
    PLANE,
    THIN,
    inertial_of_shapes,
    read_shapes,
)
from bulletbridge.models.formats.strange_words import SDF_WORDS, strange_words
from bulletbridge.models.formats.urdf_text import specify
from bulletbridge.models.model_spec import EARTH, ModelSpec
from bulletbridge.models.urdf_file import ENTRIES
from bulletbridge.numerics.records import Array

KINDS = {
    "revolute": "revolute",
    "hinge": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "ball": "ball",
    "universal": "universal",
    "revolute2": "universal",
    "screw": "screw",
    "fixed": "fixed",
}
GEARBOX, INITIAL = "gearbox", "initial_position"
Z = np.array([0.0, 0.0, 1.0])
PARALLEL = 1e-6
"""Sine of the angle of two axes that are one."""
GAZEBOS_GROUND = "ground_plane"
"""A model that comes with Gazebo: the plane z = 0."""
WORLDS_GRAVITY = (0.0, 0.0, -9.8)
"""What SDF gives a world that says nothing."""
GRAVITY_OF_WORLDS = (1, 6)
"""Version from which gravity stands in the world; before, it was the physics engine's."""
BESIDE = 1e-4
"""Distance from its axis at which a hinge's parent cannot be meant to be on it [m]."""
NO_LIMIT = 1e15
"""Limits beyond are SDF's way to say that there are none."""
HARD = 1e8
"""Stiffness of a limit in SDF unless it is said [N/m or N m/rad]."""


def read_sdf(path: Path, folder: Path, how: How = AS_IT_IS) -> ModelSpec:
    """Read an SDF file: models, or a world with them."""
    root, settled = read_sdf_xml(path, how.arguments)
    version = version_of(root, path)
    worlds, models = root.findall("world"), root.findall("model")
    if len(worlds) > 1 or bool(worlds) == bool(models):
        raise ModelError(
            f"{path} has {len(worlds)} worlds and {len(models)} models; give it one world, or"
            " models alone"
        )
    top = (how.inside or path.parent).resolve()
    outermost, around = _outermost(worlds, models)
    if outermost.tag == "include":
        scope = included_scope(outermost, path.resolve(), top)
    else:
        scope = open_scope(outermost, version, path.resolve(), top)
    beside = list(open_scope(around, version, path.resolve(), top).scopes())
    graph = JointGraph(models[0].get("name", path.stem) if len(models) == 1 else path.stem)
    graph.notes += settled
    graph.gravity = _gravity(graph, worlds, version)
    graph.notes += _start_notes(root)
    graph.notes += _angle_notes(root)
    scenery = _scenery(scope) | set(map(id, beside))
    for each in (*scope.scopes(), *beside):
        _add_links(graph, each, top, id(each) in scenery)
        canonical = each.element.get("canonical_link", "")
        if canonical in each.parts and each.prefix + canonical in graph.links:
            graph.roots.append(each.prefix + canonical)
    for each in scope.scopes():
        if id(each) not in scenery:
            _add_joints(graph, each)
            _attach(graph, each)
            _follow(graph, each)
            _add_drake(graph, each)
    for each in scope.scopes():
        if id(each) not in scenery and not each.static:
            _hold_kinematic(graph, each)
    graph.notes += [note for each in (*scope.scopes(), *beside) for note in each.notes]
    graph.notes += [
        f"a second model '{each.prefix}{name}' is called '{own}'"
        for each in scope.scopes()
        for own, name in each.renamed.items()
    ]
    missing = [uri for each in (*scope.scopes(), *beside) for uri in each.missing]
    grounds = [uri for uri in missing if called_by_uri(uri) == GAZEBOS_GROUND]
    missing = [uri for uri in missing if uri not in grounds]
    if grounds:
        drawn = Shape("box", (PLANE, PLANE, THIN), Pose(np.eye(3), np.array([0, 0, -0.5 * THIN])))
        plane = Link(GROUND, None, [drawn], [Shape("plane", (), Pose())], friction=1.0)
        graph.scenery.append((GAZEBOS_GROUND, plane, Pose()))
    if missing:
        graph.notes.append(f"includes that come with Gazebo are left out: {listed(missing)}")
    left = _left_out(scope)
    if left:
        graph.notes.append(f"left out: {', '.join(left)}")
    parts = (part for each in scope.scopes() for part in each.element)
    graph.notes += strange_words([x for x in parts if x.tag in ("link", "joint")], SDF_WORDS)
    graph.digits = _digits(scope)
    scene = scene_of(graph)
    scene.name = path.stem
    for full, link, place in graph.scenery:
        scene.stand(full.removesuffix(f"::{GROUND}"), replace(link, name=GROUND), place)
    scene.note_scenery()
    return specify(scene, path, folder)


def _left_out(scope: Scope) -> list[str]:
    """How many parts of a file, by kind, have no part in the mechanism."""
    # models hold what is nested in them, which are scopes, too
    parts = {id(part): part for each in scope.scopes() for part in each.element.iter()}.values()
    plugins = sum(
        part.tag == "plugin"
        and attachment(part) is None
        and closing_joint(part) is None
        and not coupled_joints(part)[1]
        for part in parts
    )
    sensors = sum(part.tag == "sensor" for part in parts)
    fluid = sum(
        part.tag == "fluid_added_mass"
        or (part.tag == "velocity_decay" and any((x.text or "").strip("0. \t\r\n") for x in part))
        for part in parts
    )
    motors = sum(part.tag == "ode" and number_of(part, "max_force", 0.0) > 0.0 for part in parts)
    soft = sum(
        part.tag in ("stop_cfm", "stop_erp")
        or (part.tag == "limit" and number_of(part, "cfm", 0.0) > 0.0)
        or (part.tag == "limit" and number_of(part, "stiffness", HARD) < HARD)
        for part in parts
    )
    kinds = (
        (plugins, "plugins"),
        (sensors, "sensors"),
        (fluid, "added masses or decays of links"),
        (motors, "motors of ODE (<max_force>), for which system.motors can be set"),
        (soft, "soft stops, which are rigid here"),
    )
    return [f"{n} {what}" for n, what in kinds if n]


def _outermost(
    worlds: list[Xml.Element], models: list[Xml.Element]
) -> tuple[Xml.Element, Xml.Element]:
    """The model, what includes it, or the world, and a world with what stands beside.

    Of a world with one model, but for such as stand still, it is that model: its names are whole.
    """
    around = Xml.Element("world")
    if len(models) == 1:
        return models[0], around
    if models:  # beside each other in no world, as before SDF 1.8
        together = Xml.Element("world")
        together.extend(models)
        return together, around
    inside = [p for p in worlds[0] if p.tag in ("model", "include", "joint", "frame")]
    still = [part for part in inside if _stands(part)]
    others = [part for part in inside if part not in still]
    if len(inside) > 1 and len(others) == 1:
        inside = others
        around.extend(still)
    alone = len(inside) == 1 and inside[0].tag in ("model", "include")
    return (
        (inside[0], around) if alone and _is_free(inside[0]) else (worlds[0], Xml.Element("world"))
    )


def _is_free(part: Xml.Element) -> bool:
    """Whether a model or what includes it is placed by its own frame in the world, and is there."""
    placed = relative_to(part) or text_of(part, "placement_frame") or part.get("placement_frame")
    return not placed and not (part.tag == "include" and is_gazebos(text_of(part, "uri")))


def _stands(part: Xml.Element) -> bool:
    """Whether a part of a world stands still: a static model, or Gazebo's ground or sun."""
    if part.tag == "include":
        return is_gazebos(text_of(part, "uri")) or is_true(text_of(part, "static"))
    return part.tag == "model" and is_true(text_of(part, "static")) and not relative_to(part)


def _digits(scope: Scope) -> int | None:
    """Digits after the point that places are worth: one more than the file has, seven at least.

    In files of our own they are worth all that they have.
    """
    if any(each.tag == LOOP_TAG for each in scope.element.iter()):
        return None
    return digits_worth(
        number
        for each in scope.scopes()
        for part in each.element.iter()
        if part.tag in ("pose", "xyz")
        for number in (part.text or "").split()
    )


def _angle_notes(root: Xml.Element) -> list[str]:
    """What is to be said of limits of hinges and of turns of poses that look like degrees."""
    limits: dict[str, list[float]] = {}
    turned: list[str] = []
    for owner in root.iter():
        name = owner.get("name", "")
        if owner.tag == "joint" and KINDS.get(owner.get("type", "")) == "revolute":
            ends = (text_of(owner, f"axis/limit/{end}") for end in ("lower", "upper"))
            limits[f"a limit of joint '{name}'"] = [x for end in ends for x in _numbers(end)]
        pose = owner.find("pose")
        turns = [] if pose is None or pose.get("degrees") else _numbers(pose.text or "")[3:]
        if len(turns) == 3 and degrees_notes({"": turns}):  # four are of a quaternion
            turned.append(f"<{owner.tag} name='{name}'>: {' '.join(f'{x:g}' for x in turns)}")
    said = degrees_notes(limits, OF_LIMITS)
    if turned:
        said.append(
            f"turns of <pose> are in radians, more than a turn in {listed(turned)}; if degrees are"
            ' meant, write <pose degrees="true">'
        )
    return said


def _numbers(text: str) -> list[float]:
    """The numbers of a text; none if some of it is no number, as others will say."""
    try:
        return [float(piece) for piece in text.split()]
    except ValueError:
        return []


def _gravity(graph: JointGraph, worlds: list[Xml.Element], version: tuple[int, ...]) -> Triple:
    """Gravity of a world [m/s²], or of models alone, with what is to be said of it."""
    if not worlds:
        graph.notes.append(f"a model has no gravity in SDF: {EARTH[2]:g} m/s² along z is assumed")
        return graph.gravity
    (world,) = worlds
    text, engines = text_of(world, "gravity"), text_of(world, "physics/gravity")
    if version < GRAVITY_OF_WORLDS and engines:
        text = engines
    elif engines:
        graph.notes.append(f"<gravity>{engines}</gravity> in <physics> counts for nothing here")
    if not text:
        graph.notes.append(
            f"the world gives no gravity: {WORLDS_GRAVITY[2]:g} m/s² along z, as SDF has it"
        )
        return WORLDS_GRAVITY
    x, y, z = numbers_in(text, 3, "<gravity>").tolist()
    return x, y, z


def _start_notes(root: Xml.Element) -> list[str]:
    """What is to be said of positions that a file has bodies and joints start in."""
    said = [
        f"<{INITIAL}> of joint '{joint.get('name', '')}'"
        for joint in root.iter("joint")
        if any(any(_numbers(text_of(joint, f"{axis}/{INITIAL}"))) for axis in ("axis", "axis2"))
    ]
    said += [
        f"<state> of world '{world.get('name', '')}'" for world in root.iterfind("world[state]")
    ]
    if not said:
        return []
    return [
        f"where it starts is left out: {listed(said)}; models start where they are placed, joints"
        " at zero: give 'start' in a loops file"
    ]


def _scenery(scope: Scope) -> set[int]:
    """Models that stand still, and that nothing which moves is joined to, by their ids."""
    scopes = list(scope.scopes())
    links = [[each.prefix + n for n, p in each.parts.items() if p.tag == "link"] for each in scopes]
    if not any(own and not each.static for each, own in zip(scopes, links, strict=True)):
        return set()
    if any(each.tag in READERS for each in scope.element.iter()):
        return set()  # which joins links by other words
    joined = {
        each.link_of(each.joint_end(part, end))
        for each in scopes
        if not each.static
        for part in each.joints.values()
        if part.get("type") != GEARBOX
        for end in ("parent", "child")
    }
    return {
        id(each)
        for each, own in zip(scopes, links, strict=True)
        if each.static and joined.isdisjoint(own)
    }


def _add_links(graph: JointGraph, scope: Scope, top: Path, is_scenery: bool) -> None:
    """Links of one model, without those nested in it."""
    assumed: list[str] = []
    lost: dict[str, list[str]] = {}
    placed = scope.placed
    for name, part in scope.parts.items():
        if part.tag != "link":
            continue
        full = scope.prefix + name
        if name == WORLD:
            # Gazebo refuses the name, Bullet holds such a link
            graph.notes.append(f"link '{full}' is taken for the world, which stands still")
            continue
        link = Link(full)
        read_shapes(part, link, scope, top, lost)
        if is_scenery:
            graph.scenery.append((full, link, placed @ scope.pose(name)))
            continue
        link.inertial = inertial_in(part, full, scope, top, assumed)
        graph.links[full] = link
        graph.places[full] = placed @ scope.pose(name)
        if scope.static:
            place = graph.places[full]
            graph.connections.append(Connection(f"{full}_static", "fixed", WORLD, full, place))
        weighs = text_of(part, "gravity")
        if weighs and not is_true(weighs):
            graph.carried[full] = 1.0
        text = text_of(part, "enable_wind")
        if is_true(text):
            graph.notes.append(f"link '{full}': <enable_wind>{text}</enable_wind> is left out")
    said = {"without <inertial>, so 1 kg with moments of 1 kg m², as SDF has it: {}": assumed}
    graph.notes += [*told(said), *left_out(lost)]


def inertial_in(
    part: Xml.Element, full: str, scope: Scope, top: Path, assumed: list[str]
) -> Inertial:
    """Mass and inertia of a link in its own axes."""
    element = part.find("inertial")
    if element is None:
        assumed.append(full)
        return Inertial(1.0, np.zeros(3), np.eye(3))
    if is_true(element.get("auto", "false")):
        return inertial_of_shapes(part, full, scope, top)
    given, J = relative_to(element), np.zeros((3, 3))
    try:
        at, mass = pose_in(element), number_of(element, "mass", 1.0)
        for entry, i, k in ENTRIES:
            default = 1.0 if i == k else 0.0
            J[i, k] = J[k, i] = number_of(element, f"inertia/{entry}", default)
    except ModelError as error:
        raise ModelError(f"link '{full}': {error}") from None
    if given:
        at = scope.pose(part.get("name", "")).inverse @ scope.pose(given) @ at
    if not (np.isfinite(J).all() and np.isfinite(mass) and mass >= 0.0):
        raise ModelError(
            f"link '{full}' has mass {mass} and inertia {J.tolist()}; give finite ones"
        )
    return Inertial(mass, at.p, at.R @ J @ at.R.T)


def _parents_beside(scope: Scope, joint: Xml.Element, at: Pose, along: Along) -> list[str]:
    """The frame, no link, that a hinge names as its parent, if that is not on its axis."""
    name = scope.joint_end(joint, "parent")
    if name == WORLD or scope.parts.get(name, joint).tag != "frame":
        return []
    off = at.R.T @ (scope.pose(name).p - at.p)
    distance = float(np.linalg.norm(np.cross(off, along.axis)))
    return [f"'{name}' by {distance:.3g} m"] if distance > BESIDE else []


def _add_joints(graph: JointGraph, scope: Scope) -> None:
    """Joints of one model."""
    names = [edge.name for edge in graph.connections]
    no_second, sprung, beside = list[str](), list[str](), list[str]()
    for name, part in scope.joints.items():
        kind = part.get("type", "")
        full = free_name(scope.prefix + name, names)
        if kind == GEARBOX:
            _add_gearbox(graph, scope, part, full)
            continue
        if kind not in KINDS:
            known = ", ".join([*KINDS, GEARBOX])
            raise ModelError(f"joint '{full}' has type '{kind}'; known are {known}")
        ends = [scope.link_of(scope.joint_end(part, end)) for end in ("parent", "child")]
        if ends[0] == ends[1]:
            raise ModelError(f"joint '{full}' joins '{ends[0]}' to itself; name two links")
        drakes = _drakes_ends(scope, part, ends, full)
        at = scope.pose_of(part) if drakes is None else drakes[1]
        alongs = tuple(
            along_in(scope, part, axis, at, full)
            for axis in (("axis", "axis2") if KINDS[kind] == "universal" else ("axis",))
            if KINDS[kind] not in ("fixed", "ball")
        )
        if len(alongs) == 2 and part.find("axis2") is None:
            if np.abs(np.cross(alongs[0].axis, alongs[1].axis)).max() < PARALLEL:
                raise ModelError(
                    f"joint '{full}' has no <axis2>, and 0 0 1, SDF's own, is <axis>; add one"
                )
            no_second.append(full)
        names.append(full)
        if drakes is None and KINDS[kind] == "revolute":
            beside += _parents_beside(scope, part, at, alongs[0])
        ball = _numbers_of(part, BALL_TAG, 3, full) if KINDS[kind] == "ball" else None
        if KINDS[kind] == "ball":
            alongs = _losses_of_ball(part, ball)
            keys = "spring_stiffness", "friction"
            if any(number_of(part, f"axis/dynamics/{key}", 0.0) for key in keys):
                sprung.append(full)
        place = scope.placed @ at
        place_b = _loop_end(graph, part, ends[1], full)
        if place_b is not None and len(alongs) == 2:
            second = place_b.R.T @ place.R @ alongs[1].axis  # which is the child's own
            alongs = alongs[0], replace(alongs[1], axis=second)
        is_loop = place_b is not None
        if drakes is not None:
            place, place_b = (scope.placed @ end for end in drakes)
        graph.connections.append(
            Connection(
                full,
                KINDS[kind],
                ends[0],
                ends[1],
                place,
                alongs,
                screw_pitch(part, full) if kind == "screw" else 0.0,
                armature_of(part, f"joint '{full}'") if ball is None else float(ball[2]),
                is_loop,
                place_b,
            )
        )
        for axis in ("axis", "axis2"):
            mimic = next((each for each in part.iterfind(f"{axis}/*") if each.tag in MIMICS), None)
            if mimic is not None:
                _add_mimic(graph, scope, mimic, full + _of_axis(part, axis))
    said = {
        "joints are where the child has them, not at the frames that are their parents, which"
        " are elsewhere ({}): place the links, or name the frames as drake:parent_frame and"
        " drake:child_frame": beside,
        "without <axis2>, so 0 0 1, SDF's own: {}": no_second,
        "balls have no <axis>, so neither its spring nor friction: {}": sprung,
    }
    graph.notes += told(said)


def _losses_of_ball(part: Xml.Element, own: Array | None) -> tuple[Along, ...]:
    """Damping and friction of a ball's three turns: our ``own`` tag's, or the damping of an axis.

    The latter is how Drake has it.
    """
    if own is not None:
        return (Along(Z, damping=float(own[0]), friction=float(own[1])),)
    damping = number_of(part, "axis/dynamics/damping", 0.0)
    return (Along(Z, damping=damping),) if damping else ()


def _attach(graph: JointGraph, scope: Scope) -> None:
    """Fix to each other what plugins of one model do, where they stand."""
    name = scope.called or scope.element.get("name", "")
    for plugin in scope.element.findall("plugin"):
        closing = closing_joint(plugin)
        if closing is not None:
            parent, child = (
                scope.link_of(closing.findtext(end, "")) for end in ("parent", "child")
            )
            full = scope.prefix + (closing.get("name") or f"{parent}_to_{child}")
            full = free_name(full, [edge.name for edge in graph.connections])
            place = graph.places[child] @ pose_in(closing)
            graph.connections.append(Connection(full, "ball", parent, child, place))
            graph.notes.append(hinged_note(closing, "a <joint>"))
            continue
        fixed = attachment(plugin)
        if fixed is None:
            continue
        around = scope if fixed.is_in(name) or scope.outer is None else scope.outer
        other = scope if fixed.is_in(name) else around.nested.get(fixed.model)
        if other is None:
            graph.notes.append(fixed.left_out(name))
            continue
        ends = scope.link_of(fixed.parent), other.link_of(fixed.child)
        full = free_name("_to_".join(ends), [edge.name for edge in graph.connections])
        graph.connections.append(Connection(full, "fixed", *ends, graph.places[ends[1]]))
        graph.notes.append(f"a plugin fixes '{ends[0]}' to '{ends[1]}', where they stand")


def _follow(graph: JointGraph, scope: Scope) -> None:
    """Couple joints of one model that follow others by plugins, and by nothing else."""
    followers = list[str]()
    for plugin in scope.element.findall("plugin"):
        both, made = coupled_joints(plugin), following(plugin)
        coupled = {each.name for each in graph.loops}
        if not both[1] or f"{scope.prefix}{both[1]}_mimic" in coupled:
            continue
        if made is None or not scope.joints.keys() >= set(both):
            graph.notes.append(uncoupled_note(plugin))
            continue
        followers.append(scope.prefix + made[0])
        _add_mimic(graph, scope, made[1], followers[-1])
    if followers:
        graph.notes.append(followed_note(f"'{name}'" for name in followers))


def _loop_end(graph: JointGraph, part: Xml.Element, child: str, full: str) -> Pose | None:
    """Where the child has the frame of a joint that our writer has made a loop, in the world."""
    values = _numbers_of(part, LOOP_TAG, 6, full)
    return None if values is None else graph.places[child] @ pose_of(values[:3], values[3:])


def _drakes_ends(
    scope: Scope, part: Xml.Element, ends: list[str], full: str
) -> tuple[Pose, Pose] | None:
    """Where the parent and the child have a joint's frame, in the model, by Drake's words."""
    said = {str(each.tag): (each.text or "").strip() for each in part if each.tag in END_TAGS}
    if not said:
        return None
    if not all(said.get(tag) for tag in END_TAGS):
        raise ModelError(f"joint '{full}' has one of {' and '.join(END_TAGS)}; give both")
    for tag, link in zip(END_TAGS, ends, strict=True):
        on = scope.link_of(said[tag])
        if on != link:
            raise ModelError(
                f"joint '{full}': <{tag}> '{said[tag]}' is fixed to '{on}'; name a frame of"
                f" '{link}'"
            )
    first, second = (scope.pose(said[tag]) for tag in END_TAGS)
    return first, second


def _numbers_of(part: Xml.Element, tag: str, count: int, full: str) -> Array | None:
    """What an element of ours says of a joint; None if there is none."""
    said = next((each.text or "" for each in part if each.tag == tag), None)
    return None if said is None else numbers_in(said, count, f"<{tag}> of joint '{full}'")


def along_in(scope: Scope, part: Xml.Element, tag: str, at: Pose, full: str) -> Along:
    """One axis of a joint, in the joint's frame, which is at ``at`` in the model."""
    element = part.find(tag)
    if element is None and tag == "axis":
        raise ModelError(f"joint '{full}' has no <{tag}>; add it")
    axis = direction_in(scope, part, tag, at, full)
    if element is None:  # of a second axis SDF says what it is by default
        return Along(axis)
    limit = element.find("limit")
    if limit is not None and limit.attrib:
        scope.notes.append(
            f"joint '{full}': <limit> has {', '.join(limit.attrib)} as attributes, as in URDF;"
            " SDF ignores these: write elements if they are meant"
        )
    lower, upper = (
        number_of(element, f"limit/{key}", inf)
        for key, inf in (("lower", -np.inf), ("upper", np.inf))
    )
    lower, upper = (x if abs(x) < NO_LIMIT else np.copysign(np.inf, x) for x in (lower, upper))
    if lower > upper:
        scope.notes.append(
            f"joint '{full}' has a lower limit of {lower:g} and an upper one of {upper:g}: nothing"
            " limits it, as in ODE; write the lower one first if it is meant"
        )
        lower, upper = -np.inf, np.inf
    effort, velocity = (number_of(element, f"limit/{key}", -1.0) for key in ("effort", "velocity"))
    values = {
        "damping": "dynamics/damping",
        "friction": "dynamics/friction",
        "stiffness": "dynamics/spring_stiffness",
        "rest": "dynamics/spring_reference",
    }
    numbers = {key: number_of(element, where, 0.0) for key, where in values.items()}
    damping, friction, stiffness = (numbers[key] for key in ("damping", "friction", "stiffness"))
    if min(damping, friction, stiffness) < 0.0:
        raise ModelError(f"joint '{full}' has negative damping, friction or stiffness; correct it")
    return Along(
        axis,
        (float(lower), float(upper)),
        effort if 0.0 <= effort < NO_LIMIT else np.inf,
        velocity if 0.0 <= velocity < NO_LIMIT else np.inf,
        damping,
        friction,
        stiffness,
        numbers["rest"],
    )


def direction_in(scope: Scope, part: Xml.Element, tag: str, at: Pose, full: str) -> Array:
    """Unit vector (3,) of an axis in the joint's frame, by the conventions of the version."""
    element = part.find(tag)
    xyz = None if element is None else element.find("xyz")
    text = text_of(element, "xyz", "0 0 1")
    axis = numbers_in(text, 3, f"<xyz> of joint '{full}'")
    size = float(np.linalg.norm(axis))
    if size < 1e-9:
        raise ModelError(f"the axis of joint '{full}' is '{text}'; give one with a length")
    axis = axis / size
    frame = "" if xyz is None else xyz.get("expressed_in", "")
    in_model = is_true(text_of(element, "use_parent_model_frame")) or scope.version < OWN_FRAME
    if frame:
        return at.R.T @ scope.pose(frame).R @ axis
    return at.R.T @ axis if in_model else axis


def screw_pitch(part: Xml.Element, name: str) -> float:
    """Advance of a screw in a turn [m], right-handed.

    ``thread_pitch`` is Gazebo's older one: radians a metre, left-handed.
    """
    pitch = number_of(part, "screw_thread_pitch", 0.0)
    old = number_of(part, "thread_pitch", 0.0)
    if not pitch and old:
        pitch = -2.0 * np.pi / old
    if not (pitch and np.isfinite(pitch)):
        raise ModelError(f"screw '{name}' has no screw_thread_pitch; give it [m]")
    return pitch


def _add_mimic(graph: JointGraph, scope: Scope, mimic: Xml.Element, full: str) -> None:
    """Position = multiplier * (leader - reference) + offset.

    SDF 1.11 says them in elements, Drake and Gazebo's plugins in attributes.
    """

    def number(key: str, default: float) -> float:
        if key not in mimic.attrib:
            return number_of(mimic, key, default)
        try:
            return float(mimic.attrib[key])
        except ValueError:
            raise ModelError(
                f"joint '{full}': <{mimic.tag}> has {key}=\"{mimic.get(key)}\"; give a number"
            ) from None

    multiplier = number("multiplier", 1.0)
    offset = number("offset", 0.0) - multiplier * number("reference", 0.0)
    leader = _leader(scope, mimic, full)
    graph.loops.append(Coupling(f"{full}_mimic", {full: 1.0, leader: -multiplier}, offset))


def _leader(scope: Scope, mimic: Xml.Element, full: str) -> str:
    """The joint that another one mimics, of its own model or of one around that."""
    said = mimic.get("joint", "")
    *path, name = said.split(SCOPE)
    around: Scope | None = scope
    while around is not None:
        inner: Scope | None = around
        for part in path:
            inner = None if inner is None else inner.nested.get(part)
        parts = [] if inner is None else [inner, *(inner.nested[own] for own in inner.merged)]
        found = next((each for each in parts if name in each.joints), None)
        if found is not None:
            return found.prefix + name + _of_axis(found.joints[name], mimic.get("axis", "axis"))
        around = around.outer
    raise ModelError(f"joint '{full}' mimics '{said}', which does not exist; name a joint")


def _of_axis(part: Xml.Element, axis: str) -> str:
    """What the name of the joint in the tree that an axis becomes ends with."""
    if KINDS.get(part.get("type", "").strip()) != "universal":
        return ""
    return "_2" if axis == "axis2" else "_1"


def _add_drake(graph: JointGraph, scope: Scope) -> None:
    """Constraints and forces of one model in Drake's words."""
    for part in scope.element.findall("drake:joint"):
        graph.connections.append(_drakes_joint(graph, scope, part))
    model = scope.prefix.removesuffix(SCOPE) or scope.element.get("name", "")

    def fail(message: str) -> NoReturn:
        raise ModelError(f"model '{model}': {message}")

    def place(name: str) -> Frame:
        link = scope.link_of(name)
        at = Pose() if link == WORLD else scope.placed @ scope.pose(name)
        return (graph.places[link].inverse @ at).on(link)

    def joint(name: str) -> str:
        if name not in scope.joints:
            fail(f"a constraint of Drake's names the joint '{name}', which does not exist")
        return scope.prefix + name

    taken = [each.name for each in (*graph.connections, *graph.loops, *graph.elements)]
    found = drake_elements(scope.element, Source(place, joint, fail), taken)
    graph.loops += found.loops
    graph.elements += found.elements
    graph.notes += found.notes
    kept = [
        scope.prefix + name
        for name, part in scope.joints.items()
        if part.find(GAINS_TAG) is not None
    ]
    if kept:
        graph.notes.append(gains_note(kept))


def _drakes_joint(graph: JointGraph, scope: Scope, part: Xml.Element) -> Connection:
    """A joint that SDF has no type for: a planar one, of two ways and the turn across."""
    names = [edge.name for edge in graph.connections]
    full, kind = free_name(scope.prefix + part.get("name", ""), names), part.get("type", "")
    if kind != "planar":
        known = ", ".join(KINDS)
        raise ModelError(
            f"<drake:joint> '{full}' has type '{kind}'; read is planar; use a <joint> of {known}"
        )
    ends = [text_of(part, f"drake:{end}") for end in ("parent", "child")]
    if not all(ends):
        raise ModelError(f"<drake:joint> '{full}' lacks <drake:parent> or <drake:child>; add it")
    place, place_b = (scope.placed @ scope.pose(end) for end in ends)
    said = _numbers_of(part, "drake:damping", 3, full)
    damping = np.zeros(3) if said is None else said
    x, y, z = np.eye(3)
    along = (
        Along(x, damping=float(damping[0]), slides=True),
        Along(y, damping=float(damping[1]), slides=True),
        Along(z, damping=float(damping[2])),
    )
    parent, child = (scope.link_of(end) for end in ends)
    return Connection(full, "several", parent, child, place, along, place_b=place_b)


def _add_gearbox(graph: JointGraph, scope: Scope, part: Xml.Element, full: str) -> None:
    """Turns of two links about a third one, looked up among the revolute joints."""
    reference = text_of(part, "gearbox_reference_body")
    if not reference:
        raise ModelError(f"gearbox '{full}' has no <gearbox_reference_body>; name it")
    base, turns = scope.link_of(reference), list[tuple[str, bool, Array]]()
    for end in ("parent", "child"):
        link = scope.link_of(scope.joint_end(part, end))
        found = [
            edge
            for edge in _all_revolute(graph, scope)
            if {edge.parent, edge.child} == {base, link}
        ]
        if len(found) != 1:
            raise ModelError(
                f"gearbox '{full}': there are {len(found)} revolute joints between '{base}' and"
                f" '{link}'; it needs one"
            )
        (edge,) = found
        turns.append((edge.name, edge.parent == base, edge.place.R @ edge.along[0].axis))
    graph.loops.append(Coupling(full, gear_factors(scope, part, full, turns)))


def gear_factors(
    scope: Scope, part: Xml.Element, full: str, turns: Sequence[tuple[str, bool, Array]]
) -> dict[str, float]:
    """Factors of the turns that a gearbox couples: the child's is -ratio times the parent's.

    Without a second axis both are about the first, without any about that of the parent's joint.

    Args:
        scope: The model.
        part: The gearbox.
        full: Its name.
        turns: Of the parent's joint and the child's: name, whether the link about which both turn
            is its parent, and its axis (3,) in the world.

    Raises:
        ModelError: A turn is about an axis at right angles to the joint's.
    """
    place, ratio = scope.pose_of(part), number_of(part, "gearbox_ratio", 1.0)
    factors, about = dict[str, float](), turns[0][2]
    for (name, outward, along), tag, factor in zip(
        turns, ("axis", "axis2"), (ratio, 1.0), strict=True
    ):
        if part.find(tag) is not None:
            about = (scope.placed @ place).R @ direction_in(scope, part, tag, place, full)
        cosine = float(along @ about)
        if abs(cosine) < PARALLEL:
            raise ModelError(
                f"gearbox '{full}': its <{tag}> is at right angles to that of '{name}', whose"
                f" turns it is to count; correct it"
            )
        sign = float(np.sign(cosine)) * (1.0 if outward else -1.0)
        factors[name] = factors.get(name, 0.0) + sign * factor
    return factors


def _hold_kinematic(graph: JointGraph, scope: Scope) -> None:
    """Fix links in the world that no force moves, and no joint either."""
    for name, part in scope.parts.items():
        text = text_of(part, "kinematic")
        if part.tag != "link" or name == WORLD or not is_true(text):
            continue
        full = scope.prefix + name
        if any(edge.child == full for edge in graph.connections):
            graph.notes.append(f"link '{full}': <kinematic>{text}</kinematic> is left out")
            continue
        place = graph.places[full]
        graph.connections.append(Connection(f"{full}_kinematic", "fixed", WORLD, full, place))
        graph.notes.append(f"link '{full}' is kinematic, so it stands still")


def _all_revolute(graph: JointGraph, scope: Scope) -> list[Connection]:
    """Revolute joints so far, and those of this model that come later in the file."""
    later = JointGraph("")
    rest = Scope(**{**vars(scope)})
    known = {edge.name for edge in graph.connections}
    rest.joints = {
        name: part
        for name, part in scope.joints.items()
        if KINDS.get(part.get("type", "")) == "revolute" and scope.prefix + name not in known
    }
    _add_joints(later, rest)
    return [e for e in (*graph.connections, *later.connections) if e.kind == "revolute"]
