"""Steps with motors, friction and limits of joints that gradients can be taken back through.

They are made in one call, which keeps what each of them pushes by. Which rates they hold is found
for all steps at once; doubtful steps are left to ``bounded_derivatives``.
"""

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.engine.step_adjoint import HeldRates, StepAdjoint
from bulletbridge.inequalities.joint_slopes import list_held
from bulletbridge.inequalities.stepper import InequalityStepper
from bulletbridge.inequalities.steps_kernel import TracedForces
from bulletbridge.numerics.records import Array, Mask
from bulletbridge.system.linearisation import ALIKE


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
    solver, (n, nv), states = stepper.solver, tau.shape, trace.states
    dt, m = float(solver.control[0]["dt"]), len(trace.drives) + len(trace.joint_limits)
    counts, axes = np.zeros(n, np.int64), np.zeros((n, m), np.int64)
    slopes, compliance, least, rates = np.zeros((4, n, m))
    held = HeldRates(np.zeros((n, nv)), counts, axes, slopes, compliance, least)
    known = np.full(n, True)
    with announce_compilation(list_held):
        list_held(trace, solver.axes, dt, held, rates, known)
    plain, _ = adjoint.record(states, tau, ALIKE, held)
    predicted = states[:-1, -nv - 1 : -1] + dt * adjoint.accelerations(n)
    size = np.maximum(1.0, np.abs(predicted).max(axis=1, initial=0.0))
    off = np.abs(np.take_along_axis(predicted, axes, axis=1) - rates)
    counted = np.arange(m) < counts[:, None]
    plain &= known & ~(counted & (off > ALIKE * size[:, None])).any(axis=1)
    adjoint.refuse(~plain)
    return plain
