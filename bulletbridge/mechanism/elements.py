"""Force elements between two frames: springs, dampers, constant forces; bushings.

An element has one coordinate or six: x, whose rate is the power of a wrench with the twist of b
relative to a. The wrench is the exact gradient of x, so that springs conserve energy.
"""

import math

from bulletbridge.mechanism.kinematics import axis_twist, pose_twist
from bulletbridge.mechanism.layout import BUSHING, DRAG, SPRING, TORSION, Axis, Lump, Pose
from bulletbridge.numerics.algebra import (
    ZERO,
    Pair,
    add,
    add_pair,
    apply,
    cross,
    dexp_inverse,
    mat,
    mul,
    norm,
    power,
    put,
    rotation_vector,
    scale,
    scale_pair,
    sub,
    transpose,
    vec,
)
from bulletbridge.numerics.jit import helper, kernel
from bulletbridge.numerics.records import Array, Matrix, Records, Vector

OPPOSED = 1e-12
"""Of 1 + cos, from which axes that point against each other leave a turn undefined."""


@helper
def coordinates(lump: Lump) -> int:
    """How many coordinates an element has."""
    return 6 if lump.kind == BUSHING else 1


@helper
def placed_in(pose: Pose, R: Array, p: Array) -> tuple[Matrix, Vector]:
    """A frame of a body in the world."""
    up = mat(pose.R)
    return mul(up, mat(R)), add(vec(pose.p), apply(up, vec(p)))


@helper
def unit(k: int) -> Vector:
    """Unit vector along axis k."""
    return (1.0 if k == 0 else 0.0), (1.0 if k == 1 else 0.0), (1.0 if k == 2 else 0.0)


@helper
def coordinate(lump: Lump, poses: Records[Pose], k: int) -> tuple[float, Pair]:
    """Coordinate k [m or rad], and the wrench about the world origin that its unit force is on b.

    A turn is the one nearest to the spring's rest.
    """
    R_a, a = placed_in(poses[lump.body_a], lump.R_a, lump.p_a)
    R_b, b = placed_in(poses[lump.body_b], lump.R_b, lump.p_b)
    s = sub(b, a)
    if lump.kind == SPRING:
        length = norm(s)
        along = scale(1.0 / length, s) if length > 0.0 else ZERO
        return length, (cross(b, along), along)
    R = mul(transpose(R_a), R_b)
    if lump.kind == TORSION:
        turn = math.atan2(R[1][0] - R[0][1], R[0][0] + R[1][1])
        turn += 2.0 * math.pi * round((lump.rest - turn) / (2.0 * math.pi))
        z = scale(1.0 / max(1.0 + R[2][2], OPPOSED), (R[0][2], R[1][2], 1.0 + R[2][2]))
        return turn, (apply(R_a, z), ZERO)
    if lump.kind == BUSHING and k < 3:
        turns = rotation_vector(R)
        # row k of the map from angular velocities in a to rates of the rotation vector
        return turns[k], (apply(R_a, dexp_inverse(turns, unit(k), -1.0)), ZERO)
    along = transpose(R_a)[k - 3 if lump.kind == BUSHING else 2]
    x = along[0] * s[0] + along[1] * s[1] + along[2] * s[2]
    return x, (cross(b, along), along)


@helper
def relative_twist(lump: Lump, poses: Records[Pose]) -> Pair:
    """Twist of b's body less that of a's."""
    return add_pair(
        pose_twist(poses[lump.body_b]), scale_pair(-1.0, pose_twist(poses[lump.body_a]))
    )


@helper
def effort(lump: Lump, k: int, x: float, rate: float) -> float:
    """Force along coordinate k [N or N m]."""
    return lump.force - lump.damping[k] * rate - lump.stiffness[k] * (x - lump.rest)


@helper
def add_element(lump: Lump, poses: Records[Pose]) -> None:
    """Take what an element does to its two bodies from the forces that they need."""
    twist, total = relative_twist(lump, poses), (ZERO, ZERO)
    for k in range(coordinates(lump)):
        x, wrench = coordinate(lump, poses, k)
        total = add_pair(total, scale_pair(effort(lump, k, x, power(wrench, twist)), wrench))
    if lump.body_b > 0:
        pose = poses[lump.body_b]
        put(pose.fw, sub(vec(pose.fw), total[0]))
        put(pose.fv, sub(vec(pose.fv), total[1]))
    if lump.body_a > 0:
        pose = poses[lump.body_a]
        put(pose.fw, add(vec(pose.fw), total[0]))
        put(pose.fv, add(vec(pose.fv), total[1]))


@helper
def add_generalised(lump: Lump, axes: Records[Axis], wrench: Pair, forces: Array) -> None:
    """Add the forces (nv,) on the rates of a wrench on b and its opposite on a."""
    k = lump.axis_b
    while k != lump.stop:
        forces[k] += power(wrench, axis_twist(axes[k]))
        k = axes[k].below
    k = lump.axis_a
    while k != lump.stop:
        forces[k] -= power(wrench, axis_twist(axes[k]))
        k = axes[k].below


@kernel
def add_compliance(
    lumps: Records[Lump],
    poses: Records[Pose],
    axes: Records[Axis],
    damping: float,
    stiffness: float,
    row: Array,
    M: Array,
) -> None:
    """M <- M + damping D + stiffness K of the elements, the lower triangle; row (nv,) is scratch.

    K has no part of the elements' forces turning with their frames: that one stays explicit.
    """
    for i in range(len(lumps)):
        lump = lumps[i]
        if lump.kind == DRAG:
            continue
        for n in range(coordinates(lump)):
            weight = damping * lump.damping[n] + stiffness * lump.stiffness[n]
            if weight == 0.0:
                continue
            for k in range(len(axes)):
                row[k] = 0.0
            add_generalised(lump, axes, coordinate(lump, poses, n)[1], row)
            for k in range(len(axes)):
                if row[k] != 0.0:
                    for j in range(k + 1):
                        M[k, j] += weight * row[k] * row[j]


@helper
def look_ahead_of_elements(
    lumps: Records[Lump], poses: Records[Pose], axes: Records[Axis], ahead: float, forces: Array
) -> None:
    """Take the elements' springs where the present rates lead in ``ahead`` [s]."""
    for i in range(len(lumps)):
        lump = lumps[i]
        if lump.kind == DRAG:
            continue
        twist = relative_twist(lump, poses)
        for n in range(coordinates(lump)):
            if lump.stiffness[n] != 0.0:
                wrench = coordinate(lump, poses, n)[1]
                size = -ahead * lump.stiffness[n] * power(wrench, twist)
                add_generalised(lump, axes, scale_pair(size, wrench), forces)


@kernel
def measure(lumps: Records[Lump], poses: Records[Pose], found: Array) -> None:
    """Positions, rates and forces of every coordinate, found (elements, 3, 6)."""
    for i in range(len(lumps)):
        lump = lumps[i]
        twist = relative_twist(lump, poses)
        for n in range(coordinates(lump)):
            x, wrench = coordinate(lump, poses, n)
            rate = power(wrench, twist)
            found[i, 0, n], found[i, 1, n] = x, rate
            found[i, 2, n] = effort(lump, n, x, rate)
