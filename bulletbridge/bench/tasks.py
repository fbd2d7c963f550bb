"""The tasks: what is run, in which order, and what is written down."""

from statistics import quantiles

import numpy as np

from bulletbridge.bench.cases import GROWING, case
from bulletbridge.bench.evaluator import Evaluator, Reference, finite, largest_kinetic, swing
from bulletbridge.bench.problem import Problem, undamped
from bulletbridge.bench.session import PeerError, Row, Session
from bulletbridge.bench.settings import Setting
from bulletbridge.numerics.records import Array

STEPS = (1 / 240, 1e-3)
"""Steps of the accuracy tables [s]: Bullet's default and a usual small one."""
HOW = ("call", "loop")
SEEN = 0.025
"""Seconds between states whose gaps and energy are taken."""


def time_steps(made: Problem, running: Session) -> list[Row]:
    """Time per step of 1 ms of every setting, taking turns."""
    rows, counts = list[Row](), dict[tuple[int, str], int]()
    chosen = running.settings("time")
    times: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for k, setting in enumerate(chosen):
        rows.append({"case": made.name, "peer": setting.peer, "setting": setting.label})
        try:
            running.build(setting, made, STEPS[1])
            for how in HOW:
                counts[k, how], times[k, how] = count(setting, how, running), []
        except PeerError as error:
            rows[k]["failed"] = str(error)
    running.say(f"{made.name}: time per step")
    for _ in range(running.workload.batches):
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


def count(setting: Setting, how: str, running: Session) -> int:
    """Steps of a batch; the first ones warm up.

    Raises:
        PeerError: The simulator failed.
    """
    running.ask(setting, "time", 2, how)
    wall, _ = running.ask(setting, "time", 10, how)
    return int(np.clip(1e6 * running.workload.batch / wall, 5, 5000))


def spread(values: list[float]) -> Row:
    """Median and quartiles."""
    if len(values) < 2:
        return {"median": values[0], "low": values[0], "high": values[0]}
    low, median, high = quantiles(values, n=4, method="inclusive")
    return {"median": median, "low": low, "high": high}


def accuracy(made: Problem, exact: Reference, running: Session) -> list[Row]:
    """Gaps and energy of every setting at usual steps; energy without dampers, if there are."""
    evaluator, rows = Evaluator(made), list[Row]()
    free = None if made.conservative else Evaluator(undamped(made))
    kinetic = (
        exact.kinetic if free is None else largest_kinetic(free, running.workload.duration, running)
    )
    for setting in running.settings("accuracy"):
        running.say(f"{made.name}: gaps and energy, {setting.peer}, {setting.label}")
        for dt in STEPS:
            row: Row = {"case": made.name, "peer": setting.peer, "setting": setting.label, "dt": dt}
            row |= drift(setting, dt, evaluator, exact.kinetic, running)
            if free is not None and "failed" not in row:
                run = drift(setting, dt, free, kinetic, running)
                row |= {"energy": run.get("energy"), "undamped": run.get("failed", "")}
            rows.append(row)
    return rows


def drift(
    setting: Setting, dt: float, evaluator: Evaluator, kinetic: float, running: Session
) -> Row:
    """Gaps and energy of one run."""
    try:
        running.build(setting, evaluator.problem, dt)
        every, q, v = seen_states(setting, dt, running.workload.longest, running)
    except PeerError as error:
        return {"failed": str(error)}
    return evaluator.drift(q, v, kinetic) | {"duration": every * (len(q) - 1) * dt}


def seen_states(
    setting: Setting, dt: float, longest: float, running: Session
) -> tuple[int, Array, Array]:
    """Steps between states that are seen, and these: q and v of a run of the model that is built.

    Raises:
        PeerError: The run failed, or would take more than ``longest`` seconds.
    """
    affordable(setting, running.workload.duration / dt, longest, running)
    every = max(1, round(SEEN / dt))
    steps = every * round(running.workload.duration / (every * dt))
    _, q, v = running.ask(setting, "record", steps, every)
    return every, q, v


def affordable(setting: Setting, steps: float, seconds: float, running: Session) -> None:
    """Raise unless so many steps are done in that time."""
    wall, _ = running.ask(setting, "time", 20, "loop")
    if 1e-6 * wall * steps > seconds:
        raise PeerError(f"left out: takes {1e-6 * wall * steps:.0f} s")


def growth(kind: str, running: Session) -> list[Row]:
    """Time per step of 1 ms with the number of loops, of one kind of ``GROWING``."""
    rows: list[Row] = []
    too_slow: set[str] = set()
    each = GROWING[kind]
    for units in dict.fromkeys(max(1, round(loops / each)) for loops in running.workload.loops):
        loops = each * units
        running.say(f"{kind}s of {loops}")
        made = case(f"{kind}{units}")
        alive: list[tuple[Row, Setting, int, dict[str, list[float]]]] = []
        for setting in running.settings("growth"):
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
                if 1e-6 * wall > running.workload.slowest:
                    too_slow.add(name)
                steps = int(np.clip(1e6 * running.workload.batch / wall, 2, 5000))
                hows = ("loop",) if name in too_slow else HOW
                alive.append((row, setting, steps, {how: [] for how in hows}))
            except PeerError as error:
                row["failed"] = str(error)
        for _ in range(min(7, running.workload.batches)):
            for row, setting, steps, values in alive:
                try:
                    for how in values:
                        values[how].append(running.ask(setting, "time", steps, how)[0])
                except PeerError as error:
                    row["failed"] = str(error)
        for row, setting, _, values in alive:
            if "failed" not in row:
                row |= {how: spread(times) for how, times in values.items()}
                running.ask(setting, "drop")
    return rows


def singular(made: Problem, running: Session) -> list[Row]:
    """Passing flat configurations: gap, energy, and whether the parallelograms stay such."""
    evaluator, rows = Evaluator(made), list[Row]()
    signs = np.where(made.mechanism.bodies["parent"][1:] == 0, 1.0, -1.0)
    for setting in running.settings("singular"):
        running.say(f"{made.name}: {setting.peer}, {setting.label}")
        for dt in STEPS:
            row: Row = {"case": made.name, "peer": setting.peer, "setting": setting.label, "dt": dt}
            rows.append(row)
            try:
                running.build(setting, made, dt)
                every, q, v = seen_states(setting, dt, 10.0 * running.workload.cap, running)
            except PeerError as error:
                row["failed"] = str(error)
                continue
            t = every * dt * np.arange(len(q), dtype=np.float64)
            angle, kinetic = swing(made, t)
            row |= evaluator.drift(q, v, kinetic)
            if "failed" not in row:
                turned = q * signs
                apart = np.abs(turned - turned[:, :1]).max(axis=1)
                row["on_branch"] = bool(apart.max() < 0.1)
                row["left_at"] = None if row["on_branch"] else float(t[np.argmax(apart >= 0.1)])
                first = round(min(1.0, running.workload.duration) / (every * dt))
                row["error_1s"] = finite(float(np.abs(turned[first] - angle[first]).max()))
    return rows
