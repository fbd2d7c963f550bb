"""The slider-crank without torque, driven through the boundary between its two components.

    python benchmarks/singular_position.py

What it gives is kept in singular_position.json.

Where the crank is across, one row of ten depends on the others and q3 = q1 and q3 = q1 + 2 cos q2
meet. Both components are smooth there, so that the motion goes on and has a reference: the reduced
equations in the crank's angle and in the angle a of q1 = 2 sin a, q4 = 2 cos a, which are regular.
"""

import os
from pathlib import Path
from typing import Literal, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices here are smaller than a thread

import numpy as np
from scipy.integrate import solve_ivp

from bulletbridge.console import write_json
from bulletbridge.errors import StepError
from bulletbridge.formulations.charts import ChartMotion
from bulletbridge.formulations.classics.slider_crank import (
    MASS,
    MINIMAL,
    ROD,
    TURN2,
    X1,
    X2,
    X3,
    Y4,
    SliderCrank,
    place,
)
from bulletbridge.formulations.integrators import Scheme, State, rk4
from bulletbridge.formulations.registry import FORMULATIONS
from bulletbridge.formulations.stabilise import Stabilisation
from bulletbridge.numerics.records import Array

START, AT, RATES = np.zeros(2), np.array([0.3, 0.5 * np.pi]), np.array([3.0, 2.0])
"""Angles [rad] at the source's start and across, and the rates [rad/s] of both."""
FREE = SliderCrank(K=0.0)
SHARE = np.array([MASS[X1] + MASS[X2], MASS[TURN2], MASS[X3], MASS[Y4]])
"""Masses of q1 to q4."""

Component = Literal[1, 3]


class Passage(NamedTuple):
    """How far a run came, and how well.

    Attributes:
        end: Time reached [s].
        error: Of the worst of q1 to q4 against the reduced equations then [m or rad].
        energy: Largest change [J] of 272.
        gap: Largest residual [m, m²].
        why: What stopped it.
    """

    end: float
    error: float
    energy: float
    gap: float
    why: str


def minimal(component: Component, x: Array, dx: Array) -> tuple[Array, Array, Array]:
    """q1 to q4, their rates and their accelerations at ẍ = 0, of the two angles x."""
    (s, sin), (c, cos) = np.sin(x), np.cos(x)
    bend = ROD if component == 3 else 0.0
    K = np.array([[ROD * c, 0], [0, 1], [ROD * c, -bend * sin], [-ROD * s, 0]])
    drift = np.array([[-ROD * s, 0], [0, 0], [-ROD * s, -bend * cos], [-ROD * c, 0]]) @ (dx * dx)
    q = np.array([ROD * s, x[1], ROD * s + bend * cos, ROD * c])
    return q, K, drift


def reduced(component: Component, x: Array, dx: Array) -> Array:
    """ẍ (2,)."""
    _, K, drift = minimal(component, x, dx)
    return np.asarray(np.linalg.solve((K.T * SHARE) @ K, -(K.T * SHARE) @ drift), np.float64)


def reference(component: Component, x: Array, t: float) -> Array:
    """q1 to q4 at t, from angles x at their common rates."""

    def rate(t: float, y: Array) -> Array:
        return np.concatenate([y[2:], reduced(component, y[:2], y[2:])])

    y = solve_ivp(rate, (0, t), [*x, *RATES], "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    return minimal(component, y[:2], y[2:])[0]


def drive(name: str, component: Component, h: float, duration: float, across: bool) -> Passage:
    """Run a formulation, or the charts, from the source's start or from across, until it ends."""
    x, dx = (AT if across else START), RATES
    q, K, _ = minimal(component, x, dx)
    state, motion, step = State(*place(q, K @ dx), 0.0), None, None
    first, energy, gap, why = FREE.energy(state.q, state.v), 0.0, 0.0, ""
    if name == "charts":
        motion = ChartMotion(FREE, state.q, state.v)
    else:
        step = Scheme(FREE, FORMULATIONS[name](FREE), rk4, Stabilisation())
    for _ in range(round(duration / h)):
        try:
            if motion:
                motion.step(h)
                state = State(motion.q, motion.v, motion.t)
            elif step:
                after = step(state, h)
                state = State(after.q, after.v, state.t + h)
        except StepError as error:
            why = f"{type(error).__name__}: {error}"
            break
        energy = max(energy, abs(FREE.energy(state.q, state.v) - first))
        gap = max(gap, float(np.abs(FREE.equations(*state).g).max()))
    error = float(np.abs(state.q[MINIMAL] - reference(component, x, state.t)).max())
    return Passage(state.t, error, energy, gap, why)


def acceleration_error(name: str, component: Component) -> float | None:
    """Of q1 to q4 with the crank across [m/s² or rad/s²]; None where there is no solution."""
    q, K, drift = minimal(component, AT, RATES)
    q, v = place(q, K @ RATES)
    exact = K @ reduced(component, AT, RATES) + drift
    try:
        vdot = FORMULATIONS[name](FREE)(q, v, 0.0).vdot
    except StepError:
        return None
    return float(np.abs(vdot[MINIMAL] - exact).max())


def show_singular() -> None:
    """Runs of 5 s from the source's start and of 1 s from across, steps of 1 ms; accelerations."""
    kept = dict[str, dict[str, object]]()
    print("Slider-crank through its singular boundary, rk4 1 ms")
    print(f"{'':16s} {'time [s]':>9s} {'error':>8s} {'energy':>8s} {'gap':>8s}  across: v̇ error")
    for component in (3, 1):
        for name in [*FORMULATIONS, "charts"]:
            for across in (False, True):
                run = drive(name, component, 1e-3, 1.0 if across else 5.0, across)
                label = f"C{component} {name}" + (" from across" if across else "")
                row: dict[str, object] = dict(run._asdict())
                if across and name != "charts":
                    row["acceleration_error"] = acceleration_error(name, component)
                kept[label] = row
                print(
                    f"{label:30s} {run.end:6.3f} {run.error:8.1e} {run.energy:8.1e} {run.gap:8.1e}"
                    f" {row.get('acceleration_error', '')!s:8.8s} {run.why}"
                )
    write_json(Path(__file__).with_suffix(".json"), kept)


if __name__ == "__main__":
    show_singular()
