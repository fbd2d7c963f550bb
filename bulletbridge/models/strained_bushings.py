"""Bushings that stand for loops and start far apart."""

import numpy as np

from bulletbridge.errors import warn_user
from bulletbridge.mechanism.records import BUSHING
from bulletbridge.models.formats.robot import listed
from bulletbridge.models.model_spec import EARTH
from bulletbridge.models.odd_inertias import extent
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

FALLS = 10.0
"""So many falls through the robot's own size, or the ways apart, are more than is meant."""
SHOWN = 3
"""Bushings that the warning names."""


def tell_of_strained_bushings(system: System) -> None:
    """Warn of bushings whose points are so far apart at the start that they throw the robot."""
    apart: dict[str, tuple[float, float]] = {}  # way [m] and energy [J]
    for name, spring in system.spring_forces().items():
        if spring.kind == BUSHING:
            way: Array = np.asarray(spring.position)[3:]
            force: Array = np.asarray(spring.force)[3:]
            apart[name] = float(np.linalg.norm(way)), 0.5 * abs(float(way @ force))
    weight = -EARTH[2] * float(system.mechanism.bodies["mass"].sum())
    energy = sum(held for _, held in apart.values())
    size = max((extent(system), *(way for way, _ in apart.values())))
    if not energy > FALLS * weight * size:
        return
    worst = sorted(apart, key=lambda name: -apart[name][1])
    named = listed((f"'{name}' ({apart[name][0]:.2g} m)" for name in worst), SHOWN)
    warn_user(
        f"bushings start apart: {named} hold {energy:.2g} J, as if it had fallen"
        f" {energy / weight:.2g} m, and throw it at the first steps. They close no loop: write"
        " them as loop joints, which assembling closes, or start it where they are shut"
    )
