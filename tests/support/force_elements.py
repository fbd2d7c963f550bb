"""Random springs, dampers, bushings and tendons between links."""

import bulletbridge as bb


def frame_on(rng, link):
    """A frame somewhere on a link."""
    return bb.Frame(str(link), tuple(rng.uniform(-0.3, 0.3, 3)))


def element(rng, kind, name, links, joints=()):
    """A force element of a kind on two of some links, or along joints of one rate each."""
    size = 10.0 ** rng.uniform(0.0, 2.5)
    a, b = (frame_on(rng, link) for link in rng.choice(links, 2, replace=False))
    if kind == "bushed":
        both = tuple(rng.uniform(0.0, size, 3)), tuple(rng.uniform(0.0, 0.1 * size, 3))
        return bb.Bushing(name, a, b, *both, *both)
    if kind == "twisted":
        return bb.TorsionSpring(name, a, b, stiffness=size, damping=0.1 * size)
    if kind == "tied":
        return bb.Tendon(name, {joint: rng.normal() for joint in joints}, size, 0.1 * size)
    if kind == "hung up":
        a = bb.Frame("world", tuple(rng.uniform(-1.0, 1.0, 3)))
    via = (frame_on(rng, rng.choice(links)),) if kind == "over points" else ()
    return bb.Spring(name, a, b, size, 0.1 * size, length=rng.uniform(0.0, 0.5), via=via)
