"""Velocities and accelerations that prescribed motions of frame a ask of the rows."""

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.constraints.records import (
    ROD,
    Coupling,
    Loop,
    Target,
)
from bulletbridge.constraints.relative_pose import (
    constant_rows,
    frames,
    position_in,
    variable_direction,
)
from bulletbridge.mechanism.records import Pose
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Records, Vector
from bulletbridge.numerics.spatial import (
    Pair,
    add,
    apply,
    cross,
    dot,
    mul,
    quat_exp,
    rotation,
    scale,
    sub,
    transpose,
    vec,
)


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
            put_prescribed_rate(loop, poses, targets, rows)
    for i in range(len(couplings)):
        coupling = couplings[i]
        if coupling.target >= 0:
            rows[coupling.row].g_t = -targets[coupling.target].v[2]


@outlined
def prescribed_rate(loop: Loop, target: Target, s: Vector) -> Pair:
    """Twist that the prescribed motion of a' takes away from that of b, in axes of a'."""
    turn = vec(loop.turn)
    angular = scale(target.rate, turn)
    x, y, z, w = quat_exp(scale(-target.angle, turn))
    return angular, add(cross(angular, s), apply(rotation(x, y, z, w), vec(target.v)))


@outlined
def put_prescribed_rate(
    loop: Loop, poses: Records[Pose], targets: Records[Target], rows: Records[Row]
) -> None:
    """Write g_t of the rows of a driven loop."""
    target = targets[loop.target]
    if loop.variable == ROD:
        rows[loop.row].g_t = -target.v[2]
        return
    a, b = frames(loop, poses, targets)
    relative, s = mul(transpose(a[0]), b[0]), position_in(a, b)
    angular, linear = prescribed_rate(loop, target, s)
    for i in range(constant_rows(loop)):
        rate = dot(vec(loop.moment[i]), angular) + dot(vec(loop.force[i]), linear)
        rows[loop.row + i].g_t = -rate
    if loop.variable > 0:
        moment, force = variable_direction(loop, relative, s)
        rows[loop.row + loop.rows - 1].g_t = -dot(moment, angular) - dot(force, linear)


@outlined
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
