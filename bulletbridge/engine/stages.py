"""Parts common to the stages of all integrators: prescribed motions, units of errors."""

import math
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import bundling, call_back, helper
from bulletbridge.engine.backend import Stages
from bulletbridge.engine.records import SCRIPT_PHASE, Arrays, Control, Instant
from bulletbridge.mechanism.records import BEAM, FREE, PRISMATIC
from bulletbridge.numerics.records import Array

AT_START, AT_MIDDLE, AT_END = range(3)
"""Lines of what drives a sub-step."""


class SubStep(NamedTuple):
    """When a sub-step starts, how fast things go, and what drives it."""

    t: float  # its start [s]
    pace: float  # see ``pace`` [1/s]
    # prescribed motions at its start, middle and end, in lines from ``first`` on; those beyond the
    # last line are that
    targets: Array
    tau: Array  # (lines, nv) forces there, from the first line on, likewise
    first: int  # line of the targets at its start


@bundling
def instant_of(part: SubStep, time: float, line: int) -> Instant:
    """What is prescribed at a time [s] of a sub-step, next to one of its lines."""
    return Instant(time, part.targets[min(part.first + line, len(part.targets) - 1)])


@bundling
def forces_of(part: SubStep, line: int) -> Array:
    """Forces (nv,) of one of its lines."""
    return part.tau[min(line, len(part.tau) - 1)]


@helper
def prescribe(a: Arrays, t: float) -> None:
    """Let Python put the prescribed motions and forces of time t where the kernel reads them."""
    a.control.t = t
    if a.control.scripted:
        call_back(a.control.callback, SCRIPT_PHASE)


@helper
def distance(c: Control) -> float:
    """How far the last factors are from a singular position: weakest row over the strongest."""
    return c.margin if c.filter_rank == c.cap else 0.0


@helper
def unit_of(a: Arrays, k: int) -> float:
    """What rates and positions of axis k are measured by: a radian, or the mechanism's length."""
    body = a.bodies[a.axes[k].body]
    along = (
        body.joint == PRISMATIC or body.joint == BEAM or (body.joint == FREE and k >= body.v + 3)
    )
    return a.control.length if along else 1.0


@helper
def pace(a: Arrays, v: Array, vdot: Array) -> float:
    """How fast things go [1/s]: the largest rate, or root of an acceleration, in units an axis."""
    most = 0.0
    for k in range(len(v)):
        unit = unit_of(a, k)
        most = max(most, v[k] * v[k] / (unit * unit), abs(vdot[k]) / unit)
    return math.sqrt(most)


@helper
def tolerated(a: Arrays, k: int, level: int, w: float) -> float:
    """Error that a sub-step may make in the position (level 0) or the rate (1) of axis k.

    atol + rtol units for positions and, with w [1/s] from ``pace``, atol + rtol w units for rates.
    """
    unit = unit_of(a, k) * (w if level else 1.0)
    return a.control.atol + a.control.rtol * unit


@helper
def put_record(line: Array, state: Array, c: Control) -> None:
    """Keep a state and how it was reached."""
    for j in range(len(state)):
        line[j] = state[j]
    line[len(state)] = c.rank
    line[len(state) + 1] = c.margin
    line[len(state) + 2] = c.correction_passes


@helper
def no_stages(*arguments: Any) -> tuple[float, float]:
    """None: for a kernel without explicit methods of several stages, or without implicit ones."""
    return math.inf, 1.0


NO_STAGES = Stages(no_stages, no_stages)
"""Those of a kernel that knows methods of one stage alone."""
