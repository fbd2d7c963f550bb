"""Start states, forces and motions of the worlds of a rollout."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bulletbridge.engine.failures import explain
from bulletbridge.engine.force_signals import HeldForces
from bulletbridge.engine.stepper import Solver
from bulletbridge.engine.tasks import PROJECT
from bulletbridge.errors import ModelError
from bulletbridge.numerics.records import Array, array_of


class Starts(NamedTuple):
    """What a rollout starts from and is driven by."""

    q: Array  # (n, nq)
    v: Array  # (n, nv)
    t: Array  # (n,) [s]
    tau: Array  # (n, nv) or (n, steps, nv)


def starts_of(
    source: Solver,
    q: Array | Sequence[Sequence[float]],
    v: Array | Sequence[Sequence[float]] | None,
    tau: Array | None,
    steps: int,
    t: Array | float | None,
) -> Starts:
    """Arrays of the shapes that they should have.

    Raises:
        ModelError: They cannot be brought to them, or a number is not finite.
    """
    mechanism = source.mechanism
    nv = mechanism.nv
    start = array_of("q", q)
    n = len(start) if start.ndim == 2 else 0
    speed = np.zeros((n, nv)) if v is None else array_of("v", v)
    if start.shape != (n, mechanism.nq) or speed.shape != (n, nv):
        raise ModelError(
            f"q {start.shape} and v {speed.shape} are not (n, {mechanism.nq}) and (n, {nv}), the"
            " positions and rates of n worlds"
        )
    forces = array_of("tau", source.tau[0] if tau is None else tau)
    if forces.shape not in ((nv,), (n, nv), (n, steps, nv)):
        raise ModelError(
            f"tau {forces.shape} is none of ({nv},), ({n}, {nv}) and ({n}, {steps}, {nv}); give"
            " forces for all worlds, for each world, or for each world and step"
        )
    times = array_of("t", source.t if t is None else t)
    if times.shape not in ((), (n,)):
        raise ModelError(f"t {times.shape} is neither one time nor ({n},)")
    times = np.broadcast_to(times, (n,))
    for name, given in (("q", start), ("v", speed), ("t", times[:, None])):
        require_finite_worlds(name, given)
    for joint in mechanism.joints.values():
        if joint.kind in ("spherical", "free"):
            part = start[:, joint.q.stop - 4 : joint.q.stop]
            part /= np.linalg.norm(part, axis=1, keepdims=True)
    if forces.ndim < 3:
        forces = np.broadcast_to(forces, (n, nv))
    return Starts(start, speed, times, forces)


def require_finite_worlds(name: str, given: Array) -> None:
    """Refuse NaN and infinity among what worlds (n, ...) start from."""
    finite = np.isfinite(given).all(axis=1)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise ModelError(
            f"world {bad} starts with {name} = {given[bad].tolist()}, which is not finite; correct"
            " it, or leave that world out"
        )


def run_world(
    solver: Solver, worlds: Starts, n: int, allowed: float, steps: int, every: int, table: Array
) -> str:
    """Trajectory of world n into its table; why it failed, or nothing."""
    c, tau = solver.control[0], worlds.tau[n]
    solver.put(worlds.q[n], worlds.v[n], float(worlds.t[n]))
    if tau.ndim == 2:
        solver.held = HeldForces(tau, float(worlds.t[n]), float(c["dt"]))
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
    failure, _ = solver.roll(0, steps, every, table)
    return explain(solver, failure, True) if failure else ""
