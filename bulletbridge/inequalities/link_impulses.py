"""Impulses of contacts by elimination of links: ``impulses`` where nothing but contacts acts.

The problem is that of ``complementarity``, and so is the method; no matrix D is formed. w = D x + b
takes a solution with the factors of the loops, a step of Newton's method one of all rows that are
free beside those of the loops. Both cost as much as there are bodies and contacts.

Without loops and springs, bodies that touch are islands (``contact_islands``), each solved for by
itself.
"""

import math
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.records import Arrays
from bulletbridge.engine.sparse import SparseFactors
from bulletbridge.inequalities.arrays import PARTING_AFTER, PARTING_IN
from bulletbridge.inequalities.contact_rows import ContactRows, leave_what_moves
from bulletbridge.inequalities.impulses import (
    DOUBTFUL,
    GENTLE,
    PAUSE,
    WEDGE,
    Solved,
    outermost,
    slow_down,
    wait,
)
from bulletbridge.inequalities.link_rows import (
    LinkRows,
    are_apart,
    begin_rows,
    compliance_alone,
    find_ends,
    invert_loops,
    link_rate,
    open_join,
    push_along,
    put_factor,
    put_own_compliance,
    respond,
)
from bulletbridge.inequalities.motor_limit_rows import RowTargets
from bulletbridge.inequalities.restitution import Impulses, bounce_share, is_usable, work_of
from bulletbridge.numerics.complementarity import (
    ANEW,
    AT_BOUND,
    NEWTON_STEPS,
    SLIDES,
    STAGES,
    STICKS,
    classify,
    rim_of,
    settling,
)
from bulletbridge.numerics.complementarity_rows import RowBounds, cone_scale, scaled
from bulletbridge.numerics.contact_islands import (
    APART,
    RESTING,
    Islands,
    put_own_block,
    put_still,
    solve_by_islands,
    squared_speed,
    whiten_on_body,
)
from bulletbridge.numerics.multifrontal_factors import factorise
from bulletbridge.numerics.multifrontal_solutions import push_nothing, solve_pushed
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.sharing import HEAVIEST, weigh
from bulletbridge.numerics.solution_selection import STARTS, Selection, slip_after_rest

MOST_ROUNDS = 12
"""Solutions with one set of factors by which friction that slides follows its normal."""
FOLLOWED = 1e-9
"""Change of sliding friction, of its largest, that is none."""


class LinkProblem(NamedTuple):
    """A ``ComplementarityProblem`` of which D has the blocks of single contacts alone."""

    D: Array  # (n, n)
    b: Array
    bounds: Records[RowBounds]
    x: Array
    w: Array
    step: Array
    best: Array
    diagonal: Array
    right: Array
    weights: Array
    spare: Array
    centre: Array
    kinds: Array
    line: Array
    compliance: Array  # (rows,) what each gives way by itself, which D has in it
    contact_rows: Records[ContactRows]
    links: LinkRows
    islands: Islands  # of bodies that no loop holds
    f: SparseFactors


@outlined
def link_velocities(p: Any, x: Array, w: Array, n: int) -> None:
    """w = D x + b."""
    respond(p.f, p.links, x, n, p.links.u)
    for i in range(n):
        softness = p.D[i, i] - p.diagonal[i] + p.compliance[i]
        w[i] = p.b[i] + softness * x[i] + link_rate(p.links, i, p.links.u)


@outlined
def link_direction(p: Any, n: int, regularisation: float, again: int) -> bool:
    """Semismooth Newton step of the natural map into step; w belongs to x.

    Friction that slides is in proportion to its normal, which makes the matrix unsymmetric. It is
    made to follow in rounds: the normal with this friction, friction of this normal, with the same
    factors.
    """
    sliding, same = classify(p, n, rim_of(again)), again != ANEW
    for i in range(n):
        same = same and p.line[i] == p.kinds[i]
        p.kinds[i] = p.line[i]
    e, links = p.links.e, p.links
    if sliding > 0 or not same:
        if not put_free_rows(p, regularisation):
            return False
        factorise(e)
    for c in range(len(p.contact_rows)):  # what normals are taken to change by, first of all
        normal = p.contact_rows[c].normal
        p.line[normal] = p.step[normal] if p.kinds[normal] == AT_BOUND else 0.0
    before, change = math.inf, 0.0
    for _ in range(MOST_ROUNDS):
        push_nothing(e)
        put_slides(p, n)
        for i in range(n):
            if p.kinds[i] != STICKS and p.step[i] != 0.0:
                push_along(links, e, i, p.step[i])
        solve_pushed(e, links.none, links.right, links.u, links.y)
        change = take_steps(p)
        if sliding == 0 or change <= FOLLOWED or not change < before:
            break
        before = change
    return change < math.inf


@outlined
def put_free_rows(p: Any, regularisation: float) -> bool:
    """Rows that Newton's method solves for, beside those of the loops; False if there is no room.

    Each is scaled by its own compliance. Of a cone that slides it is the row across, in which
    friction turns.
    """
    links, e = p.links, p.links.e
    begin_rows(links, p.f)
    e.least[0] = 0.0
    for c in range(len(p.contact_rows)):
        own = p.contact_rows[c]
        first, count, i = own.normal, 0, own.normal
        while i < own.end:
            bound, wide = p.bounds[i], 1
            slides = bound.owner >= 0 and p.kinds[i] == SLIDES
            if slides:
                wide = bound.count
            if p.kinds[i] == STICKS or (slides and wide == 2):
                place = first + count
                put_free_row(p, place, i, slides, regularisation)
                count += 1
            i += wide
        if count > 0:
            join = open_join(links, first, e.rigid + first)
            if join < 0:
                return False
            e.joins[join].rows = count
    return True


@helper
def put_free_row(p: Any, place: int, i: int, slides: bool, regularisation: float) -> None:
    """One of them, its softness and its right side."""
    links, e = p.links, p.links.e
    r = e.rigid + place
    if not slides:
        softness = p.D[i, i] - p.diagonal[i] + p.compliance[i] + regularisation
        size = 1.0 / math.sqrt(p.diagonal[i]) if p.diagonal[i] > 0.0 else 0.0
        for end in range(2):
            for k in range(links.on.shape[2]):
                e.wrench[r, end, k] = size * links.on[i, end, k]
    else:
        d, radius, m = cone_scale(p, i), p.x[p.bounds[i].owner], i + 1
        first, second, length = scaled(p, i, d, p.x, p.w)
        one, other = -second / length * p.bounds[i].mu, first / length * p.bounds[m].mu
        softness = d * (length - radius) / radius
        for k in range(2):
            share = one if k == 0 else other
            softness += share * share * (p.D[i + k, i + k] - p.diagonal[i + k])
        size = 1.0 / math.sqrt(d)
        for end in range(2):
            for k in range(links.on.shape[2]):
                on = one * links.on[i, end, k] + other * links.on[m, end, k]
                e.wrench[r, end, k] = size * on
    e.soft[r], links.size[place] = size * size * softness, size


@outlined
def put_slides(p: Any, n: int) -> None:
    """Right sides; steps of sliding friction along itself, with the steps of normals at hand.

    What of a step of sliding friction goes across is left out of it.
    """
    links, e = p.links, p.links.e
    for i in range(len(links.right)):
        links.right[i] = 0.0
    for c in range(len(p.contact_rows)):
        own = p.contact_rows[c]
        i, place = own.normal, own.normal
        while i < own.end:
            if p.kinds[i] == SLIDES:
                d, radius = cone_scale(p, i), p.x[p.bounds[i].owner]
                first, second, length = scaled(p, i, d, p.x, p.w)
                one, other = first / length, second / length
                wide, mu = p.bounds[i].count, p.bounds[i].mu
                was = one * p.x[i] / mu if mu > 0.0 else 0.0
                if wide == 2:
                    mu = p.bounds[i + 1].mu
                    was += other * p.x[i + 1] / mu if mu > 0.0 else 0.0
                longer = radius + p.line[p.bounds[i].owner] - was
                p.step[i] = p.bounds[i].mu * one * longer
                if wide == 2:
                    p.step[i + 1] = p.bounds[i + 1].mu * other * longer
                    across = -other * p.x[i] / p.bounds[i].mu + one * p.x[i + 1] / mu
                    size = links.size[place]
                    links.right[e.rigid + place] = -size * length * d / radius * across
                    place += 1
                i += wide
                continue
            if p.kinds[i] == STICKS:
                links.right[e.rigid + place] = -links.size[place] * p.w[i]
                place += 1
            i += 1


@outlined
def take_steps(p: Any) -> float:
    """Steps of the rows that were solved for; the largest change of a normal that owns friction.

    It is relative to the largest impulse. p.line keeps the steps of normals.
    """
    links, e = p.links, p.links.e
    change, largest = 0.0, 0.0
    for c in range(len(p.contact_rows)):
        own = p.contact_rows[c]
        i, place = own.normal, own.normal
        while i < own.end:
            if p.kinds[i] == SLIDES:
                wide = p.bounds[i].count
                if wide == 2:
                    d = cone_scale(p, i)
                    first, second, length = scaled(p, i, d, p.x, p.w)
                    turn = -links.size[place] * links.y[e.rigid + place]
                    p.step[i] -= p.bounds[i].mu * second / length * turn
                    p.step[i + 1] += p.bounds[i + 1].mu * first / length * turn
                    place += 1
                i += wide
                continue
            if p.kinds[i] == STICKS:
                p.step[i] = -links.size[place] * links.y[e.rigid + place]
                place += 1
            i += 1
        n = own.normal
        largest = max(largest, math.fabs(p.x[n]), math.fabs(p.step[n]))
        change = max(change, math.fabs(p.step[n] - p.line[n]))
        p.line[n] = p.step[n]
    return change / largest if largest > 0.0 else 0.0


newton_by_links, release_by_links, settle_by_links = settling(link_velocities, link_direction)


class ContactProblem(NamedTuple):
    """The contacts of a step, and room to solve for their impulses."""

    p: LinkProblem
    row_targets: RowTargets
    selection: Selection
    resting: Array  # (rows,) impulses of the velocity
    gained: Array  # (rows,) velocities that impulses and moving apart have given
    delta_v: Array  # (nv,) velocity that the impulses gave
    moving: Array  # (nv,) velocity of the prediction; then that of moving apart alone
    report: Array  # of ``InequalityArrays``


@outlined
def solve_by_links(p: LinkProblem, selection: Selection, n: int, tolerance: float) -> Solved:
    """Solve from x, in place; the residual is infinite where D has to be formed.

    That is where Newton's method alone does not come to the end, and where contacts that rested
    begin to slide: there may be another solution then.
    """
    for i in range(n):
        selection.warm[i], p.centre[i] = p.x[i], 0.0
        p.diagonal[i], p.right[i] = p.D[i, i], p.b[i]
    residual, newtons = settle_by_links(p, n, tolerance, STAGES)
    for attempt in range(2):
        if residual <= tolerance:
            break
        for i in range(n):
            p.x[i] = selection.warm[i] if attempt == 0 else 0.0
        residual, steps = find_by_links(p, selection, n, tolerance)
        newtons += steps
    if not residual <= tolerance or slip_after_rest(p, selection, n) > STARTS:
        residual = math.inf
    return Solved(residual, 0, newtons, 0.0, 0)


@outlined
def find_by_links(
    p: LinkProblem, selection: Selection, n: int, tolerance: float
) -> tuple[float, int]:
    """Newton for any solution, from x, then for that of least weighted norm if it solves as well.

    Returns:
        Residual, and steps.
    """
    residual, newtons = newton_by_links(p, n, tolerance, 0, NEWTON_STEPS, ANEW)
    if not residual <= tolerance:
        return residual, newtons
    for i in range(n):
        selection.found[i] = p.x[i]
    settled, steps = settle_by_links(p, n, tolerance, STAGES)
    if settled <= tolerance:
        return settled, newtons + steps
    for i in range(n):
        p.x[i] = selection.found[i]
    link_velocities(p, p.x, p.w, n)
    return residual, newtons + steps


@outlined
def put_compliances(p: LinkProblem) -> bool:
    """Blocks of D of single contacts; False where D has to be formed: see ``impulses``."""
    links, free = p.links, are_apart(p.f)
    if free:
        for body in range(1, len(p.islands.widths)):
            put_factor(links, body, p.islands.L[body])
    else:
        invert_loops(p.f, links)
    for c in range(len(p.contact_rows)):
        own = p.contact_rows[c]
        ends = links.bodies[own.normal]
        if free:
            put_blocks(p, own.normal, own.end, own.compliance)
            p.spare[own.normal] = p.D[own.normal, own.normal]
        elif own.compliance > 0.0 or find_ends(p.f.e, links.front_of, ends[0], ends[1])[2] < 0:
            return False
        else:
            put_own_compliance(p.f, links, p.D, own.normal, own.end)
            p.spare[own.normal] = compliance_alone(links, own.normal)
        left, across = p.D[own.normal, own.normal], 0.0
        if own.tangents >= 0:
            across = max(p.D[own.tangents, own.tangents], p.D[own.tangents + 1, own.tangents + 1])
        if not left >= DOUBTFUL * p.spare[own.normal] or left < WEDGE * across:
            return False
        for i in range(own.normal, own.end):
            slips = p.bounds[i].owner >= 0 and not p.bounds[i].mu > 0.0
            if not p.D[i, i] > 0.0 or (slips and not free):
                return False
            p.compliance[i] = own.compliance if i == own.normal else 0.0
    return True


@outlined
def put_blocks(p: LinkProblem, first: int, last: int, compliance: float) -> None:
    """Write rows of one contact on whitened coordinates, and their D among themselves.

    ``compliance``: what the normal gives way by.
    """
    links, s = p.links, p.islands
    for end in range(2):
        body = int(links.bodies[first, end])
        for i in range(first, last):
            s.bodies[i, end] = body
            for k in range(s.widths[body]):
                s.blocks[i, end, k] = links.on[i, end, k]
        if body > 0:
            whiten_on_body(s.L[body], 0, s.widths[body], s.blocks, first, last, end)
    put_own_block(s, first, last, compliance, p.D)


@outlined
def solve_contacts(h: ContactProblem, n: int, tolerance: float, apart: bool) -> Solved:
    """Solve from x, in place; the residual is infinite where D has to be formed."""
    if not are_apart(h.p.f):
        return solve_by_links(h.p, h.selection, n, tolerance)
    effort = APART if apart else RESTING
    o = solve_by_islands(h.p, h.p.islands, h.row_targets.initial, 0, n, tolerance, effort)
    return Solved(o.residual, o.sweeps, o.newton, 0.0, 0)


@outlined
def add_contact_impulses(
    a: Arrays, h: ContactProblem, n: int, tolerance: float, v: Array
) -> Solved:
    """Add the impulses of n rows to the velocities v (nv,), in place.

    The residual is infinite, and nothing is done, where D has to be formed.
    """
    p, t, links = h.p, h.row_targets, h.p.links
    undone = Solved(math.inf, 0, 0, 0.0, 0)
    if not put_compliances(p):
        return undone
    apart, bounces, gentle = 0, 0, 0.0
    for i in range(n):
        bounces += t.restitution[i] != 0.0
        if t.stabilisation[i] != 0.0:
            apart += 1
            gentle += GENTLE * t.stabilisation[i] ** 2 / p.spare[i]
    if bounces > 0 and not are_apart(p.f):
        return undone
    weigh(p, 0, 0, n, HEAVIEST)
    solved = solve_contacts(h, n, tolerance, False)
    if solved.residual == math.inf:
        return solved
    residual, sweeps, newton, share = solved.residual, solved.sweeps, solved.newton, 0.0
    contacts, contact_rows = len(p.contact_rows), p.contact_rows
    leave_what_moves(contacts, contact_rows, p.x, p.w, n)
    for i in range(n):
        h.resting[i] = p.x[i]
    if bounces > 0:
        solved = bounce(h, n, tolerance)
        if solved.residual == math.inf:
            return solved
        share = solved.work
        sweeps, newton = sweeps + solved.sweeps, newton + solved.newton
        if solved.apart > 0:
            residual = max(residual, solved.residual)
    work = work_of(Impulses(h.resting, p.w), t, 0, n)
    respond(p.f, links, h.resting, n, h.delta_v)
    for i in range(n):
        h.gained[i] = link_rate(links, i, h.delta_v)
    if apart > 0 and h.report[PARTING_IN] > 0.0:
        h.report[PARTING_IN] -= 1.0
        apart = 0
    if apart > 0:
        for i in range(n):
            p.x[i] = h.resting[i]
            p.b[i] += outermost(share * t.restitution[i], t.stabilisation[i])
        solved = solve_contacts(h, n, tolerance, True)
        if solved.residual == math.inf:
            return solved
        sweeps, newton = sweeps + solved.sweeps, newton + solved.newton
        usable = is_usable(solved.residual, tolerance, t.stabilisation, 0, n)
        wait(h.report, PARTING_IN, PARTING_AFTER, not usable, PAUSE)
        if usable:
            residual = max(residual, solved.residual)
            for i in range(n):
                p.x[i] -= h.resting[i]
            move_apart(a, h, n, gentle)
        else:
            apart = 0
    for i in range(n):
        p.x[i] = h.resting[i]
    for k in range(len(v)):
        v[k] += h.delta_v[k]
    if are_apart(p.f):
        stop_islands(p, n, tolerance, v)
    return Solved(residual, sweeps, newton, work, apart)


@outlined
def stop_islands(p: LinkProblem, n: int, tolerance: float, v: Array) -> None:
    """Let what hardly moves rest: arguments as of ``put_still``, and velocities v (nv,)."""
    s, e = p.islands, p.links.e
    for body in range(1, len(s.widths)):
        first = int(e.fronts[int(p.links.front_of[body])].v)
        s.still[body] = squared_speed(s.L[body], 0, s.widths[body], v, first)
    put_still(s, p.D, n, tolerance)
    for body in range(1, len(s.widths)):
        if s.still[body] == 0.0:
            first = int(e.fronts[int(p.links.front_of[body])].v)
            for a in range(s.widths[body]):
                v[first + a] = 0.0


@outlined
def bounce(h: ContactProblem, n: int, tolerance: float) -> Solved:
    """Let contacts bounce as far as that gives no energy: from ``resting`` on, in place.

    Returns:
        How it went, with the share of restitution in place of the work, and whether there is any;
        p.w are the velocities of the impulses.
    """
    p, t, rest = h.p, h.row_targets, h.p.spare
    for i in range(n):
        rest[i] = p.w[i]
        p.b[i] += t.restitution[i]
    solved, share, found = solve_contacts(h, n, tolerance, False), 0.0, 0
    for i in range(n):
        p.b[i] -= t.restitution[i]
        p.w[i] -= t.restitution[i]
    leave_what_moves(len(p.contact_rows), p.contact_rows, p.x, p.w, n)
    if solved.residual == math.inf:
        return solved
    if is_usable(solved.residual, tolerance, t.restitution, 0, n):
        found = 1
        share = bounce_share(Impulses(h.resting, rest), Impulses(p.x, p.w), t, 0, n)
    for i in range(n):
        h.resting[i] += share * (p.x[i] - h.resting[i])
        p.w[i] = rest[i] + share * (p.w[i] - rest[i])
    return Solved(solved.residual, solved.sweeps, solved.newton, share, found)


@outlined
def move_apart(a: Arrays, h: ContactProblem, n: int, gentle: float) -> None:
    """Velocity that the impulses x give beside those of the velocity, gently."""
    p, energy = h.p, 0.0
    respond(p.f, p.links, p.x, n, h.moving)
    for i in range(n):
        energy += p.x[i] * link_rate(p.links, i, h.moving)
    if energy > gentle:
        for k in range(len(h.moving)):
            h.moving[k] *= math.sqrt(gentle / energy)
    slow_down(a, p.contact_rows, h.row_targets.stabilisation, h.moving)
    for i in range(n):
        h.gained[i] += link_rate(p.links, i, h.moving)
