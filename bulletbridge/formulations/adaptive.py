"""DOP853 with error control from scipy, for formulations in Python."""

from collections.abc import Callable

import numpy as np

from bulletbridge.engine.records import DONE, NOT_FINITE
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.tasks import PROJECT
from bulletbridge.errors import StepError
from bulletbridge.formulations.equations import Dynamics, Formulation
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.mechanism.kinematics import chart_rate, displace
from bulletbridge.numerics.records import Array


class Adaptive:
    """Advances a solver by one output step in as many internal steps as the tolerance needs.

    Coordinates are the exponential chart at the start of the output step. Its end is corrected and
    filtered. Rank is held at ``Tolerances.singular``, so that the error control never tries to
    resolve a singular position.

    Args:
        rtol, atol: Tolerances.
        make: The formulation of a system.
    """

    def __init__(self, rtol: float, atol: float, make: Callable[[Dynamics], Formulation]) -> None:
        self.rtol, self.atol, self.make = rtol, atol, make
        self.first_step: float | None = None

    def memory(self) -> float | None:
        """First internal step of the next output step [s], if one is known."""
        return self.first_step

    def recall(self, memory: float | None) -> None:
        """Go on from a memory; from none as at the start."""
        self.first_step = memory

    def step(self, solver: Solver, dt: float) -> int:
        """Advance the solver's state by dt [s]; return the failure of the correction, or DONE.

        Raises:
            StepError: The error control gave up; the state is that before the step.
        """
        before, failure = solver.state.copy(), NOT_FINITE
        try:
            failure = self._advance(solver, before, dt)
        finally:  # formulations and users' constraints may raise
            if failure != DONE:
                solver.state[:], solver.control[0]["factored"] = before, 0
        return failure

    def _advance(self, solver: Solver, before: Array, dt: float) -> int:
        """Advance from the state ``before``; what ``step`` does, without restoring it."""
        from scipy.integrate import DOP853

        nq, nv = len(solver.q), len(solver.v)
        q0, t0, u, rate = before[:nq], before[-1], np.zeros(nv), np.zeros(nv)
        formulation = self.make(SystemDynamics(solver, finite=True))

        def derivative(t: float, y: Array) -> Array:
            u[:] = y[:nv]
            displace(solver.bodies, q0, u, 1.0, solver.q)
            solver.v[:], solver.state[-1] = y[nv:], t0 + t
            vdot = formulation(solver.q.copy(), solver.v.copy(), solver.t).vdot
            chart_rate(solver.bodies, u, solver.v, rate)
            return np.concatenate([rate, vdot])

        start = np.concatenate([np.zeros(nv), before[nq : nq + nv]])
        first = None if self.first_step is None else min(self.first_step, dt)
        method = DOP853(
            derivative, 0.0, start, dt, rtol=self.rtol, atol=self.atol, first_step=first
        )
        while method.t < dt:
            message = method.step()
            if message is not None or not np.all(np.isfinite(method.y)):
                raise StepError(
                    f"DOP853 gave up at t = {t0 + method.t:.6g} s ({message}); the state at "
                    f"{t0:.6g} s was restored; use a larger rtol or a fixed-step integrator"
                )
        # the last internal step is cut to end at dt: it says little about the next one
        self.first_step = method.h_abs
        u[:] = method.y[:nv]
        displace(solver.bodies, q0, u, 1.0, solver.q)
        solver.v[:], solver.state[-1] = method.y[nv:], t0 + dt
        return solver.run(PROJECT)
