"""The Coriolis matrix, with it how the mass matrix and the axes of the joints change in a motion.

The recursions of ``kinematics`` and ``mass_matrix``, differentiated: an axis turns and moves with
the body that it is fixed in, an inertia with its own body. Exact, in the time of the mass matrix.

Source: Featherstone, Rigid Body Dynamics Algorithms, ch. 2 (rates of spatial vectors and inertias)
and 6 (composite inertias), in world axes; Echeandia and Wensing 2021, Numerical methods to compute
the Coriolis matrix and Christoffel symbols for rigid-body systems.
"""

from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.mechanism.bending import rates_of
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
    """Rates of the unit twists of a beam's root and modes; what turns goes with the tip."""
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
def turned_moment(p: Vector, velocity: Vector) -> Matrix:
    """H with H w = p x (w x velocity), of a unit of mass at p; H + Hᵀ is its second moment's rate.

    Put together of what p and the velocity are by masses, H is that of all of them.
    """
    return add_mat(diagonal(dot(p, velocity)), outer(scale(-1.0, velocity), p))


@helper
def half_rate(inertia: Inertia, twist: Pair) -> Inertia:
    """Rate of an inertia about a fixed point that moves with a twist: momentum, and H of masses.

    What turns with w changes its momentum by w x momentum and H w: the product of each mass, its
    place and the rate of its own velocity per w.
    """
    m, mc, J = inertia
    w, v = twist
    columns = transpose(J)
    turned = transpose((cross(w, columns[0]), cross(w, columns[1]), cross(w, columns[2])))
    half = 0.5 * (J[0][0] + J[1][1] + J[2][2])
    spun = ((0.0, half * w[2], -half * w[1]), (-half * w[2], 0.0, half * w[0]),
            (half * w[1], -half * w[0], 0.0))  # fmt: skip
    return 0.0, add(scale(m, v), cross(w, mc)), add_mat(add_mat(turned, spun), turned_moment(mc, v))


@helper
def put_inertia_rates(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    poses: Records[Pose],
    v: Array,
    moving: Records[Pose],
) -> None:
    """``half_rate`` of the inertias of the bodies and of what they carry, into ``moving``."""
    put_own_inertia(moving[0], (0.0, ZERO, diagonal(0.0)))
    for i in range(1, len(bodies)):
        put_own_inertia(moving[i], half_rate(own_inertia(poses[i]), pose_twist(moving[i])))
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
            total = add_inertia(total, (0.0, push, turned_moment(p, push)))
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
    C: Array,
) -> None:
    """Add what the masses along a beam do by its modes: each mass, its velocity and that's rate."""
    root, rates = pose_twist(moving[body.parent]), rates_of(body, v)
    for c in range(body.axis - body.v + 1):
        k = body.v + c
        pushed, pushed_rate, swept = (ZERO, ZERO), (ZERO, ZERO), ZERO
        for i in range(beam.first, beam.tip):
            station = stations[i]
            p = vec(station.p)
            p_rate = add(velocity_at(root, p), seen_from_root(station, rates))
            force = scale(station.mass, vec(station.D[c]))
            force_rate = scale(station.mass, mode_rate(beam, station, c, root, rates))
            pushed = add_pair(pushed, (cross(p, force), force))
            pushed_rate = add_pair(pushed_rate, (cross(p, force_rate), force_rate))
            swept = add(swept, cross(p_rate, force))
            for b in range(c + 1):
                C[k, body.v + b] += dot(force, mode_rate(beam, station, b, root, rates))
                if b < c:
                    C[body.v + b, k] += dot(force_rate, vec(station.D[b]))
        j = axes[body.v].below
        while j >= 0:
            C[j, k] += power(pushed_rate, axis_twist(axes[j]))
            C[k, j] += power(pushed, axis_twist(turning[j])) + dot(swept, vec(axes[j].w))
            j = axes[j].below


class TreeRates(NamedTuple):
    """Rates of a tree along a motion.

    Attributes:
        poses: (nb,) twists of the bodies, and rates of their inertias as of ``half_rate``.
        axes: (nv,) rates of the axes.
    """

    poses: Records[Pose]
    axes: Records[Axis]


@kernel
def coriolis_matrix(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    poses: Records[Pose],
    axes: Records[Axis],
    v: Array,
    rates: TreeRates,
    C: Array,
) -> None:
    """Coriolis matrix C (nv, nv) at the rates v (nv,), and all that it is made of into ``rates``.

    C v are the Coriolis and centrifugal forces, C + Cᵀ is the rate of M. C_ij is the sum over all
    masses of mass, velocity by rate i and rate of the velocity by rate j: Christoffel's symbols
    where v is the rate of q, and the same connection in the axes of v where it is not.

    Takes poses, axes and inertias from ``mass_matrix``.
    """
    moving, turning = rates
    put_twists(bodies, axes, v, moving)
    put_axis_rates(bodies, beams, stations, poses, axes, v, moving, turning)
    put_inertia_rates(bodies, beams, stations, poses, v, moving)
    for k in range(len(axes)):
        for j in range(len(axes)):
            C[k, j] = 0.0
    for k in range(len(axes)):
        body = axes[k].body
        inertia, (_, push, half) = carried_inertia(poses[body]), carried_inertia(moving[body])
        w, linear = axis_twist(axes[k])
        pushed = momentum(inertia, (w, linear))
        pushed_rate = momentum(inertia, axis_twist(turning[k]))
        pushed_rate = add_pair(pushed_rate, (apply(half, w), cross(w, push)))
        swept = add(apply(transpose(half), w), cross(push, linear))
        C[k, k] = power(pushed_rate, (w, linear))
        j = axes[k].below
        while j >= 0:
            C[j, k] = power(pushed_rate, axis_twist(axes[j]))
            C[k, j] = power(pushed, axis_twist(turning[j])) + dot(swept, vec(axes[j].w))
            j = axes[j].below
    for i in range(len(beams)):
        body = bodies[beams[i].body]
        add_mode_rates(beams[i], body, stations, axes, v, moving, turning, C)
