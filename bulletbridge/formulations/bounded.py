"""Motors, limits and contacts in the subspace that the constraints leave free.

The rows C are whitened and stripped of what the constraints forbid, so whatever impulses they get,
the constraints stay satisfied: they do not depend on how far the inequality solve has come.
"""

import math
from typing import NamedTuple

from bulletbridge.constraints.bounded_rows import Asked, drive_rows, stop_rows
from bulletbridge.constraints.contact_rows import contact_rows
from bulletbridge.constraints.guide_rows import guide_rows, pull_rows
from bulletbridge.constraints.layout import Coupling, Drive, Loop, Pull, Stop, Target, Term
from bulletbridge.formulations.arrays import PREDICTED_Q, Arrays, Factors
from bulletbridge.formulations.restitution import bounce_share, is_usable, work_of
from bulletbridge.mechanism.kinematics import displace, kinematics
from bulletbridge.numerics.jit import call_back, helper, outlined
from bulletbridge.numerics.mixed import Outcome
from bulletbridge.numerics.mixed_rows import Mixed
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.rest import Rest, solve_resting
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
    touches: Array  # (contacts, columns) as in mechanism.layout
    first: Array  # (contacts,) row of each normal
    C: Array  # (rows, nv)
    raw: Array  # (rows, nv) the same before they are whitened
    gained: Array  # (nv,) velocity that the impulses gave
    moving: Array  # (nv,) velocity of the prediction; then that of moving apart alone
    resting: Array  # (rows,) impulses without restitution; then those of the velocity
    asked: Asked
    problem: Mixed
    rest: Rest
    callback: int  # address of what solves in place of the compiled solver, or 0
    report: Array  # (1,) residual that it leaves


class Solved(NamedTuple):
    """How the impulses of a step were found."""

    residual: float
    sweeps: int
    newton: int
    work: float  # of limits and contacts [J], by the mean of the velocities before and after
    apart: int  # whether the bodies move apart


@outlined
def bound(a: Arrays, h: Bounded, q: Array, v: Array, before: Array) -> tuple[int, int, int]:
    """All bounded rows of this step; v are the velocities without them.

    h.moving holds the velocities of the prediction at which contacts were found.

    Returns:
        Number of rows, the first of the constraints that give way, and the first of what only
        pushes: limits and contacts.
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
    pulled = drive_rows(h.drives, along.rows, along.G, a.axes, q, v, dt, h.C, p.b, p.bounds)
    n = pulled
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
    skip = n
    n = stop_rows(
        h.stops, along.rows, along.G, a.axes, q, v, before, dt, n, h.C, p.b, p.bounds, h.asked
    )
    if len(h.touches) > 0:
        predicted = a.vectors[PREDICTED_Q, : len(q)]
        displace(a.bodies, q, h.moving, dt, predicted)
        kinematics(a.bodies, a.beams, a.stations, predicted, a.poses, a.axes)
        n = contact_rows(
            h.touches,
            a.bodies,
            a.axes,
            v,
            h.moving,
            before,
            dt,
            n,
            h.C,
            p.b,
            p.bounds,
            h.first,
            h.asked,
        )
    return n, pulled, skip


@helper
def solve(h: Bounded, n: int, tolerance: float) -> Outcome:
    """Solve the mixed problem, here or in Python."""
    if h.callback == 0:
        return solve_resting(h.problem, h.rest, n, tolerance)
    call_back(h.callback, n)
    return Outcome(h.report[0], 0, 0)


@outlined
def solve_bounded(
    f: Factors, h: Bounded, rank: int, n: int, skip: int, tolerance: float, v: Array
) -> Solved:
    """Add the impulses of the first n rows to the velocities, in place.

    Args:
        f: Factors whose leading ``rank`` rows are forbidden.
        h: Rows as ``bound`` has left them; ``moving`` is what moves bodies out of each other, and
            is not part of their velocity.
        rank: Independent constraints.
        n: Bounded rows.
        skip: The first of limits and contacts.
        tolerance: Residual [m/s or rad/s].
        v: (nv,)
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
    bounces, apart = 0, 0
    for i in range(skip, n):
        bounces += h.asked.bounce[i] != 0.0
        apart += h.asked.recover[i] != 0.0
    outcome = solve(h, n, tolerance)
    residual, sweeps, newton = outcome.residual, outcome.sweeps, outcome.newton
    share = 0.0
    if bounces > 0:
        for i in range(n):
            h.resting[i] = p.x[i]
        for i in range(skip, n):
            p.b[i] += h.asked.bounce[i]
        outcome = solve(h, n, tolerance)
        sweeps, newton = sweeps + outcome.sweeps, newton + outcome.newton
        for i in range(skip, n):
            p.b[i] -= h.asked.bounce[i]
        if is_usable(outcome.residual, tolerance, h.asked.bounce, skip, n):
            residual = max(residual, outcome.residual)
            share = bounce_share(p, h.asked, h.resting, skip, n)
        for i in range(n):
            p.x[i] = h.resting[i] + share * (p.x[i] - h.resting[i])
    work = work_of(p, h.asked, h.resting, skip, n, 0.0, True)
    add_impulses(f, C, p.x, n, h.gained)
    for k in range(len(v)):
        v[k] += h.gained[k]
    if apart > 0:
        for i in range(n):
            h.resting[i] = p.x[i]
        for i in range(skip, n):
            p.b[i] += outermost(share * h.asked.bounce[i], h.asked.recover[i])
        outcome = solve(h, n, tolerance)
        sweeps, newton = sweeps + outcome.sweeps, newton + outcome.newton
        if is_usable(outcome.residual, tolerance, h.asked.recover, skip, n):
            residual = max(residual, outcome.residual)
            for i in range(n):
                p.x[i] -= h.resting[i]
            add_impulses(f, C, p.x, n, h.moving)
        else:
            apart = 0
        for i in range(n):
            p.x[i] = h.resting[i]
    return Solved(residual, sweeps, newton, work, apart)


@helper
def outermost(a: float, b: float) -> float:
    """Whichever of two numbers of one sign is further from zero."""
    return a if math.fabs(a) > math.fabs(b) else b


@helper
def add_impulses(f: Factors, C: Array, x: Array, n: int, gained: Array) -> None:
    """Velocity (nv,) that the impulses of the first n rows give, C whitened."""
    for k in range(len(gained)):
        gained[k] = 0.0
    for i in range(n):
        add_row(gained, x[i], C, i)
    unwhiten(f.L, gained)
