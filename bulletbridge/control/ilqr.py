"""Trajectories of least cost, by differential dynamic programming along the loops.

Around a trajectory, the states that the loops leave free are coordinates in which each knot's steps
are linear maps and costs are quadratic; the Riccati recursion from the end gives better controls
and gains (Li and Todorov 2004). Bounds on controls are kept in it: each knot's controls solve a
small quadratic programme in a box, and gains are those of controls that are not at a bound (Tassa,
Mansard and Todorov, *Control-limited differential dynamic programming*, ICRA 2014). Every
trajectory that is looked at is made of the system's own steps.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bulletbridge.console import progress_bars
from bulletbridge.control.costs import CostTerms, FinalCost, Priced, RunningCost
from bulletbridge.control.trajectories import Trajectories
from bulletbridge.errors import ModelError, StepError, UnsupportedError
from bulletbridge.mechanism.by_joint import rate_names
from bulletbridge.mechanism.displacement import configuration_difference
from bulletbridge.mechanism.model import Joint, Mechanism
from bulletbridge.numerics.records import Array, Ints, Mask, array_of
from bulletbridge.system.parameters import require_known
from bulletbridge.system.system import System
from bulletbridge.system.tangents import Point

if TYPE_CHECKING:
    from rich.progress import Progress

FEWEST, MOST = 1e-6, 1e8
"""Least and largest regularisation, in the curvatures of the controls."""
SOFT = 1e-3
"""Regularisation up to which a step that would gain nothing says that nothing is to be gained."""
STUCK = "no step lowers the cost"
KINKED = (
    "; central differences, taken at {} of {} knots, see nothing of what acts beyond a kink: give a"
    " first guess that goes there, or, for contacts, smoothing"
)
SHORTEST, ENOUGH = 2.0**-10, 1e-4
"""Smallest share of a step that the line search tries; share of the fall that is foreseen which has
to come."""
EVEN = 1e-9
"""Least curvature of controls that counts, of their own sizes."""
Bounds = Mapping[str, float | tuple[float, float]]
"""Largest size of a control by joint, or its lowest and highest value."""


class Until(NamedTuple):
    """When a search for a plan ends.

    Attributes:
        tolerance: Fall of the cost, relative to it, that is none.
        iterations: At most.
    """

    tolerance: float = 1e-8
    iterations: int = 200


AS_A_RULE = Until()


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """A trajectory of least cost, with gains that keep a system on it.

    Called with (q, v, t) it gives tau: the control of that time, corrected by the gains for how far
    the state is from the plan, within the bounds.

    Attributes:
        mechanism: Names the coordinates.
        t: (steps + 1,) times [s].
        q: (steps + 1, nq) configurations, loops closed as by the steps, which they are: those of
            smooth contacts, if the plan is.
        v: (steps + 1, nv) rates.
        tau: (steps, nv) forces on the rates, those of no control too.
        inputs: (m,) names of the rates that controls push.
        controls: (knots,) or (knots, k) by joint: what ``ilqr`` takes as a start.
        K: (knots, m, 2 nv) gains: controls less K x, where x (2 nv,) is the displacement from the
            planned configuration and the difference of rates.
        bounds: (2, m) lowest and highest controls.
        costs: Cost of the first trajectory, and after each iteration; never rises.
        iterations: How many.
        reason: Why it stopped.
        converged: Whether nothing better was to be had.
        differences: Knots whose derivatives are central differences, the last time.
        reasons: Why, each said once.
    """

    mechanism: Mechanism
    t: Array
    q: Array
    v: Array
    tau: Array
    inputs: tuple[str, ...]
    controls: dict[str, Array]
    K: Array
    bounds: Array
    costs: Array
    iterations: int
    reason: str
    converged: bool
    differences: Ints
    reasons: tuple[str, ...]

    def __repr__(self) -> str:
        """Cost, length and why it stopped."""
        return (
            f"<Plan: cost {self.costs[-1]:.6g} over {self.t[-1] - self.t[0]:.6g} s,"
            f" {self.iterations} iterations, {self.reason}>"
        )

    def __call__(self, q: Array, v: Array, t: float) -> Array:
        """Joint forces tau (nv,) at a state and a time; beyond the ends those of the ends."""
        dt = (self.t[-1] - self.t[0]) / len(self.tau)
        step = int(np.clip(np.floor((t - self.t[0]) / dt + 1e-6), 0, len(self.tau) - 1))
        away = configuration_difference(self.mechanism, np.asarray(q), self.q[step])
        x = np.concatenate([away, np.asarray(v) - self.v[step]])
        tau = self.tau[step].copy()
        names = rate_names(self.mechanism)
        rates = [names.index(name) for name in self.inputs]
        knot = step * len(self.K) // len(self.tau)
        tau[rates] = np.clip(tau[rates] - self.K[knot] @ x, *self.bounds)
        return tau


class Knot(NamedTuple):
    """One knot's linear map and quadratic cost, in tangents of the loops at both of its ends."""

    A: Array  # (n, n)
    B: Array  # (n, m)
    cost: CostTerms  # (n + m,)
    dual: Array  # (n, 2 nv) tangents of displacements
    why: str


class Trajectory(NamedTuple):
    """States of all steps, controls (knots, m) of each knot, and what it costs."""

    states: list[Point]
    u: Array
    cost: float


class Better(NamedTuple):
    """A change of the controls, of which a share s should make the cost a s + b s² more."""

    k: Array  # (knots, m)
    K: Array  # (knots, m, 2 nv), added
    first: float  # a
    second: float  # b

    def fall(self, share: float) -> float:
        """By how much the cost should fall."""
        return -(share * self.first + share * share * self.second)


def ilqr(
    system: System,
    controls: Mapping[str, ArrayLike],
    running: RunningCost | None = None,
    final: FinalCost | None = None,
    *,
    bounds: Bounds | None = None,
    every: int = 1,
    smoothing: float = 0.0,
    until: Until = AS_A_RULE,
) -> Plan:
    """Controls that bring a system from its state through a motion of least cost.

    Iterative linear-quadratic regulation with bounds on controls (box-DDP), in coordinates of what
    the loops leave free. What is minimised is the sum of ``running(q, v, tau, t)`` over the knots,
    and ``final(q, v, t)``. Both give a number, or residuals whose squares are summed (Gauss and
    Newton's Hessian is taken), or ``CostTerms`` with derivatives of their own, as
    ``QuadraticCost`` does. Of what they leave to differences they are called some hundred times a
    knot. Curvatures that are negative are left out.

    A terminal shows the cost, the iteration, and how many knots have no derivatives of their own,
    as beside singular positions, where steps are done in parts: these take most of the time.

    Args:
        system: Its state is the start; forces of its ``tau`` that are no controls stay. Nothing of
            it changes.
        controls: A first guess by joint: forces (knots,), or (knots, k) of joints with k rates.
        running: Of each knot.
        final: Of the end.
        bounds: Of controls, by joint; none unless given.
        every: Steps for which each knot's controls are held.
        smoothing: Of contacts [J], as of ``System.step_derivatives``: the plan is one for contacts
            that push at a distance, which finds those that are not made yet. Start the next one,
            for less or none, from its controls. Zero for ideal contacts.
        until: When it ends.

    Raises:
        ModelError: Controls, bounds or costs do not fit the system, or it is singular on its way;
            or contacts are to be smooth, and do not act.
        UnsupportedError: Steps with smooth contacts are not known.
        StepError: The first trajectory, or one beside the best, cannot be simulated.
    """
    runs = Trajectories(system, smoothing)
    try:
        with progress_bars() as bars:
            return Search(runs, controls, (running, final), bounds, every).plan(until, bars)
    finally:
        runs.end()


class Search:
    """The iterations.

    Args:
        runs: Trajectories from the start.
        controls: First guess.
        costs: Running and final.
        bounds: By joint.
        every: Steps a knot.

    Raises:
        ModelError: Something does not fit.
    """

    def __init__(
        self,
        runs: Trajectories,
        controls: Mapping[str, ArrayLike],
        costs: tuple[RunningCost | None, FinalCost | None],
        bounds: Bounds | None,
        every: int,
    ) -> None:
        mechanism = runs.mechanism
        if every < 1 or int(every) != every:
            raise ModelError(f"every is {every}; give a whole number of steps, 1 or more")
        if not controls:
            raise ModelError("there is nothing to control; give a first guess by joint")
        self.joints = {name: mechanism.joint(name) for name in controls}
        self.u = controls_of(self.joints, controls)
        numbers = [k for j in self.joints.values() for k in range(j.v.start, j.v.stop)]
        self.rates: Ints = np.array(numbers, np.int64)
        names = rate_names(mechanism)
        self.inputs = tuple(names[k] for k in numbers)
        self.bounds = bounds_of(self.inputs, self.joints, bounds or {})
        self.u = np.clip(self.u, *self.bounds)
        self.every, self.mechanism, self.tau = int(every), mechanism, runs.tau
        self.runs = runs
        self.running = Priced(mechanism, costs[0], None, self.runs.lengths)
        self.final = Priced(mechanism, None, costs[1], self.runs.lengths)
        self.tell: Callable[[list[Knot]], None] = lambda _knots: None

    def plan(self, until: Until, bars: "Progress") -> Plan:
        """Iterate until nothing is to be gained; bars show how far that is."""
        tolerance, iterations = until
        bar = bars.add_task("first trajectory", total=len(self.u))
        best = self.follow(None, self.u, None, 0.0)
        costs, mu, reason, n = [best.cost], 0.0, "", 0

        def tell(known: list[Knot]) -> None:
            """Say where the search is, and which knots take it long."""
            about = f"cost {costs[-1]:.6g}, iteration {n + 1} of at most {iterations}"
            if beside := sum(1 for knot in known if knot.why):
                about += f", {beside} of {len(known)} knots by central differences"
            bars.update(bar, description=about, completed=len(known))

        self.tell = tell
        knots, last = self.expand(best)
        while True:
            better, mu = self.improve(knots, last, best.u, mu)
            size = max(abs(best.cost), tolerance * abs(costs[0]))
            if better.fall(1.0) <= tolerance * size:
                reason = "converged" if mu <= SOFT else STUCK
            elif n == iterations:
                reason = f"at the most iterations, {iterations}"
            if reason:
                break
            found = self.search(best, better)
            if found is not None:
                n, (best, knots, last) = n + 1, found
                costs.append(best.cost)
                mu = mu / 10.0 if mu > FEWEST else 0.0
                continue
            mu = max(FEWEST, 10.0 * mu)
            if mu > MOST:
                reason = STUCK
                break
        beside = sum(1 for knot in knots if knot.why)
        if reason == STUCK and beside:
            reason += KINKED.format(beside, len(knots))
        gains = self.backward(knots, last, best.u, 0.0) or better
        return self.told(best, gains, knots, np.array(costs), reason)

    def forces(self, u: Array) -> Array:
        """Forces (nv,) under controls (m,)."""
        tau = self.tau.copy()
        tau[self.rates] = u
        return tau

    def follow(
        self, by: Trajectory | None, u: Array, better: Better | None, share: float
    ) -> Trajectory:
        """A trajectory under controls u (knots, m), or changed by a share and gains.

        Raises:
            StepError: A step could not be finished.
        """
        runs, cost, taken = self.runs, 0.0, u.copy()
        runs.go_back(runs.start)
        states = [runs.here(self.tau)]
        for k in range(len(u)):
            here = runs.here(self.tau)
            if by is not None and better is not None:
                there = by.states[k * self.every]
                away = configuration_difference(self.mechanism, here.q, there.q)
                x = np.concatenate([away, here.v - there.v])
                taken[k] = np.clip(u[k] + share * better.k[k] + better.K[k] @ x, *self.bounds)
            tau = self.forces(taken[k])
            part = runs.run(np.tile(tau, (self.every, 1)))
            cost += self.running.value(part[0])
            states[-1:] = part
        return Trajectory(states, taken, cost + self.final.value(states[-1]))

    def search(
        self, best: Trajectory, better: Better
    ) -> tuple[Trajectory, list[Knot], CostTerms] | None:
        """The first trajectory that is cheaper by enough, of shorter and shorter steps."""
        share = 1.0
        while share >= SHORTEST:
            with suppress(StepError, ModelError, UnsupportedError):  # simulated, or priced
                found = self.follow(best, best.u, better, share)
                if best.cost - found.cost > ENOUGH * better.fall(share):
                    return found, *self.expand(found)
            share *= 0.5
        return None

    def expand(self, best: Trajectory) -> tuple[list[Knot], CostTerms]:
        """Linear maps and quadratic costs around a trajectory, and those of its end."""
        every, nv, m = self.every, self.mechanism.nv, len(self.rates)
        at = [best.states[k] for k in range(0, len(best.states), every)]
        tangents = [self.runs.tangents(point) for point in at]
        knots = list[Knot]()
        for k, point in enumerate(at[:-1]):
            part = self.runs.derivatives(point, every, self.rates)
            L, to = tangents[k].moves, tangents[k + 1].dual
            n = L.shape[1]
            ways = np.zeros((3 * nv, n + m))
            ways[: 2 * nv, :n] = L
            ways[2 * nv + self.rates, n + np.arange(m)] = 1.0
            cost = convex(self.running.expansion(point, ways))
            knots.append(
                Knot(to @ part.A @ L, to @ part.B[:, self.rates], cost, tangents[k].dual, part.why)
            )
            self.tell(knots)
        return knots, convex(self.final.expansion(at[-1], tangents[-1].moves))

    def improve(
        self, knots: list[Knot], last: CostTerms, u: Array, mu: float
    ) -> tuple[Better, float]:
        """The Riccati recursion, with regularisation where the cost does not tell controls."""
        while (found := self.backward(knots, last, u, mu)) is None:
            mu = max(FEWEST, 10.0 * mu)
        return found, mu

    def backward(self, knots: list[Knot], last: CostTerms, u: Array, mu: float) -> Better | None:
        """From the end to the start; None where the curvature of controls is not positive."""
        m, first, second = len(self.rates), 0.0, 0.0
        k = np.zeros((len(knots), m))
        K = np.zeros((len(knots), m, 2 * self.mechanism.nv))
        p, P = last.gradient, last.hessian
        assert P is not None
        for i in reversed(range(len(knots))):
            knot, cost = knots[i], knots[i].cost
            AB = np.hstack([knot.A, knot.B])
            assert cost.hessian is not None
            g, H = cost.gradient + AB.T @ p, cost.hessian + AB.T @ P @ AB
            n = len(g) - m
            own = np.diag(H[n:, n:])
            size = np.maximum(own, max(EVEN * own.max(), 1e-200))
            Q = H[n:, n:] + mu * np.diag(size)
            if np.linalg.eigvalsh(Q / np.outer(size**0.5, size**0.5))[0] <= EVEN:
                return None
            step, free = in_box(Q, g[n:], self.bounds - u[i])
            gain = np.zeros((m, n))
            if free.any():
                gain[free] = -np.linalg.solve(Q[np.ix_(free, free)], H[n:, :n][free])
            first += float(step @ g[n:])
            second += 0.5 * float(step @ H[n:, n:] @ step)
            cross = H[n:, :n]
            p = g[:n] + gain.T @ (H[n:, n:] @ step + g[n:]) + cross.T @ step
            P = H[:n, :n] + gain.T @ H[n:, n:] @ gain + gain.T @ cross + cross.T @ gain
            P = 0.5 * (P + P.T)
            k[i], K[i] = step, gain @ knot.dual
        return Better(k, K, first, second)

    def told(
        self, best: Trajectory, better: Better, knots: list[Knot], costs: Array, reason: str
    ) -> Plan:
        """What users see."""
        controls, first = dict[str, Array](), 0
        for name, joint in self.joints.items():
            several = joint.v.stop - joint.v.start
            part = best.u[:, first : first + several]
            controls[name] = part[:, 0].copy() if several == 1 else part.copy()
            first += several
        steps = [self.forces(u) for u in np.repeat(best.u, self.every, axis=0)]
        return Plan(
            self.mechanism,
            np.array([x.t for x in best.states]),
            np.array([x.q for x in best.states]),
            np.array([x.v for x in best.states]),
            np.array(steps),
            self.inputs,
            controls,
            -better.K,
            self.bounds,
            costs,
            len(costs) - 1,
            reason,
            reason == "converged",
            np.array([k for k, knot in enumerate(knots) if knot.why], np.int64),
            tuple(dict.fromkeys(knot.why for knot in knots if knot.why)),
        )


def controls_of(joints: Mapping[str, Joint], controls: Mapping[str, ArrayLike]) -> Array:
    """Controls (knots, m) of all joints.

    Raises:
        ModelError: There are not as many for each joint, or numbers are not finite.
    """
    parts = list[Array]()
    for name, joint in joints.items():
        several = joint.v.stop - joint.v.start
        given = array_of(f"controls of '{name}'", controls[name])
        part = given[:, None] if given.ndim == 1 and several == 1 else given
        if part.ndim != 2 or part.shape[1] != several or not len(part):
            shape = "(knots,)" if several == 1 else f"(knots, {several})"
            raise ModelError(f"controls of '{name}' are {given.shape}; give {shape}")
        if not np.all(np.isfinite(part)) or len(part) != len((parts or [part])[0]):
            raise ModelError(
                f"controls of '{name}' are {len(part)} rows; give finite numbers, and as many"
                f" knots for each joint ({len((parts or [part])[0])})"
            )
        parts.append(part)
    return np.hstack(parts)


def bounds_of(names: Sequence[str], joints: Mapping[str, Joint], bounds: Bounds) -> Array:
    """Lowest and highest controls (2, m).

    Raises:
        ModelError: A name is no control, or bounds are no interval.
    """
    found = np.array([[-np.inf] * len(names), [np.inf] * len(names)])
    for name, given in bounds.items():
        require_known("control", name, joints)
        low, high = given if isinstance(given, tuple) else (-given, given)
        if not low < high:
            raise ModelError(
                f"bounds of '{name}' are {low:g} and {high:g}; give a largest size that is"
                " positive, or (lowest, highest)"
            )
        several = joints[name].v.stop - joints[name].v.start
        first = next(k for k, x in enumerate(names) if x in (name, f"{name}[0]"))
        found[:, first : first + several] = [[low], [high]]
    return found


def in_box(Q: Array, g: Array, bounds: Array) -> tuple[Array, Mask]:
    """The step x (m,) that minimises ½ xᵀ Q x + gᵀ x within bounds (2, m), and which are free."""
    from scipy.optimize import lsq_linear

    x = np.asarray(-np.linalg.solve(Q, g), np.float64)
    if np.all((x >= bounds[0]) & (x <= bounds[1])):
        return x, np.ones(len(g), bool)
    U = np.linalg.cholesky(Q).T  # Q = Uᵀ U
    found = lsq_linear(U, -np.linalg.solve(U.T, g), (bounds[0], bounds[1]), method="bvls")
    free = np.asarray(found.active_mask == 0, np.bool_)
    return np.asarray(np.clip(found.x, *bounds), np.float64), free


def convex(terms: CostTerms) -> CostTerms:
    """A cost without its negative curvatures."""
    assert terms.hessian is not None
    H = 0.5 * (terms.hessian + terms.hessian.T)
    values, ways = np.linalg.eigh(H)
    if len(values) and values[0] < 0.0:
        H = (ways * np.maximum(values, 0.0)) @ ways.T
    return terms._replace(hessian=H)
