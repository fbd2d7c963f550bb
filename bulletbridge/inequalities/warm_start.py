"""Impulses from which the solver of a step begins: those of the last one, found again.

Limits and contacts come and go, so that rows are others in each step. A contact is known again by
the links that meet and what of them touches, or else by where it is.
"""

import math

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.constraints.records import JointLimit
from bulletbridge.inequalities.contact_rows import ContactRows, tangents
from bulletbridge.mechanism.records import ContactPoint
from bulletbridge.numerics.records import Array, Int, Real, Records, Vec3, Vector, dtype_of
from bulletbridge.numerics.spatial import ZERO, add, dot, norm, put, scale, sub, vec


class ContactImpulse:
    """What a contact exerted in the last step, on body b in the axes of the world."""

    pair: Int
    feature: Int
    position: Vec3
    normal: Real
    friction: Vec3
    spin: Real
    rolling: Vec3
    parting: Real  # how far the normal,
    beyond: Vec3  # friction, spinning and rolling were beyond their bounds


CONTACT_IMPULSE = dtype_of(ContactImpulse)


@outlined
def keep_impulses(
    x: Array,
    beyond: Array,
    joint_limits: Records[JointLimit],
    contacts: Records[ContactPoint],
    rows: Records[ContactRows],
    kept: Records[ContactImpulse],
) -> int:
    """Write down what limits and contacts exerted; how many contacts there are.

    Args:
        x: Impulses of all rows.
        beyond: How far bounded rows, and cones where they begin, were beyond their bounds.
        joint_limits: Receive theirs.
        contacts: (n,) of the step,
        rows: (n,) and their rows.
        kept: (n,) and more, receives what they exerted.
    """
    for i in range(len(joint_limits)):
        limit = joint_limits[i]
        limit.impulse = finite(x[limit.row]) if limit.row >= 0 else 0.0
    for i in range(len(contacts)):
        contact, own, last = contacts[i], rows[i], kept[i]
        first, second = tangents(vec(contact.normal), vec(contact.direction))
        last.pair, last.feature = contact.pair, contact.feature
        put(last.position, vec(contact.position))
        last.normal = finite(x[own.normal])
        last.spin = at(x, own.spin)
        put(last.friction, across(x, own.tangents, first, second))
        put(last.rolling, across(x, own.roll, first, second))
        one, two, three = at(beyond, own.tangents), at(beyond, own.spin), at(beyond, own.roll)
        last.parting = at(beyond, own.normal)
        put(last.beyond, (one, two, three))
    return len(contacts)


@outlined
def recall_impulses(
    x: Array,
    beyond: Array,
    joint_limits: Records[JointLimit],
    contacts: Records[ContactPoint],
    rows: Records[ContactRows],
    kept: Records[ContactImpulse],
    count: int,
) -> None:
    """Start limits and contacts with what they exerted in the last step, new ones with nothing.

    Arguments are those of ``keep_impulses``; ``count`` contacts were kept.
    """
    for i in range(len(joint_limits)):
        limit = joint_limits[i]
        if limit.row >= 0:
            x[limit.row], beyond[limit.row] = limit.impulse, 0.0
    expected = 0
    for i in range(len(contacts)):
        contact, own = contacts[i], rows[i]
        for k in range(own.normal, own.end):
            x[k] = beyond[k] = 0.0
        found = find_again(contact, kept, count, expected)
        if found < 0:
            continue
        last, expected = kept[found], found + 1
        x[own.normal], beyond[own.normal] = last.normal, last.parting
        first, second = tangents(vec(contact.normal), vec(contact.direction))
        if own.tangents >= 0:
            x[own.tangents] = dot(first, vec(last.friction))
            x[own.tangents + 1] = dot(second, vec(last.friction))
            beyond[own.tangents] = last.beyond[0]
        if own.spin >= 0:
            x[own.spin], beyond[own.spin] = last.spin, last.beyond[1]
        if own.roll >= 0:
            x[own.roll] = dot(first, vec(last.rolling))
            x[own.roll + 1] = dot(second, vec(last.rolling))
            beyond[own.roll] = last.beyond[2]


@helper
def find_again(
    contact: ContactPoint, kept: Records[ContactImpulse], count: int, expected: int
) -> int:
    """Place of the contact of the last step that this one was, or -1.

    The search begins where it is if nothing came or went.
    """
    nearest, least = -1, math.inf
    for k in range(count):
        j = (expected + k) % count
        last = kept[j]
        if last.pair != contact.pair:
            continue
        if last.feature == contact.feature and contact.feature >= 0:
            return j
        far = norm(sub(vec(last.position), vec(contact.position)))
        if far < least:
            nearest, least = j, far
    return nearest


@helper
def across(x: Array, row: int, first: Vector, second: Vector) -> Vector:
    """Vector of the impulses of two rows along two tangents; none for a negative row."""
    if row < 0:
        return ZERO
    return add(scale(finite(x[row]), first), scale(finite(x[row + 1]), second))


@helper
def at(x: Array, row: int) -> float:
    """Number of a row; zero for a negative one."""
    return finite(x[row]) if row >= 0 else 0.0


@helper
def finite(value: float) -> float:
    """A value, or zero in the place of one that is no number."""
    return value if math.isfinite(value) else 0.0
