"""Laws of control in compiled code: free motions at a state, what laws ask of them, joint forces.

Plain matrices in and out, so that trees and systems that others wrote take the same way. In
whitened coordinates y = L x, with the rows' directions Q and free ones V, no law depends on which
basis of the free motions is taken.

Source: Aghili 2008, eq. 29-49; Kövecses and Piedbœuf 2003, eq. 27.
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.constraints.records import Target
from bulletbridge.constraints.row_rates import RowRecords, jacobian_rate
from bulletbridge.constraints.rows import jacobian
from bulletbridge.mechanism.dynamics import mass_matrix
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.rates import TreeRates, coriolis_matrix
from bulletbridge.mechanism.records import Axis, Beam, Body, Pose, Station
from bulletbridge.numerics.projection import (
    Caps,
    Cuts,
    Row,
    add_row,
    factor_profile,
    inner,
    orthogonalise,
    row_space_solution,
    unwhiten,
    whiten_rows,
    whiten_velocity,
)
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import copy_into
from bulletbridge.numerics.turns import put_turn

COMPUTED_TORQUE, PASSIVITY_BASED, PUBLISHED = 0, 1, 2
V, WANTED_V, WANTED_VDOT, APART, APART_RATE, FORCE = 0, 1, 2, 3, 4, 5
"""Vectors (nv,) that a tracking law is given."""
GIVEN = 6
RIGHT, ERROR = 0, 1
"""Vectors (dof,) that it finds."""
FOUND = 8
RTOL = 1e-9
"""Part of a demand that may be missed: what is left of double precision after two solves."""


class SplitMotion(NamedTuple):
    """Velocity space at a state, split by rows: M = Lᵀ L, S J L⁻¹ = R Q.

    Attributes:
        L: (nv, nv) given M.
        Q: (nc, nv) given the rows in one unit; of them the first ``ranks[0]`` are of use.
        R: (nc, nc) lower triangular; below the rank what the other rows have of Q.
        rows: (nc,) their pivots; levels are given.
        V: (nv, nv) of which the first ``ranks[1]`` rows are the free directions, whitened.
        free: (nv, nv) the same as velocities, L⁻¹ V.
        ranks: (2,) of the rows, and the degrees of freedom.
        turns: (nv, nv) given the Coriolis matrix C. Below and on the diagonal L̇ L⁻¹, above it
            what L⁻ᵀ C L⁻¹ - L̇ L⁻¹, which is skew, has there.
        moved: (nc, nv) given the rate of the rows; of V its rate is -Qᵀ moved.
    """

    L: Array
    Q: Array
    R: Array
    rows: Records[Row]
    V: Array
    free: Array
    ranks: Ints
    turns: Array
    moved: Array


class Room(NamedTuple):
    """What is overwritten.

    Attributes:
        wide: (nc, nv).
        flat: (4, nc, nc).
        of_all: (nc,) of level 0, and
        of_asked: (nc,) likewise.
    """

    wide: Array
    flat: Array
    of_all: Records[Row]
    of_asked: Records[Row]


@kernel
def split_motion(s: SplitMotion, caps: Caps, rtol: float, rates: bool, room: Room) -> bool:
    """Split velocity space, and find how the split changes if ``rates`` are asked for.

    Returns:
        Whether the mass matrix is positive definite.
    """
    factor_profile(s.L)
    for k in range(len(s.L)):
        if not s.L[k, k] > 0.0:
            return False
    whiten_rows(s.L, s.Q)
    rank = orthogonalise(s.Q, s.R, s.rows, caps, Cuts(rtol, rtol, 0.0))[1]
    n = len(s.L)
    s.ranks[0], s.ranks[1] = rank, n - rank
    put_complement(s, rank, room)
    for i in range(n - rank):
        copy_into(s.free[i], s.V[i])
        unwhiten(s.L, s.free[i])
    if rates:
        put_turns(s)
        put_moved(s, rank, room.wide)
    return True


class TreeToSplit(NamedTuple):
    """A tree with its rows: what stays, and what is overwritten.

    Attributes:
        bodies: (nb,)
        beams: Overwritten, and
        stations: likewise,
        poses: (nb,) likewise,
        axes: (nv,) likewise.
        rows: Of loops and couplings.
        targets: Prescribed motions at the time.
        unit: (nc,) factors that bring rows to one unit.
        rates: Overwritten.
    """

    bodies: Records[Body]
    beams: Records[Beam]
    stations: Records[Station]
    poses: Records[Pose]
    axes: Records[Axis]
    rows: RowRecords
    targets: Records[Target]
    unit: Array
    rates: TreeRates


@kernel
def split_tree(
    tree: TreeToSplit, q: Array, v: Array, s: SplitMotion, caps: Caps, rtol: float, room: Room
) -> bool:
    """``split_motion`` of a tree at q (nq,) that moves at v (nv,), with rates.

    Of the split nothing but the levels of its rows is given.
    """
    bodies, beams, stations, poses, axes, rows, targets, unit, rates = tree
    kinematics(bodies, beams, stations, q, poses, axes)
    mass_matrix(bodies, beams, stations, poses, axes, s.L)
    jacobian(rows.loops, rows.couplings, rows.terms, poses, axes, targets, s.Q, s.rows)
    coriolis_matrix(bodies, beams, stations, poses, axes, v, rates, s.turns)
    jacobian_rate(rows, poses, axes, targets, rates, v, s.moved)
    for i in range(len(unit)):
        for k in range(len(axes)):
            s.Q[i, k] *= unit[i]
            s.moved[i, k] *= unit[i]
    return split_motion(s, caps, rtol, True, room)


@helper
def put_complement(s: SplitMotion, rank: int, room: Room) -> None:
    """Orthonormal rows of V on which Q vanishes, by reflections that take Q to units.

    Source: Golub and Van Loan, Matrix Computations, 5.2.
    """
    n, mirrors = len(s.L), room.wide
    for k in range(rank):
        u = mirrors[k]
        copy_into(u, s.Q[k])
        for i in range(k):
            add_row(u, -2.0 * inner(mirrors, i, u), mirrors, i)
        for j in range(k):
            u[j] = 0.0
        size = math.sqrt(inner(mirrors, k, u))
        u[k] += size if u[k] >= 0.0 else -size
        size = 1.0 / math.sqrt(inner(mirrors, k, u))
        for j in range(n):
            u[j] *= size
    for i in range(n - rank):
        for j in range(n):
            s.V[i, j] = 0.0
        s.V[i, rank + i] = 1.0
        for k in range(rank - 1, -1, -1):
            add_row(s.V[i], -2.0 * inner(mirrors, k, s.V[i]), mirrors, k)


@helper
def put_turns(s: SplitMotion) -> None:
    """L⁻ᵀ C L⁻¹ and from it L̇ L⁻¹: together they are symmetric, and L̇ L⁻¹ is a triangle."""
    B, n = s.turns, len(s.L)
    whiten_rows(s.L, B)
    for i in range(n):
        for j in range(i):
            B[i, j], B[j, i] = B[j, i], B[i, j]
    whiten_rows(s.L, B)  # transposed
    for i in range(n):
        for j in range(i):
            x, y = B[i, j], B[j, i]
            B[i, j], B[j, i] = x + y, x


@helper
def put_moved(s: SplitMotion, rank: int, W: Array) -> None:
    """R⁻¹ d(S J)/dt L⁻¹ - Q L̇ L⁻¹, of the rows that were kept."""
    n = len(s.L)
    whiten_rows(s.L, s.moved)
    for i in range(rank):
        copy_into(W[i], s.moved[s.rows[i].pivot])
        for k in range(i):
            add_row(W[i], -s.R[i, k], W, k)
        for j in range(n):
            W[i, j] /= s.R[i, i]
    for i in range(rank):
        for j in range(n):
            total = W[i, j]
            for k in range(j, n):
                total -= s.Q[i, k] * s.turns[k, j]
            s.moved[i, j] = total


@helper
def reduce_velocity(s: SplitMotion, x: Array, y: Array, out: Array) -> None:
    """Quasi-velocities (dof,) of a velocity x (nv,), and L x into y."""
    copy_into(y, x)
    whiten_velocity(s.L, y)
    for i in range(s.ranks[1]):
        out[i] = inner(s.V, i, y)


@helper
def add_reduced_rate(s: SplitMotion, y: Array, z: Array, factor: float, out: Array) -> None:
    """Add what quasi-velocities of x, y = L x, change by as the basis does; z is overwritten."""
    n = len(y)
    for i in range(n):
        total = 0.0
        for j in range(i + 1):
            total += s.turns[i, j] * y[j]
        z[i] = total
    for k in range(s.ranks[0]):
        add_row(z, -inner(s.Q, k, y), s.moved, k)
    for i in range(s.ranks[1]):
        out[i] += factor * inner(s.V, i, z)


@helper
def add_turned_error(s: SplitMotion, error: Array, y: Array, z: Array, out: Array) -> None:
    """Take S times the velocity error (dof,) away; y and z (nv,) are overwritten."""
    n = len(y)
    for j in range(n):
        y[j] = z[j] = 0.0
    for i in range(s.ranks[1]):
        add_row(y, error[i], s.V, i)
    for i in range(n):
        for j in range(i + 1, n):
            z[i] += s.turns[i, j] * y[j]
            z[j] -= s.turns[i, j] * y[i]
    for i in range(s.ranks[1]):
        out[i] -= inner(s.V, i, z)


@helper
def put_products(A: Array, n: int, B: Array, m: int, out: Array) -> None:
    """out (n, m) <- A Bᵀ of the first rows."""
    for i in range(n):
        for j in range(m):
            out[i, j] = inner(B, j, A[i])


@helper
def put_alignment(now: SplitMotion, there: SplitMotion, turns: Array, shares: Array) -> float:
    """The rotation of there's basis to now's into turns[0], its rate into turns[1]; nearness."""
    dof, rank, rank_there = now.ranks[1], now.ranks[0], there.ranks[0]
    C, rate, left, right = turns[2], turns[3], shares[0], shares[1]
    put_products(there.V, dof, now.V, dof, C)
    for i in range(dof):
        for j in range(dof):
            rate[i, j] = 0.0
    put_products(there.V, dof, there.moved, rank_there, left)
    put_products(now.V, dof, there.Q, rank_there, right)
    take_products(left, right, rank_there, rate)
    put_products(there.V, dof, now.Q, rank, left)
    put_products(now.V, dof, now.moved, rank, right)
    take_products(left, right, rank, rate)
    return put_turn(C, rate, turns[0], turns[1], turns[4:])


@helper
def take_products(left: Array, right: Array, n: int, rate: Array) -> None:
    """rate <- rate - left rightᵀ, of the first n columns."""
    for i in range(len(rate)):
        for j in range(len(rate)):
            for k in range(n):
                rate[i, j] -= left[i, k] * right[j, k]


@helper
def put_own_reference(
    now: SplitMotion, there: SplitMotion, given: Array, found: Array, room: tuple[Array, Array]
) -> float:
    """Quasi-velocity of the wanted motion there, turned to now's basis, and its rate."""
    dof = now.ranks[1]
    y, z, own, own_rate = found[2], found[3], found[4], found[5]
    turns, shares = room
    nearness = put_alignment(now, there, turns, shares)
    reduce_velocity(there, given[WANTED_VDOT], y, own_rate)
    reduce_velocity(there, given[WANTED_V], y, own)
    add_reduced_rate(there, y, z, 1.0, own_rate)
    for j in range(dof):
        found[6, j] = found[7, j] = 0.0
        for i in range(dof):
            found[6, j] += turns[0, i, j] * own[i]
            found[7, j] += turns[1, i, j] * own[i] + turns[0, i, j] * own_rate[i]
    return nearness


@kernel
def track(
    now: SplitMotion,
    there: SplitMotion,
    law: int,
    gains: Array,
    given: Array,
    found: Array,
    room: tuple[Array, Array],
) -> float:
    """What a tracking law asks of the joint forces, V L⁻ᵀ tau, and its velocity error v_r - s.

    Args:
        now: At the state, with rates.
        there: At the wanted one, for the published law; anything for the others.
        law: Which.
        gains: (2,) K_p, K_d.
        given: (GIVEN, nv).
        found: (FOUND, nv).
        room: (7, dof, dof) and (2, dof, nc), for the published law.

    Returns:
        How near the wanted basis is to the present one; 1 for the other laws.
    """
    n, dof, nearness = len(now.L), now.ranks[1], 1.0
    right, error = found[RIGHT], found[ERROR]
    y, z, x, own = found[2], found[3], found[4], found[5]
    if law == PUBLISHED:
        nearness = put_own_reference(now, there, given, found, room)
        for j in range(n):
            x[j] = -gains[0] * given[APART, j]
        reduce_velocity(now, x, y, own)
        for i in range(dof):
            error[i], right[i] = -found[6, i] - own[i], found[7, i]
        add_reduced_rate(now, y, z, 1.0, right)
        reduce_velocity(now, given[APART_RATE], y, own)
        for i in range(dof):
            right[i] -= gains[0] * own[i]
    else:
        for j in range(n):
            x[j] = given[WANTED_VDOT, j] - gains[0] * given[APART_RATE, j]
        reduce_velocity(now, x, y, right)
        for j in range(n):
            x[j] = given[WANTED_V, j] - gains[0] * given[APART, j]
        reduce_velocity(now, x, y, own)
        add_reduced_rate(now, y, z, 1.0, right)
        for i in range(dof):
            error[i] = -own[i]
    reduce_velocity(now, given[V], y, own)
    add_reduced_rate(now, y, z, -1.0, right)
    for i in range(dof):
        error[i] += own[i]
        right[i] -= gains[1] * error[i] + inner(now.free, i, given[FORCE])
    if law != COMPUTED_TORQUE:
        add_turned_error(now, error, y, z, right)
    return nearness


class Demand(NamedTuple):
    """What joint forces are to do, D tau = r, and what they may.

    Attributes:
        D: (m + nc, nv) the first m rows given; those of multipliers are put after them. Of length
            one afterwards.
        r: (m + nc,) likewise.
        size: (m + nc,) lengths that the rows had.
        lam: (nc,) multipliers that are asked for, over the units of their rows; NaN for others.
        f: (nv,) forces other than tau.
        gamma: (nc,) accelerations of the rows at v̇ = 0, in one unit.
        weights: (nv,) of the norm of tau that is least; 0 for rates that no force may act on.
        within: (m + nc, nv) overwritten, and
        R: (m + nc, m + nc), and
        rows: (m + nc,) of level 0, and
        y: (m + nc,).
    """

    D: Array
    r: Array
    size: Array
    lam: Array
    f: Array
    gamma: Array
    weights: Array
    within: Array
    R: Array
    rows: Records[Row]
    y: Array


@kernel
def distribute(s: SplitMotion, d: Demand, m: int, tau: Array, room: Room) -> tuple[int, bool]:
    """The least joint forces tau (nv,) with D tau = r; how many rows there are, and if they do it.

    Args:
        s: At the state.
        d: What is asked.
        m: How many rows are given.
        tau: Found.
        room: Overwritten.
    """
    end, n = m, len(tau)
    for j in range(len(d.lam)):
        if not math.isnan(d.lam[j]):
            end = put_multiplier_rows(s, d, m, room)
            break
    for i in range(end):
        size = math.sqrt(inner(d.D, i, d.D[i]))
        d.size[i] = size if size > 0.0 else 1.0
        d.r[i] /= d.size[i]
        for j in range(n):
            d.D[i, j] /= d.size[i]
            d.within[i, j] = d.D[i, j] / d.weights[j] if d.weights[j] > 0.0 else 0.0
    most = min(end, n)
    cuts = Cuts(RTOL, RTOL, 0.0)
    rank = orthogonalise(d.within[:end], d.R, d.rows, Caps(most, most), cuts)[1]
    for i in range(rank):
        d.y[i] = d.r[d.rows[i].pivot]
    row_space_solution(d.within, d.R, rank, d.y, tau)
    for j in range(n):
        tau[j] = tau[j] / d.weights[j] if d.weights[j] > 0.0 else 0.0
    return end, is_met(d, end, tau)


@helper
def is_met(d: Demand, end: int, tau: Array) -> bool:
    """Whether D tau is r but for what two solves lose."""
    asked = largest = force = missed = 0.0
    for j in range(len(tau)):
        force = max(force, abs(tau[j]))
    for i in range(end):
        asked = max(asked, abs(d.r[i]))
        missed = max(missed, abs(d.r[i] - inner(d.D, i, tau)))
        for j in range(len(tau)):
            largest = max(largest, abs(d.D[i, j]))
    return missed <= RTOL * (asked + largest * force)


@helper
def put_multiplier_rows(s: SplitMotion, d: Demand, m: int, room: Room) -> int:
    """Rows after the first m that hold the multipliers asked for; how many there are then.

    The shortest multipliers over units are Zᵀ z with R_2 z = Q F, where F is what the rows supply,
    whitened, and R_2 Z = Aᵀ, A what the rows have of Q. Of multipliers that share a load only what
    determines it is looked at: the nearest to those asked for that there are.
    """
    rank, nc = s.ranks[0], len(s.rows)
    Z, R_2, H, R_3 = room.flat[0], room.flat[1], room.flat[2], room.flat[3]
    for i in range(nc):
        for k in range(rank):
            Z[k, s.rows[i].pivot] = s.R[i, k] if k <= i else 0.0
    caps, cuts = Caps(rank, rank), Cuts(RTOL, RTOL, 0.0)
    orthogonalise(Z[:rank], R_2, room.of_all, caps, cuts)
    for k in range(rank):
        for j in range(nc):
            H[k, j] = 0.0 if math.isnan(d.lam[j]) else Z[k, j]
    found = orthogonalise(H[:rank], R_3, room.of_asked, caps, cuts)[1]
    put_loads(s, d, R_2, room)
    for c in range(found):
        D, right = d.D[m + c], 0.0
        for j in range(len(D)):
            D[j] = 0.0
        for i in range(c, rank):
            k = room.of_asked[i].pivot
            add_row(D, R_3[i, c], room.wide, k)
            right += R_3[i, c] * d.y[k]
        for j in range(nc):
            if not math.isnan(d.lam[j]):
                right -= H[c, j] * d.lam[j]
        d.r[m + c] = right
    return m + found


@helper
def put_loads(s: SplitMotion, d: Demand, R_2: Array, room: Room) -> None:
    """z without joint forces into d.y (rank,), and what each of them takes from it: room.wide."""
    rank, free_of_forces = s.ranks[0], d.size
    for i in range(rank):
        total = -d.gamma[s.rows[i].pivot]
        for k in range(i):
            total -= s.R[i, k] * free_of_forces[k]
        free_of_forces[i] = total / s.R[i, i]
    for i in range(rank):
        k, E = room.of_all[i].pivot, room.wide[i]
        copy_into(E, s.Q[k])
        unwhiten(s.L, E)
        d.y[i] = free_of_forces[k] - inner(room.wide, i, d.f)
        for c in range(i):
            add_row(E, -R_2[i, c], room.wide, c)
            d.y[i] -= R_2[i, c] * d.y[c]
        for j in range(len(E)):
            E[j] /= R_2[i, i]
        d.y[i] /= R_2[i, i]
