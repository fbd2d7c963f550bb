"""Numbers of a system that were changed since it was made: those of ``parameters``, by name."""

from collections.abc import Mapping

from bulletbridge.mechanism.contact_detector import RUBBING
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.system.active_constraints import ActiveConstraints
from bulletbridge.system.inequality_steps import InequalitySteps
from bulletbridge.system.integration import Integration
from bulletbridge.system.parameters import (
    changed_constraints,
    changed_mechanism,
    number_of,
    parameters_of,
    require_possible,
)
from bulletbridge.system.shown_world import ShownWorld


class Variation:
    """What a system was made with, and what has been changed since.

    Args:
        active: Its mechanism, constraints and solvers.
        inequalities: Its motors, limits and contacts.
        integration: Its integrator.
        shown: Its world.
    """

    def __init__(
        self,
        active: ActiveConstraints,
        inequalities: InequalitySteps,
        integration: Integration,
        shown: ShownWorld,
    ) -> None:
        self._active, self._inequalities = active, inequalities
        self._integration, self._shown = integration, shown
        self._as_made, self._changed = active.mechanism, dict[str, float]()

    def numbers(self) -> dict[str, float]:
        """All parameters as they are now, with those of surfaces where contacts act."""
        found = parameters_of(self._active.mechanism, self._active.constraints)
        gravity = self._active.solver.control[0]["gravity"]
        found |= {f"gravity.{x}": float(g) for x, g in zip("xyz", gravity, strict=True)}
        varied = self._shown.varied
        return found | varied.surfaces() if self._inequalities.finds_contacts and varied else found

    def vary(self, values: Mapping[str, float]) -> None:
        """Put in parameters that exist; the state may not fit them.

        Raises:
            ModelError: A number is not possible; nothing was done.
        """
        active = self._active
        # from the original: rounding must not depend on what was set before
        again = {number_of(self._as_made, name) for name in values}
        before = self._changed.items()
        changed = {n: x for n, x in before if number_of(self._as_made, n) not in again}
        changed |= values
        mechanism = changed_mechanism(self._as_made, active.constraints, changed)
        constraints = changed_constraints(active.constraints, values)
        surfaces = {name: x for name, x in values.items() if name.rpartition(".")[2] in RUBBING}
        require_possible(mechanism, constraints, surfaces)
        self._changed = changed
        self._inequalities.revise(mechanism)
        active.revise(mechanism, constraints)
        gravity = active.solver.control[0]["gravity"].copy()
        for name, value in values.items():
            if name.startswith("gravity."):
                gravity["xyz".index(name[-1])] = value
        for solver in self._integration.solvers:
            solver.put_gravity(gravity)
        varied = self._shown.varied
        if self._inequalities.finds_contacts and varied is not None:
            varied.vary(mechanism.bodies, surfaces)

    def rebase(self, mechanism: Mechanism) -> None:
        """Take another mechanism as the one that everything was made with."""
        self._as_made, self._changed = mechanism, {}

    def share_with(self, other: "Variation") -> None:
        """Have a copy of the same numbers know what they were at first."""
        other._as_made, other._changed = self._as_made, self._changed

    def bring(self, other: "Variation") -> bool:
        """Give a copy from earlier on the numbers of this one.

        Returns:
            Whether it could be done.
        """
        if other._as_made is not self._as_made:
            return False
        if not self._changed and not other._changed:
            return True
        known = self.numbers()
        if not other._changed.keys() <= known.keys():
            return False
        if other._changed != self._changed:
            other.vary({name: known[name] for name in {**other._changed, **self._changed}})
        return True
