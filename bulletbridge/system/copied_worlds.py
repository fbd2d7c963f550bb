"""Worlds of a rollout by copies of the whole system: motors, contacts, parameters, restarts."""

from collections.abc import Callable, Iterator
from threading import Event
from typing import NamedTuple

import numpy as np

from bulletbridge.engine.stepper import MOST_STEPS
from bulletbridge.errors import BulletBridgeError, ModelError
from bulletbridge.mechanism.by_joint import by_joint
from bulletbridge.numerics.records import Array, Ints, Mask
from bulletbridge.system.rollout_input import Starts
from bulletbridge.system.system import System
from bulletbridge.system.world_settings import MotorTable

Condition = Callable[[Array, Array, float], bool]
"""Of q (nq,) and v (nv,), which know the names of joints, and t [s]."""


class Found(NamedTuple):
    """What has come of worlds."""

    table: Array  # (n, records, nq + nv + 4)
    done: Ints  # (n,) steps
    failures: dict[int, str]
    restarted: Mask  # (n, records) whether a world has started again since the last record
    contact_forces: Array  # (n, records, links, 3)


class Course(NamedTuple):
    """What happens to worlds."""

    worlds: Starts
    steps: int
    every: int  # steps of which one is kept
    motors: MotorTable
    parameters: dict[str, Array]  # (n,) each
    restart: Mask | None  # (n, steps) before which steps they start again
    until: Condition | None  # after which records they do
    bodies: Ints  # whose contact forces are told

    @property
    def needs_copies(self) -> bool:
        """Whether solvers alone cannot follow it."""
        restarts = self.restart is not None or self.until is not None
        return restarts or bool(self.motors) or bool(self.parameters) or len(self.bodies) > 0

    def stops(self, world: int) -> Ints:
        """Steps, in their order, before which something is done in Python, and their number."""
        found = np.union1d(self.motors.changes(world), np.arange(0, self.steps, MOST_STEPS))
        if self.restart is not None:
            found = np.union1d(found, np.flatnonzero(self.restart[world]))
        if self.until is not None or len(self.bodies):
            found = np.union1d(found, np.arange(0, self.steps, self.every))
        return np.append(found, self.steps)


def restarts_of(
    given: Array | Condition | None, n: int, steps: int
) -> tuple[Mask | None, Condition | None]:
    """When worlds start again, as it was given: a mask (n, steps), a condition, or neither.

    Raises:
        ModelError: It is neither a function nor (n, steps) of booleans.
    """
    if given is None or callable(given):
        return None, given
    mask = np.asarray(given)
    if mask.dtype != bool or mask.shape != (n, steps):
        raise ModelError(
            f"restart is {mask.dtype} {mask.shape}; give booleans ({n}, {steps}), true where a"
            " world starts again before a step, or a function of q, v and t"
        )
    return mask.astype(bool), None


def run_copy(own: System, world: int, course: Course, found: Found, stop: Event) -> None:
    """Run one world by a copy of the system, until it is done, has failed or shall stop."""
    found.table[world], found.contact_forces[world] = np.nan, np.nan
    try:
        for _ in _parts(own, world, course, found):
            if stop.is_set():
                break
    except BulletBridgeError as error:
        found.failures[world] = str(error)
    found.done[world] += max(round((own.t - float(course.worlds.t[world])) / own.dt), 0)


def _parts(own: System, world: int, course: Course, found: Found) -> Iterator[None]:
    """Do one part of a world after another; ``done`` is the step after which it started last."""
    worlds, every = course.worlds, course.every
    start = worlds.q[world], worlds.v[world], float(worlds.t[world])
    parameters = {name: float(values[world]) for name, values in course.parameters.items()}
    again, last, record = True, 0, 0
    for end in course.stops(world)[1:].tolist():
        if course.restart is not None and course.restart[world, last]:
            again = True
        if again:
            own.start_from(start, parameters)
            found.done[world], again = last, False
            if last > 0 and record < len(found.table[world]):
                found.restarted[world, record] = True
        course.motors.put(own.motors, world, last)
        _roll(own, worlds.tau[world], found.table[world], every, (last, end))
        last, record = end, end // every
        if last % every == 0:
            if len(course.bodies):
                found.contact_forces[world, record - 1] = own.contact_forces(course.bodies)
            if course.until is not None:
                q, v = by_joint(own.q, own.mechanism, "q"), by_joint(own.v, own.mechanism, "v")
                again = bool(course.until(q, v, own.t))
        yield


def _roll(own: System, tau: Array, table: Array, every: int, part: tuple[int, int]) -> None:
    """Do the steps of a part of a world, (first, last), and keep its records."""
    (step, last), line = part, np.zeros((1, table.shape[1]))
    while step < last:
        whole = (last - step) // every * every if step % every == 0 else 0
        steps = whole or min(every - step % every, last - step)
        pushed = tau[step : step + steps] if tau.ndim == 2 else tau
        if whole:
            own.roll(pushed, (steps, every), table[step // every :][: steps // every])
        else:
            own.roll(pushed, (steps, steps), line)
        step += steps
        if not whole and step % every == 0:
            table[step // every - 1] = line[0]
