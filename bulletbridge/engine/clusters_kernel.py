"""Steps cluster by cluster: the equations of ``step_kernel``, other factors."""

from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.engine.backend import Stages
from bulletbridge.engine.clusters import CLUSTERS, CLUSTERS_END, ClusterFactors
from bulletbridge.engine.explicit import explicit_stages
from bulletbridge.engine.records import (
    CHARTS,
    DENSE_REQUIRED,
    DOP8,
    RADAU,
    SystemArrays,
    arrays_of,
)
from bulletbridge.engine.stages import no_stages
from bulletbridge.engine.substeps import stepping
from bulletbridge.numerics.clusters import Clusters
from bulletbridge.numerics.records import Array, Ints

advance = stepping(CLUSTERS, CLUSTERS_END, Stages(explicit_stages, no_stages))


class ClusterArrays(NamedTuple):
    """Plan, factors and scratch of clusters, as of ``Clusters``.

    Those with a first dimension of two are for the start and for the stages of a step.
    """

    clusters: np.ndarray  # (2, n)
    rates: Ints  # (nv,)
    columns: Ints  # (nv,)
    owners: Ints  # (forces,)
    numbers: Ints  # (nc,)
    L: Array  # (2, nv, m + t)
    V: Array  # (2, n (m + t), m)
    roots: Array  # (2, 2, n, m)
    B: Array  # (nc, m + t)
    C: Array  # (2, nc, t)
    Y: Array  # (2, nc, m)
    R: Array  # (2, nc, most)
    rows: np.ndarray  # (2, nc)
    S: Array  # (2, rates of the trunk, t)
    K: Array  # (2, 2, rates of the trunk, t)
    N: Array  # (rates of the trunk, t)
    inverses: Array  # (2, 2, t)
    u: Array  # (2, t)
    Z: Array  # (n, m + t)
    W: Array  # (n, m)
    shares: Array  # (nc,)
    J: Array  # (nc, nv)


class ClusterPair(NamedTuple):
    """Factors at the start and at the stages of a step."""

    f: ClusterFactors
    stage: ClusterFactors


@helper
def factors_of(s: ClusterArrays, arrays: SystemArrays, n: int) -> ClusterFactors:
    """Set n of the factors, as helpers take it."""
    e = Clusters(
        s.clusters[n], s.rates, s.columns, s.numbers, s.L[n], s.V[n], s.roots[n], s.B,
        s.C[n], s.Y[n], s.R[n], s.rows[n], s.S[n], s.K[n], s.N, s.inverses[n], s.u, s.Z, s.W,
        s.shares,
    )  # fmt: skip
    return ClusterFactors(e, s.J, s.owners, arrays.rows[n])


@kernel
def run_clusters(
    clusters: ClusterArrays,
    arrays: SystemArrays,
    targets: Array,
    tau: Array,
    record: Array,
    first: int,
    steps: int,
) -> int:
    """Do steps ``first`` to ``steps`` as ``step_kernel.run`` does; DONE, or a failure.

    Implicit methods and charts, whose matrices are full, are DENSE_REQUIRED.
    """
    c = arrays.control[0]
    if c.integrator == RADAU or c.integrator >= CHARTS:
        c.done, c.taken, c.rejected = first, 0, 0
        return DENSE_REQUIRED
    a = arrays_of(arrays)
    other = 0 if c.integrator == DOP8 else 1  # its last stage is at the end of the step
    s = ClusterPair(factors_of(clusters, arrays, 0), factors_of(clusters, arrays, other))
    return advance(a, s, arrays.state, targets, tau, record, first, steps)
