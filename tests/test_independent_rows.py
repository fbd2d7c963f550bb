"""Motors, friction and limits that are told apart: what they exert moves bodies as it should."""

import numpy as np
import pytest

import bulletbridge as bb
from bulletbridge.bench.cases import case
from bulletbridge.bench.problem import positions

DT, STEPS = 1e-3, 40
DRIVEN = {
    "hand": ("spread", "low", "yaw", "pitch", "palm"),
    "legs": ("roll", "yaw", "thigh", "knee", "pitch", "foot"),  # more than there are freedoms
}


def built(name):
    """A robot's system at rest in its motors, and the names of joints that these may move."""
    made = case(name)
    system = bb.System(
        made.mechanism,
        (*made.loops, *made.springs),
        dt=DT,
        energy_budget=False,
        integrator="semi_implicit_euler",
    )
    system.assemble(guess=positions(made))
    joints = made.mechanism.joints.items()
    single = [name for name, joint in joints if joint.is_single]
    parts = DRIVEN[name]
    return system, [n for n in single if n.startswith(parts) or n.split("_", 1)[-1] in parts]


@pytest.mark.parametrize("name", DRIVEN)
def test_torques_in_place_of_motors_move_a_robot_the_same(name):
    """Steps without motors, with the torques that these have exerted, end where theirs did.

    The first is the solver's problem, the second has none. Both are Euler's method from the same
    state, so that they differ by round-off alone: rates are below 100 rad/s, and 1e-9 of that is
    a million times the rounding of one sum. Some motors are as weak as what they have to do, so
    that some are at their bounds.
    """
    system, names = built(name)
    twin, _ = built(name)
    random = np.random.default_rng(4)
    bounds = 10.0 ** random.uniform(-2.0, 1.0, len(names))
    for each, force in zip(names, bounds, strict=True):
        system.motors.set(each, velocity=random.uniform(-1.0, 1.0), force=force)
    used, at = [], [system.mechanism.joints[each].v.start for each in system.motors.names]
    exerted = np.zeros(system.mechanism.nv)
    for _ in range(STEPS):
        twin.set_state(system.q, system.v)
        system.step()
        exerted[at] = system.motors.forces
        twin.tau = exerted
        twin.step()
        np.testing.assert_allclose(twin.v, system.v, rtol=0, atol=1e-9 * np.abs(system.v).max())
        used.append(
            [abs(exerted[system.mechanism.joints[each].v.start]) for each in names] / bounds
        )
    assert np.min(used) < 0.5
    assert np.max(used) == pytest.approx(1.0)
