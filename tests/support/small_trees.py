"""A rigid body on a few joints at the origin, built without files."""

from typing import Any

import numpy as np

import bulletbridge as bb
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.mechanism.model import Joint, Link, Mechanism, empty_arrays
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE

Vector = tuple[float, float, float]
GRAVITY = 9.81
TO_Z = {
    "x": np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]),
    "y": np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]),
    "z": np.eye(3),
}
"""Rotations whose third column is the axis."""


def free_body(
    mass: float = 1.0, moments: Vector = (0.1, 0.1, 0.1), gravity: Vector = (0, 0, -GRAVITY)
) -> Mechanism:
    """The link ``body``, which may move as it likes."""
    bodies, axes = empty_arrays(2, 6)
    bodies[1]["joint"], bodies[1]["axis"], bodies[1]["mass"] = FREE, 5, mass
    bodies[1]["J"] = np.diag(moments)
    axes["body"], axes["below"], axes["q"] = 1, np.arange(-1, 5), -1
    links = {
        "world": Link("world", 0, np.eye(3), np.zeros(3)),
        "body": Link("body", 1, np.eye(3), np.zeros(3)),
    }
    joints = {"base": Joint("base", "free", slice(0, 7), slice(0, 6))}
    return Mechanism(bodies, axes, links, joints, np.array(gravity, float))


def slider(
    ways: str, mass: float = 1.0, moment: float = 0.0, gravity: Vector = (0, 0, -GRAVITY)
) -> Mechanism:
    """The link ``body`` on sliders along the axes, then turning about y if it has a moment."""
    n = len(ways) + (moment > 0)
    bodies, axes = empty_arrays(n + 1, n)
    links, joints = {"world": Link("world", 0, np.eye(3), np.zeros(3))}, dict[str, Joint]()
    up = np.eye(3)
    for k, way in enumerate(ways + "y" * (moment > 0)):
        body, turns = bodies[k + 1], k == len(ways)
        body["parent"], body["joint"] = k, REVOLUTE if turns else PRISMATIC
        body["q"] = body["v"] = body["axis"] = k
        body["R"], up = up.T @ TO_Z[way], TO_Z[way]
        axes[k]["body"], axes[k]["below"], axes[k]["q"] = k + 1, k - 1, k
        name, kind = ("turn", "revolute") if turns else (way, "prismatic")
        joints[name] = Joint(name, kind, slice(k, k + 1), slice(k, k + 1))
    bodies[n]["mass"] = mass
    bodies[n]["J"] = max(moment, 1e-3 * mass) * np.eye(3)
    links["body"] = Link("body", n, up.T, np.zeros(3))
    return Mechanism(bodies, axes, links, joints, np.array(gravity, float))


def pendulum(**options: Any) -> bb.System:
    """A bar of 1 kg on a hinge at its end, under gravity along -y."""
    load = Load(1.0, (0.5, 0, 0), (0, 0, 0.1))
    mechanism = with_joint(empty_mechanism((0, -9.81, 0)), "pin", "revolute", "bar", load=load)
    return bb.System(mechanism, **options)
