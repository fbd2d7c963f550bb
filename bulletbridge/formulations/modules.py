"""The equations of a solver module by module: no mass matrix or Jacobian of the whole is made."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.drift import drift
from bulletbridge.constraints.rows import block_jacobian, jacobian, residuals
from bulletbridge.constraints.user import Kinematics
from bulletbridge.engine.stepper import Solver
from bulletbridge.formulations.equations import Order
from bulletbridge.formulations.modular import (
    Alike,
    Block,
    Connectivity,
    ModularEquations,
    alike_modules,
)
from bulletbridge.mechanism.dynamics import bias, block_masses, joint_forces
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.numerics.records import Array, Ints, copied


def modules_of(below: Ints) -> list[Ints]:
    """Coordinates of each tree that hangs from the world, from the next axis below each (nv,).

    Trees whose coordinates are mixed count as one.
    """
    first = np.arange(len(below))
    for k, j in enumerate(below):
        if j >= 0:
            first[k] = first[j]
    starts: list[int] = []
    for k, root in enumerate(first):
        if root == k:
            starts.append(k)
        while starts[-1] > root:
            starts.pop()
    ends = [*starts, len(below)][1:]
    return [np.arange(a, b) for a, b in zip(starts, ends, strict=True)]


class Entries(NamedTuple):
    """Where the terms of modules alike are in the arrays that kernels write."""

    mass: Ints  # (k, n, n) in the mass matrix by modules, flat; its upper triangle is of no meaning
    rows: Ints  # (k, r, n) in what one end of the loops adds to J, flat
    ends: Array  # (2, k, r, 1) 1.0 where the end a, and the end b, of a row's loop is on the module
    # (k, r, n) in the rows that are not those of loops, flat; None where there are none
    others: Ints | None
    other: Array  # (k, r, 1) whether a row is one of those


@dataclass
class Modules:
    """Modules of a solver and where their parts are.

    Attributes:
        first: (nv,) first coordinate of the module of each.
        width: Coordinates of the largest.
        rows: Rows of loops; couplings and users' rows come after them.
        connectivity: Which rows are at which modules.
        entries: Of each stack of ``connectivity``.
    """

    solver: Solver
    first: Ints
    width: int
    rows: int
    connectivity: Connectivity
    entries: tuple[Entries, ...]

    @cached_property
    def _room(self) -> tuple[tuple[np.ndarray, ...], Array, Array]:
        """Records of the solver to write to, M (nv, width) and J (2, rows, width)."""
        s = self.solver
        known = s.poses, s.axes, s.rows[0], s.beams, s.stations
        M = np.zeros((s.mechanism.nv, self.width))
        return tuple(map(copied, known)), M, np.zeros((2, max(self.rows, 1), self.width))

    def equations(self, q: Array, v: Array, t: float) -> ModularEquations:
        """The equations of motion at a state, rows as kept."""
        s, e = self.solver, self.solver.encoded
        records, M, J = self._room
        theirs = s.poses, s.axes, s.rows[0], s.beams, s.stations
        for mine, known in zip(records, theirs, strict=True):
            overwrite(mine, known)
        poses, axes, rows, beams, stations = records
        h, forces = np.zeros((2, s.mechanism.nv))
        targets = s.targets_at(t)
        kinematics(s.bodies, beams, stations, q, poses, axes)
        block_masses(s.bodies, beams, stations, poses, axes, self.first, M)
        residuals(e.loops, e.couplings, e.terms, poses, axes, targets, q, rows)
        block_jacobian(e.loops, e.couplings, poses, axes, targets, self.first, J, rows)
        efforts = s.efforts_at(targets, poses, axes, q, v, t)
        poses["av"][0] = -s.control[0]["gravity"]
        bias(s.bodies, beams, stations, efforts, poses, axes, v, h)
        drift(e.loops, e.couplings, e.terms, poses, axes, targets, rows)
        joint_forces(axes, q, v, s.tau[0] + s.scripted(t), forces)
        others: Array | None = None
        if e.nc > self.rows:
            others = self._other_rows(Kinematics(s.mechanism, poses, axes, q, v, t), rows)
        blocks: list[Block] = []
        for at in self.entries:
            jacobian = at.ends[0] * J[0].take(at.rows)
            jacobian += at.ends[1] * J[1].take(at.rows)
            if others is not None and at.others is not None:
                jacobian += at.other * others.take(at.others)
            blocks.append(Block(M.take(at.mass), jacobian))
        c = s.control[0]
        order = Order(np.array(rows["level"]), int(c["held_cap"]))
        g, g_t, gamma = (np.array(rows[name]) for name in ("g", "g_t", "gamma"))
        known = forces - h, g, g_t, gamma, e.scale, int(c["cap"]), order
        return ModularEquations(self.connectivity, tuple(blocks), *known)

    def _other_rows(self, kinematics: Kinematics, rows: np.ndarray) -> Array:
        """Rows (n, nv) that are not those of loops; users write theirs."""
        s = self.solver
        e = s.encoded
        every = np.zeros((e.nc, s.mechanism.nv))
        poses, axes = kinematics.poses, kinematics.axes
        targets = e.targets(np.array([kinematics.t]))[0]
        jacobian(e.loops[:0], e.couplings, e.terms, poses, axes, targets, every, rows)
        J = every[self.rows :]
        if s.user_size:
            s.evaluate_users(kinematics, rows[self.rows :], J)
        return J


def overwrite(target: np.ndarray, source: np.ndarray) -> None:
    """Copy records over others of the same layout, as they lie in memory."""
    opaque = np.dtype((np.void, source.dtype.itemsize))
    target.view(opaque)[...] = source.view(opaque)


def modules(solver: Solver) -> Modules:
    """Find the modules of a solver and what joins them."""
    e, nv = solver.encoded, solver.mechanism.nv
    columns = modules_of(np.array(solver.axes["below"], np.int64))
    module, first = np.zeros(nv, np.int64), np.zeros(nv, np.int64)
    for k, part in enumerate(columns):
        module[part], first[part] = k, part[0]
    count = int(e.loops["rows"].sum())
    ends = -np.ones((2, e.nc), np.int64)
    for loop in e.loops:
        part = slice(int(loop["row"]), int(loop["row"] + loop["rows"]))
        for side, axis in enumerate((int(loop["axis_a"]), int(loop["axis_b"]))):
            ends[side, part] = module[axis] if axis >= 0 else -1
    touched = np.zeros((e.nc, len(columns)), bool) if e.nc > count else np.zeros((0, 0), bool)
    if e.nc > count:
        J = np.zeros((e.nc - count, nv))
        for coupling in e.couplings:
            part = slice(int(coupling["first"]), int(coupling["first"] + coupling["count"]))
            J[int(coupling["row"]) - count, e.terms["axis"][part]] = 1.0
        J[e.nc - count - solver.user_size :] = 1.0  # a user's row may reach anything
        for k, part in enumerate(columns):
            touched[count:, k] = J[:, part].any(axis=1)
    rows: list[list[int]] = [[] for _ in columns]
    for row in range(count):
        for k in sorted({int(k) for k in ends[:, row]} - {-1}):
            rows[k].append(row)
    for row in range(count, e.nc):
        for k in np.flatnonzero(touched[row]):
            rows[k].append(row)
    alike = alike_modules(columns, [np.array(part, np.int64) for part in rows])
    width = max((len(part) for part in columns), default=1)
    connectivity = Connectivity(alike, e.nc)
    entries = tuple(entries_of(a, ends, module, first, (count, width, nv)) for a in alike)
    return Modules(solver, first, width, count, connectivity, entries)


def entries_of(
    alike: Alike, ends: Ints, module: Ints, first: Ints, sizes: tuple[int, int, int]
) -> Entries:
    """Where the terms of modules alike are.

    Args:
        alike: The modules.
        ends: (2, nc) module at the ends a and b of each row's loop; -1 for none.
        module: (nv,) number of the module of each coordinate.
        first: (nv,) first coordinate of that module.
        sizes: Rows of loops, coordinates of the largest module, and all coordinates.
    """
    (count, width, nv), (columns, rows) = sizes, alike
    inner = columns - first[columns]
    mass = columns[:, :, None] * width + inner[:, None, :]
    at = np.minimum(rows, max(count - 1, 0))[:, :, None] * width + inner[:, None, :]
    masks = (ends[:, rows] == module[columns[:, :1]]).astype(float)[..., None]
    other, others = (rows >= count)[:, :, None], None
    if other.any():
        others = np.maximum(rows - count, 0)[:, :, None] * nv + columns[:, None, :]
    return Entries(mass, at, masks, others, other.astype(float))
