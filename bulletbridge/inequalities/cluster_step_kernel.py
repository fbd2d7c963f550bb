"""The compiled step with motors and limits cluster by cluster: ``step_kernel``, other factors."""

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.engine.clusters import (
    CLUSTERS,
    CLUSTERS_END,
    ClusterFactors,
    admit,
    move_by,
)
from bulletbridge.engine.clusters_kernel import ClusterArrays, factors_of
from bulletbridge.engine.records import (
    DENSE_REQUIRED,
    DONE,
    NOT_FACTORED,
    RIGHT_SIDE,
    Arrays,
    Instant,
    SystemArrays,
    arrays_of,
)
from bulletbridge.inequalities.arrays import STEP, Given, InequalityArrays
from bulletbridge.inequalities.impulses import (
    DEAD,
    AdmissibleSpace,
    Asked,
    InequalityProblem,
    RowCounts,
    keep_raw,
    kill,
)
from bulletbridge.inequalities.row_impulses import NO_SUPPLIES
from bulletbridge.inequalities.step_kernel import InequalityBackend, stepping_with_inequalities
from bulletbridge.mechanism.records import ContactPoint
from bulletbridge.numerics.clusters import (
    cluster_of,
    prepare_lengths,
    release_clusters,
    restrict_clusters,
    trunk_size,
)
from bulletbridge.numerics.independent_rows import HIGH, LOW
from bulletbridge.numerics.projection import square
from bulletbridge.numerics.records import Array, Records


@helper
def restrict(a: Arrays, f: ClusterFactors, h: InequalityProblem, n: int) -> tuple[int, int]:
    """``impulses.restrict`` of the first n rows, all of which may be on the trunk."""
    e, near = f.e, 0
    low, high = h.problem.slopes[LOW], h.problem.slopes[HIGH]
    prepare_lengths(e)
    for i in range(n):
        keep_raw(h, i)
        first, end, axis = 0, len(e.clusters), int(h.axes[i])
        if axis >= 0:
            found = cluster_of(e, axis, near)
            near = max(found, 0)
            first, end = near, found + 1
        full = restrict_clusters(e, h.raw[i], first, end, h.C[i])
        low[i] = high[i] = trunk_size(e)
        if first < end:
            low[i] = e.clusters[first].first
            high[i] = e.clusters[end - 1].first + e.clusters[end - 1].rates
        h.lengths[i] = full
        if not square(h.C, i) >= DEAD * full or full == 0.0:
            kill(h, i)
    return trunk_size(e), len(e.rates)


@helper
def release(a: Arrays, f: ClusterFactors, h: InequalityProblem, n: int, x: Array) -> None:
    """Velocities of what is free, whitened, in place."""
    release_clusters(f.e, x, a.vectors[RIGHT_SIDE])


@helper
def no_compliances(
    a: Arrays, f: ClusterFactors, asked: Asked, q: Array, rows: RowCounts, v: Array
) -> RowCounts:
    """Nothing: there are no contacts."""
    return rows


@helper
def nothing_loose(
    f: ClusterFactors, h: InequalityProblem, n: int, tolerance: float, v: Array
) -> None:
    """Nothing, likewise."""


@helper
def leads_nothing(
    a: Arrays,
    f: ClusterFactors,
    h: InequalityProblem,
    rows: RowCounts,
    tolerance: float,
    v: Array,
) -> bool:
    """Likewise: there are loops."""
    return False


@helper
def no_points(
    a: Arrays,
    f: ClusterFactors,
    own: InequalityArrays,
    stuck: int,
    end: Instant,
    q: Array,
    v: Array,
) -> bool:
    """Likewise."""
    return False


CLUSTER_INEQUALITIES = InequalityBackend(
    CLUSTERS,
    CLUSTERS_END.finish_after,
    move_by,
    admit,
    AdmissibleSpace(restrict, release, no_compliances, nothing_loose, leads_nothing),
    NO_SUPPLIES,
    no_points,
)
do_by_clusters = stepping_with_inequalities(CLUSTER_INEQUALITIES)


@kernel
def run_by_clusters(
    clusters: ClusterArrays,
    arrays: SystemArrays,
    own: InequalityArrays,
    given: Given,
    contact_points: Records[ContactPoint],
    task: int,
    steps: int,
) -> int:
    """Advance by steps without contacts as ``run_inequalities`` does; DONE or DENSE_REQUIRED.

    A step that does not come to its end is left to the whole, with the state before it.
    """
    c = arrays.control[0]
    if task != STEP or len(contact_points) > 0:
        c.done = 0
        return DENSE_REQUIRED
    a, f = arrays_of(arrays), factors_of(clusters, arrays, 0)
    failure = do_by_clusters(a, f, arrays.state, own, given, contact_points, task, steps)
    if failure != DONE:
        c.failure, c.factored = DENSE_REQUIRED, NOT_FACTORED
    return c.failure
