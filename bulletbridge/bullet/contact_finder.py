"""Contacts of some bodies of a Bullet world, found by us where the shapes of links are known.

Bullet's own detection is asked where they are not, and once for every two links that meet whether
they collide: it does not tell what flags of loadURDF and setCollisionFilterPair have said. It
cannot tell of links that touch and go no further, so what is known of these is taken from whoever
heard it.
"""

import math
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pybullet

from bulletbridge.bullet.collision_filters import CollisionFilters
from bulletbridge.bullet.collision_shapes import LinkShapes
from bulletbridge.bullet.contacts import moves
from bulletbridge.bullet.coordinates import matrix
from bulletbridge.bullet.meddling import how_to_join
from bulletbridge.bullet.shaped_bodies import SLACK, Pose, ShapedBody, shaped_bodies
from bulletbridge.bullet.worlds import text_of
from bulletbridge.collision.records import COLLIDE, DOUBTED, NEVER, UNDECIDED
from bulletbridge.collision.shapes import Owner, records_of
from bulletbridge.errors import WorldError, warn_user
from bulletbridge.mechanism.contact_detector import RUBBING, Detector, put_surfaces, surfaces_of
from bulletbridge.mechanism.model import WORLD, Mechanism
from bulletbridge.mechanism.records import CONTACT_POINT
from bulletbridge.mechanism.surfaces import MOST_LINKS, SURFACE_LINK
from bulletbridge.numerics.records import Array, Ints, Vector

CONTACT_DAMPING = 0.1
"""Of links that were given none, which Bullet adds to the other link's [N s/m]."""
Key = tuple[int, int, int, int]
"""Body, other body, link, other link."""
ContactPlace = tuple[Key, Vector]
"""Place of a contact: that, and the point on the first body in the world."""
LINKS_OF_BODY = 4096
"""Room for them where links are numbered."""
AHEAD = 16
"""Steps at the speed of now, for which bodies near a mechanism are looked up at once."""
NEARLY = 1e-3
"""Distance within which Bullet is asked how far links are from each other [m]: within none it does
not tell of all that are inside each other by micrometres."""
FAR = 0.5
"""Distance up to which it is asked how far links are from what it alone knows the shape of [m]."""
SAFE = 0.05
"""So much of which it may list points within [m]: its breaking threshold is 0.02."""
ASKS = 8
"""Times that it is asked for contacts, for one of which it is asked for such distances, too."""
ASKING = Lock()
"""Held by the thread that asks Bullet."""


class StrangerError(WorldError):
    """A body that may move is in contact with one of the system, and is not part of it."""

    def __init__(self, message: str, body: int, other: int) -> None:
        super().__init__(message)
        self.body, self.other = body, other


class OwnBody(NamedTuple):
    """A body of the mechanism."""

    body: int  # Bullet's id
    carriers: tuple[int, ...]  # bodies of the mechanism that carry the base and each link,
    links: tuple[str, ...]  # and what it calls these


class Decisions(NamedTuple):
    """What a state has to know of which links collide, for the same contacts to be found.

    Attributes:
        known: Of two links each, the smaller number first: where they are taken otherwise than two
            of which nothing is known.
        filters: What a program had said of it by then.
    """

    known: dict[tuple[int, int], int]
    filters: CollisionFilters


class Bystander(NamedTuple):
    """A body that is no part of the mechanism and may be near it."""

    body: ShapedBody  # as it is known to all
    first: int  # the first of its links is this one of the detector's


class Clearances:
    """How far links may go before they can touch what stands still and only Bullet knows.

    Args:
        detector: Of the links.
    """

    def __init__(self, detector: Detector) -> None:
        n, self._detector = len(detector.links), detector
        self._stands = detector.links["body"] == 0
        self._room = np.full((n, n), -np.inf)  # from where each was when it was measured
        self._room[np.ix_(self._stands, self._stands)] = np.inf  # these cannot come nearer
        self._places, self._weights = np.zeros((n, 12)), np.ones((n, 12))  # turns by their levers
        self._pairs, self._asked = list[tuple[int, int]](), 0
        self._a: Ints = np.zeros(0, np.int64)
        self._b = self._links = self._a

    def forget(self, first: int, count: int) -> None:
        """Forget what was measured, if anything was, to links that were put elsewhere."""
        if self._asked:
            moved = slice(first, first + count)
            self._room[moved, ~self._stands] = self._room[~self._stands, moved] = -np.inf

    def without_far(self, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Pairs of links that may touch where the last detection has them."""
        if not pairs:
            return pairs
        if pairs != self._pairs:
            self._pairs, (self._a, self._b) = pairs, np.array(pairs, np.int64).T
            self._links = np.where(self._stands[self._a], self._b, self._a)
        near = ~(self._ways(self._links) < self._room[self._a, self._b])
        return [pair for pair, one in zip(pairs, near.tolist(), strict=True) if one]

    def _ways(self, links: Ints) -> Array:
        """How far any point of links (n,) is from where it was when they were measured, at most."""
        moved = self._detector.places_of(links) - self._places[links]
        moved *= self._weights[links]
        return np.sqrt(2.0 * np.einsum("ij,ij->i", moved, moved))

    def measure(self, pairs: list[tuple[int, int]], distance: Callable[[int, int], float]) -> None:
        """Measure now and then pairs that had to be asked about, where the last detection has them.

        Args:
            pairs: Those of which one stands still.
            distance: Of two links [m], ``FAR`` at most.
        """
        self._asked += 1
        if self._asked % ASKS != 1:
            return
        found = {pair: distance(*pair) - SAFE for pair in pairs}
        links = np.unique(np.array([b if self._stands[a] else a for a, b in found], np.int64))
        ways = self._ways(links)
        self._room[links] -= ways[:, None]
        self._room[:, links] -= ways
        self._places[links] = self._detector.places_of(links)
        self._weights[links, 3:] = self._detector.reaches_of(links)[:, None]
        for (a, b), room in found.items():
            self._room[a, b] = room


class ContactFinder:
    """Finds all contacts of some bodies with each other and with the rest of the world.

    Args:
        client: Physics client.
        mechanism: Of the bodies.
        own: These.
        showing: Has a state of them in Bullet for a while.

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
        showing: Callable[[Array, Array], AbstractContextManager[None]],
    ) -> None:
        self.client, self.scales = client, dict[tuple[int, int], Vector]()
        self.filters = CollisionFilters()
        self._mechanism, self._showing = mechanism, showing
        self._own = sorted(own, key=lambda each: each.body)
        self._ids = {each.body for each in own}
        self._around = shaped_bodies(client)
        self._links: list[tuple[int, int]] = []  # body and link of each of the detector's
        self._shapes: list[LinkShapes] = []  # of each, in their inertial frames
        self._inertial: dict[tuple[int, int], Pose] = {}  # on links of the mechanism's bodies
        self._bystanders: list[Bystander] = []
        self._places: list[int] = []  # versions of their places that the detector has
        self._detector: Detector | None = None
        self._clearances: Clearances
        self._ways: dict[tuple[int, int], float] = {}  # of links whose base was moved
        self._elsewhere: dict[tuple[int, int], int] = {}  # decisions about links it does not have
        self._known = -1, -1  # generation and version of what is around
        self._all_near = False  # whether all bodies are taken to be near
        self._surfaces = False  # whether they are known
        self._given: dict[str, float] = {}  # numbers of surfaces that are not Bullet's
        self._told = False  # whether it was said that they have changed

    def forget(self) -> None:
        """Read coefficients again, after ``changeDynamics`` of whatever is in contact."""
        self._surfaces = False

    def fork(self, spare: "ContactFork | None" = None) -> "ContactFork":
        """What finds contacts of other states for another thread, the world as it stands.

        Args:
            spare: One from earlier on, which is taken if shapes are the same ones.
        """
        whole = self.whole()
        if spare is not None and spare.renew(self, whole):
            return spare
        return ContactFork(self, whole.copy(), self.names())

    def names(self) -> list[str]:
        """What the mechanism calls each of the detector's links; ``world`` if it is none of it."""
        own = {(each.body, k): n for each in self._own for k, n in enumerate(each.links, -1)}
        return [own.get(link, WORLD) for link in self._links]

    def vary(self, bodies: np.ndarray, surfaces: Mapping[str, float]) -> None:
        """Find contacts of these bodies (nb,) from now on, and with these numbers of surfaces."""
        self._given |= surfaces
        self._mechanism = replace(self._mechanism, bodies=bodies)
        detector = self.whole()
        put_surfaces(detector.links, self.names(), surfaces)
        detector.bodies[:] = bodies

    @property
    def acts(self) -> bool:
        """Whether contacts were ever looked for."""
        return self._detector is not None

    def tell_changes(self) -> None:
        """Warn once if ``changeDynamics`` has changed how links rub since that was read."""
        if self._detector is None or not self._surfaces or self._told:
            return
        self._around.look()
        if self._known[0] != self._around.generation:
            return
        links = zip(self._links, self.names(), self._detector.links, strict=True)
        for (body, link), name, record in links:
            info = pybullet.getDynamicsInfo(body, link, self.client)
            now = zip(RUBBING.items(), (info[1], *info[5:8]), strict=True)
            rubs = any(f"{name}.{n}" not in self._given and x != record[r] for (n, r), x in now)
            if rubs or max(info[9], 0.0) != record["stiffness"]:
                self._told = True
                warn_user(
                    f"changeDynamics has changed friction, restitution or contactStiffness of body"
                    f" {body} since they were read; system.read() takes that over"
                )
                return

    def doubt(self) -> None:
        """Ask Bullet again whether links collide, after its filters may have been changed."""
        if self._detector is not None:
            known = self._detector.collide
            known[known == NEVER] = UNDECIDED
            known[known == COLLIDE] = DOUBTED
            elsewhere = self._elsewhere.items()
            self._elsewhere = {pair: DOUBTED for pair, what in elsewhere if what != NEVER}
            self._keep_apart(self._detector)

    def decisions(self) -> Decisions:
        """What has to be known to find the same contacts again."""
        return Decisions(self._telling(), self.filters.copy())

    def decide(self, decisions: Decisions | None) -> None:
        """Know what was known; of links whose filters have changed since, and from None, nothing.

        Of links that met since it is forgotten only what lets other contacts be found.
        """
        detector = self._detector
        if detector is not None:
            place = {number: k for k, number in enumerate(detector.links["number"].tolist())}
            for pair in self._telling():
                if place.keys() >= {*pair}:
                    b, a = sorted(place[number] for number in pair)
                    detector.collide[b, a] = UNDECIDED
        self._elsewhere = {}
        if decisions is not None and decisions.filters == self.filters:
            self._elsewhere = dict(decisions.known)
        if detector is not None:
            self._apply(detector)

    def _telling(self) -> dict[tuple[int, int], int]:
        """What is known of links that are taken otherwise while nothing is.

        Links of one robot are taken not to collide then, all others to do so.
        """
        found, detector = dict(self._elsewhere), self._detector
        if detector is None:
            return found
        numbers, robots = detector.links["number"], detector.links["robot"]
        b, a = np.nonzero(detector.collide != UNDECIDED)
        known = detector.collide[b, a]
        tells = (robots[a] == robots[b]) != (known == NEVER)
        told = (each[tells].tolist() for each in (numbers[b], numbers[a], known))
        for x, y, what in zip(*told, strict=True):
            found[min(x, y), max(x, y)] = what
        return found

    def _apply(self, detector: Detector) -> None:
        """Tell a detector what was decided elsewhere about links that it has."""
        place = {number: k for k, number in enumerate(detector.links["number"].tolist())}
        for pair in [pair for pair in self._elsewhere if place.keys() >= {*pair}]:
            b, a = sorted(place[number] for number in pair)
            detector.collide[b, a] = self._elsewhere.pop(pair)
        self._keep_apart(detector)

    def _keep_apart(self, detector: Detector) -> None:
        """Let links pass through one another that are known not to collide."""
        if not (self.filters.pairs or self.filters.alone):
            return
        for a, link in enumerate(self._links):
            for b, other in enumerate(self._links[:a]):
                if self.filters.forbids(link, other):
                    detector.collide[b, a] = NEVER

    def rest_bases(self) -> None:
        """Note that no fixed base was moved since the last step."""
        if self._ways:
            self._ways.clear()
            if self._detector is not None:
                self._put_ways(self._detector)

    def move_bases(self, mechanism: Mechanism, moved: Mapping[int, Pose], q: Array | None) -> None:
        """Take over where fixed bases of the mechanism are now.

        Args:
            mechanism: With these.
            moved: How bases were that have been since the last step, x to R x + p, by Bullet's id.
            q: (nq,) where joints are, if any base was turned.
        """
        self.rest_bases()
        before, self._mechanism, detector = self._mechanism, mechanism, self._detector
        if detector is None:
            return
        if q is not None:
            detector.find(q, np.zeros(mechanism.nv), 0.0)  # where they were moved from
        for k, link in enumerate(self._links):
            if link[0] in moved:
                self._clearances.forget(k, 1)
                R, p = moved[link[0]]
                self._ways[link] = math.hypot(*p) if q is None else detector.way_by(k, R, p)
                detector.links["way"][k] = self._ways[link]
        if mechanism.bodies is not before.bodies:
            detector.bodies[:] = mechanism.bodies
        self._place_own(detector, moved, standing=True)

    def _put_ways(self, detector: Detector) -> None:
        """Tell a detector how far a program has moved fixed bases of the mechanism."""
        for k, link in enumerate(self._links):
            if link[0] in self._ids:
                detector.links["way"][k] = self._ways.get(link, 0.0)

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
            a, b = divmod(int(contact["pair"]), MOST_LINKS)
            (other, other_link), (body, link) = place_of(a), place_of(b)
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
        if detector.has_left:
            detector = self._follow(detector, state[2])
            contacts, _ = detector.find(*state)
        asked = self._near(detector)
        if asked:
            with self._showing(*state[:2]):
                pybullet.performCollisionDetection(physicsClientId=self.client)
                if self._decide(detector, asked):
                    contacts, _ = detector.find(*state)
                contacts = np.concatenate([contacts, self._bullets(detector)])
        stranger = detector.stranger()
        if stranger is not None:
            self._refuse(*stranger)
        return contacts

    def _near(self, detector: Detector) -> list[tuple[int, int]]:
        """Pairs of links that the last detection could not decide on, but those known to be far."""
        pairs = detector.undecided()
        return pairs if detector is not self._detector else self._clearances.without_far(pairs)

    def _decide(self, detector: Detector, pairs: Sequence[tuple[int, int]]) -> bool:
        """Ask Bullet whether links collide that have met; whether one of them is known by now.

        Where an edge meets a ball Bullet's distance is off by tenths of a millimetre: that it lists
        no points tells something of links alone that are inside each other by its own measure.
        """
        decided = False
        for a, b in pairs:
            if self._knows(a) and self._knows(b):
                known = COLLIDE if self._points(a, b) else NEVER
                if known == COLLIDE or self._distance(a, b, NEARLY) < 0.0:
                    detector.collide[b, a] = known
                    decided = True
        return decided

    def _distance(self, a: int, b: int, most: float = FAR) -> float:
        """How far two links are from each other as Bullet measures [m], ``most`` at most."""
        (other, other_link), (body, link) = self._links[a], self._links[b]
        points: tuple[tuple[Any, ...], ...] = pybullet.getClosestPoints(
            body, other, most, link, other_link, physicsClientId=self.client
        )
        return min((point[8] for point in points), default=most)

    def _bullets(self, detector: Detector) -> np.ndarray:
        """Contacts (n,) that Bullet finds of links whose shapes are not known."""
        found, pairs = list[tuple[Any, ...]](), list[tuple[int, int]]()
        asked = [(a, b) for a, b in self._near(detector) if not self._knows(a) & self._knows(b)]
        moving, stands = detector.links["stranger"], detector.links["body"] == 0
        for a, b in asked:
            points = self._points(a, b)
            found += points
            pairs += [(a, b)] * len(points)
            if points and moving[[a, b]].any():
                self._refuse(a, b)
        if detector is self._detector:
            still = [
                (a, b) for a, b in asked if stands[a] != stands[b] and not moving[a] | moving[b]
            ]
            self._clearances.measure(still, self._distance)
        contacts = np.zeros(len(found), CONTACT_POINT)
        for contact, point in zip(contacts, found, strict=True):
            contact["feature"] = -1
            contact["position"], contact["normal"], contact["gap"] = point[5], point[7], point[8]
        detector.complete(contacts, np.array(pairs, np.int64).reshape(-1, 2))
        return contacts

    def _knows(self, link: int) -> bool:
        return all(spec.known for spec in self._shapes[link].shapes)

    def _points(self, a: int, b: int) -> tuple[tuple[Any, ...], ...]:
        """Bullet's contact points of two links, with the second one as Bullet's body A."""
        (other, other_link), (body, link) = self._links[a], self._links[b]
        points: tuple[tuple[Any, ...], ...] = pybullet.getContactPoints(
            body, other, link, other_link, physicsClientId=self.client
        )
        return points

    def _refuse(self, a: int, b: int) -> None:
        """Say which body that may move is in contact with one of ours."""
        (other, _), (body, _) = self._links[a], self._links[b]
        name = text_of(pybullet.getBodyInfo(other, self.client)[1])
        ours = {each.links[0].partition("/")[0]: each.body for each in self._own}
        raise StrangerError(
            f"body {body} is in contact with body {other} ('{name}'), which may move and is not"
            f" part of the system; {how_to_join(ours, other)}, or keep them apart with"
            " setCollisionFilterPair",
            body,
            other,
        )

    def detector(self) -> Detector:
        """The detector with all bodies around where these are now."""
        around = self._around
        around.look()
        known = around.generation, around.version
        if self._detector is None or known[0] != self._known[0]:
            self._build(self._bodies_near(self._detector))
        elif known != self._known:
            self._take_near(self._bodies_near(self._detector))
        self._known = around.generation, around.version
        if not self._surfaces:
            self._read_surfaces()
        self._place_bystanders()
        assert self._detector is not None
        return self._detector

    def whole(self) -> Detector:
        """The detector, from now on with all bodies of the world, however far they are."""
        if not self._all_near:
            self._all_near = True
            self._around.look()
            self._build(self._bodies_near(None))
        return self.detector()

    def _bodies_near(self, detector: Detector | None) -> list[ShapedBody]:
        """Bodies besides the mechanism's that may be in the region of a detector, as it is now."""
        others = [number for number in self._around.bodies if number not in self._ids]
        self._around.watch(others)
        if self._all_near:
            return [self._around.bodies[number] for number in others]
        if detector is None:
            return []
        near = self._around.near(*detector.region)
        return [one for one in near if one.number not in self._ids]

    def _take_near(self, near: list[ShapedBody]) -> None:
        """Build the detector anew unless it has all these bodies."""
        if not {one.number for one in near} <= {each.body.number for each in self._bystanders}:
            self._build(near)

    def _follow(self, detector: Detector, dt: float) -> Detector:
        """The detector with what is near where the mechanism was at its last detection."""
        detector.follow(SLACK, AHEAD * dt)
        self._take_near(self._bodies_near(detector))
        return self.detector()

    def _build(self, near: list[ShapedBody]) -> None:
        """A detector of the mechanism and of what is near it, which knows what collides already."""
        before, known = self._detector, {each: k for k, each in enumerate(self._links)}
        around = self._around
        same = before is not None and self._known[0] == around.generation
        if before is not None:
            self._elsewhere = self._telling() if same else {}
        self._links, self._shapes, self._bystanders = [], [], []
        carriers: list[int] = []
        for own in self._own:
            body = around.bodies.get(own.body)
            if body is not None:
                self._add(body, carriers, [own.carriers[link + 1] for link in body.links])
        strangers = [False] * len(carriers)
        for body in near:
            self._bystanders.append(Bystander(body, len(self._links)))
            self._add(body, carriers, [0] * len(body.links))
            strangers += [moves(body.number, link, self.client) for link in body.links]
        specs = [spec for each in self._shapes for spec in each.shapes]
        owners = [
            Owner(carrier, k, each.margin)
            for k, (carrier, each) in enumerate(zip(carriers, self._shapes, strict=True))
            for _ in each.shapes
        ]
        links = np.zeros(len(self._links), SURFACE_LINK)
        links["body"] = carriers
        links["robot"] = [body for body, _ in self._links]
        links["number"] = [number_of(*place) for place in self._links]
        numbers = dict.fromkeys(body for body, _ in self._links)
        rigid = [x for n in numbers for x in around.bodies[n].rigid]
        links["stranger"] = np.array(strangers, bool) | ~np.array(rigid, bool)
        detector = Detector(self._mechanism, links, records_of(specs, owners))
        if self._all_near:
            detector.region[:] = [[-np.inf], [np.inf]]
        elif before is not None:
            detector.region[:] = before.region
        if before is not None and same:
            shared = [k for k, each in enumerate(self._links) if each in known]
            old = [known[self._links[k]] for k in shared]
            detector.collide[np.ix_(shared, shared)] = before.collide[np.ix_(old, old)]
        self._places = [-1] * len(self._bystanders)
        self._detector, self._surfaces = detector, False
        self._clearances = Clearances(detector)
        self._apply(detector)
        self._put_ways(detector)
        self._place_own(detector, self._ids)

    def _add(self, body: ShapedBody, carriers: list[int], own: Sequence[int]) -> None:
        """Add the links of a body."""
        self._links += [(body.number, link) for link in body.links]
        self._shapes += body.shapes
        carriers += own

    def _read_surfaces(self) -> None:
        """Read how links rub and bounce; all is built anew if margins of hulls have changed."""
        detector, changed = self._detector, False
        assert detector is not None
        for k, (body, link) in enumerate(self._links):
            info = pybullet.getDynamicsInfo(body, link, self.client)
            record = detector.links[k]
            for name, value in zip(RUBBING.values(), (info[1], *info[5:8]), strict=True):
                record[name] = value
            given = info[9] > 0.0
            record["stiffness"] = info[9] if given else 0.0
            record["damping"] = info[8] if given else CONTACT_DAMPING
            scales = self.scales.get((body, link))
            record["scaled"] = scales is not None
            record["scales"] = (1.0, 1.0, 1.0) if scales is None else scales
            hulls = any(spec.hull is not None for spec in self._shapes[k].shapes)
            if hulls and self._shapes[k].rounding != info[11]:
                read = self._around.bodies[body]
                if read.shapes[read.links.index(link)].rounding != info[11]:
                    read.read_again(link)
                changed = True
        put_surfaces(detector.links, self.names(), self._given)
        self._surfaces = True
        if changed:
            self._build([each.body for each in self._bystanders])
            self._read_surfaces()

    def _place_own(
        self, detector: Detector, bodies: Container[int], standing: bool = False
    ) -> None:
        """Put shapes of the links of some bodies on the mechanism's, or of those that stand."""
        owns = {own.body: own for own in self._own if own.body in bodies}
        for k, (body, link) in enumerate(self._links):
            own = owns.get(body)
            if own is None or (standing and own.carriers[link + 1] > 0):
                continue
            on = self._mechanism.links[own.links[link + 1]]
            if (body, link) not in self._inertial:
                info = pybullet.getDynamicsInfo(body, link, self.client)
                self._inertial[body, link] = matrix(info[4]), np.array(info[3])
            axes, com = self._inertial[body, link]
            self._put(detector, k, (on.R @ axes, on.p + on.R @ com))

    def _place_bystanders(self) -> None:
        """Put shapes of bodies around where these are."""
        assert self._detector is not None
        for k, (body, first) in enumerate(self._bystanders):
            if self._places[k] != body.version:
                self._places[k] = body.version
                self._clearances.forget(first, len(body.links))
                self._detector.place(first, *body.motion(), body.reaches)

    def _put(self, detector: Detector, link: int, place: Pose) -> None:
        """Put a link's shapes where its inertial frame is on its body."""
        R, p = place
        axes, origins = detector.shapes["R"], detector.shapes["p"]  # of records one is slow to get
        detector.links["R"][link] = R
        for k, spec in enumerate(self._shapes[link].shapes, detector.links["first"].item(link)):
            axes[k], origins[k] = R @ spec.R, p + R @ spec.p


def number_of(body: int, link: int) -> int:
    """One number for a link of a body."""
    return body * LINKS_OF_BODY + link + 1


def renumbered(decisions: Decisions, now: Mapping[int, int]) -> Decisions:
    """Decisions where bodies have other ids: those of now, by those of then."""

    def number(before: int) -> int:
        body, link = place_of(before)
        return number_of(now[body], link)

    known = {(number(a), number(b)): what for (a, b), what in decisions.known.items()}
    return decisions._replace(known=known)


def place_of(number: int) -> tuple[int, int]:
    """Body and link of such a number."""
    body, link = divmod(number, LINKS_OF_BODY)
    return body, link - 1


class ContactFork:
    """Contacts of states of the same bodies in one thread of several.

    Bullet, which all threads share, is asked by one at a time. Whether links collide is found out
    anew in every world: what comes out does not depend on who asked first.
    """

    def __init__(self, finder: ContactFinder, detector: Detector, names: list[str]) -> None:
        self._finder, self._detector, self._names = finder, detector, names
        self._known = detector.collide.copy()
        self._far: tuple[float, Detector] | None = None

    def renew(self, finder: ContactFinder, whole: Detector) -> bool:
        """Begin anew with the world as it stands; False if its finder or shapes are others."""
        if finder is not self._finder or not self._detector.take(whole):
            return False
        self._known[:], self._names, self._far = whole.collide, finder.names(), None
        return True

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

    def reaching(self, gap: float) -> Detector:
        """Finds contacts of what is nearer than a gap [m] too."""
        if self._far is None or self._far[0] != gap:
            self._far = gap, self._detector.reaching(gap)
        far = self._far[1]
        far.links[:], far.bodies[:] = self._detector.links, self._detector.bodies
        far.collide[:] = self._detector.collide
        return far

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
