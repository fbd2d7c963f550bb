"""Velocity Verlet with loops: order 2 at one factorisation a step.

    v½ = v + h/2 a(q, v),  q₁ = q displaced by h v½,  v₁ = v½ + h/2 a(q₁, v₁)

Between the halves q₁ is corrected and what moves it goes, over h, into v½ (``stabilise_step``), so
that q moves along the chord between two closed configurations; at the end v₁ is filtered. Each half
has the curvature of the constraints at its own end. Accelerations that depend on v make the second
half implicit: it is iterated once from v½ + h/2 a, which keeps the order, and each evaluation takes
the factors that are there. Nothing is remembered from step to step.

Source: Hairer, Lubich and Wanner, Geometric Numerical Integration, I.1.4 and VII.1.4.
"""

from collections.abc import Callable
from typing import Any

from bulletbridge.compilation.jit import helper
from bulletbridge.engine.records import (
    ACCELERATION,
    STAGE_RATES,
    STAGE_V,
    STAGE_VDOTS,
    Arrays,
    Instant,
)
from bulletbridge.mechanism.kinematics import displace
from bulletbridge.numerics.records import Array

END_FORCES = STAGE_RATES + 1
"""Row of the vectors with the forces at the end of the step."""


@helper
def first_half(a: Arrays, q: Array, v: Array, tau: Array) -> None:
    """Velocity of the middle and the configuration by it; accelerations are those of first_stage.

    tau has the forces of the start in its first line, those of the end in its last.
    """
    dt, ended = a.control.dt, tau[len(tau) - 1]
    for k in range(len(v)):
        v[k] += 0.5 * dt * a.vectors[STAGE_VDOTS, k]
        a.vectors[END_FORCES, k] = ended[k]
    displace(a.bodies, q, v, dt, q)


@helper
def second_half(
    accelerate: Callable[..., None],
    filter_velocity: Callable[..., None],
    a: Arrays,
    f: Any,
    end: Instant,
    q: Array,
    v: Array,
) -> None:
    """The velocity of the end, not yet filtered, with the factors of the end.

    Accelerations and the filter are those of ``dense``, by factors of the kind of f.
    """
    nv, dt = len(v), a.control.dt
    tau, vdot = a.vectors[END_FORCES, :nv], a.vectors[ACCELERATION, :nv]
    guess = a.vectors[STAGE_V, :nv]
    for k in range(nv):
        vdot[k] = a.vectors[STAGE_VDOTS, k]
    for n in range(2):
        for k in range(nv):
            guess[k] = v[k] + 0.5 * dt * vdot[k]
        if n > 0:
            filter_velocity(a, f, guess)
        accelerate(a, f, end, q, guess, tau, vdot)
    for k in range(nv):
        v[k] += 0.5 * dt * vdot[k]
