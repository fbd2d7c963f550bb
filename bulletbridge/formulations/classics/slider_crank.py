"""Triple slider-crank: sliders 1 and 3 on x, slider 4 on y, a crank on slider 1, two massless rods.

Crank and rod to slider 3 are equally long, so the configurations have two components,
q3 = q1 + 2 cos q2 and q3 = q1, which meet where the crank is across, q2 = ±π/2. A torque on the
crank keeps it away from there; the source's formula for it is damaged, two readings are offered.
The crank's centre of mass on slider 1 and no gravity are choices.

Source: Haug and Pavesic 2023, example 2.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bulletbridge.formulations.equations import Coordinates, Equations
from bulletbridge.numerics.records import Array

MASS = np.array([2.0, 2.0, 1.0, 10.0, 10.0, 10.0, 2.0, 2.0, 1.0, 2.0, 2.0, 1.0])
"""Per coordinate [kg, kg, kg m²]; sliders do not turn, their inertia is arbitrary."""
CRANK, ROD = 1.0, 2.0  # [m]
X1, Y1, TURN1, X2, Y2, TURN2, X3, Y3, TURN3, X4, Y4, TURN4 = range(12)
MINIMAL = [X1, TURN2, X3, Y4]
FIXED = [Y1, TURN1, Y3, TURN3, X4, TURN4]
UNIT = np.ones(10)
RIGHT = np.pi / 2


@dataclass(frozen=True)
class SliderCrank(Coordinates):
    """Three coordinates (x, y, turn) [m, m, rad] of slider 1, crank, slider 3 and slider 4.

    Attributes:
        law: "abs" for the torque -K q2 / (π/2 - |q2|)², "sq" for -K q2 / ((π/2)² - q2²).
        K: [N m].
    """

    law: Literal["abs", "sq"] = "abs"
    K: float = 100.0
    nq: int = 12
    nv: int = 12

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state."""
        J, g, gamma = np.zeros((10, 12)), np.zeros(10), np.zeros(10)
        J[range(6), FIXED] = 1.0
        g[:6] = q[FIXED]
        J[6, [X2, X1]] = J[7, [Y2, Y1]] = 1.0, -1.0
        g[6:8] = q[[X2, Y2]] - q[[X1, Y1]]
        arm = CRANK * np.array([np.cos(q[TURN2]), np.sin(q[TURN2])])
        across = np.array([-arm[1], arm[0]])
        rod, rate = q[[X3, Y3]] - q[[X2, Y2]] - arm, v[[X3, Y3]] - v[[X2, Y2]] - across * v[TURN2]
        J[8, [X3, Y3]], J[8, [X2, Y2]], J[8, TURN2] = rod, -rod, -rod @ across
        g[8] = 0.5 * (rod @ rod - CRANK**2)
        gamma[8] = rate @ rate + rod @ arm * v[TURN2] ** 2
        rod, rate = q[[X4, Y4]] - q[[X1, Y1]], v[[X4, Y4]] - v[[X1, Y1]]
        J[9, [X4, Y4]], J[9, [X1, Y1]] = rod, -rod
        g[9], gamma[9] = 0.5 * (rod @ rod - ROD**2), rate @ rate
        f = np.zeros(12)
        f[TURN2] = self.torque(float(q[TURN2]))
        return Equations(np.diag(MASS), f, J, g, np.zeros(10), gamma, UNIT)

    def torque(self, turn: float) -> float:
        """Torque on the crank [N m] at an angle [rad]."""
        if self.K == 0.0:  # also across, where the laws are infinite
            return 0.0
        if self.law == "abs":
            return -self.K * turn / (RIGHT - abs(turn)) ** 2
        return -self.K * turn / (RIGHT**2 - turn**2)

    def energy(self, q: Array, v: Array) -> float:
        """Kinetic and potential energy [J], the latter zero at q2 = 0."""
        kinetic = float(0.5 * MASS * v @ v)
        if self.K == 0.0:  # as above
            return kinetic
        if self.law == "abs":
            left = RIGHT - abs(q[TURN2])
            potential = RIGHT / left - 1.0 + np.log(left / RIGHT)
        else:
            potential = -0.5 * np.log(1.0 - (q[TURN2] / RIGHT) ** 2)
        return kinetic + float(self.K * potential)


def place(minimal: Array, rate: Array) -> tuple[Array, Array]:
    """q (12,) and v (12,) of the source's q1 to q4 and their rates."""
    q, v = np.zeros(12), np.zeros(12)
    q[MINIMAL], v[MINIMAL] = minimal, rate
    q[X2], v[X2] = q[X1], v[X1]
    return q, v


def start(component: Literal[1, 3]) -> tuple[Array, Array]:
    """The source's start on q3 = q1 (1) or q3 = q1 + 2 cos q2 (3), energy 272 J."""
    third = 0.0 if component == 1 else ROD
    return place(np.array([0.0, 0.0, third, 2.0]), np.array([6.0, 2.0, 6.0, 0.0]))
