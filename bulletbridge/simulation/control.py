"""Motion and constraint forces of constrained systems controlled apart from each other.

In quasi-velocities u_r = V_2ᵀ L⁻ᵀ tau moves the system and u_o = V_1ᵀ L⁻ᵀ tau loads its
constraints. Joint forces are therefore found in two parts that do not disturb each other: one from
the position error, one from the multipliers that are wanted. Gravity and springs are compensated.

Source: Aghili 2008, eq. 41-49. Where eq. 44-46 have K_d they mean K_p. The position error decays
along the constraints only; what is left across them is of second degree, so that convergence is
local and not global as the paper has it: see ``Regulation``.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bulletbridge.formulations.equations import Dynamics, Equations
from bulletbridge.formulations.quasi_velocities import Basis, Root, basis_of
from bulletbridge.formulations.quasi_velocity_rates import (
    STENCIL,
    STEP,
    basis_rates,
    matrix_rates,
    skew_rate,
)
from bulletbridge.mechanism.model import Joint
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.distribution import Distribution, Names
from bulletbridge.simulation.inverse_dynamics import distribution, undriven
from bulletbridge.simulation.state import ClosedState

Law = Callable[[Array, Array, float], Array]
"""Joint forces tau (nv,) at a state (q, v, t)."""
Forces = Callable[[float], Array]
"""Wanted multipliers (nc,) at a time, NaN for those that are left open; see ``multipliers``."""


class Desired(NamedTuple):
    """Wanted configuration (nq,), velocity (nv,) and acceleration (nv,) at a time."""

    q: Array
    v: Array
    vdot: Array


@dataclass(frozen=True)
class Plant:
    """What a controller acts on.

    Attributes:
        dynamics: Equations of motion without the controller's forces.
        distribution: Which rates it may push.
        difference: (q, q_d) to the velocity (nv,) that takes q_d to q in a unit of time.
        root: Square root of M; joint forces do not depend on it.
    """

    dynamics: Dynamics
    distribution: Distribution
    difference: Callable[[Array, Array], Array]
    root: Root = "tree"

    def error_rate(self, q: Array, v: Array, desired: Desired) -> Array:
        """Rate (nv,) of the difference of two configurations that both move."""
        speed = max(float(np.abs(v).max()), float(np.abs(desired.v).max()))
        h = STEP / max(speed, 1.0)
        rate, displace = np.zeros(self.dynamics.nv), self.dynamics.displace
        for k, weight in STENCIL:
            for step, sign in ((k * h, weight / h), (-k * h, -weight / h)):
                there = displace(desired.q, step * desired.v)
                rate += sign * self.difference(displace(q, step * v), there)
        return rate


def plant_of(
    system: ClosedState,
    actuated: Collection[str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Plant:
    """A system as a plant; set its ``tau`` to what the law gives before each step.

    Args:
        system: Any loaded robot.
        actuated: Names of the joints that may act; all but floating bases unless given.
        weights: See ``Distribution``.

    Raises:
        ModelError: A joint does not exist, or a weight is not positive.
    """
    joints = tuple(system.mechanism.joints.values())

    def difference(q: Array, q_d: Array) -> Array:
        return configuration_difference(joints, system.mechanism.nv, q, q_d)

    return Plant(undriven(system), distribution(system, actuated, weights), difference)


def plain_plant(dynamics: Dynamics) -> Plant:
    """Any dynamics as a plant, all its rates actuated, the rates those of its coordinates."""
    nv = dynamics.nv
    rows = len(dynamics.equations(np.ones(dynamics.nq), np.zeros(nv), 0.0).g)
    names = Names([f"rate {k}" for k in range(nv)], [f"row {k}" for k in range(rows)])
    return Plant(dynamics, Distribution(np.ones(nv, bool), np.ones(nv), names), np.subtract)


def configuration_difference(joints: Collection[Joint], nv: int, q: Array, q_d: Array) -> Array:
    """Velocity (nv,) that takes q_d to q in a unit of time: turns by rotation vectors."""
    x = np.zeros(nv)
    for joint in joints:
        if joint.kind in ("revolute", "prismatic"):
            x[joint.v] = q[joint.q] - q_d[joint.q]
            continue
        free, first = joint.kind == "free", joint.v.start
        part = slice(joint.q.stop - 4, joint.q.stop)
        x[first : first + 3] = _turn(q[part].tolist(), q_d[part].tolist(), 1.0 if free else -1.0)
        if free:
            x[first + 3 : first + 6] = (q[joint.q] - q_d[joint.q])[:3]
    return x


def _turn(a: list[float], b: list[float], side: float) -> list[float]:
    """Rotation vector that takes the unit quaternion b to a, xyzw: in world axes or, -1, in b's."""
    (ax, ay, az, aw), (bx, by, bz, bw) = a, b
    x = bw * ax - aw * bx + side * (by * az - bz * ay)
    y = bw * ay - aw * by + side * (bz * ax - bx * az)
    z = bw * az - aw * bz + side * (bx * ay - by * ax)
    w = aw * bw + ax * bx + ay * by + az * bz
    sine = math.hypot(x, y, z)
    # q and -q are one rotation: the shorter way
    factor = 2.0 * math.atan2(sine, abs(w)) / sine if sine > 0.0 else 2.0
    factor = math.copysign(factor, w)
    return [factor * x, factor * y, factor * z]


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
