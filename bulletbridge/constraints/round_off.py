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


def accuracy_of(mechanism: Mechanism, encoded: Encoded) -> Accuracy:
    """How well gaps of the loops of a mechanism can be told.

    The rotation of the k-th body of a chain is a product of k, each rounded once: its error grows
    no faster than k, and the joint that is fixed to it is misplaced by that times its distance.
    What both ends of a loop have in common moves both alike.
    """
    bodies, loops = mechanism.bodies, encoded.loops
    depth, length, way = np.zeros((3, len(bodies)))
    offsets = np.linalg.norm(bodies["p"], axis=1)
    for beam in mechanism.beams:
        offsets[beam["body"]] += mechanism.stations[beam["tip"]]["x"]
    for i, body in enumerate(bodies[1:], start=1):
        parent = int(body["parent"])
        depth[i] = depth[parent] + 1.0
        length[i] = length[parent] + offsets[i]
        way[i] = way[parent] + depth[i] * offsets[i]
    stop = loops["stop"]
    common = np.where(stop >= 0, mechanism.axes["body"][stop], 0) if mechanism.nv else 0 * stop
    turned, moved, misplaced = np.zeros((3, len(loops)))
    for end in "ab":
        on, arm = loops[f"body_{end}"], _length(loops[f"p_{end}"])
        turned += depth[on]
        moved += length[on] - length[common] + arm
        misplaced += way[on] - way[common] + (depth[on] + 1.0) * arm
    round_off = max(float(turned.max(initial=0.0)), _largest(misplaced, encoded.length))
    lever = max(1.0, TYPICAL * _largest(moved, encoded.length))
    return Accuracy(TYPICAL * EPS * round_off, lever)


def _length(vectors: Array) -> Array:
    return np.asarray(np.linalg.norm(vectors, axis=1), np.float64)


def _largest(sizes: Array, length: float) -> float:
    return float(sizes.max(initial=0.0)) / length
