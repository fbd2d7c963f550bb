"""Bodies in a PyBullet world: recognised, their states read and written, at Bullet's own cost."""

import math
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, cycle
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import pybullet

from bulletbridge.bullet.collision_filters import CollisionFilters
from bulletbridge.bullet.contact_finder import (
    ContactFinder,
    ContactFork,
    ContactPlace,
    Decisions,
    OwnBody,
    renumbered,
)
from bulletbridge.bullet.contacts import StickingReader
from bulletbridge.bullet.coordinates import Converter, matrix, quat_product, unit
from bulletbridge.bullet.meddling import Meddling, probe_of
from bulletbridge.bullet.shaped_bodies import Place, shaped_bodies
from bulletbridge.bullet.watched_calls import native_of
from bulletbridge.bullet.worlds import body_ids, text_of, time_step
from bulletbridge.errors import ModelError, WorldError
from bulletbridge.mechanism.contact_detector import Detector, surfaces_of
from bulletbridge.mechanism.model import WORLD, Link, Mechanism
from bulletbridge.numerics.records import Array, Vector, copied

Properties = tuple[object, ...]
PROPERTIES = "mass", "moments of inertia", "centre of mass", "principal axes"
"""Properties of a link that are read once and that ``changeDynamics`` may change; what it does to
joints Bullet does not tell."""
LOOKS = 256
"""Checks of the bodies, one a step, of which one asks Bullet for those properties, too. To ask for
them takes half as long as a small mechanism's step."""
SOON = 1, 2, 4, 8, 16, 32, 64, 128
"""The first ones that do, too, so that short programs are told what they did."""


def now_and_then() -> Iterator[bool]:
    """Whether to look, check after check: at every ``LOOKS``-th."""
    return cycle((*(False,) * (LOOKS - 1), True))


def properties_of(body_id: int, client: int) -> tuple[Properties, ...]:
    """``PROPERTIES`` of the base and of each link, as Bullet has them now."""
    found: list[Properties] = []
    for link in range(-1, pybullet.getNumJoints(body_id, client)):
        mass, _, moments, com, axes, *_ = pybullet.getDynamicsInfo(body_id, link, client)
        found.append((mass, moments, com, axes))
    return tuple(found)


class WorldMemory(NamedTuple):
    """What a world remembers of contacts."""

    decisions: Decisions  # which links collide, as far as that is known
    bodies: "BodiesMemory | None"  # all of the client; None where a state is to leave them alone


class BodiesMemory(NamedTuple):
    """All bodies of a client."""

    file: bytes  # of Bullet's, with them and their contacts
    numbers: list[int]  # Bullet's ids, in its order
    places: dict[int, tuple[Place, ...]]  # where they were looked at last


class Shift(NamedTuple):
    """How a base was moved: x to R x + p, in world axes."""

    R: Array  # (3, 3)
    p: Array  # (3,) [m]


UNTURNED = np.eye(3)
ROUNDED = 1e-15
"""By which Bullet's steps change a number of a quaternion that is to stay, to and fro."""
NOT_SHIFTED = Shift(UNTURNED, np.zeros(3))


@dataclass
class FixedBase:
    """Where a base that does not move by itself was when it was read, and where it is known now.

    Attributes:
        read, now: These places.
        shift: What takes it from the one to the other.
    """

    read: Place
    now: Place
    shift: Shift = NOT_SHIFTED


def is_there(now: Place, known: Place) -> bool:
    """Whether a fixed base is where it is known to be, but for what steps round."""
    (place, quat), (there, turn) = now, known
    return place == there and all(abs(x - y) <= ROUNDED for x, y in zip(quat, turn, strict=True))


def shift_between(before: Place, after: Place) -> Shift:
    """What takes a body from one place to another."""
    if before[1] == after[1]:
        way = [x - y for x, y in zip(after[0], before[0], strict=True)]
        return Shift(UNTURNED, np.array(way))
    x, y, z, w = unit(before[1])
    turn = unit(quat_product(unit(after[1]), (-x, -y, -z, w)))
    R = matrix(turn)
    return Shift(R, np.array(after[0]) - R @ np.array(before[0]))


def way_between(before: Place, after: Place) -> tuple[float, float]:
    """How far [m] a body went from one place to another, and the angle [rad] that it turned by."""
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_quat(after[1]) * Rotation.from_quat(before[1]).inv()
    return math.dist(before[0], after[0]), float(turn.magnitude())


class SingleBody(NamedTuple):
    """A body on a fixed base whose joints have one rate each: Bullet tells and takes all at once.

    Attributes:
        body: Bullet's id.
        joints: Its indices of those that move.
        stamp_id, stamp: User data by which the body is known.
    """

    body: int
    joints: list[int]
    stamp_id: int
    stamp: bytes


@dataclass(frozen=True)
class Port:
    """One body and where its coordinates are."""

    name: str
    body_id: int
    client: int
    stamp_id: int
    stamp: bytes
    converter: Converter
    base: FixedBase | None  # None if it floats
    links: tuple[str, ...]  # what the mechanism calls the base, link 0, link 1, ...
    carriers: tuple[int, ...]  # bodies of the mechanism that carry them
    properties: tuple[Properties, ...]  # of the base, link 0, link 1, ... when they were read

    def is_there(self) -> bool:
        """Whether the body of this id is the one that was read, in a client that is connected."""
        return pybullet.getUserData(self.stamp_id, self.client) == self.stamp

    def check(self) -> None:
        """Raise WorldError unless the body is the one that was read."""
        if not pybullet.isConnected(self.client):
            raise WorldError(
                f"body '{self.name}': client {self.client} is not connected any more;"
                " connect, load the bodies and read them again"
            )
        if not self.is_there():
            raise WorldError(
                f"body '{self.name}' (id {self.body_id}, client {self.client}) was removed from"
                " the world; load it and read it again. Its id may by now be another body's"
            )

    def check_properties(self) -> None:
        """Raise WorldError if ``changeDynamics`` has changed what was read once."""
        now = properties_of(self.body_id, self.client)
        if now == self.properties:
            return
        link, before, after = next(
            (k, a, b) for k, (a, b) in enumerate(zip(self.properties, now, strict=True)) if a != b
        )
        what, old, new = next(
            (n, a, b) for n, a, b in zip(PROPERTIES, before, after, strict=True) if a != b
        )
        if link == 0:
            name = text_of(pybullet.getBodyInfo(self.body_id, self.client)[0])
        else:
            name = text_of(pybullet.getJointInfo(self.body_id, link - 1, self.client)[12])
        raise WorldError(
            f"body '{self.name}': link '{name}' had {what} {old} when it was read and has {new} in"
            " Bullet now; attach or load it again, for what changeDynamics changes is not followed"
        )

    def reader(self) -> Callable[[list[float], list[float]], None]:
        """Function that appends the body's part to the numbers of q and of v."""
        body, client, converter = self.body_id, self.client, self.converter
        pose, twist = pybullet.getBasePositionAndOrientation, pybullet.getBaseVelocity
        states, several = pybullet.getJointStates, pybullet.getJointStatesMultiDof
        indices, floats, balls = converter.indices, self.base is None, converter.balls
        add_base, add_joints = converter.add_base, converter.add_joints

        def read(q: list[float], v: list[float]) -> None:
            if floats:
                add_base(q, v, pose(body, client), twist(body, client))
            if balls:
                add_joints(q, v, several(body, indices, client))
            elif indices:
                positions, rates, _, _ = zip(*states(body, indices, client), strict=True)
                q += positions
                v += rates

        return read

    def writer(self) -> Callable[[list[float], list[float]], None]:
        """Function of the numbers of q and v that puts the body's part of them into Bullet."""
        body, client, indices = self.body_id, self.client, self.converter.indices
        joints, base = self.converter.joint_lists(), self.converter.base_lists()
        reset_joints = native_of(pybullet.resetJointStatesMultiDof)
        reset_pose = native_of(pybullet.resetBasePositionAndOrientation)
        reset_velocity = native_of(pybullet.resetBaseVelocity)
        floats, (q_part, v_part) = self.base is None, self.converter.parts()

        def write_columns(q: list[float], v: list[float]) -> None:
            reset_joints(body, indices, [*zip(q[q_part])], [*zip(v[v_part])], client)

        def write(q: list[float], v: list[float]) -> None:
            if floats:
                position, orientation, linear, angular = base(q, v)
                reset_pose(body, position, orientation, client)  # sets the velocity to zero
                reset_velocity(body, linear, angular, client)
            if indices:
                positions, rates = joints(q, v)
                reset_joints(body, indices, positions, rates, client)

        return write if self.single is None else write_columns

    @property
    def single(self) -> SingleBody | None:
        """The body, if q and v are its joints' and nothing else."""
        joints = self.converter.indices
        if self.base is None or self.converter.balls or not joints:
            return None
        return SingleBody(self.body_id, joints, self.stamp_id, self.stamp)

    def check_base(self) -> None:
        """Raise WorldError if a fixed base is not where it is known to be."""
        if self.base is None:
            return
        now = pybullet.getBasePositionAndOrientation(self.body_id, self.client)
        if now == self.base.now or is_there(now, self.base.now):
            return
        if not math.isfinite(sum(now[0]) + sum(now[1])):
            raise WorldError(
                f"body '{self.name}': its fixed base is at {now[0]} in Bullet, turned by {now[1]};"
                " put it somewhere, or load it again"
            )
        shift, turn = way_between(self.base.now, now)
        if shift > 1e-12 or turn > 1e-12:
            raise WorldError(
                f"body '{self.name}': its fixed base was moved by {shift:.3g} m and turned by"
                f" {turn:.3g} rad since it was read; attach or load it again (BulletClient follows"
                " such a base by itself)"
            )

    def moved(self) -> Shift | None:
        """How the fixed base was moved since this was asked last, or it was read; None if not."""
        base = self.base
        if base is None:
            return None
        now = pybullet.getBasePositionAndOrientation(self.body_id, self.client)
        if is_there(now, base.now):
            return None
        shift, base.now = shift_between(base.now, now), now
        base.shift = shift_between(base.read, now)
        return shift

    def put_links(self, links: dict[str, Link], base: FixedBase) -> None:
        """Put the links of a fixed base where that is now, from where it was read."""
        R, p = base.shift
        for name, body in zip(self.links, self.carriers, strict=True):
            if body == 0:
                link = links[name]
                turned, at = (link.R, link.p) if R is UNTURNED else (R @ link.R, R @ link.p)
                links[name] = Link(link.name, 0, turned, at + p)


class BulletBodies:
    """Bodies of one Bullet client and the mechanism they make up; the ``World`` of a ``System``.

    Args:
        mechanism: Forest of all bodies.
        body_ids: Bullet's ids by name.
        client: Physics client.
        ports: How each body is recognised, read and written.

    Attributes:
        mechanism, body_ids, client, ports: As given.
        single: The body, if there is but one, on a fixed base, with joints of one rate each.
    """

    def __init__(
        self, mechanism: Mechanism, body_ids: dict[str, int], client: int, ports: tuple[Port, ...]
    ) -> None:
        self.mechanism, self.body_ids, self.client, self.ports = mechanism, body_ids, client, ports
        self.single = ports[0].single if len(ports) == 1 else None
        self._writers = tuple(port.writer() for port in ports)
        self._readers = tuple(port.reader() for port in ports)
        own = [OwnBody(port.body_id, port.carriers, port.links) for port in ports]
        self._contacts = ContactFinder(client, mechanism, own, self.showing)
        self._sticking = StickingReader(client, {port.body_id: port.carriers for port in ports})
        self._stamps = tuple((port.stamp_id, port.stamp) for port in ports)
        roots = {*np.flatnonzero(mechanism.bodies["parent"] == 0).tolist()} - {0}
        self._on_bases = [
            (port, port.base, sorted(roots & {*port.carriers})) for port in ports if port.base
        ]
        self._looks: Iterator[bool] = now_and_then()
        often = (n in SOON for n in range(1, LOOKS))
        self._long_looks = chain(often, cycle((True, *(False,) * (LOOKS - 1))))
        asked = (
            probe_of(port.name, port.body_id, port.stamp, port.base is None, port.converter)
            for port in ports
        )
        probes = [probe for probe in asked if probe is not None]
        turns = [part for port in ports for part in port.converter.quaternions]
        self._meddling = Meddling(client, probes, turns, mechanism.gravity, time_step(client))
        self._nq, self._nv = mechanism.nq, mechanism.nv

    def __repr__(self) -> str:
        return f"<BulletBodies: {', '.join(self.body_ids)} in client {self.client}>"

    def __reduce__(self) -> NoReturn:
        """Refuse copies, which would be of what is in Bullet's memory."""
        raise WorldError(
            f"bodies in Bullet are not copied or pickled, as {self!r}: copy or pickle the system,"
            " whose copies have no world, or load the model again where it is wanted"
        )

    def there(self) -> dict[str, int]:
        """Ids by name of the bodies that have not been removed."""
        gone = not pybullet.isConnected(self.client)
        return {} if gone else {p.name: p.body_id for p in self.ports if p.is_there()}

    def state(self) -> tuple[Array, Array]:
        """Configuration (nq,) and velocity (nv,) as Bullet has them.

        Raises:
            WorldError: A body is gone, a fixed base was moved, or a number is not finite.
        """
        self.check(False)
        self.check_bases()
        found = self.numbers()
        self._meddling.shown = found[: self._nq], found[self._nq :]
        return self.finite(found)

    def numbers(self) -> list[float]:
        """Configuration and velocity, one after the other, as Bullet has them; nothing is checked.

        For callers that do that themselves; ``put_numbers`` is the way back.
        """
        positions: list[float] = []
        rates: list[float] = []
        for read in self._readers:
            read(positions, rates)
        return positions + rates

    def finite(self, numbers: list[float]) -> tuple[Array, Array]:
        """Configuration (nq,) and velocity (nv,) of ``numbers``.

        Raises:
            WorldError: One of them is not a number, or infinite; it names the joint.
        """
        found = np.array(numbers)
        q, v = found[: self._nq], found[self._nq :]
        if math.isfinite(sum(numbers)):
            return q, v
        for joint in self.mechanism.joints.values():
            if not np.isfinite([*q[joint.q], *v[joint.v]]).all():
                raise WorldError(
                    f"joint '{joint.name}': position {q[joint.q]} or rate {v[joint.v]} in Bullet is"
                    " not a number; reset it"
                )
        return q, v

    @property
    def bases(self) -> dict[int, tuple[Place, Place]]:
        """Where fixed bases were read, and where they are known to be, by Bullet's id."""
        return {port.body_id: (base.read, base.now) for port in self.ports if (base := port.base)}

    def stand_as(
        self, bases: Mapping[int, tuple[Place, Place]], read: Mechanism, then: Mechanism
    ) -> Mechanism:
        """Have fixed bases as ``bases`` told once, of which the last digits may be others now.

        Args:
            bases: That.
            read: The mechanism with all of them where they were read last.
            then: The same where they had been read by that time.

        Returns:
            The first with what stands on them as in the second.
        """
        bodies, links = copied(read.bodies), dict(read.links)
        for port, base, on_base in self._on_bases:
            base.read, base.now = bases[port.body_id]
            base.shift = shift_between(base.read, base.now)
            links |= {name: then.links[name] for name in port.links if links[name].body == 0}
            for name in ("R", "p"):
                bodies[name][on_base] = then.bodies[name][on_base]
        return replace(read, bodies=bodies, links=links)

    def follow_bases(self, read: Mechanism) -> tuple[Mechanism, dict[int, Shift]]:
        """Take over where Bullet has the fixed bases now.

        Args:
            read: The mechanism with all of them where they were when they were read.

        Returns:
            The same with them where they are, and how those were moved that have been since the
            last time, by Bullet's id; if none was, as given.
        """
        asked = ((port.body_id, port.moved()) for port, *_ in self._on_bases)
        shifts = {body: shift for body, shift in asked if shift is not None}
        if shifts:
            return self._standing_at(read, shifts), shifts
        self._contacts.rest_bases()
        return read, shifts

    def standing(self, read: Mechanism) -> Mechanism:
        """The mechanism, given as to ``follow_bases``, with fixed bases where they are known."""
        return self._standing_at(read, dict.fromkeys(self.bases, NOT_SHIFTED))

    def _standing_at(self, read: Mechanism, shifts: Mapping[int, Shift]) -> Mechanism:
        bodies, links = read.bodies, dict(read.links)
        for port, base, on_base in self._on_bases:
            if base.now == base.read:
                continue
            port.put_links(links, base)
            R, p = base.shift
            if on_base and bodies is read.bodies:
                bodies = copied(bodies)
            for body in on_base:
                bodies["p"][body] = R @ bodies["p"][body] + p
                bodies["R"][body] = R @ bodies["R"][body]
        turned = any(shift.R is not UNTURNED for shift in shifts.values())
        q = np.array(self.numbers()[: self._nq]) if turned else None
        mechanism = replace(read, bodies=bodies, links=links)
        self._contacts.move_bases(mechanism, shifts, q)
        return mechanism

    def sticking_points(self) -> np.ndarray:
        """Points (n,) that stick in the contacts of Bullet's last step; for ``System.filter``."""
        return self._sticking.read()

    @property
    def carries(self) -> bool:
        """Whether another, floating body pressed on the bodies at ``sticking_points``."""
        return self._sticking.carries

    @property
    def sticking_forces(self) -> list[float]:
        """What each of ``sticking_points`` carried when they were read last [N]."""
        return self._sticking.forces

    def detector(self) -> Detector:
        """Finds contacts where everything is now, but for those that Bullet is asked about.

        Raises:
            WorldError: A body is gone.
        """
        return self._contacts.detector()

    def contact_points(self, q: Array, v: Array, dt: float) -> np.ndarray:
        """Contact points (n,) at a state, for exact steps of dt; Bullet is shown it if it is asked.

        Raises:
            WorldError: A body is gone, or another body that may move takes part.
        """
        return self._contacts.find(q, v, dt)

    def surfaces(self) -> dict[str, float]:
        """How links rub and bounce: ``LINK.FIELD`` by name; ``world`` is all other bodies.

        Raises:
            WorldError: A body is gone.
        """
        return surfaces_of(self._contacts.whole().links, self._contacts.names())

    def vary(self, bodies: np.ndarray, surfaces: Mapping[str, float]) -> None:
        """Find contacts of these bodies (nb,) from now on, and with these numbers of surfaces.

        Args:
            bodies: As of the mechanism, whose joints may be elsewhere; shapes stay as they are.
            surfaces: As of ``surfaces``, in the place of what Bullet has.
        """
        self._contacts.vary(bodies, surfaces)

    def fork(self, spare: ContactFork | None = None) -> ContactFork:
        """What finds contacts of other states for another thread, while the world stays as it is.

        Args:
            spare: One from earlier on, which is taken if it can be.

        Raises:
            WorldError: A body is gone.
        """
        return self._contacts.fork(spare)

    def touching(self, contacts: np.ndarray) -> list[tuple[str, str]]:
        """Links a and b of contacts (n,) that were found, ``world`` for what is of no system."""
        names = {port.body_id: port.links for port in self.ports}
        found: list[tuple[str, str]] = []
        for (body, other, link, other_link), _ in self._contacts.places(contacts):
            a, b = names.get(other), names.get(body)
            found.append(
                (a[other_link + 1] if a else WORLD, b[link + 1] if b else WORLD),
            )
        return found

    def contact_places(self, contacts: np.ndarray) -> list[ContactPlace]:
        """Where contact points (n,) are that were found, by Bullet's numbers."""
        return self._contacts.places(contacts)

    def scale_friction(self, body: int, link: int, factors: Vector) -> None:
        """Let friction of a link differ by direction, as Bullet's ``anisotropicFriction`` does.

        Bullet does not report the factors that it uses, so exact steps must be given them here.

        Args:
            body: Bullet's id, of the system's bodies or of what they meet.
            link: Bullet's number, -1 for the base.
            factors: (3,) on friction along the link's inertial axes, not negative.

        Raises:
            ModelError: The factors are not three finite numbers, none negative.
        """
        if len(factors) != 3 or not all(0.0 <= factor < math.inf for factor in factors):
            raise ModelError(
                f"factors on friction are {factors}; give three finite numbers that are not"
                " negative"
            )
        self._contacts.scales[body, link] = factors
        self._contacts.forget()

    def forget_friction(self) -> None:
        """Read friction again, after ``changeDynamics`` of whatever is in contact."""
        self._contacts.forget()
        self._sticking.forget()

    def heed(self, filters: CollisionFilters) -> None:
        """Find no contacts of links that were said not to collide, as long as it stands there."""
        self._contacts.filters = filters
        self._contacts.doubt()

    def forget_filters(self) -> None:
        """Ask Bullet again which links collide, after its collision filters were changed."""
        self._contacts.doubt()

    def write(self, q: Array, v: Array) -> None:
        """Put a state into Bullet: base pose, base velocity, then all joints of a body at once.

        Raises:
            WorldError: A body is gone; nothing was written.
            ModelError: Not q (nq,) and v (nv,); nothing was written.
        """
        if len(q) != self._nq or len(v) != self._nv:
            raise ModelError(
                f"q has {len(q)} numbers and v {len(v)};"
                f" the mechanism has {self._nq} and {self._nv}"
            )
        self.check(False)
        self._put(q.tolist(), v.tolist())

    @contextmanager
    def showing(self, q: Array, v: Array) -> Generator[None]:
        """Have a state in Bullet for a while, as to ask what touches there.

        Bullet normalises quaternions, so that its own numbers may come back with another last bit:
        where they are of what was shown before, that is shown again.
        """
        now = self.numbers()
        before = self._meddling.shown_as(now) or now
        self.write(q, v)
        try:
            yield
        finally:
            self.put_numbers(before)

    def put_numbers(self, numbers: list[float]) -> None:
        """Put ``numbers`` into Bullet, and leave what follows them; nothing is checked."""
        nq = self._nq
        self._put(numbers[:nq], numbers[nq : nq + self._nv])

    def _put(self, q: list[float], v: list[float]) -> None:
        self._meddling.shown = q, v
        for put in self._writers:
            put(q, v)

    def check_bases(self) -> None:
        """Make sure that fixed bases are where they were read, or followed to.

        Who is told of every move need not ask at each step: ``check`` looks now and then, too.
        """
        for port, *_ in self._on_bases:
            port.check_base()

    def forget(self) -> None:
        """Forget which links collide, where that decides which contacts are found."""
        self._contacts.decide(None)

    def save(self, bodies: bool) -> WorldMemory:
        """What it remembers of contacts.

        Args:
            bodies: Whether all of the client's bodies and contacts as they are belong to it.

        Raises:
            WorldError: A body is gone.
        """
        decisions = self._contacts.decisions()
        if not bodies:
            return WorldMemory(decisions, None)
        self.check(False)
        places, numbers = shaped_bodies(self.client).places(), body_ids(self.client)
        return WorldMemory(decisions, BodiesMemory(self._file(), numbers, places))

    def _file(self) -> bytes:
        """The world as Bullet writes it into a file."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "world.bullet"
            pybullet.saveBullet(str(path), self.client)
            return path.read_bytes()

    def restore(self, saved: WorldMemory, bodies: bool) -> bool:
        """Go on from what ``save`` returned, of this world or one with the same bodies.

        Args:
            saved: That.
            bodies: Whether to put all bodies of the client back too.

        Returns:
            Whether they were.

        Raises:
            WorldError: A body is gone, or others were loaded than where it was saved.
        """
        decisions, whole = saved
        if whole is None or not bodies:
            self._contacts.decide(decisions)
            return False
        self._put_back(whole.file)
        now = dict(zip(whole.numbers, body_ids(self.client), strict=True))
        shaped_bodies(self.client).stand({now[n]: at for n, at in whole.places.items()})
        self._contacts.decide(renumbered(decisions, now))
        return True

    def _put_back(self, file: bytes) -> None:
        """Put back all bodies and contacts of the client, as ``restoreState`` does from a file.

        Contacts that Bullet keeps from one detection to the next decide which ones it finds then.
        """
        self.check(False)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "world.bullet"
            path.write_bytes(file)
            self.accept()
            try:
                pybullet.restoreState(fileName=str(path), physicsClientId=self.client)
            except pybullet.error:
                raise WorldError(
                    f"client {self.client} has other bodies than the one where the state was saved;"
                    " load the same ones in the same order"
                ) from None

    def check_properties(self) -> None:
        """Make sure that they have the masses and inertias that were read.

        Friction is read again.

        Raises:
            WorldError: They have others; the message names link and property.
        """
        self._check_properties()
        self.forget_friction()

    def _check_properties(self) -> None:
        self._contacts.doubt()
        for port in self.ports:
            port.check_properties()

    def accept(self) -> None:
        """Take whatever Bullet has of the bodies as meant, until they are written again."""
        self._meddling.shown = None

    def look(self, acting: Callable[[], tuple[Array, float]]) -> None:
        """Before a step: ``check``, and has somebody else moved the bodies since they were shown?

        Every ``LOOKS`` times, and in the ``SOON`` first ones, gravity, masses and inertias are
        looked at too, and so is friction that contacts have used.

        Args:
            acting: Gravity of the system (3,) [m/s²], and its step [s].

        Raises:
            WorldError: A body was removed, or ``changeDynamics`` has changed one.

        Warns:
            BulletBridgeWarning: Something was done in Bullet that steps do not follow; it names
                the call that does it.
        """
        self.check(False)
        shaped_bodies(self.client).begin_step(id(self))
        meddling = self._meddling
        probe = meddling.moved()
        if probe is not None:
            meddling.tell_moved(self.numbers(), f"body '{probe.name}'")
        if next(self._long_looks):
            self._check_properties()
            names = ", ".join(f"'{port.name}'" for port in self.ports)
            meddling.tell_moved(self.numbers(), f"one of the bodies {names}")
            meddling.tell_settings(acting)
            meddling.tell_of_bodies_beside()
            self._contacts.tell_changes()
            self.tell_of_a_fall(acting()[0])

    def tell_of_a_fall(self, pull: Array) -> None:
        """Warn once of what falls for want of a ground, or of contacts with it.

        Args:
            pull: Gravity that acts (3,) [m/s²].
        """
        self._meddling.tell_of_a_fall(pull, self._contacts.acts)

    def look_next(self) -> None:
        """Have the next ``check`` look at masses, inertias and bases."""
        self._looks = chain((True,), now_and_then())

    def check(self, looks: bool = True) -> None:
        """Make sure that the bodies are still those that were read.

        Args:
            looks: Whether to look, every ``LOOKS`` times, for masses and inertias that have
                changed and for fixed bases that were moved, too.

        Raises:
            WorldError: A body was removed, whether or not another one has its id by now, or the
                client is gone; or ``changeDynamics`` has changed one, or a fixed base was moved.
        """
        user_data, client = pybullet.getUserData, self.client
        try:
            for stamp_id, stamp in self._stamps:
                if user_data(stamp_id, client) != stamp:
                    break
            else:
                if looks and next(self._looks):
                    self._check_properties()
                    self.check_bases()
                return
        except pybullet.error:
            pass
        for port in self.ports:
            port.check()
