"""The compiled filter where links are eliminated; see ``filter_kernel``."""

from bulletbridge.compilation.jit import kernel
from bulletbridge.engine.records import SystemArrays
from bulletbridge.engine.sparse_backend import SPARSE
from bulletbridge.engine.sparse_kernel import SparseArrays, factors_of
from bulletbridge.inequalities.filter_kernel import FilterRoom, finding
from bulletbridge.inequalities.link_rows import LinkArrays, link_rows_of
from bulletbridge.inequalities.link_sticking import LINK_POINTS, link_points_of
from bulletbridge.inequalities.state_filter import filtering
from bulletbridge.numerics.records import Array

filter_found = finding(SPARSE, filtering(SPARSE, LINK_POINTS))


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
    f = factors_of(sparse, arrays, 0)
    h = link_points_of(room.holding, count, link_rows_of(link, f, 1))
    return filter_found(arrays, f, h, room, numbers, free, led)
