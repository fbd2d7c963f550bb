"""Runs the tasks of a comparison and puts the results together."""

import math
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from bulletbridge.errors import ModelError
from bulletbridge.surface.bench.cases import CASES, SINGULAR, STANDARD, case
from bulletbridge.surface.bench.judging import Reference, reference
from bulletbridge.surface.bench.problem import Problem
from bulletbridge.surface.bench.session import Row, Session, conversion, installed, session
from bulletbridge.surface.bench.settings import PACKAGES, SETTINGS, TASKS, Task
from bulletbridge.surface.bench.tasks import (
    FULL,
    QUICK,
    Effort,
    Say,
    accuracy,
    growth,
    singular,
    time_steps,
    work_precision,
)
from bulletbridge.surface.models import bundled
from bulletbridge.surface.results import versions

SCHEMA = 1


@dataclass(frozen=True)
class Choice:
    """What to measure.

    Attributes:
        tasks, cases, peers: By name; all unless given.
        quick: A few seconds, to see that everything works; the figures mean nothing.
        cap: Seconds that one run of work-precision may take.
    """

    tasks: tuple[Task, ...] = TASKS
    cases: tuple[str, ...] = tuple(CASES)
    peers: tuple[str, ...] = tuple(PACKAGES)
    quick: bool = False
    cap: float = FULL.cap

    def __post_init__(self) -> None:
        """Refuse what there is not.

        Raises:
            ModelError: It says what there is.
        """
        for what, given, known in (
            ("task", self.tasks, TASKS),
            ("case", self.cases, tuple(CASES)),
            ("peer", self.peers, tuple(PACKAGES)),
        ):
            for name in given:
                if name not in known:
                    raise ModelError(f"unknown {what} '{name}'; there are {', '.join(known)}")


def run(choice: Choice, say: Say) -> dict[str, Any]:
    """Measure; everything that the page shows, ready for JSON."""
    effort = QUICK if choice.quick else replace(FULL, cap=choice.cap)
    begun = time.time()
    peers = tuple(dict.fromkeys(("bulletbridge", *choice.peers)))
    say("looking for simulators")
    found = installed(peers, memory=not choice.quick)
    there = tuple(peer for peer in peers if found[peer]["installed"])
    results: dict[str, Any] = {
        "schema": SCHEMA,
        "versions": versions(),
        "machine": machine(),
        "quick": choice.quick,
        "effort": asdict(effort),
        "peers": found,
        "settings": [asdict(s) for s in SETTINGS if s.peer in there],
    }
    tables = ("conversion", "references", "time", "accuracy", "work_precision")
    results |= {name: [] for name in (*tables, "growth", "singular", "standard")}
    of_cases = {"time", "accuracy", "work-precision"} & set(choice.tasks)
    for name in choice.cases if of_cases else ():
        with session(there) as running:
            one_case(name, CASES[name], choice.tasks, running, effort, say, results)
    if "growth" in choice.tasks:
        with session(there) as running:
            for kind in ("row", "ladder"):
                running.peers = there
                results["conversion"] += agreeing(case(f"{kind}3"), running)
                results["growth"] += growth(kind, running, effort, say)
    if "singular" in choice.tasks:
        with session(there) as running:
            for name in SINGULAR[:1] if choice.quick else SINGULAR:
                made, running.peers = case(name), there
                results["conversion"] += agreeing(made, running)
                results["singular"] += singular(made, running, effort, say)
    if "standard" in choice.tasks:
        for name in [name for name in STANDARD if name in bundled()]:
            with session(there) as running:
                standard(name, running, effort, say, results)
    results["seconds"] = time.time() - begun
    results["machine"]["load_after"] = load_average()
    return without_nan(results)


def without_nan(value: Any) -> Any:
    """The same with None for numbers that JSON does not have."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: without_nan(part) for key, part in pairs}
    if isinstance(value, list | tuple):
        return [without_nan(part) for part in cast("list[Any]", value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def one_case(
    name: str,
    horizons: tuple[float, ...],
    tasks: Sequence[Task],
    running: Session,
    effort: Effort,
    say: Say,
    results: dict[str, Any],
) -> None:
    """Conversion, time, accuracy and work-precision of one mechanism."""
    made = case(name)
    if effort is QUICK:
        horizons = (effort.duration,)
    exact: Reference | None = None
    say(f"{name}: the same model everywhere?")
    rows: dict[str, list[Row]] = {"conversion": agreeing(made, running)}
    if "time" in tasks:
        rows["time"] = time_steps(made, running, effort, say)
    if {"accuracy", "work-precision"} & set(tasks):
        say(f"{name}: reference")
        exact = reference(made, horizons, running)
        rows["references"] = [exact.row]
        if "accuracy" in tasks:
            rows["accuracy"] = accuracy(made, exact, running, effort, say)
        if "work-precision" in tasks:
            found = work_precision(made, exact, horizons, running, effort, say)
            rows["work_precision"] = found
    for table, lines in rows.items():
        results[table] += lines


def standard(
    name: str, running: Session, effort: Effort, say: Say, results: dict[str, Any]
) -> None:
    """Work-precision of a standard problem."""
    made = case(name)
    horizons = (effort.duration,) if effort is QUICK else STANDARD[name]
    results["conversion"] += agreeing(made, running)
    say(f"{name}: reference")
    exact = reference(made, horizons, running)
    results["references"].append(exact.row)
    results["standard"] += work_precision(made, exact, horizons, running, effort, say)


def agreeing(made: Problem, running: Session) -> list[Row]:
    """Compare accelerations, and go on without the simulators that have another model."""
    rows = conversion(made, running)
    same = {row["peer"] for row in rows if row.get("same")}
    running.peers = tuple(peer for peer in running.peers if peer in same)
    return rows


def machine() -> Row:
    """What it ran on."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "load_before": load_average(),
    }


def processor() -> str:
    """Name of the processor, as far as the system tells."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [
                line.split(":", 1)[1].strip() for line in file if line.startswith("model name")
            ]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def load_average() -> float | None:
    """Processes that wanted to run in the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None
