"""Derivative of one converged step: predictor, correction and velocity filter, by their equations.

Nothing that iterates is differentiated. The correction moves the prediction by c = M₀⁻¹ J₀ᵀ ν, in
the metric and along the rows of the step's start, until g(q₁) = 0; so

    ∂(M₀ c - J₀ᵀ ν) δq₀ + M₀ δc - J₀ᵀ δν = 0        J₁ δq₁ = 0

and the filter is M (v⁺ - v) = Jᵀ μ, J v⁺ + g_t = 0 at the end of the step. Both have terms of the
size of c and μ. What is left out: the correction is taken as one displacement by the sum of its
passes, which do not commute where bodies turn; that errs by the product of two passes, of which the
second one is smaller by what the rows turn in the step.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.engine.derivatives import (
    ADMISSIBLE,
    AT_STATE,
    OF_CORRECTION,
    OF_FILTER,
    Differentiator,
)
from bulletbridge.engine.explicit import A4, C4
from bulletbridge.engine.records import (
    CORRECTION,
    DONE,
    EULER,
    ONE_OVER_UNITS,
    RK4,
    START,
    VERLET,
)
from bulletbridge.engine.step_kernel import stepping_kernel
from bulletbridge.engine.stepper import NO_RECORD, Solver
from bulletbridge.engine.tasks import STEP
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.displacement_maps import (
    CARRIED,
    RATE_BY_U,
    RATE_BY_V,
    TURNED,
    displacement_maps,
)
from bulletbridge.mechanism.kinematics import chart_rate, displace
from bulletbridge.mechanism.records import FREE, SPHERICAL
from bulletbridge.numerics.records import Array

METHODS = {EULER: "semi_implicit_euler", VERLET: "verlet", RK4: "rk4"}
LONGEST = 1e-4
"""Correction [rad or lengths] beyond which what is left out could exceed 1e-8."""


class StepDerivatives(NamedTuple):
    """A step as a linear map of small changes, in tangent coordinates at both of its ends.

    Attributes:
        A: (2 nv, 2 nv) of displacements of q and changes of v at its start to those at its end.
        B: (2 nv, nv) by forces that act through the whole step.
        q: (nq,) configuration at the end.
        v: (nv,) rates there.
    """

    A: Array
    B: Array
    q: Array
    v: Array


Change = Array
"""(nv, 3 nv) of something by displacements and rates at the start, and by forces."""


class StepDifferentiator:
    """Derivatives of the steps of one solver, from its present state.

    Args:
        solver: Whose; it is read alone.
        equations: Its derivatives at states.

    Raises:
        UnsupportedError: Its steps cannot be differentiated; the message says why.
    """

    def __init__(self, solver: Solver, equations: Differentiator) -> None:
        self._solver, self._equations = solver, equations
        self._method, self._calls = EULER, dict[int, Callable[[Any], int]]()
        _require_method(solver)
        self._turns = bool(np.isin(solver.bodies["joint"][1:], (FREE, SPHERICAL)).any())
        self._identities = np.stack([np.eye(len(solver.v))] * 4)
        self._identities[RATE_BY_U] = 0.0

    def step(self) -> StepDerivatives:
        """The step from the state of the solver.

        Raises:
            UnsupportedError: It was no plain step: it was cut in parts or corrected by other
                directions than those of its start.
        """
        solver, e = self._solver, self._equations
        _require_method(solver)
        self._method = int(solver.control[0]["integrator"])  # which may have changed
        self._q, self._v, self._t = solver.q.copy(), solver.v.copy(), solver.t
        self._dt, self._tau = float(solver.control[0]["dt"]), solver.tau[0].copy()
        self._ahead = self._dt if self._method == EULER else 0.0
        e.take(self._q, self._v, self._t, self._tau)
        targets = solver.targets(1) if solver.encoded.motions else solver.still
        failure = self._step_call()((targets, solver.forces(1), NO_RECORD, STEP, 1))
        control = e.control[0]
        if failure != DONE or control["guarded"] or control["taken"] != 1:
            raise UnsupportedError(
                f"the step from t = {self._t:.6g} s ends at a limit, is near a singular position or"
                " too long: it is no plain one, corrected along the directions of its start; take"
                " a shorter dt, or central differences of step()"
            )
        nq, nv = len(self._q), len(self._v)
        self._end_q, self._end_v = e.state[:nq].copy(), e.state[nq : nq + nv].copy()
        self._correction = e.vectors[CORRECTION, :nv].copy()
        units = solver.vectors[ONE_OVER_UNITS, :nv]
        if np.abs(self._correction * units).max(initial=0.0) > LONGEST:
            raise UnsupportedError(
                f"the step from t = {self._t:.6g} s is corrected by more than {LONGEST:g}; take a"
                " shorter dt, or central differences of step()"
            )
        unit = np.eye(nv, 3 * nv)
        self._by_q, self._by_v = unit, np.roll(unit, nv, axis=1)
        self._by_tau = np.roll(unit, 2 * nv, axis=1)
        method = {EULER: self._euler, VERLET: self._verlet, RK4: self._rk4}[self._method]
        by_q, by_v = method()
        both = np.vstack([by_q, by_v])
        return StepDerivatives(both[:, : 2 * nv], both[:, 2 * nv :], self._end_q, self._end_v)

    def _step_call(self) -> Callable[[Any], int]:
        """The kernel of the step, on arrays of our own."""
        if self._method not in self._calls:
            solver, kernel = self._solver, stepping_kernel(self._method)
            examples = solver.still, solver.tau, NO_RECORD, STEP, 1
            with announce_compilation(kernel):
                call = StoredCall(kernel, (self._equations.arrays,), examples).call
            self._calls[self._method] = call
        return self._calls[self._method]

    def _euler(self) -> tuple[Change, Change]:
        """Semi-implicit Euler: the velocity, then the configuration by it."""
        h = self._dt
        found = self._equations.at(self._q, self._v, self._t, self._tau, ADMISSIBLE, h)
        v = self._v + h * found.vdot
        by_v = self._by_v + h * found.X
        by_q, moved = self._corrected(h * v, self._displaced(h * v, self._by_q, h * by_v))
        return by_q, self._filtered(v + self._correction / h, by_q, by_v + moved / h)

    def _verlet(self) -> tuple[Change, Change]:
        """Velocity Verlet, with the two evaluations of its second half."""
        h, e = self._dt, self._equations
        found = e.at(self._q, self._v, self._t, self._tau)
        first, by_first = found.vdot.copy(), found.X.copy()
        v, by_v = self._v + 0.5 * h * first, self._by_v + 0.5 * h * by_first
        by_q, moved = self._corrected(h * v, self._displaced(h * v, self._by_q, h * by_v))
        v, by_v = v + self._correction / h, by_v + moved / h
        guess, by_guess = v + 0.5 * h * first, by_v + 0.5 * h * by_first
        second, by_second = self._accelerated(self._end_q, guess, h, by_q, by_guess)
        guess = v + 0.5 * h * second
        by_guess = self._filtered(guess, by_q, by_v + 0.5 * h * by_second)
        guess = e.found.filtered.copy()
        second, by_second = self._accelerated(self._end_q, guess, h, by_q, by_guess)
        return by_q, self._filtered(v + 0.5 * h * second, by_q, by_v + 0.5 * h * by_second)

    def _rk4(self) -> tuple[Change, Change]:
        """Runge-Kutta in the chart of the exponential maps around the start."""
        h, nv = self._dt, len(self._v)
        zero, nothing = np.zeros(nv), np.zeros((nv, 3 * nv))
        rates, by_rates, pushes, by_pushes = (list[Array]() for _ in range(4))
        for n, weights in enumerate(A4):
            u, by_u = h * _mean(weights, rates, zero), h * _mean(weights, by_rates, nothing)
            v = self._v + h * _mean(weights, pushes, zero)
            by_v = self._by_v + h * _mean(weights, by_pushes, nothing)
            by_q = self._displaced(u, self._by_q, by_u)
            if n == len(C4):
                by_q, _ = self._corrected(u, by_q)
                return by_q, self._filtered(v, by_q, by_v)
            q = self._moved(self._q, u)
            push, by_push = self._accelerated(q, v, C4[n] * h, by_q, by_v)
            rate, maps = np.empty(nv), self._maps(u, v)
            chart_rate(self._solver.bodies, u, v, rate)
            rates.append(rate)
            by_rates.append(maps[RATE_BY_V] @ by_v + maps[RATE_BY_U] @ by_u)
            pushes.append(push)
            by_pushes.append(by_push)
        raise AssertionError

    def _accelerated(
        self, q: Array, v: Array, later: float, by_q: Change, by_v: Change
    ) -> tuple[Array, Change]:
        """Acceleration at a state of the step, and what it changes by."""
        nv = len(v)
        found = self._equations.at(q, v, self._t + later, self._tau, AT_STATE, self._ahead)
        X = found.X
        changed = X[:, :nv] @ by_q + X[:, nv : 2 * nv] @ by_v + X[:, 2 * nv :] @ self._by_tau
        return found.vdot.copy(), changed

    def _filtered(self, v: Array, by_q: Change, by_v: Change) -> Change:
        """What the filtered velocity changes by at the end of the step."""
        nv, end = len(v), self._t + self._dt
        e = self._equations
        X = e.at(self._end_q, v, end, self._tau, OF_FILTER, self._ahead).X
        return X[:, :nv] @ by_q + X[:, nv : 2 * nv] @ by_v

    def _corrected(self, way: Array, by_q: Change) -> tuple[Change, Change]:
        """What the end of the step, and the correction to it, change by with the prediction."""
        e, c, nv = self._equations, self._correction, len(self._v)
        there = e.at(self._end_q, c, self._t + self._dt, self._tau, OF_CORRECTION, self._ahead)
        J = there.J.copy()
        here = e.at(self._q, c, self._t, self._tau, OF_CORRECTION, self._ahead)
        rank = int(e.control[0]["rank"])
        kept = e.rows[0]["pivot"][:rank]
        if rank == 0:
            return by_q, np.zeros_like(by_q)
        maps = self._maps(c)
        by_q = maps[CARRIED] @ by_q
        end, along = J[kept], J[kept] @ maps[TURNED]
        sides = -end @ by_q
        held = self._solver.encoded.has_position[kept]
        along[~held] = here.J[kept][~held]
        sides[~held] = here.acceleration[kept][~held, :nv] @ self._by_q
        whole = np.block([[here.M, -here.J[kept].T], [along, np.zeros((rank, rank))]])
        known = np.vstack([-here.F[:, :nv] @ self._by_q, sides])
        moved = np.asarray(np.linalg.solve(whole, known)[:nv], np.float64)
        return by_q + maps[TURNED] @ moved, moved

    def _moved(self, q: Array, u: Array) -> Array:
        """A configuration displaced."""
        there = np.empty_like(q)
        displace(self._solver.bodies, q, u, 1.0, there)
        return there

    def _maps(self, u: Array, v: Array | None = None) -> Array:
        """Differentials (4, nv, nv) of a displacement by u; see ``displacement_maps``."""
        maps = self._identities.copy()
        if self._turns:
            displacement_maps(self._solver.bodies, u, u if v is None else v, maps)
        return maps

    def _displaced(self, u: Array, by_q: Change, by_u: Change) -> Change:
        """What a configuration that is displaced by u changes by, with it and with u."""
        maps = self._maps(u)
        return np.asarray(maps[CARRIED] @ by_q + maps[TURNED] @ by_u)


def _mean(weights: Array, values: list[Array], zero: Array) -> Array:
    """Weighted sum of as many values as there are."""
    found = zero.copy()
    for weight, value in zip(weights, values, strict=False):
        if weight != 0.0:
            found += weight * value
    return found


def _require_method(solver: Solver) -> None:
    """Refuse steps that are none of ``METHODS``, or cannot be differentiated.

    Raises:
        UnsupportedError: It says what to give.
    """
    control, what = solver.control[0], ""
    if int(control["integrator"]) not in METHODS:
        what = f"steps other than those of {', '.join(METHODS.values())}"
    elif control["directions"] != START or control["passes"] >= 0:
        what = "corrections along other directions than those of the start, or of few passes"
    elif solver.asked_forces:
        what = f"the {solver.asked_forces.forces[0].what}, a function that steps ask for,"
    if what:
        raise UnsupportedError(
            f"derivatives of {what} are not known; use another integrator, or central differences"
            " of step()"
        )
