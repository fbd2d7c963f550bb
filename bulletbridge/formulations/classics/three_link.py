"""Three-link robot with springs, dampers and disturbances, its tip led along an ellipse.

Planar, absolute link angles from the x axis, gravity along -y, springs and dampers on relative
angles, sinusoidal forces on the ends of links 1 and 2. g = 9.8 m/s² is not stated in the source but
follows from its start, a static equilibrium (with 9.81 the torques miss it by 0.27 N m). Signs are
those of a Lagrange derivation; docs/errata.md lists where the source's differ.

Source: Eun, Park, Lee and Chung 2004, application II.
"""

from dataclasses import dataclass

import numpy as np

from bulletbridge.formulations.equations import Coordinates, Equations
from bulletbridge.numerics.records import Array

MASS = np.array([30.0, 30.0, 10.0])
LENGTH = np.array([1.1, 1.1, 0.5])
INERTIA = np.array([2.5, 2.5, 0.13])
STIFFNESS = (100.0, 100.0, 30.0)
DAMPING = (6.0, 6.0, 3.0)
GRAVITY = 9.8
SEMI_X, SEMI_Y, RATE = 0.3, 0.1, 5.0  # [m], [m], [rad/s]
START = np.array([2.0439, 1.3862, 0.8428])
SPEED = np.array([0.5, -1.5579, 3.2017])
"""Rates [rad/s] as printed, with the sign of the second put right."""
CONSISTENT_SPEED = np.array([0.49998131758303455, -1.5579241126176804, 3.2016552738836275])
"""SPEED after the filter in the metric of the mass matrix."""


def relative(k: tuple[float, float, float]) -> Array:
    """Stiffness or damping (3, 3) in absolute angles of elements between neighbouring links."""
    a, b, c = k
    return np.array([[a + b, -b, 0.0], [-b, b + c, -c], [0.0, -c, c]])


CARRIED = MASS[::-1].cumsum()[::-1] - 0.5 * MASS  # what the end of a link carries, its own half
DIAGONAL = INERTIA + LENGTH**2 * (CARRIED - 0.25 * MASS)
COUPLING = np.array(
    [
        [0.0, CARRIED[1], CARRIED[2]],
        [CARRIED[1], 0.0, CARRIED[2]],
        [CARRIED[2], CARRIED[2], 0.0],
    ]
) * np.outer(LENGTH, LENGTH)
SPRINGS, DAMPERS = relative(STIFFNESS), relative(DAMPING)
UNIT = np.ones(2)


def tip(q: Array) -> Array:
    """Position (2,) of the tip [m]."""
    return np.array([LENGTH @ np.cos(q), LENGTH @ np.sin(q)])


def disturbance(q: Array, t: float) -> Array:
    """Torques (3,) [N m] of the forces on the ends of links 1 and 2.

    Horizontal amplitudes 20 and 100 N, vertical ones 50 and 10 N.
    """
    x1, x2 = 20.0 * np.sin(5.0 * t), 100.0 * np.sin(3.0 * t)
    y1, y2 = 50.0 * np.sin(3.0 * t), 10.0 * np.sin(t)
    x, y = np.array([x1 + x2, x2, 0.0]), np.array([y1 + y2, y2, 0.0])
    return LENGTH * (y * np.cos(q) - x * np.sin(q))


@dataclass(frozen=True)
class ThreeLink(Coordinates):
    """Angles [rad] of three links; the rows are the errors of the tip in x and y [m]."""

    nq: int = 3
    nv: int = 3

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state."""
        c, s, square = np.cos(q), np.sin(q), v * v
        turn = q[:, None] - q
        M = COUPLING * np.cos(turn)
        M[range(3), range(3)] += DIAGONAL
        f = disturbance(q, t) - (COUPLING * np.sin(turn)) @ square
        f -= SPRINGS @ q + DAMPERS @ v + GRAVITY * CARRIED * LENGTH * c
        phase = np.pi - RATE * t
        path = tip(START) + [SEMI_X * (1.0 + np.cos(phase)), SEMI_Y * np.sin(phase)]
        lead = RATE * np.array([SEMI_X * np.sin(phase), -SEMI_Y * np.cos(phase)])
        pull = -(RATE**2) * np.array([SEMI_X * np.cos(phase), SEMI_Y * np.sin(phase)])
        J = np.array([-LENGTH * s, LENGTH * c])
        gamma = -np.array([LENGTH * c @ square, LENGTH * s @ square]) - pull
        return Equations(M, f, J, tip(q) - path, -lead, gamma, UNIT)
