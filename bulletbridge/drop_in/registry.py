"""The constraints of one Bullet client, as they come and go."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pybullet

from bulletbridge.drop_in.loops import (
    NOBODY,
    ONLY_HERE,
    SHOWN_LIMIT,
    Info,
    Loop,
    change_twin,
    create_native,
    describe,
    info_of,
    is_held,
    judged,
    with_axis,
)

MOVES = {"jointChildPivot", "jointChildFrameOrientation"}
EVERY_STEP = MOVES | {"userConstraintUniqueId", "maxForce"}
"""What programs say of a frame that they move at every step."""


class LoadedRobot(NamedTuple):
    """What ``loadURDF`` was told of a body: its file, and the factor on its lengths."""

    path: Path
    scale: float


class Ledger:
    """What is known of the constraints of a client.

    Those that the client has already are taken over.

    Attributes:
        client: Physics client.
        robots: Files of bodies that ``loadURDF`` has loaded since the client is known.
        search_path: Where Bullet looks for files besides the working directory.
    """

    def __init__(self, client: int) -> None:
        self.client = client
        self.robots: dict[int, LoadedRobot] = {}
        self.search_path = Path()
        self._loops: dict[int, Loop] = {}
        self._stale: set[int] = set()  # bodies to be read again
        self._unseen = False  # whether Bullet has constraints that it has not made a step with
        if pybullet.isConnected(client):
            for place in range(pybullet.getNumConstraints(physicsClientId=client)):
                number = pybullet.getConstraintUniqueId(place, physicsClientId=client)
                self._add(describe(number, client))

    def native(self, name: str, given: dict[str, Any]) -> Any:
        """Call PyBullet's own function for this client."""
        return getattr(pybullet, name)(**given, physicsClientId=self.client)

    def create(self, given: dict[str, Any]) -> int:
        """Create a constraint in Bullet and take note of it."""
        kind, twin = given.get("jointType"), -1
        if kind in ONLY_HERE:
            number, twin = create_native(given, self.client)
        else:
            number = self.native("createConstraint", given)
        loop = describe(number, self.client, kind)
        info = info_of(number, self.client)
        axis = tuple(map(float, given["jointAxis"]))
        loop = with_axis(replace(loop, twin=twin, max_force=None, axis=axis), info)
        ends: tuple[tuple[int, int], ...] = (info[0], info[1]), (info[2], info[3])
        moving = not any(is_held(body, link, self.client) for body, link in ends)
        self._add(replace(loop, slides=kind == pybullet.JOINT_PRISMATIC and moving))
        return number

    def change(self, given: dict[str, Any]) -> Any:
        """Change a constraint in Bullet, and here what follows from it."""
        loop = self._loops.get(given.get("userConstraintUniqueId", NOBODY))
        answer = self.native("changeConstraint", given if loop is None else known_well(loop, given))
        if loop is None:
            return answer
        if loop.moving and loop.twin < 0 and given.keys() <= EVERY_STEP:
            limit = given.get("maxForce", loop.max_force)
            if limit == loop.max_force and not ("maxForce" in given and loop.unpredicted):
                self._changed(loop, not MOVES.isdisjoint(given))
                return answer
        if loop.twin >= 0:
            change_twin(loop, given, self.client)
        new = loop
        if "maxForce" in given:
            new = replace(new, max_force=float(given["maxForce"]), unpredicted=False)
        if "gearRatio" in given:
            new = replace(new, ratio=float(given["gearRatio"]))
        if "gearAuxLink" in given:
            new = replace(new, auxiliary=max(int(given["gearAuxLink"]), NOBODY))
        if new.kind == pybullet.JOINT_GEAR:
            for ours, theirs in (("erp", "erp"), ("target", "relativePositionTarget")):
                if theirs in given:
                    new = replace(new, **{ours: float(given[theirs])})
        moved = bool(MOVES & set(given))
        new = judged(replace(new, moving=loop.moving or moved))
        self._loops[loop.number] = new
        if replace(new, max_force=loop.max_force, target=loop.target) != loop:
            self._stale |= set(new.bodies)
        self._changed(new, moved)
        return answer

    def _changed(self, loop: Loop, moved: bool) -> None:
        """A constraint's force limit was changed, or its child frame moved."""

    def remove(self, given: dict[str, Any]) -> Any:
        """Remove a constraint."""
        answer = self.native("removeConstraint", given)
        loop = self._forget(given["userConstraintUniqueId"])
        if loop is not None and loop.twin >= 0:
            pybullet.removeConstraint(loop.twin, physicsClientId=self.client)
        return answer

    def twins(self) -> set[int]:
        """Ids of native constraints that nobody asked for."""
        return {loop.twin for loop in self._loops.values() if loop.twin >= 0}

    def numbers(self) -> list[int]:
        """Ids of all constraints that were asked for, in Bullet's order."""
        count, hidden = pybullet.getNumConstraints(physicsClientId=self.client), self.twins()
        every = [
            pybullet.getConstraintUniqueId(place, physicsClientId=self.client)
            for place in range(count)
        ]
        return [number for number in every if number not in hidden]

    def shown(self, number: int, info: Info) -> Info:
        """Bullet's description of a constraint, with the type that was asked for."""
        loop = self._loops.get(number)
        if loop is None:
            return info
        if loop.kind == pybullet.JOINT_GEAR:
            return (*info[:14], loop.erp, *info[15:])
        if not (loop.unpredicted or loop.kind in ONLY_HERE):
            return info
        limit = SHOWN_LIMIT if loop.max_force is None else loop.max_force
        return (*info[:4], loop.kind, loop.axis, *info[6:10], limit, *info[11:])

    def _add(self, loop: Loop) -> None:
        self._loops[loop.number] = loop
        self._stale |= set(loop.bodies)
        self._unseen = True  # asked for the force of a gear before a step, Bullet ends the process

    def _forget(self, number: int) -> Loop | None:
        loop = self._loops.pop(number, None)
        if loop is not None:
            self._stale |= set(loop.bodies)
        return loop


def known_well(loop: Loop, given: dict[str, Any]) -> dict[str, Any]:
    """What Bullet is told of a change: gears between two bodies hold rates alone.

    With an erp it takes both positions from the first body, and drives the gear elsewhere.
    """
    if loop.kind != pybullet.JOINT_GEAR or len(loop.bodies) < 2 or "erp" not in given:
        return given
    return {**given, "erp": 0.0}
