"""One model under one solver, step by step."""

from contextlib import closing
from dataclasses import dataclass, replace
from time import perf_counter_ns

import numpy as np

from bulletbridge.comparison.evaluate import dead_loads, judge
from bulletbridge.comparison.native import NativeWorld, NoNativeTwinError
from bulletbridge.comparison.plan import NATIVE, Plan, Progress, blank, options
from bulletbridge.comparison.results import Corrections, Rank, Result
from bulletbridge.comparison.trajectory import Trace, observe
from bulletbridge.errors import BulletBridgeError, StepError, UnsupportedError
from bulletbridge.models.load import LoadedModel, load
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array

REFERENCE_RTOL = 1e-12


@dataclass(frozen=True)
class Run:
    """A result and the trajectory behind it; no trajectory when the run could not start."""

    result: Result
    trace: Trace | None


def run_ours(
    loaded: LoadedModel, plan: Plan, solver: str, reference: Array | None, progress: Progress
) -> Run:
    """Run our solver from the present state on, one Python call and one write-back per step."""
    system = loaded.system
    table = Table(plan.steps, system.mechanism.nq, system.mechanism.nv)
    table.start(system.q, system.v)
    message, cannot = "", False
    try:
        for n in range(plan.steps):
            begun = perf_counter_ns()
            system.step()
            table.time(n, perf_counter_ns() - begun)
            table.state(n, system.q, system.v)
            s = system.status
            table.solver[n] = s.rank, s.margin, s.passes
            progress(1)
    except BulletBridgeError as error:
        message, cannot = str(error), isinstance(error, UnsupportedError)
        progress(plan.steps - table.done)
    if cannot and not table.done:
        return Run(blank(loaded.spec, plan, solver, "unsupported", message), None)
    trace = table.trace(plan.dt)
    trace = replace(trace, evaluated=observe(system, trace, dead_loads(loaded)))
    result = judge(loaded, plan, solver, trace, message, reference)
    if cannot:
        result = replace(result, status="unsupported")
    if table.done:
        rank, margin, passes = table.solver[: table.done].T
        result = replace(
            result,
            rank=Rank(system.status.rows, int(rank.min()), int(rank.max()), float(margin.min())),
            corrections=Corrections(float(passes.mean()), int(passes.max())),
        )
    return Run(result, trace)


def run_formulation(
    spec: ModelSpec,
    start: tuple[Array, Array],
    plan: Plan,
    solver: str,
    reference: Array | None,
    progress: Progress,
) -> Run:
    """Run another formulation from the same start, in a world of its own."""
    try:
        with load(spec, "new", **options(plan, solver)) as loaded:
            loaded.system.set_state(*start)
            return run_ours(loaded, plan, solver, reference, progress)
    except BulletBridgeError as error:
        progress(plan.steps)
        return Run(blank(spec, plan, solver, "unsupported", str(error)), None)


def run_native(
    loaded: LoadedModel,
    start: tuple[Array, Array],
    plan: Plan,
    solver: str,
    reference: Array | None,
    progress: Progress,
) -> Run:
    """Run Bullet's own solver from the same start; ``stepSimulation`` and torques are timed."""
    system = loaded.system
    try:
        settings = replace(NATIVE[solver], limits=plan.limits)
        world = NativeWorld(loaded.spec, *start, plan.dt, settings)
    except NoNativeTwinError as error:
        progress(plan.steps)
        return Run(blank(loaded.spec, plan, solver, "unsupported", str(error)), None)
    except BulletBridgeError as error:
        progress(plan.steps)
        return Run(blank(loaded.spec, plan, solver, "failed", str(error)), None)
    table = Table(plan.steps, system.mechanism.nq, system.mechanism.nv)
    table.start(*start)
    message = ""
    with closing(world):
        try:
            for n in range(plan.steps):
                begun = perf_counter_ns()
                world.advance()
                table.time(n, perf_counter_ns() - begun)
                table.state(n, *world.state())
                progress(1)
        except StepError as error:
            message = str(error)
            progress(plan.steps - table.done)
    trace = table.trace(plan.dt)
    trace = replace(trace, evaluated=observe(system, trace, dead_loads(loaded)))
    return Run(judge(loaded, plan, solver, trace, message, reference), trace)


def run_reference(spec: ModelSpec, plan: Plan) -> Array | None:
    """Configurations (steps + 1, nq) of a converged run; None if it fails."""
    try:
        with load(spec, "new", dt=plan.dt, integrator="dop853", rtol=REFERENCE_RTOL) as loaded:
            start = loaded.system.q
            return np.vstack([start, loaded.system.rollout(plan.steps).q])
    except BulletBridgeError:
        return None


class Table:
    """Arrays that a run fills, for a number of steps and coordinates."""

    def __init__(self, steps: int, nq: int, nv: int) -> None:
        self.q, self.v = np.zeros((steps + 1, nq)), np.zeros((steps + 1, nv))
        self.step_us, self.solver = np.zeros(steps), np.zeros((steps, 3))
        self.done = 0

    def start(self, q: Array, v: Array) -> None:
        """Keep the state before the first step."""
        self.q[0], self.v[0] = q, v

    def time(self, n: int, nanoseconds: int) -> None:
        """Keep how long step n took."""
        self.step_us[n] = 1e-3 * nanoseconds

    def state(self, n: int, q: Array, v: Array) -> None:
        """Keep the state after step n."""
        self.q[n + 1], self.v[n + 1] = q, v
        self.done = n + 1

    def trace(self, dt: float) -> Trace:
        """The steps done, the start first."""
        kept = self.done + 1
        return Trace(
            dt * np.arange(kept, dtype=np.float64),
            self.q[:kept],
            self.v[:kept],
            self.step_us[: self.done],
        )
