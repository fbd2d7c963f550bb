"""Which stepper advances a system: one table, looked up when what acts has changed; its steps.

Below it, the linear algebra of compiled steps is chosen when rows are decided: ``engine.choose``.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from bulletbridge.engine.failures import raise_failure
from bulletbridge.engine.records import AT_LIMIT, DONE
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import ModelError, StepError
from bulletbridge.formulations.adaptive import Adaptive
from bulletbridge.formulations.python_stepper import PythonStep
from bulletbridge.numerics.records import Array
from bulletbridge.system.active_constraints import ActiveConstraints
from bulletbridge.system.inequality_steps import InequalitySteps
from bulletbridge.system.integration import FrictionInSteps, Integration
from bulletbridge.system.options import WITH_INEQUALITIES, Status

NEED_EULER = (
    "motors, limits, joint friction, contacts and force limits of constraints are part of steps of"
    " the projector with the integrator semi_implicit_euler; leave integrator, formulation,"
    " weighting and velocity_filter out"
)


class Stepper(Protocol):
    """Steps of a system, from the state of its active constraints on."""

    tries_others: bool  # whether a step that is too long is tried by other integrators too

    def step(self) -> int:
        """Advance by one step; the failure that stopped it, with the state before it, or DONE."""
        ...

    def roll(self, done: int, steps: int, every: int, table: Array) -> tuple[int, int]:
        """Advance by many steps in few calls, as far as these get: by none at all, maybe.

        Args:
            done: Steps that were made before.
            steps: How many there shall be, with those.
            every: One state in so many is kept,
            table: as a line here.

        Returns:
            The failure that stopped it, with the state before that step, or DONE, also where the
            next step has to be made alone; and steps done.
        """
        ...


IN_ANOTHER_CALL = (
    "another thread, or a function that it calls, makes steps of this system at the moment;"
    " give each its own, as copy.deepcopy(system) is, or let them take turns"
)


class CompiledSteps:
    """Steps of the kernels, for which the active constraints have a solver."""

    tries_others = True

    def __init__(self, active: ActiveConstraints) -> None:
        self._active = active

    def step(self) -> int:
        """Advance by one step."""
        return self._active.solver.step()

    def roll(self, done: int, steps: int, every: int, table: Array) -> tuple[int, int]:
        """Advance in one call."""
        return self._active.solver.roll(done, steps, every, table)


class SlidingSteps:
    """Compiled steps with friction of loop joints that slide; one that fails is tried in Python.

    Args:
        active: Whose solver steps.
        friction: What slides, by the name of its loop joint; None while that takes Python.
        python: Steps in Python, which tell why there is no friction, too.
    """

    tries_others = False

    def __init__(
        self, active: ActiveConstraints, friction: FrictionInSteps, python: "PythonSteps"
    ) -> None:
        self._active, self._friction, self._python = active, friction, python

    def step(self) -> int:
        """Advance by one step."""
        with self._sliding() as solver:
            if solver is not None and not solver.step():
                return DONE
        return self._python.step()

    def roll(self, done: int, steps: int, every: int, table: Array) -> tuple[int, int]:
        """Advance in one call, up to a step that is tried in Python."""
        with self._sliding() as solver:
            if solver is not None:
                _, done = solver.roll(done, steps, every, table)
        return DONE, done

    @contextmanager
    def _sliding(self) -> Generator[Solver | None]:
        """The solver with friction, while it steps: others ask it for accelerations without."""
        solver, friction = self._active.solver, self._friction()
        if friction is None:
            yield None
            return
        solver.slide(friction)
        try:
            yield solver
        finally:
            solver.control[0]["sliding"] = 0


class WatchedSteps:
    """Compiled steps up to a joint limit; steps with inequalities where one would lead beyond it.

    Args:
        active: Whose solver watches the limits.
        limited: Steps in which limits act.
    """

    tries_others = True

    def __init__(self, active: ActiveConstraints, limited: InequalitySteps) -> None:
        self._active, self._limited = active, limited

    def step(self) -> int:
        """Advance by one step."""
        limited = self._limited
        if limited.latest is not None:  # a limit was met before
            watched = limited.step_watched()
            if watched is not None:
                return watched
            if limited.are_at_limit:
                return limited.step()
        failure = self._active.solver.step()
        return limited.step() if failure == AT_LIMIT else failure

    def roll(self, done: int, steps: int, every: int, table: Array) -> tuple[int, int]:
        """Advance by calls for as long as limits push, and for as long as none does."""
        solver = self._active.solver
        while done < steps:
            before = done
            if self._limited.are_at_limit:
                failure, done = self._limited.roll(done, steps, every, table, while_pushed=True)
            else:
                failure, done = solver.roll(done, steps, every, table)
            if failure == AT_LIMIT:
                return DONE, done  # limits act in the next step
            if failure or done == before:
                return failure, done
        return DONE, done


class PythonSteps:
    """Steps of a formulation and an integrator in Python."""

    tries_others = False

    def __init__(self, active: ActiveConstraints, python: Adaptive | PythonStep) -> None:
        self._active, self._python = active, python

    def step(self) -> int:
        """Advance by one step."""
        solver = self._active.solver
        return self._python.step(solver, solver.control["dt"].item())

    def roll(self, done: int, steps: int, every: int, table: Array) -> tuple[int, int]:
        """Make none of the steps: in Python they are made one by one, by ``step``."""
        return DONE, done


class Stepping:
    """Steps by the stepper for what acts, which is chosen again once something else does.

    Args:
        active: The constraints and the state that moves.
        inequalities: Motors, limits, contacts and force limits.
        integration: The integrator and the formulation that were asked for.

    Attributes:
        stepper: The one for what acts; None where it is to be chosen.

    Raises:
        ModelError: Something acts that integrator or formulation do not have.
    """

    def __init__(
        self, active: ActiveConstraints, inequalities: InequalitySteps, integration: Integration
    ) -> None:
        self._active, self._inequalities, self._integration = active, inequalities, integration
        inequalities.motors.tell(self.forget)
        self.stepper: Stepper | None = self._chosen()
        self._in_call = False

    def forget(self) -> None:
        """Note that something else acts than did."""
        self.stepper = None

    def _chosen(self) -> Stepper:
        """The stepper for what acts now: the first line of the table that applies."""
        active, inequalities, integration = self._active, self._inequalities, self._integration
        acts, limits, python = inequalities.act, inequalities.limits, integration.python
        in_python = python and PythonSteps(active, python)
        friction, sliding = integration.friction, None
        if in_python is not None and friction is not None:
            sliding = SlidingSteps(active, friction, in_python)
        other = integration.given not in (None, WITH_INEQUALITIES)
        table: tuple[tuple[bool, Stepper | None], ...] = (
            (python is not None and (acts or limits), None),
            (other and acts, None),
            (acts, inequalities),
            (limits, WatchedSteps(active, inequalities)),
            (sliding is not None, sliding),
            (python is not None, in_python),
            (True, CompiledSteps(active)),
        )
        self.stepper = next(stepper for applies, stepper in table if applies)
        if self.stepper is None:
            raise ModelError(NEED_EULER)
        return self.stepper

    @property
    def status(self) -> Status:
        """How the last step went."""
        last = self._inequalities.last
        solver = self._active.solver if last is None else last.solver
        c = solver.control[0]
        return Status(
            solver.encoded.nc, int(c["rank"]), float(c["margin"]), int(c["correction_passes"]),
            bool(c["guarded"]), float(c["gap"]), int(c["taken"]), int(c["rejected"]),
            solver.handed_over, int(c["charts"]), float(c["lost"]),
        )  # fmt: skip

    def record(self) -> list[float]:
        """A line of a recording: the state, and how the step went that led to it."""
        s = self.status
        return [*self._active.solver.state, s.rank, s.margin, s.passes]

    def step(self) -> None:
        """Advance by one step; what opens is decided again, if that was the reason for a failure.

        Raises:
            StepError: A step could not be finished, and the state before it was restored; or
                another call makes steps, and nothing was done.
            ModelError: Something acts that integrator or formulation do not have.
        """
        if self._in_call:
            raise StepError(IN_ANOTHER_CALL)
        self._in_call = True
        try:
            stepper = self.stepper or self._chosen()
            failure = stepper.step()
            if failure:
                self._reconsider(stepper, failure)
        finally:
            self._in_call = False

    def _reconsider(self, stepper: Stepper, failure: int) -> None:
        """Step with other rows after a failure, if those that were dropped are the reason."""
        active = self._active
        start = active.snapshot()
        while failure and active.reconsider(failure):
            failure = stepper.step()
        if failure:
            try:
                against, why = self._inequalities.in_the_way, active.at_odds_ahead()
                raise_failure(active.solver, failure, stepper.tries_others, against, why)
            finally:  # other rows may have closed what was open there
                if not np.array_equal(start, active.snapshot()):
                    active.take_back(start)

    def roll(self, steps: int, every: int, table: Array) -> None:
        """Advance by many steps; one state in ``every`` becomes a line of the table.

        Raises:
            StepError: A step could not be finished, and the state before it was restored; or
                another call makes steps, and nothing was done.
            ModelError: Something acts that integrator or formulation do not have.
        """
        if self._in_call:
            raise StepError(IN_ANOTHER_CALL)
        self._in_call, done = True, 0
        try:
            while True:
                stepper = self.stepper or self._chosen()
                failure, done = stepper.roll(done, steps, every, table)
                if done == steps:
                    return
                failure = failure or stepper.step()
                if failure:
                    self._reconsider(stepper, failure)
                done += 1
                if done % every == 0:
                    table[done // every - 1] = self.record()
        finally:
            self._in_call = False
