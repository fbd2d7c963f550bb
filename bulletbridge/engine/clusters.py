"""Factors cluster by cluster at a configuration, as a backend, and the end of a step by them.

The equations are those of ``dense``.
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.block_sizes import LANES
from bulletbridge.compilation.jit import clear_blocks, helper, outlined
from bulletbridge.constraints.drift import drift
from bulletbridge.constraints.prescribed import prescribed_rates
from bulletbridge.constraints.rows import add_rows
from bulletbridge.engine.backend import KktBackend
from bulletbridge.engine.dense import applied_forces
from bulletbridge.engine.plausible import find_least
from bulletbridge.engine.records import (
    BY_CLUSTERS,
    CHART,
    DENSE_REQUIRED,
    DONE,
    RIGHT_SIDE,
    SOLUTION,
    Arrays,
    Instant,
)
from bulletbridge.engine.sparse import update_positions, update_positions_apart
from bulletbridge.engine.sparse_backend import move_back
from bulletbridge.engine.step_end import ending
from bulletbridge.mechanism.dynamics import clear, composite_inertias, impedance, mass_row
from bulletbridge.mechanism.force_elements import coordinates, impedance_along, pull_along
from bulletbridge.numerics.clusters import (
    Cluster,
    Clusters,
    add_square,
    factor_clusters,
    meet_rows,
    own_size,
    solve_clusters,
    split_clusters,
    take_rows,
    trunk_size,
    whiten_forces,
    whiten_velocities,
)
from bulletbridge.numerics.projection import Row, multiply
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import copy_into


class ClusterFactors(NamedTuple):
    """Clusters of a system at one configuration."""

    e: Clusters
    J: Array  # (nc, nv) zeros, between uses
    owners: Ints  # (forces,) cluster that each force element is within, or TRUNK
    rows: Records[Row]


@helper
def column_of(k: int, columns: Ints) -> int:
    """Column of a rate in its cluster, or in the trunk."""
    return int(columns[k])


@helper
def put_masses(a: Arrays, e: Clusters) -> None:
    """M into the lines of the clusters, and of the trunk."""
    c, m = a.control, own_size(e)
    composite_inertias(a.bodies, a.beams, a.stations, a.poses)
    for place in range(len(e.rates)):
        k, line = int(e.rates[place]), e.L[place]
        clear(line, len(line))
        mass_row(column_of, e.columns, a.axes, a.poses, k, line)
        line[e.columns[k]] += impedance(a.axes[k], c.damper_dt, c.spring_dt)
        if place < trunk_size(e):
            copy_into(e.S[place], line[m:])


@outlined
def add_compliances(a: Arrays, e: Clusters, owners: Ints) -> None:
    """M <- M + damping D + stiffness K of the elements, as far ahead as factors take them."""
    c, row = a.control, a.vectors[CHART, : len(a.axes)]
    damping, stiffness = c.damper_dt, c.damper_dt * c.spring_dt
    clear(row, len(row))
    for i in range(len(a.efforts)):
        for n in range(coordinates(a.efforts[i])):
            weight = impedance_along(a.efforts, i, n, a.poses, a.axes, damping, stiffness)
            if weight != 0.0:
                pull_along(a.efforts, i, n, a.poses, a.axes, row)
                add_square(e, owners[i], weight, row)


@helper
def put_jacobian(a: Arrays, f: ClusterFactors, instant: Instant) -> None:
    """Rows of velocities, scaled, in columns of the clusters; their g_t.

    J is zero before and after: what constraints move is touched alone.
    """
    add_rows(a.loops, a.couplings, a.terms, a.poses, a.axes, instant.targets, f.J)
    prescribed_rates(a.loops, a.couplings, a.poses, instant.targets, f.rows)
    clear_blocks(f.e.B, 0, f.e.B.shape[0] * (f.e.B.shape[1] // LANES))
    for i in range(len(a.loops)):
        loop = a.loops[i]
        for end in range(2):
            k = loop.axis_b if end == 1 else loop.axis_a
            while k != loop.common_axis:
                put_column(f, loop.row, loop.rows, k)
                k = a.axes[k].below
    for i in range(len(a.couplings)):
        coupling = a.couplings[i]
        for n in range(coupling.first, coupling.first + coupling.count):
            put_column(f, coupling.row, 1, a.terms[n].axis)


@helper
def put_column(f: ClusterFactors, row: int, count: int, k: int) -> None:
    """What so many rows of J say of one rate to where it belongs; zero is left."""
    column = f.e.columns[k]
    for i in range(row, row + count):
        f.e.B[i, column] = f.rows[i].scale * f.J[i, k]
        f.J[i, k] = 0.0


@helper
def factorise(a: Arrays, f: ClusterFactors, instant: Instant) -> None:
    """Factors at the poses; DENSE_REQUIRED where other rows are independent than those decided."""
    c, e, rows = a.control, f.e, f.rows
    c.biased = 0
    put_masses(a, e)
    if c.damper_dt > 0.0 and len(a.efforts) > 0:
        add_compliances(a, e, f.owners)
    factor_clusters(e)
    put_jacobian(a, f, instant)
    if split_clusters(e, c.singular_rtol) != c.cap:
        c.failure = DENSE_REQUIRED
        return
    c.rank = c.filter_rank = c.cap
    place, last, weakest, longest = 0, c.cap, math.inf, 0.0
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        for i in range(one.rows):
            number = number_at(e, one, one.row + i)
            if i < one.kept:
                length = e.R[one.row + i, i]
                weakest, longest = min(weakest, length), max(longest, length)
                rows[place].pivot = number
                place += 1
            else:
                rows[last].pivot = number
                last += 1
    c.margin = weakest / longest if longest > 0.0 else 1.0


@outlined
def factor_at(a: Arrays, f: ClusterFactors, instant: Instant, q: Array, v: Array) -> None:
    """Poses, residuals and factors at q."""
    update_positions_apart(a, f, instant, q, v)
    factorise(a, f, instant)


@helper
def number_at(e: Clusters, one: Cluster, i: int) -> int:
    """Number of the row at place i of all clusters, one of this cluster's, once pivoted."""
    return int(e.numbers[one.row + e.rows[i].pivot])


GAP, RATE, DRIFT = range(3)
"""What is asked of rows: that they close, move or accelerate as is prescribed."""


@helper
def ask_rows(f: ClusterFactors, what: int, y: Array) -> None:
    """Right sides of the kept rows, R⁻¹ b, at their places."""
    e = f.e
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        for i in range(one.row, one.row + one.kept):
            row = f.rows[number_at(e, one, i)]
            value = row.g if what == GAP else -row.g_t if what == RATE else -row.gamma
            y[i] = row.scale * value
    take_rows(e, y)


@helper
def ask_nothing(f: ClusterFactors, y: Array) -> None:
    """Right sides of rows that hold what they are."""
    clear(y, len(f.e.numbers))


@helper
def admissible_acceleration(
    a: Arrays, f: ClusterFactors, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """What applied and bias forces do to the admissible velocities: P M⁻¹ (tau - h)."""
    applied_forces(a, q, v, tau, vdot)
    move_by(a, f, vdot)


@helper
def accelerate(
    a: Arrays, f: ClusterFactors, instant: Instant, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """Constrained acceleration vdot (nv,) with the factors of this configuration."""
    y = a.vectors[RIGHT_SIDE]
    applied_forces(a, q, v, tau, vdot)
    whiten_forces(f.e, vdot)
    drift(a.loops, a.couplings, a.terms, a.poses, a.axes, instant.targets, f.rows)
    ask_rows(f, DRIFT, y)
    solve_clusters(f.e, vdot, y)


@outlined
def accelerate_at(
    a: Arrays, f: ClusterFactors, instant: Instant, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """Constrained acceleration at a state whose factors are not yet known."""
    factor_at(a, f, instant, q, v)
    if a.control.failure == DONE:
        accelerate(a, f, instant, q, v, tau, vdot)


@helper
def correction_step(a: Arrays, f: ClusterFactors, rank: int) -> float:
    """Step J⁺ g of all kept rows into vectors[SOLUTION]; its length."""
    x, y = a.vectors[SOLUTION, : len(a.axes)], a.vectors[RIGHT_SIDE]
    ask_rows(f, GAP, y)
    length2 = meet_rows(f.e, x, y)
    return math.sqrt(max(length2, 0.0)) if length2 < math.inf else length2


@outlined
def bounded_correction(a: Arrays, f: ClusterFactors, rank: int, limit: float) -> None:
    """Step into vectors[SOLUTION] that goes no further than that.

    See ``dense.bounded_correction``; all kept rows are strong, and count as one direction.
    """
    length = correction_step(a, f, rank)
    if length > limit:
        multiply(a.vectors[SOLUTION, : len(a.axes)], limit / length)


@helper
def filter_velocity(a: Arrays, f: ClusterFactors, v: Array) -> None:
    """The nearest velocity in the metric of M that the constraints allow: v <- P v - J⁺ g_t."""
    y = a.vectors[RIGHT_SIDE]
    whiten_velocities(f.e, v)
    if a.control.driven > 0:
        ask_rows(f, RATE, y)
    else:
        ask_nothing(f, y)
    solve_clusters(f.e, v, y)


@helper
def move_by(a: Arrays, f: ClusterFactors, x: Array) -> None:
    """Forces (nv,) into what they do to the admissible velocities, P M⁻¹ x, in place."""
    y = a.vectors[RIGHT_SIDE]
    whiten_forces(f.e, x)
    ask_nothing(f, y)
    solve_clusters(f.e, x, y)


@helper
def admit(a: Arrays, f: ClusterFactors, force: Array, vdot: Array) -> None:
    """What forces (nv,) on the rates do to the admissible velocities: P M⁻¹ f."""
    copy_into(vdot, force)
    move_by(a, f, vdot)


@helper
def travelled(a: Arrays, f: ClusterFactors, v: Array) -> float:
    """Length of v in the metric of M."""
    return math.sqrt(2.0 * kinetic_energy(a, f, v))


@helper
def kinetic_energy(a: Arrays, f: ClusterFactors, v: Array) -> float:
    """Kinetic energy of the rates v (nv,), with the factors of M."""
    x = a.vectors[RIGHT_SIDE, : len(v)]
    copy_into(x, v)
    return 0.5 * max(whiten_velocities(f.e, x), 0.0)


@helper
def is_unexplained(a: Arrays, f: ClusterFactors) -> bool:
    """Whether rows beyond those that are independent have more of their own than was found."""
    e, c, left, longest = f.e, a.control, 0.0, 0.0
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        for i in range(one.row, one.row + one.rows):
            longest = max(longest, e.rows[i].full)
            if i >= one.row + one.kept:
                left = max(left, e.rows[i].left)
    c.unexplained = math.sqrt(left / longest) if longest > 0.0 else 0.0
    return c.unexplained > c.most_left


@outlined
def energy_of(a: Arrays, f: ClusterFactors, v: Array) -> float:
    """Kinetic energy [J] at the configuration of the factors, in their metric."""
    return kinetic_energy(a, f, v)


@outlined
def find_least_by_clusters(a: Arrays, f: ClusterFactors) -> None:
    """``plausible.find_least`` with factors of clusters."""
    find_least(filter_velocity, a, f)


CLUSTERS = KktBackend(
    BY_CLUSTERS, update_positions, update_positions_apart, factorise, factor_at,
    admissible_acceleration, accelerate, accelerate_at, correction_step, bounded_correction,
    move_back, filter_velocity, travelled, is_unexplained, energy_of, find_least_by_clusters,
)  # fmt: skip
CLUSTERS_END = ending(CLUSTERS)
