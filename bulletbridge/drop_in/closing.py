"""Closing the loops of many groups at once, after Bullet's step."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate, chain, pairwise, repeat
from operator import itemgetter

import pybullet

from bulletbridge.bullet.state import SingleBody, now_and_then
from bulletbridge.bullet.watched_calls import native_of
from bulletbridge.drop_in.exact import ExactGroup
from bulletbridge.drop_in.filtered import FilteredGroup
from bulletbridge.drop_in.joined_bodies import ALONE
from bulletbridge.inequalities.filter import Filters

Group = FilteredGroup | ExactGroup
"""Bodies that constraints join, with the steps of one mode."""


MOST_KNOWN = 64
"""Ways to take part that are remembered; programs that ask now one group, now another have many."""


class Row:
    """Bodies on fixed bases, read and written with as little in Python as that takes.

    Args:
        bodies: They.
        client: Physics client.
        more: How many other numbers follow q and v of each where they are written.

    Attributes:
        parts: Where q and v of each are.
    """

    def __init__(self, bodies: Sequence[SingleBody], client: int, more: int = 0) -> None:
        self._clients = repeat(client)
        self._ids = [single.body for single in bodies]
        self._joints = [single.joints for single in bodies]
        self._stamp_ids = [single.stamp_id for single in bodies]
        self._stamps = [single.stamp for single in bodies]
        counts = [*map(len, self._joints)]
        ends, count = [*pairwise(accumulate(counts, initial=0))], sum(counts)
        # from positions of all and rates of all to those of the first, then of the second
        places = (k for a, b in ends for k in (*range(a, b), *range(count + a, count + b)))
        self._in_turn: Callable[[tuple[float, ...]], tuple[float, ...]]
        self._in_turn = itemgetter(*places) if bodies else tuple
        starts = [2 * a + more * n for n, (a, _) in enumerate(ends)]
        self._q = [slice(a, a + n) for a, n in zip(starts, counts, strict=True)]
        self._v = [slice(a + n, a + 2 * n) for a, n in zip(starts, counts, strict=True)]
        self.parts = [slice(q.start, v.stop) for q, v in zip(self._q, self._v, strict=True)]
        self._reset = native_of(pybullet.resetJointStatesMultiDof)

    def is_there(self) -> bool:
        """Whether all of them are those that were read."""
        return [*map(pybullet.getUserData, self._stamp_ids, self._clients)] == self._stamps

    def read(self) -> tuple[float, ...]:
        """q and v of the first body, then of the others."""
        told = map(pybullet.getJointStates, self._ids, self._joints, self._clients)
        positions, rates, _, _ = zip(*chain.from_iterable(told), strict=True)
        return self._in_turn(positions + rates)

    def write(self, numbers: Sequence[float]) -> None:
        """Put q and v of the first body, then of the others, into Bullet."""
        columns = [*zip(numbers)]
        q, v = map(columns.__getitem__, self._q), map(columns.__getitem__, self._v)
        deque(map(self._reset, self._ids, self._joints, q, v, self._clients), maxlen=0)


class Turns:
    """Who of a client's groups has no more to do in a step than to be read, filtered and written.

    Args:
        groups: They.
        plains: What is read and written of each of whom that is so, else None.
        client: Physics client.

    Attributes:
        led: Those that Bullet has moved.
        made: Those that have made their step.
        others: All groups but ``made``, and where those of ``led`` are in what is read of these.
        to_filter: What is read and written of ``led``.
        to_show: What is written of ``made``.
    """

    def __init__(
        self, groups: Sequence[Group], plains: Sequence[SingleBody | None], client: int
    ) -> None:
        pairs = [*zip(groups, plains, strict=True)]
        self.led = [each for each, plain in pairs if plain and isinstance(each, FilteredGroup)]
        self.made = [each for each, plain in pairs if plain and isinstance(each, ExactGroup)]
        filtered = [plain for each, plain in pairs if plain and each not in self.made]
        shown = [plain for each, plain in pairs if plain and each in self.made]
        self.to_filter, self.to_show = Row(filtered, client), Row(shown, client, more=1)
        part_of: dict[Group, slice] = {}
        part_of.update(zip(self.led, self.to_filter.parts, strict=True))
        others = [group for group in groups if group not in self.made]
        self.others = [(group, part_of.get(group)) for group in others]

    def are_there(self) -> bool:
        """Whether the bodies are those that were read."""
        return self.to_filter.is_there() and self.to_show.is_there()


class Closing:
    """Has all groups of a client read, filtered in one compiled call, and written.

    Args:
        client: Physics client.
    """

    def __init__(self, client: int) -> None:
        self._client = client
        self._filters: Filters | None = None
        self._looks = now_and_then()
        self._groups: Sequence[Group] = []
        self._known: dict[tuple[bool, ...], Turns] = {}  # by who was plain

    def finish_step(self, groups: Iterable[Group]) -> None:
        """Bring Bullet's state onto the loops of all groups.

        Warns:
            BulletBridgeWarning: Loops of a group cannot be closed near it; there it stays.
        """
        if next(self._looks):
            for group in groups:
                if isinstance(group, FilteredGroup):
                    group.look_closely()
        groups = [*groups]
        plains = [group.plain for group in groups]
        turns = self._turns_of(groups, plains) if any(plains) else None
        taking: list[FilteredGroup] = []
        counts: list[int] = []
        found: list[float] = []
        own: list[int] = []  # numbers of those that look at what comes out
        told: Sequence[float] = ()
        if turns is not None:
            if turns.led:
                told = turns.to_filter.read()
            if turns.made:
                states = [group.lone_state() for group in turns.made]
                turns.to_show.write([*chain.from_iterable(states)])
        order = [(group, None) for group in groups] if turns is None else turns.others
        if turns is not None and len(turns.led) == len(order):
            taking, counts, found, order = [*turns.led], [0] * len(order), [*told], []
        for group, part in order:
            if part is not None:
                found += told[part]
                count = 0
            else:
                count = group.after_step(found)
                if count == ALONE:
                    continue
                own.append(len(taking))
            if isinstance(group, FilteredGroup):
                taking.append(group)
                counts.append(count)
        if not taking:
            return
        filters = self._of(taking)
        filtered, failures = filters(found, counts)
        if failures:
            own = [*range(len(taking))]
        elif turns is not None and turns.led:
            numbers = filtered
            if own:
                parts = (part for n, part in enumerate(filters.parts) if n not in own)
                numbers = [x for part in parts for x in filtered[part]]
            turns.to_filter.write(numbers)
        for n in own:
            part = filters.parts[n]
            taking[n].take(failures.get(n) or filtered[part], found[part])

    def _turns_of(
        self, groups: Sequence[Group], plains: Sequence[SingleBody | None]
    ) -> Turns | None:
        """Who has no more to do; None where somebody's body is gone, who then tells of that."""
        if groups != self._groups or len(self._known) > MOST_KNOWN:
            self._groups, self._known = groups, {}
        who = tuple(map(bool, plains))
        turns = self._known.get(who)
        if turns is None:
            turns = self._known[who] = Turns(groups, plains, self._client)
        return turns if turns.are_there() else None

    def _of(self, groups: Collection[FilteredGroup]) -> Filters:
        """Their filters in a row: those of the last step, unless others are taking part."""
        wanted = [group.filter for group in groups if group.filter is not None]
        if self._filters is None or not self._filters.are(wanted):
            self._filters = Filters(wanted)
        return self._filters
