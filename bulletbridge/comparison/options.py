"""Settings of a comparison, and their validation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bulletbridge.comparison.native import DEFAULT, TUNED, NativeSettings
from bulletbridge.comparison.results import Result, Status
from bulletbridge.errors import ModelError
from bulletbridge.formulations.registry import FORMULATIONS
from bulletbridge.models.load import LoadOptions
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array
from bulletbridge.system.options import (
    COMPILED,
    CONTROLLED,
    INTEGRATORS,
    ON_CHARTS,
    WITH_INEQUALITIES,
    Integrator,
    chosen,
)

MOST_STEPS = 5_000_000
"""Every state is kept for judging."""
NATIVE: dict[str, NativeSettings] = {"native": DEFAULT, "native_tuned": TUNED}
SOLVERS = ("projector", *NATIVE)
"""Solvers that a model runs under by default."""
EVERYTHING = (*FORMULATIONS, *NATIVE)
"""Solvers that ``all`` stands for."""
BASELINES = ("multipliers", "baumgarte")
"""Formulations that run as textbooks have them, without correction and filter."""
Progress = Callable[[int], None]
"""Called with the number of steps done since the last call."""


def no_progress(_steps: int) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class CompareOptions:
    """How to run.

    Attributes:
        dt: Step [s].
        duration: [s], rounded to whole steps.
        integrator: Of our solver, None for its default; Bullet's is always semi-implicit Euler.
        rtol: Tolerance of ``dop853`` and ``radau``.
        solvers: Names from ``EVERYTHING``.
        limits: Whether joint limits act, in Bullet and in the projector's compiled steps.
        reference: Measure trajectories against DOP853 at tight tolerance.
    """

    dt: float = 1 / 240
    duration: float = 10.0
    integrator: Integrator | None = None
    rtol: float = 1e-10
    solvers: tuple[str, ...] = SOLVERS
    reference: bool = False
    limits: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        for name, value in (("dt", self.dt), ("duration", self.duration), ("rtol", self.rtol)):
            if not (np.isfinite(value) and value > 0.0):
                raise ModelError(f"{name} is {value}; give a positive number")
        for solver in self.solvers:
            if solver not in EVERYTHING:
                raise ModelError(f"unknown solver '{solver}'; there are {', '.join(EVERYTHING)}")
        if self.integrator is not None and self.integrator not in INTEGRATORS:
            raise ModelError(
                f"unknown integrator '{self.integrator}'; there are {', '.join(INTEGRATORS)}"
            )

        if self.steps > MOST_STEPS:
            raise ModelError(
                f"{self.duration:g} s in steps of {self.dt:g} s are {self.steps} steps, more than "
                f"{MOST_STEPS}; use a larger dt or a shorter duration"
            )

    @property
    def steps(self) -> int:
        """Number of steps, at least one."""
        return max(1, round(self.duration / self.dt))


def load_options(options: CompareOptions, solver: str) -> LoadOptions:
    """Keyword arguments of ``System`` for one of our solvers of a comparison."""
    found: LoadOptions = {"dt": options.dt, "integrator": options.integrator, "rtol": options.rtol}
    found["formulation"] = solver
    if not options.limits:
        found["limits"] = False
    if solver in BASELINES and options.integrator not in CONTROLLED + ON_CHARTS:
        found["passes"], found["velocity_filter"] = 0, False
    return found


class Contender(NamedTuple):
    """One solver in a comparison, as it is to be run."""

    options: CompareOptions
    solver: str
    reference: Array | None = None  # configurations (steps + 1, nq) of a converged run
    progress: Progress = no_progress

    def blank(self, spec: ModelSpec, status: Status, message: str, steps: int = 0) -> Result:
        """A result without numbers."""
        options, solver = self.options, self.solver
        if solver in NATIVE:
            s = NATIVE[solver]
            mode, integrator = "native", WITH_INEQUALITIES
            settings = (
                f"stepSimulation, {s.iterations} iterations, erp {s.erp:g}, "
                f"residual threshold {s.residual:g}, gear erp {s.gear_erp:g}, no contacts"
            )
        elif solver in BASELINES and options.integrator not in CONTROLLED + ON_CHARTS:
            mode, integrator = "formulation", chosen(options.integrator, False)
            settings = "no correction, no filter, in Python"
        else:
            mode, integrator = "exact", chosen(options.integrator, False)
            settings = "redundant directions dropped, gap corrected to round-off"
            settings += ", state written back"
            if integrator in CONTROLLED:
                settings += f", rtol {options.rtol:g}"
            if solver != "projector" or integrator not in COMPILED:
                settings += ", in Python"
        return Result(
            spec.name,
            solver,
            mode,
            integrator,
            options.dt,
            options.steps * options.dt,
            steps,
            status,
            message,
            settings=settings + ", motors and link damping off",
        )
