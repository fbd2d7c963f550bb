"""The compiled filter where links are eliminated; see ``filter_kernel``."""

from bulletbridge.compilation.jit import kernel
from bulletbridge.engine.dense import set_implicit_horizon
from bulletbridge.engine.records import (
    DONE,
    NOT_FACTORED,
    Instant,
    SystemArrays,
    arrays_of,
)
from bulletbridge.engine.sparse_backend import SPARSE
from bulletbridge.engine.sparse_kernel import SparseArrays, factors_of
from bulletbridge.inequalities.link_rows import LinkArrays, link_rows_of
from bulletbridge.inequalities.link_sticking import LINK_POINTS, link_points_of
from bulletbridge.inequalities.state_filter import filtering
from bulletbridge.inequalities.sticking import FilterArrays, forget_impulses
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.spatial import copy_into

filter_state = filtering(SPARSE, LINK_POINTS)


@kernel
def run_sparse_filter(
    sparse: SparseArrays,
    arrays: SystemArrays,
    link: LinkArrays,
    holding: FilterArrays,
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
    a = arrays_of(arrays)
    set_implicit_horizon(a, 0.0)  # an impulse leaves no time for springs to give way
    f = factors_of(sparse, arrays, 0)
    h = link_points_of(holding, count, link_rows_of(link, f, 1))
    forget_impulses(holding)
    now, q, v = Instant(state[nq + nv], targets[0]), state[:nq], state[nq : nq + nv]
    filter_state(a, f, h, now, q, v, 0.0, free)
    if c.failure != DONE:
        copy_into(state, before)
        c.factored = NOT_FACTORED
        return c.failure
    for k in range(nq + nv):
        numbers[k] = state[k]
    return DONE
