"""The compiled filter; a kernel of its own, since stepping does without it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import call_stored, caller, helper, kernel
from bulletbridge.engine.backend import KktBackend
from bulletbridge.engine.dense import set_implicit_horizon
from bulletbridge.engine.dense_backend import DENSE
from bulletbridge.engine.records import (
    DONE,
    NOT_FACTORED,
    START_V,
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


def finding(backend: KktBackend, filter_state: Callable[..., None]) -> Callable[..., int]:
    """The helper that filters what is found with factors of one kind.

    numba resolves the functions that it closes over when it compiles it.
    """
    factored, factor_at = backend.factored, backend.factor_at

    @helper
    def filter_found(
        arrays: SystemArrays, f: Any, h: Any, room: FilterRoom, numbers: Array, free: int, led: int
    ) -> int:
        """Make a state of what is found one step later and filter it, or take it back."""
        a, nv, n = arrays_of(arrays), len(arrays.axes), len(numbers)
        state, nq, c = arrays.state, n - nv, a.control
        copy_into(room.before, state)
        for k in range(n):
            state[k] = numbers[k]
        state[n] += c.dt
        copy_into(a.vectors[START_V, :nv], room.before[nq:n])
        # an impulse leaves no time for springs to give way
        set_implicit_horizon(a, 0.0)
        forget_impulses(room.holding)
        c.failure = DONE
        if led == 0 or c.factored != factored:
            c.factored = NOT_FACTORED
        now, share = Instant(state[n], room.targets[0]), 1.0 / c.dt if led > 0 else 0.0
        if share > 0.0 and c.factored != factored:
            factor_at(a, f, now, room.before[:nq], room.before[nq:n])
            c.factored = factored
        if c.failure == DONE:
            filter_state(a, f, h, now, state[:nq], state[nq:n], share, free)
        if c.failure != DONE:
            copy_into(state, room.before)
            c.factored = NOT_FACTORED
            return c.failure
        for k in range(n):
            numbers[k] = state[k]
        return DONE

    return filter_found


filter_found = finding(DENSE, filter_state)


@kernel
def run_filter(
    arrays: SystemArrays, room: FilterRoom, numbers: Array, count: int, free: int, led: int
) -> int:
    """Correct and filter what is found one step later; return why that failed, or DONE.

    The state becomes what is found, or stays if that fails. numbers (nq + nv,): q and v as they
    are found, and then as they are filtered. count: points that stick, the first ones. free:
    whether nothing outside holds the bodies. led: whether a step from the state has led there.
    """
    h = sticking_points_of(room.holding, count)
    return filter_found(arrays, dense_factors(arrays, 0), h, room, numbers, free, led)


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
