"""How far one configuration is from another, and what displacements do to its numbers."""

import numpy as np

from bulletbridge.mechanism.kinematics import chart_rate, separation, separations
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array


def configuration_difference(mechanism: Mechanism, q: Array, q_d: Array) -> Array:
    """Velocity (nv,) that takes q_d to q in a unit of time: turns by rotation vectors.

    The inverse of ``kinematics.displace``.
    """
    x, rate, still = (np.zeros(mechanism.nv) for _ in range(3))
    here, there = (np.asarray(given, np.float64) for given in (q, q_d))
    separation(mechanism.bodies, here, still, there, still, x, rate)
    return x


def configuration_differences(mechanism: Mechanism, q: Array, q_d: Array) -> Array:
    """``configuration_difference`` (n, nv) of many configurations (n, nq), from one each or one."""
    x = np.zeros((len(q), mechanism.nv))
    others = np.atleast_2d(np.array(q_d, np.float64))
    separations(mechanism.bodies, np.array(q, np.float64), others, x)
    return x


def numbers_by_displacement(mechanism: Mechanism, q: Array) -> Array:
    """How the numbers of a configuration q (nq,) change with its displacement: (nq, nv).

    Columns are orthogonal to each other, also where they are of quaternions, of whatever length.
    """
    found = np.zeros((mechanism.nq, mechanism.nv))
    for joint in mechanism.joints.values():
        j, k = joint.q.start, joint.v.start
        if joint.kind not in ("spherical", "free"):
            found[joint.q, joint.v] = np.eye(joint.q.stop - j)
            continue
        free = joint.kind == "free"
        if free:
            found[j : j + 3, k + 3 : k + 6] = np.eye(3)
            j += 3
        x, y, z, w = q[j : j + 4]
        # half the product with (turn, 0): by world axes from the left, by the body's from the right
        s = 1.0 if free else -1.0
        found[j : j + 4, k : k + 3] = 0.5 * np.array(
            [[w, s * z, -s * y], [-s * z, w, s * x], [s * y, -s * x, w], [-x, -y, -z]]
        )
    return found


def by_displacement(mechanism: Mechanism, q: Array, gradient: Array) -> Array:
    """A gradient (nv,) by displacements of q, from one by its numbers (nq,)."""
    return np.asarray(numbers_by_displacement(mechanism, q).T @ gradient, np.float64)


def by_numbers(mechanism: Mechanism, q: Array, gradient: Array) -> Array:
    """A gradient (nq,) by the numbers of q, from one by its displacements (nv,).

    The length of a quaternion changes nothing.
    """
    found = numbers_by_displacement(mechanism, q)
    return np.asarray(found @ (gradient / np.square(found).sum(axis=0)), np.float64)


def with_unit_quaternions(mechanism: Mechanism, q: Array) -> Array:
    """A configuration (nq,) whose quaternions have length one."""
    found = q.copy()
    for joint in mechanism.joints.values():
        if joint.kind in ("spherical", "free"):
            turn = slice(joint.q.stop - 4, joint.q.stop)
            found[turn] /= np.linalg.norm(found[turn])
    return found


def chart_rates(mechanism: Mechanism, u: Array) -> Array:
    """Derivative (nv, nv) of a displacement u (nv,) by displacements of the end that it leads to.

    By those of its start, the derivative is that at -u, with the other sign.
    """
    found, unit, rate = np.eye(mechanism.nv), np.zeros(mechanism.nv), np.zeros(mechanism.nv)
    for joint in mechanism.joints.values():
        if joint.kind in ("spherical", "free"):
            for k in range(joint.v.start, joint.v.start + 3):
                unit[k] = 1.0
                chart_rate(mechanism.bodies, u, unit, rate)
                found[:, k], unit[k] = rate, 0.0
    return found
