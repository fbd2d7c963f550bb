"""Minitaur on the plane at 240 Hz: what the drop-in client does to contacts, beside Bullet alone.

    python benchmarks/minitaur_contacts.py [--json FILE]

Standing, walking, and dropped from 0.1 m above standing, 4 s each, several starts or gaits of each,
since one alone is a matter of luck; figures are means. The reference is Bullet alone at 8000 Hz.
Penetration is that of the deepest contact; of standing and walking after 0.5 s, where the fall onto
the legs is over.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pybullet
from _minitaur_worlds import STANDING, Gait, drive, minitaur
from pybullet_utils.bullet_client import BulletClient as Native
from rich.console import Console
from rich.table import Table

from bulletbridge.console import write_json
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import session_of

RATE, FINE = 240, 8000  # [Hz]
DURATION = 4.0  # [s]
STILL = Gait()
GAITS = [(0.3, 0.25, 2), (0.3, 0.2, 2.5), (0.2, 0.25, 3), (0.4, 0.2, 1.5), (0.25, 0.3, 2)]
CASES = {
    "standing": [(height, STILL) for height in (0.19, 0.2, 0.205, 0.21)],
    "walking": [(0.2, Gait(*numbers)) for numbers in GAITS],
    "bouncing": [(STANDING + height, STILL) for height in (0.095, 0.1, 0.105, 0.11)],
}
"""Height of the base at the start [m], and gait."""
LANDED = {"standing": 0.5, "walking": 0.5, "bouncing": 0.0}  # [s]

Run = tuple[np.ndarray, float, float]


def run(make: Callable[[int], Any], rate: int, height: float, gait: Gait, landed: float) -> Run:
    """Base positions at 240 Hz (n, 3) [m], deepest penetration [m], largest kept gap [m]."""
    client = make(pybullet.DIRECT)
    robot, joints = minitaur(client, 1 / rate, height)
    path: list[tuple[float, float, float]] = []
    depth = gap = 0.0
    for n in range(round(DURATION * rate)):
        if n * RATE // rate != (n - 1) * RATE // rate:  # a new step of 1/240 s: targets, samples
            t = len(path) / RATE
            path.append(client.getBasePositionAndOrientation(robot)[0])
            drive(client, robot, joints, t, gait)
            if t > landed:
                points = client.getContactPoints(bodyA=robot)
                depth = max([depth, *(-point[8] for point in points)])
        client.stepSimulation()
        if make is BulletClient:
            gap = max(gap, open_by(client))
    client.disconnect()
    return np.array(path), depth, gap


def open_by(client: Any) -> float:
    """Largest gap [m] of the kept directions, of the state that Bullet has."""
    systems: list[Any] = [group.system for group in session_of(client._client).groups.values()]
    seen = [system.evaluate(*system.world.state()) for system in systems]
    return max(found.largest("kept_metres") for found in seen)


def compare(case: str) -> dict[str, dict[str, float]]:
    """Figures of one case: ours, Bullet at the same rate, Bullet at 8000 Hz."""
    rows: dict[str, list[dict[str, float]]] = {"ours": [], "Bullet": [], "Bullet 8000 Hz": []}
    for height, gait in CASES[case]:
        settings = height, gait, LANDED[case]
        reference = run(Native, FINE, *settings)
        runs = (run(BulletClient, RATE, *settings), run(Native, RATE, *settings), reference)
        for found, one in zip(rows.values(), runs, strict=True):
            found.append(figures(one, reference))
    return {
        name: {key: float(np.mean([row[key] for row in found])) for key in found[0]}
        for name, found in rows.items()
    }


def figures(one: Run, reference: Run) -> dict[str, float]:
    """What a run is worth."""
    path, depth, gap = one
    error = 1e3 * np.abs(path[:, 2] - reference[0][:, 2])
    late = path[RATE:]
    return {
        "end height error [mm]": error[-1],
        "rms [mm]": float(np.sqrt((error**2).mean())),
        "max [mm]": error.max(),
        "penetration [mm]": 1e3 * depth,
        "travel [mm]": 1e3 * float(np.hypot(*(path[-1] - path[0])[:2])),
        "after 1 s [mm]": 1e3 * float(np.hypot(*(late[-1] - late[0])[:2])),
        "kept gap [m]": gap,
    }


def main() -> None:
    """Run all cases, print a table, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {case: compare(case) for case in CASES}
    table = Table("case", "who", *results["standing"]["ours"])
    for case, found in results.items():
        for name, row in found.items():
            numbers = [f"{value:.2f}" for value in list(row.values())[:-1]]
            table.add_row(case, name, *numbers, f"{row['kept gap [m]']:.1g}")
    Console(width=140).print(table)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
