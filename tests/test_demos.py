"""Every bundled model has a demo, and every demo ends in the number it is checked by."""

import importlib
import sys
from pathlib import Path

import pytest

from bulletbridge.surface.models import bundled

DEMOS = Path(__file__).parents[1] / "demos"

# name: bounds of the number that main() returns
CHECKED = {
    # RK4 at 5 ms: 1.7e-9 measured
    "parallelogram": (0.0, 3e-9),
    # RK4 at 1 ms against 1e-11 of the reference's integrator
    "four_bar": (0.0, 1e-8),
    # a driven crank leaves nothing to integrate
    "slider_crank": (0.0, 1e-13),
    # order of RK4; the coarser of its steps is not quite asymptotic
    "five_bar": (3.7, 5.0),
    "ball_chain": (3.7, 5.0),
    # RK4 at 0.5 ms
    "triple_slider_crank": (0.0, 3e-10),
    # RK4 at 2.5 ms, legs that swing at 40 rad/s
    "stewart": (0.0, 3e-8),
    # RK4 at 5 ms
    "bricard": (0.0, 1e-9),
    # one filter: round-off
    "space_arm": (0.0, 1e-12),
    # geometry: round-off of half a metre
    "delta": (0.0, 1e-12),
    # round-off, and the promise
    "minitaur": (0.0, 1e-12),
    # round-off of a solve with the arm's mass matrix, which has a condition number of 1e4
    "two_arms": (0.0, 1e-9),
}


def test_every_model_has_a_demo():
    files = {path.stem for path in DEMOS.glob("*.py") if not path.stem.startswith("_")}
    assert files == set(bundled()) == set(CHECKED)


@pytest.mark.parametrize("name", CHECKED)
def test_the_demo_ends_in_its_number(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(DEMOS))
    sys.modules.pop(name, None)
    demo = importlib.import_module(name)
    assert Path(demo.__file__).parent == DEMOS
    lower, upper = CHECKED[name]
    try:
        assert lower <= demo.main() <= upper
    finally:
        sys.modules.pop(name, None)
    assert capsys.readouterr().out.count("\n") == 1
    assert len(Path(demo.__file__).read_text().splitlines()) <= 100


def test_a_window_without_a_display_is_refused(monkeypatch):
    monkeypatch.syspath_prepend(str(DEMOS))
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(SystemExit, match="--gui needs a display"):
        importlib.import_module("bricard").main(gui=True)
