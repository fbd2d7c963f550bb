"""Pose and twist of frame b of a loop relative to frame a."""

import math

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.constraints.records import (
    AXIAL,
    FREE_ROTATION,
    ON_CYLINDER,
    PERPENDICULAR,
    ROD,
    ROLLS,
    WHOLE_TURN,
    Loop,
    Target,
)
from bulletbridge.mechanism.kinematics import between_origins
from bulletbridge.mechanism.records import Pose
from bulletbridge.numerics.records import Array, Matrix, Records, Vector
from bulletbridge.numerics.spatial import (
    ZERO,
    Pair,
    add,
    apply,
    cross,
    dexp_inverse,
    dot,
    mat,
    mul,
    norm,
    quat_exp,
    rotation,
    rotation_vector,
    scale,
    sub,
    tilt,
    transpose,
    vec,
)

Placement = tuple[Matrix, Vector]
"""Rotation and position of a frame, from the origin of a tree."""


Z = (0.0, 0.0, 1.0)


@helper
def constant_rows(loop: Loop) -> int:
    """Number of rows whose direction in a' does not change."""
    return loop.rows - 1 if loop.variable > 0 else loop.rows


@helper
def placed(pose: Pose, R: Array, p: Array) -> Placement:
    """A frame of a body, from its tree's origin."""
    up = mat(pose.R)
    return mul(up, mat(R)), add(vec(pose.p), apply(up, vec(p)))


@helper
def moved(frame: Placement, loop: Loop, targets: Records[Target]) -> Placement:
    """Frame a' from frame a. A rod's target is its length, not a motion of a."""
    if loop.target < 0 or loop.variable == ROD:
        return frame
    return driven(frame, loop, targets[loop.target])


@outlined
def driven(frame: Placement, loop: Loop, target: Target) -> Placement:
    """A frame after its prescribed motion."""
    x, y, z, w = quat_exp(scale(target.angle, vec(loop.turn)))
    R, p = frame
    return mul(R, rotation(x, y, z, w)), add(p, apply(R, vec(target.p)))


@helper
def frames(
    loop: Loop, poses: Records[Pose], targets: Records[Target]
) -> tuple[Placement, Placement]:
    """Frames a' and b, both from the origin of b's tree."""
    R, p = placed(poses[loop.body_a], loop.R_a, loop.p_a)
    a = R, sub(p, between_origins(poses, loop.body_a, loop.body_b))
    return moved(a, loop, targets), placed(poses[loop.body_b], loop.R_b, loop.p_b)


@helper
def from_other(
    loop: Loop, poses: Records[Pose], a: Placement, b: Placement
) -> tuple[Placement, Placement]:
    """``frames`` from the origin of a's tree."""
    way = between_origins(poses, loop.body_a, loop.body_b)
    return (a[0], add(a[1], way)), (b[0], add(b[1], way))


@helper
def position_in(a: Placement, b: Placement) -> Vector:
    """Origin of b in axes of a from the origin of a."""
    return apply(transpose(a[0]), sub(b[1], a[1]))


@helper
def turn_about_z(relative: Matrix, near: float) -> float:
    """Turn [rad] of b about z of a, of all that differ by whole ones the nearest to ``near``."""
    turn = math.atan2(relative[1][0] - relative[0][1], relative[0][0] + relative[1][1])
    return turn + 2.0 * math.pi * round((near - turn) / (2.0 * math.pi))


@helper
def rotation_error(loop: Loop, relative: Matrix, s: Vector) -> Vector:
    """How far b is turned against a', as a rotation vector; a screw's turns are counted."""
    if loop.rotation == FREE_ROTATION or loop.rotation == ROLLS:
        return ZERO
    if loop.rotation == AXIAL:
        column = transpose(relative)[2]
        lean = tilt(Z, column)
        turns = vec(loop.turns)
        if dot(turns, turns) == 0.0:
            return lean
        return lean[0], lean[1], turn_about_z(relative, dot(turns, s))
    return rotation_vector(relative)


@helper
def arm(loop: Loop, s: Vector) -> Vector:
    """The part of s that a distance counts: all of it, or what is across the axis of a cylinder."""
    return (s[0], s[1], 0.0) if loop.variable == ON_CYLINDER else s


@outlined
def whole_turn(relative: Matrix) -> tuple[float, Vector]:
    """Angle [rad] of b's turn against a, and the unit vector about which; z where there is none."""
    turns = rotation_vector(relative)
    angle = norm(turns)
    return angle, scale(1.0 / angle, turns) if angle > 0.0 else Z


@outlined
def turning_axis_rate(relative: Matrix, turn: Vector) -> Vector:
    """What the axis of ``whole_turn`` changes by as b turns."""
    turns = rotation_vector(relative)
    angle = norm(turns)
    if angle == 0.0:
        return ZERO
    axis, rate = scale(1.0 / angle, turns), dexp_inverse(turns, turn, 1.0)
    return scale(1.0 / angle, sub(rate, scale(dot(axis, rate), axis)))


@helper
def variable_direction(loop: Loop, relative: Matrix, s: Vector) -> Pair:
    """Moment and force direction of a row that depends on the configuration."""
    if loop.variable == PERPENDICULAR:
        return cross(transpose(relative)[2], Z), ZERO
    if loop.variable == WHOLE_TURN:
        return whole_turn(relative)[1], ZERO
    reach = arm(loop, s)
    return ZERO, scale(1.0 / norm(reach), reach)


@helper
def variable_direction_rate(
    loop: Loop, relative: Matrix, s: Vector, turn: Vector, way: Vector
) -> Pair:
    """What ``variable_direction`` changes by as b turns and its origin moves, in axes of a'."""
    if loop.variable == PERPENDICULAR:
        return cross(cross(turn, transpose(relative)[2]), Z), ZERO
    if loop.variable == WHOLE_TURN:
        return turning_axis_rate(relative, turn), ZERO
    reach = arm(loop, s)
    length = norm(reach)
    along = scale(1.0 / length, reach)
    moved = arm(loop, way)
    return ZERO, scale(1.0 / length, sub(moved, scale(dot(along, moved), along)))


@helper
def variable_residual(loop: Loop, relative: Matrix, s: Vector, targets: Records[Target]) -> float:
    """Residual of a loop's last row, whose direction depends on the pose.

    It is a cosine, a turn [rad] or a length [m].
    """
    if loop.variable == PERPENDICULAR:
        return relative[2][2]
    if loop.variable == WHOLE_TURN:
        return whole_turn(relative)[0] - loop.length
    wanted = loop.length
    if loop.variable == ROD and loop.target >= 0:
        wanted += targets[loop.target].p[2]
    return norm(arm(loop, s)) - wanted
