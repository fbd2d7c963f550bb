"""Processor time per step and per evaluation of every formulation, on the same models, interleaved.

    python benchmarks/formulation_time.py [MODEL ...] [--dt S] [--json FILE]

Steps are those of ``System.step`` with ``rk4``, correction to round-off and filter, without showing
the state in Bullet. Every figure is the median of batches that take turns.
"""

import argparse
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import process_time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices here are smaller than a thread

from rich.console import Console
from rich.table import Table

from bulletbridge.console import write_json
from bulletbridge.errors import BulletBridgeError
from bulletbridge.formulations.projector import Projector
from bulletbridge.formulations.registry import FORMULATIONS
from bulletbridge.models.load import load

BATCHES, BATCH_SECONDS = 41, 4e-3
Job = tuple[Callable[[], object], int]
"""What to time, and the steps that it does."""


def times(model: str, dt: float) -> dict[str, tuple[float, float] | str]:
    """Microseconds of a step and of an evaluation by formulation, or what it says instead."""
    made = {"projector, compiled": "projector", "projector": Projector}
    made |= {name: name for name in FORMULATIONS if name != "projector"}
    jobs: dict[str, Job] = {}
    refused: dict[str, str] = {}
    with ExitStack() as worlds:
        for label, make in made.items():
            loaded = worlds.enter_context(load(model, formulation=make, integrator="rk4", dt=dt))
            system = loaded.system
            try:
                for _ in range(3):
                    system.step(write=False)
            except BulletBridgeError as error:
                refused[label] = f"{type(error).__name__}: {error}"
                continue
            jobs[label] = (lambda s=system: s.step(write=False), 1)
            if label != "projector, compiled":
                once = FORMULATIONS[label](system.dynamics)
                state = (system.q, system.v, system.t)
                jobs[f"{label} once"] = (lambda f=once, x=state: f(*x), 1)
        found = measure(jobs)
    figures: dict[str, tuple[float, float] | str] = {
        label: (found[label], found.get(f"{label} once", float("nan")))
        for label in made
        if label in jobs
    }
    return figures | refused


def measure(jobs: dict[str, Job]) -> dict[str, float]:
    """Microseconds of processor time a step: median over batches, the jobs taking turns."""
    counts: dict[str, int] = {}
    for name, (job, _) in jobs.items():
        job()
        begun = process_time()
        for _ in range(20):
            job()
        counts[name] = max(1, round(20 * BATCH_SECONDS / (process_time() - begun)))
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(BATCHES):
        for name, (job, steps) in jobs.items():
            begun = process_time()
            for _ in range(counts[name]):
                job()
            times[name].append(1e6 * (process_time() - begun) / (counts[name] * steps))
    return {name: median(values) for name, values in times.items()}


def main() -> None:
    """Measure, print a table, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "models", nargs="*", default=["four_bar", "two_arms", "stewart", "minitaur"]
    )
    parser.add_argument("--dt", type=float, default=1e-3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {name: times(name, options.dt) for name in options.models}
    table = Table("formulation: step (evaluation) [µs]", *results)
    for label in next(iter(results.values())):
        cells = (row[label] for row in results.values())
        shown = (c[:60] if isinstance(c, str) else f"{c[0]:.1f} ({c[1]:.1f})" for c in cells)
        table.add_row(label, *shown)
    Console(width=160).print(table)
    if options.json:
        write_json(options.json, {"unit": "us", "dt": options.dt} | results)


if __name__ == "__main__":
    main()
