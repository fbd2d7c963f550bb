"""Flexible beams: the modes of a clamped-free Euler-Bernoulli beam as a joint of the tree.

The root frame has x along the beam, y the way it bends, z the axis of its slope. A material point
at x is at (x - qᵀ S(x) q / 2, sigma(x) · q, 0): what it bends by it is shortened by.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.mechanism.records import BEAMS, STATION
from bulletbridge.numerics.records import Array

STATIONS = 16
"""Gauss points with mass. With two modes they integrate every product that enters to 1e-14; with
three, shortening times shortening to 3e-10, a term of the fourth power of deflections."""
MOST_MODES = 3


@dataclass(frozen=True)
class FlexibleBeam:
    """A uniform beam that bends in a plane; its sections do not shear and have no inertia.

    Raises:
        ModelError: A number is not finite or not positive, or there are no such modes.
    """

    length: float  # [m]
    stiffness: float  # young's modulus times second moment of area, EI [N m²]
    density: float  # mass per length [kg/m]
    modes: int = 2  # how many of the clamped-free modes, 1 to 3
    damping: float = 0.0  # of each mode, relative to its critical one, the tip free

    def __post_init__(self) -> None:
        sizes = {"length": self.length, "stiffness": self.stiffness, "density": self.density}
        for name, size in sizes.items():
            if not (np.isfinite(size) and size > 0.0):
                raise ModelError(f"the {name} of a beam is {size}; give a positive number")
        if self.modes not in range(1, MOST_MODES + 1):
            raise ModelError(f"a beam has {self.modes} modes; give 1 to {MOST_MODES}")
        if not (np.isfinite(self.damping) and self.damping >= 0.0):
            raise ModelError(f"the damping of a beam is {self.damping}; give 0 or more")

    @property
    def mass(self) -> float:
        """Mass [kg]; also that of each mode, per unit of amplitude."""
        return self.density * self.length

    def shapes(self, x: Array | Sequence[float]) -> tuple[Array, Array]:
        """Deflections sigma and slopes sigma' [1/m] of the modes at x [m]: (modes, len(x)) each.

        Normalised to a tip of 2, -2, 2, where the integral of sigma² is the length. The growing
        exponential has a factor that is nearly zero, computed as such and not as a difference.
        """
        b = mode_numbers(self.modes)[:, None]
        growing = (np.exp(-b) + np.cos(b) + np.sin(b)) / (np.cosh(b) + np.cos(b))
        s = b * np.asarray(x, float) / self.length
        up, down = 0.5 * growing * np.exp(s), (1.0 - 0.5 * growing) * np.exp(-s)
        sine, cosine = np.sin(s), np.cos(s)
        sigma = up + down - cosine + (1.0 - growing) * sine
        slope = (b / self.length) * (up - down + sine + (1.0 - growing) * cosine)
        return sigma, slope

    def shortening(self, x: float) -> Array:
        """S (modes, modes) [1/m] at x [m]: the point is drawn in by qᵀ S q / 2."""
        nodes, weights = np.polynomial.legendre.leggauss(40)
        _, slope = self.shapes(0.5 * x * (1.0 + nodes))
        return 0.5 * x * (slope * weights) @ slope.T

    def hinge_angles(self, x: Array) -> Array:
        """Angles (n, modes) [rad/m], per amplitude, of a chain hinged at x (n,) [m] that shows it.

        The piece before the first hinge goes on along the root and the last one along the tip, so
        that what is fixed there turns as it should. The others lie along chords of the beam, turned
        alike by as much as puts the end of the chain at the deflection of the tip. Along the beam
        the end of the chain is the nearer to the tip the more pieces there are.
        """
        x = np.asarray(x, float)
        sigma, (tip, slope) = self.shapes(x)[0], (f[:, 0] for f in self.shapes([self.length]))
        turned = np.zeros((len(x) + 1, self.modes))  # of the pieces, against the root
        turned[-1] = slope
        if len(x) > 1:
            reach = np.diff(x)
            turned[1:-1] = (np.diff(sigma, axis=1) / reach).T
            missing = tip - (self.length - x[-1]) * slope - reach @ turned[1:-1]
            turned[1:-1] += missing / reach.sum()
        return np.diff(turned, axis=0)

    @property
    def mode_stiffness(self) -> Array:
        """(modes,) [N/m]: EI times the integrals of sigma''²; those of products vanish."""
        return self.stiffness * mode_numbers(self.modes) ** 4 / self.length**3

    @property
    def mode_damping(self) -> Array:
        """(modes,) [N s/m]."""
        return 2.0 * self.damping * np.sqrt(self.mode_stiffness * self.mass)

    def stations(self, count: int = STATIONS) -> np.ndarray:
        """(count + 1,) records of ``records.Station``: Gauss points, then the tip."""
        nodes, weights = np.polynomial.legendre.leggauss(count)
        x = self.length * np.append(0.5 * (1.0 + nodes), 1.0)
        records, n = np.zeros(count + 1, STATION), self.modes
        records["x"], records["mass"][:-1] = x, 0.5 * self.mass * weights
        sigma, slope = self.shapes(x)
        records["sigma"][:, :n], records["slope"][:, :n] = sigma.T, slope.T
        for record, at in zip(records, x, strict=True):
            record["S"][:n, :n] = self.shortening(float(at))
        return records


def mode_numbers(count: int) -> Array:
    """Solutions b of cos b cosh b = -1: wave numbers of the modes times the length, (count,)."""
    from scipy.optimize import brentq

    found = [
        brentq(lambda b: np.cos(b) + 1.0 / np.cosh(b), np.pi * k + 1.0, np.pi * (k + 1), rtol=1e-15)
        for k in range(count)
    ]
    return np.array(found, float)


def beam_record(body: int, first: int, count: int) -> np.ndarray:
    """(1,) record of ``records.Beam`` whose stations with mass are ``count`` from ``first`` on."""
    record = np.zeros(1, BEAMS)
    record["body"], record["first"], record["tip"] = body, first, first + count
    return record
