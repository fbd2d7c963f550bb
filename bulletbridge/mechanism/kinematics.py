"""Poses, twists and the motion of configurations.

Spatial vectors in world axes about one point for each tree: joint columns are the Jacobian,
composite inertias add without transforms. Source: Featherstone, Rigid Body Dynamics Algorithms,
ch. 2 and 5.
"""

import math

from bulletbridge.compilation.block_sizes import MOST_TURNED
from bulletbridge.compilation.jit import cosines_and_sines, helper, kernel, outlined
from bulletbridge.mechanism.records import (
    BEAM,
    FREE,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    Axis,
    Beam,
    Body,
    Pose,
    Station,
)
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import (
    ZERO,
    Matrix,
    Pair,
    Vector,
    add,
    add_pair,
    apply,
    copy_into,
    cross,
    dexp,
    dexp_inverse,
    dexp_inverse_drift,
    dot,
    mat,
    mul,
    put,
    put_mat,
    put_quat,
    quat_exp,
    quat_log,
    quat_mul,
    rotation,
    scale,
    scale_pair,
    sub,
    transpose,
    turn_z,
    turned_z,
    vec,
)

FEW = 3
"""Bodies whose turns are worked out one by one."""


@helper
def axis_twist(axis: Axis) -> Pair:
    """Unit twist of a velocity coordinate."""
    return vec(axis.w), vec(axis.v)


@helper
def pose_twist(pose: Pose) -> Pair:
    """Twist of a body."""
    return vec(pose.w), vec(pose.v)


@helper
def world_position(pose: Pose) -> Vector:
    """Where a body's frame is in the world."""
    return add(vec(pose.origin), vec(pose.p))


@helper
def between_origins(poses: Records[Pose], body_a: int, body_b: int) -> Vector:
    """Way from the origin of one body's tree to that of another's: none if they are of one tree."""
    return sub(vec(poses[body_b].origin), vec(poses[body_a].origin))


@helper
def carried_twist(body: Body, axes: Records[Axis], v: Array, twist: Pair) -> Pair:
    """Twist of a body at the rates v (nv,), if that of its parent is ``twist``."""
    for k in range(body.v, body.axis + 1):
        twist = add_pair(twist, scale_pair(v[k], axis_twist(axes[k])))
    return twist


@helper
def put_twists(bodies: Records[Body], axes: Records[Axis], v: Array, poses: Records[Pose]) -> None:
    """Twists of the bodies at the rates v (nv,) into poses .w, .v."""
    put(poses[0].w, ZERO)
    put(poses[0].v, ZERO)
    for i in range(1, len(bodies)):
        twist = carried_twist(bodies[i], axes, v, pose_twist(poses[bodies[i].parent]))
        put(poses[i].w, twist[0])
        put(poses[i].v, twist[1])


@helper
def ahead(bodies: Records[Body], i: int, n: int) -> int:
    """The body n after body i, or the last one."""
    return min(i + n, len(bodies) - 1)


@helper
def angle_ahead(bodies: Records[Body], q: Array, i: int, n: int) -> float:
    """First position of the joint of that body."""
    return q[bodies[ahead(bodies, i, n)].q]


@helper
def put_turn(pose: Pose, cosine: float, sine: float) -> None:
    """Write how far a joint turns a body."""
    pose.cosine, pose.sine = cosine, sine


@outlined
def put_turns(bodies: Records[Body], q: Array, poses: Records[Pose]) -> int:
    """Cosines and sines of revolute joints into the poses, of eight at once; others' are nothing.

    Returns:
        The first of the last few bodies, which take as long one by one.
    """
    i = 1
    while i + FEW < len(bodies):
        x = (
            angle_ahead(bodies, q, i, 0), angle_ahead(bodies, q, i, 1),
            angle_ahead(bodies, q, i, 2), angle_ahead(bodies, q, i, 3),
            angle_ahead(bodies, q, i, 4), angle_ahead(bodies, q, i, 5),
            angle_ahead(bodies, q, i, 6), angle_ahead(bodies, q, i, 7),
        )  # fmt: skip
        c, s, far = cosines_and_sines(x)
        put_turn(poses[i], c[0], s[0])
        put_turn(poses[ahead(bodies, i, 1)], c[1], s[1])
        put_turn(poses[ahead(bodies, i, 2)], c[2], s[2])
        put_turn(poses[ahead(bodies, i, 3)], c[3], s[3])
        put_turn(poses[ahead(bodies, i, 4)], c[4], s[4])
        put_turn(poses[ahead(bodies, i, 5)], c[5], s[5])
        put_turn(poses[ahead(bodies, i, 6)], c[6], s[6])
        put_turn(poses[ahead(bodies, i, 7)], c[7], s[7])
        if far != 0:
            put_far_turns(bodies, q, poses, i)
        i += 8
    return i


@outlined
def put_far_turns(bodies: Records[Body], q: Array, poses: Records[Pose], first: int) -> None:
    """The same one by one, of angles that are too large for that, or no numbers."""
    for i in range(first, min(first + 8, len(bodies))):
        angle = q[bodies[i].q]
        if not abs(angle) <= MOST_TURNED:
            put_turn(poses[i], math.cos(angle), math.sin(angle))


@helper
def put_turning_axis(axis: Axis, direction: Vector, point: Vector) -> None:
    """Unit rotation about a line through ``point``."""
    put(axis.w, direction)
    put(axis.v, cross(point, direction))


@kernel
def kinematics(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    q: Array,
    poses: Records[Pose],
    axes: Records[Axis],
) -> None:
    """Pose of every body and unit twist of every axis at the configuration q (nq,).

    Writes poses (nb) .origin, .R, .p and axes (nv) .w, .v, .position, and where the beams are.
    """
    alone = put_turns(bodies, q, poses) if len(bodies) > FEW + 1 else 1
    for i in range(1, len(bodies)):
        body, pose, parent = bodies[i], poses[i], poses[bodies[i].parent]
        if body.parent == 0:
            origin, R = tree_origin(bodies, i, q), mat(body.R)
            p = sub(vec(body.p), origin)
        else:
            up = mat(parent.R)
            origin, R = vec(parent.origin), mul(up, mat(body.R))
            p = add(vec(parent.p), apply(up, vec(body.p)))
        put(pose.origin, origin)
        k = body.v
        if body.joint == REVOLUTE:
            put_turning_axis(axes[k], transpose(R)[2], p)
            if i < alone:
                R = turned_z(R, pose.cosine, pose.sine)
            else:
                R = turn_z(R, q[body.q])
            axes[k].position = q[body.q]
        elif body.joint == PRISMATIC:
            z = transpose(R)[2]
            p = add(p, scale(q[body.q], z))
            put(axes[k].w, ZERO)
            put(axes[k].v, z)
            axes[k].position = q[body.q]
        elif body.joint == SPHERICAL:
            R = mul(R, rotation(q[body.q], q[body.q + 1], q[body.q + 2], q[body.q + 3]))
            columns = transpose(R)
            put_turning_axis(axes[k], columns[0], p)
            put_turning_axis(axes[k + 1], columns[1], p)
            put_turning_axis(axes[k + 2], columns[2], p)
        elif body.joint == BEAM:
            beam = beams[body.beam]
            R, p = bend(body, beam, stations[beam.tip], q, R, p, axes)
        else:
            p = ZERO  # it is the origin of its tree
            R = rotation(q[body.q + 3], q[body.q + 4], q[body.q + 5], q[body.q + 6])
            put_free_axes(axes, k, p)
        put_mat(pose.R, R)
        put(pose.p, p)


@helper
def tree_origin(bodies: Records[Body], first: int, q: Array) -> Vector:
    """A point of the world that goes where a tree goes, of which this is the first body.

    Its place, if it is free; else its joint, or the end of the slides that come first.
    """
    if bodies[first].joint == FREE:
        return vec(q[bodies[first].q :])
    if bodies[first].joint == PRISMATIC:
        return end_of_slides(bodies, first, q)
    return vec(bodies[first].p)


@outlined
def end_of_slides(bodies: Records[Body], first: int, q: Array) -> Vector:
    """Where the slides with which a tree begins have taken what hangs on them."""
    i, p, R = first, vec(bodies[first].p), mat(bodies[first].R)
    while bodies[i].joint == PRISMATIC:
        p = add(p, scale(q[bodies[i].q], transpose(R)[2]))
        i += 1
        if i == len(bodies) or bodies[i].parent != i - 1:
            break
        p, R = add(p, apply(R, vec(bodies[i].p))), mul(R, mat(bodies[i].R))
    return p


@outlined
def bend(
    body: Body, beam: Beam, tip: Station, q: Array, R: Matrix, p: Vector, axes: Records[Axis]
) -> tuple[Matrix, Vector]:
    """Pose of a beam's tip from that of its root (R, p), and the twists of its modes."""
    for c in range(3):
        beam.q[c] = q[body.q + c] if c <= body.axis - body.v else 0.0
    put_mat(beam.R, R)
    put(beam.p, p)
    z = transpose(R)[2]
    end = place(beam, tip)
    for c in range(body.axis - body.v + 1):
        put_turning_axis(axes[body.v + c], scale(tip.slope[c], z), end)
        put(axes[body.v + c].v, add(vec(axes[body.v + c].v), vec(tip.D[c])))
    return turn_z(R, dot(vec(tip.slope), vec(beam.q))), end


@helper
def place(beam: Beam, station: Station) -> Vector:
    """Where a station of the bent beam is; writes also how the modes move it."""
    amplitudes = vec(beam.q)
    x, y, _ = transpose(mat(beam.R))
    bow = apply(mat(station.S), amplitudes)
    along = station.x - 0.5 * dot(amplitudes, bow)
    p = add(vec(beam.p), scale(along, x))
    p = add(p, scale(dot(vec(station.sigma), amplitudes), y))
    put(station.p, p)
    for c in range(3):
        put(station.D[c], add(scale(-bow[c], x), scale(station.sigma[c], y)))
    return p


@helper
def put_free_axes(axes: Records[Axis], k: int, p: Vector) -> None:
    """Floating base: turns about its origin along the world axes, then translations."""
    x, y, z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    put_turning_axis(axes[k], x, p)
    put_turning_axis(axes[k + 1], y, p)
    put_turning_axis(axes[k + 2], z, p)
    for j in range(3):
        put(axes[k + 3 + j].w, ZERO)
    put(axes[k + 3].v, x)
    put(axes[k + 4].v, y)
    put(axes[k + 5].v, z)


@kernel
def displace(bodies: Records[Body], start: Array, u: Array, dt: float, q: Array) -> None:
    """Move ``start`` by dt times u (nv,) along the exponential maps into q; they may be one array.

    Rotations turn by a rotation vector: about world axes for a floating base, about body axes for
    a spherical joint.
    """
    for i in range(1, len(bodies)):
        body = bodies[i]
        j, k = body.q, body.v
        if body.joint == REVOLUTE or body.joint == PRISMATIC:
            q[j] = start[j] + dt * u[k]
            continue
        if body.joint == BEAM:
            for c in range(body.axis - k + 1):
                q[j + c] = start[j + c] + dt * u[k + c]
            continue
        turn = quat_exp(scale(dt, vec(u[k:])))
        if body.joint == FREE:
            for c in range(3):
                q[j + c] = start[j + c] + dt * u[k + 3 + c]
            j += 3
            old = (start[j], start[j + 1], start[j + 2], start[j + 3])
            put_quat(q[j:], quat_mul(turn, old))
        else:
            old = (start[j], start[j + 1], start[j + 2], start[j + 3])
            put_quat(q[j:], quat_mul(old, turn))


@kernel
def chart_rate(bodies: Records[Body], u: Array, v: Array, rate: Array) -> None:
    """Rate of u where q = start displaced by u and the velocities are v; all (nv,)."""
    copy_into(rate, v)
    for i in range(1, len(bodies)):
        k = bodies[i].v
        if bodies[i].joint == FREE:
            put(rate[k:], dexp_inverse(vec(u[k:]), vec(v[k:]), 1.0))
        elif bodies[i].joint == SPHERICAL:
            put(rate[k:], dexp_inverse(vec(u[k:]), vec(v[k:]), -1.0))


@helper
def chart_velocity(bodies: Records[Body], u: Array, rate: Array, v: Array) -> None:
    """Velocities at which u has a rate: the inverse of ``chart_rate``; all (nv,)."""
    copy_into(v, rate)
    for i in range(1, len(bodies)):
        k = bodies[i].v
        if bodies[i].joint == FREE:
            put(v[k:], dexp(vec(u[k:]), vec(rate[k:]), 1.0))
        elif bodies[i].joint == SPHERICAL:
            put(v[k:], dexp(vec(u[k:]), vec(rate[k:]), -1.0))


@helper
def chart_acceleration(
    bodies: Records[Body], u: Array, rate: Array, v: Array, vdot: Array, second: Array
) -> None:
    """Second rate of u, whose rate is that of ``chart_rate``, at accelerations vdot; all (nv,)."""
    chart_rate(bodies, u, vdot, second)
    for i in range(1, len(bodies)):
        k, joint = bodies[i].v, bodies[i].joint
        if joint == FREE or joint == SPHERICAL:
            side = 1.0 if joint == FREE else -1.0
            turned = dexp_inverse_drift(vec(u[k:]), vec(rate[k:]), vec(v[k:]), side)
            put(second[k:], add(vec(second[k:]), turned))


@helper
def chart_coordinates(bodies: Records[Body], start: Array, q: Array, u: Array) -> None:
    """The u (nv,), rotation vectors no longer than pi, by which ``start`` is displaced into q."""
    for i in range(1, len(bodies)):
        body = bodies[i]
        j, k = body.q, body.v
        if body.joint == REVOLUTE or body.joint == PRISMATIC:
            u[k] = q[j] - start[j]
            continue
        if body.joint == BEAM:
            for c in range(body.axis - k + 1):
                u[k + c] = q[j + c] - start[j + c]
            continue
        if body.joint == FREE:
            for c in range(3):
                u[k + 3 + c] = q[j + c] - start[j + c]
            j += 3
        new = (q[j], q[j + 1], q[j + 2], q[j + 3])
        back = (-start[j], -start[j + 1], -start[j + 2], start[j + 3])
        free = body.joint == FREE
        put(u[k:], quat_log(quat_mul(new, back) if free else quat_mul(back, new)))


@kernel
def separation(
    bodies: Records[Body],
    q: Array,
    v: Array,
    other: Array,
    other_v: Array,
    x: Array,
    rate: Array,
) -> None:
    """The x (nv,) by which ``other`` is displaced into q, and its rate as both move.

    Turns are rotation vectors no longer than pi; other_v is the velocity of ``other`` in its own
    coordinates.
    """
    chart_coordinates(bodies, other, q, x)
    for k in range(len(v)):
        rate[k] = v[k] - other_v[k]
    for i in range(1, len(bodies)):
        k, joint = bodies[i].v, bodies[i].joint
        if joint == FREE or joint == SPHERICAL:
            a, b, c, d = quat_exp(vec(x[k:]))
            turned = rotation(a, b, c, d)
            side = 1.0
            if joint == SPHERICAL:
                turned, side = transpose(turned), -1.0
            relative = sub(vec(v[k:]), apply(turned, vec(other_v[k:])))
            put(rate[k:], dexp_inverse(vec(x[k:]), relative, side))


@kernel
def separations(bodies: Records[Body], q: Array, others: Array, X: Array) -> None:
    """X (n, nv) by which others (n or 1, nq) are displaced into q (n, nq), as in ``separation``."""
    for i in range(len(q)):
        chart_coordinates(bodies, others[min(i, len(others) - 1)], q[i], X[i])


@kernel
def turn_gradients(bodies: Records[Body], X: Array, G: Array) -> None:
    """Gradients G (n, nv) by X of ``separations`` into those by displacements of q, in place."""
    for i in range(1, len(bodies)):
        k, joint = bodies[i].v, bodies[i].joint
        if joint == FREE or joint == SPHERICAL:
            side = -1.0 if joint == FREE else 1.0  # of ``chart_rate`` transposed
            for n in range(len(X)):
                put(G[n, k:], dexp_inverse(vec(X[n, k:]), vec(G[n, k:]), side))
