"""Fixed steps that end or start on a singular position, done in parts.

There nothing tells the lost direction from what the stages are off the loops: a step that ends at
a distance s of it (weakest over strongest row) is off by what its stages are, over s, and one that
starts there misses a row for a stage. Both go with high powers of the length. So such a step ends
or starts with a short part, next to which parts grow by fours. Times of outputs stay.
"""

from bulletbridge.formulations.arrays import (
    DOP8,
    EULER,
    OF_THE_WHOLE,
    RK4,
    Arrays,
    Control,
    Factors,
)
from bulletbridge.numerics.jit import helper
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.explicit import later_stages
from bulletbridge.simulation.stages import distance

LANDING = 1e-3
"""Weakest row over the strongest, relative to the largest one met, below which a sub-step is taken
again, shorter: better to step over that position, since accelerations there are those without the
constraint, or made of round-off."""
NEAREST = 1.0 / 64.0
"""Of a fixed step that ends or starts on such a position: its last or first part."""
CLOSE = 16.0
"""Times the pace, sub-steps next to such a position that are shorter than so many ``LANDING`` are
Runge-Kutta's: its few stages are good enough for their length, and not amplified. Those of an
implicit method are as short as ``NEAREST`` wherever a stage is ``NEAR_SINGULAR``: its iteration
does not contract there, whatever the length, as what its derivatives change by goes with the
inverse square of the distance."""


@helper
def explicit_stages(
    a: Arrays,
    stage: Factors,
    t: float,
    q: Array,
    v: Array,
    targets: Array,
    tau: Array,
    first: int,
    short: bool,
) -> tuple[float, bool]:
    """All stages but the first, Runge-Kutta's if short, or if the method is implicit.

    Returns:
        The smallest margin of them, and whether the last one is at the end.
    """
    c = a.control
    method = c.integrator
    if short:
        c.integrator = RK4
    weakest = later_stages(a, stage, t, q, v, targets, tau, first)
    ends = c.integrator == DOP8
    c.integrator = method
    return weakest, ends


@helper
def is_short(c: Control, whole: float, w: float) -> bool:
    """Whether a sub-step of a step of ``whole`` [s] is short enough for Runge-Kutta's.

    w [1/s] is the pace, which may be anything on a singular position.
    """
    return c.dt < 4.0 * NEAREST * whole or (c.dt < whole and c.dt * w < CLOSE * LANDING)


@helper
def divisible(c: Control, targets: Array, tau: Array) -> bool:
    """Whether a fixed step may be done in parts: nothing stands in tables for its times alone.

    Euler's needs none, as it takes no curvature, and would lose its rhythm.
    """
    fixed = not c.controlled and c.integrator != EULER
    return fixed and len(targets) == 1 and len(tau) == 1


@helper
def on_singular(c: Control) -> int:
    """1 if the last factors are those of a position to step over."""
    here = distance(c)
    c.clear = max(c.clear, here)
    return 1 if here < LANDING * c.clear else 0


@helper
def longest(c: Control, whole: float, parts: bool) -> float:
    """Of the first sub-step of a step of length ``whole`` [s]; parts: whether there may be any."""
    if parts and c.fresh == OF_THE_WHOLE and on_singular(c):
        return NEAREST * whole
    return whole


@helper
def fixed_length(whole: float, rest: float, landing: int) -> float:
    """Of the next sub-step, ``rest`` [s] before the end of a fixed step, which may be singular."""
    return 0.75 * rest if landing and rest > 1.5 * NEAREST * whole else rest
