"""What constraints supply at a state, in one call: accelerations, multipliers, wrenches."""

from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.constraints.drift import drift
from bulletbridge.constraints.records import Coupling, Loop, Target, Term
from bulletbridge.constraints.rows import axes_of_free_body, free_rows, jacobian
from bulletbridge.engine.records import Control
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import StepError
from bulletbridge.formulations.equations import NOT_DEFINITE
from bulletbridge.formulations.system_dynamics import shared_multipliers
from bulletbridge.mechanism.dynamics import bias, joint_forces, mass_matrix
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.records import Axis, Beam, Body, Effort, Pose, Station
from bulletbridge.numerics.projection import (
    Caps,
    Cuts,
    Row,
    add_row,
    factor_mass,
    inner,
    orthogonalise,
    row_space_solution,
    unwhiten,
    whiten_force,
    whiten_rows,
)
from bulletbridge.numerics.records import Array, Mask, Records, copied

TAU, BIAS, VDOT, ASKED, MULTIPLIERS, VECTORS = range(6)
"""Vectors (n): forces on the rates; those that hold accelerations at zero; accelerations; what
constraints supply, whitened; their multipliers."""
NOT_POSITIVE = -1
"""What ``find_balance`` returns in the place of a rank if the mass matrix is not definite."""


class BalanceArrays(NamedTuple):
    """What ``find_balance`` works on: of ``SystemArrays``, copies of what it changes.

    Attributes:
        own: The loops, as ``free_rows`` changes them, and
        free: (6,) axes of a free body.
        q, v: The state, and
        targets: prescribed motions then.
        L, J, Y, R: Of the split.
        vectors: (VECTORS, n)
        points: (loops, 3) where b is, and
        wrench_rows: (nc, 6) moment and force of unit multipliers on it there, world axes.
        control: Gravity and what rank is decided by.
    """

    bodies: Records[Body]
    beams: Records[Beam]
    stations: Records[Station]
    efforts: Records[Effort]
    poses: Records[Pose]
    axes: Records[Axis]
    loops: Records[Loop]
    couplings: Records[Coupling]
    terms: Records[Term]
    own: Records[Loop]
    free: Records[Axis]
    targets: Records[Target]
    rows: Records[Row]
    q: Array
    v: Array
    L: Array
    J: Array
    Y: Array
    R: Array
    vectors: Array
    points: Array
    wrench_rows: Array
    control: Records[Control]


@kernel
def find_balance(s: BalanceArrays, given: int) -> int:
    """Accelerations of a state and what constraints supply; their rank, or NOT_POSITIVE.

    Args:
        s: What it works on; its multipliers are found where no row follows from others.
        given: Whether accelerations are known, and constraints supply nothing.
    """
    control, nv, rank = s.control[0], len(s.axes), 0
    tau, h, vdot = s.vectors[TAU, :nv], s.vectors[BIAS, :nv], s.vectors[VDOT, :nv]
    kinematics(s.bodies, s.beams, s.stations, s.q, s.poses, s.axes)
    mass_matrix(s.bodies, s.beams, s.stations, s.poses, s.axes, s.L)
    bias(s.bodies, s.beams, s.stations, s.efforts, s.poses, s.axes, control.gravity, s.v, h)
    free_rows(s.own, s.poses, s.targets, s.free, s.points, s.wrench_rows)
    if given:
        return len(s.rows)
    joint_forces(s.axes, s.q, s.v, tau, vdot)
    for k in range(nv):
        vdot[k] -= h[k]
    factor_mass(s.L)
    for k in range(nv):
        if not s.L[k, k] > 0.0:
            return NOT_POSITIVE
    whiten_force(s.L, vdot)
    if len(s.rows) > 0:
        rank = supply(s, vdot)
    unwhiten(s.L, vdot)
    return rank


@helper
def supply(s: BalanceArrays, y: Array) -> int:
    """Take from a whitened acceleration what rows forbid, and add what they ask for; their rank.

    vectors[ASKED] is then what they supply, and vectors[MULTIPLIERS], of full rank, by what.
    """
    control, nv, nc = s.control[0], len(s.axes), len(s.rows)
    asked, lam = s.vectors[ASKED, :nv], s.vectors[MULTIPLIERS, :nc]
    jacobian(s.loops, s.couplings, s.terms, s.poses, s.axes, s.targets, s.J, s.rows)
    drift(s.loops, s.couplings, s.terms, s.poses, s.axes, s.targets, s.rows)
    for i in range(nc):
        for k in range(nv):
            s.Y[i, k] = s.rows[i].scale * s.J[i, k]
    whiten_rows(s.L, s.Y)
    rtol = control.singular_rtol
    caps = Caps(control.cap, control.held_cap)
    rank = orthogonalise(s.Y, s.R, s.rows, caps, Cuts(rtol, rtol, 0.0))[1]
    for i in range(rank):
        row = s.rows[s.rows[i].pivot]
        lam[i] = -row.scale * row.gamma
    row_space_solution(s.Y, s.R, rank, lam, asked)
    for i in range(rank):
        x = inner(s.Y, i, y)
        lam[i] -= x
        add_row(asked, -x, s.Y, i)
    for k in range(nv):
        y[k] += asked[k]
    if rank < nc:
        return rank
    for i in range(rank - 1, -1, -1):
        for k in range(i + 1, rank):
            lam[i] -= s.R[k, i] * lam[k]
        lam[i] /= s.R[i, i]
    for i in range(rank):
        s.rows[s.rows[i].pivot].known = s.rows[s.rows[i].pivot].scale * lam[i]
    for i in range(rank):
        lam[i] = s.rows[i].known
    return rank


class Balance:
    """What the constraints of a solver supply at states, in arrays of its own.

    Args:
        solver: Without constraints in Python.

    Attributes:
        arrays: What is found, of which
        efforts, poses, axes: are records, and
        multipliers: (nc,) of it, and whether these
        shared: (nc,) are those of rows that share a load; None where none do.
    """

    def __init__(self, solver: Solver) -> None:
        e, nc, nv, nq = solver.encoded, solver.encoded.nc, len(solver.v), len(solver.q)
        self.solver = solver
        own: tuple[np.ndarray, ...] = (
            solver.beams,
            solver.stations,
            solver.efforts,
            solver.poses,
            solver.axes,
            solver.rows[0],
            e.loops,
        )
        copies: tuple[np.ndarray, ...] = tuple(copied(each) for each in own)
        beams, stations, efforts, poses, axes, rows, loops = copies
        self.efforts, self.poses, self.axes = efforts, poses, axes
        targets, pairs = copied(solver.still[0]), zip(own, copies, strict=True)
        self._copies = [(as_bytes(x), as_bytes(y)) for x, y in pairs if len(x)]
        self.arrays = BalanceArrays(
            solver.bodies,
            beams,
            stations,
            efforts,
            poses,
            axes,
            e.loops,
            e.couplings,
            e.terms,
            loops,
            axes_of_free_body(),
            targets,
            rows,
            np.zeros(nq),
            np.zeros(nv),
            np.zeros((nv, nv)),
            np.zeros((nc, nv)),
            np.zeros((nc, nv)),
            np.zeros((nc, nc)),
            np.zeros((VECTORS, max(nv, nc))),
            np.zeros((len(loops), 3)),
            np.zeros((nc, 6)),
            solver.control,
        )
        self._targets = targets
        self._tau, self.vdot = self.arrays.vectors[TAU, :nv], self.arrays.vectors[VDOT, :nv]
        self.multipliers = self.arrays.vectors[MULTIPLIERS, :nc]
        self.shared: Mask | None = None
        with announce_compilation(find_balance):
            self._find = StoredCall(find_balance, (self.arrays,), (0,)).call

    def find(
        self, state: tuple[Array, Array, float], tau: Array, vdot: Array | None = None
    ) -> None:
        """Find them at a state with forces ``tau`` (nv,) on the rates.

        Args:
            state: q (nq,), v (nv,) and t [s].
            tau: [N m or N]
            vdot: (nv,) accelerations, where they are known, and constraints supply nothing.

        Raises:
            StepError: The mass matrix is not positive definite.
        """
        s, solver, (q, v, t) = self.arrays, self.solver, state
        for here, there in self._copies:
            there[:] = here
        if len(self._targets):
            self._targets[:] = solver.targets_at(t)
        if solver.asked_forces:
            kinematics(s.bodies, s.beams, s.stations, q, self.poses, self.axes)
        solver.put_asked(self.efforts, self._targets, self.poses, self.axes, state)
        s.q[:], s.v[:], self._tau[:], self.shared = q, v, tau, None
        if solver.script.signals:
            self._tau += solver.scripted(t)
        if vdot is not None:
            self.multipliers[:] = 0.0
        rank = self._find((int(vdot is not None),))
        if rank == NOT_POSITIVE:
            raise StepError(NOT_DEFINITE)
        if vdot is not None:
            self.vdot[:] = vdot
        elif rank < len(self.multipliers):
            asked = s.vectors[ASKED, : len(v)]
            found = shared_multipliers(solver, np.tril(s.L), s.J, asked, rank)
            self.multipliers[:], self.shared = found


def as_bytes(records: np.ndarray) -> np.ndarray:
    """An array of records as what it is in memory: numpy copies them field by field."""
    return records.view(np.uint8)
