"""Motion and constraint forces of constrained systems controlled apart from each other.

In quasi-velocities u_r = V_2ᵀ L⁻ᵀ tau moves the system and u_o = V_1ᵀ L⁻ᵀ tau loads its
constraints. Joint forces are therefore found in two parts that do not disturb each other: one from
the position error, one from the multipliers that are wanted. Gravity and springs are compensated.

Source: Aghili 2008, eq. 41-49. Where eq. 44-46 have K_d they mean K_p. The position error decays
along the constraints only; what is left across them is of second degree, so that convergence is
local and not global as the paper has it: see ``Regulation``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from bulletbridge.control.free_motion import FreeMotion, split_with_rates
from bulletbridge.control.laws_kernel import (
    APART,
    APART_RATE,
    ERROR,
    FORCE,
    FOUND,
    GIVEN,
    RIGHT,
    WANTED_V,
    WANTED_VDOT,
    V,
    track,
)
from bulletbridge.control.plant import Desired, Plant
from bulletbridge.errors import InfeasibleError, ModelError
from bulletbridge.formulations.equations import Dynamics, Equations
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
LAWS = get_args(TrackingLaw)
"""In the order of the numbers that kernels know them by."""
NEAREST = 1e-3
"""Least cosine between free directions here and at the wanted configuration that fit each other."""
TOO_FAR = (
    "the wanted configuration is too far from the present one: their free directions do not fit"
    " each other; use law='computed_torque', or begin nearer"
)


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
        if self.law not in LAWS:
            known = ", ".join(LAWS)
            raise ModelError(f"unknown tracking law '{self.law}'; there are {known}")

    def __call__(self, q: Array, v: Array, t: float) -> Array:
        """Joint forces tau (nv,) at a state.

        Raises:
            InfeasibleError: The actuated joints cannot produce them, or the wanted configuration is
                too far away for the published law.
        """
        now, right, _, _ = self._asked(q, v, t)
        return self.plant.distribution.forces(now, None, right, _wanted(self.forces, t))

    def errors(self, q: Array, v: Array, t: float) -> tuple[Array, Array]:
        """Position error x (nv,) and velocity error v_r - s (dof,) at a state."""
        _, _, x, error = self._asked(q, v, t)
        return x, error

    def _asked(self, q: Array, v: Array, t: float) -> tuple[FreeMotion, Array, Array, Array]:
        """The state, what is asked of joint forces (dof,), and both errors."""
        plant = self.plant
        q, v = np.asarray(q, np.float64), np.asarray(v, np.float64)  # no names: slow to read
        wanted = plant.wanted(self.desired(t))
        now = FreeMotion.moving(plant.dynamics, q, v, t, turning=self.law != "computed_torque")
        there, dof, nc = now.split, now.dof, len(now.rows)
        given, found = np.empty((GIVEN, len(v))), np.empty((FOUND, len(v)))
        given[V], given[WANTED_V], given[WANTED_VDOT] = v, wanted.v, wanted.vdot
        given[APART], given[APART_RATE] = plant.separation(q, v, wanted.q, wanted.v)
        given[FORCE] = now.loads.f
        size = 0
        if self.law == "published":
            wanted_q, wanted_v = (np.asarray(x, np.float64) for x in wanted[:2])
            there, size = split_with_rates(plant.dynamics, wanted_q, wanted_v, t), dof
        if there.ranks[1] != dof:
            raise InfeasibleError(TOO_FAR)
        room = np.empty((7, size, size)), np.empty((2, size, nc))
        gains, law = np.array([self.K_p, self.K_d], np.float64), LAWS.index(self.law)
        if track(now.split, there, law, gains, given, found, room) < NEAREST:
            raise InfeasibleError(TOO_FAR)
        return now, found[RIGHT, :dof], given[APART], found[ERROR, :dof]


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
        here = FreeMotion.at(self.plant.dynamics, q, v, t)
        wanted = self.plant.wanted(self.desired(t))
        x, rate = self.plant.difference(q, wanted.q), v - wanted.v
        vdot = wanted.vdot - self.K_p * rate - self.K_d * (rate + self.K_p * x)
        right = (vdot - here.unforced)[self.followed]
        rows = here.free.T[self.followed]
        return self.plant.distribution.forces(here, rows, right, _wanted(self.forces, t))


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
        here = FreeMotion.at(dynamics, q, v, t)
        still = dynamics.equations(q, np.zeros_like(v), t).f
        spring = np.asarray(self.K_p * self.plant.difference(q, self.goal), np.float64)
        sizes = here.loads.sizes + np.abs(spring) + np.abs(still)
        here = replace(here, loads=here.loads._replace(sizes=sizes))
        u_r = -self.K_d * here.reduce(v) - here.free @ (spring + still)
        return self.plant.distribution.forces(here, None, u_r, _wanted(self.forces, t))


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


def _wanted(forces: Forces | None, t: float) -> Array | None:
    return None if forces is None else np.asarray(forces(t), np.float64)
