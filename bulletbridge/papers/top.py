"""The top whose tip hangs on a bar: a robot in Bullet, and charts in the paper's coordinates.

Source: Haug and Pavesic 2023, example 1.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

import bulletbridge as bb
from bulletbridge.errors import StepError
from bulletbridge.formulations.chart import ITERATIONS, Iterations
from bulletbridge.formulations.charts import TILT, ChartMotion, Norm, Rule, Tilt
from bulletbridge.formulations.classics.top import Top, start, threshold
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
from bulletbridge.papers.references import reference, robot

DURATION, SHORT, LONG = 20.0, 5.0, 100.0  # [s], of states, slow tops, the paper's counts
STEP = 1e-3  # [s], of charts
CASES = ("eps=0.1 wz=13.5", "eps=0.5 wz=10.0", "eps=0.001 wz=14.0", "eps=0.001 wz=12.0")
PRINTED = {  # tolerance: position, velocity, acceleration, and the energy [%] of all of them
    "1e-06": (2e-8, 6e-6, 5e-5),
    "1e-08": (2e-10, 3e-8, 2e-7),
    "1e-10": (2e-12, 2e-10, 4e-9),
}
ENERGY = 2e-4
TABLED = 13.5
"""Spin of the table of tolerances [rad/s]."""
COUNTED = (7.0, 8.0, 10.0, 12.0, 13.5)
"""Spins whose charts are counted [rad/s]."""
LOST = 2e-2
"""Part of the energy after which a run has failed."""


class ChartRun(NamedTuple):
    """What a run of the upright top on charts showed."""

    changes: int  # charts after the first
    error: Array  # largest violations (3,) of the three levels
    energy: float  # largest change of energy, relative
    away: float  # largest horizontal distance of the centre of mass [m]
    end: float  # time reached [s]


class Flight(NamedTuple):
    """A top in Bullet."""

    t: Array  # (n,) [s]
    states: Array  # (n, 13) r, p (scalar first), ṙ, body rates, as the references have them
    q: Array  # (n, 7) as the system has it


@cache
def fly(across: float, spin: float, duration: float) -> Flight:
    """The top of the URDF from upright, by compiled DOP853 under error control."""
    options: Any = {"integrator": "dop853", "rtol": 1e-12, "atol": 1e-14, "dt": 0.02}
    with bb.load(robot("top"), "new", **options) as model:
        system = model.system
        system.set_state(v=np.array([across, across, spin, 0.0, 0.0, 0.0]))
        first = np.concatenate([system.q, system.v])
        seen = system.run(duration)
        states = np.vstack([first, np.column_stack([seen.q, seen.v])])
    return Flight(np.append(0.0, seen.t), as_referred(states), states[:, :7])


def as_referred(states: Array) -> Array:
    """r, p, ṙ, body rates (n, 13) of q (position, quaternion xyzw) and v (angular, linear)."""
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_quat(states[:, 3:7])
    body = turn.inv().apply(states[:, 7:10])
    p = states[:, [6, 3, 4, 5]]
    return np.column_stack([states[:, :3], p, states[:, 10:13], body])


@cache
def on_charts(
    spin: float,
    duration: float,
    rule: Rule = TILT,
    iterations: Iterations = ITERATIONS,
    across: float = 1e-12,
) -> ChartRun:
    """The upright top on charts in Euler parameters, Nyström of order 4, spun by so much across.

    A step that no chart carries, or an energy that is off, ends the run.
    """
    top = Top(alpha=0.0)
    motion = ChartMotion(top, *start(across, spin), rule=rule, iterations=iterations)
    first, energy, away = top.energy(motion.q, motion.v), 0.0, 0.0
    for _ in range(round(duration / STEP)):
        try:
            motion.step(STEP)
        except StepError:
            break
        energy = max(energy, abs(top.energy(motion.q, motion.v) / first - 1.0))
        away = max(away, float(np.hypot(*motion.q[:2])))
        if not energy < LOST:
            break
    return ChartRun(motion.changes, motion.error, energy, away, motion.t)


def figure(end: float | None) -> Outcome:
    """Path of the centre of mass and lean of the axis, for tops that stand and that fall."""
    duration, tables, path, lean = end or DURATION, list[Table](), list[Curve](), list[Curve]()
    film: Film | None = None
    for name in CASES:
        across, spin = (float(part.split("=")[1]) for part in name.split())
        flight, known = fly(across, spin, duration), reference("haug")["top"][name]["states"]
        rows = list[Row]()
        for t in until(sorted(float(t) for t in known), duration):
            state = flight.states[np.abs(flight.t - t).argmin()]
            other = np.array(known[f"{t:g}"])
            sign = 1.0 if state[3:7] @ other[3:7] > 0.0 else -1.0  # p and -p are one rotation
            state = np.concatenate([state[:3], sign * state[3:7], state[7:]])
            rows.append(worst_entry(f"r, p, ṙ, ω at {t:g} s", state, other, 2e-9))
        tables.append(Table(f"spin {spin:g} rad/s, {across:g} rad/s across", rows))
        label = f"{spin:g} rad/s, {across:g} across"
        if across >= 0.1:
            path.append(Curve(label, flight.states[:, 0], flight.states[:, 1]))
        else:
            away = np.hypot(flight.states[:, 0], flight.states[:, 1])
            lean.append(Curve(label, flight.t[1:], away[1:]))
        film = film or Film(robot("top"), flight.t, flight.q)
    panels = [
        Panel("x [m]", "y [m]", path, equal=True, title="centre of mass, from above"),
        Panel("time [s]", "distance from the axis [m]", lean, log=True,
              title="spins above and below the critical one"),
    ]  # fmt: skip
    return Outcome(tables, panels, film)


def stability(end: float | None) -> Outcome:
    """Growth of a small tilt over the spin, and where it ends."""
    known, rows, spins = reference("haug")["stability"], list[Row](), np.linspace(2.0, 16.0, 561)
    for name, other in known["critical_spin"].items():
        found = Top(gravity=float(name[2:])).critical_spin()
        rows.append(Row(f"critical spin, {name} m/s² [rad/s]", found, other, 1e-9))
    low, high = threshold(Top(), 12.0, 14.0, 1e-8)
    critical = Top().critical_spin()
    rows.append(
        Row("by bisection of the roots [rad/s]", 0.5 * (low + high), critical, 1e-6, "theory")
    )
    rows.append(Row("the paper's limit [rad/s], not the limit", critical, 13.5, None, "paper"))
    for spin, other in known["growth"].items():
        rows.append(
            Row(f"growth at {float(spin):g} rad/s [1/s]", Top().growth(float(spin)), other, 1e-5)
        )
    growth = np.array([Top().growth(spin) for spin in spins])
    there = [(float(s), g) for s, g in known["growth"].items()]
    panel = Panel(
        "spin [rad/s]",
        "growth of a small tilt [1/s]",
        [
            Curve("linearisation", spins, growth),
            Curve("independent program", *np.array(there).T, dots=True),
            Curve("the paper's 13.5 rad/s", np.array([13.5, 13.5]), np.array([0.0, 1.5])),
        ],
    )
    measured = list[Curve]()
    for spin in (12.0, 12.5, 12.9, 13.0):
        flight = fly(1e-6, spin, end or DURATION)
        away = np.hypot(flight.states[:, 0], flight.states[:, 1])
        measured.append(Curve(f"{spin:g} rad/s", flight.t[1:], away[1:]))
    return Outcome(
        [Table("Stability of the upright top", rows)],
        [panel, Panel("time [s]", "distance from the axis [m]", measured, log=True,
                      title="in Bullet, from 1e-6 rad/s across")],
    )  # fmt: skip


def tolerances(end: float | None) -> Outcome:
    """Constraint errors over 100 s for three tolerances, tested before or after an iteration."""
    duration, tables = end or LONG, list[Table]()
    for tolerance, printed in PRINTED.items():
        for before in (True, False):
            rule = Iterations(float(tolerance), float(tolerance), not before, not before)
            run = on_charts(TABLED, duration, Norm(), rule)
            known = reference("haug")["top_table"][
                f"wz={TABLED} tol={tolerance} pretest={int(before)}"
            ]
            rows = list[Row]()
            for k, (name, unit) in enumerate(LEVELS):
                rows.append(Row(f"{name} [{unit}]", float(run.error[k]), printed[k], None, "paper"))
                if duration == LONG:  # to their size where rounding decides
                    rows.append(Row(f"{name} [{unit}]", float(run.error[k]), known[k],
                                    max(0.5 * known[k], 1e-12)))  # fmt: skip
            rows.append(Row("energy [%]", 100.0 * run.energy, ENERGY, None, "paper"))
            if duration == LONG:
                rows.append(Row("charts", float(run.changes), known[4], 0.5))
            when = "before iterating" if before else "after one iteration at least"
            tables.append(Table(f"{TABLED:g} rad/s, tolerance {tolerance}, tested {when}", rows))
    return Outcome(tables)


LEVELS = (("position", "m²"), ("velocity", "m²/s"), ("acceleration", "m²/s²"))


def charts(end: float | None) -> Outcome:
    """Charts in 1e5 steps by spin, with |v| below 0.75."""
    duration, rows, found = end or LONG, list[Row](), list[tuple[float, float, float]]()
    for spin in COUNTED:
        run = on_charts(spin, duration, Norm(), Iterations(1e-10, 1e-10))
        known = reference("haug")["top_counts"][f"wz={spin} vlim=0.75"][0]
        whole = duration == LONG
        found.append((spin, run.changes / duration, known / LONG))
        rows.append(Row(f"charts at {spin:g} rad/s", float(run.changes), known if whole else None,
                        0.5 if whole else None))  # fmt: skip
    rows.append(
        Row(
            "charts on average, printed",
            float(np.mean([r.ours for r in rows])),
            524.0,
            None,
            "paper",
        )
    )
    spins, ours, others = np.array(found).T
    estimate = np.linspace(4.0, 15.0, 100)
    panel = Panel(
        "spin [rad/s]",
        "charts a second",
        [
            Curve("ours", spins, ours),
            Curve("independent program", spins, others, dots=True),
            Curve("spin alone, ω / (2 asin 0.75)", estimate, 0.5 * estimate / np.arcsin(0.75)),
            Curve("printed average", np.array([4.0, 15.0]), np.array([5.24, 5.24])),
        ],
    )
    return Outcome([Table("Charts of |v| < 0.75", rows)], [panel])


def tilt(end: float | None) -> Outcome:
    """Slow tops by the paper's rule for a chart and by the tilt of the tangent spaces."""
    duration, tables = end or SHORT, list[Table]()
    for spin in SLOW:
        rows = list[Row]()
        for name, rule in (("|v| < 0.75", Norm()), ("tilt < 0.5 rad", Tilt(0.5))):
            run = on_charts(spin, duration, rule, Iterations(1e-10, 1e-10), PUSHED)
            rows.append(Row(f"{name}: lasts until [s]", round(run.end, 3)))
            rows.append(Row(f"{name}: charts", float(run.changes)))
            if name.startswith("tilt"):
                kept = float(f"{run.energy:.2g}")  # the digits that rounding leaves
                rows.append(Row(f"{name}: change of energy", kept, 0.0, 1e-6, "theory"))
        tables.append(Table(f"{spin:g} rad/s, {PUSHED:g} rad/s across", rows))
    return Outcome(tables)


SLOW, PUSHED = (1.0, 2.0), 0.5
"""Spins [rad/s] at which |v| < 0.75 lets tops blow up that start with such rates across."""
PAPER = "Haug and Pavesic 2023"
IN_BULLET = (
    "The top is a URDF in Bullet, a free body of 30 kg whose tip a `distance` of 1 m holds at the"
    " origin, advanced by compiled DOP853. "
)
IN_PARAMETERS = (
    "On charts of the constraint manifold in the paper's seven coordinates (position and Euler"
    " parameters), whose mass matrix is singular, by Nyström's method with steps of 1 ms. "
)
EXAMPLES = (
    Example(
        "haug-fig5",
        PAPER,
        "The spinning top: path of its centre of mass, and spins that stand or fall",
        IN_BULLET
        + "Four starts against an independent program: with 0.1 and 0.5 rad/s across, and with"
        " 0.001 above and below the critical spin.",
        "The paper starts from 1e-12 rad/s across: into which side such a top falls is decided by"
        " rounding, so its falling trajectories are no reference, and its pictures were not"
        " available. Gravity is not given; 9.81 m/s² here.",
        figure,
    ),
    Example(
        "haug-stability",
        PAPER,
        "From which spin on the upright top is stable",
        "Roots of the linearisation, 3 s⁴ - w s³ - 3 g s² + g w s - g² = 0 for the"
        " paper's top, of any top by `Top.critical_spin`. " + IN_BULLET,
        "The paper's 13.5 rad/s is stable but 4 % above the limit of 12.9557; no common value of"
        " gravity makes it the limit.",
        stability,
    ),
    Example(
        "haug-table1",
        PAPER,
        "Constraint errors of the top against the tolerance, over 100 s",
        IN_PARAMETERS
        + "The paper's errors lie between those with the tolerance tested before iterating"
        " and after one iteration at least.",
        "Where it is tested is not said, so printed errors are shown beside ours without a bound."
        " The charts of a `System` work in other coordinates and cannot repeat these numbers.",
        tolerances,
    ),
    Example(
        "haug-charts",
        PAPER,
        "Table of charts: how often the top changes them, by spin",
        IN_PARAMETERS + "One chart per 126 steps at 13.5 rad/s, as the spin alone asks for.",
        "The printed average, 524 charts in 1e5 steps, fits spins of 7 to 8 rad/s only: which"
        " ones were averaged is not said.",
        charts,
    ),
    Example(
        "haug-tilt",
        PAPER,
        "Slow tops: |v| < 0.75 is no sufficient rule for a chart",
        IN_PARAMETERS + "Euler parameters enter the axis with gain 2, so that the manifold turns"
        " away inside the ball, and the energy is off by 2 % where a run ends before 5 s; a limit"
        " on the tilt between the tangent spaces does not mind.",
        "The paper's tops start from 1e-12 rad/s across: there the norm's rule fails too, but when"
        " goes with rounding.",
        tilt,
    ),
)
