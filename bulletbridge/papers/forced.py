"""Robots in Bullet under forces that depend on the state, at every stage of every integrator."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from typing_extensions import Unpack

import bulletbridge as bb
from bulletbridge.control.controllers import Controlled, Law
from bulletbridge.formulations.equations import Dynamics, Formulation
from bulletbridge.formulations.projector import Projector
from bulletbridge.models.load import SystemOptions
from bulletbridge.numerics.records import Array


class States(NamedTuple):
    """States after each step, the start first.

    Attributes:
        t: (n,) [s].
        q: (n, nq).
        v: (n, nv).
    """

    t: Array
    q: Array
    v: Array


class Forced:
    """A system under forces (nv,) that are functions of (q, v, t), besides its own.

    The larger of what acts at the start of a step and at its end stands in ``tau``, by which a
    system judges what a step may lead to; the formulation is given the difference.
    """

    def __init__(self, law: Law | None) -> None:
        self.law = law
        self._held: Array | None = None

    def besides(self, q: Array, v: Array, t: float) -> Array:
        """What acts next to ``tau`` at a state."""
        found = np.zeros_like(v) if self.law is None else self.law(q, v, t)
        return found if self._held is None else found - self._held

    def formulation(self, dynamics: Dynamics) -> Formulation:
        """The projector with these forces."""
        return Projector(Controlled(dynamics, self.besides))

    def dynamics(self, system: bb.System) -> Dynamics:
        """The equations of motion with these forces."""
        system.tau[:] = 0.0
        self._held = None
        return Controlled(system.dynamics, self.besides)

    def run(
        self, system: bb.System, duration: float, after: Callable[[], None] | None = None
    ) -> States:
        """Advance by whole steps, to the nearest of a duration [s]; ``after`` each call this."""
        states = [(system.t, system.q, system.v)]
        for _ in range(round(duration / system.dt)):
            self._held = None
            q, v, t = system.q, system.v, system.t
            first, last = self.besides(q, v, t), self.besides(q, v, t + system.dt)
            self._held = np.where(np.abs(last) > np.abs(first), last, first)
            system.tau[:] = self._held
            system.step(write=False)
            states.append((system.t, system.q, system.v))
            if after is not None:
                after()
        t, q, v = (np.array(part, np.float64) for part in zip(*states, strict=True))
        return States(t, q, v)


@contextmanager
def forced(
    model: str | Path,
    law: Law | None = None,
    client: int | Literal["new"] = "new",
    **options: Unpack[SystemOptions],
) -> Generator[tuple[bb.System, Forced]]:
    """A robot in Bullet, in a world of its own unless given, under forces of its state.

    Steps are in Python: the forces are part of the equations that the formulation is given.
    """
    acting = Forced(law)
    options["formulation"] = acting.formulation
    loaded = bb.load(model, client, **options)
    try:
        yield loaded.system, acting
    finally:
        if client == "new":
            loaded.close()
