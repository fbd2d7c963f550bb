"""Steps of a system that falls into islands, which nothing joins: each by itself, in turn.

Every island has its own slice of every array, so a step costs the sum of theirs.
"""

from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.jit import call_stored, caller, helper
from bulletbridge.compilation.stored_calls import CallsInTurn, put_own_words
from bulletbridge.constraints.records import Loop
from bulletbridge.engine.records import (
    BY_ISLANDS,
    DONE,
    FORCES_PER_STEP,
    TARGETS_PER_STEP,
    Control,
)
from bulletbridge.engine.stages import put_record
from bulletbridge.engine.tasks import STEP
from bulletbridge.numerics.records import Array, Int, Ints, Records, dtype_of
from bulletbridge.numerics.spatial import copy_into


class Island:
    """Where an island's part of each array begins; the part ends where the next island's begins."""

    v: Int  # of its velocities
    q: Int
    state: Int  # of its (q, v, t)


ISLAND = dtype_of(Island)


class Joined(NamedTuple):
    """What has one entry a constraint, a coordinate or a system; of the whole, or of all islands.

    Attributes:
        loops, couplings: Records ``Loop`` and ``Coupling``.
        state: (nq + nv + 1,) q, v, t; of islands one after the other.
        control: (1,) records ``Control``; of islands (n,).
    """

    loops: np.ndarray
    couplings: np.ndarray
    state: Array
    control: np.ndarray


class Layout(NamedTuple):
    """What of the whole stands where among its islands, and scratch.

    Attributes:
        islands: (n + 1,)
        q, v, loops, couplings: Number in the whole of each one in a row.
        pushes: (3 nv,) scratch.
        before: Scratch, as the state of all islands.
        nothing: (0, 0)
    """

    islands: Records[Island]
    q: Ints
    v: Ints
    loops: Ints
    couplings: Ints
    pushes: Array
    before: Array
    nothing: Array


@caller
def run_islands(
    layout: Layout,
    calls: CallsInTurn,
    row: Joined,
    whole: Joined,
    targets: Array,
    tau: Array,
    record: Array,
    steps: int,
) -> int:
    """Advance a whole system by steps; return the failure that stopped it, or DONE.

    calls: of the kernel that steps, with the arrays of each island, stored. row: all islands, one
    after the other. The rest is that of ``step_kernel.run``.
    """
    islands, order_q, order_v, before = layout.islands, layout.q, layout.v, layout.before
    state, pushes, controls = row.state, layout.pushes, row.control
    count, nq, nv = len(islands) - 1, len(order_q), len(order_v)
    c: Control = whole.control[0]
    c.failure, c.done = DONE, 0
    take_over(layout, row, whole)
    for i in range(count):
        take_settings(controls[i], c, BY_ISLANDS)
    gather(islands, state, order_q, order_v, whole.state)
    t0 = whole.state[nq + nv]
    each = TARGETS_PER_STEP[c.integrator]
    lines = FORCES_PER_STEP[c.integrator] if len(tau) > 1 else 1
    every = steps // len(record) if len(record) > 0 else 0
    for n in range(steps):
        copy_into(before, state)
        gather_forces(islands, tau, lines * n, lines, order_v, pushes)
        first = min(each * n, len(targets) - 1)
        for i in range(count):
            a, z = islands[i], islands[i + 1]
            push = pushes[lines * a.v : lines * z.v].reshape((lines, z.v - a.v))
            kind = put_own_words(calls.own, i)
            failure = call_stored(
                calls.blocks[kind : kind + 1], (targets[first:], push, layout.nothing, STEP, 1)
            )
            if failure != DONE:
                copy_into(state, before)
                scatter(islands, state, order_q, order_v, whole.state)
                c.failure, c.factored = failure, 0
                return failure
        whole.state[nq + nv] = t0 + (n + 1) * c.dt
        for i in range(count):
            state[islands[i + 1].state - 1] = whole.state[nq + nv]
        c.done = n + 1
        if every > 0 and (n + 1) % every == 0:
            scatter(islands, state, order_q, order_v, whole.state)
            report(controls, count, c)
            put_record(record[(n + 1) // every - 1], whole.state, c)
    scatter(islands, state, order_q, order_v, whole.state)
    report(controls, count, c)
    c.factored = BY_ISLANDS
    return DONE


@helper
def take_over(layout: Layout, row: Joined, whole: Joined) -> None:
    """Frames that were put elsewhere, and offsets."""
    for k in range(len(layout.loops)):
        take_frame(row.loops[k], whole.loops[int(layout.loops[k])])
    for k in range(len(layout.couplings)):
        row.couplings[k].offset = whole.couplings[int(layout.couplings[k])].offset


@helper
def take_frame(loop: Loop, given: Loop) -> None:
    """Where frame a is."""
    for i in range(3):
        loop.p_a[i], loop.turn[i] = given.p_a[i], given.turn[i]
        for j in range(3):
            loop.R_a[i, j] = given.R_a[i, j]


@helper
def take_settings(c: Control, given: Control, factored: int) -> None:
    """What may change between calls; ``factored`` says that factors of these islands are known."""
    for k in range(3):
        c.gravity[k] = given.gravity[k]
    c.dt, c.integrator, c.implicit = given.dt, given.integrator, given.implicit
    c.directions, c.passes = given.directions, given.passes
    c.controlled, c.rtol, c.atol = given.controlled, given.rtol, given.atol
    c.weighting = given.weighting
    c.recovery, c.energy_budget = given.recovery, given.energy_budget
    c.compliant = given.compliant
    if given.factored != factored:
        c.factored = c.charted = c.charts = c.uncorrected = c.uncorrected_before = 0


@helper
def gather(
    islands: Records[Island], state: Array, order_q: Ints, order_v: Ints, whole: Array
) -> None:
    """State of every island from that of the whole."""
    nq, nv = len(order_q), len(order_v)
    for i in range(len(islands) - 1):
        a, z = islands[i], islands[i + 1]
        shift = a.state - a.q
        for k in range(a.q, z.q):
            state[shift + k] = whole[order_q[k]]
        shift = a.state + z.q - a.q - a.v
        for k in range(a.v, z.v):
            state[shift + k] = whole[nq + order_v[k]]
        state[z.state - 1] = whole[nq + nv]


@helper
def gather_forces(
    islands: Records[Island], tau: Array, first: int, lines: int, order_v: Ints, pushes: Array
) -> None:
    """Forces of one step, from line ``first`` of tau on, island by island."""
    for i in range(len(islands) - 1):
        a, z = islands[i], islands[i + 1]
        for n in range(lines):
            line, shift = min(first + n, len(tau) - 1), lines * a.v + n * (z.v - a.v) - a.v
            for k in range(a.v, z.v):
                pushes[shift + k] = tau[line, order_v[k]]


@helper
def scatter(
    islands: Records[Island], state: Array, order_q: Ints, order_v: Ints, whole: Array
) -> None:
    """State of the whole from that of every island, but for the time."""
    nq = len(order_q)
    for i in range(len(islands) - 1):
        a, z = islands[i], islands[i + 1]
        shift = a.state - a.q
        for k in range(a.q, z.q):
            whole[order_q[k]] = state[shift + k]
        shift = a.state + z.q - a.q - a.v
        for k in range(a.v, z.v):
            whole[nq + order_v[k]] = state[shift + k]


@helper
def report(controls: Records[Control], count: int, c: Control) -> None:
    """What the whole reports of a step, from what its islands do."""
    c.rank, c.filter_rank, c.correction_passes, c.guarded = 0, 0, 0, 0
    c.margin, c.gap, c.taken, c.rejected, c.charts = 1.0, 0.0, 0, 0, 0
    for i in range(count):
        one = controls[i]
        c.rank += one.rank
        c.filter_rank += one.filter_rank
        c.margin = min(c.margin, one.margin)
        c.gap = max(c.gap, one.gap)
        c.correction_passes = max(c.correction_passes, one.correction_passes)
        c.guarded = max(c.guarded, one.guarded)
        c.charts += one.charts
        c.taken = max(c.taken, one.taken)
        c.rejected = max(c.rejected, one.rejected)
