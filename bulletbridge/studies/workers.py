"""Who does the runs of a study: processes on this machine, or a Dask cluster."""

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, cast

from bulletbridge.bullet.silence import silenced_bullet
from bulletbridge.console import leaving_interrupts
from bulletbridge.errors import BulletBridgeError, ModelError, naming_the_extra
from bulletbridge.studies.journal import COLUMNS, Outcome
from bulletbridge.studies.study import Parameters
from bulletbridge.system.rollout_workers import cores

Function = Callable[[Parameters], Mapping[str, float]]
Outcomes = Generator[tuple[int, Outcome], None, None]
SUSPECT, MOST_DEATHS = 2, 4
"""Deaths of workers from which on a run goes alone, and after which it counts as failed."""
MOST_BARREN = 8
"""Deaths of workers, one after the other without any result, that end a study."""
WORKER = "worker of a study"
"""Name of its processes, by which these know that they are such."""
UNGUARDED = 93
"""Exit code of a worker whose import of the program has begun the study again."""


class Workers(SpawnContext):
    """Context that makes the processes of one pool.

    Attributes:
        made: These.
    """

    def __init__(self) -> None:
        super().__init__()
        self.made: list[SpawnProcess] = []

    def Process(  # pyright: ignore[reportIncompatibleVariableOverride]
        self, *args: Any, **kwargs: Any
    ) -> SpawnProcess:
        """One more, which knows its name while it imports the program."""
        self.made.append(SpawnProcess(*args, name=WORKER, **kwargs))
        return self.made[-1]


def perform(function: Function, parameters: Parameters) -> Outcome:
    """One run; what it raises is its outcome."""
    begun = time.perf_counter()
    results: dict[str, float] = {}
    error = ""
    try:
        results = numbers_by_name(function(parameters), parameters)
    except BaseException as failure:  # noqa: BLE001  whatever ends one run of many ends but that
        error = said(failure)
    return Outcome(results, error, time.perf_counter() - begun)


def numbers_by_name(given: object, parameters: Parameters) -> dict[str, float]:
    """What a function has returned, as a study keeps it.

    Raises:
        ModelError: Not numbers by name, or one is called like a column that the table has anyway.
    """
    if not isinstance(given, Mapping):
        raise ModelError(f"the function returned {given!r}; return numbers by name")
    found: dict[str, float] = {}
    for name, value in cast(Mapping[object, Any], given).items():
        if not isinstance(name, str):
            raise ModelError(f"the function returned a number called {name!r}; use strings")
        if name in parameters or name in COLUMNS:
            raise ModelError(
                f"the function returned '{name}', as a parameter or column of the table is called;"
                " give it another name"
            )
        found[name] = float(value)
    return found


def said(failure: BaseException) -> str:
    """What an exception says, as text that can be written, whatever it is."""
    try:
        text = str(failure)
    except Exception:  # its own code, too
        text = "which cannot be put into words"
    if not isinstance(failure, BulletBridgeError):
        text = f"{type(failure).__name__}: {text}"
    return text.encode("utf-8", "backslashreplace").decode()


def begin_worker() -> None:
    """A worker ends with its client, however that ends, and leaves interrupts to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    with silenced_bullet():  # imported without its greeting
        pass


def on_this_machine(
    function: Function, points: Mapping[int, Parameters], workers: int | None
) -> Outcomes:
    """Outcomes of runs as they come, over processes.

    A worker that dies breaks the pool: another one takes what was not done. What was there at
    several deaths goes alone then, and is given up when its worker dies even so.

    Raises:
        ModelError: The function cannot be handed to a process.
        BulletBridgeError: Workers die without doing anything, or begin the study again.
    """
    workers = workers or cores()
    waiting, deaths, barren = deque(points), Counter[int](), 0
    while waiting:
        running: dict[Future[Outcome], int] = {}
        context = Workers()
        pool = ProcessPoolExecutor(min(workers, len(waiting)), context, initializer=begin_worker)
        try:
            while waiting or running:
                while waiting and len(running) < 2 * workers:
                    alone = deaths[waiting[0]] >= SUSPECT
                    if running and (alone or any(deaths[r] >= SUSPECT for r in running.values())):
                        break
                    run = waiting.popleft()
                    running[_submit(pool, function, points[run])] = run
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                broken = False
                for future in finished:
                    error = future.exception()
                    if isinstance(error, BrokenProcessPool):
                        broken = True
                        continue
                    if error is not None:
                        raise ModelError(
                            f"cannot hand the function to another process ({error}); write it as a"
                            " function of a module"
                        ) from error
                    barren = 0
                    yield running.pop(future), future.result()
                if broken:
                    break
            else:
                pool.shutdown()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in context.made:
                if child.pid is not None:  # it could be started
                    child.terminate()
        barren += bool(running)
        if any(child.exitcode == UNGUARDED for child in context.made):
            raise BulletBridgeError(
                "each process of a study imports the program, which calls sweep again there; call"
                " it under: if __name__ == '__main__':"
            )
        if barren > MOST_BARREN:
            raise BulletBridgeError(
                "worker processes die before they finish anything; is there enough memory?"
            )
        for run in reversed(running.values()):
            deaths[run] += 1
            if deaths[run] < MOST_DEATHS:
                waiting.appendleft(run) if deaths[run] < SUSPECT else waiting.append(run)
            else:
                yield run, Outcome({}, f"its worker died {deaths[run]} times", 0.0)


def _submit(
    pool: ProcessPoolExecutor, function: Function, parameters: Parameters
) -> Future[Outcome]:
    """A run on its way; a pool that is broken already answers as one that breaks later."""
    try:
        with leaving_interrupts():
            return pool.submit(perform, function, parameters)
    except BrokenProcessPool as error:
        future: Future[Outcome] = Future()
        future.set_exception(error)
        return future


def on_cluster(function: Function, points: Mapping[int, Parameters], address: str) -> Outcomes:
    """Outcomes of runs as they come from a Dask cluster, which repeats those of dead workers.

    Raises:
        MissingExtraError: distributed is not installed.
        ModelError: There is no cluster at that address.
        BulletBridgeError: It is lost.
    """
    with naming_the_extra("a cluster needs distributed", "bulletbridge[cluster]"):
        distributed: Any = import_module("distributed")
    try:
        client = distributed.Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"cannot reach a Dask cluster at '{address}' ({error}); give the address that its"
            " scheduler prints, such as tcp://host:8786"
        ) from None
    with client:
        window = 4 * max(1, sum(client.nthreads().values()))
        waiting, running = iter(points), dict[Any, int]()
        finished = distributed.as_completed(loop=client.loop)

        def submit_next() -> None:
            run = next(waiting, None)
            if run is not None:
                future = client.submit(perform, function, points[run], pure=False)
                running[future] = run
                finished.add(future)

        try:
            for _ in range(window):
                submit_next()
            for future in finished:
                error, run = future.exception(), running.pop(future)
                yield run, Outcome({}, said(error), 0.0) if error is not None else future.result()
                submit_next()
        except (OSError, CancelledError, TimeoutError) as error:
            why = " ".join(said(error).split())
            raise BulletBridgeError(
                f"the Dask cluster at '{address}' is lost ({why}); what is done is kept: go on with"
                " resume when it is there again"
            ) from None
