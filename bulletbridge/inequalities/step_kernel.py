"""The compiled step with motors, limits and contacts; a kernel of its own, as the filter is.

Forces alone would give v_f. The inequality rows change it by impulses in the subspace that the
constraints leave free, q moves with the result, and the filter closes the loops while contacts that
stick hold.
"""

import math

from bulletbridge.compilation.jit import bundling, kernel, outlined
from bulletbridge.constraints.prescribed import prescribed_rates
from bulletbridge.engine.dense import (
    factor_at,
    filter_velocity,
    kinetic_energy,
    set_implicit_horizon,
)
from bulletbridge.engine.dense_backend import DENSE_APART
from bulletbridge.engine.plausible import (
    EXCESS_WITH_INEQUALITIES,
    find_least_dense,
    judge_leap,
    kinetic_energy_of_bodies,
    leaps,
    power_of_weights,
    ways_squared,
)
from bulletbridge.engine.records import (
    BY_DENSE,
    DONE,
    PREDICTED,
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
    ASKED,
    BEGUN,
    BOUNCE,
    BUDGET,
    BY_LINKS,
    DELTA_V,
    FOUND,
    GAVE,
    HOLDS,
    KEPT,
    LARGEST,
    LENGTHS,
    MOVED,
    MOVING,
    NEWTONS,
    PREDICT,
    PUSHED,
    RATES,
    RECOVER,
    RESIDUAL,
    RESTING,
    RIGHT,
    ROOM,
    ROWS,
    SCRATCH,
    START,
    STRENGTH,
    SUPPLIED,
    SWEEPS,
    TAKEN,
    TOGETHER,
    WARM,
    WITH_FRICTION,
    WITH_MOTORS,
    WITHOUT_MOTORS,
    WORK,
    Given,
    InequalityArrays,
    W,
    X,
)
from bulletbridge.inequalities.energy_budget import (
    accountable,
    budgeting,
    work,
    work_of_dampers,
)
from bulletbridge.inequalities.impulse_step import (
    impulsive_work,
    largest_work,
    lead_by_motors,
    list_sticking,
    predict_velocity,
)
from bulletbridge.inequalities.impulses import (
    InequalityProblem,
    build_rows,
    solve_inequalities,
)
from bulletbridge.inequalities.loose_bodies import (
    largest_along_loose,
    leave_to_robots,
    put_loose_last,
    work_on_loose,
)
from bulletbridge.inequalities.motor_limit_rows import RowTargets
from bulletbridge.inequalities.row_impulses import (
    any_holds,
    supply_against_forces,
    supply_against_impulses,
    supply_change,
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
    StickingPoint,
)
from bulletbridge.numerics.complementarity_rows import Room, complementarity_problem
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.sharing import Sharing
from bulletbridge.numerics.solution_selection import Selection
from bulletbridge.numerics.spatial import copy_into

finish_after = ending(DENSE_APART).finish_after
kinetic_energy_of_masses, kept_energy, keep_budget = budgeting(kinetic_energy)


@bundling
def problem_of(
    own: InequalityArrays, given: Given, contact_points: Records[ContactPoint], nv: int
) -> InequalityProblem:
    """The mixed problem of a step, as helpers take it."""
    x, report = own.impulses, own.report
    return InequalityProblem(
        own.motor_rows,
        own.joint_limits,
        own.loop_axes,
        given.axis_targets,
        own.force_limited,
        given.limited_targets,
        contact_points,
        own.contact_rows,
        own.kept,
        own.C[0],
        own.C[1],
        x[DELTA_V, :nv],
        own.local,
        x[MOVING, :nv],
        x[PUSHED, :nv],
        x[LENGTHS],
        x[RESTING],
        RowTargets(x[START], x[ROOM], x[BOUNCE], x[RECOVER]),
        complementarity_problem(
            own.D[0], x[RIGHT], own.bounds, x[X], x[W], Room(own.D[1], x[SCRATCH:], own.parts)
        ),
        Selection(x[START], x[WARM], x[FOUND]),
        Sharing(x[ASKED], x[HOLDS], x[STRENGTH], x[BEGUN], x[GAVE]),
        own.loose,
        given.callback,
        report,
    )


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
    state, vectors, targets, tau = arrays.state, arrays.vectors, given.targets, given.tau
    nv, nq = len(arrays.axes), len(state) - len(arrays.axes) - 1
    a, f = arrays_of(arrays), dense_factors(arrays, 0)
    c, impulses, report, limited = a.control, own.impulses, own.report, own.force_limited
    supplied = own.holding.loop_impulses[SUPPLIED]
    h = problem_of(own, given, contact_points, nv)
    moving, moved = h.moving, impulses[MOVED, :nv]
    q, v, holding = state[:nq], state[nq : nq + nv], any_holds(limited.force_limits)
    c.failure, c.done = DONE, 0
    set_implicit_horizon(a, c.dt)
    if task == PREDICT:
        c.t = state[nq + nv]
        if c.factored != BY_DENSE:
            factor_at(a, f, Instant(state[nq + nv], targets[0]), q, v)
        copy_into(moving, v)
        predict_velocity(a, f, q, moving, tau[WITHOUT_MOTORS])
        copy_into(h.pushed, moving)
        c.factored, c.biased = BY_DENSE, PREDICTED if accountable(a) else 0
        if len(tau) > WITH_MOTORS:
            with_motors = vectors[START_V, :nv]
            copy_into(with_motors, v)
            predict_velocity(a, f, q, with_motors, tau[WITH_MOTORS])
            lead_by_motors(a, with_motors, moving)
        displace(a.bodies, q, moving, c.dt, vectors[PREDICTED_Q])
        return c.failure
    together = put_loose_last(h.loose.islands, contact_points, h.local)
    for n in range(steps):
        c.t = t = state[nq + nv]
        start = Instant(t, targets[min(n, len(targets) - 1)])
        end = Instant(t + c.dt, targets[min(n + 1, len(targets) - 1)])
        if c.factored != BY_DENSE:
            factor_at(a, f, start, q, v)
        for j in range(nq):
            vectors[START_Q, j] = q[j]
        for j in range(nv):
            vectors[START_V, j] = v[j]
        copy_into(impulses[RATES], v)
        force, before, accounted = tau[min(n, len(tau) - 1)], impulses[RATES, :nv], accountable(a)
        if holding:
            supply_against_forces(a, f, q, v, force, supplied)
        if c.biased == PREDICTED:
            copy_into(v, h.pushed)
        else:
            predict_velocity(a, f, q, v, force)
        c.biased = 0
        if c.driven > 0 and c.user_rows == 0:  # prescribed motions may start at once
            prescribed_rates(a.loops, a.couplings, a.poses, end.targets, f.rows)
            filter_velocity(a, f, v)
            if holding:
                supply_change(a, f, before, v, supplied)
        stuck, gained = inequality_impulses(a, f, h, q, v, own.holding.points, together), 0.0
        if accounted:  # limits and contacts give nothing, whatever their rows do within a step
            pressing, found = (
                int(report[WITH_FRICTION]) + len(limited.rows),
                int(report[TOGETHER]),
            )
            met = impulsive_work(a, f, h, pressing, found, before, v)
            met += work_on_loose(h.loose, h.problem.x, found, int(report[ROWS]), before, v)
            met = max(report[WORK], met)
            gained = work(a, before, v, force) + min(met, 0.0)
            gained += impulsive_work(a, f, h, 0, pressing, before, v)
        copy_into(impulses[PUSHED], v)
        if holding:
            found = int(report[TOGETHER])
            supply_against_impulses(a, f, h.raw, h.problem.x, found, supplied)
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
            copy_into(vectors[PREDICTED_Q], q)
            copy_into(vectors[RATE], v)
            forget_impulses(own.holding)
            k = sticking_points_of(own.holding, stuck)
            filter_state(a, f, k, end, q, v, 1.0 / c.dt, 0)
            closed = c.failure == DONE
            if not closed:  # contacts and loops want too different things
                copy_into(q, vectors[PREDICTED_Q, :nq])
                copy_into(v, vectors[RATE, :nv])
                c.failure = DONE
                factor_at(a, f, end, q, v)
        if not closed:
            finish_after(a, f, end, q, v, moved if report[APART] > 0.0 else v)
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
            supply_change(a, f, pushed, v, supplied)
        report[TAKEN] = 0.0
        if accounted and math.isnan(report[BUDGET]):
            report[BUDGET] = kept_energy(a, f, v)
            report[LARGEST] = kinetic_energy_of_masses(a, f, v)
        elif accounted:
            report[BUDGET] += gained + work_of_dampers(a, before, v)
            report[LARGEST] = max(report[LARGEST], kinetic_energy_of_masses(a, f, v))
            report[TAKEN] = keep_budget(a, f, v, report[BUDGET], report[LARGEST])
            c.biased = int(report[TAKEN] == 0.0)
        report[BY_LINKS] = report[ALONE] = 0.0
        state[nq + nv] = end.t
        c.done = n + 1
    return c.failure


@outlined
def judge_with_inequalities(
    a: Arrays,
    f: Factors,
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
    find_least_dense(a, f)
    judge_leap(a, start, end, q, pushed, lines, given, EXCESS_WITH_INEQUALITIES)
    if a.control.failure == DONE:
        judge_leap(a, start, end, q, v, lines, given, EXCESS_WITH_INEQUALITIES)


@outlined
def inequality_impulses(
    a: Arrays,
    f: Factors,
    h: InequalityProblem,
    q: Array,
    v: Array,
    sticking_points: Records[StickingPoint],
    together: int,
) -> int:
    """Add the impulses of motors, limits and contacts to v; list contacts that stick, and count.

    ``together``: contacts that are solved for together, before those of loose bodies, which nothing
    moves while loops are closed. Without loops those of a robot alone are listed.
    """
    rows = build_rows(a, h, q, v, a.vectors[START_V, : len(v)], together)
    n, report = rows.all, h.report
    report[TOGETHER] = rows.together
    report[ROWS], report[WITH_FRICTION] = n, rows.with_friction
    report[RESIDUAL] = report[SWEEPS] = report[NEWTONS] = report[WORK] = report[APART] = 0.0
    x = h.problem.x
    if n == 0:
        report[KEPT] = keep_impulses(x, h.joint_limits, h.contact_points, h.contact_rows, h.kept)
        return 0
    recall_impulses(x, h.joint_limits, h.contact_points, h.contact_rows, h.kept, int(report[KEPT]))
    scale = 0.0  # of velocities, and of what they are sums of, which may all but cancel
    for i in range(n):
        total = largest_along_loose(h.loose, i, v) if i >= rows.together else 0.0
        for k in range(len(v) if i < rows.together else 0):
            total += math.fabs(h.C[i, k] * v[k])
        scale = max(scale, math.fabs(h.problem.b[i]), total)
    enough = 1e-12 * scale + 1e-14
    outcome = solve_inequalities(a, f, h, q, rows, enough, v)
    report[RESIDUAL], report[SWEEPS] = outcome.residual, outcome.sweeps
    report[NEWTONS], report[WORK], report[APART] = outcome.newton, outcome.work, outcome.apart
    report[KEPT] = keep_impulses(x, h.joint_limits, h.contact_points, h.contact_rows, h.kept)
    count = list_sticking(x, h.contact_points[:together], h.contact_rows, sticking_points)
    if a.control.filter_rank > 0:
        return count
    return leave_to_robots(h.loose.islands, sticking_points, count)
