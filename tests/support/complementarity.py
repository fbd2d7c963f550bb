"""Complementarity problems on their own, by the solver or one of its ways, all in one kernel."""

import numpy as np

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.numerics.complementarity import (
    ANYWHERE,
    LIGHTEST,
    follow_smoothed_path,
    solve_complementarity,
)
from bulletbridge.numerics.complementarity_rows import (
    ComplementarityProblem,
    Room,
    RowBounds,
    complementarity_problem,
)
from bulletbridge.numerics.interior_path import Course, approach
from bulletbridge.numerics.parts import plan_parts
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.smoothed_path import path_ending_in

SOLVER, PATH, PATH_TO_ITS_END, INSIDE = range(4)
"""Ways: the solver; the path of smooth problems, ended by Newton's method or by nothing else; the
path inside of all bounds alone."""


@helper
def leave_open(_p: ComplementarityProblem, _n: int, _tolerance: float) -> tuple[float, int]:
    """An end of the path that solves nothing."""
    return np.inf, 0


follow_by_itself = path_ending_in(leave_open)


@kernel
def solve_by(
    way: int,
    D: Array,
    b: Array,
    bounds: Records[RowBounds],
    x: Array,
    w: Array,
    room: Room,
    asked: tuple[float, float],
) -> tuple[float, int]:
    """Residual and steps from x, in place, rows weighted alike.

    ``asked``: the tolerance, and of INSIDE an energy. There both tolerance and residual are shares.
    Of SOLVER the weight of rows, as a share of the diagonal, if it is to be more than the least.
    """
    tolerance, energy = asked
    n = len(b)
    p = complementarity_problem(D, b, bounds, x, w, room)
    if way != SOLVER:
        for i in range(n):
            p.diagonal[i], p.right[i] = D[i, i], b[i]
    plan_parts(p, n)
    if way == INSIDE:
        return approach(p, n, energy, Course(0.0, tolerance, 0.99, 25, False))
    if way == PATH:
        return follow_smoothed_path(p, n, tolerance)
    if way == PATH_TO_ITS_END:
        return follow_by_itself(p, n, tolerance)
    for i in range(n):
        p.weights[i], p.centre[i] = max(LIGHTEST, energy) * D[i, i], 0.0
    o = solve_complementarity(p, n, tolerance, ANYWHERE)
    return o.residual, o.newton
