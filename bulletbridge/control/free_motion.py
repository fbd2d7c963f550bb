"""What constraints leave free at a state, and joint forces there, for laws of control.

The split of velocity space and all that laws do with it are compiled (``laws_kernel``); which basis
the free motions have changes no joint force.
"""

from dataclasses import dataclass
from functools import cached_property

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
from bulletbridge.errors import StepError
from bulletbridge.formulations.equations import NOT_DEFINITE, SINGULAR_RTOL, Dynamics, Equations
from bulletbridge.formulations.moving import moving
from bulletbridge.formulations.system_dynamics import Tree
from bulletbridge.mechanism.rates import TreeRates
from bulletbridge.numerics.projection import ROW, Caps
from bulletbridge.numerics.records import Array, copied
from bulletbridge.numerics.triangles import solve_triangle

NO_RATES = np.zeros((0, 0))


def room_for(nc: int, nv: int) -> Room:
    """Room for a split of nv rates by nc rows."""
    marks = np.zeros((2, nc), ROW)
    return Room(np.empty((nc, nv)), np.empty((4, nc, nc)), marks[0], marks[1])


def split_with_rates(dynamics: Dynamics, q: Array, v: Array, t: float) -> SplitMotion:
    """Velocity space at a state, and how it changes: of a tree in one compiled call.

    Raises:
        StepError: M is not positive definite.
    """
    if not isinstance(dynamics, Tree) or dynamics.solver.user_size:
        return FreeMotion.moving(dynamics, q, v, t, turning=False).split
    solver, (nv, nc) = dynamics.solver, (len(v), dynamics.solver.encoded.nc)
    e, c, rows = solver.encoded, solver.control[0], np.zeros(nc, ROW)
    rows["level"] = solver.rows[0]["level"]
    squares, wide = np.zeros((4, nv, nv)), np.empty((2, nc, nv))
    poses, axes = copied(solver.poses), copied(solver.axes)
    tree = TreeToSplit(
        solver.bodies,
        copied(solver.beams),
        copied(solver.stations),
        poses,
        axes,
        RowRecords(e.loops, e.couplings, e.terms),
        solver.targets_at(t),
        e.scale,
        TreeRates(copied(poses), copied(axes)),
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
    caps = Caps(int(c["cap"]), int(c["held_cap"]))
    if not split_tree(tree, q, v, split, caps, SINGULAR_RTOL, room_for(nc, nv)):
        raise StepError(NOT_DEFINITE)
    return split


@dataclass(frozen=True)
class FreeMotion:
    """Velocity space at a state.

    Attributes:
        equations: There.
        split: By the rows.
        rows: (nc,) records of the split.
        room: For kernels.
    """

    equations: Equations
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
        return cls(e, split, rows, room)

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
        here = moving(dynamics, q, v, t)
        if turning or isinstance(dynamics, Tree):
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
        wanted = (self.equations.unit * right)[self.rows["pivot"][:rank]]
        y = s.Q[:rank].T @ solve_triangle(s.R[:rank, :rank], wanted)
        return solve_triangle(self.L, y)

    @cached_property
    def unforced(self) -> Array:
        """Accelerations (nv,) without joint forces."""
        e = self.equations
        return self.free.T @ (self.free @ e.f) - self.imposed(e.gamma)

    def demand(self, rows: Array | None, right: Array, lam: Array | None, weights: Array) -> Demand:
        """What joint forces are to do: rows (m, dof) of the free motion, all of it if None."""
        e = self.equations
        (nc, nv), m = e.J.shape, len(right)
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
