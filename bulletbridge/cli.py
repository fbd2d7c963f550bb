"""The command line: the commands that ``bulletbridge --help`` lists.

Exit codes: 0 done, 1 a simulation failed (said why), 2 wrong usage or input.
"""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO, cast

import typer

import bulletbridge
from bulletbridge.bench.command import bench
from bulletbridge.bullet.silence import silenced_bullet
from bulletbridge.command_options import FixedBase, JsonFile, ReadingOptions, grouped
from bulletbridge.console import deliver, number, progress_bars, require_places, tell_notes
from bulletbridge.errors import (
    BulletBridgeError,
    BulletBridgeWarning,
    LoopFileError,
    MissingExtraError,
    ModelError,
)
from bulletbridge.models.flexible.commands import flexible, inertia
from bulletbridge.papers.command import paper
from bulletbridge.studies.command import sweep
from bulletbridge.system.options import INTEGRATORS, Integrator

if TYPE_CHECKING:
    from bulletbridge.comparison.options import CompareOptions

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130
app = typer.Typer(
    help="Exact closed loops for URDF robots in PyBullet.",
    add_completion=False,
    rich_markup_mode=None,  # brackets are units, and shown
    pretty_exceptions_enable=False,
)


class ModeName(str, Enum):
    """Who advances bodies that constraints join."""

    filter = "filter"
    exact = "exact"
    native = "native"


Dt = Annotated[float, typer.Option("--dt", parser=number, help="Step [s].", show_default="1/240")]
Duration = Annotated[float, typer.Option("--duration", help="Simulated time [s].")]
Model = Annotated[str, typer.Argument(help="Bundled name or path of a robot's file.")]


def _version(wanted: bool) -> None:
    if wanted:
        print(bulletbridge.__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Exact closed loops for URDF robots in PyBullet."""


@dataclass(frozen=True)
class RunOptions:
    """How ``compare`` runs models."""

    dt: Dt = 1 / 240
    duration: Duration = 10.0
    integrator: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(INTEGRATORS),
            help="Of our solver, verlet unless springs are too stiff for it; Bullet's is fixed.",
        ),
    ] = None
    rtol: Annotated[float, typer.Option(help="Tolerance of dop853 and radau.")] = 1e-10
    solver: Annotated[
        list[str] | None,
        typer.Option(
            "--solver",
            help="projector, native, native_tuned, another formulation, or all of them; repeat for "
            "several. The first three unless given.",
        ),
    ] = None
    reference: Annotated[
        bool, typer.Option("--reference", help="Measure trajectories against converged DOP853.")
    ] = False
    limits: Annotated[
        bool, typer.Option("--limits/--no-limits", help="Whether joint limits act, in both.")
    ] = True

    def options(self) -> "CompareOptions":
        """The settings of a comparison."""
        from bulletbridge.comparison.options import EVERYTHING, SOLVERS, CompareOptions

        names = tuple(dict.fromkeys(self.solver or SOLVERS))
        return CompareOptions(
            self.dt,
            self.duration,
            cast("Integrator | None", self.integrator),
            self.rtol,
            EVERYTHING if "all" in names else names,
            self.reference,
            self.limits,
        )


@dataclass(frozen=True)
class OutputOptions:
    """What ``compare`` shows and writes."""

    json_file: JsonFile = None
    report: Annotated[
        Path | None, typer.Option("--report", metavar="DIR", help="Write DIR/index.html.")
    ] = None
    video: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a film of ours beside Bullet's, .gif, or .mp4 with the extra video.",
        ),
    ] = None
    gui: Annotated[
        bool, typer.Option("--gui", help="Show both solvers in Bullet's window, in real time.")
    ] = False


@app.command(short_help="Our solver beside Bullet's own, in figures.")
@grouped
def compare(
    models: Annotated[list[str], typer.Argument(help="Bundled names or paths of robots' files.")],
    how: RunOptions,
    out: OutputOptions,
    reading: ReadingOptions,
) -> None:
    """Run models under our solver and Bullet's own, and compare gaps, energy and time."""
    from bulletbridge.comparison.compare import ModelRuns, compare_model, worst
    from bulletbridge.comparison.results import Comparison
    from bulletbridge.comparison.tables import print_results, wide_console
    from bulletbridge.models.formats.recognise import read_model

    options, json_file = how.options(), out.json_file
    specs = [read_model(model, **reading.given) for model in models]
    for spec in specs:
        tell_notes(spec.path, spec.notes)
    require_places(json_file, out.report)
    if out.video is not None:
        from bulletbridge.viewer.film import require_film

        require_film(out.video)
        if len(specs) > 1:
            raise ModelError("a film shows one model; give one, or leave --video out")
    if out.gui:
        from bulletbridge.comparison.playback import view

        for spec in specs:
            view(spec, options)
    runs: list[ModelRuns] = []
    page: Path | None = None
    with progress_bars() as progress:
        for spec in specs:
            task = progress.add_task(spec.name, total=options.steps * len(options.solvers))
            runs.append(compare_model(spec, options, lambda n, k=task: progress.advance(k, n)))
            progress.update(task, visible=False)
        comparison = Comparison(tuple(run.result for model in runs for run in model.runs))
        if out.report is not None:
            from bulletbridge.comparison.report import write_report

            progress.add_task("report", total=None)
            page = write_report(runs, comparison, options, out.report, reading.words)
        if out.video is not None:
            from bulletbridge.comparison.compare import film_of

            progress.add_task("video", total=None)
            film_of(runs[0], out.video)
    deliver(json_file, comparison.to_dict(), lambda: print_results(comparison.runs, wide_console()))
    for what, path in (("report", page), ("video", out.video)):
        if path is not None:
            print(f"{what}: {path}", file=sys.stderr if json_file == "-" else sys.stdout)
    raise typer.Exit(worst(runs))


@dataclass(frozen=True)
class ScriptOptions:
    """How ``run`` runs a script."""

    mode: Annotated[ModeName, typer.Option(help="Who advances bodies that constraints join.")] = (
        ModeName.filter
    )
    headless: Annotated[
        bool,
        typer.Option(
            "--headless",
            help="No window: sliders stay at their start, no key is pressed, waiting is skipped, "
            "the clock is virtual (50 µs a PyBullet call), real-time simulation goes by it, and "
            "chance is the same in every run.",
        ),
    ] = False
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="End the script after so many steps of all clients together. A sleep without "
            "a step counts as one, and so do 1000 calls of PyBullet, but no script is ended for "
            "less than 100 of these.",
        ),
    ] = None
    module: Annotated[
        bool, typer.Option("--module", "-m", help="SCRIPT is the name of a module.")
    ] = False


@app.command(
    "run",
    short_help="Run a PyBullet script on our solver.",
    context_settings={"allow_interspersed_args": False},
)
@grouped
def run_a_script(
    script: Annotated[str, typer.Argument(help="A Python file, unmodified.")],
    how: ScriptOptions,
    arguments: Annotated[list[str] | None, typer.Argument(help="The script's own.")] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Run it natively too: gaps, forces, times.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Measure the constraints after each step.")
    ] = False,
    save_loops: Annotated[
        Path | None,
        typer.Option(
            "--save-loops",
            metavar="NAME",
            help="Write the constraints that the script makes, and its robots, to a loops file.",
        ),
    ] = None,
    json_file: JsonFile = None,
    outcome: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> Callable[[], int]:
    """Run an unmodified PyBullet script on our solver, as python would; with its exit code."""
    from bulletbridge.drop_in.scripts.command import run_alone, run_beside_bullet, run_for_another
    from bulletbridge.drop_in.scripts.script import Run, Script

    require_places(json_file, None)
    started = Script(script, tuple(arguments or ()), how.module)
    run = Run(started, how.mode.value, how.steps, how.headless)
    if outcome is not None:
        return lambda: run_for_another(run, outcome)
    if save_loops is not None:
        if compare:
            raise ModelError("--compare runs the script twice; save its loops in a run without it")
        require_places(str(save_loops), None)
    if compare:
        return lambda: run_beside_bullet(run, json_file, deliver)
    watched = watch or json_file is not None
    return lambda: run_alone(run, json_file, deliver if watched else None, save_loops)


@app.command(short_help="Describe a model: loops, rank, mobility.")
@grouped
def inspect(
    model: Model,
    reading: ReadingOptions,
    json_file: JsonFile = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Again whenever a file of the robot is saved.")
    ] = False,
) -> int:
    """Describe a model: loops, rows, rank, mobility, redundancy, and what Bullet makes of it."""
    from bulletbridge.comparison.inspection import inspect_model
    from bulletbridge.comparison.tables import print_inspection, wide_console
    from bulletbridge.comparison.watching import show_again
    from bulletbridge.models.bundled import find
    from bulletbridge.models.formats.recognise import read_model

    def show() -> None:
        found = inspect_model(read_model(model, **reading.given))
        deliver(json_file, found.to_dict(), lambda: print_inspection(found, wide_console()))

    if watch and json_file is not None:
        raise ModelError("--watch shows a model again and again; leave --json out")
    if watch:
        return show_again(find(model), show)
    show()
    return 0


@app.command("view", short_help="A model in the browser, with sliders.")
@grouped
def view_in_browser(
    model: Model,
    reading: ReadingOptions,
    duration: Annotated[
        float, typer.Option("--duration", help="Of the run on the time line [s]; 0 for none.")
    ] = 4.0,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Of the page on this machine.")
    ] = 8080,
) -> None:
    """Show a model in a browser: drag joints, loops stay closed; forces, a time line."""
    from bulletbridge.models.formats.recognise import read_model
    from bulletbridge.viewer.view import view_model

    spec = read_model(model, **reading.given)
    tell_notes(spec.path, spec.notes)
    view_model(spec, duration, port)


@app.command(short_help="List the bundled models.")
def models() -> None:
    """List the bundled models, what each is, and the folder they are in."""
    from bulletbridge.models.bundled import about, bundled, examples, models_folder

    found = sorted((bundled() | examples()).items())
    width = max(len(name) for name, _ in found)
    for name, path in found:
        print(f"{name:{width}}  {about(path)}")
    print(f"\nin {models_folder()}, which bulletbridge.models_folder() gives")


@app.command(short_help="Write a model in another format.")
@grouped
def convert(
    model: Model,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="NAME", help="Of what is written; no ending.")
    ],
    reading: ReadingOptions,
    to: Annotated[
        str,
        typer.Option(
            help="loops: a loops file and its URDF; loop_joint: a URDF with its loops in it; "
            "mjcf; sdf."
        ),
    ] = "loops",
) -> None:
    """Write a model as URDF and loops file, or in another format, and say what was lost."""
    from bulletbridge.models.formats.convert import convert as write

    done = write(model, output, to, **reading.given)
    for note in done.notes:
        print(f"note: {note}")
    for file in done.files:
        print(file)


@app.command(short_help="What is installed, and what is missing.")
def doctor(
    window: Annotated[
        bool, typer.Option("--window", help="Open Bullet's window for a moment, to try OpenGL.")
    ] = False,
    json_file: JsonFile = None,
) -> None:
    """Tell versions, processor, compiled kernels, display, and what is missing for what."""
    from bulletbridge.doctor import examine, lines_of

    require_places(json_file, None)
    report = examine(window)
    deliver(json_file, report.to_dict(), lambda: print("\n".join(lines_of(report))))


for command, said in (
    (inertia, "Compute missing inertias of a URDF."),
    (flexible, "Make a link of a URDF bend."),
    (bench, "Measure beside other simulators."),
    (sweep, "Run a model for many parameters."),
    (paper, "Examples of the papers, beside their numbers."),
):
    app.command(short_help=said)(command)


@app.command(short_help="Watch a model under both solvers.")
def demo(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A demo, a bundled model, or the path of a robot's file; a list of "
            "the demos unless given."
        ),
    ] = None,
    dt: Dt = 1 / 240,
    duration: Duration = 10.0,
    fixed_base: FixedBase = None,
) -> Callable[[], int] | None:
    """Show a model in Bullet's window under both solvers; without a display, print the numbers.

    Demos without a model of their own, such as lift, have steps and duration of their own.
    """
    from bulletbridge.bullet.worlds import has_display
    from bulletbridge.models.demos import about_demo, find_demo, run_demo, scripts

    if name is None:
        width = max(len(known) for known in scripts())
        for known, path in scripts().items():
            print(f"{known:{width}}  {about_demo(path)}")
        return None
    script = find_demo(name)
    gui = has_display()
    if not gui:
        print("no display: the numbers only", file=sys.stderr)
    if script is not None:
        return lambda: run_demo(script, gui)
    compare(models=[name], dt=dt, duration=duration, gui=gui, fixed_base=fixed_base)
    return None


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    try:
        with silenced_bullet(), warnings.catch_warnings():
            warnings.simplefilter("once", BulletBridgeWarning)
            warnings.showwarning = _warn
            given = sys.argv[1:] if arguments is None else arguments
            done: Callable[[], int] | int | None = app(
                given or ["--help"], prog_name="bulletbridge", standalone_mode=False
            )
        # a script prints, warns and calls C code as under python
        if callable(done):
            return done()
        # after Control-C typer answers so, or raises, by its release
        return _complain("interrupted", INTERRUPTED) if done == INTERRUPTED else int(done or 0)
    except typer.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", INTERRUPTED)
    except (LoopFileError, ModelError, MissingExtraError) as error:
        return _complain(str(error), WRONG_INPUT)
    except BulletBridgeError as error:
        return _complain(str(error), FAILED)
    except Exception as error:
        # wrong usage; the class behind it is another one with each release of typer
        describe: Callable[[], str] | None = getattr(error, "format_message", None)
        if describe is None:
            raise
        said = describe().replace("Value error, ", "").rstrip(".")
        of = getattr(getattr(error, "ctx", None), "command_path", "bulletbridge")
        return _complain(f"{said}{'' if said.endswith('?') else ';'} see {of} --help", WRONG_INPUT)


def _complain(message: str, code: int) -> int:
    """One line on stderr."""
    if message:
        print(f"bulletbridge: {' '.join(message.split())}", file=sys.stderr)
    return code


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """One line on stderr for our own warnings."""
    if issubclass(category, BulletBridgeWarning):
        print(f"bulletbridge: warning: {' '.join(str(message).split())}", file=sys.stderr)
    else:
        text = warnings.formatwarning(message, category, filename, lineno, line)
        (file or sys.stderr).write(text)


def main() -> None:
    """Entry point."""
    sys.exit(run())
