"""Inequality constraints of a system, and how their problem was solved."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.joint_models import has_force_limit
from bulletbridge.constraints.joints import JointModel, LoopJoint
from bulletbridge.constraints.records import JOINT_LIMIT
from bulletbridge.inequalities.encode import LoopAxes, encode_force_limited, encode_loop_axes
from bulletbridge.inequalities.motor_limit_rows import FASTEST_RECOVERY, SHALLOW
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Ints

NARROW = 0.1
"""Width [rad, m] of limits that a step may lead from one to the other of: both may act in it."""


@dataclass(frozen=True)
class Complementarity:
    """How the inequality rows of the last step were solved.

    Attributes:
        rows: Of motors, frictions, limits, constraints with a force limit and contacts together.
        residual: Largest violation of any condition [m/s or rad/s].
        sweeps: Of Gauss-Seidel.
        newton: Steps of Newton's method after them.
        work: What limits and contacts did to the energy [J], never above round-off unless forces
            turn a motion round within the step, or compliant contacts give back what they took.
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
class InequalityConstraints:
    """What of a system acts by inequalities, besides motors and contacts.

    Attributes:
        loop_axes: Free motions of loop joints that something acts along.
        force_limits: (n,) records of constraints with a force limit.
        force_limited: Their rows.
        rigid: (nb,) bodies of one number are held rigidly to one another.
    """

    loop_axes: LoopAxes
    force_limits: np.ndarray
    force_limited: Encoded
    rigid: Ints

    @cached_property
    def any(self) -> bool:
        """Whether there is a constraint with a force limit, or a limit along a free motion."""
        named = self.loop_axes.acting[: len(self.loop_axes.names)]
        return any(each.limits is not None for each in named) or len(self.force_limits) > 0

    @property
    def turns(self) -> bool:
        """Whether there is a spherical joint in the tree with a largest turn."""
        return len(self.loop_axes.acting) > len(self.loop_axes.names)


def inequality_constraints_of(
    mechanism: Mechanism, constraints: Sequence[Constraint]
) -> InequalityConstraints:
    """Free motions with something along them, and constraints with a force limit.

    Raises:
        ModelError: A number or a name is impossible.
    """
    force_limits, force_limited = encode_force_limited(mechanism, constraints)
    return InequalityConstraints(
        encode_loop_axes(mechanism, constraints),
        force_limits,
        force_limited,
        held_rigidly(mechanism, constraints),
    )


def held_rigidly(mechanism: Mechanism, constraints: Sequence[Constraint]) -> Ints:
    """For each body (nb,) the first of those that it is welded to, without a force limit."""
    first = np.arange(len(mechanism.bodies))
    for each in constraints:
        if isinstance(each, LoopJoint) and each.model is JointModel.WELD:
            if each.motion is None and not has_force_limit(each):
                ends = [first[mechanism.link(end.link).body] for end in (each.a, each.b)]
                first[first == max(ends)] = min(ends)
    return first


def joint_limits_of(mechanism: Mechanism, loop_axes: LoopAxes, joints: bool) -> np.ndarray:
    """Records (n,) of limits: of free motions of loops, and of the tree's joints if wanted."""
    found = [
        (joint.v.start, joint.lower, joint.upper)
        for joint in mechanism.joints.values()
        if joints and joint.is_single
    ]
    found += [
        (-1 - n, *freedom.limits)
        for n, freedom in enumerate(loop_axes.acting)
        if freedom.limits is not None and (joints or n < len(loop_axes.names))
    ]
    limited = list[tuple[int, float, float]]()
    for axis, lower, upper in found:
        if 0.0 < upper - lower < NARROW:  # what leads beyond one may be pushed beyond the other
            limited += [(axis, lower, np.inf), (axis, -np.inf, upper)]
        elif np.any(np.isfinite([lower, upper])):
            limited.append((axis, lower, upper))
    slides = {joint.v.start for joint in mechanism.joints.values() if joint.kind == "prismatic"}
    slides |= {-1 - int(n) for n in np.flatnonzero(loop_axes.encoded.in_metres)}
    joint_limits = np.zeros(len(limited), JOINT_LIMIT)
    for stop, (axis, lower, upper) in zip(joint_limits, limited, strict=True):
        stop["axis"], stop["lower"], stop["upper"], stop["row"] = axis, lower, upper, -1
        stop["fastest"] = FASTEST_RECOVERY * (loop_axes.encoded.length if axis in slides else 1.0)
    return joint_limits


def with_watched_limits(mechanism: Mechanism) -> Mechanism:
    """The mechanism with joint limits at which free steps end."""
    axes = mechanism.axes.copy()
    for joint in mechanism.joints.values():
        if joint.is_single and np.any(np.isfinite([joint.lower, joint.upper])):
            axis = axes[joint.v.start]
            axis["limited"], axis["lower"], axis["upper"] = 1, joint.lower, joint.upper
    return replace(mechanism, axes=axes)


def without_room(mechanism: Mechanism) -> tuple[str, ...]:
    """What to say of joints whose limits leave them no way to go."""
    return tuple(
        f"joint '{name}' cannot move: its limits are [{joint.lower:g}, {joint.upper:g}]; give its"
        " range, or make it continuous, or fixed if that is meant"
        for name, joint in mechanism.joints.items()
        if joint.is_single and joint.lower == joint.upper
    )


def beyond_limits(mechanism: Mechanism, q: Array) -> tuple[str, ...]:
    """What to say of joints that a configuration has beyond their limits."""
    found: list[str] = []
    for name, joint in mechanism.joints.items():
        if joint.is_single:
            x = float(q[joint.q.start])
        elif joint.kind == "spherical":
            *way, w = np.abs(q[joint.q])
            x = 2.0 * float(np.arctan2(np.linalg.norm(way), w))
        else:
            continue
        by = max(joint.lower - x, x - joint.upper)
        if by > SHALLOW:
            unit = "m" if joint.kind == "prismatic" else "rad"
            found.append(
                f"joint '{name}' is at {x:.6g} {unit}, {by:.3g} {unit} beyond its limits"
                f" [{joint.lower:g}, {joint.upper:g}]"
            )
    return tuple(found)


def joints_beyond(mechanism: Mechanism, q: Array) -> set[str]:
    """Hinges and sliders that a configuration (nq,) has beyond their limits."""
    return {name for name, far in crossings(mechanism, q).items() if far > SHALLOW}


def most_beyond(mechanism: Mechanism, q: Array) -> float:
    """How far beyond its limits a configuration (nq,) has a hinge or slider at most [rad or m]."""
    return max(crossings(mechanism, q).values(), default=0.0)


def crossings(mechanism: Mechanism, q: Array) -> dict[str, float]:
    """How far beyond its nearer limit each hinge and slider is [rad or m]; negative within."""
    ends = {n: (j.lower, j.upper, q[j.q.start]) for n, j in mechanism.joints.items() if j.is_single}
    return {n: float(max(low - x, x - high)) for n, (low, high, x) in ends.items()}
