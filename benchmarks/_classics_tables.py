"""Printing of obtained values beside references, and precise solutions, for benchmarks/classics.py.

References (classics.json) come from independent prototypes in other coordinates; what this package
gave where that takes long is kept beside them, under "obtained".
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from bulletbridge.console import write_json
from bulletbridge.formulations.equations import Dynamics
from bulletbridge.formulations.projector import Projector
from bulletbridge.numerics.records import Array

FILE = Path(__file__).with_name("classics.json")
REFERENCE: dict[str, Any] = json.loads(FILE.read_text())


def keep(section: str, name: str, obtained: object) -> None:
    """Write what a long run gave into the file of the references."""
    REFERENCE.setdefault("obtained", {}).setdefault(section, {})[name] = obtained
    write_json(FILE, REFERENCE)


def title(text: str) -> None:
    """Begin a table."""
    print(f"\n{text}\n{'':44s} {'obtained':>21s} {'reference':>21s} {'difference':>10s}")


def beside(name: str, obtained: float, reference: float) -> None:
    """One row: a value, its reference, their difference."""
    print(f"{name:44s} {obtained:21.13g} {reference:21.13g} {obtained - reference:10.1e}")


def worst(name: str, obtained: Array, reference: Array) -> None:
    """One row per state: the entry that differs most."""
    k = int(np.abs(np.asarray(obtained) - reference).argmax())
    beside(
        f"{name} (worst of {len(reference)}: entry {k})", float(obtained[k]), float(reference[k])
    )


def sizes(name: str, obtained: ArrayLike, reference: Sequence[float]) -> None:
    """One row of errors, which agree to their size rather than their digits."""
    left = " ".join(f"{x:8.1e}" for x in np.asarray(obtained))
    print(f"{name:44s} {left}  | {' '.join(f'{x:8.1e}' for x in reference)}")


def precise(
    dynamics: Dynamics,
    q: Array,
    v: Array,
    times: list[float],
    kink: Callable[..., float] | None = None,
) -> Array:
    """States (len(times), nq + nv) by projector and DOP853, restarted where ``kink`` is zero."""
    projector = Projector(dynamics)

    def rate(t: float, y: Array) -> Array:
        q, v = y[: dynamics.nq], y[dynamics.nq :]
        return np.concatenate([v, projector(q, v, t).vdot])

    def crossing(t: float, y: Array) -> float:
        return kink(y) if kink else 1.0

    crossing.terminal = True  # pyright: ignore[reportFunctionMemberAccess]
    found: list[Array] = []
    y, t = np.concatenate([q, v]), 0.0
    for end in times:
        while t < end:
            run = solve_ivp(rate, (t, end), y, "DOP853", rtol=1e-13, atol=1e-14, events=crossing)
            t, y = float(run.t[-1]), run.y[:, -1]
            if run.status == 1:  # at the kink: a short step beyond it
                h = min(1e-9, end - t)
                t, y = t + h, y + h * rate(t, y)
        found.append(y)
    return np.array(found)
