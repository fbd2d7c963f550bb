"""Control in cycles of 1 ms by the clock."""

import gc
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import bulletbridge as bb

DT = 1e-3  # [s]

Array = NDArray[np.float64]


class Cycle(NamedTuple):
    """State and torques of a cycle."""

    q: Array
    v: Array
    t: float
    tau: Array


@contextmanager
def ahead_of_others() -> Generator[None]:
    """Run before other programs, where that is allowed, and without collections of garbage."""
    gc.disable()
    restore = list[tuple[int, int]]()
    with suppress(AttributeError, OSError):  # not on this system, or not to this user
        restore.append((os.sched_getscheduler(0), os.sched_getparam(0).sched_priority))
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        gc.enable()
        for policy, priority in restore:
            os.sched_setscheduler(0, policy, os.sched_param(priority))


def wait(until: float) -> bool:
    """Wait for a time [s] of the clock; whether it had passed."""
    left = until - time.perf_counter()
    if left > 2e-4:
        time.sleep(left - 2e-4)  # wakes up to a tenth of a millisecond late
    while time.perf_counter() < until:
        pass
    return left < 0.0


class Clocked(NamedTuple):
    """Cycles by the clock."""

    cycles: list[Cycle]
    late: int  # cycles that ended after the next should have begun
    busy: Array  # processor's time of each [s]
    took: Array  # of each by the clock, waiting for the next left out [s]


def control(
    system: bb.System,
    law: Callable[[Array, Array, float], Array],
    limits: Array,
    duration: float,
    show: Callable[[Array], None],
) -> Clocked:
    """Advance a robot by torques of a law, within limits [N m], a cycle at a time by the clock."""
    for t in (0.0, duration):
        law(system.q, system.v, t)  # what is compiled is compiled before the clock runs
    system.evaluate()
    done, late, below = list[Cycle](), 0, -limits
    busy, took = np.zeros((2, round(duration / DT)))
    with ahead_of_others():
        begun = time.perf_counter()
        for n in range(len(busy)):
            started, by_clock = time.thread_time(), time.perf_counter()
            q, v, t = system.q, system.v, n * DT
            tau = np.minimum(np.maximum(law(q, v, t), below), limits)
            system.tau[:] = tau
            system.step()
            busy[n] = time.thread_time() - started
            took[n] = time.perf_counter() - by_clock
            show(q)
            done.append(Cycle(q, v, t, tau))
            late += wait(begun + (n + 1) * DT)
    return Clocked(done, late, busy, took)
