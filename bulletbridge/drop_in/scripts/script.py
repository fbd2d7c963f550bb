"""Runs a script as the interpreter would, with our PyBullet in place of PyBullet's."""

import importlib.util
import os
import runpy
import sys
import threading
import traceback
from array import array
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any
from unittest import mock

import numpy as np
import pybullet
from pybullet_utils import bullet_client

from bulletbridge.drop_in import function, registry
from bulletbridge.drop_in.scripts.headless import headless
from bulletbridge.drop_in.scripts.monitor import Monitor, Seen
from bulletbridge.drop_in.scripts.step_limit import Ended, Meter, end_threads_silently
from bulletbridge.drop_in.session import Session
from bulletbridge.drop_in.settings import HOOKS, Mode
from bulletbridge.errors import BulletBridgeError, ModelError
from bulletbridge.models.bundled import ROBOTS
from bulletbridge.models.urdf_file import is_file


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

    def require(self) -> None:
        """Raise unless it is there.

        Raises:
            ModelError: There is no such script.
        """
        if self.module:
            try:
                found = importlib.util.find_spec(self.name) is not None
            except (ImportError, ValueError):
                found = False
            if not found:
                raise ModelError(f"there is no module '{self.name}'; without -m give a file")
        elif not is_file(Path(self.name)):
            raise ModelError(f"there is no script '{self.name}'; give the path of a Python file")
        elif self.name.endswith(ROBOTS):
            raise ModelError(
                f"'{self.name}' is a robot, not a Python program: `bulletbridge inspect` tells what"
                " is in it, `bulletbridge view` shows it"
            )


@dataclass(frozen=True)
class Run:
    """How to run it.

    Attributes:
        script: What to run.
        mode: Who advances bodies that constraints join.
        steps: End after so many; None to wait for the script's own end.
        headless: Whether windows become DIRECT, sliders stay and waiting is skipped.
    """

    script: Script
    mode: Mode = "filter"
    steps: int | None = None
    headless: bool = False

    def natively(self) -> "Run":
        """The same by Bullet alone."""
        return replace(self, mode="native")


@dataclass(frozen=True)
class Outcome:
    """How a run went.

    Attributes:
        code: Exit code.
        error: Last line of the traceback, or empty.
        steps: Of all clients together.
        ended: Whether it was ended after so many.
        step_us: Median wall time of one [µs].
        seen: Constraints, when they were watched.
    """

    code: int = 0
    error: str = ""
    steps: int = 0
    ended: bool = False
    step_us: float | None = None
    seen: list[Seen] = field(default_factory=lambda: [])


def run_script(
    run: Run,
    watched: bool,
    deliver: Callable[[Outcome], None],
    after_step: Callable[[Session], None] | None = None,
) -> int:
    """Run a script with constraints closed by us; its exit code.

    Args:
        run: What to run, and how.
        watched: Whether constraints are looked at after each step.
        deliver: Is told how it went; not by what the script forks.
        after_step: Is called after each step of any client.

    Raises:
        ModelError: There is no such script.
    """
    script = run.script
    process, monitor, stopwatch = os.getpid(), Monitor(), Stopwatch()

    def outcome(code: int = 0, error: str = "") -> Outcome:
        seen = list(monitor.seen.values())
        return Outcome(code, error, meter.steps, meter.ended, stopwatch.median_us, seen)

    def give_up() -> None:
        if os.getpid() == process:
            deliver(outcome())
        sys.stdout.flush()
        os._exit(0)

    meter = Meter(run.steps, give_up)
    script_path = [""] if script.module else [str(Path(script.name).resolve().parent)]
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "argv", [script.name, *script.arguments]))
        stack.enter_context(mock.patch.object(sys, "path", script_path + sys.path))
        script.require()
        if run.headless:
            stack.enter_context(headless(meter.sleep))
        looking = [monitor] if watched else []
        looking += [] if after_step is None else [after_step]
        hooks = [*HOOKS.after_step, *looking, meter.step]
        before_call = [*HOOKS.before_call, *([] if run.steps is None else [meter.call])]
        stack.enter_context(
            mock.patch.multiple(HOOKS, mode=run.mode, after_step=hooks, before_call=before_call)
        )
        stack.enter_context(mock.patch.object(Session, "advance", stopwatch.timed(Session.advance)))
        hook = end_threads_silently(threading.excepthook)
        stack.enter_context(mock.patch.object(threading, "excepthook", hook))
        stack.enter_context(in_place_of_pybullet())
        code, error = execute(script)
    if os.getpid() == process:
        deliver(outcome(code, error))
    return code


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
            answer = function(session)
            self._seconds.append(perf_counter() - start)
            return answer

        return call


@contextmanager
def in_place_of_pybullet() -> Generator[None, None, None]:
    """``import pybullet`` gives our module, and what has imported it before uses ours too."""
    for name in ("models.attach", "models.load", "comparison.plot"):  # they keep PyBullet
        import_module(f"bulletbridge.{name}")
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
    others = set(threading.enumerate())
    try:
        if script.module:
            runpy.run_module(script.name, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script.name, run_name="__main__")
        wait_for_threads(others)
    except Ended:
        return 0, ""
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0, ""
        print(stop.code, file=sys.stderr)
        return 1, str(stop.code)
    except Exception as error:
        keep_own_frames(error)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1, traceback.format_exception_only(error)[-1].strip()
    return 0, ""


def wait_for_threads(others: set[threading.Thread]) -> None:
    """The interpreter ends when the script's have ended; until then PyBullet is to stay ours."""
    for thread in set(threading.enumerate()) - others:
        if not thread.daemon:
            thread.join()


PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
STARTERS = (runpy.__file__, "<frozen runpy>")
CALLERS = (function.__file__, registry.__file__)
"""Files that call PyBullet on behalf of the script."""


def keep_own_frames(error: BaseException) -> None:
    """Cut off how the script was started, and what stood in for a PyBullet function that raised."""
    for one in chain(error):
        frames = one.__traceback__
        while frames is not None and is_ours(frames):
            frames = frames.tb_next
        one.__traceback__ = frames
        every = list(listed(frames))
        if not every:
            continue
        raised_by = every[-1].tb_frame.f_code.co_filename
        if isinstance(one, pybullet.error | BulletBridgeError) or raised_by in CALLERS:
            [frame for frame in every if not is_ours(frame)][-1].tb_next = None


def chain(error: BaseException | None) -> Generator[BaseException, None, None]:
    """An error and those that it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def listed(frames: TracebackType | None) -> Generator[TracebackType, None, None]:
    """A traceback's frames from the outermost on."""
    while frames is not None:
        yield frames
        frames = frames.tb_next


def is_ours(frame: TracebackType) -> bool:
    """Whether a frame is not the script's."""
    name = frame.tb_frame.f_code.co_filename
    return name.startswith(PACKAGE) or name in STARTERS
