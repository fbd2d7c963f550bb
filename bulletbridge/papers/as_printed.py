"""The three-link robot as printed, one mistake at a time: what each does to the results.

Source: Eun, Park, Lee and Chung 2004, application II, in the paper's own coordinates.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bulletbridge.formulations.classics.three_link import (
    CONSISTENT_SPEED,
    COUPLING,
    SPEED,
    START,
    ThreeLink,
)
from bulletbridge.formulations.elimination import Elimination
from bulletbridge.formulations.equations import Equations
from bulletbridge.formulations.first_order import rk4
from bulletbridge.formulations.modified import Modified, Unmodified
from bulletbridge.numerics.records import Array
from bulletbridge.papers.example import Curve, Example, Outcome, Panel, Row, Table
from bulletbridge.papers.references import reference


@dataclass(frozen=True)
class Printed(ThreeLink):
    """With the signs of eq. 34 ("row2" of gamma) or of eq. 30 ("row3" of the velocity matrix)."""

    mistake: Literal["row2", "row3"] = "row2"

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state."""
        e = super().equations(q, v, t)
        if self.mistake == "row2":
            e.gamma[1] *= -1.0
        else:
            e.f[2] += 2.0 * (COUPLING[2] * np.sin(q[2] - q)) @ (v * v)
        return e


@dataclass(frozen=True)
class PrintedSign(Modified):
    """With the bracket (s + D ξ) of eq. 40."""

    def velocity(self, q: Array, xi: Array, t: float) -> Array:
        """Velocity with the correction of ξ added instead of taken away."""
        right = super().velocity(q, xi, t)  # ξ + J⁺ (s - D ξ)
        lead = super().velocity(q, np.zeros_like(xi), t)  # J⁺ s
        return 2.0 * (lead + xi) - right


@dataclass(frozen=True)
class UncorrectedTerms(Modified):
    """With the velocity terms of the accelerations at ξ instead of q̇."""

    def rate(self, t: float, y: Array) -> Array:
        """ẏ of y = (q, ξ)."""
        q, xi = np.split(y, 2)
        return np.concatenate([self.velocity(q, xi, t), Elimination(self.dynamics)(q, xi, t).vdot])


EXPLODES = 0.12
"""Time [s] until which steps of 10, 5 and 2.5 ms agree on a run that diverges."""
STEP, DURATION = 0.01, 5.0  # [s]


def errors(
    field: Modified | Unmodified, speed: Array, duration: float, h: float
) -> tuple[Array, Array]:
    """Times and errors of the tip in x and y (n, 2) [m]."""
    t, path = rk4(field.rate, np.concatenate([START, speed]), duration, round(duration / h))
    robot = ThreeLink()
    return t, np.array([robot.equations(y[:3], y[3:], s).g for s, y in zip(t, path, strict=True)])


def table(end: float | None) -> Outcome:
    """What each printed mistake does, and what stays of it when steps get smaller."""
    duration, one, robot = end or DURATION, np.eye(3), ThreeLink()
    known = reference("eun")["three_link"]["errors"]
    runs: dict[str, tuple[str, Modified | Unmodified, Array, float]] = {
        "as derived, H = I": ("rounded IC rk4 0.01 mod H=I", Modified(robot, one), SPEED, duration),
        "velocity terms at ξ": (
            "rounded IC rk4 0.01 mod b(xi) H=I", UncorrectedTerms(robot, one), SPEED, duration,
        ),
        "eq. 34, second row as printed": (
            "consistent IC rk4 0.01 printed b row2", Unmodified(Printed(mistake="row2")),
            CONSISTENT_SPEED, duration,
        ),
        "eq. 30, third row as printed": (
            "consistent IC rk4 0.01 printed row3", Unmodified(Printed(mistake="row3")),
            CONSISTENT_SPEED, duration,
        ),
    }  # fmt: skip
    rows, curves = list[Row](), list[Curve]()
    for name, (key, field, speed, until) in runs.items():
        t, found = errors(field, speed, until, STEP)
        curves.append(Curve(name, t[1:], np.abs(found[1:, 1]) + 1e-12))
        for k in range(2):
            other = known[key][k] if duration == DURATION else None
            rows.append(
                Row(f"{name}, largest Error {k + 1} [m]", float(np.abs(found[:, k]).max()), other,
                    None if other is None else 1e-4 * other)
            )  # fmt: skip
    diverging = list[Row]()
    sizes = {
        h: errors(PrintedSign(robot, one), SPEED, EXPLODES, h)[1] for h in (0.01, 0.005, 0.0025)
    }
    finest = sizes[0.0025]
    for h, found in sizes.items():
        for k in range(2):
            diverging.append(
                Row(f"Error {k + 1} at {EXPLODES:g} s, steps of {h:g} s [m]",
                    float(abs(found[-1, k])), float(abs(finest[-1, k])), 1e-2, "finer")
            )  # fmt: skip
    panel = Panel("time [s]", "size of Error 2 [m]", curves, log=True)
    title = "Eq. 40 as printed, (s + D ξ), beside the finest step"
    return Outcome([Table("One mistake at a time", rows), Table(title, diverging)], [panel])


EXAMPLES = (
    Example(
        "eun-errata",
        "Eun, Park, Lee and Chung 2004",
        "Application II with the mistakes of the print, one at a time",
        "What a wrong sign in eq. 30, 34 or 40 does to the tip: the run is the proof that it is"
        " one.",
        "On the paper's own coordinates (`formulations.classics.three_link`), since a URDF cannot"
        " have equations of motion that are wrong.",
        table,
    ),
)
