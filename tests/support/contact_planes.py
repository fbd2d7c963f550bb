"""A world that says where a free body is in contact, without Bullet."""

import numpy as np
from numpy.typing import ArrayLike

from bulletbridge.mechanism.records import CONTACT_POINT
from bulletbridge.numerics.records import Array


class ContactPlanes:
    """A body at rest on planes through the origin, each with one contact point at its centre.

    Contacts there do not turn it.

    Args:
        normals: (n, 3) of the planes.
        friction: Coefficients along the first direction and across it.
        first: (3,) the first direction.
    """

    def __init__(self, normals: ArrayLike, friction: tuple[float, float], first: ArrayLike) -> None:
        self.normals = np.array(normals, float)
        self.points = np.zeros(len(self.normals), CONTACT_POINT)
        self.points["body_b"], self.points["normal"] = 1, self.normals
        self.points["friction"], self.points["friction_across"] = friction
        self.points["direction"] = first

    def state(self) -> tuple[Array, Array]:
        return np.array([0, 0, 0, 0, 0, 0, 1.0]), np.zeros(6)

    def write(self, q: Array, v: Array) -> None:
        pass

    def check(self) -> None:
        pass

    def check_properties(self) -> None:
        pass

    def look(self, acting: object) -> None:
        pass

    def tell_of_a_fall(self, pull: object) -> None:
        pass

    def accept(self) -> None:
        pass

    def forget(self) -> None:
        pass

    def detector(self) -> None:
        return None

    def contact_points(self, q: Array, v: Array, dt: float) -> np.ndarray:
        self.points["position"], self.points["gap"] = q[:3], self.normals @ q[:3]
        return self.points
