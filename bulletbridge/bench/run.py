"""Runs the tasks of a comparison and puts the results together."""

import math
import os
import platform
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from bulletbridge.bench.cases import ALL, CASES, GROWING, SINGULAR, STANDARD, case
from bulletbridge.bench.evaluator import Reference, reference
from bulletbridge.bench.precision import standard, work_precision
from bulletbridge.bench.problem import Problem
from bulletbridge.bench.session import (
    FULL,
    QUICK,
    Row,
    Say,
    Session,
    conversion,
    installed,
    session,
)
from bulletbridge.bench.settings import PACKAGES, SETTINGS, TASKS, Task, adapters
from bulletbridge.bench.tasks import accuracy, growth, singular, time_steps
from bulletbridge.comparison.results import versions
from bulletbridge.errors import ModelError

SCHEMA = 2
TABLES = (
    "conversion", "references", "time", "accuracy", "work_precision", "growth", "singular",
    "standard",
)  # fmt: skip
"""Parts of the results, each a list of rows."""


@dataclass(frozen=True)
class Choice:
    """What to measure.

    Attributes:
        tasks, cases, peers: By name; all unless given. A task does those of its cases that are
            among them.
        quick: A few seconds, to see that everything works; the figures mean nothing.
        cap: Seconds that one run of work-precision may take.
    """

    tasks: tuple[Task, ...] = TASKS
    cases: tuple[str, ...] = ALL
    peers: tuple[str, ...] = tuple(PACKAGES)
    quick: bool = False
    cap: float = FULL.cap

    def __post_init__(self) -> None:
        """Refuse unknown tasks, cases and simulators."""
        for what, given, known in (
            ("task", self.tasks, TASKS),
            ("case", self.cases, ALL),
            ("peer", self.peers, tuple(PACKAGES)),
        ):
            for name in given:
                if name not in known:
                    raise ModelError(f"unknown {what} '{name}'; there are {', '.join(known)}")


def run(choice: Choice, say: Say) -> dict[str, Any]:
    """Measure; everything that the page shows, ready for JSON."""
    workload = QUICK if choice.quick else replace(FULL, cap=choice.cap)
    begun = time.time()
    peers = tuple(dict.fromkeys(("bulletbridge", *choice.peers)))
    say("looking for simulators")
    found = installed(peers, memory=not choice.quick)
    there = tuple(peer for peer in peers if found[peer]["installed"])
    results: dict[str, Any] = {
        "schema": SCHEMA,
        "versions": versions(),
        "quick": choice.quick,
        "workload": asdict(workload),
        "peers": found,
        "settings": [asdict(s) for s in SETTINGS if s.peer in there],
        **{name: [] for name in TABLES},
    }
    part: Row = machine() | {"tasks": choice.tasks, "cases": choice.cases, "spent": {}}
    of_cases = {"time", "accuracy", "work-precision"} & set(choice.tasks)
    chosen = [name for name in CASES if name in choice.cases] if of_cases else []
    for name in chosen:
        with clock(part, name), session(there, workload, say) as running:
            one_case(name, CASES[name], choice.tasks, running, results)
    if "growth" in choice.tasks:
        for kind in [kind for kind in GROWING if kind in choice.cases]:
            with clock(part, kind), session(there, workload, say) as running:
                results["conversion"] += agreeing(case(f"{kind}3"), running, there)
                results["growth"] += growth(kind, running)
    if "singular" in choice.tasks:
        singulars = [name for name in SINGULAR if name in choice.cases]
        with clock(part, "singular"), session(there, workload, say) as running:
            for name in singulars[:1] if choice.quick else singulars:
                made = case(name)
                results["conversion"] += agreeing(made, running, there)
                results["singular"] += singular(made, running)
    if "standard" in choice.tasks:
        standards = [name for name in STANDARD if name in choice.cases]
        for name in standards[:1] if choice.quick else standards:
            with clock(part, name), session(there, workload, say) as running:
                made = case(name)
                running.say(f"{name}: the same model everywhere?")
                results["conversion"] += agreeing(made, running, there)
                results["standard"] += standard(name, made, running)
    part |= {"seconds": time.time() - begun, "load_after": load_average()}
    results["parts"] = [part]
    return without_nan(results)


@contextmanager
def clock(part: Row, what: str) -> Generator[None]:
    """Write down how long something takes [s]."""
    begun = time.perf_counter()
    yield
    part["spent"][what] = round(time.perf_counter() - begun, 1)


def without_nan(value: Any) -> Any:
    """A value with None for the numbers in it that JSON does not have."""
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
    results: dict[str, Any],
) -> None:
    """Conversion, time, accuracy and work-precision of one mechanism."""
    made = case(name)
    if running.workload.quick:
        horizons = (running.workload.duration,)
    exact: Reference | None = None
    running.say(f"{name}: the same model everywhere?")
    rows: dict[str, list[Row]] = {"conversion": agreeing(made, running, running.peers)}
    if "time" in tasks:
        rows["time"] = time_steps(made, running)
    if {"accuracy", "work-precision"} & set(tasks):
        running.say(f"{name}: reference")
        exact = reference(made, horizons, running)
        rows["references"] = [exact.row]
        if "accuracy" in tasks:
            rows["accuracy"] = accuracy(made, exact, running)
        if "work-precision" in tasks:
            found = work_precision(made, exact, horizons, running)
            rows["work_precision"] = found
    for table, lines in rows.items():
        results[table] += lines


def agreeing(made: Problem, running: Session, there: tuple[str, ...]) -> list[Row]:
    """Compare accelerations, and go on without the simulators that have another model."""
    running.peers, running.refused = there, set()
    rows = conversion(made, running)
    running.peers = tuple(p for p in there if set(adapters(p)) - running.refused)
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


def merged(several: list[dict[str, Any]]) -> dict[str, Any]:
    """Several as one, measured piece by piece on a quiet machine: of the same, the last counts.

    The same is a table, a mechanism and a simulator.

    Raises:
        ModelError: They are of different efforts or versions of a simulator.
    """
    first, *others = several
    result = dict(first)
    for other in others:
        for key in ("quick", "workload"):
            if result[key] != other[key]:
                raise ModelError(f"results of different {key} cannot be put together")
        _require_versions(result["peers"], other["peers"])
        result["peers"] = result["peers"] | {
            key: peer
            for key, peer in other["peers"].items()
            if peer["installed"] or key not in result["peers"]
        }
        for table in TABLES:
            new = {_group(row) for row in other[table]}
            kept = [row for row in result[table] if _group(row) not in new]
            result[table] = kept + other[table]
        labels = {(row["peer"], row["label"]) for row in other["settings"]}
        kept = [row for row in result["settings"] if (row["peer"], row["label"]) not in labels]
        result["settings"] = kept + other["settings"]
        result["parts"] = result["parts"] + other["parts"]
    return result


def _group(row: Row) -> tuple[str, str]:
    """What a row is about: mechanism and simulator."""
    return row.get("case") or row["kind"], row.get("peer", "")


def _require_versions(here: dict[str, Row], there: dict[str, Row]) -> None:
    """Raise unless simulators in both have the same version."""
    for key in here.keys() & there.keys():
        versions = here[key].get("version"), there[key].get("version")
        if None not in versions and versions[0] != versions[1]:
            raise ModelError(f"{here[key]['name']} {versions[0]} and {versions[1]} do not mix")
