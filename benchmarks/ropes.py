"""What do ropes of many bodies cost: in System, through the drop-in client, in Bullet, in MuJoCo?

Balls of 50 g, each joined to the next by a point constraint, the first to the world, stretched out
and let go; two seconds at 1/240 s. Every rope is a process of its own.

    python benchmarks/ropes.py [--balls 10 30 60 100] [--seconds 2]
"""

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pybullet
from rich.console import Console
from rich.table import Table

import bulletbridge as bb

LINK, RADIUS, MASS, HEIGHT, DT = 0.1, 0.03, 0.05, 1.0, 1 / 240
MODES = "system", "filter", "exact", "bullet", "mujoco"


def widest(places: Sequence[Any], turns: Sequence[Any]) -> float:
    """Largest gap [m] between neighbours; turns (3, 3)."""
    along = np.array([np.reshape(R, (3, 3))[:, 0] for R in turns]) * LINK / 2
    ends = np.array(places)[:-1] + along[:-1], np.array(places)[1:] - along[1:]
    return float(np.linalg.norm(ends[1] - ends[0], axis=1).max())


def balls(p: "bb.BulletClient", count: int) -> list[int]:
    """Balls in a line, in a world."""
    p.setGravity(0, 0, -9.81)
    shape = p.createCollisionShape(pybullet.GEOM_SPHERE, radius=RADIUS)
    places = [[LINK * (n + 0.5), 0, HEIGHT] for n in range(count)]
    return [p.createMultiBody(MASS, shape, basePosition=place) for place in places]


def join(p: "bb.BulletClient", ids: list[int]) -> None:
    """Point constraints, as PyBullet's users make them."""
    point, before, after = pybullet.JOINT_POINT2POINT, [LINK / 2, 0, 0], [-LINK / 2, 0, 0]
    p.createConstraint(ids[0], -1, -1, -1, point, [0, 0, 0], after, [0, 0, HEIGHT])
    for a, b in zip(ids, ids[1:], strict=False):
        p.createConstraint(a, -1, b, -1, point, [0, 0, 0], before, after)


def in_client(mode: str, count: int) -> tuple[Callable[[], object], Callable[[], float], float]:
    """A step, the gap and the time to set up of a PyBullet program."""
    p = bb.BulletClient(pybullet.DIRECT)
    if mode == "bullet":
        p.setBridgeMode("native")
    elif mode == "exact":
        p.setBridgeMode("exact")
    ids = balls(p, count)
    begun = time.perf_counter()
    join(p, ids)
    p.stepSimulation()
    took = time.perf_counter() - begun

    def gap() -> float:
        poses = [p.getBasePositionAndOrientation(body) for body in ids]
        turns = [pybullet.getMatrixFromQuaternion(turn) for _, turn in poses]
        return widest([place for place, _ in poses], turns)

    return p.stepSimulation, gap, took


def in_system(count: int) -> tuple[Callable[[], object], Callable[[], float], float]:
    """The same with a ``System``."""
    client = pybullet.connect(pybullet.DIRECT)
    pybullet.setGravity(0, 0, -9.81, physicsClientId=client)
    shape = pybullet.createCollisionShape(
        pybullet.GEOM_SPHERE, radius=RADIUS, physicsClientId=client
    )
    names = dict[str, int]()
    for n in range(count):
        place = [LINK * (n + 0.5), 0, HEIGHT]
        names[f"ball{n}"] = pybullet.createMultiBody(
            MASS, shape, basePosition=place, physicsClientId=client
        )
    before, after = (LINK / 2, 0, 0), (-LINK / 2, 0, 0)
    joints = [
        bb.LoopJoint(
            f"pin{n}",
            bb.JointModel.BALL,
            bb.Frame(f"ball{n - 1}/link0", before) if n else bb.Frame("world", (0, 0, HEIGHT)),
            bb.Frame(f"ball{n}/link0", after),
        )
        for n in range(count)
    ]
    begun = time.perf_counter()
    system = bb.attach(names, joints, client)
    system.assemble()
    took = time.perf_counter() - begun
    return system.step, lambda: system.evaluate().largest("metres"), took


def in_mujoco(count: int) -> tuple[Callable[[], object], Callable[[], float], float]:
    """The same in MuJoCo, with the sparse Jacobian, the faster one for all but short ropes."""
    mujoco: Any = importlib.import_module("mujoco")
    bodies, connects, shape = "", "", f'size="{RADIUS}" mass="{MASS}" contype="0" conaffinity="0"'
    for n in range(count):
        bodies += (
            f'<body name="b{n}" pos="{LINK * (n + 0.5)} 0 {HEIGHT}"><freejoint/>'
            f'<geom type="sphere" {shape}/></body>'
        )
        other = f' body2="b{n - 1}"' if n else ""
        connects += f'<connect body1="b{n}"{other} anchor="{-LINK / 2} 0 0"/>'
    text = (
        f'<mujoco><option timestep="{DT}" jacobian="sparse"/><worldbody>{bodies}</worldbody>'
        f"<equality>{connects}</equality></mujoco>"
    )
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)

    def gap() -> float:
        return widest(data.xpos[1:], data.xmat[1:])

    def step() -> None:
        mujoco.mj_step(model, data)

    return step, gap, 0.0


def measure(mode: str, count: int, seconds: float) -> dict[str, float]:
    """Median and mean time of a step [us], largest gap [m], time to set up [s]."""
    if mode == "system":
        step, gap, took = in_system(count)
    elif mode == "mujoco":
        step, gap, took = in_mujoco(count)
    else:
        step, gap, took = in_client(mode, count)
    step()
    times, largest = list[float](), 0.0
    for n in range(round(seconds / DT)):
        begun = time.perf_counter()
        step()
        times.append(1e6 * (time.perf_counter() - begun))
        if n % 8 == 0:
            largest = max(largest, gap())
    return {
        "median": float(np.median(times)),
        "mean": float(np.mean(times)),
        "gap": largest,
        "setup": took,
    }


def main() -> None:
    """Measure every rope in every mode, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--balls", type=int, nargs="+", default=[10, 30, 60, 100])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        mode, count = options.one
        print(json.dumps(measure(mode, int(count), options.seconds)))
        return
    table = Table("balls", "mode", "median [µs]", "mean [µs]", "gap [m]", "set-up [s]")
    for count in options.balls:
        for mode in MODES:
            own = [sys.executable, __file__, "--one", mode, str(count)]
            own += ["--seconds", str(options.seconds)]
            out = subprocess.run(own, capture_output=True, text=True, check=True).stdout
            found = json.loads(out.strip().splitlines()[-1])
            figures = f"{found['median']:.0f}", f"{found['mean']:.0f}", f"{found['gap']:.1e}"
            table.add_row(str(count), mode, *figures, f"{found['setup']:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
