"""Room for rows of contacts in an elimination of links."""

import numpy as np

from bulletbridge.compilation.block_sizes import in_blocks
from bulletbridge.engine.choose import cost_as_a_whole, cost_of_sparse
from bulletbridge.engine.sparse_plan import (
    NO_SLOTS,
    Slots,
    SparseStepper,
    Touching,
    factor_size,
    lay_out,
    update_size,
    widest_front,
)
from bulletbridge.engine.stepper import Solver
from bulletbridge.inequalities.link_rows import LinkArrays
from bulletbridge.numerics.contact_islands import islands_of
from bulletbridge.numerics.records import Ints

ROWS_OF_CONTACT = 6
PLANNED_FOR = 2000
"""Steps times the square of the bodies that are made without links before these are planned anew
for what touches now: a plan costs as much as some of such steps do."""
MOST_PER_BODY = 4
"""Pairs of bodies, for each body, for which there is a plan; of more it has only those of now."""
SPARE = 2
"""Contacts at a body for which there is room besides those that were there."""
MOST_TIMES = 12.0
"""How many times a smooth step by elimination of links a dense one may take where contacts or
sticking points act beside loops: each try of their impulses eliminates all links again."""


def link_arrays(whole: Solver, contacts: int) -> LinkArrays:
    """Room for ``contacts`` contacts of a system that is stepped by elimination of links."""
    mechanism, encoded = whole.mechanism, whole.encoded
    assert isinstance(whole.stepper, SparseStepper)
    plan = whole.stepper.plan
    hang = steps_by_links(whole)
    slots = Slots(plan.touching.most, ROWS_OF_CONTACT) if hang and contacts else NO_SLOTS
    nb, nv, nc, k = len(mechanism.bodies), mechanism.nv, encoded.nc, len(plan.basis)
    rows, dropped = ROWS_OF_CONTACT * contacts, nc - int(whole.control[0]["cap"])
    fronts, joins, _, _, widths, places = lay_out(mechanism, encoded, plan, dropped, slots)
    own = lay_out(mechanism, encoded, plan, dropped).fronts  # those of the loops alone
    last = fronts[-1]
    widest = widest_front(fronts, k)
    inverted = int((own["rates"] + own["max_rows"] + own["boundary_size"]).max()) if contacts else 0
    body_widths = np.zeros(nb, np.int64)
    body_widths[fronts["body"]] = fronts["rates"]
    front_of = np.zeros(nb, np.int64)
    front_of[plan.order] = np.arange(len(plan.order))
    return LinkArrays(
        fronts,
        np.array([body for bodies in plan.boundary for body in bodies], np.int64),
        widths,
        places,
        joins,
        np.zeros(int(last["row"] + last["max_rows"]), np.int64),
        np.ones(nc + rows, np.int64),
        np.zeros((nc + rows, 2, k)),
        np.zeros(nc + rows),
        np.zeros(1),
        np.zeros(int(last["turn"] + last["boundary_size"] * last["max_rows"])),
        np.zeros(int(last["update"]) + update_size(last)),
        np.zeros(int(last["factor"]) + factor_size(last)),
        np.zeros((widest, in_blocks(widest))),
        np.zeros(max(widest, k)),
        np.zeros(in_blocks(widest)),
        np.zeros(nc + rows),
        np.zeros((2, rows, 2), np.int64),
        np.zeros((2, rows, 2, k)),
        front_of,
        np.zeros(len(fronts), np.int64),
        np.array([slots.joins]),
        np.zeros(rows),
        np.zeros((len(fronts), inverted, inverted)),
        np.zeros(max(inverted, 1), np.int64),
        np.zeros(nv),
        np.zeros(nv),
        np.zeros((2, nc + rows)),
        islands_of(0 if is_tied(whole) or not hang else rows, body_widths),
    )


def steps_by_links(whole: Solver) -> bool:
    """Whether contacts of a system may be solved for by elimination of links."""
    if not isinstance(whole.stepper, SparseStepper):
        return False
    return bool(np.all(whole.mechanism.bodies["parent"][1:] == 0))


def is_tied(whole: Solver) -> bool:
    """Whether loops or springs join bodies that are eliminated one by one."""
    assert isinstance(whole.stepper, SparseStepper)
    return whole.encoded.nc > 0 or len(whole.stepper.arrays.ties) > 0


def links_pay_beside_loops(whole: Solver, stepper: SparseStepper) -> bool:
    """Whether links are to be eliminated where bodies that are tied touch something, or stick.

    Springs alone ask for no closing, whose tries are what costs.
    """
    if whole.backend == "sparse" or whole.encoded.nc == 0:
        return True
    return cost_as_a_whole(whole) > MOST_TIMES * cost_of_sparse(whole, stepper.plan)


def touching_now(stepper: SparseStepper, contacts: np.ndarray) -> Touching | None:
    """What a plan is to have room for where a step by links had none for contacts (n,); else None.

    That is where bodies touch that the plan does not have side by side, or at more points.
    """
    plan = stepper.plan
    at = np.zeros(max(plan.order, default=0) + 1, np.int64)
    at[plan.order] = np.arange(len(plan.order))
    ends: Ints = np.sort(np.column_stack([contacts["body_a"], contacts["body_b"]]), axis=1)
    between = ends[ends[:, 0] > 0]
    now = {(a, b) for a, b in between.tolist()}
    missing = any(
        max(pair, key=at.__getitem__) not in plan.boundary[min(at[pair[0]], at[pair[1]])]
        for pair in now
    )
    first = np.concatenate([at[ends[ends[:, 0] == 0, 1]], at[between].min(axis=1)])
    most = int(np.bincount(first).max(initial=0))
    if not missing and most <= plan.touching.most:
        return None
    both = now | {(a, b) for a, b in plan.touching.pairs.tolist()}
    kept = both if len(both) <= MOST_PER_BODY * len(plan.order) else now
    room = plan.touching.most if most <= plan.touching.most else most + SPARE
    return Touching(np.array(sorted(kept), np.int64).reshape(-1, 2), room)
