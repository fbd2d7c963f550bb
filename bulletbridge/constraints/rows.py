"""Residuals, Jacobian rows and drift of loops and couplings: one kernel for every joint model.

Frame a' is frame a after its prescribed motion. All rows use the pose of b in a', the twist of b
relative to a at b's origin, and its rate, in axes of a'. The twist rows are the exact derivative of
the residual at g = 0; away from it rotations agree to first order.
"""

import numpy as np

from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.constraints.prescribed import (
    prescribed_rates,
)
from bulletbridge.constraints.records import (
    FREE_ROTATION,
    Coupling,
    Loop,
    Target,
    Term,
)
from bulletbridge.constraints.relative_pose import (
    Placement,
    constant_rows,
    frames,
    from_other,
    position_in,
    rotation_error,
    variable_direction,
    variable_residual,
)
from bulletbridge.mechanism.kinematics import axis_twist
from bulletbridge.mechanism.records import AXIS, Axis, Pose
from bulletbridge.numerics.projection import Row
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import (
    add,
    apply,
    cross,
    dot,
    mat,
    mul,
    put,
    scale,
    transpose,
    vec,
    velocity_at,
)


@helper
def polynomial(term: Term, x: float) -> float:
    """Part of a coupling that a joint at x supplies."""
    c = term.higher
    return x * (term.coefficient + x * (c[0] + x * (c[1] + x * c[2])))


@helper
def slope(term: Term, x: float) -> float:
    """First derivative of ``polynomial``."""
    c = term.higher
    return term.coefficient + x * (2.0 * c[0] + x * (3.0 * c[1] + x * 4.0 * c[2]))


@helper
def curvature(term: Term, x: float) -> float:
    """Second derivative of ``polynomial``."""
    c = term.higher
    return 2.0 * c[0] + x * (6.0 * c[1] + x * 12.0 * c[2])


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
) -> float:
    """Residual g of every row [m or rad] at the poses, into rows .g.

    Returns:
        How far directions that were left out are open beyond what they may [lengths or rad].
    """
    beyond = 0.0
    for i in range(len(loops)):
        loop = loops[i]
        a, b = frames(loop, poses, targets)
        relative, s = mul(transpose(a[0]), b[0]), position_in(a, b)
        error = rotation_error(loop, relative, s)
        constant = constant_rows(loop)
        for k in range(constant):
            g = dot(vec(loop.moment[k]), error) + dot(vec(loop.force[k]), s)
            rows[loop.row + k].g = g if k < loop.held else 0.0
        for k in range(constant, constant + loop.left):
            g = dot(vec(loop.moment[k]), error) + dot(vec(loop.force[k]), s)
            beyond = max(beyond, abs(g) - loop.allowed)
        if loop.variable > 0:
            row = rows[loop.row + constant]
            before = row.g if loop.adds != 0 else 0.0
            row.g = before + variable_residual(loop, relative, s, targets)
    for i in range(len(couplings)):
        coupling = couplings[i]
        total = -coupling.offset
        if coupling.target >= 0:
            total -= targets[coupling.target].p[2]
        for k in range(coupling.first, coupling.first + coupling.count):
            total += polynomial(terms[k], q[axes[terms[k].axis].q])
        rows[coupling.row].g = total
    return beyond


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
    add_rows(loops, couplings, terms, poses, axes, targets, J)
    prescribed_rates(loops, couplings, poses, targets, rows)


@kernel
def free_rows(
    loops: Records[Loop],
    poses: Records[Pose],
    targets: Records[Target],
    axes: Records[Axis],
    points: Array,
    J: Array,
) -> None:
    """Rows J (nc, 6) of loops for free bodies in the place of the links of b, and b's origins.

    Six axes are room, as ``axes_of_free_body`` makes them; loops lose what moves both bodies alike.
    """
    for i in range(J.shape[0]):
        for k in range(6):
            J[i, k] = 0.0
    for i in range(len(loops)):
        loop, pose = loops[i], poses[loops[i].body_b]
        loop.common_axis = -1
        arm = add(vec(pose.p), apply(mat(pose.R), vec(loop.p_b)))
        put(points[i], add(vec(pose.origin), arm))
        for k in range(3):
            put(axes[k].v, cross(arm, vec(axes[k].w)))
        a, b = frames(loop, poses, targets)
        add_columns(loop, a, b, axes, 5, 1.0, 0, J)


def axes_of_free_body() -> np.ndarray:
    """Records (6,) of turns about world axes, then travels along them, for ``free_rows``."""
    axes = np.zeros(6, AXIS)
    axes["below"] = np.arange(6) - 1
    axes["w"][:3] = axes["v"][3:] = np.eye(3)
    return axes


@helper
def add_rows(
    loops: Records[Loop],
    couplings: Records[Coupling],
    terms: Records[Term],
    poses: Records[Pose],
    axes: Records[Axis],
    targets: Records[Target],
    J: Array,
) -> None:
    """Add the rows of all constraints to J (nc, nv)."""
    for i in range(len(loops)):
        loop = loops[i]
        a, b = frames(loop, poses, targets)
        add_columns(loop, a, b, axes, loop.axis_b, 1.0, 0, J)
        if loop.axis_a != loop.common_axis:
            a, b = from_other(loop, poses, a, b)
            add_columns(loop, a, b, axes, loop.axis_a, -1.0, 0, J)
    for i in range(len(couplings)):
        coupling = couplings[i]
        for k in range(coupling.first, coupling.first + coupling.count):
            J[coupling.row, terms[k].axis] = slope(terms[k], axes[terms[k].axis].position)


@kernel
def block_jacobian(
    loops: Records[Loop],
    couplings: Records[Coupling],
    poses: Records[Pose],
    axes: Records[Axis],
    targets: Records[Target],
    first: Ints,
    J: Array,
    rows: Records[Row],
) -> None:
    """``jacobian`` of the loops by modules: what each end adds to J (2, rows, widest).

    Column k of the module of an end is in J[end, row, k - first[k]].
    """
    J_a, J_b = J[0], J[1]
    for i in range(J_a.shape[0]):
        for k in range(J_a.shape[1]):
            J_a[i, k] = J_b[i, k] = 0.0
    for i in range(len(loops)):
        loop = loops[i]
        a, b = frames(loop, poses, targets)
        if loop.axis_b >= 0:
            add_columns(loop, a, b, axes, loop.axis_b, 1.0, first[loop.axis_b], J_b)
        if loop.axis_a >= 0:
            a, b = from_other(loop, poses, a, b)
            add_columns(loop, a, b, axes, loop.axis_a, -1.0, first[loop.axis_a], J_a)
    prescribed_rates(loops, couplings, poses, targets, rows)


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

    Frames are to be from the origin of the tree of these axes. The column of axis k is k - shift.
    """
    up = transpose(a[0])
    constant = constant_rows(loop)
    k = last
    while k != loop.common_axis:
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


@outlined
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
    while k != loop.common_axis:
        twist = axis_twist(axes[k])
        linear = velocity_at(twist, b[1])
        J[loop.row + loop.rows - 1, k - shift] += dot(moment, twist[0]) + dot(force, linear)
        k = axes[k].below
