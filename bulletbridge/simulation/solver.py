"""The compiled step and the arrays it works on."""

import ctypes
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from bulletbridge.constraints.drift import drift
from bulletbridge.constraints.encoded import Encoded
from bulletbridge.constraints.rows import jacobian, residuals
from bulletbridge.constraints.user import Kinematics
from bulletbridge.formulations.arrays import (
    ACCELERATION,
    CONTROL,
    DONE,
    DOP8,
    DRIFT_PHASE,
    EULER,
    INTERRUPTED,
    NOT_CLOSED,
    NOT_RESOLVED,
    POSITION_PHASE,
    RADAU,
    RK4,
    SCRIPT_PHASE,
    SEEN_Q,
    SEEN_V,
    VECTORS,
    VERLET,
)
from bulletbridge.mechanism.dynamics import bias, joint_forces, mass_matrix
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.layout import AXIS, DRAG, LUMP, POSE
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.jit import Callback
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.split import ROW
from bulletbridge.numerics.stored_calls import StoredCall
from bulletbridge.simulation.radau_system import MATRICES
from bulletbridge.simulation.scripted import Held, Script
from bulletbridge.simulation.step import ACCELERATE, STEP, run

REFINEMENTS = (8, 64, 512)
"""Parts of a step whose correction or implicit equations fail."""
TOO_LONG = (NOT_CLOSED, NOT_RESOLVED)
NO_RECORD = np.zeros((0, 0))
SETTINGS = (
    "dt", "integrator", "directions", "passes", "gravity", "implicit", "controlled", "rtol", "atol"
)  # fmt: skip
"""What a solver is told, in its control."""


@dataclass(frozen=True)
class Tolerances:
    """Thresholds of the solver.

    Attributes:
        gap: Residual that counts as closed, on rows divided by their unit.
        singular: Rows weaker than this, relative to the strongest, are not solved for.
        filter: Rows weaker than this are not filtered from velocities.
        redundant: A direction of a loop that stays weaker than this over closed poses is dropped.
    """

    gap: float = 2e-14
    singular: float = 1e-6
    filter: float = 1e-10
    redundant: float = 1e-3


class Parts(Protocol):
    """Steps of a system part by part: island by island, or link by link.

    Attributes:
        by_call: Whether its kernel can ask Python for what is prescribed, time by time.
    """

    by_call: bool

    def run(self, targets: np.ndarray, tau: Array, record: Array, steps: int) -> int:
        """Advance the whole by steps; return the failure that stopped it, or DONE."""
        ...


class Terms(NamedTuple):
    """The equations of motion at one state: M v̇ + h = tau + Jᵀ lam, J v̇ + gamma = 0."""

    M: Array  # (nv, nv)
    h: Array  # (nv,)
    g: Array  # (nc,)
    J: Array  # (nc, nv)
    g_t: Array  # (nc,)
    gamma: Array  # (nc,)
    poses: np.ndarray  # (nb,) records with twists and inertias
    axes: np.ndarray  # (nv,) records with unit twists
    forces: Array  # (nv,) constant and scripted torques, springs, dampers of the joints
    stations: np.ndarray  # of the beams, with places and velocities by each mode


class Solver:
    """Flat arrays of a mechanism with its constraints, and calls into the kernels.

    The state lies in one vector (q, v, t); ``q`` and ``v`` are views of it.
    """

    def __init__(self, mechanism: Mechanism, encoded: Encoded, tolerances: Tolerances) -> None:
        self.mechanism, self.encoded, self.tolerances = mechanism, encoded, tolerances
        nq, nv, nc = mechanism.nq, mechanism.nv, encoded.nc
        self.bodies = mechanism.bodies.copy()
        self.lumps = np.concatenate([mechanism.lumps, encoded.elements]).view(LUMP)
        self.beams, self.stations = mechanism.beams.copy(), mechanism.stations.copy()
        self.axes, self.poses = mechanism.axes.copy(), np.zeros(len(self.bodies), POSE)
        self.poses["R"] = np.eye(3)
        self.state = np.zeros(nq + nv + 1)
        self.q, self.v = self.state[:nq], self.state[nq : nq + nv]
        self.tau = np.zeros((1, nv))
        self.script = Script()
        self.held: Held | None = None  # controls of a rollout, besides tau
        self.rows = np.zeros((3, nc), ROW)
        self.rows["unit"] = self.rows["scale"] = encoded.scale
        self.factors = np.zeros((MATRICES, nv, nv)), np.zeros((2, nc, nv)), np.zeros((2, nc, nc))
        self.vectors = np.zeros((VECTORS, max(nq, nv, nc)))
        self.user_size = sum(len(user.units) for user in encoded.users)
        self.user_jacobian = np.zeros((self.user_size, nv))
        self.still = encoded.targets(np.zeros(1))
        self.control = np.zeros(1, CONTROL)
        self._interruption: BaseException | None = None
        self._callback = Callback(self._fill_user_rows)
        c = self.control[0]
        c["gravity"], c["length"], c["cap"] = mechanism.gravity, encoded.length, min(nc, nv)
        c["integrator"], c["passes"], c["driven"] = EULER, -1, int(bool(encoded.motions))
        c["gap_tolerance"] = tolerances.gap
        c["singular_rtol"], c["filter_rtol"] = tolerances.singular, tolerances.filter
        mass = float(self.bodies["mass"].sum() + self.stations["mass"].sum())
        c["guard_floor"] = 1e-6 * encoded.length * np.sqrt(mass)
        c["mismatch"] = np.inf
        c["user_rows"] = self.user_size
        c["callback"] = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        c["rtol"], c["atol"] = 1e-10, 1e-12
        if self.user_size:
            c["driven"] = 1
        self.arrays = (
            self.bodies,
            self.beams,
            self.stations,
            self.lumps,
            self.poses,
            self.axes,
            encoded.loops,
            encoded.couplings,
            encoded.terms,
            self.user_jacobian,
            self.rows,
            *self.factors,
            self.vectors,
            self.state,
            self.control,
        )
        self._now, self._pushed = self.still, self.tau  # what a kernel has asked for
        self._by_call = False  # whether the last call had it ask
        self.parts: Parts | None = None  # in which it steps, where that costs less
        self._bound = StoredCall(run, self.arrays, (self.still, self.tau, NO_RECORD, STEP, 0))
        self._run = self._bound.call
        self._step, self._step_tau = self._run, NO_RECORD  # one step with forces that stay
        self._asked = bool(encoded.motions) or self.user_size > 0

    def decide_rank(self, cap: int, scale: Array, mismatch: float) -> None:
        """Hold what was found at closed poses: how many rows, their sizes, what they leave open."""
        self.rows["scale"] = scale
        self.control[0]["cap"], self.control[0]["mismatch"] = cap, mismatch

    def apply_settings(self, other: "Solver") -> None:
        """Take over integrator, step, correction, gravity and forces from another solver."""
        self.tau = other.tau  # one array: callers may hold it
        self.script = other.script
        for name in SETTINGS:
            self.control[0][name] = other.control[0][name]

    @property
    def t(self) -> float:
        """Time of the state [s]."""
        return float(self.state[-1])

    def put(self, q: Array, v: Array, t: float) -> None:
        """Take a state, and forget what was known at another: factors, lengths of sub-steps."""
        c = self.control[0]
        self.q[:], self.v[:], self.state[-1] = q, v, t
        c["fresh"] = c["next_dt"] = c["reach"] = c["clear"] = c["slope"] = 0

    def run(self, task: int, steps: int = 0, record: Array = NO_RECORD) -> int:
        """Run a task of ``step.run`` on the state; return the failure that stopped it, or DONE.

        Raises:
            Exception: Whatever a user's constraint raised, with the state before the step restored.
        """
        parts = self.parts if task == STEP else None
        if task == STEP and self._prescribe_by_call():
            targets, forces = self._now, self._pushed
            parts = parts if parts is not None and parts.by_call else None
        else:
            targets = self._targets(steps) if self.encoded.motions else self.still
            forces = self.forces(steps)
        if parts is None:
            return self.finish_call(self._run((targets, forces, record, task, steps)))
        return self.finish_call(parts.run(targets, forces, record, steps))

    def step(self) -> int:
        """``advance(1)``; in a call that takes nothing where all that acts is tau."""
        if self._asked or self._by_call or self.script.signals or self.parts or self.held:
            return self.advance(1)
        if self._step_tau is not self.tau:
            rest = self.still, self.tau, NO_RECORD, STEP, 1
            self._step, self._step_tau = self._bound.with_rest(rest), self.tau
        return self._step(()) and self.advance(1)

    def run_whole(self, targets: np.ndarray, forces: Array, record: Array, steps: int) -> int:
        """Advance by steps in joint coordinates, without parts."""
        return self._run((targets, forces, record, STEP, steps))

    def _prescribe_by_call(self) -> bool:
        """Whether the kernel asks for motions and forces stage by stage; its times are unknown."""
        if not (self._by_call or self.is_prescribed):
            return False
        c = self.control[0]
        several = c["integrator"] in (DOP8, RADAU)
        scripted = several and self.is_prescribed
        c["scripted"] = self._by_call = scripted
        if scripted:
            self._now, self._pushed = self.still.copy(), np.zeros_like(self.tau)
        return scripted

    @property
    def stored_run(self) -> Any:
        """``step.run`` on the arrays, as ``stored_calls.call_stored`` takes it."""
        return self._bound.block

    @property
    def is_prescribed(self) -> bool:
        """Whether motions or forces are functions of time."""
        return bool(self.encoded.motions or self.script.signals)

    def finish_call(self, failure: int) -> int:
        """Pass on what a kernel has returned, unless a user's constraint raised meanwhile.

        Raises:
            Exception: Whatever a user's constraint raised.
        """
        if self._interruption is not None:
            error, self._interruption = self._interruption, None
            raise error
        return failure

    def roll(self, steps: int, every: int, table: Array) -> int:
        """Advance by steps and keep one state in ``every``, as lines of the table.

        Returns:
            The failure that stopped it, with the state before that step restored, or DONE.
        """
        whole = steps - steps % every
        failure = self.advance(whole, table)
        return failure or (self.advance(steps % every) if steps % every else DONE)

    def advance(self, steps: int, record: Array = NO_RECORD) -> int:
        """Advance by many steps; one that is too long is tried again in finer ones.

        Close to a singular position that the mechanism does not quite reach the motion turns
        sharply; there a step may be too long for the correction to stay on its branch.

        Returns:
            The failure that stopped it, with the state before that step restored, or DONE.
        """
        every = steps // len(record) if len(record) else 0
        done = 0
        while True:
            # whole records only in one call; what a refined step interrupts goes one by one
            failure = self.run(STEP, steps - done, record[done // every :] if every else record)
            done += int(self.control[0]["done"])
            if failure not in TOO_LONG:
                return failure
            if self._refine():
                return failure
            done += 1
            while every and done % every and done < steps:
                failure = self.run(STEP, 1)
                if failure in TOO_LONG:
                    failure = self._refine()
                if failure:
                    return failure
                done += 1
            if every and done:
                self._record(record[done // every - 1])
            if done == steps:
                return DONE

    def _refine(self) -> int:
        """One step in as many parts as its correction needs; the failure of the finest, or DONE.

        The state before the whole step is restored after any failure; a part restores its own.
        """
        c, failure = self.control[0], NOT_CLOSED
        dt = float(c["dt"])
        before = self.state.copy()
        try:
            for parts in REFINEMENTS:
                self.state[:], c["fresh"] = before, 0
                c["dt"] = dt / parts
                failure = self.run(STEP, parts)
                if failure not in TOO_LONG:
                    break
        finally:  # a user's constraint may raise
            c["dt"], c["guarded"] = dt, 1
            if failure != DONE:
                self.state[:], c["fresh"] = before, 0
        return failure

    def _record(self, line: Array) -> None:
        """Keep a state as the kernel does."""
        c = self.control[0]
        line[:] = [*self.state, c["rank"], c["margin"], c["correction_passes"]]

    def acceleration(self) -> Array:
        """Constrained acceleration (nv,) at the state."""
        self.run(ACCELERATE)
        return self.vectors[ACCELERATION, : len(self.v)].copy()

    def terms(self, q: Array, v: Array, t: float) -> Terms:
        """Every term of the equations of motion at a state, from the same kernels as the step."""
        nv, nc, e = self.mechanism.nv, self.encoded.nc, self.encoded
        poses, axes, rows = self.poses.copy(), self.axes.copy(), self.rows[0].copy()
        beams, stations = self.beams.copy(), self.stations.copy()
        M, J, h = np.zeros((nv, nv)), np.zeros((nc, nv)), np.zeros(nv)
        targets, gravity = e.targets(np.array([t]))[0], self.control[0]["gravity"]
        kinematics(self.bodies, beams, stations, q, poses, axes)
        mass_matrix(self.bodies, beams, stations, poses, axes, M)
        residuals(e.loops, e.couplings, e.terms, poses, axes, targets, q, rows)
        jacobian(e.loops, e.couplings, e.terms, poses, axes, targets, J, rows)
        bias(self.bodies, beams, stations, self.lumps_at(targets), poses, axes, gravity, v, h)
        drift(e.loops, e.couplings, poses, targets, rows)
        seen = Kinematics(self.mechanism, poses, axes, q, v, t)
        self.evaluate_users(seen, rows[nc - self.user_size :], J[nc - self.user_size :])
        scripted = self.script.at(np.array([t]))[0] if self.script.signals else np.zeros(nv)
        joint_forces(axes, q, v, scripted, forces := np.zeros(nv))
        M = np.tril(M) + np.tril(M, -1).T
        return Terms(M, h, rows["g"], J, rows["g_t"], rows["gamma"], poses, axes, forces, stations)

    def lumps_at(self, targets: np.ndarray) -> np.ndarray:
        """Forces on bodies when the prescribed motions are these."""
        scripted = (self.lumps["kind"] != DRAG) & (self.lumps["target"] >= 0)
        if not scripted.any():
            return self.lumps
        lumps = self.lumps.copy()
        lumps["force"][scripted] = targets["p"][lumps["target"][scripted], 2]
        return lumps

    def wrench_rows(
        self, terms: Terms, index: int, t: float, encoded: Encoded | None = None
    ) -> tuple[Array, Array]:
        """Origin of frame b of a loop, and what each row's unit multiplier does to b's link there.

        Args:
            terms: At the state.
            index: The loop's.
            t: Time [s].
            encoded: Whose loop; those of the solver unless given.

        Returns:
            point (3,) [m] and rows (n, 6) of moments and forces, world axes: the loop's Jacobian
            for a free body in the place of b's link.
        """
        encoded = encoded or self.encoded
        loops = encoded.loops[index : index + 1].copy()
        body = terms.poses[int(loops[0]["body_b"])]
        point = body["p"] + body["R"] @ loops[0]["p_b"]
        axes = np.zeros(6, AXIS)
        axes["below"] = np.arange(-1, 5)
        axes["w"][:3] = axes["v"][3:] = np.eye(3)
        axes["v"][:3] = np.cross(point, np.eye(3))
        loops["row"], loops["axis_a"], loops["stop"], loops["axis_b"] = 0, -1, -1, 5
        J, rows = np.zeros((int(loops[0]["rows"]), 6)), np.zeros(int(loops[0]["rows"]), ROW)
        targets = encoded.targets(np.array([t]))[0]
        nothing = encoded.couplings[:0]
        jacobian(loops, nothing, encoded.terms, terms.poses, axes, targets, J, rows)
        return point, J

    def targets_now(self) -> np.ndarray:
        """Prescribed motions at the time of the state."""
        return self.encoded.targets(np.array([self.t]))

    def _targets(self, steps: int) -> np.ndarray:
        """Prescribed motions at every time that the kernel will ask for."""
        return self.encoded.targets(self._stage_times(steps)) if steps else self.targets_now()

    def forces(self, steps: int) -> Array:
        """Forces (1 or times, nv) on the rates, in as many lines as the kernel asks for."""
        if not self.script.signals and self.held is None:
            return self.tau
        c, forces = self.control[0], self.tau
        lines = 3 if c["integrator"] in (RK4, VERLET) and steps else 1
        if self.script.signals:
            scripted = self.script.at(self._stage_times(steps))
            stages = np.arange(max(steps, 1))[:, None] * max(lines - 1, 1) + np.arange(lines)
            forces = forces + scripted[stages.ravel()]
        if self.held is not None:
            middles = self.t + (np.arange(max(steps, 1), dtype=np.float64) + 0.5) * float(c["dt"])
            forces = forces + np.repeat(self.held.within(middles), lines, axis=0)
        return forces

    def _stage_times(self, steps: int) -> Array:
        """Times [s] of the stages of steps from now on, each once; now alone for no steps."""
        c = self.control[0]
        each = 1 if c["integrator"] == EULER else 2
        numbers = np.arange(each * steps + 1, dtype=np.float64)
        return self.t + numbers * (float(c["dt"]) / each)

    def evaluate_users(self, kinematics: Kinematics, rows: np.ndarray, J: Array) -> None:
        """Let users' constraints write their rows, the last ones of those given."""
        first = len(rows) - self.user_size
        for user in self.encoded.users:
            part = slice(first, first + len(user.units))
            g, J[part], g_t, gamma = user.rows(kinematics)
            rows["g"][part], rows["g_t"][part], rows["gamma"][part] = g, g_t, gamma
            first = part.stop

    def _fill_user_rows(self, phase: int) -> None:
        """Answer the kernel's call for the users' rows; exceptions are kept and raised later."""
        assert phase in (POSITION_PHASE, DRIFT_PHASE, SCRIPT_PHASE)
        try:
            nq, nv, t = len(self.q), len(self.v), float(self.control[0]["t"])
            if phase == SCRIPT_PHASE:
                times = np.array([t])
                self._pushed[:] = self.tau
                if self.script.signals:
                    self._pushed += self.script.at(times)
                if self.encoded.motions:
                    self._now[:] = self.encoded.targets(times)
                return
            q, v = self.vectors[SEEN_Q, :nq].copy(), self.vectors[SEEN_V, :nv].copy()
            seen = Kinematics(self.mechanism, self.poses, self.axes, q, v, t)
            self.evaluate_users(seen, self.rows[2, : self.user_size], self.user_jacobian)
        except BaseException as error:  # noqa: BLE001  a C caller cannot carry it
            self._interruption = error
            self.control[0]["failure"] = INTERRUPTED
