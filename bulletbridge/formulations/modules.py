"""The equations of a solver module by module: no mass matrix or Jacobian of the whole is made."""

from dataclasses import dataclass

import numpy as np

from bulletbridge.constraints.drift import drift
from bulletbridge.constraints.rows import block_jacobian, jacobian, residuals
from bulletbridge.constraints.user import Kinematics
from bulletbridge.engine.stepper import Solver
from bulletbridge.formulations.modular import (
    Block,
    Connectivity,
    ModularEquations,
    alike_modules,
)
from bulletbridge.mechanism.dynamics import bias, block_masses, joint_forces
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.numerics.records import Array, Ints


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


@dataclass
class Modules:
    """Modules of a solver and where their parts are.

    Attributes:
        first: (nv,) first coordinate of the module of each.
        width: Coordinates of the largest.
        rows: Rows of loops; couplings and users' rows come after them.
        ends: Of each stack of ``connectivity``: (2, k, r) whether a row's loop has its end a, and
            its end b, on the module.
    """

    solver: Solver
    first: Ints
    width: int
    rows: int
    connectivity: Connectivity
    ends: tuple[Array, ...]

    def equations(self, q: Array, v: Array, t: float) -> ModularEquations:
        """The equations of motion at a state, rows as kept."""
        s, e = self.solver, self.solver.encoded
        poses, axes, rows = s.poses.copy(), s.axes.copy(), s.rows[0].copy()
        nv = s.mechanism.nv
        M, J = np.zeros((nv, self.width)), np.zeros((2, max(self.rows, 1), self.width))
        h, forces = np.zeros((2, nv))
        targets = e.targets(np.array([t]))[0]
        beams, stations = s.beams.copy(), s.stations.copy()
        kinematics(s.bodies, beams, stations, q, poses, axes)
        block_masses(s.bodies, beams, stations, poses, axes, self.first, M)
        residuals(e.loops, e.couplings, e.terms, poses, axes, targets, q, rows)
        block_jacobian(e.loops, e.couplings, poses, axes, targets, self.first, J, rows)
        efforts, gravity = s.efforts_at(targets, axes, q, v, t), s.control[0]["gravity"]
        bias(s.bodies, beams, stations, efforts, poses, axes, gravity, v, h)
        drift(e.loops, e.couplings, e.terms, poses, axes, targets, rows)
        joint_forces(axes, q, v, s.tau[0] + s.scripted(t), forces)
        others = self._other_rows(Kinematics(s.mechanism, poses, axes, q, v, t), rows)
        blocks: list[Block] = []
        for alike, ends in zip(self.connectivity.alike, self.ends, strict=True):
            n = alike.columns.shape[1]
            lower = np.tril(M[alike.columns, :n])
            mass = lower + np.tril(lower, -1).transpose(0, 2, 1)
            at = np.minimum(alike.rows, max(self.rows - 1, 0))
            jacobian = ends[0][:, :, None] * J[0][at, :n] + ends[1][:, :, None] * J[1][at, :n]
            if len(others):
                at = np.maximum(alike.rows - self.rows, 0)
                extra = others[at[:, :, None], alike.columns[:, None, :]]
                jacobian += np.where((alike.rows >= self.rows)[:, :, None], extra, 0.0)
            blocks.append(Block(mass, jacobian))
        cap = int(s.control[0]["cap"])
        gamma = np.array(rows["gamma"])
        return ModularEquations(self.connectivity, tuple(blocks), forces - h, gamma, e.scale, cap)

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
    masks = tuple(
        np.array([end[a.rows] == module[a.columns[:, :1]] for end in ends], float) for a in alike
    )
    width = max((len(part) for part in columns), default=1)
    return Modules(solver, first, width, count, Connectivity(alike, e.nc), masks)
