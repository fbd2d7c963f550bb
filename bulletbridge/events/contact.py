"""A contact of a ball or a point with a plane, and where surfaces touch.

Its modes are loop joints: it sticks by ``ROLLING``, slides on ``POINT_ON_PLANE``, or is open.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.joints import Frame, JointModel, LoopJoint, Triple
from bulletbridge.constraints.user import Kinematics
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import frame_with_z
from bulletbridge.numerics.records import Array


class Mode(Enum):
    """What a contact does."""

    OPEN = "open"
    STICK = "stick"
    SLIDE = "slide"


@dataclass(frozen=True)
class Contact:
    """A ball of link b over a plane of link a, which may touch, stick, slide and lift off.

    Attributes:
        name: What events and errors call it.
        a: Its origin lies in the plane.
        b: Its origin is the centre of the ball.
        axis: Normal of the plane in frame a, towards the ball.
        radius: Of the ball [m]; zero for a point.
        friction: Coulomb's coefficient, the same for sticking and sliding.
        restitution: Share of the normal speed that an impact gives back, 0 to 1.
    """

    name: str
    a: Frame
    b: Frame
    axis: Triple = (0.0, 0.0, 1.0)
    radius: float = 0.0
    friction: float = 0.0
    restitution: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.friction < np.inf:
            raise ModelError(
                f"contact '{self.name}' has friction {self.friction}; give a finite number that "
                f"is not negative"
            )
        if not 0.0 <= self.restitution <= 1.0:
            raise ModelError(
                f"contact '{self.name}' has restitution {self.restitution}; give a share from 0 "
                f"to 1"
            )

    def joint(self, mode: Mode) -> LoopJoint:
        """The loop joint that holds it while it sticks or slides."""
        model = JointModel.ROLLING if mode is Mode.STICK else JointModel.POINT_ON_PLANE
        return LoopJoint(self.name, model, self.a, self.b, self.axis, radius=self.radius)


SLIPPERY = (
    JointModel.PLANAR,
    JointModel.POINT_ON_PLANE,
    JointModel.POINT_ON_SPHERE,
    JointModel.POINT_ON_CYLINDER,
    JointModel.ROLLING,
)
"""Models whose links touch at one point, or in one plane."""


class ContactGeometry(NamedTuple):
    """Where a link touches a surface of another one, world axes.

    Attributes:
        gap: From the surface [m].
        normal: (3,) from the link of a to that of b.
        tangents: (2, 3) at right angles to it and to each other; fixed in frame a on planes.
        jacobian: (3, nv) of the velocity of b's material point relative to a's [m/s].
    """

    gap: float
    normal: Array
    tangents: Array
    jacobian: Array


def contact_geometry(loop: LoopJoint, kinematics: Kinematics) -> ContactGeometry:
    """Contact geometry of a loop joint whose link b touches a surface of link a.

    Raises:
        ModelError: Nothing touches there, or the surface is driven.
    """
    if loop.model not in SLIPPERY or loop.motion is not None:
        raise ModelError(
            f"'{loop.name}' is {'driven' if loop.motion else loop.model.value}; only "
            f"{', '.join(model.value for model in SLIPPERY)} on links that are not driven have "
            f"surfaces that slide"
        )
    a, b = kinematics.point(loop.a), kinematics.point(loop.b)
    frame = a.R_W @ frame_with_z(loop.axis)
    way, below = b.p_W - a.p_W, 0.0
    if loop.model is JointModel.POINT_ON_CYLINDER:
        way = way - frame[:, 2] * (frame[:, 2] @ way)
    if loop.model in (JointModel.POINT_ON_SPHERE, JointModel.POINT_ON_CYLINDER):
        distance = float(np.linalg.norm(way))
        n = way / distance
        frame = frame_with_z((float(n[0]), float(n[1]), float(n[2])))
    else:
        distance, below = float(frame[:, 2] @ way), loop.radius
    normal = frame[:, 2]
    point = b.p_W - below * normal
    J = np.zeros_like(b.J)
    for end, sign in ((b, 1.0), (a, -1.0)):
        J += sign * (end.J + np.cross(end.J_angular.T, point - end.p_W).T)
    return ContactGeometry(distance - loop.radius, normal, frame[:, :2].T.copy(), J)
