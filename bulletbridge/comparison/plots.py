"""Figures of a comparison, as SVG text; matplotlib is loaded when the first one is drawn."""

# matplotlib declares its keyword arguments without types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bulletbridge.comparison.plot import show_as_written
from bulletbridge.comparison.runs import Run
from bulletbridge.comparison.trajectory import Observed, Trace
from bulletbridge.errors import naming_the_extra
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

COLOURS = {
    "projector": "#0b6e4f",
    "native": "#d1495b",
    "native_tuned": "#edae49",
    "multipliers": "#30638e",
    "baumgarte": "#8e5572",
    "proximal": "#59a5d8",
    "elimination": "#7a6f9b",
    "quasi_velocities": "#b08968",
    "charts": "#5c677d",
}
LABELS = {
    "projector": "bulletbridge",
    "native": "Bullet, default",
    "native_tuned": "Bullet, tuned",
    "baumgarte": "Baumgarte",
    "quasi_velocities": "quasi-velocities",
}
MOST_POINTS = 800
MOST_JOINTS = 6
FITTING = {3: 15, 2: 26}
"""Columns of a legend, and letters of the longest name with which they fit."""
FLOOR = 1e-17
"""Zero on a logarithmic axis [m or rad]."""
STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "font.sans-serif": ["DejaVu Sans"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8a8f98",
    "axes.grid": True,
    "grid.color": "#e6e8ec",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.4,
    "svg.fonttype": "none",  # letters instead of their outlines
    "svg.hashsalt": "bulletbridge",
}
"""Of all our figures in SVG."""


def gap_figure(runs: Sequence[Run]) -> str:
    """Gap over time on a logarithmic axis; radians only when no row is in metres.

    Solid lines are all rows as written, dashed ones the kept directions where these differ.
    """
    in_metres = any(np.any(_seen(trace).gap_m > 0) for _, trace in far_enough(runs))

    def draw(axes: "Axes") -> None:
        for run, trace in far_enough(runs):
            seen = _seen(trace)
            full, kept = (
                (seen.gap_m, seen.gap_kept) if in_metres else (seen.gap_rad, seen.gap_kept_rad)
            )
            t, y = _thinned(trace.t, np.maximum(full, FLOOR))
            axes.semilogy(t, y, color=_colour(run), label=_label(run))
            if full.max() > 10.0 * kept.max() and full.max() > 1e-9:
                t, y = _thinned(trace.t, np.maximum(kept, FLOOR))
                axes.semilogy(t, y, "--", color=_colour(run))
        axes.set_ylabel(f"gap [{'m' if in_metres else 'rad'}]")

    return svg_figure(draw)


def energy_figure(runs: Sequence[Run]) -> str:
    """Change of total energy over time."""

    def draw(axes: "Axes") -> None:
        curves = list[tuple[Run, "Line2D"]]()
        for run, trace in far_enough(runs):
            total = _seen(trace).kinetic + _seen(trace).potential
            t, y = _thinned(trace.t, total - total[0])
            (line,) = axes.plot(t, y, color=_colour(run), label=_label(run))
            curves.append((run, line))
        axes.set_ylabel("change of energy [J]")
        _leave_out_failed(axes, curves)

    return svg_figure(draw)


def joints_figure(runs: Sequence[Run], mechanism: Mechanism, actuated: Sequence[str]) -> str:
    """Positions of a few joints over time, actuated ones first.

    Solid lines are the first solver's, dashed the second's, dotted the third's.
    """
    shown = coordinates(mechanism, actuated)[:MOST_JOINTS]

    def draw(axes: "Axes") -> None:
        tones, curves = _tones(len(shown)), list[tuple[Run, "Line2D"]]()
        for style, (run, trace) in zip(("-", "--", ":"), far_enough(runs), strict=False):
            for tone, (name, values) in zip(tones, shown, strict=True):
                label = name if style == "-" else None
                t, y = _thinned(trace.t, values(trace.q))
                (line,) = axes.plot(t, y, style, color=tone, label=label, linewidth=1.2)
                curves.append((run, line))
        axes.set_ylabel("position [rad or m]")
        _leave_out_failed(axes, curves)

    return svg_figure(draw)


def coordinates(
    mechanism: Mechanism, actuated: Sequence[str]
) -> list[tuple[str, Callable[[Array], Array]]]:
    """What to draw of configurations (n, nq): a name and a function that gives (n,) of them.

    Spherical joints by the angle of their rotation, floating bases by their height.
    """
    found: list[tuple[str, Callable[[Array], Array]]] = []
    for name in sorted(mechanism.joints, key=lambda name: name not in actuated):
        joint = mechanism.joints[name]
        start = joint.q.start
        if joint.kind == "spherical":
            found.append((f"{name}, angle", lambda q, k=start: _angle(q[:, k : k + 4])))
        elif joint.kind == "free":
            found.append((f"{name}, z", lambda q, k=start: q[:, k + 2]))
        elif joint.kind == "beam":
            for k in range(start, joint.q.stop):
                label = f"{name}, mode {k - start + 1}"
                found.append((label, lambda q, k=k: q[:, k]))
        else:
            found.append((name, lambda q, k=start: q[:, k]))
    return found


def _angle(quat: Array) -> Array:
    """Angle (n,) of rotations given as quaternions (n, 4)."""
    return 2.0 * np.arctan2(np.linalg.norm(quat[:, :3], axis=1), np.abs(quat[:, 3]))


def time_figure(runs: Sequence[Run]) -> str:
    """Distribution of the time per step."""

    def draw(axes: "Axes") -> None:
        drawn = [(run, trace) for run, trace in far_enough(runs) if len(trace.step_us)]
        for run, trace in drawn:
            ordered = np.sort(trace.step_us)
            share = 100.0 * np.arange(1, len(ordered) + 1) / len(ordered)
            x, y = _thinned(ordered, share)
            axes.semilogx(x, y, color=_colour(run), label=_label(run))
        axes.set_ylabel("share of steps [%]")
        axes.set_xlabel("time per step, one Python call each [µs]")
        if drawn:
            everything = np.concatenate([trace.step_us for _, trace in drawn])
            low, high = np.percentile(everything, [0.0, 99.5])
            digits = (1, 2, 5) if high < 300.0 * low else (1,)
            ticks = [m * 10.0**k for k in range(-1, 7) for m in digits]
            shown = [tick for tick in ticks if 0.7 * low <= tick <= 1.5 * high]
            axes.set_xlim(0.8 * low, 1.5 * high)
            axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
            axes.minorticks_off()

    return svg_figure(draw, "")


def svg_figure(draw: "Callable[[Axes], None]", xlabel: str = "time [s]") -> str:
    """One figure as SVG text: equal figures give equal bytes, and words stand in it as words."""

    def fill(figure: "Figure") -> None:
        axes = figure.add_subplot()
        draw(axes)
        if xlabel:
            axes.set_xlabel(xlabel)
        show_plain_logs(axes)
        handles, labels = axes.get_legend_handles_labels()
        if handles:
            longest = max(map(len, labels))
            columns = next((n for n, most in FITTING.items() if longest <= most), 1)
            at = figure.legend(
                handles, labels, loc="outside upper left", ncols=columns, frameon=False
            )
            show_as_written(at)

    return svg_text(fill, (5.4, 3.1), "reports")


def svg_text(fill: "Callable[[Figure], None]", size: tuple[float, float], needing: str) -> str:
    """A figure of some size [inch] as SVG text, once it is filled: equal ones give equal bytes.

    Raises:
        MissingExtraError: matplotlib, which the word says what needs, is not installed.
    """
    with naming_the_extra(f"{needing} need matplotlib", "matplotlib"):
        from matplotlib import rc_context
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        fill(figure)
        text = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(text, format="svg", metadata=nothing)
    return text.getvalue()


def show_plain_logs(axes: "Axes") -> None:
    """Write powers of ten as words in one piece.

    The digits of a formula would be placed one by one, in one font.
    """
    from matplotlib.ticker import LogFormatter, LogFormatterMathtext

    for axis in (axes.xaxis, axes.yaxis):
        if isinstance(axis.get_major_formatter(), LogFormatterMathtext):
            axis.set_major_formatter(LogFormatter())
            axis.set_minor_formatter(LogFormatter())


def far_enough(runs: Sequence[Run]) -> list[tuple[Run, Trace]]:
    """The runs that have something to show, with their trajectories."""
    return [(run, run.trace) for run in runs if run.trace is not None and len(run.trace.t) > 1]


def _leave_out_failed(axes: "Axes", curves: "Sequence[tuple[Run, Line2D]]") -> None:
    """Scale by the runs that did not fail, where there are both, and end the others at the edge."""
    failed = [line for run, line in curves if run.result.status == "failed"]
    sound = [np.asarray(line.get_ydata()) for _, line in curves if line not in failed]
    if not (failed and sound):
        return
    low, high = min(y.min() for y in sound), max(y.max() for y in sound)
    room = 0.06 * (high - low) or 1.0
    low, high = low - room, high + room
    axes.set_ylim(low, high)
    for line in failed:
        t, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        outside = np.flatnonzero((y < low) | (y > high))
        end = outside[0] + 1 if len(outside) else len(y)
        line.set_data(t[:end], y[:end])


def _seen(trace: Trace) -> Observed:
    assert trace.evaluated is not None
    return trace.evaluated


def _thinned(x: Array, y: Array) -> tuple[Array, Array]:
    """Few enough points to draw, keeping the largest and the smallest of each bin."""
    if len(x) <= 2 * MOST_POINTS:
        return x, y
    edges = np.linspace(0, len(x), MOST_POINTS + 1).astype(int)
    kept: list[int] = []
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        part = y[start:stop]
        kept += sorted({start + int(np.argmin(part)), start + int(np.argmax(part))})
    return x[kept], y[kept]


def _colour(run: Run) -> str:
    return COLOURS.get(run.result.solver, "#30638e")


def _label(run: Run) -> str:
    return LABELS.get(run.result.solver, run.result.solver)


def _tones(count: int) -> list[str]:
    palette = ["#1f3a5f", "#4f7cac", "#9b5de5", "#b08968", "#5c677d", "#00a6a6"]
    return [palette[k % len(palette)] for k in range(count)]
