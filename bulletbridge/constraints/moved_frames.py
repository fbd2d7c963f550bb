"""Frames a of loops that are told from step to step where to be, and the velocity of the way."""

import math
from typing import Annotated

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.constraints.records import Loop
from bulletbridge.numerics.records import Array, Mat3, Real, Records, Vec3, dtype_of
from bulletbridge.numerics.spatial import (
    Quaternion,
    Vector,
    add,
    apply,
    dot,
    mat,
    mul,
    norm,
    put,
    put_mat,
    put_quat,
    quat_mul,
    rotation,
    rotation_vector,
    scale,
    sub,
    transpose,
    vec,
)

Vec4 = Annotated[Array, "f8", (4,)]
Vec7 = Annotated[Array, "f8", (7,)]
AT_END = Annotated[Array, "f8", (12,)]
ENDS = Annotated[Array, "f8", (2,)]
TURNS = Annotated[Array, "f8", (2, 3, 3)]
WAYS = Annotated[Array, "f8", (2, 3)]

FURTHEST_AHEAD = 0.5
"""Turn [rad] up to which a frame is put ahead."""
BENDS = 0.5
"""Cosine of the angle from way to way of a step from which on one does not go on as the other."""
ENDED = 1e-6
"""Share of a step that is nothing."""
STILL = 1e-15
"""Half a turn [rad] that the product of two equal quaternions may have by rounding."""


class Moved:
    """A frame that is moved; what follows ``lead`` is what comes of it."""

    align: Mat3  # axes of the encoded frame in the frame itself
    com: Vec3  # what it is told relative to, in the link's frame [m]
    axes: Vec4  # and its axes there, xyzw
    on_R: Mat3  # the link on its body
    on_p: Vec3  # [m]
    link_R: Mat3  # and in the world
    link_p: Vec3  # [m]
    carried: ENDS  # what moves of bodies under frame a and b count besides: 1, -1, or 0 for none
    turned: TURNS  # those moves: x to R x + p, in the world
    shifted: WAYS  # [m]
    p: Vec3  # where it was told to be last, in the link's frame [m]
    q: Vec4  # likewise, xyzw
    way: Vec3  # over the step that brought it there, in the link's axes [m/s]
    linear: Vec3  # velocity with which it came there
    angular: Vec3  # [rad/s]
    until: Real  # time [s] at which it is at the next place
    dt: Real  # [s] of the step that brings it there
    part: Real  # and of the system's steps that this one is made of
    lead: Real  # how many more such ways ahead of it ``ahead`` is
    ahead: Vec7  # where that is, relative to the same as what it is told, in its terms
    R_a: Mat3  # the encoded frame on its body, as in ``records.Loop``
    p_a: Vec3
    turn: Vec3
    before: Vec4  # rates of its motion in the step before, in its axes now, and about ``turn``
    rates: Vec4  # and in this one
    ends: Vec3  # and at its end
    target: AT_END  # its prescribed motion at the end of the step, as in ``records.Target``


MOVED = dtype_of(Moved)


@kernel
def drive_frame(frames: Records[Moved], told: Array) -> int:
    """Take a frame (1,) to where it is told to be in one step.

    Args:
        frames: The frame.
        told: (10,) position and quaternion, and of the step ``until``, ``dt`` and ``part``.

    Returns:
        Whether ``ahead`` is elsewhere than that.
    """
    f = frames[0]
    f.until, f.dt, f.part = told[7], told[8], told[9]
    a = (f.axes[0], f.axes[1], f.axes[2], f.axes[3])
    p = add(vec(f.com), apply(rotation(a[0], a[1], a[2], a[3]), (told[0], told[1], told[2])))
    q = quat_mul(a, unit_quat((told[3], told[4], told[5], told[6])))
    R = rotation(q[0], q[1], q[2], q[3])
    inverse = transpose(R)
    linear = apply(inverse, sub(p, vec(f.p)))
    x, y, z, w = quat_mul((-f.q[0], -f.q[1], -f.q[2], f.q[3]), q)
    size, turn = norm((x, y, z)), (0.0, 0.0, 0.0)
    if size > STILL:
        turn = scale(math.copysign(2.0 * math.atan2(size, abs(w)), w) / size, (x, y, z))
    if f.carried[0] != 0.0 or f.carried[1] != 0.0:
        link = mat(f.link_R)
        to_frame, point = transpose(mul(link, R)), add(vec(f.link_p), apply(link, p))
        for n in range(2):
            if f.carried[n] != 0.0:
                S = mat(f.turned[n])
                way = sub(point, apply(transpose(S), sub(point, vec(f.shifted[n]))))
                linear = add(linear, scale(f.carried[n], apply(to_frame, way)))
                turn = add(turn, scale(f.carried[n], apply(to_frame, rotation_vector(S))))
    linear, turn = scale(1.0 / f.dt, linear), scale(1.0 / f.dt, turn)
    before, turning = apply(inverse, vec(f.linear)), apply(inverse, vec(f.angular))
    ends = at_end(linear, apply(inverse, vec(f.way)))
    put(f.way, apply(R, linear))
    put(f.linear, apply(R, ends))
    put(f.angular, apply(R, turn))
    spin = norm(turn)
    axis = scale(1.0 / spin, turn) if spin > 0.0 else direction(turning)
    align, on = mat(f.align), mat(f.on_R)
    put_mat(f.R_a, mul(on, mul(R, align)))
    put(f.p_a, add(vec(f.on_p), apply(on, p)))
    put(f.turn, apply(transpose(align), axis))
    for k in range(3):
        f.before[k], f.rates[k] = before[k], linear[k]
    f.before[3], f.rates[3] = dot(turning, axis), spin
    put(f.ends, ends)
    put(f.target[3:6], apply(transpose(align), ends))
    f.target[10] = spin
    put(f.p, p)
    put_quat(f.q, q)
    return put_ahead(f, told, linear, turn, before, turning)


@helper
def at_end(way: Vector, before: Vector) -> Vector:
    """Velocity at the end of a way, over a step, that bends as it does from the one before.

    Ways are chords of what bodies are led along: a door that is led by its handle, round its
    hinge, can follow places on its arc, not a velocity across it.
    """
    size, was = norm(way), norm(before)
    if not dot(way, before) > BENDS * size * was:
        return way
    bend = sub(scale(1.0 / size, way), scale(1.0 / was, before))
    along = add(scale(1.0 / size, way), scale(size / (size + was), bend))
    return scale(size / norm(along), along)


@helper
def put_ahead(
    f: Moved, told: Array, linear: Vector, turn: Vector, before: Vector, turning: Vector
) -> int:
    """Put the place ``ahead`` on the frame's way, ``lead`` steps on at its velocity; whether it is.

    Of a velocity, ``linear`` or ``turn`` in its axes, no more counts than twice that of the step
    before, ``before`` or ``turning``: what has only begun to move is not led on.
    """
    way = f.lead * f.dt * lasting(linear, before)
    angle = f.lead * f.dt * lasting(turn, turning)
    if way == 0.0 and angle == 0.0:
        return 0
    spin = norm(turn)
    half = 0.5 * min(angle * spin, FURTHEST_AHEAD)
    R = rotation(f.q[0], f.q[1], f.q[2], f.q[3])
    a = rotation(f.axes[0], f.axes[1], f.axes[2], f.axes[3])
    put(f.ahead[:3], add(vec(told), apply(transpose(a), apply(R, scale(way, linear)))))
    s = math.sin(half) / spin if spin > 0.0 else 0.0
    q = unit_quat((told[3], told[4], told[5], told[6]))
    put_quat(f.ahead[3:], quat_mul(q, (s * turn[0], s * turn[1], s * turn[2], math.cos(half))))
    return 1


@helper
def lasting(now: Vector, before: Vector) -> float:
    """What share of a velocity counts: all unless it is over twice what it was before."""
    size = norm(now)
    return min(1.0, 2.0 * norm(before) / size) if size > 0.0 else 0.0


@kernel
def place_frame(loops: Records[Loop], index: int, frames: Records[Moved]) -> None:
    """Put frame a of a loop where the frame (1,) is."""
    loop, f = loops[index], frames[0]
    z = (f.R_a[0, 2], f.R_a[1, 2], f.R_a[2, 2])
    put_mat(loop.R_a, mat(f.R_a))
    put(loop.p_a, add(vec(f.p_a), scale(loop.height, z)))
    put(loop.turn, vec(f.turn))


@kernel
def put_motion(frames: Records[Moved], times: Array, targets: Array, k: int) -> int:
    """Prescribed motion of a frame (1,) that is at its place by the end of a step.

    Its rates are constant to where they bend at the end; those of the step before turn into these
    at the start, so that who follows arrives.

    Args:
        frames: The frame.
        times: [s].
        targets: (times, motions, 12) as in ``records.Target``, of which the motion k is written.
        k: Its number.

    Returns:
        Whether all numbers are finite.
    """
    f, sound = frames[0], True
    to_encoded = transpose(mat(f.align))
    before, rates = (f.before[0], f.before[1], f.before[2]), (f.rates[0], f.rates[1], f.rates[2])
    was, rate, end = apply(to_encoded, before), apply(to_encoded, rates), vec(f.ends)
    end = apply(to_encoded, end)
    arrives = end if f.dt - f.part < ENDED * f.dt else rate
    change = scale(1.0 / f.part, sub(arrives, was))
    for n in range(len(times)):
        left, past, target = (f.until - times[n]) / f.dt, times[n] - f.until, targets[n, k]
        if left < ENDED:
            past = 0.0
        put(target[:3], scale(past, rate))
        target[9] = past * f.rates[3]
        if left < 1.0 - ENDED:
            put(target[3:6], end if left < ENDED else rate)
            target[10] = f.rates[3]
        else:
            put(target[3:6], was)
            put(target[6:9], change)
            target[10], target[11] = f.before[3], (f.rates[3] - f.before[3]) / f.part
        for i in range(12):
            sound = sound and math.fabs(target[i]) < math.inf
    return int(sound)


@helper
def direction(a: Vector) -> Vector:
    """A vector scaled to length one, or zero if it has none."""
    length = norm(a)
    return scale(1.0 / length, a) if length > 0.0 else a


@helper
def unit_quat(a: Quaternion) -> Quaternion:
    """A quaternion scaled to length one."""
    s = 1.0 / math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3])
    return s * a[0], s * a[1], s * a[2], s * a[3]
