"""Closing the loops of many groups at once, after Bullet's step."""

from collections.abc import Iterable

from bulletbridge.drop_in.filtered import FilteredGroup
from bulletbridge.drop_in.group import ALONE, Group
from bulletbridge.inequalities.filter import Filters


class Closing:
    """Has all groups of a client read, filtered in one compiled call, and written."""

    def __init__(self) -> None:
        self._filters: Filters | None = None

    def finish_step(self, groups: Iterable[Group]) -> None:
        """Bring Bullet's state onto the loops of all groups.

        Warns:
            BulletBridgeWarning: Loops of a group cannot be closed near it; there it stays.
        """
        found: list[float] = []
        counts: list[int] = []
        taking: list[FilteredGroup] = []
        for group in groups:
            count = group.after_step(found)
            if count != ALONE and isinstance(group, FilteredGroup):
                taking.append(group)
                counts.append(count)
        if not taking:
            return
        filters = self._of(taking)
        for group, filtered in zip(taking, filters(found, counts), strict=True):
            group.take(filtered)

    def _of(self, groups: list[FilteredGroup]) -> Filters:
        """Their filters in a row: those of the last step, unless others are taking part."""
        wanted = [group.filter for group in groups if group.filter is not None]
        if self._filters is None or not self._filters.are(wanted):
            self._filters = Filters(wanted)
        return self._filters
