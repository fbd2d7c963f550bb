"""Steps with motors, joint limits and contacts, solved where the loops stay closed."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bulletbridge.constraints.bounded_rows import tangents
from bulletbridge.constraints.layout import STOP
from bulletbridge.formulations.arrays import NOT_CLOSED, PREDICTED_Q
from bulletbridge.mechanism.layout import (
    HELD_COLUMNS,
    SPOT,
    TOUCH_A,
    TOUCH_B,
    TOUCH_COLUMNS,
    TOUCH_FRICTION,
    TOUCH_GAP,
    TOUCH_NORMAL,
    TOUCH_POINT,
)
from bulletbridge.mechanism.model import WORLD, Mechanism
from bulletbridge.numerics.jit import entry_point
from bulletbridge.numerics.mixed import BOUND
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.split import ROW
from bulletbridge.simulation.bounded_kernel import (
    NEWTONS,
    PREDICT,
    RESIDUAL,
    ROWS,
    STEP,
    SWEEPS,
    WORK,
    run_bounded,
)
from bulletbridge.simulation.solver import Solver
from bulletbridge.simulation.warm_up import announce_compilation

NO_TOUCHES = np.zeros((0, TOUCH_COLUMNS))
NO_STOPS = np.zeros(0, STOP)
ROWS_OF_CONTACT = 6
MOST_HALVINGS = 5
REMEMBERED = 0.3
"""Share of the last step in the motor forces by which contacts are predicted."""
Finder = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Complementarity:
    """How the bounded rows of the last step were solved.

    Attributes:
        rows: Motors, limits and contact rows together.
        residual: Largest violation of any condition [m/s or rad/s].
        sweeps: Of Gauss-Seidel.
        newton: Steps of Newton's method after them.
        work: What limits and contacts did to the energy [J], never above round-off unless forces
            turn a motion round within the step.
    """

    rows: int
    residual: float
    sweeps: int
    newton: int
    work: float = 0.0


@dataclass(frozen=True)
class Contact:
    """A contact in the last step.

    Attributes:
        a, b: Names of links of the two bodies; ``world`` for what is not part of the system.
        point: (3,) on b [m], world axes, at the configuration that was predicted.
        normal: (3,) unit vector from a to b.
        gap: Distance there [m]; negative where nothing had stopped them.
        force: (3,) on b [N], world axes, the mean over the step.
    """

    a: str
    b: str
    point: Array
    normal: Array
    gap: float
    force: Array


def stops_of(mechanism: Mechanism) -> np.ndarray:
    """Records (n,) of the joints that have limits."""
    limited = [
        joint
        for joint in mechanism.joints.values()
        if joint.kind in ("revolute", "prismatic")
        and (np.isfinite(joint.lower) or np.isfinite(joint.upper))
    ]
    stops = np.zeros(len(limited), STOP)
    for stop, joint in zip(stops, limited, strict=True):
        stop["axis"], stop["lower"], stop["upper"] = joint.v.start, joint.lower, joint.upper
    return stops


class BoundedStep:
    """Runs the compiled step with bounded rows on a solver.

    Args:
        solver: Whose state it advances.
        drives: (n,) motors; may be changed in place.
        stops: (n,) joint limits.
    """

    def __init__(self, solver: Solver, drives: np.ndarray, stops: np.ndarray) -> None:
        self.solver, self.drives, self.stops = solver, drives, stops
        self.report, self._touches = np.zeros(6), NO_TOUCHES
        self._exerted = np.zeros(len(drives))
        self._allocate(4)

    @property
    def complementarity(self) -> Complementarity:
        """How the last step went."""
        rows, sweeps, newton = (int(self.report[k]) for k in (ROWS, SWEEPS, NEWTONS))
        residual, work = float(self.report[RESIDUAL]), float(self.report[WORK])
        return Complementarity(rows, residual, sweeps, newton, work)

    def contacts(self) -> list[Contact]:
        """All contacts of the last step, also those that carry nothing."""
        names = {link.body: name for name, link in reversed(self.solver.mechanism.links.items())}
        names[0] = WORLD
        dt, found = float(self.solver.control[0]["dt"]), list[Contact]()
        for touch, row in zip(self._touches, self.first, strict=False):
            normal, x = touch[TOUCH_NORMAL : TOUCH_NORMAL + 3], self.impulses[0][int(row) :]
            impulse = x[0] * normal
            if touch[TOUCH_FRICTION] > 0.0:
                first, second = tangents((normal[0], normal[1], normal[2]))
                impulse = impulse + x[1] * np.array(first) + x[2] * np.array(second)
            point = touch[TOUCH_POINT : TOUCH_POINT + 3]
            a, b = (names[int(touch[k])] for k in (TOUCH_A, TOUCH_B))
            found.append(Contact(a, b, point, normal, float(touch[TOUCH_GAP]), impulse / dt))
        return found

    def motor_forces(self) -> Array:
        """What each motor exerted in the last step (n,) [N or N m]."""
        forces, on = np.zeros(len(self.drives)), self.drives["force"] > 0.0
        dt = float(self.solver.control[0]["dt"])
        forces[on] = self.impulses[0][: int(on.sum())] / dt
        return forces

    def predict(self) -> Array:
        """Configuration (nq,) to which forces and the motors as they were would lead in one step.

        There contacts are found: what motors press together is found in every step, as what
        weight does.
        """
        solver = self.solver
        targets = solver.targets_now() if solver.encoded.motions else solver.still
        tau = solver.tau
        if len(self.drives) and self.report[ROWS] > 0.0:
            # a mean over steps: where loads are not determined, guesses from the last one alternate
            self._exerted += REMEMBERED * (self.motor_forces() - self._exerted)
            tau = tau.copy()
            tau[0, self.drives["axis"]] += self._exerted
        solver.finish_call(self._run(targets, tau, NO_TOUCHES, self.report, PREDICT, 0))
        return solver.vectors[PREDICTED_Q, : len(solver.q)]

    def step(self, touches: Array = NO_TOUCHES, steps: int = 1) -> int:
        """Advance; return the failure that stopped it, with the state before it, or DONE.

        Args:
            touches: (n, columns) contacts at the predicted configuration, for one step.
            steps: How many.
        """
        solver = self.solver
        self._touches = touches
        if len(touches) > self._size:
            self._allocate(2 * len(touches))
        dt = float(solver.control[0]["dt"])
        targets = solver.still
        if solver.encoded.motions:
            targets = solver.encoded.targets(solver.t + np.arange(steps + 1) * np.float64(dt))
        return solver.finish_call(self._run(targets, solver.tau, touches, self.report, STEP, steps))

    def advance(self, find: Finder | None, halvings: int = MOST_HALVINGS) -> int:
        """One step, or several shorter ones where the loops cannot be closed after a long one.

        Impacts may leave velocities at which a mechanism turns far within a step.

        Args:
            find: Contacts (n, columns) at a configuration and velocity; None for none.
            halvings: How often the step may be halved.

        Returns:
            The failure that stopped it, with the state before it, or DONE.
        """
        solver = self.solver
        touches = NO_TOUCHES if find is None else find(self.predict(), solver.v)
        failure = self.step(touches)
        if failure != NOT_CLOSED or halvings == 0:
            return failure
        control, drives = solver.control[0], self.drives
        before, gains = solver.state.copy(), drives["position_gain"].copy()
        control["dt"] *= 0.5
        drives["position_gain"] *= 0.5  # they are shares per step
        try:
            failure = self.advance(find, halvings - 1) or self.advance(find, halvings - 1)
        finally:
            control["dt"] *= 2.0
            drives["position_gain"] = gains
        if failure:
            solver.state[:] = before
            control["fresh"] = 0
        return failure

    def _allocate(self, contacts: int) -> None:
        """Make room for ``contacts`` contacts."""
        solver = self.solver
        nc, nv = solver.encoded.nc, solver.mechanism.nv
        self._size, held = contacts, 3 * contacts
        rows = len(self.drives) + len(self.stops) + ROWS_OF_CONTACT * contacts
        self.multipliers, self.points = np.zeros((2, nc)), np.zeros((2, held))
        self.impulses = np.zeros((14, max(rows, nv)))
        arrays = (
            *solver.arrays,
            np.zeros(contacts, SPOT),
            np.zeros((2, held), ROW),
            np.zeros((held, nv)),
            np.zeros((held, nc)),
            np.zeros((held, held)),
            np.zeros((2, max(held, nv))),
            self.multipliers,
            self.points,
            np.zeros((contacts, HELD_COLUMNS)),
            self.drives,
            self.stops,
            np.zeros(contacts),
            np.zeros((rows, nv)),
            np.zeros((2, rows, rows)),
            np.zeros(rows, BOUND),
            self.impulses,
        )
        with announce_compilation(run_bounded):
            compiled = entry_point(
                run_bounded, *arrays, solver.still, solver.tau, NO_TOUCHES, self.report, STEP, 1
            )
        self.first: Array = arrays[-5]
        self._run: Callable[..., int] = functools.partial(compiled, *arrays)
