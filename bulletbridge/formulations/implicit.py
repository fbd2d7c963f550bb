"""Implicit and symmetric integrators over any formulation, solved by Broyden's method."""

from collections.abc import Callable

import numpy as np

from bulletbridge.errors import StepError
from bulletbridge.formulations.equations import Dynamics, Equations, Formulation, split_of
from bulletbridge.numerics.records import Array

MOST_ITERATIONS, FEW = 60, 10
EPS = 2.0**-52
FD_STEP = EPS**0.5


def trapezoidal(
    f: Formulation, d: Dynamics, s: tuple[Array, Array, float], h: float
) -> tuple[Array, Array]:
    """Implicit trapezoidal rule, order 2, A-stable: for stiff springs and dampers.

    v₁ = v + h/2 (a + a₁), q₁ = q displaced by h/2 (v + v₁). The Jacobian of the residual in v₁ is
    next to one unless something is stiff; if Broyden's updates do not get there from that, it is
    taken by differences at the start of the step.
    """
    from scipy.linalg import inv

    q, v, t = s
    a = f(q, v, t).vdot

    def residual(end: Array) -> Array:
        moved = d.displace(q, 0.5 * h * (v + end))
        return end - v - 0.5 * h * (a + f(moved, end, t + h).vdot)

    guess = v + h * a
    size = speed(d.equations(q, v, t), q, v, a, h)
    sizes = np.full(len(v), size)
    try:
        end = solve(residual, guess, np.eye(len(v)), sizes, FEW)
    except StepError:
        end = solve(residual, guess, inv(slope(residual, guess, size)), sizes)
    return d.displace(q, 0.5 * h * (v + end)), end


def symmetric_projection(
    f: Formulation, d: Dynamics, s: tuple[Array, Array, float], h: float
) -> tuple[Array, Array]:
    """Symmetrised projection around the trapezoidal rule, order 2, time-reversible.

    With D = J⁺, weighted by M: start off the constraints by D(q) x in the configuration and D(q) y
    in the velocity, take the step, add D(q₁) x and D(q₁) y at its end, and choose x and y so that
    the end is on the constraints. Where a system is reversible, energy errors stay bounded.
    Source: Hairer, Lubich and Wanner, Geometric Numerical Integration, V.4.1.
    """
    from scipy.linalg import inv

    q, v, t = s
    e = d.equations(q, v, t)
    kept = np.sort(e.split().kept)
    unit, n, nv = e.unit[kept], len(kept), len(v)
    D = directions(e, kept)
    parts = np.cumsum([nv, nv, n])

    def ends(x: Array) -> tuple[Array, Array, Array]:
        """q₁, v₁ and the residual of a trial: the rule's velocity, D(q₁) x, x and y."""
        end, back, move, push = np.split(x, parts)
        q0, v0 = d.displace(q, D @ move), v + D @ push
        off = d.displace(q0, 0.5 * h * (v0 + end))
        rule = end - v0 - 0.5 * h * (f(q0, v0, t).vdot + f(off, end, t + h).vdot)
        q1 = d.displace(off, back)
        there = d.equations(q1, end, t + h)
        D1 = directions(there, kept)
        v1 = end + D1 @ push
        if there.nonlinear:  # J and g_t are those of the velocity that they judge
            there = d.equations(q1, v1, t + h)
        gap, rate = there.g[kept], there.J[kept] @ v1 + there.g_t[kept]
        return q1, v1, np.concatenate([rule, back - D1 @ move, unit * gap, unit * rate])

    J, one, zero = unit[:, None] * e.J[kept], np.eye(n), np.zeros((n, n))
    still, nothing = np.eye(nv), np.zeros((nv, nv))
    jacobian = np.block(  # of the residual where nothing but the rows matters
        [
            [still, nothing, 0.0 * D, -D],
            [nothing, still, -D, 0.0 * D],
            [0.5 * h * J, J, one, 0.5 * h * one],
            [J, 0.0 * J, zero, one],
        ]
    )
    a = f(q, v, t).vdot
    guess = np.concatenate([v + h * a, np.zeros(nv + 2 * n)])
    velocity, place = speed(e, q, v, a, h), extent(q)
    sizes = np.repeat([velocity, place, place, velocity], [nv, nv, n, n])
    x = solve(lambda x: ends(x)[2], guess, inv(jacobian), sizes)
    return ends(x)[:2]


def extent(q: Array) -> float:
    """What rounding of a configuration goes by [rad or m], rows in one unit: of the order of one.

    Residuals are no better than the coordinates, which count turns.
    """
    return max(1.0, float(np.abs(q).max(initial=0.0)))


def speed(e: Equations, q: Array, v: Array, a: Array, h: float) -> float:
    """What rounding of the velocity at the end of a step goes by [rad/s or m/s].

    Besides v and h a that is what forces which balance each other would do in the step alone, and
    what moves nothing by more than the rounding of q. So a mechanism at rest has a size, too.
    """
    forces = np.abs(np.linalg.pinv(e.M, hermitian=True)) @ e.sizes
    lengths = float(np.linalg.norm(v)) + h * float(np.linalg.norm(a) + np.linalg.norm(forces))
    return lengths + EPS * extent(q) / h


def directions(e: Equations, kept: np.ndarray) -> Array:
    """J⁺ (nv, n) of the kept rows, each in one unit."""
    if not len(kept):
        return np.zeros((len(e.M), 0))
    split = split_of(e.M, e.J[kept], e.unit[kept])
    return np.stack([split.unwhiten(split.shortest(r)) for r in np.diag(1.0 / e.unit[kept])], 1)


def slope(residual: Callable[[Array], Array], x: Array, size: float) -> Array:
    """Jacobian (n, n) of a residual at x by forward differences."""
    here, step = residual(x), FD_STEP * max(size, FD_STEP)
    return np.stack([(residual(x + step * e) - here) / step for e in np.eye(len(x))], axis=1)


def solve(
    residual: Callable[[Array], Array],
    x: Array,
    H: Array,
    sizes: Array,
    most: int = MOST_ITERATIONS,
) -> Array:
    """Zero of a residual by Broyden's first method to round-off.

    Args:
        residual: (n,) to (n,).
        x: (n,) start.
        H: (n, n) guess of the inverse Jacobian.
        sizes: (n,) of the unknowns; what round-off is measured by.
        most: Iterations.

    Raises:
        StepError: It does not converge.
    """
    r, last = residual(x), np.inf
    for _ in range(most):
        step = -H @ r
        length = float(np.linalg.norm(step / sizes))
        if not np.isfinite(length):
            break
        x = x + step
        if length <= 8.0 * EPS or (length <= 1e-12 and length >= 0.5 * last):
            return x
        last = length
        after = residual(x)
        turned = H @ (after - r)
        scale = float(step @ turned)
        if scale != 0.0:
            H = H + np.outer(step - turned, step @ H) / scale
        r = after
    raise StepError(
        f"the equations of an implicit step are not solved after {most} iterations; use a "
        "smaller step"
    )
