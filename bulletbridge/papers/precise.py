"""Precise solutions of small systems that are no robots."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.integrate import solve_ivp

from bulletbridge.formulations.equations import Dynamics
from bulletbridge.formulations.projector import Projector
from bulletbridge.numerics.records import Array


def precise(
    dynamics: Dynamics,
    q: Array,
    v: Array,
    times: Sequence[float],
    kink: Callable[..., float] | None = None,
) -> Array:
    """States (len(times), nq + nv) by projector and DOP853, restarted where ``kink`` is zero."""
    projector = Projector(dynamics)

    def rate(t: float, y: Array) -> Array:
        q, v = y[: dynamics.nq], y[dynamics.nq :]
        return np.concatenate([v, projector(q, v, t).vdot])

    def crossing(t: float, y: Array) -> float:
        return kink(y) if kink else 1.0

    crossing.terminal = True  # pyright: ignore[reportFunctionMemberAccess]
    found: list[Array] = []
    y, t = np.concatenate([q, v]), 0.0
    for end in times:
        while t < end:
            run = solve_ivp(rate, (t, end), y, "DOP853", rtol=1e-13, atol=1e-14, events=crossing)
            t, y = float(run.t[-1]), run.y[:, -1]
            if run.status == 1:  # at the kink: a short step beyond it
                h = min(1e-9, end - t)
                t, y = t + h, y + h * rate(t, y)
        found.append(y)
    return np.array(found)
