"""Momentum of a group of bodies that nothing outside holds, and keeping it."""

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.records import Arrays
from bulletbridge.mechanism.inertias import carried_inertia
from bulletbridge.mechanism.kinematics import axis_twist, world_position
from bulletbridge.mechanism.records import FREE
from bulletbridge.numerics.records import Array, Matrix, Vector
from bulletbridge.numerics.spatial import (
    ZERO,
    Pair,
    add,
    add_inertia,
    add_mat,
    add_pair,
    cross,
    diagonal,
    dot,
    inertia_at,
    inertia_from,
    momentum,
    scale,
    scale_pair,
    sub,
    vec,
    velocity_at,
    wrench_from,
)


@outlined
def total_momentum(a: Arrays, v: Array) -> Pair:
    """Angular about the world origin and linear, at poses whose composite inertias are known."""
    total = ZERO, ZERO
    for k in range(len(v)):
        pose = a.poses[a.axes[k].body]
        unit = momentum(carried_inertia(pose), axis_twist(a.axes[k]))
        total = add_pair(total, scale_pair(v[k], wrench_from(vec(pose.origin), unit)))
    return total


@outlined
def give_back(a: Arrays, before: Pair, v: Array) -> None:
    """Turn and move all free bodies as one, so that the momentum is what it was before.

    A correction moves bodies that keep their velocities, which changes the angular momentum. What
    gives it back with the least energy is the motion of the whole as one body, which no loop among
    the bodies forbids.
    """
    whole, here = (0.0, ZERO, diagonal(0.0)), ZERO
    for i in range(1, len(a.bodies)):
        if a.bodies[i].joint == FREE:
            pose = a.poses[i]
            if whole[0] == 0.0:
                here = vec(pose.origin)  # the point that all is about
            own = inertia_from(sub(vec(pose.origin), here), carried_inertia(pose))
            whole = add_inertia(whole, own)
    lost = add_pair(before, scale_pair(-1.0, total_momentum(a, v)))
    lost = wrench_from(scale(-1.0, here), lost)
    mass = whole[0]
    centre = scale(1.0 / mass, whole[1])
    about = add_mat(whole[2], inertia_at(centre, -mass, diagonal(0.0))[2])
    turn = solve_symmetric(about, sub(lost[0], cross(centre, lost[1])))
    twist = turn, add(scale(1.0 / mass, lost[1]), cross(centre, turn))
    for i in range(1, len(a.bodies)):
        body = a.bodies[i]
        if body.joint == FREE:
            way = velocity_at(twist, sub(world_position(a.poses[i]), here))
            for k in range(3):
                v[body.v + k] += turn[k]
                v[body.v + 3 + k] += way[k]


@helper
def solve_symmetric(A: Matrix, b: Vector) -> Vector:
    """A⁻¹ b for a symmetric A (3, 3)."""
    first, second, third = A
    x, y, z = cross(second, third), cross(third, first), cross(first, second)
    inverse = 1.0 / dot(first, x)
    return inverse * dot(x, b), inverse * dot(y, b), inverse * dot(z, b)
