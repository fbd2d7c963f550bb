"""Derivatives of steps with motors, friction and limits of joints, by their active set.

At the solution of a step's complementarity problem each row of a joint either pushes by a force
that is given, or holds a rate, which it does by whatever force that takes. The step is Euler's with
these forces in tau, to round-off, and so is its derivative: with B that of the rates by forces
before loops are closed, and S those lines and columns of it that belong to rows that hold,

    S δf = δ(what they hold) - δ(rates by what else changes)

gives the changes of their forces (Acary and Brogliato 2008, ch. 10, of the step).
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.joint_models import has_force_limit
from bulletbridge.engine.step_derivatives import StepDerivatives
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import UnsupportedError
from bulletbridge.inequalities.motor_limit_rows import SHALLOW
from bulletbridge.inequalities.stepper import InequalityStepper, X
from bulletbridge.mechanism.by_joint import rate_names
from bulletbridge.system.contact_report import force_of_inequalities
from bulletbridge.system.derivatives import step_differentiator_of
from bulletbridge.system.linearisation import ALIKE, BESIDE, SATURATED

WEAKEST = 1e-10
"""Share of the strongest that a row which holds must have for itself."""
ABOUT = (
    "a motor, friction or limit of '{}' is about to act otherwise than in this step; use central"
    " differences of step()"
)
OTHERWISE = "; use central differences of step()"


def require_joint_rows(contacts: bool, constraints: Iterable[Constraint]) -> None:
    """Refuse inequalities that are not those of joints.

    Args:
        contacts: Whether contacts act.
        constraints: That act.

    Raises:
        UnsupportedError: It names them.
    """
    what = "contacts act" if contacts else ""
    for one in constraints:
        if has_force_limit(one):
            what = f"'{one.name}' has a force limit"
    if what:
        raise UnsupportedError(f"{what}, of which no derivatives are known{OTHERWISE}")


def bounded_step_derivatives(
    solver: Solver, after: Solver, step: InequalityStepper | None, active: tuple[str, ...]
) -> StepDerivatives:
    """Derivatives of the step from the state of a solver.

    Args:
        solver: At the start of the step.
        after: A copy that has made it.
        step: How.
        active: Its active set, in words.

    Raises:
        UnsupportedError: The step was made in parts, or something in it is not known.
    """
    dt = float(solver.control[0]["dt"])
    if step is None or step.dt != dt:
        raise UnsupportedError(f"the step was made in parts{OTHERWISE}")
    held = _rows_that_hold(step, solver, after)
    differentiator = step_differentiator_of(solver)
    found = differentiator.step(force_of_inequalities(step))
    apart = [np.abs(found.q - after.q), np.abs(found.v - after.v)]
    size = max(1.0, float(np.abs(found.v).max(initial=0.0)))
    if max(float(x.max(initial=0.0)) for x in apart) > ALIKE * size:
        raise UnsupportedError(
            f"the step is none of Euler's under the forces of its inequalities{OTHERWISE}"
        )
    changes, nv = np.hstack([found.A, found.B]), len(solver.v)
    if axes := held.axes:
        values, rates = (x[axes] for x in differentiator.rates_before_closing())
        pushes = [2 * nv + k for k in axes]
        if np.abs(values - held.rates).max() > ALIKE * size:
            raise UnsupportedError(f"rows of joints do not hold what they ask for{OTHERWISE}")
        S = rates[:, pushes]
        answers = np.abs(np.diag(S))
        strengths = np.linalg.svd(S / np.sqrt(np.outer(answers, answers)), compute_uv=False)
        if not strengths[-1] > WEAKEST * strengths[0]:
            raise UnsupportedError(
                "rows of joints that hold follow from each other, so that their forces are not"
                f" unique{OTHERWISE}"
            )
        for axis, room in zip(axes, np.array(held.room) * answers, strict=True):
            if room <= BESIDE:
                raise UnsupportedError(ABOUT.format(rate_names(solver.mechanism)[axis]))
        wanted = np.zeros_like(rates)
        wanted[np.arange(len(axes)), axes] = held.by_position
        changes += changes[:, pushes] @ np.linalg.solve(S, wanted - rates)
    return StepDerivatives(changes[:, : 2 * nv], changes[:, 2 * nv :], found.q, found.v, active)


class Held(NamedTuple):
    """Rows that hold rates.

    Attributes:
        axes: Which rates.
        by_position: What the rates that they hold change by with their own positions.
        room: Forces by which they are off their largest one.
        rates: What they hold.
    """

    axes: list[int]
    by_position: list[float]
    room: list[float]
    rates: list[float]

    def add(self, axis: int, by_position: float, room: float, rate: float) -> None:
        """Add a row."""
        self.axes.append(axis)
        self.by_position.append(by_position)
        self.room.append(room)
        self.rates.append(rate)


def _rows_that_hold(step: InequalityStepper, solver: Solver, after: Solver) -> Held:
    """What holds, and not just so.

    Raises:
        UnsupportedError: It says which row is not known, or about to change.
    """
    x, dt, held = step.impulses[X], step.dt, Held([], [], [], [])
    names = rate_names(solver.mechanism)
    for motor in step.motor_rows:
        row, axis, gain = int(motor["row"]), int(motor["axis"]), float(motor["position_gain"])
        if row < 0:
            continue
        _require_joint(axis)
        if motor["stiffness"] or motor["damping"]:
            raise UnsupportedError(f"the motor of '{names[axis]}' is a servo{OTHERWISE}")
        if motor["velocity_gain"] != 1.0:
            raise UnsupportedError(
                f"the motor of '{names[axis]}' has a velocity gain of"
                f" {motor['velocity_gain']:g}, not 1{OTHERWISE}"
            )
        wanted = float(motor["velocity"])
        if gain:
            position = solver.q[solver.axes[axis]["q"]]
            wanted += gain * float(motor["position"] - position) / dt
        fastest, room = float(motor["fastest"]), float(motor["force"]) - abs(x[row]) / dt
        free, wanted = abs(wanted) < fastest, float(np.clip(wanted, -fastest, fastest))
        if room > (1.0 - SATURATED) * motor["force"]:
            held.add(axis, -gain / dt if free else 0.0, room, wanted)
        elif abs(after.v[axis] - wanted) <= BESIDE:
            raise UnsupportedError(ABOUT.format(names[axis]))
    for limit in step.joint_limits:
        row, axis = int(limit["row"]), int(limit["axis"])
        pushes = row >= 0 and x[row] != 0.0
        if axis < 0 and not pushes:
            continue
        _require_joint(axis)
        start, end = (float(q[solver.axes[axis]["q"]]) for q in (solver.q, after.q))
        if not pushes:
            if min(end - limit["lower"], limit["upper"] - end) <= BESIDE:
                raise UnsupportedError(ABOUT.format(names[axis]))
            continue
        beyond = max(limit["lower"] - start, start - limit["upper"])
        if beyond >= SHALLOW:
            raise UnsupportedError(f"'{names[axis]}' is {beyond:.3g} beyond its limit{OTHERWISE}")
        inside = beyond <= 0.0
        way = beyond if start >= 0.5 * (limit["lower"] + limit["upper"]) else -beyond
        held.add(axis, -1.0 / dt if inside else 0.0, np.inf, -way / dt if inside else 0.0)
    return held


def _require_joint(axis: int) -> None:
    if axis < 0:
        raise UnsupportedError(
            f"a motor, friction or limit acts along an axis of a loop{OTHERWISE}"
        )
