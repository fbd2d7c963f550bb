"""Plants of controllers: actuated joints, and desired motions."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bulletbridge.control.distribution import Distribution
from bulletbridge.control.inverse_dynamics import distribution, undriven
from bulletbridge.errors import ModelError
from bulletbridge.formulations.equations import Dynamics
from bulletbridge.mechanism.kinematics import separation
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


Separation = Callable[[Array, Array, Array, Array], tuple[Array, Array]]
"""(q, v, q_d, v_d) to the velocity (nv,) that takes q_d to q in a unit of time, and its rate."""


@dataclass(frozen=True)
class Plant:
    """What a controller acts on.

    Attributes:
        dynamics: Equations of motion without the controller's forces.
        distribution: Which rates it may push.
        separation: How far two configurations are apart, and how fast.
    """

    dynamics: Dynamics
    distribution: Distribution
    separation: Separation

    def __repr__(self) -> str:
        """What may be pushed, of how much."""
        share = self.distribution
        pushed = [n for n, on in zip(share.names.rates, share.actuated, strict=True) if on]
        return f"<Plant: {', '.join(pushed)} act, of {self.dynamics.nv} rates>"

    def wanted(self, given: object) -> Desired:
        """What a user's function of time gives, if it can be meant."""
        if not isinstance(given, Desired):
            raise ModelError(f"desired(t) gave {given!r}; give bb.Desired(q, v, vdot)")
        nq, nv = self.dynamics.nq, self.dynamics.nv
        if (np.shape(given.q), np.shape(given.v), np.shape(given.vdot)) != ((nq,), (nv,), (nv,)):
            raise ModelError(f"desired(t) needs {nq} positions, {nv} rates and {nv} accelerations")
        return given

    def difference(self, q: Array, q_d: Array) -> Array:
        """Velocity (nv,) that takes q_d to q in a unit of time: turns by rotation vectors."""
        still = np.zeros(self.dynamics.nv)
        return self.separation(q, still, q_d, still)[0]


def plant_of(
    system: System,
    actuated: Collection[str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Plant:
    """A system as a plant; set its ``tau`` to what the law gives before each step.

    Args:
        system: Any loaded robot.
        actuated: Names of the joints that may act, as of ``inverse_dynamics``.
        weights: See ``Distribution``.

    Raises:
        ModelError: A joint does not exist, or a weight is not positive.
    """
    bodies, nv = system.mechanism.bodies, system.mechanism.nv

    def separate(q: Array, v: Array, q_d: Array, v_d: Array) -> tuple[Array, Array]:
        q, v, q_d, v_d = (np.asarray(given, np.float64) for given in (q, v, q_d, v_d))
        x, rate = np.empty(nv), np.empty(nv)
        separation(bodies, q, v, q_d, v_d, x, rate)
        return x, rate

    return Plant(undriven(system), distribution(system, actuated, weights), separate)
