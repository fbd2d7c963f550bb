"""Motors, limits and contacts in the subspace that the constraints leave free.

The rows C are whitened and stripped of what the constraints forbid, so whatever impulses they get,
the constraints stay satisfied: they do not depend on how far the inequality solve has come.
"""

from typing import NamedTuple

from bulletbridge.constraints.bounded_rows import contact_rows, drive_rows, stop_rows
from bulletbridge.constraints.layout import Drive, Stop
from bulletbridge.formulations.arrays import Arrays, Factors
from bulletbridge.numerics.jit import inlined
from bulletbridge.numerics.mixed import Mixed, Outcome, solve_mixed
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.split import (
    add_row,
    inner,
    project_out,
    square,
    unwhiten,
    whiten_rows,
)

DEAD = 1e-18
"""Squared share of a row that the constraints leave, below which they forbid all of it."""


class Bounded(NamedTuple):
    """Bounded rows of a system, and the room to solve for their impulses."""

    drives: Records[Drive]
    stops: Records[Stop]
    touches: Array  # (contacts, columns) as in constraints.layout
    first: Array  # (contacts,) row of each normal
    C: Array  # (rows, nv)
    gained: Array  # (nv,) velocity that the impulses gave
    problem: Mixed


@inlined
def bound(a: Arrays, h: Bounded, q: Array, v: Array, before: Array) -> int:
    """All bounded rows of this step; v are the velocities without them. Number of rows."""
    dt, p = a.control.dt, h.problem
    n = drive_rows(h.drives, a.axes, q, v, dt, h.C, p.b, p.bounds)
    n = stop_rows(h.stops, a.axes, q, v, dt, n, h.C, p.b, p.bounds)
    return contact_rows(h.touches, a.bodies, a.axes, v, before, dt, n, h.C, p.b, p.bounds, h.first)


@inlined
def solve_bounded(f: Factors, h: Bounded, rank: int, n: int, tolerance: float, v: Array) -> Outcome:
    """Add the impulses of the first n rows to the velocities, in place.

    Args:
        f: Factors whose leading ``rank`` rows are forbidden.
        h: Rows as ``bound`` has left them.
        rank: Independent constraints.
        n: Bounded rows.
        tolerance: Residual [m/s or rad/s].
        v: (nv,)
    """
    C, p = h.C[:n], h.problem
    whiten_rows(f.L, C)
    for i in range(n):
        full = square(C, i)
        project_out(f.Y, rank, C[i])
        if square(C, i) < 0.01 * full:  # lost a digit: twice is enough
            project_out(f.Y, rank, C[i])
        if square(C, i) < DEAD * full:
            for k in range(C.shape[1]):
                C[i, k] = 0.0
    for i in range(n):
        for j in range(i + 1):
            p.D[i, j] = inner(C, j, C[i])
            p.D[j, i] = p.D[i, j]
    outcome = solve_mixed(p, n, tolerance)
    gained = h.gained
    for k in range(len(v)):
        gained[k] = 0.0
    for i in range(n):
        add_row(gained, p.x[i], C, i)
    unwhiten(f.L, gained)
    for k in range(len(v)):
        v[k] += gained[k]
    return outcome
