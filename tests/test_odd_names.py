"""Names that mean something to a terminal or to a plotting library are shown as they are."""

import json
import math
import pickle
from xml.etree import ElementTree

import numpy as np
import pytest
from support.small_models import four_bar

import bulletbridge as bb
from bulletbridge.cli import run
from bulletbridge.comparison.plots import svg_figure
from bulletbridge.console import deliver
from bulletbridge.models.load import load
from bulletbridge.studies.figures import plot_study
from bulletbridge.studies.journal import Results

SVG = "{http://www.w3.org/2000/svg}"
MARKUP, FORMULA = "arm[/red]:smile:", r"$\\frac{"
"""The end of a style that was not begun, an emoji; a formula that does not end."""


@pytest.fixture
def odd(tmp_path):
    """The four-bar with such names."""
    path = four_bar(tmp_path)
    for file in (path, tmp_path / "four_bar.urdf"):
        text = file.read_text().replace("crank", MARKUP).replace("rocker", FORMULA)
        text = text.replace(f"link: {FORMULA}", f"link: '{FORMULA}'")
        text = text.replace(f"link: {MARKUP}", f"link: '{MARKUP}'")
        text = text.replace(f"[{MARKUP}]", f"['{MARKUP}']").replace(
            f"{{{MARKUP}:", f"{{'{MARKUP}':"
        )
        file.write_text(text.replace("name: pin", f"name: 'pin{MARKUP}'"))
    return path


def test_inspect_shows_names_as_they_are(odd, capsys):
    assert run(["inspect", str(odd)]) == 0
    shown = capsys.readouterr().out
    assert f"pin{MARKUP}" in shown and f"\n{MARKUP} " in shown and f"\n{FORMULA} " in shown
    assert "gap [m]" in shown and "\\[" not in shown.replace(FORMULA, "")


def test_the_report_shows_names_as_they_are(odd, capsys, tmp_path):
    command = ["compare", str(odd), "--duration", "0.02", "--report", str(tmp_path / "report")]
    assert run(command) == 0
    assert "kept gap" in capsys.readouterr().out
    assert FORMULA in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")


def test_figures_show_names_as_they_are(odd):
    with load(odd) as model:
        figure = bb.plot(model.system.run(0.02))
        assert pickle.loads(pickle.dumps(figure))._repr_png_().startswith(b"\x89PNG")  # notebooks
    figure.canvas.draw()
    shown = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert FORMULA in shown
    columns = {FORMULA: np.array([1.0, 2.0]), MARKUP: np.array([0.5, 0.7])}
    plot_study(Results((FORMULA,), (MARKUP,), columns, ["", ""], [0, 1])).canvas.draw()
    columns["b"] = np.array([1.0, 2.0])
    plot_study(Results(("b", FORMULA), (FORMULA,), columns, ["", ""], [0, 1])).canvas.draw()


def test_equal_figures_are_equal_bytes_with_words_as_words():
    def draw(axes):
        axes.semilogy([1, 2], [1e-8, 1e-6], label=FORMULA)
        axes.set_ylabel("gap [m]")

    svg = svg_figure(draw)
    assert svg == svg_figure(draw)
    words = [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert {FORMULA, "gap [m]", "time [s]", "1e\N{MINUS SIGN}08"} <= set(words)
    assert "tspan" not in svg and "date" not in svg.lower()


def test_json_has_null_for_numbers_that_it_has_not(capsys):
    content = {"a": math.nan, "b": [1.0, math.inf], "c": {"d": -math.inf, "e": "nan"}, "f": (2,)}
    deliver("-", content, lambda: None)
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found == {"a": None, "b": [1.0, None], "c": {"d": None, "e": "nan"}, "f": [2]}


def test_figures_tell_coordinates_of_one_joint_apart():
    with load("minitaur") as model:
        figure = bb.plot(model.system.run(0.01), "base")
    labels = [[line.get_label() for line in axes.lines] for axes in figure.axes]
    assert labels[0] == [f"base {x}" for x in ("x", "y", "z", "qx", "qy", "qz", "qw")]
    assert labels[1] == [f"base {x}" for x in ("ωx", "ωy", "ωz", "vx", "vy", "vz")]
    figure.canvas.draw()
    for axes in figure.axes:  # legends cover no line
        drawn, legend = axes.get_window_extent(), axes.get_legend().get_window_extent()
        assert legend.x0 >= drawn.x1
