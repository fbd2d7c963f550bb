"""Inertias that are not those of bodies of their mass and size, as of files in other units.

All of a body's mass lies within its shapes, so its radii of gyration are shorter than these are
wide, and hardly ever a hundredth of that.
"""

import math
from collections.abc import Mapping

import numpy as np
import pybullet

from bulletbridge.bullet.state import BulletBodies
from bulletbridge.errors import warn_user
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.models.formats.robot import listed
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System

WIDE = 10.0
"""A radius of gyration of so many times what reaches around a body is one in other units. Of 850
links of others' robots with shapes, none but placeholders is above 7."""
NARROW = 0.03
"""So few of it likewise; none of theirs is below 0.13."""
ALIKE = 0.99
"""Least over largest principal moment of placeholders, such as 1, 1, 1, which have no shape."""
SHOWN = 3
"""Links that the warning names."""
MARGIN = 0.004
"""Sides [m] up to which a box is that of a link without shapes: Bullet's has 2 mm, turned."""


def tell_of_odd_inertias(system: System, bodies: BulletBodies) -> None:
    """Warn of links whose inertia does not fit their mass and size, if there are some."""
    mechanism = system.mechanism
    found = odd_inertias(mechanism, reaches(bodies), extent(system))
    if not found:
        return
    names = mechanism.first_links
    told = [f"'{names[number]}' ({ratio:.1e})" for number, ratio in found.items()]
    warn_user(
        f"inertias of {listed(told, SHOWN)} are so many times what their mass would have"
        " at the edge of their size: is the file in other units? Inertias are kg m² (1 kg mm² is"
        " 1e-6 kg m², 1 g mm² 1e-9), masses kg, lengths m; 'bulletbridge inertia' computes them"
        " from shapes"
    )


def odd_inertias(
    mechanism: Mechanism, reach: Mapping[int, float], across: float
) -> dict[int, float]:
    """Bodies, by number, whose largest moment of inertia is odd, over mass times squared size.

    Args:
        mechanism: The tree.
        reach: Half the diagonal of what encloses a body's shapes [m], by its number; its joints may
            be further away. Those that are not there, and placeholders, are held to the whole.
        across: Extent of the mechanism [m].
    """
    found: dict[int, float] = {}
    whole = max((across, *reach.values()))
    parents, places = mechanism.bodies["parent"], mechanism.bodies["p"]
    for number, body in enumerate(mechanism.bodies[1:], 1):
        mass, moments = float(body["mass"]), np.linalg.eigvalsh(body["J"])
        if not mass > 0.0 or not moments[-1] > 0.0:
            continue
        size, least = whole, 0.0
        if number in reach and moments[0] < ALIKE * moments[-1]:
            joints = np.vstack((np.zeros(3), places[parents == number])) - body["com"]
            size = max(reach[number], float(np.linalg.norm(joints, axis=1).max()))
            least = NARROW * reach[number]
        gyration = math.sqrt(moments[-1] / mass)
        if size > 0.0 and not least <= gyration <= WIDE * size:
            found[number] = (gyration / size) ** 2
    return found


def reaches(bodies: BulletBodies) -> dict[int, float]:
    """Half the diagonals [m] of the boxes around the shapes that bodies of the mechanism carry."""
    boxes: dict[int, list[tuple[Array, Array]]] = {}
    for port in bodies.ports:
        for link, carrier in enumerate(port.carriers, -1):
            low, high = map(np.array, pybullet.getAABB(port.body_id, link, bodies.client))
            if np.any(high - low > MARGIN):
                boxes.setdefault(carrier, []).append((low, high))
    found: dict[int, float] = {}
    for carrier, own in boxes.items():
        low, high = np.min([box[0] for box in own], axis=0), np.max([box[1] for box in own], axis=0)
        found[carrier] = 0.5 * float(np.linalg.norm(high - low))
    return found


def extent(system: System) -> float:
    """Largest extent [m] of origins and centres of what moves, and of loops, along an axis."""
    coms, poses = system.mechanism.bodies["com"][1:], system.terms().poses[1:]
    origins: Array = poses["origin"] + poses["p"]
    points = [*origins, *(origins + np.einsum("nij,nj->ni", poses["R"], coms))]
    points += [point for point, _ in system.gap_vectors().values()]
    return float(np.ptp(points, axis=0).max()) if points else 0.0
