"""Velocities that satisfy the constraints, of rows linear in v and of others."""

from collections.abc import Callable

import numpy as np

from bulletbridge.errors import StepError
from bulletbridge.formulations.equations import Dynamics, Equations
from bulletbridge.numerics.records import Array

ROUNDED, ACCEPTED = 1e-15, 1e-12
"""Residual of a row over the size of its terms that ends the iteration, and that it may end at when
it gains no more."""
MOST_PASSES = 24


def admissible(
    dynamics: Dynamics,
    e: Equations,
    q: Array,
    v: Array,
    t: float,
    nearest: Callable[[Equations, Array], Array],
) -> Array:
    """Velocity (nv,) that the rows allow.

    Rows linear in v take one pass and no evaluation. Others are followed by Newton's method, in the
    metric of ``nearest``, to round-off; each pass adds M⁻¹ Jᵀ times something, as an impulse does.

    Args:
        dynamics: The system.
        e: Its equations at (q, v, t).
        q: Configuration (nq,).
        v: Velocity (nv,) to start from.
        t: Time [s].
        nearest: (e, v) to the velocity nearest to v with J v + g_t = 0.

    Raises:
        StepError: The iteration does not end.
    """
    last = np.inf
    for _ in range(MOST_PASSES):
        v = nearest(e, v)
        if not e.nonlinear:
            return v
        e = dynamics.equations(q, v, t)
        left = residual(e, v)
        if left <= ROUNDED or (left <= ACCEPTED and not left < 0.5 * last):
            return v
        last = left
    raise StepError(
        f"rows that are nonlinear in the velocity stay off by {last:.3g} of their size after "
        f"{MOST_PASSES} passes of the filter; use a smaller step or another initial velocity"
    )


def residual(e: Equations, v: Array) -> float:
    """Largest |J v + g_t| over the size of its terms."""
    size = np.abs(e.J) @ np.abs(v) + np.abs(e.g_t)
    return float((np.abs(e.J @ v + e.g_t) / np.where(size > 0.0, size, 1.0)).max(initial=0.0))
