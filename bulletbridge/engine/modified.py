"""Modified integration: an uncorrected velocity is carried, and corrected where it is used.

States are q and ξ. At every stage q moves by the velocity nearest to ξ that satisfies the rows, in
a metric H of choice, and ξ̇ is the acceleration there. Nothing else is corrected. The velocity of
the state is that by which q moves; ξ is kept beside it, and counts as long as the state is the one
that it was left with.

Source: Eun, Park, Lee and Chung 2004, eq. 38 to 40, with the bracket's sign put right; for any
system of equations, and other formulations, ``formulations.modified``.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.jit import bundling, helper, outlined
from bulletbridge.engine import dense
from bulletbridge.engine.correction import finite, kept_gap
from bulletbridge.engine.dense import (
    filter_velocity,
    orthonormalise,
    put_matrices,
    put_nearest,
    split,
    update_positions_apart,
)
from bulletbridge.engine.dense_backend import DENSE, DENSE_END
from bulletbridge.engine.explicit import A4, C4, stages_of
from bulletbridge.engine.plausible import find_least_dense
from bulletbridge.engine.radau_system import WAYS
from bulletbridge.engine.records import (
    DONE,
    IN_TWO_METRICS,
    MENTIONED,
    MODIFIED_EULER,
    MODIFIED_HEUN,
    NOT_FINITE,
    RATE,
    START_V,
    UNCORRECTED,
    Arrays,
    Control,
    Factors,
    Instant,
    SystemArrays,
    dense_factors,
)
from bulletbridge.engine.stages import SubStep
from bulletbridge.numerics.projection import factor_mass, whiten_rows
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.spatial import copy_into

MASS, CONDENSED, IDENTITY, GIVEN_METRIC = range(4)
METRICS = {"mass": MASS, "condensed": CONDENSED, "identity": IDENTITY}
"""Metrics by name: M; that of the coordinates that rows mention, the others condensed away; one.
Others are numbers that were given."""
METRIC = WAYS
"""Matrix of the arrays that holds given numbers: no implicit method is at work beside this one."""
ROUND_OFF = 1e-12
"""Entries of a column of rows, over the largest of all, that are the rounding of zeros: what took
them for more would differ from configuration to configuration."""
Q, V, XI, PLACES = 0, 1, 2, 3
"""Vectors of an uncorrected velocity: the state that it goes with, and itself."""

A1, C1 = np.array([[0.0], [1.0]]), np.array([0.0])
A2, C2 = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]), np.array([0.0, 1.0])


class TwoFactors(NamedTuple):
    """Splits of velocity space at one configuration."""

    f: Factors  # in the metric of M
    other: Factors  # in the metric of the integration, unless that is M, condensed or not
    H: Array  # (nv, nv) that metric, if its numbers were given


class ModifiedPair(NamedTuple):
    """Those at the start of a step and at its stages, which are the same ones."""

    f: TwoFactors
    stage: TwoFactors


@bundling
def pair_of(arrays: SystemArrays) -> ModifiedPair:
    """The factors of a system."""
    two = TwoFactors(dense_factors(arrays, 0), dense_factors(arrays, 1), arrays.L[METRIC])
    return ModifiedPair(two, two)


@outlined
def factor_at(a: Arrays, w: TwoFactors, instant: Instant, q: Array, v: Array) -> None:
    """Poses, residuals and both splits at q."""
    update_positions_apart(a, w.f, instant, q, v)
    put_matrices(a, w.f, instant)
    kind = a.control.weighting
    if kind == CONDENSED:
        find_mentioned(a, w.f)
    elif kind != MASS:
        put_other(a, w)
        if kind == GIVEN_METRIC:
            factor_mass(w.other.L)
            whiten_rows(w.other.L, w.other.Y)
        a.control.metric_rank = orthonormalise(a, w.other)[1]
    split(a, w.f)


@helper
def find_mentioned(a: Arrays, f: Factors) -> None:
    """Which coordinates any row mentions, the size of their columns."""
    sizes, most = a.vectors[MENTIONED, : f.Y.shape[1]], 0.0
    for k in range(len(sizes)):
        sizes[k] = 0.0
        for i in range(f.Y.shape[0]):
            row = f.rows[i]
            sizes[k] = max(sizes[k], abs(row.unit / row.scale * f.Y[i, k]))
        most = max(most, sizes[k])
    for k in range(len(sizes)):
        if not sizes[k] > ROUND_OFF * most:
            sizes[k] = 0.0


@helper
def put_other(a: Arrays, w: TwoFactors) -> None:
    """The metric and the rows to be split in it."""
    L, Y, kind = w.other.L, w.other.Y, a.control.weighting
    for i in range(L.shape[0]):
        for j in range(i + 1):
            if kind == GIVEN_METRIC:
                L[i, j] = w.H[i, j]
            else:
                L[i, j] = 1.0 if i == j else 0.0
        w.other.first[i] = 0
    for i in range(Y.shape[0]):
        w.other.rows[i].g_t = w.f.rows[i].g_t
        copy_into(Y[i], w.f.Y[i])


@helper
def correct(a: Arrays, w: TwoFactors, v: Array) -> None:
    """The velocity nearest to v that the rows allow, with the splits of this configuration.

    On the coordinates that rows mention M⁻¹ is the inverse of their condensed mass, so that there
    the velocity nearest in its metric is that nearest in the metric of M; the others stay.
    """
    kind, kept, sizes = a.control.weighting, a.vectors[RATE], a.vectors[MENTIONED]
    if kind == MASS or kind == CONDENSED:
        if kind == CONDENSED:
            copy_into(kept, v)
        filter_velocity(a, w.f, v)
        if kind == CONDENSED:
            for k in range(len(v)):
                if sizes[k] == 0.0:
                    v[k] = kept[k]
    else:
        put_nearest(a, w.other, a.control.metric_rank, v)


@helper
def is_of(a: Arrays, place: int, q: Array, v: Array) -> bool:
    """Whether the uncorrected velocity at a place, plus one, goes with this state."""
    if place == 0:
        return False
    row = UNCORRECTED + PLACES * (place - 1)
    for j in range(len(q)):
        if a.vectors[row + Q, j] != q[j]:
            return False
    for k in range(len(v)):
        if a.vectors[row + V, k] != v[k]:
            return False
    return True


@helper
def accelerate(
    a: Arrays, w: TwoFactors, instant: Instant, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """Acceleration at the start of a step; ξ is what goes with the state, else its velocity.

    The place of the last one stays free of what a step that fails leaves: the state that it is then
    put back to goes with it.
    """
    c: Control = a.control
    if not is_of(a, c.uncorrected, q, v):
        c.uncorrected, c.uncorrected_before = c.uncorrected_before, c.uncorrected
    if is_of(a, c.uncorrected, q, v):
        row = UNCORRECTED + PLACES * (c.uncorrected - 1)
        copy_into(a.vectors[START_V, : len(v)], a.vectors[row + XI])
    else:
        c.uncorrected = c.uncorrected_before = 0
        correct(a, w, v)
    dense.accelerate(a, w.f, instant, q, v, tau, vdot)


@outlined
def accelerate_at(
    a: Arrays, w: TwoFactors, instant: Instant, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """Acceleration at a stage, whose v becomes that by which q moves."""
    factor_at(a, w, instant, q, v)
    if a.control.failure == DONE:
        correct(a, w, v)
        dense.accelerate(a, w.f, instant, q, v, tau, vdot)


@helper
def modified_stages(
    accelerate_at: Callable[..., None],
    a: Arrays,
    s: ModifiedPair,
    part: SubStep,
    q: Array,
    v: Array,
) -> tuple[float, float]:
    """All stages but the first; arguments and result are those of ``explicit_stages``."""
    A, C = A4, C4
    if a.control.integrator == MODIFIED_EULER:
        A, C = A1, C1
    elif a.control.integrator == MODIFIED_HEUN:
        A, C = A2, C2
    return stages_of(A, C, accelerate_at, a, s, part, q, v)


@helper
def end_modified(a: Arrays, w: TwoFactors, end: Instant, q: Array, v: Array) -> None:
    """The end of a step, where v is ξ: keep it, and make v the velocity by which q moves."""
    c: Control = a.control
    if not finite(v) or not finite(q):
        c.failure = NOT_FINITE
        return
    factor_at(a, w, end, q, v)
    if c.failure != DONE:
        return
    c.uncorrected, c.uncorrected_before = 2 if c.uncorrected == 1 else 1, c.uncorrected
    row = UNCORRECTED + PLACES * (c.uncorrected - 1)
    copy_into(a.vectors[row + XI, : len(v)], v)
    correct(a, w, v)
    copy_into(a.vectors[row + V, : len(v)], v)
    copy_into(a.vectors[row + Q, : len(q)], q)
    kept_gap(a, w.f.rows, c.rank)
    c.factored, c.guarded, c.correction_passes = IN_TWO_METRICS, 0, 0
    if not finite(v):
        c.failure = NOT_FINITE


@helper
def energy_of(a: Arrays, w: TwoFactors, v: Array) -> float:
    """Kinetic energy [J] at the configuration of the factors."""
    return dense.energy_of(a, w.f, v)


@helper
def find_least(a: Arrays, w: TwoFactors) -> None:
    """See ``plausible.find_least``."""
    find_least_dense(a, w.f)


MODIFIED = DENSE._replace(
    factored=IN_TWO_METRICS,
    factor_at=factor_at,
    accelerate=accelerate,
    accelerate_at=accelerate_at,
    energy_of=energy_of,
    find_least=find_least,
)
MODIFIED_END = DENSE_END._replace(stabilise_step=end_modified)
