"""A script without a window: its sliders, its keyboard and its clock."""

import datetime
import itertools
import random
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pybullet

from bulletbridge.drop_in.function import Function, Given, pump
from bulletbridge.drop_in.functions import FUNCTIONS
from bulletbridge.drop_in.session import LONGEST_PUMP, REAL_TIME, Session
from bulletbridge.drop_in.settings import HOOKS

PIECE = LONGEST_PUMP / 2
"""Real-time simulation does not make up for long waits at once, so they go by in pieces [s]."""

CALL, LOOK = 5e-5, 1e-6
"""Virtual time [s] of a PyBullet call and of a look at the clock, so that loops that never sleep
get on."""
EPOCH = 1.6e9
"""Start of the virtual clock [s since 1970]."""
SEED = 0
CLOCKS = ("perf_counter", "monotonic")
real_sleep = time.sleep


class Clock:
    """Time that goes by when a script sleeps or calls PyBullet: the same in every run.

    Args:
        before_sleep: Called when the script is about to wait.
    """

    def __init__(self, before_sleep: Callable[[], None]) -> None:
        self.now, self._before_sleep = 0.0, before_sleep

    def __call__(self) -> float:
        """Seconds since the start."""
        return self.now

    def tick(self) -> None:
        """One call of PyBullet."""
        self.now += CALL

    def sleep(self, seconds: float) -> None:
        """Wait without waiting; real-time simulation goes on meanwhile.

        Only in the main thread: others would outrun it.
        """
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        if threading.current_thread() is not threading.main_thread():
            real_sleep(seconds)
            return
        self._before_sleep()
        end = self.now + seconds
        while REAL_TIME and end - self.now > PIECE:
            self.now += PIECE
            pump()
        self.now = end
        pump()
        real_sleep(0)  # lets other threads run

    def look(self) -> float:
        """What ``time.perf_counter`` answers."""
        self.now += LOOK
        return self.now

    def since_epoch(self) -> float:
        """What ``time.time`` answers."""
        return EPOCH + self.look()


def nanoseconds(clock: Callable[[], float]) -> Callable[[], int]:
    """A clock in whole nanoseconds."""
    return lambda: int(clock() * 1e9)


@contextmanager
def headless(before_sleep: Callable[[], None] = lambda: None) -> Generator[Clock, None, None]:
    """Windows become DIRECT, waiting costs nothing, and chance is the same in every run."""
    clock = Clock(before_sleep)
    random.seed(SEED)
    np.random.seed(SEED)  # noqa: NPY002  what scripts draw from
    times = {"time": clock.since_epoch} | dict.fromkeys(CLOCKS, clock.look)
    with ExitStack() as patches:
        for name, answer in times.items():
            patches.enter_context(mock.patch(f"time.{name}", answer))
            patches.enter_context(mock.patch(f"time.{name}_ns", nanoseconds(answer)))
        patches.enter_context(mock.patch("time.sleep", clock.sleep))
        patches.enter_context(mock.patch("datetime.datetime", dated_by(clock)))
        patches.enter_context(mock.patch("builtins.input", lambda _prompt="": ""))
        patches.enter_context(mock.patch.dict("os.environ", {"MPLBACKEND": "Agg"}))
        patches.enter_context(mock.patch.dict(FUNCTIONS, sliders()))
        before_call = [clock.tick, *HOOKS.before_call]
        patches.enter_context(
            mock.patch.multiple(HOOKS, headless=True, clock=clock, before_call=before_call)
        )
        yield clock


def dated_by(clock: Clock) -> type[datetime.datetime]:
    """A ``datetime`` class that knows the clock's time; what it makes is the usual one."""
    real = datetime.datetime

    class Kind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return issubclass(type(instance), cls)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return type.__subclasscheck__(real if cls is VirtualDatetime else cls, subclass)

    class VirtualDatetime(real, metaclass=Kind):
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return real.__new__(real if cls is VirtualDatetime else cls, *args, **kwargs)

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return real.fromtimestamp(clock.since_epoch(), tz)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

        @classmethod
        def utcnow(cls) -> Any:
            return real.fromtimestamp(clock.since_epoch(), datetime.timezone.utc).replace(
                tzinfo=None
            )

    return VirtualDatetime


def sliders() -> dict[str, Function]:
    """Functions of the window's panel: sliders stay at their start, buttons are never pressed."""
    values: dict[tuple[int, int], float] = {}
    count = itertools.count()

    def add(session: Session, given: Given) -> int:
        low, high = float(given.get("rangeMin", 0.0)), float(given.get("rangeMax", 1.0))
        number = next(count)
        button = low > high
        values[session.client, number] = 0.0 if button else float(given.get("startValue", 0.0))
        return number

    def read(session: Session, given: Given) -> float:
        key = session.client, given["itemUniqueId"]
        return values[key] if key in values else session.native("readUserDebugParameter", given)

    def remove_all(session: Session, given: Given) -> None:
        for key in [key for key in values if key[0] == session.client]:
            del values[key]

    def remove(session: Session, given: Given) -> None:
        if values.pop((session.client, given["itemUniqueId"]), None) is None:
            session.native("removeUserDebugItem", given)

    parameters = ("paramName", "rangeMin", "rangeMax", "startValue")
    return {
        "addUserDebugParameter": Function("addUserDebugParameter", parameters, add),
        "readUserDebugParameter": Function("readUserDebugParameter", ("itemUniqueId",), read),
        "removeAllUserParameters": Function("removeAllUserParameters", (), remove_all),
        "removeUserDebugItem": Function("removeUserDebugItem", ("itemUniqueId",), remove),
        "getDebugVisualizerCamera": Function("getDebugVisualizerCamera", (), camera),
    }


def camera(session: Session, given: Given) -> tuple[object, ...]:
    """The camera a window starts with."""
    eye, target, up = (3.0, -3.0, 2.5), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)
    view = pybullet.computeViewMatrix(eye, target, up)
    projection = pybullet.computeProjectionMatrixFOV(60.0, 1024 / 768, 0.01, 1000.0)
    forward = (0.0, 1.0, 0.0)
    width, height, yaw, pitch, distance = 1024, 768, 50.0, -35.0, 5.0
    horizontal, vertical = (20000.0, 0.0, 0.0), (0.0, 0.0, 15000.0)
    return (
        *(width, height, view, projection, up, forward, horizontal, vertical),
        *(yaw, pitch, distance, target),
    )
