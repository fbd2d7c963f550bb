"""Gaps without directions that are redundant by design, for our solver and Bullet's alike."""

from collections.abc import Iterable
from dataclasses import replace

from bulletbridge.bullet.constraints import CreatedConstraint
from bulletbridge.drop_in.filtered import RigidReading
from bulletbridge.drop_in.joined_bodies import JoinedBodies
from bulletbridge.drop_in.session import Session, islands
from bulletbridge.errors import BulletBridgeError
from bulletbridge.system.evaluation import Gap


class KeptGaps:
    """Gaps of one client's constraints; where Bullet steps alone, groups are made to look only."""

    def __init__(self) -> None:
        self._loops: frozenset[CreatedConstraint] = frozenset()
        self._actions: object = None  # a new one with each reset of the world
        self._groups: list[JoinedBodies] = []

    def of(self, session: Session, loops: Iterable[CreatedConstraint]) -> dict[str, Gap]:
        """Gaps by the names of the loops, of those that can be modelled."""
        groups = [group.joined for group in session.groups.values()]
        if session.mode == "native":
            groups = self._watched(session, loops)
        return {gap.name: gap for group in groups for gap in group.gaps()}

    def _watched(self, session: Session, loops: Iterable[CreatedConstraint]) -> list[JoinedBodies]:
        # frames that move would have to be followed; force limits do not matter here
        still = [replace(n, max_force=None) for n in loops if n.exact and not n.moving]
        if self._loops == frozenset(still) and self._actions is session.actions:
            return self._groups
        self._loops, self._actions = frozenset(still), session.actions
        self._groups = []
        for bodies in islands(loop.bodies for loop in still):
            among = [loop for loop in still if bodies & set(loop.bodies)]
            try:
                reading = RigidReading(session.client)
                self._groups.append(JoinedBodies(bodies, among, session.client, reading))
            except BulletBridgeError:
                continue
        return self._groups
