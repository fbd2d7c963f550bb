"""A model under several solvers, judged by one evaluator."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter_ns
from typing import Literal

import numpy as np

from bulletbridge.errors import BulletBridgeError, LoopFileError, ModelError, StepError
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.system import Integrator
from bulletbridge.surface.describe import LoopReport, loop_reports
from bulletbridge.surface.load import LoadedModel, load
from bulletbridge.surface.loops_file import ModelSpec, read_loops
from bulletbridge.surface.models import find
from bulletbridge.surface.native import (
    DEFAULT,
    TUNED,
    NativeSettings,
    NativeWorld,
    NoNativeTwinError,
)
from bulletbridge.surface.results import (
    Corrections,
    Energy,
    Extent,
    Final,
    Rank,
    Result,
    Status,
    StepTime,
    extent,
    named,
)
from bulletbridge.surface.trajectory import Trace, distances, observe

SOLVERS = ("projector", "native", "native_tuned")
NATIVE: dict[str, NativeSettings] = {"native": DEFAULT, "native_tuned": TUNED}
REFERENCE_RTOL = 1e-12
Progress = Callable[[int], None]
"""Called with the number of steps done since the last call."""


def no_progress(_steps: int) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Plan:
    """How to run.

    Attributes:
        dt: Step [s].
        duration: [s], rounded to whole steps.
        integrator: Of our solver; Bullet's is always semi-implicit Euler.
        rtol: Relative tolerance of ``dop853``.
        solvers: Names from ``SOLVERS``.
        reference: Measure trajectories against DOP853 at tight tolerance.
    """

    dt: float = 1 / 240
    duration: float = 10.0
    integrator: Integrator = "semi_implicit_euler"
    rtol: float = 1e-10
    solvers: tuple[str, ...] = SOLVERS
    reference: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be run.

        Raises:
            ModelError: It says what and why.
        """
        for name, value in (("dt", self.dt), ("duration", self.duration), ("rtol", self.rtol)):
            if not (np.isfinite(value) and value > 0.0):
                raise ModelError(f"{name} is {value}; give a positive number")
        for solver in self.solvers:
            if solver not in SOLVERS:
                raise ModelError(f"unknown solver '{solver}'; there are {', '.join(SOLVERS)}")
        if self.integrator not in ("semi_implicit_euler", "rk4", "dop853"):
            raise ModelError(
                f"unknown integrator '{self.integrator}'; there are semi_implicit_euler, rk4, dop853"
            )

    @property
    def steps(self) -> int:
        """Number of steps, at least one."""
        return max(1, round(self.duration / self.dt))


@dataclass(frozen=True)
class Run:
    """A result and the trajectory behind it; no trajectory when the run could not start."""

    result: Result
    trace: Trace | None


@dataclass(frozen=True)
class ModelRuns:
    """All runs of one model, and what was decided about its loops."""

    spec: ModelSpec
    runs: tuple[Run, ...]
    loops: tuple[LoopReport, ...] = ()
    mechanism: Mechanism | None = None
    rank: int = 0
    dof: int = 0


def compare_model(
    model: str | Path | ModelSpec, plan: Plan, progress: Progress = no_progress
) -> ModelRuns:
    """Run a model under every solver of a plan.

    A run that fails, or that a solver does not support, says so in its result.

    Raises:
        LoopFileError: The loops file cannot be understood.
        ModelError: No such model, or something in it that cannot be modelled.
    """
    spec = model if isinstance(model, ModelSpec) else read_loops(find(model))
    try:
        loaded = load(spec, dt=plan.dt, integrator=plan.integrator, rtol=plan.rtol)
    except (LoopFileError, ModelError):
        raise
    except BulletBridgeError as error:
        failed = [blank(spec, plan, s, "failed", str(error)) for s in plan.solvers]
        progress(plan.steps * len(failed))
        return ModelRuns(spec, tuple(Run(result, None) for result in failed))
    with loaded:
        system = loaded.system
        start, loops = (system.q, system.v), loop_reports(loaded)
        reference = run_reference(spec, plan) if plan.reference else None
        runs: list[Run] = []
        for solver in plan.solvers:
            if solver in NATIVE:
                runs.append(run_native(loaded, start, plan, solver, reference, progress))
            else:
                runs.append(run_ours(loaded, plan, solver, reference, progress))
        return ModelRuns(
            spec, tuple(runs), loops, system.mechanism, system.decision.cap, system.dof
        )


def run_ours(
    loaded: LoadedModel, plan: Plan, solver: str, reference: Array | None, progress: Progress
) -> Run:
    """Run our solver from the present state on, one Python call and one write-back per step."""
    system = loaded.system
    table = Table(plan.steps, system.mechanism.nq, system.mechanism.nv)
    table.start(system.q, system.v)
    message = ""
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
        message = str(error)
        progress(plan.steps - table.done)
    trace = table.trace(plan.dt)
    trace = replace(trace, evaluated=observe(system, trace))
    result = judge(loaded, plan, solver, trace, message, reference)
    if table.done:
        rank, margin, passes = table.solver[: table.done].T
        result = replace(
            result,
            rank=Rank(system.status.rows, int(rank.min()), int(rank.max()), float(margin.min())),
            corrections=Corrections(float(passes.mean()), int(passes.max())),
        )
    return Run(result, trace)


def run_native(
    loaded: LoadedModel,
    start: tuple[Array, Array],
    plan: Plan,
    solver: str,
    reference: Array | None,
    progress: Progress,
) -> Run:
    """Run Bullet's own solver from the same start; only ``stepSimulation`` and torques are timed."""
    system = loaded.system
    try:
        world = NativeWorld(loaded.spec, *start, plan.dt, NATIVE[solver])
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
    trace = replace(trace, evaluated=observe(system, trace))
    return Run(judge(loaded, plan, solver, trace, message, reference), trace)


def run_reference(spec: ModelSpec, plan: Plan) -> Array | None:
    """Configurations (steps + 1, nq) of a converged run; None if it fails."""
    try:
        with load(spec, dt=plan.dt, integrator="dop853", rtol=REFERENCE_RTOL) as loaded:
            start = loaded.system.q
            return np.vstack([start, loaded.system.rollout(plan.steps).q])
    except BulletBridgeError:
        return None


class Table:
    """Arrays that a run fills."""

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


def blank(
    spec: ModelSpec, plan: Plan, solver: str, status: Status, message: str, steps: int = 0
) -> Result:
    """A result without numbers."""
    if solver in NATIVE:
        s = NATIVE[solver]
        mode, integrator = "native", "semi_implicit_euler"
        settings = (
            f"stepSimulation, {s.iterations} iterations, erp {s.erp:g}, "
            f"residual threshold {s.residual:g}, gear erp {s.gear_erp:g}, no contacts"
        )
    else:
        mode, integrator = "exact", plan.integrator
        settings = "redundant directions dropped, gap corrected to round-off, state written back"
        if integrator == "dop853":
            settings += f", rtol {plan.rtol:g}"
    return Result(
        spec.name,
        solver,
        mode,
        integrator,
        plan.dt,
        plan.steps * plan.dt,
        steps,
        status,
        message,
        settings=settings + ", motors and link damping off",
    )


def judge(
    loaded: LoadedModel,
    plan: Plan,
    solver: str,
    trace: Trace,
    message: str,
    reference: Array | None,
) -> Result:
    """Result of a trajectory, whoever made it."""
    seen = trace.evaluated
    assert seen is not None
    status: Status = "failed" if message else "ok"
    result = blank(loaded.spec, plan, solver, status, message, len(trace.step_us))
    mechanism = loaded.system.mechanism
    return replace(
        result,
        gap_m=extent(seen.gap_m),
        gap_rad=extent(seen.gap_rad),
        gap_kept=extent(seen.gap_kept),
        gap_kept_rad=extent(seen.gap_kept_rad),
        gap_rate=extent(seen.gap_rate),
        gap_rate_rad=extent(seen.gap_rate_rad),
        energy=energy_of(loaded, seen.kinetic, seen.potential),
        trajectory_error=error_against(loaded, trace, reference),
        step_us=timing(trace.step_us),
        final=Final(
            float(trace.t[-1]),
            named(mechanism, trace.q[-1], "q"),
            named(mechanism, trace.v[-1], "v"),
        ),
        notes=notes_of(loaded, trace, solver),
    )


def energy_of(loaded: LoadedModel, kinetic: Array, potential: Array) -> Energy:
    """Energy of a run."""
    total = kinetic + potential
    drift, scale = float(np.abs(total - total[0]).max()), float(kinetic.max())
    relative = drift / scale if scale > 0.0 else None
    return Energy(float(total[0]), drift, relative, is_conservative(loaded))


def timing(step_us: Array) -> StepTime | None:
    """Time per step of a run; None without steps."""
    if not len(step_us):
        return None
    median, p95 = np.percentile(step_us, [50.0, 95.0])
    return StepTime(float(median), float(p95))


def is_conservative(loaded: LoadedModel) -> bool:
    """Whether nothing in the model brings or takes energy."""
    axes = loaded.system.mechanism.axes
    driven = any(c.motion is not None for c in loaded.spec.constraints)
    return not (driven or np.any(axes["damping"]) or np.any(axes["torque"]))


def error_against(loaded: LoadedModel, trace: Trace, reference: Array | None) -> Extent | None:
    """How far configurations are from the reference's."""
    if reference is None:
        return None
    return extent(distances(loaded.system.mechanism, trace.q, reference[: len(trace.q)]))


def notes_of(loaded: LoadedModel, trace: Trace, solver: str) -> tuple[str, ...]:
    """What to know when reading the numbers."""
    notes: list[str] = []
    for name, joint in loaded.system.mechanism.joints.items():
        if joint.kind not in ("revolute", "prismatic"):
            continue
        q = trace.q[:, joint.q.start]
        if q.min() < joint.lower - 1e-9 or q.max() > joint.upper + 1e-9:
            acts = "Bullet pushes back there" if solver in NATIVE else "limits do not act here"
            notes.append(
                f"joint '{name}' leaves its limits [{joint.lower:g}, {joint.upper:g}]; {acts}"
            )
    return tuple(notes)


def worst(runs: Sequence[ModelRuns]) -> Literal[0, 1]:
    """Exit code: 1 when a run failed."""
    failed = any(run.result.status == "failed" for model in runs for run in model.runs)
    return 1 if failed else 0
