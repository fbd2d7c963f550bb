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
    CONTACT_POINT,
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


class Beside(NamedTuple):
    """Contacts of a configuration, and the same ones beside it.

    Attributes:
        q: (nq,) where they were found.
        compliant: (n,) which give way, and so meet inside each other.
        flat: (n,) which of them change their gap as along their normal alone.
        v: (nv,) rates that they are found with,
        dt: in a step [s].
        near: Distance within which they are the same [m].
        reaches: (nv,) displacements.
        u: (nv,) scratch: zero before, and after.
        moving: (nv,) receives the rates that move bodies in contact,
        counts: (2,) how many, and of places: four for each, and q.
        places: (1 + 4 nv, nq) receives these: q, and beside it in the order of ``ORDER_4``.
        contact_points: ((1 + 4 nv) n,) receives contacts there; those at q are there.
        directions: (2 n, 3) scratch.
        C: (12 n, nv) receives rows in its first half.
        by_q: (nv, n, 4 + 6 nv) receives changes of gap, place and rows.
    """

    q: Array
    compliant: Mask
    flat: Mask
    v: Array
    dt: float
    near: float
    reaches: Array
    u: Array
    moving: Ints
    counts: Ints
    places: Array
    contact_points: Records[ContactPoint]
    directions: Array
    C: Array
    by_q: Array


@kernel
def put_places_beside(tree: Tree, s: Beside) -> int:
    """Which rates move bodies in contact, and configurations beside by these; how many.

    Args:
        tree: Of whom.
        s: Contacts; receives them.
    """
    bodies, count, u = tree.bodies, 0, s.u
    for i in range(len(s.compliant)):
        for side in range(2):
            point = s.contact_points[i]
            k = bodies[point.body_a if side == 0 else point.body_b].axis
            while k >= 0:
                u[k] = s.reaches[k]
                k = tree.axes[k].below
    for k in range(len(u)):
        if u[k] != 0.0:
            s.moving[count] = k
            count += 1
        u[k] = 0.0
    for j in range(len(s.q)):
        s.places[0, j] = s.q[j]
    for m in range(count):
        k = s.moving[m]
        u[k] = s.reaches[k]
        for i in range(4):
            displace(bodies, s.q, u, ORDER_4[i][0], s.places[1 + 4 * m + i])
        u[k] = 0.0
    s.counts[0], s.counts[1] = count, 1 + 4 * count
    return 1 + 4 * count


@caller
def vary_contacts(find: Any, contacts: Records[ContactPoint], tree: Tree, s: Beside) -> int:
    """Find contacts again beside a configuration, and what they change by.

    Args:
        find: ``contact_detection.find_contacts`` with its arrays, stored.
        contacts: That it writes.
        tree: Of whom; poses and axes are written.
        s: Contacts; receives it.

    Returns:
        The first place where not all of them have one of their name, from which on nothing is
        found; or how many places there are.
    """
    count = put_places_beside(tree, s)
    for p in range(1, count):
        if not take_again(contacts, call_stored(find, (s.places[p], s.v, s.dt)), s, p):
            return p
    return put_variations(tree, s)


@outlined
def take_again(contacts: Records[ContactPoint], count: int, s: Beside, p: int) -> bool:
    """Take the contacts that were found at place p; whether each has one of its name there."""
    n = len(s.compliant)
    for i in range(n):
        wanted, same = s.contact_points[i], 0
        for j in range(count):
            c = contacts[j]
            if c.pair != wanted.pair or c.feature != wanted.feature:
                continue
            same += 1
            away = sub(vec(c.position), vec(wanted.position))
            if norm(away) > s.near:
                return False
            s.contact_points[p * n + i] = contacts[j]
        if same != 1:
            return False
    return True


@kernel
def put_variations(tree: Tree, s: Beside) -> int:
    """Rows of contacts, and what these, gaps and places change by; how many places it takes.

    Args:
        tree: Of whom; poses and axes are written.
        s: Contacts at all places; receives it.
    """
    n, nv, C, directions = len(s.compliant), s.C.shape[1], s.C, s.directions
    for k in range(nv):
        for i in range(n):
            for j in range(s.by_q.shape[2]):
                s.by_q[k, i, j] = 0.0
    for p in range(s.counts[1]):
        kinematics(tree.bodies, tree.beams, tree.stations, s.places[p], tree.poses, tree.axes)
        k, weight = 0, 0.0
        if p > 0:
            k = s.moving[(p - 1) // 4]
            weight = ORDER_4[(p - 1) % 4][1] / s.reaches[k]
        for i in range(n):
            contact, at = s.contact_points[p * n + i], i if p == 0 else n + i
            turns = vec(s.contact_points[i].direction) != ZERO
            if p == 0 or turns:
                put(directions[at], vec(contact.direction))
            else:
                put(directions[at], vec(directions[i]))
            gap = 0.0 if s.compliant[i] else contact.gap
            put_six_rows(tree, contact, gap, directions[at], C, ROWS_OF_ONE * at)
            if p > 0:
                changes = s.by_q[k, i]
                changes[0] += weight * contact.gap
                for c in range(3):
                    changes[1 + c] += weight * contact.position[c]
                for r in range(ROWS_OF_ONE):
                    for j in range(nv):
                        changes[4 + nv * r + j] += weight * C[ROWS_OF_ONE * at + r, j]
    for i in range(n):
        if s.flat[i]:  # no mean of what each face tells
            for k in range(nv):
                s.by_q[k, i, 0] = C[ROWS_OF_ONE * i, k]
    return int(s.counts[1])


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
        self.tree = Tree(solver.bodies, solver.beams, solver.stations, poses, axes)
        self._reaches = REACH * lengths
        self._vary: tuple[tuple[Detector, int], Callable[[Any], int]] | None = None
        self._room: Beside | None = None
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

    def beside(self, by: Finding, q: Array, points: np.ndarray, compliant: Mask) -> Beside:
        """Contacts (n,) at a configuration (nq,), not varied yet; until the next are asked for.

        Args:
            by: How they are found.
            q: Where they were.
            points: These.
            compliant: (n,) which of them give way, and so meet inside each other.
        """
        room = self.room(len(points), len(q), by.dt)
        room.q[:], room.v[:] = q, by.v
        np.asarray(room.contact_points)[: len(points)] = points
        room.compliant[:], room.flat[:] = compliant, False
        return room

    def room(self, n: int, nq: int, dt: float) -> Beside:
        """Room for n contacts in a step dt [s]; until that for others is asked for."""
        nv, room = len(self.lengths), self._room
        most = 1 + len(ORDER_4) * nv
        near = NEAR * float(self.lengths.max(initial=0.0))
        if room is None or len(room.compliant) != n:
            room = self._room = Beside(
                np.zeros(nq), np.zeros(n, bool), np.zeros(n, bool), np.zeros(nv), dt, near,
                self._reaches, np.zeros(nv), np.zeros(nv, np.int64), np.zeros(2, np.int64),
                np.zeros((most, nq)), np.empty(most * n, CONTACT_POINT), np.zeros((2 * n, 3)),
                np.zeros((2 * ROWS_OF_ONE * n, nv)), np.zeros((nv, n, 4 + ROWS_OF_ONE * nv)),
            )  # fmt: skip
        elif room.dt != dt:
            room = self._room = room._replace(dt=dt)
        return room

    def vary(self, by: Finding, s: Beside, again: Callable[[Array], np.ndarray]) -> None:
        """Find contacts beside a configuration, and what they change by.

        Args:
            by: How.
            s: Contacts there; receives it.
            again: Finds these (n,) at another configuration, where their names are others.
        """
        first, detector = 1, by.detector
        if detector is None:
            self._call(put_places_beside, self.tree, (s,))
        else:
            which = detector, detector.version
            if self._vary is None or self._vary[0] != which:
                fixed = detector.call.block, detector.contacts, self.tree
                with announce_compilation(vary_contacts):
                    self._vary = which, StoredCall(vary_contacts, fixed, (s,)).call
            first = self._vary[1]((s,))
        count, n = int(s.counts[1]), len(s.compliant)
        if first < count or detector is None:
            for p in range(first, count):
                np.asarray(s.contact_points)[p * n : (p + 1) * n] = again(s.places[p])
            self._call(put_variations, self.tree, (s,))


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
        beside: All of these, until others are asked for.

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
        self.beside = s = rows.beside(finding, q, points, compliant)
        rows.vary(finding, s, self._again)
        self.C = s.C[: ROWS_OF_ONE * len(points)].reshape(len(points), ROWS_OF_ONE, s.C.shape[1])
        found = s.by_q
        self.gap_by_q, self.position_by_q = found[:, :, 0], found[:, :, 1:4]
        self.C_by_q = found[:, :, 4:].reshape(len(found), *self.C.shape)

    def _again(self, q: Array) -> np.ndarray:
        """The same contacts (n,) at another configuration."""
        there, own = self._find(q), keys_of(self._points)
        keys = keys_of(there)
        if keys == own and len({*own}) == len(own):
            return there
        found = defaultdict[tuple[int, int], list[int]](list)
        for k, key in enumerate(keys):
            found[key].append(k)
        picked = list[int]()
        for n, key in enumerate(own):
            those = found.get(key) or np.flatnonzero(there["pair"] == key[0]).tolist()
            away = there["position"][those] - self._points["position"][n]
            apart = np.sqrt(np.sum(away**2, axis=1))
            if apart.min(initial=np.inf) > self.beside.near:
                raise UnsupportedError(
                    "contacts are others beside where they were found; use central differences of"
                    " step()"
                )
            self.beside.flat[n] |= key not in found
            picked.append(those[int(np.argmin(apart))])
        return there[picked]
