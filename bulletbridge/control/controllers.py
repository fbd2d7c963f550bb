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
from typing import Literal, NamedTuple, get_args

import numpy as np

from bulletbridge.control.plant import Desired, Plant
from bulletbridge.errors import InfeasibleError, ModelError
from bulletbridge.formulations.equations import Dynamics, Equations
from bulletbridge.formulations.moving import Moving, moving
from bulletbridge.formulations.quasi_velocities import Basis, basis_of, motion_of
from bulletbridge.formulations.quasi_velocity_rates import (
    BasisRates,
    alignment,
    basis_rates,
    skew_rate,
)
from bulletbridge.numerics.records import Array, Mask

Law = Callable[[Array, Array, float], Array]
"""Joint forces tau (nv,) at a state (q, v, t)."""
Forces = Callable[[float], Array]
"""Wanted multipliers (nc,) at a time, NaN for those that are left open; see ``multipliers``."""


TrackingLaw = Literal["computed_torque", "passivity_based", "published"]
"""How ``Tracking`` follows; all bring the velocity error to zero at K_d.

``computed_torque``: inertial forces are compensated whole, the error goes straight to zero; the
wanted velocity is projected at the present configuration. ``passivity_based``: the same, but the
error turns as inertial forces turn it (Slotine and Li), by the skew S in place of the paper's
Gamma_r. ``published``: eq. 40 and 41, with S; the wanted quasi-velocity is that of the wanted
motion at its own configuration.
"""
NEAREST = 1e-3
"""Least cosine between free directions here and at the wanted configuration that fit each other."""


@dataclass(frozen=True)
class Tracking:
    """Follow a motion, and hold multipliers: v_r goes to s = v_rd - W_rᵀ K_p x.

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
        law: See ``TrackingLaw``. In v̇_r = ṡ - K_d (v_r - s), which is ``computed_torque``, v_rd is
            W_rᵀ v_d; the others subtract S (v_r - s), and ``published`` takes v_rd from the wanted
            configuration, in a basis turned to the present one.
    """

    plant: Plant
    desired: Callable[[float], Desired]
    K_p: float
    K_d: float
    forces: Forces | None = None
    law: TrackingLaw = "computed_torque"

    def __post_init__(self) -> None:
        if self.law not in get_args(TrackingLaw):
            known = ", ".join(get_args(TrackingLaw))
            raise ModelError(f"unknown tracking law '{self.law}'; there are {known}")

    def __call__(self, q: Array, v: Array, t: float) -> Array:
        """Joint forces tau (nv,) at a state.

        Raises:
            InfeasibleError: The actuated joints cannot produce them, or the wanted configuration is
                too far away for the published law.
        """
        now = self._moving(q, v, t)
        basis, e = now.basis, now.here.equations
        s, rate = self._reference(now, self.plant.wanted(self.desired(t)), t)
        v_r = basis.reduce(now.v)
        rate = rate - self.K_d * (v_r - s)
        if self.law != "computed_torque":
            rate -= skew_rate(now.here, basis, v_r) @ (v_r - s)
        unforced = basis.V_2.T @ basis.whiten_force(e.f) + now.rates.reduce(basis, now.v)
        return _forces(self.plant, e, basis, rate - unforced, self.forces, t)

    def errors(self, q: Array, v: Array, t: float) -> tuple[Array, Array]:
        """Position error x (nv,) and velocity error v_r - s (dof,) at a state."""
        now, wanted = self._moving(q, v, t), self.plant.wanted(self.desired(t))
        s, _ = self._reference(now, wanted, t)
        return self.plant.difference(q, wanted.q), now.basis.reduce(now.v) - s

    def _moving(self, q: Array, v: Array, t: float) -> "_Reduced":
        q, v = np.asarray(q), np.asarray(v)  # without names, which are slow to read
        here = moving(self.plant.dynamics, q, v, t)
        basis = basis_of(here.equations, self.plant.root)
        return _Reduced(q, v, here, basis, basis_rates(basis, *here.matrix_rates(v)))

    def _reference(self, now: "_Reduced", wanted: Desired, t: float) -> tuple[Array, Array]:
        """s (dof,) and its rate in the basis as it is carried along."""
        x, x_rate = self.plant.separation(now.q, now.v, wanted.q, wanted.v)
        if self.law != "published":
            slide, slide_rate = wanted.v - self.K_p * x, wanted.vdot - self.K_p * x_rate
            return now.reduce(slide, slide_rate)
        v_rd, v_rd_rate = self._own(now, wanted, t)
        back, back_rate = now.reduce(x, x_rate)
        return v_rd - self.K_p * back, v_rd_rate - self.K_p * back_rate

    def _own(self, now: "_Reduced", wanted: Desired, t: float) -> tuple[Array, Array]:
        """Quasi-velocity of the wanted motion at its own configuration, and its rate."""
        there = self._moving(wanted.q, wanted.v, t)
        same = there.basis.V_2.shape == now.basis.V_2.shape
        other = now.basis.V_2, now.rates.V_2
        fit = alignment(there.basis.V_2, there.rates.V_2, *other) if same else None
        if fit is None or fit.nearness < NEAREST:
            raise InfeasibleError(
                "the wanted configuration is too far from the present one: their free directions"
                " do not fit each other; use law='computed_torque', or begin nearer"
            )
        y, y_rate = there.reduce(wanted.v, wanted.vdot)
        return fit.A.T @ y, fit.rate.T @ y + fit.A.T @ y_rate


class _Reduced(NamedTuple):
    """A state with its basis, and how that changes."""

    q: Array
    v: Array
    here: Moving
    basis: Basis
    rates: BasisRates

    def reduce(self, x: Array, rate: Array) -> tuple[Array, Array]:
        """Quasi-velocities (dof,) of a velocity x (nv,) that changes at ``rate``; their rate."""
        return self.basis.reduce(x), self.rates.reduce(self.basis, x) + self.basis.reduce(rate)


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
        basis, wanted = basis_of(e, self.plant.root), self.plant.wanted(self.desired(t))
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
