"""Derivatives of the steps of one solver: the calls, and what they give."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.engine.derivatives import Differentiator
from bulletbridge.engine.records import AT_LIMIT, DONE, EULER, RK4, START, VERLET, Factors
from bulletbridge.engine.step_derivatives import (
    LONGEST,
    MADE,
    NOT_PLAIN,
    TERMS,
    TOO_FAR,
    Columns,
    StepArrays,
    Steps,
    V,
    differentiate_closing,
    differentiate_prediction,
    differentiate_steps,
)
from bulletbridge.engine.step_kernel import stepping_kernel
from bulletbridge.engine.stepper import NO_RECORD, Solver
from bulletbridge.engine.tasks import STEP
from bulletbridge.errors import UnsupportedError
from bulletbridge.numerics.projection import ROW
from bulletbridge.numerics.records import Array

METHODS = {EULER: "semi_implicit_euler", VERLET: "verlet", RK4: "rk4"}


class StepDerivatives(NamedTuple):
    """A step as a linear map of small changes, in tangent coordinates at both of its ends.

    Attributes:
        A: (2 nv, 2 nv) of displacements of q and changes of v at its start to those at its end.
        B: (2 nv, nv) by forces that act through the whole step.
        q: (nq,) configuration at the end.
        v: (nv,) rates there.
        active: Motors, friction and joint limits that act in the step, each with how: the
            derivative is that of this active set.
        at_rest: Contacts that rest, bodies 1e-7 m apart or in each other at most. That near is a
            kink, by places: the derivative is for changes that stay on this side of it, and within
            1e-9 m of it the one where bodies are apart.
    """

    A: Array
    B: Array
    q: Array
    v: Array
    active: tuple[str, ...] = ()
    at_rest: tuple[str, ...] = ()


def columns_of(nv: int, nc: int, m: int) -> Columns:
    """Room for m columns of changes of nv rates and nc rows."""
    return Columns(*(np.zeros((n, m)) for n in (2 * nv, nv, nv, nc)))


class StepDifferentiator:
    """Derivatives of the steps of one solver, from its present state.

    Args:
        solver: Whose; it is read alone.
        equations: Its derivatives at states.

    Attributes:
        solver: That one.
        arrays: Of the equations, what these are put together in, and of the steps.
        held: What closes loops while points stick, with whose rows; None until that is needed.
        bounded: What steps with inequalities are differentiated by; None until that is needed.
        room: For changes (1, 2 nv, 3 nv) of a step, and where it leads (1, nq + nv + 1).

    Raises:
        UnsupportedError: Its steps cannot be differentiated; the message says why.
    """

    def __init__(self, solver: Solver, equations: Differentiator) -> None:
        self.solver, self._equations = solver, equations
        self._calls = dict[int, StoredCall]()
        nv, nc = len(solver.v), solver.encoded.nc
        L, Y, R = np.zeros((nv, nv)), np.zeros((nc, nv)), np.zeros((nc, nc))
        found = StepArrays(
            columns_of(nv, nc, 3 * nv),
            columns_of(nv, nc, 2 * nv),
            np.zeros((4, nv, 3 * nv)),
            np.zeros((4, nv, 3 * nv)),
            np.zeros((nv, 3 * nv)),
            np.zeros((nv, 4 * nv)),
            np.zeros((nv, 2 * nv)),
            np.zeros((nv, 4 * nv)),
            np.zeros((nc, 4 * nv)),
            np.zeros((nc, 2 * nv)),
            np.zeros((nc, nv)),
            np.zeros((nc, 0)),
            np.zeros((2, 4, nv, 3)),
            np.zeros((nv, nv)),
            np.zeros((nc, nv)),
            solver.efforts.copy(),
            np.zeros((nv, 2 * nv)),
            np.zeros((nv, nv)),
            np.zeros((nv, nc)),
            np.zeros((nc, nv)),
            np.zeros((nc, nv)),
            np.zeros((nc, nc)),
            np.zeros(nc),
            np.zeros(nc, np.int64),
            Factors(L, Y, R, np.zeros(nc, ROW), np.zeros(nv, np.int64)),
            np.zeros((5, max(nv, 3))),
            np.zeros(3, np.int64),
        )
        self.arrays = equations.arrays, equations.found, found
        self._steps = dict[int, StoredCall]()  # compiled when they are first needed
        self._predict: StoredCall | None = None
        self._closing: StoredCall | None = None
        self.held: tuple[object, Callable[[Any], int]] | None = None
        self.bounded: object = None
        self._changes, self._vectors = found.of_all.changes, found.vectors
        self._nv, self._size = nv, len(solver.state)
        changes, states = self.room = np.empty((1, 2 * nv, 3 * nv)), solver.state[None].copy()
        A, B, end = changes[0, :, : 2 * nv], changes[0, :, 2 * nv :], states[0]
        self._told = A, B, end[: -nv - 1], end[-nv - 1 : -1]  # of one step
        self._again: tuple[int, Array, Callable[[tuple[()]], int]] | None = None
        control = solver.control
        self._integrator, self._directions = control["integrator"], control["directions"]
        self._passes = control["passes"]
        self._method()

    def step(self, push: Array | None = None) -> StepDerivatives:
        """The step from the state of the solver.

        Args:
            push: (nv,) forces on the rates besides those that the solver knows, with which
                Euler's step is meant, whatever the integrator; none unless given.

        Raises:
            UnsupportedError: It was no plain step: it was cut in parts or corrected by other
                directions than those of its start.
        """
        method, forces = self._method(push is not None), self.solver.forces(1)
        if push is not None:
            forces = forces + push
        again = self._again
        if again is None or again[0] != method or again[1] is not forces:
            failure = self._make(method, forces, *self.room)
        else:
            failure = again[2](())
            self._equations.raise_interruption()
        if failure != DONE:
            self._refuse(failure, self.solver.t)
        A, B, q, v = self._told
        return StepDerivatives(A.copy(), B.copy(), q.copy(), v.copy())

    def _make(self, method: int, forces: Array, changes: Array, states: Array) -> int:
        """Call ``differentiate_steps`` for as many steps as there is room for."""
        solver, call = self.solver, self.steps_call(method)
        targets = solver.targets(len(changes)) if solver.encoded.motions else solver.still
        rest = (Steps(method, targets, forces, NO_RECORD, changes, states),)
        if changes is self.room[0] and forces is solver.tau and targets is solver.still:
            self._again = method, forces, call.with_rest(rest).call  # nothing else acts
        failure = call.call(rest)
        self._equations.raise_interruption()
        return failure

    def steps_call(self, method: int) -> StoredCall:
        """``differentiate_steps`` by a method, to be given ``Steps``."""
        if method not in self._steps:
            solver, run, (arrays, *found) = self.solver, self.kernel(method).block, self.arrays
            rest = (Steps(method, solver.still, solver.tau, NO_RECORD, *self.room),)
            with announce_compilation(differentiate_steps):
                fixed = run, arrays, solver.arrays, *found
                self._steps[method] = StoredCall(differentiate_steps, fixed, rest)
        return self._steps[method]

    def _refuse(self, failure: int, t: float) -> None:
        """Say why the step from t [s] has no derivatives."""
        if failure == TOO_FAR:
            raise UnsupportedError(
                f"the step from t = {t:.6g} s is corrected by turns of more than {LONGEST:g} rad of"
                " bodies on ball joints or floating ones; take a shorter dt, or central differences"
                " of step()"
            )
        if failure != DONE:
            why = "was cut in parts or corrected along other directions than those of its start, as"
            why += " beside singular positions; take a shorter dt, or"
            if failure == AT_LIMIT:
                why = "leads beyond a limit of a joint; take"
            elif failure != NOT_PLAIN:
                why = "could not be finished as a whole; take a shorter dt, or"
            way_out = "central differences of step()"
            if failure == AT_LIMIT:
                way_out += "; it has no smoothing: with one, start farther from the limit"
            raise UnsupportedError(f"the step from t = {t:.6g} s {why} {way_out}")

    def prediction(self, push: Array) -> tuple[Array, Array]:
        """Where forces lead in a step of Euler's from the state of the solver, before closing.

        Args:
            push: (nv,) forces on the rates besides those that the solver knows.

        Returns:
            Rates (nv,), and changes (2 nv, 3 nv) of positions and rates.
        """
        solver, nv = self.solver, self._nv
        self.begin(by_euler=True)
        targets = solver.targets(1) if solver.encoded.motions else solver.still
        self.prediction_call().call((targets, solver.forces(1) + push, solver.t, 0))
        self._equations.raise_interruption()
        return self._vectors[V, :nv].copy(), self._changes.copy()

    def prediction_call(self) -> StoredCall:
        """``differentiate_prediction``: of motions, forces (1, nv), t, and whether again."""
        if self._predict is None:
            solver = self.solver
            with announce_compilation(differentiate_prediction):
                rest = solver.still, solver.tau, solver.t, 0
                self._predict = StoredCall(differentiate_prediction, self.arrays, rest)
        return self._predict

    def closing_call(self) -> StoredCall:
        """``differentiate_closing``: of prescribed motions, (3, nv) given, and what is asked."""
        if self._closing is None:
            rest = self.solver.still, np.zeros((3, self._nv)), TERMS
            with announce_compilation(differentiate_closing):
                self._closing = StoredCall(differentiate_closing, self.arrays, rest)
        return self._closing

    def steps(self, tau: Array) -> tuple[Array, Array]:
        """Steps one after another from the state of the solver, under forces tau (n, nv).

        Returns:
            Of m <= n steps, up to the first one that is no plain step, changes (m, 2 nv, 3 nv) by
            displacements, rates and forces, and ends (m, nq + nv + 1): q, v, t.
        """
        changes = np.empty((len(tau), 2 * self._nv, 3 * self._nv))
        states = np.empty((len(tau), self._size))
        forces = np.ascontiguousarray(self.solver.forces(len(tau), tau))
        self._make(self._method(), forces, changes, states)
        made = int(self.arrays[2].counts[MADE])
        return changes[:made], states[:made]

    def raise_interruption(self) -> None:
        """Pass on what a user's function has raised while steps were made or differentiated."""
        self._equations.raise_interruption()

    def begin(self, by_euler: bool = False) -> Callable[[Any], int]:
        """Take over the state of the solver; the kernel of its steps."""
        solver = self.solver
        method = self._method(by_euler)
        self._equations.take(solver.q, solver.v, solver.t)
        self._equations.control[0]["integrator"] = method
        return self.kernel(method).call

    def _method(self, by_euler: bool = False) -> int:
        """The integrator of the solver, or Euler's, if steps by it can be differentiated."""
        method = EULER if by_euler else int(self._integrator[0])
        what = ""
        if method not in METHODS:
            what = f"steps other than those of {', '.join(METHODS.values())}"
        elif self._directions[0] != START or self._passes[0] >= 0:
            what = "corrections along other directions than those of the start, or of few passes"
        if what:
            raise UnsupportedError(
                f"derivatives of {what} are not known; use another integrator, or central"
                " differences of step()"
            )
        return method

    def kernel(self, method: int) -> StoredCall:
        """The kernel of a step by a method, which may have changed, on arrays of our own."""
        solver = self.solver
        if method not in self._calls:
            kernel = stepping_kernel(method)
            examples = solver.still, solver.tau, NO_RECORD, STEP, 1
            with announce_compilation(kernel):
                self._calls[method] = StoredCall(kernel, (self._equations.arrays,), examples)
        return self._calls[method]
