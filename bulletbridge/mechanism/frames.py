"""Frames on links: from URDF conventions to bodies."""

from collections.abc import Iterable

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import Link, Mechanism
from bulletbridge.numerics.records import LARGEST, Array, are_numbers

Triple = tuple[float, float, float]


def triple(values: Iterable[float]) -> Triple:
    """Three numbers that can be looked up and compared."""
    x, y, z = values
    return float(x), float(y), float(z)


def rpy_matrix(rpy: Triple | Array) -> Array:
    """Rotation (3, 3) of URDF's fixed-axis roll, pitch, yaw [rad].

    Written out, as its inverse is: SciPy's takes a third of a second to import, of a start of one.
    """
    (a, b, c), (u, v, w) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [b * c, u * v * c - a * w, a * v * c + u * w],
            [b * w, u * v * w + a * c, a * v * w - u * c],
            [-v, u * b, a * b],
        ]
    )


def matrix_rpy(R: Array) -> Triple:
    """Roll, pitch, yaw [rad] of a rotation (3, 3), to round-off at any pitch.

    Close to a pitch of a right angle roll and yaw are not determined one by one; roll is taken to
    go with yaw (as Eigen does, where SciPy loses half the digits).
    """
    yaw = np.arctan2(R[1, 0], R[0, 0])
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    s, c = np.sin(yaw), np.cos(yaw)
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return float(roll), float(pitch), float(yaw)


def locate(mechanism: Mechanism, link: str, xyz: Triple, rpy: Triple) -> tuple[int, Array, Array]:
    """Body index, rotation (3, 3) and position (3,) in the body of a frame given on a URDF link.

    Raises:
        ModelError: The link does not exist, or its place is not given by numbers.
    """
    found = mechanism.link(link)
    if not (are_numbers(xyz, (3,)) and are_numbers(rpy, (3,))):
        raise ModelError(
            f"frame on link '{link}' has xyz {xyz}, rpy {rpy}; give three finite numbers for each, "
            f"none above {LARGEST:g}"
        )
    return found.body, *place_on(found, rpy_matrix(rpy), xyz)


def place_on(link: Link, turn: Array, xyz: Triple | Array) -> tuple[Array, Array]:
    """Rotation (3, 3) and position (3,) in the body of what is so turned, and there, on a link."""
    turned, arm = turned_on(link.R, turn, xyz)
    return turned, link.p + arm


def turned_on(R: Array, turn: Array, xyz: Triple | Array) -> tuple[Array, Array]:
    """Rotation (3, 3), and way (3,) from the link, of what is so turned, and there, on a link."""
    return R @ turn, R @ np.asarray(xyz, float)


def inertia_at(arm: Array) -> Array:
    """Inertia (3, 3) [m²] about the origin of a kilogram at ``arm`` (3,) [m]."""
    return np.asarray(arm @ arm * np.eye(3) - np.outer(arm, arm), np.float64)


def frame_with_z(axis: Triple | Array) -> Array:
    """Rotation (3, 3) whose z is ``axis``; the identity when it is z already.

    Raises:
        ModelError: The axis has no length.
    """
    z = np.asarray(axis, float) if are_numbers(axis, (3,)) else np.zeros(3)
    length = float(np.linalg.norm(z))
    if not length > 1e-9:
        raise ModelError(f"axis {axis} has no direction; give three finite numbers, not all zero")
    x, y, c = (z / length).tolist()
    across = x * x + y * y
    if c < 0.0 and across < 1e-30:
        return np.diag([-1.0, 1.0, -1.0])
    # the shortest turn, written out like ``rpy_matrix``; 1 + c, without loss of digits
    rest = 1.0 + c if c > 0.0 else across / (1.0 - c)
    a, b = x / rest, y / rest
    return np.array([[1.0 - a * x, -a * y, x], [-b * x, 1.0 - b * y, y], [-x, -y, c]])
