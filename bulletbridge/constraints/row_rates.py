"""How the Jacobian of loops and couplings changes along a motion.

The columns of ``rows``, differentiated; with ``mechanism.rates`` for what they are made of.
"""

from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.constraints.prescribed import prescribed_rate
from bulletbridge.constraints.records import (
    FREE_ROTATION,
    ROD,
    Coupling,
    Loop,
    Target,
    Term,
)
from bulletbridge.constraints.relative_pose import (
    constant_rows,
    frames,
    from_other,
    position_in,
    variable_direction,
    variable_direction_rate,
)
from bulletbridge.constraints.rows import curvature
from bulletbridge.mechanism.kinematics import axis_twist, pose_twist
from bulletbridge.mechanism.rates import TreeRates
from bulletbridge.mechanism.records import Axis, Pose
from bulletbridge.numerics.records import Array, Matrix, Records
from bulletbridge.numerics.spatial import (
    ZERO,
    Pair,
    Vector,
    add,
    apply,
    cross,
    dot,
    mul,
    scale,
    sub,
    transpose,
    vec,
    velocity_at,
)


class RowRecords(NamedTuple):
    """What rows are made of: loops, couplings, and the terms of these."""

    loops: Records[Loop]
    couplings: Records[Coupling]
    terms: Records[Term]


@kernel
def jacobian_rate(
    rows: RowRecords,
    poses: Records[Pose],
    axes: Records[Axis],
    targets: Records[Target],
    rates: TreeRates,
    v: Array,
    J_rate: Array,
) -> None:
    """Rate of the Jacobian (nc, nv) at the rates v (nv,), with those of prescribed motions.

    Takes ``rates`` from ``mass_rates`` at v.
    """
    loops, couplings, terms = rows
    for i in range(J_rate.shape[0]):
        for k in range(J_rate.shape[1]):
            J_rate[i, k] = 0.0
    for i in range(len(loops)):
        add_loop_rate(loops[i], poses, axes, targets, rates.poses, rates.axes, J_rate)
    for i in range(len(couplings)):
        coupling = couplings[i]
        for k in range(coupling.first, coupling.first + coupling.count):
            axis = terms[k].axis
            J_rate[coupling.row, axis] = curvature(terms[k], axes[axis].position) * v[axis]


@helper
def add_loop_rate(
    loop: Loop,
    poses: Records[Pose],
    axes: Records[Axis],
    targets: Records[Target],
    moving: Records[Pose],
    turning: Records[Axis],
    J_rate: Array,
) -> None:
    """Add the rates of all columns of one loop."""
    a, b = frames(loop, poses, targets)
    up, s, point = transpose(a[0]), position_in(a, b), b[1]
    other = from_other(loop, poses, a, b)[1][1]
    twist_a, twist_b = pose_twist(moving[loop.body_a]), pose_twist(moving[loop.body_b])
    velocity = velocity_at(twist_b, point)
    spin = twist_a[0]
    s_rate = apply(up, sub(velocity, velocity_at(twist_a, other)))
    if loop.target >= 0 and loop.variable != ROD:
        target = targets[loop.target]
        spin = add(spin, apply(a[0], scale(target.rate, vec(loop.turn))))
        s_rate = sub(s_rate, prescribed_rate(loop, target, s)[1])
    direction, direction_rate = (ZERO, ZERO), (ZERO, ZERO)
    if loop.variable > 0:
        relative = mul(up, b[0])
        direction = variable_direction(loop, relative, s)
        turn_rate = apply(up, sub(twist_b[0], spin))
        direction_rate = variable_direction_rate(loop, relative, s, turn_rate, s_rate)
    for side in range(2):
        k = loop.axis_a if side == 0 else loop.axis_b
        sign = -1.0 if side == 0 else 1.0
        here = other if side == 0 else point
        while k != loop.common_axis:
            twist, rate = axis_twist(axes[k]), axis_twist(turning[k])
            angular, angular_rate = seen(up, spin, sign, twist[0], rate[0])
            linear_rate = add(velocity_at(rate, here), cross(twist[0], velocity))
            linear, linear_rate = seen(up, spin, sign, velocity_at(twist, here), linear_rate)
            for i in range(constant_rows(loop)):
                J_rate[loop.row + i, k] += dot(vec(loop.force[i]), linear_rate)
                if loop.rotation != FREE_ROTATION:
                    J_rate[loop.row + i, k] += dot(vec(loop.moment[i]), angular_rate)
            if loop.variable > 0:
                turned = dot(direction_rate[0], angular) + dot(direction[0], angular_rate)
                moved = dot(direction_rate[1], linear) + dot(direction[1], linear_rate)
                J_rate[loop.row + loop.rows - 1, k] += turned + moved
            k = axes[k].below


@helper
def seen(up: Matrix, spin: Vector, sign: float, x: Vector, rate: Vector) -> Pair:
    """A vector times ``sign`` and its rate in axes ``up`` that turn with ``spin``."""
    return apply(up, scale(sign, x)), apply(up, scale(sign, sub(rate, cross(spin, x))))
