"""Expansion of the equations of motion in the deflections of beams, by a compiled stencil."""

from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.constraints.records import Loop
from bulletbridge.mechanism.dynamics import bias, mass_matrix, put_gravity
from bulletbridge.mechanism.inertias import rigid_acceleration
from bulletbridge.mechanism.kinematics import axis_twist, kinematics, pose_twist
from bulletbridge.mechanism.records import Axis, Beam, Body, Effort, Pose, Station
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import add, apply, mat, scale, vec, velocity_at

STEP = 0.1
"""Size of the stencil, as part of the state's deflection: small for what slopes make of loads."""
SIZES = STEP * np.arange(-2.0, 3.0)
WEIGHTS = np.array(
    [
        [0.0, 0.0, 1.0, 0.0, 0.0],
        np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / (12.0 * STEP),
        np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / (24.0 * STEP**2),
    ]
)
"""(3, 5): coefficients of orders 0, 1, 2 from values at the sizes; exact to the fourth degree."""


class TreeRecords(NamedTuple):
    """A mechanism; what hangs on its configuration is overwritten."""

    bodies: Records[Body]
    beams: Records[Beam]
    stations: Records[Station]
    efforts: Records[Effort]  # for the damping that Bullet applies
    poses: Records[Pose]
    axes: Records[Axis]
    loops: Records[Loop]  # whose points are looked at


class Stencil(NamedTuple):
    """Where terms are evaluated, and how orders follow."""

    sizes: Array  # (n,) of the deflections, against those of the state
    weights: Array  # (orders, n): each order is a sum of the terms with them


class Growth(NamedTuple):
    """A state, and how it changes with its deflections."""

    q: Array  # (nq,)
    v: Array  # (nv,)
    dq: Array  # (nq,) what grows with the deflections
    dv: Array  # (nv,)


class Sums(NamedTuple):
    """Terms by orders in the deflections."""

    M: Array  # (orders, nv, nv) lower triangles
    h: Array  # (orders, nv)
    J: Array  # (orders, 3 * loops, nv) rates of b's origin less a's, world axes
    points: Array  # (orders, 2, 3 * loops) the same of positions, and of accelerations at zero v̇


@kernel
def expand(
    tree: TreeRecords,
    stencil: Stencil,
    gravity: Array,
    state: Growth,
    work: Array,
    M: Array,
    sums: Sums,
) -> None:
    """Add up terms at q + (s - 1) dq, v + (s - 1) dv over the sizes s of a stencil.

    Args:
        tree: Whose terms.
        stencil: Sizes and weights.
        gravity: (3,) [m/s²].
        state: Where, and what grows.
        work: (3, max(nq, nv)) space.
        M: (nv, nv) space.
        sums: Receives the terms.
    """
    bodies, beams, stations, efforts, poses, axes, loops = tree
    sizes, weights = stencil
    q, v, dq, dv = state
    nq, nv, orders = len(q), len(v), len(weights)
    for o in range(orders):
        for i in range(nv):
            sums.h[o, i] = 0.0
            for k in range(nv):
                sums.M[o, i, k] = 0.0
            for k in range(3 * len(loops)):
                sums.J[o, k, i] = 0.0
        for k in range(3 * len(loops)):
            sums.points[o, 0, k] = sums.points[o, 1, k] = 0.0
    for n in range(len(sizes)):
        more = sizes[n] - 1.0
        for i in range(nq):
            work[0, i] = q[i] + more * dq[i]
        for i in range(nv):
            work[1, i] = v[i] + more * dv[i]
        kinematics(bodies, beams, stations, work[0, :nq], poses, axes)
        mass_matrix(bodies, beams, stations, poses, axes, M)
        put_gravity(poses, gravity)
        bias(bodies, beams, stations, efforts, poses, axes, work[1, :nv], work[2, :nv])
        for o in range(orders):
            weight = weights[o, n]
            if weight == 0.0:
                continue
            for i in range(nv):
                sums.h[o, i] += weight * work[2, i]
                for k in range(i + 1):
                    sums.M[o, i, k] += weight * M[i, k]
            for k in range(len(loops)):
                loop = loops[k]
                rows, ends = sums.J[o, 3 * k : 3 * k + 3], sums.points[o, :, 3 * k : 3 * k + 3]
                add_point(bodies, poses, axes, loop.body_a, loop.p_a, -weight, rows, ends)
                add_point(bodies, poses, axes, loop.body_b, loop.p_b, weight, rows, ends)


@helper
def add_point(
    bodies: Records[Body],
    poses: Records[Pose],
    axes: Records[Axis],
    number: int,
    place: Array,
    factor: float,
    rows: Array,
    ends: Array,
) -> None:
    """Add a factor times a point's Jacobian (3, nv), place and drift (2, 3)."""
    pose = poses[number]
    point = add(vec(pose.p), apply(mat(pose.R), vec(place)))
    drift = rigid_acceleration(pose_twist(pose), (vec(pose.aw), vec(pose.av)), point)
    for c in range(3):
        ends[0, c] += factor * (pose.origin[c] + point[c])
        ends[1, c] += factor * drift[c]
    k = bodies[number].axis
    while k >= 0:
        linear = scale(factor, velocity_at(axis_twist(axes[k]), point))
        for c in range(3):
            rows[c, k] += linear[c]
        k = axes[k].below
