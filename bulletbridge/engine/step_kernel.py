"""The step: predict, correct, filter. One call advances many steps.

One factorisation serves a step: the factors made for the filter that ends a step give the
acceleration of the next one, and its correction uses them as a chord method.

There are six kernels, which differ in the integrators that they know, and in friction: each is
compiled when it is first needed, and most users never need the larger ones.
"""

from collections.abc import Callable
from typing import Any

from bulletbridge.compilation.jit import helper, kernel
from bulletbridge.engine.backend import Stages
from bulletbridge.engine.chart_methods import chart_stages
from bulletbridge.engine.dense_backend import DENSE, DENSE_END
from bulletbridge.engine.explicit import explicit_stages
from bulletbridge.engine.modified import MODIFIED, MODIFIED_END, modified_stages, pair_of
from bulletbridge.engine.radau import radau_stages
from bulletbridge.engine.records import (
    CHARTS,
    CHARTS_TRAPEZOIDAL,
    DOP8,
    MODIFIED_EULER,
    MODIFIED_HEUN,
    MODIFIED_RK4,
    RADAU,
    RK4,
    Arrays,
    FactorPair,
    Factors,
    SystemArrays,
    arrays_of,
    dense_factors,
)
from bulletbridge.engine.sliding_friction import SLIDING_BACKEND
from bulletbridge.engine.stages import no_stages
from bulletbridge.engine.step_end import ending
from bulletbridge.engine.substeps import stepping
from bulletbridge.engine.tasks import STEP, evaluating
from bulletbridge.numerics.records import Array


@helper
def no_response(a: Arrays, f: Factors, q: Array, v: Array, tau: Array, vdot: Array) -> None:
    """None: a kernel without Euler's method."""


STAGED = DENSE._replace(admissible_acceleration=no_response)
advance, evaluate = stepping(DENSE, DENSE_END), evaluating(DENSE, DENSE_END)
advance_by_stages = stepping(STAGED, DENSE_END, Stages(explicit_stages, no_stages))
advance_with_friction = stepping(
    SLIDING_BACKEND._replace(admissible_acceleration=no_response),
    ending(SLIDING_BACKEND),
    Stages(explicit_stages, no_stages),
)
advance_implicitly = stepping(STAGED, DENSE_END, Stages(explicit_stages, radau_stages))
advance_on_charts = stepping(STAGED, DENSE_END, Stages(chart_stages, no_stages))
advance_modified = stepping(
    MODIFIED._replace(admissible_acceleration=no_response),
    MODIFIED_END,
    Stages(modified_stages, no_stages),
)


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
    a = arrays_of(arrays)
    other = 0 if a.control.integrator == DOP8 else 1  # its last stage is at the end of the step
    s = FactorPair(dense_factors(arrays, 0), dense_factors(arrays, other), arrays.L)
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
    return evaluate(a, s, state, targets, tau, task)


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
def run_with_friction(
    arrays: SystemArrays, targets: Array, tau: Array, record: Array, task: int, steps: int
) -> int:
    """Advance by ``VERLET``, ``RK4`` and ``DOP8`` with friction of loop joints; see ``run``."""
    return bundled(advance_with_friction, arrays, targets, tau, record, 0, steps)


@kernel
def run_implicitly(
    arrays: SystemArrays, targets: Array, tau: Array, record: Array, task: int, steps: int
) -> int:
    """Advance by steps of ``RADAU``; see ``run``. The task is ``STEP``."""
    return bundled(advance_implicitly, arrays, targets, tau, record, 0, steps)


@kernel
def run_on_charts(
    arrays: SystemArrays, targets: Array, tau: Array, record: Array, task: int, steps: int
) -> int:
    """Advance by ``CHARTS`` and ``CHARTS_TRAPEZOIDAL``; see ``run``. The task is ``STEP``."""
    return bundled(advance_on_charts, arrays, targets, tau, record, 0, steps)


@kernel
def run_modified(
    arrays: SystemArrays, targets: Array, tau: Array, record: Array, task: int, steps: int
) -> int:
    """Advance by a modified integration; see ``run``. The task is ``STEP``."""
    a = arrays_of(arrays)
    return advance_modified(a, pair_of(arrays), arrays.state, targets, tau, record, 0, steps)


KERNELS = {
    RK4: run_by_stages,
    DOP8: run_by_stages,
    RADAU: run_implicitly,
    CHARTS: run_on_charts,
    CHARTS_TRAPEZOIDAL: run_on_charts,
    MODIFIED_EULER: run_modified,
    MODIFIED_HEUN: run_modified,
    MODIFIED_RK4: run_modified,
}


def stepping_kernel(integrator: int, slides: bool = False) -> Any:
    """The kernel that steps by a compiled integrator, where loop joints slide with friction too."""
    return run_with_friction if slides else KERNELS.get(integrator, run)
