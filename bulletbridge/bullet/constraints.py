"""Bullet's constraints as ours: kinds, frames, force limits, and what predicts them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pybullet

from bulletbridge.bullet.coordinates import matrix, unit
from bulletbridge.bullet.watched_calls import native_of
from bulletbridge.bullet.worlds import joint_ids, link_ids
from bulletbridge.constraints.joints import Coupling, Frame, JointModel, LoopJoint, Triple
from bulletbridge.constraints.motion import Motion
from bulletbridge.mechanism.frames import matrix_rpy, triple
from bulletbridge.mechanism.model import WORLD
from bulletbridge.numerics.records import Array

MODELS = {
    pybullet.JOINT_POINT2POINT: JointModel.BALL,
    pybullet.JOINT_SPHERICAL: JointModel.BALL,
    pybullet.JOINT_FIXED: JointModel.WELD,
    pybullet.JOINT_PRISMATIC: JointModel.PRISMATIC,
    pybullet.JOINT_REVOLUTE: JointModel.REVOLUTE,
    pybullet.JOINT_PLANAR: JointModel.PLANAR,
}
WITH_AXIS = (JointModel.PRISMATIC, JointModel.REVOLUTE, JointModel.PLANAR)
ONLY_HERE = (pybullet.JOINT_SPHERICAL, pybullet.JOINT_REVOLUTE, pybullet.JOINT_PLANAR)
"""Types that Bullet's createConstraint refuses."""
NOBODY = -1
SHOWN_LIMIT = 500.0
"""What getConstraintInfo says of a constraint that is rigid for practical purposes [N]."""
HINGE_SPAN = 0.1
"""Distance [m] of the second point by which Bullet predicts a revolute constraint."""

Info = tuple[Any, ...]


@dataclass(frozen=True)
class CreatedConstraint:
    """What became of a constraint that was created in Bullet.

    Attributes:
        number: Bullet's id.
        kind: Joint type that was asked for.
        bodies: Ids of the bodies that it joins, without the world.
        exact: Whether it is closed to round-off; otherwise it is Bullet's own.
        reason: Why it is Bullet's own; empty when it is not.
        note: What else is to be said of it.
        max_force: Explicit limit of its force [N] or torque [N m]; None when it is rigid.
        twin: Id of a second native constraint that helps to predict it, or -1.
        moving: Whether its child frame has been moved.
        by_base: Whether by moving a fixed base alone, which restoring a state undoes.
        ratio: Of a gear: rate of the first joint + ratio * rate of the second = 0.
        auxiliary: The parent's joint whose rate counts against that of the first, or -1.
        erp: Share of a gear's error that Bullet takes away in a step; 0 for rates alone.
        target: What positions of a gear with an erp amount to: first + ratio * second - auxiliary.
        axis: Axis in the parent's inertial frame; (0, 0, 0) of kinds that have none.
        axis_in_frame: The same in the constraint's own frame on the parent, z of kinds without.
        slides: Whether it is a slider between two bodies that move, which Bullet gets wrong.
        unpredicted: Whether Bullet's own constraint has been left without force for that.
        first: Id of the constraint in whose place it came, if its system knows it by that; or -1.
    """

    number: int
    kind: int
    bodies: tuple[int, ...]
    exact: bool = True
    reason: str = ""
    note: str = ""
    max_force: float | None = None
    twin: int = -1
    moving: bool = False
    by_base: bool = False
    ratio: float = 1.0
    auxiliary: int = NOBODY
    erp: float = 0.0
    target: float = 0.0
    axis: Triple = (0.0, 0.0, 0.0)
    axis_in_frame: Triple = (0.0, 0.0, 1.0)
    slides: bool = False
    unpredicted: bool = False
    first: int = NOBODY

    @property
    def name(self) -> str:
        """What its system calls it."""
        return f"constraint {self.number if self.first == NOBODY else self.first}"


def info_of(number: int, client: int) -> Info:
    """Bullet's description of a constraint."""
    return pybullet.getConstraintInfo(number, physicsClientId=client)


def all_but_child_frame(loop: CreatedConstraint, client: int) -> tuple[Any, ...]:
    """What stays of a constraint while its child frame moves: type, ends, axis, parent frame."""
    info = info_of(loop.number, client)
    return loop.kind, info[:4], loop.axis, info[6], info[8]


LET_MEET = (
    "put bodies, pivots and new constraints where all of them can meet, take a constraint away, or"
    " give one a maxForce, up to which it holds"
)
"""Remedy for those that cannot close."""


def in_numbers_of_today(text: str, loops: Iterable[CreatedConstraint]) -> str:
    """A message that calls constraints by the ids that Bullet has for them now."""
    numbers = {str(loop.first): str(loop.number) for loop in loops if loop.first != NOBODY}
    return re.sub(r"(?<=\bconstraint )\d+", lambda m: numbers.get(m[0], m[0]), text)


AT_FIRST = {"max_force": None, "ratio": 1.0, "auxiliary": NOBODY, "erp": 0.0, "target": 0.0}
"""What a new constraint is, of which Bullet shows what another command has left in its memory."""


def describe(number: int, client: int, **asked: Any) -> CreatedConstraint:
    """A constraint of Bullet as it was found, or with what of it the program asked for."""
    info = info_of(number, client)
    bodies = tuple(sorted({body for body in (info[0], info[2]) if body != NOBODY}))
    limit = None if info[10] == SHOWN_LIMIT else float(info[10])
    found: dict[str, Any] = {
        "kind": info[4],
        "bodies": bodies,
        "max_force": limit,
        "ratio": info[11] or 1.0,
        "auxiliary": info[12] or NOBODY,  # Bullet shows joint 0 for none as well
        "erp": info[14],
        "target": info[13],
        "axis": info[5],
    }
    loop = CreatedConstraint(number, **found | asked)
    if loop.kind in MODELS:
        loop = replace(loop, axis_in_frame=axis_in_frame(loop, info))
    return judged(loop)


def is_held(body: int, link: int, client: int) -> bool:
    """Whether a link cannot move: the world, and bases that are fixed."""
    if body == NOBODY:
        return True
    return link < 0 and not pybullet.getDynamicsInfo(body, link, physicsClientId=client)[0] > 0.0


def judged(loop: CreatedConstraint) -> CreatedConstraint:
    """The loop with what its kind says about who closes it, and what of it means nothing then."""
    known = loop.kind in MODELS or loop.kind == pybullet.JOINT_GEAR
    reason = "" if known else f"Bullet's constraint type {loop.kind}"
    note = ""
    if loop.erp != 0.0:
        note = f"an erp of {loop.erp:g} takes gaps back where force limits have let them open"
    if (known, reason, note) == (loop.exact, loop.reason, loop.note):
        return loop
    return replace(loop, exact=known, reason=reason, note=note)


def create_native(given: dict[str, Any], client: int) -> tuple[int, int]:
    """Bullet's constraint for types that it does not have, and its second half or -1.

    A spherical and a revolute one are predicted by one and two points; a planar one has no
    equivalent, so a point without force only lends it a number.
    """
    wanted = dict(given, jointType=pybullet.JOINT_POINT2POINT, physicsClientId=client)
    first = pybullet.createConstraint(**wanted)
    twin = -1
    if given["jointType"] == pybullet.JOINT_PLANAR:
        pybullet.changeConstraint(first, maxForce=0.0, physicsClientId=client)
    elif given["jointType"] == pybullet.JOINT_REVOLUTE:
        info = info_of(first, client)
        axis = HINGE_SPAN * np.asarray(given["jointAxis"]) / np.linalg.norm(given["jointAxis"])
        wanted["parentFramePosition"] = (np.asarray(info[6]) + axis).tolist()
        wanted["childFramePosition"] = across(info, axis)
        twin = pybullet.createConstraint(**wanted)
    return first, twin


def change_twin(loop: CreatedConstraint, given: dict[str, Any], client: int) -> None:
    """Change the second half of a revolute constraint as the first one was."""
    info = info_of(loop.number, client)
    changes = {key: given[key] for key in ("maxForce",) if key in given}
    if {"jointChildPivot", "jointChildFrameOrientation"} & set(given):
        axis = HINGE_SPAN * np.asarray(loop.axis) / np.linalg.norm(loop.axis)
        changes["jointChildPivot"] = across(info, axis)
    if changes:
        native_of(pybullet.changeConstraint)(loop.twin, **changes, physicsClientId=client)


def across(info: Info, offset: Array) -> list[float]:
    """Point beside a constraint's pivot, in the child; the offset (3,) [m] is the parent's."""
    parent, child = matrix(unit(info[8])), matrix(unit(info[9]))
    return (np.asarray(info[7]) + child @ (parent.T @ offset)).tolist()


def modelled(
    loop: CreatedConstraint,
    links: dict[tuple[int, int], str],
    motion: Motion | None,
    client: int,
) -> LoopJoint:
    """A constraint of Bullet as ours: from inertial frames to link frames, the child as frame a.

    Args:
        loop: What it is.
        links: Names of links by body and link number.
        motion: Of the child's frame.
        client: Physics client.
    """
    info = info_of(loop.number, client)
    model = MODELS[loop.kind]
    a = frame_on(info[2], info[3], info[7], info[9], links, client)
    b = frame_on(info[0], info[1], info[6], info[8], links, client)
    return LoopJoint(loop.name, model, a, b, axis_in_frame(loop, info), motion=motion)


def axis_in_frame(loop: CreatedConstraint, info: Info) -> Triple:
    """Axis of a constraint in its frame, z if it has none; Bullet's is the parent's inertial."""
    if MODELS[loop.kind] not in WITH_AXIS or not np.any(loop.axis):
        return 0.0, 0.0, 1.0
    return tuple((matrix(unit(info[8])).T @ np.asarray(loop.axis)).tolist())


def frame_on(
    body: int,
    link: int,
    position: Triple,
    quaternion: tuple[float, float, float, float],
    links: dict[tuple[int, int], str],
    client: int,
) -> Frame:
    """A frame given in a link's inertial frame, or in the world, on the link itself."""
    R, p = matrix(unit(quaternion)), np.asarray(position, float)
    name = WORLD
    if body != NOBODY:
        dynamics = pybullet.getDynamicsInfo(body, link, physicsClientId=client)
        inertial = matrix(unit(dynamics[4]))
        p, R = np.asarray(dynamics[3]) + inertial @ p, inertial @ R
        name = links[body, link]
    return Frame(name, triple(p), matrix_rpy(R))


def as_it_stands(
    loop: CreatedConstraint,
    links: dict[tuple[int, int], str],
    joints: dict[tuple[int, int], str],
    client: int,
) -> LoopJoint | Coupling:
    """A constraint of Bullet as ours, with its force limit.

    Gears that hold rates alone hold positions as they are.

    Args:
        loop: What it is.
        links: Names of links by body and link number.
        joints: Names of joints likewise.
        client: Physics client.
    """
    if loop.kind != pybullet.JOINT_GEAR:
        return replace(modelled(loop, links, None, client), max_force=loop.max_force)
    parts, offset = gear_parts(loop, client), loop.target
    if loop.erp == 0.0:
        offset = sum(
            factor * pybullet.getJointState(*place, physicsClientId=client)[0]
            for place, factor in parts.items()
        )
    coefficients = {joints[place]: factor for place, factor in parts.items() if factor}
    return Coupling(loop.name, coefficients, offset, max_force=loop.max_force)


def gear_parts(loop: CreatedConstraint, client: int) -> dict[tuple[int, int], float]:
    """Factors of the positions that a gear holds, by body and joint.

    That of its auxiliary joint is among them, or energy would come of it.
    """
    info, parts = info_of(loop.number, client), dict[tuple[int, int], float]()
    places = [(info[:2], 1.0), (info[2:4], loop.ratio)]
    if loop.auxiliary != NOBODY:
        places.append(((info[0], loop.auxiliary), -1.0))
    for (body, joint), factor in places:
        parts[body, joint] = parts.get((body, joint), 0.0) + factor
    return parts


class BulletConstraints(NamedTuple):
    """The constraints that Bullet has of some bodies.

    Attributes:
        joining: Those among them, and with the world, as ours, by Bullet's number.
        left: What others are, in words.
    """

    joining: dict[int, LoopJoint | Coupling]
    left: tuple[str, ...]


def constraints_among(ids: dict[str, int], client: int) -> BulletConstraints:
    """What ``createConstraint`` has joined some bodies by, as it stands.

    Args:
        ids: The bodies, by name.
        client: Physics client.
    """
    joining, left, known = dict[int, LoopJoint | Coupling](), list[str](), set(ids.values())
    links = {place: name for name, place in link_ids(ids, client).items()}
    joints = {place: name for name, place in joint_ids(ids, client).items()}
    for place in range(pybullet.getNumConstraints(physicsClientId=client)):
        loop = describe(pybullet.getConstraintUniqueId(place, physicsClientId=client), client)
        if known.isdisjoint(loop.bodies):
            continue
        others = [body for body in loop.bodies if body not in known]
        if others:
            left.append(f"{loop.name} joins them to body {others[0]}, which is not among them")
        elif loop.reason:
            left.append(f"{loop.name} is {loop.reason}")
        else:
            joining[loop.number] = as_it_stands(loop, links, joints, client)
    return BulletConstraints(joining, tuple(left))
