"""Forces of constraints: Bullet's and the filter's together."""

from typing import NamedTuple

import numpy as np
import pybullet

from bulletbridge.bullet.constraints import HINGE_SPAN, CreatedConstraint
from bulletbridge.inequalities.filter import Impulses
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.numerics.records import Array

State = tuple[float, ...]
POINTS = (pybullet.JOINT_POINT2POINT, pybullet.JOINT_SPHERICAL)
PULLED = (*POINTS, pybullet.JOINT_FIXED, pybullet.JOINT_REVOLUTE)
"""Kinds that Bullet's step closes as we do; its sliders act at pivots that slide apart."""
SLIDES_ALONG = 1e-7
"""Length of a product of unit vectors from which on Bullet takes it for an axis."""


class Native(NamedTuple):
    """What Bullet says of a constraint: ``getConstraintState``, also of its second half."""

    state: State
    twin: State = ()


class Pull(NamedTuple):
    """What acts on the parent at its pivot; of a slider from a parent that stands, at the child's.

    Bullet's sliders act on each body at its own pivot, with one moment for both: that of the body
    that moves.
    """

    force: Array  # (3,) [N], world axes
    moment: Array  # (3,) [N m], world axes
    R: Array  # (3, 3) of the constraint's frame, z along its axis


def on_parent(
    loop: CreatedConstraint, native: Native, impulses: Impulses, corrected: bool
) -> Pull | None:
    """Force and moment on the parent; None of gears.

    Args:
        loop: The constraint.
        native: Of Bullet's step: of points the force on the child in world axes, of fixed ones the
            force on the parent in world axes and the moment in those of the constraint's frame, of
            prismatic ones see ``slider_axes``.
        impulses: Of the filter after it.
        corrected: Whether what moved the bodies counts too, not only what changed their velocity.
    """
    wrench = impulses.wrench(loop.name, corrected, loop.kind == pybullet.JOINT_PRISMATIC)
    if wrench is None:
        return None
    force, moment, R = wrench.force / impulses.dt, wrench.moment / impulses.dt, wrench.R
    if loop.kind == pybullet.JOINT_FIXED:
        return Pull(force + native.state[:3], moment + R @ native.state[3:], R)
    if loop.kind == pybullet.JOINT_PRISMATIC:
        across, frame = slider_axes(loop, R)
        state = np.asarray(native.state)
        return Pull(force + across.T @ state[:2], moment + frame @ np.roll(state[2:], -1), R)
    if loop.kind != pybullet.JOINT_PLANAR:  # whose point carries nothing
        force = force - native.state
    if loop.kind == pybullet.JOINT_REVOLUTE:
        force, moment = force - native.twin, moment - np.cross(HINGE_SPAN * R[:, 2], native.twin)
    return Pull(force, moment, R)


def constraint_state(
    loop: CreatedConstraint, native: Native, impulses: Impulses, corrected: bool = False
) -> State:
    """What ``getConstraintState`` gives with the filter's share, in Bullet's axes and signs.

    Revolute and planar constraints, which Bullet does not have, are told as fixed ones are.
    """
    pull = on_parent(loop, native, impulses, corrected)
    if pull is None:
        return native.state
    return state_of_pull(loop, pull)


def state_of_pull(loop: CreatedConstraint, pull: Pull) -> State:
    """What acts on the parent as ``getConstraintState`` tells it."""
    if loop.kind in POINTS:
        return tuple((-pull.force).tolist())
    if loop.kind == pybullet.JOINT_PRISMATIC:
        across, frame = slider_axes(loop, pull.R)
        moment = np.roll(frame.T @ pull.moment, 1)
        return (*(across @ pull.force).tolist(), *moment.tolist())
    return (*pull.force.tolist(), *(pull.R.T @ pull.moment).tolist())


def slider_axes(loop: CreatedConstraint, R: Array) -> tuple[Array, Array]:
    """Directions (2, 3) of a prismatic constraint's forces, and the frame (3, 3) of its moments.

    Bullet's rows: two forces across the axis, the first at right angles to the first axis of the
    frame that is not along it; then the moments about z, x and y of that frame.
    """
    frame: Array = R @ frame_with_z(loop.axis_in_frame).T
    axis: Array = R[:, 2]
    across = np.cross(frame.T, axis)
    sizes = np.linalg.norm(across, axis=1)
    k = int(np.argmax(sizes > SLIDES_ALONG))
    first: Array = across[k] / sizes[k]
    return np.array([first, np.cross(axis, first)]), frame


def exceeds(
    limit: float, loop: CreatedConstraint, native: Native, impulses: Impulses, corrected: bool
) -> bool:
    """Whether a force or moment along an axis is above a limit in the sense of Bullet's maxForce.

    Where Bullet does not tell its axes, its share and ours are taken to pull the same way.
    """
    velocity, position = impulses.sizes(loop.name)
    ours = (velocity + position if corrected else velocity) / impulses.dt
    if max(map(abs, (*native.state, *native.twin))) + ours <= limit:
        return False  # cheap, and nearly always so
    if loop.kind == pybullet.JOINT_GEAR:
        return True
    return max(map(abs, constraint_state(loop, native, impulses, corrected))) > limit
