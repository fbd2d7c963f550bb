"""How far one configuration is from another: the inverse of ``kinematics.displace``."""

import math
from collections.abc import Collection

import numpy as np

from bulletbridge.mechanism.model import Joint
from bulletbridge.numerics.records import Array


def configuration_difference(joints: Collection[Joint], nv: int, q: Array, q_d: Array) -> Array:
    """Velocity (nv,) that takes q_d to q in a unit of time: turns by rotation vectors."""
    x = np.zeros(nv)
    for joint in joints:
        if joint.kind in ("revolute", "prismatic", "beam"):
            x[joint.v] = q[joint.q] - q_d[joint.q]
            continue
        free, first = joint.kind == "free", joint.v.start
        part = slice(joint.q.stop - 4, joint.q.stop)
        x[first : first + 3] = _turn(q[part].tolist(), q_d[part].tolist(), 1.0 if free else -1.0)
        if free:
            x[first + 3 : first + 6] = (q[joint.q] - q_d[joint.q])[:3]
    return x


def _turn(a: list[float], b: list[float], side: float) -> list[float]:
    """Rotation vector that takes the unit quaternion b to a, xyzw: in world axes or, -1, in b's."""
    (ax, ay, az, aw), (bx, by, bz, bw) = a, b
    x = bw * ax - aw * bx + side * (by * az - bz * ay)
    y = bw * ay - aw * by + side * (bz * ax - bx * az)
    z = bw * az - aw * bz + side * (bx * ay - by * ax)
    w = aw * bw + ax * bx + ay * by + az * bz
    sine = math.hypot(x, y, z)
    # q and -q are one rotation: the shorter way
    factor = 2.0 * math.atan2(sine, abs(w)) / sine if sine > 0.0 else 2.0
    factor = math.copysign(factor, w)
    return [factor * x, factor * y, factor * z]
