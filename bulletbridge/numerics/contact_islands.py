"""Mixed complementarity problems of bodies that nothing joins but contacts, island by island.

Rows couple only where they move the same body. What does not touch is solved for apart from
others: its solution, and the way to it, do not depend on them. No matrix of all rows is formed: a
small island has one of its own, a large one is solved by the bodies (``parts``). What rests keeps
its impulses as long as they solve its problem, and has none.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.jit import bundling, helper, outlined
from bulletbridge.numerics.complementarity import (
    ANYWHERE,
    ENOUGH,
    NEARBY,
    SETTLED,
    Outcome,
    solve_complementarity,
)
from bulletbridge.numerics.complementarity_rows import (
    ALWAYS,
    BODY,
    CONVEX,
    FACTORED,
    FORMED,
    IF_NEAR,
    NEAREST,
    NOWHERE,
    ROW_BOUNDS,
    USED,
    ComplementarityProblem,
    Parts,
    Room,
    RowBounds,
    add_block,
    along_block,
    complementarity_problem,
    parts_of,
    violation,
)
from bulletbridge.numerics.parts import (
    OF_BODIES,
    end_of_unit,
    form_matrix,
    may_pay,
    number_in_turn,
    order_parts,
    put_runs,
)
from bulletbridge.numerics.projection import whiten_force
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.solution_selection import (
    JAMMED,
    LINES_OF_SELECTION,
    STARTS,
    UNTRIED,
    Selection,
    moves,
    select_solution,
    squared_slip,
)


class Islands(NamedTuple):
    """Rows on bodies, and room to solve for one island of them."""

    bodies: Ints  # (rows, 2) that each row moves, 0 for the world
    blocks: Array  # (rows, 2, widest) on their coordinates, whitened
    compliance: Array  # (rows,) what each gives way by itself
    widths: Ints  # (bodies,) numbers of these
    L: Array  # (bodies, widest, widest) factors of their inertias M = Lᵀ L
    root: Ints  # (bodies,) a body of the same island
    place: Ints  # (bodies,) in their islands, -1 in none
    island: Ints  # (bodies,) number of that of a root, -1 for none
    begins: Ints  # (bodies + 1,) of islands in ``rows``
    rows: Ints  # (rows,) island by island
    formed: Ints  # (bodies,) whether D of an island is known; rows that move bodies apart are those
    D: Array  # (rows, rows) of islands, each in the lines from that of its first row on
    A: Array  # (rows, rows) scratch
    lines: Array  # (LINES_OF_ISLAND, rows)
    y: Array  # (bodies, widest) what impulses give their coordinates
    still: Array  # (bodies,) squared velocities in whitened coordinates; 0 for those at rest
    bounds: Records[RowBounds]
    parts: Parts


RESTING, APART = 4, 5
"""Efforts besides those of ``complementarity``: by ``select_solution``; and next to x, from where
bodies are moved apart: where friction lets none be found there, by normals alone, friction as it
is, which is a convex problem."""
AT_ONCE = 100
"""Rows up to which what bodies by themselves leave jammed is solved for by a matrix of all rows."""
B, X, W, VECTORS = range(4)
"""Lines of an island: right sides, impulses, velocities, and then the problem's own."""
LINES_OF_ISLAND = VECTORS + LINES_OF_SELECTION


def islands_of(rows: int, widths: Ints) -> Islands:
    """Room for ``rows`` rows on bodies of so many coordinates, the world with none."""
    count, widest = len(widths), int(widths.max(initial=0))

    def numbers(*shape: int) -> Ints:
        return np.zeros(shape, np.int64)

    return Islands(
        bodies=numbers(rows, 2),
        blocks=np.zeros((rows, 2, widest)),
        compliance=np.zeros(rows),
        widths=widths,
        L=np.zeros((count, widest, widest)),
        root=numbers(count),
        place=numbers(count),
        island=numbers(count),
        begins=numbers(count + 1),
        rows=numbers(rows),
        formed=numbers(count),
        D=np.zeros((rows, rows)),
        A=np.zeros((rows, rows)),
        lines=np.zeros((LINES_OF_ISLAND, rows)),
        y=np.zeros((count, widest)),
        still=np.zeros(count),
        bounds=np.zeros(rows, ROW_BOUNDS),
        parts=parts_of(np.zeros((rows, 0)), np.append(0, np.cumsum(widths[1:]))),
    )


@helper
def root_of(s: Islands, body: int) -> int:
    """The body that stands for those of an island so far; ways there are halved."""
    while s.root[body] != body:
        s.root[body] = s.root[s.root[body]]
        body = s.root[body]
    return body


@outlined
def find_islands(s: Islands, first: int, n: int) -> int:
    """List rows from ``first`` up to n island by island, in their order; how many islands.

    Islands are in the order of their first rows.
    """
    count = 0
    for body in range(len(s.root)):
        s.root[body], s.island[body], s.place[body] = body, -1, -1
    for i in range(first, n):
        if s.bodies[i, 0] > 0 and s.bodies[i, 1] > 0:
            a, b = root_of(s, s.bodies[i, 0]), root_of(s, s.bodies[i, 1])
            s.root[max(a, b)] = min(a, b)
    s.begins[0] = 0
    for i in range(first, n):
        root = root_of(s, max(s.bodies[i, 0], s.bodies[i, 1]))
        if s.island[root] < 0:
            s.island[root], count = count, count + 1
            s.begins[count] = 0
        s.begins[s.island[root] + 1] += 1
    for k in range(count):
        s.begins[k + 1] += s.begins[k]
    for i in range(n - 1, first - 1, -1):  # each island from its end, which becomes its beginning
        k = s.island[root_of(s, max(s.bodies[i, 0], s.bodies[i, 1]))]
        s.begins[k + 1] -= 1
        s.rows[s.begins[k + 1]] = i
    for k in range(count):
        s.begins[k] = s.begins[k + 1]
    s.begins[count] = n - first
    return count


@bundling
def parts_in(parts: Parts, count: int) -> Parts:
    """The first ``count`` parts."""
    return Parts(
        parts.C, parts.first[: count + 1], parts.state, parts.touched, parts.blocks, parts.own,
        parts.order, parts.at, parts.joined, parts.degree, parts.later, parts.until, parts.laters,
        parts.S, parts.U, parts.unit, parts.turns, parts.soft, parts.inverse, parts.x,
        parts.rates, parts.y,
    )  # fmt: skip


@outlined
def gather_bodies(s: Islands, first: int, last: int) -> int:
    """Number the bodies of an island, with rows up to ``last`` of the list; how many."""
    count, parts = 0, s.parts
    parts.first[0] = 0
    for m in range(first, last):
        i, at = s.rows[m], m - first
        parts.touched[at, 0] = parts.touched[at, 1] = -1
        side = 0
        for end in range(2):
            body = s.bodies[i, end]
            if body == 0:
                continue
            if s.place[body] < 0:
                s.place[body] = count
                parts.first[count + 1] = parts.first[count] + s.widths[body]
                count += 1
            parts.touched[at, side] = s.place[body]
            for k in range(s.widths[body]):
                parts.blocks[at, side, k] = s.blocks[i, end, k]
            side += 1
    return count


@outlined
def gather_rows(
    p: Any, s: Islands, own: ComplementarityProblem, first: int, last: int, beside: bool
) -> None:
    """Copy what is known of the rows of an island; ``beside``: of normals alone, from x on."""
    n = last - first
    for at in range(n):
        i = s.rows[first + at]
        own.b[at], own.x[at], own.weights[at], own.centre[at] = p.b[i], p.x[i], p.weights[i], 0.0
        bound, given = own.bounds[at], p.bounds[i]
        bound.lower, bound.upper, bound.mu = given.lower, given.upper, given.mu
        bound.first, bound.count = given.first, given.count
        bound.owner = at - (i - given.owner) if given.owner >= 0 else -1
        if beside:
            own.b[at], own.x[at] = p.w[i], 0.0
            bound.lower, bound.upper, bound.mu = given.lower - p.x[i], given.upper - p.x[i], 0.0
    at = 0
    while at < n:
        end, i = end_of_unit(own, at, n), s.rows[first + at]
        for r in range(end - at):
            for c in range(end - at):
                own.D[at + r, at + c] = p.D[i + r, i + c]
        at = end


@helper
def whiten_six(L: Array, first: int, Y: Array, begin: int, last: int, end: int) -> None:
    """``whiten_on_body`` for six rates: numbers of L are read, and inverted, once."""
    a, b, c, d, e, g = first, first + 1, first + 2, first + 3, first + 4, first + 5
    ra, rb, rc, rd = 1.0 / L[a, a], 1.0 / L[b, b], 1.0 / L[c, c], 1.0 / L[d, d]
    re, rg = 1.0 / L[e, e], 1.0 / L[g, g]
    ba, ca, cb, da, db, dc = L[b, a], L[c, a], L[c, b], L[d, a], L[d, b], L[d, c]
    ea, eb, ec, ed = L[e, a], L[e, b], L[e, c], L[e, d]
    ga, gb, gc, gd, ge = L[g, a], L[g, b], L[g, c], L[g, d], L[g, e]
    for i in range(begin, last):
        y = Y[i, end]
        y5 = y[5] * rg
        y4 = (y[4] - y5 * ge) * re
        y3 = (y[3] - y5 * gd - y4 * ed) * rd
        y2 = (y[2] - y5 * gc - y4 * ec - y3 * dc) * rc
        y1 = (y[1] - y5 * gb - y4 * eb - y3 * db - y2 * cb) * rb
        y[0] = (y[0] - y5 * ga - y4 * ea - y3 * da - y2 * ca - y1 * ba) * ra
        y[1], y[2], y[3], y[4], y[5] = y1, y2, y3, y4, y5


@helper
def whiten_on_body(
    L: Array, first: int, wide: int, Y: Array, begin: int, last: int, end: int
) -> None:
    """Whiten rows Y (rows, 2, widest) on one of their bodies: y <- y L⁻¹.

    Args:
        L: Has the block of that body,
        first: which begins there,
        wide: and is so wide.
        Y: The rows.
        begin: The first of them,
        last: and the one after the last.
        end: Which of the two bodies.
    """
    if wide == BODY:
        whiten_six(L, first, Y, begin, last, end)
        return
    for i in range(begin, last):
        whiten_force(L[first : first + wide, first : first + wide], Y[i, end, :wide])


@helper
def squared_speed(L: Array, first: int, wide: int, v: Array, at: int) -> float:
    """Twice the kinetic energy of a body: |L v|², where M = Lᵀ L.

    Its block of L has ``wide`` lines, from ``first`` on; its rates are those of v from ``at`` on.
    """
    total = 0.0
    for i in range(wide):
        along = 0.0
        for j in range(i + 1):
            along += L[first + i, first + j] * v[at + j]
        total += along * along
    return total


@outlined
def put_own_block(s: Islands, begin: int, last: int, compliance: float, D: Array) -> None:
    """D of the rows of one contact among themselves, which are whitened; its normal gives way."""
    a, b = int(s.widths[s.bodies[begin, 0]]), int(s.widths[s.bodies[begin, 1]])
    for i in range(begin, last):
        for j in range(begin, i + 1):
            total = along_block(s.blocks[i, 0], a, s.blocks[j, 0], 0)
            D[i, j] = D[j, i] = total + along_block(s.blocks[i, 1], b, s.blocks[j, 1], 0)
        s.compliance[i] = 0.0
    s.compliance[begin] = compliance if D[begin, begin] > 0.0 else 0.0
    D[begin, begin] += s.compliance[begin]


@outlined
def put_island_velocities(p: Any, s: Islands, first: int, n: int) -> None:
    """w of the rows from ``first`` up to n at x."""
    y, blocks, widths = s.y, s.blocks, s.widths
    for body in range(len(widths)):
        for k in range(widths[body]):
            y[body, k] = 0.0
    for i in range(first, n):
        for end in range(2):
            body = s.bodies[i, end]
            add_block(p.x[i], blocks[i, end], int(widths[body]), y[body], 0)
    for i in range(first, n):
        total = p.b[i] + s.compliance[i] * p.x[i]
        for end in range(2):
            body = s.bodies[i, end]
            total += along_block(blocks[i, end], int(widths[body]), y[body], 0)
        p.w[i] = total


@outlined
def left_before(p: Any, s: Islands, start: Array, k: int, effort: int) -> float:
    """Residual of island k at x, w; infinite where one is, or what rested begins to slide."""
    worst, slip, total, m = 0.0, 0.0, 0.0, s.begins[k]
    while m < s.begins[k + 1]:
        i = int(s.rows[m])
        off, after = violation(p, p.x, p.w, i)
        worst = max(worst, off)
        if effort == RESTING and p.bounds[i].owner >= 0:
            slip = max(slip, squared_slip(p, start, p.x, i))
        for row in range(i, after):
            total += p.w[row]
        m += after - i
    finite = math.fabs(total) < math.inf  # isfinite does not survive reassociation
    return worst if finite and math.sqrt(slip) <= max(STARTS, worst) else math.inf


@outlined
def solve_island(
    p: Any, s: Islands, start: Array, k: int, tolerance: float, effort: int
) -> Outcome:
    """Solve for the rows of island k, in place; arguments are those of ``solve_by_islands``."""
    first, last = s.begins[k], s.begins[k + 1]
    n, count = last - first, gather_bodies(s, first, last)
    vectors = s.lines[VECTORS:]
    room = Room(s.A, vectors, parts_in(s.parts, count))
    own = complementarity_problem(s.D[first:], s.lines[B], s.bounds, s.lines[X], s.lines[W], room)
    gather_rows(p, s, own, first, last, False)
    more = s.lines[LINES_OF_ISLAND - 3 :]
    rest = Selection(more[0], more[1], more[2])
    for at in range(n):
        rest.start[at], rest.warm[at] = start[s.rows[first + at]], own.x[at]
    state = own.parts.state
    state[USED], state[FACTORED], state[FORMED] = 0, 0, s.formed[k]
    if may_pay(n, OF_BODIES):
        order_parts(own, n, OF_BODIES)
    if state[USED] == 0:
        form_matrix(own, n)
        state[NEAREST] = NOWHERE
    else:
        state[NEAREST] = IF_NEAR if effort == RESTING else ALWAYS
        number_in_turn(own, n)
        put_runs(own.parts)
    beside = False
    if effort == RESTING:
        outcome = select_solution(own, rest, n, tolerance, UNTRIED, not moves(rest.start, n))
    elif effort == APART:
        outcome = solve_complementarity(own, n, tolerance, SETTLED if state[USED] == 1 else NEARBY)
        beside = not outcome.residual <= (ENOUGH if state[USED] == 1 else 1.0) * tolerance
    else:
        outcome = solve_complementarity(own, n, tolerance, effort)
    if beside:
        gather_rows(p, s, own, first, last, True)
        state[FACTORED], state[NEAREST] = 0, CONVEX if state[USED] == 1 else NOWHERE
        alone = solve_complementarity(own, n, tolerance, ANYWHERE if state[USED] == 1 else NEARBY)
        sweeps, newtons = outcome.sweeps + alone.sweeps, outcome.newton + alone.newton
        outcome = Outcome(alone.residual, sweeps, newtons)
    put_back(p, s, own, first, n, beside)
    jammed = effort == RESTING and state[USED] == 1 and n <= AT_ONCE
    if jammed and not outcome.residual <= JAMMED * tolerance:
        for at in range(n):
            own.x[at] = rest.warm[at]
        form_matrix(own, n)
        state[USED], state[NEAREST] = 0, NOWHERE
        again = select_solution(own, rest, n, tolerance, UNTRIED, not moves(rest.start, n))
        sweeps, newtons = outcome.sweeps + again.sweeps, outcome.newton + again.newton
        if again.residual < outcome.residual:
            put_back(p, s, own, first, n, False)
        outcome = Outcome(min(outcome.residual, again.residual), sweeps, newtons)
    s.formed[k] = state[FORMED]
    return outcome


@helper
def put_back(
    p: Any, s: Islands, own: ComplementarityProblem, first: int, n: int, beside: bool
) -> None:
    """Copy impulses and velocities of an island to where they are listed; ``beside``: add them."""
    for at in range(n):
        i = s.rows[first + at]
        p.x[i] = p.x[i] + own.x[at] if beside else own.x[at]
        p.w[i] = own.w[at]


@outlined
def solve_by_islands(
    p: Any, s: Islands, start: Array, first: int, n: int, tolerance: float, effort: int
) -> Outcome:
    """Solve for x of some rows, in place, from where it stands; w are the velocities there.

    Args:
        p: A problem of which D has the blocks of single contacts.
        s: Its rows.
        start: (rows,) velocities at the start of the step.
        first: The first of those rows,
        n: and the one after the last.
        tolerance: Residual that is enough.
        effort: Where a solution is looked for; RESTING for one in which what rested stays so, if it
            can and nothing in its island moved, anywhere; APART to move bodies apart.

    Returns:
        The largest residual, infinite where one is, and what all took.
    """
    residual, sweeps, newtons = 0.0, 0, 0
    count = find_islands(s, first, n)
    put_island_velocities(p, s, first, n)
    for k in range(count):
        if effort != APART:
            s.formed[k] = 0
        left = left_before(p, s, start, k, effort)
        if left <= tolerance:
            residual = max(residual, left)
            continue
        o = solve_island(p, s, start, k, tolerance, effort)
        if not o.residual < math.inf:
            return Outcome(math.inf, sweeps, newtons)
        residual = max(residual, o.residual)
        sweeps, newtons = sweeps + o.sweeps, newtons + o.newton
    return Outcome(residual, sweeps, newtons)


@outlined
def put_still(s: Islands, D: Array, rows: int, tolerance: float) -> None:
    """Zero the squared velocities ``still`` of bodies that may be taken to rest.

    That is where no row of an island moves by more than impulses may be kept with. Round-off would
    gather in the velocities of what keeps its impulses, until these have to be found anew.

    Args:
        s: Islands of ``rows`` rows, as ``solve_by_islands`` leaves them.
        D: Blocks of single contacts.
        rows: How many.
        tolerance: As there.
    """
    k = 0
    while s.begins[k] < rows:
        hardest, rests = 0.0, True
        for m in range(s.begins[k], s.begins[k + 1]):
            hardest = max(hardest, D[s.rows[m], s.rows[m]])
        for m in range(s.begins[k], s.begins[k + 1]):
            for end in range(2):  # what is not a number stays
                speed2 = s.still[s.bodies[s.rows[m], end]]
                rests &= speed2 * hardest <= tolerance**2
        if rests:
            for m in range(s.begins[k], s.begins[k + 1]):
                for end in range(2):
                    s.still[s.bodies[s.rows[m], end]] = 0.0
        k += 1
