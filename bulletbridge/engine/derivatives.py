"""Derivatives of the constrained acceleration and of the multipliers, by one more solve.

With F = M v̇ + h - τ - Jᵀ λ = 0 and J v̇ + γ = 0 at the solution, all that F and the rows change by
is asked of the same factors:

    M δv̇ - Jᵀ δλ = δτ - ∂F,   J δv̇ = -∂(J v̇ + γ)

Rows that follow from others are left out, as in the step, and so are weak ones; nothing iterates.
"""

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.jit import Callback, bundling, call_back, helper, kernel, outlined
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.constraints.records import Target
from bulletbridge.constraints.row_derivatives import ALL, RowDerivatives, differentiate_rows
from bulletbridge.constraints.row_rates import RowRecords
from bulletbridge.engine.dense import (
    factor_at,
    put_bias_of_motion,
    set_implicit_horizon,
    solve_motion,
)
from bulletbridge.engine.force_differences import ForceDifferences
from bulletbridge.engine.records import (
    DONE,
    FORCE_CHANGE_PHASE,
    FORCE_PHASE,
    INTERRUPTED,
    ONE_OVER_UNITS,
    SEEN_Q,
    SEEN_V,
    Arrays,
    Factors,
    Instant,
    SystemArrays,
    arrays_of,
    dense_factors,
)
from bulletbridge.engine.solver_copy import SolverCopy
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import SolverArrays
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.by_joint import rate_names
from bulletbridge.mechanism.derivatives import (
    LOAD,
    VARIATION,
    Load,
    Variation,
    VariedTree,
    differentiate_joint_forces,
    differentiate_tree,
    take_accelerations,
    vary_axes,
)
from bulletbridge.mechanism.force_derivatives import (
    differentiate_efforts,
    take_changes,
)
from bulletbridge.numerics.many_sides import SplitArrays, respond, take_multipliers
from bulletbridge.numerics.records import Array, Ints, Records


class DerivativeArrays(NamedTuple):
    """What derivatives are worked out in, and where they are left.

    Attributes:
        loads, variations: Of bodies and axes.
        F: (nv, 2 nv) derivatives of M v̇ + h - τ - Jᵀ λ by positions, then by rates.
        rate: (nc, nv) of J v + g_t by positions.
        acceleration: (nc, 2 nv) of J v̇ + γ by positions, then by rates.
        X: (nv, 3 nv) of v̇ by positions, rates, forces.
        parts: (nc, 3 nv) scratch.
        multipliers: (nc, 3 nv) of λ by the same.
        lam: (nc,) λ
        vdot: (nv,) v̇
        asked_at: (m, 2) where numbers act that functions of the state give,
        asked: (m, 2 nv) and what they change by, as of ``ForceDifferences``.
    """

    loads: Records[Load]
    variations: Records[Variation]
    F: Array
    rate: Array
    acceleration: Array
    X: Array
    parts: Array
    multipliers: Array
    lam: Array
    vdot: Array
    asked_at: Ints
    asked: Array


@outlined
def differentiate_equations(
    a: Arrays,
    d: DerivativeArrays,
    targets: Records[Target],
    vdot: Array,
    by_rates: bool,
    wanted: int,
) -> None:
    """Derivatives of M v̇ + h - Jᵀ λ without other forces into F, of the rows into theirs.

    Where ``put_bias_of_motion`` was called last; at rest nothing changes with rates.
    """
    take_accelerations(a.bodies, a.poses, a.axes, vdot, d.loads)
    vary_axes(a.bodies, a.poses, a.axes, d.variations)
    for i in range(d.F.shape[0]):
        for j in range(d.F.shape[1]):
            d.F[i, j] = 0.0
    differentiate_tree(a.bodies, a.poses, a.axes, d.variations, d.loads, by_rates, d.F)
    put_row_derivatives(a, d, targets, vdot, wanted)


@outlined
def put_row_derivatives(
    a: Arrays, d: DerivativeArrays, targets: Records[Target], vdot: Array, wanted: int
) -> None:
    """Derivatives of the rows into theirs, of Jᵀ λ from F, by what ``vary_axes`` has written."""
    found = RowDerivatives(wanted, d.lam, d.rate, d.acceleration, d.F)
    rows = RowRecords(a.loops, a.couplings, a.terms)
    tree = VariedTree(a.bodies, a.poses, a.axes, d.variations)
    differentiate_rows(tree, rows, targets, vdot, found)


@outlined
def differentiate_motion(
    a: Arrays, d: DerivativeArrays, targets: Records[Target], v: Array, vdot: Array, wanted: int
) -> None:
    """Derivatives of M v̇ + h - τ - Jᵀ λ into F, of the rows into theirs, as far as wanted.

    Where ``put_bias`` was called last, at the rates v.
    """
    if len(a.efforts) > 0:  # which that has counted in
        put_bias_of_motion(a, a.control.gravity, v)
    differentiate_equations(a, d, targets, vdot, True, wanted)
    tree = VariedTree(a.bodies, a.poses, a.axes, d.variations)
    differentiate_efforts(tree, a.efforts, d.F)
    differentiate_joint_forces(a.axes, a.control.spring_dt, d.F)
    add_asked_changes(a, d)


@helper
def add_asked_changes(a: Arrays, d: DerivativeArrays) -> None:
    """Less what forces that are functions of the state change by, where they were asked last."""
    if a.control.asked != 0:
        call_back(a.control.asked, FORCE_CHANGE_PHASE)
        tree = VariedTree(a.bodies, a.poses, a.axes, d.variations)
        take_changes(tree, a.efforts, d.asked_at, d.asked, d.F)


@helper
def ask_forces_of_solution(d: DerivativeArrays) -> None:
    """Right sides X of the derivatives by positions, rates and forces: -F, and units."""
    nv = d.F.shape[0]
    for i in range(nv):
        for j in range(2 * nv):
            d.X[i, j] = -d.F[i, j]
        for j in range(2 * nv, 3 * nv):
            d.X[i, j] = 0.0
        d.X[i, 2 * nv + i] = 1.0


@outlined
def differentiate_solution(
    a: Arrays, f: Factors, d: DerivativeArrays, now: Instant, q: Array, v: Array, tau: Array
) -> None:
    """Acceleration and multipliers; of their equations derivatives by positions and rates.

    With the factors of this configuration.
    """
    a.control.t = now.t
    solve_motion(a, f, now, q, v, tau, d.vdot, d.lam)
    differentiate_motion(a, d, now.targets, v, d.vdot, ALL)


@helper
def differentiate_acceleration(
    a: Arrays, f: Factors, d: DerivativeArrays, now: Instant, q: Array, v: Array, tau: Array
) -> None:
    """Acceleration and multipliers; of the acceleration derivatives by positions, rates, forces.

    With the factors of this configuration.
    """
    differentiate_solution(a, f, d, now, q, v, tau)
    ask_forces_of_solution(d)
    for i in range(d.acceleration.shape[0]):
        for j in range(d.acceleration.shape[1]):
            d.acceleration[i, j] = -d.acceleration[i, j]
    respond(split_of(f, a.control.rank), d.acceleration, d.X, d.parts)


@bundling
def split_of(f: Factors, rank: int) -> SplitArrays:
    """Factors as many right sides take them."""
    return SplitArrays(f.L, f.Y, f.R, f.rows, rank)


@kernel
def differentiate(arrays: SystemArrays, d: DerivativeArrays, targets: Array, tau: Array) -> int:
    """Acceleration and multipliers at the state (q, v, t), and their derivatives; return 0.

    targets (1, targets); tau (1, nv).
    """
    a, f = arrays_of(arrays), dense_factors(arrays, 0)
    nv, nq = len(a.axes), len(arrays.state) - len(a.axes) - 1
    now = Instant(arrays.state[nq + nv], targets[0])
    set_implicit_horizon(a, 0.0)
    q, v = arrays.state[:nq], arrays.state[nq : nq + nv]
    factor_at(a, f, now, q, v)
    differentiate_acceleration(a, f, d, now, q, v, tau[0])
    take_multipliers(split_of(f, a.control.rank), d.parts, d.multipliers)
    return DONE


@kernel
def answer(arrays: SystemArrays, sides: Array, X: Array, parts: Array, multipliers: Array) -> int:
    """Solve ``respond`` with the factors that ``differentiate`` left; return 0."""
    split = split_of(dense_factors(arrays, 0), arrays.control[0].rank)
    respond(split, sides, X, parts)
    take_multipliers(split, parts, multipliers)
    return DONE


class Differentiator(SolverCopy):
    """Derivatives of one solver's equations, in arrays of their own.

    Args:
        solver: Whose; it is read alone.

    Attributes:
        found: What the last call has found.
        call: The kernel, which takes (targets, tau).
        rates: (nv,) names of the rates.
        row_names: (nc,) of the rows: the constraint's, with the number of its row.

    Raises:
        UnsupportedError: What it has cannot be differentiated; the message names it.
    """

    def __init__(self, solver: Solver) -> None:
        require_derivatives(solver)
        super().__init__(solver)
        nv, nc = len(solver.v), solver.encoded.nc
        self._changes = ForceDifferences(solver, 1.0 / self.vectors[ONE_OVER_UNITS, :nv])
        self._asked_places = solver.asked_forces.places(self.efforts, self.axes)
        self._interruption: BaseException | None = None
        self._callback = Callback(self._ask)
        if solver.asked_forces:
            c, address = self.control[0], ctypes.cast(self._callback, ctypes.c_void_p).value
            c["asked"], c["asked_for"] = address or 0, FORCE_PHASE
        self.found = DerivativeArrays(
            np.zeros(len(solver.bodies), LOAD),
            np.zeros(nv, VARIATION),
            np.zeros((nv, 2 * nv)),
            np.zeros((nc, nv)),
            np.zeros((nc, 2 * nv)),
            np.zeros((nv, 3 * nv)),
            np.zeros((nc, 3 * nv)),
            np.zeros((nc, 3 * nv)),
            np.zeros(nc),
            np.zeros(nv),
            self._changes.places,
            self._changes.by_state,
        )
        fixed, examples = (self.arrays, self.found), (solver.still, solver.tau)
        with announce_compilation(differentiate):
            self.call = StoredCall(differentiate, fixed, examples).call
        self._answer: Callable[[Any], int] | None = None
        self.rates = rate_names(solver.mechanism)
        self.row_names = tuple(
            f"{name}[{k}]"
            for name, part in solver.encoded.rows.items()
            for k in range(part.stop - part.start)
        )

    def at(self, q: Array, v: Array, t: float, tau: Array) -> DerivativeArrays:
        """Derivatives at a state; the arrays are overwritten by the next call.

        Args:
            q: (nq,)
            v: (nv,)
            t: Time [s].
            tau: (nv,) forces on the rates besides those that the solver knows [N m or N].
        """
        self.take(q, v, t)
        solver = self.solver
        targets, forces = solver.still, np.array(tau, np.float64)[None]
        if solver.encoded.motions:
            targets = solver.encoded.targets(np.array([t]))
        if solver.script.signals:
            forces += solver.scripted(t)
        self.call((targets, forces))
        self.raise_interruption()
        return self.found

    def raise_interruption(self) -> None:
        """Pass on what a user's function has raised while a kernel asked for it."""
        if self._interruption is not None:
            error, self._interruption = self._interruption, None
            raise error

    def _ask(self, phase: int) -> None:
        """Answer a kernel's call for forces, or for what they change by; errors are kept."""
        try:
            solver, t = self.solver, float(self.control[0]["t"])
            q, v = self.vectors[SEEN_Q, : len(solver.q)], self.vectors[SEEN_V, : len(solver.v)]
            if phase == FORCE_CHANGE_PHASE:
                self._changes.at(q, v, t)
            else:
                solver.asked_forces.fill(self._asked_places, t, q, v)
        except BaseException as error:  # noqa: BLE001  a C caller cannot carry it
            self._interruption = self._interruption or error
            self.control[0]["failure"] = INTERRUPTED

    def answer(self, F: Array, sides: Array) -> tuple[Array, Array]:
        """What acceleration and multipliers change by with the equations, where they were last.

        Args:
            F: (nv, n) changes of M v̇ + h - τ - Jᵀ λ, a column each.
            sides: (nc, n) changes of J v̇ + γ.
        """
        X, multipliers = -F, np.zeros_like(sides)
        if self._answer is None:
            with announce_compilation(answer):
                examples = sides, X, multipliers, multipliers
                self._answer = StoredCall(answer, (self.arrays,), examples).call
        self._answer((-sides, X, np.zeros_like(sides), multipliers))
        return X, multipliers


def require_derivatives(solver: SolverArrays) -> None:
    """Refuse what has no derivatives here."""
    what = ""
    for user in solver.encoded.users:
        what = f"constraint '{user.name}' is written in Python"
        break
    if len(solver.beams):
        body = int(solver.beams[0]["body"])
        joint = next(
            name
            for name, joint in solver.mechanism.joints.items()
            if solver.axes[joint.v.start]["body"] == body
        )
        what = f"'{joint}' is a beam"
    if what:
        raise UnsupportedError(
            f"{what}, of which no derivatives are known; use central differences of"
            " acceleration() or of step()"
        )
