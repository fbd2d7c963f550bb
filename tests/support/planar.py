"""Planar linkages in closed form, built without files."""

# a guess that is not closed yet, and rows that were left out, are not for users
# pyright: reportPrivateUsage=false

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import bulletbridge as bb
from bulletbridge.constraints.encode import Constraint
from bulletbridge.mechanism.model import Joint, Link, Mechanism, empty_arrays
from bulletbridge.mechanism.records import FREE, REVOLUTE

PIN = bb.Frame("world", (1.0, 0, 0))
"""Where ``four_bar`` is closed."""
TURN_DOWN = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # joint angle pi/2 hangs down


def planar_chain(
    lengths: Sequence[float],
    masses: Sequence[float],
    metre: float = 1.0,
    gram: float = 1.0,
    floating: float = 0.0,
) -> Mechanism:
    """Slender rods l0, l1, ... on joints j0, j1, ... in the x-z plane, on a free body if wanted."""
    n = len(lengths) + (floating > 0)
    bodies, axes = empty_arrays(n + 1, len(lengths) + 6 * (floating > 0))
    links = {"world": Link("world", 0, np.eye(3), np.zeros(3))}
    joints = dict[str, Joint]()
    body = q = v = 0
    if floating:
        base = bodies[1]
        base["joint"], base["axis"], base["mass"], base["J"] = FREE, 5, floating, np.eye(3)
        axes["body"][:6], axes["below"][:6], axes["q"][:6] = 1, np.arange(-1, 5), -1
        links["base"] = Link("base", 1, np.eye(3), np.zeros(3))
        joints["base"] = Joint("base", "free", slice(0, 7), slice(0, 6))
        body, q, v = 1, 7, 6
    reach = 0.0
    for i, (length, mass) in enumerate(zip(lengths, masses, strict=True)):
        record, axis = bodies[body + 1], axes[v]
        record["parent"], record["joint"] = body, REVOLUTE
        record["q"], record["v"], record["axis"] = q, v, v
        record["R"] = TURN_DOWN if i == 0 else np.eye(3)
        record["p"] = [reach * metre, 0, 0]
        size = length * metre
        record["mass"], record["com"] = mass * gram, [size / 2, 0, 0]
        inertia = mass * gram * size**2 / 12
        record["J"] = np.diag([1e-4 * inertia, inertia, inertia])
        axis["body"], axis["below"], axis["q"] = body + 1, v - 1, q
        links[f"l{i}"] = Link(f"l{i}", body + 1, np.eye(3), np.zeros(3))
        joints[f"j{i}"] = Joint(f"j{i}", "revolute", slice(q, q + 1), slice(v, v + 1))
        reach, body, q, v = length, body + 1, q + 1, v + 1
    return Mechanism(bodies, axes, links, joints, np.array([0, 0, -9.81 * metre]))


def four_bar(
    times: int = 1,
    ground: float = 1.0,
    metre: float = 1.0,
    gram: float = 1.0,
    extra: Sequence[Constraint] = (),
    **options: Any,
) -> bb.System:
    """Rods of 0.4, 0.9, 0.7 m, 2 kg/m, whose end is pinned to the ground."""
    mechanism = planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4], metre, gram)
    tip, pin = bb.Frame("l2", (0.7 * metre, 0, 0)), bb.Frame("world", (ground * metre, 0, 0))
    names = ["loop", "again"][:times]
    loops = [bb.LoopJoint(name, bb.JointModel.BALL, tip, pin) for name in names]
    return bb.System(mechanism, [*loops, *extra], **options)


def parallelogram(**options: Any) -> tuple[bb.System, float, float]:
    """Cranks 0.5 m 1 kg, coupler 1 m 2 kg, ready to hang; inertia [kg m²], gravity torque [N m]."""
    system = bb.System(
        planar_chain([0.5, 1.0, 0.5], [1.0, 2.0, 1.0]),
        [
            bb.LoopJoint(
                "loop",
                bb.JointModel.BALL,
                bb.Frame("world", (1.0, 0, 0)),
                bb.Frame("l2", (0.5, 0, 0)),
            )
        ],
        **options,
    )
    system._active.full.q[:] = [np.pi / 2, -np.pi / 2, 3 * np.pi / 2]  # hanging: an open guess
    return system, (2 / 3 * 1.0 + 2.0) * 0.5**2, (1.0 + 2.0) * 9.81 * 0.5


def hanging(gravity: float = 9.81, **options: Any) -> bb.System:
    """A floating body with a chain whose end is pinned back to it."""
    mechanism = planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4], floating=5.0)
    mechanism = replace(mechanism, gravity=np.array([0, 0, -gravity]))
    ends = bb.Frame("l2", (0.7, 0, 0)), bb.Frame("base", (1.0, 0, 0))
    loop = bb.LoopJoint("loop", bb.JointModel.BALL, *ends)
    system = bb.System(mechanism, [loop], **options)
    system._active.full.q[7:] = [1.0, -0.6, -2.0]
    return system


def windows(count: int = 1, last: float = 1.0, **options: Any) -> bb.System:
    """Cranks of 1 m and 1 kg, the last of ``last`` kg, with level bars between their tips.

    It starts upright, tips at 1 m/s, and is singular whenever the cranks are level (IFToMM A02).
    """
    number = 2 * count + 1
    bodies, axes = empty_arrays(number + 1, number)
    links = {"world": Link("world", 0, np.eye(3), np.zeros(3))}
    joints = dict[str, Joint]()
    for i in range(number):
        level, body, axis = i % 2 == 1, bodies[i + 1], axes[i]
        body["parent"], body["joint"] = i if level else 0, REVOLUTE
        body["q"], body["v"], body["axis"] = i, i, i
        body["R"] = np.eye(3) if level else TURN_DOWN
        body["p"] = [1.0, 0, 0] if level else [i / 2, 0, 0]
        mass = last if i == number - 1 else 1.0
        body["mass"], body["com"] = mass, [0.5, 0, 0]
        body["J"] = np.diag([1e-4 * mass, mass / 12, mass / 12])
        axis["body"], axis["below"], axis["q"] = i + 1, i - 1 if level else -1, i
        links[f"l{i}"] = Link(f"l{i}", i + 1, np.eye(3), np.zeros(3))
        joints[f"j{i}"] = Joint(f"j{i}", "revolute", slice(i, i + 1), slice(i, i + 1))
    mechanism = Mechanism(bodies, axes, links, joints, np.array([0, 0, -9.81]))
    tip = (1.0, 0, 0)
    loops = [
        bb.LoopJoint(
            f"loop{i}", bb.JointModel.BALL, bb.Frame(f"l{i}", tip), bb.Frame(f"l{i + 1}", tip)
        )
        for i in range(1, number, 2)
    ]
    system = bb.System(mechanism, loops, **options)
    turn = np.array([1.0 if i % 2 == 0 else -1.0 for i in range(number)])
    system.assemble(
        {f"j{i}": -turn[i] * np.pi / 2 for i in range(number)},
        {f"j{i}": turn[i] for i in range(number)},
    )
    return system


def hinged(dt: float = 1 / 240, **options: Any) -> bb.System:
    """``four_bar`` with a hinge for its last pin, about the linkage's normal."""
    tip = bb.Frame("l2", (0.7, 0, 0))
    pin = bb.Frame("world", (1.0, 0, 0), (-np.pi / 2, 0, 0))  # z along y, as the joints
    joint = bb.LoopJoint("pin", bb.JointModel.REVOLUTE, pin, tip, **options)
    return bb.System(planar_chain([0.4, 0.9, 0.7], [0.8, 1.8, 1.4]), [joint], dt=dt)


def assembled(system: bb.System, angle: float = 1.0) -> bb.System:
    """A four-bar, closed at an angle of its first crank [rad]."""
    system.assemble({"j0": angle}, guess={"j0": angle, "j1": -1.0, "j2": -1.5})
    return system
