"""The Euler step by elimination in link coordinates: the same equations as ``step``, other factors.

What needs a decision (a row that may be redundant here, a correction that gains too little) is not
decided here: the state before the step is restored and the step handed over to ``step.run``, whose
ranks and guards hold for both.
"""

import math

from bulletbridge.constraints.layout import Coupling, Loop, Target, Term
from bulletbridge.constraints.placements import (
    constant_rows,
    frames,
    position_in,
    variable_direction,
)
from bulletbridge.constraints.prescribed import prescribed_rates
from bulletbridge.constraints.rows import residuals
from bulletbridge.formulations.arrays import (
    CONTRADICTED,
    CORRECTION,
    DONE,
    FORCE,
    HANDED_OVER,
    OF_LINKS,
    RIGHT_SIDE,
    SOLUTION,
    START_Q,
    START_V,
    Arrays,
    Control,
    Moment,
)
from bulletbridge.formulations.correction import FAILED, MOST_CHORD_PASSES, finite, tolerance
from bulletbridge.formulations.projector import applied_forces, take_springs
from bulletbridge.mechanism.dynamics import composite_inertias
from bulletbridge.mechanism.inertias import own_inertia
from bulletbridge.mechanism.kinematics import axis_twist, displace, kinematics
from bulletbridge.mechanism.layout import Axis, Beam, Body, Lump, Pose, Station
from bulletbridge.numerics.algebra import (
    Pair,
    add,
    apply,
    cross,
    momentum,
    mul,
    power,
    scale,
    transpose,
    vec,
)
from bulletbridge.numerics.front_factors import factorise
from bulletbridge.numerics.front_solutions import carry, row_rates, solve, twice_kinetic_energy
from bulletbridge.numerics.fronts import Elimination, Front, Join
from bulletbridge.numerics.jit import helper, inlined, kernel
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.split import Row
from bulletbridge.simulation.step import put_record


@kernel
def run_links(
    fronts: Records[Front],
    around: Ints,
    widths: Ints,
    places: Ints,
    joins: Records[Join],
    numbers: Ints,
    kept: Ints,
    basis: Array,
    motion: Array,
    inertia: Array,
    extra: Array,
    wrench: Array,
    left: Array,
    factors: Array,
    W: Array,
    column: Array,
    y: Array,
    twists: Array,
    right: Array,
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    lumps: Records[Lump],
    poses: Records[Pose],
    axes: Records[Axis],
    loops: Records[Loop],
    couplings: Records[Coupling],
    terms: Records[Term],
    user_jacobian: Array,
    rows: Array,
    vectors: Array,
    state: Array,
    control: Records[Control],
    targets: Array,
    tau: Array,
    record: Array,
    first: int,
    steps: int,
) -> int:
    """Do steps ``first`` to ``steps``: DONE, a failure, or HANDED_OVER at step ``control.done``.

    The arrays of the elimination are those of ``fronts.Elimination``; basis (k, 6) spans the twists
    of the links, twists (2, nb, k). The others are those of ``step.run``.
    """
    nv, nq = len(axes), len(state) - len(axes) - 1
    c = control[0]
    e = Elimination(
        fronts, around, widths, places, joins, numbers, kept, motion, inertia, extra, wrench,
        left, factors, W, column, y, twists[0], twists[1], right,
    )  # fmt: skip
    a = Arrays(
        bodies, beams, stations, lumps, poses, axes, loops, couplings, terms, user_jacobian,
        rows[2], vectors, c,
    )  # fmt: skip
    q, v = state[:nq], state[nq : nq + nv]
    t0 = state[nq + nv] - first * c.dt
    every = steps // len(record) if len(record) > 0 else 0
    take_springs(c, c.dt if c.implicit else 0.0)
    for n in range(first, steps):
        c.done = n
        for j in range(nq):
            vectors[START_Q, j] = q[j]
        for j in range(nv):
            vectors[START_V, j] = v[j]
        end = Moment(t0 + (n + 1) * c.dt, targets[min(n + 1, len(targets) - 1)])
        if c.fresh != OF_LINKS:
            start = Moment(t0 + n * c.dt, targets[min(n, len(targets) - 1)])
            poses_and_gaps(a, rows[0], start, q)
            c.failure = prepare(a, e, basis, rows[0], start)
        if c.failure == DONE:
            step(a, e, basis, rows[0], end, q, v, tau[min(n, len(tau) - 1)])
        if c.failure != DONE:
            for j in range(nq):
                q[j] = vectors[START_Q, j]
            for j in range(nv):
                v[j] = vectors[START_V, j]
            c.fresh = 0
            return c.failure
        state[nq + nv] = end.t
        c.done = n + 1
        if every > 0 and (n + 1) % every == 0:
            put_record(record[(n + 1) // every - 1], state, c)
    return DONE


@inlined
def step(
    a: Arrays,
    e: Elimination,
    basis: Array,
    rows: Records[Row],
    end: Moment,
    q: Array,
    v: Array,
    tau: Array,
) -> None:
    """``semi_implicit_euler`` and ``finish`` with the factors of an elimination."""
    c, nv = a.control, len(v)
    force, none = a.vectors[FORCE, :nv], a.vectors[RIGHT_SIDE]
    x, multipliers = a.vectors[SOLUTION, :nv], a.vectors[RIGHT_SIDE]
    correction = a.vectors[CORRECTION, :nv]
    applied_forces(a, q, v, tau, force)
    for i in range(len(rows)):
        none[i] = 0.0
    solve(e, force, none, x, multipliers)
    for k in range(nv):
        v[k] += c.dt * x[k]
        correction[k] = 0.0
    displace(a.bodies, q, v, c.dt, q)
    c.guarded = 0
    c.correction_passes = correct(a, e, rows, end, q, v)
    if c.correction_passes == FAILED or not finite(v) or not finite(q):
        c.failure = HANDED_OVER
        return
    c.failure = prepare(a, e, basis, rows, end)
    if c.failure != DONE:
        return
    for k in range(nv):
        v[k] += correction[k] / c.dt
    filter_velocity(a, e, rows, v)
    c.fresh = OF_LINKS
    if dependent_gap(e, rows) > c.mismatch:
        c.failure = CONTRADICTED
    if not finite(v):
        c.failure = HANDED_OVER


@helper
def poses_and_gaps(a: Arrays, rows: Records[Row], moment: Moment, q: Array) -> None:
    """Poses and residuals at q."""
    kinematics(a.bodies, a.beams, a.stations, q, a.poses, a.axes)
    residuals(a.loops, a.couplings, a.terms, a.poses, a.axes, moment.targets, q, rows)


@helper
def prepare(a: Arrays, e: Elimination, basis: Array, rows: Records[Row], moment: Moment) -> int:
    """Factors at the poses; DONE, or HANDED_OVER for a rank that is not what it should be."""
    c, k = a.control, basis.shape[0]
    composite_inertias(a.bodies, a.beams, a.stations, a.poses)
    for i in range(len(a.axes)):
        axis = a.axes[i]
        twist = axis_twist(axis)
        for m in range(k):
            e.motion[i, m] = power((vec(basis[m]), vec(basis[m, 3:])), twist)
        e.extra[i] = 0.0
        if axis.stiffness != 0.0:
            e.extra[i] = c.ahead * (axis.damping + c.ahead * axis.stiffness)
    for i in range(len(e.fronts)):
        put_inertia(a, e, basis, e.fronts[i])
    for i in range(len(e.joins)):
        join = e.joins[i]
        put_wrenches(a, e, join, moment.targets, basis, rows)
    prescribed_rates(a.loops, a.couplings, a.poses, moment.targets, rows)
    least = factorise(e)
    rank = 0
    for i in range(len(rows)):
        rank += e.kept[i]
    c.rank, c.filter_rank = rank, rank
    if least < 0.0 or rank != c.cap:
        return HANDED_OVER
    c.margin = math.sqrt(least)
    return DONE


@helper
def put_inertia(a: Arrays, e: Elimination, basis: Array, front: Front) -> None:
    """Inertia of a body in its coordinates: its rates if it hangs from the world, or its twist."""
    inertia = own_inertia(a.poses[front.body])
    for m in range(front.own if front.own > 0 else front.size):
        push = momentum(inertia, unit_twist(a, basis, front.own, front.v, m))
        for n in range(m + 1):
            along = unit_twist(a, basis, front.own, front.v, n)
            e.inertia[front.body, m, n] = power(push, along)


@helper
def unit_twist(a: Arrays, basis: Array, own: int, first: int, m: int) -> Pair:
    """Twist of a body when coordinate m of its own is one."""
    if own > 0:
        return vec(basis[m]), vec(basis[m, 3:])
    return axis_twist(a.axes[first + m])


@helper
def put_wrenches(
    a: Arrays,
    e: Elimination,
    join: Join,
    targets: Records[Target],
    basis: Array,
    rows: Records[Row],
) -> None:
    """Rows of a loop, scaled, on the coordinates of its bodies."""
    loop = a.loops[join.loop]
    frame, point = frames(loop, a.poses, targets)
    up, constant = transpose(frame[0]), constant_rows(loop)
    for i in range(loop.rows):
        along = vec(loop.moment[i]), vec(loop.force[i])
        if i == constant:
            along = variable_direction(loop, mul(up, point[0]), position_in(frame, point))
        unit, row = rows[loop.row + i].scale, loop.row + i
        force = scale(unit, apply(frame[0], along[1]))
        moment = add(scale(unit, apply(frame[0], along[0])), cross(point[1], force))
        for m in range(join.width_a):
            twist = unit_twist(a, basis, join.own_a, join.first_a, m)
            e.wrench[row, 0, m] = -power((moment, force), twist)
        for m in range(join.width_b):
            twist = unit_twist(a, basis, join.own_b, join.first_b, m)
            e.wrench[row, 1, m] = power((moment, force), twist)


@inlined
def correct(a: Arrays, e: Elimination, rows: Records[Row], end: Moment, q: Array, v: Array) -> int:
    """``correction.chord_passes`` with the factors of an elimination."""
    nv = len(a.axes)
    y, x = a.vectors[RIGHT_SIDE], a.vectors[SOLUTION, :nv]
    none, correction = a.vectors[FORCE, :nv], a.vectors[CORRECTION, :nv]
    enough, limit = tolerance(a, q), a.control.guard_floor
    last = math.inf
    for k in range(nv):
        none[k] = 0.0
    for n in range(MOST_CHORD_PASSES + 1):
        poses_and_gaps(a, rows, end, q)
        gap = kept_gap(e, rows)
        a.control.gap = gap
        if gap <= enough:
            return n
        if n == MOST_CHORD_PASSES or not gap < 0.1 * last:
            return n if gap <= 10.0 * enough else FAILED
        if n == 0:
            limit += 0.1 * a.control.dt * math.sqrt(twice_kinetic_energy(e, v))
        last = gap
        for i in range(len(rows)):
            e.right[i] = rows[i].scale * rows[i].g
        solve(e, none, e.right, x, y)
        length2 = 0.0
        for i in range(len(rows)):
            length2 -= y[i] * rows[i].scale * rows[i].g
        if not length2 <= limit * limit:
            return FAILED
        displace(a.bodies, q, x, -1.0, q)
        for k in range(nv):
            correction[k] -= x[k]
    return FAILED


@helper
def kept_gap(e: Elimination, rows: Records[Row]) -> float:
    """Largest residual of the rows solved for, each divided by its unit."""
    gap = 0.0
    for i in range(len(rows)):
        size = abs(rows[i].unit * rows[i].g)
        if e.kept[i] and (size > gap or math.isnan(size)):  # a NaN stays
            gap = size
    return gap


@helper
def dependent_gap(e: Elimination, rows: Records[Row]) -> float:
    """Largest residual of the rows that should follow from the others."""
    gap = 0.0
    for i in range(len(rows)):
        if not e.kept[i]:
            gap = max(gap, abs(rows[i].unit * rows[i].g))
    return gap


@inlined
def filter_velocity(a: Arrays, e: Elimination, rows: Records[Row], v: Array) -> None:
    """The nearest velocity in the metric of M that the constraints allow: v <- P v - J⁺ g_t."""
    nv = len(v)
    none, x, y = a.vectors[FORCE, :nv], a.vectors[SOLUTION, :nv], a.vectors[RIGHT_SIDE]
    carry(e, v)
    row_rates(e, e.right)
    for i in range(len(rows)):
        e.right[i] = -e.right[i] - rows[i].scale * rows[i].g_t
    for k in range(nv):
        none[k] = 0.0
    solve(e, none, e.right, x, y)
    for k in range(nv):
        v[k] += x[k]
