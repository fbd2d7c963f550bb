"""How far one configuration is from another: the inverse of ``kinematics.displace``."""

import numpy as np

from bulletbridge.mechanism.kinematics import separation
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array


def configuration_difference(mechanism: Mechanism, q: Array, q_d: Array) -> Array:
    """Velocity (nv,) that takes q_d to q in a unit of time: turns by rotation vectors."""
    x, rate, still = (np.zeros(mechanism.nv) for _ in range(3))
    here, there = (np.asarray(given, np.float64) for given in (q, q_d))
    separation(mechanism.bodies, here, still, there, still, x, rate)
    return x
