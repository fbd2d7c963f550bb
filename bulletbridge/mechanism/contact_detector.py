"""Collision detection of one mechanism, with the room that it takes."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bulletbridge.collision.records import PLACED, SHARE_AT_REST, UNDECIDED, UNKNOWN, Room
from bulletbridge.collision.shapes import Shapes, room
from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.mechanism.contact_detection import (
    ASKED,
    CONTACTS,
    COUNTS,
    LOWER,
    OUTSIDE,
    PAIRS,
    STRANGER,
    UPPER,
    Detection,
    LinksAround,
    Nearby,
    find_contacts,
    finish_contacts,
    place_links,
    vary_contacts,
)
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import CONTACT_POINT, POSE
from bulletbridge.mechanism.surfaces import SURFACE_LINK
from bulletbridge.numerics.records import Array, Ints

RUBBING = {
    "lateral_friction": "friction",
    "restitution": "restitution",
    "rolling_friction": "rolling",
    "spinning_friction": "spinning",
}
"""How a link rubs and bounces: URDF's names, and fields of ``SURFACE_LINK``, in Bullet's order."""


class Detector:
    """Finds all contacts at a configuration in one compiled call.

    Args:
        mechanism: Whose bodies move.
        links: (n,) as contacts see them, those of the mechanism first; may be changed in place.
        shapes: On these, in their order; the records may be changed in place.

    Attributes:
        region: (2, 3) corners of where links of the mechanism meet nothing else; nowhere at first.
        collide: (n, n) whether two links collide, the smaller first; to be decided at first.
        counts: (COUNTS,) of the last detection.
        contacts: Those of the last detection, and more.
        call: The detection with its arrays, stored; takes q, v and dt.
        version: Rises with the room that it takes.
        asked: Pairs of links, as the larger times n + the smaller, that it could not decide on.
    """

    def __init__(self, mechanism: Mechanism, links: np.ndarray, shapes: Shapes) -> None:
        self.links, self.shapes, self._shapes = links, shapes.shapes, shapes
        assert links.dtype == SURFACE_LINK
        self._mechanism, self._hulls = mechanism, shapes.hulls
        n = len(links)
        self.region: Array = np.array([[np.inf] * 3, [-np.inf] * 3])
        links["first"] = np.searchsorted(self.shapes["link"], np.arange(n))
        self.collide: Ints = np.full((n, n), UNDECIDED, np.int64)
        self.counts: Ints = np.zeros(COUNTS, np.int64)
        self.asked: Ints = np.zeros(max(n * (n - 1) // 2, 1), np.int64)
        order: Ints = np.arange(len(self.shapes), dtype=np.int64)
        self._order, self._around = order, np.full((len(self.shapes), 6), np.nan)
        self._room: Room = room()
        self._placed = np.zeros(len(self.shapes), PLACED)
        self._poses = np.zeros(len(mechanism.bodies), POSE)
        self._poses["R"][0] = np.eye(3)
        self.bodies = mechanism.bodies.copy()
        self._on_links = self.shapes.copy()
        self._place: Callable[[tuple[int, Array, Array, Array]], int] | None = None
        self._own = (
            self.bodies,
            mechanism.beams.copy(),
            mechanism.stations.copy(),
            self._poses,
            mechanism.axes.copy(),
        )
        self.version = 0
        self._vary: StoredCall | None = None
        self._allocate(64, 256)

    def _allocate(self, contacts: int, pairs: int) -> None:
        """Make room for so many contacts and pairs of shapes."""
        self.contacts = np.zeros(contacts, CONTACT_POINT)
        self._pairs: Ints = np.zeros(pairs, np.int64)
        self._around[:] = np.nan  # nothing is listed
        made = Detection(
            *self._own, self.shapes, self.links, self.region, self._hulls, self.collide,
            self._placed, self._order, self._around, self._room, self._pairs, self.contacts,
            self.asked, self.counts,
        )  # fmt: skip
        rest = np.zeros(self._mechanism.nq), np.zeros(self._mechanism.nv), 0.0
        with announce_compilation(find_contacts):
            self.call = StoredCall(find_contacts, (made,), rest)
        self._made, self._vary = made, None
        self.version += 1

    def vary(self, example: Nearby) -> StoredCall:
        """``vary_contacts`` with the arrays of this detector, stored, to be given ``Nearby``."""
        if self._vary is None:
            with announce_compilation(vary_contacts):
                self._vary = StoredCall(vary_contacts, (self._made,), (example,))
        return self._vary

    def place(self, first: int, before: Array, now: Array, reaches: Array) -> None:
        """Put links that no body of the mechanism carries where they are in the world.

        Args:
            first: The first of them.
            before: (n, 7) positions and quaternions of their inertial frames at the last look,
            now: (n, 7) and at this one.
            reaches: (n,) how far from there their points are at most [m].
        """
        rest = first, before, now, reaches
        if self._place is None:
            all_links = LinksAround(self.links, self.shapes, self._on_links)
            with announce_compilation(place_links):
                self._place = StoredCall(place_links, (all_links,), rest).call
        self._place(rest)

    def find(self, q: Array, v: Array, dt: float) -> tuple[np.ndarray, bool]:
        """Contacts (n,) of dtype ``CONTACT_POINT`` at a configuration, valid until the next.

        Args:
            q: (nq,)
            v: (nv,) rates, which say from how far bodies may meet in
            dt: a step [s].

        Returns:
            Contacts, and whether that is all: no pair of links is ``undecided``, none is of a
            ``stranger``, and the mechanism is within ``region``.
        """
        count = self.call.call((q, v, dt))
        while count < 0:
            pairs, contacts = int(self.counts[PAIRS]), int(self.counts[CONTACTS])
            if pairs <= len(self._pairs) and contacts <= len(self.contacts):
                return self.contacts[:contacts], False
            self._allocate(max(len(self.contacts), 2 * contacts), max(len(self._pairs), 2 * pairs))
            count = self.call.call((q, v, dt))
        return self.contacts[:count], True

    def copy(self) -> "Detector":
        """Another one of the same shapes, links and decisions, for another thread."""
        other = Detector(self._mechanism, self.links.copy(), self._shapes)
        other.take(self)
        return other

    def take(self, other: "Detector") -> bool:
        """Begin anew with links and decisions of another one; False if it has other shapes."""
        if self._shapes is not other._shapes:
            return False
        self.links[:], self.bodies[:], self.region[:] = other.links, other.bodies, other.region
        self.collide[:], self._on_links[:] = other.collide, other.shapes
        self._order[:], self._around[:] = np.arange(len(self._order)), np.nan
        return True

    def reaching(self, gap: float) -> "Detector":
        """Another one that tells whatever is nearer than a gap [m], wherever it is."""
        shapes = self.shapes.copy()
        shapes["margin"] = np.maximum(shapes["margin"], gap / SHARE_AT_REST)
        other = Detector(self._mechanism, self.links.copy(), self._shapes._replace(shapes=shapes))
        other.bodies[:], other.collide[:] = self.bodies, self.collide
        other.region[:] = [[-np.inf], [np.inf]]
        return other

    def complete(self, contacts: np.ndarray, pairs: Ints) -> None:
        """Write links and surfaces of contacts (n,) of which place, normal and gap are known.

        At the configuration of the last detection.

        Args:
            contacts: (n,)
            pairs: (n, 2) links of each, the larger number first.
        """
        finish_contacts(contacts, pairs, self.links, self._poses)

    def places_of(self, links: Ints) -> Array:
        """Origins and axes (n, 12) of what carries links, at the last detection."""
        bodies, poses = self.links["body"][links], self._poses
        origins = poses["origin"][bodies] + poses["p"][bodies]
        return np.concatenate((origins, poses["R"][bodies].reshape(-1, 9)), axis=1)

    def reaches_of(self, links: Ints) -> Array:
        """How far the shapes of links reach from these origins (n,), at most."""
        reaches = np.zeros(len(links))
        for k, at in enumerate(self.places_of(links)[:, :3]):
            placed = self._placed[self.shapes["link"] == links[k]]
            corners = np.maximum(placed["upper"] - at, at - placed["lower"])
            reaches[k] = np.linalg.norm(corners, axis=1).max()
        return reaches

    def way_by(self, link: int, R: Array, p: Array) -> float:
        """How far a link's points go at most [m] if all is taken from x to R x + p."""
        placed = self._placed[self.shapes["link"] == link]
        lower, upper = placed["lower"].min(axis=0), placed["upper"].max(axis=0)
        if not np.isfinite(upper - lower).all():  # planes have no end
            return float(np.linalg.norm(p))
        middle, turn = 0.5 * (lower + upper), R - np.eye(3)
        reach = 0.5 * np.linalg.norm(upper - lower)
        return float(np.linalg.norm(turn @ middle + p) + np.linalg.norm(turn) * reach)

    @property
    def has_left(self) -> bool:
        """Whether the mechanism had left the region at the last detection."""
        return bool(self.counts[OUTSIDE])

    def follow(self, slack: float, ahead: float) -> None:
        """Put the region around where the mechanism was at the last detection.

        Args:
            slack: By how much more than its size, on each side.
            ahead: Time [s] for which there is room besides.
        """
        own = self.shapes["body"] > 0
        placed, margins = self._placed[own], self.shapes["margin"][own, None]
        lower = (placed["lower"] - margins).min(axis=0)
        upper = (placed["upper"] + margins).max(axis=0)
        room = slack * (upper - lower) + ahead * placed["speed"].max()
        self.region[LOWER], self.region[UPPER] = lower - room, upper + room

    def undecided(self) -> list[tuple[int, int]]:
        """Pairs of links, the larger number first, that the last detection could not decide on."""
        n = len(self.links)
        found = self.asked[: self.counts[ASKED]].tolist()
        return [divmod(pair, n) for pair in found]

    @property
    def knows_shapes(self) -> bool:
        """Whether it knew all shapes near each other at the last detection, and who moves them.

        Links of two robots that it could not decide on are told, those of one are not.
        """
        unknown = set(self.shapes["link"][self.shapes["kind"] == UNKNOWN].tolist())
        asked = {link for pair in self.undecided() for link in pair}
        return self.stranger() is None and not unknown & asked

    def stranger(self) -> tuple[int, int] | None:
        """Two links in contact of which one may move and is no part of the mechanism."""
        pair = int(self.counts[STRANGER]) - 1
        return None if pair < 0 else divmod(pair, len(self.links))


def surfaces_of(links: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    """How links (n,) of a detector rub and bounce: ``NAME.FIELD`` by name, the first of a name."""
    found: dict[str, float] = {}
    for name, link in zip(names, links, strict=True):
        for field, own in RUBBING.items():
            found.setdefault(f"{name}.{field}", float(link[own]))
    return found


def put_surfaces(links: np.ndarray, names: Sequence[str], surfaces: Mapping[str, float]) -> None:
    """Write numbers of ``surfaces_of`` into links (n,) of a detector, all of a name alike."""
    for given, value in surfaces.items():
        name, _, field = given.rpartition(".")
        own = RUBBING[field]
        for k, known in enumerate(names):
            if known == name:
                links[k][own] = value
