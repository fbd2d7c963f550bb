"""Adjoints of converged steps: gradients at the end of each taken back to its start.

What ``step_derivatives`` solves for all changes at once is solved here transposed, for one gradient
p at a time. The equations of accelerations and filters are symmetric but for a sign, so that

    M w - Jᵀ κ = p,  J w = 0    gives    pᵀ X = wᵀ (right side of forces) - κᵀ (right side of rows)

with the factors that the step has made, which are kept from the way there; of the derivatives of
the equations nothing but products with w and κ is taken. No A or B of a step is formed.

Forces besides that hold rates, K δf + δ(rates before loops are closed) = r δq by row, are solved
for in between: their gradient f is that by forces, and z of (K + S) z = f, S what rates answer to
them by, is what their rates and r are multiplied by.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.jit import bundling, caller, helper, kernel, outlined
from bulletbridge.compilation.stored_calls import StoredCall, call_stored
from bulletbridge.constraints.records import Target
from bulletbridge.constraints.row_derivatives import RowGradients, pull_back_rows
from bulletbridge.constraints.row_rates import RowRecords
from bulletbridge.constraints.rows import jacobian
from bulletbridge.engine.dense import (
    applied_forces,
    filter_velocity,
    place,
    put_bias_of_motion,
    set_implicit_horizon,
    solution_multipliers,
)
from bulletbridge.engine.derivatives import DerivativeArrays, add_asked_changes
from bulletbridge.engine.records import (
    ACCELERATION,
    CORRECTION,
    DONE,
    EULER,
    FORCE,
    STAGE_V,
    STAGE_VDOTS,
    TARGETS_PER_STEP,
    VERLET,
    Arrays,
    Factors,
    Instant,
    SystemArrays,
    arrays_of,
    dense_factors,
)
from bulletbridge.engine.step_derivatives import (
    OF_CORRECTION,
    OF_STEP,
    ZEROS,
    StepArrays,
    factor_start,
    keep_factors,
    put_matrix,
    put_metric,
    put_metric_derivatives,
    put_zeros,
    turns_too_far,
)
from bulletbridge.engine.step_differentiator import StepDifferentiator
from bulletbridge.engine.stepper import NO_RECORD
from bulletbridge.engine.tasks import STEP
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.derivatives import (
    TreeGradients,
    VariedTree,
    pull_back_joint_forces,
    pull_back_tree,
    put_sums,
    take_accelerations,
    vary_axes,
)
from bulletbridge.mechanism.displacement_maps import (
    CARRIED,
    TURNED,
    put_displacement_maps,
    turn_columns,
)
from bulletbridge.mechanism.force_derivatives import (
    differentiate_efforts,
    take_ahead,
)
from bulletbridge.mechanism.kinematics import put_twists
from bulletbridge.numerics.lu import back_transposed, lu_real
from bulletbridge.numerics.many_sides import add_product, solve_down
from bulletbridge.numerics.projection import (
    ROW,
    add_row,
    inner,
    unwhiten,
    whiten_force,
    whiten_velocity,
)
from bulletbridge.numerics.records import Array, Ints, Mask, Records
from bulletbridge.numerics.spatial import copy_into

METHODS = EULER, VERLET
(
    GRADIENT, OF_Q, OF_V, OF_A, OF_TAU, W, V, GUESS, LED, PUSH, NEXT_PUSH, WAY, NONE, VECTORS,
) = range(14)  # fmt: skip
"""Scratch vectors (nv,)."""
KAPPA, EARLIER, LAM, PARTS, ROW_VECTORS = range(5)
"""Scratch vectors (nc,)."""
DEPENDENT = 1e-6
"""Share of its own answer that a rate which is held must have left for itself, the others held:
below, forces that hold are not told apart to 1e-10."""


class HeldRates(NamedTuple):
    """Forces besides, in steps of Euler's, and rates that some of them hold: m of a step at most.

    A rate that is held is, before loops are closed, what is asked of it, less compliance times
    force.

    Attributes:
        pushes: (n, nv) forces on the rates in each step [N m or N].
        counts: (n,) rates that are held.
        axes: (n, m) these.
        slopes: (n, m) what is asked of each changes by with the position of its axis [1/s].
        compliance: (n, m) [rad/s or m/s for N m or N].
        least: (n, m) what each must at least answer to its own force by: else it is too near to
            acting otherwise.
    """

    pushes: Array
    counts: Ints
    axes: Ints
    slopes: Array
    compliance: Array
    least: Array


def no_held_rates(nv: int) -> HeldRates:
    """None."""
    count, none = np.zeros(0, np.int64), np.zeros((0, 0))
    return HeldRates(np.zeros((0, nv)), count, np.zeros((0, 0), np.int64), none, none, none)


class Tape(NamedTuple):
    """What is kept of n steps: states and factors between them, n + 1 each.

    Attributes:
        states: (n + 1, nq + nv + 1) q, v, t.
        L: (n + 1, nv, nv)
        Y: (n + 1, nc, nv)
        R: (n + 1, nc, nc)
        rows: (n + 1, nc)
        first: (n + 1, nv)
        ranks: (n + 1, 2) of accelerations and of filters.
        accelerations: (n, nv) at the start of each step.
        seconds: (n, nv) rates by which Verlet's second half has accelerated last.
        corrections: (n, nv)
        led: (n, nq + nv + 1) where each step has led.
        plain: (n,) whether its derivative is known.
    """

    states: Array
    L: Array
    Y: Array
    R: Array
    rows: np.ndarray
    first: Ints
    ranks: Ints
    accelerations: Array
    seconds: Array
    corrections: Array
    led: Array
    plain: Ints


class AdjointArrays(NamedTuple):
    """What gradients are worked out in, and where they are left.

    Attributes:
        p: (2 nv,) gradient at the step that has been come to, by displacements and rates.
        by_tau: (n, nv) by the forces of each step.
        after: (n, 2 nv) gradients at the end of each step.
        vectors: (VECTORS, nv)
        of_rows: (ROW_VECTORS, nc)
        line: (1, nv) a vector as a matrix.
        sums: (nv, 6) and
        above: (nv, 9) of ``TreeGradients``.
        answers: (nv, nv) rates by forces that hold one, a line for each.
        weights: (nv, nv) of these, then its factors.
    """

    p: Array
    by_tau: Array
    after: Array
    vectors: Array
    of_rows: Array
    line: Array
    sums: Array
    above: Array
    answers: Array
    weights: Array


class Place(NamedTuple):
    """A state with the forces that act there."""

    now: Instant
    q: Array
    v: Array
    tau: Array


class Given(NamedTuple):
    """What drives steps, and what is paid.

    Attributes:
        targets: (times, targets) prescribed motions.
        tau: (lines, nv) forces, as many lines for each step.
        prices: (n, 3 nv) gradients of what is paid where each step starts, by displacements, rates
            and forces.
        held: Rates that are held; empty if there are none.
    """

    targets: Array
    tau: Array
    prices: Array
    held: HeldRates


@bundling
def kept_factors(tape: Tape, n: int) -> Factors:
    """The factors before step n."""
    return Factors(tape.L[n], tape.Y[n], tape.R[n], tape.rows[n], tape.first[n])


@helper
def is_plain(arrays: SystemArrays, led_to: Array, alike: float) -> bool:
    """Whether the last step is one whose derivative is known, and has led where it is to lead."""
    c, nv = arrays.control[0], len(arrays.axes)
    if c.guarded != 0 or c.taken != 1:
        return False
    if turns_too_far(arrays.bodies, arrays.vectors[CORRECTION, :nv]):
        return False
    for k in range(len(led_to) - 1):
        if not abs(arrays.state[k] - led_to[k]) <= alike * max(1.0, abs(led_to[k])):
            return False
    return True


@caller
def record_steps(
    run: Any,
    arrays: SystemArrays,
    tape: Tape,
    targets: Array,
    tau: Array,
    record: Array,
    states: Array,
    alike: float,
) -> int:
    """Make steps, and keep what their adjoints take; return how many were made.

    Args:
        run: ``step_kernel.run`` with the arrays, stored.
        arrays: Of whom.
        tape: Receives them.
        targets: (times, targets) prescribed motions.
        tau: (lines, nv) forces, as many lines for each step.
        record: Empty.
        states: (n + 1, nq + nv + 1) that they begin in and lead to. A step starts where the last
            one has led, or from here if that was not plain, or if it is not itself from there.
        alike: Share by which it may have led elsewhere. Infinite: all but the first of the states
            are not known, and the first step that is not plain ends it.
    """
    nv, here, made = len(arrays.axes), 0, len(states) - 1
    lines, each = len(tau) // made, TARGETS_PER_STEP[arrays.control[0].integrator]
    row = STAGE_VDOTS if arrays.control[0].integrator == VERLET else ACCELERATION
    for n in range(made):
        line = min(each * n, len(targets) - 1)
        last = min(each * (n + 1), len(targets) - 1)
        now = targets[line : last + 1]
        failure, tries = DONE, 2 if here == 1 and alike < math.inf else 1
        while tries > 0:
            tries -= 1
            if here == 0:
                copy_into(arrays.state, states[n])
                factor_start(arrays, now, states[n, len(states[n]) - 1])
                keep_factors(arrays, kept_factors(tape, n), tape.ranks[n])
            copy_into(tape.states[n], arrays.state)
            failure = call_stored(run, (now, tau[lines * n : lines * (n + 1)], record, STEP, 1))
            here = 1 if failure == DONE and is_plain(arrays, states[n + 1], alike) else 0
            tries = 0 if here == 1 else tries
        tape.plain[n] = here
        copy_into(tape.led[n], arrays.state)
        if failure != DONE:
            tape.led[n, 0] = math.nan
        if here == 0 and alike == math.inf:
            return n
        if here == 1:
            copy_into(tape.accelerations[n], arrays.vectors[row, :nv])
            copy_into(tape.seconds[n], arrays.vectors[STAGE_V, :nv])
            copy_into(tape.corrections[n], arrays.vectors[CORRECTION, :nv])
            keep_factors(arrays, kept_factors(tape, n + 1), tape.ranks[n + 1])
            copy_into(tape.states[n + 1], arrays.state)
    return made


@helper
def answer_transposed(f: Factors, rank: int, x: Array, y: Array, kappa: Array) -> None:
    """Solve M w - Jᵀ κ = x, J w = 0: w takes the place of x (nv,); y (nc,) is scratch."""
    whiten_force(f.L, x, f.first)
    for i in range(rank):
        y[i] = -inner(f.Y, i, x)
        add_row(x, y[i], f.Y, i)
    unwhiten(f.L, x, f.first)
    for i in range(len(kappa)):
        kappa[i] = 0.0
    for i in range(rank - 1, -1, -1):
        for k in range(i + 1, rank):
            y[i] -= f.R[k, i] * y[k]
        y[i] /= f.R[i, i]
        n = f.rows[i].pivot
        kappa[n] = f.rows[n].scale * y[i]


@helper
def put_times_mass(L: Array, x: Array) -> None:
    """x <- Lᵀ L x."""
    whiten_velocity(L, x)
    for j in range(len(x)):
        total = 0.0
        for k in range(j, len(x)):
            total += L[k, j] * x[k]
        x[j] = total


@helper
def add_transposed(x: Array, size: float, A: Array, first: int, w: Array) -> None:
    """x += size Aᵀ w, of A (n, .) as many columns as x is long, from ``first`` on."""
    for i in range(len(w)):
        s = size * w[i]
        if s != 0.0:
            for j in range(len(x)):
                x[j] += s * A[i, first + j]


@outlined
def take_multipliers_at_end(
    a: Arrays, f: Factors, at: Place, rates: Array, push: Array, lam: Array
) -> None:
    """λ of Verlet's second half by the accelerations ``push`` at some rates of a place."""
    needed = a.vectors[FORCE, : len(rates)]
    applied_forces(a, at.q, rates, at.tau, needed)
    solution_multipliers(a, f, a.control.filter_rank, needed, push, lam)


@outlined
def pull_back_equations(
    a: Arrays, d: DerivativeArrays, targets: Records[Target], gravity: Array, v: Array,
    vdot: Array, asked: RowGradients, g: TreeGradients,
) -> None:  # fmt: skip
    """``differentiate_equations`` transposed: of M v̇ + h - Jᵀ λ along w, and of rows."""
    put_bias_of_motion(a, gravity, v)
    pull_back_biased(a, d, targets, vdot, asked, g)


@outlined
def pull_back_motion(
    a: Arrays, d: DerivativeArrays, targets: Records[Target], v: Array, vdot: Array,
    asked: RowGradients, g: TreeGradients,
) -> None:  # fmt: skip
    """``differentiate_motion`` transposed, where ``applied_forces`` was called last, at v."""
    if len(a.efforts) > 0:  # which that has counted in
        put_bias_of_motion(a, a.control.gravity, v)
    pull_back_biased(a, d, targets, vdot, asked, g)
    pull_back_joint_forces(a.axes, a.control.spring_dt, g)
    if len(a.efforts) > 0 or a.control.asked != 0:
        put_zeros(d.F)
        take_ahead(a.efforts, a.poses, a.axes, a.control.spring_dt)
        differentiate_efforts(VariedTree(a.bodies, a.poses, a.axes, d.variations), a.efforts, d.F)
        take_ahead(a.efforts, a.poses, a.axes, -a.control.spring_dt)  # as they were
        add_asked_changes(a, d)
        add_transposed(g.of_q, g.size, d.F, 0, g.w)
        add_transposed(g.of_v, g.size, d.F, len(a.axes), g.w)


@outlined
def pull_back_biased(
    a: Arrays, d: DerivativeArrays, targets: Records[Target], vdot: Array, asked: RowGradients,
    g: TreeGradients,
) -> None:  # fmt: skip
    """``pull_back_equations`` where ``bias`` was called last, without efforts."""
    take_accelerations(a.bodies, a.poses, a.axes, vdot, d.loads)
    vary_axes(a.bodies, a.poses, a.axes, d.variations)
    put_sums(a.axes, g.w, g.sums)
    pull_back_tree(a.bodies, a.poses, a.axes, d.variations, d.loads, g)
    tree = VariedTree(a.bodies, a.poses, a.axes, d.variations)
    rows = RowRecords(a.loops, a.couplings, a.terms)
    pull_back_rows(tree, rows, targets, vdot, asked, g)


@outlined
def pull_back_rates(
    a: Arrays, d: DerivativeArrays, targets: Records[Target], v: Array, kappa: Array,
    g: TreeGradients,
) -> None:  # fmt: skip
    """``put_rate_derivatives`` transposed: of J v + g_t, by positions."""
    put_twists(a.bodies, a.axes, v, a.poses)
    for k in range(len(v)):
        a.axes[k].rate = v[k]
    vary_axes(a.bodies, a.poses, a.axes, d.variations)
    pull_back_rates_here(a, d, targets, v, kappa, g)


@outlined
def pull_back_rates_here(
    a: Arrays, d: DerivativeArrays, targets: Records[Target], v: Array, kappa: Array,
    g: TreeGradients,
) -> None:  # fmt: skip
    """The same at rates v that the poses have, with what axes vary by."""
    tree = VariedTree(a.bodies, a.poses, a.axes, d.variations)
    asked = RowGradients(kappa[:0], kappa, kappa[:0])
    pull_back_rows(tree, RowRecords(a.loops, a.couplings, a.terms), targets, v, asked, g)


@helper
def pull_back_prescribed(
    a: Arrays, d: DerivativeArrays, targets: Records[Target], v: Array, zeros: Array, kappa: Array,
    g: TreeGradients,
) -> None:  # fmt: skip
    """Of J v alone, without what is prescribed; kappa (nc,) is lost."""
    pull_back_rates(a, d, targets, v, kappa, g)
    if a.control.driven != 0:
        for i in range(len(kappa)):
            kappa[i] = -kappa[i]
        pull_back_rates(a, d, targets, zeros, kappa, g)


@helper
def pull_back_metric(a: Arrays, s: StepArrays, g: TreeGradients) -> None:
    """What ``put_metric_derivatives`` has found, transposed."""
    if a.control.damper_dt > 0.0 and len(a.efforts) > 0:
        add_transposed(g.of_q, g.size, s.metric_by_q, 0, g.w)


@helper
def pull_back_projection(
    a: Arrays,
    f: Factors,
    d: DerivativeArrays,
    s: StepArrays,
    now: Instant,
    rank: int,
    change: Array,
    g: TreeGradients,
) -> None:
    """``differentiate_projection`` transposed, for changes (nv,) of rates."""
    needed, zeros = a.vectors[FORCE, : len(change)], s.vectors[ZEROS]
    for k in range(len(needed)):
        needed[k] = 0.0
    put_metric_derivatives(a, d, s, now, change)
    solution_multipliers(a, f, rank, needed, change, d.lam)
    asked = RowGradients(d.lam, d.lam[:0], d.lam[:0])
    pull_back_equations(a, d, now.targets, zeros, zeros[: len(change)], change, asked, g)
    pull_back_metric(a, s, g)


@outlined
def pull_back_second_half(
    a: Arrays, f: Factors, d: DerivativeArrays, g: AdjointArrays, at: Place, second: Array,
    led: Array,
) -> None:  # fmt: skip
    """``differentiate_second_half`` transposed: takes gradients OF_V, leaves OF_Q, OF_A, OF_TAU.

    Takes the rates before it, as those of the place, in PUSH the first acceleration, the second
    rates, and those that it has led to.
    """
    nv, half, rank, targets = len(a.axes), 0.5 * a.control.dt, a.control.filter_rank, at.now.targets
    of_q, of_v, w, last = g.vectors[OF_Q], g.vectors[OF_V], g.vectors[W], g.vectors[WAY]
    v, guess, push, other = at.v, g.vectors[GUESS], g.vectors[PUSH], g.vectors[NEXT_PUSH]
    y, kappa, earlier = g.of_rows[PARTS], g.of_rows[KAPPA], g.of_rows[EARLIER]
    of_guess, asked = g.vectors[OF_A], RowGradients(g.of_rows[LAM], y[:0], y[:0])
    for k in range(nv):
        guess[k] = v[k] + half * push[k]
        push[k], other[k] = (second[k] - v[k]) / half, (led[k] - v[k]) / half
    copy_into(w, of_v)
    answer_transposed(f, rank, w, y, kappa)
    take_multipliers_at_end(a, f, at, second, other, asked.lam)
    by_momenta = TreeGradients(w, -half, g.sums, g.above, of_q, of_guess)
    pull_back_motion(a, d, targets, second, other, asked, by_momenta)
    copy_into(last, of_guess)
    answer_transposed(f, rank, last, y, earlier)
    pull_back_rates_here(a, d, targets, second, earlier, by_momenta)
    pull_back_rates(a, d, targets, led, kappa, by_momenta)
    for k in range(nv):
        of_v[k] = w[k] + last[k]
        g.vectors[OF_TAU, k] = half * of_v[k]
        of_guess[k] = 0.0
    put_times_mass(f.L, of_v)
    take_multipliers_at_end(a, f, at, guess, push, asked.lam)
    by_momenta = TreeGradients(last, -half, g.sums, g.above, of_q, of_guess)
    pull_back_motion(a, d, targets, guess, push, asked, by_momenta)
    for k in range(nv):
        of_v[k] += of_guess[k]
        of_guess[k] *= half  # now by the first acceleration


@outlined
def pull_back_filter(
    a: Arrays, f: Factors, d: DerivativeArrays, s: StepArrays, g: AdjointArrays, end: Instant
) -> None:
    """``filter_step`` transposed: takes gradients OF_V, leaves OF_Q and OF_V."""
    rank, v, led, change = a.control.filter_rank, g.vectors[V], g.vectors[LED], g.vectors[GUESS]
    w, kappa = g.vectors[OF_V], g.of_rows[KAPPA]
    copy_into(led, v)
    filter_velocity(a, f, led)
    for k in range(len(v)):
        change[k] = led[k] - v[k]
    answer_transposed(f, rank, w, g.of_rows[PARTS], kappa)
    by_momenta = TreeGradients(w, -1.0, g.sums, g.above, g.vectors[OF_Q], g.vectors[NONE])
    pull_back_projection(a, f, d, s, end, rank, change, by_momenta)
    pull_back_rates(a, d, end.targets, led, kappa, by_momenta)
    put_times_mass(f.L, w)


@helper
def turn_back(a: Arrays, maps: Array, g: AdjointArrays, x: Array) -> None:
    """x (nv,) <- one of the maps, transposed, times x."""
    line = g.line[:1]
    copy_into(line[0], x)
    turn_columns(a.bodies, maps, line)
    copy_into(x, line[0])


@outlined
def pull_back_correction(
    a: Arrays, f: Factors, d: DerivativeArrays, s: StepArrays, g: AdjointArrays, start: Instant,
    c: Array,
) -> None:  # fmt: skip
    """``correct_changes`` transposed, with the factors of the start and J of the end.

    Takes gradients OF_Q and OF_V, and has OF_Q be that by the prediction; what it is by the start
    is added to GRADIENT.
    """
    nv, rank, maps = len(a.axes), a.control.rank, s.maps[OF_CORRECTION]
    of_q, moved = g.vectors[OF_Q], g.vectors[W]
    y, kappa = g.of_rows[PARTS], g.of_rows[KAPPA]
    put_displacement_maps(a.bodies, c, c, maps)
    copy_into(moved, of_q)
    turn_back(a, maps[TURNED], g, moved)
    for k in range(nv):
        moved[k] += g.vectors[OF_V, k] / a.control.dt
    slopes, ends = s.slopes[:rank], s.ends[:rank]
    of_rates = 0
    for i in range(rank):
        s.kept[i] = f.rows[i].pivot
        row = f.rows[int(s.kept[i])]
        of_rates += row.level
        for k in range(rank):
            slopes[i, k] = f.R[i, k] if k <= i and row.level > 0 else 0.0
        for k in range(nv):
            ends[i, k] = 0.0 if row.level > 0 else row.scale * s.J[s.kept[i], k]
        for k in range(nv):
            s.Z[k, i] = f.Y[i, k]
    for i in range(nv):
        for k in range(rank, s.Z.shape[1]):
            s.Z[i, k] = 0.0
    solve_down(f.L, s.Z)
    turned = s.bent_rows[:rank]
    put_matrix(turned, 1.0, ends)
    turn_columns(a.bodies, maps[TURNED], turned)
    add_product(1.0, turned, 0, s.Z, slopes)
    for i in range(rank):
        y[i] = 0.0
        for k in range(nv):
            y[i] += s.Z[k, i] * moved[k]
    lu_real(slopes, s.turns[:rank])
    back_transposed(slopes, s.turns[:rank], y)
    for i in range(rank):
        add_row(of_q, -y[i], ends, i)
        add_row(moved, -y[i], turned, i)
    turn_back(a, maps[CARRIED], g, of_q)
    by_forces = TreeGradients(moved, -1.0, g.sums, g.above, g.vectors[GRADIENT], g.vectors[NONE])
    if of_rates > 0:
        for i in range(len(kappa)):
            kappa[i] = 0.0
        for i in range(rank):
            row = f.rows[int(s.kept[i])]
            if row.level > 0:
                kappa[s.kept[i]] = -y[i] * row.scale
        pull_back_prescribed(a, d, start.targets, c, s.vectors[ZEROS, :nv], kappa, by_forces)
    answer_transposed(f, rank, moved, y, kappa)
    pull_back_projection(a, f, d, s, start, rank, c, by_forces)


@outlined
def pull_back_held(
    f: Factors, rank: int, g: AdjointArrays, held: HeldRates, n: int, part: float
) -> bool:
    """Less what rates that are held in step n do not change by; whether they are told apart.

    Takes in OF_A the gradient by forces; adds to GRADIENT and takes from OF_V.

    Args:
        f: Of the start.
        rank: Of these.
        g: Gradients.
        held: These rates.
        n: The step.
        part: What an acceleration changes rates by [s].
    """
    m, nv = held.counts[n], g.answers.shape[1]
    axes, N, z = held.axes[n], g.weights, g.vectors[W]
    if m > nv:
        return False
    for i in range(m):
        answer, own = g.answers[i], axes[i]
        for k in range(nv):
            answer[k] = 0.0
        answer[own] = part
        answer_transposed(f, rank, answer, g.of_rows[PARTS], g.of_rows[EARLIER])
        for k in range(i + 1):
            N[i, k] = answer[axes[k]]
        N[i, i] += held.compliance[n, i]
        alone = N[i, i]
        if not alone > held.least[n, i]:
            return False
        for k in range(i + 1):
            total = N[i, k] - inner_part(N, i, k)
            if k < i:
                N[i, k] = total / N[k, k]
            elif not total > DEPENDENT * alone:
                return False
            else:
                N[i, i] = math.sqrt(total)
    for i in range(m):
        total = g.vectors[OF_A, axes[i]]
        for k in range(i):
            total -= N[i, k] * z[k]
        z[i] = total / N[i, i]
    for i in range(m - 1, -1, -1):
        for k in range(i + 1, m):
            z[i] -= N[k, i] * z[k]
        z[i] /= N[i, i]
    for i in range(m):
        g.vectors[OF_V, axes[i]] -= z[i]
        g.vectors[GRADIENT, axes[i]] += held.slopes[n, i] * z[i]
    return True


@helper
def inner_part(N: Array, i: int, k: int) -> float:
    """Product of lines i and k as far as column k, which is left out."""
    total = 0.0
    for j in range(k):
        total += N[i, j] * N[k, j]
    return total


@outlined
def pull_back_start(
    a: Arrays,
    f: Factors,
    d: DerivativeArrays,
    s: StepArrays,
    g: AdjointArrays,
    at: Place,
    vdot: Array,
    held: tuple[HeldRates, int],
) -> bool:
    """What accelerates and displaces at the start of a step, transposed; whether that is known.

    Takes gradients OF_Q by the prediction, OF_V by the rates that lead there, OF_A; adds those by
    the state to GRADIENT and leaves OF_V, by forces to OF_TAU. ``held`` are rates that are, and the
    number of the step.
    """
    nv, dt, maps, c = len(a.axes), a.control.dt, s.maps[OF_STEP], a.control
    start, v = at.now, at.v
    euler = c.integrator == EULER
    part = dt if euler else 0.5 * dt
    of_q, of_v, w, lam = g.vectors[OF_Q], g.vectors[OF_V], g.vectors[OF_A], d.lam
    kappa, way, needed = g.of_rows[KAPPA], g.vectors[WAY], a.vectors[FORCE, : len(v)]
    put_displacement_maps(a.bodies, way, way, maps)
    copy_into(g.vectors[W], of_q)
    turn_back(a, maps[TURNED], g, g.vectors[W])
    turn_back(a, maps[CARRIED], g, of_q)
    for k in range(nv):
        g.vectors[GRADIENT, k] += of_q[k]
        of_v[k] += dt * g.vectors[W, k]
        w[k] += part * of_v[k]
    answer_transposed(f, c.rank, w, g.of_rows[PARTS], kappa)
    rates, step = held
    if len(rates.counts) > 0 and rates.counts[step] > 0:
        if not pull_back_held(f, c.rank, g, rates, step, part):
            return False
        for k in range(nv):
            w[k] = part * of_v[k]
        answer_transposed(f, c.rank, w, g.of_rows[PARTS], kappa)
    by_forces = TreeGradients(w, -1.0, g.sums, g.above, g.vectors[GRADIENT], of_v)
    if euler:
        put_metric_derivatives(a, d, s, start, vdot)
        pull_back_metric(a, s, by_forces)
    applied_forces(a, at.q, v, at.tau, needed)
    solution_multipliers(a, f, c.rank, needed, vdot, lam)
    asked = RowGradients(lam, kappa[:0], kappa[:0] if euler else kappa)
    pull_back_motion(a, d, start.targets, v, vdot, asked, by_forces)
    if euler:
        pull_back_prescribed(a, d, start.targets, vdot, s.vectors[ZEROS, :nv], kappa, by_forces)
    for k in range(nv):
        g.vectors[OF_TAU, k] += w[k]
    return True


@kernel
def pull_back_steps(
    arrays: SystemArrays,
    d: DerivativeArrays,
    s: StepArrays,
    tape: Tape,
    g: AdjointArrays,
    given: Given,
    last: int,
) -> int:
    """Take the gradient p from the end of step ``last`` - 1 back through plain steps.

    Motions and forces are those of ``record_steps``.

    Returns:
        The step to whose start it has come; it has not through one of which rates are held that are
        not told apart.
    """
    a, c, nv = arrays_of(arrays), arrays.control[0], len(arrays.axes)
    nq, dt, each, seen = len(arrays.state) - nv - 1, c.dt, TARGETS_PER_STEP[c.integrator], -1
    euler = c.integrator == EULER
    part = dt if euler else 0.5 * dt
    of_q, of_v, (targets, tau, prices, held) = g.vectors[OF_Q], g.vectors[OF_V], given
    lines = len(tau) // len(prices)
    set_implicit_horizon(a, dt if euler else 0.0)
    for n in range(last - 1, -1, -1):
        if tape.plain[n] == 0:
            return n + 1
        first, ended = kept_factors(tape, n), kept_factors(tape, n + 1)
        q, v = tape.states[n, :nq], tape.states[n, nq : nq + nv]
        q_end, correction = tape.states[n + 1, :nq], tape.corrections[n]
        start = Instant(tape.states[n, nq + nv], targets[min(each * n, len(targets) - 1)])
        line = min(each * (n + 1), len(targets) - 1)
        end = Instant(tape.states[n + 1, nq + nv], targets[line])
        for k in range(nv):
            g.after[n, k], g.after[n, nv + k] = g.p[k], g.p[nv + k]
            of_q[k], of_v[k] = g.p[k], g.p[nv + k]
            g.vectors[GRADIENT, k] = g.vectors[OF_A, k] = g.vectors[OF_TAU, k] = 0.0
            g.vectors[PUSH, k] = tape.accelerations[n, k]
            g.vectors[V, k] = v[k] + part * tape.accelerations[n, k] + correction[k] / dt
        c.rank, c.filter_rank = tape.ranks[n + 1, 0], tape.ranks[n + 1, 1]
        if seen != n + 1:
            place(a, ended, end, q_end, v)
        jacobian(a.loops, a.couplings, a.terms, a.poses, a.axes, end.targets, s.J, ended.rows)
        c.t = end.t
        if euler:
            put_metric(a, s)
            pull_back_filter(a, ended, d, s, g, end)
        else:
            last_forces = tau[lines * (n + 1) - 1]
            at = Place(end, q_end, g.vectors[V], last_forces)
            pull_back_second_half(a, ended, d, g, at, tape.seconds[n], tape.led[n, nq : nq + nv])
        c.rank, c.filter_rank = tape.ranks[n, 0], tape.ranks[n, 1]
        place(a, first, start, q, v)
        c.t, seen = start.t, n
        if euler:
            put_metric(a, s)
        if c.rank > 0:
            pull_back_correction(a, first, d, s, g, start, correction)
        for k in range(nv):
            g.vectors[WAY, k] = dt * (v[k] + part * tape.accelerations[n, k])
        at = Place(start, q, v, tau[lines * n])
        if not pull_back_start(a, first, d, s, g, at, tape.accelerations[n], (held, n)):
            return n + 1
        for k in range(nv):
            g.p[k] = g.vectors[GRADIENT, k] + prices[n, k]
            g.p[nv + k] = of_v[k] + prices[n, nv + k]
            g.by_tau[n, k] = g.vectors[OF_TAU, k] + prices[n, 2 * nv + k]
    return 0


@kernel
def differentiate_answers(
    arrays: SystemArrays, d: DerivativeArrays, s: StepArrays, room: tuple[Array, Array, Array],
    targets: Array, axes: Ints, answers: Array, by_q: Array,
) -> int:  # fmt: skip
    """What rates answer to forces of one on themselves changes by with positions; how many.

    With M x - Jᵀ λ = e, J x = 0, that is -xᵀ ∂(M x - Jᵀ λ) + λᵀ ∂(J x). Where
    ``differentiate_prediction`` or the terms of ``differentiate_closing`` were asked for last.

    Args:
        arrays: Of whom.
        d: What derivatives are worked out in,
        s: likewise.
        room: Sums, above and a gradient by rates, as of ``TreeGradients``.
        targets: (1, 0) prescribed motions: none.
        axes: (n,)
        answers: (n, nv) rates x by forces of one.
        by_q: (n, nv) receives it.
    """
    a, f, nv = arrays_of(arrays), dense_factors(arrays, 0), len(arrays.axes)
    rank, zeros, needed = a.control.rank, s.vectors[ZEROS], a.vectors[FORCE, :nv]
    now = Instant(arrays.state[len(arrays.state) - 1], targets[0])
    put_metric(a, s)
    for i in range(len(axes)):
        x, lam = answers[i], d.lam
        for k in range(nv):
            by_q[i, k] = needed[k] = 0.0
        needed[axes[i]] = 1.0
        put_metric_derivatives(a, d, s, now, x)
        solution_multipliers(a, f, rank, needed, x, lam)
        own = TreeGradients(x, -1.0, room[0], room[1], by_q[i], room[2])
        asked = RowGradients(lam, lam[:0], lam[:0])
        pull_back_equations(a, d, now.targets, zeros, zeros[:nv], x, asked, own)
        pull_back_metric(a, s, own)
        pull_back_rates(a, d, now.targets, x, lam, own)
    return len(axes)


class StepAdjoint:
    """Adjoints of the steps, one after another, of one solver.

    Args:
        steps: Derivatives of its steps; they are worked out in the same arrays.
    """

    def __init__(self, steps: StepDifferentiator) -> None:
        self._steps, self._solver, self._states = steps, steps.solver, NO_RECORD
        self._make_room(1)

    def _make_room(self, n: int) -> None:
        """Have arrays for so many steps."""
        arrays, equations, found = self._steps.arrays
        nv, nc, size = len(arrays.axes), arrays.Y.shape[1], len(arrays.state)
        self._tape = Tape(
            np.zeros((n + 1, size)),
            np.zeros((n + 1, nv, nv)),
            np.zeros((n + 1, nc, nv)),
            np.zeros((n + 1, nc, nc)),
            np.zeros((n + 1, nc), ROW),
            np.zeros((n + 1, nv), np.int64),
            np.zeros((n + 1, 2), np.int64),
            np.zeros((n, nv)),
            np.zeros((n, nv)),
            np.zeros((n, nv)),
            np.zeros((n, size)),
            np.zeros(n, np.int64),
        )
        self._found = AdjointArrays(
            np.zeros(2 * nv),
            np.zeros((n, nv)),
            np.zeros((n, 2 * nv)),
            np.zeros((VECTORS, nv)),
            np.zeros((ROW_VECTORS, nc)),
            np.zeros((1, nv)),
            np.zeros((nv, 6)),
            np.zeros((nv, 9)),
            np.zeros((nv, nv)),
            np.zeros((nv, nv)),
        )
        self._targets, self._tau, self._held = (
            self._solver.still,
            np.zeros((0, nv)),
            no_held_rates(nv),
        )
        examples = self._targets, self._tau, NO_RECORD, np.zeros((1, size)), 0.0
        fixed = self._steps.kernel(EULER).block, arrays, self._tape  # the same one as Verlet's
        with announce_compilation(record_steps):
            self._record = StoredCall(record_steps, fixed, examples).call
        fixed = arrays, equations, found, self._tape, self._found
        examples = Given(self._targets, self._tau, np.zeros((0, 3 * nv)), self._held), 0
        with announce_compilation(pull_back_steps):
            self._pull_back = StoredCall(pull_back_steps, fixed, examples).call

    def room(self, numbers: int) -> int:
        """How many steps are kept in so many numbers; one at least."""
        arrays = self._steps.arrays[0]
        nv, nc = len(arrays.axes), arrays.Y.shape[1]
        each = nv * nv + nc * (nv + nc + ROW.itemsize // 8) + 7 * nv + 2 * len(arrays.state)
        return max(1, numbers // each)

    def require_known(self) -> None:
        """Refuse steps that gradients cannot be taken back through without their derivatives.

        Raises:
            UnsupportedError: It names what there is.
        """
        solver = self._solver
        if solver.control[0]["integrator"] not in METHODS:
            raise UnsupportedError("adjoints of steps by stages are not known")

    def record(
        self, states: Array, tau: Array, alike: float, held: HeldRates | None = None
    ) -> tuple[Mask, Array]:
        """Make steps from the state of the solver.

        Args:
            states: (n + 1, nq + nv + 1) q, v, t that they begin in and lead to; the first one is
                that of the solver.
            tau: (n, nv) forces on the rates in each of them.
            alike: Share by which they may lead elsewhere; where one leads further, the next one
                starts from the states. Infinite: all but the first of them are not known, and
                nothing is made after a step that is not plain.
            held: Forces besides, and rates that they hold, in steps that are Euler's then.

        Returns:
            Which of them are plain (n,) and lead there, and where they have led
            (n, nq + nv + 1), until more are recorded; not a number where a step has failed.
        """
        solver, n = self._solver, len(tau)
        if n > len(self._tape.plain):
            self._make_room(n)
        self._steps.begin(by_euler=held is not None)
        self._targets = solver.targets(n) if solver.encoded.motions else solver.still
        self._tau = np.ascontiguousarray(solver.forces(n, tau))
        self._held = held or no_held_rates(tau.shape[1])
        if held is not None:
            self._tau = self._tau + np.repeat(held.pushes, len(self._tau) // n, axis=0)
        self._tape.plain[:n] = 0
        self._states = states
        self._record((self._targets, self._tau, NO_RECORD, states, alike))
        self._steps.raise_interruption()
        return self._tape.plain[:n] != 0, self._tape.led[:n]

    def is_recorded(self, states: Array) -> bool:
        """Whether these are the states that were given last."""
        return self._states is states

    def refuse(self, steps: Mask) -> None:
        """Take some of the steps that were recorded (n,) for such as are not plain."""
        self._tape.plain[: len(steps)][steps] = 0

    def pull_back(self, p: Array, prices: Array, last: int) -> tuple[int, Array]:
        """Take a gradient from the end of a recorded step back through all plain ones before it.

        Args:
            p: (2 nv,) by displacements and rates there.
            prices: (n, 3 nv) gradients of what is paid where each step starts, by displacements,
                rates and forces.
            last: The step after.

        Returns:
            The step to whose start it has come, and the gradient there.
        """
        self._found.p[:] = p
        given = Given(self._targets, self._tau, np.ascontiguousarray(prices), self._held)
        first = self._pull_back((given, last))
        self._steps.raise_interruption()
        return first, self._found.p.copy()

    def accelerations(self, n: int) -> Array:
        """(n, nv) at the starts of the first steps that were recorded."""
        return self._tape.accelerations[:n]

    def by_tau(self, first: int, last: int) -> Array:
        """(last - first, nv) gradients by the forces of steps that were gone back through."""
        return self._found.by_tau[first:last]

    def after(self, first: int, last: int) -> Array:
        """(last - first, 2 nv) gradients at the ends of these."""
        return self._found.after[first:last]
