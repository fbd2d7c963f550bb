"""Constraints that come and go while a system moves: grasp, release, hand over, change a tool.

The mechanism is not read again. What was decided about a set of constraints is kept for when the
same set comes back. Positions do not jump; velocities change by the velocity filter, which is the
plastic impact between what is joined.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bulletbridge.constraints.encode import Constraint, require_constraint
from bulletbridge.engine.tasks import PROJECT
from bulletbridge.errors import AssemblyError, ModelError
from bulletbridge.formulations.stabilise import FILTER_RTOL
from bulletbridge.formulations.system_dynamics import split_here
from bulletbridge.numerics.records import Array
from bulletbridge.system.active_constraints import ASSEMBLED, ActiveConstraints, ActiveSet
from bulletbridge.system.carrying import require_rigid, where_it_is
from bulletbridge.system.evaluation import Reaction, kinematics_at, wrenches


@dataclass(frozen=True)
class Connection:
    """What connecting did.

    Attributes:
        constraint: As it was connected: ``as_is`` gives it a frame, length or offset of its own.
        impulses: What each constraint did in that instant, by name, as in ``System.reactions`` but
            in N s and N m s: on the link of frame b, the opposite on that of frame a.
        change: (nv,) of the velocity.
        energy_lost: Kinetic energy that the impact took [J]; negative where a drive gave some.
    """

    constraint: Constraint
    impulses: dict[str, Reaction]
    change: Array
    energy_lost: float

    @property
    def impulse(self) -> Reaction:
        """Impulse of the new constraint."""
        return self.impulses[self.constraint.name]


def require_new(active: ActiveConstraints, constraint: Constraint) -> None:
    """Refuse to connect what is connected already, or cannot come and go."""
    require_constraint(constraint)
    if constraint.name in (c.name for c in active.constraints):
        raise ModelError(
            f"'{constraint.name}' is connected already; disconnect it, or use another name"
        )
    require_rigid(constraint)


def connected(active: ActiveConstraints, name: str) -> Constraint:
    """The constraint of this name, which may be disconnected.

    Raises:
        ModelError: No constraint has this name, or it cannot come and go.
    """
    found = [c for c in active.constraints if c.name == name]
    if not found:
        known = ", ".join(c.name for c in active.constraints) or "none"
        raise ModelError(f"unknown constraint '{name}'; connected: {known}")
    require_rigid(found[0])
    return found[0]


def join(
    active: ActiveConstraints, constraint: Constraint, as_is: bool, assemble: bool, tolerance: float
) -> tuple[ActiveSet, Connection]:
    """The constraints with one more, at the state after the impact, and what that was.

    Arguments are those of ``System.connect``; a system that was assembled goes on as it is until
    it takes what comes out.

    Raises:
        ModelError: The constraint names what does not exist.
        AssemblyError: The gap is too wide, or cannot be closed.
        OverconstrainedError: Nothing could move any more.
    """
    t, before = active.t, active.v
    if as_is:
        given = np.inf if assemble else tolerance
        here = kinematics_at(active.solver, active.q, before, t)
        constraint = where_it_is(constraint, here, given)
    chosen = active.find((*active.constraints, constraint), tolerance, assemble)
    solver = chosen.solver
    if assemble:
        free = active.nothing_held()
        solver.q[:], _ = active.close(solver, chosen.decision, active.q, free)
    if solver.run(PROJECT):
        raise AssemblyError(
            f"'{constraint.name}' cannot be closed from here; pass assemble=True, or as_is=True"
        )
    terms, change = solver.terms(solver.q, solver.v, t), solver.v - before
    push: Array = terms.M @ change
    lost = -0.5 * float(push @ (before + solver.v))
    split = split_here(solver, terms, FILTER_RTOL)
    impulses = wrenches(solver, chosen.decision.by_name, terms, push, t, split)
    return chosen, Connection(constraint, impulses, change, lost)


def separate(active: ActiveConstraints, name: str) -> ActiveSet:
    """The constraints without one of them, at the present state."""
    rest = tuple(c for c in active.constraints if c.name != name)
    return active.find(rest, ASSEMBLED + active.mismatch, False)


def exchange(active: ActiveConstraints, constraints: Sequence[Constraint]) -> ActiveSet:
    """Other constraints in the place of all, with the velocity filtered.

    Raises:
        ModelError: A constraint names what does not exist.
        AssemblyError: A gap is too wide, or cannot be closed.
    """
    chosen = active.find(tuple(constraints), ASSEMBLED, False)
    if chosen.solver.run(PROJECT):
        raise AssemblyError("the constraints cannot be closed from here; call assemble()")
    return chosen
