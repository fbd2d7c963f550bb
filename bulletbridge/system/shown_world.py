"""The world of a system: where its states are shown and contacts are found."""

from typing import Any

import numpy as np

from bulletbridge.engine.redundancy import Decision
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import ModelError, WorldError
from bulletbridge.inequalities.filter import Filter
from bulletbridge.inequalities.stepper import Surroundings
from bulletbridge.system.options import Fork, Varied, World

FOR_STATES = "this system has no world to take a state from; call set_state"
FOR_CONTACTS = (
    "contacts are found in a world, and this copy has none; set system.world to bodies that were"
    " read where the same ones are loaded"
)


class ShownWorld:
    """A world that is shown the states of a system, if there is one.

    Attributes:
        world: The bodies; None for a system that is shown nowhere.
        fork: Finds contacts instead of it, in a rollout.
        memory: What a world that is still to be given will have remembered of contacts.
    """

    def __init__(self, world: World | None) -> None:
        self.world = world
        self.memory: Any = None
        self.fork: Fork | None = None
        self._filter: Filter | None = None

    def give(self, world: World | None, solver: Solver) -> None:
        """Take another world, which is shown the state of a solver.

        Raises:
            ModelError: Its bodies do not have the coordinates of the mechanism.
            WorldError: Its bodies are not those of the old one, or are gone.
        """
        if world is not None:
            mechanism = solver.mechanism
            q, v = world.state()
            if (len(q), len(v)) != (mechanism.nq, mechanism.nv):
                raise ModelError(
                    f"the bodies of this world have {len(q)} positions and {len(v)} rates, the"
                    f" mechanism {mechanism.nq} and {mechanism.nv}; read those that the"
                    " system was made of"
                )
            if self.memory is None or not world.restore(self.memory, True):
                world.write(solver.q, solver.v)
        self.world, self.memory = world, None

    def show(self, solver: Solver) -> None:
        """Show the state of a solver.

        Raises:
            WorldError: The bodies are not there any more.
        """
        if self.world is not None:
            self.world.write(solver.q, solver.v)

    def check(self) -> None:
        """Refuse to go on without the bodies."""
        if self.world is not None:
            self.world.check()

    def accept(self) -> None:
        """Take what others have done there as meant, since a state was set."""
        if self.world is not None:
            self.world.accept()

    def forget(self) -> None:
        """Forget what contacts were found before, but in a rollout, which begins anew by itself."""
        if self.world is not None and self.fork is None:
            self.world.forget()

    def require(self, why: str) -> World:
        """The world, which is needed for this.

        Raises:
            WorldError: There is none.
        """
        if self.world is None:
            raise WorldError(why)
        return self.world

    def begin(self) -> None:
        """Begin another run, of which nothing is known."""
        if self.fork is not None:
            self.fork.begin()

    @property
    def varied(self) -> Varied | None:
        """What finds contacts, if there is a world."""
        return self.world if self.fork is None else self.fork

    def surroundings(self) -> Surroundings:
        """What finds contacts there.

        Raises:
            WorldError: There is no world.
        """
        return self.require(FOR_CONTACTS) if self.fork is None else self.fork

    def touching(self, contacts: np.ndarray) -> list[tuple[str, str]]:
        """Names of the links that contacts (n,) are between; none without a world."""
        return [] if self.world is None else self.world.touching(contacts)

    def filter_of(self, solver: Solver, decision: Decision) -> Filter:
        """The filter of the rows of a solver, made when it is first asked for."""
        known = self._filter
        if known is None or known.solver is not solver:
            known = self._filter = Filter(solver, decision)
        return known

    def forget_filter(self) -> None:
        """Make a new filter when the next one is asked for."""
        self._filter = None
