"""Records that the mechanism kernels read and write.

SI units. Body 0 is the world. World axes; spatial vectors are (angular, linear). Positions, twists,
moments and inertias of bodies and axes are about the origin of their tree, a point of the world
that is at its first body (``kinematics``): about that of the world, digits would go with the square
of the distance from it. A body is a set of links rigidly joined: fixed joints cost nothing.
"""

from typing import Annotated

from bulletbridge.numerics.records import Array, Int, Ints, Mat3, Real, Vec3, dtype_of

MOST_TERMS = 16
"""Most joints of one tendon."""
Six = Annotated[Array, "f8", (6,)]
TermInts = Annotated[Ints, "i8", (MOST_TERMS,)]
TermReals = Annotated[Array, "f8", (MOST_TERMS,)]

REVOLUTE, PRISMATIC, SPHERICAL, FREE, BEAM = 0, 1, 2, 3, 4
"""Kinds of tree joint: rates of 1, 1, 3, 6 and positions of 1, 1, 4, 7 numbers; a beam has 1 to 3.

A spherical joint has a quaternion xyzw (body axes to joint-frame axes) and rates in body axes; a
free body has the position of its origin, a quaternion xyzw, and as rates its angular velocity and
the velocity of its origin, both in world axes. A beam joins the
body at its root to the one at its tip; its positions are the amplitudes of its modes [m].
"""


DRAG, SPRING, TORSION, TRAVEL, BUSHING, WRENCH, TENDON, STRETCH = 0, 1, 2, 3, 4, 5, 6, 7
"""Kinds of forces: Bullet's damping of one link; those between two frames along the line of their
origins, about z of a, along z of a, and all six ways; a wrench on one of them; what acts along a
sum of joint positions; and a further stretch of the line of the spring before it, which goes
through several points."""
BALL_ROUND, CYLINDER_ROUND = 1, 2
"""What a line goes round, 0 for nothing: two stretches, to that body and from there."""
SIDE, INSIDE = 1, 2
"""Whether a line has a side that it goes round on, or is drawn through the body from within."""


class Body:
    """Constant data of one body of the tree; the parent comes first."""

    parent: Int
    joint: Int  # kind
    q: Int  # first of its positions
    v: Int  # first of its rates
    axis: Int  # last axis on the way from the world to this body, -1 for the world
    R: Mat3  # joint frame in the parent body, its z the axis
    p: Vec3
    mass: Real
    com: Vec3  # in the body frame, which is the joint frame after the joint's motion
    J: Mat3  # inertia about com, body axes
    beam: Int  # number of its beam, if that is its joint


class Pose:
    """What changes with the state, one per body."""

    origin: Vec3  # of its tree, in the world
    R: Mat3
    p: Vec3  # from there
    cosine: Real  # of the turn of its joint, if that is revolute
    sine: Real
    m: Real  # inertia of the body about it: mass, mass times centre, second moment
    mc: Vec3
    J: Mat3
    carried_m: Real  # the same of the body with all it carries
    carried_mc: Vec3
    carried_J: Mat3
    w: Vec3  # spatial velocity at the tree's origin
    v: Vec3
    aw: Vec3  # spatial acceleration there for zero joint accelerations, less gravity
    av: Vec3
    fw: Vec3  # moment and force needed for it
    fv: Vec3


class Axis:
    """One velocity coordinate."""

    body: Int
    below: Int  # next axis towards the world, or -1
    q: Int  # position coordinate that it is the rate of, or -1 for free and spherical joints
    w: Vec3  # unit twist at the tree's origin
    v: Vec3
    armature: Real  # inertia of this rate itself, such as a rotor's times its squared gear ratio
    damping: Real  # force = torque - damping * rate - stiffness * (position - rest)
    stiffness: Real
    rest: Real
    torque: Real
    pushed: Real  # a force that is a function of the state, as it was asked for last
    limited: Int  # whether free steps end at these limits of the position
    lower: Real
    upper: Real
    position: Real  # of a revolute or prismatic joint
    rate: Real


class Effort:
    """A force: the damping that Bullet applies to a link, or a force element.

    The first fields are those of a drag, the others those of an element between frame a and b.
    Each of its coordinates has force = force - damping * rate - stiffness * (position - rest).
    A wrench acts on b at the origin of its frame, along the axes of frame a. A tendon has one
    coordinate, a sum of joint positions, and of the ends only the axes of two of its joints. Of a
    line that goes round a body, all is the length of the stretch to it, and none of the next one.
    """

    kind: Int
    body: Int
    mass: Real
    com: Vec3  # in the body frame
    J: Mat3  # about com, body axes
    linear: Real  # damping 1/s: force = mass * linear * v (1 + |v|)
    angular: Real
    body_a: Int
    body_b: Int
    axis_a: Int  # last axis that moves each
    axis_b: Int
    common_axis: Int  # last axis that moves both bodies alike, or -1
    R_a: Mat3  # frames in their bodies
    p_a: Vec3
    R_b: Mat3
    p_b: Vec3
    stiffness: Six  # turns, then ways of a bushing; otherwise the first counts
    damping: Six
    rest: Real  # [m or rad]
    slack: Real  # how far from rest a spring or tendon does nothing
    force: Real  # [N or N m]
    target: Int  # where its force is a function of time, or -1
    stretches: Int  # how many records after a spring's go on with its line
    share: Real  # of its length that counts: less beyond a pulley
    around: Int  # what it goes round at one of its ends, whose frame is in the centre, z along it
    onto: Int  # whether that is b
    sided: Int
    radius: Real
    p_side: Vec3  # in the frame of what it goes round
    body_c: Int  # where the line comes from or goes to at the other side
    axis_c: Int
    p_c: Vec3
    wrench: Six  # moment [N m], then force [N]; if of the state, as it was asked for last
    watched: Int  # whether that depends on how frame b moves, which the next four are
    position: Vec3  # [m] in the world, along its axes
    R: Mat3
    velocity: Vec3  # [m/s]
    angular_velocity: Vec3  # [rad/s]
    terms: Int  # how many joints a tendon has
    term_axes: TermInts  # of the tree; -1 beyond
    factors: TermReals  # of their positions


class Beam:
    """A beam that bends in a plane: from its root frame, x along it, y the way it bends."""

    body: Int  # at its tip; its parent is at the root
    first: Int  # of the stations with mass
    tip: Int  # station at the end, without mass, after the last of those
    q: Vec3  # amplitudes of the modes [m], zero beyond their number
    R: Mat3  # root frame, from the tree's origin
    p: Vec3


class Station:
    """A cross-section of a beam: what its modes do there, per unit of amplitude."""

    x: Real  # from the root [m]
    mass: Real
    sigma: Vec3  # deflections
    slope: Vec3  # rates of sigma along x [1/m]
    S: Mat3  # integrals from the root of products of slopes [1/m]: shortening is qᵀ S q / 2
    p: Vec3  # where it is from the tree's origin
    D: Mat3  # rows: its velocity by each mode, world axes


class ContactPoint:
    """A point at which collision detection found two bodies, in contact or close to it."""

    body_a: Int
    body_b: Int
    position: Vec3  # of the point on body b, in the world [m]
    normal: Vec3  # unit vector into body b
    gap: Real  # distance of b from a [m], negative inside
    friction: Real  # coefficient
    spinning: Real  # resistance to turns about the normal [m]
    rolling: Real  # and about the tangents [m]
    restitution: Real
    stiffness: Real  # [N/m] with which it gives way along the normal; zero if it does not
    damping: Real  # then [N s/m]
    friction_across: Real  # coefficient at right angles to the direction
    direction: Vec3  # that ``friction`` belongs to, zero for any
    way: Real  # how far others than the mechanism took the bodies there in the last step [m]
    pair: Int  # of links in contact, and what of them touches: the same from step to step
    feature: Int


class StickingPoint:
    """A point that does not move against another body while the loops are closed.

    Whoever asks for it gives the first fields; the others are written where it is placed.
    """

    body_a: Int  # what the material point of body b may not move against
    body_b: Int
    count: Int  # of directions in which it stays: 1 for the normal, 3 for the tangents too
    position: Vec3  # in the world [m]
    normal: Vec3  # of any length but zero
    p_a: Vec3  # where it is on the bodies, in their frames
    p_b: Vec3
    directions: Mat3  # rows: normal, two tangents


BODY, POSE, AXIS, EFFORT = (dtype_of(kind) for kind in (Body, Pose, Axis, Effort))
BEAMS, STATION = (dtype_of(kind) for kind in (Beam, Station))
CONTACT_POINT, STICKING_POINT = (dtype_of(kind) for kind in (ContactPoint, StickingPoint))
