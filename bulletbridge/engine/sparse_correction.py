"""End of a step with sparse factors: correction, factors, velocity filter.

The equations, tolerances and guards are those of ``correction`` and ``stabilise_step``. What needs
a decision, as a correction that gains too little, is HANDED_OVER.
"""

import math

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.constraints.left_out import fastest_left_out, leaves_out_rates
from bulletbridge.engine.correction import (
    FAILED,
    MOST_CHORD_PASSES,
    PROMISED,
    finite,
    tolerance,
)
from bulletbridge.engine.plausible import find_least
from bulletbridge.engine.records import (
    BY_SPARSE,
    CORRECTION,
    DENSE_REQUIRED,
    DONE,
    EULER,
    FORCE,
    RIGHT_SIDE,
    SOLUTION,
    VERLET,
    Arrays,
    Instant,
)
from bulletbridge.engine.sparse import SparseFactors, accelerate, poses_and_gaps, prepare
from bulletbridge.engine.verlet import second_half
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.multifrontal import Elimination
from bulletbridge.numerics.multifrontal_solutions import (
    carry,
    row_rates,
    solve,
    twice_kinetic_energy,
)
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Records


@helper
def stabilise_step(a: Arrays, f: SparseFactors, end: Instant, q: Array, v: Array) -> None:
    """Correct the configuration, make the factors there, filter the velocity; report failures."""
    c = a.control
    correction = a.vectors[CORRECTION, : len(v)]
    for k in range(len(v)):
        correction[k] = 0.0
    c.guarded = 0
    enough = tolerance(a, q)
    c.correction_passes = correct(a, f.e, f.rows, end, q, v, enough)
    if c.correction_passes == FAILED or not finite(v) or not finite(q):
        c.failure = DENSE_REQUIRED
        return
    prepare(a, f, end)
    if c.failure != DONE:
        return
    if c.integrator == EULER or c.integrator == VERLET:
        for k in range(len(v)):
            v[k] += correction[k] / c.dt
    if c.integrator == VERLET:
        second_half(accelerate, filter_velocity, a, f, end, q, v)
    filter_velocity(a, f, v)
    c.factored = BY_SPARSE
    loose = PROMISED * enough
    open = c.left > loose or dependent_gap(f.e, f.rows) > c.mismatch + loose
    if leaves_out_rates(a.loops):
        moving, _ = fastest_left_out(a.loops, a.poses, a.axes, end.targets, c.length, v, True)
        open = open or moving >= 0
    if open or not finite(v):
        c.failure = DENSE_REQUIRED


@helper
def correct(
    a: Arrays, e: Elimination, rows: Records[Row], end: Instant, q: Array, v: Array, enough: float
) -> int:
    """``correction.chord_passes`` with the factors of an elimination."""
    nv = len(a.axes)
    y, x = a.vectors[RIGHT_SIDE], a.vectors[SOLUTION, :nv]
    none, correction = a.vectors[FORCE, :nv], a.vectors[CORRECTION, :nv]
    limit, last = a.control.guard_floor, math.inf
    for k in range(nv):
        none[k] = 0.0
    for n in range(MOST_CHORD_PASSES + 1):
        poses_and_gaps(a, rows, end, q)
        gap = kept_gap(e, rows)
        a.control.gap = gap
        if gap <= enough:
            return n
        if n == MOST_CHORD_PASSES or not gap < 0.1 * last:
            return n if gap <= 10.0 * enough else FAILED
        if n == 0:
            limit += 0.1 * a.control.dt * math.sqrt(twice_kinetic_energy(e, v))
        last = gap
        for i in range(len(rows)):
            e.right[i] = rows[i].scale * rows[i].g
        solve(e, none, e.right, x, y)
        length2 = 0.0
        for i in range(len(rows)):
            length2 -= y[i] * rows[i].scale * rows[i].g
        if not length2 <= limit * limit:
            return FAILED
        displace(a.bodies, q, x, -1.0, q)
        for k in range(nv):
            correction[k] -= x[k]
    return FAILED


@helper
def kept_gap(e: Elimination, rows: Records[Row]) -> float:
    """Largest residual of the rows solved for, each divided by its unit."""
    gap = 0.0
    for i in range(len(rows)):
        size = abs(rows[i].unit * rows[i].g)
        if e.kept[i] and (size > gap or math.isnan(size)):  # a NaN stays
            gap = size
    return gap


@helper
def dependent_gap(e: Elimination, rows: Records[Row]) -> float:
    """Largest residual of the rows that should follow from the others."""
    gap = 0.0
    for i in range(len(rows)):
        if not e.kept[i]:
            gap = max(gap, abs(rows[i].unit * rows[i].g))
    return gap


@helper
def filter_velocity(a: Arrays, f: SparseFactors, v: Array) -> None:
    """The nearest velocity in the metric of M that the constraints allow: v <- P v - J⁺ g_t."""
    nv, e, rows = len(v), f.e, f.rows
    none, x, y = a.vectors[FORCE, :nv], a.vectors[SOLUTION, :nv], a.vectors[RIGHT_SIDE]
    carry(e, v)
    row_rates(e, e.right)
    for i in range(len(rows)):
        e.right[i] = -e.right[i] - rows[i].scale * rows[i].g_t
    for k in range(nv):
        none[k] = 0.0
    solve(e, none, e.right, x, y)
    for k in range(nv):
        v[k] += x[k]


@outlined
def find_least_sparse(a: Arrays, f: SparseFactors) -> None:
    """``plausible.find_least`` with factors in link coordinates."""
    find_least(filter_velocity, a, f)


@outlined
def energy_of(a: Arrays, f: SparseFactors, v: Array) -> float:
    """Kinetic energy [J] at the configuration of the factors, in their metric."""
    return 0.5 * twice_kinetic_energy(f.e, v)
