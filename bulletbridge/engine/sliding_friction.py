"""Friction of loop joints that slide, at an acceleration, and dense factors with it as a backend.

It grows with the forces of the loops: it opposes slip with the coefficient times the normal force,
which is a multiplier of the rows, which friction changes. Multipliers depend linearly on forces:
the friction of all contacts follows from one small linear system, whose unknowns are its sizes.

Source: Bonaventura 2002, contacts of class II.
"""

import math

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.constraints.records import Loop, Target
from bulletbridge.constraints.relative_pose import (
    constant_rows,
    frames,
    from_other,
    position_in,
    variable_direction,
)
from bulletbridge.engine.dense import (
    factor_at,
    forces_less_bias,
    put_whitened_acceleration,
)
from bulletbridge.engine.dense_backend import DENSE
from bulletbridge.engine.records import (
    FORCE,
    MOST_SLIDING,
    RIGHT_SIDE,
    SLIDING,
    SOLUTION,
    Arrays,
    Factors,
    Instant,
)
from bulletbridge.mechanism.kinematics import axis_twist, pose_twist
from bulletbridge.numerics.lu import back_real, lu_real
from bulletbridge.numerics.projection import (
    project_out,
    row_space_solution,
    unwhiten,
    whiten_force,
)
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import (
    Vector,
    add,
    apply,
    dot,
    mul,
    norm,
    scale,
    sub,
    transpose,
    vec,
    velocity_at,
)

STILL = 1e-10
"""Slip [m/s] below which it has no direction."""
SINGULAR = 1e-12
"""Pivot, over the largest number of the system, below which no sizes of friction are told."""
CHANGE, SYSTEM = MOST_SLIDING, 2 * MOST_SLIDING
NORMAL, SIZE, SIGN, TURNS = range(3 * MOST_SLIDING, 3 * MOST_SLIDING + 4)
"""Rows of the scratch vectors, after the whitened friction of each contact for a size of one: what
of each normal force changes with each friction, the linear system, normal forces without friction,
sizes, signs of normal forces, turns of the system's rows."""


@helper
def accelerate(
    a: Arrays, f: Factors, instant: Instant, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """Constrained acceleration vdot (nv,) with friction and the factors of this configuration."""
    put_whitened_acceleration(a, f, instant, q, v, tau, vdot)
    if a.control.sliding > 0:
        applied = a.vectors[FORCE, : len(v)]
        forces_less_bias(a, q, v, tau, applied)
        whiten_force(f.L, applied)
        add_friction(a, f, instant, vdot, applied)
    unwhiten(f.L, vdot)


@outlined
def accelerate_at(
    a: Arrays, f: Factors, instant: Instant, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """The same at a state whose factors are not yet known."""
    factor_at(a, f, instant, q, v)
    accelerate(a, f, instant, q, v, tau, vdot)


SLIDING_BACKEND = DENSE._replace(accelerate=accelerate, accelerate_at=accelerate_at)
"""Dense factors in joint coordinates, with friction in accelerations."""


@outlined
def add_friction(a: Arrays, f: Factors, now: Instant, vdot: Array, applied: Array) -> None:
    """Add to an acceleration what friction does, both whitened, as are the applied forces.

    Not finite where no sizes of friction go with the normal forces.
    """
    s, n, nv = a.vectors[SLIDING:], 0, len(vdot)
    for i in range(len(a.loops)):
        if a.loops[i].friction > 0.0:
            put_push(a, f, a.loops[i], now.targets, s[n, :nv])
            n += 1
    n = 0
    for i in range(len(a.loops)):
        if a.loops[i].friction > 0.0:
            put_normal_row(a, f, a.loops[i], now.targets)
            g = a.vectors[SOLUTION, :nv]
            total = 0.0
            for k in range(nv):
                total += g[k] * (vdot[k] - applied[k])
            s[NORMAL, n] = total
            for j in range(a.control.sliding):
                total = 0.0
                for k in range(nv):
                    total += g[k] * s[j, k]
                s[CHANGE + n, j] = -total
            n += 1
    if not put_sizes(a, s, n):
        vdot[0] = math.nan
        return
    for j in range(n):
        project_out(f.Y, a.control.rank, s[j, :nv])
        for k in range(nv):
            vdot[k] += s[SIZE, j] * s[j, k]


@helper
def normal_in(a: Arrays, loop: Loop, targets: Records[Target]) -> tuple[Vector, Vector]:
    """Normal of the surface, and direction of the row that depends on the pose, in axes of a'."""
    frame, other = frames(loop, a.poses, targets)
    if loop.variable > 0:
        s = position_in(frame, other)
        along = variable_direction(loop, mul(transpose(frame[0]), other[0]), s)[1]
        return along, along
    return (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)


@helper
def put_push(a: Arrays, f: Factors, loop: Loop, targets: Records[Target], push: Array) -> None:
    """Whitened force on the rates of friction of size one: against slip, or none without slip."""
    frame, b = frames(loop, a.poses, targets)
    normal = apply(frame[0], normal_in(a, loop, targets)[0])
    below = 0.0 if loop.variable > 0 else loop.height
    point = sub(b[1], scale(below, normal))
    other = sub(from_other(loop, a.poses, frame, b)[1][1], scale(below, normal))
    twist_a, twist_b = pose_twist(a.poses[loop.body_a]), pose_twist(a.poses[loop.body_b])
    slip = sub(velocity_at(twist_b, point), velocity_at(twist_a, other))
    slip = add(slip, scale(-dot(slip, normal), normal))
    size = norm(slip)
    for k in range(len(push)):
        push[k] = 0.0
    if not size > STILL:
        return
    against = scale(-1.0 / size, slip)
    for side in range(2):
        k = loop.axis_a if side == 0 else loop.axis_b
        sign, here = (-1.0, other) if side == 0 else (1.0, point)
        while k != loop.common_axis:
            push[k] += sign * dot(against, velocity_at(axis_twist(a.axes[k]), here))
            k = a.axes[k].below
    whiten_force(f.L, push)


@helper
def put_normal_row(a: Arrays, f: Factors, loop: Loop, targets: Records[Target]) -> None:
    """What of a whitened force that the rows supply is the normal force, into vectors[SOLUTION]."""
    normal, along = normal_in(a, loop, targets)
    y, z = a.vectors[RIGHT_SIDE], a.vectors[SOLUTION]
    constant = constant_rows(loop)
    for i in range(a.control.rank):
        r = f.rows[i].pivot - loop.row
        y[i] = 0.0
        if 0 <= r < constant:
            y[i] = f.rows[f.rows[i].pivot].scale * dot(vec(loop.force[r]), normal)
        elif r == constant and loop.variable > 0:
            y[i] = f.rows[f.rows[i].pivot].scale * dot(along, normal)
    row_space_solution(f.Y, f.R, a.control.rank, y, z)


@helper
def put_sizes(a: Arrays, s: Array, n: int) -> bool:
    """Sizes x = mu |N + change x|, where |.| is left out of contacts that only push; if there are.

    By keeping signs, as many times as it may take.
    """
    for i in range(n):
        s[SIGN, i] = 1.0
    for _ in range(2 * n + 2):
        if not solve_sizes(a, s, n):
            return False
        same, k = True, 0
        for i in range(len(a.loops)):
            if a.loops[i].friction > 0.0:
                normal = s[NORMAL, k]
                for j in range(n):
                    normal += s[CHANGE + k, j] * s[SIZE, j]
                sign = -1.0 if normal < 0.0 and a.loops[i].pulls != 0 else 1.0
                same = same and sign == s[SIGN, k]
                s[SIGN, k] = sign
                k += 1
        if same:
            return True
    return False


@helper
def solve_sizes(a: Arrays, s: Array, n: int) -> bool:
    """Solve x - share change x = share N with the signs at hand; False if that has no solution."""
    A, x, turns, k, size = s[SYSTEM : SYSTEM + n], s[SIZE], s[TURNS, :n], 0, 0.0
    for i in range(len(a.loops)):
        if a.loops[i].friction > 0.0:
            share = a.loops[i].friction * s[SIGN, k]
            for j in range(n):
                A[k, j] = (1.0 if j == k else 0.0) - share * s[CHANGE + k, j]
                size = max(size, abs(A[k, j]))
            x[k] = share * s[NORMAL, k]
            k += 1
    lu_real(A, turns)
    for k in range(n):
        if not abs(A[k, k]) > SINGULAR * size:
            return False
    back_real(A, turns, x)
    return True
