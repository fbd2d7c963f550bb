"""Whether what closes the loops at the end of a step leads past what stopped joints and bodies.

Limits and contacts are rows at the start of a step, and hold there. What closes the loops is second
order in the angle of a step, and so is what it takes from them; but where ranks change, where a row
all but vanishes, or where a gap is pulled shut, it is not.
"""

import math

from bulletbridge.compilation.jit import outlined
from bulletbridge.engine.records import CORRECTION, START_Q, START_V, Arrays
from bulletbridge.inequalities.arrays import APART, TOGETHER
from bulletbridge.inequalities.impulses import InequalityProblem
from bulletbridge.inequalities.motor_limit_rows import motion_state, rate_along, rate_of
from bulletbridge.numerics.records import Array

BENDS = 3.0
"""Of the square of the angle that joints turn by in a step: what closing loops may move by where
ranks and rows stay. A joint of a linkage turns by half of it times what its ratio changes by."""
UNSEEN = 1e-6
"""What it may move by in any step [rad, or lengths of the mechanism]."""


@outlined
def overrun(a: Arrays, h: InequalityProblem, moved: Array, end_v: Array) -> int:
    """Which limit it passes by more than a step bends by, counted from one, or contact, from -1.

    Zero for none.

    Args:
        a: At the end of the step, with what has closed loops.
        h: With the rows of the step, and what they let come near.
        moved: (nv,) velocity that led to where loops were closed.
        end_v: (nv,) at its end.
    """
    nv, dt, start, own = len(moved), a.control.dt, a.vectors[START_Q], h.axis_rows
    closing, before = a.vectors[CORRECTION, :nv], a.vectors[START_V]
    # where ways part impulses lead on along some that closing leaves: those rates turn nothing
    fastest, most, apart = 0.0, 0.0, 1.0 if h.report[APART] > 0.0 else 0.0
    for k in range(nv):
        most = max(most, math.fabs(closing[k]))
        fastest = max(fastest, math.fabs(before[k]), math.fabs(end_v[k]))
        fastest = max(fastest, apart * math.fabs(h.moving[k]))
    if most == 0.0:
        return 0
    bent = BENDS * (dt * fastest) ** 2 + UNSEEN
    for i in range(len(h.joint_limits)):
        limit = h.joint_limits[i]
        axis = int(limit.axis)
        shift = rate_of(axis, own.G, closing)
        if math.fabs(shift) <= bent:
            continue
        position, rate = motion_state(axis, a.axes, own, start, moved)
        placed = position + dt * rate
        end = placed + shift
        if end < min(limit.lower, position, placed) - bent:
            return 1 + i
        if end > max(limit.upper, position, placed) + bent:
            return 1 + i
    near, most_sunk = h.row_targets.gap, a.control.length * bent
    for i in range(len(h.contact_points)):
        n = int(h.contact_rows[i].normal)
        if n >= int(h.report[TOGETHER]):  # of bodies that no loop moves
            continue
        if h.contact_rows[i].compliance > 0.0:  # which bodies are in already
            continue
        shift = rate_along(h.raw, n, closing)
        if shift >= -most_sunk:
            continue
        placed = dt * (near[n] + rate_along(h.raw, n, moved))
        if max(placed, 0.0) + shift < -most_sunk:
            return -1 - i
    return 0
