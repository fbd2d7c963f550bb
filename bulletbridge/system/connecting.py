"""Constraints that come and go while a system moves: grasp, release, hand over, change a tool.

The mechanism is not read again. What was decided about a set of constraints is kept for when the
same set comes back. Positions do not jump; velocities change by the velocity filter, which is the
plastic impact between what is joined.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.engine.choose import copy_of
from bulletbridge.engine.redundancy import Decision
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.tasks import PROJECT
from bulletbridge.errors import AssemblyError, ModelError
from bulletbridge.formulations.stabilise import FILTER_RTOL
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.system.carrying import (
    carry_over,
    is_bounded,
    require_near,
    require_rigid,
    same,
    where_it_is,
)
from bulletbridge.system.evaluation import Reaction, wrenches
from bulletbridge.system.queries import QueriedState
from bulletbridge.system.saved import Absent, KeptSet, thawed
from bulletbridge.system.state import ASSEMBLED

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
            given = np.inf if assemble else tolerance
            constraint = where_it_is(constraint, self.kinematics(), given)
        chosen = self._find((*self.constraints, constraint), tolerance, assemble)
        before, t, solver = self._v, self.t, chosen.solver
        if assemble:
            free = np.zeros(self.mechanism.nv, bool)
            solver.q[:], _ = self._close(solver, chosen.decision, self._q, free)
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
            ModelError: A constraint names what does not exist, or acts by inequalities.
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

    def place(self, name: str, frame: np.ndarray) -> None:
        """Put frame a of a loop elsewhere on its link; see ``ClosedState.place``."""
        self._remembered = ()
        super().place(name, frame)

    def rebase(self, mechanism: Mechanism) -> None:
        """Go on with links that stand still elsewhere; see ``ClosedState.rebase``."""
        self._remembered = ()
        super().rebase(mechanism)

    def set_offset(self, name: str, offset: float) -> None:
        """Give a coupling another offset [rad or m]; the state is not touched."""
        self._remembered = ()
        super().set_offset(name, offset)

    def _save_sets(self) -> tuple[KeptSet, ...]:
        """The constraints in force, then those that are remembered, and all about them."""
        here = self.constraints, self._decision, self._full.memory(), self._solver.memory()
        others = (
            KeptSet(s.constraints, s.decision, s.full.memory(), s.solver.memory())
            for s in self._remembered
        )
        return KeptSet(*here), *others

    def _require_constraints(self, sets: tuple[KeptSet, ...]) -> None:
        """Refuse sets that cannot be put back.

        Raises:
            ModelError: Constraints could not be pickled and are not here, or those with bounded
                forces, which cannot come and go, are others.
        """
        known = self._known()
        theirs = [resolved(kept, known) for kept in sets][0]
        bounded = [
            {c.name for c in constraints if is_bounded(c)}
            for constraints in (theirs, self.constraints)
        ]
        if bounded[0] != bounded[1]:
            raise ModelError(
                f"the state has the springs and constraints with forces within bounds"
                f" {sorted(bounded[0])}, this system has {sorted(bounded[1])}; they cannot come and"
                " go: restore it on a system that was made with them"
            )

    def _known(self) -> dict[str, Constraint]:
        """Constraints of all sets by name, those in force first."""
        every = [c for s in reversed(self._remembered) for c in s.constraints]
        return {c.name: c for c in (*every, *self.constraints)}

    def _restore_sets(self, sets: tuple[KeptSet, ...]) -> None:
        """Go on with the constraints that were in force."""
        ours, known = [*self._remembered], self._known()
        if self._decision is not None:
            ours.insert(0, ActiveSet(self.constraints, self._full, self._solver, self._decision))
        now, *others = sets
        chosen = [self._set_of(kept, ours, known) for kept in others]
        if now.decision is None:
            full = self._rows_of(resolved(now, known))
            full.recall(now.full)
            self._constraints, self._full, self._solver = resolved(now, known), full, full
            self._decision = None
        else:
            first = self._set_of(now, ours, known)
            self._constraints = first.constraints
            self._full, self._solver, self._decision = first[1:]
        self._remembered = tuple(chosen)

    def _set_of(
        self, kept: KeptSet, ours: list[ActiveSet], known: Mapping[str, Constraint]
    ) -> ActiveSet:
        """A set at its memory: one of ours that agrees, or made anew."""
        assert kept.decision is not None
        for one in ours:
            if tuple(c.name for c in one.constraints) == kept.names:
                if one.decision.agrees(kept.decision):
                    break
        else:
            constraints = resolved(kept, known)
            full = self._rows_of(constraints)
            decision = thawed(kept.decision, full.encoded)
            full.recall(kept.full)  # settings, by which the way to step is chosen
            one = ActiveSet(constraints, full, copy_of(full, decision), decision)
        one.full.recall(kept.full)
        one.solver.recall(kept.solver)
        return one

    def _rows_of(self, constraints: tuple[Constraint, ...]) -> Solver:
        """A solver of the rows as written, with the forces of ours."""
        full = Solver(self.mechanism, encode_closed(self.mechanism, constraints), self.tolerances)
        full.apply_settings(self._full)
        return full

    def _find(
        self, constraints: tuple[Constraint, ...], tolerance: float, assemble: bool
    ) -> ActiveSet:
        """The set of these constraints at the present state, decided now or remembered."""
        for chosen in self._remembered:
            if same(chosen.constraints, constraints):
                chosen.full.apply_settings(self._full)
                chosen.solver.apply_settings(self._full)
                for solver in (chosen.full, chosen.solver):
                    solver.put(self._solver.q, self._solver.v, self.t)
                if not assemble:
                    require_near(chosen.full, self._q, self.t, tolerance)
                return chosen
        encoded = encode_closed(self.mechanism, constraints)
        carry_over(self.encoded, encoded)
        full = Solver(self.mechanism, encoded, self.tolerances)
        full.apply_settings(self._full)
        full.state[:] = self._solver.state
        if not assemble:
            require_near(full, self._q, self.t, tolerance)
        solver, decision, _, _ = self._decide(full, self._q, np.zeros(self.mechanism.nv, bool))
        return ActiveSet(constraints, full, solver, decision)

    def _take(self, chosen: ActiveSet) -> None:
        """Go on with other constraints, at the state of their solver."""
        if self._decision is not None:
            left = ActiveSet(self.constraints, self._full, self._solver, self._decision)
            others = (s for s in self._remembered if s is not chosen)
            self._remembered = (left, *others)[:MOST_SETS]
        self._constraints = chosen.constraints
        self._full, self._solver, self._decision = chosen[1:]
