"""What motors come to that ask for more than loops, and rows that hold, let them do together.

Of the rates w along their rows that are possible, they take those that miss what each asks for
least (``sharing.agree``): among themselves by the squares of their strengths, then, beside
contacts, limits and friction that hold exactly what they ask for, by what they answer to their
own forces. With weights F², rows W of motors, C of what holds and a force κ along these,

    Wᵀ F² (w - r) + Cᵀ κ = Jᵀ μ,     C u = c

changes by, along all T that the forces of these rows move at J T = 0, C T = 0,

    Tᵀ (Wᵀ (F² (δw - δr) + δF² (w - r)) + δCᵀ κ - ∂(Jᵀ μ) δq) = 0
"""

import math
from typing import NamedTuple

import numpy as np

from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.inequalities.active_rows import WEAKEST
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.numerics.sharing import AMPLE
from bulletbridge.system.asked_rows import OTHERWISE, Active, Leads
from bulletbridge.system.derivatives import step_differentiator_of
from bulletbridge.system.held_closing import least_squares
from bulletbridge.system.linearisation import ALIKE


class Weighed(NamedTuple):
    """Motors that agree, and what they count by.

    Attributes:
        motors: Their rows.
        others: Rows that hold what they ask for.
        weights: (motors,)
        by_answers: Whether these are the inverse of what each answers to its own force.
    """

    motors: Ints
    others: Ints
    weights: Array
    by_answers: bool


class Possible(NamedTuple):
    """What forces along rows can do, of which the first hold, by coordinates orthonormal in D.

    Attributes:
        along: (rows, n) forces, by coordinate.
        rates: (motors, n) of motors,
        meets: (n, others) the least that gives others these rates,
        free: (n, f) what gives them none.
        weights: (motors,) what motors count by.
    """

    along: Array
    rates: Array
    meets: Array
    free: Array
    weights: Array

    def nearest(self, at: Array, missed: Array, more: Array | float) -> Array:
        """Coordinates (n, ...) beside ``at`` by which motors miss least.

        Args:
            at: (n, ...)
            missed: (motors, ...) rates by which motors miss at none.
            more: (f, ...) what the equation of the least has besides.
        """
        by_free = self.rates @ self.free
        stiff = by_free.T @ (self.weights[:, None] * by_free)
        beside = by_free.T @ (self.weights * (missed + self.rates @ at).T).T + more
        return np.asarray(at - self.free @ np.linalg.solve(stiff, beside), np.float64)

    def pulls(self, missed: Array) -> Array:
        """What others and motors that miss rates (motors,) pull by, in balance (rows,)."""
        of_motors = self.weights * missed
        return np.concatenate([-self.meets.T @ (self.rates.T @ of_motors), of_motors])


def possible(D: Array, weights: Array) -> Possible | None:
    """What forces along rows can do that answer to each other by D; None if each does its own.

    Args:
        D: (rows, rows), those of motors last.
        weights: (motors,) what these count by.
    """
    count, units = len(D) - len(weights), np.sqrt(D.diagonal())
    sizes, ways = np.linalg.eigh(D / np.outer(units, units))
    strong = sizes > WEAKEST * sizes[-1]
    if strong.all():
        return None
    along = ways[:, strong] / np.sqrt(sizes[strong]) / units[:, None]
    others, rates = np.split(D @ along, [count])
    left, lengths, across = np.linalg.svd(others / units[:count, None])
    rank = int((lengths > math.sqrt(WEAKEST)).sum())
    meets = across[:rank].T @ (left[:, :rank] / lengths[:rank]).T / units[:count]
    return Possible(along, rates, meets, across[rank:].T, weights)


class Agreement:
    """What motors agree on in a step, and what that changes by.

    Args:
        acting: All rows that act.
        leads: Where forces lead.
        S: (m, m) what rates along the rows answer to forces along them by.
        free: (m, 3 nv) what rates along the rows change by at these forces.
        solver: At the start of the step.
    """

    def __init__(self, acting: Active, leads: Leads, S: Array, free: Array, solver: Solver) -> None:
        self._leads, self._free, self._solver, self._S = leads, free, solver, S
        m, of = acting.count, acting.arrays
        self._acting, self._D, self._rows = acting, S + of.K[:m, :m], of.rows[:m]
        self._strengths, self._forces = of.strengths[:m], of.forces[:m]
        self._by_force = leads.changes[:, 2 * len(solver.v) :]

    def reached(self, wanted: Array, sides: Array) -> tuple[Array, Array]:
        """Rates (m,) that rows hold instead of those they ask for, and their changes (m, 3 nv)."""
        strengths = self._strengths
        is_motor = np.isfinite(strengths)
        motors, none = np.flatnonzero(is_motor), np.zeros(0, np.int64)
        others = np.flatnonzero(~is_motor & np.isfinite(wanted))
        if not len(motors):
            return wanted, sides
        loops = self._solver.encoded.nc > 0
        if loops and self._count_by_strength(motors, strengths[motors], wanted):
            weights = (strengths[motors] / strengths[motors].max()) ** 2
            wanted, sides = self._agree(Weighed(motors, none, weights, False), wanted, sides)
        if len(others):
            weights = 1.0 / self._D.diagonal()[motors]
            wanted, sides = self._agree(Weighed(motors, others, weights, True), wanted, sides)
        return wanted, sides

    def _count_by_strength(self, motors: Ints, strengths: Array, wanted: Array) -> bool:
        """Whether no motor is so strong that it counts by what is needed (``sharing.weigh``)."""
        forces, answers = self._forces, self._S.diagonal()[motors]
        off = (self._rows @ self._leads.rates - wanted - self._S @ forces)[motors]
        counts = strengths**2 * answers
        return bool(counts.max() <= AMPLE**2 * np.minimum(off**2 / answers, counts).max())

    def _agree(self, among: Weighed, wanted: Array, sides: Array) -> tuple[Array, Array]:
        """The same, of motors among themselves or beside others."""
        of, count = np.concatenate([among.others, among.motors]), len(among.others)
        can = possible(self._D[np.ix_(of, of)], among.weights)
        if can is None:
            return wanted, sides
        rates = self._rows[of] @ self._leads.rates
        off = rates - wanted[of]
        y = can.nearest(-can.meets @ off[:count], off[count:], 0.0)
        missed = off[count:] + can.rates @ y
        free, more = self._free[of], np.zeros((can.free.shape[1], self._free.shape[1]))
        given = np.concatenate([missed, self._D[np.ix_(of, of)] @ (can.along @ y)])
        if np.abs(given).max() > ALIKE * max(1.0, float(np.abs(self._leads.rates).max())):
            free, more = self._as_rows_turn(among, can, y, missed)  # else nothing comes of it
        left = sides[of] - free
        x = can.nearest(can.meets @ left[:count], -left[count:], more)
        wanted, sides = wanted.copy(), sides.copy()
        wanted[among.motors] = rates[count:] + can.rates @ y
        sides[among.motors] = free[count:] + can.rates @ x
        return wanted, sides

    def _as_rows_turn(
        self, among: Weighed, can: Possible, y: Array, missed: Array
    ) -> tuple[Array, Array]:
        """What rates along rows change by, and the equation of the least, as rows and loops turn.

        Args:
            among: Motors, and others.
            can: What these can do.
            y: (n,) what they do.
            missed: (motors,) rates by which motors miss.

        Returns:
            (rows, 3 nv), and (f, 3 nv).

        Raises:
            UnsupportedError: Loops are driven.
        """
        of, solver = np.concatenate([among.others, among.motors]), self._solver
        rows, nv, pulls = self._rows[of], len(self._leads.rates), can.pulls(missed)
        if solver.encoded.motions:
            raise UnsupportedError(f"motors contradict each other in driven loops{OTHERWISE}")
        by_coordinate = self._by_force @ (rows.T @ can.along)
        free, bent = self._free[of].copy(), np.zeros((nv, 3 * nv))
        for pull, k in zip(pulls, among.others, strict=False):
            if (slopes := self._acting.slopes(int(k))) is not None:
                bent += pull * slopes.T @ self._leads.place_by_all
        if solver.encoded.nc:
            at = np.zeros(nv), -rows.T @ pulls, by_coordinate @ y
            closing = step_differentiator_of(solver).closing(solver.q, *at)
            bent[:, :nv] += closing.bent
            by_rows = np.asarray(np.linalg.solve(closing.M, closing.J.T), np.float64)
            kept = by_rows @ np.linalg.solve(closing.J @ by_rows, closing.rate)
            free[:, :nv] -= rows @ kept
        more = (by_coordinate @ can.free).T @ bent
        if among.by_answers:
            by_q: Array = np.array([self._answer_by_q(int(k)) for k in among.motors])
            of_weights = -(among.weights**2)[:, None] * by_q
            more[:, :nv] += (can.rates @ can.free).T @ (missed[:, None] * of_weights)
        return free, np.asarray(more, np.float64)

    def _answer_by_q(self, k: int) -> Array:
        """What a motor's rate answers to its own force by changes by with positions (nv,).

        With M x - Jᵀ λ = e, J x = 0, that is by -xᵀ ∂(M x - Jᵀ λ) + λᵀ ∂(J x).
        """
        solver, row, dt = self._solver, self._rows[k], float(self._solver.control[0]["dt"])
        x = self._by_force @ row / dt
        found = step_differentiator_of(solver).closing(solver.q, x, row, x)
        by_q: Array = -x @ found.bent
        if len(found.J):
            by_q += least_squares(found.J.T, found.M @ x - row) @ found.rate
        return np.asarray(dt * by_q, np.float64)
