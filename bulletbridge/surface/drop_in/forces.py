"""Forces of constraints as getConstraintState gives them: Bullet's and the filter's together."""

import numpy as np
import pybullet

from bulletbridge.constraints.loop import Coupling, LoopJoint
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.filter import Impulses
from bulletbridge.surface.drop_in.loops import HINGE_SPAN, Loop

State = tuple[float, ...]


def total(
    loop: Loop, model: LoopJoint | Coupling, native: State, impulses: Impulses, corrected: bool
) -> State:
    """Bullet's constraint state with what the filter added, in Bullet's axes and signs.

    Point-to-point: force on the child in world axes; fixed: force on the parent in world axes and
    moment in those of the constraint's frame. Of prismatic constraints and gears Bullet's own.

    Args:
        loop: The constraint.
        model: The same as ours; the parent is its frame b.
        native: ``getConstraintState`` [N, N m].
        impulses: Of the filter's last pass.
        corrected: Whether what moved the bodies counts too, not only what changed their velocity.
    """
    if loop.kind not in (pybullet.JOINT_POINT2POINT, pybullet.JOINT_FIXED):
        return native
    wrench = impulses.wrench(loop.name, corrected)
    assert wrench is not None and isinstance(model, LoopJoint)
    force, moment = wrench.force / impulses.dt, wrench.moment / impulses.dt
    if loop.kind == pybullet.JOINT_POINT2POINT:
        return tuple((np.array(native) - force).tolist())
    R = wrench.R  # of the parent's frame
    return tuple((np.array(native) + np.concatenate([force, R.T @ moment])).tolist())


def exceeds(
    limit: float,
    loop: Loop,
    model: LoopJoint | Coupling,
    native: State,
    impulses: Impulses,
    corrected: bool,
) -> bool:
    """Whether a force or moment along an axis is above a limit in the sense of Bullet's maxForce.

    Where Bullet does not tell its axes, its share and ours are taken to pull the same way.
    """
    velocity, position = np.linalg.norm(impulses.of(loop.name), axis=1) / impulses.dt
    most = max(map(abs, native)) + float(velocity + position if corrected else velocity)
    if most <= limit:  # cheap, and nearly always so
        return False
    known = loop.kind in (pybullet.JOINT_POINT2POINT, pybullet.JOINT_FIXED)
    return not known or max(map(abs, total(loop, model, native, impulses, corrected))) > limit


def on_parent(
    loop: Loop, native: State, twin: State, impulses: Impulses | None, dt: float
) -> tuple[Array, Array] | None:
    """Force (3,) [N] and moment (3,) [N m] on the parent at its pivot, world axes.

    None of prismatic constraints, of which Bullet does not tell the axes, and of gears.
    """
    wrench = impulses.wrench(loop.name, corrected=False) if impulses else None
    if wrench is None or loop.kind in (pybullet.JOINT_PRISMATIC, pybullet.JOINT_GEAR):
        return None
    force, moment = wrench.force / dt, wrench.moment / dt
    if loop.kind == pybullet.JOINT_FIXED:
        return force + native[:3], moment + wrench.R @ native[3:]
    if loop.kind == pybullet.JOINT_PLANAR:
        return force, moment
    force = force - native
    if loop.kind == pybullet.JOINT_REVOLUTE:
        arm = HINGE_SPAN * wrench.R[:, 2]
        return force - twin, moment - np.cross(arm, twin)
    return force, moment
