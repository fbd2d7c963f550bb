"""Links as they hang on one another, fixed joints too, and what goes through each joint.

A body of a mechanism is all links that are rigidly joined; what a fixed joint bears takes the links
one by one.
"""

from typing import NamedTuple

import numpy as np

from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.model import WORLD, Mechanism
from bulletbridge.numerics.records import Array, Ints, Mask


class Wrenches(NamedTuple):
    """Force and moment for each link, world axes, about a point that the links of a robot share."""

    force: Array  # (n, 3) [N]
    moment: Array  # (n, 3) [N m]


class LinkPoses(NamedTuple):
    """Where links are at a state, world axes.

    Attributes:
        R: (n, 3, 3) axes of the link.
        origin: (n, 3) origin of the link [m].
        about: (n, 3) origin of the first link of its robot, about which moments are taken [m].
    """

    R: Array
    origin: Array
    about: Array


class LinkTree:
    """The links of a mechanism, what carries each, and their own masses.

    Args:
        mechanism: Rigid bodies.

    Raises:
        UnsupportedError: It has beams, which bend between their ends, or no links.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        links = self.links = mechanism.carried
        if len(mechanism.beams) or not links:
            raise UnsupportedError(
                "what joints bear is told of rigid links; take the chain of segments in the place"
                " of a modal beam, by leaving 'beams' out"
            )
        n, self.mechanism = len(links), mechanism
        self.parent: Ints = np.array([link.parent for link in links])
        self.body: Ints = np.array([mechanism.links[link.link].body for link in links])
        self.carries: Mask = np.eye(n, dtype=bool)
        self.robot: Ints = np.arange(n)
        for k, parent in enumerate(self.parent.tolist()):
            above = parent
            while above >= 0:
                self.carries[above, k] = True
                self.robot[k], above = above, int(self.parent[above])
        self._sums: Array = self.carries.astype(np.float64)
        self._numbers: dict[str, int] = {}
        self._first: dict[int, int] = {}
        for k, link in enumerate(links):
            self._numbers.setdefault(link.link, k)
            self._first.setdefault(int(self.body[k]), k)
        found = [mechanism.links[link.link] for link in links]
        self._R, self._p = np.array([x.R for x in found]), np.array([x.p for x in found])
        self._com, self._J = np.array([x.com for x in links]), np.array([x.J for x in links])
        self._mass = np.array([x.mass for x in links])
        total = np.bincount(self.body, self._mass, len(mechanism.bodies))[self.body]
        now = mechanism.bodies["mass"][self.body]
        # a body whose mass was changed since has links that grew alike
        grown = np.where((self.body > 0) & (total > 0.0), now / np.where(total > 0.0, total, 1), 1)
        self._mass, self._J = grown * self._mass, grown[:, None, None] * self._J
        self._moves: Array = np.zeros((len(mechanism.bodies), mechanism.nv))
        for body, record in enumerate(mechanism.bodies):
            k = int(record["axis"])
            while k >= 0:
                self._moves[body, k] = 1.0
                k = int(mechanism.axes["below"][k])

    def number(self, link: str) -> int:
        """Number of a link; of one that was folded into another, of that; -1 for the world."""
        found = self._numbers.get(link)
        if found is not None or link == WORLD:
            return -1 if found is None else found
        return self.first_on(self.mechanism.link(link).body)

    def first_on(self, body: int) -> int:
        """Number of the first link on a body; -1 for the world, and what stands on it."""
        return self._first.get(body, -1) if body > 0 else -1

    def poses(self, poses: np.ndarray) -> LinkPoses:
        """Where the links are for poses (nb) of the bodies."""
        pose = poses[self.body]
        R = pose["R"] @ self._R
        arm = pose["p"] + np.einsum("nij,nj->ni", pose["R"], self._p)
        origin = pose["origin"] + arm
        return LinkPoses(R, origin, origin[self.robot])

    def inertial(self, poses: np.ndarray, axes: np.ndarray, at: LinkPoses, vdot: Array) -> Wrenches:
        """What each link by itself takes to move as it does, gravity included.

        Args:
            poses: (nb) with what ``bias`` leaves there.
            axes: (nv) with unit twists.
            at: Where the links are.
            vdot: (nv,) accelerations.
        """
        pose, moved = poses[self.body], self._moves
        turning = pose["aw"] + (moved @ (vdot[:, None] * axes["w"]))[self.body]
        sliding = pose["av"] + (moved @ (vdot[:, None] * axes["v"]))[self.body]
        w, v = pose["w"], pose["v"]
        centre = at.origin + np.einsum("nij,nj->ni", at.R, self._com)
        c = centre - pose["origin"]
        speed = v + np.cross(w, c)
        force = self._mass[:, None] * (sliding + np.cross(turning, c) + np.cross(w, speed))
        J = at.R @ self._J @ at.R.transpose(0, 2, 1)
        moment = np.einsum("nij,nj->ni", J, turning)
        moment += np.cross(w, np.einsum("nij,nj->ni", J, w))
        return Wrenches(force, moment + np.cross(centre - at.about, force))

    def borne(self, needed: Wrenches, at: LinkPoses) -> Wrenches:
        """What the joint that carries each link does to it, about the link's origin.

        Args:
            needed: What each link takes, less what acts on it besides joints.
            at: Where the links are.
        """
        force: Array = self._sums @ needed.force
        moment: Array = self._sums @ needed.moment
        return Wrenches(force, moment - np.cross(at.origin - at.about, force))


class Loads:
    """What acts on links besides the joints that carry them, summed as it comes.

    Args:
        tree: The links.
        at: Where they are.

    Attributes:
        total: Of each link.
    """

    def __init__(self, tree: LinkTree, at: LinkPoses) -> None:
        n = len(tree.links)
        self._at, self.total = at, Wrenches(np.zeros((n, 3)), np.zeros((n, 3)))

    def add(self, link: int, point: Array, force: Array, moment: Array) -> None:
        """A force [N] at a point [m] and a moment [N m] on a link; nothing on the world, -1."""
        if link < 0:
            return
        self.total.force[link] += force
        self.total.moment[link] += moment + np.cross(point - self._at.about[link], force)

    def add_between(self, a: int, b: int, point: Array, force: Array, moment: Array) -> None:
        """The same on link b, and the opposite on link a."""
        self.add(b, point, force, moment)
        self.add(a, point, -force, -moment)
