"""A constrained mechanism at a state."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.encode import Constraint, encode_places, require_names
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.engine.choose import copy_of
from bulletbridge.engine.correction import PROMISED
from bulletbridge.engine.failures import check_finite, require_closed, require_freedom
from bulletbridge.engine.records import LEFT_OPEN
from bulletbridge.engine.redundancy import (
    SPREAD,
    Decision,
    Start,
    all_independent,
    decide,
    row_lengths,
)
from bulletbridge.engine.sparse_plan import SparseStepper
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.tasks import PROJECT
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.errors import AssemblyError, ModelError
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Mask, are_numbers, array_of
from bulletbridge.system.assembly import (
    Assembly,
    Move,
    Values,
    close,
    consistent_velocity,
    open_by,
    project_by_links,
    put_values,
    round_off,
)
from bulletbridge.system.by_joint import ByJoint, by_joint
from bulletbridge.system.evaluation import (
    require_lengths,
)
from bulletbridge.system.options import Status, how_to_set

ASSEMBLED = 1e-6
"""Gap, in mechanism lengths or radians, below which a state is only trimmed, not assembled."""
REGULAR = 0.02
"""Weakest row over the strongest from which no row can be redundant: twenty times what may be."""
LEAST_REACH = 0.1
"""Motion, in mechanism lengths or radians, that a decision about redundancy should rest on."""


class ClosedState:
    """A state of a mechanism that closes its constraints, once they are assembled.

    Args:
        mechanism: The tree, usually from ``read_bullet``.
        constraints: What closes its loops; those with force limits are left out.
        allow_structure: Whether constraints may leave no freedom at all.
        tolerances: Thresholds of the solver.

    Raises:
        ModelError: A constraint names what does not exist, or a number is impossible.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        constraints: Sequence[Constraint],
        allow_structure: bool,
        tolerances: Tolerances,
    ) -> None:
        self._mechanism, self._constraints = mechanism, tuple(constraints)
        self._tolerances, self._allow_structure = tolerances, allow_structure
        require_names(self.constraints)
        encoded = encode_closed(mechanism, self.constraints)
        self._full = Solver(mechanism, encoded, tolerances)
        self._solver = self._full
        self._decision: Decision | None = None
        for joint in mechanism.joints.values():
            if joint.kind in ("spherical", "free"):
                self._full.q[joint.q.stop - 1] = 1.0

    def __setattr__(self, name: str, value: object) -> None:
        """Set what can be set.

        Raises:
            ModelError: It cannot; the message says what is done instead.
        """
        kind = getattr(type(self), name, None)
        if not (name.startswith("_") or (isinstance(kind, property) and kind.fset)):
            raise ModelError(how_to_set(type(self), name))
        object.__setattr__(self, name, value)

    @property
    def mechanism(self) -> Mechanism:
        """The tree."""
        return self._mechanism

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What closes its loops now; see ``connect`` and ``disconnect``."""
        return self._constraints

    @property
    def tolerances(self) -> Tolerances:
        """Thresholds of the solver."""
        return self._tolerances

    @property
    def q(self) -> ByJoint:
        """Configuration (nq,), a copy; also by joint, as ``q["crank"]``."""
        return by_joint(self._q, self._mechanism, "q")

    @property
    def v(self) -> ByJoint:
        """Velocity (nv,), a copy; also by joint."""
        return by_joint(self._v, self._mechanism, "v")

    @property
    def _q(self) -> Array:
        return self._solver.q.copy()

    @property
    def _v(self) -> Array:
        return self._solver.v.copy()

    @property
    def t(self) -> float:
        """Time [s]."""
        return self._solver.t

    @property
    def gravity(self) -> Array:
        """Gravity (3,) [m/s²]; may be set."""
        return self._solver.control[0]["gravity"].copy()

    @gravity.setter
    def gravity(self, value: Sequence[float] | Array) -> None:
        if not are_numbers(value, (3,)):
            raise ModelError(f"gravity is {value!r}; give three finite numbers [m/s²]")
        for solver in self._solvers:
            solver.control[0]["gravity"] = value

    @property
    def tau(self) -> ByJoint:
        """Forces (nv,) on the rates, in place: they act until they are changed [N m or N].

        They go by number or by joint: ``system.tau["crank"] = 2.0``.
        """
        return by_joint(self._solver.tau[0], self._mechanism, "tau")

    @tau.setter
    def tau(self, forces: ArrayLike | Values) -> None:
        """Set all (nv,), or those of some joints by name and the others to zero.

        Raises:
            ModelError: A joint does not exist, or a number is missing or not finite.
        """
        given = np.zeros(self.mechanism.nv)
        if isinstance(forces, Mapping):
            put_values(self.mechanism, forces, given, "tau")
        else:
            found = np.asarray(forces, float)
            if found.shape != given.shape or not np.all(np.isfinite(found)):
                raise ModelError(
                    f"tau is {forces!r}; give {len(given)} finite numbers, or some by joint name"
                )
            given = found
        self._solver.tau[0] = given

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
        c = self._stepped.control[0]
        return Status(
            self._stepped.encoded.nc,
            int(c["rank"]),
            float(c["margin"]),
            int(c["correction_passes"]),
            bool(c["guarded"]),
            float(c["gap"]),
            int(c["taken"]),
            int(c["rejected"]),
        )

    def assemble(
        self, q: Values | None = None, v: Values | None = None, guess: Values | None = None
    ) -> Assembly:
        """Close all loops, holding the named joints and moving the others as little as possible.

        Joints not named start from the present state; velocities not named from zero. Dampers that
        explicit steps could not follow from there act at the end of steps: unless an integrator was
        given, it is ``semi_implicit_euler`` then.

        Args:
            q: Positions by joint name [rad or m], quaternions xyzw of spherical joints.
            v: Rates by joint name.
            guess: Positions to start from that are free to move.

        Raises:
            ModelError: Unknown joint or a value that is not finite.
            AssemblyError: The loops cannot close, or the named values contradict each other.
            OverconstrainedError: Nothing could move any more.

        Warns:
            BulletBridgeWarning: The integrator that was given cannot follow a damper.
        """
        start, speed = self._q, np.zeros(self.mechanism.nv)
        check_finite(start)
        put_values(self.mechanism, guess or {}, start, "q")
        held = put_values(self.mechanism, q or {}, start, "q")
        held_v = put_values(self.mechanism, v or {}, speed, "v")
        return self._assemble(start, held, speed, held_v)

    def _assemble(self, start: Array, held: Mask, speed: Array, held_v: Mask) -> Assembly:
        """Find a consistent state near start and speed; take it only when everything succeeded."""
        before, t, solver, decision, iterations = self._q, self.t, self._solver, self._decision, 0
        if decision is None:
            solver, decision, start, iterations = self._decide(self._full, start, held)
        found, more = self._close(solver, decision, start, held)
        if self._decision is None and decision.reach < LEAST_REACH:
            # a position like a stretched chain, which tells nothing
            solver, decision, found, again = self._decide(self._full, found, held)
            found, last = self._close(solver, decision, found, held)
            more += again + last
        require_lengths(solver, found, t)
        speed = consistent_velocity(solver, found, speed, t, held_v)
        self._solver, self._decision = solver, decision
        self._set(found, speed, t)
        moved = tuple(
            Move(name, before[joint.q], found[joint.q])
            for name, joint in self.mechanism.joints.items()
            if np.abs(found[joint.q] - before[joint.q]).max() > 1e-12
        )
        gap = float(np.abs(self._full.terms(found, speed, t).g).max(initial=0.0))
        return Assembly(moved, iterations + more, gap)

    def _close(
        self, solver: Solver, decision: Decision, start: Array, held: Mask
    ) -> tuple[Array, int]:
        """The nearest configuration that the rows of a decision close, and the iterations needed.

        Raises:
            AssemblyError: There is none.
        """
        enough = round_off(solver, start, self.t) + decision.allowance
        found, iterations = close(solver, start, self.t, held, enough)
        require_closed(solver, found, self.t, enough)
        return found, iterations

    def _reconsider(self, failure: int) -> bool:
        """Decide redundancy again after a step that was stopped; whether it may be tried again.

        What opened had been left out. Decided from here it may be redundant all the same, with a
        wider gap as its allowance; otherwise all rows of that loop count from now on, and, of those
        that follow from other loops, whatever is independent at a pose.
        """
        if failure != LEFT_OPEN or self._decision is None:
            return False
        solver, before, worst = self._solver, self._decision, int(self._solver.control[0]["worst"])
        name = ""
        if worst < 0:
            name = list(before.encoded.rows)[-1 - worst]
            if name in before.whole:
                return False
        elif not before.is_held:
            return False
        q, v, t = self._q, self._v, self.t
        full = self._full
        start, whole = Start(q, self._is_exact(full, q)), before.whole | {name} - {""}
        decision = decide(self.mechanism, full.encoded, start, t, self.tolerances, whole)
        if worst >= 0 or not before.is_held:
            decision = decision.with_all_rows()
        full.apply_settings(solver)
        again = copy_of(full, decision)
        again.put(q, v, t)
        if again.run(PROJECT):
            return False
        self._solver, self._decision = again, decision
        return True

    def _is_exact(self, full: Solver, q: Array) -> bool:
        """Whether a configuration was given with all rows closed to round-off."""
        known = self._decision
        if known is not None and SPREAD * known.widest > PROMISED * self.tolerances.gap:
            return False
        return open_by(full, q, self.t) <= 10.0 * round_off(full, q, self.t)

    def _decide(
        self, full: Solver, start: Array, held: Mask
    ) -> tuple[Solver, Decision, Array, int]:
        """Decide redundancy at a closed configuration near start; also that, and its iterations."""
        regular = None if held.any() else self._find_regular(full, start)
        if regular is not None:
            return regular
        enough, t = self.tolerances.redundant, self.t
        closed, iterations = close(full, start, t, held, enough)
        require_closed(full, closed, t, enough)
        decision = decide(
            self.mechanism,
            full.encoded,
            Start(closed, self._is_exact(full, start)),
            t,
            self.tolerances,
            frozenset() if self._decision is None else self._decision.whole,
        )
        if not self._allow_structure:
            require_freedom(self.mechanism, decision)
        return copy_of(full, decision), decision, closed, iterations

    def _find_regular(
        self, full: Solver, start: Array
    ) -> tuple[Solver, Decision, Array, int] | None:
        """As ``_decide`` where links are eliminated and all rows are strong near start, or None.

        At one closed pose that is enough: no motion makes rows redundant by design that are not.
        It costs as much as a few steps, where samples would grow with the cube of the links.
        """
        solver = copy_of(full, all_independent(full.encoded, full.encoded.scale, self.mechanism.nv))
        if not isinstance(solver.stepper, SparseStepper):
            return None
        lengths = row_lengths(full, start, self.t)
        if not lengths.min(initial=np.inf) > 0.0:
            return None
        scale = full.encoded.scale / lengths
        decision = all_independent(full.encoded, scale, self.mechanism.nv)
        solver.decide_rank(decision.caps, scale, 0.0, np.inf)
        found = project_by_links(solver, start, self.t)
        if found is None or solver.control[0]["margin"] < REGULAR:
            return None
        if not self._allow_structure:
            require_freedom(self.mechanism, decision)
        loops = decision.encoded.loops
        loops["allowed"] = loops["allowed_rate"] = np.inf  # nothing is left out of them
        return solver, decision, *found

    def place(self, name: str, frame: np.ndarray) -> None:
        """Put frame a of a loop elsewhere on its link; the state is not touched.

        Args:
            name: The loop.
            frame: (1,) of ``moved_frames``: where it is.
        """
        for solver in self._solvers:
            solver.encoded.place(name, frame)
            solver.control["factored"] = 0

    def link_pose(self, name: str) -> tuple[Array, Array]:
        """Rotation (3, 3) and position (3,) [m] of a link in the world.

        Raises:
            ModelError: The link does not exist.
        """
        link, solver = self.mechanism.link(name), self._solver
        if link.body == 0:
            return link.R, link.p
        poses, axes, beams = solver.poses.copy(), solver.axes.copy(), solver.beams.copy()
        kinematics(solver.bodies, beams, solver.stations.copy(), solver.q, poses, axes)
        pose = poses[link.body]
        return pose["R"] @ link.R, pose["p"] + pose["R"] @ link.p

    @property
    def _stepped(self) -> Solver:
        """That of the last step."""
        return self._solver

    @property
    def _solvers(self) -> tuple[Solver, ...]:
        """That of the rows as written, and those that step."""
        return (self._full,) if self._full is self._solver else (self._full, self._solver)

    def rebase(self, mechanism: Mechanism) -> None:
        """Go on with the same tree whose links that stand still are elsewhere.

        Frames of loops are where their constraints say, on those links; the state is not touched.
        """
        self._mechanism = mechanism
        for solver in self._solvers:
            encode_places(solver.encoded, mechanism, self.constraints)
            solver.rebase(mechanism)

    def set_offset(self, name: str, offset: float) -> None:
        """Give a coupling another offset [rad or m]; the state is not touched."""
        for solver in self._solvers:
            solver.encoded.set_offset(name, offset)

    def set_state(
        self, q: Array | None = None, v: Array | None = None, t: float | None = None
    ) -> None:
        """Set the state; what is not given stays. It must close the loops, or be near to.

        What earlier steps have left behind is forgotten: impulses to start from, turns that were
        counted, lengths of sub-steps. A run from here is that of a new system, to the bit;
        ``restore`` goes on with all of it.

        Raises:
            ModelError: A number is not finite or there are too few.
            AssemblyError: The loops are open there; call ``assemble`` first.
        """
        new_q = self._q if q is None else array_of("q", q)
        new_v = self._v if v is None else array_of("v", v)
        if new_q.shape != (self.mechanism.nq,) or new_v.shape != (self.mechanism.nv,):
            raise ModelError(
                f"a state of this mechanism has {self.mechanism.nq} positions and "
                f"{self.mechanism.nv} rates, not {new_q.shape} and {new_v.shape}"
            )
        check_finite(new_q, new_v)
        if t is not None and not are_numbers(t):
            raise ModelError(f"the time is {t!r} s; give a finite number")
        new_t = self.t if t is None else float(t)
        require_closed(self._full, new_q, new_t, self.closing_allowance)
        self._set(new_q, new_v, new_t)

    def _set(self, q: Array, v: Array, t: float) -> None:
        """Take a state that closes the loops and trim it to round-off."""
        solver = self._solver
        before = solver.state.copy()
        solver.put(q, v, t)
        if self._decision is not None:
            if solver.run(PROJECT):
                solver.state[:] = before
                raise AssemblyError("the loops cannot be closed at this state; call assemble()")
        self.forget()

    def forget(self) -> None:
        """Forget all that steps leave behind besides the state, as ``set_state`` does."""

    def _trim(self) -> None:
        """Assemble a state that is closed already, as after loading a model in a closed pose."""
        require_closed(self._full, self._q, self.t, ASSEMBLED)
        free = np.zeros(self.mechanism.nv, bool)
        self._assemble(self._q, free, self._v, free)

    @property
    def closing_allowance(self) -> float:
        """Gap that ``set_state`` closes, in mechanism lengths or radians."""
        return ASSEMBLED + self._full_mismatch()

    def _full_mismatch(self) -> float:
        """Gap that redundant rows may keep, in mechanism lengths or radians."""
        if self._decision is None:
            return 0.0
        return SPREAD * self._decision.widest
