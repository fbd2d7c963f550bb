"""Rates of the mass matrix and of the Jacobian along a motion, and inertial forces of two."""

import numpy as np

from bulletbridge.constraints.row_rates import RowRecords, jacobian_rate
from bulletbridge.engine.workspace import SolverArrays, Terms
from bulletbridge.mechanism.rates import TreeRates, UnloadedTree, inertial_forces, mass_rates
from bulletbridge.numerics.records import Array

NO_GRAVITY = np.zeros(3)
MOVES = "v", "a", "rate", "acceleration"
"""Fields of prescribed motions that are not positions."""


def mass_rates_at(solver: SolverArrays, terms: Terms, directions: Array) -> Array:
    """Rates of M (n, nv, nv) along velocities (n, nv).

    Args:
        solver: Whose arrays.
        terms: At the configuration.
        directions: Velocities.
    """
    n, nv = directions.shape
    M_rates = np.empty((n, nv, nv))
    rates = TreeRates(np.empty_like(terms.poses), np.empty_like(terms.axes))
    tree = solver.bodies, terms.beams, terms.stations, terms.poses, terms.axes
    mass_rates(*tree, directions, rates, M_rates)
    return M_rates


def matrix_rates_at(
    solver: SolverArrays, terms: Terms, v: Array, t: float, in_time: bool
) -> tuple[Array, Array]:
    """Rates of M (nv, nv) and of J (nc, nv) along a velocity v (nv,); zero for users' rows.

    Args:
        solver: Whose arrays.
        terms: At the configuration.
        v: Along which.
        t: Time [s].
        in_time: Whether prescribed motions go on.
    """
    nv, e = len(v), solver.encoded
    M_rate, J_rate = np.empty((1, nv, nv)), np.empty((e.nc, nv))
    rates = TreeRates(np.empty_like(terms.poses), np.empty_like(terms.axes))
    tree = solver.bodies, terms.beams, terms.stations, terms.poses, terms.axes
    mass_rates(*tree, v[None], rates, M_rate)
    targets = solver.targets_at(t)
    if not in_time and e.motions:
        for name in MOVES:
            targets[name] = 0.0
    rows = RowRecords(e.loops, e.couplings, e.terms)
    jacobian_rate(rows, terms.poses, terms.axes, targets, rates, v, J_rate)
    return M_rate[0], J_rate


def inertial_forces_at(solver: SolverArrays, terms: Terms, directions: Array, v: Array) -> Array:
    """Coriolis and centrifugal forces (n, nv) as a bilinear form of directions (n, nv) and v.

    Args:
        solver: Whose arrays.
        terms: At the configuration.
        directions: The first velocities.
        v: The second (nv,).
    """
    forces, sums = np.empty_like(directions), np.empty((2, len(v)))
    carried = solver.bodies, terms.beams, terms.stations, solver.efforts[:0]
    tree = UnloadedTree(*carried, terms.poses.copy(), terms.axes.copy(), NO_GRAVITY)
    inertial_forces(tree, directions, v, sums, forces)
    return forces
