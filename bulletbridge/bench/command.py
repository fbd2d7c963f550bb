"""``bulletbridge bench``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from bulletbridge.command_options import JsonFile

if TYPE_CHECKING:
    from bulletbridge.bench.settings import Task

Several = list[str] | None


def bench(
    task: Annotated[
        Several,
        typer.Option(
            help="time, accuracy, work-precision, growth, singular, standard; repeat for several. "
            "All unless given."
        ),
    ] = None,
    case: Annotated[
        Several,
        typer.Option(
            help="four_bar, two_arms, minitaur; row, ladder, walker; parallelogram, "
            "parallelogram_heavy, parallelogram_two; a01_pendulum and the other standard "
            "problems. All unless given."
        ),
    ] = None,
    peer: Annotated[
        Several, typer.Option(help="bullet, mujoco, drake, pinocchio, exudyn; those installed.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="To see that it works; the figures mean nothing.")
    ] = False,
    cap: Annotated[
        float,
        typer.Option(
            help="Seconds that one run of work-precision or of a standard problem may take."
        ),
    ] = 0.5,
    read_file: Annotated[
        list[Path] | None,
        typer.Option(
            "--read",
            metavar="FILE",
            help="Show results; measure nothing. Repeat to put several together: where two have "
            "the same, the later one counts.",
        ),
    ] = None,
    json_file: JsonFile = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Write DIR/index.md and its plots."),
    ] = None,
) -> None:
    """Measure our solver beside other simulators on the same mechanisms; about twenty minutes."""
    from bulletbridge.bench.cases import ALL
    from bulletbridge.bench.page import read, write
    from bulletbridge.bench.run import Choice, merged, run
    from bulletbridge.bench.settings import PACKAGES, TASKS
    from bulletbridge.console import deliver, progress_bars, require_places

    require_places(json_file, report)
    if read_file:
        results = merged([read(file) for file in read_file])
    else:
        tasks = cast("tuple[Task, ...]", tuple(task or TASKS))
        choice = Choice(tasks, tuple(case or ALL), tuple(peer or PACKAGES), quick, cap)
        with progress_bars() as progress:
            shown = progress.add_task("bench", total=None)

            def say(text: str) -> None:
                progress.update(shown, description=text)
                if not progress.console.is_terminal:
                    print(f"bulletbridge: {text}", file=sys.stderr)

            results = run(choice, say)
    deliver(json_file, results, lambda: _show(results))
    if report is not None:
        path = write(results, report)
        print(f"report: {path}", file=sys.stderr if json_file == "-" else sys.stdout)


def _show(results: dict[str, Any]) -> None:
    """Who is ahead, in the terminal."""
    from rich.table import Table

    from bulletbridge.bench.page import best, number
    from bulletbridge.bench.settings import PACKAGES
    from bulletbridge.bench.summary import standings
    from bulletbridge.comparison.tables import wide_console

    console = wide_console()
    for peer in results["peers"].values():
        console.print(f"{peer['name']}: {peer['version'] if peer['installed'] else peer['reason']}")
    for task, lines in standings(results).items():
        if lines:
            table = Table(task.replace("_", "-"), "ours", "best other", "", "ratio")
            for line in lines:
                name = PACKAGES[line.peer].name if line.peer else ""
                figures = best(line.ours, line.unit), best(line.theirs, line.unit)
                table.add_row(line.measure, *figures, name, number(line.ratio))
            console.print(table)
