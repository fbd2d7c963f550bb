"""Modular formulation: the contact forces of many robots from what each says of its own points.

A module is a block of the mass matrix: each tree that hangs from the world is one. It gives its
open-chain acceleration M_k⁻¹ f_k and the inverse operational-space inertias J_i M_k⁻¹ J_jᵀ between
its contacts; for a loop inside one module J is that of the relative motion. Connectivity alone puts
them together: A lam = -(gamma + J v̇_open), A block sparse, since two constraints meet in it only
where they share a module. Modules in series cost linearly. Correction and filter go the same way:
what they change a velocity by is M⁻¹ Jᵀ times something, as an impulse does.

A squares the condition of the rows, so dependent ones are not judged by it: where a pivot says that
rows of a connected group may depend on each other, that group as a whole is handed to the
rank-revealing split of the projector, at its cubic cost; the other groups go on as they are. Two
passes of refinement bring the rest to the accuracy of the split.
Source: Bonaventura 2002.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from bulletbridge.errors import UnsupportedError
from bulletbridge.formulations.equations import (
    SINGULAR_RTOL,
    Dynamics,
    Equations,
    Order,
    Ranked,
    Solution,
    Split,
    split_of,
)
from bulletbridge.numerics.range_space import (
    BACK,
    FORCE,
    VELOCITY,
    add_impulses,
    add_rates,
    factor_sparse,
    open_blocks,
    solve_sparse,
    turn_blocks,
)
from bulletbridge.numerics.records import Array, Ints, Mask

WEAKEST_PIVOT = 1e-8
"""Smallest pivot of A, relative to its largest diagonal: rows of 1e-4 of the strongest."""
REFINEMENTS = 2


class Alike(NamedTuple):
    """Modules of one size with as many rows each, stacked."""

    columns: Ints  # (k, n) coordinates of each
    rows: Ints  # (k, r) rows of the constraints at its points


class Block(NamedTuple):
    """Mass matrices (k, n, n), their lower triangles, and rows (k, r, n) of modules alike."""

    M: Array
    J: Array


class Pattern(NamedTuple):
    """Where the entries of A are, rows in an order of elimination that keeps it sparse.

    Attributes:
        order: (nc,) row of the constraints that comes at each place.
        indptr, indices: Lower triangle by columns, with what fills in.
        groups: (nc,) which group of rows that meet, directly or not, each place belongs to.
        places: Of each stack of modules: (k, r) place of each of its rows.
        slots: Likewise, (k, r, r): which entry each product of two rows is added to; -1 for none.
    """

    order: Ints
    indptr: Ints
    indices: Ints
    groups: Ints
    places: tuple[Ints, ...]
    slots: tuple[Ints, ...]


@dataclass(frozen=True)
class Connectivity:
    """Which rows are at which modules; decided once, for as long as nothing is connected anew."""

    alike: tuple[Alike, ...]
    nc: int

    @cached_property
    def pattern(self) -> Pattern:
        """The pattern of A."""
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components

        parts = [(a.rows[:, :, None], a.rows[:, None, :]) for a in self.alike]
        pairs = [np.broadcast_arrays(*part) for part in parts]
        left = np.concatenate([np.arange(self.nc), *(p[0].ravel() for p in pairs)])
        right = np.concatenate([np.arange(self.nc), *(p[1].ravel() for p in pairs)])
        met = csr_matrix((np.ones(len(left)), (left, right)), (self.nc, self.nc))
        _, labels = connected_components(met, directed=False)
        order = elimination_order(left, right, self.nc) if self.nc else np.zeros(0, np.int64)
        place = np.argsort(order)
        columns = filled(place[left], place[right], self.nc)
        indptr = np.cumsum([0, *map(len, columns)], dtype=np.int64)
        indices = np.array([i for column in columns for i in column], np.int64)
        entries = indices + self.nc * np.repeat(np.arange(self.nc), np.diff(indptr))
        places, slots = list[Ints](), list[Ints]()
        for a in self.alike:
            at = np.ascontiguousarray(place[a.rows])
            i, j = at[:, :, None], at[:, None, :]
            places.append(at)
            slots.append(np.where(i >= j, np.searchsorted(entries, i + self.nc * j), -1))
        groups = np.asarray(labels, np.int64)[order]
        return Pattern(order, indptr, indices, groups, tuple(places), tuple(slots))


class ModularEquations(NamedTuple):
    """M v̇ = f + Jᵀ lam, J v̇ + gamma = 0, module by module; the rest as in ``Equations``."""

    connectivity: Connectivity
    blocks: tuple[Block, ...]
    f: Array  # (nv,)
    g: Array  # (nc,)
    g_t: Array  # (nc,)
    gamma: Array  # (nc,)
    unit: Array  # (nc,)
    cap: int | None = None
    order: Order | None = None

    @property
    def nonlinear(self) -> bool:
        """Whether rows are nonlinear in v: none are."""
        return False

    def split(self, rtol: float = SINGULAR_RTOL) -> "ModularSplit":
        """Velocity space by the rows, module by module."""
        return ModularSplit(self, rtol)


@runtime_checkable
class ModularDynamics(Protocol):
    """A system that evaluates its modules by themselves, without M and J of the whole."""

    def modular_equations(self, q: Array, v: Array, t: float) -> ModularEquations:
        """The equations of motion at a state."""
        ...

    def displace(self, q: Array, step: Array) -> Array:
        """Configuration after a velocity has acted for a unit of time."""
        ...


def elimination_order(i: Ints, j: Ints, n: int) -> Ints:
    """Order of minimum degree of a symmetric pattern (i, j), n by n."""
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    ones = csc_matrix((np.ones(len(i)), (i, j)), (n, n))
    ones.data[:] = 1.0
    dominant = csc_matrix(ones + csc_matrix((np.full(n, float(n)), (range(n), range(n)))))
    factors = splu(dominant, "MMD_AT_PLUS_A", 0.0, options={"SymmetricMode": True})
    return np.argsort(factors.perm_c).astype(np.int64)


def filled(i: Ints, j: Ints, n: int) -> list[list[int]]:
    """Rows of every column of a symmetric pattern (i, j), n by n, with what elimination fills in.

    Ascending from the diagonal. Source: George and Liu, 5.4.
    """
    columns: list[set[int]] = [{k} for k in range(n)]
    for a, b in zip(i.tolist(), j.tolist(), strict=True):
        columns[min(a, b)].add(max(a, b))
    for k in range(n):
        below = columns[k] - {k}
        if below:
            columns[min(below)] |= below
    return [sorted(column) for column in columns]


def alike_modules(columns: Sequence[Ints], rows: Sequence[Ints]) -> tuple[Alike, ...]:
    """Modules, each with its coordinates and rows, stacked by size."""
    sizes: dict[tuple[int, int], list[int]] = {}
    for k, (c, r) in enumerate(zip(columns, rows, strict=True)):
        sizes.setdefault((len(c), len(r)), []).append(k)
    return tuple(
        Alike(
            np.array([columns[k] for k in members], np.int64).reshape(len(members), n),
            np.array([rows[k] for k in members], np.int64).reshape(len(members), r),
        )
        for (n, r), members in sizes.items()
    )


def by_modules(e: Equations) -> ModularEquations:
    """The equations of any system by the blocks that its mass matrix happens to have."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    _, labels = connected_components(csr_matrix(e.M != 0.0), directed=False)
    columns = [np.flatnonzero(labels == k) for k in range(labels.max(initial=-1) + 1)]
    rows = [np.flatnonzero(e.J[:, c].any(axis=1)) for c in columns]
    alike = alike_modules(columns, rows)
    blocks = tuple(
        Block(
            e.M[a.columns[:, :, None], a.columns[:, None, :]],
            e.J[a.rows[:, :, None], a.columns[:, None, :]],
        )
        for a in alike
    )
    known = e.f, e.g, e.g_t, e.gamma, e.unit, e.cap, e.order
    return ModularEquations(Connectivity(alike, len(e.J)), blocks, *known)


class Modular:
    """A lam = -(gamma + J M⁻¹ f) with A = J M⁻¹ Jᵀ assembled from modules, v̇ = M⁻¹ (f + Jᵀ lam).

    Args:
        dynamics: The system; one that has ``modular_equations`` is evaluated module by module.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics = dynamics
        known = isinstance(dynamics, ModularDynamics)
        self.equations = dynamics.modular_equations if known else dynamics.equations
        """Those at a state, for correction and filter too: by modules, where they are known."""

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and multipliers at a state.

        Raises:
            UnsupportedError: The mass matrix of a module is not positive definite.
        """
        e = self.equations(q, v, t)
        return solve_modular(by_modules(e) if isinstance(e, Equations) else e)


def solve_modular(e: ModularEquations) -> Solution:
    """Accelerations and multipliers of equations by modules.

    Raises:
        UnsupportedError: The mass matrix of a module is not positive definite.
    """
    return Solution(*e.split().nearest(e.f, FORCE, e.gamma))


class ModularSplit:
    """What constraints forbid of velocity space, by modules; see ``Split``, which does it whole.

    Attributes:
        weak: (nc,) rows of groups that are split as a whole.

    Raises:
        UnsupportedError: The mass matrix of a module is not positive definite.
    """

    def __init__(self, e: ModularEquations, rtol: float = SINGULAR_RTOL) -> None:
        self._e, self._rtol, pattern = e, rtol, e.connectivity.pattern
        self._stacks: list[tuple[Alike, Block]] = []
        self._factors = np.zeros(len(pattern.indices))
        definite = True
        for a, b, slots in zip(e.connectivity.alike, e.blocks, pattern.slots, strict=True):
            L, Y = b.M.copy(), e.unit[a.rows][:, :, None] * b.J
            definite = open_blocks(L, Y, slots, self._factors) and definite
            self._stacks.append((a, Block(L, Y)))
        if not definite:
            raise UnsupportedError(
                "the mass matrix of a module is not positive definite; use the multipliers"
                " formulation"
            )
        self._weak = np.zeros(int(pattern.groups.max(initial=-1)) + 1, np.int64)
        where = pattern.indptr, pattern.indices, self._factors, pattern.groups, self._weak
        self._where = where
        factor_sparse(*where, WEAKEST_PIVOT)
        nc = e.connectivity.nc
        if e.cap is not None and e.cap < nc and not self._weak.any():
            self._weak[:] = 1  # rows depend on each other by design, though not at this state
        self.weak: Mask = np.zeros(nc, bool)
        self.weak[pattern.order] = self._weak[pattern.groups] == 1

    def nearest(self, x: Array | None, what: int, right: Array) -> tuple[Array, Array]:
        """What is nearest to M⁻¹ x or to x and fulfils J y + right = 0, and the multipliers of it.

        Args:
            x: (nv,) forces or velocities; None for none.
            what: FORCE or VELOCITY.
            right: (nc,) of the rows.

        Returns:
            y (nv,) and lam (nc,), M (y - M⁻¹ x) = Jᵀ lam.
        """
        e, pattern = self._e, self._e.connectivity.pattern
        ys, here = list[Array](), (e.unit * right)[pattern.order]
        for a, b in self._stacks:
            y = np.zeros(a.columns.shape) if x is None else x[a.columns]
            if x is not None:
                turn_blocks(b.M, y, what)
            ys.append(y)
        lam = np.zeros(len(here))
        for _ in range(1 + REFINEMENTS if len(here) and not self.weak.all() else 0):
            mu = here.copy()
            for (_, b), places, y in zip(self._stacks, pattern.places, ys, strict=True):
                add_rates(b.J, places, y, mu)
            solve_sparse(*self._where, mu)
            np.negative(mu, mu)
            for (_, b), places, y in zip(self._stacks, pattern.places, ys, strict=True):
                add_impulses(b.J, places, mu, y)
            lam += mu
        end, multipliers = np.zeros(len(e.f)), np.zeros(len(here))
        multipliers[pattern.order] = lam
        for (a, b), y in zip(self._stacks, ys, strict=True):
            turn_blocks(b.M, y, BACK)
            end[a.columns] = y
        multipliers *= e.unit
        if self.weak.any():
            self._split_weak(x, what, right, (end, multipliers))
        return end, multipliers

    def back(self, g: Array) -> Array:
        """Displacement (nv,) that takes residuals g (nc,) away, the shortest in the metric of M."""
        return self.nearest(None, VELOCITY, g)[0]

    def filtered(self, v: Array, g_t: Array) -> Array:
        """The velocity (nv,) nearest to v in the metric of M with J v + g_t = 0."""
        return self.nearest(v, VELOCITY, g_t)[0]

    def ranked(self) -> Ranked:
        """Which rows are independent.

        The margin is that of the order of elimination: rows are not exchanged by their strength.
        """
        pattern, independent = self._e.connectivity.pattern, ~self.weak
        pivots = np.sqrt(self._factors[pattern.indptr[:-1]][~self.weak[pattern.order]])
        strengths = [pivots.min(), pivots.max()] if len(pivots) else []
        if self.weak.any():
            rows, _ = self._weak_part
            inner = self._whole.ranked()
            independent[rows] = inner.independent
            strengths += list(inner.strengths)
        return Ranked(independent, np.array(strengths))

    @cached_property
    def _weak_part(self) -> tuple[Ints, Ints]:
        """Rows that may depend on each other, and the coordinates of all their modules."""
        touched = [
            a.columns[self.weak[a.rows].any(axis=1)].ravel()
            for a in self._e.connectivity.alike
            if a.rows.size
        ]
        return np.flatnonzero(self.weak), np.concatenate(touched)

    @cached_property
    def _whole(self) -> Split:
        """Rank-revealing split of the rows that may depend on each other."""
        e, (rows, columns) = self._e, self._weak_part
        row_at, column_at = np.zeros(len(self.weak), np.int64), np.zeros(len(e.f), np.int64)
        row_at[rows], column_at[columns] = np.arange(len(rows)), np.arange(len(columns))
        M, J = np.zeros((len(columns), len(columns))), np.zeros((len(rows), len(columns)))
        for a, b in zip(e.connectivity.alike, e.blocks, strict=True):
            if a.rows.size and np.any(hit := self.weak[a.rows].any(axis=1)):
                c, r = column_at[a.columns[hit]], row_at[a.rows[hit]]
                M[c[:, :, None], c[:, None, :]] = b.M[hit]
                J[r[:, :, None], c[:, None, :]] = b.J[hit]
        cap = None if e.cap is None else e.cap - int((~self.weak).sum())
        order = e.order
        if order is not None:
            taken = int((order.levels[~self.weak] == 0).sum())
            order = Order(order.levels[rows], order.positions - taken)
        return split_of(M, J, e.unit[rows], self._rtol, cap, order)

    def _split_weak(
        self, x: Array | None, what: int, right: Array, found: tuple[Array, Array]
    ) -> None:
        """Put what ``nearest`` asks for where rows are weak into what was found elsewhere."""
        (end, lam), (rows, columns), split = found, self._weak_part, self._whole
        pushed = np.zeros(len(columns))
        if x is not None:
            here = x[columns]
            pushed = split.whiten_force(here) if what == FORCE else split.L @ here
        end[columns], lam[rows] = split.nearest(pushed, right[rows])
