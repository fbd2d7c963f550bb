"""Trajectories as arrays, and what they are worth at every time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

LEVELS = [f"{level}{unit}" for level in ("", "kept_", "rate_") for unit in ("metres", "radians")]
"""What a gap has, in the order in which ``Observed`` has it."""


@dataclass(frozen=True)
class Observed:
    """Evaluation over time, each (n,): the largest gap over the constraints, and energies [J].

    On the acceleration level that of any row, mean over the step that ends there [m/s², rad/s²]:
    change of J v + g_t over the time it took, whatever a solver takes for accelerations. Potential
    energy is that of dead loads, too.
    """

    gap_m: Array
    gap_rad: Array
    gap_kept: Array
    gap_kept_rad: Array
    gap_rate: Array
    gap_rate_rad: Array
    gap_acceleration: Array
    gap_acceleration_rad: Array
    kinetic: Array
    potential: Array


@dataclass(frozen=True)
class Trace:
    """A trajectory with its start."""

    t: Array  # (n,) [s]
    q: Array  # (n, nq)
    v: Array  # (n, nv)
    step_us: Array  # (n - 1,) wall-clock time of each step [µs]
    evaluated: Observed | None = None  # what the states are worth


def observe(system: System, trace: Trace, dead: Sequence[str] = ()) -> Observed:
    """Evaluate all states of a trajectory with the rows of a system; overflow is no number.

    Args:
        system: The system.
        trace: What is evaluated.
        dead: Names of the wrenches that are dead loads.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _observe(system, trace, dead)


def _observe(system: System, trace: Trace, dead: Sequence[str]) -> Observed:
    table = np.zeros((10, len(trace.t)))
    before: Array | None = None
    for n, (t, q, v) in enumerate(zip(trace.t, trace.q, trace.v, strict=True)):
        seen = system.evaluate(q, v, float(t))
        gaps = [[getattr(gap, name) for name in LEVELS] for gap in seen.gaps]
        table[:6, n] = np.max(gaps, axis=0) if gaps else 0.0
        if before is not None:
            mean = (seen.rates - before) / (t - trace.t[n - 1])
            table[6, n] = np.abs(mean[seen.in_metres]).max(initial=0.0)
            table[7, n] = np.abs(mean[~seen.in_metres]).max(initial=0.0)
        before = seen.rates
        acting = system.applied_wrenches(q, v, float(t)) if dead else {}
        lifted = sum(float(acting[name].force @ acting[name].point) for name in dead)
        table[8:, n] = seen.kinetic, seen.potential - lifted
    return Observed(*table)


def distances(mechanism: Mechanism, q: Array, reference: Array) -> Array:
    """Largest difference (n,) of any coordinate [m or rad]; rotations count by their angle."""
    found = np.zeros(len(q))
    for joint in mechanism.joints.values():
        mine, other = q[:, joint.q], reference[:, joint.q]
        if joint.kind in ("spherical", "free"):
            turn = Rotation.from_quat(other[:, -4:]).inv() * Rotation.from_quat(mine[:, -4:])
            found = np.maximum(found, turn.magnitude())
            mine, other = mine[:, :-4], other[:, :-4]
        if mine.shape[1]:
            found = np.maximum(found, np.abs(mine - other).max(axis=1))
    return found
