"""All examples by name, in the order of the papers."""

from bulletbridge.papers import (
    as_printed,
    circle,
    closed_forms,
    docking,
    flexible_arms,
    particle,
    slider_crank,
    three_link,
    top,
    torsion_springs,
)
from bulletbridge.papers.example import Example
from bulletbridge.system.parameters import require_known

EVERYTHING = "all"


def examples() -> dict[str, Example]:
    """All of them."""
    rooms = (
        docking,
        particle,
        three_link,
        as_printed,
        top,
        slider_crank,
        circle,
        flexible_arms,
        torsion_springs,
        closed_forms,
    )
    return {example.name: example for room in rooms for example in room.EXAMPLES}


def chosen(names: list[str]) -> list[Example]:
    """Those of these names, of a beginning of names, or ``all``.

    Raises:
        ModelError: There is no such example; the nearest names are told.
    """
    known, found = examples(), dict[str, Example]()
    for name in names:
        if name == EVERYTHING:
            return list(known.values())
        of_paper = {k: example for k, example in known.items() if k.startswith(name)}
        if name not in known and not of_paper:
            require_known("example", name, known)
        found |= {name: known[name]} if name in known else of_paper
    return list(found.values())
