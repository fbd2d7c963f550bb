"""What a step with motors and contacts costs beside Bullet alone, and how a grasp creeps.

    python benchmarks/contact_cost.py [--hold SECONDS] [--json FILE]

Minitaur standing on the plane, and two arms (demos/lift.urdf) that hold a box by friction, in exact
mode and natively. Every step is timed by itself, in batches that take turns. The residual is that
of the complementarity problem by the iterations it took. Creep: of the box against its pads from
one second after the grip on.
"""

import argparse
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pybullet
from _minitaur_worlds import minitaur
from pybullet_utils.bullet_client import BulletClient as Native
from rich.console import Console
from rich.table import Table

from bulletbridge.console import write_json
from bulletbridge.drop_in.client import BulletClient
from bulletbridge.drop_in.session import session_of

DEMOS = Path(__file__).parents[1] / "demos"
BATCHES, STEPS, DT = 21, 50, 1 / 240
GRIPPED = 240  # steps
SQUEEZE, MASS, MU = 30.0, 2.0, 0.4  # [N] (the box needs 24.5), [kg]
BARS = {"left": 1.0, "right": -1.0}


def standing(client: Any) -> int:
    """Minitaur on its motors; the body whose creep counts."""
    return minitaur(client, DT)[0]


def holding(client: Any) -> int:
    """Arms and box, the table taken away after the grip."""
    client.setGravity(0, 0, -9.81)
    client.setTimeStep(DT)
    flags = pybullet.URDF_USE_INERTIA_FROM_FILE
    arms = client.loadURDF(str(DEMOS / "lift.urdf"), useFixedBase=True, flags=flags)
    box = client.loadURDF(str(DEMOS / "lift_box.urdf"), [0, 0, 0.4], flags=flags)
    joints = {client.getJointInfo(arms, k)[1].decode(): k for k in range(client.getNumJoints(arms))}
    for link in range(-1, len(joints)):
        client.changeDynamics(arms, link, lateralFriction=1.0)
    client.changeDynamics(box, -1, lateralFriction=MU)
    for side, sign in BARS.items():
        client.resetJointState(arms, joints[f"{side}_squeeze"], 0.085)
        client.createConstraint(
            arms,
            joints[f"{side}_follower"],
            arms,
            joints[f"{side}_hinge"],
            pybullet.JOINT_POINT2POINT,
            [0, 0, 0],
            [sign * 0.3, 0.07, 0],
            [0, 0, 0.1],
        )
        for bar in ("hinge", "follower"):
            client.setJointMotorControl2(
                arms, joints[f"{side}_{bar}"], pybullet.VELOCITY_CONTROL, force=0
            )
        client.setJointMotorControl2(
            arms, joints[f"{side}_crank"], pybullet.POSITION_CONTROL, targetPosition=0, force=500
        )
        client.setJointMotorControl2(
            arms,
            joints[f"{side}_squeeze"],
            pybullet.VELOCITY_CONTROL,
            targetVelocity=0.05,
            force=SQUEEZE,
        )
    return box


def timed(ours: Any, native: Any) -> tuple[list[float], list[float], list[tuple[int, float]]]:
    """Microseconds of all steps of both; iterations and residual of ours."""
    times: tuple[list[float], list[float]] = [], []
    solved: list[tuple[int, float]] = []
    (group,) = session_of(ours._client).groups.values()
    for _ in range(BATCHES):
        for client, found in zip((ours, native), times, strict=True):
            for _ in range(STEPS):
                begun = perf_counter()
                client.stepSimulation()
                found.append(1e6 * (perf_counter() - begun))
                state = group.system.complementarity
                if client is ours and state is not None:
                    solved.append((state.sweeps + state.newton, state.residual))
    return *times, solved


def creep(client: Any, body: int, seconds: float, ours: bool) -> tuple[float, float]:
    """Way of a body's base [m], and largest gap of the loops, if ours [m]."""
    start, gap = np.array(client.getBasePositionAndOrientation(body)[0]), 0.0
    for n in range(round(seconds / DT)):
        client.stepSimulation()
        if ours and n % 24 == 0:
            for group in session_of(client._client).groups.values():
                system = group.system
                gap = max(gap, system.evaluate().largest("kept_metres"))
    end = np.array(client.getBasePositionAndOrientation(body)[0])
    return float(np.linalg.norm(end - start)), gap


def measure(make: Any, seconds: float) -> dict[str, float]:
    """All figures of one scene."""
    ours, native = BulletClient(pybullet.DIRECT), Native(pybullet.DIRECT)
    bodies = [make(client) for client in (ours, native)]
    ours.setBridgeMode("exact")
    for client in (ours, native):
        for _ in range(GRIPPED):
            client.stepSimulation()
    mine, theirs, solved = timed(ours, native)
    (way, gap), (drift, _) = (
        creep(client, body, seconds, client is ours)
        for client, body in zip((ours, native), bodies, strict=True)
    )
    for client in (ours, native):
        client.disconnect()
    residuals = [residual for _, residual in solved]
    return {
        "ours [us]": median(mine),
        "Bullet [us]": median(theirs),
        "ratio": median(mine) / median(theirs),
        "iterations, median": median(n for n, _ in solved),
        "iterations, most": max(n for n, _ in solved),
        "residual, median": median(residuals),
        "residual, largest": max(residuals),
        "creep, ours [m]": way,
        "creep, Bullet [m]": drift,
        "kept gap [m]": gap,
    }


def main() -> None:
    """Measure, print a table, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hold", type=float, default=60.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {make.__name__: measure(make, options.hold) for make in (standing, holding)}
    table = Table("", *results)
    for name in results["standing"]:
        table.add_row(name, *(f"{found[name]:.3g}" for found in results.values()))
    Console().print(table)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
