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
from typing import Any, NamedTuple

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.dense import put_bias
from bulletbridge.engine.plausible import power_of_weights
from bulletbridge.engine.records import BIAS, Arrays
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


class Budget(NamedTuple):
    """The account with factors of one kind.

    Attributes:
        kinetic_energy_of_masses: (a, f, v) [J].
        kept_energy: (a, f, v) K [J].
        keep_budget: (a, f, v, budget, largest) takes from v what K exceeds the budget by; the
            energy [J] that was taken.
    """

    kinetic_energy_of_masses: Callable[..., float]
    kept_energy: Callable[..., float]
    keep_budget: Callable[..., float]


def budgeting(kinetic_energy: Callable[..., float]) -> Budget:
    """The account with factors of one kind, whose kinetic energy in their metric is given.

    numba resolves the functions that it closes over when it compiles them.
    """

    @outlined
    def kinetic_energy_of_masses(a: Arrays, f: Any, v: Array) -> float:
        """Kinetic energy [J] at the rates v (nv,); factors may have dampers of joints in them."""
        total = kinetic_energy(a, f, v)
        for k in range(len(v)):
            total -= 0.5 * a.control.damper_dt * a.axes[k].damping * v[k] * v[k]
        return max(total, 0.0)

    @outlined
    def kept_energy(a: Arrays, f: Any, v: Array) -> float:
        """K [J] at the rates v, at the poses and factors of this configuration."""
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
        return kinetic_energy_of_masses(a, f, v) + potential + c.dt * (0.5 * gravity - inertial)

    @outlined
    def keep_budget(a: Arrays, f: Any, v: Array, budget: float, largest: float) -> float:
        """Take from v what K exceeds the budget by; the energy [J] that was taken."""
        excess = kept_energy(a, f, v) - budget
        kinetic = kinetic_energy_of_masses(a, f, v)
        if not excess > TOLERATED * largest or not kinetic > 0.0:
            return 0.0
        s = math.sqrt(max(1.0 - excess / kinetic, 0.0))
        for k in range(len(v)):
            v[k] *= s
        return (1.0 - s * s) * kinetic

    return Budget(kinetic_energy_of_masses, kept_energy, keep_budget)
