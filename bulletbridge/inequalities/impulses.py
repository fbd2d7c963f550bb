"""Motors, limits and contacts in the subspace that the constraints leave free.

The rows C are whitened and stripped of what the constraints forbid, so whatever impulses they get,
the constraints stay satisfied: they do not depend on how far the inequality solve has come.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import bundling, call_back, helper, outlined
from bulletbridge.constraints.records import JointLimit, MotorRow, Target
from bulletbridge.engine.dense import kinematics_apart
from bulletbridge.engine.records import (
    ONE_OVER_UNITS,
    PREDICTED_Q,
    START_V,
    Arrays,
    Factors,
)
from bulletbridge.inequalities.arrays import (
    ASKED,
    AXES,
    BEGUN,
    BOUNCE,
    CARRIED,
    CARRIED_LAST,
    CARRY_AFTER,
    CARRY_IN,
    COMPLIED,
    COMPLYING_AFTER,
    COMPLYING_IN,
    DELTA_V,
    FOUND,
    GAVE,
    HOLDS,
    LEFT,
    LENGTHS,
    MOVING,
    PARTING_AFTER,
    PARTING_IN,
    PUSHED,
    RECOVER,
    REST_AFTER,
    REST_IN,
    RESTING,
    RIGHT,
    ROOM,
    SCRATCH,
    START,
    STRENGTH,
    WARM,
    YIELDED,
    Given,
    InequalityArrays,
    W,
    X,
)
from bulletbridge.inequalities.contact_rows import (
    ContactRows,
    leave_what_moves,
    put_contact_rows,
)
from bulletbridge.inequalities.force_limited_rows import (
    ForceLimitedRows,
    put_force_limited_rows,
    put_loop_axis_rows,
)
from bulletbridge.inequalities.loose_bodies import (
    LooseBodies,
    along_loose,
    push_loose,
    put_loose_blocks,
    put_loose_rows,
    stop_loose,
)
from bulletbridge.inequalities.motor_limit_rows import (
    FASTEST_RECOVERY,
    LoopAxisRows,
    RowRoom,
    RowTargets,
    add_compliance_of_servos,
    compliance,
    put_limit_rows,
    put_motor_rows,
    put_row_bounds,
    rate_along,
)
from bulletbridge.inequalities.restitution import Impulses, bounce_share, is_usable, work_of
from bulletbridge.inequalities.warm_start import ContactImpulse
from bulletbridge.mechanism.kinematics import displace, world_position
from bulletbridge.mechanism.records import ContactPoint
from bulletbridge.numerics.complementarity import (
    ANYWHERE,
    INSIDE,
    JUST_AS_WELL,
    NEARBY,
    NEWTON_STEPS,
    RECALLED,
    SETTLED,
    Outcome,
    factorise_bordered,
    is_convex,
    newton,
    note_beyond,
    solve_bordered,
    solve_complementarity,
)
from bulletbridge.numerics.complementarity_rows import (
    CONVEX,
    FACTORED,
    FORMED,
    NEAREST,
    NOWHERE,
    USED,
    ComplementarityProblem,
    Room,
    begin_sweep,
    clip,
    complementarity_problem,
    put_within,
    velocities,
)
from bulletbridge.numerics.contact_islands import APART as WHILE_PARTING
from bulletbridge.numerics.contact_islands import RESTING as WHILE_RESTING
from bulletbridge.numerics.contact_islands import solve_by_islands
from bulletbridge.numerics.free_rows import (
    first_of,
    put_admissible_basis,
    unwhiten_rows,
)
from bulletbridge.numerics.independent_rows import HIGH, LOW, put_lengths, solve_independent
from bulletbridge.numerics.parts import plan_parts
from bulletbridge.numerics.projection import (
    add_row,
    inner_four,
    project_out,
    project_short_out,
    put_gram_matrix,
    square,
    unwhiten,
    whiten_force,
    whiten_rows,
    whiten_velocity,
)
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.sharing import (
    HEAVIEST,
    Sharing,
    agree_among_motors,
    comply,
    follow,
    push_softly,
    settle_yielding,
    weigh,
)
from bulletbridge.numerics.solution_selection import (
    AT_REST,
    JAMMED,
    STARTS,
    UNTRIED,
    Selection,
    select_solution,
    slip_after_rest,
)
from bulletbridge.numerics.spatial import add, apply, mat, put, sub, transpose, vec

DEAD = 1e-18
"""Squared share of a row that the constraints leave, below which they forbid all of it."""
DOUBTFUL = 1e-2
"""Squared share below which it may come of the way from the start of the step, where the
constraints are known, to where a contact was found: bodies turn by less than a tenth."""
JOINED, WEDGE = 1e-12, 1e-6
"""Squared shares of a normal, of itself and of what is left of its tangents, below which a contact
is one of bodies that are held together: what could push them apart would have to be a wedge of a
thousandth, which is how well frames and surfaces are known to lie on each other. Where a loop joins
these very bodies, DOUBTFUL takes the place of JOINED."""
DEEP = 1e-3
"""Share of the mechanism's length from which on bodies stand in each other so far that surfaces do
not tell the way out: what holds them there gives way. Beside less than that they stay apart."""
UNYIELDING = 1e-7
"""Share of the largest velocity up to which motors have given way to nothing: a tenth of what they
may miss as rigid ones, so that they are solved for as such in the next step."""
HOLDING_SWEEPS = 200
"""Gauss-Seidel sweeps over constraints with force limits alone, which are few."""
LESSER_EVIL = 0.01
"""Residual of the rigid problem, as a share of what motors would give way by, up to which it is
taken where these would be flung about faster than anything was asked to move."""
PAUSE = 32.0
"""Steps until motors that are blocked, and could not push with all they have, try that again, and
such as missed what they ask for by next to nothing; and the most until what failed again and again
is tried once more."""
CARRYING = 32.0
"""The most steps in a row that carry the last impulses on, where those of least norm are dear."""
FEW = 3
"""Newton's steps beyond which these are dear while anything slides: two find the next ones then."""
CARRYING_APART = 18
"""Newton's steps by which bodies are moved apart from there: others of their contacts may press."""
WOUND_UP = 4.0
"""Times the square of the last impulses, each by what it does to its row, beyond which what they
have become is not carried on: rows that contradict each other by little push against each other."""
MOST_BOUNCES = 4
"""How often restitution is solved for, of which a share alone is possible."""
HALF = 0.5
"""Share of the rows up to which so few may be between bounds that products of these alone do."""
MANY = 4
"""Rows of joints for each freedom from which on a basis of these costs less than to project each
row: of three for each it takes as long, as each moves few rates, and of one a quarter longer."""
LONGEST_SLIDE = 8.0
"""The most steps in which contacts that begin to slide are let slide, after no rest was found."""
GENTLE = 10.0
"""Times the energy that each would take alone and without loops, which bodies that are moved apart
together may have: a stack is moved the slower, and what is held goes round nothing."""
FASTEST_FOLLOWING = 5.0
"""Rate of any joint [rad/s, or lengths of the mechanism per second] beyond which a limit is taken
back the slower: a step of Bullet's length then turns nothing by more than a fiftieth of a radian.
"""


class InequalityProblem(NamedTuple):
    """Inequality rows of a system, and the room to solve for their impulses."""

    motor_rows: Records[MotorRow]
    joint_limits: Records[JointLimit]
    axis_rows: LoopAxisRows
    axis_targets: Records[Target]  # of prescribed motions along them
    force_limited: ForceLimitedRows
    limited_targets: Records[Target]
    contact_points: Records[ContactPoint]
    contact_rows: Records[ContactRows]  # of each of them
    kept: Records[ContactImpulse]  # what those of the last step exerted
    C: Array  # (rows, nv)
    raw: Array  # (rows, nv) the same before they are whitened
    basis: Array  # (nv, freedoms or more) velocities that constraints leave, if they are asked for
    delta_v: Array  # (nv,) velocity that the impulses gave
    local: Records[ContactPoint]  # those carried to the start of the step
    moving: Array  # (nv,) velocity of the prediction; then that of moving apart alone
    pushed: Array  # (nv,) velocity without the rows; then that before the loops are closed
    axes: Array  # (rows,) rate that a row is along, or -1
    lengths: Array  # (rows,) squared, before the constraints take their part away
    resting: Array  # (rows,) impulses without restitution; then those that also move bodies apart
    row_targets: RowTargets
    problem: ComplementarityProblem
    rest: Selection
    sharing: Sharing
    loose: LooseBodies
    callback: int  # address of what solves in place of the compiled solver, or 0
    report: Array  # of ``InequalityArrays``


class Asked(NamedTuple):
    """What an ``InequalityProblem`` is made of."""

    own: InequalityArrays
    given: Given
    contact_points: Records[ContactPoint]


@bundling
def problem_of(asked: Asked, nv: int) -> InequalityProblem:
    """The mixed problem of a step, as helpers take it.

    What steps without contacts hardly need is made of ``Asked`` where it is needed: to put hundreds
    of words together, and to hand them on, takes as long as a small mechanism's equations.
    """
    own, given, contact_points = asked.own, asked.given, asked.contact_points
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
        own.C[2],
        x[DELTA_V, :nv],
        own.local,
        x[MOVING, :nv],
        x[PUSHED, :nv],
        x[AXES],
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


class RowCounts(NamedTuple):
    """How many inequality rows there are, in their order."""

    motors: int
    with_friction: int  # with joint friction
    first_unilateral: (
        int  # with constraints with a force limit; limits and contacts, which only push, follow
    )
    together: int  # of motors, and of all that is solved for with them; loose bodies follow
    all: int


class Solved(NamedTuple):
    """How the impulses of a step were found."""

    residual: float
    sweeps: int
    newton: int
    work: float  # of limits and contacts [J], by the mean of the velocities before and after
    apart: int  # whether the bodies move apart


@bundling
def room_for_rows(h: InequalityProblem) -> RowRoom:
    """Where the rows of a problem are written."""
    return RowRoom(h.C, h.problem.b, h.problem.bounds, h.row_targets)


@helper
def build_rows(
    a: Arrays, h: InequalityProblem, asked: Asked, q: Array, v: Array, together: int
) -> RowCounts:
    """All inequality rows of this step; v are the velocities without them.

    ``together``: contacts before those of loose bodies. h.moving holds the velocities of the
    prediction at which contacts were found.
    """
    room, before = room_for_rows(h), a.vectors[START_V, : len(v)]
    if len(h.axis_rows.rows) > 0:
        put_loop_axis_rows(h.axis_rows, h.axis_targets, a)
    motors, with_friction = put_motor_rows(
        h.motor_rows, h.axis_rows, a.axes, q, v, a.control.dt, room
    )
    n = with_friction
    if len(h.force_limited.force_limits) > 0:
        n = put_force_limited_rows(h.force_limited, h.limited_targets, a, q, v, n, room)
    first_unilateral = n
    last = n = put_limit_rows(h.joint_limits, h.axis_rows, a, q, v, before, n, room)
    if len(h.contact_points) > 0:
        last, n = build_contact_rows(a, asked, q, v, together, n)
    note_axes(h, n)
    return RowCounts(motors, with_friction, first_unilateral, last, n)


@outlined
def note_axes(h: InequalityProblem, n: int) -> None:
    """Write down which of n rows are along one rate each, so that nobody has to look for it."""
    for i in range(n):
        h.axes[i] = -1.0
    for i in range(len(h.motor_rows)):
        if h.motor_rows[i].row >= 0:
            h.axes[h.motor_rows[i].row] = h.motor_rows[i].axis
    for i in range(len(h.joint_limits)):
        if h.joint_limits[i].row >= 0:
            h.axes[h.joint_limits[i].row] = h.joint_limits[i].axis


@outlined
def build_contact_rows(
    a: Arrays, asked: Asked, q: Array, v: Array, together: int, n: int
) -> tuple[int, int]:
    """Rows of contacts, after n others; how many there are without loose bodies, and with them.

    Arguments are those of ``build_rows``.
    """
    h, before = problem_of(asked, len(v)), a.vectors[START_V, : len(v)]
    room, predicted = room_for_rows(h), a.vectors[PREDICTED_Q, : len(q)]
    displace(a.bodies, q, h.moving, a.control.dt, predicted)
    kinematics_apart(a, predicted)
    points, found = h.contact_points[:together], h.contact_rows[:together]
    last = n = put_contact_rows(points, a, v, h.moving, before, n, room, found)
    if together < len(h.contact_points):
        points, found = h.contact_points[together:], h.contact_rows[together:]
        own = RowRoom(h.loose, room.b, room.bounds, room.targets)
        n = put_loose_rows(points, a, v, h.moving, before, n, own, found)
    return last, n


@outlined
def solve_all(h: InequalityProblem, rows: RowCounts, tolerance: float) -> Outcome:
    """``solve``, and islands of loose bodies by themselves."""
    first = solve(h, rows, tolerance, True)
    return both(first, solve_loose(h, rows, tolerance, WHILE_RESTING))


@helper
def solve_loose(h: InequalityProblem, rows: RowCounts, tolerance: float, effort: int) -> Outcome:
    """Solve for the islands of loose bodies."""
    p, s, initial = h.problem, h.loose.islands, h.row_targets.initial
    return solve_by_islands(p, s, initial, rows.together, rows.all, tolerance, effort)


@helper
def both(one: Outcome, other: Outcome) -> Outcome:
    """How two problems went."""
    residual = max(one.residual, other.residual)
    return Outcome(residual, one.sweeps + other.sweeps, one.newton + other.newton)


@outlined
def solve(h: InequalityProblem, rows: RowCounts, tolerance: float, search: bool) -> Outcome:
    """Solve the mixed problem, here or in Python.

    Motors are rigid as long as such a problem has a solution that is found; from then on they give
    way to what contradicts them until nothing does. ``search``: look for solutions far from x too.
    """
    p, n = h.problem, rows.together
    for i in range(n):
        h.rest.warm[i], p.centre[i] = p.x[i], 0.0
    if h.callback != 0:
        call_back(h.callback, n)
        return Outcome(h.report[LEFT], 0, 0)
    if not may_contradict(rows):
        h.report[COMPLIED] = 0.0
    near, carried = p.parts.state[USED] == 0, UNTRIED
    dear = h.report[CARRIED if search else CARRIED_LAST] > 0.0
    if search and h.report[CARRY_IN] > 0.0:
        h.report[CARRY_IN] -= 1.0
    elif near and dear and h.report[CARRY_IN] == h.report[COMPLIED] == 0.0:
        carried = carry_on(h, n, tolerance, NEWTON_STEPS if search else CARRYING_APART)
        if search:
            h.report[CARRIED] -= 1.0
            wait(h.report, CARRY_IN, CARRY_AFTER, carried.residual == math.inf, PAUSE)
    outcome = carried
    if carried.residual == math.inf:
        outcome = solve_anew(h, rows, tolerance, search)
        if search:
            few = FEW if slides(p, n) else NEWTON_STEPS
            dear = outcome.newton > few and h.report[YIELDED] == 0.0
            wait(h.report, CARRIED, CARRIED_LAST, dear, CARRYING)
    elif search:
        outcome = select(h, n, tolerance, carried)
    if search and near and outcome.residual < math.inf:
        note_beyond(p, n)
    failed = carried.newton if carried.residual == math.inf else 0
    return Outcome(outcome.residual, outcome.sweeps, outcome.newton + failed)


@helper
def may_contradict(rows: RowCounts) -> bool:
    """Whether anything may contradict motors; friction of joints cannot.

    Of impulses within bounds some minimise x·D x/2 + b·x, and these are what the law asks for. What
    holds at one instant, as all friction does where motors turn back, is no reason to give way.
    """
    return 0 < rows.motors and rows.with_friction < rows.together


@helper
def slides(p: ComplementarityProblem, n: int) -> bool:
    """Whether anything that is pressed slides at w."""
    for i in range(n):
        owner = p.bounds[i].owner
        if owner >= 0 and p.x[owner] > 0.0 and math.fabs(p.w[i]) > AT_REST:
            return True
    return False


@outlined
def carry_on(h: InequalityProblem, n: int, tolerance: float, steps: int) -> Outcome:
    """At most so many of Newton's steps from the last impulses and what held, slid and parted then.

    What slides steadily does so along the same rims from step to step. Where friction is used up
    though nothing slides, the softer problems of the least norm do not come back there. If that
    fails the residual is infinite, and x what it was.
    """
    p, before, after = h.problem, 0.0, 0.0
    residual, steps = newton(p, n, tolerance, 0, steps, RECALLED)
    for i in range(n):
        before += p.D[i, i] * h.rest.warm[i] ** 2
        after += p.D[i, i] * p.x[i] ** 2
    if residual <= tolerance and after <= WOUND_UP * before:
        return Outcome(residual, 0, steps)
    for i in range(n):
        p.x[i] = h.rest.warm[i]
    return Outcome(math.inf, 0, steps)


@outlined
def solve_anew(h: InequalityProblem, rows: RowCounts, tolerance: float, search: bool) -> Outcome:
    """``solve`` for the impulses of least norm, or wherever there are any."""
    p, n = h.problem, rows.together
    if not may_contradict(rows):
        if not search:
            effort = NEARBY if p.parts.state[USED] == 1 else INSIDE
            return solve_complementarity(p, n, tolerance, effort)
        return select(h, n, tolerance, UNTRIED)
    before, waits = UNTRIED, h.report[COMPLYING_IN] > 0.0
    if search and waits:
        h.report[COMPLYING_IN] -= 1.0
    if h.report[COMPLIED] == 0.0:
        last, yields = h.report[YIELDED], False
        if not is_convex(p, n):
            before, yields = settle_yielding(p, h.sharing, rows.motors, n, tolerance, last > 0.0)
        if search:
            h.report[YIELDED] = (last - 1.0 if last > 0.0 else PAUSE) if yields else 0.0
        if before.residual == math.inf:
            effort = INSIDE if is_shoved(h, n) else NEARBY
            more = solve_complementarity(p, n, tolerance, effort)
            before = Outcome(more.residual, more.sweeps, before.newton + more.newton)
        if search and waits and before.residual > JAMMED * tolerance:  # dear: not for round-off
            more = solve_complementarity(p, n, tolerance, ANYWHERE)
            sweeps, newton = before.sweeps + more.sweeps, before.newton + more.newton
            before = Outcome(more.residual, sweeps, newton)
        if before.residual <= JUST_AS_WELL * tolerance or waits:
            return select(h, n, tolerance, before) if search else before
        for i in range(n):
            p.x[i] = h.rest.warm[i]
    rubbing, loaded = rows.with_friction, rows.first_unilateral
    outcome = comply(p, h.sharing, (rows.motors, rubbing, loaded, n), tolerance)
    if search:
        wait(h.report, COMPLYING_IN, COMPLYING_AFTER, outcome.residual == math.inf, PAUSE)
    most, left = 0.0, 0.0
    for i in range(n):
        h.sharing.gave[i] = p.b[i] - h.sharing.asked[i]
        p.b[i] = h.sharing.asked[i]
        left = max(left, math.fabs(h.sharing.gave[i]))
        most = max(most, math.fabs(p.b[i]))
    complies = outcome.residual < math.inf and left > UNYIELDING * most
    complied = max(h.report[COMPLIED] - 1.0, 1.0) if complies else 0.0
    flung = complies and left > max(most, AT_REST)
    if flung or (complied == 1.0 and are_blocked(h, rows.motors)):
        enough = LESSER_EVIL * left if flung else JUST_AS_WELL * tolerance
        pushed = push_rigidly(h, rows, tolerance, enough, flung and search)
        outcome = Outcome(outcome.residual, outcome.sweeps, outcome.newton + pushed.newton)
        complied = 1.0 + PAUSE
        if pushed.residual <= enough:
            complied = 0.0
            outcome = Outcome(pushed.residual, outcome.sweeps, outcome.newton)
    if search:  # how bodies are moved apart is no matter of what they do next
        h.report[COMPLIED] = complied
    if outcome.residual == math.inf and search:
        for i in range(n):
            p.x[i], p.centre[i] = h.rest.warm[i], 0.0
        outcome = select(h, n, tolerance, UNTRIED)
    return Outcome(outcome.residual, before.sweeps + outcome.sweeps, before.newton + outcome.newton)


@outlined
def select(h: InequalityProblem, n: int, tolerance: float, first: Outcome) -> Outcome:
    """``select_solution``; where no rest was found it is not looked for in the next few steps.

    The feet of a robot that sags on motors at their limits begin to slide in every other step.
    """
    seeks = not h.report[REST_IN] > 0.0
    outcome = select_solution(h.problem, h.rest, n, tolerance, first, seeks)
    if seeks:
        slip = slip_after_rest(h.problem, h.rest, n)
        failed = slip > max(STARTS, outcome.residual)
        wait(h.report, REST_IN, REST_AFTER, failed, LONGEST_SLIDE)
    else:
        h.report[REST_IN] -= 1.0
    return outcome


@helper
def wait(report: Array, left: int, last: int, failed: bool, most: float) -> None:
    """Leave alone what failed, for twice as many steps each time; what did not is tried again.

    What is jammed stays so for many steps, and to find that out costs more than all else.
    """
    report[last] = min(max(2.0 * report[last], 1.0), most) if failed else 0.0
    report[left] = report[last]


@helper
def is_shoved(h: InequalityProblem, n: int) -> bool:
    """Whether a body that nothing but contacts can hold moved at one of them, of the first n rows.

    What motors kick does not hold against them: there is a solution with rigid motors, though far
    from the last impulses.
    """
    widths = h.loose.islands.widths
    for k in range(len(h.contact_points)):
        contact, own = h.contact_points[k], h.contact_rows[k]
        if own.end <= n and widths[contact.body_a] + widths[contact.body_b] > 0:
            for i in range(own.normal, own.end):
                if math.fabs(h.row_targets.initial[i]) > AT_REST:
                    return True
    return False


@helper
def is_blocked(h: InequalityProblem, i: int) -> bool:
    """Whether a motor that could do more gave way by more than what rests may move."""
    p, bound = h.problem, h.problem.bounds[i]
    return math.fabs(h.sharing.gave[i]) > AT_REST and bound.lower < p.x[i] < bound.upper


@helper
def are_blocked(h: InequalityProblem, motors: int) -> bool:
    """Whether any motor is."""
    for i in range(motors):
        if is_blocked(h, i):
            return True
    return False


@outlined
def push_rigidly(
    h: InequalityProblem, rows: RowCounts, tolerance: float, enough: float, search: bool
) -> Outcome:
    """Try the rigid problem once more, where motors that are blocked push with all they have.

    What stands between a gripper's fingers does not contradict them by round-off: they do not get
    where they are to be, and a motor then pushes as hard as it can. ``search``: look for a solution
    from elsewhere too. Where the residual is not ``enough``, x stays what it was.
    """
    p, n, kept = h.problem, rows.together, h.sharing.strength
    for i in range(n):
        kept[i], h.sharing.start[i], p.centre[i] = p.x[i], p.centre[i], 0.0
    for i in range(rows.motors):
        if is_blocked(h, i):
            p.x[i] = p.bounds[i].upper if h.sharing.gave[i] > 0.0 else p.bounds[i].lower
    outcome = solve_complementarity(p, n, tolerance, NEARBY)
    if outcome.residual > JUST_AS_WELL * tolerance:  # what begins to slide is far
        residual, steps = follow(p, n, tolerance)
        outcome = Outcome(residual, outcome.sweeps, outcome.newton + steps)
    if search and outcome.residual > JUST_AS_WELL * tolerance:
        outcome = select(h, n, tolerance, outcome)
    if not outcome.residual <= enough:
        for i in range(n):
            p.x[i], p.centre[i] = kept[i], h.sharing.start[i]
        velocities(p, p.x, p.w, n)
    return outcome


@outlined
def solve_softer(h: InequalityProblem, n: int, tolerance: float, before: Outcome) -> Outcome:
    """Go on from x by softer problems, where Newton's method alone has come near a solution."""
    p, kept = h.problem, h.sharing.start
    if h.callback != 0:
        return before
    for i in range(n):
        kept[i] = p.x[i]
    found = solve_complementarity(p, n, tolerance, ANYWHERE)
    if not found.residual < before.residual:
        for i in range(n):
            p.x[i] = kept[i]
        velocities(p, p.x, p.w, n)
    least = min(found.residual, before.residual)
    return Outcome(least, before.sweeps + found.sweeps, before.newton + found.newton)


@outlined
def push_apart(h: InequalityProblem, rows: RowCounts, tolerance: float) -> Outcome:
    """Solve for the impulses that also move bodies out of each other, from x, or come near them.

    Bodies that others hold where they are have no way apart, which no search would find: they stay.
    Motors that are left alone do not give way here either: it is looked for further away then.
    Softer contacts would let what stands beside them rise from the ground by the load that it
    loses, and a robot would step from foot to foot.
    """
    p, n = h.problem, rows.together
    if h.report[COMPLIED] == 0.0:
        if rows.motors > 0 and is_shoved(h, n):
            return push_beside_friction(h, n, tolerance)
        outcome = solve(h, rows, tolerance, False)
        wanted, first = h.row_targets.stabilisation, rows.first_unilateral
        there_is_one = is_usable(outcome.residual, tolerance, wanted, first, n)
        gives_way = rows.motors > 0 and h.report[COMPLYING_IN] == 0.0
        if outcome.residual <= tolerance or not there_is_one or gives_way:
            return outcome
        return solve_softer(h, n, tolerance, outcome)
    for i in range(n):
        p.b[i] += h.sharing.gave[i]
    return push_softly(p, rows.motors, rows.first_unilateral, n, tolerance)


@outlined
def push_beside_friction(h: InequalityProblem, n: int, tolerance: float) -> Outcome:
    """``push_apart`` next to x, or where nothing is found there by all but friction, from x on.

    Friction stays as it is: that problem is convex. Rigid motors hold what they move.
    """
    p, s, state = h.problem, h.sharing, h.problem.parts.state
    for i in range(n):
        p.centre[i] = 0.0
    outcome, by_parts = solve_complementarity(p, n, tolerance, SETTLED), state[USED] == 1
    if outcome.residual <= tolerance or outcome.residual == math.inf:
        return outcome
    for i in range(n):
        bound, x = p.bounds[i], p.x[i]
        s.start[i], s.asked[i], s.strength[i] = x, p.b[i], bound.mu
        s.holds[i], s.gave[i] = bound.lower, bound.upper
        bound.lower, bound.upper, bound.mu = bound.lower - x, bound.upper - x, 0.0
        p.b[i], p.x[i] = p.w[i], 0.0
    state[FACTORED], state[NEAREST] = 0, CONVEX if by_parts else NOWHERE
    alone = solve_complementarity(p, n, tolerance, ANYWHERE if by_parts else NEARBY)
    state[FACTORED], state[NEAREST] = 0, NOWHERE
    for i in range(n):
        bound = p.bounds[i]
        p.x[i], p.b[i], bound.mu = s.start[i] + p.x[i], s.asked[i], s.strength[i]
        bound.lower, bound.upper = s.holds[i], s.gave[i]
    return Outcome(alone.residual, alone.sweeps, outcome.newton + alone.newton)


@outlined
def hold(p: ComplementarityProblem, first: int, last: int, n: int, tolerance: float) -> None:
    """Let bounded rows hold, as far as their bounds allow, whatever the rest came to.

    A problem that is solved to a part only leaves its residual to motors, limits and contacts.
    """
    begin_sweep(p, n)
    for _ in range(HOLDING_SWEEPS):
        most = 0.0
        for i in range(first, last):
            before = p.x[i]
            put_within(p, i, n)
            most = max(most, math.fabs(p.x[i] - before) * p.D[i, i])
        if most <= tolerance:
            return


class AdmissibleSpace(NamedTuple):
    """What constraints leave free, by factors of one kind, in coordinates of which the metric is 1.

    Args of all: a, the system, and f, its factors, unless it says so.

    Attributes:
        restrict: (a, f, h, n) takes the first n rows of h.C into these coordinates, see
            ``restrict``; how many of these any row may be on, and how many there are. If any may,
            p.slopes says between which others a row is.
        release: (a, f, h, n, x) velocities (nv,) of x, in place, n rows being restricted.
        put_compliances: (a, f, asked, q, rows, v) D of rows of which some are of contacts; those
            that are to be solved for.
        stop_loose: (f, h, n, tolerance, v) see ``loose_bodies.stop_loose``.
        lead: (a, f, h, rows, tolerance, v) see ``lead_all_rates``.
    """

    restrict: Callable[..., tuple[int, int]]
    release: Callable[..., None]
    put_compliances: Callable[..., RowCounts]
    stop_loose: Callable[..., None]
    lead: Callable[..., bool]


@outlined
def restrict(f: Factors, h: InequalityProblem, rank: int, first: int, last: int) -> None:
    """Whiten rows and take away what the constraints forbid; h.lengths: their squares before.

    Rows of which nothing is left can be neither met nor violated: they become zero, and so do
    their impulses.
    """
    C = h.C[first:last]
    for i in range(first, last):
        keep_raw(h, i)
    whiten_rows(f.L, C, f.first)
    for i in range(last - first):
        left = full = square(C, i)
        h.lengths[first + i] = full
        if rank > 0:
            project_short_out(f.Y, rank, C[i], h.delta_v)
            left = square(C, i)
        if left < 0.01 * full:  # lost a digit: twice is enough
            project_out(f.Y, rank, C[i])
            left = square(C, i)
        if not left >= DEAD * full or full == 0.0:
            kill(h, first + i)


@helper
def has_basis(a: Arrays, h: InequalityProblem, n: int) -> bool:
    """Whether n rows are restricted by a basis: of joints alone, and many more than freedoms."""
    rank = a.control.filter_rank
    many = MANY * (h.C.shape[1] - rank) <= n
    return 0 < rank and many and len(h.contact_points) == 0


@outlined
def restrict_by_basis(f: Factors, h: InequalityProblem, rank: int, n: int) -> None:
    """``restrict`` of n rows of joints by what each is of an orthonormal basis of the freedoms.

    h.lengths are those of limits alone, which may take bodies apart; what is left of other rows is
    compared with what the last joint that they move would have of them, were all before it held.
    """
    nv = h.C.shape[1]
    freedoms = nv - rank
    for i in range(n):
        keep_raw(h, i)
    put_admissible_basis(f.Y, rank, h.C, h.delta_v)
    unwhiten_rows(f.L, h.C[:freedoms], f.first, h.basis)
    for i in range(n):
        row, full, axis = h.C[i], 0.0, int(h.axes[i])
        for k in range(nv):
            row[k] = 0.0
        for j in range(max(axis, 0), axis + 1 if axis >= 0 else nv):
            x = h.raw[i, j]
            if x != 0.0:
                full = (x / f.L[j, j]) ** 2
                for k in range(freedoms):
                    row[k] += x * h.basis[j, k]
        bound = h.problem.bounds[i]
        if bound.lower == -math.inf or bound.upper == math.inf:
            for j in range(nv):
                h.delta_v[j] = h.raw[i, j]
            whiten_force(f.L, h.delta_v, f.first)
            h.lengths[i] = full = first_of(h.delta_v, h.delta_v, nv)
        if not first_of(row, row, freedoms) >= DEAD * full or full == 0.0:
            kill(h, i)


@helper
def keep_raw(h: InequalityProblem, i: int) -> None:
    """Keep a row as it is before it is whitened."""
    for k in range(h.C.shape[1]):
        h.raw[i, k] = h.C[i, k]


@helper
def kill(h: InequalityProblem, i: int) -> None:
    """Leave nothing of a row."""
    h.problem.x[i] = 0.0
    for k in range(h.C.shape[1]):
        h.C[i, k] = 0.0


@outlined
def put_velocities(h: InequalityProblem, rows: RowCounts, x: Array, w: Array) -> None:
    """Rates of bodies along all rows, beside b; of loose ones by what impulses do to these."""
    p, y = h.problem, h.delta_v
    velocities(p, x, w, rows.together)
    leave_what_moves(len(h.contact_points), h.contact_rows, x, w, rows.together)
    if rows.together == rows.all:
        return
    for k in range(len(y)):
        y[k] = 0.0
    for i in range(rows.together, rows.all):
        push_loose(h.loose, i, x[i], y)
    for i in range(rows.together, rows.all):
        w[i] = p.b[i] + along_loose(h.loose, i, y)


@outlined
def put_products(
    C: Array, n: int, common: int, columns: int, full: bool, p: ComplementarityProblem
) -> None:
    """D (n, n) <- C Cᵀ of the first n rows of C, which are zero beyond so many columns.

    They are mostly zero where there are several parts, or if they are not ``full``; beyond the
    first ``common``, if there are any, but for those that are known.
    """
    if full and len(p.parts.first) < 3:
        put_gram_matrix(C, n, p.D)
        return
    first, last = p.slopes[LOW], p.slopes[HIGH]
    for i in range(n):
        low, high = 0, columns
        while common == 0 and low < high and C[i, low] == 0.0:
            low += 1
        while common == 0 and high > low and C[i, high - 1] == 0.0:
            high -= 1
        if common > 0:
            low, high = int(first[i]), int(last[i])
        first[i], last[i] = low, high
        j = 0
        while j + 3 <= i:
            begin = max(low, int(min(min(first[j], first[j + 1]), min(first[j + 2], first[j + 3]))))
            end = min(high, int(max(max(last[j], last[j + 1]), max(last[j + 2], last[j + 3]))))
            s = inner_four(C, j, C[i], 0, common)
            t = inner_four(C, j, C[i], begin, end)
            p.D[i, j], p.D[i, j + 1] = s[0] + t[0], s[1] + t[1]
            p.D[i, j + 2], p.D[i, j + 3] = s[2] + t[2], s[3] + t[3]
            j += 4
        while j <= i:
            total = first_of(C[j], C[i], common)
            for k in range(low, min(high, int(last[j]))):
                total += C[i, k] * C[j, k]
            p.D[i, j] = total
            j += 1
        for j in range(i):
            p.D[j, i] = p.D[i, j]


@outlined
def recall_contacts(
    a: Arrays, f: Factors, h: InequalityProblem, rank: int, q: Array, v: Array, contacts: int
) -> bool:
    """Take contacts that the constraints all but forbid where these are known: at the start.

    Contacts are found where forces would lead, the constraints are those of the start. Bodies that
    loops hold rigidly to one another seem to move against each other by the difference. At the
    start nothing is left of such a contact, which then has no part in the step; what is left of
    others is consistent with what they are asked for.

    ``contacts``: how many may be; loose bodies follow, which nothing holds. Whether any has no part
    in the step.
    """
    count, killed = 0, False
    for i in range(contacts):
        if is_doubtful(h, h.contact_rows[i]):
            count += 1
            carry(a, h.contact_points[i], h.local[i], False)
    if count == 0:
        return False
    kinematics_apart(a, q)
    before = a.vectors[START_V, : len(v)]
    for i in range(contacts - 1, -1, -1):
        row, last = h.contact_rows[i].normal, h.contact_rows[i].end
        if is_doubtful(h, h.contact_rows[i]):
            carry(a, h.local[i], h.local[i], True)
            rows_here = h.contact_rows[i : i + 1]
            put_contact_rows(
                h.local[i : i + 1], a, v, h.moving, before, row, room_for_rows(h), rows_here
            )
            joined = is_joined(a, h.contact_points[i])
            restrict(f, h, rank, row, row + 1 if joined else last)
            left, least = square(h.C, row), (DOUBTFUL if joined else JOINED) * h.lengths[row]
            if left >= least:
                if joined:  # else the normal alone decides
                    restrict(f, h, rank, row + 1, last)
                least = max(least, WEDGE * across(h, h.contact_rows[i]))
            # what moves other things the faster is taken back the slower
            h.row_targets.stabilisation[row] *= min(1.0, left / (DOUBTFUL * h.lengths[row]))
            if not left >= least:
                h.row_targets.stabilisation[row] = h.row_targets.restitution[row] = 0.0
                killed = True
                for k in range(row, last):
                    kill(h, k)
    return killed


@outlined
def put_killed_last(h: InequalityProblem, rows: RowCounts, contacts: int) -> RowCounts:
    """Put rows of contacts of which nothing is left after all others; rows without them.

    Of balls on a string they are half of all, and a step of Newton's method costs the cube of what
    there is. Where rows of loose bodies follow, all stay where they are.
    """
    if rows.together < rows.all:
        return rows
    place = h.contact_rows[0].normal
    for i in range(contacts):
        own = h.contact_rows[i]
        if square(h.C, own.normal) > 0.0:
            for row in range(own.normal, own.end):
                move_row(h, row, row - own.normal + place)
            number_from(own, place)
            place = own.end
        else:
            own.normal -= rows.all  # below all others, until these have their places
    live = place
    for i in range(contacts):
        own = h.contact_rows[i]
        if own.normal < 0:
            own.normal += rows.all
            number_from(own, place)
            for row in range(place, own.end):
                empty(h, row)
            place = own.end
    return RowCounts(rows.motors, rows.with_friction, rows.first_unilateral, live, live)


@helper
def number_from(own: ContactRows, place: int) -> None:
    """Let the rows of a contact begin at another place."""
    further = place - own.normal
    own.normal, own.end = place, own.end + further
    own.tangents += further if own.tangents >= 0 else 0
    own.spin += further if own.spin >= 0 else 0
    own.roll += further if own.roll >= 0 else 0


@helper
def move_row(h: InequalityProblem, row: int, to: int) -> None:
    """Copy all that is known of a row before D is."""
    if to == row:
        return
    p, targets, bound = h.problem, h.row_targets, h.problem.bounds[to]
    for k in range(h.C.shape[1]):
        h.C[to, k], h.raw[to, k] = h.C[row, k], h.raw[row, k]
    h.lengths[to], p.b[to], p.x[to] = h.lengths[row], p.b[row], p.x[row]
    targets.initial[to], targets.gap[to] = targets.initial[row], targets.gap[row]
    targets.restitution[to] = targets.restitution[row]
    targets.stabilisation[to] = targets.stabilisation[row]
    given = p.bounds[row]
    bound.lower, bound.upper, bound.mu = given.lower, given.upper, given.mu
    bound.first, bound.count = given.first, given.count
    bound.owner = given.owner + to - row if given.owner >= 0 else -1


@helper
def empty(h: InequalityProblem, row: int) -> None:
    """Leave a row that asks for nothing and moves nothing."""
    p, targets = h.problem, h.row_targets
    kill(h, row)
    for k in range(h.C.shape[1]):
        h.raw[row, k] = 0.0
    for k in range(row + 1):
        p.D[row, k] = p.D[k, row] = 0.0
    h.lengths[row] = p.b[row] = 0.0
    targets.initial[row] = targets.gap[row] = 0.0
    targets.restitution[row] = targets.stabilisation[row] = 0.0
    put_row_bounds(p.bounds[row], 0.0, math.inf)


@helper
def stands_deep(a: Arrays, h: InequalityProblem, contact: int, normal: int) -> bool:
    """Whether bodies of a contact, whose row is ``normal``, begin the step far in each other."""
    left = h.contact_points[contact].gap - a.control.dt * rate_along(h.raw, normal, h.moving)
    return left < -DEEP * a.control.length


@helper
def is_joined(a: Arrays, contact: ContactPoint) -> bool:
    """Whether a loop joins the very bodies of a contact, and so bears what presses them together.

    Where balls on a string touch, what bends the string has next to no lever on the contact, which
    would bear it a thousandfold.
    """
    for i in range(len(a.loops)):
        one, other = a.loops[i].body_a, a.loops[i].body_b
        if one == contact.body_a and other == contact.body_b:
            return True
        if one == contact.body_b and other == contact.body_a:
            return True
    return False


@helper
def across(h: InequalityProblem, rows: ContactRows) -> float:
    """Larger squared length of a contact's two tangent rows; zero without friction."""
    if rows.tangents < 0:
        return 0.0
    return max(square(h.C, rows.tangents), square(h.C, rows.tangents + 1))


@helper
def is_doubtful(h: InequalityProblem, rows: ContactRows) -> bool:
    """Whether little is left of a normal, by what it was or by what its tangents are.

    Links that turn about one axis, and lie on each other along it, have no way apart to begin with.
    """
    left = square(h.C, rows.normal)
    return left < DOUBTFUL * h.lengths[rows.normal] or left < WEDGE * across(h, rows)


@helper
def carry(a: Arrays, contact: ContactPoint, to: ContactPoint, into_world: bool) -> None:
    """Copy a contact from the world into the axes of body b (of a without one), or back."""
    to.body_a, to.body_b, to.gap = contact.body_a, contact.body_b, contact.gap
    to.friction, to.friction_across = contact.friction, contact.friction_across
    to.spinning, to.rolling = contact.spinning, contact.rolling
    to.restitution = contact.restitution
    to.stiffness, to.damping = contact.stiffness, contact.damping
    body = contact.body_b if contact.body_b > 0 else contact.body_a
    R, p = mat(a.poses[body].R), world_position(a.poses[body])
    point = vec(contact.position)
    if into_world:
        put(to.position, add(p, apply(R, point)))
    else:
        R = transpose(R)
        put(to.position, apply(R, sub(point, p)))
    put(to.normal, apply(R, vec(contact.normal)))
    put(to.direction, apply(R, vec(contact.direction)))


@helper
def cut_off(p: ComplementarityProblem, n: int) -> None:
    """Leave the first n impulses no further than their bounds: what hardly moves a row may be."""
    for i in range(n):
        p.x[i] = clip(p.bounds[i], p.x[i])


@outlined
def keep_within(p: ComplementarityProblem, first: int, n: int) -> None:
    """Let no limit or contact pull, nor friction leave its cone, from row ``first`` on.

    Where a problem is not solved Newton's method may end at such impulses.
    """
    i = first
    while i < n:
        bound = p.bounds[i]
        if bound.owner < 0:
            p.x[i] = clip(bound, p.x[i])
            i += 1
            continue
        total, last = 0.0, i + int(bound.count)
        for k in range(i, last):
            mu = p.bounds[k].mu
            p.x[k] = p.x[k] if mu > 0.0 else 0.0
            total += (p.x[k] / mu) ** 2 if mu > 0.0 else 0.0
        if total > p.x[bound.owner] ** 2:
            for k in range(i, last):
                p.x[k] *= p.x[bound.owner] / math.sqrt(total)
        i = last


@helper
def may_be_independent(h: InequalityProblem, rows: RowCounts) -> bool:
    """Whether motors have not given way lately to what contradicts them; there is no contact."""
    if not may_contradict(rows):
        h.report[COMPLIED] = h.report[COMPLYING_IN] = 0.0
    return h.callback == 0 and h.report[COMPLIED] == 0.0 and h.report[COMPLYING_IN] == 0.0


@helper
def count_inside(p: ComplementarityProblem, n: int) -> int:
    """How many of n rows were between their bounds in the last step."""
    count = 0
    for i in range(n):
        count += p.bounds[i].lower < p.x[i] < p.bounds[i].upper
    return count


@helper
def moves_apart(h: InequalityProblem, rows: RowCounts) -> bool:
    """Whether any joint is beyond its limit, and is to be taken back."""
    for i in range(rows.first_unilateral, rows.all):
        if h.row_targets.stabilisation[i] != 0.0:
            return True
    return False


@outlined
def put_compliances_of_contacts(
    a: Arrays, f: Factors, asked: Asked, q: Array, rows: RowCounts, v: Array
) -> RowCounts:
    """D of rows that are whitened, contacts among them, and their weights; rows that are left."""
    h = problem_of(asked, len(v))
    others, rank = len(h.contact_points), a.control.filter_rank
    while others > 0 and h.contact_rows[others - 1].normal >= rows.together:
        others -= 1
    killed = others > 0 and recall_contacts(a, f, h, rank, q, v, others)
    if killed and a.control.driven == 0:  # what is driven may lead bodies along rows of none
        rows = put_killed_last(h, rows, others)
    p, n, together, first_unilateral = h.problem, rows.all, rows.together, rows.first_unilateral
    put_products(h.C[:together], together, 0, len(v), True, p)
    put_loose_blocks(h.loose, f.L, h.contact_rows[others : len(h.contact_points)], p.D)
    for i in range(together, n):
        h.lengths[i] = p.D[i, i]
        if not p.D[i, i] > 0.0:
            p.x[i] = 0.0
    add_compliance_of_servos(h.motor_rows, a.control.dt, p.D)
    for i in range(others):
        row = h.contact_rows[i].normal
        if p.D[row, row] > 0.0:
            p.D[row, row] += h.contact_rows[i].compliance
            if p.D[row, row] < DOUBTFUL * h.lengths[row] and stands_deep(a, h, i, row):
                p.D[row, row] = DOUBTFUL * h.lengths[row]  # it could be squeezed out by that
    weigh(p, 0, first_unilateral, together, HEAVIEST)
    weigh(p, together, together, n, HEAVIEST)
    return rows


@outlined
def slow_down(
    a: Arrays, contact_rows: Records[ContactRows], stabilisation: Array, moving: Array
) -> None:
    """Let nothing be moved out of others faster than is asked for anywhere, all in proportion.

    What cannot leave along its own contact would have the whole mechanism go round it.
    """
    most, fastest = 1.0, FASTEST_RECOVERY
    for i in range(len(contact_rows)):
        fastest = max(fastest, -stabilisation[contact_rows[i].normal] / a.control.length)
    for k in range(len(moving)):
        rate = math.fabs(a.vectors[ONE_OVER_UNITS, k] * moving[k])
        most = max(most, rate / fastest)
    for k in range(len(moving)):
        moving[k] /= most


@helper
def last_limit(h: InequalityProblem, first: int) -> int:
    """Where rows of joint limits end, which begin with ``first``."""
    last = first
    for i in range(len(h.joint_limits)):
        last += h.joint_limits[i].row >= 0
    return last


@helper
def outermost(a: float, b: float) -> float:
    """Whichever of two numbers of one sign is further from zero."""
    return a if math.fabs(a) > math.fabs(b) else b


@helper
def restrict_all(a: Arrays, f: Factors, h: InequalityProblem, n: int) -> tuple[int, int]:
    """``restrict`` of the first n rows, and how many numbers they have."""
    rank, nv = a.control.filter_rank, h.C.shape[1]
    if has_basis(a, h, n):
        restrict_by_basis(f, h, rank, n)
        return 0, nv - rank
    restrict(f, h, rank, 0, n)
    return 0, nv


@helper
def release(a: Arrays, f: Factors, h: InequalityProblem, n: int, x: Array) -> None:
    """Velocities of what n restricted rows gave, in place."""
    if not has_basis(a, h, n):
        unwhiten(f.L, x, f.first)
        return
    along, freedoms = h.problem.step, len(x) - a.control.filter_rank
    for k in range(freedoms):
        along[k] = x[k]
    for j in range(len(x)):
        x[j] = first_of(h.basis[j], along, freedoms)


@helper
def stop_all_loose(f: Factors, h: InequalityProblem, n: int, tolerance: float, v: Array) -> None:
    """``loose_bodies.stop_loose`` of n rows."""
    stop_loose(h.loose, f.L, h.problem.D, n, tolerance, v)


@outlined
def lead_all_rates(
    a: Arrays, f: Factors, h: InequalityProblem, rows: RowCounts, tolerance: float, v: Array
) -> bool:
    """Where motors lead every rate of what is in no loop: what they exert, by M; v with it.

    Those that were at bounds stay there, and move as M has them. Whether all of them do, as rigid
    ones, what the law asks; else nothing is done.
    """
    n, p, L, change, count = rows.all, h.problem, f.L, h.delta_v, 0
    if n != rows.motors or n != len(v) or a.control.filter_rank > 0 or a.control.driven > 0:
        return False
    for i in range(len(h.motor_rows)):
        if h.motor_rows[i].row >= 0 and compliance(h.motor_rows[i], a.control.dt) > 0.0:
            return False
    for i in range(n):
        if h.axes[i] < 0.0:
            return False
        axis, bound = int(h.axes[i]), p.bounds[i]
        inside = bound.lower < p.x[i] < bound.upper
        change[axis] = p.step[axis] = -p.b[i] if inside else 0.0
        if not inside:
            p.free[count] = i
            count += 1
    y = p.step[:n]
    whiten_velocity(L, y, f.first)
    for r in range(count):
        axis = int(h.axes[int(p.free[r])])
        p.line[r] = clip(p.bounds[int(p.free[r])], p.x[int(p.free[r])])
        for k in range(axis, n):
            p.line[r] -= L[k, axis] * y[k]
        for c in range(r, count):
            other, p.A[r, c] = int(h.axes[int(p.free[c])]), 0.0
            for k in range(max(axis, other), n):
                p.A[r, c] += L[k, axis] * L[k, other]
    if not factorise_bordered(p.A, count, count, p.pivots):
        return False
    solve_bordered(p.A, p.line, count, count, p.pivots)
    for r in range(count):
        i = int(p.free[r])
        axis, w = int(h.axes[i]), p.b[i] + p.line[r]
        if not (w if p.x[i] <= p.bounds[i].lower else -w) > tolerance:
            return False
        change[axis] = p.line[r]
        for k in range(axis, n):
            y[k] += L[k, axis] * p.line[r]
    for j in range(n):
        p.line[j] = 0.0
    for k in range(n):
        for j in range(f.first[k], k + 1):
            p.line[j] += L[k, j] * y[k]
    for i in range(n):
        bound, exerted = p.bounds[i], p.line[int(h.axes[i])]
        inside = bound.lower < p.x[i] < bound.upper
        if inside and not bound.lower <= exerted <= bound.upper:
            return False
    for i in range(n):
        axis, bound = int(h.axes[i]), p.bounds[i]
        keep_raw(h, i)
        p.w[i] = p.b[i] + change[axis]
        inside = bound.lower < p.x[i] < bound.upper
        p.x[i] = p.line[axis] if inside else clip(bound, p.x[i])
        v[axis] += change[axis]
    return True


DENSE_SPACE = AdmissibleSpace(
    restrict_all, release, put_compliances_of_contacts, stop_all_loose, lead_all_rates
)


def solving(space: AdmissibleSpace) -> Callable[..., Solved]:
    """The helper that adds impulses of inequality rows, by factors of one kind.

    numba resolves the functions that it closes over when it compiles it.
    """
    restrict, release = space.restrict, space.release
    put_compliances, stop_loose = space.put_compliances, space.stop_loose
    lead = space.lead

    @helper
    def put_velocity_of_impulses(
        a: Arrays,
        f: Any,
        h: InequalityProblem,
        rows: RowCounts,
        x: Array,
        most: float,
        delta_v: Array,
    ) -> None:
        """Write into delta_v (nv,) what the impulses x of all rows, which are whitened, give.

        Its length in whitened coordinates, the root of twice its energy, is brought down to
        ``most``.
        """
        total = 0.0
        for k in range(len(delta_v)):
            delta_v[k] = 0.0
        for i in range(rows.together):
            add_row(delta_v, x[i], h.C, i)
        for i in range(rows.together, rows.all):
            push_loose(h.loose, i, x[i], delta_v)
        for k in range(len(delta_v)):
            total += delta_v[k] * delta_v[k]
        if total > most * most:
            for k in range(len(delta_v)):
                delta_v[k] *= most / math.sqrt(total)
        release(a, f, h, rows.together, delta_v)

    @outlined
    def follow_slowly(a: Arrays, f: Any, h: InequalityProblem, n: int) -> None:
        """Take limits back the slower, the faster other joints have to follow.

        Next to a turning point a joint hardly moves whatever the others do: where its limit is
        beyond, they would be thrown from one side of it to the other. Slowed down by the square of
        their speed, they come to rest there, as near to the limit as loops let the joint come.
        """
        y = h.delta_v
        for i in range(len(h.joint_limits)):
            row = h.joint_limits[i].row
            if row < 0 or h.row_targets.stabilisation[row] == 0.0:
                continue
            size, fastest = square(h.C, row), 0.0
            if size == 0.0:  # nothing that is free moves it
                h.row_targets.stabilisation[row] = 0.0
                continue
            for k in range(len(y)):
                y[k] = h.C[row, k]
            release(a, f, h, n, y)
            for k in range(len(y)):
                fastest = max(fastest, abs(a.vectors[ONE_OVER_UNITS, k] * y[k]))
            fastest *= abs(h.row_targets.stabilisation[row]) / size
            if fastest > FASTEST_FOLLOWING:
                h.row_targets.stabilisation[row] *= (FASTEST_FOLLOWING / fastest) ** 2

    @outlined
    def solve_dependent(
        a: Arrays,
        f: Any,
        asked: Asked,
        rows: RowCounts,
        tolerance: float,
        v: Array,
        found: Outcome,
    ) -> Solved:
        """Solve where rows depend on others, bounce or move bodies apart; D is known.

        ``found``: how x was found if rows are independent.
        """
        h = problem_of(asked, len(v))
        n, first_unilateral, rank = rows.all, rows.first_unilateral, a.control.filter_rank
        p, together = h.problem, rows.together
        plan_parts(p, together)
        if rank > 0 and rows.motors > 1 and not found.residual <= tolerance:
            agree_among_motors(p, h.sharing, rows.motors)
        if n > first_unilateral:
            follow_slowly(a, f, h, together)
        bounces, apart, gentle = 0, 0, 0.0
        for i in range(first_unilateral, n):
            bounces += h.row_targets.restitution[i] != 0.0
            if h.row_targets.stabilisation[i] != 0.0:
                apart += 1
                gentle += GENTLE * h.row_targets.stabilisation[i] ** 2 / h.lengths[i]
        outcome = found if found.residual <= tolerance else solve_all(h, rows, tolerance)
        residual, sweeps, newton = outcome.residual, outcome.sweeps, outcome.newton
        sought, share, bounced = 1.0, 0.0, 0.0  # of the restitution
        if bounces > 0:
            for i in range(n):
                h.resting[i] = p.x[i]
            for _ in range(MOST_BOUNCES):
                for i in range(first_unilateral, n):
                    p.b[i] += sought * h.row_targets.restitution[i]
                outcome = solve_all(h, rows, tolerance)
                sweeps, newton = sweeps + outcome.sweeps, newton + outcome.newton
                for i in range(first_unilateral, n):
                    p.b[i] -= sought * h.row_targets.restitution[i]
                wanted, share, bounced = h.row_targets.restitution, 0.0, 0.0
                if not is_usable(outcome.residual, tolerance, wanted, first_unilateral, n):
                    break
                residual = max(residual, outcome.residual)
                put_velocities(h, rows, h.resting, p.line)
                put_velocities(h, rows, p.x, p.w)
                rest, at = Impulses(h.resting, p.line), Impulses(p.x, p.w)
                share = bounce_share(rest, at, h.row_targets, first_unilateral, n)
                bounced = sought * share
                if rows.motors == 0 or share == 0.0 or share == 1.0:
                    break
                # a motor at its bound in one solution has no mean with the other; the share of what
                # is asked next is nearly one, and of a little less it is all
                sought = bounced if sought == 1.0 else bounced * share
            for i in range(n):
                p.x[i] = h.resting[i] + share * (p.x[i] - h.resting[i])
        if residual > tolerance:
            keep_within(p, first_unilateral, together)
            hold(p, rows.motors, first_unilateral, together, tolerance)
        cut_off(p, rows.with_friction)
        if bounces > 0:
            put_velocities(h, rows, p.x, p.w)
        else:  # those of loose bodies are known
            velocities(p, p.x, p.w, together)
            leave_what_moves(len(h.contact_points), h.contact_rows, p.x, p.w, n)
        work = work_of(Impulses(p.x, p.w), h.row_targets, first_unilateral, n)
        put_velocity_of_impulses(a, f, h, rows, p.x, math.inf, h.delta_v)
        for k in range(len(v)):
            v[k] += h.delta_v[k]
        if n > together:
            stop_loose(f, h, n - together, tolerance, v)
        if apart > 0 and h.report[PARTING_IN] > 0.0:
            h.report[PARTING_IN] -= 1.0
            apart = 0
        if apart > 0:
            for i in range(n):
                h.resting[i] = p.x[i]
            for i in range(first_unilateral, n):
                p.b[i] += outermost(
                    bounced * h.row_targets.restitution[i], h.row_targets.stabilisation[i]
                )
            outcome = UNTRIED
            if found.residual <= tolerance:
                outcome = solve_independent(p, n, rows.motors, n, 0, tolerance)
            if not outcome.residual <= tolerance:
                outcome = push_apart(h, rows, tolerance)
                outcome = both(outcome, solve_loose(h, rows, tolerance, WHILE_PARTING))
            sweeps, newton = sweeps + outcome.sweeps, newton + outcome.newton
            wanted = h.row_targets.stabilisation
            there_is_one = is_usable(outcome.residual, tolerance, wanted, first_unilateral, n)
            wait(h.report, PARTING_IN, PARTING_AFTER, not there_is_one, PAUSE)
            if there_is_one:
                residual = max(residual, outcome.residual)
                # what is wedged, or moved apart softly, passes no limit on its way
                hold(p, first_unilateral, last_limit(h, first_unilateral), together, tolerance)
                for i in range(n):
                    p.x[i] -= h.resting[i]
                put_velocity_of_impulses(a, f, h, rows, p.x, math.sqrt(gentle), h.moving)
                slow_down(a, h.contact_rows[: len(h.contact_points)], wanted, h.moving)
            else:
                apart = 0
            for i in range(n):
                p.x[i], h.resting[i] = h.resting[i], h.resting[i] + p.x[i]
        return Solved(residual, sweeps, newton, work, apart)

    @helper
    def solve_inequalities(
        a: Arrays,
        f: Any,
        h: InequalityProblem,
        asked: Asked,
        q: Array,
        rows: RowCounts,
        tolerance: float,
        v: Array,
    ) -> Solved:
        """Add the impulses of the inequality rows to the velocities, in place.

        Args:
            a: Arrays, poses where contacts were found,
            f: factors at the start of the step, whose leading ``filter_rank`` rows are forbidden.
            h: Rows as ``build_rows`` has left them; ``moving`` is what moves bodies out of each
                other, and is not part of their velocity.
            asked: What it is made of.
            q: (nq,) at the start.
            rows: Numbers of rows.
            tolerance: Residual [m/s or rad/s].
            v: (nv,)
        """
        n, first_unilateral = rows.all, rows.first_unilateral
        p, together = h.problem, rows.together
        independent = len(h.contact_points) == 0 and may_be_independent(h, rows)
        if independent and lead(a, f, h, rows, tolerance, v):
            return Solved(0.0, 0, 1, 0.0, 0)
        common, columns = restrict(a, f, h, together)
        found = UNTRIED
        if len(h.contact_points) == 0:
            freedoms, dt = len(v) - a.control.filter_rank, a.control.dt
            full = common == 0 and columns == len(v) and a.control.filter_rank > 0
            formed = not independent or common == 0
            formed = formed or min(count_inside(p, n), freedoms) > HALF * n
            if formed:
                p.parts.state[FORMED] = 1
                put_products(h.C[:together], together, common, columns, full, p)
            else:
                put_lengths(p, n, common)
            freedoms += add_compliance_of_servos(h.motor_rows, dt, p.D)
            weigh(p, 0, first_unilateral, n, HEAVIEST)
            if independent:
                found = solve_independent(p, n, rows.motors, freedoms, common, tolerance)
            if found.residual <= tolerance and not moves_apart(h, rows):
                cut_off(p, rows.with_friction)
                work = work_of(Impulses(p.x, p.w), h.row_targets, first_unilateral, n)
                put_velocity_of_impulses(a, f, h, rows, p.x, math.inf, h.delta_v)
                for k in range(len(v)):
                    v[k] += h.delta_v[k]
                return Solved(found.residual, 0, found.newton, work, 0)
            if not formed:
                put_products(h.C[:together], together, common, columns, full, p)
                add_compliance_of_servos(h.motor_rows, dt, p.D)
        else:
            rows = put_compliances(a, f, asked, q, rows, v)
        return solve_dependent(a, f, asked, rows, tolerance, v, found)

    return solve_inequalities
