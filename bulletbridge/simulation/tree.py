"""A mechanism with its constraints as formulations and integrators see it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bulletbridge.formulations.equations import Equations, Order
from bulletbridge.formulations.modular import ModularEquations
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.modules import Modules, modules
from bulletbridge.simulation.solver import Solver
from bulletbridge.simulation.solver_arrays import Terms


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
