"""Vectors, matrices (three rows) and spatial pairs (angular, linear) as tuples of floats.

Tuples live in registers: the compiler inlines every function here into the kernels that call it.
"""

import math

from bulletbridge.compilation.jit import helper
from bulletbridge.numerics.records import Array, Matrix, Vector

Pair = tuple[Vector, Vector]
"""A twist (angular, linear velocity) or a wrench (moment, force)."""
Inertia = tuple[float, Vector, Matrix]
"""Mass, mass times centre, second moment about the origin."""
Quaternion = tuple[float, float, float, float]

ZERO = (0.0, 0.0, 0.0)


NOTHING = 1e-60
"""What is closer to zero becomes zero, in any unit. Rows that keep a mechanism in a plane take what
leaves it from round-off down to subnormal numbers, with which processors, and so Bullet's solver,
take ten times as long; so would squares of what is left."""


@helper
def clear_nothing(x: Array) -> None:
    """Make zero of numbers that are ``NOTHING``."""
    for k in range(len(x)):
        if math.fabs(x[k]) < NOTHING:
            x[k] = 0.0


@helper
def copy_into(target: Array, source: Array) -> None:
    """Copy a source, or as much of it as its target has room for."""
    for k in range(min(len(target), len(source))):
        target[k] = source[k]


@helper
def vec(x: Array) -> Vector:
    """Read a vector from a record field."""
    return x[0], x[1], x[2]


@helper
def mat(x: Array) -> Matrix:
    """Read a matrix from a record field."""
    return (
        (x[0, 0], x[0, 1], x[0, 2]),
        (x[1, 0], x[1, 1], x[1, 2]),
        (x[2, 0], x[2, 1], x[2, 2]),
    )


@helper
def put(x: Array, a: Vector) -> None:
    """Write a vector into a record field."""
    x[0], x[1], x[2] = a[0], a[1], a[2]


@helper
def put_pair(x: Array, a: Pair) -> None:
    """Write a twist or wrench into six numbers."""
    put(x, a[0])
    put(x[3:], a[1])


@helper
def put_mat(x: Array, A: Matrix) -> None:
    """Write a matrix into a record field."""
    put(x[0], A[0])
    put(x[1], A[1])
    put(x[2], A[2])


@helper
def add(a: Vector, b: Vector) -> Vector:
    """Sum of vectors."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@helper
def sub(a: Vector, b: Vector) -> Vector:
    """Difference of vectors."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@helper
def scale(s: float, a: Vector) -> Vector:
    """Vector times a number."""
    return s * a[0], s * a[1], s * a[2]


@helper
def dot(a: Vector, b: Vector) -> float:
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@helper
def norm(a: Vector) -> float:
    """Length."""
    return math.sqrt(dot(a, a))


@helper
def cross(a: Vector, b: Vector) -> Vector:
    """Vector product."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@helper
def apply(A: Matrix, b: Vector) -> Vector:
    """Matrix times vector."""
    return dot(A[0], b), dot(A[1], b), dot(A[2], b)


@helper
def transpose(A: Matrix) -> Matrix:
    """Rows and columns exchanged."""
    return (
        (A[0][0], A[1][0], A[2][0]),
        (A[0][1], A[1][1], A[2][1]),
        (A[0][2], A[1][2], A[2][2]),
    )


@helper
def mul(A: Matrix, B: Matrix) -> Matrix:
    """Matrix product."""
    T = transpose(B)
    return apply(T, A[0]), apply(T, A[1]), apply(T, A[2])


@helper
def add_mat(A: Matrix, B: Matrix) -> Matrix:
    """Sum of matrices."""
    return add(A[0], B[0]), add(A[1], B[1]), add(A[2], B[2])


@helper
def outer(a: Vector, b: Vector) -> Matrix:
    """Dyadic product."""
    return scale(a[0], b), scale(a[1], b), scale(a[2], b)


@helper
def diagonal(s: float) -> Matrix:
    """Identity times a number."""
    return (s, 0.0, 0.0), (0.0, s, 0.0), (0.0, 0.0, s)


@helper
def rotation(x: float, y: float, z: float, w: float) -> Matrix:
    """Rotation of a unit quaternion."""
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


@helper
def turn_z(R: Matrix, angle: float) -> Matrix:
    """Rotation R followed, in its own axes, by a turn about z."""
    return turned_z(R, math.cos(angle), math.sin(angle))


@helper
def turned_z(R: Matrix, c: float, s: float) -> Matrix:
    """The same of an angle with that cosine and sine."""
    x, y, z = transpose(R)
    return transpose((add(scale(c, x), scale(s, y)), sub(scale(c, y), scale(s, x)), z))


@helper
def quat_exp(a: Vector) -> Quaternion:
    """Unit quaternion xyzw of the rotation vector a."""
    half = 0.5 * norm(a)
    # sin(h)/h to round-off by its series where the quotient would lose digits
    s = 0.5 * (math.sin(half) / half if half > 1e-4 else 1.0 - half * half / 6.0)
    return s * a[0], s * a[1], s * a[2], math.cos(half)


@helper
def quat_mul(a: Quaternion, b: Quaternion) -> Quaternion:
    """Product of quaternions xyzw: first b, then a."""
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] + a[1] * b[3] + a[2] * b[0] - a[0] * b[2],
        a[3] * b[2] + a[2] * b[3] + a[0] * b[1] - a[1] * b[0],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@helper
def put_quat(x: Array, a: Quaternion) -> None:
    """Write a quaternion, normalised."""
    s = 1.0 / math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3])
    x[0], x[1], x[2], x[3] = s * a[0], s * a[1], s * a[2], s * a[3]


@helper
def rotation_vector(R: Matrix) -> Vector:
    """Rotation vector (logarithm) of a rotation matrix, through its quaternion.

    Accurate for every angle up to pi: the quaternion's largest component is never divided away.
    """
    xx, yy, zz = R[0][0], R[1][1], R[2][2]
    skew = (R[2][1] - R[1][2], R[0][2] - R[2][0], R[1][0] - R[0][1])
    trace = xx + yy + zz
    if trace > 0.0:
        w = 0.5 * math.sqrt(1.0 + trace)
        v = scale(0.25 / w, skew)
    elif xx >= yy and xx >= zz:
        x = 0.5 * math.sqrt(1.0 + xx - yy - zz)
        w = 0.25 * skew[0] / x
        v = (x, 0.25 * (R[0][1] + R[1][0]) / x, 0.25 * (R[0][2] + R[2][0]) / x)
    elif yy >= zz:
        y = 0.5 * math.sqrt(1.0 + yy - xx - zz)
        w = 0.25 * skew[1] / y
        v = (0.25 * (R[0][1] + R[1][0]) / y, y, 0.25 * (R[1][2] + R[2][1]) / y)
    else:
        z = 0.5 * math.sqrt(1.0 + zz - xx - yy)
        w = 0.25 * skew[2] / z
        v = (0.25 * (R[0][2] + R[2][0]) / z, 0.25 * (R[1][2] + R[2][1]) / z, z)
    return quat_log((v[0], v[1], v[2], w))


@helper
def tilt(a: Vector, b: Vector) -> Vector:
    """Smallest rotation vector that turns unit vector a into b; any axis when they are opposite."""
    n = cross(a, b)
    sine, cosine = norm(n), dot(a, b)
    if sine < 1e-8:
        if cosine > 0.0:
            return n
        side = (1.0, 0.0, 0.0) if abs(a[0]) < 0.7 else (0.0, 1.0, 0.0)
        n = cross(a, side)
        return scale(math.pi / norm(n), n)
    return scale(math.atan2(sine, cosine) / sine, n)


@helper
def dexp_inverse(u: Vector, w: Vector, side: float) -> Vector:
    """Rate of the rotation vector u of exp(u) R (side 1) or R exp(u) (side -1) turning at w.

    w is in the axes outside the factor exp(u): world axes for side 1, body axes for side -1.
    Source: Hairer, Lubich, Wanner, Geometric Numerical Integration, III.4.
    """
    uw = cross(u, w)
    c = dexp_inverse_factor(dot(u, u))
    return add(add(w, scale(-0.5 * side, uw)), scale(c, cross(u, uw)))


@helper
def dexp_inverse_factor(angle2: float) -> float:
    """(1 - h cot h) / (4 h²) of half the angle h, whose square is given times four."""
    if angle2 < 1e-4:
        return 1.0 / 12.0 + angle2 / 720.0 + angle2 * angle2 / 30240.0
    half = 0.5 * math.sqrt(angle2)
    return (1.0 - half / math.tan(half)) / angle2


@helper
def dexp_inverse_drift(u: Vector, rate: Vector, w: Vector, side: float) -> Vector:
    """What ``dexp_inverse`` of a constant w changes by as u moves at its rate."""
    x, c = dot(u, u), dexp_inverse_factor(dot(u, u))
    if x < 0.1:  # the quotient below would lose digits
        slope = 1.0 / 720.0 + x * (1.0 / 15120.0 + x * (1.0 / 403200.0 + x / 11975040.0))
    else:
        half = 0.5 * math.sqrt(x)
        sine = math.sin(half)
        turned = (math.cos(half) / sine - half / (sine * sine)) / (8.0 * half)
        slope = -(turned + c) / x
    uw, rw = cross(u, w), cross(rate, w)
    bent = add(cross(rate, uw), cross(u, rw))
    grown = scale(2.0 * slope * dot(u, rate), cross(u, uw))
    return add(scale(-0.5 * side, rw), add(scale(c, bent), grown))


@helper
def dexp(u: Vector, rate: Vector, side: float) -> Vector:
    """Angular velocity w at which u has a rate: the inverse of ``dexp_inverse``."""
    angle2 = dot(u, u)
    if angle2 < 1e-4:
        a = 0.5 - angle2 / 24.0 + angle2 * angle2 / 720.0
        b = 1.0 / 6.0 - angle2 / 120.0 + angle2 * angle2 / 5040.0
    else:
        angle = math.sqrt(angle2)
        half = math.sin(0.5 * angle)
        a = 2.0 * half * half / angle2
        b = (angle - math.sin(angle)) / (angle * angle2)
    ur = cross(u, rate)
    return add(add(rate, scale(side * a, ur)), scale(b, cross(u, ur)))


@helper
def quat_log(a: Quaternion) -> Vector:
    """Rotation vector, no longer than pi, of a unit quaternion xyzw."""
    v, w = (a[0], a[1], a[2]), a[3]
    if w < 0.0:
        v, w = scale(-1.0, v), -w
    sine = norm(v)
    if sine < 1e-8:  # angle/sine is 2 to round-off
        return scale(2.0, v)
    return scale(2.0 * math.atan2(sine, w) / sine, v)


@helper
def power(wrench: Pair, twist: Pair) -> float:
    """Power of a wrench on a twist."""
    return dot(wrench[0], twist[0]) + dot(wrench[1], twist[1])


@helper
def velocity_at(twist: Pair, point: Vector) -> Vector:
    """Velocity of the point of a moving space that is at ``point``."""
    return add(twist[1], cross(twist[0], point))


@helper
def twist_at(twist: Pair, point: Vector) -> Pair:
    """A twist, or a spatial acceleration, about another point."""
    return twist[0], velocity_at(twist, point)


@helper
def wrench_from(point: Vector, wrench: Pair) -> Pair:
    """A wrench about the origin, from one about ``point``."""
    return add(wrench[0], cross(point, wrench[1])), wrench[1]


@helper
def add_inertia(A: Inertia, B: Inertia) -> Inertia:
    """Inertia of two bodies that move as one."""
    return A[0] + B[0], add(A[1], B[1]), add_mat(A[2], B[2])


@helper
def inertia_at(c: Vector, m: float, J: Matrix) -> Inertia:
    """Inertia about the origin of a mass m at c with inertia J about c."""
    moved = add_mat(diagonal(m * dot(c, c)), outer(scale(-m, c), c))
    return m, scale(m, c), add_mat(J, moved)


@helper
def inertia_from(point: Vector, inertia: Inertia) -> Inertia:
    """Inertia about the origin, from one about ``point``."""
    m, mc, J = inertia
    there = add(mc, scale(m, point))
    moved = add_mat(outer(scale(-1.0, point), there), outer(scale(-1.0, mc), point))
    moved = add_mat(moved, diagonal(dot(point, there) + dot(point, mc)))
    return m, there, add_mat(J, moved)


@helper
def momentum(inertia: Inertia, twist: Pair) -> Pair:
    """Angular momentum about the origin, linear momentum."""
    m, h, J = inertia
    w, v = twist
    return add(apply(J, w), cross(h, v)), sub(scale(m, v), cross(h, w))


@helper
def motion_cross(a: Pair, b: Pair) -> Pair:
    """Rate of the twist b that is carried along by the twist a."""
    return cross(a[0], b[0]), add(cross(a[0], b[1]), cross(a[1], b[0]))


@helper
def force_cross(a: Pair, f: Pair) -> Pair:
    """Rate of the wrench f that is carried along by the twist a."""
    return add(cross(a[0], f[0]), cross(a[1], f[1])), cross(a[0], f[1])


@helper
def add_pair(a: Pair, b: Pair) -> Pair:
    """Sum of two twists or wrenches."""
    return add(a[0], b[0]), add(a[1], b[1])


@helper
def sub_pair(a: Pair, b: Pair) -> Pair:
    """Difference of two twists or wrenches."""
    return sub(a[0], b[0]), sub(a[1], b[1])


@helper
def scale_pair(s: float, a: Pair) -> Pair:
    """Twist or wrench times a number."""
    return scale(s, a[0]), scale(s, a[1])
