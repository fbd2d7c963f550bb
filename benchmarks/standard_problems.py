"""The standard problems of the field at several step sizes: error, time, energy, gap.

Writes ``standard_problems.json`` and the table in ``docs/standard-problems.md``. One thread; times
are medians of runs on their own, without loading and compiling.
"""

import argparse
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

import bulletbridge as bb
from bulletbridge.console import write_json
from bulletbridge.errors import StepError
from bulletbridge.models.standard_problems import Problem, standard_problems
from bulletbridge.system.options import Integrator

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs" / "standard-problems.md"
BEGIN, END = "<!-- table: benchmarks/standard_problems.py -->", "<!-- end of table -->"
RK4: Integrator = "rk4"
EULER: Integrator = "semi_implicit_euler"
STEPS: dict[str, dict[Integrator, tuple[float, ...]]] = {
    "a01_pendulum": {RK4: (1e-2, 5e-3, 1e-3), EULER: (1e-3,)},
    "a02_windows_2": {RK4: (1e-2, 5e-3, 1e-3), EULER: (1e-3,)},
    "a02_windows_40": {RK4: (1e-2, 5e-3, 2.5e-3), EULER: (2e-3,)},
    "a03_andrews": {RK4: (5e-5, 2e-5, 1e-5, 5e-6), EULER: (1e-5,)},
    "bricard": {RK4: (2e-2, 1e-2, 5e-3), EULER: (1e-3,)},
    "a05_governor": {RK4: (2e-4, 1e-4), EULER: (1e-2, 1e-3)},
    "a05_governor_rigid": {RK4: (1e-2, 5e-3, 1e-3), EULER: (1e-3,)},
    "stewart": {RK4: (5e-3, 1e-3, 5e-4), EULER: (1e-3,)},
}
"""Steps [s] by problem and integrator."""
TORQUE = {"a03_andrews": ("beta", 0.033)}
"""Joints with a constant torque [N m], whose work counts."""


@dataclass(frozen=True)
class Measured:
    """One run to the last time of a problem.

    Attributes:
        problem, integrator: Names.
        dt: Step [s].
        error: Largest of the compared positions at all times [m or rad].
        energy: Change of the energy balance from start to end [J]; with dampers what they took.
        gap, gap_rate: Largest at the end [m, m/s].
        seconds: Wall time of the run.
        message: Why it stopped early; empty if it did not.
    """

    problem: str
    integrator: str
    dt: float
    error: float
    energy: float
    gap: float
    gap_rate: float
    seconds: float
    message: str = ""


def measure(problem: Problem, integrator: Integrator, dt: float, repeats: int) -> Measured:
    """Run a problem."""
    springs = "implicit" if integrator == EULER else "explicit"
    with bb.load(problem.name, dt=dt, integrator=integrator, springs=springs) as model:
        system = model.system
        q, v = system.q, system.v
        try:
            error = float(problem.errors(system).max())
        except StepError as failure:
            nan = float("nan")
            return Measured(problem.name, integrator, dt, nan, nan, nan, nan, nan, str(failure))
        end, start = system.evaluate(), system.evaluate(q, v, 0.0)
        energy = end.energy - start.energy
        if problem.name in TORQUE:
            joint, torque = TORQUE[problem.name]
            energy -= torque * float(system.q[system.mechanism.joint(joint).q.start])
        times: list[float] = []
        for _ in range(repeats):
            system.set_state(q, v, 0.0)
            began = perf_counter()
            system.rollout(round(problem.duration / dt))
            times.append(perf_counter() - began)
        gap, rate = end.largest("metres"), end.largest("rate_metres")
        seconds = float(np.median(times))
        return Measured(problem.name, integrator, dt, error, energy, gap, rate, seconds)


def table(runs: list[Measured], problems: dict[str, Problem]) -> str:
    """A table of the runs in Markdown."""
    lines = [
        "| problem | to [s] | method | step [s] | error [m or rad] | energy [J] | gap [m] "
        "| gap rate [m/s] | time [s] |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        cells = [f"`{run.problem}`", f"{problems[run.problem].duration:g}", run.integrator]
        cells += [f"{run.dt:g}", *(f"{x:.1e}" for x in (run.error, run.energy))]
        cells += [f"{run.gap:.0e}", f"{run.gap_rate:.0e}", f"{run.seconds:.2g}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help="names; all unless given")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--into", type=Path, default=HERE / "standard_problems.json")
    given = parser.parse_args(arguments)
    problems = standard_problems()
    runs = [
        measure(problems[name], integrator, dt, given.repeats)
        for name in given.problems or problems
        for integrator, steps in STEPS[name].items()
        for dt in steps
    ]
    data = {"threads": 1, "cores": os.cpu_count(), "runs": [asdict(run) for run in runs]}
    write_json(given.into, data)
    text = table(runs, problems)
    print(text)
    if not given.problems:
        page = DOCS.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        after = rest.split(END)[1]
        DOCS.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
