"""Bodies in a PyBullet world some of whose chains of segments only show flexible beams.

The mechanism has a beam with a few modes in the place of each chain; what Bullet has are rigid
segments on hinges, which follow the modes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bulletbridge.bullet.state import BulletBodies
from bulletbridge.errors import ModelError, UnsupportedError
from bulletbridge.mechanism.beams import FlexibleBeam
from bulletbridge.mechanism.chain_to_beam import Replacement
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array

NO_CONTACTS = "beams know no contacts; use the chain of segments without 'beams'"


@dataclass(frozen=True)
class Places:
    """Linear maps between the coordinates of a mechanism with beams and those of its chains.

    Attributes:
        chain_q, chain_v: (chain's, beams') numbers; amplitudes give angles of all hinges.
        beam_q, beam_v: The way back: the amplitudes nearest to any angles, exact for those above.
    """

    chain_q: Array
    chain_v: Array
    beam_q: Array
    beam_v: Array


class BeamBodies(BulletBodies):
    """Bodies of one Bullet client and the mechanism with beams for which they stand.

    Args:
        mechanism: With beams in the place of chains.
        bodies: What Bullet has.
        places: Where its coordinates are in Bullet's.
    """

    def __init__(self, mechanism: Mechanism, bodies: BulletBodies, places: Places) -> None:
        super().__init__(mechanism, bodies.body_ids, bodies.client, bodies.ports)
        self.places = places
        self._nq, self._nv = len(places.chain_q), len(places.chain_v)

    def state(self) -> tuple[Array, Array]:
        """Configuration (nq,) and velocity (nv,): amplitudes nearest to the segments' angles.

        Raises:
            WorldError: A body is gone, a fixed base was moved, or a number is not finite.
        """
        q, v = super().state()
        return self.places.beam_q @ q, self.places.beam_v @ v

    def write(self, q: Array, v: Array) -> None:
        """Put a state into Bullet, the segments where the modes bend the beams to.

        Raises:
            WorldError: A body is gone; nothing was written.
            ModelError: Not q (nq,) and v (nv,); nothing was written.
        """
        nq, nv = self.places.chain_q.shape[1], self.places.chain_v.shape[1]
        if len(q) != nq or len(v) != nv:
            raise ModelError(
                f"q has {len(q)} numbers and v {len(v)}; the mechanism has {nq} and {nv}"
            )
        super().write(self.places.chain_q @ q, self.places.chain_v @ v)

    def sticking_points(self) -> np.ndarray:
        """Refuse: sticking points are on bodies, and a modal beam consists of none."""
        raise UnsupportedError(NO_CONTACTS)

    def touching(self, contacts: np.ndarray) -> list[tuple[str, str]]:
        """Links in contact, of which beams have none."""
        return []

    def contact_points(self, q: Array, v: Array, dt: float) -> np.ndarray:
        """Contact points at a state are between bodies, of which beams have none.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError(NO_CONTACTS)


@dataclass(frozen=True)
class Shown:
    """A chain that stands for a beam."""

    before: Mechanism  # mechanism with the chain
    replacement: Replacement  # what became of it
    joints: Sequence[str]  # names of the chain's joints
    name: str  # of the beam's joint
    beam: FlexibleBeam  # what bends
    springs: Array  # where the joints are along it [m]


def with_beams(bodies: BulletBodies, shown: Sequence[Shown]) -> BulletBodies:
    """The bodies with each shown chain replaced by its beam in the mechanism.

    Raises:
        ModelError: A chain has fewer joints than its beam has modes.
    """
    if not shown:
        return bodies
    mechanism = bodies.mechanism
    chain_q, chain_v = np.eye(mechanism.nq), np.eye(mechanism.nv)
    beam_q, beam_v = chain_q, chain_v
    for chain in shown:
        if len(chain.joints) < chain.beam.modes:
            raise ModelError(
                f"a chain of {len(chain.joints)} joints cannot show the {chain.beam.modes} modes of"
                f" '{chain.name}'; make it of more segments"
            )
        angles = chain.beam.hinge_angles(chain.springs)
        r, joints = chain.replacement, [chain.before.joint(name) for name in chain.joints]
        beam, mechanism = r.mechanism.joint(chain.name), r.mechanism
        hinges = [joint.q.start for joint in joints]
        up, down = _maps(chain.before.nq, mechanism.nq, r.q, (hinges, beam.q), angles)
        chain_q, beam_q = chain_q @ up, down @ beam_q
        hinges = [joint.v.start for joint in joints]
        up, down = _maps(chain.before.nv, mechanism.nv, r.v, (hinges, beam.v), angles)
        chain_v, beam_v = chain_v @ up, down @ beam_v
    return BeamBodies(mechanism, bodies, Places(chain_q, chain_v, beam_q, beam_v))


def _maps(
    old: int, new: int, kept: np.ndarray, moved: tuple[Sequence[int], slice], angles: Array
) -> tuple[Array, Array]:
    """Maps of coordinates with beams to those with chains (old, new), and back (new, old).

    Args:
        old: Number of coordinates with chains.
        new: Number with a beam in the place of one of them.
        kept: (2, kept) places of the coordinates that both have, there and here.
        moved: Places of the chain's hinges, and of the beam's amplitudes.
        angles: (hinges, modes) of the hinges for unit amplitudes.
    """
    up, down = np.zeros((old, new)), np.zeros((new, old))
    hinges, amplitudes = moved
    up[kept[0], kept[1]] = down[kept[1], kept[0]] = 1.0
    up[hinges, amplitudes] = angles
    down[amplitudes, hinges] = np.linalg.pinv(angles)
    return up, down
