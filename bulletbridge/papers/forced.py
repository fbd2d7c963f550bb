"""Robots in Bullet under forces that depend on the state, at every stage of every integrator."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from typing_extensions import Unpack

import bulletbridge as bb
from bulletbridge.control.controllers import Law
from bulletbridge.models.load import LoadOptions
from bulletbridge.numerics.records import Array


class States(NamedTuple):
    """States after each step, the start first."""

    t: Array  # (n,) [s]
    q: Array  # (n, nq)
    v: Array  # (n, nv)


class Acting:
    """A law of (q, v, t) as forces of joints by name; it is asked once at a state.

    Attributes:
        law: Gives the forces (nv,); nothing acts without one. May be set.
        bare: The robot without them, for a law that asks for its equations of motion.
    """

    def __init__(self, law: Law | None, bare: bb.System) -> None:
        self.law, self.bare = law, bare
        self._seen = b""
        self._found: Array = np.zeros(0)

    def of(self, rates: slice) -> Callable[[float, Array, Array], Array]:
        """The forces on some rates, as ``System(forces=...)`` takes them."""

        def force(t: float, q: Array, v: Array) -> Array:
            seen = q.tobytes() + v.tobytes() + np.float64(t).tobytes()
            if seen != self._seen or not len(self._found):
                self._found = np.zeros(len(v)) if self.law is None else self.law(q, v, t)
                self._seen = seen
            return self._found[rates] if rates.stop - rates.start > 1 else self._found[rates.start]

        return force


@contextmanager
def forced(
    model: str | Path, law: Law | None = None, **options: Unpack[LoadOptions]
) -> Generator[tuple[bb.System, Acting]]:
    """A robot in Bullet, in a world of its own, under forces of its state."""
    with bb.load(model, "new") as bare:
        acting, joints = Acting(law, bare.system), bare.system.mechanism.joints
        options["forces"] = {name: acting.of(joint.v) for name, joint in joints.items()}
        with bb.load(model, "new", **options) as loaded:
            yield loaded.system, acting


def run(system: bb.System, duration: float) -> States:
    """Advance by whole steps, to the nearest of a duration [s]."""
    start = np.array([system.t]), system.q[None], system.v[None]
    steps = round(duration / system.dt)
    if steps == 0:
        return States(*start)
    found = system.rollout(steps)
    pairs = zip(start, (found.t, found.q, found.v), strict=True)
    return States(*(np.concatenate(pair) for pair in pairs))
