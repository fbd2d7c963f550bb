"""The compiled filter; a kernel of its own, since stepping does without it."""

from typing import Any, NamedTuple

from bulletbridge.compilation.jit import call_stored, caller, helper, kernel
from bulletbridge.engine.dense import factor_at, set_implicit_horizon
from bulletbridge.engine.records import (
    BY_DENSE,
    DONE,
    NOT_FACTORED,
    Arrays,
    Instant,
    SystemArrays,
    arrays_of,
    dense_factors,
)
from bulletbridge.inequalities.state_filter import filter_state
from bulletbridge.inequalities.sticking import FilterArrays, forget_impulses, sticking_points_of
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.numerics.spatial import copy_into


class FilterRoom(NamedTuple):
    """What a filter has of its own.

    Attributes:
        holding: Points that stick, and the impulses, see ``inequalities.state_filter``.
        targets: (1, targets) what motions prescribe at the end of the step.
        before: Like state: the state before, which comes back if the filter fails.
    """

    holding: FilterArrays
    targets: Array
    before: Array


@kernel
def run_filter(
    arrays: SystemArrays, room: FilterRoom, numbers: Array, count: int, free: int, led: int
) -> int:
    """Correct and filter what is found one step later; return why that failed, or DONE.

    The state becomes what is found, or stays if that fails. numbers (nq + nv,): q and v as they
    are found, and then as they are filtered. count: points that stick, the first ones. free:
    whether nothing outside holds the bodies. led: whether a step from the state has led there.
    """
    take_found(arrays, room, numbers)
    a, nv = arrays_of(arrays), len(arrays.axes)
    f, h = dense_factors(arrays, 0), sticking_points_of(room.holding, count)
    state, nq = arrays.state, len(numbers) - nv
    now = Instant(state[nq + nv], room.targets[0])
    share = share_of_correction(a, led, BY_DENSE)
    if share > 0.0 and a.control.factored != BY_DENSE:
        factor_at(a, f, now, room.before[:nq], room.before[nq : nq + nv])
        a.control.factored = BY_DENSE
    if a.control.failure == DONE:
        filter_state(a, f, h, now, state[:nq], state[nq : nq + nv], share, free)
    return give_filtered(arrays, room, numbers)


@helper
def take_found(arrays: SystemArrays, room: FilterRoom, numbers: Array) -> None:
    """Make a state of what is found one step later."""
    state, n = arrays.state, len(numbers)
    copy_into(room.before, state)
    for k in range(n):
        state[k] = numbers[k]
    state[n] += arrays.control[0].dt
    # an impulse leaves no time for springs to give way
    set_implicit_horizon(arrays_of(arrays), 0.0)
    forget_impulses(room.holding)


@helper
def share_of_correction(a: Arrays, led: int, factored: int) -> float:
    """How much of a correction goes into the velocity [1/s]; factors of no use are forgotten.

    Those of moving frames are none, since these are elsewhere in every step.
    """
    c = a.control
    c.failure = DONE
    if led == 0 or c.factored != factored or c.driven > 0:
        c.factored = NOT_FACTORED
    return 1.0 / c.dt if led > 0 else 0.0


@helper
def give_filtered(arrays: SystemArrays, room: FilterRoom, numbers: Array) -> int:
    """Hand over the state that was filtered, or take it back; return why, or DONE."""
    state, c = arrays.state, arrays.control[0]
    if c.failure != DONE:
        copy_into(state, room.before)
        c.factored = NOT_FACTORED
        return c.failure
    for k in range(len(numbers)):
        numbers[k] = state[k]
    return DONE


@caller
def run_filters(calls: Any, starts: Ints, numbers: Array, orders: Ints, failures: Ints) -> int:
    """Run the filters of several systems, one after the other; return how many failed.

    calls (n,): ``run_filter`` with the arrays of each, stored. starts (n + 1,): where the numbers
    of each begin. orders (n, 3): how many points of each stick, whether it is free, and whether a
    step has led there. failures (n,) receives why each failed, or DONE.
    """
    failed = 0
    for i in range(len(calls)):
        own = numbers[starts[i] : starts[i + 1]]
        failures[i] = call_stored(calls[i : i + 1], (own, orders[i, 0], orders[i, 1], orders[i, 2]))
        if failures[i] != DONE:
            failed += 1
    return failed
