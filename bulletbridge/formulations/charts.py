"""The paper's charts in motion, on systems of one's own; mechanisms have ``integrator="charts"``.

The norm of v says how far the chart's coordinates went, not how far the manifold has turned away:
Euler parameters enter directions with gain 2, and falling tops blow up inside |v| <= 0.75. The tilt
between the tangent spaces at q0 and q is what makes the iterations diverge and D grow (its norm is
1/cos tilt); ``Tilt`` limits that, whatever the coordinates.

Source: Haug and Pavesic 2023.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bulletbridge.engine.chart import MOST_TURN
from bulletbridge.errors import ChartError, StepError
from bulletbridge.formulations.chart import ITERATIONS, Chart, Iterations, Point
from bulletbridge.formulations.equations import SINGULAR_RTOL, Coordinates, Dynamics, Solution
from bulletbridge.formulations.integrators import State, nystrom4
from bulletbridge.numerics.records import Array

Rule = Callable[[Chart, Array, Point], bool]
"""Whether a chart is to be left at coordinates (n,) and the point they stand for."""


@dataclass(frozen=True)
class Norm:
    """|v| above a limit [mixed units of q]: the source's rule, not safe."""

    limit: float = MOST_TURN

    def __call__(self, chart: Chart, v: Array, point: Point) -> bool:
        """Whether to change charts."""
        return bool(v @ v > self.limit**2)


@dataclass(frozen=True)
class Condition:
    """Condition number of A U above a limit, of its value at q0 if relative."""

    limit: float = 100.0
    relative: bool = False

    def __call__(self, chart: Chart, v: Array, point: Point) -> bool:
        """Whether to change charts."""
        limit = self.limit * (np.linalg.cond(chart.B0) if self.relative else 1.0)
        return bool(np.linalg.cond(point.A @ chart.U) > limit)


@dataclass(frozen=True)
class Tilt:
    """Largest angle between the tangent spaces at q0 and at the point above a limit [rad]."""

    limit: float = 0.5

    def __call__(self, chart: Chart, v: Array, point: Point) -> bool:
        """Whether to change charts."""
        if not chart.rank or not len(v):
            return False
        return bool(np.linalg.norm(point.D - chart.V, 2) > np.tan(self.limit))


TILT = Tilt()


@dataclass
class ChartMotion:
    """A system in motion, advanced by Nyström's method of order 4 on charts that follow it.

    Attributes:
        dynamics: Constrained system with positions whose rates are the velocities.
        q: (nq,) configuration on the manifold.
        v: (nv,) admissible velocity.
        t: Time [s].
        rule: When to change charts.
        iterations: Tolerances of u and B.
        singular: Rows weaker than this, relative to the strongest, count as dependent.
        changes: Charts after the first.
        retries: Steps that failed on the chart they began on and were repeated on a new one.
        error: Largest violations of the three levels so far, scaled rows.
    """

    dynamics: Dynamics
    q: Array
    v: Array
    t: float = 0.0
    rule: Rule = TILT
    iterations: Iterations = ITERATIONS
    singular: float = SINGULAR_RTOL
    changes: int = 0
    retries: int = 0
    error: Array = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        self._on(Chart(self.dynamics, self.q, self.t, self.iterations, None, self.singular))

    @property
    def acceleration(self) -> Array:
        """Accelerations (nv,) at the state."""
        return self._point.qddot

    @property
    def margin(self) -> float:
        """Smallest over largest singular value of the rows at the state, 0 where charts end."""
        return float(1.0 / np.linalg.cond(self._point.A)) if self.chart.rank else 1.0

    def step(self, dt: float) -> None:
        """Advance by dt [s].

        Raises:
            StepError: Neither the present chart nor a new one carries the step: dt is too long or
                the position singular; the state is that before the step.
        """
        try:
            self._advance(dt)
        except ChartError:
            try:
                self.retries += 1
                self._change()
                self._advance(dt)
            except ChartError as wrong:
                raise StepError(
                    f"no chart carries the step at t = {self.t:.6g} s: {wrong} (weakest direction "
                    f"of the rows there {self.margin:.1e} of the strongest: singular if small)"
                ) from wrong
        if self.rule(self.chart, self._x, self._point):
            try:
                self._change()
            except ChartError as wrong:
                raise StepError(f"the chart cannot be changed: {wrong}") from wrong

    def _advance(self, h: float) -> None:
        """Nyström's step; the first stage is the last point."""
        before, end = self.chart.memory, self.t + h
        try:
            x, dx = nystrom4(self._rates, Coordinates(), State(self._x, self._dx, self.t), h)
            point = self.chart.point(x, dx, end)
        except ChartError:
            self.chart.recall(before)
            raise
        self._x, self._dx, self.t = x, dx, end
        self._take(point)

    def _rates(self, x: Array, dx: Array, t: float) -> Solution:
        """Second derivatives of the chart's coordinates."""
        point = self._point if x is self._x else self.chart.point(x, dx, t)
        return Solution(point.vddot, np.zeros(0))

    def _change(self) -> None:
        """Make the present point the origin of a new chart."""
        rank = self.chart.rank
        new = Chart(self.dynamics, self.q, self.t, self.iterations, rank, self.singular)
        self.changes += 1
        self._on(new)

    def _on(self, chart: Chart) -> None:
        self.chart = chart
        self._x, self._dx = chart.start(self.v)
        self._take(chart.point(self._x, self._dx, self.t))

    def _take(self, point: Point) -> None:
        self._point, self.q, self.v = point, point.q, point.qdot
        self.error = np.maximum(self.error, point.error)
