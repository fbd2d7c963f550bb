"""Rows whose forces in a step are not given, and what these forces change by.

Each row asks for something of its force f and of the rate w along it: K δf + L δw = sides. With the
changes of w at given forces, w answers to forces by S, these are linear equations, of which some
may follow from others: they are solved by complete pivoting (Golub and Van Loan, Matrix
Computations, 3.4.8), what follows is left out.
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.block_sizes import LINES
from bulletbridge.compilation.jit import helper, kernel, outlined, solve_down_by_units_tile
from bulletbridge.engine.records import SystemArrays
from bulletbridge.engine.step_derivatives import put_matrix, put_zeros
from bulletbridge.inequalities.contact_slopes import (
    CLEAR,
    CONES,
    DEAD,
    JOINT_ABOUT_TO_CHANGE,
    JOINT_BEYOND,
    JOINT_OF_LOOP,
    NOT_COULOMBS,
    PARTING,
    ROW_ABOUT_TO_CHANGE,
    WHYS,
    Ahead,
    ContactSlopes,
    LedBy,
    PushingContacts,
    along,
    put_contact_slopes,
    put_pushing,
)
from bulletbridge.inequalities.joint_slopes import (
    ALONG_LOOP,
    DOUBTFUL,
    FAR_BEYOND,
    HOLDS,
    HeldRow,
    Step,
    held_by_limit,
    held_by_motor,
    step_along,
)
from bulletbridge.inequalities.motor_limit_rows import FASTEST_RECOVERY
from bulletbridge.mechanism.records import Axis
from bulletbridge.numerics.many_sides import add_product, solve_up
from bulletbridge.numerics.records import Array, Ints, Records

WEAKEST = 1e-10
"""Share of the strongest that a row which holds must have for itself, or it follows from others."""
COULOMB = 1e-7
"""Share of a load by which friction that slides may be off Coulomb's law."""
RANK, OFF, SCALE, UNIQUE, REPORT = range(5)
"""Of equations that were solved: independent ones; by how much rates that are held are missed;
largest right side; how far forces that are not told apart move anything, of what one of them does.
"""


class ActiveRows(NamedTuple):
    """Rows whose forces are not given, with room for m of them.

    Attributes:
        rows: (m, nv)
        bent: (m, 3 nv) what rates along the rows change by as the rows do.
        sides: (m, 3 nv) right sides.
        K: (m, m) by row and force,
        L: and by row and rate.
        rates: (m,) that they hold; not a number if they slide.
        forces: (m,) that they exert.
        rooms: (m,) force by which each is off acting otherwise,
        least: (m,) rate that this is to answer for at least.
        strengths: (m,) largest forces of motors; not a number for others.
        of: (m, 2) the contact of a row and which one of its six; -1 and the axis of a joint.
        idle: (m, 2) the same of rows that exert all that they can, or nothing, and yet do not move.
        counts: (2,) of rows, and of those that are idle.
    """

    rows: Array
    bent: Array
    sides: Array
    K: Array
    L: Array
    rates: Array
    forces: Array
    rooms: Array
    least: Array
    strengths: Array
    of: Ints
    idle: Ints
    counts: Ints


class Equations(NamedTuple):
    """What the equations of rows are solved in, with room for m of them.

    Attributes:
        moved: (m, nv) rates by a force along each row.
        across: (nv, m) rows side by side, where they are multiplied.
        S: (m, m) rates along rows by forces along rows.
        free: (m, 3 nv) what rates along the rows change by at these forces.
        N: (m, m) equations, reduced where they are solved.
        right: (m, 3 nv) their right sides, likewise.
        units: (m,) in which a row answers to its own force by one.
        columns: (m,) which unknown stands where.
        turned: (nv, 3 nv) what forces on the rates change by as contacts move.
        pushes: (nv, 3 nv) what forces on the rates change by, those of contacts that move too.
        report: (REPORT,)
    """

    moved: Array
    across: Array
    S: Array
    free: Array
    N: Array
    right: Array
    units: Array
    columns: Ints
    turned: Array
    pushes: Array
    report: Array


@helper
def add_row_of(
    a: ActiveRows, c: PushingContacts, s: ContactSlopes, k: int, r: int, about: float
) -> int:
    """Add a row of contact k; its number."""
    n = a.counts[0]
    a.counts[0] = n + 1
    for j in range(a.rows.shape[1]):
        a.rows[n, j] = c.C[6 * k + r, j]
    for j in range(a.bent.shape[1]):
        a.bent[n, j] = s.bent[k, r, j]
        a.sides[n, j] = s.sides[k, j] if r == 0 else 0.0
    for j in range(a.K.shape[1]):
        a.K[n, j] = a.L[n, j] = 0.0
    a.forces[n], a.rates[n] = c.forces[k, r], about
    a.rooms[n], a.least[n], a.strengths[n] = math.inf, 0.0, math.nan
    a.of[n, 0], a.of[n, 1] = k, r
    return n


@helper
def rest(a: ActiveRows, k: int, r: int) -> None:
    """Note that a row of contact k is idle."""
    n = a.counts[1]
    a.counts[1] = n + 1
    a.idle[n, 0], a.idle[n, 1] = k, r


@helper
def hold_axis(a: ActiveRows, axis: int, row: HeldRow, force: float) -> int:
    """Add an axis of a joint that holds a rate; its number."""
    n = a.counts[0]
    a.counts[0] = n + 1
    for j in range(a.rows.shape[1]):
        a.rows[n, j] = 0.0
    for j in range(a.bent.shape[1]):
        a.bent[n, j] = a.sides[n, j] = 0.0
    for j in range(a.K.shape[1]):
        a.K[n, j] = a.L[n, j] = 0.0
    a.rows[n, axis] = a.L[n, n] = 1.0
    a.K[n, n], a.sides[n, axis] = row.compliance, row.slope
    a.rates[n], a.forces[n], a.strengths[n] = row.rate, force, math.nan
    a.rooms[n], a.least[n] = row.room, CLEAR
    a.of[n, 0], a.of[n, 1] = -1, axis
    return n


@helper
def why_not(how: int) -> int:
    """Why what a row of a joint does is not known; 0 if it is."""
    if how == DOUBTFUL:
        return JOINT_ABOUT_TO_CHANGE
    if how == ALONG_LOOP:
        return JOINT_OF_LOOP
    return JOINT_BEYOND if how == FAR_BEYOND else 0


@outlined
def put_rows_of_joints(a: ActiveRows, axes: Records[Axis], start: Array, ahead: Ahead) -> int:
    """Have the rows of joints; 0, or which axis is the first that is not known, and why.

    Args:
        a: Receives them.
        axes: Of the mechanism.
        start: (nq + nv + 1,) state at the start of the step.
        ahead: Where that leads.
    """
    a.counts[0] = a.counts[1] = 0
    x, dt, motors = ahead.contacts.x, ahead.contacts.dt, ahead.motor_rows
    for i in range(len(motors)):
        motor = motors[i]
        if motor.row < 0:
            continue
        axis, force = int(motor.axis), x[motor.row] / dt
        s, soft = step_along(axes, axis, start, ahead.end, force, dt), motor.velocity_gain != 1.0
        led = ahead.by_tau[axis] if soft and axis >= 0 else 0.0
        row = held_by_motor(motor, Step(s.start, s.end, led, s.rate, force, dt))
        failure = why_not(row.how)
        if failure != 0:
            return WHYS * axis + failure if axis >= 0 else failure
        if row.how == HOLDS:
            n = hold_axis(a, axis, row, force)
            if 2 * i < len(motors):  # friction follows
                a.strengths[n] = motor.force
            if row.share != 0.0:
                for j in range(a.sides.shape[1]):
                    a.sides[n, j] += row.share * ahead.by_tau_by_all[axis, j]
    for i in range(len(ahead.joint_limits)):
        limit = ahead.joint_limits[i]
        axis, force = int(limit.axis), x[limit.row] / dt if limit.row >= 0 else 0.0
        row = held_by_limit(limit, step_along(axes, axis, start, ahead.end, force, dt))
        failure = why_not(row.how)
        if failure != 0:
            return WHYS * axis + failure if axis >= 0 else failure
        if row.how == HOLDS:
            hold_axis(a, axis, row, force)
    return 0


@outlined
def put_rows_of_contacts(a: ActiveRows, c: PushingContacts, s: ContactSlopes, rates: Array) -> int:
    """Add the rows of contacts; 0, or which is the first that is not known, and why.

    Args:
        a: Receives them.
        c: Contacts.
        s: What they ask for.
        rates: (nv,)
    """
    for k in range(len(c.compliance)):
        if c.forces[k, 0] == 0.0:
            if not along(c, 6 * k, rates) - s.rates[k] > CLEAR:
                rest(a, k, 0)
            continue
        owner = add_row_of(a, c, s, k, 0, s.rates[k])
        a.L[owner, owner], a.K[owner, owner] = 1.0, c.compliance[k]
        a.rooms[owner], a.least[owner] = c.forces[k, 0], CLEAR
        for cone in range(len(CONES)):
            first, count = CONES[cone]
            slides = s.slides[k, cone] != 0
            if slides and s.off[k, cone] > COULOMB:
                return WHYS * k + NOT_COULOMBS
            for r in range(first, first + count):
                if c.mu[k, r] > 0.0 and not slides and not s.used[k, cone] < 1.0 - CLEAR:
                    rest(a, k, r)
                elif c.mu[k, r] > 0.0:
                    n = add_row_of(a, c, s, k, r, math.nan if slides else 0.0)
                    if not slides:
                        a.L[n, n] = 1.0
                        continue
                    a.K[n, n], a.K[n, owner] = 1.0, s.by_load[k, r]
                    own = n - (r - first)
                    for q in range(count):
                        if c.mu[k, first + q] > 0.0:
                            other = own + q if c.mu[k, first] > 0.0 else n
                            a.L[n, other] = s.by_slip[k, r, q]
    return 0


@helper
def push_nothing(a: ActiveRows, i: int) -> None:
    """Have a row hold nothing, by a force that stays: that of a joint which loops lock."""
    for k in range(a.K.shape[1]):
        a.K[i, k] = a.L[i, k] = 0.0
    for j in range(a.sides.shape[1]):
        a.sides[i, j] = 0.0
    a.K[i, i], a.rates[i], a.strengths[i] = 1.0, math.nan, math.nan


@outlined
def put_answers(a: ActiveRows, changes: Array, e: Equations) -> int:
    """What rates along rows answer to; 0, or which is the first that is not known, and why.

    Args:
        a: Rows.
        changes: (nv, 3 nv) of rates before loops are closed, at constant forces of rows.
        e: Receives it.
    """
    m, nv, total = a.counts[0], a.rows.shape[1], 0.0
    for k in range(nv):
        total += changes[k, 2 * nv + k]
    rows, moved = a.rows[:m], e.moved[:m]
    put_zeros(moved)
    add_product(1.0, rows, 0, changes[:, 2 * nv :], moved)
    put_zeros(e.S[:m])
    for j in range(nv):
        for i in range(m):
            e.across[j, i] = rows[i, j]
    add_product(1.0, moved, 0, e.across[:, :m], e.S[:m])
    for i in range(m):
        if a.of[i, 0] < 0 and e.S[i, i] + a.K[i, i] <= DEAD * total:
            push_nothing(a, i)
            e.units[i] = 1.0
            continue
        if not a.rooms[i] * (e.S[i, i] + a.K[i, i]) > a.least[i]:  # servos give way
            return WHYS * i + ROW_ABOUT_TO_CHANGE
        e.units[i] = math.sqrt(e.S[i, i])
    put_matrix(e.free[:m], 1.0, a.bent[:m])
    add_product(1.0, rows, 0, changes, e.free[:m])
    add_product(1.0, e.moved[:m], 0, e.turned, e.free[:m])
    return 0


@kernel
def solve_active_rows(
    arrays: SystemArrays,
    a: ActiveRows,
    c: PushingContacts,
    s: ContactSlopes,
    ahead: Ahead,
    e: Equations,
    alike: float,
) -> int:
    """Have the rows of joints and contacts, and solve for what forces of all rows change by.

    More rows than freedoms, motors among them, are not solved for: the motors have to agree first.

    Args:
        arrays: At the start of the step.
        a: Receives rows.
        c: Contacts, of which rows are known, and what they change by.
        s: Receives what they ask for.
        ahead: Where the step leads.
        e: As of ``solve_rows``,
        alike: and this.

    Returns:
        0, or which axis, contact or row is the first that is not known, and why.
    """
    nv = len(ahead.v)
    put_zeros(e.turned)
    failure = put_rows_of_joints(a, arrays.axes, arrays.state, ahead)
    if failure != 0:
        return failure
    if len(c.compliance) > 0:
        failure = put_pushing(c, ahead.numbers, ahead.contacts)
        control = arrays.control[0]
        recovery = control.recovery if ahead.contacts.apart == PARTING else 0.0
        fastest = FASTEST_RECOVERY * control.length
        place_by_all, rates_by_all = ahead.where[:nv], ahead.where[nv:]
        by_force, dt = ahead.led[nv:, 2 * nv :], ahead.contacts.dt
        led = LedBy(
            ahead.v, ahead.lead, ahead.rates, by_force, rates_by_all, place_by_all, dt, recovery,
            fastest,
        )  # fmt: skip
        if failure == 0:
            failure = put_contact_slopes(c, led, s)
        if failure == 0:
            failure = put_rows_of_contacts(a, c, s, ahead.rates)
        if failure != 0:
            return failure
        add_product(1.0, s.by_place.T, 0, place_by_all, e.turned)
    failure = put_answers(a, ahead.led[nv:], e)
    if failure == 0 and a.counts[0] + arrays.control[0].rank > nv and any_motor_holds(a):
        e.report[RANK], e.report[OFF] = a.counts[0], math.inf  # they have to agree
    elif failure == 0:
        solve_rows(a, ahead.rates, a.rates, a.sides, e, alike)
    return failure


@helper
def any_motor_holds(a: ActiveRows) -> bool:
    """Whether any of the rows is a motor's."""
    for i in range(a.counts[0]):
        if not math.isnan(a.strengths[i]):
            return True
    return False


@outlined
def eliminate(A: Array, B: Array, columns: Ints) -> int:
    """Reduce A x = B (n, n) and (n, m) by complete pivoting to x = B where A is one; the rank.

    Columns of A change places: ``columns`` (n,) receives which unknown stands where. Behind the
    rank, columns of A tell what x changes by with the unknowns there, and lines of B by how much
    they contradict the others.
    """
    n, rank = len(columns), 0
    for k in range(n):
        columns[k] = k
    largest = 0.0
    for k in range(n):
        row, column, most = k, k, 0.0
        for i in range(k, n):
            for j in range(k, n):
                if abs(A[i, j]) > most:
                    row, column, most = i, j, abs(A[i, j])
        largest = max(largest, most)
        if not most > WEAKEST * largest:
            break
        if row != k:
            for j in range(n):
                A[k, j], A[row, j] = A[row, j], A[k, j]
            for j in range(B.shape[1]):
                B[k, j], B[row, j] = B[row, j], B[k, j]
        if column != k:
            for i in range(n):
                A[i, k], A[i, column] = A[i, column], A[i, k]
            columns[k], columns[column] = columns[column], columns[k]
        for i in range(k + 1, n):
            x = A[i, k] / A[k, k]
            A[i, k] = x
            if x != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= x * A[k, j]
        rank += 1
    for i in range(0, rank, LINES):
        solve_down_by_units_tile(B, A, (i, min(LINES, rank - i), 0, i, 0, B.shape[1]))
    add_product(-1.0, A[rank:n, :rank], 0, B[:rank], B[rank:n])
    solve_up(A[:rank, :rank], B[:rank])
    solve_up(A[:rank, :rank], A[:rank, rank:n])
    return rank


@helper
def size_of(x: Array) -> float:
    """Largest of some numbers, one at least."""
    most = 1.0
    for k in range(len(x)):
        most = max(most, math.fabs(x[k]))
    return most


@helper
def missed_most(a: ActiveRows, rates: Array, wanted: Array) -> float:
    """By how much rates that are held are missed."""
    off = 0.0
    for i in range(a.counts[0]):
        if not math.isnan(wanted[i]):
            held = 0.0
            for j in range(len(rates)):
                held += a.rows[i, j] * rates[j]
            off = max(off, abs(held - wanted[i]))
    return off


@outlined
def solve_rows(
    a: ActiveRows, rates: Array, wanted: Array, sides: Array, e: Equations, alike: float
) -> None:
    """Solve for what forces of rows change by, unless rows miss what they hold.

    Args:
        a: Rows.
        rates: (nv,) before loops are closed.
        wanted: (m,) what they hold; not a number if they slide,
        sides: (m, 3 nv) and right sides.
        e: From ``put_answers``; receives ``pushes`` and ``report``.
        alike: Share of rates that rounding makes.
    """
    m, nv, most = a.counts[0], len(rates), e.pushes[0]
    off = missed_most(a, rates, wanted)
    e.report[RANK], e.report[OFF], e.report[SCALE], e.report[UNIQUE] = m, off, 0.0, 0.0
    if not off <= alike * size_of(rates):
        return
    for j in range(len(most)):
        most[j] = 0.0
    for i in range(m):
        right, N = e.right[i], e.N[i]
        line = e.units[i] if math.isnan(wanted[i]) else 1.0 / e.units[i]
        for j in range(len(right)):
            right[j] = sides[i, j]
        for j in range(m):
            N[j] = a.K[i, j]
        for k in range(m):
            x = a.L[i, k]
            if x != 0.0:
                for j in range(len(right)):
                    right[j] -= x * e.free[k, j]
                for j in range(m):
                    N[j] += x * e.S[k, j]
        for j in range(m):
            N[j] *= line / e.units[j]
        for j in range(len(right)):
            x = line * right[j]
            right[j] = x
            most[j] = max(most[j], abs(x))
    for j in range(len(most)):
        e.report[SCALE] = max(e.report[SCALE], most[j])
    rank = eliminate(e.N, e.right, e.columns[:m])
    e.report[RANK] = rank
    e.report[UNIQUE] = moved_by_none(e, rank, m) if rank < m else 0.0
    put_matrix(e.pushes, 1.0, e.turned)
    for i in range(rank):
        n = e.columns[i]
        for k in range(nv):
            e.across[k, i] = a.rows[n, k] / e.units[n]
    add_product(1.0, e.across[:, :rank], 0, e.right[:rank], e.pushes)


@helper
def moved_by_none(e: Equations, rank: int, m: int) -> float:
    """How far forces move anything that no equation tells apart, of what one row moves most.

    ``pushes`` are lost.
    """
    nv, most, ignored = e.moved.shape[1], 0.0, 0.0
    left = e.pushes[0, :nv]
    for i in range(m):
        longest = 0.0
        for j in range(nv):
            longest = max(longest, abs(e.moved[i, j]))
        most = max(most, longest / e.units[i])
    for free in range(rank, m):
        own, size = e.columns[free], 1.0
        for j in range(nv):
            left[j] = e.moved[own, j] / e.units[own]
        for i in range(rank):
            n, x = e.columns[i], e.N[i, free]
            size += x * x
            x /= e.units[n]
            for j in range(nv):
                left[j] -= x * e.moved[n, j]
        longest = 0.0
        for j in range(nv):
            longest = max(longest, abs(left[j]))
        ignored = max(ignored, longest / math.sqrt(size))
    return ignored / most if most > 0.0 else 0.0
