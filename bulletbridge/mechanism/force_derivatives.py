"""Derivatives of forces on bodies: drags, force elements, wrenches; for derivatives of M v̇ + h.

What acts between two bodies depends on how b is placed and moves relative to a alone. Displacing
both changes nothing but the axes, so that it is enough to know what it does if b is displaced and a
stays: by the unit twist of an axis below b, or by its opposite for one below a.
"""

from typing import NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.mechanism.derivatives import Variation, VariedTree, added_velocity, is_carried
from bulletbridge.mechanism.force_elements import (
    OPPOSED,
    bend_of,
    coordinate,
    coordinates,
    frames_of,
    line_state,
    relative_twist,
    stiffness_at,
    strength,
    unit,
)
from bulletbridge.mechanism.kinematics import axis_twist, between_origins, pose_twist
from bulletbridge.mechanism.records import (
    BUSHING,
    DRAG,
    SPRING,
    STRETCH,
    TENDON,
    TORSION,
    WRENCH,
    Axis,
    Body,
    Effort,
    Pose,
)
from bulletbridge.mechanism.wrapping import bent_round, length_round
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import (
    ZERO,
    Pair,
    add,
    add_pair,
    apply,
    cross,
    dexp_inverse,
    dexp_inverse_drift,
    dot,
    force_cross,
    mat,
    motion_cross,
    mul,
    norm,
    power,
    rotation_vector,
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


@outlined
def differentiate_efforts(tree: VariedTree, efforts: Records[Effort], F: Array) -> None:
    """Add to F (nv, 2 nv or more) what forces on bodies change by positions, then by rates."""
    for i in range(len(efforts)):
        effort = efforts[i]
        if effort.kind == DRAG:
            differentiate_drag(tree.bodies, effort, tree.poses, tree.axes, tree.variations, F)
        elif effort.kind == WRENCH:
            differentiate_wrench(tree.bodies, effort, tree.poses, tree.axes, F)
        elif effort.kind == TENDON:
            differentiate_tendon(efforts, i, tree.poses, tree.axes, F)
        else:
            differentiate_element(tree, efforts, i, F)


@helper
def differentiate_drag(
    bodies: Records[Body],
    effort: Effort,
    poses: Records[Pose],
    axes: Records[Axis],
    variations: Records[Variation],
    F: Array,
) -> None:
    """Bullet's damping of one link."""
    nv, last = len(axes), bodies[effort.body].axis
    pose = poses[effort.body]
    drag = changed_drag(effort, pose, pose_twist(pose), True)
    j = last
    while j >= 0:
        S = axis_twist(axes[j])
        turned = force_cross(S, drag)
        by_place = changed_drag(effort, pose, added_velocity(variations[j]), False)
        by_rate = changed_drag(effort, pose, S, False)
        k = last
        while k >= 0:
            own = axis_twist(axes[k])
            F[k, j] += power(by_place, own)
            if not is_carried(bodies, axes, j, k):
                F[k, j] += power(turned, own)
            F[k, nv + j] += power(by_rate, own)
            k = axes[k].below
        j = axes[j].below


@helper
def changed_drag(effort: Effort, pose: Pose, more: Pair, whole: bool) -> Pair:
    """Wrench against a drag, by its whole twist, or what a little more of a twist adds to it."""
    R = mat(pose.R)
    centre = add(vec(pose.p), apply(R, vec(effort.com)))
    twist = pose_twist(pose)
    v, w = velocity_at(twist, centre), twist[0]
    fast, spin = norm(v), norm(w)
    u, turn = velocity_at(more, centre), more[0]
    force, inner = scale(1.0 + fast, u), scale(1.0 + spin, turn)
    if not whole and fast > 0.0:
        force = add(force, scale(dot(v, u) / fast, v))
    if not whole and spin > 0.0:
        inner = add(inner, scale(dot(w, turn) / spin, w))
    force = scale(effort.linear * effort.mass, force)
    moment = apply(R, apply(mat(effort.J), apply(transpose(R), inner)))
    return add(scale(effort.angular, moment), cross(centre, force)), force


@helper
def differentiate_wrench(
    bodies: Records[Body],
    effort: Effort,
    poses: Records[Pose],
    axes: Records[Axis],
    F: Array,
) -> None:
    """A wrench on b along axes of a."""
    last, other = bodies[effort.body_b].axis, bodies[effort.body_a].axis
    pose = poses[effort.body_b]
    turn = mul(mat(poses[effort.body_a].R), mat(effort.R_a))
    at = add(vec(pose.p), apply(mat(pose.R), vec(effort.p_b)))
    force, moment = apply(turn, vec(effort.wrench[3:])), apply(turn, vec(effort.wrench))
    total = (add(moment, cross(at, force)), force)
    for j in range(len(axes)):
        of_a, of_b = is_below(axes, j, other), is_below(axes, j, last)
        if not (of_a or of_b):
            continue
        S = axis_twist(axes[j])
        spin = S[0] if of_a else ZERO
        way = velocity_at(S, at) if of_b else ZERO
        bent = cross(spin, force)
        lever = add(cross(way, force), cross(at, bent))
        changed = (add(cross(spin, moment), lever), bent)
        k = last
        while k >= 0:
            own = axis_twist(axes[k])
            F[k, j] -= power(changed, own)
            if of_b and is_carried(bodies, axes, j, k):
                F[k, j] -= power(total, motion_cross(S, own))
            k = axes[k].below


@outlined
def take_changes(
    tree: VariedTree, efforts: Records[Effort], places: Ints, changes: Array, F: Array
) -> None:
    """Take from F (nv, m or more) what given numbers do on the rates, of wrenches or of rates.

    Args:
        tree: With poses.
        efforts: Wrenches.
        places: (n, 2) of each number: the effort and the place in its wrench, or -1 and the rate.
        changes: (n, m) of the numbers.
        F: Receives.
    """
    for n in range(len(places)):
        i, place = int(places[n, 0]), int(places[n, 1])
        if i < 0:
            for j in range(changes.shape[1]):
                F[place, j] -= changes[n, j]
            continue
        effort = efforts[i]
        pose = tree.poses[effort.body_b]
        at = add(vec(pose.p), apply(mat(pose.R), vec(effort.p_b)))
        turn = mul(mat(tree.poses[effort.body_a].R), mat(effort.R_a))
        along = apply(turn, unit(place % 3))
        wrench = (cross(at, along), along) if place >= 3 else (along, ZERO)
        k = tree.bodies[effort.body_b].axis
        while k >= 0:
            size = power(wrench, axis_twist(tree.axes[k]))
            for j in range(changes.shape[1]):
                F[k, j] -= size * changes[n, j]
            k = tree.axes[k].below


@helper
def differentiate_tendon(
    efforts: Records[Effort], i: int, poses: Records[Pose], axes: Records[Axis], F: Array
) -> None:
    """A tendon, whose forces on the rates are linear in positions and rates where it is taut."""
    nv, effort, stiffness = len(axes), efforts[i], stiffness_at(efforts, i, 0, poses, axes)
    for n in range(effort.terms):
        k = effort.term_axes[n]
        for m in range(effort.terms):
            j, weight = effort.term_axes[m], effort.factors[n] * effort.factors[m]
            F[k, j] += weight * stiffness
            F[k, nv + j] += weight * effort.damping[0]


@helper
def is_below(axes: Records[Axis], j: int, last: int) -> bool:
    """Whether axis j is on the way from the world to axis ``last``, itself included."""
    k = last
    while k > j:
        k = axes[k].below
    return k == j


class WrenchChange(NamedTuple):
    """What displacing an axis changes a wrench by."""

    j: int  # the axis, or the column of another number
    changed: Pair  # what the wrench changes by
    turned: Pair  # what it would change by if it went along with the axis


@helper
def add_between(
    bodies: Records[Body],
    axes: Records[Axis],
    last: int,
    common: int,
    same: bool,
    sign: float,
    change: WrenchChange,
    F: Array,
) -> None:
    """Take from F what a wrench does along the axes from ``last`` down to the common one, by j.

    Args:
        bodies: Of the tree.
        axes: Of the tree.
        last: The first of the axes.
        common: The one that is none of them any more.
        same: Whether the axis that is displaced is one of them.
        sign: Of the wrench on their end.
        change: Of the wrench.
        F: (nv, .), its column j.
    """
    k, (j, changed, turned) = last, change
    while k != common:
        own = axis_twist(axes[k])
        F[k, j] -= sign * power(changed, own)
        if same and is_carried(bodies, axes, j, k):
            F[k, j] += sign * power(turned, own)
        k = axes[k].below


@helper
def differentiate_element(tree: VariedTree, efforts: Records[Effort], i: int, F: Array) -> None:
    """A spring, torsion spring or bushing, or what acts along a free motion."""
    poses, axes, first = tree.poses, tree.axes, efforts[i]
    for n in range(coordinates(first)):
        x, wrench = coordinate(first, poses, n)
        twist = relative_twist(first, poses)
        rate = power(wrench, twist)
        if first.stretches > 0:
            x, rate = line_state(efforts, i, poses)
        size = strength(first, n, x, rate)
        stiffness = stiffness_at(efforts, i, n, poses, axes)
        if size == 0.0 and stiffness == 0.0 and first.damping[n] == 0.0:
            continue
        for k in range(i, i + 1 + first.stretches):
            effort = efforts[k]
            if k > i:
                wrench, twist = coordinate(effort, poses, 0)[1], relative_twist(effort, poses)
            acting = Acting(n, size, stiffness, first.damping[n], wrench, twist)
            for end in range(2):
                sign = 1.0 if end == 1 else -1.0
                j = effort.axis_b if end == 1 else effort.axis_a
                while j != effort.common_axis:
                    more, less = differentiate_along(tree, effort, acting, j, sign, F)
                    for other in range(i, i + 1 + first.stretches):
                        if other != k:
                            pull_stretch(tree, efforts[other], more, less, j, F)
                    j = axes[j].below
            if effort.around > 0:
                differentiate_by_third(tree, efforts, i, k, acting, F)


@helper
def pull_stretch(
    tree: VariedTree, effort: Effort, more: float, less: float, j: int, F: Array
) -> None:
    """What the change of a line's force by one of its stretches does at another one.

    ``more`` is that by axis j, which moves the former, and ``less`` that by the axis's rate.
    """
    wrench = coordinate(effort, tree.poses, 0)[1]
    put_between(tree, effort, scale_pair(more, wrench), j, F)
    put_between(tree, effort, scale_pair(less, wrench), len(tree.axes) + j, F)


@outlined
def put_between(tree: VariedTree, effort: Effort, changed: Pair, column: int, F: Array) -> None:
    """What a wrench on b and its opposite on a change by, for a column of F."""
    poses, common = tree.poses, effort.common_axis
    there = wrench_from(between_origins(poses, effort.body_a, effort.body_b), changed)
    for end in range(1, -1, -1):
        side, last = (1.0, effort.axis_b) if end == 1 else (-1.0, effort.axis_a)
        change = WrenchChange(column, changed if end == 1 else there, (ZERO, ZERO))
        add_between(tree.bodies, tree.axes, last, common, False, side, change, F)


class Acting(NamedTuple):
    """What an element does along one of its coordinates."""

    n: int  # number of the coordinate
    size: float  # force along it
    stiffness: float  # along it
    damping: float  # along it
    wrench: Pair  # on b, of a unit force
    twist: Pair  # of b relative to a


@helper
def differentiate_along(
    tree: VariedTree, effort: Effort, acting: Acting, j: int, sign: float, F: Array
) -> tuple[float, float]:
    """Coordinate n of an element by axis j, which moves b (sign 1) or a (-1).

    Returns:
        What its force changes by with the axis, and with its rate.
    """
    bodies, poses, axes, variations = tree
    n, size, stiffness, damping, wrench, twist = acting
    nv, S, U = len(axes), axis_twist(axes[j]), added_velocity(variations[j])
    between = between_origins(poses, effort.body_a, effort.body_b)
    if sign < 0.0:  # to the origin of b's tree
        S, U = twist_at(S, between), twist_at(U, between)
    way = scale_pair(sign, S)
    if effort.around > 0:
        carried = is_below(axes, j, effort.axis_c)
        third = way if carried == (sign > 0.0) else (ZERO, ZERO)
        changed = turned_wrench_round(effort, poses, way, third)
    else:
        changed = turned_wrench(effort, poses, n, way)
    velocity = motion_cross(way, pose_twist(poses[effort.body_b]))
    velocity = add_pair(velocity, scale_pair(sign, U))
    rate = power(changed, twist) + power(wrench, velocity)
    more = -stiffness * power(wrench, way) - damping * rate
    less = -damping * power(wrench, way)
    total = scale_pair(size, wrench)
    by_place = add_pair(scale_pair(size, changed), scale_pair(more, wrench))
    turned = force_cross(S, total)
    if sign < 0.0:
        by_place = add_pair(by_place, turned)
    by_rate = scale_pair(less, wrench)
    for end in range(1, -1, -1):
        side = 1.0 if end == 1 else -1.0
        last = effort.axis_b if end == 1 else effort.axis_a
        if end == 0:
            by_place, turned = wrench_from(between, by_place), wrench_from(between, turned)
            by_rate = wrench_from(between, by_rate)
        same, common = side == sign, effort.common_axis
        of_q, of_v = WrenchChange(j, by_place, turned), WrenchChange(nv + j, by_rate, turned)
        add_between(bodies, axes, last, common, same, side, of_q, F)
        add_between(bodies, axes, last, common, False, side, of_v, F)
    return more, less


@helper
def turned_wrench(effort: Effort, poses: Records[Pose], n: int, way: Pair) -> Pair:
    """What the wrench of coordinate n changes by if b is displaced by a twist and a stays."""
    (R_a, a), (R_b, b) = frames_of(effort, poses)
    moved = velocity_at(way, b)
    s = sub(b, a)
    if effort.kind == SPRING or effort.kind == STRETCH:
        length = norm(s)
        if length == 0.0:
            return ZERO, ZERO
        along = scale(1.0 / length, s)
        bent = scale(effort.share / length, sub(moved, scale(dot(along, moved), along)))
        return add(cross(moved, scale(effort.share, along)), cross(b, bent)), bent
    R = mul(transpose(R_a), R_b)
    turn = apply(transpose(R_a), way[0])
    if effort.kind == TORSION:
        column = transpose(R)[2]
        part, over = cross(turn, column), 1.0 / max(1.0 + column[2], OPPOSED)
        x = over * (part[0] - column[0] * over * part[2])
        y = over * (part[1] - column[1] * over * part[2])
        return apply(R_a, (x, y, 0.0)), ZERO
    if effort.kind == BUSHING and n < 3:
        turns = rotation_vector(R)
        rate = dexp_inverse(turns, turn, 1.0)
        return apply(R_a, dexp_inverse_drift(turns, rate, unit(n), -1.0)), ZERO
    along = transpose(R_a)[n - 3 if effort.kind == BUSHING else 2]
    return cross(moved, along), ZERO


@outlined
def turned_wrench_round(effort: Effort, poses: Records[Pose], way: Pair, third: Pair) -> Pair:
    """``turned_wrench`` at a body that a line goes round, whose third point is displaced, too.

    Both displacements are twists relative to a, from the origin of b's tree.
    """
    bend = bend_of(effort, poses)
    back = transpose(bend.R)
    _, g0, g1 = length_round(effort, bend.x0, bend.x1)
    if effort.onto > 0:  # b is the body
        way0 = scale(-1.0, velocity_at(way, bend.first))
        way1 = velocity_at(sub_pair(third, way), bend.last)
        bent = bent_round(effort, bend.x0, bend.x1, apply(back, way0), apply(back, way1))[0]
        along = apply(bend.R, scale(-effort.share, g0))
        changed = add(apply(bend.R, scale(-effort.share, bent)), cross(way[0], along))
        return cross(bend.first, changed), changed
    way0, way1 = velocity_at(third, bend.first), velocity_at(way, bend.last)
    bent = bent_round(effort, bend.x0, bend.x1, apply(back, way0), apply(back, way1))[1]
    along = apply(bend.R, scale(effort.share, g1))
    changed = apply(bend.R, scale(effort.share, bent))
    return add(cross(way1, along), cross(bend.last, changed)), changed


@outlined
def differentiate_by_third(
    tree: VariedTree, efforts: Records[Effort], i: int, k: int, acting: Acting, F: Array
) -> None:
    """Stretch k of the line of element i by axes that move its third point alone, or not alone it.

    Those that move a or b alone are those of ``differentiate_along``.
    """
    poses, axes, effort = tree.poses, tree.axes, efforts[k]
    last_a, last_b = effort.axis_a, effort.axis_b
    for start in range(2):
        j = effort.axis_c if start == 0 else effort.common_axis
        while j >= 0:
            of_a, of_b = is_below(axes, j, last_a), is_below(axes, j, last_b)
            of_c = is_below(axes, j, effort.axis_c)
            if of_a == of_b and of_c != of_a:
                S = axis_twist(axes[j])
                # from the origin of the tree of what it moves, to that of b's
                mover = effort.body_c if of_c else effort.body_b
                S = twist_at(S, between_origins(poses, mover, effort.body_b))
                third = S if of_c else scale_pair(-1.0, S)
                changed = turned_wrench_round(effort, poses, (ZERO, ZERO), third)
                more = -acting.damping * power(changed, acting.twist)
                put_between(tree, effort, scale_pair(acting.size, changed), j, F)
                for other in range(i, i + 1 + efforts[i].stretches):
                    pull_stretch(tree, efforts[other], more, 0.0, j, F)
            j = axes[j].below


@helper
def take_ahead(
    efforts: Records[Effort], poses: Records[Pose], axes: Records[Axis], spring_dt: float
) -> None:
    """Have springs of elements act where the rates lead in ``spring_dt`` [s]: as dampers do."""
    for i in range(len(efforts)):
        if efforts[i].kind != DRAG and efforts[i].kind != WRENCH:
            for n in range(coordinates(efforts[i])):
                stiffness = stiffness_at(efforts, i, n, poses, axes)
                efforts[i].damping[n] += spring_dt * stiffness


@helper
def take_as_dampers(
    efforts: Records[Effort],
    poses: Records[Pose],
    axes: Records[Axis],
    damper_dt: float,
    spring_dt: float,
) -> None:
    """Have elements exert dt D + dt² K times the rates, and nothing else; the rest does nothing."""
    for i in range(len(efforts)):
        effort = efforts[i]
        effort.force = 0.0
        if effort.kind == DRAG or effort.kind == WRENCH:
            continue
        for n in range(coordinates(effort)):
            stiffness = stiffness_at(efforts, i, n, poses, axes)
            effort.damping[n] = damper_dt * (effort.damping[n] + spring_dt * stiffness)
            effort.stiffness[n] = 0.0


@outlined
def differentiate_elements(tree: VariedTree, efforts: Records[Effort], F: Array) -> None:
    """``differentiate_efforts`` of springs, torsion springs, bushings and tendons alone."""
    for i in range(len(efforts)):
        if efforts[i].kind == TENDON:
            differentiate_tendon(efforts, i, tree.poses, tree.axes, F)
        elif efforts[i].kind != DRAG and efforts[i].kind != WRENCH:
            differentiate_element(tree, efforts, i, F)
