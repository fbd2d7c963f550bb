"""A mechanism: frozen forest of links and joints, one or several robots."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np

from bulletbridge.errors import UnknownNameError, refuse_name
from bulletbridge.mechanism.records import AXIS, BEAMS, BODY, EFFORT, STATION
from bulletbridge.numerics.records import Array

WORLD = "world"


@dataclass(frozen=True)
class Link:
    """A named frame rigidly attached to a body: the URDF link frame."""

    name: str
    body: int  # index into Mechanism.bodies; 0 is the world
    R: Array  # (3, 3) link frame in the body frame
    p: Array  # (3,) [m]


SINGLE = ("revolute", "prismatic")
"""Kinds of joints with one coordinate, whose rate is its derivative."""


@dataclass(frozen=True)
class Joint:
    """A named tree joint and where its coordinates are in q and v.

    Attributes:
        name: As in the URDF; ``body/joint`` when there are several robots.
        kind: ``revolute``, ``prismatic``, ``spherical``, ``free`` or ``beam``.
        q: Its part of a configuration.
        v: Its part of a velocity.
        lower: Limit [rad or m].
        upper: Limit [rad or m].
        friction: Largest Coulomb friction [N m or N].
        effort: Largest that its drive exerts by the robot's file [N m or N]; infinite if it does
            not say.
    """

    name: str
    kind: str
    q: slice
    v: slice
    lower: float = -np.inf
    upper: float = np.inf
    friction: float = 0.0
    effort: float = np.inf

    @property
    def is_single(self) -> bool:
        """Whether it is a revolute or prismatic joint: one coordinate, one rate."""
        return self.kind in SINGLE


@dataclass(frozen=True)
class CarriedLink:
    """A link, the joint that carries it, and its own mass, of which bodies know the sum alone."""

    joint: str  # name of the joint, that of a floating base too; empty for a base that stands still
    kind: str  # as of ``Joint``, or ``fixed``
    link: str  # name of the link
    parent: int  # number of the link that carries the joint, -1 for the world
    mass: float  # [kg]
    com: Array  # (3,) its centre in the link's frame [m]
    J: Array  # (3, 3) inertia about that, in the link's axes [kg m²]
    effort: int = -1  # number of Bullet's damping of the link among the efforts, -1 without any


@dataclass(frozen=True)
class Mechanism:
    """Arrays of a forest of bodies, and names for its links and joints.

    Attributes:
        bodies: (nb,) records of ``records.Body``; body 0 is the world.
        axes: (nv,) records of ``records.Axis``; joint forces stand here.
        efforts: (nl,) records of ``records.Effort``; empty when link damping is off.
        beams: Records of ``records.Beam``, one for each joint of that kind.
        stations: Records of ``records.Station``: those of each beam, its tip the last.
        links: Links by name; ``body/link`` when there are several robots.
        joints: Joints by name; a floating base is the joint ``base`` (``body/base``).
        gravity: (3,) [m/s²].
        carried: Links that have a mass or a joint of their own, what carries each before it.
        actuated: Joints with a drive, as the robot's file says; empty where it does not.
    """

    bodies: np.ndarray
    axes: np.ndarray
    links: dict[str, Link]
    joints: dict[str, Joint]
    gravity: Array
    efforts: np.ndarray = field(default_factory=lambda: np.zeros(0, EFFORT))
    beams: np.ndarray = field(default_factory=lambda: np.zeros(0, BEAMS))
    stations: np.ndarray = field(default_factory=lambda: np.zeros(0, STATION))
    carried: tuple[CarriedLink, ...] = ()
    actuated: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """How large it is, and its joints."""
        return (
            f"<Mechanism: {len(self.bodies) - 1} bodies, {self.nv} rates,"
            f" joints {', '.join(self.joints) or 'none'}>"
        )

    @cached_property
    def nq(self) -> int:
        """Number of position coordinates."""
        return max((joint.q.stop for joint in self.joints.values()), default=0)

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return len(self.axes)

    @property
    def first_links(self) -> dict[int, str]:
        """Name of the first link of each body, by number; the world is 0."""
        return {link.body: link.name for link in reversed(self.links.values())} | {0: WORLD}

    def link(self, name: str) -> Link:
        """The link called ``name``.

        Raises:
            ModelError: There is none; the message lists the nearest names.
        """
        if name not in self.links and name in self.joints:
            moved = {each.joint: each.link for each in self.carried}
            _refuse_other("link", name, "joint", moved)
        return _find("link", name, self.links)

    def joint(self, name: str) -> Joint:
        """The joint called ``name``.

        Raises:
            ModelError: There is none; the message lists the nearest names.
        """
        if name not in self.joints and name in self.links:
            moving = {each.link: each.joint for each in self.carried if each.joint in self.joints}
            _refuse_other("joint", name, "link", moving)
        return _find("joint", name, self.joints)


T = TypeVar("T")


def _refuse_other(kind: str, name: str, other: str, known: Mapping[str, str]) -> None:
    """Refuse the name of a joint in the place of a link's, or of a link in that of a joint's."""
    if name in known:
        raise UnknownNameError(
            f"'{name}' is a {other}, not a {kind}: its {kind} is '{known[name]}'"
        )


def _find(kind: str, name: str, table: dict[str, T]) -> T:
    if name in table:
        return table[name]
    refuse_name(kind, name, table)


def empty_arrays(nb: int, nv: int) -> tuple[np.ndarray, np.ndarray]:
    """Zeroed bodies and axes to fill; body 0 is set up as the world."""
    bodies, axes = np.zeros(nb, BODY), np.zeros(nv, AXIS)
    bodies["R"] = np.eye(3)
    bodies[0]["parent"], bodies[0]["axis"] = -1, -1
    return bodies, axes
