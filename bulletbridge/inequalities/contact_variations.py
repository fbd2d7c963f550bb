"""What contacts change by with the configuration that they are found at.

Shapes have no derivatives of their own: points, normals and gaps are found at configurations beside
the one at hand, and differences are taken of them alone, of nothing that is solved for.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.jit import kernel
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.inequalities.contact_rows import relative_row, tangents
from bulletbridge.mechanism.derivatives import is_carried
from bulletbridge.mechanism.kinematics import axis_twist, displace, kinematics
from bulletbridge.mechanism.records import (
    CONTACT_POINT,
    Axis,
    Beam,
    Body,
    ContactPoint,
    Pose,
    Station,
)
from bulletbridge.numerics.records import Array, Records
from bulletbridge.numerics.spatial import (
    ZERO,
    dot,
    motion_cross,
    put,
    scale,
    sub,
    vec,
    velocity_at,
)

REACH = 2e-5
"""What configurations are displaced by [rad, or lengths of the mechanism]."""
ORDER_4 = (-2.0, 1.0 / 12.0), (-1.0, -2.0 / 3.0), (1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0)
"""Times that, and weights: a central difference of order four."""
NEAR = 1e-3
"""Distance [lengths of the mechanism] within which a contact of the same shapes that has another
name is the same: of two faces that are flat on each other either names the points."""
ROWS_OF_ONE = 6
"""Rows of a contact: its normal and tangents, and turns about these."""


class Tree(NamedTuple):
    """Bodies and axes of a mechanism, and where they are."""

    bodies: Records[Body]
    beams: Records[Beam]
    stations: Records[Station]
    poses: Records[Pose]
    axes: Records[Axis]


@kernel
def put_all_rows(
    tree: Tree,
    places: Array,
    contact_points: Records[ContactPoint],
    directions: Array,
    C: Array,
) -> int:
    """Rows of n contacts at m configurations: normal, two tangents, turns about the three.

    Args:
        tree: Of whom; poses and axes are written.
        places: (m, nq)
        contact_points: (m n,) that were found there.
        directions: (m n, 3) that each first tangent is the tangential part of; becomes that.
        C: (6 m n, nv) receives the rows.
    """
    each = len(contact_points) // len(places)
    for i in range(len(contact_points)):
        if i % each == 0:
            q = places[i // each]
            kinematics(tree.bodies, tree.beams, tree.stations, q, tree.poses, tree.axes)
        contact = contact_points[i]
        normal = vec(contact.normal)
        t1, t2 = tangents(normal, vec(directions[i]))
        put(directions[i], t1)
        for m in range(6):
            way = normal
            if m % 3 > 0:
                way = t1 if m % 3 == 1 else t2
            wrench = (ZERO, way) if m < 3 else (way, ZERO)
            at, gap = 6 * i + m, contact.gap
            relative_row(tree.bodies, tree.poses, tree.axes, contact, gap, wrench, C, at)
    return len(contact_points)


@kernel
def put_slopes_of_rows(
    tree: Tree, q: Array, contact_points: Records[ContactPoint], directions: Array, C_by_q: Array
) -> int:
    """What ``put_all_rows`` without turns changes by with displacements, contacts fixed in space.

    Args:
        tree: Of whom; poses and axes are written.
        q: (nq,)
        contact_points: (n,)
        directions: (n, 3) as there.
        C_by_q: (nv, 3 n, nv) receives it: zero before.
    """
    bodies, axes = tree.bodies, tree.axes
    kinematics(bodies, tree.beams, tree.stations, q, tree.poses, axes)
    for i in range(len(contact_points)):
        contact = contact_points[i]
        normal, place = vec(contact.normal), vec(contact.position)
        t1, t2 = tangents(normal, vec(directions[i]))
        for side in range(2):
            sign, body, point = 1.0, contact.body_b, place
            if side == 1:
                sign, body, point = -1.0, contact.body_a, sub(place, scale(contact.gap, normal))
            point = sub(point, vec(tree.poses[body].origin))
            j = bodies[body].axis
            while j >= 0:
                k = bodies[body].axis
                while k >= 0:
                    if is_carried(bodies, axes, k, j):
                        turned = motion_cross(axis_twist(axes[k]), axis_twist(axes[j]))
                        moved = scale(sign, velocity_at(turned, point))
                        C_by_q[k, 3 * i, j] += dot(normal, moved)
                        C_by_q[k, 3 * i + 1, j] += dot(t1, moved)
                        C_by_q[k, 3 * i + 2, j] += dot(t2, moved)
                    k = axes[k].below
                j = axes[j].below
    return len(contact_points)


class RowsAt:
    """Rows of contacts of one solver's bodies at any configuration.

    Args:
        solver: Whose.
        lengths: (nv,) in which displacements are measured.
    """

    def __init__(self, solver: Solver, lengths: Array) -> None:
        self.lengths, poses, axes = lengths, solver.poses.copy(), solver.axes.copy()
        self._bodies, self._below = solver.bodies, axes["below"].copy()
        tree = Tree(solver.bodies, solver.beams, solver.stations, poses, axes)
        none, C = np.zeros(0, CONTACT_POINT), np.zeros((0, len(lengths)))
        examples = solver.q[None].copy(), none, np.zeros((0, 3)), C
        with announce_compilation(put_all_rows):
            self._call = StoredCall(put_all_rows, (tree,), examples).call
        self._tree = tree
        self._slopes: Callable[[Any], int] | None = None  # compiled when it is first needed

    def __call__(self, q: Array, points: np.ndarray, first: Array) -> Array:
        """Rows (n, 6, nv) of contacts (n,) at a configuration, or (m, n, 6, nv) at m of them.

        Args:
            q: (nq,), or (m, nq).
            points: (n,) as they were found there, or would be; or (m, n).
            first: (n, 3) along which first tangents are; becomes these; or (m, n, 3).
        """
        C = np.zeros((ROWS_OF_ONE * points.size, len(self.lengths)))
        along = first.reshape(-1, 3)
        self._call((np.ascontiguousarray(np.atleast_2d(q)), points.reshape(-1), along, C))
        return C.reshape(*points.shape, ROWS_OF_ONE, len(self.lengths))

    def slopes_in_space(self, q: Array, points: np.ndarray, first: Array) -> Array:
        """(nv, 3 n, nv) what rows of contacts without turns change by, these fixed in space.

        Args:
            q: (nq,)
            points: (n,)
            first: (n, 3) along which first tangents are.
        """
        nv = len(self.lengths)
        found = np.zeros((nv, 3 * len(points), nv))
        rest = np.ascontiguousarray(q), np.ascontiguousarray(points), first, found
        if self._slopes is None:
            with announce_compilation(put_slopes_of_rows):
                self._slopes = StoredCall(put_slopes_of_rows, (self._tree,), rest).call
        self._slopes(rest)
        return found

    def beside(self, q: Array, points: np.ndarray) -> tuple[list[int], Array]:
        """Rates (m,) that move contacts (n,), and configurations (4 m, nq) beside q (nq,).

        Of each rate four in the order of ``ORDER_4``.
        """
        moving, u = self._moving(points), np.zeros(len(self.lengths))
        places = np.zeros((len(moving), len(ORDER_4), len(q)))
        for k, near in zip(moving, places, strict=True):
            u[k] = REACH * self.lengths[k]
            for place, (times, _) in zip(near, ORDER_4, strict=True):
                displace(self._bodies, q, u, times, place)
            u[k] = 0.0
        return moving, places.reshape(-1, len(q))

    def _moving(self, points: np.ndarray) -> list[int]:
        """Rates that move bodies in contact."""
        found = set[int]()
        for body in {*points["body_a"].tolist(), *points["body_b"].tolist()} - {0}:
            k = int(self._bodies[body]["axis"])
            while k >= 0:
                found.add(k)
                k = int(self._below[k])
        return sorted(found)


def keys_of(points: np.ndarray) -> list[tuple[int, int]]:
    """What contacts (n,) are known again by: the pair of shapes, and where on these."""
    return list(zip(points["pair"].tolist(), points["feature"].tolist(), strict=True))


class ContactVariations:
    """Contacts of a configuration, and what they change by with it.

    Args:
        rows: Of what is in contact.
        find: Contacts at a configuration (nq,).
        q: (nq,) where they were found.
        points: (n,) those of them that matter, of dtype ``CONTACT_POINT``.
        compliant: (n,) which of these give way, and so meet inside each other.

    Attributes:
        C: (n, 6, nv) rows: along the normal, two tangents, turns about these three.
        C_by_q: (nv, n, 6, nv) what they change by with each displacement; tangents as they are
            carried along, or turn with the direction that friction depends on.
        gap_by_q: (nv, n)
        position_by_q: (nv, n, 3)

    Raises:
        UnsupportedError: Others are found beside that configuration.
    """

    def __init__(
        self,
        rows: RowsAt,
        find: Callable[[Array], np.ndarray],
        q: Array,
        points: np.ndarray,
        compliant: np.ndarray,
    ) -> None:
        self._find, self._points, self._compliant = find, points, compliant
        self._keys, self._near = keys_of(points), NEAR * float(rows.lengths.max(initial=0.0))
        self._distinct = len({*self._keys}) == len(points)
        self._flat = np.zeros(len(points), bool)
        first = np.array(points["direction"])
        self.C = rows(q, self._meeting(points), first)
        turns = np.any(points["direction"] != 0.0, axis=1)

        moving, places = rows.beside(q, points)
        there = np.array([self._again(near) for near in places], points.dtype)
        there = there.reshape(-1, len(points))
        along = np.where(turns[:, None], there["direction"], first)
        C = rows(places, self._meeting(there), along).reshape(*there.shape, -1)
        seen = np.concatenate([there["gap"][..., None], there["position"], C], axis=2)
        weights = np.array([weight for _, weight in ORDER_4]) / REACH
        found = np.zeros((len(rows.lengths), *seen.shape[1:]))
        slopes = np.einsum("i,kinj->knj", weights, seen.reshape(-1, len(weights), *seen.shape[1:]))
        found[moving] = slopes / rows.lengths[moving][:, None, None]
        self.gap_by_q, self.position_by_q = found[:, :, 0], found[:, :, 1:4]
        self.gap_by_q[:, self._flat] = self.C[self._flat, 0].T  # no mean of what each face tells
        self.C_by_q = found[:, :, 4:].reshape(len(found), *self.C.shape)

    def _meeting(self, points: np.ndarray) -> np.ndarray:
        """The contacts (n,), or (m, n), as far apart as ``put_contact_rows`` has bodies meet."""
        found = points.copy()
        found["gap"][..., self._compliant] = 0.0
        return found

    def _again(self, q: Array) -> np.ndarray:
        """The same contacts (n,) at another configuration."""
        there = self._find(q)
        keys = keys_of(there)
        if self._distinct and keys == self._keys:
            return there
        found = defaultdict[tuple[int, int], list[int]](list)
        for k, key in enumerate(keys):
            found[key].append(k)
        picked = list[int]()
        for n, key in enumerate(self._keys):
            those = found.get(key) or np.flatnonzero(there["pair"] == key[0]).tolist()
            away = there["position"][those] - self._points["position"][n]
            apart = np.sqrt(np.sum(away**2, axis=1))
            if apart.min(initial=np.inf) > self._near:
                raise UnsupportedError(
                    "contacts are others beside where they were found; use central differences of"
                    " step()"
                )
            self._flat[n] |= key not in found
            picked.append(those[int(np.argmin(apart))])
        return there[picked]
