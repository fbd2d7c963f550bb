"""Directions in which a state may move on its loops, and coordinates of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bulletbridge.engine.redundancy import column_lengths
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import ModelError
from bulletbridge.formulations.equations import Split
from bulletbridge.formulations.system_dynamics import split_here
from bulletbridge.mechanism.by_joint import rate_names
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.numerics.triangles import solve_triangle
from bulletbridge.system.active_constraints import ASSEMBLED

REACH = 0.05 * (2.0 * ASSEMBLED) ** 0.5
"""Shortest displacement of differences [rad or mechanism lengths]; the longest is twice that.

A displacement x along the loops opens them by x²/2 over the radius of their curvature, and what is
open by less than ``ASSEMBLED`` is closed exactly: for radii down to a hundredth of the mechanism.
Round-off of a step, some 1e-15, then is 1e-11 of a derivative, and what Richardson's extrapolation
leaves, of the order of x to the fourth, less.
"""
DISTINCT = 1e-6
"""Motion of the joints of a choice, relative to that of all, below which others are needed."""


class Point(NamedTuple):
    """A state and the forces that act there: what a derivative is taken at."""

    q: Array
    v: Array
    t: float
    tau: Array


@dataclass(frozen=True)
class Freedoms:
    """Directions that rows leave free, by the rates of as many joints as tell them."""

    rates: Ints  # (f,) numbers of the rates that tell them
    directions: Array  # (nv, f) the direction in which one of them is 1, the others 0
    dual: Array  # (f, nv) what a displacement is, once brought to the nearest admissible one

    def __len__(self) -> int:
        """How many."""
        return len(self.rates)


@dataclass(frozen=True)
class Tangents:
    """The tangent space of the states that satisfy all rows, at one of them."""

    at: Point  # that state
    q: Freedoms  # freedoms of the configuration
    v: Freedoms  # freedoms of the velocity: the same, but where rolls hold velocities alone
    # (nv, fq) how the velocity follows as it is filtered, along the directions of ``q``
    turn: Array
    lengths: Array  # (nv,) one for angles, the mechanism's length for ways

    @property
    def picked(self) -> Ints:
        """(fq + fv,) tangent coordinates that are states of the reduced system."""
        return np.concatenate([self.q.rates, len(self.lengths) + self.v.rates])

    @property
    def moves(self) -> Array:
        """(2 nv, fq + fv) what all coordinates do along the directions, velocities filtered."""
        nv, fq = len(self.lengths), len(self.q)
        found = np.zeros((2 * nv, fq + len(self.v)))
        found[:nv, :fq], found[nv:, fq:] = self.q.directions, self.v.directions
        found[nv:, :fq] = self.turn
        return found

    @property
    def lift(self) -> Array:
        """(2 nv, fq + fv) what all coordinates do as one of the reduced ones moves."""
        found = self.moves
        nv, fq = len(self.lengths), len(self.q)
        found[nv:, :fq] -= self.v.directions @ self.turn[self.v.rates]
        return found

    @property
    def closing(self) -> Array:
        """(2 nv, 2 nv) what becomes of a displaced state that is closed and filtered."""
        return np.asarray(self.moves @ self.dual, np.float64)

    @property
    def dual(self) -> Array:
        """(fq + fv, 2 nv) along which directions a state moves that is displaced and closed."""
        nv, fq = len(self.lengths), len(self.q)
        found = np.zeros((fq + len(self.v), 2 * nv))
        found[:fq, :nv], found[fq:, nv:] = self.q.dual, self.v.dual
        return found


def point_of(solver: Solver) -> Point:
    """Where a solver is, and the forces on its rates."""
    return Point(solver.q.copy(), solver.v.copy(), solver.t, solver.tau[0].copy())


def freedoms_at(
    solver: Solver, chosen: Sequence[str] | None = None
) -> tuple[Freedoms, Freedoms, Array]:
    """Freedoms of the configuration and of the velocity at the state, and lengths (nv,).

    Args:
        solver: Of the kept rows, which its state satisfies.
        chosen: Joints whose rates are to tell them; None for those that tell them best.

    Raises:
        ModelError: Rows are dependent here that are independent elsewhere, or the joints do not
            tell the freedoms.
    """
    rates: Ints | None = None
    if chosen is not None:
        parts = [solver.mechanism.joint(name).v for name in chosen]
        numbers = [k for part in parts for k in range(part.start, part.stop)]
        rates = np.array(numbers, np.int64)
    split, held = split_at(solver, solver.q, solver.t)
    lengths, names = lengths_of(solver), rate_names(solver.mechanism)
    positions = _freedoms(split, held, lengths, rates, names)
    if held == split.rank:
        return positions, positions, lengths
    return positions, _freedoms(split, split.rank, lengths, None, names), lengths


def freedoms_of(solver: Solver, q: Array, t: float, rates: Ints | None = None) -> Freedoms:
    """Freedoms of a closed configuration (nq,), told by the given rates or by the best."""
    split, held = split_at(solver, q, t)
    return _freedoms(split, held, lengths_of(solver), rates, rate_names(solver.mechanism))


def lengths_of(solver: Solver) -> Array:
    """(nv,) one for angles, the mechanism's length for ways."""
    return column_lengths(solver.mechanism, solver.encoded.length)


def split_at(solver: Solver, q: Array, t: float) -> tuple[Split, int]:
    """Velocity space at a closed configuration, and how many directions hold positions.

    Raises:
        ModelError: Rows are dependent here that are independent elsewhere.
    """
    split = split_here(solver, solver.terms(q, np.zeros(solver.mechanism.nv), t))
    cap = int(solver.control[0]["cap"])
    if split.rank < cap:
        raise ModelError(
            f"{cap - split.rank} of {cap} independent rows are dependent at this configuration,"
            " where the mechanism is singular: it has no tangents there; move it away from there"
            " first"
        )
    return split, int(np.count_nonzero(solver.rows[0]["level"][split.kept] == 0))


def _freedoms(
    split: Split, rank: int, lengths: Array, rates: Ints | None, names: Sequence[str]
) -> Freedoms:
    """Freedoms that the first ``rank`` directions of a split leave."""
    from scipy.linalg import qr

    nv = len(lengths)
    whole, _ = np.linalg.qr(split.Q[:rank].T, mode="complete")
    free = whole[:, rank:]
    basis = split.unwhiten(free)
    even, _ = np.linalg.qr(basis / lengths[:, None])  # in which no body counts for its mass
    _, pivots = qr(even.T, mode="r", pivoting=True)
    best: Ints = np.sort(pivots[: nv - rank]).astype(np.int64)
    told = best if rates is None else rates
    weakest = np.linalg.svd(even[told], compute_uv=False).min(initial=1.0)
    if len(told) != nv - rank or weakest < DISTINCT:
        given, known = (", ".join(names[int(k)] for k in these) for these in (told, best))
        raise ModelError(
            f"the rates of {given or 'no joint'} do not tell the {nv - rank} freedoms here; name"
            f" joints that do, as {known}"
        )
    square = basis[told]
    directions = np.asarray(np.linalg.solve(square.T, basis.T).T, np.float64)
    left = free.T
    if 0 < rank < split.rank:
        left = left + left @ _of_rates(split, rank) @ split.Q[:rank]
    return Freedoms(told, directions, np.asarray(square @ (left @ split.L), np.float64))


def _of_rates(split: Split, rank: int) -> Array:
    """How rows of rates (nv, rank) stay satisfied: what rolls is closed as it rolls."""
    rolls = solve_triangle(split.R[rank:, rank:], split.R[rank:, :rank])
    return np.asarray(split.Q[rank:].T @ rolls, np.float64)


def close_back(split: Split, rank: int, x: Array) -> Array:
    """Gradient x (nv,) by displacements that rows have brought to the nearest admissible ones.

    That is ``directions`` times ``dual`` of what the first ``rank`` rows leave free, transposed.
    """
    Q, y = split.Q[:rank], split.whiten_force(x)
    y = y - Q.T @ (Q @ y)
    if 0 < rank < split.rank:
        y = y + Q.T @ (_of_rates(split, rank).T @ y)
    return np.asarray(split.L.T @ y, np.float64)
