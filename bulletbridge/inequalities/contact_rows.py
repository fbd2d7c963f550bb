"""Rows of contacts: normals, friction, resistance to spinning and rolling."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.engine.records import Arrays
from bulletbridge.inequalities.motor_limit_rows import (
    FASTEST_RECOVERY,
    SHALLOW,
    SLOWEST_BOUNCE,
    RowRoom,
    put_cone,
    put_row_bounds,
    rate_along,
)
from bulletbridge.mechanism.kinematics import axis_twist
from bulletbridge.mechanism.records import (
    Axis,
    Body,
    ContactPoint,
    Pose,
)
from bulletbridge.numerics.records import Array, Int, Real, Records, Vector, dtype_of
from bulletbridge.numerics.spatial import (
    ZERO,
    Pair,
    add,
    cross,
    dot,
    norm,
    put_pair,
    scale,
    sub,
    vec,
    velocity_at,
)


class ContactRows:
    """Inequality rows of a contact, -1 for the first of those that it does not have."""

    normal: Int
    tangents: Int  # first of two: friction
    spin: Int  # resistance to turns about the normal
    roll: Int  # first of two: about the tangents
    end: Int  # row after its last
    compliance: Real  # what the normal gives way by [m/s per N s]


CONTACT_ROWS = dtype_of(ContactRows)


@outlined
def relative_row(
    bodies: Records[Body],
    poses: Records[Pose],
    axes: Records[Axis],
    contact: ContactPoint,
    apart: float,
    wrench: Pair,
    C: Array,
    n: int,
) -> None:
    """Velocity of body b against body a, ``apart`` along the normal: each at its own surface.

    There they are to meet; a point between them, while they overlap, would be nearer to both.
    """
    for k in range(C.shape[1]):
        C[n, k] = 0.0
    point = vec(contact.position)
    other = sub(point, scale(apart, vec(contact.normal)))
    point = sub(point, vec(poses[contact.body_b].origin))
    other = sub(other, vec(poses[contact.body_a].origin))
    add_body(bodies, axes, contact.body_b, 1.0, wrench, point, C, n)
    add_body(bodies, axes, contact.body_a, -1.0, wrench, other, C, n)


@helper
def add_body(
    bodies: Records[Body],
    axes: Records[Axis],
    body: int,
    sign: float,
    wrench: Pair,
    point: Vector,
    C: Array,
    n: int,
) -> None:
    """Add what the axes below a body contribute to the velocity of a point along a wrench there.

    The point is from the tree's origin.
    """
    j = bodies[body].axis
    while j >= 0:
        C[n, j] += sign * along(axes[j], wrench, point)
        j = axes[j].below


@helper
def along(axis: Axis, wrench: Pair, point: Vector) -> float:
    """What an axis moves a point along a wrench there."""
    twist = axis_twist(axis)
    return dot(wrench[0], twist[0]) + dot(wrench[1], velocity_at(twist, point))


@kernel
def tangents(normal: Vector, direction: Vector) -> tuple[Vector, Vector]:
    """Two unit vectors at right angles to a unit normal and to each other.

    The first is the direction as far as it is tangential, and any if that is nothing.
    """
    first = sub(direction, scale(dot(direction, normal), normal))
    if not norm(first) > 1e-6:
        aside = (1.0, 0.0, 0.0) if math.fabs(normal[0]) < 0.7 else (0.0, 1.0, 0.0)
        first = cross(normal, aside)
    first = scale(1.0 / norm(first), first)
    return first, cross(normal, first)


@helper
def contact_load(point: ContactPoint, rows: ContactRows, x: Array, rate: float) -> Pair:
    """Moment [N m] and force [N] of a contact on b, world axes: impulses x times a rate [1/s]."""
    normal = vec(point.normal)
    moment, force = ZERO, scale(rate * x[rows.normal], normal)
    first, second = tangents(normal, vec(point.direction))
    if rows.tangents >= 0:
        k = rows.tangents
        along = add(scale(x[k], first), scale(x[k + 1], second))
        force = add(force, scale(rate, along))
    if rows.spin >= 0:
        moment = scale(rate * x[rows.spin], normal)
    if rows.roll >= 0:
        k = rows.roll
        along = add(scale(x[k], first), scale(x[k + 1], second))
        moment = add(moment, scale(rate, along))
    return moment, force


@kernel
def put_contact_loads(
    points: Records[ContactPoint], rows: Records[ContactRows], x: Array, dt: float, loads: Array
) -> None:
    """Moment [N m], then force [N], of contacts (n, 6) on b, by their impulses x in a step dt."""
    for i in range(len(loads)):
        put_pair(loads[i], contact_load(points[i], rows[i], x, 1.0 / dt))


class RowForm(NamedTuple):
    """How rows of contacts are written, and what they say.

    Attributes:
        relative_row: (bodies, poses, axes, contact, apart, wrench, C, n) writes row n of C: the
            velocity of body b against body a along a wrench, at points that are so far apart.
        rate_along: (C, n, v) is what row n gives at the rates v (nv,).
    """

    relative_row: Callable[..., None]
    rate_along: Callable[..., float]


@helper
def meeting_gap(contact: ContactPoint, compliance: float) -> float:
    """Distance along the normal of the points that meet, on b from that on a [m].

    None where bodies stay inside each other: two points would contradict each other as bodies turn
    together, by what they turn by times the gap, and friction at them would be a moment besides.
    """
    return contact.gap if not compliance > 0.0 else 0.0


@helper
def compliance_of(contact: ContactPoint, dt: float) -> float:
    """What a contact's normal gives way by at the end of a step [m/s per N s].

    With the gap g at the start the force at the end is -k (g + dt v) - d v, so that v is
    compliance times the impulse dt F, less g k dt compliance: Bullet's own, by implicit Euler.
    """
    if not contact.stiffness > 0.0:
        return 0.0
    return 1.0 / (dt * (dt * contact.stiffness + contact.damping))


@outlined
def energy_of_contacts(
    contacts: Records[ContactPoint], contact_rows: Records[ContactRows], gap: Array, dt: float
) -> float:
    """What springs of contacts have stored at the start of a step [J], by ``RowTargets.gap``."""
    total = 0.0
    for i in range(len(contacts)):
        own = contact_rows[i]
        if own.compliance > 0.0 and gap[own.normal] < 0.0:
            pressed = gap[own.normal] / (dt * own.compliance)  # force of the spring alone
            total += 0.5 * pressed * pressed / contacts[i].stiffness
    return total


@helper
def leave_what_moves(
    contacts: int, contact_rows: Records[ContactRows], x: Array, w: Array, last: int
) -> None:
    """Take from the velocities w of rows before ``last`` what contacts give way by: bodies do not.

    ``contacts``: how many there are; x: impulses of all rows.
    """
    for i in range(contacts):
        n = int(contact_rows[i].normal)
        if n < last:
            w[n] -= contact_rows[i].compliance * x[n]


def contact_rows_of(form: RowForm) -> Callable[..., int]:
    """``put_contact_rows`` for rows of one form.

    numba resolves the functions that it closes over when it compiles it.
    """
    relative_row, rate_along = form

    @outlined
    def put_contact_rows(
        contact_points: Records[ContactPoint],
        a: Arrays,
        v: Array,
        predicted_v: Array,
        before: Array,
        n: int,
        room: RowRoom,
        contact_rows: Records[ContactRows],
    ) -> int:
        """Rows of all contacts at the poses that the axes belong to; rows so far.

        A contact has its normal, two tangents where it rubs, one row where it resists spinning and
        two where it resists rolling.

        Args:
            contact_points: (contacts,) at these poses.
            a: The system.
            v: (nv,) velocities that forces alone would give.
            predicted_v: (nv,) velocities that lead to those poses.
            before: (nv,) velocities at the start of the step.
            n: Rows so far.
            room: Receives the rows.
            contact_rows: (contacts,) which rows each contact has.
        """
        dt, C, b, bounds, asked = a.control.dt, room.C, room.b, room.bounds, room.targets
        fastest = FASTEST_RECOVERY * a.control.length
        for i in range(len(contact_points)):
            contact, own = contact_points[i], contact_rows[i]
            normal = vec(contact.normal)
            t1, t2 = tangents(normal, vec(contact.direction))
            owner = n
            own.normal, own.tangents, own.spin, own.roll = n, -1, -1, -1
            own.compliance = compliance_of(contact, dt) if a.control.compliant else 0.0
            apart = meeting_gap(contact, own.compliance)
            relative_row(a.bodies, a.poses, a.axes, contact, apart, (ZERO, normal), C, n)
            rate = rate_along(C, n, v)
            left = contact.gap - dt * rate_along(C, n, predicted_v)  # at the start of the step
            approach = rate_along(C, n, before)
            asked.initial[n] = approach
            asked.gap[n] = max(left, 0.0) / dt
            hits = contact.gap <= 0.0 and approach < -SLOWEST_BOUNCE
            bounce = contact.restitution * approach if hits else 0.0
            asked.restitution[n] = min(bounce - asked.gap[n], 0.0) if bounce < 0.0 else 0.0
            asked.stabilisation[n] = (
                max(a.control.recovery * left / dt, -fastest - contact.way / dt)
                if left < -SHALLOW
                else 0.0
            )
            if own.compliance > 0.0:
                asked.stabilisation[n] = 0.0
                if left < 0.0:
                    asked.gap[n] = left * contact.stiffness * dt * own.compliance
            b[n] = rate + asked.gap[n]
            put_row_bounds(bounds[n], 0.0, math.inf)
            n += 1
            if max(contact.friction, contact.friction_across) > 0.0:
                own.tangents = n
                relative_row(a.bodies, a.poses, a.axes, contact, apart, (ZERO, t1), C, n)
                relative_row(a.bodies, a.poses, a.axes, contact, apart, (ZERO, t2), C, n + 1)
                put_cone(bounds, n, 2, owner, contact.friction, contact.friction_across)
                n += 2
            if contact.spinning > 0.0:
                own.spin = n
                relative_row(a.bodies, a.poses, a.axes, contact, apart, (normal, ZERO), C, n)
                put_cone(bounds, n, 1, owner, contact.spinning, 0.0)
                n += 1
            if contact.rolling > 0.0:
                own.roll = n
                relative_row(a.bodies, a.poses, a.axes, contact, apart, (t1, ZERO), C, n)
                relative_row(a.bodies, a.poses, a.axes, contact, apart, (t2, ZERO), C, n + 1)
                put_cone(bounds, n, 2, owner, contact.rolling, contact.rolling)
                n += 2
            own.end = n
            for k in range(owner + 1, n):
                b[k], asked.initial[k] = rate_along(C, k, v), rate_along(C, k, before)
                asked.gap[k] = asked.restitution[k] = asked.stabilisation[k] = 0.0
        return n

    return put_contact_rows


def work_of_springs_of(rate_along: Callable[..., float]) -> Callable[..., float]:
    """``work_of_springs`` for rows of one form, of which ``RowForm.rate_along`` tells the rates.

    numba resolves the function that it closes over when it compiles it.
    """

    @outlined
    def work_of_springs(
        C: Any, contact_rows: Records[ContactRows], x: Array, before: Array, after: Array
    ) -> float:
        """Work [J] of contacts that give way: impulses x along the mean of rates (nv,)."""
        total = 0.0
        for i in range(len(contact_rows)):
            if contact_rows[i].compliance > 0.0:
                n = int(contact_rows[i].normal)
                total += 0.5 * x[n] * (rate_along(C, n, before) + rate_along(C, n, after))
        return total

    return work_of_springs


put_contact_rows = contact_rows_of(RowForm(relative_row, rate_along))
