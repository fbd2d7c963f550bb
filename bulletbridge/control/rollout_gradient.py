"""What a trajectory's cost changes by with its start, forces and parameters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bulletbridge.control.adjoint import Adjoint, Price, Prices
from bulletbridge.control.costs import FinalCost, Priced, RunningCost
from bulletbridge.control.trajectories import Trajectories
from bulletbridge.errors import ModelError, UnsupportedError
from bulletbridge.mechanism.by_joint import rate_names
from bulletbridge.numerics.records import Array, Ints, array_of
from bulletbridge.system.parameters import require_known
from bulletbridge.system.system import System


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
        differences: Steps whose derivatives are central differences, or those of a step that begins
            in the same state and leads elsewhere, in their order.
        at_rest: Steps in which contacts rest, 1e-7 m from a kink by places at most: derivatives are
            for changes that stay on this side of it.
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
    at_rest: Ints
    reasons: tuple[str, ...]

    def __repr__(self) -> str:
        """Cost, steps, in how many contacts rest, and how many are known by differences."""
        how = f", {len(self.differences)} by differences" if len(self.differences) else ""
        how += f", {len(self.at_rest)} with contacts at rest" if len(self.at_rest) else ""
        return f"<RolloutGradient: cost {self.cost:.6g} of {len(self.by_tau)} steps{how}>"


def rollout_gradient(
    system: System,
    tau: Array,
    running: RunningCost | None = None,
    final: FinalCost | None = None,
    *,
    parameters: Sequence[str] = (),
    smoothing: float = 0.0,
) -> RolloutGradient:
    """The gradient of what a trajectory costs by its start, its forces and parameters.

    The cost is the sum of ``running(q, v, tau, t)`` over the states that steps begin in, and of
    ``final(q, v, t)``. Both give a number, or residuals whose squares are summed, of which central
    differences are taken; or ``CostTerms``, with derivatives of their own.

    Derivatives of steps are those of ``step_derivatives``. Steps that have none, as where an active
    set is about to change, are differentiated as ``linearise`` does, by central differences;
    ``differences`` and ``reasons`` say which ones they were, why, and which have a kink nearby.

    Args:
        system: Its state is the start; nothing of it changes.
        tau: (steps, nv) forces on the rates, held over each step.
        running: Of each step; nothing unless given.
        final: Of the end.
        parameters: Names of ``system.parameters`` by which derivatives are wanted. What opens the
            loops moves the start as ``set_parameters`` does. Each takes four runs more, in pieces.
        smoothing: Of contacts [J], see ``System.step_derivatives``: the trajectory, its cost and
            the gradient are those of smooth contacts. Zero for ideal ones.

    Raises:
        ModelError: Forces do not fit, a cost is no number, a parameter does not exist, or the start
            is singular.
        UnsupportedError: Derivatives by parameters are wanted of steps that have none by equations,
            or of smooth contacts; or these are not known there.
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
    if smoothing and parameters:
        raise UnsupportedError("derivatives by parameters of smooth contacts are not known")
    values = {name: system.parameters[name] for name in parameters}
    runs = Trajectories(system, smoothing)
    try:
        price = _prices(runs, running, final)
        found = Adjoint(runs, forces, price, values).sweep()
    finally:
        runs.end()
    names = rate_names(system.mechanism)
    return RolloutGradient(
        found.cost,
        found.by_state,
        found.by_tau,
        found.by_parameters,
        (*names, *(f"{name}.rate" for name in names)),
        found.end.q,
        found.end.v,
        np.array(found.differences, np.int64),
        np.array(found.at_rest, np.int64),
        found.reasons,
    )


def _prices(runs: Trajectories, running: RunningCost | None, final: FinalCost | None) -> Price:
    """What the states of a trajectory cost."""
    mechanism, nv = runs.mechanism, runs.nv
    of_steps = Priced(mechanism, running, None, runs.lengths)
    of_end = Priced(mechanism, None, final, runs.lengths)

    def price(states: Array, tau: Array) -> Prices:
        end = of_end.expansion(runs.point(states[-1], tau[-1]), np.eye(2 * nv), curved=False)
        values, gradients = of_steps.along(states[:-1], tau)
        return Prices(np.append(values, end.value), gradients, end.gradient)

    return price
