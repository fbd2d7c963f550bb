"""Check that forces can have made the rates at the end of a step; it takes no factors.

With T the kinetic energy, W the work that can have been done meanwhile and T_d the least kinetic
energy at which prescribed motions are met,

    T₁ <= (1 + excess) (T₀ + W + T_d) + floor

must hold. Next to singular positions the kinetic energy must not be much less, either, than it was
and what acts can have taken: rates are lost where a step ends off the way that it is on, or starts
with rates with which no motion goes on.

W is what weights have fallen by, or would have along the mean of the rates at both ends, which may
be those before the configuration was corrected; the step times the larger power, at its start and
at its end, of springs and applied forces along that mean; and what bounded forces have done; what
only takes energy, as dampers, limits, contacts and constraints at rest, gives nothing. Twists and
inertias of the bodies are all that enters, so that errors of factors, of iterations and of
corrections show. Elsewhere steps that were not guarded and whose rates have not grown are not
looked at.
"""

import math
from collections.abc import Callable
from typing import Any

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.dense import (
    ask_forces,
    composite_inertias_apart,
    filter_velocity,
    kinematics_apart,
    put_bias,
    put_bias_at_hand,
    script_elements,
)
from bulletbridge.engine.records import (
    BIAS,
    EULER,
    FORCE,
    LEAPT,
    LEAST,
    MEAN,
    MODIFIED_EULER,
    ONE_OVER_UNITS,
    RATES_LOST,
    START_Q,
    START_V,
    STILL,
    VERLET,
    Arrays,
    Control,
    Factors,
    Instant,
)
from bulletbridge.mechanism.bending import rates_of
from bulletbridge.mechanism.dynamics import is_damped, joint_forces
from bulletbridge.mechanism.inertias import own_inertia
from bulletbridge.mechanism.kinematics import axis_twist, pose_twist
from bulletbridge.mechanism.records import Beam, Body, Pose, Station
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import (
    ZERO,
    add,
    apply,
    cross,
    dot,
    mat,
    momentum,
    power,
    put,
    scale,
    transpose,
    vec,
    velocity_at,
)

EXCESS, MOST_EXCESS = 0.03, 0.25
"""Share of the kinetic energy that a step may have too much before it is tried in parts, and before
it is given up. What a resolved step adds without cause goes with the square of the angle that it
turns by: inertial forces and the correction of steps of order 1 stand for a whole step where they
are at its start. For a sixth of a radian that is 0.03; with a tenth, mechanisms that turn by half
a radian a step still gained at every step. A quarter is more than the finest parts can add."""
EXCESS_WITH_INEQUALITIES = 1.0
"""The same of steps with motors, limits and contacts, which are Bullet's as long as they can be. Of
them those are judged whose rates have grown by ``GROWN``, and so their energy: unless some cause
has given it, or inertias have fallen to half in a step, they are tried in parts. The finest turn by
a 512th, where nothing is left that could add a quarter."""
GROWN = 2.0
"""Times the sum of the squares of the rates, in radians or lengths, from which a step is judged."""
COARSE, GROWN_COARSELY = 0.25, 1.05
"""Root of that sum times the step [rad or lengths] from which steps are judged that far sooner, and
when the kinetic energy has grown as much."""
LOST = 0.01
"""Share of the kinetic energy that a step next to a singular position may gain or lose without
cause, and the square of the angle that it turns by besides, as of ``EXCESS``."""
CROSSING = 1e-3
"""Weakest row over the strongest, relative to the largest one met, at an end of a step below which
it is next to a singular position."""
SAG = 1e-5
"""Share of all weights times the length within which a chain at its reach has any energy: it bends
by the root of the gap of 1e-12 that counts as closed."""
NEVER_JUDGED = 1e-6
"""Displacement in a step [rad or lengths] that comes of round-off."""


@outlined
def squares(over: Array, before: Array, after: Array) -> tuple[float, float]:
    """Sums of the squares of rates before and after, in units: times ``over`` (nv,)."""
    slow = fast = 0.0
    for k in range(len(after)):
        slow += (over[k] * before[k]) ** 2
        fast += (over[k] * after[k]) ** 2
    return slow, fast


@helper
def ways_squared(a: Arrays, before: Array, after: Array) -> tuple[float, float]:
    """Squares of what rates before and after lead to in a step [rad or lengths].

    The sums are made out of line: inlined, they slow down what is around them.
    """
    slow, fast = squares(a.vectors[ONE_OVER_UNITS, : len(after)], before, after)
    dt2 = a.control.dt * a.control.dt
    return dt2 * slow, dt2 * fast


@helper
def leaps(a: Arrays, before: float, after: float, energy: float) -> bool:
    """Whether a step is to be judged: it was guarded, or it ends much faster than it began.

    Args:
        a: The system.
        before: Of ``ways_squared``.
        after: Likewise.
        energy: Kinetic energy at the end [J]; that at the start is in ``control.kinetic``. 0 if it
            is not known.
    """
    c, grown = a.control, GROWN
    if after > COARSE * COARSE:
        grown = GROWN_COARSELY
        if c.kinetic > 0.0 and energy > grown * c.kinetic:
            return True
    return (after > grown * before or c.guarded > 0) and after > NEVER_JUDGED * NEVER_JUDGED


@outlined
def kinetic_energy_of_bodies(a: Arrays, v: Array) -> float:
    """Kinetic energy [J] at the rates v (nv,), at the poses and inertias at hand, body by body.

    Leaves the twists in the poses.
    """
    put_bias(a, v)
    total = 0.0
    for i in range(1, len(a.bodies)):
        twist = pose_twist(a.poses[i])
        total += 0.5 * power(momentum(own_inertia(a.poses[i]), twist), twist)
    for k in range(len(v)):
        total += 0.5 * a.axes[k].armature * v[k] * v[k]
    for i in range(len(a.beams)):
        beam, body = a.beams[i], a.bodies[a.beams[i].body]
        total += bending_energy(beam, body, a.stations, a.poses[body.parent], v)
    return total


@helper
def bending_energy(
    beam: Beam, body: Body, stations: Records[Station], root: Pose, v: Array
) -> float:
    """What bending adds to the kinetic energy of stations that the root carries rigidly [J]."""
    total = 0.0
    for i in range(beam.first, beam.tip):
        station = stations[i]
        carried = velocity_at(pose_twist(root), vec(station.p))
        bent = apply(transpose(mat(station.D)), rates_of(body, v))
        total += station.mass * dot(bent, add(carried, scale(0.5, bent)))
    return total


@helper
def height_of_weights(a: Arrays) -> float:
    """Potential energy [J] of all weights, at the inertias at hand."""
    g, total = vec(a.control.gravity), 0.0
    for i in range(len(a.poses)):
        pose = a.poses[i]
        total -= dot(g, vec(pose.mc)) + pose.m * dot(g, vec(pose.origin))
    return total


@helper
def force_of_weights(a: Arrays, k: int) -> float:
    """What weights exert along axis k, with the inertias that bodies carry here [N or N m]."""
    g, axis = vec(a.control.gravity), a.axes[k]
    pose = a.poses[axis.body]
    moment, force = cross(vec(pose.carried_mc), g), scale(pose.carried_m, g)
    return power((moment, force), axis_twist(axis))


@outlined
def power_of_weights(a: Arrays, v: Array) -> float:
    """v·F [W] with the inertias that bodies carry at this configuration."""
    total = 0.0
    for k in range(len(v)):
        total += v[k] * force_of_weights(a, k)
    return total


@outlined
def largest_power(a: Arrays, q: Array, rates: Array, tau: Array) -> float:
    """Power [W] along rates of springs, elements and the best line of tau, at the poses of q."""
    nv = len(rates)
    still, forces, h = a.vectors[STILL], a.vectors[FORCE, :nv], a.vectors[BIAS]
    for k in range(len(still)):
        still[k] = 0.0
    put(a.poses[0].av, ZERO)  # without weight
    put_bias_at_hand(a, still)
    most = -math.inf
    for i in range(len(tau)):
        joint_forces(a.axes, q, still[:nv], tau[i], forces)
        total = 0.0
        for k in range(nv):
            total += (forces[k] - h[k]) * rates[k]
        most = max(most, total)
    return most


@outlined
def pose_all(a: Arrays, instant: Instant, q: Array) -> None:
    """Poses and inertias at q, and what elements are prescribed then."""
    kinematics_apart(a, q)
    if a.control.driven > 0:
        script_elements(a, instant)
    composite_inertias_apart(a)


@helper
def crosses(c: Control, before: float, after: float) -> bool:
    """Whether a step begins or ends next to a singular position, by its margins there."""
    c.clear = max(c.clear, before, after)
    return min(before, after) < CROSSING * c.clear


@outlined
def judge_balance(
    a: Arrays, start: Instant, end: Instant, q: Array, v: Array, tau: Array, most_lost: float
) -> None:
    """Refuse a step from START_Q and START_V that has made rates, or lost what nothing has taken.

    Nothing is told of what is driven or damped, which takes what it will, nor of modified
    integration, which never corrects. Where steps that lose are taken, ``control.lost`` has what is
    missing; else they are RATES_LOST.

    Args:
        a: The system.
        start: Its time, and what is prescribed then.
        end: Likewise.
        q: (nq,) at the end.
        v: (nv,) at the end.
        tau: (lines, nv) applied forces.
        most_lost: Share of the energy that may be gone at most, however far the step turns.
    """
    c, nv = a.control, len(v)
    if c.driven > 0 or c.implicit != 0 or c.integrator >= MODIFIED_EULER:
        return
    if c.sliding > 0 or is_damped(a.axes, a.efforts):
        return
    q0, v0 = a.vectors[START_Q, : len(q)], a.vectors[START_V, :nv]
    mean, back = a.vectors[MEAN, :nv], a.vectors[LEAST, :nv]
    for k in range(nv):
        mean[k] = 0.5 * (v0[k] + v[k])
        back[k] = -mean[k]
    pose_all(a, start, q0)
    c.t = start.t
    ask_forces(a, q0, v0)
    before, height = kinetic_energy_of_bodies(a, v0), height_of_weights(a)
    given, taken = largest_power(a, q0, mean, tau), largest_power(a, q0, back, tau)
    pose_all(a, end, q)
    c.t = end.t
    ask_forces(a, q, v)
    after, fallen = kinetic_energy_of_bodies(a, v), height - height_of_weights(a)
    given = c.dt * max(given, largest_power(a, q, mean, tau), 0.0)
    taken = c.dt * max(taken, largest_power(a, q, back, tau), 0.0)
    slow, fast = squares(a.vectors[ONE_OVER_UNITS, :nv], v0, v)
    share = LOST + c.dt * c.dt * max(slow, fast)
    weight, length = vec(c.gravity), c.length
    mass = (1e6 * c.guard_floor / length) ** 2
    floor, pushed = SAG * mass * length * math.sqrt(dot(weight, weight)), 0.0
    if c.integrator == EULER or c.integrator == VERLET:  # whose corrections are impulses
        pushed = 0.5 * (c.guard_floor / c.dt) ** 2
    least, most = before + fallen - taken, before + fallen + given
    least *= 1.0 - min(share, most_lost)
    if after > (1.0 + share) * max(most, 0.0) + floor + pushed:
        c.kinetic_before, c.kinetic_after, c.given = before, after, most - before
        name_leap(a, v0, v)
    elif after < least - floor and c.losing != 0:
        c.lost += before + fallen - taken - after
    elif after < least - floor:
        c.failure, c.kinetic_before, c.kinetic_after = RATES_LOST, before, after


@helper
def find_least(filter_velocity: Callable[..., None], a: Arrays, f: Any) -> None:
    """The slowest rates at which prescribed motions are met, with factors of this configuration.

    They are left in ``vectors[LEAST]``.
    """
    rates = a.vectors[LEAST, : len(a.axes)]
    for k in range(len(rates)):
        rates[k] = 0.0
    if a.control.driven > 0:
        filter_velocity(a, f, rates)


@outlined
def find_least_dense(a: Arrays, f: Factors) -> None:
    """``find_least`` with factors in joint coordinates."""
    find_least(filter_velocity, a, f)


@outlined
def judge_leap(
    a: Arrays,
    start: Instant,
    end: Instant,
    q: Array,
    v: Array,
    tau: Array,
    given: float,
    excess: float,
) -> None:
    """Refuse an end of a step that no force can have led to; LEAPT and ``control`` say what leapt.

    It began at START_Q and START_V. It takes what ``find_least`` has found. Poses and inertias are
    those of the end afterwards, as they were.

    Args:
        a: The system.
        start: Its time, and what is prescribed then.
        end: Likewise.
        q: (nq,) at the end.
        v: (nv,) at the end.
        tau: (lines, nv) applied forces.
        given: What forces within bounds have done [J].
        excess: Share of the kinetic energy that may be too much.
    """
    c, nv = a.control, len(v)
    q0, v0 = a.vectors[START_Q, : len(q)], a.vectors[START_V, :nv]
    mean, least = a.vectors[MEAN, :nv], a.vectors[LEAST, :nv]
    for k in range(nv):
        mean[k] = 0.5 * (v0[k] + v[k])
    pose_all(a, start, q0)
    c.t = start.t
    ask_forces(a, q0, v0)
    c.kinetic_before = kinetic_energy_of_bodies(a, v0)
    height, most = height_of_weights(a), largest_power(a, q0, mean, tau)
    falling = c.dt * power_of_weights(a, mean)
    pose_all(a, end, q)
    c.t = end.t
    ask_forces(a, q, v)
    c.kinetic_after = kinetic_energy_of_bodies(a, v)
    most = max(most, largest_power(a, q, mean, tau))
    fallen = max(height - height_of_weights(a), falling, 0.0)
    c.given = fallen + max(c.dt * most, 0.0) + max(given, 0.0) + kinetic_energy_of_bodies(a, least)
    floor = 0.5 * (c.guard_floor / c.dt) ** 2
    if c.kinetic_after <= (1.0 + excess) * (c.kinetic_before + c.given) + floor:
        return
    name_leap(a, v0, v)


@helper
def name_leap(a: Arrays, v0: Array, v: Array) -> None:
    """Fail by the axis whose rate has changed most."""
    c = a.control
    c.failure = LEAPT
    widest = -1.0
    for k in range(len(v)):
        change = a.vectors[ONE_OVER_UNITS, k] * abs(v[k] - v0[k])
        if change > widest:
            widest, c.worst, c.rate_before, c.rate_after = change, k, v0[k], v[k]
