"""Closed configurations within joint limits, where the one nearest to a guess leaves some.

Least squares on all gaps with limits as bounds on joint positions: a trust region that stays inside
them, from the guess, from what had closed, and from random positions within limits, where hinges
that have none stay as they are, and then are turned too.
"""

import numpy as np

from bulletbridge.engine.stepper import Solver
from bulletbridge.inequalities.constraints import joints_beyond
from bulletbridge.inequalities.motor_limit_rows import SHALLOW
from bulletbridge.numerics.one_thread import one_blas_thread
from bulletbridge.numerics.records import Array, Mask
from bulletbridge.system.assembly import Group, displaced, groups_of, locked, open_by, unwound

RANDOM_STARTS, MOST_TRIALS = 8, 50
NEARLY = 1e-7
"""Residual, divided by its unit, from which assembling goes to a closure that is as near."""
INSIDE = 10.0 * SHALLOW
"""How far within its limits a joint is looked for, so that closing leaves it there [rad or m]."""


FARTHER = 10.0
"""Ways to the nearest closure that one within limits may be away: another branch is about as far,
and one to which a gap of round-off would throw a robot is not."""


def way_between(start: Array, end: Array) -> float:
    """Sum of what all coordinates (nq,) differ by."""
    return float(np.abs(end - start).sum())


@one_blas_thread()
def closed_within(solver: Solver, guess: Array, closed: Array, t: float, held: Mask) -> list[Array]:
    """Configurations that are nearly closed within limits, those nearest to the guess first.

    Before these come those that lock fewer actuated joints. Constraints that share no joints are
    looked at apart, and what is within limits stays where it is closed.

    Args:
        solver: What has the rows.
        guess: (nq,) whence the nearest is looked for.
        closed: (nq,) one that is closed beyond limits, as another place to begin.
        t: [s]
        held: (nv,) rates that are not moved.
    """
    mechanism, found = solver.mechanism, list[Array]()
    beyond = [mechanism.joints[name].q for name in joints_beyond(mechanism, closed)]
    for group in groups_of(solver, guess, t, held):
        if not any(group.q[q].any() for q in beyond):
            continue
        others = found or [closed]
        parts = _group_within(solver, np.where(group.q, guess, closed), closed, t, group)
        if not parts:
            return []
        found = [
            np.where(group.q, parts[min(k, len(parts) - 1)], others[min(k, len(others) - 1)])
            for k in range(max(len(parts), len(others)))
        ]
    return found


def _group_within(
    solver: Solver, guess: Array, closed: Array, t: float, group: Group
) -> list[Array]:
    """As ``closed_within``, of one group."""
    from scipy.optimize import least_squares

    mechanism, rng = solver.mechanism, np.random.default_rng(0)
    low, high = np.full((2, mechanism.nv), np.inf) * [[-1.0], [1.0]]
    single = np.zeros(mechanism.nv, np.int64) - 1  # where its position is
    for joint in mechanism.joints.values():
        if joint.is_single:
            k = joint.v.start
            single[k] = joint.q.start
            low[k], high[k] = joint.lower + INSIDE, joint.upper - INSIDE
    free = ~group.held & (low < high)
    rows = group.rows & solver.encoded.has_position
    bounded = free & np.isfinite(high - low)
    turning = np.zeros(mechanism.nv, bool)  # hinges that may stand anywhere on their way round
    turning[[j.v.start for j in mechanism.joints.values() if j.kind == "revolute"]] = True
    turning &= free & ~bounded

    def search(start: Array) -> Array:
        """Where free joints go within limits until gaps are least, from a start."""
        at = np.where(single >= 0, start[single], 0.0)
        move = np.zeros(mechanism.nv)

        def gaps(x: Array) -> Array:
            move[free] = x
            return (solver.encoded.scale * solver.gaps_at(displaced(solver, start, move), t))[rows]

        ends = (low - at)[free], (high - at)[free]
        first, most = np.clip(0.0, *ends), MOST_TRIALS
        move[free] = least_squares(gaps, first, bounds=ends, xtol=1e-12, max_nfev=most).x
        return displaced(solver, start, move)

    starts = [guess, closed]
    for number in range(RANDOM_STARTS * (1 + int(turning.any()))):
        start, inside = guess.copy(), rng.uniform(size=mechanism.nv)
        width = high[bounded] - low[bounded]
        start[single[bounded]] = low[bounded] + inside[bounded] * width
        if number >= RANDOM_STARTS:
            start[single[turning]] += np.pi * (2.0 * inside[turning] - 1.0)
        starts.append(start)
    found: list[tuple[int, float, Array]] = []
    for number, start in enumerate(starts):
        if number in (2, 2 + RANDOM_STARTS) and found:
            break
        q = unwound(solver, guess, search(start), t)
        beyond = (mechanism.joints[name].q for name in joints_beyond(mechanism, q))
        if open_by(solver, q, t, rows) < NEARLY and not any(group.q[x].any() for x in beyond):
            found.append((locked(solver, q, t, rows), way_between(guess, q), q))
    return [q for *_, q in sorted(found, key=lambda each: each[:2])]
