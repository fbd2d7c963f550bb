"""Which integrator is the default: errors of energy and trajectory, and what a step costs.

    python benchmarks/default_integrator.py [MODEL ...] [-o default_integrator.json] [--table]

All bundled models but those of standard problems and of flexible arms, without contacts, motors and
limits, each from its start: ``semi_implicit_euler``, ``verlet`` and ``rk4`` beside Bullet. The
reference is ``dop853`` at a tolerance of 1e-12, at the same times. The energy error is the largest
change over 4 s, and where dampers act the largest difference to the reference; that of the
trajectory the largest of any coordinate over the first second. The tables go to stdout and into
docs/integrators.md; ``--table`` makes them from what was measured before.
"""

import argparse
import json
import math
import os
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, get_args

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices here are smaller than a thread

import numpy as np
from formulation_time import Job, measure
from numpy.typing import NDArray

import bulletbridge as bb
from bulletbridge.comparison.evaluate import changes_energy
from bulletbridge.comparison.native import NativeWorld, NoNativeTwinError
from bulletbridge.comparison.trajectory import distances
from bulletbridge.console import write_json
from bulletbridge.errors import BulletBridgeError
from bulletbridge.models.bundled import bundled
from bulletbridge.models.load import LoadedModel, load
from bulletbridge.system.options import Integrator

Array = NDArray[np.float64]
FILE = Path(__file__).with_name("default_integrator.json")
PAGE = Path(__file__).parents[1] / "docs" / "integrators.md"
METHODS: tuple[Integrator, ...] = ("semi_implicit_euler", "verlet", "rk4")
BULLET = "Bullet"
RATES = 240, 1000
"""Steps a second."""
LONG, SHORT = 4.0, 1.0
"""Durations of the errors of energy and trajectory [s]."""
TIGHT = 1e-12
OTHERS = "standard", "flexible"
"""Folders of models that have tables of their own."""


def models() -> list[str]:
    """Names of the models."""
    return [name for name, path in bundled().items() if path.parent.name not in OTHERS]


def energies(system: bb.System, q: Array, v: Array) -> Array:
    """Energy (n,) [J] of states."""
    return np.array([system.evaluate(a, b).energy for a, b in zip(q, v, strict=True)])


def errors(
    loaded: LoadedModel, q: Array, v: Array, reference: tuple[Array, Array], steps: int
) -> dict[str, float]:
    """Largest errors of a run against the reference, over as many steps as it has."""
    mechanism, (right, energy) = loaded.system.mechanism, reference
    energy = energy[: len(q)]
    if not changes_energy(loaded, right):  # error control may pass a singular position and be off
        energy = np.full(len(q), energy[0])
    off = energies(loaded.system, q, v) - energy
    away = distances(mechanism, q[:steps], right[:steps])
    return {"energy": float(np.abs(off).max()), "trajectory": float(away.max())}


def measured(name: str, rate: int) -> dict[str, Any]:
    """Errors and times of all methods on a model."""
    dt, steps, short = 1.0 / rate, round(LONG * rate), round(SHORT * rate)
    found: dict[str, Any] = {}
    with ExitStack() as worlds:
        exact = worlds.enter_context(
            load(name, dt=dt, integrator="dop853", rtol=TIGHT, limits=False)
        )
        start = exact.system.q, exact.system.v
        run = exact.system.rollout(steps)
        reference = run.q, energies(exact.system, run.q, run.v)
        jobs: dict[str, Job] = {}
        for method in METHODS:
            loaded = worlds.enter_context(load(name, dt=dt, integrator=method, limits=False))
            try:
                made = loaded.system.rollout(steps)
                found[method] = errors(exact, made.q, made.v, reference, short)
            except BulletBridgeError as error:
                found[method] = {"message": str(error)}
                continue
            loaded.system.set_state(*start, t=0.0)
            jobs[method] = (lambda s=loaded.system: s.step(write=False), 1)
        try:
            world = worlds.enter_context(closing(NativeWorld(exact.spec, *start, dt)))
            states = [world.step() for _ in range(steps)]
            q, v = (np.array([state[k] for state in states]) for k in (0, 1))
            found[BULLET] = errors(exact, q, v, reference, short)
            jobs[BULLET] = (world.advance, 1)
        except NoNativeTwinError as error:
            found[BULLET] = {"message": str(error)}
        for method, microseconds in measure(jobs).items():
            found[method]["step"] = microseconds
    return found


def table(results: dict[str, dict[str, Any]], error: str) -> str:
    """Errors [J, rad or m] and steps [µs] as Markdown, and who gives least error for its time."""
    heads = [*METHODS, BULLET]
    lines = ["| model, steps a second | " + " | ".join(heads) + " | least per µs |"]
    lines.append("|---" * (len(heads) + 2) + "|")
    for case, found in results.items():
        cells: list[str] = []
        cost: dict[str, float] = {}
        for method in heads:
            if "step" not in found[method]:
                cells.append("–")
                continue
            size, step = found[method][error], found[method]["step"]
            cells.append(f"{size:.2g} ({step:.2g})")
            cost[method] = size * step
        low = [method for method in ("semi_implicit_euler", "verlet") if method in cost]
        best = min(low, key=lambda method: cost[method])
        lines.append(f"| {case} | " + " | ".join(cells) + f" | {best} |")
    return "\n".join(lines)


def ratios(results: dict[str, dict[str, Any]], error: str) -> str:
    """How verlet compares with Euler over all models: error, time, and both; geometric means."""
    logs: list[tuple[float, float]] = []
    for found in results.values():
        euler, verlet = found["semi_implicit_euler"], found["verlet"]
        if "step" in euler and "step" in verlet and min(euler[error], verlet[error]) > 0.0:
            logs.append(
                (math.log(verlet[error] / euler[error]), math.log(verlet["step"] / euler["step"]))
            )
    size, step = np.exp(np.mean(logs, axis=0))
    return (
        f"By geometric means over all models `verlet` has {size:.2g} of Euler's error, and its step"
        f" takes {step:.2f} times as long"
    )


def put(text: str, name: str, page: str) -> str:
    """A page with the text between two comments."""
    before, rest = page.split(f"<!-- {name} -->\n", 1)
    return f"{before}<!-- {name} -->\n{text}\n<!-- end -->{rest.split('<!-- end -->', 1)[1]}"


def main() -> None:
    """Measure, keep and print."""
    assert set(METHODS) <= set(get_args(Integrator))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="all unless given")
    parser.add_argument("-o", "--output", type=Path, default=FILE)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    if options.output.exists() and (options.table or options.models):
        results = json.loads(options.output.read_text())
    if not options.table:
        for name in options.models or models():
            for rate in RATES:
                results[f"`{name}`, {rate}"] = measured(name, rate)
                write_json(options.output, results)
    page = PAGE.read_text()
    for error in ("energy", "trajectory"):
        text = f"{table(results, error)}\n\n{ratios(results, error)}."
        page = put(text, f"default {error}", page)
        print(f"\n{text}")
    if options.output == FILE:
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
