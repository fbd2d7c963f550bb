"""Spinning top whose tip hangs on a massless bar of 1 m, in Euler parameters.

The start is upright with the centre of mass at the bar's pivot. The mass matrix in r and p has rank
6 of 7, with null vector (0, p); ``alpha`` p pᵀ added to it makes it positive definite and changes
only the multiplier of pᵀp = 1, since pᵀp̈ = -ṗᵀṗ. Gravity is a choice: the source gives none.

Source: Haug and Pavesic 2023, example 1, signs restored (docs/errata.md).
"""

from dataclasses import dataclass

import numpy as np

from bulletbridge.formulations.equations import Equations
from bulletbridge.numerics.records import Array

UNIT = np.ones(2)


GRADIENT = 2.0 * np.array(
    [
        [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]],
        [[0, -1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]],
        [[1, 0, 0, 0], [0, -1, 0, 0], [0, 0, -1, 0], [0, 0, 0, 1]],
    ]
)
RATES = np.array(
    [
        [[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, -1, 0]],
        [[0, 0, -1, 0], [0, 0, 0, -1], [1, 0, 0, 0], [0, 1, 0, 0]],
        [[0, 0, 0, -1], [0, 0, 1, 0], [0, -1, 0, 0], [1, 0, 0, 0]],
    ],
    float,
)


def gradient(p: Array) -> Array:
    """∂s/∂p (3, 4) of s = R(p) e_z; linear in p, and s = ½ (∂s/∂p) p."""
    return np.asarray(GRADIENT @ p)


def rates(p: Array) -> Array:
    """G (3, 4): the body's angular velocity is 2 G ṗ."""
    return np.asarray(RATES @ p)


@dataclass(frozen=True)
class Top:
    """q = (r [m], p), v = its rate; rows ½ (r·r - 2 r·s) [m²] and ½ (p·p - 1), s the body's z axis.

    Attributes:
        mass: [kg].
        inertia: About the centre of mass, across, across and along the axis [kg m²].
        gravity: [m/s²].
        alpha: Weight of p pᵀ in the mass matrix [kg m²]; 0 leaves it singular.
    """

    mass: float = 30.0
    inertia: tuple[float, float, float] = (90.0, 90.0, 30.0)
    gravity: float = 9.81
    alpha: float = 100.0
    nq: int = 7
    nv: int = 7

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state."""
        r, p, dr, dp = q[:3], q[3:], v[:3], v[3:]
        G, dG, B, inertia = rates(p), rates(dp), gradient(p), np.array(self.inertia)
        M = self.mass * np.eye(7)
        M[3:, 3:] = (4.0 * inertia * G.T) @ G + self.alpha * p * p[:, None]
        f = np.zeros(7)
        f[2] = -self.mass * self.gravity
        f[3:] = -8.0 * dG.T @ (inertia * (G @ dp))
        s = 0.5 * B @ p
        J = np.zeros((2, 7))
        J[0, :3], J[0, 3:], J[1, 3:] = r - s, -r @ B, p
        g = 0.5 * np.array([r @ r - 2.0 * r @ s, p @ p - 1.0])
        bend = gradient(dp) @ dp  # s̈ at p̈ = 0
        gamma = np.array([dr @ dr - 2.0 * dr @ (B @ dp) - r @ bend, dp @ dp])
        return Equations(M, f, J, g, np.zeros(2), gamma, UNIT)

    def displace(self, q: Array, step: Array) -> Array:
        """Configuration after a velocity has acted for a unit of time."""
        return q + step

    def energy(self, q: Array, v: Array) -> float:
        """Kinetic and potential energy [J], the latter zero at r_z = 0."""
        w = angular_velocity(q, v)
        kinetic = 0.5 * (self.mass * v[:3] @ v[:3] + np.array(self.inertia) * w @ w)
        return float(kinetic + self.mass * self.gravity * q[2])

    def critical_spin(self) -> float:
        """Least spin [rad/s] at which the upright top is stable, by its linearisation.

        With a = l = 1 m all roots of (g - s²)(J_t s² - J_s w s + m g) + m g s² are real iff
        4 w⁶ - 135 g w⁴ + 2376 g² w² - 21168 g³ > 0, for the source's inertia.
        """
        g = self.gravity
        found = np.roots([4.0, -135.0 * g, 2376.0 * g**2, -21168.0 * g**3])
        return float(np.sqrt(max(root.real for root in found if abs(root.imag) < 1e-9)))

    def growth(self, spin: float) -> float:
        """Rate of growth [1/s] of a small tilt of the upright top at a spin [rad/s]."""
        across, _, along = self.inertia
        m, g = self.mass, self.gravity
        bar = np.array([-1.0, 0.0, g])  # length and centre of mass at 1 m
        body = np.array([across, -along * spin, m * g])
        found = np.roots(np.polyadd(np.polymul(bar, body), [m * g, 0.0, 0.0]))
        return float(np.abs(np.imag(found)).max())


def angular_velocity(q: Array, v: Array) -> Array:
    """Angular velocity (3,) in body axes [rad/s]."""
    return 2.0 * rates(q[3:]) @ v[3:]


def start(across: float, spin: float) -> tuple[Array, Array]:
    """Upright q and its rates for body rates (across, across, spin) [rad/s]."""
    q = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    return q, np.concatenate([np.zeros(3), 0.5 * rates(q[3:]).T @ [across, across, spin]])


def threshold(top: Top, low: float, high: float, width: float = 1e-4) -> tuple[float, float]:
    """Spins [rad/s] between which growth of the linearised motion ends, by bisection."""
    while high - low > width:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if top.growth(middle) > 1e-6 else (low, middle)
    return low, high
