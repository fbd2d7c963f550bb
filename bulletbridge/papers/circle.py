"""Two sliders joined by a rod, a point on a circle: quasi-velocities, tracking, regulation.

Source: Aghili 2008, the example; masses, radius and gains are chosen.
"""

from typing import Any

import numpy as np

from bulletbridge.control.controllers import Regulation, Tracking, TrackingLaw
from bulletbridge.control.plant import Desired, plant_of
from bulletbridge.formulations.classics.circle import CircleRobot
from bulletbridge.formulations.projector import Projector
from bulletbridge.formulations.quasi_velocities import basis_of
from bulletbridge.numerics.records import Array
from bulletbridge.papers.example import (
    Curve,
    Example,
    Film,
    Outcome,
    Panel,
    Row,
    Table,
    until,
    worst_entry,
)
from bulletbridge.papers.forced import States, forced, run
from bulletbridge.papers.references import reference, robot

CIRCLE = CircleRobot()
CONTROLLED: Any = {"integrator": "dop853", "rtol": 1e-11, "atol": 1e-12}
FREE, TRACKED, REGULATED = 10.0, 4.0, 20.0  # [s]
LAM = 5.0  # wanted force of the rod [N]


def on_circle(t: float) -> Desired:
    """The wanted motion: phi = 0.3 + 0.8 sin 0.9 t."""
    phi, w, a = 0.3 + 0.8 * np.sin(0.9 * t), 0.72 * np.cos(0.9 * t), -0.648 * np.sin(0.9 * t)
    q, v = CIRCLE.state(phi, w)
    return Desired(q, v, -q * w**2 + CIRCLE.state(phi, a)[1])


def angles(q: Array) -> Array:
    """Angle of the point on the circle (n,) [rad], without jumps."""
    return np.asarray(np.unwrap(np.arctan2(q[:, 1], q[:, 0])), np.float64)


def at(motion: States, t: float) -> int:
    """Number of the state at a time [s]."""
    return int(np.abs(motion.t - t).argmin())


def free(end: float | None) -> Outcome:
    """Free motion: the quasi-velocity stays, positions follow an elliptic integral."""
    duration, known = end or FREE, reference("aghili")["circle_free"]
    rate = known["phid0"]
    with forced(robot("circle"), dt=0.05, **CONTROLLED) as (system, _):
        system.set_state(*CIRCLE.state(0.0, rate))
        motion = run(system, duration)
        dynamics = system.dynamics
        speeds = np.array(
            [
                np.linalg.norm(basis_of(dynamics.equations(q, v, 0.0)).reduce(v))
                for q, v in zip(motion.q, motion.v, strict=True)
            ],
            np.float64,
        )
    exact = np.array([CIRCLE.state(CIRCLE.angle(float(t), rate), 0.0)[0] for t in motion.t])
    rows = [
        Row("v_r at the start [√kg m/s]", float(speeds[0]), known["v_r"], 1e-12),
        Row("largest change of v_r", float(np.abs(speeds - speeds[0]).max()), 0.0, 1e-10, "theory"),
        Row("period by the closed form [s]", CIRCLE.period(rate), known["period"], 1e-11),
        Row("largest distance from the closed form [m]",
            float(np.abs(motion.q - exact).max()), 0.0, 1e-9, "theory"),
    ]  # fmt: skip
    for label, place in known["xy"].items():
        if until([float(label)], duration):
            rows.append(
                worst_entry(f"q at {label} s [m]", motion.q[at(motion, float(label))], place, 1e-9)
            )
    with forced(
        robot("circle"), dt=0.01, integrator="rk4_quasi_velocities", passes=0, velocity_filter=False
    ) as (system, _):
        system.set_state(*CIRCLE.state(0.0, rate))
        by_rates = run(system, duration)
    along = np.abs((by_rates.q * by_rates.v).sum(axis=1)).max()
    there = np.array([CIRCLE.state(CIRCLE.angle(float(t), rate), 0.0)[0] for t in by_rates.t])
    rows += [
        Row("(q, v_r) by Runge-Kutta at 10 ms, nothing corrected: largest q · q̇ [m²/s]",
            float(along), 0.0, 1e-13, "theory"),
        Row("the same: largest distance from the closed form [m]",
            float(np.abs(by_rates.q - there).max()), 0.0, 1e-8, "theory"),
    ]  # fmt: skip
    panels = [
        Panel("time [s]", "position [m]",
              [Curve("q1", motion.t, motion.q[:, 0]), Curve("q2", motion.t, motion.q[:, 1])]),
        Panel("time [s]", "rate",
              [Curve("q̇1 [m/s]", motion.t, motion.v[:, 0]),
               Curve("q̇2 [m/s]", motion.t, motion.v[:, 1]),
               Curve("v_r [√kg m/s]", motion.t, speeds)]),
    ]  # fmt: skip
    return Outcome([Table("Free motion", rows)], panels, Film(robot("circle"), motion.t, motion.q))


def follow(law: Tracking, motion: States) -> tuple[Array, Array]:
    """Norms (n,) of the position and velocity errors of a tracking law along a motion."""
    pairs = [law.errors(q, v, float(t)) for t, q, v in zip(*motion, strict=True)]
    return tuple(np.array([np.linalg.norm(pair[k]) for pair in pairs]) for k in (0, 1))  # pyright: ignore[reportReturnType]


def slope(t: Array, sizes: Array) -> float:
    """Rate of an exponential decay [1/s]."""
    return -float(np.polyfit(t, np.log(sizes), 1)[0])


def track(end: float | None) -> Outcome:
    """Tracking by the published law and by ours: errors decay at the gains."""
    duration, known = end or TRACKED, reference("aghili")["tracking_circle"]
    K_p, K_d, start = known["Kp"], known["Kd"], np.array(known["state0"])
    tables, position, velocity, film = list[Table](), list[Curve](), list[Curve](), None
    laws: tuple[tuple[str, TrackingLaw], ...] = (
        ("published", "published"),
        ("computed torque", "computed_torque"),
    )
    for label, kind in laws:
        with forced(robot("circle"), dt=0.05, **CONTROLLED) as (system, acting):
            law = Tracking(plant_of(acting.bare), on_circle, K_p, K_d, law=kind)
            acting.law = law
            system.set_state(start[:2], start[2:])
            motion = run(system, duration)
            x, epsilon = follow(law, motion)
        rows = list[Row]()
        if kind == "published":
            for t in until(sorted(float(t) for t in known["qt_norm"]), duration):
                other = known["qt_norm"][f"{t:.1f}"]
                rows.append(Row(f"|q - q_d| at {t:g} s [m]", float(x[at(motion, t)]), other, 5e-9))
            for t in until(sorted(float(t) for t in known["eps"]), duration):
                other = known["eps"][f"{t:.1f}"]
                rows.append(
                    Row(
                        f"|v_r - s| at {t:g} s [√kg m/s]",
                        float(epsilon[at(motion, t)]),
                        other,
                        5e-9,
                    )
                )
        if duration >= TRACKED:
            part, late = motion.t <= 2.0, motion.t >= 2.0
            rows.append(Row("decay of v_r - s [1/s]", slope(motion.t[part], epsilon[part]), K_d,
                            1e-4, "theory"))  # fmt: skip
            rate = slope(motion.t[late], x[late])
            if kind == "published":
                rows.append(Row("decay of q - q_d [1/s]", rate, known["rate_q"], 0.2))
            else:
                rows.append(Row("decay of q - q_d [1/s]", rate, K_p, 0.2, "theory"))
        tables.append(Table(f"Law: {label}", rows))
        position.append(Curve(label, motion.t, x))
        velocity.append(Curve(label, motion.t, epsilon))
        film = Film(robot("circle"), motion.t, motion.q)
    dots = {float(t): v for t, v in known["qt_norm"].items()}
    times = until(sorted(dots), duration)
    position.append(
        Curve("independent program", np.array(times), np.array([dots[t] for t in times]), dots=True)
    )
    panels = [
        Panel("time [s]", "|q - q_d| [m]", position, log=True),
        Panel("time [s]", "|v_r - s| [√kg m/s]", velocity, log=True),
    ]
    return Outcome(tables, panels, film)


def regulate(end: float | None) -> Outcome:
    """Regulation with a wanted force of the rod, and the second place of rest."""
    duration, known = end or REGULATED, reference("aghili")["regulation_reg"]
    goal, _ = CIRCLE.state(known["target"], 0.0)
    with forced(robot("circle"), dt=0.05, **CONTROLLED) as (system, acting):
        law = Regulation(
            plant_of(acting.bare), goal, known["Kp"], known["Kd"], lambda t: np.array([LAM])
        )
        acting.law = law
        system.set_state(*CIRCLE.state(0.9, 0.0))
        motion = run(system, duration)
        solve = Projector(system.dynamics)
        lam = np.array([solve(q, v, float(t)).lam[0] for t, q, v in zip(*motion, strict=True)])
        system.set_state(*CIRCLE.state(known["target"] + np.pi + 1e-9, 0.0), t=0.0)
        there = run(system, min(duration, 5.0))
    phi, opposite, rows = angles(motion.q), angles(there.q), list[Row]()
    for t, other in zip(known["t"], known["phi"], strict=True):
        if t <= duration:
            rows.append(Row(f"φ at {t:g} s [rad]", float(phi[at(motion, t)]), other, 1e-8))
    rows.append(Row("largest |λ - 5| [N]", float(np.abs(lam - LAM).max()), 0.0, 1e-8, "theory"))
    for t, other in zip(known["t"], known["lam"], strict=True):
        if t <= 2.0 and t <= duration:
            rows.append(
                Row(f"λ at {t:g} s [N], theirs without Γ_o v_r", float(lam[at(motion, t)]), other)
            )
    if duration >= 10.0:
        part = (motion.t >= 2.0) & (motion.t <= 9.0)
        rate = slope(motion.t[part], np.abs(phi[part] - known["target"]))
        pole = min(abs(complex(str(p).strip("()")).real) for p in known["poles"])
        rows.append(Row("decay near the goal [1/s], slower pole", rate, pole, 1e-2))
    moved = float(np.abs(opposite - opposite[0]).max())
    rows.append(
        Row("from 1e-9 rad beside the antipode, moved in 5 s [rad]", moved, 0.0, 1e-4, "theory")
    )
    panels = [
        Panel("time [s]", "φ [rad]", [
            Curve("from 0.9 rad", motion.t, phi),
            Curve("independent program", np.array(until(known["t"], duration)),
                  np.array(known["phi"][: len(until(known["t"], duration))]), dots=True),
        ]),
        Panel("time [s]", "λ [N]", [
            Curve("with Γ_o v_r", motion.t, lam),
            Curve("reference, without it", np.array(until(known["t"], duration)),
                  np.array(known["lam"][: len(until(known["t"], duration))]), dots=True),
        ]),
    ]  # fmt: skip
    film = Film(robot("circle"), motion.t, motion.q)
    return Outcome([Table("Regulation with force control", rows)], panels, film)


PAPER = "Aghili 2008"
HOW = (
    "Two sliders of 2 and 3 kg on perpendicular rails, joined by a massless rod of 0.5 m: q1² +"
    " q2² = R². The robot is a URDF in Bullet (`bulletbridge/papers/robots/circle.urdf`) with a"
    " `distance` in its loops file. "
)
EXAMPLES = (
    Example(
        "aghili-free",
        PAPER,
        "Free motion on the circle: the quasi-velocity is constant",
        HOW + "Without forces v_r stays while both rates vary; the angle follows from an elliptic"
        " integral.",
        "Masses, radius and start are ours. One freedom does not show that Γ_r is not skew;"
        " random arms in `tests/test_quasi_velocities.py` do.",
        free,
    ),
    Example(
        "aghili-tracking",
        PAPER,
        "Tracking on the circle: both errors decay at the gains",
        HOW + "`Tracking` by the published law (eq. 40, 41) and by computed torque, which takes the"
        " wanted velocity at the present configuration, follows φ = 0.3 + 0.8 sin 0.9 t.",
        "One freedom does not show what the law leaves open: bases at two configurations that fit"
        " each other. Exponential convergence is local (errata).",
        track,
    ),
    Example(
        "aghili-regulation",
        PAPER,
        "Regulation with force control on the circle, and its second place of rest",
        HOW
        + "To φ = 0.3 rad with a wanted force of the rod of 5 N: motion and force do not disturb"
        " each other.",
        "The regulator does not converge from everywhere, as the paper says it does: the antipode"
        " is at rest too. The references leave Γ_o v_r out of the force law, so their λ is 5 in"
        " the end only.",
        regulate,
    ),
)
