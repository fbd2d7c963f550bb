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
from bulletbridge.inequalities.active_rows import WEAKEST
from bulletbridge.inequalities.contact_variations import RowsAt
from bulletbridge.inequalities.held_closing_kernel import (
    OTHERS,
    HeldClosing,
    HeldPlace,
    Sides,
    differentiate_held,
)
from bulletbridge.numerics.records import Array


class Sticking(NamedTuple):
    """Points that stick, as a step was led to them.

    Attributes:
        points: (n,) of dtype ``CONTACT_POINT``.
        by_all: (n, 3, m) what their places change by.
        rows: Rows of such points.
    """

    points: np.ndarray
    by_all: Array
    rows: RowsAt


class Led(NamedTuple):
    """Where a step leads before loops are closed.

    Attributes:
        q: (nq,)
        v: (nv,)
        q_by_all: (nv, m) what these change by.
        v_by_all: (nv, m)
    """

    q: Array
    v: Array
    q_by_all: Array
    v_by_all: Array


class Ended(NamedTuple):
    """Where a step has led, and how its loops were closed.

    Attributes:
        state: (nq + nv + 1,) q, v, t.
        q: (nq,)
        v: (nv,)
        correction: (nv,) by which they were closed.
        dt: [s]
        plainly: Whether that is all: nothing was driven, rolled or guarded.
    """

    state: Array
    q: Array
    v: Array
    correction: Array
    dt: float
    plainly: bool


def ended_at(solver: Solver) -> Ended:
    """Where a solver has been led by its last step."""
    c, nv, plainly = solver.control[0], len(solver.v), True
    if solver.encoded.nc:
        rows = solver.rows[0]
        rolls = rows["level"].any() and np.any(rows["level"][rows["pivot"][: int(c["rank"])]])
        plainly = not (solver.encoded.motions or rolls or c["guarded"])
    state, correction = solver.state.copy(), solver.vectors[CORRECTION, :nv].copy()
    return Ended(state, state[: -nv - 1], state[-nv - 1 : -1], correction, float(c["dt"]), plainly)


def held_closing(
    differentiator: StepDifferentiator, led: Led, after: Ended, sticking: Sticking
) -> tuple[Array, Array]:
    """Changes (nv, m) of configuration and rates at the end of a step in which points stick.

    Args:
        differentiator: Of the solver of the step.
        led: Where that leads before loops are closed.
        after: Where it has led.
        sticking: Points that stick.

    Raises:
        UnsupportedError: Loops were not closed by these equations alone, or are driven.
    """
    if not after.plainly:
        raise UnsupportedError(
            "contacts stick while driven or rolling constraints are closed, or loops beside a"
            " singular position; use central differences of step()"
        )
    solver, c, dt = differentiator.solver, after.correction, after.dt
    (nv, m), nc, n = led.q_by_all.shape, solver.encoded.nc, 3 * len(sticking.points)
    places = [
        HeldPlace(
            q, w, v, sticking.points.copy(), np.zeros((n, nv)), np.zeros((n, nv)),
            np.zeros((nv, n, nv)), np.zeros((3, n, nv)), np.zeros((nv, nv)),
            np.zeros((nc + n, nv)), np.zeros(nc + n), np.zeros((nv, nv)), np.zeros((nc, nv)),
            np.arange(n), np.array([nc, n]),
        )
        for q, w, v in ((led.q, c, led.v), (after.q, after.v - led.v - c / dt, after.v))
    ]  # fmt: skip
    sides = [
        Sides(
            np.zeros((nv, nv)), np.zeros(nv, np.int64), np.zeros((nc + n, nv)),
            np.zeros((nv, nc + n)), np.zeros((nc + n, nc + n)), np.zeros(nc + n),
            np.zeros((nv, columns)), np.zeros((nc + n, columns)), np.zeros(nc + n),
            np.zeros(nc + n, np.int64),
        )
        for columns in (m, 1)
    ]  # fmt: skip
    mass = float(solver.bodies["mass"][1:].sum())
    closing = HeldClosing(
        places[0], places[1], led.q_by_all.copy(), led.v_by_all.copy(),
        sticking.by_all.reshape(n, m).copy(), sides[0], sides[1], np.zeros((nv, 3)),
        np.zeros((3, nv)), solver.still, mass, dt,
    )  # fmt: skip
    differentiator.begin(by_euler=True)
    rows = sticking.rows
    if differentiator.held is None or differentiator.held[0] is not rows:
        fixed = differentiator.closing_call().block, *differentiator.arrays, rows.tree
        with announce_compilation(differentiate_held):
            call = StoredCall(differentiate_held, fixed, (closing,)).call
        differentiator.held = rows, call
    failure = differentiator.held[1]((closing,))
    differentiator.raise_interruption()
    if failure:
        why = "contacts that stick give way while loops are closed"
        why = "other rows are independent where the step ends" if failure == OTHERS else why
        raise UnsupportedError(f"{why}; use central differences of step()")
    return closing.q_by_all, closing.v_by_all


def least_squares(A: Array, b: Array) -> Array:
    """The shortest x with A x = b, as well as can be."""
    return np.asarray(np.linalg.pinv(A, rcond=WEAKEST) @ b, np.float64)
