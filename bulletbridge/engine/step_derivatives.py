"""Derivative of one converged step: predictor, correction and velocity filter, by their equations.

Nothing that iterates is differentiated. The correction moves the prediction by c = M₀⁻¹ J₀ᵀ ν, in
the metric and along the rows of the step's start, until g(q₁) = 0; so

    ∂(M₀ c - J₀ᵀ ν) δq₀ + M₀ δc - J₀ᵀ δν = 0        J₁ δq₁ = 0

and the filter is M (v⁺ - v) = Jᵀ μ, J v⁺ + g_t = 0 at the end of the step. Both have terms of the
size of c and μ. What is left out: the correction is taken as one displacement by the sum of its
passes, which do not commute where bodies turn about more than one axis; that errs by the product of
two passes, of which the second one is smaller by what the rows turn in the step.
"""

from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.jit import caller, helper, kernel, outlined
from bulletbridge.compilation.stored_calls import call_stored
from bulletbridge.constraints.records import Target
from bulletbridge.constraints.row_derivatives import FORCE_ALONE, NO_ACCELERATION, RATE_ALONE
from bulletbridge.constraints.rows import jacobian
from bulletbridge.engine.dense import (
    accelerate,
    admissible_acceleration,
    factor_at,
    filter_velocity,
    forces_less_bias,
    place,
    put_bias_of_motion,
    set_implicit_horizon,
    solution_multipliers,
    update_positions,
)
from bulletbridge.engine.derivatives import (
    DerivativeArrays,
    add_asked_changes,
    ask_forces_of_solution,
    differentiate_acceleration,
    differentiate_equations,
    differentiate_motion,
    differentiate_solution,
    put_row_derivatives,
    split_of,
)
from bulletbridge.engine.explicit import A4, C4, combine
from bulletbridge.engine.records import (
    BY_DENSE,
    CHART,
    CORRECTION,
    DONE,
    EULER,
    FORCE,
    RK4,
    STAGE_Q,
    START_Q,
    START_V,
    TARGETS_PER_STEP,
    VERLET,
    Arrays,
    Factors,
    Instant,
    SystemArrays,
    arrays_of,
    dense_factors,
)
from bulletbridge.engine.solver_copy import take_numbers
from bulletbridge.engine.tasks import STEP
from bulletbridge.mechanism.derivatives import VariedTree, differentiate_joint_forces, vary_axes
from bulletbridge.mechanism.displacement_maps import (
    CARRIED,
    RATE_BY_U,
    RATE_BY_V,
    TURNED,
    put_displacement_maps,
    turn_columns,
    turn_lines,
    turns_alone,
)
from bulletbridge.mechanism.dynamics import add_impedance, mass_matrix
from bulletbridge.mechanism.force_derivatives import (
    differentiate_efforts,
    differentiate_elements,
    take_ahead,
    take_as_dampers,
)
from bulletbridge.mechanism.force_elements import add_compliance
from bulletbridge.mechanism.kinematics import displace, put_twists
from bulletbridge.mechanism.records import FREE, SPHERICAL, Body, Effort
from bulletbridge.numerics.lu import back_lines, lu_real
from bulletbridge.numerics.many_sides import add_product, respond, solve_down
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import copy_into

LONGEST = 1e-4
"""Turn [rad] of a body about three axes by a correction, beyond which what is left out could exceed
1e-8."""
NOT_PLAIN, TOO_FAR = -1, -2
"""Why a step has no derivatives: it was cut in parts, or corrected by other directions than those
of its start; it was corrected by turns of more than ``LONGEST``."""


class Columns(NamedTuple):
    """Changes along a step, a column for each way in which its start changes.

    Attributes:
        changes: (2 nv, m) of q, then of v.
        way: (nv, m) of a displacement.
        moved: (nv, m) of the correction.
        sides: (nc, m) right sides of rows.
    """

    changes: Array
    way: Array
    moved: Array
    sides: Array


class StepArrays(NamedTuple):
    """What derivatives of a step are put together in.

    Attributes:
        of_all: By displacements, rates and forces at the start, m = 3 nv.
        led: By displacements of the start and by the rates that lead from it, m = 2 nv: of steps
            that a single acceleration leads, whose forces do nothing else to positions.
        rates: (4, nv, 3 nv) of the rates of coordinates at the stages.
        pushes: (4, nv, 3 nv) of accelerations there.
        guess: (nv, 3 nv) of a displacement at a stage.
        earlier: (nv, 4 nv) rates after the first filter of Verlet's second half, by positions, by
            the rates that an acceleration is taken at, by those before and by forces.
        last: (nv, 2 nv) those after the last filter, by positions and the rates given to it.
        end: (nv, 4 nv) the same through the whole second half, as ``earlier``.
        parts: (nc, 4 nv) scratch, and
        of_last: (nc, 2 nv) likewise.
        rate_sides: (nc, nv) right sides of rows by positions.
        none: (nc, 0) none.
        maps: (2, 4, nv, 3) of the step's displacement, of the correction.
        M: (nv, nv) mass matrix at the end, with dampers and springs that act there.
        J: (nc, nv) rows there.
        metric: Force elements as dampers, as they act in that mass.
        metric_by_q: (nv, 2 nv) what they do with some rates, by positions.
        bent: (nv, nv) the correction by what positions do to its equations.
        Z: (nv, nc) corrections by a row of the start's each, orthonormal.
        bent_rows: (nc, nv) rows that hold rates alone, by positions, as the correction has them.
        ends: (nc, nv) rows of the end by corrections.
        slopes: (nc, nc) the same along Z, then its factors.
        turns: (nc,) of these.
        kept: (nc,) which rows of the start are kept.
        first: Factors that a step has started with.
        vectors: (5, nv) displacement, rates, guessed and filtered ones, zeros.
        counts: (3,) ranks that a step started with, of accelerations and of the filter; steps made.
    """

    of_all: Columns
    led: Columns
    rates: Array
    pushes: Array
    guess: Array
    earlier: Array
    last: Array
    end: Array
    parts: Array
    of_last: Array
    rate_sides: Array
    none: Array
    maps: Array
    M: Array
    J: Array
    metric: Records[Effort]
    metric_by_q: Array
    bent: Array
    Z: Array
    bent_rows: Array
    ends: Array
    slopes: Array
    turns: Array
    kept: Ints
    first: Factors
    vectors: Array
    counts: Ints


RANK, FILTER_RANK, MADE = range(3)
U, V, GUESS, FILTERED, ZEROS = range(5)
OF_STEP, OF_CORRECTION = 0, 1


@helper
def put_zeros(X: Array) -> None:
    """Make a matrix zero."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            X[i, j] = 0.0


@helper
def put_units(X: Array, first: int) -> None:
    """Make a matrix zero but for units from column ``first`` on."""
    put_zeros(X)
    for i in range(X.shape[0]):
        X[i, first + i] = 1.0


@helper
def put_matrix(X: Array, size: float, A: Array) -> None:
    """X <- size A."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            X[i, j] = size * A[i, j]


@helper
def add_matrix(X: Array, size: float, A: Array) -> None:
    """X += size A."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            X[i, j] += size * A[i, j]


@outlined
def put_displaced(a: Arrays, s: StepArrays, columns: Columns, u: Array, v: Array) -> None:
    """Changes of the start, displaced by u (nv,) that changes by ``way``, into those of q.

    Keeps the maps, with those of the rates of u at v; ``way`` is lost.
    """
    by_q, way, maps = columns.changes[: len(u)], columns.way, s.maps[OF_STEP]
    put_displacement_maps(a.bodies, u, v, maps)
    put_units(by_q, 0)
    turn_lines(a.bodies, maps[CARRIED], by_q)
    turn_lines(a.bodies, maps[TURNED], way)
    add_matrix(by_q, 1.0, way)


@outlined
def lead(a: Arrays, d: DerivativeArrays, s: StepArrays, part: float, v0: Array) -> None:
    """Where an acceleration over part [s] of a step leads, by displacements and the rates it makes.

    Takes v̇; leaves rates, those of the way, and changes of both.
    """
    nv, dt = len(a.axes), a.control.dt
    u, v, way = s.vectors[U, :nv], s.vectors[V, :nv], s.led.way
    put_units(s.led.changes[nv:], nv)
    put_zeros(way)
    for k in range(nv):
        way[k, nv + k] = dt
        v[k] = v0[k] + part * d.vdot[k]
        u[k] = dt * v[k]
    put_displaced(a, s, s.led, u, v)


@outlined
def put_led(led: Array, X: Array, part: float, changes: Array) -> None:
    """Changes (2 nv, 3 nv) by displacements, rates and forces, X (nv, 3 nv) the acceleration's."""
    for i in range(led.shape[0]):
        for j in range(led.shape[1]):
            changes[i, j] = led[i, j]
        for j in range(led.shape[1], changes.shape[1]):
            changes[i, j] = 0.0
    add_product(part, led, len(X), X, changes)


@outlined
def put_end_terms(a: Arrays, f: Factors, s: StepArrays, end: Instant) -> None:
    """M, as the factors have it, and J at the poses."""
    M = s.M
    mass_matrix(a.bodies, a.beams, a.stations, a.poses, a.axes, M)
    damper_dt, spring_dt = a.control.damper_dt, a.control.spring_dt
    if damper_dt > 0.0:
        row = a.vectors[CHART, : len(a.axes)]
        add_impedance(a.axes, damper_dt, spring_dt, M)
        add_compliance(a.efforts, a.poses, a.axes, damper_dt, damper_dt * spring_dt, row, M)
    for i in range(M.shape[0]):
        for j in range(i):
            M[j, i] = M[i, j]
    jacobian(a.loops, a.couplings, a.terms, a.poses, a.axes, end.targets, s.J, f.rows)


@outlined
def put_rate_derivatives(
    a: Arrays, d: DerivativeArrays, targets: Records[Target], v: Array
) -> None:
    """Derivatives of J v + g_t by positions into ``rate``, with variations of the axes at v."""
    put_twists(a.bodies, a.axes, v, a.poses)
    for k in range(len(v)):
        a.axes[k].rate = v[k]
    vary_axes(a.bodies, a.poses, a.axes, d.variations)
    put_row_derivatives(a, d, targets, v, RATE_ALONE)


@outlined
def put_rate_sides(
    a: Arrays, d: DerivativeArrays, s: StepArrays, now: Instant, v: Array, sides: Array
) -> None:
    """Right sides -∂(J v)/∂q (nc, nv or more), without what is prescribed."""
    put_rate_derivatives(a, d, now.targets, v)
    for i in range(len(d.lam)):
        for j in range(len(v)):
            sides[i, j] = -d.rate[i, j]
    if a.control.driven != 0:
        put_rate_derivatives(a, d, now.targets, s.vectors[ZEROS])
        for i in range(len(d.lam)):
            for j in range(len(v)):
                sides[i, j] += d.rate[i, j]


@outlined
def put_metric(a: Arrays, s: StepArrays) -> None:
    """Elements as dampers, as they act at these poses in the metric of a step."""
    for i in range(len(a.efforts)):
        effort, metric = a.efforts[i], s.metric[i]
        for n in range(len(effort.damping)):
            metric.damping[n], metric.stiffness[n] = effort.damping[n], effort.stiffness[n]
    take_as_dampers(s.metric, a.poses, a.axes, a.control.damper_dt, a.control.spring_dt)


@outlined
def put_metric_derivatives(
    a: Arrays, d: DerivativeArrays, s: StepArrays, now: Instant, w: Array
) -> None:
    """What dampers and springs of elements in the metric do with rates w, by positions."""
    if a.control.damper_dt > 0.0 and len(a.efforts) > 0:
        put_rate_derivatives(a, d, now.targets, w)
        put_zeros(s.metric_by_q)
        tree = VariedTree(a.bodies, a.poses, a.axes, d.variations)
        differentiate_elements(tree, s.metric, s.metric_by_q)


@helper
def add_metric_derivatives(a: Arrays, d: DerivativeArrays, s: StepArrays) -> None:
    """Add what ``put_metric_derivatives`` has found to F."""
    if a.control.damper_dt > 0.0 and len(a.efforts) > 0:
        for i in range(len(a.axes)):
            for j in range(len(a.axes)):
                d.F[i, j] += s.metric_by_q[i, j]


@outlined
def differentiate_admissible(
    a: Arrays,
    f: Factors,
    d: DerivativeArrays,
    s: StepArrays,
    now: Instant,
    q: Array,
    v: Array,
    tau: Array,
) -> None:
    """What forces do to admissible velocities, J v̇ = 0, as Euler's step takes it: v̇ and X.

    With the factors of this configuration.
    """
    a.control.t = now.t
    put_metric(a, s)
    admissible_acceleration(a, f, q, v, tau, d.vdot)
    needed = a.vectors[FORCE, : len(v)]
    forces_less_bias(a, q, v, tau, needed)
    put_metric_derivatives(a, d, s, now, d.vdot)
    put_rate_sides(a, d, s, now, d.vdot, s.of_all.sides)
    solution_multipliers(a, f, a.control.rank, needed, d.vdot, d.lam)
    put_bias_of_motion(a, a.control.gravity, v)
    differentiate_equations(a, d, now.targets, d.vdot, True, FORCE_ALONE)
    take_ahead(a.efforts, a.poses, a.axes, a.control.spring_dt)
    tree = VariedTree(a.bodies, a.poses, a.axes, d.variations)
    differentiate_efforts(tree, a.efforts, d.F)
    differentiate_joint_forces(a.axes, a.control.spring_dt, d.F)
    take_ahead(a.efforts, a.poses, a.axes, -a.control.spring_dt)  # as they were
    add_metric_derivatives(a, d, s)
    add_asked_changes(a, d)
    ask_forces_of_solution(d)
    for i in range(len(d.lam)):
        for j in range(len(v), 3 * len(v)):
            s.of_all.sides[i, j] = 0.0
    respond(split_of(f, a.control.rank), s.of_all.sides, d.X, d.parts)


@outlined
def differentiate_projection(
    a: Arrays,
    f: Factors,
    d: DerivativeArrays,
    s: StepArrays,
    now: Instant,
    rank: int,
    w: Array,
    push: Array,
) -> None:
    """Derivatives of M w - Jᵀ λ = push, for changes w of rates, by positions into F."""
    needed, none = a.vectors[FORCE, : len(w)], s.vectors[ZEROS]
    copy_into(needed, push)
    put_metric_derivatives(a, d, s, now, w)
    solution_multipliers(a, f, rank, needed, w, d.lam)
    put_bias_of_motion(a, none, none[: len(w)])
    differentiate_equations(a, d, now.targets, w, False, FORCE_ALONE)
    add_metric_derivatives(a, d, s)


@outlined
def prepare_correction(
    a: Arrays, f: Factors, d: DerivativeArrays, s: StepArrays, start: Instant
) -> None:
    """What the equations of the correction have at the start: M₀ c = J₀ᵀ ν, by positions."""
    nv, rank, c = len(a.axes), a.control.rank, a.vectors[CORRECTION, : len(a.axes)]
    if rank == 0:
        return
    of_rates = 0
    for i in range(rank):
        s.kept[i] = f.rows[i].pivot
        of_rates += f.rows[int(s.kept[i])].level
        for k in range(rank):
            s.slopes[i, k] = f.R[i, k] if k <= i else 0.0
    if of_rates > 0:
        put_rate_sides(a, d, s, start, c, s.bent_rows)
    differentiate_projection(a, f, d, s, start, rank, c, s.vectors[ZEROS, :nv])
    for i in range(nv):
        for j in range(nv):
            s.bent[i, j] = d.F[i, j]
        for j in range(s.Z.shape[1]):
            s.Z[i, j] = f.Y[j, i] if j < rank else 0.0
    respond(split_of(f, rank), s.none, s.bent, d.parts)
    solve_down(f.L, s.Z)


@outlined
def correct_changes(a: Arrays, f: Factors, s: StepArrays, columns: Columns, rank: int) -> None:
    """Changes of q as predicted into those at the end of the step, those of the correction beside.

    Takes what ``prepare_correction`` has found, with the factors of the start, and J of the end:
    δc = Z z - bent δq₀, with z such that J δq₁ = 0; rows that hold rates alone ask J₀ δc to keep
    what c does to them.
    """
    nv, maps = len(a.axes), s.maps[OF_CORRECTION]
    by_q, moved, c = columns.changes[:nv], columns.moved, a.vectors[CORRECTION, :nv]
    put_zeros(moved)
    if rank == 0:
        return
    put_displacement_maps(a.bodies, c, c, maps)
    turn_lines(a.bodies, maps[CARRIED], by_q)
    slopes, sides, ends = s.slopes[:rank], columns.sides[:rank], s.ends[:rank]
    put_zeros(sides)
    for i in range(rank):
        row = f.rows[int(s.kept[i])]
        if row.level > 0:
            put_zeros(ends[i : i + 1])
            continue
        put_zeros(slopes[i : i + 1])
        for k in range(nv):
            ends[i, k] = row.scale * s.J[s.kept[i], k]
    add_product(-1.0, ends, 0, by_q, sides)
    turn_columns(a.bodies, maps[TURNED], ends)
    add_product(1.0, ends, 0, s.Z, slopes)
    add_product(1.0, ends, 0, s.bent, sides)
    for i in range(rank):
        row = f.rows[int(s.kept[i])]
        if row.level > 0:
            for k in range(nv):
                sides[i, k] = row.scale * s.bent_rows[s.kept[i], k]
    lu_real(slopes, s.turns[:rank])
    back_lines(slopes, s.turns[:rank], sides)
    for i in range(nv):
        for j in range(nv):
            moved[i, j] = -s.bent[i, j]
    add_product(1.0, s.Z, 0, sides, moved)
    put_matrix(columns.way, 1.0, moved)
    turn_lines(a.bodies, maps[TURNED], columns.way)
    add_matrix(by_q, 1.0, columns.way)


@outlined
def answer_rates(
    f: Factors, d: DerivativeArrays, s: StepArrays, rank: int, X: Array, parts: Array
) -> None:
    """Momenta X into filtered rates, where the rows are those in ``rate``, by positions."""
    for i in range(d.rate.shape[0]):
        for j in range(d.rate.shape[1]):
            s.rate_sides[i, j] = -d.rate[i, j]
    respond(split_of(f, rank), s.rate_sides, X, parts)


@outlined
def take_filtered(s: StepArrays, columns: Columns, by: Array, first: int) -> None:
    """Rates at the end, by positions there and, from column ``first`` on, by rates before."""
    nv, X = len(by), columns.moved
    by_q, by_v = columns.changes[:nv], columns.changes[nv:]
    put_zeros(X)
    add_product(1.0, by, 0, by_q, X)
    add_product(1.0, by, first, by_v, X)
    put_matrix(by_v, 1.0, X)


@outlined
def filter_step(
    a: Arrays,
    f: Factors,
    d: DerivativeArrays,
    s: StepArrays,
    columns: Columns,
    rank: int,
    end: Instant,
) -> None:
    """Changes of the rates through the filter at the end of a step."""
    nv, X = len(a.axes), s.last
    v, filtered = s.vectors[V, :nv], s.vectors[FILTERED, :nv]
    copy_into(filtered, v)
    filter_velocity(a, f, filtered)
    for k in range(nv):
        d.vdot[k] = filtered[k] - v[k]
    differentiate_projection(a, f, d, s, end, rank, d.vdot, s.vectors[ZEROS, :nv])
    for i in range(nv):
        for j in range(nv):
            X[i, j], X[i, nv + j] = -d.F[i, j], s.M[i, j]
    put_rate_derivatives(a, d, end.targets, filtered)
    answer_rates(f, d, s, rank, X, s.of_last)
    take_filtered(s, columns, X, nv)


@outlined
def differentiate_second_half(
    a: Arrays,
    f: Factors,
    d: DerivativeArrays,
    s: StepArrays,
    rank: int,
    end: Instant,
    q: Array,
    tau: Array,
) -> None:
    """Changes of the rates through the second half of Verlet's step, each time with a filter.

    Takes the rates before it, corrected, and the first acceleration in ``vdot``. What accelerates
    and what filters are solved as one, by v̇ + 2/h (v⁺ - v): of an acceleration the filter leaves
    what is admissible. With P what momenta do to rates through a filter, and K what positions do,
    both halves are

        g = P (M v + h/2 (τ - F_q q - F_v w)) + K q

    where the first has the rates w = v + h/2 a before it, and the last has its g for w.
    """
    nv, half = len(a.axes), 0.5 * a.control.dt
    v, guess, filtered = s.vectors[V, :nv], s.vectors[GUESS, :nv], s.vectors[FILTERED, :nv]
    first, last, by = s.earlier, s.last, s.end
    for k in range(nv):
        guess[k] = v[k] + half * d.vdot[k]
    a.control.t = end.t
    for n in range(2):
        accelerate(a, f, end, q, guess, tau, d.vdot)
        needed = a.vectors[FORCE, :nv]
        forces_less_bias(a, q, guess, tau, needed)
        for k in range(nv):
            filtered[k] = v[k] + half * d.vdot[k]
        filter_velocity(a, f, filtered)
        for k in range(nv):
            d.vdot[k] = (filtered[k] - v[k]) / half
        solution_multipliers(a, f, rank, needed, d.vdot, d.lam)
        wanted = FORCE_ALONE if n == 0 else NO_ACCELERATION
        differentiate_motion(a, d, end.targets, guess, d.vdot, wanted)
        if n == 0:
            for i in range(nv):
                for j in range(2 * nv):
                    first[i, j] = -half * d.F[i, j]
                for j in range(nv):
                    first[i, 2 * nv + j], first[i, 3 * nv + j] = s.M[i, j], 0.0
                first[i, 3 * nv + i] = half
        copy_into(guess, filtered)
    answer_rates(f, d, s, rank, first, s.parts)  # by rows at the rates that the first has led to
    put_matrix(last, -half, d.F)
    put_rate_derivatives(a, d, end.targets, filtered)
    answer_rates(f, d, s, rank, last, s.of_last)
    put_zeros(by)
    add_product(1.0, last, nv, first, by)
    for i in range(nv):
        for j in range(nv):
            by[i, j] += last[i, j]
            by[i, 2 * nv + j] += first[i, 2 * nv + j] + by[i, nv + j]
            by[i, 3 * nv + j] += first[i, 3 * nv + j]
    take_filtered(s, s.led, by, 2 * nv)
    for i in range(nv):
        for j in range(nv):  # the acceleration's own part in w is the rates it makes less v
            s.led.changes[nv + i, nv + j] += by[i, nv + j]


@helper
def take_from_start(by: Array, changes: Array) -> None:
    """What the second half of Verlet's step has of forces and of the rates at the start alone."""
    nv = len(by)
    for i in range(nv):
        for j in range(nv):
            changes[nv + i, nv + j] -= by[i, nv + j]
            changes[nv + i, 2 * nv + j] += by[i, 3 * nv + j]


@outlined
def differentiate_stages(
    a: Arrays,
    f: Factors,
    d: DerivativeArrays,
    s: StepArrays,
    start: Instant,
    q0: Array,
    targets: Array,
    tau: Array,
) -> None:
    """Changes of q as predicted and of the rates by the stages of ``RK4``, left by the step."""
    nv, dt = len(a.axes), a.control.dt
    columns, sides = s.of_all, s.of_all.sides
    by_q, by_v, way = columns.changes[:nv], columns.changes[nv:], columns.way
    q = a.vectors[STAGE_Q, : len(q0)]
    u, v = s.vectors[U, :nv], s.vectors[V, :nv]
    put_units(s.rates[0], nv)
    for n in range(1, len(A4)):
        combine(a, A4[n], min(n, len(C4)), dt, u, v)
        put_zeros(way)
        put_units(by_v, nv)
        for m in range(min(n, len(C4))):
            weight = dt * A4[n, m]
            if weight != 0.0:
                add_matrix(way, weight, s.rates[m])
                add_matrix(by_v, weight, s.pushes[m])
        put_matrix(s.guess, 1.0, way)
        put_displaced(a, s, columns, u, v)
        if n == len(C4):
            break
        line = int(2.0 * C4[n])
        now = Instant(start.t + C4[n] * dt, targets[min(line, len(targets) - 1)])
        displace(a.bodies, q0, u, 1.0, q)
        factor_at(a, f, now, q, v)
        differentiate_solution(a, f, d, now, q, v, tau[min(line, len(tau) - 1)])
        put_units(d.X, 2 * nv)
        add_product(-1.0, d.F, 0, by_q, d.X)
        add_product(-1.0, d.F, nv, by_v, d.X)
        put_zeros(sides)
        add_product(-1.0, d.acceleration, 0, by_q, sides)
        add_product(-1.0, d.acceleration, nv, by_v, sides)
        respond(split_of(f, a.control.rank), sides, d.X, d.parts)
        put_matrix(s.pushes[n], 1.0, d.X)
        put_matrix(s.rates[n], 1.0, by_v)
        turn_lines(a.bodies, s.maps[OF_STEP, RATE_BY_V], s.rates[n])
        turn_lines(a.bodies, s.maps[OF_STEP, RATE_BY_U], s.guess)
        turns_alone(a.bodies, s.guess)
        add_matrix(s.rates[n], 1.0, s.guess)


@helper
def factor_start(arrays: SystemArrays, targets: Array, t: float) -> None:
    """Have the factors of the present state, from which a step is to start."""
    a, nv, c = arrays_of(arrays), len(arrays.axes), arrays.control[0]
    nq = len(arrays.state) - nv - 1
    set_implicit_horizon(a, c.dt if c.integrator == EULER else 0.0)
    start = Instant(t, targets[0])
    factor_at(a, dense_factors(arrays, 0), start, arrays.state[:nq], arrays.state[nq : nq + nv])
    c.factored = BY_DENSE


@helper
def keep_factors(arrays: SystemArrays, kept: Factors, ranks: Ints) -> None:
    """Keep the factors of the present configuration, and ranks (2,) of accelerations and filter."""
    put_matrix(kept.L, 1.0, arrays.L[0])
    put_matrix(kept.Y, 1.0, arrays.Y[0])
    put_matrix(kept.R, 1.0, arrays.R[0])
    for k in range(arrays.first.shape[1]):
        kept.first[k] = arrays.first[0, k]
    for i in range(arrays.rows.shape[1]):
        kept.rows[i] = arrays.rows[0, i]
    ranks[0], ranks[1] = arrays.control[0].rank, arrays.control[0].filter_rank


@helper
def turns_too_far(bodies: Records[Body], correction: Array) -> bool:
    """Whether a correction (nv,) turns a body about three axes by more than ``LONGEST``."""
    for i in range(1, len(bodies)):
        k, joint = bodies[i].v, bodies[i].joint
        if joint == FREE or joint == SPHERICAL:
            for j in range(k, k + 3):
                if not abs(correction[j]) <= LONGEST:
                    return True
    return False


@outlined
def differentiate_step(
    arrays: SystemArrays,
    d: DerivativeArrays,
    s: StepArrays,
    targets: Array,
    tau: Array,
    t: float,
    found: Array,
) -> int:
    """Derivatives of the step from t [s] that the arrays have just made; ``DONE``, or why not.

    Leaves them in ``found`` (2 nv, 3 nv). Takes the state, the correction, the factors that it
    started and ended with, and its start and stages from the scratch vectors. targets and tau are
    those of the step.
    """
    a, c, nv = arrays_of(arrays), arrays.control[0], len(arrays.axes)
    if c.guarded != 0 or c.taken != 1:
        return NOT_PLAIN
    correction = a.vectors[CORRECTION, :nv]
    if turns_too_far(a.bodies, correction):
        return TOO_FAR
    first, last = s.first, dense_factors(arrays, 0)
    nq, dt, rank, filter_rank = len(arrays.state) - nv - 1, c.dt, c.rank, c.filter_rank
    c.rank, c.filter_rank = s.counts[RANK], s.counts[FILTER_RANK]
    own, start = c.rank, Instant(t, targets[0])
    line = min(TARGETS_PER_STEP[c.integrator], len(targets) - 1)
    end = Instant(arrays.state[nq + nv], targets[line])
    q0, v0, q1 = a.vectors[START_Q, :nq], a.vectors[START_V, :nv], arrays.state[:nq]
    v, part = s.vectors[V, :nv], 0.5 * dt if c.integrator == VERLET else dt
    place(a, first, start, q0, v0)
    if c.integrator == EULER:
        differentiate_admissible(a, first, d, s, start, q0, v0, tau[0])
    else:
        differentiate_acceleration(a, first, d, start, q0, v0, tau[0])
    put_matrix(s.pushes[0], 1.0, d.X)
    if c.integrator != RK4:
        lead(a, d, s, part, v0)
        for k in range(nv):
            v[k] += correction[k] / dt
            s.vectors[GUESS, k] = d.vdot[k]
    prepare_correction(a, first, d, s, start)
    columns = s.led
    if c.integrator == RK4:
        differentiate_stages(a, first, d, s, start, q0, targets, tau)
        columns = s.of_all
    c.rank, c.filter_rank = rank, filter_rank
    update_positions(a, last, end, q1, v)
    put_end_terms(a, last, s, end)
    correct_changes(a, first, s, columns, own)
    if c.integrator != RK4:
        add_matrix(columns.changes[nv:], 1.0 / dt, columns.moved)
    if c.integrator == VERLET:
        copy_into(d.vdot, s.vectors[GUESS, :nv])
        differentiate_second_half(a, last, d, s, filter_rank, end, q1, tau[len(tau) - 1])
    else:
        filter_step(a, last, d, s, columns, filter_rank, end)
    if c.integrator != RK4:
        put_led(s.led.changes, s.pushes[0], part, found)
    else:
        put_matrix(found, 1.0, s.of_all.changes)
    if c.integrator == VERLET:
        take_from_start(s.end, found)
    c.biased = 0
    return DONE


class Steps(NamedTuple):
    """Steps that are to be made and differentiated, and where what they lead to goes.

    Attributes:
        method: Integrator.
        targets: (times, targets) prescribed motions.
        tau: (lines, nv) forces, as many lines for each step.
        record: Empty.
        changes: (n, 2 nv, 3 nv) receives derivatives of as many steps,
        states: (n, nq + nv + 1) and where they lead.
    """

    method: int
    targets: np.ndarray
    tau: Array
    record: Array
    changes: Array
    states: Array


@caller
def differentiate_steps(
    run: Any,
    arrays: SystemArrays,
    others: SystemArrays,
    d: DerivativeArrays,
    s: StepArrays,
    asked: Steps,
) -> int:
    """Make steps, one after another, and differentiate each.

    Args:
        run: The kernel of steps with the arrays, stored.
        arrays: Of whom.
        others: Of the solver whose state they begin in.
        d: What derivatives are worked out in,
        s: and those of a step.
        asked: Which steps.

    Returns:
        ``DONE``, or why the first one that is no plain step has no derivatives; ``counts`` tells
        how many were made before it.
    """
    take_numbers(arrays, others)
    copy_into(arrays.state, others.state)
    c, targets, tau = arrays.control[0], asked.targets, asked.tau
    c.integrator = asked.method
    n, each = len(asked.changes), TARGETS_PER_STEP[asked.method]
    lines = len(tau) // n
    for i in range(n):
        s.counts[MADE] = i
        line = min(each * i, len(targets) - 1)
        now = targets[line : min(each * (i + 1), len(targets) - 1) + 1]
        pushes, t = tau[lines * i : lines * (i + 1)], arrays.state[len(arrays.state) - 1]
        if c.factored != BY_DENSE:
            factor_start(arrays, now, t)
        keep_factors(arrays, s.first, s.counts)
        failure = call_stored(run, (now, pushes, asked.record, STEP, 1))
        if failure == DONE:
            failure = differentiate_step(arrays, d, s, now, pushes, t, asked.changes[i])
        if failure != DONE:
            return failure
        copy_into(asked.states[i], arrays.state)
    s.counts[MADE] = n
    return DONE


@kernel
def differentiate_prediction(
    arrays: SystemArrays,
    d: DerivativeArrays,
    s: StepArrays,
    targets: Array,
    tau: Array,
    t: float,
    again: int,
) -> int:
    """Derivatives of where forces lead from t [s] in a step of Euler's, before loops are closed.

    ``again``: whether they were asked for last from this state, whose factors are there then.
    """
    a, nv, dt = arrays_of(arrays), len(arrays.axes), arrays.control[0].dt
    nq = len(arrays.state) - nv - 1
    set_implicit_horizon(a, dt)
    q, v, start = arrays.state[:nq], arrays.state[nq : nq + nv], Instant(t, targets[0])
    f = dense_factors(arrays, 0)
    if again == 0:
        factor_at(a, f, start, q, v)
    differentiate_admissible(a, f, d, s, start, q, v, tau[0])
    lead(a, d, s, dt, v)
    put_led(s.led.changes, d.X, dt, s.of_all.changes)
    return DONE


MOVED, PUSH, RATES, ASKED = range(4)
"""Lines of what ``differentiate_closing`` is given: changes of rates, forces, rates."""


TERMS, THEIR_SLOPES = range(2)
"""What is asked of ``differentiate_closing``: terms of loops, then what they change by."""


@kernel
def differentiate_closing(
    arrays: SystemArrays,
    d: DerivativeArrays,
    s: StepArrays,
    targets: Array,
    given: Array,
    asked: int,
) -> int:
    """Terms of M w - Jᵀ λ = push and of J v at the state, or their derivatives; the rank.

    Leaves factors, M and J as they are there; and derivatives by positions, where terms were asked
    for last, in ``bent`` and ``rate``, with maps of a displacement by w.

    targets (1, targets): prescribed motions; given (ASKED, nv): w, push and v.
    """
    a, f, nv = arrays_of(arrays), dense_factors(arrays, 0), len(arrays.axes)
    nq = len(arrays.state) - nv - 1
    q, v, now = arrays.state[:nq], given[RATES], Instant(arrays.state[nq + nv], targets[0])
    if asked == TERMS:
        set_implicit_horizon(a, arrays.control[0].dt)
        factor_at(a, f, now, q, v)
        put_end_terms(a, f, s, now)
        return a.control.rank
    rank = a.control.rank
    put_metric(a, s)
    differentiate_projection(a, f, d, s, now, rank, given[MOVED], given[PUSH])
    put_matrix(s.bent, 1.0, d.F[:, :nv])
    put_rate_derivatives(a, d, now.targets, v)
    put_displacement_maps(a.bodies, given[MOVED], given[MOVED], s.maps[OF_CORRECTION])
    return rank
