"""What motors come to that ask for more than loops, and rows that hold, let them do together.

Of the rates w along their rows that are possible, they take those that miss what each asks for
least (``sharing.agree``): among themselves by the squares of their strengths, then, beside limits
and contacts, whose rows hold exactly what they ask for, by what they answer to their own forces.
With weights F², rows W of motors, C of what holds and a force κ along these,

    Wᵀ F² (w - r) + Cᵀ κ = Jᵀ μ,     C u = c

changes by, along all T that the forces of these rows move at J T = 0, C T = 0,

    Tᵀ (Wᵀ (F² (δw - δr) + δF² (w - r)) + δCᵀ κ - ∂(Jᵀ μ) δq) = 0

What forces along rows can do is told by coordinates orthonormal in D: with D = L Lᵀ, pivots among
rows that hold first, these take the first coordinates alone, and motors are free in the others.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.jit import call_stored, caller, helper, outlined
from bulletbridge.engine.derivatives import DerivativeArrays, split_of
from bulletbridge.engine.records import SystemArrays, dense_factors
from bulletbridge.engine.step_derivatives import (
    PUSH,
    RATES,
    TERMS,
    THEIR_SLOPES,
    put_matrix,
    put_zeros,
)
from bulletbridge.inequalities.active_rows import (
    WEAKEST,
    ActiveRows,
    Equations,
    size_of,
    solve_rows,
)
from bulletbridge.inequalities.contact_slopes import Ahead, PushingContacts
from bulletbridge.numerics.lu import back_lines, back_real, lu_real
from bulletbridge.numerics.many_sides import add_product, respond
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.numerics.sharing import AMPLE
from bulletbridge.numerics.spatial import copy_into

DRIVEN = 1
"""Why what motors agree on is not known: loops are driven."""
OTHERS, ALL = range(2)
"""Counts of rows that are told apart: of others, and of all."""


class AgreementCalls(NamedTuple):
    """Kernels with their arrays, stored.

    Attributes:
        closing: ``differentiate_closing``.
        answers: ``differentiate_answers``.
    """

    closing: Any
    answers: Any


class Agreement(NamedTuple):
    """What motors that agree are worked out in, with room for m rows and c columns of changes.

    Attributes:
        of: (m,) which rows: those that hold, then motors.
        pivots: (m,) which of these tell the coordinates.
        counts: (2,) of these.
        units: (m,) in which rows answer to their own forces by one.
        left: (m,) of what they answer by, what no coordinate has yet.
        rates: (m, m) of these rows by coordinates; in units until these are told.
        moved: (m, nv) rates by coordinates.
        weights: (m,) what rows count by: zero for those that hold.
        off: (m,) rates by which rows are off what they ask for.
        y: (m,) coordinates, and
        x: (m, c) what they change by.
        sides: (m, c) right sides of rows, then of motors in free coordinates.
        free: (m, c) what rates along rows change by otherwise.
        stiff: (m, m) and
        turns: (m,) factors by free coordinates.
        pulls: (m,) forces of rows in balance.
        bent: (nv, nv) what these change by with the places of contacts.
        more: (m, c) by free coordinates.
        answers: (m, nv) rates by a force along each motor,
        answers_by_q: (m, nv) and what its own changes by.
        axes: (m,) of motors.
        asked: (3, nv) scratch,
        kept: (nv, nv) and
        parts: (nc, nv) likewise.
        wanted: (m,) receives rates that rows hold,
        held: (m, c) and what they change by.
        still: (1, 0) prescribed motions: none.
    """

    of: Ints
    pivots: Ints
    counts: Ints
    units: Array
    left: Array
    rates: Array
    moved: Array
    weights: Array
    off: Array
    y: Array
    x: Array
    sides: Array
    free: Array
    stiff: Array
    turns: Array
    pulls: Array
    bent: Array
    more: Array
    answers: Array
    answers_by_q: Array
    axes: Ints
    asked: Array
    kept: Array
    parts: Array
    wanted: Array
    held: Array
    still: Array


def room_of_agreement(m: int, nv: int, nc: int, still: np.ndarray) -> Agreement:
    """Room for m rows of nv rates, and nc rows of loops; with prescribed motions, none."""
    of, pivots, axes = np.zeros((3, m), np.int64)
    units, left, weights, off, y, turns, pulls, wanted = np.zeros((8, m))
    (rates, stiff), (moved, answers, by_q) = np.zeros((2, m, m)), np.zeros((3, m, nv))
    x, sides, free, more, held = np.zeros((5, m, 3 * nv))
    bent, kept = np.zeros((2, nv, nv))
    return Agreement(
        of, pivots, np.zeros(2, np.int64), units, left, rates, moved, weights, off, y, x, sides,
        free, stiff, turns, pulls, bent, more, answers, by_q, axes, np.zeros((3, nv)), kept,
        np.zeros((nc, nv)), wanted, held, still,
    )  # fmt: skip


@outlined
def tell_apart(a: ActiveRows, e: Equations, g: Agreement, others: int, n: int) -> None:
    """Have coordinates of n rows, of which others hold: D = L Lᵀ by pivots among those first."""
    for i in range(n):
        own = g.of[i]
        g.units[i], g.left[i] = math.sqrt(e.S[own, own] + a.K[own, own]), 1.0
    count, first, last = 0, 0, others
    while True:
        pivot, most = -1, WEAKEST
        for i in range(first, last):
            if g.left[i] > most:
                pivot, most = i, g.left[i]
        if pivot < 0 and last == n:
            g.counts[ALL] = count
            break
        if pivot < 0:
            g.counts[OTHERS] = count
            first, last = others, n
            continue
        own, length = g.of[pivot], math.sqrt(most)
        for i in range(n):
            total = (e.S[own, g.of[i]] + a.K[own, g.of[i]]) / (g.units[pivot] * g.units[i])
            for k in range(count):
                total -= g.rates[pivot, k] * g.rates[i, k]
            g.rates[i, count] = total / length
            g.left[i] -= g.rates[i, count] * g.rates[i, count]
        for k in range(count):
            g.rates[g.pivots[k], count] = 0.0
        g.rates[pivot, count], g.left[pivot] = length, 0.0
        g.pivots[count] = pivot
        count += 1


@outlined
def take_coordinates(e: Equations, g: Agreement, n: int) -> None:
    """What coordinates move, and their rates out of units."""
    for k in range(g.counts[ALL]):
        i = g.pivots[k]
        for j in range(g.moved.shape[1]):
            total = e.moved[g.of[i], j] / g.units[i]
            for m in range(k):
                total -= g.rates[i, m] * g.moved[m, j]
            g.moved[k, j] = total / g.rates[i, k]
    for i in range(n):
        for k in range(g.counts[ALL]):
            g.rates[i, k] *= g.units[i]


@helper
def put_stiffness(g: Agreement, n: int) -> None:
    """What free coordinates miss by, by the weights, factored."""
    first, last = g.counts[OTHERS], g.counts[ALL]
    for i in range(first, last):
        for k in range(first, last):
            total = 0.0
            for m in range(n):
                total += g.weights[m] * g.rates[m, i] * g.rates[m, k]
            g.stiff[i - first, k - first] = total
    lu_real(g.stiff, g.turns[: last - first])


@outlined
def put_nearest(g: Agreement, n: int) -> None:
    """Coordinates by which rows that hold are met, and others miss least; ``off`` is what is left.

    Takes by how much rows are off.
    """
    first, last = g.counts[OTHERS], g.counts[ALL]
    for k in range(first):
        total = -g.off[g.pivots[k]]
        for m in range(k):
            total -= g.rates[g.pivots[k], m] * g.y[m]
        g.y[k] = total / g.rates[g.pivots[k], k]
    for i in range(n):
        for k in range(first):
            g.off[i] += g.rates[i, k] * g.y[k]
    for k in range(first, last):
        g.y[k] = 0.0
        for i in range(n):
            g.y[k] -= g.weights[i] * g.rates[i, k] * g.off[i]
    back_real(g.stiff, g.turns[: last - first], g.y[first:last])
    for i in range(n):
        for k in range(first, last):
            g.off[i] += g.rates[i, k] * g.y[k]


@outlined
def put_nearest_changes(g: Agreement, others: int, n: int) -> None:
    """The same of what rows are off by as all changes: ``sides``, which are lost; with ``more``."""
    first, last = g.counts[OTHERS], g.counts[ALL]
    for k in range(first):
        i = g.pivots[k]
        for j in range(g.x.shape[1]):
            g.x[k, j] = -g.sides[i, j]
        for m in range(k):
            rate = g.rates[i, m]
            for j in range(g.x.shape[1]):
                g.x[k, j] -= rate * g.x[m, j]
        for j in range(g.x.shape[1]):
            g.x[k, j] /= g.rates[i, k]
    add_product(1.0, g.rates[others:n], 0, g.x[:first], g.sides[others:n])
    for k in range(first, last):
        for j in range(g.x.shape[1]):
            g.x[k, j] = -g.more[k - first, j]
        for i in range(others, n):
            size = g.weights[i] * g.rates[i, k]
            for j in range(g.x.shape[1]):
                g.x[k, j] -= size * g.sides[i, j]
    back_lines(g.stiff, g.turns[: last - first], g.x[first:last])


@outlined
def put_pulls(g: Agreement, others: int, n: int) -> None:
    """What motors that miss pull by, and rows that hold, in balance."""
    for i in range(n):
        g.pulls[i] = g.weights[i] * g.off[i] if i >= others else 0.0
    for k in range(g.counts[OTHERS] - 1, -1, -1):
        total = 0.0
        for i in range(others, n):
            total -= g.rates[i, k] * g.pulls[i]
        for m in range(k + 1, g.counts[OTHERS]):
            total -= g.rates[g.pivots[m], k] * g.pulls[g.pivots[m]]
        g.pulls[g.pivots[k]] = total / g.rates[g.pivots[k], k]


@outlined
def put_bent(a: ActiveRows, c: PushingContacts, ahead: Ahead, g: Agreement, others: int) -> None:
    """What pulls of rows that turn with the place of contacts change by, along free coordinates."""
    nv, first = len(ahead.v), g.counts[OTHERS]
    put_zeros(g.bent)
    for n in range(others):
        contact, start = a.of[g.of[n], 0], 4 + nv * a.of[g.of[n], 1]
        if contact >= 0 and g.pulls[n] != 0.0:
            for i in range(nv):
                for j in range(nv):
                    g.bent[j, i] += g.pulls[n] * c.by_q[i, contact, start + j]
    put_zeros(g.more)
    free = g.counts[ALL] - first
    put_zeros(g.sides[:free])
    add_product(1.0, g.moved[first : first + free], 0, g.bent, g.sides[:free])
    add_product(1.0, g.sides[:free], 0, ahead.where[:nv], g.more[:free])


@caller
def bend_with_loops(
    closing: Any, arrays: SystemArrays, d: DerivativeArrays, bent: Array, a: ActiveRows,
    g: Agreement, n: int,
) -> int:  # fmt: skip
    """Add what loops change by as they turn; 0, or why that is not known.

    Args:
        closing: ``differentiate_closing``, stored.
        arrays: At the start of the step.
        d: What it leaves,
        bent: and where.
        a: Rows.
        g: Has pulls; receives ``more`` and ``free``.
        n: How many.
    """
    nv, nc, first = len(arrays.axes), arrays.Y.shape[1], g.counts[OTHERS]
    if nc == 0:
        return 0
    if arrays.control[0].driven != 0:
        return DRIVEN
    put_zeros(g.asked)
    for j in range(nv):
        for i in range(n):
            g.asked[PUSH, j] -= a.rows[g.of[i], j] * g.pulls[i]
        for k in range(g.counts[ALL]):
            g.asked[RATES, j] += g.moved[k, j] * g.y[k]
    rank = call_stored(closing, (g.still, g.asked, TERMS))
    call_stored(closing, (g.still, g.asked, THEIR_SLOPES))
    add_product(1.0, g.moved[first : g.counts[ALL]], 0, bent, g.more[: g.counts[ALL] - first])
    put_zeros(g.kept)
    respond(split_of(dense_factors(arrays, 0), rank), d.rate, g.kept, g.parts)
    for i in range(n):
        for k in range(nv):
            x = a.rows[g.of[i], k]
            if x != 0.0:
                for j in range(nv):
                    g.free[i, j] -= x * g.kept[k, j]
    return 0


@caller
def weigh_by_answers(
    answers: Any, a: ActiveRows, e: Equations, g: Agreement, others: int, n: int, dt: float
) -> int:
    """Add what the weights of motors change by: one over the rate that its own force gives each."""
    m, nv, first = n - others, a.rows.shape[1], g.counts[OTHERS]
    for i in range(m):
        own = g.of[others + i]
        g.axes[i] = a.of[own, 1]
        for j in range(nv):
            g.answers[i, j] = e.moved[own, j] / dt
    call_stored(answers, (g.still, g.axes[:m], g.answers[:m], g.answers_by_q[:m]))
    for i in range(m):
        w = g.weights[others + i]
        for k in range(first, g.counts[ALL]):
            size = -dt * w * w * g.rates[others + i, k] * g.off[others + i]
            for j in range(nv):
                g.more[k - first, j] += size * g.answers_by_q[i, j]
    return 0


@caller
def agree_among(
    calls: AgreementCalls, own: tuple[SystemArrays, DerivativeArrays, Array], a: ActiveRows,
    c: PushingContacts, ahead: Ahead, e: Equations, g: Agreement, among: tuple[int, int, float],
) -> int:  # fmt: skip
    """Have motors hold what they agree on; 0, or why that is not known.

    Args:
        calls: Kernels.
        own: Arrays at the start of the step, what derivatives of loops are left in, and where.
        a: Rows.
        c: Contacts.
        ahead: Where forces lead.
        e: What rows answer by.
        g: Has rows and weights; receives what they hold.
        among: Rows that hold, all rows, and share of rates that rounding makes.
    """
    (arrays, d, bent), (others, n, alike) = own, among
    by_answers = others > 0
    tell_apart(a, e, g, others, n)
    if g.counts[ALL] == n:
        return 0
    take_coordinates(e, g, n)
    put_stiffness(g, n)
    for i in range(n):
        row, total = g.of[i], 0.0
        for j in range(a.rows.shape[1]):
            total += a.rows[row, j] * ahead.rates[j]
        g.off[i] = total - g.wanted[row]
        copy_into(g.free[i], e.free[row])
    put_nearest(g, n)
    turned = False
    for i in range(n):
        given = 0.0
        for k in range(g.counts[ALL]):
            given += g.rates[i, k] * g.y[k]
        missed = math.fabs(g.off[i]) if i >= others else 0.0
        turned = turned or max(missed, math.fabs(given)) > alike * size_of(ahead.rates)
    put_zeros(g.more)
    if turned:  # else nothing comes of it
        put_pulls(g, others, n)
        put_bent(a, c, ahead, g, others)
        failure = bend_with_loops(calls.closing, arrays, d, bent, a, g, n)
        if failure != 0:
            return failure
        if by_answers:
            weigh_by_answers(calls.answers, a, e, g, others, n, ahead.contacts.dt)
    for i in range(n):
        for j in range(g.sides.shape[1]):
            g.sides[i, j] = g.free[i, j] - g.held[g.of[i], j]
    put_nearest_changes(g, others, n)
    put_matrix(g.sides[others:n], 1.0, g.free[others:n])
    add_product(1.0, g.rates[others:n], 0, g.x[: g.counts[ALL]], g.sides[others:n])
    for i in range(others, n):
        g.wanted[g.of[i]] += g.off[i]
        copy_into(g.held[g.of[i]], g.sides[i])
    return 0


@helper
def list_rows(a: ActiveRows, g: Agreement, beside: bool) -> tuple[int, int]:
    """List motors, and rows that hold before them if these count; how many of these, and of all."""
    n = 0
    for i in range(a.counts[0] if beside else 0):
        if math.isnan(a.strengths[i]) and not math.isnan(a.rates[i]):
            g.of[n], g.weights[n] = i, 0.0
            n += 1
    others = n
    for i in range(a.counts[0]):
        if not math.isnan(a.strengths[i]):
            g.of[n] = i
            n += 1
    return others, n


@outlined
def weigh_by_strength(a: ActiveRows, e: Equations, rates: Array, g: Agreement, motors: int) -> bool:
    """Let motors count by their strengths; whether none is so strong that what is needed counts.

    See ``sharing.weigh``.
    """
    strongest, most, needed = 0.0, 0.0, 0.0
    for i in range(motors):
        row, off = g.of[i], -a.rates[g.of[i]]
        for j in range(len(rates)):
            off += a.rows[row, j] * rates[j]
        for k in range(a.counts[0]):
            off -= e.S[row, k] * a.forces[k]
        strength = a.strengths[row]
        counts = strength * strength * e.S[row, row]
        strongest, most = max(strongest, strength), max(most, counts)
        needed = max(needed, min(off * off / e.S[row, row], counts))
    for i in range(motors):
        share = a.strengths[g.of[i]] / strongest
        g.weights[i] = share * share
    return not most > AMPLE * AMPLE * needed


@caller
def agree(
    calls: AgreementCalls, own: tuple[SystemArrays, DerivativeArrays, Array], a: ActiveRows,
    c: PushingContacts, ahead: Ahead, e: Equations, g: Agreement, alike: float,
) -> int:  # fmt: skip
    """Solve for what forces of rows change by where motors agree; 0, or why that is not known.

    Args:
        calls: Kernels.
        own: Arrays at the start of the step, what derivatives of loops are left in, and where.
        a: Rows, of which ``solve_active_rows`` has found that they do not do what they ask for.
        c: Contacts.
        ahead: Where forces lead.
        e: What rows answer by; receives what it had from ``solve_rows``.
        g: Room.
        alike: Share of rates that rounding makes.
    """
    m = a.counts[0]
    for i in range(m):
        g.wanted[i] = a.rates[i]
        copy_into(g.held[i], a.sides[i])
    _, motors = list_rows(a, g, False)
    if motors == 0:
        return 0
    if own[0].Y.shape[1] > 0 and weigh_by_strength(a, e, ahead.rates, g, motors):
        failure = agree_among(calls, own, a, c, ahead, e, g, (0, motors, alike))
        if failure != 0:
            return failure
    others, n = list_rows(a, g, True)
    if others > 0:
        for i in range(others, n):
            own_answer = e.S[g.of[i], g.of[i]] + a.K[g.of[i], g.of[i]]
            g.weights[i] = 1.0 / own_answer
        failure = agree_among(calls, own, a, c, ahead, e, g, (others, n, alike))
        if failure != 0:
            return failure
    solve_rows(a, ahead.rates, g.wanted, g.held, e, alike)
    return 0
