"""Plan of clusters, and steps by them."""

from typing import NamedTuple

import numpy as np

from bulletbridge.compilation.block_sizes import in_blocks
from bulletbridge.constraints.arrays import Encoded
from bulletbridge.engine.clusters_kernel import ClusterArrays, run_clusters
from bulletbridge.engine.handing_over import HandingStepper
from bulletbridge.engine.islands import (
    Islands,
    IslandStepper,
    pushed_axes,
    rows_of,
    term_axes,
    work,
)
from bulletbridge.engine.stepper import Solver
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import STRETCH
from bulletbridge.numerics.clusters import CLUSTER, TRUNK
from bulletbridge.numerics.projection import ROW
from bulletbridge.numerics.records import Array, Ints

LEAST = 1e-4
"""Least singular value of the rows of a cluster, over the largest of all, that counts."""
MOST_TRUNK = 32
"""Rates of a trunk: what it carries meets in a dense matrix."""


class ClusterPlan(NamedTuple):
    """A trunk, and what hangs on it."""

    trunk: list[int]  # its rates, ascending, as those of each cluster
    rates: list[list[int]]  # those of each cluster
    rows: list[Ints]  # numbers of the rows of each

    def work(self) -> float:
        """Operations of a step, roughly, as of ``islands.work``."""
        t = len(self.trunk)
        each = zip(self.rates, self.rows, strict=True)
        return sum(work(t + len(rates), len(rows)) for rates, rows in each)

    def operations(self) -> float:
        """Operations of a step, of lines in whole blocks and without those of zeros."""
        t, T, m = len(self.trunk), in_blocks(len(self.trunk)), in_blocks(max(map(len, self.rates)))
        total = float(t * t * T)
        for rates, rows in zip(self.rates, self.rows, strict=True):
            n, c = len(rates), len(rows)
            total += n * n * (m + T) / 2 + n * t * T  # M, and what it leaves on the trunk
            total += c * n * (m + T) + c * c * m + c * t * T  # rows through it, against each other
        return total


def find_clusters(mechanism: Mechanism, encoded: Encoded) -> list[ClusterPlan]:
    """Plans with several clusters, those of least work first.

    The trunk grows from nothing by a joint at a time: in the cluster that is most work, that of
    those next to the trunk to whose subtree most constraints are tied.
    """
    below, axis, first = mechanism.axes["below"], mechanism.bodies["axis"], mechanism.bodies["v"]
    joint_of = {
        k: range(int(first[i]), int(axis[i]) + 1)
        for i in range(1, len(axis))
        for k in range(int(first[i]), int(axis[i]) + 1)
    }
    tied = np.zeros(mechanism.nv, int)
    for members in tied_axes(encoded):
        for k in members:
            if k >= 0:
                tied[k] += 1
    for k in range(mechanism.nv - 1, -1, -1):
        if below[k] >= 0:
            tied[below[k]] += tied[k]
    trunk: set[int] = set()
    plans: list[ClusterPlan] = []
    while len(trunk) <= min(MOST_TRUNK, mechanism.nv // 2):
        plan = beside(sorted(trunk), mechanism, encoded)
        if plan is None or not plan.rates:
            break
        if len(plan.rates) > 1:
            plans.append(plan)
        sizes = [work(len(r), len(n)) for r, n in zip(plan.rates, plan.rows, strict=True)]
        largest = plan.rates[int(np.argmax(sizes))]
        roots = [k for k in largest if below[k] < 0 or int(below[k]) in trunk]
        trunk.update(joint_of[max(roots, key=lambda k: int(tied[k]))])
    return sorted(plans, key=ClusterPlan.work)


def tied_axes(encoded: Encoded) -> list[list[int]]:
    """Axes that each constraint is between, -1 for the world: loops, then couplings."""
    loops = [[int(loop["axis_a"]), int(loop["axis_b"])] for loop in encoded.loops]
    return loops + [term_axes(encoded, coupling) for coupling in encoded.couplings]


def beside(trunk: list[int], mechanism: Mechanism, encoded: Encoded) -> ClusterPlan | None:
    """Clusters beside a trunk of these rates; None where constraints hold the trunk alone."""
    held = set(trunk)
    owner = list(range(mechanism.nv))

    def find(k: int) -> int:
        while owner[k] != k:
            k = owner[k]
        return k

    joined = [[k, int(under)] for k, under in enumerate(mechanism.axes["below"])]
    constraints = tied_axes(encoded)
    for members in (*joined, *constraints, *pushed_axes(encoded)):
        own = [find(k) for k in members if k >= 0 and k not in held]
        for k in own[1:]:
            owner[max(find(k), find(own[0]))] = min(find(k), find(own[0]))
    rates: dict[int, list[int]] = {}
    for k in range(mechanism.nv):
        if k not in held:
            rates.setdefault(find(k), []).append(k)
    numbers = [rows_of(int(n["row"]), int(n["rows"])) for n in encoded.loops]
    numbers += [rows_of(int(n["row"]), 1) for n in encoded.couplings]
    rows: dict[int, list[Ints]] = {leader: [np.zeros(0, int)] for leader in rates}
    for members, own_rows in zip(constraints, numbers, strict=True):
        leaders = {find(k) for k in members if k >= 0 and k not in held}
        if not leaders:
            return None
        rows[leaders.pop()].append(own_rows)
    return ClusterPlan(trunk, list(rates.values()), [np.concatenate(rows[n]) for n in rates])


def local_rank(plan: ClusterPlan, J: Array) -> int:
    """Independent rows of J (nc, nv), cluster by cluster, without the trunk."""
    parts = [J[rows][:, rates] for rates, rows in zip(plan.rates, plan.rows, strict=True)]
    sizes = [np.linalg.svd(part, compute_uv=False) for part in parts if part.size]
    largest = max((size.max() for size in sizes), default=0.0)
    return sum(int(np.sum(size > LEAST * largest)) for size in sizes)


class ClusterStepper(HandingStepper):
    """Runs the compiled step cluster by cluster.

    Args:
        whole: The solver whose state it advances; it takes over where rows of a cluster are
            independent only with the rates of the trunk, and for implicit methods.
        plan: What the clusters are.
        islands: What takes over instead of all at once, if there are several.

    Attributes:
        plan: What the clusters are.
        clusters: What the kernel works on, beside the arrays of ``whole``.
    """

    def __init__(self, whole: Solver, plan: ClusterPlan, islands: Islands | None = None) -> None:
        self.plan, self.clusters = plan, cluster_arrays(whole, plan)
        super().__init__(whole, run_clusters, self.clusters)
        self._one_by_one = None if islands is None else IslandStepper(islands)
        if islands is not None:
            self.arrays = (*self.arrays, *islands.arrays)

    def take_over(self, targets: np.ndarray, tau: Array, record: Array) -> int:
        """A step that the clusters have left, by islands or all at once; a failure, or DONE."""
        if self._one_by_one is None:
            return super().take_over(targets, tau, record)
        self._whole.handed_over += 1
        return self._one_by_one.run(targets, tau, record, 1)


def cluster_arrays(whole: Solver, plan: ClusterPlan) -> ClusterArrays:
    """What the kernel of a solver's clusters works on."""
    nv, nc, t = whole.mechanism.nv, whole.encoded.nc, len(plan.trunk)
    m, n, most = in_blocks(max(map(len, plan.rates))), len(plan.rates), max(map(len, plan.rows))
    T = in_blocks(t)
    clusters, columns = np.zeros(n, CLUSTER), np.zeros(nv, np.int64)
    trunk, own = plan.trunk[::-1], [rates[::-1] for rates in plan.rates]
    columns[trunk] = m + np.arange(t)
    place, row = t, 0
    for one, rates, rows in zip(clusters, own, plan.rows, strict=True):
        one["first"], one["rates"], one["row"], one["rows"] = place, len(rates), row, len(rows)
        columns[rates] = np.arange(len(rates))
        place, row = place + len(rates), row + len(rows)
    assert place == nv
    assert row == nc
    numbers = np.concatenate(plan.rows).astype(np.int64)
    owners = np.full(nv, TRUNK)
    for number, rates in enumerate(plan.rates):
        owners[rates] = number
    splits = np.zeros((2, nc), ROW)
    splits["level"] = whole.rows[0]["level"][numbers]
    return ClusterArrays(
        np.array([clusters, clusters]),
        np.array([*trunk, *(k for rates in own for k in rates)], np.int64), columns,
        owners_of_efforts(whole, owners), numbers, np.zeros((2, nv, m + T)),
        np.zeros((2, n * (m + T), m)), np.zeros((2, 2, n, m)), np.zeros((nc, m + T)),
        np.zeros((2, nc, T)), np.zeros((2, nc, m)), np.zeros((2, nc, most)), splits,
        np.zeros((2, t, T)), np.zeros((2, 2, t, T)), np.zeros((t, T)), np.zeros((2, 2, T)),
        np.zeros((2, T)), np.zeros((n, m + T)), np.zeros((n, m)), np.zeros(nc), np.zeros((nc, nv)),
    )  # fmt: skip


def owners_of_efforts(whole: Solver, owners: Ints) -> Ints:
    """Cluster that each force of a solver is within, or the trunk, by those of the rates (nv,)."""
    found = np.full(len(whole.efforts), TRUNK)
    whole_lines = np.flatnonzero(whole.encoded.elements["kind"] != STRETCH)
    numbers = len(whole.mechanism.efforts) + whole_lines
    for number, members in zip(numbers, pushed_axes(whole.encoded), strict=True):
        found[number] = max((int(owners[k]) for k in members if k >= 0), default=TRUNK)
    return found
