"""Motors, limits and contacts in the subspace that the constraints leave free.

The rows C are whitened and stripped of what the constraints forbid, so whatever impulses they get,
the constraints stay satisfied: they do not depend on how far the inequality solve has come.
"""

from typing import NamedTuple

from bulletbridge.constraints.bounded_rows import contact_rows, drive_rows, stop_rows
from bulletbridge.constraints.guide_rows import guide_rows, pull_rows
from bulletbridge.constraints.layout import Coupling, Drive, Loop, Pull, Stop, Target, Term
from bulletbridge.formulations.arrays import PREDICTED_Q, Arrays, Factors
from bulletbridge.mechanism.kinematics import displace, kinematics
from bulletbridge.numerics.jit import inlined
from bulletbridge.numerics.mixed import Mixed
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.split import (
    Row,
    add_row,
    inner,
    project_out,
    square,
    unwhiten,
    whiten_rows,
)

DEAD = 1e-18
"""Squared share of a row that the constraints leave, below which they forbid all of it."""


class Along(NamedTuple):
    """Free motions of loop joints."""

    loops: Records[Loop]  # one row each
    couplings: Records[Coupling]  # none
    terms: Records[Term]
    rows: Records[Row]  # .g: positions
    G: Array  # (guides, nv)
    targets: Records[Target]


class Soft(NamedTuple):
    """Constraints that give way."""

    pulls: Records[Pull]
    loops: Records[Loop]
    couplings: Records[Coupling]
    terms: Records[Term]
    rows: Records[Row]
    targets: Records[Target]


class Bounded(NamedTuple):
    """Bounded rows of a system, and the room to solve for their impulses."""

    drives: Records[Drive]
    stops: Records[Stop]
    along: Along
    soft: Soft
    touches: Array  # (contacts, columns) as in constraints.layout
    first: Array  # (contacts,) row of each normal
    C: Array  # (rows, nv)
    raw: Array  # (rows, nv) the same before they are whitened
    gained: Array  # (nv,) velocity that the impulses gave
    problem: Mixed


@inlined
def bound(a: Arrays, h: Bounded, q: Array, v: Array, before: Array) -> tuple[int, int]:
    """All bounded rows of this step; v are the velocities without them.

    Returns:
        Number of rows, and the first of the constraints that give way.
    """
    dt, p, along, soft = a.control.dt, h.problem, h.along, h.soft
    if len(along.loops) > 0:
        guide_rows(
            along.loops,
            along.couplings,
            along.terms,
            a.poses,
            a.axes,
            along.targets,
            along.G,
            along.rows,
        )
    n = drive_rows(h.drives, along.rows, along.G, a.axes, q, v, dt, h.C, p.b, p.bounds)
    n = stop_rows(h.stops, along.rows, along.G, a.axes, q, v, dt, n, h.C, p.b, p.bounds)
    first = n
    if len(soft.pulls) > 0:
        n = pull_rows(
            soft.pulls,
            soft.loops,
            soft.couplings,
            soft.terms,
            a.poses,
            a.axes,
            soft.targets,
            soft.rows,
            q,
            v,
            dt,
            n,
            h.C,
            p.b,
            p.bounds,
        )
    if len(h.touches) > 0:
        predicted = a.vectors[PREDICTED_Q, : len(q)]
        displace(a.bodies, q, v, dt, predicted)
        kinematics(a.bodies, predicted, a.poses, a.axes)
        n = contact_rows(h.touches, a.bodies, a.axes, v, before, dt, n, h.C, p.b, p.bounds, h.first)
    return n, first


@inlined
def condense(f: Factors, h: Bounded, rank: int, n: int) -> None:
    """The matrix of the mixed problem: the first n rows, less what is forbidden.

    Args:
        f: Factors whose leading ``rank`` rows are forbidden.
        h: Rows as ``bound`` has left them; they are whitened.
        rank: Independent constraints.
        n: Bounded rows.
    """
    C, p = h.C[:n], h.problem
    for i in range(n):
        for k in range(C.shape[1]):
            h.raw[i, k] = C[i, k]
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


@inlined
def add_impulses(f: Factors, h: Bounded, n: int, v: Array) -> None:
    """Add what the impulses of the first n rows do to the velocities, in place."""
    gained = h.gained
    for k in range(len(v)):
        gained[k] = 0.0
    for i in range(n):
        add_row(gained, h.problem.x[i], h.C, i)
    unwhiten(f.L, gained)
    for k in range(len(v)):
        v[k] += gained[k]
