"""Constraints as users write them."""

import numpy as np

from bulletbridge.constraints.joints import Frame
from bulletbridge.constraints.user import Kinematics, Rows


class PointOnSphere:
    """A user's constraint: the origin of a frame stays at a distance from a point of the world."""

    name, units = "sphere", ("m",)

    def __init__(self, frame: Frame, radius: float) -> None:
        self.frame, self.radius = frame, radius

    def rows(self, kinematics: Kinematics) -> Rows:
        point = kinematics.point(self.frame)
        r = float(np.linalg.norm(point.p_W))
        n, u = point.p_W / r, point.J @ kinematics.v
        gamma = n @ point.bias + (u @ u - (n @ u) ** 2) / r
        return Rows(np.array([r - self.radius]), n[None] @ point.J, np.zeros(1), np.array([gamma]))


class Failing(PointOnSphere):
    """The same, which raises while it is broken."""

    broken = False

    def rows(self, kinematics: Kinematics) -> Rows:
        if self.broken:
            raise ZeroDivisionError("mine")
        return super().rows(kinematics)
