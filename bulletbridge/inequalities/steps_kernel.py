"""Many steps with motors, limits and contacts in one compiled call.

A step with contacts predicts where forces would lead, finds what touches there, and solves. Each is
a kernel of its own; these call them by their blocks, and take note of how steps began and ended.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.jit import bundling, caller, helper, kernel, outlined
from bulletbridge.compilation.stored_calls import call_stored
from bulletbridge.constraints.records import JointLimit, MotorRow
from bulletbridge.engine.records import AT_LIMIT, DENSE_REQUIRED, DONE, PREDICTED_Q, Control
from bulletbridge.engine.stages import put_record
from bulletbridge.inequalities.arrays import (
    BUDGET,
    MOVING,
    PREDICT,
    PREDICTED_STEP,
    RESIDUAL,
    ROWS,
    STEP,
    WHILE_PUSHED,
    WITH_FRICTION,
    WITH_MOTORS,
    WITHOUT_MOTORS,
    Given,
    X,
    any_pushed,
)
from bulletbridge.mechanism.records import ContactPoint
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import copy_into

ASK = -1
"""Instead of a failure: contacts are to be found by others, at the prediction that was made."""
REMEMBERED = 0.3
"""Share of the last step in the motor forces by which contacts are predicted."""
UNMET = 1e-3
"""Residual [m/s or rad/s] from which on it is told that the law of what touches is not met."""
STEPS, CONTACTS, HELD, LIMITED, FOUND, COUNTS = range(6)
"""What is counted: steps that were done, contacts of the last one, and those of bodies that are
held to one another; whether a watched one had inequalities; contacts that were found for the last
one that was begun, -1 where that did not come so far."""
LED_TO, ACCOUNTED, NOTED = range(3)
"""Lines of what is noted, states (nq + nv + 1) and lengths of steps [s]: where the last step led,
not a number if it failed; the state that the energy budget belongs to, and is not known of."""


class StepArrays(NamedTuple):
    """What steps work on, besides the kernels' own arrays."""

    state: Array  # (nq + nv + 1)
    control: Records[Control]  # (1,)
    vectors: Array
    impulses: Array
    C: Array  # (rows, nv) before they are whitened
    report: Array
    exerted: Array  # (nv,) by motors, as a mean over steps
    scratch: Array  # (PREDICTIONS, nv)
    counts: Ints  # (COUNTS,)
    contacts: Records[ContactPoint]  # that are found
    noted: Array  # (NOTED, nq + nv + 2)
    asked: Array  # (1, nv) forces that are set on the rates
    tau: Array  # (nv,) those of the last step
    points: np.ndarray  # contacts that were held, then its others, and room, of CONTACT_POINT
    rigid: Ints  # (nb,) bodies of one number are held rigidly to one another


class Trace(NamedTuple):
    """Which states are kept."""

    table: Array  # (records, nq + nv + 4)
    every: int  # one in so many steps; 0 for none
    before: int  # steps that were done before
    while_pushed: int  # whether steps without contacts end once no inequality has pushed in one


@bundling
def driven_by(given: Given, tau: Array) -> Given:
    """The same with other forces (1, nv)."""
    return Given(given.targets, given.axis_targets, given.limited_targets, tau, given.callback)


@caller
def predict(run: Any, a: StepArrays, given: Given, line: int, limited: int) -> int:
    """Where forces, and motors as they pushed lately, would lead in one step.

    There contacts are found: what motors press together is found in every step, as what weight
    does. Constraints with a force limit count as motors. They lead no further than
    ``PREDICTION_LIMIT``: what is light would go far through what stops it, and contacts
    would be those of there.

    Args:
        run: ``step_kernel.run_inequalities``, or another way, with its arrays, stored, and the call
            of that stored again: its block is of one type, however many arrays a way has.
        a: What steps work on; the prediction is put into its vectors.
        given: What drives them.
        line: Of the forces.
        limited: Rows of constraints with a force limit.
    """
    nv, dt = len(a.exerted), a.control[0].dt
    if a.report[ROWS] > 0.0:
        # a mean over steps: where loads are not determined, guesses from the last one alternate
        pushed, count = a.scratch[WITHOUT_MOTORS], int(a.report[WITH_FRICTION]) + limited
        for j in range(nv):
            pushed[j] = 0.0
        for i in range(count):
            x = a.impulses[X, i]
            for j in range(nv):
                pushed[j] += x * a.C[i, j]
        for j in range(nv):
            a.exerted[j] += REMEMBERED * (pushed[j] / dt - a.exerted[j])
    pushes, tau = 0, a.scratch
    for j in range(nv):
        tau[WITHOUT_MOTORS, j] = given.tau[line, j]
        tau[WITH_MOTORS, j] = given.tau[line, j] + a.exerted[j]
        pushes = 1 if a.exerted[j] != 0.0 else pushes
    lines = tau[: WITHOUT_MOTORS + 1 + pushes]
    failure = call_stored(run, ((driven_by(given, lines), a.contacts[:0], PREDICT, 0),))
    return DENSE_REQUIRED if failure == DENSE_REQUIRED else DONE


@caller
def step_with_contacts(
    run: Any,
    find: Any,
    a: StepArrays,
    given: Given,
    limited: int,
    room: int,
    trace: Trace,
    steps: int,
) -> int:
    """Steps with what they touch; the failure that stopped them with the state before, DONE or ASK.

    Args:
        run: As of ``predict``.
        find: ``contact_detection.find_contacts`` with its arrays, stored.
        a: As of ``predict``,
        given: as there,
        limited: as there.
        room: Contacts that ``run`` has room for.
        trace: Receives states.
        steps: How many.
    """
    nv = len(a.exerted)
    nq, failure = len(a.state) - nv - 1, DONE
    note_start(a)
    for n in range(steps):
        line = min(n, len(given.tau) - 1)
        a.counts[FOUND] = -1
        failure = predict(run, a, given, line, limited)
        if failure != DONE:
            break
        q, rates = a.vectors[PREDICTED_Q, :nq], a.impulses[MOVING, :nv]
        count = call_stored(find, (q, rates, a.control[0].dt))
        if count < 0 or count > room:
            failure = ASK
            break
        a.counts[FOUND] = count
        count = put_held_last(a, a.contacts[:count])
        now = driven_by(given, given.tau[line : line + 1])
        failure = call_stored(run, ((now, a.contacts[:count], PREDICTED_STEP, 1),))
        note_contacts(a, a.contacts[:count])
        if failure != DONE:
            break
        a.counts[STEPS] = n + 1
        keep_state(trace.table, trace.every, trace.before + n + 1, a.state, a.control)
        if a.report[RESIDUAL] > UNMET:
            break  # which is told
    note_end(a, failure)
    return failure


@caller
def step_at_contacts(
    run: Any,
    a: StepArrays,
    given: Given,
    contacts: Records[ContactPoint],
    trace: Trace,
    steps: int,
) -> int:
    """Steps whose contacts are known; the failure that stopped them with the state before, or DONE.

    Args:
        run: As of ``predict``,
        a: as there,
        given: as there.
        contacts: (n,) at the prediction of the only step; there may be more without any. They may
            be put into another order.
        trace: Receives states.
        steps: How many.
    """
    failure, n = DONE, 0
    note_start(a)
    contacts = contacts[: put_held_last(a, contacts)]
    a.report[WHILE_PUSHED] = trace.while_pushed
    while n < steps and failure == DONE:
        count = steps - n
        if trace.every > 0:  # up to the next that is kept
            count = min(count, trace.every - (trace.before + n) % trace.every)
        now = driven_by(given, given.tau[min(n, len(given.tau) - 1) :])
        failure = call_stored(run, ((now, contacts, STEP, count),))
        n += a.control[0].done
        if failure == DONE:
            keep_state(trace.table, trace.every, trace.before + n, a.state, a.control)
            if trace.while_pushed > 0 and not any_pushed(a.impulses[X], a.report):
                break
    a.report[WHILE_PUSHED] = 0.0
    a.counts[STEPS] = n
    note_contacts(a, contacts)
    note_end(a, failure)
    return failure


@caller
def step_watched(
    free: Any,
    run: Any,
    a: StepArrays,
    joint_limits: Records[JointLimit],
    given: Given,
    contacts: Records[ContactPoint],
    trace: Trace,
) -> int:
    """A step without inequalities up to a joint limit, and with them at one; a failure, or DONE.

    ``counts[LIMITED]`` says which it was.

    Args:
        free: One without, stored with all its arguments.
        run: As of ``predict``,
        a: as there.
        joint_limits: (n,) as they are in the last step.
        given: As of ``predict``.
        contacts: None.
        trace: None.
    """
    failure, limited = AT_LIMIT, led_to(a) and any_limit_pushed(a, joint_limits)
    if not limited:
        failure = call_stored(free, ())
        limited = failure == AT_LIMIT
    a.counts[LIMITED] = int(limited)
    return step_at_contacts(run, a, given, contacts, trace, 1) if limited else failure


class TracedForces(NamedTuple):
    """What motors, friction and limits of joints do in steps.

    Attributes:
        drives: (m,) which of the motors and frictions are told of.
        motor_rows: (n,) all of them,
        joint_limits: (l,) limits, as they are in the last step.
        states: (steps + 1, nq + nv + 1) receives where steps lead, from the first one on.
        by_drives: (steps, m) receives forces [N m or N],
        by_limits: (steps, l) and these.
    """

    drives: Ints
    motor_rows: Records[MotorRow]
    joint_limits: Records[JointLimit]
    states: Array
    by_drives: Array
    by_limits: Array


@caller
def trace_forces(
    run: Any,
    a: StepArrays,
    given: Given,
    contacts: Records[ContactPoint],
    found: TracedForces,
    first: int,
) -> int:
    """Steps without contacts up to the end of a trace; the failure that stopped them, or DONE.

    Args:
        run: As of ``predict``,
        a: as there,
        given: as there.
        contacts: None.
        found: Receives what they do.
        first: Which of its steps is the first one.
    """
    failure, dt, n = DONE, a.control[0].dt, first
    note_start(a)
    while n < len(found.by_drives):
        line = min(n, len(given.tau) - 1)
        failure = call_stored(
            run, ((driven_by(given, given.tau[line : line + 1]), contacts, STEP, 1),)
        )
        if failure != DONE:
            break
        for i in range(len(found.drives)):
            row = found.motor_rows[int(found.drives[i])].row
            found.by_drives[n, i] = a.impulses[X, row] / dt if row >= 0 else 0.0
        for i in range(len(found.joint_limits)):
            row = found.joint_limits[i].row
            found.by_limits[n, i] = a.impulses[X, row] / dt if row >= 0 else 0.0
        n += 1
        copy_into(found.states[n], a.state)
    a.counts[STEPS] = n - first
    note_contacts(a, contacts)
    note_end(a, failure)
    return failure


@helper
def led_to(a: StepArrays) -> bool:
    """Whether the state is that to which the last step with inequalities led."""
    for k in range(len(a.state)):
        if a.noted[LED_TO, k] != a.state[k]:
            return False
    return True


@helper
def any_limit_pushed(a: StepArrays, joint_limits: Records[JointLimit]) -> bool:
    """Whether any joint limit pushed in the last step with inequalities."""
    for i in range(len(joint_limits)):
        row = joint_limits[i].row
        if row >= 0 and a.impulses[X, row] != 0.0:
            return True
    return False


@outlined
def note_start(a: StepArrays) -> None:
    """Note where steps begin; the energy budget ends if somebody has put the state elsewhere."""
    state, known, nv, dt = a.state, a.noted[ACCOUNTED], len(a.tau), a.control[0].dt
    n = len(state)
    a.counts[STEPS] = a.counts[CONTACTS] = a.counts[HELD] = 0
    for j in range(nv):
        a.tau[j] = a.asked[0, j]
    same = known[n] == dt
    for k in range(n):
        same = same and known[k] == state[k]
    if not same:
        a.report[BUDGET] = math.nan
        for k in range(n):
            known[k] = state[k]
        known[n] = dt


@outlined
def put_held_last(a: StepArrays, contacts: Records[ContactPoint]) -> int:
    """Put contacts of bodies that loops hold rigidly to one another last, and keep them.

    They can be neither met nor violated. How many others there are.
    """
    count = 0
    for i in range(len(contacts)):
        if a.rigid[contacts[i].body_a] == a.rigid[contacts[i].body_b]:
            a.points[count] = contacts[i]
            count += 1
        elif count > 0:
            contacts[i - count] = contacts[i]
    others = len(contacts) - count
    for i in range(count):
        contacts[others + i] = a.points[i]
    a.counts[HELD] = count
    return others


@outlined
def note_contacts(a: StepArrays, contacts: Records[ContactPoint]) -> None:
    """Keep contacts (n,) of a step, after those that are held."""
    a.counts[CONTACTS], held = len(contacts), a.counts[HELD]
    for i in range(len(contacts)):
        a.points[held + i] = contacts[i]


@outlined
def note_end(a: StepArrays, failure: int) -> None:
    """Note where steps ended, and whether the last that was begun led there."""
    state, n = a.state, len(a.state)
    if failure == ASK and a.counts[STEPS] == 0:
        return  # none was made
    led = failure == DONE or (failure in (ASK, DENSE_REQUIRED) and a.counts[STEPS] > 0)
    for k in range(n):
        a.noted[ACCOUNTED, k] = state[k]
        a.noted[LED_TO, k] = state[k] if led else math.nan
    a.noted[ACCOUNTED, n] = a.noted[LED_TO, n] = a.control[0].dt


@kernel
def keep_state(
    table: Array, every: int, done: int, state: Array, control: Records[Control]
) -> None:
    """Keep a state if it is one of those to be kept, one in ``every`` steps.

    Args:
        table: (records, nq + nv + 4)
        every: None for zero.
        done: Steps that led to it.
        state: (nq + nv + 1)
        control: (1,) of the last step.
    """
    if every > 0 and done % every == 0 and done // every <= len(table):
        put_record(table[done // every - 1], state, control[0])
