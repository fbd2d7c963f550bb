"""Momentum of a group of bodies that nothing outside holds, and keeping it."""

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.constraints.records import Loop
from bulletbridge.engine.dense import composite_inertias_apart, kinematics_apart
from bulletbridge.engine.plausible import kinetic_energy_of_bodies
from bulletbridge.engine.records import MEAN, Arrays
from bulletbridge.mechanism.inertias import carried_inertia
from bulletbridge.mechanism.kinematics import axis_twist, displace, world_position
from bulletbridge.mechanism.records import FREE
from bulletbridge.numerics.records import Array, Matrix, Records, Vector
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
def momentum_at(a: Arrays, q: Array, v: Array) -> Pair:
    """``total_momentum`` at a configuration q, where poses are left."""
    kinematics_apart(a, q)
    composite_inertias_apart(a)
    return total_momentum(a, v)


@outlined
def keep_momentum(a: Arrays, q: Array, v: Array, moving: Array, there: Array) -> float:
    """Have bodies that nothing holds keep their momentum where they are displaced; energy gained.

    Args:
        a: Arrays; poses are lost.
        q: (nq,) from here
        v: (nv,) rates, which change as those of the whole as one body.
        moving: (nv,) by this in a step.
        there: (nq,) scratch.

    Returns:
        What that adds to the kinetic energy [J], as of a skater who draws in the arms.
    """
    before = momentum_at(a, q, v)
    energy = kinetic_energy_of_bodies(a, v)
    displace(a.bodies, q, moving, a.control.dt, there)
    momentum_at(a, there, v)
    give_back(a, before, v)
    return kinetic_energy_of_bodies(a, v) - energy


@outlined
def is_unheld(a: Arrays, others: Records[Loop]) -> bool:
    """Whether all bodies hang together by loops, those of a and others, and from nothing else."""
    label, trees = a.vectors[MEAN], 0  # of each tree, zero of the first and what hangs together
    for i in range(1, len(a.bodies)):
        body = a.bodies[i]
        if body.parent == 0:
            if body.joint != FREE:
                return False
            label[body.v] = min(trees, 1)
            trees += 1
    if a.control.user_rows > 0 or len(a.beams) > 0:
        return False
    for _ in range(trees):
        if not (join(a, a.loops, label) and join(a, others, label)):
            return False
    for i in range(1, len(a.bodies)):
        if a.bodies[i].parent == 0 and label[a.bodies[i].v] > 0.0:
            return False
    return True


@outlined
def join(a: Arrays, loops: Records[Loop], label: Array) -> bool:
    """Give trees that loops join the lower label of the two; whether none joins the world."""
    for n in range(len(loops)):
        one, other = loops[n].body_a, loops[n].body_b
        if one == 0 or other == 0:
            return False
        while a.bodies[one].parent > 0:
            one = a.bodies[one].parent
        while a.bodies[other].parent > 0:
            other = a.bodies[other].parent
        first, second = a.bodies[one].v, a.bodies[other].v
        label[first] = label[second] = min(label[first], label[second])
    return True


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
