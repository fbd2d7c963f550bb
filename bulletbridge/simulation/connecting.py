"""Constraints that come and go while a system moves: grasp, release, hand over, change a tool.

The mechanism is not read again. What was decided about a set of constraints is kept for when the
same set comes back. Positions do not jump; velocities change by the velocity filter, which is the
plastic impact between what is joined.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.element_records import encode_closed
from bulletbridge.constraints.encode import Constraint
from bulletbridge.errors import AssemblyError, ModelError
from bulletbridge.formulations.stabilise import FILTER_RTOL
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.carrying import (
    carry_over,
    require_near,
    require_rigid,
    same,
    where_it_is,
)
from bulletbridge.simulation.evaluation import Reaction, wrenches
from bulletbridge.simulation.redundancy import Decision
from bulletbridge.simulation.solver import Solver
from bulletbridge.simulation.state import ASSEMBLED
from bulletbridge.simulation.state_queries import QueriedState
from bulletbridge.simulation.step import PROJECT
from bulletbridge.simulation.warm_up import announce_compilation

MOST_SETS = 32
"""Sets of constraints that are remembered."""


class ActiveSet(NamedTuple):
    """Constraints that act together, and what was decided about them."""

    constraints: tuple[Constraint, ...]
    full: Solver
    solver: Solver
    decision: Decision


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
        """That of the new constraint."""
        return self.impulses[self.constraint.name]


class Reconfigurable(QueriedState):
    """A state whose constraints may change."""

    _remembered: tuple[ActiveSet, ...] = ()

    def connect(
        self,
        constraint: Constraint,
        *,
        as_is: bool = False,
        assemble: bool = False,
        tolerance: float = ASSEMBLED,
    ) -> Connection:
        """Add a constraint from now on; velocities change by as little as it needs.

        The change is the shortest in the metric of M: a plastic impact, which keeps the momentum of
        what floats freely and never gains energy unless something is driven.

        Args:
            constraint: What joins the two links.
            as_is: Whether it takes what it finds: frame b is put where frame a is now, a distance
                gets the length and a coupling the offset of now.
            assemble: Whether joints may move to close it, as little as possible.
            tolerance: Gap that is closed without asking, in mechanism lengths or radians.

        Returns:
            Impulses and energy.

        Raises:
            ModelError: The name is taken, the constraint names what does not exist, or has bounded
                forces.
            AssemblyError: The gap is too wide, or cannot be closed.
            OverconstrainedError: Nothing could move any more.
        """
        if constraint.name in (c.name for c in self.constraints):
            raise ModelError(
                f"'{constraint.name}' is connected already; disconnect it, or use another name"
            )
        require_rigid(constraint)
        if self._decision is None:
            self._trim()
        if as_is:
            constraint = where_it_is(constraint, self.kinematics())
        chosen = self._find((*self.constraints, constraint), tolerance, assemble)
        before, t, solver = self.v, self.t, chosen.solver
        if assemble:
            free = np.zeros(self.mechanism.nv, bool)
            solver.q[:], _ = self._close(solver, chosen.decision, self.q, free)
        if solver.run(PROJECT):
            raise AssemblyError(
                f"'{constraint.name}' cannot be closed from here; pass assemble=True, or as_is=True"
            )
        terms, change = solver.terms(solver.q, solver.v, t), solver.v - before
        push: Array = terms.M @ change
        lost = -0.5 * float(push @ (before + solver.v))
        impulses = wrenches(solver, chosen.decision.by_name, terms, push, t, FILTER_RTOL)
        self._take(chosen)
        return Connection(constraint, impulses, change, lost)

    def disconnect(self, name: str) -> Constraint:
        """Take a constraint away; the state goes on as it is.

        Returns:
            The constraint, to be connected again.

        Raises:
            ModelError: No constraint has this name.
        """
        found = [c for c in self.constraints if c.name == name]
        if not found:
            known = ", ".join(c.name for c in self.constraints) or "none"
            raise ModelError(f"unknown constraint '{name}'; connected: {known}")
        require_rigid(found[0])
        if self._decision is None:
            self._trim()
        rest = tuple(c for c in self.constraints if c.name != name)
        self._take(self._find(rest, ASSEMBLED + self._full_mismatch(), False))
        return found[0]

    def exchange(self, constraints: Sequence[Constraint]) -> None:
        """Go on with other constraints, which the present configuration closes.

        Velocities change by the filter. All of them together may leave no freedom.

        Raises:
            ModelError: A constraint names what does not exist, or has bounded forces.
            AssemblyError: A gap is too wide, or cannot be closed.
        """
        if same(self.constraints, tuple(constraints)) and self._decision is not None:
            return
        for constraint in constraints:
            require_rigid(constraint)
        may_lock, self._allow_structure = self._allow_structure, True
        try:
            if self._decision is None:
                self._trim()
            chosen = self._find(tuple(constraints), ASSEMBLED, False)
        finally:
            self._allow_structure = may_lock
        if chosen.solver.run(PROJECT):
            raise AssemblyError("the constraints cannot be closed from here; call assemble()")
        self._take(chosen)

    def place(self, name: str, link: str, R: Array, p: Array, turn: Array) -> None:
        """Put frame a of a loop elsewhere on its link; see ``ClosedState.place``."""
        self._remembered = ()
        super().place(name, link, R, p, turn)

    def set_offset(self, name: str, offset: float) -> None:
        """Give a coupling another offset [rad or m]; the state is not touched."""
        self._remembered = ()
        super().set_offset(name, offset)

    def _find(
        self, constraints: tuple[Constraint, ...], tolerance: float, assemble: bool
    ) -> ActiveSet:
        """The set of these constraints at the present state, decided now or remembered."""
        for chosen in self._remembered:
            if same(chosen.constraints, constraints):
                chosen.full.apply_settings(self._full)
                chosen.solver.apply_settings(self._full)
                for solver in (chosen.full, chosen.solver):
                    solver.state[:], solver.control[0]["fresh"] = self._solver.state, 0
                if not assemble:
                    require_near(chosen.full, self.q, self.t, tolerance)
                return chosen
        encoded = encode_closed(self.mechanism, constraints)
        carry_over(self.encoded, encoded)
        with announce_compilation():
            full = Solver(self.mechanism, encoded, self.tolerances)
        full.apply_settings(self._full)
        full.state[:] = self._solver.state
        if not assemble:
            require_near(full, self.q, self.t, tolerance)
        solver, decision, _, _ = self._decide(full, self.q, np.zeros(self.mechanism.nv, bool))
        return ActiveSet(constraints, full, solver, decision)

    def _take(self, chosen: ActiveSet) -> None:
        """Go on with other constraints, at the state of their solver."""
        if self._decision is not None:
            left = ActiveSet(self.constraints, self._full, self._solver, self._decision)
            others = (s for s in self._remembered if s is not chosen)
            self._remembered = (left, *others)[:MOST_SETS]
        self.constraints = chosen.constraints
        self._full, self._solver, self._decision = chosen[1:]
