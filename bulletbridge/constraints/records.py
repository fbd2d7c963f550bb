"""Records that the constraint kernels read: every joint model is data.

A loop joins frame a on one body and frame b on another. Its rows are linear in the twist of b
relative to a at b's origin, in axes of a: row = moment · angular + force · linear. ``moment`` and
``force`` are a basis of the wrenches the joint can transmit, the complement of its free motions.
"""

from typing import Annotated

from bulletbridge.numerics.records import Array, Int, Mat3, Real, Vec3, dtype_of

Basis = Annotated[Array, "f8", (6, 3)]

FREE_ROTATION, AXIAL, FULL, ROLLS = 0, 1, 2, 3
"""Measures of the rotation of b in a: none, tilt of z and turn about it, full; in
what rolls not at all either, but angular velocities count."""

NO_VARIABLE_ROW, PERPENDICULAR, ROD, ON_SPHERE, ON_CYLINDER, WHOLE_TURN = 0, 1, 2, 3, 4, 5
"""A last row whose direction depends on the configuration: z of a and z of b at right angles, the
origins at a given distance (that a motion may change), b's origin at a given distance from the
origin or from the axis z of a (that a motion moves), or b turned in a by a given angle, about
whatever axis."""


class Loop:
    """One loop joint or rod."""

    row: Int  # first row
    rows: Int
    body_a: Int
    body_b: Int
    axis_a: Int  # last axis that moves each
    axis_b: Int
    common_axis: Int  # last axis that moves both bodies alike, or -1
    R_a: Mat3  # frames in their bodies, z the free axis
    p_a: Vec3
    R_b: Mat3
    p_b: Vec3
    rotation: Int  # how the rotation is measured
    variable: Int  # kind of the last row
    adds: Int  # whether that adds to the row of the loop before: lengths of a line through points
    held: Int  # constant rows that hold a position; those after them hold velocities alone
    left: Int  # directions that hold positions and were left out as redundant, after the rows
    left_rates: Int  # and, after those, such that hold velocities alone
    allowed: Real  # residual [lengths or rad] that directions left out may have
    allowed_rate: Real  # and their rate, relative to that of the joints that move the loop
    moment: Basis
    force: Basis
    turns: Vec3  # [rad/m] turn about z on the way of b's origin, to count those of a screw
    length: Real  # of a rod, or radius of a surface
    height: Real  # [m] of a along z over the point about which a prescribed motion turns it
    target: Int  # prescribed motion of frame a, or -1
    turn: Vec3  # its axis in frame a
    friction: Real  # over the normal force, of a joint that slides in steps with friction
    pulls: Int  # whether that force may pull, too


class Coupling:
    """One relation between joint positions."""

    row: Int
    first: Int  # of its terms
    count: Int
    offset: Real
    target: Int


class Term:
    """One joint of a coupling: a polynomial of its position."""

    axis: Int
    coefficient: Real
    higher: Vec3  # of its square, cube and fourth power


class Target:
    """A prescribed motion at one time: translation and turn, with rates and accelerations."""

    p: Vec3
    v: Vec3
    a: Vec3
    angle: Real
    rate: Real
    acceleration: Real


class MotorRow:
    """A motor or friction along one joint's motion, with a bounded force."""

    axis: Int  # of the tree, or -1 - n for loop axis n
    row: Int  # in the last step, or -1
    velocity: Real  # wanted [rad/s or m/s]
    position: Real  # wanted [rad or m]
    velocity_gain: Real  # share of the velocity error that one step takes away
    position_gain: Real  # share of the position error
    fastest: Real  # bound on the rate that is asked for
    force: Real  # largest force or torque; zero switches it off
    least: Real  # lowest one
    stiffness: Real  # of a servo, which pushes by these two and asks for no rate
    damping: Real


class JointLimit:
    """Limits of one joint position."""

    axis: Int  # as of a drive
    row: Int
    lower: Real
    upper: Real
    fastest: Real  # at which it is taken back from beyond them
    impulse: Real  # that it exerted in the last step


class ForceLimit:
    """A constraint with a force limit: its rows are within bounds and close it by and by."""

    row: Int  # first of its rows
    rows: Int
    loop: Int  # its loop if the first three rows are to be along the axes of the world, or -1
    force: Real  # largest, of each row [N or N m]
    erp: Real  # share of the gap that a step takes back
    holds: Int  # whether its rows are among those of the rigid loops now


LOOP, COUPLING, TERM, TARGET, MOTOR_ROW, JOINT_LIMIT, FORCE_LIMIT = (
    dtype_of(kind) for kind in (Loop, Coupling, Term, Target, MotorRow, JointLimit, ForceLimit)
)
