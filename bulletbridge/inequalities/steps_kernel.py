"""Many steps with motors, limits and contacts in one compiled call.

A step with contacts predicts where forces would lead, finds what touches there, and solves. Each is
a kernel of its own; these call them by their blocks.
"""

from typing import Any, NamedTuple

from bulletbridge.compilation.jit import bundling, caller, kernel
from bulletbridge.compilation.stored_calls import call_stored
from bulletbridge.engine.records import DENSE_REQUIRED, DONE, PREDICTED_Q, Control
from bulletbridge.engine.stages import put_record
from bulletbridge.inequalities.arrays import (
    MOVING,
    PREDICT,
    ROWS,
    STEP,
    WITH_FRICTION,
    WITH_MOTORS,
    WITHOUT_MOTORS,
    Given,
    X,
)
from bulletbridge.mechanism.records import ContactPoint
from bulletbridge.numerics.records import Array, Ints, Records

ASK = -1
"""Instead of a failure: contacts are to be found by others, at the prediction that was made."""
REMEMBERED = 0.3
"""Share of the last step in the motor forces by which contacts are predicted."""
STEPS, CONTACTS, COUNTS = range(3)
"""What is counted: steps that were done, contacts of the last one."""


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


class Trace(NamedTuple):
    """Which states are kept."""

    table: Array  # (records, nq + nv + 4)
    every: int  # one in so many steps; 0 for none
    before: int  # steps that were done before


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
        run: ``step_kernel.run_inequalities`` with its arrays, stored.
        a: What steps work on; the prediction is put into its vectors.
        given: What drives them.
        line: Of the forces.
        limited: Rows of constraints with a force limit.
    """
    nv, dt = len(a.exerted), a.control[0].dt
    if a.report[ROWS] > 0.0:
        # a mean over steps: where loads are not determined, guesses from the last one alternate
        for j in range(nv):
            last = 0.0
            for i in range(int(a.report[WITH_FRICTION]) + limited):
                last += a.impulses[X, i] * a.C[i, j]
            a.exerted[j] += REMEMBERED * (last / dt - a.exerted[j])
    pushes, tau = 0, a.scratch
    for j in range(nv):
        tau[WITHOUT_MOTORS, j] = given.tau[line, j]
        tau[WITH_MOTORS, j] = given.tau[line, j] + a.exerted[j]
        pushes = 1 if a.exerted[j] != 0.0 else pushes
    lines = tau[: WITHOUT_MOTORS + 1 + pushes]
    failure = call_stored(run, (driven_by(given, lines), a.contacts[:0], PREDICT, 0))
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
    nq = len(a.state) - nv - 1
    a.counts[STEPS] = a.counts[CONTACTS] = 0
    for n in range(steps):
        line = min(n, len(given.tau) - 1)
        if predict(run, a, given, line, limited) != DONE:
            return DENSE_REQUIRED
        q, rates = a.vectors[PREDICTED_Q, :nq], a.impulses[MOVING, :nv]
        count = call_stored(find, (q, rates, a.control[0].dt))
        if count < 0 or count > room:
            return ASK
        a.counts[CONTACTS] = count
        now = driven_by(given, given.tau[line : line + 1])
        failure = call_stored(run, (now, a.contacts[:count], STEP, 1))
        if failure != DONE:
            return failure
        a.counts[STEPS] = n + 1
        keep_state(trace.table, trace.every, trace.before + n + 1, a.state, a.control)
    return DONE


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
