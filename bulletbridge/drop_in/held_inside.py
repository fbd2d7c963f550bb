"""Links that fixed constraints hold inside one another, and that do not collide meanwhile.

Contacts would push them apart against the constraint. Bullet's own constraint gives way, so that
they end side by side; where they are held as they are to be, Bullet's points of a contact, one on
each body, stay as far apart as the bodies are deep in one another, and its friction between these
two places turns the pair in mid-air.
"""

import math
from collections.abc import Iterable, Set
from contextlib import suppress
from itertools import combinations
from typing import Any, NamedTuple

import pybullet

from bulletbridge.bullet.collision_filters import CollisionFilters, Place
from bulletbridge.bullet.constraints import info_of, is_held
from bulletbridge.drop_in.joined_bodies import JoinedBodies
from bulletbridge.errors import warn_user

BASE = -1
"""The base, where PyBullet takes a link."""
DEEP = 2e-3
"""Penetration [m] that no contact of bodies has that came to touch before they were joined."""


class InsideMemory(NamedTuple):
    """What is known of links inside one another."""

    pairs: tuple[tuple[Place, Place], ...]
    loose: Set[str] | None


class HeldInside:
    """Pairs of links of a group that are kept from colliding.

    Those with a force limit do so where it is more than pushing the lighter of two bodies out of
    the other within a step would take.

    Args:
        joined: Bodies and constraints.
        filters: What the program has said of which links collide.
        client: Physics client.
    """

    def __init__(self, joined: JoinedBodies, filters: CollisionFilters, client: int) -> None:
        self._joined, self._filters, self._client = joined, filters, client
        self._pairs: list[tuple[Place, Place]] = []
        self._rigid: dict[int, int] = {}  # what each moving part goes along with
        self._limits: dict[int, float] = {}  # the least force that holds a part together
        self._loose: Set[str] | None = None  # what had given way when it was looked

    def begin_anew(self) -> None:
        """Look again: bodies were read anew, or a constraint may give way now, or no more."""
        self.release()
        self._loose = None

    def memory(self) -> InsideMemory:
        """What the next steps go by."""
        return InsideMemory(tuple(self._pairs), self._loose)

    def recall(self, memory: InsideMemory) -> None:
        """Go on from a memory."""
        if tuple(self._pairs) != memory.pairs:
            self.release()
            for pair in memory.pairs:
                self._pairs.append(pair)
                self._collide(pair, False)
        self._loose = memory.loose

    def part(self, given_way: Set[str]) -> None:
        """Keep links from colliding that are held deep inside one another where they are now.

        Args:
            given_way: Constraints that their force limits let open.

        Warns:
            BulletBridgeWarning: There are such; it has the deepest pair.
        """
        if given_way == self._loose:
            return
        if self._loose is not None and given_way - self._loose:
            self.release()
        self._loose = given_way
        self._look()

    def _look(self) -> None:
        """Keep the pairs from colliding that are deep inside one another."""
        client = self._client
        closest, contacts = pybullet.getClosestPoints, pybullet.getContactPoints
        near = [pair for pair in self._held() if deep(closest(*pair, 0.0, physicsClientId=client))]
        if not near:
            return
        pybullet.performCollisionDetection(client)  # which heeds who collides at all
        deepest, told = 0.0, ""
        for one, other in near:
            for place, there, depth in deep(contacts(one, other, physicsClientId=client)):
                pair = (one, place), (other, there)
                part = self._part_of(pair[0])
                if part != self._part_of(pair[1]) or pair in self._pairs:
                    continue
                limit = self._limits.get(part)  # None of what stands still by itself
                if limit is None or depth * self._push(one, other) > limit:
                    continue
                self._pairs.append(pair)
                self._collide(pair, False)
                if depth > deepest:
                    deepest = depth
                    told = f"link {place} of body {one} and link {there} of body {other}"
        if told:
            warn_user(
                f"fixed constraints hold links inside one another, {told} by {deepest:.3g} m: these"
                " do not collide until they are let go; setCollisionFilterPair says so beforehand,"
                " or other frames of the constraints hold them side by side"
            )

    def release(self) -> None:
        """Let them collide again, but for those that the program has said otherwise of."""
        for pair in self._pairs:
            if self._filters.pairs.get(frozenset(pair), True):
                with suppress(pybullet.error):  # of bodies that have been removed
                    self._collide(pair, True)
        self._pairs.clear()

    def _held(self) -> list[tuple[int, int]]:
        """Pairs of bodies parts of which are one rigid body by fixed constraints."""
        self._rigid.clear()
        self._limits.clear()
        for loop in self._joined.loops.values():
            known = loop.number in self._joined.models
            loose = self._loose is not None and loop.name in self._loose
            if not known or loop.kind != pybullet.JOINT_FIXED or loose:
                continue
            info = info_of(loop.number, self._client)
            if info[2] >= 0:
                one, other = self._part_of((info[0], info[1])), self._part_of((info[2], info[3]))
                if one != other:
                    self._rigid[one] = other
                    limit = math.inf if loop.max_force is None else loop.max_force
                    parts = self._limits.get(one, math.inf), self._limits.get(other, math.inf)
                    self._limits[other] = min(limit, *parts)
        if not self._rigid:
            return []
        parts = {
            body: {self._part_of(place) for place in self._joined.links if place[0] == body}
            for body in sorted(self._joined.bodies)
        }
        return [pair for pair in combinations(parts, 2) if parts[pair[0]] & parts[pair[1]]]

    def _part_of(self, place: Place) -> int:
        """The rigid part that a link belongs to, by one of its moving bodies; 0 stands still."""
        name = self._joined.links.get(place)
        part = 0 if name is None else self._joined.system.mechanism.link(name).body
        while part in self._rigid:
            part = self._rigid[part]
        return part

    def _push(self, one: int, other: int) -> float:
        """What takes the lighter of two bodies out of the other in a step [N/m of depth]."""
        client, lighter = self._client, math.inf
        for body in (one, other):
            if not is_held(body, BASE, client):
                links = range(BASE, pybullet.getNumJoints(body, physicsClientId=client))
                info = pybullet.getDynamicsInfo
                lighter = min(lighter, sum(info(body, k, physicsClientId=client)[0] for k in links))
        return lighter / self._joined.system.dt**2

    def _collide(self, pair: tuple[Place, Place], on: bool) -> None:
        (one, place), (other, there) = pair
        pybullet.setCollisionFilterPair(one, other, place, there, int(on), self._client)


def deep(points: Iterable[Any] | None) -> list[tuple[int, int, float]]:
    """Links of two bodies, and how far one is in the other [m], where that is much."""
    return [(point[3], point[4], -point[8]) for point in points or () if point[8] < -DEEP]
