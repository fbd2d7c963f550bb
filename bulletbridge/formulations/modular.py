"""Modular formulation: the contact forces of many robots from what each says of its own points.

A module is a block of the mass matrix: each tree that hangs from the world is one. It gives its
open-chain acceleration M_k⁻¹ f_k and the inverse operational-space inertias J_i M_k⁻¹ J_jᵀ between
its contacts; for a loop inside one module J is that of the relative motion. Connectivity alone puts
them together: A lam = -(gamma + J v̇_open), A block sparse, since two constraints meet in it only
where they share a module. Modules in series cost linearly.

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
from bulletbridge.formulations.equations import Dynamics, Equations, Solution, split_of
from bulletbridge.numerics.records import Array, Ints

WEAKEST_PIVOT = 1e-8
"""Smallest pivot of A, relative to its largest diagonal: rows of 1e-4 of the strongest."""
REFINEMENTS = 2


class Alike(NamedTuple):
    """Modules of one size with as many rows each, stacked.

    Attributes:
        columns: (k, n) coordinates of each.
        rows: (k, r) rows of the constraints at its points.
    """

    columns: Ints
    rows: Ints


class Block(NamedTuple):
    """Mass matrices (k, n, n) and rows (k, r, n) of modules that are alike."""

    M: Array
    J: Array


class Group(NamedTuple):
    """Constraints that share modules, directly or not, and where their entries of A go.

    Attributes:
        rows: (n,) in the order of elimination.
        indptr, indices: Pattern of A, by columns, rows in that order.
        entries: Of all modules' J M⁻¹ Jᵀ, one after another, those that belong here.
        slots: Where in the pattern each of them is added.
    """

    rows: Ints
    indptr: Ints
    indices: Ints
    entries: Ints
    slots: Ints


@dataclass(frozen=True)
class Connectivity:
    """Which rows are at which modules; decided once, for as long as nothing is connected anew."""

    alike: tuple[Alike, ...]
    nc: int

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Connected groups of rows, each with an order of elimination that keeps A sparse."""
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components

        parts = [(a.rows[:, :, None], a.rows[:, None, :]) for a in self.alike]
        pairs = [np.broadcast_arrays(*part) for part in parts]
        left = np.concatenate([np.zeros(0, np.int64), *(p[0].ravel() for p in pairs)])
        right = np.concatenate([np.zeros(0, np.int64), *(p[1].ravel() for p in pairs)])
        shape = self.nc, self.nc
        pattern = csr_matrix((np.ones(len(left)), (left, right)), shape)
        count, labels = connected_components(pattern, directed=False)
        found: list[Group] = []
        for g in range(count):
            rows, entries = np.flatnonzero(labels == g), np.flatnonzero(labels[left] == g)
            order = np.zeros(self.nc, np.int64)
            order[rows] = np.arange(len(rows))
            rows = rows[elimination_order(order[left[entries]], order[right[entries]], len(rows))]
            order[rows] = np.arange(len(rows))
            i, j, n = order[left[entries]], order[right[entries]], len(rows)
            places, slots = np.unique(j * n + i, return_inverse=True)
            indptr = np.concatenate([[0], np.cumsum(np.bincount(places // n, minlength=n))])
            found.append(Group(rows, indptr, places % n, entries, slots))
        return tuple(found)


class ModularEquations(NamedTuple):
    """M v̇ = f + Jᵀ lam, J v̇ + gamma = 0, module by module; the rest as in ``Equations``."""

    connectivity: Connectivity
    blocks: tuple[Block, ...]
    f: Array  # (nv,)
    gamma: Array  # (nc,)
    unit: Array  # (nc,)
    cap: int | None = None


@runtime_checkable
class ModularDynamics(Protocol):
    """A system that evaluates its modules by themselves, without M and J of the whole."""

    def modular_equations(self, q: Array, v: Array, t: float) -> ModularEquations:
        """The equations of motion at a state."""
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
    return ModularEquations(Connectivity(alike, len(e.J)), blocks, e.f, e.gamma, e.unit, e.cap)


class Modular:
    """A lam = -(gamma + J M⁻¹ f) with A = J M⁻¹ Jᵀ assembled from modules, v̇ = M⁻¹ (f + Jᵀ lam).

    Args:
        dynamics: The system; one that has ``modular_equations`` is evaluated module by module.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics = dynamics

    def __call__(self, q: Array, v: Array, t: float) -> Solution:
        """Accelerations and multipliers at a state.

        Raises:
            UnsupportedError: The mass matrix of a module is not positive definite.
        """
        if isinstance(self.dynamics, ModularDynamics):
            return solve_modular(self.dynamics.modular_equations(q, v, t))
        return solve_modular(by_modules(self.dynamics.equations(q, v, t)))


class Open(NamedTuple):
    """What modules that are alike say of themselves.

    Attributes:
        vdot: (k, n) open-chain accelerations.
        psi: (k, n, r) accelerations by unit multipliers: M⁻¹ Jᵀ.
        inertia: (k, r, r) inverse operational-space inertias J M⁻¹ Jᵀ.
    """

    vdot: Array
    psi: Array
    inertia: Array


def open_modules(block: Block, f: Array) -> Open:
    """Evaluate modules by themselves: mass matrices and rows of ``block``, forces f (k, n).

    Raises:
        UnsupportedError: A mass matrix is not positive definite.
    """
    try:
        root = np.linalg.cholesky(block.M)
    except np.linalg.LinAlgError:
        raise UnsupportedError(
            "the mass matrix of a module is not positive definite; use the multipliers formulation"
        ) from None
    right = np.concatenate([f[:, :, None], block.J.transpose(0, 2, 1)], axis=2)
    half: Array = np.asarray(np.linalg.solve(root, right), np.float64)
    whole: Array = np.asarray(np.linalg.solve(root.transpose(0, 2, 1), half), np.float64)
    rows = half[:, :, 1:]
    return Open(whole[:, :, 0], whole[:, :, 1:], rows.transpose(0, 2, 1) @ rows)


def solve_modular(e: ModularEquations) -> Solution:
    """Accelerations and multipliers of equations by modules.

    Raises:
        UnsupportedError: The mass matrix of a module is not positive definite.
    """
    alike, nc = e.connectivity.alike, e.connectivity.nc
    pairs = list(zip(alike, e.blocks, strict=True))
    scaled = [Block(b.M, e.unit[a.rows][:, :, None] * b.J) for a, b in pairs]
    opened = [open_modules(b, e.f[a.columns]) for a, b in zip(alike, scaled, strict=True)]
    entries = np.concatenate([np.zeros(0), *(o.inertia.ravel() for o in opened)])
    diagonal = np.zeros(nc)
    for a, o in zip(alike, opened, strict=True):
        np.add.at(diagonal, a.rows, np.diagonal(o.inertia, axis1=1, axis2=2))
    least = WEAKEST_PIVOT * float(diagonal.max(initial=0.0))
    found = [(g, eliminate(g, entries, least)) for g in e.connectivity.groups]
    strong = [(g, factors) for g, factors in found if factors is not None]
    if e.cap is not None and e.cap < nc and len(strong) == len(found):
        strong = []  # rows depend on each other by design, though not at this state
    vdot, lam = np.zeros(len(e.f)), np.zeros(nc)
    for a, o in zip(alike, opened, strict=True):
        vdot[a.columns] = o.vdot
    for _ in range(1 + REFINEMENTS if strong else 0):
        right, more = e.unit * e.gamma, np.zeros(nc)
        for a, b in zip(alike, scaled, strict=True):
            np.add.at(right, a.rows, np.einsum("krn,kn->kr", b.J, vdot[a.columns]))
        for g, factors in strong:
            more[g.rows] = -factors.solve(right[g.rows])
        for a, o in zip(alike, opened, strict=True):
            vdot[a.columns] += np.einsum("knr,kr->kn", o.psi, more[a.rows])
        lam += e.unit * more
    weak = np.ones(nc, bool)
    for g, _ in strong:
        weak[g.rows] = False
    if weak.any():
        split_weak(e, weak, vdot, lam)
    return Solution(vdot, lam)


class Factors(Protocol):
    """A factorised matrix."""

    def solve(self, rhs: Array) -> Array:
        """Solution of one right-hand side."""
        ...


def eliminate(group: Group, entries: Array, least: float) -> Factors | None:
    """Factors of A of a group; None when a pivot is below ``least``."""
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    n = len(group.rows)
    data = np.bincount(group.slots, entries[group.entries], len(group.indices))
    A = csc_matrix((data, group.indices, group.indptr), (n, n))
    try:
        factors = splu(A, "NATURAL", 0.0, options={"SymmetricMode": True})
    except RuntimeError:  # a pivot is zero
        return None
    return factors if factors.U.diagonal().min() > least else None


def split_weak(e: ModularEquations, weak: Array, vdot: Array, lam: Array) -> None:
    """Solve rows that may depend on each other by the rank-revealing split of all their modules."""
    rows = np.flatnonzero(weak)
    touched = [a.rows.size > 0 and weak[a.rows].any(axis=1) for a in e.connectivity.alike]
    columns = np.concatenate(
        [
            a.columns[hit].ravel()
            for a, hit in zip(e.connectivity.alike, touched, strict=True)
            if np.any(hit)
        ]
    )
    row_at, column_at = np.zeros(len(lam), np.int64), np.zeros(len(vdot), np.int64)
    row_at[rows], column_at[columns] = np.arange(len(rows)), np.arange(len(columns))
    M, J = np.zeros((len(columns), len(columns))), np.zeros((len(rows), len(columns)))
    for a, b, hit in zip(e.connectivity.alike, e.blocks, touched, strict=True):
        if np.any(hit):
            c, r = column_at[a.columns[hit]], row_at[a.rows[hit]]
            M[c[:, :, None], c[:, None, :]] = b.M[hit]
            J[r[:, :, None], c[:, None, :]] = b.J[hit]
    cap = None if e.cap is None else e.cap - (len(lam) - len(rows))
    split = split_of(M, J, e.unit[rows], cap=cap)
    pushed = split.whiten_force(e.f[columns])
    y = split.free(pushed) - split.shortest(e.gamma[rows])
    vdot[columns], lam[rows] = split.unwhiten(y), split.multipliers(y - pushed)
