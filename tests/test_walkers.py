"""Jansen's walkers of the growth comparison."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bulletbridge as bb
from bulletbridge.bench import walkers
from bulletbridge.bench.walkers import walker


@pytest.mark.parametrize("legs", [1, 3])
def test_a_walker_turns_about_its_shaft_alone(legs):
    """Closed at every angle of the crank, one freedom, and energy kept to the method's order."""
    for angle in np.linspace(0, 2 * np.pi, 7):
        made = walker(legs, angle)
        system = bb.System(made.mechanism, made.constraints)
        system.set_state(made.q)
        assert system.evaluate().largest("metres") < 1e-15
        assert system.dof == 1
        assert len(made.loops) == 3 * legs
    system = bb.System(made.mechanism, made.constraints, integrator="rk4", dt=2e-3)
    system.set_state(made.q)
    energy, worst, kinetic = system.evaluate().energy, 0.0, 0.0
    for _ in range(50):
        system.rollout(10)
        now = system.evaluate()
        worst, kinetic = max(worst, abs(now.energy - energy)), max(kinetic, now.kinetic)
    assert kinetic > 0.1
    assert worst < 1e-6 * kinetic  # 16 times less than at 4 ms
    assert system.evaluate().largest("metres") < 1e-12


def test_feet_walk_on_a_straight_line():
    """What the lengths were chosen for: over more than a third of a turn the foot keeps its height.

    Jansen's foot rises by less than 2 percent of its stride there.
    """
    foot = []
    for angle in np.linspace(0, 2 * np.pi, 60, endpoint=False):
        made = walker(1, angle)
        system = bb.System(made.mechanism, made.constraints)
        system.set_state(made.q)
        at = walkers.meet(np.zeros(2), walkers.FOOT, walkers.straight(walkers.SHIN), walkers.SOLE)
        point = system.kinematics().point(bb.Frame("body7", (*at, 0.0)))
        foot.append(point.p_W[[0, 2]])
    path = np.array(foot)
    stride, lift = np.ptp(path, axis=0)
    down = path[:, 1] < path[:, 1].min() + 0.02 * stride
    assert_allclose([stride, lift], [0.68, 0.22], rtol=0.1)
    assert down.mean() > 1 / 3
