"""A body as Bullet has it, whatever it was made from, as a robot that can be written."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pybullet

from bulletbridge.bullet.collision_shapes import told_shapes
from bulletbridge.bullet.coordinates import matrix
from bulletbridge.bullet.reader import read_body
from bulletbridge.bullet.tree import FIXED, RawLink
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.mechanism.records import PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.models.formats.robot import (
    Inertial,
    Joint,
    Link,
    Pose,
    Robot,
    Shape,
    free_name,
    listed,
)

KINDS = {REVOLUTE: "revolute", PRISMATIC: "prismatic", SPHERICAL: "spherical", FIXED: "fixed"}
ROUNDS = {pybullet.GEOM_CAPSULE: "capsule", pybullet.GEOM_CYLINDER: "cylinder"}
COLOUR = 7
"""Place of the colour in what Bullet tells of a shape that is seen; others end before it."""
USUAL_FRICTION = 0.5
"""Bullet's own, of links of which nothing is said."""


def robot_of(name: str, body: int, client: int, notes: list[str]) -> Robot:
    """Links, joints and shapes of a body; what is lost goes to the notes.

    Raises:
        ModelError: It is no multibody, too large, or has joints of an unknown kind.
    """
    raw = read_body(name, body, client)
    inner = [Pose(link.R, link.com) for link in raw.links]  # inertial frames in links
    seen: dict[int, list[tuple[Any, ...]]] = {}
    for told in pybullet.getVisualShapeData(body, physicsClientId=client):
        seen.setdefault(told[1], []).append(told)
    links: dict[str, Link] = {}
    names: list[str] = []
    lost: list[str] = []
    for k, own in enumerate(raw.links):
        names.append(free_name(own.name or f"link_{k - 1}", links))
        visible, touched = _shapes(seen.get(k - 1, ()), Pose()), told_shapes(body, k - 1, client)
        # None where asking would end the process: capsules, which are seen as they are
        touching = visible if touched is None else _shapes(touched, inner[k])
        if any(shape is None for shape in (*visible, *touching)):
            lost.append(f"'{names[k]}'")
        visuals, collisions = (
            [shape for shape in found if shape is not None] for found in (visible, touching)
        )
        friction = float(pybullet.getDynamicsInfo(body, k - 1, client)[1])
        rubs = None if friction == USUAL_FRICTION else friction
        links[names[k]] = Link(names[k], _inertial(own), visuals, collisions, rubs)
    joints: dict[str, Joint] = {}
    for k, joint in enumerate(raw.joints):
        child, parent = k + 1, joint.parent
        turned = inner[parent].R @ joint.R @ inner[child].R.T
        pivot = inner[parent].p + inner[parent].R @ joint.pivot
        own = free_name(joint.name or f"joint_{k}", joints)
        velocity = float(pybullet.getJointInfo(body, k, client)[11])
        joints[own] = Joint(
            own, KINDS[joint.kind], names[parent], names[child], Pose(turned, pivot),
            inner[child].R @ joint.axis, (joint.lower, joint.upper), joint.effort or np.inf,
            velocity or np.inf, joint.damping, joint.friction,
        )  # fmt: skip
    if lost:
        notes.append(f"shapes of {listed(lost)} of '{name}' that are in no file are left out")
    place = Pose(raw.R, raw.p) @ inner[0].inverse
    return Robot(name, names[0], not raw.floating, links, joints, place)


def _inertial(link: RawLink) -> Inertial | None:
    if link.mass == 0.0 and not link.moments.any():
        return None
    return Inertial(link.mass, link.com, link.R @ np.diag(link.moments) @ link.R.T)


def _shapes(told: Iterable[tuple[Any, ...]], frame: Pose) -> list[Shape | None]:
    """Shapes as Bullet tells them, in a frame of the link; None for what cannot be said."""
    return [_shape(each, frame @ Pose(matrix(each[6]), np.array(each[5]))) for each in told]


def _shape(told: tuple[Any, ...], place: Pose) -> Shape | None:
    kind, (x, y, z), file = told[2], told[3], told[4].decode(errors="replace")
    rgba: tuple[float, ...] = told[7] if len(told) > COLOUR else ()
    if kind == pybullet.GEOM_SPHERE:
        return Shape("sphere", (x,), place, "", rgba)
    if kind == pybullet.GEOM_BOX:
        return Shape("box", (x, y, z), place, "", rgba)
    if kind in ROUNDS:
        return Shape(ROUNDS[kind], (y, x), place, "", rgba)
    if kind == pybullet.GEOM_PLANE:
        return Shape("plane", (), place @ Pose(frame_with_z((x, y, z))), "", rgba)
    if kind == pybullet.GEOM_MESH and Path(file).is_file():
        return Shape("mesh", (x, y, z), place, str(Path(file).resolve()), rgba)
    return None
