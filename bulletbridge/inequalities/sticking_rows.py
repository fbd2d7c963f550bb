"""Points that may not move against another body: contacts that stick while loops are closed.

Each stays in one direction, the contact's normal, or in three. The directions stay as they were
when the point was placed, in world axes.
"""

import math

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.mechanism.kinematics import axis_twist, between_origins
from bulletbridge.mechanism.records import (
    Axis,
    Body,
    Pose,
    StickingPoint,
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
    return apply(transpose(mat(pose.R)), sub(sub(point, vec(pose.origin)), vec(pose.p)))


@helper
def carried(pose: Pose, p: Array) -> Vector:
    """A body's point, from its tree's origin."""
    return add(vec(pose.p), apply(mat(pose.R), vec(p)))


@outlined
def place_points(points: Records[StickingPoint], poses: Records[Pose], rows: Records[Row]) -> int:
    """Fix sticking points to their bodies at the poses; return the number of rows, or -1.

    Row 3 n + k is direction k of point n; rows .pivot lists those that there are.
    """
    count = 0
    for n in range(len(points)):
        point = points[n]
        position, normal = vec(point.position), vec(point.normal)
        size = norm(normal)
        if not (0 <= point.body_a < len(poses) and 0 <= point.body_b < len(poses)):
            return -1
        if not (0.0 < size < math.inf and 0 <= point.count <= 3):
            return -1
        normal = scale(1.0 / size, normal)
        put(point.p_a, local(poses[point.body_a], position))
        put(point.p_b, local(poses[point.body_b], position))
        aside = (1.0, 0.0, 0.0) if math.fabs(normal[0]) < 0.7 else (0.0, 1.0, 0.0)
        tangent = cross(normal, aside)
        tangent = scale(1.0 / norm(tangent), tangent)
        put(point.directions[0], normal)
        put(point.directions[1], tangent)
        put(point.directions[2], cross(normal, tangent))
        for k in range(point.count):
            rows[count].pivot = 3 * n + k
            count += 1
    return count


@helper
def shift_of(point: StickingPoint, poses: Records[Pose]) -> Vector:
    """Displacement of the point of b from that of a [m], world axes."""
    a, b = carried(poses[point.body_a], point.p_a), carried(poses[point.body_b], point.p_b)
    return sub(b, sub(a, between_origins(poses, point.body_a, point.body_b)))


@outlined
def sticking_row(
    point: StickingPoint,
    k: int,
    bodies: Records[Body],
    poses: Records[Pose],
    axes: Records[Axis],
    row: Array,
) -> None:
    """Jacobian row (nv,) of direction k: velocity of b's point against a."""
    for j in range(len(row)):
        row[j] = 0.0
    direction, position = vec(point.directions[k]), carried(poses[point.body_b], point.p_b)
    j = bodies[point.body_b].axis
    while j >= 0:
        row[j] += dot(direction, velocity_at(axis_twist(axes[j]), position))
        j = axes[j].below
    position = add(position, between_origins(poses, point.body_a, point.body_b))
    j = bodies[point.body_a].axis
    while j >= 0:
        row[j] -= dot(direction, velocity_at(axis_twist(axes[j]), position))
        j = axes[j].below
