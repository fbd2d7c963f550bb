"""Robots with local loops of the comparison."""

import numpy as np
import pytest

import bulletbridge as bb
from bulletbridge.bench.cases import case

SIZES = {
    "legs": (48, 36, 6),
    "legs_floating": (54, 36, 6),
    "sprung_biped": (26, 10, 4),
    "sprung_biped_floating": (32, 10, 4),
    "platform": (36, 30, 5),
    "universal_delta": (15, 12, 2),
    "hand": (27, 16, 8),
}
"""Rates, independent rows and loops."""


@pytest.mark.parametrize("name", SIZES)
def test_robots_have_their_sizes_and_keep_energy_to_second_order(name):
    """They start closed and moving; half the step leaves a quarter of Verlet's change of energy."""
    made = case(name)
    worst = list[float]()
    for steps in (25, 50):
        system = bb.System(made.mechanism, made.constraints, integrator="verlet", dt=0.05 / steps)
        rows = system.decision.caps.rows  # assembles
        assert (made.mechanism.nv, rows, len(made.ties)) == SIZES[name]
        system.set_state(made.q, made.v)
        assert np.abs(system.v - made.v).max() < 1e-12  # the loops allow these rates
        start, change = system.evaluate(), 0.0
        assert start.largest("metres") < 1e-14
        assert start.kinetic > 1e-4
        for _ in range(25):
            system.rollout(steps // 25)
            change = max(change, abs(system.evaluate().energy - start.energy))
        assert system.evaluate().largest("metres") < 1e-12
        worst.append(change)
    assert 3.0 < worst[0] / worst[1] < 5.0


@pytest.mark.parametrize("name", ["hand", "sprung_biped"])
def test_rows_that_are_round_off_are_redundant_link_by_link_too(name):
    """The third row of a plane loop on a ball is round-off, in whatever coordinates."""
    made, found = case(name), list[np.ndarray]()
    for solver in ("dense", "sparse"):
        system = bb.System(made.mechanism, made.constraints, dt=1e-3, solver=solver)
        assert system.decision.caps.rows == SIZES[name][1]
        system.set_state(made.q, made.v)
        system.rollout(20)
        found.append(np.concatenate([system.q, system.v]))
    assert np.abs(found[0] - found[1]).max() < 1e-9
