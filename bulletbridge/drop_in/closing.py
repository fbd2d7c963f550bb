"""Closing the loops of many groups at once, after Bullet's step."""

from collections.abc import Iterable

import pybullet

from bulletbridge.bullet.state import now_and_then
from bulletbridge.bullet.watched_calls import native_of
from bulletbridge.drop_in.exact import ExactGroup
from bulletbridge.drop_in.filtered import FilteredGroup
from bulletbridge.drop_in.joined_bodies import ALONE
from bulletbridge.inequalities.filter import Filters

Group = FilteredGroup | ExactGroup
"""Bodies that constraints join, with the steps of one mode."""


class Closing:
    """Has all groups of a client read, filtered in one compiled call, and written.

    Args:
        client: Physics client.
    """

    def __init__(self, client: int) -> None:
        self._client = client
        self._filters: Filters | None = None
        self._looks = now_and_then()

    def finish_step(self, groups: Iterable[Group]) -> None:
        """Bring Bullet's state onto the loops of all groups.

        Warns:
            BulletBridgeWarning: Loops of a group cannot be closed near it; there it stays.
        """
        if next(self._looks):
            for group in groups:
                if isinstance(group, FilteredGroup):
                    group.look_closely()
        client, stamp_of, states = self._client, pybullet.getUserData, pybullet.getJointStates
        reset = native_of(pybullet.resetJointStatesMultiDof)
        found: list[float] = []
        counts: list[int] = []
        taking: list[FilteredGroup] = []
        for group in groups:
            plain = group.plain
            if plain is None or stamp_of(plain.stamp_id, client) != plain.stamp:
                count = group.after_step(found)
            elif isinstance(group, ExactGroup):
                body, joints, _, _ = plain
                shown, n, count = group.lone_state(), len(joints), ALONE
                reset(body, joints, [*zip(shown[:n])], [*zip(shown[n:-1])], client)
            else:
                positions, rates, _, _ = zip(*states(plain.body, plain.joints, client), strict=True)
                found += positions
                found += rates
                count = 0
            if count != ALONE and isinstance(group, FilteredGroup):
                taking.append(group)
                counts.append(count)
        if not taking:
            return
        filters = self._of(taking)
        all_filtered = filters(found, counts)
        for group, filtered, part in zip(taking, all_filtered, filters.parts, strict=True):
            plain = group.plain
            if plain is None or isinstance(filtered, int):
                group.take(filtered, found[part])
                continue
            body, joints, _, _ = plain
            n = len(joints)
            reset(body, joints, [*zip(filtered[:n])], [*zip(filtered[n:])], client)

    def _of(self, groups: list[FilteredGroup]) -> Filters:
        """Their filters in a row: those of the last step, unless others are taking part."""
        wanted = [group.filter for group in groups if group.filter is not None]
        if self._filters is None or not self._filters.are(wanted):
            self._filters = Filters(wanted)
        return self._filters
