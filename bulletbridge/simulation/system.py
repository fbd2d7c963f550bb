"""A mechanism, its constraints and a state, advanced in time with loops closed to round-off."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from bulletbridge.constraints.encode import Constraint, Encoded, encode
from bulletbridge.constraints.loop import Frame
from bulletbridge.constraints.user import Kinematics
from bulletbridge.errors import AssemblyError, ModelError
from bulletbridge.formulations.arrays import CURRENT, EULER, RK4, START
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Mask
from bulletbridge.simulation.adaptive import Adaptive
from bulletbridge.simulation.assembly import (
    Assembly,
    Move,
    Values,
    close,
    consistent_velocity,
    put_values,
    round_off,
)
from bulletbridge.simulation.evaluation import (
    Evaluation,
    Reaction,
    evaluate,
    gap_vectors,
    reactions,
)
from bulletbridge.simulation.failures import (
    check_finite,
    raise_failure,
    require_closed,
    require_freedom,
)
from bulletbridge.simulation.options import (
    Directions,
    Integrator,
    Status,
    World,
    check_counts,
    check_options,
)
from bulletbridge.simulation.recording import Recording, from_table
from bulletbridge.simulation.redundancy import Decision, decide
from bulletbridge.simulation.solver import Solver, Terms, Tolerances
from bulletbridge.simulation.step import PROJECT, STEP
from bulletbridge.simulation.warm_up import announce_compilation

ASSEMBLED = 1e-6
"""Gap, in mechanism lengths or radians, below which a state is only trimmed, not assembled."""


class System:
    """A constrained mechanism and its state.

    Args:
        mechanism: The tree, usually from ``read_bullet``.
        constraints: What closes its loops.
        world: Where states are read from at the start and written to after each step.
        dt: Step [s].
        integrator: ``semi_implicit_euler`` (order 1, what Bullet does), ``rk4`` (order 4) or
            ``dop853`` (order 8 with error control, slow, for reference solutions).
        rtol, atol: Tolerances of ``dop853``.
        correction: Directions of the configuration correction: those at the ``start`` of the step,
            guarded, or ``current`` (Newton). Kövecses and Piedbœuf 2003, eq. 35 and 36.
        passes: Fixed number of correction passes; None for as many as round-off takes.
        allow_structure: Whether constraints may leave no freedom at all.
        tolerances: Thresholds of the solver.

    Raises:
        ModelError: A constraint names what does not exist, or a number is impossible.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        constraints: Sequence[Constraint] = (),
        *,
        world: World | None = None,
        dt: float = 1 / 240,
        integrator: Integrator = "semi_implicit_euler",
        rtol: float = 1e-10,
        atol: float = 1e-12,
        correction: Directions = "start",
        passes: int | None = None,
        allow_structure: bool = False,
        tolerances: Tolerances | None = None,
    ) -> None:
        check_options(dt, integrator, correction, passes)
        self.mechanism, self.constraints, self.world = mechanism, tuple(constraints), world
        self.tolerances = tolerances or Tolerances()
        self.integrator: Integrator = integrator
        self._adaptive, self._allow_structure = Adaptive(rtol, atol), allow_structure
        encoded = encode(mechanism, self.constraints)
        with announce_compilation():
            self._full = Solver(mechanism, encoded, self.tolerances)
        control = self._full.control[0]
        control["dt"], control["integrator"] = dt, RK4 if integrator == "rk4" else EULER
        control["directions"] = START if correction == "start" else CURRENT
        control["passes"] = -1 if passes is None else passes
        self._solver = self._full
        self._decision: Decision | None = None
        self._write = world.write if world is not None else None
        for joint in mechanism.joints.values():
            if joint.kind in ("spherical", "free"):
                self._full.q[joint.q.stop - 1] = 1.0
        if world is not None:
            self._full.q[:], self._full.v[:] = world.state()

    @property
    def q(self) -> Array:
        """Configuration (nq,), a copy."""
        return self._solver.q.copy()

    @property
    def v(self) -> Array:
        """Velocity (nv,), a copy."""
        return self._solver.v.copy()

    @property
    def t(self) -> float:
        """Time [s]."""
        return self._solver.t

    @property
    def dt(self) -> float:
        """Step [s]."""
        return float(self._solver.control[0]["dt"])

    @property
    def gravity(self) -> Array:
        """Gravity (3,) [m/s²], a copy; setting it acts from the next step on.

        Raises:
            ModelError: It is not three finite numbers.
        """
        return self.mechanism.gravity.copy()

    @gravity.setter
    def gravity(self, value: ArrayLike) -> None:
        gravity = np.array(value, float)
        if gravity.shape != (3,) or not np.all(np.isfinite(gravity)):
            raise ModelError(f"gravity is {value}; give three finite numbers [m/s²]")
        self.mechanism = replace(self.mechanism, gravity=gravity)
        for solver in (self._full, self._solver):
            solver.mechanism = self.mechanism
            solver.control[0]["gravity"] = gravity

    @property
    def tau(self) -> Array:
        """Forces (nv,) on the rates, in place: they act until they are changed [N m or N]."""
        return self._solver.tau[0]

    @property
    def decision(self) -> Decision:
        """Which rows are redundant, and why; assembles first if that has not happened yet."""
        if self._decision is None:
            self.assemble()
        assert self._decision is not None
        return self._decision

    @property
    def encoded(self) -> Encoded:
        """The rows as written."""
        return self._full.encoded

    @property
    def dof(self) -> int:
        """Freedoms left: nv less the independent rows away from singular positions."""
        return self.mechanism.nv - self.decision.cap

    @property
    def status(self) -> Status:
        """How the last step went."""
        c = self._solver.control[0]
        return Status(
            self._solver.encoded.nc,
            int(c["rank"]),
            float(c["margin"]),
            int(c["correction_passes"]),
            bool(c["guarded"]),
            float(c["gap"]),
        )

    def assemble(
        self, q: Values | None = None, v: Values | None = None, guess: Values | None = None
    ) -> Assembly:
        """Close all loops, holding the named joints and moving the others as little as possible.

        Joints not named start from the present state; velocities not named from zero.

        Args:
            q: Positions by joint name [rad or m], quaternions xyzw of spherical joints.
            v: Rates by joint name.
            guess: Positions to start from that are free to move.

        Raises:
            ModelError: Unknown joint or a value that is not finite.
            AssemblyError: The loops cannot close, or the named values contradict each other.
            OverconstrainedError: Nothing could move any more.
        """
        start, speed = self.q, np.zeros(self.mechanism.nv)
        check_finite(start)
        put_values(self.mechanism, guess or {}, start, "q")
        held = put_values(self.mechanism, q or {}, start, "q")
        held_v = put_values(self.mechanism, v or {}, speed, "v")
        return self._assemble(start, held, speed, held_v)

    def _assemble(self, start: Array, held: Mask, speed: Array, held_v: Mask) -> Assembly:
        """Find a consistent state near start and speed; take it only when everything succeeded."""
        if self.world is not None:
            self.world.check()
        before, t, solver, decision, iterations = self.q, self.t, self._solver, self._decision, 0
        with announce_compilation():
            if decision is None:
                enough = self.tolerances.redundant
                start, iterations = close(self._full, start, t, held, enough)
                require_closed(self._full, start, t, enough)
                decision = decide(self.mechanism, self.encoded, start, t, self.tolerances)
                if not self._allow_structure:
                    require_freedom(self.mechanism, decision)
                solver = Solver(self.mechanism, decision.encoded, self.tolerances)
                solver.decide_rank(decision.cap, decision.scale, 1e-6 + 10 * decision.mismatch)
                solver.apply_settings(self._full)
            enough = round_off(solver, start, t) + 10 * decision.mismatch
            found, more = close(solver, start, t, held, enough)
            require_closed(solver, found, t, enough)
            speed = consistent_velocity(solver, found, speed, t, held_v)
        self._solver, self._decision = solver, decision
        self._set(found, speed, t)
        self.write()
        moved = tuple(
            Move(name, before[joint.q], found[joint.q])
            for name, joint in self.mechanism.joints.items()
            if np.abs(found[joint.q] - before[joint.q]).max() > 1e-12
        )
        gap = float(np.abs(self._full.terms(found, speed, t).g).max(initial=0.0))
        return Assembly(moved, iterations + more, gap)

    def set_state(
        self, q: Array | None = None, v: Array | None = None, t: float | None = None
    ) -> None:
        """Set the state; what is not given stays. It must close the loops, or be near to.

        Raises:
            ModelError: A number is not finite or there are too few.
            AssemblyError: The loops are open there; call ``assemble`` first.
        """
        new_q = self.q if q is None else np.array(q, float)
        new_v = self.v if v is None else np.array(v, float)
        if new_q.shape != (self.mechanism.nq,) or new_v.shape != (self.mechanism.nv,):
            raise ModelError(
                f"a state of this mechanism has {self.mechanism.nq} positions and "
                f"{self.mechanism.nv} rates, not {new_q.shape} and {new_v.shape}"
            )
        check_finite(new_q, new_v)
        new_t = self.t if t is None else float(t)
        require_closed(self._full, new_q, new_t, ASSEMBLED + self._full_mismatch())
        self._set(new_q, new_v, new_t)

    def step(self, write: bool = True) -> None:
        """Advance by one step and show the state in the world.

        Raises:
            AssemblyError: The loops are open; call ``assemble`` first.
            StepError: The step could not be finished; the state before it was restored.
            WorldError: The bodies are gone from the world; nothing was done.
        """
        if write and self.world is not None:
            self.world.check()
        if self._decision is None:
            self._trim()
        if self.integrator == "dop853":
            failure = self._adaptive.step(self._solver, self.dt)
        else:
            failure = self._solver.run(STEP, 1) and self._solver.advance(1)
        if failure:
            raise_failure(self._solver, failure)
        if write and self._write is not None:
            self._write(self._solver.q, self._solver.v)

    def rollout(self, steps: int, every: int = 1) -> Recording:
        """Advance by many steps in one call, keep one state in ``every``; the world is not shown.

        Raises:
            ModelError: ``steps`` or ``every`` is not a positive number.
            AssemblyError: The loops are open; call ``assemble`` first.
            StepError: A step could not be finished; the state before it was restored.
        """
        check_counts(steps, every)
        if self._decision is None:
            self._trim()
        table = np.zeros((steps // every, len(self._solver.state) + 3))
        if self.integrator == "dop853":
            for n in range(steps):
                self.step(write=False)
                if (n + 1) % every == 0:
                    s = self.status
                    line = [*self._solver.state, s.rank, s.margin, s.passes]
                    table[(n + 1) // every - 1] = line
        else:
            whole = steps - steps % every
            failure = self._solver.advance(whole, table)
            if not failure and steps % every:
                failure = self._solver.advance(steps % every)
            if failure:
                raise_failure(self._solver, failure)
        return from_table(self.mechanism, table)

    def run(self, duration: float, every: int = 1) -> Recording:
        """Advance by ``duration`` [s], then show the state in the world.

        Raises:
            AssemblyError: The loops are open; call ``assemble`` first.
            StepError: A step could not be finished; the state before it was restored.
        """
        recording = self.rollout(max(1, round(duration / self.dt)), every)
        self.write()
        return recording

    def write(self) -> None:
        """Show the state in the world.

        Raises:
            WorldError: The bodies are not there any more.
        """
        if self._write is not None:
            self._write(self._solver.q, self._solver.v)

    def read(self) -> None:
        """Take the state as the world has it now, for instance after ``resetJointState``.

        Raises:
            AssemblyError: The loops are open there; call ``assemble`` with what is to be held.
            WorldError: The bodies are not there any more.
        """
        if self.world is not None:
            self.world.check()
            self.set_state(*self.world.state())

    def filter(self) -> None:
        """Bring the world's own state onto the loops, after somebody else has advanced it.

        The configuration is corrected and the velocity filtered, both by as little as possible in
        the metric of the mass matrix; the first time, open loops are assembled.

        Raises:
            AssemblyError: The loops cannot be closed near that state; the world keeps it.
            WorldError: The bodies are not there any more.
        """
        if self.world is None:
            return
        q, v = self.world.state()
        if self._decision is None:
            free = np.zeros(self.mechanism.nv, bool)
            self._assemble(q, free, v, free)
            return
        self._set(q, v, self.t + self.dt)
        self.write()

    def acceleration(self) -> Array:
        """Accelerations (nv,) at the state."""
        if self._decision is None:
            self._trim()
        return self._solver.acceleration()

    def reactions(self) -> dict[str, Reaction]:
        """What each constraint does at the state, by name."""
        vdot = self.acceleration()
        return reactions(self._solver, self.decision.by_name, self.q, self.v, self.t, vdot)

    def terms(self) -> Terms:
        """M, h, g, J, g_t and gamma at the state, rows as kept."""
        return self._solver.terms(self.q, self.v, self.t)

    def evaluate(
        self, q: Array | None = None, v: Array | None = None, t: float | None = None
    ) -> Evaluation:
        """Gaps, energy and momentum of a state, the present one unless given.

        The state may come from any simulator; gaps are those of the rows as written.
        """
        q, v, t = self.q if q is None else q, self.v if v is None else v, self.t if t is None else t
        return evaluate(self._full, self._solver, q, v, t)

    def gap_vectors(
        self, q: Array | None = None, t: float | None = None
    ) -> dict[str, tuple[Array, Array]]:
        """Origin of frame b (3,) [m] of each loop, and how far it is from its place (3,) [m].

        World axes, at the present state unless given; turns do not count. Couplings and users'
        rows have no place and are left out.
        """
        q, t = self.q if q is None else q, self.t if t is None else t
        return gap_vectors(self._full, q, self.v, t)

    def kinematics(self) -> Kinematics:
        """Frames, Jacobians and bias accelerations at the state."""
        terms = self.terms()
        return Kinematics(self.mechanism, terms.poses, terms.axes, self.q, self.v, self.t)

    def wrench(self, link: Frame, force: Array, torque: Array | None = None) -> Array:
        """Joint forces (nv,) of a force [N] and torque [N m], world axes, at a frame's origin.

        Add it to ``tau``.

        Raises:
            ModelError: The frame's link does not exist.
        """
        point = self.kinematics().point(link)
        moment = np.zeros(3) if torque is None else np.asarray(torque, float)
        return point.J.T @ np.asarray(force, float) + point.J_angular.T @ moment

    def _set(self, q: Array, v: Array, t: float) -> None:
        """Take a state that closes the loops and trim it to round-off."""
        solver = self._solver
        before = solver.state.copy()
        solver.q[:], solver.v[:], solver.state[-1] = q, v, t
        solver.control[0]["fresh"] = 0
        if self._decision is not None:
            if solver.run(PROJECT):
                solver.state[:] = before
                raise AssemblyError("the loops cannot be closed at this state; call assemble()")

    def _trim(self) -> None:
        """Assemble a state that is closed already, as after loading a model in a closed pose."""
        require_closed(self._full, self.q, self.t, ASSEMBLED)
        free = np.zeros(self.mechanism.nv, bool)
        self._assemble(self.q, free, self.v, free)

    def _full_mismatch(self) -> float:
        """Gap that redundant rows may keep, in mechanism lengths or radians."""
        if self._decision is None:
            return 0.0
        found = self._decision.by_name.values()
        length = self.encoded.length
        sizes = [max(r.mismatch_m / length, r.mismatch_rad) for r in found]
        return 10 * max([*sizes, self._decision.mismatch], default=0.0)
