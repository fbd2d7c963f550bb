"""Derivatives of steps with motors, friction, limits and contacts, by their active set.

At the solution of a step's complementarity problem each row either pushes by a force that is given,
or holds a rate, which it does by whatever force that takes, or slides: its force is that of
Coulomb's law, against the slip. The step is Euler's with these forces in tau, to round-off, and so
is its derivative: with W the rows that act, w their rates, B what rates before loops are closed
change by with forces, and K δf + L δw = r what each of them asks for (a servo gives way, by K),

    (K + L W B Wᵀ) δf = r - L δ(w by all else)

gives the changes of their forces (Acary and Brogliato 2008, ch. 10, of the step).
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.joint_models import has_force_limit
from bulletbridge.engine.records import ONE_OVER_UNITS
from bulletbridge.engine.step_differentiator import StepDerivatives
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.inequalities.active_rows import (
    OFF,
    REPORT,
    SCALE,
    UNIQUE,
    WEAKEST,
    Equations,
    put_answers,
    put_rows_of_contacts,
    solve_rows,
)
from bulletbridge.inequalities.arrays import APART, BY_LINKS, MOVING, TAKEN
from bulletbridge.inequalities.contact_slopes import (
    ABOUT_TO_CHANGE,
    CLEAR,
    ContactSlopes,
    ContactsOfStep,
    LedBy,
    PushingContacts,
    list_touching,
    put_contact_slopes,
    put_pushing,
)
from bulletbridge.inequalities.contact_variations import ContactVariations, Finding, RowsAt
from bulletbridge.inequalities.impulse_step import PREDICTION_LIMIT
from bulletbridge.inequalities.motor_limit_rows import SHALLOW
from bulletbridge.inequalities.stepper import InequalityStepper, Surroundings, X
from bulletbridge.mechanism.by_joint import rate_names
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.records import Array, Ints, Mask
from bulletbridge.system.asked_rows import (
    ABOUT_CONTACT,
    OTHERWISE,
    Active,
    Leads,
    contact_names,
)
from bulletbridge.system.contact_report import contact_states
from bulletbridge.system.derivatives import contact_rows_of, filtering, step_differentiator_of
from bulletbridge.system.held_closing import (
    Ended,
    Led,
    Sticking,
    held_closing,
)
from bulletbridge.system.linearisation import ALIKE, BESIDE, SATURATED
from bulletbridge.system.motor_agreement import Agreement

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
    def moving(self) -> Array:
        """Rates (nv,) that led to where contacts were found."""
        return self.step.impulses[MOVING, : len(self.solver.v)].copy()

    @property
    def contacts(self) -> ContactsOfStep:
        """Those that were found."""
        s = self.step
        points, own, bounds = s.contact_points, s.contact_rows, s.bound_records
        by_links = bool(s.report[BY_LINKS])
        return ContactsOfStep(points, own, self.rows, bounds, s.impulses, s.D, by_links, s.dt)

    @property
    def push(self) -> Array:
        """Forces (nv,) of its inequalities on the rates."""
        x = self.step.impulses[X, : len(self.rows)]
        return np.asarray(x @ self.rows / self.step.dt, np.float64)


def bounded_step_derivatives(made: Made) -> StepDerivatives:
    """Derivatives of a step with inequalities, by its active set.

    Args:
        made: That step.

    Raises:
        UnsupportedError: Something in the step is not known, or it is about to become another one.
    """
    solver, after, step = made.solver, made.after, made.step
    if step.report[APART]:
        raise UnsupportedError(f"bodies are taken out of each other{OTHERWISE}")
    differentiator, nv = step_differentiator_of(solver), len(solver.v)
    push = made.push
    place_by_all = rates_by_all = np.zeros((nv, 3 * nv))
    if len(step.contact_points):
        place_by_all, rates_by_all = np.split(_where_contacts_are_found(made), 2)
    rates, led = differentiator.prediction(push)
    size = max(1.0, float(np.abs(rates).max(initial=0.0)))
    leads = Leads(rates, led[nv:], rates_by_all, place_by_all)
    touching = _contacts_that_touch(made, leads)
    acting = Active(solver.mechanism, _most_rows(made, touching))
    _add_joint_rows(acting, made)
    pushes = np.zeros((nv, 3 * nv))
    if touching is not None:
        pushes = _add_contacts(acting, made, leads, touching)
    if acting.idle and not acting.count:
        raise UnsupportedError(acting.about_contact(acting.idle[0][0]))
    if acting.count:
        pushes = pushes + _change_of_forces(acting, leads, pushes, solver, size)
    sticking = None
    if touching is not None and solver.encoded.nc:
        sticking = _that_stick(made, touching, place_by_all)
    place, changes = np.zeros(len(solver.q)), led
    displace(solver.bodies, solver.q, rates, step.dt, place)
    if sticking is None and solver.encoded.nc:
        changes = _closed(made, push, size)
    changes = changes + changes[:, 2 * nv :] @ pushes
    if sticking is not None:
        where = Led(place, rates, changes[:nv], changes[nv:])
        changes = np.vstack(held_closing(differentiator, where, after, sticking))
    elif not solver.encoded.nc:
        _require_alike(made, place, rates, size)
    A, B = changes[:, : 2 * nv], changes[:, 2 * nv :]
    return StepDerivatives(A, B, after.q, after.v)


def _where_contacts_are_found(made: Made) -> Array:
    """What a prediction changes by (2 nv, 3 nv): place and rates, as motors pushed lately.

    They lead it no further than ``PREDICTION_LIMIT`` (``impulse_step.lead_by_motors``).
    """
    differentiator, solver = step_differentiator_of(made.solver), made.solver
    exerted, nv, dt = made.step.exerted.copy(), len(solver.v), made.step.dt
    _, changes = differentiator.prediction(np.zeros(nv))
    if not exerted.any():
        return changes
    led = changes[nv:, 2 * nv :] @ exerted
    reach = dt * solver.control[0]["length"] * solver.vectors[ONE_OVER_UNITS, :nv]
    furthest = int(np.argmax(reach * np.abs(led)))
    most = float(reach[furthest] * abs(led[furthest]))
    if most == 0.0:
        return changes
    share = min(1.0, PREDICTION_LIMIT / most)
    _, with_motors = differentiator.prediction(share * exerted)
    if share < 1.0:
        by_all = (with_motors[nv:] - changes[nv:])[furthest] / led[furthest]
        turned = np.outer(led, by_all)  # share led stays as long
        with_motors[nv:] -= turned
        with_motors[:nv] -= dt * turned
    return with_motors


def _closed(made: Made, push: Array, size: float) -> Array:
    """Changes (2 nv, 3 nv) at the end of a step of Euler's under forces push (nv,) besides.

    Raises:
        UnsupportedError: The step that was made is another one, by a share of rates of this size.
    """
    found = step_differentiator_of(made.solver).step(push)
    _require_alike(made, found.q, found.v, size)
    return np.hstack([found.A, found.B])


def _require_alike(made: Made, q: Array, v: Array, size: float) -> None:
    """Refuse a step that has led elsewhere than to a state, by a share of rates of this size.

    Raises:
        UnsupportedError: It has.
    """
    apart = np.concatenate([q - made.after.q, v - made.after.v])
    if np.abs(apart).max(initial=0.0) > ALIKE * size:
        if made.step.report[TAKEN] > 0.0:
            raise UnsupportedError(
                "the step would have gained energy by its length, which its budget took from it;"
                " give energy_budget=False or a shorter dt, or use central differences of step()"
            )
        raise UnsupportedError(
            f"the step is none of Euler's under the forces of its inequalities{OTHERWISE}"
        )


def _most_rows(made: Made, touching: "Touching | None") -> int:
    """How many rows may act in a step."""
    step, contacts = made.step, 0 if touching is None else len(touching.numbers)
    drives = np.count_nonzero(step.motor_rows["row"] >= 0)
    return int(drives) + int(np.count_nonzero(step.joint_limits["row"] >= 0)) + 6 * contacts


def _change_of_forces(
    acting: Active, leads: Leads, turned: Array, solver: Solver, size: float
) -> Array:
    """What forces (nv, 3 nv) on the rates change by with those of rows that act.

    Args:
        acting: These rows.
        leads: Where forces lead.
        turned: (nv, 3 nv) what forces on the rates change by as contacts move.
        solver: At the start of the step.
        size: Of rates.

    Raises:
        UnsupportedError: Rows do not do what they ask for, are about to act otherwise, or follow
            from others that ask for another.
    """
    of, m, nv = acting.arrays, acting.count, len(solver.v)
    e = Equations(
        np.zeros((m, nv)), np.zeros((m, m)), np.zeros((m, 3 * nv)), np.zeros((m, m)),
        np.zeros((m, 3 * nv)), np.zeros(m), np.zeros(m, np.int64), np.zeros((nv, 3 * nv)),
        np.zeros(REPORT),
    )  # fmt: skip
    with announce_compilation(put_answers):
        failure = put_answers(of, leads.changes, turned, e)
    if failure:
        raise UnsupportedError(acting.about(failure - 1))
    wanted, sides = of.rates[:m], of.sides[:m]
    admissible = _admissible(solver) if acting.idle else None
    for agreed in (False, True):
        if agreed:
            wanted, sides = Agreement(acting, leads, e.S, e.free, solver).reached(wanted, sides)
        with announce_compilation(solve_rows):
            rank = solve_rows(of, leads.rates, wanted, sides, e)
        contradiction, scale = 0.0, e.report[SCALE]
        if rank < m:
            admissible = _admissible(solver) if admissible is None else admissible
            contradiction = float(np.abs(e.right[rank:] @ admissible).max(initial=0.0))
        contradicts = contradiction > CONTRADICTS * scale or e.report[UNIQUE] > CONTRADICTS
        if e.report[OFF] <= ALIKE * size and not contradicts:
            break
    else:
        if e.report[OFF] > ALIKE * size:
            missed = np.nan_to_num(np.abs(of.rows[:m] @ leads.rates - wanted))
            worst = acting.rows_named([int(np.argmax(missed))])
            raise UnsupportedError(
                f"rows that hold do not hold what they ask for ({worst}){OTHERWISE}"
            )
        mixed = np.abs(e.N[:rank, rank:]).max(axis=1, initial=0.0) > ALIKE
        named = acting.rows_named(e.columns[np.append(mixed, np.ones(m - rank, bool))].tolist())
        raise UnsupportedError(
            f"rows that act follow from each other ({named}), so that their forces are not unique,"
            f" and what is asked of them contradicts itself beside this state{OTHERWISE}"
        )
    if admissible is not None:
        moved = leads.changes + leads.changes[:, 2 * nv :] @ (turned + e.pushes)
        most = np.abs(e.free).max()
        for k, off in acting.off_by_idle(moved):
            if np.abs(off @ admissible).max() > CONTRADICTS * most:
                raise UnsupportedError(acting.about_contact(k))
    return e.pushes


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


class AskedByMotors(NamedTuple):
    """What motors within their bounds ask for: rate = this - compliance * force. A motor a column.

    Attributes:
        rates: [rad/s or m/s].
        slopes: What they change by with the position of the joint,
        shares: and with the rate that forces alone lead to.
        compliance: Of servos, zero of other motors.
        beside: Whether the motor is about to be as fast as it may, or not any more.
    """

    rates: Array
    slopes: Array
    shares: Array
    compliance: Array
    beside: Mask


def asked_by_motors(
    motors: np.ndarray, positions: Array, free: Array | float, dt: float
) -> AskedByMotors:
    """What motors of joints ask of the rate at the end of a step, as ``put_motor_rows`` has it.

    Args:
        motors: (m,) records.
        positions: (m,) or (n, m) of their joints where the step starts.
        free: As many rates, that forces alone lead to; only asked for by a velocity gain below one.
        dt: [s]
    """
    velocity, gain = motors["velocity"], motors["position_gain"]
    stiffness, damping, fastest = motors["stiffness"], motors["damping"], motors["fastest"]
    through = damping + dt * stiffness
    servo = through > 0.0
    compliance = np.divide(1.0, through, out=np.zeros(len(motors)), where=servo)
    places = (stiffness != 0.0) | (gain != 0.0)  # others may be set to go nowhere
    away = np.where(places, motors["position"] - positions, 0.0)
    by_servo = compliance * (stiffness * away + damping * velocity)
    left = np.where(servo, 0.0, 1.0 - motors["velocity_gain"])
    wanted = velocity + left * (free - velocity) + gain * away / dt
    slopes = np.where(servo, -compliance * stiffness, -gain / dt)
    beside = ~servo & ((slopes != 0.0) | (left != 0.0))
    beside = beside & (np.abs(np.abs(wanted) - fastest) <= BESIDE)
    slow = servo | (np.abs(wanted) <= fastest)
    return AskedByMotors(
        np.where(servo, by_servo, np.clip(wanted, -fastest, fastest)),
        np.where(slow, slopes, 0.0),
        np.where(slow, left, 0.0),
        compliance,
        beside,
    )


class AskedByLimits(NamedTuple):
    """What limits of joints that push ask for. A limit a column.

    Attributes:
        rates: [rad/s or m/s].
        slopes: What they change by with the position of the joint.
        beyond: How far the joint is beyond the limit at the start of the step [rad or m].
    """

    rates: Array
    slopes: Array
    beyond: Array


def asked_by_limits(limits: np.ndarray, positions: Array, dt: float) -> AskedByLimits:
    """What limits of joints ask of the rate at the end of a step, where they push.

    Args:
        limits: (l,) records.
        positions: (l,) or (n, l) of their joints where the step starts.
        dt: [s]
    """
    lower, upper = limits["lower"], limits["upper"]
    beyond = np.maximum(lower - positions, positions - upper)
    way = np.where(positions >= 0.5 * (lower + upper), beyond, -beyond)
    inside = beyond <= 0.0
    return AskedByLimits(np.where(inside, -way / dt, 0.0), np.where(inside, -1.0 / dt, 0.0), beyond)


def _add_joint_rows(acting: Active, made: Made) -> None:
    """Add the rows of motors, friction and limits of joints that hold, and not just so.

    Raises:
        UnsupportedError: It says which row is not known, or about to change.
    """
    solver, after, step = made.solver, made.after, made.step
    x, dt, nv = step.impulses[X], step.dt, len(solver.v)
    motors, limits = (np.asarray(x) for x in (step.motor_rows, step.joint_limits))
    places = np.asarray(solver.axes)["q"]
    if np.any(acts := motors["row"] >= 0):
        _add_motors(acting, made, motors, acts)
    if not len(limits):
        return
    axes = places[limits["axis"]]
    room = np.minimum(after.q[axes] - limits["lower"], limits["upper"] - after.q[axes])
    pushes = (limits["row"] >= 0) & (x[limits["row"]] != 0.0)
    idle = ~pushes & (limits["axis"] >= 0)
    if np.any(beside := idle & (room <= BESIDE)):
        raise UnsupportedError(acting.about_axis(int(limits["axis"][beside][0])))
    if not np.any(pushes):
        return
    of_limits = asked_by_limits(limits, solver.q[axes], dt)
    for k in np.flatnonzero(pushes):
        axis = int(limits["axis"][k])
        _require_joint(axis)
        if of_limits.beyond[k] >= SHALLOW:
            name, beyond = rate_names(solver.mechanism)[axis], of_limits.beyond[k]
            raise UnsupportedError(f"'{name}' is {beyond:.3g} beyond its limit{OTHERWISE}")
        side = np.zeros(3 * nv)
        side[axis] = of_limits.slopes[k]
        force = float(x[limits["row"][k]] / dt)
        acting.hold(axis, side, float(of_limits.rates[k]), force, math.inf, math.nan)


def _add_motors(acting: Active, made: Made, motors: np.ndarray, acts: Mask) -> None:
    """Add the rows of motors and friction, of which some act.

    Raises:
        UnsupportedError: As of ``_add_joint_rows``.
    """
    solver, after, step = made.solver, made.after, made.step
    x, dt, nv = step.impulses[X], step.dt, len(solver.v)
    proper = (2 * np.arange(len(motors)) < len(motors))[acts]  # friction follows
    motors, places = motors[acts], np.asarray(solver.axes)["q"]
    for axis in motors["axis"]:
        _require_joint(int(axis))
    free, changes = np.zeros(nv), np.zeros((nv, 3 * nv))
    if np.any(motors["velocity_gain"] != 1.0):
        free, by_all = step_differentiator_of(solver).prediction(free)
        changes = by_all[nv:]
    asked = asked_by_motors(motors, solver.q[places[motors["axis"]]], free[motors["axis"]], dt)
    for k, motor in enumerate(motors):
        axis, force = int(motor["axis"]), x[motor["row"]] / dt
        if asked.beside[k]:
            raise UnsupportedError(acting.about_axis(axis))
        side = asked.shares[k] * changes[axis]
        side[axis] += asked.slopes[k]
        rate = float(asked.rates[k] - asked.compliance[k] * force)
        room = min(float(motor["force"]) - force, force - float(motor["least"]))
        if room > (1.0 - SATURATED) * motor["force"]:
            strength = float(motor["force"]) if proper[k] else math.nan
            n = acting.hold(axis, side, rate, force, room, strength)
            if asked.compliance[k]:
                acting.arrays.K[n, n] = float(asked.compliance[k])
        elif abs(after.v[axis] - rate) <= BESIDE:
            raise UnsupportedError(acting.about_axis(axis))


def _require_joint(axis: int) -> None:
    if axis < 0:
        raise UnsupportedError(
            f"a motor, friction or limit acts along an axis of a loop{OTHERWISE}"
        )


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


def _contacts_that_touch(made: Made, leads: Leads) -> Touching | None:
    """Those of the contacts of a step that push, or might; None for none."""
    solver, step, surroundings = made.solver, made.step, made.surroundings
    points, dt, moving = step.contact_points, step.dt, made.moving
    if not len(points) or surroundings is None:
        return None
    found, numbers = made.contacts, np.zeros(len(points), np.int64)
    with announce_compilation(list_touching):
        numbers = numbers[: list_touching(found, leads.rates, moving, numbers)]
    if not len(numbers):
        return None
    compliant = step.contact_rows["compliance"][numbers] > 0.0
    place, rows = np.zeros(len(solver.q)), contact_rows_of(solver)
    displace(solver.bodies, solver.q, moving, dt, place)

    def find(q: Array) -> np.ndarray:
        return surroundings.contact_points(q, moving, dt)

    finding = Finding(find, surroundings.detector(), moving, dt)
    varied = ContactVariations(rows, finding, place, points[numbers], compliant)
    return Touching(numbers, varied, rows)


def _that_stick(made: Made, touching: Touching, place_by_all: Array) -> Sticking | None:
    """Those of them that stay where they are while loops are closed; None for none.

    Args:
        made: The step.
        touching: Its contacts.
        place_by_all: (nv, m) changes of the configuration that they were found at.
    """
    points, states = made.step.contact_points, contact_states(made.step)
    rub = np.minimum(points["friction"], points["friction_across"])
    rub = np.where(made.step.contact_rows["compliance"][: len(rub)] > 0.0, 0.0, rub)  # these let go
    picked = [k for k, n in enumerate(touching.numbers) if states[n] == "sticking" and rub[n] > 0.0]
    if not picked:
        return None
    by_all = np.einsum("knj,km->njm", touching.varied.position_by_q[:, picked], place_by_all)
    return Sticking(points[touching.numbers[picked]], by_all, touching.rows)


def _pushing(made: Made, touching: Touching) -> PushingContacts:
    """What contacts push by, and along which rows.

    Raises:
        UnsupportedError: Loops hold the bodies of one of them to each other.
    """
    step, numbers, varied = made.step, touching.numbers, touching.varied
    points, n = step.contact_points[numbers], len(numbers)
    C = varied.C.reshape(-1, varied.C.shape[2])
    forces, mu = np.zeros((2, n, 6))
    found = PushingContacts(points, np.zeros(n), forces, mu, C, varied.by_q)
    with announce_compilation(put_pushing):
        failure = put_pushing(found, numbers, made.contacts)
    if failure:
        name = contact_names(points, made.solver.mechanism)[failure - 1]
        raise UnsupportedError(f"the {name} is one of bodies that loops hold{OTHERWISE}")
    return found


def _add_contacts(acting: Active, made: Made, leads: Leads, touching: Touching) -> Array:
    """Add the rows of contacts that push.

    A contact at rest counts as one that bodies come to: from the side where they are apart.

    Returns:
        What their forces on the rates (nv, 3 nv) change by as they move.

    Raises:
        UnsupportedError: It says which of them is not known, or about to change.
    """
    contacts, v, step = _pushing(made, touching), made.solver.v, made.step
    n, nv, m = len(contacts.forces), len(v), leads.changes.shape[1]
    by_force, by_all = leads.changes[:, 2 * nv :], (leads.rates_by_all, leads.place_by_all)
    led = LedBy(v, made.moving, leads.rates, by_force, *by_all, step.dt)
    found = ContactSlopes(
        np.zeros(n), np.zeros((n, m)), np.zeros((n, 6, m)), np.zeros((nv, nv)),
        np.zeros((n, 3), np.int64), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 6)),
        np.zeros((n, 6, 2)),
    )  # fmt: skip
    acting.touch = contacts, found, touching.varied
    with announce_compilation(put_contact_slopes):
        failure = put_contact_slopes(contacts, led, found)
    if failure:
        k, why = divmod(failure, 4)
        about = ABOUT_CONTACT if why == ABOUT_TO_CHANGE else GIVES_AND_BOUNCES_ABOUT
        raise UnsupportedError(about.format(acting.name(k)))
    with announce_compilation(put_rows_of_contacts):
        failure = put_rows_of_contacts(acting.arrays, contacts, found)
    if failure:
        name = acting.name(failure - 1)
        raise UnsupportedError(f"friction of the {name} is not against its slip{OTHERWISE}")
    return np.asarray(found.by_place @ leads.place_by_all, np.float64)
