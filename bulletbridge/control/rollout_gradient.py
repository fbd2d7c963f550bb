"""What a trajectory's cost changes by with its start, forces and parameters: the adjoint of steps.

From the end of the trajectory to its start, p is what the cost still to come changes by with the
state: p = final's gradient, then p <- Aᵀ p + running's gradient, step by step, with A of the exact
derivative of each. The forces of a step have Bᵀ p. States are kept at every √n-th of n steps alone,
and between two of them run again, so that no more than 2 √n are there at once (Griewank and
Walther, *Evaluating Derivatives*, 2008, ch. 12).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum, isqrt

import numpy as np

from bulletbridge.control.costs import FinalCost, Priced, RunningCost
from bulletbridge.control.identification import NOT_NEGATIVE
from bulletbridge.control.trajectories import Trajectories
from bulletbridge.errors import ModelError, UnsupportedError
from bulletbridge.mechanism.by_joint import rate_names
from bulletbridge.mechanism.displacement import configuration_difference
from bulletbridge.numerics.records import Array, Ints, array_of
from bulletbridge.system.differences import richardson
from bulletbridge.system.parameters import require_known
from bulletbridge.system.system import System
from bulletbridge.system.tangents import Point

OF_PLACES, OF_OTHERS = 1e-5, 1e-3
"""What parameters are changed by: places in mechanism lengths, by which a step is corrected well
below what it may be; others in their own sizes, of which steps are nearly linear functions."""

FORWARD = -25 / 12, 4.0, -3.0, 4 / 3, -1 / 4
"""Weights of a forward difference of order 4, for what is not negative and is zero."""


@dataclass(frozen=True, eq=False, repr=False)
class RolloutGradient:
    """The cost of a trajectory, and what it changes by.

    Attributes:
        cost: Sum of the running costs and the final one.
        by_state: (2 nv,) by displacements of q and changes of v at the start. What would open a
            loop counts for what is left of it once closed and filtered, as ``set_state`` does.
        by_tau: (steps, nv) by the forces on the rates in each step.
        by_parameters: By name.
        states: (2 nv,) names: rates that displace, by joint, then ``.rate`` of each.
        q: (nq,) where the trajectory ends.
        v: (nv,) there.
        differences: Steps whose derivatives are central differences, in their order.
        reasons: Why, each said once.
    """

    cost: float
    by_state: Array
    by_tau: Array
    by_parameters: dict[str, float]
    states: tuple[str, ...]
    q: Array
    v: Array
    differences: Ints
    reasons: tuple[str, ...]

    def __repr__(self) -> str:
        """Cost, steps, and how many of them were differentiated by differences."""
        how = f", {len(self.differences)} by differences" if len(self.differences) else ""
        return f"<RolloutGradient: cost {self.cost:.6g} of {len(self.by_tau)} steps{how}>"


def rollout_gradient(
    system: System,
    tau: Array,
    running: RunningCost | None = None,
    final: FinalCost | None = None,
    *,
    parameters: Sequence[str] = (),
) -> RolloutGradient:
    """The gradient of what a trajectory costs by its start, its forces and parameters.

    The cost is the sum of ``running(q, v, tau, t)`` over the states that steps begin in, and of
    ``final(q, v, t)``. Both give a number, or residuals whose squares are summed, of which central
    differences are taken; or ``CostTerms``, with derivatives of their own.

    Derivatives of steps are those of ``step_derivatives``. Steps that have none, as with motors,
    limits or contacts, are differentiated as ``linearise`` does, by central differences from the
    state alone; ``differences`` and ``reasons`` say which ones they were, and why.

    Args:
        system: Its state is the start; nothing of it changes.
        tau: (steps, nv) forces on the rates, held over each step.
        running: Of each step; nothing unless given.
        final: Of the end.
        parameters: Names of ``system.parameters`` by which derivatives are wanted. What opens the
            loops moves the start as ``set_parameters`` does. Each takes four runs more, in pieces.

    Raises:
        ModelError: Forces do not fit, a cost is no number, a parameter does not exist, or the start
            is singular.
        UnsupportedError: Derivatives by parameters are wanted of steps that have none by equations.
        StepError: A step could not be finished.
    """
    forces = array_of("tau", tau)
    nv = system.mechanism.nv
    if forces.ndim != 2 or forces.shape[1] != nv or not len(forces):
        raise ModelError(f"tau {forces.shape} is not (steps, {nv}), the forces of each step")
    if not np.all(np.isfinite(forces)):
        raise ModelError("tau has numbers that are not finite; set all of them")
    for name in parameters:
        require_known("parameter", name, system.parameters)
    try:
        return Adjoint(system, forces, running, final, parameters).sweep()
    finally:
        if system.finds_contacts:  # Bullet may have been shown other states
            system.write()


class Adjoint:
    """The two sweeps over a trajectory.

    Args:
        system: Where it starts.
        tau: (steps, nv).
        running: Cost of a step.
        final: Cost of the end.
        parameters: Names.
    """

    def __init__(
        self,
        system: System,
        tau: Array,
        running: RunningCost | None,
        final: FinalCost | None,
        parameters: Sequence[str],
    ) -> None:
        self.trajectories, self.tau = Trajectories(system), tau
        mechanism, known = system.mechanism, system.parameters
        self.nv, self.mechanism = mechanism.nv, mechanism
        lengths = self.trajectories.lengths
        self.running = Priced(mechanism, running, None, lengths)
        self.final = Priced(mechanism, None, final, lengths)
        self.values = {name: known[name] for name in parameters}
        self.by_parameters = dict.fromkeys(parameters, 0.0)
        self.costs, self.by_tau = list[float](), np.zeros_like(tau)
        self.differences, self.reasons = list[int](), dict[str, None]()

    def sweep(self) -> RolloutGradient:
        """Forward, keeping some states, and back."""
        runs, n = self.trajectories, len(self.tau)
        apart = max(1, isqrt(n - 1) + 1)
        kept = [runs.start]
        for first in range(0, n - apart, apart):
            runs.run(self.tau[first : first + apart])
            kept.append(runs.own.save(world=False))
        start = end = runs.here(self.tau[-1])
        p = np.zeros(2 * self.nv)
        for k in reversed(range(len(kept))):
            first, last = k * apart, min(n, (k + 1) * apart)
            runs.go_back(kept[k])
            states = runs.run(self.tau[first:last])
            if last == n:
                end = states[-1]
                terms = self.final.gradient(end, np.eye(2 * self.nv))
                self.costs.append(terms.value)
                p = terms.gradient
            p, start = self._back(states, first, p), states[0]
            del kept[k]  # so that there are fewer
        for name in self.values:
            self.by_parameters[name] += self._of_start(name, start, p)
        names = rate_names(self.mechanism)
        return RolloutGradient(
            fsum(self.costs),
            runs.tangents(start).closing.T @ p,
            self.by_tau,
            self.by_parameters,
            (*names, *(f"{name}.rate" for name in names)),
            end.q,
            end.v,
            np.array(self.differences[::-1], np.int64),
            tuple(self.reasons),
        )

    def _back(self, states: list[Point], first: int, p: Array) -> Array:
        """Take p (2 nv,) from the end of some steps to their start."""
        nv, ways, rates = self.nv, np.eye(3 * self.nv), np.arange(self.nv)
        adjoints = list[Array]()
        for k in reversed(range(len(states) - 1)):
            part = self.trajectories.derivatives(states[k], 1, rates)
            if part.why:
                self.differences.append(first + k)
                self.reasons[part.why] = None
                if self.values:
                    raise UnsupportedError(
                        f"derivatives by parameters are wanted, and in step {first + k} {part.why}"
                    )
            terms = self.running.gradient(states[k], ways)
            self.costs.append(terms.value)
            adjoints.append(p)
            self.by_tau[first + k] = part.B.T @ p + terms.gradient[2 * nv :]
            p = part.A.T @ p + terms.gradient[: 2 * nv]
        for name in self.values:
            self.by_parameters[name] += self._of_steps(name, states, adjoints[::-1])
        return p

    def _of_steps(self, name: str, states: list[Point], adjoints: list[Array]) -> float:
        """What steps lead elsewhere by with a parameter, from the same states, times p after."""
        runs, near = self.trajectories, self.trajectories.near

        def ends(x: float) -> Array:
            start = states[0]
            near.start_from((start.q, start.v, start.t), {name: self.values[name] + x})
            found = 0.0
            for at, after, p in zip(states[:-1], states[1:], adjoints, strict=True):
                runs.put_near(at)
                near.step(write=False)
                found += float(p @ self._away(near, after))
            return np.array([found])

        return self._by(name, ends, states[0])

    def _of_start(self, name: str, start: Point, p: Array) -> float:
        """What the start moves by with a parameter, to be closed, times p."""
        near = self.trajectories.near

        def begin(x: float) -> Array:
            near.start_from((start.q, start.v, start.t), {name: self.values[name] + x})
            return np.array([p @ self._away(near, start)])

        return self._by(name, begin, start)

    def _by(self, name: str, see: Callable[[float], Array], start: Point) -> float:
        value, near = self.values[name], self.trajectories.near
        of_place = name.rpartition(".")[2] in "xyz" and not name.startswith("gravity")
        reach = (
            OF_PLACES * self.trajectories.length if of_place else OF_OTHERS * (abs(value) or 1.0)
        )
        if name.rpartition(".")[2] in NOT_NEGATIVE and value < 2.0 * reach:
            seen = np.array([see(k * reach) for k in range(len(FORWARD))])
            found = np.array(FORWARD) @ seen / reach
        else:
            found = richardson(see, reach)[0]
        near.start_from((start.q, start.v, start.t), {name: value})
        return float(found[0])

    def _away(self, system: System, from_: Point) -> Array:
        """Tangent coordinates (2 nv,) of the state of a system, from another one."""
        dq = configuration_difference(self.mechanism, np.array(system.q), from_.q)
        return np.concatenate([dq, system.v - from_.v])
