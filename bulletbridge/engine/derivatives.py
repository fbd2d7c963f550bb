"""Derivatives of the constrained acceleration and of the multipliers, by one more solve.

With F = M v̇ + h - τ - Jᵀ λ = 0 and J v̇ + γ = 0 at the solution, all that F and the rows change by
is asked of the same factors:

    M δv̇ - Jᵀ δλ = δτ - ∂F,   J δv̇ = -∂(J v̇ + γ)

Rows that follow from others are left out, as in the step, and so are weak ones; nothing iterates.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.constraints.records import Target
from bulletbridge.constraints.row_derivatives import RowDerivatives, differentiate_rows
from bulletbridge.constraints.rows import jacobian
from bulletbridge.engine.dense import (
    accelerate,
    add_row_multipliers,
    admissible_acceleration,
    factor_at,
    filter_velocity,
    forces_less_bias,
    set_implicit_horizon,
)
from bulletbridge.engine.records import (
    ACCELERATION,
    BIAS,
    CHART,
    DONE,
    FORCE,
    RIGHT_SIDE,
    Arrays,
    Factors,
    Instant,
    SystemArrays,
)
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.workspace import SolverArrays
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.derivatives import (
    LOAD,
    VARIATION,
    Load,
    Variation,
    differentiate_joint_forces,
    differentiate_tree,
    take_accelerations,
    vary_axes,
)
from bulletbridge.mechanism.dynamics import add_impedance, bias, mass_matrix
from bulletbridge.mechanism.force_derivatives import (
    differentiate_compliance,
    differentiate_efforts,
    take_ahead,
)
from bulletbridge.mechanism.force_elements import add_compliance
from bulletbridge.mechanism.records import Effort
from bulletbridge.numerics.many_sides import respond
from bulletbridge.numerics.projection import inner, whiten_force, whiten_velocity
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import copy_into

AT_STATE, ADMISSIBLE, OF_FILTER, OF_CORRECTION = 0, 1, 2, 3
"""What is differentiated: acceleration and multipliers at a state; the admissible acceleration, as
Euler's step takes it; the velocity filter; the equations of a correction by v at q."""


class DerivativeArrays(NamedTuple):
    """What derivatives are worked out in, and where they are left.

    Attributes:
        loads, variations: Of bodies and axes.
        metric: Force elements as they act in the metric of a step.
        F: (nv, 2 nv) derivatives of M v̇ + h - τ - Jᵀ λ by positions, then by rates; of a filter or
            correction that adds v̇ to the rates, of M v̇ - Jᵀ λ.
        rate: (nc, nv) of J v + g_t by positions.
        acceleration: (nc, 2 nv) of J v̇ + γ by positions, then by rates.
        X: (nv, 3 nv) of v̇ by positions, rates, forces; or of filtered rates by positions, rates.
        parts: (nc, 3 nv) scratch.
        multipliers: (nc, 3 nv) of λ by the same.
        M: (nv, nv) mass matrix, with dampers and springs that act at the end of a step.
        J: (nc, nv) rows.
        lam: (nc,) λ
        vdot: (nv,) v̇; or what the filter adds to the rates.
        filtered: (nv,) rates; filtered ones.
        none: (nv or 3,) zeros.
    """

    loads: Records[Load]
    variations: Records[Variation]
    metric: Records[Effort]
    F: Array
    rate: Array
    acceleration: Array
    X: Array
    parts: Array
    multipliers: Array
    M: Array
    J: Array
    lam: Array
    vdot: Array
    filtered: Array
    none: Array


@helper
def solution_multipliers(
    a: Arrays, f: Factors, rank: int, needed: Array, vdot: Array, lam: Array
) -> None:
    """Multipliers lam (nc,) with M vdot - needed = Jᵀ lam; ``needed`` (nv,) is lost."""
    whitened, y = a.vectors[ACCELERATION, : len(vdot)], a.vectors[RIGHT_SIDE]
    copy_into(whitened, vdot)
    whiten_velocity(f.L, whitened)
    whiten_force(f.L, needed)
    for k in range(len(vdot)):
        whitened[k] -= needed[k]
    for i in range(rank):
        y[i] = inner(f.Y, i, whitened)
    for i in range(len(lam)):
        lam[i] = 0.0
    add_row_multipliers(f, rank, 1.0, y, lam)


@helper
def differentiate_equations(
    a: Arrays,
    d: DerivativeArrays,
    targets: Records[Target],
    gravity: Array,
    v: Array,
    vdot: Array,
) -> None:
    """Derivatives of M v̇ + h - Jᵀ λ without other forces into F, of the rows into theirs."""
    h = a.vectors[BIAS]
    bias(a.bodies, a.beams, a.stations, a.efforts[:0], a.poses, a.axes, gravity, v, h)
    take_accelerations(a.bodies, a.poses, a.axes, vdot, d.loads)
    vary_axes(a.bodies, a.poses, a.axes, d.variations)
    for i in range(d.F.shape[0]):
        for j in range(d.F.shape[1]):
            d.F[i, j] = 0.0
    differentiate_tree(a.bodies, a.poses, a.axes, d.variations, d.loads, d.F)
    found = RowDerivatives(d.lam, d.rate, d.acceleration, d.F)
    differentiate_rows(
        a.bodies,
        a.loops,
        a.couplings,
        a.terms,
        a.poses,
        a.axes,
        d.variations,
        targets,
        vdot,
        found,
    )


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


@helper
def differentiate_acceleration(
    a: Arrays, f: Factors, d: DerivativeArrays, now: Instant, q: Array, v: Array, tau: Array
) -> None:
    """Acceleration and multipliers with their derivatives by positions, rates and forces."""
    nv = len(v)
    factor_at(a, f, now, q, v)
    accelerate(a, f, now, q, v, tau, d.vdot)
    needed = a.vectors[FORCE, :nv]
    forces_less_bias(a, q, v, tau, needed)
    solution_multipliers(a, f, a.control.rank, needed, d.vdot, d.lam)
    differentiate_equations(a, d, now.targets, a.control.gravity, v, d.vdot)
    differentiate_efforts(a.bodies, a.efforts, a.poses, a.axes, d.variations, d.F)
    differentiate_joint_forces(a.axes, a.control.spring_dt, d.F)
    ask_forces_of_solution(d)
    for i in range(d.acceleration.shape[0]):
        for j in range(2 * nv):
            d.acceleration[i, j] = -d.acceleration[i, j]
    respond(f.L, f.Y, f.R, f.rows, a.control.rank, d.acceleration, d.X, d.parts, d.multipliers)


@helper
def put_terms(a: Arrays, f: Factors, d: DerivativeArrays, now: Instant) -> None:
    """M, as the factors have it, and J at the poses."""
    mass_matrix(a.bodies, a.beams, a.stations, a.poses, a.axes, d.M)
    damper_dt, spring_dt = a.control.damper_dt, a.control.spring_dt
    if damper_dt > 0.0:
        row = a.vectors[CHART, : len(a.axes)]
        add_impedance(a.axes, damper_dt, spring_dt, d.M)
        add_compliance(a.efforts, a.poses, a.axes, damper_dt, damper_dt * spring_dt, row, d.M)
    for i in range(d.M.shape[0]):
        for j in range(i):
            d.M[j, i] = d.M[i, j]
    jacobian(a.loops, a.couplings, a.terms, a.poses, a.axes, now.targets, d.J, f.rows)


@helper
def differentiate_metric(a: Arrays, d: DerivativeArrays, now: Instant, w: Array) -> None:
    """What dampers and springs of elements in the metric do with rates w, by positions, into X."""
    c = a.control
    for i in range(d.X.shape[0]):
        for j in range(d.X.shape[1]):
            d.X[i, j] = 0.0
    if c.damper_dt > 0.0 and len(a.efforts) > 0:
        for i in range(len(d.lam)):
            d.lam[i] = 0.0
        differentiate_equations(a, d, now.targets, d.none, w, d.none)
        differentiate_compliance(
            a.bodies, d.metric, a.poses, a.axes, d.variations, c.damper_dt, c.spring_dt, d.X
        )


@helper
def add_metric(d: DerivativeArrays) -> None:
    """Add what ``differentiate_metric`` has found to F."""
    nv = d.F.shape[0]
    for i in range(nv):
        for j in range(nv):
            d.F[i, j] += d.X[i, j]


@helper
def differentiate_rates(
    a: Arrays, d: DerivativeArrays, now: Instant, v: Array, prescribed: bool
) -> None:
    """Right sides -∂(J v)/∂q, and -∂g_t/∂q beside it if asked for, into the first of ``parts``."""
    nv, count = len(a.axes), len(d.lam)
    for i in range(count):
        d.lam[i] = 0.0
    differentiate_equations(a, d, now.targets, d.none, v, d.none)
    for i in range(count):
        for j in range(nv):
            d.parts[i, j] = -d.rate[i, j]
    if a.control.driven != 0 and not prescribed:
        differentiate_equations(a, d, now.targets, d.none, d.none, d.none)
        for i in range(count):
            for j in range(nv):
                d.parts[i, j] += d.rate[i, j]


@helper
def take_sides(d: DerivativeArrays) -> None:
    """What ``differentiate_rates`` has found as right sides; zeros by rates."""
    nv = d.F.shape[0]
    for i in range(d.acceleration.shape[0]):
        for j in range(nv):
            d.acceleration[i, j], d.acceleration[i, nv + j] = d.parts[i, j], 0.0


@helper
def differentiate_admissible(
    a: Arrays, f: Factors, d: DerivativeArrays, now: Instant, q: Array, v: Array, tau: Array
) -> None:
    """``differentiate_acceleration`` of what forces do to admissible velocities, J v̇ = 0."""
    factor_at(a, f, now, q, v)
    put_terms(a, f, d, now)
    admissible_acceleration(a, f, q, v, tau, d.vdot)
    needed = a.vectors[FORCE, : len(v)]
    forces_less_bias(a, q, v, tau, needed)
    differentiate_rates(a, d, now, d.vdot, False)
    differentiate_metric(a, d, now, d.vdot)
    solution_multipliers(a, f, a.control.rank, needed, d.vdot, d.lam)
    differentiate_equations(a, d, now.targets, a.control.gravity, v, d.vdot)
    take_ahead(a.efforts, a.control.spring_dt)
    differentiate_efforts(a.bodies, a.efforts, a.poses, a.axes, d.variations, d.F)
    differentiate_joint_forces(a.axes, a.control.spring_dt, d.F)
    add_metric(d)
    ask_forces_of_solution(d)
    take_sides(d)
    respond(f.L, f.Y, f.R, f.rows, a.control.rank, d.acceleration, d.X, d.parts, d.multipliers)


@helper
def differentiate_projection(
    a: Arrays, f: Factors, d: DerivativeArrays, now: Instant, rank: int, prescribed: bool
) -> None:
    """Derivatives of M w - Jᵀ λ = 0 by positions into F, of J v + g_t into ``acceleration``.

    w are the changes of rates in ``vdot``, v the rates in ``filtered``.
    """
    needed = a.vectors[FORCE, : len(a.axes)]
    for k in range(len(needed)):
        needed[k] = 0.0
    differentiate_rates(a, d, now, d.filtered, prescribed)
    differentiate_metric(a, d, now, d.vdot)
    solution_multipliers(a, f, rank, needed, d.vdot, d.lam)
    differentiate_equations(a, d, now.targets, d.none, d.none, d.vdot)
    add_metric(d)
    take_sides(d)


@helper
def differentiate_filter(
    a: Arrays, f: Factors, d: DerivativeArrays, now: Instant, q: Array, v: Array
) -> None:
    """The velocity filter, by positions and by the rates that it is given."""
    nv = len(v)
    factor_at(a, f, now, q, v)
    put_terms(a, f, d, now)
    rank = a.control.filter_rank
    copy_into(d.filtered, v)
    filter_velocity(a, f, d.filtered)
    for k in range(nv):
        d.vdot[k] = d.filtered[k] - v[k]
    differentiate_projection(a, f, d, now, rank, True)
    for i in range(nv):
        for j in range(nv):
            d.X[i, j], d.X[i, nv + j], d.X[i, 2 * nv + j] = -d.F[i, j], d.M[i, j], 0.0
    respond(f.L, f.Y, f.R, f.rows, rank, d.acceleration, d.X, d.parts, d.multipliers)


@helper
def differentiate_correction(
    a: Arrays, f: Factors, d: DerivativeArrays, now: Instant, q: Array, v: Array
) -> None:
    """The equations of a correction by v with the factors at q: M v = Jᵀ λ, J v of given size."""
    factor_at(a, f, now, q, v)
    put_terms(a, f, d, now)
    copy_into(d.vdot, v)
    copy_into(d.filtered, v)
    differentiate_projection(a, f, d, now, a.control.rank, False)


@kernel
def differentiate(
    arrays: SystemArrays, d: DerivativeArrays, targets: Array, tau: Array, ahead: float, task: int
) -> int:
    """Do a task of this module at the state (q, v, t); return 0.

    targets (1, targets); tau (1, nv); ahead [s]: how far dampers and springs are taken ahead.
    """
    a = Arrays(
        arrays.bodies,
        arrays.beams,
        arrays.stations,
        arrays.efforts,
        arrays.poses,
        arrays.axes,
        arrays.loops,
        arrays.couplings,
        arrays.terms,
        arrays.user_jacobian,
        arrays.rows[2],
        arrays.vectors,
        arrays.control[0],
    )
    f = Factors(arrays.L[0], arrays.Y[0], arrays.R[0], arrays.rows[0])
    nv, nq = len(a.axes), len(arrays.state) - len(a.axes) - 1
    q, v = arrays.state[:nq], arrays.state[nq : nq + nv]
    now = Instant(arrays.state[nq + nv], targets[0])
    set_implicit_horizon(a, ahead)
    if task == AT_STATE:
        differentiate_acceleration(a, f, d, now, q, v, tau[0])
    elif task == ADMISSIBLE:
        differentiate_admissible(a, f, d, now, q, v, tau[0])
    elif task == OF_FILTER:
        differentiate_filter(a, f, d, now, q, v)
    else:
        differentiate_correction(a, f, d, now, q, v)
    return DONE


@kernel
def answer(arrays: SystemArrays, sides: Array, X: Array, parts: Array, multipliers: Array) -> int:
    """Solve ``respond`` with the factors that ``differentiate`` left; return 0."""
    L, Y, R, rows = arrays.L[0], arrays.Y[0], arrays.R[0], arrays.rows[0]
    respond(L, Y, R, rows, arrays.control[0].rank, sides, X, parts, multipliers)
    return DONE


class Differentiator:
    """Derivatives of one solver's equations, in arrays of their own.

    Args:
        solver: Whose; it is read alone.

    Attributes:
        arrays: Of its own, as the kernels of the step take them; some of them:
        state: (nq + nv + 1,) q, v, t.
        control: (1,)
        rows: (3, nc)
        vectors: Scratch.
        found: What the last call has found.
        call: The kernel, which takes (targets, tau, ahead, task).

    Raises:
        UnsupportedError: What it has cannot be differentiated; the message names it.
    """

    def __init__(self, solver: Solver) -> None:
        require_derivatives(solver)
        self._solver = solver
        nv, nc = len(solver.v), solver.encoded.nc
        self._axes, self._efforts = solver.axes.copy(), solver.efforts.copy()
        self._metric = solver.efforts.copy()
        self.state, self.control = solver.state.copy(), solver.control.copy()
        self.rows, self.vectors = solver.rows.copy(), solver.vectors.copy()
        L, Y, R = (np.zeros_like(x[:2]) for x in solver.factors)
        self._taken = [
            (mine.view(np.uint8), other.view(np.uint8))
            for mine, other in (
                (self._axes, solver.axes),
                (self._efforts, solver.efforts),
                (self._metric, solver.efforts),
                (self.control, solver.control),
                (self.rows, solver.rows),
            )
        ]
        self.arrays = arrays = solver.arrays._replace(
            poses=solver.poses.copy(),
            axes=self._axes,
            efforts=self._efforts,
            rows=self.rows,
            L=L,
            Y=Y,
            R=R,
            vectors=self.vectors,
            state=self.state,
            control=self.control,
        )
        self.found = DerivativeArrays(
            np.zeros(len(solver.bodies), LOAD),
            np.zeros(nv, VARIATION),
            self._metric,
            np.zeros((nv, 2 * nv)),
            np.zeros((nc, nv)),
            np.zeros((nc, 2 * nv)),
            np.zeros((nv, 3 * nv)),
            np.zeros((nc, 3 * nv)),
            np.zeros((nc, 3 * nv)),
            np.zeros((nv, nv)),
            np.zeros((nc, nv)),
            np.zeros(nc),
            np.zeros(nv),
            np.zeros(nv),
            np.zeros(max(nv, 3)),
        )
        fixed, examples = (arrays, self.found), (solver.still, solver.tau, 0.0, AT_STATE)
        with announce_compilation(differentiate):
            self.call = StoredCall(differentiate, fixed, examples).call
        self._answer: Callable[[Any], int] | None = None

    def at(
        self, q: Array, v: Array, t: float, tau: Array, task: int = AT_STATE, ahead: float = 0.0
    ) -> DerivativeArrays:
        """Derivatives at a state; the arrays are overwritten by the next call.

        Args:
            q: (nq,)
            v: (nv,)
            t: Time [s].
            tau: (nv,) forces on the rates besides those that the solver knows [N m or N].
            task: What is differentiated.
            ahead: How far dampers and springs are taken ahead [s].
        """
        targets, forces = self.take(q, v, t, tau)
        self.call((targets, forces, ahead, task))
        return self.found

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

    def take(self, q: Array, v: Array, t: float, tau: Array) -> tuple[np.ndarray, Array]:
        """Take over all numbers of the solver, and a state; motions and forces of that time."""
        solver, state, nq = self._solver, self.state, len(q)
        state[:nq], state[nq:-1], state[-1] = q, v, t
        for mine, other in self._taken:  # as bytes, which costs less than field by field
            mine[...] = other
        control = self.control[0]
        control["asked"] = control["callback"] = control["scripted"] = 0
        control["factored"] = control["biased"] = 0
        targets, forces = solver.still, np.array(tau, np.float64)[None]
        if solver.encoded.motions:
            targets = solver.encoded.targets(np.array([t]))
        if solver.encoded.motions or solver.asked_forces:
            self._efforts[:] = solver.efforts_at(targets[0], self._axes, q, v, t)
        if solver.script.signals:
            forces += solver.scripted(t)
        return targets, forces


def require_derivatives(solver: SolverArrays) -> None:
    """Refuse what has no derivatives here.

    Raises:
        UnsupportedError: It names the first such thing, and what to do.
    """
    what = ""
    for user in solver.encoded.users:
        what = f"constraint '{user.name}' is written in Python"
        break
    for force in solver.asked_forces.forces:
        if force.of_state:
            what = f"{force.what} is a function of the state"
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
