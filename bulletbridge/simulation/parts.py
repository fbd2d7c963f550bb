"""In which way a system is stepped: as one, island by island, or link by link."""

import numpy as np

from bulletbridge.formulations.arrays import DOP8, RK4
from bulletbridge.mechanism.layout import DRAG
from bulletbridge.simulation.islands import find_parts, islands_of, work
from bulletbridge.simulation.links import Links, Plan, lay_out, make_plan
from bulletbridge.simulation.redundancy import SPREAD, Decision
from bulletbridge.simulation.solver import Parts, Solver

PER_BODY, PER_OPERATION = 0.3, 8e-5
"""Cost of a step in joint coordinates [µs]: of a body's kinematics, of one of ``islands.work``."""
AT_ALL, PER_FRONT, PER_ENTRY = 1.6, 0.275, 2e-3
"""Cost of a step in link coordinates [µs], of a front, of one entry of its matrix."""
STAGED = 0.9
"""What steps with several stages cost of that, if a step in joint coordinates is the measure."""


def parts_of(whole: Solver, decision: Decision) -> Parts | None:
    """The way that costs least, from estimates measured on ladders of four-bars; None for as one.

    Link coordinates win from some sixteen loops on side by side, from twenty that are stacked;
    where an integrator has several stages, from some twelve and from sixteen on.
    Couplings, beams, a user's rows and force elements join bodies in ways that link coordinates do
    not know, and stay in joint coordinates. So do rows that hold velocities where some depend on
    others: links are eliminated in an order of their own.
    """
    islands = islands_of(whole, decision)
    others = len(whole.encoded.couplings), len(whole.beams), np.any(whole.efforts["kind"] != DRAG)
    rates = whole.encoded.nc - int(whole.encoded.has_position.sum())
    ordered = rates > 0 and decision.caps.rows < whole.encoded.nc
    if whole.user_size or any(others) or ordered:
        return islands
    parts = find_parts(whole.mechanism, whole.encoded)
    sizes = [(len(part.v), len(part.rows)) for part in parts]
    if islands is None:
        sizes = [(whole.mechanism.nv, whole.encoded.nc)]
    cost = PER_BODY * len(whole.bodies) + PER_OPERATION * sum(work(*size) for size in sizes)
    plan = make_plan(whole.mechanism, whole.encoded)
    share = STAGED if whole.control[0]["integrator"] in (RK4, DOP8) else 1.0
    return Links(whole, plan) if share * cost_in_links(whole, plan) < cost else islands


def copy_of(settings: Solver, decision: Decision) -> Solver:
    """A solver of the rows that were kept, with settings and state of another."""
    solver = Solver(settings.mechanism, decision.encoded, settings.tolerances)
    mismatch = SPREAD * decision.mismatch
    solver.decide_rank(decision.caps, decision.scale, mismatch, decision.most_left)
    solver.apply_settings(settings)
    solver.state[:] = settings.state
    solver.parts = parts_of(solver, decision)
    return solver


def cost_in_links(whole: Solver, plan: Plan) -> float:
    """Cost of a step in link coordinates [µs], with one row passed on by each front."""
    fronts, joins, _, _ = lay_out(whole.mechanism, whole.encoded, plan, 0)
    entries = 0.0
    for front in fronts:
        rows = joins["rows"][front["join"] : front["join"] + front["joins"]].sum() + 1
        entries += float(front["size"] + front["own"] + front["span"] + rows) ** 2
    return AT_ALL + PER_FRONT * len(fronts) + PER_ENTRY * entries
