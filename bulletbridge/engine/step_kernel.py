"""The step: predict, correct, filter. One call advances many steps.

One factorisation serves a step: the factors made for the filter that ends a step give the
acceleration of the next one, and its correction uses them as a chord method.

There are three kernels, which differ in the integrators that they know: each is compiled when it is
first needed, and most users never need the larger ones.
"""

from collections.abc import Callable
from typing import Any

from bulletbridge.compilation.jit import helper, kernel, outlined
from bulletbridge.engine.backend import KktBackend
from bulletbridge.engine.correction import kinetic_energy
from bulletbridge.engine.dense import (
    accelerate,
    accelerate_at,
    factor_at,
    project_force,
    set_implicit_horizon,
)
from bulletbridge.engine.explicit import explicit_stages
from bulletbridge.engine.plausible import find_least_dense, judge_leap
from bulletbridge.engine.radau import radau_stages
from bulletbridge.engine.records import (
    ACCELERATION,
    BY_DENSE,
    DONE,
    DOP8,
    RADAU,
    RK4,
    START_Q,
    START_V,
    Arrays,
    FactorPair,
    Factors,
    Instant,
    SystemArrays,
)
from bulletbridge.engine.stages import no_stages
from bulletbridge.engine.step_end import project, stabilise_step
from bulletbridge.engine.substeps import stepping
from bulletbridge.numerics.projection import unwhiten
from bulletbridge.numerics.records import Array

STEP, ACCELERATE, PROJECT, JUDGE = 0, 1, 2, 3
"""Tasks: advance by steps; acceleration into vectors[ACCELERATION]; correct and filter in place;
judge the step that has led here from vectors[START_Q] and vectors[START_V]."""


@helper
def admissible_acceleration(
    a: Arrays, f: Factors, q: Array, v: Array, tau: Array, vdot: Array
) -> None:
    """What applied and bias forces do to the admissible velocities: P M⁻¹ (tau - h)."""
    project_force(a, f, q, v, tau, vdot)
    unwhiten(f.L, vdot)


@outlined
def energy_of(a: Arrays, f: Factors, v: Array) -> float:
    """Kinetic energy [J] at the configuration of the factors, in their metric."""
    return kinetic_energy(a, f, v)


@helper
def no_response(a: Arrays, f: Factors, q: Array, v: Array, tau: Array, vdot: Array) -> None:
    """None: a kernel without Euler's method."""


WHOLE = KktBackend(
    BY_DENSE,
    factor_at,
    admissible_acceleration,
    accelerate,
    accelerate_at,
    no_stages,
    no_stages,
    stabilise_step,
    energy_of,
    find_least_dense,
)
STAGED = WHOLE._replace(admissible_acceleration=no_response, explicit_stages=explicit_stages)
advance = stepping(WHOLE)
advance_by_stages = stepping(STAGED)
advance_implicitly = stepping(STAGED._replace(implicit_stages=radau_stages))


@helper
def bundled(
    do: Callable[..., int],
    arrays: SystemArrays,
    targets: Array,
    tau: Array,
    record: Array,
    task: int,
    steps: int,
) -> int:
    """Call ``do`` with the arrays as helpers take them."""
    a = Arrays(
        arrays.bodies,
        arrays.beams,
        arrays.stations,
        arrays.efforts,
        arrays.poses,
        arrays.axes,
        arrays.loops,
        arrays.couplings,
        arrays.terms,
        arrays.user_jacobian,
        arrays.rows[2],
        arrays.vectors,
        arrays.control[0],
    )
    rows, L, Y, R = arrays.rows, arrays.L, arrays.Y, arrays.R
    other = 0 if a.control.integrator == DOP8 else 1  # its last stage is at the end of the step
    s = FactorPair(
        Factors(L[0], Y[0], R[0], rows[0]), Factors(L[other], Y[other], R[other], rows[other]), L
    )
    return do(a, s, arrays.state, targets, tau, record, task, steps)


@helper
def do_task(
    a: Arrays,
    s: FactorPair,
    state: Array,
    targets: Array,
    tau: Array,
    record: Array,
    task: int,
    steps: int,
) -> int:
    """Do a task of ``run``."""
    if task == STEP:
        return advance(a, s, state, targets, tau, record, 0, steps)
    c, nv, nq = a.control, len(a.axes), len(state) - len(a.axes) - 1
    q, v = state[:nq], state[nq : nq + nv]
    now = Instant(state[nq + nv], targets[0])
    c.failure, c.done = DONE, 0
    set_implicit_horizon(a, 0.0)
    if task == ACCELERATE:
        accelerate_at(a, s.f, now, q, v, tau[0], a.vectors[ACCELERATION, :nv])
        c.factored = BY_DENSE
    elif task == JUDGE:
        judge(a, s.f, now, q, v, tau)
    else:
        project(a, s.f, now, q, v)
    return c.failure


@outlined
def judge(a: Arrays, f: Factors, end: Instant, q: Array, v: Array, tau: Array) -> None:
    """Refuse the end of a step that forces cannot have led to; both ends are prescribed alike."""
    q0, v0 = a.vectors[START_Q, : len(q)], a.vectors[START_V, : len(v)]
    factor_at(a, f, end, q, v)
    find_least_dense(a, f)
    judge_leap(a, end, end, q0, v0, q, v, tau, 0.0, a.control.excess)


@kernel
def run(
    arrays: SystemArrays, targets: Array, tau: Array, record: Array, task: int, steps: int
) -> int:
    """Do a task at the state (q, v, t), in place; return the failure that stopped it, or DONE.

    Steps are those of ``EULER`` and ``VERLET``.

    targets (times, targets): at the start of each step, with Runge-Kutta at its middle too, and at
    the end of the last. tau (times, nv): one line a step, with Runge-Kutta three, at its start, its
    middle and its end, so that forces may jump from step to step. Of both one line for all times if
    they are constant, or if ``control.scripted``. record (steps // every, nq + nv + 4) receives
    states, rank, margin, passes; empty for none.
    """
    return bundled(do_task, arrays, targets, tau, record, task, steps)


@kernel
def run_by_stages(
    arrays: SystemArrays, targets: Array, tau: Array, record: Array, task: int, steps: int
) -> int:
    """Advance by steps of ``RK4`` and ``DOP8``; see ``run``. The task is ``STEP``."""
    return bundled(advance_by_stages, arrays, targets, tau, record, 0, steps)


@kernel
def run_implicitly(
    arrays: SystemArrays, targets: Array, tau: Array, record: Array, task: int, steps: int
) -> int:
    """Advance by steps of ``RADAU``; see ``run``. The task is ``STEP``."""
    return bundled(advance_implicitly, arrays, targets, tau, record, 0, steps)


def stepping_kernel(integrator: int) -> Any:
    """The kernel that steps by a compiled integrator."""
    return {RK4: run_by_stages, DOP8: run_by_stages, RADAU: run_implicitly}.get(integrator, run)
