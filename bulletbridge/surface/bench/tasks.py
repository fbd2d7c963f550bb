"""The tasks: what is run, in which order, and what is written down."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import quantiles

import numpy as np

from bulletbridge.surface.bench.cases import case
from bulletbridge.surface.bench.judging import (
    GRID,
    Judge,
    Reference,
    error_at,
    finite,
    swing,
)
from bulletbridge.surface.bench.problem import Problem
from bulletbridge.surface.bench.session import PeerError, Row, Session
from bulletbridge.surface.bench.settings import Setting, settings

STEPS = (1 / 240, 1e-3)
"""Of the accuracy tables [s]: Bullet's default and a usual small one."""
HOW = ("call", "loop")
Say = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        batches: Of each time per step; simulators take turns.
        batch: Seconds of one.
        duration: Of the runs whose gaps and energy are taken [s].
        cap: Seconds that a single run may take; finer steps are left out.
        dts, rtols: Of work-precision.
        loops: Of the growth.
        slowest: Seconds of a step from which on larger mechanisms are left out.
    """

    batches: int = 15
    batch: float = 6e-3
    duration: float = 10.0
    cap: float = 2.0
    dts: tuple[float, ...] = (
        1 / 60, 0.01, 1 / 120, 0.005, 1 / 240, 0.002, 1e-3, 5e-4, 2.5e-4, 1e-4, 5e-5, 2e-5, 1e-5,
        5e-6,
    )  # fmt: skip
    rtols: tuple[float, ...] = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12)
    loops: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100)
    slowest: float = 0.05


FULL = Effort()
QUICK = Effort(3, 1e-3, 0.1, 0.2, (1 / 60, 0.005), (1e-6,), (1, 2))


def time_steps(made: Problem, running: Session, effort: Effort, say: Say) -> list[Row]:
    """Time per step of 1 ms of every setting, taking turns."""
    rows, counts = list[Row](), dict[tuple[int, str], int]()
    chosen = settings(running.peers, "time")
    times: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for k, setting in enumerate(chosen):
        rows.append({"case": made.name, "peer": setting.peer, "setting": setting.label})
        try:
            running.build(setting, made, STEPS[1])
            for how in HOW:
                counts[k, how], times[k, how] = count(setting, how, running, effort), []
        except PeerError as error:
            rows[k]["failed"] = str(error)
    say(f"{made.name}: time per step")
    for _ in range(effort.batches):
        for (k, how), steps in counts.items():
            if "failed" in rows[k]:
                continue
            try:
                times[k, how].append(running.ask(chosen[k], "time", steps, how))
            except PeerError as error:
                rows[k]["failed"] = str(error)
    for (k, how), values in times.items():
        if "failed" not in rows[k] and values:
            rows[k][how] = spread([wall for wall, _ in values])
            rows[k][f"{how}_processor"] = spread([cpu for _, cpu in values])["median"]
    return rows


def count(setting: Setting, how: str, running: Session, effort: Effort) -> int:
    """Steps of a batch; the first ones warm up.

    Raises:
        PeerError: The simulator failed.
    """
    running.ask(setting, "time", 2, how)
    wall, _ = running.ask(setting, "time", 10, how)
    return int(np.clip(1e6 * effort.batch / wall, 5, 5000))


def spread(values: list[float]) -> Row:
    """Median and quartiles."""
    if len(values) < 2:
        return {"median": values[0], "low": values[0], "high": values[0]}
    low, median, high = quantiles(values, n=4, method="inclusive")
    return {"median": median, "low": low, "high": high}


def accuracy(
    made: Problem, exact: Reference, running: Session, effort: Effort, say: Say
) -> list[Row]:
    """Gaps and energy of every setting at usual steps."""
    judge, rows = Judge(made), list[Row]()
    for setting in settings(running.peers, "accuracy"):
        say(f"{made.name}: gaps and energy, {setting.peer}, {setting.label}")
        for dt in STEPS:
            row: Row = {"case": made.name, "peer": setting.peer, "setting": setting.label, "dt": dt}
            rows.append(row | drift(setting, dt, judge, exact.kinetic, running, effort))
    return rows


def drift(
    setting: Setting, dt: float, judge: Judge, kinetic: float, running: Session, effort: Effort
) -> Row:
    """Gaps and energy of one run."""
    try:
        running.build(setting, judge.problem, dt)
        affordable(setting, effort.duration / dt, 10.0 * effort.cap, running)
        every = max(1, round(0.008 / dt))
        steps = every * round(effort.duration / (every * dt))
        _, q, v = running.ask(setting, "record", steps, every)
    except PeerError as error:
        return {"failed": str(error)}
    return judge.drift(q, v, kinetic) | {"duration": steps * dt}


def affordable(setting: Setting, steps: float, seconds: float, running: Session) -> None:
    """Raise unless so many steps are done in that time.

    Raises:
        PeerError: They are not.
    """
    wall, _ = running.ask(setting, "time", 5, "call")
    if 1e-6 * wall * steps > seconds:
        raise PeerError(f"left out: takes {1e-6 * wall * steps:.0f} s")


def work_precision(
    made: Problem,
    exact: Reference,
    horizons: tuple[float, ...],
    running: Session,
    effort: Effort,
    say: Say,
) -> list[Row]:
    """Error against wall time of every setting, from coarse to fine."""
    rows: list[Row] = []
    for setting in settings(running.peers, "work-precision"):
        say(f"{made.name}: work-precision, {setting.peer}, {setting.label}")
        last: tuple[float, float] | None = None
        for value in effort.dts if setting.knob == "dt" else effort.rtols:
            if value < 0.99 * setting.finest:
                break
            finer = 0.0 if last is None else last[0] * (last[1] / value) ** _power(setting)
            if finer > effort.cap:
                break
            row: Row = {"case": made.name, "peer": setting.peer, "setting": setting.label}
            row |= {"knob": setting.knob, "value": value, "errors": {}}
            try:
                seconds, q = _run(setting, made, value, horizons, running)
                last = (float(seconds[-1]), value)
                for horizon in horizons:
                    error = error_at(made, q, exact.q, horizon)
                    if error is not None:
                        wall = float(seconds[round(horizon / GRID)])
                        row["errors"][f"{horizon:g}"] = {"error": error, "wall": wall}
            except PeerError as failure:
                row["failed"] = str(failure)
            rows.append(row)
    return rows


def _power(setting: Setting) -> float:
    """How the work grows with the knob: one over it, or with an order of eight."""
    return 1.0 if setting.knob == "dt" else 1 / 8


def _run(
    setting: Setting, made: Problem, value: float, horizons: tuple[float, ...], running: Session
) -> tuple[np.ndarray, np.ndarray]:
    """Median seconds up to each state, and the states; short runs are repeated."""
    if setting.knob == "dt":
        running.build(setting, made, value)
        every = round(GRID / value)
    else:
        running.build(setting, made, GRID, rtol=value, atol=0.1 * value)
        every = 1
    steps = every * round(max(horizons) / GRID)
    runs: list[np.ndarray] = []
    running.ask(setting, "record", every, every)
    while True:
        seconds, q, _ = running.ask(setting, "record", steps, every)
        runs.append(seconds)
        if len(runs) == 5 or seconds[-1] > 0.1 or len(seconds) != len(runs[0]):
            return np.median([run for run in runs if len(run) == len(runs[0])], axis=0), q


def growth(kind: str, running: Session, effort: Effort, say: Say) -> list[Row]:
    """Time per step of 1 ms with the number of loops, of ``row`` or ``ladder``."""
    rows: list[Row] = []
    too_slow: set[str] = set()
    for loops in effort.loops:
        say(f"{kind}s of {loops}")
        made = case(f"{kind}{loops}")
        alive: list[tuple[Row, Setting, int, list[float]]] = []
        for setting in settings(running.peers, "growth"):
            row: Row = {
                "kind": kind,
                "loops": loops,
                "peer": setting.peer,
                "setting": setting.label,
            }
            rows.append(row)
            name = f"{setting.peer}: {setting.label}"
            try:
                if name in too_slow:
                    raise PeerError("left out: too slow at fewer loops")
                running.build(setting, made, STEPS[1])
                wall, _ = running.ask(setting, "time", 2, "loop")
                if 1e-6 * wall > effort.slowest:
                    too_slow.add(name)
                steps = int(np.clip(1e6 * effort.batch / wall, 2, 5000))
                alive.append((row, setting, steps, []))
            except PeerError as error:
                row["failed"] = str(error)
        for _ in range(min(7, effort.batches)):
            for row, setting, steps, values in alive:
                try:
                    values.append(running.ask(setting, "time", steps, "loop")[0])
                except PeerError as error:
                    row["failed"] = str(error)
        for row, setting, _, values in alive:
            if "failed" not in row:
                row["loop"] = spread(values)
                running.ask(setting, "drop")
    return rows


def singular(made: Problem, running: Session, effort: Effort, say: Say) -> list[Row]:
    """Passing flat configurations: gap, energy, and whether the parallelograms stay such."""
    judge, rows = Judge(made), list[Row]()
    signs = np.where(made.mechanism.bodies["parent"][1:] == 0, 1.0, -1.0)
    for setting in settings(running.peers, "singular"):
        say(f"{made.name}: {setting.peer}, {setting.label}")
        for dt in STEPS:
            row: Row = {"case": made.name, "peer": setting.peer, "setting": setting.label, "dt": dt}
            rows.append(row)
            try:
                running.build(setting, made, dt)
                affordable(setting, effort.duration / dt, 10.0 * effort.cap, running)
                every = max(1, round(0.008 / dt))
                steps = every * round(effort.duration / (every * dt))
                _, q, v = running.ask(setting, "record", steps, every)
            except PeerError as error:
                row["failed"] = str(error)
                continue
            t = every * dt * np.arange(len(q), dtype=np.float64)
            angle, kinetic = swing(made, t)
            row |= judge.drift(q, v, kinetic)
            if "failed" not in row:
                turned = q * signs
                apart = np.abs(turned - turned[:, :1]).max(axis=1)
                row["on_branch"] = bool(apart.max() < 0.1)
                row["left_at"] = None if row["on_branch"] else float(t[np.argmax(apart >= 0.1)])
                first = round(min(1.0, effort.duration) / (every * dt))
                row["error_1s"] = finite(float(np.abs(turned[first] - angle[first]).max()))
    return rows
