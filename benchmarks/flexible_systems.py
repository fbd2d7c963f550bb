"""Flexible arms beside their references: every value, modes, segments, modules, speed.

    python benchmarks/flexible_systems.py [--json FILE] [--plot FILE] [--docs FILE] [--quick]
    python benchmarks/flexible_systems.py --from FILE --plot FILE --docs FILE

References (flexible_references.json) come from an independent program with other coordinates; so do
the data of the systems, which were identified from them. All runs are by compiled RK4.
"""

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from _flexible import STEP, Rows, hinge_forces, simulate
from _flexible_tables import plot, write_tables

import bulletbridge as bb
from bulletbridge.classics.flexible_arms import SYSTEMS, FlexibleSystem
from bulletbridge.surface.quiet import quiet_bullet

REFERENCES = json.loads(Path(__file__).with_name("flexible_references.json").read_text())
QUANTITIES = {
    "ang": "angles", "rate": "rates", "defl": "deflections", "tip": "tip", "E": "energy",
    "lam": "force",
}  # fmt: skip
"""As references and as our rows call them."""
SEGMENTS = (4, 6, 8, 10, 20)
MODE_SETS = ((1, 1, 1, 1), (2, 2, 2, 2), (3, 2, 2, 2), (2, 1, 1, 1))
"""Of system 5c, for 25 s: with them the linearised models fail or not."""


def turn(angles: np.ndarray) -> np.ndarray:
    """Angles [deg] less whole turns, around zero."""
    return (angles + 180.0) % 360.0 - 180.0


def reference(name: str, quantity: str) -> np.ndarray:
    """Values of a quantity at all times (times, ...)."""
    return np.array([row.get(quantity, []) for row in REFERENCES[name]["rows"]], float)


def beside(rows: Rows, name: str) -> dict[str, Any]:
    """Largest differences to the reference, by quantity, and all values of ours."""
    worst: dict[str, float] = {}
    values: dict[str, Any] = {"t": rows.t.tolist()}
    for short, field in QUANTITIES.items():
        ours, theirs = getattr(rows, field), reference(name, short)
        if theirs.size:
            missed = turn(ours - theirs) if short == "ang" else ours - theirs
            worst[short] = float(np.abs(missed).max())
            values[short] = ours.tolist()
    return {"worst": worst, "values": values}


def against(rows: Rows, name: str) -> dict[str, float]:
    """Largest differences of another discretisation to the reference."""
    shown = {
        "ang": float(np.abs(turn(rows.angles - reference(name, "ang"))).max()),
        "defl": float(np.abs(rows.deflections - reference(name, "defl")).max()),
        "tip": float(np.abs(rows.tip - reference(name, "tip")).max()),
    }
    return shown | {"step": rows.step, "seconds": rows.seconds}


def times_of(name: str) -> list[float]:
    """Times of the reference [s]."""
    return reference(name, "t").tolist()


def modules_of(system: FlexibleSystem, mono: Rows) -> dict[str, Any]:
    """Each link its own free module: gaps all the way, forces, differences to the whole tree."""
    times = np.unique(np.concatenate([np.arange(0.0, system.duration + 0.05, 0.1), mono.t]))
    times = np.round(times[times <= mono.t[-1] + 1e-9], 9).tolist()
    rows = simulate(system, times, modules=True)
    at = [times.index(t) for t in mono.t.tolist()]
    forces = hinge_forces(system, mono)
    found = {
        "gap": float(rows.gap.max()),
        "gap_rate": float(rows.gap_rate.max()),
        "gaps": [rows.t.tolist(), rows.gap.tolist()],
        "ang": float(np.abs(turn(rows.angles[at] - mono.angles)).max()),
        "tip": float(np.abs(rows.tip[at] - mono.tip).max()),
        "defl": float(np.abs(rows.deflections[at] - mono.deflections).max()),
        "force": float(np.abs(rows.hinges[at] - forces).max()),
        "largest_force": float(np.abs(forces).max()),
        "seconds": rows.seconds,
    }
    if system.closed:
        found["loop_force"] = float(np.abs(rows.force[at] - mono.force).max())
    return found


def live(name: str) -> dict[str, float]:
    """Seconds that a second takes in Bullet, state written at every step of 1/240 s."""
    found: dict[str, float] = {}
    for what, model in (("modes", f"system_{name}"), ("segments 8", f"system_{name}_segments")):
        with quiet_bullet(), bb.load(model) as loaded:
            loaded.system.step()
            begun = perf_counter()
            for _ in range(480):
                loaded.system.step()
            found[what] = (perf_counter() - begun) / 2.0
    return found


def measure(name: str, quick: bool) -> dict[str, Any]:
    """Everything of one system."""
    system, times = SYSTEMS[name], times_of(name)
    mono = simulate(system, times)
    result: dict[str, Any] = {"about": system.about, "duration": times[-1]}
    result |= {"gap": float(mono.gap.max()), "reference": beside(mono, name)}
    result["seconds"] = mono.seconds
    result["modules"] = modules_of(system, mono)
    result["variants"] = {}
    for modes in (1, 2, 3):
        sets = [modes if link.modes else 0 for link in system.links]
        result["variants"][f"modes {modes}"] = against(simulate(system, times, modes=sets), name)
    for n in SEGMENTS[:3] if quick else SEGMENTS:
        rows = simulate(system, times, segments=n)
        result["variants"][f"segments {n}"] = against(rows, name)
        print(f"  {n} segments: {result['variants'][f'segments {n}']}", file=sys.stderr, flush=True)
    result["live"] = live(name)
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
    held = []
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
    parser.add_argument("--json", type=Path, help="where results go")
    parser.add_argument("--from", dest="results", type=Path, help="results of an earlier run")
    parser.add_argument("--plot", type=Path, help="picture of convergence")
    parser.add_argument("--docs", type=Path, help="page whose tables are written anew")
    parser.add_argument("--quick", action="store_true", help="up to 8 segments")
    parser.add_argument("systems", nargs="*", help="which; all unless given")
    options = parser.parse_args()
    if options.results:
        results = json.loads(options.results.read_text())
    else:
        results = {"step": STEP, "systems": {}}
        results["base_drift"], results["mode_sets"] = base_drift(), mode_sets()
        for name in options.systems or SYSTEMS:
            results["systems"][name] = measure(name, options.quick)
            worst = results["systems"][name]["reference"]["worst"]
            print(name, {k: f"{x:.1e}" for k, x in worst.items()}, flush=True)
            if options.json:
                options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.plot:
        plot(results, options.plot)
    write_tables(results, REFERENCES, options.docs)


if __name__ == "__main__":
    main()
