"""bulletbridge itself, any integrator and formulation by name."""

from typing import Any

import numpy as np

from bulletbridge.bench.peers.base import Stepped
from bulletbridge.bench.problem import Problem, positions
from bulletbridge.numerics.records import Array
from bulletbridge.system.system import System


class Ours(Stepped):
    """Our solver; ``options`` are keyword arguments of ``System``.

    Under an integrator with error control ``dt`` is the time between states.
    """

    def __init__(self, made: Problem, dt: float, **options: Any) -> None:
        super().__init__(made, dt)
        options.setdefault("springs", "explicit")
        self.system = System(made.mechanism, made.constraints, dt=dt, **options)
        self.system.assemble(guess=positions(made))
        self.reset()

    def reset(self) -> None:
        """Go back to the start."""
        self.system.set_state(self.problem.q, self.problem.v, 0.0)

    def call(self, steps: int) -> None:
        """A Python call a step."""
        step = self.system.step
        for _ in range(steps):
            step(write=False)

    def loop(self, steps: int) -> None:
        """Many steps in one call."""
        self.system.rollout(steps, every=steps)

    def visit(self, times: Array) -> tuple[Array, Array, Array]:
        """Seconds and states at the start and at times (n,), under error control in between."""

        def advance(dt: float) -> None:
            self.system.dt = dt
            self.system.rollout(1)

        return self._seen(advance, np.diff(times, prepend=0.0).tolist())

    def state(self) -> tuple[Array, Array]:
        """q and v now."""
        return self.system.q, self.system.v

    def acceleration(self) -> Array | None:
        """Accelerations by the projector or the formulation."""
        return self.system.acceleration()
