"""A mechanism with its constraints as formulations and integrators see it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import Terms
from bulletbridge.formulations.equations import Equations, Order, Split, split_of
from bulletbridge.formulations.modular import ModularEquations
from bulletbridge.formulations.modules import Modules, modules
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.records import Array


@dataclass(frozen=True)
class Tree:
    """Equations of motion of a solver, rows as kept; forces are those of its ``tau``."""

    solver: Solver

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return self.solver.mechanism.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return self.solver.mechanism.nv

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state."""
        terms = self.solver.terms(q, v, t)
        f = terms.forces + self.solver.tau[0] - terms.h
        solver, c = self.solver, self.solver.control[0]
        size = np.abs(terms.forces) + np.abs(solver.tau[0]) + np.abs(terms.h) + self._weights(terms)
        order = Order(solver.rows[0]["level"], int(c["held_cap"]))
        known = terms.M, f, terms.J, terms.g, terms.g_t, terms.gamma
        return Equations(*known, solver.encoded.scale, int(c["cap"]), order, size=size)

    def _weights(self, terms: Terms) -> Array:
        """(nv,) what the weight of the bodies on each rate may come to, whatever balances it."""
        g = float(np.linalg.norm(self.solver.control[0]["gravity"]))
        carried = terms.poses[terms.axes["body"]]
        turning = np.linalg.norm(terms.axes["w"], axis=1)
        sliding = np.linalg.norm(terms.axes["v"], axis=1)
        moment = np.linalg.norm(carried["carried_mc"], axis=1)
        return np.asarray(g * (sliding * carried["carried_m"] + turning * moment), np.float64)

    @cached_property
    def modules(self) -> Modules:
        """The modules of the solver."""
        return modules(self.solver)

    def modular_equations(self, q: Array, v: Array, t: float) -> ModularEquations:
        """The same module by module."""
        return self.modules.equations(q, v, t)

    def displace(self, q: Array, step: Array) -> Array:
        """Configuration after a velocity has acted for a unit of time."""
        moved = np.empty_like(q)
        displace(self.solver.bodies, q, step, 1.0, moved)
        return moved


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
    solver: Solver, terms: Terms, needed: Array, rtol: float | None = None
) -> tuple[Array, Array]:
    """Shortest multipliers (nc,) with J^T lam = ``needed`` (nv,), rows in one unit.

    Rows that all but follow from others share the load, and have to leave nothing of what they
    have besides; ``rtol`` as in ``wrenches``.

    Returns:
        lam, and (nc,) whether a row shares its load with others.
    """
    from scipy.linalg import solve_triangular

    unit, split = solver.encoded.scale, split_here(solver, terms, rtol)
    rows = solve_triangular(split.L, (unit[:, None] * terms.J).T, lower=True, trans="T")
    asked = split.Q.T @ (split.Q @ split.whiten_force(needed))
    U, s, Vt = np.linalg.svd(rows)
    some = s > float(solver.control[0]["filter_rtol"]) * s.max(initial=0.0)
    lam: Array = unit * (Vt[: len(s)][some].T @ ((U.T[: len(s)][some] @ asked) / s[some]))
    return lam, np.abs(Vt[split.rank :]).max(axis=0, initial=0.0) > 1e-9
