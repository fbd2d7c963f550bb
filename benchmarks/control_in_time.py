"""Which laws of control hold cycles of 1 ms by the clock, and how well do arms follow?

    python benchmarks/control_in_time.py [--seconds S] [--gui] [--json FILE]

An iiwa presses on a table and goes round a circle on it; two arms carry a bar round and squeeze it.
Motors have limits. Each law of ``Tracking`` follows the path from a start beside it, ``Regulation``
goes to rest, all with a wanted force. A cycle reads the state, computes torques and advances the
robot; with ``--gui`` a window of another process shows it. Run it on a machine that does nothing
else: late cycles are counted by the clock, whoever has held them up.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, get_args

import _demos  # noqa: F401  # pyright: ignore[reportUnusedImport]  before what it finds
import numpy as np
from _apart import shown_apart
from _cycles import DT, Clocked, control
from _path import closed_path
from carried_bar import MIDDLE
from polishing import DOWN, MODEL, TIP, circle, pressure, table
from real_time import DAMPING, K_D, K_P, LIMITS, STIFFNESS
from rich.table import Table
from two_arms import BAR_WEIGHT, SQUEEZE

import bulletbridge as bb
from bulletbridge.comparison.tables import wide_console
from bulletbridge.console import write_json
from bulletbridge.control.controllers import Law, TrackingLaw
from bulletbridge.models.bundled import bundled
from bulletbridge.numerics.records import Array

PERIOD, RADIUS, SETTLED = 2.0, 0.05, 1.0  # [s], [m] of the bar's circle, [s]
CHECKED = 25  # cycles between two whose force is looked at


@dataclass(frozen=True)
class Task:
    """What a robot has to do.

    Attributes:
        system: The robot.
        frame: What follows the path.
        path: Where that should be [m], by time.
        motion: Of all joints, by time.
        limits: Of its motors [N m].
        forces: Wanted multipliers by time.
        force: Largest error of the force [N] at the state and time at hand.
    """

    system: bb.System
    frame: bb.Frame
    path: Callable[[float], Array]
    motion: Callable[[float], bb.Desired]
    limits: Array
    forces: Callable[[float], Array]
    force: Callable[[float], float]


class Found(NamedTuple):
    """What became of a law."""

    cycles: int
    late: int
    over: int  # cycles that took longer than one of the processor's time
    p50_us: float  # of a cycle by the clock
    p99_us: float
    most_us: float
    bounded: int  # cycles with a motor at its limit
    path_m: float  # largest distance from the path once settled; at rest, at the end
    force_N: float  # largest error while no motor is at its limit


def pressing() -> Task:
    """An iiwa that presses on a table, 6 cm beside its path at the start."""
    system = bb.load(MODEL, "new", dt=DT, integrator="semi_implicit_euler").system
    motion = closed_path(system, TIP, circle, DOWN, {"lbr_iiwa_joint_3": 0.0}, PERIOD)

    def force(t: float) -> float:
        (reaction,) = system.reactions().values()
        return abs(abs(float(reaction.force[2])) - float(pressure(t)[0]))

    return Task(system, TIP, circle, motion, LIMITS, pressure, force)


def carrying() -> Task:
    """Two arms that carry one bar round a circle, and squeeze it along its axis."""
    system = bb.load("two_arms", "new", dt=DT, integrator="semi_implicit_euler").system
    start = system.kinematics().point(MIDDLE)

    def round_about(t: float) -> Array:
        angle = 2 * np.pi * t / PERIOD
        return start.p_W + RADIUS * np.array([0.0, np.sin(angle), 1.0 - np.cos(angle)])

    squeeze = SQUEEZE * start.R_W[:, 2]  # along the bar, which is not to turn
    wanted = np.array([0.0, 0.0, 0.0, *(squeeze - [0.0, 0.0, BAR_WEIGHT / 2])])  # half of the bar

    def force(t: float) -> float:
        grasp = system.reactions()["grasp"]
        return float(np.abs(np.concatenate([grasp.torque, grasp.force]) - wanted).max())

    held = {name: float(system.q[name]) for name in ("left_3", "right_3")}
    motion = closed_path(system, MIDDLE, round_about, start.R_W, held, PERIOD)
    limits = np.full(system.mechanism.nv, 60.0)

    def forces(t: float) -> Array:
        return bb.multipliers(system, {"grasp": wanted})

    return Task(system, MIDDLE, round_about, motion, limits, forces, force)


def nothing(client: int) -> None:
    """Put nothing beside a robot."""


TASKS = {
    "iiwa on a table": (pressing, MODEL, table),
    "two arms, one bar": (carrying, bundled()["two_arms"], nothing),
}
"""What is done, the file that a window shows, and what else stands there."""


def law_of(task: Task, kind: str) -> Law:
    """A law that follows the path, or goes to its beginning."""
    plant = bb.plant_of(task.system)
    if kind in get_args(TrackingLaw):
        law: TrackingLaw = kind  # pyright: ignore[reportAssignmentType]
        return bb.Tracking(plant, task.motion, K_P, K_D, task.forces, law)
    return bb.Regulation(plant, task.motion(0.0).q, STIFFNESS, DAMPING, task.forces)


def judge(task: Task, kind: str, done: Clocked) -> Found:
    """Look at what was done."""
    path, force, bounded = list[float](), 0.0, 0
    follows = kind in get_args(TrackingLaw)
    for n, cycle in enumerate(done.cycles):
        limited = bool(np.any(np.abs(cycle.tau) == task.limits))
        bounded += limited
        if n % CHECKED and n != len(done.cycles) - 1:
            continue
        task.system.set_state(cycle.q, cycle.v, cycle.t)
        if cycle.t > SETTLED:
            off = task.system.kinematics().point(task.frame).p_W
            off -= task.path(cycle.t if follows else 0.0)
            path.append(float(np.linalg.norm(off)))
        if not limited:
            task.system.tau[:] = cycle.tau
            force = max(force, task.force(cycle.t))
    p50, p99, most = 1e6 * np.percentile(done.took, [50.0, 99.0, 100.0])
    over = int(np.count_nonzero(done.busy > DT))
    return Found(
        len(done.cycles), done.late, over, float(p50), float(p99), float(most), bounded,
        (max(path) if follows else path[-1]) if path else np.nan, force,
    )  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each law")
    parser.add_argument("--gui", action="store_true", help="show it in a window besides")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    heads = "robot", "law", "cycles", "late", "over", "p50 [µs]", "p99", "most", "at limit"
    shown, rows = Table(*heads, "path [m]", "force [N]"), dict[str, dict[str, object]]()
    for name, (make, model, furnish) in TASKS.items():
        for kind in (*get_args(TrackingLaw), "regulation"):
            task = make()
            law = law_of(task, kind)
            with shown_apart(options.gui, model, task.system.q, furnish) as show:
                done = control(task.system, law, task.limits, options.seconds, show)
            found = judge(task, kind, done)
            rows[f"{name}, {kind}"] = found._asdict()
            counts = (str(x) for x in (found.cycles, found.late, found.over))
            times = (f"{x:.0f}" for x in found[3:6])
            errors = f"{found.path_m:.1e}", f"{found.force_N:.0e}"
            shown.add_row(name, kind, *counts, *times, str(found.bounded), *errors)
    wide_console().print(shown)
    if options.json:
        write_json(options.json, rows)


if __name__ == "__main__":
    main()
