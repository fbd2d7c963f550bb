"""Energy that a step may not add: semi-implicit Euler takes inertial forces at the start of a step.

What it keeps to second order when nothing else acts is not the energy E but

    K = E + dt/2 v·F - dt v·c

with the weights F and the Coriolis forces c: one step changes the kinetic energy by the work of
gravity along the mean velocity, and by half a step of v·Ṁv at its end less the same at its start.
Where mechanisms tumble fast K rises all the same. A budget of K and of the work of all forces since
bounds it: what exceeds the budget is taken from the velocity as a whole, v <- s v, which keeps
constraints, contacts that stick and those that open. Impulses change
K by their work along the mean of the velocities at both ends of the step.
"""

import math
from collections.abc import Callable
from typing import Any

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.dense import put_bias
from bulletbridge.engine.plausible import power_of_weights
from bulletbridge.engine.records import BIAS, Arrays
from bulletbridge.inequalities.arrays import BUDGET, LARGEST, TAKEN
from bulletbridge.mechanism.kinematics import world_position
from bulletbridge.mechanism.records import DRAG
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.spatial import add, apply, dot, mat, vec

TOLERATED = 1e-3
"""Share of the largest kinetic energy by which K may exceed the budget: what it varies by as it
should, and what the account of impulses within a step is off by."""


@helper
def accountable(a: Arrays) -> bool:
    """Whether a budget is asked for, and all that does work is known: no drive, spring or beam."""
    c = a.control
    if (
        c.energy_budget == 0
        or c.driven > 0
        or c.spring_dt > 0.0
        or c.user_rows > 0
        or c.asked != 0
        or len(a.beams) > 0
    ):
        return False
    for i in range(len(a.efforts)):
        if a.efforts[i].kind != DRAG:
            return False
    for k in range(len(a.axes)):
        if a.axes[k].stiffness != 0.0:
            return False
    return True


@outlined
def work(a: Arrays, before: Array, after: Array, tau: Array) -> float:
    """Work of torques of joints [J], as they change the kinetic energy between the two rates."""
    total = 0.0
    for k in range(len(after)):
        total += (tau[k] + a.axes[k].torque) * 0.5 * (before[k] + after[k])
    return a.control.dt * total


@outlined
def work_of_dampers(a: Arrays, before: Array, after: Array) -> float:
    """Work of dampers of joints [J], which push by the rates of the end; never positive."""
    total = 0.0
    for k in range(len(after)):
        total -= a.axes[k].damping * after[k] * 0.5 * (before[k] + after[k])
    return min(a.control.dt * total, 0.0)


def budgeting(kinetic_energy: Callable[..., float]) -> Callable[..., float]:
    """Kinetic energy of masses with factors of one kind, whose energy in their metric is given.

    numba resolves the function that it closes over when it compiles it.
    """

    @outlined
    def kinetic_energy_of_masses(a: Arrays, f: Any, v: Array) -> float:
        """Kinetic energy [J] at the rates v (nv,); factors may have dampers of joints in them."""
        total = kinetic_energy(a, f, v)
        for k in range(len(v)):
            total -= 0.5 * a.control.damper_dt * a.axes[k].damping * v[k] * v[k]
        return max(total, 0.0)

    return kinetic_energy_of_masses


@outlined
def kept_energy(a: Arrays, v: Array, kinetic: float) -> float:
    """K [J] at the rates v and their kinetic energy, at the poses and inertias at hand."""
    c, h = a.control, a.vectors[BIAS]
    g = vec(c.gravity)
    put_bias(a, v)
    potential = inertial = 0.0
    for i in range(1, len(a.bodies)):
        body, pose = a.bodies[i], a.poses[i]
        centre = add(world_position(pose), apply(mat(pose.R), vec(body.com)))
        potential -= body.mass * dot(g, centre)
    for k in range(len(v)):
        inertial += v[k] * h[k]
    gravity = power_of_weights(a, v)
    inertial += gravity
    return kinetic + potential + c.dt * (0.5 * gravity - inertial)


@outlined
def keep_account(
    a: Arrays, kinetic: float, before: Array, v: Array, given: float, report: Array
) -> None:
    """Go on with the energy budget, and keep it: take from v what K exceeds it by.

    Args:
        a: The system at the end of a step.
        kinetic: Kinetic energy [J] there, of masses alone.
        before: (nv,) rates at its start,
        v: (nv,) and at its end.
        given: Work [J] of forces and impulses in it.
        report: Of ``InequalityArrays``.
    """
    report[TAKEN] = 0.0
    kept = kept_energy(a, v, kinetic)
    if math.isnan(report[BUDGET]):
        report[BUDGET], report[LARGEST] = kept, kinetic
        return
    report[BUDGET] += given + work_of_dampers(a, before, v)
    report[LARGEST] = max(report[LARGEST], kinetic)
    excess = kept - report[BUDGET]
    if not excess > TOLERATED * report[LARGEST] or not kinetic > 0.0:
        return
    s = math.sqrt(max(1.0 - excess / kinetic, 0.0))
    for k in range(len(v)):
        v[k] *= s
    report[TAKEN] = (1.0 - s * s) * kinetic
