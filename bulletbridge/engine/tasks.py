"""What one call of a kernel does: advance by steps, accelerate, project, judge."""

from collections.abc import Callable
from typing import Any

from bulletbridge.compilation.jit import helper, outlined
from bulletbridge.engine.backend import KktBackend, Pair
from bulletbridge.engine.dense import set_implicit_horizon
from bulletbridge.engine.plausible import judge_leap
from bulletbridge.engine.records import (
    ACCELERATION,
    DONE,
    NOT_FACTORED,
    Arrays,
    Instant,
)
from bulletbridge.engine.step_end import StepEnd
from bulletbridge.numerics.records import Array

STEP, ACCELERATE, PROJECT, JUDGE = 0, 1, 2, 3
"""Tasks: advance by steps; acceleration into vectors[ACCELERATION]; correct and filter in place;
judge the step that has led here from vectors[START_Q] and vectors[START_V]."""


def evaluating(backend: KktBackend, end: StepEnd) -> Callable[..., int]:
    """The helper that does all tasks but steps, with factors of one kind."""
    factored, factor_at, accelerate_at = backend.factored, backend.factor_at, backend.accelerate_at
    find_least, project = backend.find_least, end.project

    @helper
    def evaluate(a: Arrays, s: Pair, state: Array, targets: Array, tau: Array, task: int) -> int:
        """Do a task at the state; return the failure, or DONE."""
        c, nv, nq = a.control, len(a.axes), len(state) - len(a.axes) - 1
        q, v = state[:nq], state[nq : nq + nv]
        now = Instant(state[nq + nv], targets[0])
        c.failure, c.done, c.t = DONE, 0, now.t
        set_implicit_horizon(a, 0.0)
        if task == ACCELERATE:
            accelerate_at(a, s.f, now, q, v, tau[0], a.vectors[ACCELERATION, :nv])
            c.factored = factored if c.failure == DONE else NOT_FACTORED
        elif task == JUDGE:
            judge(a, s.f, now, q, v, tau)
        else:
            project(a, s.f, now, q, v)
        return c.failure

    @outlined
    def judge(a: Arrays, f: Any, end: Instant, q: Array, v: Array, tau: Array) -> None:
        """Refuse the end of a step that forces cannot have led to; both ends prescribed alike."""
        factor_at(a, f, end, q, v)
        if a.control.failure == DONE:
            find_least(a, f)
            judge_leap(a, end, end, q, v, tau, 0.0, a.control.excess)

    return evaluate
