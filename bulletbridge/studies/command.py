"""``bulletbridge sweep``."""

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from bulletbridge.command_options import ReadingOptions, grouped
from bulletbridge.console import number
from bulletbridge.errors import ModelError
from bulletbridge.system.options import Integrator

if TYPE_CHECKING:
    from bulletbridge.studies.journal import Results

MOST_TOLD = 5
"""Reasons why runs failed that are told."""


@dataclass(frozen=True)
class PointOptions:
    """Which combinations of the values are run."""

    grid: Annotated[
        bool, typer.Option("--grid", help="Every combination of values; the default.")
    ] = False
    random: Annotated[
        int | None,
        typer.Option("--random", metavar="N", min=1, help="N runs, spread as a Latin hypercube."),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Of --random.")] = 0

    def points(self, settings: list[str]) -> "list[dict[str, float]]":
        """Values by parameter of each run.

        Raises:
            ModelError: Settings exclude each other or cannot be read.
        """
        from bulletbridge.studies.study import grid, grid_values, read_setting, sample

        if self.grid and self.random is not None:
            raise ModelError("--grid and --random exclude each other; leave one out")
        spreads = dict(map(read_setting, settings))
        if len(spreads) < len(settings):
            raise ModelError("a parameter is set twice; give all its values in one --set")
        if self.random is not None:
            return sample(spreads, self.random, self.seed)
        return grid({name: grid_values(name, spread) for name, spread in spreads.items()})


@dataclass(frozen=True)
class RunOptions:
    """What is run and measured."""

    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="gap, energy_drift, force.LOOP, torque.LOOP (largest over the run), final.JOINT, "
            "min.JOINT, max.JOINT, speed.JOINT; repeat for several. Those without a joint unless "
            "given.",
        ),
    ] = None
    duration: Annotated[float, typer.Option(help="Simulated time [s].")] = 1.0
    dt: Annotated[
        float, typer.Option("--dt", parser=number, help="Step [s].", show_default="1/240")
    ] = 1 / 240
    every: Annotated[int, typer.Option(min=1, help="Steps from one look to the next.")] = 1
    integrator: Annotated[str | None, typer.Option(help="As in compare.")] = None


@dataclass(frozen=True)
class ProcessOptions:
    """Where runs are done."""

    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as cores unless given.")
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask scheduler whose workers do the runs."),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on with results that are there.")] = (
        False
    )


@grouped
def sweep(
    model: Annotated[str, typer.Argument(help="Bundled name or path of a robot's file.")],
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=VALUES",
            help="LINK.mass, JOINT.armature, .damping, .stiffness, .torque, .friction, .origin.x, "
            "ELEMENT.FIELD of a spring, LOOP.a.x to .b.z, ROD.length, COUPLING.offset, "
            "start.JOINT, rate.JOINT, gravity.x, .y, .z, or dt; values as LOW:HIGH:COUNT, "
            "VALUE,VALUE,..., or LOW:HIGH with --random; :log after them for equal factors. "
            "Repeat for several.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Results, *.parquet.")],
    values: PointOptions,
    how: RunOptions,
    processes: ProcessOptions,
    reading: ReadingOptions,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the results: png, svg or pdf.")
    ] = None,
) -> None:
    """Run a model for many parameters over processes or a cluster, and keep what is measured."""
    from bulletbridge.console import progress_bars, tell_notes
    from bulletbridge.models.formats.recognise import read_model
    from bulletbridge.models.urdf_file import is_file
    from bulletbridge.studies import run
    from bulletbridge.studies.figures import plot_study, require_figure
    from bulletbridge.studies.measures import ModelRun
    from bulletbridge.system.options import INTEGRATORS
    from bulletbridge.system.parameters import require_known

    if how.integrator is not None:
        require_known("integrator", how.integrator, list(INTEGRATORS))
    if plot is not None:
        require_figure(plot)
    points = values.points(settings)
    path = str(Path(model).absolute()) if is_file(Path(model)) else model
    function = ModelRun(
        path,
        how.duration,
        tuple(how.measure or ()),
        how.dt,
        how.every,
        cast(Integrator | None, how.integrator),
        reading.given,
    )
    read = read_model(path, **reading.given)
    tell_notes(read.path, read.notes)
    function.check(points[0])
    with progress_bars() as progress:
        task = progress.add_task(model, total=len(points))

        def show(done: int, failed: int, everything: int) -> None:
            text = f"{done}/{everything}" + (f", {failed} failed" if failed else "")
            progress.update(task, completed=done, description=f"{model} {text}")

        try:
            results = run.sweep(function, points, output, progress=show, **vars(processes))
        except KeyboardInterrupt:
            said = "runs that are done are kept; the same command with --resume goes on"
            print(f"bulletbridge: {said}", file=sys.stderr)
            raise
    failed = [n for n, error in enumerate(results.errors) if error]
    print(f"{len(results.runs)} runs, {len(failed)} failed: {output}")
    if plot is not None and len(failed) < len(results.runs):
        plot_study(results).savefig(plot)
        print(f"plot: {plot}")
    if failed:
        print(_told(results))
        raise typer.Exit(1)


def _told(results: "Results") -> str:
    """Why runs failed, the most frequent reason first, each with one run's parameters."""
    kinds = Counter(error for error in results.errors if error)
    lines: list[str] = []
    for error, times in kinds.most_common(MOST_TOLD):
        first = results.errors.index(error)
        at = ", ".join(f"{name}={results.columns[name][first]:g}" for name in results.names)
        lines.append(f"{times} failed, as the one at {at}: {error}")
    if len(kinds) > MOST_TOLD:
        lines.append(f"and {len(kinds) - MOST_TOLD} other failures, in the column 'error'")
    return "\n".join(lines)
