"""Closed paths of a frame, as motions of all joints that keep every loop closed."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

import bulletbridge as bb

Array = NDArray[np.float64]


def closed_path(
    system: bb.System,
    frame: bb.Frame,
    position: Callable[[float], Array],
    orientation: Array,
    held: dict[str, float],
    period: float,
    knots: int = 64,
) -> Callable[[float], bb.Desired]:
    """Joint motion that takes a frame along a closed path, from knots by inverse kinematics.

    Args:
        system: Near the start of the path.
        frame: What follows it.
        position: (3,) [m] by time.
        orientation: (3, 3) in the world.
        held: Joints that stay, as many as there are freedoms to spare: the path closes then.
        period: Of the path [s].
        knots: More make the path in between truer: the error falls with their fourth power.
    """
    times, q = np.linspace(0.0, period, knots + 1), list[Array]()
    guess = dict[str, list[float]]()
    for t in times[:-1]:
        q.append(
            bb.inverse_kinematics(
                system, frame, position(float(t)), orientation, q=held, guess=guess
            )
        )
        joints = system.mechanism.joints.items()
        guess = {name: q[-1][joint.q].tolist() for name, joint in joints if name not in held}
    pieces = CubicSpline(times, [*q, q[0]], bc_type="periodic").c.swapaxes(0, 1)  # (n, 4, nq)
    each = period / knots

    def desired(t: float) -> bb.Desired:  # in one product, where three of a spline take 30 µs
        k = min(int(t % period / each), knots - 1)
        s = t % period - k * each
        slopes, bends = (3.0 * s * s, 2.0 * s, 1.0, 0.0), (6.0 * s, 2.0, 0.0, 0.0)
        return bb.Desired(*(np.array(((s**3, s * s, s, 1.0), slopes, bends)) @ pieces[k]))

    return desired
