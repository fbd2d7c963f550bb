"""What a call of a law of control takes; rates by recursion or by differences.

    python benchmarks/control_cost.py [--calls N] [--json FILE]

One call at a state in motion, by each law of ``Tracking`` and by ``Regulation``, every joint
actuated: an iiwa that polishes, and bundled models. The same law with rates by finite differences,
as any ``Dynamics`` in Python has them, runs beside it in turns: what it gives must be the same to
round-off. Medians of calls in the time of this thread.
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
from bulletbridge.control.controllers import Law, TrackingLaw
from bulletbridge.control.plant import Plant
from bulletbridge.formulations.equations import Dynamics, Equations
from bulletbridge.formulations.projector import Projector
from bulletbridge.numerics.records import Array

DEMOS = Path(__file__).parents[1] / "demos"
MODELS = ("four_bar", DEMOS / "polishing.loops.yaml", "two_arms", "stewart", "minitaur")
BATCHES, SETTLING = 11, 50


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


def cost(law: Law, state: tuple[Array, Array, float], calls: int) -> float:
    """Milliseconds of a call."""
    start = thread_time()
    for _ in range(calls):
        law(*state)
    return 1e3 * (thread_time() - start) / calls


def laws_of(plant: Plant, wanted: bb.Desired) -> dict[str, Law]:
    """All laws that follow every freedom."""
    laws: dict[str, Law] = {
        kind: bb.Tracking(plant, lambda t: wanted, 5.0, 5.0, law=kind)
        for kind in get_args(TrackingLaw)
    }
    return {**laws, "regulation": bb.Regulation(plant, wanted.q, 5.0, 5.0)}


def measure(name: str | Path, calls: int) -> dict[str, dict[str, float]]:
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
        pairs = zip(laws_of(plant, wanted).items(), laws_of(slow, wanted).values(), strict=True)
        for (kind, fast), other in pairs:
            laws = fast, other
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
    found = {Path(name).name.split(".")[0]: measure(name, options.calls) for name in MODELS}
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
