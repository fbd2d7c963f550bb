"""What it costs to watch the rows that were left out, beside a copy that does not.

    python benchmarks/watching.py [MODEL ...] [--starts N] [--rounds N] [--steps N] [--json FILE]

A copy of the package is made in which residuals of directions left out are not formed and nothing
is judged at the end of a step. Both do the same rolls by turns, each in a process of its own whose
processor time counts; several processes, since where their memory lies may make a tenth of a step.
The copy's kernels are compiled first, which takes minutes.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices here are smaller than a thread

from rich.console import Console
from rich.table import Table

import bulletbridge
from bulletbridge.console import write_json

MODELS = ("four_bar", "bricard", "parallelogram", "slider_crank", "stewart", "minitaur", "delta")
CUTS = {
    "constraints/rows.py": (
        "for k in range(constant, constant + loop.left):",
        "for k in range(constant, constant):",
    ),
    "engine/correction.py": (
        "if c.left > PROMISED * enough:",
        "if led_here or True:\n        return\n    if c.left > 0.0:",
    ),
}
"""What a file of the package has, once, and what takes its place in the copy."""


@dataclass
class Roller:
    """A process that rolls models with one copy of the package."""

    process: subprocess.Popen[str]

    @classmethod
    def begun(cls, package: Path, models: list[str]) -> "Roller":
        """One that has loaded the models."""
        paths = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, str(Path(__file__).resolve()), *models, "--serve"]
        pipe = subprocess.PIPE
        made = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env=os.environ | {"PYTHONPATH": paths}
        )
        return cls(made)

    def seconds(self, model: str, steps: int) -> float:
        """Processor time of a roll from the start [s]."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(f"{model} {steps}\n")
        stdin.flush()
        for line in stdout:
            if line.startswith("took "):
                return float(line.split()[1])
        raise RuntimeError("the process that rolls has ended")


def serve(models: list[str]) -> None:
    """Roll what is asked for on the standard input, and say how long it took."""
    systems = {name: bulletbridge.load(name, "new").system for name in models}
    starts = {name: (system.q, system.v) for name, system in systems.items()}
    for line in sys.stdin:
        name, steps = line.split()
        systems[name].set_state(*starts[name])
        begun = time.process_time()
        systems[name].rollout(int(steps), int(steps))
        print("took", time.process_time() - begun, flush=True)


def copy_without(folder: Path) -> None:
    """A copy of the package that does not watch."""
    package = Path(bulletbridge.__file__).parent
    shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(package.parent / "urdf", folder / "urdf")
    for name, (found, other) in CUTS.items():
        file = folder / package.name / name
        text = file.read_text()
        if text.count(found) != 1:
            raise SystemExit(f"{name} has '{found}' {text.count(found)} times: mend CUTS")
        file.write_text(text.replace(found, other))


def turns(both: list[Roller], model: str, rounds: int, steps: int) -> list[tuple[float, float]]:
    """Microseconds a step, watching and not, of rolls that take turns."""
    found: list[tuple[float, float]] = []
    for n in range(rounds + 1):
        order = (0, 1) if n % 2 else (1, 0)
        seconds = {k: both[k].seconds(model, steps) for k in order}
        found.append((1e6 * seconds[0] / steps, 1e6 * seconds[1] / steps))
    return found[1:]  # the first may have compiled


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=12, help="rolls in each process")
    parser.add_argument("--starts", type=int, default=5, help="of both processes")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.models)
        return
    taken: dict[str, list[tuple[float, float]]] = {model: [] for model in options.models}
    with tempfile.TemporaryDirectory() as folder:
        copy_without(Path(folder))
        packages = Path(bulletbridge.__file__).parent.parent, Path(folder)
        for _ in range(options.starts):
            both = [Roller.begun(where, options.models) for where in packages]
            for model in options.models:
                taken[model] += turns(both, model, options.rounds, options.steps)
            for roller in both:
                roller.process.kill()
                roller.process.wait()
    rows: dict[str, dict[str, float]] = {}
    for model, found in taken.items():
        with_it, without = zip(*found, strict=True)
        rows[model] = {
            "watching_us": min(with_it),
            "not_watching_us": min(without),
            "more_by_median": median(a / b for a, b in found) - 1.0,
            "more_by_least": min(with_it) / min(without) - 1.0,
        }
    table = Table("model", "watching [µs]", "not [µs]", "more (median)", "more (least)")
    for model, row in rows.items():
        times = [f"{row[key]:.2f}" for key in ("watching_us", "not_watching_us")]
        more = [f"{100 * row[key]:+.1f} %" for key in ("more_by_median", "more_by_least")]
        table.add_row(model, *times, *more)
    Console().print(table)
    if options.json:
        write_json(options.json, rows)


if __name__ == "__main__":
    main()
