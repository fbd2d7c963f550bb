"""What contacts that push ask for in a step, and what that changes by: the law at its active set.

Along its normal a contact asks to meet at the end of the step, to come off by its restitution, or
to give way by a spring and damper; along the others, of its bodies not to slide, or, sliding, for
a force against the slip.
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.inequalities.arrays import ROOM, X
from bulletbridge.inequalities.contact_rows import ContactRows
from bulletbridge.inequalities.motor_limit_rows import SHALLOW, SLOWEST_BOUNCE
from bulletbridge.mechanism.records import ContactPoint
from bulletbridge.numerics.complementarity_rows import RowBounds
from bulletbridge.numerics.records import Array, Ints, Records

CLEAR = 1e-6
"""Rate [m/s or rad/s] by which contacts must be clear of acting otherwise, and share of friction by
which they must be clear of sliding."""
SAME = 1e-10
"""How far rows may be from those of the step, for bodies that loops do not hold to each other."""
DEAD = 1e-14
"""Share of what moves most below which nothing moves along a row."""
CONES = (1, 2), (3, 1), (4, 2)
"""First row of those that friction along tangents, spinning and rolling act along; how many."""
ABOUT_TO_CHANGE, GIVES_AND_BOUNCES = 1, 2
"""Why a contact is not known."""


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
    """

    v: Array
    moving: Array
    rates: Array
    by_force: Array
    rates_by_all: Array
    place_by_all: Array
    dt: float


class ContactSlopes(NamedTuple):
    """What contacts ask for; all zero before.

    Attributes:
        rates: (n,) along normals,
        sides: (n, m) and what these change by.
        bent: (n, 6, m) what rates along the rows change by as the rows do.
        by_place: (nv, nv) what forces on the rates change by with where contacts are found.
        slides: (n, 3) whether a cone of friction slides,
        used: (n, 3) what share of it is used,
        off: (n, 3) and how far it is off Coulomb's law where it slides, of the load.
        by_load: (n, 6) what forces that slide fall by with the load,
        by_slip: (n, 6, 2) and with the rates along the rows of their cone.
    """

    rates: Array
    sides: Array
    bent: Array
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
        impulses: As of ``arrays``.
        D: (2, rows, rows) and more: what rates along rows answer by; not known by links.
        by_links: Whether it was made by links.
        dt: [s]
    """

    points: Records[ContactPoint]
    own: Records[ContactRows]
    rows: Array
    bounds: Records[RowBounds]
    impulses: Array
    D: Array
    by_links: bool
    dt: float


@kernel
def list_touching(s: ContactsOfStep, rates: Array, moving: Array, numbers: Ints) -> int:
    """Which contacts push, or might; how many.

    Args:
        s: Contacts.
        rates: (nv,) before loops are closed,
        moving: (nv,) and those that led to where contacts were found.
        numbers: (n,) receives them.
    """
    count = 0
    for i in range(len(s.points)):
        n, by_rates, by_moving = s.own[i].normal, 0.0, 0.0
        for j in range(len(rates)):
            by_rates += s.rows[n, j] * rates[j]
            by_moving += s.rows[n, j] * moving[j]
        left = s.points[i].gap + s.dt * (by_rates - by_moving)
        if s.own[i].compliance > 0.0:  # springs back slower than it is moved out: pushes nothing
            left = s.dt * (by_rates + s.impulses[ROOM, n])
        may = left <= CLEAR * s.dt and (s.by_links or s.D[0, n, n] > 0.0)
        if s.impulses[X, n] > 0.0 or may:
            numbers[count] = i
            count += 1
    return count


@kernel
def put_pushing(c: PushingContacts, numbers: Ints, s: ContactsOfStep) -> int:
    """What contacts of a step push by; 0, or 1 and the number of one whose bodies loops hold.

    Args:
        c: Receives compliance, forces and friction, zero before; has C.
        numbers: (n,) of contacts among those of the step.
        s: Contacts of that.
    """
    for k in range(len(numbers)):
        of = s.own[int(numbers[k])]
        c.compliance[k] = s.dt * of.compliance
        for r in range(6):
            n = of.normal if r == 0 else of.spin
            if r == 1 or r == 2:
                n = of.tangents + r - 1 if of.tangents >= 0 else -1
            elif r > 3:
                n = of.roll + r - 4 if of.roll >= 0 else -1
            if n < 0:
                continue
            for j in range(s.rows.shape[1]):
                if not math.fabs(c.C[6 * k + r, j] - s.rows[n, j]) <= SAME:
                    return k + 1
            c.forces[k, r] = s.impulses[X, n] / s.dt
            c.mu[k, r] = s.bounds[n].mu if r > 0 else 0.0
    return 0


@kernel
def put_contact_slopes(c: PushingContacts, led: LedBy, s: ContactSlopes) -> int:
    """What contacts ask for; 0, or of the first that is not known four times its number, and why.

    Args:
        c: Contacts.
        led: Where forces lead.
        s: Receives it.
    """
    nv, total = len(led.v), 0.0
    for i in range(nv):
        total += led.by_force[i, i]
    for k in range(len(c.contact_points)):
        for r in range(6):
            bend(c, led, s, k, r)
            if not moves(c, led, 6 * k + r, total):
                c.mu[k, r] = 0.0
        failure = put_normal(c, led, s, k)
        if failure != 0:
            return 4 * k + failure
        for cone in range(len(CONES)):
            put_cone(c, led, s, k, cone)
    return 0


@helper
def along(c: PushingContacts, row: int, v: Array) -> float:
    """Rates (nv,) along a row."""
    total = 0.0
    for j in range(len(v)):
        total += c.C[row, j] * v[j]
    return total


@helper
def moves(c: PushingContacts, led: LedBy, row: int, total: float) -> bool:
    """Whether a force along a row moves anything along it."""
    answer, length = 0.0, 0.0
    for i in range(len(led.v)):
        answer += c.C[row, i] * along(c, row, led.by_force[i])
        length += c.C[row, i] * c.C[row, i]
    return answer > DEAD * length * total


@helper
def bend(c: PushingContacts, led: LedBy, s: ContactSlopes, k: int, r: int) -> None:
    """What a rate along a row changes by as it does, and its force on the rates."""
    nv, force = len(led.v), c.forces[k, r]
    for i in range(nv):
        drawn = 0.0
        for j in range(nv):
            slope = c.by_q[i, k, 4 + nv * r + j]
            drawn += slope * led.rates[j]
            s.by_place[j, i] += force * slope
        if drawn != 0.0:
            for m in range(s.bent.shape[2]):
                s.bent[k, r, m] += drawn * led.place_by_all[i, m]


@helper
def put_normal(c: PushingContacts, led: LedBy, s: ContactSlopes, k: int) -> int:
    """What a contact asks of its rate along the normal, and what that changes by; why not, or 0."""
    nv, contact, dt = len(led.v), c.contact_points[k], led.dt
    gives, restitution = c.compliance[k] > 0.0, contact.restitution
    approach, led_to = along(c, 6 * k, led.v), along(c, 6 * k, led.moving)
    slack = min(-contact.gap / dt, -approach - SLOWEST_BOUNCE)
    bounces = restitution > 0.0 and slack > 0.0
    if restitution > 0.0 and math.fabs(slack) <= CLEAR:
        return ABOUT_TO_CHANGE
    if bounces and gives:
        return GIVES_AND_BOUNCES
    left, share = contact.gap - dt * led_to, 1.0
    if gives:
        within = dt * contact.stiffness * c.compliance[k]  # while it is pressed
        if within < 1.0 - CLEAR and math.fabs(left) <= CLEAR * dt:
            return ABOUT_TO_CHANGE
        share = within if left < 0.0 else 1.0
    elif left < -SHALLOW and not bounces:  # at rest they are in each other by rounding
        return 0
    if bounces:
        s.rates[k], share = -restitution * approach, -restitution
    else:
        left = left if gives else max(left, 0.0)
        s.rates[k] = -share * left / dt - c.compliance[k] * c.forces[k, 0]
    for i in range(nv):
        drawn = 0.0 if bounces else -c.by_q[i, k, 0] / dt
        for j in range(nv):
            rate = led.v[j] if bounces else led.moving[j]
            drawn += c.by_q[i, k, 4 + j] * rate
        normal = c.C[6 * k, i]
        for m in range(s.sides.shape[1]):
            of_rates = 0.0 if bounces else normal * led.rates_by_all[i, m]
            s.sides[k, m] += share * (drawn * led.place_by_all[i, m] + of_rates)
        if bounces:
            s.sides[k, nv + i] += share * normal
    return 0


@helper
def put_cone(c: PushingContacts, led: LedBy, s: ContactSlopes, k: int, cone: int) -> None:
    """Friction of a contact along some of its rows."""
    first, count = CONES[cone]
    load, most, size, used = c.forces[k, 0], 0.0, 0.0, 0.0
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
