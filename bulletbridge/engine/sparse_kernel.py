"""Steps by elimination in link coordinates: the same equations as ``step_kernel``, other factors.

What needs a decision (a row that may be redundant here, a correction that gains too little) is not
decided here: the state before the step is restored and the step handed over to
``step_kernel.run``, whose ranks and guards hold for both.
"""

from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.constraints.records import Coupling, Loop, Term
from bulletbridge.engine.backend import KktBackend
from bulletbridge.engine.explicit import explicit_stages
from bulletbridge.engine.records import (
    BY_SPARSE,
    DENSE_REQUIRED,
    DOP8,
    RADAU,
    START,
    Arrays,
    Control,
)
from bulletbridge.engine.sparse import (
    SparseFactors,
    accelerate,
    accelerate_at,
    admissible_acceleration,
    factor_at,
)
from bulletbridge.engine.sparse_correction import energy_of, find_least_sparse, stabilise_step
from bulletbridge.engine.stages import no_stages
from bulletbridge.engine.substeps import stepping
from bulletbridge.mechanism.records import Axis, Beam, Body, Effort, Pose, Station
from bulletbridge.numerics.multifrontal import Elimination, Join
from bulletbridge.numerics.records import Array, Ints, Records


class SparsePair(NamedTuple):
    """Factors at the start and at the stages of a step."""

    f: SparseFactors
    stage: SparseFactors


@helper
def dense_required(c: Control) -> bool:
    """Implicit methods, whose matrices are full, and ways to correct that ask for ranks."""
    return c.integrator == RADAU or c.passes >= 0 or c.directions != START


advance = stepping(
    KktBackend(
        BY_SPARSE,
        factor_at,
        admissible_acceleration,
        accelerate,
        accelerate_at,
        explicit_stages,
        no_stages,
        stabilise_step,
        energy_of,
        find_least_sparse,
    )
)


@kernel
def run_sparse(
    fronts: Array,
    boundary: Ints,
    widths: Ints,
    places: Ints,
    joins: Records[Join],
    numbers: Ints,
    kept: Ints,
    basis: Array,
    motion: Array,
    inertia: Array,
    extra: Array,
    wrench: Array,
    update: Array,
    factors: Array,
    W: Array,
    column: Array,
    y: Array,
    twists: Array,
    right: Array,
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    efforts: Records[Effort],
    poses: Records[Pose],
    axes: Records[Axis],
    loops: Records[Loop],
    couplings: Records[Coupling],
    terms: Records[Term],
    user_jacobian: Array,
    rows: Array,
    vectors: Array,
    state: Array,
    control: Records[Control],
    targets: Array,
    tau: Array,
    record: Array,
    first: int,
    steps: int,
) -> int:
    """Do steps ``first`` to ``steps``: DONE, a failure, or HANDED_OVER at step ``control.done``.

    The arrays of the elimination are those of ``multifrontal.Elimination``, with two sets of
    fronts, numbers, kept, motion, inertia, extra, wrench, factors: for the start and for the stages
    of a step. basis (k, 6) spans the twists of the links, twists (2, nb, k). The others are those
    of ``step_kernel.run``.
    """
    c = control[0]
    if dense_required(c):
        c.done, c.taken, c.rejected = first, 0, 0
        return DENSE_REQUIRED
    a = Arrays(
        bodies, beams, stations, efforts, poses, axes, loops, couplings, terms, user_jacobian,
        rows[2], vectors, c,
    )  # fmt: skip
    f = SparseFactors(
        Elimination(
            fronts[0], boundary, widths, places, joins, numbers[0], kept[0], motion[0], inertia[0],
            extra[0], wrench[0], update, factors[0], W, column, y, twists[0], twists[1], right,
        ),
        basis, rows[0],
    )  # fmt: skip
    m = 0 if c.integrator == DOP8 else 1  # its last stage is at the end of the step
    stage = SparseFactors(
        Elimination(
            fronts[m], boundary, widths, places, joins, numbers[m], kept[m], motion[m], inertia[m],
            extra[m], wrench[m], update, factors[m], W, column, y, twists[0], twists[1], right,
        ),
        basis, rows[m],
    )  # fmt: skip
    s = SparsePair(f, stage)
    return advance(a, s, state, targets, tau, record, first, steps)
