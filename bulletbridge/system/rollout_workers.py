"""Threads of rollouts, and the solvers that they work with."""

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from bulletbridge.compilation.announce import announce_compilation
from bulletbridge.compilation.stored_calls import StoredCall
from bulletbridge.engine.choose import copy_of
from bulletbridge.engine.redundancy import Decision
from bulletbridge.engine.rollout_kernel import NONE_LEFT, Place, Worlds, roll_worlds
from bulletbridge.engine.stepper import NO_RECORD, Solver
from bulletbridge.engine.tasks import PROJECT, STEP
from bulletbridge.errors import ModelError
from bulletbridge.numerics.records import Array, Ints
from bulletbridge.system.options import is_count
from bulletbridge.system.rollout_input import Starts

MOST_THREADS = 64
MOST_STEPS = 20_000
"""Steps between two looks at whether Python is interrupted: a tenth of a second."""


class Worker:
    """What one thread works with.

    Attributes:
        solver: A copy of the system's.
        roll: ``rollout_kernel.roll_worlds`` with its arrays, for worlds in compiled code.
    """

    def __init__(self, source: Solver, decision: Decision) -> None:
        self.solver = solver = copy_of(source, decision)
        run, project = solver.stored_call(STEP).block, solver.stored_call(PROJECT).block
        place = Place(solver.state, cast(Any, solver.control), solver.still, NO_RECORD)
        fixed = run, project, place
        reals, numbers = [np.zeros((1,) * n) for n in range(4)], np.zeros(1, np.int64)
        worlds = Worlds(reals[2], reals[3], reals[2], reals[3], numbers, numbers)
        examples = worlds, 0.0, 0, 0, 0
        with announce_compilation(roll_worlds):
            self.roll = StoredCall(roll_worlds, fixed, examples).call


def takers(
    workers: list[Worker], worlds: Starts, table: Array, done: Ints, rest: tuple[float, int, int]
) -> dict[Worker, Callable[[], int]]:
    """What each worker calls for the number of the next world that Python is to do.

    Before it returns, compiled code has done all worlds up to there that need no Python.
    """
    solver = workers[0].solver
    by_python = solver.user_size or asks_python(solver)
    if solver.stepper is not None or by_python or solver.is_prescribed:
        numbers = count()

        def take() -> int:
            return n if (n := next(numbers)) < len(table) else NONE_LEFT

        return dict.fromkeys(workers, take)
    counter = np.zeros(1, np.int64)
    starts = np.column_stack([worlds.q, worlds.v, worlds.t])
    forces = worlds.tau if worlds.tau.ndim == 3 else worlds.tau[:, None, :]
    forces = np.ascontiguousarray(forces)
    found: dict[Worker, Callable[[], int]] = {}
    for worker in workers:
        pushes = np.zeros((3 * forces.shape[1], forces.shape[2]))
        given = Worlds(starts, forces, pushes, table, done, counter)
        arguments = given, *rest, MOST_STEPS
        found[worker] = functools.partial(worker.roll, arguments)
    return found


@functools.cache
def pool(process: int) -> ThreadPoolExecutor:
    """Threads of a process that stay: while others have the cores one is long in starting."""
    return ThreadPoolExecutor(MOST_THREADS, f"rollout-{process}")


_spare: WeakKeyDictionary[Solver, list[Worker]] = WeakKeyDictionary()
"""For the next rollout: to make one costs as much as hundreds of steps."""


def borrow(source: Solver, decision: Decision, count: int) -> list[Worker]:
    """As many workers, those of earlier rollouts first, with the solver's present settings."""
    spare, workers = _spare.setdefault(source, []), list[Worker]()
    for _ in range(count):
        with suppress(IndexError):
            workers.append(spare.pop())
    workers += [Worker(source, decision) for _ in range(count - len(workers))]
    for worker in workers:
        worker.solver.apply_settings(source)
        worker.solver.tau, worker.solver.held = np.zeros((1, len(source.v))), None
    return workers


def give_back(source: Solver, workers: list[Worker]) -> None:
    """Keep workers for the next rollout."""
    _spare[source] += workers


def cores() -> int:
    """Cores that this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return allowed or 1


def asks_python(solver: Solver) -> bool:
    """Whether forces of the state are plain Python functions."""
    return bool(solver.asked_forces) and not solver.asked_forces.compiled


def threads_of(source: Solver, wanted: int | None, worlds: int) -> int:
    """How many threads to use.

    Raises:
        ModelError: There are to be none, or several where constraints or forces are in Python.
    """
    python = source.user_size > 0 or asks_python(source)
    if wanted is None:
        wanted = 1 if python else cores()
    elif not (is_count(wanted) and wanted >= 1):
        raise ModelError(f"threads is {wanted!r}; give a whole number from one on, or leave it out")
    elif python and wanted > 1:
        raise ModelError(
            f"threads is {wanted}: constraints written in Python take one, and so do forces of the"
            " state; leave threads out, or put such forces under numba.njit"
        )
    return max(1, min(wanted, worlds))
