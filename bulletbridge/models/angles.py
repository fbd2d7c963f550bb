"""Angles in files that look like degrees where radians are meant."""

import math
from collections.abc import Iterable, Mapping

MOST = 3600.0
"""Degrees that somebody would write; beyond, as 1e9, no angle is meant but none."""


def degrees_notes(angles: Mapping[str, Iterable[float]]) -> list[str]:
    """What is to be said of whole numbers beyond a full turn, by what the angles [rad] are of."""
    return [
        f"{where} is {value:g} rad, {abs(value) / math.tau:.1f} turns; if degrees are meant,"
        f" write {math.radians(value):.6g}"
        for where, values in angles.items()
        for value in values
        if math.tau < abs(value) <= MOST and value == round(value)
    ]
