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

from bulletbridge.engine.records import CORRECTION
from bulletbridge.engine.step_differentiator import Closing, StepDifferentiator
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.inequalities.contact_variations import RowsAt
from bulletbridge.numerics.records import Array, Ints, Mask

WEAKEST = 1e-10
"""Share of the strongest row below which a row follows from others."""
ALONG_X = 0.7
"""Of normals, from which on their first tangent is square to y, as of ``place_points``, not x."""
OFF = 1e-9
"""Share by which what closes loops may be off its equations."""


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
        q: (nq,)
        v: (nv,)
        correction: (nv,) by which they were closed.
        dt: [s]
        plainly: Whether that is all: nothing was driven, rolled or guarded.
    """

    q: Array
    v: Array
    correction: Array
    dt: float
    plainly: bool


def ended_at(solver: Solver) -> Ended:
    """Where a solver has been led by its last step."""
    c, rows = solver.control[0], solver.rows[0]
    rolls = np.any(rows["level"][rows["pivot"][: int(c["rank"])]])
    plainly = not (solver.encoded.motions or rolls or c["guarded"])
    correction = solver.vectors[CORRECTION, : len(solver.v)].copy()
    return Ended(solver.q.copy(), solver.v.copy(), correction, float(c["dt"]), plainly)


class HeldRows:
    """Rows of points that bodies do not move against each other at, fixed in space.

    Args:
        sticking: These, with places at a configuration.
        q: (nq,) that configuration.
        kept: (m,) which of the 3 n rows count; all unless given.

    Attributes:
        S: (m, nv) those that do: along normals and tangents as of ``place_points``.
        kept: (m,)
        of_b: (3 n, nv) what moves the points with body b, along axes of the world.
    """

    def __init__(self, sticking: Sticking, q: Array, kept: Ints | None = None) -> None:
        self._points, self._rows = sticking.points.copy(), sticking.rows
        self._points["gap"] = 0.0
        along, alone = self._points["normal"], self._points.copy()
        steep = np.abs(along[:, :1]) < ALONG_X
        self._first = _cross(along, np.where(steep, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]))
        self._all = self._at(q)
        n, nv = len(self._points), self._all.shape[1]
        self.kept: Ints = np.arange(3 * n) if kept is None else kept
        alone["body_a"] = 0
        of_b = self._rows(q, alone, self._first.copy())[:, :3]
        frames = np.stack([along, self._first, _cross(along, self._first)], axis=1)
        self.of_b = np.einsum("nri,nrj->nij", frames, of_b).reshape(3 * n, nv)
        self._by_q = self._rows.slopes_in_space(q, self._points, self._first)
        by_p = list[Array]()
        for axis in range(3):  # linear in places
            self._points["position"][:, axis] += 1.0
            by_p.append(self._at(q) - self._all)
            self._points["position"][:, axis] -= 1.0
        self._by_p = np.array(by_p)

    def _at(self, q: Array) -> Array:
        return self._rows(q, self._points, self._first)[:, :3].reshape(3 * len(self._points), -1)

    @property
    def S(self) -> Array:
        """Rows that count (m, nv)."""
        return self._all[self.kept]

    def leave_out(self, left: Array, mass: float) -> Mask:
        """Let no rows count that take more than a mass to hold beside longer ones.

        Args:
            left: (m, m) what they answer to forces along them by, beside the loops; is lost.
            mass: Of the whole mechanism.

        Returns:
            Which of them still count (m,).
        """
        picked = np.zeros(len(left), bool)
        while not picked.all():
            longest = int(np.argmax(np.where(picked, 0.0, left.diagonal())))
            if not left[longest, longest] * mass > 1.0:
                break
            picked[longest] = True
            left -= left[:, longest, None] * (left[longest] / left[longest, longest])
        self.kept = self.kept[picked]
        return picked

    def times(self, x: Array, q_by_all: Array, p_by_all: Array) -> Array:
        """What S x changes by (m, ...)."""
        of_places = np.repeat(p_by_all, 3, axis=0)  # (3 n, 3, m)
        by_p = np.einsum("arj,j->ra", self._by_p, x)
        found = (self._by_q @ x).T @ q_by_all + np.einsum("ra,ram->rm", by_p, of_places)
        return np.asarray(found[self.kept], np.float64)

    def transposed(self, f: Array, q_by_all: Array, p_by_all: Array) -> Array:
        """What Sᵀ f changes by (nv, ...), of forces f (m,)."""
        of_places = np.repeat(p_by_all, 3, axis=0)[self.kept]
        by_q = np.einsum("krj,r->jk", self._by_q[:, self.kept], f)
        return by_q @ q_by_all + np.einsum("arj,r,ram->jm", self._by_p[:, self.kept], f, of_places)


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
    dt, c = after.dt, after.correction
    if not after.plainly:
        raise UnsupportedError(
            "contacts stick while driven or rolling constraints are closed, or loops beside a"
            " singular position; use central differences of step()"
        )
    w = after.v - led.v - c / dt
    first, at_end = (sticking.points.copy() for _ in range(2))
    held = HeldRows(sticking._replace(points=first), led.q)
    at_end["position"] += (held.of_b @ c).reshape(-1, 3)
    here, of_points = _forces(differentiator, (led.q, c, led.v), held)
    ended = HeldRows(sticking._replace(points=at_end), after.q, held.kept)
    there, of_end = _forces(differentiator, (after.q, w, after.v), ended)
    if len(here.J) != len(there.J):
        raise UnsupportedError(
            "other rows are independent where the step ends; use central differences of step()"
        )
    moved = here.carried @ led.q_by_all
    turned = held.transposed(of_points, led.q_by_all, sticking.by_all)
    c_by_all = _answer(
        here.M,
        (np.vstack([here.J, held.S]), np.vstack([there.J @ here.turned, held.S])),
        turned - here.bent @ led.q_by_all,
        np.vstack([-there.J @ moved, -held.times(c, led.q_by_all, sticking.by_all)]),
    )
    q_by_all = moved + here.turned @ c_by_all
    p_by_all = sticking.by_all + np.einsum(
        "naj,jm->nam", held.of_b.reshape(-1, 3, len(c)), c_by_all
    )
    v_by_all = led.v_by_all + c_by_all / dt
    rows = np.vstack([there.J, ended.S])
    w_by_all = _answer(
        there.M,
        (rows, rows),
        ended.transposed(of_end, q_by_all, p_by_all) - there.bent @ q_by_all,
        np.vstack(
            [
                -there.rate @ q_by_all - there.J @ v_by_all,
                -ended.times(w, q_by_all, p_by_all),
            ]
        ),
    )
    return q_by_all, v_by_all + w_by_all


def _cross(a: Array, b: Array) -> Array:
    """Vector products (n, 3), for less than half of what numpy takes for some few."""
    return a[:, [1, 2, 0]] * b[:, [2, 0, 1]] - a[:, [2, 0, 1]] * b[:, [1, 2, 0]]


def _forces(
    differentiator: StepDifferentiator, at: tuple[Array, Array, Array], held: HeldRows
) -> tuple[Closing, Array]:
    """What closes loops at q by w, and the forces (m,) along the rows that hold.

    Raises:
        UnsupportedError: w is not what the equations ask for.
    """
    q, w, v = at
    found = differentiator.closing(q, w, np.zeros(len(v)), v)
    mass = float(differentiator.solver.bodies["mass"][1:].sum())
    nc, rows, momenta = len(found.J), np.vstack([found.J, held.S]), found.M @ w
    answers = rows @ np.linalg.solve(found.M, rows.T)
    by_loops = np.linalg.solve(answers[:nc, :nc], answers[:nc, nc:])
    counts = held.leave_out(answers[nc:, nc:] - answers[nc:, :nc] @ by_loops, mass)
    counts = np.concatenate([np.full(nc, True), counts])
    rows, units = rows[counts], 1.0 / np.sqrt(answers.diagonal()[counts])
    forces = units * least_squares(rows.T * units, momenta)
    size = float(np.abs(w).max(initial=0.0))
    off: Array = np.asarray(np.linalg.solve(found.M, momenta - rows.T @ forces), np.float64)
    if max(np.abs(off).max(initial=0.0), np.abs(held.S @ w).max()) > OFF + 1e-3 * size**2:
        raise UnsupportedError(
            "contacts that stick give way while loops are closed; use central differences of step()"
        )
    of_points = forces[len(found.J) :]
    return differentiator.closing(q, w, held.S.T @ of_points, v), of_points


def least_squares(A: Array, b: Array) -> Array:
    """The shortest x with A x = b, as well as can be."""
    return np.asarray(np.linalg.pinv(A, rcond=WEAKEST) @ b, np.float64)


def _answer(M: Array, rows: tuple[Array, Array], forces: Array, sides: Array) -> Array:
    """x with M x = forces + Bᵀ y, A x = sides, of rows (B, A), whichever follow from others."""
    B, A = rows
    by_rows, free = np.linalg.solve(M, B.T), np.linalg.solve(M, forces)
    G = A @ by_rows
    units = 1.0 / np.sqrt(np.abs(np.einsum("ij,ji->i", B, by_rows)))
    G = units[:, None] * G * units
    y = least_squares(G, units[:, None] * (sides - A @ free))
    return np.asarray(free + by_rows @ (units[:, None] * y), np.float64)
