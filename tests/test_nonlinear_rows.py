"""Rows that are nonlinear in the velocity: an iterated filter, and motion at a given speed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bulletbridge.errors import StepError
from bulletbridge.formulations.classics import particle
from bulletbridge.formulations.integrators import METHODS, Scheme, State
from bulletbridge.formulations.modified import Modified
from bulletbridge.formulations.projector import Projector
from bulletbridge.formulations.stabilise import Stabilisation


class Counted:
    """A system that counts how often it is evaluated."""

    def __init__(self, system):
        self.system, self.nq, self.nv, self.count = system, system.nq, system.nv, 0

    def equations(self, q, v, t):
        self.count += 1
        return self.system.equations(q, v, t)

    def displace(self, q, step):
        return self.system.displace(q, step)


@pytest.mark.parametrize("off", [0.01, 0.3, 3.0])
def test_filter_of_rows_nonlinear_in_the_velocity_ends_at_round_off(off):
    """The horizontal velocity keeps its direction and takes the speed asked for."""
    v, t = np.array([2.0 * np.cos(1.0), 2.0 * np.sin(1.0), -3.0]) * (1.0 + off), 0.7
    speed = np.sqrt(particle.f(t))
    wanted = [speed * np.cos(1.0), speed * np.sin(1.0), v[2]]
    system = Counted(particle.AtSpeed())
    q = np.zeros(3)
    end = Stabilisation(passes=0)(system, q, q, v, t)
    assert_allclose(end.v, wanted, rtol=2e-15)
    assert_allclose(Modified(particle.AtSpeed()).velocity(q, v, t), wanted, rtol=2e-15)
    assert system.count <= 8  # quadratic, as Heron's square root
    linear = Counted(particle.OnCylinder())
    Stabilisation(passes=0)(linear, q, np.ones(3), v, t)
    assert linear.count == 1


@pytest.mark.parametrize("method", ["euler", "rk4", "trapezoidal", "symmetric"])
def test_speed_of_the_particle_is_kept_to_round_off(method):
    system, (q, v), h = particle.AtSpeed(), particle.AtSpeed.start(), 0.1
    step = Scheme(system, Projector(system), METHODS[method], Stabilisation())
    state = State(q, v, 0.0)
    for _ in range(20):
        after = step(state, h)
        state = State(after.q, after.v, state.t + h)
        speed = state.v[:2] @ state.v[:2]
        assert speed == pytest.approx(particle.f(state.t), rel=1e-13)  # one pass: 3e-7 by Euler
    error = np.abs(state.q - system.exact(2.0)).max()
    assert error < {"euler": 1.2, "rk4": 1e-6}.get(method, 5e-3)


def test_filter_says_when_no_velocity_is_in_reach():
    system = particle.AtSpeed()  # at rest no direction is better than another
    with pytest.raises(StepError, match="nonlinear in the velocity"):
        Stabilisation()(system, np.zeros(3), np.zeros(3), np.zeros(3), 0.0)
