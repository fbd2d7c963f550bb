"""The arrays that the compiled step works on, and the equations of motion by them."""

import ctypes
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.jit import Callback
from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.drift import drift
from bulletbridge.constraints.left_out import find_widest
from bulletbridge.constraints.round_off import accuracy_of
from bulletbridge.constraints.rows import axes_of_free_body, free_rows, jacobian, residuals
from bulletbridge.constraints.user import Kinematics, checked_rows
from bulletbridge.engine.asked_forces import AskedForce, AskedForces
from bulletbridge.engine.chart import ALL_MATRICES
from bulletbridge.engine.force_signals import HeldForces, Script
from bulletbridge.engine.plausible import EXCESS
from bulletbridge.engine.records import (
    CONTROL,
    DRIFT_PHASE,
    EULER,
    FORCE_PHASE,
    INTERRUPTED,
    ONE_OVER_UNITS,
    POSITION_PHASE,
    RECOVERY,
    SCRIPT_PHASE,
    SEEN_Q,
    SEEN_V,
    VECTORS,
    SystemArrays,
)
from bulletbridge.mechanism.dynamics import bias, joint_forces, mass_matrix
from bulletbridge.mechanism.force_elements import put_moving_frames
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import DRAG, EFFORT, POSE
from bulletbridge.numerics.projection import ROW, Caps
from bulletbridge.numerics.records import Array, Ints, copied


@dataclass(frozen=True)
class Tolerances:
    """Thresholds of the solver.

    Attributes:
        gap: Residual that counts as closed, on rows divided by their unit.
        singular: Rows weaker than this, relative to the strongest, are not solved for, neither by
            steps nor for reactions: the root of the 1e-12 that is promised of gaps, since what so
            weak a row is open by on the way to where it vanishes goes with its square.
        filter: Rows weaker than this are not filtered from velocities: what they leave of a rate.
            A row is known to 1e-16, and its direction then to 1e-6.
        redundant: A direction of a loop that stays weaker than this over closed poses, all of its
            joints moving by a radian, is left out, and watched.
        still: Nothing moves along a row that stays shorter than this, in lengths of the mechanism
            per radian: it is the round-off of frames, as where a point on an axis is to stay there.
            Loops that leave no freedom may stay open by as much.
        told: Gap, in lengths of the mechanism or radians, beyond which it is told of a constraint
            when it may open that far, and far beyond where it starts, with its weak rows left out.
    """

    gap: float = 2e-14
    singular: float = 1e-6
    filter: float = 1e-10
    redundant: float = 1e-3
    still: float = 1e-12
    told: float = 1e-10


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
    beams: np.ndarray  # records with amplitudes and places of their roots


class RowsAt(NamedTuple):
    """Mass matrix, Jacobian and the records of the bodies' poses at one configuration."""

    M: Array
    J: Array
    poses: np.ndarray


class Placed(NamedTuple):
    """Where the bodies of a tree are, with inertias carried."""

    beams: np.ndarray
    stations: np.ndarray
    poses: np.ndarray
    axes: np.ndarray


class ClosingTerms(NamedTuple):
    """Terms of the equations of motion that need no forces, and where bodies are."""

    M: Array
    J: Array
    rows: np.ndarray  # those of users are empty
    targets: np.ndarray
    poses: np.ndarray
    axes: np.ndarray
    beams: np.ndarray
    stations: np.ndarray


class SolverArrays:
    """Flat arrays of a mechanism with its constraints.

    The state lies in one vector (q, v, t); ``q`` and ``v`` are views of it.

    Args:
        mechanism: The tree.
        encoded: Its constraints.
        tolerances: Thresholds of the solver.
        state: (nq + nv + 1,) zeros, and
        control: (1,) likewise: where they lie, if not on their own.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        encoded: Encoded,
        tolerances: Tolerances,
        state: Array | None = None,
        control: np.ndarray | None = None,
    ) -> None:
        self.mechanism, self.encoded, self.tolerances = mechanism, encoded, tolerances
        nq, nv, nc = mechanism.nq, mechanism.nv, encoded.nc
        self.bodies = mechanism.bodies.copy()
        self.efforts = np.concatenate([mechanism.efforts, encoded.elements]).view(EFFORT)
        scripted = (self.efforts["kind"] != DRAG) & (self.efforts["target"] >= 0)
        self._scripted: Ints = np.flatnonzero(scripted)
        self.beams, self.stations = mechanism.beams.copy(), mechanism.stations.copy()
        self.axes, self.poses = mechanism.axes.copy(), np.zeros(len(self.bodies), POSE)
        self.poses["R"] = np.eye(3)
        self._room: tuple[np.ndarray, ...] = ()  # of poses_at
        self.state = np.zeros(nq + nv + 1) if state is None else state
        self.q, self.v = self.state[:nq], self.state[nq : nq + nv]
        self.tau: Array = np.zeros((1, nv))
        self.held: HeldForces | None = None  # controls of a rollout, besides tau
        self.rows = np.zeros((3, nc), ROW)
        self.rows["unit"] = self.rows["scale"] = encoded.scale
        self.rows["level"] = ~encoded.has_position
        self.factors = (
            np.zeros((ALL_MATRICES, nv, nv)),
            np.zeros((2, nc, nv)),
            np.zeros((2, nc, nc)),
            np.zeros((2, nv), np.int64),
        )
        self.vectors = np.zeros((VECTORS, max(nq, nv, nc, 3)))
        self.user_size = sum(len(user.units) for user in encoded.users)
        self.user_jacobian = np.zeros((self.user_size, nv))
        self.still = encoded.targets(np.zeros(1))
        self.control = np.zeros(1, CONTROL) if control is None else control
        self._interruption: BaseException | None = None
        self._callback = Callback(self._fill_user_rows)
        c = self.control[0]
        c["gravity"], c["length"], c["cap"] = mechanism.gravity, encoded.length, min(nc, nv)
        c["held_cap"], c["most_left"] = min(int(encoded.has_position.sum()), nv), np.inf
        c["integrator"], c["passes"], c["driven"] = EULER, -1, encoded.driven
        c["gap_tolerance"] = tolerances.gap
        c["round_off"], c["lever"] = accuracy_of(mechanism, encoded)
        c["singular_rtol"], c["filter_rtol"] = tolerances.singular, tolerances.filter
        self.put_guard_floor()
        c["mismatch"], c["recovery"] = np.inf, RECOVERY
        c["user_rows"] = self.user_size
        c["callback"] = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        c["rtol"], c["atol"], c["excess"] = 1e-10, 1e-12, EXCESS
        if self.user_size:
            c["driven"] = 1
        self.arrays = SystemArrays(
            self.bodies, self.beams, self.stations, self.efforts, self.poses, self.axes,
            encoded.loops, encoded.couplings, encoded.terms, self.user_jacobian, self.rows,
            *self.factors, self.vectors, self.state, self.control,
        )  # fmt: skip
        self.vectors[ONE_OVER_UNITS, :nv] = 1.0 / self._units_of_rates()
        self.take_script(Script())
        self._now: np.ndarray = self.still  # what a kernel has asked for
        self._pushed: Array = self.tau  # likewise

    def take_script(self, script: Script) -> None:
        """Have these forces on rates act, and those of wrenches.

        Raises:
            ModelError: A compiled function does not compile for what it is given.
        """
        self.script, first = script, len(self.mechanism.efforts)
        wrenches = [
            AskedForce(w.what, w.function, w.takes, 3, first + w.element, w.first)
            for w in self.encoded.asked
        ]
        self.asked_forces = AskedForces([*wrenches, *script.asked], self.mechanism)
        self._places = self.asked_forces.places(self.efforts, self.axes)
        c = self.control[0]
        c["asked"] = c["asked_for"] = 0
        if self.asked_forces.compiled and self.asked_forces:
            nq, nv = len(self.q), len(self.v)
            state = self.control["t"], self.vectors[SEEN_Q, :nq], self.vectors[SEEN_V, :nv]
            c["asked"], self._pointers = self.asked_forces.compile(self._places, state)
            c["asked_for"] = self._pointers.ctypes.data
        elif self.asked_forces:
            c["asked"], c["asked_for"] = c["callback"], FORCE_PHASE

    def put_guard_floor(self) -> None:
        """Below what correction the guard does not ask, by the mass of all bodies."""
        mass = float(self.bodies["mass"].sum() + self.stations["mass"].sum())
        self.control[0]["guard_floor"] = 1e-6 * self.encoded.length * np.sqrt(mass)

    def _units_of_rates(self) -> Array:
        """What rates (nv,) are measured by: a radian, or the mechanism's length."""
        units = np.ones(self.mechanism.nv)
        for joint in self.mechanism.joints.values():
            if joint.kind in ("prismatic", "beam"):
                units[joint.v] = self.encoded.length
            elif joint.kind == "free":
                units[joint.v][3:] = self.encoded.length
        return units

    def decide_rank(self, caps: Caps, scale: Array, mismatch: float, most_left: float) -> None:
        """Hold what was found at closed poses.

        Args:
            caps: How many rows are independent.
            scale: (nc,) to length near one.
            mismatch: Gap that others may keep, in mechanism lengths or radians.
            most_left: How long they may be, over the longest, less what the others explain.
        """
        self.rows["scale"] = scale
        self.take_caps(caps)
        self.control[0]["mismatch"], self.control[0]["most_left"] = mismatch, most_left

    def take_caps(self, caps: Caps) -> None:
        """Let so many rows be independent."""
        self.control[0]["cap"], self.control[0]["held_cap"] = caps

    @property
    def t(self) -> float:
        """Time of the state [s]."""
        return float(self.state[-1])

    def put(self, q: Array, v: Array, t: float) -> None:
        """Take a state, and forget what was known at another: factors, lengths of sub-steps."""
        c = self.control[0]
        self.q[:], self.v[:], self.state[-1] = q, v, t
        c["factored"] = c["next_dt"] = c["reach"] = c["clear"] = c["judged"] = c["slope"] = 0
        c["charted"] = c["charts"] = c["uncorrected"] = c["uncorrected_before"] = 0
        c["kinetic"] = 0.0

    def put_gravity(self, gravity: Array) -> None:
        """Take other gravity (3,) [m/s²]."""
        c = self.control[0]
        if not np.array_equal(c["gravity"], gravity):
            c["gravity"], c["biased"] = gravity, 0

    def terms(self, q: Array, v: Array, t: float) -> Terms:
        """Every term of the equations of motion at a state, from the same kernels as the step."""
        nc = self.encoded.nc
        M, J, rows, targets, poses, axes, beams, stations = self._closing(q, t)
        h, forces = self.forces_at(Placed(beams, stations, poses, axes), targets, rows, (q, v, t))
        seen = Kinematics(self.mechanism, poses, axes, q, v, t)
        self.evaluate_users(seen, rows[nc - self.user_size :], J[nc - self.user_size :])
        known = M, h, rows["g"], J, rows["g_t"], rows["gamma"]
        return Terms(*known, poses, axes, forces, stations, beams)

    def forces_at(
        self, at: Placed, targets: np.ndarray, rows: np.ndarray, state: tuple[Array, Array, float]
    ) -> tuple[Array, Array]:
        """h and forces of ``Terms`` at a state (q, v, t), and what rows drift by into ``rows``.

        Bodies are where ``mass_matrix`` found them. Only rows of loops and couplings are known.
        """
        (q, v, t), e = state, self.encoded
        h, forces = np.zeros(len(v)), np.zeros(len(v))
        efforts = self.efforts_at(targets, at.poses, at.axes, q, v, t)
        at.poses["av"][0] = -self.control["gravity"][0]
        bias(self.bodies, at.beams, at.stations, efforts, at.poses, at.axes, v, h)
        drift(e.loops, e.couplings, e.terms, at.poses, at.axes, targets, rows)
        joint_forces(at.axes, q, v, self.scripted(t), forces)
        return h, forces

    def closing_terms(self, q: Array, v: Array, t: float) -> tuple[Array, Array, Array, Array]:
        """M, J, g and g_t of ``terms`` alone, which correction and filter are made of."""
        if self.user_size:
            found = self.terms(q, v, t)
            return found.M, found.J, found.g, found.g_t
        found = self._closing(q, t)
        return found.M, found.J, found.rows["g"], found.rows["g_t"]

    def rows_at(self, q: Array, t: float) -> RowsAt:
        """M, J and where the bodies are at a configuration, as ``terms`` has them."""
        still = np.zeros(self.mechanism.nv)
        found = self.terms(q, still, t) if self.user_size else self._closing(q, t)
        return RowsAt(found.M, found.J, found.poses)

    def _closing(self, q: Array, t: float) -> ClosingTerms:
        """What closing loops at a configuration is made of."""
        nv, e = self.mechanism.nv, self.encoded
        poses, axes, rows = copied(self.poses), copied(self.axes), copied(self.rows[0])
        beams, stations = copied(self.beams), copied(self.stations)
        M, J, targets = np.zeros((nv, nv)), np.zeros((e.nc, nv)), self.targets_at(t)
        kinematics(self.bodies, beams, stations, q, poses, axes)
        mass_matrix(self.bodies, beams, stations, poses, axes, M)
        residuals(e.loops, e.couplings, e.terms, poses, axes, targets, q, rows)
        jacobian(e.loops, e.couplings, e.terms, poses, axes, targets, J, rows)
        M = np.add(M, M.T, order="C")  # the upper triangle was zero
        M.reshape(-1)[:: nv + 1] *= 0.5
        return ClosingTerms(M, J, rows, targets, poses, axes, beams, stations)

    def poses_at(self, q: Array) -> np.ndarray:
        """Poses (nb) of all bodies at a configuration."""
        poses, _ = self.places_at(q)
        return copied(poses)

    def gaps_at(self, q: Array, t: float) -> Array:
        """Gaps (nc,) of all rows at a configuration, as ``terms`` has them, and no more of it."""
        if self.user_size:
            return self.terms(q, np.zeros(self.mechanism.nv), t).g
        e, rows = self.encoded, copied(self.rows[0])
        poses, axes = self.places_at(q)
        residuals(e.loops, e.couplings, e.terms, poses, axes, self.targets_at(t), q, rows)
        return np.ascontiguousarray(rows["g"])

    def places_at(self, q: Array) -> tuple[np.ndarray, np.ndarray]:
        """Poses (nb) and axes (nv) at a configuration, until it is called again."""
        if not self._room:
            own = self.beams, self.stations, self.poses, self.axes
            self._room = tuple(copied(array) for array in own)
        beams, stations, poses, axes = self._room
        kinematics(self.bodies, beams, stations, q, poses, axes)
        return poses, axes

    def targets_at(self, t: float) -> np.ndarray:
        """Prescribed motions at a time [s]; not to be written to."""
        e = self.encoded
        return e.targets(np.array([t]))[0] if e.motions else self.still[0]

    def left_open(self, q: Array, t: float) -> float:
        """How far directions left out of loops are open beyond what they may, as the step has it.

        ``control.worst`` and ``.gap`` then say of which loop, and how far.
        """
        e, targets = self.encoded, self.encoded.targets(np.array([t]))[0]
        poses, axes, rows = self.poses.copy(), self.axes.copy(), self.rows[0].copy()
        kinematics(self.bodies, self.beams.copy(), self.stations.copy(), q, poses, axes)
        beyond = residuals(e.loops, e.couplings, e.terms, poses, axes, targets, q, rows)
        if beyond > 0.0:
            loop, gap = find_widest(e.loops, poses, targets)
            c = self.control[0]
            c["worst"], c["gap"], c["slipping"] = -1 - loop, gap, 0
        return beyond

    def scripted(self, t: float) -> Array:
        """Forces (nv,) on the rates that are functions of time."""
        if not self.script.signals:
            return np.zeros(len(self.v))
        return np.asarray(self.script.at(np.array([t]))[0], np.float64)

    def efforts_at(
        self,
        targets: np.ndarray,
        poses: np.ndarray,
        axes: np.ndarray,
        q: Array,
        v: Array,
        t: float,
    ) -> np.ndarray:
        """Forces on bodies at a state when the prescribed motions are these.

        Poses and axes are those of ``kinematics`` there; forces of the state on rates are written
        into ``axes``, which are a copy.
        """
        if not (len(self._scripted) or self.asked_forces):
            return self.efforts
        efforts = self.efforts.copy()
        self.put_asked(efforts, targets, poses, axes, (q, v, t))
        return efforts

    def put_asked(
        self,
        efforts: np.ndarray,
        targets: np.ndarray,
        poses: np.ndarray,
        axes: np.ndarray,
        state: tuple[Array, Array, float],
    ) -> None:
        """Put what is asked for into copies of efforts and axes, at a state and its poses."""
        if len(self._scripted):
            efforts["force"][self._scripted] = targets["p"][efforts["target"][self._scripted], 2]
        if self.asked_forces:
            q, v, t = state
            put_moving_frames(efforts, poses, axes, v)
            self.asked_forces.fill(self.asked_forces.places(efforts, axes), t, q, v)

    def wrench_rows(
        self, poses: np.ndarray, index: int, t: float, encoded: Encoded | None = None
    ) -> tuple[Array, Array]:
        """Origin of frame b of a loop, and what each row's unit multiplier does to b's link there.

        Args:
            poses: (nb) of the bodies.
            index: The loop's.
            t: Time [s].
            encoded: Whose loop; those of the solver unless given.

        Returns:
            point (3,) [m] and rows (n, 6) of moments and forces, world axes: the loop's Jacobian
            for a free body in the place of b's link.
        """
        (found,) = self.wrench_rows_of(poses, slice(index, index + 1), t, encoded)
        return found

    def wrench_rows_of(
        self, poses: np.ndarray, which: slice, t: float, encoded: Encoded | None = None
    ) -> list[tuple[Array, Array]]:
        """``wrench_rows`` of several loops."""
        targets = self.targets_at(t) if encoded is None else encoded.targets(np.array([t]))[0]
        encoded = encoded or self.encoded
        loops = copied(encoded.loops[which])
        counts = loops["rows"].copy()
        ends = np.cumsum(counts)
        loops["row"] = ends - counts
        points, J = np.zeros((len(loops), 3)), np.zeros((int(counts.sum()), 6))
        free_rows(loops, poses, targets, axes_of_free_body(), points, J)
        return [
            (point, J[end - count : end])
            for point, end, count in zip(points, ends.tolist(), counts.tolist(), strict=True)
        ]

    def targets_now(self) -> np.ndarray:
        """Prescribed motions at the time of the state."""
        return self.encoded.targets(np.array([self.t]))

    def evaluate_users(self, kinematics: Kinematics, rows: np.ndarray, J: Array) -> None:
        """Let users' constraints write their rows, the last ones of those given."""
        first = len(rows) - self.user_size
        for user in self.encoded.users:
            part = slice(first, first + len(user.units))
            g, J[part], g_t, gamma = checked_rows(user, kinematics)
            rows["g"][part], rows["g_t"][part], rows["gamma"][part] = g, g_t, gamma
            first = part.stop

    def _fill_user_rows(self, phase: int) -> None:
        """Answer the kernel's call for rows, forces; exceptions are kept and raised later."""
        assert phase in (POSITION_PHASE, DRIFT_PHASE, SCRIPT_PHASE, FORCE_PHASE)
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
            if phase == FORCE_PHASE:
                q, v = self.vectors[SEEN_Q, :nq], self.vectors[SEEN_V, :nv]
                self.asked_forces.fill(self._places, t, q, v)
                return
            q, v = self.vectors[SEEN_Q, :nq].copy(), self.vectors[SEEN_V, :nv].copy()
            seen = Kinematics(self.mechanism, self.poses, self.axes, q, v, t)
            self.evaluate_users(seen, self.rows[2, : self.user_size], self.user_jacobian)
        except BaseException as error:  # noqa: BLE001  a C caller cannot carry it
            self._interruption = error
            self.control[0]["failure"] = INTERRUPTED
