"""Elimination of clusters: subtrees whose constraints are their own, but for a trunk they hang on.

A leg, a finger or an ankle closes its loops itself. Its rates x are eliminated together with its
rows, as in ``projection``, and leave an inertia on the few rates u of the trunk. With M = Lᵀ L, the
lines of L of a cluster being T over the trunk and L over its own rates, w = T u + L x are its
whitened rates, and its rows, orthonormalised over these alone, are

    C u + Q w = R⁻¹ b,    Q Qᵀ = 1.

Given u, the w nearest to w₀ that meets them is w₀ + Qᵀ μ, μ = R⁻¹ b - C u - Q w₀; so all that is
left is (S + Σ Cᵀ C) u = s + Σ Cᵀ (R⁻¹ b - Q w₀), where S is the inertia of the trunk with all else
free, and s the force on it. Clusters know nothing of each other: cost grows with their number.

Source: Jain, Robot and Multibody Dynamics, ch. 16 (constraint embedding); Chignoli et al. 2023
(clusters that local loops make), here for rows that need not be independent.
"""

from typing import NamedTuple

from bulletbridge.compilation.jit import bundling, helper
from bulletbridge.numerics.projection import (
    Caps,
    Cuts,
    Row,
    add_row,
    factor_mass,
    inner,
    orthogonalise,
    unwhiten,
    whiten_force,
    whiten_rows,
    whiten_velocity,
)
from bulletbridge.numerics.records import Array, Ints, Records, Short, dtype_of

DEPENDENT = 1e-20
"""Squared length on the trunk, over that of the whole row, that is nothing: the row of a cluster
follows from the others of it."""

TRUNK = -1
"""In the place of a cluster: what is within the trunk."""


class Cluster:
    """Rates and rows that are eliminated together."""

    first: Short  # place of its first rate
    rates: Short  # their number (records of numpy have a size of their own)
    row: Short  # place of its first row
    rows: Short
    kept: Short  # of these, as found


CLUSTER = dtype_of(Cluster)


class Clusters(NamedTuple):
    """Plan, factors and scratch; the trunk has t rates, a cluster up to m."""

    clusters: Records[Cluster]
    rates: Ints  # (nv,) numbers of the rates: of the trunk, then cluster after cluster
    columns: Ints  # (nv,) of the rates: those of the trunk first, then those of its cluster
    numbers: Ints  # (rows,) of the rows of the system, cluster after cluster
    places: Ints  # (rows,) where each row of the system is in that order
    T: Array  # (nv, t) in the order of the rates; lines of the trunk are empty
    L: Array  # (nv, m) likewise
    B: Array  # (rows, t) rows on the trunk, in the order of the clusters
    C: Array  # (rows, t) the same, orthonormalised with those of the cluster
    Y: Array  # (rows, m): Q in the leading rows of each cluster
    R: Array  # (rows, most rows of one)
    rows: Records[Row]  # (rows,) of the splits, cluster after cluster
    S: Array  # (t, t) inertia of the trunk, lower triangle
    K: Array  # (t, t) factor of its inertia on the constraints
    u: Array  # (t,) rates of the trunk
    z: Array  # (m,) rates of a cluster
    line: Array  # (t + m,)
    N: Array  # (t, t) factor of S, for lengths of forces


@bundling
def lines(X: Array, one: Cluster) -> Array:
    """Lines of a cluster, in the order of the rates."""
    return X[one.first : one.first + one.rates]


@helper
def factor_clusters(e: Clusters) -> None:
    """Eliminate the rates of all clusters: takes M in T, L and S."""
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        L, T = lines(e.L, one), lines(e.T, one)
        factor_mass(L)
        if len(e.u) > 0:
            whiten_coupling(L, T)
            subtract_products(T, e.S)


@helper
def add_square(e: Clusters, owner: int, weight: float, row: Array) -> None:
    """M <- M + weight rowᵀ row, before it is eliminated, and row (nv,) to zero.

    Args:
        e: What M is put into.
        owner: The cluster whose rates the row moves, besides those of the trunk.
        weight: Of the square.
        row: Zero elsewhere.
    """
    t = len(e.u)
    take_trunk(e, row)
    for a in range(t):
        row[e.rates[a]] = 0.0
        for b in range(a + 1):
            e.S[a, b] += weight * e.u[a] * e.u[b]
    if owner == TRUNK:
        return
    one = e.clusters[owner]
    take_cluster(e, one, row)
    L, T = lines(e.L, one), lines(e.T, one)
    for k in range(one.rates):
        row[e.rates[one.first + k]] = 0.0
        x = weight * e.z[k]
        if x != 0.0:
            for a in range(t):
                T[k, a] += x * e.u[a]
            for i in range(k + 1):
                L[k, i] += x * e.z[i]


@helper
def whiten_coupling(L: Array, T: Array) -> None:
    """What couples a cluster to the trunk into whitened coordinates, T <- L⁻ᵀ T."""
    t = T.shape[1]
    for k in range(L.shape[0] - 1, -1, -1):
        for a in range(t):
            T[k, a] /= L[k, k]
        for i in range(k):
            x = L[k, i]
            if x != 0.0:
                for a in range(t):
                    T[i, a] -= x * T[k, a]


@helper
def subtract_products(T: Array, S: Array) -> None:
    """S <- S - Tᵀ T, the lower triangle."""
    for k in range(T.shape[0]):
        for a in range(T.shape[1]):
            x = T[k, a]
            if x != 0.0:
                for b in range(a + 1):
                    S[a, b] -= x * T[k, b]


@helper
def split_clusters(e: Clusters, rtol: float) -> int:
    """Eliminate the rows, too: takes them in B and Y; how many are independent, or -1.

    It is -1 where a row that follows from others of its cluster moves the trunk: it does not.

    Args:
        e: Clusters whose rates are eliminated.
        rtol: Length of a row, over the longest of its cluster, and over one, which that of all is
            near, below which it counts for nothing.
    """
    t, total = len(e.u), 0
    for a in range(t):
        for b in range(a + 1):
            e.K[a, b] = e.S[a, b]
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        if one.rows == 0:
            continue
        end = one.row + one.rows
        Y, R, rows = e.Y[one.row : end], e.R[one.row : end], e.rows[one.row : end]
        B, C = e.B[one.row : end], e.C[one.row : end]
        whiten_rows(lines(e.L, one), Y)
        if t > 0:
            take_coupling(Y, lines(e.T, one), B)
        caps = Caps(min(one.rows, one.rates), one.rows)
        one.kept = orthogonalise(Y, R, rows, caps, Cuts(rtol, rtol, 1.0))[1]
        total += one.kept
        if t > 0:
            if not follow(B, C, R, rows, one.kept, e.S):
                return -1
            for i in range(one.kept):
                for a in range(t):
                    for b in range(a + 1):
                        e.K[a, b] += C[i, a] * C[i, b]
    factor_mass(e.K)
    return total


@helper
def take_coupling(Y: Array, T: Array, B: Array) -> None:
    """B <- B - Y T: rows on the trunk, once those on the cluster are whitened."""
    for i in range(Y.shape[0]):
        for k in range(T.shape[0]):
            x = Y[i, k]
            if x != 0.0:
                for a in range(T.shape[1]):
                    B[i, a] -= x * T[k, a]


@helper
def follow(B: Array, C: Array, R: Array, rows: Records[Row], kept: int, S: Array) -> bool:
    """Do to the rows on the trunk what was done to those on the cluster, C <- R⁻¹ B.

    False if a row that follows from others on the cluster moves the trunk.
    """
    t = C.shape[1]
    for i in range(C.shape[0]):
        pivot = rows[i].pivot
        for a in range(t):
            C[i, a] = B[pivot, a]
        for k in range(min(i, kept)):
            x = R[i, k]
            if x != 0.0:
                for a in range(t):
                    C[i, a] -= x * C[k, a]
        if i < kept:
            for a in range(t):
                C[i, a] /= R[i, i]
        else:
            length2 = 0.0
            for a in range(t):
                length2 += C[i, a] * C[i, a] / S[a, a]
            if not length2 <= DEPENDENT * rows[i].full:
                return False
    return True


@helper
def take_trunk(e: Clusters, x: Array) -> None:
    """Rates (nv,) of the trunk into u."""
    for a in range(len(e.u)):
        e.u[a] = x[e.rates[a]]


@helper
def put_trunk(e: Clusters, x: Array) -> None:
    """Rates of the trunk back from u."""
    for a in range(len(e.u)):
        x[e.rates[a]] = e.u[a]


@helper
def take_cluster(e: Clusters, one: Cluster, x: Array) -> None:
    """Rates of a cluster into z."""
    for k in range(one.rates):
        e.z[k] = x[e.rates[one.first + k]]
    for k in range(one.rates, len(e.z)):
        e.z[k] = 0.0


@helper
def put_cluster(e: Clusters, one: Cluster, x: Array) -> None:
    """Rates of a cluster back from z."""
    for k in range(one.rates):
        x[e.rates[one.first + k]] = e.z[k]


@helper
def whiten_forces(e: Clusters, x: Array) -> None:
    """Forces (nv,) into s and w₀, in place."""
    take_trunk(e, x)
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        T = lines(e.T, one)
        take_cluster(e, one, x)
        whiten_force(lines(e.L, one), e.z)
        put_cluster(e, one, x)
        if len(e.u) > 0:
            for k in range(one.rates):
                for a in range(len(e.u)):
                    e.u[a] -= e.z[k] * T[k, a]
    put_trunk(e, x)


@helper
def add_trunk(e: Clusters, one: Cluster, sign: float) -> None:
    """Add what the trunk does to the whitened rates of a cluster, z <- z + sign T u."""
    T = lines(e.T, one)
    if len(e.u) > 0:
        for k in range(one.rates):
            total = 0.0
            for a in range(len(e.u)):
                total += T[k, a] * e.u[a]
            e.z[k] += sign * total


@helper
def whiten_velocities(e: Clusters, x: Array) -> float:
    """Velocities (nv,) into s = S u and w₀, in place; twice their kinetic energy."""
    t, total = len(e.u), 0.0
    take_trunk(e, x)
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        take_cluster(e, one, x)
        whiten_velocity(lines(e.L, one), e.z)
        add_trunk(e, one, 1.0)
        put_cluster(e, one, x)
        for k in range(one.rates):
            total += e.z[k] * e.z[k]
    for a in range(t):
        s = 0.0
        for b in range(t):
            s += (e.S[a, b] if b <= a else e.S[b, a]) * e.u[b]
        x[e.rates[a]] = s
        total += e.u[a] * s
    return total


@helper
def take_rows(e: Clusters, y: Array) -> None:
    """Right sides b at the places of rows into R⁻¹ b, in place."""
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        part, R = y[one.row : one.row + one.kept], e.R[one.row : one.row + one.kept]
        for i in range(one.kept):
            for k in range(i):
                part[i] -= R[i, k] * part[k]
            part[i] /= R[i, i]


@helper
def solve_clusters(e: Clusters, x: Array, y: Array) -> float:
    """Of s and w₀, in x (nv,), make the nearest velocity that meets R⁻¹ b, in y, which is lost.

    Returns:
        Twice the kinetic energy of that velocity.
    """
    t, u = len(e.u), e.u
    take_trunk(e, x)
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        take_cluster(e, one, x)
        for i in range(one.row, one.row + one.kept):
            share = y[i] - inner(e.Y, i, e.z)
            y[i] = share
            for a in range(t):
                u[a] += share * e.C[i, a]
    whiten_force(e.K, u)
    unwhiten(e.K, u)
    return follow_trunk(e, x, y)


@helper
def follow_trunk(e: Clusters, x: Array, y: Array) -> float:
    """Of the trunk's rates, in u, and w, in x, whose rows lack y, make velocities (nv,) in x.

    Returns:
        Twice the kinetic energy of that velocity.
    """
    t, u, total = len(e.u), e.u, 0.0
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        take_cluster(e, one, x)
        for i in range(one.row, one.row + one.kept):
            share = y[i]
            for a in range(t):
                share -= e.C[i, a] * u[a]
            add_row(e.z, share, e.Y, i)
        for k in range(one.rates):
            total += e.z[k] * e.z[k]
        add_trunk(e, one, -1.0)
        unwhiten(lines(e.L, one), e.z)
        put_cluster(e, one, x)
    put_trunk(e, x)
    for a in range(t):
        for b in range(a):
            total += 2.0 * e.S[a, b] * u[a] * u[b]
        total += e.S[a, a] * u[a] * u[a]
    return total


@helper
def prepare_lengths(e: Clusters) -> None:
    """Factor the trunk's inertia, for ``length_squared``."""
    t = len(e.u)
    for a in range(t):
        for b in range(a + 1):
            e.N[a, b] = e.S[a, b]
    factor_mass(e.N)


@helper
def length_squared(e: Clusters, x: Array) -> float:
    """Squared length in the metric of M⁻¹ of forces that are s and w₀, in x (nv,)."""
    t, total = len(e.u), 0.0
    take_trunk(e, x)
    whiten_force(e.N, e.u)
    for a in range(t):
        total += e.u[a] * e.u[a]
    for place in range(t, len(x)):
        w = x[int(e.rates[place])]
        total += w * w
    return total


@helper
def admit_clusters(e: Clusters, x: Array) -> None:
    """Of s and w₀, in x (nv,), what moves what is free: (1 - Qᵀ Q) w₀ and K⁻ᵀ (s - Σ Cᵀ Q w₀).

    Scalar products of these are those of forces in the metric of P M⁻¹, K = Lᵀ L.
    """
    t, u = len(e.u), e.u
    take_trunk(e, x)
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        take_cluster(e, one, x)
        full = square_of(e.z)
        if full == 0.0:
            continue
        left, passes = 0.0, 0
        while passes == 0 or (passes == 1 and left < 0.01 * full):  # twice is enough
            for i in range(one.row, one.row + one.kept):
                share = inner(e.Y, i, e.z)
                add_row(e.z, -share, e.Y, i)
                for a in range(t):
                    u[a] -= share * e.C[i, a]
            left, passes = square_of(e.z), passes + 1
        put_cluster(e, one, x)
    whiten_force(e.K, u)
    put_trunk(e, x)


@helper
def release_clusters(e: Clusters, x: Array, y: Array) -> None:
    """Velocities (nv,) of what ``admit_clusters`` makes, in place; y (rows,) is lost."""
    for i in range(len(e.numbers)):
        y[i] = 0.0
    take_trunk(e, x)
    unwhiten(e.K, e.u)
    follow_trunk(e, x, y)


@helper
def square_of(z: Array) -> float:
    """Squared length of a vector."""
    total = 0.0
    for k in range(len(z)):
        total += z[k] * z[k]
    return total
