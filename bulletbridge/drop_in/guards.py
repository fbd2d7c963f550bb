"""Errors instead of calls that end the process or answer for another body: ``RefusedCallError``."""

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pybullet

from bulletbridge.bullet.collision_shapes import told_shapes
from bulletbridge.bullet.constraints import NOBODY, info_of
from bulletbridge.bullet.worlds import body_ids
from bulletbridge.bullet.xml_file import read_xml
from bulletbridge.drop_in.actions import are_plain
from bulletbridge.errors import CallError, ModelError

if TYPE_CHECKING:
    from bulletbridge.drop_in.session import Session

Given = dict[str, Any]


class RefusedCallError(CallError, pybullet.error):
    """A call that PyBullet cannot answer, as an error that programs catch as PyBullet's own."""


CHILD = re.compile(rb"""<child\s+link\s*=\s*["']([^"']*)""")
AXES = {pybullet.JOINT_REVOLUTE: "revolute", pybullet.JOINT_PLANAR: "planar"}
"""Types of constraints that need an axis and are not Bullet's."""
VECTORS = ("objPositions", "objVelocities", "objAccelerations")
TURNS = {"parentFrameOrientation", "childFrameOrientation", "jointChildFrameOrientation"}


def check_gear(given: Given) -> None:
    """Raise for a gear on a base link, which ends the process."""
    if given.get("jointType") != pybullet.JOINT_GEAR:
        return
    for side in ("parentLinkIndex", "childLinkIndex"):
        if given.get(side, 0) < 0:
            raise RefusedCallError(
                f"a gear cannot act on a base link ({side} = -1); name the two joints by the links"
                " that they move"
            )


def check_child(given: Given, client: int) -> None:
    """Raise for a child link that does not exist, which ends the process, and for such a body.

    Bullet takes the latter for the world. Where there is no parent it says so itself.
    """
    body, link = given.get("childBodyUniqueId", NOBODY), given.get("childLinkIndex", NOBODY)
    try:
        pybullet.getBodyInfo(given.get("parentBodyUniqueId", NOBODY), physicsClientId=client)
    except (pybullet.error, TypeError):
        return
    if body == NOBODY:
        return
    try:
        pybullet.getBodyInfo(body, physicsClientId=client)
    except pybullet.error:
        raise RefusedCallError(
            f"there is no body {body} (childBodyUniqueId), which Bullet takes for the world; give"
            " -1 for the world, or the id of a body that was not removed"
        ) from None
    check_link("childLinkIndex", body, link, client)


def check_auxiliary(given: Given, client: int) -> None:
    """Raise for a gear whose auxiliary link does not exist, which ends the process."""
    try:
        body = info_of(given["userConstraintUniqueId"], client)[0]
    except pybullet.error:  # Bullet takes no note of constraints that are not there
        return
    check_link("gearAuxLink", body, given["gearAuxLink"], client)


def check_body(body: object, client: int) -> None:
    """Raise for a body that does not exist."""
    there = body_ids(client)
    if type(body) is bool or body not in there:
        raise RefusedCallError(
            f"there is no body {body!r} in client {client}; its bodies are"
            f" {', '.join(map(str, there)) or 'none'}, as loadURDF and the like have returned them"
        )


def check_link(name: str, body: int, link: int, client: int) -> None:
    """Raise for a link that a body does not have."""
    last = pybullet.getNumJoints(body, physicsClientId=client) - 1
    if not NOBODY <= link <= last:
        raise RefusedCallError(
            f"body {body} has no link {link} ({name}), at which PyBullet ends the process; its"
            f" links are numbered from -1, the base, to {last}"
        )


def check_turns(given: Given) -> None:
    """Raise for a frame whose quaternion is zero, which makes Bullet's numbers NaN."""
    for name in TURNS & given.keys():
        turn: Any = given[name]
        if type(turn) in (list, tuple) and are_plain(turn) and any(turn):  # as nearly always
            continue
        if np.shape(turn) == (4,) and not np.any(turn):
            raise RefusedCallError(
                f"{name} is a quaternion of zeros, which is no rotation; give [0, 0, 0, 1] for none"
            )


def check_axis(given: Given) -> None:
    """Raise for a hinge or a plane whose axis has no direction, which Bullet takes for points."""
    axis = given.get("jointAxis")
    if given.get("jointType") in AXES and not np.any(axis):
        told = [] if axis is None else list(map(float, axis))
        raise RefusedCallError(
            f"the jointAxis of a {AXES[given['jointType']]} constraint is"
            f" {told}, which has no direction; give the one about which the bodies turn, in the"
            " parent's inertial frame, as [0, 1, 0]"
        )


def check_tree(path: Path) -> None:
    """Raise for a URDF with a link that two joints carry, which ends the process."""
    named = CHILD.findall(path.read_bytes())
    if len(named) == len(set(named)):
        return
    with suppress(ModelError):  # Bullet says what is wrong with it
        carried: dict[str, str] = {}
        for joint in read_xml(path).findall("joint"):
            child, name = joint.find("child"), joint.get("name", "")
            link = "" if child is None else child.get("link", "")
            if link in carried:
                raise RefusedCallError(
                    f"{path.name}: joints '{carried[link]}' and '{name}' carry one link, '{link}',"
                    " where PyBullet ends the process; bulletbridge.load takes one of them for a"
                    " loop"
                )
            carried[link] = name


def check_arrays(name: str, given: Given) -> None:
    """Raise for NumPy arrays of coordinates, which end the process."""
    for key in VECTORS:
        if key in given and not isinstance(given[key], list | tuple):
            kind = type(given[key]).__name__
            raise RefusedCallError(
                f"{name}({key}=...) is {kind}, which ends the process in PyBullet; give a list:"
                f" {key}.tolist()"
            )


def check_lists(given: Given) -> None:
    """Raise for joint values in anything but a list of lists, which ends the process."""
    for key in ("targetValues", "targetVelocities"):
        value: Any = given.get(key)
        if value is not None and not is_table(value):
            raise RefusedCallError(
                f"resetJointStatesMultiDof({key}=...) must be a list with one list of numbers for"
                f" each joint, such as [[0.1], [0.2]], not {type(value).__name__};"
                " anything else can end the process in PyBullet"
            )


def is_table(value: Any) -> bool:
    """Whether PyBullet can read it as the numbers of several joints."""
    rows = (list, tuple, np.ndarray)
    return isinstance(value, list) and all(isinstance(row, rows) for row in cast(list[Any], value))


def check_shapes(body: int, link: int, client: int) -> None:
    """Raise for the shapes of a link with a capsule between two points, which end the process."""
    told: object = ()
    with suppress(pybullet.error):  # there is no such link, as Bullet says
        told = told_shapes(body, link, client)
    if told is None:
        raise RefusedCallError(
            f"getCollisionShapeData: link {link} of body {body} has a capsule that MJCF gives from"
            " one point to another, at which PyBullet ends the process; getVisualShapeData tells"
            " its length and radius"
        )


def check_model(name: str, session: "Session", given: Given) -> None:
    """Raise where Bullet would answer from a model of a removed or since changed body."""
    body = given.get("bodyUniqueId")
    remedy = "call resetSimulation and load again, or read the body with bulletbridge.attach"
    if body in session.outdated:
        raise RefusedCallError(
            f"{name}: body {body} was changed by changeDynamics after Bullet had made its model for"
            f" such calls, which it keeps; {remedy}"
        )
    if session.models_of_removed and body not in session.modelled:
        raise RefusedCallError(
            f"{name}: a body was removed after such a call, and Bullet may answer for it instead"
            f" of for body {body}; {remedy}"
        )
