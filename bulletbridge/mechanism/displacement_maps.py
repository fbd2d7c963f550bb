"""Differentials of displacements along the exponential maps, of configurations and of charts."""

from bulletbridge.compilation.jit import helper
from bulletbridge.mechanism.records import FREE, SPHERICAL, Body
from bulletbridge.numerics.records import Array, Records, Vector
from bulletbridge.numerics.spatial import (
    apply,
    dexp,
    dexp_inverse,
    dexp_inverse_drift,
    mat,
    put,
    quat_exp,
    rotation,
    transpose,
    vec,
)

CARRIED, TURNED, RATE_BY_V, RATE_BY_U = 0, 1, 2, 3
"""What the displaced configuration does if the one before is displaced, and if u changes; what the
rate of u changes by with v, and with u."""


@helper
def put_displacement_maps(bodies: Records[Body], u: Array, v: Array, maps: Array) -> None:
    """Differentials of ``displace`` by u (nv,) over a unit of time, and of ``chart_rate`` at v.

    Writes what they do to the turns of each body that turns, a 3 x 3 block that stands in its lines
    of maps (4, nv, 3). Elsewhere they are identities, the last one zero.
    """
    for i in range(1, len(bodies)):
        k, joint = bodies[i].v, bodies[i].joint
        if joint != FREE and joint != SPHERICAL:
            continue
        side = 1.0 if joint == FREE else -1.0
        at, w = vec(u[k:]), vec(v[k:])
        x, y, z, s = quat_exp(at)
        R = rotation(x, y, z, s)
        if joint == SPHERICAL:
            R = transpose(R)
        for j in range(3):
            unit = (1.0 if j == 0 else 0.0), (1.0 if j == 1 else 0.0), (1.0 if j == 2 else 0.0)
            put_column(maps[CARRIED], k, j, transpose(R)[j])
            put_column(maps[TURNED], k, j, dexp(at, unit, side))
            put_column(maps[RATE_BY_V], k, j, dexp_inverse(at, unit, side))
            put_column(maps[RATE_BY_U], k, j, dexp_inverse_drift(at, unit, w, side))


@helper
def put_column(block: Array, k: int, j: int, column: Vector) -> None:
    """Column j of the block in lines k to k + 2."""
    for i in range(3):
        block[k + i, j] = column[i]


@helper
def turn_lines(bodies: Records[Body], blocks: Array, X: Array) -> None:
    """Apply one of the maps (nv, 3) to the columns of X (nv, n), in place."""
    for i in range(1, len(bodies)):
        k, joint = bodies[i].v, bodies[i].joint
        if joint != FREE and joint != SPHERICAL:
            continue
        R = mat(blocks[k:])
        for j in range(X.shape[1]):
            turned = apply(R, (X[k, j], X[k + 1, j], X[k + 2, j]))
            X[k, j], X[k + 1, j], X[k + 2, j] = turned


@helper
def turn_columns(bodies: Records[Body], blocks: Array, X: Array) -> None:
    """The same of the lines of X (n, nv): X <- X times the map."""
    for i in range(1, len(bodies)):
        k, joint = bodies[i].v, bodies[i].joint
        if joint != FREE and joint != SPHERICAL:
            continue
        R = transpose(mat(blocks[k:]))
        for j in range(X.shape[0]):
            put(X[j, k:], apply(R, vec(X[j, k:])))


@helper
def turns_alone(bodies: Records[Body], X: Array) -> None:
    """Leave of X (nv, n) the lines of turns of bodies that turn: the rest becomes zero."""
    for i in range(1, len(bodies)):
        first, last, joint = bodies[i].v, bodies[i].axis, bodies[i].joint
        if joint == FREE or joint == SPHERICAL:
            first += 3
        for k in range(first, last + 1):
            for j in range(X.shape[1]):
                X[k, j] = 0.0
