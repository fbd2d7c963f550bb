"""What forces that are functions of the state change by: differences of the functions alone.

What they act on is differentiated as ever. A function is asked beside the state, at displaced
configurations and at other rates, by central differences of order 4.
"""

import numpy as np

from bulletbridge.compilation.users import Takes
from bulletbridge.engine.stepper import Solver
from bulletbridge.mechanism.force_elements import put_moving_frames
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.records import Array, Ints, copied

NUDGE = 2e-5
"""Share of a radian, of the mechanism's length, or of a rate, by which a state is displaced."""
STENCIL = (1.0, 8.0 / 12.0), (-1.0, -8.0 / 12.0), (2.0, -1.0 / 12.0), (-2.0, 1.0 / 12.0)
"""Places, in such steps, and what counts there."""


class ForceDifferences:
    """Differences of the functions of one solver.

    Args:
        solver: Whose; of it only room for poses is written to.
        units: (nv,) what displacements are measured by.

    Attributes:
        places: (m, 2) where the numbers act that they give: the effort and the place in its wrench,
            or -1 and the rate.
        by_state: (m, 2 nv) what these change by with displacements and rates, once asked.
    """

    def __init__(self, solver: Solver, units: Array) -> None:
        self._solver, self._units = solver, units
        asked = solver.asked_forces
        of_state = [force.takes != Takes.TIME for force in asked.forces]
        self._frames = any(force.takes == Takes.FRAME for force in asked.forces)
        self._efforts, self._axes = copied(solver.efforts), copied(solver.axes)
        self._room = asked.places(self._efforts, self._axes)
        self._numbers = [
            place.numbers for place, counts in zip(self._room, of_state, strict=True) if counts
        ]
        self.places: Ints = np.array(
            [
                (force.effort, force.first + k)
                for force, counts in zip(asked.forces, of_state, strict=True)
                for k in range(max(force.size, 1))
                if counts
            ],
            np.int64,
        ).reshape(-1, 2)
        self.by_state: Array = np.zeros((len(self.places), 2 * len(units)))

    def at(self, q: Array, v: Array, t: float) -> None:
        """Ask at places beside a state."""
        nv, there = len(v), np.empty_like(q)
        for k in range(2 * nv if len(self.places) else 0):
            way, total = np.zeros(nv), np.zeros(len(self.places))
            size = self._units[k % nv]
            if k >= nv:
                size = max(size, abs(v[k - nv]))
            way[k % nv] = NUDGE * size
            for place, weight in STENCIL:
                if k < nv:
                    displace(self._solver.bodies, q, place * way, 1.0, there)
                    total += weight * self._numbers_at(there, v, t)
                else:
                    total += weight * self._numbers_at(q, v + place * way, t)
            self.by_state[:, k] = total / way[k % nv]

    def _numbers_at(self, q: Array, v: Array, t: float) -> Array:
        """What the functions of the state give at one (m,)."""
        if self._frames:
            put_moving_frames(self._efforts, *self._solver.places_at(q), v)
        self._solver.asked_forces.fill(self._room, t, q, v)
        return np.concatenate(self._numbers)
