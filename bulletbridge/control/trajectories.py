"""Trajectories of a system, and what parts of them change by: what plans and gradients stand on."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.engine.step_adjoint import HeldRates, StepAdjoint
from bulletbridge.errors import ModelError, UnsupportedError
from bulletbridge.inequalities.contact_derivatives_kernel import (
    COUNTS,
    DIFFERENTIATED,
    MADE,
    StepsAsked,
)
from bulletbridge.inequalities.joint_slopes import list_held
from bulletbridge.inequalities.stepper import InequalityStepper
from bulletbridge.inequalities.steps_kernel import TracedForces
from bulletbridge.mechanism.displacement import configuration_difference
from bulletbridge.numerics.records import Array, Ints, Mask
from bulletbridge.system.derivatives import step_adjoint_of, step_differentiator_of
from bulletbridge.system.differences import Differences
from bulletbridge.system.linearisation import (
    ALIKE,
    active_set,
    are_plain,
    changes,
    require_plain,
)
from bulletbridge.system.saved import SavedState
from bulletbridge.system.system import System
from bulletbridge.system.tangents import Point, Tangents, lengths_of

WHEN = re.compile(r" from t = \S+ s")
"""What tells one reason that derivatives are not known from the same one in another step."""
TAKEN = re.compile(r"; (?:use|take) central differences(?: of step\(\))?(?:; it has no smoothing)?")
"""What such a reason advises that is done here already."""


REMEMBERS = (
    "the step goes by what those before have left, which its derivative does not know, as an energy"
    " budget (energy_budget=False leaves it)"
)
MEANS = "; others act in steps from states nearby, and it is a mean of both sides"
WHOLE = 2**22
"""Numbers, 32 MB, that a trajectory is kept in as a whole on the way there."""


class PartDerivatives(NamedTuple):
    """What some steps under one force lead to, as a linear map in tangent coordinates.

    Attributes:
        changes: (2 nv, 3 nv) by the state before them, right for tangents, and by the force.
        why: Why differences were taken; nothing where the equations of the steps were.
        at_rest: Whether contacts rest, as of ``StepDerivatives``.
    """

    changes: Array
    why: str
    at_rest: bool = False

    @property
    def A(self) -> Array:
        """(2 nv, 2 nv) by the state before the steps."""
        return self.changes[:, : len(self.changes)]

    @property
    def B(self) -> Array:
        """(2 nv, nv) by the force."""
        return self.changes[:, len(self.changes) :]


class KnownSteps(NamedTuple):
    """Steps that were made and differentiated.

    Attributes:
        states: (n + 1, nq + nv + 1) that they begin in and lead to.
        changes: (n, 2 nv, 3 nv) of each, as of ``PartDerivatives``.
        whys: Why differences were taken, by the numbers of these steps.
        at_rest: (n,) whether contacts rest in each, likewise.
    """

    states: Array
    changes: Array
    whys: dict[int, str]
    at_rest: Ints


def _why(error: UnsupportedError) -> str:
    """Why differences are taken, said of no one step and without advising them."""
    return TAKEN.sub("", WHEN.sub("", str(error)))


class Trajectories:
    """Trajectories of a system by copies of it; the system itself is not touched.

    Args:
        system: Whose state is the start.
        smoothing: Of contacts, as of ``System.step_derivatives`` [J]; zero for ideal ones.

    Attributes:
        near: The copy that derivatives are asked of.
        mechanism: Of the system.
        tau: (nv,) forces on the rates that it has at the start.
        lengths: (nv,) one for angles, the mechanism's length for ways.
        length: That of the mechanism [m].
    """

    def __init__(self, system: System, smoothing: float = 0.0) -> None:
        self._smoothing = smoothing
        system.acceleration()  # closes what is open by round-off, as the first step does
        self.near, self._system = system.differentiable(), system
        self.tau = np.array(system.tau)
        self._own: System | None = None
        self._start: SavedState | None = None
        self._begun: tuple[tuple[Array, Array, float], Mapping[str, float]] | None = None
        self._first = self.near.snapshot()
        self.mechanism, self.nv, self.dt = system.mechanism, system.mechanism.nv, system.dt
        self.lengths = lengths_of(self.near.dynamics.solver)
        self.length = float(system.encoded.length)
        try:
            system.compiled()
            self._in_python = False
        except ModelError:
            self._in_python = True

    @property
    def own(self) -> System:
        """The copy that runs, by the same steps as the system; it is made when it is needed."""
        if self._own is None:
            (self._own,) = self._system.lend()
            if self._begun is not None:
                self._own.start_from(*self._begun)
            self._start = self._own.save(world=False)
        return self._own

    def end(self) -> None:
        """Give back the copy that runs; Bullet, if it was shown other states, sees the system's."""
        if self._own is not None:
            self._system.take_home([self._own])
            self._own = self._start = None
        if self._system.finds_contacts:
            self._system.write()

    @property
    def start(self) -> SavedState:
        """Of the trajectories."""
        found = self.own and self._start
        assert found is not None
        return found

    def here(self, tau: Array) -> Point:
        """Where the copy that runs is, and the forces that act there."""
        return Point(np.array(self.own.q), np.array(self.own.v), self.own.t, np.array(tau))

    def go_back(self, state: SavedState) -> None:
        """Have the copy that runs go on from a state."""
        self.own.restore(state, write=False)

    def begin(self, q: Array, v: Array, t: float, parameters: Mapping[str, float]) -> None:
        """Take another start, closed and filtered, for what has these parameters.

        Raises:
            ModelError: A number is not possible.
            AssemblyError: The loops are open there.
        """
        self._begun = (q, v, t), parameters
        self.near.start_from(*self._begun)
        self._first = self.near.snapshot()
        if self._own is not None:
            self._own.start_from(*self._begun)
            self._start = self._own.save(world=False)

    def run(self, tau: Array) -> list[Point]:
        """Advance by steps under forces (steps, nv).

        Returns:
            The states that they begin in, with their forces, and where they end, with the last.

        Raises:
            StepError: A step could not be finished.
        """
        states, last = self.states(tau), len(tau) - 1
        return [self.point(state, tau[min(k, last)]) for k, state in enumerate(states)]

    def states(self, tau: Array) -> Array:
        """Advance by steps under forces (steps, nv): states (steps + 1, nq + nv + 1), as q, v, t.

        Raises:
            StepError: A step could not be finished.
        """
        if self._smoothing:
            return self._smooth_states(tau)
        steps, size = len(tau), len(self.own.q) + self.nv + 4
        table = np.zeros((steps + 1, size))
        table[0, :-3] = np.concatenate([self.own.q, self.own.v, [self.own.t]])
        if self._in_python:
            for k, forces in enumerate(tau, 1):
                self.own.roll(forces, (1, 1), table[k:])
        else:
            self.own.roll(tau, (steps, 1), table[1:])
        return np.ascontiguousarray(table[:, :-3])

    def _smooth_states(self, tau: Array) -> Array:
        """``states`` of smooth contacts."""
        state = np.concatenate([self.own.q, self.own.v, [self.own.t]])
        states = [state]
        for forces in tau:
            self.put_near(self.point(state, forces))
            q, v = self.near.smooth_step(self._smoothing)
            state = np.concatenate([q, v, [state[-1] + self.dt]])
            states.append(state)
        self.own.take_back(state)
        return np.array(states)

    def point(self, state: Array, tau: Array) -> Point:
        """A state (nq + nv + 1,) with the forces that act there."""
        nq = len(state) - self.nv - 1
        return Point(state[:nq], state[nq:-1], float(state[-1]), tau)

    def put_near(self, at: Point) -> None:
        """Take the copy for derivatives to a state of the trajectory, as it is."""
        self.near.take_back(np.concatenate([at.q, at.v, [at.t]]))
        self.near.tau[:] = at.tau

    def tangents(self, at: Point) -> Tangents:
        """The tangent space of the closed states at one of them.

        Raises:
            ModelError: The mechanism is singular there.
        """
        self.put_near(at)
        return Differences(self.near, at).tangents()

    def derivatives(self, at: Point, steps: int, rates: Ints) -> PartDerivatives:
        """Of so many steps under the forces at a state, by their equations where these are known.

        Args:
            at: Where they begin.
            steps: How many.
            rates: (m,) of the forces by which derivatives are wanted; the others may be left zero.

        Raises:
            StepError: A step from there, or from beside it, could not be finished.
            UnsupportedError: Smooth contacts are not known there.
        """
        memory = self.near.save(world=False) if self.near.has_inequalities else None
        try:
            return self._by_equations(at, steps)
        except UnsupportedError as error:
            if self._smoothing:  # differences would be those of other steps
                raise
            return self._by_differences(at, (steps, memory), rates, _why(error))

    def differentiated(self, tau: Array) -> KnownSteps | None:
        """Steps with contacts from the start on; None for other steps, or too many.

        They are made once, and differentiated where they are.

        Args:
            tau: (n, nv)

        Raises:
            StepError: A step, or one from beside its start, could not be finished.
        """
        near, all_rates = self.near, np.arange(self.nv)
        others = self._in_python or self._smoothing or not near.finds_contacts
        if others or len(tau) * 6 * self.nv**2 > WHOLE:
            return None
        near.restore(self.start, write=False)
        n, whys, counts = len(tau), dict[int, str](), np.zeros(COUNTS, np.int64)
        states = np.zeros((n + 1, len(self._first)))
        forces, changes = np.ascontiguousarray(tau), np.zeros((n, 2 * self.nv, 3 * self.nv))
        states[0], at_rest = self.near.snapshot(), np.zeros(n, np.int64)
        asked = StepsAsked(forces, states, changes, at_rest, counts)
        while counts[DIFFERENTIATED] < n:
            memory, first = near.save(world=False), int(counts[DIFFERENTIATED])
            try:
                near.differentiate_steps(asked)
            except UnsupportedError as error:
                k, after = int(counts[DIFFERENTIATED]), near.save(world=False)
                near.restore(memory, write=False)
                if k > first:  # what the step went by is found once more
                    near.roll(tau[first:k], (k - first, k - first), self._line())
                begun = near.save(world=False)
                at = self.point(states[k], tau[k])
                found = self._by_differences(at, (1, begun), all_rates, _why(error))
                near.restore(after, write=False)
                states[k + 1], changes[k], whys[k] = near.snapshot(), found.changes, found.why
                counts[DIFFERENTIATED], counts[MADE] = k + 1, 0
        return KnownSteps(states, changes, whys, at_rest)

    def of_each(self, states: Array, tau: Array) -> list[PartDerivatives]:
        """Of each of the steps that lead from a state to the next, by all forces.

        Args:
            states: (n + 1, nq + nv + 1)
            tau: (n, nv)
        """
        found, n = list[PartDerivatives](), len(tau)
        rates = np.arange(self.nv)
        while len(found) < n:
            k = len(found)
            at = self.point(states[k], tau[k])
            plain = self._plain(at, tau[k:], states[k + 1 :, :-1])
            found += [PartDerivatives(changes, "") for changes in plain]
            k = len(found)
            if k < n:  # at its equations, which say why there are none
                one = self.derivatives(self.point(states[k], tau[k]), 1, rates)
                if not one.why and not self._smoothing and not self._is_near(states[k + 1]):
                    one = one._replace(why=REMEMBERS)
                found.append(one)
        return found

    def _is_near(self, state: Array) -> bool:
        """Whether the copy for derivatives has been led to a state."""
        states = (one[None, :-1] for one in (state, self.near.snapshot()))
        return bool(are_plain(self.mechanism, *states).all())

    def record(self, states: Array, tau: Array) -> tuple[StepAdjoint, Mask] | None:
        """Have steps kept that gradients can be taken back through, and which ones these are (n,).

        None where there are none.

        Args:
            states: (n + 1, nq + nv + 1) that they begin in and lead to.
            tau: (n, nv)
        """
        adjoint, joints = self.adjoint(), self._steps_of_joints()
        if joints is not None:
            return self._record_traced(joints, states, tau)
        if adjoint is None:
            return None
        self.put_near(self.point(states[0], tau[0]))
        plain, led = adjoint.record(states, tau, ALIKE)
        plain &= are_plain(self.near.mechanism, states[1:, :-1], led[:, :-1])
        adjoint.refuse(~plain)
        return adjoint, plain

    def _record_traced(
        self, joints: tuple[StepAdjoint, InequalityStepper], states: Array, tau: Array
    ) -> tuple[StepAdjoint, Mask]:
        """``record`` of steps with motors, friction and limits of joints."""
        adjoint, stepper = joints
        trace, k, made = stepper.trace(tau, states.copy()), 0, np.full(len(tau), True)
        while k < len(tau):
            trace.states[k] = states[k]
            self.put_near(self.point(states[k], np.zeros(self.nv)))
            done = stepper.trace_steps(tau, trace, k)
            k += done
            if k < len(tau):  # one that takes more than one call
                made[k], k = False, k + 1
        trace.states[:] = states
        self.put_near(self.point(states[0], np.zeros(self.nv)))
        plain = record_traced(adjoint, stepper, trace, tau) & made
        adjoint.refuse(~plain)
        return adjoint, plain

    def _traced_ahead(
        self, joints: tuple[StepAdjoint, InequalityStepper], tau: Array
    ) -> tuple[StepAdjoint, Array, Mask] | None:
        """``ahead`` of steps with motors, friction and limits of joints."""
        adjoint, stepper = joints
        states = np.zeros((len(tau) + 1, len(self._first)))
        states[0] = self._first
        start, trace = self.point(states[0], np.zeros(self.nv)), stepper.trace(tau, states)
        self.put_near(start)
        if stepper.trace_steps(tau, trace, 0) < len(tau):
            return None
        self.put_near(start)
        return adjoint, states, record_traced(adjoint, stepper, trace, tau)

    def ahead(self, tau: Array) -> tuple[StepAdjoint, Array, Mask] | None:
        """The states (n + 1, nq + nv + 1) from the start on, and which steps are recorded (n,).

        None where steps are made otherwise, or there are too many; or where some are not plain, but
        for what motors, friction and limits of joints do.

        Args:
            tau: (n, nv)
        """
        joints = self._steps_of_joints()
        if joints is not None and len(tau) <= joints[0].room(WHOLE):
            return self._traced_ahead(joints, tau)
        adjoint, near = self.adjoint(), self.near
        if adjoint is None or near.compiled()[0].stepper is not None:
            return None
        if len(tau) > adjoint.room(WHOLE):
            return None
        states = np.zeros((len(tau) + 1, len(self._first)))
        states[0] = self._first
        self.put_near(self.point(states[0], tau[0]))
        plain, led = adjoint.record(states, tau, np.inf)
        states[1:] = led
        if not plain.all() or not are_plain(near.mechanism, states[1:, :-1], led[:, :-1]).all():
            return None
        return adjoint, states, plain

    def adjoint(self) -> StepAdjoint | None:
        """What takes gradients back through steps in whose derivatives nothing else acts."""
        if self._in_python or self.near.has_inequalities:
            return None
        try:
            return step_adjoint_of(self.near.compiled()[0])
        except UnsupportedError:
            return None

    def _steps_of_joints(self) -> tuple[StepAdjoint, InequalityStepper] | None:
        """The same where motors, friction and limits of joints act, with what makes these steps."""
        if self._in_python or self._smoothing or not self.near.has_inequalities:
            return None
        stepper = self.near.steps_of_joints
        if stepper is None:
            return None
        try:
            return step_adjoint_of(stepper.solver, by_euler=True), stepper
        except UnsupportedError:
            return None

    def _plain(self, at: Point, tau: Array, table: Array) -> Array:
        """Changes (m, 2 nv, 3 nv) of the first plain steps to states of a table (n, nq + nv)."""
        near, none = self.near, np.zeros((0, 2 * self.nv, 3 * self.nv))
        if self._in_python or near.has_inequalities:
            return none
        self.put_near(at)
        try:
            changes, ends = step_differentiator_of(near.compiled()[0]).steps(tau)
        except UnsupportedError:
            return none
        there = table[: len(ends)]
        plain = are_plain(near.mechanism, there, ends[:, :-1])
        return changes[: len(there) if plain.all() else int(np.argmin(plain))]

    def _by_equations(self, at: Point, steps: int) -> PartDerivatives:
        near, nv = self.near, self.nv
        changes, at_rest = np.eye(2 * nv, 3 * nv), False
        self.put_near(at)
        for _ in range(steps):
            if self._smoothing:  # of which the copy makes none
                found = near.step_derivatives(self._smoothing)
                at = Point(found.q, found.v, at.t + self.dt, at.tau)
                self.put_near(at)
            else:
                found = near.step_with_derivatives()
                if not near.has_inequalities:  # the derivatives know them
                    require_plain(near.dynamics.solver, found)
            changes, at_rest = found.A @ changes, at_rest or len(found.at_rest) > 0
            changes[:, 2 * nv :] += found.B
        return PartDerivatives(changes, "", at_rest)

    def _line(self) -> Array:
        """Room for one state that is kept."""
        return np.zeros((1, len(self._first) + 3))

    def _by_differences(
        self, at: Point, made: tuple[int, SavedState | None], rates: Ints, why: str
    ) -> PartDerivatives:
        """Of so many steps, which go by what those before have left."""
        near, (steps, memory), line = self.near, made, self._line()
        differences, others = Differences(near, at, memory), set[str]()
        differences.put()
        tangents = differences.tangents()

        def end() -> Array:
            near.roll(np.array(near.tau), (steps, steps), line)
            return np.concatenate([near.q, near.v])

        differences.put()
        middle, nq = end(), len(at.q)
        active = active_set(near)

        def see() -> Array:
            there = end()
            others.update(changes(active, active_set(near)))
            away = configuration_difference(near.mechanism, there[:nq], middle[:nq])
            return np.concatenate([away, there[nq:] - middle[nq:]])

        B = np.zeros((2 * self.nv, self.nv))
        A = differences.by_state(tangents, see).values
        B[:, rates] = differences.by_forces(tangents, see, rates.tolist()).values
        return PartDerivatives(np.hstack([A, B]), f"{why}{MEANS}" if others else why)


def record_traced(
    adjoint: StepAdjoint, stepper: InequalityStepper, trace: TracedForces, tau: Array
) -> Mask:
    """Have steps recorded that were traced; which of them gradients can be taken back through (n,).

    They are of motors, friction and limits of joints, made in one call, which keeps what each of
    these pushes by. Which rates they hold is found for all steps at once; doubtful steps are left
    to ``bounded_derivatives``.

    Args:
        adjoint: Which records.
        stepper: That made them.
        trace: What was told of them; it begins in the state of the solver.
        tau: (n, nv) forces on the rates besides.
    """
    solver, (n, nv), states = stepper.solver, tau.shape, trace.states
    dt, m = float(solver.control[0]["dt"]), len(trace.drives) + len(trace.joint_limits)
    counts, axes = np.zeros(n, np.int64), np.zeros((n, m), np.int64)
    slopes, compliance, least, rates = np.zeros((4, n, m))
    held = HeldRates(np.zeros((n, nv)), counts, axes, slopes, compliance, least)
    known = np.full(n, True)
    with announce_compilation(list_held):
        list_held(trace, solver.axes, dt, held, rates, known)
    plain, _ = adjoint.record(states, tau, ALIKE, held)
    predicted = states[:-1, -nv - 1 : -1] + dt * adjoint.accelerations(n)
    size = np.maximum(1.0, np.abs(predicted).max(axis=1, initial=0.0))
    off = np.abs(np.take_along_axis(predicted, axes, axis=1) - rates)
    counted = np.arange(m) < counts[:, None]
    plain &= known & ~(counted & (off > ALIKE * size[:, None])).any(axis=1)
    adjoint.refuse(~plain)
    return plain
