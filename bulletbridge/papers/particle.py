"""Appell's particle, on a breathing cylinder and at a given speed.

Source: Eun, Park, Lee and Chung 2004, application I.
"""

import numpy as np

from bulletbridge.formulations.classics.particle import AtSpeed, OnCylinder, f
from bulletbridge.papers.example import Curve, Example, Outcome, Panel, Row, Table, until
from bulletbridge.papers.precise import precise
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
