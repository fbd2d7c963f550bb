"""Choice of the backend that steps a system: dense, by islands, by clusters, or sparse."""

from collections.abc import Callable
from functools import partial

import numpy as np

from bulletbridge.engine.clusters_plan import (
    ClusterPlan,
    ClusterStepper,
    find_clusters,
    has_local_rank,
)
from bulletbridge.engine.islands import Islands, IslandStepper, find_islands, work
from bulletbridge.engine.modified import GIVEN_METRIC
from bulletbridge.engine.records import CHARTS, CHARTS_TRAPEZOIDAL, DOP8, RADAU, RK4
from bulletbridge.engine.redundancy import SPREAD, Decision
from bulletbridge.engine.sparse_plan import (
    EliminationOrder,
    SparseStepper,
    lay_out,
    minimum_degree_order,
)
from bulletbridge.engine.stepper import CompiledStepper, Solver
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.records import DRAG, WRENCH

LEAST_GAIN = 1e4
"""Operations that each island must save: what taking its slices costs."""
SHORT_LINES, PER_CLUSTER, OF_CLUSTERS = 3.0, 2.4e3, 4.8e3
"""What an operation of a cluster takes beside one of the whole, whose lines are longer; operations
that a cluster costs beside them, and all: rates are handed back and forth. Fitted to nine robots
and walkers, with an error of some six thousand operations."""
PER_BODY, PER_OPERATION = 0.25, 1.25e-4
"""Cost of a step in joint coordinates [µs]: of a body's kinematics, of one of ``islands.work``."""
AT_ALL, PER_FRONT, PER_ENTRY, PER_PASSED = 0.7, 0.11, 2.8e-3, 0.33
"""Cost of a step in link coordinates [µs], of a front, of one entry of its matrix, of a row that a
front passes on. All six are of one fit to fourteen rows, ladders and walkers, so that what they are
compared by, their ratios, are of one machine; what they say of link coordinates errs by some ten
percent."""
STAGED = 0.9
"""Cost of steps with several stages as a share of that, measured by a step of the dense backend."""


def choose_stepper(whole: Solver, decision: Decision) -> CompiledStepper | None:
    """The way to step a system that was asked for, else the cheapest; None: as one, dense.

    Estimates of what each costs were measured on ladders of four-bars and on walkers: link
    coordinates win from some fifteen loops on side by side, from eighteen that are stacked, and
    from two dozen in legs of three; where an integrator has several stages, somewhat sooner.

    Raises:
        ModelError: Sparse steps were asked for, and there is something that they do not know; or
            charts, and there are rows that hold velocities alone.
    """
    integrator, positions = whole.control[0]["integrator"], whole.encoded.has_position
    if integrator in (CHARTS, CHARTS_TRAPEZOIDAL) and not positions.all():
        raise ModelError(
            "charts are of loops that hold positions, and a rolling contact or another constraint"
            " holds a velocity alone; give another integrator, as 'rk4'"
        )
    if whole.backend == "dense":
        return None
    members = find_islands(whole.mechanism, whole.encoded)
    # a user's rows may join anything, as may forces of the state; kernels of islands ask nobody
    asks = whole.user_size > 0 or whole.is_prescribed_by_stage or bool(whole.asked_forces)
    joined = asks or whole.control[0]["weighting"] == GIVEN_METRIC  # as may a metric
    several = len(members) > 1 and not joined
    whole.islands = islands = Islands(whole, decision, members) if several else None
    obstacle = obstacle_to_sparse(whole, decision)
    if whole.backend == "sparse":
        if obstacle:
            raise ModelError(f"solver='sparse' does not know {obstacle}; leave solver out")
        return SparseStepper(whole, minimum_degree_order(whole.mechanism, whole.encoded))
    clusters = None if obstacle_to_clusters(whole) else clusters_of(whole, decision)
    if whole.backend == "clusters":
        if clusters is None:
            known = obstacle_to_clusters(whole)
            raise ModelError(
                f"solver='clusters' does not know {known}; leave solver out"
                if known
                else "solver='clusters' finds no subtrees whose loops are their own, beside a trunk"
                " of few joints; leave solver out"
            )
        return ClusterStepper(whole, clusters)
    if whole.backend == "islands":
        return None if islands is None else IslandStepper(islands)
    sizes = [(len(island.v), len(island.rows)) for island in members]
    operations = work(whole.mechanism.nv, whole.encoded.nc)
    one_by_one = sum(work(*size) for size in sizes)
    make: Callable[[], CompiledStepper | None] = as_a_whole
    if islands is not None and operations - one_by_one > LEAST_GAIN * len(members):
        operations, make = one_by_one, partial(IslandStepper, islands)
    if integrator >= CHARTS:  # charts have full matrices, and so have other metrics
        return make()
    sampled = len(decision.jacobians) > 0 and integrator != RADAU
    if clusters is not None and sampled and operations_of(clusters) < operations:
        operations, make = operations_of(clusters), partial(ClusterStepper, whole, clusters)
    if not obstacle:
        plan = minimum_degree_order(whole.mechanism, whole.encoded)
        share = STAGED if integrator in (RK4, DOP8) else 1.0
        others = PER_BODY * len(whole.bodies) + PER_OPERATION * operations
        if share * cost_of_sparse(whole, plan) < others:
            return SparseStepper(whole, plan)
    return make()


def as_a_whole() -> None:
    """No stepper of its own: the dense kernel."""


def operations_of(plan: ClusterPlan) -> float:
    """Operations of the whole that a step by clusters takes as long as."""
    return SHORT_LINES * plan.work() + PER_CLUSTER * len(plan.rates) + OF_CLUSTERS


def clusters_of(whole: Solver, decision: Decision) -> ClusterPlan | None:
    """Clusters whose rows are as independent as they were found to be, at the samples if any."""
    plans = find_clusters(whole.mechanism, whole.encoded)
    return next((plan for plan in plans if has_local_rank(plan, decision)), None)


def obstacle_to_clusters(whole: Solver) -> str:
    """What a system has that clusters do not know; empty where there is nothing."""
    return in_words(
        {
            "flexible links": len(whole.beams) > 0,
            "springs and other force elements": has_elements(whole),
            "constraints of users": whole.user_size > 0,
        }
    )


def has_elements(whole: Solver) -> bool:
    """Whether forces act between frames that stiffness or damping belongs to."""
    return not np.isin(whole.efforts["kind"], (DRAG, WRENCH)).all()


def in_words(obstacles: dict[str, bool]) -> str:
    """Names of those that are there."""
    return " and ".join(name for name, there in obstacles.items() if there)


def obstacle_to_sparse(whole: Solver, decision: Decision) -> str:
    """What a system has that link coordinates do not know; empty where there is nothing."""
    encoded = whole.encoded
    rates = encoded.nc - int(encoded.has_position.sum())
    obstacles = {
        "couplings": len(encoded.couplings) > 0,
        "flexible links": len(whole.beams) > 0,
        "springs and other force elements": has_elements(whole),
        "constraints of users": whole.user_size > 0,
        # links are eliminated in an order of their own
        "rolling contacts and other rows of velocities of which some depend on others": (
            rates > 0 and decision.caps.rows < encoded.nc
        ),
    }
    return in_words(obstacles)


def copy_of(settings: Solver, decision: Decision) -> Solver:
    """A solver of the rows that were kept, with settings and state of another."""
    solver = Solver(settings.mechanism, decision.encoded, settings.tolerances)
    mismatch = SPREAD * decision.mismatch
    solver.decide_rank(decision.caps, decision.scale, mismatch, decision.most_left)
    solver.apply_settings(settings)
    solver.state[:] = settings.state
    solver.stepper = choose_stepper(solver, decision)
    return solver


def cost_of_sparse(whole: Solver, plan: EliminationOrder) -> float:
    """Cost of a step in link coordinates [µs]; fronts eliminate no more rows than they have rates.

    What is left of the rows is passed on to the next front.
    """
    fronts, joins, _, _ = lay_out(whole.mechanism, whole.encoded, plan, 0)
    entries, passed = 0.0, np.zeros(len(fronts), int)
    for n, front in enumerate(fronts):
        rows = int(joins["rows"][front["join"] : front["join"] + front["joins"]].sum())
        child = int(front["child"])
        while child >= 0:
            rows += passed[child]
            child = int(fronts[child]["sibling"])
        passed[n] = min(max(rows - int(front["rates"]), 0), int(front["max_delayed"]))
        entries += float(front["rates"] + front["own_size"] + front["boundary_size"] + rows) ** 2
    per_row = PER_PASSED * float(passed.sum())
    return AT_ALL + PER_FRONT * len(fronts) + PER_ENTRY * entries + per_row
