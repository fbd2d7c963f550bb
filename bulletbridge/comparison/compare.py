"""A model under several solvers, judged by one evaluator."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bulletbridge.comparison.describe import LoopReport, loop_reports
from bulletbridge.comparison.options import (
    NATIVE,
    CompareOptions,
    Contender,
    Progress,
    load_options,
    no_progress,
)
from bulletbridge.comparison.plots import LABELS, far_enough
from bulletbridge.comparison.runs import Run, run_formulation, run_native, run_ours, run_reference
from bulletbridge.comparison.trajectory import Trace
from bulletbridge.errors import BulletBridgeError, LoopFileError, ModelError
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.models.formats.recognise import read_model
from bulletbridge.models.load import load
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.viewer.film import FRAMES_PER_SECOND, Side, film


@dataclass(frozen=True)
class ModelRuns:
    """All runs of one model, and what was decided about its loops."""

    spec: ModelSpec
    runs: tuple[Run, ...]
    loops: tuple[LoopReport, ...] = ()
    mechanism: Mechanism | None = None
    rank: int = 0
    dof: int = 0

    @property
    def side_by_side(self) -> list[tuple[Run, Trace]]:
        """The first run that came far enough to be seen, and Bullet's own, or else another one."""
        seen = far_enough(self.runs)
        others = sorted(seen[1:], key=lambda pair: pair[0].result.solver not in NATIVE)
        return [*seen[:1], *others[:1]]


def compare_model(
    model: str | Path | ModelSpec, options: CompareOptions, progress: Progress = no_progress
) -> ModelRuns:
    """Run a model under every solver of a comparison.

    A run that fails, or that a solver does not support, says so in its result.

    Raises:
        LoopFileError: The loops file cannot be understood.
        ModelError: No such model, or something in it that cannot be modelled.
    """
    spec = model if isinstance(model, ModelSpec) else read_model(model)
    try:
        loaded = load(spec, "new", **load_options(options, "projector"))
    except (LoopFileError, ModelError):
        raise
    except BulletBridgeError as error:
        failed = [Contender(options, s).blank(spec, "failed", str(error)) for s in options.solvers]
        progress(options.steps * len(failed))
        return ModelRuns(spec, tuple(Run(result, None) for result in failed))
    with loaded:
        system = loaded.system
        start, loops = (system.q, system.v), loop_reports(loaded)
        reference = run_reference(spec, options) if options.reference else None
        runs: list[Run] = []
        for solver in options.solvers:
            contender = Contender(options, solver, reference, progress)
            if solver in NATIVE:
                runs.append(run_native(loaded, start, contender))
            elif solver == "projector":
                runs.append(run_ours(loaded, contender))
            else:
                runs.append(run_formulation(spec, start, contender))
        return ModelRuns(
            spec, tuple(runs), loops, system.mechanism, system.decision.cap, system.dof
        )


def film_of(
    model: ModelRuns, path: Path, longest: float = math.inf, rate: float = FRAMES_PER_SECOND
) -> None:
    """Write a film of the first run beside Bullet's own, or another one where there is none.

    Args:
        model: The runs.
        path: A ``.gif`` or ``.mp4``.
        longest: How much of them is shown at most [s].
        rate: Pictures a second.

    Raises:
        ModelError: No run came far enough to be shown, or the file cannot be written.
        MissingExtraError: imageio-ffmpeg, for an mp4, is not installed.
    """
    shown = model.side_by_side
    if not shown:
        raise ModelError(f"no run of '{model.spec.name}' came far enough for a film")
    sides = [
        Side(LABELS.get(run.result.solver, run.result.solver), trace.t, trace.q)
        for run, trace in reversed(shown)
    ]
    with load(model.spec, "new", limits=False) as loaded:
        film(path, model.spec, loaded.system, sides, longest, rate)


def worst(runs: Sequence[ModelRuns]) -> Literal[0, 1]:
    """Exit code: 1 when a run failed."""
    failed = any(run.result.status == "failed" for model in runs for run in model.runs)
    return 1 if failed else 0
