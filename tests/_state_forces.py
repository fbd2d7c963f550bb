"""Forces that are functions of a module, so that they can be pickled and compiled."""

import numba
import numpy as np


def swing(t, q, v):
    return -2.0 * np.sin(q[0]) * (1.0 + 0.3 * np.cos(3.0 * t)) - 0.2 * v[0] * abs(v[0])


def push(t, q, v, frame):
    way = frame.position[0] * frame.velocity[2] + frame.R[0, 2] * frame.angular_velocity[1]
    return 0.5 * np.cos(q[0]) - 0.3 * v[0], 0.4 * np.sin(2.0 * t), 0.2 * way


swing_compiled = numba.njit(swing)
push_compiled = numba.njit(push)
