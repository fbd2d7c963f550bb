"""The compiled filter where links are eliminated; see ``filter_kernel``."""

from bulletbridge.compilation.jit import kernel
from bulletbridge.engine.records import BY_SPARSE, DONE, Instant, SystemArrays, arrays_of
from bulletbridge.engine.sparse_backend import SPARSE
from bulletbridge.engine.sparse_kernel import SparseArrays, factors_of
from bulletbridge.inequalities.filter_kernel import (
    FilterRoom,
    give_filtered,
    share_of_correction,
    take_found,
)
from bulletbridge.inequalities.link_rows import LinkArrays, link_rows_of
from bulletbridge.inequalities.link_sticking import LINK_POINTS, link_points_of
from bulletbridge.inequalities.state_filter import filtering
from bulletbridge.numerics.records import Array

filter_state, factor_at = filtering(SPARSE, LINK_POINTS), SPARSE.factor_at


@kernel
def run_sparse_filter(
    sparse: SparseArrays,
    arrays: SystemArrays,
    link: LinkArrays,
    room: FilterRoom,
    numbers: Array,
    count: int,
    free: int,
    led: int,
) -> int:
    """``run_filter`` by elimination of links.

    DENSE_REQUIRED if rows are weak, or points stick to bodies that hang on one another.
    """
    take_found(arrays, room, numbers)
    a, nv = arrays_of(arrays), len(arrays.axes)
    f = factors_of(sparse, arrays, 0)
    h = link_points_of(room.holding, count, link_rows_of(link, f, 1))
    state, nq = arrays.state, len(numbers) - nv
    now = Instant(state[nq + nv], room.targets[0])
    share = share_of_correction(a, led, BY_SPARSE)
    if share > 0.0 and a.control.factored != BY_SPARSE:
        factor_at(a, f, now, room.before[:nq], room.before[nq : nq + nv])
        a.control.factored = BY_SPARSE
    if a.control.failure == DONE:
        filter_state(a, f, h, now, state[:nq], state[nq : nq + nv], share, free)
    return give_filtered(arrays, room, numbers)
