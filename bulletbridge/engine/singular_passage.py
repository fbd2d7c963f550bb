"""Fixed steps that end or start on a singular position, done in parts.

There nothing tells the lost direction from what the stages are off the loops: a step that ends at
a distance s of it (weakest over strongest row) is off by what its stages are, over s, and one that
starts there misses a row for a stage. Both go with high powers of the length. So such a step ends
or starts with two short parts, next to which parts double. Times of outputs stay.
"""

from bulletbridge.compilation.jit import helper
from bulletbridge.engine.records import EULER, MODIFIED_EULER, Arrays, Control
from bulletbridge.engine.stages import distance, unit_of
from bulletbridge.numerics.records import Array

LANDING = 1e-3
"""Weakest row over the strongest, relative to the largest one met, below which a sub-step is taken
again, shorter: better to step over that position, since accelerations there are those without the
constraint, or made of round-off."""
NEAREST = 1.0 / 64.0
"""Share of a fixed step that ends or starts on such a position: its last or first part.

The shortest parts are Runge-Kutta's: its few stages are good enough for their length, and not
amplified. So are those of an implicit method wherever a stage is ``NEAR_SINGULAR``: its iteration
does not contract there, whatever the length, as what its derivatives change by goes with the
inverse square of the distance."""


@helper
def divisible(c: Control, targets: Array, tau: Array) -> bool:
    """Whether a fixed step may be done in parts: nothing stands in tables for its times alone.

    Euler's needs none, as it takes no curvature, and would lose its rhythm. A modified integration
    is left as it was published.
    """
    fixed = not c.controlled and c.integrator != EULER and c.integrator < MODIFIED_EULER
    return fixed and len(targets) == 1 and len(tau) == 1


@helper
def on_singular(a: Arrays, v: Array, whole: float) -> bool:
    """Whether the last factors are those of a position to step over by parts of ``whole`` [s].

    It is then less than half of the shortest part away, at these rates.
    """
    c, here, rate = a.control, distance(a.control), 0.0
    c.clear = max(c.clear, here)
    if here >= LANDING * c.clear:
        return False
    for k in range(len(v)):
        rate = max(rate, abs(v[k]) / unit_of(a, k))
    return here < c.clear * min(LANDING, 0.5 * NEAREST * whole * rate)


@helper
def longest(a: Arrays, v: Array, whole: float, parts: bool, factored: bool) -> float:
    """Length of the first sub-step of a step of length ``whole`` [s].

    Args:
        a: The system.
        v: (nv,)
        whole: [s]
        parts: Whether there may be any.
        factored: Whether the last factors are those at the start.
    """
    if parts and factored and on_singular(a, v, whole):
        return NEAREST * whole
    return whole


@helper
def fixed_length(whole: float, rest: float, landing: bool) -> float:
    """Length of the next sub-step, ``rest`` [s] before the end of a step that may be singular."""
    return 0.5 * rest if landing and rest > 1.5 * NEAREST * whole else rest
