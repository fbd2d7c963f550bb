"""Inertias of bodies as poses hold them, and accelerations of their points."""

from bulletbridge.compilation.jit import helper
from bulletbridge.mechanism.records import Pose
from bulletbridge.numerics.spatial import (
    Inertia,
    Pair,
    Vector,
    add,
    cross,
    mat,
    put,
    put_mat,
    vec,
    velocity_at,
)


@helper
def own_inertia(pose: Pose) -> Inertia:
    """Inertia of one body about its tree's origin."""
    return pose.m, vec(pose.mc), mat(pose.J)


@helper
def carried_inertia(pose: Pose) -> Inertia:
    """Inertia of a body with all it carries about its tree's origin."""
    return pose.carried_m, vec(pose.carried_mc), mat(pose.carried_J)


@helper
def put_own_inertia(pose: Pose, inertia: Inertia) -> None:
    """Store ``own_inertia``."""
    pose.m = inertia[0]
    put(pose.mc, inertia[1])
    put_mat(pose.J, inertia[2])


@helper
def put_carried_inertia(pose: Pose, inertia: Inertia) -> None:
    """Store ``carried_inertia``."""
    pose.carried_m = inertia[0]
    put(pose.carried_mc, inertia[1])
    put_mat(pose.carried_J, inertia[2])


@helper
def rigid_acceleration(twist: Pair, acceleration: Pair, point: Vector) -> Vector:
    """Acceleration of the material point at ``point``, from spatial twist and acceleration."""
    spatial = velocity_at(acceleration, point)
    return add(spatial, cross(twist[0], velocity_at(twist, point)))
