"""A script under our solver and natively, side by side."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bulletbridge.surface.drop_in.hooks import Mode
from bulletbridge.surface.run.script import Outcome, Script
from bulletbridge.surface.run.watch import Seen
from bulletbridge.surface.terminal import number


@dataclass(frozen=True)
class ScriptRuns:
    """The same script twice.

    Attributes:
        script: What was run.
        mode: Of our run.
        ours, native: How each went.
    """

    script: Script
    mode: Mode
    ours: Outcome
    native: Outcome | None = None

    @property
    def ratio(self) -> float | None:
        """Time of our step over that of Bullet's."""
        if self.native is None or not self.native.step_us or not self.ours.step_us:
            return None
        return self.ours.step_us / self.native.step_us

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        runs = {"ours": self.ours, "native": self.native}
        return {
            "schema": 1,
            "script": self.script.name,
            "mode": self.mode,
            "time_ratio": self.ratio,
            **{name: None if run is None else asdict(run) for name, run in runs.items()},
        }


def run_natively(script: Script, steps: int | None, without_window: bool) -> Outcome:
    """Run a script on Bullet alone, watched, in a process of its own; its output is discarded."""
    with tempfile.TemporaryDirectory() as directory:
        result = Path(directory) / "native.json"
        options = ["--mode", "native", "--watch", "--json", str(result)]
        options += ["--headless"] if without_window else []
        options += ["--steps", str(steps)] if steps is not None else []
        options += ["--module"] if script.module else []
        command = [sys.executable, "-m", "bulletbridge", "run", *options, script.name]
        done = subprocess.run(
            [*command, *script.arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": "0"},
            check=False,
        )
        if not result.exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return Outcome(done.returncode, f"the process ended: {last}")
        found = json.loads(result.read_text())["ours"]
    return Outcome(**found | {"seen": [Seen(**seen) for seen in found["seen"]]})


def print_runs(runs: ScriptRuns, console: Console) -> None:
    """One line for each constraint, times and failures below."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for heading in ("constraint", "between", "closed by"):
        table.add_column(heading, overflow="fold")
    native = {} if runs.native is None else {(s.client, s.number): s for s in runs.native.seen}
    headings = ["gap \\[m]", "gap \\[rad]", "rate", "force \\[N]"]
    for heading in headings:
        table.add_column(heading + ("\nnative" if native else ""), justify="right", no_wrap=True)
        if native:
            table.add_column(heading + "\nours", justify="right", no_wrap=True)
    for seen in runs.ours.seen:
        other = native.get((seen.client, seen.number))
        cells: list[str] = []
        for field in ("gap_m", "gap_rad", "rate", "force"):
            if native:
                cells.append(number(None if other is None else getattr(other, field)))
            cells.append(number(getattr(seen, field)))
        who = "us" if seen.exact else f"Bullet: {seen.reason}" if seen.reason else "Bullet"
        table.add_row(f"{seen.number} {seen.kind}", seen.between, who, *cells)
    if runs.ours.seen:
        console.print(table)
    else:
        console.print("the script created no constraint that lasted a step")
    line = f"{runs.ours.steps} steps"
    if runs.ours.step_us is not None:
        line += f", {runs.ours.step_us:.3g} µs each"
    if runs.native is not None and runs.native.step_us is not None:
        line += f"; natively {runs.native.steps} of {runs.native.step_us:.3g} µs"
        line += f"; ratio {number(runs.ratio)}"
    console.print(line)
    for name, run in (("ours", runs.ours), ("natively", runs.native)):
        if run is not None and run.error:
            console.print(f"{name} the script failed: {run.error}", markup=False)
