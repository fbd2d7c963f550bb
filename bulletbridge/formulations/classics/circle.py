"""Two-dof robot whose tip stays on a circle: the smallest system with a closed form.

Two prismatic joints at right angles carry masses m_1 and m_2 and hold the tip on q_1² + q_2² = R².
Without forces v_r is constant, and the angle follows from an elliptic integral.

Source: Aghili 2008, section on the example, eq. 50-53; v_r in the form that is regular everywhere.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ellipe, ellipeinc

from bulletbridge.formulations.equations import Coordinates, Equations
from bulletbridge.numerics.records import Array


@dataclass(frozen=True)
class CircleRobot(Coordinates):
    """Masses m_1, m_2 [kg] on a circle of radius R [m]; one row, half of q_1² + q_2² - R².

    ``metre`` is how many units of length a metre has: 1e3 for a model in millimetres.
    """

    m_1: float = 2.0
    m_2: float = 3.0
    R: float = 0.5
    metre: float = 1.0
    nq: int = 2
    nv: int = 2

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state, in the unit of length; the row is divided by R."""
        R = self.R * self.metre
        M = np.diag([self.m_1, self.m_2]) / self.metre**2
        J = q.reshape(1, 2) / R
        g = np.array([(q @ q / R - R) / 2])
        unit = np.array([1 / R])
        return Equations(M, np.zeros(2), J, g, np.zeros(1), np.array([v @ v / R]), unit)

    def state(self, phi: float, phi_rate: float) -> tuple[Array, Array]:
        """Position (2,) and velocity (2,) at an angle [rad] and its rate [rad/s]."""
        R, c, s = self.R * self.metre, np.cos(phi), np.sin(phi)
        return R * np.array([c, s]), R * phi_rate * np.array([-s, c])

    def v_r(self, phi: float, phi_rate: float) -> float:
        """The quasi-velocity [sqrt(kg) m/s]: R sqrt(m_1 sin² + m_2 cos²) times the rate."""
        return float(self._speed(phi)) * phi_rate

    def angle(self, t: float, phi_rate: float) -> float:
        """Angle [rad] at a time [s] of free motion from zero, for m_1 <= m_2."""
        done = self.v_r(0.0, phi_rate) * t
        k = 1 - self.m_1 / self.m_2

        def left(phi: float) -> float:
            return self.R * np.sqrt(self.m_2) * float(ellipeinc(phi, k)) - done

        bound = 1.0 + abs(done) / (self.R * np.sqrt(min(self.m_1, self.m_2)))
        return float(brentq(left, -bound, bound, xtol=1e-15, rtol=1e-15))

    def period(self, phi_rate: float) -> float:
        """Time [s] of one turn of free motion, for m_1 <= m_2."""
        turn = 4 * self.R * np.sqrt(self.m_2) * float(ellipe(1 - self.m_1 / self.m_2))
        return turn / abs(self.v_r(0.0, phi_rate))

    def _speed(self, phi: float) -> float:
        c, s = np.cos(phi), np.sin(phi)
        return float(self.R * np.sqrt(self.m_1 * s * s + self.m_2 * c * c))
