"""Drops of closed-loop mechanisms on a plane, as benchmarks/drops.py makes a thousand of them."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("kind", ["four_bar", "bricard", "delta", "minitaur", "carried_bar"])
def test_drops_give_no_energy_and_open_no_loop(kind, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("drops", None)
    import drops

    for model, twin, start, plane in drops.worlds((kind,), 1 / 240):
        found = [drops.drop(model, twin, start, plane, seed, 0.5) for seed in range(3)]
        made = [one for one in found if one is not None]
        assert made
        for one in made:
            assert not one.failed
            assert one.gap < 1e-10
            # contacts work along the mean of two velocities: to what poses change within a step
            assert one.gain < 1e-3
        assert sum(one.touched for one in made) > 10
