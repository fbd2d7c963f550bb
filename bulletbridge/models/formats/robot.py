"""A robot as every format has it: links, a tree of joints, loops; what lies between formats.

Readers make a ``Scene``, writers take one. A link's frame is the frame of the joint that carries
it, after the joint's motion, as in URDF.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from bulletbridge.constraints.force_elements import (
    ForceElement,
    LinePoint,
    Round,
    Spring,
    Tendon,
    Wrench,
)
from bulletbridge.constraints.joints import Coupling, Frame, JointModel, LoopJoint, Triple
from bulletbridge.mechanism.frames import frame_with_z, inertia_at, matrix_rpy, rpy_matrix
from bulletbridge.mechanism.model import WORLD
from bulletbridge.models.model_spec import EARTH, FileConstraint, JointForce
from bulletbridge.numerics.records import Array

UNLIMITED = (-np.inf, np.inf)
GROUND = "ground"
"""What a link is called that stands in the world without a name of its own."""
PARALLEL = 1e-12
"""Sine of the angle below which two axes are one."""
Joining = TypeVar("Joining", bound=FileConstraint | ForceElement)
"""What joins links or joints, of one kind."""


@dataclass(frozen=True)
class Pose:
    """A frame in another one: rotation (3, 3) and position (3,) [m]."""

    R: Array = field(default_factory=lambda: np.eye(3))
    p: Array = field(default_factory=lambda: np.zeros(3))

    def __matmul__(self, other: "Pose") -> "Pose":
        """The frame ``other``, given in this one, in the frame that this one is given in."""
        return Pose(self.R @ other.R, self.p + self.R @ other.p)

    @property
    def inverse(self) -> "Pose":
        """The other one in this frame."""
        return Pose(self.R.T, -self.R.T @ self.p)

    @property
    def xyz(self) -> Triple:
        """Position [m]."""
        x, y, z = (float(value) + 0.0 for value in self.p)
        return x, y, z

    @property
    def rpy(self) -> Triple:
        """URDF's roll, pitch, yaw [rad]."""
        roll, pitch, yaw = (value + 0.0 for value in matrix_rpy(self.R))
        return roll, pitch, yaw

    def on(self, link: str) -> Frame:
        """This place as a frame on a link."""
        return Frame(link, self.xyz, self.rpy)


def pose_of(xyz: Triple | Array, rpy: Triple | Array = (0.0, 0.0, 0.0)) -> Pose:
    """The frame at xyz [m], turned by roll, pitch, yaw [rad]."""
    turned = np.asarray(rpy, float)
    return Pose(rpy_matrix(turned) if turned.any() else np.eye(3), np.array(xyz, float))


def end_b(loop: LoopJoint) -> Frame:
    """A loop's frame b, turned so that the axis in it is what it is in frame a.

    That of a universal joint, which has an axis in each, and of one without axes as it is.
    """
    if loop.model is JointModel.UNIVERSAL or loop.axis_b is None:
        return loop.b
    z, other = (frame_with_z(axis) for axis in (loop.axis, loop.axis_b))
    if np.linalg.norm(z[:, 2] - other[:, 2]) <= PARALLEL:
        return loop.b
    R = other @ z.T
    return Frame(loop.b.link, loop.b.xyz, matrix_rpy(rpy_matrix(loop.b.rpy) @ R))


@dataclass(frozen=True)
class Inertial:
    """Mass [kg], centre (3,) [m] and inertia about it (3, 3) [kg m²], in link axes."""

    mass: float
    com: Array
    J: Array

    def placed(self, at: Pose) -> "Inertial":
        """The same where its link is at a place in another one, in the axes of that."""
        return Inertial(self.mass, at.p + at.R @ self.com, at.R @ self.J @ at.R.T)


@dataclass(frozen=True)
class Shape:
    """Something that is seen, or that collides.

    Attributes:
        kind: ``box`` with three lengths, ``sphere`` with a radius, ``cylinder`` and ``capsule``
            with a radius and a length along z, ``mesh`` with three scales, ``plane``, which is all
            that is below z = 0, without a size.
        size: Those numbers [m].
        place: In the link's frame.
        mesh: Absolute path of its file.
        rgba: Colour, if it has one.
    """

    kind: str
    size: tuple[float, ...]
    place: Pose
    mesh: str = ""
    rgba: tuple[float, ...] = ()


@dataclass
class Link:
    """A link; without an inertial it has no mass.

    Attributes:
        name: Unique among links.
        inertial: Mass and inertia.
        visuals, collisions: What is seen of it, and what it touches with.
        friction: Coefficient of its surface; that of a contact is the product of both. None for
            Bullet's own.
    """

    name: str
    inertial: Inertial | None = None
    visuals: list[Shape] = field(default_factory=lambda: [])
    collisions: list[Shape] = field(default_factory=lambda: [])
    friction: float | None = None


@dataclass
class Joint:
    """A joint of the tree.

    Attributes:
        name: Unique among joints.
        kind: ``fixed``, ``revolute``, ``prismatic`` or ``spherical``.
        parent, child: Links.
        place: Joint frame, at zero the child's frame, in the parent's.
        axis: (3,) unit vector in the joint frame.
        limits: Lowest and highest position [rad or m].
        effort, velocity: Largest that a drive has [N m or N, rad/s or m/s].
        damping: [N m s/rad or N s/m]
        friction: Largest Coulomb friction [N m or N].
        stiffness, rest: Of a spring [N m/rad or N/m, rad or m].
        armature: Reflected inertia of a rotor [kg m² or kg].
    """

    name: str
    kind: str
    parent: str
    child: str
    place: Pose = field(default_factory=Pose)
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    limits: tuple[float, float] = UNLIMITED
    effort: float = np.inf
    velocity: float = np.inf
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    armature: float = 0.0

    def add_spring(self, stiffness: float, rest: float, damping: float) -> None:
        """Put a spring and damper beside those that there are."""
        total = self.stiffness + stiffness
        if total:
            self.rest = (self.stiffness * self.rest + stiffness * rest) / total
        self.stiffness, self.damping = total, self.damping + damping

    @property
    def limited(self) -> bool:
        """Whether a limit is finite."""
        return bool(np.isfinite(self.limits).any())


@dataclass
class Robot:
    """A tree of links: parents before children."""

    name: str  # what the robot is called
    root: str  # its base link
    fixed: bool  # whether that stands still
    links: dict[str, Link]
    joints: dict[str, Joint]
    place: Pose = field(default_factory=Pose)  # where it stands, or starts, in the world

    def carrying(self) -> dict[str, Joint]:
        """The joint that carries each link but the root."""
        return {joint.child: joint for joint in self.joints.values()}

    def carrier(self, link: str) -> str:
        """The uppermost of the links that one is fixed to."""
        carrying = self.carrying()
        while link in carrying and carrying[link].kind == "fixed":
            link = carrying[link].parent
        return link

    def rename(self, name: Callable[[str], str]) -> None:
        """Call its links and joints otherwise."""
        self.root = name(self.root)
        for link in self.links.values():
            link.name = name(link.name)
        for joint in self.joints.values():
            joint.name, joint.parent, joint.child = map(
                name, (joint.name, joint.parent, joint.child)
            )
        self.links = {link.name: link for link in self.links.values()}
        self.joints = {joint.name: joint for joint in self.joints.values()}

    def base_com(self) -> Array:
        """Centre of mass (3,) of the base link, in its frame."""
        inertial = self.links[self.root].inertial
        return np.zeros(3) if inertial is None else inertial.com


@dataclass
class Scene:
    """Robots, what joins them, and how they start.

    Links and joints are called ``robot/link`` and ``robot/joint`` when there are several robots;
    ``world`` is a link, ``base`` a floating robot's joint, as in loops files.

    Attributes:
        name: Of the model.
        forces: On joints, besides those of ``Joint``.
        wrenches: From outside, on links.
        base_damping: Against turns of floating bases [N m s/rad], by their joints.
        notes: What was lost, changed or assumed.
        scenery: What stands in the world and is no part of a robot: a link each, in its place; each
            plane by itself.
        allow_structure, drawn_apart: As of ``ModelSpec``.
    """

    name: str
    robots: list[Robot] = field(default_factory=lambda: [])
    loops: list[FileConstraint] = field(default_factory=lambda: [])
    elements: list[ForceElement] = field(default_factory=lambda: [])
    forces: list[JointForce] = field(default_factory=lambda: [])
    wrenches: list[Wrench] = field(default_factory=lambda: [])
    base_damping: dict[str, float] = field(default_factory=lambda: {})
    actuated: list[str] = field(default_factory=lambda: [])
    gravity: Triple = EARTH
    start_q: dict[str, float | list[float]] = field(default_factory=lambda: {})
    start_v: dict[str, float | list[float]] = field(default_factory=lambda: {})
    start_guess: dict[str, float | list[float]] = field(default_factory=lambda: {})
    notes: list[str] = field(default_factory=lambda: [])
    scenery: list[Robot] = field(default_factory=lambda: [])
    allow_structure: bool = False
    drawn_apart: bool = False

    def prefix(self, robot: Robot) -> str:
        """What precedes names of a robot's links and joints."""
        return f"{robot.name}/" if len(self.robots) > 1 else ""

    def stand(self, name: str, link: Link, place: Pose) -> None:
        """Put a link without joints into the scenery."""
        for piece, at in pieces(link, place):
            known = (each.name for each in self.scenery)
            own = free_name(name.replace("/", "_"), known)
            self.scenery.append(Robot(own, piece.name, True, {piece.name: piece}, {}, at))

    def lift(self, at: Frame, mass: float) -> None:
        """Take the weight of a mass [kg] at a point of a link, by a force along world axes."""
        if not (mass and any(self.gravity)):
            return
        name = free_name(f"{at.link}_lift", (each.name for each in self.wrenches))
        self.wrenches.append(lifting(name, at, mass, self.gravity))

    def lose_base_damping(self) -> None:
        """Say of which floating bases nothing damps the turns where this is written."""
        for name, damping in self.base_damping.items():
            if damping:
                self.notes.append(f"damping of the turns of '{name}' is left out")

    def note_scenery(self) -> None:
        """Say what stands in the world, if anything does."""
        if self.scenery:
            names = listed(f"'{each.name}'" for each in self.scenery)
            self.notes.append(
                "what stands in the world is scenery, which robots meet with contacts=True: "
                + names
            )

    def joints(self) -> dict[str, Joint]:
        """All joints by full name."""
        return {
            self.prefix(robot) + name: joint
            for robot in self.robots
            for name, joint in robot.joints.items()
        }


def with_ends(
    joining: Joining, joint: Callable[[str], str], end: Callable[[Frame], Frame]
) -> Joining:
    """The same between joints of other names, or frames that are made of its own."""
    if isinstance(joining, Coupling | Tendon):
        factors = {joint(name): factor for name, factor in joining.coefficients.items()}
        joining = replace(joining, coefficients=factors)
        if isinstance(joining, Coupling):
            higher = {joint(name): powers for name, powers in joining.higher.items()}
            joining = replace(joining, higher=higher)
        return joining

    def through(point: LinePoint) -> LinePoint:
        if isinstance(point, Round):
            return replace(point, frame=end(point.frame))
        return end(point) if isinstance(point, Frame) else point

    joining = replace(joining, a=end(joining.a), b=end(joining.b))
    if isinstance(joining, Spring):
        joining = replace(joining, via=tuple(map(through, joining.via)))
    return joining


def joined(parts: Iterable[Inertial]) -> Inertial:
    """Masses that are one rigid body, all in the axes of one link; negative ones are taken away."""
    bodies = list(parts)
    mass = sum(body.mass for body in bodies)
    com = sum((body.mass * body.com for body in bodies), np.zeros(3)) / mass
    about = (body.J + body.mass * inertia_at(body.com - com) for body in bodies)
    return Inertial(mass, com, sum(about, np.zeros((3, 3))))


def lifting(name: str, at: Frame, mass: float, gravity: Triple) -> Wrench:
    """What takes the weight of a mass [kg] at a point of a link, by a force along world axes."""
    x, y, z = (-mass * g for g in gravity)
    return Wrench(at, (x, y, z), axes=Frame(WORLD), name=name)


def share_of_weight(wrench: Wrench, mass: float, com: Array, gravity: Triple) -> float | None:
    """The share of a body's weight that a wrench takes; None if it is something else.

    Args:
        wrench: On the body, with its frame.
        mass: Of the body [kg].
        com: Its centre of mass (3,), in the frame that ``wrench.frame`` is given in.
        gravity: [m/s²]
    """
    weight = mass * np.array(gravity)
    if not (wrench.is_dead_load and weight.any()):
        return None
    force = np.array(wrench.force, float)
    share = -float(force @ weight / (weight @ weight))
    there = np.allclose(com, wrench.frame.xyz, rtol=0.0, atol=1e-12)
    along = np.allclose(force, -share * weight, atol=1e-12 * np.abs(force).max())
    return share if there and along else None


def pieces(link: Link, place: Pose) -> list[tuple[Link, Pose]]:
    """A link that stands at a place, each of its planes apart and at its own place.

    Bullet has a plane without end only where it is all of a body.
    """
    planes = [shape for shape in link.collisions if shape.kind == "plane"]
    if not planes:
        return [(link, place)]
    rest = replace(link, collisions=[x for x in link.collisions if x.kind != "plane"])
    first, *others = (
        (replace(link, visuals=[], collisions=[Shape("plane", (), Pose())]), place @ plane.place)
        for plane in planes
    )
    if rest.collisions:
        return [(rest, place), first, *others]
    back = first[1].inverse @ place
    first[0].visuals = [replace(shape, place=back @ shape.place) for shape in link.visuals]
    return [first, *others]


def free_name(wanted: str, taken: Iterable[str] | Mapping[str, object]) -> str:
    """A name that nothing has yet: the wanted one, or with a number."""
    name, count = wanted, 1
    known = set(taken)
    while name in known:
        count += 1
        name = f"{wanted}_{count}"
    return name


def told(found: Mapping[str, Collection[str]]) -> list[str]:
    """Notes with the names that they are about in the place of {}, but for those about none."""
    return [text.replace("{}", listed(names)) for text, names in found.items() if names]


def left_out(lost: Mapping[str, Iterable[str]]) -> list[str]:
    """Notes of what of which links is left out."""
    return told({f"{what}: left out ({{}})": dict.fromkeys(x) for what, x in lost.items()})


def listed(names: Iterable[str], most: int = 6) -> str:
    """Names for a note, the first few of them."""
    known = list(names)
    rest = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + rest
