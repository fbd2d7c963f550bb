"""Force elements: springs, dampers, forces, bushings between two frames; wrenches; tendons.

An element has one coordinate or six: x, whose rate is the power of a wrench with the twist of b
relative to a. The wrench is the exact gradient of x, so that springs conserve energy. A tendon's x
is a sum of joint positions, and its force acts on the rates of these joints. A spring whose line
goes through several points has a record for each stretch of it: x is the sum of their lengths.
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.mechanism.kinematics import axis_twist, between_origins, pose_twist
from bulletbridge.mechanism.records import (
    BUSHING,
    DRAG,
    SPRING,
    STRETCH,
    TENDON,
    TORSION,
    Axis,
    Effort,
    Pose,
)
from bulletbridge.mechanism.wrapping import length_round
from bulletbridge.numerics.records import Array, Matrix, Records, Vector
from bulletbridge.numerics.spatial import (
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
    put_mat,
    rotation_vector,
    scale,
    scale_pair,
    sub,
    transpose,
    twist_at,
    vec,
    wrench_from,
)

OPPOSED = 1e-12
"""Least 1 + cos of two axes: below it they point against each other and leave a turn undefined."""


@helper
def coordinates(effort: Effort) -> int:
    """How many coordinates an element has; what goes on with another one's line has none."""
    if effort.kind == STRETCH:
        return 0
    return 6 if effort.kind == BUSHING else 1


@helper
def frames_of(
    effort: Effort, poses: Records[Pose]
) -> tuple[tuple[Matrix, Vector], tuple[Matrix, Vector]]:
    """Axes and places of frames a and b, both from the origin of b's tree."""
    a, b = poses[effort.body_a], poses[effort.body_b]
    way = sub(vec(a.p), between_origins(poses, effort.body_a, effort.body_b))
    return (
        (mul(mat(a.R), mat(effort.R_a)), add(way, apply(mat(a.R), vec(effort.p_a)))),
        (mul(mat(b.R), mat(effort.R_b)), add(vec(b.p), apply(mat(b.R), vec(effort.p_b)))),
    )


@kernel
def put_moving_frames(
    efforts: Records[Effort], poses: Records[Pose], axes: Records[Axis], v: Array
) -> None:
    """How frame b moves at the rates v (nv,), into the efforts that are watched."""
    for i in range(len(efforts)):
        effort = efforts[i]
        if effort.watched == 0:
            continue
        pose = poses[effort.body_b]
        point = add(vec(pose.p), apply(mat(pose.R), vec(effort.p_b)))
        twist, k = (ZERO, ZERO), effort.axis_b
        while k >= 0:
            twist = add_pair(twist, scale_pair(v[k], twist_at(axis_twist(axes[k]), point)))
            k = axes[k].below
        put(effort.position, add(vec(pose.origin), point))
        put_mat(effort.R, mul(mat(pose.R), mat(effort.R_b)))
        put(effort.velocity, twist[1])
        put(effort.angular_velocity, twist[0])


@helper
def unit(k: int) -> Vector:
    """Unit vector along axis k."""
    return (1.0 if k == 0 else 0.0), (1.0 if k == 1 else 0.0), (1.0 if k == 2 else 0.0)


@outlined
def coordinate(effort: Effort, poses: Records[Pose], k: int) -> tuple[float, Pair]:
    """Coordinate k [m or rad], and the wrench that its unit force is on b.

    The wrench is about the origin of b's tree. A turn is the one nearest to the spring's rest.
    """
    if effort.around > 0:
        return coordinate_round(effort, poses)
    (R_a, a), (R_b, b) = frames_of(effort, poses)
    s = sub(b, a)
    if effort.kind == SPRING or effort.kind == STRETCH:
        length = norm(s)
        along = scale(effort.share / length, s) if length > 0.0 else ZERO
        return effort.share * length, (cross(b, along), along)
    R = mul(transpose(R_a), R_b)
    if effort.kind == TORSION:
        turn = math.atan2(R[1][0] - R[0][1], R[0][0] + R[1][1])
        turn += 2.0 * math.pi * round((effort.rest - turn) / (2.0 * math.pi))
        z = scale(1.0 / max(1.0 + R[2][2], OPPOSED), (R[0][2], R[1][2], 1.0 + R[2][2]))
        return turn, (apply(R_a, z), ZERO)
    if effort.kind == BUSHING and k < 3:
        turns = rotation_vector(R)
        # row k of the map from angular velocities in a to rates of the rotation vector
        return turns[k], (apply(R_a, dexp_inverse(turns, unit(k), -1.0)), ZERO)
    along = transpose(R_a)[k - 3 if effort.kind == BUSHING else 2]
    x = along[0] * s[0] + along[1] * s[1] + along[2] * s[2]
    return x, (cross(b, along), along)


class Bend(NamedTuple):
    """A line at the body that it goes round, from the origin of b's tree."""

    R: Matrix  # axes of the frame in the body's centre
    first: Vector  # where the line comes from
    last: Vector  # where it goes to
    x0: Vector  # the first of them in that frame
    x1: Vector  # the last


@helper
def bend_of(effort: Effort, poses: Records[Pose]) -> Bend:
    """Where a line is, one of whose stretches goes to or from a body that it goes round."""
    (R_a, a), (R_b, b) = frames_of(effort, poses)
    pose = poses[effort.body_c]
    way = sub(vec(pose.p), between_origins(poses, effort.body_c, effort.body_b))
    c = add(way, apply(mat(pose.R), vec(effort.p_c)))
    if effort.onto > 0:
        R, centre, first, last = R_b, b, a, c
    else:
        R, centre, first, last = R_a, a, c, b
    back = transpose(R)
    return Bend(R, first, last, apply(back, sub(first, centre)), apply(back, sub(last, centre)))


@outlined
def coordinate_round(effort: Effort, poses: Records[Pose]) -> tuple[float, Pair]:
    """``coordinate`` of a stretch to or from a body that a line goes round."""
    bend = bend_of(effort, poses)
    length, g0, g1 = length_round(effort, bend.x0, bend.x1)
    if effort.onto > 0:
        along, at = apply(bend.R, scale(-effort.share, g0)), bend.first
        return effort.share * length, (cross(at, along), along)
    along = apply(bend.R, scale(effort.share, g1))
    return 0.0, (cross(bend.last, along), along)


@helper
def relative_twist(effort: Effort, poses: Records[Pose]) -> Pair:
    """Twist of b's body less that of a's, about the origin of b's tree."""
    way = between_origins(poses, effort.body_a, effort.body_b)
    other = twist_at(pose_twist(poses[effort.body_a]), way)
    return add_pair(pose_twist(poses[effort.body_b]), scale_pair(-1.0, other))


@helper
def stretch(effort: Effort, x: float) -> float:
    """By how much a spring is out of its rest, or out of the range in which it is slack."""
    way = x - effort.rest
    if way > effort.slack:
        return way - effort.slack
    return way + effort.slack if way < -effort.slack else 0.0


@helper
def strength(effort: Effort, k: int, x: float, rate: float) -> float:
    """Force along coordinate k [N or N m]."""
    return effort.force - effort.damping[k] * rate - effort.stiffness[k] * stretch(effort, x)


@helper
def tendon_state(effort: Effort, axes: Records[Axis]) -> tuple[float, float]:
    """A tendon's position and rate; takes those of its joints from ``kinematics`` and ``bias``."""
    x, rate = 0.0, 0.0
    for n in range(effort.terms):
        axis = axes[int(effort.term_axes[n])]
        x += effort.factors[n] * axis.position
        rate += effort.factors[n] * axis.rate
    return x, rate


@outlined
def line_state(efforts: Records[Effort], i: int, poses: Records[Pose]) -> tuple[float, float]:
    """Length of the line of spring i through all its points, and its rate, by twists of bodies."""
    x, rate = 0.0, 0.0
    for k in range(i, i + 1 + efforts[i].stretches):
        length, wrench = coordinate(efforts[k], poses, 0)
        x += length
        rate += power(wrench, relative_twist(efforts[k], poses))
    return x, rate


@outlined
def stiffness_at(
    efforts: Records[Effort], i: int, n: int, poses: Records[Pose], axes: Records[Axis]
) -> float:
    """Stiffness of element i along coordinate n: none where it is slack."""
    effort = efforts[i]
    if effort.slack > 0.0:
        if effort.kind == TENDON:
            x = tendon_state(effort, axes)[0]
        elif effort.stretches > 0:
            x = line_state(efforts, i, poses)[0]
        else:
            x = coordinate(effort, poses, n)[0]
        if stretch(effort, x) == 0.0:
            return 0.0
    return effort.stiffness[n]


@helper
def pull(effort: Effort, size: float, forces: Array) -> None:
    """Add the forces (nv,) on the rates of a force along a tendon."""
    for n in range(effort.terms):
        forces[effort.term_axes[n]] += size * effort.factors[n]


@helper
def add_tendon(effort: Effort, axes: Records[Axis], h: Array) -> None:
    """Take what a tendon does from the forces (nv,) that hold accelerations at zero."""
    x, rate = tendon_state(effort, axes)
    pull(effort, -strength(effort, 0, x, rate), h)


@outlined
def add_element(effort: Effort, poses: Records[Pose]) -> None:
    """Take what an element does to its two bodies from the forces that they need."""
    twist, total = relative_twist(effort, poses), (ZERO, ZERO)
    for k in range(coordinates(effort)):
        x, wrench = coordinate(effort, poses, k)
        total = add_pair(total, scale_pair(strength(effort, k, x, power(wrench, twist)), wrench))
    push(effort, total, poses)


@outlined
def add_line(efforts: Records[Effort], i: int, poses: Records[Pose]) -> None:
    """``add_element`` of spring i, whose line goes through several points."""
    x, rate = line_state(efforts, i, poses)
    size = strength(efforts[i], 0, x, rate)
    for k in range(i, i + 1 + efforts[i].stretches):
        push(efforts[k], scale_pair(size, coordinate(efforts[k], poses, 0)[1]), poses)


@helper
def push(effort: Effort, total: Pair, poses: Records[Pose]) -> None:
    """Take a wrench on b and its opposite on a from the forces that they need."""
    if effort.body_b > 0:
        pose = poses[effort.body_b]
        put(pose.fw, sub(vec(pose.fw), total[0]))
        put(pose.fv, sub(vec(pose.fv), total[1]))
    if effort.body_a > 0:
        total = wrench_from(between_origins(poses, effort.body_a, effort.body_b), total)
        pose = poses[effort.body_a]
        put(pose.fw, add(vec(pose.fw), total[0]))
        put(pose.fv, add(vec(pose.fv), total[1]))


@helper
def add_wrench(effort: Effort, poses: Records[Pose]) -> None:
    """Take a wrench on a body from the force that it needs."""
    if effort.body_b > 0:
        turn = mul(mat(poses[effort.body_a].R), mat(effort.R_a))
        pose = poses[effort.body_b]
        at = add(vec(pose.p), apply(mat(pose.R), vec(effort.p_b)))
        force = apply(turn, vec(effort.wrench[3:]))
        moment = add(apply(turn, vec(effort.wrench)), cross(at, force))
        put(pose.fw, sub(vec(pose.fw), moment))
        put(pose.fv, sub(vec(pose.fv), force))


@helper
def add_generalised(
    effort: Effort, poses: Records[Pose], axes: Records[Axis], wrench: Pair, forces: Array
) -> None:
    """Add the forces (nv,) on the rates of a wrench on b and its opposite on a."""
    k = effort.axis_b
    while k != effort.common_axis:
        forces[k] += power(wrench, axis_twist(axes[k]))
        k = axes[k].below
    wrench = wrench_from(between_origins(poses, effort.body_a, effort.body_b), wrench)
    k = effort.axis_a
    while k != effort.common_axis:
        forces[k] -= power(wrench, axis_twist(axes[k]))
        k = axes[k].below


@helper
def pull_line(
    efforts: Records[Effort],
    i: int,
    n: int,
    size: float,
    poses: Records[Pose],
    axes: Records[Axis],
    forces: Array,
) -> None:
    """Add the forces (nv,) on the rates of a force along coordinate n of element i."""
    for k in range(i, i + 1 + efforts[i].stretches):
        wrench = scale_pair(size, coordinate(efforts[k], poses, n)[1])
        add_generalised(efforts[k], poses, axes, wrench, forces)


@helper
def impedance_along(
    efforts: Records[Effort],
    i: int,
    n: int,
    poses: Records[Pose],
    axes: Records[Axis],
    damping: float,
    stiffness: float,
) -> float:
    """Weight of coordinate n of element i in damping D + stiffness K."""
    acting = stiffness_at(efforts, i, n, poses, axes)
    return damping * efforts[i].damping[n] + stiffness * acting


@helper
def pull_along(
    efforts: Records[Effort],
    i: int,
    n: int,
    poses: Records[Pose],
    axes: Records[Axis],
    forces: Array,
) -> None:
    """Add the forces (nv,) on the rates of a unit force along coordinate n of element i."""
    if efforts[i].kind == TENDON:
        pull(efforts[i], 1.0, forces)
    else:
        pull_line(efforts, i, n, 1.0, poses, axes, forces)


@kernel
def add_compliance(
    efforts: Records[Effort],
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
    for i in range(len(efforts)):
        for n in range(coordinates(efforts[i])):
            weight = impedance_along(efforts, i, n, poses, axes, damping, stiffness)
            if weight == 0.0:
                continue
            for k in range(len(axes)):
                row[k] = 0.0
            pull_along(efforts, i, n, poses, axes, row)
            for k in range(len(axes)):
                if row[k] != 0.0:
                    for j in range(k + 1):
                        M[k, j] += weight * row[k] * row[j]


@outlined
def look_ahead_of_elements(
    efforts: Records[Effort], poses: Records[Pose], axes: Records[Axis], ahead: float, forces: Array
) -> None:
    """Take the elements' springs where the present rates lead in ``ahead`` [s]."""
    for i in range(len(efforts)):
        effort = efforts[i]
        if effort.kind == DRAG:
            continue
        if effort.kind == TENDON:
            rate = tendon_state(effort, axes)[1]
            pull(effort, -ahead * stiffness_at(efforts, i, 0, poses, axes) * rate, forces)
            continue
        twist = relative_twist(effort, poses)
        for n in range(coordinates(effort)):
            stiffness = stiffness_at(efforts, i, n, poses, axes)
            if stiffness != 0.0:
                if effort.stretches > 0:
                    rate = line_state(efforts, i, poses)[1]
                else:
                    rate = power(coordinate(effort, poses, n)[1], twist)
                pull_line(efforts, i, n, -ahead * stiffness * rate, poses, axes, forces)


@kernel
def measure(
    efforts: Records[Effort], poses: Records[Pose], axes: Records[Axis], found: Array
) -> None:
    """Positions, rates and forces of every coordinate, found (elements, 3, 6)."""
    for i in range(len(efforts)):
        effort = efforts[i]
        if effort.kind == TENDON:
            x, rate = tendon_state(effort, axes)
            found[i, 0, 0], found[i, 1, 0] = x, rate
            found[i, 2, 0] = strength(effort, 0, x, rate)
            continue
        if effort.stretches > 0:
            x, rate = line_state(efforts, i, poses)
            found[i, 0, 0], found[i, 1, 0] = x, rate
            found[i, 2, 0] = strength(effort, 0, x, rate)
            continue
        twist = relative_twist(effort, poses)
        for n in range(coordinates(effort)):
            x, wrench = coordinate(effort, poses, n)
            rate = power(wrench, twist)
            found[i, 0, n], found[i, 1, n] = x, rate
            found[i, 2, n] = strength(effort, n, x, rate)
