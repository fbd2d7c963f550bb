"""The integrator that is taken unless one is given: verlet, and Euler's where that alone has it."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support.planar import assembled, four_bar, planar_chain

import bulletbridge as bb
from bulletbridge.comparison.compare import compare_model
from bulletbridge.comparison.options import CompareOptions
from bulletbridge.errors import ModelError

EULER = "semi_implicit_euler"


def moved(steps=20, motor=False, **options):
    """A four-bar after some steps, with a motor or not."""
    system = assembled(four_bar(**options))
    if motor:
        system.motors.set("j0", force=5.0, velocity=1.0)
    for _ in range(steps):
        system.step()
    return system


def same(one, other):
    assert_array_equal(one.q, other.q)
    assert_array_equal(one.v, other.v)


def test_without_inequalities_it_is_verlet_to_the_bit():
    free = moved()
    assert free.integrator == "verlet"
    same(free, moved(integrator="verlet"))
    rolled = assembled(four_bar())
    rolled.rollout(20)
    same(free, rolled)
    assert not np.array_equal(free.q, moved(integrator=EULER).q)


def test_with_motors_it_is_euler_to_the_bit():
    system = moved(motor=True)
    assert system.integrator == EULER
    same(system, moved(integrator=EULER, motor=True))


def test_limits_that_are_not_met_leave_it_to_the_bit():
    system = moved(limits=True)
    assert system.integrator == "verlet"
    same(system, moved(integrator="verlet"))


def test_it_changes_as_motors_come_and_go():
    """Steps are those of the method of the moment, from the state that the other one left."""
    system, euler, verlet = (moved(10, integrator=name) for name in (None, EULER, "verlet"))
    same(system, verlet)
    system.motors.set("j0", force=5.0, velocity=1.0)
    euler.set_state(system.q, system.v, system.t)
    euler.motors.set("j0", force=5.0, velocity=1.0)
    for _ in range(5):
        system.step()
        euler.step()
    assert np.abs(system.q - euler.q).max() < 1e-12  # one of them began with factors at hand
    system.motors.off("j0")
    assert system.integrator == "verlet"
    verlet.set_state(system.q, system.v, system.t)
    system.rollout(5)
    verlet.rollout(5)
    assert np.abs(system.q - verlet.q).max() < 1e-12


def test_what_is_given_is_taken_or_refused():
    assert moved(1, integrator=EULER).integrator == EULER
    system = assembled(four_bar(integrator="verlet"))
    system.motors.set("j0", force=5.0)
    with pytest.raises(ModelError, match="semi_implicit_euler"):
        system.step()
    with pytest.raises(ModelError, match="springs='implicit' is for semi_implicit_euler"):
        four_bar(integrator="verlet", springs="implicit")


def test_springs_that_are_taken_implicitly_are_eulers():
    chain = planar_chain([0.4, 0.9], [0.8, 1.8])
    chain.axes["stiffness"][:] = 10.0
    assert bb.System(chain).integrator == EULER
    assert bb.System(chain, springs="explicit").integrator == "verlet"
    with bb.load("a05_governor") as stiff, bb.load("minitaur") as soft:
        assert stiff.system.integrator == EULER  # its damper needs steps of 1e-4 s
        assert soft.system.integrator == "verlet"


def test_it_is_saved_copied_and_said():
    system, kept = moved(motor=True), moved().save()
    assert "semi_implicit_euler" in repr(system) and "motors" in repr(system)
    system.restore(kept)
    assert "verlet" in repr(system)
    copy = pickle.loads(pickle.dumps(system))
    for each in (system, copy):
        each.rollout(10)
    same(system, copy)
    same(system, moved(30))


@pytest.mark.parametrize(("given", "taken"), [(None, "verlet"), (EULER, EULER)])
def test_compare_says_which_was_taken(given, taken):
    options = CompareOptions(duration=0.1, integrator=given)
    results = {run.result.solver: run.result for run in compare_model("four_bar", options).runs}
    assert results["projector"].integrator == taken
    assert results["native"].integrator == EULER


@pytest.mark.parametrize("model", ["four_bar", "stewart", "slider_crank", "bricard"])
def test_its_energy_is_nearer_than_bullets(model):
    """By more than the factor of ten that the figures in docs/integrators.md have at least."""
    options = CompareOptions(duration=1.0, solvers=("projector", "native"))
    ours, theirs = (run.result for run in compare_model(model, options).runs)
    assert ours.energy.drift_max_J < 0.1 * theirs.energy.drift_max_J
    assert ours.gap_kept.max < 1e-12
