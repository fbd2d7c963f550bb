"""Links that fixed constraints hold inside one another, and that do not collide meanwhile.

Contacts would push them apart against the constraint. Bullet's own constraint gives way, so that
they end side by side; where they are held as they are to be, Bullet's points of a contact, one on
each body, stay as far apart as the bodies are deep in one another, and its friction between these
two places turns the pair in mid-air.
"""

from collections.abc import Iterable
from contextlib import suppress
from itertools import combinations
from typing import Any

import pybullet

from bulletbridge.bullet.collision_filters import CollisionFilters, Place
from bulletbridge.bullet.constraints import info_of
from bulletbridge.drop_in.joined_bodies import JoinedBodies
from bulletbridge.errors import warn_user

DEEP = 2e-3
"""Penetration [m] that no contact of bodies has that came to touch before they were joined."""


class HeldInside:
    """Pairs of links of a group that are kept from colliding.

    Args:
        joined: Bodies and constraints.
        filters: What the program has said of which links collide.
        client: Physics client.
    """

    def __init__(self, joined: JoinedBodies, filters: CollisionFilters, client: int) -> None:
        self._joined, self._filters, self._client = joined, filters, client
        self._pairs: list[tuple[Place, Place]] = []
        self._rigid: dict[int, int] = {}  # what each moving part goes along with

    def part(self) -> None:
        """Keep links from colliding that are held deep inside one another where they are now.

        Warns:
            BulletBridgeWarning: There are such; it has the deepest pair.
        """
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
                if self._part_of(pair[0]) != self._part_of(pair[1]) or pair in self._pairs:
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
        for loop in self._joined.loops.values():
            known = loop.number in self._joined.models
            if not known or loop.kind != pybullet.JOINT_FIXED or loop.max_force is not None:
                continue
            info = info_of(loop.number, self._client)
            if info[2] >= 0:
                one, other = self._part_of((info[0], info[1])), self._part_of((info[2], info[3]))
                if one != other:
                    self._rigid[one] = other
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

    def _collide(self, pair: tuple[Place, Place], on: bool) -> None:
        (one, place), (other, there) = pair
        pybullet.setCollisionFilterPair(one, other, place, there, int(on), self._client)


def deep(points: Iterable[Any] | None) -> list[tuple[int, int, float]]:
    """Links of two bodies, and how far one is in the other [m], where that is much."""
    return [(point[3], point[4], -point[8]) for point in points or () if point[8] < -DEEP]
