"""Steps with motors, joint limits and contacts, solved where the loops stay closed."""

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bulletbridge.constraints.encode import Constraint, Encoded
from bulletbridge.constraints.layout import STOP
from bulletbridge.constraints.limited import Guides, encode_guides, encode_pulls
from bulletbridge.formulations.arrays import DONE, NOT_CLOSED, PREDICTED_Q
from bulletbridge.mechanism.layout import (
    HELD_COLUMNS,
    SPOT,
    TOUCH_COLUMNS,
)
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.jit import Callback, entry_point
from bulletbridge.numerics.mixed import BOUND
from bulletbridge.numerics.mixed_reference import ReferenceSolver
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.split import ROW
from bulletbridge.simulation.bounded_kernel import (
    IMPULSES,
    LEFT,
    MOVING,
    NEWTONS,
    PREDICT,
    PULLED,
    REPORT,
    RESIDUAL,
    RIGHT,
    ROWS,
    STEP,
    SWEEPS,
    WORK,
    X,
    run_bounded,
)
from bulletbridge.simulation.solver import Solver
from bulletbridge.simulation.warm_up import announce_compilation

NO_TOUCHES = np.zeros((0, TOUCH_COLUMNS))
NO_STOPS = np.zeros(0, STOP)
ROWS_OF_CONTACT = 6
MOST_HALVINGS = 5
Finder = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Complementarity:
    """How the bounded rows of the last step were solved.

    Attributes:
        rows: Of motors, frictions, limits, constraints that give way and contacts together.
        residual: Largest violation of any condition [m/s or rad/s].
        sweeps: Of Gauss-Seidel.
        newton: Steps of Newton's method after them.
        work: What limits and contacts did to the energy [J], never above round-off unless forces
            turn a motion round within the step.
    """

    rows: int
    residual: float
    sweeps: int
    newton: int
    work: float = 0.0


@dataclass(frozen=True)
class Bounds:
    """What of a system has bounded forces, besides motors and contacts.

    Attributes:
        guides: Free motions of loop joints that something acts along.
        pulls: (n,) records of constraints that give way.
        soft: Their rows.
    """

    guides: Guides
    pulls: np.ndarray
    soft: Encoded

    @property
    def any(self) -> bool:
        """Whether there is a constraint that gives way, or a limit along a free motion."""
        limits = any(freedom.limits is not None for freedom in self.guides.freedoms)
        return limits or len(self.pulls) > 0


def bounds_of(mechanism: Mechanism, constraints: Sequence[Constraint]) -> Bounds:
    """Free motions with something along them, and constraints that give way.

    Raises:
        ModelError: A number or a name is impossible.
    """
    pulls, soft = encode_pulls(mechanism, constraints)
    return Bounds(encode_guides(mechanism, constraints), pulls, soft)


def stops_of(mechanism: Mechanism, guides: Guides, joints: bool) -> np.ndarray:
    """Records (n,) of limits: of free motions of loops, and of the tree's joints if wanted."""
    found = [
        (joint.v.start, joint.lower, joint.upper)
        for joint in mechanism.joints.values()
        if joints and joint.kind in ("revolute", "prismatic")
    ]
    found += [
        (-1 - n, *freedom.limits)
        for n, freedom in enumerate(guides.freedoms)
        if freedom.limits is not None
    ]
    limited = [(axis, *limits) for axis, *limits in found if np.any(np.isfinite(limits))]
    stops = np.zeros(len(limited), STOP)
    for stop, (axis, lower, upper) in zip(stops, limited, strict=True):
        stop["axis"], stop["lower"], stop["upper"], stop["row"] = axis, lower, upper, -1
    return stops


class BoundedStep:
    """Runs the compiled step with bounded rows on a solver.

    Args:
        solver: Whose state it advances.
        drives: (n,) motors and frictions; may be changed in place.
        stops: (n,) joint limits.
        bounds: Free motions of loop joints, and constraints that give way.
        reference: What solves for the impulses in place of the compiled solver; None for that.

    Attributes:
        report: (REPORT,) of the last step.
        tau: (nv,) forces on the rates in the last step.
        touches: (n, columns) contacts of the last step.
        start: q (nq,), v (nv,) and t [s] before it.
        dt: Its length [s], less than a whole one if that was divided.
    """

    def __init__(
        self,
        solver: Solver,
        drives: np.ndarray,
        stops: np.ndarray,
        bounds: Bounds,
        reference: ReferenceSolver | None = None,
    ) -> None:
        self.solver, self.drives, self.stops, self.bounds = solver, drives, stops, bounds
        self.report, self.tau, self.touches = np.zeros(REPORT), solver.tau[0].copy(), NO_TOUCHES
        self.start = solver.q.copy(), solver.v.copy(), solver.t
        self._end = np.full(len(solver.state), np.nan)
        self.dt = float(solver.control[0]["dt"])
        self._reference = reference
        self._interruption: BaseException | None = None
        self._callback = Callback(self._find)
        self._address = 0
        if reference is not None:
            self._address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        guided = bounds.guides.encoded
        self.positions = np.zeros(len(guided.loops), ROW)  # .g, from which turns are counted on
        for row, freedom in zip(self.positions, bounds.guides.freedoms, strict=True):
            if freedom.limits is not None and np.all(np.isfinite(freedom.limits)):
                row["g"] = sum(freedom.limits) / 2
        self.soft_rows = np.zeros(bounds.soft.nc, ROW)
        self.impulses = np.zeros((IMPULSES, solver.mechanism.nv))
        self._allocate(4)

    @property
    def complementarity(self) -> Complementarity:
        """How the last step went."""
        rows, sweeps, newton = (int(self.report[k]) for k in (ROWS, SWEEPS, NEWTONS))
        residual, work = float(self.report[RESIDUAL]), float(self.report[WORK])
        return Complementarity(rows, residual, sweeps, newton, work)

    def motor_forces(self) -> Array:
        """What each drive exerted in the last step (n,) [N or N m]."""
        rows = self.drives["row"]
        return np.where(rows >= 0, self.impulses[X, rows], 0.0) / self.dt

    def predict(self) -> Array:
        """Configuration (nq,) to which forces and the motors of the last step would lead in one.

        There contacts are found: what motors press together is found in every step, as what
        weight does. Constraints that give way count as motors.
        """
        solver = self.solver
        targets = solver.targets_now() if solver.encoded.motions else solver.still
        *now, tau = self._now()
        pressing = int(self.report[PULLED]) + self.bounds.soft.nc
        if self.report[ROWS] > 0.0 and pressing > 0:
            x, C = self.impulses[X, :pressing], self.C[1, :pressing]
            tau = tau + x @ C / self.dt
        solver.finish_call(self._run(targets, *now, tau, NO_TOUCHES, self.report, 0, PREDICT, 0))
        return solver.vectors[PREDICTED_Q, : len(solver.q)]

    def step(self, touches: Array = NO_TOUCHES) -> int:
        """Advance by a step; return the failure that stopped it, with the state before it, or DONE.

        Args:
            touches: (n, columns) contacts at the predicted configuration.

        Raises:
            StepError: The solver that was asked for could not solve the mixed problem.
        """
        solver = self.solver
        if len(touches) > self._size:
            self._allocate(2 * len(touches))
        dt = float(solver.control[0]["dt"])
        targets = solver.still
        if solver.encoded.motions:
            targets = solver.encoded.targets(solver.t + np.arange(2) * np.float64(dt))
        self.tau[:], self.touches = solver.tau[0], touches
        self.start, self._end[:] = (solver.q.copy(), solver.v.copy(), solver.t), np.nan
        rest = targets, *self._now(), touches, self.report, self._address
        failure = solver.finish_call(self._run(*rest, STEP, 1))
        if self._interruption is not None:
            error, self._interruption = self._interruption, None
            self.impulses[X] = 0.0
            raise error
        if failure == DONE:
            self._end[:], self.dt = solver.state, dt
        return failure

    @property
    def current(self) -> bool:
        """Whether the solver's state is that after the last step."""
        return bool(np.array_equal(self._end, self.solver.state))

    def _find(self, n: int) -> None:
        """Solve the mixed problem of n rows for the kernel; exceptions are kept, raised later."""
        D, b = self.D[0, :n, :n], self.impulses[RIGHT, :n]
        try:
            assert self._reference is not None
            found = self._reference(D, b, self.bound_records[:n])
            self.impulses[X, :n], self.report[LEFT] = found
        except BaseException as error:  # noqa: BLE001  a C caller cannot carry it
            self._interruption = error
            self.impulses[X, :n] = np.nan  # which the kernel notices, and takes the step back

    def advance(self, find: Finder | None, halvings: int = MOST_HALVINGS) -> int:
        """One step, or several shorter ones where the loops cannot be closed after a long one.

        Impacts may leave velocities at which a mechanism turns far within a step.

        Args:
            find: Contacts (n, columns) at a configuration and velocity; None for none.
            halvings: How often the step may be halved.

        Returns:
            The failure that stopped it, with the state before it, or DONE.
        """
        solver = self.solver
        touches = NO_TOUCHES if find is None else find(self.predict(), solver.v)
        failure = self.step(touches)
        if failure != NOT_CLOSED or halvings == 0:
            return failure
        control, drives = solver.control[0], self.drives
        before, gains = solver.state.copy(), drives["position_gain"].copy()
        control["dt"] *= 0.5
        drives["position_gain"] *= 0.5  # they are shares per step
        try:
            failure = self.advance(find, halvings - 1) or self.advance(find, halvings - 1)
        finally:
            control["dt"] *= 2.0
            drives["position_gain"] = gains
        if failure:
            solver.state[:] = before
            control["fresh"] = 0
        return failure

    def _now(self) -> tuple[np.ndarray, np.ndarray, Array]:
        """Prescribed motions of guides and of constraints that give way, and forces."""
        now = np.array([self.solver.t])
        guided, soft = self.bounds.guides.encoded, self.bounds.soft
        return (
            guided.targets(now)[0] if guided.motions else self._still[0],
            soft.targets(now)[0] if soft.motions else self._still[1],
            self.solver.tau,
        )

    def _allocate(self, contacts: int) -> None:
        """Make room for ``contacts`` contacts."""
        solver, guided, soft = self.solver, self.bounds.guides.encoded, self.bounds.soft
        nc, nv = solver.encoded.nc, solver.mechanism.nv
        self._size, held = contacts, 3 * contacts
        rows = len(self.drives) + len(self.stops) + soft.nc + ROWS_OF_CONTACT * contacts
        before = self.impulses
        self._still = guided.targets(np.zeros(1))[0], soft.targets(np.zeros(1))[0]
        self.first, self.C = np.zeros(contacts), np.zeros((2, rows, nv))
        self.D, self.bound_records = np.zeros((2, rows, rows)), np.zeros(rows, BOUND)
        self.impulses = np.zeros((IMPULSES, max(rows, nv)))
        self.impulses[MOVING, :nv] = before[MOVING, :nv]  # of a prediction that is under way
        arrays = (
            *solver.arrays,
            np.zeros(contacts, SPOT),
            np.zeros((2, held), ROW),
            np.zeros((held, nv)),
            np.zeros((held, nc)),
            np.zeros((held, held)),
            np.zeros((2, max(held, nv))),
            np.zeros((2, nc)),
            np.zeros((2, held)),
            np.zeros((contacts, HELD_COLUMNS)),
            self.drives,
            self.stops,
            guided.loops,
            guided.couplings,
            guided.terms,
            self.positions,
            np.zeros((len(guided.loops), nv)),
            self.bounds.pulls,
            soft.loops,
            soft.couplings,
            soft.terms,
            self.soft_rows,
            self.first,
            self.C,
            self.D,
            self.bound_records,
            self.impulses,
        )
        rest = solver.still, *self._now(), NO_TOUCHES, self.report, self._address, STEP, 1
        with announce_compilation(run_bounded):
            compiled = entry_point(run_bounded, *arrays, *rest)
        self._run: Callable[..., int] = functools.partial(compiled, *arrays)
