"""Implicit and symmetric integrators over any formulation, solved by Broyden's method."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import inv

from bulletbridge.errors import StepError
from bulletbridge.formulations.equations import Dynamics, Equations, Formulation, Split, split_of
from bulletbridge.numerics.records import Array

MOST_ITERATIONS = 60
EPS = 2.0**-52
FD_STEP = EPS**0.5


def trapezoidal(
    f: Formulation, d: Dynamics, s: tuple[Array, Array, float], h: float
) -> tuple[Array, Array]:
    """Implicit trapezoidal rule, order 2, A-stable: for stiff springs and dampers.

    v₁ = v + h/2 (a + a₁), q₁ = q displaced by h/2 (v + v₁). The Jacobian of the residual in v₁ is
    taken by differences at the start of the step and updated by Broyden's rule.
    """
    q, v, t = s
    a = f(q, v, t).vdot

    def residual(end: Array) -> Array:
        moved = d.displace(q, 0.5 * h * (v + end))
        return end - v - 0.5 * h * (a + f(moved, end, t + h).vdot)

    guess = v + h * a
    size = float(np.linalg.norm(v) + h * np.linalg.norm(a))
    end = solve(residual, guess, inv(slope(residual, guess, size)), size)
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
    q, v, t = s
    e = d.equations(q, v, t)
    split = split_of(e.M, e.J, e.unit)
    kept = np.sort(split.kept)
    n, nv = len(kept), len(v)
    begin = split_of(e.M, e.J[kept], e.unit[kept])
    unit = e.unit[kept]

    def ends(x: Array) -> tuple[Array, Array, Array, Equations]:
        """q₁, v₁, residual of the rule and equations at the end of a trial."""
        end, move, push = x[:nv], x[nv : nv + n] / unit, x[nv + n :] / unit
        q0, v0 = d.displace(q, inverse(begin, move)), v + inverse(begin, push)
        off = d.displace(q0, 0.5 * h * (v0 + end))
        rule = end - v0 - 0.5 * h * (f(q0, v0, t).vdot + f(off, end, t + h).vdot)
        q1, at = off, d.equations(off, end, t + h)
        for _ in range(MOST_ITERATIONS):  # the way back is taken along the rows of its own end
            there = split_of(at.M, at.J[kept], unit)
            step = inverse(there, move)
            moved = d.displace(off, step)
            done = np.abs(moved - q1).max() <= 4.0 * EPS * (1.0 + np.abs(q1).max())
            q1, at = moved, d.equations(moved, end, t + h)
            if done:
                break
        v1 = end + inverse(split_of(at.M, at.J[kept], unit), push)
        return q1, v1, rule, at

    def residual(x: Array) -> Array:
        _, v1, rule, at = ends(x)
        rate = at.J[kept] @ v1 + at.g_t[kept]
        return np.concatenate([rule, unit * at.g[kept], unit * rate])

    a = f(q, v, t).vdot
    guess = np.concatenate([v + h * a, np.zeros(2 * n)])
    # x and y act at both ends: the constraints see them twice
    first = np.diag(np.concatenate([np.ones(nv), np.full(2 * n, 0.5)]))
    size = float(np.linalg.norm(v) + h * np.linalg.norm(a))
    q1, v1, _, _ = ends(solve(residual, guess, first, size))
    return q1, v1


def inverse(split: Split, right: Array) -> Array:
    """J⁺ right."""
    return split.unwhiten(split.shortest(right))


def slope(residual: Callable[[Array], Array], x: Array, size: float) -> Array:
    """Jacobian (n, n) of a residual at x by forward differences."""
    here, step = residual(x), FD_STEP * max(size, FD_STEP)
    return np.stack([(residual(x + step * e) - here) / step for e in np.eye(len(x))], axis=1)


def solve(residual: Callable[[Array], Array], x: Array, H: Array, size: float) -> Array:
    """Zero of a residual by Broyden's first method to round-off.

    Args:
        residual: (n,) to (n,).
        x: (n,) start.
        H: (n, n) guess of the inverse Jacobian.
        size: Of the unknowns; what round-off is measured by.

    Raises:
        StepError: It does not converge.
    """
    r, last = residual(x), np.inf
    for _ in range(MOST_ITERATIONS):
        step = -H @ r
        length = float(np.linalg.norm(step))
        if not np.isfinite(length):
            break
        x = x + step
        if length <= 8.0 * EPS * size or (length <= 1e-12 * size and length >= 0.5 * last):
            return x
        last = length
        after = residual(x)
        turned = H @ (after - r)
        scale = float(step @ turned)
        if scale != 0.0:
            H = H + np.outer(step - turned, step @ H) / scale
        r = after
    raise StepError(
        f"the equations of an implicit step are not solved after {MOST_ITERATIONS} iterations; use "
        f"a smaller step"
    )
