"""Plots of the comparison, as SVG text."""

# matplotlib declares its keyword arguments without types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections import Counter
from typing import TYPE_CHECKING

from bulletbridge.bench.session import Row
from bulletbridge.bench.settings import PACKAGES
from bulletbridge.bench.summary import exponents, good, unique
from bulletbridge.comparison.plots import svg_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    "bulletbridge": "#0b6e4f",
    "bullet": "#d1495b",
    "mujoco": "#30638e",
    "drake": "#edae49",
    "pinocchio": "#8e5572",
    "exudyn": "#5c677d",
}
STYLES = ("-", "--", ":", "-.")


def work_precision(rows: list[Row], case: str, horizon: str) -> str:
    """Error against wall time, a line for each setting."""

    def draw(axes: "Axes") -> None:
        for peer in unique(good(rows, case=case), "peer"):
            mine = good(rows, case=case, peer=peer)
            for k, setting in enumerate(unique(mine, "setting")):
                runs = [r["errors"].get(horizon) for r in good(mine, setting=setting)]
                points = [(run["wall"], run["error"]) for run in runs if run and run["error"] < 1.0]
                if points:
                    x, y = zip(*points, strict=True)
                    label = PACKAGES[peer].name if k == 0 else None
                    style = STYLES[k % len(STYLES)]
                    axes.loglog(x, y, style, color=COLOURS[peer], marker=".", label=label)
        axes.set_ylabel(f"error at {horizon} s [rad]")

    return svg_figure(draw, "wall time [s]")


def growth(rows: list[Row], kind: str) -> str:
    """Time per step against the number of loops."""

    def draw(axes: "Axes") -> None:
        drawn = Counter[str]()  # lines of each peer
        for line in exponents(rows):
            if line["kind"] == kind and line["times"]:
                peer = line["peer"]
                label = None if drawn[peer] else PACKAGES[peer].name
                style = STYLES[drawn[peer] % len(STYLES)]
                drawn[peer] += 1
                x, y = list(line["times"]), list(line["times"].values())
                axes.loglog(x, y, style, color=COLOURS[peer], marker=".", label=label)
        axes.set_ylabel("time per step [µs]")

    return svg_figure(draw, "loops")
