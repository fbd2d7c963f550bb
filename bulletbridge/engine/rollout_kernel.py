"""Worlds one after the other in compiled code, from the closed start to the last record."""

from typing import Any, NamedTuple

import numpy as np

from bulletbridge.compilation.jit import call_stored, caller, helper, take_number
from bulletbridge.engine.records import DONE, FORCES_PER_STEP, Control
from bulletbridge.engine.tasks import PROJECT, STEP
from bulletbridge.numerics.records import Array, Ints, Records

NONE_LEFT, MANY_DONE = -1, -2


class Place(NamedTuple):
    """Where a solver takes states from, and leaves them."""

    state: Array  # (nq + nv + 1) of the solver
    control: Records[Control]  # (1,) of the solver
    targets: np.ndarray  # (1, targets) that stay
    nothing: Array  # (0, 0)


class Worlds(NamedTuple):
    """Worlds of a rollout, what acts on them and what becomes of them.

    Attributes:
        starts: (n, nq + nv + 1) states.
        forces: (n, 1, nv), or (n, steps, nv) to be held over steps.
        pushes: (3 steps, nv) scratch for Runge-Kutta with such forces; each thread has its own.
        table: (n, records, nq + nv + 4); a world that fails leaves its part half written.
        done: (n,) receives the number of steps of worlds that did not fail.
        counter: (1,) worlds that have been taken, by all threads.
    """

    starts: Array
    forces: Array
    pushes: Array
    table: Array
    done: Ints
    counter: Ints


@caller
def roll_worlds(
    run: Any,
    project: Any,
    place: Place,
    worlds: Worlds,
    allowed: float,
    steps: int,
    every: int,
    most: int,
) -> int:
    """Take worlds until one fails: its number; until none is left; or until many are done.

    Args:
        run: The kernel that steps, with the arrays of a solver, stored.
        project: ``step_kernel.run`` likewise.
        place: Of the solver.
        worlds: All of them; those that start open by no more than ``allowed`` are closed.
        allowed: In lengths of the mechanism or radians.
        steps: Of each world.
        every: Of them one is kept.
        most: Steps after which Python is to have a look: whether it is interrupted.
    """
    state, targets, nothing = place.state, place.targets, place.nothing
    starts, pushes, table = worlds.starts, worlds.pushes, worlds.table
    c, left = place.control[0], most
    while left > 0:
        n = take_number(worlds.counter)
        if n >= len(starts):
            return NONE_LEFT
        for k in range(len(state)):
            state[k] = starts[n, k]
        forget(c)
        tau = worlds.forces[n]
        if call_stored(project, (targets, tau, nothing, PROJECT, 0)) != DONE or c.opened > allowed:
            return n
        lines = FORCES_PER_STEP[c.integrator] if len(tau) > 1 else 1
        if lines > 1:
            for i in range(lines * steps):
                for k in range(tau.shape[1]):
                    pushes[i, k] = tau[i // lines, k]
            tau = pushes
        whole = steps - steps % every
        if call_stored(run, (targets, tau, table[n], STEP, whole)) != DONE:
            return n
        if steps > whole:
            rest = tau[min(lines * whole, len(tau) - lines) :]
            if call_stored(run, (targets, rest, nothing, STEP, steps - whole)) != DONE:
                return n
        worlds.done[n] = steps
        left -= steps
    return MANY_DONE


@helper
def forget(c: Control) -> None:
    """What ``Solver.put`` does besides taking the state."""
    c.factored, c.next_dt, c.reach, c.clear, c.slope, c.opened = 0, 0.0, 0.0, 0.0, 0, 0.0
    c.kinetic, c.charted, c.charts, c.uncorrected, c.uncorrected_before = 0.0, 0, 0, 0, 0
