"""The simulators of a comparison, each in its own process, and whether they got the same model."""

import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

import bulletbridge
from bulletbridge.bench.problem import Problem, stirred
from bulletbridge.bench.settings import PACKAGES, Setting, Task, adapters, settings
from bulletbridge.bench.worker import PeerError, Worker
from bulletbridge.comparison.results import version_of
from bulletbridge.numerics.records import Array

Row = dict[str, Any]
"""One line of the results, ready for JSON."""
DIFFERENCES = (4e-6, 2e-6, 1e-6)
"""Steps [s] whose differences of velocities are extrapolated to none."""
MEMORY = """
import numpy, scipy.integrate, scipy.spatial, importlib, os
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
before = resident()
for module in {modules!r}:
    importlib.import_module(module)
print("memory", resident() - before)
"""
Say = Callable[[str], None]
"""Told what is measured next."""


@dataclass(frozen=True)
class Workload:
    """How long to measure.

    Attributes:
        batches: Of each time per step; simulators take turns.
        batch: Seconds of one.
        duration: Of the runs whose gaps and energy are taken [s].
        cap: Seconds that a single run may take; finer steps are left out.
        longest: The same of the runs whose gaps and energy are taken.
        dts, rtols: Of work-precision.
        shares: Steps of standard problems, in units of the time between states.
        quick: Whether the figures mean nothing.
        loops: Of the growth.
        slowest: Seconds of a step from which on larger mechanisms are left out.
    """

    batches: int = 15
    batch: float = 6e-3
    duration: float = 10.0
    cap: float = 0.5
    dts: tuple[float, ...] = (
        0.05, 0.025, 1 / 60, 0.01, 0.005, 1 / 240, 0.002, 1e-3, 5e-4, 2.5e-4, 1e-4, 5e-5, 2e-5,
        1e-5, 5e-6,
    )  # fmt: skip
    rtols: tuple[float, ...] = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12)
    loops: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100)
    slowest: float = 0.02
    shares: tuple[float, ...] = (
        0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4
    )  # fmt: skip
    quick: bool = False
    longest: float = 20.0


FULL = Workload()
QUICK = Workload(
    3, 1e-3, 0.1, 0.2, (1 / 60, 0.005), (1e-6,), (1, 2), shares=(0.1, 0.02), quick=True
)


@dataclass
class Session:
    """Workers of the simulators, made when they are needed.

    Attributes:
        peers: Keys of ``PACKAGES``.
        workload: How long to measure.
        say: Told what is measured next.
        refused: Their adapters that do not have the present model.
    """

    peers: tuple[str, ...]
    workload: Workload = FULL
    say: Say = lambda _: None
    workers: dict[str, Worker] = field(default_factory=lambda: {})
    refused: set[tuple[str, str]] = field(default_factory=lambda: set())

    def settings(self, task: Task) -> list[Setting]:
        """Settings that take part in a task."""
        return [
            setting
            for setting in settings(self.peers, task)
            if (setting.adapter or PACKAGES[setting.peer].adapter) not in self.refused
        ]

    def worker(self, peer: str) -> Worker:
        """The process of a simulator; a new one if the last one is gone.

        Raises:
            PeerError: The simulator cannot be imported.
        """
        worker = self.workers.get(peer)
        if worker is None or not worker.process.is_alive():
            worker = self.workers[peer] = Worker()
            worker("load", PACKAGES[peer].imports)
        return worker

    def build(self, setting: Setting, made: Problem, dt: float, **options: Any) -> float:
        """Make a problem in a simulator, by the setting's label; memory that it takes [MB].

        Raises:
            PeerError: The simulator refuses it.
        """
        adapter = setting.adapter or PACKAGES[setting.peer].adapter
        given = setting.options | setting.cases.get(made.name, {}) | options
        return self.worker(setting.peer)("build", setting.label, adapter, made, dt, **given)

    def ask(self, setting: Setting, what: str, *arguments: Any, **named: Any) -> Any:
        """The answer of a simulator's process to a call of its adapter, for the model built in it.

        Raises:
            PeerError: It failed, or the process that had it is gone.
        """
        return self.workers[setting.peer](what, setting.label, *arguments, **named)

    def close(self) -> None:
        """End all processes."""
        for worker in self.workers.values():
            worker.close()
        self.workers.clear()


@contextmanager
def session(
    peers: Sequence[str], workload: Workload = FULL, say: Say = lambda _: None
) -> Generator[Session]:
    """Simulators in processes that end with the block."""
    made = Session(tuple(peers), workload, say)
    try:
        for peer in peers:  # all at once: they start slowly
            made.workers[peer] = Worker()
        for peer, worker in made.workers.items():
            worker("load", PACKAGES[peer].imports)
        yield made
    finally:
        made.close()


def installed(peers: Sequence[str], memory: bool) -> dict[str, Row]:
    """Which simulators there are, with version and, if asked, the memory that they take."""
    found: dict[str, Row] = {}
    for peer in peers:
        package = PACKAGES[peer]
        row: Row = {"name": package.name, "installed": True, "import_mb": None}
        missing = [name for name in package.imports if find_spec(name.split(".")[0]) is None]
        if missing:
            reason = f"not installed: no module {missing[0]}; pip install 'bulletbridge[bench]'"
            row |= {"installed": False, "reason": reason}
        else:
            row["version"] = version_of(package.distribution) or bulletbridge.__version__
            if memory:
                row["import_mb"] = import_memory(package.imports or ("bulletbridge",))
        found[peer] = row
    return found


def import_memory(modules: tuple[str, ...]) -> float | None:
    """Memory [MB] of a fresh interpreter that importing these takes; None if it cannot be told."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY.format(modules=modules)], capture_output=True, text=True
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("memory ")]
    return float(lines[-1].split()[1]) if lines else None


def conversion(made: Problem, running: Session) -> list[Row]:
    """Accelerations at the start in every simulator beside ours, relative to the largest.

    Springs and dampers at rest would hide there, so those are compared a little way on. Adapters
    that refuse the model, or have another one, are left out of the session.
    """
    moved = stirred(made)
    ours = _accelerations(Setting("bulletbridge", "check", {}), moved, running)[0]
    scale = max(1.0, float(np.abs(ours).max()))
    rows: list[Row] = []
    for peer in running.peers:
        package = PACKAGES[peer]
        row: Row = {"case": made.name, "peer": peer, "limit": package.limit}
        errors: list[float] = []
        refused: list[str] = []
        for adapter in adapters(peer):
            setting = Setting(peer, "check", package.check_of(made.name), adapter=adapter)
            try:
                found, row["how"], memory = _accelerations(setting, moved, running)
                row.setdefault("memory_mb", memory)
                errors.append(float(np.abs(found - ours).max()) / scale)
                if not errors[-1] <= package.limit:
                    running.refused.add(adapter)
            except PeerError as error:
                running.refused.add(adapter)
                refused.append(str(error))
        if refused:
            row["refused"] = refused
        if errors:
            row["error"] = max(errors)
            row["same"] = row["error"] <= package.limit
        else:
            row["failed"] = refused[0]
        rows.append(row)
    return rows


def _accelerations(setting: Setting, made: Problem, running: Session) -> tuple[Array, str, float]:
    """Accelerations at the start, how they were found, and the memory of making the model [MB]."""
    memory: list[float] = []
    found: list[Array] = []
    try:
        for dt in DIFFERENCES:
            memory.append(running.build(setting, made, dt))
            given = running.ask(setting, "acceleration")
            if given is not None:
                return given, "asked for", memory[0]
            first = running.ask(setting, "settled")
            _, _, v = running.ask(setting, "record", first + 1, 1)
            found.append((v[first + 1] - v[first]) / dt)
    finally:
        running.ask(setting, "drop")
    coarse, middle, fine = found
    return (8.0 * fine - 6.0 * middle + coarse) / 3.0, "differences of velocities", memory[0]
