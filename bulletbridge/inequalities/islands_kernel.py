"""Steps of islands with motors and limits: each is solved for alone, as if there were no others.

What pushes within an island knows nothing of the others, so that a step costs the sum of theirs.
Contacts may join any two, and are not solved for here.
"""

import math
from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.jit import call_stored, caller, helper, outlined
from bulletbridge.compilation.stored_calls import CallsInTurn, put_own_words
from bulletbridge.constraints.records import JointLimit, Loop, MotorRow
from bulletbridge.engine.islands_kernel import (
    Joined,
    Layout,
    gather,
    gather_forces,
    report,
    scatter,
    take_frame,
    take_over,
    take_settings,
)
from bulletbridge.engine.records import BY_GATHERED, DENSE_REQUIRED, DONE, PREDICTED_Q, START_Q
from bulletbridge.inequalities.arrays import (
    ALONE,
    APART,
    BUDGET,
    BY_LINKS,
    COMPLIED,
    COMPLYING_AFTER,
    COMPLYING_IN,
    KEPT,
    LARGEST,
    MOVING,
    NEWTONS,
    PARTING_AFTER,
    PARTING_IN,
    PREDICT,
    PUSHED,
    RATES,
    REPORT,
    RESIDUAL,
    ROWS,
    STEP,
    SUPPLIED,
    SWEEPS,
    TAKEN,
    WHILE_PUSHED,
    WITH_FRICTION,
    WORK,
    Given,
    X,
    any_pushed,
)
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.records import Body, ContactPoint
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Int, Ints, Records, dtype_of
from bulletbridge.numerics.spatial import copy_into


class RowsOfIsland:
    """Where an island's part of each array begins; the part ends where the next island's begins."""

    motors: Int  # of motors and frictions
    limits: Int
    axes: Int  # of free motions of loop joints
    axis_loops: Int  # of loops that these are of
    rows: Int  # of its constraints, whose impulses are told where force limits hold
    impulses: Int
    width: Int  # of a line of impulses


ROWS_OF_ISLAND = dtype_of(RowsOfIsland)


class RowsInARow(NamedTuple):
    """What asks for inequalities, of all islands one after the other, and where it is in the whole.

    Attributes:
        parts: (islands + 1,) records ``RowsOfIsland``.
        motors, limits, axes, axis_loops: Number in the whole of each one in a row.
        motors_at, limits_at: Place in the row of each one of the whole.
        motor_axes, limit_axes: What each is along, in its island.
        of_motors, of_limits: Island of each.
        motor_rows: Records ``MotorRow``,
        joint_limits: ``JointLimit``,
        positions: ``Row`` of free motions,
        loops: ``Loop`` that these are of.
        impulses: Lines of each island.
        reports: (islands, REPORT)
        rows: Number in the whole of each row of constraints, where what these supply is to be told,
        supplied: and (1 + SUPPLIED) lines of that for each island.
    """

    parts: np.ndarray
    motors: Ints
    limits: Ints
    axes: Ints
    axis_loops: Ints
    motors_at: Ints
    limits_at: Ints
    motor_axes: Ints
    limit_axes: Ints
    of_motors: Ints
    of_limits: Ints
    motor_rows: np.ndarray
    joint_limits: np.ndarray
    positions: np.ndarray
    loops: np.ndarray
    impulses: Array
    reports: Array
    rows: Ints
    supplied: Array


class RowsOfWhole(NamedTuple):
    """The same as the whole has it."""

    motor_rows: Records[MotorRow]
    joint_limits: Records[JointLimit]
    positions: Records[Row]
    loops: Records[Loop]
    impulses: Array  # (IMPULSES, rows)
    report: Array
    vectors: Array  # of its solver
    bodies: Records[Body]
    limited: Records[Row]  # of constraints with a force limit, which all hold
    supplied: Array  # (nc,) impulses of the rows of its constraints


class IslandArrays(NamedTuple):
    """What steps of islands work on, besides the arrays of each.

    Attributes:
        layout: Where what of the islands stands in the whole.
        row: All islands, one after the other.
        whole: The whole.
        rows: What asks for inequalities, likewise,
        own: and in the whole.
    """

    layout: Layout
    row: Joined
    whole: Joined
    rows: RowsInARow
    own: RowsOfWhole


@caller
def run_inequality_islands(
    arrays: IslandArrays,
    calls: CallsInTurn,
    given: Given,
    contact_points: Records[ContactPoint],
    task: int,
    steps: int,
) -> int:
    """Advance by steps without contacts; the failure that stopped them, with the state before.

    A step that an island does not come to the end of is left to the whole, and one with contacts.

    Args:
        arrays: What they work on.
        calls: Of ``step_kernel.run_inequalities`` with the arrays of each island, stored.
        given: What drives them.
        contact_points: None.
        task: As of ``run_inequalities``.
        steps: How many.
    """
    if len(contact_points) > 0:
        return DENSE_REQUIRED
    layout, row, whole, rows, own = arrays
    islands, before, c = layout.islands, layout.before, whole.control[0]
    count, nq, nv = len(islands) - 1, len(layout.q), len(layout.v)
    state, pushes, controls = row.state, layout.pushes, row.control
    c.failure, c.done = DONE, 0
    take_over(layout, row, whole)
    for i in range(count):
        take_settings(controls[i], c, BY_GATHERED)
    gather(islands, state, layout.q, layout.v, whole.state)
    if task == PREDICT:
        lines = len(given.tau)
        gather_forces(islands, given.tau, 0, lines, layout.v, pushes)
        for i in range(count):
            a, z = islands[i].v, islands[i + 1].v
            push = pushes[lines * a : lines * z].reshape((lines, z - a))
            now = Given(given.targets, given.axis_targets, given.limited_targets, push, 0)
            kind = put_own_words(calls.own, i)
            call_stored(calls.blocks[kind : kind + 1], (now, contact_points, PREDICT, 0))
            put_line(rows, layout, own, i, MOVING)
        c.factored, moving = BY_GATHERED, own.impulses[MOVING, :nv]
        displace(own.bodies, whole.state[:nq], moving, c.dt, own.vectors[PREDICTED_Q])
        return DONE
    take_rows(rows, own)
    for n in range(steps):
        copy_into(before, state)
        gather_forces(islands, given.tau, n, 1, layout.v, pushes)
        targets = given.targets[min(n, len(given.targets) - 1) :]
        for i in range(count):
            a, z = islands[i].v, islands[i + 1].v
            push = pushes[a:z].reshape((1, z - a))
            now = Given(targets, given.axis_targets, given.limited_targets, push, 0)
            kind = put_own_words(calls.own, i)
            failure = call_stored(calls.blocks[kind : kind + 1], (now, contact_points, STEP, 1))
            if failure != DONE:
                copy_into(state, before)
                scatter(islands, state, layout.q, layout.v, whole.state)
                c.factored, own.report[ALONE] = 0, 0.0
                return DENSE_REQUIRED
        c.done = n + 1
        whole.state[nq + nv] = state[islands[1].state - 1]
        put_start(layout, before, own)
        put_rows(layout, rows, own)
        if own.report[WHILE_PUSHED] > 0.0 and not any_pushed(own.impulses[X], own.report):
            break
    scatter(islands, state, layout.q, layout.v, whole.state)
    report(controls, count, c)
    c.factored = BY_GATHERED
    return DONE


@outlined
def take_rows(rows: RowsInARow, own: RowsOfWhole) -> None:
    """Take over what is asked of motors and limits, and how the last step ended."""
    was_alone = own.report[ALONE] > 0.0
    starts_anew = not was_alone or math.isnan(own.report[BUDGET])
    for i in range(len(rows.reports)):
        if starts_anew:
            rows.reports[i, BUDGET] = math.nan
        if not was_alone:
            recall_whole(rows, own, i)
    for k in range(len(rows.motors)):
        rows.motor_rows[k] = own.motor_rows[int(rows.motors[k])]
        rows.motor_rows[k].axis = int(rows.motor_axes[k])
    for k in range(len(rows.limits)):
        rows.joint_limits[k] = own.joint_limits[int(rows.limits[k])]
        rows.joint_limits[k].axis = int(rows.limit_axes[k])
    for k in range(len(rows.axes)):
        rows.positions[k].g = own.positions[int(rows.axes[k])].g
    for k in range(len(rows.axis_loops)):
        loop, given = rows.loops[k], own.loops[int(rows.axis_loops[k])]
        take_frame(loop, given)
        loop.length = given.length
        for i in range(3):
            loop.p_b[i] = given.p_b[i]
            for j in range(3):
                loop.R_b[i, j] = given.R_b[i, j]


@helper
def recall_whole(rows: RowsInARow, own: RowsOfWhole, i: int) -> None:
    """Go on in island i from a step in which all were solved for together."""
    part, line = rows.parts[i], rows.reports[i]
    for k in range(REPORT):
        if k != BUDGET:
            line[k] = 0.0
    line[COMPLIED] = own.report[COMPLIED]
    for k in (COMPLYING_IN, COMPLYING_AFTER, PARTING_IN, PARTING_AFTER):
        line[k] = own.report[k]
    for k in range(part.width):
        rows.impulses[part.impulses + k] = 0.0
    n = part.impulses  # limits begin by what stands in their records
    for k in range(part.motors, rows.parts[i + 1].motors):
        last = own.motor_rows[int(rows.motors[k])].row
        if last >= 0:
            rows.impulses[n] = own.impulses[X, last]
            n += 1


@helper
def put_start(layout: Layout, before: Array, own: RowsOfWhole) -> None:
    """Write where the step began, from the states of all islands."""
    islands = layout.islands
    for i in range(len(islands) - 1):
        a, z = islands[i], islands[i + 1]
        shift = a.state - a.q
        for k in range(a.q, z.q):
            own.vectors[START_Q, layout.q[k]] = before[shift + k]
        shift = a.state + z.q - a.q - a.v
        for k in range(a.v, z.v):
            own.impulses[RATES, layout.v[k]] = before[shift + k]


@outlined
def put_rows(layout: Layout, rows: RowsInARow, own: RowsOfWhole) -> None:
    """Write what islands exerted in a step, in the order of rows in which all have theirs."""
    n, x, islands, parts = 0, own.impulses[X], layout.islands, rows.parts
    for m in range(len(own.motor_rows)):
        k, given = int(rows.motors_at[m]), own.motor_rows[m]
        last = rows.motor_rows[k].row
        given.row = n if last >= 0 else -1
        if last >= 0:
            x[n] = rows.impulses[parts[int(rows.of_motors[k])].impulses + last]
            n += 1
    for _ in range(len(own.limited)):
        x[n] = 0.0
        n += 1
    for m in range(len(own.joint_limits)):
        k, limit = int(rows.limits_at[m]), own.joint_limits[m]
        last, limit.impulse = rows.joint_limits[k].row, rows.joint_limits[k].impulse
        limit.row = n if last >= 0 else -1
        if last >= 0:
            x[n] = rows.impulses[parts[int(rows.of_limits[k])].impulses + last]
            n += 1
    for k in range(len(rows.axes)):
        place, found = own.positions[int(rows.axes[k])], rows.positions[k]
        place.g, place.g_t = found.g, found.g_t
    for i in range(len(islands) - 1):
        put_line(rows, layout, own, i, PUSHED)
        if rows.reports[i, APART] > 0.0:
            put_line(rows, layout, own, i, MOVING)
        else:
            for k in range(islands[i].v, islands[i + 1].v):
                own.impulses[MOVING, layout.v[k]] = 0.0
    for i in range(len(islands) - 1):
        first, count = parts[i].rows, parts[i + 1].rows - parts[i].rows
        at = (1 + SUPPLIED) * first + SUPPLIED * count
        for k in range(count):
            own.supplied[int(rows.rows[first + k])] = rows.supplied[at + k]
    add_reports(rows.reports, own.report)
    own.report[ROWS] += len(own.limited)


@helper
def put_line(rows: RowsInARow, layout: Layout, own: RowsOfWhole, i: int, line: int) -> None:
    """Write a line of impulses that is of rates, as island i has it, into that of the whole."""
    islands, part = layout.islands, rows.parts[i]
    first = part.impulses + line * part.width - islands[i].v
    for k in range(islands[i].v, islands[i + 1].v):
        own.impulses[line, layout.v[k]] = rows.impulses[first + k]


@helper
def add_reports(reports: Array, whole: Array) -> None:
    """Write what the whole reports of a step from what its islands do."""
    for k in (ROWS, WITH_FRICTION, SWEEPS, NEWTONS, WORK, TAKEN, BUDGET, LARGEST):
        whole[k] = 0.0
    for k in (RESIDUAL, APART, COMPLIED, COMPLYING_IN, COMPLYING_AFTER, PARTING_IN, PARTING_AFTER):
        whole[k] = 0.0
    accounted = False
    for i in range(len(reports)):
        for k in (ROWS, WITH_FRICTION, SWEEPS, NEWTONS, WORK, TAKEN):
            whole[k] += reports[i, k]
        for k in (
            RESIDUAL, APART, COMPLIED, COMPLYING_IN, COMPLYING_AFTER, PARTING_IN, PARTING_AFTER,
        ):  # fmt: skip
            whole[k] = max(whole[k], reports[i, k])
        if not math.isnan(reports[i, BUDGET]):
            accounted = True
            whole[BUDGET] += reports[i, BUDGET]
            whole[LARGEST] += reports[i, LARGEST]
    if not accounted:
        whole[BUDGET] = math.nan
    whole[KEPT], whole[BY_LINKS], whole[ALONE] = 0.0, 0.0, 1.0
