"""Derivatives of rows: of their velocities, accelerations and forces by positions and rates.

Rows of every loop joint depend on the place, twist and acceleration of b relative to a' alone. An
axis that moves both ends changes none of them; one below b displaces b, one below a does the same
as if b were displaced the other way. So one formula serves all models: with a turn θ of b and a
displacement d of its origin, seen from a', and their rates,

    δΩ = θ̇ + θ x Ω,   δΩ̇ = θ̈ + θ̇ x Ω + θ x Ω̇,   δṡ = ḋ,   δs̈ = d̈

Rates are those that are seen from a' as it turns; vectors have the components of the world, but
where rows need those of a'.
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import helper
from bulletbridge.constraints.drift import (
    RelativeMotion,
    is_driven,
    relative_motion,
)
from bulletbridge.constraints.records import (
    PERPENDICULAR,
    WHOLE_TURN,
    Loop,
    Target,
    Term,
)
from bulletbridge.constraints.relative_pose import (
    Z,
    arm,
    constant_rows,
    frames,
    position_in,
    variable_direction,
    variable_direction_rate,
    whole_turn,
)
from bulletbridge.constraints.row_rates import RowRecords
from bulletbridge.constraints.rows import curvature
from bulletbridge.mechanism.derivatives import (
    TreeGradients,
    VariedTree,
    acceleration_by_rate,
    added_acceleration,
    added_velocity,
    sum_at,
    sum_below,
)
from bulletbridge.mechanism.force_derivatives import WrenchChange, add_between
from bulletbridge.mechanism.inertias import rigid_acceleration
from bulletbridge.mechanism.kinematics import axis_twist, between_origins, pose_twist
from bulletbridge.mechanism.records import Pose
from bulletbridge.numerics.records import Array, Matrix, Records, Vector
from bulletbridge.numerics.spatial import (
    ZERO,
    Pair,
    add,
    add_pair,
    apply,
    cross,
    dot,
    force_cross,
    mul,
    norm,
    power,
    scale,
    scale_pair,
    sub,
    sub_pair,
    transpose,
    twist_at,
    vec,
    velocity_at,
    wrench_from,
)

Rates = tuple[Vector, Vector, Vector]
"""A vector with its first and second rate."""


ALL, RATE_ALONE, FORCE_ALONE, NO_ACCELERATION = range(4)
"""Which derivatives of rows are wanted: of velocities alone, of forces alone, of both alone."""


class Sight(NamedTuple):
    """What the motion of b is seen from in a', and what it is where b's frame is; world axes."""

    up: Matrix  # into axes of a'
    place: Vector  # of b's frame, from the origin of b's tree
    turning: Vector  # angular velocity of a',
    spun: Vector  # and its rate
    velocity: Vector  # of the body of b at that place,
    acceleration: Vector  # likewise
    angular: Vector  # angular velocity relative to a',
    angular_rate: Vector  # and its rate as it is seen there
    between: Vector  # from the origin of a's tree to that of b's


class Seen(NamedTuple):
    """A loop, how it moves, and the wrench on b, world axes, about the origin of b's tree."""

    loop: Loop
    sight: Sight
    motion: RelativeMotion
    wrench: Pair


class RowDerivatives(NamedTuple):
    """Where derivatives of rows go, and what they are asked for."""

    wanted: int  # which of them; the others are left as they are
    lam: Array  # (nc,) multipliers
    rate: Array  # (nc, nv) of J v + g_t by positions
    acceleration: Array  # (nc, 2 nv) of J v̇ + gamma by positions, then by rates
    F: Array  # (nv, 2 nv or more), from which the change of Jᵀ lam by positions is taken


@helper
def third(term: Term, x: float) -> float:
    """Third derivative of ``rows.polynomial``."""
    c = term.higher
    return 6.0 * c[1] + x * 24.0 * c[2]


@helper
def differentiate_rows(
    tree: VariedTree,
    rows: RowRecords,
    targets: Records[Target],
    vdot: Array,
    found: RowDerivatives,
) -> None:
    """Derivatives of the rows of loops and couplings."""
    (loops, couplings, terms), axes, nv = rows, tree.axes, len(tree.axes)
    wanted = found.wanted
    if wanted != FORCE_ALONE:
        for i in range(found.rate.shape[0]):
            for k in range(nv):
                found.rate[i, k] = 0.0
    if wanted == ALL:
        for i in range(found.rate.shape[0]):
            for k in range(2 * nv):
                found.acceleration[i, k] = 0.0
    for i in range(len(loops)):
        loop = loops[i]
        sight, motion = look(loop, tree.poses, targets, wanted != FORCE_ALONE)
        wrench = (ZERO, ZERO) if wanted == RATE_ALONE else reaction_on_b(loop, motion, found.lam)
        seen = Seen(loop, sight, motion, wrench)
        for end in range(2):
            j = loop.axis_b if end == 1 else loop.axis_a
            while j != loop.common_axis:
                differentiate_loop(tree, seen, j, 1.0 if end == 1 else -1.0, found)
                j = axes[j].below
    for i in range(len(couplings)):
        coupling = couplings[i]
        for k in range(coupling.first, coupling.first + coupling.count):
            term, j = terms[k], terms[k].axis
            x, v = axes[j].position, axes[j].rate
            bent = curvature(term, x)
            if wanted != FORCE_ALONE:
                found.rate[coupling.row, j] += bent * v
            if wanted == ALL:
                found.acceleration[coupling.row, j] += bent * vdot[j] + third(term, x) * v * v
                found.acceleration[coupling.row, nv + j] += 2.0 * bent * v
            if wanted != RATE_ALONE:
                found.F[j, j] -= found.lam[coupling.row] * bent


@helper
def differentiate_loop(
    tree: VariedTree, seen: Seen, j: int, sign: float, found: RowDerivatives
) -> None:
    """Columns of one loop for axis j, which moves b (sign 1) or a (-1)."""
    loop, sight, _, wrench = seen
    bodies, _, axes, variations = tree
    nv, own, variation, up = len(axes), axis_twist(axes[j]), variations[j], sight.up
    if sign < 0.0:  # to the origin of b's tree
        own = twist_at(own, sight.between)
    S = scale_pair(sign, own)
    varied = loop.row + loop.rows - 1
    if found.wanted != FORCE_ALONE:
        U, C = added_velocity(variation), added_acceleration(variation)
        if sign < 0.0:
            U, C = twist_at(U, sight.between), twist_at(C, sight.between)
        spin, way = relative_variation(sight, S, scale_pair(sign, U), scale_pair(sign, C))
        by_place = turned_rates(spin, sight)
        spun, gone = apply(up, by_place[0]), apply(up, way[1])
        for i in range(constant_rows(loop)):
            moment, force = vec(loop.moment[i]), vec(loop.force[i])
            found.rate[loop.row + i, j] = dot(moment, spun) + dot(force, gone)
        if found.wanted == ALL:
            spun, gone = apply(up, by_place[1]), apply(up, way[2])
            for i in range(constant_rows(loop)):
                moment, force = vec(loop.moment[i]), vec(loop.force[i])
                found.acceleration[loop.row + i, j] = dot(moment, spun) + dot(force, gone)
        if loop.variable > 0:
            rate, acceleration = varied_row_in_world(seen, spin[0], by_place, way)
            found.rate[varied, j] += rate
            if found.wanted == ALL:
                found.acceleration[varied, j] += acceleration
    if found.wanted == ALL:
        E = acceleration_by_rate(variation)
        if sign < 0.0:
            E = twist_at(E, sight.between)
        spin, way = rated_variation(sight, S, scale_pair(sign, E))
        by_rate = turned_rates(spin, sight)
        spun, gone = apply(up, by_rate[1]), apply(up, way[2])
        for i in range(constant_rows(loop)):
            moment, force = vec(loop.moment[i]), vec(loop.force[i])
            found.acceleration[loop.row + i, nv + j] = dot(moment, spun) + dot(force, gone)
        if loop.variable > 0:
            by_rates = varied_row_in_world(seen, ZERO, by_rate, way)[1]
            found.acceleration[varied, nv + j] += by_rates
    if found.wanted == RATE_ALONE:
        return
    changed, turned = changed_reaction(seen, S, found.lam), force_cross(own, wrench)
    if sign < 0.0:
        changed = add_pair(changed, turned)
    common, same = loop.common_axis, sign > 0.0
    change = WrenchChange(j, changed, turned)
    add_between(bodies, axes, loop.axis_b, common, same, 1.0, change, found.F)
    between = sight.between
    there = WrenchChange(j, wrench_from(between, changed), wrench_from(between, turned))
    add_between(bodies, axes, loop.axis_a, common, not same, -1.0, there, found.F)


@helper
def relative_place(loop: Loop, poses: Records[Pose], targets: Records[Target]) -> RelativeMotion:
    """``relative_motion`` at rest, for what asks for the place alone."""
    a, b = frames(loop, poses, targets)
    relative, s = mul(transpose(a[0]), b[0]), position_in(a, b)
    return RelativeMotion(a, b, relative, s, ZERO, ZERO, ZERO, ZERO, ZERO)


@helper
def look(
    loop: Loop, poses: Records[Pose], targets: Records[Target], moving: bool
) -> tuple[Sight, RelativeMotion]:
    """How a loop is seen and moves; at rest if its rates are not asked for."""
    if moving:
        motion = relative_motion(loop, poses, targets)
        sight = sight_of(loop, poses, targets, motion)
    else:
        motion = relative_place(loop, poses, targets)
        up, between = transpose(motion.a[0]), between_origins(poses, loop.body_a, loop.body_b)
        sight = Sight(up, motion.b[1], ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, between)
    return sight, motion


@helper
def sight_of(
    loop: Loop, poses: Records[Pose], targets: Records[Target], motion: RelativeMotion
) -> Sight:
    """How variations of a loop's relative motion are seen."""
    place, turning = motion.b[1], motion.turning
    pose_a, pose_b = poses[loop.body_a], poses[loop.body_b]
    twist = pose_twist(pose_b)
    acceleration = rigid_acceleration(twist, (vec(pose_b.aw), vec(pose_b.av)), place)
    spun = vec(pose_a.aw)
    if is_driven(loop):
        target, axis = targets[loop.target], apply(motion.a[0], vec(loop.turn))
        spun = add(spun, scale(target.acceleration, axis))
        spun = add(spun, cross(turning, scale(target.rate, axis)))
    return Sight(
        transpose(motion.a[0]),
        place,
        turning,
        spun,
        velocity_at(twist, place),
        acceleration,
        apply(motion.a[0], motion.angular),
        apply(motion.a[0], motion.angular_rate),
        between_origins(poses, loop.body_a, loop.body_b),
    )


@helper
def relative_variation(sight: Sight, S: Pair, U: Pair, C: Pair) -> tuple[Rates, Rates]:
    """Turn of b and displacement of its origin, with rates seen in a', by twists with rates."""
    place, velocity = sight.place, sight.velocity
    way = velocity_at(S, place)
    way_rate = add(velocity_at(U, place), cross(S[0], velocity))
    second = add(velocity_at(C, place), scale(2.0, cross(U[0], velocity)))
    second = add(second, cross(S[0], sight.acceleration))
    return seen_from((S[0], U[0], C[0]), sight), seen_from((way, way_rate, second), sight)


@helper
def rated_variation(sight: Sight, S: Pair, E: Pair) -> tuple[Rates, Rates]:
    """The same where nothing is displaced: by a velocity with an acceleration."""
    second = add(velocity_at(E, sight.place), scale(2.0, cross(S[0], sight.velocity)))
    return (
        rates_from(S[0], E[0], sight),
        rates_from(velocity_at(S, sight.place), second, sight),
    )


@helper
def rates_from(first: Vector, second: Vector, sight: Sight) -> Rates:
    """``seen_from`` of a vector that is zero."""
    return ZERO, first, sub(second, scale(2.0, cross(sight.turning, first)))


@helper
def seen_from(rates: Rates, sight: Sight) -> Rates:
    """A vector and its rates, as they are seen in axes that turn."""
    (x, first, second), turning = rates, sight.turning
    turned = cross(turning, x)
    here = sub(first, turned)
    again = sub(second, scale(2.0, cross(turning, first)))
    again = add(sub(again, cross(sight.spun, x)), cross(turning, turned))
    return x, here, again


@helper
def turned_rates(spin: Rates, sight: Sight) -> tuple[Vector, Vector]:
    """What the relative angular velocity and acceleration change by with a turn."""
    turn, rate, second = spin
    velocity = add(rate, cross(turn, sight.angular))
    acceleration = add(second, cross(rate, sight.angular))
    return velocity, add(acceleration, cross(turn, sight.angular_rate))


@helper
def varied_row_in_world(
    seen: Seen, turn: Vector, spun: tuple[Vector, Vector], way: Rates
) -> tuple[float, float]:
    """``varied_row`` of vectors in world axes."""
    up = seen.sight.up
    return varied_row(
        seen.loop,
        seen.motion,
        apply(up, turn),
        (apply(up, spun[0]), apply(up, spun[1])),
        (apply(up, way[0]), apply(up, way[1]), apply(up, way[2])),
    )


@helper
def varied_row(
    loop: Loop, motion: RelativeMotion, turn: Vector, spun: tuple[Vector, Vector], way: Rates
) -> tuple[float, float]:
    """Derivatives of a row whose direction is no constant of the frames, as of a rod's length.

    Such a row has the velocity m(x) w + f(x) u, of w and u the relative angular and linear
    velocity in axes of a', with m and f by ``variable_direction``.

    Args:
        loop: It has this row last.
        motion: Relative pose, velocities and accelerations.
        turn: How b turns along the way that is derived along.
        spun: By what angular velocity and acceleration change along it.
        way: By what relative place, linear velocity and acceleration change along it.

    Returns:
        Derivatives of the row's velocity and of its acceleration.
    """
    moment, force = variable_direction(loop, motion.relative, motion.s)
    bent, pushed = variable_direction_rate(loop, motion.relative, motion.s, turn, way[0])
    if loop.variable == PERPENDICULAR:
        z = transpose(motion.relative)[2]
        w, w_rate = motion.angular, motion.angular_rate
        rate = dot(bent, w) + dot(moment, spun[0])
        turning = cross(cross(w, z), Z)
        change = cross(add(cross(spun[0], z), cross(w, cross(turn, z))), Z)
        acceleration = dot(bent, w_rate) + dot(moment, spun[1])
        return rate, acceleration + dot(change, w) + dot(turning, spun[0])
    if loop.variable == WHOLE_TURN:
        # the axis turns by cot(angle / 2) / 2 times what is across it of the angular velocity
        w, w_rate = motion.angular, motion.angular_rate
        half = 0.5 * whole_turn(motion.relative)[0]
        rate = dot(bent, w) + dot(moment, spun[0])
        acceleration = dot(bent, w_rate) + dot(moment, spun[1])
        if half == 0.0:
            return rate, acceleration
        along, sine = dot(moment, w), math.sin(half)
        across = dot(w, spun[0]) - along * rate
        acceleration += across * math.cos(half) / sine
        square = dot(w, w) - along * along
        return rate, acceleration - 0.25 * square * dot(moment, turn) / sine**2
    u, u_rate, length = motion.linear, motion.linear_rate, norm(arm(loop, motion.s))
    rate = dot(pushed, u) + dot(force, way[1])
    across, along = arm(loop, u), dot(force, u)
    square = (dot(across, across) - along * along) / length
    acceleration = dot(pushed, u_rate) + dot(force, way[2])
    acceleration += 2.0 * (dot(across, way[1]) - along * rate) / length
    return rate, acceleration - square * dot(force, way[0]) / length


@helper
def reaction_on_b(loop: Loop, motion: RelativeMotion, lam: Array) -> Pair:
    """The wrench of multipliers on b, world axes, about the origin of b's tree."""
    R, (moment, force) = motion.a[0], combined(loop, lam)
    if loop.variable > 0:
        size = lam[loop.row + loop.rows - 1]
        direction = variable_direction(loop, motion.relative, motion.s)
        moment = add(moment, scale(size, direction[0]))
        force = add(force, scale(size, direction[1]))
    return wrench_from(motion.b[1], (apply(R, moment), apply(R, force)))


@helper
def changed_reaction(seen: Seen, S: Pair, lam: Array) -> Pair:
    """What the wrench on b changes by if b is displaced by a twist and a stays."""
    loop, sight, motion, wrench = seen
    way = velocity_at(S, sight.place)
    change, pushed = cross(way, wrench[1]), ZERO
    if loop.variable > 0:
        R, turn, moved = motion.a[0], apply(sight.up, S[0]), apply(sight.up, way)
        rate = variable_direction_rate(loop, motion.relative, motion.s, turn, moved)
        size = lam[loop.row + loop.rows - 1]
        pushed = apply(R, scale(size, rate[1]))
        change = add(change, add(apply(R, scale(size, rate[0])), cross(sight.place, pushed)))
    return change, pushed


class RowGradients(NamedTuple):
    """What ``pull_back_rows`` is asked for."""

    # (nc,) multipliers in the power of -Jᵀ lam along the rates of the gradients; empty if there are
    # none
    lam: Array
    of_rate: Array  # (nc,) gradient by J v + g_t, or empty
    of_acceleration: Array  # (nc,) by J v̇ + gamma, or empty


class LoopGradients(NamedTuple):
    """The same for one loop, with its constant rows taken together, in world axes."""

    of_rows: RowGradients  # of all
    rate: Pair  # sum of the rows times what is asked of their velocities
    second: Pair  # of their accelerations
    to_a: Pair  # what axes below a give together at the rates of the gradients,
    to_b: Pair  # and those below b; at the origin of b's tree, both
    across: Pair  # what those give a that are not below b, less those that are below b alone


@helper
def pull_back_rows(
    tree: VariedTree,
    rows: RowRecords,
    targets: Records[Target],
    vdot: Array,
    asked: RowGradients,
    g: TreeGradients,
) -> None:
    """``differentiate_rows`` transposed: adds to the gradients of g by positions and rates."""
    (loops, couplings, terms), axes = rows, tree.axes
    lam, of_rate, of_acceleration = asked
    for i in range(len(loops)):
        loop = loops[i]
        moving = len(of_rate) > 0 or len(of_acceleration) > 0
        sight, motion = look(loop, tree.poses, targets, moving)
        R, between, no_twist, wrench = motion.a[0], sight.between, (ZERO, ZERO), (ZERO, ZERO)
        rate, second = combined(loop, of_rate), combined(loop, of_acceleration)
        rate, second = turned_pair(R, rate), turned_pair(R, second)
        to_a, to_b, across = no_twist, no_twist, no_twist
        if len(lam) > 0:
            wrench = reaction_on_b(loop, motion, lam)
            to_a = twist_at(sum_at(g.sums, loop.axis_a), between)
            to_b = sum_at(g.sums, loop.axis_b)
            common = sum_at(g.sums, loop.common_axis)
            across = add_pair(sub_pair(to_a, twist_at(common, between)), sub_pair(common, to_b))
        seen = Seen(loop, sight, motion, wrench)
        of_loop = LoopGradients(asked, rate, second, to_a, to_b, across)
        for end in range(2):
            j = loop.axis_b if end == 1 else loop.axis_a
            while j != loop.common_axis:
                pull_back_loop(tree, seen, j, 1.0 if end == 1 else -1.0, of_loop, g)
                j = axes[j].below
    for i in range(len(couplings)):
        coupling = couplings[i]
        for k in range(coupling.first, coupling.first + coupling.count):
            term, j = terms[k], terms[k].axis
            x, v = axes[j].position, axes[j].rate
            bent = curvature(term, x)
            if len(of_rate) > 0:
                g.of_q[j] += of_rate[coupling.row] * bent * v
            if len(of_acceleration) > 0:
                size = of_acceleration[coupling.row]
                g.of_q[j] += size * (bent * vdot[j] + third(term, x) * v * v)
                g.of_v[j] += size * 2.0 * bent * v
            if len(lam) > 0:
                g.of_q[j] -= g.size * lam[coupling.row] * bent * g.w[j]


@helper
def turned_pair(R: Matrix, x: Pair) -> Pair:
    """Both vectors turned."""
    return apply(R, x[0]), apply(R, x[1])


@helper
def combined(loop: Loop, sizes: Array) -> Pair:
    """Sum of the constant rows of a loop times numbers (nc,), in a'; zero if there are none."""
    moment, force = ZERO, ZERO
    if len(sizes) > 0:
        for i in range(constant_rows(loop)):
            moment = add(moment, scale(sizes[loop.row + i], vec(loop.moment[i])))
            force = add(force, scale(sizes[loop.row + i], vec(loop.force[i])))
    return moment, force


@helper
def pull_back_loop(
    tree: VariedTree, seen: Seen, j: int, sign: float, of_loop: LoopGradients, g: TreeGradients
) -> None:
    """``differentiate_loop`` transposed; its constant rows are taken together."""
    loop, sight, _, wrench = seen
    bodies, _, axes, variations = tree
    asked, rate, second, to_a, to_b, across = of_loop
    own, variation, between = axis_twist(axes[j]), variations[j], sight.between
    if sign < 0.0:  # to the origin of b's tree
        own = twist_at(own, between)
    S = scale_pair(sign, own)
    if len(asked.of_rate) > 0 or len(asked.of_acceleration) > 0:
        U, C = added_velocity(variation), added_acceleration(variation)
        if sign < 0.0:
            U, C = twist_at(U, between), twist_at(C, between)
        spin, way = relative_variation(sight, S, scale_pair(sign, U), scale_pair(sign, C))
        by_place = turned_rates(spin, sight)
        last, varied = loop.row + loop.rows - 1, (0.0, 0.0)
        if loop.variable > 0:
            varied = varied_row_in_world(seen, spin[0], by_place, way)
        if len(asked.of_rate) > 0:
            g.of_q[j] += dot(rate[0], by_place[0]) + dot(rate[1], way[1])
            if loop.variable > 0:
                g.of_q[j] += asked.of_rate[last] * varied[0]
        if len(asked.of_acceleration) > 0:
            E = acceleration_by_rate(variation)
            if sign < 0.0:
                E = twist_at(E, between)
            spun, gone = rated_variation(sight, S, scale_pair(sign, E))
            by_rate = turned_rates(spun, sight)
            g.of_q[j] += dot(second[0], by_place[1]) + dot(second[1], way[2])
            g.of_v[j] += dot(second[0], by_rate[1]) + dot(second[1], gone[2])
            if loop.variable > 0:
                size = asked.of_acceleration[last]
                g.of_q[j] += size * varied[1]
                g.of_v[j] += size * varied_row_in_world(seen, ZERO, by_rate, gone)[1]
    if len(asked.lam) > 0:
        changed, turned = changed_reaction(seen, S, asked.lam), force_cross(own, wrench)
        below = sum_below(bodies, axes, g.sums, j)
        if sign > 0.0:
            found = power(turned, sub_pair(to_b, below))
        else:
            changed = add_pair(changed, turned)
            found = power(turned, sub_pair(twist_at(below, between), to_a))
        g.of_q[j] += g.size * (found + power(changed, across))
