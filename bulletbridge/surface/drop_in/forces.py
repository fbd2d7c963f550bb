"""Forces of constraints as getConstraintState gives them: Bullet's and the filter's together."""

import numpy as np
import pybullet

from bulletbridge.constraints.loop import Coupling, LoopJoint
from bulletbridge.simulation.filter import Impulses
from bulletbridge.surface.drop_in.loops import Loop

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


def largest(
    loop: Loop, model: LoopJoint | Coupling, native: State, impulses: Impulses, corrected: bool
) -> float:
    """Largest force or moment along an axis, in the sense of Bullet's maxForce [N or N m].

    Where Bullet does not tell its axes, its share and ours are taken to pull the same way.
    """
    if loop.kind in (pybullet.JOINT_POINT2POINT, pybullet.JOINT_FIXED):
        return max(map(abs, total(loop, model, native, impulses, corrected)))
    velocity, position = impulses.of(loop.name) / impulses.dt
    ours = np.abs(velocity).max() + (np.abs(position).max() if corrected else 0.0)
    return max(map(abs, native)) + float(ours)
