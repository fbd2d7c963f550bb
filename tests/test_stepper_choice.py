"""What advances a system is chosen when something else acts than did, not at each step."""

import gc
import pickle
import weakref

import numpy as np
import pytest
from support.planar import planar_chain

import bulletbridge as bb
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.build import empty_mechanism, with_joint
from bulletbridge.system.inequality_steps import InequalitySteps
from bulletbridge.system.stepping import CompiledSteps, PythonSteps, WatchedSteps

DT = 1e-3


def arm(**options):
    """Two links that swing."""
    return bb.System(planar_chain([0.5, 0.4], [1.0, 0.8]), dt=DT, **options)


def stepper(system):
    """What advanced a system last."""
    system.step()
    return type(system._stepping.stepper)


@pytest.mark.parametrize(
    "options, kind",
    [
        ({}, CompiledSteps),
        ({"integrator": "rk4", "limits": True}, WatchedSteps),
        ({"limits": "always"}, InequalitySteps),
        ({"integrator": "heun"}, PythonSteps),
        ({"formulation": "multipliers", "integrator": "dop853"}, PythonSteps),
    ],
)
def test_each_line_of_the_table_is_taken(options, kind):
    assert stepper(arm(**options)) is kind


def test_a_motor_that_is_switched_on_acts_in_the_next_step_and_off_no_more():
    system, plain = arm(), arm()
    first, *_ = system.motors.names
    motors = system.motors  # kept by the user
    assert stepper(system) is CompiledSteps
    motors.set(first, velocity=1.0, force=5.0)
    motors.set(first, velocity=2.0, force=5.0)
    assert stepper(system) is InequalitySteps
    assert system.joint_loads[first].motor != 0.0
    motors.set_friction(first, 0.1)
    motors.off(first)
    assert stepper(system) is InequalitySteps  # it rubs
    motors.set_friction(first, 0.0)
    assert stepper(system) is CompiledSteps
    for each in (system, plain):  # nothing is left of the motor
        each.set_state([0.3, 0.4], [0.1, -0.2], 0.0)
        each.step()
    np.testing.assert_array_equal(system.snapshot(), plain.snapshot())


def test_what_an_integrator_does_not_have_is_refused_by_the_step_until_it_is_gone():
    system = arm(integrator="rk4")
    first, *_ = system.motors.names
    system.step()
    before = system.snapshot()
    system.motors.set(first, velocity=1.0, force=5.0)
    for _ in range(2):
        with pytest.raises(ModelError, match="leave integrator"):
            system.step()
    with pytest.raises(ModelError, match="leave integrator"):
        system.rollout(2)
    np.testing.assert_array_equal(system.snapshot(), before)
    system.motors.off(first)
    system.step()


def test_copies_and_restored_systems_choose_by_what_acts_there():
    system = arm()
    first, *_ = system.motors.names
    system.step()
    free = system.save()
    system.motors.set(first, velocity=1.0, force=5.0)
    assert stepper(pickle.loads(pickle.dumps(system))) is InequalitySteps
    system.restore(free)
    assert stepper(system) is CompiledSteps


def test_motors_do_not_keep_their_system():
    gc.disable()
    try:
        system = bb.System(with_joint(empty_mechanism(), "hinge", "revolute", "link"), dt=DT)
        motors, gone = system.motors, weakref.ref(system)
        del system
        assert gone() is None
    finally:
        gc.enable()
    motors.set("hinge", velocity=1.0)  # nobody is told
