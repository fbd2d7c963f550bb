"""Room for rows of contacts in an elimination of links."""

import numpy as np

from bulletbridge.engine.sparse_plan import (
    NO_SLOTS,
    Slots,
    SparseStepper,
    factor_size,
    lay_out,
    minimum_degree_order,
    update_size,
)
from bulletbridge.engine.stepper import Solver
from bulletbridge.inequalities.link_rows import LinkArrays

CONTACTS_OF_BODY, ROWS_OF_CONTACT = 4, 6
"""Room for what is eliminated beside one body; what has more is solved without links."""


def link_arrays(whole: Solver, contacts: int) -> LinkArrays:
    """Room for ``contacts`` contacts of a system that is stepped by elimination of links."""
    mechanism, encoded = whole.mechanism, whole.encoded
    plan = minimum_degree_order(mechanism, encoded)
    hang = bool(np.all(mechanism.bodies["parent"][1:] == 0))
    slots = Slots(CONTACTS_OF_BODY, ROWS_OF_CONTACT) if hang and contacts else NO_SLOTS
    nb, nv, nc, k = len(mechanism.bodies), mechanism.nv, encoded.nc, len(plan.basis)
    rows, dropped = ROWS_OF_CONTACT * contacts, nc - int(whole.control[0]["cap"])
    fronts, joins, widths, places = lay_out(mechanism, encoded, plan, dropped, slots)
    own = lay_out(mechanism, encoded, plan, dropped)[0]  # those of the loops alone
    last = fronts[-1]
    widest = int((fronts["rates"] + fronts["max_rows"] + fronts["boundary_size"] + k).max())
    inverted = int((own["rates"] + own["max_rows"] + own["boundary_size"]).max()) if contacts else 0
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
        np.zeros((widest, widest)),
        np.zeros(max(widest, k)),
        np.zeros(widest),
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
    )


def steps_by_links(whole: Solver) -> bool:
    """Whether contacts of a system may be solved for by elimination of links."""
    sparse = isinstance(whole.stepper, SparseStepper)
    return sparse and bool(np.all(whole.mechanism.bodies["parent"][1:] == 0))
