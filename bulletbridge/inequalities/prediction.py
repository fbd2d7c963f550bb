"""Share of the motor forces in the prediction at which contacts are found."""

import numpy as np

from bulletbridge.numerics.records import Array

PREDICTION_LIMIT = 1e-4
"""Largest way that motors lead bodies there [m]: Bullet's contacts are sure from 1e-6 on."""


def motor_shares(exerted: Array, free: Array, delta_v: Array, lightest: float, dt: float) -> Array:
    """Parts (nv,) of the motor forces that lead no further than ``PREDICTION_LIMIT``.

    Motors that hold a weight lead nowhere. A body is at most as fast as the lightest one would
    be with all of the energy: s e (free + s delta_v) dt = m (limit/dt)² gives the part s.

    Args:
        exerted: (nv,) e, the motor forces [N or N m].
        free: (nv,) velocities that forces without the motors give in the step.
        delta_v: (nv,) velocities that the motors give.
        lightest: m, the smallest mass [kg].
        dt: Step [s].
    """
    most = lightest * (PREDICTION_LIMIT / dt) ** 2 / dt
    A, B = exerted * delta_v, exerted * free
    with np.errstate(divide="ignore", invalid="ignore"):
        part = (np.sqrt(B * B + 4.0 * A * most) - B) / (2.0 * A)
    return np.where(A > 0.0, np.minimum(part, 1.0), 1.0)
