"""A contact of a ball or a point with a plane, and where surfaces touch.

Its modes are loop joints: it sticks by ``ROLLING``, slides on ``POINT_ON_PLANE``, or is open.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.joints import Frame, JointModel, LoopJoint, Triple
from bulletbridge.constraints.user import Kinematics, cross_matrix, rates_of
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.frames import frame_with_z, locate
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array


class ContactMode(Enum):
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

    def joint(self, mode: ContactMode) -> LoopJoint:
        """The loop joint that holds it while it sticks or slides."""
        model = JointModel.ROLLING if mode is ContactMode.STICK else JointModel.POINT_ON_PLANE
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
    """Where a link touches a surface of another one, world axes."""

    gap: float  # from the surface [m]
    normal: Array  # (3,) from the link of a to that of b
    tangents: Array  # (2, 3) at right angles to it and to each other; fixed in frame a on planes
    jacobian: Array  # (3, nv) of the velocity of b's material point relative to a's [m/s]


@dataclass(frozen=True)
class Surface:
    """A surface of a link and what touches it: their geometry, as far as no state changes it."""

    loop: LoopJoint  # the loop joint that holds them together
    bodies: tuple[int, int]  # of its links a and b
    frame: Array  # (3, 3) in the body of a, with the loop's axis as z
    places: tuple[Array, Array]  # origins of the frames a and b in their bodies, (3,) each
    chains: tuple[list[int], list[int]]  # rates that move each body
    nv: int  # number of rates

    def at(self, poses: np.ndarray, axes: np.ndarray) -> ContactGeometry:
        """Where they touch, with bodies (nb) and axes of the rates (nv) at these places."""
        (a, b), loop = (poses[body] for body in self.bodies), self.loop
        p_a, p_b = (
            pose["origin"] + pose["p"] + pose["R"] @ place
            for pose, place in zip((a, b), self.places, strict=True)
        )
        frame, way, below = a["R"] @ self.frame, p_b - p_a, 0.0
        if loop.model is JointModel.POINT_ON_CYLINDER:
            way = way - frame[:, 2] * (frame[:, 2] @ way)
        if loop.model in (JointModel.POINT_ON_SPHERE, JointModel.POINT_ON_CYLINDER):
            distance = float(np.linalg.norm(way))
            n = way / distance
            frame = frame_with_z((float(n[0]), float(n[1]), float(n[2])))
        else:
            distance, below = float(frame[:, 2] @ way), loop.radius
        normal = frame[:, 2]
        point, J = p_b - below * normal, np.zeros((3, self.nv))
        for pose, chain, sign in ((b, self.chains[1], 1.0), (a, self.chains[0], -1.0)):
            if chain:
                across = cross_matrix(point - pose["origin"])
                J[:, chain] += sign * (axes["v"][chain] + axes["w"][chain] @ across).T
        return ContactGeometry(distance - loop.radius, normal, frame[:, :2].T.copy(), J)


def surface_of(loop: LoopJoint, mechanism: Mechanism) -> Surface:
    """The surface of a loop joint whose link b touches link a.

    Raises:
        ModelError: Nothing touches there, or the surface is driven.
    """
    if loop.model not in SLIPPERY or loop.motion is not None:
        raise ModelError(
            f"'{loop.name}' is {'driven' if loop.motion else loop.model.value}; only "
            f"{', '.join(model.value for model in SLIPPERY)} on links that are not driven have "
            f"surfaces that slide"
        )
    (a, R, p_a), (b, _, p_b) = (
        locate(mechanism, frame.link, frame.xyz, frame.rpy) for frame in (loop.a, loop.b)
    )
    chains = rates_of(mechanism, a), rates_of(mechanism, b)
    return Surface(loop, (a, b), R @ frame_with_z(loop.axis), (p_a, p_b), chains, mechanism.nv)


def contact_geometry(loop: LoopJoint, kinematics: Kinematics) -> ContactGeometry:
    """Contact geometry of a loop joint whose link b touches a surface of link a.

    Raises:
        ModelError: Nothing touches there, or the surface is driven.
    """
    return surface_of(loop, kinematics.mechanism).at(kinematics.poses, kinematics.axes)
