"""Steps of a system as an action model of Crocoddyl: ``calc`` and ``calcDiff``."""

from collections.abc import Collection
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.control.costs import CostTerms, FinalCost, Priced, RunningCost
from bulletbridge.control.trajectories import Trajectories
from bulletbridge.errors import ModelError, UnsupportedError, naming_the_extra
from bulletbridge.mechanism.displacement import (
    chart_rates,
    configuration_difference,
    with_unit_quaternions,
)
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.system.system import System
from bulletbridge.system.tangents import Tangents


class Action(NamedTuple):
    """One knot from a state, as a map and a cost of small changes.

    Attributes:
        Fx: (2 nv, 2 nv) of a state that is displaced, and then closed and filtered.
        Fu: (2 nv, m)
        cost: With gradient (2 nv + m,) and Hessian; of the end (2 nv,).
    """

    Fx: Array
    Fu: Array
    cost: CostTerms


class Actions:
    """Knots of a system from any state x = (q, v) (nq + nv,), and their derivatives.

    Args:
        system: What steps; it is not touched later.
        costs: Running and final, as of ``ilqr``.
        inputs: Joints that controls push; None for all.
        every: Steps of a knot.

    Raises:
        ModelError: A joint does not exist, or ``every`` is no positive number.
        UnsupportedError: Motions are prescribed: knots know no time.
    """

    def __init__(
        self,
        system: System,
        costs: tuple[RunningCost | None, FinalCost | None],
        inputs: Collection[str] | None,
        every: int,
    ) -> None:
        (own,) = system.fork(1)
        m = self.mechanism = own.mechanism
        if every < 1 or int(every) != every:
            raise ModelError(f"every is {every}; give a whole number of steps, 1 or more")
        if own.encoded.motions:
            raise UnsupportedError(
                "motions are prescribed as functions of time, which an action model does not know;"
                " use bb.ilqr"
            )
        parts = [m.joint(name).v for name in (m.joints if inputs is None else inputs)]
        numbers = [k for part in parts for k in range(part.start, part.stop)]
        self.rates: Ints = np.array(numbers, np.int64)
        self.every, self.tau = int(every), np.array(own.tau)
        self.start = np.concatenate([own.q, own.v])
        self._t, self._runs = own.t, Trajectories(own)
        self.running = Priced(m, costs[0], None, self._runs.lengths)
        self.final = Priced(m, None, costs[1], self._runs.lengths)

    def to(self, x: Array, u: Array | None) -> tuple[Array, float]:
        """Where a knot under controls u (m,) leads, and what it costs; None for the end.

        Raises:
            AssemblyError: The loops are open at x by more than ``set_state`` closes.
            StepError: A step could not be finished.
        """
        tau = self._begin(x, u)
        if u is None:
            return np.array(x, np.float64), self.final.value(self._runs.here(tau))
        states = self._runs.run(np.tile(tau, (self.every, 1)))
        end = np.concatenate([states[-1].q, states[-1].v])
        return end, self.running.value(states[0])

    def around(self, x: Array, u: Array | None) -> Action:
        """The derivatives of ``to``."""
        tau, runs, m = self._begin(x, u), self._runs, len(self.rates)
        at = runs.here(tau)
        tangents = runs.tangents(at)
        L = tangents.moves
        if u is None:
            cost = self.final.expansion(at, L)
            return Action(np.eye(len(L)), np.zeros((len(L), m)), _closed(cost, tangents, 0))
        nv, n = runs.nv, L.shape[1]
        ways = np.zeros((3 * nv, n + m))
        ways[: 2 * nv, :n], ways[2 * nv + self.rates, n + np.arange(m)] = L, 1.0
        cost = _closed(self.running.expansion(at, ways), tangents, m)
        part = runs.derivatives(at, self.every, self.rates)
        return Action(part.A @ tangents.closing, part.B[:, self.rates], cost)

    def _begin(self, x: Array, u: Array | None) -> Array:
        """Take a state; forces (nv,) under controls."""
        m, tau = self.mechanism, self.tau.copy()
        q = with_unit_quaternions(m, np.array(x[: m.nq], np.float64))
        self._runs.begin(q, np.array(x[m.nq :], np.float64), self._t, {})
        if u is not None:
            tau[self.rates] = u
        return tau


def _closed(cost: CostTerms, tangents: Tangents, m: int) -> CostTerms:
    """A cost by all tangent coordinates (2 nv,) and m controls, from one by the directions."""
    dual = tangents.dual
    whole = np.zeros((dual.shape[0] + m, dual.shape[1] + m))
    whole[: dual.shape[0], : dual.shape[1]] = dual
    whole[dual.shape[0] :, dual.shape[1] :] = np.eye(m)
    assert cost.hessian is not None
    return CostTerms(cost.value, whole.T @ cost.gradient, whole.T @ cost.hessian @ whole)


class StateMaps:
    """Differences and sums of states x = (q, v) (nq + nv,) in tangent coordinates (2 nv,).

    Args:
        mechanism: Whose.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    def difference(self, x0: Array, x1: Array) -> Array:
        """The displacement and the change of rates (2 nv,) that take x0 to x1."""
        m = self.mechanism
        q0, q1 = (np.array(x[: m.nq], np.float64) for x in (x0, x1))
        return np.concatenate([configuration_difference(m, q1, q0), x1[m.nq :] - x0[m.nq :]])

    def moved(self, x: Array, dx: Array) -> Array:
        """The state that dx (2 nv,) takes x to."""
        m, found = self.mechanism, np.array(x, np.float64)
        start = found[: m.nq].copy()
        displace(m.bodies, start, np.array(dx[: m.nv], np.float64), 1.0, found[: m.nq])
        found[m.nq :] += dx[m.nv :]
        return found

    def by_difference(self, x0: Array, x1: Array) -> tuple[Array, Array]:
        """What ``difference`` changes by with x0 and with x1: (2 nv, 2 nv) each."""
        u = self.difference(x0, x1)[: self.mechanism.nv]
        return -self._rates(-u), self._rates(u)

    def by_sum(self, dx: Array) -> tuple[Array, Array]:
        """What ``moved`` changes by with x and with dx: (2 nv, 2 nv) each."""
        u = np.array(dx[: self.mechanism.nv], np.float64)
        by_dx = np.asarray(np.linalg.inv(self._rates(u)), np.float64)
        return by_dx @ self._rates(-u), by_dx

    def _rates(self, u: Array) -> Array:
        found, nv = np.eye(2 * len(u)), len(u)
        found[:nv, :nv] = chart_rates(self.mechanism, u)
        return found


def to_crocoddyl(
    system: System,
    running: RunningCost | None = None,
    final: FinalCost | None = None,
    *,
    inputs: Collection[str] | None = None,
    every: int = 1,
) -> Any:
    """The steps of a system as a ``crocoddyl.ActionModelAbstract`` with exact derivatives.

    A state is (q, v) (nq + nv,), of which differences are tangent coordinates (2 nv,): loops stay
    closed by the steps, so that a solver needs no constraints for them. One model serves all knots
    and, with the final cost, the end. Whatever states a solver tries must close the loops: start it
    from ``problem.rollout(us)``. It is written in Python, for one thread.

    Args:
        system: What steps; it is not touched later. Its time is that of all knots, its ``tau`` what
            acts besides the controls.
        running: Of a knot: as of ``ilqr``, of (q, v, tau, t).
        final: Of the end: of (q, v, t).
        inputs: Joints that controls push, all unless given.
        every: Steps that a control is held for.

    Raises:
        MissingExtraError: Crocoddyl is not installed.
        ModelError: A joint does not exist, or ``every`` is no positive number.
        UnsupportedError: Motions are prescribed.
    """
    with naming_the_extra("an action model needs Crocoddyl", "bulletbridge[crocoddyl]"):
        crocoddyl: Any = import_module("crocoddyl")
    actions = Actions(system, (running, final), inputs, every)
    mechanism, maps = actions.mechanism, StateMaps(actions.mechanism)
    first, second = crocoddyl.Jcomponent.first, crocoddyl.Jcomponent.second

    def chosen(both: tuple[Array, Array], which: Any) -> list[Array]:
        return {first: [both[0]], second: [both[1]]}.get(which, list(both))

    class State(crocoddyl.StateAbstract):
        """States of the system."""

        def __init__(self) -> None:
            super().__init__(mechanism.nq + mechanism.nv, 2 * mechanism.nv)

        def zero(self) -> Array:
            return actions.start.copy()

        def rand(self) -> Array:
            return actions.start.copy()  # others would not close the loops

        def diff(self, x0: Array, x1: Array) -> Array:
            return maps.difference(x0, x1)

        def integrate(self, x: Array, dx: Array) -> Array:
            return maps.moved(x, dx)

        def Jdiff(self, x0: Array, x1: Array, firstsecond: Any = None) -> list[Array]:
            return chosen(maps.by_difference(x0, x1), firstsecond)

        def Jintegrate(self, x: Array, dx: Array, firstsecond: Any = None) -> list[Array]:
            return chosen(maps.by_sum(dx), firstsecond)

        def JintegrateTransport(self, x: Array, dx: Array, Jin: Array, firstsecond: Any) -> Array:
            return chosen(maps.by_sum(dx), firstsecond)[0] @ Jin

    class Steps(crocoddyl.ActionModelAbstract):
        """Steps of the system under controls that are held."""

        def __init__(self) -> None:
            self.actions = actions
            super().__init__(State(), len(actions.rates), 0)

        def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
            data.xnext, data.cost = actions.to(x, u)

        def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
            found, n = actions.around(x, u), 2 * mechanism.nv
            g, H = found.cost.gradient, found.cost.hessian
            assert H is not None
            data.Lx, data.Lxx = g[:n], H[:n, :n]
            data.Fx, data.Fu = found.Fx, found.Fu
            if u is not None:
                data.Lu, data.Lxu, data.Luu = g[n:], H[:n, n:], H[n:, n:]

    return Steps()
