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
    """All examples by name."""
    rooms = (
        docking, particle, three_link, as_printed, top, slider_crank, circle, flexible_arms,
        torsion_springs, closed_forms,
    )  # fmt: skip
    return {example.name: example for room in rooms for example in room.EXAMPLES}


def chosen(names: list[str]) -> list[Example]:
    """Examples of these names, of a beginning of names, or of ``all``.

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


MISSING = (
    "**Kövecses and Piedbœuf 2003**, curves of figures 3 to 6 and the load histories: neither"
    " loads nor link data are given, and the pictures were not in the copy that we read. The same"
    " runs are made under loads of ours. “Violations become considerable only after 25 s” depends"
    " on them.",
    "**Eun et al. 2004**, curves of its figures: the pictures were not available. Both applications"
    " are run from the printed data; what application I leaves open is chosen.",
    "**Haug and Pavesic 2023**, curves of figures 5 to 7: with spins of 1e-12 rad/s across the"
    " axis the branch into which a top falls is decided by rounding, so no trajectory is a"
    " reference. The average of 524 charts fits no spin near 13.5 rad/s; “6 charts in 2000 steps”"
    " names neither step nor rule. Its charts are counted in the paper's own coordinates (Euler"
    " parameters; three for each body of the slider-crank), which no URDF has.",
    "**Aghili 2008**: the example's masses, radius and gains are not given; ours are chosen.",
    "**Bonaventura 2002**, the curves of appendix C: not available. Angles at the start, the"
    " distance of the bases of system 6 and the step are not given. The blow-ups of linearised"
    " models are in [linearisations](../linearisations.md). System 5b is reproduced over its 20 s"
    " with two modes, to 1e-7 degrees between two steps, but that says little of the arm: beyond"
    " 10 s other discretisations go elsewhere. The closed forms of the appendix were not"
    " available as print: they are derived anew.",
)
