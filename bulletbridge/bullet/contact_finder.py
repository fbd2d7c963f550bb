"""Contacts of some bodies of a Bullet world, found by us where the shapes of links are known.

Bullet's own detection is asked where they are not, and once for every two links that meet whether
they collide: it does not tell what flags of loadURDF and setCollisionFilterPair have said. It
cannot tell of links that touch and go no further, so what is known of these is taken from whoever
heard it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pybullet

from bulletbridge.bullet.collision_filters import CollisionFilters
from bulletbridge.bullet.collision_shapes import LinkShapes, boundless, read_shapes
from bulletbridge.bullet.contacts import RIGID, moves
from bulletbridge.bullet.stamps import stamp
from bulletbridge.collision.records import COLLIDE, DOUBTED, NEVER, UNDECIDED
from bulletbridge.collision.shapes import Owner, ShapeSpec, records_of
from bulletbridge.errors import WorldError, warn_user
from bulletbridge.mechanism.contact_detector import RUBBING, Detector, put_surfaces, surfaces_of
from bulletbridge.mechanism.model import WORLD, Mechanism
from bulletbridge.mechanism.records import CONTACT_POINT
from bulletbridge.mechanism.surfaces import SURFACE_LINK
from bulletbridge.numerics.records import Array, Vector

Key = tuple[int, int, int, int]
"""Body, other body, link, other link."""
ContactPlace = tuple[Key, Vector]
"""Place of a contact: that, and the point on the first body in the world."""
Pose = tuple[Array, Array]
"""Axes (3, 3) and origin (3,)."""
ASKING = Lock()
"""Held by the thread that asks Bullet."""


class StrangerError(WorldError):
    """A body that may move is in contact with one of the system, and is not part of it."""

    def __init__(self, message: str, body: int, other: int) -> None:
        super().__init__(message)
        self.body, self.other = body, other


class OwnBody(NamedTuple):
    """A body of the mechanism.

    Attributes:
        body: Bullet's id.
        carriers: Bodies of the mechanism that carry the base and each link,
        links: what the mechanism calls these,
        frames: and where they have their frames on these bodies; called at need.
    """

    body: int
    carriers: tuple[int, ...]
    links: tuple[str, ...]
    frames: Callable[[], Sequence[Pose]]


class Bystander(NamedTuple):
    """A body of the world that is no part of the mechanism.

    Attributes:
        body: Bullet's id.
        stamp_id: Of its mark,
        stamp: and what that says.
        links: Those with shapes,
        first: the first of which is this one of the detector's.
        joints: Whether links may move against the base.
    """

    body: int
    stamp_id: int
    stamp: bytes
    links: tuple[int, ...]
    first: int
    joints: bool

    def places(self, client: int) -> tuple[Any, ...]:
        """Positions and quaternions of its links' inertial frames, as Bullet has them."""
        if self.links == (-1,):
            return (pybullet.getBasePositionAndOrientation(self.body, client),)
        base = pybullet.getBasePositionAndOrientation(self.body, client)
        others = [link for link in self.links if link >= 0]
        states = pybullet.getLinkStates(
            self.body, others, computeForwardKinematics=1, physicsClientId=client
        )
        own = (base,) if self.links[0] < 0 else ()
        return (*own, *(state[:2] for state in states))


class ContactFinder:
    """Finds all contacts of some bodies with each other and with the rest of the world.

    Args:
        client: Physics client.
        mechanism: Of the bodies.
        own: These.
        write: Puts a state of them into Bullet.

    Attributes:
        scales: Factors on friction along the inertial axes of links, by body and link: Bullet's
            ``anisotropicFriction``, which it does not tell. Those of the world count too.
        filters: Links that are known not to collide.
    """

    def __init__(
        self,
        client: int,
        mechanism: Mechanism,
        own: Sequence[OwnBody],
        write: Callable[[Array, Array], None],
    ) -> None:
        self.client, self.scales = client, dict[tuple[int, int], Vector]()
        self.filters = CollisionFilters()
        self._mechanism, self._write = mechanism, write
        self._own = sorted(own, key=lambda each: each.body)
        self._ids = {each.body for each in own}
        self._shapes: dict[tuple[int, bytes, int], LinkShapes] = {}
        self._links: list[tuple[int, int]] = []  # body and link of each of the detector's
        self._keys: list[tuple[int, bytes, int]] = []  # and what they are known by
        self._specs: list[tuple[ShapeSpec, ...]] = []  # in their inertial frames
        self._bystanders: list[Bystander] = []
        self._places: list[tuple[Any, ...]] = []  # of these, when they were looked at last
        self._detector: Detector | None = None
        self._bodies = -1  # how many there were
        self._surfaces = False  # whether they are known
        self._given: dict[str, float] = {}  # numbers of surfaces that are not Bullet's
        self._told = False  # whether it was said that they have changed

    def forget(self) -> None:
        """Read coefficients again, after ``changeDynamics`` of whatever is in contact."""
        self._surfaces = False

    def fork(self) -> "ContactFork":
        """What finds contacts of other states for another thread, the world as it stands."""
        return ContactFork(self, self.detector().copy(), self.names())

    def names(self) -> list[str]:
        """What the mechanism calls each of the detector's links; ``world`` if it is none of it."""
        own = {(each.body, k): n for each in self._own for k, n in enumerate(each.links, -1)}
        return [own.get(link, WORLD) for link in self._links]

    def vary(self, bodies: np.ndarray, surfaces: Mapping[str, float]) -> None:
        """Find contacts of these bodies (nb,) from now on, and with these numbers of surfaces."""
        self._given |= surfaces
        self._mechanism = replace(self._mechanism, bodies=bodies)
        detector = self.detector()
        put_surfaces(detector.links, self.names(), surfaces)
        detector.bodies[:] = bodies

    def tell_changes(self) -> None:
        """Warn once if ``changeDynamics`` has changed how links rub since that was read."""
        if self._detector is None or not self._surfaces or self._told or not self._all_there():
            return
        links = zip(self._links, self.names(), self._detector.links, strict=True)
        for (body, link), name, record in links:
            info = pybullet.getDynamicsInfo(body, link, self.client)
            now = zip(RUBBING.items(), (info[1], *info[5:8]), strict=True)
            if any(f"{name}.{n}" not in self._given and x != record[r] for (n, r), x in now):
                self._told = True
                warn_user(
                    f"changeDynamics has changed friction or restitution of body {body} since they"
                    " were read; system.read() takes that over"
                )
                return

    def doubt(self) -> None:
        """Ask Bullet again whether links collide, after its filters may have been changed."""
        if self._detector is not None:
            known = self._detector.collide
            known[known == NEVER] = UNDECIDED
            known[known == COLLIDE] = DOUBTED
            self._keep_apart(self._detector)

    def _keep_apart(self, detector: Detector) -> None:
        """Let links pass through one another that are known not to collide."""
        if not (self.filters.pairs or self.filters.alone):
            return
        for a, link in enumerate(self._links):
            for b, other in enumerate(self._links[:a]):
                if self.filters.forbids(link, other):
                    detector.collide[b, a] = NEVER

    def move_bases(self, bodies: np.ndarray) -> None:
        """Take over where fixed bases of the mechanism are now, by its records of bodies."""
        if self._detector is not None:
            self._detector.bodies[:] = bodies
            self._place_own(self._detector)

    def find(self, q: Array, v: Array, dt: float) -> np.ndarray:
        """Contact points (n,) at a state, of dtype ``CONTACT_POINT``.

        Bullet is shown the state where it has to be asked.

        Args:
            q: (nq,)
            v: (nv,) rates, which say from how far bodies may meet in
            dt: a step [s].

        Raises:
            StrangerError: Another body that may move takes part.
        """
        detector = self.detector()
        contacts, complete = detector.find(q, v, dt)
        if not complete:
            contacts = self.complete(detector, contacts, (q, v, dt))
        return contacts.copy()

    def places(self, contacts: np.ndarray) -> list[ContactPlace]:
        """Where contacts (n,) are that were found, by Bullet's numbers."""
        found: list[ContactPlace] = []
        for contact in contacts:
            a, b = divmod(int(contact["pair"]), len(self._links))
            (other, other_link), (body, link) = self._links[a], self._links[b]
            x, y, z = contact["position"].tolist()
            found.append(((body, other, link, other_link), (x, y, z)))
        return found

    def complete(
        self, detector: Detector, contacts: np.ndarray, state: tuple[Array, Array, float]
    ) -> np.ndarray:
        """Contacts with those that Bullet has to be asked about.

        Raises:
            StrangerError: Another body that may move takes part.
        """
        asked = detector.undecided()
        if asked:
            self._write(*state[:2])
            pybullet.performCollisionDetection(physicsClientId=self.client)
            if self._decide(detector, asked):
                contacts, _ = detector.find(*state)
            contacts = np.concatenate([contacts, self._bullets(detector)])
        stranger = detector.stranger()
        if stranger is not None:
            self._refuse(*stranger)
        return contacts

    def _decide(self, detector: Detector, pairs: Sequence[tuple[int, int]]) -> bool:
        """Ask Bullet whether links collide that have met; whether one of them is known by now."""
        decided = False
        for a, b in pairs:
            if self._knows(a) and self._knows(b):
                detector.collide[b, a] = COLLIDE if self._points(a, b) else NEVER
                decided = True
        return decided

    def _bullets(self, detector: Detector) -> np.ndarray:
        """Contacts (n,) that Bullet finds of links whose shapes are not known."""
        n, found = len(self._links), list[tuple[int, tuple[Any, ...]]]()
        for a, b in detector.undecided():
            if self._knows(a) and self._knows(b):
                continue
            points = self._points(a, b)
            found += [(a * n + b, point) for point in points]
            if points and detector.links["stranger"][[a, b]].any():
                self._refuse(a, b)
        contacts = np.zeros(len(found), CONTACT_POINT)
        for contact, (pair, point) in zip(contacts, found, strict=True):
            contact["pair"], contact["feature"] = pair, -1
            contact["position"], contact["normal"], contact["gap"] = point[5], point[7], point[8]
        detector.complete(contacts)
        return contacts

    def _knows(self, link: int) -> bool:
        return all(spec.known for spec in self._specs[link])

    def _points(self, a: int, b: int) -> tuple[tuple[Any, ...], ...]:
        """Bullet's contacts of two links, told as on the second."""
        (other, other_link), (body, link) = self._links[a], self._links[b]
        points: tuple[tuple[Any, ...], ...] = pybullet.getContactPoints(
            body, other, link, other_link, physicsClientId=self.client
        )
        return points

    def _refuse(self, a: int, b: int) -> None:
        """Say which body that may move is in contact with one of ours."""
        (other, _), (body, _) = self._links[a], self._links[b]
        name = pybullet.getBodyInfo(other, self.client)[1].decode()
        raise StrangerError(
            f"body {body} is in contact with body {other} ('{name}'), which may move and is not"
            f" part of the system; read both together, or keep them apart with"
            f" setCollisionFilterPair",
            body,
            other,
        )

    def detector(self) -> Detector:
        """The detector with all bodies of the world where these are now."""
        detector, client = self._detector, self.client
        count = pybullet.getNumBodies(physicsClientId=client)
        if detector is None or count != self._bodies or not self._all_there():
            detector = self._build(count)
        if not self._surfaces:
            detector = self._read_surfaces(detector)
        for k, bystander in enumerate(self._bystanders):
            places = bystander.places(client)
            if places != self._places[k]:
                self._places[k] = places
                self._place(detector, bystander, places)
        return detector

    def _all_there(self) -> bool:
        user_data, client = pybullet.getUserData, self.client
        try:
            return all(user_data(each.stamp_id, client) == each.stamp for each in self._bystanders)
        except pybullet.error:
            return False

    def _build(self, count: int) -> Detector:
        """A detector of all bodies that the world has now, so many."""
        client, self._bodies = self.client, count
        self._links, self._keys, self._specs, self._bystanders = [], [], [], []
        owners: list[Owner] = []
        numbers: list[int] = []
        for own in self._own:
            mark = stamp(own.body, client)[1]
            for link, carrier in enumerate(own.carriers, -1):
                self._add(own.body, mark, link, carrier, owners, numbers)
        for place in range(count):
            body = pybullet.getBodyUniqueId(place, physicsClientId=client)
            if body in self._ids:
                continue
            stamp_id, mark = stamp(body, client)
            first, joints = len(self._links), pybullet.getNumJoints(body, client)
            for link in range(-1, joints):
                self._add(body, mark, link, 0, owners, numbers)
            links = tuple(link for _, link in self._links[first:])
            if links:
                self._bystanders.append(Bystander(body, stamp_id, mark, links, first, joints > 0))
        specs = [spec for each in self._specs for spec in each]
        links = np.zeros(len(self._links), SURFACE_LINK)
        detector = Detector(self._mechanism, links, records_of(specs, owners))
        links["body"] = numbers
        for k, (body, link) in enumerate(self._links):
            links[k]["robot"] = body
            links[k]["stranger"] = body not in self._ids and moves(body, link, client)
            info = pybullet.getDynamicsInfo(body, link, client)
            if info[10] not in RIGID:
                links[k]["stranger"] = True
        self._places = [() for _ in self._bystanders]
        self._detector, self._surfaces = detector, False
        self._keep_apart(detector)
        self._place_own(detector)
        return detector

    def _add(
        self,
        body: int,
        mark: bytes,
        link: int,
        carrier: int,
        owners: list[Owner],
        numbers: list[int],
    ) -> None:
        """Add a link, if it has shapes."""
        key = body, mark, link
        if key not in self._shapes:
            rigid = pybullet.getDynamicsInfo(body, link, self.client)[10] in RIGID
            read = read_shapes(body, link, self.client) if rigid else boundless()
            self._shapes[key] = read
        shapes, margin, _ = self._shapes[key]
        if shapes:
            owners += [Owner(carrier, len(self._links), margin)] * len(shapes)
            self._links.append((body, link))
            self._keys.append(key)
            self._specs.append(shapes)
            numbers.append(carrier)

    def _read_surfaces(self, detector: Detector) -> Detector:
        """Read how links rub and bounce; a detector built anew if margins of hulls have changed."""
        changed = False
        for k, (body, link) in enumerate(self._links):
            info = pybullet.getDynamicsInfo(body, link, self.client)
            record = detector.links[k]
            for name, value in zip(RUBBING.values(), (info[1], *info[5:8]), strict=True):
                record[name] = value
            scales = self.scales.get((body, link))
            record["scaled"] = scales is not None
            record["scales"] = (1.0, 1.0, 1.0) if scales is None else scales
            hulls = any(spec.hull is not None for spec in self._specs[k])
            if hulls and self._shapes[self._keys[k]].rounding != info[11]:
                del self._shapes[self._keys[k]]
                changed = True
        put_surfaces(detector.links, self.names(), self._given)
        self._surfaces = True
        return self._read_surfaces(self._build(self._bodies)) if changed else detector

    def _place_own(self, detector: Detector) -> None:
        """Put shapes of the mechanism's links on its bodies."""
        from scipy.spatial.transform import Rotation

        numbers = {each: k for k, each in enumerate(self._links)}
        for own in self._own:
            for link, (R, p) in enumerate(own.frames(), -1):
                if (own.body, link) in numbers:
                    info = pybullet.getDynamicsInfo(own.body, link, self.client)
                    axes = Rotation.from_quat(info[4]).as_matrix()
                    place = R @ axes, p + R @ np.array(info[3])
                    self._put(detector, numbers[own.body, link], place)

    def _place(self, detector: Detector, bystander: Bystander, places: tuple[Any, ...]) -> None:
        """Put shapes of a body of the world where it is."""
        from scipy.spatial.transform import Rotation

        for k, (position, quat) in enumerate(places, bystander.first):
            R = Rotation.from_quat(quat).as_matrix()
            self._put(detector, k, (R, np.array(position)))

    def _put(self, detector: Detector, link: int, place: Pose) -> None:
        """Put a link's shapes where its inertial frame is on its body."""
        R, p = place
        detector.links[link]["R"] = R
        first = int(np.searchsorted(detector.shapes["link"], link))
        for record, spec in zip(detector.shapes[first:], self._specs[link], strict=False):
            record["R"], record["p"] = R @ spec.R, p + R @ spec.p


class ContactFork:
    """Contacts of states of the same bodies in one thread of several.

    Bullet, which all threads share, is asked by one at a time. Whether links collide is found out
    anew in every world: what comes out does not depend on who asked first.
    """

    def __init__(self, finder: ContactFinder, detector: Detector, names: list[str]) -> None:
        self._finder, self._detector, self._names = finder, detector, names
        self._known = detector.collide.copy()

    def surfaces(self) -> dict[str, float]:
        """How links rub and bounce, as of ``BulletBodies``."""
        return surfaces_of(self._detector.links, self._names)

    def vary(self, bodies: np.ndarray, surfaces: Mapping[str, float]) -> None:
        """Find contacts of these bodies (nb,) from now on, and with these numbers of surfaces."""
        put_surfaces(self._detector.links, self._names, surfaces)
        self._detector.bodies[:] = bodies

    def begin(self) -> None:
        """Begin another world."""
        self._detector.collide[:] = self._known

    def detector(self) -> Detector:
        """Finds contacts, but for those that Bullet is asked about."""
        return self._detector

    def contact_points(self, q: Array, v: Array, dt: float) -> np.ndarray:
        """Contact points (n,) at a state, as ``ContactFinder.find``.

        Raises:
            StrangerError: Another body that may move takes part.
        """
        contacts, complete = self._detector.find(q, v, dt)
        if not complete:
            with ASKING:
                contacts = self._finder.complete(self._detector, contacts, (q, v, dt))
        return contacts.copy()
