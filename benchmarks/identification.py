"""Twenty parameters of a five-bar from 2 s of noisy joint angles: least squares beside CMA-ES.

    OPENBLAS_NUM_THREADS=1 python benchmarks/identification.py [--simulations N]

Takes ``pip install cma``. Both look for the same numbers, the parameters in their sizes and the
start, from the same guess, by the same simulations. CMA-ES is told how far off parameters may be,
and ends when it has found what least squares find, or after so many simulations.
"""

import argparse
from dataclasses import replace
from importlib import import_module
from time import process_time
from typing import Any

import numpy as np

import bulletbridge as bb
from bulletbridge.control.identification import LOST, Fit
from bulletbridge.numerics.records import Array

NOISE, DURATION = 1e-3, 2.0  # [rad], [s]
JOINTS = "motor_left", "elbow_left", "motor_right", "elbow_right"
LINKS = "crank_left", "forearm_left", "crank_right", "forearm_right"
LENGTHS = "elbow_left.origin.x", "elbow_right.origin.x", "tip.a.x", "tip.b.x"
NEAR, FAR = 0.03, 0.5
"""How far guesses are off: of masses and lengths, of the others."""


def truth(rng: np.random.Generator, system: bb.System) -> dict[str, float]:
    """The parameters of the robot that is measured."""
    known = system.parameters
    found = {f"{name}.mass": known[f"{name}.mass"] for name in LINKS}
    found |= {name: known[name] for name in LENGTHS}
    for name in JOINTS:
        found |= {f"{name}.armature": 0.02, f"{name}.damping": 0.1, f"{name}.torque": 0.2}
    return {name: float(x * (1.0 + 0.1 * rng.uniform(-1, 1))) for name, x in found.items()}


def guess(rng: np.random.Generator, true: dict[str, float]) -> dict[str, float]:
    """What is known of them beforehand."""
    return {name: float(x * (1.0 + far(name) * rng.choice([-1, 1]))) for name, x in true.items()}


def far(name: str) -> float:
    """How far a guess of a parameter is off, of its size."""
    return NEAR if name.endswith((".mass", ".x")) else FAR


def measured(
    system: bb.System, true: dict[str, float], rng: np.random.Generator
) -> tuple[bb.Recording, Array]:
    """A noisy recording, its start included, and the torques (steps, nv) that shook it."""
    steps = round(DURATION / system.dt)
    t, tau = np.arange(steps) * system.dt, np.zeros((steps, system.mechanism.nv))
    for name, pace, phase, mean in (("motor_left", 7.0, 0.0, -1.0), ("motor_right", 5.0, 2.0, 1.0)):
        k = system.mechanism.joint(name).v.start
        tau[:, k] = 2.0 * np.sin(pace * t + phase) + mean
    system.set_parameters(true)
    parts = [system.recorded()]
    for forces in tau:
        system.tau[:] = forces
        system.step(write=False)
        parts.append(system.recorded())
    exact = bb.Recording.joined(parts)
    q = exact.q + NOISE * rng.standard_normal(exact.q.shape)
    return replace(exact, q=q), tau


def evolve(fit: Fit, goal: float, most: int) -> tuple[Array, float]:
    """Parameters by CMA-ES, and their sum of squares."""
    cma: Any = import_module("cma")
    spread = [far(name) for name in fit.names] + [NOISE] * 2 + [0.05 * fit.span] * 2
    lowest = np.where(np.isfinite(fit.lowest), fit.lowest, -1e3)
    options = {
        "CMA_stds": spread, "bounds": [lowest.tolist(), None], "seed": 1, "verbose": -9,
        "maxfevals": most, "ftarget": goal, "tolfun": 0.0, "tolfunhist": 0.0,
        "tolstagnation": 10**9,
    }  # fmt: skip
    search = cma.CMAEvolutionStrategy(fit.start.tolist(), 1.0, options)
    while not search.stop():
        xs = search.ask()
        left = fit.residuals([np.asarray(x) for x in xs])
        left = np.where(np.isfinite(left), left, LOST)
        search.tell(xs, [float(np.sum(x**2)) for x in left])
    return np.asarray(search.result.xbest), float(search.result.fbest)


def main() -> None:
    """Identify both ways and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--simulations", type=int, default=20000)
    given = parser.parse_args()
    rng = np.random.default_rng(7)
    system = bb.load("five_bar", "new", limits=False).system
    true = truth(rng, system)
    run, tau = measured(system, true, rng)
    wrong = guess(rng, true)
    system.set_parameters(wrong)
    sizes = {name: abs(x) for name, x in true.items()}
    begun = process_time()
    found = bb.identify(system, run, sizes, tau=tau)
    taken = process_time() - begun
    off = np.array([found.values[name] - x for name, x in true.items()])
    chi = float(off @ np.linalg.solve(found.covariance, off))
    cost = float(np.sum(found.residuals**2))
    print(
        f"least squares: {taken:.0f} s of processor time, {found.iterations} iterations,"
        f" {found.simulations} simulations, chi squared of {len(off)} errors {chi:.1f},"
        f" noise {1e3 * found.noise:.3f} mrad, sum of squares {cost:.6g}"
    )
    fit = Fit(system, run, sizes, list(system.mechanism.joints), tau)
    begun = process_time()
    best, left = evolve(fit, cost * (1.0 + 1e-4), given.simulations)
    taken = process_time() - begun
    values = best[: len(off)] * fit.sizes
    off = values - np.array(list(true.values()))
    chi = float(off @ np.linalg.solve(found.covariance, off))
    print(
        f"CMA-ES: {taken:.0f} s of processor time, {fit.simulations} simulations,"
        f" chi squared {chi:.3g}, sum of squares {left:.6g}"
    )


if __name__ == "__main__":
    main()
