"""Bodies that hang from the world each and that nothing but contacts can hold, beside a robot.

What of them neither touches a robot nor, through others, stands on one that does has a problem of
its own, island by island (``contact_islands``). Its rows come after those that are solved for
together, and are on the coordinates of their bodies alone: what they cost goes with their number.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.constraints.arrays import Encoded
from bulletbridge.engine.islands import find_islands
from bulletbridge.inequalities.contact_rows import (
    ContactRows,
    RowForm,
    contact_rows_of,
    work_of_springs_of,
)
from bulletbridge.inequalities.link_rows import relative_link_row
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import Body
from bulletbridge.numerics.complementarity_rows import add_block, along_block
from bulletbridge.numerics.contact_islands import (
    Islands,
    islands_of,
    put_own_block,
    put_still,
    root_of,
    squared_speed,
    whiten_on_body,
)
from bulletbridge.numerics.records import Array, Ints, Records

LOOSE, OF_ROBOTS = 0, 1
"""What is known of an island while contacts are sorted."""


class LooseBodies(NamedTuple):
    """Rows of contacts between bodies that nothing else can hold."""

    bodies: Ints  # (rows, 2) a and b of each row, 0 for the world: those of ``islands``
    on: Array  # (rows, 2, widest) of each row on their coordinates
    first: Ints  # (nb,) first rate of each body
    islands: Islands  # and the same whitened


@kernel
def put_rows_on_bodies(
    bodies: Records[Body], on_bodies: Ints, on: Array, first: int, rows: Array
) -> int:
    """Rows between two bodies as rows of all rates; how many there are.

    Args:
        bodies: Of the mechanism.
        on_bodies: (n or more, 2) of each row, 0 for the world.
        on: (n or more, 2, widest) each on their coordinates.
        first: The first one that is wanted.
        rows: (n, nv) receives them from that one on: zero before.
    """
    for i in range(first, len(rows)):
        for end in range(2):
            n = int(on_bodies[i, end])
            body = bodies[n]
            if n > 0:
                for k in range(body.v, body.axis + 1):
                    rows[i, k] += on[i, end, k - body.v]
    return len(rows)


def loose_bodies(rows: int, widths: Ints, first: Ints, A: Array) -> LooseBodies:
    """Room for rows of loose bodies.

    Args:
        rows: How many.
        widths: (nb,) of ``loose_widths``.
        first: (nb,) first rate of each body.
        A: (rows, rows) scratch that others may use in between.
    """
    islands = islands_of(rows, widths)
    if rows:
        islands = islands._replace(A=A)
    on = np.zeros_like(islands.blocks)
    return LooseBodies(islands.bodies, on, np.asarray(first).astype(np.int64), islands)


def loose_widths(mechanism: Mechanism, used: Ints, *encoded: Encoded) -> Ints:
    """Rates of each body that nothing but contacts can hold (nb,), zero for all others.

    Args:
        mechanism: The trees.
        used: Rates on which motors, friction or limits may act.
        encoded: All constraints that may hold, or push, in a step.
    """
    bodies, held = mechanism.bodies, np.zeros(mechanism.nv, bool)
    held[used[used >= 0]] = True
    for constraints in encoded:
        for island in find_islands(mechanism, constraints):
            # springs at the end of a step join the masses of what they are between
            several = np.count_nonzero(mechanism.axes["below"][island.v] < 0) > 1
            if len(island.rows) or several:
                held[island.v] = True
    alone = (bodies["parent"] == 0) & ~np.isin(np.arange(len(bodies)), bodies["parent"])
    widths = np.where(alone, bodies["axis"] - bodies["v"] + 1, 0)
    widths[0] = 0
    for body in np.flatnonzero(widths):
        first = int(bodies[body]["v"])
        if held[first : first + widths[body]].any():
            widths[body] = 0
    return widths.astype(np.int64)


def gained_by_loose(loose: LooseBodies, row: int, first: int, x: Array) -> float:
    """What the impulses x (n,) of rows from ``first`` on give along a row [m/s or rad/s]."""
    last, total = first + len(x), 0.0
    bodies, blocks = loose.bodies[first:last], loose.islands.blocks[first:last]
    for end, body in enumerate(loose.bodies[row]):
        if body > 0:
            given = (blocks * x[:, None, None])[bodies == body].sum(axis=0)
            total += float(loose.islands.blocks[row, end] @ given)
    return total


@outlined
def put_loose_last(s: Islands, contacts: Any, room: Any) -> int:
    """Put contacts of loose bodies after all others, each in their order; how many others.

    Contacts and room are records ``ContactPoint`` (n,). A body that touches a robot, or
    another that does, is not loose.
    """
    n, place, others = len(contacts), 0, 0
    if len(s.bodies) == 0:
        return n
    for body in range(len(s.root)):
        s.root[body], s.island[body] = body, LOOSE
    for i in range(n):
        a, b = contacts[i].body_a, contacts[i].body_b
        if a > 0 and b > 0:
            one, other = root_of(s, a), root_of(s, b)
            s.root[max(one, other)] = min(one, other)
    for body in range(1, len(s.root)):
        if s.widths[body] == 0:
            s.island[root_of(s, body)] = OF_ROBOTS
    for group in range(2):
        others = place
        for i in range(n):
            end = max(contacts[i].body_a, contacts[i].body_b)
            if (s.island[root_of(s, end)] == LOOSE) == (group == 1):
                room[place] = contacts[i]
                place += 1
    if others < n:
        for i in range(n):
            contacts[i] = room[i]
    return others


@outlined
def leave_to_robots(s: Islands, points: Any, count: int) -> int:
    """Keep of the first ``count`` sticking points those at robots, in their order; how many.

    They are records ``StickingPoint``.
    """
    kept = 0
    if len(s.bodies) == 0:
        return count
    for i in range(count):
        a, b = points[i].body_a, points[i].body_b
        if (a > 0 and s.widths[a] == 0) or (b > 0 and s.widths[b] == 0):
            points[kept] = points[i]
            kept += 1
    return kept


@helper
def loose_rate(C: LooseBodies, n: int, v: Array) -> float:
    """What row n gives at the rates v (nv,)."""
    total = 0.0
    for end in range(2):
        body = C.bodies[n, end]
        total += along_block(C.on[n, end], int(C.islands.widths[body]), v, int(C.first[body]))
    return total


put_loose_rows = contact_rows_of(RowForm(relative_link_row, loose_rate))
work_of_loose_springs = work_of_springs_of(loose_rate)


@helper
def largest_along_loose(C: LooseBodies, n: int, v: Array) -> float:
    """Sum of the sizes of what ``loose_rate`` adds up."""
    total = 0.0
    for end in range(2):
        body = C.bodies[n, end]
        for k in range(C.islands.widths[body]):
            total += math.fabs(C.on[n, end, k] * v[C.first[body] + k])
    return total


@outlined
def put_loose_blocks(C: LooseBodies, L: Array, own: Records[ContactRows], D: Array) -> None:
    """Whiten the rows of contacts; D of each contact's rows among themselves.

    Args:
        C: The rows.
        L: M = Lᵀ L, in which loose bodies are blocks.
        own: (contacts,) their rows.
        D: (rows, rows)
    """
    s = C.islands
    for c in range(len(own)):
        begin, last = own[c].normal, own[c].end
        for end in range(2):
            body = C.bodies[begin, end]
            first, wide = int(C.first[body]), int(s.widths[body])
            if wide == 0:
                continue
            for i in range(begin, last):
                for k in range(wide):
                    s.blocks[i, end, k] = C.on[i, end, k]
            whiten_on_body(L, first, wide, s.blocks, begin, last, end)
        put_own_block(s, begin, last, own[c].compliance, D)


@helper
def push_loose(C: LooseBodies, i: int, x: float, y: Array) -> None:
    """Add what the impulse x of row i does to whitened velocities y (nv,)."""
    for end in range(2):
        body = C.bodies[i, end]
        add_block(x, C.islands.blocks[i, end], int(C.islands.widths[body]), y, int(C.first[body]))


@helper
def along_loose(C: LooseBodies, i: int, y: Array) -> float:
    """What row i gives at whitened velocities y (nv,)."""
    total = 0.0
    for end in range(2):
        body = C.bodies[i, end]
        wide, first = int(C.islands.widths[body]), int(C.first[body])
        total += along_block(C.islands.blocks[i, end], wide, y, first)
    return total


@outlined
def work_on_loose(
    C: LooseBodies, x: Array, first: int, last: int, before: Array, after: Array
) -> float:
    """Work [J] of rows up to ``last``: impulses along the mean of both velocities."""
    total = 0.0
    for i in range(first, last):
        total += 0.5 * x[i] * (loose_rate(C, i, before) + loose_rate(C, i, after))
    return total


@outlined
def stop_loose(C: LooseBodies, L: Array, D: Array, rows: int, tolerance: float, v: Array) -> None:
    """Let what hardly moves rest: arguments as of ``put_still``, L of M = Lᵀ L and v (nv,)."""
    s = C.islands
    for body in range(len(s.widths)):
        first, wide = int(C.first[body]), int(s.widths[body])
        s.still[body] = squared_speed(L, first, wide, v, first)
    put_still(s, D, rows, tolerance)
    for body in range(len(s.widths)):
        if s.still[body] == 0.0:
            for i in range(C.first[body], C.first[body] + s.widths[body]):
                v[i] = 0.0
