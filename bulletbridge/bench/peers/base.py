"""Interface that measurements ask of a simulator."""

from collections.abc import Callable, Iterable
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from bulletbridge.bench.problem import Problem
from bulletbridge.errors import UnsupportedError
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE
from bulletbridge.numerics.records import Array


class Stepped:
    """A problem in one simulator; states are in our coordinates. Subclasses step by calls.

    Attributes:
        settled: Steps after which the difference of two velocities has the loops' curvature in it.
    """

    settled = 0

    def __init__(self, made: Problem, dt: float) -> None:
        self.problem, self.dt = made, dt

    def reset(self) -> None:
        """Go back to the start."""
        raise NotImplementedError

    def call(self, steps: int) -> None:
        """Advance by so many steps, each one a call from Python."""
        raise NotImplementedError

    def state(self) -> tuple[Array, Array]:
        """q and v now."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back what it holds."""

    def loop(self, steps: int) -> None:
        """Advance by so many steps."""
        self.call(steps)

    def acceleration(self) -> Array | None:
        """Accelerations at the start; by differences unless there is a better way."""
        return None

    def record(self, steps: int, every: int) -> tuple[Array, Array, Array]:
        """States every so many steps; reading them is not in the time."""
        return self._seen(lambda _: self.loop(every), range(steps // every))

    def _seen(self, move: Callable[[Any], None], ways: Iterable[Any]) -> tuple[Array, Array, Array]:
        """Seconds and states at the start and after each of some moves, while these are finite."""
        self.reset()
        seconds, states = [0.0], [self.state()]
        for way in ways:
            begun = perf_counter()
            move(way)
            seconds.append(seconds[-1] + perf_counter() - begun)
            states.append(self.state())
            if not np.all(np.isfinite(states[-1][0])):
                break
        q, v = zip(*states, strict=True)
        return np.array(seconds), np.array(q), np.array(v)


def require_joints(made: Problem, who: str) -> None:
    """Raise unless all joints are revolute, prismatic, or one free base.

    Raises:
        UnsupportedError: The adapter of this simulator has no other joints.
    """
    kinds = [int(kind) for kind in made.mechanism.bodies["joint"][1:]]
    if set(kinds[1:]) - {REVOLUTE, PRISMATIC} or kinds[0] not in (REVOLUTE, PRISMATIC, FREE):
        raise UnsupportedError(f"revolute and prismatic joints and one free base only, in {who}")


def library(name: str) -> Any:
    """A package without types."""
    return import_module(name)
