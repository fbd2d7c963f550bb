"""Dynamics of beams that bend: their own mass, station by station.

A station is a point mass, carried by the body at the root and moved by the modes. What is beyond
the tip is none of its business: the modes move that like any joint. Shortening along the beam is
kept to second order in the amplitudes in every term, so that rotation stiffens a beam as it should.
"""

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.mechanism.inertias import (
    own_inertia,
    put_own_inertia,
    rigid_acceleration,
)
from bulletbridge.mechanism.kinematics import axis_twist, place, pose_twist
from bulletbridge.mechanism.records import Axis, Beam, Body, Pose, Station
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import (
    ZERO,
    Pair,
    Vector,
    add,
    add_inertia,
    add_pair,
    apply,
    cross,
    diagonal,
    dot,
    inertia_at,
    mat,
    power,
    put,
    scale,
    transpose,
    vec,
    velocity_at,
)


@outlined
def add_beam(beam: Beam, stations: Records[Station], root: Pose) -> None:
    """Place the stations, and let the body at the root carry their mass."""
    total = (0.0, ZERO, diagonal(0.0))
    for i in range(beam.first, beam.tip):
        p = place(beam, stations[i])
        total = add_inertia(total, inertia_at(p, stations[i].mass, diagonal(0.0)))
    put_own_inertia(root, add_inertia(own_inertia(root), total))


@outlined
def add_modes(
    beam: Beam, body: Body, stations: Records[Station], axes: Records[Axis], shift: int, M: Array
) -> None:
    """Add what the stations' mass puts between modes, and between them and the axes below.

    Column j of M stands at j - shift.
    """
    for c in range(body.axis - body.v + 1):
        k = body.v + c
        pushed = (ZERO, ZERO)
        for i in range(beam.first, beam.tip):
            station = stations[i]
            p, d = vec(station.p), vec(station.D[c])
            momentum = scale(station.mass, d)
            pushed = add_pair(pushed, (cross(p, momentum), momentum))
            for b in range(c + 1):
                M[k, body.v + b - shift] += dot(momentum, vec(station.D[b]))
        j = axes[body.v].below
        while j >= 0:
            M[k, j - shift] += power(pushed, axis_twist(axes[j]))
            j = axes[j].below


@helper
def rates_of(body: Body, v: Array) -> Vector:
    """Rates of a beam's modes, zero beyond their number."""
    modes = body.axis - body.v + 1
    second = v[body.v + 1] if modes > 1 else 0.0
    third = v[body.v + 2] if modes > 2 else 0.0
    return v[body.v], second, third


@helper
def drawn_in(beam: Beam, station: Station, rates: Vector) -> Vector:
    """Acceleration of a station, against the root, at constant rates of the modes."""
    bow = dot(rates, apply(mat(station.S), rates))
    return scale(-bow, transpose(mat(beam.R))[0])


@outlined
def tip_drift(beam: Beam, tip: Station, body: Body, relative: Pair, v: Array) -> Vector:
    """Rate of the linear part of the twist of tip against root, seen from the root.

    The turning axis of the slope moves along with the tip, and the tip is drawn in.
    """
    swept = cross(velocity_at(relative, vec(tip.p)), relative[0])
    return add(swept, drawn_in(beam, tip, rates_of(body, v)))


@outlined
def add_beam_forces(
    beam: Beam, body: Body, stations: Records[Station], root: Pose, v: Array, h: Array
) -> None:
    """Add what accelerates the stations: all of it on the modes, their part of it on the root.

    The root's own force has the stations moving with it rigidly already.
    """
    twist, acceleration = pose_twist(root), (vec(root.aw), vec(root.av))
    rates = rates_of(body, v)
    moment, force = vec(root.fw), vec(root.fv)
    for i in range(beam.first, beam.tip):
        station = stations[i]
        p = vec(station.p)
        velocity = apply(transpose(mat(station.D)), rates)
        extra = scale(2.0, cross(twist[0], velocity))
        extra = add(extra, drawn_in(beam, station, rates))
        total = add(extra, rigid_acceleration(twist, acceleration, p))
        push = scale(station.mass, extra)
        moment, force = add(moment, cross(p, push)), add(force, push)
        for c in range(body.axis - body.v + 1):
            h[body.v + c] += station.mass * dot(vec(station.D[c]), total)
    put(root.fw, moment)
    put(root.fv, force)
