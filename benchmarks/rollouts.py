"""Steps per second of many worlds at once, on one core and on two, beside mujoco.rollout.

    python benchmarks/rollouts.py [--dt S] [--worlds N] [--steps N] [--turns N] [--json FILE]
        [--model NAME ...]

The same mechanisms from the same closed states, every state kept, both libraries with a pool of
threads that stays or is made anew as they have it; their jobs take turns. Ours is semi-implicit
Euler, loops at round-off. MuJoCo (extra ``bench``) is its Euler with the Newton solver and default
settings, contacts and limits off, its loops soft. ``standing`` is Minitaur on a plane with contacts
and eight motors of 3.5 N m, which MuJoCo has as position servos, with the same shapes: both have
stood for a second. Figures are medians of the turns, with the best;
processor time, all threads together, depends least on what else runs.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time, sleep
from typing import Any

import mujoco  # pyright: ignore[reportMissingModuleSource]
import numpy as np
from mujoco import rollout as peer_rollout  # pyright: ignore[reportMissingModuleSource]
from rich.console import Console
from rich.table import Table

from bulletbridge.bench.cases import case
from bulletbridge.bench.peers.mujoco import Mujoco
from bulletbridge.bench.peers.ours import Ours
from bulletbridge.console import write_json
from bulletbridge.gym.minitaur import MOTORS, minitaur, straight
from bulletbridge.gym.simulation import Simulation
from bulletbridge.models.formats.convert import convert
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.numerics.records import Array
from bulletbridge.system.rollouts import rollout
from bulletbridge.system.system import System

MODELS, THREADS, TURNS, REST = ("four_bar", "two_arms", "standing"), (1, 2), 61, 0.02
SETTLED = 240
"""Steps until Minitaur stands."""
STIFFNESS, DAMPING, FORCE = 100.0, 5.0, 3.5  # of MuJoCo's servos [N m/rad, N m s/rad, N m]
PUSHES = 0.01
"""Of the base at the start of a world [m/s]."""


def start_states(system: System, worlds: int) -> tuple[Array, Array]:
    """Closed states (worlds,) along a motion."""
    found: list[tuple[Array, Array]] = []
    for _ in range(worlds):
        system.rollout(3, 3)
        found.append((system.q, system.v))
    q, v = zip(*found, strict=True)
    return np.array(q), np.array(v)


def jobs(name: str, dt: float, worlds: int, steps: int) -> dict[str, Callable[[], object]]:
    """What takes turns: each library on each number of threads."""
    made = case(name)
    system, peer = Ours(made, dt).system, Mujoco(made, dt)
    q, v = start_states(system, worlds)
    library: Any = peer.library
    full = library.mjtState.mjSTATE_FULLPHYSICS
    states = np.zeros((worlds, library.mj_stateSize(peer.model, full)))
    for n in range(worlds):  # hinges alone: the same coordinates
        peer.data.qpos[:], peer.data.qvel[:] = q[n], v[n]
        library.mj_getState(peer.model, peer.data, states[n], full)
    found: dict[str, Callable[[], object]] = {}
    for threads in THREADS:
        data = [library.MjData(peer.model) for _ in range(threads)]
        pool: Any = peer_rollout.Rollout(nthread=threads)

        def ours(threads: int = threads) -> object:
            return rollout(system, q, v, steps=steps, threads=threads).check()

        def theirs(data: list[Any] = data, pool: Any = pool) -> object:
            return pool.rollout(peer.model, data, states, nstep=steps)

        found[f"bulletbridge {threads}"], found[f"MuJoCo {threads}"] = ours, theirs
    return found


def standing_in_mujoco(spec: ModelSpec, dt: float) -> tuple[Any, Any]:
    """MuJoCo's model and data of Minitaur after it has stood for a second."""
    library: Any = mujoco
    with TemporaryDirectory() as folder:
        (file, *_) = convert(spec, Path(folder) / "minitaur", to="mjcf").files
        made: Any = library.MjSpec.from_file(str(file))
        plane = made.worldbody.add_geom(type=library.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1])
        plane.contype, plane.conaffinity = 1, 0
        for torque in list(made.actuators):
            made.delete(torque)
        for name in MOTORS:
            servo = made.add_actuator(name=name, target=name)
            servo.trntype = library.mjtTrn.mjTRN_JOINT
            servo.set_to_position(kp=STIFFNESS, kv=DAMPING)
            servo.forcelimited, servo.forcerange = True, [-FORCE, FORCE]
        model = made.compile()
    model.opt.timestep = dt
    data = library.MjData(model)
    for name, value in spec.start_q.items():
        data.joint(name).qpos[: np.size(value)] = value
    data.qpos[3:7] = 1.0, 0.0, 0.0, 0.0
    data.ctrl[:] = [straight(name) for name in MOTORS]
    for _ in range(SETTLED):
        library.mj_step(model, data)
    return model, data


def standing_jobs(dt: float, worlds: int, steps: int) -> dict[str, Callable[[], object]]:
    """As ``jobs``, of Minitaur on a plane; each library from where it has come to stand."""
    task = replace(minitaur(), dt=dt)
    simulation = Simulation(task, 1)
    system = simulation.model.system
    for name in MOTORS:
        system.motors.set(name, force=FORCE, position=straight(name), position_gain=1.0)
    system.rollout(SETTLED, SETTLED)
    q, v = (np.repeat(x[None], worlds, axis=0) for x in (system.q, system.v))
    pushes = np.linspace(-PUSHES, PUSHES, worlds)
    v[:, system.mechanism.joint("base").v.start + 3] += pushes
    assert isinstance(task.model, ModelSpec)
    model, standing = standing_in_mujoco(task.model, dt)
    library: Any = mujoco
    full = library.mjtState.mjSTATE_FULLPHYSICS
    states = np.zeros((worlds, library.mj_stateSize(model, full)))
    for n in range(worlds):
        data = library.MjData(model)
        data.qpos[:], data.qvel[:] = standing.qpos, standing.qvel
        data.qvel[0] += pushes[n]
        library.mj_getState(model, data, states[n], full)
    controls = np.broadcast_to(standing.ctrl, (worlds, steps, len(MOTORS))).copy()
    print(f"standing: {len(system.contacts())} contacts, MuJoCo {standing.ncon},"
          f" heights {system.q[2]:.4f} m and {standing.qpos[2]:.4f} m")  # fmt: skip
    found: dict[str, Callable[[], object]] = {}
    for threads in THREADS:
        many = [library.MjData(model) for _ in range(threads)]
        pool: Any = peer_rollout.Rollout(nthread=threads)

        def ours(threads: int = threads) -> object:
            return rollout(system, q, v, steps=steps, threads=threads).check()

        def theirs(many: list[Any] = many, pool: Any = pool) -> object:
            return pool.rollout(model, many, states, control=controls, nstep=steps)

        found[f"bulletbridge {threads}"], found[f"MuJoCo {threads}"] = ours, theirs
    return found


def measure(
    name: str, dt: float, worlds: int, steps: int, number: int
) -> dict[str, dict[str, float]]:
    """Steps per second, median and best over turns; least processor time per step [us]."""
    size = dt, worlds, steps
    turns = standing_jobs(*size) if name == "standing" else jobs(name, *size)
    seconds: dict[str, list[float]] = {job: [] for job in turns}
    processor = dict.fromkeys(turns, float("inf"))
    for job in turns.values():
        job()
    for _ in range(number):
        for job, call in turns.items():
            sleep(REST)
            begun, used = perf_counter(), process_time()
            call()
            seconds[job].append(perf_counter() - begun)
            processor[job] = min(processor[job], process_time() - used)
    done = worlds * steps
    return {
        job: {
            "median": done / median(taken),
            "best": done / min(taken),
            "processor_us": 1e6 * processor[job] / done,
        }
        for job, taken in seconds.items()
    }


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dt", type=float, default=1 / 240)
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--model", nargs="*", default=list(MODELS), choices=MODELS)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    size = given.dt, given.worlds, given.steps, given.turns
    results = {name: measure(name, *size) for name in given.model}
    columns = "bulletbridge", "mujoco.rollout", "ratio (best)", "processor [us/step]"
    table = Table("model", "threads", *columns)
    for name, found in results.items():
        for threads in THREADS:
            ours, theirs = found[f"bulletbridge {threads}"], found[f"MuJoCo {threads}"]
            table.add_row(
                name,
                str(threads),
                *(f"{x['median']:,.0f} ({x['best']:,.0f})" for x in (ours, theirs)),
                f"{ours['median'] / theirs['median']:.1f} ({ours['best'] / theirs['best']:.1f})",
                f"{ours['processor_us']:.2f}, {theirs['processor_us']:.2f}",
            )
    Console().print(table)
    if given.json:
        settings = {"dt": given.dt, "worlds": given.worlds, "steps": given.steps}
        write_json(given.json, {**settings, "steps_per_second": results})


if __name__ == "__main__":
    main()
