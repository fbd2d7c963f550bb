"""Parts of a step with motors, limits and contacts around its complementarity problem."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.dense import ask_forces, forces_less_bias, put_bias
from bulletbridge.engine.records import (
    ACCELERATION,
    ONE_OVER_UNITS,
    Arrays,
)
from bulletbridge.inequalities.arrays import WITH_MOTORS, WITHOUT_MOTORS
from bulletbridge.inequalities.contact_rows import ContactRows
from bulletbridge.inequalities.impulses import InequalityProblem
from bulletbridge.mechanism.records import ContactPoint, StickingPoint
from bulletbridge.numerics.projection import inner
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import put, vec

PREDICTION_LIMIT = 1e-4
"""Largest way [m] by which motors lead to where contacts are found, of anything as far from a joint
as the mechanism is long."""
STICKING = 0.999
"""Share of the largest friction up to which a contact sticks while the loops are closed."""


class Pushing(NamedTuple):
    """What forces do, by factors of one kind.

    Attributes:
        predict_velocity: (a, f, q, v, tau) v at the end of the step by forces and constraints.
        push_by_motors: (a, f, tau, v) turns v without motors into those with them.
    """

    predict_velocity: Callable[..., None]
    push_by_motors: Callable[..., None]


def pushing(move_by: Callable[..., None]) -> Pushing:
    """The helpers of what forces do, by factors of one kind.

    Args:
        move_by: (a, f, x) forces (nv,) into what they do to the admissible velocities, in place.
    """

    @outlined
    def predict_velocity(a: Arrays, f: Any, q: Array, v: Array, tau: Array) -> None:
        """Velocities that forces and constraints alone would give at the end of the step.

        Bias forces at the state may be at hand, from the end of the step before or a prediction.
        """
        vdot = a.vectors[ACCELERATION, : len(v)]
        if a.control.biased == 0:
            ask_forces(a, q, v)
            put_bias(a, v)
        forces_less_bias(a, q, v, tau, vdot)
        move_by(a, f, vdot)
        for k in range(len(v)):
            v[k] += a.control.dt * vdot[k]

    @helper
    def push_by_motors(a: Arrays, f: Any, tau: Array, v: Array) -> None:
        """Turn velocities (nv,) without motors into those with them; all else is the same.

        ``tau`` (PREDICTIONS, nv): forces of both.
        """
        vdot = a.vectors[ACCELERATION, : len(v)]
        for k in range(len(v)):
            vdot[k] = tau[WITH_MOTORS, k] - tau[WITHOUT_MOTORS, k]
        move_by(a, f, vdot)
        for k in range(len(v)):
            v[k] += a.control.dt * vdot[k]

    return Pushing(predict_velocity, push_by_motors)


@helper
def mean_rate(h: InequalityProblem, i: int, before: Array, after: Array) -> float:
    """Mean of the rates of row i before and after: what constraints forbid of it is not in them."""
    axis = int(h.axes[i])
    if axis >= 0:
        return 0.5 * (before[axis] + after[axis])
    return 0.5 * (inner(h.raw, i, before) + inner(h.raw, i, after))


@outlined
def impulsive_work(
    h: InequalityProblem, first: int, last: int, before: Array, after: Array
) -> tuple[float, float]:
    """Work [J] of rows up to ``first``, and from there: impulses along mean velocities."""
    given = met = 0.0
    for i in range(first):
        given += h.problem.x[i] * mean_rate(h, i, before, after)
    for i in range(first, last):
        met += h.problem.x[i] * mean_rate(h, i, before, after)
    return given, met


@outlined
def largest_work(h: InequalityProblem, first_unilateral: int, before: Array, after: Array) -> float:
    """Largest work [J] of motors and constraints with a force limit, within their bounds.

    Rows up to ``first_unilateral`` are theirs, as ``build_rows`` has left them.
    """
    total = 0.0
    for i in range(first_unilateral):
        bound, rate = h.problem.bounds[i], mean_rate(h, i, before, after)
        total += max(min(max(h.problem.x[i], bound.lower), bound.upper) * rate, 0.0)
    return total


@helper
def lead_by_motors(a: Arrays, with_motors: Array, v: Array) -> None:
    """Let motors lead a prediction v (nv,) without them, as far as ``PREDICTION_LIMIT``.

    What is light would go far through what stops it, and contacts would be those of there.
    """
    led, reach = 0.0, a.control.dt * a.control.length
    for k in range(len(v)):
        rate = math.fabs(with_motors[k] - v[k])
        led = max(led, reach * rate * a.vectors[ONE_OVER_UNITS, k])
    share = PREDICTION_LIMIT / led if led > PREDICTION_LIMIT else 1.0
    for k in range(len(v)):
        v[k] += share * (with_motors[k] - v[k])


@helper
def list_sticking(
    x: Array,
    contact_points: Records[ContactPoint],
    contact_rows: Records[ContactRows],
    sticking_points: Records[StickingPoint],
) -> int:
    """List the contacts that carry load and do not slide, for the filter; return how many."""
    count = 0
    for i in range(len(contact_points)):
        contact, rows = contact_points[i], contact_rows[i]
        mu, across, load = contact.friction, contact.friction_across, x[rows.normal]
        if not load > 0.0 or not mu > 0.0 or not across > 0.0 or rows.compliance > 0.0:
            continue
        first, second = x[rows.tangents] / mu, x[rows.tangents + 1] / across
        if first * first + second * second > (STICKING * load) ** 2:
            continue
        point = sticking_points[count]
        point.body_a, point.body_b, point.count = contact.body_a, contact.body_b, 3
        put(point.position, vec(contact.position))
        put(point.normal, vec(contact.normal))
        count += 1
    return count
