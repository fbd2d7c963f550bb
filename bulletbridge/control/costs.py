"""What a trajectory costs: functions of its states and forces, and what these change by."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bulletbridge.control.lqr import Weights, weights_of
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.by_joint import ByJoint, by_joint, rate_names
from bulletbridge.mechanism.displacement import (
    chart_rates,
    configuration_difference,
    configuration_differences,
)
from bulletbridge.mechanism.kinematics import displace, turn_gradients
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.system.differences import richardson
from bulletbridge.system.tangents import Point

REACH = 1e-3
"""What differences of costs go [rad, mechanism lengths, or of the largest rate or force]: errors
are its fourth power after extrapolation, and round-off over it."""


class CostTerms(NamedTuple):
    """A cost with its derivatives, for functions that know them.

    Attributes:
        value: The cost.
        gradient: (3 nv,) by displacements of q, changes of v, and forces on the rates; of a final
            cost (2 nv,), without these.
        hessian: (3 nv, 3 nv) or (2 nv, 2 nv), or one that stands for it, as of Gauss and Newton;
            None if it is not known.
    """

    value: float
    gradient: Array
    hessian: Array | None = None


Answer = float | Array | CostTerms
"""A cost; or residuals (k,), whose squares are summed; or a cost with its derivatives."""
RunningCost = Callable[[ByJoint, ByJoint, ByJoint, float], Answer]
"""Of q (nq,), v (nv,), tau (nv,), which know the names of joints, and t [s]."""
FinalCost = Callable[[ByJoint, ByJoint, float], Answer]
"""Of q (nq,), v (nv,) and t [s]."""


@dataclass(frozen=True)
class Priced:
    """A running or a final cost at states of a mechanism.

    Attributes:
        mechanism: Names the coordinates.
        running: Of a step; or
        final: Of the end. Without either nothing is paid.
        lengths: (nv,) what counts as one: 1 for angles, the mechanism's length for ways.
    """

    mechanism: Mechanism
    running: RunningCost | None
    final: FinalCost | None
    lengths: Array

    def answer(self, at: Point) -> Answer:
        """What the function says.

        Raises:
            ModelError: It is no number, array of residuals or ``CostTerms`` that fit.
        """
        m = self.mechanism
        q, v = by_joint(at.q.copy(), m, "q"), by_joint(at.v.copy(), m, "v")
        size, found = 2 * m.nv, None
        if self.running is not None:
            found = self.running(q, v, by_joint(at.tau.copy(), m, "tau"), at.t)
            size = 3 * m.nv
        elif self.final is not None:
            found = self.final(q, v, at.t)
        else:
            return 0.0
        if isinstance(found, CostTerms):
            shapes = [np.shape(x) for x in found[1:] if x is not None]
            if not np.isfinite(found.value) or shapes != [(size,), (size, size)][: len(shapes)]:
                raise ModelError(
                    f"a cost gave {found.value} with derivatives {shapes}; give a finite number,"
                    f" a gradient ({size},), and a hessian ({size}, {size}) or None"
                )
            return found
        numbers = np.asarray(found, float)
        if numbers.ndim > 1 or not np.all(np.isfinite(numbers)):
            raise ModelError(
                f"a cost gave {found!r} at t = {at.t:.6g} s; give a finite number, an array of"
                " residuals whose squares are summed, or CostTerms"
            )
        return float(numbers) if numbers.ndim == 0 else numbers

    def value(self, at: Point) -> float:
        """The cost."""
        return value_of(self.answer(at))

    def along(self, states: Array, tau: Array) -> tuple[Array, Array]:
        """Costs (n,), derivatives (n, 3 nv) at states (n, nq + nv + 1) under tau (n, nv)."""
        nq, nv = self.mechanism.nq, self.mechanism.nv
        values, gradients = np.zeros(len(states)), np.zeros((len(states), 3 * nv))
        if isinstance(self.running, QuadraticCost):
            return self.running.along(states[:, :nq], states[:, nq:-1], tau)
        if self.running is not None:
            ways = np.eye(3 * nv)
            for k, (state, forces) in enumerate(zip(states, tau, strict=True)):
                at = Point(state[:nq], state[nq:-1], float(state[-1]), forces)
                found = self.expansion(at, ways, curved=False)
                values[k], gradients[k] = found.value, found.gradient
        return values, gradients

    def expansion(self, at: Point, ways: Array, curved: bool = True) -> CostTerms:
        """The cost (), and its derivatives (n,) along ways (3 nv or 2 nv, n).

        If curved, with second derivatives (n, n); for residuals those of Gauss and Newton.
        """
        n = ways.shape[1]
        if self.running is None and self.final is None:
            return CostTerms(0.0, np.zeros(n), np.zeros((n, n)))
        found = self.answer(at)
        if isinstance(found, CostTerms):
            gradient, H = ways.T @ found.gradient, found.hessian
            if curved and H is None:
                H = ways.T @ self._columns(lambda x: _gradient(self.answer(x)), at, ways)
            elif curved and H is not None:
                H = ways.T @ H @ ways
            return CostTerms(found.value, gradient, H if curved else None)
        if isinstance(found, float):
            gradient = self._columns(lambda x: np.array([self.value(x)]), at, ways)[0]
            return CostTerms(found, gradient, self._curvature(at, ways, found) if curved else None)
        J = self._columns(lambda x: np.asarray(self.answer(x), np.float64), at, ways)
        gradient = np.asarray(2.0 * J.T @ found, np.float64)
        return CostTerms(value_of(found), gradient, 2.0 * J.T @ J)

    def _columns(self, see: Callable[[Point], Array], at: Point, ways: Array) -> Array:
        """Derivatives (k, n) of numbers along ways, by central differences."""
        found = [
            richardson(lambda x, w=way: see(self._moved(at, x * w)), self._reach(at, way))[0]
            for way in ways.T
        ]
        return np.array(found).T

    def _curvature(self, at: Point, ways: Array, middle: float) -> Array:
        """Second differences (n, n) of the cost along ways."""
        n = ways.shape[1]
        steps = [self._reach(at, way) * way for way in ways.T]
        sums = [self.value(self._moved(at, s)) + self.value(self._moved(at, -s)) for s in steps]
        H = np.zeros((n, n))
        for i, a in enumerate(steps):
            for j, b in enumerate(steps[: i + 1]):
                both = self.value(self._moved(at, a + b)) + self.value(self._moved(at, -a - b))
                H[i, j] = H[j, i] = 0.5 * (both - sums[i] - sums[j]) + middle
        sizes = np.array([self._reach(at, way) for way in ways.T])
        return H / np.outer(sizes, sizes)

    def _moved(self, at: Point, way: Array) -> Point:
        """A state and forces that are displaced by (3 nv,) or (2 nv,)."""
        nv, q = self.mechanism.nv, at.q.copy()
        displace(self.mechanism.bodies, at.q, np.ascontiguousarray(way[:nv]), 1.0, q)
        tau = at.tau + way[2 * nv :] if len(way) > 2 * nv else at.tau
        return at._replace(q=q, v=at.v + way[nv : 2 * nv], tau=tau)

    def _reach(self, at: Point, way: Array) -> float:
        """How far differences go along a way."""
        nv = self.mechanism.nv
        pace = max(1.0, float(np.abs(at.v / self.lengths).max(initial=0.0)))
        force = max(1.0, float(np.abs(at.tau).max(initial=0.0)))
        sizes = np.concatenate([self.lengths, pace * self.lengths, np.full(nv, force)])
        return REACH / max(float(np.abs(way / sizes[: len(way)]).max()), 1e-300)


def value_of(answer: Answer) -> float:
    """The cost that a function gave."""
    if isinstance(answer, CostTerms):
        return float(answer.value)
    return answer if isinstance(answer, float) else float(np.sum(np.square(answer)))


def _gradient(answer: Answer) -> Array:
    assert isinstance(answer, CostTerms)
    return np.asarray(answer.gradient, np.float64)


class QuadraticCost:
    """xᵀ Q x + τᵀ R τ of a state's distance x from one that is wanted, with its derivatives.

    x is the displacement (nv,) from the configuration that is wanted, by rotation vectors where
    something turns, and the difference of the velocities (nv,). It is called as a running or as a
    final cost; this one has no forces.

    Args:
        mechanism: Names the coordinates.
        q: (nq,) configuration that is wanted.
        v: (nv,) velocity that is wanted; none unless given.
        Q: Weights of x: by name, as ``{"crank": 10.0, "crank.rate": 1.0}``, or (2 nv,), or
            (2 nv, 2 nv).
        R: Weights of the forces, likewise by joint; none unless given.

    Raises:
        ModelError: A name does not exist, or numbers do not fit.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        q: Array,
        v: Array | None = None,
        *,
        Q: Weights,
        R: Weights | None = None,
    ) -> None:
        names = rate_names(mechanism)
        self.mechanism, self.q = mechanism, np.array(q, np.float64)
        self.v = np.zeros(mechanism.nv) if v is None else np.array(v, np.float64)
        if self.q.shape != (mechanism.nq,) or self.v.shape != (mechanism.nv,):
            raise ModelError(
                f"a wanted state of q {self.q.shape} and v {self.v.shape} is none of this"
                f" mechanism; give ({mechanism.nq},) and ({mechanism.nv},)"
            )
        self.Q = weights_of("Q", Q, [*names, *(f"{name}.rate" for name in names)])
        self.R = weights_of("R", {} if R is None else R, names)
        turning = [j for j in mechanism.joints.values() if j.kind in ("spherical", "free")]
        self._turns = [k for j in turning for k in range(j.v.start, j.v.start + 3)]
        n = 2 * mechanism.nv
        self._curved = np.zeros((3 * mechanism.nv, 3 * mechanism.nv))
        self._curved[:n, :n], self._curved[n:, n:] = 2.0 * self.Q, 2.0 * self.R

    def __call__(self, q: Array, v: Array, *rest: Array | float) -> CostTerms:
        """The cost and its derivatives, with the Hessian of Gauss and Newton."""
        nv = self.mechanism.nv
        x = np.zeros(2 * nv)
        x[:nv] = configuration_difference(self.mechanism, q, self.q)
        x[nv:] = np.asarray(v) - self.v
        away, size = self.Q @ x, 2 * nv if len(rest) == 1 else 3 * nv
        value, gradient = float(x @ away), np.zeros(size)
        hessian = self._curved[:size, :size].copy()
        gradient[: 2 * nv] = 2.0 * away
        if self._turns:
            W, turns = chart_rates(self.mechanism, x[:nv])[:, self._turns], self._turns
            gradient[turns] = 2.0 * W.T @ away[:nv]
            hessian[:, turns] = hessian[:, :nv] @ W
            hessian[turns] = W.T @ hessian[:nv]
        if size == 3 * nv:
            tau = np.asarray(rest[0])
            pushed = self.R @ tau
            value += float(tau @ pushed)
            gradient[2 * nv :] = 2.0 * pushed
        return CostTerms(value, gradient, hessian)

    def along(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        """Running costs (n,), gradients (n, 3 nv) at q (n, nq), v (n, nv) under tau (n, nv)."""
        m, nv = self.mechanism, self.mechanism.nv
        x = np.hstack([configuration_differences(m, q, self.q), v - self.v])
        away, pushed = x @ self.Q, tau @ self.R
        values = np.einsum("ij,ij->i", x, away) + np.einsum("ij,ij->i", tau, pushed)
        gradients = 2.0 * np.hstack([away, pushed])
        if self._turns:
            by_end = gradients[:, :nv].copy()
            turn_gradients(m.bodies, x[:, :nv].copy(), by_end)
            gradients[:, :nv] = by_end
        return values, gradients
