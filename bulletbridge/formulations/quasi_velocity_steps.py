"""Runge-Kutta of order 4 on q and reduced quasi-velocities, (q, v_r), as Aghili integrates them.

q moves by the velocity that v_r stands for, v̇_r = u_r - Gamma_r v_r. Whatever v_r is, velocities
satisfy the rows: without a filter to round-off, while positions err as the method does. Bases of
the stages are turned to the one at the start of the step, so that v_r is one function of time.

Source: Aghili 2008, eq. 30 and 33, with an aligned basis in place of a smooth one.
"""

import numpy as np

from bulletbridge.errors import StepError, UnsupportedError
from bulletbridge.formulations.equations import Dynamics, Formulation
from bulletbridge.formulations.moving import moving
from bulletbridge.formulations.quasi_velocities import basis_of
from bulletbridge.formulations.quasi_velocity_rates import alignment, basis_rates
from bulletbridge.numerics.records import Array


class QuasiVelocities:
    """(q, v_r) near a configuration.

    Args:
        formulation: Accelerations.
        dynamics: The system.
        q: Configuration whose basis others are turned to.
        t: Time [s].
    """

    def __init__(self, formulation: Formulation, dynamics: Dynamics, q: Array, t: float) -> None:
        self._formulation, self._dynamics = formulation, dynamics
        self._still = np.zeros(dynamics.nv)
        e = dynamics.equations(q, self._still, t)
        if e.nonlinear:
            raise UnsupportedError(
                "quasi-velocities need rows that are linear in the velocity; use rk4"
            )
        self._start = basis_of(e)

    def reduce(self, v: Array) -> Array:
        """v_r (dof,) of a velocity at the start."""
        return self._start.reduce(v)

    def rates(self, q: Array, v_r: Array, t: float) -> tuple[Array, Array]:
        """The velocity (nv,) by which q moves, and the rate of v_r (dof,).

        Raises:
            StepError: The free directions there are others than at the start.
        """
        here, start = moving(self._dynamics, q, self._still, t), self._start
        basis = basis_of(here.equations)
        if basis.V_2.shape != start.V_2.shape:
            raise StepError("the number of freedoms changes within the step; use a smaller dt")
        basis = basis.aligned(start.V_2)
        v = basis.expand(v_r, here.equations.g_t)
        rates = basis_rates(basis, *here.matrix_rates(v))
        turn = alignment(basis.V_2, rates.V_2, start.V_2, np.zeros_like(start.V_2))
        if not turn.nearness > 0.0:
            raise StepError("free directions turn by a right angle in a step; use a smaller dt")
        vdot = self._formulation(q, v, t).vdot
        return v, turn.rate.T @ v_r + rates.reduce(basis, v) + basis.reduce(vdot)

    def velocity(self, q: Array, v_r: Array, t: float) -> Array:
        """The velocity (nv,) of v_r at a configuration."""
        e = self._dynamics.equations(q, self._still, t)
        basis = basis_of(e)
        if basis.V_2.shape != self._start.V_2.shape:
            raise StepError("the number of freedoms changes within the step; use a smaller dt")
        return basis.aligned(self._start.V_2).expand(v_r, e.g_t)
