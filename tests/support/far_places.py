"""The same mechanism elsewhere in the world."""

from dataclasses import replace
from typing import Any

import numpy as np

from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import FREE
from bulletbridge.numerics.records import Array

FAR = np.array([100.0, -2000.0, 30.0])
"""A place [m] that is 5000 times the size of these mechanisms away."""
EPS = np.finfo(float).eps
ROUNDED = 16 * EPS * float(np.linalg.norm(FAR))
"""What positions lose there [m]: two origins, a frame of the world and their sums are rounded."""


def far_away(mechanism: Mechanism, q: Array) -> tuple[Mechanism, Array]:
    """Its robots, and their configuration, moved by ``FAR``."""
    bodies, moved = mechanism.bodies.copy(), q.copy()
    for body in bodies[1:]:
        if body["joint"] == FREE:
            moved[body["q"] : body["q"] + 3] += FAR
        elif body["parent"] == 0:
            body["p"] += FAR
    return replace(mechanism, bodies=bodies), moved


def constrained_there(constraint: Any) -> Any:
    """A constraint whose frames on the world go along."""
    for end in ("a", "b"):
        frame = getattr(constraint, end, None)
        if frame is not None and frame.link == "world":
            there = tuple(float(x) for x in np.array(frame.xyz) + FAR)
            constraint = replace(constraint, **{end: replace(frame, xyz=there)})
    return constraint
