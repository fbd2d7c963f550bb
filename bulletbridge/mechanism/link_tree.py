"""Links as they hang on one another, fixed joints too, and what goes through each joint.

A body of a mechanism is all links that are rigidly joined; what a fixed joint bears takes the links
one by one.
"""

import numpy as np

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.kinematics import axis_twist, pose_twist
from bulletbridge.mechanism.model import WORLD, Mechanism
from bulletbridge.mechanism.records import Axis, Body, Pose
from bulletbridge.numerics.records import (
    Array,
    Int,
    Ints,
    Mask,
    Mat3,
    Real,
    Records,
    Vec3,
    Vector,
    dtype_of,
)
from bulletbridge.numerics.spatial import (
    ZERO,
    Pair,
    add,
    add_pair,
    apply,
    cross,
    mat,
    mul,
    put,
    put_mat,
    put_pair,
    scale,
    scale_pair,
    sub,
    transpose,
    vec,
    velocity_at,
)


class LinkData:
    """Constant data of one link; what carries it comes first."""

    parent: Int  # link that carries its joint, -1 for the world
    body: Int
    R: Mat3  # its frame in the body
    p: Vec3
    mass: Real  # its own
    com: Vec3  # in its frame
    J: Mat3  # about com, in its axes


class Borne:
    """What the joint that carries a link does to it, world axes."""

    R: Mat3  # axes of the link
    origin: Vec3  # of the link
    force: Vec3
    moment: Vec3  # about the origin


class Load:
    """What acts on a link besides joints, world axes."""

    link: Int
    point: Vec3
    force: Vec3
    moment: Vec3  # about the point


LINK_DATA, BORNE, LOAD = (dtype_of(kind) for kind in (LinkData, Borne, Load))


@helper
def acceleration_of(extra: Array, pose: Pose) -> Pair:
    """A body's spatial acceleration at its tree's origin, less gravity."""
    return add(vec(pose.aw), vec(extra)), add(vec(pose.av), vec(extra[3:]))


@outlined
def put_inertial(
    links: Records[LinkData],
    bodies: Records[Body],
    poses: Records[Pose],
    axes: Records[Axis],
    vdot: Array,
    extra: Array,
    found: Records[Borne],
) -> None:
    """What accelerates each link and holds its weight: the first half of recursive Newton-Euler.

    Takes poses with what ``bias`` leaves there; extra (nb, 6) is scratch.
    """
    put_pair(extra[0], (ZERO, ZERO))
    for i in range(1, len(bodies)):
        body, before = bodies[i], extra[bodies[i].parent]
        total = vec(before), vec(before[3:])
        for k in range(body.v, body.axis + 1):
            total = add_pair(total, scale_pair(vdot[k], axis_twist(axes[k])))
        put_pair(extra[i], total)
    for k in range(len(links)):
        link, own, pose = links[k], found[k], poses[links[k].body]
        turn, twist = mat(pose.R), pose_twist(pose)
        R = mul(turn, mat(link.R))
        arm = add(vec(pose.p), apply(turn, vec(link.p)))
        lever = apply(R, vec(link.com))
        centre = add(arm, lever)
        acceleration = acceleration_of(extra[link.body], pose)
        w = twist[0]
        bent = cross(w, velocity_at(twist, centre))
        force = scale(link.mass, add(velocity_at(acceleration, centre), bent))
        J = mul(mul(R, mat(link.J)), transpose(R))
        moment = add(apply(J, acceleration[0]), cross(w, apply(J, w)))
        put_mat(own.R, R)
        put(own.origin, add(vec(pose.origin), arm))
        put(own.force, force)
        put(own.moment, add(moment, cross(lever, force)))


@helper
def act(found: Records[Borne], link: int, point: Vector, load: Pair) -> None:
    """Have a moment and force at a point act on a link besides joints; nothing on the world, -1."""
    if link >= 0:
        own = found[link]
        lever, force = sub(point, vec(own.origin)), load[1]
        put(own.force, sub(vec(own.force), force))
        put(own.moment, sub(vec(own.moment), add(load[0], cross(lever, force))))


@helper
def act_between(found: Records[Borne], a: int, b: int, point: Vector, load: Pair) -> None:
    """Have it act on link b, and the opposite on link a."""
    act(found, b, point, load)
    act(found, a, point, scale_pair(-1.0, load))


@helper
def gather(links: Records[LinkData], found: Records[Borne]) -> None:
    """Add up from the tips what joints bear: the other half."""
    for k in range(len(links) - 1, -1, -1):
        if links[k].parent >= 0:
            own, below = found[k], found[links[k].parent]
            force = vec(own.force)
            lever = sub(vec(own.origin), vec(below.origin))
            put(below.force, add(vec(below.force), force))
            put(below.moment, add(vec(below.moment), add(vec(own.moment), cross(lever, force))))


NO_LOADS = np.zeros(0, LOAD)


class LinkTree:
    """The links of a mechanism, what carries each, and their own masses.

    Args:
        mechanism: Rigid bodies.

    Attributes:
        links: As of the mechanism.
        records: (n,) of ``LINK_DATA``.
        carries: (n, n) whether a joint, in rows, carries a link, in columns.
        damped, dampings: Links that Bullet damps, and the numbers of that among the efforts.

    Raises:
        UnsupportedError: It has beams, which bend between their ends, or no links.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        links = self.links = mechanism.carried
        if len(mechanism.beams) or not links:
            raise UnsupportedError(
                "what joints bear is told of rigid links; take the chain of segments in the place"
                " of a modal beam, by leaving 'beams' out"
            )
        n, self.mechanism = len(links), mechanism
        self.carries: Mask = np.eye(n, dtype=bool)
        for k in range(n):
            above = links[k].parent
            while above >= 0:
                self.carries[above, k] = True
                above = links[above].parent
        records = self.records = np.zeros(n, LINK_DATA)
        self._numbers: dict[str, int] = {}
        self._first: dict[int, int] = {}
        for k, (record, link) in enumerate(zip(records, links, strict=True)):
            frame = mechanism.links[link.link]
            record["parent"], record["body"] = link.parent, frame.body
            record["R"], record["p"] = frame.R, frame.p
            record["mass"], record["com"], record["J"] = link.mass, link.com, link.J
            self._numbers.setdefault(link.link, k)
            self._first.setdefault(frame.body, k)
        self.body: Ints = records["body"]
        total = np.bincount(self.body, records["mass"], len(mechanism.bodies))[self.body]
        now = mechanism.bodies["mass"][self.body]
        # a body whose mass was changed since has links that grew alike
        grown = np.where((self.body > 0) & (total > 0.0), now / np.where(total > 0.0, total, 1), 1)
        records["mass"] *= grown
        records["J"] *= grown[:, None, None]
        self.damped: Ints = np.array([k for k, x in enumerate(links) if x.effort >= 0], int)
        self.dampings: Ints = np.array([x.effort for x in links if x.effort >= 0], int)

    def number(self, link: str) -> int:
        """Number of a link; of one that was folded into another, of that; -1 for the world."""
        found = self._numbers.get(link)
        if found is not None or link == WORLD:
            return -1 if found is None else found
        return self.first_on(self.mechanism.link(link).body)

    def first_on(self, body: int) -> int:
        """Number of the first link on a body; -1 for the world, and what stands on it."""
        return self._first.get(body, -1) if body > 0 else -1


class Loads:
    """What acts on links besides the joints that carry them, as it comes."""

    def __init__(self) -> None:
        self._records: list[np.ndarray] = []

    def add(self, links: Ints, points: Array, forces: Array, moments: Array) -> None:
        """Forces [N] at points [m], and moments [N m], on links (m,); none on the world, -1."""
        records = np.zeros(len(links), LOAD)
        records["link"], records["point"] = links, points
        records["force"], records["moment"] = forces, moments
        self._records.append(records[records["link"] >= 0])

    def add_between(self, a: int, b: int, point: Array, force: Array, moment: Array) -> None:
        """One on link b, and the opposite on link a."""
        signs = np.array([[-1.0], [1.0]])
        self.add(np.array([a, b]), point, signs * force, signs * moment)

    @property
    def all(self) -> np.ndarray:
        """Records (m,) of ``LOAD``."""
        return np.concatenate(self._records) if self._records else NO_LOADS
