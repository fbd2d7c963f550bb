"""Many worlds: trajectories of one system from many states, on all cores."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from threading import Event
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from bulletbridge.errors import BulletBridgeError, ModelError, StepError
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array
from bulletbridge.simulation.failures import check_finite, explain
from bulletbridge.simulation.options import CONTROLLED, check_counts
from bulletbridge.simulation.parts import copy_of
from bulletbridge.simulation.recording import Recording, from_table
from bulletbridge.simulation.redundancy import Decision
from bulletbridge.simulation.scripted import Held
from bulletbridge.simulation.solver import Solver
from bulletbridge.simulation.step import PROJECT
from bulletbridge.simulation.system import System

_spare: WeakKeyDictionary[Solver, list[Solver]] = WeakKeyDictionary()
"""Copies of solvers for the next rollout: to make one costs as much as hundreds of steps."""
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


class Worlds(NamedTuple):
    """What a rollout starts from and is driven by."""

    q: Array  # (n, nq)
    v: Array  # (n, nv)
    t: Array  # (n,) [s]
    tau: Array  # (n, nv) or (n, steps, nv)


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

    Each world is one call into compiled code, which does not hold Python's lock, and its result
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
    table = np.full((len(worlds.q), steps // every, len(source.state) + 3), np.nan)
    done, failures = np.zeros(len(worlds.q), np.int64), dict[int, str]()
    solvers = borrow(source, decision, threads_of(source, threads, len(table)))
    numbers, stop = count(), Event()

    def work(solver: Solver) -> None:
        """Worlds one after the other, until none is left."""
        while (n := next(numbers)) < len(table) and not stop.is_set():
            try:
                said = run_world(solver, worlds, n, allowed, steps, every, table[n])
            except BulletBridgeError as error:
                said = str(error)
            except BaseException:
                stop.set()
                raise
            if said:
                failures[n] = said
            done[n] = round((solver.t - worlds.t[n]) / system.dt)

    if len(solvers) == 1:
        work(solvers[0])
    else:
        with ThreadPoolExecutor(len(solvers), "rollout") as pool:
            try:
                for finished in [pool.submit(work, solver) for solver in solvers]:
                    finished.result()
            finally:
                stop.set()
    _spare[source] += solvers
    return Rollout(system.mechanism, table, done, dict(sorted(failures.items())))


def borrow(source: Solver, decision: Decision, count: int) -> list[Solver]:
    """As many copies of a solver, those of earlier rollouts first, with its present settings."""
    spare, solvers = _spare.setdefault(source, []), list[Solver]()
    for _ in range(count):
        with suppress(IndexError):
            solvers.append(spare.pop())
    solvers += [copy_of(source, decision) for _ in range(count - len(solvers))]
    for solver in solvers:
        solver.apply_settings(source)
        solver.tau, solver.held = np.zeros((1, len(source.v))), None
    return solvers


def run_world(
    solver: Solver, worlds: Worlds, n: int, allowed: float, steps: int, every: int, table: Array
) -> str:
    """Trajectory of world n into its table; why it failed, or nothing."""
    c, tau = solver.control[0], worlds.tau[n]
    solver.put(worlds.q[n], worlds.v[n], float(worlds.t[n]))
    if tau.ndim == 2:
        solver.held = Held(tau, float(worlds.t[n]), float(c["dt"]))
    else:
        solver.tau[0] = tau
    c["opened"] = 0.0
    failure = solver.run(PROJECT)
    if failure or c["opened"] > allowed:
        solver.state[-1] = worlds.t[n]
        length = solver.encoded.length
        return (
            f"the loops are open by {c['opened'] * length:.3g} m or rad at the start (limit"
            f" {allowed * length:.1g}); assemble the system there, and start from what it finds"
        )
    failure = solver.roll(steps, every, table)
    return explain(solver, failure) if failure else ""


def worlds_of(
    source: Solver,
    q: Array | Sequence[Sequence[float]],
    v: Array | Sequence[Sequence[float]] | None,
    tau: Array | None,
    steps: int,
    t: Array | float | None,
) -> Worlds:
    """Arrays of the shapes that they should have.

    Raises:
        ModelError: They cannot be brought to them, or a number is not finite.
    """
    mechanism = source.mechanism
    nv = mechanism.nv
    start = np.array(q, float)
    n = len(start) if start.ndim == 2 else 0
    speed = np.zeros((n, nv)) if v is None else np.array(v, float)
    if start.shape != (n, mechanism.nq) or speed.shape != (n, nv):
        raise ModelError(
            f"q {start.shape} and v {speed.shape} are not (n, {mechanism.nq}) and (n, {nv}), the"
            " positions and rates of n worlds"
        )
    forces = np.asarray(source.tau[0] if tau is None else tau, float)
    if forces.shape not in ((nv,), (n, nv), (n, steps, nv)):
        raise ModelError(
            f"tau {forces.shape} is none of ({nv},), ({n}, {nv}) and ({n}, {steps}, {nv}); give"
            " forces for all worlds, for each world, or for each world and step"
        )
    times = np.asarray(source.t if t is None else t, float)
    if times.shape not in ((), (n,)):
        raise ModelError(f"t {times.shape} is neither one time nor ({n},)")
    check_finite(start, speed, times)
    for joint in mechanism.joints.values():
        if joint.kind in ("spherical", "free"):
            part = start[:, joint.q.stop - 4 : joint.q.stop]
            part /= np.linalg.norm(part, axis=1, keepdims=True)
    if forces.ndim < 3:
        forces = np.broadcast_to(forces, (n, nv))
    return Worlds(start, speed, np.broadcast_to(times, (n,)), forces)


def cores() -> int:
    """Cores that this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return allowed or 1


def threads_of(source: Solver, wanted: int | None, worlds: int) -> int:
    """How many threads to use.

    Raises:
        ModelError: There are to be none, or several where constraints are in Python.
    """
    python = source.user_size > 0
    if wanted is None:
        wanted = 1 if python else cores()
    elif wanted < 1 or (python and wanted > 1):
        why = "constraints written in Python take one" if python else "no thread"
        raise ModelError(f"threads is {wanted}: {why}; leave threads out")
    return max(1, min(wanted, worlds))
