"""Motion of a loop joint along what it leaves free: position, rate, Jacobian.

Source: the dual bases of the general joint model, Bonaventura 2002.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.joint_geometry import VARIABLE, free_twists, joint_axis
from bulletbridge.constraints.joint_models import HELD_FORCES, dual_bases
from bulletbridge.constraints.joints import LoopJoint
from bulletbridge.constraints.user import Kinematics
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.numerics.records import Array


class LoopAxisMotion(NamedTuple):
    """The free motions of a loop joint at a state, in the units of its twists.

    Attributes:
        position: (nf,) of b in a: rotation vector and way along the free twists, zero where the
            frames coincide. A turn is counted from -pi to pi.
        rate: (nf,) its rate where the joint is closed; with three free turns, the components of the
            angular velocity.
        jacobian: (nf, nv) rate = jacobian v. Forces F (nf,) along the free motions, on the link of
            b and back on that of a, act as jacobianᵀ F: add it to ``tau``.
    """

    position: Array
    rate: Array
    jacobian: Array


def loop_axis_motion(
    constraints: Sequence[Constraint], name: str, kinematics: Kinematics
) -> LoopAxisMotion:
    """The free motions of the loop joint ``name``.

    Raises:
        ModelError: There is no such loop joint, or its free motions are not constant in frame a.
    """
    from scipy.spatial.transform import Rotation

    found = [c for c in constraints if c.name == name and isinstance(c, LoopJoint)]
    if not found:
        known = ", ".join(c.name for c in constraints if isinstance(c, LoopJoint)) or "none"
        raise ModelError(f"unknown loop joint '{name}'; there are: {known}")
    (loop,) = found
    if loop.model in VARIABLE or loop.model in HELD_FORCES or loop.motion is not None:
        raise ModelError(
            f"the free motions of loop joint '{name}' are not constant in frame a: it is "
            f"{loop.model.value if loop.motion is None else 'driven'}"
        )
    a, b = kinematics.point(loop.a), kinematics.point(loop.b)
    Z_a, Z_b = (frame_with_z(joint_axis(loop, end)) for end in "ab")
    R_a, R_b = a.R_W @ Z_a, b.R_W @ Z_b
    psi, _ = dual_bases(free_twists(loop))
    apart = b.p_W - a.p_W
    carried = a.J - np.cross(apart, a.J_angular.T).T
    twist = np.vstack([R_a.T @ (b.J_angular - a.J_angular), R_a.T @ (b.J - carried)])
    turn = Rotation.from_matrix(R_a.T @ R_b).as_rotvec()
    jacobian = psi @ twist
    position = psi @ np.concatenate([turn, R_a.T @ apart])
    return LoopAxisMotion(position, jacobian @ kinematics.v, jacobian)
