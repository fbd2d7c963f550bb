"""The compiled step with motors, limits and contacts; a kernel of its own, as the filter is.

Forces alone would give v_f. The inequality rows change it by impulses in the subspace that the
constraints leave free, q moves with the result, and the filter closes the loops while contacts that
stick hold.
"""

import math

from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.constraints.prescribed import prescribed_rates
from bulletbridge.constraints.records import (
    Coupling,
    ForceLimit,
    JointLimit,
    Loop,
    MotorRow,
    Target,
    Term,
)
from bulletbridge.engine.dense import (
    factor_at,
    filter_velocity,
    kinetic_energy,
    set_implicit_horizon,
)
from bulletbridge.engine.dense_backend import DENSE_END
from bulletbridge.engine.plausible import (
    EXCESS_WITH_INEQUALITIES,
    find_least_dense,
    judge_leap,
    kinetic_energy_of_bodies,
    leaps,
    ways_squared,
)
from bulletbridge.engine.records import (
    BY_DENSE,
    DONE,
    PREDICTED_Q,
    RATE,
    START_Q,
    START_V,
    Arrays,
    Control,
    Factors,
    Instant,
)
from bulletbridge.inequalities.contact_rows import ContactRows
from bulletbridge.inequalities.energy_budget import (
    accountable,
    budgeting,
    power_of_weights,
    work,
    work_of_dampers,
)
from bulletbridge.inequalities.impulse_step import (
    impulsive_work,
    largest_work,
    list_sticking,
    predict_velocity,
)
from bulletbridge.inequalities.impulses import (
    ForceLimitedRows,
    InequalityProblem,
    LoopAxisRows,
    build_rows,
    solve_inequalities,
)
from bulletbridge.inequalities.motor_limit_rows import RowTargets
from bulletbridge.inequalities.row_impulses import (
    any_holds,
    supply_against_forces,
    supply_against_impulses,
    supply_change,
)
from bulletbridge.inequalities.state_filter import filter_state
from bulletbridge.inequalities.sticking import StickingPoints
from bulletbridge.inequalities.warm_start import (
    ContactImpulse,
    keep_impulses,
    recall_impulses,
)
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.records import (
    Axis,
    Beam,
    Body,
    ContactPoint,
    Effort,
    Pose,
    Station,
    StickingPoint,
)
from bulletbridge.numerics.complementarity_rows import ROOM as ROOM_OF_PROBLEM
from bulletbridge.numerics.complementarity_rows import RowBounds, complementarity_problem
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.sharing import Sharing
from bulletbridge.numerics.solution_selection import Selection
from bulletbridge.numerics.spatial import copy_into

finish_after = DENSE_END.finish_after
kinetic_energy_of_masses, kept_energy, keep_budget = budgeting(kinetic_energy)
PREDICT, STEP = 0, 1
"""Tasks: where forces alone would lead in a step, into vectors[PREDICTED_Q]; steps."""
SUPPLIED = 2
"""Row of the multipliers with the impulses of rows over the whole step."""
(
    RESIDUAL, SWEEPS, NEWTONS, ROWS, WORK, APART, WITH_FRICTION, LEFT, BUDGET, LARGEST, TAKEN,
    COMPLIED, KEPT, BY_LINKS, REPORT,
) = range(15)  # fmt: skip
"""Report of the last step: of the solver, rows, work of limits and contacts, whether bodies move
apart, first row of constraints with a force limit, residual that a solver in Python leaves, energy
that may not be exceeded, largest kinetic energy, what was taken [J], whether motors gave way,
contacts whose impulses are kept, whether links were eliminated; a budget that is not a number
begins with the end of the step."""
(
    X, RIGHT, W, SCRATCH, DELTA_V, MOVING, MOVED, LENGTHS, RESTING, START, ROOM, BOUNCE, RECOVER,
    PUSHED, RATES, WARM, FOUND, ASKED, HOLDS, STRENGTH, BEGUN, GAVE, IMPULSES,
) = (0, 1, 2, 3, *range(3 + ROOM_OF_PROBLEM, 22 + ROOM_OF_PROBLEM))  # fmt: skip
"""Rows of impulses: those of the last step, right sides, velocities, the problem's room,
velocities that they gave, of the prediction and of moving bodies apart, squares of rows, impulses
without restitution, what is asked of the rows (4), velocity before the loops are closed, velocity
at the start, warm start, first solution, what motors ask for, which rows hold,
their strengths, impulses, what they give way by."""


@kernel
def run_inequalities(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    efforts: Records[Effort],
    poses: Records[Pose],
    axes: Records[Axis],
    loops: Records[Loop],
    couplings: Records[Coupling],
    terms: Records[Term],
    user_jacobian: Array,
    rows: Array,
    L: Array,
    Y: Array,
    R: Array,
    vectors: Array,
    state: Array,
    control: Records[Control],
    sticking_points: Records[StickingPoint],
    sticking_rows: Array,
    P: Array,
    S: Array,
    T: Array,
    values: Array,
    multipliers: Array,
    points: Array,
    motor_rows: Records[MotorRow],
    joint_limits: Records[JointLimit],
    loop_axes: Records[Loop],
    no_couplings: Records[Coupling],
    no_terms: Records[Term],
    put_loop_axis_rows: Records[Row],
    G: Array,
    force_limits: Records[ForceLimit],
    force_limited_loops: Records[Loop],
    force_limited_couplings: Records[Coupling],
    force_limited_terms: Records[Term],
    force_limited_rows: Records[Row],
    contact_rows: Records[ContactRows],
    kept: Records[ContactImpulse],
    local: Records[ContactPoint],
    C: Array,
    D: Array,
    bounds: Records[RowBounds],
    impulses: Array,
    targets: Array,
    axis_targets: Records[Target],
    force_limited_targets: Records[Target],
    tau: Array,
    contact_points: Records[ContactPoint],
    report: Array,
    callback: int,
    task: int,
    steps: int,
) -> int:
    """Do a task at the state (q, v, t), in place; return the failure that stopped it, or DONE.

    The arrays up to points are those of ``filter_kernel.run_filter``. C (2, rows, nv): the rows
    less what the constraints forbid, whitened, and as they were. D (2, rows, rows), impulses
    (IMPULSES, rows). multipliers (3, nc): those of the filter, and of the whole step
    [N s, N m s], where constraints with a force limit hold. contact_points (n,) at the prediction
    that PREDICT has made of this state; no more than one step with any. axis_targets and
    force_limited_targets: now. report (REPORT,). callback: address of the Python function that
    solves the mixed problem, or 0.
    """
    nv, nq = len(axes), len(state) - len(axes) - 1
    c = control[0]
    a = Arrays(
        bodies,
        beams,
        stations,
        efforts,
        poses,
        axes,
        loops,
        couplings,
        terms,
        user_jacobian,
        rows[2],
        vectors,
        c,
    )
    f = Factors(L[0], Y[0], R[0], rows[0])
    problem = complementarity_problem(
        D[0], impulses[RIGHT], bounds, impulses[X], impulses[W], D[1], impulses[SCRATCH:]
    )
    axis_rows = LoopAxisRows(loop_axes, no_couplings, no_terms, put_loop_axis_rows, G, axis_targets)
    force_limited = ForceLimitedRows(
        force_limits,
        force_limited_loops,
        force_limited_couplings,
        force_limited_terms,
        force_limited_rows,
        force_limited_targets,
    )
    row_targets = RowTargets(impulses[START], impulses[ROOM], impulses[BOUNCE], impulses[RECOVER])
    delta_v, moving, moved = impulses[DELTA_V, :nv], impulses[MOVING, :nv], impulses[MOVED, :nv]
    h = InequalityProblem(
        motor_rows,
        joint_limits,
        axis_rows,
        force_limited,
        contact_points,
        contact_rows,
        kept,
        C[0],
        C[1],
        delta_v,
        local,
        moving,
        impulses[LENGTHS],
        impulses[RESTING],
        row_targets,
        problem,
        Selection(impulses[START], impulses[WARM], impulses[FOUND]),
        Sharing(
            impulses[ASKED],
            impulses[HOLDS],
            impulses[STRENGTH],
            impulses[BEGUN],
            impulses[GAVE],
        ),
        report[COMPLIED:],
        callback,
        report[LEFT:],
    )
    q, v, holding = state[:nq], state[nq : nq + nv], any_holds(force_limits)
    c.failure, c.done = DONE, 0
    set_implicit_horizon(a, c.dt)
    if task == PREDICT:
        c.t = state[nq + nv]
        if c.factored != BY_DENSE:
            factor_at(a, f, Instant(state[nq + nv], targets[0]), q, v)
        for j in range(nv):
            vectors[START_V, j] = v[j]
        predict_velocity(a, f, q, vectors[START_V, :nv], tau[0])
        displace(bodies, q, vectors[START_V], c.dt, vectors[PREDICTED_Q])
        copy_into(moving, vectors[START_V, :nv])
        c.factored, c.biased = BY_DENSE, int(accountable(a))
        return c.failure
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
            supply_against_forces(a, f, q, v, force, multipliers[SUPPLIED])
        predict_velocity(a, f, q, v, force)
        c.biased = 0
        if c.driven > 0 and c.user_rows == 0:  # prescribed motions may start at once
            prescribed_rates(a.loops, a.couplings, a.poses, end.targets, f.rows)
            filter_velocity(a, f, v)
            if holding:
                supply_change(a, f, before, v, multipliers[SUPPLIED])
        given = work(a, before, v, force) if accounted else 0.0
        stuck = inequality_impulses(a, f, h, q, v, sticking_points, report)
        if accounted:  # limits and contacts give nothing, whatever their rows do within a step
            pressing, found = (
                int(report[WITH_FRICTION]) + len(force_limited_rows),
                int(report[ROWS]),
            )
            met = max(report[WORK], impulsive_work(a, f, h, pressing, found, before, v))
            given += min(met, 0.0) + impulsive_work(a, f, h, 0, pressing, before, v)
        copy_into(impulses[PUSHED], v)
        if holding:
            found = int(report[ROWS])
            supply_against_impulses(a, f, h.raw, problem.x, found, multipliers[SUPPLIED])
        if report[APART] > 0.0:
            for j in range(nv):
                moved[j] = moving[j] + v[j]
            if accounted:  # what is moved out of what it is in may rise against its weight
                given += max(-c.dt * power_of_weights(a, moving), 0.0)
            displace(bodies, q, moved, c.dt, q)
        else:
            displace(bodies, q, v, c.dt, q)
        closed = False
        if stuck > 0:
            copy_into(vectors[PREDICTED_Q], q)
            copy_into(vectors[RATE], v)
            forget(multipliers, points)
            points_now = sticking_points[:stuck]
            k = StickingPoints(points_now, sticking_rows[0], sticking_rows[1], P, S, T, values)
            filter_state(a, f, k, end, q, v, multipliers, points, 1.0 / c.dt, 0)
            closed = c.failure == DONE
            if not closed:  # contacts and loops want too different things
                copy_into(q, vectors[PREDICTED_Q, :nq])
                copy_into(v, vectors[RATE, :nv])
                c.failure = DONE
                factor_at(a, f, end, q, v)
        if not closed:
            finish_after(a, f, end, q, v, moved if report[APART] > 0.0 else v)
        pushed, began = impulses[PUSHED, :nv], vectors[START_V, :nv]
        slow, fast = ways_squared(a, began, v)
        fast = max(fast, ways_squared(a, began, pushed)[1])
        if c.failure == DONE and leaps(a, slow, fast, 0.0):
            judge_with_inequalities(a, f, h, start, end, q, v, pushed, force, report)
        if c.failure != DONE:
            for j in range(nq):
                q[j] = vectors[START_Q, j]
            for j in range(nv):
                v[j] = vectors[START_V, j]
            c.factored = 0
            return c.failure
        if holding:
            supply_change(a, f, pushed, v, multipliers[SUPPLIED])
        report[TAKEN] = 0.0
        if accounted and math.isnan(report[BUDGET]):
            report[BUDGET] = kept_energy(a, f, v)
            report[LARGEST] = kinetic_energy_of_masses(a, f, v)
        elif accounted:
            report[BUDGET] += given + work_of_dampers(a, before, v)
            report[LARGEST] = max(report[LARGEST], kinetic_energy_of_masses(a, f, v))
            report[TAKEN] = keep_budget(a, f, v, report[BUDGET], report[LARGEST])
            c.biased = int(report[TAKEN] == 0.0)
        report[BY_LINKS] = 0.0
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
    pushed: Array,
    tau: Array,
    report: Array,
) -> None:
    """Refuse an end of a step, or what led to it, that motors and forces cannot have made."""
    nq, nv = len(q), len(v)
    q0, v0 = a.vectors[START_Q, :nq], a.vectors[START_V, :nv]
    lines, first = tau.reshape((1, nv)), int(report[WITH_FRICTION]) + len(h.force_limited.rows)
    given = max(largest_work(h, first, v0, pushed), largest_work(h, first, v0, v))
    if report[APART] > 0.0:  # closing loops after bodies were moved apart moves them too
        given += kinetic_energy_of_bodies(a, h.moving)
    find_least_dense(a, f)
    judge_leap(a, start, end, q0, v0, q, pushed, lines, given, EXCESS_WITH_INEQUALITIES)
    if a.control.failure == DONE:
        judge_leap(a, start, end, q0, v0, q, v, lines, given, EXCESS_WITH_INEQUALITIES)


@helper
def forget(multipliers: Array, points: Array) -> None:
    """Set the sums of a filter to zero."""
    for n in range(2):
        for i in range(multipliers.shape[1]):
            multipliers[n, i] = 0.0
        for i in range(points.shape[1]):
            points[n, i] = 0.0


@outlined
def inequality_impulses(
    a: Arrays,
    f: Factors,
    h: InequalityProblem,
    q: Array,
    v: Array,
    sticking_points: Records[StickingPoint],
    report: Array,
) -> int:
    """Add the impulses of motors, limits and contacts to v; list contacts that stick, and count."""
    rows = build_rows(a, h, q, v, a.vectors[START_V, : len(v)])
    n = rows.all
    report[ROWS], report[WITH_FRICTION] = n, rows.with_friction
    report[RESIDUAL] = report[SWEEPS] = report[NEWTONS] = report[WORK] = report[APART] = 0.0
    x = h.problem.x
    if n == 0:
        report[KEPT] = keep_impulses(x, h.joint_limits, h.contact_points, h.contact_rows, h.kept)
        return 0
    recall_impulses(x, h.joint_limits, h.contact_points, h.contact_rows, h.kept, int(report[KEPT]))
    scale = 0.0  # of velocities, and of what they are sums of, which may all but cancel
    for i in range(n):
        total = 0.0
        for k in range(len(v)):
            total += math.fabs(h.C[i, k] * v[k])
        scale = max(scale, math.fabs(h.problem.b[i]), total)
    enough = 1e-12 * scale + 1e-14
    outcome = solve_inequalities(a, f, h, q, rows, enough, v)
    report[RESIDUAL], report[SWEEPS] = outcome.residual, outcome.sweeps
    report[NEWTONS], report[WORK], report[APART] = outcome.newton, outcome.work, outcome.apart
    report[KEPT] = keep_impulses(x, h.joint_limits, h.contact_points, h.contact_rows, h.kept)
    return list_sticking(x, h.contact_points, h.contact_rows, sticking_points)
