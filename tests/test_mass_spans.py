"""Masses that are far apart: right accelerations or an error that says so, whatever finds them."""

import numpy as np
import pytest

import bulletbridge as bb
from bulletbridge.errors import StepError, UnsupportedError
from bulletbridge.formulations.elimination import Elimination
from bulletbridge.formulations.equations import Equations
from bulletbridge.formulations.quasi_velocities import square_root
from bulletbridge.formulations.registry import FORMULATIONS, formulation_of
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint

UP, TIP = (np.pi / 2, 0.0, 0.0), (1.0, 0.0, 0.0)
ENOUGH = 1e-4
"""Error relative to the largest acceleration: equations that lose half the digits are refused, and
what is left is multiplied by how much accelerations depend on it."""


def spread(masses) -> bb.System:
    """Two arms of three links that hold each other's hands, and a rod between their shoulders."""
    m = empty_mechanism((0.0, 0.0, -9.81))
    for k, kg in enumerate(masses):
        arm, n = "ab"[k // 3], k % 3
        load = Load(kg, (0.5, 0, 0), (0.01 * kg, 0.1 * kg, 0.1 * kg))
        on = "world" if n == 0 else f"{arm}{n - 1}"
        place = ((1.5 if arm == "b" else 0.0), 0.0, 0.0) if n == 0 else TIP
        turned = UP if n == 0 else (0.0, 0.0, 0.0)
        name = f"{arm}{n}"
        m = with_joint(m, f"j{name}", "revolute", name, on, place, turned, load)
    joints = [
        bb.LoopJoint("hands", bb.JointModel.BALL, bb.Frame("a2", TIP), bb.Frame("b2", TIP)),
        bb.Distance("rod", bb.Frame("a0", TIP), bb.Frame("b0", TIP), 1.2),
    ]
    system = bb.System(m, joints)
    start = {"ja0": 2.0, "ja1": -1.0, "ja2": -0.5, "jb0": 1.2, "jb1": 1.0, "jb2": 0.5}
    system.assemble(guess=start)
    return system


@pytest.mark.parametrize("formulation", [f for f in FORMULATIONS if f != "projector"])
@pytest.mark.parametrize(
    "masses",
    [
        (1e-6, 1e5, 1e-6, 1e5, 1e-6, 1e-6),
        (1e5, 1.0, 1e-6, 1.0, 1e-6, 1e-6),
        (1e-6, 1e5, 1e-6, 1e-6, 1e-6, 1e-6),
        (1.0, 1e5, 1e-6, 1e5, 1e5, 1e-6),
    ],
)
def test_accelerations_are_right_or_refused(formulation, masses):
    system = spread(masses)
    v = np.random.default_rng(3).standard_normal(6)
    system.set_state(v=v)
    exact = system.acceleration()
    try:
        found = formulation_of(formulation)(system.dynamics)(system.q, system.v, 0.0).vdot
    except UnsupportedError as error:
        assert "use" in str(error)
        return
    assert np.abs(found - exact).max() <= ENOUGH * np.abs(exact).max()


def indefinite() -> Equations:
    """A mass matrix that is not positive definite, as rounding may leave one; one row."""
    M = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0 - 1e-13]])
    J, zero = np.array([[1.0, 0.0, 0.0]]), np.zeros(1)
    return Equations(M, np.ones(3), J, zero, zero, zero, np.ones(1))


def test_a_mass_matrix_that_is_not_definite_is_said():
    with pytest.raises(StepError, match="mass matrix is not positive definite to double"):
        Elimination.solve(Elimination(None), indefinite())
    with pytest.raises(StepError, match="mass matrix is not positive definite to double"):
        indefinite().split()
    for root in ("tree", "cholesky", "symmetric"):
        with pytest.raises(StepError, match="mass matrix is not positive definite to double"):
            square_root(indefinite().M, root)
