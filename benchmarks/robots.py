"""What does a step of robots with local loops cost, beside MuJoCo?

Robots of twenty to fifty rates and walkers of many legs (``bulletbridge.bench``), steps of
semi-implicit Euler of 1 ms, 200 a call, without contacts; MuJoCo with the better of its dense and
its sparse Jacobian. All take turns in one process; processor time, the least of all turns.

    python benchmarks/robots.py [--cases legs platform walker7] [--turns 20]
"""

import argparse
import time

from rich.console import Console
from rich.table import Table

from bulletbridge.bench.cases import case
from bulletbridge.bench.peers.base import Stepped
from bulletbridge.bench.peers.mujoco import Mujoco
from bulletbridge.bench.peers.ours import Ours
from bulletbridge.bench.robots import ROBOTS

DT, STEPS = 1e-3, 200
CASES = *ROBOTS, "walker3", "walker7", "walker17", "walker33"


def turn(peer: Stepped) -> float:
    """Processor time of a step [us], from the start on."""
    peer.reset()
    begun = time.process_time()
    peer.loop(STEPS)
    return 1e6 * (time.process_time() - begun) / STEPS


def measure(name: str, turns: int) -> tuple[str, ...]:
    """Line of the table of one case."""
    made = case(name)
    ours = Ours(made, DT, integrator="semi_implicit_euler")
    peers = ours, Mujoco(made, DT, jacobian="DENSE"), Mujoco(made, DT, jacobian="SPARSE")
    times = [[turn(peer) for peer in peers] for _ in range(turns)]
    own, *others = map(min, zip(*times, strict=True))
    rows = ours.system.decision.encoded.nc
    sizes = str(made.mechanism.nv), str(rows), str(len(made.ties))
    return name, *sizes, f"{own:.1f}", f"{min(others):.1f}", f"{min(others) / own:.2f}"


def main() -> None:
    """Measure every case, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--turns", type=int, default=20)
    options = parser.parse_args()
    columns = "case", "rates", "rows", "loops", "ours [µs]", "MuJoCo [µs]", "ratio"
    table = Table(*columns)
    for name in options.cases:
        table.add_row(*measure(name, options.turns))
    Console().print(table)


if __name__ == "__main__":
    main()
