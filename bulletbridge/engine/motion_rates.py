"""The Coriolis matrix, and with it the rates of M and J along a motion."""

from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.row_rates import RowRecords, jacobian_rate
from bulletbridge.engine.workspace import SolverArrays, Terms
from bulletbridge.mechanism.rates import TreeRates, coriolis_matrix
from bulletbridge.numerics.records import Array, copied

MOVES = "v", "a", "rate", "acceleration"
"""Fields of prescribed motions that are not positions."""


class MotionRates(NamedTuple):
    """How a tree's matrices change along a velocity."""

    C: Array  # (nv, nv) Coriolis matrix; C + Cᵀ is the rate of M
    J_rate: Array  # (nc, nv) of the rows; zero for users'


def motion_rates_at(
    solver: SolverArrays, terms: Terms, v: Array, t: float, in_time: bool = True
) -> MotionRates:
    """Rates of the matrices of a tree along a velocity v (nv,).

    Args:
        solver: Whose arrays.
        terms: At the configuration.
        v: Along which.
        t: Time [s].
        in_time: Whether prescribed motions go on.
    """
    nv, e = len(v), solver.encoded
    C, J_rate = np.empty((nv, nv)), np.empty((e.nc, nv))
    rates = TreeRates(copied(terms.poses), copied(terms.axes))  # faster than np.empty_like
    tree = solver.bodies, terms.beams, terms.stations, terms.poses, terms.axes
    coriolis_matrix(*tree, v, rates, C)
    if not e.nc:
        return MotionRates(C, J_rate)
    targets = solver.targets_at(t)
    if not in_time and e.motions:
        for name in MOVES:
            targets[name] = 0.0
    rows = RowRecords(e.loops, e.couplings, e.terms)
    jacobian_rate(rows, terms.poses, terms.axes, targets, rates, v, J_rate)
    return MotionRates(C, J_rate)
