"""The three-link robot whose tip follows an ellipse: elimination and modified integration.

The robot has angles relative to the link before; the paper's are against x, and so are its
weightings: both are brought over by the matrix ``SUM`` that adds angles up.

Source: Eun, Park, Lee and Chung 2004, application II.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.formulations.classics.three_link import (
    CONSISTENT_SPEED,
    LENGTH,
    RATE,
    SEMI_X,
    SEMI_Y,
    SPEED,
    START,
    disturbance,
    tip,
)
from bulletbridge.formulations.elimination import Elimination
from bulletbridge.formulations.first_order import rk4, rk45
from bulletbridge.formulations.modified import Modified, Unmodified
from bulletbridge.numerics.records import Array
from bulletbridge.papers.example import (
    Curve,
    Example,
    Film,
    Outcome,
    Panel,
    Row,
    Table,
    worst_entry,
)
from bulletbridge.papers.forced import forced, run
from bulletbridge.papers.references import reference, robot

DURATION = 5.0  # [s], of the paper's figures
SUM = np.tril(np.ones((3, 3)))
"""Angles against x from those of the joints."""
BACK = np.asarray(np.linalg.inv(SUM), np.float64)
LAST_STATE = 10.0
STARTS = {"rounded": SPEED, "consistent": CONSISTENT_SPEED}
RUNS = {
    "none": None,
    "H = I": (1.0, 1.0, 1.0),
    "H = diag(7, 3, 7)": (7.0, 3.0, 7.0),
    "H = diag(1, 3, 5)": (1.0, 3.0, 5.0),
}
"""Integrations of the figures, with the weighting of the modified one in the paper's angles."""
METHODS = ("rk4 0.01", "rk4 0.005", "rk45 0.001", "rk45 1e-06")
"""Steps [s], or relative tolerances of the 4(5) pair."""
CLOSE, LEAST = 1e-4, 1e-12
"""What errors of the tip may differ by: a part of them, and in any case [m]."""


class Path(NamedTuple):
    """A run in the paper's angles."""

    t: Array  # (n,) [s]
    q: Array  # (n, 3) [rad]
    v: Array  # (n, 3) rates that the equations of motion were given [rad/s]


def disturbances(q: Array, v: Array, t: float) -> Array:
    """Joint torques (3,) of the forces at the ends of links 1 and 2."""
    return np.asarray(SUM.T @ disturbance(SUM @ q, t), np.float64)


def wanted(t: Array) -> Array:
    """Place of the tip on the ellipse (n, 2) [m]."""
    phase = np.pi - RATE * np.asarray(t)
    around = np.column_stack([SEMI_X * (1.0 + np.cos(phase)), SEMI_Y * np.sin(phase)])
    return np.asarray(tip(START) + around, np.float64)


def tips(q: Array) -> Array:
    """Place of the tip (n, 2) [m]."""
    return np.column_stack([np.cos(q) @ LENGTH, np.sin(q) @ LENGTH])


@cache
def integrate(start: str, method: str, weighting: str, duration: float) -> Path:
    """Run the robot of the URDF by first-order equations, as the paper has them."""
    weight = RUNS[weighting]
    with forced(robot("three_link"), disturbances) as (system, _):
        dynamics = system.dynamics
        field: Modified | Unmodified = Unmodified(dynamics)
        if weight is not None:
            field = Modified(dynamics, SUM.T @ np.diag(weight) @ SUM)
        back = BACK
        turn, unturn = np.kron(np.eye(2), SUM), np.kron(np.eye(2), back)

        def rate(t: float, y: Array) -> Array:  # in the paper's angles, by which steps are chosen
            return np.asarray(turn @ field.rate(t, unturn @ y), np.float64)

        y, (kind, size) = np.concatenate([START, STARTS[start]]), method.split()
        if kind == "rk4":
            t, path = rk4(rate, y, duration, round(duration / float(size)))
        else:
            t, path = rk45(rate, y, duration, float(size), 1e-3 * float(size))
        q, v = path[:, :3], path[:, 3:]
        if isinstance(field, Modified):
            xi = zip(t, q @ back.T, v @ back.T, strict=True)
            v = np.array([SUM @ field.velocity(q, v, float(t)) for t, q, v in xi])
    return Path(t, q, v)


def errors_of(path: Path) -> Array:
    """Error 1 and Error 2 of eq. 37 (n, 2) [m]: of the tip in x and y."""
    return tips(path.q) - wanted(path.t)


def states(duration: float) -> dict[float, Array]:
    """Angles and rates (6,) at the times of the references, by error-controlled steps."""
    known = {float(t): k for t, k in reference("eun")["three_link"]["states"].items()}
    found = dict[float, Array]()
    options: Any = {"integrator": "dop853", "rtol": 1e-12, "atol": 1e-13}
    with forced(robot("three_link"), disturbances, dt=0.05, **options) as (system, _):
        motion = run(system, min(duration, LAST_STATE))
        for t in known:
            n = int(np.abs(motion.t - t).argmin())
            if abs(motion.t[n] - t) < 1e-9:
                found[t] = np.concatenate([SUM @ motion.q[n], SUM @ motion.v[n]])
    return found


def path_figure(end: float | None) -> Outcome:
    """The tip on its ellipse, both errors of it over time, and tables of all runs."""
    duration = end or DURATION
    known = reference("eun")
    curves: dict[str, Path] = {
        name: integrate("rounded", "rk4 0.01", name, duration) for name in RUNS
    }
    errors = {name: errors_of(path) for name, path in curves.items()}
    labels = {"none": "without modification"}
    panels = [
        Panel(
            "x [m]",
            "y [m]",
            [
                Curve("ellipse", *wanted(np.linspace(0, 2 * np.pi / RATE, 200)).T),
                Curve("tip, modified", *tips(curves["H = I"].q[:126:3]).T, dots=True),
            ],
            equal=True,
            title="path",
        )
    ]
    for k, name in enumerate(("Error 1", "Error 2")):
        drawn = [
            Curve(labels.get(run, run), curves[run].t[1:], np.abs(errors[run][1:, k]) + 1e-12)
            for run in RUNS
        ]
        panels.append(Panel("time [s]", f"size of {name} [m]", drawn, log=True, title=name))
    panels.append(
        Panel(
            "time [s]",
            "angle [rad]",
            [Curve(f"θ{k + 1}", curves["H = I"].t, curves["H = I"].q[:, k]) for k in range(3)],
            title="links",
        )
    )
    tables = list[Table]()
    if duration == DURATION:
        for start in STARTS:
            for method in METHODS:
                rows = list[Row]()
                for name in RUNS:
                    short = "none" if name == "none" else f"mod {name.replace(' ', '')}"
                    other = known["three_link"]["errors"][f"{start} IC {method} {short}"]
                    found = np.abs(errors_of(integrate(start, method, name, duration)))
                    for k in range(2):
                        least = max(LEAST, CLOSE * other[k])
                        rows.append(
                            Row(f"{name}, largest Error {k + 1} [m]", float(found[:, k].max()),
                                other[k], least)
                        )  # fmt: skip
                kind, size = method.split()
                unit = f"RK4, {float(size):g} s" if kind == "rk4" else f"4(5) pair, rtol {size}"
                tables.append(Table(f"{start} start, {unit}", rows))
    rows = list[Row]()
    for t, state in states(end or LAST_STATE).items():
        label = next(k for k in known["three_link"]["states"] if float(k) == t)
        other = known["three_link"]["states"][label]
        rows.append(worst_entry(f"θ, θ̇ at {t:g} s [rad, rad/s]", state, other, 5e-9))
    tables.append(Table("States by DOP853, constraints held by a projection", rows))
    film = Film(robot("three_link"), curves["H = I"].t, curves["H = I"].q @ BACK.T)
    return Outcome(tables, panels, film)


def force_figure(end: float | None) -> Outcome:
    """Constraint force on the tip and constraint torques over time."""
    duration, known = end or DURATION, reference("eun")["three_link"]["t0"]
    path = integrate("consistent", "rk4 0.005", "H = I", duration)
    torques, forces, accelerations = np.zeros((len(path.t), 3)), np.zeros((len(path.t), 2)), None
    back = BACK
    with forced(robot("three_link"), disturbances) as (system, _):
        dynamics = system.dynamics
        solve = Elimination(dynamics)
        for n, (t, q, v) in enumerate(zip(*path, strict=True)):
            at = back @ q, back @ v, float(t)
            found = solve(*at)
            torques[n] = back.T @ dynamics.equations(*at).J.T @ found.lam
            rows = np.array([-LENGTH * np.sin(q), LENGTH * np.cos(q)])
            forces[n] = np.linalg.lstsq(rows.T, torques[n], rcond=None)[0]
            if accelerations is None:
                accelerations = SUM @ found.vdot
    assert accelerations is not None
    rows = [
        Row(f"constraint torque {k + 1} at 0 s [N m]", torques[0, k], known["Fc"][k], 1e-8)
        for k in range(3)
    ]
    rows += [
        Row(f"acceleration {k + 1} at 0 s [rad/s²]", accelerations[k], known["acc"][k], 1e-9)
        for k in range(3)
    ]
    panels = [
        Panel("time [s]", "force [N]", [Curve(f"F_{c}", path.t, forces[:, k])
              for k, c in enumerate("xy")], title="constraint force on the tip"),
        Panel("time [s]", "torque [N m]", [Curve(f"F^c_{k + 1}", path.t, torques[:, k])
              for k in range(3)], title="constraint torques Jᵀ λ"),
    ]  # fmt: skip
    film = Film(robot("three_link"), path.t, path.q @ back.T)
    return Outcome([Table("Start", rows)], panels, film)


def start_table(end: float | None) -> Outcome:
    """What is printed of the start, and what follows from it."""
    known = reference("eun")["three_link"]
    back = BACK
    with forced(robot("three_link"), disturbances) as (system, _):
        dynamics = system.dynamics
        e = dynamics.equations(back @ START, np.zeros(3), 0.0)
        filtered = SUM @ Modified(dynamics).velocity(back @ START, back @ SPEED, 0.0)
        static = back.T @ e.f
        rows = list[Row]()
        for name, sign in (("printed", -1.0), ("corrected", 1.0)):
            rates = SPEED * [1.0, sign, 1.0]
            speed = np.array([-LENGTH * np.sin(START), LENGTH * np.cos(START)]) @ rates
            left = np.abs(speed - [0.0, RATE * SEMI_Y])
            for axis, found, other in zip("xy", left, known[f"residual_{name}"], strict=True):
                rows.append(
                    Row(f"velocity of the tip off the path's in {axis}, {name} θ̇2 [m/s]",
                        float(found), abs(other), 1e-9)
                )  # fmt: skip
    rows.append(worst_entry("torques at rest, g = 9.8 [N m]", -static, known["static_residual"],
                            1e-9))  # fmt: skip
    rows.append(worst_entry("filtered rates [rad/s]", filtered, known["consistent_speed"], 1e-12))
    return Outcome([Table("Start of application II", rows)])


PAPER = "Eun, Park, Lee and Chung 2004"
ROBOT = (
    "Three links with springs, dampers and disturbances, the tip led along an ellipse. The robot"
    " is a URDF in Bullet (`bulletbridge/papers/robots/three_link.urdf`); springs, dampers and the"
    " moving pin are entries of its loops file, the disturbances a function of its state. "
)
EXAMPLES = (
    Example(
        "eun-path",
        PAPER,
        "Application II: path and errors of the tip, with and without modified integration",
        ROBOT
        + "Errors 1 and 2 (eq. 37) of RK4 at 10 ms from the printed start, its sign put right:"
        " without modification the tip leaves the ellipse by millimetres, with it by what the"
        " quadrature of q̇ errs by, whatever the weighting H.",
        "Without a position term an error of the position is never removed, only not added to. The"
        " differences between the weightings are those of truncation, none is best everywhere. The"
        " pictures of the paper were not available.",
        path_figure,
    ),
    Example(
        "eun-forces",
        PAPER,
        "Application II: constraint force on the tip and constraint torques",
        ROBOT + "The force that keeps the tip on the ellipse, by the elimination of eq. 17 to 22.",
        "The paper's own curves were not available; numbers are held against an independent program"
        " at the start.",
        force_figure,
    ),
    Example(
        "eun-start",
        PAPER,
        "Application II: what the printed start gives",
        ROBOT
        + "With the printed sign of θ̇2 the tip moves off its path by metres a second; with the"
        " other sign by the rounding of four decimals. The angles are the static equilibrium for"
        " g = 9.8 m/s².",
        "That g is 9.8 is not stated; with 9.81 the torques at rest miss by 0.27 N m.",
        start_table,
    ),
)
