"""Energy that a step may not add: semi-implicit Euler takes inertial forces at the start of a step.

What it keeps to second order when nothing else acts is not the energy E but

    K = E + dt/2 v·F - dt v·c + dt²/2 c·P M⁻¹ c

with the weights F and the inertial forces c, what loops do not bear of them P: one step changes the
kinetic energy by the work of gravity along the mean velocity, and by half a step of v·Ṁv at its end
less the same at its start. It is the kinetic energy with the rates that inertial forces will leave
in the next step, a square, so that no rates are too fast to be seen. Without the last term, fourth
power of the rates, mechanisms that turn by a fifth of a radian a step had a K that falls, far below
zero, as they gained energy.
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
from bulletbridge.engine.plausible import force_of_weights, height_of_weights, ways_squared
from bulletbridge.engine.records import ACCELERATION, BIAS, FORCE, Arrays
from bulletbridge.inequalities.arrays import BUDGET, LARGEST, TAKEN
from bulletbridge.mechanism.records import DRAG
from bulletbridge.numerics.records import Array

TOLERATED = 1e-3
"""Share of the largest kinetic energy by which K may exceed the budget: what it varies by as it
should, and what the account of impulses within a step is off by."""
BENT = 0.1
"""Share of it that the last term of K is left out for: of the kinetic energy, that term is the
square of the angle of a step."""
HALVINGS = 52
"""To round-off."""


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


class Kept(NamedTuple):
    """K [J] of rates s v as a polynomial of s."""

    still: float
    line: float
    square: float
    cube: float
    fourth: float


@helper
def at_share(kept: Kept, s: float) -> float:
    """K [J] of a share s of the rates."""
    return kept.still + s * (kept.line + s * (kept.square + s * (kept.cube + s * kept.fourth)))


@helper
def share_within(kept: Kept, budget: float) -> float:
    """A share of the rates, of none to all, with which K is the budget; zero if it never is."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        s = 0.5 * (low + high)
        if at_share(kept, s) > budget:
            high = s
        else:
            low = s
    return low


def budgeting(energy_of: Callable[..., float], admit: Callable[..., None]) -> Callable[..., None]:
    """The helper that keeps the budget with factors of one kind.

    numba resolves the functions that it closes over when it compiles it.

    Args:
        energy_of: (a, f, v) kinetic energy in the metric of the factors.
        admit: (a, f, force, vdot) what a force gives the admissible velocities, P M⁻¹ f.
    """

    @outlined
    def kinetic_energy_of_masses(a: Arrays, f: Any, v: Array) -> float:
        """Kinetic energy [J] at the rates v (nv,); factors may have dampers of joints in them."""
        total = energy_of(a, f, v)
        for k in range(len(v)):
            total -= 0.5 * a.control.damper_dt * a.axes[k].damping * v[k] * v[k]
        return max(total, 0.0)

    @outlined
    def kept_energy(a: Arrays, f: Any, v: Array) -> Kept:
        """K [J] at the rates v, by powers of them, at the poses and inertias at hand."""
        c, nv = a.control, len(v)
        kinetic = kinetic_energy_of_masses(a, f, v)
        h, vdot = a.vectors[BIAS], a.vectors[ACCELERATION, :nv]
        inertia, turned = a.vectors[FORCE, :nv], ways_squared(a, v, v)[1]
        put_bias(a, v)
        gravity = inertial = bent = 0.0
        for k in range(nv):
            weight = force_of_weights(a, k)
            gravity += v[k] * weight
            inertia[k] = h[k] + weight
            inertial += v[k] * inertia[k]
        if turned > BENT * TOLERATED:
            admit(a, f, inertia, vdot)
            bent = c.dt * c.dt * kinetic_energy_of_masses(a, f, vdot)
        return Kept(height_of_weights(a), 0.5 * c.dt * gravity, kinetic, -c.dt * inertial, bent)

    @outlined
    def keep_account(
        a: Arrays, f: Any, before: Array, v: Array, given: float, report: Array
    ) -> None:
        """Go on with the energy budget, and keep it: take from v what K exceeds it by.

        Args:
            a: The system at the end of a step.
            f: Its factors there.
            before: (nv,) rates at its start,
            v: (nv,) and at its end.
            given: Work [J] of forces and impulses in it.
            report: Of ``InequalityArrays``.
        """
        report[TAKEN] = 0.0
        kept = kept_energy(a, f, v)
        if math.isnan(report[BUDGET]):
            report[BUDGET], report[LARGEST] = at_share(kept, 1.0), kept.square
            return
        report[BUDGET] += given + work_of_dampers(a, before, v)
        report[LARGEST] = max(report[LARGEST], kept.square)
        tolerated = TOLERATED * report[LARGEST]
        if not at_share(kept, 1.0) > report[BUDGET] + tolerated or not kept.square > 0.0:
            return
        s = share_within(kept, report[BUDGET])
        for k in range(len(v)):
            v[k] *= s
        report[TAKEN] = (1.0 - s * s) * kept.square

    return keep_account
