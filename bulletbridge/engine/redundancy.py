"""Which rows are redundant by design: decided at closed poses, held, and watched.

Three kinds of weak row look alike at one pose. A row that no joint can move is redundant: planar
loops written in 3D, over-constrained mechanisms, the same with axes rounded in the file, whose weak
rows are not zero but small. A row that is weak at a singular position is not; nor is one that is
weak everywhere, as of a long lever. So poses are sampled along admissible motions, and what is left
out is what stays weak over motions much longer than it is strong. What is neither zero nor strong
there is rounded, unless the start was given closed to round-off, which frames that are rounded
never are, and leaves a freedom. The test is geometric, on the
Jacobian with lengths divided by the mechanism's, since masses have no part in it.

What is left out is an assumption about all configurations: its gap over the samples is its
allowance, and steps watch it (``engine.correction.judge_left_out``).
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.constraints.records import ROD
from bulletbridge.engine.records import NOT_CLOSED
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.tasks import PROJECT
from bulletbridge.engine.whitened import whiten
from bulletbridge.engine.workspace import RowsAt, Tolerances
from bulletbridge.errors import StepError
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.projection import Caps
from bulletbridge.numerics.records import Array, Ints, Mask

SPECTRAL_GAP = 0.03
"""Below the threshold a row is redundant only if it is this much weaker than the next one."""
CERTAIN = 1e-3
"""Share of the threshold below which a row is redundant whatever comes before it."""
SPREAD = 10.0
"""Times what was found over the samples: gaps and rates that redundant rows may have elsewhere."""
ROUNDED_RATE, ROUNDED_ROW = 1e-11, 1e-10
"""Round-off of the rate of a row left out, over that of its joints, and of its length,
over that of the longest, by those it follows from."""
SINGLE = float(np.finfo(np.float32).eps)

PREFERENCE = 0.1
"""Power of how far rows move, over the one that moves furthest, by which they are taken for shorter
than others where some follow from others. Of rows that say the same the one that moves most is
kept: round-off of one that moves a thousandth of it would be a thousandfold in the other.
"""
LATER = 1e-6
"""Share by which the last row is taken for shorter than the first there, besides. Of a constraint
that is there twice each row is as long as its double but for round-off, which would keep now the
one, now the other: passes of a correction would close them by turns where frames are rounded.
"""
FAR = 1e4
"""Turns [rad] and lengths that no steps of one lead to: there closing has run away, and light links
vanish from the mass matrix."""
MOST_POSES, FEWEST_POSES, MOST_OPERATIONS = 24, 3, 1.2e9
"""Poses that are sampled, and operations of one projection times poses: about a second."""


@dataclass(frozen=True)
class Redundancy:
    """What was decided about one constraint.

    Attributes:
        rows, kept: Rows as written, rows used.
        dropped: Unit wrenches (moment, force) in axes of frame a that no joint can move, (nd, 6);
            lengths in units of the mechanism's.
        mismatch_m, mismatch_rad: Largest gap that stays in these directions over the sampled poses.
        drawn, widest: Gap of any of its rows as written, in mechanism lengths or radians, at the
            first of these poses, and the largest.
        frames: How many frames it has, and joints between its bodies. Each is rounded by some
            digit: a gap that is drawn with as much is at most so many times that at other poses,
            where all add up.
    """

    rows: int
    kept: int
    dropped: Array
    mismatch_m: float = 0.0
    mismatch_rad: float = 0.0
    drawn: float = 0.0
    widest: float = 0.0
    frames: int = 1

    def opens(self, rounding: float) -> bool:
        """Whether it opens by more than frames that are rounded by what it starts with let it.

        Args:
            rounding: Gap that is none, in mechanism lengths or radians.
        """
        return self.widest > max(rounding, self.frames * self.drawn)


@dataclass(frozen=True)
class Decision:
    """Encoded rows without those that single loops have too many, and the rank of what remains.

    Attributes:
        encoded: The rows used.
        by_name: What was decided about each constraint.
        left_out: By name of the loop, (directions, rows) times its constant rows as written: what
            is left out, each in one unit.
        cap: How many rows are independent, where they are most.
        caps: How many steps take for independent: as many, or all after they have shown that more
            are than was decided.
        scale: (nc,) of the kept rows, to length near one.
        mismatch: Largest residual of dependent rows over the samples, divided by its unit.
        most_left: How long dependent rows are, over the longest, less what the others explain.
        jacobians: (samples, nc, nv) of the kept rows at closed poses, without units.
        threshold: Relative size that counted as weak.
        reach: Longest motion of any body over the samples, at most one.
        farthest: As in ``Samples``.
        is_held: Whether steps take no more rows for independent than was decided.
        whole: Loops that keep all their rows, since a step has shown that they need them.
    """

    encoded: Encoded
    by_name: dict[str, Redundancy]
    left_out: dict[str, Array]
    cap: int
    caps: Caps
    scale: Array
    mismatch: float
    most_left: float
    jacobians: Array
    threshold: float
    reach: float
    farthest: float = 1.0
    is_held: bool = True
    whole: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        rows = sum(found.rows for found in self.by_name.values())
        return (
            f"<Decision: {self.encoded.nc} of {rows} rows of {len(self.by_name)} constraints kept,"
            f" {self.cap} of them independent>"
        )

    @property
    def widest(self) -> float:
        """Largest gap of any redundant row over the samples, in mechanism lengths or radians."""
        length = self.encoded.length
        sizes = [max(r.mismatch_m / length, r.mismatch_rad) for r in self.by_name.values()]
        return max([*sizes, self.mismatch])

    @property
    def slack(self) -> float:
        """Residual that dependent rows may have in steps, divided by their unit.

        Programs that lead frames, as a drawer's along its axis or a door's round its hinge, have
        their places from Bullet, which tells them in single precision: the farther away, the worse.
        """
        told = SINGLE * self.farthest if self.encoded.driven == 2 else 0.0
        return SPREAD * max(self.mismatch, told)

    @property
    def allowance(self) -> float:
        """Gap at which a start is closed as far as it can be, in mechanism lengths or radians.

        Beside dependent rows, directions that are kept turn with the pose by as much as frames are
        rounded, and what stays in those left out is seen in them by that angle.
        """
        return SPREAD * (self.mismatch + self.widest**2)

    @property
    def kept(self) -> tuple[int, ...]:
        """How many rows are kept of each constraint, then of all and of those with positions."""
        return *(r.kept for r in self.by_name.values()), *self.caps

    def agrees(self, other: "Decision | None") -> bool:
        """Whether solvers of both have the same rows, ranks and sizes."""
        return self is other or (
            other is not None
            and (self.caps, self.mismatch) == (other.caps, other.mismatch)
            and self.encoded.rows == other.encoded.rows
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.jacobians, other.jacobians)
        )

    def caps_of(self, rows: Ints | Mask, columns: Ints | None = None) -> Caps:
        """Caps of some rows, and of some rates; given by numbers or masks."""
        part = self.jacobians[:, rows]
        part = part if columns is None else part[:, :, columns]
        held = self.encoded.has_position[rows]
        if not self.is_held:
            return Caps(min(part.shape[1:]), min(int(held.sum()), part.shape[2]))
        return caps_among(part, held, self.threshold)

    def with_all_rows(self, moved: Mask) -> "Decision":
        """This decision for steps that find the independent rows anew at each pose.

        Args:
            moved: (nc,) rows that something moves next to the closed poses, if not at them.
        """
        held, (nc, nv) = int(self.encoded.has_position.sum()), self.jacobians.shape[1:]
        caps = Caps(min(nc, nv), min(held, nv))
        scale = np.where((self.scale == 0.0) & moved, self.encoded.scale, self.scale)
        return replace(self, caps=caps, scale=scale, most_left=np.inf, is_held=False)


class Start(NamedTuple):
    """A closed configuration q (nq,), and whether it was given with all rows closed to round-off.

    Frames that are rounded do not close so: what is weak is then meant.
    """

    q: Array
    is_exact: bool


class Samples(NamedTuple):
    """Closed poses, and what the rows are there.

    Attributes:
        poses: Configurations (nq,), the start first.
        jacobians: (samples, nc, nv) without units.
        motions: (samples, nb) way and turn of each body against its parent since the start, in
            mechanism lengths and radians.
        lengths: (samples, nc) of the rows in coordinates in which the mass matrix is the identity.
        farthest: Distance of a driven frame from the world's origin, in mechanism lengths, at
            least one, as of what turns by radians.
    """

    poses: list[Array]
    jacobians: Array
    motions: Array
    lengths: Array
    farthest: float

    @property
    def reach(self) -> float:
        """Longest motion of any body, at most one."""
        return min(1.0, float(self.motions.max(initial=0.0)))


def decide(
    mechanism: Mechanism,
    encoded: Encoded,
    start: Start,
    t: float,
    tolerances: Tolerances,
    whole: frozenset[str] = frozenset(),
) -> Decision:
    """Decide redundancy from a closed configuration on.

    Args:
        mechanism: The tree.
        encoded: All rows as written.
        start: The configuration.
        t: Time of the prescribed motions [s].
        tolerances: ``redundant`` and ``singular`` are the thresholds.
        whole: Names of loops that keep all their rows.
    """
    system = mechanism, encoded, t, tolerances
    rough = samples_of(*system, start.q, tolerances.redundant)
    found = select(*system, rough, tolerances.redundant, whole)
    if found.kept == select(*system, rough, tolerances.singular, whole).kept:
        return replace(with_gaps(*system, rough, found), whole=whole)
    walker = deciding(mechanism, tolerances, found)  # it goes where steps would
    along = sample_closed_poses(walker, start.q, t, CERTAIN * tolerances.singular)
    weighed = replace(with_gaps(*system, rough._replace(poses=along), found), whole=whole)
    opened = max(each.widest for each in weighed.by_name.values())
    is_rounded = opened < rough.reach * tolerances.redundant
    if is_rounded and not start.is_exact:
        return weighed
    fine = samples_of(*system, start.q, CERTAIN * tolerances.singular)  # what bends is closed
    found = select(*system, fine, tolerances.singular, whole)
    if is_rounded and found.cap >= mechanism.nv:  # nobody means a structure
        return weighed
    return replace(with_gaps(*system, fine, found), whole=whole)


def all_independent(encoded: Encoded, scale: Array, nv: int) -> Decision:
    """The decision that no row is redundant, as where all are strong at one closed pose.

    Args:
        encoded: The rows as written.
        scale: (nc,) see ``Decision``.
        nv: Number of rates.
    """
    by_name = {
        name: Redundancy(part.stop - part.start, part.stop - part.start, np.zeros((0, 6)))
        for name, part in encoded.rows.items()
    }
    caps = Caps(encoded.nc, int(encoded.has_position.sum()))
    none, rank = np.zeros((0, encoded.nc, nv)), encoded.nc
    return Decision(
        encoded, by_name, {}, rank, caps, scale, 0.0, np.inf, none, 0.0, 1.0, is_held=False
    )


def row_lengths(solver: Solver, q: Array, t: float) -> Array:
    """(nc,) lengths of the rows, in one unit, in coordinates in which M is the identity."""
    there = solver.rows_at(q, t)
    lengths: Array = np.linalg.norm(
        whiten(there.M, solver.encoded.scale[:, None] * there.J, solver.mechanism), axis=1
    )
    return lengths


VANISHED = 1e-9
"""Length of a row at the start, over that at other closed poses, which is round-off: a start is on
the singular position where it vanishes."""


BEND = 0.01
"""How far joints are moved [lengths, rad] from where a row is still, to see whether it stays so."""


def moved_rows(
    mechanism: Mechanism, encoded: Encoded, tolerances: Tolerances, q: Array, t: float
) -> Mask:
    """(nc,) whether anything moves a row at q, or where one rate is moved from there, loops open.

    A chain at its full reach moves none of what holds its tip, but bent it does.
    """
    probe, still = Solver(mechanism, encoded, tolerances), np.zeros(mechanism.nv)
    columns, found = column_lengths(mechanism, encoded.length), np.zeros(encoded.nc, bool)
    bent = np.empty_like(q)
    for way in (still, *np.diag(BEND * columns)):
        displace(mechanism.bodies, q, way, 1.0, bent)
        found |= moved_there(probe, bent, t, columns)
    return found


def moved_there(solver: Solver, q: Array, t: float, columns: Array) -> Mask:
    """(nc,) whether anything moves a row at q, by the ``column_lengths``."""
    there = solver.rows_at(q, t)
    lengths = np.linalg.norm(solver.encoded.scale[:, None] * there.J * columns, axis=1)
    return lengths >= solver.tolerances.still


def samples_of(
    mechanism: Mechanism,
    encoded: Encoded,
    t: float,
    tolerances: Tolerances,
    q: Array,
    threshold: float,
) -> Samples:
    """Closed poses from q on, found without the rows that are weaker than the threshold."""
    probe = released(Solver(mechanism, encoded, tolerances))
    poses = sample_closed_poses(probe, q, t, threshold)
    there = [probe.rows_at(pose, t) for pose in poses]
    jacobians, lengths = unitless(mechanism, encoded, there)
    motions = motions_between(mechanism, np.array([s.poses for s in there]), encoded.length)
    farthest = max(1.0, farthest_led(encoded, there[0].poses) / encoded.length)
    return Samples(poses, jacobians, motions, lengths, farthest)


def farthest_led(encoded: Encoded, poses: np.ndarray) -> float:
    """Distance [m] from the world's origin of that driven frame which is farthest from it."""
    led = encoded.loops[encoded.loops["target"] >= 0]
    on = poses[led["body_a"]]
    places = on["origin"] + on["p"] + np.einsum("nij,nj->ni", on["R"], led["p_a"])
    return float(np.linalg.norm(places, axis=1).max(initial=0.0))


def unitless(mechanism: Mechanism, encoded: Encoded, there: list[RowsAt]) -> tuple[Array, Array]:
    """Jacobians (samples, nc, nv) without units, and the rows' lengths (samples, nc).

    Lengths are those in coordinates in which M is the identity.
    """
    rows = encoded.scale[:, None] * np.array([s.J for s in there])
    whitened = np.ascontiguousarray(whiten(np.array([s.M for s in there]), rows, mechanism))
    return rows * column_lengths(mechanism, encoded.length), np.linalg.norm(whitened, axis=2)


def released(solver: Solver) -> Solver:
    """A solver whose driven joints and rods are free: what they do is no matter of redundancy."""
    e, free = solver.encoded, np.zeros(solver.encoded.nc, bool)
    free[e.couplings["row"][e.couplings["target"] >= 0]] = True
    rods = (e.loops["variable"] == ROD) & (e.loops["target"] >= 0)
    free[e.loops["row"][rods]] = True
    solver.rows["unit"][:, free] = solver.rows["scale"][:, free] = 0.0
    return solver


def motions_between(mechanism: Mechanism, poses: np.ndarray, length: float) -> Array:
    """(samples, nb) way and turn of each body against its parent since the first of the samples.

    Args:
        mechanism: Whose bodies they are.
        poses: (samples, nb) of its bodies.
        length: What a way is measured by [m]; a turn is by the radian.
    """
    parents = mechanism.bodies["parent"].clip(min=0)
    R, own, offset = poses["R"], poses["origin"], poses["p"]
    up = R[:, parents].swapaxes(2, 3)
    way = own - own[:, parents] + offset - offset[:, parents]
    turned, moved = up @ R, (up @ way[..., None])[..., 0]
    cosine: Array = 0.5 * (np.einsum("bij,sbij->sb", turned[0], turned) - 1.0)
    turn: Array = np.arccos(np.clip(cosine, -1.0, 1.0))
    chord = np.linalg.norm(turned - turned[0], axis=(2, 3)) / np.sqrt(2.0)
    turn = np.where(turn > 1e-3, turn, chord)  # which is exact where the cosine is flat
    found = np.maximum(turn, np.linalg.norm(moved - moved[0], axis=2) / length)
    found[:, 0] = 0.0
    return found


def select(
    mechanism: Mechanism,
    encoded: Encoded,
    t: float,
    tolerances: Tolerances,
    samples: Samples,
    threshold: float,
    whole: Collection[str],
) -> Decision:
    """What is redundant as far as samples tell, not yet how far it stays open."""
    reduced, by_name, left_out = encoded, dict[str, Redundancy](), dict[str, Array]()
    for index, (name, part) in enumerate(encoded.rows.items()):
        rows = part.stop - part.start
        by_name[name] = Redundancy(rows, rows, np.zeros((0, 6)))
        if index >= len(encoded.loops) or name in whole or encoded.loops[index]["target"] >= 0:
            continue  # a motion that no joint can follow must be noticed, not left out
        loop = encoded.loops[index]
        constant, held = int(loop["rows"]) - (1 if loop["variable"] else 0), int(loop["held"])
        block = slice(part.start, part.start + constant)
        reach = samples.motions[:, bodies_between(mechanism, loop)].max(initial=0.0)
        split = split_loop(samples.jacobians[:, block], held, threshold * min(1.0, reach))
        if not len(split.weak):
            continue
        unit = encoded.scale[block]
        selected, left = split.kept * unit, split.weak * unit
        metre = np.abs(selected @ loop["force"][:constant]).max(axis=1) > 0
        selected[metre] *= encoded.length
        reduced = reduced.without(name, selected, split.held, left, split.held_weak)
        wrench = np.hstack([loop["moment"], loop["force"] * encoded.length])[:constant]
        by_name[name] = replace(by_name[name], kept=rows - len(left), dropped=left @ wrench)
        left_out[name] = left
    if reduced is encoded:
        jacobians, lengths = samples.jacobians.copy(), samples.lengths
    else:
        probe = Solver(mechanism, reduced, tolerances)
        there = [probe.rows_at(pose, t) for pose in samples.poses]
        jacobians, lengths = unitless(mechanism, reduced, there)
    size = full_lengths(mechanism, reduced, samples, lengths)
    longest = np.linalg.norm(jacobians, axis=2).max(axis=0, initial=0.0)
    idle = longest < tolerances.still
    led = [
        part
        for part, loop in zip(reduced.rows.values(), reduced.loops, strict=False)
        if loop["target"] >= 0
    ]
    if any(idle[part].any() for part in led):
        moved = moved_rows(mechanism, reduced, tolerances, samples.poses[0], t)
        for part in led:
            idle[part] &= ~moved[part]
    size[idle], jacobians[:, idle] = 0.0, 0.0
    within = threshold * samples.reach
    caps = caps_among(jacobians, reduced.has_position, within)
    if caps.rows < reduced.nc:
        for part in led:  # it goes where these poses, at which it stands, do not
            size[part][~idle[part]] = size[part].max(initial=0.0)
    scale = np.where(idle, 0.0, reduced.scale / np.where(size > 0.0, size, 1.0))
    if caps.rows < reduced.nc:
        scale[size > 0.0] *= (size[size > 0.0] / size.max()) ** PREFERENCE
        scale *= np.linspace(1.0, 1.0 - LATER, reduced.nc)
    return Decision(
        reduced,
        by_name,
        left_out,
        caps.rows,
        caps,
        scale,
        SPREAD * float(longest[idle].max(initial=0.0)),  # what a turn makes of idle rows
        0.0,
        jacobians,
        within,
        samples.reach,
        samples.farthest,
    )


def full_lengths(mechanism: Mechanism, encoded: Encoded, samples: Samples, lengths: Array) -> Array:
    """(nc,) how long rows get, of their ``lengths`` (samples, nc), as if joints moved by a radian.

    A row that vanishes at a singular start grows with the way its loop moves from there. Where that
    stays there, as parallelograms do that start flat and of which another folds, it has grown by
    that share of a radian: by the length it has, it would be strong next to where it vanishes, so
    that steps saw that position too late, and with reactions that balance by their round-off.
    Where nothing moves farther than that loop it goes as far as it can, as a chain at its reach.
    """
    size: Array = lengths.max(axis=0, initial=0.0)
    longest, farthest = float(size.max(initial=0.0)), float(samples.motions.max(initial=0.0))
    for loop, part in zip(encoded.loops, encoded.rows.values(), strict=False):
        reach = float(samples.motions[:, bodies_between(mechanism, loop)].max(initial=0.0))
        if 0.0 < reach < min(1.0, farthest):
            grown = np.flatnonzero(lengths[0, part] < VANISHED * size[part]) + part.start
            size[grown] = np.minimum(size[grown] / reach, longest)
    return size


def deciding(mechanism: Mechanism, tolerances: Tolerances, decision: Decision) -> Solver:
    """A ``released`` solver of the rows of a decision, which watches none of those left out."""
    solver = Solver(mechanism, decision.encoded, tolerances)
    solver.decide_rank(decision.caps, decision.scale, np.inf, np.inf)
    decision.encoded.loops["allowed"] = decision.encoded.loops["allowed_rate"] = np.inf
    return released(solver)


def with_gaps(
    mechanism: Mechanism,
    encoded: Encoded,
    t: float,
    tolerances: Tolerances,
    samples: Samples,
    decision: Decision,
) -> Decision:
    """The decision with the gaps that redundant rows keep where all others are closed."""
    reduced, still = decision.encoded, np.zeros(mechanism.nv)
    full = released(Solver(mechanism, encoded, tolerances))
    solver = deciding(mechanism, tolerances, decision)
    unit = solver.rows["unit"][0].copy()
    gaps = {name: np.zeros(len(left)) for name, left in decision.left_out.items()}
    by_pose = list[Array]()
    mismatch = most_left = 0.0
    for pose in samples.poses:
        solver.put(pose, still, t)
        try:
            failure = solver.run(PROJECT)
        except StepError:  # a user's constraint that ends there
            failure = NOT_CLOSED
        if failure or solver.control[0]["filter_rank"] < decision.cap:
            continue  # at a singular position nothing follows
        g = unit * solver.gaps_at(solver.q, t)
        mismatch = max(mismatch, float(np.abs(g).max(initial=0.0)))
        most_left = max(most_left, float(solver.control[0]["unexplained"]))
        written = full.gaps_at(solver.q, t)
        by_pose.append(np.abs(full.rows["unit"][0] * written))
        for name, left in decision.left_out.items():
            first = encoded.rows[name].start
            gap = np.abs(left @ written[first : first + left.shape[1]])
            gaps[name] = np.maximum(gaps[name], gap)
    sizes = np.array(by_pose).reshape(len(by_pose), encoded.nc)
    largest = {name: sizes[:, part].max(axis=1, initial=0.0) for name, part in encoded.rows.items()}
    joints = [int(bodies_between(mechanism, loop).sum()) for loop in encoded.loops]
    joints += encoded.couplings["count"].tolist() + [1] * len(encoded.users)
    by_name = {
        name: replace(
            each,
            drawn=float(largest[name][:1].sum()),
            widest=float(largest[name].max(initial=0.0)),
            frames=1 + between,
        )
        for (name, each), between in zip(decision.by_name.items(), joints, strict=True)
    }
    for name, left in decision.left_out.items():
        loop, first = reduced.loops[list(encoded.rows).index(name)], encoded.rows[name].start
        part = slice(first, first + left.shape[1])
        rates = left / encoded.scale[part] @ samples.jacobians[:, part]
        loop["allowed"] = SPREAD * gaps[name].max()
        loop["allowed_rate"] = SPREAD * np.abs(rates).max() + ROUNDED_RATE
        in_metres = np.abs(by_name[name].dropped[:, 3:]).max(axis=1) > 1e-6
        by_name[name] = replace(
            by_name[name],
            mismatch_m=float(encoded.length * gaps[name][in_metres].max(initial=0.0)),
            mismatch_rad=float(gaps[name][~in_metres].max(initial=0.0)),
        )
    rounded = tolerances.redundant * samples.reach
    if decision.cap >= mechanism.nv:  # what nothing moves frames alone may hold open
        rounded = max(rounded, tolerances.still)
    if mismatch > rounded:
        mismatch = 0.0  # that is no rounding: it has not moved further than it is open
    mismatch = max(mismatch, decision.mismatch)
    most_left = SPREAD * most_left + ROUNDED_ROW
    return replace(decision, by_name=by_name, mismatch=mismatch, most_left=most_left)


def bodies_between(mechanism: Mechanism, loop: np.void) -> Mask:
    """(nb,) whether a body moves one end of a loop and not the other alike."""
    found = np.zeros(len(mechanism.bodies), bool)
    for end in "ab":
        k = int(loop[f"axis_{end}"])
        while k != int(loop["common_axis"]):
            found[int(mechanism.axes[k]["body"])] = True
            k = int(mechanism.axes[k]["below"])
    return found


def column_lengths(mechanism: Mechanism, length: float) -> Array:
    """(nv,) factor of each Jacobian column that makes metres per metre and radians per radian."""
    factors = np.ones(mechanism.nv)
    for joint in mechanism.joints.values():
        if joint.kind in ("prismatic", "beam"):
            factors[joint.v] = length
        elif joint.kind == "free":
            factors[joint.v.start + 3 : joint.v.stop] = length
    return factors


class LoopSplit(NamedTuple):
    """Directions of one loop's rows.

    Attributes:
        kept, weak: Orthonormal rows (k, rows), those first that hold positions.
        held, held_weak: How many of each do.
    """

    kept: Array
    weak: Array
    held: int
    held_weak: int


def split_loop(jacobians: Array, held: int, threshold: float) -> LoopSplit:
    """``split_directions`` of rows that hold positions, the first ``held``, and of the others."""
    rows = jacobians.shape[1]
    if held == rows:
        kept, weak = split_directions(jacobians, threshold)
        return LoopSplit(kept, weak, len(kept), len(weak))
    top = largest_singular_values(jacobians)
    positions, weak_positions = split_directions(jacobians[:, :held], threshold, top)
    rates, weak_rates = split_directions(jacobians[:, held:], threshold, top)
    kept, weak = both(positions, rates), both(weak_positions, weak_rates)
    return LoopSplit(kept, weak, len(positions), len(weak_positions))


def both(positions: Array, rates: Array) -> Array:
    """Directions of the first rows and of those after them, as directions of all."""
    columns = positions.shape[1]
    found = np.zeros((len(positions) + len(rates), columns + rates.shape[1]))
    found[: len(positions), :columns], found[len(positions) :, columns:] = positions, rates
    return found


def largest_singular_values(matrices: Array) -> Array:
    """Of each of some matrices (samples, m, n); zero for those without rows or columns.

    Of such ones norms of NumPy before 2.3 are errors.
    """
    return np.linalg.svd(matrices, compute_uv=False).max(axis=-1, initial=0.0)


def split_directions(
    jacobians: Array, threshold: float, top: Array | None = None
) -> tuple[Array, Array]:
    """Directions of one loop's rows that some joint moves, and those that none does.

    Args:
        jacobians: (samples, rows, nv) without units.
        threshold: Relative size that counts as weak.
        top: (samples,) what it is relative to; the largest of these rows unless given.

    Returns:
        Orthonormal rows, (kept, rows) and (weak, rows).
    """
    rows = jacobians.shape[1]
    stacked = np.concatenate(list(jacobians), axis=1)
    whole = largest_singular_values(jacobians) if top is None else top
    directions = np.linalg.eigh(stacked @ stacked.T)[1].T
    sizes = (
        np.linalg.norm(directions @ jacobians, axis=2) / np.where(whole > 0, whole, 1.0)[:, None]
    )
    weak = sizes.max(axis=0) < threshold
    basis = directions[~weak]
    # rows along the joint's own axes read better and cost the same
    aligned = np.eye(rows) - directions[weak].T @ directions[weak]
    kept = aligned[np.linalg.norm(aligned, axis=1) > 0.5]
    if 0 < len(kept) == len(basis) and np.linalg.cond(kept) < 1.1:
        basis = kept
    return basis, directions[weak]


def caps_among(jacobians: Array, held: Mask, threshold: float) -> Caps:
    """Most independent rows of Jacobians (samples, nc, nv), and of those ``held`` (nc,)."""
    rank = structural_rank(jacobians, threshold)
    return Caps(rank, rank if held.all() else structural_rank(jacobians[:, held], threshold))


def structural_rank(jacobians: Array, threshold: float) -> int:
    """Independent rows of (samples, nc, nv): the rank where it is largest."""
    if 0 in jacobians.shape or not jacobians.any():
        return 0
    lengths = np.linalg.norm(jacobians, axis=2, keepdims=True)
    normed = jacobians / np.where(lengths > 0, lengths, 1.0)
    spectrum = np.linalg.svd(normed, compute_uv=False)
    top = spectrum[:, :1]
    spectrum = (spectrum / np.where(top > 0, top, 1.0)).max(axis=0)
    for k in range(1, len(spectrum)):
        is_apart = spectrum[k] < SPECTRAL_GAP * spectrum[k - 1]
        if spectrum[k] < threshold and (is_apart or spectrum[k] < CERTAIN * threshold):
            return k
    return len(spectrum)


def number_of_poses(nv: int, nc: int) -> int:
    """How many poses to sample: by the operations of a projection, never by the clock."""
    if nc == 0:
        return 1
    operations = nv**3 / 6 + nv * nc * (nv / 2 + nc)
    return int(min(MOST_POSES, max(FEWEST_POSES, MOST_OPERATIONS / max(operations, 1.0))))


def sample_closed_poses(solver: Solver, q: Array, t: float, threshold: float) -> list[Array]:
    """Closed configurations reached from q by random admissible motions, q first.

    Rows weaker than the threshold are left out on the way, so that rounded redundant rows do not
    lock the mechanism; a singular start is left behind by the first moves.
    """
    rng = np.random.default_rng(0)
    nv = solver.mechanism.nv
    speed = np.ones(nv) * 0.4 * column_lengths(solver.mechanism, solver.encoded.length)
    solver.control[0]["singular_rtol"] = solver.control[0]["filter_rtol"] = threshold
    solver.state[-1] = t
    poses = [q.copy()]
    count, step = number_of_poses(nv, solver.encoded.nc), 1.0
    while len(poses) < count and step > 1e-3:
        solver.q[:], solver.v[:] = poses[-1], speed * rng.standard_normal(nv)
        failure = solver.run(PROJECT)  # admissible part of the random velocity
        rates = np.abs(solver.v) / speed
        if failure or not rates.max(initial=0.0) > 1e-9:
            break
        move = solver.v * (step / rates.max())
        displace(solver.bodies, poses[-1], move, 1.0, solver.q)
        solver.v[:] = 0.0
        try:
            failure = solver.run(PROJECT)
        except StepError:  # a user's constraint that ends there
            failure = NOT_CLOSED
        away = np.abs(solver.q - poses[0]).max(initial=0.0)
        if failure or not away < FAR * max(1.0, solver.encoded.length):
            step *= 0.5
            continue
        poses.append(solver.q.copy())
    return poses
