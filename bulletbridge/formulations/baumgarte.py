"""Baumgarte's stabilisation: multipliers that pull violations back like a spring with a damper.

Accelerations agree with those of the other formulations at consistent states only.
Source: Baumgarte 1972.
"""

from dataclasses import dataclass

from bulletbridge.formulations.equations import Dynamics, Solution
from bulletbridge.formulations.multipliers import solve_augmented
from bulletbridge.numerics.records import Array


@dataclass(frozen=True)
class Baumgarte:
    """J v̇ + gamma + 2 alpha (J v + g_t) + beta² g = 0.

    Attributes:
        dynamics: The system; g must be zero in rows without a position level.
        alpha, beta: Gains [1/s]; equal ones damp critically, both far below 1/dt.
    """

    dynamics: Dynamics
    alpha: float = 10.0
    beta: float = 10.0

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and multipliers at a state.

        Raises:
            UnsupportedError: Rows depend on each other there.
        """
        e = self.dynamics.equations(q, v, t)
        pulled = 2.0 * self.alpha * (e.J @ v + e.g_t) + self.beta**2 * e.g
        return solve_augmented(e._replace(gamma=e.gamma + pulled))
