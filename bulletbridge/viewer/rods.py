"""Where links are in a Bullet world, and the massless rods between them."""

from collections.abc import Iterable, Sequence

import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.bullet.reader import BulletBodies
from bulletbridge.bullet.worlds import inertial_place
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.joints import Distance
from bulletbridge.numerics.records import Array

BASE, NOWHERE, UNTURNED = -1, (-1, -1), np.array([0.0, 0.0, 0.0, 1.0])
SLIM, COLOUR = 0.02, (0.62, 0.66, 0.70, 1.0)
"""Radius of rods over their length, and their colour."""
Link = tuple[int, int]
"""Bullet's body id and link index."""


class Rods:
    """Massless rods in a Bullet world as thin cylinders: nothing else is seen of such constraints.

    Args:
        constraints: Those of a mechanism; others than distances are passed over.
        bodies: Its bodies, in a world of ours.

    Attributes:
        ids: Of Bullet's bodies.
    """

    def __init__(self, constraints: Iterable[Constraint], bodies: BulletBodies) -> None:
        self._constraints, self._bodies = list(constraints), bodies
        self.ids = list[int]()
        for length in [each.length for each in self._constraints if isinstance(each, Distance)]:
            size = {"radius": SLIM * length, "length": length, "rgbaColor": COLOUR}
            shape = pybullet.createVisualShape(
                pybullet.GEOM_CYLINDER, physicsClientId=bodies.client, **size
            )
            self.ids.append(pybullet.createMultiBody(0, -1, shape, physicsClientId=bodies.client))
        self.show()

    def __enter__(self) -> None:
        """They are there already."""

    def __exit__(self, *raised: object) -> None:
        """Remove them."""
        for body in self.ids:
            pybullet.removeBody(body, physicsClientId=self._bodies.client)

    def show(self) -> None:
        """Put them where the bodies are now."""
        for body, (a, b) in zip(self.ids, rod_ends(self._constraints, self._bodies), strict=True):
            if np.array_equal(a, b):
                continue  # before its loop was closed
            turn = Rotation.align_vectors([b - a], [[0.0, 0.0, 1.0]])[0].as_quat()
            pybullet.resetBasePositionAndOrientation(
                body, (0.5 * (a + b)).tolist(), turn.tolist(), physicsClientId=self._bodies.client
            )


def rod_ends(constraints: Iterable[Constraint], bodies: BulletBodies) -> Array:
    """Ends (n, 2, 3) [m] of the rods among the constraints of bodies, where these are now."""
    frames = [f for each in constraints if isinstance(each, Distance) for f in (each.a, each.b)]
    own = [(port.body_id, port.links) for port in bodies.ports if frames]
    links = {name: (body, k) for body, names in own for k, name in enumerate(names, BASE)}
    places = [place for frame in frames if (place := links.get(frame.link))]
    poses = dict(zip(places, link_poses(bodies.client, places), strict=True))
    found = list[Array]()
    for frame in frames:  # those on no body are on the world
        p, turn = poses.get(links.get(frame.link, NOWHERE), (np.zeros(3), UNTURNED))
        found.append(p + Rotation.from_quat(turn).apply(frame.xyz))
    return np.reshape(found, (-1, 2, 3))


def link_poses(client: int, links: Sequence[Link]) -> list[tuple[Array, Array]]:
    """Where link frames are in the world: position (3,) [m] and quaternion xyzw (4,) of each."""
    found: list[tuple[Array, Array]] = []
    for body, index in links:
        # the frame that Bullet tells itself has single precision
        p, turn = inertial_place(body, index, client)
        inner = pybullet.getDynamicsInfo(body, index, physicsClientId=client)[3:5]
        R = Rotation.from_quat(turn) * Rotation.from_quat(inner[1]).inv()
        found.append((np.array(p) - R.apply(inner[0]), R.as_quat()))
    return found
