"""Random springs, dampers, bushings and tendons between links."""

from collections.abc import Sequence

import numpy as np

import bulletbridge as bb
from bulletbridge.constraints.force_elements import ForceElement


def point(rng: np.random.Generator, size: float) -> tuple[float, float, float]:
    """Three numbers up to a size."""
    x, y, z = rng.uniform(-size, size, 3).tolist()
    return x, y, z


def frame_on(rng: np.random.Generator, link: str) -> bb.Frame:
    """A frame somewhere on a link."""
    return bb.Frame(str(link), point(rng, 0.3))


def element(
    rng: np.random.Generator,
    kind: str,
    name: str,
    links: Sequence[str],
    joints: Sequence[str] = (),
) -> ForceElement:
    """A force element of a kind on two of some links, or along joints of one rate each."""
    size = float(10.0 ** rng.uniform(0.0, 2.5))
    a, b = (frame_on(rng, link) for link in rng.choice(links, 2, replace=False))
    if kind == "bushed":
        x, y, z = (abs(n) for n in point(rng, size))
        weak = 0.1 * z, 0.1 * x, 0.1 * y
        return bb.Bushing(name, a, b, (x, y, z), weak, (y, z, x), weak)
    if kind == "twisted":
        return bb.TorsionSpring(name, a, b, stiffness=size, damping=0.1 * size)
    if kind == "tied":
        return bb.Tendon(name, {joint: float(rng.normal()) for joint in joints}, size, 0.1 * size)
    if kind == "hung up":
        a = bb.Frame("world", point(rng, 1.0))
    via = (frame_on(rng, str(rng.choice(links))),) if kind == "over points" else ()
    return bb.Spring(name, a, b, size, 0.1 * size, length=float(rng.uniform(0.0, 0.5)), via=via)
