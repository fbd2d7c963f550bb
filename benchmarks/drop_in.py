"""What a step of the drop-in client costs beside Bullet alone: Minitaur on the plane and in flight.

    python benchmarks/drop_in.py [--json FILE]

Whole steps are medians of short batches that take turns; phases are timed one by one in a second run of
the same state, and do not add up to the microsecond.
"""

import argparse
import json
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pybullet
from bulletbridge.surface.drop_in.client import BulletClient
from minitaur_worlds import minitaur
from pybullet_utils.bullet_client import BulletClient as Native
from rich.console import Console
from rich.table import Table

BATCHES, STEPS = 401, 10
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


def whole_steps(ours: Any, native: Any) -> tuple[float, float]:
    """Microseconds a step of both: medians over batches that take turns."""
    times: tuple[list[float], list[float]] = [], []
    for _ in range(BATCHES):
        for client, found in zip((ours, native), times, strict=True):
            step = client.stepSimulation
            begun = perf_counter()
            for _ in range(STEPS):
                step()
            found.append(1e6 * (perf_counter() - begun) / STEPS)
    return median(times[0]), median(times[1])


def phases(client: Any) -> dict[str, float]:
    """Microseconds of each part of our step."""
    (system,) = client._bridge._systems.values()
    world, solver, close = system.world, system._solver, system._filter
    rows: list[list[float]] = []
    for _ in range(BATCHES * STEPS // 2):
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
        rows.append(np.diff(t).tolist())
    return dict(zip(PHASES, (1e6 * np.median(rows, axis=0)).tolist(), strict=True))


def points(client: Any) -> int:
    """Contact points in the world."""
    return len(client.getContactPoints())


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
        whole, alone = whole_steps(ours, native)
        counts = {"points, ours": points(ours), "points, Bullet": points(native)}
        figures = {"ours": whole, "Bullet": alone, "ratio": whole / alone}
        results[place.__name__] = figures | phases(ours) | counts
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
