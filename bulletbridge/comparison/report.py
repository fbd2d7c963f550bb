"""A comparison as one self-contained HTML page."""

import base64
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from bulletbridge.comparison.compare import ModelRuns, film_of
from bulletbridge.comparison.describe import LoopReport
from bulletbridge.comparison.options import CompareOptions
from bulletbridge.comparison.plots import (
    COLOURS,
    LABELS,
    energy_figure,
    gap_figure,
    joints_figure,
    time_figure,
)
from bulletbridge.comparison.results import Comparison, Result
from bulletbridge.errors import ModelError, naming_the_extra
from bulletbridge.models.bundled import bundled, examples
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array
from bulletbridge.system.options import CONTROLLED
from bulletbridge.viewer.pictures import photograph

PICTURES = 4
"""Times at which a mechanism is shown."""
MOVING, RATE = 2.5, 12.5
"""Seconds of the moving picture, and its pictures a second: half a megabyte."""


@dataclass(frozen=True)
class Shot:
    """One picture as a data URI with its caption."""

    image: str
    time: str
    gap: str


@dataclass(frozen=True)
class Section:
    """One model on the page."""

    name: str
    path: str
    facts: str
    results: tuple[Result, ...]
    loops: tuple[LoopReport, ...]
    figures: tuple[tuple[str, str], ...]  # caption, data URI
    rows: tuple[tuple[str, tuple[Shot, ...]], ...]  # solver, its pictures
    animation: str  # data URI; empty where nothing came far enough
    notes: tuple[str, ...]


def write_report(
    runs: Sequence[ModelRuns],
    comparison: Comparison,
    options: CompareOptions,
    directory: Path,
    reading: Sequence[str] = (),
) -> Path:
    """Write ``index.html`` with everything in it; nothing is loaded from elsewhere.

    ``reading`` are words of the command that say how the models' files are read.

    Raises:
        MissingExtraError: matplotlib or jinja2 is not installed.
        ModelError: The directory cannot be written.
    """
    with naming_the_extra("reports need jinja2", "jinja2"):
        from jinja2 import Environment, StrictUndefined
    source = files("bulletbridge.comparison") / "templates" / "report.html.j2"
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = number
    page = environment.from_string(source.read_text(encoding="utf-8")).render(
        sections=[section(model) for model in runs],
        settings=settings(runs),
        comparison=comparison,
        command=command_of([model.spec for model in runs], options, reading),
        options=options,
        labels=LABELS,
        colours=COLOURS,
    )
    path = directory / "index.html"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ModelError(f"cannot write the report to '{path}': {error}") from None
    return path


def command_of(specs: Sequence[ModelSpec], options: CompareOptions, reading: Sequence[str]) -> str:
    """The command that makes the same runs again."""
    known = bundled() | examples()
    models = [spec.name if known.get(spec.name) == spec.path else str(spec.path) for spec in specs]
    words = ["bulletbridge", "compare", *models, "--dt", repr(options.dt)]
    words += ["--duration", f"{options.duration:g}"]
    if options.integrator is not None:
        words += ["--integrator", options.integrator]
    words += [word for name in options.solvers for word in ("--solver", name)]
    words += ["--reference"] if options.reference else []
    words += [] if options.limits else ["--no-limits"]
    words += ["--rtol", f"{options.rtol:g}"] if options.integrator in CONTROLLED else []
    words += reading
    return shlex.join(words)


def section(model: ModelRuns) -> Section:
    """What the page shows of one model."""
    spec, mechanism = model.spec, model.mechanism
    results = tuple(run.result for run in model.runs)
    facts, figures, rows, animation = "", [], [], ""
    if mechanism is not None:
        facts = (
            f"{plural(len(mechanism.joints), 'joint')} with {plural(mechanism.nv, 'rate')}, "
            f"{plural(len(model.loops), 'constraint')} with "
            f"{plural(sum(loop.rows for loop in model.loops), 'row')}, {model.rank} independent: "
            f"{plural(model.dof, 'degree')} of freedom"
        )
        figures = [
            (gap_caption(model), gap_figure(model.runs)),
            (energy_caption(model), energy_figure(model.runs)),
            (positions_caption(model), joints_figure(model.runs, mechanism, spec.actuated)),
            ("Time per step", time_figure(model.runs)),
        ]
        rows = picture_rows(model)
        animation = moving_picture(model) if rows else ""
    notes = tuple(dict.fromkeys(f"{note}." for result in results for note in result.notes))
    return Section(
        spec.name,
        spec.path.name,
        facts,
        results,
        model.loops,
        tuple((caption, uri(svg.encode(), "image/svg+xml")) for caption, svg in figures),
        tuple(rows),
        animation,
        notes,
    )


def picture_rows(model: ModelRuns) -> list[tuple[str, tuple[Shot, ...]]]:
    """Pictures of the first run and of Bullet's at the same times, one camera for both."""
    found: list[tuple[str, tuple[Shot, ...]]] = []
    framing: list[Array] = []
    for run, trace in model.side_by_side:
        assert trace.evaluated is not None
        seen, columns = trace.evaluated, _columns(len(trace.t), PICTURES)
        framing = framing or [*trace.q[_columns(len(trace.t), 3 * PICTURES)]]
        pictures = photograph(model.spec, [trace.q[k] for k in columns], framing)
        gaps = (
            (seen.gap_m, "m")
            if any(loop.type != "coupling" for loop in model.loops)
            else (seen.gap_rad, "rad")
        )
        shots = [
            Shot(
                uri(picture, "image/png"),
                f"{trace.t[k]:.2f} s",
                f"gap {number(float(gaps[0][k]))} {gaps[1]}",
            )
            for picture, k in zip(pictures, columns, strict=True)
        ]
        found.append((run.result.solver, tuple(shots)))
    return found


def moving_picture(model: ModelRuns) -> str:
    """The start of Bullet's run beside ours, gaps drawn, as a data URI."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "moving.gif"
        film_of(model, path, MOVING, RATE)
        return uri(path.read_bytes(), "image/gif")


def _columns(length: int, count: int) -> list[int]:
    return sorted({int(k) for k in np.linspace(0, length - 1, count)})


def gap_caption(model: ModelRuns) -> str:
    """Says what is drawn of the gap."""
    dropped = any(loop.mismatch_m > 1e-9 or loop.mismatch_rad > 1e-9 for loop in model.loops)
    return "Gap over time, all rows as written" + ("; dashed: kept directions" if dropped else "")


def positions_caption(model: ModelRuns) -> str:
    """Says which line style is whose."""
    drawn = [run.result.solver for run in model.runs if run.trace is not None]
    styles = zip(("solid", "dashed", "dotted"), drawn, strict=False)
    return "Joint positions: " + "; ".join(f"{style} {LABELS.get(n, n)}" for style, n in styles)


def energy_caption(model: ModelRuns) -> str:
    """Says what of the runs is not drawn."""
    failed = [run for run in model.runs if run.trace is not None and run.result.status == "failed"]
    return "Change of total energy" + ("; failed runs leave the picture" if failed else "")


def settings(runs: Sequence[ModelRuns]) -> list[tuple[Result, str]]:
    """Results that differ in how they were got, and the models of each unless these are all."""
    found, solvers = dict[tuple[str, str, str], list[Result]](), list[str]()
    for result in (run.result for model in runs for run in model.runs):
        solvers.append(result.solver)
        key = result.solver, result.integrator, result.settings
        found.setdefault(key, []).append(result)
    return [
        (alike[0], "" if len(alike) == len(runs) else ", ".join(r.model for r in alike))
        for _, alike in sorted(found.items(), key=lambda pair: solvers.index(pair[0][0]))
    ]


def plural(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def uri(content: bytes, kind: str) -> str:
    """A data URI."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def number(value: float | None) -> str:
    """A number for reading: three digits, or powers of ten with two; a dash for None."""
    if value is None:
        return "–"
    if value == 0.0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1e3 else f"{value:.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}·10{raised}"
