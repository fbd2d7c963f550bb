"""Angles that look like degrees where radians are meant."""

import math
from collections.abc import Iterable, Mapping

MOST = 3600.0
"""Degrees that somebody would write; beyond, as 1e9, no angle is meant but none."""

OF_LIMITS = 15.0
"""What limits in degrees are multiples of."""


def degrees_notes(angles: Mapping[str, Iterable[float]], step: float = 1.0) -> list[str]:
    """What is to be said of angles [rad] beyond a full turn that are whole numbers of a step.

    Args:
        angles: By what they are of.
        step: ``OF_LIMITS`` for limits, which may be 10 or 100 for none.
    """
    return [
        f"{where} is {value:g} rad, {abs(value) / math.tau:.1f} turns; if degrees are meant,"
        f" write {math.radians(value):.6g}"
        for where, values in angles.items()
        for value in values
        if math.tau < abs(value) <= MOST and value % step == 0.0
    ]
