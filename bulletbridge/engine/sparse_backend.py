"""Factors in link coordinates as a backend, and the end of a step by them."""

import math
from typing import Any

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.backend import KktBackend
from bulletbridge.engine.dense import take_away
from bulletbridge.engine.plausible import find_least
from bulletbridge.engine.records import (
    BY_SPARSE,
    FORCE,
    RIGHT_SIDE,
    SOLUTION,
    Arrays,
)
from bulletbridge.engine.sparse import (
    SparseFactors,
    accelerate,
    accelerate_at,
    admissible_acceleration,
    factor_at,
    factorise,
    update_positions,
    update_positions_apart,
)
from bulletbridge.engine.sparse_border import (
    ELIMINATED,
    LISTED,
    TAKEN,
    add_share,
    meet_targets,
    note_targets,
    project_out,
)
from bulletbridge.engine.step_end import ending
from bulletbridge.numerics.multifrontal_solutions import (
    carry,
    row_rates,
    solve,
    twice_kinetic_energy,
)
from bulletbridge.numerics.projection import multiply, shortened
from bulletbridge.numerics.records import Array


@helper
def correction_step(a: Arrays, f: SparseFactors, rank: int) -> float:
    """Step J⁺ g into vectors[SOLUTION]; its length."""
    nv, rows = len(a.axes), f.rows
    y, x, none = a.vectors[RIGHT_SIDE], a.vectors[SOLUTION, :nv], a.vectors[FORCE, :nv]
    for k in range(nv):
        none[k] = 0.0
    for i in range(len(rows)):
        y[i] = rows[i].scale * rows[i].g
    note_targets(f.border, y)
    solve(f.e, none, y, x, y)
    length2 = 0.0
    for i in range(len(rows)):
        length2 -= y[i] * rows[i].scale * rows[i].g
    length2 += meet_targets(f.e, f.border, f.join_of, rank - f.border.counts[ELIMINATED], x)
    return math.sqrt(max(length2, 0.0)) if length2 < math.inf else length2


@outlined
def bounded_correction(a: Arrays, f: SparseFactors, rank: int, limit: float) -> None:
    """Step that goes no further than that along any direction left over, nor along all others.

    See ``dense.bounded_correction``; what the eliminated rows ask for is one direction.
    """
    x, y, b = a.vectors[SOLUTION, : len(a.axes)], a.vectors[RIGHT_SIDE], f.border
    length = correction_step(a, f, rank)
    if not length > limit:
        return
    count, length2 = rank - b.counts[ELIMINATED], length * length
    for j in range(count):
        add_share(b, j, -1.0, x)
        length2 -= b.shares[j] * b.shares[j]
        b.shares[j] = shortened(b.shares[j], limit)
    length = math.sqrt(max(length2, 0.0))
    if length > limit:
        multiply(x, limit / length)
        multiply(y[: len(f.rows)], limit / length)
    for j in range(count):
        add_share(b, j, 1.0, x)


@helper
def move_back(a: Arrays, f: Any, q: Array) -> None:
    """Take the step in vectors[SOLUTION] away from q, and keep the sum of such steps."""
    take_away(a, q)


@helper
def filter_velocity(a: Arrays, f: SparseFactors, v: Array) -> None:
    """The nearest velocity in the metric of M that the constraints allow: v <- P v - J⁺ g_t."""
    nv, e, rows = len(v), f.e, f.rows
    none, x, y = a.vectors[FORCE, :nv], a.vectors[SOLUTION, :nv], a.vectors[RIGHT_SIDE]
    carry(e, v)
    row_rates(e, y)
    for i in range(len(rows)):
        y[i] = -y[i] - rows[i].scale * rows[i].g_t
    for k in range(nv):
        none[k] = 0.0
    solve(e, none, y, x, y)
    for k in range(nv):
        v[k] += x[k]
    if f.border.counts[TAKEN] > 0:
        filter_left_over(a, f, v)


@outlined
def filter_left_over(a: Arrays, f: SparseFactors, v: Array) -> None:
    """The same for what the elimination has left over."""
    b, y = f.border, a.vectors[RIGHT_SIDE]
    if a.control.driven == 0:
        project_out(f.e, b, b.counts[TAKEN], v)
        return
    for i in range(len(f.rows)):
        y[i] = -f.rows[i].scale * f.rows[i].g_t
    note_targets(b, y)
    carry(f.e, v)
    meet_targets(f.e, b, f.join_of, b.counts[TAKEN], v)


@helper
def travelled(a: Arrays, f: SparseFactors, v: Array) -> float:
    """Length of v in the metric of M."""
    return math.sqrt(twice_kinetic_energy(f.e, v))


@helper
def is_unexplained(a: Arrays, f: SparseFactors) -> bool:
    """Whether rows beyond those that are independent have more of their own than was found.

    An elimination sees what is left of them to the root of round-off alone; where it sees
    something, they were split.
    """
    return f.border.counts[LISTED] > 0 and a.control.unexplained > a.control.most_left


@outlined
def energy_of(a: Arrays, f: SparseFactors, v: Array) -> float:
    """Kinetic energy [J] at the configuration of the factors, in their metric."""
    return 0.5 * twice_kinetic_energy(f.e, v)


@outlined
def find_least_sparse(a: Arrays, f: SparseFactors) -> None:
    """``plausible.find_least`` with factors in link coordinates."""
    find_least(filter_velocity, a, f)


SPARSE = KktBackend(
    BY_SPARSE,
    update_positions,
    update_positions_apart,
    factorise,
    factor_at,
    admissible_acceleration,
    accelerate,
    accelerate_at,
    correction_step,
    bounded_correction,
    move_back,
    filter_velocity,
    travelled,
    is_unexplained,
    energy_of,
    find_least_sparse,
    repeats=True,
)
SPARSE_END = ending(SPARSE)
