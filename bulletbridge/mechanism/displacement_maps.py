"""Differentials of displacements along the exponential maps, of configurations and of charts."""

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.mechanism.records import FREE, SPHERICAL, Body
from bulletbridge.numerics.records import Array, Records, Vector
from bulletbridge.numerics.spatial import (
    dexp,
    dexp_inverse,
    dexp_inverse_drift,
    quat_exp,
    rotation,
    transpose,
    vec,
)

CARRIED, TURNED, RATE_BY_V, RATE_BY_U = 0, 1, 2, 3
"""What the displaced configuration does if the one before is displaced, and if u changes; what the
rate of u changes by with v, and with u."""


@kernel
def displacement_maps(bodies: Records[Body], u: Array, v: Array, maps: Array) -> int:
    """Differentials of ``displace`` by u (nv,) over a unit of time, and of ``chart_rate`` at v.

    Writes the blocks of bodies that turn into maps (4, nv, nv), which are identities elsewhere, the
    last one zero.
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
    return 0


@helper
def put_column(block: Array, k: int, j: int, column: Vector) -> None:
    """Column j of the block of three from k on."""
    for i in range(3):
        block[k + i, k + j] = column[i]
