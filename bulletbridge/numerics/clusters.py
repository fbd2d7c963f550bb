"""Elimination of clusters: subtrees whose constraints are their own, but for a trunk they hang on.

A leg, a finger or an ankle closes its loops itself. Its rates x are eliminated together with its
rows, as in ``projection``, and leave an inertia on the few rates u of the trunk. From its leaves
down, M = Uᵀ D U, U unit upper triangular, and what couples a cluster to the trunk is eliminated
with it, in the same lines: with D^½ times those on the trunk being T, and L = D^½ U, w = T u + L x
are its whitened rates, and its rows, orthonormalised over these alone, are

    C u + Q w = R⁻¹ b,    Q Qᵀ = 1.

Given u, the w nearest to w₀ that meets them is w₀ + Qᵀ μ, μ = R⁻¹ b - C u - Q w₀; so all that is
left is (S + Σ Cᵀ C) u = s + Σ Cᵀ (R⁻¹ b - Q w₀), where S is the inertia of the trunk with all else
free, and s the force on it. Clusters know nothing of each other: cost grows with their number. All
lines are whole blocks, zero beyond what they have.

Source: Jain, Robot and Multibody Dynamics, ch. 16 (constraint embedding); Chignoli et al. 2023
(clusters that local loops make), here for rows that need not be independent.
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.block_sizes import LANES
from bulletbridge.compilation.jit import (
    add_lines,
    clear_blocks,
    exchange_blocks,
    helper,
    inner_blocks,
    inner_lines,
    multiply_blocks,
    outlined,
    scale_after,
    subtract_blocks,
    take_away_lines,
    take_lines,
    take_lines_down,
    take_lines_from,
)
from bulletbridge.numerics.projection import Caps, Cuts, Row, RowAlgebra, orthogonalising
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
    """Plan, factors and scratch of n clusters of up to m rates, on t of the trunk, in whole blocks.

    Lines of m + t have the numbers of a cluster, then those of the trunk.
    """

    clusters: Records[Cluster]
    rates: Ints  # (nv,) numbers of the rates: of the trunk, then of the clusters, leaves first
    columns: Ints  # (nv,) of the rates, in lines of m + t
    numbers: Ints  # (rows,) of the rows of the system, cluster after cluster
    L: Array  # (nv, m + t) M, then U, in the order of the rates; lines of the trunk are empty
    V: Array  # (n (m + t), m) columns of the same, cluster after cluster
    roots: Array  # (2, n, m) those of D, and their inverses
    B: Array  # (rows, m + t) rows, in the order of the system
    C: Array  # (rows, t) their part on the trunk, orthonormalised with that of the cluster
    Y: Array  # (rows, m): Q in the leading rows of each cluster
    R: Array  # (rows, most rows of one)
    rows: Records[Row]  # (rows,) of the splits, cluster after cluster
    S: Array  # (rates of the trunk, t) its inertia
    K: Array  # (2, rates of the trunk, t) lines and columns of its inertia on the constraints
    N: Array  # (rates of the trunk, t) lines of S, for lengths of forces
    inverses: Array  # (2, t) of the roots of K, and of N
    u: Array  # (2, t) rates of the trunk, and room
    Z: Array  # (n, m + t) rates of the clusters
    W: Array  # (n, m) whitened ones
    shares: Array  # (rows,)


@helper
def trunk_size(e: Clusters) -> int:
    """Rates of the trunk."""
    return int(e.clusters[0].first)


@helper
def line_size(e: Clusters) -> int:
    """Numbers of a line: those of a cluster, then those of the trunk."""
    return e.L.shape[1]


@helper
def own_size(e: Clusters) -> int:
    """Numbers of a line that are of a cluster."""
    return e.Y.shape[1]


@helper
def own_blocks(e: Clusters) -> int:
    """Blocks of them."""
    return e.Y.shape[1] // LANES


@helper
def trunk_blocks(e: Clusters) -> int:
    """Blocks of the trunk's numbers."""
    return e.C.shape[1] // LANES


@helper
def column_line(e: Clusters, n: int) -> int:
    """The first column of cluster n: of its own rates, then, from ``own_size`` on, of the trunk."""
    return n * line_size(e)


@helper
def eliminate(X: Array, first: int, count: int, k: int) -> float:
    """Eliminate variable k of ``count``, whose lines begin at line ``first`` of X; its pivot.

    Its line is that over the pivot then, without itself and those before. Of what these lines say
    only the upper triangle counts, so that blocks before the diagonal are left, and so are lines of
    other branches, whose shares are zero.
    """
    size, blocks = X.shape[1], X.shape[1] // LANES
    line, pivot = (first + k) * size, X[first + k, k]
    inverse = 1.0 / pivot
    for i in range(k + 1, count):
        share = inverse * X[first + k, i]
        if share != 0.0:
            left = i // LANES
            begin = LANES * left
            subtract_blocks(X, (first + i) * size + begin, share, X, line + begin, blocks - left)
    scale_after(X, line, inverse, X, line, k, blocks)
    return pivot


@outlined
def factor_clusters(e: Clusters) -> None:
    """Eliminate the rates of all clusters: takes M in L and S, the upper triangles."""
    t, size, m, blocks = trunk_size(e), line_size(e), own_size(e), trunk_blocks(e)
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        for k in range(one.rates):
            place = one.first + k
            pivot = eliminate(e.L, one.first, one.rates, k)
            for a in range(t):
                share = pivot * e.L[place, m + a]
                subtract_blocks(e.S, a * e.S.shape[1], share, e.L, place * size + m, blocks)
            root = math.sqrt(pivot)
            e.roots[0, n, k], e.roots[1, n, k] = root, 1.0 / root
        line = column_line(e, n)
        for k in range(one.rates):
            for i in range(k):
                e.V[line + k, i] = e.L[one.first + i, k]
        for a in range(t):
            for i in range(one.rates):
                e.V[line + m + a, i] = e.L[one.first + i, m + a]
    for a in range(t):
        for b in range(a):
            e.S[a, b] = e.S[b, a]


@helper
def add_square(e: Clusters, owner: int, weight: float, row: Array) -> None:
    """M <- M + weight rowᵀ row, before it is eliminated, and row (nv,) to zero.

    Args:
        e: What M is put into.
        owner: The cluster whose rates the row moves, besides those of the trunk.
        weight: Of the square.
        row: Zero elsewhere.
    """
    t, m = trunk_size(e), own_size(e)
    take_trunk(e, row)
    for a in range(t):
        row[e.rates[a]] = 0.0
        for b in range(a, t):
            e.S[a, b] += weight * e.u[0, a] * e.u[0, b]
    if owner == TRUNK:
        return
    one = e.clusters[owner]
    take_cluster(e, owner, row)
    for k in range(one.rates):
        row[e.rates[one.first + k]] = 0.0
        x = weight * e.Z[owner, k]
        if x != 0.0:
            for i in range(k, one.rates):
                e.L[one.first + k, i] += x * e.Z[owner, i]
            for a in range(t):
                e.L[one.first + k, m + a] += x * e.u[0, a]


@helper
def factor_trunk(e: Clusters, X: Array, n: int) -> None:
    """Eliminate the trunk's rates in lines X; its inverse roots are to be the ones of number n."""
    for a in range(trunk_size(e)):
        e.inverses[n, a] = 1.0 / math.sqrt(eliminate(X, 0, trunk_size(e), a))


@helper
def put_inertia_of_trunk(e: Clusters, X: Array) -> None:
    """X <- S."""
    for a in range(trunk_size(e)):
        scale_after(X, a * X.shape[1], 1.0, e.S, a * X.shape[1], -1, trunk_blocks(e))


@helper
def square_of_blocks(Y: Array, i: int) -> float:
    """Squared length of row i."""
    size = Y.shape[1]
    return inner_blocks(Y, i * size, Y, i * size, size // LANES)


@helper
def normalise_blocks(Y: Array, R: Array, k: int, length: float) -> None:
    """Divide row k by its length; its products with all after it, the last one again, into R[i, k].

    Products are those of the row before, times the inverse: they need not wait for that.
    """
    i, last, size, s = k + 1, Y.shape[0] - 1, Y.shape[1], 1.0 / length
    while i <= last:
        x = inner_lines(Y, i, last, k)
        R[i, k], R[min(i + 1, last), k] = s * x[0], s * x[1]
        R[min(i + 2, last), k], R[min(i + 3, last), k] = s * x[2], s * x[3]
        R[min(i + 4, last), k], R[min(i + 5, last), k] = s * x[4], s * x[5]
        R[min(i + 6, last), k], R[min(i + 7, last), k] = s * x[6], s * x[7]
        i += LANES
    scale_after(Y, k * size, s, Y, k * size, -1, size // LANES)


@helper
def take_blocks_away_again(Y: Array, R: Array, i: int, end: int) -> None:
    """What rows to before ``end`` explain of row i by round-off, into R, and away."""
    size = Y.shape[1]
    for k in range(end):
        s = inner_blocks(Y, i * size, Y, k * size, size // LANES)
        R[i, k] += s
        subtract_blocks(Y, i * size, s, Y, k * size, size // LANES)


@helper
def exchange_rows_of_blocks(Y: Array, i: int, k: int) -> None:
    """Exchange two rows."""
    exchange_blocks(Y, i * Y.shape[1], k * Y.shape[1], Y.shape[1] // LANES)


orthogonalise = orthogonalising(
    RowAlgebra(
        square_of_blocks,
        normalise_blocks,
        take_away_lines,
        take_blocks_away_again,
        exchange_rows_of_blocks,
    )
)


@outlined
def split_clusters(e: Clusters, rtol: float) -> int:
    """Eliminate the rows, too: takes them in B; how many are independent, or -1.

    It is -1 where a row that follows from others of its cluster moves the trunk: it does not.

    Args:
        e: Clusters whose rates are eliminated.
        rtol: Length of a row, over the longest of its cluster, and over one, which that of all is
            near, below which it counts for nothing.
    """
    t, total, size, m = trunk_size(e), 0, line_size(e), own_size(e)
    blocks, T = trunk_blocks(e), e.C.shape[1]
    K = e.K[0]
    put_inertia_of_trunk(e, K)
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        if one.rows == 0:
            continue
        end = one.row + one.rows
        for i in range(one.row, end):
            number = int(e.numbers[i])
            begin, row = 0, e.B[number]
            while begin < one.rates and row[begin] == 0.0:
                begin += 1
            take_lines_from(begin, row, e.L, one.first * size, one.rates, size // LANES)
            scale_after(e.Y, i * m, 1.0, e.B, number * size, -1, own_blocks(e))
            multiply_blocks(e.Y, i * m, e.roots[1], n * m, own_blocks(e))
        Y, R, rows = e.Y[one.row : end], e.R[one.row : end], e.rows[one.row : end]
        caps = Caps(min(one.rows, one.rates), one.rows)
        one.kept = orthogonalise(Y, R, rows, caps, Cuts(rtol, rtol, 1.0))[1]
        total += one.kept
        if t > 0:
            if not follow(e, one):
                return -1
            for i in range(one.row, one.row + one.kept):
                for a in range(t):
                    subtract_blocks(K, a * T, -e.C[i, a], e.C, i * T, blocks)
    factor_trunk(e, K, 0)
    for a in range(t):
        for b in range(a):
            e.K[1, a, b] = K[b, a]
    return total


@helper
def follow(e: Clusters, one: Cluster) -> bool:
    """Do to the rows on the trunk what was done to those on the cluster, C <- R⁻¹ B.

    False if a row that follows from others on the cluster moves the trunk.
    """
    T, blocks = e.C.shape[1], trunk_blocks(e)
    for i in range(one.rows):
        place = one.row + i
        row = e.rows[place]
        source = int(e.numbers[one.row + row.pivot]) * line_size(e) + own_size(e)
        scale_after(e.C, place * T, 1.0, e.B, source, -1, blocks)
        for k in range(min(i, one.kept)):
            subtract_blocks(e.C, place * T, e.R[place, k], e.C, (one.row + k) * T, blocks)
        if i < one.kept:
            scale_after(e.C, place * T, 1.0 / e.R[place, i], e.C, place * T, -1, blocks)
        else:
            length2 = 0.0
            for a in range(trunk_size(e)):
                length2 += e.C[place, a] * e.C[place, a] / e.S[a, a]
            if not length2 <= DEPENDENT * row.full:
                return False
    return True


@helper
def take_trunk(e: Clusters, x: Array) -> None:
    """Rates (nv,) of the trunk into u."""
    clear_blocks(e.u, 0, trunk_blocks(e))
    for a in range(trunk_size(e)):
        e.u[0, a] = x[e.rates[a]]


@helper
def put_trunk(e: Clusters, x: Array) -> None:
    """Rates of the trunk back from u."""
    for a in range(trunk_size(e)):
        x[e.rates[a]] = e.u[0, a]


@helper
def take_cluster(e: Clusters, n: int, x: Array) -> bool:
    """Rates of cluster n into its line of Z; whether there is anything."""
    one, found = e.clusters[n], 0.0
    clear_blocks(e.Z, n * line_size(e), own_blocks(e))
    for k in range(one.rates):
        value = x[e.rates[one.first + k]]
        e.Z[n, k] = value
        found += abs(value)
    return found != 0.0


@helper
def put_cluster(e: Clusters, n: int, z: Array, x: Array) -> None:
    """Rates of cluster n back from a line z."""
    one = e.clusters[n]
    for k in range(one.rates):
        x[e.rates[one.first + k]] = z[k]


@helper
def whiten_cluster(e: Clusters, n: int) -> None:
    """Forces on cluster n, in Z, into w₀, and, beside them, what they add to those on the trunk."""
    one, size, m = e.clusters[n], line_size(e), own_size(e)
    clear_blocks(e.Z, n * size + m, trunk_blocks(e))
    take_lines(e.Z[n], e.L, one.first * size, one.rates, size // LANES)
    multiply_blocks(e.Z, n * size, e.roots[1], n * m, own_blocks(e))


@outlined
def whiten_forces(e: Clusters, x: Array) -> None:
    """Forces (nv,) into s and w₀, in place."""
    size, m = line_size(e), own_size(e)
    take_trunk(e, x)
    for n in range(len(e.clusters)):
        if not take_cluster(e, n, x):
            continue
        whiten_cluster(e, n)
        subtract_blocks(e.u, 0, -1.0, e.Z, n * size + m, trunk_blocks(e))
        put_cluster(e, n, e.Z[n], x)
    put_trunk(e, x)


@outlined
def whiten_velocities(e: Clusters, x: Array) -> float:
    """Velocities (nv,) into s = S u and w₀, in place; twice their kinetic energy."""
    total, size, m = 0.0, line_size(e), own_size(e)
    take_trunk(e, x)
    for n in range(len(e.clusters)):
        line = column_line(e, n)
        take_cluster(e, n, x)
        scale_after(e.W, n * m, 1.0, e.Z, n * size, -1, own_blocks(e))
        count = e.clusters[n].rates
        add_lines(e.W, n * m, e.Z, n * size, e.V, line * m, count, own_blocks(e))
        add_lines(e.W, n * m, e.u, 0, e.V, (line + m) * m, trunk_size(e), own_blocks(e))
        multiply_blocks(e.W, n * m, e.roots[0], n * m, own_blocks(e))
        total += inner_blocks(e.W, n * m, e.W, n * m, own_blocks(e))
        put_cluster(e, n, e.W[n], x)
    for a in range(trunk_size(e)):
        s = inner_blocks(e.S, a * e.S.shape[1], e.u, 0, trunk_blocks(e))
        x[e.rates[a]] = s
        total += e.u[0, a] * s
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
    size, m = line_size(e), own_size(e)
    take_trunk(e, x)
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        take_cluster(e, n, x)
        for i in range(one.row, one.row + one.kept):
            y[i] -= inner_blocks(e.Y, i * m, e.Z, n * size, own_blocks(e))
    return solve_trunk(e, x, y)


@helper
def meet_rows(e: Clusters, x: Array, y: Array) -> float:
    """The same of no force and no velocity: the least velocity x (nv,) that meets R⁻¹ b."""
    clear_blocks(e.u, 0, trunk_blocks(e))
    clear_blocks(e.Z, 0, len(e.clusters) * (line_size(e) // LANES))
    return solve_trunk(e, x, y)


@outlined
def solve_trunk(e: Clusters, x: Array, y: Array) -> float:
    """The same of s in u, w₀ in Z, and what these leave of R⁻¹ b."""
    T, blocks = e.C.shape[1], trunk_blocks(e)
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        add_lines(e.u, 0, y, one.row, e.C, one.row * T, one.kept, blocks)
    take_lines(e.u[0], e.K[0], 0, trunk_size(e), blocks)
    multiply_blocks(e.u, 0, e.inverses, 0, blocks)
    return follow_trunk(e, x, y)


@helper
def follow_trunk(e: Clusters, x: Array, y: Array) -> float:
    """Of the trunk's rates, in u, K^½ times, and w, in Z, whose rows lack y, make velocities in x.

    Returns:
        Twice the kinetic energy of these (nv,).
    """
    t, total, size, m = trunk_size(e), 0.0, line_size(e), own_size(e)
    T, blocks = e.C.shape[1], trunk_blocks(e)
    multiply_blocks(e.u, 0, e.inverses, 0, blocks)
    take_lines_down(e.u[0], e.K[1], 0, t, blocks)
    scale_after(e.u, T, -1.0, e.u, 0, -1, blocks)
    for n in range(len(e.clusters)):
        one, line = e.clusters[n], column_line(e, n)
        for i in range(one.row, one.row + one.kept):
            y[i] -= inner_blocks(e.C, i * T, e.u, 0, blocks)
        add_lines(e.Z, n * size, y, one.row, e.Y, one.row * m, one.kept, own_blocks(e))
        total += inner_blocks(e.Z, n * size, e.Z, n * size, own_blocks(e))
        multiply_blocks(e.Z, n * size, e.roots[1], n * m, own_blocks(e))
        add_lines(e.Z, n * size, e.u, T, e.V, (line + m) * m, t, own_blocks(e))
        take_lines_down(e.Z[n], e.V, line * m, one.rates, own_blocks(e))
        put_cluster(e, n, e.Z[n], x)
    put_trunk(e, x)
    for a in range(t):
        total += e.u[0, a] * inner_blocks(e.S, a * T, e.u, 0, blocks)
    return total


@helper
def prepare_lengths(e: Clusters) -> None:
    """Factor the trunk's inertia, for lengths of forces."""
    put_inertia_of_trunk(e, e.N)
    factor_trunk(e, e.N, 1)


@outlined
def restrict_clusters(e: Clusters, x: Array, first: int, end: int, free: Array) -> float:
    """Of forces x (nv,) what moves what is free: K^-½ (s - Σ Cᵀ Q w₀) and (1 - Qᵀ Q) w₀ of each.

    Scalar products of these, which go to ``free`` in the order of the trunk and the clusters, are
    those of forces in the metric of P M⁻¹. x is on the trunk and
    clusters from ``first`` to before ``end``.

    Returns:
        The squared length of x in the metric of M⁻¹.
    """
    size, m, T, blocks = line_size(e), own_size(e), e.C.shape[1], trunk_blocks(e)
    take_trunk(e, x)
    scale_after(e.u, T, 1.0, e.u, 0, -1, blocks)
    total = 0.0
    for k in range(len(x)):
        free[k] = 0.0
    for n in range(first, end):
        one = e.clusters[n]
        if not take_cluster(e, n, x):
            continue
        whiten_cluster(e, n)
        for line in range(2):
            subtract_blocks(e.u, line * T, -1.0, e.Z, n * size + m, blocks)
        full = inner_blocks(e.Z, n * size, e.Z, n * size, own_blocks(e))
        total += full
        left, passes = 0.0, 0
        while passes == 0 or (passes == 1 and left < 0.01 * full):  # twice is enough
            for i in range(one.row, one.row + one.kept):
                e.shares[i] = -inner_blocks(e.Y, i * m, e.Z, n * size, own_blocks(e))
            add_lines(e.Z, n * size, e.shares, one.row, e.Y, one.row * m, one.kept, own_blocks(e))
            add_lines(e.u, 0, e.shares, one.row, e.C, one.row * T, one.kept, blocks)
            left = inner_blocks(e.Z, n * size, e.Z, n * size, own_blocks(e))
            passes += 1
        put_free(e.Z[n], free, one.first, one.rates)
    take_lines(e.u[1], e.N, 0, trunk_size(e), blocks)
    multiply_blocks(e.u, T, e.inverses, T, blocks)
    total += inner_blocks(e.u, T, e.u, T, blocks)
    take_lines(e.u[0], e.K[0], 0, trunk_size(e), blocks)
    multiply_blocks(e.u, 0, e.inverses, 0, blocks)
    put_free(e.u[0], free, 0, trunk_size(e))
    return total


@helper
def cluster_of(e: Clusters, k: int, near: int) -> int:
    """Number of the cluster that a rate is of, looked for from ``near`` on; TRUNK if of none."""
    count, column = len(e.clusters), e.columns[k]
    for m in range(count):
        n = (near + m) % count
        one = e.clusters[n]
        if column < one.rates and e.rates[one.first + column] == k:
            return n
    return TRUNK


@helper
def put_free(z: Array, free: Array, first: int, count: int) -> None:
    """Write so many numbers of a line to where they begin."""
    for k in range(count):
        free[first + k] = z[k]


@helper
def release_clusters(e: Clusters, x: Array, y: Array) -> None:
    """Velocities (nv,) of what ``restrict_clusters`` makes, in place; y (rows,) is lost."""
    for i in range(len(e.numbers)):
        y[i] = 0.0
    clear_blocks(e.u, 0, trunk_blocks(e))
    put_free(x, e.u[0], 0, trunk_size(e))
    for n in range(len(e.clusters)):
        one = e.clusters[n]
        clear_blocks(e.Z, n * line_size(e), own_blocks(e))
        put_free(x[one.first :], e.Z[n], 0, one.rates)
    follow_trunk(e, x, y)
