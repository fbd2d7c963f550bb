"""A KUKA arm controlled at 1 kHz in real time: it comes to rest on a table, then follows a circle.

Regulation and then tracking, in reduced quasi-velocities, each with a wanted force on the table, by
motors whose torques are bounded: from afar some are at their limits. Every cycle reads the state,
computes torques and advances the arm; a window has a process of its own. Late cycles are counted by
the clock and by the processor's time, since other programs may hold a cycle up. Afterwards Bullet's
inverse dynamics, which knows no constraint, tells the force while no motor was at its limit.
"""

import gc
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a thread takes longer to wake than to solve

import numpy as np
from _apart import shown_apart
from _path import closed_path
from _show import run, window
from numpy.typing import NDArray
from polishing import DOWN, MODEL, TIP, circle, pressure, seen_by_bullet, table, tip_of

import bulletbridge as bb

DT, REST, END, SETTLED = 1e-3, 1.0, 2.5, 1.5  # [s]
LIMITS = np.array([60.0, 100.0, 60.0, 60.0, 40.0, 20.0, 10.0])  # of the motors [N m]
STIFFNESS, DAMPING, K_P, K_D = 400.0, 20.0, 12.0, 30.0  # [N m/rad], [1/s]
CHECKED = 25  # cycles between two whose force is looked at

Array = NDArray[np.float64]


class Found(NamedTuple):
    """What became of the cycles."""

    force: float  # largest error where no motor is at its limit [N]
    rest: float  # distance of the tip from the goal at the end of the regulation [m]
    path: float  # largest distance of the tip from the circle, once settled [m]
    bounded: int  # cycles with a motor at its limit
    cycles: int
    late: int  # cycles that ended after the next should have begun, others' programs included
    over: int  # cycles that took longer than a cycle of the processor's time
    busy: float  # processor's time of a cycle, mostly [s]


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


def controlled(system: bb.System, show: Callable[[Array], None]) -> tuple[list[Cycle], int, Array]:
    """All cycles, how many were late, and the processor's time of each [s]."""
    motion = closed_path(system, TIP, circle, DOWN, {"lbr_iiwa_joint_3": 0.0}, 2.0)
    plant = bb.plant_of(system)
    rest = bb.Regulation(plant, motion(REST).q, STIFFNESS, DAMPING, pressure)
    follow = bb.Tracking(plant, motion, K_P, K_D, pressure)
    for law in (rest, follow):
        law(system.q, system.v, 0.0)  # what is compiled is compiled before the clock runs
    system.evaluate()
    done, late, busy = list[Cycle](), 0, np.zeros(round(END / DT))
    with ahead_of_others():
        begun = time.perf_counter()
        for n in range(len(busy)):
            q, v, t = system.q, system.v, n * DT
            started = time.thread_time()
            tau = np.clip((rest if t < REST else follow)(q, v, t), -LIMITS, LIMITS)
            system.tau[:] = tau
            system.step()
            busy[n] = time.thread_time() - started
            show(q)
            done.append(Cycle(q, v, t, tau))
            late += wait(begun + (n + 1) * DT)
    return done, late, busy


def measure(gui: bool = False) -> Found:
    """Control for some seconds; then look at what was."""
    with window(False, str(MODEL)) as client:
        model = bb.load(MODEL, client, dt=DT, integrator="semi_implicit_euler")
        body, system = model.ids["robot"], model.system
        table(client)
        with shown_apart(gui, MODEL, system.q, table) as show:
            done, late, busy = controlled(system, show)
        force, rest, path, bounded = 0.0, 0.0, 0.0, 0
        for n, cycle in enumerate(done):
            limited = bool(np.any(np.abs(cycle.tau) == LIMITS))
            bounded += limited
            if n % CHECKED and n != round(REST / DT):
                continue
            system.set_state(cycle.q, cycle.v, cycle.t)
            system.tau[:] = cycle.tau
            system.write()
            if not limited:
                seen = seen_by_bullet(system, body, client)
                force = max(force, abs(seen - float(pressure(cycle.t)[0])))
            off = float(np.linalg.norm(tip_of(body, client) - circle(max(cycle.t, REST))))
            if n == round(REST / DT):
                rest = off
            elif cycle.t > SETTLED:
                path = max(path, off)
    over = int(np.count_nonzero(busy > DT))
    return Found(force, rest, path, bounded, len(done), late, over, float(np.median(busy)))


def main(gui: bool = False) -> float:
    """Control for some seconds; return the largest error of the force [N]."""
    found = measure(gui)
    print(
        f"{found.cycles} cycles of 1 ms, {found.late} late, {found.over} of their own"
        f" ({1e3 * found.busy:.2f} ms); {found.bounded} with a motor at its limit; force"
        f" {found.force:.0e} N, at rest {found.rest:.1e} m, path {found.path:.1e} m off"
    )
    return found.force


if __name__ == "__main__":
    run(main, __doc__)
