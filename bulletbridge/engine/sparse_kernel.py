"""Steps by elimination in link coordinates: the same equations as ``step_kernel``, other factors.

What needs a decision (a row that may be redundant here, a correction that gains too little) is not
decided here: the state before the step is restored and the step handed over to
``step_kernel.run``, whose ranks and guards hold for both.
"""

from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.constraints.records import Coupling, Loop, Term
from bulletbridge.engine.backend import Way
from bulletbridge.engine.explicit import explicit_stages
from bulletbridge.engine.records import (
    DOP8,
    HANDED_OVER,
    OF_LINKS,
    RADAU,
    START,
    Arrays,
    Control,
)
from bulletbridge.engine.sparse import (
    LinkFactors,
    accelerate,
    accelerate_at,
    refresh,
    respond,
)
from bulletbridge.engine.sparse_correction import energy_of, find_least_of_links, finish
from bulletbridge.engine.stages import no_stages
from bulletbridge.engine.substeps import stepping
from bulletbridge.mechanism.records import Axis, Beam, Body, Effort, Pose, Station
from bulletbridge.numerics.multifrontal import Elimination, Join
from bulletbridge.numerics.records import Array, Ints, Records


class LinkPair(NamedTuple):
    """Factors at the start and at the stages of a step."""

    f: LinkFactors
    stage: LinkFactors


@helper
def left_to_joints(c: Control) -> bool:
    """Implicit methods, whose matrices are full, and ways to correct that ask for ranks."""
    return c.integrator == RADAU or c.passes >= 0 or c.directions != START


advance = stepping(
    Way(
        OF_LINKS,
        refresh,
        respond,
        accelerate,
        accelerate_at,
        explicit_stages,
        no_stages,
        finish,
        energy_of,
        find_least_of_links,
    )
)


@kernel
def run_links(
    fronts: Array,
    around: Ints,
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
    left: Array,
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
    if left_to_joints(c):
        c.done, c.taken, c.rejected = first, 0, 0
        return HANDED_OVER
    a = Arrays(
        bodies, beams, stations, efforts, poses, axes, loops, couplings, terms, user_jacobian,
        rows[2], vectors, c,
    )  # fmt: skip
    f = LinkFactors(
        Elimination(
            fronts[0], around, widths, places, joins, numbers[0], kept[0], motion[0], inertia[0],
            extra[0], wrench[0], left, factors[0], W, column, y, twists[0], twists[1], right,
        ),
        basis, rows[0],
    )  # fmt: skip
    m = 0 if c.integrator == DOP8 else 1  # its last stage is at the end of the step
    stage = LinkFactors(
        Elimination(
            fronts[m], around, widths, places, joins, numbers[m], kept[m], motion[m], inertia[m],
            extra[m], wrench[m], left, factors[m], W, column, y, twists[0], twists[1], right,
        ),
        basis, rows[m],
    )  # fmt: skip
    s = LinkPair(f, stage)
    return advance(a, s, state, targets, tau, record, first, steps)
