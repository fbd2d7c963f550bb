"""Environments under random actions: is all finite, are loops closed, does memory grow.

    python benchmarks/random_actions.py [--actions N] [--worlds N] [--seconds S] [--env ID ...]

Each environment is stepped by uniform actions until so many are done, or so many seconds over;
episodes begin again by themselves. Gaps are looked at in one world after another, one an action.
"""

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

from bulletbridge.gym import REGISTERED, LoopVectorEnv

PAGE = 4096


class Measured(NamedTuple):
    """What was seen of an environment."""

    actions: int
    steps: int  # of the simulation
    episodes: int
    failures: int
    numbers: int  # that were not finite
    gap: float  # largest [m]
    growth: float  # of memory, from a tenth of the run on [MB]
    seconds: float


def memory() -> float:
    """What this process has of it [MB]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def measure(name: str, actions: int, worlds: int, seconds: float) -> Measured:
    """Do random actions in many worlds."""
    made = gymnasium.make_vec(name, num_envs=worlds, flat=True)
    env = made.unwrapped
    assert isinstance(env, LoopVectorEnv)
    rng, begun = np.random.default_rng(0), time.perf_counter()
    env.reset(seed=0)
    done = episodes = failures = numbers = 0
    gap, early = 0.0, 0.0
    per_action = env.task.steps
    while done < actions and time.perf_counter() - begun < seconds:
        asked = rng.uniform(-1.0, 1.0, (worlds, len(env.action_names)))
        seen, rewards, terminated, truncated, _ = env.step(asked)
        done += worlds
        episodes += int((terminated | truncated).sum())
        failures += len(env.worlds.failures)
        numbers += int((~np.isfinite(seen)).sum() + (~np.isfinite(rewards)).sum())
        numbers += int((~np.isfinite(env.worlds.q)).sum())
        world = done // worlds % worlds
        gap = max(gap, env.worlds.evaluate(world).largest("kept_metres"))
        if not early and (10 * done > actions or 10 * (time.perf_counter() - begun) > seconds):
            early = memory()
    growth, taken = memory() - early, time.perf_counter() - begun
    env.close()
    return Measured(done, done * per_action, episodes, failures, numbers, gap, growth, taken)


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--actions", type=int, default=1_000_000)
    parser.add_argument("--worlds", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--env", nargs="*", default=list(REGISTERED))
    given = parser.parse_args()
    columns = "actions", "steps", "episodes", "failures", "not finite", "gap [m]", "growth [MB]"
    table = Table("environment", *columns, "actions/s")
    for name in given.env:
        m = measure(name, given.actions, given.worlds, given.seconds)
        counts = (f"{x:,}" for x in m[:5])
        rest = f"{m.gap:.1e}", f"{m.growth:.1f}", f"{m.actions / m.seconds:,.0f}"
        table.add_row(name, *counts, *rest)
    Console().print(table)


if __name__ == "__main__":
    main()
