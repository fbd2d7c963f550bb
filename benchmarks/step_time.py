"""Time per step beside Bullet and MuJoCo, on the same mechanisms, interleaved in one run.

    python benchmarks/step_time.py [MODEL ...] [--dt S] [--json FILE]

Bullet: ``stepSimulation`` of the raw module, default settings, the model closed by its own
constraints, collisions off. MuJoCo (extra ``bench``): ``mj_step``, default settings, contacts and
limits off, the same tree and loops. Every figure is the median of batches that take turns.
"""

import argparse
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pybullet
from mjcf import mjcf
from rich.console import Console
from rich.table import Table

from bulletbridge.surface.load import LoadedModel, load
from bulletbridge.surface.native import NativeWorld

BATCHES, BATCH_SECONDS = 41, 4e-3
MANY = 50
"""Steps of one call, for the figures inside a loop."""

Job = tuple[Callable[[], object], int]
"""What to time, and the steps that it does."""


def ours(model: LoadedModel) -> dict[str, Job]:
    """Our step from Python, with and without showing it in Bullet, and many steps a call."""
    system = model.system
    return {
        "step": (lambda: system.step(write=False), 1),
        "step and write": (system.step, 1),
        "inside a loop": (lambda: system.rollout(MANY, every=MANY), MANY),
    }


def bullet(world: NativeWorld) -> dict[str, Job]:
    """Bullet's own step."""
    return {"Bullet": (lambda: pybullet.stepSimulation(world.client), 1)}


def mujoco_jobs(model: LoadedModel) -> dict[str, Job]:
    """MuJoCo's step from Python and many steps a call; nothing without the extra."""
    try:
        mujoco: Any = import_module("mujoco")
    except ImportError:
        return {}
    system = model.system
    peer = mujoco.MjModel.from_xml_string(mjcf(system.mechanism, system.encoded))
    peer.opt.timestep = system.dt
    data = mujoco.MjData(peer)
    data.qpos[:] = qpos(model)
    return {
        "MuJoCo": (lambda: mujoco.mj_step(peer, data), 1),
        "MuJoCo inside a loop": (lambda: mujoco.mj_step(peer, data, nstep=MANY), MANY),
    }


def qpos(model: LoadedModel) -> np.ndarray:
    """Our configuration in MuJoCo's coordinates: quaternions start with w."""
    q = model.system.q
    for joint in model.system.mechanism.joints.values():
        if joint.kind in ("free", "spherical"):
            last = joint.q.stop
            q[last - 4 : last] = np.roll(q[last - 4 : last], 1)
    return q


def measure(jobs: dict[str, Job]) -> dict[str, float]:
    """Microseconds a step: median over batches, the jobs taking turns."""
    counts: dict[str, int] = {}
    for name, (job, _) in jobs.items():
        job()
        begun = perf_counter()
        for _ in range(20):
            job()
        counts[name] = max(1, round(20 * BATCH_SECONDS / (perf_counter() - begun)))
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(BATCHES):
        for name, (job, steps) in jobs.items():
            begun = perf_counter()
            for _ in range(counts[name]):
                job()
            times[name].append(1e6 * (perf_counter() - begun) / (counts[name] * steps))
    return {name: median(values) for name, values in times.items()}


def main() -> None:
    """Measure, print a table, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=["four_bar", "two_arms", "minitaur"])
    parser.add_argument("--dt", type=float, default=1e-3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    for name in options.models:
        with load(name, dt=options.dt) as model:
            system = model.system
            world = NativeWorld(model.spec, system.q, system.v, system.dt)
            results[name] = measure(ours(model) | bullet(world) | mujoco_jobs(model))
            world.close()
    table = Table("model", *next(iter(results.values())), "step / Bullet", "with write / Bullet")
    for name, figures in results.items():
        ratios = (figures[key] / figures["Bullet"] for key in ("step", "step and write"))
        numbers = (f"{value:.2f}" for value in (*figures.values(), *ratios))
        table.add_row(name, *numbers)
    Console(width=140).print(table)
    if options.json:
        options.json.write_text(json.dumps({"unit": "us per step", "dt": options.dt} | results))


if __name__ == "__main__":
    main()
