"""Derivatives of inverse dynamics M v̇ + h by positions and rates, by recursion over the tree.

A position of axis j displaces all that the axis carries by its unit twist S. Seen from the world
that turns every twist, acceleration and wrench alike, so that nothing but what the displaced part
inherits from below is left to add: a velocity U and an acceleration C + U x V, the same U and C for
all bodies that the axis carries. Rates add S and E + S x V. What such an addition does to forces is
linear in it, by the composite inertia and by D: a mass at x that moves at u and turns by an added w
needs 2 m w x u more (Coriolis).

Source: Carpentier and Mansard 2018; Singh, Russell and Wensing 2022 (their ψ̇, ψ̈ are U, C).
"""

from typing import NamedTuple

from bulletbridge.compilation.jit import helper
from bulletbridge.mechanism.inertias import carried_inertia, own_inertia
from bulletbridge.mechanism.kinematics import axis_twist, carried_twist, pose_twist
from bulletbridge.mechanism.records import FREE, SPHERICAL, Axis, Body, Pose
from bulletbridge.numerics.records import Array, Mat3, Matrix, Records, Vec3, Vector, dtype_of
from bulletbridge.numerics.spatial import (
    ZERO,
    Pair,
    add,
    add_mat,
    add_pair,
    apply,
    cross,
    diagonal,
    dot,
    force_cross,
    mat,
    momentum,
    motion_cross,
    mul,
    outer,
    power,
    put,
    put_mat,
    put_pair,
    scale,
    scale_pair,
    sub_pair,
    transpose,
    vec,
    velocity_at,
)


class Variation:
    """What all that an axis carries gets by its position, and by its rate, beside its unit twist.

    Spatial vectors at the tree's origin.
    """

    w: Vec3  # U: velocity by position
    v: Vec3
    cw: Vec3  # C: acceleration by position
    cv: Vec3
    ew: Vec3  # E: acceleration by rate
    ev: Vec3


class Load:
    """What a body carries, itself included."""

    aw: Vec3  # acceleration of the body by all v̇
    av: Vec3
    fw: Vec3  # moment and force needed for all motion
    fv: Vec3
    momentum: Vec3  # linear
    turned: Mat3  # moment by an added angular velocity: 2 (tr K - K), K = Σ m u xᵀ


class VariedTree(NamedTuple):
    """A tree with what its axes change as each of them is displaced."""

    bodies: Records[Body]  # (nb,)
    poses: Records[Pose]  # (nb,) with complete accelerations
    axes: Records[Axis]  # (nv,)
    variations: Records[Variation]  # (nv,) by ``vary_axes``


VARIATION, LOAD = dtype_of(Variation), dtype_of(Load)


@helper
def added_velocity(variation: Variation) -> Pair:
    """U of an axis."""
    return vec(variation.w), vec(variation.v)


@helper
def added_acceleration(variation: Variation) -> Pair:
    """C of an axis."""
    return vec(variation.cw), vec(variation.cv)


@helper
def acceleration_by_rate(variation: Variation) -> Pair:
    """E of an axis."""
    return vec(variation.ew), vec(variation.ev)


@helper
def turns_a_base(bodies: Records[Body], axes: Records[Axis], j: int) -> bool:
    """Whether an axis is one of the turns of a free body, which are fixed in the world."""
    body = bodies[axes[j].body]
    return body.joint == FREE and j < body.v + 3


@helper
def is_carried(bodies: Records[Body], axes: Records[Axis], j: int, k: int) -> bool:
    """Whether axis k is displaced by axis j, both of them on one way to the world."""
    if axes[j].body == axes[k].body:
        return not turns_a_base(bodies, axes, j)
    return k > j


@helper
def take_accelerations(
    bodies: Records[Body],
    poses: Records[Pose],
    axes: Records[Axis],
    vdot: Array,
    loads: Records[Load],
) -> None:
    """Accelerations of the bodies and forces on what they carry at vdot, into poses and loads.

    Takes the poses from ``bias`` without efforts; their accelerations are then complete, less
    gravity.
    """
    put(loads[0].aw, ZERO)
    put(loads[0].av, ZERO)
    for i in range(1, len(bodies)):
        body, pose, load = bodies[i], poses[i], loads[i]
        below = loads[body.parent]
        own = carried_twist(body, axes, vdot, (vec(below.aw), vec(below.av)))
        put(load.aw, own[0])
        put(load.av, own[1])
        put(pose.aw, add(vec(pose.aw), own[0]))
        put(pose.av, add(vec(pose.av), own[1]))
        inertia, twist = own_inertia(pose), pose_twist(pose)
        force = momentum(inertia, own)
        put(load.fw, force[0])
        put(load.fv, force[1])
        put(load.momentum, momentum(inertia, twist)[1])
        put_mat(load.turned, coriolis(pose.m, vec(pose.mc), mat(pose.J), twist))
    for i in range(len(bodies) - 1, 0, -1):
        if bodies[i].parent > 0:
            load, below = loads[i], loads[bodies[i].parent]
            put(below.fw, add(vec(below.fw), vec(load.fw)))
            put(below.fv, add(vec(below.fv), vec(load.fv)))
            put(below.momentum, add(vec(below.momentum), vec(load.momentum)))
            put_mat(below.turned, add_mat(mat(below.turned), mat(load.turned)))
    for i in range(1, len(bodies)):
        pose, load = poses[i], loads[i]
        put(load.fw, add(vec(load.fw), vec(pose.fw)))
        put(load.fv, add(vec(load.fv), vec(pose.fv)))


@helper
def coriolis(m: float, mc: Vector, J: Matrix, twist: Pair) -> Matrix:
    """2 (tr K - K) of a body, K = Σ m u xᵀ over its masses at x that move at u."""
    w, v = twist
    squares = add_mat(diagonal(0.5 * (J[0][0] + J[1][1] + J[2][2])), negative(J))  # Σ m x xᵀ
    turning = ((0.0, -w[2], w[1]), (w[2], 0.0, -w[0]), (-w[1], w[0], 0.0))
    K = add_mat(outer(v, mc), mul(turning, squares))
    return add_mat(diagonal(2.0 * (K[0][0] + K[1][1] + K[2][2])), add_mat(negative(K), negative(K)))


@helper
def negative(A: Matrix) -> Matrix:
    """-A."""
    return scale(-1.0, A[0]), scale(-1.0, A[1]), scale(-1.0, A[2])


@helper
def vary_axes(
    bodies: Records[Body],
    poses: Records[Pose],
    axes: Records[Axis],
    variations: Records[Variation],
) -> None:
    """U, C and E of every axis, with complete accelerations in the poses."""
    for j in range(len(axes)):
        body, own = bodies[axes[j].body], poses[axes[j].body]
        S, twist = axis_twist(axes[j]), pose_twist(own)
        below = poses[body.parent]
        turn = turns_a_base(bodies, axes, j)
        if turn:
            below = own  # what a free body does does not turn with it
        carrier = pose_twist(below)
        U = motion_cross(carrier, S)
        C = motion_cross((vec(below.aw), vec(below.av)), S)
        C = add_pair(C, motion_cross(carrier, U))
        E = add_pair(U, motion_cross(twist, S))
        if turn:
            E = (U[0], add(U[1], cross(velocity_at(twist, vec(own.p)), S[0])))
        elif body.joint == FREE:
            E = (ZERO, ZERO)
        variation = variations[j]
        put(variation.w, U[0])
        put(variation.v, U[1])
        put(variation.cw, C[0])
        put(variation.cv, C[1])
        put(variation.ew, E[0])
        put(variation.ev, E[1])


@helper
def needed_more(pose: Pose, load: Load, velocity: Pair, acceleration: Pair) -> Pair:
    """Wrench that all a body carries needs more if it gets these in addition."""
    force = momentum(carried_inertia(pose), acceleration)
    w = velocity[0]
    return add_pair(force, (apply(mat(load.turned), w), scale(2.0, cross(w, vec(load.momentum)))))


@helper
def differentiate_tree(
    bodies: Records[Body],
    poses: Records[Pose],
    axes: Records[Axis],
    variations: Records[Variation],
    loads: Records[Load],
    by_rates: bool,
    F: Array,
) -> None:
    """Derivatives of M v̇ + h without forces: by positions, then by rates; F (nv, 2 nv or more).

    Positions are tangent coordinates: rates of a displacement from here. Takes what
    ``take_accelerations`` and ``vary_axes`` write. At rest nothing changes with rates, which may
    then be left out.
    """
    nv = len(axes)
    for k in range(nv):
        axis = axes[k]
        body, pose, load = bodies[axis.body], poses[axis.body], loads[axis.body]
        S, variation = axis_twist(axis), variations[k]
        # this axis displaced: what is needed along it and along those below
        rest = needed_more(pose, load, added_velocity(variation), added_acceleration(variation))
        turned = force_cross(S, (vec(load.fw), vec(load.fv)))
        whole = add_pair(rest, turned)
        F[k, k] = power(rest, S)
        # axes below displaced: what is needed along this one
        pushed = momentum(carried_inertia(pose), S)
        bent = add(
            apply(transpose(mat(load.turned)), S[0]), scale(2.0, cross(vec(load.momentum), S[1]))
        )
        several = body.joint == FREE or body.joint == SPHERICAL
        free_turn = turns_a_base(bodies, axes, k)
        j = axis.below
        while j >= 0:
            lower, other = axis_twist(axes[j]), variations[j]
            alike = several and axes[j].body == axis.body
            F[j, k] = power(rest if alike and not free_turn else whole, lower)
            by_place = power(pushed, added_acceleration(other)) + dot(bent, vec(other.w))
            if alike and turns_a_base(bodies, axes, j):
                by_place += power(force_cross(lower, (vec(load.fw), vec(load.fv))), S)
            F[k, j] = by_place
            j = axes[j].below
        if by_rates:
            rated = needed_more(pose, load, S, acceleration_by_rate(variation))
            F[k, nv + k] = power(rated, S)
            j = axis.below
            while j >= 0:
                lower, other = axis_twist(axes[j]), variations[j]
                F[j, nv + k] = power(rated, lower)
                F[k, nv + j] = power(pushed, acceleration_by_rate(other)) + dot(bent, lower[0])
                j = axes[j].below


@helper
def differentiate_joint_forces(axes: Records[Axis], spring_dt: float, F: Array) -> None:
    """Less the forces of springs and dampers of the joints: adds stiffness and damping to F.

    Springs are taken ``spring_dt`` [s] ahead.
    """
    nv = len(axes)
    for k in range(nv):
        F[k, k] += axes[k].stiffness
        F[k, nv + k] += axes[k].damping + spring_dt * axes[k].stiffness


@helper
def put_sums(axes: Records[Axis], w: Array, sums: Array) -> None:
    """Twists (nv, 6) that each axis and those below it give together at rates w (nv,)."""
    for k in range(len(axes)):
        twist = scale_pair(w[k], axis_twist(axes[k]))
        if axes[k].below >= 0:
            twist = add_pair(twist, sum_at(sums, axes[k].below))
        put_pair(sums[k], twist)


@helper
def sum_at(sums: Array, k: int) -> Pair:
    """What ``put_sums`` has written of axis k; zero for none."""
    if k < 0:
        return ZERO, ZERO
    return vec(sums[k]), vec(sums[k, 3:])


@helper
def sum_below(bodies: Records[Body], axes: Records[Axis], sums: Array, j: int) -> Pair:
    """What is not carried by axis j, of the sum of an axis that stands above it."""
    body = bodies[axes[j].body]
    return sum_at(sums, body.axis if turns_a_base(bodies, axes, j) else axes[body.v].below)


@helper
def bent_back(load: Load, twist: Pair) -> Vector:
    """What an added turn does by Coriolis' term to the power of what is carried along a twist."""
    turned = apply(transpose(mat(load.turned)), twist[0])
    return add(turned, scale(2.0, cross(vec(load.momentum), twist[1])))


class TreeGradients(NamedTuple):
    """Gradients of the power of forces on the rates along w, and what they are put together in."""

    w: Array  # (nv,)
    size: float  # what they are multiplied by
    sums: Array  # (nv, 6) by ``put_sums`` with w
    above: Array  # (nv, 9) scratch: of all axes above one
    of_q: Array  # (nv,) receives those by positions, in addition
    of_v: Array  # (nv,) those by rates


@helper
def pull_back_tree(
    bodies: Records[Body],
    poses: Records[Pose],
    axes: Records[Axis],
    variations: Records[Variation],
    loads: Records[Load],
    g: TreeGradients,
) -> None:
    """``differentiate_tree`` transposed: gradients of wᵀ (M v̇ + h), once along the tree."""
    for k in range(len(axes)):
        for i in range(9):
            g.above[k, i] = 0.0
    for k in range(len(axes) - 1, -1, -1):
        axis = axes[k]
        body, pose, load = bodies[axis.body], poses[axis.body], loads[axis.body]
        S, variation, whole = axis_twist(axis), variations[k], sum_at(g.sums, k)
        inertia, above = carried_inertia(pose), g.above[k]
        # what is needed along this axis and those below, and of those above along themselves
        force = add_pair(momentum(inertia, whole), (vec(above), vec(above[3:])))
        bent = add(bent_back(load, whole), vec(above[6:]))
        carried, free_turn = (vec(load.fw), vec(load.fv)), turns_a_base(bodies, axes, k)
        below = sum_at(g.sums, axis.below if free_turn else axes[body.v].below)
        by_place = power(force, added_acceleration(variation)) + dot(bent, vec(variation.w))
        by_place += power(force_cross(S, carried), below)
        if free_turn:
            rest = sub_pair(sum_at(g.sums, body.axis), whole)
            by_place += power(force_cross(S, carried), rest)
        g.of_q[k] += g.size * by_place
        g.of_v[k] += g.size * (power(force, acceleration_by_rate(variation)) + dot(bent, S[0]))
        if axis.below >= 0:
            own, other = scale_pair(g.w[k], S), g.above[axis.below]
            pushed = momentum(inertia, own)
            put(other, add(add(vec(other), vec(above)), pushed[0]))
            put(other[3:], add(add(vec(other[3:]), vec(above[3:])), pushed[1]))
            put(other[6:], add(add(vec(other[6:]), vec(above[6:])), bent_back(load, own)))


@helper
def pull_back_joint_forces(axes: Records[Axis], spring_dt: float, g: TreeGradients) -> None:
    """``differentiate_joint_forces`` transposed."""
    for k in range(len(axes)):
        along = g.size * g.w[k]
        g.of_q[k] += along * axes[k].stiffness
        g.of_v[k] += along * (axes[k].damping + spring_dt * axes[k].stiffness)
