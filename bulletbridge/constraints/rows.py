"""Residuals, Jacobian rows and drift of loops and couplings: one kernel for every joint model.

Frame a' is frame a after its prescribed motion. All rows use the pose of b in a', the twist of b
relative to a at b's origin, and its rate, in axes of a'. The twist rows are the exact derivative of
the residual at g = 0; away from it rotations agree to first order.
"""

import math

from bulletbridge.constraints.layout import (
    AXIAL,
    FREE_ROTATION,
    ON_CYLINDER,
    PERPENDICULAR,
    ROD,
    ROLLS,
    Coupling,
    Loop,
    Target,
    Term,
)
from bulletbridge.mechanism.inertias import rigid_acceleration
from bulletbridge.mechanism.kinematics import axis_twist, pose_twist
from bulletbridge.mechanism.layout import Axis, Pose
from bulletbridge.numerics.algebra import (
    ZERO,
    Pair,
    add,
    apply,
    cross,
    dot,
    mat,
    mul,
    norm,
    quat_exp,
    rotation,
    rotation_vector,
    scale,
    sub,
    tilt,
    transpose,
    vec,
    velocity_at,
)
from bulletbridge.numerics.jit import helper, kernel
from bulletbridge.numerics.records import Array, Ints, Matrix, Records, Vector
from bulletbridge.numerics.split import Row

Placement = tuple[Matrix, Vector]
"""Rotation and position of a frame in the world."""
Z = (0.0, 0.0, 1.0)


@helper
def constant_rows(loop: Loop) -> int:
    """Number of rows whose direction in a' does not change."""
    return loop.rows - 1 if loop.variable > 0 else loop.rows


@helper
def placed(pose: Pose, R: Array, p: Array) -> Placement:
    """A frame of a body in the world."""
    up = mat(pose.R)
    return mul(up, mat(R)), add(vec(pose.p), apply(up, vec(p)))


@helper
def moved(frame: Placement, loop: Loop, targets: Records[Target]) -> Placement:
    """Frame a' from frame a. A rod's target is its length, not a motion of a."""
    if loop.target < 0 or loop.variable == ROD:
        return frame
    target = targets[loop.target]
    x, y, z, w = quat_exp(scale(target.angle, vec(loop.turn)))
    R, p = frame
    return mul(R, rotation(x, y, z, w)), add(p, apply(R, vec(target.p)))


@helper
def frames(
    loop: Loop, poses: Records[Pose], targets: Records[Target]
) -> tuple[Placement, Placement]:
    """Frames a' and b in the world."""
    a = placed(poses[loop.body_a], loop.R_a, loop.p_a)
    return moved(a, loop, targets), placed(poses[loop.body_b], loop.R_b, loop.p_b)


@helper
def position_in(a: Placement, b: Placement) -> Vector:
    """Origin of b in axes of a from the origin of a."""
    return apply(transpose(a[0]), sub(b[1], a[1]))


@helper
def rotation_error(loop: Loop, relative: Matrix, s: Vector) -> Vector:
    """How far b is turned against a', as a rotation vector; a screw's turns are counted."""
    if loop.rotation == FREE_ROTATION or loop.rotation == ROLLS:
        return ZERO
    if loop.rotation == AXIAL:
        column = transpose(relative)[2]
        lean = tilt(Z, column)
        turns = vec(loop.turns)
        if dot(turns, turns) == 0.0:
            return lean
        turn = math.atan2(relative[1][0] - relative[0][1], relative[0][0] + relative[1][1])
        turn += 2.0 * math.pi * round((dot(turns, s) - turn) / (2.0 * math.pi))
        return lean[0], lean[1], turn
    return rotation_vector(relative)


@helper
def arm(loop: Loop, s: Vector) -> Vector:
    """The part of s that a distance counts: all of it, or what is across the axis of a cylinder."""
    return (s[0], s[1], 0.0) if loop.variable == ON_CYLINDER else s


@helper
def variable_direction(loop: Loop, relative: Matrix, s: Vector) -> Pair:
    """Moment and force direction of a row that depends on the configuration."""
    if loop.variable == PERPENDICULAR:
        return cross(transpose(relative)[2], Z), ZERO
    reach = arm(loop, s)
    return ZERO, scale(1.0 / norm(reach), reach)


@helper
def variable_residual(loop: Loop, relative: Matrix, s: Vector, targets: Records[Target]) -> float:
    """Residual of a row that depends on the configuration."""
    if loop.variable == PERPENDICULAR:
        return relative[2][2]
    wanted = loop.length
    if loop.variable == ROD and loop.target >= 0:
        wanted += targets[loop.target].p[2]
    return norm(arm(loop, s)) - wanted


@kernel
def residuals(
    loops: Records[Loop],
    couplings: Records[Coupling],
    terms: Records[Term],
    poses: Records[Pose],
    axes: Records[Axis],
    targets: Records[Target],
    q: Array,
    rows: Records[Row],
) -> None:
    """Residual g of every row [m or rad] at the poses, into rows .g."""
    for i in range(len(loops)):
        loop = loops[i]
        a, b = frames(loop, poses, targets)
        relative, s = mul(transpose(a[0]), b[0]), position_in(a, b)
        error = rotation_error(loop, relative, s)
        constant = constant_rows(loop)
        for k in range(constant):
            g = dot(vec(loop.moment[k]), error) + dot(vec(loop.force[k]), s)
            rows[loop.row + k].g = g if k < loop.held else 0.0
        if loop.variable > 0:
            rows[loop.row + constant].g = variable_residual(loop, relative, s, targets)
    for i in range(len(couplings)):
        coupling = couplings[i]
        total = -coupling.offset
        if coupling.target >= 0:
            total -= targets[coupling.target].p[2]
        for k in range(coupling.first, coupling.first + coupling.count):
            total += terms[k].coefficient * q[axes[terms[k].axis].q]
        rows[coupling.row].g = total


@kernel
def jacobian(
    loops: Records[Loop],
    couplings: Records[Coupling],
    terms: Records[Term],
    poses: Records[Pose],
    axes: Records[Axis],
    targets: Records[Target],
    J: Array,
    rows: Records[Row],
) -> None:
    """Jacobian J (nc, nv), and the velocities that prescribed motions ask for, into rows .g_t."""
    for i in range(J.shape[0]):
        for k in range(J.shape[1]):
            J[i, k] = 0.0
    for i in range(len(loops)):
        loop = loops[i]
        a, b = frames(loop, poses, targets)
        add_columns(loop, a, b, axes, loop.axis_a, -1.0, 0, J)
        add_columns(loop, a, b, axes, loop.axis_b, 1.0, 0, J)
    for i in range(len(couplings)):
        coupling = couplings[i]
        for k in range(coupling.first, coupling.first + coupling.count):
            J[coupling.row, terms[k].axis] = terms[k].coefficient
    prescribed_rates(loops, couplings, poses, targets, rows)


@kernel
def block_jacobian(
    loops: Records[Loop],
    couplings: Records[Coupling],
    poses: Records[Pose],
    axes: Records[Axis],
    targets: Records[Target],
    first: Ints,
    J_a: Array,
    J_b: Array,
    rows: Records[Row],
) -> None:
    """``jacobian`` of the loops by modules: what each of the two ends adds, (rows, widest).

    Column k of the module of an end is in J[row, k - first[k]].
    """
    for i in range(J_a.shape[0]):
        for k in range(J_a.shape[1]):
            J_a[i, k] = J_b[i, k] = 0.0
    for i in range(len(loops)):
        loop = loops[i]
        a, b = frames(loop, poses, targets)
        if loop.axis_a >= 0:
            add_columns(loop, a, b, axes, loop.axis_a, -1.0, first[loop.axis_a], J_a)
        if loop.axis_b >= 0:
            add_columns(loop, a, b, axes, loop.axis_b, 1.0, first[loop.axis_b], J_b)
    prescribed_rates(loops, couplings, poses, targets, rows)


@helper
def prescribed_rates(
    loops: Records[Loop],
    couplings: Records[Coupling],
    poses: Records[Pose],
    targets: Records[Target],
    rows: Records[Row],
) -> None:
    """Velocities that prescribed motions ask for, into rows .g_t."""
    for i in range(len(rows)):
        rows[i].g_t = 0.0
    for i in range(len(loops)):
        loop = loops[i]
        if loop.target >= 0:
            a, b = frames(loop, poses, targets)
            put_prescribed_rate(loop, a, b, targets[loop.target], rows)
    for i in range(len(couplings)):
        coupling = couplings[i]
        if coupling.target >= 0:
            rows[coupling.row].g_t = -targets[coupling.target].v[2]


@helper
def add_columns(
    loop: Loop,
    a: Placement,
    b: Placement,
    axes: Records[Axis],
    last: int,
    sign: float,
    shift: int,
    J: Array,
) -> None:
    """Add what the axes from ``last`` down to the common ancestor do to b relative to a'.

    The column of axis k is k - shift.
    """
    up = transpose(a[0])
    constant = constant_rows(loop)
    k = last
    while k != loop.stop:
        twist = axis_twist(axes[k])
        linear = apply(up, scale(sign, velocity_at(twist, b[1])))
        for i in range(constant):
            J[loop.row + i, k - shift] += dot(vec(loop.force[i]), linear)
        if loop.rotation != FREE_ROTATION:
            angular = apply(up, scale(sign, twist[0]))
            for i in range(constant):
                J[loop.row + i, k - shift] += dot(vec(loop.moment[i]), angular)
        k = axes[k].below
    if loop.variable > 0:
        add_variable_columns(loop, a, b, axes, last, sign, shift, J)


@helper
def add_variable_columns(
    loop: Loop,
    a: Placement,
    b: Placement,
    axes: Records[Axis],
    last: int,
    sign: float,
    shift: int,
    J: Array,
) -> None:
    """The same for the last row of a loop when its direction depends on the configuration."""
    moment, force = variable_direction(loop, mul(transpose(a[0]), b[0]), position_in(a, b))
    moment, force = apply(a[0], scale(sign, moment)), apply(a[0], scale(sign, force))
    k = last
    while k != loop.stop:
        twist = axis_twist(axes[k])
        linear = velocity_at(twist, b[1])
        J[loop.row + loop.rows - 1, k - shift] += dot(moment, twist[0]) + dot(force, linear)
        k = axes[k].below


@helper
def prescribed_rate(loop: Loop, target: Target, s: Vector) -> Pair:
    """Twist that the prescribed motion of a' takes away from that of b, in axes of a'."""
    turn = vec(loop.turn)
    angular = scale(target.rate, turn)
    x, y, z, w = quat_exp(scale(-target.angle, turn))
    return angular, add(cross(angular, s), apply(rotation(x, y, z, w), vec(target.v)))


@helper
def put_prescribed_rate(
    loop: Loop, a: Placement, b: Placement, target: Target, rows: Records[Row]
) -> None:
    """Write g_t of the rows of a driven loop."""
    if loop.variable == ROD:
        rows[loop.row].g_t = -target.v[2]
        return
    relative, s = mul(transpose(a[0]), b[0]), position_in(a, b)
    angular, linear = prescribed_rate(loop, target, s)
    for i in range(constant_rows(loop)):
        rate = dot(vec(loop.moment[i]), angular) + dot(vec(loop.force[i]), linear)
        rows[loop.row + i].g_t = -rate
    if loop.variable > 0:
        moment, force = variable_direction(loop, relative, s)
        rows[loop.row + loop.rows - 1].g_t = -dot(moment, angular) - dot(force, linear)


@kernel
def drift(
    loops: Records[Loop],
    couplings: Records[Coupling],
    poses: Records[Pose],
    targets: Records[Target],
    rows: Records[Row],
) -> None:
    """Acceleration of every constraint at zero joint accelerations, into rows .gamma.

    Takes twists and accelerations of the bodies from ``bias``; gravity cancels between a and b.
    """
    for i in range(len(loops)):
        put_loop_drift(loops[i], poses, targets, rows)
    for i in range(len(couplings)):
        coupling = couplings[i]
        rows[coupling.row].gamma = 0.0
        if coupling.target >= 0:
            rows[coupling.row].gamma = -targets[coupling.target].a[2]


@helper
def put_loop_drift(
    loop: Loop, poses: Records[Pose], targets: Records[Target], rows: Records[Row]
) -> None:
    """Write gamma of the rows of one loop."""
    a, b = frames(loop, poses, targets)
    up = transpose(a[0])
    relative, s = mul(up, b[0]), position_in(a, b)
    body_a, body_b = poses[loop.body_a], poses[loop.body_b]
    twist_a, twist_b = pose_twist(body_a), pose_twist(body_b)
    bias_a, bias_b = (vec(body_a.aw), vec(body_a.av)), (vec(body_b.aw), vec(body_b.av))

    # twist of b relative to the body of a at b's origin, and its rate, in world axes
    w = sub(twist_b[0], twist_a[0])
    u = sub(velocity_at(twist_b, b[1]), velocity_at(twist_a, b[1]))
    w_rate = sub(bias_b[0], bias_a[0])
    u_rate = sub(
        rigid_acceleration(twist_b, bias_b, b[1]), rigid_acceleration(twist_a, bias_a, b[1])
    )
    u_rate = sub(u_rate, cross(twist_a[0], u))

    # the same in the turning axes of a'
    turning = twist_a[0]
    driven = loop.target >= 0 and loop.variable != ROD
    if driven:
        turning = add(turning, apply(a[0], scale(targets[loop.target].rate, vec(loop.turn))))
    angular, linear = apply(up, w), apply(up, u)
    angular_rate = apply(up, sub(w_rate, cross(turning, w)))
    linear_rate = apply(up, sub(u_rate, cross(turning, u)))
    if driven:
        target = targets[loop.target]
        taken = prescribed_rate(loop, target, s)
        angular, linear = sub(angular, taken[0]), sub(linear, taken[1])
        taken = prescribed_acceleration(loop, target, s, linear)
        angular_rate, linear_rate = sub(angular_rate, taken[0]), sub(linear_rate, taken[1])

    for i in range(constant_rows(loop)):
        gamma = dot(vec(loop.moment[i]), angular_rate) + dot(vec(loop.force[i]), linear_rate)
        rows[loop.row + i].gamma = gamma
    if loop.variable > 0:
        moment, force = variable_direction(loop, relative, s)
        gamma = dot(moment, angular_rate) + dot(force, linear_rate)
        if loop.variable == PERPENDICULAR:
            z = transpose(relative)[2]
            gamma += dot(cross(cross(angular, z), Z), angular)
        else:
            along, across = dot(force, linear), arm(loop, linear)
            gamma += (dot(across, across) - along * along) / norm(arm(loop, s))
            if loop.variable == ROD and loop.target >= 0:
                gamma -= targets[loop.target].a[2]
        rows[loop.row + loop.rows - 1].gamma = gamma


@helper
def prescribed_acceleration(loop: Loop, target: Target, s: Vector, s_rate: Vector) -> Pair:
    """Rate of ``prescribed_rate``; s_rate is the velocity of b's origin seen in a'."""
    turn = vec(loop.turn)
    spin = scale(target.rate, turn)
    x, y, z, w = quat_exp(scale(-target.angle, turn))
    back = rotation(x, y, z, w)
    linear = add(cross(scale(target.acceleration, turn), s), cross(spin, s_rate))
    linear = add(linear, apply(back, vec(target.a)))
    linear = sub(linear, cross(spin, apply(back, vec(target.v))))
    return scale(target.acceleration, turn), linear
