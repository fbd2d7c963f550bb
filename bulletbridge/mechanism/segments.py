"""A flexible link as rigid segments with springs between them.

Springs stand at the centres of n equal elements, so the first and the last segment have half the
length of the others. Each spring has the stiffness of its element: EI n / L for bending, GJ n / L
for torsion. Under a force at its tip such a cantilever bends by F L³ / (3 EI) (1 - 1 / (4 n²)).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import leggauss

from bulletbridge.errors import ModelError
from bulletbridge.numerics.records import Array

CLAMPED_FREE = 1.8751040687119611
"""First root of cos x cosh x = -1."""
POINTS, WEIGHTS = leggauss(16)
MOST_ITERATIONS = 60
LIGHTEST = 1e-6
"""Lighter pieces than this, against the heaviest, would make the mass matrix singular."""


@dataclass(frozen=True)
class Beam:
    """What bends.

    Attributes:
        length: [m]
        segments: Number n of springs in each direction; there are n + 1 rigid pieces.
        EI_z, EI_y, GJ: Stiffness of bending about z, about y, and of torsion [N m²]; None for a
            direction in which the link stays rigid. x is along the beam.
    """

    length: float
    segments: int
    EI_z: float | None = None
    EI_y: float | None = None
    GJ: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is no beam."""
        if self.segments < 1:
            raise ModelError(f"segments is {self.segments}; give one or more")
        if not (math.isfinite(self.length) and self.length > 0.0):
            raise ModelError(f"the flexible length is {self.length:g} m; give a positive one")
        for name, value in self.stiffnesses().items():
            if not (math.isfinite(value) and value > 0.0):
                raise ModelError(f"{name} is {value:g} N m²; give a positive one")
        if not self.stiffnesses():
            raise ModelError("nothing bends; give EI for one direction, or GJ")

    def stiffnesses(self) -> dict[str, float]:
        """Those of the directions that bend, by name [N m²]."""
        named = {"EI_z": self.EI_z, "EI_y": self.EI_y, "GJ": self.GJ}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def springs(self) -> Array:
        """(n,) places of the springs, from the root [m]."""
        return np.arange(0.5, self.segments) * (self.length / self.segments)

    @property
    def bounds(self) -> Array:
        """(n + 2,) ends of the rigid pieces, from the root [m]."""
        return np.concatenate([[0.0], self.springs, [self.length]])

    def stiffness(self, name: str) -> float:
        """Stiffness of one spring of a direction [N m/rad]."""
        return self.stiffnesses()[name] * self.segments / self.length

    def frequency(self, name: str, per_length: float) -> float:
        """First natural frequency, clamped at the root and free at the tip [rad/s].

        Args:
            name: The direction.
            per_length: Mass [kg/m]; for torsion the moment of inertia about x per length [kg m].
        """
        if name == "GJ":
            return 0.5 * math.pi / self.length * math.sqrt(self.stiffnesses()[name] / per_length)
        speed = math.sqrt(self.stiffnesses()[name] / per_length)
        return (CLAMPED_FREE / self.length) ** 2 * speed

    def damping(self, name: str, per_length: float, ratio: float) -> float:
        """Damping of one spring [N m s/rad] that damps the first mode by this part of critical.

        Dampers are in proportion to the springs: a mode of w has the part ratio * w / w₁.
        """
        return 2.0 * ratio * self.stiffness(name) / self.frequency(name, per_length)


@dataclass(frozen=True)
class Lump:
    """Mass [kg], centre (3,) [m] and second moments (3, 3) of mass about it [kg m²]."""

    mass: float
    com: Array
    second: Array

    @property
    def J(self) -> Array:
        """Tensor of inertia (3, 3) about the centre [kg m²]."""
        return inertia_of(self.second)


def inertia_of(second: Array) -> Array:
    """Tensor of inertia from second moments, ∫ r rᵀ dm; the same formula leads back, halved."""
    return np.trace(second) * np.eye(3) - second


def second_moments(J: Array) -> Array:
    """∫ r rᵀ dm (3, 3) from a tensor of inertia (3, 3)."""
    return 0.5 * np.trace(J) * np.eye(3) - J


def rod(length: float, per_length: float, radius2: tuple[float, float] = (0.0, 0.0)) -> Lump:
    """A uniform beam along x from the origin; radius2: squared radii of gyration in y and z."""
    mass = per_length * length
    second = mass * np.diag([length**2 / 12.0, *radius2])
    return Lump(mass, np.array([length / 2.0, 0.0, 0.0]), second)


def divide(whole: Lump, bounds: Array) -> list[Lump]:
    """The pieces of a link that lies along x, with its mass, centre and inertia to round-off.

    The mass is spread along x as exp(a + b x + c x²), the smoothest density with the link's mass,
    centre and second moment along x: uniform if these are a uniform beam's. Across, the pieces'
    centres lie on the line of regression, and what is left goes with the mass.

    Args:
        whole: The link.
        bounds: (pieces + 1,) where it is cut [m].

    Raises:
        ModelError: No density between the bounds has that centre and second moment, or hardly any
            of it is left for one of the pieces.
    """
    mass, moment = whole.mass, float(whole.second[0, 0])
    masses, centres, along = spread(float(whole.com[0]), moment / mass, bounds)
    if masses.min() < LIGHTEST * masses.max():
        raise ModelError(
            f"the link's mass is all around {whole.com[0]:.4g} m along it, which leaves pieces "
            "with next to none; give the mass per length of the part that bends"
        )
    slope = whole.second[0] / moment
    rest = (whole.second - np.outer(whole.second[0], slope)) / mass
    rest[0, :] = rest[:, 0] = 0.0
    pieces: list[Lump] = []
    for part, x, own in zip(masses, centres, along, strict=True):
        second = mass * (own * np.outer(slope, slope) + part * rest)
        pieces.append(Lump(mass * part, whole.com + slope * (x - whole.com[0]), second))
    return pieces


def spread(centre: float, variance: float, bounds: Array) -> tuple[Array, Array, Array]:
    """A unit mass between bounds: masses, centres [m], second moments [m²] of the pieces.

    Raises:
        ModelError: There is no such density.
    """
    start, end = float(bounds[0]), float(bounds[-1])
    middle, half = 0.5 * (start + end), 0.5 * (end - start)
    wanted = np.array([1.0, (centre - middle) / half, 0.0])
    wanted[2] = variance / half**2 + wanted[1] ** 2
    cut = (bounds - middle) / half
    width = np.diff(cut)
    u = (cut[:-1, None] + 0.5 * width[:, None] * (1.0 + POINTS)).ravel()
    weight = (0.5 * width[:, None] * WEIGHTS).ravel()
    powers = np.stack([u**0, u, u * u])
    density = _density(powers, weight, wanted)
    if density is None:
        raise ModelError(
            f"the link's mass, centred at {centre:.4g} m with a radius of gyration of "
            f"{math.sqrt(max(variance, 0.0)):.4g} m, cannot lie between {start:.4g} and {end:.4g} m"
            " along it; correct the <inertial>, the direction or the length, or give the mass per "
            "length"
        )
    parts = (density * weight).reshape(len(width), -1)
    places = (middle + half * u).reshape(len(width), -1)
    masses = parts.sum(1)
    centres = (parts * places).sum(1) / masses
    return masses, centres, (parts * (places - centres[:, None]) ** 2).sum(1)


def _density(powers: Array, weight: Array, wanted: Array) -> Array | None:
    """exp(a + b u + c u²) with three moments, by damped Newton; None if there is none."""
    x: Array = np.array([math.log(0.5), 0.0, 0.0])

    def values(x: Array) -> Array:
        return np.exp(np.clip(x @ powers, -700.0, 700.0))

    def cost(x: Array) -> float:  # convex; its gradient is what the moments miss
        return float(values(x) @ weight - x @ wanted)

    for _ in range(MOST_ITERATIONS):
        density = values(x) * weight
        missed = powers @ density - wanted
        if np.abs(missed).max() <= 4e-16:
            return values(x)
        try:
            step: Array = np.asarray(
                np.linalg.solve((powers * density) @ powers.T, missed), np.float64
            )
        except np.linalg.LinAlgError:
            return None
        factor, here = 1.0, cost(x)
        while factor > 1e-9 and not cost(x - factor * step) <= here + 1e-14 * abs(here):
            factor *= 0.5
        x = x - factor * step
    close = np.abs(powers @ (values(x) * weight) - wanted).max() <= 1e-14
    return values(x) if close else None
