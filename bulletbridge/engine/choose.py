"""Choice of the backend that steps a system: dense, by islands, by clusters, or sparse."""

from collections.abc import Callable
from functools import partial

import numpy as np

from bulletbridge.engine.clusters_plan import ClusterPlan, ClusterStepper, find_clusters, local_rank
from bulletbridge.engine.islands import IslandMembers, Islands, IslandStepper, find_islands
from bulletbridge.engine.modified import GIVEN_METRIC
from bulletbridge.engine.records import CHARTS, CHARTS_TRAPEZOIDAL, DOP8, EULER, RADAU, RK4
from bulletbridge.engine.redundancy import Decision
from bulletbridge.engine.sparse_plan import (
    EliminationOrder,
    SparseStepper,
    lay_out,
    minimum_degree_order,
)
from bulletbridge.engine.stepper import CompiledStepper, Solver
from bulletbridge.engine.workspace import Tolerances
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Ints

PER_BODY, PER_COUPLED, PER_OPERATION = 0.36, 9.7e-3, 1.3e-4
"""Cost of a step in joint coordinates [µs]: of a body's kinematics, of a rate that moves another
one's body, which M couples, and of an operation of rows with each other."""
PER_ISLAND = 0.5
"""The same of an island, whose slices are taken."""
PER_CLUSTERED_OPERATION, PER_CLUSTER = 8e-5, 0.4
"""The same of an operation of clusters, and of a cluster, beside bodies."""
PER_CUBE = 5e-6
"""Of the cube of rates, where each body hangs from the world: their contacts are solved for by
links if these steps are, and else by M of all."""
AT_ALL, PER_FRONT, PER_ENTRY, PER_FURTHER = 1.2, 0.62, 1.9e-3, 0.4
"""Cost of a step in link coordinates [µs], of a front, of one entry of its matrix, and of two more
bodies that a row is on, as that of a coupling. All are of one fit to the ways of some fifty systems
by turns, of rows, ladders, walkers, robots, bundled models, and several of them side by side, so
that what they are compared by, their ratios, are of one machine. What is chosen by them took at
most 2 % longer than the fastest way there; ropes of six to nine free bodies up to 16 %, which stay
dense."""
SHARES = {EULER: 0.78, RK4: 0.78, DOP8: 0.78}
"""Cost of a step in link coordinates beside that in others, as a share of what it is with Verlet's
method, for which all of these are: factors count for more there, and solutions for less."""


def choose_stepper(whole: Solver, decision: Decision) -> CompiledStepper | None:
    """The way to step a system that was asked for, else the cheapest; None: as one, dense.

    Link coordinates win from some thirty loops on in a row, and from two dozen that are stacked;
    where an integrator has several stages, somewhat sooner. Of many small mechanisms that nothing
    joins each is a cluster, all in one call.
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
    whole.islands = islands = islands_among(members, whole, decision)
    obstacle = obstacle_to_sparse(whole, decision)
    if whole.backend == "sparse":
        if obstacle:
            raise ModelError(f"solver='sparse' does not know {obstacle}; leave solver out")
        return SparseStepper(whole, minimum_degree_order(whole.mechanism, whole.encoded))
    clusters = None
    if whole.backend == "clusters" or 2 * PER_CLUSTER < cost_of_factors(whole):
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
        return ClusterStepper(whole, clusters, islands)
    if whole.backend == "islands":
        return None if islands is None else IslandStepper(islands)
    of_bodies, cost = PER_BODY * len(whole.bodies), cost_as_a_whole(whole)
    make: Callable[[], CompiledStepper | None] = as_a_whole
    if len(decision.jacobians) == 0 or integrator == RADAU or integrator >= CHARTS:
        clusters = None  # nobody has looked whether their ranks are local, or matrices are full
    if islands is not None:
        each = [cost_of_rates(whole, one.v, len(one.rows)) + PER_ISLAND for one in members]
        if of_bodies + sum(each) < cost:
            cost, make = of_bodies + sum(each), partial(IslandStepper, islands)
    if integrator >= CHARTS:  # charts have full matrices, and so have other metrics
        return make()
    if clusters is not None and of_bodies + cost_of(clusters) < cost:
        cost = of_bodies + cost_of(clusters)
        make = partial(ClusterStepper, whole, clusters, islands)
    if not obstacle and least_of_sparse(whole) < cost:
        plan = minimum_degree_order(whole.mechanism, whole.encoded)
        if share_of(whole) * cost_of_sparse(whole, plan) < cost:
            return SparseStepper(whole, plan)
    return make()


def islands_among(
    members: list[IslandMembers], whole: Solver, decision: Decision
) -> Islands | None:
    """The islands of a solver, if there are several and nothing but its rows may join them.

    A user's rows may join anything, as may forces of the state, or a metric; kernels of islands ask
    nobody.
    """
    asks = whole.user_size > 0 or whole.is_prescribed_by_stage or bool(whole.asked_forces)
    joined = asks or whole.control[0]["weighting"] == GIVEN_METRIC
    return Islands(whole, decision, members) if len(members) > 1 and not joined else None


def may_be_sparse(whole: Solver) -> bool:
    """Whether ``choose_stepper`` may come to link coordinates; if not, told at little cost."""
    if whole.backend != "auto":
        return whole.backend == "sparse"
    return least_of_sparse(whole) < cost_as_a_whole(whole)


def cost_as_a_whole(whole: Solver) -> float:
    """Cost of a step in joint coordinates, dense [µs]."""
    return PER_BODY * len(whole.bodies) + cost_of_factors(whole)


def cost_of_factors(whole: Solver) -> float:
    """Cost of a step in joint coordinates as a whole, beside that of bodies [µs]."""
    nv, hang = whole.mechanism.nv, not whole.bodies["parent"][1:].any()
    of_contacts = PER_CUBE * nv**3 if hang else 0.0
    return cost_of_rates(whole, np.arange(nv), whole.encoded.nc) + of_contacts


def cost_of_rates(whole: Solver, rates: Ints, rows: int) -> float:
    """Cost in joint coordinates of whole trees with so many rows, beside that of bodies [µs]."""
    depth: dict[int, int] = {-1: 0}
    below = whole.mechanism.axes["below"][rates]
    for k, under in zip(rates.tolist(), below.tolist(), strict=True):
        depth[k] = depth[under] + 1
    return PER_COUPLED * sum(depth.values()) + PER_OPERATION * rows**2 * (len(depth) - 1)


def least_of_sparse(whole: Solver) -> float:
    """What a step in link coordinates costs at least [µs]: a front for every body but the world."""
    return share_of(whole) * (AT_ALL + PER_FRONT * (len(whole.bodies) - 1))


def share_of(whole: Solver) -> float:
    """Share of the cost of a step that its integrator takes: of ``SHARES``, or all."""
    return SHARES.get(int(whole.control[0]["integrator"]), 1.0)


def as_a_whole() -> None:
    """No stepper of its own: the dense kernel."""


def cost_of(plan: ClusterPlan) -> float:
    """Cost of a step by clusters beside that of bodies [µs]."""
    return PER_CLUSTERED_OPERATION * plan.operations() + PER_CLUSTER * len(plan.rates)


def clusters_of(whole: Solver, decision: Decision) -> ClusterPlan | None:
    """Clusters whose rows are as independent as they were found to be, at the samples if any."""
    plans = find_clusters(whole.mechanism, whole.encoded)
    samples, rank = decision.jacobians, decision.caps.rows
    return next((x for x in plans if all(local_rank(x, J) == rank for J in samples)), None)


def obstacle_to_clusters(whole: Solver) -> str:
    """What a system has that clusters do not know; empty where there is nothing."""
    there = {"flexible links": len(whole.beams), "constraints of users": whole.user_size}
    return " and ".join(name for name, count in there.items() if count)


def obstacle_to_sparse(whole: Solver, decision: Decision) -> str:
    """What a system has that link coordinates do not know; empty where there is nothing."""
    encoded, obstacles = whole.encoded, [obstacle_to_clusters(whole)]
    if decision.caps.rows < encoded.nc and not encoded.has_position.all():
        # links are eliminated in an order of their own
        obstacles.append(
            "rolling contacts and other rows of velocities of which some depend on others"
        )
    return " and ".join(filter(None, obstacles))


def solver_of(mechanism: Mechanism, decision: Decision, tolerances: Tolerances) -> Solver:
    """A dense solver of the rows that were kept."""
    solver = Solver(mechanism, decision.encoded, tolerances)
    solver.decide_rank(decision.caps, decision.scale, decision.slack, decision.most_left)
    return solver


def copy_of(settings: Solver, decision: Decision) -> Solver:
    """A solver of the rows that were kept, with settings and state of another."""
    solver = solver_of(settings.mechanism, decision, settings.tolerances)
    solver.apply_settings(settings)
    solver.state[:] = settings.state
    solver.stepper = choose_stepper(solver, decision)
    return solver


def cost_of_sparse(whole: Solver, plan: EliminationOrder) -> float:
    """Cost of a step in link coordinates [µs]; fronts eliminate no more rows than they have rates.

    What is left of the rows is passed on to the next front.
    """
    layout = lay_out(whole.mechanism, whole.encoded, plan, 0)
    fronts, joins, of_further = layout.fronts, layout.joins, PER_FURTHER * len(layout.further)
    entries, passed = 0.0, np.zeros(len(fronts), int)
    for n, front in enumerate(fronts):
        rows = int(joins["rows"][front["join"] : front["join"] + front["joins"]].sum())
        child = int(front["child"])
        while child >= 0:
            rows += passed[child]
            child = int(fronts[child]["sibling"])
        passed[n] = min(max(rows - int(front["rates"]), 0), int(front["max_delayed"]))
        entries += float(front["rates"] + front["own_size"] + front["boundary_size"] + rows) ** 2
    return AT_ALL + PER_FRONT * len(fronts) + PER_ENTRY * entries + of_further
