"""The compiled filter where links are eliminated and nothing sticks; see ``filter_kernel``."""

from typing import Any

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.engine.dense import set_implicit_horizon
from bulletbridge.engine.records import (
    DENSE_REQUIRED,
    DONE,
    NOT_FACTORED,
    RIGHT_SIDE,
    Arrays,
    Instant,
    SystemArrays,
)
from bulletbridge.engine.sparse import SparseFactors
from bulletbridge.engine.sparse_backend import (
    SPARSE,
    correction_step,
    filter_velocity,
    move_back,
)
from bulletbridge.engine.sparse_border import TAKEN
from bulletbridge.engine.sparse_kernel import SparseArrays, factors_of
from bulletbridge.inequalities.state_filter import PointBackend, filtering
from bulletbridge.mechanism.dynamics import composite_inertias
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.spatial import copy_into


@helper
def no_points(a: Arrays, h: Any) -> int:
    """Rows of sticking points: none."""
    return 0


@helper
def look_at_factors(a: Arrays, f: SparseFactors, h: Any, count: int) -> int:
    """Inertias for the momentum. Weak rows, whose impulses are not at hand, are refused."""
    composite_inertias(a.bodies, a.beams, a.stations, a.poses)
    if f.border.counts[TAKEN] > 0:
        a.control.failure = DENSE_REQUIRED
    return 0


@helper
def forget_none(h: Any, kept: int) -> int:
    """Nothing sticks."""
    return 0


@helper
def correct(
    a: Arrays,
    f: SparseFactors,
    h: Any,
    kept: int,
    count: int,
    q: Array,
    rank: int,
    limit: float,
    loops: Array,
    points: Array,
) -> None:
    """One pass with the factors at hand."""
    correction_step(a, f, rank)
    move_back(a, f, q)
    add_multipliers(a, f, 1.0, loops)


@helper
def filter_by_links(
    a: Arrays, f: SparseFactors, h: Any, kept: int, v: Array, loops: Array, points: Array
) -> None:
    """Take the nearest velocity in the metric of M that the constraints allow."""
    filter_velocity(a, f, v)
    add_multipliers(a, f, -1.0, loops)


@helper
def add_multipliers(a: Arrays, f: SparseFactors, sign: float, loops: Array) -> None:
    """Add the multipliers of the last solution, which are those of scaled rows."""
    for i in range(len(f.rows)):
        loops[i] += sign * f.rows[i].scale * a.vectors[RIGHT_SIDE, i]


filter_state = filtering(
    SPARSE, PointBackend(no_points, look_at_factors, forget_none, correct, filter_by_links)
)


@kernel
def run_sparse_filter(
    sparse: SparseArrays,
    arrays: SystemArrays,
    multipliers: Array,
    targets: Array,
    before: Array,
    numbers: Array,
    count: int,
    free: int,
) -> int:
    """``run_filter`` by elimination of links; DENSE_REQUIRED if points stick or rows are weak."""
    c, state = arrays.control[0], arrays.state
    if count > 0:
        return DENSE_REQUIRED
    nv, nq = len(arrays.axes), len(state) - len(arrays.axes) - 1
    copy_into(before, state)
    for k in range(nq + nv):
        state[k] = numbers[k]
    state[nq + nv] += c.dt
    a = Arrays(
        arrays.bodies, arrays.beams, arrays.stations, arrays.efforts, arrays.poses, arrays.axes,
        arrays.loops, arrays.couplings, arrays.terms, arrays.user_jacobian, arrays.rows[2],
        arrays.vectors, c,
    )  # fmt: skip
    set_implicit_horizon(a, 0.0)  # an impulse leaves no time for springs to give way
    for n in range(2):
        for i in range(multipliers.shape[1]):
            multipliers[n, i] = 0.0
    now, q, v = Instant(state[nq + nv], targets[0]), state[:nq], state[nq : nq + nv]
    filter_state(
        a, factors_of(sparse, arrays, 0), 0, now, q, v, multipliers, multipliers, 0.0, free
    )
    if c.failure != DONE:
        copy_into(state, before)
        c.factored = NOT_FACTORED
        return c.failure
    for k in range(nq + nv):
        numbers[k] = state[k]
    return DONE
