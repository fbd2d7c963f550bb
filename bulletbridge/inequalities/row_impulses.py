"""What the rows of rigid constraints supply in a step with inequalities, to be held to limits."""

from collections.abc import Callable
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.constraints.records import ForceLimit
from bulletbridge.engine.dense import add_row_multipliers, applied_forces
from bulletbridge.engine.records import ACCELERATION, RIGHT_SIDE, Arrays, Factors
from bulletbridge.numerics.projection import add_row, inner, whiten_force, whiten_velocity
from bulletbridge.numerics.records import Array, Records


@helper
def any_holds(force_limits: Records[ForceLimit]) -> bool:
    """Whether any constraint with a force limit is among the rigid ones."""
    for i in range(len(force_limits)):
        if force_limits[i].holds != 0:
            return True
    return False


@outlined
def supply_against_forces(
    a: Arrays, f: Factors, q: Array, v: Array, tau: Array, impulses: Array
) -> None:
    """Impulses (nc,) by which rows keep forces from what they forbid, in place of others."""
    push, y = a.vectors[ACCELERATION, : len(v)], a.vectors[RIGHT_SIDE]
    for i in range(len(impulses)):
        impulses[i] = 0.0
    applied_forces(a, q, v, tau, push)
    whiten_force(f.L, push, f.first)
    for i in range(a.control.filter_rank):
        y[i] = -a.control.dt * inner(f.Y, i, push)
    add_row_multipliers(f, a.control.filter_rank, 1.0, y, impulses)


@outlined
def supply_against_impulses(
    a: Arrays, f: Factors, raw: Array, x: Array, n: int, impulses: Array
) -> None:
    """Add those by which rows keep n inequality rows ``raw`` (n, nv) from the same."""
    push, y = a.vectors[ACCELERATION, : f.Y.shape[1]], a.vectors[RIGHT_SIDE]
    for k in range(len(push)):
        push[k] = 0.0
    for i in range(n):
        add_row(push, x[i], raw, i)
    whiten_force(f.L, push, f.first)
    for i in range(a.control.filter_rank):
        y[i] = -inner(f.Y, i, push)
    add_row_multipliers(f, a.control.filter_rank, 1.0, y, impulses)


@outlined
def supply_change(a: Arrays, f: Factors, before: Array, after: Array, impulses: Array) -> None:
    """Add those that changed velocities, with the factors at hand."""
    change, y = a.vectors[ACCELERATION, : len(after)], a.vectors[RIGHT_SIDE]
    for k in range(len(after)):
        change[k] = after[k] - before[k]
    whiten_velocity(f.L, change, f.first)
    for i in range(a.control.filter_rank):
        y[i] = inner(f.Y, i, change)
    add_row_multipliers(f, a.control.filter_rank, 1.0, y, impulses)


class Supplies(NamedTuple):
    """What rigid rows supply, by factors of one kind."""

    against_forces: Callable[..., None]
    against_impulses: Callable[..., None]
    change: Callable[..., None]


DENSE_SUPPLIES = Supplies(supply_against_forces, supply_against_impulses, supply_change)


@helper
def supply_nothing(a: Arrays, f: Any, x: Any, y: Any, z: Any, impulses: Array) -> None:
    """Nothing: no rigid row has a limit."""


@helper
def supply_no_change(a: Arrays, f: Any, before: Array, after: Array, impulses: Array) -> None:
    """Likewise."""


NO_SUPPLIES = Supplies(supply_nothing, supply_nothing, supply_no_change)
