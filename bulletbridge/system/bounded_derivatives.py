"""Derivatives of steps with motors, friction, limits and contacts, by their active set.

At the solution of a step's complementarity problem each row either pushes by a force that is given,
or holds a rate, which it does by whatever force that takes, or slides: its force is that of
Coulomb's law, against the slip. The step is Euler's with these forces in tau, to round-off, and so
is its derivative: with W the rows that act, w their rates, B what rates before loops are closed
change by with forces, and K δf + L δw = r what each of them asks for (a servo gives way, by K),

    (K + L W B Wᵀ) δf = r - L δ(w by all else)

gives the changes of their forces (Acary and Brogliato 2008, ch. 10, of the step).
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.joint_models import has_force_limit
from bulletbridge.engine.records import EULER, ONE_OVER_UNITS
from bulletbridge.engine.step_adjoint import differentiate_answers
from bulletbridge.engine.step_differentiator import StepDerivatives, StepDifferentiator
from bulletbridge.engine.stepper import NO_RECORD, Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.inequalities.active_rows import (
    OFF,
    RANK,
    SCALE,
    UNIQUE,
    WEAKEST,
    solve_active_rows,
)
from bulletbridge.inequalities.arrays import APART, BY_LINKS, RESTING, TAKEN, X
from bulletbridge.inequalities.contact_derivatives_kernel import (
    MORE_ROOM,
    NOT_MADE,
    STICKING,
    TOUCHING,
    Blocks,
    DerivativesIn,
    RoomOfStep,
    StepsAsked,
    differentiate_contact_steps,
)
from bulletbridge.inequalities.contact_slopes import (
    ABOUT_TO_CHANGE,
    AHEAD,
    AWAY,
    CLEAR,
    GIVES_AND_BOUNCES,
    HELD_BY_LOOPS,
    JOINT_ABOUT_TO_CHANGE,
    JOINT_BEYOND,
    JOINT_OF_LOOP,
    NOT_COULOMBS,
    PARTING,
    RATES,
    ROW_ABOUT_TO_CHANGE,
    TOGETHER,
    TOO_DEEP,
    WHYS,
    Ahead,
    ContactsOfStep,
    lead_apart,
    look_ahead,
)
from bulletbridge.inequalities.contact_variations import (
    ROWS_OF_ONE,
    ContactVariations,
    Finding,
    RowsAt,
    nearby,
)
from bulletbridge.inequalities.held_closing_kernel import (
    HeldClosing,
    LedToClosing,
    count_sticking,
    take_sticking,
)
from bulletbridge.inequalities.motor_agreement import AgreementCalls, agree
from bulletbridge.inequalities.stepper import InequalityStepper, OneStep, Surroundings
from bulletbridge.mechanism.records import STICKING_POINT
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.system.asked_rows import (
    ABOUT_CONTACT,
    OTHERWISE,
    Active,
)
from bulletbridge.system.derivatives import contact_rows_of, filtering, step_differentiator_of
from bulletbridge.system.gentle_parting import Parting, move_gently
from bulletbridge.system.held_closing import Ended, held_closing, room_of_closing
from bulletbridge.system.linearisation import ALIKE

CONTRADICTS = 1e-7
"""Share of what is asked of rows that follow from others, by which they may ask for another."""
GIVES_AND_BOUNCES_ABOUT = f"the {{}} gives way and bounces{OTHERWISE}"


def require_no_force_limits(constraints: Iterable[Constraint]) -> None:
    """Refuse force limits, for steps that know none.

    Args:
        constraints: That act.

    Raises:
        UnsupportedError: It names one.
    """
    for one in constraints:
        if has_force_limit(one):
            raise UnsupportedError(
                f"'{one.name}' has a force limit, of which no derivatives are known{OTHERWISE}"
            )


def require_whole(step: InequalityStepper | None, dt: float) -> InequalityStepper:
    """The last step, if it was made as a whole of dt [s].

    Raises:
        UnsupportedError: It was not.
    """
    if step is None or step.dt != dt:
        raise UnsupportedError(f"the step was made in parts{OTHERWISE}")
    return step


def solver_at_start(
    solver: Solver, step: InequalityStepper, constraints: Iterable[Constraint]
) -> Solver:
    """The solver of a step, at its start: one in which constraints with a force limit are rigid.

    Args:
        solver: At the start of the step.
        step: That was made; its solver may be put elsewhere.
        constraints: That act.

    Raises:
        UnsupportedError: One of them gives way, or is about to.
    """
    rigid = step.rigid
    holding = frozenset[str]() if rigid is None else rigid.holding
    for one in constraints:
        if has_force_limit(one) and one.name not in holding:
            raise UnsupportedError(
                f"'{one.name}' gives way to its force limit, of which no derivatives are"
                f" known{OTHERWISE}"
            )
    if rigid is None:
        return solver
    if name := rigid.over(step.supplied / (1.0 - CLEAR), step.dt):
        raise UnsupportedError(f"'{name}' is about to reach its force limit{OTHERWISE}")
    rigid.solver.put(solver.q, solver.v, solver.t)
    return rigid.solver


class Made(NamedTuple):
    """A step that was made with inequalities.

    Attributes:
        solver: At its start.
        after: Where it has led.
        step: How.
        surroundings: What it could touch; None for nothing.
        rows: (rows, nv) of its inequalities.
    """

    solver: Solver
    after: Ended
    step: InequalityStepper
    surroundings: Surroundings | None
    rows: Array

    @property
    def apart(self) -> bool:
        """Whether it has moved bodies out of each other."""
        return bool(self.step.report[APART])

    def contacts(self, line: int, apart: int) -> ContactsOfStep:
        """Those that were found, and a line of impulses."""
        s = self.step
        points, own, bounds = s.contact_points, s.contact_rows, s.bound_records
        by_links = bool(s.report[BY_LINKS])
        return ContactsOfStep(
            points, own, self.rows, bounds, s.impulses, s.impulses[line], apart, s.D, by_links, s.dt
        )


def bounded_step_derivatives(made: Made) -> StepDerivatives:
    """Derivatives of a step with inequalities, by its active set.

    Args:
        made: That step.

    Raises:
        UnsupportedError: Something in the step is not known, or it is about to become another one.
    """
    solver, after, step = made.solver, made.after, made.step
    if made.apart and step.report[BY_LINKS]:
        raise UnsupportedError(f"bodies of many loops are taken out of each other{OTHERWISE}")
    differentiator, nv, nc = step_differentiator_of(solver), len(solver.v), solver.encoded.nc
    calls = calls_of(differentiator)
    touch, ahead = calls.look_ahead(made)
    size = max(1.0, float(np.abs(ahead.rates).max(initial=0.0)))
    touching = _contacts_that_touch(made, ahead, touch) if touch else None
    acting = calls.acting(made.step, touch)
    pushes = _change_of_forces(calls, ahead, (acting, touching), made, size)
    sticking = None
    if touching is not None and nc:
        sticking = _that_stick(calls, made, touching, ahead.where[:nv])
    changes = ahead.led
    if sticking is None and nc:
        if made.apart:
            raise UnsupportedError(
                f"bodies are taken out of each other while loops are closed{OTHERWISE}"
            )
        changes = _closed(made, ahead.push, size)
    changes, place = changes + changes[:, 2 * nv :] @ pushes, ahead.place
    if made.apart:
        parting, before = calls.lead_apart(made, ahead), pushes.copy()
        place, by_all = parting.place, parting.led[:nv]
        pushes = _change_of_forces(calls, parting, (acting, touching), made, size)
        if nc or parting.report[AWAY] <= ALIKE * size:
            changes[:nv] = by_all + by_all[:, 2 * nv :] @ pushes
        else:
            asked, by_q = acting.slopes_of, acting.pushing.by_q
            gently = Parting(ahead, parting, before, pushes, asked, by_q, calls.led_by(ahead))
            changes[:nv] = move_gently(gently, ALIKE * size)
    if sticking is not None and touching is not None:
        led = LedToClosing(place, ahead.rates, changes, after.state, after.correction)
        changes = held_closing(differentiator, led, sticking, touching.rows)
    elif not nc:
        _require_alike(made, float(ahead.report[AWAY]), size)
    A, B = changes[:, : 2 * nv], changes[:, 2 * nv :]
    return StepDerivatives(A, B, after.q, after.v, at_rest=acting.at_rest)


class Calls:
    """Kernels that derivatives of the steps of one solver take, and room for what they find.

    Args:
        differentiator: Of its steps.
    """

    def __init__(self, differentiator: StepDifferentiator) -> None:
        self._differentiator, solver = differentiator, differentiator.solver
        nv, nq = len(solver.v), len(solver.q)
        self._ahead = (
            np.zeros((1, nv)), np.zeros(nv), np.zeros(nv), np.zeros(nv), np.zeros((2 * nv, 3 * nv)),
            np.zeros((2 * nv, 3 * nv)), np.zeros(nq), np.zeros(nq), np.zeros(nv),
            np.zeros((nv, 3 * nv)),
        )  # fmt: skip
        self._report, self._acting = np.zeros(AHEAD), None
        self._parting = tuple(
            np.zeros_like(one)
            for one in (solver.state, *self._ahead[2:5], self._ahead[7], self._report)
        )
        self._lead_apart: Callable[[Any], int] | None = None
        self._look_ahead: Callable[[Any], int] | None = None
        self._solve: Callable[[Any], int] | None = None
        self._agree: StoredCall | None = None
        self._answers: StoredCall | None = None
        self._closing: HeldClosing | None = None
        self._one: OneStep | None = None
        self._steps: Callable[[Any], int] | None = None

    def look_ahead(self, made: Made) -> tuple[int, Ahead]:
        """How many contacts of a step push, or might, and where it leads; until the next one."""
        solver, step, differentiator = made.solver, made.step, self._differentiator
        nv, contacts = len(solver.v), made.contacts(X, RATES if made.apart else TOGETHER)
        differentiator.begin(by_euler=True)
        targets = solver.targets(1) if solver.encoded.motions else solver.still
        ahead = Ahead(
            targets, solver.forces(1), solver.t, solver.v, made.after.state, step.exerted,
            solver.vectors[ONE_OVER_UNITS, :nv], float(solver.control[0]["length"]), contacts,
            step.motor_rows, step.joint_limits, *self._ahead,
            np.zeros(len(contacts.points), np.int64), self._report,
        )  # fmt: skip
        if self._look_ahead is None:
            arrays, _, found = differentiator.arrays
            fixed = differentiator.prediction_call().block, arrays, found
            with announce_compilation(look_ahead):
                self._look_ahead = StoredCall(look_ahead, fixed, (ahead,)).call
        touch = self._look_ahead((ahead,))
        differentiator.raise_interruption()
        return touch, ahead

    def lead_apart(self, made: Made, ahead: Ahead) -> Ahead:
        """Where forces lead that also move bodies out of each other; until the next one."""
        parting = self._parting_beside(ahead, made.contacts(RESTING, PARTING))
        if self._lead_apart is None:
            arrays, _, found = self._differentiator.arrays
            fixed = self._differentiator.prediction_call().block, arrays, found
            with announce_compilation(lead_apart):
                self._lead_apart = StoredCall(lead_apart, fixed, (ahead, parting)).call
        self._lead_apart((ahead, parting))
        self._differentiator.raise_interruption()
        return parting

    def led_by(self, ahead: Ahead) -> Callable[[Array], Array]:
        """Changes of where forces (nv,) of inequalities lead in a step, before loops are closed."""
        call, found = self._differentiator.prediction_call(), self._differentiator.arrays[2]

        def led(push: Array) -> Array:
            call.call((ahead.targets, ahead.tau + push, ahead.t, 0))
            return found.of_all.changes.copy()

        return led

    def _parting_beside(self, ahead: Ahead, contacts: ContactsOfStep) -> Ahead:
        """Room for that, where contacts were found as before."""
        end, push, rates, led, place, report = self._parting
        return ahead._replace(
            end=end, contacts=contacts, push=push, rates=rates, led=led, place=place, report=report
        )

    def differentiate(
        self, step: InequalityStepper, surroundings: Surroundings, asked: StepsAsked
    ) -> int:
        """Make and differentiate steps in few calls, as far as these get; why they have ended."""
        solver, differentiator = self._differentiator.solver, self._differentiator
        one = step.one(surroundings, self._one)
        if one is None:
            return NOT_MADE
        differentiator.begin(by_euler=True)
        failure, rows = MORE_ROOM, contact_rows_of(solver)
        while failure == MORE_ROOM:
            rest = self._room(step, one, asked.counts), asked
            if self._steps is None or one is not self._one:
                d, find = differentiator, one.detector.call
                vary = one.detector.vary(nearby(rest[0].beside))
                r = rest[0]
                agreeing = r.active, r.pushing, r.ahead, r.equations, r.agreement, ALIKE
                calls = (
                    one.whole, d.prediction_call(), find, vary, d.closing_call(),
                    d.steps_call(EULER), self._agree_call(agreeing),
                )  # fmt: skip
                own = DerivativesIn(*d.arrays, rows.tree)
                blocks = Blocks(*(each.block for each in calls))
                fixed = blocks, own, solver.arrays, one.arrays, one.rows
                with announce_compilation(differentiate_contact_steps):
                    self._steps = StoredCall(differentiate_contact_steps, fixed, rest).call
                self._one = one
            failure = self._steps(rest)
        step.forget_failure()
        return failure

    def _room(self, step: InequalityStepper, one: OneStep, counts: Ints) -> RoomOfStep:
        """What steps are differentiated in of which as many contacts push, and stick."""
        solver, a, r = self._differentiator.solver, one.arrays, one.rows
        touch, closing = int(counts[TOUCHING]), self.closing(int(counts[STICKING]))
        dt, reach = float(solver.control[0]["dt"]), solver.vectors[ONE_OVER_UNITS, : len(solver.v)]
        acting = self.acting(step, touch)
        beside = contact_rows_of(solver).room(touch, len(solver.q), dt)
        acting.take(beside)
        contacts = ContactsOfStep(
            a.points, r.own, r.all, r.bounds, a.impulses, a.impulses[X], TOGETHER, r.D, False, dt
        )
        ahead = Ahead(
            solver.still, solver.tau, solver.t, solver.v, solver.state, a.exerted, reach,
            float(solver.control[0]["length"]), contacts, step.motor_rows, step.joint_limits,
            *self._ahead, np.zeros(len(a.points), np.int64), self._report,
        )  # fmt: skip
        return RoomOfStep(
            ahead, self._parting_beside(ahead, contacts), acting.arrays, acting.pushing,
            acting.slopes_of, acting.equations, acting.agreement, beside, closing,
            *self._differentiator.room, np.zeros_like(solver.state), NO_RECORD, ALIKE, CONTRADICTS,
        )  # fmt: skip

    def closing(self, points: int) -> HeldClosing:
        """Room for a closing in which so many points stick; until the next one is asked for."""
        solver, found = self._differentiator.solver, self._closing
        dt = float(solver.control[0]["dt"])
        if found is None or len(found.here.points) != points or found.dt != dt:
            found = self._closing = room_of_closing(solver, points)
        return found

    def acting(self, step: InequalityStepper, touch: int) -> Active:
        """Room for the rows of joints and so many contacts; until the next one is asked for."""
        found, of_joints = self._acting, len(step.motor_rows) + len(step.joint_limits)
        most = of_joints + ROWS_OF_ONE * touch
        if found is None or found.room != (most, touch):
            found = self._acting = Active(self._differentiator.solver, most, touch)
        return found

    def solve(self, acting: Active, ahead: Ahead) -> int:
        """``solve_active_rows`` of a step."""
        e = acting.equations
        rest = acting.arrays, acting.pushing, acting.slopes_of, ahead, e, ALIKE
        if self._solve is None:
            fixed = (self._differentiator.arrays[0],)
            with announce_compilation(solve_active_rows):
                self._solve = StoredCall(solve_active_rows, fixed, rest).call
        return self._solve(rest)

    def agree(self, acting: Active, ahead: Ahead) -> int:
        """``agree`` of a step whose rows are known."""
        rest = acting.arrays, acting.pushing, ahead, acting.equations, acting.agreement, ALIKE
        return self._agree_call(rest).call(rest)

    def _agree_call(self, example: tuple[Any, ...]) -> StoredCall:
        """``agree``, to be given rows, contacts, where they lead, equations, room and ``ALIKE``."""
        if self._agree is None:
            differentiator, nv = self._differentiator, len(self._differentiator.solver.v)
            room = np.zeros((nv, 6)), np.zeros((nv, 9)), np.zeros(nv)
            none, lines = np.zeros(0, np.int64), np.zeros((0, nv))
            rest, fixed = (differentiator.solver.still, none, lines, lines), differentiator.arrays
            with announce_compilation(differentiate_answers):
                self._answers = StoredCall(differentiate_answers, (*fixed, room), rest)
            closing, (arrays, found, of_step) = differentiator.closing_call(), fixed
            calls = AgreementCalls(closing.block, self._answers.block)
            with announce_compilation(agree):
                fixed = calls, (arrays, found, of_step.bent)
                self._agree = StoredCall(agree, fixed, example)
        return self._agree


def calls_of(differentiator: StepDifferentiator) -> Calls:
    """Its kernels."""
    if not isinstance(differentiator.bounded, Calls):
        differentiator.bounded = Calls(differentiator)
    return differentiator.bounded


def _closed(made: Made, push: Array, size: float) -> Array:
    """Changes (2 nv, 3 nv) at the end of a step of Euler's under forces push (nv,) besides.

    Raises:
        UnsupportedError: The step that was made is another one, by a share of rates of this size.
    """
    found = step_differentiator_of(made.solver).step(push)
    away = np.concatenate([found.q, found.v]) - made.after.state[:-1]
    _require_alike(made, float(np.abs(away).max()), size)
    return np.hstack([found.A, found.B])


def _require_alike(made: Made, away: float, size: float) -> None:
    """Refuse a step that has led elsewhere by a share of rates of this size."""
    if away > ALIKE * size:
        if made.step.report[TAKEN] > 0.0:
            raise UnsupportedError(
                "the step would have gained energy by its length, which its budget took from it;"
                " give energy_budget=False or a shorter dt, or use central differences of step()"
            )
        raise UnsupportedError(
            f"the step is none of Euler's under the forces of its inequalities{OTHERWISE}"
        )


def _change_of_forces(
    calls: Calls,
    ahead: Ahead,
    rows: tuple[Active, "Touching | None"],
    made: Made,
    size: float,
) -> Array:
    """What forces (nv, 3 nv) on the rates change by, with those of rows that act.

    A contact at rest counts as one that bodies come to: from the side where they are apart.

    Args:
        calls: Kernels.
        ahead: Where forces lead.
        rows: Receives those that act; contacts that push, or might.
        made: The step.
        size: Of rates.

    Raises:
        UnsupportedError: Rows do not do what they ask for, are about to act otherwise, or follow
            from others that ask for another.
    """
    solver, nv, (acting, touching) = made.solver, len(made.solver.v), rows
    of, e = acting.arrays, acting.equations
    if touching is not None:
        acting.take(touching.varied.beside)
    failure = calls.solve(acting, ahead)
    if failure:
        _refuse(acting, *divmod(failure, WHYS))
    m, rank = acting.count, int(e.report[RANK])
    if acting.idle and not m:
        raise UnsupportedError(acting.about_contact(acting.idle[0][0]))
    wanted = of.rates
    admissible = _admissible(solver) if acting.idle else None
    for agreed in (False, True):
        if agreed:
            if calls.agree(acting, ahead):
                raise UnsupportedError(f"motors contradict each other in driven loops{OTHERWISE}")
            wanted, rank = acting.agreement.wanted, int(e.report[RANK])
        contradiction, scale = 0.0, e.report[SCALE]
        if rank < m:
            admissible = _admissible(solver) if admissible is None else admissible
            contradiction = float(np.abs(e.right[rank:m] @ admissible).max(initial=0.0))
        contradicts = contradiction > CONTRADICTS * scale or e.report[UNIQUE] > CONTRADICTS
        if e.report[OFF] <= ALIKE * size and not contradicts:
            break
    else:
        if e.report[OFF] > ALIKE * size:
            missed = np.nan_to_num(np.abs(of.rows[:m] @ ahead.rates - wanted[:m]))
            worst = acting.rows_named([int(np.argmax(missed))])
            raise UnsupportedError(
                f"rows that hold do not hold what they ask for ({worst}){OTHERWISE}"
            )
        mixed = np.abs(e.N[:rank, rank:m]).max(axis=1, initial=0.0) > ALIKE
        named = acting.rows_named(e.columns[:m][np.append(mixed, np.ones(m - rank, bool))].tolist())
        raise UnsupportedError(
            f"rows that act follow from each other ({named}), so that their forces are not unique,"
            f" and what is asked of them contradicts itself beside this state{OTHERWISE}"
        )
    if admissible is not None:
        moved = ahead.led[nv:] + ahead.led[nv:, 2 * nv :] @ e.pushes
        most = np.abs(e.free[:m]).max()
        for k, off in acting.off_by_idle(moved):
            if np.abs(off @ admissible).max() > CONTRADICTS * most:
                raise UnsupportedError(acting.about_contact(k))
    return e.pushes


def _refuse(acting: Active, k: int, why: int) -> None:
    """Say why contact, row or axis k is not known."""
    if why == ROW_ABOUT_TO_CHANGE:
        raise UnsupportedError(acting.about(k))
    if why == JOINT_ABOUT_TO_CHANGE:
        raise UnsupportedError(acting.about_axis(k))
    if why == JOINT_OF_LOOP:
        raise UnsupportedError(
            f"a motor, friction or limit acts along an axis of a loop{OTHERWISE}"
        )
    if why == JOINT_BEYOND:
        raise UnsupportedError(f"'{acting.rates[k]}' is beyond its limit{OTHERWISE}")
    told = {
        ABOUT_TO_CHANGE: ABOUT_CONTACT,
        GIVES_AND_BOUNCES: GIVES_AND_BOUNCES_ABOUT,
        HELD_BY_LOOPS: f"the {{}} is one of bodies that loops hold{OTHERWISE}",
        TOO_DEEP: f"the {{}} is deeper than one step takes bodies out of each other{OTHERWISE}",
        NOT_COULOMBS: f"friction of the {{}} is not against its slip{OTHERWISE}",
    }
    raise UnsupportedError(told[why].format(acting.name(k)))


def _admissible(solver: Solver) -> Array:
    """(3 nv, n) directions in which states that satisfy their constraints move, and forces."""
    nv = len(solver.v)
    if not solver.encoded.nc:
        return np.eye(3 * nv)
    J = solver.closing_terms(solver.q, solver.v, solver.t)[1]
    free = np.eye(nv) - np.linalg.pinv(J, rcond=WEAKEST) @ J
    found = np.zeros((3 * nv, 3 * nv))
    found[:nv, :nv] = found[nv : 2 * nv, nv : 2 * nv] = free
    found[nv : 2 * nv, :nv] = filtering(solver, solver.q, solver.v, solver.t) @ free
    found[2 * nv :, 2 * nv :] = np.eye(nv)
    return found


class Touching(NamedTuple):
    """Contacts that push, or might.

    Attributes:
        numbers: (n,) of them among those of the step.
        varied: What they change by.
        rows: Rows of contacts anywhere.
    """

    numbers: Ints
    varied: ContactVariations
    rows: RowsAt


def _contacts_that_touch(made: Made, ahead: Ahead, touch: int) -> Touching:
    """Those of the contacts of a step that push, or might, of which there are so many."""
    solver, step, surroundings = made.solver, made.step, made.surroundings
    assert surroundings is not None
    numbers, dt = ahead.numbers[:touch], step.dt
    compliant = step.contact_rows["compliance"][numbers] > 0.0
    rows, moving = contact_rows_of(solver), ahead.lead

    def find(q: Array) -> np.ndarray:
        return surroundings.contact_points(q, moving, dt)

    finding = Finding(find, surroundings.detector(), moving, dt)
    points = step.contact_points[numbers]
    return Touching(
        numbers, ContactVariations(rows, finding, ahead.found_at, points, compliant), rows
    )


def _that_stick(
    calls: Calls, made: Made, touching: Touching, place_by_all: Array
) -> HeldClosing | None:
    """A closing in which those of them stay where they are that stick; None for none.

    Args:
        calls: Kernels.
        made: The step.
        touching: Its contacts.
        place_by_all: (nv, m) changes of the configuration that they were found at.

    Raises:
        UnsupportedError: Some stick while loops are closed otherwise, or are driven.
    """
    contacts, numbers = made.contacts(X, RATES if made.apart else TOGETHER), touching.numbers
    with announce_compilation(count_sticking):
        count = count_sticking(contacts, numbers, np.zeros(1, STICKING_POINT))
    if not count:
        return None
    if not made.after.plainly:
        raise UnsupportedError(
            "contacts stick while driven or rolling constraints are closed, or loops beside a"
            " singular position; use central differences of step()"
        )
    found = calls.closing(count)
    with announce_compilation(take_sticking):
        take_sticking(contacts, numbers, touching.varied.beside.by_q, place_by_all, found)
    return found
