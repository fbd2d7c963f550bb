"""Derivatives of how loops are closed while contacts stick: by the equations where that ends.

The configuration q to which a step leads is closed by c, and rates by w, each the least in the
metric of M that loops ask for, while the points S that stick do not move:

    M c = Jᵀ ν + Sᵀ σ,  g(q + c) = 0,  S c = 0        at q
    M w = Jᵀ μ + Sᵀ κ,  J (v + c/dt + w) = 0,  S w = 0        at q + c

with terms of the size of c left out in what is of its size itself. Rows of S that take more than
the mass of the whole mechanism to hold, beside the loops and longer ones, are left out, as
``sticking.factor_sticking`` does: of two feet, the line between them may be one.
"""

from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.engine.records import CORRECTION
from bulletbridge.engine.step_differentiator import StepDifferentiator
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.inequalities.contact_variations import RowsAt
from bulletbridge.inequalities.held_closing_kernel import (
    OTHERS,
    HeldClosing,
    HeldPlace,
    LedToClosing,
    Sides,
    closes_plainly,
    differentiate_held,
)
from bulletbridge.mechanism.records import CONTACT_POINT, STICKING_POINT
from bulletbridge.numerics.records import Array


class Ended(NamedTuple):
    """Where a step has led, and how its loops were closed."""

    state: Array  # (nq + nv + 1,) q, v, t
    q: Array  # (nq,)
    v: Array  # (nv,)
    correction: Array  # (nv,) by which they were closed
    dt: float  # [s]
    plainly: bool  # whether that is all: nothing was driven, rolled or guarded


def ended_at(solver: Solver) -> Ended:
    """Where a solver has been led by its last step."""
    nv, dt = len(solver.v), float(solver.control[0]["dt"])
    with announce_compilation(closes_plainly):
        plainly = closes_plainly(solver.rows[0], solver.control) and not solver.encoded.motions
    state, correction = solver.state.copy(), solver.vectors[CORRECTION, :nv].copy()
    return Ended(state, state[: -nv - 1], state[-nv - 1 : -1], correction, dt, plainly)


def room_of_closing(solver: Solver, points: int) -> HeldClosing:
    """Room for a closing in which so many points stick, by all 3 nv changes of a step."""
    nv, nq, nc, n = len(solver.v), len(solver.q), solver.encoded.nc, 3 * points
    m = 3 * nv
    places = [
        HeldPlace(
            np.zeros(nq), np.zeros(nv), np.zeros(nv), np.zeros(points, CONTACT_POINT),
            np.zeros((n, nv)), np.zeros((n, nv)), np.zeros((nv, n, nv)), np.zeros((3, n, nv)),
            np.zeros((nv, nv)), np.zeros((nc + n, nv)), np.zeros(nc + n), np.zeros((nv, nv)),
            np.zeros((nc, nv)), np.arange(n), np.array([nc, n]),
        )
        for _ in range(2)
    ]  # fmt: skip
    sides = [
        Sides(
            np.zeros((nc + n, nv)), np.zeros((nv, nc + n)), np.zeros((nc + n, nc + n)),
            np.zeros(nc + n), np.zeros((nv, columns)), np.zeros((nc + n, columns)),
            np.zeros(nc + n), np.zeros(nc + n, np.int64),
        )
        for columns in (m, 1)
    ]  # fmt: skip
    mass, dt = float(solver.bodies["mass"][1:].sum()), float(solver.control[0]["dt"])
    return HeldClosing(
        places[0], places[1], np.zeros((nv, m)), np.zeros((nv, m)), np.zeros((n, m)), sides[0],
        sides[1], np.zeros((nv, 3)), np.zeros((3, nv)), solver.still, np.zeros(1, STICKING_POINT),
        mass, dt,
    )  # fmt: skip


def held_closing(
    differentiator: StepDifferentiator, led: LedToClosing, closing: HeldClosing, rows: RowsAt
) -> Array:
    """Changes (2 nv, 3 nv) of configuration and rates at the end of a step in which points stick.

    Args:
        differentiator: Of the solver of the step.
        led: How that led to where loops were closed.
        closing: Room, with points that stick.
        rows: Rows of such points.

    Raises:
        UnsupportedError: Loops were not closed by these equations alone.
    """
    differentiator.begin(by_euler=True)
    if differentiator.held is None or differentiator.held[0] is not rows:
        fixed = differentiator.closing_call().block, *differentiator.arrays, rows.tree
        with announce_compilation(differentiate_held):
            call = StoredCall(differentiate_held, fixed, (led, closing)).call
        differentiator.held = rows, call
    failure = differentiator.held[1]((led, closing))
    differentiator.raise_interruption()
    if failure:
        why = "contacts that stick give way while loops are closed"
        why = "other rows are independent where the step ends" if failure == OTHERS else why
        raise UnsupportedError(f"{why}; use central differences of step()")
    return np.vstack([closing.q_by_all, closing.v_by_all])
