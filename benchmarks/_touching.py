"""Where two shapes touch at many poses, in one call from Python."""

from typing import NamedTuple

import numpy as np

from bulletbridge.collision.narrow_phase import meet
from bulletbridge.collision.records import (
    MOST_POINTS,
    PLACED,
    TOUCH,
    Hulls,
    Placed,
    Room,
    Shape,
    Touch,
)
from bulletbridge.collision.shapes import Owner, ShapeSpec, records_of, room
from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.jit import kernel
from bulletbridge.numerics.records import Array, Ints, Records


class Poses(NamedTuple):
    """Where a shape is, many times.

    Attributes:
        R: (n, 3, 3) its axes in the world.
        p: (n, 3) its origin [m].
    """

    R: Array
    p: Array


class Touches(NamedTuple):
    """Points at which two shapes touch, of many poses.

    Attributes:
        counts: (n,) how many there are.
        points: (n, MOST_POINTS) of dtype ``TOUCH``, of which so many count.
    """

    counts: Ints
    points: np.ndarray

    @property
    def gaps(self) -> Array:
        """Least gap (n,) [m], infinite where there is no point."""
        there = np.arange(MOST_POINTS) < self.counts[:, None]
        return np.where(there, self.points["gap"], np.inf).min(axis=1)


def touches(a: ShapeSpec, b: ShapeSpec, at_a: Poses, at_b: Poses, limit: float) -> Touches:
    """Points at which shape a touches shape b, or is up to ``limit`` [m] away from it.

    Normals go from a to b, positions are on b, world axes.
    """
    n = len(at_a.p)
    records = records_of([a, b], [Owner(0, 0, limit), Owner(1, 1, limit)])
    placed = np.zeros((n, 2), PLACED)
    placed["R"][:, 0], placed["R"][:, 1] = at_a.R, at_b.R
    placed["p"][:, 0], placed["p"][:, 1] = at_a.p, at_b.p
    counts: Ints = np.zeros(n, np.int64)
    points = np.zeros((n, MOST_POINTS), TOUCH)
    with announce_compilation(meet_often):
        flat = placed.reshape(-1), points.reshape(-1)
        meet_often(records.shapes, records.hulls, room(), flat[0], limit, counts, flat[1])
    return Touches(counts, points)


@kernel
def meet_often(
    shapes: Records[Shape],
    hulls: Hulls,
    room: Room,
    placed: Records[Placed],
    limit: float,
    counts: Ints,
    points: Records[Touch],
) -> int:
    """Points of shapes 0 and 1 at n poses, ``placed`` one after the other; n."""
    for k in range(len(counts)):
        here, there = placed[2 * k], placed[2 * k + 1]
        counts[k] = meet(shapes[0], shapes[1], here, there, hulls, room, limit)
        for m in range(counts[k]):
            touch, kept = room.found[m], points[MOST_POINTS * k + m]
            kept.gap, kept.feature = touch.gap, touch.feature
            for c in range(3):
                kept.position[c], kept.normal[c] = touch.position[c], touch.normal[c]
    return len(counts)
