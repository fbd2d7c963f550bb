"""The compiled filter where links are eliminated; see ``filter_kernel``."""

from bulletbridge.compilation.jit import kernel
from bulletbridge.engine.dense import set_implicit_horizon
from bulletbridge.engine.records import (
    DONE,
    NOT_FACTORED,
    Arrays,
    Instant,
    SystemArrays,
)
from bulletbridge.engine.sparse_backend import SPARSE
from bulletbridge.engine.sparse_kernel import SparseArrays, factors_of
from bulletbridge.inequalities.link_rows import LinkArrays, link_rows_of
from bulletbridge.inequalities.link_sticking import LINK_POINTS, LinkPoints
from bulletbridge.inequalities.state_filter import filtering
from bulletbridge.mechanism.records import StickingPoint
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import copy_into

filter_state = filtering(SPARSE, LINK_POINTS)


@kernel
def run_sparse_filter(
    sparse: SparseArrays,
    arrays: SystemArrays,
    link: LinkArrays,
    sticking_points: Records[StickingPoint],
    sticking_rows: Array,
    points: Array,
    multipliers: Array,
    targets: Array,
    before: Array,
    numbers: Array,
    count: int,
    free: int,
) -> int:
    """``run_filter`` by elimination of links.

    DENSE_REQUIRED if rows are weak, or points stick to bodies that hang on one another.
    """
    c, state = arrays.control[0], arrays.state
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
    f = factors_of(sparse, arrays, 0)
    h = LinkPoints(sticking_points[:count], sticking_rows[1], link_rows_of(link, f, 1))
    for n in range(2):
        for i in range(multipliers.shape[1]):
            multipliers[n, i] = 0.0
        for i in range(3 * count):
            points[n, i] = 0.0
    now, q, v = Instant(state[nq + nv], targets[0]), state[:nq], state[nq : nq + nv]
    filter_state(a, f, h, now, q, v, multipliers, points, 0.0, free)
    if c.failure != DONE:
        copy_into(state, before)
        c.factored = NOT_FACTORED
        return c.failure
    for k in range(nq + nv):
        numbers[k] = state[k]
    return DONE
