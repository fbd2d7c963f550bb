"""What contacts change by with the configuration that they are found at.

Shapes have no derivatives of their own: points, normals and gaps are found at configurations beside
the one at hand, and differences are taken of them alone, of nothing that is solved for.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.jit import call_stored, caller, kernel, outlined
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.inequalities.contact_rows import relative_row, tangents
from bulletbridge.mechanism.contact_detector import Detector
from bulletbridge.mechanism.derivatives import is_carried
from bulletbridge.mechanism.kinematics import axis_twist, displace, kinematics
from bulletbridge.mechanism.records import (
    Axis,
    Beam,
    Body,
    ContactPoint,
    Pose,
    Station,
)
from bulletbridge.numerics.records import Array, Ints, Mask, Records
from bulletbridge.numerics.spatial import (
    ZERO,
    Vector,
    dot,
    motion_cross,
    norm,
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


@outlined
def put_six_rows(
    tree: Tree, contact: ContactPoint, gap: float, direction: Array, C: Array, first: int
) -> None:
    """Rows of a contact whose bodies meet at a gap into C from ``first`` on, where poses are put.

    Its normal, two tangents, turns about the three; direction (3,) becomes the first tangent.
    """
    normal = vec(contact.normal)
    t1, t2 = tangents(normal, vec(direction))
    put(direction, t1)
    for m in range(ROWS_OF_ONE):
        way = normal
        if m % 3 > 0:
            way = t1 if m % 3 == 1 else t2
        wrench = (ZERO, way) if m < 3 else (way, ZERO)
        relative_row(tree.bodies, tree.poses, tree.axes, contact, gap, wrench, C, first + m)


@kernel
def put_all_rows(
    tree: Tree, q: Array, contact_points: Records[ContactPoint], directions: Array, C: Array
) -> int:
    """Rows of n contacts at a configuration q (nq,).

    Args:
        tree: Of whom; poses and axes are written.
        q: (nq,)
        contact_points: (n,) that were found there.
        directions: (n, 3) that each first tangent is the tangential part of; becomes that.
        C: (6 n, nv) receives the rows.
    """
    kinematics(tree.bodies, tree.beams, tree.stations, q, tree.poses, tree.axes)
    for i in range(len(contact_points)):
        contact = contact_points[i]
        put_six_rows(tree, contact, contact.gap, directions[i], C, ROWS_OF_ONE * i)
    return len(contact_points)


@kernel
def put_places_beside(
    bodies: Records[Body], q: Array, moving: Ints, reaches: Array, u: Array, places: Array
) -> int:
    """Configurations (1 + 4 m, nq): q, and four beside it by each of m rates.

    Args:
        bodies: Of whom.
        q: (nq,)
        moving: (m,) rates.
        reaches: (nv,) displacements by them.
        u: (nv,) scratch: zero before, and after.
        places: Receives them, in the order of ``ORDER_4``.
    """
    for j in range(len(q)):
        places[0, j] = q[j]
    for m in range(len(moving)):
        k = moving[m]
        u[k] = reaches[k]
        for i in range(4):
            displace(bodies, q, u, ORDER_4[i][0], places[1 + 4 * m + i])
        u[k] = 0.0
    return len(places)


class Beside(NamedTuple):
    """Contacts of a configuration, and the same ones beside it.

    Attributes:
        places: (1 + 4 m, nq) as of ``put_places_beside``.
        contact_points: ((1 + 4 m) n,) there.
        compliant: (n,) which give way, and so meet inside each other.
        moving: (m,) rates that places differ by,
        reaches: (nv,) by so much.
    """

    places: Array
    contact_points: Records[ContactPoint]
    compliant: Mask
    moving: Ints
    reaches: Array


class Sought(NamedTuple):
    """Contacts to be found again beside where they were found.

    Attributes:
        places: (1 + 4 m, nq) as of ``put_places_beside``.
        contact_points: ((1 + 4 m) n,) receives them; those of the first place are there.
        v: (nv,) rates that they are found with,
        dt: in a step [s].
        near: Distance within which they are the same [m].
    """

    places: Array
    contact_points: Records[ContactPoint]
    v: Array
    dt: float
    near: float


@caller
def find_beside(find: Any, contacts: Records[ContactPoint], s: Sought) -> int:
    """Find contacts again; number of the first place where not all of them have one of their name.

    Args:
        find: ``contact_detection.find_contacts`` with its arrays, stored.
        contacts: That it writes.
        s: What is sought.
    """
    n = len(s.contact_points) // len(s.places)
    for p in range(1, len(s.places)):
        count = call_stored(find, (s.places[p], s.v, s.dt))
        for i in range(n):
            wanted, same = s.contact_points[i], 0
            for j in range(count):
                c = contacts[j]
                if c.pair != wanted.pair or c.feature != wanted.feature:
                    continue
                same += 1
                away = sub(vec(c.position), vec(wanted.position))
                if norm(away) > s.near:
                    return p
                s.contact_points[p * n + i] = contacts[j]
            if same != 1:
                return p
    return len(s.places)


@kernel
def put_variations(tree: Tree, b: Beside, directions: Array, C: Array, found: Array) -> int:
    """Rows of n contacts, and what these, gaps and places change by with displacements.

    Args:
        tree: Of whom; poses and axes are written.
        b: Contacts.
        directions: (2 n, 3) scratch.
        C: (12 n, nv) receives rows in its first half.
        found: (nv, n, 4 + 6 nv) receives changes of gap, place and rows: zero before.
    """
    n, nv = len(directions) // 2, C.shape[1]
    for p in range(len(b.places)):
        kinematics(tree.bodies, tree.beams, tree.stations, b.places[p], tree.poses, tree.axes)
        k, weight = 0, 0.0
        if p > 0:
            k = b.moving[(p - 1) // 4]
            weight = ORDER_4[(p - 1) % 4][1] / b.reaches[k]
        for i in range(n):
            contact, at = b.contact_points[p * n + i], i if p == 0 else n + i
            turns = vec(b.contact_points[i].direction) != ZERO
            if p == 0 or turns:
                put(directions[at], vec(contact.direction))
            else:
                put(directions[at], vec(directions[i]))
            gap = 0.0 if b.compliant[i] else contact.gap
            put_six_rows(tree, contact, gap, directions[at], C, ROWS_OF_ONE * at)
            if p > 0:
                changes = found[k, i]
                changes[0] += weight * contact.gap
                for c in range(3):
                    changes[1 + c] += weight * contact.position[c]
                for r in range(ROWS_OF_ONE):
                    for j in range(nv):
                        changes[4 + nv * r + j] += weight * C[ROWS_OF_ONE * at + r, j]
    return len(b.places)


@outlined
def add_slopes_in_space(
    tree: Tree, contact: ContactPoint, direction: Vector, C_by_q: Array, first: int
) -> None:
    """Add what rows of a contact along its normal and tangents change by, as it is fixed in space.

    Args:
        tree: Of whom; where poses are put.
        contact: Whose bodies meet at its place.
        direction: Along which the first tangent is.
        C_by_q: (nv, rows, nv) receives it by displacements, from row ``first`` on.
        first: That row.
    """
    bodies, axes = tree.bodies, tree.axes
    normal, place = vec(contact.normal), vec(contact.position)
    t1, t2 = tangents(normal, direction)
    for side in range(2):
        sign, body = 1.0, contact.body_b
        if side == 1:
            sign, body = -1.0, contact.body_a
        point = sub(place, vec(tree.poses[body].origin))
        j = bodies[body].axis
        while j >= 0:
            k = bodies[body].axis
            while k >= 0:
                if is_carried(bodies, axes, k, j):
                    turned = motion_cross(axis_twist(axes[k]), axis_twist(axes[j]))
                    moved = scale(sign, velocity_at(turned, point))
                    C_by_q[k, first, j] += dot(normal, moved)
                    C_by_q[k, first + 1, j] += dot(t1, moved)
                    C_by_q[k, first + 2, j] += dot(t2, moved)
                k = axes[k].below
            j = axes[j].below


class Finding(NamedTuple):
    """How contacts are found at a configuration.

    Attributes:
        find: All of them at a configuration (nq,).
        detector: That finds them, or some; None where there is none.
        v: (nv,) rates that they are found with,
        dt: in a step [s].
    """

    find: Callable[[Array], np.ndarray]
    detector: Detector | None
    v: Array
    dt: float


class RowsAt:
    """Rows of contacts of one solver's bodies at any configuration.

    Args:
        solver: Whose.
        lengths: (nv,) in which displacements are measured.
        length: That of the mechanism [m].

    Attributes:
        tree: Its bodies; poses and axes are our own.
    """

    def __init__(self, solver: Solver, lengths: Array, length: float) -> None:
        self.lengths, self.length = lengths, length
        poses, axes = solver.poses.copy(), solver.axes.copy()
        self._bodies, self._below = solver.bodies, axes["below"].copy()
        self.tree = Tree(solver.bodies, solver.beams, solver.stations, poses, axes)
        self._reaches, self._still = REACH * lengths, np.zeros(len(lengths))
        self._finder: tuple[tuple[Detector, int], Callable[[Any], int]] | None = None
        self._calls = dict[Any, Callable[[Any], int]]()  # compiled when they are first needed

    def _call(self, what: Any, first: Any, rest: tuple[Any, ...]) -> int:
        """Call one of the kernels."""
        if what not in self._calls:
            with announce_compilation(what):
                self._calls[what] = StoredCall(what, (first,), rest).call
        return self._calls[what](rest)

    def __call__(self, q: Array, points: np.ndarray, first: Array) -> Array:
        """Rows (n, 6, nv) of contacts (n,) at a configuration.

        Args:
            q: (nq,)
            points: (n,) as they were found there, or would be.
            first: (n, 3) along which first tangents are; becomes these.
        """
        C = np.zeros((ROWS_OF_ONE * len(points), len(self.lengths)))
        self._call(put_all_rows, self.tree, (np.ascontiguousarray(q), points, first, C))
        return C.reshape(len(points), ROWS_OF_ONE, len(self.lengths))

    def varied(
        self, there: np.ndarray, compliant: Mask, places: Array, moving: Ints
    ) -> tuple[Array, Array]:
        """Rows (n, 6, nv) of contacts, and changes (nv, n, 4 + 6 nv) of gap, place and rows.

        Args:
            there: (1 + 4 m, n) contacts at q, and beside it.
            compliant: (n,) which of them give way, and so meet inside each other.
            places: (1 + 4 m, nq) configurations, and
            moving: (m,) rates, as of ``beside``.
        """
        n, nv = there.shape[1], len(self.lengths)
        C, found = np.zeros((2 * ROWS_OF_ONE * n, nv)), np.zeros((nv, n, 4 + ROWS_OF_ONE * nv))
        beside = Beside(places, there.reshape(-1), compliant, moving, self._reaches)
        rest = beside, np.zeros((2 * n, 3)), C, found
        self._call(put_variations, self.tree, rest)
        return C[: ROWS_OF_ONE * n].reshape(n, ROWS_OF_ONE, nv), found

    def beside(self, q: Array, points: np.ndarray) -> tuple[Ints, Array]:
        """Rates (m,) that move contacts (n,), and configurations (1 + 4 m, nq): q, and beside it.

        Of each rate four in the order of ``ORDER_4``.
        """
        moving = self._moving(points)
        places = np.zeros((1 + len(ORDER_4) * len(moving), len(q)))
        rest = np.ascontiguousarray(q), moving, self._reaches, self._still, places
        self._call(put_places_beside, self._bodies, rest)
        return moving, places

    def find_beside(self, by: Finding, places: Array, there: np.ndarray, near: float) -> int:
        """Find contacts again beside a place; number of the first where they are others.

        Args:
            by: How.
            places: (1 + 4 m, nq) as of ``beside``.
            there: (1 + 4 m, n) receives them; those of the first place are there.
            near: Distance within which they are the same [m].
        """
        if by.detector is None:
            return 1
        sought = Sought(places, there.reshape(-1), by.v, by.dt, near)
        which = by.detector, by.detector.version
        if self._finder is None or self._finder[0] != which:
            fixed = by.detector.call.block, by.detector.contacts
            with announce_compilation(find_beside):
                self._finder = which, StoredCall(find_beside, fixed, (sought,)).call
        return self._finder[1]((sought,))

    def _moving(self, points: np.ndarray) -> Ints:
        """Rates that move bodies in contact."""
        found = set[int]()
        for body in {*points["body_a"].tolist(), *points["body_b"].tolist()} - {0}:
            k = int(self._bodies[body]["axis"])
            while k >= 0:
                found.add(k)
                k = int(self._below[k])
        return np.array(sorted(found), np.int64)


def keys_of(points: np.ndarray) -> list[tuple[int, int]]:
    """What contacts (n,) are known again by: the pair of shapes, and where on these."""
    return list(zip(points["pair"].tolist(), points["feature"].tolist(), strict=True))


class ContactVariations:
    """Contacts of a configuration, and what they change by with it.

    Args:
        rows: Of what is in contact.
        finding: How contacts are found.
        q: (nq,) where they were found.
        points: (n,) those of them that matter, of dtype ``CONTACT_POINT``.
        compliant: (n,) which of these give way, and so meet inside each other.

    Attributes:
        C: (n, 6, nv) rows: along the normal, two tangents, turns about these three.
        C_by_q: (nv, n, 6, nv) what they change by with each displacement; tangents as they are
            carried along, or turn with the direction that friction depends on.
        gap_by_q: (nv, n)
        position_by_q: (nv, n, 3)
        by_q: (nv, n, 4 + 6 nv) all of these, in the order of gap, position, rows.

    Raises:
        UnsupportedError: Others are found beside that configuration.
    """

    def __init__(
        self,
        rows: RowsAt,
        finding: Finding,
        q: Array,
        points: np.ndarray,
        compliant: Mask,
    ) -> None:
        self._find, self._points = finding.find, points
        self._keys, self._near = keys_of(points), NEAR * float(rows.lengths.max(initial=0.0))
        self._distinct = len({*self._keys}) == len(points)
        self._flat = np.zeros(len(points), bool)
        moving, places = rows.beside(q, points)
        there = np.empty((len(places), len(points)), points.dtype)
        there[0] = points
        first = rows.find_beside(finding, places, there, self._near)
        for same, place in zip(there[first:], places[first:], strict=True):
            same[:] = self._again(place)
        self.C, self.by_q = rows.varied(there, compliant, places, moving)
        found = self.by_q
        self.gap_by_q, self.position_by_q = found[:, :, 0], found[:, :, 1:4]
        self.gap_by_q[:, self._flat] = self.C[self._flat, 0].T  # no mean of what each face tells
        self.C_by_q = found[:, :, 4:].reshape(len(found), *self.C.shape)

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
