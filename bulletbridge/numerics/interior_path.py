"""Where the path of smooth problems of a mixed complementarity problem begins: near its end.

A bounded row keeps x - lower > 0 and upper - x > 0, each with a velocity of its own that is
positive, and w is the difference of both; their products are made equal and smaller from step to
step. With r the impulse of a cone's owner, z = x/mu, v = mu w and g a bound on how fast it slides,

    r g + z·v = t      r v + g z = 0      |z| < r      |v| < g

which for t = 0 is Coulomb's law with g = |v|: most work against v, and none if z is inside. All t
together go down by Mehrotra's predictor and corrector (1992), with one factorisation a step and the
same beginning whatever x was: to 1e-10 of what they were in some twelve steps among capsules and
sixteen among boxes, of which it does not always come to the end.
Impulses and velocities stay inside of their cones; what is left of w = D x + b
goes down with the lengths of steps.

Sources: Mehrotra 1992; Alizadeh and Goldfarb 2003 (cones); Kleinert, Simeon and Obermayr 2014 and
Acary, Armand, Nguyen and Shpakovych 2023 (friction).
"""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.numerics.complementarity_rows import (
    ComplementarityProblem,
    clip,
    cone_scale,
    velocities,
)
from bulletbridge.numerics.map_steps import (
    REGULARISATION,
    put_derivatives,
    put_newton_step,
)
from bulletbridge.numerics.records import Array

TOO_SHORT = 0.03
"""Share of a step below which it is given up."""
SHORT, NEARLY = 0.1, 1e-5
"""Share of a step below which what products there are is made equal first; and share of ``energy``
that is near enough the end where the path goes no further, or a step without centring is so short:
round-off of what is left of products leads no nearer then."""
AMPLE = 2.0
"""Share of a step from which on it does not matter how much more room there is."""
RIM = 0.98
"""Largest impulse of a cone, as a share of its radius, with which the path begins."""
LEAST_CENTRED, MOST_CENTRED = 1e-6, 0.9
"""Share of t that the next step aims for."""
PATIENCE, GAIN = 6, 0.5
"""Steps in which products have to go down to that share, or the path is given up."""
ANEW, CORRECTED, CENTRED = range(3)
"""Of a step: its factors are new; they are those of this place, and what the step before leaves of
products by its own length is taken off; they are, and all products become equal."""


class Course(NamedTuple):
    """How the path is followed."""

    # share of ``energy`` at which it begins near x; zero for the same beginning always
    begin: float
    enough: float  # share whose square is small enough a product
    inside: float  # share of the way to where a row or cone has no room left
    most: int  # steps after which it is given up
    centres: bool  # whether short steps are taken for want of equal products


class Inside(NamedTuple):
    """Velocities of rows that stay inside of cones, and their changes; lines of a problem.

    Of bounded rows what holds at the lower bound (u), and what holds at the upper (g); of cones the
    velocities of their rows (u), and in the first row the bound on their length (g).
    """

    u: Array  # (n,)
    g: Array  # (n,)
    du: Array  # (n,)
    dg: Array  # (n,)


class Ball(NamedTuple):
    """A cone's impulse z within r, or velocity v within g: the radius, and both components."""

    radius: float
    first: float
    second: float


@helper
def dot(a: Ball, b: Ball) -> float:
    """Product of two."""
    return a.radius * b.radius + a.first * b.first + a.second * b.second


@helper
def scaled_impulse(p: ComplementarityProblem, i: int, x: Array) -> float:
    """x of a cone's row over its coefficient; none of a row without friction."""
    mu = p.bounds[i].mu
    return x[i] / mu if mu > 0.0 else 0.0


@helper
def scaled_velocity(p: ComplementarityProblem, i: int, w: Array) -> float:
    """w of a cone's row times its coefficient."""
    mu = p.bounds[i].mu
    return w[i] * mu if mu > 0.0 else 0.0


@helper
def impulse_of(p: ComplementarityProblem, i: int, x: Array) -> Ball:
    """r and z of the cone that begins at row i."""
    second = scaled_impulse(p, i + 1, x) if p.bounds[i].count == 2 else 0.0
    return Ball(x[p.bounds[i].owner], scaled_impulse(p, i, x), second)


@helper
def velocity_of(p: ComplementarityProblem, i: int, u: Array, g: Array) -> Ball:
    """g and v of the cone that begins at row i."""
    second = scaled_velocity(p, i + 1, u) if p.bounds[i].count == 2 else 0.0
    return Ball(g[i], scaled_velocity(p, i, u), second)


@helper
def is_open(p: ComplementarityProblem, i: int) -> bool:
    """Whether a row has room between its bounds, or one of a cone its owner, and is moved."""
    bound = p.bounds[i]
    owner = i if bound.owner < 0 else bound.owner
    moved = p.D[i, i] > 0.0 and (bound.owner < 0 or bound.mu > 0.0)
    return moved and p.D[owner, owner] > 0.0 and p.bounds[owner].lower < p.bounds[owner].upper


@helper
def begin_cone(p: ComplementarityProblem, i: int) -> bool:
    """Whether row i is the first of a cone that is open."""
    bound = p.bounds[i]
    if bound.owner < 0 or bound.first != 1 or not is_open(p, bound.owner):
        return False
    moved = bound.mu > 0.0 and p.D[i, i] > 0.0
    return moved or (bound.count == 2 and p.bounds[i + 1].mu > 0.0 and p.D[i + 1, i + 1] > 0.0)


@outlined
def begin_inside(p: ComplementarityProblem, a: Inside, n: int, energy: float) -> None:
    """Impulses and velocities from which all begins."""
    for i in range(n):
        bound, size = p.bounds[i], math.sqrt(max(p.D[i, i], 0.0))
        p.x[i] = a.u[i] = a.g[i] = 0.0
        if bound.owner >= 0:
            if begin_cone(p, i):
                a.g[i] = energy * math.sqrt(p.D[bound.owner, bound.owner])
        elif is_open(p, i):
            far, room = energy / size, 0.5 * (bound.upper - bound.lower)
            if room < math.inf:
                p.x[i] = bound.lower + room
            elif bound.lower > -math.inf:
                p.x[i] = bound.lower + far
            elif bound.upper < math.inf:
                p.x[i] = bound.upper - far
            if bound.lower > -math.inf:
                a.u[i] = energy * energy / (p.x[i] - bound.lower)
            if bound.upper < math.inf:
                a.g[i] = energy * energy / (bound.upper - p.x[i])
        else:
            p.x[i] = clip(bound, 0.0)
    velocities(p, p.x, p.w, n)


@outlined
def begin_near(p: ComplementarityProblem, a: Inside, n: int, energy: float, share: float) -> None:
    """Impulses and velocities near x from which the path begins at this share of ``energy``.

    Rows and cones are where the path of each by itself leads through what x and w say together.
    """
    for i in range(n):
        p.step[i] = p.x[i]
    velocities(p, p.x, p.w, n)
    for i in range(n):
        p.best[i] = p.w[i]
    begin_inside(p, a, n, energy)
    size = share * energy
    for i in range(n):
        bound, d = p.bounds[i], p.D[i, i]
        if bound.owner >= 0 or not is_open(p, i) or bound.upper < math.inf:
            continue
        wanted = p.step[i] - bound.lower - p.best[i] / d
        root = math.sqrt(wanted * wanted + 4.0 * size * size / d)
        p.x[i], a.u[i] = bound.lower + 0.5 * (root + wanted), 0.5 * (root - wanted) * d
    for i in range(n):
        if begin_cone(p, i):
            put_near(p, a, i, size * size)
    velocities(p, p.x, p.w, n)


@helper
def put_near(p: ComplementarityProblem, a: Inside, i: int, t: float) -> None:
    """The same for the cone that begins at row i, with a product near t.

    With r z = -g v, r g + z·v = t leaves g of v; z is that of x as far as nothing slides.
    """
    z, v, r = impulse_of(p, i, p.step), velocity_of(p, i, p.best, a.g), p.x[p.bounds[i].owner]
    speed, e = math.hypot(v.first, v.second), t / r
    g = 0.5 * (e + math.sqrt(e * e + 4.0 * speed * speed))
    slides = speed / g
    first = (1.0 - slides) * z.first - slides * r * v.first / g
    second = (1.0 - slides) * z.second - slides * r * v.second / g
    length = math.hypot(first, second)
    share = RIM * r / length if length > RIM * r else 1.0
    a.g[i] = g
    for k in range(p.bounds[i].count):
        p.x[i + k] = p.bounds[i + k].mu * share * (first if k == 0 else second)
        a.u[i + k] = p.best[i + k]


@outlined
def mean_product(p: ComplementarityProblem, a: Inside, n: int, ahead: float) -> float:
    """Mean of what is to vanish, where a share of the step leads."""
    total, count = 0.0, 0
    for i in range(n):
        bound = p.bounds[i]
        if begin_cone(p, i):
            z, v = (
                ahead_of(impulse_of(p, i, p.x), impulse_of(p, i, p.step), ahead),
                velocity_of(p, i, a.u, a.g),
            )
            total += dot(z, ahead_of(v, velocity_of(p, i, a.du, a.dg), ahead))
            count += 1
        elif bound.owner < 0 and is_open(p, i):
            x = p.x[i] + ahead * p.step[i]
            if bound.lower > -math.inf:
                total += (x - bound.lower) * (a.u[i] + ahead * a.du[i])
                count += 1
            if bound.upper < math.inf:
                total += (bound.upper - x) * (a.g[i] + ahead * a.dg[i])
                count += 1
    return total / count if count > 0 else 0.0


@helper
def ahead_of(a: Ball, change: Ball, share: float) -> Ball:
    """What a share of a change leads to."""
    return Ball(
        a.radius + share * change.radius,
        a.first + share * change.first,
        a.second + share * change.second,
    )


@helper
def room_of_number(y: float, change: float) -> float:
    """Share of a change that leads to zero."""
    return -y / change if change < 0.0 else math.inf


@helper
def room_of_ball(a: Ball, change: Ball, most: float) -> float:
    """Share of a change that leads to the rim, or ``most`` where that does not leave the ball.

    Then no share below does, for balls of all radii are a cone.
    """
    there = ahead_of(a, change, most)
    if there.radius > 0.0 and there.radius**2 > there.first**2 + there.second**2:
        return most
    square = change.radius**2 - change.first**2 - change.second**2
    slope = a.radius * change.radius - a.first * change.first - a.second * change.second
    inside = a.radius**2 - a.first**2 - a.second**2
    under = slope * slope - square * inside
    if under < 0.0:
        return most
    root = math.sqrt(under)
    if slope < 0.0:
        return min(most, inside / (root - slope))
    return min(most, -(slope + root) / square) if square < 0.0 else most


@outlined
def room_ahead(p: ComplementarityProblem, a: Inside, n: int) -> float:
    """Share of the step that leads to where something has no room left, or as much as is asked."""
    most = AMPLE
    for i in range(n):
        bound = p.bounds[i]
        if begin_cone(p, i):
            most = room_of_ball(impulse_of(p, i, p.x), impulse_of(p, i, p.step), most)
            v, change = velocity_of(p, i, a.u, a.g), velocity_of(p, i, a.du, a.dg)
            most = room_of_ball(v, change, most)
        elif bound.owner < 0 and is_open(p, i):
            if bound.lower > -math.inf:
                most = min(most, room_of_number(p.x[i] - bound.lower, p.step[i]))
                most = min(most, room_of_number(a.u[i], a.du[i]))
            if bound.upper < math.inf:
                most = min(most, room_of_number(bound.upper - p.x[i], -p.step[i]))
                most = min(most, room_of_number(a.g[i], a.dg[i]))
    return most


@helper
def put_bounded(p: ComplementarityProblem, a: Inside, i: int, t: float) -> None:
    """Row of a bounded row; du and dg hold what the products change by beside."""
    bound, own, asked = p.bounds[i], 0.0, 0.0
    if bound.lower > -math.inf:
        room = p.x[i] - bound.lower
        own += a.u[i] / room
        asked += (t - a.du[i]) / room
    if bound.upper < math.inf:
        room = bound.upper - p.x[i]
        own += a.g[i] / room
        asked -= (t - a.dg[i]) / room
    d = p.D[i, i]
    scale = math.sqrt(d) / (d + own)
    p.line[i] = scale * (p.w[i] - asked)
    put_derivatives(p, i, scale, 0.0, scale * (own + REGULARISATION * d), 0.0, 0.0)


@outlined
def put_cone(p: ComplementarityProblem, a: Inside, i: int, t: float) -> None:
    """Rows of the cone that begins at row i, of which g is eliminated."""
    bound, z, v = p.bounds[i], impulse_of(p, i, p.x), velocity_of(p, i, a.u, a.g)
    r, g, d, size = z.radius, v.radius, cone_scale(p, i), math.sqrt(p.D[bound.owner, bound.owner])
    e = (t - dot(z, v) - a.dg[i]) / r
    first = p.bounds[i].mu * (p.w[i] - a.u[i])
    second = p.bounds[i + 1].mu * (p.w[i + 1] - a.u[i + 1]) if bound.count == 2 else 0.0
    along = (z.first * first + z.second * second) / r
    scale = size / (r * d + g)
    for k in range(bound.count):
        row, mu = i + k, p.bounds[i + k].mu
        if not mu > 0.0:
            p.line[row] = 0.0
            put_derivatives(p, row, 0.0, 0.0, 1.0, 0.0, 0.0)
            continue
        own_z, own_v = (z.first, v.first) if k == 0 else (z.second, v.second)
        other_z, other_v = (z.second, v.second) if k == 0 else (z.first, v.first)
        ahead = first if k == 0 else second
        left = r * own_v + g * own_z + a.du[row]
        p.line[row] = scale * (own_z * (e - along) + left + r * ahead)
        turns, stays = scale * (r - own_z * own_z / r), scale * (g - own_z * own_v / r)
        across = p.bounds[i + 1 - k].mu if bound.count == 2 else 0.0
        by_other_w = -scale * own_z * other_z / r * across
        by_other = -scale * own_z * other_v / (r * across) if across > 0.0 else 0.0
        own = stays / mu + REGULARISATION * p.D[row, row] * turns * mu
        by_radius = scale * (own_v - g * own_z / r)
        put_derivatives(p, row, turns * mu, by_other_w, own, by_other, by_radius)


@outlined
def put_rows_inside(p: ComplementarityProblem, a: Inside, n: int, t: float) -> None:
    """All rows of the step that makes products t, and their derivatives."""
    i = 0
    while i < n:
        bound = p.bounds[i]
        if begin_cone(p, i):
            put_cone(p, a, i, t)
            i += bound.count
            continue
        if bound.owner < 0 and is_open(p, i):
            put_bounded(p, a, i, t)
        elif bound.owner < 0 or bound.first == 1:
            for k in range(i, i + (bound.count if bound.owner >= 0 else 1)):
                p.line[k] = 0.0
                put_derivatives(p, k, 0.0, 0.0, 1.0, 0.0, 0.0)
        i += 1


@outlined
def step_inside(p: ComplementarityProblem, a: Inside, n: int, t: float, kind: int) -> None:
    """Step towards products t, of impulses and velocities.

    Args:
        p: The problem, w at x.
        a: Velocities inside; changes of the step before if it is CORRECTED.
        n: Rows.
        t: What all products shall be.
        kind: ANEW, CORRECTED or CENTRED.
    """
    for i in range(n):
        bound = p.bounds[i]
        if kind != CORRECTED:
            a.du[i] = a.dg[i] = 0.0
        elif begin_cone(p, i):
            z, v = impulse_of(p, i, p.step), velocity_of(p, i, a.du, a.dg)
            a.dg[i] = dot(z, v)
            a.du[i] = z.radius * v.first + v.radius * z.first
            if bound.count == 2:
                a.du[i + 1] = z.radius * v.second + v.radius * z.second
        elif bound.owner < 0:
            a.du[i], a.dg[i] = p.step[i] * a.du[i], -p.step[i] * a.dg[i]
    put_rows_inside(p, a, n, t)
    put_newton_step(p, n, kind != ANEW)
    velocities(p, p.step, p.best, n)
    for i in range(n):
        bound, p.best[i] = p.bounds[i], p.best[i] - p.b[i]
        if bound.owner < 0 and is_open(p, i):
            low, high = p.x[i] - bound.lower, bound.upper - p.x[i]
            if bound.lower > -math.inf:
                a.du[i] = (t - a.du[i] - a.u[i] * p.step[i]) / low - a.u[i]
            if bound.upper < math.inf:
                a.dg[i] = (t - a.dg[i] + a.g[i] * p.step[i]) / high - a.g[i]
    for i in range(n):
        if begin_cone(p, i):
            for k in range(i, i + p.bounds[i].count):
                a.du[k] = p.best[k] + p.w[k] - a.u[k]
            z, v = impulse_of(p, i, p.x), velocity_of(p, i, a.u, a.g)
            dz, dv = impulse_of(p, i, p.step), velocity_of(p, i, a.du, a.dg)
            left = t - dot(z, v) - a.dg[i]
            along = z.first * dv.first + z.second * dv.second
            a.dg[i] = (left - dot(dz, v) - along) / z.radius


@outlined
def approach(p: ComplementarityProblem, n: int, energy: float, course: Course) -> tuple[float, int]:
    """Impulses x near the end of the path.

    Args:
        p: The problem; its lines but weights, centre, diagonal, right and found are scratch.
        n: Rows.
        energy: Root of the largest b²/D.
        course: How to get there.

    Returns:
        The share that was reached, infinite if none, and steps taken.
    """
    a = Inside(p.known, p.free, p.kinds, p.spare)
    if course.begin > 0.0:
        begin_near(p, a, n, energy, course.begin)
    else:
        begin_inside(p, a, n, energy)
    for i in range(n):
        p.step[i] = a.du[i] = a.dg[i] = 0.0
    t, share, later = mean_product(p, a, n, 0.0), math.inf, math.inf
    for count in range(course.most):
        if not t > 0.0:
            return share, count
        share = math.sqrt(t) / energy
        if share <= course.enough:
            return share, count
        if course.centres and count % PATIENCE == 0:
            if t > GAIN * later:
                return share_if_near(share, course), count
            later = t
        step_inside(p, a, n, 0.0, ANEW)
        ahead = min(room_ahead(p, a, n), 1.0)
        if course.centres and share <= NEARLY and not ahead >= SHORT:
            return share, count + 1
        left = max(mean_product(p, a, n, ahead), 0.0) / t
        centred = min(max(left * left * left, LEAST_CENTRED), MOST_CENTRED)
        step_inside(p, a, n, centred * t, CORRECTED)
        ahead = min(course.inside * room_ahead(p, a, n), 1.0)
        if course.centres and not ahead >= SHORT:
            step_inside(p, a, n, t, CENTRED)
            ahead = min(course.inside * room_ahead(p, a, n), 1.0)
        if not ahead >= TOO_SHORT:
            return share_if_near(share, course), count + 1
        for i in range(n):
            p.x[i] += ahead * p.step[i]
            p.w[i] += ahead * p.best[i]
            a.u[i] += ahead * a.du[i]
            a.g[i] += ahead * a.dg[i]
        t = mean_product(p, a, n, 0.0)
    return share_if_near(share, course), course.most


@helper
def share_if_near(share: float, course: Course) -> float:
    """The share that was reached where no step went on, or infinity where that is far from the end.

    It is where friction all but locks what slides.
    """
    return share if course.centres and share <= NEARLY else math.inf
