"""A study as a figure."""

# matplotlib declares its keyword arguments without types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.numerics.records import Array
from bulletbridge.studies.journal import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
COLOUR = "#0b6e4f"
NARROWEST = 0.12
"""Share of a parameter's range that its values are apart at least where a map tells each."""


def require_figure(file: Path) -> None:
    """Find out before a long study that its figure cannot be written.

    Raises:
        ModelError: Its format is unknown, or its directory does not exist.
    """
    if file.suffix not in FORMATS or not file.absolute().parent.is_dir():
        raise ModelError(
            f"cannot draw '{file}'; name it *{', *'.join(FORMATS)}, in a directory that exists"
        )


def plot_study(results: Results, measures: Sequence[str] = ()) -> "Figure":
    """Measures over what varies: lines over one parameter, maps over two, dots over each of more.

    Args:
        results: What ``sweep`` or ``read_study`` returned.
        measures: Which; all unless given.

    Raises:
        ModelError: Nothing varies, or nothing was measured.
    """
    from matplotlib.figure import Figure

    varying = [name for name in results.names if len(np.unique(results.columns[name])) > 1]
    shown = tuple(measures) or results.measures
    if not varying or not shown:
        raise ModelError("there is nothing to draw: no parameter varies, or all runs failed")
    columns = len(varying) if len(varying) > 2 else 1
    figure = Figure(figsize=(5.4 * columns, 2.9 * len(shown)), layout="constrained")
    grid = figure.subplots(len(shown), columns, squeeze=False)
    for row, measure in zip(grid, shown, strict=True):
        if len(varying) == 2:
            draw_map(row[0], results, varying[0], varying[1], measure)
        for axes, name in zip(row, varying, strict=False) if len(varying) != 2 else ():
            draw_line(axes, results, name, measure, "o-" if len(varying) == 1 else ".")
    return shown_in_notebooks(figure)


def shown_in_notebooks(figure: "Figure") -> "Figure":
    """The figure, with what a notebook shows it by: pyplot, which has that, is not imported."""
    figure.__dict__["_repr_png_"] = partial(_to_png, figure)
    return figure


def _to_png(figure: "Figure") -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def draw_line(axes: "Axes", results: Results, name: str, measure: str, style: str) -> None:
    """A measure over one parameter; crosses below where runs failed."""
    order = np.argsort(results.columns[name], kind="stable")
    x, y = results.columns[name][order], results.columns[measure][order]
    good = np.isfinite(y)
    axes.plot(x[good], y[good], style, color=COLOUR, markersize=4)
    axes.plot(x[~good], np.zeros((~good).sum()), "x", color="#d1495b", clip_on=False,
              transform=axes.get_xaxis_transform())  # fmt: skip
    axes.set_xlabel(name, parse_math=False)
    axes.set_ylabel(measure, parse_math=False)
    axes.grid(alpha=0.3)


def draw_map(axes: "Axes", results: Results, across: str, up: str, measure: str) -> None:
    """A measure over two parameters: fields of a full grid, else coloured dots."""
    x, y, z = (results.columns[name] for name in (across, up, measure))
    columns, rows = np.unique(x), np.unique(y)
    if len(columns) * len(rows) == len(z):
        field = z[np.lexsort((x, y))].reshape(len(rows), len(columns))
        drawn = axes.pcolormesh(columns, rows, field, shading="nearest")
        if _apart(columns) and _apart(rows):  # a field is of one value, not of a range
            axes.set_xticks(columns)
            axes.set_yticks(rows)
            middle = 0.5 * (np.nanmin(field) + np.nanmax(field))
            for (up_at, across_at), value in np.ndenumerate(field):
                axes.text(
                    float(columns[across_at]),
                    float(rows[up_at]),
                    f"{value:.3g}" if np.isfinite(value) else "failed",
                    color="white" if value < middle else "black",
                    ha="center",
                    va="center",
                )
    else:
        drawn = axes.scatter(x, y, c=z, s=14)
    axes.figure.colorbar(drawn, ax=axes).set_label(measure, parse_math=False)
    axes.set_xlabel(across, parse_math=False)
    axes.set_ylabel(up, parse_math=False)


def _apart(values: Array) -> bool:
    """Whether there is room for a word at each of the values, which ascend."""
    return float(np.diff(values).min()) >= NARROWEST * float(np.ptp(values))
