"""What of a system has bounded forces, and how it was solved for."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.records import STOP
from bulletbridge.inequalities.encode import Guides, encode_guides, encode_pulls
from bulletbridge.inequalities.motor_limit_rows import FASTEST_RECOVERY, SHALLOW
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array


@dataclass(frozen=True)
class Complementarity:
    """How the bounded rows of the last step were solved.

    Attributes:
        rows: Of motors, frictions, limits, constraints that give way and contacts together.
        residual: Largest violation of any condition [m/s or rad/s].
        sweeps: Of Gauss-Seidel.
        newton: Steps of Newton's method after them.
        work: What limits and contacts did to the energy [J], never above round-off unless forces
            turn a motion round within the step.
        taken: Energy [J] that the step would have given by its length alone, taken from the
            velocity.
    """

    rows: int
    residual: float
    sweeps: int
    newton: int
    work: float = 0.0
    taken: float = 0.0


@dataclass(frozen=True)
class Bounds:
    """What of a system has bounded forces, besides motors and contacts.

    Attributes:
        guides: Free motions of loop joints that something acts along.
        pulls: (n,) records of constraints that give way.
        soft: Their rows.
    """

    guides: Guides
    pulls: np.ndarray
    soft: Encoded

    @cached_property
    def any(self) -> bool:
        """Whether there is a constraint that gives way, or a limit along a free motion."""
        limits = any(freedom.limits is not None for freedom in self.guides.freedoms)
        return limits or len(self.pulls) > 0


def bounds_of(mechanism: Mechanism, constraints: Sequence[Constraint]) -> Bounds:
    """Free motions with something along them, and constraints that give way.

    Raises:
        ModelError: A number or a name is impossible.
    """
    pulls, soft = encode_pulls(mechanism, constraints)
    return Bounds(encode_guides(mechanism, constraints), pulls, soft)


def stops_of(mechanism: Mechanism, guides: Guides, joints: bool) -> np.ndarray:
    """Records (n,) of limits: of free motions of loops, and of the tree's joints if wanted."""
    found = [
        (joint.v.start, joint.lower, joint.upper)
        for joint in mechanism.joints.values()
        if joints and joint.kind in ("revolute", "prismatic")
    ]
    found += [
        (-1 - n, *freedom.limits)
        for n, freedom in enumerate(guides.freedoms)
        if freedom.limits is not None
    ]
    limited = [(axis, *limits) for axis, *limits in found if np.any(np.isfinite(limits))]
    slides = {joint.v.start for joint in mechanism.joints.values() if joint.kind == "prismatic"}
    slides |= {-1 - int(n) for n in np.flatnonzero(guides.encoded.in_metres)}
    stops = np.zeros(len(limited), STOP)
    for stop, (axis, lower, upper) in zip(stops, limited, strict=True):
        stop["axis"], stop["lower"], stop["upper"], stop["row"] = axis, lower, upper, -1
        stop["fastest"] = FASTEST_RECOVERY * (guides.encoded.length if axis in slides else 1.0)
    return stops


def beyond_limits(mechanism: Mechanism, q: Array) -> tuple[str, ...]:
    """What to say of joints that a configuration has beyond their limits."""
    found: list[str] = []
    for name, joint in mechanism.joints.items():
        if joint.kind not in ("revolute", "prismatic"):
            continue
        x = float(q[joint.q.start])
        by = max(joint.lower - x, x - joint.upper)
        if by > SHALLOW:
            unit = "rad" if joint.kind == "revolute" else "m"
            found.append(
                f"joint '{name}' is at {x:.6g} {unit}, {by:.3g} {unit} beyond its limits"
                f" [{joint.lower:g}, {joint.upper:g}]"
            )
    return tuple(found)
