"""Many steps with contacts in one compiled call, and what each of them changes by.

Each is made as ``steps_kernel`` does, and differentiated where it was made, by its active set as
``system.bounded_derivatives`` has it. What takes more than that, as rows that follow from each
other while loops are closed, or a step in parts, is left to that.
"""

import math
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import bundling, call_stored, caller, helper, outlined
from bulletbridge.engine.derivatives import DerivativeArrays
from bulletbridge.engine.records import CORRECTION, DONE, EULER, SystemArrays
from bulletbridge.engine.solver_copy import take_numbers
from bulletbridge.engine.step_derivatives import StepArrays as DerivativesOfStep
from bulletbridge.engine.step_derivatives import Steps, put_matrix
from bulletbridge.inequalities.active_rows import (
    OFF,
    RANK,
    SCALE,
    UNIQUE,
    ActiveRows,
    Equations,
    size_of,
    solve_active_rows,
)
from bulletbridge.inequalities.arrays import (
    ALONE,
    APART,
    BY_LINKS,
    RESIDUAL,
    RESTING,
    ROWS,
    TOGETHER,
    X,
)
from bulletbridge.inequalities.contact_rows import ContactRows
from bulletbridge.inequalities.contact_slopes import (
    AWAY,
    PARTING,
    RATES,
    Ahead,
    ContactSlopes,
    ContactsOfStep,
    PushingContacts,
    lead_apart,
    look_ahead,
)
from bulletbridge.inequalities.contact_slopes import TOGETHER as NOT_APART
from bulletbridge.inequalities.contact_variations import Beside, Tree, find_beside
from bulletbridge.inequalities.held_closing_kernel import (
    HeldClosing,
    LedToClosing,
    closes_plainly,
    count_sticking,
    differentiate_held,
    take_sticking,
)
from bulletbridge.inequalities.loose_bodies import put_rows_on_bodies
from bulletbridge.inequalities.motor_agreement import Agreement
from bulletbridge.inequalities.steps_kernel import CONTACTS, HELD, STEPS, UNMET, StepArrays
from bulletbridge.numerics.complementarity_rows import RowBounds
from bulletbridge.numerics.many_sides import add_product
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import copy_into

ALL, NOT_MADE, LEFT, MORE_ROOM = range(4)
"""Why steps have ended: all were differentiated; one takes more than a call, and was not made; one
was made, and its derivatives take more; there is no room for as many contacts."""
DIFFERENTIATED, MADE, TOUCHING, STICKING, COUNTS = range(5)
"""What is counted: steps that were differentiated, whether the next one was made, how many of its
contacts push, or might, and how many stick while loops are closed."""


class RowsOfSteps(NamedTuple):
    """Rows of the inequalities of a step, as it leaves them.

    Attributes:
        own: (n,) and more, of contacts.
        bounds: (rows,)
        D: (2, rows, rows) and more.
        on_bodies: (rows, 2) bodies of rows that are known by these,
        on: (rows, 2, widest) and what is on each.
        all: (rows, nv) room for all.
        by_links: Whether steps are made by links.
    """

    own: Records[ContactRows]
    bounds: Records[RowBounds]
    D: Array
    on_bodies: Ints
    on: Array
    all: Array
    by_links: int


class Blocks(NamedTuple):
    """Kernels with their arrays, stored.

    Attributes:
        step: ``steps_kernel.step_with_contacts`` for one step, with all its arguments.
        predict: ``differentiate_prediction``.
        find: ``contact_detection.find_contacts``,
        vary: ``vary_contacts``.
        closing: ``differentiate_closing``.
        by_euler: ``differentiate_steps``.
        agree: ``motor_agreement.agree``.
    """

    step: Any
    predict: Any
    find: Any
    vary: Any
    closing: Any
    by_euler: Any
    agree: Any


class DerivativesIn(NamedTuple):
    """What derivatives are worked out in.

    Attributes:
        arrays: Of whom, at the start of a step.
        d: Those of equations,
        s: and of a step.
        tree: Whose contacts these are; poses and axes are written.
    """

    arrays: SystemArrays
    d: DerivativeArrays
    s: DerivativesOfStep
    tree: Tree


class RoomOfStep(NamedTuple):
    """What a step is differentiated in that has so many contacts.

    Attributes:
        ahead: Where it leads; its contacts, state and forces are not looked at,
        parting: and where that leads which also moves bodies out of each other.
        active: Rows that act,
        pushing: contacts,
        slopes: what they ask for,
        equations: and these.
        agreement: Where motors agree.
        beside: Contacts at other places.
        closing: In which as many points stick.
        closed: (1, 2 nv, 3 nv) scratch of steps in which none does,
        led_to: (1, nq + nv + 1) and
        end: (nq + nv + 1,) likewise.
        record: Empty.
        alike: Share of rates by which a step may be another one.
        contradicts: Share of what rows ask by which those that follow may ask for another.
    """

    ahead: Ahead
    parting: Ahead
    active: ActiveRows
    pushing: PushingContacts
    slopes: ContactSlopes
    equations: Equations
    agreement: Agreement
    beside: Beside
    closing: HeldClosing
    closed: Array
    led_to: Array
    end: Array
    record: Array
    alike: float
    contradicts: float


class StepsAsked(NamedTuple):
    """Steps that are to be made.

    Attributes:
        tau: (n, nv) forces in each of them.
        states: (n + 1, nq + nv + 1) receives where they begin and lead,
        changes: (n, 2 nv, 3 nv) and what that changes by,
        at_rest: (n,) and whether contacts rest.
        counts: (COUNTS,) receives how many.
    """

    tau: Array
    states: Array
    changes: Array
    at_rest: Ints
    counts: Ints


@bundling
def contacts_of(a: StepArrays, r: RowsOfSteps, line: int, apart: int) -> ContactsOfStep:
    """Contacts of the step that was made last, and a line of its impulses."""
    held = a.counts[HELD]
    return ContactsOfStep(
        a.points[held : held + a.counts[CONTACTS]],
        r.own,
        r.all[: int(a.report[ROWS])],
        r.bounds,
        a.impulses,
        a.impulses[line],
        apart,
        r.D,
        r.by_links != 0,
        a.control[0].dt,
    )


@bundling
def ahead_of(
    x: Ahead, a: StepArrays, arrays: SystemArrays, nq: int, end: Array, contacts: ContactsOfStep
) -> Ahead:
    """Where that step leads, from the state in arrays to that end."""
    nv = len(a.exerted)
    return Ahead(
        x.targets, a.asked, arrays.state[nq + nv], arrays.state[nq : nq + nv], end, a.exerted,
        x.reach, x.length, contacts, x.motor_rows, x.joint_limits, x.forces, x.lead, x.push,
        x.rates, x.led, x.where, x.found_at, x.place, x.by_tau, x.by_tau_by_all, x.numbers,
        x.report,
    )  # fmt: skip


@outlined
def put_all_rows_of(a: StepArrays, r: RowsOfSteps, bodies: Any) -> None:
    """Rows of the step that was made last, all of them as rows of all rates."""
    n, first = int(a.report[ROWS]), 0 if r.by_links != 0 else int(a.report[TOGETHER])
    for i in range(n):
        for j in range(r.all.shape[1]):
            r.all[i, j] = a.C[i, j] if i < first else 0.0
    put_rows_on_bodies(bodies, r.on_bodies, r.on, first, r.all[:n])


@helper
def is_whole(report: Array, by_links: int) -> bool:
    """Whether the last step was made as a whole, by links or not as before, and nothing is told."""
    if (report[APART] > 0.0 and by_links != 0) or report[ALONE] > 0.0 or report[RESIDUAL] > UNMET:
        return False
    return (1 if report[BY_LINKS] > 0.0 else 0) == by_links


@helper
def put_beside(s: Beside, ahead: Ahead) -> None:
    """Contacts that push, or might, where they were found."""
    copy_into(s.q, ahead.found_at)
    copy_into(s.v, ahead.lead)
    for k in range(len(s.compliant)):
        i = int(ahead.numbers[k])
        s.contact_points[k] = ahead.contacts.points[i]
        s.compliant[k] = ahead.contacts.own[i].compliance > 0.0


@outlined
def is_unique(x: RoomOfStep, nc: int, size: float) -> bool:
    """Whether rows do what they ask for, and those that follow from others ask for the same.

    Of nc rows of loops others may be asked for what these leave possible alone: that is not known.
    """
    e, m = x.equations, x.active.counts[0]
    rank, contradiction = int(e.report[RANK]), 0.0
    if nc > 0 and rank < m:
        return False
    if x.active.counts[1] > 0 or not e.report[OFF] <= x.alike * size:
        return False
    for i in range(rank, m):
        for j in range(e.right.shape[1]):
            contradiction = max(contradiction, math.fabs(e.right[i, j]))
    if contradiction > x.contradicts * e.report[SCALE]:
        return False
    return rank == m or not e.report[UNIQUE] > x.contradicts


@caller
def solve_for_forces(
    calls: Blocks, arrays: SystemArrays, x: RoomOfStep, ahead: Ahead, size: float
) -> int:
    """Solve for what forces of inequalities change by; 0 if that is known and unique."""
    active, pushing, e, nc = x.active, x.pushing, x.equations, arrays.Y.shape[1]
    if solve_active_rows(arrays, active, pushing, x.slopes, ahead, e, x.alike) != 0:
        return 1
    if not is_unique(x, nc, size):
        if call_stored(calls.agree, (active, pushing, ahead, e, x.agreement, x.alike)) != 0:
            return 1
        if not is_unique(x, nc, size):
            return 1
    return 0


@helper
def is_where(state: Array, other: Array, within: float) -> bool:
    """Whether two states are the same but for so much, and their times."""
    for k in range(len(state) - 1):
        if not math.fabs(state[k] - other[k]) <= within:
            return False
    return True


@caller
def differentiate_contact_steps(
    calls: Blocks,
    own: DerivativesIn,
    others: SystemArrays,
    a: StepArrays,
    r: RowsOfSteps,
    x: RoomOfStep,
    asked: StepsAsked,
) -> int:
    """Make and differentiate the steps that are left; why they have ended.

    Args:
        calls: Kernels.
        own: What derivatives are worked out in.
        others: Of the solver that steps,
        a: what its steps work on,
        r: and rows that they leave.
        x: Room for one step.
        asked: Steps.
    """
    nv, nc, counts = len(a.exerted), others.Y.shape[1], asked.counts
    arrays, s = own.arrays, own.s
    nq = len(a.state) - nv - 1
    while counts[DIFFERENTIATED] < len(asked.tau):
        n = int(counts[DIFFERENTIATED])
        if counts[MADE] == 0:
            copy_into(asked.states[n], a.state)
            copy_into(a.asked[0], asked.tau[n])
            if call_stored(calls.step, ()) != DONE or a.counts[STEPS] != 1:
                return NOT_MADE
            counts[MADE] = 1
        if not is_whole(a.report, r.by_links):
            return LEFT
        put_all_rows_of(a, r, others.bodies)
        take_numbers(arrays, others)
        arrays.control[0].integrator = EULER
        copy_into(arrays.state, asked.states[n])
        apart = RATES if a.report[APART] > 0.0 else NOT_APART
        made = contacts_of(a, r, X, apart)
        ahead = ahead_of(x.ahead, a, arrays, nq, a.state, made)
        counts[TOUCHING] = look_ahead(calls.predict, arrays, s, ahead)
        if counts[TOUCHING] != len(x.beside.compliant):
            return MORE_ROOM
        size = size_of(ahead.rates)
        if counts[TOUCHING] > 0:
            put_beside(x.beside, ahead)
            if find_beside(calls.find, calls.vary, own.tree, x.beside) == 0:
                return LEFT
        if solve_for_forces(calls, arrays, x, ahead, size) != 0:
            return LEFT
        changes, pushes, numbers = asked.changes[n], x.equations.pushes, ahead.numbers
        numbers, held, sticking = numbers[: counts[TOUCHING]], x.closing, 0
        if nc > 0 and len(numbers) > 0:
            sticking = count_sticking(made, numbers, held.scratch)
            counts[STICKING] = sticking
            if sticking not in (0, len(held.here.points)):
                return MORE_ROOM
        if nc == 0 and not ahead.report[AWAY] <= x.alike * size:
            return LEFT
        place = ahead.place
        if nc == 0 or sticking > 0:
            put_matrix(changes, 1.0, ahead.led)
            add_product(1.0, ahead.led, 2 * nv, pushes, changes)
            if apart == RATES:
                parted = contacts_of(a, r, RESTING, PARTING)
                parting = ahead_of(x.parting, a, arrays, nq, x.parting.end, parted)
                place = parting.place
                lead_apart(calls.predict, arrays, s, ahead, parting)
                if nc == 0 and not parting.report[AWAY] <= x.alike * size:
                    return LEFT
                if solve_for_forces(calls, arrays, x, parting, size) != 0:
                    return LEFT
                put_matrix(changes[:nv], 1.0, parting.led[:nv])
                add_product(1.0, parting.led[:nv], 2 * nv, pushes, changes[:nv])
        elif apart == RATES:
            return LEFT
        else:
            copy_into(x.end, a.state)
            copy_into(a.state, asked.states[n])
            by_equations = Steps(EULER, ahead.targets, ahead.forces, x.record, x.closed, x.led_to)
            failure = call_stored(calls.by_euler, (by_equations,))
            copy_into(a.state, x.end)
            if failure != DONE or not is_where(a.state, x.led_to[0], x.alike * size):
                return LEFT
            put_matrix(changes, 1.0, x.closed[0])
            add_product(1.0, x.closed[0], 2 * nv, pushes, changes)
        if sticking > 0:
            if not closes_plainly(others.rows[0], others.control):
                return LEFT
            take_sticking(made, numbers, x.beside.by_q, ahead.where[:nv], held)
            correction = others.vectors[CORRECTION, :nv]
            led = LedToClosing(place, ahead.rates, changes, a.state, correction)
            if differentiate_held(calls.closing, arrays, own.d, s, own.tree, led, held):
                return LEFT
            put_matrix(changes[:nv], 1.0, held.q_by_all)
            put_matrix(changes[nv:], 1.0, held.v_by_all)
        for k in range(counts[TOUCHING]):
            if x.slopes.at_rest[k] != 0:
                asked.at_rest[n] = 1
        counts[DIFFERENTIATED], counts[MADE] = n + 1, 0
        copy_into(asked.states[n + 1], a.state)
    return ALL
