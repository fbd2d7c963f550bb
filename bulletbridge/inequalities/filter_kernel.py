"""The compiled filter; a kernel of its own, since stepping does without it."""

from typing import Any

from bulletbridge.compilation.jit import call_stored, caller, kernel
from bulletbridge.constraints.records import Coupling, Loop, Term
from bulletbridge.engine.dense import set_implicit_horizon
from bulletbridge.engine.records import DONE, Arrays, Control, Factors, Instant
from bulletbridge.inequalities.state_filter import filter_state
from bulletbridge.inequalities.sticking import StickingPoints
from bulletbridge.mechanism.records import (
    Axis,
    Beam,
    Body,
    Effort,
    Pose,
    Station,
    StickingPoint,
)
from bulletbridge.numerics.records import Array, Ints, Records
from bulletbridge.numerics.spatial import copy_into


@kernel
def run_filter(
    bodies: Records[Body],
    beams: Records[Beam],
    stations: Records[Station],
    efforts: Records[Effort],
    poses: Records[Pose],
    axes: Records[Axis],
    loops: Records[Loop],
    couplings: Records[Coupling],
    terms: Records[Term],
    user_jacobian: Array,
    rows: Array,
    L: Array,
    Y: Array,
    R: Array,
    vectors: Array,
    state: Array,
    control: Records[Control],
    sticking_points: Records[StickingPoint],
    sticking_rows: Array,
    P: Array,
    S: Array,
    T: Array,
    values: Array,
    multipliers: Array,
    points: Array,
    targets: Array,
    before: Array,
    numbers: Array,
    count: int,
    free: int,
) -> int:
    """Correct and filter what is found one step later; return why that failed, or DONE.

    The arrays up to control are those of ``step_kernel.run``; the state becomes what is found, or
    stays if that fails. sticking_points: the first ``count`` of them. sticking_rows (2, rows).
    multipliers (2, nc) and points (2, rows) receive the impulses; see
    ``inequalities.state_filter``. targets (1, targets). before: scratch like state. numbers
    (nq + nv,): q and v as they are found, and then as they are filtered. free: whether nothing
    outside holds the bodies.
    """
    nv, nq = len(axes), len(state) - len(axes) - 1
    c = control[0]
    copy_into(before, state)
    for k in range(nq + nv):
        state[k] = numbers[k]
    state[nq + nv] += c.dt
    a = Arrays(
        bodies,
        beams,
        stations,
        efforts,
        poses,
        axes,
        loops,
        couplings,
        terms,
        user_jacobian,
        rows[2],
        vectors,
        c,
    )
    set_implicit_horizon(a, 0.0)  # an impulse leaves no time for springs to give way
    f = Factors(L[0], Y[0], R[0], rows[0])
    h = StickingPoints(sticking_points[:count], sticking_rows[0], sticking_rows[1], P, S, T, values)
    for n in range(2):
        for i in range(multipliers.shape[1]):
            multipliers[n, i] = 0.0
        for i in range(3 * count):
            points[n, i] = 0.0
    moment = Instant(state[nq + nv], targets[0])
    filter_state(a, f, h, moment, state[:nq], state[nq : nq + nv], multipliers, points, 0.0, free)
    if c.failure != DONE:
        copy_into(state, before)
        c.factored = 0
        return c.failure
    for k in range(nq + nv):
        numbers[k] = state[k]
    return DONE


@caller
def run_filters(calls: Any, starts: Ints, numbers: Array, orders: Ints, failures: Ints) -> int:
    """Run the filters of several systems, one after the other; return how many failed.

    calls (n,): ``run_filter`` with the arrays of each, stored. starts (n + 1,): where the numbers
    of each begin. orders (n, 2): how many points of each stick, and whether it is free. failures
    (n,) receives why each failed, or DONE.
    """
    failed = 0
    for i in range(len(calls)):
        own = numbers[starts[i] : starts[i + 1]]
        failures[i] = call_stored(calls[i : i + 1], (own, orders[i, 0], orders[i, 1]))
        if failures[i] != DONE:
            failed += 1
    return failed
