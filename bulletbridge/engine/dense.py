"""Projector formulation: accelerations by the M-orthogonal split of velocity space.

With P = I - J⁺J, J⁺ weighted by M, the admissible part of the applied forces accelerates and the
rest follows from the constraints: v̇ = P M⁻¹ (tau - h) - J⁺ gamma. Redundant and singular rows need
nothing special. Source: Kövecses and Piedbœuf 2003, eq. 30 and 31.
"""

import math

from bulletbridge.compilation.jit import call_back, helper, outlined
from bulletbridge.constraints.drift import drift
from bulletbridge.constraints.rows import jacobian, residuals
from bulletbridge.engine.records import (
    ACCELERATION,
    BIAS,
    CHART,
    CORRECTION,
    DRIFT_PHASE,
    FORCE,
    POSITION_PHASE,
    RIGHT_SIDE,
    SEEN_Q,
    SEEN_V,
    SOLUTION,
    Arrays,
    Factors,
    Instant,
)
from bulletbridge.mechanism.dynamics import (
    add_impedance,
    bias,
    clear,
    composite_inertias,
    is_damped,
    joint_forces,
    look_ahead,
    mass_matrix,
    put_gravity,
)
from bulletbridge.mechanism.force_elements import (
    add_compliance,
    look_ahead_of_elements,
    put_moving_frames,
)
from bulletbridge.mechanism.kinematics import displace, kinematics
from bulletbridge.mechanism.records import DRAG
from bulletbridge.numerics.projection import (
    Caps,
    Cuts,
    Row,
    add_row,
    factor_profile,
    inner,
    most_left,
    orthogonalise,
    project_out,
    row_space_solution,
    shortened,
    unwhiten,
    weakest,
    whiten_force,
    whiten_rows,
    whiten_velocity,
    widen,
)
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import copy_into


@helper
def ask_user(a: Arrays, phase: int, t: float, q: Array, v: Array) -> None:
    """Let the Python function fill the user's rows at this state."""
    a.control.t = t
    for j in range(len(q)):
        a.vectors[SEEN_Q, j] = q[j]
    copy_into(a.vectors[SEEN_V], v)
    call_back(a.control.callback, phase)


@helper
def ask_forces(a: Arrays, q: Array, v: Array) -> None:
    """Have forces that are functions of the state written to where they act, at ``control.t``."""
    if a.control.asked != 0:
        ask_python(a, q, v)


@outlined
def ask_python(a: Arrays, q: Array, v: Array) -> None:
    """The same where there are any."""
    put_moving_frames(a.efforts, a.poses, a.axes, v)
    for j in range(len(q)):
        a.vectors[SEEN_Q, j] = q[j]
    copy_into(a.vectors[SEEN_V], v)
    call_back(a.control.asked, a.control.asked_for)


@helper
def put_poses(a: Arrays, rows: Records[Row], instant: Instant, q: Array) -> None:
    """Poses and residuals at q, but of users' constraints."""
    kinematics(a.bodies, a.beams, a.stations, q, a.poses, a.axes)
    a.control.left = residuals(
        a.loops, a.couplings, a.terms, a.poses, a.axes, instant.targets, q, rows
    )


@helper
def update_positions(a: Arrays, f: Factors, instant: Instant, q: Array, v: Array) -> None:
    """Poses and residuals at q."""
    put_poses(a, f.rows, instant, q)
    if a.control.driven > 0:
        script_elements(a, instant)
    if a.control.user_rows > 0:
        ask_user(a, POSITION_PHASE, instant.t, q, v)
        first = f.Y.shape[0] - a.control.user_rows
        for i in range(a.control.user_rows):
            f.rows[first + i].g = a.user_rows[i].g


@helper
def script_elements(a: Arrays, instant: Instant) -> None:
    """Forces of elements that are functions of time."""
    for i in range(len(a.efforts)):
        effort = a.efforts[i]
        if effort.kind != DRAG and effort.target >= 0:
            effort.force = instant.targets[effort.target].p[2]


@helper
def scaled_jacobian(a: Arrays, f: Factors, instant: Instant) -> None:
    """Rows of velocities, scaled, into f.Y at the configuration that was seen last; their g_t."""
    jacobian(a.loops, a.couplings, a.terms, a.poses, a.axes, instant.targets, f.Y, f.rows)
    first = f.Y.shape[0] - a.control.user_rows
    for i in range(a.control.user_rows):
        f.rows[first + i].g_t = a.user_rows[i].g_t
        for k in range(f.Y.shape[1]):
            f.Y[first + i, k] = a.user_jacobian[i, k]
    for i in range(f.Y.shape[0]):
        scale = f.rows[i].scale
        for k in range(f.Y.shape[1]):
            f.Y[i, k] *= scale


@helper
def factorise(a: Arrays, f: Factors, instant: Instant) -> None:
    """Split velocity space at the configuration that ``update_positions`` saw last."""
    put_matrices(a, f, instant)
    split(a, f)


@helper
def put_matrices(a: Arrays, f: Factors, instant: Instant) -> None:
    """What is to be split: M into f.L, with what acts at the end of a step, and rows into f.Y."""
    control = a.control
    control.biased = 0
    mass_matrix(a.bodies, a.beams, a.stations, a.poses, a.axes, f.L)
    put_beginnings(a, f.first)
    scaled_jacobian(a, f, instant)
    damper_dt, spring_dt = control.damper_dt, control.spring_dt
    if damper_dt > 0.0:
        row = a.vectors[CHART, : len(a.axes)]
        add_impedance(a.axes, damper_dt, spring_dt, f.L)
        add_compliance(a.efforts, a.poses, a.axes, damper_dt, damper_dt * spring_dt, row, f.L)
        if len(a.efforts) > 0:
            widen(f.L, f.first)


@helper
def put_beginnings(a: Arrays, first: Ints) -> None:
    """Columns in which rows of the mass matrix begin: with the first rate of their trees."""
    for k in range(len(a.axes)):
        axis = a.axes[k]
        first[k] = first[axis.below] if axis.below >= 0 else a.bodies[axis.body].v


@helper
def split(a: Arrays, f: Factors) -> None:
    """Split velocity space by the matrices that f holds, in place."""
    control = a.control
    factor_profile(f.L, f.first)
    whiten_rows(f.L, f.Y, f.first)
    control.rank, control.filter_rank = orthonormalise(a, f)
    control.margin = weakest(f.R, control.filter_rank)


@helper
def orthonormalise(a: Arrays, f: Factors) -> tuple[int, int]:
    """Orthonormalise the whitened rows f.Y; how many are strong, and all."""
    control = a.control
    caps = Caps(control.cap, control.held_cap)
    cuts = Cuts(control.singular_rtol, control.filter_rtol, 0.0)
    return orthogonalise(f.Y, f.R, f.rows, caps, cuts)


@helper
def set_implicit_horizon(a: Arrays, ahead: float) -> None:
    """Have dampers, and springs if asked to, act ``ahead`` [s]; factors without them are forgotten.

    Where there is nothing of the kind the factors are those of the mass alone.
    """
    c = a.control
    spring_dt = ahead if c.implicit != 0 else 0.0
    damped = ahead > 0.0 and (c.implicit != 0 or is_damped(a.axes, a.efforts))
    damper_dt = ahead if damped else 0.0
    if c.damper_dt != damper_dt or c.spring_dt != spring_dt:
        c.damper_dt, c.spring_dt, c.factored = damper_dt, spring_dt, 0


@outlined
def put_bias_at_hand(a: Arrays, v: Array) -> None:
    """Bias forces h (nv,) by the gravity in the poses, at the rates v, into vectors[BIAS]."""
    bias(a.bodies, a.beams, a.stations, a.efforts, a.poses, a.axes, v, a.vectors[BIAS])


@helper
def put_bias(a: Arrays, v: Array) -> None:
    """Bias forces h (nv,) at the rates v into vectors[BIAS], and twists into the poses."""
    put_gravity(a.poses, a.control.gravity)
    put_bias_at_hand(a, v)


@outlined
def put_bias_of_motion(a: Arrays, gravity: Array, v: Array) -> None:
    """The same without efforts, as derivatives of the motion take it."""
    put_gravity(a.poses, gravity)
    bias(a.bodies, a.beams, a.stations, a.efforts[:0], a.poses, a.axes, v, a.vectors[BIAS])


@outlined
def place(a: Arrays, f: Factors, now: Instant, q: Array, v: Array) -> None:
    """Poses at q, with the inertias of what is carried, where the factors are known."""
    update_positions(a, f, now, q, v)
    composite_inertias(a.bodies, a.beams, a.stations, a.poses)


@helper
def applied_forces(a: Arrays, q: Array, v: Array, tau: Array, forces: Array) -> None:
    """Applied less bias forces, tau - h, on the rates (nv,), at the poses of q."""
    ask_forces(a, q, v)
    put_bias(a, v)
    forces_less_bias(a, q, v, tau, forces)


@helper
def forces_less_bias(a: Arrays, q: Array, v: Array, tau: Array, forces: Array) -> None:
    """``applied_forces`` by the bias forces at hand, and what was asked for them."""
    h = a.vectors[BIAS]
    joint_forces(a.axes, q, v, tau, forces)
    if a.control.spring_dt > 0.0:
        look_ahead(a.axes, a.control.spring_dt, v, forces)
        look_ahead_of_elements(a.efforts, a.poses, a.axes, a.control.spring_dt, forces)
    for k in range(len(forces)):
        forces[k] -= h[k]


@helper
def project_force(a: Arrays, f: Factors, q: Array, v: Array, tau: Array, vdot: Array) -> None:
    """What applied and bias forces do to the admissible velocities, whitened: L P M⁻¹ (tau - h)."""
    applied_forces(a, q, v, tau, vdot)
    admit_force(f, a.control.rank, vdot)


@helper
def admit_force(f: Factors, rank: int, force: Array) -> None:
    """Forces (nv,) into what they do to the velocities that so many rows admit, whitened."""
    whiten_force(f.L, force, f.first)
    project_out(f.Y, rank, force)


@helper
def accelerate(
    a: Arrays, f: Factors, instant: Instant, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """Constrained acceleration vdot (nv,) with the factors of this configuration."""
    put_whitened_acceleration(a, f, instant, q, v, tau, vdot)
    unwhiten(f.L, vdot, f.first)


@helper
def put_whitened_acceleration(
    a: Arrays, f: Factors, instant: Instant, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """The same, whitened."""
    control = a.control
    y, z = a.vectors[RIGHT_SIDE], a.vectors[SOLUTION]
    project_force(a, f, q, v, tau, vdot)
    drift(a.loops, a.couplings, a.terms, a.poses, a.axes, instant.targets, f.rows)
    if control.user_rows > 0:
        ask_user(a, DRIFT_PHASE, instant.t, q, v)
        first = f.Y.shape[0] - control.user_rows
        for i in range(control.user_rows):
            f.rows[first + i].gamma = a.user_rows[i].gamma
    for i in range(control.rank):
        row = f.rows[f.rows[i].pivot]
        y[i] = -row.scale * row.gamma
    row_space_solution(f.Y, f.R, control.rank, y, z)
    for k in range(len(vdot)):
        vdot[k] += z[k]


@helper
def filter_velocity(a: Arrays, f: Factors, v: Array) -> None:
    """The nearest velocity in the metric of M that the constraints allow.

    Source: Kövecses and Piedbœuf 2003, eq. 33: v <- P v - J⁺ g_t.
    """
    put_nearest(a, f, a.control.filter_rank, v)


@helper
def put_nearest(a: Arrays, f: Factors, rank: int, v: Array) -> None:
    """The nearest velocity in the metric of f that so many of its rows allow."""
    whiten_velocity(f.L, v, f.first)
    project_out(f.Y, rank, v)
    if a.control.driven:
        y, z = a.vectors[RIGHT_SIDE], a.vectors[SOLUTION]
        for i in range(rank):
            row = f.rows[f.rows[i].pivot]
            y[i] = -row.scale * row.g_t
        row_space_solution(f.Y, f.R, rank, y, z)
        for k in range(len(v)):
            v[k] += z[k]
    unwhiten(f.L, v, f.first)


@outlined
def kinematics_apart(a: Arrays, q: Array) -> None:
    """Poses at q, out of line: for what is rare, or long beside a call."""
    kinematics(a.bodies, a.beams, a.stations, q, a.poses, a.axes)


@outlined
def composite_inertias_apart(a: Arrays) -> None:
    """Inertias that bodies carry, at the poses at hand; likewise."""
    composite_inertias(a.bodies, a.beams, a.stations, a.poses)


@outlined
def update_positions_apart(a: Arrays, f: Factors, instant: Instant, q: Array, v: Array) -> None:
    """``update_positions`` out of line, likewise."""
    update_positions(a, f, instant, q, v)


@outlined
def factorise_apart(a: Arrays, f: Factors, instant: Instant) -> None:
    """``factorise`` out of line, likewise."""
    factorise(a, f, instant)


@outlined
def factor_at(a: Arrays, f: Factors, instant: Instant, q: Array, v: Array) -> None:
    """Poses, residuals and factors at q."""
    update_positions_apart(a, f, instant, q, v)
    factorise_apart(a, f, instant)


@outlined
def accelerate_at(
    a: Arrays, f: Factors, instant: Instant, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """Constrained acceleration at a state whose factors are not yet known."""
    factor_at(a, f, instant, q, v)
    accelerate(a, f, instant, q, v, tau, vdot)


@helper
def correction_step(a: Arrays, f: Factors, rank: int) -> float:
    """Step J⁺ g into vectors[SOLUTION], whitened; its length."""
    y, z = a.vectors[RIGHT_SIDE], a.vectors[SOLUTION]
    for i in range(rank):
        row = f.rows[f.rows[i].pivot]
        y[i] = row.scale * row.g
    row_space_solution(f.Y, f.R, rank, y, z)
    length2 = 0.0
    for k in range(f.Y.shape[1]):
        length2 += z[k] * z[k]
    return math.sqrt(length2)


@helper
def add_row_multipliers(f: Factors, rank: int, sign: float, y: Array, sums: Array) -> None:
    """Add the multipliers of a whitened step whose coefficients in the kept rows are y, to sums.

    sums (nc,) are of the rows without their scale; those that follow from others get none. y is
    lost.
    """
    for i in range(rank - 1, -1, -1):
        for k in range(i + 1, rank):
            y[i] -= f.R[k, i] * y[k]
        y[i] /= f.R[i, i]
        n = f.rows[i].pivot
        sums[n] += sign * f.rows[n].scale * y[i]


@helper
def solution_multipliers(
    a: Arrays, f: Factors, rank: int, needed: Array, vdot: Array, lam: Array
) -> None:
    """Multipliers lam (nc,) with M vdot - needed = Jᵀ lam; ``needed`` (nv,) is lost."""
    whitened, y = a.vectors[ACCELERATION, : len(vdot)], a.vectors[RIGHT_SIDE]
    copy_into(whitened, vdot)
    whiten_velocity(f.L, whitened)
    whiten_force(f.L, needed)
    for k in range(len(vdot)):
        whitened[k] -= needed[k]
    for i in range(rank):
        y[i] = inner(f.Y, i, whitened)
    for i in range(len(lam)):
        lam[i] = 0.0
    add_row_multipliers(f, rank, 1.0, y, lam)


@outlined
def solve_motion(
    a: Arrays,
    f: Factors,
    now: Instant,
    q: Array,
    v: Array,
    tau: Array,
    vdot: Array,
    lam: Array,
) -> None:
    """Acceleration vdot (nv,) and multipliers lam (nc,), with the factors of this configuration.

    What the rows supply, whitened, is left in vectors[ACCELERATION].
    """
    accelerate(a, f, now, q, v, tau, vdot)
    needed = a.vectors[FORCE, : len(v)]
    forces_less_bias(a, q, v, tau, needed)
    solution_multipliers(a, f, a.control.rank, needed, vdot, lam)


@helper
def move_back(a: Arrays, f: Factors, q: Array) -> None:
    """Take the step in vectors[SOLUTION] away from q, and keep the sum of such steps."""
    unwhiten(f.L, a.vectors[SOLUTION, : f.Y.shape[1]], f.first)
    take_away(a, q)


@helper
def take_away(a: Arrays, q: Array) -> None:
    """The same of a step that is one of the rates."""
    displace(a.bodies, q, a.vectors[SOLUTION], -1.0, q)
    for k in range(len(a.axes)):
        a.vectors[CORRECTION, k] -= a.vectors[SOLUTION, k]


@helper
def kinetic_energy(a: Arrays, f: Factors, v: Array) -> float:
    """Kinetic energy of the rates v (nv,), with the factors of M."""
    y = a.vectors[SOLUTION, : len(v)]
    copy_into(y, v)
    whiten_velocity(f.L, y, f.first)
    total = 0.0
    for k in range(len(v)):
        total += y[k] * y[k]
    return 0.5 * total


@helper
def travelled(a: Arrays, f: Factors, v: Array) -> float:
    """Length of v in the metric of M."""
    return math.sqrt(2.0 * kinetic_energy(a, f, v))


@helper
def bounded_correction(a: Arrays, f: Factors, rank: int, limit: float) -> None:
    """Step into vectors[SOLUTION], whitened, that goes no further than that along any direction.

    The directions are those of the split, so that what a row all but lost asks for is shortened,
    and others close beside it. vectors[RIGHT_SIDE] has the shares.
    """
    y, z = a.vectors[RIGHT_SIDE], a.vectors[SOLUTION, : f.Y.shape[1]]
    if not correction_step(a, f, rank) > limit:
        return
    clear(z, len(z))
    for i in range(rank):
        y[i] = shortened(y[i], limit)
        add_row(z, y[i], f.Y, i)


@helper
def is_unexplained(a: Arrays, f: Factors) -> bool:
    """Whether rows beyond those that are independent have more of their own than was found."""
    c = a.control
    c.unexplained = most_left(f.Y, f.rows, c.cap)
    return c.unexplained > c.most_left


@helper
def admissible_acceleration(
    a: Arrays, f: Factors, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """What applied and bias forces do to the admissible velocities: P M⁻¹ (tau - h)."""
    project_force(a, f, q, v, tau, vdot)
    unwhiten(f.L, vdot, f.first)


@helper
def admit(a: Arrays, f: Factors, force: Array, vdot: Array) -> None:
    """What forces (nv,) on the rates do to the admissible velocities: P M⁻¹ f."""
    copy_into(vdot, force)
    move_by(a, f, vdot)


@helper
def move_by(a: Arrays, f: Factors, x: Array) -> None:
    """The same in place.

    Rows count down to where the velocity filter has them: no drift is asked for here, which weak
    ones would magnify, and what those let by it would take away again, with what is admissible.
    """
    admit_force(f, a.control.filter_rank, x)
    unwhiten(f.L, x, f.first)


@outlined
def energy_of(a: Arrays, f: Factors, v: Array) -> float:
    """Kinetic energy [J] at the configuration of the factors, in their metric."""
    return kinetic_energy(a, f, v)
