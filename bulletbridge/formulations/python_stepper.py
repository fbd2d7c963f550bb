"""Steps of a system in Python: any formulation, any integrator; some 20 times slower."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.constraints.left_out import NO_RATE
from bulletbridge.engine.correction import MOST_ROUNDED, PROMISED, SLIPS
from bulletbridge.engine.failures import TRIED
from bulletbridge.engine.records import CONTRADICTED, DONE, LEFT_OPEN, NOT_FINITE, Directions
from bulletbridge.engine.stepper import REFINEMENTS, Solver
from bulletbridge.errors import StepError
from bulletbridge.formulations.equations import Dynamics, Formulation
from bulletbridge.formulations.integrators import METHODS, Scheme, State
from bulletbridge.formulations.modified import Modified
from bulletbridge.formulations.modular import Modular
from bulletbridge.formulations.stabilise import Seen, Stabilisation, Stabilised
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.numerics.records import Array


def slips(solver: Solver, end: Stabilised, t: float) -> bool:
    """Whether drives contradict each other in the velocities that rows ask for.

    As ``engine.correction.judge_slip``; ``control.worst`` and ``.gap`` then say where, how much.
    """
    encoded, c = solver.encoded, solver.control[0]
    _, J, _, g_t = solver.closing_terms(end.q, end.v, t)
    rates, alone = encoded.scale * (J @ end.v + g_t), ~encoded.has_position
    moves = encoded.scale * (np.abs(J) @ np.abs(end.v) + np.abs(g_t))
    most_left, mismatch = float(c["most_left"]), float(c["mismatch"])
    share = SLIPS + min(most_left, MOST_ROUNDED)
    at_frames = SLIPS + min(most_left if most_left < np.inf else mismatch, MOST_ROUNDED)
    rounded = max(NO_RATE, (mismatch + float(c["round_off"])) / float(c["dt"]))
    least = np.where(
        alone, np.maximum(NO_RATE, share * moves), np.maximum(rounded, at_frames * moves)
    )
    beyond = np.where(alone | (end.rank == c["cap"]), np.abs(rates) - least, 0.0)
    worst = int(np.argmax(beyond))
    if beyond[worst] <= 0.0:
        return False
    c["worst"], c["gap"], c["slipping"] = worst, abs(rates[worst]), 1
    return True


class Uncorrected(NamedTuple):
    """A velocity (nv,) that goes with a state, given as bytes."""

    velocity: Array
    state: bytes


class PythonStep:
    """Advances a solver by one step of a formulation and an integrator.

    Args:
        make: The formulation of a system.
        integrator: Name from ``METHODS``.
        directions, passes, filtered: As in ``Stabilisation``.
        weight: Of the modified integration, a name or H (nv, nv); None for none. It takes the place
            of correction and filter. The velocity of the state is that by which q moves; the
            uncorrected one is kept beside it as long as nobody else sets the state.
    """

    def __init__(
        self,
        make: Callable[[Dynamics], Formulation],
        integrator: str,
        directions: Directions,
        passes: int | None,
        filtered: bool,
        weight: str | Array | None = None,
    ) -> None:
        self.make, self.method = make, METHODS[integrator]
        self.directions: Directions = directions
        self.passes, self.filtered, self.weight = passes, filtered, weight
        if weight is not None:
            self.passes, self.filtered = 0, False
        self._uncorrected: Uncorrected | None = None
        self._solver: Solver | None = None
        self._scheme: Scheme | None = None

    def memory(self) -> Any:
        """The uncorrected velocity; None where there is none: formulations know but the state."""
        return self._uncorrected

    def recall(self, memory: Any) -> None:
        """Go on from a memory; from None with what the state has."""
        self._uncorrected = memory

    def step(self, solver: Solver, dt: float) -> int:
        """Advance the solver's state by dt [s], in parts if need be.

        Returns:
            What is wrong with the end of the whole step, or DONE.

        Raises:
            StepError: A stage or the correction failed, in parts too; the state is that before the
                step.
        """
        before, pushed = solver.state.copy(), solver.forces(0).copy()
        kept = self._uncorrected
        found: int | StepError = DONE
        for parts in (1, *REFINEMENTS):
            try:
                failed = self._in_parts(solver, dt, parts)
                failed = failed or solver.judge(before, pushed)
            except StepError as error:
                failed = error
            except BaseException:
                solver.state[:], self._uncorrected = before, kept
                raise
            if failed == DONE:
                return DONE
            solver.state[:], self._uncorrected = before, kept
            found = found or failed
        if isinstance(found, StepError):
            begun = f"step at t = {before[-1]:.6g} s"
            raise type(found)(
                f"{begun}: {found}; {TRIED}; the state before it was restored"
            ) from found
        return found

    def _in_parts(self, solver: Solver, dt: float, parts: int) -> int:
        """Advance by dt [s] in equal parts; return what is wrong with the end of one, or DONE.

        Raises:
            StepError: A stage or the correction failed.
        """
        t, scheme = solver.t, self._scheme_of(solver)
        for n in range(parts):
            v, kept, ended = solver.v.copy(), self._uncorrected, t + (n + 1) * (dt / parts)
            if kept is not None and kept.state == solver.state.tobytes():
                v = kept.velocity
            end = scheme(State(solver.q.copy(), v, solver.t), dt / parts)
            carried = end.v
            if isinstance(scheme.formulation, Modified):
                end = end._replace(v=scheme.formulation.velocity(end.q, carried, ended))
            failure = self._take(solver, end, ended)
            if failure != DONE:
                return failure
            if self.weight is not None:
                self._uncorrected = Uncorrected(carried, solver.state.tobytes())
        return DONE

    def _scheme_of(self, solver: Solver) -> Scheme:
        """The scheme of this solver, kept since formulations may have found out much about it."""
        if self._scheme is None or self._solver is not solver:
            dynamics = SystemDynamics(solver, finite=True)
            after = Stabilisation(self.directions, self.passes, self.filtered)
            self._solver = solver
            formulation = self.make(dynamics)
            if self.weight is not None:
                formulation = Modified(dynamics, self.weight, formulation)
            modular = isinstance(formulation, Modular)
            seen = Seen(formulation.equations if modular else dynamics.closing, dynamics.displace)
            self._scheme = Scheme(dynamics, formulation, self.method, after, seen)
        return self._scheme

    def _take(self, solver: Solver, end: Stabilised, t: float) -> int:
        """Make the end of a step the state, unless something is wrong with it."""
        c = solver.control[0]
        if not (np.isfinite(end.q).all() and np.isfinite(end.v).all()):
            return NOT_FINITE
        if self.passes is None:
            size = max(1.0, float(np.abs(end.q).max(initial=0.0)))  # as the correction has it
            loose = PROMISED * size * max(c["gap_tolerance"], c["round_off"])
            if end.dependent_gap > c["mismatch"] + loose:
                return CONTRADICTED
            if solver.left_open(end.q, t) > loose:
                return LEFT_OPEN
            if c["driven"] == 1 and slips(solver, end, t):
                return CONTRADICTED
        solver.q[:], solver.v[:], solver.state[-1] = end.q, end.v, t
        c["rank"], c["margin"], c["gap"] = end.rank, end.margin, end.gap
        c["correction_passes"], c["guarded"], c["factored"] = end.passes, 0, 0
        return DONE
