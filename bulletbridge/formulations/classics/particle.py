"""Appell's particle: a point [2 kg] under a constant force on a cylinder or at a given speed.

The radius squared, or the horizontal speed squared, is f(t) = 4 + sin t. Mass, force and f are a
choice: the source leaves them open.

Source: Eun, Park, Lee and Chung 2004, application I.
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from bulletbridge.formulations.equations import Coordinates, Equations
from bulletbridge.numerics.records import Array

MASS = 2.0
FORCE = np.array([1.0, -0.5, -9.81])
ANGLE = 0.3
UNIT = np.ones(1)


def f(t: float) -> float:
    """Radius squared [m²] or speed squared [m²/s²]."""
    return float(4.0 + np.sin(t))


@dataclass(frozen=True)
class OnCylinder(Coordinates):
    """x² + y² = f(t); half of it is the row."""

    nq: int = 3
    nv: int = 3

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state."""
        J = np.array([[q[0], q[1], 0.0]])
        g = 0.5 * np.array([q[0] ** 2 + q[1] ** 2 - f(t)])
        gamma = np.array([v[0] ** 2 + v[1] ** 2 + 0.5 * np.sin(t)])
        g_t = np.array([-0.5 * np.cos(t)])
        return Equations(MASS * np.eye(3), FORCE.copy(), J, g, g_t, gamma, UNIT)

    @staticmethod
    def start() -> tuple[Array, Array]:
        """q [m] and v [m/s] at t = 0: at angle 0.3 rad, moving at 1.4 m/s around the axis."""
        out, along = np.array([np.cos(ANGLE), np.sin(ANGLE), 0]), [-np.sin(ANGLE), np.cos(ANGLE), 0]
        return 2.0 * out, 0.25 * out + TURN * np.array(along)

    @staticmethod
    def exact(t: float) -> Array:
        """Position (3,) [m] by the polar angle, the one equation that is left."""

        def rate(t: float, y: Array) -> list[float]:
            R, dR = np.sqrt(f(t)), 0.5 * np.cos(t) / np.sqrt(f(t))
            push = FORCE[1] * np.cos(y[0]) - FORCE[0] * np.sin(y[0])
            return [y[1], (push / MASS - 2.0 * dR * y[1]) / R]

        angle = solve_ivp(rate, (0, t), [ANGLE, TURN / 2.0], "DOP853", rtol=1e-13, atol=1e-13)
        a = angle.y[0, -1]
        R = np.sqrt(f(t))
        return np.array([R * np.cos(a), R * np.sin(a), 0.5 * FORCE[2] / MASS * t**2])


TURN = 1.4  # [m/s] around the axis at the start


@dataclass(frozen=True)
class AtSpeed(Coordinates):
    """ẋ² + ẏ² = f(t): a nonlinear row psi(v, t) without a position level.

    J = ∂psi/∂v and J v + g_t = psi, so that the filter, iterated, is Newton's method on psi.
    """

    nq: int = 3
    nv: int = 3

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state."""
        speed = v[0] ** 2 + v[1] ** 2
        J = np.array([[v[0], v[1], 0.0]])
        g_t = np.array([-0.5 * (speed + f(t))])
        gamma = np.array([-0.5 * np.cos(t)])
        M, g = MASS * np.eye(3), np.zeros(1)
        return Equations(M, FORCE.copy(), J, g, g_t, gamma, UNIT, nonlinear=True)

    @staticmethod
    def start() -> tuple[Array, Array]:
        """q [m] and v [m/s] at t = 0: from the origin at an angle of 0.3 rad."""
        return np.zeros(3), 2.0 * np.array([np.cos(ANGLE), np.sin(ANGLE), 0])

    @staticmethod
    def exact(t: float) -> Array:
        """Position (3,) [m] by the direction of the horizontal velocity (hodograph)."""

        def rate(t: float, y: Array) -> list[float]:
            R = np.sqrt(f(t))
            push = FORCE[1] * np.cos(y[0]) - FORCE[0] * np.sin(y[0])
            return [push / MASS / R, R * np.cos(y[0]), R * np.sin(y[0])]

        end = solve_ivp(rate, (0, t), [ANGLE, 0.0, 0.0], "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
        return np.array([end[1], end[2], 0.5 * FORCE[2] / MASS * t**2])
