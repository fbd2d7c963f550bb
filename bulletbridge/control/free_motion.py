"""What constraints leave free at a state, and joint forces there, for laws of control.

The split of velocity space and all that laws do with it are compiled (``laws_kernel``); which basis
the free motions have changes no joint force.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeGuard

import numpy as np
from typing_extensions import Self

from bulletbridge.constraints.row_rates import RowRecords
from bulletbridge.control.laws_kernel import (
    Demand,
    Room,
    SplitMotion,
    TreeToSplit,
    distribute,
    split_motion,
    split_tree,
)
from bulletbridge.engine.workspace import Placed
from bulletbridge.errors import StepError
from bulletbridge.formulations.equations import NOT_DEFINITE, SINGULAR_RTOL, Dynamics, Equations
from bulletbridge.formulations.moving import moving
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.mechanism.rates import TreeRates
from bulletbridge.numerics.projection import ROW, Caps
from bulletbridge.numerics.records import Array, copied
from bulletbridge.numerics.triangles import solve_triangle

NO_RATES = np.zeros((0, 0))


def room_for(nc: int, nv: int) -> Room:
    """Room for a split of nv rates by nc rows."""
    marks = np.zeros((2, nc), ROW)
    return Room(np.empty((nc, nv)), np.empty((4, nc, nc)), marks[0], marks[1])


class Loads(NamedTuple):
    """What acts at a state.

    Attributes:
        f: (nv,) forces other than joint forces, less Coriolis, centrifugal and gravity terms.
        gamma: (nc,) acceleration of the rows at v̇ = 0.
        unit: (nc,) factor that brings each row to one unit.
        sizes: (nv,) sum of the sizes of the terms of f.
    """

    f: Array
    gamma: Array
    unit: Array
    sizes: Array


class SplitTree(NamedTuple):
    """A tree at a state, its velocity space split.

    Attributes:
        split: By its rows, with rates.
        rows: (nc,) records of the split.
        placed: Where its bodies are.
        targets: Prescribed motions at the time.
        room: For kernels.
    """

    split: SplitMotion
    rows: np.ndarray
    placed: Placed
    targets: np.ndarray
    room: Room


def split_with_rates(dynamics: Dynamics, q: Array, v: Array, t: float) -> SplitMotion:
    """Velocity space at a state, and how it changes: of a tree in one compiled call.

    Raises:
        StepError: M is not positive definite.
    """
    if is_compiled(dynamics):
        return split_of_tree(dynamics, q, v, t).split
    return FreeMotion.moving(dynamics, q, v, t, turning=False).split


def is_compiled(dynamics: Dynamics) -> TypeGuard[SystemDynamics]:
    """Whether it is a tree all of whose rows kernels know."""
    return isinstance(dynamics, SystemDynamics) and not dynamics.solver.user_size


def split_of_tree(dynamics: SystemDynamics, q: Array, v: Array, t: float) -> SplitTree:
    """A tree without users' rows at a state.

    Raises:
        StepError: M is not positive definite.
    """
    solver, (nv, nc) = dynamics.solver, (len(v), dynamics.solver.encoded.nc)
    e, c, rows = solver.encoded, solver.control, np.zeros(nc, ROW)
    rows["level"] = solver.rows[0]["level"]
    squares, wide = np.zeros((4, nv, nv)), np.empty((2, nc, nv))
    placed = Placed(*map(copied, (solver.beams, solver.stations, solver.poses, solver.axes)))
    targets = solver.targets_at(t)
    tree = TreeToSplit(
        solver.bodies,
        *placed,
        RowRecords(e.loops, e.couplings, e.terms),
        targets,
        e.scale,
        TreeRates(copied(placed.poses), copied(placed.axes)),
    )
    split = SplitMotion(
        squares[0],
        wide[0],
        np.empty((nc, nc)),
        rows,
        squares[1],
        squares[2],
        np.zeros(2, np.int64),
        squares[3],
        wide[1],
    )
    caps, room = Caps(int(c["cap"][0]), int(c["held_cap"][0])), room_for(nc, nv)
    if not split_tree(tree, q, v, split, caps, SINGULAR_RTOL, room):
        raise StepError(NOT_DEFINITE)
    return SplitTree(split, rows, placed, targets, room)


@dataclass(frozen=True)
class FreeMotion:
    """Velocity space at a state.

    Attributes:
        loads: What acts there.
        split: By the rows.
        rows: (nc,) records of the split.
        room: For kernels.
    """

    loads: Loads
    split: SplitMotion
    rows: np.ndarray
    room: Room

    @classmethod
    def of(cls, e: Equations, rates: tuple[Array, Array] | None = None) -> Self:
        """At equations of motion.

        Args:
            e: Equations.
            rates: Coriolis matrix (nv, nv) and rate of J (nc, nv), where they are needed.

        Raises:
            StepError: M is not positive definite.
        """
        nc, nv = e.J.shape
        rows = np.zeros(nc, ROW)
        if e.order is not None:
            rows["level"] = e.order.levels
        unit = e.unit[:, None]
        C, J_rate = (NO_RATES, NO_RATES) if rates is None else (rates[0].copy("C"), unit * rates[1])
        square = nv, nv
        split = SplitMotion(
            np.array(e.M, np.float64, order="C"),
            np.ascontiguousarray(unit * e.J),
            np.empty((nc, nc)),
            rows,
            np.empty(square),
            np.empty(square),
            np.zeros(2, np.int64),
            C,
            J_rate,
        )
        room = room_for(nc, nv)
        cap = nc if e.cap is None else e.cap
        caps = Caps(cap, cap if e.order is None else e.order.positions)
        if not split_motion(split, caps, SINGULAR_RTOL, rates is not None, room):
            raise StepError(NOT_DEFINITE)
        return cls(Loads(e.f, e.gamma, e.unit, e.sizes), split, rows, room)

    @classmethod
    def at(cls, dynamics: Dynamics, q: Array, v: Array, t: float) -> Self:
        """At a state (q, v, t) of a system.

        Raises:
            StepError: M is not positive definite.
        """
        if not is_compiled(dynamics):
            return cls.of(dynamics.equations(q, v, t))
        split, rows, placed, targets, room = split_of_tree(dynamics, q, v, t)
        h, forces = dynamics.solver.forces_at(placed, targets, rows, (q, v, t))
        f, sizes = dynamics.balance(placed.poses, placed.axes, h, forces)
        loads = Loads(f, np.ascontiguousarray(rows["gamma"]), dynamics.solver.encoded.scale, sizes)
        return cls(loads, split, rows, room)

    @classmethod
    def moving(cls, dynamics: Dynamics, q: Array, v: Array, t: float, turning: bool = True) -> Self:
        """At a state, with how it changes.

        Args:
            dynamics: The system.
            q: Configuration (nq,).
            v: Velocity (nv,).
            t: Time [s].
            turning: Whether S is asked for, which systems without rates of their own are slow at.
        """
        if is_compiled(dynamics):
            return cls.at(dynamics, q, v, t)
        here = moving(dynamics, q, v, t)
        if turning or isinstance(dynamics, SystemDynamics):  # one with rows in Python
            return cls.of(here.equations, here.rates(v))
        M_rate, J_rate = here.matrix_rates(v)
        return cls.of(here.equations, (M_rate / 2, J_rate))

    @property
    def dof(self) -> int:
        """Degrees of freedom."""
        return int(self.split.ranks[1])

    @property
    def free(self) -> Array:
        """(dof, nv) velocities of the quasi-velocities one by one."""
        return self.split.free[: self.dof]

    @cached_property
    def L(self) -> Array:
        """(nv, nv) lower triangular, M = Lᵀ L."""
        return np.tril(self.split.L)

    def reduce(self, v: Array) -> Array:
        """Quasi-velocities v_r (dof,) of a velocity (nv,)."""
        return np.asarray(self.split.V[: self.dof] @ (self.L @ v), np.float64)

    def imposed(self, right: Array) -> Array:
        """The shortest x (nv,), in the metric of M, with J x = right (nc,)."""
        s, rank = self.split, int(self.split.ranks[0])
        if not rank:
            return np.zeros(len(s.L))
        wanted = (self.loads.unit * right)[self.rows["pivot"][:rank]]
        y = s.Q[:rank].T @ solve_triangle(s.R[:rank, :rank], wanted)
        return solve_triangle(self.L, y)

    @cached_property
    def unforced(self) -> Array:
        """Accelerations (nv,) without joint forces."""
        return self.free.T @ (self.free @ self.loads.f) - self.imposed(self.loads.gamma)

    def demand(self, rows: Array | None, right: Array, lam: Array | None, weights: Array) -> Demand:
        """What joint forces are to do: rows (m, dof) of the free motion, all of it if None."""
        e, nc, nv, m = self.loads, len(self.rows), len(self.split.L), len(right)
        D, r = np.empty((m + nc, nv)), np.empty(m + nc)
        D[:m] = self.free if rows is None else rows @ self.free
        r[:m] = right
        asked = np.full(nc, np.nan) if lam is None else lam / e.unit
        gamma, f = e.unit * e.gamma, np.ascontiguousarray(e.f, np.float64)
        vectors = np.empty((2, m + nc))
        within, R = np.empty((m + nc, nv)), np.empty((m + nc, m + nc))
        marks = np.zeros(m + nc, ROW)
        return Demand(D, r, vectors[0], asked, f, gamma, weights, within, R, marks, vectors[1])

    def distributed(self, demand: Demand, m: int) -> tuple[Array, int, bool]:
        """The least joint forces for a demand of m rows, and whether they do it.

        Between them, how many rows the demand has with those of multipliers.
        """
        tau = np.empty(len(self.split.L))
        end, met = distribute(self.split, demand, m, tau, self.room)
        return tau, end, met
