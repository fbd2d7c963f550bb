"""Motion and constraint forces of constrained systems controlled apart from each other.

In quasi-velocities u_r = V_2ᵀ L⁻ᵀ tau moves the system and u_o = V_1ᵀ L⁻ᵀ tau loads its
constraints. Joint forces are therefore found in two parts that do not disturb each other: one from
the position error, one from the multipliers that are wanted. Gravity and springs are compensated.

Source: Aghili 2008, eq. 41-49. Where eq. 44-46 have K_d they mean K_p. The position error decays
along the constraints only; what is left across them is of second degree, so that convergence is
local and not global as the paper has it: see ``Regulation``.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bulletbridge.control.plant import Desired, Plant
from bulletbridge.formulations.equations import Dynamics, Equations
from bulletbridge.formulations.quasi_velocities import Basis, basis_of, motion_of
from bulletbridge.formulations.quasi_velocity_rates import basis_rates, matrix_rates, skew_rate
from bulletbridge.numerics.records import Array, Mask

Law = Callable[[Array, Array, float], Array]
"""Joint forces tau (nv,) at a state (q, v, t)."""
Forces = Callable[[float], Array]
"""Wanted multipliers (nc,) at a time, NaN for those that are left open; see ``multipliers``."""


@dataclass(frozen=True)
class Tracking:
    """Follow a motion, and hold multipliers: s = W_rᵀ (v_d - K_p x), v̇_r = ṡ - K_d (v_r - s).

    v_r - s decays at K_d. The position error x along the constraints decays at K_p for a motion at
    rest; a wanted velocity adds a part that changes sign with it, since the metric of M, in which
    it is brought to the present configuration, tells other directions from the constraints'. A
    motion that does not keep to the constraints is followed as far as they let it.

    Attributes:
        plant: What it acts on.
        desired: Wanted motion by time.
        K_p: Rate of the position error [1/s].
        K_d: Rate of the velocity error [1/s].
        forces: Wanted multipliers by time; None for the least joint forces.
        skew: Whether the velocity error turns as inertial forces turn it (S in place of the
            paper's Gamma_r) rather than not at all. Its length decays alike; it costs ten
            evaluations of the dynamics for each freedom.
    """

    plant: Plant
    desired: Callable[[float], Desired]
    K_p: float
    K_d: float
    forces: Forces | None = None
    skew: bool = False

    def __call__(self, q: Array, v: Array, t: float) -> Array:
        """Joint forces tau (nv,) at a state.

        Raises:
            InfeasibleError: The actuated joints cannot produce them.
        """
        dynamics, root = self.plant.dynamics, self.plant.root
        e = dynamics.equations(q, v, t)
        basis, wanted = basis_of(e, root), self.desired(t)
        L_rate, V_rate = basis_rates(basis, *matrix_rates(dynamics, q, v, t), root)
        slide, slide_rate = self._slide(q, v, wanted)

        def turned(x: Array) -> Array:  # d(W_rᵀ)/dt x
            return basis.V_2.T @ (L_rate @ x) + V_rate.T @ (basis.L @ x)

        epsilon = basis.reduce(v - slide)
        rate = turned(slide) + basis.reduce(slide_rate) - self.K_d * epsilon
        if self.skew:
            rate -= skew_rate(dynamics, q, basis.reduce(v), t, basis, root) @ epsilon
        unforced = basis.V_2.T @ basis.whiten_force(e.f) + turned(v)
        return _forces(self.plant, e, basis, rate - unforced, self.forces, t)

    def errors(self, q: Array, v: Array, t: float) -> tuple[Array, Array]:
        """Position error x (nv,) and velocity error v_r - s (dof,) at a state."""
        wanted = self.desired(t)
        basis = basis_of(self.plant.dynamics.equations(q, v, t), self.plant.root)
        return self.plant.difference(q, wanted.q), basis.reduce(v - self._slide(q, v, wanted)[0])

    def _slide(self, q: Array, v: Array, wanted: Desired) -> tuple[Array, Array]:
        """v_d - K_p x (nv,) and its rate."""
        x, rate = self.plant.difference(q, wanted.q), self.plant.error_rate(q, v, wanted)
        return wanted.v - self.K_p * x, wanted.vdot - self.K_p * rate


@dataclass(frozen=True)
class PartTracking:
    """Follow a motion with some rates only, and hold multipliers; the others move as they must.

    For a floating base without thrusters, or more joints than drives. Of the rates that are
    followed v - v_d + K_p x decays at K_d and then x at K_p; what the others do is not looked at,
    and they may move for ever.

    Attributes:
        plant: What it acts on.
        followed: (nv,) rates that follow; joints of one rate each.
        desired: Wanted motion by time, of which the other rates do not count.
        K_p: Rate of the position errors [1/s].
        K_d: Rate of the velocity errors [1/s].
        forces: Wanted multipliers by time; None for the least joint forces.
    """

    plant: Plant
    followed: Mask
    desired: Callable[[float], Desired]
    K_p: float
    K_d: float
    forces: Forces | None = None

    def __call__(self, q: Array, v: Array, t: float) -> Array:
        """Joint forces tau (nv,) at a state.

        Raises:
            InfeasibleError: The actuated joints cannot produce them.
        """
        e = self.plant.dynamics.equations(q, v, t)
        basis, wanted = basis_of(e, self.plant.root), self.desired(t)
        x, rate = self.plant.difference(q, wanted.q), v - wanted.v
        vdot = wanted.vdot - self.K_p * rate - self.K_d * (rate + self.K_p * x)
        rows = basis.unwhiten(basis.V_2)[self.followed]
        right = (vdot - motion_of(e, basis).vdot)[self.followed]
        lam = None if self.forces is None else self.forces(t)
        return self.plant.distribution.forces(e, basis, rows, right, lam)


@dataclass(frozen=True)
class Regulation:
    """Rest at a configuration, and hold multipliers: u_r = -K_d v_r - V_2ᵀ L⁻ᵀ K_p x.

    A spring of stiffness K_p in all rates and a damper in the metric of M, without compensation of
    inertial forces. Every configuration where the spring pulls against the constraints only is one
    of rest: on a circle the point opposite the goal is another. Rows must not depend on time.

    Attributes:
        plant: What it acts on.
        goal: Wanted configuration (nq,).
        K_p: Stiffness [N m/rad or N/m] of every rate, or (nv,) of each.
        K_d: Rate of the velocity [1/s].
        forces: Wanted multipliers by time; None for the least joint forces.
    """

    plant: Plant
    goal: Array
    K_p: float | Array
    K_d: float
    forces: Forces | None = None

    def __call__(self, q: Array, v: Array, t: float) -> Array:
        """Joint forces tau (nv,) at a state.

        Raises:
            InfeasibleError: The actuated joints cannot produce them.
        """
        dynamics = self.plant.dynamics
        e = dynamics.equations(q, v, t)
        basis = basis_of(e, self.plant.root)
        still = dynamics.equations(q, np.zeros_like(v), t).f
        spring = np.asarray(self.K_p * self.plant.difference(q, self.goal), np.float64)
        u_r = -self.K_d * basis.reduce(v) - basis.V_2.T @ basis.whiten_force(spring + still)
        e = e._replace(size=e.sizes + np.abs(spring) + np.abs(still))
        return _forces(self.plant, e, basis, u_r, self.forces, t)


@dataclass(frozen=True)
class Controlled:
    """Dynamics under a law, evaluated at every state: for formulations and integrators."""

    dynamics: Dynamics
    law: Law

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return self.dynamics.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return self.dynamics.nv

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state."""
        e = self.dynamics.equations(q, v, t)
        return e._replace(f=e.f + self.law(q, v, t))

    def displace(self, q: Array, step: Array) -> Array:
        """Configuration after a velocity has acted for a unit of time."""
        return self.dynamics.displace(q, step)


def _forces(
    plant: Plant, e: Equations, basis: Basis, u_r: Array, forces: Forces | None, t: float
) -> Array:
    lam = None if forces is None else forces(t)
    return plant.distribution.forces(e, basis, np.eye(len(u_r)), u_r, lam)
