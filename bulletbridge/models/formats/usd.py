"""USD as a scene: rigid bodies of a stage, and joints that need not make a tree."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.constraints.force_elements import Spring
from bulletbridge.constraints.joints import Coupling, Distance, JointModel, LoopJoint
from bulletbridge.errors import ModelError, naming_the_extra
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.formats.how import AS_IT_IS, How
from bulletbridge.models.formats.joint_graph import (
    LEAST_DIGITS,
    Along,
    Connection,
    JointGraph,
    scene_of,
)
from bulletbridge.models.formats.mujoco_servo import Servo
from bulletbridge.models.formats.robot import (
    UNLIMITED,
    Link,
    Pose,
    Scene,
    free_name,
    left_out,
    listed,
    told,
)
from bulletbridge.models.formats.urdf_text import specify
from bulletbridge.models.formats.usd_bodies import Units, link_of, place_of, value_of
from bulletbridge.models.formats.usd_mujoco import (
    ACTUATORS,
    TENDONS,
    add_mujocos,
    free_in,
    number,
    targets_of,
)
from bulletbridge.models.model_spec import EARTH, JointForce, ModelSpec
from bulletbridge.numerics.records import Array

ENDINGS = (".usda", ".usd", ".usdc", ".usdz")
AXES = {"X": 0, "Y": 1, "Z": 2}
DEGREE = np.pi / 180.0
WAYS, TURNS = ("transX", "transY", "transZ"), ("rotX", "rotY", "rotZ")
HINGE = "PhysicsRevoluteJoint"
TYPED = {
    "PhysicsFixedJoint": "fixed",
    HINGE: "revolute",
    "PhysicsPrismaticJoint": "prismatic",
    "PhysicsSphericalJoint": "ball",
}
ARMATURES = "newton:armature", "mjc:armature"
"""Attributes that give armature besides PhysX's."""
DISTANCE = "PhysicsDistanceJoint"
GEARS = {
    "PhysxPhysicsGearJoint": ("hinge0", "hinge1", "gearRatio"),
    "PhysxPhysicsRackAndPinionJoint": ("hinge", "prismatic", "ratio"),
}
"""What the two joints of PhysX's gears and their ratio are called."""
PHYSX_TENDONS = "PhysxTendonAxisRootAPI", "PhysxTendonAttachmentRootAPI"
NEWTON_ACTUATOR = "NewtonActuator"
ROLLS = 1e-3
"""How far from the axis of its gear a rack is at least that has a side of it [m]."""
GENERIC = "PhysicsJoint"
"""A joint whose freedoms are what no limit locks."""
FLOATS = 1e-5
"""Distance, in metres and radians, up to which two frames that should coincide are rounded."""


class Read(NamedTuple):
    """A stage while it is read.

    Attributes:
        stage, physics: USD's stage and its module of physics.
        units: What lengths and masses are counted in.
        names: Links by the path of the prim that they were.
        graph: What was found so far.
        at: Positions of joints with one axis, as the stage is drawn.
        servos: Whether drives act.
        angle: What angles of MuJoCo's attributes are counted in [rad].
        idle: Drives that do not act, in words.
        driven: Joints with drives.
        acting: Drives that act otherwise than as a spring and damper, by their joints.
        unbounded: Joints whose drives act without the bound that they have.
    """

    stage: Any
    physics: Any
    units: Units
    names: dict[str, str]
    graph: JointGraph
    at: dict[str, float | list[float]]
    servos: bool
    angle: float
    idle: list[str]
    driven: list[str]
    acting: dict[str, Servo]
    unbounded: list[str]


def library(name: str) -> Any:
    """A module of USD.

    Raises:
        MissingExtraError: It is not installed.
    """
    with naming_the_extra("USD files are read by Pixar's library", "bulletbridge[usd]"):
        return import_module(f"pxr.{name}")


def read_usd(path: Path, folder: Path, how: How = AS_IT_IS) -> ModelSpec:
    """Read a USD file: rigid bodies and joints of UsdPhysics, those of articulations or not.

    Args:
        path: The file: usda, usdc, usd or usdz.
        folder: Where the generated URDFs and meshes go.
        how: Servos are drives: springs and dampers of joints, or motors with their bounds.

    Raises:
        ModelError: USD cannot read the file; a layer is elsewhere; something in it cannot be
            modelled.
        MissingExtraError: USD is not installed.
    """
    stage, lost, said = _open(path, (how.inside or path.parent).resolve())
    physics = library("UsdPhysics")
    geometry = library("UsdGeom")
    units = Units(
        float(geometry.GetStageMetersPerUnit(stage)),
        float(physics.GetStageKilogramsPerUnit(stage)),
    )
    graph = JointGraph(path.stem, notes=said)
    read = Read(stage, physics, units, {}, graph, {}, how.servos, _angle(stage), [], [], {}, [])
    graph.digits = LEAST_DIGITS  # single precision has no more
    graph.gravity = _gravity(read, str(geometry.GetStageUpAxis(stage)))
    _add_links(read, folder)
    _add_joints(read)
    scene = scene_of(graph)
    _settle(read, scene)
    if lost and not scene.robots:
        raise ModelError(
            f"{path} has no body of its own, and is composed of {lost}; put them there"
        )
    if lost:
        scene.notes.append(f"it is composed of {lost}: what they hold is LEFT OUT")
    return specify(scene, path, folder)


def _open(path: Path, top: Path) -> tuple[Any, str, list[str]]:
    """The stage of a file, all of whose layers are in a folder; what is missing; other notes."""
    usd, sdf, tf = library("Usd"), library("Sdf"), library("Tf")
    try:
        seen, lost = set[str](), list[str]()
        waiting: list[Any] = [sdf.Layer.FindOrOpen(str(path.resolve()))]
        while waiting:
            layer = waiting.pop()
            if layer is None:
                continue
            for asset in layer.GetCompositionAssetDependencies():
                place = layer.ComputeAbsolutePath(asset) if asset else ""
                if not asset or place in seen:  # nothing names the layer itself
                    continue
                seen.add(place)
                there = Path(place)
                # USD leaves a name relative if nothing of that name is beside the layer
                known = there.is_absolute() or there.exists()
                if known and not there.resolve().is_relative_to(top):
                    raise ModelError(
                        f"{path} is composed of {place}, which is outside {top}; name a folder that"
                        " holds both by inside=FOLDER (--inside FOLDER)"
                    )
                waiting.append(sdf.Layer.FindOrOpen(place))
                if waiting[-1] is None:
                    lost.append(place)
        told = library("UsdUtils").CoalescingDiagnosticDelegate()  # takes what USD would print
        stage = usd.Stage.Open(str(path))
        said = [
            each.commentary.partition(" (instantiating")[0]
            for each in told.TakeUncoalescedDiagnostics()
        ]
    except tf.ErrorException as error:
        said = " ".join(str(error).rpartition(" : ")[2].split()).strip("'")
        raise ModelError(f"USD cannot read {path}: {said}; correct it") from None
    if stage is None:
        raise ModelError(f"USD cannot read {path}; check that it is a USD file")
    notes = [f"USD says: {each}" for each in said if not any(place in each for place in lost)]
    return stage, f"layers that are not there ({listed(lost)})" if lost else "", notes


def _angle(stage: Any) -> float:
    """What a scene says that angles of MuJoCo's attributes are counted in [rad]; degrees if not."""
    said = [value_of(each, "mjc:compiler:angle") for each in stage.Traverse()]
    return 1.0 if "radian" in said else DEGREE


def _gravity(read: Read, up: str) -> tuple[float, float, float]:
    """Gravity [m/s²] of the first scene, or Earth's against the stage's upward axis."""
    axis = AXES[up]
    down = np.zeros(3)
    down[axis] = -1.0
    scenes = [each for each in read.stage.Traverse() if each.IsA(read.physics.Scene)]
    size = abs(EARTH[2])
    if scenes:
        scene = read.physics.Scene(scenes[0])
        direction = np.array(scene.GetGravityDirectionAttr().Get(), float)
        if np.linalg.norm(direction) > 0.0:
            down = direction / np.linalg.norm(direction)
        given = float(scene.GetGravityMagnitudeAttr().Get())
        size = given * read.units.metre if np.isfinite(given) and given >= 0.0 else size
    else:
        read.graph.notes.append(f"there is no physics scene: {size:g} m/s² against {up} is assumed")
    x, y, z = (float(size * part) + 0.0 for part in down)
    return x, y, z


def _prims(read: Read) -> Any:
    """All prims that are there, those of instances too."""
    usd = library("Usd")
    return usd.PrimRange.Stage(read.stage, usd.TraverseInstanceProxies())


def _add_links(read: Read, folder: Path) -> None:
    """Rigid bodies."""
    graph, assumed, lost = read.graph, list[str](), dict[str, list[str]]()
    moving, dragged = list[str](), list[str]()
    for prim in _prims(read):
        body = read.physics.RigidBodyAPI(prim)
        if not prim.HasAPI(read.physics.RigidBodyAPI):
            continue
        if body.GetRigidBodyEnabledAttr().Get() is False:
            continue  # it is scenery
        name = free_name(prim.GetName(), {WORLD, *graph.links})
        read.names[str(prim.GetPath())] = name
        graph.links[name] = link_of(prim, name, read.units, folder, assumed, lost)
        graph.places[name] = place_of(prim, read.units)
        if body.GetKinematicEnabledAttr().Get():
            graph.connections.append(
                Connection(f"{name}_held", "fixed", WORLD, name, graph.places[name])
            )
        off = value_of(prim, "physxRigidBody:disableGravity")
        share = 1.0 if off else number(prim, "mjc:gravcomp", 0.0)
        if share:
            graph.carried[name] = share
        rates = body.GetVelocityAttr().Get(), body.GetAngularVelocityAttr().Get()
        if any(rate is not None and np.any(rate) for rate in rates):
            moving.append(name)
        if any(number(prim, f"physxRigidBody:{way}Damping", 0.0) for way in ("linear", "angular")):
            dragged.append(name)
    said = {
        "drag of bodies (physxRigidBody:...Damping) is left out: {}": dragged,
        "velocities of {} are left out: they start at rest": moving,
        "without mass and shapes, so a ball of 1 kg and 0.1 m radius, as of PhysX: {}": assumed,
    }
    graph.notes += [*told(said), *left_out(lost)]


def _add_joints(read: Read) -> None:
    """Joints between bodies, or of bodies with the world."""
    graph, paths = read.graph, dict[str, str]()
    prims = [prim for prim in _prims(read) if prim.IsA(read.physics.Joint)]
    springy = {
        "friction in proportion to what joints bear (physxJoint:jointFriction) is left out": [
            "physxJoint:jointFriction"
        ],
        "limits that give way as springs (physxLimit) are stops here": [
            f"physxLimit:{tag}:stiffness" for tag in ("angular", "linear", *TURNS, *WAYS)
        ],
        "joints that follow as by springs (physxMimicJoint:naturalFrequency) do so exactly here": [
            f"physxMimicJoint:{tag}:naturalFrequency" for tag in TURNS + WAYS
        ],
    }
    for what, attributes in springy.items():
        having = [p.GetName() for p in prims if any(number(p, x, 0.0) > 0.0 for x in attributes)]
        if having:
            graph.notes.append(f"{what}: {listed(having)}")
    for prim in prims:
        taken = {edge.name for edge in graph.connections}
        paths[str(prim.GetPath())] = free_name(prim.GetName(), taken)
        _add_joint(read, prim, paths[str(prim.GetPath())])
    _stack(read)
    known = {edge.name for edge in graph.connections}
    for prim in prims:
        name = paths[str(prim.GetPath())]
        gear = _mimic(read, prim, name, paths)
        if gear is not None and known >= gear.coefficients.keys():
            graph.loops.append(gear)
    _add_gears(read, paths)
    _add_mujocos(read, paths)
    for name, servo in read.acting.items():
        graph.elements.append(servo.along(free_in(graph, f"{name}_drive"), {name: 1.0}))


def _add_gears(read: Read, paths: Mapping[str, str]) -> None:
    """Gears and racks of PhysX, which couple two joints; tendons and actuators are noted."""
    graph, left, idle = read.graph, list[str](), list[str]()
    edges = {edge.name: edge for edge in graph.connections if len(edge.along) == 1}
    for prim in _prims(read):
        schemas = prim.GetPrimTypeInfo().GetAppliedAPISchemas()
        if any(str(each).startswith(PHYSX_TENDONS) for each in schemas):
            left.append(f"tendon of {prim.GetName()}")
        kind = str(prim.GetTypeName())
        if kind == NEWTON_ACTUATOR:
            idle.append(prim.GetName())
        if kind not in GEARS or value_of(prim, "physics:jointEnabled") is False:
            continue
        *ends, ratio = (f"physics:{word}" for word in GEARS[kind])
        names = [paths.get(_target(prim, end), "") for end in ends]
        if not edges.keys() >= set(names) or names[0] == names[1]:
            left.append(f"gear {prim.GetName()}")
            continue
        pair = edges[names[0]], edges[names[1]]
        name = free_name(prim.GetName(), [each.name for each in (*graph.connections, *graph.loops)])
        graph.loops.append(_gear(read, prim, name, pair, number(prim, ratio, 1.0)))
    said = {"PhysX's are left out: {}": left, "actuators of Newton do not act: {}": idle}
    graph.notes += told(said)


def _gear(
    read: Read, prim: Any, name: str, edges: tuple[Connection, Connection], ratio: float
) -> Coupling:
    """Two turns, of which the second is -ratio times the first, or a turn and a way.

    Source: PhysX, ExtGearJoint.cpp, ExtRackAndPinionJoint.cpp: joints count backwards whose first
    body is one of the gear's; turns are as drawn at first; a ratio of turn to way is that of a rack
    on the side where it rolls forward.
    """
    (link, place), (link_b, place_b) = (_end(read, prim, which) for which in (0, 1))
    one, two = (-1.0 if edge.parent in (link, link_b) else 1.0 for edge in edges)
    first, second = edges
    drawn = [float(np.ravel(read.at.get(edge.name, 0.0))[0]) for edge in edges]
    if second.kind == "revolute":
        factors = ratio * one, two
        offset = factors[0] * drawn[0] + factors[1] * drawn[1]
        return Coupling(name, {first.name: factors[0], second.name: factors[1]}, offset)
    axis = one * first.place.R @ first.along[0].axis
    way = two * second.place.R @ second.along[0].axis
    rolls = float(np.cross(axis, place_b.p - place.p) @ way)
    ratio *= DEGREE / read.units.metre * (-1.0 if rolls < -ROLLS else 1.0)
    return Coupling(name, {first.name: one, second.name: -ratio * two}, one * drawn[0])


def _add_mujocos(read: Read, paths: Mapping[str, str]) -> None:
    """Tendons and actuators in MuJoCo's words."""
    of_both = (*TENDONS, *ACTUATORS)
    prims = [prim for prim in _prims(read) if str(prim.GetTypeName()) in of_both]
    if prims and (read.units.metre, read.units.kilogram) != (1.0, 1.0):
        read.graph.notes.append(
            "tendons and actuators of MuJoCo's are read in metres and kilograms alone, and left out"
        )
        return
    zeros: dict[str, float] = {}
    for path, name in paths.items():
        joint = read.stage.GetPrimAtPath(path)
        turns = str(joint.GetTypeName()) == HINGE
        zeros[name] = number(joint, "mjc:ref", 0.0) * (read.angle if turns else 1.0)
    found = add_mujocos(read.graph, prims, paths, zeros, read.servos)
    read.driven.extend(found.driven)
    read.idle.extend(found.idle)


def _stack(read: Read) -> None:
    """Put hinges and sliders between the same two bodies one after the other.

    MuJoCo's converter, and Newton, write several joints of a body so. As loops they would lock each
    other, but for those of one freedom, as two hinges of a door, which stay what they are.
    """
    graph, stacked = read.graph, list[str]()
    between: dict[tuple[str, str], list[Connection]] = {}
    for edge in graph.connections:
        if edge.kind in ("revolute", "prismatic") and not edge.is_loop:
            between.setdefault((edge.parent, edge.child), []).append(edge)
    for edges in between.values():
        drawn = [float(np.abs(read.at.get(edge.name, 0.0)).max()) < FLOATS for edge in edges]
        if not all(drawn) or np.linalg.matrix_rank(_screws(edges), FLOATS) < 2:
            continue
        stacked += [edge.name for edge in edges]
        for edge, following in zip(edges, edges[1:], strict=False):
            link = free_name(f"{edge.name}_link", {WORLD, *graph.links})
            graph.links[link], graph.places[link] = Link(link), edge.places[1]
            _rejoin(graph, edge.name, child=link)
            _rejoin(graph, following.name, parent=link)
    if stacked:
        graph.notes.append(
            "joints between the same two bodies act one after the other, as MuJoCo's converter"
            f" means them: {listed(stacked)}"
        )


def _rejoin(graph: JointGraph, name: str, **ends: str) -> None:
    k = next(k for k, edge in enumerate(graph.connections) if edge.name == name)
    graph.connections[k] = replace(graph.connections[k], **ends)


def _screws(edges: Sequence[Connection]) -> Array:
    """Unit twists (n, 6) in the world that single axes allow, about the first one's place."""
    rows: list[Array] = []
    for edge in edges:
        axis, arm = edge.place.R @ edge.along[0].axis, edge.place.p - edges[0].place.p
        turns = edge.kind == "revolute"
        rows.append(np.r_[axis, np.cross(arm, axis)] if turns else np.r_[np.zeros(3), axis])
    return np.array(rows)


def _add_joint(read: Read, prim: Any, name: str) -> None:
    """One joint, or a note of why there is none."""
    joint, graph, kind = read.physics.Joint(prim), read.graph, str(prim.GetTypeName())
    if joint.GetJointEnabledAttr().Get() is False:
        graph.notes.append(f"joint '{name}' is switched off, and left out")
        return
    ends = [_end(read, prim, which) for which in (0, 1)]
    (parent, place), (child, place_b) = ends
    if parent == child:
        graph.notes.append(f"joint '{name}' joins '{parent}' to itself, and is left out")
        return
    if kind == DISTANCE:
        _add_distance(read, prim, name, ends)
        return
    if kind in TYPED:
        kind = TYPED[kind]
        tags = _own_tags(prim, kind)
    elif kind == GENERIC:
        tags = _free_tags(read, prim)
        if len(tags) == len(WAYS + TURNS):
            return  # it joins nothing
        kind = _kind_of(tags)
    else:
        graph.notes.append(f"joint '{name}' is a {kind}, and is left out")
        return
    if kind == "ball" and _cone(prim):
        graph.notes.append(f"the cone that limits ball joint '{name}' is left out")
    loop = bool(joint.GetExcludeFromArticulationAttr().Get())
    alone = len(tags) == 1 and not loop
    alongs = tuple(_along(read, prim, tag, name, alone) for tag in tags) if kind != "ball" else ()
    position, place_b = _settled(kind, place, place_b, alongs)
    if position is not None:
        read.at[name] = position
    armature = max(
        *(number(prim, said, 0.0) for said in ARMATURES),
        *(_of_physx(prim, tag, "armature", 0.0) for tag in tags or TURNS[:1]),
    )
    if alongs and kind == "revolute":
        armature *= read.units.inertia
    elif alongs:
        armature *= read.units.kilogram
    if parent == WORLD and loop and kind == "fixed":
        loop = False  # it holds a base
    graph.connections.append(
        Connection(
            name,
            kind,
            parent,
            child,
            place,
            alongs,
            armature=armature,
            is_loop=loop,
            place_b=place_b,
        )
    )


def _add_distance(read: Read, prim: Any, name: str, ends: list[tuple[str, Pose]]) -> None:
    """A joint that keeps points within a range of distances: a rod, or a rope or strut."""
    graph = read.graph
    a, b = ((graph.places[link].inverse @ place).on(link) for link, place in ends)
    said = [number(prim, f"physics:{which}Distance", -1.0) for which in ("min", "max")]
    low, high = (x * read.units.metre if 0.0 <= x < 1e30 else None for x in said)
    shortest, longest = low or 0.0, np.inf if high is None else high
    if shortest > longest:
        raise ModelError(
            f"joint '{name}' has the distances {shortest:g} and {longest:g} m; the lower one first"
        )
    if shortest == longest > 0.0:
        graph.loops.append(Distance(name, a, b, longest))
    elif longest == 0.0:
        graph.loops.append(LoopJoint(name, JointModel.BALL, a, b))
    elif shortest or longest < np.inf:
        graph.elements.append(Spring(name, a, b, limits=(shortest, longest)))


def _end(read: Read, owner: Any, which: int) -> tuple[str, Pose]:
    """Link that a joint is on, and the joint's frame on it in the world."""
    relation = owner.GetRelationship(f"physics:body{which}")
    position, rotation = (
        owner.GetAttribute(f"physics:local{what}{which}") for what in ("Pos", "Rot")
    )
    targets = relation.GetTargets() if relation else ()
    prim = read.stage.GetPrimAtPath(targets[0]) if targets else None
    if targets and not prim:
        raise ModelError(
            f"joint '{owner.GetName()}' names the body {targets[0]}, which is not there;"
            " correct the path"
        )
    from scipy.spatial.transform import Rotation

    local = np.array(position.Get() if position else (0.0, 0.0, 0.0), float)
    quat = rotation.Get() if rotation else None
    turn = np.eye(3)
    if quat is not None:
        turn = Rotation.from_quat([*quat.GetImaginary(), quat.GetReal()]).as_matrix()
    if prim is None or prim.IsPseudoRoot():
        return WORLD, Pose(turn, local * read.units.metre)
    place = place_of(prim, read.units, local)
    while prim and not prim.IsPseudoRoot():
        if str(prim.GetPath()) in read.names:
            return read.names[str(prim.GetPath())], place @ Pose(turn)
        prim = prim.GetParent()
    return WORLD, place @ Pose(turn)


def _own_tags(prim: Any, kind: str) -> list[str]:
    """Freedoms of a typed joint, as limits name them."""
    if kind not in ("revolute", "prismatic"):
        return []
    axis = prim.GetAttribute("physics:axis").Get() or "X"
    return [("rot" if kind == "revolute" else "trans") + str(axis)]


def _free_tags(read: Read, prim: Any) -> list[str]:
    """Freedoms of a generic joint: those that no limit locks, by a lower above the upper one."""
    free: list[str] = []
    for tag in WAYS + TURNS:
        limit = read.physics.LimitAPI.Get(prim, tag)
        given = prim.HasAPI(read.physics.LimitAPI, tag)
        if not given or limit.GetLowAttr().Get() <= limit.GetHighAttr().Get():
            free.append(tag)
    return free


def _kind_of(tags: list[str]) -> str:
    """What a joint with so many freedoms is."""
    turns = [tag for tag in tags if tag in TURNS]
    kinds = {(0, 0): "fixed", (1, 1): "revolute", (1, 0): "prismatic", (2, 2): "universal"}
    kinds[3, 3] = "ball"
    return kinds.get((len(tags), len(turns)), "several")


def _along(read: Read, prim: Any, tag: str, name: str, alone: bool) -> Along:
    """Axis of one freedom, its limits and its drive; ``alone`` if it is the joint's only one.

    A drive pushes by stiffness (target - position) + damping (target rate - rate), within bounds.
    """
    turns = tag in TURNS
    axis = np.zeros(3)
    axis[AXES[tag[-1]]] = 1.0
    size = DEGREE if turns else read.units.metre
    if prim.HasAPI(read.physics.LimitAPI, tag):
        limit = read.physics.LimitAPI.Get(prim, tag)
        bounds = limit.GetLowAttr().Get(), limit.GetHighAttr().Get()
    else:
        bounds = (
            number(prim, "physics:lowerLimit", -np.inf),
            number(prim, "physics:upperLimit", np.inf),
        )
    lower, upper = (float(x) if abs(x) < 1e30 else float(np.copysign(np.inf, x)) for x in bounds)
    limits = (lower * size, upper * size) if lower <= upper else UNLIMITED
    effort, stiffness, rest, damping = np.inf, 0.0, 0.0, 0.0
    for instance in (tag, "angular" if turns else "linear"):
        if not prim.HasAPI(read.physics.DriveAPI, instance):
            continue
        drive = read.physics.DriveAPI.Get(prim, instance)
        force = read.units.inertia if turns else read.units.kilogram
        most = float(drive.GetMaxForceAttr().Get())
        unit = force if turns else force * read.units.metre
        effort = most * unit if abs(most) < 1e30 else np.inf
        said = drive.GetStiffnessAttr().Get(), drive.GetDampingAttr().Get()
        by = force / DEGREE if turns else force
        stiffness, damping = (float(x) * by for x in said)
        rest, rate = (
            float(target.Get()) * size
            for target in (drive.GetTargetPositionAttr(), drive.GetTargetVelocityAttr())
        )
        push = stiffness * rest + damping * rate
        servo = Servo(push, stiffness, damping, (-effort, effort))
        accelerates = str(drive.GetTypeAttr().Get()) == "acceleration"
        pushes = servo.constant != 0.0 and not alone
        if (stiffness or damping) and (accelerates or not read.servos or pushes):
            read.idle.append(
                f"{name} (stiffness {stiffness:g}, damping {damping:g}, at {rest:g}"
                f"{f', rate {rate:g}' if rate else ''}"
                f"{', as an acceleration' if accelerates else ''})"
            )
            stiffness = damping = 0.0
        elif alone and (servo.is_motor or servo.constant):  # no spring and damper says that
            read.acting[name] = servo
            stiffness = damping = 0.0
        elif servo.is_motor:
            read.unbounded.append(name)
        rest = servo.rest if stiffness else 0.0
        read.driven.append(name)
    speed = _of_physx(prim, tag, "maxJointVelocity", np.inf)
    speed = speed * size if speed < 1e6 else np.inf
    own = _passive(read, prim, tag)
    if own.stiffness:
        rest = (stiffness * rest + own.stiffness * own.rest) / (stiffness + own.stiffness)
    stiffness, damping = stiffness + own.stiffness, damping + own.damping
    return Along(axis, limits, effort, speed, damping, own.friction, stiffness, rest, not turns)


def _passive(read: Read, prim: Any, tag: str) -> JointForce:
    """Damping, friction and spring of a joint itself, by PhysX's, Newton's or MuJoCo's attributes.

    Those of PhysX and Newton count in degrees where a joint turns, MuJoCo's in radians but for
    where a spring rests, which is as its scene says, and from zero at ``mjc:ref`` here. PhysX's are
    of one axis each, and come first.
    """
    turns, units = tag in TURNS, read.units
    force = units.inertia if turns else units.kilogram
    effort = force if turns else force * units.metre
    axes = (tag, "angular" if turns else "linear")
    by_degrees = force / DEGREE if turns else force
    viscous = [(f"physxJointAxis:{axis}:viscousFrictionCoefficient", by_degrees) for axis in axes]
    rubbing = [(f"physxJointAxis:{axis}:dynamicFrictionEffort", effort) for axis in axes]
    damping = _first(prim, [*viscous, ("newton:damping", by_degrees), ("mjc:damping", force)])
    friction = _first(prim, [*rubbing, ("newton:friction", effort), ("mjc:frictionloss", effort)])
    stiffness = number(prim, "mjc:stiffness", 0.0) * force
    rest = number(prim, "mjc:springref", 0.0) - number(prim, "mjc:ref", 0.0)
    rest *= read.angle if turns else units.metre
    if min(damping, friction, stiffness) < 0.0:
        raise ModelError(
            f"joint '{prim.GetName()}' has negative damping, friction or stiffness; correct it"
        )
    return JointForce("", 0.0, stiffness, rest, damping, friction)


def _of_physx(prim: Any, tag: str, what: str, default: float) -> float:
    """What PhysX's attributes say of one axis of a joint, or else of the joint."""
    axes = (tag, "angular" if tag in TURNS else "linear")
    said = [f"physxJointAxis:{axis}:{what}" for axis in axes]
    found = (number(prim, name, np.nan) for name in (*said, f"physxJoint:{what}"))
    return next((value for value in found if not np.isnan(value)), default)


def _first(prim: Any, names: Sequence[tuple[str, float]]) -> float:
    """The first of several attributes that is not zero, times its unit."""
    found = (number(prim, name, 0.0) * unit for name, unit in names)
    return next((value for value in found if value), 0.0)


def _settled(
    kind: str, place: Pose, place_b: Pose, alongs: tuple[Along, ...]
) -> tuple[float | list[float] | None, Pose]:
    """Where a joint is as drawn, and its frame on the child at that position.

    Frames that coincide but for the joint's freedom and what single precision leaves are taken to
    coincide, since a linkage would jam otherwise.
    """
    from scipy.spatial.transform import Rotation

    between = place.inverse @ place_b
    turn = Rotation.from_matrix(between.R).as_rotvec()
    position: float | list[float] | None = None
    moved = Pose()
    if kind == "revolute":
        angle = position = float(turn @ alongs[0].axis)
        moved = Pose(Rotation.from_rotvec(angle * alongs[0].axis).as_matrix())
    elif kind == "prismatic":
        way = position = float(between.p @ alongs[0].axis)
        moved = Pose(np.eye(3), way * alongs[0].axis)
    elif kind == "ball":
        position = [float(x) for x in Rotation.from_matrix(between.R).as_quat()]
        moved = Pose(between.R)
    elif kind == "universal":
        moved = Pose(between.R)
    off = moved.inverse @ between
    size = max(float(np.abs(off.p).max()), float(np.abs(off.R - np.eye(3)).max()))
    return position, place @ moved if size < FLOATS else place_b


def _cone(prim: Any) -> bool:
    """Whether a ball joint is limited."""
    angles = (number(prim, f"physics:coneAngle{k}Limit", -1.0) for k in (0, 1))
    return any(angle >= 0.0 for angle in angles)


def _mimic(read: Read, prim: Any, name: str, paths: Mapping[str, str]) -> Coupling | None:
    """What couples a joint to another one, by PhysX's, Newton's or MuJoCo's attributes.

    PhysX has position + gearing * leader + offset = 0, the others position = coef0 + coef1 * leader
    and so on. PhysX's and Newton's count in degrees, MuJoCo's in radians.
    """
    followed, linear, unit = "", [0.0, 1.0], DEGREE
    powers = [number(prim, f"mjc:coef{k}", float(k == 1)) for k in range(5)]
    for tag in TURNS + WAYS:
        said = f"physxMimicJoint:{tag}"
        followed = _target(prim, f"{said}:referenceJoint")
        if followed:
            linear = [-number(prim, f"{said}:{x}", n) for x, n in (("offset", 0), ("gearing", 1))]
            break
    if not followed and value_of(prim, "newton:mimicEnabled") is not False:
        followed = _target(prim, "newton:mimicJoint")
        linear = [number(prim, f"newton:mimicCoef{k}", float(k)) for k in (0, 1)]
        if not followed:
            followed, linear, unit = _target(prim, "mjc:target"), powers[:2], 1.0
    if not followed:
        return None
    if followed not in paths:
        read.graph.notes.append(
            f"joint '{name}' follows {followed}, which is no joint: it moves freely"
        )
        return None
    ends = str(prim.GetPath()), followed
    turns = [str(read.stage.GetPrimAtPath(path).GetTypeName()) == HINGE for path in ends]
    size, by = (unit if turn else read.units.metre for turn in turns)
    plain, by_plain = (1.0 if turn else read.units.metre for turn in turns)
    higher = tuple(-c * plain / by_plain**k for k, c in enumerate(powers[2:], 2))
    leader = paths[followed]
    factors = {name: 1.0, leader: -linear[1] * size / by}
    more = {leader: higher} if any(higher) else {}
    return Coupling(f"{name}_mimic", factors, linear[0] * size, higher=more)


def _target(prim: Any, relation: str) -> str:
    """Path of what a relation names first; empty for none."""
    return next(iter(targets_of(prim, relation)), "")


def _settle(read: Read, scene: Scene) -> None:
    """Start where the stage is drawn, within limits, and say which drives do not act."""
    joints = scene.joints()
    prefixes = {name.rpartition("/")[2]: name for name in joints}
    for name, position in read.at.items():
        if name not in prefixes:
            continue
        full = prefixes[name]
        if not isinstance(position, list):
            position = float(np.clip(position, *joints[full].limits))
            if abs(position) < FLOATS:
                continue
        scene.start_guess[full] = position
    scene.actuated += [prefixes[name] for name in dict.fromkeys(read.driven) if name in prefixes]
    rest = "" if read.servos else "; servos=True (--servos) lets those act that are forces"
    unbounded = dict.fromkeys(read.unbounded)
    said = {
        f"drives that do not act: {{}}{rest}": read.idle,
        "drives whose bounds do not act, of several axes or in loops: {}": [*unbounded],
    }
    scene.notes += told(said)
