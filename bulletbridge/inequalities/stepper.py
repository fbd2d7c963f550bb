"""Steps with motors, joint limits and contacts, solved where the loops stay closed."""

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.block_sizes import in_blocks
from bulletbridge.compilation.jit import Callback
from bulletbridge.compilation.stored_calls import StoredCall, WholeCall, call_stored
from bulletbridge.compilation.words import arrays_in
from bulletbridge.engine.clusters_plan import ClusterStepper
from bulletbridge.engine.records import (
    DENSE_REQUIRED,
    DONE,
    FORCES_PER_STEP,
    LEAPT,
    LEFT_OPEN,
    OVERRUN,
    PREDICTED_Q,
    START_Q,
)
from bulletbridge.engine.sparse_plan import UNTOUCHED, SparseStepper
from bulletbridge.engine.stepper import MOST_STEPS, NO_RECORD, TOLD, TOO_LONG, Solver
from bulletbridge.inequalities.arrays import (
    ALONE,
    APART,
    BEYOND,
    BUDGET,
    BY_LINKS,
    GAVE,
    IMPULSES,
    KEPT,
    LARGEST,
    LED_PAST,
    LEFT,
    LET_PAST,
    MOVING,
    NEWTONS,
    PREDICTIONS,
    RATES,
    RECOVER,
    REPORT,
    RESIDUAL,
    RIGHT,
    ROWS,
    STEP,
    SUPPLIED,
    SWEEPS,
    TAKEN,
    TOGETHER,
    UNPLANNED,
    WITH_FRICTION,
    WORK,
    Given,
    InequalityArrays,
    X,
)
from bulletbridge.inequalities.cluster_step_kernel import run_by_clusters
from bulletbridge.inequalities.constraints import Complementarity, InequalityConstraints
from bulletbridge.inequalities.contact_derivatives_kernel import RowsOfSteps
from bulletbridge.inequalities.contact_rows import CONTACT_ROWS
from bulletbridge.inequalities.coordinates import coordinate_parts
from bulletbridge.inequalities.force_limited_rows import ForceLimitedRows
from bulletbridge.inequalities.islands import (
    AskedRows,
    InequalityIslands,
    clusters_pay,
    islands_that_pay,
)
from bulletbridge.inequalities.islands_kernel import RowsOfWhole
from bulletbridge.inequalities.link_plan import (
    PLANNED_FOR,
    ROWS_OF_CONTACT,
    is_tied,
    link_arrays,
    links_pay_beside_loops,
    steps_by_links,
    touching_now,
)
from bulletbridge.inequalities.link_step_kernel import run_contacts
from bulletbridge.inequalities.loose_bodies import (
    LooseBodies,
    gained_by_loose,
    loose_bodies,
    loose_widths,
    put_rows_on_bodies,
)
from bulletbridge.inequalities.motor_limit_rows import LoopAxisRows
from bulletbridge.inequalities.rigid_limits import GAVE_WAY, RigidLimits
from bulletbridge.inequalities.step_kernel import run_inequalities
from bulletbridge.inequalities.steps_kernel import (
    ACCOUNTED,
    ASK,
    CONTACTS,
    COUNTS,
    FOUND,
    HELD,
    LED_TO,
    LIMITED,
    NOTED,
    REMEMBERED,
    STEPS,
    UNMET,
    StepArrays,
    Trace,
    TracedForces,
    keep_state,
    predict,
    step_at_contacts,
    step_watched,
    step_with_contacts,
    trace_forces,
)
from bulletbridge.inequalities.sticking import filter_arrays
from bulletbridge.inequalities.warm_start import CONTACT_IMPULSE
from bulletbridge.mechanism.contact_detector import Detector
from bulletbridge.mechanism.records import (
    CONTACT_POINT,
)
from bulletbridge.numerics.complementarity import natural_residual
from bulletbridge.numerics.complementarity_rows import ROW_BOUNDS, parts_of
from bulletbridge.numerics.cone_program import ReferenceSolver
from bulletbridge.numerics.memory import Memory, Remembered
from bulletbridge.numerics.projection import ROW
from bulletbridge.numerics.records import Array, Ints

NO_CONTACTS = np.zeros(0, CONTACT_POINT)
NOTHING_LOOSE = loose_bodies(0, np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros((0, 0)))
NO_TRACE = Trace(NO_RECORD, 0, 0, 0)


BackendName = Literal["dense", "links", "islands", "clusters"]
"""How a step is made: all at once, by elimination of links, island by island, or by clusters."""


class BoundedMemory(NamedTuple):
    """What a ``InequalityStepper`` goes by.

    Attributes:
        arrays: Contents of its arrays.
        size: Contacts that there is room for.
    """

    arrays: Memory
    size: int


LONGEST_PAUSE = 31
"""Dense steps at contacts, at most, until links are eliminated again where that failed."""
MOST_HALVINGS = 9
"""Down to a 512th, as of steps without forces within bounds."""
PER_STEP = "dt", "recovery"
"""Fields of the control that are lengths of a step, and shares per step."""


class Surroundings(Protocol):
    """What a system may touch."""

    def detector(self) -> Detector | None:
        """Finds contacts where everything is now; None where only ``contact_points`` does."""
        ...

    def contact_points(self, q: Array, v: Array, dt: float) -> np.ndarray:
        """Contact points (n,) at a state, for a step dt [s], with those the detector cannot tell.

        They are of dtype ``CONTACT_POINT``; the state may be shown to find them.
        """
        ...


class Begun(NamedTuple):
    """A step that may be taken back: where it began."""

    state: Array
    budget: Array


class Calls(NamedTuple):
    """A compiled call of steps, by itself and as one step that nothing drives but forces that stay.

    Steps with contacts that a detector finds are of this detector, with the room that it had.
    """

    steps: StoredCall
    step: WholeCall
    detector: Detector | None
    version: int


class OneStep(NamedTuple):
    """A step with what it touches, for other kernels to make.

    Attributes:
        whole: Its call.
        detector: That finds contacts in it.
        arrays: What it works on,
        rows: and rows that it leaves.
    """

    whole: WholeCall
    detector: Detector
    arrays: StepArrays
    rows: RowsOfSteps


def grown(before: np.ndarray, *shape: int) -> np.ndarray:
    """An array of another shape with what both have room for; the rest is zero."""
    after = np.zeros(shape, before.dtype)
    both = tuple(slice(min(a, b)) for a, b in zip(before.shape, shape, strict=True))
    after[both] = before[both]
    return after


class InequalityStepper:
    """Runs the compiled step with inequality rows on a solver.

    Args:
        solver: Whose state it advances.
        motor_rows: (n,) motors and frictions; may be changed in place.
        joint_limits: (n,) joint limits.
        inequalities: Free motions of loop joints, and constraints with a force limit.
        reference: What solves for the impulses in place of the compiled solver; None for that.
        rigid: Constraints with a force limit that are rigid in that solver as long as they hold.

    Attributes:
        gave_way: Which of these did not hold, where a step ended by ``GAVE_WAY``.
        overran: Axes of limits, and pairs of bodies, that closing loops has led past, or into each
            other, in steps that could not be made otherwise; for others to tell, and to clear.
        unmet: Pairs of bodies that touch, and axes of motors or limits, whose laws no impulses were
            found to meet, and by how much [m/s or rad/s]; none of them where many touch. Likewise.
        report: (REPORT,) of the last step.
        tau: (nv,) forces on the rates in the last step.
        contact_rows: (n,) and more, the rows of each of its contacts.
    """

    def __init__(
        self,
        solver: Solver,
        motor_rows: np.ndarray,
        joint_limits: np.ndarray,
        inequalities: InequalityConstraints,
        reference: ReferenceSolver | None = None,
        rigid: RigidLimits | None = None,
    ) -> None:
        self.solver, self.inequalities = solver, inequalities
        self.motor_rows, self.joint_limits = motor_rows, joint_limits
        self.report, self.tau = np.zeros(REPORT), solver.tau[0].copy()
        self._exerted = np.zeros(solver.mechanism.nv)
        self._noted: Array = np.full((NOTED, len(solver.state) + 1), np.nan)
        self._noted[LED_TO, -1] = solver.control[0]["dt"]
        self._counts: Ints = np.zeros(COUNTS, np.int64)
        self.rigid, self.gave_way = rigid, ""
        self.overran = set[tuple[int, ...]]()
        self.unmet = dict[tuple[int, ...], float]()
        self._multipliers = np.zeros((3, solver.encoded.nc))
        self._reference = reference
        self._interruption: BaseException | None = None
        self._callback = Callback(self._find)
        self._address = 0
        if reference is not None:
            self._address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        axis_rows = inequalities.loop_axes.encoded
        self.positions = np.zeros(axis_rows.nc, ROW)  # .g, from which turns are counted on
        self.force_limited_rows = np.zeros(inequalities.force_limited.nc, ROW)
        self.impulses = np.zeros((IMPULSES, solver.mechanism.nv))
        self.contact_impulses = np.zeros(0, CONTACT_IMPULSE)
        self.contact_rows, self._points = np.zeros(0, CONTACT_ROWS), NO_CONTACTS
        self.C, self.D = np.zeros((3, 0, solver.mechanism.nv)), np.zeros((2, 0, 0))
        self.bound_records = np.zeros(0, ROW_BOUNDS)
        self._made: dict[tuple[BackendName, bool], Calls] = {}  # with contacts or not
        self._predict: dict[BackendName, Callable[[tuple[Any, ...]], int]] = {}
        self._asked = solver.tau  # for which they are made
        self._traces: dict[BackendName, StoredCall] = {}
        self._alone: Callable[[tuple[()]], int] | None = None  # a step without contacts of these
        self._watched: tuple[WholeCall, Callable[[tuple[()]], int]] | None = None
        self._links = self._may_take_links()
        self._goes_dense = self._links and is_tied(solver)  # now and then, at contacts
        self._parts_pay, self._pause = True, np.zeros(2)  # steps without them, and the last such
        if self._goes_dense and isinstance(solver.stepper, SparseStepper):
            self._parts_pay = links_pay_beside_loops(solver, solver.stepper)
        self._with_contacts: BackendName = "links" if self._links else "dense"
        asked = AskedRows(motor_rows, joint_limits, inequalities, rigid is not None)
        apart = None if self._links or reference else islands_that_pay(solver, asked)
        if apart is not None and rigid is not None and not rigid.all_hold:
            holding = rigid.holding
            rigid.hold(rigid.names)  # as the islands are cut out of the solver
            self._islands = InequalityIslands(apart, asked)
            rigid.hold(holding)
        else:
            self._islands = InequalityIslands(apart, asked) if apart is not None else None
        self._without_contacts: BackendName = self._with_contacts if apart is None else "islands"
        if apart is not None and self._contacts_act_alone:
            self._with_contacts, self._goes_dense, self._parts_pay = "islands", True, False
        if apart is None and self._may_take_clusters():
            self._without_contacts = "clusters"
        self._planned = solver.stepper  # for which there is room
        self._allocate(4)
        self.forget()

    def forget(self) -> None:
        """Start as a new one would: nothing was exerted, turns are nearest to mid-range."""
        self.report[:] = self._pause[:] = 0.0
        self._forget_impulses()
        if self._links and isinstance(self.solver.stepper, SparseStepper):
            self._take_plan(self.solver.stepper.touched(UNTOUCHED))
        self._noted[:, :-1] = np.nan
        for row, freedom in zip(self.positions, self.inequalities.loop_axes.acting, strict=True):
            lower, upper = freedom.limits or (-np.inf, np.inf)
            row["g"] = (lower + upper) / 2 if np.isfinite(upper - lower) else 0.0

    def forget_energy(self) -> None:
        """Begin the energy budget with the end of the next step."""
        self._noted[ACCOUNTED, :-1] = np.nan

    def _forget_impulses(self) -> None:
        """Start the next step from no impulses."""
        self.impulses[[X, BEYOND]], self._exerted[:], self.report[[KEPT, ALONE]] = 0.0, 0.0, 0.0
        self.joint_limits["impulse"] = 0.0

    def memory(self) -> "BoundedMemory":
        """What the next steps go by besides the solver's: impulses, loads, turns, energy."""
        return BoundedMemory(self._remembered.copy(), self._size)

    def recall(self, memory: "BoundedMemory") -> None:
        """Go on from ``memory``, of another step of the same drives, stops and inequalities."""
        if memory.size != self._size or self._planned is not self.solver.stepper:
            self._allocate(memory.size)
        self._remembered.put_back(memory.arrays)

    @property
    def dt(self) -> float:
        """Length of the last step [s], less than a whole one if that was divided."""
        return float(self._noted[LED_TO, -1])

    @property
    def contact_points(self) -> np.ndarray:
        """Those of the last step (n,), of dtype ``CONTACT_POINT``, valid until the next."""
        held = self._counts[HELD]
        return self._points[held : held + self._counts[CONTACTS]]

    @property
    def held_points(self) -> np.ndarray:
        """The same of bodies that are held rigidly to one another, which have no rows."""
        return self._points[: self._counts[HELD]]

    @property
    def complementarity(self) -> Complementarity:
        """How the last step went."""
        rows, sweeps, newton = (int(self.report[k]) for k in (ROWS, SWEEPS, NEWTONS))
        residual, work, taken = (float(self.report[k]) for k in (RESIDUAL, WORK, TAKEN))
        return Complementarity(rows, residual, sweeps, newton, work, taken)

    @property
    def exerted(self) -> Array:
        """Forces (nv,) of motors, a mean over steps, that led to where contacts were found."""
        return self._exerted

    def motor_forces(self) -> Array:
        """What each drive exerted in the last step (n,) [N or N m]."""
        rows = self.motor_rows["row"]
        return np.where(rows >= 0, self.impulses[X, rows], 0.0) / self.dt

    def predict(self) -> Array:
        """Configuration (nq,) at which contacts are found; see ``steps_kernel.predict``."""
        if self._predict_by(self._way_at_contacts) == DENSE_REQUIRED:
            self._predict_by("dense")
        return self.solver.vectors[PREDICTED_Q, : len(self.solver.q)]

    @property
    def _predicted_rates(self) -> Array:
        """Those that lead to where contacts are found (nv,).

        What rests and is led away by them is told as from where it rests.
        """
        return self.impulses[MOVING, : len(self.solver.v)]

    def _predict_by(self, way: BackendName) -> int:
        """The same by one of the ways; DENSE_REQUIRED, or DONE."""
        given, limited = self._given(), self.inequalities.force_limited.nc
        if way not in self._predict:
            fixed = self._runs[way], self._step_arrays(NO_CONTACTS)
            with announce_compilation(predict):
                stored = StoredCall(predict, fixed, (given, 0, limited))
            self._predict[way] = stored.call
        return self._predict[way]((given, 0, limited))

    @property
    def _contacts_act_alone(self) -> bool:
        """Whether nothing else acts by inequalities while all that may holds; nobody is asked."""
        solver, others = self.solver, self.inequalities
        others_act = len(self.motor_rows) or len(self.joint_limits) or others.loop_axes.acting
        others_act = others_act or (others.force_limited.nc > 0 and self.rigid is None)
        asks = self._reference is not None or solver.user_size or solver.asked_forces
        return not others_act and not asks

    def _may_take_links(self) -> bool:
        """Whether nothing but contacts acts on bodies that are eliminated one by one."""
        alone = self._contacts_act_alone and self.rigid is None
        return alone and steps_by_links(self.solver)

    def _may_take_clusters(self) -> bool:
        """Whether motors and limits alone act, on clusters whose factors cost much less."""
        stepper, others = self.solver.stepper, self.inequalities
        if not isinstance(stepper, ClusterStepper) or others.force_limited.nc > 0:
            return False
        asks = self._reference is not None or self.solver.user_size or self.solver.asked_forces
        return not asks and self.rigid is None and clusters_pay(self.solver, stepper.plan)

    def _step_arrays(self, contacts: np.ndarray) -> StepArrays:
        """What steps work on that find these contacts."""
        solver, nv = self.solver, self.solver.mechanism.nv
        return StepArrays(
            solver.state,
            solver.control,
            solver.vectors,
            self.impulses,
            self.C[1],
            self.report,
            self._exerted,
            np.zeros((PREDICTIONS, nv)),
            self._counts,
            contacts,
            self._noted,
            solver.tau,
            self.tau,
            self._points,
            self.inequalities.rigid,
        )

    def _given(self, steps: int = 1) -> Given:
        """What drives steps from now on."""
        solver, dt = self.solver, self.solver.control["dt"].item()
        targets = solver.still
        if solver.encoded.motions:
            targets = solver.encoded.targets(np.array([solver.t, solver.t + dt]))
        given = Given(targets, *self._now(), self._address)
        if steps == 1:
            return given
        each = FORCES_PER_STEP[int(solver.control[0]["integrator"])]  # lines, of which we take one
        return given._replace(tau=np.ascontiguousarray(solver.forces(steps)[::each]))

    def calls(self, way: BackendName, detector: Detector | None) -> Calls:
        """The compiled call of steps by one of the ways, made anew when it needs more room.

        With contacts that this detector finds, or without.
        """
        if self._asked is not self.solver.tau:  # others may replace it
            self._made, self._predict, self._asked = {}, {}, self.solver.tau
            self._traces, self._alone = {}, None
        version = 0 if detector is None else detector.version
        which: tuple[BackendName, bool] = way, detector is None
        made = self._made.get(which)
        if made is None or made.detector is not detector or made.version != version:
            block, steady = self._runs[way], self._steady
            if detector is None:
                arrays, own = self._step_arrays(NO_CONTACTS), (NO_CONTACTS,)
                kernel, fixed = step_at_contacts, (block, arrays)
            else:
                arrays = self._step_arrays(detector.contacts)
                own = self._room_of_contacts
                kernel, fixed = step_with_contacts, (block, detector.call.block, arrays)
            rest = steady, *own, NO_TRACE, 1
            with announce_compilation(kernel):
                stored = StoredCall(kernel, fixed, rest)
            whole = stored.with_rest(rest)
            made = self._made[which] = Calls(stored, whole, detector, version)
        return made

    @property
    def _room_of_contacts(self) -> tuple[int, int]:
        """What steps that find contacts are told: rows with force limits, and contacts at most."""
        return self.inequalities.force_limited.nc, self._size

    @property
    def _steady(self) -> Given:
        """What drives steps where nothing does but forces that stay."""
        return Given(self.solver.still, *self._still, self.solver.tau, self._address)

    @property
    def _is_steady(self) -> bool:
        """Whether nothing does."""
        solver, others = self.solver, self.inequalities
        moved = solver.encoded.motions or others.loop_axes.encoded.motions
        moved = moved or others.force_limited.motions or solver.script.signals
        return not moved and solver.held is None

    @property
    def _asks_nobody(self) -> bool:
        """Whether a step that is done is done: no Python is called, and nothing is taken back."""
        asks = self.solver.user_size > 0 or bool(self.solver.asked_forces)
        return self.rigid is None and self._reference is None and not asks

    def watched(self, free: WholeCall) -> Callable[[tuple[()]], int] | None:
        """A step without inequalities up to a joint limit, and with them at one, in one call.

        A failure goes to ``finish_alone`` where ``had_limits``.

        Args:
            free: One without.

        Returns:
            None where steps take more than a call of a kernel.
        """
        if self._watched is not None and self._watched[0] is free:
            return self._watched[1]
        if not (self._is_steady and self._asks_nobody):
            return None
        way = self._without_contacts
        self.calls(way, None)  # made anew if what they are made for has changed
        fixed = free.block, self._runs[way], self._step_arrays(NO_CONTACTS), self.joint_limits
        rest = self._steady, NO_CONTACTS, NO_TRACE
        with announce_compilation(step_watched):
            call = StoredCall(step_watched, fixed, rest).with_rest(rest).call
        self._watched = free, call
        return call

    @property
    def had_limits(self) -> bool:
        """Whether the last step by ``watched`` was one with inequalities."""
        return bool(self._counts[LIMITED])

    def step(self, contact_points: np.ndarray | None = None) -> int:
        """Advance by a step; return the failure that stopped it, with the state before it, or DONE.

        Args:
            contact_points: (n,) at the predicted configuration, which may be put into another
                order; None where none are looked for.

        Raises:
            StepError: The solver that was asked for could not solve the mixed problem.
        """
        return self._step_at(contact_points, NO_TRACE, 1)[0]

    def _step_at(
        self, contact_points: np.ndarray | None, trace: Trace, steps: int
    ) -> tuple[int, int]:
        """Steps at contacts that are known, or without any for None; as ``take_steps``."""
        way = self._way_alone if contact_points is None else self._way_at_contacts
        contacts = NO_CONTACTS if contact_points is None else contact_points
        if len(contacts) > self._size:
            self._allocate(2 * len(contacts))
        if way == "links" and steps > 1:
            way = "dense"
        begun, calls = self._begin(), self.calls(way, None)
        if trace is NO_TRACE and steps == 1 and not len(contacts) and self._is_steady:
            failure = calls.step.call(())
            if contact_points is None and self._asks_nobody:
                self._alone = calls.step.call
        else:
            failure = calls.steps.call((self._given(steps), contacts, trace, steps))
        return self._end_at(way, begun, failure, contacts, trace)

    def _end_at(
        self,
        way: BackendName,
        begun: Begun | None,
        failure: int,
        contacts: np.ndarray | Detector,
        trace: Trace,
    ) -> tuple[int, int]:
        """How steps have ended of which a call has returned; one that it left is made dense.

        At contacts that were known, or that a detector finds. ASK is left to the caller.
        """
        done = int(self._counts[STEPS])
        dense = failure == DENSE_REQUIRED and done == 0
        if dense:
            self.solver.handed_over += 1
            finder, own = None, (contacts,)
            if isinstance(contacts, Detector):  # made where they were found, whoever finds them
                found = int(self._counts[FOUND])
                finder = contacts if found < 0 else None
                own = self._room_of_contacts if found < 0 else (contacts.contacts[:found],)
            failure = self.calls("dense", finder).steps.call((self._given(), *own, trace, 1))
            done = int(self._counts[STEPS])
        elif failure == DENSE_REQUIRED:
            failure = DONE  # the next call takes up that step
        if failure == ASK:
            return failure, done
        failure = self._end_of(begun, failure)
        if dense:
            self._expect(self.contact_points if isinstance(contacts, Detector) else contacts)
        if self._goes_dense:
            self._note_way(way, dense)
        return failure, done

    @property
    def _way_alone(self) -> BackendName:
        """How a step is made that touches nothing."""
        return "dense" if self._gives_way else self._without_contacts

    @property
    def _gives_way(self) -> bool:
        """Whether any of the constraints that may hold does not, and may join islands."""
        return self.rigid is not None and not self.rigid.all_hold

    @property
    def _way_at_contacts(self) -> BackendName:
        """How a step is made that may touch something, by what became of the last ones."""
        if self._gives_way:
            return "dense"
        touched = self._goes_dense and self.report[KEPT] > 0.0
        if touched and (not self._parts_pay or self._pause[0] > 0.0):
            return "dense"
        return self._with_contacts

    def _note_way(self, way: BackendName, refused: bool) -> None:
        """Note how a step was made: links are eliminated ever more rarely while that fails."""
        if refused:
            self._pause[:] = min(2.0 * self._pause[1] + 1.0, LONGEST_PAUSE)
        elif way != "dense":
            self._pause[:] = 0.0
        elif self._pause[0] > 0.0:
            self._pause[0] -= 1.0

    def _expect(self, contact_points: np.ndarray) -> None:
        """Plan steps by links anew where they did not expect contacts, if that has come often."""
        stepper = self.solver.stepper
        if not self._links or not isinstance(stepper, SparseStepper):
            return
        touching = touching_now(stepper, contact_points)
        if touching is None:
            return
        self.report[UNPLANNED] += 1.0
        if self.report[UNPLANNED] * len(stepper.plan.order) ** 2 >= PLANNED_FOR:
            self._take_plan(stepper.touched(touching))

    def _take_plan(self, stepper: SparseStepper) -> None:
        """Make steps by links as this one does from now on."""
        self.solver.take_stepper(stepper)
        self.report[UNPLANNED] = 0.0
        if self._planned is not stepper:
            self._allocate(self._size)

    def _begin(self) -> Begun | None:
        """What a step has to go back to, if it may have to."""
        if self.rigid is None or not self.rigid.holding:
            return None
        state, budget = self.solver.state, self.report[[BUDGET, LARGEST]]
        here = [*state.tolist(), self.solver.control["dt"].item()]
        if self._noted[ACCOUNTED].tolist() != here:
            budget[0] = np.nan  # it is that of another state
        return Begun(state.copy(), budget)

    def _end_of(self, begun: Begun | None, failure: int) -> int:
        """Take back what does not hold; the failure that stopped steps, or DONE."""
        solver = self.solver
        failure = solver.finish_call(failure)
        if self._interruption is not None:
            error, self._interruption = self._interruption, None
            self._noted[LED_TO, :-1] = np.nan
            self._forget_impulses()
            raise error
        if begun is not None and failure == DONE and not self._holds(self.dt):
            solver.state[:], self.report[[BUDGET, LARGEST]] = begun
            solver.control[0]["factored"] = 0
            self._noted[LED_TO, :-1], self._noted[ACCOUNTED, :-1] = np.nan, begun.state
            return GAVE_WAY
        if failure != DONE:
            self.forget_failure()
        if failure == DONE and self.report.item(RESIDUAL) > UNMET:
            self._note_unmet()
        return failure

    def _note_unmet(self) -> None:
        """Note of what the last step did not meet the law, where that matters to how it moves."""
        what, left = self._least_met()
        if left > UNMET * max(1.0, float(np.abs(self.solver.v).max())):
            self.unmet[what] = max(left, self.unmet.get(what, 0.0))

    def _least_met(self) -> tuple[tuple[int, ...], float]:
        """Whose rows miss their law by most, as in ``unmet``, and by how much [m/s or rad/s].

        That what is wedged cannot be moved apart breaks no law.
        """
        n, x, apart = int(self.report[ROWS]), self.impulses[X], self.report[APART] > 0.0
        limits, contacts = self.joint_limits["row"], self.contact_rows[: len(self.contact_points)]
        if self.report[BY_LINKS] or self.report[TOGETHER] < n:  # not all velocities are known
            return (), 0.0 if apart else self.report.item(RESIDUAL)
        w = self.D[0, :n, :n] @ x[:n] + self.impulses[RIGHT, :n]
        if apart:
            stops = np.concatenate([limits[limits >= 0], contacts["normal"]])
            w[stops] -= self.impulses[RECOVER, stops]
        worst, worst_row = 0.0, 0
        for i, bound in enumerate(self.bound_records[:n]):
            alone = bound["owner"] < 0
            if not (alone or bound["first"]):
                continue
            rows = [i] if alone else [bound["owner"], *range(i, i + bound["count"])]
            block, bounds = self.D[0][np.ix_(rows, rows)], self.bound_records[rows]
            bounds["owner"][1:] = 0
            b = w[rows] - block @ x[rows]
            left = natural_residual(block, b, bounds, x[rows], np.zeros(len(rows)))
            if left > worst:
                worst, worst_row = left, i
        return self._acting_in(worst_row), worst

    def _acting_in(self, row: int) -> tuple[int, ...]:
        """The bodies that touch, or the axis, whose row that was in the last step."""
        contacts = self.contact_rows[: len(self.contact_points)]
        touching = (contacts["normal"] <= row) & (row < contacts["end"])
        for point in self.contact_points[touching]:
            return int(point["body_a"]), int(point["body_b"])
        for rows in (self.joint_limits, self.motor_rows):
            for one in rows[rows["row"] == row]:
                return (int(one["axis"]),)
        return ()

    @property
    def supplied(self) -> Array:
        """(nc,) impulses of the rigid rows in the last step [N s, N m s]."""
        return self._multipliers[SUPPLIED]

    def _holds(self, dt: float) -> bool:
        """Whether all that is rigid stayed within its limits; else ``gave_way`` says what not."""
        assert self.rigid is not None
        self.gave_way = self.rigid.over(self.supplied, dt)
        return not self.gave_way

    def adopt(self, other: "InequalityStepper") -> None:
        """Go on from the last step of another one, of the same motors, limits and inequalities."""
        if other._size != self._size:
            self._allocate(other._size)
        for name in (
            "impulses",
            "C",
            "D",
            "bound_records",
            "contact_rows",
            "contact_impulses",
            "joint_limits",
            "positions",
            "force_limited_rows",
            "report",
            "tau",
            "_exerted",
            "_noted",
            "_counts",
            "_points",
            "_pause",
        ):
            getattr(self, name)[:] = getattr(other, name)
        for mine, its in zip(self._loose_rows, other._loose_rows, strict=True):
            mine[:] = its

    @property
    def start(self) -> tuple[Array, Array, float]:
        """q (nq,), v (nv,) and t [s] before the last step."""
        solver = self.solver
        v = self.impulses[RATES, : len(solver.v)].copy()
        return solver.vectors[START_Q, : len(solver.q)].copy(), v, solver.t - self.dt

    @property
    def has_failed(self) -> bool:
        """Whether the last step did not come to its end."""
        return bool(np.isnan(self._noted[LED_TO, 0]))

    def led_to(self, state: Array) -> bool:
        """Whether a state (nq + nv + 1) is that after the last step."""
        return bool((self._noted[LED_TO, :-1] == state).all())

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

    def _take(self, surroundings: Surroundings) -> int:
        """One step, with what it touches; the failure that stopped it, or DONE."""
        if self._starts_with_motors:
            return self.step(self._first_contacts(surroundings))
        return self.take_steps(surroundings, 1, NO_TRACE)[0]

    @property
    def lone(self) -> Callable[[tuple[()]], int] | None:
        """A step that touches nothing, if it is one call, by what the last one was made by."""
        solver = self.solver
        if solver.tau is not self._asked or solver.held or solver.script.signals:
            return None
        return self._alone

    def _take_alone(self) -> int:
        """One step that touches nothing, in a call that takes nothing where forces stay."""
        alone, way = self.lone, self._without_contacts
        if alone is None:
            return self.step()
        failure = alone(())
        return failure and self._end_at(way, None, failure, NO_CONTACTS, NO_TRACE)[0]

    def take_steps(
        self, surroundings: Surroundings | None, steps: int, trace: Trace
    ) -> tuple[int, int]:
        """As many steps as can be made in one call, if what drives them stays.

        Args:
            surroundings: What they may touch; None for nothing.
            steps: The most.
            trace: Receives states.

        Returns:
            The failure that stopped them, with the state before it, or DONE; and steps done.
        """
        if surroundings is None:
            return self._step_at(None, trace, steps)
        detector, done = surroundings.detector(), 0
        if detector is None:
            self.predict()
        else:
            way = self._with_contacts
            if self._goes_dense:
                way, steps = self._way_at_contacts, 1
            begun, calls = self._begin(), self.calls(way, detector)
            if trace is NO_TRACE and steps == 1 and self._is_steady:
                failure = calls.step.call(())
            else:
                given = self._given(steps), *self._room_of_contacts
                failure = calls.steps.call((*given, trace, steps))
            failure, done = self._end_at(way, begun, failure, detector, trace)
            if failure != ASK:
                return failure, done
            if done > 0:
                self._end_of(begun, DONE)
        predicted = self.solver.vectors[PREDICTED_Q, : len(self.solver.q)]
        dt = self.solver.control["dt"].item()
        failure = self.step(surroundings.contact_points(predicted, self._predicted_rates, dt))
        if failure == DONE:
            done += 1
            total = trace.before + done
            keep_state(trace.table, trace.every, total, self.solver.state, self.solver.control)
        return failure, done

    @property
    def can_be_traced(self) -> bool:
        """Whether nothing acts but what ``trace`` tells of, driven by forces alone."""
        others, acting = self.inequalities, self.motor_rows["force"] > 0.0
        along_loops = bool(np.any(self.motor_rows["axis"][acting] < 0))
        return (
            not along_loops
            and others.force_limited.nc == 0
            and self._is_steady
            and self._asks_nobody
        )

    def trace(self, tau: Array, states: Array) -> TracedForces:
        """Room to tell of forces of joints in, of steps under forces tau (n, nv).

        Args:
            tau: On the rates.
            states: (n + 1, nq + nv + 1) receives where they lead.
        """
        n, limits, drives = len(tau), self.joint_limits, self.motor_rows["force"] > 0.0
        by_drives, by_limits = np.zeros((n, int(drives.sum()))), np.zeros((n, len(limits)))
        numbers = np.flatnonzero(drives)
        return TracedForces(numbers, self.motor_rows, limits, states, by_drives, by_limits)

    def trace_steps(self, tau: Array, found: TracedForces, first: int) -> int:
        """Make steps without contacts from the state of the solver; how many were made.

        Args:
            tau: (n, nv) forces on the rates in each step of the trace.
            found: That trace, which receives what they do.
            first: Which of its steps is the first one.
        """
        way = self._without_contacts
        self.calls(way, None)  # made anew if what they are made for has changed
        rest = self._steady._replace(tau=tau), NO_CONTACTS, found, first
        if way not in self._traces:
            fixed = self._runs[way], self._step_arrays(NO_CONTACTS)
            with announce_compilation(trace_forces):
                self._traces[way] = StoredCall(trace_forces, fixed, rest)
        failure = self._traces[way].call(rest)
        self._end_of(None, failure)
        return int(self._counts[STEPS])

    def one(self, surroundings: Surroundings, before: OneStep | None) -> OneStep | None:
        """The next steps one by one, as long as each is one call of a kernel; None where it is not.

        Args:
            surroundings: What they may touch.
            before: What this was before, to be given back if it still is.
        """
        detector, way = surroundings.detector(), self._with_contacts
        alone = self._is_steady and self._asks_nobody and self.inequalities.force_limited.nc == 0
        if detector is None or not alone or self._goes_dense or self._starts_with_motors:
            return None
        whole = self.calls(way, detector).step
        if before is not None and before.whole is whole:
            return before
        by_links, on_bodies, on = way == "links", self._loose.bodies, self._loose.on
        if by_links:
            on_bodies, on = self._link.bodies[0], self._link.on[0]
        rows = RowsOfSteps(
            self.contact_rows, self.bound_records, self.D, on_bodies, on, np.zeros_like(self.C[1]),
            int(by_links),
        )  # fmt: skip
        return OneStep(whole, detector, self._step_arrays(detector.contacts), rows)

    def forget_failure(self) -> None:
        """Start the next step from nothing where the last one has failed and left no numbers."""
        if not np.isfinite(self.impulses[X]).all():
            self._forget_impulses()

    def roll(self, surroundings: Surroundings | None, steps: int, trace: Trace) -> tuple[int, int]:
        """Advance by steps, as many as possible in one call, and keep some of the states.

        What drives them stays.

        Args:
            surroundings: What they may touch; None for nothing.
            steps: How many, with those that ``trace`` has been given before.
            trace: Receives states.

        Returns:
            The failure that stopped it, with the state before that step, or DONE; and steps done:
            fewer than were asked for if the trace ends where nothing has pushed.
        """
        done, solver = trace.before, self.solver
        while done < steps:
            now = trace._replace(before=done)
            if surroundings is not None and self._starts_with_motors:
                failure, n = self._take(surroundings), 0
            else:
                failure, n = self.take_steps(surroundings, min(steps - done, MOST_STEPS), now)
                done += n
            if failure in TOO_LONG:
                failure, n = self._take_otherwise(surroundings, failure), 0
            if failure == DONE and n == 0:
                done += 1
                keep_state(trace.table, trace.every, done, solver.state, solver.control)
            if failure != DONE:
                return failure, done
            if trace.while_pushed and not self.limits_push:
                break
        return DONE, done

    @property
    def limits_push(self) -> bool:
        """Whether any joint limit pushed in the last step."""
        rows = self.joint_limits["row"]
        return bool(np.any(self.impulses[X, rows[rows >= 0]] != 0.0))

    @property
    def _starts_with_motors(self) -> bool:
        """Whether it is not known yet what motors exert."""
        return self.report[ROWS] == 0.0 and self._has_motors

    @property
    def _has_motors(self) -> bool:
        if self.inequalities.force_limited.nc > 0:
            return True
        motors = self.motor_rows
        return len(motors) > 0 and bool((motors["force"] > 0.0).any())

    def _first_contacts(self, surroundings: Surroundings) -> np.ndarray:
        """Contacts of a step before which it is not known what motors exert."""
        dt = self.solver.control["dt"].item()
        find = surroundings.contact_points
        contact_points = find(self.predict(), self._predicted_rates, dt)
        if self._find_what_motors_exert():
            other = find(self.predict(), self._predicted_rates, dt)
            if len(other) > len(contact_points):
                return other
            self._exerted[:] = 0.0
            self.predict()
        return contact_points

    def advance(self, surroundings: Surroundings | None, halvings: int = MOST_HALVINGS) -> int:
        """One step, or several shorter ones where a long one cannot be finished.

        Impacts may leave velocities at which a mechanism turns far within a step.

        Args:
            surroundings: What it may touch; None for nothing.
            halvings: How often the step may be halved.

        Returns:
            The failure that stopped it, with the state before it, or DONE.
        """
        failure = self._take_alone() if surroundings is None else self._take(surroundings)
        return failure and self._finish(surroundings, failure, halvings)

    def finish_alone(self, failure: int) -> int:
        """Do a step otherwise that has failed so in a call without contacts; a failure, or DONE."""
        way = self._without_contacts
        failure = self._end_at(way, None, failure, NO_CONTACTS, NO_TRACE)[0]
        return failure and self._finish(None, failure, MOST_HALVINGS)

    def _finish(self, surroundings: Surroundings | None, failure: int, halvings: int) -> int:
        """Do a step otherwise that has failed so; arguments and result are those of ``advance``."""
        if failure == OVERRUN and halvings == 0:
            return self._take_past(surroundings)
        if failure not in TOO_LONG or halvings == 0:
            return failure
        return self._take_otherwise(surroundings, failure, halvings)

    def _take_past(self, surroundings: Surroundings | None) -> int:
        """A step though closing loops leads past limits or into contacts, which ``overran`` tells.

        What is rigid up to a force limit need not be pulled shut.

        Returns:
            The failure that stopped it, with the state before it, or DONE.
        """
        if self.rigid is not None and self.rigid.holding:
            return OVERRUN
        self.report[LET_PAST] = 1.0
        try:
            failure = self.step() if surroundings is None else self._take(surroundings)
        finally:  # the finder of contacts may raise
            self.report[LET_PAST] = 0.0
        led_past = int(self.report[LED_PAST])
        if failure == DONE and led_past > 0:
            self.overran.add((int(self.joint_limits[led_past - 1]["axis"]),))
        elif failure == DONE and led_past < 0:
            contact = self.contact_points[-1 - led_past]
            self.overran.add((int(contact["body_a"]), int(contact["body_b"])))
        return failure

    def _take_otherwise(
        self, surroundings: Surroundings | None, whole: int, halvings: int = MOST_HALVINGS
    ) -> int:
        """The step that was found too long, in parts; arguments are those of ``_take_parts``."""
        if whole == LEAPT and self.solver.control[0]["driven"] > 0:
            return self._take_agreed(surroundings, whole)
        return self._take_parts(surroundings, whole, halvings)

    @contextmanager
    def _shorter(self, parts: int) -> Generator[None]:
        """Steps of a length of one in so many parts, which take back as little of a gap."""
        control = self.solver.control[0]
        shares = self.motor_rows["position_gain"], self.inequalities.force_limits["erp"]
        kept, gains = [control[name] for name in PER_STEP], [share.copy() for share in shares]
        try:
            for name in PER_STEP:
                control[name] /= parts
            for share in shares:
                share /= parts
            yield
        finally:
            for name, value in zip(PER_STEP, kept, strict=True):
                control[name] = value
            for share, gain in zip(shares, gains, strict=True):
                share[:] = gain

    def _take_parts(self, surroundings: Surroundings | None, whole: int, halvings: int) -> int:
        """The step that was found too long in two halves, and in halves of these.

        Arguments are those of ``advance``; ``whole`` is how the step failed.
        """
        solver, failure = self.solver, whole
        control, before = solver.control[0], solver.state.copy()
        told = [control[name] for name in TOLD]
        try:
            with self._shorter(2):
                failure = self.advance(surroundings, halvings - 1)
                failure = failure or self.advance(surroundings, halvings - 1)
        finally:
            if failure:  # the second half's finder may raise too
                solver.state[:] = before
                control["factored"] = 0
        if failure in TOO_LONG and whole == OVERRUN:
            return self._take_past(surroundings)
        if failure in TOO_LONG and (failure != LEFT_OPEN or whole == LEFT_OPEN):
            failure = whole  # which says more than that of the finest part
            for name, value in zip(TOLD, told, strict=True):
                control[name] = value
        return failure

    def _take_agreed(self, surroundings: Surroundings | None, whole: int) -> int:
        """The step in which drives made rates grow, in parts of two lengths that lead to the same.

        What drives do is not bounded by anything known before: where they lead against a limit
        they may give a mechanism any energy at once. Where they lead on past what limits and
        contacts let it reach, no motion is left, and no two lengths lead to the same.

        Args:
            surroundings: What it may touch.
            whole: How it failed as a whole.

        Returns:
            The failure that stopped it, with the state before it, or DONE.
        """
        solver, failure = self.solver, whole
        control, before, led_to = solver.control[0], solver.state.copy(), list[Array]()
        told, excess = [control[name] for name in TOLD], float(control["excess"])
        try:
            control["excess"] = np.inf
            for parts in (2**n for n in range(1, MOST_HALVINGS + 1)):
                solver.state[:], control["factored"] = before, 0
                with self._shorter(parts):
                    failure = DONE
                    for _ in range(parts):
                        failure = failure or self.advance(surroundings, 0)
                if failure == DONE and any(solver.agrees(v) for v in led_to):
                    break
                if failure == DONE:
                    failure = whole
                    led_to.append(solver.v.copy())
                if failure not in TOO_LONG:
                    break
        finally:  # the finder of contacts may raise
            control["excess"] = excess
            if failure:
                solver.state[:], control["factored"] = before, 0
                self._noted[LED_TO, :-1] = np.nan
        if failure in TOO_LONG:
            failure = whole
            for name, value in zip(TOLD, told, strict=True):
                control[name] = value
        return failure

    def _find_what_motors_exert(self) -> bool:
        """Find what motors exert before there was a step, by one without contacts that is undone.

        Contacts are sought where they lead: a plate that motors hold would fall away from what lies
        on it.

        Returns:
            Whether anything is exerted.
        """
        before, control = self.solver.state.copy(), self.solver.control.copy()
        exerted = np.zeros_like(self._exerted)
        if self.step(NO_CONTACTS) == DONE:
            pressing = int(self.report[WITH_FRICTION]) + self.inequalities.force_limited.nc
            exerted = REMEMBERED * self.impulses[X, :pressing] @ self.C[1, :pressing] / self.dt
        self.solver.state[:], self.solver.control[:] = before, control
        self.solver.control[0]["factored"] = 0
        positions = self.positions.copy()
        self.forget()
        self.positions[:], self._exerted[:] = positions, exerted
        return bool(exerted.any())

    def _now(self) -> tuple[np.ndarray, np.ndarray, Array]:
        """Prescribed motions along loop axes and of constraints with a force limit, and forces."""
        axis_rows, force_limited = (
            self.inequalities.loop_axes.encoded,
            self.inequalities.force_limited,
        )
        first, second = self._still
        if axis_rows.motions:
            first = axis_rows.targets(np.array([self.solver.t]))[0]
        held = 0 if self.rigid is None else len(self.rigid.holding)
        if force_limited.motions and held < len(force_limited.rows):  # else nothing is left of them
            second = force_limited.targets(np.array([self.solver.t]))[0]
        return first, second, self.solver.forces(0)

    def _allocate(self, contacts: int) -> None:
        """Make room for ``contacts`` contacts."""
        solver, axis_rows, force_limited = (
            self.solver,
            self.inequalities.loop_axes.encoded,
            self.inequalities.force_limited,
        )
        nv = solver.mechanism.nv
        self._size, self._planned = contacts, solver.stepper
        rows = (
            len(self.motor_rows)
            + len(self.joint_limits)
            + force_limited.nc
            + ROWS_OF_CONTACT * contacts
        )
        self._still = axis_rows.targets(np.zeros(1))[0], force_limited.targets(np.zeros(1))[0]
        # a prediction is under way, a step begins warm, and the last one may be asked about
        self.contact_rows = grown(self.contact_rows, contacts)
        self.contact_impulses = grown(self.contact_impulses, contacts)
        self._points = grown(self._points, contacts)
        self.C, self.D = (
            grown(self.C, 3, max(rows, nv), nv),
            grown(self.D, 2, rows, in_blocks(rows)),
        )
        self.bound_records = grown(self.bound_records, rows)
        self.impulses = grown(self.impulses, IMPULSES, max(rows, nv))
        self._loose = self._loose_bodies(rows)
        own = InequalityArrays(
            filter_arrays(contacts, nv, self._multipliers),
            self.motor_rows,
            self.joint_limits,
            LoopAxisRows(
                axis_rows.loops,
                axis_rows.couplings,
                axis_rows.terms,
                self.positions,
                np.zeros((axis_rows.nc, nv)),
            ),
            ForceLimitedRows(
                self.inequalities.force_limits,
                force_limited.loops,
                force_limited.couplings,
                force_limited.terms,
                self.force_limited_rows,
            ),
            self.contact_rows,
            self.contact_impulses,
            np.zeros(contacts, CONTACT_POINT),
            self.C,
            self.D,
            parts_of(self.C[0], coordinate_parts(solver.mechanism, solver.encoded, force_limited)),
            self._loose,
            self.bound_records,
            self.impulses,
            self.report,
        )
        rest = Given(solver.still, *self._now(), self._address), NO_CONTACTS, STEP, 1
        with announce_compilation(run_inequalities):
            call = StoredCall(run_inequalities, (solver.arrays, own), rest)
        self._ways: dict[BackendName, StoredCall] = {"dense": call}
        self._made, self._predict, self._traces, self._alone = {}, {}, {}, None
        self._watched = None
        kept = arrays_in((own._replace(loose=NOTHING_LOOSE),))  # of which nothing is used again
        if self._links:
            assert isinstance(solver.stepper, SparseStepper)
            self._link = link_arrays(solver, contacts)
            fixed = solver.stepper.arrays, solver.arrays, self._link, own
            with announce_compilation(run_contacts):
                self._ways["links"] = StoredCall(run_contacts, fixed, rest)
            kept += [self._link.bodies, self._link.on]
        if self._without_contacts == "clusters":
            assert isinstance(solver.stepper, ClusterStepper)
            with announce_compilation(run_by_clusters):
                fixed = solver.stepper.clusters, solver.arrays, own
                self._ways["clusters"] = StoredCall(run_by_clusters, fixed, rest)
        if self._islands is not None:
            whole = RowsOfWhole(
                self.motor_rows,
                self.joint_limits,
                self.positions,
                axis_rows.loops,
                self.impulses,
                self.report,
                solver.vectors,
                solver.bodies,
                self.force_limited_rows,
                self._multipliers[SUPPLIED],
            )
            self._ways["islands"] = self._islands.stored(whole, rest[0])
            kept += self._islands.arrays
        self._runs = {  # blocks of one type for all ways: what calls them is compiled once
            way: StoredCall(call_stored, (call.block,), (rest,)).block
            for way, call in self._ways.items()
        }
        noted = self.tau, self._exerted, self._noted, self._counts, self._points, self._pause
        self._remembered = Remembered([*kept, *noted])

    def _loose_bodies(self, rows: int) -> LooseBodies:
        """Room for so many rows of bodies that nothing but contacts can hold."""
        solver, others = self.solver, self.inequalities
        widths = np.zeros(len(solver.mechanism.bodies), np.int64)
        if self._reference is None and not solver.user_size:
            used = np.concatenate([self.motor_rows["axis"], self.joint_limits["axis"]])
            every = (solver.encoded, others.force_limited, others.loop_axes.encoded)
            widths = loose_widths(solver.mechanism, used, *every)
        room = rows if widths.any() else 0
        return loose_bodies(room, widths, solver.mechanism.bodies["v"], self.D[1])

    @property
    def _loose_rows(self) -> tuple[np.ndarray, ...]:
        """What is known of rows of loose bodies after a step."""
        return self._loose.on, self._loose.islands.bodies, self._loose.islands.blocks

    @property
    def rows(self) -> Array:
        """(rows, nv) inequality rows of the last step."""
        n = int(self.report[ROWS])
        by_links, alone = bool(self.report[BY_LINKS]), bool(self.report[ALONE])
        together = 0 if by_links or alone else int(self.report[TOGETHER])
        if together == n and not alone:
            return np.asarray(self.C[1, :n])
        rows, bodies = np.zeros((n, self.solver.mechanism.nv)), self.solver.mechanism.bodies
        if alone:
            assert self._islands is not None
            self._islands.put_rows(rows)
            return rows
        rows[:together] = self.C[1, :together]
        on_bodies, on = self._loose.bodies, self._loose.on
        if by_links:
            on_bodies, on = self._link.bodies[0], self._link.on[0]
        with announce_compilation(put_rows_on_bodies):
            put_rows_on_bodies(bodies, on_bodies, on, together, rows)
        return rows

    def gained(self, contact: int, moving: Array) -> float:
        """What impulses, and moving apart (nv,), gave along a contact's normal in the last step."""
        own = self.contact_rows[contact]
        row = int(own["normal"])
        if self.report[BY_LINKS]:
            return float(self.impulses[GAVE, row])
        n, together = int(self.report[ROWS]), int(self.report[TOGETHER])
        if row < together:
            given = self.D[0, row, :together] @ self.impulses[X, :together]
            given -= own["compliance"] * self.impulses[X, row]  # bodies do not move by that
            return float(given + self.C[1, row] @ moving)
        x = self.impulses[X, together:n]
        total = gained_by_loose(self._loose, row, together, x)
        for end, body in enumerate(self._loose.bodies[row]):
            first, wide = self._loose.first[body], self._loose.islands.widths[body]
            total += float(self._loose.on[row, end, :wide] @ moving[first : first + wide])
        return total
