"""Reduced quasi-velocities: as many as there are freedoms, with a unit mass matrix.

M = Lᵀ L with any square root L whitens velocities; the singular vectors V_1, V_2 of the whitened
rows S J L⁻¹ split them into forbidden and free ones, dependent rows included. With v_r = V_2ᵀ L v
the kinetic energy is v_rᵀ v_r / 2 and v = L⁻¹ V_2 v_r plus what moving constraints impose.

The paper's W is Lᵀ, and its lambda has the opposite sign of ours.

Source: Aghili 2008, eq. 23-33.
"""

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal, get_args

import numpy as np

from bulletbridge.errors import ModelError, StepError
from bulletbridge.formulations.equations import (
    NOT_DEFINITE,
    SINGULAR_RTOL,
    Dynamics,
    Equations,
    Solution,
    require_solved,
)
from bulletbridge.numerics.projection import factor_mass
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.triangles import solve_triangle

Root = Literal["tree", "cholesky", "symmetric"]
"""Which square root of M = Lᵀ L.

``tree``: L lower triangular with the zeros of the tree's branches. With rates numbered from the
base to the tips this is the spatial-operator factor D^1/2 (1 + H phi K)ᵀ, since triangular factors
with a positive diagonal are unique; a joint with several rates has the root of its block of D.
``cholesky``: L upper triangular. ``symmetric``: L = Lᵀ, the one that needs no order of the rates.
"""


def square_root(M: Array, root: Root = "tree") -> Array:
    """L (nv, nv) with M = Lᵀ L."""
    if root == "tree":
        L = np.array(M, float)
        factor_mass(L)
        if not np.all(np.isfinite(L)):
            raise StepError(NOT_DEFINITE)
        return L * _lower(len(L))
    if root == "cholesky":
        try:
            return np.asarray(np.linalg.cholesky(M).T, np.float64)
        except np.linalg.LinAlgError:
            raise StepError(NOT_DEFINITE) from None
    if root == "symmetric":
        squares, E = np.linalg.eigh(M)
        if not squares[0] > 0.0:
            raise StepError(NOT_DEFINITE)
        return np.asarray((E * np.sqrt(squares)) @ E.T, np.float64)
    raise ModelError(f"unknown root '{root}'; there are {', '.join(get_args(Root))}")


def square_root_turns(L: Array, M_rate: Array, root: Root = "tree") -> Array:
    """L̇ L⁻¹ (..., nv, nv) when M = Lᵀ L changes at ``M_rate`` (..., nv, nv); exact.

    For the triangular roots X = L⁻ᵀ Ṁ L⁻¹ = (L̇ L⁻¹)ᵀ + L̇ L⁻¹, of which the triangle with half the
    diagonal is L̇ L⁻¹; for the symmetric one L L̇ + L̇ L = Ṁ in the axes of L.
    """
    if root == "symmetric":
        r, E = np.linalg.eigh(L)
        return np.asarray(E @ ((E.T @ M_rate @ E) / ((r[:, None] + r) * r)) @ E.T, np.float64)
    inverse = solve_root(L, np.eye(len(L)), root)
    return np.asarray((inverse.T @ M_rate @ inverse) * _halved(len(L), root == "tree"), np.float64)


@cache
def _lower(n: int) -> Array:
    """Ones on and below the diagonal (n, n)."""
    return np.tri(n)


@cache
def _halved(n: int, lower: bool) -> Array:
    """Factors (n, n): one in a triangle, a half on the diagonal."""
    half = np.tri(n) - np.eye(n) / 2
    return half if lower else half.T


def solve_root(L: Array, y: Array, root: Root, transposed: bool = False) -> Array:
    """L⁻¹ y, or L⁻ᵀ y, of one vector (nv,) or of columns (nv, n)."""
    if root == "symmetric":
        return np.asarray(np.linalg.solve(L, y), np.float64)
    return solve_triangle(L, y, lower=root == "tree", transposed=transposed)


@dataclass(frozen=True)
class Basis:
    """Whitened velocities split by the rows: S J L⁻¹ = U_1 diag(s) V_1ᵀ, V_2 free."""

    L: Array  # (nv, nv) with M = Lᵀ L
    U_1: Array  # (nc, rank) orthonormal
    s: Array  # (rank,) singular values, decreasing
    V_1: Array  # (nv, rank) what the rows forbid
    V_2: Array  # (nv, dof) what they leave free; any rotation of its columns serves as well
    unit: Array  # (nc,) S, the factor that brings each row to one unit
    root: Root  # which square root L is

    @cached_property
    def free(self) -> Array:
        """L⁻¹ V_2 (nv, dof): velocities of the quasi-velocities one by one."""
        return self.unwhiten(self.V_2)

    def reduce(self, v: Array) -> Array:
        """Quasi-velocities v_r (dof,) of a velocity (nv,)."""
        return np.asarray(self.V_2.T @ (self.L @ v), np.float64)

    def expand(self, v_r: Array, g_t: Array | None = None) -> Array:
        """Velocity (nv,) of quasi-velocities (dof,); ``g_t`` (nc,) of rows that move."""
        y = self.V_2 @ v_r
        if g_t is not None:
            y = y - self.forbidden(g_t)
        return self.unwhiten(y)

    def forbidden(self, right: Array) -> Array:
        """Whitened shortest solution (nv,) of J x = right (nc,)."""
        return np.asarray(self.V_1 @ ((self.U_1.T @ (self.unit * right)) / self.s), np.float64)

    def unwhiten(self, y: Array) -> Array:
        """L⁻¹ y, of one vector (nv,) or of columns."""
        return solve_root(self.L, y, self.root)

    def whiten_force(self, f: Array) -> Array:
        """L⁻ᵀ f, of one vector (nv,) or of columns."""
        return solve_root(self.L, f, self.root, transposed=True)

    def multipliers(self, force: Array) -> Array:
        """Shortest lam (nc,), rows in one unit, with Jᵀ lam = Lᵀ force in the span of V_1."""
        return np.asarray(self.unit * (self.U_1 @ ((self.V_1.T @ force) / self.s)), np.float64)

    def aligned(self, V_2: Array) -> "Basis":
        """The same with the free directions turned as near as can be to V_2 (nv, dof) (Procrustes).

        Singular vectors jump from one configuration to the next; quasi-velocities that are
        integrated, or compared over time, need a basis that does not.
        """
        U, _, Vt = np.linalg.svd(self.V_2.T @ V_2)
        return replace(self, V_2=self.V_2 @ (U @ Vt))


def basis_of(e: Equations, root: Root = "tree", rtol: float = SINGULAR_RTOL) -> Basis:
    """Split velocity space at one configuration; rows weaker than ``rtol`` count as dependent."""
    L = square_root(e.M, root)
    rows = solve_root(L, (e.unit[:, None] * e.J).T, root, transposed=True).T
    if not len(rows):
        nothing = np.zeros((0, 0))
        none = np.zeros((len(L), 0))
        return Basis(L, nothing, np.zeros(0), none, np.eye(len(L)), e.unit, root)
    U, s, Vt = np.linalg.svd(rows)
    rank = int(np.count_nonzero(s > rtol * s[0])) if s[0] > 0.0 else 0
    rank = rank if e.cap is None else min(rank, e.cap)
    return Basis(L, U[:, :rank], s[:rank], Vt[:rank].T, Vt[rank:].T, e.unit, root)


def motion_of(e: Equations, basis: Basis) -> Solution:
    """Accelerations and shortest multipliers of equations of motion in their basis."""
    pushed = basis.whiten_force(e.f)
    u_r = basis.V_2.T @ pushed
    y = basis.V_2 @ u_r - basis.forbidden(e.gamma)
    return Solution(basis.unwhiten(y), basis.multipliers(y - pushed))


@dataclass(frozen=True)
class ReducedQuasiVelocities:
    """v̇ from u_r = V_2ᵀ L⁻ᵀ f and from what the rows impose; lam from u_o = V_1ᵀ L⁻ᵀ f."""

    dynamics: Dynamics  # the system
    root: Root = "tree"  # square root of M; accelerations do not depend on it
    # rows weaker than this, relative to the strongest, are not solved for
    rtol: float = SINGULAR_RTOL

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and the shortest multipliers, rows in one unit, at a state."""
        e = self.dynamics.equations(q, v, t)
        found = motion_of(e, basis_of(e, self.root, self.rtol))
        require_solved(e, found, "quasi_velocities")
        return found
