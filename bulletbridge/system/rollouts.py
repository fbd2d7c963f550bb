"""Many worlds: trajectories of one system from many states, on all cores."""

import os
from collections.abc import Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from threading import Event

import numpy as np

from bulletbridge.engine.rollout_kernel import MANY_DONE, NONE_LEFT
from bulletbridge.errors import BulletBridgeError, ModelError, StepError
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.system.options import CONTROLLED, check_counts
from bulletbridge.system.recording import Recording, from_table
from bulletbridge.system.rollout_input import run_world, worlds_of
from bulletbridge.system.rollout_workers import Worker, borrow, give_back, pool, takers, threads_of
from bulletbridge.system.system import System

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
    """

    mechanism: Mechanism
    table: Array
    done: np.ndarray
    failures: dict[int, str]

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


def rollout(
    system: System,
    q: Array | Sequence[Sequence[float]],
    v: Array | Sequence[Sequence[float]] | None = None,
    tau: Array | None = None,
    *,
    steps: int,
    every: int = 1,
    threads: int | None = None,
    t: Array | float | None = None,
) -> Rollout:
    """Integrate many initial states through the compiled step on all cores.

    Compiled code, which does not hold Python's lock, takes world after world, and what comes out
    does not depend on the number of threads. The rank of the system, its step, gravity, scripted
    forces and motions are those of all worlds. The state of the system stays as it is.

    A world that fails does not stop the others: ``failures`` says why, and what it did not reach is
    NaN. States that are open by up to what ``System.set_state`` takes are closed first; wider open
    ones fail.

    Args:
        system: What moves. Motors, limits, contacts and whatever else steps in Python are not for
            rollouts; sweeps over processes take them.
        q: Configurations (n, nq) at the start; quaternions are normalised.
        v: Velocities (n, nv) at the start; zero unless given. They are filtered.
        tau: Forces on the rates [N m or N], (nv,), (n, nv), or (n, steps, nv) to be held over each
            step; those of the system unless given.
        steps: How many.
        every: Keep one state in so many.
        threads: How many; all cores unless given, but one for users' constraints. Functions of time
            are called from all of them.
        t: Times at the start [s], one or (n,); that of the system unless given.

    Raises:
        ModelError: Shapes do not fit, a number is not finite, or the system does not step compiled.
        AssemblyError: The loops of the system itself are open; call ``assemble`` first.
    """
    check_counts(steps, every)
    source, decision = system.compiled()
    worlds = worlds_of(source, q, v, tau, steps, t)
    if worlds.tau.ndim == 3 and system.integrator in CONTROLLED and source.is_prescribed:
        raise ModelError(
            f"forces (n, steps, nv) and functions of time do not go together with"
            f" {system.integrator}; use rk4, or give constant forces"
        )
    allowed = system.closing_allowance
    table = np.empty((len(worlds.q), steps // every, len(source.state) + 3))
    done, failures, stop = np.zeros(len(worlds.q), np.int64), dict[int, str](), Event()
    workers = borrow(source, decision, threads_of(source, threads, len(table)))
    take = takers(workers, worlds, table, done, (allowed, steps, every))

    def work(worker: Worker) -> None:
        """Run worlds until none is left; in Python those that compiled code cannot finish."""
        solver = worker.solver
        try:
            while not stop.is_set() and (n := take[worker]()) != NONE_LEFT:
                if n == MANY_DONE:
                    continue
                table[n] = np.nan
                try:
                    said = run_world(solver, worlds, n, allowed, steps, every, table[n])
                except BulletBridgeError as error:
                    said = str(error)
                if said:
                    failures[n] = said
                done[n] = round((solver.t - worlds.t[n]) / system.dt)
        except BaseException:
            stop.set()
            raise

    others = [pool(os.getpid()).submit(work, worker) for worker in workers[1:]]
    try:
        work(workers[0])
    finally:
        stop.set()  # there are no worlds left, or an error
        late = [other for other in others if not other.cancel()]
        wait(late)
    for other in late:
        other.result()
    give_back(source, workers)
    return Rollout(system.mechanism, table, done, dict(sorted(failures.items())))
