"""Friction that differs by direction: Bullet's scales along a link's axes as an ellipse."""

from collections.abc import Mapping

import numpy as np
import pybullet

from bulletbridge.bullet.coordinates import matrix
from bulletbridge.numerics.null_space import null_space
from bulletbridge.numerics.records import Array, Vector

Scales = Mapping[tuple[int, int], Vector]
"""Factors on friction along the inertial axes of a link, by body and link."""
ROUND = 0.0, 0.0, 0.0
"""The direction of friction that has none."""


def ellipse(
    scales: Scales,
    one: tuple[int, int],
    other: tuple[int, int],
    normal: Vector,
    friction: float,
    client: int,
) -> tuple[float, float, Vector]:
    """Friction along a direction and at right angles to it, and that direction (3,).

    Each body scales friction along its axes; in the plane of the contact the scales of both are a
    symmetric matrix, whose eigenvectors are the axes of the ellipse.

    Args:
        scales: Of bodies whose friction is not the same in all directions.
        one: A body and link in contact,
        other: what it is in contact with.
        normal: (3,) unit vector, world axes.
        friction: Coefficient without scales.
        client: Physics client.
    """
    S = np.eye(3)
    for place in (one, other):
        if place in scales:
            R = inertial_axes(*place, client)
            S = S @ (R * np.asarray(scales[place])) @ R.T
    plane = null_space(np.array([normal]))
    sizes, axes = np.linalg.eigh(plane.T @ (S + S.T) @ plane / 2)
    x, y, z = (plane @ axes[:, 0]).tolist()
    first, second = friction * np.abs(sizes)
    return float(first), float(second), (x, y, z)


def inertial_axes(body: int, link: int, client: int) -> Array:
    """Inertial axes (3, 3) of a link in the world, where Bullet has it."""
    if link < 0:
        quat = pybullet.getBasePositionAndOrientation(body, client)[1]
    else:
        quat = pybullet.getLinkState(body, link, physicsClientId=client)[1]
    return matrix(quat)
