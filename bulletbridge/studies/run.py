"""Parameter studies from Python."""

import inspect
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from pathlib import Path

from bulletbridge.errors import BulletBridgeError, ModelError, require_kind
from bulletbridge.numerics.records import array_of
from bulletbridge.studies.journal import COLUMNS, Journal, Results
from bulletbridge.studies.measures import ModelRun
from bulletbridge.studies.study import Parameters, Study, grid
from bulletbridge.studies.workers import (
    UNGUARDED,
    WORKER,
    Function,
    on_cluster,
    on_this_machine,
)

Report = Callable[[int, int, int], None]
"""Called with the runs done, those of them that failed, and all."""
IMPORTED = "__mp_main__"
"""What a program is called while a process of its own imports it."""


def nothing(_done: int, _failed: int, _all: int) -> None:
    """Show nothing."""


def sweep(
    function: Function,
    parameters: Mapping[str, Sequence[float]] | Sequence[Mapping[str, float]],
    file: str | Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    resume: bool = False,
    progress: Report = nothing,
) -> Results:
    """Run a function for many parameters over processes, and keep its results in one file.

    Each result is on disk as soon as it is there. A run whose worker dies is repeated; one that
    raises is kept with its error. A study whose client died goes on with ``resume``, with nothing
    lost or done twice.

    Args:
        function: From parameters by name to numbers by name; ``ModelRun`` is one. Processes must be
            able to import it: a function of a module, and not of an interactive session.
        parameters: Values by name, for every combination of them; or the parameters of each run.
        file: Where the results go: ``*.parquet``.
        workers: Processes on this machine; as many as cores unless given.
        cluster: Address of a Dask scheduler whose workers do the runs instead.
        resume: Go on with a study that was begun, or show one that is done.
        progress: Called after each run.

    Raises:
        ModelError: There are no runs, or no values by name, ``file`` has other results, or there is
            no such cluster.
        BulletBridgeError: The disk is full or the cluster lost; what was done is kept. Or a process
            that does the runs has called it, as it imported the program.
        MissingExtraError: pyarrow, or distributed for a cluster, is not installed.
    """
    _require_no_import()
    runs = grid(parameters) if isinstance(parameters, Mapping) else list(parameters)
    for run in runs:
        said = f"a run has parameters {run!r}; give values by name, as {{'mass': [1.0, 2.0]}}, or"
        require_kind(run, Mapping, f"{said} one such mapping of numbers for each run")
    study = study_of(function, [dict(run) for run in runs])
    if workers is not None and not (isinstance(workers, Integral) and workers >= 1):
        raise ModelError(
            f"workers is {workers!r}; give a number from one on, or none for all cores"
        )
    journal = Journal(Path(file), study, resume)
    try:
        missing = {n: study.parameters(n) for n in range(len(runs)) if n not in journal.done}
        failed = sum(map(bool, journal.results().errors))
        progress(len(journal.done), failed, len(runs))
        if missing:
            if cluster is not None:
                outcomes = on_cluster(function, missing, cluster)
            else:
                outcomes = on_this_machine(function, missing, workers)
            for run, outcome in outcomes:
                journal.add(run, outcome)
                failed += bool(outcome.error)
                progress(len(journal.done), failed, len(runs))
        return journal.finish()
    finally:
        journal.close()


def study_of(function: Function, runs: Sequence[Parameters]) -> Study:
    """The study of a function at these points.

    Raises:
        ModelError: There are none, they differ in their parameters, or some are no numbers.
    """
    if not runs or not runs[0]:
        raise ModelError("a study needs parameters; give some values")
    names = tuple(runs[0])
    if any(set(run) != set(names) for run in runs):
        raise ModelError("the runs of a study differ in the names of their parameters")
    taken = [name for name in names if name in COLUMNS]
    if taken:
        raise ModelError(
            f"a parameter is called '{taken[0]}', as a column of the results is; give it another"
            " name"
        )
    points = array_of("parameters", [[run[name] for name in names] for run in runs])
    if points.shape != (len(runs), len(names)):
        raise ModelError(f"parameters have shape {points.shape}; give one number for each name")
    if isinstance(function, ModelRun):
        about = function.about
    else:
        kind = function if hasattr(function, "__qualname__") else type(function)
        about = f"{kind.__module__}.{getattr(kind, '__qualname__', '')}"
    return Study(names, points, about)


def _require_no_import() -> None:
    """Refuse a study that begins again in each of its processes, as that imports the program."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == IMPORTED and frame.f_code.co_name == "<module>":
            if multiprocessing.current_process().name == WORKER:
                raise SystemExit(UNGUARDED)
            raise BulletBridgeError(
                "sweep was called while a process imports the program: call it under"
                " if __name__ == '__main__':"
            )
        frame = frame.f_back
