"""Gravity and torques that change on the way, and sliders of Bullet's window that set them."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.small_models import four_bar

from bulletbridge.errors import ModelError
from bulletbridge.models.load import load
from bulletbridge.models.loops_file import read_loops
from bulletbridge.viewer.sliders import Sliders, Switch, round_up

ROUND_OFF = 1e-12


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "rk4", "dop853"])
def test_gravity_set_on_the_way_is_that_of_a_model_with_it(tmp_path, integrator):
    spec = read_loops(four_bar(tmp_path))
    other = replace(spec, gravity=(1.0, 0.0, -1.6))
    with load(spec, integrator=integrator) as one, load(other, integrator=integrator) as two:
        one.system.rollout(3)
        two.system.set_state(one.system.q, one.system.v, one.system.t)
        one.system.gravity = other.gravity
        for system in (one.system, two.system):
            system.rollout(5)
        # set_state trims to round-off, and dop853 chooses other steps for that
        assert_allclose(one.system.q, two.system.q, atol=ROUND_OFF, rtol=0)
        assert_allclose(one.system.acceleration(), two.system.acceleration(), rtol=1e-9)
        potentials = [system.evaluate().potential for system in (one.system, two.system)]
        assert potentials[0] == pytest.approx(potentials[1], rel=ROUND_OFF)
        assert one.system.gravity.tolist() == [1.0, 0.0, -1.6]
        one.system.assemble()  # a new start keeps it
        assert one.system.gravity.tolist() == [1.0, 0.0, -1.6]


@pytest.mark.parametrize("gravity", [9.81, [0, 0], [0, 0, np.nan], [[0, 0, 1]]])
def test_impossible_gravity_is_refused(tmp_path, gravity):
    with load(four_bar(tmp_path)) as loaded:
        with pytest.raises(ModelError, match=r"give three finite numbers \[m/s²\]"):
            loaded.system.gravity = gravity
        assert loaded.system.gravity.tolist() == [0, 0, -9.81]


def test_sliders_that_nobody_moves_change_no_bit(tmp_path, window):
    with load(four_bar(tmp_path)) as loaded:
        system = loaded.system
        system.tau[:] = [0.1, 0.2, 0.3]
        sliders = Sliders(loaded.client, system, ("crank",))
        assert [label for label, *_ in window.labels] == ["gravity [m/s2]", "crank [N m]"]
        for _ in range(3):
            assert not sliders.apply(system)
        assert system.gravity.tolist() == [0, 0, -9.81]
        assert system.tau.tolist() == [0.1, 0.2, 0.3]


def test_sliders_set_gravity_and_add_torques(tmp_path, window):
    with load(four_bar(tmp_path)) as loaded:
        system = loaded.system
        system.tau[0] = 0.25
        sliders = Sliders(loaded.client, system, ("crank",))
        window.sliders[:] = [1.5, 2.0]
        assert sliders.apply(system)
        assert not sliders.apply(system)
        assert system.gravity.tolist() == [0, 0, -1.5]
        assert system.tau[0] == 2.25  # added once, not in each step
        assert sliders.torques == {"crank": 2.0}
        system.tau[0] = 0.5  # a program that writes its own
        sliders.apply(system)
        assert system.tau[0] == 2.5
        window.sliders[1] = -1.0
        sliders.apply(system)
        assert system.tau[0] == -0.5
        vdot = system.acceleration()
        terms = system.terms()
        drive = np.array([-0.5, 0, 0])
        rest = terms.M @ vdot + terms.h - terms.forces - drive  # what is left is the pin's
        assert abs(rest @ _freedom(system)) < 1e-9


def _freedom(system):
    """The one velocity (nv,) that the loop allows, of unit length."""
    return np.linalg.svd(system.terms().J)[2][-1]


def test_a_switch_is_on_after_every_other_press(window):
    switch = Switch(0, "reactions")
    assert window.labels == [("reactions", 1, 0)]  # which Bullet shows as a button
    seen = []
    for presses in range(4):
        window.sliders[0] = float(presses)
        seen.append(switch.on)
    assert seen == [False, True, False, True]


def test_no_sliders_without_a_window_but_names_are_checked(tmp_path):
    with load(four_bar(tmp_path)) as loaded:
        sliders = Sliders(loaded.client, loaded.system, ("crank",))
        assert not sliders.apply(loaded.system)
        with pytest.raises(ModelError, match="unknown joint 'crnk'"):
            Sliders(loaded.client, loaded.system, ("crnk",))


def test_ends_of_sliders_are_round():
    assert [round_up(x) for x in (0.031, 1.0, 44.1, 99.0)] == pytest.approx([0.04, 1, 50, 100])
