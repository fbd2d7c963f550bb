"""What double precision leaves of residuals, by the chains of joints that loops close."""

from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.encoded import Encoded
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array

EPS = float(np.finfo(np.float64).eps)
TYPICAL = 0.125
"""Of the sum of all roundings, which have either sign: what corrections aim at. They may end at ten
times that where they gain no more, which is beyond the sum."""


class Accuracy(NamedTuple):
    """How well gaps can be told.

    Attributes:
        round_off: Residual, in lengths or radians, that the products of rotations along the chains
            leave, as corrections take it.
        lever: The same of the rounding of joint positions, per that rounding.
    """

    round_off: float
    lever: float


class Chain(NamedTuple):
    """One end of a loop from the body that is common to both: its joints, and what they move.

    Attributes:
        joints: Their number.
        moved: Length that they move [m].
        misplaced: Each part of that length times the number of joints that turn it [m].
    """

    joints: int
    moved: float
    misplaced: float


def accuracy_of(mechanism: Mechanism, encoded: Encoded) -> Accuracy:
    """How well gaps of the loops of a mechanism can be told.

    The rotation of the k-th body of a chain is a product of k, each rounded once: its error grows
    no faster than k, and what is fixed to it is misplaced by that times its distance. What both
    ends of a loop have in common moves both alike.
    """
    parents: list[int] = mechanism.bodies["parent"].tolist()
    offsets: Array = np.linalg.norm(mechanism.bodies["p"], axis=1)
    for beam in mechanism.beams:
        offsets[beam["body"]] += mechanism.stations[beam["tip"]]["x"]
    turned, moved, misplaced = 0, 0.0, 0.0
    for loop in encoded.loops:
        stop = int(loop["stop"])
        common = int(mechanism.axes[stop]["body"]) if stop >= 0 else 0
        ends: list[Chain] = []
        for end in "ab":
            arm = float(np.linalg.norm(loop[f"p_{end}"]))
            ends.append(_chain(parents, offsets, int(loop[f"body_{end}"]), common, arm))
        a, b = ends
        turned = max(turned, a.joints + b.joints)
        moved = max(moved, a.moved + b.moved)
        misplaced = max(misplaced, a.misplaced + b.misplaced)
    round_off = max(float(turned), misplaced / encoded.length)
    return Accuracy(TYPICAL * EPS * round_off, max(1.0, TYPICAL * moved / encoded.length))


def _chain(parents: list[int], offsets: Array, body: int, common: int, arm: float) -> Chain:
    """The chain from a common body to another one, on which a frame is ``arm`` [m] away."""
    lengths: list[float] = []  # the last one first
    length = arm
    while body != common:
        lengths.append(length)
        length, body = float(offsets[body]), parents[body]
    joints = len(lengths)
    misplaced = sum((joints - k) * part for k, part in enumerate(lengths))
    return Chain(joints, sum(lengths), misplaced)
