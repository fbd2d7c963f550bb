"""What contacts that push ask for in a step, and what that changes by: the law at its active set.

Along its normal a contact asks to meet at the end of the step, to come off by its restitution, or
to give way by a spring and damper; along the others, of its bodies not to slide, or, sliding, for
a force against the slip.
"""

import math
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import call_stored, caller, helper, outlined
from bulletbridge.constraints.records import JointLimit, MotorRow
from bulletbridge.engine.records import SystemArrays
from bulletbridge.engine.step_derivatives import StepArrays, V, put_matrix, put_zeros
from bulletbridge.inequalities.arrays import MOVING, RECOVER, RESTING, ROOM
from bulletbridge.inequalities.contact_rows import ContactRows
from bulletbridge.inequalities.impulse_step import PREDICTION_LIMIT
from bulletbridge.inequalities.motor_limit_rows import SHALLOW, SLOWEST_BOUNCE
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.records import ContactPoint
from bulletbridge.numerics.complementarity_rows import RowBounds
from bulletbridge.numerics.many_sides import add_product
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import copy_into

CLEAR = 1e-9
"""Rate [m/s or rad/s] by which contacts must be clear of acting otherwise, and share of friction by
which they must be clear of sliding."""
TOUCHING = 1e-9
"""How far bodies that rest may be in each other, or apart, by rounding [m]. There is a kink: what
is apart comes back in a step, what is in each other stays so."""
SAME = 1e-10
"""How far rows may be from those of the step, for bodies that loops do not hold to each other."""
DEAD = 1e-14
"""Share of what moves most below which nothing moves along a row."""
CONES = (1, 2), (3, 1), (4, 2)
"""First row of those that friction along tangents, spinning and rolling act along; how many."""
(
    ABOUT_TO_CHANGE, GIVES_AND_BOUNCES, HELD_BY_LOOPS, NOT_COULOMBS, ROW_ABOUT_TO_CHANGE,
    JOINT_ABOUT_TO_CHANGE, JOINT_OF_LOOP, JOINT_BEYOND, TOO_DEEP, WHYS,
) = range(1, 11)  # fmt: skip
"""Why a contact, a row that acts, or an axis of a joint is not known; told as that many times its
number, and why."""
TOGETHER, RATES, PARTING = range(3)
"""Whether bodies move apart in a step; if so, whether this is of their rates, or of what moves
them."""
AWAY, SHARE, FURTHEST, AHEAD = range(4)
"""Of a step that is foreseen: how far it is from the one that was made; what share of what motors
exert leads to where contacts are found, and which rate is farthest then."""


class PushingContacts(NamedTuple):
    """Contacts that push, or might, each with six rows: normal, tangents, turns about these.

    Attributes:
        contact_points: (n,)
        compliance: (n,) rate along the normal that a force gives way by.
        forces: (n, 6) along the rows.
        mu: (n, 6) friction by row, zero of normals, and where there is none; becomes zero where
            nothing moves.
        C: (6 n, nv) rows.
        by_q: (nv, n, 4 + 6 nv) changes of gap, place and rows.
    """

    contact_points: Records[ContactPoint]
    compliance: Array
    forces: Array
    mu: Array
    C: Array
    by_q: Array


class LedBy(NamedTuple):
    """Where forces lead in a step.

    Attributes:
        v: (nv,) rates at its start,
        moving: (nv,) those that led to where contacts were found,
        rates: (nv,) and those before loops are closed.
        by_force: (nv, nv) changes of the latter by forces,
        rates_by_all: (nv, m) of the second by all,
        place_by_all: (nv, m) and of where contacts were found.
        dt: [s]
        recovery: Share of a penetration that these rates take back in the step; zero for none,
        fastest: and rate that they do not go beyond [m/s].
    """

    v: Array
    moving: Array
    rates: Array
    by_force: Array
    rates_by_all: Array
    place_by_all: Array
    dt: float
    recovery: float
    fastest: float


class ContactSlopes(NamedTuple):
    """What contacts ask for.

    Attributes:
        rates: (n,) along normals,
        sides: (n, m) and what these change by.
        at_rest: (n,) whether they rest, so near to a kink that little more than that is known.
        bent: (n, 6, m) what rates along the rows change by as the rows do.
        drawn: (6 n, nv) scratch: what is multiplied by changes of places, and of rates.
        by_place: (nv, nv) what forces on the rates change by, in a line for each way that places
            of contacts are displaced.
        slides: (n, 3) whether a cone of friction slides,
        used: (n, 3) what share of it is used,
        off: (n, 3) and how far it is off Coulomb's law where it slides, of the load.
        by_load: (n, 6) what forces that slide fall by with the load,
        by_slip: (n, 6, 2) and with the rates along the rows of their cone.
    """

    rates: Array
    sides: Array
    at_rest: Ints
    bent: Array
    drawn: Array
    by_place: Array
    slides: Ints
    used: Array
    off: Array
    by_load: Array
    by_slip: Array


class ContactsOfStep(NamedTuple):
    """Contacts of a step, and how it was made.

    Attributes:
        points: (n,)
        own: (n,) and more, their rows.
        rows: (rows, nv)
        bounds: (rows,) and more.
        impulses: As of ``arrays``,
        x: (rows,) those of them that exert forces.
        apart: ``TOGETHER`` or another.
        D: (2, rows, rows) and more: what rates along rows answer by; not known by links.
        by_links: Whether it was made by links.
        dt: [s]
    """

    points: Records[ContactPoint]
    own: Records[ContactRows]
    rows: Array
    bounds: Records[RowBounds]
    impulses: Array
    x: Array
    apart: int
    D: Array
    by_links: bool
    dt: float


class Ahead(NamedTuple):
    """A step that was made with inequalities, and where it leads before loops are closed.

    Attributes:
        targets: (1, targets) prescribed motions at its start.
        tau: (1, nv) forces on the rates but those of inequalities.
        t: [s]
        v: (nv,) rates at the start.
        end: (nq + nv + 1,) where it has led, as q, v, t.
        exerted: (nv,) what motors had pushed by when contacts were found.
        reach: (nv,) how far a rate moves what is farthest from its joint, in mechanism lengths,
        length: of this [m].
        contacts: Of the step.
        motor_rows: (n,) motors and friction of joints,
        joint_limits: (n,) and limits.
        forces: (1, nv) scratch.
        lead: (nv,) scratch.
        push: (nv,) receives forces of inequalities on the rates,
        rates: (nv,) those that it leads to,
        led: (2 nv, 3 nv) what positions and these change by at constant forces of inequalities,
        where: (2 nv, 3 nv) and what those change by that contacts were found at,
        found_at: (nq,) which is there,
        place: (nq,) where the rates lead,
        by_tau: (nv,) rates that forces but those of inequalities lead to, where motors ask by them,
        by_tau_by_all: (nv, 3 nv) and what these change by.
        numbers: (n,) contacts that push, or might,
        report: (AHEAD,)
    """

    targets: Array
    tau: Array
    t: float
    v: Array
    end: Array
    exerted: Array
    reach: Array
    length: float
    contacts: ContactsOfStep
    motor_rows: Records[MotorRow]
    joint_limits: Records[JointLimit]
    forces: Array
    lead: Array
    push: Array
    rates: Array
    led: Array
    where: Array
    found_at: Array
    place: Array
    by_tau: Array
    by_tau_by_all: Array
    numbers: Ints
    report: Array


@caller
def look_ahead(predict: Any, arrays: SystemArrays, s: StepArrays, ahead: Ahead) -> int:
    """Where a step leads before loops are closed; how many of its contacts push, or might.

    Args:
        predict: ``differentiate_prediction`` with its arrays, stored.
        arrays: Those, at the start of the step,
        s: in which it leaves what it finds.
        ahead: The step.
    """
    lead_on(predict, arrays, s, ahead)
    soft, touches = any_soft_motor(ahead.motor_rows), len(ahead.contacts.points) > 0
    leads = touches and lead_by_motors(ahead)
    limited = leads and ahead.report[SHARE] < 1.0
    if soft or limited or (touches and not leads):
        put_forces(ahead, 0.0, 0.0)
        call_stored(predict, (ahead.targets, ahead.forces, ahead.t, 1))
        put_matrix(ahead.where, 1.0, s.of_all.changes)
        if soft:
            copy_into(ahead.by_tau, s.vectors[V])
            put_matrix(ahead.by_tau_by_all, 1.0, s.of_all.changes[len(ahead.v) :])
    if leads:
        put_forces(ahead, ahead.report[SHARE], 0.0)
        call_stored(predict, (ahead.targets, ahead.forces, ahead.t, 1))
        if limited:
            take_lead_by_motors(ahead, s.of_all.changes)
        else:
            put_matrix(ahead.where, 1.0, s.of_all.changes)
    if touches:
        if ahead.contacts.apart == TOGETHER:
            copy_into(ahead.lead, ahead.contacts.impulses[MOVING, : len(ahead.v)])
        else:
            copy_into(ahead.lead, s.vectors[V])
        nq = len(ahead.place)
        displace(arrays.bodies, arrays.state[:nq], ahead.lead, ahead.contacts.dt, ahead.found_at)
    return list_touching(ahead)


@caller
def lead_on(predict: Any, arrays: SystemArrays, s: StepArrays, ahead: Ahead) -> int:
    """Where forces of all inequalities lead before loops are closed."""
    put_push(ahead)
    put_forces(ahead, 0.0, 1.0)
    call_stored(predict, (ahead.targets, ahead.forces, ahead.t, 0))
    take_ahead(arrays, s, ahead)
    return 0


@caller
def lead_apart(
    predict: Any, arrays: SystemArrays, s: StepArrays, ahead: Ahead, parting: Ahead
) -> int:
    """Where forces lead that also move bodies out of each other: positions alone follow them.

    Args:
        predict: As of ``look_ahead``,
        arrays: as there,
        s: as there.
        ahead: Where others lead.
        parting: Receives it.
    """
    nv, moving = len(ahead.v), ahead.contacts.impulses[MOVING]
    copy_into(parting.end, ahead.end)
    for k in range(nv):
        parting.end[len(ahead.place) + k] = ahead.rates[k] + moving[k]
    return lead_on(predict, arrays, s, parting)


@helper
def any_soft_motor(motor_rows: Records[MotorRow]) -> bool:
    """Whether a motor asks for a part of the rate that forces alone lead to."""
    for i in range(len(motor_rows)):
        if motor_rows[i].row >= 0 and motor_rows[i].velocity_gain != 1.0:
            return True
    return False


@outlined
def put_push(a: Ahead) -> None:
    """Forces of inequalities on the rates."""
    for j in range(len(a.push)):
        total = 0.0
        for i in range(len(a.contacts.rows)):
            total += a.contacts.x[i] * a.contacts.rows[i, j]
        a.push[j] = total / a.contacts.dt


@outlined
def put_forces(a: Ahead, share: float, pushes: float) -> None:
    """All forces on the rates with a share of what motors exert, and of all inequalities."""
    for j in range(len(a.push)):
        a.forces[0, j] = a.tau[0, j] + share * a.exerted[j] + pushes * a.push[j]


@outlined
def lead_by_motors(a: Ahead) -> bool:
    """Whether motors lead on to where contacts are found, and by what share of what they exert.

    They lead no further than ``PREDICTION_LIMIT`` (``impulse_step.lead_by_motors``).
    """
    nv, most, furthest = len(a.push), 0.0, 0
    for k in range(nv):
        total = 0.0
        for j in range(nv):
            total += a.led[nv + k, 2 * nv + j] * a.exerted[j]
        a.lead[k] = total
        far = a.contacts.dt * a.length * a.reach[k] * math.fabs(total)
        if far > most:
            furthest, most = k, far
    a.report[SHARE] = 1.0 if most == 0.0 else min(1.0, PREDICTION_LIMIT / most)
    a.report[FURTHEST] = furthest
    return most > 0.0


@outlined
def take_lead_by_motors(a: Ahead, with_motors: Array) -> None:
    """What contacts are found at changes by as motors lead there: what they lead by stays as long.

    Args:
        a: Has what it changes by without motors.
        with_motors: (2 nv, 3 nv) with their share.
    """
    nv, furthest = len(a.push), int(a.report[FURTHEST])
    for j in range(with_motors.shape[1]):
        turned = with_motors[nv + furthest, j] - a.where[nv + furthest, j]
        turned /= a.lead[furthest]
        for k in range(nv):
            a.where[k, j] = with_motors[k, j] - a.contacts.dt * (a.lead[k] * turned)
            a.where[nv + k, j] = with_motors[nv + k, j] - a.lead[k] * turned


@outlined
def take_ahead(arrays: SystemArrays, s: StepArrays, a: Ahead) -> None:
    """Where the step leads, as was predicted last, and how far that is from where it has led."""
    nv, nq, away, off = len(a.push), len(a.place), 0.0, 0.0
    put_matrix(a.led, 1.0, s.of_all.changes)
    for k in range(nv):
        a.rates[k] = s.vectors[V, k]
        away = max(away, math.fabs(a.rates[k] - a.end[nq + k]))
    displace(arrays.bodies, arrays.state[:nq], a.rates, a.contacts.dt, a.place)
    for k in range(nq):
        off = max(off, math.fabs(a.place[k] - a.end[k]))
    a.report[AWAY] = away if a.contacts.apart == RATES else max(away, off)


@outlined
def list_touching(a: Ahead) -> int:
    """Which contacts push, or might; how many."""
    count, s = 0, a.contacts
    for i in range(len(s.points)):
        n, by_rates, by_moving, parting = s.own[i].normal, 0.0, 0.0, 0.0
        for j in range(len(a.rates)):
            by_rates += s.rows[n, j] * a.rates[j]
            by_moving += s.rows[n, j] * a.lead[j]
            if s.apart != TOGETHER:
                parting += s.rows[n, j] * s.impulses[MOVING, j]
        by_rates, x = min(by_rates, by_rates + parting), s.x[n]
        left = s.points[i].gap + s.dt * (by_rates - by_moving)
        if s.own[i].compliance > 0.0:  # springs back slower than it is moved out: pushes nothing
            left = s.dt * (by_rates + s.impulses[ROOM, n])
        may = left <= CLEAR * s.dt and (s.by_links or s.D[0, n, n] > 0.0)
        if s.apart != TOGETHER:
            x = max(x, s.impulses[RESTING, n], -s.impulses[RECOVER, n])
        if x > 0.0 or may:
            a.numbers[count] = i
            count += 1
    return count


@outlined
def put_pushing(c: PushingContacts, numbers: Ints, s: ContactsOfStep) -> int:
    """What contacts of a step push by; 0, or which is the first that is not known, and why.

    Args:
        c: Receives compliance, forces and friction; has C.
        numbers: (n,) of contacts among those of the step.
        s: Contacts of that.
    """
    for k in range(len(c.compliance)):
        of = s.own[int(numbers[k])]
        c.compliance[k] = s.dt * of.compliance
        for r in range(6):
            n = of.normal if r == 0 else of.spin
            if r == 1 or r == 2:
                n = of.tangents + r - 1 if of.tangents >= 0 else -1
            elif r > 3:
                n = of.roll + r - 4 if of.roll >= 0 else -1
            c.forces[k, r] = c.mu[k, r] = 0.0
            if n < 0:
                continue
            for j in range(s.rows.shape[1]):
                if not math.fabs(c.C[6 * k + r, j] - s.rows[n, j]) <= SAME:
                    return WHYS * k + HELD_BY_LOOPS
            c.forces[k, r] = s.x[n] / s.dt
            c.mu[k, r] = s.bounds[n].mu if r > 0 else 0.0
    return 0


@outlined
def put_contact_slopes(c: PushingContacts, led: LedBy, s: ContactSlopes) -> int:
    """What contacts ask for; 0, or which is the first that is not known, and why.

    Args:
        c: Contacts.
        led: Where forces lead.
        s: Receives it.
    """
    n, total = len(c.contact_points), 0.0
    for i in range(len(led.v)):
        total += led.by_force[i, i]
    put_zeros(s.by_place)
    put_zeros(s.drawn)
    add_product(1.0, c.C[: 6 * n], 0, led.by_force, s.drawn)
    for k in range(n):
        for r in range(6):
            acts, answers = r == 0 or c.mu[k, r] != 0.0, s.drawn[6 * k + r]
            if acts and not moves(c, answers, 6 * k + r, total):
                c.mu[k, r] = 0.0
            if acts:
                bend(c, led, s, k, r)
            else:
                for i in range(len(answers)):
                    answers[i] = 0.0
        for cone in range(len(CONES)):
            put_cone(c, led, s, k, cone)
    bent = s.bent.reshape((6 * n, s.bent.shape[2]))
    put_zeros(bent)
    add_product(1.0, s.drawn, 0, led.place_by_all, bent)
    put_zeros(s.drawn[: 2 * n])
    put_zeros(s.sides)
    for k in range(n):
        s.rates[k], s.at_rest[k] = 0.0, 0
        failure = put_normal(c, led, s, k)
        if failure != 0:
            return WHYS * k + failure
    add_product(1.0, s.drawn[:n], 0, led.place_by_all, s.sides)
    add_product(1.0, s.drawn[n : 2 * n], 0, led.rates_by_all, s.sides)
    return 0


@helper
def along(c: PushingContacts, row: int, v: Array) -> float:
    """Rates (nv,) along a row."""
    total = 0.0
    for j in range(len(v)):
        total += c.C[row, j] * v[j]
    return total


@helper
def moves(c: PushingContacts, answers: Array, row: int, total: float) -> bool:
    """Whether a force along a row, which rates (nv,) answer to, moves anything along it."""
    answer, length = 0.0, 0.0
    for i in range(len(answers)):
        answer += c.C[row, i] * answers[i]
        length += c.C[row, i] * c.C[row, i]
    return answer > DEAD * length * total


@helper
def bend(c: PushingContacts, led: LedBy, s: ContactSlopes, k: int, r: int) -> None:
    """What a rate along a row changes by as it does with places, and its force on the rates."""
    nv, force, drawn = len(led.v), c.forces[k, r], s.drawn[6 * k + r]
    for i in range(nv):
        slopes, by_place, total = c.by_q[i, k, 4 + nv * r : 4 + nv * (r + 1)], s.by_place[i], 0.0
        for j in range(nv):
            total += slopes[j] * led.rates[j]
        for j in range(nv):
            by_place[j] += force * slopes[j]
        drawn[i] = total


@helper
def put_normal(c: PushingContacts, led: LedBy, s: ContactSlopes, k: int) -> int:
    """What a contact asks of its rate along the normal, and what that changes by; why not, or 0.

    The latter as what changes of places, and of rates, are to be multiplied by.
    """
    nv, contact, dt = len(led.v), c.contact_points[k], led.dt
    by_place, by_rates = s.drawn[k], s.drawn[len(c.contact_points) + k]
    gives, restitution = c.compliance[k] > 0.0, contact.restitution
    approach, led_to = along(c, 6 * k, led.v), along(c, 6 * k, led.moving)
    slack = min(-contact.gap / dt, -approach - SLOWEST_BOUNCE)
    bounces = restitution > 0.0 and slack > 0.0
    if restitution > 0.0 and math.fabs(slack) <= CLEAR:
        return ABOUT_TO_CHANGE
    if bounces and gives:
        return GIVES_AND_BOUNCES
    left, share = contact.gap - dt * led_to, 1.0
    parts, parting = False, -led.recovery * left / dt
    if led.recovery > 0.0 and left < -SHALLOW and not gives:
        if not parting < led.fastest - CLEAR:
            return TOO_DEEP
        if bounces and math.fabs(parting + restitution * approach) <= CLEAR:
            return ABOUT_TO_CHANGE
        parts = not bounces or parting > -restitution * approach
        bounces = bounces and not parts
    if math.fabs(left) <= SHALLOW and c.forces[k, 0] > 0.0:
        s.at_rest[k] = 0 if gives or parts or bounces else 1
    if gives:
        within = dt * contact.stiffness * c.compliance[k]  # while it is pressed
        if within < 1.0 - CLEAR and math.fabs(left) <= CLEAR * dt:
            return ABOUT_TO_CHANGE
        share = within if left < 0.0 else 1.0
    elif parts:
        share = led.recovery
    elif left < -TOUCHING and not bounces:  # it stays so, whatever is changed by little
        return 0
    if bounces:
        s.rates[k], share = -restitution * approach, -restitution
    else:
        left = left if gives or parts else max(left, 0.0)
        s.rates[k] = -share * left / dt - c.compliance[k] * c.forces[k, 0]
    for i in range(nv):
        drawn = 0.0 if bounces else -c.by_q[i, k, 0] / dt
        for j in range(nv):
            rate = led.v[j] if bounces else led.moving[j]
            drawn += c.by_q[i, k, 4 + j] * rate
        by_place[i] = share * drawn
        if bounces:
            s.sides[k, nv + i] = share * c.C[6 * k, i]
        else:
            by_rates[i] = share * c.C[6 * k, i]
    return 0


@helper
def put_cone(c: PushingContacts, led: LedBy, s: ContactSlopes, k: int, cone: int) -> None:
    """Friction of a contact along some of its rows."""
    first, count = CONES[cone]
    load, most, size, used = c.forces[k, 0], 0.0, 0.0, 0.0
    s.slides[k, cone], s.used[k, cone], s.off[k, cone] = 0, 0.0, 0.0
    for r in range(first, first + count):
        mu, slip = c.mu[k, r], along(c, 6 * k + r, led.rates)
        most, size = max(most, mu), size + (mu * slip) * (mu * slip)
        if mu > 0.0:
            used += (c.forces[k, r] / mu) * (c.forces[k, r] / mu)
    size = math.sqrt(size)
    if not load > 0.0 or not most > 0.0:
        return
    s.used[k, cone] = math.sqrt(used) / load
    if not size > CLEAR * most:
        return
    s.slides[k, cone] = 1
    for r in range(first, first + count):
        mu = c.mu[k, r]
        way = mu * along(c, 6 * k + r, led.rates) / size
        s.by_load[k, r] = mu * way
        if mu > 0.0:
            s.off[k, cone] = max(s.off[k, cone], math.fabs(c.forces[k, r] / load + mu * way))
        for q in range(count):
            other = c.mu[k, first + q]
            across = -way * (other * along(c, 6 * k + first + q, led.rates) / size)
            across += 1.0 if first + q == r else 0.0
            s.by_slip[k, r, q] = load / size * mu * other * across
