"""Steps by elimination in link coordinates: the equations of ``step_kernel``, other factors."""

from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.engine.backend import Stages
from bulletbridge.engine.explicit import explicit_stages
from bulletbridge.engine.records import (
    CHARTS,
    DENSE_REQUIRED,
    DOP8,
    RADAU,
    SystemArrays,
    arrays_of,
)
from bulletbridge.engine.sparse import SparseFactors
from bulletbridge.engine.sparse_backend import SPARSE, SPARSE_END
from bulletbridge.engine.sparse_border import Border
from bulletbridge.engine.stages import no_stages
from bulletbridge.engine.substeps import stepping
from bulletbridge.engine.tasks import STEP, evaluating
from bulletbridge.numerics.multifrontal import Elimination, Join
from bulletbridge.numerics.records import Array, Ints, Records

advance = stepping(SPARSE, SPARSE_END, Stages(explicit_stages, no_stages))
evaluate = evaluating(SPARSE, SPARSE_END)


class SparseArrays(NamedTuple):
    """Plan, factors and scratch of eliminations, as of ``Elimination`` and ``Border``.

    Those with a first dimension of two are for the start and for the stages of a step.
    """

    fronts: np.ndarray  # (2, n)
    boundary: Ints
    widths: Ints
    places: Ints
    joins: Records[Join]
    numbers: Ints  # (2, ..)
    kept: Ints  # (2, nc)
    motion: Array  # (2, nv, k)
    inertia: Array  # (2, nb, k, k)
    extra: Array  # (2, nv)
    wrench: Array  # (2, nc, 2, k)
    ties: Records[Join]
    pulls: Array  # (2, n, 2, k)
    weights: Array  # (2, n)
    further: Records[Join]
    arms: Array  # (2, n, 2, k)
    soft: Array  # (nc,) none
    update: Array
    factors: Array  # (2, ..)
    W: Array
    column: Array
    y: Array
    twists: Array  # (2, nb, k): wrenches, twists
    right: Array  # (nc,)
    Y: Array  # (2, most + 1, k nb + 2 nv + n)
    R: Array  # (2, most, most)
    border_rows: np.ndarray  # (2, most)
    border_numbers: Ints  # (2, most)
    shares: Array  # (2, most)
    counts: Ints  # (2, 4)
    join_of: Ints  # (nc,)
    basis: Array  # (k, 6)


class SparsePair(NamedTuple):
    """Factors at the start and at the stages of a step."""

    f: SparseFactors
    stage: SparseFactors


@helper
def factors_of(s: SparseArrays, arrays: SystemArrays, n: int) -> SparseFactors:
    """Set n of the factors, as helpers take it."""
    e = Elimination(
        s.fronts[n], s.boundary, s.widths, s.places, s.joins, s.numbers[n], s.kept[n], s.motion[n],
        s.inertia[n], s.extra[n], s.wrench[n], s.ties, s.pulls[n], s.weights[n], s.further,
        s.arms[n], s.wrench.shape[1], s.soft, s.soft, s.soft, s.update, s.factors[n], s.W, s.column,
        s.y, s.twists[0], s.twists[1], s.right,
    )  # fmt: skip
    border = Border(s.Y[n], s.R[n], s.border_rows[n], s.border_numbers[n], s.shares[n], s.counts[n])
    return SparseFactors(e, border, s.join_of, s.basis, arrays.rows[n])


@kernel
def run_sparse(
    sparse: SparseArrays,
    arrays: SystemArrays,
    targets: Array,
    tau: Array,
    record: Array,
    task: int,
    first: int,
    steps: int,
) -> int:
    """Do a task of ``step_kernel.run``, or steps ``first`` to ``steps``; DONE, or a failure.

    Implicit methods and charts, whose matrices are full, are DENSE_REQUIRED.
    """
    c = arrays.control[0]
    if task == STEP and (c.integrator == RADAU or c.integrator >= CHARTS):
        c.done, c.taken, c.rejected = first, 0, 0
        return DENSE_REQUIRED
    a = arrays_of(arrays)
    other = 0 if c.integrator == DOP8 else 1  # its last stage is at the end of the step
    s = SparsePair(factors_of(sparse, arrays, 0), factors_of(sparse, arrays, other))
    if task == STEP:
        return advance(a, s, arrays.state, targets, tau, record, first, steps)
    return evaluate(a, s, arrays.state, targets, tau, task)
