"""Steps with motors, friction and limits of joints that gradients can be taken back through.

They are made in one call, which keeps what each of them pushes by. Which rates they hold is that
of ``bounded_derivatives``, found for all steps at once; doubtful steps are left to that.
"""

from typing import NamedTuple

import numpy as np

from bulletbridge.engine.step_adjoint import HeldRates, StepAdjoint
from bulletbridge.engine.stepper import Solver
from bulletbridge.inequalities.motor_limit_rows import SHALLOW
from bulletbridge.inequalities.stepper import InequalityStepper
from bulletbridge.inequalities.steps_kernel import TracedForces
from bulletbridge.numerics.records import Array, Ints, Mask
from bulletbridge.system.bounded_derivatives import asked_by_limits, asked_by_motors
from bulletbridge.system.linearisation import ALIKE, BESIDE, SATURATED


class Holding(NamedTuple):
    """Which rates are held in steps; a motor, friction or limit a column.

    Attributes:
        axes: (m,)
        forces: (n, m) that they exert [N m or N].
        holds: (n, m) whether they hold the rate,
        rates: (n, m) which one,
        slopes: (n, m) what that changes by with the position,
        compliance: (n, m) and with the force.
        room: (n, m) force by which each is off acting otherwise.
        doubtful: (n, m) whether it is about to.
    """

    axes: Ints
    forces: Array
    holds: Mask
    rates: Array
    slopes: Array
    compliance: Array
    room: Array
    doubtful: Mask


def record_traced(
    adjoint: StepAdjoint, stepper: InequalityStepper, trace: TracedForces, tau: Array
) -> Mask:
    """Have steps recorded that were traced; which of them gradients can be taken back through (n,).

    Args:
        adjoint: Which records.
        stepper: That made them.
        trace: What was told of them; it begins in the state of the solver.
        tau: (n, nv) forces on the rates besides.
    """
    solver, nv = stepper.solver, tau.shape[1]
    dt, states = float(solver.control[0]["dt"]), trace.states
    kinds = _by_drives(solver, trace, dt), _by_limits(solver, trace, dt)
    of_all = Holding._make(np.concatenate(parts, axis=-1) for parts in zip(*kinds, strict=True))
    pushes = np.zeros((len(tau), nv))
    for axis, force in zip(of_all.axes, of_all.forces.T, strict=True):
        pushes[:, axis] += force
    counts = of_all.holds.sum(axis=1)
    most = int(counts.max(initial=0))
    first = np.argsort(~of_all.holds, axis=1, kind="stable")[:, :most]
    slopes, compliance, rates, room = (
        np.take_along_axis(x, first, axis=1)
        for x in (of_all.slopes, of_all.compliance, of_all.rates, of_all.room)
    )
    axes = np.ascontiguousarray(of_all.axes[first], np.int64)
    counted = np.arange(most) < counts[:, None]
    least = BESIDE / np.where(counted, room, np.inf)
    held = HeldRates(pushes, counts.astype(np.int64), axes, slopes, compliance, least)
    plain, _ = adjoint.record(states, tau, ALIKE, held)
    predicted = states[:-1, -nv - 1 : -1] + dt * adjoint.accelerations(len(tau))
    size = np.maximum(1.0, np.abs(predicted).max(axis=1, initial=0.0))
    off = np.abs(np.take_along_axis(predicted, axes, axis=1) - rates)
    plain &= ~of_all.doubtful.any(axis=1)
    plain &= ~(counted & (off > ALIKE * size[:, None])).any(axis=1)
    adjoint.refuse(~plain)
    return plain


def _by_drives(solver: Solver, trace: TracedForces, dt: float) -> Holding:
    """Of motors and friction, which hold a rate where they exert less than they may."""
    drives, forces = np.asarray(trace.motor_rows)[trace.drives], trace.by_drives
    places, axes = np.asarray(solver.axes)["q"][drives["axis"]], drives["axis"]
    asked = asked_by_motors(drives, trace.states[:-1, places], 0.0, dt)
    after = trace.states[1:, len(solver.q) + axes]
    rates = asked.rates - asked.compliance * forces
    room = np.minimum(drives["force"] - forces, forces - drives["least"])
    holds = room > (1.0 - SATURATED) * drives["force"]
    doubtful = asked.beside | (~holds & (np.abs(after - rates) <= BESIDE))
    doubtful |= holds & (drives["velocity_gain"] != 1.0) & (asked.compliance == 0.0)
    compliance = np.broadcast_to(asked.compliance, forces.shape)
    slopes = np.broadcast_to(asked.slopes, forces.shape)
    return Holding(axes, forces, holds, rates, slopes, compliance, room, doubtful)


def _by_limits(solver: Solver, trace: TracedForces, dt: float) -> Holding:
    """Of limits, which hold a rate where they push."""
    limits, forces = np.asarray(trace.joint_limits), trace.by_limits
    places, of_joints = np.asarray(solver.axes)["q"][limits["axis"]], limits["axis"] >= 0
    start, after = trace.states[:-1, places], trace.states[1:, places]
    asked, pushes = asked_by_limits(limits, start, dt), forces != 0.0
    left = np.minimum(after - limits["lower"], limits["upper"] - after)
    doubtful = ~pushes & of_joints & (left <= BESIDE)
    doubtful |= pushes & (~of_joints | (asked.beyond >= SHALLOW))
    room, none = np.full(forces.shape, np.inf), np.zeros(forces.shape)
    axes = np.where(of_joints, limits["axis"], 0)
    return Holding(axes, forces, pushes, asked.rates, asked.slopes, none, room, doubtful)
