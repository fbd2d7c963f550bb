"""Steps per second of many worlds at once, on one core and on two, beside mujoco.rollout.

    python benchmarks/rollouts.py [--dt S] [--worlds N] [--steps N] [--json FILE]

The same mechanisms from the same closed states, every state kept, both libraries with a pool of
threads that stays or is made anew as they have it; their jobs take turns. Ours is semi-implicit
Euler, loops at round-off. MuJoCo (extra ``bench``) is its Euler with the Newton solver and default
settings, contacts and limits off, its loops soft. Figures are medians of the turns, with the best;
processor time, all threads together, depends least on what else runs.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np
from mujoco import rollout as peer_rollout  # pyright: ignore[reportMissingModuleSource]
from rich.console import Console
from rich.table import Table

from bulletbridge.bench.cases import case
from bulletbridge.bench.peers.mujoco import Mujoco
from bulletbridge.bench.peers.ours import Ours
from bulletbridge.console import write_json
from bulletbridge.numerics.records import Array
from bulletbridge.system.rollouts import rollout
from bulletbridge.system.system import System

MODELS, THREADS, TURNS, REST = ("four_bar", "two_arms"), (1, 2), 61, 0.02


def start_states(system: System, worlds: int) -> tuple[Array, Array]:
    """Closed states (worlds,) along a motion."""
    found: list[tuple[Array, Array]] = []
    for _ in range(worlds):
        system.rollout(3, 3)
        found.append((system.q, system.v))
    q, v = zip(*found, strict=True)
    return np.array(q), np.array(v)


def jobs(name: str, dt: float, worlds: int, steps: int) -> dict[str, Callable[[], object]]:
    """What takes turns: each library on each number of threads."""
    made = case(name)
    system, peer = Ours(made, dt).system, Mujoco(made, dt)
    q, v = start_states(system, worlds)
    library: Any = peer.library
    full = library.mjtState.mjSTATE_FULLPHYSICS
    states = np.zeros((worlds, library.mj_stateSize(peer.model, full)))
    for n in range(worlds):  # hinges alone: the same coordinates
        peer.data.qpos[:], peer.data.qvel[:] = q[n], v[n]
        library.mj_getState(peer.model, peer.data, states[n], full)
    found: dict[str, Callable[[], object]] = {}
    for threads in THREADS:
        data = [library.MjData(peer.model) for _ in range(threads)]
        pool: Any = peer_rollout.Rollout(nthread=threads)

        def ours(threads: int = threads) -> object:
            return rollout(system, q, v, steps=steps, threads=threads).check()

        def theirs(data: list[Any] = data, pool: Any = pool) -> object:
            return pool.rollout(peer.model, data, states, nstep=steps)

        found[f"bulletbridge {threads}"], found[f"MuJoCo {threads}"] = ours, theirs
    return found


def measure(name: str, dt: float, worlds: int, steps: int) -> dict[str, dict[str, float]]:
    """Steps per second, median and best over turns; least processor time per step [us]."""
    turns = jobs(name, dt, worlds, steps)
    seconds: dict[str, list[float]] = {job: [] for job in turns}
    processor = dict.fromkeys(turns, float("inf"))
    for job in turns.values():
        job()
    for _ in range(TURNS):
        for job, call in turns.items():
            sleep(REST)
            begun, used = perf_counter(), process_time()
            call()
            seconds[job].append(perf_counter() - begun)
            processor[job] = min(processor[job], process_time() - used)
    done = worlds * steps
    return {
        job: {
            "median": done / median(taken),
            "best": done / min(taken),
            "processor_us": 1e6 * processor[job] / done,
        }
        for job, taken in seconds.items()
    }


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dt", type=float, default=1 / 240)
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results = {name: measure(name, given.dt, given.worlds, given.steps) for name in MODELS}
    columns = "bulletbridge", "mujoco.rollout", "ratio (best)", "processor [us/step]"
    table = Table("model", "threads", *columns)
    for name, found in results.items():
        for threads in THREADS:
            ours, theirs = found[f"bulletbridge {threads}"], found[f"MuJoCo {threads}"]
            table.add_row(
                name,
                str(threads),
                *(f"{x['median']:,.0f} ({x['best']:,.0f})" for x in (ours, theirs)),
                f"{ours['median'] / theirs['median']:.1f} ({ours['best'] / theirs['best']:.1f})",
                f"{ours['processor_us']:.2f}, {theirs['processor_us']:.2f}",
            )
    Console().print(table)
    if given.json:
        settings = {"dt": given.dt, "worlds": given.worlds, "steps": given.steps}
        write_json(given.json, {**settings, "steps_per_second": results})


if __name__ == "__main__":
    main()
