"""Sets of constraints in saved states: those in force and those that are remembered."""

from collections.abc import Mapping

from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.engine.choose import copy_of
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import ModelError
from bulletbridge.system.active_constraints import ActiveConstraints, ActiveSet
from bulletbridge.system.carrying import is_bounded
from bulletbridge.system.saved import Absent, KeptSet, thawed


def save_sets(active: ActiveConstraints) -> tuple[KeptSet, ...]:
    """The constraints in force, then those that are remembered, and all about them."""
    here = active.constraints, active.decision, active.full.memory(), active.solver.memory()
    others = (
        KeptSet(s.constraints, s.decision, s.full.memory(), s.solver.memory())
        for s in active.remembered
    )
    return KeptSet(*here), *others


def require_constraints(active: ActiveConstraints, sets: tuple[KeptSet, ...]) -> None:
    """Refuse sets that cannot be put back.

    Raises:
        ModelError: Constraints could not be pickled and are not here, or those with bounded
            forces, which cannot come and go, are others.
    """
    known = known_here(active)
    theirs = [resolved(kept, known) for kept in sets][0]
    bounded = [
        {c.name for c in constraints if is_bounded(c)}
        for constraints in (theirs, active.constraints)
    ]
    if bounded[0] != bounded[1]:
        raise ModelError(
            f"the state has the springs and constraints with forces within bounds"
            f" {sorted(bounded[0])}, this system has {sorted(bounded[1])}; they cannot come and"
            " go: restore it on a system that was made with them"
        )


def restore_sets(active: ActiveConstraints, sets: tuple[KeptSet, ...]) -> None:
    """Go on with the constraints that were in force."""
    ours, known = [*active.remembered], known_here(active)
    if active.decision is not None:
        here = active.constraints, active.full, active.solver, active.decision
        ours.insert(0, ActiveSet(*here))
    now, *others = sets
    chosen = [set_of(active, kept, ours, known) for kept in others]
    if now.decision is None:
        constraints = resolved(now, known)
        full = rows_of(active, constraints)
        full.recall(now.full)
        active.constraints, active.full, active.solver = constraints, full, full
        active.decision = None
    else:
        first = set_of(active, now, ours, known)
        active.constraints, active.full, active.solver, active.decision = first
    active.remembered = tuple(chosen)


def set_of(
    active: ActiveConstraints,
    kept: KeptSet,
    ours: list[ActiveSet],
    known: Mapping[str, Constraint],
) -> ActiveSet:
    """A set at its memory: one of ours that agrees, or made anew."""
    assert kept.decision is not None
    for one in ours:
        if tuple(c.name for c in one.constraints) == kept.names:
            if one.decision.agrees(kept.decision):
                break
    else:
        constraints = resolved(kept, known)
        full = rows_of(active, constraints)
        decision = thawed(kept.decision, full.encoded)
        full.recall(kept.full)  # settings, by which the way to step is chosen
        one = ActiveSet(constraints, full, copy_of(full, decision), decision)
    one.full.recall(kept.full)
    one.solver.recall(kept.solver)
    return one


def rows_of(active: ActiveConstraints, constraints: tuple[Constraint, ...]) -> Solver:
    """A solver of the rows as written, with the forces of ours."""
    encoded = encode_closed(active.mechanism, constraints)
    full = Solver(active.mechanism, encoded, active.tolerances)
    full.apply_settings(active.full)
    return full


def known_here(active: ActiveConstraints) -> dict[str, Constraint]:
    """Constraints of all sets by name, those in force first."""
    every = [c for s in reversed(active.remembered) for c in s.constraints]
    return {c.name: c for c in (*every, *active.constraints)}


def resolved(kept: KeptSet, known: Mapping[str, Constraint]) -> tuple[Constraint, ...]:
    """Constraints of a set; those that could not be pickled are the ones of the same name here.

    Raises:
        ModelError: There is none.
    """
    found: list[Constraint] = []
    for constraint in kept.constraints:
        if isinstance(constraint, Absent):
            if constraint.name not in known:
                raise ModelError(
                    f"the state has '{constraint.name}' connected, which could not be pickled"
                    f" ({constraint.why}) and is not here; connect it, and restore again"
                )
            constraint = known[constraint.name]
        found.append(constraint)
    return tuple(found)
