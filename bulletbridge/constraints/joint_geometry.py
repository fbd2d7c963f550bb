"""Axes and free motions of loop joints, checked."""

import numpy as np

from bulletbridge.constraints.joint_models import (
    free_motions,
    transmitted_wrenches,
    turn_axis,
)
from bulletbridge.constraints.joints import (
    ROUND,
    Distance,
    JointModel,
    LoopJoint,
    Triple,
)
from bulletbridge.constraints.records import (
    ON_CYLINDER,
    ON_SPHERE,
    PERPENDICULAR,
)
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import frame_with_z, triple
from bulletbridge.numerics.records import Array

Z_AXIS = (0.0, 0.0, 1.0)


VARIABLE = {
    JointModel.UNIVERSAL: PERPENDICULAR,
    JointModel.POINT_ON_SPHERE: ON_SPHERE,
    JointModel.POINT_ON_CYLINDER: ON_CYLINDER,
}
"""Models whose last row depends on the configuration."""


def joint_axis(loop: LoopJoint | Distance, end: str) -> Triple:
    """Axis of a loop in its frame a or b, which is z of that frame as encoded."""
    if isinstance(loop, Distance):
        return Z_AXIS
    if loop.model is JointModel.GENERAL:
        return triple(turn_axis(_general(loop)))
    if end == "b" and loop.axis_b is not None:
        return loop.axis_b
    if end == "b" and loop.model is JointModel.UNIVERSAL:
        raise ModelError(f"loop '{loop.name}' is universal: give its second axis as axis_b")
    return loop.axis


def axis_in_frame(loop: LoopJoint | Distance, axis: Triple | None) -> Array:
    """Turning axis of the prescribed motion in frame a as encoded, whose z is the joint's axis."""
    if axis is None or isinstance(loop, Distance):
        return np.array(Z_AXIS)
    return frame_with_z(joint_axis(loop, "a")).T @ (np.asarray(axis, float) / np.linalg.norm(axis))


def free_twists(loop: LoopJoint) -> Array:
    """Free motions (nf, 6) of a loop joint in its encoded frame a, z along its axis.

    Raises:
        ModelError: The numbers make no joint.
    """
    if loop.model is JointModel.GENERAL:
        free = _general(loop)
        Z = frame_with_z(joint_axis(loop, "a"))
        return np.hstack([free[:, :3] @ Z, free[:, 3:] @ Z])
    if loop.free:
        raise ModelError(f"loop '{loop.name}' is {loop.model.value}: only general ones take free")
    advance = loop.pitch / (2 * np.pi)
    if loop.model is JointModel.SCREW and not (np.isfinite(advance) and advance != 0.0):
        raise ModelError(
            f"screw '{loop.name}' has pitch {loop.pitch} m per turn; give one that is not zero, "
            f"or use a revolute joint"
        )
    _check_radius(loop)
    return free_motions(loop.model, advance, loop.radius)


def _check_radius(loop: LoopJoint) -> None:
    """Refuse a radius where there is none, or one that is impossible."""
    if loop.model not in ROUND:
        if loop.radius != 0.0:
            raise ModelError(f"loop '{loop.name}' is {loop.model.value}: it has no radius")
        return
    least = np.nextafter(0.0, 1.0) if loop.model in VARIABLE else 0.0
    if not least <= loop.radius < np.inf:
        raise ModelError(
            f"loop '{loop.name}' is {loop.model.value} and has radius {loop.radius} m; give a "
            f"positive one"
        )


def _general(loop: LoopJoint) -> Array:
    """Free motions (nf, 6) of a general joint as given, checked."""
    whole = all(len(twist) == 6 for twist in loop.free)
    free = np.array(loop.free if whole else [], float).reshape(-1, 6)
    sizes = np.linalg.norm(free, axis=1)
    if not whole or not np.all(np.isfinite(free)) or not np.all(sizes > 0.0):
        raise ModelError(f"loop '{loop.name}' has free twists {loop.free}: use six numbers each")
    if len(free) >= 6 or np.linalg.matrix_rank(free / sizes[:, None], 1e-9) < len(free):
        raise ModelError(
            f"the {len(free)} free twists of loop '{loop.name}' depend on each other, or leave "
            f"nothing to constrain; give at most five independent ones"
        )
    turning = np.linalg.matrix_rank(free[:, :3], 1e-9 * sizes.max()) if len(free) else 0
    if turning >= 2 and np.abs(transmitted_wrenches(free)[:, :3]).max() > 1e-12:
        raise ModelError(
            f"the free twists of loop '{loop.name}' turn about {turning} axes that ways or the "
            f"third turn are tied to; such a joint rolls and closes nowhere: use one axis or all "
            f"three, or universal"
        )
    return free
