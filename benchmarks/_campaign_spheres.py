"""Spheres on links among walls: a world of the campaign, by the judge's kinematics."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from _campaign_judge import Judge, Moving, cross, norm, turned

from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import CONTACT_POINT
from bulletbridge.numerics.records import Array

ROOM = 0.02
"""Gaps [m] from which contacts are told, besides what bodies come nearer by in two steps."""


class Sphere(NamedTuple):
    """A sphere on a body.

    Attributes:
        body: Its number.
        place: (3,) of its centre in the body [m].
        radius: Of it [m].
    """

    body: int
    place: Array
    radius: float


class Wall(NamedTuple):
    """Half of space: none is where n·x < offset [m], with a unit normal n (3,)."""

    normal: Array
    offset: float


class Surface(NamedTuple):
    """How all of them rub and bounce."""

    friction: float = 0.5
    restitution: float = 0.0
    rolling: float = 0.0
    spinning: float = 0.0


class Spheres:
    """A world in which spheres meet walls and each other, found without Bullet and our kernels.

    Args:
        mechanism: What they are part of.
        state: Its q (nq,) and v (nv,) when the world is asked first.
        spheres: On its bodies.
        walls: At rest.
        surface: Of all of them.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        state: tuple[Array, Array],
        spheres: Sequence[Sphere],
        walls: Sequence[Wall],
        surface: Surface = Surface(),  # noqa: B008  # it cannot be changed
    ) -> None:
        self._judge, self._state = Judge(mechanism, ()), state
        self.spheres, self.walls, self.surface = tuple(spheres), tuple(walls), surface
        self.pairs = self._pairs(mechanism)

    def _pairs(self, mechanism: Mechanism) -> tuple[tuple[int, int], ...]:
        """Spheres that may meet: on bodies without a joint between them, and apart at first."""
        centres, _ = self._centres(self._judge.moving(self._state[0][None], self._state[1][None]))
        parents, found = mechanism.bodies["parent"], list[tuple[int, int]]()
        for k, one in enumerate(self.spheres):
            for m, other in enumerate(self.spheres[:k]):
                joined = one.body in (other.body, parents[other.body])
                apart = float(np.linalg.norm(centres[k] - centres[m]))
                if not joined and parents[one.body] != other.body:
                    if apart > one.radius + other.radius:
                        found.append((m, k))
        return tuple(found)

    def _centres(self, m: Moving) -> tuple[Array, Array]:
        """Centres (n, 3) of all spheres [m] and their velocities [m/s]."""
        body = [s.body for s in self.spheres]
        way = turned(m.R[0, body], np.array([s.place for s in self.spheres]))
        return m.p[0, body] + way, m.u[0, body] + cross(m.w[0, body], way)

    def clearance(self, q: Array, normal: Array) -> list[float]:
        """How far each sphere's lowest point along a normal (3,) is from the origin [m]."""
        rest = np.zeros(self._judge.mechanism.nv)
        centres, _ = self._centres(self._judge.moving(q[None], rest[None]))
        return (centres @ normal - [s.radius for s in self.spheres]).tolist()

    def gaps(self, q: Array) -> dict[int, float]:
        """Distances [m] of all that may meet, by a number of its own for each."""
        rest = np.zeros(self._judge.mechanism.nv)
        centres, _ = self._centres(self._judge.moving(q[None], rest[None]))
        found, radius = dict[int, float](), [s.radius for s in self.spheres]
        for w, wall in enumerate(self.walls):
            for k, height in enumerate(self.clearance(q, wall.normal)):
                found[self._number(-1 - w, k)] = height - wall.offset
        for one, other in self.pairs:
            apart = float(np.linalg.norm(centres[other] - centres[one]))
            found[self._number(one, other)] = apart - radius[one] - radius[other]
        return found

    def _number(self, one: int, other: int) -> int:
        return (one + len(self.walls)) * len(self.spheres) + other

    def contact_points(self, q: Array, v: Array, dt: float) -> np.ndarray:
        """Contacts at a state, and what comes near within two steps [s]."""
        centres, speeds = self._centres(self._judge.moving(q[None], v[None]))
        room = ROOM + 2.0 * dt * norm(speeds)
        points = list[tuple[int, int, Array, Array, float, int]]()
        for w, wall in enumerate(self.walls):
            for k, sphere in enumerate(self.spheres):
                gap = float(wall.normal @ centres[k]) - wall.offset - sphere.radius
                if gap < room[k]:
                    at = centres[k] - sphere.radius * wall.normal
                    own = self._number(-1 - w, k)
                    points.append((0, sphere.body, at, wall.normal, gap, own))
        for one, other in self.pairs:
            a, b = self.spheres[one], self.spheres[other]
            way = centres[other] - centres[one]
            apart = float(np.linalg.norm(way))
            gap = apart - a.radius - b.radius
            if gap < room[one] + room[other]:
                normal = way / apart
                at, own = centres[other] - b.radius * normal, self._number(one, other)
                points.append((a.body, b.body, at, normal, gap, own))
        found = np.zeros(len(points), CONTACT_POINT)
        for point, (a, b, at, normal, gap, own) in zip(found, points, strict=True):
            point["body_a"], point["body_b"], point["position"] = a, b, at
            point["normal"], point["gap"], point["pair"] = normal, gap, own
        found["friction"] = found["friction_across"] = self.surface.friction
        found["restitution"], found["rolling"] = self.surface.restitution, self.surface.rolling
        found["spinning"] = self.surface.spinning
        return found

    def state(self) -> tuple[Array, Array]:
        """Where it begins."""
        return self._state

    def write(self, q: Array, v: Array) -> None:
        """Nobody looks."""

    def detector(self) -> None:
        """It is asked in Python."""
        return

    def touching(self, contacts: np.ndarray) -> list[tuple[str, str]]:
        """Nobody asks for names."""
        return []

    def check(self) -> None:
        """Nothing goes away."""

    def check_properties(self) -> None:
        """Nothing changes."""

    def look(self, acting: Callable[[], Array]) -> None:
        """Nobody moves anything."""

    def accept(self) -> None:
        """Nobody moves anything."""

    def forget(self) -> None:
        """Nothing is remembered."""
