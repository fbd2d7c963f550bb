"""A KUKA arm controlled at 1 kHz in real time: it comes to rest on a table, then follows a circle.

Regulation and then tracking, in reduced quasi-velocities, each with a wanted force on the table, by
motors whose torques are bounded: from afar some are at their limits. Every cycle reads the state,
computes torques and advances the arm; a window has a process of its own. Late cycles are counted by
the clock and by the processor's time, since other programs may hold a cycle up. Afterwards Bullet's
inverse dynamics, which knows no constraint, tells the force while no motor was at its limit.
"""

import os
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a thread takes longer to wake than to solve

import numpy as np
from _apart import shown_apart
from _cycles import DT, control
from _path import closed_path
from _show import run, window
from numpy.typing import NDArray
from polishing import DOWN, MODEL, TIP, circle, pressure, seen_by_bullet, table, tip_of

import bulletbridge as bb

REST, END, SETTLED = 1.0, 2.5, 1.5  # [s]
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


def measure(gui: bool = False) -> Found:
    """Control for some seconds; then look at what was."""
    with window(False, str(MODEL)) as client:
        model = bb.load(MODEL, client, dt=DT, integrator="semi_implicit_euler")
        body, system = model.ids["robot"], model.system
        table(client)
        motion = closed_path(system, TIP, circle, DOWN, {"lbr_iiwa_joint_3": 0.0}, 2.0)
        plant = bb.plant_of(system)
        to_rest = bb.Regulation(plant, motion(REST).q, STIFFNESS, DAMPING, pressure)
        follow = bb.Tracking(plant, motion, K_P, K_D, pressure)

        def law(q: Array, v: Array, t: float) -> Array:
            return (to_rest if t < REST else follow)(q, v, t)

        with shown_apart(gui, MODEL, system.q, table) as show:
            done = control(system, law, LIMITS, END, show)
        force, rest, path, bounded = 0.0, 0.0, 0.0, 0
        for n, cycle in enumerate(done.cycles):
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
    over, busy = int(np.count_nonzero(done.busy > DT)), float(np.median(done.busy))
    return Found(force, rest, path, bounded, len(done.cycles), done.late, over, busy)


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
