"""Which rows are redundant by design: decided once, at closed poses, and held.

Two kinds of weak row look alike at one pose. A row that no joint can move is redundant: planar
loops written in 3D, over-constrained mechanisms, the same with axes rounded in the file, whose weak
rows are not zero but small. A row that is weak at a singular position is not. So poses are sampled
along admissible motions and only what stays weak at all of them is dropped. The test is geometric,
on the Jacobian with lengths divided by the mechanism's, since masses have no part in it.
"""

from dataclasses import dataclass

import numpy as np

from bulletbridge.constraints.encoded import Encoded
from bulletbridge.errors import StepError
from bulletbridge.formulations.arrays import NOT_CLOSED
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.solver import Solver
from bulletbridge.simulation.solver_arrays import Tolerances
from bulletbridge.simulation.step import PROJECT

CERTAINLY_ZERO = 1e-6
"""Relative size below which a row that stays weak is redundant without a gap in the spectrum."""
SPECTRAL_GAP = 0.03
"""Below the threshold a row is redundant only if it is this much weaker than the next one."""

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
    """

    rows: int
    kept: int
    dropped: Array
    mismatch_m: float = 0.0
    mismatch_rad: float = 0.0


@dataclass(frozen=True)
class Decision:
    """Encoded rows without those that single loops have too many, and the rank of what remains."""

    encoded: Encoded
    by_name: dict[str, Redundancy]
    cap: int
    scale: Array  # (nc,) of the kept rows, to length near one
    mismatch: float  # largest residual of dependent rows over the samples, divided by its unit
    jacobians: Array  # (samples, nc, nv) of the kept rows at closed poses, without units

    def agrees(self, other: "Decision | None") -> bool:
        """Whether solvers of both have the same rows, ranks and sizes."""
        return self is other or (
            other is not None
            and (self.cap, self.mismatch) == (other.cap, other.mismatch)
            and self.encoded.rows == other.encoded.rows
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.jacobians, other.jacobians)
        )


def decide(
    mechanism: Mechanism, encoded: Encoded, q: Array, t: float, tolerances: Tolerances
) -> Decision:
    """Decide redundancy from the closed configuration q (nq,) on.

    Args:
        mechanism: The tree.
        encoded: All rows as written.
        q: A closed configuration.
        t: Time of the prescribed motions [s].
        tolerances: ``redundant`` is the threshold.
    """
    probe = Solver(mechanism, encoded, tolerances)
    poses = sample_closed_poses(probe, q, t, tolerances.redundant)
    columns = column_lengths(mechanism, encoded.length)
    samples = [probe.terms(pose, np.zeros(mechanism.nv), t) for pose in poses]
    jacobians = np.array([encoded.scale[:, None] * s.J * columns for s in samples])
    residuals = np.array([encoded.scale * s.g for s in samples])
    by_name: dict[str, Redundancy] = {}
    reduced = encoded
    for name, part in encoded.rows.items():
        by_name[name] = Redundancy(part.stop - part.start, part.stop - part.start, np.zeros((0, 6)))
        loop = _loop_of(encoded, name)
        if loop is None or loop["target"] >= 0:
            continue  # a motion that no joint can follow must be noticed, not left out
        constant, held = int(loop["rows"]) - (1 if loop["variable"] else 0), int(loop["held"])
        block = slice(part.start, part.start + constant)
        kept, weak, held = split_loop(jacobians[:, block], held, tolerances.redundant)
        if not len(weak):
            continue
        unit = encoded.scale[block]
        selected = kept * unit
        metre = np.abs(selected @ loop["force"][:constant]).max(axis=1) > 0
        selected[metre] *= encoded.length
        reduced = reduced.without(name, selected, held)
        left = np.abs(residuals[:, block] @ weak.T).max(axis=0)
        wrench = np.hstack([loop["moment"], loop["force"] * encoded.length])[:constant]
        in_metres = np.abs((weak * unit) @ loop["force"][:constant]).max(axis=1) > 1e-6
        by_name[name] = Redundancy(
            part.stop - part.start,
            part.stop - part.start - len(weak),
            (weak * unit) @ wrench,
            float(encoded.length * left[in_metres].max(initial=0.0)),
            float(left[~in_metres].max(initial=0.0)),
        )
    probe = Solver(mechanism, reduced, tolerances)
    samples = [probe.terms(pose, np.zeros(mechanism.nv), t) for pose in poses]
    jacobians = np.array([reduced.scale[:, None] * s.J * columns for s in samples])
    whitened = np.array([whiten(s.M, reduced.scale[:, None] * s.J) for s in samples])
    size = np.linalg.norm(whitened, axis=2).max(axis=0, initial=0.0)
    cap = structural_rank(jacobians, tolerances.redundant)
    left = [float(np.abs(reduced.scale * s.g).max(initial=0.0)) for s in samples]
    scale = reduced.scale / np.where(size > 0.0, size, 1.0)
    return Decision(reduced, by_name, cap, scale, max(left, default=0.0), jacobians)


def column_lengths(mechanism: Mechanism, length: float) -> Array:
    """(nv,) factor of each Jacobian column that makes metres per metre and radians per radian."""
    factors = np.ones(mechanism.nv)
    for joint in mechanism.joints.values():
        if joint.kind in ("prismatic", "beam"):
            factors[joint.v] = length
        elif joint.kind == "free":
            factors[joint.v.start + 3 : joint.v.stop] = length
    return factors


def split_loop(jacobians: Array, held: int, threshold: float) -> tuple[Array, Array, int]:
    """``split_directions`` without mixing rows that hold positions, the first ``held``, and others.

    Returns:
        Kept and weak directions, and how many of those kept hold positions.
    """
    rows = jacobians.shape[1]
    if held == rows:
        kept, weak = split_directions(jacobians, threshold)
        return kept, weak, len(kept)
    top = np.linalg.norm(jacobians, ord=2, axis=(1, 2))
    positions, weak_positions = split_directions(jacobians[:, :held], threshold, top)
    rates, weak_rates = split_directions(jacobians[:, held:], threshold, top)
    return both(positions, rates), both(weak_positions, weak_rates), len(positions)


def both(positions: Array, rates: Array) -> Array:
    """Directions of the first rows and of those after them, as directions of all."""
    columns = positions.shape[1]
    found = np.zeros((len(positions) + len(rates), columns + rates.shape[1]))
    found[: len(positions), :columns], found[len(positions) :, columns:] = positions, rates
    return found


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
    whole: Array = np.linalg.norm(jacobians, ord=2, axis=(1, 2)) if top is None else top
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


def structural_rank(jacobians: Array, threshold: float) -> int:
    """Independent rows of (samples, nc, nv): the rank where it is largest."""
    if 0 in jacobians.shape:
        return 0
    lengths = np.linalg.norm(jacobians, axis=2, keepdims=True)
    normed = jacobians / np.where(lengths > 0, lengths, 1.0)
    spectrum = np.linalg.svd(normed, compute_uv=False)
    spectrum = (spectrum / spectrum[:, :1]).max(axis=0)
    for k in range(1, len(spectrum)):
        gap = min(threshold, SPECTRAL_GAP * spectrum[k - 1])
        if spectrum[k] < gap or spectrum[k] < CERTAINLY_ZERO:
            return k
    return len(spectrum)


def whiten(M: Array, J: Array) -> Array:
    """Rows of J in coordinates in which the mass matrix is the identity."""
    return np.asarray(np.linalg.solve(np.linalg.cholesky(M), J.T).T, np.float64)


def number_of_poses(nv: int, nc: int) -> int:
    """How many poses to sample: by the operations of a projection, never by the clock."""
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
        if failure or not np.all(np.isfinite(solver.q)):
            step *= 0.5
            continue
        poses.append(solver.q.copy())
    return poses


def _loop_of(encoded: Encoded, name: str) -> np.void | None:
    index = list(encoded.rows).index(name)
    return encoded.loops[index] if index < len(encoded.loops) else None
