"""Rows whose forces in a step are not given, and what each of them asks for."""

import math
from typing import NamedTuple

import numpy as np

from bulletbridge.numerics.records import Array

OTHERWISE = "; use central differences of step()"
WEAKEST = 1e-10
"""Share of the strongest that a row which holds must have for itself, or it follows from others."""


class Leads(NamedTuple):
    """Where forces lead, before loops are closed.

    Attributes:
        rates: (nv,) those of the step, with the forces of its inequalities.
        changes: (nv, 3 nv) of these, at constant forces of inequalities.
        rates_by_all: (nv, 3 nv) changes of the rates that lead to where contacts are found,
        place_by_all: (nv, 3 nv) and of that configuration.
    """

    rates: Array
    changes: Array
    rates_by_all: Array
    place_by_all: Array


class Asked(NamedTuple):
    """What one row asks for.

    Attributes:
        row: (nv,)
        bent: (3 nv,) what the row changes by, times the rates.
        side: (3 nv,) right side.
        force: That it exerts.
        rate: That it holds; not a number if it slides.
        room: Force by which it is off acting otherwise,
        least: rate that this is to answer for at least,
        about: and what is said then.
        strength: Largest force of a motor; not a number for others.
        slopes: (nv, nv) what the row changes by with the place that contacts are found at; None for
            one that does not.
    """

    row: Array
    bent: Array
    side: Array
    force: float
    rate: float
    room: float
    least: float
    about: str
    strength: float = math.nan
    slopes: Array | None = None


class Active:
    """Rows whose forces are not given: K δf + L δw = sides.

    Attributes:
        asked: What each asks for.
        idle: Rows that exert all that they can, or nothing, and yet do not move: there is no kink
            if others keep them so.
        K: (m, m) by row and force, as entries,
        L: and by row and rate.
    """

    def __init__(self) -> None:
        self.asked, self.idle = list[Asked](), list[Asked]()
        self.K, self.L = dict[tuple[int, int], float](), dict[tuple[int, int], float]()

    def hold(self, row: Asked) -> int:
        """Add a row that holds its rate; its number."""
        n = len(self.asked)
        self.asked.append(row)
        self.L[n, n] = 1.0
        return n

    def slide(self, rows: list[Asked], owner: int, by_load: Array, by_slip: Array) -> None:
        """Add the rows of a cone, whose forces are against their slip.

        Args:
            rows: (1 or 2) of them.
            owner: Number of the row whose force is the radius of the cone.
            by_load: What their forces fall by with it,
            by_slip: and, a line each, with their rates.
        """
        first = len(self.asked)
        for k, row in enumerate(rows, first):
            self.asked.append(row)
            self.K[k, k], self.K[k, owner] = 1.0, by_load[k - first]
            for j in range(len(rows)):
                self.L[k, first + j] = by_slip[k - first, j]

    def matrices(self) -> tuple[Array, Array]:
        """K and L (m, m)."""
        found = np.zeros((2, len(self.asked), len(self.asked)))
        for matrix, entries in zip(found, (self.K, self.L), strict=True):
            for at, value in entries.items():
                matrix[at] = value
        return found[0], found[1]
