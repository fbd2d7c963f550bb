"""The loop constraints of one Bullet client, and the systems that close them."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.constraints.loop import Frame, JointModel, LoopJoint, Triple
from bulletbridge.errors import BulletBridgeError, BulletBridgeWarning
from bulletbridge.mechanism.bullet import BulletBodies, read_bullet
from bulletbridge.mechanism.model import WORLD
from bulletbridge.simulation.system import System
from bulletbridge.surface.worlds import link_ids, readable

MODELS = {
    pybullet.JOINT_POINT2POINT: JointModel.BALL,
    pybullet.JOINT_FIXED: JointModel.WELD,
    pybullet.JOINT_PRISMATIC: JointModel.PRISMATIC,
}
NOBODY = -1


@dataclass(frozen=True)
class Loop:
    """What became of a constraint that was created in Bullet.

    Attributes:
        number: Bullet's id.
        bodies: Ids of the bodies that it joins, without the world.
        exact: Whether it is closed to round-off; otherwise it is Bullet's own.
        reason: Why it is Bullet's own; empty when it is not.
    """

    number: int
    bodies: tuple[int, ...]
    exact: bool = True
    reason: str = ""


class Bridge:
    """Watches constraints come and go, and closes those that can be.

    Bodies that constraints join, directly or through others, make up one system, which is read at
    the first step after something has changed.
    """

    def __init__(self, client: int) -> None:
        self.client = client
        self._loops: dict[int, Loop] = {}
        self._systems: dict[frozenset[int], System] = {}
        self._stale: set[int] = set()  # bodies to be read again

    def loops(self) -> dict[int, Loop]:
        """What became of each constraint, by its id."""
        self._read_stale()
        return dict(self._loops)

    def add(self, number: int) -> None:
        """Take note of a constraint that Bullet has created."""
        info = pybullet.getConstraintInfo(number, physicsClientId=self.client)
        bodies = tuple(sorted({body for body in (info[0], info[2]) if body != NOBODY}))
        loop = Loop(number, bodies)
        if info[4] not in MODELS:
            loop = replace(loop, exact=False, reason="gears are Bullet's own")
        self._loops[number] = loop
        self._stale |= set(bodies)

    def release(self, number: int, reason: str) -> None:
        """Leave a constraint to Bullet from now on."""
        loop = self._loops.get(number)
        if loop is not None and loop.exact:
            self._loops[number] = replace(loop, exact=False, reason=reason)
            self._stale |= set(loop.bodies)

    def remove(self, number: int) -> None:
        """Forget a constraint."""
        loop = self._loops.pop(number, None)
        if loop is not None:
            self._stale |= set(loop.bodies)

    def remove_body(self, body: int) -> None:
        """Forget a body and its constraints, as Bullet does."""
        for number in [n for n, loop in self._loops.items() if body in loop.bodies]:
            self.remove(number)
        self._stale.add(body)

    def read_again(self, body: int) -> None:
        """Note that a body is not what it was when it was read."""
        if any(body in group for group in self._systems):
            self._stale.add(body)

    def clear(self) -> None:
        """Forget everything."""
        self._loops.clear()
        self._systems.clear()
        self._stale.clear()

    def close_loops(self) -> None:
        """Bring Bullet's state onto all loops.

        Warns:
            BulletBridgeWarning: Some could not be closed near Bullet's state, which then stays.
        """
        if self._stale:
            self._read_stale()
        for system in self._systems.values():
            try:
                world = system.world
                system.filter(world.contacts() if isinstance(world, BulletBodies) else None)
            except BulletBridgeError as error:
                warnings.warn(
                    f"Bullet's own state stays after this step: {error}",
                    BulletBridgeWarning,
                    stacklevel=4,
                )

    def _read_stale(self) -> None:
        """Make systems of the bodies that have changed."""
        if not self._stale:
            return
        for group in [group for group in self._systems if group & self._stale]:
            del self._systems[group]
        self._stale.clear()
        exact = [loop for loop in self._loops.values() if loop.exact]
        for group in islands(loop.bodies for loop in exact):
            if group not in self._systems:
                members = [loop for loop in exact if group & set(loop.bodies)]
                self._make_system(group, members)

    def _make_system(self, group: frozenset[int], loops: list[Loop]) -> None:
        """One system for bodies that hang together; Bullet keeps what cannot be modelled."""
        names = {f"body{body}": body for body in sorted(group)}
        try:
            with warnings.catch_warnings():
                # inertias are Bullet's, whatever the file says
                warnings.simplefilter("ignore", BulletBridgeWarning)
                world = read_bullet(readable(names), self.client)
            links = {place: name for name, place in link_ids(names, self.client).items()}
            joints = [self._joint(loop.number, links) for loop in loops]
            dt: float = pybullet.getPhysicsEngineParameters(physicsClientId=self.client)[
                "fixedTimeStep"
            ]
            self._systems[group] = System(
                world.mechanism, joints, world=world, dt=dt, allow_structure=True
            )
        except BulletBridgeError as error:
            for loop in loops:
                self._loops[loop.number] = replace(loop, exact=False, reason=str(error))
            warnings.warn(
                f"constraints {[loop.number for loop in loops]} stay Bullet's own: {error}",
                BulletBridgeWarning,
                stacklevel=5,
            )

    def _joint(self, number: int, links: dict[tuple[int, int], str]) -> LoopJoint:
        """A constraint of Bullet as ours: from inertial frames to link frames."""
        info = pybullet.getConstraintInfo(number, physicsClientId=self.client)
        parent, parent_link, child, child_link, kind, axis = info[:6]
        a = self._frame(parent, parent_link, info[6], info[8], links)
        b = self._frame(child, child_link, info[7], info[9], links)
        model = MODELS[kind]
        if model is not JointModel.PRISMATIC:
            return LoopJoint(f"constraint {number}", model, a, b)
        # Bullet's axis is given in the parent's inertial frame, not in the constraint's
        along = tuple(Rotation.from_quat(info[8]).inv().apply(axis).tolist())
        return LoopJoint(f"constraint {number}", model, a, b, along)

    def _frame(
        self,
        body: int,
        link: int,
        position: Triple,
        quaternion: tuple[float, float, float, float],
        links: dict[tuple[int, int], str],
    ) -> Frame:
        """A frame given in a link's inertial frame, or in the world, on the link itself."""
        R, p = Rotation.from_quat(quaternion), np.asarray(position, float)
        name = WORLD
        if body != NOBODY:
            dynamics = pybullet.getDynamicsInfo(body, link, physicsClientId=self.client)
            inertial = Rotation.from_quat(dynamics[4])
            p, R = np.asarray(dynamics[3]) + inertial.apply(p), inertial * R
            name = links[body, link]
        x, y, z = p.tolist()
        roll, pitch, yaw = R.as_euler("xyz").tolist()
        return Frame(name, (x, y, z), (roll, pitch, yaw))


def islands(groups: Iterable[tuple[int, ...]]) -> list[frozenset[int]]:
    """Bodies that hang together."""
    found: list[frozenset[int]] = []
    for group in map(frozenset, groups):
        touching = [island for island in found if island & group]
        found = [island for island in found if not island & group]
        found.append(group.union(*touching))
    return found
