"""Steps as functions of plain arrays with pull-backs: what frameworks of differentiation take.

A trajectory is a function of the numbers of q, v, tau and parameters at its start; its pull-back
brings gradients by the numbers of its states back to these (a vector-Jacobian product). Both are
pure: nothing is kept between them but the arguments, and the pull-back runs the trajectory again.
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.control.adjoint import Adjoint, Prices
from bulletbridge.control.trajectories import Trajectories
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.displacement import by_displacement, by_numbers, with_unit_quaternions
from bulletbridge.numerics.records import Array, array_of
from bulletbridge.system.parameters import require_known
from bulletbridge.system.system import System


class Arguments(NamedTuple):
    """What a trajectory is a function of.

    Attributes:
        q: (..., nq) configurations at the start, of as many worlds as leading dimensions say.
        v: (..., nv)
        tau: (..., steps, nv) forces on the rates in each step.
        parameters: (n,) in the order of their names, for all worlds.
    """

    q: Array
    v: Array
    tau: Array
    parameters: Array


class StepFunctions(NamedTuple):
    """Steps and trajectories of a system as functions that a framework differentiates.

    Both take and give arrays of the in the type of numbers of q; inside they are of
    double precision. Gradients are by the numbers of q, quaternions too, whose length changes
    nothing. A start that is off the loops by round-off, or by little, is closed and filtered
    first, and gradients know of it. Second derivatives are not there.

    Attributes:
        step: (q, v, tau, parameters=None, t=None) -> (q⁺, v⁺): of q (nq,), v (nv,) and forces on
            the rates tau (nv,), parameters (n,) in the order of their names, time [s], those of the
            system unless given.
        rollout: (q, v, tau, parameters=None, t=None) -> (q, v): of a start and tau (steps, nv) the
            states (steps + 1, nq) and (steps + 1, nv), the first one that start as it is closed.
    """

    step: Callable[..., Any]
    rollout: Callable[..., Any]


class DifferentiableSteps:
    """Trajectories of a system as a function of arrays, with its pull-back.

    It holds copies of the system, which is not touched later. Calls from several threads wait for
    each other.

    Args:
        system: What steps, with the options that it has now.
        parameters: Names of those that are arguments.

    Raises:
        ModelError: A parameter does not exist.
    """

    def __init__(self, system: System, parameters: Sequence[str] = ()) -> None:
        known = system.parameters
        for name in parameters:
            require_known("parameter", name, known)
        (own,) = system.fork(1)
        self.names, self.mechanism, self.t = tuple(parameters), own.mechanism, own.t
        self.values = np.array([known[name] for name in parameters], np.float64)
        self._runs, self._lock = Trajectories(own), Lock()

    def run(self, given: Arguments, t: float) -> tuple[Array, Array]:
        """States (..., steps + 1, nq) and (..., steps + 1, nv), the first one closed and filtered.

        Args:
            given: Starts, which close the loops or are near to it, forces and parameters.
            t: Time at the start [s].

        Raises:
            ModelError: Numbers do not fit, or are not possible.
            AssemblyError: A start is open.
            StepError: A step could not be finished.
        """
        worlds = self._worlds(given)
        steps, shape = given.tau.shape[-2], given.q.shape[:-1]
        Q = np.zeros((len(worlds), steps + 1, self.mechanism.nq))
        V = np.zeros((len(worlds), steps + 1, self.mechanism.nv))
        with self._lock:
            for world, q, v in zip(worlds, Q, V, strict=True):
                self._begin(world, t)
                states = self._runs.run(world.tau)
                q[:], v[:] = [at.q for at in states], [at.v for at in states]
        return Q.reshape(*shape, *Q.shape[1:]), V.reshape(*shape, *V.shape[1:])

    def pull_back(self, given: Arguments, t: float, by_q: Array, by_v: Array) -> Arguments:
        """Gradients by the arguments, from gradients by the numbers of all states of ``run``.

        What would open loops at the start counts for what is left of it once they are closed.
        Steps that have no derivatives of their own take central differences, as
        ``rollout_gradient`` has it.

        Args:
            given: As of ``run``.
            t: Likewise.
            by_q: (..., steps + 1, nq)
            by_v: (..., steps + 1, nv)

        Raises:
            UnsupportedError: Parameters are arguments, and a step has no derivatives.
            StepError: A step could not be finished.
        """
        worlds, m, n = self._worlds(given), self.mechanism, given.tau.shape[-2]
        found = Arguments(*(np.zeros_like(x, np.float64) for x in given))
        of_q, of_v = found.q.reshape(-1, m.nq), found.v.reshape(-1, m.nv)
        of_tau = found.tau.reshape(-1, n, m.nv)
        by_q = np.asarray(by_q, np.float64).reshape(len(worlds), n + 1, m.nq)
        by_v = np.asarray(by_v, np.float64).reshape(len(worlds), n + 1, m.nv)
        with self._lock:
            for k, world in enumerate(worlds):
                parameters = self._begin(world, t)

                def price(states: Array, tau: Array, k: int = k) -> Prices:
                    gradients = np.zeros((n + 1, 3 * m.nv))
                    for i, state in enumerate(states):
                        gradients[i, : m.nv] = by_displacement(m, state[: m.nq], by_q[k, i])
                    gradients[:, m.nv : 2 * m.nv] = by_v[k]
                    return Prices(np.zeros(n + 1), gradients[:n], gradients[n, : 2 * m.nv])

                swept = Adjoint(self._runs, world.tau, price, parameters).sweep()
                of_q[k] = by_numbers(m, world.q, swept.by_state[: m.nv])
                of_v[k], of_tau[k] = swept.by_state[m.nv :], swept.by_tau
                found.parameters[:] += [swept.by_parameters[name] for name in self.names]
        return found

    def _begin(self, world: Arguments, t: float) -> dict[str, float]:
        """Take the start of a world; its parameters by name."""
        values = dict(zip(self.names, world.parameters.tolist(), strict=True))
        q = with_unit_quaternions(self.mechanism, world.q)
        self._runs.begin(q, world.v, t, values)
        return values

    def _worlds(self, given: Arguments) -> list[Arguments]:
        """Each world's arguments."""
        q, v, tau, parameters = (
            array_of(name, x) for name, x in zip(Arguments._fields, given, strict=True)
        )
        m, shape = self.mechanism, q.shape[:-1]
        fits = q.ndim > 0 and tau.ndim > 1 and q.shape[-1] == m.nq and v.shape == (*shape, m.nv)
        fits &= (*tau.shape[:-2], tau.shape[-1]) == (*shape, m.nv) and tau.shape[-2] > 0
        if not fits or parameters.shape != self.values.shape:
            raise ModelError(
                f"q {q.shape}, v {v.shape}, tau {tau.shape} and parameters {parameters.shape} do"
                f" not fit: give (..., {m.nq}), (..., {m.nv}), (..., steps, {m.nv}) and"
                f" ({len(self.names)},)"
            )
        if not all(np.all(np.isfinite(x)) for x in (q, v, tau, parameters)):
            raise ModelError("q, v, tau or parameters have numbers that are not finite")
        flat = q.reshape(-1, m.nq), v.reshape(-1, m.nv), tau.reshape(-1, *tau.shape[-2:])
        return [Arguments(*parts, parameters) for parts in zip(*flat, strict=True)]
