"""Derivatives of steps with motors, friction and limits: against differences, and closed forms.

Extrapolated central differences of steps are good to 1e-8 of the largest number, mostly 1e-10
(``test_linearisation``); beside a limit they see a kink that the derivative of the active set does
not have, which closed forms stand for there.
"""

from dataclasses import replace

import numpy as np
import pytest
from support.small_trees import slider

import bulletbridge as bb
from bulletbridge.errors import UnsupportedError

DIFFERENCES = 1e-7


def require_differences(system: bb.System) -> bb.Linearisation:
    """Equations and differences give one linearisation, of one active set."""
    known = system.linearise(by="equations")
    found = system.linearise(by="differences")
    assert known.active == found.active and found.changed == ()
    for one, other in ((known.A, found.A), (known.B, found.B)):
        assert np.abs(one - other).max() <= DIFFERENCES * np.abs(found.A).max()
    assert np.abs(known.q_after - found.q_after).max() <= 1e-13
    return known


@pytest.mark.parametrize(
    ("motor", "active"),
    [
        ({"velocity": 5.0, "force": 0.5}, ("motor of crank at +force",)),
        ({"velocity": 1.0, "force": 100.0}, ()),
        ({"position": 0.4, "position_gain": 0.01, "velocity": 0.0, "force": 1e4}, ()),
        (
            {
                "position": 9.0,
                "velocity": 0.0,
                "position_gain": 0.1,
                "force": 1e4,
                "max_velocity": 2.0,
            },
            (),
        ),
    ],
    ids=["at its force", "holds a rate", "goes to a position", "as fast as it may"],
)
@pytest.mark.parametrize("rubs", [0.0, 0.1])
def test_a_motor_pushes_or_holds(connect, motor, active, rubs):
    system = bb.load("four_bar", connect()._client, dt=1e-3, limits=False).system
    system.motors.set("crank", **motor)
    system.motors.set_friction("rocker", rubs)
    system.rollout(20)
    slides = ("friction of rocker sliding",) if rubs else ()
    assert require_differences(system).active == (*slides, *active)
    assert system.step_derivatives().active == (*slides, *active)


def test_friction_sticks():
    system = bb.System(slider("x", gravity=(5.0, 0.0, 0.0)), dt=0.01)
    system.motors.set_friction("x", 100.0)
    found = require_differences(system)
    assert found.active == ("friction of x sticking",)
    assert np.abs(found.A - [[1.0, 0.0], [0.0, 0.0]]).max() <= 1e-12
    assert np.abs(found.B).max() <= 1e-12


def test_motors_of_a_floating_robot_push_and_hold(connect):
    system = bb.load("minitaur", connect()._client, dt=1e-3, limits=False).system
    motors = [name for name in system.mechanism.joints if name.startswith("motor")]
    for k, name in enumerate(motors):
        system.motors.set(name, velocity=0.0, force=0.5 if k % 2 else 500.0)
    system.tau[:] = 0.6
    system.rollout(20)
    found = require_differences(system)
    assert 0 < len(found.active) < len(motors)


def stopped(pull: float, position: float = 0.0) -> bb.System:
    """A slider of 1 kg with a stop at 0, pulled towards it [N/kg]."""
    mechanism = slider("x", gravity=(pull, 0.0, 0.0))
    mechanism.joints["x"] = replace(mechanism.joint("x"), lower=-1.0, upper=0.0)
    system = bb.System(mechanism, dt=1e-3, limits="always")
    system.set_state([position], [0.0])
    return system


def test_a_limit_holds_whatever_presses():
    """At the stop nothing answers; a step that just comes to it ends there, from wherever."""
    system = stopped(5.0)
    found = system.linearise(by="equations")
    assert found.active == ("limit of x",)
    assert np.abs(found.B).max() <= 1e-12
    coming = stopped(0.0, -5e-4)
    coming.set_state([-5e-4], [1.0])
    found = coming.linearise(by="equations")
    assert found.active == ("limit of x",)
    assert abs(found.q_after[0]) <= 1e-15
    # v = -q / dt, and so q = 0
    assert np.abs(found.A - [[0.0, 0.0], [-1000.0, 0.0]]).max() <= 1e-9
    assert np.abs(found.B).max() <= 1e-12


def test_what_is_about_to_change_or_not_known_is_refused(connect):
    def refused(system: bb.System, match: str) -> None:
        with pytest.raises(UnsupportedError, match=match):
            system.step_derivatives()

    refused(stopped(0.0), "of 'x' is about to act otherwise")
    free = bb.System(slider("x", gravity=(5.0, 0.0, 0.0)), dt=0.01)
    free.motors.set("x", velocity=0.0, force=5.0 * (1.0 + 1e-4))
    refused(free, "of 'x' is about to act otherwise")
    free.motors.set("x", velocity=0.05, velocity_gain=0.5, force=5.0)
    refused(free, "velocity gain of 0.5, not 1")
    both = bb.load("four_bar", connect()._client, dt=1e-3, limits=False).system
    for name in ("crank", "rocker"):  # one freedom
        both.motors.set(name, velocity=0.0, force=100.0)
    both.set_state(v=np.zeros(3))
    require_differences(both)  # at rest both ask for the same, also beside
    both.motors.set("crank", velocity=0.0, force=100.0, position=both.q[0], position_gain=0.1)
    refused(both, "follow from each other")
