"""Parts of a system's coordinates that no constraint joins: what rows of contacts are on."""

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.engine.islands import find_islands
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Ints


def coordinate_parts(mechanism: Mechanism, *encoded: Encoded) -> Ints:
    """First coordinate of each part of the rates, and their number: (parts + 1,).

    Parts are ranges: what lies between coordinates that constraints join belongs to their part.

    Args:
        mechanism: The trees.
        encoded: All constraints that may hold, or push, in a step.
    """
    joined = np.zeros(mechanism.nv + 1, np.int64)
    for constraints in encoded:
        for island in find_islands(mechanism, constraints):
            if len(island.v):
                joined[island.v.min() + 1] += 1
                joined[island.v.max() + 1] -= 1
    begins = np.flatnonzero(np.cumsum(joined)[:-1] == 0)
    return np.append(begins, mechanism.nv)
