"""Figures of examples, as SVG with text as text; matplotlib is loaded when one is drawn."""

# matplotlib declares its keyword arguments without types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bulletbridge.comparison.plot import show_as_written
from bulletbridge.comparison.plots import show_plain_logs, svg_text
from bulletbridge.numerics.records import Array
from bulletbridge.papers.example import Curve, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0b6e4f", "#d1495b", "#30638e", "#edae49", "#8e5572", "#59a5d8")
DOTS = "#22262b"
WIDTH, HEIGHT = 4.6, 3.0
"""Of a pair of axes [inch]."""
MOST_POINTS = 300
"""Of a curve: as many as a screen shows, for small files."""
DIGITS = re.compile(r"(\d\.\d\d)\d+")
"""Places [1/72 inch] with more digits than a screen shows."""
QUOTED = re.compile(r'"[^"]*"')
"""Values of attributes, where places are; numbers in the text stay."""


def draw(panels: Sequence[Panel]) -> str:
    """All panels of an example in one figure, as SVG text; equal ones give equal bytes.

    Raises:
        MissingExtraError: There is no matplotlib.
    """
    across = 1 if len(panels) == 1 else 2
    down = -(-len(panels) // across)

    def fill_all(figure: "Figure") -> None:
        grid = list(figure.subplots(down, across, squeeze=False).ravel())
        for axes, panel in zip(grid, panels, strict=False):
            fill(axes, panel)
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        add_legends(figure, grid[: len(panels)])

    size = (6.4, 4.0) if across == 1 else (WIDTH * across, HEIGHT * down)
    text = svg_text(fill_all, size, "figures")
    return QUOTED.sub(lambda found: DIGITS.sub(r"\1", found[0]), text)


def fill(axes: "Axes", panel: Panel) -> None:
    """Draw one panel: lines by colour, the others' points as dots of the colour before them."""
    colour, number, named = COLOURS[0], 0, set[str]()
    for curve in panel.curves:
        if curve.dots:
            label = None if curve.label in named else curve.label
            named.add(curve.label)
            axes.plot(curve.x, curve.y, "o", color=DOTS, markersize=3.4, label=label, zorder=5,
                      markerfacecolor="none", markeredgewidth=0.9)  # fmt: skip
            continue
        colour = COLOURS[number % len(COLOURS)]
        style = "-" if number < len(COLOURS) else "--"
        number += 1
        x, y = thinned(curve, panel.log)
        axes.plot(x, y, style, color=colour, label=curve.label or None)
    if panel.log:
        axes.set_yscale("log")
        show_plain_logs(axes)
    if panel.equal:
        axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel(panel.x, parse_math=False)
    axes.set_ylabel(panel.y, parse_math=False)
    if panel.title:
        axes.set_title(panel.title, fontsize=9.0, parse_math=False)


def add_legends(figure: "Figure", drawn: "Sequence[Axes]") -> None:
    """One legend above all for the curves that most panels name, one in each other panel."""
    named = [axes.get_legend_handles_labels() for axes in drawn]
    lists = [tuple(labels) for _, labels in named if labels]
    if not lists:
        return
    shared = max(lists, key=lists.count)
    alone = lists.count(shared) == 1 and len(lists) > 1
    if not alone:
        handles = next(pair[0] for pair in named if tuple(pair[1]) == shared)
        columns = 2 if max(map(len, shared)) > 24 else 3 if len(drawn) == 1 else 5
        at = figure.legend(handles, shared, loc="outside upper left", ncols=columns, frameon=False)
        show_as_written(at)
    for axes, (handles, labels) in zip(drawn, named, strict=True):
        if labels and (alone or tuple(labels) != shared):
            show_as_written(axes.legend(handles, labels, fontsize=7.5, framealpha=0.85,
                                        edgecolor="none"))  # fmt: skip


def thinned(curve: Curve, log: bool) -> tuple[Array, Array]:
    """At most so many points; of a spread on a logarithmic axis the largest of each stretch."""
    x, y = np.asarray(curve.x), np.asarray(curve.y)
    if len(x) <= MOST_POINTS:
        return x, y
    if not log:
        kept = np.unique(np.linspace(0, len(x) - 1, MOST_POINTS).round().astype(int))
        return x[kept], y[kept]
    starts = np.unique(np.linspace(0, len(x), MOST_POINTS + 1).astype(int)[:-1])
    return x[starts], np.maximum.reduceat(y, starts)
