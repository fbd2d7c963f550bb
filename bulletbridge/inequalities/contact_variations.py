"""What contacts change by with the configuration that they are found at.

Shapes have no derivatives of their own: points, normals and gaps are found where one body is beside
where it was against the other, and differences are taken of them alone. What axes do to both
bodies, and to rows, follows from their twists.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.jit import call_stored, caller, helper, kernel, outlined
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.inequalities.contact_rows import relative_row, tangents
from bulletbridge.mechanism.contact_detection import (
    DIRECTION,
    GAP,
    NORMAL,
    ORDER_4,
    POSITION,
    SLOPES,
    Nearby,
)
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
    Pair,
    Vector,
    add,
    cross,
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
"""What bodies are displaced by [rad, or lengths of the mechanism]."""
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
    """Contacts of a configuration, and what they change by.

    Attributes:
        q: (nq,) where they were found.
        compliant: (n,) which give way, and so meet inside each other.
        flat: (n,) receives which of them change their gap as along their normal alone.
        v: (nv,) rates that they are found with,
        dt: in a step [s].
        near: Distance within which they are the same [m],
        way: by which bodies are displaced [m].
        chains: (nv,) scratch: zero before, and after.
        contact_points: (n,)
        centres: (n, 3) and
        slopes: (n, 6, SLOPES) what they change by as body b moves against body a, as of ``Nearby``.
        directions: (n, 3) scratch.
        C: (6 n, nv) receives rows.
        by_q: (nv, n, 4 + 6 nv) receives changes of gap, place and rows.
    """

    q: Array
    compliant: Mask
    flat: Mask
    v: Array
    dt: float
    near: float
    way: float
    chains: Ints
    contact_points: Records[ContactPoint]
    centres: Array
    slopes: Array
    directions: Array
    C: Array
    by_q: Array


def nearby(s: Beside) -> Nearby:
    """These, as what varies them takes them; for Python."""
    return Nearby(s.contact_points, s.dt, REACH, s.way, s.near, s.flat, s.centres, s.slopes)


@caller
def find_beside(find: Any, vary: Any, tree: Tree, s: Beside) -> int:
    """What contacts change by with the configuration; 1 if they are found beside it, or 0.

    Args:
        find: ``contact_detection.find_contacts``,
        vary: and ``vary_contacts``, with their arrays, stored.
        tree: Of whom; poses and axes are written.
        s: Contacts; receives it.
    """
    call_stored(find, (s.q, s.v, s.dt))
    beside = Nearby(s.contact_points, s.dt, REACH, s.way, s.near, s.flat, s.centres, s.slopes)
    if call_stored(vary, (beside,)) < len(s.contact_points):
        return 0
    put_variations(tree, s)
    return 1


@kernel
def put_variations(tree: Tree, s: Beside) -> int:
    """Rows of contacts, and what these, gaps and places change by; how many contacts.

    Args:
        tree: Of whom; poses and axes are written.
        s: Contacts, and what they change by with their bodies; receives it.
    """
    kinematics(tree.bodies, tree.beams, tree.stations, s.q, tree.poses, tree.axes)
    for i in range(len(s.contact_points)):
        contact = s.contact_points[i]
        gap = 0.0 if s.compliant[i] else contact.gap
        put(s.directions[i], vec(contact.direction))
        put_six_rows(tree, contact, gap, s.directions[i], s.C, ROWS_OF_ONE * i)
        mark(tree, contact, s.chains, 1)
        for k in range(len(s.by_q)):
            for j in range(s.by_q.shape[2]):
                s.by_q[k, i, j] = 0.0
            if s.chains[k] != 0:
                vary_by(tree, s, i, k)
            if s.flat[i]:  # no mean of what each face tells
                s.by_q[k, i, 0] = s.C[ROWS_OF_ONE * i, k]
        mark(tree, contact, s.chains, 0)
    return len(s.contact_points)


OF_B, OF_A = 1, 2
"""Whether an axis moves the one or the other body of a contact, or, as a sum, both."""


@helper
def mark(tree: Tree, contact: ContactPoint, chains: Ints, size: int) -> None:
    """Mark which axes move which body of a contact, or neither any more."""
    k = tree.bodies[contact.body_b].axis
    while k >= 0:
        chains[k] = size * OF_B
        k = tree.axes[k].below
    k = tree.bodies[contact.body_a].axis
    while k >= 0:
        chains[k] = size * (chains[k] + OF_A)
        k = tree.axes[k].below


@helper
def slope(slopes: Array, first: int, twist: Pair) -> Vector:
    """What a vector of a contact changes by with a twist of body b against body a."""
    total = ZERO
    for c in range(3):
        x, y = twist[0][c], twist[1][c]
        for_turn = slopes[c, first], slopes[c, first + 1], slopes[c, first + 2]
        for_way = slopes[3 + c, first], slopes[3 + c, first + 1], slopes[3 + c, first + 2]
        total = add(total, add(scale(x, for_turn), scale(y, for_way)))
    return total


@outlined
def vary_by(tree: Tree, s: Beside, i: int, k: int) -> None:
    """What contact i, and its rows, change by with axis k."""
    contact, slopes, changes, chain = s.contact_points[i], s.slopes[i], s.by_q[k, i], s.chains[k]
    place, normal, own = vec(contact.position), vec(contact.normal), axis_twist(tree.axes[k])
    at_b = sub(place, vec(tree.poses[contact.body_b].origin))
    at_a = sub(place, vec(tree.poses[contact.body_a].origin))
    against, carried = (ZERO, ZERO), (ZERO, ZERO)  # of b against a, and along with a
    if chain != OF_B:
        carried = own[0], velocity_at(own, at_a)
    centre = vec(s.centres[i])
    if chain == OF_B:
        centre = sub(centre, vec(tree.poses[contact.body_b].origin))
        against = own[0], velocity_at(own, centre)
    elif chain == OF_A:
        centre = sub(centre, vec(tree.poses[contact.body_a].origin))
        against = scale(-1.0, own[0]), scale(-1.0, velocity_at(own, centre))
    gap = 0.0
    for c in range(3):
        gap += slopes[c, GAP] * against[0][c] + slopes[3 + c, GAP] * against[1][c]
    moved = add(slope(slopes, POSITION, against), carried[1])
    turned = add(slope(slopes, NORMAL, against), cross(carried[0], normal))
    changes[0] = gap
    put(changes[1:4], moved)
    t1, t2 = tangents(normal, vec(s.directions[i]))
    along, by = t1, ZERO
    if vec(contact.direction) != ZERO:  # it turns with what friction depends on
        along = vec(contact.direction)
        by = add(slope(slopes, DIRECTION, against), cross(carried[0], along))
    high = dot(along, normal)
    first = sub(along, scale(high, normal))
    by = sub(by, add(scale(dot(by, normal) + dot(along, turned), normal), scale(high, turned)))
    t1_by = scale(1.0 / norm(first), sub(by, scale(dot(by, t1), t1)))
    ways = (normal, turned), (t1, t1_by), (t2, add(cross(turned, t1), cross(normal, t1_by)))
    rows = changes[4:].reshape(ROWS_OF_ONE, len(tree.axes))
    of = int(contact.body_b), k if chain != OF_A else -1
    add_rows_by(tree, of, 1.0, (at_b, moved), ways, rows)
    if not s.compliant[i]:
        at_a = sub(at_a, scale(contact.gap, normal))
        moved = sub(moved, add(scale(gap, normal), scale(contact.gap, turned)))
    of = int(contact.body_a), k if chain != OF_B else -1
    add_rows_by(tree, of, -1.0, (at_a, moved), ways, rows)


Varied = tuple[Vector, Vector]
"""A vector, and what it changes by."""
Ways = tuple[Varied, Varied, Varied]
"""Normal and tangents."""


@outlined
def add_rows_by(
    tree: Tree,
    of: tuple[int, int],
    sign: float,
    at: Varied,
    ways: Ways,
    changes: Array,
) -> None:
    """Add what rows of a contact change by, as far as they are those of one of its bodies.

    Args:
        tree: Where poses are put.
        of: The body, and the axis that moves it; -1 if what moves does not carry it.
        sign: Of the body.
        at: Where it meets the other, from the origin of its tree.
        ways: Along which they are.
        changes: (6, nv) receives it, or (3, nv) without rows of turns.
    """
    axes, k = tree.axes, of[1]
    j = tree.bodies[of[0]].axis
    while j >= 0:
        twist = axis_twist(axes[j])
        v, turns = velocity_at(twist, at[0]), ZERO
        moves = cross(twist[0], at[1])
        if k >= 0 and is_carried(tree.bodies, axes, k, j):
            by = motion_cross(axis_twist(axes[k]), twist)
            turns, moves = by[0], add(moves, velocity_at(by, at[0]))
        for m in range(3):
            way, by_way = ways[m]
            changes[m, j] += sign * (dot(by_way, v) + dot(way, moves))
            if len(changes) > 3:
                changes[3 + m, j] += sign * (dot(by_way, twist[0]) + dot(way, turns))
        j = axes[j].below


@outlined
def put_slopes_in_space(tree: Tree, contact: ContactPoint, ways: Ways, by_q: Array) -> None:
    """What rows of a contact along ways change by as it is fixed in space, where poses are put.

    Args:
        tree: Of whom.
        contact: Whose bodies meet at its place.
        ways: Along which the rows are.
        by_q: (nv, 3, nv) receives it by displacements.
    """
    place = vec(contact.position)
    for k in range(len(by_q)):
        for m in range(3):
            for j in range(by_q.shape[2]):
                by_q[k, m, j] = 0.0
    for side in range(2):
        body, sign = int(contact.body_b), 1.0
        if side == 1:
            body, sign = int(contact.body_a), -1.0
        at, k = (sub(place, vec(tree.poses[body].origin)), ZERO), tree.bodies[body].axis
        while k >= 0:
            add_rows_by(tree, (body, int(k)), sign, at, ways, by_q[k])
            k = tree.axes[k].below


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
        self._beside: tuple[tuple[Detector, int], Callable[[Any], int]] | None = None
        self._room: Beside | None = None
        self._calls = dict[Any, Callable[[Any], int]]()  # compiled when they are first needed

    def _call(self, what: Any, rest: tuple[Any, ...]) -> None:
        """Call one of the kernels."""
        if what not in self._calls:
            with announce_compilation(what):
                self._calls[what] = StoredCall(what, (self.tree,), rest).call
        self._calls[what](rest)

    def put_variations(self, s: Beside) -> None:
        """Put rows of contacts and what they change by, where ``slopes`` are known."""
        self._call(put_variations, (s,))

    def __call__(self, q: Array, points: np.ndarray, first: Array) -> Array:
        """Rows (n, 6, nv) of contacts (n,) at a configuration.

        Args:
            q: (nq,)
            points: (n,) as they were found there, or would be.
            first: (n, 3) along which first tangents are; becomes these.
        """
        C = np.zeros((ROWS_OF_ONE * len(points), len(self.lengths)))
        self._call(put_all_rows, (np.ascontiguousarray(q), points, first, C))
        return C.reshape(len(points), ROWS_OF_ONE, len(self.lengths))

    def room(self, n: int, nq: int, dt: float) -> Beside:
        """Room for n contacts in a step dt [s]; until that for others is asked for."""
        nv, room = len(self.lengths), self._room
        near = NEAR * float(self.lengths.max(initial=0.0))
        if room is None or len(room.compliant) != n:
            room = self._room = Beside(
                np.zeros(nq), np.zeros(n, bool), np.zeros(n, bool), np.zeros(nv), dt, near,
                REACH * self.length, np.zeros(nv, np.int64), np.empty(n, CONTACT_POINT),
                np.zeros((n, 3)), np.zeros((n, 6, SLOPES)), np.zeros((n, 3)),
                np.zeros((ROWS_OF_ONE * n, nv)), np.zeros((nv, n, 4 + ROWS_OF_ONE * nv)),
            )  # fmt: skip
        elif room.dt != dt:
            room = self._room = room._replace(dt=dt)
        return room

    def vary(self, detector: Detector, s: Beside) -> bool:
        """``find_beside`` by a detector."""
        which = detector, detector.version
        if self._beside is None or self._beside[0] != which:
            fixed = detector.call.block, detector.vary(nearby(s)).block, self.tree
            with announce_compilation(find_beside):
                self._beside = which, StoredCall(find_beside, fixed, (s,)).call
        return self._beside[1]((s,)) != 0


class ContactVariations:
    """Contacts of a configuration, and what they change by with it.

    Args:
        rows: Of what is in contact.
        finding: How contacts are found.
        q: (nq,) where they were found.
        points: (n,) those of them that matter, of dtype ``CONTACT_POINT``.
        compliant: (n,) which of these give way, and so meet inside each other.

    Attributes:
        C_by_q: (nv, n, 6, nv) what rows along the normal, two tangents, and of turns about these
            three change by with each displacement; tangents as they are carried along, or turn with
            the direction that friction depends on.
        gap_by_q: (nv, n)
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
        self.beside = s = rows.room(len(points), len(q), finding.dt)
        s.q[:], s.v[:], s.compliant[:] = q, finding.v, compliant
        np.asarray(s.contact_points)[:] = points
        if finding.detector is None or not rows.vary(finding.detector, s):
            self._vary_by_all(rows)
        nv = s.C.shape[1]
        self.gap_by_q = s.by_q[:, :, 0]
        self.C_by_q = s.by_q[:, :, 4:].reshape(nv, len(points), ROWS_OF_ONE, nv)

    def _vary_by_all(self, rows: RowsAt) -> None:
        """Find all contacts beside by each rate: of shapes that are not known, or flat faces."""
        s, points, q = self.beside, self._points, self.beside.q
        s.flat[:], s.centres[:] = False, points["position"]
        against, along = _twists(rows, q, points)
        other = points.copy()
        other["body_b"], other["body_a"] = points["body_a"], 0
        carried = _twists(rows, q, other)[0]
        changes, there = np.zeros((len(points), len(rows.lengths), SLOPES)), np.zeros_like(q)
        bodies, u = rows.tree.bodies, np.zeros(len(rows.lengths))
        for k in np.flatnonzero(np.any((against != 0.0) | (carried != 0.0), axis=(0, 2))):
            u[:] = 0.0
            u[k] = REACH * rows.lengths[k]
            for place, weight in ORDER_4:
                displace(bodies, q, u, place, there)
                found = self._again(there)
                told = [found[name] for name in ("position", "normal", "direction")]
                changes[:, k] += weight / u[k] * np.column_stack([found["gap"], *told])
        changes[:, :, POSITION:NORMAL] -= carried[:, :, 3:]
        for first, way in ((NORMAL, along), (DIRECTION, points["direction"])):
            changes[:, :, first : first + 3] -= np.cross(carried[:, :, :3], way[:, None])
        for i, way in enumerate(against):
            s.slopes[i] = np.linalg.lstsq(way, changes[i], rcond=None)[0]
        rows.put_variations(s)

    def _again(self, q: Array) -> np.ndarray:
        """The same contacts (n,) at another configuration."""
        there, points = self._find(q), self._points
        picked, names = list[int](), [(c["pair"], c["feature"]) for c in there]
        for n, point in enumerate(points):
            own = [k for k, x in enumerate(names) if x == (point["pair"], point["feature"])]
            those = own or np.flatnonzero(there["pair"] == point["pair"]).tolist()
            away = np.linalg.norm(there["position"][those] - point["position"], axis=1)
            if away.min(initial=np.inf) > self.beside.near:
                raise UnsupportedError(
                    "contacts are others beside where they were found; use central differences of"
                    " step()"
                )
            self.beside.flat[n] |= not own
            picked.append(those[int(np.argmin(away))])
        return there[picked]


def _twists(rows: RowsAt, q: Array, points: np.ndarray) -> tuple[Array, Array]:
    """Of bodies b against a at contacts (n,) by each rate, (n, nv, 6): turns, ways; and normals."""
    touching, first, normal = points.copy(), np.zeros((len(points), 3)), points["normal"]
    touching["gap"] = 0.0
    C = rows(q, touching, first)
    ways = np.stack([normal, first, np.cross(normal, first)], axis=1)
    turns, moves = (np.einsum("nmk,nmc->nkc", C[:, part], ways) for part in (slice(3, 6), slice(3)))
    return np.concatenate([turns, moves], axis=2), normal
