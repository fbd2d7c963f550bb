"""The adjoint of a trajectory: gradients at its states, taken back to its start step by step.

From the end of the trajectory to its start, p is what the cost still to come changes by with the
state: p = the gradient at the end, then p <- Aᵀ p + the gradient at each state, with A of the exact
derivative of each step. The forces of a step have Bᵀ p. Plain steps are kept with their factors on
the way there, and p is taken back through them without A and B (``engine.step_adjoint``). Steps
with contacts are differentiated on the way there. Of others, or if that takes too much room, states
alone are kept: some steps at a time are made once more, and where one is not plain its A and B are.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.control.identification import NOT_NEGATIVE
from bulletbridge.control.trajectories import KnownSteps, Trajectories
from bulletbridge.engine.step_adjoint import StepAdjoint
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.displacement import configuration_difference, configuration_differences
from bulletbridge.numerics.pulled_back import pull_back_changes
from bulletbridge.numerics.records import Array, Mask
from bulletbridge.system.differences import Differences, richardson
from bulletbridge.system.system import System
from bulletbridge.system.tangents import Point

OF_PLACES, OF_OTHERS = 1e-5, 1e-3
"""What parameters are changed by: places in mechanism lengths, by which a step is corrected well
below what it may be; others in their own sizes, of which steps are nearly linear functions."""

FORWARD = -25 / 12, 4.0, -3.0, 4 / 3, -1 / 4
"""Weights of a forward difference of order 4, for what is not negative and is zero."""

AT_ONCE = 2**18
"""Numbers of derivatives of steps that are there at once: 2 MB, which stay near the processor."""


class Prices(NamedTuple):
    """What the states of a trajectory of n steps cost.

    Attributes:
        values: (n + 1,) each state, the last one by the final cost.
        of_steps: (n, 3 nv) gradients by displacements, rates and the forces of the step from there.
        of_end: (2 nv,) of the last state.
    """

    values: Array
    of_steps: Array
    of_end: Array


Price = Callable[[Array, Array], Prices]
"""Of states (n + 1, nq + nv + 1), q, v and t, and forces (n, nv) of the steps between them."""


class Swept(NamedTuple):
    """What the sweep back over a trajectory has found.

    Attributes:
        cost: Sum of the prices.
        by_state: (2 nv,) by a start that is displaced, closed and filtered.
        by_tau: (steps, nv).
        by_parameters: By name.
        end: Where the trajectory ends.
        differences: Steps whose derivatives are central differences, in their order.
        at_rest: Steps in which contacts rest, likewise.
        reasons: Why, each said once.
    """

    cost: float
    by_state: Array
    by_tau: Array
    by_parameters: dict[str, float]
    end: Point
    differences: list[int]
    at_rest: list[int]
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
        self.mechanism = runs.mechanism
        self.by_parameters = dict.fromkeys(values, 0.0)
        self.by_tau = np.zeros(tau.shape)
        self.differences, self.at_rest = list[int](), list[int]()
        self.reasons = dict[str, None]()

    def sweep(self) -> Swept:
        """Forward, keeping the states, and back.

        Raises:
            UnsupportedError: Derivatives by parameters are wanted of steps that have none.
            StepError: A step could not be finished.
        """
        runs, n = self.runs, len(self.tau)
        ahead = runs.ahead(self.tau)
        led = runs.differentiated(self.tau) if ahead is None else None
        if led is not None:
            states = led.states
        elif ahead is None:
            runs.go_back(runs.start)
            states = runs.states(self.tau)
        else:
            states = ahead[1]
        start, end = (runs.point(states[k], self.tau[k]) for k in (0, -1))
        prices = self.price(states, self.tau)
        adjoint, p = runs.adjoint(), prices.of_end
        if ahead is not None and ahead[0].is_recorded(states):
            recorded = ahead[0], ahead[2].copy()
            p = self._back(slice(0, n), states, prices.of_steps, p, recorded)
        elif led is not None:
            p = self._back_known(led, prices.of_steps, p)
        else:
            several = AT_ONCE // (6 * runs.nv**2) if adjoint is None else adjoint.room(AT_ONCE)
            for first in reversed(range(0, n, max(1, several))):
                part = slice(first, min(first + max(1, several), n))
                those, tau = states[first : part.stop + 1], self.tau[part]
                recorded = runs.record(those, tau)
                p = self._back(part, those, prices.of_steps[part], p, recorded)
        for name in self.values:
            self.by_parameters[name] += self._of_start(name, start, p)
        runs.put_near(start)
        return Swept(
            math.fsum(prices.values),
            Differences(runs.near, start).pull_back(p),
            self.by_tau,
            self.by_parameters,
            end,
            self.differences[::-1],
            self.at_rest[::-1],
            tuple(self.reasons),
        )

    def _back(
        self,
        part: slice,
        states: Array,
        prices: Array,
        p: Array,
        recorded: tuple[StepAdjoint, Mask] | None,
    ) -> Array:
        """Take p (2 nv,) from the end of some steps to their start."""
        first, tau, by_tau = part.start, self.tau[part], self.by_tau[part]
        k, after = len(tau), np.zeros((len(tau), len(p)))
        while k > 0:
            if recorded is not None and recorded[1][k - 1]:
                adjoint, last = recorded[0], k
                k, p = adjoint.pull_back(p, prices, last)
                if k == last:  # it cannot be taken through this one
                    recorded[1][k - 1] = False
                by_tau[k:last], after[k:last] = adjoint.by_tau(k, last), adjoint.after(k, last)
                continue
            few = 1 if recorded is not None else k
            for found in reversed(self.runs.of_each(states[k - few : k + 1], tau[k - few : k])):
                k -= 1
                self._require(found.why, first + k)
                self.at_rest += [first + k] if found.at_rest else []
                after[k] = p
                back = p @ found.changes + prices[k]
                p, by_tau[k] = back[: len(p)], back[len(p) :]
        for name in self.values:
            self.by_parameters[name] += self._of_steps(name, states, tau, after)
        return p

    def _back_known(self, known: KnownSteps, prices: Array, p: Array) -> Array:
        """Take p (2 nv,) from the end of all steps to their start."""
        for step in sorted(known.whys, reverse=True):
            self._require(known.whys[step], step)
        self.at_rest += np.flatnonzero(known.at_rest)[::-1].tolist()
        p, after = p.copy(), np.zeros((len(self.tau), len(p)))
        with announce_compilation(pull_back_changes):
            pull_back_changes(known.changes, np.ascontiguousarray(prices), p, after, self.by_tau)
        for name in self.values:
            self.by_parameters[name] += self._of_steps(name, known.states, self.tau, after)
        return p

    def _require(self, why: str, step: int) -> None:
        """Take down why a step has no derivatives of its own."""
        if why:
            self.differences.append(step)
            self.reasons[why] = None
            if self.values:
                raise UnsupportedError(
                    f"derivatives by parameters are wanted, and in step {step} {why}"
                )

    def _of_steps(self, name: str, states: Array, tau: Array, after: Array) -> float:
        """What steps lead elsewhere by with a parameter, from the same states, times p after."""
        runs, start = self.runs, self.runs.point(states[0], tau[0])

        def ends(x: float) -> Array:
            self._start_near(start, name, x)
            runs.put_near(start)
            adjoint, found = runs.adjoint(), math.nan
            if adjoint is not None:
                _, led = adjoint.record(states, tau, -1.0)  # each from a state that is given
                nq = len(start.q)
                away = configuration_differences(self.mechanism, led[:, :nq], states[1:, :nq])
                rates = led[:, nq:-1] - states[1:, nq:-1]
                found = float(np.sum(np.hstack([away, rates]) * after))
            return np.array([found if math.isfinite(found) else self._led_away(states, tau, after)])

        return self._by(name, ends, start)

    def _led_away(self, states: Array, tau: Array, after: Array) -> float:
        """Sum of p times what steps of the copy for derivatives lead to, less the next states."""
        runs, near, found = self.runs, self.runs.near, 0.0
        for at, forces, led_to, p in zip(states[:-1], tau, states[1:], after, strict=True):
            runs.put_near(runs.point(at, forces))
            near.step(write=False)
            found += float(p @ self._away(near, runs.point(led_to, forces)))
        return found

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
        values = {other: value for other, value in self.values.items() if other != name}
        values[name] = self.values[name] + x  # last: links of one body are names of one number
        self.runs.near.start_from((start.q, start.v, start.t), values)

    def _away(self, system: System, from_: Point) -> Array:
        """Tangent coordinates (2 nv,) of the state of a system, from another one."""
        dq = configuration_difference(self.mechanism, np.array(system.q), from_.q)
        return np.concatenate([dq, system.v - from_.v])
