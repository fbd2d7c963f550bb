"""From what Bullet reports of its bodies to the records of a mechanism; no calls into Bullet.

Bullet describes a joint between the *inertial* frames of two links. A link's own frame follows from
the pose of the inertial frame in it, so that everything here is in URDF link frames.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import frame_with_z, inertia_at
from bulletbridge.mechanism.model import (
    WORLD,
    CarriedLink,
    Joint,
    Link,
    Mechanism,
    empty_arrays,
)
from bulletbridge.mechanism.records import EFFORT, FREE, PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.numerics.records import Array

FIXED = -1
UNBOUNDED = 1e9
"""Effort [N m or N] from which on a file means that there is no bound; URDF wants a number."""
KINDS = {REVOLUTE: "revolute", PRISMATIC: "prismatic", SPHERICAL: "spherical", FREE: "free"}
FIXED_KIND = "fixed"
POSITIONS = {REVOLUTE: 1, PRISMATIC: 1, SPHERICAL: 4, FREE: 7}
RATES = {REVOLUTE: 1, PRISMATIC: 1, SPHERICAL: 3, FREE: 6}
UNIT_AXIS_RTOL = {REVOLUTE: 1e-3, PRISMATIC: 1e-5}
"""Distance from 1 that the length of an axis may have: "0.577 0.577 0.577" is meant as a unit axis.

Bullet turns about the unit axis but slides along the one given, so sliding is less forgiving.
"""


class RawLink(NamedTuple):
    """One link as Bullet has it; I is its inertial frame: centre of mass and principal axes."""

    name: str
    mass: float
    moments: Array  # (3,) principal [kg m²]
    com: Array  # (3,) origin of I in the link
    R: Array  # (3, 3) axes of I in the link


class RawJoint(NamedTuple):
    """The joint that carries a link."""

    name: str
    kind: int  # as in layout, or FIXED
    parent: int  # index of the parent link in RawBody.links
    axis: Array  # (3,) in the child's I
    pivot: Array  # (3,) from the parent's centre of mass, in the parent's I
    R: Array  # (3, 3) child's I in the parent's I at zero
    lower: float
    upper: float
    damping: float
    friction: float
    effort: float  # zero where the file gives none


class RawBody(NamedTuple):
    """One body: the base link first, then each joint with the link it carries."""

    name: str
    floating: bool
    links: list[RawLink]
    joints: list[RawJoint]  # joints[i] carries links[i + 1]
    R: Array  # (3, 3) pose of the base link's I in the world
    p: Array  # (3,)


class Placed(NamedTuple):
    """A frame on a body record."""

    body: int
    R: Array
    p: Array

    def frame(self, R: Array, p: Array) -> "Placed":
        """A frame given in this one."""
        return Placed(self.body, self.R @ R, self.p + self.R @ p)


@dataclass
class Node:
    """A body record under construction."""

    kind: int
    parent: int
    q: int
    v: int
    R: Array
    p: Array
    mass: float
    com: Array
    J: Array

    def carry(self, mass: float, com: Array, J: Array) -> None:
        """Add a rigidly attached mass with inertia J about its own centre ``com``."""
        if mass == 0.0 or self.mass == 0.0:
            # one of the two has no mass: no arithmetic on the centre of the other
            self.com = com if mass > 0.0 else self.com
            self.mass, self.J = self.mass + mass, self.J + J
            return
        total, apart = self.mass + mass, com - self.com
        reduced = self.mass * mass / total
        self.J = self.J + J + reduced * inertia_at(apart)
        self.com = self.com + mass / total * apart
        self.mass = total


class Forest:
    """Grows a mechanism robot by robot.

    Args:
        joint_damping: Whether URDF joint damping acts.
        joint_friction: Whether URDF joint friction acts.
        link_damping: Bullet's damping of links [1/s].
    """

    def __init__(self, joint_damping: bool, joint_friction: bool, link_damping: float) -> None:
        self.joint_damping, self.joint_friction = joint_damping, joint_friction
        self.link_damping = link_damping
        self.nodes = [
            Node(FREE, -1, 0, 0, np.eye(3), np.zeros(3), 0.0, np.zeros(3), np.zeros((3, 3)))
        ]
        self.links = {WORLD: Link(WORLD, 0, np.eye(3), np.zeros(3))}
        self.joints: dict[str, Joint] = {}
        self.damping: dict[int, float] = {}
        self.efforts: list[tuple[int, RawLink, Placed]] = []
        self.carried: list[CarriedLink] = []
        self.nq = self.nv = 0

    def add(self, robot: RawBody, prefix: str) -> None:
        """Add a robot; its names start with ``prefix``."""
        base, first, carrier = robot.links[0], len(self.carried), ("", FIXED_KIND, -1)
        if robot.floating:
            node = self._node(f"{prefix}base", FREE, Placed(0, np.eye(3), np.zeros(3)))
            carrier = f"{prefix}base", KINDS[FREE], -1
            frames = [Placed(node, np.eye(3), -base.com)]
        else:
            R = robot.R @ base.R.T
            frames = [Placed(0, R, robot.p - R @ base.com)]
        self._place(robot, base, frames[0], prefix, carrier)
        for joint, link in zip(robot.joints, robot.links[1:], strict=True):
            if joint.parent >= len(frames):
                raise ModelError(
                    f"body '{robot.name}': link '{link.name}' comes before its parent"
                    f" '{robot.links[joint.parent].name}'; load it without"
                    " URDF_MAINTAIN_LINK_ORDER, or list parents first in the file"
                )
            origin = joint_origin(robot.links[joint.parent], joint, link)
            frame = frames[joint.parent].frame(*origin)
            if joint.kind != FIXED:
                frame = self._move(robot, joint, link, frame, prefix)
            frames.append(frame)
            kind = KINDS.get(joint.kind, FIXED_KIND)
            self._place(
                robot, link, frame, prefix, (prefix + joint.name, kind, first + joint.parent)
            )

    def mechanism(self, gravity: Array) -> Mechanism:
        """The finished mechanism."""
        bodies, axes = empty_arrays(len(self.nodes), self.nv)
        for i, node in enumerate(self.nodes[1:], start=1):
            body, count = bodies[i], RATES[node.kind]
            body["parent"], body["joint"], body["q"], body["v"] = (
                node.parent, node.kind, node.q, node.v
            )  # fmt: skip
            body["R"], body["p"] = node.R, node.p
            body["mass"], body["com"], body["J"] = node.mass, node.com, node.J
            body["axis"] = node.v + count - 1
            for k in range(node.v, node.v + count):
                axes[k]["body"] = i
                axes[k]["below"] = k - 1 if k > node.v else bodies[node.parent]["axis"]
                axes[k]["q"] = node.q if count == 1 else -1
                axes[k]["damping"] = self.damping.get(i, 0.0)
        efforts = np.zeros(len(self.efforts), EFFORT)
        for effort, (body, link, frame) in zip(efforts, self.efforts, strict=True):
            effort["body"], effort["mass"] = body, link.mass
            effort["com"], effort["J"] = own_inertia(link, frame)
            effort["linear"] = effort["angular"] = self.link_damping
        carried = tuple(self.carried)
        known = bodies, axes, self.links, self.joints, gravity, efforts
        return Mechanism(*known, carried=carried)

    def _move(
        self, robot: RawBody, joint: RawJoint, link: RawLink, frame: Placed, prefix: str
    ) -> Placed:
        """Put a movable joint where the link's frame is at zero; the link's frame on its body."""
        if joint.kind == SPHERICAL:
            Z = np.eye(3)
        else:
            check_axis(robot, joint)
            Z = frame_with_z(link.R @ joint.axis)
        node = self._node(
            prefix + joint.name,
            joint.kind,
            frame.frame(Z, np.zeros(3)),
            *((-np.inf, np.inf) if joint.kind == SPHERICAL else (joint.lower, joint.upper)),
        )
        if not math.isfinite(joint.damping + joint.friction):
            raise ModelError(
                f"joint '{prefix + joint.name}' has damping {joint.damping} and friction"
                f" {joint.friction}; correct <dynamics> in its file, both finite"
            )
        if self.joint_damping:
            self.damping[node] = joint.damping
        name = prefix + joint.name
        if 0.0 < joint.effort < UNBOUNDED and joint.kind in (REVOLUTE, PRISMATIC):
            self.joints[name] = replace(self.joints[name], effort=joint.effort)
        if self.joint_friction:
            self.joints[name] = replace(self.joints[name], friction=joint.friction)
        return Placed(node, Z.T, np.zeros(3))

    def _node(
        self, name: str, kind: int, at: Placed, lower: float = -np.inf, upper: float = np.inf
    ) -> int:
        """Add a node without mass on a joint, whose coordinates are the next ones; its number."""
        if name in self.joints:
            raise ModelError(f"two joints are called '{name}'; rename one of them in the URDF")
        q = slice(self.nq, self.nq + POSITIONS[kind])
        v = slice(self.nv, self.nv + RATES[kind])
        self.nq, self.nv = q.stop, v.stop
        self.joints[name] = Joint(name, KINDS[kind], q, v, lower, upper)
        self.nodes.append(
            Node(kind, at.body, q.start, v.start, at.R, at.p, 0.0, np.zeros(3), np.zeros((3, 3)))
        )
        return len(self.nodes) - 1

    def _place(
        self,
        robot: RawBody,
        link: RawLink,
        frame: Placed,
        prefix: str,
        carrier: tuple[str, str, int],
    ) -> None:
        """Name the link, give its mass to the body that it is on, and note what carries it."""
        name = prefix + link.name
        if name == WORLD and not is_world(name, frame):
            name = f"{robot.name}/{WORLD}"  # a base link of that name that is elsewhere
        if name in self.links and not is_world(name, frame):
            raise ModelError(
                f"body '{robot.name}': the name '{name}' is taken by another link; rename one of"
                " them in the URDF"
            )
        self.links[name] = Link(name, frame.body, frame.R, frame.p)
        heavy = link.mass > 0.0 or bool(np.any(link.moments))
        damped = heavy and frame.body > 0 and self.link_damping > 0.0
        self.carried.append(
            CarriedLink(
                *carrier[:2],
                name,
                carrier[2],
                link.mass,
                *own_inertia(link, Placed(frame.body, np.eye(3), np.zeros(3))),
                len(self.efforts) if damped else -1,
            )
        )
        if frame.body == 0 or not heavy:
            return
        self.nodes[frame.body].carry(link.mass, *own_inertia(link, frame))
        if damped:
            self.efforts.append((frame.body, link, frame))


def joint_origin(parent: RawLink, joint: RawJoint, child: RawLink) -> tuple[Array, Array]:
    """Pose of the child's link frame in the parent's at zero: the URDF's joint origin."""
    return parent.R @ joint.R @ child.R.T, parent.com + parent.R @ joint.pivot


def own_inertia(link: RawLink, frame: Placed) -> tuple[Array, Array]:
    """Centre of mass (3,) and inertia (3, 3) about it, in the body that carries ``frame``."""
    R = frame.R @ link.R
    return frame.p + frame.R @ link.com, (R * link.moments) @ R.T


def check_axis(robot: RawBody, joint: RawJoint) -> None:
    """Raise ModelError unless the axis has unit length."""
    length = float(np.linalg.norm(joint.axis))
    if abs(length - 1.0) > UNIT_AXIS_RTOL[joint.kind]:
        raise ModelError(
            f"body '{robot.name}': the axis of joint '{joint.name}' has length {length:.6g}; Bullet"
            " does not normalise it and contradicts itself; give a unit vector in the URDF,"
            " with six digits or more"
        )


def is_world(name: str, frame: Placed) -> bool:
    """Whether a link called world is where the world is."""
    return (
        name == WORLD
        and frame.body == 0
        and bool(np.allclose(frame.R, np.eye(3), rtol=0.0, atol=1e-12))
        and bool(np.allclose(frame.p, 0.0, rtol=0.0, atol=1e-12))
    )


def grow(
    robots: Sequence[RawBody],
    gravity: Array,
    *,
    joint_damping: bool,
    joint_friction: bool,
    link_damping: float,
) -> Mechanism:
    """The mechanism of one robot, or of several with names ``robot/link``.

    Raises:
        ModelError: A joint axis, a name or an order of links that cannot be modelled.
    """
    forest = Forest(joint_damping, joint_friction, link_damping)
    for robot in robots:
        forest.add(robot, f"{robot.name}/" if len(robots) > 1 else "")
    return forest.mechanism(gravity)
