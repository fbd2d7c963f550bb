"""Error texts of states and steps that cannot be."""

from typing import NoReturn

import numpy as np

from bulletbridge.constraints.arrays import Encoded
from bulletbridge.engine.correction import FARTHEST
from bulletbridge.engine.likely_mistakes import likely_mistakes
from bulletbridge.engine.records import (
    AT_LIMIT,
    CONTRADICTED,
    CREEPING,
    LEAPT,
    LEFT_OPEN,
    MODIFIED_EULER,
    NOT_CLOSED,
    NOT_FINITE,
    NOT_RESOLVED,
    RATES_LOST,
)
from bulletbridge.engine.redundancy import Decision
from bulletbridge.engine.springs import fast_damper
from bulletbridge.engine.stepper import REFINEMENTS, Solver
from bulletbridge.engine.whitened import owner, weakest, whiten
from bulletbridge.errors import (
    AssemblyError,
    ModelError,
    OverconstrainedError,
    StepError,
)
from bulletbridge.numerics.records import Array

NEAR_SINGULAR = 1e-3
"""Singular value of the kept rows, over the largest, below which a failure is blamed on it: there
a rate along the loops is amplified a thousand times in what they do not hold."""
HARDLY = 1e-9
"""Rate or acceleration of a row that is round-off, in lengths or radians by s or s²."""
MOST_NAMED = 3
"""Further loops that are named where several are open."""
TRIED = f"nor could it be done in parts, down to dt / {REFINEMENTS[-1]}"
"""Attempts before a step is given up, in words."""
BY_OTHERS = ", by verlet and semi_implicit_euler too, nor under error control by dop853"
"""And where ``Solver`` has refined it."""
TAUT = ", as a chain is that is as long as what it spans: if so, give it slack"
"""What a singular position may be, and a way out."""
DRIVEN_PAST = (
    ", or as where a drive leads to the end of what the loops can reach: rates grow without bounds"
    " there, and past it no motion is left"
)
"""What else it may be where something is driven."""
LED_AGAINST = (
    ", against which a drive may lead to where rates grow without bounds and no motion is left:"
    " leave it more room, or prescribe less"
)
"""What may become of that."""


def check_finite(*arrays: Array) -> None:
    """Refuse NaN and infinity."""
    if not all(np.all(np.isfinite(x)) for x in arrays):
        raise ModelError(
            "the state has numbers that are not finite; set all joints to finite values"
        )


def require_closed(
    solver: Solver, q: Array, t: float, allowed: float, tried: str = "", why: str = ""
) -> None:
    """Refuse a configuration that is open by more than ``allowed``, in lengths or radians.

    Args:
        solver: Of the rows that count.
        q: (nq,)
        t: [s]
        allowed: Largest residual.
        tried: How a nearer one was looked for, if it was.
        why: What is wrong, where that is known, and what to do.
    """
    encoded = solver.encoded
    gap = np.abs(encoded.scale * solver.gaps_at(q, t))
    worst = int(np.argmax(gap)) if len(gap) else 0
    if not len(gap) or gap[worst] <= allowed:
        return

    def said(row: int) -> str:
        if encoded.in_metres[row]:
            return f"{gap[row] / encoded.scale[row]:.3g} m"
        return f"{gap[row]:.3g} rad"

    unit, scale = ("m", encoded.scale[worst]) if encoded.in_metres[worst] else ("rad", 1.0)
    widest = [part.start + int(np.argmax(gap[part])) for part in _parts(encoded)]
    others = sorted((row for row in widest if gap[row] > allowed and row != worst), key=gap.take)
    named = [f"'{owner(encoded, row)}' {said(row)}" for row in reversed(others)]
    rest = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    also = f", with {', '.join(named[:MOST_NAMED])}{rest}" if named else ""
    raise AssemblyError(
        f"loop '{owner(encoded, worst)}' cannot close: gap {said(worst)} "
        f"(limit {allowed / scale:.1g} {unit}){also}{f', {tried}' if tried else ''}; "
        + (
            why
            or "call assemble() with a start nearer to closure ('start' in a loops file), "
            "hold fewer joints, or check link lengths and frames"
        )
    )


def _parts(encoded: Encoded) -> list[slice]:
    """Rows of every constraint that has some."""
    return [part for part in encoded.rows.values() if part.stop > part.start]


FEWER_ROWS = "use joint models with fewer rows, for example ball instead of weld"
LEAVE_OUT = "leave one of them out, or give the mechanism a joint more"
ROWS_OF_BALL = 3


def require_freedom(solver: Solver, decision: Decision) -> None:
    """Refuse a structure, unless it is driven.

    Args:
        solver: Of the rows as written.
        decision: About them.
    """
    nv = solver.mechanism.nv
    if decision.cap < nv or decision.encoded.motions or not decision.encoded.nc:
        return
    counts = ", ".join(f"'{n}' {r.rows} rows" for n, r in decision.by_name.items())
    fewer = any(r.rows > ROWS_OF_BALL for r in decision.by_name.values())
    remedy = likely_mistakes(solver, decision.by_name) or (FEWER_ROWS if fewer else LEAVE_OUT)
    raise OverconstrainedError(
        f"the constraints leave no freedom: {decision.cap} independent rows on "
        f"{nv} rates ({counts}); {remedy}, or let it stand by allow_structure=True (in a loops"
        " file 'allow_structure: true')"
    )


def explain(solver: Solver, failure: int, by_others: bool, against: str = "") -> str:
    """Why a step could not be finished, what was tried, by other methods too, and what to try.

    ``against``: what stood in its way, limits and contacts, in words.
    """
    begun = f"step at t = {solver.t:.6g} s"
    c = solver.control[0]
    by_others &= failure != LEFT_OPEN and not c["controlled"] and c["integrator"] < MODIFIED_EULER
    others = BY_OTHERS if by_others else ""
    tried = "" if c["controlled"] else f", {TRIED}{others}"
    undone = f"{tried}; the state before it was restored"
    blocked = f"; {against} stood in the way{LED_AGAINST}" if against else ""
    if failure == NOT_FINITE:
        damper = fast_damper(solver)
        return (
            f"{begun} gave numbers that are not finite{undone}{near_singular(solver)}; "
            + (f"{damper}; " if damper else "")
            + "check tau for NaN and masses for zero, or use a smaller dt"
        )
    apart = parting(solver) if failure in (CONTRADICTED, LEFT_OPEN) else ""
    if apart:
        return (
            f"{begun}: constraints contradict each other: {apart} and nothing that the "
            f"others leave free can close it{undone}{near_singular(solver)}{blocked}; check the "
            f"motions of driven constraints, and whether the mechanism has reached a position it "
            f"cannot pass"
        )
    if failure == AT_LIMIT:
        return (
            f"{begun} leads to a joint limit, where many worlds in one call end; the state"
            f" before it was restored; load with limits=False, or step the system by itself"
        )
    if failure in (NOT_RESOLVED, NOT_CLOSED, CREEPING, CONTRADICTED, LEFT_OPEN) and c["controlled"]:
        open_there = f", and '{widest(solver)}' opens first" if failure == NOT_CLOSED else ""
        return (
            f"{begun}: error control came no further than t = {float(c['t']):.9g} s, where it asks "
            f"for sub-steps of {float(c['next_dt']):.1e} s{open_there}; the state before it was "
            f"restored{near_singular(solver)}; "
            f"check whether the mechanism has reached a position it cannot pass, or where rates "
            f"grow without bounds, and look for forces that jump; or use a larger rtol, a smaller "
            f"dt, or an integrator of fixed steps"
        )
    if failure == NOT_RESOLVED:
        return (
            f"{begun} would take sub-steps that are too short, or its implicit equations have no "
            f"solution in reach{undone}; use a larger rtol, a smaller dt "
            f"or another integrator, and look for forces that jump"
        )
    if failure == RATES_LOST:
        c = solver.control[0]
        return (
            f"{begun}: {float(c['kinetic_before']):.3g} J of motion become"
            f" {float(c['kinetic_after']):.3g} J, which nothing has taken{undone}"
            f"{near_singular(solver)}; start with rates that a motion can go on with, or use a"
            f" smaller dt"
        )
    if failure == LEAPT:
        return (
            f"{begun}: {leapt(solver)}{undone}{near_singular(solver)}{blocked}; use a smaller dt, "
            f"look for forces that jump, for springs and dampers that are too stiff for explicit "
            f"steps, and for contacts and limits that ask for what the constraints forbid"
        )
    assert failure == NOT_CLOSED
    return (
        f"{begun}: {opened(solver)} after the last correction pass{undone}"
        f"{near_singular(solver)}{blocked}; use a smaller dt, or check whether the mechanism has "
        f"reached a position it cannot pass"
    )


def leapt(solver: Solver) -> str:
    """Which joint's rate no force can have made, and the energies."""
    c, axis = solver.control[0], int(solver.control[0]["worst"])
    name, unit = f"rate {axis}", ""
    for joint in solver.mechanism.joints.values():
        if joint.v.start <= axis < joint.v.stop:
            along = joint.kind in ("prismatic", "beam") or axis >= joint.v.start + 3
            name, unit = f"joint '{joint.name}'", "m/s" if along else "rad/s"
    return (
        f"{name} leaps from {float(c['rate_before']):.3g} to {float(c['rate_after']):.3g} {unit} "
        f"and the kinetic energy from {float(c['kinetic_before']):.3g} to "
        f"{float(c['kinetic_after']):.3g} J, where all that acts{' but drives' * bool(c['driven'])}"
        f" can have added {float(c['given']):.2g} J"
    )


def near_singular(solver: Solver) -> str:
    """Which constraint is all but met by itself at the state, if one is, and a way out."""
    name, ratio = weakest(solver)
    if ratio >= NEAR_SINGULAR:
        return ""
    return (
        f"; the mechanism is at or near a singular position of '{name}' (singular value {ratio:.1e}"
        f" of the largest){TAUT}{DRIVEN_PAST if solver.encoded.motions else ''}"
    )


def widest(solver: Solver) -> str:
    """Which constraint was open furthest at the end of a step that failed."""
    worst, encoded = int(solver.control[0]["worst"]), solver.encoded
    return list(encoded.rows)[-1 - worst] if worst < 0 else owner(encoded, worst)


def opened(solver: Solver) -> str:
    """Which constraint was open at the end of a step that failed, and by how much."""
    c, encoded, name = solver.control[0], solver.encoded, widest(solver)
    worst, gap = int(c["worst"]), float(c["gap"])
    if worst < 0:
        loop = encoded.loops[-1 - worst]
        first = int(loop["rows"]) - (1 if loop["variable"] else 0)
        left = loop["force"][first : first + int(loop["left"])]
        in_metres = bool(np.any(left))
    else:
        in_metres = bool(encoded.in_metres[worst])
    unit, size = ("m", encoded.length) if in_metres else ("rad", 1.0)
    if int(c["slipping"]):
        holds = worst < 0 or encoded.has_position[worst]
        return f"'{name}' {'opens' if holds else 'slips'} by {gap * size:.3g} {unit}/s"
    return f"'{name}' stays open by {gap * size:.3g} {unit}"


def parting(solver: Solver) -> str:
    """How far a constraint that contradicts others was open; under error control how fast it opens.

    Sub-steps are as short as they happen to be there, and the gap is what that leaves of it. Empty
    where that is none, as where a drive leads to the end of what loops can reach.
    """
    c, encoded = solver.control[0], solver.encoded
    if not c["controlled"] or int(c["worst"]) < 0:
        return opened(solver)
    terms = solver.terms(solver.q, solver.v, solver.t)
    scale = solver.rows[0]["scale"]
    rows = whiten(terms.M, scale[:, None] * terms.J)
    inverse = np.linalg.pinv(rows, rcond=float(c["filter_rtol"]))
    for asked, unit in ((scale * terms.g_t, "s"), (scale * terms.gamma, "s²")):
        left: Array = np.abs(asked - rows @ (inverse @ asked))
        worst = int(np.argmax(left))
        if left[worst] > HARDLY:
            kind = "m" if encoded.in_metres[worst] else "rad"
            return (
                f"'{owner(encoded, worst)}' opens by {left[worst] / scale[worst]:.3g} {kind}/{unit}"
            )
    return opened(solver) if c["slipping"] or float(c["gap"]) > FARTHEST else ""


def raise_failure(
    solver: Solver, failure: int, by_others: bool, against: str = "", why: str = ""
) -> NoReturn:
    """Say why a step could not be finished, after it was tried in parts, by other methods too.

    ``why``: what else is known of where it was to end; else as of ``explain``.
    """
    said = explain(solver, failure, by_others, against)
    raise StepError(f"{said}; {why}" if why else said)
