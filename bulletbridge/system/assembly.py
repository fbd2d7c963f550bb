"""Consistent configurations and velocities from inconsistent guesses.

Levenberg-Marquardt in the metric of M with short steps: the configuration found is the one that
continues the guess, not the other branch of the mechanism.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bulletbridge.engine.likely_mistakes import OUT_OF_SCALE
from bulletbridge.engine.redundancy import column_lengths
from bulletbridge.engine.sparse_plan import SparseStepper
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.tasks import PROJECT
from bulletbridge.engine.whitened import owner, whiten
from bulletbridge.errors import AssemblyError, Hinting
from bulletbridge.inequalities.constraints import joints_beyond
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.one_thread import one_blas_thread
from bulletbridge.numerics.records import Array, Mask

NEARLY_CLOSED = 1e-6
"""Gap, in mechanism lengths or radians, from which Newton's method goes to the nearest closure."""
LONGEST_MOVE = 0.3
"""Longest way of one iteration, in radians or mechanism lengths."""
MOST_ITERATIONS = 300
AT_ROUND_OFF = 1e-14
"""Residual from which an iteration that gains nothing is the last: what is left is round-off, which
damping only shuffles."""
VALLEY, FLAT = 10, 0.1
"""So many moves downhill that take away less than that share of the squared residual, the last no
more than the first of them twice, are along a valley of rows that next to nothing moves. Where the
residual is small it is one of frames that are rounded."""
SHAKES, SHAKES_EACH = (0.05, 0.3, 1.0), 6
"""Random displacements [rad or mechanism lengths] that a guess which leads nowhere gets. The first
go along the loops and are no wider than closes the gaps by their curvature: from wider ones a
stretched chain of many links takes more iterations than there are, since its bends have as many
shapes, and across the loops links are thrown about by far more than is to be taken up."""
BENT = 10.0
"""Times sqrt(2 g), g the largest gap [lengths, rad]: how far rows may move a mechanism that count
from now on. A row that holds at second order alone lets an arm of one length turn by sqrt(2 g), one
of a hundredth by ten times that. Rows that ask for more are not what the mechanism was closed by,
as a screw beside a coupling of nearly its pitch, which hold at one place alone: going there would
be a leap, and no step."""
FEW_BENDS = 2
"""Bends that are tried on a gap that may be one of frames that are rounded, which none closes."""
STRONG = 1e-3
"""Singular value of rows, over the largest, from which a shake keeps to what they leave free; and
part of a joint's rate in that from which it moves."""
ROUNDED = 1e-12
"""Share of the largest, in mechanism lengths, up to which a derivative of a gap is rounding."""


FEW_POSES, IMMOBILE = 3, 1e-5
"""Poses at which joints would move what they can, and how far they do, of the furthest, if not. A
search downhill leaves a hundredth of that of gaps that joints could close."""


MOVED = ", or have the frame moved there with load(..., repair_frames=True) (--repair-frames)"
"""What does it, where a loop is open across all that moves."""

MOST_DISAGREEING = 6
"""Constraints of which it is tried whether all others close without them, one after the other."""
MEET = "its points can meet"
"""Of a loop whose axes alone keep it open."""

SEARCHED = (
    f"the least that was found downhill from the start and from {len(SHAKES) * SHAKES_EACH} others"
    f" around it, displaced by {SHAKES[0]:g} to {SHAKES[-1]:g} rad or mechanism lengths"
)
"""How ``close`` looks for a configuration, in words."""
UNSHAKEN = "the least that was found downhill from there"
"""The same where the guess is all that is tried."""


NAMED = 4
"""Joints of an assembly that are told in a line."""


@dataclass(frozen=True)
class Move:
    """What assembly did to one joint: coordinates before and after."""

    joint: str
    before: Array
    after: Array


@dataclass(frozen=True)
class Assembly(Hinting):
    """Result of an assembly.

    Attributes:
        moved: Joints whose coordinates changed.
        iterations: Needed for the configuration.
        gap: Largest residual that stays in redundant rows [m or rad].
    """

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        "q": "system.q",
        "v": "system.v",
        "gaps": "system.evaluate().gaps",
    }

    moved: tuple[Move, ...]
    iterations: int
    gap: float

    def __repr__(self) -> str:
        """What moved most, in a line."""
        ways = {move.joint: move.after - move.before for move in self.moved}
        most = sorted(ways, key=lambda name: -float(np.abs(ways[name]).max()))
        told = [f"{name} by {', '.join(f'{x:.3g}' for x in ways[name])}" for name in most[:NAMED]]
        rest = f" and {len(most) - NAMED} more" if len(most) > NAMED else ""
        return f"<Assembly: moved {'; '.join(told) or 'nothing'}{rest}, gap {self.gap:.1e}>"


@one_blas_thread()
def close(
    solver: Solver,
    q: Array,
    t: float,
    held: Mask,
    enough: float = 1e-12,
    shakes: Sequence[float] = SHAKES,
) -> tuple[Array, int]:
    """Configuration nearest to q whose rows all vanish, with the held rates not moved.

    A guess that leads nowhere, such as a stretched chain, or far to where actuated joints are
    locked, is shaken with growing force. Of what is then found, what locks the fewest of them is
    taken, of these what leaves the fewest limits, and of these the nearest. Constraints that share
    no joints are shaken apart. Where it is open by no more than ``enough``, it is only seen
    whether a slight bend closes it: a rope that is a little too long is not rounded.

    Args:
        solver: What has the rows.
        q: The guess (nq,).
        t: Time [s].
        held: (nv,) rates that are not moved.
        enough: Residual, divided by its unit, that is taken for none.
        shakes: Forces; none if the guess is all that is to be tried.

    Returns:
        The configuration, which is closed as far as its rows allow, or where none is found the one
        that is open the least, and the iterations needed.
    """
    found, iterations = _nearest_closed(solver, q, t, held, enough, shakes)
    return unwound(solver, q, found, t), iterations


def unwound(solver: Solver, q: Array, found: Array, t: float) -> Array:
    """A configuration (nq,) with no turn of a hinge more than half a one away from q.

    The way there may have taken it round several times. Where whole turns count, as in couplings,
    all stays as it was found.
    """
    turns = np.zeros_like(q)
    for joint in solver.mechanism.joints.values():
        if joint.kind == "revolute":
            k = joint.q.start
            turns[k] = np.round((found[k] - q[k]) / (2.0 * np.pi))
    if not turns.any():
        return found
    nearer = found - 2.0 * np.pi * turns
    as_closed = max(round_off(solver, nearer, t), open_by(solver, found, t))
    return nearer if open_by(solver, nearer, t) <= as_closed else found


TRIMMED = 0.1
"""Share of round-off to which steps close what any motion closes. A straight chain that is short of
its reach by more has no row that would, but a slight bend does."""


@dataclass(frozen=True, eq=False)
class Group:
    """Constraints that share joints, which no other constraint moves with.

    Attributes:
        rows: Theirs (nc,).
        held: Rates (nv,) that are not moved: all but those of their joints, and those asked for.
        q: Coordinates (nq,) of their joints.
    """

    rows: Mask
    held: Mask
    q: Mask


def groups_of(solver: Solver, q: Array, t: float, held: Mask) -> list[Group]:
    """Constraints near q by the joints that they share, where the held rates are not moved.

    A robot's legs are found apart: what one of them starts from is no matter of the others.
    """
    moves, found = _moves(solver, q, t) & ~held, list[Group]()
    meet = np.asarray(moves @ moves.T)
    for part in solver.encoded.rows.values():
        meet[part, part] = True
    while (further := np.asarray(meet @ meet)).sum() > meet.sum():
        meet = further
    for rows in np.unique(meet, axis=0):
        moved, own = np.logical_or.reduce(moves[rows]), np.zeros(len(q), bool)
        for joint in solver.mechanism.joints.values():
            own[joint.q] = moved[joint.v].any()
        found.append(Group(rows, ~moved, own))
    return found


def _moves(solver: Solver, q: Array, t: float) -> Mask:
    """Which rates change which gaps (nc, nv), not at q alone."""
    terms = solver.terms(in_general(solver, q), np.zeros(solver.mechanism.nv), t)
    J = solver.encoded.scale[:, None] * terms.J
    J *= column_lengths(solver.mechanism, solver.encoded.length)
    return np.abs(J) > ROUNDED * np.abs(J).max(initial=0.0)


def _nearest_closed(
    solver: Solver, q: Array, t: float, held: Mask, enough: float, shakes: Sequence[float]
) -> tuple[Array, int]:
    """What ``close`` finds, which may be whole turns away."""
    if not held.any() and isinstance(solver.stepper, SparseStepper):
        nearest = project_by_links(solver, q, t)
        if nearest is not None:
            return nearest
    found, iterations = descend(solver, q, t, held | ~_moves(solver, q, t).any(axis=0))
    exact = TRIMMED * round_off(solver, found, t)
    enough = max(enough, exact / TRIMMED)
    near = held.any() or np.abs(found - q).max(initial=0.0) <= LONGEST_MOVE
    if not shakes or (near and open_by(solver, found, t) <= exact):
        return found, iterations
    for group in groups_of(solver, q, t, held):
        start, gap = np.where(group.q, q, found), open_by(solver, found, t, group.rows)
        if exact < gap <= enough:
            found, more = _bent(solver, found, t, group, exact)
        elif gap > exact or not (near or np.abs(found - start).max() <= LONGEST_MOVE):
            found, more = _shaken(solver, start, found, t, group, enough, shakes)
        else:
            continue
        iterations += more
    return found, iterations


def _shaken(
    solver: Solver,
    q: Array,
    found: Array,
    t: float,
    group: Group,
    enough: float,
    shakes: Sequence[float],
) -> tuple[Array, int]:
    """What of a group is closed the nearest to q, where the way downhill leads to ``found``."""
    rng, iterations = np.random.default_rng(0), 0
    lengths = column_lengths(solver.mechanism, solver.encoded.length) * ~group.held
    usual = locked(solver, in_general(solver, q), t, group.rows)
    closed, least, candidate = list[tuple[int, int, float, Array]](), np.inf, found
    mechanism, before = solver.mechanism, joints_beyond(solver.mechanism, q)
    for number, force in enumerate((0.0, *shakes)):
        for _ in range(SHAKES_EACH if number else 1):
            if number:
                move = force * rng.standard_normal(mechanism.nv) * lengths
                if number == 1:
                    move = along_loops(solver, q, t, move, group.held)
                    move *= bend_that_closes(solver, q, t, move)
                start = displaced(solver, q, move)
                candidate, more = descend(solver, start, t, group.held, group.rows)
                iterations += more
            gap = open_by(solver, candidate, t, group.rows)
            if gap <= enough:
                still = max(usual, locked(solver, candidate, t, group.rows))
                beyond = len(joints_beyond(mechanism, candidate) - before)
                closed.append((still, beyond, float(np.abs(candidate - q).sum()), candidate))
            elif gap < least:
                least, found = gap, candidate
        best = min(closed, key=lambda each: each[:3], default=None)
        if best is not None and (best[0] == usual or force == shakes[-1]):
            return best[3], iterations
    candidate, more = _close_in_turn(solver, q, t, group, shakes)
    is_closed = open_by(solver, candidate, t, group.rows) <= enough
    return candidate if is_closed else found, iterations + more


def _bent(solver: Solver, q: Array, t: float, group: Group, exact: float) -> tuple[Array, int]:
    """Where a slight bend of a group closes what is open at q by a little, or q."""
    rng, iterations, length = np.random.default_rng(0), 0, solver.encoded.length
    lengths = column_lengths(solver.mechanism, length) * ~group.held
    furthest = BENT * np.sqrt(2.0 * open_by(solver, q, t, group.rows)) * max(1.0, length)
    for _ in range(FEW_BENDS):
        move = SHAKES[0] * rng.standard_normal(len(lengths)) * lengths
        move = along_loops(solver, q, t, move, group.held)
        start = displaced(solver, q, bend_that_closes(solver, q, t, move) * move)
        candidate, more = descend(solver, start, t, group.held, group.rows)
        iterations += more
        near = np.abs(candidate - q).max() <= furthest
        if near and open_by(solver, candidate, t, group.rows) <= exact:
            return candidate, iterations
    return q, iterations


def _close_in_turn(
    solver: Solver, q: Array, t: float, group: Group, shakes: Sequence[float]
) -> tuple[Array, int]:
    """Close one loop of a group after the other, those closed before staying so.

    Of many loops, as of a walker's legs on one crank, each has few joints of its own, but a
    displacement of all that leads to closure of all of them is not to be met. Next comes the loop
    that has the fewest joints which do not move yet, and only its joints are shaken. Where one
    stays open, the search ends.

    Returns:
        A configuration, and the iterations needed.
    """
    rng, iterations = np.random.default_rng(0), 0
    encoded, nv = solver.encoded, solver.mechanism.nv
    lengths, moves = column_lengths(solver.mechanism, encoded.length), _moves(solver, q, t)
    names = [name for name, part in encoded.rows.items() if group.rows[part].any()]
    own = {name: moves[encoded.rows[name]].any(axis=0) & ~group.held for name in names}
    rows, moving = np.zeros(encoded.nc, bool), np.zeros(nv, bool)
    while len(names) > 1 and own:
        name = min(own, key=lambda each: int((own[each] & ~moving).sum()))
        joints = own.pop(name)
        rows[encoded.rows[name]], moving, closed = True, moving | joints, q
        for force in (0.0, *(force for force in shakes for _ in range(SHAKES_EACH))):
            move = force * rng.standard_normal(nv) * lengths * joints
            closed, more = descend(solver, displaced(solver, q, move), t, ~moving, rows)
            iterations += more
            if open_by(solver, closed, t, rows) <= NEARLY_CLOSED:
                break
        else:
            return closed, iterations
        q = closed
    return q, iterations


def locked(solver: Solver, q: Array, t: float, rows: Mask | None = None) -> int:
    """How many rates of actuated joints no motion has that all rows, or some (nc,), allow at q.

    Branches of a mechanism may differ in it though the rows' rank does not, as where a rod stands
    along one axis of its universal joint and may only spin there.
    """
    mechanism = solver.mechanism
    if not mechanism.actuated:
        return 0
    J = solver.encoded.scale[:, None] * solver.terms(q, np.zeros(mechanism.nv), t).J
    J *= column_lengths(mechanism, solver.encoded.length)
    _, s, Vt = np.linalg.svd(J if rows is None else J[rows], full_matrices=False)
    kept = Vt[: np.count_nonzero(s > STRONG * s.max(initial=0.0))]
    still = 1.0 - (kept**2).sum(axis=0) < STRONG**2
    return sum(int(still[mechanism.joints[name].v].sum()) for name in mechanism.actuated)


def in_general(solver: Solver, q: Array) -> Array:
    """A configuration (nq,) near q at which nothing is lined up."""
    return displaced(solver, q, 0.1 * np.random.default_rng(0).standard_normal(solver.mechanism.nv))


def displaced(solver: Solver, q: Array, move: Array) -> Array:
    """Configuration (nq,) that a move (nv,) leads to."""
    found = np.empty_like(q)
    displace(solver.bodies, q, move, 1.0, found)
    return found


def along_loops(solver: Solver, q: Array, t: float, move: Array, held: Mask) -> Array:
    """Part of a move (nv,) that opens no strong row at first order, in the metric of M."""
    terms, free = solver.terms(q, np.zeros(solver.mechanism.nv), t), ~held
    M = terms.M[np.ix_(free, free)]
    Y = whiten(M, solver.encoded.scale[:, None] * terms.J[:, free])
    if not np.all(np.isfinite(Y)) or not Y.any():
        return move
    _, s, Vt = np.linalg.svd(Y, full_matrices=False)
    rows, L = Vt[s > STRONG * s[0]], np.linalg.cholesky(M)
    whitened = L.T @ move[free]
    kept = move.copy()
    kept[free] = np.linalg.solve(L.T, whitened - rows.T @ (rows @ whitened))
    return kept


def bend_that_closes(solver: Solver, q: Array, t: float, move: Array) -> float:
    """Part of a move (nv,) from q whose curvature takes up the gaps there; one if none does."""
    part, moved = 1.0, np.empty_like(q)
    for _ in range(2):  # the first is of a wider move, which bends not as its square
        ends = list[Array]()
        for way in (0.0, part, -part):
            displace(solver.bodies, q, move, way, moved)
            ends.append(solver.encoded.scale * solver.gaps_at(moved, t))
        gap, bent = ends[0], 0.5 * (ends[1] + ends[2]) - ends[0]
        closed = -float(gap @ bent)
        if not closed > 0.0:
            return 1.0
        part = min(1.0, part * float(np.sqrt(closed / (bent @ bent))))
    return part


def project_by_links(solver: Solver, q: Array, t: float) -> tuple[Array, int] | None:
    """The nearest closed configuration to one that is nearly closed, where links are eliminated.

    Returns:
        The configuration and the passes needed; None if it is not nearly closed, or none was found
        without joint coordinates.
    """
    if solver.stepper is None or open_by(solver, q, t) > NEARLY_CLOSED:
        return None
    before = solver.state.copy()
    solver.put(q, np.zeros(solver.mechanism.nv), t)
    failure = solver.stepper.evaluate(PROJECT, solver.targets_now(), solver.forces(0))
    found, passes = solver.q.copy(), int(solver.control[0]["correction_passes"])
    solver.state[:] = before
    return None if failure else (found, passes)


def round_off(solver: Solver, q: Array, t: float) -> float:
    """Residual, divided by its unit, that double precision may leave: 1e-12 of sizes above one."""
    poses = solver.poses_at(q)
    distance = float(np.abs(poses["origin"] + poses["p"]).max()) / solver.encoded.length
    return 1e-12 * max(1.0, distance, float(np.abs(q).max(initial=0.0)))


def open_by(solver: Solver, q: Array, t: float, rows: Mask | None = None) -> float:
    """Largest residual of all rows, or of some (nc,), divided by its unit."""
    gaps = np.abs(solver.encoded.scale * solver.gaps_at(q, t))
    return float((gaps if rows is None else gaps[rows]).max(initial=0.0))


def why_open(solver: Solver, q: Array, t: float, held: Mask) -> str:
    """Why the loop that is open the widest does not close, and what to do; empty if unknown.

    Args:
        solver: What has the rows.
        q: (nq,) where they are open the least.
        t: [s]
        held: (nv,) rates that are not moved.
    """
    encoded, poses = solver.encoded, solver.poses_at(q)
    gap = encoded.scale * solver.gaps_at(q, t)
    worst = int(np.argmax(np.abs(gap)))
    places = poses["origin"] + poses["p"]
    size = float(np.linalg.norm(places - places[0], axis=1).max())
    metres = abs(float(gap[worst])) / float(encoded.scale[worst])
    if encoded.in_metres[worst] and metres > OUT_OF_SCALE * size > 0.0:
        return (
            f"that is {metres / size:.0f} times the size of what it joins: give the lengths of its"
            " frames in metres, not in mm, and as scaled as the robot is"
        )
    part = encoded.rows[owner(encoded, worst)]
    own = np.zeros(encoded.nc, bool)
    own[part] = True
    alike = own & (encoded.in_metres == encoded.in_metres[worst])
    if _is_out_of_reach(solver, q, t, held, np.where(alike, gap, 0.0)):
        said = (
            "a frame is off by the gap" if encoded.in_metres[worst] else "an axis is tilted so far"
        )
        return (
            f"no joint moves it in that direction, so {said}: check 'xyz', 'rpy' and 'axis' of the"
            f" loop, and the joints' in the URDF{MOVED if encoded.in_metres[worst] else ''}"
        )
    if len(named := at_odds(solver, q, t, held)) > 1:
        return contradiction(named)
    turned = np.zeros(encoded.nc, bool)
    for loop in encoded.loops:
        turned[loop["row"] : loop["row"] + loop["rows"]] = True
    if (own & turned & ~encoded.in_metres & encoded.has_position).any():
        points = encoded.in_metres | ~own
        met, _ = descend(solver, q, t, held, points)
        left = np.abs(encoded.scale * solver.gaps_at(met, t))[points & encoded.has_position]
        if left.max(initial=0.0) < NEARLY_CLOSED:
            return (
                f"{MEET}, but not with its axes aligned: check 'axis', which is z of"
                " the frames unless given, and 'rpy', or use a ball"
            )
    return ""


def contradiction(named: list[str]) -> str:
    """What to say of constraints that are at odds with each other, or of one with all others."""
    if len(named) == 1:
        return f"'{named[0]}' contradicts the others, which close without it"
    listed = ", ".join(f"'{name}'" for name in named)
    return (
        f"{listed} contradict each other, since without any one"
        " of them all else closes: leave one of them out, or mend its numbers"
    )


def at_odds(solver: Solver, q: Array, t: float, held: Mask) -> list[str]:
    """Constraints without any one of which all others close, where several are open at q.

    At time t [s], and with the held rates not moved.
    """
    encoded = solver.encoded
    gap, found = np.abs(encoded.scale * solver.gaps_at(q, t)), list[str]()
    is_open = [name for name, part in encoded.rows.items() if (gap[part] > NEARLY_CLOSED).any()]
    for name in is_open if 1 < len(is_open) <= MOST_DISAGREEING else ():
        others = encoded.has_position
        others[encoded.rows[name]] = False
        closed, _ = descend(solver, q, t, held, others)
        left = np.abs(encoded.scale * solver.gaps_at(closed, t))[others]
        if left.max(initial=0.0) <= NEARLY_CLOSED:
            found.append(name)
    return found


def open_names(solver: Solver, q: Array, t: float, enough: float) -> list[str]:
    """Names of the constraints that are open by more than ``enough``, the widest first."""
    gap = np.abs(solver.encoded.scale * solver.gaps_at(q, t))
    widest = {name: gap[part].max(initial=0.0) for name, part in solver.encoded.rows.items()}
    return sorted((name for name in widest if widest[name] > enough), key=lambda x: -widest[x])


def _is_out_of_reach(solver: Solver, q: Array, t: float, held: Mask, gap: Array) -> bool:
    """Whether no joint moves rows along a gap (nc,), at q or at poses around it."""
    rng, zero = np.random.default_rng(0), np.zeros(solver.mechanism.nv)
    lengths = column_lengths(solver.mechanism, solver.encoded.length)
    for _ in range(FEW_POSES):
        move = SHAKES[-1] * rng.standard_normal(len(zero)) * lengths * ~held
        J = solver.terms(displaced(solver, q, move), zero, t).J * lengths * ~held
        J *= solver.encoded.scale[:, None]
        if np.abs(gap @ J).max(initial=0.0) > IMMOBILE * np.linalg.norm(gap) * np.abs(J).max():
            return False
    return True


def descend(
    solver: Solver, q: Array, t: float, held: Mask, rows: Mask | None = None
) -> tuple[Array, int]:
    """Least residual downhill from q, of all rows or some (nc,); configuration and iterations."""
    q = q.copy()
    counted = solver.encoded.has_position  # what only rolls may slip into its place
    if rows is not None:
        counted = counted & rows
    unit, free = solver.encoded.scale[counted], ~held
    reach = LONGEST_MOVE * column_lengths(solver.mechanism, solver.encoded.length)
    damping, best, falls = 1e-4, np.inf, deque[float](maxlen=VALLEY)
    zero, trial = np.zeros(solver.mechanism.nv), q.copy()
    terms = solver.terms(q, zero, t)
    for iteration in range(MOST_ITERATIONS):
        g = unit * terms.g[counted]
        best = float(g @ g)
        if np.abs(g).max(initial=0.0) < 1e-15 or not free.any():
            return q, iteration
        M = terms.M[np.ix_(free, free)]
        Y = whiten(M, unit[:, None] * terms.J[np.ix_(counted, free)])
        if not np.all(np.isfinite(Y)):  # the ends of a rod coincide, and it has no direction
            return q, iteration
        U, s, Vt = np.linalg.svd(Y, full_matrices=False)
        weights = s / (s * s + damping * s[0] ** 2) if s.size and s[0] > 0 else s
        move = zero.copy()
        y = Vt.T @ (weights * (U.T @ g))
        move[free] = -np.linalg.solve(np.linalg.cholesky(M).T, y)
        move /= max(1.0, float(np.abs(move / reach).max()))
        displace(solver.bodies, q, move, 1.0, trial)
        new_terms = solver.terms(trial, zero, t)
        new = unit * new_terms.g[counted]
        if float(new @ new) < best:
            q, terms = trial.copy(), new_terms
            fall = 1.0 - float(new @ new) / best
            if fall < 1e-3 and damping <= 1e-20:
                return q, iteration
            falls.append(fall)
            is_small = np.abs(new).max() < solver.tolerances.redundant
            if is_small and len(falls) == VALLEY and fall < 2.0 * falls[0] and sum(falls) < FLAT:
                return q, iteration
            damping = max(0.01 * damping, 1e-20)
        elif damping > 1e6 or np.abs(move / reach).max() < 1e-15 or np.abs(g).max() < AT_ROUND_OFF:
            return q, iteration
        else:
            damping = max(100.0 * damping, 1e-18)
    return q, MOST_ITERATIONS


@one_blas_thread()
def consistent_velocity(solver: Solver, q: Array, v: Array, t: float, held: Mask) -> Array:
    """Velocity nearest to v in the metric of M that the rows allow, with held rates kept.

    Raises:
        AssemblyError: The rows and the held rates contradict each other.
    """
    terms = solver.terms(q, v, t)
    unit, free = solver.encoded.scale, ~held
    cap = int(solver.control[0]["cap"])
    missing = unit * (terms.J @ v + terms.g_t)
    result = v.copy()
    if missing.any() and free.any():
        M = terms.M[np.ix_(free, free)]
        Y = whiten(M, unit[:, None] * terms.J[:, free])
        U, s, Vt = np.linalg.svd(Y, full_matrices=False)
        rank = min(cap, int(np.count_nonzero(s > 1e-10 * s[0])) if s.size else 0)
        y = Vt[:rank].T @ ((U[:, :rank].T @ missing) / s[:rank])
        result[free] -= np.linalg.solve(np.linalg.cholesky(M).T, y)
    left = np.abs(unit * (terms.J @ result + terms.g_t)) / unit
    allowed = 1e-9 * (1.0 + float(np.abs(result).max(initial=0.0)))
    if left.max(initial=0.0) > max(allowed, 10 * solver.control[0]["mismatch"]):
        name = owner(solver.encoded, int(np.argmax(left)))
        raise AssemblyError(
            f"start velocities contradict the constraint '{name}': {left.max():.3g} m/s or rad/s "
            f"remain (limit {allowed:.1g}); name fewer joints in v, or consistent rates"
        )
    return result
