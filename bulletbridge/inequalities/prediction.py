"""Share of the motor forces in the prediction at which contacts are found."""

import math

from bulletbridge.compilation.jit import helper

PREDICTION_LIMIT = 1e-4
"""Largest way that motors lead bodies there [m]: contacts are sure from 1e-6 on."""


REMEMBERED = 0.3
"""Share of the last step in the motor forces by which contacts are predicted."""


@helper
def motor_share(exerted: float, free: float, delta_v: float, lightest: float, dt: float) -> float:
    """Part of a motor's force that leads no further than ``PREDICTION_LIMIT``.

    Motors that hold a weight lead nowhere. A body is at most as fast as the lightest one would
    be with all of the energy: s e (free + s delta_v) dt = m (limit/dt)² gives the part s.

    Args:
        exerted: e, the motor force on a rate [N or N m].
        free: Velocity that forces without the motors give in the step.
        delta_v: Velocity that the motors give.
        lightest: m, the smallest mass [kg].
        dt: Step [s].
    """
    most = lightest * (PREDICTION_LIMIT / dt) ** 2 / dt
    a, b = exerted * delta_v, exerted * free
    if not a > 0.0:
        return 1.0
    return min((math.sqrt(b * b + 4.0 * a * most) - b) / (2.0 * a), 1.0)
