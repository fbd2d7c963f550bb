"""The constraints of one Bullet client, as they come and go."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import pybullet

from bulletbridge.bullet.constraints import (
    AT_FIRST,
    NOBODY,
    ONLY_HERE,
    SHOWN_LIMIT,
    CreatedConstraint,
    Info,
    change_twin,
    create_native,
    describe,
    info_of,
    is_held,
    judged,
)
from bulletbridge.bullet.watched_calls import native_of

MOVES = {"jointChildPivot", "jointChildFrameOrientation"}
EVERY_STEP = MOVES | {"userConstraintUniqueId", "maxForce"}
"""What programs say of a frame that they move at every step."""


class Changed(NamedTuple):
    """What ``changeConstraint`` did.

    Attributes:
        answer: PyBullet's.
        loop: The constraint as it is now; None where Bullet has none of this number.
        moved: Whether its child frame was moved.
        anew: Whether its bodies must be read again.
    """

    answer: Any
    loop: CreatedConstraint | None = None
    moved: bool = False
    anew: bool = False


class Registry:
    """The constraints of one client, and what has become of each.

    Those that the client has already are taken over.

    Attributes:
        loops: The constraints by Bullet's id.
    """

    def __init__(self, client: int) -> None:
        self._client = client
        self.loops: dict[int, CreatedConstraint] = {}
        if pybullet.isConnected(client):
            for place in range(pybullet.getNumConstraints(physicsClientId=client)):
                number = pybullet.getConstraintUniqueId(place, physicsClientId=client)
                self.loops[number] = describe(number, client)

    def create(self, given: dict[str, Any]) -> CreatedConstraint:
        """Create a constraint in Bullet and take note of it."""
        client, kind, twin = self._client, given.get("jointType"), -1
        if kind in ONLY_HERE:
            number, twin = create_native(given, client)
        else:
            number = pybullet.createConstraint(**given, physicsClientId=client)
        axis = tuple(map(float, given.get("jointAxis", ())))
        loop = describe(number, client, kind=kind, twin=twin, axis=axis, **AT_FIRST)
        if kind == pybullet.JOINT_PRISMATIC:
            info = info_of(number, client)
            ends: tuple[tuple[int, int], ...] = (info[0], info[1]), (info[2], info[3])
            moving = not any(is_held(body, link, client) for body, link in ends)
            loop = replace(loop, slides=moving)
        self.loops[number] = loop
        return loop

    def change(self, given: dict[str, Any]) -> Changed:
        """Change a constraint in Bullet, and here what follows from it."""
        loop = self.loops.get(given.get("userConstraintUniqueId", NOBODY))
        told = given if loop is None else without_gear_erp(loop, given)
        answer = native_of(pybullet.changeConstraint)(**told, physicsClientId=self._client)
        if loop is None:
            return Changed(answer)
        if loop.moving and not loop.by_base and loop.twin < 0 and given.keys() <= EVERY_STEP:
            limit = limit_in(given, loop.max_force)
            if limit == loop.max_force and not ("maxForce" in given and loop.unpredicted):
                return Changed(answer, loop, not MOVES.isdisjoint(given))
        if loop.twin >= 0:
            change_twin(loop, given, self._client)
        new = loop
        if "maxForce" in given:
            new = replace(new, max_force=limit_in(given, None), unpredicted=False)
        if "gearRatio" in given:
            new = replace(new, ratio=float(given["gearRatio"]))
        if "gearAuxLink" in given:
            new = replace(new, auxiliary=int(given["gearAuxLink"]))
        if new.kind == pybullet.JOINT_GEAR:
            for ours, theirs in (("erp", "erp"), ("target", "relativePositionTarget")):
                if theirs in given:
                    new = replace(new, **{ours: float(given[theirs])})
        moved = bool(MOVES & set(given))
        by_base = loop.by_base and not moved
        new = judged(replace(new, moving=loop.moving or moved, by_base=by_base))
        self.loops[loop.number] = new
        anew = replace(new, max_force=loop.max_force, target=loop.target) != loop
        return Changed(answer, new, moved, anew)

    def remove(self, given: dict[str, Any]) -> CreatedConstraint | None:
        """Remove a constraint from Bullet; what it was here."""
        pybullet.removeConstraint(**given, physicsClientId=self._client)
        loop = self.loops.pop(given["userConstraintUniqueId"], None)
        if loop is not None and loop.twin >= 0:
            pybullet.removeConstraint(loop.twin, physicsClientId=self._client)
        return loop

    def twins(self) -> set[int]:
        """Ids of native constraints that nobody asked for."""
        return {loop.twin for loop in self.loops.values() if loop.twin >= 0}

    def numbers(self) -> list[int]:
        """Ids of all constraints that were asked for, in Bullet's order."""
        count, hidden = pybullet.getNumConstraints(physicsClientId=self._client), self.twins()
        every = [
            pybullet.getConstraintUniqueId(place, physicsClientId=self._client)
            for place in range(count)
        ]
        return [number for number in every if number not in hidden]

    def shown(self, number: int, info: Info) -> Info:
        """Bullet's description of a constraint, with the type that was asked for."""
        loop = self.loops.get(number)
        if loop is None:
            return info
        if loop.kind == pybullet.JOINT_GEAR:
            return (*info[:14], loop.erp, *info[15:])
        if not (loop.unpredicted or loop.kind in ONLY_HERE):
            return info
        limit = SHOWN_LIMIT if loop.max_force is None else loop.max_force
        return (*info[:4], loop.kind, loop.axis, *info[6:10], limit, *info[11:])


def limit_in(given: dict[str, Any], known: float | None) -> float | None:
    """The force limit that a change asks for, or the known one; an infinite one is none."""
    limit = given.get("maxForce", known)
    return None if limit is None or math.isinf(limit) else float(limit)


def without_gear_erp(loop: CreatedConstraint, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments as Bullet is told them: gears between two bodies hold rates alone.

    With an erp it takes both positions from the first body, and drives the gear elsewhere.
    """
    if loop.kind != pybullet.JOINT_GEAR or len(loop.bodies) < 2 or "erp" not in given:
        return given
    return {**given, "erp": 0.0}
