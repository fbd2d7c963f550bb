"""Triple slider-crank: sliders 1 and 3 on x, slider 4 on y, a crank on slider 1, two massless rods.

Crank and rod to slider 3 are equally long, so the configurations have two components,
q3 = q1 + 2 cos q2 and q3 = q1, which meet where the crank is across, q2 = ±π/2. A torque on the
crank keeps it away from there; the source's formula for it is damaged, two readings are offered.
The crank's centre of mass on slider 1 and no gravity are choices.

Source: Haug and Pavesic 2023, example 2.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.formulations.chart_kernel import (
    ChartArrays,
    CompiledEquations,
    Terms,
    find_point,
)
from bulletbridge.numerics.records import Array

MASS = np.array([2.0, 2.0, 1.0, 10.0, 10.0, 10.0, 2.0, 2.0, 1.0, 2.0, 2.0, 1.0])
"""Per coordinate [kg, kg, kg m²]; sliders do not turn, their inertia is arbitrary."""
CRANK, ROD = 1.0, 2.0  # [m]
X1, Y1, TURN1, X2, Y2, TURN2, X3, Y3, TURN3, X4, Y4, TURN4 = range(12)
MINIMAL = [X1, TURN2, X3, Y4]
RIGHT = math.pi / 2


OF_TORQUE = 12
"""Place of K in ``SliderCrank.numbers``, after the masses; then 1 for "abs", 0 for "sq"."""


def torque_at(turn: float, K: float, kinked: float) -> float:
    """Torque on the crank [N m] at an angle [rad]."""
    if K == 0.0:  # also across, where the laws are infinite
        return 0.0
    if kinked != 0.0:
        return -K * turn / (RIGHT - abs(turn)) ** 2
    return -K * turn / (RIGHT**2 - turn**2)


torque_there = helper(torque_at)


@kernel
def fill(s: Terms) -> None:
    """The equations of motion of a slider-crank with ``SliderCrank.numbers``."""
    q, v = s.q, s.v
    for k in range(12):
        s.M[k, k] = s.numbers[k]
    s.f[TURN2] = torque_there(q[TURN2], s.numbers[OF_TORQUE], s.numbers[OF_TORQUE + 1])
    row = 0
    for k in (Y1, TURN1, Y3, TURN3, X4, TURN4):
        s.J[row, k], s.g[row] = 1.0, q[k]
        row += 1
    for k in range(2):
        s.J[6 + k, X2 + k], s.J[6 + k, X1 + k] = 1.0, -1.0
        s.g[6 + k] = q[X2 + k] - q[X1 + k]
    arm_x, arm_y = CRANK * math.cos(q[TURN2]), CRANK * math.sin(q[TURN2])
    rod_x, rod_y = q[X3] - q[X2] - arm_x, q[Y3] - q[Y2] - arm_y
    fast = v[X3] - v[X2] + arm_y * v[TURN2]
    rise = v[Y3] - v[Y2] - arm_x * v[TURN2]
    s.J[8, X3], s.J[8, Y3], s.J[8, X2], s.J[8, Y2] = rod_x, rod_y, -rod_x, -rod_y
    s.J[8, TURN2] = rod_x * arm_y - rod_y * arm_x
    s.g[8] = 0.5 * (rod_x * rod_x + rod_y * rod_y - CRANK**2)
    turned = (rod_x * arm_x + rod_y * arm_y) * v[TURN2] ** 2
    s.gamma[8] = fast * fast + rise * rise + turned
    rod_x, rod_y = q[X4] - q[X1], q[Y4] - q[Y1]
    fast, rise = v[X4] - v[X1], v[Y4] - v[Y1]
    s.J[9, X4], s.J[9, Y4], s.J[9, X1], s.J[9, Y1] = rod_x, rod_y, -rod_x, -rod_y
    s.g[9] = 0.5 * (rod_x * rod_x + rod_y * rod_y - ROD**2)
    s.gamma[9] = fast * fast + rise * rise


@kernel
def find(c: ChartArrays, x: Array, dx: Array, t: float) -> int:
    """A point of a chart of a slider-crank."""
    return find_point(fill, c, x, dx, t)


@dataclass(frozen=True)
class SliderCrank(CompiledEquations):
    """Three coordinates (x, y, turn) [m, m, rad] of slider 1, crank, slider 3 and slider 4.

    Attributes:
        law: "abs" for the torque -K q2 / (π/2 - |q2|)², "sq" for -K q2 / ((π/2)² - q2²).
        K: [N m].
    """

    law: Literal["abs", "sq"] = "abs"
    K: float = 100.0
    nq: int = 12
    nv: int = 12
    rows: int = 10
    fill, find = staticmethod(fill), staticmethod(find)

    @property
    def numbers(self) -> Array:
        """What ``fill`` takes beside the state."""
        return np.array([*MASS, self.K, float(self.law == "abs")])

    def torque(self, turn: float) -> float:
        """Torque on the crank [N m] at an angle [rad]."""
        return torque_at(turn, self.K, float(self.law == "abs"))

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
