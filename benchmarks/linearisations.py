"""Which linearisations of flexible arms fail, and when: tables beside independent ones.

    python benchmarks/linearisations.py [failures] [differences] [tables] [--step 1e-3]

Results are kept in linearisations.json run by run, and runs that are there are not repeated;
``tables`` writes them into docs/linearisations.md. All runs take half an hour.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import _linearisation_tables
import numpy as np
from _linearised import Run, Variant, exact, run

from bulletbridge.console import write_json
from bulletbridge.formulations.classics.flexible_arms import SYSTEMS

FILE = Path(__file__).with_suffix(".json")
UNTIL = 25.0  # [s], in the table of failures
PAIR = (3, 4)
"""Links of the four-link arm that are modules of their own; the first two are one."""
ALL = (1, 2, 3, 4)
FAILURES: dict[str, Variant | None] = {
    "modules, consistent": Variant("consistent", 3, PAIR),
    "modules, consistent, level 1": Variant("consistent", 1, PAIR),
    "tree, consistent": Variant("consistent"),
    "four modules, consistent": Variant("consistent", 3, ALL),
    "four modules, consistent, level 1": Variant("consistent", 1, ALL),
    "modules, first order": Variant("first_order", 3, PAIR),
    "tree, first order": Variant("first_order"),
    "modules, symmetrised": Variant("symmetrised", 3, PAIR),
    "exact": None,
    "tree, inconsistent": Variant("inconsistent"),
    "tree, ruthless": Variant("ruthless"),
}
MODES = ((1, 1, 1, 1), (2, 2, 2, 2), (3, 2, 2, 2), (2, 1, 1, 1))
APART = {"3": (1, 2), "4": PAIR, "5a": PAIR, "5b": PAIR, "5c": PAIR}
"""Modules of the source: a shaken base has the first link on one of its own."""
FINEST = {"6b": 5e-4}
"""Steps [s] at most: longer ones damp the vibration that grows at level 1 of this system."""
COMPARED = ("2a", "2b", "2c", "3", "4", "5a", "5b", "5c", "6a", "6b")


def failures(found: dict[str, Any], step: float) -> Iterator[str]:
    """Time at which each linearisation of system 5c fails, by modes of its links."""
    for modes in MODES:
        for name, variant in FAILURES.items():
            row = found.setdefault("/".join(map(str, modes)), {})
            if name in row:
                continue
            begun = perf_counter()
            system = SYSTEMS["5c"]
            if variant is None:
                made = exact(system, UNTIL, step, modes)
            else:
                made = run(system, variant, UNTIL, step, modes)
            row[name] = {"failed": made.failed, "gap": made.true_gap, "step": step}
            yield f"{modes} {name}: {made.failed}  ({perf_counter() - begun:.0f} s)"


def differences(found: dict[str, Any], step: float) -> Iterator[str]:
    """Largest differences to the exact equations, whole and by modules, at each level."""
    for name in COMPARED:
        system, row = SYSTEMS[name], found.setdefault(name, {})
        reference: Run | None = None
        h = min(step, FINEST.get(name, step))
        apart = APART.get(name, ())
        variants: dict[str, Variant] = {"tree": Variant("consistent")}
        levels = (3, 2, 1) if apart or system.closed else ()
        variants |= {f"modules, level {k}": Variant("consistent", k, apart) for k in levels}
        for label, variant in variants.items():
            if label in row or (label == "modules, level 3" and not apart):
                continue
            begun = perf_counter()
            if reference is None:
                reference = exact(system, system.duration, h)
            made = run(system, variant, system.duration, h)
            row[label] = compared(made, reference) | {"step": h}
            yield f"{name} {label}: {row[label]}  ({perf_counter() - begun:.0f} s)"


def compared(made: Run, reference: Run) -> dict[str, Any]:
    """Largest differences before a failure, and gaps."""
    n = len(made.t)
    turned = (made.angles - reference.angles[:n] + 180.0) % 360.0 - 180.0
    return {
        "angle": float(np.abs(turned).max()),  # [deg]
        "tip": float(np.abs(made.tip - reference.tip[:n]).max()),  # [m]
        "deflection": float(np.abs(made.deflections - reference.deflections[:n]).max()),  # [m]
        "failed": made.failed,
        "gap": made.gap,
        "true_gap": made.true_gap,
    }


def main() -> None:
    """Run what is asked for, and print each result as it comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["failures", "differences", "tables"])
    parser.add_argument("--step", type=float, default=1e-3)
    given = parser.parse_args()
    found: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
    kinds: dict[str, Callable[[dict[str, Any], float], Iterator[str]]] = {
        "failures": failures,
        "differences": differences,
    }
    for part in given.parts:
        if part == "tables":
            _linearisation_tables.write(found)
            continue
        for line in kinds[part](found.setdefault(part, {}), given.step):
            print(line, flush=True)
            write_json(FILE, found)


if __name__ == "__main__":
    main()
