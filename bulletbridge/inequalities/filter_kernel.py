"""The compiled filter; a kernel of its own, since stepping does without it."""

from typing import Any

from bulletbridge.compilation.jit import call_stored, caller, kernel
from bulletbridge.engine.dense import set_implicit_horizon
from bulletbridge.engine.records import DONE, Instant, SystemArrays, arrays_of, dense_factors
from bulletbridge.inequalities.state_filter import filter_state
from bulletbridge.inequalities.sticking import FilterArrays, forget_impulses, sticking_points_of
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.numerics.spatial import copy_into


@kernel
def run_filter(
    arrays: SystemArrays,
    holding: FilterArrays,
    targets: Array,
    before: Array,
    numbers: Array,
    count: int,
    free: int,
) -> int:
    """Correct and filter what is found one step later; return why that failed, or DONE.

    The state becomes what is found, or stays if that fails. holding: the first ``count`` of its
    points; receives the impulses, see ``inequalities.state_filter``. targets (1, targets). before:
    scratch like state. numbers (nq + nv,): q and v as they are found, and then as they are
    filtered. free: whether nothing outside holds the bodies.
    """
    state, c = arrays.state, arrays.control[0]
    nv, nq = len(arrays.axes), len(state) - len(arrays.axes) - 1
    copy_into(before, state)
    for k in range(nq + nv):
        state[k] = numbers[k]
    state[nq + nv] += c.dt
    a = arrays_of(arrays)
    set_implicit_horizon(a, 0.0)  # an impulse leaves no time for springs to give way
    f, h = dense_factors(arrays, 0), sticking_points_of(holding, count)
    forget_impulses(holding)
    moment = Instant(state[nq + nv], targets[0])
    filter_state(a, f, h, moment, state[:nq], state[nq : nq + nv], 0.0, free)
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
