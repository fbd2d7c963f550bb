"""Flexible arms beside their references: every value, modes, segments, modules, speed.

    python benchmarks/flexible_systems.py [--json FILE] [--plot FILE] [--docs FILE] [--quick]
    python benchmarks/flexible_systems.py --json FILE --tables --plot FILE --docs FILE

References (bulletbridge.papers.references) come from an independent program with other coordinates.
All runs are by compiled RK4.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from _flexible import STEP, Rows, hinge_forces, simulate
from _flexible_tables import plot, write_tables

import bulletbridge as bb
from bulletbridge.bullet.silence import silenced_bullet
from bulletbridge.console import write_json
from bulletbridge.formulations.classics.flexible_arms import SYSTEMS, FlexibleSystem
from bulletbridge.papers.references import reference as reference_of

REFERENCES = reference_of("flexible_arms")
QUANTITIES = {
    "ang": "angles", "rate": "rates", "defl": "deflections", "tip": "tip", "E": "energy",
    "lam": "force",
}  # fmt: skip
"""As references and as our rows call them."""
SEGMENTS = (4, 6, 8, 10, 20)
"""Of arms of four links up to 10 only."""
MODE_SETS = ((1, 1, 1, 1), (2, 2, 2, 2), (3, 2, 2, 2), (2, 1, 1, 1))
"""Of system 5c, for 25 s: with some of them linearised models break down."""


def turn(angles: np.ndarray) -> np.ndarray:
    """Angles [deg] less whole turns, around zero."""
    return (angles + 180.0) % 360.0 - 180.0


def reference(name: str, quantity: str) -> np.ndarray:
    """Values of a quantity at all times (times, ...)."""
    return np.array([row.get(quantity, []) for row in REFERENCES[name]["rows"]], float)


def beside(rows: Rows, name: str) -> dict[str, Any]:
    """Largest differences to the reference, by quantity, and all values of ours at its times."""
    at = np.searchsorted(rows.t, reference(name, "t") - 1e-9)
    worst: dict[str, float] = {}
    values: dict[str, Any] = {"t": rows.t[at].tolist()}
    for short, field in QUANTITIES.items():
        ours, theirs = getattr(rows, field)[at], reference(name, short)
        if theirs.size:
            missed = turn(ours - theirs) if short == "ang" else ours - theirs
            worst[short] = float(np.abs(missed).max())
            values[short] = ours.tolist()
    return {"worst": worst, "values": values}


def against(rows: Rows, other: Rows) -> dict[str, float]:
    """Largest differences of another discretisation."""
    return {
        "ang": float(np.abs(turn(rows.angles - other.angles)).max()),
        "defl": float(np.abs(rows.deflections - other.deflections).max()),
        "tip": float(np.abs(rows.tip - other.tip).max()),
        "step": other.step,
    }


def times_of(name: str) -> list[float]:
    """Times at which runs are compared [s]: two hundred intervals, those of the reference among."""
    end = float(reference(name, "t")[-1])
    return np.round(np.linspace(0.0, end, 201), 9).tolist()


def modules_of(system: FlexibleSystem, mono: Rows) -> dict[str, Any]:
    """Each link its own free module: gaps, forces, differences to the whole tree."""
    rows, forces = simulate(system, mono.t.tolist(), modules=True), hinge_forces(system, mono)
    found = against(mono, rows) | {
        "gap": float(rows.gap.max()),
        "gap_rate": float(rows.gap_rate.max()),
        "gaps": [rows.t.tolist(), [float(f"{gap:.2e}") for gap in rows.gap]],
        "force": float(np.abs(rows.hinges - forces).max()),
        "largest_force": float(np.abs(forces).max()),
    }
    if system.closed:
        found["loop_force"] = float(np.abs(rows.force - mono.force).max())
    return found


SLICE = 0.05
"""Times are the best of slices of motion this long [s], which a busy machine leaves alone."""


def quickest(system: FlexibleSystem, **options: Any) -> float:
    """Seconds that a second takes by RK4."""
    times = np.round(np.arange(41) * SLICE, 9).tolist()
    return simulate(system, times, **options).quickest / SLICE


def live(name: str) -> float:
    """Seconds that a second takes in Bullet, state written at every step of 1/240 s."""
    took: list[float] = []
    with silenced_bullet(), bb.load(name) as loaded:
        for _ in range(40):
            begun = perf_counter()
            for _ in range(12):
                loaded.system.step()
            took.append(perf_counter() - begun)
    return min(took) / (12 / 240)


def speeds(name: str) -> dict[str, float]:
    """Seconds that a second takes, in several ways."""
    system = SYSTEMS[name]
    return {
        "modes": quickest(system),
        "modules": quickest(system, modules=True),
        "segments": quickest(system, segments=8),
        "modes in Bullet": live(f"system_{name}"),
        "segments in Bullet": live(f"system_{name}_segments"),
    }


def measure(name: str, quick: bool) -> dict[str, Any]:
    """Everything of one system."""
    system, times = SYSTEMS[name], times_of(name)
    mono = simulate(system, times)
    result: dict[str, Any] = {"about": system.about, "duration": times[-1]}
    result |= {"gap": float(mono.gap.max()), "reference": beside(mono, name)}
    result["modules"] = modules_of(system, mono)
    result["variants"] = {}
    for modes in (1, 3):
        sets = [modes if link.modes else 0 for link in system.links]
        result["variants"][f"modes {modes}"] = against(mono, simulate(system, times, modes=sets))
    tips: dict[int, np.ndarray] = {}
    most = 8 if quick else 20 if len(system.links) < 3 else 10
    for n in (n for n in SEGMENTS if n <= most):
        rows = simulate(system, times, segments=n)
        tips[n] = rows.tip
        result["variants"][f"segments {n}"] = against(mono, rows)
    finest = tips.pop(max(tips))
    result["to_finest"] = {str(n): float(np.abs(tip - finest).max()) for n, tip in tips.items()}
    result["seconds"] = speeds(name)
    return result


def base_drift() -> dict[str, float]:
    """System 3: how far the base is from its place, and as the source has it.

    The source holds the acceleration of the base over each step of 1 ms: half a step times the
    acceleration at the start is added to its velocity, for good.
    """
    system = SYSTEMS["3"]
    assert system.shake is not None
    c, w = system.shake
    rows = simulate(system, np.arange(0.0, 10.05, 0.25).tolist())
    h, x, v = 1e-3, 0.0, 0.0
    held = list[float]()
    for n in range(10000):
        a = c * w * w * np.cos(w * n * h)
        x, v = x + h * v + 0.5 * h * h * a, v + h * a
        held.append(x - c * (1.0 - np.cos(w * (n + 1) * h)))
    bases = [float(state["base"][0][0]) for state in rows.states]
    ours = np.abs(np.array(bases) - c * (1.0 - np.cos(w * rows.t))).max()
    return {"ours": float(ours), "held_5s": abs(held[4999]), "held_10s": abs(held[9999])}


def mode_sets() -> dict[str, Any]:
    """System 5c for 25 s with each set of modes: energy, largest deflection."""
    found: dict[str, Any] = {}
    for modes in MODE_SETS:
        rows = simulate(SYSTEMS["5c"], np.arange(0.0, 25.05, 0.5).tolist(), modes=modes)
        found["/".join(map(str, modes))] = {
            "finite": bool(np.isfinite(rows.angles).all()),
            "deflection": float(np.abs(rows.deflections).max()),
            "rate": float(np.abs(rows.rates).max()),
            "deflection_13s": float(np.abs(rows.deflections[rows.t <= 13.0]).max()),
        }
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where results are kept, and added")
    parser.add_argument("--speeds", action="store_true", help="measure those of a file anew")
    parser.add_argument("--tables", action="store_true", help="of earlier results, nothing else")
    parser.add_argument("--plot", type=Path, help="picture of convergence")
    parser.add_argument("--docs", type=Path, help="page whose tables are written anew")
    parser.add_argument("--quick", action="store_true", help="up to 8 segments")
    parser.add_argument("systems", nargs="*", help="which; all unless given")
    options = parser.parse_args()
    results: dict[str, Any] = {"step": STEP, "systems": {}}
    if options.json and options.json.exists():
        results |= json.loads(options.json.read_text())

    def keep(**more: Any) -> None:
        results.update(more)
        if options.json:
            write_json(options.json, results)

    if options.speeds:
        for name, found in results["systems"].items():
            found["seconds"] = speeds(name)
        keep()
    elif not options.tables:
        if "mode_sets" not in results:
            keep(base_drift=base_drift(), mode_sets=mode_sets())
        for name in options.systems or SYSTEMS:
            results["systems"][name] = measure(name, options.quick)
            worst: dict[str, float] = results["systems"][name]["reference"]["worst"]
            print(name, {k: f"{x:.1e}" for k, x in worst.items()}, flush=True)
            keep()
    if not results["systems"]:
        return
    if options.plot:
        plot(results, options.plot)
    write_tables(results, REFERENCES, options.docs)


if __name__ == "__main__":
    main()
