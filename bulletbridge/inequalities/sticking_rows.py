"""Points that may not move against another body: contacts that stick while loops are closed.

Each is held in one direction, the contact's normal, or in three. The directions stay as they were
when the point was placed, in world axes.
"""

import math

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.mechanism.kinematics import axis_twist
from bulletbridge.mechanism.records import (
    HELD_A,
    HELD_B,
    HELD_COUNT,
    HELD_NORMAL,
    HELD_POINT,
    Axis,
    Body,
    Pose,
    Spot,
)
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Records, Vector
from bulletbridge.numerics.spatial import (
    add,
    apply,
    cross,
    dot,
    mat,
    norm,
    put,
    scale,
    sub,
    transpose,
    vec,
    velocity_at,
)


@helper
def local(pose: Pose, point: Vector) -> Vector:
    """A world point in the frame of a body."""
    return apply(transpose(mat(pose.R)), sub(point, vec(pose.p)))


@helper
def carried(pose: Pose, p: Array) -> Vector:
    """A body's point in the world."""
    return add(vec(pose.p), apply(mat(pose.R), vec(p)))


@outlined
def place_spots(held: Array, poses: Records[Pose], spots: Records[Spot], rows: Records[Row]) -> int:
    """Fix the points of the table (n, 9) to their bodies at the poses; number of rows, or -1.

    Row 3 n + k is direction k of point n; rows .pivot lists those that are held.
    """
    count = 0
    for n in range(len(held)):
        spot, point, normal = spots[n], vec(held[n, HELD_POINT:]), vec(held[n, HELD_NORMAL:])
        size = norm(normal)
        for column in (HELD_A, HELD_B):
            if not 0 <= held[n, column] < len(poses):
                return -1
        if not (0.0 < size < math.inf and 0 <= held[n, HELD_COUNT] <= 3):
            return -1
        normal = scale(1.0 / size, normal)
        spot.body_a, spot.body_b = int(held[n, HELD_A]), int(held[n, HELD_B])
        spot.count = int(held[n, HELD_COUNT])
        put(spot.p_a, local(poses[spot.body_a], point))
        put(spot.p_b, local(poses[spot.body_b], point))
        aside = (1.0, 0.0, 0.0) if math.fabs(normal[0]) < 0.7 else (0.0, 1.0, 0.0)
        tangent = cross(normal, aside)
        tangent = scale(1.0 / norm(tangent), tangent)
        put(spot.directions[0], normal)
        put(spot.directions[1], tangent)
        put(spot.directions[2], cross(normal, tangent))
        for k in range(spot.count):
            rows[count].pivot = 3 * n + k
            count += 1
    return count


@helper
def held_shift(spot: Spot, poses: Records[Pose]) -> Vector:
    """How far the point of b has moved from that of a [m], world axes."""
    return sub(carried(poses[spot.body_b], spot.p_b), carried(poses[spot.body_a], spot.p_a))


@outlined
def held_row(
    spot: Spot, k: int, bodies: Records[Body], poses: Records[Pose], axes: Records[Axis], row: Array
) -> None:
    """Jacobian row (nv,) of direction k: velocity of b's point against a."""
    for j in range(len(row)):
        row[j] = 0.0
    direction, point = vec(spot.directions[k]), carried(poses[spot.body_b], spot.p_b)
    j = bodies[spot.body_b].axis
    while j >= 0:
        row[j] += dot(direction, velocity_at(axis_twist(axes[j]), point))
        j = axes[j].below
    j = bodies[spot.body_a].axis
    while j >= 0:
        row[j] -= dot(direction, velocity_at(axis_twist(axes[j]), point))
        j = axes[j].below
