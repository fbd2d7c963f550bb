"""Spinning top whose tip hangs on a massless bar of 1 m, in Euler parameters.

The start is upright with the centre of mass at the bar's pivot. The mass matrix in r and p has rank
6 of 7, with null vector (0, p); ``alpha`` p pᵀ added to it makes it positive definite and changes
only the multiplier of pᵀp = 1, since pᵀp̈ = -ṗᵀṗ. Gravity is a choice: the source gives none.

Source: Haug and Pavesic 2023, example 1, signs restored (docs/errata.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.errors import ModelError
from bulletbridge.formulations.chart_kernel import (
    ChartArrays,
    CompiledEquations,
    Terms,
    find_point,
)
from bulletbridge.numerics.records import Array

Four = tuple[float, float, float, float]


def gradient(p: Sequence[float] | Array) -> tuple[Four, Four, Four]:
    """∂s/∂p (3, 4) of s = R(p) e_z; linear in p, and s = ½ (∂s/∂p) p."""
    a, b, c, d = 2.0 * p[0], 2.0 * p[1], 2.0 * p[2], 2.0 * p[3]
    return (c, d, a, b), (-b, -a, d, c), (a, -b, -c, d)


def rates(p: Sequence[float] | Array) -> tuple[Four, Four, Four]:
    """G (3, 4): the body's angular velocity is 2 G ṗ."""
    a, b, c, d = p[0], p[1], p[2], p[3]
    return (-b, a, d, -c), (-c, -d, a, b), (-d, c, -b, a)


gradient_there, rates_there = helper(gradient), helper(rates)


@helper
def inner_four(a: Four, b: Four) -> float:
    """a · b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]


@kernel
def fill(s: Terms) -> None:
    """The equations of motion of a top with ``Top.numbers``."""
    mass, gravity, alpha, inertia = s.numbers[0], s.numbers[1], s.numbers[2], s.numbers[3:]
    p = s.q[3], s.q[4], s.q[5], s.q[6]
    dp = s.v[3], s.v[4], s.v[5], s.v[6]
    G, dG, B, dB = rates_there(p), rates_there(dp), gradient_there(p), gradient_there(dp)
    for k in range(3):
        s.M[k, k], s.f[k] = mass, 0.0
    s.f[2] = -mass * gravity
    for i in range(4):
        push = 0.0
        for k in range(3):
            push -= 8.0 * inertia[k] * dG[k][i] * inner_four(G[k], dp)
        s.f[3 + i] = push
        for j in range(4):
            total = alpha * p[i] * p[j]
            for k in range(3):
                total += 4.0 * inertia[k] * G[k][i] * G[k][j]
            s.M[3 + i, 3 + j] = total
    square = along = turned = bend = fast = 0.0
    for i in range(4):
        s.J[0, 3 + i], s.J[1, 3 + i] = 0.0, p[i]
    for k in range(3):
        r, dr, axis = s.q[k], s.v[k], 0.5 * inner_four(B[k], p)
        s.J[0, k] = r - axis
        square, along, fast = square + r * r, along + r * axis, fast + dr * dr
        turned += dr * inner_four(B[k], dp)
        bend += r * inner_four(dB[k], dp)  # of s̈ at p̈ = 0
        for i in range(4):
            s.J[0, 3 + i] -= r * B[k][i]
    s.g[0], s.g[1] = 0.5 * (square - 2.0 * along), 0.5 * (inner_four(p, p) - 1.0)
    s.gamma[0], s.gamma[1] = fast - 2.0 * turned - bend, inner_four(dp, dp)


@kernel
def find(c: ChartArrays, x: Array, dx: Array, t: float) -> int:
    """A point of a chart of a top."""
    return find_point(fill, c, x, dx, t)


@dataclass(frozen=True)
class Top(CompiledEquations):
    """q = (r [m], p), v its rate; rows ½ (r·r - 2 r·s) [m²] and ½ (p·p - 1), s the z axis."""

    mass: float = 30.0  # [kg]
    # about the centre of mass, across, across and along the axis [kg m²]
    inertia: tuple[float, float, float] = (90.0, 90.0, 30.0)
    gravity: float = 9.81  # [m/s²]
    alpha: float = 100.0  # weight of p pᵀ in the mass matrix [kg m²]; 0 leaves it singular
    nq: int = 7
    nv: int = 7
    rows: int = 2
    fill, find = staticmethod(fill), staticmethod(find)

    @property
    def numbers(self) -> Array:
        """What ``fill`` takes beside the state."""
        return np.array([self.mass, self.gravity, self.alpha, *self.inertia])

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
        """Moments of inertia across and along the axis."""
        across, other, along = self.inertia
        if across != other:
            raise ModelError(
                f"the stability of a top with {across:g} and {other:g} kg m² across its axis is not"
                " known in closed form; give equal ones"
            )
        return across, along


def angular_velocity(q: Array, v: Array) -> Array:
    """Angular velocity (3,) in body axes [rad/s]."""
    return 2.0 * np.array(rates(q[3:])) @ v[3:]


def start(across: float, spin: float) -> tuple[Array, Array]:
    """Upright q and its rates for body rates (across, across, spin) [rad/s]."""
    q = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    return q, np.concatenate([np.zeros(3), 0.5 * np.array(rates(q[3:])).T @ [across, across, spin]])


def threshold(top: Top, low: float, high: float, width: float = 1e-4) -> tuple[float, float]:
    """Spins [rad/s] between which growth of the linearised motion ends, by bisection."""
    while high - low > width:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if top.growth(middle) > 1e-6 else (low, middle)
    return low, high
