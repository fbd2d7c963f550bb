"""The symmetric and the trapezoidal integrator at rest and in slow motion."""

from dataclasses import replace

import numpy as np
import pytest

import bulletbridge as bb
from bulletbridge.models.model_spec import JointForce

INTEGRATORS = ("symmetric", "trapezoidal")


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("speed", [0.0, 1e-300, 1e-12, 1e-6, 1e-3])
def test_a_loop_at_rest_or_nearly_so_moves_on(integrator, speed):
    """Without gravity a four-bar keeps its energy, be it ever so little."""
    with bb.load("four_bar", integrator=integrator) as loaded:
        system = loaded.system
        system.gravity = (0.0, 0.0, 0.0)
        v = system.v
        v[:] = 0.0
        v[system.mechanism.joint("crank").v] = speed
        system.set_state(v=v)
        begun, start, pace = system.evaluate().kinetic, system.q, np.abs(system.v).max()
        system.rollout(40)
        seen = system.evaluate()
        assert seen.largest("metres") < 1e-13
        assert np.abs(system.q - start).max() <= 40 * system.dt * 2.0 * pace + 1e-13
        if begun > 0.0 and pace > 1e-100:
            # the way is short, a second-order method errs by the square of it, and rounding of the
            # configuration is a speed of eps/dt in each step
            rounding = 40 * np.finfo(float).eps / system.dt / pace
            assert seen.kinetic == pytest.approx(begun, rel=(40 * system.dt * pace) ** 2 + rounding)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_four_bar_comes_to_rest(integrator):
    """Strong dampers: it settles at the bottom, where forces that balance are all there is."""
    with bb.load("four_bar") as plain:
        spec = plain.spec
    dampers = tuple(JointForce(name, damping=10.0) for name in ("crank", "rocker"))
    spec = replace(spec, forces=(*spec.forces, *dampers))
    with bb.load(spec, integrator=integrator, dt=0.1) as loaded:
        system = loaded.system
        before = system.evaluate().energy
        for _ in range(1500):
            system.step(write=False)
            if np.abs(system.v).max() < 1e-6:
                break
        assert np.abs(system.v).max() < 1e-6 and system.evaluate().energy < before
        assert system.evaluate().largest("metres") < 1e-12
