"""Warnings of what Bullet does with a model silently."""

import math
from collections.abc import Collection
from pathlib import Path

import pybullet

from bulletbridge.bullet.worlds import text_of
from bulletbridge.bullet.xml_file import read_xml
from bulletbridge.engine.likely_mistakes import far_frames, odd_joints
from bulletbridge.errors import ModelError
from bulletbridge.inequalities.constraints import beyond_limits
from bulletbridge.models.formats.robot import listed
from bulletbridge.models.load import LoadedModel
from bulletbridge.models.model_spec import BodySpec
from bulletbridge.models.odd_inertias import extent
from bulletbridge.system.system import System

LARGE = 100.0
"""Mechanisms larger than this [m] may be in millimetres."""


def bullet_warnings(loaded: LoadedModel) -> tuple[str, ...]:
    """Warnings about a loaded model, one sentence each."""
    found: list[str] = []
    joints = loaded.system.mechanism.joints
    rubbing = {name for name, joint in joints.items() if joint.friction > 0.0}
    for body in loaded.spec.bodies:
        prefix = f"{body.name}/" if len(loaded.spec.bodies) > 1 else ""
        found += from_file(body, prefix, rubbing)
        found += from_world(loaded.ids[body.name], prefix, loaded.client)
    mechanism = loaded.system.mechanism
    if not mechanism.axes["limited"].any():  # else they were told by load
        found += [f"{said} at the start" for said in beyond_limits(mechanism, loaded.system.q)]
    found += misplaced(loaded.system)
    return (*found, *other_units(loaded.system))


def misplaced(system: System) -> list[str]:
    """Frames far off their links, and joints that alone leave the plane of a loop."""
    solver, found = system.dynamics.solver, list[str]()
    for said in far_frames(solver, solver.encoded.rows):
        found.append(f"{said}: check its 'xyz'")
    for name in solver.encoded.rows:
        odd = odd_joints(solver, name)
        if len(odd) == 1:
            found.append(
                f"joint '{odd[0]}' turns or slides out of the plane in which all other joints of"
                f" '{name}' move: check its <axis>"
            )
    return found


def other_units(system: System) -> tuple[str, ...]:
    """What looks as if lengths were in millimetres; of inertias ``load`` says so."""
    across = extent(system)
    if across <= LARGE:
        return ()
    return (
        f"it is {across:.3g} m across: lengths of URDFs and loops files are metres (URDFs in"
        " millimetres take 'scale: 0.001', lengths of loops files do not follow)",
    )


def from_file(body: BodySpec, prefix: str, rubbing: Collection[str]) -> list[str]:
    """What a URDF says and Bullet drops or changes.

    Args:
        body: The robot.
        prefix: What names of its links and joints begin with.
        rubbing: Joints whose friction acts in our steps.
    """
    path = Path(body.urdf)
    try:
        robot = read_xml(path)
    except ModelError:
        return []
    found: list[str] = []
    rough: dict[str, list[str]] = {}
    for joint in robot.iter("joint"):
        name, kind = prefix + joint.get("name", ""), joint.get("type")
        if kind == "floating":
            found.append(f"joint '{name}' is floating: Bullet makes it fixed")
        dynamics = joint.find("dynamics")
        if dynamics is not None and _number(dynamics.get("friction")) != 0.0:
            ours = "" if name in rubbing else ", and so do we without 'joint_friction: true'"
            rough.setdefault(ours, []).append(f"'{name}'")
        axis = joint.find("axis")
        if axis is not None and kind not in ("fixed", "floating", "spherical"):
            length = math.hypot(*(_number(x) for x in axis.get("xyz", "1 0 0").split()))
            if abs(length - 1.0) > 1e-6:
                found.append(f"joint '{name}' has an <axis> of length {length:.6g}, not 1")
    found += [
        f"joints with friction, which Bullet ignores{ours}: {listed(names)}"
        for ours, names in rough.items()
    ]
    if body.scale != 1.0:
        found.append(
            f"body '{body.name}' is scaled by {body.scale:g}: Bullet scales lengths, "
            f"but neither mass nor inertia"
        )
    return found


def from_world(body: int, prefix: str, client: int) -> list[str]:
    """What a loaded body has that its author hardly wanted."""
    found: list[str] = []
    count = pybullet.getNumJoints(body, physicsClientId=client)
    for joint in range(count):
        info = pybullet.getJointInfo(body, joint, physicsClientId=client)
        name = prefix + text_of(info[12])
        mass, _, inertia = pybullet.getDynamicsInfo(body, joint, physicsClientId=client)[:3]
        if info[2] == pybullet.JOINT_FIXED:  # what it has is part of what carries it
            continue
        if mass > 0.0 and max(inertia) == 0.0:
            found.append(
                f"link '{name}' has mass but no inertia: a point of mass; `bulletbridge inertia`"
                " takes it from the shapes"
            )
        if mass == 0.0:
            found.append(
                f"link '{name}' on the movable joint '{prefix}{text_of(info[1])}' has no mass"
            )
    if count > 121:
        found.append(f"{count} joints: Bullet's own dynamics calls are wrong from 122 on")
    return found


def _number(text: str | None) -> float:
    try:
        return float(text or 0.0)
    except ValueError:
        return math.nan
