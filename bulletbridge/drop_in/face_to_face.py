"""Neighbours whose faces lie on one another around the point that joins them: they cannot turn.

As rigid bodies two boxes that a point joins in the middle of faces that touch would go into each
other at every turn but about the normal. Bullet's contacts, which are not converged, may let them.
"""

import numpy as np

from bulletbridge.bullet.constraints import info_of
from bulletbridge.drop_in.forces import POINTS
from bulletbridge.drop_in.joined_bodies import JoinedBodies
from bulletbridge.errors import warn_user
from bulletbridge.numerics.records import Array

TURN = 0.01
"""Turn [rad] about the point within which a contact must close, to count for one that holds."""
SHORT = 1e-3
"""Lever [lengths of the mechanism] below which a contact blocks no turn."""
ROUND_OFF = 1e-6
"""Part of a lever by which contacts may fail to balance."""
MOST_TOLD = 3


def tell_of_faces(joined: JoinedBodies, client: int) -> None:
    """Say which neighbours' contacts keep them from turning about the point that joins them.

    Args:
        joined: Bodies, whose loops are closed, and constraints.
        client: Physics client.

    Raises:
        StrangerError: Another body that may move takes part.

    Warns:
        BulletBridgeWarning: There are such pairs; it names them, and what lets them turn.
    """
    known = joined.loops.values()
    infos = {loop.name: info_of(loop.number, client) for loop in known if loop.kind in POINTS}
    infos = {name: info for name, info in infos.items() if info[2] >= 0}
    if not infos:
        return
    system, world = joined.system, joined.world
    contacts = world.contact_points(system.q, 0.0 * system.v, system.dt)
    ends = [frozenset([(a, i), (b, j)]) for (a, b, i, j), _ in world.contact_places(contacts)]
    pivots, short = system.gap_vectors(), SHORT * system.encoded.length
    held = list[tuple[int, ...]]()
    for name, (one, link, other, other_link, *_) in infos.items():
        joint = frozenset([(one, link), (other, other_link)])
        here = [pair == joint for pair in ends]
        if name in pivots and block_turns(contacts[here], pivots[name][0], short):
            held.append((one, other, link, other_link))
    if held:
        told = ", ".join(f"{one} and {other}" for one, other, _, _ in held[:MOST_TOLD])
        more = f" and {len(held) - MOST_TOLD} pairs more" if len(held) > MOST_TOLD else ""
        warn_user(
            f"bodies {told}{more} touch on all sides of the point that joins them, about which"
            f" rigid bodies cannot turn then: setCollisionFilterPair{(*held[0], 0)}, and so for"
            " each pair, lets them"
        )


def block_turns(contacts: np.ndarray, pivot: Array, short: float) -> bool:
    """Whether contacts (n,) allow no turn about a pivot but those that change no distance.

    A turn changes the distance of a contact by its product with the contact's moment about the
    pivot. None can make all grow where each moment's opposite is a sum of the others.
    """
    arms = np.cross(contacts["position"] - pivot, contacts["normal"])
    sizes = np.linalg.norm(arms, axis=1)
    holds = (sizes > short) & (contacts["gap"] < TURN * sizes)
    arms, sizes = arms[holds], sizes[holds]
    if len(arms) < 2:
        return False
    from scipy.optimize import nnls  # as long as a start takes, for those who need it

    return all(
        nnls(arms.T, -arm)[1] <= ROUND_OFF * size for arm, size in zip(arms, sizes, strict=True)
    )
