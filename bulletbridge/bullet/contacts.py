"""Points that stick in the contacts of Bullet's own step.

Bullet's own step has balanced contacts, motors and loops. What is left of the loops' gaps is then
closed by small motions that friction never sees; points that carry load must not take part in them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pybullet

from bulletbridge.mechanism.records import STICKING_POINT
from bulletbridge.mechanism.surfaces import MOST_FRICTION
from bulletbridge.numerics.records import Packing

STUCK_IN_BULLET = 0.95
"""Share of the largest friction force up to which a contact of Bullet's step is taken to stick:
its forces are not converged as ours are."""
RIGID = 1, 2
"""Body types in getDynamicsInfo: rigid bodies, of maximal coordinates and of reduced ones."""
NO_STICKING_POINTS = np.zeros(0, STICKING_POINT)

pack_sticking = Packing(STICKING_POINT, 5)  # up to the normal

CARRIED = -1, -1, 0.0
"""What stands for bodies a and b where one is no part of the mechanism, and floats."""

Key = tuple[int, int, int, int]
"""Body, other body, link, other link."""


class StickingReader:
    """Reads which points of some bodies stick in the contacts of Bullet's last step.

    Args:
        client: Physics client.
        bodies: Bodies of the mechanism by Bullet's id: of the base, and of link 0, 1, ...

    Attributes:
        carries: Whether a floating body that is no part of the mechanism pressed on the bodies when
            they were read last, or one of them, without joints, slid on what stands still. What a
            fixed base holds is no load, and wedged in between two such it would press with more and
            more; feet of a robot slide where its motors let them.
        forces: What the sticking points carried that were read last [N].
    """

    def __init__(self, client: int, bodies: Mapping[int, tuple[int, ...]]) -> None:
        self.client, self.bodies = client, dict(bodies)
        self._pairs: dict[Key, tuple[int, int, float] | None] = {}
        self.carries = False
        self.forces: list[float] = []

    def forget(self) -> None:
        """Read friction coefficients again, after ``changeDynamics`` of whatever is in contact."""
        self._pairs.clear()

    def read(self) -> np.ndarray:
        """Sticking points (n,) among the contacts of the last step; see ``sticking``."""
        get, client = pybullet.getContactPoints, self.client
        if len(self.bodies) == 1:
            (body,) = self.bodies
            return self.sticking(get(bodyA=body, physicsClientId=client))
        points = [
            point for body in self.bodies for point in get(bodyA=body, physicsClientId=client)
        ]
        return self.sticking(points)

    def sticking(self, points: Sequence[Any]) -> np.ndarray:
        """Sticking points (n,) among those of ``getContactPoints``, as ``System.filter`` wants.

        A point sticks, in all directions, while it carries load and its friction force is inside
        the cone. One that slides does not: kept along its normal alone, it would be pushed aside.
        Between two bridged bodies it is the relative motion, and a contact that both report counts
        once; against what stands still it is the motion itself. What may move and is not bridged
        keeps nothing in place: it is carried, or is carried along.

        They are sorted: in what order Bullet lists contacts hangs on what was there before, which
        no state of its own holds.
        """
        numbers: list[float] = []
        forces: list[float] = []
        self.carries, self.forces = False, forces
        if not points:
            return NO_STICKING_POINTS
        pairs = self._pairs
        for point in sorted(points):
            _, body, other, link, other_link, at, _, normal, _, force, f1, _, f2, _ = point
            if not force > 0.0:
                continue
            key = body, other, link, other_link
            if key not in pairs:
                pairs[key] = self._pair(*key)
            pair = pairs[key]
            if pair is None:
                continue
            if pair is CARRIED:
                self.carries = True
                continue
            a, b, friction = pair
            reach = friction * force
            if f1 * f1 + f2 * f2 < reach * reach:
                numbers += a, b, 3, *at, *normal
                forces.append(force)
            elif a == 0 and len(self.bodies[body]) == 1:
                self.carries = True
        return pack_sticking(numbers) if numbers else NO_STICKING_POINTS

    def _pair(
        self, body: int, other: int, link: int, other_link: int
    ) -> tuple[int, int, float] | None:
        """Bodies a and b of the mechanism, and the friction up to which they stick.

        None for contacts that keep nothing in place, or that the other body reports too;
        ``CARRIED`` for those with a load. Body 0 is what is no part of the mechanism.
        """
        places, bodies = ((body, link), (other, other_link)), self.bodies
        ours, theirs = (bodies[each][index + 1] if each in bodies else 0 for each, index in places)
        if ours == theirs or (other in bodies and other < body):
            return None
        if other not in bodies and moves(other, other_link, self.client):
            return CARRIED if is_floating(other, self.client) else None
        friction = 1.0
        for each, index in places:
            friction *= pybullet.getDynamicsInfo(each, index, self.client)[1]
        return theirs, ours, STUCK_IN_BULLET * min(abs(friction), MOST_FRICTION)


def is_floating(body: int, client: int) -> bool:
    """Whether the base of a body is free."""
    mass: float = pybullet.getDynamicsInfo(body, -1, client)[0]
    return mass > 0.0


def moves(body: int, link: int, client: int) -> bool:
    """Whether a link can move: its base is free, or a joint lies between it and the base."""
    if is_floating(body, client):
        return True
    while link >= 0:
        info = pybullet.getJointInfo(body, link, client)
        if info[2] != pybullet.JOINT_FIXED:
            return True
        link = info[16]
    return False


def can_move(body: int, client: int) -> bool:
    """Whether any part of a body can move."""
    if pybullet.getDynamicsInfo(body, -1, client)[10] not in RIGID:
        return True
    links = range(-1, pybullet.getNumJoints(body, client))
    return any(moves(body, link, client) for link in links)
