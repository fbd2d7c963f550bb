"""Colours for robots whose files give none, so that links can be told apart in pictures."""

from collections.abc import Iterable

import pybullet

PALETTE = (
    (0.93, 0.56, 0.22),
    (0.30, 0.52, 0.78),
    (0.45, 0.68, 0.35),
    (0.80, 0.36, 0.36),
    (0.58, 0.46, 0.74),
    (0.62, 0.48, 0.38),
    (0.86, 0.62, 0.78),
    (0.35, 0.70, 0.72),
)
"""Of links, in turns; red, green, blue."""
BASE = (0.62, 0.64, 0.68)
"""Of bases that stand."""
WHITE = (1.0, 1.0, 1.0, 1.0)
"""What Bullet tells where a file gives no colour."""
PAINTED = (b".obj", b".dae")
"""Endings of meshes that may bring colours of their own, which Bullet does not tell."""


def colour_bare(bodies: Iterable[int], client: int) -> None:
    """Give each link of a body a colour, if its file gives none to any of them."""
    for (body, link), rgba in bare_colours(bodies, client).items():
        pybullet.changeVisualShape(body, link, rgbaColor=list(rgba), physicsClientId=client)


def bare_colours(
    bodies: Iterable[int], client: int
) -> dict[tuple[int, int], tuple[float, float, float, float]]:
    """Colours by body and link, of bodies whose files give none to any of their links."""
    found: dict[tuple[int, int], tuple[float, float, float, float]] = {}
    for body in bodies:
        shapes = pybullet.getVisualShapeData(body, physicsClientId=client) or ()
        if any(shape[7] != WHITE or shape[4].lower().endswith(PAINTED) for shape in shapes):
            continue
        for link in {int(shape[1]) for shape in shapes}:
            red, green, blue = BASE if link < 0 else PALETTE[link % len(PALETTE)]
            found[body, link] = red, green, blue, 1.0
    return found
