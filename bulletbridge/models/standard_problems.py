"""Standard problems of the field as bundled models, and what their solutions are."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bulletbridge.constraints.joints import Frame
from bulletbridge.models.bundled import find
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

PLANE, SPACE, UP = (0, 1), (0, 1, 2), (2,)
POINTS: dict[str, tuple[tuple[Frame, ...], tuple[int, ...]]] = {
    "a01_pendulum": ((Frame("mass"),), PLANE),
    "a02_windows_2": ((Frame("crank0", (0.0, 1.0, 0.0)),), PLANE),
    "a02_windows_40": ((Frame("crank0", (0.0, 1.0, 0.0)),), PLANE),
    "bricard": ((Frame("bar3"),), SPACE),
    "a05_governor": ((Frame("slider"),), UP),
    "a05_governor_rigid": ((Frame("slider"),), UP),
    "stewart": ((Frame("platform", (-0.6427876096865393, 0.766044443118978, 0.0)),
                 Frame("platform")), SPACE),
}  # fmt: skip
"""Points whose positions are compared, and which of their coordinates; of the others the joints."""


@dataclass(frozen=True)
class Problem:
    """A bundled model with reference values of high accuracy."""

    name: str  # the model's
    times: Array  # (n,) [s]
    values: Array  # (n, m) what ``output`` gives then [m or rad]
    acceleration: dict[str, float]  # of joints at the start, by name
    joints: tuple[str, ...] = ()  # whose positions are compared if no points are

    @property
    def duration(self) -> float:
        """Last of the times [s]."""
        return float(self.times[-1])

    def output(self, system: System) -> Array:
        """What is compared (m,): coordinates of points [m], or angles from where they start."""
        if self.name in POINTS:
            frames, axes = POINTS[self.name]
            kinematics = system.kinematics()
            return np.concatenate([kinematics.point(frame).p_W[list(axes)] for frame in frames])
        places = [system.mechanism.joint(name).q.start for name in self.joints]
        return system.q[places]

    def errors(self, system: System, until: float = np.inf) -> Array:
        """Advance a system from the start; largest error (k,) at each time up to ``until`` [s].

        The step must divide the times.
        """
        found: list[float] = []
        for t, value in zip(self.times, self.values, strict=True):
            if t > until:
                break
            system.rollout(round((t - system.t) / system.dt))
            found.append(float(np.abs(self.output(system) - value).max()))
        return np.array(found)


def standard_problems() -> dict[str, Problem]:
    """All problems by the name of their model."""
    return {name: _problem(name) for name in _data()}


def _problem(name: str) -> Problem:
    given = _data()[name]
    rows = np.array(given["rows"], float)
    times, values = rows[:, 0], rows[:, 1:]
    acceleration: dict[str, float] = given.get("acceleration", {})
    if name in POINTS:
        frames, axes = POINTS[name]
        return Problem(name, times, values[:, : len(frames) * len(axes)], acceleration)
    zero: dict[str, float] = given["zero"]
    turned = values[:, : len(zero)] - np.array(list(zero.values()))
    return Problem(name, times, turned, acceleration, tuple(zero))


@cache
def _data() -> dict[str, dict[str, Any]]:
    path = find("a01_pendulum").with_name("references.json")
    data = json.loads(path.read_text(encoding="utf-8"))
    del data["source"]
    return data
