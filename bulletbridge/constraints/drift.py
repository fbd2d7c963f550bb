"""Accelerations of constraints at zero joint accelerations."""

from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.constraints.prescribed import (
    prescribed_acceleration,
    prescribed_rate,
)
from bulletbridge.constraints.records import (
    PERPENDICULAR,
    ROD,
    WHOLE_TURN,
    Coupling,
    Loop,
    Target,
    Term,
)
from bulletbridge.constraints.relative_pose import (
    Placement,
    arm,
    constant_rows,
    frames,
    position_in,
    variable_direction,
    variable_direction_rate,
)
from bulletbridge.constraints.rows import curvature
from bulletbridge.mechanism.inertias import rigid_acceleration
from bulletbridge.mechanism.kinematics import between_origins, pose_twist
from bulletbridge.mechanism.records import Axis, Pose
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Matrix, Records, Vector
from bulletbridge.numerics.spatial import (
    add,
    apply,
    cross,
    dot,
    mul,
    norm,
    scale,
    sub,
    transpose,
    vec,
    velocity_at,
)


@kernel
def drift(
    loops: Records[Loop],
    couplings: Records[Coupling],
    terms: Records[Term],
    poses: Records[Pose],
    axes: Records[Axis],
    targets: Records[Target],
    rows: Records[Row],
) -> None:
    """Acceleration of every constraint at zero joint accelerations, into rows .gamma.

    Takes twists and accelerations of the bodies and rates of the joints from ``bias``; gravity
    cancels between a and b.
    """
    for i in range(len(loops)):
        put_loop_drift(loops[i], poses, targets, rows)
    for i in range(len(couplings)):
        coupling = couplings[i]
        total = 0.0
        if coupling.target >= 0:
            total -= targets[coupling.target].a[2]
        for k in range(coupling.first, coupling.first + coupling.count):
            axis = axes[terms[k].axis]
            total += curvature(terms[k], axis.position) * axis.rate**2
        rows[coupling.row].gamma = total


class RelativeMotion(NamedTuple):
    """How frame b of a loop is placed and moves relative to a', in axes of a' as it turns."""

    a: Placement  # a', from the origin of b's tree
    b: Placement
    relative: Matrix  # rotation of b in a'
    s: Vector  # origin of b
    angular: Vector
    linear: Vector  # rate of s
    angular_rate: Vector
    linear_rate: Vector
    turning: Vector  # angular velocity of a', world axes


@helper
def relative_motion(loop: Loop, poses: Records[Pose], targets: Records[Target]) -> RelativeMotion:
    """Place, twist and acceleration of b by those of the bodies; gravity cancels."""
    a, b = frames(loop, poses, targets)
    up = transpose(a[0])
    relative, s = mul(up, b[0]), position_in(a, b)
    body_a, body_b = poses[loop.body_a], poses[loop.body_b]
    here = add(b[1], between_origins(poses, loop.body_a, loop.body_b))  # b from a's tree
    twist_a, twist_b = pose_twist(body_a), pose_twist(body_b)
    bias_a, bias_b = (vec(body_a.aw), vec(body_a.av)), (vec(body_b.aw), vec(body_b.av))

    # twist of b relative to the body of a at b's origin, and its rate, in world axes
    w = sub(twist_b[0], twist_a[0])
    u = sub(velocity_at(twist_b, b[1]), velocity_at(twist_a, here))
    w_rate = sub(bias_b[0], bias_a[0])
    u_rate = sub(
        rigid_acceleration(twist_b, bias_b, b[1]), rigid_acceleration(twist_a, bias_a, here)
    )
    u_rate = sub(u_rate, cross(twist_a[0], u))

    # the same in the turning axes of a'
    turning = twist_a[0]
    driven = is_driven(loop)
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
    return RelativeMotion(a, b, relative, s, angular, linear, angular_rate, linear_rate, turning)


@helper
def is_driven(loop: Loop) -> bool:
    """Whether a prescribed motion moves frame a of a loop."""
    return loop.target >= 0 and loop.variable != ROD


@helper
def put_loop_drift(
    loop: Loop, poses: Records[Pose], targets: Records[Target], rows: Records[Row]
) -> None:
    """Write gamma of the rows of one loop."""
    motion = relative_motion(loop, poses, targets)
    angular, linear = motion.angular, motion.linear
    angular_rate, linear_rate = motion.angular_rate, motion.linear_rate
    relative, s = motion.relative, motion.s
    for i in range(constant_rows(loop)):
        gamma = dot(vec(loop.moment[i]), angular_rate) + dot(vec(loop.force[i]), linear_rate)
        rows[loop.row + i].gamma = gamma
    if loop.variable > 0:
        moment, force = variable_direction(loop, relative, s)
        gamma = dot(moment, angular_rate) + dot(force, linear_rate)
        if loop.variable == PERPENDICULAR or loop.variable == WHOLE_TURN:
            bent = variable_direction_rate(loop, relative, s, angular, linear)[0]
            gamma += dot(bent, angular)
        else:
            along, across = dot(force, linear), arm(loop, linear)
            gamma += (dot(across, across) - along * along) / norm(arm(loop, s))
            if loop.variable == ROD and loop.target >= 0:
                gamma -= targets[loop.target].a[2]
        row = rows[loop.row + loop.rows - 1]
        row.gamma = gamma + (row.gamma if loop.adds != 0 else 0.0)
