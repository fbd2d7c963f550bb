"""How loops are closed while points stick, and what that changes by: see ``system.held_closing``.

The rows S of points count as far as they are independent of those of loops, J. Forces along both
are those that the correction asks for: its derivative follows from the same equations, a column for
each way in which the step changes.
"""

import math
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import call_stored, caller, helper, kernel, outlined
from bulletbridge.constraints.records import Target
from bulletbridge.engine.derivatives import DerivativeArrays
from bulletbridge.engine.records import Control, SystemArrays
from bulletbridge.engine.step_derivatives import (
    OF_CORRECTION,
    TERMS,
    THEIR_SLOPES,
    StepArrays,
    add_matrix,
    put_matrix,
    put_zeros,
)
from bulletbridge.inequalities.active_rows import eliminate
from bulletbridge.inequalities.contact_rows import relative_row, tangents
from bulletbridge.inequalities.contact_slopes import ContactsOfStep
from bulletbridge.inequalities.contact_variations import Tree, put_slopes_in_space
from bulletbridge.inequalities.impulse_step import list_sticking
from bulletbridge.mechanism.displacement_maps import CARRIED, TURNED, turn_columns, turn_lines
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.records import ContactPoint, StickingPoint
from bulletbridge.numerics.many_sides import add_product, solve_down, solve_up
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import ZERO, copy_into, put, vec

OFF = 1e-9
"""Share by which what closes loops may be off its equations."""
GIVES_WAY, OTHERS = 1, 2
"""Why a closing is not known: points do not stick, other rows of loops are independent after it."""
MOVED, PUSH, RATES = range(3)


class Sides(NamedTuple):
    """What M x = forces + Bᵀ y, A x = sides is solved in, of m rows and c columns.

    Attributes:
        A: (m, nv)
        answers: (nv, m) by rows B.
        G: (m, m) rates along A by forces along B.
        units: (m,) in which a row answers to its own force by one.
        x: (nv, c) forces, then x.
        y: (m, c) right sides; is lost.
        forces: (m,) y of the first column.
        columns: (m,) which unknown stands where.
    """

    A: Array
    answers: Array
    G: Array
    units: Array
    x: Array
    y: Array
    forces: Array
    columns: Ints


class HeldPlace(NamedTuple):
    """A configuration at which loops are closed by w while n points stick.

    Attributes:
        q: (nq,)
        w: (nv,)
        v: (nv,) rates of which J v is held.
        points: (n,) that stick.
        S: (3 n, nv) rows of these, fixed in space: along normals and tangents.
        of_b: (3 n, nv) what moves the points with body b, along axes of the world.
        by_q: (nv, 3 n, nv) what S changes by with displacements,
        by_p: (3, 3 n, nv) and with places of the points.
        L: (nv, nv) factors of the mass matrix, Lᵀ L.
        B: (nc + 3 n, nv) rows of loops, then those of points that count.
        forces: (nc + 3 n,) along these.
        bent: (nv, nv) M w - Jᵀ λ by displacements.
        rate: (nc, nv) J v likewise.
        kept: (3 n,) which rows of S count, in front of those that do not.
        counts: (2,) rows of loops, and of points.
    """

    q: Array
    w: Array
    v: Array
    points: Records[ContactPoint]
    S: Array
    of_b: Array
    by_q: Array
    by_p: Array
    L: Array
    B: Array
    forces: Array
    bent: Array
    rate: Array
    kept: Ints
    counts: Ints


class HeldClosing(NamedTuple):
    """A closing that is to be differentiated.

    Attributes:
        here: Where it begins, closed by the correction,
        there: and where it ends, by a change of rates.
        q_by_all: (nv, m) changes of the configuration before, then after it,
        v_by_all: (nv, m) of rates likewise,
        p_by_all: (3 n, m) and of the points.
        side: Of the correction and the change of rates (nv + nc + 3 n, m) as many as ``one``.
        one: The same for one column.
        turned: (nv, 3) map of a change of the correction.
        asked: (3, nv) scratch.
        still: Prescribed motions: none.
        scratch: (1,)
        mass: Of the whole mechanism [kg].
        dt: [s]
    """

    here: HeldPlace
    there: HeldPlace
    q_by_all: Array
    v_by_all: Array
    p_by_all: Array
    side: Sides
    one: Sides
    turned: Array
    asked: Array
    still: Records[Target]
    scratch: Records[StickingPoint]
    mass: float
    dt: float


class LedToClosing(NamedTuple):
    """How a step led to where its loops were closed, and by what.

    Attributes:
        q: (nq,) where it led before,
        v: (nv,) with which rates.
        changes: (2 nv, m) of these.
        end: (nq + nv + 1,) where it has led then, as q, v, t.
        correction: (nv,) by which loops were closed.
    """

    q: Array
    v: Array
    changes: Array
    end: Array
    correction: Array


@kernel
def closes_plainly(rows: Records[Row], control: Records[Control]) -> bool:
    """Whether rows (nc,) alone closed loops in the last step: none that rolls, none guarded."""
    c = control[0]
    for k in range(c.rank):
        if rows[rows[k].pivot].level > 0:
            return False
    return c.guarded == 0


@helper
def sticks(s: ContactsOfStep, i: int, room: Records[StickingPoint]) -> bool:
    """Whether contact i of a step stays where it is while loops are closed."""
    return list_sticking(s.x, s.points[i : i + 1], s.own[i : i + 1], room) > 0


@kernel
def count_sticking(s: ContactsOfStep, numbers: Ints, room: Records[StickingPoint]) -> int:
    """How many contacts of a step, of these numbers (n,), stick while loops are closed.

    room (1,): scratch.
    """
    count = 0
    for k in range(len(numbers)):
        if sticks(s, int(numbers[k]), room):
            count += 1
    return count


@kernel
def take_sticking(
    s: ContactsOfStep, numbers: Ints, by_q: Array, place_by_all: Array, h: HeldClosing
) -> int:
    """Take those that stick, of which there are as many as there is room for; how many.

    Args:
        s: Contacts of a step,
        numbers: (n,) some of them, and what they
        by_q: (nv, n, .) change by, of which columns 1 to 3 are places.
        place_by_all: (nv, m) changes of the configuration that they were found at.
        h: Receives them.
    """
    count = 0
    put_zeros(h.p_by_all)
    for k in range(len(numbers)):
        i = int(numbers[k])
        if sticks(s, i, h.scratch):
            h.here.points[count] = h.there.points[count] = s.points[i]
            for axis in range(3):
                for j in range(len(place_by_all)):
                    slope = by_q[j, k, 1 + axis]
                    if slope != 0.0:
                        for c in range(h.p_by_all.shape[1]):
                            h.p_by_all[3 * count + axis, c] += slope * place_by_all[j, c]
            count += 1
    return count


@outlined
def begin_closing(h: HeldClosing, led: LedToClosing) -> None:
    """Have a step that led there, and nothing that was found of another one."""
    nv, nq = len(led.v), len(led.q)
    copy_into(h.here.q, led.q)
    copy_into(h.here.v, led.v)
    copy_into(h.here.w, led.correction)
    copy_into(h.there.q, led.end)
    copy_into(h.there.v, led.end[nq:])
    for k in range(nv):
        h.there.w[k] = h.there.v[k] - led.v[k] - led.correction[k] / h.dt
    put_matrix(h.q_by_all, 1.0, led.changes[:nv])
    put_matrix(h.v_by_all, 1.0, led.changes[nv:])
    forget_place(h.here)
    forget_place(h.there)


@helper
def forget_place(at: HeldPlace) -> None:
    """Have all rows of points."""
    for i in range(len(at.kept)):
        at.kept[i] = i
    at.counts[1] = len(at.kept)


@outlined
def put_held_rows(tree: Tree, at: HeldPlace) -> None:
    """Rows of points that stick, and what they change by."""
    kinematics(tree.bodies, tree.beams, tree.stations, at.q, tree.poses, tree.axes)
    for i in range(len(at.points)):
        point = at.points[i]
        body, place = point.body_a, vec(point.position)
        put_three(tree, point, at.S, i)
        normal = vec(point.normal)
        first, second = tangents(normal, ZERO)
        ways = (normal, ZERO), (first, ZERO), (second, ZERO)
        put_slopes_in_space(tree, point, ways, at.by_q[:, 3 * i : 3 * i + 3])
        for axis in range(3):  # linear in places
            point.position[axis] = place[axis] + 1.0
            put_three(tree, point, at.by_p[axis], i)
            put(point.position, place)
            for r in range(3 * i, 3 * i + 3):
                for j in range(at.S.shape[1]):
                    at.by_p[axis, r, j] -= at.S[r, j]
        point.body_a = 0
        for axis in range(3):
            way = (1.0, 0.0, 0.0) if axis == 0 else (0.0, 1.0, 0.0)
            way = (0.0, 0.0, 1.0) if axis == 2 else way
            relative_row(
                tree.bodies, tree.poses, tree.axes, point, 0.0, (ZERO, way), at.of_b, 3 * i + axis
            )
        point.body_a = body


@helper
def put_three(tree: Tree, point: ContactPoint, C: Array, i: int) -> None:
    """Rows of a point along its normal and tangents, where poses are put."""
    normal = vec(point.normal)
    first, second = tangents(normal, ZERO)
    for r in range(3):
        way = normal
        if r > 0:
            way = first if r == 1 else second
        relative_row(tree.bodies, tree.poses, tree.axes, point, 0.0, (ZERO, way), C, 3 * i + r)


@outlined
def answer(L: Array, B: Array, A: Array, s: Sides) -> None:
    """x with M x = forces + Bᵀ y, A x = sides, of as many rows as there are, whichever follow.

    Args:
        L: (nv, nv) factors of M.
        B: (m, nv)
        A: (m, nv)
        s: Has x the forces and y the sides; receives x, and y of the first column.
    """
    m, nv, y, G = len(B), B.shape[1], s.y[: len(B)], s.G[: len(B)]
    put_answers_of_rows(L, B, s)
    solve_up(L.T, s.x)
    solve_down(L, s.x)
    for i in range(m):
        total = 0.0
        for j in range(nv):
            total += B[i, j] * s.answers[j, i]
        s.units[i] = 1.0 / math.sqrt(total)
    put_zeros(G)
    add_product(1.0, A, 0, s.answers, G)
    add_product(-1.0, A, 0, s.x, y)
    for i in range(m):
        for k in range(m):
            G[i, k] *= s.units[i] * s.units[k]
        for c in range(y.shape[1]):
            y[i, c] *= s.units[i]
    rank = eliminate(G, y, s.columns[:m])
    for j in range(nv):  # in the order of the unknowns
        copy_into(s.forces[:m], s.answers[j])
        for i in range(rank):
            s.answers[j, i] = s.forces[s.columns[i]] * s.units[s.columns[i]]
    add_product(1.0, s.answers[:, :rank], 0, y[:rank], s.x)
    for i in range(m):  # y in the order of the rows; one that follows from others has none
        G[0, i] = 0.0
    for i in range(rank):
        G[0, s.columns[i]] = y[i, 0] * s.units[s.columns[i]]
    for i in range(m):
        s.forces[i] = G[0, i]


@helper
def put_answers_of_rows(L: Array, B: Array, s: Sides) -> None:
    """Rates (nv,) by a force along each of the rows B, in columns."""
    for i in range(len(B)):
        for j in range(B.shape[1]):
            s.answers[j, i] = B[i, j]
    solve_up(L.T, s.answers)
    solve_down(L, s.answers)


@outlined
def leave_out(at: HeldPlace, s: Sides, mass: float) -> None:
    """Let no rows of points count that take more than a mass to hold beside loops and others."""
    nc, n, nv = at.counts[0], at.counts[1], at.S.shape[1]
    m, G = nc + n, s.G
    put_answers_of_rows(at.L, at.B[:m], s)
    put_zeros(G[:m])
    add_product(1.0, at.B[:m], 0, s.answers, G[:m])
    for k in range(nc):  # of loops, which are independent
        take_out(G, k, m)
    picked = 0
    for i in range(n):
        s.columns[i] = 0
    while picked < n:
        longest, most = 0, 0.0
        for i in range(n):
            if s.columns[i] == 0 and G[nc + i, nc + i] > most:
                longest, most = i, G[nc + i, nc + i]
        if not most * mass > 1.0:
            break
        s.columns[longest] = 1
        picked += 1
        take_out(G, nc + longest, m)
    kept = 0
    for i in range(n):
        if s.columns[i] != 0:
            at.kept[kept] = at.kept[i]
            for j in range(nv):
                at.B[nc + kept, j] = at.B[nc + i, j]
            kept += 1
    at.counts[1] = kept


@helper
def take_out(G: Array, k: int, m: int) -> None:
    """Let a row and what follows from it answer to nothing."""
    pivot = G[k, k]
    for i in range(m):
        if i != k:
            x = G[i, k] / pivot
            for j in range(m):
                G[i, j] -= x * G[k, j]
    for j in range(m):
        G[k, j] = 0.0


@helper
def take_terms(arrays: SystemArrays, s: StepArrays, at: HeldPlace) -> None:
    """Factors and rows of loops as ``differentiate_closing`` has left them."""
    put_matrix(at.L, 1.0, arrays.L[0])
    for i in range(at.counts[0]):
        n = arrays.rows[0, i].pivot
        for j in range(at.B.shape[1]):
            at.B[i, j] = s.J[n, j]


@helper
def take_slopes(arrays: SystemArrays, d: DerivativeArrays, s: StepArrays, at: HeldPlace) -> None:
    """What these change by, likewise."""
    put_matrix(at.bent, 1.0, s.bent)
    for i in range(at.counts[0]):
        n = arrays.rows[0, i].pivot
        for j in range(at.rate.shape[1]):
            at.rate[i, j] = d.rate[n, j]


@helper
def give(arrays: SystemArrays, at: HeldPlace, asked: Array) -> None:
    """What ``differentiate_closing`` is asked, of a place and without forces of points."""
    for k in range(len(at.q)):
        arrays.state[k] = at.q[k]
    for k in range(len(at.w)):
        asked[MOVED, k], asked[PUSH, k], asked[RATES, k] = at.w[k], 0.0, at.v[k]


@helper
def put_forces(at: HeldPlace, h: HeldClosing) -> bool:
    """Which rows count, and the forces along them; whether these explain w."""
    nv, one = len(at.w), h.one
    nc, n = at.counts[0], at.counts[1]
    for i in range(n):
        for j in range(nv):
            at.B[nc + i, j] = at.S[at.kept[i], j]
    leave_out(at, one, h.mass)
    m, size, off = nc + at.counts[1], 0.0, 0.0
    B = at.B[:m]
    for i in range(m):
        total = 0.0
        for j in range(nv):
            total += B[i, j] * at.w[j]
        one.y[i, 0] = total
        off = max(off, abs(total)) if i >= nc else off
    for j in range(nv):
        one.x[j, 0] = 0.0
    answer(at.L, B, B, one)
    for i in range(m):
        at.forces[i] = one.forces[i]
    for j in range(nv):
        size, off = max(size, abs(at.w[j])), max(off, abs(at.w[j] - one.x[j, 0]))
        h.asked[PUSH, j] = 0.0
        for i in range(nc, m):
            h.asked[PUSH, j] += B[i, j] * at.forces[i]
    return off <= OFF + 1e-3 * size * size


@outlined
def put_turned_forces(at: HeldPlace, h: HeldClosing, X: Array) -> None:
    """X (nv, m) <- less what M w - Jᵀ λ - Sᵀ f changes by, of the forces along rows that count."""
    nc, nv = at.counts[0], len(at.w)
    put_zeros(X)
    for i in range(at.counts[1]):
        r, force = at.kept[i], at.forces[nc + i]
        for k in range(nv):
            for j in range(nv):
                at.bent[j, k] -= force * at.by_q[k, r, j]
        for axis in range(3):
            for j in range(nv):
                slope = force * at.by_p[axis, r, j]
                if slope != 0.0:
                    for c in range(X.shape[1]):
                        X[j, c] += slope * h.p_by_all[r // 3 * 3 + axis, c]
    add_product(-1.0, at.bent, 0, h.q_by_all, X)


@outlined
def take_turned_rows(at: HeldPlace, h: HeldClosing, drawn: Array, Y: Array) -> None:
    """Y (rows of points, m) <- less what S w changes by; drawn (as many, nv) is scratch."""
    put_zeros(Y)
    for i in range(len(Y)):
        r = at.kept[i]
        for k in range(len(at.w)):
            drawn[i, k] = 0.0
            for j in range(len(at.w)):
                drawn[i, k] += at.by_q[k, r, j] * at.w[j]
        for axis in range(3):
            slope = 0.0
            for j in range(len(at.w)):
                slope += at.by_p[axis, r, j] * at.w[j]
            if slope != 0.0:
                for c in range(Y.shape[1]):
                    Y[i, c] -= slope * h.p_by_all[r // 3 * 3 + axis, c]
    add_product(-1.0, drawn, 0, h.q_by_all, Y)


@helper
def move_points(here: HeldPlace, there: HeldPlace) -> None:
    """Take points along as w here moves their bodies b; the same rows count there."""
    for i in range(len(there.points)):
        for axis in range(3):
            for j in range(len(here.w)):
                there.points[i].position[axis] += here.of_b[3 * i + axis, j] * here.w[j]
    there.counts[1] = here.counts[1]
    for i in range(here.counts[1]):
        there.kept[i] = here.kept[i]


@caller
def differentiate_held(
    closing: Any, arrays: SystemArrays, d: DerivativeArrays, s: StepArrays, tree: Tree,
    led: LedToClosing, h: HeldClosing,
) -> int:  # fmt: skip
    """Changes at the end of a step in which points stick; 0, or why they are not known.

    Args:
        closing: ``differentiate_closing`` with its arrays, stored.
        arrays: These,
        d: in which it leaves
        s: what it finds.
        tree: Of whom; poses and axes are written.
        led: How the step led there.
        h: The closing, which has points that stick; receives changes after it.
    """
    begin_closing(h, led)
    here, there, sides, asked = h.here, h.there, h.side, h.asked
    maps, bodies = s.maps[OF_CORRECTION], arrays.bodies
    put_held_rows(tree, here)
    give(arrays, here, asked)
    here.counts[0] = call_stored(closing, (h.still, asked, TERMS))
    take_terms(arrays, s, here)
    if not put_forces(here, h):
        return GIVES_WAY
    call_stored(closing, (h.still, asked, THEIR_SLOPES))
    take_slopes(arrays, d, s, here)
    nc, n = here.counts[0], here.counts[1]
    m = nc + n
    put_matrix(h.turned, 1.0, maps[TURNED])
    put_turned_forces(here, h, sides.x)
    take_turned_rows(here, h, sides.A[nc:m], sides.y[nc:m])
    turn_lines(bodies, maps[CARRIED], h.q_by_all)
    move_points(here, there)
    put_held_rows(tree, there)
    give(arrays, there, asked)
    there.counts[0] = call_stored(closing, (h.still, asked, TERMS))
    take_terms(arrays, s, there)
    if there.counts[0] != nc:
        return OTHERS
    put_matrix(sides.A[:nc], 1.0, there.B[:nc])
    put_matrix(sides.A[nc:m], 1.0, here.B[nc:m])
    put_zeros(sides.y[:nc])
    add_product(-1.0, sides.A[:nc], 0, h.q_by_all, sides.y[:nc])
    turn_columns(bodies, h.turned, sides.A[:nc])
    answer(here.L, here.B[:m], sides.A[:m], sides)
    add_product(1.0, here.of_b, 0, sides.x, h.p_by_all)
    add_matrix(h.v_by_all, 1.0 / h.dt, sides.x)
    turn_lines(bodies, h.turned, sides.x)
    add_matrix(h.q_by_all, 1.0, sides.x)
    if not put_forces(there, h):
        return GIVES_WAY
    call_stored(closing, (h.still, asked, THEIR_SLOPES))
    take_slopes(arrays, d, s, there)
    m = nc + there.counts[1]
    put_turned_forces(there, h, sides.x)
    take_turned_rows(there, h, sides.A[nc:m], sides.y[nc:m])
    put_zeros(sides.y[:nc])
    add_product(-1.0, there.rate, 0, h.q_by_all, sides.y[:nc])
    add_product(-1.0, there.B[:nc], 0, h.v_by_all, sides.y[:nc])
    answer(there.L, there.B[:m], there.B[:m], sides)
    add_matrix(h.v_by_all, 1.0, sides.x)
    return 0
