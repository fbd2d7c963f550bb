"""The adjoint of a trajectory: gradients at its states, taken back to its start step by step.

From the end of the trajectory to its start, p is what the cost still to come changes by with the
state: p = the gradient at the end, then p <- Aᵀ p + the gradient at each state, with A of the exact
derivative of each step. The forces of a step have Bᵀ p. What is kept of the way there are states
alone; from these the derivatives of some steps at a time are made on the way back.
"""

from collections.abc import Callable
from math import fsum
from typing import NamedTuple

import numpy as np

from bulletbridge.control.costs import CostTerms
from bulletbridge.control.identification import NOT_NEGATIVE
from bulletbridge.control.trajectories import Trajectories
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.displacement import configuration_difference
from bulletbridge.numerics.records import Array
from bulletbridge.system.differences import richardson
from bulletbridge.system.system import System
from bulletbridge.system.tangents import Point

OF_PLACES, OF_OTHERS = 1e-5, 1e-3
"""What parameters are changed by: places in mechanism lengths, by which a step is corrected well
below what it may be; others in their own sizes, of which steps are nearly linear functions."""

FORWARD = -25 / 12, 4.0, -3.0, 4 / 3, -1 / 4
"""Weights of a forward difference of order 4, for what is not negative and is zero."""

AT_ONCE = 2**18
"""Numbers of derivatives of steps that are there at once: 2 MB, which stay near the processor."""

Price = Callable[[int, Point], CostTerms]
"""What state k of n + 1 costs, with its gradient: (3 nv,) by displacements, rates and the forces of
the step from there; of the last one (2 nv,)."""


class Swept(NamedTuple):
    """What the sweep back over a trajectory has found.

    Attributes:
        cost: Sum of the prices.
        by_state: (2 nv,) by a start that is displaced, closed and filtered.
        by_tau: (steps, nv).
        by_parameters: By name.
        end: Where the trajectory ends.
        differences: Steps whose derivatives are central differences, in their order.
        reasons: Why, each said once.
    """

    cost: float
    by_state: Array
    by_tau: Array
    by_parameters: dict[str, float]
    end: Point
    differences: list[int]
    reasons: tuple[str, ...]


class Adjoint:
    """The two sweeps over a trajectory.

    Args:
        runs: Whose start it has.
        tau: (steps, nv) forces on the rates.
        price: Of its states.
        values: Parameters by which derivatives are wanted, as they are; all that were changed.
    """

    def __init__(
        self, runs: Trajectories, tau: Array, price: Price, values: dict[str, float]
    ) -> None:
        self.runs, self.tau, self.price, self.values = runs, tau, price, values
        self.mechanism = runs.own.mechanism
        self.by_parameters = dict.fromkeys(values, 0.0)
        self.costs, self.by_tau = list[float](), np.zeros_like(tau)
        self.differences, self.reasons = list[int](), dict[str, None]()

    def sweep(self) -> Swept:
        """Forward, keeping the states, and back.

        Raises:
            UnsupportedError: Derivatives by parameters are wanted of steps that have none.
            StepError: A step could not be finished.
        """
        runs, n = self.runs, len(self.tau)
        runs.go_back(runs.start)
        states = runs.run(self.tau)
        start, end = states[0], states[-1]
        terms = self.price(n, end)
        self.costs.append(terms.value)
        p = terms.gradient
        several = max(1, AT_ONCE // (6 * runs.nv**2))
        for first in reversed(range(0, n, several)):
            p = self._back(states[first : first + several + 1], first, p)
        for name in self.values:
            self.by_parameters[name] += self._of_start(name, start, p)
        return Swept(
            fsum(self.costs),
            runs.tangents(start).closing.T @ p,
            self.by_tau,
            self.by_parameters,
            end,
            self.differences[::-1],
            tuple(self.reasons),
        )

    def _back(self, states: list[Point], first: int, p: Array) -> Array:
        """Take p (2 nv,) from the end of some steps to their start."""
        n, parts, adjoints = 2 * self.runs.nv, self.runs.of_each(states), list[Array]()
        for k in reversed(range(len(states) - 1)):
            part = parts[k]
            if part.why:
                self.differences.append(first + k)
                self.reasons[part.why] = None
                if self.values:
                    raise UnsupportedError(
                        f"derivatives by parameters are wanted, and in step {first + k} {part.why}"
                    )
            terms = self.price(first + k, states[k])
            self.costs.append(terms.value)
            adjoints.append(p)
            back = p @ part.changes + terms.gradient
            p, self.by_tau[first + k] = back[:n], back[n:]
        for name in self.values:
            self.by_parameters[name] += self._of_steps(name, states, adjoints[::-1])
        return p

    def _of_steps(self, name: str, states: list[Point], adjoints: list[Array]) -> float:
        """What steps lead elsewhere by with a parameter, from the same states, times p after."""
        runs, near = self.runs, self.runs.near

        def ends(x: float) -> Array:
            start = states[0]
            self._start_near(start, name, x)
            found = 0.0
            for at, after, p in zip(states[:-1], states[1:], adjoints, strict=True):
                runs.put_near(at)
                near.step(write=False)
                found += float(p @ self._away(near, after))
            return np.array([found])

        return self._by(name, ends, states[0])

    def _of_start(self, name: str, start: Point, p: Array) -> float:
        """What the start moves by with a parameter, to be closed, times p."""
        near = self.runs.near

        def begin(x: float) -> Array:
            self._start_near(start, name, x)
            return np.array([p @ self._away(near, start)])

        return self._by(name, begin, start)

    def _by(self, name: str, see: Callable[[float], Array], start: Point) -> float:
        value = self.values[name]
        of_place = name.rpartition(".")[2] in "xyz" and not name.startswith("gravity")
        reach = OF_PLACES * self.runs.length if of_place else OF_OTHERS * (abs(value) or 1.0)
        if name.rpartition(".")[2] in NOT_NEGATIVE and value < 2.0 * reach:
            seen = np.array([see(k * reach) for k in range(len(FORWARD))])
            found = np.array(FORWARD) @ seen / reach
        else:
            found = richardson(see, reach)[0]
        self._start_near(start, name, 0.0)
        return float(found[0])

    def _start_near(self, start: Point, name: str, x: float) -> None:
        """Take the copy for derivatives to a start, with one parameter changed by x."""
        values = self.values | {name: self.values[name] + x}
        self.runs.near.start_from((start.q, start.v, start.t), values)

    def _away(self, system: System, from_: Point) -> Array:
        """Tangent coordinates (2 nv,) of the state of a system, from another one."""
        dq = configuration_difference(self.mechanism, np.array(system.q), from_.q)
        return np.concatenate([dq, system.v - from_.v])
