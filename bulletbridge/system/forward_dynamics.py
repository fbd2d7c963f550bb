"""Forward dynamics at a state, in one call: accelerations, multipliers, wrenches of loops."""

from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.jit import kernel
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.constraints.records import Loop
from bulletbridge.constraints.rows import axes_of_free_body, free_rows, jacobian
from bulletbridge.engine.dense import (
    factor_at,
    put_bias,
    put_matrices,
    set_implicit_horizon,
    solve_motion,
    update_positions_apart,
)
from bulletbridge.engine.records import (
    ACCELERATION,
    Instant,
    SystemArrays,
    arrays_of,
    dense_factors,
)
from bulletbridge.engine.solver_copy import SolverCopy
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import StepError
from bulletbridge.formulations.equations import NOT_DEFINITE
from bulletbridge.formulations.system_dynamics import shared_multipliers
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.records import Axis
from bulletbridge.numerics.records import Array, Mask, Records, copied
from bulletbridge.numerics.spatial import copy_into

NOT_POSITIVE = -1
"""What ``forward_dynamics`` returns in the place of a rank if the mass matrix is not definite."""


class SolvedState(NamedTuple):
    """What ``forward_dynamics`` finds."""

    vdot: Array  # (nv,) accelerations
    lam: Array  # (nc,) multipliers, of rows of which none follows from others
    supplied: Array  # (nv,) what the rows supply, whitened
    J: Array  # (nc, nv) the rows, if some follow from others
    loops: Records[Loop]  # copies, which ``free_rows`` changes, and
    free: Records[Axis]  # (6,) axes of a free body
    points: Array  # (loops, 3) where b is, and
    wrench_rows: Array  # (nc, 6) moment and force of unit multipliers on it there, world axes


@kernel
def forward_dynamics(
    arrays: SystemArrays, found: SolvedState, targets: Array, tau: Array, given: int
) -> int:
    """Accelerations at the state (q, v, t) and what rows supply; their rank, or NOT_POSITIVE.

    Args:
        arrays: Copies; poses are left as ``bias`` leaves them.
        found: What is found.
        targets: (1, targets) prescribed motions then.
        tau: (1, nv) forces on the rates.
        given: Whether accelerations are known, and constraints supply nothing.
    """
    a, f = arrays_of(arrays), dense_factors(arrays, 0)
    nv, nq = len(a.axes), len(arrays.state) - len(a.axes) - 1
    state = arrays.state
    q, v, now = state[:nq], state[nq : nq + nv], Instant(state[nq + nv], targets[0])
    set_implicit_horizon(a, 0.0)
    if given:
        update_positions_apart(a, f, now, q, v)
        put_matrices(a, f, now)
        put_bias(a, v)
    else:
        factor_at(a, f, now, q, v)
        solve_motion(a, f, now, q, v, tau[0], found.vdot, found.lam)
        copy_into(found.supplied, a.vectors[ACCELERATION, :nv])
        if a.control.rank < len(found.lam):
            jacobian(a.loops, a.couplings, a.terms, a.poses, a.axes, now.targets, found.J, f.rows)
    free_rows(found.loops, a.poses, now.targets, found.free, found.points, found.wrench_rows)
    for k in range(nv):
        if not f.L[k, k] > 0.0:
            return NOT_POSITIVE
    return a.control.rank


class ForwardDynamics(SolverCopy):
    """Forward dynamics of a solver at states, in arrays of its own.

    Args:
        solver: Without constraints in Python.

    Attributes:
        found: Accelerations, and what rows supply.
        shared: (nc,) whether multipliers are of rows that share a load; None where none do.
    """

    def __init__(self, solver: Solver) -> None:
        super().__init__(solver)
        e, nc, nv = solver.encoded, solver.encoded.nc, len(solver.v)
        loops: np.ndarray = copied(e.loops)
        self._loops = loops.view(np.uint8), e.loops.view(np.uint8)
        self._tau, self._targets = np.zeros((1, nv)), solver.still.copy()
        self.found = SolvedState(
            np.zeros(nv), np.zeros(nc), np.zeros(nv), np.zeros((nc, nv)), loops,
            axes_of_free_body(), np.zeros((len(loops), 3)), np.zeros((nc, 6)),
        )  # fmt: skip
        self.shared: Mask | None = None
        fixed = self.arrays, self.found, self._targets, self._tau
        with announce_compilation(forward_dynamics):
            self._find = StoredCall(forward_dynamics, fixed, (0,)).call

    def find(
        self,
        state: tuple[Array, Array, float],
        tau: Array,
        vdot: Array | None = None,
        *,
        weak: bool = False,
    ) -> None:
        """Find them at a state with forces ``tau`` (nv,) on the rates.

        Args:
            state: q (nq,), v (nv,) and t [s].
            tau: [N m or N]
            vdot: (nv,) accelerations, where they are known, and constraints supply nothing.
            weak: Whether rows count that velocities alone obey, as in steps with inequalities.

        Raises:
            StepError: The mass matrix is not positive definite.
        """
        s, found, solver, (q, _, t) = self.arrays, self.found, self.solver, state
        self.take(*state)
        if weak:
            control: Any = self.arrays.control
            control["singular_rtol"] = control["filter_rtol"]
        self._loops[0][...] = self._loops[1]
        targets = self._targets[0]
        if solver.encoded.motions:
            targets[:] = solver.targets_at(t)
        if solver.asked_forces:
            kinematics(s.bodies, s.beams, s.stations, q, self.poses, self.axes)
        solver.put_asked(self.efforts, targets, self.poses, self.axes, state)
        self._tau[0], self.shared = tau, None
        if solver.script.signals:
            self._tau[0] += solver.scripted(t)
        rank = self._find((int(vdot is not None),))
        if rank == NOT_POSITIVE:
            raise StepError(NOT_DEFINITE)
        if vdot is not None:
            found.vdot[:], found.lam[:] = vdot, 0.0
        elif rank < len(found.lam):
            L, J = np.tril(s.L[0]), found.J
            found.lam[:], self.shared = shared_multipliers(solver, L, J, found.supplied, rank)
