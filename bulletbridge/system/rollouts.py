"""Many worlds: trajectories of one system from many states, on all cores."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Event
from typing import NamedTuple, TypedDict, TypeVar

import numpy as np
from typing_extensions import Self, Unpack

from bulletbridge.engine.records import AT_LIMIT
from bulletbridge.engine.redundancy import Decision
from bulletbridge.engine.rollout_kernel import MANY_DONE, NONE_LEFT
from bulletbridge.engine.stepper import Solver
from bulletbridge.errors import BulletBridgeError, ModelError, StepError, nearest
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array, Mask
from bulletbridge.system.copied_worlds import Condition, Course, Found, restarts_of, run_copy
from bulletbridge.system.options import CONTROLLED, check_counts
from bulletbridge.system.recording import Recording, from_table
from bulletbridge.system.rollout_input import run_world, starts_of
from bulletbridge.system.rollout_workers import Worker, borrow, give_back, pool, takers, threads_of
from bulletbridge.system.system import System
from bulletbridge.system.world_settings import (
    MotorNumbers,
    MotorTable,
    ParameterNumbers,
    parameter_table,
)

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called with the worlds that are done, and all."""
MOST_NAMED = 5
"""Worlds that an error tells about."""


@dataclass(frozen=True)
class Rollout:
    """Trajectories of n worlds; what a world that failed has not reached is NaN.

    Attributes:
        mechanism: Names the coordinates.
        table: (n, records, nq + nv + 4) q, v, t, rank, margin, passes.
        done: (n,) steps that each world finished.
        failures: Why worlds failed, by number; empty if none has.
        restarted: (n, records) whether a world has started again since the record before.
        contact_forces: (n, records, 3) [N] by link that was asked for: the sum of all contact
            forces on it in the step that led to a record, world axes. What is rigidly joined to a
            link counts with it.
    """

    mechanism: Mechanism
    table: Array
    done: np.ndarray
    failures: dict[int, str]
    restarted: Mask
    contact_forces: dict[str, Array]

    def __repr__(self) -> str:
        """How many worlds and records, of what, and how many failed."""
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return (
            f"<Rollout: {len(self)} worlds, {self.table.shape[1]} states each of"
            f" {len(self.mechanism.joints)} joints{failed}>"
        )

    @property
    def q(self) -> Array:
        """Configurations (n, records, nq)."""
        return self.table[..., : self.mechanism.nq]

    @property
    def v(self) -> Array:
        """Velocities (n, records, nv)."""
        return self.table[..., self.mechanism.nq : -4]

    @property
    def t(self) -> Array:
        """Times (n, records) [s]."""
        return self.table[..., -4]

    def __len__(self) -> int:
        """Number of worlds."""
        return len(self.table)

    def __getitem__(self, world: int) -> Recording:
        """Trajectory of one world, as far as it got."""
        table = self.table[world]
        return from_table(self.mechanism, table[np.isfinite(table[:, -4])])

    def check(self) -> "Rollout":
        """The rollout itself, if no world has failed.

        Raises:
            StepError: Some have; it names the first ones and says why.
        """
        if self.failures:
            told = [f"world {n}: {self.failures[n]}" for n in sorted(self.failures)[:MOST_NAMED]]
            more = len(self.failures) - len(told)
            told += [f"and {more} more"] if more else []
            raise StepError(f"{len(self.failures)} of {len(self)} worlds failed; {'; '.join(told)}")
        return self


class RolloutKeywords(TypedDict, total=False):
    """Keyword arguments of ``rollout``: the attributes of ``RolloutOptions``."""

    every: int
    threads: int | None
    t: Array | float | None
    motors: MotorNumbers | None
    parameters: ParameterNumbers | None
    restart: Array | Condition | None
    contact_forces: Sequence[str]
    progress: Progress | None


class RolloutOptions(NamedTuple):
    """What is kept of a rollout, who does it, and what its worlds meet.

    Attributes:
        every: Keep one state in so many.
        threads: How many; all cores unless given, but one for users' constraints. Functions of time
            are called from all of them.
        t: Times at the start [s], one or (n,); that of the system unless given.
        motors: By joint, what ``system.motors.set`` takes: ``{"crank": {"position": x}}``, x one
            number, (n,), or (n, steps). What is not given is as it was set.
        parameters: By name of ``system.parameters``, one number or (n,), as ``set_parameters``
            takes them. Where lengths differ, the configuration nearest to q that is closed is
            where a world starts.
        restart: Where worlds start again from their start: booleans (n, steps), before a step; or
            a function of q, v and t, called at every record, from all threads.
        contact_forces: Links whose contact forces are told.
        progress: Called in this thread, now and then, with the worlds that are done, and all.
    """

    every: int = 1
    threads: int | None = None
    t: Array | float | None = None
    motors: MotorNumbers | None = None
    parameters: ParameterNumbers | None = None
    restart: Array | Condition | None = None
    contact_forces: Sequence[str] = ()
    progress: Progress | None = None

    @classmethod
    def of(cls, given: RolloutKeywords) -> Self:
        """Options that were given by keyword.

        Raises:
            ModelError: There is no such option.
        """
        for name in given.keys() - set(cls._fields):
            hint = nearest(name, cls._fields, cutoff=0.5) or f"there are {', '.join(cls._fields)}"
            raise ModelError(f"a rollout has no option '{name}'; {hint}")
        return cls(**given)


def rollout(
    system: System,
    q: Array | Sequence[Sequence[float]],
    v: Array | Sequence[Sequence[float]] | None = None,
    tau: Array | None = None,
    *,
    steps: int,
    **options: Unpack[RolloutKeywords],
) -> Rollout:
    """Integrate many initial states through the compiled step on all cores.

    Compiled code, which does not hold Python's lock, takes world after world, and what comes out
    does not depend on the number of threads. The rank of the system, its step, scripted forces and
    motions are those of all worlds. The state of the system stays as it is, also where Ctrl-C
    interrupts.

    A world that fails does not stop the others: ``failures`` says why, and what it did not reach is
    NaN. States that are open by up to what ``System.set_state`` takes are closed first; wider open
    ones fail.

    Args:
        system: What moves, with its motors as they are set, limits and contacts; not by a
            formulation or an integrator in Python, which sweeps over processes take. Contacts are
            those with the world as it stands.
        q: Configurations (n, nq) at the start; quaternions are normalised.
        v: Velocities (n, nv) at the start; zero unless given. They are filtered.
        tau: Forces on the rates [N m or N], (nv,), (n, nv), or (n, steps, nv) to be held over each
            step; those of the system unless given.
        steps: How many.
        options: What is kept, who does it, what worlds meet: the attributes of
            ``bulletbridge.system.rollouts.RolloutOptions``, by keyword.

    Raises:
        ModelError: Shapes do not fit, a number is not finite, a name does not exist, or the system
            does not step compiled.
        AssemblyError: The loops of the system itself are open; call ``assemble`` first.
    """
    chosen = RolloutOptions.of(options)
    every = chosen.every
    check_counts(steps, every)
    source, decision = system.compiled()
    worlds = starts_of(source, q, v, tau, steps, chosen.t)
    n = len(worlds.q)
    if worlds.tau.ndim == 3 and system.integrator in CONTROLLED and source.is_prescribed:
        raise ModelError(
            f"forces (n, steps, nv) and functions of time do not go together with"
            f" {system.integrator}; use rk4, or give constant forces"
        )
    told = chosen.contact_forces
    bodies = np.array([system.mechanism.link(name).body for name in told], np.int64)
    course = Course(
        worlds,
        steps,
        every,
        MotorTable(system.motors, chosen.motors or {}, n, steps),
        parameter_table(system, chosen.parameters or {}, n),
        *restarts_of(chosen.restart, n, steps),
        bodies,
    )
    records = steps // every
    found = Found(
        np.empty((n, records, len(source.state) + 3)),
        np.zeros(n, np.int64),
        {},
        np.zeros((n, records), bool),
        np.zeros((n, records, len(bodies), 3)),
    )
    threads, left = threads_of(source, chosen.threads, n), list(range(n))
    tell = chosen.progress or _nothing
    if not (system.has_inequalities or course.needs_copies):
        left = roll_solvers(system, course, (source, decision), threads, found, tell)
    if left:
        roll_copies(system, course, left, min(threads, len(left)), found, tell)
    tell(n, n)
    forces = {name: found.contact_forces[:, :, k] for k, name in enumerate(told)}
    failures = dict(sorted(found.failures.items()))
    return Rollout(system.mechanism, found.table, found.done, failures, found.restarted, forces)


def _nothing(_done: int, _all: int) -> None:
    """Show nothing."""


def roll_solvers(
    system: System,
    course: Course,
    source: tuple[Solver, Decision],
    threads: int,
    found: Found,
    tell: Progress,
) -> list[int]:
    """Run all worlds by copies of a solver; the numbers of those that have reached a joint limit.

    Args:
        system: What moves.
        course: Where worlds start, and what happens to them.
        source: The system's solver, and what that was decided by.
        threads: How many.
        found: Receives what comes of them.
        tell: Called with how many are done, in this thread.
    """
    worlds, counts = course.worlds, (course.steps, course.every)
    table, allowed, at_limit = found.table, system.closing_allowance, list[int]()
    workers, stop = borrow(*source, threads), Event()
    take = takers(workers, worlds, table, found.done, (allowed, *counts))

    def work(worker: Worker) -> None:
        """Run worlds until none is left; in Python those that compiled code cannot finish."""
        solver = worker.solver
        while not stop.is_set() and (n := take[worker]()) != NONE_LEFT:
            if worker is workers[0]:
                tell(int(np.count_nonzero(found.done)), len(table))
            if n == MANY_DONE:
                continue
            table[n] = np.nan
            try:
                said = run_world(solver, worlds, n, allowed, *counts, table[n])
            except BulletBridgeError as error:
                said = str(error)
            if said and solver.control[0]["failure"] == AT_LIMIT:
                at_limit.append(n)
            elif said:
                found.failures[n] = said
            found.done[n] = round((solver.t - worlds.t[n]) / system.dt)

    on_threads(work, workers, stop)
    give_back(source[0], workers)
    return sorted(at_limit)


def roll_copies(
    system: System,
    course: Course,
    numbers: Sequence[int],
    threads: int,
    found: Found,
    tell: Progress,
) -> None:
    """Run worlds by copies of the whole system, with motors, limits and contacts.

    Arguments are those of ``roll_solvers``; ``numbers`` are those of the worlds.
    """
    stop, left, n = Event(), iter(numbers), len(found.table)
    done = [n - len(numbers)]
    copies = system.lend(threads)

    def work(own: System) -> None:
        """Run worlds until none is left."""
        while not stop.is_set() and (world := next(left, None)) is not None:
            run_copy(own, world, course, found, stop)
            done[0] += 1
            if own is copies[0]:
                tell(done[0], n)

    on_threads(work, copies, stop)
    system.take_home(copies)


def on_threads(work: Callable[[T], None], workers: Sequence[T], stop: Event) -> None:
    """Have each worker do its work, the first in this thread; set ``stop`` when one fails."""

    def do(worker: T) -> None:
        try:
            work(worker)
        except BaseException:
            stop.set()
            raise

    others = [pool(os.getpid()).submit(do, worker) for worker in workers[1:]]
    late = list[Future[None]]()
    try:
        do(workers[0])
        late = [other for other in others if not other.cancel()]  # there are no worlds left
        wait(late)
    except BaseException:
        stop.set()
        wait([other for other in others if not other.cancel()])
        raise
    for other in late:
        other.result()
