"""How the mass matrix changes along a motion, and with it the axes of the joints.

The recursions of ``kinematics`` and ``mass_matrix``, differentiated: an axis turns and moves with
the body that it is fixed in, an inertia with its own body. Exact, in the time of the mass matrix.

Source: Featherstone, Rigid Body Dynamics Algorithms, ch. 2 (rates of spatial vectors and inertias)
and 6 (composite inertias), in world axes.
"""

from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.mechanism.bending import rates_of
from bulletbridge.mechanism.dynamics import bias
from bulletbridge.mechanism.inertias import (
    carried_inertia,
    own_inertia,
    put_carried_inertia,
    put_own_inertia,
)
from bulletbridge.mechanism.kinematics import axis_twist, pose_twist, put_twists
from bulletbridge.mechanism.records import (
    BEAM,
    FREE,
    SPHERICAL,
    Axis,
    Beam,
    Body,
    Effort,
    Pose,
    Station,
)
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import (
    ZERO,
    Inertia,
    Matrix,
    Pair,
    Vector,
    add,
    add_inertia,
    add_mat,
    add_pair,
    apply,
    cross,
    diagonal,
    dot,
    mat,
    momentum,
    motion_cross,
    outer,
    power,
    put,
    scale,
    sub,
    transpose,
    vec,
    velocity_at,
)


@helper
def put_axis_rates(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    poses: Records[Pose],
    axes: Records[Axis],
    v: Array,
    moving: Records[Pose],
    turning: Records[Axis],
) -> None:
    """Rates of the unit twists of all axes into turning .w, .v, at the twists in ``moving``."""
    for i in range(1, len(bodies)):
        body = bodies[i]
        if body.joint == FREE:
            # turns about an origin that moves, along axes of the world; translations stay
            velocity = velocity_at(pose_twist(moving[i]), vec(poses[i].p))
            for k in range(body.v, body.v + 3):
                put(turning[k].w, ZERO)
                put(turning[k].v, cross(velocity, vec(axes[k].w)))
                put(turning[k + 3].w, ZERO)
                put(turning[k + 3].v, ZERO)
        elif body.joint == BEAM:
            put_beam_axis_rates(body, beams[body.beam], stations, axes, v, moving, turning)
        else:
            # a hinge or slide is fixed in the parent, those of a ball in the body itself
            carrier = pose_twist(moving[i] if body.joint == SPHERICAL else moving[body.parent])
            for k in range(body.v, body.axis + 1):
                rate = motion_cross(carrier, axis_twist(axes[k]))
                put(turning[k].w, rate[0])
                put(turning[k].v, rate[1])


@helper
def put_beam_axis_rates(
    body: Body,
    beam: Beam,
    stations: Records[Station],
    axes: Records[Axis],
    v: Array,
    moving: Records[Pose],
    turning: Records[Axis],
) -> None:
    """The same of the modes of a beam, whose turning axis goes with the tip."""
    root, tip, rates = pose_twist(moving[body.parent]), stations[beam.tip], rates_of(body, v)
    end = vec(tip.p)
    swept = add(velocity_at(root, end), seen_from_root(tip, rates))
    for c in range(body.axis - body.v + 1):
        w = vec(axes[body.v + c].w)
        w_rate = cross(root[0], w)
        put(turning[body.v + c].w, w_rate)
        rate = add(cross(swept, w), cross(end, w_rate))
        put(turning[body.v + c].v, add(rate, mode_rate(beam, tip, c, root, rates)))


@helper
def seen_from_root(station: Station, rates: Vector) -> Vector:
    """Velocity of a station against the body at the root."""
    return apply(transpose(mat(station.D)), rates)


@helper
def mode_rate(beam: Beam, station: Station, c: int, root: Pair, rates: Vector) -> Vector:
    """Rate of the velocity that a mode gives a station: it turns, and draws in as it bends."""
    turned = cross(root[0], vec(station.D[c]))
    drawn = dot(vec(station.S[c]), rates)
    return sub(turned, scale(drawn, transpose(mat(beam.R))[0]))


@helper
def moved_second(mc: Vector, v: Vector) -> Matrix:
    """Rate of the second moment about the origin of masses that all move at v."""
    both = add_mat(outer(scale(-1.0, v), mc), outer(scale(-1.0, mc), v))
    return add_mat(diagonal(2.0 * dot(mc, v)), both)


@helper
def inertia_rate(inertia: Inertia, twist: Pair) -> Inertia:
    """Rate of an inertia about a fixed point that moves with a twist about it."""
    m, mc, J = inertia
    w, v = twist
    columns = transpose(J)
    turned = (cross(w, columns[0]), cross(w, columns[1]), cross(w, columns[2]))
    # J is symmetric: w x J and its transpose
    turned = add_mat(turned, transpose(turned))
    return 0.0, add(scale(m, v), cross(w, mc)), add_mat(turned, moved_second(mc, v))


@helper
def put_inertia_rates(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    poses: Records[Pose],
    v: Array,
    moving: Records[Pose],
) -> None:
    """Rates of the inertias of the bodies and of what they carry, into ``moving``."""
    put_own_inertia(moving[0], (0.0, ZERO, diagonal(0.0)))
    for i in range(1, len(bodies)):
        put_own_inertia(moving[i], inertia_rate(own_inertia(poses[i]), pose_twist(moving[i])))
    for i in range(len(beams)):
        beam, body = beams[i], bodies[beams[i].body]
        root, rates, total = (
            moving[body.parent],
            rates_of(body, v),
            own_inertia(moving[body.parent]),
        )
        for n in range(beam.first, beam.tip):
            mass, p = stations[n].mass, vec(stations[n].p)
            push = scale(mass, seen_from_root(stations[n], rates))
            total = add_inertia(total, (0.0, push, moved_second(p, push)))
        put_own_inertia(root, total)
    for i in range(1, len(bodies)):
        put_carried_inertia(moving[i], own_inertia(moving[i]))
    for i in range(len(bodies) - 1, 0, -1):
        parent = bodies[i].parent
        if parent > 0:
            total = add_inertia(carried_inertia(moving[parent]), carried_inertia(moving[i]))
            put_carried_inertia(moving[parent], total)


@helper
def add_mode_rates(
    beam: Beam,
    body: Body,
    stations: Records[Station],
    axes: Records[Axis],
    v: Array,
    moving: Records[Pose],
    turning: Records[Axis],
    M_rate: Array,
) -> None:
    """Add the rate of what ``add_modes`` adds, to the lower triangle."""
    root, rates = pose_twist(moving[body.parent]), rates_of(body, v)
    for c in range(body.axis - body.v + 1):
        k = body.v + c
        pushed, pushed_rate = (ZERO, ZERO), (ZERO, ZERO)
        for i in range(beam.first, beam.tip):
            station = stations[i]
            p = vec(station.p)
            p_rate = add(velocity_at(root, p), seen_from_root(station, rates))
            force = scale(station.mass, vec(station.D[c]))
            force_rate = scale(station.mass, mode_rate(beam, station, c, root, rates))
            pushed = add_pair(pushed, (cross(p, force), force))
            moment_rate = add(cross(p_rate, force), cross(p, force_rate))
            pushed_rate = add_pair(pushed_rate, (moment_rate, force_rate))
            for b in range(c + 1):
                other = mode_rate(beam, station, b, root, rates)
                M_rate[k, body.v + b] += dot(force_rate, vec(station.D[b])) + dot(force, other)
        j = axes[body.v].below
        while j >= 0:
            M_rate[k, j] += power(pushed_rate, axis_twist(axes[j]))
            M_rate[k, j] += power(pushed, axis_twist(turning[j]))
            j = axes[j].below


class TreeRates(NamedTuple):
    """Rates of a tree along a motion.

    Attributes:
        poses: (nb,) twists of the bodies, and rates of their inertias.
        axes: (nv,) rates of the axes.
    """

    poses: Records[Pose]
    axes: Records[Axis]


class UnloadedTree(NamedTuple):
    """A tree on which nothing acts: what ``bias`` takes.

    Attributes:
        bodies: (nb,)
        beams: Of it.
        stations: Of these.
        efforts: None.
        poses: (nb,) with inertias from ``mass_matrix``; overwritten.
        axes: (nv,) overwritten.
        gravity: (3,) zero.
    """

    bodies: Records[Body]
    beams: Records[Beam]
    stations: Records[Station]
    efforts: Records[Effort]
    poses: Records[Pose]
    axes: Records[Axis]
    gravity: Array


@helper
def put_mass_rate(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    poses: Records[Pose],
    axes: Records[Axis],
    v: Array,
    rates: TreeRates,
    M_rate: Array,
) -> None:
    """Rate of M (nv, nv), both triangles, and of all that it is made of, at the rates v (nv,)."""
    moving, turning = rates
    put_twists(bodies, axes, v, moving)
    put_axis_rates(bodies, beams, stations, poses, axes, v, moving, turning)
    put_inertia_rates(bodies, beams, stations, poses, v, moving)
    for k in range(len(axes)):
        for j in range(k + 1):
            M_rate[k, j] = 0.0
        inertia = carried_inertia(poses[axes[k].body])
        pushed = momentum(inertia, axis_twist(axes[k]))
        pushed_rate = momentum(carried_inertia(moving[axes[k].body]), axis_twist(axes[k]))
        pushed_rate = add_pair(pushed_rate, momentum(inertia, axis_twist(turning[k])))
        j = k
        while j >= 0:
            along = power(pushed_rate, axis_twist(axes[j]))
            M_rate[k, j] = along + power(pushed, axis_twist(turning[j]))
            j = axes[j].below
    for i in range(len(beams)):
        body = bodies[beams[i].body]
        add_mode_rates(beams[i], body, stations, axes, v, moving, turning, M_rate)
    for k in range(len(axes)):
        for j in range(k):
            M_rate[j, k] = M_rate[k, j]


@kernel
def mass_rates(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    poses: Records[Pose],
    axes: Records[Axis],
    directions: Array,
    rates: TreeRates,
    M_rates: Array,
) -> None:
    """Rates of M (n, nv, nv), both triangles, along n velocities (n, nv).

    Takes poses, axes and inertias from ``mass_matrix``. Leaves the ``rates`` of the last one.
    """
    for n in range(len(directions)):
        v, M_rate = directions[n], M_rates[n]
        put_mass_rate(bodies, beams, stations, poses, axes, v, rates, M_rate)


@kernel
def inertial_forces(
    tree: UnloadedTree, directions: Array, v: Array, sums: Array, forces: Array
) -> None:
    """Coriolis and centrifugal forces (n, nv) as a symmetric bilinear form of directions and v.

    (h(a + v) - h(a - v)) / 4, the part of ``bias`` of second degree, for each direction a of (n,
    nv); with a = v they are those of v. ``sums`` (2, nv) is overwritten.
    """
    bodies, beams, stations, efforts, poses, axes, gravity = tree
    total, there = sums[0], sums[1]
    for n in range(len(directions)):
        for k in range(len(v)):
            total[k] = directions[n, k] + v[k]
        bias(bodies, beams, stations, efforts, poses, axes, gravity, total, there)
        for k in range(len(v)):
            forces[n, k] = 0.25 * there[k]
            total[k] = directions[n, k] - v[k]
        bias(bodies, beams, stations, efforts, poses, axes, gravity, total, there)
        for k in range(len(v)):
            forces[n, k] -= 0.25 * there[k]
