"""A state that is taken from a world, as somebody else has left it there, and shown there."""

from collections.abc import Collection

import numpy as np

from bulletbridge.errors import AssemblyError, WorldError
from bulletbridge.inequalities.filter import NO_STICKING_POINTS, Filter, Impulses
from bulletbridge.numerics.records import Array, Mask
from bulletbridge.system.assembly import Assembly
from bulletbridge.system.connecting import ActiveSet
from bulletbridge.system.inequality_state import InequalityState


class WorldState(InequalityState):
    """A state that can be read from its world and filtered there; the world is shown it again."""

    _filter: Filter | None = None

    def snapshot(self) -> Array:
        """q, v and t (nq + nv + 1), for ``take_back``."""
        return self._solver.state.copy()

    def take_back(self, state: Array) -> None:
        """Undo the last step; impulses to start from stay those that it found.

        Args:
            state: (nq + nv + 1) from ``snapshot`` before it.
        """
        nq = self.mechanism.nq
        self._solver.put(state[:nq], state[nq:-1], float(state[-1]))

    def read(self) -> None:
        """Take the state as the world has it now, for instance after ``resetJointState``.

        Friction of contacts is read again too.

        Raises:
            AssemblyError: The loops are open there; call ``assemble`` with what is to be held.
            WorldError: The bodies are not there any more, or ``changeDynamics`` has changed masses
                or inertias, which are read once. (What it does to joints Bullet does not tell.)
        """
        if self.world is not None:
            self.world.check()
            self.world.check_properties()
            self.set_state(*self.world.state())

    def filter(
        self,
        sticking: np.ndarray | None = None,
        open: Collection[str] = (),
        assemble: bool = False,
        found: tuple[Array, Array] | None = None,
        write: bool = True,
    ) -> Impulses:
        """Bring the world's own state onto the loops, after somebody else has advanced it.

        The configuration is corrected and the velocity filtered, both by as little as possible in
        the metric of the mass matrix.

        Args:
            sticking: (n,) points that stay where they are and keep their velocity, as far as the
                loops let them, of dtype ``mechanism.records.STICKING_POINT``.
                ``BulletBodies.sticking_points`` makes them of Bullet's contacts.
            open: Names of constraints that are left as they are this time.
            assemble: Whether loops that are too far open for a correction are assembled first.
            found: q (nq,) and v (nv,) of the world, where they have been read already.
            write: Whether the world is shown the state at once.

        Returns:
            What it took.

        Raises:
            ModelError: There is no such constraint, or ``sticking`` is no array of such points.
            AssemblyError: The loops cannot be closed near that state; the world keeps it.
            WorldError: There is no world, or the bodies are not there any more.
        """
        if self._world is None:
            raise WorldError("this system has no world to take a state from; call set_state")
        sticking = NO_STICKING_POINTS if sticking is None else sticking
        q, v = self._world.state() if found is None else found
        if self._decision is None:
            free = np.zeros(self.mechanism.nv, bool)
            self._solver, self._decision, _, _ = self._decide(self._full, q, free)
        known = self.known_filter
        self._filter = known or Filter(self._solver, self.decision)
        try:
            impulses = self._filter(q, v, sticking, tuple(open) if open else ())
        except AssemblyError:
            if not assemble:
                raise
            free = np.zeros(self.mechanism.nv, bool)
            self._assemble(q, free, v, free)
            impulses = self._filter(self._q, self._v, sticking, tuple(open))
        if write:
            self._world.write(self._solver.q, self._solver.v)
        return impulses

    @property
    def known_filter(self) -> Filter | None:
        """The compiled part of ``filter`` as the constraints are now; None before its first use."""
        known = self._filter
        return known if known is not None and known.solver is self._solver else None

    def _assemble(self, start: Array, held: Mask, speed: Array, held_v: Mask) -> Assembly:
        """Find a consistent state near start and speed, and show it."""
        if self.world is not None:
            self.world.check()
        assembly = super()._assemble(start, held, speed, held_v)
        self.write()
        return assembly

    def _set(self, q: Array, v: Array, t: float) -> None:
        """Take a state; what the world has meanwhile is no longer compared with what was shown."""
        super()._set(q, v, t)
        if self._world is not None:
            self._world.accept()

    def _take(self, chosen: ActiveSet) -> None:
        """Go on with other constraints, and show the state."""
        if self.world is not None:
            self.world.check()
        super()._take(chosen)
        self._filter = None
        self.write()
