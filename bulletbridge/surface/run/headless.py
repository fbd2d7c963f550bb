"""A script without a window: its sliders, its keyboard and its clock."""

import datetime
import itertools
import random
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np
import pybullet

from bulletbridge.surface.drop_in.function import FUNCTIONS, Function, Given
from bulletbridge.surface.drop_in.hooks import HOOKS
from bulletbridge.surface.drop_in.session import Session

CALL = 5e-5
"""Virtual time [s] of one PyBullet call, so that real-time loops that never sleep get on."""
EPOCH = 1.6e9
"""Where the virtual clock starts [s since 1970]."""
SEED = 0
CLOCKS = ("time", "perf_counter", "monotonic")


class Clock:
    """Time that goes by when a script sleeps or calls PyBullet: the same in every run."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Seconds since the start."""
        return self.now

    def tick(self) -> None:
        """One call of PyBullet."""
        self.now += CALL

    def sleep(self, seconds: float) -> None:
        """Wait without waiting; real-time simulation catches up at the next call."""
        self.now += max(0.0, float(seconds))

    def since_epoch(self) -> float:
        """What ``time.time`` answers."""
        return EPOCH + self.now

    def nanoseconds(self) -> int:
        """The same in whole nanoseconds."""
        return int(self.since_epoch() * 1e9)


@contextmanager
def headless() -> Generator[Clock, None, None]:
    """Windows become DIRECT, waiting costs nothing, and chance is the same in every run."""
    clock = Clock()

    class VirtualDatetime(datetime.datetime):
        """The date of the virtual clock."""

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "VirtualDatetime":
            return cls.fromtimestamp(clock.since_epoch(), tz)

    random.seed(SEED)
    np.random.seed(SEED)  # noqa: NPY002  what scripts draw from
    with ExitStack() as patches:
        for name in CLOCKS:
            patches.enter_context(mock.patch(f"time.{name}", clock.since_epoch))
            patches.enter_context(mock.patch(f"time.{name}_ns", clock.nanoseconds))
        patches.enter_context(mock.patch("time.sleep", clock.sleep))
        patches.enter_context(mock.patch("datetime.datetime", VirtualDatetime))
        patches.enter_context(mock.patch("builtins.input", lambda _prompt="": ""))
        patches.enter_context(mock.patch.dict("os.environ", {"MPLBACKEND": "Agg"}))
        patches.enter_context(mock.patch.dict(FUNCTIONS, sliders()))
        patches.enter_context(mock.patch.multiple(HOOKS, headless=True, clock=clock))
        HOOKS.before_call.insert(0, clock.tick)
        try:
            yield clock
        finally:
            HOOKS.before_call.remove(clock.tick)


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
