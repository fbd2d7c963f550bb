"""Joint forces that are functions of time."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.small_trees import pendulum

import bulletbridge as bb
from bulletbridge.constraints.motion import Polynomial, Sine, Spline, Sum
from bulletbridge.engine.force_signals import Script
from bulletbridge.errors import LoopFileError, ModelError
from bulletbridge.models.bundled import bundled
from bulletbridge.models.loops_file import read_loops
from bulletbridge.models.loops_writer import loops_text

SIGNALS = [
    Sine(0.7, 1.3, 0.2, 0.1),
    Polynomial((0.2, -0.5, 0.3)),
    Spline((0.0, 0.3, 1.0), (0.0, 0.6, -0.2)),
    Spline((0.1, 0.3, 0.5), (0.0, 0.6, -0.2), "natural"),
    Sum((Sine(0.7, 1.3), Polynomial((0.1,)))),
]


@pytest.mark.parametrize("signal", SIGNALS, ids=lambda s: type(s).__name__)
def test_many_times_at_once_are_each_time_alone(signal):
    times = np.linspace(-0.2, 1.3, 40)
    assert_allclose(signal.over(times), [signal(t) for t in times], atol=1e-15)


@pytest.mark.parametrize(
    ("integrator", "order"),
    [("semi_implicit_euler", 1), ("verlet", 2), ("rk4", 4), ("heun", 2), ("nystrom4", 4)],
)
def test_integrators_keep_their_order(integrator, order):
    """Against DOP853 with the same torque, of 3 Hz."""
    torque = {"pin": Sine(2.0, 3.0, 0.4)}
    exact = pendulum(forces=torque, integrator="dop853", dt=0.8, rtol=1e-13, atol=1e-13)
    exact.step()
    errors = []
    for steps in (80, 160):
        system = pendulum(forces=torque, integrator=integrator, dt=0.8 / steps)
        system.rollout(steps)
        errors.append(abs(system.q[0] - exact.q[0]))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.2)


def test_steps_one_by_one_are_a_rollout():
    together, alone = (pendulum(forces={"pin": SIGNALS[0]}, integrator="rk4") for _ in range(2))
    together.rollout(50)
    for _ in range(50):
        alone.step()
    # times of the steps are sums in one, products in the other
    assert_allclose(alone.q, together.q, atol=1e-14)


def test_any_function_will_do_and_adds_to_tau():
    signal = SIGNALS[0]
    for function in (signal, lambda t: signal(t)[0], [signal]):
        system = pendulum(forces={"pin": function})
        system.set_state(t=0.3)
        system.tau[0] = 0.25
        inertia = system.terms().M[0, 0]
        bare = pendulum()
        push = inertia * (system.acceleration()[0] - bare.acceleration()[0])
        assert push == pytest.approx(signal(0.3)[0] + 0.25, abs=1e-14)
        assert system.terms().forces[0] == pytest.approx(signal(0.3)[0], abs=1e-15)


def test_what_cannot_be_is_refused():
    with pytest.raises(ModelError, match="pinn"):
        pendulum(forces={"pinn": SIGNALS[0]})
    with pytest.raises(ModelError, match="1 rates and got 2"):
        pendulum(forces={"pin": [SIGNALS[0], SIGNALS[1]]})
    with pytest.raises(ModelError, match="not a finite number at t = 0"):
        pendulum(forces={"pin": lambda t: 1.0 if t > 0.0 else np.nan}).step()


def test_loops_files_have_them(tmp_path):
    four_bar = bundled()["four_bar"]
    text = four_bar.read_text().replace("four_bar.urdf", str(four_bar.with_name("four_bar.urdf")))
    path = tmp_path / "driven.loops.yaml"
    path.write_text(
        text + "\nforces:\n  - {joint: crank, torque: {sine: {amplitude: 3, frequency: 2}}}\n"
    )
    spec = read_loops(path)
    assert spec.forces[0].torque == Sine(3.0, 2.0)
    path.write_text(loops_text(spec, path))
    assert read_loops(path) == spec
    with bb.load(path, integrator="rk4") as model, bb.load("four_bar", integrator="rk4") as free:
        driven = bb.System(
            free.system.mechanism, free.spec.constraints, forces={"crank": Sine(3.0, 2.0)},
            integrator="rk4",
        )  # fmt: skip
        driven.set_state(free.system.q, free.system.v)
        by_option = bb.load("four_bar", integrator="rk4", forces={"crank": Sine(3.0, 2.0)})
        for system in (model.system, driven, by_option.system):
            system.rollout(100)
        assert_allclose(model.system.q, driven.q, atol=1e-13)
        assert_allclose(by_option.system.q, driven.q, atol=1e-13)
        by_option.close()
        assert model.system.evaluate().largest("kept_metres") < 1e-12
    twice = "  - {joint: crank, torque: {sine: {amplitude: 1.5, frequency: 2}}}\n" * 2
    path.write_text(text + "\nforces:\n" + twice)
    with bb.load(path, integrator="rk4") as model:
        model.system.rollout(100)
        assert_allclose(model.system.q, driven.q, atol=1e-13)
    path.write_text(text + "\nforces:\n  - {joint: crank, torque: {sinus: {amplitude: 3}}}\n")
    with pytest.raises(LoopFileError, match="sine"):
        read_loops(path)


def test_sines_that_are_asked_together_are_those_of_each():
    """Two of one rate add up, beside another signal; against the formula."""
    given = [(2.0, 0.5, 0.1, -0.3), (1.0, 3.0, 0.0, 0.0), (0.4, 1.1, -2.0, 1.5)]
    rates, times = (0, 2, 2), np.array([0.0, 0.37, 2.1])
    signals = [("", rate, Sine(*numbers)) for rate, numbers in zip(rates, given, strict=True)]
    found = Script((*signals, ("", 1, Polynomial((0.5, 2.0)))), 4).at(times)
    expected = np.zeros((3, 4))
    for rate, (size, frequency, phase, offset) in zip(rates, given, strict=True):
        expected[:, rate] += offset + size * np.sin(2.0 * np.pi * frequency * times + phase)
    expected[:, 1] = 0.5 + 2.0 * times
    assert_allclose(found, expected, atol=1e-13)  # of phases up to 42 rad


def test_a_sine_of_a_users_own_kind_is_asked_itself():
    class Decaying(Sine):
        def over(self, t):
            return super().over(t) * np.exp(-t)[:, None]

    times, plain = np.array([0.0, 0.4, 1.0]), Sine(2.0, 0.5)
    found = Script((("", 0, Decaying(2.0, 0.5)), ("", 1, plain)), 2).at(times)
    assert_allclose(found[:, 0], found[:, 1] * np.exp(-times), atol=1e-15)
    assert found[1, 1] == pytest.approx(2.0 * np.sin(0.4 * np.pi))
