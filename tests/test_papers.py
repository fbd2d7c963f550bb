"""Examples of the papers: their numbers beside others', their pages, the command."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from bulletbridge import cli
from bulletbridge.errors import MissingExtraError, ModelError
from bulletbridge.papers import drawing
from bulletbridge.papers.catalogue import chosen, examples
from bulletbridge.papers.example import Curve, Outcome, Panel, Row, Table, until
from bulletbridge.papers.page import farthest_of, index_text, page_text
from bulletbridge.papers.references import reference

UNTIL = {
    "kovecses-fig3": 0.2,
    "kovecses-fig4": 0.2,
    "kovecses-fig5": 0.2,
    "kovecses-fig6": 0.2,
    "kovecses-table": 0.05,
    "kovecses-bullet": 0.5,
    "eun-particle": 1.0,
    "eun-path": 0.1,
    "eun-forces": 0.2,
    "eun-errata": 0.2,
    "haug-fig5": 2.0,
    "haug-stability": 0.5,
    "haug-table1": 0.02,
    "haug-charts": 0.05,
    "haug-tilt": 0.05,
    "haug-fig6": 0.5,
    "haug-fig7": 0.5,
    "haug-table2": 0.05,
    "haug-slider-charts": 0.02,
    "aghili-free": 0.5,
    "aghili-tracking": 0.5,
    "aghili-regulation": 0.5,
    "bonaventura-table34": 0.5,
} | {f"bonaventura-system-{name}": 0.25 for name in reference("flexible_arms")}
"""How far examples that take more than a second are run; the whole of them makes docs/papers."""
COMPARED = {f"kovecses-fig{k}" for k in (3, 4, 5, 6)} | {
    "kovecses-table", "kovecses-bullet", "haug-table1", "haug-charts", "haug-tilt",
    "haug-table2", "haug-slider-charts", "eun-errata",
}  # fmt: skip
"""Whose numbers are those of whole runs only, and so are not compared here."""
DRAWN = [*examples()][::4]
"""Whose figures are drawn: of each paper some."""


@pytest.mark.parametrize("name", examples())
def test_numbers_agree_and_pages_are_made(name):
    example = examples()[name]
    outcome = example.run(UNTIL.get(name))
    rows = [row for table in outcome.tables for row in table.rows]
    assert outcome.tables and all(np.isfinite(row.ours) for row in rows)
    missed = [row for row in rows if not row.agrees]
    assert not missed
    if name not in COMPARED:
        assert any(row.allowed is not None for row in rows)
    page = page_text(example, outcome)
    assert f"`bulletbridge paper {name}`" in page
    heads = [line for line in page.splitlines() if line.startswith(("|  |", "|---"))]
    assert len(heads) == 2 * len(outcome.tables)
    assert farthest_of(page) != "–" or all(row.other is None for row in rows)
    if outcome.panels and name in DRAWN:
        svg = drawing.draw(outcome.panels)
        ElementTree.fromstring(svg)
        assert len(svg) < 250_000
        label = outcome.panels[0].x
        assert f">{label}<" in svg  # as text
    if outcome.film is not None:
        assert len(outcome.film.times) == len(outcome.film.states)


@pytest.mark.parametrize("correction", ["none", "1v+2q eq35", "1v+2q eq36"])
def test_docking_for_80_s_is_that_of_the_independent_program(correction):
    from bulletbridge.papers.docking import DURATION, of_references, simulate

    run, known = simulate("rk4", 0.2, correction, DURATION), of_references("rk4", 0.2, correction)
    if correction == "1v+2q eq36":  # the claim of the paper: round-off of a place 10 m away
        assert run.gap.max() < 1e-14
    else:
        assert run.gap.max() == pytest.approx(known["max_q"], rel=1e-2)
    if correction == "none":
        assert run.rate.max() == pytest.approx(known["max_v"], rel=1e-3)
    else:
        assert run.rate.max() < 1e-15
    final = np.array(reference("kovecses")["states"]["80"][7:14])
    assert np.abs(run.q[-1, 7:] - final).max() == pytest.approx(known["err_theta80"], rel=1e-3)


def test_a_number_that_is_off_is_told(monkeypatch, capsys):
    from bulletbridge.papers import catalogue
    from bulletbridge.papers.example import Example

    off = Outcome([Table("numbers", [Row("length [m]", 1.0, 2.0, 0.5)])])
    example = Example("short-one", "Nobody", "One number", "a", "b", lambda end: off)
    monkeypatch.setattr(catalogue, "examples", lambda: {"short-one": example})
    assert cli.run(["paper", "short-one"]) == 1
    assert "(!)" in capsys.readouterr().out


def test_command_lists_runs_and_writes(tmp_path, capsys):
    assert cli.run(["paper"]) == 0
    assert "kovecses-fig4" in capsys.readouterr().out
    assert cli.run(["paper", "eun-start", "bonaventura-table21", "-o", str(tmp_path)]) == 0
    assert "filtered rates" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {
        "index.md", "eun-start.md", "bonaventura-table21.md",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["kovecses-fg4"], "did you mean 'kovecses-fig4'"),
        (["zzz"], "there are: kovecses-fig3"),
        (["eun-start", "--until", "-1"], "give a time after the start"),
        (["eun-start", "--until", "1", "-o", "somewhere"], "leave it or --output out"),
    ],
)
def test_what_cannot_be_run_is_said(arguments, said, capsys):
    assert cli.run(["paper", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_window_needs_a_display(monkeypatch, capsys):
    monkeypatch.delenv("DISPLAY", raising=False)
    assert cli.run(["paper", "eun-forces", "--gui"]) == 1
    assert "display" in capsys.readouterr().err


def test_figures_without_matplotlib_say_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    curve = Curve("", np.arange(3.0), np.arange(3.0))
    with pytest.raises(MissingExtraError, match="pip install matplotlib"):
        drawing.draw([Panel("x", "y", [curve])])


def test_a_beginning_of_names_chooses_several():
    assert [example.name for example in chosen(["aghili"])] == [
        "aghili-free", "aghili-tracking", "aghili-regulation",
    ]  # fmt: skip
    assert len(chosen(["all"])) == len(examples())
    with pytest.raises(ModelError, match="unknown example"):
        chosen(["eun-path", "nothing"])


def test_pages_of_the_site_are_those_of_the_catalogue():
    from pathlib import Path

    folder = Path(__file__).parents[1] / "docs" / "papers"
    pages = {path.stem for path in folder.glob("*.md")} - {"index"}
    assert pages == set(examples())
    index = (folder / "index.md").read_text(encoding="utf-8")
    site = (folder.parents[1] / "mkdocs.yml").read_text(encoding="utf-8")
    for name in examples():
        assert f"({name}.md)" in index
        assert f"docs/papers/{name}.md" in site
    for path in folder.glob("*.md"):
        assert "(!)" not in path.read_text(encoding="utf-8"), path
    drawn = {path.stem for path in folder.glob("*.svg")}
    shown = set(re.findall(r"\((\S+)\.svg\)", "".join(p.read_text() for p in folder.glob("*.md"))))
    assert drawn == shown


def test_times_that_a_run_reaches():
    assert until([0.1, 0.2, 0.3], 0.2) == [0.1, 0.2]
    assert until([0.1, 0.2], None) == [0.1, 0.2]


def test_long_curves_keep_their_peaks_on_logarithmic_axes():
    y = np.full(5000, 1e-3)
    y[1234] = 1.0
    x, thin = drawing.thinned(Curve("", np.arange(5000.0), y), log=True)
    assert len(x) == drawing.MOST_POINTS and thin.max() == 1.0


def test_index_tells_what_is_missing():
    example = examples()["eun-start"]
    text = index_text({example: ""}, ["the moon"])
    assert "- the moon" in text and "(eun-start.md)" in text


def test_pages_tell_the_largest_differences_by_whose_numbers_are_differed_from():
    rows = [
        Row("a [m]", 1.0, 1.2, 0.5, "paper"),
        Row("b [m]", 1.0, 1.1, 0.2, "paper"),
        Row("c (2)", 4.0, 1.0, None, "program"),
    ]
    example = examples()["eun-start"]
    page = page_text(example, Outcome([Table("t", rows), Table("data", [Row("d", 3.0)])]))
    assert "- printed: -1.0e-01 of the 2.0e-01 allowed (b [m])" in page
    assert "- independent program: 3.0e+00, no bound (c (2))" in page
    assert "|  | ours |\n|---|--:|\n| d | 3 |" in page  # no columns of dashes
    told = "printed: -1.0e-01 of the 2.0e-01 allowed; independent program: 3.0e+00, no bound"
    assert farthest_of(page) == told and f"| {told} |" in index_text({example: page}, [])
    alike = page_text(example, Outcome([Table("t", rows[:2])]))
    assert "|  | ours | printed | difference | may differ by |" in alike
