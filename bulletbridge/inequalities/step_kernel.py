"""The compiled step with motors, limits and contacts; a kernel of its own, as the filter is.

Forces alone would give v_f. The inequality rows change it by impulses in the subspace that the
constraints leave free, q moves with the result, and the filter closes the loops while contacts that
stick hold.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.constraints.prescribed import prescribed_rates
from bulletbridge.engine.backend import KktBackend
from bulletbridge.engine.dense import (
    admit,
    factor_at,
    kinematics_apart,
    move_by,
    set_implicit_horizon,
)
from bulletbridge.engine.dense_backend import DENSE_APART
from bulletbridge.engine.plausible import (
    EXCESS_WITH_INEQUALITIES,
    judge_leap,
    kinetic_energy_of_bodies,
    leaps,
    power_of_weights,
    ways_squared,
)
from bulletbridge.engine.records import (
    DONE,
    NOT_FACTORED,
    OVERRUN,
    PREDICTED_Q,
    RATE,
    START_Q,
    START_V,
    Arrays,
    Factors,
    Instant,
    SystemArrays,
    arrays_of,
    dense_factors,
)
from bulletbridge.engine.step_end import ending
from bulletbridge.inequalities.arrays import (
    ALONE,
    APART,
    BUDGET,
    BY_LINKS,
    FREE,
    KEPT,
    LED_PAST,
    LET_PAST,
    MOVED,
    NEWTONS,
    PREDICT,
    PREDICTED_STEP,
    PUSHED,
    RATES,
    RESIDUAL,
    ROWS,
    SUPPLIED,
    SWEEPS,
    TAKEN,
    TOGETHER,
    WHILE_PUSHED,
    WITH_FRICTION,
    WITH_MOTORS,
    WITHOUT_MOTORS,
    WORK,
    Given,
    InequalityArrays,
    X,
    any_pushed,
)
from bulletbridge.inequalities.contact_rows import energy_of_contacts, work_of_springs_of
from bulletbridge.inequalities.energy_budget import (
    accountable,
    budgeting,
    work,
)
from bulletbridge.inequalities.impulse_step import (
    impulsive_work,
    largest_work,
    lead_by_motors,
    list_sticking,
    pushing,
)
from bulletbridge.inequalities.impulses import (
    DENSE_SPACE,
    AdmissibleSpace,
    Asked,
    InequalityProblem,
    build_rows,
    problem_of,
    solving,
)
from bulletbridge.inequalities.loose_bodies import (
    largest_along_loose,
    leave_to_robots,
    put_loose_last,
    work_of_loose_springs,
    work_on_loose,
)
from bulletbridge.inequalities.momentum import is_unheld, keep_momentum
from bulletbridge.inequalities.motor_limit_rows import compliance, list_passed, rate_along
from bulletbridge.inequalities.overrun import overrun
from bulletbridge.inequalities.row_impulses import (
    DENSE_SUPPLIES,
    Supplies,
    any_holds,
)
from bulletbridge.inequalities.state_filter import filter_state
from bulletbridge.inequalities.sticking import forget_impulses, sticking_points_of
from bulletbridge.inequalities.warm_start import (
    keep_impulses,
    recall_impulses,
)
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.records import (
    ContactPoint,
)
from bulletbridge.numerics.projection import inner
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import copy_into

work_of_springs_together = work_of_springs_of(rate_along)


class InequalityBackend(NamedTuple):
    """How a step with inequalities takes factors of one kind.

    Attributes:
        backend: The functions that take them.
        finish_after: As of ``step_end.StepEnd``.
        move_by: (a, f, x) forces (nv,) into what they do to the admissible velocities, in place.
        admit: (a, f, force, vdot) the same elsewhere.
        space: Of what constraints leave free.
        supplies: What constraints with a force limit supply.
        close_at_points: (a, f, own, stuck, end, q, v) closes loops while contacts stick.
    """

    backend: KktBackend
    finish_after: Callable[..., None]
    move_by: Callable[..., None]
    admit: Callable[..., None]
    space: AdmissibleSpace
    supplies: Supplies
    close_at_points: Callable[..., bool]


@helper
def close_at_points(
    a: Arrays, f: Factors, own: InequalityArrays, stuck: int, end: Instant, q: Array, v: Array
) -> bool:
    """Close loops while contacts that stick hold; whether both can be, else q and v as before."""
    c, nq, nv = a.control, len(q), len(v)
    vectors = a.vectors
    copy_into(vectors[PREDICTED_Q], q)
    copy_into(vectors[RATE], v)
    forget_impulses(own.holding)
    k = sticking_points_of(own.holding, stuck)
    c.factored = NOT_FACTORED
    filter_state(a, f, k, end, q, v, 1.0 / c.dt, 0)
    if c.failure == DONE:
        return True
    # contacts and loops want too different things
    copy_into(q, vectors[PREDICTED_Q, :nq])
    copy_into(v, vectors[RATE, :nv])
    c.failure = DONE
    factor_at(a, f, end, q, v)
    return False


@helper
def any_presses(h: InequalityProblem) -> bool:
    """Whether any contact carries load."""
    for i in range(len(h.contact_points)):
        if h.problem.x[h.contact_rows[i].normal] > 0.0:
            return True
    return False


@helper
def work_of_springs(h: InequalityProblem, together: int, before: Array, after: Array) -> float:
    """Work [J] of contacts that give way, of which so many are solved for together."""
    x, last = h.problem.x, len(h.contact_points)
    first = work_of_springs_together(h.raw, h.contact_rows[:together], x, before, after)
    loose = h.contact_rows[together:last]
    return first + work_of_loose_springs(h.loose, loose, x, before, after)


@outlined
def load_drives(h: InequalityProblem, dt: float, enough: float) -> None:
    """Have motors and friction push with all they have where a prescribed motion leads them on.

    They change nothing there but what the drive bears. ``enough``: rate [rad/s or m/s] that counts
    as the one that is wanted.
    """
    p = h.problem
    for i in range(len(h.motor_rows)):
        row = h.motor_rows[i].row
        if row < 0 or compliance(h.motor_rows[i], dt) > 0.0 or inner(h.C, row, h.C[row]) > 0.0:
            continue
        if p.b[row] > enough:
            p.x[row] = p.bounds[row].lower
        elif p.b[row] < -enough:
            p.x[row] = p.bounds[row].upper


def stepping_with_inequalities(way: InequalityBackend) -> Callable[..., int]:
    """The helper that does tasks of ``run_inequalities`` with factors of one kind.

    numba resolves the functions that it closes over when it compiles it.
    """
    backend, finish_after, close_at_points = way.backend, way.finish_after, way.close_at_points
    factored, factor_at, find_least = backend.factored, backend.factor_at, backend.find_least
    filter_velocity = backend.filter_velocity
    supplies_against_forces, supplies_against_impulses, supplies_change = way.supplies
    keep_account = budgeting(backend.energy_of, way.admit)
    solve_inequalities = solving(way.space)
    predict_velocity, push_by_motors = pushing(way.move_by)

    @outlined
    def judge_with_inequalities(
        a: Arrays,
        f: Any,
        h: InequalityProblem,
        start: Instant,
        end: Instant,
        q: Array,
        v: Array,
        tau: Array,
    ) -> None:
        """Refuse an end of a step, or what led to it, that motors and forces cannot have made."""
        nv, pushed = len(v), h.pushed
        v0, lines = a.vectors[START_V, :nv], tau.reshape((1, nv))
        first = int(h.report[WITH_FRICTION]) + len(h.force_limited.rows)
        given = max(largest_work(h, first, v0, pushed), largest_work(h, first, v0, v))
        if h.report[APART] > 0.0:  # closing loops after bodies were moved apart moves them too
            given += kinetic_energy_of_bodies(a, h.moving)
        points, gap = h.contact_points, h.row_targets.gap
        given += energy_of_contacts(points, h.contact_rows, gap, a.control.dt)
        find_least(a, f)
        excess = max(EXCESS_WITH_INEQUALITIES, a.control.excess)
        judge_leap(a, start, end, q, pushed, lines, given, excess)
        if a.control.failure == DONE:
            judge_leap(a, start, end, q, v, lines, given, excess)

    @outlined
    def solve_rows(
        a: Arrays,
        f: Any,
        h: InequalityProblem,
        asked: Asked,
        q: Array,
        v: Array,
        together: int,
    ) -> None:
        """Add the impulses of the rows that this step has to v; arguments as above."""
        rows = build_rows(a, h, asked, q, v, together)
        n, report, x = rows.all, h.report, h.problem.x
        report[TOGETHER] = rows.together
        report[ROWS], report[WITH_FRICTION] = n, rows.with_friction
        report[RESIDUAL] = report[SWEEPS] = report[NEWTONS] = report[WORK] = report[APART] = 0.0
        if n == 0:
            return
        recall_impulses(
            x,
            h.problem.beyond,
            h.joint_limits,
            h.contact_points,
            h.contact_rows,
            h.kept,
            int(report[KEPT]),
        )
        scale = 0.0  # of velocities, and of what they are sums of, which may all but cancel
        for i in range(n):
            total = largest_along_loose(h.loose, i, v) if i >= rows.together else 0.0
            axis = int(h.axes[i])
            if axis >= 0:
                total = math.fabs(v[axis])
            else:
                for k in range(len(v) if i < rows.together else 0):
                    total += math.fabs(h.C[i, k] * v[k])
            scale = max(scale, math.fabs(h.problem.b[i]), total)
        enough = 1e-12 * scale + 1e-14
        outcome = solve_inequalities(a, f, h, asked, q, rows, enough, v)
        report[RESIDUAL], report[SWEEPS] = outcome.residual, outcome.sweeps
        report[NEWTONS], report[WORK], report[APART] = outcome.newton, outcome.work, outcome.apart
        if a.control.driven > 0:
            load_drives(h, a.control.dt, enough)

    @helper
    def inequality_impulses(
        a: Arrays,
        f: Any,
        h: InequalityProblem,
        asked: Asked,
        q: Array,
        v: Array,
        together: int,
    ) -> int:
        """Add the impulses of motors, limits and contacts to v; list contacts that stick, count.

        ``together``: contacts that are solved for together, before those of loose bodies, which
        nothing moves while loops are closed. Without loops those of a robot alone are listed.
        """
        report, x = h.report, h.problem.x
        predicted = asked.own.impulses[MOVED, : len(v)]
        copy_into(h.pushed, v)
        copy_into(predicted, h.moving)
        solve_rows(a, f, h, asked, q, v, together)
        for _ in range(len(h.joint_limits)):
            p = h.problem
            if report[ROWS] == 0.0:
                break
            for k in range(len(v)):
                h.delta_v[k] = v[k] + (h.moving[k] if report[APART] > 0.0 else 0.0)
            dt, bounds = a.control.dt, p.bounds
            if not list_passed(h.joint_limits, h.axis_rows, a.axes, dt, q, h.delta_v, bounds):
                break
            copy_into(v, h.pushed)
            copy_into(h.moving, predicted)
            if len(h.contact_points) > 0:  # their rows were those of the prediction
                kinematics_apart(a, q)
            solve_rows(a, f, h, asked, q, v, together)
        report[KEPT] = keep_impulses(
            x, h.problem.beyond, h.joint_limits, h.contact_points, h.contact_rows, h.kept
        )
        if len(h.contact_points) == 0 or report[ROWS] == 0.0:
            return 0
        sticking_points = asked.own.holding.points
        count = list_sticking(x, h.contact_points[:together], h.contact_rows, sticking_points)
        if a.control.filter_rank > 0:
            return count
        return leave_to_robots(h.loose.islands, sticking_points, count)

    @helper
    def do_task(
        a: Arrays,
        f: Any,
        state: Array,
        own: InequalityArrays,
        given: Given,
        contact_points: Records[ContactPoint],
        task: int,
        steps: int,
    ) -> int:
        """Do a task as ``run_inequalities`` does."""
        vectors, targets, tau = a.vectors, given.targets, given.tau
        nv, nq = len(a.axes), len(state) - len(a.axes) - 1
        c, impulses, report, limited = a.control, own.impulses, own.report, own.force_limited
        supplied = own.holding.loop_impulses[SUPPLIED]
        asked = Asked(own, given, contact_points)
        h = problem_of(asked, nv)
        moving, moved = h.moving, impulses[MOVED, :nv]
        q, v, holding = state[:nq], state[nq : nq + nv], any_holds(limited.force_limits)
        c.failure, c.done = DONE, 0
        set_implicit_horizon(a, c.dt)
        if task == PREDICT:
            c.t = state[nq + nv]
            if c.factored != factored:
                factor_at(a, f, Instant(state[nq + nv], targets[0]), q, v)
            copy_into(moving, v)
            predict_velocity(a, f, q, moving, tau[WITHOUT_MOTORS])
            copy_into(impulses[FREE], moving)
            c.factored, c.biased = factored, int(accountable(a))
            if len(tau) > WITH_MOTORS:
                with_motors = vectors[START_V, :nv]
                copy_into(with_motors, moving)
                push_by_motors(a, f, tau, with_motors)
                lead_by_motors(a, with_motors, moving)
            displace(a.bodies, q, moving, c.dt, vectors[PREDICTED_Q])
            return c.failure
        together = len(contact_points)
        if together > 0:
            together = put_loose_last(h.loose.islands, contact_points, h.local)
        for n in range(steps):
            c.t = t = state[nq + nv]
            start = Instant(t, targets[min(n, len(targets) - 1)])
            end = Instant(t + c.dt, targets[min(n + 1, len(targets) - 1)])
            if c.factored != factored:
                factor_at(a, f, start, q, v)
                if c.failure != DONE:
                    c.factored = NOT_FACTORED
                    return c.failure
            for j in range(nq):
                vectors[START_Q, j] = q[j]
            for j in range(nv):
                vectors[START_V, j] = v[j]
            copy_into(impulses[RATES], v)
            force, before = tau[min(n, len(tau) - 1)], impulses[RATES, :nv]
            accounted = accountable(a)
            if holding:
                supplies_against_forces(a, f, q, v, force, supplied)
            if task == PREDICTED_STEP:
                copy_into(v, impulses[FREE, :nv])
            else:
                predict_velocity(a, f, q, v, force)
            c.biased = 0
            if c.driven > 0 and c.user_rows == 0:  # prescribed motions may start at once
                prescribed_rates(a.loops, a.couplings, a.poses, end.targets, f.rows)
                filter_velocity(a, f, v)
                if holding:
                    supplies_change(a, f, before, v, supplied)
            stuck, gained = inequality_impulses(a, f, h, asked, q, v, together), 0.0
            if accounted:  # but springs, limits and contacts give nothing, whatever their rows do
                pressing, found = (
                    int(report[WITH_FRICTION]) + len(limited.rows),
                    int(report[TOGETHER]),
                )
                driven, met = impulsive_work(h, pressing, found, before, v)
                if found < int(report[ROWS]):
                    met += work_on_loose(h.loose, h.problem.x, found, int(report[ROWS]), before, v)
                gained = work(a, before, v, force) + driven
                gained += min(max(report[WORK], met), work_of_springs(h, together, before, v))
            if report[APART] > 0.0 and is_unheld(a, limited.loops) and not any_presses(h):
                gained += keep_momentum(a, q, v, moving, vectors[PREDICTED_Q, :nq])
            copy_into(impulses[PUSHED], v)
            if holding:
                found = int(report[TOGETHER])
                supplies_against_impulses(a, f, h.raw, h.problem.x, found, supplied)
            if report[APART] > 0.0:
                for j in range(nv):
                    moved[j] = moving[j] + v[j]
                if accounted:  # what is moved out of what it is in may rise against its weight
                    gained += max(-c.dt * power_of_weights(a, moving), 0.0)
                displace(a.bodies, q, moved, c.dt, q)
            else:
                displace(a.bodies, q, v, c.dt, q)
            closed = False
            if stuck > 0:
                closed = close_at_points(a, f, own, stuck, end, q, v)
            if not closed:
                finish_after(a, f, end, q, v, moved if report[APART] > 0.0 else v)
            report[LED_PAST] = 0.0
            if c.failure == DONE and len(h.joint_limits) + len(contact_points) > 0:
                led_past = overrun(a, h, moved if report[APART] > 0.0 else h.pushed, v)
                report[LED_PAST] = led_past
                if led_past != 0 and report[LET_PAST] == 0.0:
                    c.failure = OVERRUN
            pushed, began = h.pushed, vectors[START_V, :nv]
            slow, fast = ways_squared(a, began, v)
            fast = max(fast, ways_squared(a, began, pushed)[1])
            if c.failure == DONE and leaps(a, slow, fast, 0.0):
                judge_with_inequalities(a, f, h, start, end, q, v, force)
            if c.failure != DONE:
                for j in range(nq):
                    q[j] = vectors[START_Q, j]
                for j in range(nv):
                    v[j] = vectors[START_V, j]
                c.factored = 0
                return c.failure
            if holding:
                supplies_change(a, f, pushed, v, supplied)
            report[TAKEN] = 0.0
            if accounted:
                known = not math.isnan(report[BUDGET])
                keep_account(a, f, before, v, gained, report)
                c.biased = int(known and report[TAKEN] == 0.0)
            report[BY_LINKS] = report[ALONE] = 0.0
            state[nq + nv] = end.t
            c.done = n + 1
            if report[WHILE_PUSHED] > 0.0 and not any_pushed(impulses[X], report):
                break
        return c.failure

    return do_task


DENSE_INEQUALITIES = InequalityBackend(
    DENSE_APART,
    ending(DENSE_APART).finish_after,
    move_by,
    admit,
    DENSE_SPACE,
    DENSE_SUPPLIES,
    close_at_points,
)
do_dense = stepping_with_inequalities(DENSE_INEQUALITIES)


@kernel
def run_inequalities(
    arrays: SystemArrays,
    own: InequalityArrays,
    given: Given,
    contact_points: Records[ContactPoint],
    task: int,
    steps: int,
) -> int:
    """Do a task at the state (q, v, t), in place; return the failure that stopped it, or DONE.

    contact_points (n,): at the prediction that PREDICT has made of this state; no more than one
    step with any. Those of loose bodies are put last.
    """
    a, f = arrays_of(arrays), dense_factors(arrays, 0)
    return do_dense(a, f, arrays.state, own, given, contact_points, task, steps)
