"""How rows that can do the same share it: weights of their impulses, and demands that agree.

Where loops join what motors drive, there are more motors than freedoms. What they ask for then
contradicts itself, if only by round-off, and infinitely many impulses give one motion. Both are
settled by one norm: impulses count as shares of what each row can do.
"""

import math

from bulletbridge.numerics.jit import outlined
from bulletbridge.numerics.mixed import LIGHTEST
from bulletbridge.numerics.mixed_rows import Mixed
from bulletbridge.numerics.records import Array

AMPLE = 1e4
"""Times what is needed, as which a stronger motor counts."""
HEAVIEST = 1e6
"""Ratio of the largest to the smallest weight."""
INDEPENDENT = 1e-6
"""Share of the strongest direction from which on motors can be told apart by what they move: the
threshold of the constraints themselves."""


@outlined
def weigh(p: Mixed, loaded: int, n: int) -> None:
    """Weights of the norm: motors by their bounds, limits and contacts by what is needed.

    Impulses count as shares of a motor's largest, or of that which alone would do what is hardest
    for any limit or contact: E = max b²/D, x² <= E/D. A motor that is far too strong counts as
    AMPLE times what the hardest row needs.

    Args:
        p: The problem.
        loaded: The first of limits and contacts.
        n: All rows.
    """
    need, hardest, most = 0.0, 0.0, 0.0
    for i in range(n):
        d = p.D[i, i]
        if not d > 0.0 or p.bounds[i].owner >= 0:
            continue
        alone, bound = p.b[i] * p.b[i] / d, min(p.bounds[i].upper, -p.bounds[i].lower)
        if i < loaded:
            alone = min(alone, bound * bound * d)
        elif p.b[i] < 0.0:
            hardest = max(hardest, alone)
        need = max(need, alone)
    for i in range(n):
        d, bound = p.D[i, i], p.bounds[i].upper
        ample = AMPLE * AMPLE * need
        p.weights[i] = (
            max(hardest, need / HEAVIEST) if i >= loaded else min(bound * bound * d, ample)
        )
        most = max(most, p.weights[i])
    for i in range(n):
        ratio = most / p.weights[i] if p.weights[i] > 0.0 else 1.0
        p.weights[i] = LIGHTEST * min(ratio, HEAVIEST) * p.D[i, i]


@outlined
def agree(p: Mixed, C: Array, motors: int) -> None:
    """Take out of what motors ask for what loops forbid them to do together.

    What is left differs least from what was asked, by the squares of their strengths: the
    compromise at which servos of such stiffness come to rest. Limits, contacts and joint friction
    have no part in it: against those a motor pushes as hard as it can.

    Args:
        p: The problem with its weights; b is changed in place.
        C: (rows, nv) whitened rows without what the constraints forbid.
        motors: Rows of motors, which come first.
    """
    largest, count = 0.0, 0
    for k in range(C.shape[1]):
        largest = max(largest, strengthened(p, C, k, motors))
    for k in range(C.shape[1]):
        before = strengthened(p, C, k, motors)
        if count == motors or not before > INDEPENDENT * largest:
            continue
        left = before
        for _ in range(2):
            left = leave(p, count, motors)
        if left > INDEPENDENT * largest:
            for i in range(motors):
                p.A[count, i] = p.step[i] / left
            count += 1
    if count == motors:
        return
    for i in range(motors):
        p.step[i] = p.b[i] / math.sqrt(p.weights[i])
        p.best[i] = p.step[i]
    leave(p, count, motors)
    for i in range(motors):
        p.b[i] = (p.best[i] - p.step[i]) * math.sqrt(p.weights[i])


@outlined
def strengthened(p: Mixed, C: Array, k: int, motors: int) -> float:
    """Column k of the rows of motors, times their strengths, into p.step; its length."""
    total = 0.0
    for i in range(motors):
        p.step[i] = C[i, k] / math.sqrt(p.weights[i])
        total += p.step[i] * p.step[i]
    return math.sqrt(total)


@outlined
def leave(p: Mixed, count: int, motors: int) -> float:
    """Take from p.step what lies along the first rows of p.A; the length of what is left."""
    for j in range(count):
        along = 0.0
        for i in range(motors):
            along += p.A[j, i] * p.step[i]
        for i in range(motors):
            p.step[i] -= along * p.A[j, i]
    total = 0.0
    for i in range(motors):
        total += p.step[i] * p.step[i]
    return math.sqrt(total)
