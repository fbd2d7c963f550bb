"""Bullet's contacts as points that hold while the loops are closed.

Bullet's own step has balanced contacts, motors and loops. What is left of the loops' gaps is then
closed by small motions that friction never sees; points that carry load must not take part in them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pybullet

from bulletbridge.mechanism.layout import HELD_COLUMNS
from bulletbridge.numerics.records import Array

STICKING = 0.95
"""Share of the largest friction force up to which a contact is taken to stick."""
MOST_FRICTION = 10.0
"""Bullet's bound on the product of two friction coefficients."""
NO_POINTS = np.zeros((0, HELD_COLUMNS))

Key = tuple[int, int, int, int]
"""Body, other body, link, other link."""


class Contacts:
    """Finds the points of some bodies that contacts hold.

    Args:
        client: Physics client.
        bodies: Bodies of the mechanism by Bullet's id: of the base, and of link 0, 1, ...
    """

    def __init__(self, client: int, bodies: Mapping[int, tuple[int, ...]]) -> None:
        self.client, self.bodies = client, dict(bodies)
        self._pairs: dict[Key, tuple[int, int, float] | None] = {}

    def forget(self) -> None:
        """Read friction coefficients again, after ``changeDynamics`` of whatever touches a body."""
        self._pairs.clear()

    def read(self) -> Array:
        """Points (n, 9) held by the contacts of the last step; see ``held``."""
        get, client = pybullet.getContactPoints, self.client
        if len(self.bodies) == 1:
            (body,) = self.bodies
            return self.held(get(bodyA=body, physicsClientId=client))
        points = [
            point for body in self.bodies for point in get(bodyA=body, physicsClientId=client)
        ]
        return self.held(points)

    def held(self, points: Iterable[Any]) -> Array:
        """Points that hold among those of ``getContactPoints``, (n, 9) as ``System.filter`` wants.

        A point is held, in all directions, while it carries load and its friction force is inside
        the cone. One that slides is not: held along its normal alone, it would be pushed aside.
        Between two bridged bodies it is the relative motion, and a contact that both report counts
        once; against any other body it is the motion itself.
        """
        pairs = self._pairs
        numbers: list[float] = []
        for _, body, other, link, other_link, at, _, normal, _, force, f1, _, f2, _ in points:
            if not force > 0.0:
                continue
            key = body, other, link, other_link
            if key not in pairs:
                pairs[key] = self._pair(*key)
            pair = pairs[key]
            if pair is None:
                continue
            a, b, friction = pair
            reach = friction * force
            if f1 * f1 + f2 * f2 < reach * reach:
                numbers += a, b, *at, *normal, 3.0
        return np.array(numbers).reshape(-1, HELD_COLUMNS) if numbers else NO_POINTS

    def _pair(
        self, body: int, other: int, link: int, other_link: int
    ) -> tuple[int, int, float] | None:
        """Bodies a and b of the mechanism, and the friction up to which they stick.

        None for contacts that hold nothing, or that the other body reports too.
        """
        ours, theirs = self._find(body, link), self._find(other, other_link)
        if ours == theirs or (other in self.bodies and other < body):
            return None
        friction = 1.0
        for each, index in ((body, link), (other, other_link)):
            friction *= pybullet.getDynamicsInfo(each, index, self.client)[1]
        return theirs, ours, STICKING * min(abs(friction), MOST_FRICTION)

    def _find(self, body: int, link: int) -> int:
        """Body of the mechanism; 0 for what is not part of it."""
        return self.bodies[body][link + 1] if body in self.bodies else 0
