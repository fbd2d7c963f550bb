"""Integrators of first-order equations ẏ = f(t, y) that keep every step they take."""

from collections.abc import Callable

import numpy as np

from bulletbridge.errors import StepError
from bulletbridge.numerics.records import Array

Rate = Callable[[float, Array], Array]


def rk4(rate: Rate, y: Array, duration: float, steps: int) -> tuple[Array, Array]:
    """Classical Runge-Kutta from t = 0: times (steps + 1,) [s] and states (steps + 1, n)."""
    times = np.linspace(0.0, duration, steps + 1)
    path, h = [y], duration / steps
    for t in times[:-1]:
        k1 = rate(t, y)
        k2 = rate(t + 0.5 * h, y + 0.5 * h * k1)
        k3 = rate(t + 0.5 * h, y + 0.5 * h * k2)
        k4 = rate(t + h, y + h * k3)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        path.append(y)
    return times, np.array(path)


def rk45(rate: Rate, y: Array, duration: float, rtol: float, atol: float) -> tuple[Array, Array]:
    """Dormand and Prince's pair of orders 4 and 5 from t = 0: times (n,) and states at its steps.

    Raises:
        StepError: The step size fell to nothing.
    """
    from scipy.integrate import solve_ivp

    found = solve_ivp(rate, (0.0, duration), y, "RK45", rtol=rtol, atol=atol)
    if not found.success:
        end = found.t[-1]
        raise StepError(f"the 4(5) pair gave up at t = {end:.6g} s: {found.message}")
    return found.t, np.ascontiguousarray(found.y.T)
