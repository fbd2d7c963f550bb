"""The command ``bulletbridge run``."""

import contextlib
import os
import sys
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

from bulletbridge.comparison.tables import wide_console
from bulletbridge.drop_in.scripts.compare import ScriptRuns, run_apart, write_outcome
from bulletbridge.drop_in.scripts.save_loops import LoopsSaver
from bulletbridge.drop_in.scripts.script import Outcome, Run, run_script
from bulletbridge.drop_in.scripts.table import print_runs
from bulletbridge.errors import BulletBridgeError

Deliver = Callable[[str | None, Mapping[str, object], Callable[[], None]], None]
"""Writes JSON where it was asked for, and shows a table."""


def run_beside_bullet(run: Run, json_file: str | None, deliver: Deliver) -> int:
    """Run a script on our solver and natively, report both; the exit code of the first.

    Args:
        run: What to run, and how.
        json_file: Where JSON goes; with ``-`` what the script prints goes to stderr.
        deliver: Reports.

    Raises:
        ModelError: There is no such script.
    """
    run.script.require()
    ours = run_apart(run, out=2 if json_file == "-" else 1)
    native = run_apart(run.natively(), out=None)
    runs = ScriptRuns(run, ours, native)
    deliver(json_file, runs.to_dict(), lambda: print_runs(runs, wide_console()))
    return ours.code


def run_alone(
    run: Run, json_file: str | None, deliver: Deliver | None, save_loops: Path | None = None
) -> int:
    """Run a script on our solver in this process, report what is asked for; its exit code.

    Args:
        run: What to run, and how.
        json_file: Where JSON goes; with ``-`` what the script prints goes to stderr.
        deliver: Reports; None when nobody looks at the constraints.
        save_loops: Loops file that the constraints go to; None for none.

    Raises:
        ModelError: There is no such script.
    """
    saver = None if save_loops is None else LoopsSaver(save_loops)
    with contextlib.ExitStack() as aside:
        if json_file == "-":
            aside.enter_context(stdout_on_stderr())

        def report(outcome: Outcome) -> None:
            aside.close()
            if deliver is not None:
                runs = ScriptRuns(run, outcome)
                deliver(json_file, runs.to_dict(), lambda: print_runs(runs, wide_console()))
            if saver is not None:
                write_saved(saver)

        return run_script(run, deliver is not None, report, saver)


def write_saved(saver: LoopsSaver) -> None:
    """Write the constraints of a program that has ended, and say so on stderr."""
    try:
        said = f"loops: {saver.write()}"
    except BulletBridgeError as error:
        said = f"bulletbridge: {error}"
    print(said, file=sys.stderr)


def run_for_another(run: Run, file: Path) -> int:
    """Run a script for a process that waits for the outcome in a file."""
    return run_script(run, watched=True, deliver=lambda outcome: write_outcome(outcome, file))


@contextlib.contextmanager
def stdout_on_stderr() -> Generator[None, None, None]:
    """What is printed on stdout, by C code and child processes too, goes to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
