"""What a step of the drop-in client costs beside Bullet alone: Minitaur on the plane and in flight.

    python benchmarks/drop_in.py [--json FILE]

Every step is timed by itself, in batches that take turns: ours, Bullet's, and ours once more phase
by phase. Figures are medians over all steps. Bullet's own step depends on the contact points at
hand, which are counted: on closed legs they may be others than on open ones.
"""

import argparse
import json
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pybullet
from minitaur_worlds import minitaur
from pybullet_utils.bullet_client import BulletClient as Native
from rich.console import Console
from rich.table import Table

from bulletbridge.surface.drop_in.client import BulletClient
from bulletbridge.surface.drop_in.session import session_of

BATCHES, STEPS = 41, 100
SETTLING = 300  # steps
PHASES = ("Bullet's step", "contacts", "read", "filter", "write")


def on_the_plane(client: Any) -> None:
    """Standing on its motors."""
    minitaur(client, 1 / 240)


def in_flight(client: Any) -> None:
    """Without gravity, away from the plane."""
    robot, _ = minitaur(client, 1 / 240)
    client.setGravity(0, 0, 0)
    client.resetBasePositionAndOrientation(robot, [0, 0, 2], [0, 0, 0, 1])


def measure(ours: Any, native: Any) -> dict[str, float]:
    """Microseconds a step of both, and of each phase of ours."""
    whole: list[float] = []
    alone: list[float] = []
    parts: list[list[float]] = []
    counts: tuple[list[int], list[int]] = [], []
    for _ in range(BATCHES):
        for client, found in ((ours, whole), (native, alone)):
            step = client.stepSimulation
            for _ in range(STEPS):
                begun = perf_counter()
                step()
                found.append(1e6 * (perf_counter() - begun))
            counts[client is native].append(len(client.getContactPoints()))
        parts += [phases(ours) for _ in range(STEPS)]
    figures = {"ours": median(whole), "Bullet": median(alone)}
    figures["ratio"] = figures["ours"] / figures["Bullet"]
    figures |= dict(zip(PHASES, (1e6 * np.median(parts, axis=0)).tolist(), strict=True))
    return figures | {
        f"points, {who}": median(n) for who, n in zip(("ours", "Bullet"), counts, strict=True)
    }


def phases(client: Any) -> list[float]:
    """Seconds of each part of one step of ours."""
    (group,) = session_of(client._client).groups.values()
    system: Any = group.system
    world, solver, close = system.world, system._solver, system._filter
    t = [perf_counter()]
    pybullet.stepSimulation(client._client)
    t.append(perf_counter())
    held = world.contacts()
    t.append(perf_counter())
    q, v = world.state()
    t.append(perf_counter())
    close(q, v, held, ())
    t.append(perf_counter())
    world.write(solver.q, solver.v)
    t.append(perf_counter())
    return np.diff(t).tolist()


def main() -> None:
    """Measure, print a table, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    for place in (on_the_plane, in_flight):
        ours, native = BulletClient(pybullet.DIRECT), Native(pybullet.DIRECT)
        for client in (ours, native):
            place(client)
            for _ in range(SETTLING):
                client.stepSimulation()
        results[place.__name__] = measure(ours, native)
        for client in (ours, native):
            client.disconnect()
    table = Table("us per step", *(name.replace("_", " ") for name in results))
    for name in results["on_the_plane"]:
        values = (figures[name] for figures in results.values())
        table.add_row(name, *(f"{x:.2f}" if name == "ratio" else f"{x:.1f}" for x in values))
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps({"unit": "us per step"} | results))


if __name__ == "__main__":
    main()
