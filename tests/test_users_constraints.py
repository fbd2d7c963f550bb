"""Constraints that a user writes in Python, in the step."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.planar import planar_chain
from support.users_constraints import Failing, PointOnSphere

import bulletbridge as bb
from bulletbridge.constraints.encode import encode
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Tolerances


@pytest.mark.parametrize(
    "integrator", ["semi_implicit_euler", "rk4", "dop853", "heun", "nystrom4", "symmetric"]
)
def test_a_users_constraint_moves_like_the_built_in_one(integrator):
    ends = []
    built_in = bb.Distance("rod", bb.Frame("world"), bb.Frame("l2", (0.7, 0, 0)), 0.9)
    for constraint in (built_in, PointOnSphere(bb.Frame("l2", (0.7, 0, 0)), 0.9)):
        system = bb.System(
            planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4]),
            [constraint],
            dt=2e-3,
            integrator=integrator,
        )
        system.assemble({"j0": 1.0, "j1": -1.0})
        system.run(0.1)
        assert system.evaluate().largest("metres") < 1e-12
        ends.append(np.concatenate([system.q, system.v]))
    assert_allclose(ends[0], ends[1], atol=1e-11)


def test_an_exception_in_a_users_constraint_reaches_the_caller_and_undoes_the_step():
    constraint = Failing(bb.Frame("l2", (0.7, 0, 0)), 0.9)
    system = bb.System(planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4]), [constraint])
    system.assemble({"j0": 1.0})
    system.step()
    before = system.q
    constraint.broken = True
    with pytest.raises(ZeroDivisionError, match="mine"):
        system.step()
    assert_allclose(system.q, before, atol=0)
    constraint.broken = False
    system.step()


def test_a_wrench_is_that_of_the_jacobians():
    """Virtual work, by the motion of the point; a force on what stands still moves nothing."""
    rng = np.random.default_rng(0)
    system = bb.System(planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4]))
    system.set_state(rng.normal(size=3), rng.normal(size=3))
    kinematics = system.kinematics()
    for link in ("l0", "l1", "l2"):
        frame = bb.Frame(link, (0.3, -0.2, 0.1), (0.1, 0.2, 0.3))
        force, moment = rng.normal(size=(2, 3))
        point = kinematics.point(frame)
        expected = point.J.T @ force + point.J_angular.T @ moment
        assert_allclose(kinematics.wrench(frame, force, moment), expected, atol=1e-14)
    assert not kinematics.wrench(bb.Frame("world"), force, moment).any()


def test_gaps_alone_are_those_of_all_terms():
    """With rows of every origin: a loop, a coupling, a user's."""
    constraints = [
        bb.Distance("rod", bb.Frame("world"), bb.Frame("l1", (0.4, 0, 0)), 0.9),
        bb.Coupling("gear", {"j0": 1.0, "j2": -2.0}, offset=0.1),
        PointOnSphere(bb.Frame("l2", (0.7, 0, 0)), 0.9),
    ]
    rng = np.random.default_rng(0)
    for given in (constraints[:2], constraints):
        chain = planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4])
        solver = Solver(chain, encode(chain, tuple(given)), Tolerances())
        for q in rng.normal(size=(3, 3)):
            assert_allclose(solver.gaps_at(q, 0.3), solver.terms(q, np.zeros(3), 0.3).g, atol=0)
