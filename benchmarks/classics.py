"""Every number of the small systems of the papers, obtained beside its reference.

    python benchmarks/classics.py [particle] [three_link] [top] [slider] [singular]
                                 [top_table] [top_counts]

Without arguments all but the last two, which take a minute for each of their runs of 1e5 steps.
What these two and ``singular`` give is kept in classics.json, under "obtained".
"""

import os
import sys
from typing import Literal

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices here are smaller than a thread

import numpy as np
from _classics_errata import Printed, PrintedSign, UncorrectedTerms
from _classics_singular import show_singular
from _classics_tables import REFERENCE, beside, keep, precise, sizes, title, worst
from _classics_top import top_run

from bulletbridge.errors import StepError
from bulletbridge.formulations.chart import Iterations
from bulletbridge.formulations.charts import ChartMotion, Condition, Norm, Rule, Tilt
from bulletbridge.formulations.classics import particle, slider_crank, three_link, top
from bulletbridge.formulations.elimination import Elimination
from bulletbridge.formulations.first_order import rk4, rk45
from bulletbridge.formulations.modified import Modified, Unmodified
from bulletbridge.numerics.records import Array


def show_particle() -> None:
    """Appell's particle, references by polar angle and hodograph."""
    title("Appell's particle: x and y [m] at t [s]")
    cases = (("hol", particle.OnCylinder()), ("nonhol", particle.AtSpeed()))
    for kind, system in cases:
        reference = REFERENCE["particle"][kind]
        states = precise(system, *system.start(), reference["t"])
        for t, state, x, y in zip(
            reference["t"], states, reference["x"], reference["y"], strict=True
        ):
            beside(f"{kind} x({t})", state[0], x)
            beside(f"{kind} y({t})", state[1], y)


def show_three_link() -> None:
    """Three-link robot: start, reactions, states, error tables."""
    reference, robot = REFERENCE["three_link"], three_link.ThreeLink()
    q, v = three_link.START, three_link.CONSISTENT_SPEED
    title("Three-link robot: start")
    for name, sign in (("printed", -1.0), ("corrected", 1.0)):
        e = robot.equations(q, rates := three_link.SPEED * [1.0, sign, 1.0], 0.0)
        for axis, found, ref in zip(
            "xy", [-1.0, 1.0] * (e.J @ rates + e.g_t), reference[f"residual_{name}"], strict=True
        ):
            beside(f"velocity residual {axis}, {name} [m/s]", found, ref)
    force = robot.equations(q, np.zeros(3), 0.0).f
    worst("static torque residual, g = 9.8 [N m]", -force, reference["static_residual"])
    filtered = Modified(robot).velocity(q, three_link.SPEED, 0.0)
    worst("filtered start [rad/s]", filtered, reference["consistent_speed"])
    solution = Elimination(robot)(q, v, 0.0)
    reaction = robot.equations(q, v, 0.0).J.T @ solution.lam
    for k in range(3):
        beside(f"acceleration {k + 1} at 0 [rad/s²]", solution.vdot[k], reference["t0"]["acc"][k])
    for k in range(3):
        beside(f"constraint torque {k + 1} at 0 [N m]", reaction[k], reference["t0"]["Fc"][k])
    times = [float(t) for t in reference["states"]]
    states = precise(robot, q, v, times)
    for t, state, ref in zip(times, states, reference["states"].values(), strict=True):
        worst(f"state at {t:.7g} s [rad, rad/s]", state, ref)
    print("\nThree-link robot: largest errors of the tip in x and y over 5 s [m] | reference")
    starts = {"rounded": three_link.SPEED, "consistent": v}
    for name, ref in reference["errors"].items():
        start, _, kind, size, mode = name.split(" ", 4)
        explodes = mode.startswith("printed sign")  # after 0.12 s steps do not agree any more
        field, duration = field_of(mode), 0.12 if explodes else 5.0
        y, h = np.concatenate([q, starts[start]]), float(size)
        if kind == "rk4":
            t, path = rk4(field.rate, y, duration, round(duration / h))
        else:
            t, path = rk45(field.rate, y, duration, h, 1e-3 * h)
        found = [robot.equations(y[:3], y[3:], t).g for t, y in zip(t, path, strict=True)]
        label = f"{name}, 0.12 s | 0.14 s" if explodes else name
        sizes(label, np.abs(found).max(axis=0), ref)


def field_of(mode: str) -> Modified | Unmodified:
    """Integration that a row of the error table is of."""
    robot, one = three_link.ThreeLink(), np.eye(3)
    if mode.startswith("mod H=diag"):
        weight = np.array([float(x) for x in mode[len("mod H=diag(") : -1].split(",")])
        return Modified(robot, np.diag(weight))
    return {
        "none": Unmodified(robot),
        "mod H=I": Modified(robot, one),
        "mod b(xi) H=I": UncorrectedTerms(robot, one),
        "printed sign s+D xi": PrintedSign(robot, one),
        "printed b row2": Unmodified(Printed(mistake="row2")),
        "printed row3": Unmodified(Printed(mistake="row3")),
    }[mode]


def state_of_top(q: Array, v: Array) -> Array:
    """r, p, ṙ, body rates (13,)."""
    return np.concatenate([q, v[:3], top.angular_velocity(q, v)])


def show_top() -> None:
    """Top: stability, mass matrix, states, order of Nyström's method."""
    title("Top: critical spin [rad/s], growth [1/s], eigenvalues of M")
    for name, ref in REFERENCE["stability"]["critical_spin"].items():
        beside(f"critical spin, {name}", top.Top(gravity=float(name[2:])).critical_spin(), ref)
    low, high = top.threshold(top.Top(), 12.0, 14.0)
    beside("the same by bisection of the roots", 0.5 * (low + high), top.Top().critical_spin())
    for spin, ref in REFERENCE["stability"]["growth"].items():
        beside(f"growth at {spin}", top.Top().growth(float(spin)), ref)
    M = top.Top(alpha=0.0).equations(*top.start(0.1, 13.5), 0.0).M
    for k, (found, ref) in enumerate(
        zip(np.linalg.eigvalsh(M), REFERENCE["mass_eigenvalues"], strict=True)
    ):
        beside(f"eigenvalue {k} of M", found, ref)
    title("Top: states by the projector (alpha = 100), and Nyström 4 on charts after 10 s")
    for name, reference in REFERENCE["top"].items():
        across, spin = (float(part.split("=")[1]) for part in name.split())
        times = [float(t) for t in reference["states"]]
        states = precise(top.Top(), *top.start(across, spin), times)
        for t, state, ref in zip(times, states, reference["states"].values(), strict=True):
            worst(f"{name} at {t:g} s", state_of_top(*np.split(state, 2)), ref)
        errors = [nystrom_error(across, spin, float(h)) for h in reference["nystrom4"]]
        sizes(f"{name}, h = 8, 4, 2, 1 ms", errors, list(reference["nystrom4"].values()))


def nystrom_error(across: float, spin: float, h: float) -> float:
    """Largest error of r and p after 10 s [m, 1]; the references are of |v| < 0.5."""
    motion = ChartMotion(top.Top(alpha=0.0), *top.start(across, spin), rule=Norm(0.5))
    for _ in range(round(10.0 / h)):
        motion.step(h)
    reference = REFERENCE["top"][f"eps={across:g} wz={spin}"]["states"]["10"]
    return float(np.abs(motion.q - reference[:7]).max())


def show_top_table() -> None:
    """Constraint errors of the top against tolerance over 100 s."""
    print(
        "\nTop, 100 s, |v| < 0.75: position, velocity, acceleration, energy % , charts | reference"
    )
    for name, ref in REFERENCE["top_table"].items():
        spin, tol, before = (float(part.split("=")[1]) for part in name.split())
        rule = Iterations(tol, tol, not before, not before)
        run = top_run(spin, 100.0, rule=Norm(), iterations=rule)
        row = [*map(float, run.error), 100 * float(run.energy), float(run.changes)]
        keep("top_table", name, row)
        sizes(name, row, ref)


def show_top_counts() -> None:
    """Charts over 100 s by rule and spin; where the norm fails, beside the tilt rule."""
    print("\nTop, 100 s: charts, distance [m], failed (energy off by 2 %) | reference")
    for name, ref in REFERENCE["top_counts"].items():
        spin, limit = (float(part.split("=")[1]) for part in name.split())
        rule = Iterations(1e-10, 1e-10)
        for label, chosen in ((f"|v| < {limit}", Norm(limit)), ("tilt < 0.5 rad", Tilt(0.5))):
            if label.startswith("tilt") and limit != 0.75:
                continue
            run = top_run(spin, 100.0, rule=chosen, iterations=rule)
            failed = run.end < 99.9
            keep("top_counts", f"wz={spin} {label}", [run.changes, run.away, failed, run.energy])
            row = f"{run.changes:5d} {run.away:8.1e} {failed!s:5s} {run.retries:3d} retries"
            other = f"| {ref[0]:.0f} {ref[1]:8.1e} {ref[2]}" if label.startswith("|v|") else ""
            print(f"{spin:5.1f} rad/s {label:16s} {row} energy {run.energy:8.1e} {other}")


def show_slider() -> None:
    """Slider-crank: states, table of charts and errors, table of tolerances, order."""
    for name, reference in REFERENCE["slider"].items():
        part, law = name.split()
        title(f"Triple slider-crank {name}: q1 to q4 and rates")
        component: Literal[1, 3] = 1 if part == "C1" else 3
        body = slider_crank.SliderCrank("abs" if law == "abs" else "sq")
        q, v = slider_crank.start(component)
        beside("energy [J]", body.energy(q, v), reference["energy"])
        times = [float(t) for t in reference["states"]]

        def kink(y: Array) -> float:
            return float(y[slider_crank.TURN2])

        states = precise(body, q, v, times, kink if law == "abs" else None)
        for t, state, ref in zip(times, states, reference["states"].values(), strict=True):
            found = np.concatenate([part[slider_crank.MINIMAL] for part in np.split(state, 2)])
            worst(f"state at {t:g} s", found, ref)
    print(
        "\nSlider-crank on charts, 2000 steps: charts, position, velocity, acceleration | reference"
    )
    for name, ref in REFERENCE["slider_runs"].items():
        if name.startswith("table2"):
            tol, before = float(name.split()[1][4:]), name.endswith("True")
            run, status = slider_run(
                3, 1e-3, 2000, Norm(), Iterations(tol, tol, not before, not before)
            )
            sizes(f"{name}, {status}", [run.changes, *run.error], ref[:4])
            beside("   error at 2 s", slider_error(run), ref[5])
        else:
            part, step, rule = name.split()
            rule_of = {
                "norm<0.75": Norm(),
                "cond<100": Condition(100.0),
                "cond<1000": Condition(1e3),
            }
            rule_of |= {f"condrel<{k}": Condition(k, relative=True) for k in (10, 20)}
            test_first = Iterations(1e-8, 1e-8, u_first=False, B_first=False)
            component = 1 if part == "C1" else 3
            run, status = slider_run(component, float(step[2:]), 2000, rule_of[rule], test_first)
            sizes(f"{name}, {status} ({ref[4]})", [run.changes, *run.error], ref[:4])
            if step == "h=0.001" and rule == "norm<0.75":
                run, status = slider_run(component, 1e-3, 2000, Tilt(), test_first)
                sizes(f"{part} {step} tilt<0.5, {status}", [run.changes, *run.error], [])
    errors = [
        slider_error(slider_run(3, h, round(2 / h), Norm(), Iterations())[0])
        for h in (4e-3, 2e-3, 1e-3, 5e-4)
    ]
    sizes("Nyström 4 at 2 s, h = 4, 2, 1, 0.5 ms", errors, REFERENCE["slider_nystrom4"])
    free = slider_run(3, 1e-3, 5000, Tilt(), Iterations(), K=0.0)
    turn = free[0].q[slider_crank.TURN2]
    print(f"no torque: {free[1]}, {free[0].t:.3f} s, q2 = {turn:.4f}, margin {free[0].margin:.1e}")


def slider_run(
    component: Literal[1, 3],
    h: float,
    steps: int,
    rule: Rule,
    iterations: Iterations,
    K: float = 100.0,
) -> tuple[ChartMotion, str]:
    """A run under the first law, and how it ended."""
    q, v = slider_crank.start(component)
    motion = ChartMotion(slider_crank.SliderCrank(K=K), q, v, rule=rule, iterations=iterations)
    for n in range(steps):
        try:
            motion.step(h)
        except StepError:
            return motion, f"ended at step {n}"
    return motion, f"ok, {motion.retries} retries"


def slider_error(run: ChartMotion) -> float:
    """Largest error of a position at 2 s on component 3 [m or rad]."""
    reference = REFERENCE["slider"]["C3 abs"]["states"]["2"]
    return float(np.abs(run.q[slider_crank.MINIMAL] - reference[:4]).max())


SECTIONS = {
    "particle": show_particle,
    "three_link": show_three_link,
    "top": show_top,
    "slider": show_slider,
    "singular": show_singular,
    "top_table": show_top_table,
    "top_counts": show_top_counts,
}

if __name__ == "__main__":
    for section in sys.argv[1:] or list(SECTIONS)[:5]:
        SECTIONS[section]()
