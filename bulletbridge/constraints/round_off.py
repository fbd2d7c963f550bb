"""Round-off of residuals, by the chains of joints that loops close."""

from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.mechanism.model import Mechanism

EPS = float(np.finfo(np.float64).eps)
TYPICAL = 0.125
"""Share of the sum of all roundings, which have either sign: what corrections aim at. They may end
at ten times that where they gain no more, which is beyond the sum."""


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
    offsets: list[float] = np.linalg.norm(mechanism.bodies["p"], axis=1).tolist()
    for beam in mechanism.beams:
        offsets[beam["body"]] += float(mechanism.stations[beam["tip"]]["x"])
    turned, moved, misplaced = 0, 0.0, 0.0
    bodies: list[int] = mechanism.axes["body"].tolist()
    ends = (_ends(encoded, "a"), _ends(encoded, "b"))
    stops: list[int] = encoded.loops["common_axis"].tolist()
    for stop, a, b in zip(stops, *ends, strict=True):
        common = bodies[stop] if stop >= 0 else 0
        chains = [_chain(parents, offsets, body, common, arm) for body, arm in (a, b)]
        turned = max(turned, sum(chain.joints for chain in chains))
        moved = max(moved, sum(chain.moved for chain in chains))
        misplaced = max(misplaced, sum(chain.misplaced for chain in chains))
    round_off = max(float(turned), misplaced / encoded.length)
    return Accuracy(TYPICAL * EPS * round_off, max(1.0, TYPICAL * moved / encoded.length))


def _ends(encoded: Encoded, end: str) -> list[tuple[int, float]]:
    """Bodies at one end of all loops, and how far from their origins the frames are [m]."""
    arms = np.linalg.norm(encoded.loops[f"p_{end}"], axis=1)
    return list(zip(encoded.loops[f"body_{end}"].tolist(), arms.tolist(), strict=True))


def _chain(parents: list[int], offsets: list[float], body: int, common: int, arm: float) -> Chain:
    """The chain from a common body to another one, on which a frame is ``arm`` [m] away."""
    lengths: list[float] = []  # the last one first
    length = arm
    while body != common:
        lengths.append(length)
        length, body = offsets[body], parents[body]
    joints = len(lengths)
    misplaced = sum((joints - k) * part for k, part in enumerate(lengths))
    return Chain(joints, sum(lengths), misplaced)
