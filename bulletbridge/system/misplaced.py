"""Frames of loops that no joint can bring together: how far each is off."""

from collections.abc import Mapping

import numpy as np

from bulletbridge.engine.redundancy import column_lengths
from bulletbridge.engine.stepper import Solver
from bulletbridge.numerics.records import Array
from bulletbridge.system.assembly import SHAKES, displaced

POSES = 4
"""At which directions are looked for in which joints move a loop."""


def misplaced_frames(
    solver: Solver, start: tuple[Array, float], links: Mapping[str, str], least: float
) -> dict[str, Array]:
    """Ways (3,) [m] in axes of its link from where frame b should be to where it is, by loop.

    Only directions count in which joints move the loop by less than ``least`` of what they move
    others, and of these gaps of more than ``least`` lengths: planar linkages drawn side by side.
    What nothing moves is the same in all configurations, whether loops are closed there or not.

    Args:
        solver: Of all rows as written.
        start: Configuration (nq,) and time [s].
        links: Of frames b, by loop; others are passed by.
        least: Share of lengths and motions.
    """
    encoded, mechanism, (q, t) = solver.encoded, solver.mechanism, start
    gap = encoded.scale * solver.gaps_at(q, t)
    if not np.abs(gap).max(initial=0.0) > least:
        return {}
    rng, still = np.random.default_rng(0), np.zeros(mechanism.nv)
    lengths = column_lengths(mechanism, encoded.length)
    moves = [SHAKES[-1] * lengths * rng.standard_normal(mechanism.nv) for _ in range(POSES)]
    terms = [solver.terms(displaced(solver, q, move), still, t) for move in moves]
    rates = encoded.scale[:, None] * np.hstack([each.J * lengths for each in terms])
    weak = least * float(np.linalg.norm(rates, axis=1).max(initial=0.0))
    poses = solver.poses_at(q)
    found: dict[str, Array] = {}
    for index, (name, part) in enumerate(encoded.rows.items()):
        if name not in links or encoded.loops[index]["target"] >= 0:
            continue
        metres = encoded.in_metres[part] & encoded.has_position[part]
        if not metres.any():
            continue
        U, s, _ = np.linalg.svd(rates[part][metres], full_matrices=False)  # at most three rows
        strong = int(np.sum(s > weak))
        stuck = U[:, strong:] @ (U[:, strong:].T @ gap[part][metres])
        if np.linalg.norm(stuck) > least:
            _, forces = solver.wrench_rows(poses, index, t)
            way = np.linalg.pinv(forces[metres, 3:]) @ (stuck / encoded.scale[part][metres])
            link = mechanism.link(links[name])
            found[name] = (poses["R"][link.body] @ link.R).T @ way
    return found
