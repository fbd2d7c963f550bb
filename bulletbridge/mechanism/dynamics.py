"""Mass matrix and bias forces of the forest.

Source: Featherstone, Rigid Body Dynamics Algorithms, ch. 5 (RNEA), 6 (CRBA), in world axes.
"""

from collections.abc import Callable
from typing import Any

from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.mechanism.bending import add_beam, add_beam_forces, add_modes, tip_drift
from bulletbridge.mechanism.force_elements import (
    add_element,
    add_line,
    add_tendon,
    add_wrench,
    coordinates,
)
from bulletbridge.mechanism.inertias import (
    carried_inertia,
    own_inertia,
    put_carried_inertia,
    put_own_inertia,
)
from bulletbridge.mechanism.kinematics import axis_twist, pose_twist
from bulletbridge.mechanism.records import (
    BEAM,
    DRAG,
    FREE,
    STRETCH,
    TENDON,
    WRENCH,
    Axis,
    Beam,
    Body,
    Effort,
    Pose,
    Station,
)
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import (
    ZERO,
    add,
    add_inertia,
    add_pair,
    apply,
    cross,
    diagonal,
    force_cross,
    inertia_at,
    mat,
    momentum,
    motion_cross,
    mul,
    norm,
    power,
    put,
    scale,
    scale_pair,
    transpose,
    vec,
    velocity_at,
)


@helper
def own_inertias(
    bodies: Records[Body], beams: Records[Beam], stations: Records[Station], poses: Records[Pose]
) -> None:
    """Inertia of each body about its tree's origin, with that of beams at their roots."""
    for i in range(1, len(bodies)):
        body, pose = bodies[i], poses[i]
        R = mat(pose.R)
        centre = add(vec(pose.p), apply(R, vec(body.com)))
        inertia = inertia_at(centre, body.mass, mul(mul(R, mat(body.J)), transpose(R)))
        put_own_inertia(pose, inertia)
    if len(beams) > 0:
        put_own_inertia(poses[0], (0.0, ZERO, diagonal(0.0)))  # a beam on the world adds to it
    for i in range(len(beams)):
        add_beam(beams[i], stations, poses[bodies[beams[i].body].parent])


@helper
def composite_inertias(
    bodies: Records[Body], beams: Records[Beam], stations: Records[Station], poses: Records[Pose]
) -> None:
    """Inertia of each body, and of what it carries, about its tree's origin."""
    own_inertias(bodies, beams, stations, poses)
    for i in range(1, len(bodies)):
        put_carried_inertia(poses[i], own_inertia(poses[i]))
    for i in range(len(bodies) - 1, 0, -1):
        parent = bodies[i].parent
        if parent > 0:
            below = poses[parent]
            total = add_inertia(carried_inertia(below), carried_inertia(poses[i]))
            put_carried_inertia(below, total)


@helper
def clear(row: Array, end: int) -> None:
    """Set the first entries to zero."""
    for j in range(end):
        row[j] = 0.0


@helper
def shifted(j: int, shift: int) -> int:
    """A column that stands further left than its number says."""
    return j - shift


@helper
def mass_row(
    column_of: Callable[[int, Any], int],
    columns: Any,
    axes: Records[Axis],
    poses: Records[Pose],
    k: int,
    row: Array,
) -> None:
    """What M has in row k up to its diagonal beside zeros; ``column_of`` says where columns are."""
    pushed = momentum(carried_inertia(poses[axes[k].body]), axis_twist(axes[k]))
    j = k
    while j >= 0:
        row[column_of(j, columns)] = power(pushed, axis_twist(axes[j]))
        j = axes[j].below
    row[column_of(k, columns)] += axes[k].armature


@kernel
def mass_matrix(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    poses: Records[Pose],
    axes: Records[Axis],
    M: Array,
) -> None:
    """Composite-rigid-body algorithm: M (nv, nv), the lower triangle.

    Takes poses and axes from ``kinematics``; writes the inertias of the poses for ``bias``.
    """
    composite_inertias(bodies, beams, stations, poses)
    for k in range(len(axes)):
        clear(M[k], k)
        mass_row(shifted, 0, axes, poses, k, M[k])
    for i in range(len(beams)):
        add_modes(beams[i], bodies[beams[i].body], stations, axes, 0, M)


@kernel
def block_masses(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    poses: Records[Pose],
    axes: Records[Axis],
    first: Ints,
    M: Array,
) -> None:
    """``mass_matrix`` by modules: column j of row k is in M[k, j - first[k]], (nv, widest)."""
    composite_inertias(bodies, beams, stations, poses)
    for k in range(len(axes)):
        clear(M[k], k - first[k])
        mass_row(shifted, first[k], axes, poses, k, M[k])
    for i in range(len(beams)):
        body = bodies[beams[i].body]
        add_modes(beams[i], body, stations, axes, first[body.v], M)


@helper
def put_gravity(poses: Records[Pose], gravity: Array) -> None:
    """Gravity [m/s²] for ``bias``: a world that accelerates against it."""
    put(poses[0].av, scale(-1.0, vec(gravity)))


@kernel
def bias(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    efforts: Records[Effort],
    poses: Records[Pose],
    axes: Records[Axis],
    v: Array,
    h: Array,
) -> None:
    """Forces h (nv,) that hold all joint accelerations at zero: recursive Newton-Euler.

    They oppose gravity, drag and force elements too. Takes poses with inertias and axes from
    ``mass_matrix``, and gravity as ``put_gravity`` puts it; leaves every body's spatial velocity in
    poses .w, .v and its acceleration at zero joint accelerations, less gravity, in .aw, .av, and v
    in axes .rate.
    """
    for k in range(len(axes)):
        axes[k].rate = v[k]
    world = poses[0]
    put(world.w, ZERO)
    put(world.v, ZERO)
    put(world.aw, ZERO)
    for i in range(1, len(bodies)):
        body, pose, parent = bodies[i], poses[i], poses[bodies[i].parent]
        twist = pose_twist(parent)
        acceleration = (vec(parent.aw), vec(parent.av))
        first = body.v
        relative = scale_pair(v[first], axis_twist(axes[first]))
        for k in range(first + 1, body.axis + 1):
            relative = add_pair(relative, scale_pair(v[k], axis_twist(axes[k])))
        # the columns of a joint turn with the joint's own body, and a twist carries itself nowhere
        acceleration = add_pair(acceleration, motion_cross(twist, relative))
        twist = add_pair(twist, relative)
        if body.joint == FREE:
            # translations of a floating base are fixed in the world; its turns move with its origin
            acceleration = (
                acceleration[0],
                add(vec(parent.av), cross(velocity_at(twist, vec(pose.p)), twist[0])),
            )
        elif body.joint == BEAM:
            beam = beams[body.beam]
            extra = tip_drift(beam, stations[beam.tip], body, relative, v)
            acceleration = (acceleration[0], add(acceleration[1], extra))
        put(pose.w, twist[0])
        put(pose.v, twist[1])
        put(pose.aw, acceleration[0])
        put(pose.av, acceleration[1])
        inertia = own_inertia(pose)
        force = force_cross(twist, momentum(inertia, twist))
        force = add_pair(momentum(inertia, acceleration), force)
        put(pose.fw, force[0])
        put(pose.fv, force[1])
    for i in range(len(efforts)):
        if efforts[i].kind == DRAG:
            add_drag(efforts[i], poses[efforts[i].body])
        elif efforts[i].kind == WRENCH:
            add_wrench(efforts[i], poses)
        elif efforts[i].stretches > 0:
            add_line(efforts, i, poses)
        elif efforts[i].kind != TENDON and efforts[i].kind != STRETCH:
            add_element(efforts[i], poses)
    for k in range(len(axes)):
        h[k] = 0.0
    for i in range(len(efforts)):
        if efforts[i].kind == TENDON:
            add_tendon(efforts[i], axes, h)
    for i in range(len(beams)):
        body = bodies[beams[i].body]
        add_beam_forces(beams[i], body, stations, poses[body.parent], v, h)
    for i in range(len(bodies) - 1, 0, -1):
        body, pose = bodies[i], poses[i]
        force = (vec(pose.fw), vec(pose.fv))
        for k in range(body.v, body.axis + 1):
            h[k] += power(force, axis_twist(axes[k]))
        if body.parent > 0:
            below = poses[body.parent]
            put(below.fw, add(vec(below.fw), force[0]))
            put(below.fv, add(vec(below.fv), force[1]))


@outlined
def add_drag(effort: Effort, pose: Pose) -> None:
    """Bullet's damping of one link: m d v (1 + |v|) at its centre, I d w (1 + |w|)."""
    R = mat(pose.R)
    centre = add(vec(pose.p), apply(R, vec(effort.com)))
    twist = pose_twist(pose)
    v = velocity_at(twist, centre)
    force = scale(effort.linear * effort.mass * (1.0 + norm(v)), v)
    w = apply(transpose(R), twist[0])
    moment = scale(effort.angular * (1.0 + norm(w)), apply(R, apply(mat(effort.J), w)))
    put(pose.fw, add(vec(pose.fw), add(moment, cross(centre, force))))
    put(pose.fv, add(vec(pose.fv), force))


@kernel
def joint_forces(axes: Records[Axis], q: Array, v: Array, tau: Array, forces: Array) -> None:
    """Forces (nv,) on the rates: tau, constant ones, those of the state, springs, dampers."""
    for k in range(len(axes)):
        axis = axes[k]
        force = tau[k] + axis.torque + axis.pushed - axis.damping * v[k]
        if axis.stiffness != 0.0:
            force -= axis.stiffness * (q[axis.q] - axis.rest)
        forces[k] = force


@kernel
def weights(poses: Records[Pose], axes: Records[Axis], gravity: Array, sizes: Array) -> None:
    """(nv,) what the weight of the bodies on each rate may come to, whatever balances it.

    Takes inertias from ``mass_matrix``.
    """
    g = norm(vec(gravity))
    for k in range(len(axes)):
        pose = poses[axes[k].body]
        turned = norm(vec(axes[k].w)) * norm(vec(pose.carried_mc))
        sizes[k] = g * (norm(vec(axes[k].v)) * pose.carried_m + turned)


@helper
def impedance(axis: Axis, damper_dt: float, spring_dt: float) -> float:
    """dt D + dt² K: what dampers and springs that act at the end of a step add to the inertia."""
    return damper_dt * (axis.damping + spring_dt * axis.stiffness)


@helper
def add_impedance(axes: Records[Axis], damper_dt: float, spring_dt: float, M: Array) -> None:
    """M <- M + dt D + dt² K of the joints, with the times [s] that these are taken ahead, or 0."""
    for k in range(len(axes)):
        M[k, k] += impedance(axes[k], damper_dt, spring_dt)


@helper
def look_ahead(axes: Records[Axis], spring_dt: float, v: Array, forces: Array) -> None:
    """Take springs where the present rates lead in ``spring_dt`` [s]."""
    for k in range(len(axes)):
        forces[k] -= spring_dt * axes[k].stiffness * v[k]


@helper
def is_damped(axes: Records[Axis], efforts: Records[Effort]) -> bool:
    """Whether any joint or force element has a damper."""
    for k in range(len(axes)):
        if axes[k].damping != 0.0:
            return True
    for i in range(len(efforts)):
        if efforts[i].kind != DRAG:
            for n in range(coordinates(efforts[i])):
                if efforts[i].damping[n] != 0.0:
                    return True
    return False
