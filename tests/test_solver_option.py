"""The linear algebra of a step can be asked for by name."""

import pickle

import numpy as np
import pytest
from support.contact_planes import ContactPlanes
from support.planar import planar_chain
from support.users_constraints import PointOnSphere
from test_islands import several
from test_links import row

import bulletbridge as bb
from bulletbridge.engine.islands import IslandStepper
from bulletbridge.engine.sparse_plan import SparseStepper
from bulletbridge.errors import ModelError

STEPPED_BY = {"dense": type(None), "islands": IslandStepper, "sparse": SparseStepper}
CRANKS = {"crank0": 1.0, "crank1": 0.7}, {"crank0": 1.0, "crank1": 2.0}


@pytest.mark.parametrize("solver", STEPPED_BY)
def test_a_solver_that_is_named_is_taken_and_goes_the_same_way(solver):
    ends = []
    for name in (solver, "auto"):
        system = bb.System(*(several() if solver == "islands" else row(3)), dt=1e-3, solver=name)
        system.assemble(*(CRANKS if solver == "islands" else ({"rod0": 1.0}, {"rod0": 1.0})))
        system.rollout(50)
        ends.append(np.concatenate([system.q, system.v]))
        if name == solver:
            assert isinstance(system._active.solver.stepper, STEPPED_BY[solver])
            assert isinstance(
                pickle.loads(pickle.dumps(system))._active.solver.stepper, STEPPED_BY[solver]
            )
    # both close loops to round-off, 1e-15, in each of 50 steps; velocities are positions over dt
    np.testing.assert_allclose(*ends, rtol=0, atol=50 * 1e-15 / 1e-3)


def test_constraints_that_come_later_keep_the_solver():
    mechanism, constraints = row(3)
    system = bb.System(mechanism, constraints[:1], solver="sparse")
    system.assemble()
    system.connect(constraints[1], assemble=True)
    assert isinstance(system._active.solver.stepper, SparseStepper)
    before = system.q, system.v, [c.name for c in system.constraints]
    with pytest.raises(ModelError, match="solver='sparse' does not know constraints of users"):
        system.connect(PointOnSphere(bb.Frame("rod3"), 3.0), assemble=True)
    assert [c.name for c in system.constraints] == before[2]
    np.testing.assert_array_equal(system.q, before[0])
    system.step()


def test_what_sparse_steps_do_not_know_is_named():
    system = bb.System(*several(), solver="sparse")
    with pytest.raises(ModelError, match="does not know flexible links; leave solver out"):
        system.assemble(*CRANKS)


@pytest.mark.parametrize("solver", ["islands", "sparse"])
def test_steps_that_are_always_dense_refuse_others(solver):
    chain = planar_chain([0.5, 0.4], [1.0, 2.0])
    floor = ContactPlanes([(0, 0, 1)], (0.5, 0.5), (0, 0, 1))
    for options in (
        *([{"limits": "always"}] if solver == "sparse" else []),
        {"formulation": "elimination"},
        {"velocity_filter": False},
    ):
        with pytest.raises(ModelError, match=f"solver='{solver}' is for compiled steps"):
            bb.System(chain, solver=solver, **options)
    with pytest.raises(ModelError, match=f"solver='{solver}' is for compiled steps"):
        bb.System(chain, world=floor, contacts=True, solver=solver)


def test_unknown_solvers_are_named():
    with pytest.raises(ModelError, match="unknown solver 'links'; there are auto, dense, sparse"):
        bb.System(planar_chain([0.5], [1.0]), solver="links")
