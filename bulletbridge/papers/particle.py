"""Appell's particle, on a breathing cylinder and at a given speed.

Source: Eun, Park, Lee and Chung 2004, application I.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.integrate import solve_ivp

from bulletbridge.formulations.classics.particle import AtSpeed, OnCylinder, f
from bulletbridge.formulations.equations import Dynamics
from bulletbridge.formulations.projector import Projector
from bulletbridge.numerics.records import Array
from bulletbridge.papers.example import Curve, Example, Outcome, Panel, Row, Table, until
from bulletbridge.papers.references import reference

DURATION = 10.0  # [s]
KINDS = (
    ("hol", "x² + y² = f(t)", OnCylinder(), 1e-10),
    ("nonhol", "ẋ² + ẏ² = f(t)", AtSpeed(), 5e-10),
)


def figure(end: float | None) -> Outcome:
    """Both paths in the plane, and what is held over time."""
    tables, panels = list[Table](), list[Panel]()
    times = np.linspace(0.0, end or DURATION, 201)[1:].tolist()
    for kind, name, system, allowed in KINDS:
        known, rows = reference("eun")["particle"][kind], list[Row]()
        states = precise(system, *system.start(), times)
        asked = until(known["t"], end)
        there = precise(system, *system.start(), asked)
        for t, state, x, y in zip(asked, there, known["x"], known["y"], strict=False):
            rows.append(Row(f"x at {t:g} s [m]", float(state[0]), x, allowed))
            rows.append(Row(f"y at {t:g} s [m]", float(state[1]), y, allowed))
            exact = system.exact(float(t))
            rows.append(
                Row(f"z at {t:g} s [m]", float(state[2]), float(exact[2]), allowed, "theory")
            )
        tables.append(Table(name, rows))
        path = np.vstack([np.concatenate(system.start()), states])
        held = path[:, 0:2] if kind == "hol" else path[:, 3:5]
        t = np.array([0.0, *times])
        off = np.abs((held**2).sum(axis=1) - np.array([f(s) for s in t])) + 1e-17
        unit = "m²" if kind == "hol" else "m²/s²"
        panels.append(
            Panel("x [m]", "y [m]", [Curve("", path[:, 0], path[:, 1])], equal=True, title=name)
        )
        panels.append(
            Panel("time [s]", f"violation [{unit}]", [Curve("", t, off)], log=True, title=name)
        )
    return Outcome(tables, panels)


EXAMPLES = (
    Example(
        "eun-particle",
        "Eun, Park, Lee and Chung 2004",
        "Application I: a particle on a breathing cylinder, and at a given speed",
        "A heavy particle under constant forces, held to a cylinder whose radius breathes, and"
        " then to a horizontal speed that does: a holonomic row that depends on time, and a"
        " nonholonomic one that is nonlinear in the velocity. Both against one scalar equation"
        " each, the angle on the circle and the direction of the velocity.",
        "Mass, forces and f(t) = 4 + sin t are choices. A row that is quadratic in the velocity"
        " is nothing that a loops file or Bullet has: both run on"
        " `formulations.classics.particle`, with the same formulations and integrators, not as a"
        " robot.",
        figure,
    ),
)


def precise(
    dynamics: Dynamics,
    q: Array,
    v: Array,
    times: Sequence[float],
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
