"""How surfaces in contact rub and bounce, combined from both links as Bullet does."""

import math

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.mechanism.records import ContactPoint, Pose
from bulletbridge.numerics.records import (
    Int,
    Mat3,
    Matrix,
    Real,
    Records,
    Vec3,
    Vector,
    dtype_of,
)
from bulletbridge.numerics.spatial import (
    ZERO,
    add,
    apply,
    cross,
    dot,
    mat,
    mul,
    norm,
    put,
    scale,
    transpose,
    vec,
)

MOST_FRICTION = 10.0
"""Bullet's bound on the product of two friction coefficients."""


MOST_LINKS = 2**31
"""Numbers of links are below this, so that two of them make one."""


class SurfaceLink:
    """A link as contacts see it."""

    body: Int  # of the mechanism, 0 for what stands in the world
    robot: Int  # links of one do not collide unless that is known
    number: Int  # by which the world around knows it, whatever else is near; below ``MOST_LINKS``
    first: Int  # of its shapes
    stranger: Int  # whether it may move and is not part of the mechanism
    way: Real  # then, how far its points go in a step at most [m]
    friction: Real  # lateral coefficient
    rolling: Real  # [m]
    spinning: Real  # [m]
    restitution: Real
    stiffness: Real  # [N/m] with which its contacts give way; zero if they do not
    damping: Real  # [N s/m] where they or those of the other link give way
    scaled: Int  # whether friction differs by direction:
    scales: Vec3  # factors on it along these axes
    R: Mat3  # in the body


SURFACE_LINK = dtype_of(SurfaceLink)


@helper
def bounded(x: float) -> float:
    """A product of coefficients within Bullet's bounds."""
    return max(-MOST_FRICTION, min(x, MOST_FRICTION))


@outlined
def put_surface(
    contact: ContactPoint, a: SurfaceLink, b: SurfaceLink, poses: Records[Pose]
) -> None:
    """Write how links a and b rub and bounce at a contact whose place and normal are known."""
    contact.body_a, contact.body_b = a.body, b.body
    friction = bounded(a.friction * b.friction)
    contact.rolling = bounded(b.rolling * a.friction + a.rolling * b.friction)
    contact.spinning = bounded(b.spinning * a.friction + a.spinning * b.friction)
    contact.restitution, contact.way = a.restitution * b.restitution, a.way + b.way
    contact.stiffness, contact.damping = max(a.stiffness, b.stiffness), a.damping + b.damping
    if min(a.stiffness, b.stiffness) > 0.0:  # one behind the other
        contact.stiffness = a.stiffness * b.stiffness / (a.stiffness + b.stiffness)
    contact.friction = contact.friction_across = friction
    put(contact.direction, ZERO)
    if a.scaled + b.scaled > 0:
        put_ellipse(contact, a, b, poses, friction)


@helper
def scales_of(link: SurfaceLink, poses: Records[Pose]) -> Matrix:
    """Factors on friction of a link as a symmetric matrix, world axes."""
    if link.scaled == 0:
        return (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    R = mul(mat(poses[link.body].R), mat(link.R))
    x, y, z = transpose(R)
    s = vec(link.scales)
    return mul(R, (scale(s[0], x), scale(s[1], y), scale(s[2], z)))


@outlined
def put_ellipse(
    contact: ContactPoint,
    a: SurfaceLink,
    b: SurfaceLink,
    poses: Records[Pose],
    friction: float,
) -> None:
    """Write friction that differs by direction: Bullet's scales along both links' axes.

    In the plane of the contact they are a symmetric matrix, whose eigenvectors are the axes of the
    ellipse.
    """
    S = mul(scales_of(b, poses), scales_of(a, poses))
    normal = vec(contact.normal)
    aside = (1.0, 0.0, 0.0) if math.fabs(normal[0]) < 0.7 else (0.0, 1.0, 0.0)
    x = cross(normal, aside)
    x = scale(1.0 / norm(x), x)
    y = cross(normal, x)
    xx, yy = dot(x, apply(S, x)), dot(y, apply(S, y))
    xy = (dot(x, apply(S, y)) + dot(y, apply(S, x))) / 2
    angle = 0.5 * math.atan2(2 * xy, xx - yy)
    u: Vector = add(scale(math.cos(angle), x), scale(math.sin(angle), y))
    mean, half = (xx + yy) / 2, math.sqrt((xx - yy) * (xx - yy) / 4 + xy * xy)
    contact.friction = friction * math.fabs(mean + half)
    contact.friction_across = friction * math.fabs(mean - half)
    put(contact.direction, u)
