"""Restitution as far as it gives no energy, and the work of limits and contacts."""

import math
from typing import NamedTuple

from bulletbridge.compilation.jit import helper
from bulletbridge.inequalities.motor_limit_rows import RowTargets
from bulletbridge.numerics.records import Array

UNSOLVED = 0.1
"""Residual, in the largest velocity asked for, from which on a solution is not used."""


@helper
def is_usable(
    residual: float, tolerance: float, row_targets: Array, first_unilateral: int, n: int
) -> bool:
    """Whether a solution with restitution, or out of each other, is one.

    Rows that contradict each other, as of a body that is wedged, may leave one that is far off;
    the step does without then.
    """
    most = 0.0
    for i in range(first_unilateral, n):
        most = max(most, math.fabs(row_targets[i]))
    return residual <= max(tolerance, UNSOLVED * most)


class Impulses(NamedTuple):
    """Impulses of rows, and the velocities to which they lead."""

    x: Array
    w: Array


@helper
def work_of(at: Impulses, row_targets: RowTargets, first_unilateral: int, n: int) -> float:
    """Work [J] of limits and contacts.

    It is that of the impulses along the mean of the velocities at both ends of the step, which
    changes the energy that semi-implicit Euler keeps, and nothing else does (forces apart).
    """
    return work_between(at, at, row_targets, first_unilateral, n, 0.0)


@helper
def work_between(
    rest: Impulses,
    at: Impulses,
    row_targets: RowTargets,
    first_unilateral: int,
    n: int,
    share: float,
) -> float:
    """The same for a share of the way from impulses at rest to others."""
    total = 0.0
    for i in range(first_unilateral, n):
        x = rest.x[i] + share * (at.x[i] - rest.x[i])
        w = rest.w[i] + share * (at.w[i] - rest.w[i])
        total += x * (row_targets.initial[i] + w - row_targets.gap[i])
    return 0.5 * total


@helper
def bounce_share(
    rest: Impulses, at: Impulses, row_targets: RowTargets, first_unilateral: int, n: int
) -> float:
    """How much of the restitution, up to all, is possible without a gain of energy.

    With friction, or between unlike contacts, Newton's law alone would give energy (Kane and
    Levinson 1985). Between the solutions without and with restitution, which are both possible,
    the work is a quadratic function.
    """
    none = work_between(rest, at, row_targets, first_unilateral, n, 0.0)
    half = work_between(rest, at, row_targets, first_unilateral, n, 0.5)
    whole = work_between(rest, at, row_targets, first_unilateral, n, 1.0)
    most = max(none, 0.0)
    if whole <= most:
        return 1.0
    square_part, linear = 2.0 * (none + whole) - 4.0 * half, 4.0 * half - 3.0 * none - whole
    below = most - none
    root = linear + math.sqrt(max(linear * linear + 4.0 * square_part * below, 0.0))
    return min(2.0 * below / root, 1.0) if root > 0.0 else 0.0
