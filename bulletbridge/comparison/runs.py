"""One model under one solver, step by step."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from time import perf_counter_ns

import numpy as np

from bulletbridge.comparison.evaluate import dead_loads, result_of
from bulletbridge.comparison.native import NativeWorld, NoNativeTwinError
from bulletbridge.comparison.options import (
    NATIVE,
    CompareOptions,
    Contender,
    Progress,
    load_options,
)
from bulletbridge.comparison.results import Corrections, Rank, Result
from bulletbridge.comparison.trajectory import Trace, observe
from bulletbridge.errors import BulletBridgeError, UnsupportedError
from bulletbridge.models.load import LoadedModel, load
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array

REFERENCE_RTOL = 1e-12


@dataclass(frozen=True)
class Run:
    """A result and the trajectory behind it; no trajectory when the run could not start."""

    result: Result
    trace: Trace | None


def run_ours(loaded: LoadedModel, contender: Contender) -> Run:
    """Run our solver from the present state on, one Python call and one write-back per step."""
    system, found = loaded.system, list[tuple[int, float, int]]()

    def state() -> tuple[Array, Array]:
        found.append((system.status.rank, system.status.margin, system.status.passes))
        return system.q, system.v

    table = Table(contender.options.steps, system.q, system.v)
    failure = table.fill(system.step, state, contender.progress)
    message, cannot = str(failure or ""), isinstance(failure, UnsupportedError)
    if cannot and not table.done:
        return Run(contender.blank(loaded.spec, "unsupported", message), None)
    trace = table.trace(loaded, contender.options.dt)
    result = result_of(loaded, contender, trace, message)
    if cannot:
        result = replace(result, status="unsupported")
    if found:
        rank, margin, passes = np.array(found).T
        result = replace(
            result,
            rank=Rank(system.status.rows, int(rank.min()), int(rank.max()), float(margin.min())),
            corrections=Corrections(float(passes.mean()), int(passes.max())),
        )
    return Run(result, trace)


def run_formulation(spec: ModelSpec, start: tuple[Array, Array], contender: Contender) -> Run:
    """Run another formulation from the same start, in a world of its own."""
    try:
        with load(spec, "new", **load_options(contender.options, contender.solver)) as loaded:
            loaded.system.set_state(*start)
            return run_ours(loaded, contender)
    except BulletBridgeError as error:
        contender.progress(contender.options.steps)
        return Run(contender.blank(spec, "unsupported", str(error)), None)


def run_native(loaded: LoadedModel, start: tuple[Array, Array], contender: Contender) -> Run:
    """Run Bullet's own solver from the same start; ``stepSimulation`` and torques are timed."""
    try:
        settings = replace(NATIVE[contender.solver], limits=contender.options.limits)
        world = NativeWorld(loaded.spec, *start, contender.options.dt, settings)
    except BulletBridgeError as error:
        contender.progress(contender.options.steps)
        status = "unsupported" if isinstance(error, NoNativeTwinError) else "failed"
        return Run(contender.blank(loaded.spec, status, str(error)), None)
    table = Table(contender.options.steps, *start)
    with closing(world):
        failure = table.fill(world.advance, world.state, contender.progress)
    trace = table.trace(loaded, contender.options.dt)
    return Run(result_of(loaded, contender, trace, str(failure or "")), trace)


def run_reference(spec: ModelSpec, options: CompareOptions) -> Array | None:
    """Configurations (steps + 1, nq) of a converged run; None if it fails."""
    try:
        with load(spec, "new", dt=options.dt, integrator="dop853", rtol=REFERENCE_RTOL) as loaded:
            start = loaded.system.q
            return np.vstack([start, loaded.system.rollout(options.steps).q])
    except BulletBridgeError:
        return None


class Table:
    """Arrays that a run fills, for a number of steps from a start."""

    def __init__(self, steps: int, q: Array, v: Array) -> None:
        self.q, self.v = np.zeros((steps + 1, len(q))), np.zeros((steps + 1, len(v)))
        self.q[0], self.v[0] = q, v
        self.step_us = np.zeros(steps)
        self.done = 0

    def fill(
        self,
        advance: Callable[[], object],
        state: Callable[[], tuple[Array, Array]],
        progress: Progress,
    ) -> BulletBridgeError | None:
        """Make the steps, of which ``advance`` is timed; the error that ended them early."""
        for n in range(len(self.step_us)):
            try:
                begun = perf_counter_ns()
                advance()
                self.step_us[n] = 1e-3 * (perf_counter_ns() - begun)
                self.q[n + 1], self.v[n + 1] = state()
            except BulletBridgeError as error:
                progress(len(self.step_us) - n)
                return error
            self.done = n + 1
            progress(1)
        return None

    def trace(self, loaded: LoadedModel, dt: float) -> Trace:
        """The steps done, the start first, evaluated."""
        kept = self.done + 1
        times = dt * np.arange(kept, dtype=np.float64)
        trace = Trace(times, self.q[:kept], self.v[:kept], self.step_us[: self.done])
        return replace(trace, evaluated=observe(loaded.system, trace, dead_loads(loaded)))
