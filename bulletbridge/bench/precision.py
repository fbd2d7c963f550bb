"""Error against wall time: mechanisms against our converged runs, standard problems against theirs.

Each setting goes from coarse to fine until a run would take too long or nothing is gained. A run
that would take too long to the last horizon still goes to an earlier one.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np

from bulletbridge.bench.evaluator import GRID, LAST, Evaluator, Reference, error_at, finite
from bulletbridge.bench.problem import Problem
from bulletbridge.bench.session import PeerError, Row, Session
from bulletbridge.bench.settings import LEVELS, Setting
from bulletbridge.bench.tasks import affordable
from bulletbridge.models.load import load
from bulletbridge.models.standard_problems import Problem as Standard
from bulletbridge.models.standard_problems import standard_problems
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

SHORT, REPEATS = 0.1, 5
"""Runs of less [s] are medians of so many."""
FIRST = 10.0
"""Caps that the first run of a setting may take, so that each one shows up."""
GAIN, TRIED = 0.8, 3
"""A setting whose error has not shrunk by this factor in so many refinements is at its end."""
READ, READ_FAST = 0.1, 1e-3
"""Seconds between states of a standard problem that are read; of A03, which is over in 0.05 s."""
SPARSE = 0.5
"""The same under error control, besides the times of the reference."""


@dataclass
class Run:
    """One run: seconds (n,), states (n, nq), (n, nv) at times (n,), the start first."""

    times: Array
    seconds: Array
    q: Array
    v: Array

    def at(self, time: float) -> int | None:
        """Which state is that of a time [s]; None if the run ended before."""
        k = int(np.argmin(np.abs(self.times - time)))
        return k if abs(self.times[k] - time) < 1e-9 else None


def work_precision(
    made: Problem, exact: Reference, horizons: tuple[float, ...], running: Session
) -> list[Row]:
    """Error against wall time of every setting, from coarse to fine."""
    rows: list[Row] = []
    marks = [h - GRID * k for h in horizons for k in range(LAST)]
    times: Array = np.unique(np.round([t for t in marks if t > 0.5 * GRID], 9))
    for setting in running.settings("work-precision"):
        running.say(f"{made.name}: work-precision, {setting.peer}, {setting.label}")

        def put_errors(row: Row, run: Run) -> None:
            for horizon in horizons:
                at, error = run.at(horizon), error_at(made, run.times, run.q, exact.q, horizon)
                if error is not None and at is not None:
                    entry = {"error": error, "wall": float(run.seconds[at])}
                    row["errors"][f"{horizon:g}"] = entry

        values = running.workload.dts if setting.knob == "dt" else running.workload.rtols
        limits = running.workload.cap, setting.finest
        rows += refine(setting, made, values, limits, (GRID, times, horizons), running, put_errors)
    return rows


def standard(name: str, made: Problem, running: Session) -> list[Row]:
    """Error of what is compared [m or rad], energy [J] and wall time of every setting."""
    problem, evaluator, rows = standard_problems()[name], Evaluator(made), list[Row]()
    until = problem.times[0] if running.workload.quick else problem.duration
    grid = READ_FAST if problem.duration < READ else READ
    regular = SPARSE * np.arange(1, round(until / SPARSE) + 1, dtype=np.float64)
    reference_times = problem.times[problem.times <= until]
    together = np.concatenate([regular, reference_times])
    times = np.unique(np.round(together, 9)).astype(np.float64)
    measure = compared(problem, until)
    for setting in running.settings("standard"):
        if setting.only and name not in setting.only:
            continue
        running.say(f"{name}: {setting.peer}, {setting.label}")

        def put_errors(row: Row, run: Run) -> None:
            error = measure(run)
            seen = [k for k in (run.at(float(t)) for t in (0.0, *times)) if k is not None]
            drift = evaluator.drift(run.q[seen], run.v[seen], 1.0)
            if error is None or "failed" in drift:
                row["failed"] = "diverged"
                return
            row |= {key: value for key, value in drift.items() if not key.endswith("_rad")}
            entry = {"error": error, "wall": float(run.seconds[-1])}
            row["errors"][f"{until:g}"] = entry

        fixed = tuple(grid * value for value in running.workload.shares)
        values = fixed if setting.knob == "dt" else running.workload.rtols
        finest = setting.finest * (grid / READ if setting.knob == "dt" else 1.0)
        limits = running.workload.cap, finest
        reading = grid, times, (until,)
        rows += refine(setting, made, values, limits, reading, running, put_errors)
    return rows


def compared(problem: Standard, until: float) -> Callable[[Run], float | None]:
    """A function of a run: its largest error at the reference's times up to ``until`` [s].

    None if it ended before, or has numbers that are not finite: a run that broke off tells
    nothing of what the whole would have cost.
    """
    with load(problem.name, "new") as model:
        tree = System(model.system.mechanism)

    def measure(run: Run) -> float | None:
        worst = 0.0
        for t, value in zip(problem.times, problem.values, strict=True):
            if t > until:
                continue
            at = run.at(float(t))
            if at is None or not np.all(np.isfinite(run.q[at])):
                return None
            tree.set_state(run.q[at])
            worst = max(worst, float(np.abs(problem.output(tree) - value).max()))
        return finite(worst)

    return measure


def refine(
    setting: Setting,
    made: Problem,
    values: tuple[float, ...],
    limits: tuple[float, float],
    reading: tuple[float, Array, tuple[float, ...]],
    running: Session,
    put_errors: Callable[[Row, Run], None],
) -> Generator[Row]:
    """Rows of one setting; ``put_errors`` writes errors into each.

    Args:
        setting: Of a simulator.
        made: What is run.
        values: Of the knob, from coarse to fine.
        limits: Seconds that a run may take, and the finest value.
        reading: Seconds between states that are read at fixed steps, the times (n,) under
            error control, and the horizons.
        running: The simulators.
        put_errors: See above.
    """
    cap, finest = limits
    grid, times, horizons = reading
    pace: tuple[float, float] | None = None
    errors: dict[str, list[float]] = {}
    for value in values:
        if value < 0.99 * finest or value > 1.01 * setting.coarsest:
            continue
        until = max(horizons)
        if pace is not None:
            power = 1.0 if setting.knob == "dt" else 1 / 8  # of an order of eight
            second = pace[0] * (pace[1] / value) ** power
            until = max((h for h in horizons if second * h <= cap), default=0.0)
        if until == 0.0:
            break
        row: Row = {"case": made.name, "peer": setting.peer, "setting": setting.label}
        row |= {"knob": setting.knob, "value": value, "errors": {}}
        try:
            read = grid, times[times < until + 0.5 * grid]
            run = _run(setting, made, value, read, None if pace else FIRST * cap, running)
            put_errors(row, run)
            pace = (float(run.seconds[-1] / run.times[-1]), value) if row["errors"] else None
        except PeerError as failure:
            row["failed"], pace = str(failure), None
        yield row
        if "left out" in row.get("failed", ""):
            break
        for horizon, entry in row["errors"].items():
            errors.setdefault(horizon, []).append(entry["error"])
        if row["errors"] and all(_at_its_end(errors[horizon]) for horizon in row["errors"]):
            break


def _at_its_end(errors: list[float]) -> bool:
    """Whether finer runs to the same horizon gain nothing any more, or need not."""
    if len(errors) > 1 and max(errors[-2:]) <= LEVELS[-1]:
        return True
    return len(errors) > TRIED and min(errors[-TRIED:]) > GAIN * min(errors[:-TRIED])


def _run(
    setting: Setting,
    made: Problem,
    value: float,
    reading: tuple[float, Array],
    cap: float | None,
    running: Session,
) -> Run:
    """Median seconds up to each state, and the states; short runs are repeated."""
    grid, times = reading
    end = float(times[-1])
    if setting.knob == "dt":
        running.build(setting, made, value)
        if cap is not None:
            affordable(setting, end / value, cap, running)
        every = round(grid / value)
        steps = every * round(end / grid)
        how, warm, asked = "record", (every, every), (steps, every)
        times = grid * np.arange(round(end / grid) + 1, dtype=np.float64)
    else:
        running.build(setting, made, grid, rtol=value, atol=0.1 * value)
        how, warm, asked = "visit", (times[:1],), (times,)
        times = np.concatenate([np.zeros(1), times])
    runs: list[Array] = []
    running.ask(setting, how, *warm)
    while True:
        seconds, q, v = running.ask(setting, how, *asked)
        runs.append(seconds)
        if len(runs) == REPEATS or seconds[-1] > SHORT or len(seconds) != len(runs[0]):
            kept = [run for run in runs if len(run) == len(runs[0])]
            seconds = np.array(np.median(kept, axis=0), np.float64)
            return Run(times[: len(q)], seconds[: len(q)], q, v)
