"""Ends a script after a number of steps, however it is written."""

import threading
from collections.abc import Callable

from bulletbridge.drop_in.session import Session

IDLE_CALLS = 1000
"""PyBullet calls without a step that count as much as one; a sleep counts as much as well."""
FEWEST = 100
"""A script may do as much as this many steps before its first one, whatever its limit."""
PATIENCE = 1000
"""Number of times that a script may catch the end and go on."""


class Ended(SystemExit):
    """The script has made as many steps as it was given; forked workers end by it as by exit."""


def end_threads_silently(
    hook: Callable[[threading.ExceptHookArgs], object],
) -> Callable[[threading.ExceptHookArgs], object]:
    """A ``threading.excepthook`` that says nothing of a thread that was ended."""
    return lambda args: None if issubclass(args.exc_type, Ended) else hook(args)


class Meter:
    """Counts steps, and ends the script at a limit.

    The first time it ends the step or sleep, so that cleaning up can still call PyBullet; from the
    second on it ends any call, for scripts that catch everything.

    Args:
        limit: Steps of all clients together; None for no end.
        give_up: Ends the process of a script that goes on all the same.
    """

    def __init__(self, limit: int | None, give_up: Callable[[], None]) -> None:
        self.limit, self._give_up = limit, give_up
        self.steps, self._idle, self._ends = 0, 0, 0

    @property
    def ended(self) -> bool:
        """Whether the script was ended."""
        return self._ends > 0

    def step(self, _session: Session) -> None:
        """One step was made."""
        self.steps, self._idle = self.steps + 1, 0
        if self.limit is not None and self.steps >= self.limit:
            self._end()

    def call(self) -> None:
        """A function is called."""
        if self._ends > 1:
            self._end()
        self._wait(1)

    def sleep(self) -> None:
        """The script waits."""
        if self.ended:
            self._end()
        self._wait(IDLE_CALLS)

    def _wait(self, calls: int) -> None:
        self._idle += calls
        if self.limit is not None and self._idle > IDLE_CALLS * max(self.limit, FEWEST):
            self._end()

    def _end(self) -> None:
        self._ends += 1
        if self._ends > PATIENCE:
            self._give_up()
        raise Ended
