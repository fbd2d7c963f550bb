"""Bodies of a Bullet world with their shapes and where these are, for all that find contacts there.

Every system and every group of bodies finds its own contacts, and all of them look on the others.
Shapes are read once, and places are asked for once a look, whoever looks; who is near whom is told
from boxes that are larger than the bodies, and change only where one leaves its own.
"""

from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from itertools import chain
from time import perf_counter, thread_time
from typing import Any

import numpy as np
import pybullet

from bulletbridge.bullet.collision_shapes import LinkShapes, boundless, reach_of, read_shapes
from bulletbridge.bullet.contacts import RIGID
from bulletbridge.bullet.coordinates import Floats
from bulletbridge.bullet.stamps import stamp
from bulletbridge.compilation.progress import Spinner
from bulletbridge.numerics.records import Array, Ints

Place = tuple[Floats, Floats]
"""Position and quaternion."""
Pose = tuple[Array, Array]
"""Axes (3, 3) and origin (3,)."""
SLACK = 0.25
"""Of its size, by which what stands for a body is larger than it on each side."""
LONG = 0.3
"""Processor time from which on somebody is told that shapes are read [s]."""


class ShapedBody:
    """A body of the world.

    Args:
        number: Bullet's id.
        client: Physics client.

    Attributes:
        stamp_id: Of its mark,
        stamp: and what that says.
        links: Those with shapes.
        shapes: Theirs.
        rigid: Whether each of them is rigid.
        places: Positions and quaternions of their inertial frames, when they were looked at last.
        version: Rises when they are elsewhere.
        reaches: How far the shapes of each link reach from there, and its contacts [m].
        surrounded: Places that the box which stands for it is around,
        room: and how far each link may go from there [m].
    """

    def __init__(self, number: int, client: int) -> None:
        self.number, self._client = number, client
        self.stamp_id, self.stamp = stamp(number, client)
        self._joints = pybullet.getNumJoints(number, client)
        self.links, self.shapes = list[int](), list[LinkShapes]()
        with slow_reading(number, client) as tell_if_slow:
            for link in range(-1, self._joints):
                read = self._read(link)
                if read.shapes:
                    self.links.append(link)
                    self.shapes.append(read)
                tell_if_slow()
        self.rigid = [self._is_rigid(link) for link in self.links]
        self.reaches = np.array([reach_of(each.shapes) + each.margin for each in self.shapes])
        self.places: tuple[Any, ...] = ()
        self._before: tuple[Any, ...] = ()  # places before they were these
        self.version = 0
        self.surrounded: tuple[Any, ...] = ()
        self.room = 0.0
        self._told, self._motion = -1, (np.zeros((0, 7)), np.zeros((0, 7)))

    def _is_rigid(self, link: int) -> bool:
        return pybullet.getDynamicsInfo(self.number, link, self._client)[10] in RIGID

    def _read(self, link: int) -> LinkShapes:
        rigid = self._is_rigid(link)
        return read_shapes(self.number, link, self._client) if rigid else boundless()

    def read_again(self, link: int) -> None:
        """Read a link's shapes again, of which Bullet's margin has changed."""
        self.shapes[self.links.index(link)] = self._read(link)

    def look(self, rests: bool = False) -> bool:
        """See where it is; whether it was elsewhere.

        Args:
            rests: Whether where it was is where it was a step ago.
        """
        places = self._places()
        if places == self.places:
            if rests and self._before is not self.places:
                self.stand(self.places)
            return False
        self._before, self.places = self.places or places, places
        self.version += 1
        return True

    def stand(self, places: tuple[Place, ...]) -> None:
        """Have been at places for longer than a step."""
        if self.places != places or self._before != places:
            self.version += 1
            self._told = -1
        self.places = self._before = places

    def strays(self, rests: bool) -> bool:
        """``look``; whether a link is farther than ``room`` from where it was surrounded.

        Most bodies of a crowd are loose boxes, of which many are looked at in every step.
        """
        if self._joints > 0:
            return self.look(rests) and self.has_strayed
        base: Place = pybullet.getBasePositionAndOrientation(self.number, self._client)
        places = self.places
        if base == places[0]:
            if rests and self._before is not places:
                self.stand(places)
            return False
        self._before, self.places = places, (base,)
        self.version += 1
        return self._is_beyond(base, self.surrounded[0])

    @property
    def has_strayed(self) -> bool:
        """Whether a link is farther than ``room`` from where it was surrounded."""
        return any(map(self._is_beyond, self.places, self.surrounded))

    def _is_beyond(self, now: Place, surrounded: Place) -> bool:
        """Whether a link has come farther than it may."""
        (x, y, z), (a, b, c), room = now[0], surrounded[0], self.room
        return not (abs(x - a) <= room and abs(y - b) <= room and abs(z - c) <= room)

    def _places(self) -> tuple[Any, ...]:
        base = pybullet.getBasePositionAndOrientation(self.number, self._client)
        if self._joints == 0:
            return (base,)
        others = [link for link in self.links if link >= 0]
        states = pybullet.getLinkStates(
            self.number, others, computeForwardKinematics=1, physicsClientId=self._client
        )
        own = (base,) if self.links[0] < 0 else ()
        return (*own, *(state[:2] for state in states))

    def motion(self) -> tuple[Array, Array]:
        """Where its links' inertial frames were before, and when they were looked at last.

        Returns:
            Positions and quaternions (n, 7) of both.
        """
        if self._told != self.version:
            known = self._told == self.version - 1
            before = self._motion[1] if known else _numbers(self._before)
            self._motion, self._told = (before, _numbers(self.places)), self.version
        return self._motion


@contextmanager
def slow_reading(body: int, client: int) -> Generator[Callable[[], None]]:
    """Context in which a body's shapes are read, which takes long for meshes of many corners.

    What it gives is to be called meanwhile: it tells of that on stderr once it has taken long.
    """
    worked, begun, spinner = thread_time(), perf_counter(), list[Spinner]()
    name = pybullet.getBodyInfo(body, client)[1].decode(errors="replace")

    def tell_if_slow() -> None:
        if not spinner and thread_time() - worked > LONG:
            spinner.append(Spinner(f"preparing the collision meshes of '{name}'"))

    try:
        yield tell_if_slow
    finally:
        for each in spinner:
            each.stop(f"the collision meshes of '{name}' took {perf_counter() - begun:.1f} s")


def _numbers(places: tuple[Place, ...]) -> Array:
    """Places as an array (n, 7)."""
    numbers = chain.from_iterable(chain.from_iterable(places))
    return np.array([*numbers]).reshape(-1, 7)  # of tuples numpy takes twice as long


class ShapedBodies:
    """All bodies of one client that have shapes.

    Attributes:
        bodies: By Bullet's id, in the order in which it has them.
        generation: Rises when bodies come or go.
        version: Rises when one leaves the box that stands for it.
    """

    def __init__(self, client: int) -> None:
        self._client = client
        self.bodies: dict[int, ShapedBody] = {}
        self.generation = self.version = 0
        self._count = -1  # of all bodies
        self._marks: list[tuple[int, bytes]] = []  # of each, by which it is known
        self._watched: list[ShapedBody] = []  # those whose places anybody asks for
        self._row: dict[int, int] = {}  # of these, in the arrays
        self._lower, self._upper = np.zeros((0, 3)), np.zeros((0, 3))  # boxes that stand for them
        self._at = np.zeros((0, 3))  # lower corners of their own, when they left those
        self._held = self._looked = False
        self._stepping = set[int]()  # who has begun a step since ``end_step``
        self._rests = False  # whether what is not moved by the next look is at rest

    def begin_step(self, who: int) -> None:
        """Note that somebody begins a step: a second one comes after all others' first ones."""
        if who in self._stepping:
            self.end_step()
        self._stepping.add(who)

    def end_step(self) -> None:
        """Note that a step was made: what is not moved until the next one is at rest."""
        self._stepping.clear()
        self._rests = True

    def hold(self) -> None:
        """Let all that look until ``let_go`` see what the first one sees."""
        self._held, self._looked = True, False

    def let_go(self) -> None:
        """Look anew from now on, whoever does."""
        self._held = False

    def look(self) -> None:
        """See which bodies there are, and where."""
        if self._held and self._looked:
            return
        self._recount()
        rests, self._rests = self._rests, False
        moved = [one for one in self._watched if one.strays(rests)]
        if moved:
            self._surround(moved)
        self._looked = True

    def watch(self, numbers: Collection[int]) -> None:
        """Add bodies, by number, to those whose place is read before each search for contacts."""
        new = [one for n in numbers if n not in self._row and (one := self.bodies.get(n))]
        if not new:
            return
        for one in new:
            self._row[one.number] = len(self._watched)
            self._watched.append(one)
            one.look()
        nowhere = np.full((len(new), 3), np.nan)
        self._lower, self._upper, self._at = (
            np.vstack([known, nowhere]) for known in (self._lower, self._upper, self._at)
        )
        self._surround(new)

    def places(self) -> dict[int, tuple[Place, ...]]:
        """Where bodies were when they were looked at last, by number; to go on from with ``stand``.

        How fast they come nearer is told by how far they are from there.
        """
        self._recount()  # which may be another world's by now, whose client had this number
        return {number: one.places for number, one in self.bodies.items() if one.places}

    def stand(self, places: Mapping[int, tuple[Place, ...]]) -> None:
        """Go on from places; bodies that have none stand where they are looked at next."""
        self._recount()
        for number, one in self.bodies.items():
            one.stand(places.get(number, ()))
        if not all(one.places for one in self._watched):
            self.watch_anew()
            return
        strayed = [one for one in self._watched if one.has_strayed]
        if strayed:
            self._surround(strayed)

    def watch_anew(self) -> None:
        """Take all bodies from those whose place is read; ``watch`` adds them again."""
        self._watched, self._row = [], {}
        self._lower = self._upper = self._at = np.zeros((0, 3))
        self.version += 1

    def near(self, lower: Array, upper: Array) -> list[ShapedBody]:
        """Watched bodies that may be in a box, in Bullet's order.

        There are no others until ``version`` is another.

        Args:
            lower: (3,) its lower corner [m],
            upper: (3,) and the upper one.
        """
        apart = (self._lower > upper).any(axis=1) | (self._upper < lower).any(axis=1)
        found = {self._watched[k].number for k in np.flatnonzero(~apart).tolist()}
        return [one for number, one in self.bodies.items() if number in found]

    def _recount(self) -> None:
        count = pybullet.getNumBodies(physicsClientId=self._client)
        if count != self._count or not self._all_there():
            self._gather(count)

    def _all_there(self) -> bool:
        told, client = pybullet.getUserData, self._client  # asked in every step
        try:
            for stamp_id, mark in self._marks:
                if told(stamp_id, client) != mark:
                    return False
        except pybullet.error:
            return False
        return True

    def _gather(self, count: int) -> None:
        """Read those bodies that are new, and forget those that are gone."""
        client, before, watched = self._client, self.bodies, set(self._row)
        self.bodies, self._count = {}, count
        for place in range(count):
            number = pybullet.getBodyUniqueId(place, physicsClientId=client)
            known = before.get(number)
            if known is None or stamp(number, client)[1] != known.stamp:
                known = ShapedBody(number, client)
            self.bodies[number] = known
        self._marks = [(one.stamp_id, one.stamp) for one in self.bodies.values()]
        self.bodies = {n: one for n, one in self.bodies.items() if one.links}
        self.generation += 1
        self.watch_anew()
        self.watch(watched)

    def _surround(self, moved: list[ShapedBody]) -> None:
        """Put other boxes around some bodies."""
        centres = np.array([position for one in moved for position, _ in one.places])
        reaches = np.concatenate([one.reaches for one in moved])[:, None]
        ends = np.cumsum([0] + [len(one.reaches) for one in moved])
        first: Ints = ends[:-1]
        lower = np.minimum.reduceat(centres - reaches, first)
        upper = np.maximum.reduceat(centres + reaches, first)
        rows = np.array([self._row[one.number] for one in moved])
        size = upper - lower
        came = np.nan_to_num(np.abs(lower - self._at[rows]))  # since the last time
        slack = SLACK * size + np.minimum(came, size)
        self._lower[rows], self._upper[rows], self._at[rows] = lower - slack, upper + slack, lower
        for one, room in zip(moved, slack.min(axis=1).tolist(), strict=True):
            one.surrounded, one.room = one.places, room
        self.version += 1


WORLDS: dict[int, ShapedBodies] = {}
"""By physics client."""


def shaped_bodies(client: int) -> ShapedBodies:
    """The shaped bodies of a client, kept from when they are first asked for."""
    known = WORLDS.get(client)
    if known is None:
        known = WORLDS[client] = ShapedBodies(client)
    return known
