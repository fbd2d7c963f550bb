"""The compiled step."""

from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.stored_calls import StoredCall, WholeCall
from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.round_off import accuracy_of
from bulletbridge.engine.backend import SolverName
from bulletbridge.engine.force_signals import Script
from bulletbridge.engine.modified import GIVEN_METRIC, METRIC, METRICS
from bulletbridge.engine.plausible import EXCESS, MOST_EXCESS, SAG
from bulletbridge.engine.records import (
    ACCELERATION,
    ALWAYS,
    CONTRADICTED,
    CREEPING,
    DENSE_REQUIRED,
    DONE,
    DOP8,
    EULER,
    FORCES_PER_STEP,
    LEAPT,
    LEFT_OPEN,
    MODIFIED_EULER,
    NOT_CLOSED,
    NOT_FINITE,
    NOT_RESOLVED,
    ONE_OVER_UNITS,
    OVERRUN,
    RADAU,
    RATES_LOST,
    RK4,
    SEEN_Q,
    SEEN_V,
    START_Q,
    START_V,
    TARGETS_PER_STEP,
    UNCORRECTED,
    UNLESS_CREEPING,
    VERLET,
)
from bulletbridge.engine.step_kernel import run, stepping_kernel
from bulletbridge.engine.tasks import ACCELERATE, JUDGE, STEP
from bulletbridge.engine.whitened import weakest
from bulletbridge.engine.workspace import SolverArrays, Tolerances
from bulletbridge.errors import warn_user
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.memory import Memory, Remembered
from bulletbridge.numerics.records import Array

MOST_STEPS = 2000
"""Steps in one call: between two of them Python may be interrupted."""
REFINEMENTS = (8, 64, 512)
"""Parts of a step that cannot be finished as a whole."""
OTHERS = tuple((method, 2**n) for method in (VERLET, EULER) for n in range(9, 0, -1))
"""Methods, and numbers of parts, by which a step is tried that its own cannot finish in any.

Verlet's method keeps the energy where long steps of others had made rates grow that are theirs to
follow. Euler's takes no curvature, which has a pole beside a singular position: there others throw
a mechanism from one side of it to the other at any length. The finest that will do is taken.
"""
CONTROLLED = 1e-8, 1e-10
"""Tolerances of DOP853 under error control, by which a step is done that no equal parts can finish.

Beside a singular position rates may grow a hundredfold and fall again within a thousandth of a
step, where parts would have to be as short as nowhere else. The second is there for steps that only
an agreement of two shows to be right."""
EXPLICITLY = (
    *((DOP8, parts) for parts in (1, 2, 3, 5, 7)),
    *((method, parts) for parts in (2, 3, 5, 8) for method in (RK4, VERLET)),
    *((DOP8, parts) for parts in (11, 16, 23, 32, 45, 64)),
)
FINELY = 1e-4
"""Methods and numbers of parts by which a step is done that was not done under error control, and
share of the rates that two of them may differ by, as error control allows next to a singular
position. Where parallelograms are flat, most differ by 1e-9, and by 1e-5 to 1e-2 if a part ends
next to there: so their ends are at as many places as may be. A step that starts next to there has
rates that are off, by what their loops are open by over the square of the distance; many stages
amplify that as few do not."""
AGREED = 0.5 * EXCESS
"""Share of the rates that driven steps in parts of two lengths, or of two tolerances, may differ by
to agree on their end, and their energies by as much as a step may have too much. What drives do is
known to be bounded only where they start or stop at once, and the energy that two agree on is
theirs."""
TOO_LONG = (
    NOT_CLOSED, NOT_RESOLVED, NOT_FINITE, CONTRADICTED, LEFT_OPEN, LEAPT, CREEPING, RATES_LOST,
    OVERRUN,
)  # fmt: skip
"""Failures that may come of a step that is too long."""
LOST = (
    "step at t = {t:.6g} s: of {had:.3g} J of motion {gone:.3g} J are lost at a singular position"
    " of '{name}', where its rows allow rates with which no motion goes on, and which end as in an"
    " impact; start with rates along one of the ways that lead on, or take a smaller dt where rates"
    " grow within a step. status.lost adds up what is lost; no further loss is told"
)
"""What is said of the first step that loses rates."""
TOLD = "worst", "gap", "kinetic_before", "kinetic_after", "given", "rate_before", "rate_after"
"""Fields of the control that tell of a failure."""
NO_RECORD = np.zeros((0, 0))
SETTINGS = (
    "dt", "integrator", "directions", "passes", "gravity", "implicit", "controlled", "rtol", "atol",
    "energy_budget", "compliant", "weighting",
)  # fmt: skip
"""Fields of the control that hold settings."""

ADDRESSES = "callback", "asked", "asked_for"
"""Fields of the control that mean something in one process alone."""
SHORTER = REFINEMENTS[:2]
"""Parts of a step that has lost rates at a singular position, which shorter ones may keep. They do
where the step was too long to stay on the way that it was on; not where it starts with rates with
which no motion goes on, as many as loops allow at a position and nowhere beside it."""
MOST_LOSSES = 8
"""Steps that lose rates, after which no more of them are looked into one by one."""
OF_BODIES, OF_AXES = ("mass", "J"), ("armature", "damping", "stiffness", "torque")
"""Fields of bodies and of axes that may be revised, besides places."""


class CompiledStepper(Protocol):
    """Steps of a system part by part: island by island, or link by link.

    Attributes:
        is_whole: Whether its kernel advances the whole at once, and tells what a failure is about.
        arrays: What its kernel works on.
    """

    is_whole: bool
    arrays: Sequence[Any]

    def run(self, targets: np.ndarray, tau: Array, record: Array, steps: int) -> int:
        """Advance the whole by steps; return the failure that stopped it, or DONE."""
        ...

    def one_step(self, tau: Array) -> WholeCall:
        """Call that advances by one step with forces that stay."""
        ...

    def take_over(self, targets: np.ndarray, tau: Array, record: Array) -> int:
        """A step that was DENSE_REQUIRED; the failure that stopped it, or DONE."""
        ...

    def evaluate(self, task: int, targets: np.ndarray, tau: Array) -> int:
        """Do a task of ``tasks`` that is no step; a failure, DENSE_REQUIRED if it cannot, DONE."""
        return DENSE_REQUIRED

    def layout(self) -> bytes:
        """What its arrays depend on besides the rows."""
        return b""

    def laid_out(self, layout: bytes) -> "CompiledStepper":
        """The same with other arrays, of which this was told; its own self where they are its."""
        return self


class Followers(Protocol):
    """What goes by the same bodies and joints, in arrays of its own."""

    def rebase(self) -> None:
        """Take over places, masses, and what acts at joints and between frames, from the whole."""
        ...


class Solver(SolverArrays):
    """Steps of a mechanism with its constraints: calls into the kernels."""

    def __init__(
        self,
        mechanism: Mechanism,
        encoded: Encoded,
        tolerances: Tolerances,
        state: Array | None = None,
        control: np.ndarray | None = None,
    ) -> None:
        super().__init__(mechanism, encoded, tolerances, state, control)
        self._by_call = False  # whether the last call had it ask
        self.backend: SolverName = "auto"  # as asked for
        self.losses = 0  # steps that have lost rates
        self._has_lost = False  # whether a call has ended for that
        self.advanced = 0
        self.handed_over = 0  # steps that another backend did not come to the end of
        self.stepper: CompiledStepper | None = None  # in which it steps, where that costs less
        self.islands: Followers | None = None  # what nothing joins, where there is more than one
        self.differentiator: object = None  # what differentiates its equations, once asked for
        self.step_differentiator: object = None  # and its steps
        self.step_adjoint: object = None  # and takes gradients back through them
        self.contact_rows: object = None  # and finds rows of contacts anywhere
        self._recalled: tuple[Array, Remembered] | None = None  # by tau, which others may replace
        self._calls: dict[Any, StoredCall] = {}  # of kernels, with the arrays
        self._step: WholeCall | None = None  # with forces that stay
        self._step_tau = NO_RECORD
        self._step_slides = False  # whether it has friction of loop joints
        self._asked = bool(encoded.motions) or self.user_size > 0

    def take_script(self, script: Script) -> None:
        """Have these forces on rates act; what differentiates others is forgotten.

        Raises:
            ModelError: A compiled function does not compile for what it is given.
        """
        super().take_script(script)
        self.differentiator = self.step_differentiator = self.step_adjoint = self._step = None

    def memory(self) -> Memory:
        """All that its kernels work on: state, settings, factors, what the step control knows."""
        c = self.control[0]
        addresses = [int(c[name]) for name in ADDRESSES]  # of this process
        for name in ADDRESSES:
            c[name] = 0
        try:
            layout = b"" if self.stepper is None else self.stepper.layout()
            return layout, *self._remembered().copy()
        finally:
            for name, address in zip(ADDRESSES, addresses, strict=True):
                c[name] = address

    def recall(self, memory: Memory) -> None:
        """Go on from ``memory``, of a solver of the same rows with the same settings."""
        c, (layout, *arrays) = self.control[0], memory
        addresses = [int(c[name]) for name in ADDRESSES]
        if self.stepper is not None:
            self.take_stepper(self.stepper.laid_out(layout))
        self._remembered().put_back(tuple(arrays))
        for name, address in zip(ADDRESSES, addresses, strict=True):
            c[name] = address

    def take_stepper(self, stepper: CompiledStepper) -> None:
        """Step in another way from now on."""
        if stepper is not self.stepper:
            self.stepper, self._step, self._recalled = stepper, None, None
            self.control[0]["factored"] = 0

    def _remembered(self) -> Remembered:
        others = self.stepper.arrays if self.stepper is not None else ()
        if self._recalled is None or self._recalled[0] is not self.tau:
            self._recalled = (
                self.tau,
                Remembered([*cast(tuple[np.ndarray, ...], self.arrays), self.tau, *others]),
            )
        return self._recalled[1]

    def apply_settings(self, other: "Solver") -> None:
        """Take over integrator, step, correction, gravity and forces from another solver."""
        self.tau = other.tau  # one array: callers may hold it
        self.backend, self._step = other.backend, None
        if self.script is not other.script:
            self.take_script(other.script)
        for name in SETTINGS:
            self.control[0][name] = other.control[0][name]
        self.control[0]["biased"] = 0
        self.control[0]["lost"], self.losses = other.control[0]["lost"], other.losses
        self.factors[0][METRIC] = other.factors[0][METRIC]

    def take_weighting(self, metric: str | Array) -> None:
        """Step by a modified integration in this metric from now on: a name, or H (nv, nv)."""
        named = isinstance(metric, str)
        self.control[0]["weighting"] = METRICS[metric] if named else GIVEN_METRIC
        self.factors[0][METRIC] = 0.0 if named else metric

    def rebase(self, mechanism: Mechanism) -> None:
        """Go on with the same tree whose links that stand still are elsewhere, as encoded.

        How well gaps can be told stays: chains of joints end at what stands still.
        """
        before, self.mechanism = self.mechanism, mechanism
        for name in ("R", "p") if mechanism.bodies is not before.bodies else ():
            self.bodies[name] = mechanism.bodies[name]
        self.control["factored"] = self.control["charted"] = 0
        if self.islands is not None:
            self.islands.rebase()

    def revise(self, mechanism: Mechanism, moved: bool) -> None:
        """Go on with the same tree with other masses, places and forces of joints, as encoded.

        Args:
            mechanism: The tree.
            moved: Whether joints or loops are elsewhere, or may be.
        """
        for name in OF_BODIES:
            self.bodies[name] = mechanism.bodies[name]
        for name in OF_AXES:
            self.axes[name] = mechanism.axes[name]
        self.efforts[len(mechanism.efforts) :] = self.encoded.elements
        self.put_guard_floor()
        if moved:
            c = self.control[0]
            c["round_off"], c["lever"] = accuracy_of(mechanism, self.encoded)
        self.rebase(mechanism)

    def run(self, task: int, steps: int = 0, record: Array = NO_RECORD) -> int:
        """Run a task of ``step_kernel.run``; return the failure that stopped it, or DONE.

        Raises:
            Exception: Whatever a user's constraint raised, with the state before the step restored.
        """
        stepper = self.stepper
        if task == STEP and self._prescribe_by_call():
            targets, forces = self._now, self._pushed
        else:
            targets = self.targets(steps) if self.encoded.motions else self.still
            forces = self.forces(steps)
        if stepper is not None and task == STEP:
            return self.finish_call(stepper.run(targets, forces, record, steps))
        return self._evaluate(stepper, task, targets, forces, record, steps)

    def _evaluate(
        self,
        stepper: CompiledStepper | None,
        task: int,
        targets: np.ndarray,
        forces: Array,
        record: Array = NO_RECORD,
        steps: int = 0,
    ) -> int:
        """Do a task by a stepper if it can, else in joint coordinates."""
        failure = DENSE_REQUIRED
        if stepper is not None and task != STEP:
            failure = stepper.evaluate(task, targets, forces)
        if failure == DENSE_REQUIRED:
            failure = self.stored_call(task).call((targets, forces, record, task, steps))
        return self.finish_call(failure)

    def step(self) -> int:
        """``advance(1)``; in a call that takes nothing where all that acts is tau."""
        step = self._step
        if step is None or self.held or self._step_tau is not self.tau:
            step = self.one_step()
            if step is None:
                return self.advance(1)
        failure = step.call(())
        return failure and self.finish_step(failure)

    def one_step(self) -> WholeCall | None:
        """A step in a call that takes nothing; None where more acts than tau."""
        if self._asked or self._by_call or self.script.signals or self.held:
            return None
        step = self._step
        if step is None or self._step_tau is not self.tau:
            stepper, rest = self.stepper, (self.still, self.tau, NO_RECORD, STEP, 1)
            stored = self.stored_call(STEP)
            step = stepper.one_step(self.tau) if stepper else stored.with_rest(rest)
            self._step, self._step_tau = step, self.tau
        return step

    def finish_step(self, failure: int) -> int:
        """Do a step otherwise that has failed so in a call of ``one_step``; a failure, or DONE."""
        if failure == DENSE_REQUIRED and self.stepper is not None:
            failure = self.stepper.take_over(self.still, self.tau, NO_RECORD)
        if not failure:
            return failure
        return self._try_otherwise(failure) if failure in TOO_LONG else self.advance(1)

    def slide(self, friction: dict[str, tuple[float, bool]]) -> None:
        """Have loop joints slide with friction in steps, until ``control.sliding`` is zero again.

        Args:
            friction: Coefficients by loop, and whether it may pull; others have none.
        """
        loops, count = self.encoded.loops, 0
        for index, name in enumerate(list(self.encoded.rows)[: len(loops)]):
            loops["friction"][index], loops["pulls"][index] = friction.get(name, (0.0, False))
            count += name in friction
        self.control[0]["sliding"] = count
        if self._step_slides != (count > 0):  # another kernel does it
            self._step, self._step_slides = None, count > 0

    def run_whole(self, targets: np.ndarray, forces: Array, record: Array, steps: int) -> int:
        """Advance by steps by the dense backend, which the other could not come to the end of."""
        self.handed_over += steps
        return self.stored_call(STEP).call((targets, forces, record, STEP, steps))

    def _prescribe_by_call(self) -> bool:
        """Whether the kernel asks for motions and forces stage by stage; its times are unknown."""
        if not (self._by_call or self.is_prescribed):
            return False
        scripted = self.is_prescribed_by_stage
        self.control[0]["scripted"] = self._by_call = scripted
        if scripted:
            self._now, self._pushed = self.still.copy(), np.zeros_like(self.tau)
        return scripted

    def stored_call(self, task: int) -> StoredCall:
        """The kernel for a task with the present integrator, on the arrays; compiled if need be."""
        if task != STEP:
            return self.stored(run)
        c = self.control[0]
        return self.stored(stepping_kernel(int(c["integrator"]), bool(c["sliding"])))

    def stored(self, kernel: Any) -> StoredCall:
        """A kernel of ``step`` on the arrays."""
        found = self._calls.get(kernel)
        if found is None:
            examples = self.still, self.tau, NO_RECORD, STEP, 0
            with announce_compilation(kernel):
                found = self._calls[kernel] = StoredCall(kernel, (self.arrays,), examples)
        return found

    @property
    def is_prescribed(self) -> bool:
        """Whether motions or forces are functions of time."""
        return bool(self.encoded.motions or self.script.signals)

    @property
    def is_prescribed_by_stage(self) -> bool:
        """Whether the kernel asks Python for them at each stage, whose time it finds on the way."""
        return self.is_prescribed and self.control[0]["integrator"] in (DOP8, RADAU)

    def finish_call(self, failure: int) -> int:
        """Pass on what a kernel has returned, unless a user's function raised meanwhile.

        Raises:
            ModelError: A force is not finite.
            Exception: Whatever a user's constraint or force raised.
        """
        if self._interruption is not None:
            error, self._interruption = self._interruption, None
            raise error
        self._has_lost |= failure == RATES_LOST
        if failure == NOT_FINITE and self.asked_forces:
            nq, nv = len(self.q), len(self.v)
            state = self.vectors[SEEN_Q, :nq], self.vectors[SEEN_V, :nv]
            self.asked_forces.require_finite(self._places, float(self.control[0]["t"]), *state)
        return failure

    def roll(self, done: int, steps: int, every: int, table: Array) -> tuple[int, int]:
        """Advance by many steps and keep one state in ``every``, as lines of the table.

        Args:
            done: Steps that were made before, whose lines are kept.
            steps: How many there shall be, with those.
            every: One state in so many is kept,
            table: as a line here.

        Returns:
            The failure that stopped it, with the state before that step, or DONE; and steps done.
        """
        failure = DONE
        while done < steps and not failure:
            left = table[done // every : steps // every]
            several = left[: MOST_STEPS // every]
            if len(several) and done % every == 0:
                failure = self.advance(len(several) * every, several)
                done += self.advanced
                continue
            # up to the next state that is kept, or the end
            failure = self.advance(min(every - done % every, steps - done, MOST_STEPS))
            done += self.advanced
            if not failure and done % every == 0 and len(left):
                self.put_record(left[0])
        return failure, done

    def advance(self, steps: int, record: Array = NO_RECORD) -> int:
        """Advance by many steps; one that is too long is tried again in finer ones.

        Close to a singular position that the mechanism does not quite reach the motion turns
        sharply; there a step may be too long for the correction to stay on its branch.

        Returns:
            The failure that stopped it, with the state before that step restored, or DONE;
            ``advanced`` says after how many.
        """
        every, done, failure = steps // len(record) if len(record) else 0, 0, DONE
        while done < steps and failure == DONE:
            # whole records only in one call; what a refined step interrupts goes one by one
            failure = self.run(STEP, steps - done, record[done // every :] if every else record)
            done += int(self.control[0]["done"])
            if failure == DONE:
                break
            failure = self._try_otherwise(failure)
            if failure:
                break
            done += 1
            while every and done % every and done < steps and failure == DONE:
                failure = self._try_otherwise(self.run(STEP, 1))
                done += failure == DONE
            if every and done and failure == DONE:
                self.put_record(record[done // every - 1])
        self.advanced = done
        return failure

    def _try_otherwise(self, failure: int) -> int:
        """Do a step again that failed, if another way may lead through it; a failure, or DONE.

        Where an error estimate sets the length of sub-steps, shorter ones have been tried. But
        next to a singular position an implicit method finds no stages, whatever their length, and
        the estimate may lead any method up to it, where rates are lost: equal parts pass it. Where
        they do not, the sub-steps may be as short as they will.
        """
        if failure not in TOO_LONG:
            return failure
        self._has_lost = failure == RATES_LOST
        if not self._has_lost:
            failure = self._by_other_ways(failure)
        return self._with_losses() if failure in TOO_LONG and self._has_lost else failure

    def _with_losses(self) -> int:
        """One step that shall keep its rates if shorter parts do, else lose them and tell it."""
        c, before, stepper = self.control[0], self.state.copy(), self.stepper
        dt, lost, done, failure = float(c["dt"]), float(c["lost"]), int(c["done"]), RATES_LOST
        kinetic = float(c["kinetic"])
        name, _ = weakest(self)
        try:
            if c["controlled"]:
                failure = self._explicitly(failure)
            else:
                self.stepper = None
                for parts in SHORTER:
                    c["dt"], c["factored"], c["kinetic"] = dt / parts, 0, kinetic
                    failure = self.run(STEP, parts)
                    c["dt"] = dt
                    if failure == DONE:
                        break
                    self.state[:] = before
            if failure != DONE:
                c["lost"] = lost
                self.stepper, c["losing"], c["factored"], c["kinetic"] = None, 1, 0, kinetic
                failure = self.run(STEP, 1)
                if failure in TOO_LONG:
                    c["lost"] = lost
                    failure = self._by_other_ways(failure)
        finally:  # a user's constraint may raise
            self.stepper, c["dt"] = stepper, dt
            c["losing"] = int(self.losses >= MOST_LOSSES)
            if failure != DONE:
                self.state[:], c["factored"], c["lost"], c["done"] = before, 0, lost, done
        gone = float(c["lost"]) - lost
        if failure == DONE and gone > 0.0:
            self.tell_loss(before, gone, name)
        return failure

    def tell_loss(self, before: Array, gone: float, name: str) -> None:
        """Count a step from a state (nq + nv + 1) that has lost energy [J], and tell the first."""
        self.losses += 1
        if self.losses == 1:
            v = before[len(self.q) : -1]
            had = 0.5 * v @ self.terms(before[: len(self.q)], v, float(before[-1])).M @ v
            warn_user(LOST.format(t=before[-1], had=had, gone=gone, name=name))

    def _by_other_ways(self, failure: int) -> int:
        """As ``_try_otherwise``, where rates are not lost or may be."""
        c = self.control[0]
        if not c["controlled"]:
            return self._refine(failure)
        found = failure
        if failure == CREEPING or c["integrator"] == RADAU:
            found = self._explicitly(failure)
        if found in TOO_LONG and c["integrator"] == RADAU:
            found = self._to_the_end(found)
        if found == CREEPING:
            found = self._creep()
        if found in (CREEPING, NOT_RESOLVED, LEAPT) and self._is_all_but_still():
            found = self._in_equal_parts(found)
        return found

    def _to_the_end(self, whole: int) -> int:
        """One step by DOP853 under error control, which comes to the end of a way in few sub-steps.

        Where rates grow without bounds, as where a drive goes past what loops can reach, sub-steps
        shrink with the time that is left, the fewer the higher the order: 67 for 1500 of Radau.

        Args:
            whole: How it failed by Radau, which came to ``control.t``.

        Returns:
            DONE, NOT_RESOLVED where it came no less far, or ``whole``.
        """
        c, before, stepper = self.control[0], self.state.copy(), self.stepper
        told = {name: c[name] for name in (*TOLD, "t", "kinetic", "clear", "done")}
        failure, lost = whole, float(c["lost"])
        try:
            failure = self._control_error(self.forces(0).copy())
        finally:  # a user's constraint may raise
            self.stepper = stepper
            if failure != DONE:
                self.state[:], c["factored"], c["lost"] = before, 0, lost
        if failure == DONE:
            c["clear"], c["next_dt"], c["reach"] = max(told["clear"], c["clear"]), 0.0, 0.0
            return DONE
        if failure == NOT_RESOLVED and float(c["t"]) >= float(told["t"]):
            c["done"], c["kinetic"] = told["done"], told["kinetic"]
            return NOT_RESOLVED
        for name, value in told.items():
            c[name] = value
        return whole if failure in TOO_LONG else failure

    def _is_all_but_still(self) -> bool:
        """Whether all motion may be what loops let a chain at its reach sag by, and gaps hide."""
        c, M = self.control[0], self.terms(self.q, self.v, self.t).M
        g = float(np.linalg.norm(c["gravity"]))
        mass = (1e6 * float(c["guard_floor"]) / float(c["length"])) ** 2
        kinetic = 0.5 * float(self.v @ M @ self.v)
        return weakest(self)[1] < SAG and kinetic <= SAG * mass * g * float(c["length"])

    def _in_equal_parts(self, whole: int) -> int:
        """One step by methods of fixed steps, where nothing moves that error control could resolve.

        At a chain's reach a gap that counts as closed hides bends of its root. Rates of that size
        turn around within any step, and no two lengths of steps agree on them.

        Args:
            whole: How it failed under error control.

        Returns:
            DONE, or ``whole``.
        """
        c, told = self.control[0], [self.control[0][name] for name in TOLD]
        kept = {name: c[name] for name in ("integrator", "controlled", "done")}
        failure = whole
        try:
            c["integrator"], c["controlled"], c["factored"] = VERLET, 0, 0
            failure = self.run(STEP, 1)
            if failure in TOO_LONG:
                failure = self._refine(failure)
        finally:  # a user's constraint may raise
            for name, value in kept.items():
                c[name] = value
        if failure == DONE:
            c["next_dt"] = c["reach"] = 0.0
            return DONE
        for name, value in zip(TOLD, told, strict=True):
            c[name] = value
        return whole if failure in TOO_LONG else failure

    def _creep(self) -> int:
        """One step whose sub-steps under error control may be as short as they will."""
        c, done = self.control[0], int(self.control[0]["done"])
        c["controlled"], c["factored"] = ALWAYS, 0
        try:
            failure = self.run(STEP, 1)
        finally:  # a user's constraint may raise
            c["controlled"] = UNLESS_CREEPING
        if failure != DONE:
            c["done"] = done  # steps before this one, as failures tell
        return failure

    def _explicitly(self, whole: int) -> int:
        """One step in equal parts that was not done under error control, by explicit methods.

        So that none ends just where it is singular, parts are of fixed length. Two ways have to
        agree, since rates may be lost there without any other sign. How far from singular
        positions the mechanism has been stays known.

        Args:
            whole: How it failed.

        Returns:
            DONE, or how it failed.
        """
        c, before, stepper = self.control[0], self.state.copy(), self.stepper
        kept = {name: c[name] for name in ("integrator", "controlled", "dt")}
        names = *TOLD, "t", "next_dt", "kinetic", "clear", "done", "taken", "rejected"
        told = {name: c[name] for name in names}
        failure, led_to, self.stepper, lost = whole, list[Array](), None, float(c["lost"])
        try:
            for method, parts in EXPLICITLY:
                self.state[:], c["factored"], c["kinetic"] = before, 0, 0.0
                c["integrator"], c["controlled"], c["dt"] = method, 0, kept["dt"] / parts
                c["lost"] = lost
                failure = self.run(STEP, parts)
                if failure == DONE and not any(self.agrees(v, FINELY) for v in led_to):
                    failure = whole
                    led_to.append(self.v.copy())
                if failure not in TOO_LONG:
                    break
        finally:  # a user's constraint may raise
            self.stepper = stepper
            for name, value in kept.items():
                c[name] = value
            if failure != DONE:
                self.state[:], c["factored"] = before, 0
        if failure == DONE:
            c["clear"], c["next_dt"], c["reach"] = max(told["clear"], c["clear"]), 0.0, 0.0
            return DONE
        c["lost"] = lost
        for name, value in told.items():
            c[name] = value
        return whole if failure in TOO_LONG else failure

    def _refine(self, whole: int) -> int:
        """One step in as many parts as it needs, of the whole, which names what is wrong.

        The state before the whole step is restored after any failure; a part restores its own.

        Its own integrator comes first, then ``OTHERS``; where links are eliminated, joint
        coordinates after them, which tell strong rows apart, too; error control is last.

        Args:
            whole: How the whole step failed.

        Returns:
            DONE, or how the coarsest parts failed, which says more than the finest; LEFT_OPEN comes
            before others, since it asks for another decision about redundancy.
        """
        c, failure, stepper = self.control[0], whole, self.stepper
        dt, before, kinetic = float(c["dt"]), self.state.copy(), float(c["kinetic"])
        modified, carried = c["integrator"] >= MODIFIED_EULER, self.vectors[UNCORRECTED:].copy()
        known = {name: c[name] for name in ("uncorrected", "uncorrected_before")}
        own, v, lost = int(c["integrator"]), self.v, float(c["lost"])
        found, led_to = (whole, [c[name] for name in TOLD]), np.full(len(v), np.inf)
        by_links = stepper if stepper is not None and stepper.is_whole else None
        others = () if modified else OTHERS
        if c["sliding"]:  # Euler's method has no friction of this kind
            others = tuple(way for way in OTHERS if way[0] != EULER)
        ways = [(by_links, *way) for way in (*((own, parts) for parts in REFINEMENTS), *others)]
        if by_links is not None:
            ways += [(None, own, parts) for parts in (1, REFINEMENTS[0])]
        elif stepper is not None:
            ways.insert(0, (None, own, 1))
        pushed = self.forces(0).copy()
        try:
            for self.stepper, method, parts in ways:
                self.state[:], c["factored"], c["kinetic"] = before, 0, kinetic
                self.vectors[UNCORRECTED:] = carried
                for name, place in known.items():
                    c[name] = place
                c["dt"], c["integrator"], c["excess"] = dt / parts, method, EXCESS
                c["lost"] = lost
                failure = self.run(STEP, parts)
                c["dt"], c["integrator"] = dt, own
                last = method != own or parts == REFINEMENTS[-1]
                c["excess"] = MOST_EXCESS if last else EXCESS
                if failure == DONE:
                    failure, led_to = self._believe(before, pushed, led_to), v.copy()
                if failure not in TOO_LONG:
                    break
                if parts == 1 or (failure == LEFT_OPEN and found[0] != LEFT_OPEN):
                    found = failure, [c[name] for name in TOLD]
                if found[0] == LEFT_OPEN and last and self.stepper is None:
                    break
            if failure in TOO_LONG and found[0] != LEFT_OPEN and not modified:
                self.state[:], c["kinetic"], c["lost"] = before, kinetic, lost
                failure = self._control_error(pushed)
        finally:  # a user's constraint may raise
            self.stepper = stepper
            c["dt"], c["guarded"], c["excess"], c["integrator"] = dt, 1, EXCESS, own
            if failure != DONE:
                self.state[:], c["factored"] = before, 0
        c["kinetic"] = kinetic if failure else c["kinetic_after"]
        if failure in TOO_LONG:
            failure = found[0]
            for name, value in zip(TOLD, found[1], strict=True):
                c[name] = value
        return failure

    def _control_error(self, pushed: Array) -> int:
        """One step by DOP853 under error control, in joint coordinates; a failure, or DONE.

        ``pushed`` are forces (1, nv) on the rates at its start. The state is left where it led.
        """
        c, before, kinetic = self.control[0], self.state.copy(), float(self.control[0]["kinetic"])
        kept = {name: c[name] for name in ("integrator", "controlled", "rtol", "atol")}
        failure, led_to, self.stepper = NOT_RESOLVED, np.full(len(self.v), np.inf), None
        lost = float(c["lost"])
        for tolerance in CONTROLLED:
            self.state[:], c["factored"], c["kinetic"] = before, 0, kinetic
            c["integrator"], c["controlled"], c["lost"] = DOP8, ALWAYS, lost
            c["rtol"] = c["atol"] = tolerance
            try:
                failure = self.run(STEP, 1)
            finally:  # a user's constraint may raise
                for name, value in kept.items():
                    c[name] = value
            if failure != DONE:
                break
            failure, led_to = self._believe(before, pushed, led_to), self.v.copy()
            if failure == DONE:
                break
        return failure

    def _believe(self, before: Array, pushed: Array, others: Array) -> int:
        """LEAPT where a step that was done must not have led here from a state; or DONE.

        Args:
            before: (nq + nv + 1,)
            pushed: Forces (1, nv) on the rates that acted then.
            others: Rates (nv,) that it led to with parts of another length.
        """
        agreed, failure = self.agrees(others), self.judge(before, pushed)
        return DONE if failure == LEAPT and agreed and self.control[0]["driven"] else failure

    def agrees(self, others: Array, share: float = AGREED) -> bool:
        """Whether rates (nv,) that parts of another length led to are those at hand."""
        over = self.vectors[ONE_OVER_UNITS, : len(others)]
        difference = float(np.linalg.norm(over * (self.v - others)))
        return difference <= share * float(np.linalg.norm(over * self.v))

    def judge(self, before: Array, pushed: Array) -> int:
        """LEAPT where forces cannot have led from a state (nq + nv + 1) here in a step; or DONE.

        ``pushed`` are forces (1, nv) on the rates that acted then.
        """
        nq, nv, task = len(self.q), len(self.v), JUDGE
        self.vectors[START_Q, :nq], self.vectors[START_V, :nv] = before[:nq], before[nq : nq + nv]
        forces, c = np.vstack([pushed, self.forces(0)]), self.control[0]
        kept = {name: c[name] for name in ("rank", "filter_rank", "margin", "gap", "guarded")}
        failure = self._evaluate(self.stepper, task, self.targets_now(), forces)
        for name, value in kept.items():
            c[name] = value
        return failure

    def put_record(self, line: Array) -> None:
        """Keep a state as the kernel does."""
        c = self.control[0]
        line[:] = [*self.state, c["rank"], c["margin"], c["correction_passes"]]

    def acceleration(self) -> Array:
        """Constrained acceleration (nv,) at the state."""
        self.run(ACCELERATE)
        return self.vectors[ACCELERATION, : len(self.v)].copy()

    def targets(self, steps: int) -> np.ndarray:
        """Prescribed motions at every time that the kernel will ask for."""
        return self.encoded.targets(self._stage_times(steps)) if steps else self.targets_now()

    def forces(self, steps: int, tau: Array | None = None) -> Array:
        """Forces (1, steps or times, nv) on the rates, in as many lines as the kernel asks for.

        Args:
            steps: From now on.
            tau: (steps, nv) in each of them, in place of those that are held through all.
        """
        forces = self.tau if tau is None else tau
        if not self.script.signals and self.held is None:
            return forces
        c = self.control[0]
        lines = FORCES_PER_STEP[int(c["integrator"])] if steps else 1
        if tau is not None:
            forces = np.repeat(tau, lines, axis=0)
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
        each = TARGETS_PER_STEP[int(c["integrator"])]
        numbers = np.arange(each * steps + 1, dtype=np.float64)
        return self.t + numbers * (float(c["dt"]) / each)
