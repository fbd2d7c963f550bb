"""The compiled step with contacts by elimination of links: ``step_kernel`` where these alone act.

A step that this does not know, or does not come to the end of, is DENSE_REQUIRED, with the state
before it.
"""

import math

from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.engine.dense import set_implicit_horizon
from bulletbridge.engine.plausible import (
    EXCESS_WITH_INEQUALITIES,
    judge_leap,
    kinetic_energy_of_bodies,
    leaps,
    power_of_weights,
    ways_squared,
)
from bulletbridge.engine.records import (
    ACCELERATION,
    BY_SPARSE,
    DENSE_REQUIRED,
    DONE,
    LEAST,
    MEAN,
    NOT_FACTORED,
    PREDICTED_Q,
    RATE,
    START_Q,
    START_V,
    Arrays,
    Instant,
    SystemArrays,
    arrays_of,
)
from bulletbridge.engine.sparse import SparseFactors, admissible_acceleration, admit, factor_at
from bulletbridge.engine.sparse_backend import SPARSE, SPARSE_END, energy_of
from bulletbridge.engine.sparse_border import TAKEN as BORDER_TAKEN
from bulletbridge.engine.sparse_kernel import SparseArrays, factors_of
from bulletbridge.inequalities.arrays import (
    APART,
    BEYOND,
    BOUNCE,
    BY_LINKS,
    DELTA_V,
    FOUND,
    GAVE,
    KEPT,
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
    SWEEPS,
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
from bulletbridge.inequalities.contact_rows import energy_of_contacts, work_of_springs_of
from bulletbridge.inequalities.energy_budget import (
    accountable,
    budgeting,
    work,
)
from bulletbridge.inequalities.impulse_step import lead_by_motors, list_sticking
from bulletbridge.inequalities.link_impulses import (
    ContactProblem,
    LinkProblem,
    add_contact_impulses,
)
from bulletbridge.inequalities.link_rows import (
    LinkArrays,
    LinkRows,
    link_rate,
    link_rows_of,
    put_link_rows,
)
from bulletbridge.inequalities.link_sticking import LINK_POINTS, link_points_of
from bulletbridge.inequalities.motor_limit_rows import RowRoom, RowTargets
from bulletbridge.inequalities.state_filter import filtering
from bulletbridge.inequalities.sticking import forget_impulses
from bulletbridge.inequalities.warm_start import (
    keep_impulses,
    recall_impulses,
)
from bulletbridge.mechanism.dynamics import composite_inertias
from bulletbridge.mechanism.kinematics import displace, kinematics
from bulletbridge.mechanism.records import ContactPoint
from bulletbridge.numerics.contact_islands import Islands
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.solution_selection import Selection
from bulletbridge.numerics.spatial import copy_into

finish_after = SPARSE_END.finish_after
keep_account = budgeting(energy_of, admit)
filter_state = filtering(SPARSE, LINK_POINTS)
work_of_springs = work_of_springs_of(link_rate)


@kernel
def run_contacts(
    sparse: SparseArrays,
    arrays: SystemArrays,
    link: LinkArrays,
    own: InequalityArrays,
    given: Given,
    contact_points: Records[ContactPoint],
    task: int,
    steps: int,
) -> int:
    """Do a task of ``step_kernel.run_inequalities``; at most one step. A failure, or DONE."""
    c, state = arrays.control[0], arrays.state
    nv, nq = len(arrays.axes), len(state) - len(arrays.axes) - 1
    a = arrays_of(arrays)
    f = factors_of(sparse, arrays, 0)
    q, v = state[:nq], state[nq : nq + nv]
    c.failure, c.done, c.t = DONE, 0, state[nq + nv]
    set_implicit_horizon(a, c.dt)
    if c.factored != BY_SPARSE:
        factor_at(a, f, Instant(c.t, given.targets[0]), q, v)
    if c.failure != DONE or f.border.counts[BORDER_TAKEN] > 0 or c.driven > 0:
        c.factored = NOT_FACTORED
        c.failure = DENSE_REQUIRED
        return c.failure
    c.factored = BY_SPARSE
    moving = own.impulses[MOVING, :nv]
    copy_into(a.vectors[START_V], v)
    if task == PREDICT:
        copy_into(moving, v)
        predict_by_links(a, f, q, moving, given.tau[WITHOUT_MOTORS])
        if len(given.tau) > WITH_MOTORS:
            with_motors = a.vectors[START_V, :nv]
            predict_by_links(a, f, q, with_motors, given.tau[WITH_MOTORS])
            lead_by_motors(a, with_motors, moving)
        displace(a.bodies, q, moving, c.dt, a.vectors[PREDICTED_Q])
        return DONE
    copy_into(a.vectors[START_Q], q)
    copy_into(own.impulses[RATES], v)
    copy_into(own.impulses[STRENGTH], moving)
    take_step(a, f, link, own, given, contact_points, q, v)
    if c.failure != DONE:
        copy_into(q, a.vectors[START_Q, :nq])
        copy_into(v, a.vectors[START_V, :nv])
        copy_into(moving, own.impulses[STRENGTH])
        c.factored = NOT_FACTORED
        return c.failure
    own.report[BY_LINKS] = 1.0
    state[nq + nv] += c.dt
    c.done = 1
    return DONE


@outlined
def predict_by_links(a: Arrays, f: SparseFactors, q: Array, v: Array, tau: Array) -> None:
    """Velocities that forces and constraints alone would give at the end of the step."""
    vdot = a.vectors[ACCELERATION, : len(v)]
    admissible_acceleration(a, f, q, v, tau, vdot)
    for k in range(len(v)):
        v[k] += a.control.dt * vdot[k]


@helper
def take_step(
    a: Arrays,
    f: SparseFactors,
    link: LinkArrays,
    own: InequalityArrays,
    given: Given,
    contact_points: Records[ContactPoint],
    q: Array,
    v: Array,
) -> None:
    """One step from a state whose factors are known; a failure goes into ``control``."""
    c, nv, impulses, report, tau = a.control, len(v), own.impulses, own.report, given.tau[0]
    start = Instant(c.t, given.targets[0])
    end = Instant(c.t + c.dt, given.targets[min(1, len(given.targets) - 1)])
    links = link_rows_of(link, f, 0)
    before, moving = impulses[RATES, :nv], impulses[MOVING, :nv]
    composite_inertias(a.bodies, a.beams, a.stations, a.poses)
    accounted = accountable(a)
    predict_by_links(a, f, q, v, tau)
    gained = 0.0
    stuck = contact_impulses(a, f, links, link.islands, own, contact_points, q, v)
    if c.failure != DONE:
        return
    apart, rows = report[APART] > 0.0, int(report[ROWS])
    if accounted:  # but springs, contacts give nothing, whatever their rows do within a step
        met = max(report[WORK], impulsive_work(links, impulses[X], rows, before, v, a.vectors))
        pressed = own.contact_rows[: len(contact_points)]
        sprung = work_of_springs(links, pressed, impulses[X], before, v)
        gained = work(a, before, v, tau) + min(met, sprung)
    copy_into(impulses[PUSHED], v)
    moved = impulses[MOVED, :nv]
    copy_into(moved, v)
    if apart:
        for k in range(nv):
            moved[k] += moving[k]
        if accounted:  # what is moved out of what it is in may rise against its weight
            gained += max(-c.dt * power_of_weights(a, moving), 0.0)
    displace(a.bodies, q, moved, c.dt, q)
    closed = False
    if stuck > 0:
        copy_into(a.vectors[PREDICTED_Q], q)
        copy_into(a.vectors[RATE], v)
        forget_impulses(own.holding)
        h = link_points_of(own.holding, stuck, link_rows_of(link, f, 1))
        c.factored = NOT_FACTORED
        filter_state(a, f, h, end, q, v, 1.0 / c.dt, 0)
        closed = c.failure == DONE
        if not closed:  # contacts and loops want too different things
            copy_into(q, a.vectors[PREDICTED_Q, : len(q)])
            copy_into(v, a.vectors[RATE, :nv])
            c.failure = DONE
            factor_at(a, f, end, q, v)
            if c.failure != DONE:
                return
    if not closed:
        finish_after(a, f, end, q, v, moved)
        if c.failure != DONE:
            return
    if stuck == 0 or not closed:
        composite_inertias(a.bodies, a.beams, a.stations, a.poses)
    judge_with_contacts(a, own, contact_points, start, end, q, v, tau)
    if c.failure == DONE and accounted:
        keep_account(a, f, before, v, gained, report)


@outlined
def judge_with_contacts(
    a: Arrays,
    own: InequalityArrays,
    contact_points: Records[ContactPoint],
    start: Instant,
    end: Instant,
    q: Array,
    v: Array,
    tau: Array,
) -> None:
    """Refuse an end of a step, or what led to it, that forces cannot have made."""
    impulses = own.impulses
    nv = len(v)
    v0, pushed = a.vectors[START_V, :nv], impulses[PUSHED, :nv]
    slow, fast = ways_squared(a, v0, v)
    fast = max(fast, ways_squared(a, v0, pushed)[1])
    if not leaps(a, slow, fast, 0.0):
        return
    lines = tau.reshape((1, nv))
    given = energy_of_contacts(contact_points, own.contact_rows, impulses[ROOM], a.control.dt)
    if own.report[APART] > 0.0:  # closing loops after bodies were moved apart moves them too
        given += kinetic_energy_of_bodies(a, impulses[MOVING, :nv])
    for k in range(nv):
        a.vectors[LEAST, k] = 0.0
    judge_leap(a, start, end, q, pushed, lines, given, EXCESS_WITH_INEQUALITIES)
    if a.control.failure == DONE:
        judge_leap(a, start, end, q, v, lines, given, EXCESS_WITH_INEQUALITIES)


@outlined
def impulsive_work(
    links: LinkRows, x: Array, n: int, before: Array, after: Array, vectors: Array
) -> float:
    """Work [J] of n rows: impulses along the mean of the velocities at both ends."""
    total, mean = 0.0, vectors[MEAN, : len(after)]
    for k in range(len(after)):
        mean[k] = 0.5 * (before[k] + after[k])
    for i in range(n):
        total += x[i] * link_rate(links, i, mean)
    return total


@outlined
def contact_impulses(
    a: Arrays,
    f: SparseFactors,
    links: LinkRows,
    islands: Islands,
    own: InequalityArrays,
    contact_points: Records[ContactPoint],
    q: Array,
    v: Array,
) -> int:
    """Add the impulses of contacts to v; list contacts that stick to loops, and count.

    Without loops there is nothing to close while they do.
    """
    impulses, report, nv, c = own.impulses, own.report, len(v), a.control
    x, moving = impulses[X], impulses[MOVING, :nv]
    report[WITH_FRICTION] = report[RESIDUAL] = report[SWEEPS] = report[NEWTONS] = 0.0
    report[WORK] = report[APART] = report[ROWS] = 0.0
    contact_rows = own.contact_rows[: len(contact_points)]
    if len(contact_points) == 0:
        report[KEPT] = keep_impulses(
            x, impulses[BEYOND], own.joint_limits, contact_points, contact_rows, own.kept
        )
        return 0
    row_targets = RowTargets(impulses[START], impulses[ROOM], impulses[BOUNCE], impulses[RECOVER])
    predicted, before = a.vectors[PREDICTED_Q, : len(q)], a.vectors[START_V, :nv]
    displace(a.bodies, q, moving, c.dt, predicted)
    kinematics(a.bodies, a.beams, a.stations, predicted, a.poses, a.axes)
    room = RowRoom(links, impulses[RIGHT], own.bounds, row_targets)
    n = put_link_rows(contact_points, a, v, moving, before, 0, room, contact_rows)
    recall_impulses(
        x,
        impulses[BEYOND],
        own.joint_limits,
        contact_points,
        contact_rows,
        own.kept,
        int(report[KEPT]),
    )
    problem = LinkProblem(
        own.D[0], impulses[RIGHT], own.bounds, x, impulses[W], impulses[SCRATCH],
        impulses[SCRATCH + 1], impulses[SCRATCH + 2], impulses[SCRATCH + 3], impulses[SCRATCH + 4],
        impulses[SCRATCH + 5], impulses[SCRATCH + 6], impulses[SCRATCH + 7], impulses[SCRATCH + 8],
        impulses[SCRATCH + 9], contact_rows, links, islands, f,
    )  # fmt: skip
    h = ContactProblem(
        problem,
        row_targets,
        Selection(impulses[START], impulses[WARM], impulses[FOUND]),
        impulses[RESTING],
        impulses[GAVE],
        impulses[DELTA_V, :nv],
        moving,
        report,
    )
    solved = add_contact_impulses(
        a, h, n, 1e-12 * scale_of(links, impulses[RIGHT], n, v) + 1e-14, v
    )
    if solved.residual == math.inf:
        c.failure = DENSE_REQUIRED
        return 0
    report[ROWS], report[RESIDUAL], report[NEWTONS] = n, solved.residual, solved.newton
    report[SWEEPS], report[WORK], report[APART] = solved.sweeps, solved.work, solved.apart
    report[KEPT] = keep_impulses(
        x, impulses[BEYOND], own.joint_limits, contact_points, contact_rows, own.kept
    )
    if len(f.rows) == 0:
        return 0
    return list_sticking(x, contact_points, contact_rows, own.holding.points)


@outlined
def scale_of(links: LinkRows, b: Array, n: int, v: Array) -> float:
    """The largest velocity of n rows, and of what they are sums of, which may all but cancel."""
    scale = 0.0
    for i in range(n):
        total = 0.0
        for m in range(2):
            body = int(links.bodies[i, m])
            if body > 0:
                front = links.e.fronts[int(links.front_of[body])]
                for k in range(front.rates):
                    total += math.fabs(links.on[i, m, k] * v[front.v + k])
        scale = max(scale, math.fabs(b[i]), total)
    return scale
