"""A world that says where a free body touches, without Bullet."""

import numpy as np
from numpy.typing import ArrayLike

from bulletbridge.mechanism.records import TOUCH_COLUMNS
from bulletbridge.numerics.records import Array


class Touching:
    """A body at rest that touches planes through the origin, each with one contact at its centre.

    Contacts there do not turn it.

    Args:
        normals: (n, 3) of the planes.
        friction: Coefficients along the first direction and across it.
        first: (3,) the first direction.
    """

    def __init__(self, normals: ArrayLike, friction: tuple[float, float], first: ArrayLike) -> None:
        self.normals = np.array(normals, float)
        self.touch = np.zeros((len(self.normals), TOUCH_COLUMNS))
        self.touch[:, :2] = 0, 1
        self.touch[:, 5:8] = self.normals
        self.touch[:, 9], self.touch[:, 13] = friction
        self.touch[:, 14:17] = first

    def state(self) -> tuple[Array, Array]:
        return np.array([0, 0, 0, 0, 0, 0, 1.0]), np.zeros(6)

    def write(self, q: Array, v: Array) -> None:
        pass

    def check(self) -> None:
        pass

    def check_properties(self) -> None:
        pass

    def touches(self, q: Array, v: Array) -> Array:
        self.touch[:, 2:5], self.touch[:, 8] = q[:3], self.normals @ q[:3]
        return self.touch
