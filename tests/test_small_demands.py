"""Inverse dynamics at any size: what is too small to see in newton metres is not met by nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bulletbridge as bb
from bulletbridge.errors import InfeasibleError
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint

UP = (np.pi / 2, 0.0, 0.0)
"""Joint axes, z of their frames, horizontal."""


def five_bar(length: float) -> bb.System:
    """A loop of five bars in the vertical plane, two freedoms, of steel-like density, at rest."""
    mass, moment = length**3, length**5
    load = Load(mass, (0.5 * length, 0.0, 0.0), tuple(0.1 * moment * np.array([0.1, 1.0, 1.0])))
    m = empty_mechanism((0.0, 0.0, -9.81))
    m = with_joint(m, "a1", "revolute", "A1", rpy=UP, load=load)
    m = with_joint(m, "a2", "revolute", "A2", on="A1", xyz=(length, 0, 0), load=load)
    m = with_joint(m, "b1", "revolute", "B1", xyz=(length, 0, 0), rpy=UP, load=load)
    m = with_joint(m, "b2", "revolute", "B2", on="B1", xyz=(length, 0, 0), load=load)
    tip = (length, 0.0, 0.0)
    pin = bb.LoopJoint("pin", bb.JointModel.BALL, bb.Frame("A2", tip), bb.Frame("B2", tip))
    system = bb.System(m, [pin], dt=1e-4)
    system.assemble({"a1": 2.0, "b1": 1.0}, guess={"a2": -1.0, "b2": 1.0})
    return system


@pytest.mark.parametrize("length", [1.0, 1e-3, 1e-6, 1e3])
def test_what_one_drive_cannot_do_is_refused_at_any_size(length):
    """Two freedoms, one drive: an acceleration that gravity and the drive do not give."""
    system = five_bar(length)
    natural = system.acceleration()
    wanted = natural.copy()
    J = system.terms().J
    free = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, 1e-6 * np.linalg.norm(J)) :]
    assert free.shape == (2, 4)
    both = free[0] + free[1]
    pace = np.abs(natural).max()  # gravity over length
    for part in (1.0, 1e-3):
        with pytest.raises(InfeasibleError, match="cannot meet the demand"):
            bb.inverse_dynamics(system, wanted + part * pace * both, actuated=["a1"])


@pytest.mark.parametrize("length", [1.0, 1e-3, 1e-6, 1e3])
def test_what_the_drives_can_do_comes_back_at_any_size(length):
    system = five_bar(length)
    natural = system.acceleration()
    for actuated, torques in ((["a1"], [1.0, 0, 0, 0]), (["a1", "b1"], [1.0, 0, -0.5, 0])):
        weight = 9.81 * length**4
        for part in (1.0, 1e-6, 0.0):
            tau = part * weight * np.array(torques)
            system.tau[:] = tau
            wanted = system.acceleration()
            system.tau[:] = 0.0
            found = bb.inverse_dynamics(system, wanted, actuated=actuated)
            # the acceleration is known to 1e-9 of gravity's, of what Kane's equations make of it
            assert_allclose(found, tau, rtol=0, atol=1e-9 * weight)
            system.tau[:] = found
            again = system.acceleration()
            system.tau[:] = 0.0
            assert_allclose(again, wanted, rtol=0, atol=1e-9 * np.abs(natural).max())


def test_a_balanced_passive_joint_asks_for_nothing():
    """A pendulum that hangs has a weight that is all rounding; a drive beside it may rest too."""
    m = empty_mechanism((0.0, 0.0, -9.81))
    load = Load(2.0, (0.5, 0.0, 0.0), (0.01, 0.1, 0.1))
    m = with_joint(m, "swings", "revolute", "bob", rpy=UP, load=load)
    m = with_joint(m, "driven", "revolute", "arm", xyz=(3.0, 0, 0), rpy=UP, load=load)
    system = bb.System(m)
    system.set_state(np.array([-np.pi / 2, -np.pi / 2]))
    tau = bb.inverse_dynamics(system, np.zeros(2), actuated=["driven"])
    assert_allclose(tau, 0.0, atol=1e-14 * 2.0 * 9.81)
