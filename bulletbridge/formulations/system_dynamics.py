"""A mechanism with its constraints as formulations and integrators see it."""

from dataclasses import dataclass
from functools import cached_property
from math import isfinite

import numpy as np

from bulletbridge.engine.motion_rates import MotionRates, motion_rates_at
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Terms
from bulletbridge.errors import StepError
from bulletbridge.formulations.equations import Equations, Order, Split, split_of
from bulletbridge.formulations.modular import ModularEquations
from bulletbridge.formulations.modules import Modules, modules
from bulletbridge.formulations.moving import ByDifferences
from bulletbridge.mechanism.dynamics import weights
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.projection import ROW, share_out
from bulletbridge.numerics.records import Array, Mask
from bulletbridge.numerics.triangles import solve_triangle

SHARED = 1e-9
"""Length of what independent rows leave of a unit multiplier, from which it is shared."""


@dataclass(frozen=True)
class SystemDynamics:
    """Equations of motion of a solver, rows as kept."""

    solver: Solver
    driven: bool = True  # whether forces of its ``tau`` act
    finite: bool = False  # whether numbers that are not finite are an error

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return self.solver.mechanism.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return self.solver.mechanism.nv

    @property
    def tau(self) -> Array:
        """Forces (nv,) on the rates that somebody gives."""
        return self.solver.tau[0] if self.driven else np.zeros(self.nv)

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state."""
        return self.moving(q, v, t).equations

    def moving(self, q: Array, v: Array, t: float) -> "MovingSystem":
        """The same, and how its matrices change."""
        here = MovingSystem(self, self.solver.terms(q, v, t), (q, v, t))
        if self.finite:
            e = here.equations
            require_finite(e.M, e.f, e.J, e.gamma)
        return here

    def balance(
        self, poses: np.ndarray, axes: np.ndarray, h: Array, forces: Array
    ) -> tuple[Array, Array]:
        """f (nv,) of ``Equations`` and its ``size``, by h and forces of ``Terms``."""
        tau, size = self.tau, np.empty_like(h)
        weights(poses, axes, self.solver.control["gravity"][0], size)
        size += np.abs(forces) + np.abs(tau) + np.abs(h)
        return forces + tau - h, size

    def closing(self, q: Array, v: Array, t: float) -> Equations:
        """What correction and filter need of the equations; f and gamma are left empty."""
        M, J, g, g_t = self.solver.closing_terms(q, v, t)
        if self.finite:
            require_finite(M, J)
        nothing, scale = np.zeros(0), self.solver.encoded.scale
        c = self.solver.control[0]
        return Equations(M, nothing, J, g, g_t, nothing, scale, int(c["cap"]), self.order)

    @property
    def order(self) -> Order:
        """Which rows come first."""
        return Order(self.solver.rows[0]["level"], int(self.solver.control[0]["held_cap"]))

    @cached_property
    def modules(self) -> Modules:
        """The modules of the solver."""
        return modules(self.solver)

    def modular_equations(self, q: Array, v: Array, t: float) -> ModularEquations:
        """The same module by module."""
        e = self.modules.equations(q, v, t)
        if self.finite:
            require_finite(e.f, e.gamma, *(x for block in e.blocks for x in block))
        return e

    def displace(self, q: Array, step: Array) -> Array:
        """Configuration after a velocity has acted for a unit of time."""
        moved = np.empty_like(q)
        displace(self.solver.bodies, q, step, 1.0, moved)
        return moved


@dataclass(frozen=True)
class MovingSystem:
    """A mechanism with its constraints at a state; rates by recursion: see ``moving.Moving``."""

    dynamics: SystemDynamics
    terms: Terms
    state: tuple[Array, Array, float]

    @property
    def equations(self) -> Equations:
        """The equations of motion there."""
        return self._equations

    @cached_property
    def _equations(self) -> Equations:
        terms, dynamics = self.terms, self.dynamics
        f, size = dynamics.balance(terms.poses, terms.axes, terms.h, terms.forces)
        known = terms.M, f, terms.J, terms.g, terms.g_t, terms.gamma
        cap, scale = int(dynamics.solver.control["cap"][0]), dynamics.solver.encoded.scale
        return Equations(*known, scale, cap, dynamics.order, size=size)

    def rates(self, v: Array, in_time: bool = True) -> MotionRates:
        """Coriolis matrix and rate of J; that of users' rows by differences."""
        solver = self.dynamics.solver
        rates = motion_rates_at(solver, self.terms, v, self.state[2], in_time)
        if solver.user_size:
            _, near = ByDifferences(self.dynamics, *self.state).matrix_rates(v, in_time)
            rates.J_rate[-solver.user_size :] = near[-solver.user_size :]
        return rates

    def matrix_rates(self, v: Array, in_time: bool = True) -> tuple[Array, Array]:
        """Rates of M and J."""
        C, J_rate = self.rates(v, in_time)
        return C + C.T, J_rate


def require_finite(*terms: Array) -> None:
    """Refuse to solve for what is not finite."""
    if not all(isfinite(x.sum()) for x in terms):  # a sum of what is not finite is not
        raise StepError(
            "numbers that are not finite; check tau for NaN and masses for zero, or use a smaller "
            "dt"
        )


def split_here(solver: Solver, terms: Terms, rtol: float | None = None) -> Split:
    """Velocity space by the rows, as the step splits it: weak is what it takes for weak.

    Args:
        solver: The system.
        terms: At a state.
        rtol: What is weak, relative to the strongest row, in place of the step's.
    """
    rows, c = solver.rows[0], solver.control[0]
    weak = float(c["singular_rtol"]) if rtol is None else rtol
    order = Order(rows["level"], int(c["held_cap"]))
    return split_of(terms.M, terms.J, rows["scale"], weak, int(c["cap"]), order)


def shortest_multipliers(
    solver: Solver, terms: Terms, needed: Array, split: Split | None = None
) -> tuple[Array, Mask]:
    """Shortest multipliers (nc,) with J^T lam = ``needed`` (nv,), rows in one unit.

    Rows that all but follow from others share the load, and have to leave nothing of what they
    have besides; ``split`` as in ``wrenches``.

    Returns:
        lam, and (nc,) whether a row shares its load with others.
    """
    split = split or split_here(solver, terms)
    nc = len(terms.J)
    mu = split.Q @ split.whiten_force(needed)
    asked, shared = split.Q.T @ mu, np.zeros(nc)
    if split.rank == nc:
        return split.multipliers(asked), shared > 0.0
    return shared_multipliers(solver, split.L, terms.J, asked, split.rank)


def shared_multipliers(
    solver: Solver, L: Array, J: Array, asked: Array, strong: int
) -> tuple[Array, Mask]:
    """``shortest_multipliers`` of rows that follow from one another.

    Args:
        solver: Whose rows they are.
        L: (nv, nv) factor of M.
        J: (nc, nv) the rows.
        asked: (nv,) what they supply, whitened.
        strong: How many of them are independent.
    """
    (nc, nv), there = J.shape, solver.rows[0]["scale"] > 0.0  # what has given way vanishes
    unit = solver.encoded.scale * there
    C = np.ascontiguousarray(solve_triangle(L, (unit[:, None] * J).T, transposed=True))
    R, rows, found = np.zeros((nv, nv)), np.zeros(nv, ROW), np.zeros((3, nc))
    share_out(C, R, rows, asked, strong, float(solver.control[0]["filter_rtol"]), found)
    return unit * found[0], (found[1] > SHARED) & there
