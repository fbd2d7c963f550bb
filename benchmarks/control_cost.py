"""What a call of ``Tracking`` takes, and what of it goes where; rates by recursion or differences.

    python benchmarks/control_cost.py [--calls N] [--json FILE]

One call at a state in motion, by each law, on bundled models, every joint actuated. The same law
with rates by finite differences, as any ``Dynamics`` in Python has them, runs beside it in turns:
what it gives must be the same to round-off. Medians of calls in the time of this thread.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import thread_time
from typing import get_args

import numpy as np
from rich.console import Console
from rich.table import Table

import bulletbridge as bb
from bulletbridge.console import write_json
from bulletbridge.control.controllers import TrackingLaw
from bulletbridge.formulations.equations import Dynamics, Equations
from bulletbridge.formulations.projector import Projector
from bulletbridge.numerics.records import Array

MODELS = ("four_bar", "two_arms", "stewart", "minitaur")
BATCHES, SETTLING = 21, 50


@dataclass(frozen=True)
class Bare:
    """Dynamics that do not know their rates."""

    dynamics: Dynamics

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return self.dynamics.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return self.dynamics.nv

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state."""
        return self.dynamics.equations(q, v, t)

    def displace(self, q: Array, step: Array) -> Array:
        """Configuration after a velocity has acted for a unit of time."""
        return self.dynamics.displace(q, step)


def cost(law: bb.Tracking, state: tuple[Array, Array, float], calls: int) -> float:
    """Milliseconds of a call."""
    start = thread_time()
    for _ in range(calls):
        law(*state)
    return 1e3 * (thread_time() - start) / calls


def measure(name: str, calls: int) -> dict[str, dict[str, float]]:
    """Milliseconds by law, by recursion and by differences, and how far their forces differ."""
    found = dict[str, dict[str, float]]()
    with bb.load(name) as model:
        system = model.system
        for _ in range(SETTLING):
            system.step()
        q, v, t = np.array(system.q), np.array(system.v), system.t
        vdot = Projector(system.dynamics)(q, v, t).vdot
        wanted = bb.Desired(q, 0.9 * v, 0.9 * vdot)
        plant = bb.plant_of(system, list(system.mechanism.joints))
        slow = plant.__class__(Bare(plant.dynamics), plant.distribution, plant.separation)
        for kind in get_args(TrackingLaw):
            laws = [bb.Tracking(p, lambda t: wanted, 5.0, 5.0, law=kind) for p in (plant, slow)]
            ours, theirs = (law(q, v, t) for law in laws)
            times = [(cost(laws[0], (q, v, t), calls), cost(laws[1], (q, v, t), 2))
                     for _ in range(BATCHES)]  # fmt: skip
            found[kind] = {
                "recursion_ms": median(a for a, _ in times),
                "differences_ms": median(b for _, b in times),
                "difference": float(np.abs(ours - theirs).max() / np.abs(ours).max()),
            }
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=50, help="of a batch")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {name: measure(name, options.calls) for name in MODELS}
    table = Table("model", "law", "by recursion [ms]", "by differences [ms]", "forces differ by")
    for name, laws in found.items():
        for kind, row in laws.items():
            numbers = f"{row['recursion_ms']:.3f}", f"{row['differences_ms']:.2f}"
            table.add_row(name, kind, *numbers, f"{row['difference']:.0e}")
    Console().print(table)
    if options.json:
        write_json(options.json, found)


if __name__ == "__main__":
    main()
