"""Charts of the loops: accelerations, orders, energy, number of charts and cost, in one run.

    python benchmarks/charts.py [MODEL ...]

On bundled models and on two random mechanisms of ours, with a floating base, spherical joints and,
in one of them, rows that repeat others. References are DOP853 at 1e-12. Times are of the
processor, the least of batches that take turns.
"""

import argparse
import os
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any, cast

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices here are smaller than a thread

import numpy as np
from _mechanisms import random_mechanism, random_state
from rich.console import Console
from rich.table import Table
from scipy.linalg import null_space
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.engine.chart import NORMALS
from bulletbridge.engine.records import CHART_ROWS
from bulletbridge.engine.stepper import Solver
from bulletbridge.mechanism.records import FREE, REVOLUTE, SPHERICAL
from bulletbridge.models.load import load
from bulletbridge.numerics.records import Array

MODELS = ("four_bar", "stewart", "minitaur", "space_arm", "ball_chain")
OWN = {
    "floating, ball": (3, [SPHERICAL, REVOLUTE, SPHERICAL, REVOLUTE, SPHERICAL], "ball", False),
    "floating, weld twice": (5, [SPHERICAL] * 4, "weld", True),
}
DURATION, STEPS = 0.4, (40, 80, 160)
COMPARED: tuple[str, ...] = ("charts", "charts_trapezoidal", "rk4", "verlet", "semi_implicit_euler")
SECONDS, DT = 4.0, 1.0 / 240.0
BATCHES, BATCH = 25, 100


def own(
    seed: int, kinds: list[int], model: str, twice: bool, floating: bool = True, **options: Any
) -> bb.System:
    """A random chain, closed where it is by a loop joint from its first link to its last."""
    rng = np.random.default_rng(seed)
    chain = random_mechanism(rng, ([FREE] if floating else []) + kinds, branching=0.0)
    q, v = random_state(rng, chain)
    tree = bb.System(chain)
    tree.set_state(q, v)
    point, last = tree.kinematics().point, list(chain.links)[-1]
    first = "link1" if floating else "world"
    a, b = point(bb.Frame(first)), point(bb.Frame(last))
    turn = Rotation.from_matrix(a.R_W.T @ b.R_W).as_euler("xyz")
    frame = bb.Frame(first, tuple(a.R_W.T @ (b.p_W - a.p_W)), tuple(turn))
    loops = [
        bb.LoopJoint(name, bb.JointModel(model), frame, bb.Frame(last))
        for name in (("loop", "again") if twice else ("loop",))
    ]
    system = bb.System(chain, loops, **options)
    system.set_state(q, v)
    return system


def makers(names: list[str]) -> dict[str, Callable[..., bb.System]]:
    """What makes each system, of an integrator and a step."""

    def bundled(name: str) -> Callable[..., bb.System]:
        def make(**options: Any) -> bb.System:
            return load(name, "new", limits=False, **options).system

        return make

    found = {name: bundled(name) for name in names or MODELS}
    return found if names else found | {name: partial(own, *case) for name, case in OWN.items()}


def off_projector(system: bb.System) -> float:
    """Largest difference of accelerations by the reduced equations in the chart's own directions.

    With D = (1 - X (J X)⁻¹ J) N, X the normals and N the tangents of the chart's origin, that is
    (Dᵀ M D) z = Dᵀ (f + M X (J X)⁻¹ gamma), v̇ = D z - X (J X)⁻¹ gamma; relative to the largest.
    """
    solver: Solver = system.compiled()[0]
    c, nv = solver.control[0], len(solver.v)
    terms = solver.terms(solver.q, solver.v, solver.t)
    rows = solver.vectors[CHART_ROWS, : c["chart_rank"]].astype(int)
    X = solver.factors[0][NORMALS, : c["chart_rank"]].T
    J, gamma = terms.J[rows], terms.gamma[rows]
    C = np.linalg.cholesky(terms.M).T  # in whose coordinates nothing is lost to units
    N = np.linalg.solve(C, null_space((C @ X).T) if len(rows) else np.eye(nv))
    lift = X @ np.linalg.inv(J @ X) if len(rows) else np.zeros((nv, 0))
    D, bend = N - lift @ (J @ N), lift @ gamma
    f = terms.forces + solver.tau[0] - terms.h
    z = cast(Array, np.linalg.solve(D.T @ terms.M @ D, D.T @ (f + terms.M @ bend)))
    projector = solver.acceleration()
    return float(np.abs(D @ z - bend - projector).max() / np.abs(projector).max())


def measured(make: Callable[..., bb.System]) -> list[list[str]]:
    """A line for each integrator: errors, order, charts, energy, gap, time."""
    reference = make(integrator="dop853", rtol=1e-12, dt=DURATION)
    reference.step()
    exact = make(integrator="dop853", rtol=1e-12, dt=10 * DT)
    exact.step()
    energies = [exact.evaluate().energy]
    for _ in range(round(SECONDS / DT / 10) - 1):
        exact.step()
        energies.append(exact.evaluate().energy)
    timed = {name: make(integrator=name, dt=1e-3) for name in COMPARED}
    times = dict.fromkeys(COMPARED, np.inf)
    for _ in range(BATCHES):
        for name, system in timed.items():
            begun = process_time()
            system.rollout(BATCH)
            times[name] = min(times[name], 1e6 * (process_time() - begun) / BATCH)
    lines = list[list[str]]()
    for name in COMPARED:
        errors, off = list[float](), 0.0
        for steps in STEPS:
            system = make(integrator=name, dt=DURATION / steps)
            for _ in range(10):
                system.rollout(steps // 10)
                off = max(off, off_projector(system)) if "charts" in name else 0.0
            errors.append(float(np.abs(system.v - reference.v).max()))
        order = -np.polyfit(np.arange(len(errors)), np.log2(errors), 1)[0]
        system = make(integrator=name, dt=DT)
        worst, gap, rate = 0.0, 0.0, 0.0
        for energy in energies:
            system.rollout(10)
            seen = system.evaluate()
            worst = max(worst, abs(seen.energy - energy))
            gap = max(gap, seen.largest("kept_metres"), seen.largest("kept_radians"))
            rate = max(rate, largest_rate(system))
        on_charts = "charts" in name
        lines.append([
            name,
            f"{errors[0]:.1e} {errors[-1]:.1e}",
            f"{order:.2f}",
            f"{worst:.1e}",
            f"{gap:.0e} {rate:.0e}",
            f"{system.status.charts}" if on_charts else "",
            f"{off:.0e}" if on_charts else "",
            f"{times[name]:.1f}",
            f"{times[name] / times['rk4']:.2f}",
        ])  # fmt: skip
    return lines


def largest_rate(system: bb.System) -> float:
    """Largest rate at which a kept row opens, rows in one unit."""
    solver = system.compiled()[0]
    terms = solver.terms(solver.q, solver.v, solver.t)
    rates: Array = solver.encoded.scale * (terms.J @ solver.v + terms.g_t)
    return float(np.abs(rates).max(initial=0.0))


def main() -> None:
    """Print a table for each model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    for name, make in makers(arguments.models).items():
        table = Table(title=name)
        for heading in (
            "integrator",
            f"error of v at {DURATION:g} s, {STEPS[0]} and {STEPS[-1]} steps",
            "order",
            f"energy off, {SECONDS:g} s [J]",
            "gap, rate",
            "charts",
            "off the projector",
            "µs",
            "of rk4",
        ):
            table.add_column(heading)
        for line in measured(make):
            table.add_row(*line)
        Console(width=170).print(table)


if __name__ == "__main__":
    main()
