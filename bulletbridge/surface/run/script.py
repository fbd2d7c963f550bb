"""Runs a script as the interpreter would, with our PyBullet in place of PyBullet's."""

import runpy
import sys
import traceback
from array import array
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any
from unittest import mock

import numpy as np
from pybullet_utils import bullet_client

from bulletbridge.errors import ModelError
from bulletbridge.surface.drop_in.hooks import HOOKS, Mode
from bulletbridge.surface.drop_in.session import Session
from bulletbridge.surface.run.headless import headless
from bulletbridge.surface.run.watch import Seen, Watch

STARTERS = (runpy.__file__, "<frozen runpy>")
IDLE_CALLS = 1000
"""PyBullet calls without a step that count as one step of a script that is to end after some."""


@dataclass(frozen=True)
class Script:
    """What to run.

    Attributes:
        name: Path of a file, or dotted name of a module.
        arguments: Its own.
        module: Whether it is a module.
    """

    name: str
    arguments: tuple[str, ...] = ()
    module: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a run went.

    Attributes:
        code: Exit code.
        error: Last line of the traceback, or empty.
        steps: Of all clients together.
        step_us: Median wall time of one [µs].
        seen: Constraints, when they were watched.
    """

    code: int = 0
    error: str = ""
    steps: int = 0
    step_us: float | None = None
    seen: list[Seen] = field(default_factory=lambda: [])


class Ended(BaseException):
    """The script has made as many steps as it was given."""


class Meter:
    """Counts steps and ends the script after some."""

    def __init__(self, limit: int | None) -> None:
        self.limit, self.steps, self.idle = limit, 0, 0

    def step(self, _session: Session) -> None:
        """One step was made."""
        self.steps, self.idle = self.steps + 1, 0
        self._stop_when_done()

    def call(self) -> None:
        """A function was called."""
        self.idle += 1
        self._stop_when_done()

    def _stop_when_done(self) -> None:
        if self.limit is None:
            return
        # once reached it stays so: a script that catches everything ends too
        if self.steps >= self.limit or self.idle >= IDLE_CALLS * self.limit:
            raise Ended


def run_script(
    script: Script,
    mode: Mode = "filter",
    *,
    without_window: bool = False,
    steps: int | None = None,
    watched: bool = False,
) -> Outcome:
    """Run a script with constraints closed by us.

    Args:
        script: What to run.
        mode: Who advances bodies that constraints join.
        without_window: Whether windows become DIRECT, sliders stay and waiting is skipped.
        steps: End after so many.
        watched: Whether constraints are looked at after each step.

    Raises:
        ModelError: There is no such script.
    """
    if not script.module and not Path(script.name).is_file():
        raise ModelError(f"there is no script '{script.name}'; give the path of a Python file")
    meter, watch, stopwatch = Meter(steps), Watch(), Stopwatch()
    with ExitStack() as stack:
        if without_window:
            stack.enter_context(headless())
        after_step = [*HOOKS.after_step, *([watch] if watched else []), meter.step]
        before_call = [*HOOKS.before_call, meter.call]
        stack.enter_context(
            mock.patch.multiple(HOOKS, mode=mode, after_step=after_step, before_call=before_call)
        )
        stack.enter_context(mock.patch.object(Session, "advance", stopwatch.timed(Session.advance)))
        stack.enter_context(in_place_of_pybullet())
        code, error = execute(script)
    return Outcome(code, error, meter.steps, stopwatch.median_us, list(watch.seen.values()))


class Stopwatch:
    """Wall time of steps."""

    def __init__(self) -> None:
        self._seconds = array("d")

    @property
    def median_us(self) -> float | None:
        """Median time of a step [µs]; None without any."""
        return 1e6 * float(np.median(self._seconds)) if self._seconds else None

    def timed(self, function: Callable[[Session], Any]) -> Callable[[Session], Any]:
        """The function, its time added up."""

        def call(session: Session) -> Any:
            start = perf_counter()
            try:
                return function(session)
            finally:
                self._seconds.append(perf_counter() - start)

        return call


@contextmanager
def in_place_of_pybullet() -> Generator[None, None, None]:
    """``import pybullet`` gives our module, and what has imported it before uses ours too."""
    for name in ("attach", "load", "plot"):  # these go on with PyBullet's own
        import_module(f"bulletbridge.surface.{name}")
    real, ours = sys.modules["pybullet"], import_module("bulletbridge.pybullet")
    sys.modules["pybullet"] = ours
    try:
        with mock.patch.object(bullet_client, "pybullet", ours):
            yield
    finally:
        sys.modules["pybullet"] = real


def execute(script: Script) -> tuple[int, str]:
    """Run it as ``__main__``; its exit code, and how it failed.

    Its traceback goes to stderr as the interpreter would print it.
    """
    before = sys.argv, sys.path[:]
    sys.argv = [script.name, *script.arguments]
    sys.path.insert(0, "" if script.module else str(Path(script.name).resolve().parent))
    try:
        if script.module:
            runpy.run_module(script.name, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script.name, run_name="__main__")
    except Ended:
        return 0, ""
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0, ""
        print(stop.code, file=sys.stderr)
        return 1, str(stop.code)
    except Exception as error:
        error.__traceback__ = own_frames(error)
        traceback.print_exception(error)
        return 1, traceback.format_exception_only(error)[-1].strip()
    finally:
        sys.argv, sys.path[:] = before
    return 0, ""


def own_frames(error: Exception) -> TracebackType | None:
    """The traceback from the script on, without how it was started."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename in (__file__, *STARTERS):
        frames = frames.tb_next
    return frames or error.__traceback__
