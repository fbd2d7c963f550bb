"""Spinning top whose tip hangs on a massless bar of 1 m, in Euler parameters.

The start is upright with the centre of mass at the bar's pivot. The mass matrix in r and p has rank
6 of 7, with null vector (0, p); ``alpha`` p pᵀ added to it makes it positive definite and changes
only the multiplier of pᵀp = 1, since pᵀp̈ = -ṗᵀṗ. Gravity is a choice: the source gives none.

Source: Haug and Pavesic 2023, example 1, signs restored (docs/errata.md).
"""

from dataclasses import dataclass

import numpy as np

from bulletbridge.errors import ModelError
from bulletbridge.formulations.equations import Coordinates, Equations
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
class Top(Coordinates):
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

    def energy(self, q: Array, v: Array) -> float:
        """Kinetic and potential energy [J], the latter zero at r_z = 0."""
        w = angular_velocity(q, v)
        kinetic = 0.5 * (self.mass * v[:3] @ v[:3] + np.array(self.inertia) * w @ w)
        return float(kinetic + self.mass * self.gravity * q[2])

    def critical_spin(self) -> float:
        """Spin [rad/s] from which on the upright top is stable, by its linearisation; 0 if always.

        For every large spin all roots of ``growth``'s quartic in s are real. They stop being so
        where its discriminant, a cubic in the square of the axial momentum, changes its sign.
        """
        across, along = self._axes()
        m, g = self.mass, self.gravity
        a, c, e = -across, g * across, m * g * g  # of s⁴, s², 1; those of s³, s: y^½, -g y^½
        cubic = [
            4.0 * g**3,
            -27.0 * (a * a * g**4 + e * e)
            - 6.0 * a * e * g * g
            - 18.0 * (a * c * g**3 + c * e * g)
            + c * c * g * g,
            192.0 * a * a * e * e * g
            + 144.0 * (a * a * c * e * g * g + a * c * e * e)
            + 80.0 * a * c * c * e * g
            - 4.0 * (a * c**3 * g * g + c**3 * e),
            256.0 * (a * e) ** 3 - 128.0 * (a * c * e) ** 2 + 16.0 * a * c**4 * e,
        ]
        found = np.roots(cubic)
        real = found.real[np.abs(found.imag) < 1e-9 * np.abs(found).max()]
        for spin in np.sqrt(np.sort(real[real > 0.0])[::-1]) / along:
            if self.growth(spin * (1.0 - 1e-6)) > 0.0:
                return float(spin)
        return 0.0

    def growth(self, spin: float) -> float:
        """Rate of growth [1/s] of a small tilt of the upright top at a spin [rad/s].

        The largest imaginary part of the roots of (g - s²)(J_t s² - J_s w s + m g) + m g s², with
        bar and centre of mass at 1 m.
        """
        across, along = self._axes()
        m, g = self.mass, self.gravity
        bar = np.array([-1.0, 0.0, g])
        body = np.array([across, -along * spin, m * g])
        found = np.roots(np.polyadd(np.polymul(bar, body), [m * g, 0.0, 0.0]))
        return float(np.abs(np.imag(found)).max())

    def _axes(self) -> tuple[float, float]:
        """Moments of inertia across and along the axis.

        Raises:
            ModelError: Those across differ, so that small tilts do not turn with the top.
        """
        across, other, along = self.inertia
        if across != other:
            raise ModelError(
                f"the stability of a top with {across:g} and {other:g} kg m² across its axis is not"
                " known in closed form; give equal ones"
            )
        return across, along


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
