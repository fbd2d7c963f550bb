"""Plants of controllers: actuated joints, and desired motions."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bulletbridge.control.distribution import Distribution, Names
from bulletbridge.control.inverse_dynamics import distribution, undriven
from bulletbridge.formulations.equations import Dynamics
from bulletbridge.formulations.quasi_velocities import Root
from bulletbridge.formulations.quasi_velocity_rates import STENCIL, STEP
from bulletbridge.mechanism.displacement import configuration_difference
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System


class Desired(NamedTuple):
    """Wanted configuration, velocity and acceleration at a time.

    Attributes:
        q: (nq,).
        v: (nv,).
        vdot: (nv,).
    """

    q: Array
    v: Array
    vdot: Array


@dataclass(frozen=True)
class Plant:
    """What a controller acts on.

    Attributes:
        dynamics: Equations of motion without the controller's forces.
        distribution: Which rates it may push.
        difference: (q, q_d) to the velocity (nv,) that takes q_d to q in a unit of time.
        root: Square root of M; joint forces do not depend on it.
    """

    dynamics: Dynamics
    distribution: Distribution
    difference: Callable[[Array, Array], Array]
    root: Root = "tree"

    def error_rate(self, q: Array, v: Array, desired: Desired) -> Array:
        """Rate (nv,) of the difference of two configurations that both move."""
        speed = max(float(np.abs(v).max()), float(np.abs(desired.v).max()))
        h = STEP / max(speed, 1.0)
        rate, displace = np.zeros(self.dynamics.nv), self.dynamics.displace
        for k, weight in STENCIL:
            for step, sign in ((k * h, weight / h), (-k * h, -weight / h)):
                there = displace(desired.q, step * desired.v)
                rate += sign * self.difference(displace(q, step * v), there)
        return rate


def plant_of(
    system: System,
    actuated: Collection[str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Plant:
    """A system as a plant; set its ``tau`` to what the law gives before each step.

    Args:
        system: Any loaded robot.
        actuated: Names of the joints that may act; all but floating bases and beams unless
            given.
        weights: See ``Distribution``.

    Raises:
        ModelError: A joint does not exist, or a weight is not positive.
    """
    joints = tuple(system.mechanism.joints.values())

    def difference(q: Array, q_d: Array) -> Array:
        return configuration_difference(joints, system.mechanism.nv, q, q_d)

    return Plant(undriven(system), distribution(system, actuated, weights), difference)


def plain_plant(dynamics: Dynamics) -> Plant:
    """Any dynamics as a plant, all its rates actuated, the rates those of its coordinates."""
    nv = dynamics.nv
    rows = len(dynamics.equations(np.ones(dynamics.nq), np.zeros(nv), 0.0).g)
    names = Names([f"rate {k}" for k in range(nv)], [f"row {k}" for k in range(rows)])
    return Plant(dynamics, Distribution(np.ones(nv, bool), np.ones(nv), names), np.subtract)
