"""Homogeneous solids, whose mass some formats leave to be computed from shapes."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.models.formats.robot import Inertial, Pose, joined
from bulletbridge.numerics.records import Array

DENSITY = 1000.0
"""Of shapes of which nothing says it, water's, in SDF and USD alike [kg/m³]."""


class Solid(NamedTuple):
    """Volume [m³], centre (3,) [m] and inertia about it by density (3, 3) [m^5], in a body."""

    volume: float
    com: Array
    J: Array

    def placed(self, at: Pose) -> "Solid":
        """The same where its frame is at a place in another one."""
        return Solid(self.volume, at.p + at.R @ self.com, at.R @ self.J @ at.R.T)


def _about_centre(volume: float, gyration: Array) -> Solid:
    """A solid whose centre is the origin, by squares (3,) of its radii of gyration [m²]."""
    return Solid(volume, np.zeros(3), volume * np.diag(gyration))


def box(x: float, y: float, z: float) -> Solid:
    """One with sides along the axes [m]."""
    return _about_centre(x * y * z, np.array([y * y + z * z, x * x + z * z, x * x + y * y]) / 12.0)


def ellipsoid(x: float, *others: float) -> Solid:
    """One with half axes along the axes [m]; a ball where one is given alone."""
    y, z = others or (x, x)
    squares = np.array([y * y + z * z, x * x + z * z, x * x + y * y])
    return _about_centre(4.0 / 3.0 * np.pi * x * y * z, squares / 5.0)


def cylinder(radius: float, length: float) -> Solid:
    """One along z, its middle at the origin [m]."""
    r2 = radius**2
    across = (3.0 * r2 + length**2) / 12.0
    return _about_centre(np.pi * r2 * length, np.array([across, across, 0.5 * r2]))


def capsule(radius: float, length: float) -> Solid:
    """A cylinder along z with half balls on its ends, which are not counted in its length [m]."""
    tube, r2 = cylinder(radius, length), radius**2
    caps = 4.0 / 3.0 * np.pi * radius**3
    # a half ball: 0.4 r^2 about the centre of the whole one, and so far away with its centre
    away = 0.4 * r2 + 0.25 * length**2 + 0.375 * length * radius
    J = tube.J + caps * np.diag([away, away, 0.4 * r2])
    return Solid(tube.volume + caps, np.zeros(3), J)


def cone(radius: float, length: float) -> Solid:
    """One along z, its base below and its tip above, half its height from the origin [m]."""
    r2 = radius**2
    volume = np.pi * r2 * length / 3.0
    across = 0.15 * r2 + 0.0375 * length**2
    J = volume * np.diag([across, across, 0.3 * r2])
    return Solid(volume, np.array([0.0, 0.0, -0.25 * length]), J)


SOLIDS: dict[str, Callable[..., Solid]] = {
    "box": box,
    "sphere": ellipsoid,
    "ellipsoid": ellipsoid,
    "cylinder": cylinder,
    "capsule": capsule,
    "cone": cone,
}
"""What has a closed form, by what formats call it."""


def of_mesh(facets: Any) -> Solid | None:
    """What a trimesh encloses, or its hull if it is not closed; None where that is flat."""
    from scipy.spatial import QhullError

    try:
        closed: Any = facets if facets.is_volume else facets.convex_hull
    except (QhullError, ValueError):
        return None
    closed.density = 1.0
    volume = float(closed.volume)
    return Solid(volume, np.array(closed.center_mass), np.array(closed.moment_inertia))


def together(parts: Iterable[tuple[float, Solid]]) -> Inertial | None:
    """Several solids, each after its mass [kg], as one body; None if none weighs anything."""
    solid = [(mass, each) for mass, each in parts if mass > 0.0 and each.volume > 0.0]
    if not solid:
        return None
    return joined(Inertial(mass, each.com, each.J * (mass / each.volume)) for mass, each in solid)
