"""Derivatives of accelerations and multipliers with respect to the state and the forces."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.engine.derivatives import Differentiator
from bulletbridge.engine.step_adjoint import StepAdjoint
from bulletbridge.engine.step_differentiator import StepDifferentiator
from bulletbridge.engine.stepper import Solver
from bulletbridge.inequalities.contact_variations import RowsAt
from bulletbridge.numerics.records import Array
from bulletbridge.system.parameter_derivatives import ParameterDifferentiator
from bulletbridge.system.tangents import lengths_of


class Derivatives(NamedTuple):
    """How accelerations and forces of constraints answer to small changes of state and forces.

    Columns by q are displacements (nv,) of the configuration: rates that act for a unit of time, as
    of ``kinematics.displace``. A floating base turns about its origin and moves, both in world
    axes; a spherical joint turns in body axes. All matrices are those of the equations of the kept
    rows, off the loops too: v̇ changes by ``acceleration_by_q @ dq`` whether dq keeps them closed or
    not.

    Attributes:
        rates: (nv,) names of the rates, which also name displacements and forces on them.
        rows: (nc,) names of the multipliers: the constraint's, with the number of its kept row.
        acceleration: (nv,) v̇ at the state [rad/s² or m/s²].
        acceleration_by_q: (nv, nv) by displacements [rad or m].
        acceleration_by_v: (nv, nv) by rates.
        acceleration_by_tau: (nv, nv) by forces on the rates [N m or N]; symmetric.
        multipliers: (nc,) λ at the state [N or N m]: forces of the rows as ``Reaction`` has them.
            Of rows that are dependent there, some are zero.
        multipliers_by_q: (nc, nv)
        multipliers_by_v: (nc, nv)
        multipliers_by_tau: (nc, nv)
        parameters: (n,) names of the parameters that were asked for.
        acceleration_by_parameters: (nv, n) by their units, at this q and v: where a place opens a
            loop, the loop is not closed again.
        multipliers_by_parameters: (nc, n)
    """

    rates: tuple[str, ...]
    rows: tuple[str, ...]
    acceleration: Array
    acceleration_by_q: Array
    acceleration_by_v: Array
    acceleration_by_tau: Array
    multipliers: Array
    multipliers_by_q: Array
    multipliers_by_v: Array
    multipliers_by_tau: Array
    parameters: tuple[str, ...]
    acceleration_by_parameters: Array
    multipliers_by_parameters: Array


def equations_of(solver: Solver) -> Differentiator:
    """What differentiates the equations of a solver, whatever else acts in steps.

    Raises:
        UnsupportedError: It has what is written in Python, or beams; the message names it.
    """
    if solver.differentiator is None:
        solver.differentiator = Differentiator(solver)
    found = solver.differentiator
    assert isinstance(found, Differentiator)
    return found


def filtering(solver: Solver, q: Array, v: Array, t: float) -> Array:
    """What filtered rates change by (nv, nv), as a state that satisfies all rows is displaced."""
    equations, nv = equations_of(solver), len(v)
    rate = equations.at(q, v, t, np.zeros(nv)).rate.copy()
    # M δv = Jᵀ δμ, J δv + ∂(J v + g_t) = 0
    return equations.answer(np.zeros((nv, nv)), rate)[0]


def derivatives_at(
    solver: Solver, constraints: Sequence[Constraint], parameters: Sequence[str]
) -> Derivatives:
    """Derivatives at the state of a solver, by its equations alone, whatever else acts in steps.

    Args:
        solver: Of the kept rows.
        constraints: What they were encoded of.
        parameters: Names.
    """
    differentiator = equations_of(solver)
    found = differentiator.at(solver.q, solver.v, solver.t, solver.tau[0])
    nv = len(solver.v)
    of_q, of_v, of_tau = (slice(k * nv, (k + 1) * nv) for k in range(3))
    told = found.X.copy(), found.multipliers.copy()
    by = np.zeros((nv, 0)), np.zeros((len(found.lam), 0))
    if parameters:
        columns = ParameterDifferentiator(solver, constraints).columns(parameters, found)
        by = differentiator.answer(*columns)
    return Derivatives(
        rates=differentiator.rates,
        rows=differentiator.row_names,
        acceleration=found.vdot.copy(),
        acceleration_by_q=told[0][:, of_q],
        acceleration_by_v=told[0][:, of_v],
        acceleration_by_tau=told[0][:, of_tau],
        multipliers=found.lam.copy(),
        multipliers_by_q=told[1][:, of_q],
        multipliers_by_v=told[1][:, of_v],
        multipliers_by_tau=told[1][:, of_tau],
        parameters=tuple(parameters),
        acceleration_by_parameters=by[0],
        multipliers_by_parameters=by[1],
    )


def step_differentiator_of(solver: Solver) -> StepDifferentiator:
    """What differentiates the steps of a solver, whatever else acts in steps."""
    found = solver.step_differentiator
    if found is None:
        found = solver.step_differentiator = StepDifferentiator(solver, equations_of(solver))
    assert isinstance(found, StepDifferentiator)
    return found


def step_adjoint_of(solver: Solver, by_euler: bool = False) -> StepAdjoint:
    """What takes gradients back through the steps of a solver, where nothing else acts in them.

    Args:
        solver: Whose.
        by_euler: Whether they are Euler's, whatever its integrator.
    """
    steps = step_differentiator_of(solver)
    if solver.step_adjoint is None:
        solver.step_adjoint = StepAdjoint(steps)
    found = solver.step_adjoint
    assert isinstance(found, StepAdjoint)
    if not by_euler:
        found.require_known()
    return found


def contact_rows_of(solver: Solver) -> RowsAt:
    """What finds rows of contacts of the bodies of a solver, anywhere."""
    found, length = solver.contact_rows, float(solver.encoded.length)
    if not isinstance(found, RowsAt) or found.length != length:
        found = solver.contact_rows = RowsAt(solver, lengths_of(solver), length)
    return found
