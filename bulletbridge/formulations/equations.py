"""The equations of motion at one state, and what turns them into accelerations.

The compiled step has the projector built in. Every other method, and every system that is not a
tree of rigid bodies, goes through these: slower, and the same for all, so that they can be
compared.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from bulletbridge.errors import StepError, UnsupportedError
from bulletbridge.numerics.projection import ROW, split_rows
from bulletbridge.numerics.records import Array, Ints, Mask
from bulletbridge.numerics.triangles import solve_triangle

NOT_DEFINITE = (
    "the mass matrix is not positive definite to double precision; give every joint something to"
    " move, and masses that are not so far apart"
)
INEXACT = 2.0**-26
"""Part of the terms of an equation of motion that accelerations may leave: half the digits."""
SINGULAR_RTOL = 1e-6
"""Rows weaker than this, relative to the strongest, are not solved for."""


class Order(NamedTuple):
    """Rows by how often they are differentiated: those that hold positions come first.

    Attributes:
        levels: (nc,) 0 for them, 1 for rows that hold velocities alone.
        positions: The most of them that may be independent.
    """

    levels: Ints
    positions: int


class Equations(NamedTuple):
    """M v̇ = f + Jᵀ lam, J v̇ + gamma = 0; the violations are g and J v + g_t.

    Attributes:
        M: (nv, nv) positive definite on the free directions, both triangles.
        f: (nv,) applied forces less Coriolis, centrifugal and gravity terms.
        J: (nc, nv) of all rows as kept.
        g: (nc,), empty of meaning for rows without a position level.
        g_t: (nc,) rate of g at fixed q.
        gamma: (nc,) acceleration of the rows at v̇ = 0.
        unit: (nc,) factor that brings each row to one unit.
        cap: The most rows that may be independent, where that was decided at closed positions:
            next to them, rows that are redundant by design look weak, not dependent.
        order: Which rows come first; None if all hold positions.
        nonlinear: Whether J or g_t depend on v, as those of nonlinear nonholonomic rows
            psi(q, v, t) do: J = ∂psi/∂v, g_t = psi - J v. The velocity filter is then iterated.
        size: (nv,) sum of the sizes of the terms of f, which its rounding goes by: weights and
            springs may cancel. None where nothing is known but f.
    """

    M: Array
    f: Array
    J: Array
    g: Array
    g_t: Array
    gamma: Array
    unit: Array
    cap: int | None = None
    order: Order | None = None
    nonlinear: bool = False
    size: Array | None = None

    @property
    def sizes(self) -> Array:
        """(nv,) of the terms of f: no less than ``size`` and f itself."""
        return np.abs(self.f) if self.size is None else np.maximum(self.size, np.abs(self.f))

    def split(self, rtol: float = SINGULAR_RTOL) -> "Split":
        """Velocity space by the rows: what they forbid and what they leave free."""
        return split_of(self.M, self.J, self.unit, rtol, self.cap, self.order)


class Dynamics(Protocol):
    """A constrained system: what formulations and integrators need of it.

    Configurations q (nq,) are moved by velocities (nv,) through ``displace`` only, since q may hold
    quaternions. Users may write their own.
    """

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        ...

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        ...

    def equations(self, q: Array, v: Array, t: float) -> Equations:
        """The equations of motion at a state."""
        ...

    def displace(self, q: Array, step: Array) -> Array:
        """Configuration (nq,) after a velocity (nv,) has acted for a unit of time."""
        ...


class Coordinates:
    """Coordinates (n,) whose rates are the velocities: steps (n,) add to them."""

    def displace(self, q: Array, step: Array) -> Array:
        """Configuration after a velocity has acted for a unit of time."""
        return np.asarray(q + step, np.float64)


class Solution(NamedTuple):
    """Accelerations (nv,) and multipliers (nc,) at one state.

    ``rate`` (nv,) is the velocity by which q moves there, where it is not the one of the state.
    """

    vdot: Array
    lam: Array
    rate: Array | None = None


Formulation = Callable[[Array, Array, float], Solution]
"""(q, v, t) to accelerations and multipliers; made from a ``Dynamics``, one class a method."""


class Ranked(NamedTuple):
    """Rows by how far they are independent of each other.

    Attributes:
        independent: (nc,) rows that are solved for.
        strengths: Lengths of what earlier rows do not explain of them, whitened.
    """

    independent: Mask
    strengths: Array

    @property
    def margin(self) -> float:
        """Weakest over strongest; 1 without rows."""
        return float(self.strengths.min() / self.strengths.max()) if len(self.strengths) else 1.0


@dataclass(frozen=True)
class Split:
    """M = Lᵀ L and the scaled rows S J L⁻¹ = R Q, by decreasing length.

    Attributes:
        L: (nv, nv) lower triangular.
        Q: (rank, nv) orthonormal rows: what the constraints forbid, whitened.
        R: (rank, rank) lower triangular.
        kept: (rank,) rows of J that Q spans.
        unit: (rank,) their scale.
        rows: Number of rows of J.
    """

    L: Array
    Q: Array
    R: Array
    kept: np.ndarray
    unit: Array
    rows: int

    @property
    def rank(self) -> int:
        """Independent rows."""
        return len(self.Q)

    def whiten_force(self, f: Array) -> Array:
        """L⁻ᵀ f."""
        return solve_triangle(self.L, f, transposed=True)

    def unwhiten(self, y: Array) -> Array:
        """L⁻¹ y."""
        return solve_triangle(self.L, y)

    def free(self, y: Array) -> Array:
        """What the constraints leave of a whitened vector: (I - QᵀQ) y."""
        return np.asarray(y - self.Q.T @ (self.Q @ y), np.float64)

    def shortest(self, right: Array) -> Array:
        """Whitened solution of J x = right (nc,) that is shortest in the metric of M."""
        return np.asarray(self.Q.T @ self._forward(self.unit * right[self.kept]), np.float64)

    def multipliers(self, force: Array) -> Array:
        """lam (nc,) with Jᵀ lam = Lᵀ force for a whitened force in the span of Q.

        Redundant rows get none: the load is carried by the kept ones.
        """
        lam = np.zeros(self.rows)
        if self.rank:
            mu = solve_triangle(self.R, self.Q @ force, transposed=True)
            lam[self.kept] = self.unit * mu
        return lam

    def nearest(self, y: Array, right: Array) -> tuple[Array, Array]:
        """What is nearest to a whitened vector where J x = -right, and the multipliers of the way.

        Of ``whiten_force(f)`` and gamma: v̇ = P M⁻¹ f - J⁺ gamma (nv,), and lam (nc,).
        """
        end = self.free(y) - self.shortest(right)
        return self.unwhiten(end), self.multipliers(end - y)

    def back(self, g: Array) -> Array:
        """Displacement (nv,) that takes residuals g (nc,) away, the shortest in the metric of M."""
        return -self.unwhiten(self.shortest(g))

    def filtered(self, v: Array, g_t: Array) -> Array:
        """The velocity (nv,) nearest to v in the metric of M with J v + g_t = 0."""
        return self.unwhiten(self.free(self.L @ v) - self.shortest(g_t))

    def ranked(self) -> Ranked:
        """Which rows are independent."""
        independent, strengths = np.zeros(self.rows, bool), np.diag(self.R)
        independent[self.kept[strengths >= SINGULAR_RTOL * strengths.max(initial=0.0)]] = True
        return Ranked(independent, strengths)

    def _forward(self, y: Array) -> Array:
        return solve_triangle(self.R, y) if self.rank else y


def split_of(
    M: Array,
    J: Array,
    unit: Array,
    rtol: float = SINGULAR_RTOL,
    cap: int | None = None,
    order: Order | None = None,
) -> Split:
    """Split velocity space by rows J (nc, nv) in the metric of M (nv, nv).

    Args:
        M: Positive definite.
        J: Rows, dependent ones allowed.
        unit: (nc,) factor that brings each row to one unit.
        rtol: Rows weaker than this, relative to the strongest, count as dependent.
        cap: The most rows that may be independent; None for what ``rtol`` says.
        order: Which rows come first; None if all hold positions.

    Raises:
        StepError: M is not positive definite.
    """
    L, Y = M.copy(), np.multiply(unit[:, None], J, order="C")
    R, rows = np.zeros((len(J), len(J))), np.zeros(len(J), ROW)
    cap = len(J) if cap is None else cap
    rows["level"] = 0 if order is None else order.levels
    positions = cap if order is None else order.positions
    rank = split_rows(L, Y, R, rows, cap, positions, rtol)
    if not np.all(np.isfinite(L)):
        raise StepError(NOT_DEFINITE)
    kept = rows["pivot"][:rank].copy()
    return Split(np.tril(L), Y[:rank], R[:rank, :rank], kept, unit[kept], len(J))


def positive_factor(M: Array) -> tuple[Array, bool]:
    """Cholesky factor of M, for ``scipy.linalg.cho_solve``.

    Raises:
        UnsupportedError: M is not positive definite.
    """
    from scipy.linalg import LinAlgError, cho_factor

    try:
        return cho_factor(M)
    except LinAlgError:
        raise UnsupportedError(f"{NOT_DEFINITE}; or use the projector") from None


def require_solved(e: Equations, solution: Solution, name: str) -> None:
    """Refuse accelerations and multipliers that do not fulfil M v̇ = f + Jᵀ lam, line by line.

    Lengths and masses that are far apart cost digits in a basis that mixes the coordinates; each
    line is held against its own largest terms, so that units do not matter.

    Raises:
        UnsupportedError: Half the digits are lost, or more.
    """
    left = np.abs(e.M @ solution.vdot - e.f - e.J.T @ solution.lam)
    terms = np.abs(e.M) @ np.abs(solution.vdot) + np.abs(e.J.T) @ np.abs(solution.lam) + e.sizes
    lost = float(np.max(left / np.where(terms > 0.0, terms, 1.0), initial=0.0))
    if lost > INEXACT:
        raise UnsupportedError(
            f"{name} misses the equations of motion by {lost:.1e} of their terms, since masses are"
            " too far apart for it; use the projector"
        )
