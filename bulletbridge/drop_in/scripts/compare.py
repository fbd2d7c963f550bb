"""A script under our solver and natively, side by side."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bulletbridge.comparison.results import SCHEMA, versions
from bulletbridge.drop_in.scripts.monitor import Seen
from bulletbridge.drop_in.scripts.script import Outcome, Run


@dataclass(frozen=True)
class ScriptRuns:
    """The same script, once or twice.

    Attributes:
        run: What was run, and how.
        ours, native: How each went.
    """

    run: Run
    ours: Outcome
    native: Outcome | None = None

    @property
    def ratio(self) -> float | None:
        """Median time of our step over that of Bullet's."""
        if self.native is None or not self.native.step_us or not self.ours.step_us:
            return None
        return self.ours.step_us / self.native.step_us

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and lists, ready for JSON."""
        runs = {"ours": self.ours, "native": self.native}
        return {
            "schema": SCHEMA,
            "versions": versions(),
            "script": self.run.script.name,
            "arguments": self.run.script.arguments,
            "mode": self.run.mode,
            "time_ratio": self.ratio,
            **{name: None if run is None else asdict(run) for name, run in runs.items()},
        }


def run_apart(run: Run, out: int | None) -> Outcome:
    """Run a script, watched, in a process of its own, where hashes are the same in every run.

    Args:
        run: What to run, and how.
        out: File descriptor where its stdout goes; its stderr is seen too. None: neither is seen.
    """
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as directory:
        result = Path(directory) / "outcome.json"
        options = ["--mode", run.mode, "--outcome", str(result)]
        options += ["--headless"] if run.headless else []
        options += ["--steps", str(run.steps)] if run.steps is not None else []
        options += ["--module"] if run.script.module else []
        command = [sys.executable, "-m", "bulletbridge", "run", *options, run.script.name]
        done = subprocess.run(
            [*command, *run.script.arguments],
            stdout=subprocess.DEVNULL if out is None else out,
            stderr=subprocess.PIPE if out is None else None,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": "0"},
            check=False,
        )
        if not result.exists():
            return died(done)
        return read_outcome(result)


def died(done: "subprocess.CompletedProcess[str]") -> Outcome:
    """What is known of a process that ended before its script did."""
    lines = (done.stderr or "").strip().splitlines()
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return Outcome(128 - done.returncode, f"the process was ended by {name}")
    why = f": {lines[-1]}" if lines else ""
    return Outcome(done.returncode, f"the process ended with exit code {done.returncode}{why}")


def write_outcome(outcome: Outcome, file: Path) -> None:
    """For the process that waits for it."""
    file.write_text(json.dumps(asdict(outcome)), encoding="utf-8")


def read_outcome(file: Path) -> Outcome:
    """What ``write_outcome`` wrote."""
    found = json.loads(file.read_text(encoding="utf-8"))
    return Outcome(**found | {"seen": [Seen(**seen) for seen in found["seen"]]})
